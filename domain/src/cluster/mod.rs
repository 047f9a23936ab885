//! Decides how several nodes act as one gateway: who is a member, who may open a connection, who plays a channel.
//!
//! The nodes share one small key-value store, the *engine*. Its only safe operation is the compare-and-swap: a record
//! is replaced only if its revision is the expected one. A read may be stale, and a write whose outcome is unknown may
//! be applied seconds later. Clocks of nodes are monotonic, count suspend, and are never compared.
//!
//! Each machine is pure: (state, time, input) → (state, effects). [`ClusterNode`] combines those of one node.
//!
//! ```text
//!   member.rs    member.NODE     renewed every 3 s by its node; swapped to "expired" after 20 s by any other
//!      │ valid, ended, may grant
//!      ├─▶ slots.rs    pool.ID         the leases and waiters of all pools that share limits
//!      ├─▶ owner.rs    channel.TARGET  the origin of a channel, and its epoch
//!      ├─▶ jobs.rs     job.NAME        the node that runs a job
//!      ├─▶ seats.rs    seat.USER       the sessions of a user with a limit
//!      └─▶ predecessor.rs              the process before this one, while it serves viewers after a restart
//! ```
//!
//! The argument for safety, which `tests/` checks with a simulated engine, network, clocks and provider:
//! - A node renews its record only from its own last revision. 15 s after it *sent* the last confirmed renewal, it
//!   closes its limited sources and begins a new *incarnation*.
//! - A guard kills a process that was frozen over its deadline, so that the kernel closes its connections.
//! - The guard says so after the process that it guarded has ended with all its programs, unless another process of the
//!   node may have connections. That ends the incarnation at once, see [`end`].
//! - Another node swaps the record to `expired` after it has seen one revision for 20 s. The swap succeeds only if no
//!   renewal came between. So the sources were closed before, even if the clocks differ by 10 %.
//! - Leases carry the incarnation. They end with it: then their entries cool, and become free after a while.
//! - A connection opens after its entry was written by a successful swap. Entries count until their connections are
//!   closed and the provider has noticed it.
//! - After a restart of the engine, which may have lost records, nobody grants for 20 s and a release delay. Holders
//!   write their entries again within that time, or close. A process that has just started cannot know of a restart, so
//!   the same holds from the first answer that it gets. Only a machine that vanishes at that very time, with the
//!   entries of its leases lost, is not covered.
//! - A process that is replaced and serves its viewers on keeps its leases: its successor keeps the incarnation valid,
//!   and tells it until when. At that deadline it closes its sources, as every node does.
//!
//! [`panel_count`] decides when the number of connections that a panel shows after a loss counts.
//!
//! Who may join, and by which certificate a node is known, is in [`token`] and [`certificate`].
//!
//! Which versions nodes write and read is in [`version`].
//!
//! In reading order: [`record`] has the values in the engine, [`rules`] the times, then the machines as above, and
//! [`node`] their combination.

pub mod certificate;
pub mod client_ids;
pub mod end;
pub mod jobs;
pub mod member;
pub mod node;
mod outbox;
pub mod owner;
pub mod panel_count;
pub mod predecessor;
pub mod record;
pub mod rules;
pub mod seats;
pub mod shared_file;
pub mod slots;
#[cfg(test)]
mod tests;
pub mod token;
mod tracked;
pub mod version;

use std::ops::Add;
use std::time::Duration;

pub use self::node::{ClusterNode, NodeInput};
pub use self::outbox::NodeEffect;
use self::record::Revision;

/// The time since the boot of this machine, including suspend (`CLOCK_BOOTTIME`).
///
/// It is compared with times of the same machine and boot only, so it cannot be written into a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct BootTime(pub Duration);

impl BootTime {
    /// Returns the time that passed since `earlier`; zero if it is later.
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for BootTime {
    type Output = Self;

    fn add(self, time: Duration) -> Self {
        Self(self.0 + time)
    }
}

/// The number of a write of one machine, by which its outcome is recognised. Never reused by a machine.
pub type WriteNumber = u64;

/// The outcome of a compare-and-swap. Each write gets exactly one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SwapOutcome {
    /// The record is written, and has this revision.
    Applied(Revision),
    /// The record has another revision. Nothing was written now, but an earlier attempt may have been.
    Conflict,
    /// No answer came in time. The write may have been applied, may be applied later, or never.
    Unknown,
}
