//! Decides what is fetched next for one media playlist. Time is the time since any fixed moment.
//!
//! ```text
//!            ┌────────── a reload is due ──────────┐
//!            ▼                                     │
//!   Load ──▶ list ──▶ Key ──▶ Segment ──▶ Segment ─┴▶ … ──▶ Ended (end of the list)
//!            │ ▲                  │ fails: again, then the next one
//!   nothing  ▼ │ due              ▼
//!   new:    Wait ──── for three target durations ────▶ Silent
//! ```
//!
//! Segments are known by their number in the playlist. Providers restart that number, never declare it, or answer an older
//! version of the list; then the names of the files show how two versions belong together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::hls::names::SegmentName;
use crate::hls::playlist::{KeyMethod, MediaPlaylist, MediaSegment, SegmentRange};

/// Number of segments before the end of the list at which a live stream starts.
const START_BEHIND: usize = 3;
/// The same for a list whose numbers have restarted; nothing that it lists was played yet.
const RESTART_BEHIND: usize = 6;
/// A list without news for this many target durations is silent.
const SILENT_TARGETS: u32 = 3;
/// Shortest pause between two requests for the list.
const RELOAD_MIN: Duration = Duration::from_millis(500);
/// Time after which the first request for the list is repeated.
const FIRST_RELOAD: Duration = Duration::from_secs(1);
/// Time without a list after which its provider is silent.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(10);
/// Pause before a segment that failed is requested again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);
/// Maximum number of requests for one segment; before anything has played a failure is reported sooner.
const TRIES_MAX: u32 = 4;
const TRIES_AT_START_MAX: u32 = 2;
/// A variant has failed after this many segments in a row.
const FAILED_SEGMENTS_MAX: u32 = 3;
/// A number that is this much greater than expected belongs to another numbering.
const JUMP_MIN: u64 = 1_000;
/// Added to the numbers that a provider declares, so that segments before its first one have numbers as well.
const NUMBER_BASE: u64 = 1 << 32;
/// Number of segments that are remembered, to recognise an older version of the list.
const PASSED_MAX: usize = 64;
/// Number of keys that are remembered.
const KEYS_MAX: usize = 4;

/// The next step of a reader.
#[derive(Clone, PartialEq, Eq)]
pub enum HlsStep {
    /// Request the playlist.
    Load,
    /// Ask again at this time.
    Wait(Duration),
    /// Request the key at this address, and report it with [`HlsMachine::key_loaded`].
    Key(String),
    /// Request this segment.
    Segment(SegmentJob),
    /// Everything was played.
    Ended,
    /// The provider offers nothing new.
    Silent,
}

/// A segment to request.
#[derive(Clone, PartialEq, Eq)]
pub struct SegmentJob {
    /// Its number.
    pub number: u64,
    /// Its address, as written in the playlist.
    pub address: Arc<str>,
    /// The part of the file.
    pub range: Option<SegmentRange>,
    /// Key and initialization vector, if it is encrypted.
    pub cipher: Option<([u8; 16], [u8; 16])>,
    /// How it relates to the segment before it; `None` if it continues that.
    pub breaks: Option<StreamBreak>,
}

/// The relation of data to the data before it, if it does not continue that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamBreak {
    /// Other streams or times follow directly.
    NewTimeline,
    /// Something in between is missing.
    Gap,
}

/// Follows one media playlist.
pub struct HlsMachine {
    list: Option<Listed>,
    /// Number of the next segment.
    next: u64,
    /// Added to the numbers that the provider declares.
    offset: u64,
    /// Numbers and names of the last segments that were played or skipped.
    passed: VecDeque<(u64, SegmentName)>,
    /// End of an older version of the list that was answered last.
    older_end: Option<u64>,
    /// The time of the next request for the list.
    next_load: Duration,
    /// The time of the last news.
    changed_at: Duration,
    /// The segment that failed.
    retry: Option<Retry>,
    breaks: Option<StreamBreak>,
    keys: VecDeque<(String, [u8; 16])>,
    has_played: bool,
    n_failed_in_row: u32,
    n_skipped: u64,
}

/// A version of the list with our numbers.
struct Listed {
    list: MediaPlaylist,
    names: Vec<SegmentName>,
}

struct Retry {
    since: Duration,
    at: Duration,
    n_tries: u32,
}

/// The relation of a new version of the list to the one before it.
#[derive(Debug, PartialEq, Eq)]
enum Relation {
    /// Both have the same numbers.
    Follows,
    /// Its first segment has this number.
    Renumbered(u64),
    /// Another server may have answered, which is behind.
    Older,
    /// Nothing in it was listed before.
    Restarted,
}

impl HlsMachine {
    /// Creates the state for a playlist that is to be requested at `now`.
    pub fn new(now: Duration) -> Self {
        Self {
            list: None,
            next: 0,
            offset: NUMBER_BASE,
            passed: VecDeque::new(),
            older_end: None,
            next_load: now,
            changed_at: now,
            retry: None,
            breaks: None,
            keys: VecDeque::new(),
            has_played: false,
            n_failed_in_row: 0,
            n_skipped: 0,
        }
    }

    /// Returns what to do at `now`.
    pub fn next(&mut self, now: Duration) -> HlsStep {
        self.pass_gaps();
        let is_load_due = now >= self.next_load;
        let Some(Listed { list, .. }) = &self.list else {
            let end = self.changed_at + FIRST_LIST_TIMEOUT;
            return match is_load_due {
                _ if now >= end => HlsStep::Silent,
                true => HlsStep::Load,
                false => HlsStep::Wait(self.next_load.min(end)),
            };
        };
        let segment = list.segment(self.next);
        let (Some(segment), true) = (segment, list.is_ended || !is_load_due) else {
            let silent_at = self.changed_at + list.target * SILENT_TARGETS;
            return match is_load_due {
                _ if segment.is_none() && list.is_ended => HlsStep::Ended,
                _ if segment.is_none() && now >= silent_at => HlsStep::Silent,
                true => HlsStep::Load,
                false => HlsStep::Wait(self.next_load.min(silent_at)),
            };
        };
        if let Some(at) = self.retry.as_ref().map(|it| it.at).filter(|it| *it > now) {
            return HlsStep::Wait(if list.is_ended { at } else { at.min(self.next_load) });
        }
        let cipher = match segment.key.as_deref() {
            None | Some(KeyMethod::Other(_)) => None,
            Some(KeyMethod::Aes128 { address, iv }) => {
                let Some((_, key)) = self.keys.iter().find(|it| it.0 == *address) else {
                    return HlsStep::Key(address.clone());
                };
                let declared = u128::from(self.next.wrapping_sub(self.offset));
                Some((*key, iv.unwrap_or_else(|| declared.to_be_bytes())))
            }
        };
        HlsStep::Segment(SegmentJob {
            number: self.next,
            address: segment.address.clone(),
            range: segment.range,
            cipher,
            breaks: self.breaks_before(segment),
        })
    }

    /// Records a version of the playlist, whose request began at `began`.
    pub fn loaded(&mut self, list: MediaPlaylist, began: Duration, now: Duration) {
        let reload_pause = list.reload_pause();
        let has_news = self.adopt(list);
        if has_news {
            self.changed_at = now;
        }
        let pause = if has_news { reload_pause } else { reload_pause / 2 };
        self.next_load = (began + pause).max(now + RELOAD_MIN);
    }

    /// Records that the playlist could not be loaded.
    pub fn load_failed(&mut self, now: Duration) {
        let pause = self.list.as_ref().map_or(FIRST_RELOAD, |it| it.list.reload_pause() / 2);
        self.next_load = now + pause.max(RELOAD_MIN);
    }

    /// Records a key.
    pub fn key_loaded(&mut self, address: String, key: [u8; 16]) {
        if self.keys.len() >= KEYS_MAX {
            self.keys.pop_front();
        }
        self.keys.push_back((address, key));
    }

    /// Records that the segment was read to its end.
    pub fn segment_done(&mut self) {
        self.has_played = true;
        self.n_failed_in_row = 0;
        self.pass(None);
    }

    /// Records that the segment, or its key, could not be read. Returns whether the whole variant has failed.
    pub fn segment_failed(&mut self, now: Duration) -> bool {
        let Some(Listed { list, .. }) = &self.list else { return true };
        let retry = self.retry.get_or_insert(Retry { since: now, at: now, n_tries: 0 });
        retry.n_tries += 1;
        retry.at = now + RETRY_PAUSE;
        let tries_max = if self.has_played { TRIES_MAX } else { TRIES_AT_START_MAX };
        if retry.n_tries < tries_max && now - retry.since < list.target {
            return false;
        }
        self.skip();
        self.n_failed_in_row += 1;
        let is_last = self.list.as_ref().is_none_or(|it| it.list.segment(self.next).is_none());
        self.n_failed_in_row >= FAILED_SEGMENTS_MAX || is_last && !self.has_played
    }

    /// Records that a part of the segment was read, and that the rest is not available.
    pub fn segment_cut(&mut self) {
        self.has_played = true;
        self.pass(Some(StreamBreak::Gap));
    }

    /// Continues with another variant at the same number.
    pub fn change_variant(&mut self, now: Duration) {
        let before = std::mem::replace(self, Self::new(now));
        self.next = before.next;
        self.has_played = before.has_played;
        self.n_skipped = before.n_skipped;
        self.breaks = before.breaks.or(Some(StreamBreak::NewTimeline)).filter(|_| before.has_played);
    }

    /// Returns the number of segments that were skipped.
    pub fn n_skipped(&self) -> u64 {
        self.n_skipped
    }

    /// Returns the maximum duration of a segment, once it is known.
    pub fn target(&self) -> Option<Duration> {
        self.list.as_ref().map(|it| it.list.target)
    }

    /// Returns the address of the newest segment that is listed and whether it needs another program, with the reason.
    pub fn needs_program(&self) -> Option<String> {
        self.list.as_ref()?.list.needs_program()
    }

    /// Skips segments that the provider declares to be missing.
    fn pass_gaps(&mut self) {
        while let Some(listed) = &self.list
            && listed.list.segment(self.next).is_some_and(|it| it.is_gap)
        {
            self.skip();
        }
    }

    fn breaks_before(&self, segment: &MediaSegment) -> Option<StreamBreak> {
        let declared = segment.is_discontinuity.then_some(StreamBreak::NewTimeline);
        self.breaks.or(declared).filter(|_| self.has_played)
    }

    /// Skips the next segment.
    fn skip(&mut self) {
        self.n_skipped += 1;
        self.pass(Some(StreamBreak::Gap));
    }

    fn pass(&mut self, breaks: Option<StreamBreak>) {
        if let Some(Listed { list, .. }) = &self.list
            && let Some(segment) = list.segment(self.next)
        {
            if self.passed.len() >= PASSED_MAX {
                self.passed.pop_front();
            }
            self.passed.push_back((self.next, SegmentName::from_segment(segment)));
        }
        self.next = self.next.saturating_add(1);
        self.retry = None;
        self.breaks = breaks;
    }

    /// Takes over a version of the list. Returns whether it contains anything new.
    fn adopt(&mut self, mut list: MediaPlaylist) -> bool {
        let names = SegmentName::all_of(&list);
        let declared = list.sequence;
        list.sequence = declared.wrapping_add(self.offset);
        let Some(old) = &mut self.list else {
            if list.segments.is_empty() && !list.is_ended {
                return false;
            }
            self.next = match self.next {
                // After a change of the variant.
                next if self.has_played && (list.sequence..=list.end()).contains(&next) => next,
                _ if list.is_ended => list.sequence,
                _ => behind(&list, START_BEHIND),
            };
            self.list = Some(Listed { list, names });
            return true;
        };
        if list.segments.is_empty() {
            let has_ended = list.is_ended && !old.list.is_ended;
            old.list.is_ended |= list.is_ended;
            return has_ended;
        }
        let new = Listed { list, names };
        match relation(old, &new, &self.passed) {
            Relation::Older if self.is_restart(&new) => self.restart(new, declared),
            Relation::Older => false,
            Relation::Restarted => self.restart(new, declared),
            Relation::Follows => self.continue_with(new),
            Relation::Renumbered(sequence) => {
                self.offset = sequence.wrapping_sub(declared);
                let list = MediaPlaylist { sequence, ..new.list };
                self.continue_with(Listed { list, ..new })
            }
        }
    }

    /// Returns whether a list that seems to be older has grown, so that it is a new one.
    fn is_restart(&mut self, new: &Listed) -> bool {
        let is_behind = self.list.as_ref().is_some_and(|old| new.list.end() <= old.list.sequence);
        let before = self.older_end.replace(new.list.end());
        is_behind && before.is_some_and(|it| new.list.end() > it)
    }

    fn restart(&mut self, mut new: Listed, declared: u64) -> bool {
        self.offset = NUMBER_BASE;
        new.list.sequence = declared + NUMBER_BASE;
        self.next = behind(&new.list, RESTART_BEHIND);
        self.passed.clear();
        (self.older_end, self.retry) = (None, None);
        self.breaks = self.breaks.or(Some(StreamBreak::NewTimeline));
        self.list = Some(new);
        true
    }

    fn continue_with(&mut self, new: Listed) -> bool {
        self.older_end = None;
        let before = self.list.as_ref().map_or((0, false), |it| (it.list.end(), it.list.is_ended));
        let has_news = new.list.end() > before.0 || new.list.is_ended && !before.1;
        if self.next < new.list.sequence {
            // The provider does not list them any more.
            self.n_skipped += new.list.sequence - self.next;
            self.next = new.list.sequence;
            self.retry = None;
            self.breaks = Some(StreamBreak::Gap);
        }
        self.list = Some(new);
        has_news
    }
}

/// Returns the number of the segment this far from the end, or of the first one.
fn behind(list: &MediaPlaylist, n_segments: usize) -> u64 {
    list.sequence.saturating_add(list.segments.len().saturating_sub(n_segments) as u64)
}

/// Returns how a new version of the list relates to the one before it, by numbers and by names.
fn relation(old: &Listed, new: &Listed, passed: &VecDeque<(u64, SegmentName)>) -> Relation {
    let (old_start, old_end) = (old.list.sequence, old.list.end());
    let (new_start, new_end) = (new.list.sequence, new.list.end());
    let name = |it: &Listed, number: u64| it.names.get((number - it.list.sequence) as usize).copied();
    let mut both = old_start.max(new_start)..old_end.min(new_end);
    if both.any(|it| name(old, it) == name(new, it)) {
        return if new_end < old_end { Relation::Older } else { Relation::Follows };
    }
    let is_near = new_start.checked_sub(old_end).is_some_and(|it| it < JUMP_MIN);
    if is_near && new.list.has_sequence {
        return Relation::Follows;
    }
    if let Some(sequence) = aligned(old, new) {
        return Relation::Renumbered(sequence);
    }
    let is_overlapping = old_start.max(new_start) < old_end.min(new_end);
    if is_overlapping {
        // The names may contain tokens that always change.
        let can_follow = new.list.has_sequence && new_start >= old_start && new_end >= old_end;
        return if can_follow { Relation::Follows } else { Relation::Restarted };
    }
    if new_start >= old_end {
        return if is_near { Relation::Follows } else { Relation::Restarted };
    }
    let last = new_end.checked_sub(1).zip(new.names.last().copied());
    let is_known = last.is_some_and(|it| passed.contains(&it));
    if is_known { Relation::Older } else { Relation::Restarted }
}

/// Returns the number of the first segment of the new list, if its names continue those of the old one.
fn aligned(old: &Listed, new: &Listed) -> Option<u64> {
    let last = old.names.last()?;
    let at = new.names.iter().rposition(|it| it == last)?;
    if new.names.iter().filter(|it| *it == last).count() > 1 {
        return None;
    }
    let before = new.names[..=at].iter().rev();
    let is_same = before.zip(old.names.iter().rev()).all(|(new, old)| new == old);
    old.list.end().checked_sub(1 + at as u64).filter(|_| is_same)
}
