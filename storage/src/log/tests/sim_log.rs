//! A log in memory that fails as it is told.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::log::{Append, CommitLog, LogRead, LogUnreachable};

/// The fate of an append whose answer is lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// Appended.
    Applied,
    /// Lost as well.
    Lost,
    /// It arrives before the next operation that is answered.
    Late,
}

/// Called with the log locked, before and after an entry is appended.
type Hook = Box<dyn FnMut(bool) + Send>;

#[derive(Default)]
struct State {
    entries: BTreeMap<u64, Vec<u8>>,
    /// Entries up to this one were removed.
    removed: u64,
    next_fault: Option<Fault>,
    /// Nothing is answered, and each append has this fault.
    silent: Option<Fault>,
    /// Appends that are on their way, with the expected sequence.
    late: Vec<(u64, Vec<u8>)>,
    /// Appends that succeed before all others conflict once.
    conflict_after: Option<u32>,
    hook: Option<Hook>,
}

impl State {
    fn last(&self) -> u64 {
        self.entries.last_key_value().map_or(self.removed, |it| *it.0)
    }

    fn append(&mut self, expected: u64, entry: &[u8]) -> Append {
        if self.last() != expected {
            return Append::Conflict;
        }
        self.entries.insert(expected + 1, entry.to_vec());
        Append::Appended
    }

    fn deliver(&mut self) {
        for (expected, entry) in std::mem::take(&mut self.late) {
            self.append(expected, &entry);
        }
    }
}

#[derive(Default)]
pub(super) struct SimLog {
    state: Mutex<State>,
}

impl CommitLog for SimLog {
    fn append(&self, expected_last: u64, entry: &[u8]) -> Append {
        assert!(entry.len() <= crate::log::ENTRY_BYTES_MAX);
        let mut state = self.state.lock();
        if let Some(hook) = &mut state.hook {
            hook(false);
        }
        match state.silent.or(state.next_fault.take()) {
            Some(Fault::Applied) => {
                state.append(expected_last, entry);
                Append::Unknown
            }
            Some(Fault::Lost) => Append::Unknown,
            Some(Fault::Late) => {
                state.late.push((expected_last, entry.to_vec()));
                Append::Unknown
            }
            None => {
                state.deliver();
                if let Some(n) = &mut state.conflict_after {
                    if *n == 0 {
                        state.conflict_after = None;
                        return Append::Conflict;
                    }
                    *n -= 1;
                }
                let appended = state.append(expected_last, entry);
                if let Some(hook) = &mut state.hook {
                    hook(true);
                }
                appended
            }
        }
    }

    fn read(&self, sequence: u64) -> Result<LogRead, LogUnreachable> {
        let mut state = self.state.lock();
        if state.silent.is_some() {
            return Err(LogUnreachable("it is silent".to_owned()));
        }
        state.deliver();
        Ok(match state.entries.get(&sequence) {
            Some(entry) => LogRead::Entry(entry.clone()),
            None if sequence <= state.removed => LogRead::Removed,
            None => LogRead::End,
        })
    }

    fn last(&self) -> Result<u64, LogUnreachable> {
        let mut state = self.state.lock();
        if state.silent.is_some() {
            return Err(LogUnreachable("it is silent".to_owned()));
        }
        state.deliver();
        Ok(state.last())
    }
}

impl SimLog {
    pub(super) fn fail_next(&self, fault: Fault) {
        self.state.lock().next_fault = Some(fault);
    }

    pub(super) fn stop_answering(&self, fault: Fault) {
        self.state.lock().silent = Some(fault);
    }

    pub(super) fn answer_again(&self) {
        self.state.lock().silent = None;
    }

    pub(super) fn conflict_after(&self, n: u32) {
        self.state.lock().conflict_after = Some(n);
    }

    /// Calls a function before each append, and with `true` after it. `None` for none.
    pub(super) fn hook(&self, hook: Option<Hook>) {
        self.state.lock().hook = hook;
    }

    pub(super) fn len(&self) -> usize {
        self.state.lock().entries.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.state.lock().entries.values().map(Vec::len).sum()
    }

    pub(super) fn entries(&self) -> Vec<Vec<u8>> {
        self.state.lock().entries.values().cloned().collect()
    }

    pub(super) fn last_sequence(&self) -> u64 {
        self.state.lock().last()
    }

    pub(super) fn change(&self, sequence: u64, change: impl FnOnce(&mut Vec<u8>)) {
        change(self.state.lock().entries.get_mut(&sequence).unwrap());
    }

    pub(super) fn cut_after(&self, sequence: u64) {
        self.state.lock().entries.split_off(&(sequence + 1));
    }

    pub(super) fn compact_before(&self, sequence: u64) {
        let mut state = self.state.lock();
        state.entries = state.entries.split_off(&sequence);
        state.removed = sequence - 1;
    }

    pub(super) fn hide_last(&self) -> (u64, Vec<u8>) {
        self.state.lock().entries.pop_last().unwrap()
    }

    pub(super) fn show(&self, (sequence, entry): (u64, Vec<u8>)) {
        self.state.lock().entries.insert(sequence, entry);
    }
}
