//! Opens upstreams and reads from them.
//!
//! A source owns its socket or its program, and the permit for it. Dropping the source hands both to the
//! closer. The permit is returned when the provider can no longer see the socket, or when no process of the
//! program is left.

mod body;
mod cookies;
mod file;
mod hls;
mod http;
mod known;
mod node;
mod note;
mod open;
pub(crate) mod payload;
mod probe;
mod process;
mod radio;
mod refusal;
mod remote_file;
mod request;
mod settings;
mod target;
#[cfg(test)]
mod tests;
mod udp;
mod unpack;
mod upstream;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;

use self::body::FilteredBody;
use self::file::FileSource;
use self::hls::HlsSource;
use self::http::HttpUpstream;
use self::node::NodeSource;
use self::probe::Probe;
use self::process::ProcessSource;
use self::radio::{ConvertedSource, RadioSource};
use self::udp::UdpSource;
use crate::error::{Cause, UpstreamError};
use crate::meter::InputCounts;
use crate::ts::table_reader::TableHints;

pub(crate) use self::hls::SegmentStart;
pub use self::known::KnownSource;
pub(crate) use self::node::NodeChunk;
pub use self::node::NodeRequest;
pub use self::note::SourceNote;
pub use self::open::{attach_node, check_udp_address, open, open_fed, open_node, open_with_output};
pub use self::process::{
    FileJob, FileJobEnd, PipedCommand, PipedProgram, Pipes, ProgramEnd, RunEnd, ScriptEnd, ScriptJob,
    find_program, run_job, run_script,
};
pub use self::remote_file::{FILE_PIECE_BYTES_MAX, FilePart, RemoteFile};
pub(crate) use self::request::base64;
pub use self::request::{
    AddressFuture, AddressMaker, AddressPolicy, AudioContainer, AudioConverter, OpenRequest, OtherAddresses,
    PlaylistAddress, PlaylistFormat, PlaylistReader, ProgramInput,
};
pub use self::settings::{SourceSettings, UdpSettings};
pub use self::upstream::Upstream;

/// Facts about an opened source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceInfo {
    /// Host and port of the final address, "file", or the name of the program. Contains no credentials.
    pub place: String,
    /// Number of redirects that were followed.
    pub n_redirects: usize,
    /// The findings of the opening, for the next one.
    pub known: KnownSource,
    /// Facts that a person should know about the stream.
    pub notes: Vec<SourceNote>,
    /// Time from the first connection attempt to the first payload packet.
    pub opened_in: Duration,
}

impl SourceInfo {
    fn new(place: impl Into<String>, started: Instant) -> Self {
        Self {
            place: place.into(),
            n_redirects: 0,
            known: KnownSource::default(),
            notes: Vec::new(),
            opened_in: started.elapsed(),
        }
    }

    /// Adds what the first bytes of the body have shown.
    fn with_probe(self, probe: &Probe) -> Self {
        Self { known: KnownSource::from_hints(&probe.hints()), notes: probe.notes(), ..self }
    }
}

/// An opened upstream that has delivered payload.
///
/// Dropping it closes it in the background and returns the permit afterwards.
pub struct Source {
    info: SourceInfo,
    /// Facts about its tables, for their reader.
    hints: TableHints,
    /// Bytes up to and including the first payload packet.
    read_ahead: VecDeque<Bytes>,
    supply: Supply,
    kind: SourceKind,
    /// The response has ended where it was to end.
    is_whole: bool,
}

/// The fate of data that is not read in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Supply {
    /// A program waits with its next data, which may be ready before it is due.
    Program,
    /// A server keeps the data: the length of the response is known, so it is a recording.
    Recording,
    /// A server keeps the segments of a playlist for a while. They arrive in bursts, long before they are due.
    Segments,
    /// A radio station keeps some seconds, of which it sends a part at once.
    Radio,
    /// Unknown. A live provider does not wait, and what is not read in time may be lost.
    Live,
}

enum SourceKind {
    Http(HttpUpstream),
    Filtered(Box<FilteredBody>),
    Radio(Box<RadioSource>),
    Converted(Box<ConvertedSource>),
    Hls(Box<HlsSource>),
    File(Box<FileSource>),
    Process(Box<ProcessSource>),
    Udp(Box<UdpSource>),
    Node(Box<NodeSource>),
}

/// The log output of a program.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProgramOutput {
    /// The last lines, oldest first, without addresses and other secrets.
    pub lines: Vec<String>,
    /// Processing speed in programme seconds per second, if the program reports it in the format of ffmpeg.
    pub speed: Option<f32>,
}

impl ProgramOutput {
    /// Returns the log output of a program so far.
    fn from_program(program: &ProcessSource) -> Self {
        let log = program.log();
        Self { lines: log.lines().map(str::to_owned).collect(), speed: log.speed() }
    }
}

impl Source {
    /// Reads the next bytes, starting with those that were read while opening. Cancel-safe.
    ///
    /// # Errors
    /// `Ended` at the end of the stream, otherwise the cause. After an error the source must not be read
    /// again.
    pub async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        if let Some(bytes) = self.read_ahead.pop_front() {
            return Ok(bytes);
        }
        let read = match &mut self.kind {
            SourceKind::Http(http) => http.read().await?,
            SourceKind::Filtered(body) => body.read().await?,
            SourceKind::Radio(radio) => radio.read().await?,
            SourceKind::Converted(converted) => return converted.read().await,
            SourceKind::Hls(hls) => return hls.read().await,
            SourceKind::File(file) => return file.read().await,
            SourceKind::Process(program) => return program.read().await,
            SourceKind::Udp(udp) => return udp.read().await,
            SourceKind::Node(node) => return node.read().await,
        };
        read.ok_or_else(|| {
            self.is_whole = true;
            Cause::Ended.into()
        })
    }

    /// Waits for the first chunk that is not filler from the ring of another process; other sources have content when they
    /// open. Cancel-safe; nothing may have been read before.
    ///
    /// # Errors
    /// The source was lost.
    pub async fn wait_for_content(&mut self) -> Result<(), UpstreamError> {
        match &mut self.kind {
            SourceKind::Node(node) => node.wait_for_content().await,
            _ => Ok(()),
        }
    }

    /// Returns what was counted since the last call.
    pub(crate) fn take_counts(&mut self) -> InputCounts {
        match &mut self.kind {
            SourceKind::Udp(udp) => InputCounts { lost_datagrams: udp.take_lost(), ..InputCounts::default() },
            SourceKind::Hls(hls) => hls.take_counts(),
            _ => InputCounts::default(),
        }
    }

    /// Returns the title that the station sent last, once; an empty one ends the title before.
    pub(crate) fn take_title(&mut self) -> Option<Arc<str>> {
        match &mut self.kind {
            SourceKind::Radio(radio) => radio.take_title(),
            SourceKind::Converted(converted) => converted.take_title(),
            _ => None,
        }
    }

    /// Returns the start of the segment that the bytes that were returned last begin, once; `None` if they begin none.
    pub(crate) fn take_segment_start(&mut self) -> Option<SegmentStart> {
        match &mut self.kind {
            SourceKind::Hls(hls) => hls.take_segment_start(),
            _ => None,
        }
    }

    /// Returns the chunk of another process whose packets were returned last, once.
    pub(crate) fn take_chunk(&mut self) -> Option<NodeChunk> {
        match &mut self.kind {
            SourceKind::Node(node) => node.take_chunk(),
            _ => None,
        }
    }

    /// Returns the silence that is usual after everything has played that was received; zero if none is.
    pub(crate) fn usual_silence(&self) -> Duration {
        match &self.kind {
            SourceKind::Hls(hls) => hls.usual_silence(),
            SourceKind::Radio(radio) => radio.usual_silence(),
            _ => Duration::ZERO,
        }
    }

    /// Returns the log output of the program so far; `None` for other sources.
    pub fn program_output(&self) -> Option<ProgramOutput> {
        match &self.kind {
            SourceKind::Process(program) => Some(ProgramOutput::from_program(program)),
            SourceKind::Converted(converted) => Some(ProgramOutput::from_program(converted.program())),
            _ => None,
        }
    }

    /// Returns whether the read that failed was the end: of a response that was not cut, or of a program that ended with
    /// success. A response that is cut at its end by a server that tells no length looks whole.
    pub fn is_complete(&self) -> bool {
        match &self.kind {
            SourceKind::Process(program) => program.has_succeeded(),
            SourceKind::Converted(converted) => converted.has_ended(),
            SourceKind::Hls(hls) => hls.is_whole(),
            _ => self.is_whole,
        }
    }

    /// Returns what happens to data that is not read in time.
    pub(crate) fn supply(&self) -> Supply {
        self.supply
    }

    /// Makes the source one that waits, like a program.
    #[cfg(test)]
    pub(crate) fn into_program(self) -> Self {
        Self { supply: Supply::Program, ..self }
    }

    /// Returns what is known of the tables of the source.
    pub(crate) fn hints(&self) -> &TableHints {
        &self.hints
    }

    /// Returns facts about the source.
    pub fn info(&self) -> &SourceInfo {
        &self.info
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("info", &self.info).finish_non_exhaustive()
    }
}
