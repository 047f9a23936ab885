//! A provider in memory: it counts its own sockets, and behaves or misbehaves as told.

use std::collections::{HashMap, VecDeque};
use std::future::pending;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until, timeout};

use crate::dial::{BoxedSocket, Dial, DialAddress, DialFuture};
use crate::error::{Cause, UpstreamError};
use crate::testing::socket::{Known, MemorySocket};
use crate::testing::ts::{TsSource, TsStream};
use crate::ts::packet::{PACKET, null_packet, set_pid};

/// How much lies between the two ends of a connection; a network has that much in flight.
const SOCKET_BYTES: usize = 256 << 10;
/// How far into its programme a provider is when it is made: so much past can be sent first.
const PAST: Duration = Duration::from_secs(60);
/// The answer to a path that nobody set.
const UNKNOWN_PATH: u16 = 404;

/// Connects to registered providers, and to nobody else.
#[derive(Clone, Default)]
pub struct MemoryDial {
    providers: Arc<Mutex<HashMap<String, MemoryProvider>>>,
}

impl MemoryDial {
    /// A dialer that knows nobody.
    pub fn new() -> Self {
        Self::default()
    }

    /// The provider at `host:port`; made when there is none yet.
    pub fn provider(&self, address: &str) -> MemoryProvider {
        self.providers.lock().entry(address.to_owned()).or_insert_with(MemoryProvider::new).clone()
    }
}

impl Dial for MemoryDial {
    fn dial<'a>(&'a self, address: &'a DialAddress, limit: Duration) -> DialFuture<'a> {
        let provider = self.providers.lock().get(&address.to_string()).cloned();
        Box::pin(async move {
            let Some(provider) = provider else { return Err(Cause::Dns.into()) };
            timeout(limit, provider.connect()).await.unwrap_or_else(|_| Err(Cause::ConnectTimeout.into()))
        })
    }
}

/// Whether and how a provider can be reached at all.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reachability {
    /// It accepts after this time.
    After(Duration),
    /// It refuses connections.
    Refuses,
    /// Nothing ever answers.
    Silent,
    /// Its certificate is no good.
    BadCertificate,
    /// Its name is unknown.
    Unknown,
}

/// What a provider does with a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Behaviour {
    /// Streams.
    Play(Play),
    /// Answers with a status and a short text.
    Status(u16),
    /// Answers 200 with a web page.
    Html,
    /// Answers 200 with a small JSON document.
    Json,
    /// Answers 200 with an HLS playlist.
    Hls,
    /// Answers 200 with nothing.
    Empty,
    /// Sends no answer and keeps the connection.
    NoAnswer,
    /// Answers 302 to here.
    Redirect(String),
    /// Answers 200 and sends bytes without an end that are no transport stream.
    Garbage,
    /// Sends exactly these bytes, head and all, and closes.
    Raw(Bytes),
    /// Closes without an answer.
    Close,
    /// Tears the connection off without an answer.
    Reset,
}

impl Behaviour {
    /// Streams a [`TsSource`] of this name.
    pub fn play(label: &str) -> Self {
        Self::Play(Play::new(TsSource::new(label)))
    }
}

/// How a provider streams.
#[derive(Debug, Clone, PartialEq)]
pub struct Play {
    /// What.
    pub ts: TsSource,
    /// How much of the past it sends at once at the beginning; at most a minute.
    pub burst: Duration,
    /// Programme seconds per second: 1.0 is right, less is a trickle.
    pub speed: f64,
    /// Begins with the next picture that is due, and not with the one that was due last.
    pub is_punctual: bool,
    /// How late a picture may come: each by another part of this.
    pub late_max: Duration,
    /// What happens after so many packets.
    pub after: Option<(u64, Break)>,
    /// How the answer begins.
    pub head: ResponseHead,
}

impl Play {
    /// Streams without a fault, from now on.
    pub fn new(ts: TsSource) -> Self {
        Self {
            ts,
            burst: Duration::ZERO,
            speed: 1.0,
            is_punctual: false,
            late_max: Duration::ZERO,
            after: None,
            head: ResponseHead::Plain,
        }
    }
}

/// How a stream begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseHead {
    /// `HTTP/1.1 200 OK`, closed at the end.
    Plain,
    /// In chunks.
    Chunked,
    /// With a length, which may be a lie.
    Length(u64),
    /// `ICY 200 OK`.
    Icy,
    /// With lines that are no headers.
    Broken,
    /// None at all.
    Missing,
}

/// How a playing connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// It ends in order.
    End,
    /// It is torn off.
    Reset,
    /// It stays, and nothing comes.
    Silence,
    /// It goes on with bytes that are no transport stream.
    Garbage,
    /// It goes on with null packets only.
    Nulls,
    /// It goes on with packets of a PID that no table names.
    UnknownPids,
}

/// A request as the provider saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    /// When.
    pub at: Instant,
    /// Path and query.
    pub path: String,
    /// The head, line by line, without the first.
    pub headers: Vec<String>,
}

/// A provider; clones are the same one.
#[derive(Clone)]
pub struct MemoryProvider {
    inner: Arc<Mutex<Inner>>,
}

struct Inner {
    /// When the programme was [`PAST`] old.
    epoch: Instant,
    reach: Reachability,
    /// What to do for a path; the last one stays.
    scripts: HashMap<String, VecDeque<Behaviour>>,
    fallback: Option<Behaviour>,
    limit: Option<(usize, u16)>,
    is_stubborn: bool,
    sockets: Vec<Arc<Known>>,
    peak: usize,
    n_accepted: usize,
    requests: Vec<SeenRequest>,
    playing: Vec<(String, watch::Sender<Option<Break>>)>,
}

impl Inner {
    /// Sockets that look open from here: neither shut down nor gone.
    fn n_open(&self) -> usize {
        let is_open = |it: &&Arc<Known>| {
            let is_shut = it.is_shut.load(Ordering::SeqCst) && !self.is_stubborn;
            !is_shut && !it.is_gone.load(Ordering::SeqCst)
        };
        self.sockets.iter().filter(is_open).count()
    }
}

impl MemoryProvider {
    fn new() -> Self {
        Self {
            inner: Arc::new(Mutex::new(Inner {
                epoch: Instant::now(),
                reach: Reachability::After(Duration::ZERO),
                scripts: HashMap::new(),
                fallback: None,
                limit: None,
                is_stubborn: false,
                sockets: Vec::new(),
                peak: 0,
                n_accepted: 0,
                requests: Vec::new(),
                playing: Vec::new(),
            })),
        }
    }

    /// From now on, requests for `path` (with its query) are treated so.
    pub fn set(&self, path: &str, behaviour: Behaviour) {
        self.script(path, [behaviour]);
    }

    /// From now on, the first request for `path` is treated so, the second so, …; the last one stays.
    pub fn script(&self, path: &str, behaviours: impl IntoIterator<Item = Behaviour>) {
        self.inner.lock().scripts.insert(path.to_owned(), behaviours.into_iter().collect());
    }

    /// From now on, requests for paths that nobody set are treated so.
    pub fn set_fallback(&self, behaviour: Behaviour) {
        self.inner.lock().fallback = Some(behaviour);
    }

    /// Whether the provider can be reached.
    pub fn set_reachability(&self, reach: Reachability) {
        self.inner.lock().reach = reach;
    }

    /// Refuses with `status` whatever comes while `n` other sockets are open.
    pub fn set_limit(&self, n: usize, status: u16) {
        self.inner.lock().limit = Some((n, status));
    }

    /// A stubborn provider does not close its side, and goes on sending, when the client has shut down its own.
    pub fn set_stubborn(&self, is_stubborn: bool) {
        self.inner.lock().is_stubborn = is_stubborn;
    }

    /// Breaks every connection that plays `path` now.
    pub fn break_now(&self, path: &str, how: Break) {
        for (_, playing) in self.inner.lock().playing.iter().filter(|(it, _)| it == path) {
            playing.send_replace(Some(how));
        }
    }

    /// Sockets that are open as the provider sees it.
    pub fn n_open(&self) -> usize {
        self.inner.lock().n_open()
    }

    /// Sockets whose client end still exists, those that have been shut down included.
    pub fn n_held(&self) -> usize {
        self.inner.lock().sockets.iter().filter(|it| !it.is_gone.load(Ordering::SeqCst)).count()
    }

    /// The most sockets that were ever open at once.
    pub fn peak(&self) -> usize {
        self.inner.lock().peak
    }

    /// Connections that were ever made.
    pub fn n_accepted(&self) -> usize {
        self.inner.lock().n_accepted
    }

    /// What has been asked, in order.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.inner.lock().requests.clone()
    }

    async fn connect(self) -> Result<BoxedSocket, UpstreamError> {
        let reach = self.inner.lock().reach;
        match reach {
            Reachability::After(time) if time.is_zero() => {}
            Reachability::After(time) => sleep(time).await,
            Reachability::Refuses => return Err(Cause::Connect("connection refused".into()).into()),
            Reachability::Silent => pending().await,
            Reachability::BadCertificate => {
                return Err(Cause::Tls("invalid peer certificate: Expired".into()).into());
            }
            Reachability::Unknown => return Err(Cause::Dns.into()),
        }
        let (socket, stream, known) = MemorySocket::pair(SOCKET_BYTES);
        {
            let mut inner = self.inner.lock();
            inner.sockets.retain(|it| !it.is_gone.load(Ordering::SeqCst));
            inner.sockets.push(known.clone());
            inner.n_accepted += 1;
            inner.peak = inner.peak.max(inner.n_open());
        }
        tokio::spawn(self.serve(stream, known));
        // The other side of a real network is never there in the same instant.
        tokio::task::yield_now().await;
        Ok(Box::new(socket))
    }

    async fn serve(self, mut stream: DuplexStream, known: Arc<Known>) {
        let Some((path, headers)) = read_head(&mut stream).await else { return };
        let behaviour = {
            let mut inner = self.inner.lock();
            inner.requests.push(SeenRequest { at: Instant::now(), path: path.clone(), headers });
            let next = match inner.scripts.get_mut(&path) {
                Some(script) if script.len() > 1 => script.pop_front(),
                Some(script) => script.front().cloned(),
                None => inner.fallback.clone(),
            };
            match inner.limit {
                Some((n, status)) if inner.n_open() > n => Behaviour::Status(status),
                _ => next.unwrap_or(Behaviour::Status(UNKNOWN_PATH)),
            }
        };
        let (mut from_client, mut to_client) = tokio::io::split(stream);
        // A client that shuts down its side has gone, unless we do not look.
        let left = async {
            let mut ignored = [0; 64];
            while from_client.read(&mut ignored).await.is_ok_and(|n| n > 0) {}
            if self.inner.lock().is_stubborn {
                pending::<()>().await;
            }
        };
        tokio::select! {
            biased;
            () = left => {}
            // An error says that the client has gone.
            _ = self.perform(&path, behaviour, &mut to_client, &known) => {}
        }
    }

    async fn perform(
        &self,
        path: &str,
        behaviour: Behaviour,
        out: &mut (impl AsyncWrite + Unpin),
        known: &Known,
    ) -> io::Result<()> {
        match behaviour {
            Behaviour::Play(play) => return self.play(path, play, out, known).await,
            Behaviour::Status(status) => {
                answer(out, &format!("{status} Said So"), "text/plain", "no").await?
            }
            Behaviour::Html => {
                let page = "<!DOCTYPE html><html><body>Your account has expired.</body></html>";
                answer(out, "200 OK", "text/html; charset=utf-8", page).await?;
            }
            Behaviour::Json => {
                answer(out, "200 OK", "application/json", "{\"user_info\":{\"auth\":0}}").await?
            }
            Behaviour::Hls => {
                let list = "#EXTM3U\n#EXT-X-VERSION:3\n#EXTINF:6,\n1.ts\n";
                answer(out, "200 OK", "application/vnd.apple.mpegurl", list).await?;
            }
            Behaviour::Empty => answer(out, "200 OK", "video/mp2t", "").await?,
            Behaviour::NoAnswer => pending().await,
            Behaviour::Redirect(to) => {
                let head = format!(
                    "HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhere"
                );
                out.write_all(head.as_bytes()).await?;
            }
            Behaviour::Garbage => {
                out.write_all(head(ResponseHead::Plain).as_bytes()).await?;
                garbage(out).await?;
            }
            Behaviour::Raw(bytes) => out.write_all(&bytes).await?,
            Behaviour::Close => {}
            Behaviour::Reset => known.is_reset.store(true, Ordering::SeqCst),
        }
        Ok(())
    }

    async fn play(
        &self,
        path: &str,
        play: Play,
        out: &mut (impl AsyncWrite + Unpin),
        known: &Known,
    ) -> io::Result<()> {
        let (breaking, mut broken) = watch::channel(None);
        let position = {
            let mut inner = self.inner.lock();
            inner.playing.retain(|(_, it)| !it.is_closed());
            inner.playing.push((path.to_owned(), breaking));
            PAST + inner.epoch.elapsed()
        };
        out.write_all(head(play.head).as_bytes()).await?;
        let is_chunked = play.head == ResponseHead::Chunked;
        let mut stream = play.ts.stream(position.saturating_sub(play.burst));
        if play.is_punctual {
            stream.skip();
        }
        let how = tokio::select! {
            biased;
            how = async {
                let how = broken.wait_for(Option::is_some).await.ok().and_then(|it| *it);
                if how.is_none() {
                    pending::<()>().await;
                }
                how
            } => how,
            sent = send(out, &mut stream, &play, position, is_chunked) => sent?,
        };
        match how {
            None | Some(Break::End) => {
                if is_chunked {
                    out.write_all(b"0\r\n\r\n").await?;
                }
            }
            Some(Break::Reset) => known.is_reset.store(true, Ordering::SeqCst),
            Some(Break::Silence) => pending().await,
            Some(Break::Garbage) => garbage(out).await?,
            Some(Break::Nulls) => endless(out, &null_packet().repeat(7)).await?,
            Some(Break::UnknownPids) => {
                let mut packet = null_packet();
                set_pid(&mut packet, 0x1ABC);
                endless(out, &packet.repeat(7)).await?;
            }
        }
        Ok(())
    }
}

/// Sends the stream in its time until it is to break.
async fn send(
    out: &mut (impl AsyncWrite + Unpin),
    stream: &mut TsStream,
    play: &Play,
    position: Duration,
    is_chunked: bool,
) -> io::Result<Option<Break>> {
    let began = Instant::now();
    let mut n_left = play.after.map_or(u64::MAX, |(n, _)| n);
    loop {
        let due = began + stream.at().saturating_sub(position).div_f64(play.speed);
        sleep_until(due + lateness(stream, play.late_max)).await;
        let mut bytes = stream.frame();
        bytes.truncate((n_left.min(1 << 20) as usize).saturating_mul(PACKET).min(bytes.len()));
        n_left -= (bytes.len() / PACKET) as u64;
        if is_chunked {
            out.write_all(format!("{:x}\r\n", bytes.len()).as_bytes()).await?;
        }
        out.write_all(&bytes).await?;
        if is_chunked {
            out.write_all(b"\r\n").await?;
        }
        if n_left == 0 {
            return Ok(play.after.map(|(_, how)| how));
        }
    }
}

/// How late the next picture is: the same for the same picture, and without a pattern.
fn lateness(stream: &TsStream, most: Duration) -> Duration {
    if most.is_zero() {
        return Duration::ZERO;
    }
    let part = (stream.at().as_millis() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    most.mul_f64(part as f64 / f64::from(u16::MAX))
}

/// Bytes without two sync bytes at any packet's distance, for ever.
async fn garbage(out: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
    let mut seed = 1u32;
    loop {
        let noise: Vec<u8> = (0..4096)
            .map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                ((seed >> 24) as u8) & !0x40
            })
            .collect();
        out.write_all(&noise).await?;
        sleep(Duration::from_millis(20)).await;
    }
}

async fn endless(out: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    loop {
        out.write_all(bytes).await?;
        sleep(Duration::from_millis(20)).await;
    }
}

async fn answer(
    out: &mut (impl AsyncWrite + Unpin),
    status: &str,
    content_type: &str,
    body: &str,
) -> io::Result<()> {
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    out.write_all(text.as_bytes()).await
}

fn head(head: ResponseHead) -> String {
    let http = "HTTP/1.1 200 OK\r\nContent-Type: video/mp2t\r\n";
    match head {
        ResponseHead::Plain => format!("{http}Connection: close\r\n\r\n"),
        ResponseHead::Chunked => format!("{http}Transfer-Encoding: chunked\r\n\r\n"),
        ResponseHead::Length(length) => format!("{http}Content-Length: {length}\r\n\r\n"),
        ResponseHead::Icy => "ICY 200 OK\r\nicy-name: a radio\r\ncontent-type: video/mp2t\r\n\r\n".into(),
        ResponseHead::Broken => {
            "HTTP/1.0 200\r\nbad header:\r\n: nothing\r\nServer : x\r\nContent-Type: video/mp2t\r\n\r\n"
                .into()
        }
        ResponseHead::Missing => String::new(),
    }
}

/// Path and header lines of a request; `None` when the client leaves before it is complete.
async fn read_head(stream: &mut DuplexStream) -> Option<(String, Vec<String>)> {
    let mut head = BytesMut::new();
    while memchr::memmem::find(&head, b"\r\n\r\n").is_none() {
        if head.len() > 64 << 10 || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let text = String::from_utf8_lossy(&head).into_owned();
    let mut lines = text.trim_end().split("\r\n").map(str::to_owned);
    let path = lines.next()?.split(' ').nth(1)?.to_owned();
    Some((path, lines.collect()))
}
