//! The window of segments: what the segmenter writes and all viewers read.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::body::SegmentBody;
use super::description::{LeftOutTrack, SegmentDescription, SegmentTrack};
use super::fragments::FragmentReader;
use super::playlist::{MediaPlaylist, PlaylistRequest, render};
use super::settings::{SegmentContainer, SegmentSettings};
use crate::ring::EndReason;
use crate::ts::clock::STAMP_HZ;
use crate::ts::picture::PictureSize;

/// Number of initialisation segments that are stored: as many as segments can refer to.
const INITS_MAX: usize = 32;
/// Segments that stay in the window whatever their size.
const SEGMENTS_MIN: usize = 3;
/// A request for a segment further ahead is refused (RFC 8216bis, 6.2.5.2).
const SEGMENTS_AHEAD_MAX: u64 = 2;
/// The longest wait for a segment, in target durations.
const WAIT_TARGETS: u32 = 3;
/// The longest wait before the target duration is known.
const FIRST_WAIT: Duration = Duration::from_secs(30);
/// The time of a segment in the playlist follows the arrival of its bytes by at most this much per segment.
const CLOCK_STEP_MAX: Duration = Duration::from_millis(5);

/// Why a window has no answer. `Display` completes the sentence "failed to …".
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WindowError {
    /// No segment is complete yet; see [`SegmentWindow::ready`].
    NotReady,
    /// The request is for a segment or part that is not the next one.
    TooFarAhead,
    /// The segment or part of the request did not come in time.
    Timeout,
    /// The channel or its segmenter ended.
    Ended(EndReason),
}

impl fmt::Display for WindowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotReady => write!(f, "find a segment: none is complete yet"),
            Self::TooFarAhead => write!(f, "wait for a segment that is too far ahead"),
            Self::Timeout => write!(f, "get the next segment in time"),
            Self::Ended(reason) => write!(f, "get a segment: {reason}"),
        }
    }
}

impl std::error::Error for WindowError {}

/// The segments of a channel in one container. All viewers share it.
pub struct SegmentWindow {
    container: SegmentContainer,
    settings: SegmentSettings,
    /// A moment of the monotonic clock, and the same one of the wall clock.
    clock: (Instant, SystemTime),
    state: Mutex<WindowState>,
    /// Counts the changes, to wake those that wait.
    changes: watch::Sender<u64>,
}

/// The contents of a window.
#[derive(Debug)]
pub(super) struct WindowState {
    /// Complete segments, oldest first; the newest ones are in the playlist.
    pub(super) segments: VecDeque<Segment>,
    /// The segment that is being made.
    pub(super) open: Option<OpenSegment>,
    /// The number of the next segment to be started.
    next: u64,
    pub(super) target_duration: Option<u64>,
    pub(super) part_target: Option<Duration>,
    inits: VecDeque<(u32, Bytes)>,
    n_inits: u32,
    n_discontinuities: u64,
    next_date: Option<SystemTime>,
    /// Whether each segment so far begins with a random-access point.
    pub(super) is_independent: bool,
    bytes: usize,
    pub(super) end: Option<EndReason>,
    tracks: Vec<SegmentTrack>,
    left_out: Vec<LeftOutTrack>,
    picture: Option<PictureSize>,
    frame_rate: Option<f64>,
    newest_media: Option<SystemTime>,
    /// Whether a picture came that no segment contains, because no key frame came before it.
    has_left_out: bool,
}

/// A complete segment.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) head: SegmentHead,
    /// Ticks of 90 kHz.
    pub(super) length: u64,
    pub(super) body: SegmentBody,
    pub(super) parts: Vec<WindowPart>,
}

/// The segment that is being made. One without parts cannot be read yet.
#[derive(Debug)]
pub(super) struct OpenSegment {
    pub(super) head: SegmentHead,
    pub(super) parts: Vec<WindowPart>,
}

/// The properties of a segment that are known when it starts.
#[derive(Clone, Copy, Debug)]
pub(super) struct SegmentHead {
    pub(super) number: u64,
    pub(super) is_discontinuity: bool,
    /// Discontinuities up to the beginning of the segment.
    pub(super) n_discontinuities: u64,
    pub(super) date: SystemTime,
    pub(super) init: u32,
}

/// A part of a segment.
#[derive(Clone, Debug)]
pub(super) struct WindowPart {
    pub(super) bytes: Bytes,
    /// Ticks of 90 kHz.
    pub(super) length: u64,
    pub(super) is_independent: bool,
}

/// The facts that a segmenter knows about the stream when a segment starts.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct StreamFacts {
    pub(super) tracks: Vec<SegmentTrack>,
    pub(super) left_out: Vec<LeftOutTrack>,
    pub(super) picture: Option<PictureSize>,
}

impl SegmentWindow {
    /// Creates an empty window; `now` is the time of the wall clock.
    pub fn new(container: SegmentContainer, settings: SegmentSettings, now: SystemTime) -> Self {
        let settings = settings.valid();
        let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let state = WindowState {
            segments: VecDeque::new(),
            open: None,
            next: seconds.max(settings.first_number_min),
            target_duration: None,
            part_target: None,
            inits: VecDeque::new(),
            n_inits: 0,
            n_discontinuities: 0,
            next_date: None,
            is_independent: true,
            bytes: 0,
            end: None,
            tracks: Vec::new(),
            left_out: Vec::new(),
            picture: None,
            frame_rate: None,
            newest_media: None,
            has_left_out: false,
        };
        let (changes, _) = watch::channel(0);
        Self { container, settings, clock: (Instant::now(), now), state: Mutex::new(state), changes }
    }

    /// Returns the container.
    pub fn container(&self) -> SegmentContainer {
        self.container
    }

    /// Returns the settings.
    pub fn settings(&self) -> &SegmentSettings {
        &self.settings
    }

    /// Waits until a playlist can be made: until the first segment is complete.
    ///
    /// # Errors
    /// The window ended before, or nothing came within 30 s.
    pub async fn ready(&self) -> Result<(), WindowError> {
        self.wait(FIRST_WAIT, |state| (!state.segments.is_empty()).then_some(Ok(()))).await
    }

    /// Returns whether pictures arrive that no segment can contain before the first key frame. The first segment follows it.
    pub fn awaits_key_frame(&self) -> bool {
        let state = self.state.lock();
        state.has_left_out && state.segments.is_empty() && state.end.is_none()
    }

    /// Notes that a picture is in no segment, because no key frame came before it.
    pub(super) fn note_left_out(&self) {
        self.state.lock().has_left_out = true;
    }

    /// Returns the playlist of the window. After the end of the window it still lists the last segments, without
    /// announcing the end of the stream, so that a player asks again.
    ///
    /// # Errors
    /// No segment is complete, or the window ended before one was.
    pub fn playlist(&self, request: &PlaylistRequest) -> Result<MediaPlaylist, WindowError> {
        let state = self.state.lock();
        render(&state, self.container, &self.settings, request).ok_or_else(|| match &state.end {
            Some(end) => WindowError::Ended(end.clone()),
            None => WindowError::NotReady,
        })
    }

    /// Waits until the playlist contains a segment, or a part of it (a blocking reload). A part after the last one of a
    /// complete segment stands for the first part of the next segment.
    ///
    /// # Errors
    /// It is too far ahead, did not come within three target durations, or the window ended.
    pub async fn wait_for(&self, sequence: u64, part: Option<u32>) -> Result<(), WindowError> {
        let wait = self.longest_wait();
        self.wait(wait, |state| {
            let newest = state.segments.back().map(|it| it.head.number)?;
            let n_open_parts = state.open.as_ref().map_or(0, |it| it.parts.len() as u64);
            if sequence > newest.saturating_add(SEGMENTS_AHEAD_MAX) {
                return Some(Err(WindowError::TooFarAhead));
            }
            let Some(part) = part else { return (sequence <= newest).then_some(Ok(())) };
            let part = u64::from(part);
            let is_complete = state.segment(sequence).is_some_and(|it| part < it.parts.len() as u64);
            let (sequence, part) = match sequence <= newest && !is_complete && self.has_parts() {
                true => (sequence + 1, 0),
                false => (sequence, part),
            };
            if sequence <= newest {
                return Some(Ok(()));
            }
            let n_parts = if sequence == newest + 1 { n_open_parts } else { 0 };
            if part < n_parts {
                return Some(Ok(()));
            }
            (part >= n_parts + self.parts_ahead_max()).then_some(Err(WindowError::TooFarAhead))
        })
        .await
    }

    /// Returns a complete segment, as long as it is in the window.
    pub fn segment(&self, sequence: u64) -> Option<SegmentBody> {
        self.state.lock().segment(sequence).map(|it| it.body.clone())
    }

    /// Returns a part of a segment. The next part, which the playlist announces, is waited for.
    pub async fn part(&self, sequence: u64, part: u32) -> Option<SegmentBody> {
        let index = part as usize;
        let found = self.wait(self.longest_wait(), |state| {
            if let Some(segment) = state.segment(sequence) {
                return Some(
                    segment.parts.get(index).map(|it| it.bytes.clone()).ok_or(WindowError::TooFarAhead),
                );
            }
            let (number, n_parts) = state.position();
            if let Some(found) = state.open.as_ref().filter(|it| it.head.number == sequence)
                && let Some(found) = found.parts.get(index)
            {
                return Some(Ok(found.bytes.clone()));
            }
            let is_hinted = sequence == number && index == n_parts;
            (!is_hinted || !self.has_parts()).then_some(Err(WindowError::TooFarAhead))
        });
        found.await.ok().map(|bytes| SegmentBody::new(vec![bytes]))
    }

    /// Returns an initialisation segment, for fMP4.
    pub fn init(&self, version: u32) -> Option<Bytes> {
        let state = self.state.lock();
        state.inits.iter().find(|it| it.0 == version).map(|it| it.1.clone())
    }

    /// Returns the properties of the stream and of the window.
    pub fn description(&self) -> SegmentDescription {
        let state = self.state.lock();
        let listed = || state.listed(&self.settings);
        let rate = |bytes: usize, length: u64| (bytes as u64 * 8 * STAMP_HZ).checked_div(length);
        let (bytes, length) =
            listed().fold((0, 0), |(bytes, length), it| (bytes + it.body.len(), length + it.length));
        // A segment that a change cut short says little about the rate.
        let is_typical = |it: &&Segment| it.length >= STAMP_HZ / 2;
        SegmentDescription {
            tracks: state.tracks.clone(),
            left_out: state.left_out.clone(),
            picture: state.picture,
            frame_rate: state.frame_rate,
            peak_bandwidth: listed().filter(is_typical).filter_map(|it| rate(it.body.len(), it.length)).max(),
            average_bandwidth: rate(bytes, length),
            target_duration: state.target_duration.map(Duration::from_secs),
            part_target: state.part_target,
            newest_sequence: state.segments.back().map(|it| it.head.number),
            oldest_sequence: listed().next().map(|it| it.head.number),
            n_segments: listed().count(),
            newest_media: state.newest_media,
            bytes: state.bytes + state.open.as_ref().map_or(0, OpenSegment::memory),
            init_version: state.inits.back().map(|it| it.0),
        }
    }

    /// Returns a reader of the fragments, for fMP4 over one response. It begins with the newest complete segment.
    pub fn fragments(self: &Arc<Self>) -> FragmentReader {
        FragmentReader::new(Arc::clone(self))
    }

    /// Returns the reason why the window ended, if it has ended.
    pub fn ended(&self) -> Option<EndReason> {
        self.state.lock().end.clone()
    }

    /// Returns the number of the segment after the newest one, for [`SegmentSettings::first_number_min`] of the window
    /// that follows.
    pub fn next_number(&self) -> u64 {
        self.state.lock().next
    }

    /// Ends the window; the first reason is kept.
    pub(super) fn end(&self, end: EndReason) {
        self.change(|state| {
            state.end.get_or_insert(end);
        });
    }

    /// Starts a segment that arrives at this time.
    pub(super) fn start(&self, arrived: Instant, is_independent: bool, is_break: bool, facts: &StreamFacts) {
        let date = self.date(arrived);
        let mut state = self.state.lock();
        let is_discontinuity = is_break && state.next_date.is_some();
        state.n_discontinuities += u64::from(is_discontinuity);
        state.is_independent &= is_independent;
        let date = match state.next_date {
            Some(next) if !is_discontinuity => toward(next, date),
            _ => date,
        };
        if is_discontinuity {
            state.picture = None;
        }
        state.learn(facts);
        let head = SegmentHead {
            number: state.next,
            is_discontinuity,
            n_discontinuities: state.n_discontinuities,
            date,
            init: state.inits.back().map_or(0, |it| it.0),
        };
        state.next += 1;
        state.open = Some(OpenSegment { head, parts: Vec::new() });
    }

    /// Replaces the initialisation segment of the segments that start from now on.
    pub(super) fn set_init(&self, init: Bytes) {
        let mut state = self.state.lock();
        state.n_inits += 1;
        let version = state.n_inits;
        state.inits.push_back((version, init));
        if state.inits.len() > INITS_MAX {
            state.inits.pop_front();
        }
    }

    /// Adds a part to the segment that is being made.
    pub(super) fn add_part(&self, part: WindowPart, arrived: Instant) {
        let date = self.date(arrived);
        self.change(|state| {
            state.newest_media = Some(date);
            if let Some(open) = &mut state.open {
                open.parts.push(part);
            }
        });
    }

    /// Completes the oldest segment that is being made. `body` is its bytes; with `None` they are those of its parts.
    pub(super) fn complete(&self, completed: Completed) {
        let date = self.date(completed.arrived);
        self.change(|state| {
            let Some(OpenSegment { head, parts }) = state.open.take() else { return };
            let pieces = || SegmentBody::new(parts.iter().map(|it| it.bytes.clone()).collect());
            let body = completed.body.unwrap_or_else(pieces);
            state.newest_media = Some(date);
            state.next_date = Some(head.date + ticks_to_duration(completed.length));
            if let Some(facts) = &completed.facts {
                state.learn(facts);
            }
            state.frame_rate = completed.frame_rate.or(state.frame_rate).filter(|_| state.has_video());
            state.target_duration.get_or_insert(completed.target_duration);
            if self.has_parts() {
                state.part_target.get_or_insert(completed.part_target);
            }
            let segment = Segment { head, length: completed.length, body, parts };
            state.bytes += segment.memory();
            state.segments.push_back(segment);
            state.evict(&self.settings);
        });
    }

    /// Returns the wall clock at a moment.
    fn date(&self, at: Instant) -> SystemTime {
        let (instant, date) = self.clock;
        date.checked_add(at.saturating_duration_since(instant))
            .and_then(|it| it.checked_sub(instant.saturating_duration_since(at)))
            .unwrap_or(date)
    }

    fn has_parts(&self) -> bool {
        self.container == SegmentContainer::Fmp4
    }

    /// Returns the number of parts after the newest one that a request may wait for (RFC 8216bis, 6.2.5.2).
    fn parts_ahead_max(&self) -> u64 {
        let millis = self.settings.part_target.as_millis().max(1) as u64;
        if millis >= 1000 { 3 } else { 3000_u64.div_ceil(millis) }
    }

    fn longest_wait(&self) -> Duration {
        let target = self.state.lock().target_duration;
        target.map_or(FIRST_WAIT, |it| Duration::from_secs(it) * WAIT_TARGETS)
    }

    /// Changes the state and wakes those that wait.
    fn change(&self, change: impl FnOnce(&mut WindowState)) {
        change(&mut self.state.lock());
        self.changes.send_modify(|it| *it = it.wrapping_add(1));
    }

    /// Waits until `find` returns a result.
    async fn wait<T>(
        &self,
        longest: Duration,
        find: impl Fn(&WindowState) -> Option<Result<T, WindowError>>,
    ) -> Result<T, WindowError> {
        let mut changes = self.changes.subscribe();
        let found = async {
            loop {
                {
                    let state = self.state.lock();
                    if let Some(found) = find(&state) {
                        return found;
                    }
                    if let Some(end) = &state.end {
                        return Err(WindowError::Ended(end.clone()));
                    }
                }
                // The sender lives as long as this window.
                if changes.changed().await.is_err() {
                    return Err(WindowError::Timeout);
                }
            }
        };
        timeout(longest, found).await.unwrap_or(Err(WindowError::Timeout))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, WindowState> {
        self.state.lock()
    }

    pub(super) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }
}

/// The end of a segment.
#[derive(Debug)]
pub(super) struct Completed {
    /// Ticks of 90 kHz.
    pub(super) length: u64,
    pub(super) body: Option<SegmentBody>,
    pub(super) arrived: Instant,
    pub(super) target_duration: u64,
    pub(super) part_target: Duration,
    pub(super) frame_rate: Option<f64>,
    /// The facts that are known at the end, if they can differ from those at the start.
    pub(super) facts: Option<StreamFacts>,
}

impl WindowState {
    /// Takes facts about the stream. A codec whose name is not known at the moment keeps its name.
    fn learn(&mut self, facts: &StreamFacts) {
        if self.tracks != facts.tracks || self.left_out != facts.left_out {
            let mut tracks = facts.tracks.clone();
            for track in tracks.iter_mut().filter(|it| it.codec.is_none()) {
                let known = self.tracks.iter().find(|it| (it.pid, it.name) == (track.pid, track.name));
                track.codec = known.and_then(|it| it.codec.clone());
            }
            (self.tracks, self.left_out) = (tracks, facts.left_out.clone());
        }
        self.picture = facts.picture.or(self.picture).filter(|_| self.has_video());
    }

    fn has_video(&self) -> bool {
        self.tracks.iter().any(|it| it.is_video)
    }

    /// Returns a complete segment.
    pub(super) fn segment(&self, sequence: u64) -> Option<&Segment> {
        let oldest = self.segments.front()?.head.number;
        self.segments.get(usize::try_from(sequence.checked_sub(oldest)?).ok()?)
    }

    /// Returns the number of the segment that is being made or comes next, and how many of its parts exist.
    pub(super) fn position(&self) -> (u64, usize) {
        self.open.as_ref().map_or((self.next, 0), |it| (it.head.number, it.parts.len()))
    }

    /// Returns the segments of the playlist.
    pub(super) fn listed(&self, settings: &SegmentSettings) -> impl Iterator<Item = &Segment> {
        let first = self.segments.len().saturating_sub(settings.playlist_segments);
        self.segments.range(first..)
    }

    pub(super) fn init(&self, version: u32) -> Option<Bytes> {
        self.inits.iter().find(|it| it.0 == version).map(|it| it.1.clone())
    }

    fn evict(&mut self, settings: &SegmentSettings) {
        let wanted = settings.playlist_segments + settings.kept_segments;
        while self.segments.len() > wanted
            || self.bytes > settings.bytes && self.segments.len() > SEGMENTS_MIN
        {
            self.segments.pop_front();
            // A memory file may have been added since the segment was counted.
            self.bytes = self.segments.iter().map(Segment::memory).sum();
        }
        let oldest = self.segments.front().map_or(0, |it| it.head.init);
        while self.inits.len() > 1 && self.inits.front().is_some_and(|it| it.0 < oldest) {
            self.inits.pop_front();
        }
    }
}

impl Segment {
    fn memory(&self) -> usize {
        size_of::<Self>() + self.parts.len() * size_of::<WindowPart>() + self.body.memory()
    }
}

impl OpenSegment {
    fn memory(&self) -> usize {
        self.parts.iter().map(|it| it.bytes.len()).sum()
    }
}

/// Returns `date`, moved toward the measured time by a small step: the clock of a provider differs from that of this
/// machine, and bytes arrive in bursts.
fn toward(date: SystemTime, measured: SystemTime) -> SystemTime {
    match measured.duration_since(date) {
        Ok(ahead) => date + ahead.min(CLOCK_STEP_MAX),
        Err(behind) => date - behind.duration().min(CLOCK_STEP_MAX),
    }
}

/// Returns the time of ticks of 90 kHz.
pub(super) fn ticks_to_duration(ticks: u64) -> Duration {
    Duration::from_nanos((u128::from(ticks) * 1_000_000_000 / u128::from(STAMP_HZ)) as u64)
}

impl fmt::Debug for SegmentWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("SegmentWindow")
            .field("container", &self.container)
            .field("n_segments", &state.segments.len())
            .field("end", &state.end)
            .finish_non_exhaustive()
    }
}
