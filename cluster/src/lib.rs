//! The engine that the nodes of a cluster share: a key-value store with compare-and-swap, a log, messages and objects.
//!
//! Read [`engine`] first: the trait [`Engine`], and which of its answers may be stale.

pub mod codec;
pub mod commit_log;
pub mod end_notice;
pub mod engine;
#[cfg(test)]
mod golden_tests;
pub mod nats;
#[cfg(feature = "testing")]
pub mod testing;

pub use domain::cluster::SwapOutcome;
pub use domain::cluster::record::Revision;

pub use self::codec::{NodeInfo, NodeLoad, NodeRole, node_id, written_version};
pub use self::commit_log::EngineLog;
pub use self::end_notice::EndNotice;
pub use self::engine::{
    Engine, EngineError, EngineState, Key, LogEntry, LogEvent, LogState, Message, ObjectInfo, Record,
    Session, WatchEvent,
};
