//! Builds the request to a provider: the standard headers, the headers of the user, and the headers that must
//! not be sent.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ACCEPT, AUTHORIZATION, CONNECTION, COOKIE, HOST, HeaderMap, HeaderName, HeaderValue, USER_AGENT,
};
use http::{Method, Request, Uri};
use http_body_util::Empty;
use tracing::debug;

use crate::dial::Proxy;
use crate::dial::trust::CertificateTrust;
use crate::error::{Cause, UpstreamError};
use crate::source::known::KnownSource;
use crate::source::target::HttpTarget;
use crate::ts::audio_frame::{ac3_frame_bytes, loas_frame_bytes};
use crate::ts::table_reader::TableHints;

/// Default User-Agent.
const USER_AGENT_DEFAULT: HeaderValue =
    HeaderValue::from_static(concat!("Headwater/", env!("CARGO_PKG_VERSION")));

/// A request to open an upstream. `Debug` prints neither address nor headers, because both contain
/// credentials.
#[derive(Clone, Default)]
pub struct OpenRequest {
    /// `http://`, `https://`, `file://` or a plain path.
    pub url: String,
    /// Additional headers. A later one replaces an earlier one of the same name.
    pub headers: Vec<(String, String)>,
    /// The User-Agent; without one, that of the headers or the default.
    pub user_agent: Option<String>,
    /// A program that is run instead of opening the address: its name or absolute path, then its arguments. The
    /// arguments contain the address already. Headers and User-Agent are not passed to it.
    pub command: Option<Vec<String>>,
    /// Text for the standard input of that program, at most 32 KiB. May be a secret, so it is never printed.
    pub command_input: Option<ProgramInput>,
    /// The proxy to connect through. A program has to be told by its command.
    pub proxy: Option<Arc<Proxy>>,
    /// The certificates of servers that are accepted; `None` accepts those of the machine's authorities. Not passed to a
    /// program.
    pub trust: Option<Arc<CertificateTrust>>,
    /// The addresses that may be connected to. `None` allows all.
    pub policy: Option<Arc<dyn AddressPolicy>>,
    /// The program for an address that leads to a playlist of segments which the gateway does not read itself. `None` if none
    /// is installed.
    pub playlist_reader: Option<PlaylistReader>,
    /// Whether that program reads HLS playlists that the gateway could read itself. For films.
    pub prefers_program: bool,
    /// The program that converts a station whose sound a transport stream cannot carry. `None` if none is installed.
    pub audio_converter: Option<AudioConverter>,
    /// Other addresses of the same stream, for when the server does not serve this one.
    pub other_addresses: Option<Arc<dyn OtherAddresses>>,
    /// Makes the address, in place of `url`, when the permit is there. `None` for a stream with a lasting address.
    pub address_maker: Option<Arc<dyn AddressMaker>>,
    /// The number of the programme to follow in a stream with several; `None` leaves the choice to the tables. A program
    /// that reads the address does not get it.
    pub program: Option<u16>,
    /// The findings of earlier openings of the address.
    pub known: KnownSource,
}

/// Maximum length of the input of a program: what a pipe takes without a reader.
pub(super) const PROGRAM_INPUT_MAX: usize = 32 << 10;

/// The standard input of a program.
#[derive(Clone)]
pub struct ProgramInput(pub Arc<str>);

impl fmt::Debug for ProgramInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProgramInput({} bytes)", self.0.len())
    }
}

impl OpenRequest {
    /// Returns what is known of the tables before the first packet.
    pub(crate) fn table_hints(&self) -> TableHints {
        TableHints { program: self.program, wrong_checksums: self.known.wrong_checksums.clone() }
    }
}

/// Other addresses of the stream that a request opens, on the same server and with the same login.
pub trait OtherAddresses: Send + Sync {
    /// Returns the addresses to ask after the server did not serve the first one, in this order. Asked at most once for a
    /// request.
    fn after_refusal(&self) -> Vec<String>;

    /// Notes that the stream was opened at this address, the first one or another.
    fn opened(&self, url: &str);

    /// Notes that it was opened at none. Not called if the opening is dropped.
    fn failed(&self);
}

/// The address of a stream, as it is made.
pub type AddressFuture<'a> = Pin<Box<dyn Future<Output = Result<String, UpstreamError>> + Send + 'a>>;

/// Makes the address of a stream that has no lasting one.
pub trait AddressMaker: Send + Sync {
    /// Makes an address. Called once for each opening.
    ///
    /// # Errors
    /// The provider gives none.
    fn address(&self) -> AddressFuture<'_>;
}

/// Decides which addresses a request may lead to.
pub trait AddressPolicy: Send + Sync {
    /// Returns whether the address of the request itself may lead anywhere. Redirects may not.
    fn trusts_request(&self) -> bool;

    /// Checks a numeric address. `named_by` is the server that redirected to it.
    ///
    /// # Errors
    /// The reason why it may not be connected to.
    fn check(&self, to: SocketAddr, named_by: Option<SocketAddr>) -> Result<(), String>;
}

/// Returns the command that converts sound from its standard input: a program's name or absolute path, then its arguments.
pub type AudioConverter = Arc<dyn Fn(AudioContainer) -> Vec<String> + Send + Sync>;

/// A container of sound that a program converts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AudioContainer {
    /// Ogg, with Vorbis, Opus or FLAC.
    Ogg,
    /// FLAC by itself.
    Flac,
    /// AAC in LOAS.
    Loas,
    /// Frames of AC-3.
    Ac3,
    /// Frames of E-AC-3.
    Eac3,
}

impl AudioContainer {
    /// Returns the container that begins with these bytes.
    pub(crate) fn from_start(bytes: &[u8]) -> Option<Self> {
        [(&b"OggS"[..], Self::Ogg), (b"fLaC", Self::Flac)]
            .into_iter()
            .find_map(|(start, it)| bytes.starts_with(start).then_some(it))
    }

    /// Returns the container of frames that these bytes contain from some byte on: a station is joined anywhere.
    pub(crate) fn from_frames(bytes: &[u8]) -> Option<Self> {
        let loas = |at: &[u8]| at.first_chunk().and_then(loas_frame_bytes);
        let ac3 = |at: &[u8]| at.first_chunk().and_then(ac3_frame_bytes);
        // The sync word of LOAS has 11 bits, that of AC-3 16, and its header has more that is fixed.
        let has_loas = memchr::memchr_iter(0x56, bytes).any(|it| are_frames(&bytes[it..], loas, 4));
        let mut starts_of_ac3 =
            memchr::memchr_iter(0x0B, bytes).filter(|it| are_frames(&bytes[*it..], ac3, 2));
        match starts_of_ac3.next().and_then(|it| bytes.get(it + 5)) {
            _ if has_loas => Some(Self::Loas),
            Some(version) if version >> 3 > 10 => Some(Self::Eac3),
            Some(_) => Some(Self::Ac3),
            None => None,
        }
    }

    /// Returns the name of ffmpeg's input format.
    pub fn ffmpeg_name(self) -> &'static str {
        match self {
            Self::Ogg => "ogg",
            Self::Flac => "flac",
            Self::Loas => "loas",
            Self::Ac3 => "ac3",
            Self::Eac3 => "eac3",
        }
    }

    /// Returns a name that completes "expected a transport stream, got …".
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Ogg => "an Ogg stream",
            Self::Flac => "a FLAC stream",
            Self::Loas => "AAC in LOAS",
            Self::Ac3 => "AC-3 without a container",
            Self::Eac3 => "E-AC-3 without a container",
        }
    }
}

/// Returns whether so many headers of frames follow each other at the distances that they state.
fn are_frames(bytes: &[u8], length: impl Fn(&[u8]) -> Option<usize>, n_headers: usize) -> bool {
    let mut at = 0;
    (0..n_headers).all(|_| {
        let found = bytes.get(at..).and_then(&length);
        at += found.unwrap_or_default();
        found.is_some()
    })
}

/// Returns the command that reads a playlist of segments: a program's name or absolute path, then its arguments.
pub type PlaylistReader = Arc<dyn Fn(&PlaylistAddress) -> Vec<String> + Send + Sync>;

/// A playlist of segments, as the gateway found it. It cannot be printed, because address and cookies are credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct PlaylistAddress {
    /// The format of the playlist.
    pub format: PlaylistFormat,
    /// The address after all redirects.
    pub url: String,
    /// The cookies of the redirects for this address, each as in a `Set-Cookie` header, with its domain and path.
    pub cookies: Vec<String>,
    /// Whether the address is on the server that the request was meant for, so that it may see the same secrets.
    pub is_trusted: bool,
    /// The position of the variant to play in a list of variants, from 0; `None` if the list has segments.
    pub variant: Option<u32>,
}

/// The format of a playlist of segments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlaylistFormat {
    /// HTTP Live Streaming.
    Hls,
    /// MPEG-DASH.
    Dash,
}

impl PlaylistFormat {
    /// Returns the name of ffmpeg's input format.
    pub fn ffmpeg_name(self) -> &'static str {
        match self {
            Self::Hls => "hls",
            Self::Dash => "dash",
        }
    }

    /// Returns a name that completes "expected a transport stream, got …".
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Hls => "an HLS playlist",
            Self::Dash => "a DASH playlist",
        }
    }

    /// Returns the format that a content type declares. The type has neither parameters nor upper case.
    pub(crate) fn from_content_type(content_type: &str) -> Option<Self> {
        const HLS: [&str; 6] = [
            "application/vnd.apple.mpegurl",
            "application/vnd.apple.mpegurl.audio",
            "application/x-mpegurl",
            "application/mpegurl",
            "audio/x-mpegurl",
            "audio/mpegurl",
        ];
        match content_type {
            "application/dash+xml" => Some(Self::Dash),
            it => HLS.contains(&it).then_some(Self::Hls),
        }
    }
}

impl fmt::Debug for OpenRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenRequest").field("n_headers", &self.headers.len()).finish_non_exhaustive()
    }
}

/// Headers without secrets, which are also sent to the host of a redirect. All other headers are sent only to
/// the host they were meant for, because a token may have any name.
const SHAREABLE: [&str; 6] =
    ["user-agent", "accept", "accept-language", "referer", "origin", "cache-control"];

/// Headers that users cannot set: with other values the response could not be parsed.
/// (`Icy-MetaData` would insert titles between the packets.)
const RESERVED: [&str; 8] = [
    "connection",
    "content-length",
    "transfer-encoding",
    "accept-encoding",
    "te",
    "upgrade",
    "keep-alive",
    "icy-metadata",
];

/// Builds the request for `target`. `trusted` is true if the secrets meant for the first host may be sent. `cookies` are
/// names and values of the cookies that servers have set for this target.
pub(crate) fn request(
    open: &OpenRequest,
    target: &HttpTarget,
    trusted: bool,
    cookies: &[(&str, &str)],
) -> Result<Request<Empty<Bytes>>, Cause> {
    let uri: Uri =
        target.path.parse().map_err(|_| Cause::Address("its path is not valid in a request".into()))?;
    let host = HeaderValue::try_from(target.host_header())
        .map_err(|_| Cause::Address("its host is not valid in a request".into()))?;
    let mut headers = HeaderMap::new();
    // In the order of common players; some providers check it.
    headers.insert(HOST, host);
    headers.insert(USER_AGENT, USER_AGENT_DEFAULT);
    headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
    if let Some((user, password)) = &target.login {
        let mut value = HeaderValue::try_from(format!("Basic {}", base64(&format!("{user}:{password}"))))
            .map_err(|_| Cause::Address("its login is not valid in a request".into()))?;
        value.set_sensitive(true);
        headers.insert(AUTHORIZATION, value);
    }
    for (name, value) in &open.headers {
        let Ok(name) = HeaderName::try_from(name.trim()) else {
            debug!("ignoring a request header with an invalid name");
            continue;
        };
        if RESERVED.contains(&name.as_str()) || (!trusted && !SHAREABLE.contains(&name.as_str())) {
            continue;
        }
        match HeaderValue::from_bytes(value.trim().as_bytes()) {
            Ok(value) => {
                headers.insert(name, value);
            }
            Err(_) => debug!(header = %name, "ignoring a request header with an invalid value"),
        }
    }
    if let Some(agent) = &open.user_agent
        && let Ok(agent) = HeaderValue::from_bytes(agent.trim().as_bytes())
    {
        headers.insert(USER_AGENT, agent);
    }
    if !cookies.is_empty() {
        let mut value = HeaderValue::try_from(cookie_header(headers.get(COOKIE), cookies))
            .map_err(|_| Cause::Protocol("a cookie is not valid in a request".into()))?;
        value.set_sensitive(true);
        headers.insert(COOKIE, value);
    }
    headers.insert(CONNECTION, HeaderValue::from_static("close"));

    let mut request = Request::new(Empty::new());
    *request.method_mut() = Method::GET;
    *request.uri_mut() = uri;
    *request.headers_mut() = headers;
    Ok(request)
}

/// Returns the cookies of the user and of the server as one header. A cookie of the server replaces one of the user.
fn cookie_header(of_user: Option<&HeaderValue>, of_server: &[(&str, &str)]) -> String {
    let of_user = of_user.and_then(|it| it.to_str().ok()).unwrap_or_default();
    let is_kept = |it: &&str| {
        let name = it.split('=').next().unwrap_or_default().trim();
        !it.is_empty() && of_server.iter().all(|(other, _)| *other != name)
    };
    let kept = of_user.split(';').map(str::trim).filter(is_kept).map(str::to_owned);
    let pairs = of_server.iter().map(|(name, value)| format!("{name}={value}"));
    kept.chain(pairs).collect::<Vec<_>>().join("; ")
}

/// Encodes as Base64 with padding, for an `Authorization` header.
pub(crate) fn base64(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(text.len().div_ceil(3) * 4);
    for group in text.as_bytes().chunks(3) {
        let mut bits = 0u32;
        for index in 0..3 {
            bits = bits << 8 | u32::from(group.get(index).copied().unwrap_or_default());
        }
        for index in 0..4 {
            if index <= group.len() {
                out.push(char::from(LETTERS[(bits >> (18 - 6 * index)) as usize & 63]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(open: &OpenRequest, url: &str, trusted: bool) -> Vec<String> {
        let request = request(open, &HttpTarget::parse(url).unwrap(), trusted, &[]).unwrap();
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", String::from_utf8_lossy(value.as_bytes()))
        };
        request.headers().iter().map(line).collect()
    }

    #[test]
    fn the_usual_headers_are_sent_in_the_usual_order() {
        assert_eq!(
            sent(&OpenRequest::default(), "http://a:81/x", true),
            [
                "host: a:81",
                concat!("user-agent: Headwater/", env!("CARGO_PKG_VERSION")),
                "accept: */*",
                "connection: close"
            ]
        );
    }

    #[test]
    fn headers_of_the_user_are_sent_and_reserved_headers_cannot_be_replaced() {
        let open = OpenRequest {
            headers: vec![
                ("Referer".into(), "http://b/".into()),
                ("User-Agent".into(), "Player/1".into()),
                ("Accept-Encoding".into(), "gzip".into()),
                ("Connection".into(), "keep-alive".into()),
                ("Icy-MetaData".into(), "1".into()),
                ("bad name".into(), "x".into()),
                ("X-Bad".into(), "a\r\nb: c".into()),
            ],
            ..OpenRequest::default()
        };
        assert_eq!(
            sent(&open, "http://a/x", true),
            ["host: a", "user-agent: Player/1", "accept: */*", "referer: http://b/", "connection: close"]
        );
    }

    #[test]
    fn credentials_stay_with_the_host_they_were_meant_for() {
        let open = OpenRequest {
            headers: vec![
                ("Authorization".into(), "Bearer t".into()),
                ("Cookie".into(), "c=1".into()),
                ("X-Api-Key".into(), "k".into()),
                ("Referer".into(), "http://b/".into()),
            ],
            user_agent: Some("Player/1".into()),
            ..OpenRequest::default()
        };
        assert_eq!(
            sent(&open, "http://other/x", false),
            ["host: other", "user-agent: Player/1", "accept: */*", "referer: http://b/", "connection: close"]
        );
        assert_eq!(sent(&open, "http://a/x", true).len(), 8);
    }

    #[test]
    fn cookies_of_the_server_join_those_of_the_user() {
        let open =
            OpenRequest { headers: vec![("Cookie".into(), "a=1; b=2;".into())], ..OpenRequest::default() };
        let target = HttpTarget::parse("http://a/x").unwrap();
        let sent = |trusted| {
            let request = request(&open, &target, trusted, &[("b", "3"), ("c", "4")]).unwrap();
            request.headers()[COOKIE].clone()
        };
        assert_eq!(sent(true), "a=1; b=3; c=4");
        assert_eq!(sent(false), "b=3; c=4");
        assert!(sent(true).is_sensitive());
    }

    #[test]
    fn a_login_in_the_address_becomes_basic_authentication() {
        let check = |url: &str, value: &str| {
            let sent = sent(&OpenRequest::default(), url, true);
            assert!(sent.contains(&format!("authorization: Basic {value}")), "{sent:?}");
        };
        check("http://a:b@h/", "YTpi");
        check("http://user:@h/", "dXNlcjo=");
        check("http://Aladdin:open%20sesame@h/", "QWxhZGRpbjpvcGVuIHNlc2FtZQ==");
    }

    #[test]
    fn a_request_prints_no_address_and_no_header() {
        let open = OpenRequest {
            url: "http://u:p@a/secret".into(),
            headers: vec![("Cookie".into(), "secret".into())],
            user_agent: None,
            ..OpenRequest::default()
        };
        assert!(!format!("{open:?}").contains("secret"));
    }
}
