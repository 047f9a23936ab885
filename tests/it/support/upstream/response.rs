//! The responses of a provider, and the ways in which its connections misbehave.

use std::time::Duration;

use bytes::Bytes;

use super::Programme;

/// The response of a path to a new request.
#[derive(Debug, Clone)]
pub struct MockResponse {
    pub(super) head: Head,
    pub(super) body: Body,
    /// Delay before the first byte of the head.
    pub(super) delay: Duration,
    /// How much of its past a live programme sends at once.
    pub(super) burst: Duration,
    /// Rate of the burst, in multiples of that of the programme.
    pub(super) burst_speed: Option<f64>,
    /// The programme is sent in pieces of this length, each at once; zero sends it evenly.
    pub(super) clump: Duration,
    /// Number of body bytes after which this connection ends by itself.
    pub(super) ends_after: Option<(u64, Cut)>,
    /// Further header lines, each with its CR LF.
    pub(super) headers: String,
    /// Whether the connection waits for another request after a complete body.
    pub(super) is_kept: bool,
}

#[derive(Debug, Clone)]
pub(super) enum Head {
    Plain,
    Chunked,
    Icy,
    /// Only the body, like very old servers.
    None,
    Status(u16, String),
    Redirect(String),
    /// The request is read and never answered.
    Never,
}

#[derive(Debug, Clone)]
pub(super) enum Body {
    Programme(Programme),
    /// With its content type. Shared between the responses to all requests.
    Bytes(&'static str, Bytes),
    /// The head announces a stream, but no data follows.
    Nothing,
    /// The head announces a stream, then the connection ends.
    Empty,
}

impl MockResponse {
    pub fn play(programme: impl Into<Programme>) -> MockResponse {
        MockResponse::new(Head::Plain, Body::Programme(programme.into()))
    }

    pub fn status(code: u16) -> MockResponse {
        MockResponse::new(
            Head::Status(code, String::new()),
            Body::Bytes("text/plain", format!("status {code}\n").into()),
        )
    }

    /// Responds with a status and further header lines, each terminated by CR LF.
    pub fn status_with(code: u16, headers: &str) -> MockResponse {
        MockResponse::new(
            Head::Status(code, headers.into()),
            Body::Bytes("text/plain", format!("status {code}\n").into()),
        )
    }

    pub fn html() -> MockResponse {
        let page =
            "<!DOCTYPE html><html><body><h1>Your subscription has expired</h1></body></html>".repeat(40);
        MockResponse::text("text/html", page)
    }

    pub fn text(content_type: &'static str, body: impl Into<Vec<u8>>) -> MockResponse {
        let body: Vec<u8> = body.into();
        MockResponse::new(Head::Plain, Body::Bytes(content_type, body.into()))
    }

    /// Sends a file as a web server does: with its length, and as fast as it is read.
    pub fn recording(bytes: &[u8]) -> MockResponse {
        MockResponse::text("video/mp2t", bytes)
    }

    pub fn empty() -> MockResponse {
        MockResponse::new(Head::Plain, Body::Empty)
    }

    /// Reads the request and sends nothing.
    pub fn mute() -> MockResponse {
        MockResponse::new(Head::Never, Body::Nothing)
    }

    /// Sends a valid head and no body.
    pub fn silent_body() -> MockResponse {
        MockResponse::new(Head::Plain, Body::Nothing)
    }

    pub fn redirect(to: impl Into<String>) -> MockResponse {
        MockResponse::new(Head::Redirect(to.into()), Body::Bytes("text/plain", "moved\n".into()))
    }

    fn new(head: Head, body: Body) -> MockResponse {
        MockResponse {
            head,
            body,
            delay: Duration::ZERO,
            burst: Duration::ZERO,
            burst_speed: None,
            clump: Duration::ZERO,
            ends_after: None,
            headers: String::new(),
            is_kept: false,
        }
    }

    /// Responds to a range of bytes with that part of a file.
    pub fn part(content_type: &'static str, file: &[u8], first: usize, last: usize) -> MockResponse {
        let last = last.min(file.len().saturating_sub(1));
        let body = file.get(first..=last).unwrap_or_default();
        let mut answer = MockResponse::text(content_type, body);
        let range = format!("Content-Range: bytes {first}-{last}/{}\r\n", file.len());
        answer.head = Head::Status(206, range);
        answer
    }

    /// Adds a header line.
    pub fn with_header(mut self, name: &str, value: &str) -> MockResponse {
        self.headers.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Keeps the connection for another request after a complete body.
    pub fn kept(mut self) -> MockResponse {
        self.is_kept = true;
        self
    }

    pub fn chunked(mut self) -> MockResponse {
        self.head = Head::Chunked;
        self
    }

    pub fn icy(mut self) -> MockResponse {
        self.head = Head::Icy;
        self
    }

    pub fn headless(mut self) -> MockResponse {
        self.head = Head::None;
        self
    }

    pub fn after(mut self, delay: Duration) -> MockResponse {
        self.delay = delay;
        self
    }

    /// Sends the programme in bursts of this length, starting with one.
    pub fn in_bursts(mut self, length: Duration) -> MockResponse {
        (self.burst, self.clump) = (length, length);
        self
    }

    pub fn with_burst(mut self, past: Duration) -> MockResponse {
        self.burst = past;
        self
    }

    /// Sends this much of the past at so many times the rate of the programme, until it has reached the present.
    pub fn with_burst_at(mut self, past: Duration, speed: f64) -> MockResponse {
        (self.burst, self.burst_speed) = (past, Some(speed));
        self
    }

    /// Ends every connection in this way after this many body bytes.
    pub fn until(mut self, bytes: u64, cut: Cut) -> MockResponse {
        self.ends_after = Some((bytes, cut));
        self
    }
}

/// The packets that the running connections of a path send.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Behavior {
    Healthy,
    Stalled,
    /// Valid packets, at this fraction of their rate.
    Trickle(f64),
    Garbage,
    OnlyNulls,
    /// Complete packets of a programme that no table announces.
    Unannounced,
    /// Clear tables and scrambled streams.
    Scrambled,
    /// Everything but the video of a picture with the usual PIDs, whose clock goes on.
    NoPicture,
    /// Some bytes are missing now and then, so packets are torn.
    Torn,
}

/// How a connection ends, always in the middle of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    Reset,
    End,
    /// The connection stays open and no more data comes.
    Stall,
}
