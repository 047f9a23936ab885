//! One record of the engine, as a node reads and swaps it: the newest value that was seen, and at most one write.

use super::member::Member;
use super::outbox::Outbox;
use super::record::{ClusterRecord, RecordKey, Revision};
use super::rules::RETRY_INTERVAL;
use super::{BootTime, SwapOutcome, WriteNumber};

/// A record with the state of its reads and writes. Does not exist: the default value at revision 0.
#[derive(Debug, Clone)]
pub(super) struct Tracked<R> {
    key: RecordKey,
    /// The newest value that was seen. `None`: it has to be read.
    view: Option<(Revision, R)>,
    /// The write without an outcome, and the revision that it expects.
    writing: Option<(WriteNumber, Revision, R)>,
    /// The last write conflicted, so there is a newer value than `view`.
    is_outdated: bool,
    is_reading: bool,
    read_at: BootTime,
    write_at: BootTime,
}

/// The result of a write, for the machine that sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteResult {
    /// The written value is the newest one now.
    Applied,
    /// A newer value will be read.
    Conflict,
    /// It may have been applied, or be applied later.
    Unknown,
    /// The write was settled before, by a newer value.
    Settled,
}

/// A machine that follows one record.
pub(super) trait RecordFollower {
    type Record: Clone + Default;

    fn record(&mut self) -> &mut Tracked<Self::Record>;

    /// Does what follows from the newest record.
    fn advance(&mut self, member: &Member, out: &mut Outbox);

    /// Processes a record that was read or watched. It may be stale.
    fn seen(&mut self, revision: Revision, record: Option<Self::Record>, member: &Member, out: &mut Outbox) {
        self.record().seen(revision, record, out);
        self.advance(member, out);
    }

    fn read_failed(&mut self, out: &Outbox) {
        self.record().read_failed(out);
    }

    /// Processes the outcome of a write of the record.
    fn written(&mut self, number: WriteNumber, outcome: SwapOutcome, member: &Member, out: &mut Outbox) {
        if self.record().written(number, outcome, out) != WriteResult::Settled {
            self.advance(member, out);
        }
    }
}

impl<R: Clone + Default> Tracked<R> {
    pub(super) fn new(key: RecordKey, out: &Outbox) -> Self {
        Self {
            key,
            view: None,
            writing: None,
            is_outdated: false,
            is_reading: false,
            read_at: out.now,
            write_at: out.now,
        }
    }

    pub(super) fn view(&self) -> Option<&(Revision, R)> {
        self.view.as_ref()
    }

    /// Forgets everything, because the engine has restarted and may have lost records.
    pub(super) fn restarted(&mut self, out: &Outbox) {
        *self = Self::new(self.key, out);
    }

    /// Takes a value that was read or watched. Returns false if it is not newer than the present one.
    pub(super) fn seen(&mut self, revision: Revision, value: Option<R>, out: &Outbox) -> bool {
        self.is_reading = false;
        self.read_at = out.now + RETRY_INTERVAL;
        let is_newer = self.view.as_ref().is_none_or(|it| revision > it.0);
        if is_newer {
            self.is_outdated = false;
            // A write that expects an older revision was applied by now, or never will be. So the next one need not wait.
            self.writing.take_if(|it| it.1 < revision);
            self.write_at = self.write_at.min(out.now);
            self.view = Some((revision, value.unwrap_or_default()));
        }
        is_newer
    }

    pub(super) fn read_failed(&mut self, out: &Outbox) {
        self.is_reading = false;
        self.read_at = out.now + RETRY_INTERVAL;
    }

    pub(super) fn written(&mut self, number: WriteNumber, outcome: SwapOutcome, out: &Outbox) -> WriteResult {
        let Some((_, _, value)) = self.writing.take_if(|it| it.0 == number) else {
            return WriteResult::Settled;
        };
        match outcome {
            SwapOutcome::Applied(revision) => {
                self.view = Some((revision, value));
                WriteResult::Applied
            }
            SwapOutcome::Conflict => {
                self.is_outdated = true;
                self.read_at = out.now;
                WriteResult::Conflict
            }
            SwapOutcome::Unknown => {
                self.write_at = out.now + RETRY_INTERVAL;
                WriteResult::Unknown
            }
        }
    }

    /// Reads the record if its newest value is not known. Returns whether it is known.
    pub(super) fn is_known_or_read(&mut self, out: &mut Outbox) -> bool {
        if self.view.is_some() && !self.is_outdated {
            return true;
        }
        if !self.is_reading && out.now >= self.read_at {
            self.is_reading = true;
            out.read(self.key);
        }
        false
    }

    /// Returns whether the view is the newest value, as far as this node knows.
    pub(super) fn is_current(&self) -> bool {
        self.view.is_some() && !self.is_outdated
    }

    /// Returns whether no write is without an outcome.
    pub(super) fn is_settled(&self) -> bool {
        self.writing.is_none()
    }

    /// Returns whether a write can be sent now.
    pub(super) fn can_write(&self, out: &Outbox) -> bool {
        self.view.is_some() && !self.is_outdated && self.writing.is_none() && out.now >= self.write_at
    }

    /// Sends a write that replaces the present value.
    pub(super) fn write(&mut self, value: R, wrap: impl FnOnce(R) -> ClusterRecord, out: &mut Outbox) {
        let Some((expected, _)) = self.view else { return };
        let number = out.write(self.key, Some(expected), wrap(value.clone()));
        self.writing = Some((number, expected, value));
    }

    /// Returns when a read or write has to be tried again.
    pub(super) fn retries(&self) -> impl Iterator<Item = BootTime> {
        let needs_read = (self.view.is_none() || self.is_outdated) && !self.is_reading;
        let read_at = needs_read.then_some(self.read_at);
        read_at.into_iter().chain(self.writing.is_none().then_some(self.write_at))
    }
}
