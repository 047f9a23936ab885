//! The identity of streams: recognises a known stream in a playlist although its address, its name or its group has changed.
//!
//! ```text
//!   properties ── KeyReader::read ──▶ IdentityKeys ── assign ──▶ Assignment: a stream for each entry, or none
//! ```
//!
//! Entries and streams are compared by several keys, one after the other. A key decides only if it occurs once in the whole
//! playlist and once among all known streams, so no order of the entries changes the result.

mod assignment;
mod bare_address;
mod keys;
mod logins;
mod marks;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod model;
mod pairing;
mod panel_id;
#[cfg(test)]
mod tests;

use std::fmt;

use serde::{Deserialize, Serialize};

pub use self::assignment::{Assignment, PanelAgreement, assign};
pub use self::keys::{IdentityKeys, KeyReader};
pub use self::logins::account_logins;
pub use self::pairing::{PAIR_POINTS_MIN, PairKey, PairStream, Pairing, StreamPair, pair_streams};
pub(crate) use self::panel_id::panel_id;
pub use self::panel_id::{film_id, live_id};

/// A property by which a refresh recognises a stream, so that it keeps its id, its edits and its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IdentityKey {
    /// The number in an address of the usual panel form (`/live/user/password/ID.ts`).
    PanelId,
    /// The whole address.
    Address,
    /// The address without parts that change: tokens, times of expiry, and the login of the account.
    BareAddress,
    /// The id of its channel in a programme guide.
    GuideId,
    /// Its name together with its group.
    NameAndGroup,
    Name,
}

impl IdentityKey {
    /// All keys in the order in which they are compared if an account has no order of its own.
    pub const ALL: [Self; 6] =
        [Self::PanelId, Self::Address, Self::BareAddress, Self::GuideId, Self::NameAndGroup, Self::Name];

    /// Returns the number of hashes that are compared one after the other.
    fn n_parts(self) -> usize {
        match self {
            Self::BareAddress => 2,
            Self::PanelId | Self::Address | Self::GuideId | Self::NameAndGroup | Self::Name => 1,
        }
    }
}

/// Completes "the same …".
impl fmt::Display for IdentityKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PanelId => "number at the panel",
            Self::Address => "address",
            Self::BareAddress => "address without its token",
            Self::GuideId => "guide id",
            Self::NameAndGroup => "name and group",
            Self::Name => "name",
        })
    }
}

/// Why an order of keys is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum IdentityOrderError {
    #[error("each key may occur once")]
    Repeated,
    /// Without it, nothing recognises an entry without a name and an id of its own.
    #[error("the address must be one of the keys")]
    NoAddress,
}

/// Checks an order of keys. An empty one stands for [`IdentityKey::ALL`].
///
/// # Errors
/// A key is repeated, or the address is missing.
pub fn check_order(order: &[IdentityKey]) -> Result<(), IdentityOrderError> {
    let is_repeated = |at: usize| order[..at].contains(&order[at]);
    if (0..order.len()).any(is_repeated) {
        Err(IdentityOrderError::Repeated)
    } else if order.is_empty() || order.contains(&IdentityKey::Address) {
        Ok(())
    } else {
        Err(IdentityOrderError::NoAddress)
    }
}
