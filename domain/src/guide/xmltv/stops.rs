//! Programmes without a stop: they end when the next one of their channel starts.

use std::collections::HashMap;

use super::reader::Item;
use crate::guide::programme::{Programme, from_xml, to_xml};

/// A programme without a stop lasts so long if nothing follows within [`GAP_SECONDS_MAX`].
pub(super) const DEFAULT_SECONDS: i64 = 3_600;
/// A programme without a stop lasts until the next one of its channel if that starts within this time.
pub(super) const GAP_SECONDS_MAX: i64 = 6 * 3_600;
/// Longer programmes are cut. Some guides fill a channel without data with one programme of a month.
pub(super) const DURATION_SECONDS_MAX: i64 = 7 * 86_400;
/// Memory for an entry of the table besides its texts.
const ENTRY_BYTES: usize = 96;

/// The programmes that wait for the next one of their channel, one per channel.
#[derive(Default)]
pub(super) struct Waiting {
    by_channel: HashMap<String, WaitingProgramme>,
    /// Those that need not wait any more, the last channel first.
    released: Vec<(String, WaitingProgramme)>,
    n_bytes: usize,
}

/// Kept in its stored form, which takes a fraction of the memory.
struct WaitingProgramme {
    start: i64,
    inner: String,
}

impl Waiting {
    /// Takes a programme that has no stop yet. Returns the one of its channel that waited, as in
    /// [`followed`](Self::followed).
    pub(super) fn add(&mut self, channel: String, programme: &Programme) -> Option<Item> {
        let before = self.followed(&channel, programme.start);
        let mut inner = String::new();
        to_xml(programme, &mut inner);
        self.n_bytes += entry_bytes(&channel, &inner);
        self.by_channel.insert(channel, WaitingProgramme { start: programme.start, inner });
        before
    }

    /// Returns the programme that waited for this start on its channel, with its stop.
    pub(super) fn followed(&mut self, channel: &str, start: i64) -> Option<Item> {
        if self.by_channel.is_empty() {
            return None;
        }
        let (channel, waiting) = self.by_channel.remove_entry(channel)?;
        self.n_bytes -= entry_bytes(&channel, &waiting.inner);
        let is_next = (waiting.start + 1..=waiting.start + GAP_SECONDS_MAX).contains(&start);
        let stop = if is_next { start } else { waiting.start + DEFAULT_SECONDS };
        finished(channel, &waiting, stop)
    }

    /// Ends all waiting: [`pop_released`](Self::pop_released) returns the programmes.
    pub(super) fn release(&mut self) {
        self.n_bytes = 0;
        self.released.extend(self.by_channel.drain());
        self.released.sort_by(|a, b| b.0.cmp(&a.0));
    }

    /// Returns whether programmes were released.
    pub(super) fn has_released(&self) -> bool {
        !self.released.is_empty()
    }

    /// Returns the next programme that need not wait any more, with the default stop, in the order of the channels.
    pub(super) fn pop_released(&mut self) -> Option<Item> {
        let (channel, it) = self.released.pop()?;
        finished(channel, &it, it.start + DEFAULT_SECONDS)
    }

    /// Returns the memory that the programmes take.
    pub(super) fn n_bytes(&self) -> usize {
        self.n_bytes
    }
}

fn entry_bytes(channel: &str, inner: &str) -> usize {
    channel.len() + inner.len() + ENTRY_BYTES
}

fn finished(channel: String, waiting: &WaitingProgramme, stop: i64) -> Option<Item> {
    // The stored form was written here, so it can be read.
    let programme = from_xml(waiting.start, stop, &waiting.inner).ok()?;
    Some(Item::Programme { channel, programme })
}
