//! Assigns elementary streams to the PIDs of the output.
//!
//! A PID of the output belongs to one kind of stream for the whole output, because players set up a decoder
//! per PID and rarely check its type again. The n-th stream of a kind is sent on the n-th PID of that kind,
//! so a channel that alternates between two sources with different codecs alternates between two sets of
//! PIDs.
use crate::splice::pace::{JUMP, SECOND, Ticks};
use crate::ts::tables::{ElementaryStream, descriptors};

/// PIDs for streams; those below are reserved for tables of the standard, the one above is the null PID.
const STREAM_PIDS: std::ops::Range<u16> = 0x20..0x1FFF;

/// Above this many PIDs the unused ones are removed. One PMT cannot use so many at the same time.
const OUTPUT_PIDS_MAX: usize = 1024;

/// The properties that two streams must share to use the same PID: the stream type and, for private data, the
/// descriptor that identifies the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PidKind {
    stream_type: u8,
    detail: u32,
}

impl PidKind {
    /// A PID with only the programme clock.
    pub(crate) const CLOCK: PidKind = PidKind { stream_type: 0, detail: 1 };

    pub(crate) fn of(stream: &ElementaryStream) -> PidKind {
        const PRIVATE_PES: u8 = 0x06;
        // A registration descriptor counts by its format identifier, the others (teletext, subtitles, AC-3,
        // E-AC-3, DTS, AAC) by their tag.
        const REGISTRATION: u8 = 0x05;
        const IDENTIFYING: [u8; 7] = [0x56, 0x59, 0x6A, 0x7A, 0x7B, 0x7C, 0x7F];
        let mut detail = 0;
        if stream.stream_type == PRIVATE_PES {
            for (tag, body) in descriptors(&stream.descriptors) {
                match body {
                    [a, b, c, d, ..] if tag == REGISTRATION => detail = u32::from_be_bytes([*a, *b, *c, *d]),
                    _ if IDENTIFYING.contains(&tag) => {
                        return PidKind { stream_type: PRIVATE_PES, detail: tag.into() };
                    }
                    _ => {}
                }
            }
        }
        PidKind { stream_type: stream.stream_type, detail }
    }
}

/// A PID of the output and the times sent on it.
#[derive(Debug)]
pub(crate) struct OutputPid {
    pub(crate) kind: PidKind,
    pub(crate) pid: u16,
    /// Greatest time stamp sent, in output time.
    pub(crate) newest: Option<Ticks>,
    /// Last decoding time sent.
    decode: Option<Ticks>,
    /// Duration of a PES packet, measured by the distance of decoding times: an audio PES packet contains
    /// many frames, and only the first has a time stamp.
    span: Ticks,
}

impl OutputPid {
    fn new(kind: PidKind, pid: u16) -> Self {
        OutputPid { kind, pid, newest: None, decode: None, span: 0 }
    }

    /// Records that a PES packet was sent.
    pub(crate) fn record(&mut self, decode: Ticks, presentation: Ticks) {
        let stamp = decode.max(presentation);
        // After a jump of the source's own clock only the new time counts.
        let before = self.newest.filter(|before| (*before - stamp).abs() <= JUMP);
        self.newest = Some(before.map_or(stamp, |before| before.max(stamp)));
        let step = self.decode.replace(decode).map_or(0, |last| decode - last);
        // The greatest recent step counts; a single exception decays.
        self.span = (self.span - self.span / 8).max(if step > SECOND { 0 } else { step });
    }

    /// Returns the earliest time for the next PES packet of another source.
    pub(crate) fn floor(&self) -> Option<Ticks> {
        Some(self.newest? + self.span.max(1))
    }
}

/// All PIDs of the output, in the order of their first use.
#[derive(Debug, Default)]
pub(crate) struct PidAllocation {
    entries: Vec<OutputPid>,
}

impl PidAllocation {
    pub(crate) fn get(&self, pid: u16) -> Option<&OutputPid> {
        self.entries.iter().find(|entry| entry.pid == pid)
    }

    pub(crate) fn get_mut(&mut self, pid: u16) -> Option<&mut OutputPid> {
        self.entries.iter_mut().find(|entry| entry.pid == pid)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut OutputPid> {
        self.entries.iter_mut()
    }

    /// Records that a stream passes on its own PID, whatever was sent there before.
    pub(crate) fn take_pid(&mut self, kind: PidKind, pid: u16) {
        match self.get_mut(pid) {
            Some(entry) => entry.kind = kind,
            None => self.entries.push(OutputPid::new(kind, pid)),
        }
    }

    /// Returns the output PIDs of `streams` (kind, source PID, and the output PID that it already has);
    /// `None` for a stream for which no PID is left. `is_free` returns whether a PID is not used by a table.
    pub(crate) fn assign(
        &mut self,
        streams: &[(PidKind, u16, Option<u16>)],
        is_free: impl Fn(u16) -> bool,
    ) -> Vec<Option<u16>> {
        let mut result: Vec<Option<u16>> = streams.iter().map(|stream| stream.2).collect();
        if self.entries.len() > OUTPUT_PIDS_MAX {
            self.entries.retain(|entry| result.contains(&Some(entry.pid)));
        }
        // Streams with an earlier PID come first, so that no new stream takes it.
        for (i, (kind, _, _)) in streams.iter().enumerate() {
            if result[i].is_none() {
                let before = self.entries.iter().find(|e| e.kind == *kind && !result.contains(&Some(e.pid)));
                result[i] = before.map(|entry| entry.pid);
            }
        }
        for (i, (kind, own, _)) in streams.iter().enumerate() {
            if result[i].is_none() {
                let can_have =
                    |pid: &u16| STREAM_PIDS.contains(pid) && is_free(*pid) && self.get(*pid).is_none();
                let pid =
                    Some(*own).filter(can_have).or_else(|| (0x100..0x1FFF).chain(0x20..0x100).find(can_have));
                if let Some(pid) = pid {
                    self.entries.push(OutputPid::new(*kind, pid));
                }
                result[i] = pid;
            }
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H264: u8 = 0x1B;
    const HEVC: u8 = 0x24;
    const AAC: u8 = 0x0F;
    const PMT: u16 = 0x1000;

    fn stream(stream_type: u8, descriptors: &[u8]) -> ElementaryStream {
        ElementaryStream { stream_type, pid: 0x100, descriptors: descriptors.to_vec() }
    }

    /// Assigns sources one after the other and checks the PIDs of the last.
    fn check(sources: &[&[(u8, u16)]], expected: &[u16]) {
        let mut allocation = PidAllocation::default();
        let mut got = Vec::new();
        for source in sources {
            let streams: Vec<_> =
                source.iter().map(|(kind, pid)| (PidKind::of(&stream(*kind, &[])), *pid, None)).collect();
            got = allocation.assign(&streams, |pid| pid != PMT);
        }
        assert_eq!(got, expected.iter().map(|pid| Some(*pid)).collect::<Vec<_>>(), "{sources:?}");
    }

    #[test]
    fn streams_of_a_kind_keep_their_pids_after_a_change() {
        check(&[&[(H264, 0x100), (AAC, 0x101)]], &[0x100, 0x101]);
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(H264, 0x44), (AAC, 0x45)]], &[0x100, 0x101]);
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(AAC, 0x100), (H264, 0x101)]], &[0x101, 0x100]);
        // The n-th stream of a kind uses the n-th PID.
        check(&[&[(AAC, 0x30), (AAC, 0x31)], &[(AAC, 0x31), (AAC, 0x30)]], &[0x30, 0x31]);
    }

    #[test]
    fn streams_of_other_kinds_get_other_pids() {
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(HEVC, 0x200), (AAC, 0x201)]], &[0x200, 0x101]);
        // Their own PID is used by another kind or by a table.
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(HEVC, 0x100), (AAC, 0x101)]], &[0x102, 0x101]);
        check(&[&[(H264, PMT)]], &[0x100]);
        check(&[&[(H264, 0x11)]], &[0x100]);
        check(&[&[(H264, 0x1FFF)]], &[0x100]);
    }

    #[test]
    fn a_source_that_returns_gets_its_earlier_pids() {
        let first: &[(u8, u16)] = &[(H264, 0x100), (AAC, 0x101)];
        check(&[first, &[(HEVC, 0x100), (AAC, 0x101)], first], &[0x100, 0x101]);
    }

    #[test]
    fn private_streams_differ_by_their_descriptors() {
        let kinds = [
            PidKind::of(&stream(6, &[])),
            PidKind::of(&stream(6, &[0x0A, 4, b'e', b'n', b'g', 0, 0x59, 0])),
            PidKind::of(&stream(6, &[0x6A, 1, 0])),
            PidKind::of(&stream(6, &[0x05, 4, b'H', b'E', b'V', b'C'])),
            PidKind::of(&stream(H264, &[0x05, 4, b'H', b'E', b'V', b'C'])),
        ];
        for (i, a) in kinds.iter().enumerate() {
            for (j, b) in kinds.iter().enumerate() {
                assert_eq!(a == b, i == j, "{a:?} {b:?}");
            }
        }
        // Descriptors with invalid lengths are read as far as possible.
        assert_eq!(PidKind::of(&stream(6, &[0x59, 200, 1])), PidKind::of(&stream(6, &[])));
    }

    #[test]
    fn the_number_of_output_pids_is_bounded() {
        let mut allocation = PidAllocation::default();
        for n in 0..3_000u32 {
            let kind = PidKind { stream_type: 6, detail: n };
            assert!(allocation.assign(&[(kind, 0x100, None)], |_| true)[0].is_some());
            assert!(allocation.entries.len() <= OUTPUT_PIDS_MAX + 1);
        }
    }
}
