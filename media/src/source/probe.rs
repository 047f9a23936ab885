//! Analyses the first bytes of a body: whether it is a transport stream, and whether its payload has started.

use bytes::{Bytes, BytesMut};

use crate::error::Cause;
use crate::radio::{FrameReader, IcyHeaders};
use crate::source::note::SourceNote;
use crate::source::payload::BytePayloadDetector;
use crate::source::request::{AudioContainer, PlaylistFormat};
use crate::ts::table_reader::TableHints;

/// Maximum number of bytes without a packet boundary before the body is rejected.
const UNSYNCED_BYTES_MAX: usize = 64 << 10;
/// Minimum number of bytes that identify a body as text.
const TEXT_BYTES_MIN: usize = 1 << 10;
/// Minimum number of bytes that identify a body as radio. A transport stream is recognised before.
const RADIO_BYTES_MIN: usize = 1 << 10;
/// The first bytes of data that gzip has compressed.
pub(super) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
/// Number of leading bytes that are kept to identify the type of the body.
const HEAD_BYTES: usize = 8 << 10;

/// The state of the analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Probed {
    /// More bytes are needed.
    More,
    /// A payload packet of a transport stream has arrived.
    Payload,
    /// The body is a playlist of segments.
    Playlist(PlaylistFormat),
    /// The body is compressed with gzip.
    Packed,
    /// The body is sound in a container that a program converts.
    Audio(AudioContainer),
    /// The body consists of audio frames, which [`Probe::into_frames`] has.
    Radio,
}

impl Probed {
    /// Returns a name that completes "expected a transport stream, got …".
    pub(super) fn description(self) -> &'static str {
        match self {
            Self::More | Self::Payload => "a transport stream",
            Self::Playlist(format) => format.description(),
            Self::Audio(container) => container.description(),
            Self::Packed => "compressed data",
            Self::Radio => "audio without a container",
        }
    }
}

/// Analyses the body of one response.
pub(super) struct Probe {
    detector: BytePayloadDetector,
    /// The first bytes, to identify a body that is not a transport stream.
    head: BytesMut,
    n_bytes: usize,
    content_type: Option<String>,
    /// Whether the body may be compressed.
    may_be_packed: bool,
    /// The reader of a body that may be radio.
    frames: Option<FrameReader>,
}

impl Probe {
    /// Creates a probe. `content_type` is the type that the provider declared, if any; `hints` is what is known of the
    /// tables.
    pub(super) fn new(content_type: Option<&str>, hints: TableHints) -> Self {
        let content_type = content_type
            .map(|it| it.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
            .filter(|it| !it.is_empty());
        Self {
            detector: BytePayloadDetector::from_hints(hints),
            head: BytesMut::new(),
            n_bytes: 0,
            content_type,
            may_be_packed: false,
            frames: None,
        }
    }

    /// Creates a probe for the response that an address of a stream leads to, which may be radio and may be compressed.
    pub(super) fn from_answer(content_type: Option<&str>, hints: TableHints) -> Self {
        let frames = Some(FrameReader::default());
        Self { may_be_packed: true, frames, ..Self::new(content_type, hints) }
    }

    /// Creates the same for the unpacked bytes of that response.
    pub(super) fn from_unpacked(content_type: Option<&str>, hints: TableHints) -> Self {
        Self { may_be_packed: false, ..Self::from_answer(content_type, hints) }
    }

    /// Reads the next piece. The bytes decide; the declared type counts only if they do not.
    ///
    /// # Errors
    /// `NotTs` as soon as that is certain.
    pub(super) fn push(&mut self, bytes: &Bytes) -> Result<Probed, Cause> {
        self.n_bytes += bytes.len();
        let room = HEAD_BYTES.saturating_sub(self.head.len());
        self.head.extend_from_slice(&bytes[..bytes.len().min(room)]);
        if self.detector.push(bytes.clone()) {
            return Ok(Probed::Payload);
        }
        if self.detector.has_synced() {
            return Ok(Probed::More);
        }
        if let Some(format) = self.playlist() {
            return Ok(Probed::Playlist(format));
        }
        if self.may_be_packed && self.head.starts_with(&GZIP_MAGIC) {
            return Ok(Probed::Packed);
        }
        if let Some(probed) = self.sound(bytes) {
            return Ok(probed);
        }
        // Stations begin with a picture.
        let n_bytes = self.n_bytes - self.frames.as_ref().map_or(0, |it| it.n_of_tags().min(self.n_bytes));
        let is_text = n_bytes >= TEXT_BYTES_MIN && (self.declares_text() || self.looks_like().is_some());
        if is_text || n_bytes >= UNSYNCED_BYTES_MAX {
            return self.without_sync().map(Probed::Playlist);
        }
        Ok(Probed::More)
    }

    /// Returns what a body is that consists of sound.
    fn sound(&mut self, bytes: &[u8]) -> Option<Probed> {
        if self.looks_like().is_some() || is_container(&self.head) {
            self.frames = None;
        }
        let frames = self.frames.as_mut()?;
        frames.push(bytes);
        if let Some(container) = AudioContainer::from_frames(&self.head) {
            return Some(Probed::Audio(container));
        }
        if let Some(container) = AudioContainer::from_start(frames.beginning()) {
            return Some(Probed::Audio(container));
        }
        (self.n_bytes >= RADIO_BYTES_MIN && frames.is_in_step()).then_some(Probed::Radio)
    }

    /// Returns the reader of audio frames, which has all bytes of the body.
    pub(super) fn into_frames(self) -> FrameReader {
        self.frames.unwrap_or_default()
    }

    /// Returns the format of a playlist that ended before its first bytes showed it.
    ///
    /// # Errors
    /// The cause for any other body that ended before a payload packet arrived.
    pub(super) fn end(&self) -> Result<PlaylistFormat, Cause> {
        if self.n_bytes == 0 {
            Err(Cause::Empty)
        } else if self.is_scrambled() {
            Err(Cause::Scrambled)
        } else if self.detector.has_synced() {
            Err(Cause::Ended)
        } else {
            self.without_sync()
        }
    }

    /// Judges a body that is certainly not a transport stream.
    fn without_sync(&self) -> Result<PlaylistFormat, Cause> {
        let declared = self.declared_playlist().filter(|_| self.looks_like().is_none());
        self.playlist().or(declared).ok_or_else(|| self.not_ts())
    }

    /// Returns the format of the playlist that the body starts like. Some servers compress a playlist although nobody asked
    /// for it; its type decides then.
    fn playlist(&self) -> Option<PlaylistFormat> {
        let is_packed = self.head.starts_with(&GZIP_MAGIC);
        let packed = || self.declared_playlist().filter(|it| is_packed && *it == PlaylistFormat::Hls);
        playlist_format(&self.head).or_else(packed)
    }

    fn declared_playlist(&self) -> Option<PlaylistFormat> {
        self.content_type.as_deref().and_then(PlaylistFormat::from_content_type)
    }

    /// Returns whether packets of the programme arrived, and the last ones were scrambled.
    pub(super) fn is_scrambled(&self) -> bool {
        self.detector.is_scrambled()
    }

    /// Returns whether only the tables are missing: video or audio arrives.
    pub(super) fn lacks_tables(&self) -> bool {
        self.detector.lacks_tables()
    }

    /// Returns what is known of the tables for the next reader of this source.
    pub(super) fn hints(&self) -> TableHints {
        self.detector.hints()
    }

    /// Returns what a person should know about the tables.
    pub(super) fn notes(&self) -> Vec<SourceNote> {
        self.detector.notes()
    }

    /// Returns the cause if the first payload packet did not arrive in time.
    pub(super) fn cause_of_timeout(&self) -> Cause {
        if self.is_scrambled() {
            Cause::Scrambled
        } else if self.lacks_tables() {
            self.detector.cause_of_missing_tables()
        } else {
            Cause::FirstPacketTimeout
        }
    }

    fn not_ts(&self) -> Cause {
        // The declared type helps only if it is another type than the expected one.
        let called = self
            .content_type
            .as_deref()
            .filter(|it| !it.starts_with("video/") && *it != "application/octet-stream");
        Cause::NotTs(self.looks_like().or(called).unwrap_or("unknown bytes").to_owned())
    }

    fn declares_text(&self) -> bool {
        let Some(content_type) = self.content_type.as_deref() else { return false };
        content_type.starts_with("text/") || matches!(content_type, "application/json" | "application/xml")
    }

    /// Returns the type of the body if it starts like something that providers send by mistake.
    fn looks_like(&self) -> Option<&'static str> {
        let head = without_bom(&self.head);
        let begins = |text: &[u8]| head.len() >= text.len() && head[..text.len()].eq_ignore_ascii_case(text);
        match head.first()? {
            _ if begins(b"<?xml") => Some("text/xml"),
            _ if begins(b"<!doctype html") || begins(b"<html") => Some("text/html"),
            b'<' if head.get(1).is_some_and(|it| it.is_ascii_alphabetic() || b"!?".contains(it)) => {
                Some("text/html")
            }
            b'{' | b'[' => Some("application/json"),
            0x1f if begins(&GZIP_MAGIC) => Some("compressed data"),
            _ => None,
        }
    }
}

/// Returns the format of the playlist that a body starts like.
pub(super) fn playlist_format(head: &[u8]) -> Option<PlaylistFormat> {
    let head = without_bom(head);
    if head.starts_with(b"#EXTM3U") {
        Some(PlaylistFormat::Hls)
    } else if head.first() == Some(&b'<') && memchr::memmem::find(head, b"<MPD").is_some() {
        Some(PlaylistFormat::Dash)
    } else {
        None
    }
}

/// Returns whether a body starts like a file that may contain the header of an audio frame by accident.
fn is_container(head: &[u8]) -> bool {
    const STARTS: [&[u8]; 5] = [b"RIFF", b"\x1a\x45\xdf\xa3", b"PK\x03\x04", b"\x89PNG", b"\xff\xd8\xff"];
    STARTS.iter().any(|it| head.starts_with(it)) || head.get(4..8) == Some(b"ftyp")
}

/// Removes a byte order mark and leading white space.
fn without_bom(head: &[u8]) -> &[u8] {
    head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head).trim_ascii_start()
}

/// Removes a response head at the start of a body, such as `ICY 200 OK`.
pub(super) struct InnerHead {
    held: BytesMut,
    /// The head is complete or absent; all further bytes are body.
    is_through: bool,
    icy: IcyHeaders,
}

/// The result of [`InnerHead::push`].
pub(super) enum BodyPart {
    /// The head is incomplete.
    More,
    /// Body.
    Body(Bytes),
    /// The head has a status other than success.
    Status(u16),
}

/// Maximum length of a head inside a body.
const INNER_HEAD_BYTES_MAX: usize = 16 << 10;

impl InnerHead {
    /// Creates the state. `icy` is present if hyper has already parsed a head.
    pub(super) fn new(icy: Option<IcyHeaders>) -> Self {
        Self { held: BytesMut::new(), is_through: icy.is_some(), icy: icy.unwrap_or_default() }
    }

    /// Returns what the head says about titles.
    pub(super) fn icy(&self) -> IcyHeaders {
        self.icy
    }

    /// Reads the next piece of the body as returned by hyper.
    pub(super) fn push(&mut self, bytes: Bytes) -> BodyPart {
        if self.is_through {
            return BodyPart::Body(bytes);
        }
        self.held.extend_from_slice(&bytes);
        let may_be_head = [&b"ICY "[..], &b"HTTP"[..], &b"RTSP"[..]].iter().any(|it| {
            let n = it.len().min(self.held.len());
            self.held[..n] == it[..n]
        });
        if !may_be_head || self.held.len() > INNER_HEAD_BYTES_MAX {
            self.is_through = true;
            return BodyPart::Body(self.held.split().freeze());
        }
        let Some((head_bytes, gap)) = end_of_head(&self.held) else { return BodyPart::More };
        let head = self.held.split_to(head_bytes + gap);
        self.is_through = true;
        self.icy = IcyHeaders::from_head(&head);
        let status =
            std::str::from_utf8(&head).ok().and_then(|it| it.split_ascii_whitespace().nth(1)?.parse().ok());
        match status {
            Some(status) if !(200..300).contains(&status) => BodyPart::Status(status),
            _ => BodyPart::Body(self.held.split().freeze()),
        }
    }
}

/// Returns the end of a head and the length of the blank line after it.
fn end_of_head(bytes: &[u8]) -> Option<(usize, usize)> {
    let crlf = memchr::memmem::find(bytes, b"\r\n\r\n").map(|at| (at, 4));
    let lf = memchr::memmem::find(bytes, b"\n\n").map(|at| (at, 2));
    [crlf, lf].into_iter().flatten().min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::StationSound;

    fn body(pieces: &[&str]) -> String {
        let mut inner = InnerHead::new(None);
        let mut out = String::new();
        for piece in pieces {
            match inner.push(Bytes::copy_from_slice(piece.as_bytes())) {
                BodyPart::More => out.push('.'),
                BodyPart::Body(bytes) => out.push_str(std::str::from_utf8(&bytes).unwrap()),
                BodyPart::Status(status) => out.push_str(&format!("!{status}")),
            }
        }
        out
    }

    #[test]
    fn a_head_inside_the_body_is_cut_off() {
        assert_eq!(body(&["ICY 200 OK\r\nicy-name:x\r\n\r\nGabc", "G"]), "GabcG");
        assert_eq!(body(&["IC", "Y 200 OK\n", "\nGabc"]), "..Gabc");
        assert_eq!(body(&["ICY 403 Forbidden\r\n\r\n"]), "!403");
        assert_eq!(body(&["Gabc", "def"]), "Gabcdef");
        assert_eq!(body(&["HTTP/2.5 404 No\r\n\r\n"]), "!404");
    }

    #[test]
    fn a_body_that_is_not_a_transport_stream_is_identified() {
        let check = |content_type: Option<&str>, text: &str, what: Cause| {
            let mut probe = Probe::new(content_type, TableHints::default());
            let cause = match probe.push(&Bytes::copy_from_slice(text.as_bytes())) {
                Err(cause) => cause,
                Ok(_) => probe.end().expect_err("not a playlist"),
            };
            assert_eq!(cause, what, "{text}");
        };
        let not_ts = |what: &str| Cause::NotTs(what.into());
        check(None, "", Cause::Empty);
        check(Some("text/html; charset=utf-8"), "Account expired", not_ts("text/html"));
        check(Some("video/mp2t"), "<!DOCTYPE html><p>no</p>", not_ts("text/html"));
        check(None, " {\"user\": 0}", not_ts("application/json"));
        check(Some("audio/mpegurl"), "<html>no</html>", not_ts("text/html"));
        check(Some("application/dash+xml"), "", Cause::Empty);
        check(Some("video/mp2t"), "no", not_ts("unknown bytes"));
        check(None, &"a lot of nothing".repeat(5000), not_ts("unknown bytes"));
    }

    #[test]
    fn a_playlist_of_segments_is_recognised_by_its_bytes_or_by_its_type() {
        let check = |content_type: Option<&str>, text: &str, format: Option<PlaylistFormat>| {
            let mut probe = Probe::new(content_type, TableHints::default());
            let probed = probe.push(&Bytes::copy_from_slice(text.as_bytes()));
            let found = match probed {
                Ok(Probed::Playlist(format)) => Some(format),
                Ok(Probed::More) => probe.end().ok(),
                _ => None,
            };
            assert_eq!(found, format, "{content_type:?} {text}");
        };
        let (hls, dash) = (Some(PlaylistFormat::Hls), Some(PlaylistFormat::Dash));
        let list = "#EXTM3U\n#EXT-X-VERSION:3\n";
        for content_type in [None, Some("video/mp2t"), Some("application/octet-stream"), Some("text/plain")] {
            check(content_type, list, hls);
            check(content_type, &format!("\u{feff}{list}"), hls);
            check(content_type, &format!(" \r\n{list}"), hls);
            check(content_type, "<?xml version=\"1.0\"?>\n<!-- x -->\n<MPD type=\"dynamic\">", dash);
            check(content_type, "<MPD>", dash);
            check(content_type, "Account expired", None);
        }
        for content_type in [
            "application/vnd.apple.mpegurl",
            "Application/X-MpegURL; charset=utf-8",
            "audio/mpegurl",
            "audio/x-mpegurl",
        ] {
            check(Some(content_type), "# a comment\n", hls);
            check(Some(content_type), "{\"error\": 1}", None);
            check(Some(content_type), "", None);
        }
        check(Some("application/dash+xml"), &" ".repeat(UNSYNCED_BYTES_MAX), dash);
        check(None, "<?xml version=\"1.0\"?><error/>", None);
    }

    /// Returns frames of this length that begin with these bytes, joined somewhere in the first one.
    fn joined(head: &[u8], length: usize) -> Vec<u8> {
        let mut frame = head.to_vec();
        frame.resize(length, 0x11);
        frame.repeat(12)[length / 3..].to_vec()
    }

    #[test]
    fn frames_that_a_program_converts_are_recognised_wherever_a_station_is_joined() {
        let frames = [
            (joined(&[0x56, 0xE1, 0x4D], 0x14D + 3), AudioContainer::Loas),
            (joined(&[0x0B, 0x77, 0, 0, 20, 8 << 3], 768), AudioContainer::Ac3),
            (joined(&[0x0B, 0x77, 0, 0, 36, 8 << 3], 2_560), AudioContainer::Ac3),
            (joined(&[0x0B, 0x77, 0, 127, 0x3F, 16 << 3], 256), AudioContainer::Eac3),
        ];
        for (bytes, container) in frames {
            let mut probe = Probe::from_answer(Some("audio/aac"), TableHints::default());
            let mut pieces = bytes.chunks(500).map(|it| probe.push(&Bytes::copy_from_slice(it)).unwrap());
            assert_eq!(pieces.find(|it| *it != Probed::More), Some(Probed::Audio(container)));
        }
    }

    #[test]
    fn radio_and_other_bytes_are_not_frames_that_a_program_converts() {
        for sound in [StationSound::Mp3, StationSound::Mp2, StationSound::Aac, StationSound::HeAac] {
            let mut probe = Probe::from_answer(None, TableHints::default());
            assert_eq!(probe.push(&sound.frame().repeat(20).into()), Ok(Probed::Radio));
        }
        let mut probe = Probe::from_answer(None, TableHints::default());
        assert_eq!(probe.push(&b"V\xE1 \x0Bw ".repeat(100).into()), Ok(Probed::More));
    }

    #[test]
    fn a_transport_stream_with_the_type_of_a_playlist_is_a_transport_stream() {
        let mut probe = Probe::new(Some("application/vnd.apple.mpegurl"), TableHints::default());
        let stream = crate::testing::TsSource::new("x");
        let bytes = stream.bytes(std::time::Duration::ZERO, std::time::Duration::from_secs(1));
        assert_eq!(probe.push(&bytes), Ok(Probed::Payload));
    }
}
