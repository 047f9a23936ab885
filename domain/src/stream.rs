//! A stream: an address that a channel can play from, with its request headers.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::catchup::Archive;
use crate::channel::ChannelNumber;
use crate::drm::{Drm, drm_of};
use crate::entry_details::{ChannelMarks, EntryDetails};
use crate::ids::{AccountId, StreamId, StreamProfileId};
use crate::playlist::content::StreamContent;
use crate::source_url::SourceUrl;
use crate::stream_profile::StreamProfile;
use crate::video_page::site_of;

/// A stream of an account: values of the provider, changes by rules and by admins, and its state.
///
/// The three sets of values are stored separately, so that a refresh cannot overwrite an edit, and removing an edit
/// restores the provider's value. [`Stream::name`], [`Stream::url`] and so on return the value in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    pub id: StreamId,
    pub account: AccountId,
    /// The values of the last refresh, or of the manual creation.
    pub provider: StreamProperties,
    /// Values changed by the account's rules.
    #[serde(default, skip_serializing_if = "StreamOverrides::is_empty")]
    pub rule: StreamOverrides,
    /// Values changed by admins.
    #[serde(default, skip_serializing_if = "StreamOverrides::is_empty")]
    pub manual: StreamOverrides,
    /// Position among the entries with the same identity in one playlist; 0 is the first.
    #[serde(default)]
    pub nth: u32,
    /// The delivery, if it is not left to the channel.
    #[serde(default)]
    pub stream_profile: Option<StreamProfileId>,
    /// The number of the programme to play, where its address leads to several. It comes before the one that the address
    /// names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<u16>,
    /// Whether another stream of the channel plays when the picture of this one stands still. Off: the pictures of a radio
    /// station and of a provider without a programme look the same.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub leaves_still_picture: bool,
    /// When it was first seen or created, in milliseconds since 1970.
    #[serde(default)]
    pub added_at: i64,
    /// When it last changed, in milliseconds since 1970.
    #[serde(default)]
    pub updated_at: i64,
    /// When a stream missing from its playlist was last seen there. Such a stream is *stale*.
    #[serde(default)]
    pub last_seen: Option<i64>,
}

/// The properties of a stream as a playlist or an admin describes them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamProperties {
    pub name: String,
    pub url: SourceUrl,
    /// Overrides the account's headers.
    #[serde(default, skip_serializing_if = "RequestHeaders::is_empty")]
    pub headers: RequestHeaders,
    /// The id of its channel in a programme guide.
    #[serde(default)]
    pub tvg_id: Option<String>,
    /// The name of its group.
    #[serde(default)]
    pub group: Option<String>,
    /// Address of the logo.
    #[serde(default)]
    pub logo: Option<String>,
    /// The channel number that the provider assigned.
    #[serde(default)]
    pub number: Option<ChannelNumber>,
    /// Its content, as far as the playlist shows it.
    #[serde(default, skip_serializing_if = "StreamContent::is_live")]
    pub content: StreamContent,
    /// The archive that the provider keeps of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Box<Archive>>,
    /// Whether the provider marks it as adult content.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_adult: bool,
    /// Minutes by which the programmes of its guide are later than the guide says (`tvg-shift`).
    #[serde(default, skip_serializing_if = "is_zero")]
    pub guide_offset: i16,
    /// Properties that few entries have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Box<EntryDetails>>,
}

fn is_zero(minutes: &i16) -> bool {
    *minutes == 0
}

impl StreamProperties {
    /// Creates the properties of a live stream of which only name and address are known.
    pub fn new(name: impl Into<String>, url: SourceUrl) -> Self {
        Self {
            name: name.into(),
            url,
            headers: RequestHeaders::default(),
            tvg_id: None,
            group: None,
            logo: None,
            number: None,
            content: StreamContent::default(),
            archive: None,
            is_adult: false,
            guide_offset: 0,
            details: None,
        }
    }

    /// Returns the size of all texts, in bytes. An entry of a playlist can have hundreds of kilobytes.
    pub fn text_bytes(&self) -> usize {
        let RequestHeaders { user_agent, referrer, extra } = &self.headers;
        let texts = [user_agent, referrer, &self.tvg_id, &self.group, &self.logo];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        let extra: usize = extra.iter().map(|(name, value)| name.len() + value.len()).sum();
        let archive = self.archive.as_ref().and_then(|it| it.source.as_ref());
        let archive = archive.map_or(0, |it| it.expose().len());
        let details = self.details.as_ref().map_or(0, |it| it.text_bytes());
        self.name.len() + self.url.expose().len() + texts + extra + archive + details
    }
}

/// Values that override others. An empty text means "none".
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamOverrides {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<SourceUrl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tvg_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub logo: Option<String>,
    /// Request headers besides those of the playlist, which they replace one by one.
    #[serde(skip_serializing_if = "RequestHeaders::is_empty")]
    pub headers: RequestHeaders,
}

impl StreamOverrides {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Stream {
    /// Creates a stream as of its first sight.
    pub fn new(id: StreamId, account: AccountId, provider: StreamProperties, at: i64) -> Self {
        Self {
            id,
            account,
            provider,
            rule: StreamOverrides::default(),
            manual: StreamOverrides::default(),
            nth: 0,
            stream_profile: None,
            program: None,
            leaves_still_picture: false,
            added_at: at,
            updated_at: at,
            last_seen: None,
        }
    }

    /// Returns the name in force.
    pub fn name(&self) -> &str {
        self.manual.name.as_ref().or(self.rule.name.as_ref()).unwrap_or(&self.provider.name)
    }

    /// Returns the address in force.
    pub fn url(&self) -> &SourceUrl {
        self.manual.url.as_ref().or(self.rule.url.as_ref()).unwrap_or(&self.provider.url)
    }

    /// Returns the protection that the options of its playlist name. An address of an admin may be another stream.
    pub fn drm(&self) -> Option<Drm> {
        let details = self.provider.details.as_deref().filter(|_| self.manual.url.is_none())?;
        drm_of(&details.options)
    }

    /// Returns the profile of streams without one in stream, channel and account: pages of video sites need a program.
    pub fn profile_of_page(&self) -> Option<StreamProfileId> {
        site_of(self.url()).map(|_| StreamProfile::STREAMLINK)
    }

    /// Returns its request headers: those of an admin, completed by those of the playlist.
    pub fn headers(&self) -> Cow<'_, RequestHeaders> {
        match self.manual.headers.is_empty() {
            true => Cow::Borrowed(&self.provider.headers),
            false => Cow::Owned(self.manual.headers.over(&self.provider.headers)),
        }
    }

    /// Returns the kind of source behind its address.
    pub fn kind(&self) -> SourceKind {
        SourceKind::from_url(self.url())
    }

    /// Returns what it contains.
    pub fn content(&self) -> StreamContent {
        self.provider.content
    }

    /// Returns the id of its channel in a programme guide.
    pub fn tvg_id(&self) -> Option<&str> {
        text(&self.manual.tvg_id, &self.rule.tvg_id, &self.provider.tvg_id)
    }

    /// Returns the name of its group.
    pub fn group(&self) -> Option<&str> {
        text(&self.manual.group, &self.rule.group, &self.provider.group)
    }

    /// Returns the address of the logo.
    pub fn logo(&self) -> Option<&str> {
        text(&self.manual.logo, &self.rule.logo, &self.provider.logo)
    }

    /// Returns its station in a guide that some players bring themselves.
    pub fn station(&self) -> Option<&str> {
        self.provider.details.as_deref()?.station.as_deref()
    }

    /// Returns the marks of the provider that are written to playlists, if it has any.
    pub fn marks(&self) -> Option<&ChannelMarks> {
        self.provider.details.as_deref().map(|it| &it.marks).filter(|it| !it.is_empty())
    }

    /// Returns whether the provider marks it as adult content.
    pub fn is_adult(&self) -> bool {
        self.provider.is_adult
    }

    /// Returns the minutes by which the programmes of its guide are later than the guide says.
    pub fn guide_offset(&self) -> i16 {
        self.provider.guide_offset
    }

    /// Returns the depth of the archive of the provider in days; 0 without an archive that can be played.
    pub fn archive_days(&self) -> u32 {
        let archive = self.provider.archive.as_deref().filter(|it| it.has_addresses(self.url()));
        archive.map_or(0, |it| it.days)
    }

    /// Returns whether it is missing from its playlist.
    pub fn is_stale(&self) -> bool {
        self.last_seen.is_some()
    }
}

/// Returns the text in force; an empty one counts as none.
fn text<'a>(
    manual: &'a Option<String>,
    rule: &'a Option<String>,
    provider: &'a Option<String>,
) -> Option<&'a str> {
    manual.as_deref().or(rule.as_deref()).or(provider.as_deref()).filter(|it| !it.is_empty())
}

/// The kind of source behind an address, determined by the address alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// A transport stream over HTTP or HTTPS. Every HTTP address counts as one until it is opened.
    HttpTs,
    /// A local file.
    File,
    Hls,
    Dash,
    Rtsp,
    Rtmp,
    Srt,
    Udp,
    Rtp,
    Unknown,
}

/// The reason why a stream cannot be played, as a message for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unplayable(&'static str);

impl SourceKind {
    /// Determines the kind by scheme and path.
    pub fn from_url(url: &SourceUrl) -> Self {
        match url.scheme().to_ascii_lowercase().as_str() {
            "http" | "https" => match extension(url.path()).to_ascii_lowercase().as_str() {
                "m3u8" => Self::Hls,
                "mpd" => Self::Dash,
                "ism" | "isml" => Self::Unknown,
                _ => Self::HttpTs,
            },
            "file" => Self::File,
            "rtsp" | "rtsps" | "rtspu" | "rtspt" => Self::Rtsp,
            "rtmp" | "rtmps" | "rtmpe" | "rtmpt" | "rtmpte" | "rtmpts" => Self::Rtmp,
            "srt" => Self::Srt,
            "udp" => Self::Udp,
            "rtp" => Self::Rtp,
            _ => Self::Unknown,
        }
    }

    /// Returns the default reader of this kind.
    ///
    /// # Errors
    /// If nothing can read it. `has_ffmpeg` is whether ffmpeg is installed.
    pub fn reader(self, has_ffmpeg: bool) -> Result<StreamReader, Unplayable> {
        Err(Unplayable(match self {
            Self::HttpTs | Self::Hls | Self::File | Self::Udp | Self::Rtp => {
                return Ok(StreamReader::Gateway);
            }
            Self::Unknown => "addresses of this kind are not supported",
            _ if has_ffmpeg => return Ok(StreamReader::Ffmpeg),
            Self::Dash => "DASH addresses need ffmpeg, which is not installed",
            Self::Rtsp => "RTSP addresses need ffmpeg, which is not installed",
            Self::Rtmp => "RTMP addresses need ffmpeg, which is not installed",
            Self::Srt => "SRT addresses need ffmpeg, which is not installed",
        }))
    }
}

/// The program that reads a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamReader {
    Gateway,
    Ffmpeg,
}

impl Unplayable {
    /// The address is a local file, but the list that names it is from the network.
    pub(crate) const LOCAL_FILE: Self = Self("a list from the network may not name files of this machine");
    /// The address may not be given to a program: without a scheme it could be mistaken for an option or a file, and
    /// some schemes read local files.
    pub(crate) const FOR_NO_PROGRAM: Self = Self("addresses of this kind cannot be passed to programs");
    /// The account has a proxy that cannot carry the stream. The stream is refused, because the provider would see the real
    /// address of the gateway otherwise.
    pub(crate) const PROXY: Self = Self(
        "the proxy of its account cannot carry it: only streams over HTTP can use a proxy, and programs only ffmpeg with an HTTP proxy",
    );
    /// A page of a site whose program is missing.
    pub(crate) const PAGE: Self = Self(
        "the address is a web page; Streamlink plays it, and is not installed on the machine of the gateway",
    );
    pub(crate) const WIDEVINE: Self =
        Self("it is protected by Widevine, whose licence servers give keys to players only");
    pub(crate) const PLAYREADY: Self =
        Self("it is protected by PlayReady, whose licence servers give keys to players only");
    pub(crate) const FAIRPLAY: Self =
        Self("it is protected by FairPlay, whose licence servers give keys to players only");
    pub(crate) const OTHER_DRM: Self =
        Self("it is protected by DRM, whose licence servers give keys to players only");
    pub(crate) const CLEARKEY_SERVER: Self = Self(
        "it is protected by ClearKey, and its playlist does not contain the key; licence servers are not asked",
    );
    pub(crate) const CLEARKEY_SEVERAL: Self =
        Self("it is protected by ClearKey with several keys; the gateway can play streams with one key");
    pub(crate) const CLEARKEY_KIND: Self =
        Self("it is protected by ClearKey, which the gateway can play in DASH streams only");
    pub(crate) const CLEARKEY_FFMPEG: Self =
        Self("it is protected by ClearKey, which needs ffmpeg; ffmpeg is not installed");
    /// A film or an episode.
    pub(crate) const CLEARKEY_FILE: Self =
        Self("it is protected by ClearKey, which the gateway can play in channels only");
    /// A profile of an account at a portal, from before it became one.
    pub(crate) const NO_DEVICE: Self = Self("the profile of its account has no MAC address");
    /// An old record, from before commands were checked.
    pub(crate) const COMMAND: Self = Self("the command of its stream profile is invalid");
}

/// Returns the text after the last dot of the last segment.
fn extension(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Request headers of a stream or an account.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestHeaders {
    pub user_agent: Option<String>,
    pub referrer: Option<String>,
    /// Other headers in the order found, each name once.
    pub extra: Vec<(String, String)>,
}

impl RequestHeaders {
    /// Maximum number of headers besides user agent and referrer.
    pub const EXTRA_MAX: usize = 16;

    /// Sets a header, replacing one with the same name. Returns whether it was accepted.
    ///
    /// Rejects invalid names and values, headers that belong to the connection (`Host`, `Connection`, `Content-Length`
    /// …), and more than [`RequestHeaders::EXTRA_MAX`].
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        let value = value.trim();
        if !is_token(name)
            || value.is_empty()
            || value.contains(char::is_control)
            || belongs_to_connection(name)
        {
            return false;
        }
        if name.eq_ignore_ascii_case("user-agent") {
            self.user_agent = Some(value.to_owned());
        } else if name.eq_ignore_ascii_case("referer") || name.eq_ignore_ascii_case("referrer") {
            self.referrer = Some(value.to_owned());
        } else if let Some(known) = self.extra.iter_mut().find(|it| it.0.eq_ignore_ascii_case(name)) {
            known.1 = value.to_owned();
        } else if self.extra.len() < Self::EXTRA_MAX {
            self.extra.push((name.to_owned(), value.to_owned()));
        } else {
            return false;
        }
        true
    }

    /// Returns these headers, completed by those of `base`.
    pub fn over(&self, base: &Self) -> Self {
        let mut extra = self.extra.clone();
        let is_new = |it: &&(String, String)| !self.extra.iter().any(|own| own.0.eq_ignore_ascii_case(&it.0));
        extra.extend(base.extra.iter().filter(is_new).cloned());
        Self {
            user_agent: self.user_agent.clone().or_else(|| base.user_agent.clone()),
            referrer: self.referrer.clone().or_else(|| base.referrer.clone()),
            extra,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.user_agent.is_none() && self.referrer.is_none() && self.extra.is_empty()
    }
}

/// Names only, because a cookie, a token or a referrer with a key may be a credential.
impl fmt::Debug for RequestHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHeaders")
            .field("user_agent", &self.user_agent)
            .field("referrer", &self.referrer.as_ref().map(|_| "…"))
            .field("extra", &self.extra.iter().map(|it| it.0.as_str()).collect::<Vec<_>>())
            .finish()
    }
}

/// Returns whether this is a header name as HTTP defines it.
fn is_token(name: &str) -> bool {
    let is_token_byte = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`~".contains(&it);
    !name.is_empty() && name.bytes().all(is_token_byte)
}

/// Headers that control the connection and are set by the gateway alone.
fn belongs_to_connection(name: &str) -> bool {
    const NAMES: [&str; 11] = [
        "host",
        "connection",
        "content-length",
        "content-type",
        "expect",
        "keep-alive",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    NAMES.iter().any(|it| name.eq_ignore_ascii_case(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_depends_on_scheme_and_path() {
        for (url, kind) in [
            ("http://h/live/u/p/1.ts", SourceKind::HttpTs),
            ("HTTPS://h/1", SourceKind::HttpTs),
            ("http://h", SourceKind::HttpTs),
            ("http://h/list.m3u8?token=1", SourceKind::Hls),
            ("http://h/LIST.M3U8", SourceKind::Hls),
            ("http://h/one.ts?next=list.m3u8", SourceKind::HttpTs),
            ("http://h/a.mpd", SourceKind::Dash),
            ("http://h/a.ism", SourceKind::Unknown),
            ("file:///films/one.ts", SourceKind::File),
            ("rtsp://h/1", SourceKind::Rtsp),
            ("rtmp://h/1", SourceKind::Rtmp),
            ("srt://h:1", SourceKind::Srt),
            ("udp://@239.0.0.1:1234", SourceKind::Udp),
            ("udp://239.0.0.1:1234", SourceKind::Udp),
            ("rtp://@239.0.0.1:1234", SourceKind::Rtp),
            ("rist://h:1", SourceKind::Unknown),
            ("plugin://x", SourceKind::Unknown),
            ("no address", SourceKind::Unknown),
        ] {
            assert_eq!(SourceKind::from_url(&SourceUrl::new(url)), kind, "{url}");
        }
    }

    #[test]
    fn an_edit_overrides_a_rule_and_a_rule_the_provider_and_empty_means_none() {
        let provider = StreamProperties {
            tvg_id: Some("p".to_owned()),
            group: Some("p".to_owned()),
            ..StreamProperties::new("p", SourceUrl::new("http://p/1.m3u8"))
        };
        let mut stream = Stream::new(StreamId(1), AccountId(1), provider, 0);
        let describe =
            |it: &Stream| format!("{} {} {:?} {:?}", it.name(), it.url().expose(), it.tvg_id(), it.group());
        assert_eq!(describe(&stream), r#"p http://p/1.m3u8 Some("p") Some("p")"#);
        stream.rule = StreamOverrides {
            name: Some("r".to_owned()),
            tvg_id: Some("r".to_owned()),
            ..StreamOverrides::default()
        };
        assert_eq!(describe(&stream), r#"r http://p/1.m3u8 Some("r") Some("p")"#);
        stream.manual = StreamOverrides {
            name: Some("m".to_owned()),
            url: Some(SourceUrl::new("http://m/1")),
            group: Some(String::new()),
            ..StreamOverrides::default()
        };
        assert_eq!(describe(&stream), r#"m http://m/1 Some("r") None"#);
        assert_eq!(stream.kind(), SourceKind::HttpTs, "of the address in force");
        stream.manual = StreamOverrides::default();
        assert_eq!(describe(&stream), r#"r http://p/1.m3u8 Some("r") Some("p")"#);
    }

    #[test]
    fn an_unplayable_kind_has_a_reason() {
        assert_eq!(SourceKind::HttpTs.reader(false), Ok(StreamReader::Gateway));
        assert_eq!(SourceKind::Hls.reader(false), Ok(StreamReader::Gateway));
        assert_eq!(SourceKind::Dash.reader(true), Ok(StreamReader::Ffmpeg));
        let refusal = |kind: SourceKind, has_ffmpeg| kind.reader(has_ffmpeg).unwrap_err().to_string();
        assert_eq!(refusal(SourceKind::Dash, false), "DASH addresses need ffmpeg, which is not installed");
        assert_eq!(refusal(SourceKind::Unknown, true), "addresses of this kind are not supported");
    }

    #[test]
    fn a_streams_headers_are_completed_by_those_of_its_account() {
        let mut own = RequestHeaders::default();
        let mut base = RequestHeaders::default();
        assert!(own.set("user-agent", "own") && own.set("X-A", "own"));
        assert!(
            base.set("User-Agent", "base")
                && base.set("Referer", "base")
                && base.set("x-a", "base")
                && base.set("X-B", "base")
        );
        let both = own.over(&base);
        assert_eq!((both.user_agent.as_deref(), both.referrer.as_deref()), (Some("own"), Some("base")));
        assert_eq!(both.extra, [("X-A".to_owned(), "own".to_owned()), ("X-B".to_owned(), "base".to_owned())]);
        assert_eq!(RequestHeaders::default().over(&base), base);
    }

    #[test]
    fn headers_that_would_change_the_request_are_refused() {
        let mut headers = RequestHeaders::default();
        for (name, value) in [
            ("Host", "other"),
            ("transfer-encoding", "chunked"),
            ("Content-Length", "1"),
            ("a b", "c"),
            ("", "c"),
            ("X-A", ""),
            ("X-A", "1\r\nHost: other"),
            ("X-Ä", "1"),
        ] {
            assert!(!headers.set(name, value), "{name}: {value}");
        }
        assert!(headers.is_empty());
    }

    #[test]
    fn the_number_of_headers_is_limited() {
        let mut headers = RequestHeaders::default();
        assert_eq!(
            (0..100).filter(|it| headers.set(&format!("x-{it}"), "1")).count(),
            RequestHeaders::EXTRA_MAX
        );
        assert!(headers.set("X-0", "2"), "one that is there can be changed");
    }

    #[test]
    fn headers_print_without_their_values() {
        let mut headers = RequestHeaders::default();
        headers.set("Cookie", "secret");
        headers.set("Referer", "http://h/?token=secret");
        assert!(!format!("{headers:?}").contains("secret"));
    }
}
