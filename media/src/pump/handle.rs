//! How the channel tells the pump what to follow, and what it may look at meanwhile.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::pump::clock::{Clock, ClockReading};
use crate::source::Source;
use crate::ts::tables::Tables;

/// Tells a pump what to follow. When the last one is dropped the pump ends.
#[derive(Clone)]
pub struct PumpHandle {
    shared: Arc<Shared>,
    /// Last of all: its `Drop` is how the pump hears that nobody is left.
    _alive: Arc<Alive>,
}

impl PumpHandle {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { _alive: Arc::new(Alive(shared.clone())), shared }
    }

    /// Follow this source from now on, and let go of the one before. Never waits.
    ///
    /// Of sources given faster than the pump takes them only the last is followed; the others are closed
    /// without news. A source given to a pump that has ended is closed.
    pub fn follow(&self, attempt: u64, source: Source) {
        self.shared.tell(Wanted::Follow(attempt, Box::new(source)));
    }

    /// Let go of the source and follow nothing. Never waits.
    pub fn release(&self) {
        self.shared.tell(Wanted::Release);
    }

    /// How the programme clock of the source that is followed holds against the wall clock; `None` before
    /// its first clock reference.
    pub fn clock(&self) -> Option<ClockReading> {
        self.shared.clock.lock().as_ref().and_then(|it| it.reading(Instant::now()))
    }

    /// The tables of the source that is followed, as it sent them: what codecs it carries.
    pub fn tables(&self) -> Option<Arc<Tables>> {
        self.shared.tables.lock().clone()
    }
}

struct Alive(Arc<Shared>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.mailbox.lock().has_no_handle = true;
        self.0.bell.notify_one();
    }
}

/// What a pump is to do.
pub(super) enum Wanted {
    Follow(u64, Box<Source>),
    Release,
}

/// Between the handles and the pump.
#[derive(Default)]
pub(super) struct Shared {
    mailbox: Mutex<Mailbox>,
    bell: Notify,
    clock: Mutex<Option<Clock>>,
    tables: Mutex<Option<Arc<Tables>>>,
}

/// A mailbox for one letter: the newest says all, because each says what to follow from now on.
#[derive(Default)]
struct Mailbox {
    wanted: Option<Wanted>,
    has_no_handle: bool,
    has_no_pump: bool,
}

impl Shared {
    fn tell(&self, wanted: Wanted) {
        // What is not wanted any more is dropped below, outside the lock: closing a source calls others.
        let unwanted = {
            let mut mailbox = self.mailbox.lock();
            if mailbox.has_no_pump { Some(wanted) } else { mailbox.wanted.replace(wanted) }
        };
        drop(unwanted);
        self.bell.notify_one();
    }
}

/// The pump's side. Its `Drop` makes sure that no source is left in the mailbox of a dead pump.
pub(super) struct PumpEnd(Arc<Shared>);

impl PumpEnd {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self(shared)
    }

    /// What the channel wants next; `None` when nobody is left to want something.
    pub(super) async fn told(&self) -> Option<Wanted> {
        loop {
            {
                let mut mailbox = self.0.mailbox.lock();
                // The end first: what lies in the mailbox then is dropped with the pump.
                if mailbox.has_no_handle {
                    return None;
                }
                if let Some(wanted) = mailbox.wanted.take() {
                    return Some(wanted);
                }
            }
            self.0.bell.notified().await;
        }
    }

    pub(super) fn begin_clock(&self, attempt: u64, window: Duration) {
        *self.0.clock.lock() = Some(Clock::new(attempt, window));
    }

    pub(super) fn end_clock(&self) {
        *self.0.clock.lock() = None;
        *self.0.tables.lock() = None;
    }

    pub(super) fn clock(&self, pcr: u64, is_break: bool, now: Instant) {
        if let Some(clock) = self.0.clock.lock().as_mut() {
            clock.pcr(pcr, is_break, now);
        }
    }

    /// The source is not read until then.
    pub(super) fn held(&self, until: Instant) {
        if let Some(clock) = self.0.clock.lock().as_mut() {
            clock.held(until);
        }
    }

    pub(super) fn tables(&self, tables: Option<&Tables>) {
        *self.0.tables.lock() = tables.map(|it| Arc::new(it.clone()));
    }
}

impl Drop for PumpEnd {
    fn drop(&mut self) {
        let unwanted = {
            let mut mailbox = self.0.mailbox.lock();
            mailbox.has_no_pump = true;
            mailbox.wanted.take()
        };
        drop(unwanted);
        self.end_clock();
    }
}
