//! Compares the bytes that players received with the bytes that the gateway reports as sent.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use actors::Events;
use domain::event::EventBody;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;

/// Largest part of a packet that may have been received.
const PART: u64 = 187;

/// The bytes that one player received, without filler.
#[derive(Debug, Clone, Copy)]
pub struct Got {
    pub bytes: u64,
    /// The response ended by itself, so nothing was in transit.
    pub is_whole: bool,
}

/// The gateway's report about a client that left.
#[derive(Debug, Clone)]
struct Sent {
    bytes: u64,
    reason: String,
}

/// Counters of one round.
#[derive(Debug, Clone, Copy, Default)]
pub struct RoundCounts {
    pub served: u64,
    pub refused: u64,
    pub turned_away: u64,
    pub seams: u64,
    pub calls: u64,
    pub unanswered: u64,
    pub kills: u64,
    pub imports: u64,
    pub frames: u64,
    /// Number of comparisons of the status page with what a player received.
    pub looks: u64,
    /// Players whose bytes were compared with the report, and how many of them matched exactly.
    pub compared: u64,
    pub exact: u64,
}

/// Received and sent bytes by the unique name of each player.
#[derive(Debug, Default)]
pub struct ByteAudit {
    got: Mutex<BTreeMap<String, Got>>,
    sent: Mutex<BTreeMap<String, Sent>>,
    counted: Mutex<RoundCounts>,
    missed_events: AtomicU64,
}

impl ByteAudit {
    /// Collects the gateway's reports about clients that left, until the gateway stops.
    pub fn follow(events: &Events) -> Arc<ByteAudit> {
        let audit = Arc::new(ByteAudit::default());
        let (mut line, book) = (events.subscribe(), Arc::clone(&audit));
        tokio::spawn(async move {
            loop {
                match line.recv().await {
                    Ok(event) => book.happened(&event.body),
                    Err(RecvError::Lagged(n)) => drop(book.missed_events.fetch_add(n, Relaxed)),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        audit
    }

    fn happened(&self, body: &EventBody) {
        if let EventBody::ClientDisconnect { client, reason, bytes_sent, .. } = body {
            let sent = Sent { bytes: *bytes_sent, reason: reason.clone() };
            self.sent.lock().insert(client.user_agent.clone(), sent);
        }
    }

    pub fn note(&self, change: impl FnOnce(&mut RoundCounts)) {
        change(&mut self.counted.lock());
    }

    pub fn called(&self, status: u16) {
        self.note(|it| {
            it.calls += 1;
            it.unanswered += u64::from(status >= 500);
        });
    }

    /// Records what a player received in total.
    pub fn left(&self, name: String, got: Got) {
        self.got.lock().insert(name, got);
    }

    /// Compares both sides and starts a new round. A player whose stream was closed received every byte that was sent;
    /// a player that left earlier received no more than that. Events of a failed actor may be lost; such players are
    /// not compared.
    ///
    /// The counter of a client that the gateway disconnects is read at that moment, while its last chunk may still be
    /// on its way to the socket.
    pub fn close(&self) -> RoundCounts {
        let got = std::mem::take(&mut *self.got.lock());
        let sent = std::mem::take(&mut *self.sent.lock());
        let mut counted = std::mem::take(&mut *self.counted.lock());
        for (name, got) in &got {
            let Some(sent) = sent.get(name) else { continue };
            if sent.reason != "its stream was closed" {
                continue;
            }
            counted.compared += 1;
            assert!(got.bytes <= sent.bytes + PART, "{name} received more than was sent: {got:?}, {sent:?}");
            if got.is_whole {
                counted.exact += 1;
                assert_eq!(got.bytes, sent.bytes, "{name} did not receive all that was sent: {sent:?}");
            }
        }
        counted
    }
}
