//! Detects payload: packets of the programme that can be read. Null packets, packets of PIDs that no table announces,
//! and scrambled packets do not show that a source is alive.

use bytes::Bytes;

use crate::error::Cause;
use crate::source::note::SourceNote;
use crate::ts::align::Aligner;
use crate::ts::packet::{Packet, packets};
use crate::ts::pes::is_pes_start;
use crate::ts::table_reader::{TableHints, TableReader};
use crate::ts::tables::Tables;

/// Payload packets of other streams after which an opener does not wait any longer for the announced video. Scrambled
/// video beside clear audio is recognised only when its first packet arrives.
const OTHERS_BEFORE_VIDEO: u32 = 50;

/// Decides which packets of a source are payload.
#[derive(Debug, Default)]
pub(crate) struct PayloadFilter {
    is_video_scrambled: bool,
    /// Whether scrambled packets arrived after the last payload.
    is_scrambled: bool,
}

impl PayloadFilter {
    /// Returns whether this packet carries a readable part of the programme.
    ///
    /// While the video is scrambled nothing else counts either, because nobody watches a channel without its picture.
    #[inline]
    pub(crate) fn packet(&mut self, tables: &Tables, packet: Packet<'_>) -> bool {
        if !tables.has_payload(packet) {
            return false;
        }
        if packet.is_scrambled() || self.is_video_scrambled {
            return self.is_readable(tables, packet);
        }
        self.is_scrambled = false;
        true
    }

    /// Returns why a source is lost that delivers no payload in time.
    pub(crate) fn cause_of_silence(&self) -> Cause {
        if self.is_scrambled { Cause::Scrambled } else { Cause::Stall }
    }

    fn is_readable(&mut self, tables: &Tables, packet: Packet<'_>) -> bool {
        let video = tables.video().map(|it| it.pid);
        let is_video = video == Some(packet.pid());
        if packet.is_scrambled() {
            self.is_video_scrambled |= is_video;
            self.is_scrambled = true;
            return false;
        }
        // The tables may have changed to a programme without video.
        self.is_video_scrambled &= video.is_some() && !is_video;
        self.is_scrambled &= self.is_video_scrambled;
        !self.is_video_scrambled
    }
}

/// Reads the tables of one source and recognises by them the packets that carry the programme.
pub(crate) struct PayloadDetector {
    tables: TableReader,
    filter: PayloadFilter,
}

impl PayloadDetector {
    /// Creates a detector for a source of whose tables this is known.
    pub(crate) fn from_hints(hints: &TableHints) -> Self {
        Self { tables: TableReader::from_hints(hints), filter: PayloadFilter::default() }
    }

    /// Reads one packet and returns whether it carries a readable part of the programme.
    pub(crate) fn packet(&mut self, packet: Packet<'_>) -> bool {
        self.tables.packet(packet);
        self.tables.tables().is_some_and(|it| self.filter.packet(it, packet))
    }

    /// Returns the tables in force, once they are known.
    pub(crate) fn tables(&self) -> Option<&Tables> {
        self.tables.tables()
    }

    /// Returns whether the tables have changed since the last call.
    pub(crate) fn take_change(&mut self) -> bool {
        self.tables.take_change()
    }

    /// Returns why a source is lost that delivers no payload in time.
    pub(crate) fn cause_of_silence(&self) -> Cause {
        self.filter.cause_of_silence()
    }
}

/// Detects payload in raw bytes, for an opener that does not pass packets on.
pub(super) struct BytePayloadDetector {
    aligner: Aligner,
    detector: PayloadDetector,
    hints: TableHints,
    /// Payload packets before the first one of the video.
    n_others: u32,
    has_synced: bool,
    /// Whether video or audio arrived before the tables.
    has_early_pes: bool,
}

impl BytePayloadDetector {
    /// Creates a detector for a source of whose tables this is known.
    pub(super) fn from_hints(hints: TableHints) -> Self {
        Self {
            aligner: Aligner::default(),
            detector: PayloadDetector::from_hints(&hints),
            hints,
            n_others: 0,
            has_synced: false,
            has_early_pes: false,
        }
    }

    /// Reads the next bytes and returns whether they contain a payload packet of the video, or of another stream if the
    /// programme has no video or sends none.
    pub(super) fn push(&mut self, bytes: Bytes) -> bool {
        self.aligner.push(bytes);
        let mut has_payload = false;
        while let Some(run) = self.aligner.next() {
            self.has_synced = true;
            for packet in packets(&run).map(Packet::new) {
                if !self.detector.packet(packet) {
                    self.has_early_pes |= self.detector.tables().is_none()
                        && !packet.is_scrambled()
                        && is_pes_start(packet)
                        && is_pes_of_programme(packet.payload());
                    continue;
                }
                let video = self.detector.tables().and_then(Tables::video);
                self.n_others += u32::from(video.is_some_and(|it| it.pid != packet.pid()));
                has_payload |=
                    video.is_none_or(|it| it.pid == packet.pid()) || self.n_others > OTHERS_BEFORE_VIDEO;
            }
        }
        has_payload
    }

    /// Returns whether any packet was found.
    pub(super) fn has_synced(&self) -> bool {
        self.has_synced
    }

    /// Returns whether packets of the programme arrived, and the last ones were scrambled.
    pub(super) fn is_scrambled(&self) -> bool {
        self.detector.cause_of_silence() == Cause::Scrambled
    }

    /// Returns whether only the tables are missing: video or audio arrives.
    pub(super) fn lacks_tables(&self) -> bool {
        self.has_early_pes && self.detector.tables().is_none()
    }

    /// Returns what is known of the tables for the next reader of this source.
    pub(super) fn hints(&self) -> TableHints {
        TableHints { program: self.hints.program, wrong_checksums: self.detector.tables.wrong_checksums() }
    }

    /// Returns what a person should know about the tables.
    pub(super) fn notes(&self) -> Vec<SourceNote> {
        let reader = &self.detector.tables;
        let Some(tables) = reader.tables() else { return Vec::new() };
        let mut notes: Vec<_> = reader.wrong_checksums().into_iter().map(SourceNote::TableChecksum).collect();
        let number = tables.pmt.program;
        notes.extend(reader.odd_number().map(|pmt| SourceNote::ProgramNumber { pat: number, pmt }));
        let mut programs = tables.pat.programs.iter().map(|it| it.0).filter(|it| *it != 0);
        let n_programs = programs.clone().count();
        if self.hints.program.is_none() && programs.next() != Some(number) {
            notes.push(SourceNote::ProgramChosen { number, n_programs });
        }
        notes
    }

    /// Returns why there are no tables.
    pub(super) fn cause_of_missing_tables(&self) -> Cause {
        let reader = &self.detector.tables;
        let programs = reader.pat().map_or(&[][..], |it| &it.programs);
        let numbers: Vec<String> =
            programs.iter().filter(|it| it.0 != 0).map(|it| it.0.to_string()).collect();
        let why = match (self.hints.program, numbers.split_last()) {
            (Some(wanted), Some((last, others))) if !numbers.contains(&wanted.to_string()) => {
                let listed = match others {
                    [] => last.clone(),
                    _ => format!("{} and {last}", others.join(", ")),
                };
                format!("programme {wanted} is not in the stream; it has {listed}")
            }
            _ if reader.had_wrong_checksum() => "the tables of the stream are damaged".to_owned(),
            (_, None) => "the stream announces no programme".to_owned(),
            (Some(wanted), _) => format!("the stream announces programme {wanted} but does not describe it"),
            (None, Some(_)) => "the stream announces programmes but describes none".to_owned(),
        };
        Cause::NoTables(why)
    }
}

/// Returns whether the PES packet that starts here is video, audio or private data, such as AC-3.
fn is_pes_of_programme(payload: &[u8]) -> bool {
    matches!(payload.get(3), Some(0xBD | 0xC0..=0xEF | 0xFD))
}
