//! Assigns elementary streams to the PIDs of the output.
//!
//! A PID of the output belongs to one kind of stream for the whole output, because players set up a decoder
//! per PID and rarely check its type again. A stream is sent on the PID of its kind that had its language and type
//! before; otherwise the n-th stream of a kind is sent on the n-th PID of that kind. So a channel that alternates
//! between two sources with different codecs alternates between two sets of PIDs, and a viewer keeps the language that
//! they selected.
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
    /// Video in H.265.
    pub(crate) const HEVC: PidKind = PidKind { stream_type: 0x24, detail: 0 };

    pub(crate) fn from_stream(stream: &ElementaryStream) -> PidKind {
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

/// The properties that distinguish streams of the same kind: language and type, for example the audio description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Language {
    /// Code of ISO 639-2, in lower case.
    code: [u8; 3],
    /// Type of the audio, the subtitles or the teletext page, as in the descriptor.
    variant: u8,
}

impl Language {
    /// Returns the first language that the descriptors of a stream name.
    pub(crate) fn from_stream(stream: &ElementaryStream) -> Option<Language> {
        const ISO_639: u8 = 0x0A;
        const TELETEXT: u8 = 0x56;
        const SUBTITLES: u8 = 0x59;
        let found = descriptors(&stream.descriptors).find_map(|(tag, body)| match body {
            [a, b, c, variant, ..] if matches!(tag, ISO_639 | TELETEXT | SUBTITLES) => {
                Some(Language { code: [*a, *b, *c].map(|it| it.to_ascii_lowercase()), variant: *variant })
            }
            _ => None,
        });
        let code =
            |it: Language| TERMINOLOGY.iter().find(|(old, _)| **old == it.code).map_or(it.code, |it| *it.1);
        found.map(|it| Language { code: code(it), ..it }).filter(|it| it.code != *b"und")
    }
}

/// The codes of ISO 639-2/B that differ from those of ISO 639-2/T; both are in use.
const TERMINOLOGY: [(&[u8; 3], &[u8; 3]); 20] = [
    (b"alb", b"sqi"),
    (b"arm", b"hye"),
    (b"baq", b"eus"),
    (b"bur", b"mya"),
    (b"chi", b"zho"),
    (b"cze", b"ces"),
    (b"dut", b"nld"),
    (b"fre", b"fra"),
    (b"geo", b"kat"),
    (b"ger", b"deu"),
    (b"gre", b"ell"),
    (b"ice", b"isl"),
    (b"mac", b"mkd"),
    (b"mao", b"mri"),
    (b"may", b"msa"),
    (b"per", b"fas"),
    (b"rum", b"ron"),
    (b"slo", b"slk"),
    (b"tib", b"bod"),
    (b"wel", b"cym"),
];

/// A stream of a source that needs a PID of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WantedPid {
    pub(crate) kind: PidKind,
    pub(crate) language: Option<Language>,
    /// Its PID in the source.
    pub(crate) pid: u16,
    /// The output PID that it already has.
    pub(crate) current: Option<u16>,
}

/// A PID of the output and the times sent on it.
#[derive(Debug)]
pub(crate) struct OutputPid {
    pub(crate) kind: PidKind,
    /// The language that was last announced for it.
    language: Option<Language>,
    pub(crate) pid: u16,
    /// Greatest time stamp sent, in output time.
    pub(crate) newest: Option<Ticks>,
    /// Last decoding time sent.
    pub(crate) decode: Option<Ticks>,
    /// Duration of a PES packet, measured by the distance of decoding times: an audio PES packet contains
    /// many frames, and only the first has a time stamp.
    span: Ticks,
    /// Whether the last two PES packets were more than a second apart.
    is_sparse: bool,
}

/// How much a stream has in common with an earlier one, in increasing order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Agreement {
    Kind,
    Language,
    LanguageAndVariant,
}

impl OutputPid {
    fn agreement(&self, stream: &WantedPid) -> Option<Agreement> {
        let agreement = match (self.language, stream.language) {
            (Some(own), Some(other)) if own == other => Agreement::LanguageAndVariant,
            (Some(own), Some(other)) if own.code == other.code => Agreement::Language,
            _ => Agreement::Kind,
        };
        (self.kind == stream.kind).then_some(agreement)
    }

    fn new(kind: PidKind, pid: u16) -> Self {
        OutputPid { kind, language: None, pid, newest: None, decode: None, span: 0, is_sparse: false }
    }

    /// Records that a PES packet was sent.
    pub(crate) fn record(&mut self, decode: Ticks, presentation: Ticks) {
        let stamp = decode.max(presentation);
        // After a jump of the source's own clock only the new time counts.
        let before = self.newest.filter(|before| (*before - stamp).abs() <= JUMP);
        self.newest = Some(before.map_or(stamp, |before| before.max(stamp)));
        let step = self.decode.replace(decode).map_or(0, |last| decode - last);
        self.is_sparse = step > SECOND;
        // The greatest recent step counts; a single exception decays.
        self.span = (self.span - self.span / 8).max(if self.is_sparse { 0 } else { step });
    }

    /// Returns the earliest time for the next PES packet of another source.
    pub(crate) fn floor(&self) -> Option<Ticks> {
        Some(self.newest? + self.span.max(1))
    }

    /// Returns the earliest decoding time and the presentation time of a PES packet that continues this stream. `None` if
    /// its PES packets are more than a second apart: the time of the next one is unknown.
    pub(crate) fn after_last(&self) -> Option<(Ticks, Ticks)> {
        let next = self.floor().filter(|_| !self.is_sparse)?;
        Some((self.decode? + 1, next))
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
            Some(entry) if entry.kind == kind => {}
            Some(entry) => (entry.kind, entry.language) = (kind, None),
            None => self.entries.push(OutputPid::new(kind, pid)),
        }
    }

    /// Records the language that is announced for a PID.
    pub(crate) fn set_language(&mut self, pid: u16, language: Option<Language>) {
        if let Some(entry) = self.get_mut(pid) {
            entry.language = language.or(entry.language);
        }
    }

    /// Returns the output PIDs of `streams`; `None` for a stream for which no PID is left. `is_free` returns whether a
    /// PID is not used by a table.
    pub(crate) fn assign(
        &mut self,
        streams: &[WantedPid],
        is_free: impl Fn(u16) -> bool,
    ) -> Vec<Option<u16>> {
        let mut result: Vec<Option<u16>> = streams.iter().map(|stream| stream.current).collect();
        if self.entries.len() > OUTPUT_PIDS_MAX {
            self.entries.retain(|entry| result.contains(&Some(entry.pid)));
        }
        // Streams with an earlier PID come first, so that no new stream takes it; of these, the streams that agree
        // most with the earlier one.
        for least in [Agreement::LanguageAndVariant, Agreement::Language, Agreement::Kind] {
            for (i, stream) in streams.iter().enumerate() {
                if result[i].is_none() {
                    let is_match = |entry: &&OutputPid| {
                        !result.contains(&Some(entry.pid)) && entry.agreement(stream) >= Some(least)
                    };
                    result[i] = self.entries.iter().find(is_match).map(|entry| entry.pid);
                }
            }
        }
        for (i, stream) in streams.iter().enumerate() {
            if result[i].is_none() {
                let can_have =
                    |pid: &u16| STREAM_PIDS.contains(pid) && is_free(*pid) && self.get(*pid).is_none();
                let own = Some(stream.pid).filter(can_have);
                let pid = own.or_else(|| (0x100..0x1FFF).chain(0x20..0x100).find(can_have));
                if let Some(pid) = pid {
                    self.entries.push(OutputPid::new(stream.kind, pid));
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

    fn wanted(kind: PidKind, pid: u16) -> WantedPid {
        WantedPid { kind, language: None, pid, current: None }
    }

    /// Assigns sources one after the other and checks the PIDs of the last.
    fn check(sources: &[&[(u8, u16)]], expected: &[u16]) {
        let mut allocation = PidAllocation::default();
        let mut got = Vec::new();
        for source in sources {
            let wanted = |&(kind, pid): &(u8, u16)| wanted(PidKind::from_stream(&stream(kind, &[])), pid);
            let streams: Vec<_> = source.iter().map(wanted).collect();
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

    /// Assigns sources with languages (`deu`, or `deu3` for type 3; `-` for none) one after the other and checks the
    /// PIDs of the last.
    #[track_caller]
    fn check_languages(sources: &[&str], expected: &[u16]) {
        let mut allocation = PidAllocation::default();
        let mut got = Vec::new();
        for (n, source) in (1..).zip(sources) {
            let streams = source.split(' ').zip(n * 0x100..).map(|(name, pid)| {
                let [a, b, c, variant @ ..] = name.as_bytes() else {
                    return wanted(PidKind::from_stream(&stream(AAC, &[])), pid);
                };
                let variant = variant.first().map_or(0, |it| it - b'0');
                let audio = stream(AAC, &[0x0A, 4, *a, *b, *c, variant]);
                WantedPid {
                    language: Language::from_stream(&audio),
                    ..wanted(PidKind::from_stream(&audio), pid)
                }
            });
            let streams: Vec<_> = streams.collect();
            got = allocation.assign(&streams, |pid| pid != PMT);
            for (pid, stream) in got.iter().zip(&streams) {
                allocation.set_language(pid.unwrap(), stream.language);
            }
        }
        assert_eq!(got, expected.iter().map(|pid| Some(*pid)).collect::<Vec<_>>(), "{sources:?}");
    }

    #[test]
    fn audio_streams_keep_their_language_on_their_pid() {
        check_languages(&["deu eng", "eng deu"], &[0x101, 0x100]);
        check_languages(&["deu eng fra", "fra deu"], &[0x102, 0x100]);
        // Both codes of a language, in any case.
        check_languages(&["deu eng", "ENG ger"], &[0x101, 0x100]);
        // The audio description is German too, but is only second choice.
        check_languages(&["deu eng deu3", "deu3 deu eng"], &[0x102, 0x100, 0x101]);
        check_languages(&["deu eng", "eng deu3"], &[0x101, 0x100]);
        // A source that announces no languages, or others, is sent on the PIDs that are left, in order.
        check_languages(&["deu eng", "- -"], &[0x100, 0x101]);
        check_languages(&["deu eng", "und eng"], &[0x100, 0x101]);
        check_languages(&["deu eng", "fra eng"], &[0x100, 0x101]);
        check_languages(&["deu eng", "eng fra spa"], &[0x101, 0x100, 0x202]);
        // They are remembered while a source without languages plays.
        check_languages(&["deu eng", "- -", "eng deu"], &[0x101, 0x100]);
    }

    #[test]
    fn subtitles_and_teletext_have_a_language() {
        for (tag, body) in
            [(0x59, &b"deu\x10\x00\x01\x00\x01"[..]), (0x56, b"ger\x10\x01"), (0x0A, b"Deu\x10")]
        {
            let descriptors = [&[tag, body.len() as u8], body].concat();
            let expected = Some(Language { code: *b"deu", variant: 0x10 });
            assert_eq!(Language::from_stream(&stream(6, &descriptors)), expected);
        }
        assert_eq!(Language::from_stream(&stream(6, &[0x0A, 3, b'd', b'e', b'u'])), None);
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
            PidKind::from_stream(&stream(6, &[])),
            PidKind::from_stream(&stream(6, &[0x0A, 4, b'e', b'n', b'g', 0, 0x59, 0])),
            PidKind::from_stream(&stream(6, &[0x6A, 1, 0])),
            PidKind::from_stream(&stream(6, &[0x05, 4, b'H', b'E', b'V', b'C'])),
            PidKind::from_stream(&stream(H264, &[0x05, 4, b'H', b'E', b'V', b'C'])),
        ];
        for (i, a) in kinds.iter().enumerate() {
            for (j, b) in kinds.iter().enumerate() {
                assert_eq!(a == b, i == j, "{a:?} {b:?}");
            }
        }
        // Descriptors with invalid lengths are read as far as possible.
        assert_eq!(PidKind::from_stream(&stream(6, &[0x59, 200, 1])), PidKind::from_stream(&stream(6, &[])));
    }

    #[test]
    fn the_number_of_output_pids_is_bounded() {
        let mut allocation = PidAllocation::default();
        for n in 0..3_000u32 {
            let kind = PidKind { stream_type: 6, detail: n };
            assert!(allocation.assign(&[wanted(kind, 0x100)], |_| true)[0].is_some());
            assert!(allocation.entries.len() <= OUTPUT_PIDS_MAX + 1);
        }
    }
}
