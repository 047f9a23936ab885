//! Which PID of the output an elementary stream appears on.
//!
//! A PID of the output belongs to one kind of stream for as long as the output lasts: players set up a decoder per
//! PID and rarely look at its type again. The n-th stream of a kind appears on the n-th PID of that kind, so a
//! channel that alternates between two sources of different codecs alternates between two sets of PIDs.
use crate::splice::pace::{JUMP, SECOND, Ticks};
use crate::ts::tables::{ElementaryStream, descriptors};

/// PIDs that streams may have; below are the standard's own tables, above is the null PID.
const STREAM_PIDS: std::ops::Range<u16> = 0x20..0x1FFF;

/// More PIDs than one programme map can name are never in use at once; beyond this many the unused are forgotten.
const ALLOTTED_MAX: usize = 1024;

/// What must agree for two streams to share a PID: the stream type and, where the type alone does not say what the
/// stream is (private data), the descriptor that does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kind {
    stream_type: u8,
    detail: u32,
}

impl Kind {
    /// A PID that carries nothing but the programme clock.
    pub(crate) const CLOCK: Kind = Kind { stream_type: 0, detail: 1 };

    pub(crate) fn of(stream: &ElementaryStream) -> Kind {
        const PRIVATE_PES: u8 = 0x06;
        // Registration counts by its format identifier, the others (teletext, subtitles, AC-3, E-AC-3, DTS, AAC)
        // by their tag.
        const REGISTRATION: u8 = 0x05;
        const TELLING: [u8; 7] = [0x56, 0x59, 0x6A, 0x7A, 0x7B, 0x7C, 0x7F];
        let mut detail = 0;
        if stream.stream_type == PRIVATE_PES {
            for (tag, body) in descriptors(&stream.descriptors) {
                match body {
                    [a, b, c, d, ..] if tag == REGISTRATION => detail = u32::from_be_bytes([*a, *b, *c, *d]),
                    _ if TELLING.contains(&tag) => {
                        return Kind { stream_type: PRIVATE_PES, detail: tag.into() };
                    }
                    _ => {}
                }
            }
        }
        Kind { stream_type: stream.stream_type, detail }
    }
}

/// One PID of the output and what was sent on it.
#[derive(Debug)]
pub(crate) struct Allotted {
    pub(crate) kind: Kind,
    pub(crate) pid: u16,
    /// Greatest time stamp sent on it, in output time.
    pub(crate) newest: Option<Ticks>,
    /// Last decoding time sent on it.
    decode: Option<Ticks>,
    /// How much programme a PES packet holds, by how far their decoding times lie apart: sound comes in packets of
    /// many frames, whose time stamps are not written but counted.
    span: Ticks,
}

impl Allotted {
    fn new(kind: Kind, pid: u16) -> Self {
        Allotted { kind, pid, newest: None, decode: None, span: 0 }
    }

    /// Notes that a PES packet was sent.
    pub(crate) fn sent(&mut self, decode: Ticks, show: Ticks) {
        let stamp = decode.max(show);
        // A source whose own clock jumped back: what counts is where it is now.
        let before = self.newest.filter(|before| (*before - stamp).abs() <= JUMP);
        self.newest = Some(before.map_or(stamp, |before| before.max(stamp)));
        let step = self.decode.replace(decode).map_or(0, |last| decode - last);
        // The greatest of late counts; one that was an exception is forgotten.
        self.span = (self.span - self.span / 8).max(if step > SECOND { 0 } else { step });
    }

    /// Where the next PES packet of another source may lie at the earliest.
    pub(crate) fn floor(&self) -> Option<Ticks> {
        Some(self.newest? + self.span.max(1))
    }
}

/// All PIDs of the output, in the order they were first used.
#[derive(Debug, Default)]
pub(crate) struct Allotment {
    entries: Vec<Allotted>,
}

impl Allotment {
    pub(crate) fn get(&self, pid: u16) -> Option<&Allotted> {
        self.entries.iter().find(|entry| entry.pid == pid)
    }

    pub(crate) fn get_mut(&mut self, pid: u16) -> Option<&mut Allotted> {
        self.entries.iter_mut().find(|entry| entry.pid == pid)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Allotted> {
        self.entries.iter_mut()
    }

    /// Notes that a stream passes on its own PID, whatever was there before.
    pub(crate) fn own(&mut self, kind: Kind, pid: u16) {
        match self.get_mut(pid) {
            Some(entry) => entry.kind = kind,
            None => self.entries.push(Allotted::new(kind, pid)),
        }
    }

    /// The output PIDs of `streams` (kind, PID of the source, and the output PID it has already, if any).
    /// `None` for a stream for which no PID is left. `is_free` says whether a PID is free of anything that is not
    /// a stream.
    pub(crate) fn assign(
        &mut self,
        streams: &[(Kind, u16, Option<u16>)],
        is_free: impl Fn(u16) -> bool,
    ) -> Vec<Option<u16>> {
        let mut result: Vec<Option<u16>> = streams.iter().map(|stream| stream.2).collect();
        if self.entries.len() > ALLOTTED_MAX {
            self.entries.retain(|entry| result.contains(&Some(entry.pid)));
        }
        // First all that can have a PID of before, so that no newcomer takes it from them.
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
                    self.entries.push(Allotted::new(*kind, pid));
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

    /// Assigns sources one after the other; checks the PIDs of the last.
    fn check(sources: &[&[(u8, u16)]], expected: &[u16]) {
        let mut allotment = Allotment::default();
        let mut got = Vec::new();
        for source in sources {
            let streams: Vec<_> =
                source.iter().map(|(kind, pid)| (Kind::of(&stream(*kind, &[])), *pid, None)).collect();
            got = allotment.assign(&streams, |pid| pid != PMT);
        }
        assert_eq!(got, expected.iter().map(|pid| Some(*pid)).collect::<Vec<_>>(), "{sources:?}");
    }

    #[test]
    fn streams_of_a_kind_keep_their_pids_over_a_change() {
        check(&[&[(H264, 0x100), (AAC, 0x101)]], &[0x100, 0x101]);
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(H264, 0x44), (AAC, 0x45)]], &[0x100, 0x101]);
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(AAC, 0x100), (H264, 0x101)]], &[0x101, 0x100]);
        // The n-th of a kind goes to the n-th.
        check(&[&[(AAC, 0x30), (AAC, 0x31)], &[(AAC, 0x31), (AAC, 0x30)]], &[0x30, 0x31]);
    }

    #[test]
    fn other_streams_have_pids_of_their_own() {
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(HEVC, 0x200), (AAC, 0x201)]], &[0x200, 0x101]);
        // Their own PID is taken by another kind or by a table.
        check(&[&[(H264, 0x100), (AAC, 0x101)], &[(HEVC, 0x100), (AAC, 0x101)]], &[0x102, 0x101]);
        check(&[&[(H264, PMT)]], &[0x100]);
        check(&[&[(H264, 0x11)]], &[0x100]);
        check(&[&[(H264, 0x1FFF)]], &[0x100]);
    }

    #[test]
    fn a_source_that_comes_back_has_its_pids_of_before() {
        let first: &[(u8, u16)] = &[(H264, 0x100), (AAC, 0x101)];
        check(&[first, &[(HEVC, 0x100), (AAC, 0x101)], first], &[0x100, 0x101]);
    }

    #[test]
    fn private_streams_differ_by_what_their_descriptors_say() {
        let kinds = [
            Kind::of(&stream(6, &[])),
            Kind::of(&stream(6, &[0x0A, 4, b'e', b'n', b'g', 0, 0x59, 0])),
            Kind::of(&stream(6, &[0x6A, 1, 0])),
            Kind::of(&stream(6, &[0x05, 4, b'H', b'E', b'V', b'C'])),
            Kind::of(&stream(H264, &[0x05, 4, b'H', b'E', b'V', b'C'])),
        ];
        for (i, a) in kinds.iter().enumerate() {
            for (j, b) in kinds.iter().enumerate() {
                assert_eq!(a == b, i == j, "{a:?} {b:?}");
            }
        }
        // Descriptors that do not end where they say are read as far as they go.
        assert_eq!(Kind::of(&stream(6, &[0x59, 200, 1])), Kind::of(&stream(6, &[])));
    }

    #[test]
    fn endless_new_kinds_do_not_grow_without_bound() {
        let mut allotment = Allotment::default();
        for n in 0..3_000u32 {
            let kind = Kind { stream_type: 6, detail: n };
            assert!(allotment.assign(&[(kind, 0x100, None)], |_| true)[0].is_some());
            assert!(allotment.entries.len() <= ALLOTTED_MAX + 1);
        }
    }
}
