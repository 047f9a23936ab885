//! The state of the output that the next packet must agree with.
use std::time::Duration;

use crate::splice::history::{AccessUnit, SentUnits};
use crate::splice::pace::{JUMP, OutputClock, Ticks, ticks};
use crate::splice::pids::{Language, OutputPid, PidAllocation, PidKind, WantedPid};
use crate::ts::cue::CueMessage;
use crate::ts::packet::{NULL_PID, PAT_PID, Packet, PacketBytes, PacketSink};
use crate::ts::tables::{Pat, Pmt, Tables};

/// Number of possible PIDs.
pub(crate) const PIDS: usize = 0x2000;
/// Marks a PID without packets.
const UNUSED: u8 = 0xFF;

/// The state of the output; outlives every source.
#[derive(Debug)]
pub(crate) struct Output {
    /// Last continuity counter sent for each PID.
    counters: Box<[u8; PIDS]>,
    /// The tables as last sent; `None` before the first output.
    pub(crate) tables: Option<Tables>,
    pub(crate) pid_allocation: PidAllocation,
    /// Last PCR sent, in output time.
    pub(crate) clock: Option<Ticks>,
    /// PID of the reference stream of the programme: its video, otherwise its audio.
    pub(crate) reference: Option<u16>,
    /// Output clock by the PCR, while the source has one.
    pub(crate) pcr_clock: OutputClock,
    /// Output clock by the time stamps of the reference stream.
    pub(crate) stamp_clock: OutputClock,
    /// Arrival of the newest packet with a time.
    last_arrival: Option<Duration>,
    /// The last units of the reference stream.
    pub(crate) sent_units: SentUnits,
}

impl Output {
    pub(crate) fn new() -> Self {
        Output {
            counters: Box::new([UNUSED; PIDS]),
            tables: None,
            pid_allocation: PidAllocation::default(),
            clock: None,
            reference: None,
            pcr_clock: OutputClock::default(),
            stamp_clock: OutputClock::default(),
            last_arrival: None,
            sent_units: SentUnits::default(),
        }
    }

    /// Returns the last counter sent on `pid`.
    pub(crate) fn counter(&self, pid: u16) -> Option<u8> {
        Some(self.counters[usize::from(pid)]).filter(|cc| *cc != UNUSED)
    }

    pub(crate) fn set_counter(&mut self, pid: u16, cc: u8) {
        if let Some(counter) = self.counters.get_mut(usize::from(pid)) {
            *counter = cc & 0x0F;
        }
    }

    /// Returns the counter of the next packet with payload on `pid`.
    fn next_counter(&self, pid: u16) -> u8 {
        self.counter(pid).map_or(0, |cc| (cc + 1) & 0x0F)
    }

    /// Sets the tables that announce `source` on the PIDs of the output.
    ///
    /// `pids` contains the PID of each of its streams, `None` for an omitted stream. Transport stream id,
    /// programme number and PMT PID stay the same as in the first tables; versions increase if the content
    /// has changed.
    pub(crate) fn announce(&mut self, source: &Tables, pids: &[Option<u16>], pcr_pid: u16) {
        let sent = self.tables.as_ref();
        let (stream_id, program, pmt_pid) = sent
            .map_or((source.pat.stream_id, source.pmt.program, source.pmt_pid), |sent| {
                (sent.pat.stream_id, sent.pmt.program, sent.pmt_pid)
            });
        let mut pat = Pat { stream_id, version: source.pat.version, programs: vec![(program, pmt_pid)] };
        let streams = source.pmt.streams.iter().zip(pids);
        let mut pmt = Pmt {
            program,
            version: source.pmt.version,
            pcr_pid,
            program_info: source.pmt.program_info.clone(),
            streams: streams
                .filter_map(|(stream, pid)| {
                    let mut stream = stream.clone();
                    stream.pid = (*pid)?;
                    Some(stream)
                })
                .collect(),
        };
        if let Some(sent) = sent {
            let next_version = |same: bool, version: u8| if same { version } else { (version + 1) & 0x1F };
            pat.version = sent.pat.version;
            pat.version = next_version(pat == sent.pat, sent.pat.version);
            pmt.version = sent.pmt.version;
            pmt.version = next_version(pmt == sent.pmt, sent.pmt.version);
        }
        self.tables = Some(Tables { pat, pmt, pmt_pid });
    }

    pub(crate) fn send_pat(&mut self, out: &mut impl PacketSink) {
        let cc = self.next_counter(PAT_PID);
        let packets = self.tables.as_ref().map(|tables| tables.pat.packets(cc));
        self.send_table(PAT_PID, packets.unwrap_or_default(), out);
    }

    pub(crate) fn send_pmt(&mut self, out: &mut impl PacketSink) {
        let Some(tables) = &self.tables else { return };
        let pid = tables.pmt_pid;
        let packets = tables.pmt.packets(pid, self.next_counter(pid));
        self.send_table(pid, packets, out);
    }

    pub(crate) fn send_cue_message(&mut self, pid: u16, message: &CueMessage, out: &mut impl PacketSink) {
        self.send_table(pid, message.packets(pid, self.next_counter(pid)), out);
    }

    fn send_table(&mut self, pid: u16, packets: Vec<PacketBytes>, out: &mut impl PacketSink) {
        for packet in packets {
            out.push(Packet::new(&packet));
            self.set_counter(pid, packet[3]);
        }
    }

    /// Records the times of a PES packet sent on `pid`: decoding and presentation, in output time.
    pub(crate) fn record_stamps(&mut self, pid: u16, decode: Ticks, presentation: Ticks, at: Duration) {
        if let Some(entry) = self.pid_allocation.get_mut(pid) {
            entry.record(decode, presentation);
        }
        if self.reference == Some(pid) {
            self.stamp_clock.observe(decode, at);
        }
        self.last_arrival = Some(at);
    }

    /// Returns the time since the newest packet.
    pub(crate) fn silence(&self, now: Duration) -> Duration {
        self.last_arrival.map_or(Duration::ZERO, |last| now.saturating_sub(last))
    }

    /// Returns by how much sources have made the output later since the first change.
    pub(crate) fn excess_lead(&self) -> Ticks {
        if self.pcr_clock.lead().is_some() { self.pcr_clock.excess() } else { self.stamp_clock.excess() }
    }

    /// Records a PES packet of the reference stream, as the source sent it, that is decoded at this time.
    pub(crate) fn record_unit(&mut self, packet: Packet<'_>, decode: Ticks) {
        if let Some(unit) = AccessUnit::from_packet(packet) {
            self.sent_units.push(unit, decode);
        }
    }

    /// Returns the last decoding time on `pid`.
    pub(crate) fn last_decode(&self, pid: u16) -> Option<Ticks> {
        self.pid_allocation.get(pid)?.decode
    }

    pub(crate) fn record_clock(&mut self, clock: Ticks, at: Duration) {
        self.clock = Some(clock);
        self.pcr_clock.observe(clock, at);
    }

    /// Returns the earliest time at which a stream on `pid` may start after a change. A stream that is new in
    /// the output is compared with the previous reference stream.
    pub(crate) fn floor(&self, pid: u16) -> Option<Ticks> {
        let floor = |pid: u16| self.pid_allocation.get(pid).and_then(OutputPid::floor);
        floor(pid).or_else(|| floor(self.reference?))
    }

    /// Returns the shift by which a PES packet with these times is presented directly after the last one on `pid`, or
    /// after the last one of the previous reference stream if `pid` is new, and decoded after it.
    pub(crate) fn direct_shift(&self, pid: u16, decode: Ticks, presentation: Ticks) -> Option<Ticks> {
        let after = |pid: u16| self.pid_allocation.get(pid).and_then(OutputPid::after_last);
        let (next_decode, next_presentation) = after(pid).or_else(|| after(self.reference?))?;
        Some((next_presentation - presentation).max(next_decode - decode))
    }

    /// Removes time stamps far ahead of the programme: a stream with an unrelated clock must not block its
    /// successor for hours.
    pub(crate) fn remove_stray_stamps(&mut self, lead: Ticks, now: Duration) {
        let limit = lead.saturating_add(ticks(now)).saturating_add(JUMP);
        for entry in self.pid_allocation.iter_mut() {
            entry.newest = entry.newest.filter(|newest| *newest <= limit);
        }
    }

    /// Returns the output PIDs for the streams of `source` and for its clock; `current` returns the PID that
    /// a stream has already.
    pub(crate) fn assign(
        &mut self,
        source: &Tables,
        current: impl Fn(u16, PidKind) -> Option<u16>,
    ) -> Assigned {
        let mut wanted: Vec<WantedPid> = Vec::new();
        for stream in &source.pmt.streams {
            let (pid, kind) = (stream.pid, PidKind::from_stream(stream));
            let language = Language::from_stream(stream);
            wanted.push(WantedPid { kind, language, pid, current: current(pid, kind) });
        }
        let pcr_pid = source.pmt.pcr_pid;
        let clock_alone =
            pcr_pid != NULL_PID && source.pmt.streams.iter().all(|stream| stream.pid != pcr_pid);
        if clock_alone {
            let (kind, pid) = (PidKind::CLOCK, pcr_pid);
            wanted.push(WantedPid { kind, language: None, pid, current: current(pid, kind) });
        }
        let pmt_pid = self.tables.as_ref().map_or(source.pmt_pid, |tables| tables.pmt_pid);
        let pids = self.pid_allocation.assign(&wanted, |pid| pid != pmt_pid);
        let clock = wanted.iter().position(|entry| entry.pid == pcr_pid).and_then(|at| pids[at]);
        Assigned { wanted, pids, clock: clock.unwrap_or(NULL_PID) }
    }
}

/// The output PIDs of the streams of a source.
#[derive(Debug)]
pub(crate) struct Assigned {
    /// First the streams in the order of the PMT, then a separate clock.
    pub(crate) wanted: Vec<WantedPid>,
    /// Output PID of each entry; `None` if no PID is left.
    pub(crate) pids: Vec<Option<u16>>,
    /// Output PID of the clock.
    pub(crate) clock: u16,
}
