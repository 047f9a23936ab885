//! What others see of a lease.

use std::time::Duration;

use domain::ids::{AccountId, ProfileId, StreamId};

use crate::plans::Target;

/// Purpose of a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeasePurpose {
    /// A live channel.
    Live,
    /// A preview of one stream.
    Preview,
    /// A trial of a stream profile.
    Trial,
    /// A film or an episode.
    Vod,
    /// The past of a channel.
    Catchup,
    /// A live channel that only recordings watch.
    Recording,
}

/// The current state of a lease.
#[derive(Clone, Debug, PartialEq)]
pub struct LeaseInfo {
    /// Number of the lease; never reused.
    pub id: u64,
    /// Account profile of the slot.
    pub profile: ProfileId,
    /// Account of the profile.
    pub account_id: AccountId,
    /// The channel, preview or trial that uses the slot.
    pub target: Target,
    /// The stream that it opens.
    pub stream: StreamId,
    /// Name of the account.
    pub account: String,
    /// Purpose of the lease.
    pub purpose: LeasePurpose,
    /// The socket is closing; the provider may still see it.
    pub closing: bool,
    /// Time since the grant.
    pub age: Duration,
}
