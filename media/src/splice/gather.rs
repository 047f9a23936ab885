//! The start of a source: its packets are held until its tables are known, its opening burst is over, and a
//! start point for the output is found.
use std::time::Duration;

use crate::groups::GroupLength;
use crate::splice::history::AccessUnit;
use crate::splice::output::Output;
use crate::splice::overlap::Overlap;
use crate::splice::pace::{JUMP, SECOND, SourcePace, Ticks, ticks};
use crate::splice::settings::SpliceSettings;
use crate::splice::timeline::Timeline;
use crate::ts::clock::{STAMP_MODULUS, distance};
use crate::ts::packet::{NULL_PID, Packet, PacketBytes};
use crate::ts::pes::{is_pes_start, stamps};
use crate::ts::random_access::RandomAccess;
use crate::ts::table_reader::{TableHints, TableReader};

/// If the time stamps of a source have not passed the last output for this long after the wait for a
/// random-access point, they are shifted forward, because output time must not go back.
const OVERDUE_AFTER: Duration = Duration::from_secs(2);

/// Packets of a repetition are kept for this much of the programme before its newest picture: other streams may continue
/// earlier by up to [`CONTINUED_BEFORE`], after a clock reference.
const REPETITION_KEPT: Ticks = 2 * SECOND;

/// Other streams continue at most this much before the picture: an incomplete PES packet may have begun before it.
const CONTINUED_BEFORE: Ticks = SECOND;

/// From this part of the held packets' maximum on, those are dropped that are not needed.
const TRIMMED_FROM: usize = 8;

/// Number of packets kept before a possible start point, for the clock reference before it.
const HELD_BEFORE_START: usize = 2_000;

/// Approximately one frame: the distance to the last output at which a shifted source starts.
const FRAME: Ticks = SECOND / 25;

/// A random-access point at most this far before the end of the last output is used if no other has arrived in time or the
/// next one is far away, and the source is shifted forward by as much: pictures without it cannot be decoded. The lead that
/// the output gains is taken back at later changes.
const NEAR_MISS: Ticks = SECOND / 5;

/// In a longer group of pictures, more than that is repeated so that the picture begins at once.
const LONG_GROUP: Duration = Duration::from_secs(2);

/// The next random-access point is far away if the last one was this long ago, or usually if they are this far apart.
const FAR_APART: Duration = Duration::from_secs(1);

/// A source whose random-access points were all unusable is waited for longer by this part of the usual wait. Key frames are
/// often as far apart as the wait is long, and the next one is then about to arrive.
const LONGER_WAIT: u32 = 2;

/// The kind of unit that starts at a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    None,
    /// A PES packet.
    Start,
    /// A random-access point.
    Access,
}

/// A held packet.
#[derive(Debug)]
pub(crate) struct HeldPacket {
    pub(crate) at: Duration,
    pub(crate) packet: PacketBytes,
    mark: Mark,
    /// Decoding time of the PES packet that starts here, in source time.
    stamp: Option<Ticks>,
    /// Programme clock in this packet, in source time.
    pub(crate) clock: Option<Ticks>,
}

/// The start point of the output of a source, and the time shift of the source.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StartPoint {
    pub(crate) index: usize,
    pub(crate) shift: Ticks,
    /// Whether the PCR must continue that of the output, and does.
    pub(crate) keeps_clock: bool,
    /// Whether the reference stream continues directly after its last picture, whatever its decoding times.
    pub(crate) is_direct: bool,
    pub(crate) picture: PictureStart,
}

/// How the picture of a source begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PictureStart {
    /// At a random-access point; also that of a programme without video.
    AtPoint,
    /// At any picture.
    Anywhere,
    /// Later than the other streams: at its next random-access point, or at any picture from this time on.
    Held { until: Duration },
    /// After the last one that was sent, like all streams.
    Continued,
}

impl PictureStart {
    fn from_mark(mark: Mark) -> Self {
        if mark == Mark::Access { PictureStart::AtPoint } else { PictureStart::Anywhere }
    }
}

/// The held packets of one source and its measurements.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) held: Vec<HeldPacket>,
    pub(crate) reader: TableReader,
    pub(crate) timeline: Timeline,
    access: Option<RandomAccess>,
    /// Whether the encoder announced a random-access point in a packet without payload.
    access_announced: bool,
    /// Whether a random-access point is among the packets.
    has_access: bool,
    /// Index of the newest random-access point that may be slightly too early.
    near_miss: Option<usize>,
    first_payload: Option<Duration>,
    clock: SourcePace,
    stamps: SourcePace,
    is_burst_over: bool,
    /// When the burst was over, less what a source without a burst takes to show that; never before the first payload.
    burst_ended: Option<Duration>,
    /// When that was noticed beside the source that plays.
    settled_at: Option<Duration>,
    /// Whether the wait for a random-access point is over.
    has_waited: bool,
    shift: Option<Ticks>,
    /// Whether the PCR of this source continues that of the output.
    keeps_clock: bool,
    /// Index of the first packet that was not examined as a start point.
    n_examined: usize,
    /// The same for a start without the picture.
    n_examined_others: usize,
    /// The overlap of the source with the output, and the index of the first packet that was not compared.
    overlap: Overlap,
    n_compared: usize,
    /// The first access unit of the reference stream.
    pub(crate) first_unit: Option<AccessUnit>,
    /// Number of held packets at which those are dropped that are not needed.
    trimmed_at: usize,
    /// Whether the streams without the picture were examined again, because the source is overdue.
    is_overdue: bool,
    pub(crate) n_table_changes: u32,
    /// Whether the packets follow the last output directly, whenever they arrive.
    is_direct: bool,
    /// Whether the source is a recording, of which nothing may be missing and which may send the same twice.
    is_recording: bool,
    /// The distance of the random-access points of this source.
    pub(crate) group: GroupLength,
}

impl Gathering {
    /// Creates the start of packets that follow the last output directly, whenever they arrive.
    pub(crate) fn directly_after(hints: &TableHints, group: GroupLength) -> Self {
        // When they arrive says nothing about their times.
        Self { is_direct: true, is_burst_over: true, ..Self::new(hints, group) }
    }

    pub(crate) fn new(hints: &TableHints, group: GroupLength) -> Self {
        Gathering {
            held: Vec::new(),
            reader: TableReader::from_hints(hints),
            timeline: Timeline::default(),
            access: None,
            access_announced: false,
            has_access: false,
            near_miss: None,
            first_payload: None,
            clock: SourcePace::default(),
            stamps: SourcePace::default(),
            is_burst_over: false,
            burst_ended: None,
            settled_at: None,
            has_waited: false,
            shift: None,
            keeps_clock: true,
            n_examined: 0,
            n_examined_others: 0,
            overlap: Overlap::default(),
            n_compared: 0,
            first_unit: None,
            trimmed_at: 0,
            is_overdue: false,
            n_table_changes: 0,
            is_direct: false,
            is_recording: false,
            group,
        }
    }

    /// Adds a packet and returns the start point once there is one.
    pub(crate) fn packet(
        &mut self,
        packet: Packet<'_>,
        now: Duration,
        output: &mut Output,
        settings: &SpliceSettings,
    ) -> Option<StartPoint> {
        if !self.hold(packet, now, settings) {
            return None;
        }
        self.try_start(now, output, settings)
    }

    /// Adds a packet without looking for a start point. Returns whether it is held.
    pub(crate) fn hold(&mut self, packet: Packet<'_>, now: Duration, settings: &SpliceSettings) -> bool {
        if !packet.is_valid() || packet.pid() == NULL_PID {
            return false;
        }
        if self.held.len() >= held_max(settings) {
            self.free_memory();
        }
        self.held.push(HeldPacket {
            at: now,
            packet: *packet.bytes(),
            mark: Mark::None,
            stamp: None,
            clock: None,
        });
        if self.reader.packet(packet) {
            self.new_tables();
        } else if self.reader.tables().is_some() {
            self.examine(self.held.len() - 1);
        }
        true
    }

    /// Returns the start point if the passed time alone allows one.
    pub(crate) fn try_start(
        &mut self,
        now: Duration,
        output: &mut Output,
        settings: &SpliceSettings,
    ) -> Option<StartPoint> {
        self.reader.tables()?;
        let first_payload = self.first_payload?;
        let is_first = output.tables.is_none();
        if !is_first && !self.is_recording && !self.is_direct {
            let start = self.find_continuation(output);
            if start.is_some() {
                return start;
            }
            if self.overlap.is_awaited(now.saturating_sub(first_payload), now, &output.sent_units) {
                self.drop_repetition(settings);
                return None;
            }
        }
        self.is_burst_over |= is_first;
        self.look_for_end_of_burst(first_payload, now, settings);
        if !self.is_burst_over {
            self.drop_past(output.silence(now), settings);
            return None;
        }
        let waiting = now.saturating_sub(self.wait_from()?);
        if waiting >= self.start_wait(settings, is_first) && !self.has_waited {
            self.stop_waiting();
        }
        let is_overdue = waiting >= self.access_wait(settings) + OVERDUE_AFTER;
        if self.is_direct && !is_first {
            return self.find_direct_start(now, waiting, output, settings);
        }
        if self.shift.is_none() {
            // A source without any times cannot be shifted.
            let without_times = is_overdue.then_some(0);
            self.shift =
                if is_first { Some(0) } else { Some(self.shift_onto(output, now).or(without_times)?) };
        }
        let start = self.find_start(output, is_first, is_overdue);
        if start.is_some() || !self.may_hold(is_first) || self.has_waited {
            return start;
        }
        self.find_near_miss(output, settings)
            .or_else(|| self.find_start_without_picture(output, is_overdue, settings))
    }

    /// Compares the units that have arrived with those that were sent, and returns the start point after the last one if the
    /// source has the same time line.
    pub(crate) fn find_continuation(&mut self, output: &mut Output) -> Option<StartPoint> {
        let reference = self.access?.pid();
        if self.first_unit.is_some_and(|unit| output.sent_units.began_with(unit)) {
            self.overlap = Overlap::Absent;
        }
        while self.n_compared < self.held.len() {
            let index = self.n_compared;
            self.n_compared += 1;
            let held = &self.held[index];
            let packet = Packet::new(&held.packet);
            let (Some(stamp), true) = (held.stamp, packet.pid() == reference) else { continue };
            let Some(unit) = AccessUnit::from_packet(packet) else { continue };
            if let Some(shift) = self.overlap.unit(unit, stamp, held.at, &output.sent_units) {
                let start = self.continuation_at(index, shift, output);
                if start.is_none() {
                    self.overlap = Overlap::Absent;
                }
                return start;
            }
        }
        None
    }

    /// Returns the start point at the first packet that was not sent, if the picture continues with this one.
    fn continuation_at(&self, index: usize, shift: Ticks, output: &mut Output) -> Option<StartPoint> {
        let picture = self.held[index].stamp?;
        let reference = self.access?.pid();
        // If the last picture was sent long before the end of the output, it was missing in the source.
        if output.clock.is_some_and(|clock| self.has_sane_clocks(output) && clock > picture + shift + SECOND)
        {
            return None;
        }
        let is_before = |held: &HeldPacket| {
            let is_reference = Packet::new(&held.packet).pid() == reference;
            is_reference && held.stamp.is_some_and(|stamp| stamp < picture - CONTINUED_BEFORE)
        };
        let from = self.held[..index].iter().rposition(is_before).map_or(0, |before| before + 1);
        let assigned = output.assign(self.reader.tables()?, |_, _| None);
        let is_new = |held: &HeldPacket| {
            let pid = Packet::new(&held.packet).pid();
            let Some(stamp) = held.stamp.filter(|stamp| (stamp - picture).abs() <= JUMP) else {
                return false;
            };
            let position = assigned.wanted.iter().position(|entry| entry.pid == pid);
            let last = position.and_then(|at| assigned.pids[at]).and_then(|pid| output.last_decode(pid));
            last.is_none_or(|last| stamp + shift > last)
        };
        let index = self.held[from..index].iter().position(is_new).map_or(index, |at| from + at);
        Some(StartPoint {
            index,
            shift,
            keeps_clock: self.has_sane_clocks(output),
            is_direct: false,
            picture: PictureStart::Continued,
        })
    }

    /// Drops packets of a repetition that are not needed for its continuation.
    fn drop_repetition(&mut self, settings: &SpliceSettings) {
        let Some(newest) = self.overlap.newest().filter(|_| self.is_trim_due(settings)) else { return };
        let is_kept = |held: &HeldPacket| {
            held.stamp.is_some_and(|stamp| (0..=REPETITION_KEPT).contains(&(newest - stamp)))
        };
        if let Some(n_packets) = self.held.iter().position(is_kept) {
            self.drop_oldest(n_packets);
        }
        self.trimmed_at = 2 * self.held.len();
    }

    /// Drops packets of an opening burst that will be too old whenever it ends: those before the newest random-access point
    /// that is older than the present silence of the output and what the source may repeat.
    fn drop_past(&mut self, silence: Duration, settings: &SpliceSettings) {
        if self.is_recording || !self.is_trim_due(settings) {
            return;
        }
        // While a burst lasts, the programme gains on the silence.
        let past = ticks(silence + settings.start_lead);
        let Some(kept_from) = self.stamps.newest().map(|newest| newest - past) else { return };
        let is_past = |held: &HeldPacket| {
            held.mark == Mark::Access && held.stamp.is_some_and(|stamp| stamp < kept_from)
        };
        if let Some(index) = self.held.iter().rposition(is_past) {
            self.drop_oldest(index.saturating_sub(HELD_BEFORE_START));
        }
        self.trimmed_at = 2 * self.held.len();
    }

    /// Returns whether so many packets are held that those are dropped that are not needed.
    fn is_trim_due(&self, settings: &SpliceSettings) -> bool {
        self.held.len() >= self.trimmed_at.max(held_max(settings) / TRIMMED_FROM)
    }

    /// Sets whether the source is a recording: it may send the same twice, and nothing of it may be missing.
    pub(crate) fn set_recording(&mut self, is_recording: bool) {
        self.is_recording = is_recording;
        if is_recording {
            self.overlap = Overlap::Absent;
        }
    }

    /// Returns whether the source has sent nothing that was not sent before.
    pub(crate) fn is_repetition(&self) -> bool {
        matches!(self.overlap, Overlap::Repetition(_))
    }

    /// Returns whether the source may start without its picture.
    fn may_hold(&self, is_first: bool) -> bool {
        let is_video = matches!(self.access, Some(RandomAccess::Video { .. }));
        is_video && !is_first && self.group != GroupLength::None
    }

    /// Returns how long nothing but a random-access point is a start point of the reference stream.
    fn start_wait(&self, settings: &SpliceSettings, is_first: bool) -> Duration {
        let wait = self.access_wait(settings);
        // What follows directly is already there: its random-access point is at its start, or far away.
        let may_hold = self.may_hold(is_first) && !self.is_direct;
        if may_hold { wait.max(self.group.picture_wait(settings.random_access_wait)) } else { wait }
    }

    /// Returns the start point at the newest random-access point, if that is before the end of the output by no more than the
    /// source may repeat, and the next one is far away.
    fn find_near_miss(&mut self, output: &mut Output, settings: &SpliceSettings) -> Option<StartPoint> {
        let (index, shift) = (self.near_miss?, self.shift?);
        let since = self.stamps.newest()? - self.held[index].stamp?;
        // The picture could be missing for twelve seconds if nothing is known.
        if since <= ticks(FAR_APART) && matches!(self.group, GroupLength::Known(group) if group <= FAR_APART)
        {
            return None;
        }
        self.near_miss = None;
        // All changes together make the output later by no more than the limit.
        let repeated_max = ticks(settings.start_lead) - output.excess_lead();
        let is_long = matches!(self.group, GroupLength::Known(group) if group > LONG_GROUP);
        let limit =
            if is_long || since > ticks(LONG_GROUP) { NEAR_MISS.max(repeated_max) } else { NEAR_MISS };
        let shortfall = self.shortfall(index, shift, output).filter(|it| *it <= limit)?;
        Some(StartPoint {
            index,
            shift: shift + shortfall.max(0),
            keeps_clock: self.keeps_clock,
            is_direct: false,
            picture: PictureStart::AtPoint,
        })
    }

    /// Returns the first packet at which the output can continue without the picture.
    fn find_start_without_picture(
        &mut self,
        output: &mut Output,
        is_overdue: bool,
        settings: &SpliceSettings,
    ) -> Option<StartPoint> {
        let mut shift = self.shift?;
        let (video, picture) = (self.access?.pid(), self.held_picture(settings)?);
        if is_overdue && !std::mem::replace(&mut self.is_overdue, true) {
            self.n_examined_others = 0;
        }
        while self.n_examined_others < self.held.len() {
            let index = self.n_examined_others;
            self.n_examined_others += 1;
            let held = &self.held[index];
            if held.mark != Mark::Start || Packet::new(&held.packet).pid() == video {
                continue;
            }
            let Some(shortfall) = self.shortfall(index, shift, output) else { continue };
            if shortfall > 0 && (!is_overdue || shortfall > 2 * JUMP) {
                continue;
            }
            if shortfall > 0 {
                shift += shortfall + FRAME;
            }
            return Some(StartPoint {
                index,
                shift,
                keeps_clock: self.keeps_clock,
                is_direct: false,
                picture,
            });
        }
        None
    }

    /// Returns how the picture begins if the source starts without it.
    fn held_picture(&self, settings: &SpliceSettings) -> Option<PictureStart> {
        let wait = self.group.picture_wait(settings.random_access_wait);
        Some(PictureStart::Held { until: self.wait_from()? + wait })
    }

    /// Returns the start point that continues the output directly after its last picture, while the previous source still
    /// plays. The newest random-access point is used, if it is no older than `slack`.
    ///
    /// Packets before it are dropped, so that a long wait needs no memory.
    pub(crate) fn continuation(
        &mut self,
        now: Duration,
        slack: Duration,
        output: &mut Output,
        settings: &SpliceSettings,
    ) -> Option<StartPoint> {
        self.reader.tables()?;
        let first_payload = self.first_payload?;
        self.look_for_end_of_burst(first_payload, now, settings);
        if !self.is_burst_over {
            self.drop_past(Duration::ZERO, settings);
            return None;
        }
        let waiting = now.saturating_sub(self.wait_from()?);
        // The previous source plays meanwhile, so the wait costs nothing.
        if waiting >= self.group.picture_wait(settings.random_access_wait) && !self.has_waited {
            self.stop_waiting();
        }
        let settled_at = *self.settled_at.get_or_insert(now);
        while self.n_examined < self.held.len() {
            let held = &self.held[self.n_examined];
            let can_start = held.mark == Mark::Access || held.mark == Mark::Start && self.has_waited;
            // A source may send in bursts: then its random-access points are old, but have just arrived.
            let is_new = held.at > settled_at && now.saturating_sub(held.at) <= slack;
            if can_start && let Some(start) = self.direct_start(self.n_examined, is_new, now, slack, output) {
                return Some(start);
            }
            self.n_examined += 1;
        }
        if self.n_examined > 2 * HELD_BEFORE_START {
            self.drop_oldest(self.n_examined - HELD_BEFORE_START);
        }
        None
    }

    /// Returns the first packet at which the output can continue directly after its last picture, or without the picture if
    /// no random-access point came in time.
    fn find_direct_start(
        &mut self,
        now: Duration,
        waiting: Duration,
        output: &mut Output,
        settings: &SpliceSettings,
    ) -> Option<StartPoint> {
        let may_hold = self.may_hold(false) && waiting < self.group.picture_wait(settings.random_access_wait);
        let video = self.access.filter(|_| may_hold).map(RandomAccess::pid);
        while self.n_examined < self.held.len() {
            let index = self.n_examined;
            self.n_examined += 1;
            let held = &self.held[index];
            let is_other = held.mark == Mark::Start && self.has_waited;
            if held.mark != Mark::Access && !is_other {
                continue;
            }
            if is_other && video == Some(Packet::new(&held.packet).pid()) {
                continue;
            }
            let Some(start) = self.direct_start(index, true, now, Duration::ZERO, output) else { continue };
            return Some(match self.held_picture(settings) {
                // The picture has to follow what was sent on its PID, too.
                Some(picture) if is_other && may_hold => StartPoint { is_direct: false, picture, ..start },
                _ => start,
            });
        }
        None
    }

    /// Returns the start point at this packet, unless it is too old.
    fn direct_start(
        &mut self,
        index: usize,
        is_new: bool,
        now: Duration,
        slack: Duration,
        output: &mut Output,
    ) -> Option<StartPoint> {
        let due = self.shift_onto(output, now)?;
        let (decode, presentation) = (self.held[index].stamp?, self.presentation(index)?);
        let pid = self.output_pid(index, output)?;
        let mut shift = output.direct_shift(pid, decode, presentation).unwrap_or(due);
        if !is_new && shift - due > ticks(slack) {
            return None;
        }
        let late_by = self.clock_shortfall(index, shift, output).unwrap_or(0);
        // Clock references that are too early are left out; for longer than this, a step of the pictures is better.
        if late_by > SECOND {
            shift += late_by;
        }
        let picture = PictureStart::from_mark(self.held[index].mark);
        Some(StartPoint { index, shift, keeps_clock: self.keeps_clock, is_direct: true, picture })
    }

    /// Returns the presentation time of the PES packet that starts here, in source time.
    fn presentation(&self, index: usize) -> Option<Ticks> {
        let held = &self.held[index];
        let stamps = stamps(Packet::new(&held.packet));
        Some(held.stamp? + distance(stamps.decode()?, stamps.pts?, STAMP_MODULUS))
    }

    /// Returns the PID in the output of a held packet.
    fn output_pid(&self, index: usize, output: &mut Output) -> Option<u16> {
        let pid = Packet::new(&self.held[index].packet).pid();
        let assigned = output.assign(self.reader.tables()?, |_, _| None);
        let position = assigned.wanted.iter().position(|entry| entry.pid == pid)?;
        assigned.pids[position]
    }

    /// Returns when [`Gathering::continuation`] must be called if no packet arrives.
    pub(crate) fn continuation_deadline(&self, settings: &SpliceSettings) -> Option<Duration> {
        self.reader.tables()?;
        if !self.is_burst_over {
            return self.burst_deadline(settings);
        }
        let wait = self.group.picture_wait(settings.random_access_wait);
        self.wait_from().filter(|_| !self.has_waited).map(|from| from + wait)
    }

    /// Returns the longest wait for a random-access point.
    fn access_wait(&self, settings: &SpliceSettings) -> Duration {
        let longer = if self.has_access { settings.random_access_wait / LONGER_WAIT } else { Duration::ZERO };
        settings.random_access_wait + longer
    }

    /// Returns how long the opening burst is waited for after the first payload.
    fn burst_max(&self, settings: &SpliceSettings) -> Duration {
        // The burst of a recording does not end, and that of a source without a clock cannot be measured.
        let has_pace = self.pace().is_some_and(|pace| pace.lead().is_some());
        if self.is_recording || !has_pace { settings.burst_max } else { settings.burst_wait_max }
    }

    fn burst_deadline(&self, settings: &SpliceSettings) -> Option<Duration> {
        let end = self.first_payload? + self.burst_max(settings);
        let settles_at = self.pace().and_then(SourcePace::settles_at);
        Some(settles_at.map_or(end, |settles| settles.min(end)))
    }

    /// Ends the burst if it is over. From then on a random-access point is waited for, or from the first payload on if that
    /// was only a moment ago.
    fn look_for_end_of_burst(&mut self, first_payload: Duration, now: Duration, settings: &SpliceSettings) {
        if self.is_burst_over {
            return;
        }
        if now.saturating_sub(first_payload) >= self.burst_max(settings) || self.has_settled(now) {
            self.is_burst_over = true;
            self.burst_ended = Some(first_payload.max(now.saturating_sub(settings.burst_max)));
        }
    }

    /// Returns when the wait for a random-access point began.
    fn wait_from(&self) -> Option<Duration> {
        self.burst_ended.or(self.first_payload)
    }

    /// Returns when [`Gathering::try_start`] must be called if no packet arrives.
    pub(crate) fn deadline(&self, settings: &SpliceSettings, is_first: bool) -> Option<Duration> {
        self.reader.tables()?;
        let first_payload = self.first_payload?;
        // Before the end of a repetition nothing else is a start point, and before that of a burst nothing at all.
        if let Some(judged_at) = self.overlap.judged_at() {
            return Some(first_payload + judged_at);
        }
        if !self.is_burst_over && !is_first {
            return self.burst_deadline(settings);
        }
        let wait = self.start_wait(settings, is_first);
        self.wait_from().filter(|_| !self.has_waited).map(|from| from + wait)
    }

    /// Returns the measurement that decides whether the burst is over: of the programme clock, or of the time
    /// stamps if the source has no clock.
    fn pace(&self) -> Option<&SourcePace> {
        let tables = self.reader.tables()?;
        Some(if tables.pmt.pcr_pid == NULL_PID { &self.stamps } else { &self.clock })
    }

    fn has_settled(&self, now: Duration) -> bool {
        self.pace().is_some_and(|pace| pace.has_settled(now))
    }

    fn stop_waiting(&mut self) {
        self.has_waited = true;
        self.n_examined = 0;
    }

    /// Frees memory: stops waiting, or drops the older half of the packets if that was done already or they are an opening
    /// burst.
    fn free_memory(&mut self) {
        if self.is_burst_over && !self.has_waited {
            self.stop_waiting();
        } else {
            self.drop_oldest(self.held.len() / 2);
        }
    }

    fn drop_oldest(&mut self, n_packets: usize) {
        self.held.drain(..n_packets);
        self.n_examined = self.n_examined.saturating_sub(n_packets);
        self.n_examined_others = self.n_examined_others.saturating_sub(n_packets);
        self.n_compared = self.n_compared.saturating_sub(n_packets);
        self.near_miss = self.near_miss.and_then(|it| it.checked_sub(n_packets));
    }

    /// Examines all held packets with the new tables.
    fn new_tables(&mut self) {
        self.n_table_changes += 1;
        if self.n_table_changes > TABLE_CHANGES_MAX {
            // If a source changes its tables with every packet, the held packets must not be examined again
            // each time.
            self.held.clear();
        }
        self.access = self.reader.tables().and_then(RandomAccess::new);
        self.timeline = Timeline::default();
        (self.clock, self.stamps) = (SourcePace::default(), SourcePace::default());
        (self.first_payload, self.burst_ended, self.first_unit) = (None, None, None);
        (self.has_access, self.near_miss) = (false, None);
        self.shift = None;
        (self.n_examined, self.n_examined_others) = (0, 0);
        (self.overlap, self.n_compared) = (Overlap::default(), 0);
        for index in 0..self.held.len() {
            let held = &mut self.held[index];
            (held.mark, held.stamp, held.clock) = (Mark::None, None, None);
            self.examine(index);
        }
    }

    /// Records the times in the packet and whether a decoder can start at it.
    fn examine(&mut self, index: usize) {
        let Some(tables) = self.reader.tables() else { return };
        let held = &mut self.held[index];
        let (at, packet) = (held.at, Packet::new(&held.packet));
        let pid = packet.pid();
        if !tables.is_payload(pid) {
            return;
        }
        if packet.has_payload() && self.first_payload.is_none() {
            self.first_payload = Some(at);
        }
        if pid == tables.pmt.pcr_pid
            && let Some(pcr) = packet.pcr()
        {
            let clock = self.timeline.advance(pcr / 300);
            self.clock.observe(clock, at);
            held.clock = Some(clock);
        }
        let is_reference = self.access.is_some_and(|access| access.pid() == pid);
        let can_start = self.access.is_some_and(|access| access.is_start(packet));
        if is_reference && can_start && !packet.has_payload() {
            self.access_announced = true;
        }
        if !is_pes_start(packet) {
            return;
        }
        held.mark =
            if can_start || is_reference && self.access_announced { Mark::Access } else { Mark::Start };
        if held.mark == Mark::Access {
            (self.has_access, self.near_miss) = (true, Some(index));
        }
        held.stamp = stamps(packet).decode().map(|stamp| self.timeline.place(stamp));
        if is_reference {
            self.access_announced = false;
            self.first_unit = self.first_unit.or_else(|| AccessUnit::from_packet(packet));
            if let Some(stamp) = stamps(packet).decode() {
                self.stamps.observe(self.timeline.advance(stamp), at);
            }
        }
    }

    /// Returns the shift that maps the newest time of this source to the time that is due now: afterwards
    /// both have the same lead.
    fn shift_onto(&mut self, output: &mut Output, now: Duration) -> Option<Ticks> {
        let (from_clock, from_stamps) = (self.clock.lead(), self.stamps.lead());
        let (to_clock, to_stamps) = (output.pcr_clock.lead(), output.stamp_clock.lead());
        let are_sane = self.has_sane_clocks(output);
        let (from, to) = match (from_clock, to_clock, from_stamps, to_stamps) {
            (Some(from), Some(_), _, _) if are_sane => (from, output.pcr_clock.next_lead()?),
            (_, _, Some(from), Some(_)) => (from, output.stamp_clock.next_lead()?),
            _ => (from_stamps.or(from_clock)?, to_stamps.or(to_clock)?),
        };
        self.keeps_clock = are_sane;
        output.remove_stray_stamps(to, now);
        Some(to - from)
    }

    /// Returns whether the PCR matches the time stamps, on both sides. Otherwise it is ignored.
    fn has_sane_clocks(&self, output: &Output) -> bool {
        let agrees = |clock: Option<Ticks>, stamps: Option<Ticks>| match (clock, stamps) {
            (Some(clock), Some(stamps)) => clock.abs_diff(stamps) <= JUMP.unsigned_abs(),
            _ => true,
        };
        agrees(self.clock.lead(), self.stamps.lead())
            && agrees(output.pcr_clock.lead(), output.stamp_clock.lead())
    }

    /// Returns the first packet at which the output can continue.
    fn find_start(&mut self, output: &mut Output, is_first: bool, is_overdue: bool) -> Option<StartPoint> {
        let mut shift = self.shift?;
        while self.n_examined < self.held.len() {
            let index = self.n_examined;
            self.n_examined += 1;
            let mark = self.held[index].mark;
            if mark == Mark::None || mark == Mark::Start && !self.has_waited {
                continue;
            }
            let (keeps_clock, picture) = (self.keeps_clock, PictureStart::from_mark(mark));
            if is_first {
                return Some(StartPoint { index, shift, keeps_clock, is_direct: false, picture });
            }
            let Some(shortfall) = self.shortfall(index, shift, output) else { continue };
            if shortfall > 0 && self.has_waited && mark == Mark::Access && shortfall <= NEAR_MISS {
                shift += shortfall;
            } else if shortfall > 0 {
                if !is_overdue || shortfall > 2 * JUMP {
                    continue;
                }
                shift += shortfall + FRAME;
            }
            return Some(StartPoint { index, shift, keeps_clock, is_direct: false, picture });
        }
        None
    }

    /// Returns how far before the last output the source would start at this packet; zero or less if it
    /// starts after it. `None` if that is unknown, which rules the packet out.
    fn shortfall(&self, index: usize, shift: Ticks, output: &mut Output) -> Option<Ticks> {
        let stamp = self.held[index].stamp.map(|stamp| stamp + shift);
        if stamp.is_none() && self.stamps.lead().is_some() {
            return None;
        }
        let pid = self.output_pid(index, output)?;
        let floor = output.floor(pid);
        let by_stamp = floor.zip(stamp).map(|(floor, stamp)| floor - stamp);
        let by_clock = self.clock_shortfall(index, shift, output);
        Some(by_stamp.into_iter().chain(by_clock).max().unwrap_or(0))
    }

    /// Returns how far the last clock before this packet is behind that of the output; `None` if it need not continue it.
    fn clock_shortfall(&self, index: usize, shift: Ticks, output: &Output) -> Option<Ticks> {
        let clock = self.held[..=index].iter().rev().find_map(|held| held.clock)?;
        let floor = output.clock.filter(|_| self.keeps_clock)?;
        Some(floor + 1 - (clock + shift))
    }
}

/// Returns the maximum number of held packets.
fn held_max(settings: &SpliceSettings) -> usize {
    (settings.held_bytes_max / size_of::<HeldPacket>()).max(2)
}

/// Number of table changes in one source up to which held packets are examined again.
const TABLE_CHANGES_MAX: u32 = 4;
