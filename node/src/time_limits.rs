//! How long nodes wait for each other and for the cluster, and how often they try again.
//!
//! A request to another node begins with a connection ([`CONNECT_TIMEOUT`]); its answer has a limit of its own, because what
//! the other node does for it differs. A node that acknowledges nothing is given up earlier ([`SILENCE_MAX`]).

use std::time::Duration;

// The port of this node.

/// Longest time until a connection of another node is encrypted, and for the head of its request.
pub(super) const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest time for the body of a request.
pub(super) const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause after an accept that failed.
pub(super) const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Time for which a port that is in use is tried again: the process that this one replaces may still have it.
pub(super) const BIND_TIME: Duration = Duration::from_secs(5);
/// Pause between two attempts to bind the port.
pub(super) const BIND_PAUSE: Duration = Duration::from_millis(100);

// The guard of this node.

/// Longest time for telling the other nodes that the process has ended. A service manager waits for the guard before it
/// starts the gateway again, which tells them, too.
pub(super) const TELL_END_TIMEOUT: Duration = Duration::from_secs(5);

// Connections to other nodes.

/// Longest time until a connection is encrypted.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A machine that acknowledges nothing for this long is gone.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(15);
/// Pause between questions whether a silent machine is there.
pub(super) const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(5);

// Longest waits for the answer of another node.

/// Another node that does not answer in this time is not shown.
pub(super) const STATUS_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// For the history of a channel.
pub(super) const TIMELINE_ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
/// For the begin or the end of its drain.
pub(super) const DRAIN_ANSWER_TIMEOUT: Duration = Duration::from_secs(5);
/// For how far back its channels can be watched.
pub(super) const ARCHIVES_ANSWER_TIMEOUT: Duration = Duration::from_secs(10);
/// For the node that writes, to take a report of recorded files.
pub(super) const REPORT_TIMEOUT: Duration = Duration::from_secs(10);
/// Until a node begins to send a file, or has sent a playlist: it may read a whole file for it.
pub(super) const RECORDING_ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// For an order of an admin: a switch takes up to 25 s.
pub(super) const CONTROL_ANSWER_TIMEOUT: Duration = Duration::from_secs(28);
/// For the node that writes, to take events.
pub(super) const EVENTS_ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// For a request of the operator: that of the command is a minute.
pub(super) const OPERATOR_ANSWER_TIMEOUT: Duration = Duration::from_secs(45);
/// Until a node begins to answer a player: it may wait for a free connection of the account, and for the provider.
pub(super) const PLAY_ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// For a node that admits this one: it makes a snapshot first.
pub(super) const JOIN_ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Longest time without a part of the snapshot.
pub(super) const SNAPSHOT_PART_TIMEOUT: Duration = Duration::from_secs(60);
/// For a whole request of a client that the node that writes answers: an upload takes some.
pub(super) const FORWARD_TIMEOUT: Duration = Duration::from_secs(600);

// Other waits.

/// Longest wait for a node that writes.
pub(super) const WRITER_WAIT: Duration = Duration::from_secs(3);
/// Longest wait until this node has a write that was answered.
pub(super) const FOLLOW_TIMEOUT: Duration = Duration::from_secs(10);
/// Longest wait of a request to a provider for another node. A list waits for logos, of which many are requested at once.
pub(super) const FETCH_TURN_WAIT: Duration = Duration::from_secs(5);
/// Longest time for reaching NATS, and for the records of the nodes.
pub(super) const NATS_TIMEOUT: Duration = Duration::from_secs(15);

// How often something is done.

/// Answers of other nodes are used again for this time, so that several who look cost as much as one.
pub(super) const STATUS_FRESH_TIME: Duration = Duration::from_millis(900);
/// A node that did not answer is not asked for this time, so that nobody waits for it again and again.
pub(super) const SILENT_NODE_PAUSE: Duration = Duration::from_secs(10);
/// Time between two requests for how far back channels can be watched.
pub(super) const ARCHIVES_INTERVAL: Duration = Duration::from_secs(30);
/// Pause after such a request that no full node has answered.
pub(super) const ARCHIVES_RETRY_PAUSE: Duration = Duration::from_secs(2);
/// Events, and commits that name files, that come within this time are handled together.
pub(super) const GATHER_TIME: Duration = Duration::from_millis(50);
/// Pauses after events that were not taken: the first one, and the longest.
pub(super) const EVENTS_RETRY_PAUSE: Duration = Duration::from_secs(1);
pub(super) const EVENTS_RETRY_PAUSE_MAX: Duration = Duration::from_secs(30);
/// Pauses after a file that was not fetched: the first one, and the longest.
pub(super) const FILES_RETRY_PAUSE: Duration = Duration::from_secs(1);
pub(super) const FILES_RETRY_PAUSE_MAX: Duration = Duration::from_secs(60);
/// Time between two searches for files that nothing names.
pub(super) const CLEAN_UP_INTERVAL: Duration = Duration::from_secs(600);
/// Time for which a file that nothing names is kept: its record may be on its way.
pub(super) const UNNAMED_TIME: Duration = Duration::from_secs(3600);
/// Pause after an attempt to join again that failed.
pub(super) const REJOIN_RETRY_PAUSE: Duration = Duration::from_secs(10);
