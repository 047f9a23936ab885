//! One address that a channel can play from: what it is, and what has to be sent to get it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::channel::ChannelNumber;
use crate::ids::{AccountId, StreamId, StreamProfileId};
use crate::source_url::SourceUrl;

/// A stream of an account: what its provider says, what rules and admins make of that, and where it stands.
///
/// The three are kept apart, so that a refresh cannot lose an edit and an edit that is taken back shows the
/// provider's value again. Readers ask for the value in force: [`Stream::name`], [`Stream::url`] and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Stream {
    pub id: StreamId,
    pub account: AccountId,
    /// As the provider said at the last refresh, or as whoever made it by hand did.
    pub provider: StreamProperties,
    /// What the account's rules made of that.
    #[serde(default, skip_serializing_if = "StreamOverrides::is_empty")]
    pub rule: StreamOverrides,
    /// What admins changed.
    #[serde(default, skip_serializing_if = "StreamOverrides::is_empty")]
    pub manual: StreamOverrides,
    /// Which one it is of those with the same identity in one list, in the order of the list; 0 is the first.
    #[serde(default)]
    pub nth: u32,
    /// How it is handed on, where that is not left to the channel.
    #[serde(default)]
    pub stream_profile: Option<StreamProfileId>,
    /// When it was first seen or made, in milliseconds since 1970.
    #[serde(default)]
    pub added_at: i64,
    /// When something of it last changed, in milliseconds since 1970.
    #[serde(default)]
    pub updated_at: i64,
    /// Of a stream that has vanished from its list: when it was last seen there. Such a stream is *stale*.
    #[serde(default)]
    pub last_seen: Option<i64>,
}

/// What is said about a stream.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamProperties {
    pub name: String,
    pub url: SourceUrl,
    /// Sent in place of the account's where both have one.
    #[serde(default, skip_serializing_if = "RequestHeaders::is_empty")]
    pub headers: RequestHeaders,
    /// The id of its channel in a guide.
    #[serde(default)]
    pub tvg_id: Option<String>,
    /// The name of its group.
    #[serde(default)]
    pub group: Option<String>,
    /// Address of a picture.
    #[serde(default)]
    pub logo: Option<String>,
    /// The channel number that the provider gives it.
    #[serde(default)]
    pub number: Option<ChannelNumber>,
}

/// Values that stand in place of others. An empty text stands for "none".
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
}

impl StreamOverrides {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Stream {
    /// A stream as it is when it is first seen.
    pub fn new(id: StreamId, account: AccountId, provider: StreamProperties, at: i64) -> Self {
        Self {
            id,
            account,
            provider,
            rule: StreamOverrides::default(),
            manual: StreamOverrides::default(),
            nth: 0,
            stream_profile: None,
            added_at: at,
            updated_at: at,
            last_seen: None,
        }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.manual.name.as_ref().or(self.rule.name.as_ref()).unwrap_or(&self.provider.name)
    }

    /// Where it is.
    pub fn url(&self) -> &SourceUrl {
        self.manual.url.as_ref().or(self.rule.url.as_ref()).unwrap_or(&self.provider.url)
    }

    /// What has to be opened to read it.
    pub fn kind(&self) -> SourceKind {
        SourceKind::of(self.url())
    }

    /// The id of its channel in a guide.
    pub fn tvg_id(&self) -> Option<&str> {
        text(&self.manual.tvg_id, &self.rule.tvg_id, &self.provider.tvg_id)
    }

    /// The name of its group.
    pub fn group(&self) -> Option<&str> {
        text(&self.manual.group, &self.rule.group, &self.provider.group)
    }

    /// Address of a picture.
    pub fn logo(&self) -> Option<&str> {
        text(&self.manual.logo, &self.rule.logo, &self.provider.logo)
    }

    /// Has it vanished from its list?
    pub fn is_stale(&self) -> bool {
        self.last_seen.is_some()
    }
}

/// The text in force; an empty one is none.
fn text<'a>(
    manual: &'a Option<String>,
    rule: &'a Option<String>,
    provider: &'a Option<String>,
) -> Option<&'a str> {
    manual.as_deref().or(rule.as_deref()).or(provider.as_deref()).filter(|it| !it.is_empty())
}

/// What has to be opened to read a stream. Decided once, at import, from the address alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceKind {
    /// Transport stream over HTTP or HTTPS. Also what an HTTP address is until it is opened.
    HttpTs,
    /// A file of ours.
    File,
    Hls,
    Rtsp,
    Rtmp,
    Udp,
    Rtp,
    Unknown,
}

/// Why a stream cannot be played. A sentence for the person who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unplayable(&'static str);

impl SourceKind {
    /// Tells the kind from scheme and path.
    pub fn of(url: &SourceUrl) -> Self {
        match url.scheme().to_ascii_lowercase().as_str() {
            "http" | "https" => match extension(url.path()).to_ascii_lowercase().as_str() {
                "m3u8" => Self::Hls,
                "mpd" | "ism" | "isml" => Self::Unknown,
                _ => Self::HttpTs,
            },
            "file" => Self::File,
            "rtsp" | "rtsps" | "rtspu" | "rtspt" => Self::Rtsp,
            "rtmp" | "rtmps" | "rtmpe" | "rtmpt" | "rtmpte" | "rtmpts" => Self::Rtmp,
            "udp" => Self::Udp,
            "rtp" => Self::Rtp,
            _ => Self::Unknown,
        }
    }

    /// Who reads this, when nobody says otherwise.
    ///
    /// # Errors
    /// When nobody can. `has_ffmpeg` is whether the machine has it.
    pub fn reader(self, has_ffmpeg: bool) -> Result<StreamReader, Unplayable> {
        Err(Unplayable(match self {
            Self::HttpTs | Self::File => return Ok(StreamReader::Gateway),
            Self::Unknown => "addresses of this kind are not supported",
            _ if has_ffmpeg => return Ok(StreamReader::Ffmpeg),
            Self::Hls => "HLS addresses need ffmpeg, which is not on this machine",
            Self::Rtsp => "RTSP addresses need ffmpeg, which is not on this machine",
            Self::Rtmp => "RTMP addresses need ffmpeg, which is not on this machine",
            Self::Udp => "UDP addresses need ffmpeg, which is not on this machine",
            Self::Rtp => "RTP addresses need ffmpeg, which is not on this machine",
        }))
    }
}

/// Who reads a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamReader {
    Gateway,
    Ffmpeg,
}

impl Unplayable {
    /// The address is none that a program may be given: without a scheme it could pass for an option or a file, and
    /// some schemes are no places but ways to put local files together.
    pub(crate) const FOR_NO_PROGRAM: Self = Self("addresses of this kind are not given to programs");
    /// An old record, from before commands were checked.
    pub(crate) const COMMAND: Self = Self("the command of its stream profile cannot be read");
}

/// What stands behind the last dot of the last segment.
fn extension(path: &str) -> &str {
    let last = path.rsplit('/').next().unwrap_or_default();
    last.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// Request headers that a stream or an account asks for.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RequestHeaders {
    pub user_agent: Option<String>,
    pub referrer: Option<String>,
    /// Others, in the order found, each name once.
    pub extra: Vec<(String, String)>,
}

impl RequestHeaders {
    /// Most headers that one stream may have beside user agent and referrer.
    pub const EXTRA_MAX: usize = 16;

    /// Sets a header, in place of one with the same name. Says whether it was taken.
    ///
    /// Refused are names and values that are none, headers that belong to the connection and not to its
    /// user (`Host`, `Connection`, `Content-Length` …), and more than [`RequestHeaders::EXTRA_MAX`].
    pub fn set(&mut self, name: &str, value: &str) -> bool {
        let value = value.trim();
        if !is_token(name) || value.is_empty() || value.contains(char::is_control) || is_ours(name) {
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

    /// These headers, and those of `base` that are missing here.
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

/// Names only: a cookie, a token or a referrer with a key in it may be the credential.
impl fmt::Debug for RequestHeaders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestHeaders")
            .field("user_agent", &self.user_agent)
            .field("referrer", &self.referrer.as_ref().map(|_| "…"))
            .field("extra", &self.extra.iter().map(|it| it.0.as_str()).collect::<Vec<_>>())
            .finish()
    }
}

/// Is this a header name as HTTP defines one?
fn is_token(name: &str) -> bool {
    let is_token_byte = |it: u8| it.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`~".contains(&it);
    !name.is_empty() && name.bytes().all(is_token_byte)
}

/// Headers that say how a connection is used. Only the one who owns the connection can.
fn is_ours(name: &str) -> bool {
    const OURS: [&str; 11] = [
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
    OURS.iter().any(|it| name.eq_ignore_ascii_case(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_is_told_from_scheme_and_path() {
        for (url, kind) in [
            ("http://h/live/u/p/1.ts", SourceKind::HttpTs),
            ("HTTPS://h/1", SourceKind::HttpTs),
            ("http://h", SourceKind::HttpTs),
            ("http://h/list.m3u8?token=1", SourceKind::Hls),
            ("http://h/LIST.M3U8", SourceKind::Hls),
            ("http://h/one.ts?next=list.m3u8", SourceKind::HttpTs),
            ("http://h/a.mpd", SourceKind::Unknown),
            ("file:///films/one.ts", SourceKind::File),
            ("rtsp://h/1", SourceKind::Rtsp),
            ("rtmp://h/1", SourceKind::Rtmp),
            ("udp://@239.0.0.1:1234", SourceKind::Udp),
            ("udp://239.0.0.1:1234", SourceKind::Udp),
            ("rtp://@239.0.0.1:1234", SourceKind::Rtp),
            ("srt://h:1", SourceKind::Unknown),
            ("plugin://x", SourceKind::Unknown),
            ("no address", SourceKind::Unknown),
        ] {
            assert_eq!(SourceKind::of(&SourceUrl::new(url)), kind, "{url}");
        }
    }

    #[test]
    fn an_edit_stands_before_a_rule_and_a_rule_before_the_provider_and_an_empty_one_for_none() {
        let provider = StreamProperties {
            name: "p".to_owned(),
            url: SourceUrl::new("http://p/1.m3u8"),
            headers: RequestHeaders::default(),
            tvg_id: Some("p".to_owned()),
            group: Some("p".to_owned()),
            logo: None,
            number: None,
        };
        let mut stream = Stream::new(StreamId(1), AccountId(1), provider, 0);
        let shown =
            |it: &Stream| format!("{} {} {:?} {:?}", it.name(), it.url().expose(), it.tvg_id(), it.group());
        assert_eq!(shown(&stream), r#"p http://p/1.m3u8 Some("p") Some("p")"#);
        stream.rule = StreamOverrides {
            name: Some("r".to_owned()),
            tvg_id: Some("r".to_owned()),
            ..StreamOverrides::default()
        };
        assert_eq!(shown(&stream), r#"r http://p/1.m3u8 Some("r") Some("p")"#);
        stream.manual = StreamOverrides {
            name: Some("m".to_owned()),
            url: Some(SourceUrl::new("http://m/1")),
            group: Some(String::new()),
            ..StreamOverrides::default()
        };
        assert_eq!(shown(&stream), r#"m http://m/1 Some("r") None"#);
        assert_eq!(stream.kind(), SourceKind::HttpTs, "of the address in force");
        stream.manual = StreamOverrides::default();
        assert_eq!(shown(&stream), r#"r http://p/1.m3u8 Some("r") Some("p")"#);
    }

    #[test]
    fn what_cannot_be_played_says_why() {
        assert_eq!(SourceKind::HttpTs.reader(false), Ok(StreamReader::Gateway));
        assert_eq!(SourceKind::Hls.reader(true), Ok(StreamReader::Ffmpeg));
        let refusal = |kind: SourceKind, has_ffmpeg| kind.reader(has_ffmpeg).unwrap_err().to_string();
        assert_eq!(
            refusal(SourceKind::Hls, false),
            "HLS addresses need ffmpeg, which is not on this machine"
        );
        assert_eq!(refusal(SourceKind::Unknown, true), "addresses of this kind are not supported");
    }

    #[test]
    fn a_stream_sends_its_own_headers_and_those_of_its_account_that_it_lacks() {
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
    fn a_stream_has_only_so_many_headers() {
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
