//! The beginning of a source: its packets are held until its tables are known, its opening burst is over, and
//! there is a place where the output can begin.
use std::time::Duration;

use crate::splice::SpliceSettings;
use crate::splice::output::Output;
use crate::splice::pace::{JUMP, Pace, SECOND, Ticks};
use crate::splice::timeline::Timeline;
use crate::ts::clock::{RandomAccess, is_pes_start, stamps};
use crate::ts::packet::{NULL_PID, Packet, PacketBytes};
use crate::ts::tables::TableReader;

/// A source whose time stamps do not come to lie after the last output for this long past the wait for a
/// random-access point is moved forward: going back would be worse.
const PATIENCE: Duration = Duration::from_secs(2);

/// One frame, roughly: how far behind the last output a source that has to be moved begins.
const FRAME: Ticks = SECOND / 25;

/// What begins at a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    None,
    /// A PES packet.
    Start,
    /// A random-access point.
    Access,
}

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Held {
    pub(crate) at: Duration,
    pub(crate) packet: PacketBytes,
    mark: Mark,
    /// Decoding time of the PES packet that begins here, in source time.
    stamp: Option<Ticks>,
    /// Programme clock in this packet, in source time.
    pub(crate) clock: Option<Ticks>,
}

/// Where the output begins, and how far the source's time is shifted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Begin {
    pub(crate) index: usize,
    pub(crate) shift: Ticks,
    /// The PCR must go on from that of the output, and does.
    pub(crate) keeps_clock: bool,
}

/// The collection of one source.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) held: Vec<Held>,
    pub(crate) reader: TableReader,
    pub(crate) timeline: Timeline,
    access: Option<RandomAccess>,
    /// The encoder announced a random-access point in a packet without payload.
    access_announced: bool,
    first_payload: Option<Duration>,
    clock: Pace,
    stamps: Pace,
    burst_over: bool,
    /// The wait for a random-access point is over.
    waited: bool,
    shift: Option<Ticks>,
    /// The PCR of this source goes on from that of the output.
    keeps_clock: bool,
    /// Packets before this one are no place to begin.
    looked_at: usize,
    n_table_changes: u32,
}

impl Gathering {
    pub(crate) fn new() -> Self {
        Gathering {
            held: Vec::new(),
            reader: TableReader::new(),
            timeline: Timeline::default(),
            access: None,
            access_announced: false,
            first_payload: None,
            clock: Pace::default(),
            stamps: Pace::default(),
            burst_over: false,
            waited: false,
            shift: None,
            keeps_clock: true,
            looked_at: 0,
            n_table_changes: 0,
        }
    }

    /// Takes a packet; tells where to begin once there is such a place.
    pub(crate) fn packet(
        &mut self,
        bytes: &PacketBytes,
        now: Duration,
        output: &mut Output,
        settings: &SpliceSettings,
    ) -> Option<Begin> {
        let packet = Packet::new(bytes);
        if !packet.is_valid() || packet.pid() == NULL_PID {
            return None;
        }
        if self.held.len() >= (settings.held_bytes_max / size_of::<Held>()).max(2) {
            self.make_room();
        }
        self.held.push(Held { at: now, packet: *bytes, mark: Mark::None, stamp: None, clock: None });
        if self.reader.packet(bytes) {
            self.new_tables();
        } else if self.reader.tables().is_some() {
            self.look_at(self.held.len() - 1);
        }
        self.try_begin(now, output, settings)
    }

    /// Looks whether time alone allows to begin.
    pub(crate) fn try_begin(
        &mut self,
        now: Duration,
        output: &mut Output,
        settings: &SpliceSettings,
    ) -> Option<Begin> {
        self.reader.tables()?;
        let waiting = now.saturating_sub(self.first_payload?);
        if waiting >= settings.random_access_wait && !self.waited {
            self.give_up_waiting();
        }
        let is_first = output.tables.is_none();
        if !self.burst_over {
            self.burst_over = is_first || waiting >= settings.burst_max || self.has_settled(now);
        }
        if !self.burst_over {
            return None;
        }
        if self.shift.is_none() {
            self.shift = if is_first { Some(0) } else { Some(self.shift_onto(output, now)?) };
        }
        let is_overdue = waiting >= settings.random_access_wait + PATIENCE;
        self.find(output, is_first, is_overdue)
    }

    /// When [`Gathering::try_begin`] has to be called if no packet comes.
    pub(crate) fn deadline(&self, settings: &SpliceSettings, is_first: bool) -> Option<Duration> {
        let first_payload = self.first_payload?;
        let wait = (!self.waited).then_some(first_payload + settings.random_access_wait);
        let burst = (!self.burst_over && !is_first).then(|| {
            let end = first_payload + settings.burst_max;
            self.pace().and_then(Pace::settles_at).map_or(end, |settles| settles.min(end))
        });
        wait.into_iter().chain(burst).min()
    }

    /// What decides whether the burst is over: the programme clock, or the time stamps of a source that has none.
    fn pace(&self) -> Option<&Pace> {
        let tables = self.reader.tables()?;
        Some(if tables.pmt.pcr_pid == NULL_PID { &self.stamps } else { &self.clock })
    }

    fn has_settled(&self, now: Duration) -> bool {
        self.pace().is_some_and(|pace| pace.has_settled(now))
    }

    fn give_up_waiting(&mut self) {
        self.waited = true;
        self.looked_at = 0;
    }

    /// Too much is held: wait for nothing more, and if that does not help let go of the older half.
    fn make_room(&mut self) {
        if self.reader.tables().is_some() && !self.waited {
            self.burst_over = true;
            self.give_up_waiting();
        } else {
            let half = self.held.len() / 2;
            self.held.drain(..half);
            self.looked_at = self.looked_at.saturating_sub(half);
        }
    }

    /// Reads all that is held with the tables now known.
    fn new_tables(&mut self) {
        self.n_table_changes += 1;
        if self.n_table_changes > MANY_TABLE_CHANGES {
            // A source that changes its tables with every packet must not have all that is held read again each time.
            self.held.clear();
        }
        self.access = self.reader.tables().and_then(RandomAccess::of);
        self.timeline = Timeline::default();
        (self.clock, self.stamps) = (Pace::default(), Pace::default());
        self.first_payload = None;
        self.shift = None;
        self.looked_at = 0;
        for index in 0..self.held.len() {
            let held = &mut self.held[index];
            (held.mark, held.stamp, held.clock) = (Mark::None, None, None);
            self.look_at(index);
        }
    }

    /// Notes what the packet says about time and whether a decoder can begin with it.
    fn look_at(&mut self, index: usize) {
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
        let is_reference = self.access.is_some_and(|access| pid_of(access) == pid);
        let can_begin = self.access.is_some_and(|access| access.begins_at(packet));
        if is_reference && can_begin && !packet.has_payload() {
            self.access_announced = true;
        }
        if !is_pes_start(packet) {
            return;
        }
        held.mark =
            if can_begin || is_reference && self.access_announced { Mark::Access } else { Mark::Start };
        held.stamp = stamps(packet).decode().map(|stamp| self.timeline.place(stamp));
        if is_reference {
            self.access_announced = false;
            if let Some(stamp) = stamps(packet).decode() {
                self.stamps.observe(self.timeline.advance(stamp), at);
            }
        }
    }

    /// The constant that maps the newest of this source to what is due now: both have the same lead afterwards.
    fn shift_onto(&mut self, output: &mut Output, now: Duration) -> Option<Ticks> {
        let (from_clock, from_stamps) = (self.clock.lead(), self.stamps.lead());
        let (to_clock, to_stamps) = (output.clock_line.lead(), output.stamp_line.lead());
        // A clock that has nothing to do with the time stamps is not believed, on either side.
        let agrees = |clock: Option<Ticks>, stamps: Option<Ticks>| match (clock, stamps) {
            (Some(clock), Some(stamps)) => clock.abs_diff(stamps) <= JUMP.unsigned_abs(),
            _ => true,
        };
        let are_sane = agrees(from_clock, from_stamps) && agrees(to_clock, to_stamps);
        let (from, to) = match (from_clock, to_clock, from_stamps, to_stamps) {
            (Some(from), Some(_), _, _) if are_sane => (from, output.clock_line.next_lead()?),
            (_, _, Some(from), Some(_)) => (from, output.stamp_line.next_lead()?),
            _ => (from_stamps.or(from_clock)?, to_stamps.or(to_clock)?),
        };
        self.keeps_clock = are_sane;
        output.forget_strays(to, now);
        Some(to - from)
    }

    /// The first packet from which the output can go on.
    fn find(&mut self, output: &mut Output, is_first: bool, is_overdue: bool) -> Option<Begin> {
        let mut shift = self.shift?;
        while self.looked_at < self.held.len() {
            let index = self.looked_at;
            self.looked_at += 1;
            let mark = self.held[index].mark;
            if mark == Mark::None || mark == Mark::Start && !self.waited {
                continue;
            }
            if is_first {
                return Some(Begin { index, shift, keeps_clock: self.keeps_clock });
            }
            let Some(shortfall) = self.shortfall(index, shift, output) else { continue };
            if shortfall > 0 {
                if !is_overdue || shortfall > 2 * JUMP {
                    continue;
                }
                shift += shortfall + FRAME;
            }
            return Some(Begin { index, shift, keeps_clock: self.keeps_clock });
        }
        None
    }

    /// How far behind the last output the source would begin at this packet; zero or less if it does not.
    /// `None` where that cannot be told: no place to begin.
    fn shortfall(&self, index: usize, shift: Ticks, output: &mut Output) -> Option<Ticks> {
        let stamp = self.held[index].stamp? + shift;
        let tables = self.reader.tables()?;
        let pid = Packet::new(&self.held[index].packet).pid();
        let assigned = output.assign(tables, |_, _| None);
        let position = assigned.wanted.iter().position(|entry| entry.1 == pid)?;
        let by_stamp = output.floor(assigned.pids[position]?).map(|floor| floor - stamp);
        let clock = self.held[..=index].iter().rev().find_map(|held| held.clock);
        let by_clock = clock
            .zip(output.clock.filter(|_| self.keeps_clock))
            .map(|(clock, floor)| floor + 1 - (clock + shift));
        Some(by_stamp.into_iter().chain(by_clock).max().unwrap_or(0))
    }
}

/// The PID that decides where a programme can begin.
pub(crate) fn pid_of(access: RandomAccess) -> u16 {
    match access {
        RandomAccess::Video { pid, .. } | RandomAccess::Audio { pid } => pid,
    }
}

/// Table changes within one collection that are followed with all that is held.
const MANY_TABLE_CHANGES: u32 = 4;
