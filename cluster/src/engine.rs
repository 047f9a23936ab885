//! The trait of the store that the nodes of a cluster share.
//!
//! # Sessions
//! A session is one connection to the engine, over which the identity of its data was checked. All requests name the
//! session in which the caller decided to send them, and are not sent in any other. So a caller that learns of a new
//! session from its events has processed that event before any of its requests goes over the new connection.
//! [`Session::n_restarts`] tells whether the engine may have lost or replaced records between two sessions.
//!
//! # Which answers can be trusted
//!
//! | Operation | Answer |
//! |---|---|
//! | `swap`, `append`: `Applied` | certain: written to disk on a majority of servers |
//! | `swap`, `append`: `Conflict` | certain that nothing was written by this request |
//! | `swap`, `append`: `Unknown` | nothing is certain; the write may be applied seconds later |
//! | `read`, `read_log`, `log_state` | may be stale |
//! | `watch`, `follow` | in order and complete within a session, but late by any time |
//! | `publish` | at most once; no answer |
//! | objects | may be stale; complete, or an error |
//!
//! A read is stale if a server answers that has lost its leadership. So a decision needs a successful swap or append,
//! never a read.

use std::fmt;

use bytes::Bytes;
use domain::cluster::SwapOutcome;
use domain::cluster::record::Revision;
use futures_util::future::BoxFuture;
use tokio::io::AsyncRead;
use tokio::sync::{mpsc, watch};

/// A time without interruption in which this process is connected to the engine, and the engine keeps its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Grows with each session of this process, from 1.
    pub number: u64,
    /// The number of sessions of this process, other than the first, before which the engine had lost records or had
    /// got a new bucket. If it is higher than at the last session that the caller knows, the engine has restarted.
    pub n_restarts: u64,
    /// Longest value, log entry or message that the engine accepts, in bytes.
    pub payload_max: usize,
}

/// The connection to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EngineState {
    Connected(Session),
    /// The engine cannot be used. The reason is for people.
    Disconnected {
        reason: String,
    },
}

impl EngineState {
    /// Returns the present session.
    pub fn session(&self) -> Option<Session> {
        match self {
            Self::Connected(it) => Some(*it),
            Self::Disconnected { .. } => None,
        }
    }
}

/// The key of a record: parts of letters, digits, `-` and `_`, joined by dots, such as `member.7`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(String);

impl Key {
    /// Length of the longest key, in bytes.
    pub const LENGTH_MAX: usize = 128;

    /// Returns a key, or `None` if the text is not a valid key.
    pub fn new(text: impl Into<String>) -> Option<Self> {
        let text = text.into();
        let is_part = |it: &str| {
            !it.is_empty() && it.bytes().all(|it| it.is_ascii_alphanumeric() || matches!(it, b'-' | b'_'))
        };
        (text.len() <= Self::LENGTH_MAX && text.split('.').all(is_part)).then_some(Self(text))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the first parts of this key are those of `prefix`.
    pub fn starts_with(&self, prefix: &Self) -> bool {
        self.0.strip_prefix(&prefix.0).is_some_and(|it| it.is_empty() || it.starts_with('.'))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A record as it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    pub key: Key,
    /// The revision to expect in the next swap. 0: the record never existed.
    pub revision: Revision,
    /// `None`: the record does not exist, or was removed.
    pub value: Option<Bytes>,
}

/// An event of a watched prefix. The events of a session follow its `Session`; those of earlier sessions never do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WatchEvent {
    /// A new session. The newest revision of every record with the prefix follows, then `Complete`.
    Session(Session),
    Record(Record),
    /// All records that existed when the session began were reported.
    Complete,
}

/// An entry of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// From 1, without gaps.
    pub sequence: u64,
    pub payload: Bytes,
}

/// The extent of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogState {
    /// Differs between logs: a log that was removed and created again is another one.
    pub identity: String,
    /// Sequence of the oldest entry that is kept. One more than `last` if none is.
    pub first: u64,
    /// Sequence of the newest entry; 0 if there was never one.
    pub last: u64,
    /// Size of the entries that are kept, in bytes.
    pub bytes: u64,
}

/// An event of the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogEvent {
    /// A new session, and the log at its beginning. The entries from the first wanted one on follow. In a later session
    /// the first wanted one is that after the last reported one.
    ///
    /// If `log.first` is higher than the wanted sequence, entries are missing and a snapshot is needed; then nothing
    /// else follows. If `log.last` is lower than the last reported sequence, or the identity has changed, the log is
    /// not the one that was read before; then nothing else follows either.
    Session {
        session: Session,
        log: LogState,
    },
    Entry(LogEntry),
    /// All entries that existed when the session began were reported.
    Complete,
}

/// A small message between nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub subject: Key,
    pub payload: Bytes,
}

/// An object in the object store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectInfo {
    pub name: String,
    pub bytes: u64,
}

/// A failed request. For people: what failed and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// The request was not sent: its session is over.
    #[error("the connection to the cluster's engine has ended")]
    SessionEnded,
    /// No answer in time. Nothing is known about the request.
    #[error("the cluster's engine did not answer in time")]
    TimedOut,
    /// The engine refused the request, or its answer makes no sense.
    #[error("the cluster's engine refused to {action}: {reason}")]
    Refused { action: &'static str, reason: String },
    /// Longer than [`Session::payload_max`].
    #[error("{bytes} bytes are more than the cluster's engine accepts ({bytes_max})")]
    TooLong { bytes: usize, bytes_max: usize },
}

/// A store that all nodes of a cluster share. See [the module](self) for sessions and staleness.
///
/// Every request ends after a time-out of its own. Dropping its future does not withdraw it.
pub trait Engine: fmt::Debug + Send + Sync {
    /// Returns the state of the connection, and its changes. Intermediate states can be missed: compare
    /// [`Session::n_restarts`].
    fn state(&self) -> watch::Receiver<EngineState>;

    /// Replaces a record if it has the expected revision (0: it never existed). `None` removes the value; the record
    /// then has the revision of its removal.
    ///
    /// `Unknown` also if the session is over, in which case nothing was sent.
    fn swap<'a>(
        &'a self,
        session: u64,
        key: &'a Key,
        expected: Revision,
        value: Option<Bytes>,
    ) -> BoxFuture<'a, SwapOutcome>;

    /// Reads a record. It may be stale, even older than a value that this process has written.
    fn read<'a>(&'a self, session: u64, key: &'a Key) -> BoxFuture<'a, Result<Record, EngineError>>;

    /// Reports the records whose first parts are those of `prefix` (`None`: all), and each of their changes, until the
    /// receiver is dropped. Of several changes in quick succession only the last one may be reported.
    fn watch(&self, prefix: Option<Key>) -> mpsc::Receiver<WatchEvent>;

    /// Appends an entry to the log if the last one has the expected sequence (0: the log is empty). `Applied` contains
    /// the sequence of the new entry.
    ///
    /// After `Conflict`, the log may still end at the expected sequence: another entry was on its way, and was lost.
    fn append(&self, session: u64, expected_last: u64, payload: Bytes) -> BoxFuture<'_, SwapOutcome>;

    /// Reads one entry of the log. `None`: there is none with this sequence, or not yet. May be stale.
    fn read_log(&self, session: u64, sequence: u64) -> BoxFuture<'_, Result<Option<LogEntry>, EngineError>>;

    /// Returns the extent of the log. May be stale.
    fn log_state(&self, session: u64) -> BoxFuture<'_, Result<LogState, EngineError>>;

    /// Reports the entries of the log from a sequence on, until the receiver is dropped.
    fn follow(&self, from: u64) -> mpsc::Receiver<LogEvent>;

    /// Removes the entries of the log before a sequence.
    fn trim_log(&self, session: u64, before: u64) -> BoxFuture<'_, Result<(), EngineError>>;

    /// Sends a message to the present subscribers of its subject, this node included. At most once: a message can be
    /// lost, and `Ok` does not mean that anybody got it.
    fn publish<'a>(
        &'a self,
        session: u64,
        subject: &'a Key,
        payload: Bytes,
    ) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Receives the messages whose subject begins with these parts, in all sessions, until the receiver is dropped.
    /// Messages are dropped while the receiver has [`MESSAGES_MAX`] of them.
    fn subscribe(&self, prefix: Key) -> mpsc::Receiver<Message>;

    /// Writes an object, and replaces an older one with the same name when it is complete.
    fn put_object<'a>(
        &'a self,
        session: u64,
        name: &'a str,
        body: &'a mut (dyn AsyncRead + Send + Unpin),
    ) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Opens an object. `None`: it does not exist. Reading fails if the object is damaged.
    fn object<'a>(
        &'a self,
        session: u64,
        name: &'a str,
    ) -> BoxFuture<'a, Result<Option<Box<dyn AsyncRead + Send + Unpin>>, EngineError>>;

    /// Removes an object, if it exists.
    fn remove_object<'a>(&'a self, session: u64, name: &'a str) -> BoxFuture<'a, Result<(), EngineError>>;

    /// Lists all objects.
    fn objects(&self, session: u64) -> BoxFuture<'_, Result<Vec<ObjectInfo>, EngineError>>;

    /// Lists the ids of uploads that are not complete: those that go on, and those that were cut off.
    fn unfinished_uploads(&self, session: u64) -> BoxFuture<'_, Result<Vec<String>, EngineError>>;

    /// Removes the parts of an upload that was cut off. An upload that goes on is damaged by it.
    fn remove_upload<'a>(&'a self, session: u64, id: &'a str) -> BoxFuture<'a, Result<(), EngineError>>;
}

/// Maximum number of messages that wait for a receiver of [`Engine::subscribe`].
pub const MESSAGES_MAX: usize = 1024;

/// Maximum number of events that wait for a receiver of [`Engine::watch`] or [`Engine::follow`]. If it is reached, the
/// engine waits.
pub const EVENTS_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_parts_without_special_characters() {
        for text in ["member.7", "channel.1b4e28ba-2fa1-11d2-883f-0016d3cca427", "a_b"] {
            assert!(Key::new(text).is_some(), "{text}");
        }
        let long = "a".repeat(Key::LENGTH_MAX + 1);
        for text in ["", ".", "a.", ".a", "a..b", "a b", "a.*", "a.>", "ä", "$KV", &long] {
            assert!(Key::new(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_prefix_consists_of_whole_parts() {
        let key = |text: &str| Key::new(text).unwrap();
        assert!(key("member.7").starts_with(&key("member")));
        assert!(key("member.7").starts_with(&key("member.7")));
        assert!(!key("member.77").starts_with(&key("member.7")));
        assert!(!key("members.7").starts_with(&key("member")));
    }
}
