//! Forwards the packets of a source to the output, unchanged or rewritten to the PIDs, counters and times of
//! the output.
use std::time::Duration;

use crate::splice::gather::{Gathering, HeldPacket, PictureStart, StartPoint};
use crate::splice::hold::{HeldPicture, PictureEvent, PictureHold};
use crate::splice::leading::LeadingPictures;
use crate::splice::output::{Output, PIDS};
use crate::splice::pace::{JUMP, OutputClock, SECOND, Ticks};
use crate::splice::pids::{PidKind, WantedPid};
use crate::splice::programme::{EarlyPackets, ProgrammeClock, Relation};
use crate::splice::settings::SpliceSettings;
use crate::splice::timeline::{Timeline, wrap};
use crate::splice::units::{Unit, UnitQueue};
use crate::ts::clock::STAMP_MODULUS;
use crate::ts::cue::CueReader;
use crate::ts::packet::{
    NULL_PID, PAT_PID, Packet, PacketBytes, PacketSink, discontinuity_packet, remove_payload, remove_pcr,
    set_cc, set_discontinuity, set_pcr, set_pid,
};
use crate::ts::pes::{is_pes_header_cut, is_pes_start, map_stamps, stamps};
use crate::ts::random_access::RandomAccess;
use crate::ts::table_reader::TableReader;
use crate::ts::tables::{ElementaryStream, Pmt, StreamKind, Tables};

/// Maximum distance of two clock references in the standard; a greater step is declared as a discontinuity.
const CLOCK_GAP_MAX: Ticks = SECOND / 10;

/// A video or audio stream without time stamps starts after this many PES packets.
const STAMPS_AWAITED_MAX: u8 = 50;

/// A PID of the source that is not forwarded.
const OTHER: u8 = 0xFF;
/// A PID of the source that carries tables.
const TABLE: u8 = 0xFE;

/// Forwards the current source.
#[derive(Debug)]
pub(crate) struct Forwarder {
    pub(crate) reader: TableReader,
    timeline: Timeline,
    access: Option<RandomAccess>,
    /// Set while the picture is awaited.
    hold: Option<PictureHold>,
    /// The newest event of the picture that was not taken.
    picture_event: Option<PictureEvent>,
    /// The clocks that were sent, for [`Mode::Rewritten`].
    programme: Box<ProgrammeClock>,
    /// Packets of the streams that jumped before the programme.
    early: EarlyPackets,
    /// Whether the PCR agrees with the time stamps.
    keeps_clock: bool,
    leading: LeadingPictures,
    pcr_pid: u16,
    /// For each PID of the source: index into `streams`, or [`TABLE`], or [`OTHER`].
    routes: Box<[u8; PIDS]>,
    streams: Vec<ForwardedStream>,
    mode: Mode,
    queue: UnitQueue,
    /// Whether the first tables were applied.
    has_tables: bool,
}

/// How packets are forwarded.
#[derive(Debug)]
enum Mode {
    /// For a first source with one programme whose tables are right: all PIDs pass unchanged, announced or not.
    Unchanged,
    /// For other sources: only the programme is forwarded, rewritten.
    Rewritten {
        /// Added to every time stamp.
        shift: Ticks,
        /// Last clock of the previous source; the first clock of this one must be later.
        clock_floor: Option<Ticks>,
        /// Whether no clock was sent yet; the first may have to declare its step.
        is_clock_due: bool,
        /// The clock that declared a step. If its packet is sent twice, both declare it.
        declared: Option<Ticks>,
    },
}

/// The format of the payload of a PID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PayloadFormat {
    Pes,
    /// Sections without time stamps.
    Sections,
    /// Sections with times of the programme, which are sent again with other times.
    CueMessages,
    /// Only the programme clock.
    Clock,
}

/// A stream of the source.
#[derive(Debug)]
struct ForwardedStream {
    kind: PidKind,
    format: PayloadFormat,
    pid: u16,
    /// Output PID; `None` if no PID is left.
    target: Option<u16>,
    /// Added to its continuity counters; `None` before its first packet.
    counter_shift: Option<u8>,
    /// Whether its first PES packet or section has started.
    is_open: bool,
    /// Minimum for its first time stamp, in output time.
    floor: Option<Ticks>,
    /// Number of PES packets without a time stamp that it may not start with: video and audio have stamps, but not
    /// necessarily on every packet.
    n_stamps_awaited: u8,
    /// How its time stamps relate to those of the programme.
    relation: Relation,
    /// Decoding time of its first PES packet that waits in [`Forwarder::early`], in source time; its later packets wait
    /// behind that one.
    early: Option<u64>,
    /// The PES packet that arrives at present.
    unit: Unit,
    /// The cue message that arrives at present.
    cues: CueReader,
}

/// Takes packets that were sent already.
struct Discard;

impl PacketSink for Discard {
    fn push(&mut self, _: Packet<'_>) {}
}

impl ForwardedStream {
    /// Returns whether the stream may start with the PES packet that starts here: it must be decoded after the last
    /// one of the previous source.
    fn can_start(&mut self, packet: Packet<'_>, timeline: &Timeline, shift: Ticks) -> bool {
        match (stamps(packet).decode(), self.floor) {
            (Some(stamp), Some(floor)) => timeline.place(stamp) + shift + self.relation.anchor() >= floor,
            (_, None) => true,
            (None, _) => {
                let may_start = self.n_stamps_awaited == 0;
                self.n_stamps_awaited = self.n_stamps_awaited.saturating_sub(1);
                may_start
            }
        }
    }
}

impl PayloadFormat {
    fn from_stream(stream: &ElementaryStream, pmt: &Pmt) -> PayloadFormat {
        match stream.stream_type {
            _ if pmt.has_cue_messages(stream) && stream.pid != pmt.pcr_pid => PayloadFormat::CueMessages,
            // Private sections, object and data carousels.
            0x05 | 0x0A..=0x0D => PayloadFormat::Sections,
            _ => PayloadFormat::Pes,
        }
    }
}

impl Forwarder {
    /// Starts the output of a source: tables first, then the held packets from the start point on.
    pub(crate) fn start(
        gathering: Gathering,
        start: &StartPoint,
        settings: &SpliceSettings,
        output: &mut Output,
        out: &mut impl PacketSink,
    ) -> Self {
        let Gathering { held, reader, timeline, first_unit, .. } = gathering;
        let is_first = output.tables.is_none();
        let n_programs =
            reader.tables().map_or(0, |it| it.pat.programs.iter().filter(|it| it.0 != 0).count());
        let mode = if is_first && n_programs == 1 && !reader.has_corrections() {
            Mode::Unchanged
        } else {
            let clock_floor = output.clock.filter(|_| start.keeps_clock);
            Mode::Rewritten { shift: start.shift, clock_floor, is_clock_due: !is_first, declared: None }
        };
        let mut forwarder =
            Forwarder { keeps_clock: start.keeps_clock, ..Self::new(reader, timeline, mode, settings) };
        output.pcr_clock.restart();
        output.stamp_clock.restart();
        forwarder.apply_tables(output);
        forwarder.has_tables = true;
        if start.picture == PictureStart::Continued {
            forwarder.continue_streams(&held[start.index..], output);
        } else {
            output.sent_units.begin(first_unit);
        }
        if start.is_direct {
            let access = forwarder.access.map(RandomAccess::pid);
            let reference = forwarder.streams.iter_mut().find(|stream| Some(stream.pid) == access);
            reference.into_iter().for_each(|stream| stream.floor = None);
        }
        if !is_first {
            forwarder.start_picture(start.picture, held[start.index].at);
        }
        if forwarder.pcr_pid == NULL_PID || !start.keeps_clock {
            output.pcr_clock = OutputClock::default();
        }
        if matches!(forwarder.mode, Mode::Unchanged) {
            continue_counters(&held, start.index, output);
        }
        output.send_pat(out);
        output.send_pmt(out);
        forwarder.send_clock(&held, start.index, output, out);
        for held in &held[start.index..] {
            forwarder.packet(Packet::new(&held.packet), held.at, output, out);
        }
        forwarder
    }

    /// Begins or holds the picture of a source that replaces another at `at`.
    fn start_picture(&mut self, picture: PictureStart, at: Duration) {
        match picture {
            PictureStart::AtPoint | PictureStart::Continued => {}
            PictureStart::Anywhere => self.picture_event = Some(PictureEvent::NoKeyFrame),
            PictureStart::Held { until } => {
                self.hold = self.access.and_then(|access| PictureHold::new(access, at, until));
                self.picture_event = self.hold.as_ref().map(PictureHold::begun);
            }
        }
    }

    /// Lets every stream begin with the first of these packets that was not sent.
    fn continue_streams(&mut self, held: &[HeldPacket], output: &Output) {
        self.leading = LeadingPictures::none();
        let is_reference = |packet: &Packet<'_>| self.is_reference(packet.pid());
        let pictures = held.iter().map(|held| Packet::new(&held.packet)).filter(is_reference);
        if let Some(decode) = pictures.filter_map(|it| stamps(it).decode()).next() {
            // Other streams may come before the first picture.
            self.programme.advance_reference(decode, self.queue.time());
        }
        let newest = output.sent_units.last_sent_as();
        for stream in &mut self.streams {
            let last = stream.target.and_then(|target| output.last_decode(target));
            // Times that are unrelated to the programme are moved to it from now on.
            let last = last.filter(|last| newest.is_some_and(|newest| (newest - last).abs() <= JUMP));
            stream.floor = last.map(|last| last + 1);
            stream.n_stamps_awaited = STAMPS_AWAITED_MAX;
        }
    }

    /// Returns what has happened to the picture since the last call.
    pub(crate) fn take_picture_event(&mut self) -> Option<PictureEvent> {
        self.picture_event.take()
    }

    /// Continues the output of another splice: nothing is sent, because its packets are sent already.
    pub(crate) fn adopt(
        tables: Option<&Tables>,
        counters: &[(u16, u8)],
        settings: &SpliceSettings,
        output: &mut Output,
    ) -> Self {
        let reader = tables.map(TableReader::from_tables).unwrap_or_default();
        let mut forwarder = Self::new(reader, Timeline::default(), Mode::Unchanged, settings);
        counters.iter().for_each(|(pid, cc)| output.set_counter(*pid, *cc));
        output.pcr_clock.restart();
        output.stamp_clock.restart();
        forwarder.has_tables = true;
        forwarder.apply_tables(output);
        forwarder
    }

    /// Records a packet that was sent as it is.
    pub(crate) fn adopted(&mut self, packet: Packet<'_>, at: Duration, output: &mut Output) {
        self.pass(packet, at, output, &mut Discard);
    }

    fn new(reader: TableReader, timeline: Timeline, mode: Mode, settings: &SpliceSettings) -> Self {
        Forwarder {
            reader,
            timeline,
            access: None,
            hold: None,
            picture_event: None,
            programme: Box::default(),
            early: EarlyPackets::default(),
            keeps_clock: true,
            leading: LeadingPictures::default(),
            pcr_pid: NULL_PID,
            routes: Box::new([OTHER; PIDS]),
            streams: Vec::new(),
            mode,
            queue: UnitQueue::new(settings.frame_wait_max, settings.frame_bytes_max),
            has_tables: false,
        }
    }

    /// Sends a clock reference before the first packet, unless that contains one: the first time stamps of a
    /// source must not precede the clock that they refer to.
    fn send_clock(
        &mut self,
        held: &[HeldPacket],
        start: usize,
        output: &mut Output,
        out: &mut impl PacketSink,
    ) {
        let Mode::Rewritten { shift, clock_floor, is_clock_due, .. } = &mut self.mode else { return };
        let target =
            self.streams.iter().find(|stream| stream.pid == self.pcr_pid).and_then(|stream| stream.target);
        let (Some(target), Some(clock), true) = (target, clock_at(held, start), *is_clock_due) else {
            return;
        };
        let clock = clock.wrapping_add(*shift);
        if held[start].clock.is_some() || clock_floor.is_some_and(|floor| clock <= floor) {
            return;
        }
        let cc = output.counter(target).unwrap_or(0);
        let mut packet = discontinuity_packet(target, cc);
        if output.clock.is_some_and(|last| (0..=CLOCK_GAP_MAX).contains(&(clock - last))) {
            packet[5] = 0;
        }
        // The PCR flag, followed by 0xFF bytes, is what `set_pcr` needs to find a PCR.
        packet[5] |= 0x10;
        set_pcr(&mut packet, wrap(clock) * 300);
        out.push(Packet::new(&packet));
        output.set_counter(target, cc);
        output.clock = Some(clock);
        (*is_clock_due, *clock_floor) = (false, None);
    }

    /// Takes one packet of the source and sends all packets whose units are complete.
    pub(crate) fn packet(
        &mut self,
        packet: Packet<'_>,
        at: Duration,
        output: &mut Output,
        out: &mut impl PacketSink,
    ) {
        if self.queue.advance(at) {
            self.queue.give_up_oldest(self.streams.iter_mut().map(|stream| &mut stream.unit));
            self.send_complete(output, out);
        }
        let route = usize::from(self.routes[usize::from(packet.pid())]);
        let mut has_change = false;
        if let Some(stream) = self.streams.get_mut(route)
            && stream.format == PayloadFormat::Pes
            && packet.is_valid()
        {
            has_change = stream.unit.packet(packet, self.queue.next_number(), self.queue.time());
            if has_change {
                self.queue.find_oldest(self.streams.iter().map(|stream| &stream.unit));
            }
        }
        if self.queue.is_idle() {
            self.queue.skip();
            self.forward(packet, at, output, out);
            return;
        }
        self.queue.push(packet, at);
        if has_change {
            self.send_complete(output, out);
        }
    }

    /// Sends the packets that precede the oldest incomplete unit.
    fn send_complete(&mut self, output: &mut Output, out: &mut impl PacketSink) {
        loop {
            // New tables may have removed a stream with an incomplete unit.
            self.queue.find_oldest(self.streams.iter().map(|stream| &stream.unit));
            let n = self.queue.n_complete();
            if n == 0 {
                return;
            }
            let waiting = self.queue.take();
            for (packet, at) in waiting.iter().take(n) {
                self.forward(packet, at, output, out);
            }
            self.queue.put_back(waiting, n);
        }
    }

    /// Returns the number of packets that wait for the end of a unit.
    #[cfg(test)]
    pub(crate) fn n_waiting(&self) -> usize {
        self.queue.n_waiting()
    }

    /// Sends what is complete of the source; it ends with whole units.
    pub(crate) fn finish(mut self, output: &mut Output, out: &mut impl PacketSink) {
        let waiting = self.queue.take();
        for ((packet, at), number) in waiting.iter().zip(self.queue.first_number()..) {
            let stream = self.streams.get(usize::from(self.routes[usize::from(packet.pid())]));
            if !stream.is_some_and(|stream| stream.unit.contains(number)) {
                self.forward(packet, at, output, out);
            }
        }
        while !self.early.is_empty() {
            self.send_early(true, output, out);
        }
    }

    fn forward(&mut self, packet: Packet<'_>, at: Duration, output: &mut Output, out: &mut impl PacketSink) {
        match self.mode {
            Mode::Unchanged => self.pass(packet, at, output, out),
            Mode::Rewritten { .. } => self.rewrite(packet, at, output, out),
        }
    }

    /// Forwards a packet unchanged and records what was sent, for the next source.
    fn pass(&mut self, packet: Packet<'_>, at: Duration, output: &mut Output, out: &mut impl PacketSink) {
        let pid = packet.pid();
        if packet.is_valid() && pid != NULL_PID {
            self.follow_tables(packet, output);
            if let Some(stream) = self.streams.get_mut(usize::from(self.routes[usize::from(pid)])) {
                stream.is_open |=
                    stream.format == PayloadFormat::Clock || packet.pusi() && packet.has_payload();
                if !stream.is_open {
                    return;
                }
                if pid == self.pcr_pid
                    && let Some(pcr) = packet.pcr()
                {
                    self.record_clock(pcr / 300, 0, at, output);
                }
                if packet.pusi() {
                    self.record_stamps(packet, pid, 0, at, output);
                }
            }
            output.set_counter(pid, packet.cc());
        }
        out.push(packet);
    }

    fn rewrite(&mut self, packet: Packet<'_>, at: Duration, output: &mut Output, out: &mut impl PacketSink) {
        let pid = packet.pid();
        if pid == NULL_PID {
            out.push(packet);
            return;
        }
        // Packets that a decoder discards are dropped: their PID and counter are meaningless.
        if !packet.is_valid() || !packet.has_payload() && !packet.has_adaptation() {
            return;
        }
        // The tables of the output replace those of the source, at the same rate.
        if self.follow_tables(packet, output) {
            output.send_pat(out);
            output.send_pmt(out);
        } else if packet.pusi() && pid == PAT_PID {
            output.send_pat(out);
        } else if packet.pusi() && self.reader.tables().is_some_and(|tables| tables.pmt_pid == pid) {
            output.send_pmt(out);
        } else {
            let index = usize::from(self.routes[usize::from(pid)]);
            if index >= self.streams.len() {
                return;
            }
            if self.streams[index].format == PayloadFormat::CueMessages {
                self.send_cue_messages(packet, index, output, out);
                return;
            }
            self.send_stream(packet, index, at, output, out);
            if !self.early.is_empty() {
                self.send_early(false, output, out);
            }
        }
    }

    /// Sends a packet of the programme, or lets it wait if its stream jumped before the programme.
    fn send_stream(
        &mut self,
        packet: Packet<'_>,
        index: usize,
        at: Duration,
        output: &mut Output,
        out: &mut impl PacketSink,
    ) {
        if self.is_early(packet, index) {
            self.early.push(packet, at, self.queue.time());
            return;
        }
        let mut bytes = *packet.bytes();
        if self.rewrite_stream(packet, &mut bytes, index, at, output) {
            out.push(Packet::new(&bytes));
        }
    }

    /// Determines how a PES packet that starts here relates to the programme, and returns whether this packet has to wait.
    fn is_early(&mut self, packet: Packet<'_>, index: usize) -> bool {
        let is_reference = self.is_reference(packet.pid());
        let stream = &mut self.streams[index];
        if stream.early.is_some() || !packet.pusi() {
            return stream.early.is_some();
        }
        if stream.format != PayloadFormat::Pes || is_reference {
            return false;
        }
        // The stream with the clock does not wait, and passes a jump together with it.
        let has_clock = stream.pid == self.pcr_pid;
        let Some(stamp) = stamps(packet).decode() else { return false };
        if has_clock && stream.relation == Relation::Near {
            return false;
        }
        match self.programme.relation(stream.relation, stamp, self.queue.time(), !has_clock) {
            Some(relation) => stream.relation = relation,
            None => stream.early = Some(stamp),
        }
        stream.early.is_some()
    }

    /// Sends the packets of streams that jumped before the programme, if it has followed them or they have waited long
    /// enough. `is_last`: whatever they have waited for.
    fn send_early(&mut self, is_last: bool, output: &mut Output, out: &mut impl PacketSink) {
        let now = self.queue.time();
        let is_overdue = is_last || self.early.is_overdue(now);
        let mut is_any_due = is_overdue;
        for stream in &mut self.streams {
            if let Some(stamp) = stream.early
                && let Some(relation) = self.programme.relation(stream.relation, stamp, now, !is_overdue)
            {
                (stream.relation, stream.early) = (relation, None);
                is_any_due = true;
            }
        }
        if !is_any_due {
            return;
        }
        for (packet, at) in self.early.take() {
            let packet = Packet::new(&packet);
            let index = usize::from(self.routes[usize::from(packet.pid())]);
            self.send_stream(packet, index, at, output, out);
        }
    }

    /// Reads a table packet of the source and returns whether the tables, and with them the routes, have
    /// changed.
    fn follow_tables(&mut self, packet: Packet<'_>, output: &mut Output) -> bool {
        // Between a new PAT and its PMT the PIDs with tables are unknown.
        let is_table = self.routes[usize::from(packet.pid())] == TABLE || self.reader.tables().is_none();
        let has_changed = is_table && self.reader.packet(packet) && self.reader.tables().is_some();
        if has_changed {
            self.apply_tables(output);
        }
        has_changed
    }

    /// Sends the cue messages that this packet completes.
    fn send_cue_messages(
        &mut self,
        packet: Packet<'_>,
        index: usize,
        output: &mut Output,
        out: &mut impl PacketSink,
    ) {
        let Mode::Rewritten { shift, .. } = &self.mode else { return };
        let stream = &mut self.streams[index];
        let Some(target) = stream.target else { return };
        for message in stream.cues.packet(packet, wrap(*shift)) {
            output.send_cue_message(target, &message, out);
        }
    }

    /// Rewrites `bytes`, a copy of a packet of the programme, to the PID, counter and time of the output. Returns
    /// false if it must be dropped.
    fn rewrite_stream(
        &mut self,
        packet: Packet<'_>,
        bytes: &mut PacketBytes,
        index: usize,
        at: Duration,
        output: &mut Output,
    ) -> bool {
        let Mode::Rewritten { shift, clock_floor, is_clock_due, declared } = &mut self.mode else {
            return true;
        };
        let shift = *shift;
        let stream = &mut self.streams[index];
        let (Some(target), pid) = (stream.target, stream.pid) else { return false };
        let pcr = packet.pcr();
        let mut has_payload = packet.has_payload();
        let stamp_shift = shift + stream.relation.anchor();
        let is_video = self.access.is_some_and(|it| it.pid() == pid) && stream.format == PayloadFormat::Pes;
        let is_hevc = is_video && stream.kind == PidKind::HEVC;
        let mut is_held = false;
        if is_video && let Some(hold) = &mut self.hold {
            let fits = stream.can_start(packet, &self.timeline, shift);
            let picture = hold.packet(packet, at, fits);
            is_held = picture == HeldPicture::LeftOut;
            if !is_held {
                // Nothing was missing if the source was only gathered longer than its picture took.
                let is_news = self.picture_event.take().is_none() || picture == HeldPicture::Anywhere;
                self.picture_event = is_news.then(|| hold.ended(picture, at));
                self.hold = None;
            } else if let Some(decode) = stamps(packet).decode() {
                // Other streams keep their distance to a picture that is not sent, too.
                self.programme.advance_reference(decode, self.queue.time());
                self.timeline.advance(decode);
            }
        }
        let is_leading =
            is_video && !is_held && is_pes_start(packet) && self.leading.picture(stamps(packet).pts);
        if has_payload {
            let can_pass = match stream.format {
                // The time stamps of scrambled packets, and those of a PES header that spans two packets,
                // cannot be read.
                PayloadFormat::Pes if packet.is_scrambled() || packet.pusi() && is_pes_header_cut(packet) => {
                    false
                }
                PayloadFormat::Pes if is_leading || is_held => false,
                PayloadFormat::Pes => {
                    stream.is_open || is_pes_start(packet) && stream.can_start(packet, &self.timeline, shift)
                }
                PayloadFormat::Sections | PayloadFormat::CueMessages => stream.is_open || packet.pusi(),
                PayloadFormat::Clock => true,
            };
            stream.is_open = can_pass;
            if !can_pass {
                stream.counter_shift = None;
                // The programme clock continues even while its stream is dropped.
                if pcr.is_none() || pid != self.pcr_pid {
                    return false;
                }
                remove_payload(bytes);
                has_payload = false;
            }
        }
        let cc = packet.cc();
        let counter_shift = *stream.counter_shift.get_or_insert_with(|| match output.counter(target) {
            None => 0,
            Some(last) => last.wrapping_add(u8::from(has_payload)).wrapping_sub(cc) & 0x0F,
        });
        set_cc(bytes, cc.wrapping_add(counter_shift));
        if !stream.is_open {
            // Without a payload the output counter does not increase, but the counter of the source does.
            stream.counter_shift = None;
        }
        if let Some(pcr) = pcr {
            let (base, extension) = (pcr / 300, pcr % 300);
            let is_programme = pid == self.pcr_pid;
            let clock = self.timeline.place(base).wrapping_add(shift);
            if is_programme && clock_floor.is_some_and(|floor| clock <= floor) {
                remove_pcr(bytes);
            } else {
                set_pcr(bytes, wrap(clock) * 300 + extension);
                if is_programme {
                    let step = output.clock.map(|last| clock - last);
                    if *is_clock_due && !step.is_some_and(|step| (0..=CLOCK_GAP_MAX).contains(&step)) {
                        *declared = Some(clock);
                    }
                    if *declared == Some(clock) {
                        set_discontinuity(bytes);
                    }
                    (*is_clock_due, *clock_floor) = (false, None);
                    if self.keeps_clock {
                        self.programme.advance_pcr(base, self.queue.time());
                    }
                    self.record_clock(base, shift, at, output);
                }
            }
        }
        if has_payload && is_hevc {
            let start = packet.payload_offset();
            self.leading.mark_broken_link(&mut bytes[start..]);
        }
        if has_payload && packet.pusi() {
            self.record_stamps(packet, target, stamp_shift, at, output);
            map_stamps(bytes, |stamp| (stamp + wrap(stamp_shift)) % STAMP_MODULUS);
        }
        set_pid(bytes, target);
        output.set_counter(target, bytes[3]);
        true
    }

    fn is_reference(&self, pid: u16) -> bool {
        self.access.is_some_and(|access| access.pid() == pid)
    }

    /// Records a clock of the source that is sent, as a 33-bit base.
    fn record_clock(&mut self, base: u64, shift: Ticks, at: Duration, output: &mut Output) {
        let clock = self.timeline.advance(base).wrapping_add(shift);
        output.record_clock(clock, at);
    }

    /// Records the time stamps of a packet of the source that is sent on `target`.
    fn record_stamps(
        &mut self,
        packet: Packet<'_>,
        target: u16,
        shift: Ticks,
        at: Duration,
        output: &mut Output,
    ) {
        let stamps = stamps(packet);
        let (Some(decode), Some(presentation)) = (stamps.decode(), stamps.pts) else { return };
        let decode = if self.is_reference(packet.pid()) {
            self.programme.advance_reference(decode, self.queue.time());
            let decode = self.timeline.advance(decode);
            output.record_unit(packet, decode.wrapping_add(shift));
            decode
        } else {
            self.timeline.place(decode)
        };
        let presentation = self.timeline.place(presentation);
        output.record_stamps(target, decode.wrapping_add(shift), presentation.wrapping_add(shift), at);
    }

    /// Applies the tables of the source, at the start and after every change.
    fn apply_tables(&mut self, output: &mut Output) {
        let Some(tables) = self.reader.tables() else { return };
        self.pcr_pid = tables.pmt.pcr_pid;
        self.access = RandomAccess::new(tables);
        self.hold = self.hold.take().and_then(|hold| hold.with_access(self.access?));
        let mut before = std::mem::take(&mut self.streams);
        let is_unchanged = matches!(self.mode, Mode::Unchanged);
        let assigned = output.assign(tables, |pid, kind| {
            let same = before.iter().find(|stream| stream.pid == pid && stream.kind == kind);
            if is_unchanged { Some(pid) } else { same.and_then(|stream| stream.target) }
        });
        self.routes.fill(OTHER);
        for (at, WantedPid { kind, language, pid, .. }) in assigned.wanted.iter().enumerate() {
            // If a PID is announced twice, the first entry counts.
            if usize::from(TABLE) <= self.streams.len() || self.routes[usize::from(*pid)] != OTHER {
                continue;
            }
            let stream = tables.pmt.streams.get(at);
            let target = assigned.pids[at];
            let same = before.iter().position(|stream| stream.pid == *pid && stream.kind == *kind);
            let forwarded = match same {
                Some(same) => ForwardedStream { target, ..before.swap_remove(same) },
                None => ForwardedStream {
                    kind: *kind,
                    format: stream
                        .map_or(PayloadFormat::Clock, |it| PayloadFormat::from_stream(it, &tables.pmt)),
                    pid: *pid,
                    target,
                    counter_shift: None,
                    // A PID that passed before it was announced continues.
                    is_open: is_unchanged && self.has_tables,
                    floor: target.and_then(|target| output.floor(target)),
                    n_stamps_awaited: match stream.map(|it| tables.pmt.kind(it)) {
                        // The start point was chosen on the reference stream, with or without stamps.
                        Some(StreamKind::Video | StreamKind::Audio) if !self.is_reference(*pid) => {
                            STAMPS_AWAITED_MAX
                        }
                        _ => 0,
                    },
                    relation: Relation::default(),
                    early: None,
                    unit: Unit::default(),
                    cues: CueReader::default(),
                },
            };
            if is_unchanged {
                output.pid_allocation.take_pid(*kind, *pid);
            }
            if let Some(target) = target {
                output.pid_allocation.set_language(target, *language);
            }
            self.routes[usize::from(*pid)] = self.streams.len() as u8;
            self.streams.push(forwarded);
        }
        for pid in tables.pat.programs.iter().map(|program| program.1).chain([PAT_PID]) {
            if self.reader.is_table(pid) {
                self.routes[usize::from(pid)] = TABLE;
            }
        }
        let (streams, routes) = (&self.streams, &self.routes);
        let waits = |pid: u16| {
            streams.get(usize::from(routes[usize::from(pid)])).is_some_and(|it| it.early.is_some())
        };
        self.early.retain(waits);
        if is_unchanged {
            output.tables = Some(tables.clone());
        } else {
            output.announce(tables, &assigned.pids, assigned.clock);
        }
        output.reference = self.access.and_then(|access| {
            self.streams.iter().find(|stream| stream.pid == access.pid()).and_then(|stream| stream.target)
        });
    }
}

/// Sets the counters of the first tables so that the tables of the source continue them.
fn continue_counters(held: &[HeldPacket], start: usize, output: &mut Output) {
    let Some(tables) = output.tables.as_ref() else { return };
    let n_packets =
        [(PAT_PID, tables.pat.packets(0).len()), (tables.pmt_pid, tables.pmt.packets(0, 0).len())];
    for (pid, n_packets) in n_packets {
        let of_table = |held: &&HeldPacket| {
            let packet = Packet::new(&held.packet);
            packet.pid() == pid && packet.has_payload()
        };
        let cc = |held: &HeldPacket| Packet::new(&held.packet).cc();
        let before = held[..start].iter().rev().find(of_table).map(cc);
        let last =
            before.or_else(|| held[start..].iter().find(of_table).map(|held| cc(held).wrapping_sub(1)));
        output.set_counter(pid, last.unwrap_or(0).wrapping_sub(n_packets as u8));
    }
}

/// Returns the programme clock at a packet, interpolated between the last clock before it and the next.
fn clock_at(held: &[HeldPacket], index: usize) -> Option<Ticks> {
    let clock = |(at, held): (usize, &HeldPacket)| held.clock.map(|clock| (at, clock));
    let before = held[..=index].iter().enumerate().rev().find_map(clock);
    let after = held[index..].iter().enumerate().find_map(clock);
    let (at, before) = before?;
    // Always less than the next clock, whatever the clocks of a faulty source are.
    let share = after.map_or(0, |(n_more, after)| {
        let span = (after - before).clamp(0, CLOCK_GAP_MAX);
        span * (index - at) as Ticks / (index - at + n_more).max(1) as Ticks
    });
    Some(before + share)
}
