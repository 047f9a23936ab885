//! What is happening now.
//!
//! Everything in this room dies with the process: live channels, their clients, who holds which slot, what was
//! measured in the last second. An actor decides; what carries packets (pump, ring, tail) lives in `media` and
//! never passes a mailbox.
//!
//! Reading order: [`system`] (who is started in which order and who restarts with what), [`switchboard`] (the only
//! way to join a live channel), [`seats`] (the users' limit), [`channel`] (failover order, source, ring, clients), [`slots`] (the profile limit),
//! [`client`], [`bandwidth`], [`events`]. Apart from all that: [`importer`], which brings playlists into the store, and
//! [`trials`], which try stream profiles.
//!
//! Asks go down, news goes up: an actor may wait for an answer only from an actor below it, and no live channel
//! waits for anybody. Every ask has a deadline ([`ask`]).

mod ask;
mod bandwidth;
mod channel;
mod channels;
mod client;
mod clock;
mod events;
mod fetch;
mod importer;
mod memory;
mod plans;
mod registry;
mod reload;
mod schedule;
mod seats;
mod slots;
mod switchboard;
mod system;
mod tasks;
#[cfg(test)]
mod testing;
mod timeline;
mod trials;
mod viewer;

pub use self::ask::AskError;
pub use self::channel::{ChannelStatus, ClientStatus, SwitchOutcome, SwitchTo, WatchRefusal, WatchReply};
pub use self::clock::now_ms;
pub use self::events::{Events, NumberedEvent};
pub use self::fetch::{Fetch, FetchBody, FetchError, FetchLimits};
pub use self::importer::{
    ImportError, ImportOptions, ImportSummary, Importer, RefreshPhase, RefreshStart, RefreshStatus, import,
};
pub use self::plans::{Plans, StorePlans, Target};
pub use self::registry::{MetricsSnapshot, StartTimes};
pub use self::reload::{LiveSettings, effective_settings};
pub use self::schedule::{check_cron, check_time_zone};
pub use self::seats::{SeatInfo, SeatRequest};
pub use self::slots::{FullPool, LeaseInfo, LeasePurpose};
pub use self::switchboard::{ChannelOverview, StopOutcome, Switchboard, WatchRequest};
#[cfg(any(test, feature = "testing"))]
pub use self::system::SystemActor;
pub use self::system::{StartError, System, SystemParts};
pub use self::timeline::{ChannelRun, RunEntry, RunEntryKind, RunEntryStream};
pub use self::trials::{TRIALS_MAX, Trial, TrialOutcome, TrialRefusal, TrialRequest, TrialSource, Trials};
pub use self::viewer::Viewer;
