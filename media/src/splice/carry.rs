//! A source whose output has begun: its packets pass, unchanged or carried onto the output's PIDs, counters and time.
use std::time::Duration;

use bytes::BytesMut;

use crate::splice::gather::{Begin, Gathering, Held, pid_of};
use crate::splice::output::{Output, PIDS};
use crate::splice::pace::{Line, SECOND, Ticks};
use crate::splice::pids::Kind;
use crate::splice::timeline::{Timeline, wrap};
use crate::ts::clock::{RandomAccess, STAMP_MODULUS, is_pes_start, map_stamps, stamps};
use crate::ts::packet::{
    NULL_PID, PAT_PID, Packet, PacketBytes, discontinuity_packet, packets_mut, set_cc, set_discontinuity,
    set_pcr, set_pid,
};
use crate::ts::tables::{ElementaryStream, TableReader};

/// The standard allows this much between two values of the programme clock; a greater step is declared.
const CLOCK_GAP_MAX: Ticks = SECOND / 10;

/// A PID of the source that is not followed.
const OTHER: u8 = 0xFF;
/// A PID of the source that carries tables.
const TABLE: u8 = 0xFE;

/// The present source on its way to the output.
#[derive(Debug)]
pub(crate) struct Carrier {
    reader: TableReader,
    timeline: Timeline,
    access: Option<u16>,
    pcr_pid: u16,
    /// Per PID of the source: index into `streams`, or [`TABLE`], or [`OTHER`].
    routes: Box<[u8; PIDS]>,
    streams: Vec<Carried>,
    mode: Mode,
    /// The first tables have been taken.
    has_begun: bool,
}

/// What happens to the packets.
#[derive(Debug)]
enum Mode {
    /// The first source, one programme: all PIDs pass as they are, announced or not.
    Unchanged,
    /// Any other: only the programme passes.
    Rewritten {
        /// Added to every time stamp.
        shift: Ticks,
        /// The last clock of the source before: the first of this one must lie after it.
        clock_floor: Option<Ticks>,
        /// No clock was sent yet: the first may have to declare its step.
        is_clock_due: bool,
        /// The clock that declared a step. If its packet is sent twice, both declare it.
        declared: Option<Ticks>,
    },
}

/// What the payload of a PID is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Pes,
    /// Sections without times in them.
    Sections,
    /// Nothing but the programme clock.
    Clock,
}

/// One stream of the source.
#[derive(Debug)]
struct Carried {
    kind: Kind,
    form: Form,
    pid: u16,
    /// Where it appears; `None` where no PID is left for it.
    target: Option<u16>,
    /// Added to its counters; `None` before its first packet.
    turn: Option<u8>,
    /// Its first PES packet or section has begun.
    is_open: bool,
    /// Its first time stamp must not lie before this one, in output time.
    floor: Option<Ticks>,
}

impl Form {
    fn of(stream: &ElementaryStream) -> Form {
        match stream.stream_type {
            // Private sections, object and data carousels. Those with times in them (0x86: cue messages) are not
            // here, so that they end at a change of source: they never look like a PES packet.
            0x05 | 0x0A..=0x0D => Form::Sections,
            _ => Form::Pes,
        }
    }
}

impl Carrier {
    /// Begins the output of a source: tables first, then what was held from the chosen place on.
    pub(crate) fn begin(
        gathering: Gathering,
        begin: &Begin,
        output: &mut Output,
        out: &mut BytesMut,
    ) -> Self {
        let Gathering { held, reader, timeline, .. } = gathering;
        let is_first = output.tables.is_none();
        let n_programs =
            reader.tables().map_or(0, |it| it.pat.programs.iter().filter(|it| it.0 != 0).count());
        let mode = if is_first && n_programs == 1 {
            Mode::Unchanged
        } else {
            let clock_floor = output.clock.filter(|_| begin.keeps_clock);
            Mode::Rewritten { shift: begin.shift, clock_floor, is_clock_due: !is_first, declared: None }
        };
        let routes = Box::new([OTHER; PIDS]);
        let mut carrier = Carrier {
            reader,
            timeline,
            access: None,
            pcr_pid: NULL_PID,
            routes,
            streams: Vec::new(),
            mode,
            has_begun: false,
        };
        output.clock_line.restart();
        output.stamp_line.restart();
        carrier.take_tables(output);
        carrier.has_begun = true;
        if carrier.pcr_pid == NULL_PID || !begin.keeps_clock {
            output.clock_line = Line::default();
        }
        if matches!(carrier.mode, Mode::Unchanged) {
            continue_counters(&held, begin.index, output);
        }
        output.send_pat(out);
        output.send_pmt(out);
        carrier.send_clock(&held, begin.index, output, out);
        for held in &held[begin.index..] {
            carrier.packet(&held.packet, held.at, output, out);
        }
        carrier
    }

    /// The first time stamps of the new source must not come before the clock they refer to: unless it is in the
    /// first packet, one is put in front of it.
    fn send_clock(&mut self, held: &[Held], begin: usize, output: &mut Output, out: &mut BytesMut) {
        let Mode::Rewritten { shift, clock_floor, is_clock_due, .. } = &mut self.mode else { return };
        let target =
            self.streams.iter().find(|stream| stream.pid == self.pcr_pid).and_then(|stream| stream.target);
        let (Some(target), Some(clock), true) = (target, clock_at(held, begin), *is_clock_due) else {
            return;
        };
        let clock = clock.wrapping_add(*shift);
        if held[begin].clock.is_some() || clock_floor.is_some_and(|floor| clock <= floor) {
            return;
        }
        let cc = output.counter(target).unwrap_or(0);
        let mut packet = discontinuity_packet(target, cc);
        if output.clock.is_some_and(|last| (0..=CLOCK_GAP_MAX).contains(&(clock - last))) {
            packet[5] = 0;
        }
        // A flag and, behind it, a field of ones: what the setter needs to find a clock.
        packet[5] |= 0x10;
        set_pcr(&mut packet, wrap(clock) * 300);
        out.extend_from_slice(&packet);
        output.set_counter(target, cc);
        output.clock = Some(clock);
        (*is_clock_due, *clock_floor) = (false, None);
    }

    pub(crate) fn packet(
        &mut self,
        bytes: &PacketBytes,
        at: Duration,
        output: &mut Output,
        out: &mut BytesMut,
    ) {
        match self.mode {
            Mode::Unchanged => self.pass(bytes, at, output, out),
            Mode::Rewritten { .. } => self.rewrite(bytes, at, output, out),
        }
    }

    /// One copy; the rest is to know what was sent, for the next source.
    fn pass(&mut self, bytes: &PacketBytes, at: Duration, output: &mut Output, out: &mut BytesMut) {
        let packet = Packet::new(bytes);
        let pid = packet.pid();
        if packet.is_valid() && pid != NULL_PID {
            self.follow_tables(packet, output);
            if let Some(stream) = self.streams.get_mut(usize::from(self.routes[usize::from(pid)])) {
                stream.is_open |= stream.form == Form::Clock || packet.pusi() && packet.has_payload();
                if !stream.is_open {
                    return;
                }
                self.note_sent(packet, pid, pid, at, 0, output);
            }
            output.set_counter(pid, packet.cc());
        }
        out.extend_from_slice(bytes);
    }

    fn rewrite(&mut self, bytes: &PacketBytes, at: Duration, output: &mut Output, out: &mut BytesMut) {
        let packet = Packet::new(bytes);
        let pid = packet.pid();
        if pid == NULL_PID {
            out.extend_from_slice(bytes);
            return;
        }
        // What a decoder would discard anyway is left out: its PID and counter mean nothing.
        if !packet.is_valid() || !packet.has_payload() && !packet.has_adaptation() {
            return;
        }
        // Ours in place of the source's tables, at the source's pace.
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
            let start = out.len();
            out.extend_from_slice(bytes);
            let packet = packets_mut(&mut out[start..]).next().expect("one packet was appended");
            if !self.rewrite_stream(packet, index, at, output) {
                out.truncate(start);
            }
        }
    }

    /// Reads a packet of the source's tables; true when they have changed, and so has where its streams go.
    fn follow_tables(&mut self, packet: Packet<'_>, output: &mut Output) -> bool {
        // Between a new table of programmes and its map it is not known which PIDs carry tables.
        let is_table = self.routes[usize::from(packet.pid())] == TABLE || self.reader.tables().is_none();
        let has_changed = is_table && self.reader.packet(packet.bytes()) && self.reader.tables().is_some();
        if has_changed {
            self.take_tables(output);
        }
        has_changed
    }

    /// Puts a packet of the programme onto the output's PID, counter and time; false if it is to be left out.
    fn rewrite_stream(
        &mut self,
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
        let packet = Packet::new(bytes);
        if packet.has_payload() {
            let can_pass = match stream.form {
                // The time stamps of scrambled packets cannot be read, nor those of a header over two packets.
                Form::Pes if packet.is_scrambled() || packet.pusi() && is_header_cut(packet) => false,
                Form::Pes => {
                    stream.is_open || is_pes_start(packet) && is_above(packet, stream, &self.timeline, shift)
                }
                Form::Sections => stream.is_open || packet.pusi(),
                Form::Clock => true,
            };
            stream.is_open = can_pass;
            if !can_pass {
                stream.turn = None;
                // The programme's clock goes on even while its stream cannot.
                if packet.pcr().is_none() || pid != self.pcr_pid {
                    return false;
                }
                remove_payload(bytes);
            }
        }
        let packet = Packet::new(bytes);
        let (has_payload, cc) = (packet.has_payload(), packet.cc());
        let turn = *stream.turn.get_or_insert_with(|| match output.counter(target) {
            None => 0,
            Some(last) => last.wrapping_add(u8::from(has_payload)).wrapping_sub(cc) & 0x0F,
        });
        set_cc(bytes, cc.wrapping_add(turn));
        if !stream.is_open {
            // Without a payload the counter stands still, but the source's goes on.
            stream.turn = None;
        }
        if let Some(pcr) = Packet::new(bytes).pcr() {
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
                }
            }
        }
        self.note_sent(Packet::new(bytes), pid, target, at, shift, output);
        map_stamps(bytes, |stamp| (stamp + wrap(shift)) % STAMP_MODULUS);
        set_pid(bytes, target);
        output.set_counter(target, bytes[3]);
        true
    }

    /// Keeps the book of clocks and time stamps sent. The PCR of the packet has been shifted already where it is to
    /// be, its time stamps have not.
    fn note_sent(
        &mut self,
        packet: Packet<'_>,
        from: u16,
        target: u16,
        at: Duration,
        shift: Ticks,
        output: &mut Output,
    ) {
        if from == self.pcr_pid
            && let Some(pcr) = packet.pcr()
        {
            let source_clock = wrap(((pcr / 300) as Ticks).wrapping_sub(shift));
            let clock = self.timeline.advance(source_clock).wrapping_add(shift);
            output.sent_clock(clock, at);
        }
        if packet.pusi() {
            let stamps = stamps(packet);
            let (Some(decode), Some(show)) = (stamps.decode(), stamps.pts) else { return };
            let decode = if self.access == Some(from) {
                self.timeline.advance(decode)
            } else {
                self.timeline.place(decode)
            };
            let show = self.timeline.place(show);
            output.sent_stamps(target, decode.wrapping_add(shift), show.wrapping_add(shift), at);
        }
    }

    /// Follows the source's tables, at the beginning and whenever they change.
    fn take_tables(&mut self, output: &mut Output) {
        let Some(tables) = self.reader.tables() else { return };
        self.pcr_pid = tables.pmt.pcr_pid;
        self.access = RandomAccess::of(tables).map(pid_of);
        let mut before = std::mem::take(&mut self.streams);
        let is_unchanged = matches!(self.mode, Mode::Unchanged);
        let assigned = output.assign(tables, |pid, kind| {
            let same = before.iter().find(|stream| stream.pid == pid && stream.kind == kind);
            if is_unchanged { Some(pid) } else { same.and_then(|stream| stream.target) }
        });
        self.routes.fill(OTHER);
        for (at, (kind, pid, _)) in assigned.wanted.iter().enumerate() {
            // A PID that is named twice is what it was named first.
            if usize::from(TABLE) <= self.streams.len() || self.routes[usize::from(*pid)] != OTHER {
                continue;
            }
            let target = assigned.pids[at];
            let same = before.iter().position(|stream| stream.pid == *pid && stream.kind == *kind);
            let carried = match same {
                Some(same) => Carried { target, ..before.swap_remove(same) },
                None => Carried {
                    kind: *kind,
                    form: tables.pmt.streams.get(at).map_or(Form::Clock, Form::of),
                    pid: *pid,
                    target,
                    turn: None,
                    // One that passed before it was announced goes on.
                    is_open: is_unchanged && self.has_begun,
                    floor: target.and_then(|target| output.floor(target)),
                },
            };
            if is_unchanged {
                output.allotment.own(*kind, *pid);
            }
            self.routes[usize::from(*pid)] = self.streams.len() as u8;
            self.streams.push(carried);
        }
        for pid in tables.pat.programs.iter().map(|program| program.1).chain([PAT_PID]) {
            if self.reader.is_table(pid) {
                self.routes[usize::from(pid)] = TABLE;
            }
        }
        if is_unchanged {
            output.tables = Some(tables.clone());
        } else {
            output.announce(tables, &assigned.pids, assigned.clock);
        }
        output.reference = self.access.and_then(|pid| {
            self.streams.iter().find(|stream| stream.pid == pid).and_then(|stream| stream.target)
        });
    }
}

/// Lets our first tables have the counters just before those that follow, so that the source's own go on from them.
fn continue_counters(held: &[Held], begin: usize, output: &mut Output) {
    let Some(tables) = output.tables.as_ref() else { return };
    let n_packets =
        [(PAT_PID, tables.pat.packets(0).len()), (tables.pmt_pid, tables.pmt.packets(0, 0).len())];
    for (pid, n_packets) in n_packets {
        let of_table = |held: &&Held| {
            let packet = Packet::new(&held.packet);
            packet.pid() == pid && packet.has_payload()
        };
        let cc = |held: &Held| Packet::new(&held.packet).cc();
        let before = held[..begin].iter().rev().find(of_table).map(cc);
        let last =
            before.or_else(|| held[begin..].iter().find(of_table).map(|held| cc(held).wrapping_sub(1)));
        output.set_counter(pid, last.unwrap_or(0).wrapping_sub(n_packets as u8));
    }
}

/// The programme clock at a packet: the last before it, moved on by its share of the way to the next.
fn clock_at(held: &[Held], index: usize) -> Option<Ticks> {
    let clock = |(at, held): (usize, &Held)| held.clock.map(|clock| (at, clock));
    let before = held[..=index].iter().enumerate().rev().find_map(clock);
    let after = held[index..].iter().enumerate().find_map(clock);
    let (at, before) = before?;
    // Less than the next in any case, whatever the clocks of a strange source are.
    let share = after.map_or(0, |(n_more, after)| {
        let way = (after - before).clamp(0, CLOCK_GAP_MAX);
        way * (index - at) as Ticks / (index - at + n_more).max(1) as Ticks
    });
    Some(before + share)
}

/// The PES packet that begins here is decoded after the last of the source before.
fn is_above(packet: Packet<'_>, stream: &Carried, timeline: &Timeline, shift: Ticks) -> bool {
    let Some(floor) = stream.floor else { return true };
    stamps(packet).decode().is_some_and(|stamp| timeline.place(stamp).wrapping_add(shift) >= floor)
}

/// The header of the PES packet that begins here goes on in the next packet, so that its time stamps cannot be
/// changed.
fn is_header_cut(packet: Packet<'_>) -> bool {
    match packet.payload() {
        [_, _, _, _, _, _, _, flags, _, ..] => {
            let needed = if flags & 0x40 != 0 { 19 } else { 14 };
            flags & 0x80 != 0 && packet.payload().len() < needed
        }
        _ => true,
    }
}

/// Turns the PCR, and what may follow it in the adaptation field, into stuffing.
fn remove_pcr(bytes: &mut PacketBytes) {
    let length = usize::from(bytes[4]).min(183);
    bytes[5] &= 0xE0;
    bytes[6..5 + length].fill(0xFF);
}

/// Leaves nothing but the adaptation field, and of that nothing that speaks of the payload.
fn remove_payload(bytes: &mut PacketBytes) {
    let end = Packet::new(bytes).payload_offset();
    bytes[end..].fill(0xFF);
    bytes[1] &= !0x40;
    bytes[3] = bytes[3] & 0x0F | 0x20;
    bytes[4] = 183;
    // The clock alone stays: what follows it could be as long as the old field at most, and reads as stuffing.
    bytes[5] &= 0x90;
    bytes[12..].fill(0xFF);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_removed_pcr_leaves_a_valid_packet() {
        let mut bytes = [0u8; 188];
        bytes[..6].copy_from_slice(&[0x47, 1, 0, 0x30, 20, 0x50]);
        remove_pcr(&mut bytes);
        let packet = Packet::new(&bytes);
        assert_eq!(packet.pcr(), None);
        assert!(packet.random_access());
        assert_eq!(packet.payload().len(), 188 - 25);
        assert!(bytes[6..25].iter().all(|byte| *byte == 0xFF));
        assert_eq!(bytes[25], 0);
    }
}
