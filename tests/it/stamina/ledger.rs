//! The book of bytes: what players got, beside what the gateway says it sent them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use actors::Events;
use domain::event::EventBody;
use parking_lot::Mutex;
use tokio::sync::broadcast::error::RecvError;

/// Bytes of a packet that may have come in part.
const PART: u64 = 187;

/// What one player got, filler apart.
#[derive(Debug, Clone, Copy)]
pub struct Got {
    pub bytes: u64,
    /// Its answer came to its end by itself: nothing was on the way.
    pub is_whole: bool,
}

/// What the gateway said when the player was gone.
#[derive(Debug, Clone)]
struct Sent {
    bytes: u64,
    reason: String,
}

/// What was counted in a round.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tally {
    pub served: u64,
    pub refused: u64,
    pub turned_away: u64,
    pub seams: u64,
    pub calls: u64,
    pub unanswered: u64,
    pub kills: u64,
    pub imports: u64,
    pub frames: u64,
    /// How often what the status says of a player was compared with what it has.
    pub looks: u64,
    /// Players whose bytes were compared with what was said of them, and those of them that had all.
    pub compared: u64,
    pub exact: u64,
}

/// Players by their own, single name.
#[derive(Debug, Default)]
pub struct Ledger {
    got: Mutex<BTreeMap<String, Got>>,
    sent: Mutex<BTreeMap<String, Sent>>,
    tally: Mutex<Tally>,
    missed_events: AtomicU64,
}

impl Ledger {
    /// Listens to what the gateway says of clients that have gone, until it is gone itself.
    pub fn follow(events: &Events) -> Arc<Ledger> {
        let ledger = Arc::new(Ledger::default());
        let (mut line, book) = (events.subscribe(), Arc::clone(&ledger));
        tokio::spawn(async move {
            loop {
                match line.recv().await {
                    Ok(event) => book.happened(&event.body),
                    Err(RecvError::Lagged(n)) => drop(book.missed_events.fetch_add(n, Relaxed)),
                    Err(RecvError::Closed) => return,
                }
            }
        });
        ledger
    }

    fn happened(&self, body: &EventBody) {
        if let EventBody::ClientDisconnect { client, reason, bytes_sent, .. } = body {
            let sent = Sent { bytes: *bytes_sent, reason: reason.clone() };
            self.sent.lock().insert(client.user_agent.clone(), sent);
        }
    }

    pub fn note(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock());
    }

    pub fn called(&self, status: u16) {
        self.note(|it| {
            it.calls += 1;
            it.unanswered += u64::from(status >= 500);
        });
    }

    /// A player has gone with so much.
    pub fn left(&self, name: String, got: Got) {
        self.got.lock().insert(name, got);
    }

    /// Compares both columns and begins a new page. Who got its stream to the end got every byte that was sent; who
    /// went away before got no more than that. Events of an actor that was ended may be lost: those are not compared.
    ///
    /// A client that the gateway ended is read at that moment, while the last chunk may be on its way to the socket.
    pub fn close(&self) -> Tally {
        let got = std::mem::take(&mut *self.got.lock());
        let sent = std::mem::take(&mut *self.sent.lock());
        let mut tally = std::mem::take(&mut *self.tally.lock());
        for (name, got) in &got {
            let Some(sent) = sent.get(name) else { continue };
            if sent.reason != "its stream was closed" {
                continue;
            }
            tally.compared += 1;
            assert!(got.bytes <= sent.bytes + PART, "{name} got more than was sent: {got:?}, {sent:?}");
            if got.is_whole {
                tally.exact += 1;
                assert_eq!(got.bytes, sent.bytes, "{name} did not get all that was sent: {sent:?}");
            }
        }
        tally
    }
}
