//! A question to a network tuner: how many tuners it has.

use domain::egress::Reach;
use domain::limits::LimitScope;
use domain::plan::{Candidate, SlotPool};
use domain::source_url::SourceUrl;

/// Maximum number of questions that wait. Beyond it, a question counts as asked in vain.
pub(super) const QUESTIONS_MAX: usize = 64;

/// The address of a stream whose device can be asked how many tuners it has.
#[derive(Clone, Debug)]
pub(crate) struct DeviceAddress {
    pub(super) url: SourceUrl,
    pub(super) reach: Reach,
    pub(super) user_agent: Option<String>,
}

impl DeviceAddress {
    /// Returns the address of the device of a candidate. `None` if its connections have a login or a configured limit, or
    /// do not use HTTP.
    pub(super) fn new(candidate: &Candidate) -> Option<Self> {
        let Candidate { pool, url, reach, headers, .. } = candidate;
        let is_asked = matches!(pool.scope, LimitScope::Host(_)) && pool.max_streams == 0 && url.is_http();
        // Other headers may be a secret, and the description of a device needs none.
        let address = || Self { url: url.clone(), reach: *reach, user_agent: headers.user_agent.clone() };
        is_asked.then(address)
    }
}

/// A question to the device of a pool.
#[derive(Debug)]
pub(super) struct DeviceQuestion {
    pub(super) pool: SlotPool,
    pub(super) address: DeviceAddress,
}
