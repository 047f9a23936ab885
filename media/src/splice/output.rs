//! What was sent so far, as far as the next packet must agree with it.
use std::time::Duration;

use bytes::BytesMut;

use crate::splice::pace::{JUMP, Line, Ticks, ticks};
use crate::splice::pids::{Allotment, Allotted, Kind};
use crate::ts::packet::{NULL_PID, PACKET, PAT_PID, PacketBytes};
use crate::ts::tables::{Pat, Pmt, Tables};

/// Number of PIDs there are.
pub(crate) const PIDS: usize = 0x2000;
/// No packet was sent on this PID yet.
const UNUSED: u8 = 0xFF;

/// The state of the output; outlives every source.
#[derive(Debug)]
pub(crate) struct Output {
    /// Last continuity counter sent, per PID.
    counters: Box<[u8; PIDS]>,
    /// Tables as last sent; `None` before anything was.
    pub(crate) tables: Option<Tables>,
    pub(crate) allotment: Allotment,
    /// Last PCR sent, in output time.
    pub(crate) clock: Option<Ticks>,
    /// PID of the stream that stands for the programme: its video, or its sound.
    pub(crate) reference: Option<u16>,
    /// The programme by its PCR, while the source has one.
    pub(crate) clock_line: Line,
    /// The programme by the time stamps of the reference stream.
    pub(crate) stamp_line: Line,
}

impl Output {
    pub(crate) fn new() -> Self {
        Output {
            counters: Box::new([UNUSED; PIDS]),
            tables: None,
            allotment: Allotment::default(),
            clock: None,
            reference: None,
            clock_line: Line::default(),
            stamp_line: Line::default(),
        }
    }

    /// Last counter sent on `pid`.
    pub(crate) fn counter(&self, pid: u16) -> Option<u8> {
        Some(self.counters[usize::from(pid)]).filter(|cc| *cc != UNUSED)
    }

    pub(crate) fn set_counter(&mut self, pid: u16, cc: u8) {
        if let Some(counter) = self.counters.get_mut(usize::from(pid)) {
            *counter = cc & 0x0F;
        }
    }

    /// The counter of the next packet with payload on `pid`.
    fn next_counter(&self, pid: u16) -> u8 {
        self.counter(pid).map_or(0, |cc| (cc + 1) & 0x0F)
    }

    /// The tables that announce `source` on the PIDs of the output: `pids` has one for each of its streams,
    /// `None` for a stream left out. Transport stream, programme number and PID of the map stay what they were at
    /// first; versions rise when the content differs from what was sent.
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
            let rise = |same: bool, version: u8| if same { version } else { (version + 1) & 0x1F };
            pat.version = sent.pat.version;
            pat.version = rise(pat == sent.pat, sent.pat.version);
            pmt.version = sent.pmt.version;
            pmt.version = rise(pmt == sent.pmt, sent.pmt.version);
        }
        self.tables = Some(Tables { pat, pmt, pmt_pid });
    }

    pub(crate) fn send_pat(&mut self, out: &mut BytesMut) {
        let cc = self.next_counter(PAT_PID);
        let packets = self.tables.as_ref().map(|tables| tables.pat.packets(cc));
        self.send_table(PAT_PID, packets.unwrap_or_default(), out);
    }

    pub(crate) fn send_pmt(&mut self, out: &mut BytesMut) {
        let Some(tables) = &self.tables else { return };
        let pid = tables.pmt_pid;
        let packets = tables.pmt.packets(pid, self.next_counter(pid));
        self.send_table(pid, packets, out);
    }

    fn send_table(&mut self, pid: u16, packets: Vec<PacketBytes>, out: &mut BytesMut) {
        out.reserve(packets.len() * PACKET);
        for packet in packets {
            out.extend_from_slice(&packet);
            self.set_counter(pid, packet[3]);
        }
    }

    /// Notes what is sent at a PES start on `pid`: when it is decoded and when shown, in output time.
    pub(crate) fn sent_stamps(&mut self, pid: u16, decode: Ticks, show: Ticks, at: Duration) {
        if let Some(entry) = self.allotment.get_mut(pid) {
            entry.sent(decode, show);
        }
        if self.reference == Some(pid) {
            self.stamp_line.observe(decode, at);
        }
    }

    pub(crate) fn sent_clock(&mut self, clock: Ticks, at: Duration) {
        self.clock = Some(clock);
        self.clock_line.observe(clock, at);
    }

    /// The earliest time that a stream on `pid` may begin at after a change. A stream new to the output is compared
    /// with what stood for the programme before it.
    pub(crate) fn floor(&self, pid: u16) -> Option<Ticks> {
        let floor = |pid: u16| self.allotment.get(pid).and_then(Allotted::floor);
        floor(pid).or_else(|| floor(self.reference?))
    }

    /// Forgets time stamps far ahead of the programme: a stream with a clock of its own must not silence its
    /// successor for hours.
    pub(crate) fn forget_strays(&mut self, lead: Ticks, now: Duration) {
        let limit = lead.saturating_add(ticks(now)).saturating_add(JUMP);
        for entry in self.allotment.iter_mut() {
            entry.newest = entry.newest.filter(|newest| *newest <= limit);
        }
    }

    /// The output PIDs for the streams of `source` and for its clock; `had` tells the PID a stream has already.
    pub(crate) fn assign(&mut self, source: &Tables, had: impl Fn(u16, Kind) -> Option<u16>) -> Assigned {
        let mut wanted: Vec<(Kind, u16, Option<u16>)> = Vec::new();
        for stream in &source.pmt.streams {
            let kind = Kind::of(stream);
            wanted.push((kind, stream.pid, had(stream.pid, kind)));
        }
        let pcr_pid = source.pmt.pcr_pid;
        let clock_alone =
            pcr_pid != NULL_PID && source.pmt.streams.iter().all(|stream| stream.pid != pcr_pid);
        if clock_alone {
            wanted.push((Kind::CLOCK, pcr_pid, had(pcr_pid, Kind::CLOCK)));
        }
        let pmt_pid = self.tables.as_ref().map_or(source.pmt_pid, |tables| tables.pmt_pid);
        let pids = self.allotment.assign(&wanted, |pid| pid != pmt_pid);
        let clock = wanted.iter().position(|entry| entry.1 == pcr_pid).and_then(|at| pids[at]);
        Assigned { wanted, pids, clock: clock.unwrap_or(NULL_PID) }
    }
}

/// Where the streams of a source go.
#[derive(Debug)]
pub(crate) struct Assigned {
    /// Kind, PID of the source, and the PID it had before: streams in the order of the table, then a clock of its own.
    pub(crate) wanted: Vec<(Kind, u16, Option<u16>)>,
    /// Output PID of each; `None` where no PID is left.
    pub(crate) pids: Vec<Option<u16>>,
    /// Output PID of the clock.
    pub(crate) clock: u16,
}
