//! Reads the text of a playlist.
//!
//! Tolerates what real providers write: a byte order mark, any line ends, tags in lower case, missing or absurd durations,
//! numbers with decimals, and a missing first line.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::hls::attributes::AttributeList;

/// Maximum length of a playlist, in bytes. A day of segments of two seconds is a third of it.
pub const PLAYLIST_BYTES_MAX: usize = 8 << 20;
/// Maximum number of segments of a playlist.
pub const SEGMENTS_MAX: usize = 50_000;
/// Maximum number of variants of a master playlist. Further ones are ignored.
pub const VARIANTS_MAX: usize = 200;
/// Maximum length of an address in a playlist, in bytes.
pub const ADDRESS_BYTES_MAX: usize = 8_192;

/// Maximum number of renditions of a master playlist. Further ones are ignored.
const RENDITIONS_MAX: usize = 1_000;
/// Greatest number of a segment that is believed, so that numbers never overflow.
const SEQUENCE_MAX: u64 = 1 << 62;
/// Maximum length of a name that is kept for an error message, in bytes.
const NAME_BYTES_MAX: usize = 40;
/// Shortest and longest target duration that is believed.
const TARGET_MIN: Duration = Duration::from_secs(1);
const TARGET_MAX: Duration = Duration::from_secs(60);
/// The target duration of a playlist that names no duration at all.
const TARGET_UNKNOWN: Duration = Duration::from_secs(6);
/// Longest duration of a segment that is believed.
const SEGMENT_DURATION_MAX: Duration = Duration::from_secs(24 * 3600);

/// The reason why a text is not a usable playlist. It contains no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HlsError {
    /// The text is longer than [`PLAYLIST_BYTES_MAX`].
    #[error("the playlist is too long")]
    TooLong,
    /// The text has more segments than [`SEGMENTS_MAX`].
    #[error("the playlist has too many segments")]
    TooManySegments,
    /// An address is longer than [`ADDRESS_BYTES_MAX`].
    #[error("an address in the playlist is too long")]
    AddressTooLong,
    /// The text is something else.
    #[error("the text is not an HLS playlist")]
    NotAPlaylist,
}

/// A playlist of either kind. It cannot be printed, because its addresses contain credentials.
#[derive(Clone, PartialEq, Eq)]
pub enum HlsPlaylist {
    /// A list of variants of the same programme.
    Master(MasterPlaylist),
    /// A list of segments.
    Media(MediaPlaylist),
}

/// A list of variants of the same programme.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct MasterPlaylist {
    /// The variants in the order of the list.
    pub variants: Vec<Variant>,
}

/// One variant.
#[derive(Clone, PartialEq, Eq)]
pub struct Variant {
    /// Its address, as written.
    pub address: String,
    /// Its position in the list, from 0.
    pub position: u32,
    /// Highest bit rate; zero if it is unknown.
    pub bits_per_second: u64,
    /// Height of the picture, if it is known.
    pub height: Option<u32>,
    /// Whether it has a picture.
    pub picture: VariantPicture,
    /// Whether it certainly has no sound, neither inside nor in playlists of its own.
    pub has_no_sound: bool,
    /// Whether its sound is in playlists of its own only.
    pub has_separate_audio: bool,
}

/// Whether a variant has a picture, as far as its attributes show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VariantPicture {
    /// It has one.
    Certain,
    /// The attributes do not show it.
    Unknown,
    /// It is sound alone.
    None,
}

/// A list of segments.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct MediaPlaylist {
    /// Maximum duration of a segment, as declared, or that of the longest one.
    pub target: Duration,
    /// Number of the first segment.
    pub sequence: u64,
    /// Whether the list declares that number.
    pub has_sequence: bool,
    /// Whether no segment will be added.
    pub is_ended: bool,
    /// The segments, the oldest first.
    pub segments: Vec<MediaSegment>,
}

/// One segment.
#[derive(Clone, PartialEq, Eq)]
pub struct MediaSegment {
    /// Its address, as written.
    pub address: Arc<str>,
    /// Its duration; zero if it is unknown.
    pub duration: Duration,
    /// The part of the file at the address; `None` is all of it.
    pub range: Option<SegmentRange>,
    /// Its encryption; `None` is none.
    pub key: Option<Arc<KeyMethod>>,
    /// Whether it needs an initialization section, which only fMP4 has.
    pub has_map: bool,
    /// Whether its streams and times have nothing to do with those of the segment before it.
    pub is_discontinuity: bool,
    /// Whether the provider declares that it is missing.
    pub is_gap: bool,
}

/// A part of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SegmentRange {
    /// The first byte.
    pub start: u64,
    /// Number of bytes.
    pub length: u64,
}

/// How segments are encrypted.
#[derive(Clone, PartialEq, Eq)]
pub enum KeyMethod {
    /// AES-128 in CBC mode, with the padding of PKCS #7.
    Aes128 {
        /// The address of the key, as written.
        address: String,
        /// The initialization vector; without one, the number of the segment.
        iv: Option<[u8; 16]>,
    },
    /// Another method, with its name.
    Other(String),
}

impl MediaPlaylist {
    /// Returns the number after that of the last segment.
    pub fn end(&self) -> u64 {
        self.sequence.saturating_add(self.segments.len() as u64)
    }

    /// Returns the pause until the list is requested again: the target duration, or the duration of the last segment if that
    /// is shorter. Some providers declare any target duration, and list only some seconds.
    pub fn reload_pause(&self) -> Duration {
        let last = self.segments.last().map(|it| it.duration).filter(|it| !it.is_zero());
        last.map_or(self.target, |it| it.min(self.target))
    }

    /// Returns the segment with this number.
    pub fn segment(&self, number: u64) -> Option<&MediaSegment> {
        self.segments.get(usize::try_from(number.checked_sub(self.sequence)?).ok()?)
    }

    /// Returns why the gateway cannot read the segments by itself, if it cannot. The text completes "… needs ffmpeg".
    pub fn needs_program(&self) -> Option<String> {
        let name = |it: &MediaSegment| match it.key.as_deref() {
            Some(KeyMethod::Other(name)) => Some(format!("an HLS playlist with encryption {name}")),
            _ if it.has_map => Some("an HLS playlist with fMP4 segments".to_owned()),
            _ => None,
        };
        self.segments.last().and_then(name)
    }
}

impl HlsPlaylist {
    /// Reads a playlist.
    ///
    /// # Errors
    /// The text is something else, or exceeds a limit.
    pub fn parse(bytes: &[u8]) -> Result<Self, HlsError> {
        if bytes.len() > PLAYLIST_BYTES_MAX {
            return Err(HlsError::TooLong);
        }
        let text = String::from_utf8_lossy(bytes);
        let lines = text.trim_start_matches('\u{feff}').split(['\n', '\r']).map(str::trim);
        let mut reader = PlaylistReader::default();
        for line in lines.filter(|it| !it.is_empty()) {
            reader.line(line)?;
        }
        reader.finish()
    }
}

/// The state between two lines.
#[derive(Default)]
struct PlaylistReader {
    /// Whether any line shows that the text is a playlist.
    has_tag: bool,
    media: MediaPlaylist,
    declared_target: Option<Duration>,
    variants: Vec<Variant>,
    /// The groups of sound, each with whether it has a rendition that is part of the variants.
    audio: Vec<(String, bool)>,
    /// The addresses of playlists of sound.
    audio_addresses: Vec<String>,
    /// The attributes of the variant whose address follows, with its group of sound.
    next_variant: Option<(Variant, Option<String>)>,
    /// The groups of sound of the variants.
    variant_audio: Vec<Option<String>>,
    next: NextSegment,
    key: Option<Arc<KeyMethod>>,
    /// Whether a key was declared since the last segment.
    has_new_key: bool,
    has_map: bool,
    /// The end of the last range, by the address of its file.
    last_range: Option<(Arc<str>, u64)>,
}

/// The tags of the segment whose address follows.
#[derive(Default)]
struct NextSegment {
    duration: Option<Duration>,
    /// Length, and start if it is declared.
    range: Option<(u64, Option<u64>)>,
    is_discontinuity: bool,
    is_gap: bool,
}

impl PlaylistReader {
    fn line(&mut self, line: &str) -> Result<(), HlsError> {
        let Some(tag) = line.strip_prefix('#') else { return self.address(line) };
        let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
        let value = value.trim();
        let name = name.trim().to_ascii_uppercase();
        self.has_tag |= name.starts_with("EXT");
        match name.as_str() {
            "EXTINF" => self.next.duration = Some(seconds(value).unwrap_or_default()),
            "EXT-X-TARGETDURATION" => self.declared_target = seconds(value).filter(|it| !it.is_zero()),
            "EXT-X-MEDIA-SEQUENCE" => {
                if let Some(sequence) = whole_number(value) {
                    (self.media.sequence, self.media.has_sequence) = (sequence.min(SEQUENCE_MAX), true);
                }
            }
            "EXT-X-ENDLIST" => self.media.is_ended = true,
            "EXT-X-DISCONTINUITY" => self.next.is_discontinuity = true,
            "EXT-X-GAP" => self.next.is_gap = true,
            "EXT-X-BYTERANGE" => self.next.range = byte_range(value),
            "EXT-X-KEY" => self.key(value)?,
            "EXT-X-MAP" => self.has_map = AttributeList::parse(value).get("URI").is_some(),
            "EXT-X-STREAM-INF" => {
                let attributes = AttributeList::parse(value);
                let audio = attributes.get("AUDIO").map(str::to_owned);
                self.next_variant = Some((variant(&attributes), audio));
            }
            "EXT-X-MEDIA" => self.rendition(value),
            _ => {}
        }
        Ok(())
    }

    fn key(&mut self, value: &str) -> Result<(), HlsError> {
        let attributes = AttributeList::parse(value);
        let method = attributes.get("METHOD").unwrap_or("NONE");
        let format = attributes.get("KEYFORMAT").unwrap_or("identity");
        let key = match (method.to_ascii_uppercase().as_str(), attributes.get("URI")) {
            ("NONE", _) => None,
            ("AES-128", Some(address)) if format.eq_ignore_ascii_case("identity") => {
                let iv = attributes.get("IV").and_then(initialization_vector);
                Some(KeyMethod::Aes128 { address: checked(address)?.to_owned(), iv })
            }
            ("AES-128", _) if !format.eq_ignore_ascii_case("identity") => {
                Some(KeyMethod::Other(printable(format)))
            }
            (_, _) => Some(KeyMethod::Other(printable(method))),
        };
        // The same key for several systems is declared several times; one of them may be readable.
        let is_readable = |key: &KeyMethod| matches!(key, KeyMethod::Aes128 { .. });
        let has_readable = self.has_new_key && self.key.as_deref().is_some_and(is_readable);
        if !(has_readable && key.as_ref().is_some_and(|it| !is_readable(it))) {
            self.key = key.map(Arc::new);
        }
        self.has_new_key = true;
        Ok(())
    }

    fn rendition(&mut self, value: &str) {
        let attributes = AttributeList::parse(value);
        let is_audio = attributes.get("TYPE").is_some_and(|it| it.eq_ignore_ascii_case("audio"));
        let Some(group) = attributes.get("GROUP-ID").filter(|_| is_audio) else { return };
        let address = attributes.get("URI");
        let is_inside = address.is_none();
        if self.audio_addresses.len() < RENDITIONS_MAX {
            self.audio_addresses.extend(address.map(str::to_owned));
        }
        if let Some((_, has_inside)) = self.audio.iter_mut().find(|it| it.0 == group) {
            *has_inside |= is_inside;
        } else if self.audio.len() < RENDITIONS_MAX {
            self.audio.push((group.to_owned(), is_inside));
        }
    }

    fn address(&mut self, line: &str) -> Result<(), HlsError> {
        if let Some((variant, audio)) = self.next_variant.take() {
            if self.variants.len() < VARIANTS_MAX {
                let position = self.variants.len() as u32;
                self.variants.push(Variant { address: checked(line)?.to_owned(), position, ..variant });
                self.variant_audio.push(audio);
            }
            return Ok(());
        }
        if !self.has_tag {
            // A page or another text.
            return Err(HlsError::NotAPlaylist);
        }
        if self.media.segments.len() >= SEGMENTS_MAX {
            return Err(HlsError::TooManySegments);
        }
        let address = checked(line)?;
        let NextSegment { duration, range, is_discontinuity, is_gap } = std::mem::take(&mut self.next);
        // Segments of one file share the text of its address.
        let address = match &self.last_range {
            Some((last, _)) if **last == *address => last.clone(),
            _ => Arc::from(address),
        };
        let range = range.map(|(length, start)| {
            let after = self.last_range.as_ref().filter(|it| it.0 == address).map_or(0, |it| it.1);
            SegmentRange { start: start.unwrap_or(after), length }
        });
        self.last_range = range.map(|it| (address.clone(), it.start.saturating_add(it.length)));
        self.has_new_key = false;
        self.media.segments.push(MediaSegment {
            address,
            duration: duration.unwrap_or_default(),
            range,
            key: self.key.clone(),
            has_map: self.has_map,
            is_discontinuity,
            is_gap,
        });
        Ok(())
    }

    fn finish(mut self) -> Result<HlsPlaylist, HlsError> {
        if !self.has_tag {
            return Err(HlsError::NotAPlaylist);
        }
        if !self.variants.is_empty() {
            for (variant, group) in self.variants.iter_mut().zip(&self.variant_audio) {
                let audio = self.audio.iter().find(|it| Some(&it.0) == group.as_ref());
                variant.has_separate_audio = audio.is_some_and(|it| !it.1);
                let is_sound = self.audio_addresses.contains(&variant.address);
                variant.picture = match variant.picture {
                    VariantPicture::Unknown if is_sound => VariantPicture::None,
                    // Sound apart is beside a picture.
                    VariantPicture::Unknown if variant.has_separate_audio => VariantPicture::Certain,
                    known => known,
                };
            }
            return Ok(HlsPlaylist::Master(MasterPlaylist { variants: self.variants }));
        }
        let longest = self.media.segments.iter().map(|it| it.duration).max().unwrap_or_default();
        let longest = if longest.is_zero() { TARGET_UNKNOWN } else { longest };
        // Whole seconds, as the standard rounds them.
        let longest = Duration::from_secs(longest.as_secs() + u64::from(longest.subsec_nanos() > 0));
        self.media.target = self.declared_target.unwrap_or(longest).clamp(TARGET_MIN, TARGET_MAX);
        Ok(HlsPlaylist::Media(self.media))
    }
}

fn variant(attributes: &AttributeList<'_>) -> Variant {
    let height = attributes.get("RESOLUTION").and_then(|it| {
        let (_, height) = it.split_once(['x', 'X'])?;
        height.trim().parse().ok()
    });
    let is_audio = |codec: &str| {
        let codec = codec.trim().to_ascii_lowercase();
        ["mp4a", "ac-3", "ec-3", "ac-4", "opus", "flac", "mp3"].iter().any(|it| codec.starts_with(it))
    };
    let is_video = |codec: &str| {
        let codec = codec.trim().to_ascii_lowercase();
        let video = ["avc1", "avc3", "hvc1", "hev1", "dvh1", "dvhe", "vp09", "av01", "mp4v"];
        video.iter().any(|it| codec.starts_with(it))
    };
    let codecs = attributes.get("CODECS").filter(|it| !it.trim().is_empty());
    let has_picture = ["RESOLUTION", "FRAME-RATE", "VIDEO", "HDCP-LEVEL"];
    let picture = match codecs {
        _ if has_picture.iter().any(|it| attributes.get(it).is_some()) => VariantPicture::Certain,
        Some(codecs) if codecs.split(',').any(is_video) => VariantPicture::Certain,
        Some(codecs) if codecs.split(',').all(is_audio) => VariantPicture::None,
        _ => VariantPicture::Unknown,
    };
    let is_mute = codecs.is_some_and(|it| !it.split(',').any(is_audio));
    Variant {
        address: String::new(),
        position: 0,
        bits_per_second: attributes
            .number("BANDWIDTH")
            .or_else(|| attributes.number("AVERAGE-BANDWIDTH"))
            .unwrap_or(0),
        height,
        picture,
        has_no_sound: is_mute && attributes.get("AUDIO").is_none(),
        has_separate_audio: false,
    }
}

/// Returns an address that is not too long.
fn checked(address: &str) -> Result<&str, HlsError> {
    if address.len() > ADDRESS_BYTES_MAX { Err(HlsError::AddressTooLong) } else { Ok(address) }
}

/// Parses seconds with decimals, followed by anything after a comma or space. Negative ones are unknown.
fn seconds(value: &str) -> Option<Duration> {
    let number = value.split([',', ' ', '\t', ';']).next().unwrap_or_default();
    let seconds = Duration::try_from_secs_f64(number.parse().ok()?).ok()?;
    Some(seconds.min(SEGMENT_DURATION_MAX))
}

/// Parses a whole number, which some servers write with decimals.
fn whole_number(value: &str) -> Option<u64> {
    value.split(['.', ',', ' ']).next()?.parse().ok()
}

/// Parses `length[@start]`, with quotes or without.
fn byte_range(value: &str) -> Option<(u64, Option<u64>)> {
    let value = value.trim_matches('"');
    let (length, start) = match value.split_once('@') {
        Some((length, start)) => (length, Some(start.trim().parse().ok()?)),
        None => (value, None),
    };
    let length = length.trim().parse().ok().filter(|it| *it > 0)?;
    // Such a range would not fit into a header.
    start.unwrap_or(0_u64).checked_add(length)?;
    Some((length, start))
}

/// Parses up to 32 hexadecimal digits after `0x`; missing leading ones are zero.
fn initialization_vector(value: &str) -> Option<[u8; 16]> {
    let digits = value.strip_prefix("0x").or_else(|| value.strip_prefix("0X")).unwrap_or(value);
    let is_valid = !digits.is_empty() && digits.bytes().all(|it| it.is_ascii_hexdigit());
    if !is_valid || digits.len() > 32 {
        return None;
    }
    u128::from_str_radix(digits, 16).ok().map(u128::to_be_bytes)
}

fn printable(name: &str) -> String {
    name.chars().filter(|it| it.is_ascii_graphic()).take(NAME_BYTES_MAX).collect()
}

impl fmt::Debug for HlsPlaylist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Master(it) => write!(f, "master playlist with {} variants", it.variants.len()),
            Self::Media(it) => it.fmt(f),
        }
    }
}

impl fmt::Debug for MediaPlaylist {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "media playlist with segments {} to {}", self.sequence, self.end())
    }
}
