//! An in-memory provider that counts its sockets and behaves as configured.

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

use crate::dial::{AddressCheck, BoxedSocket, Dial, DialAddress, DialFuture, Dialled, ResolveFuture};
use crate::error::{Cause, UpstreamError};
use crate::testing::file::TestFile;
use crate::testing::page::TestPage;
use crate::testing::socket::{MemorySocket, SocketState};
use crate::testing::station::TestStation;
use crate::testing::ts::{TsSource, TsStream};
use crate::ts::packet::{NULL_PID, PACKET, PAT_PID, Packet, null_packet, packets_mut, set_pid};

/// Buffer between the two ends of a connection, like the data in flight in a network.
const SOCKET_BYTES: usize = 256 << 10;
/// Position in its programme at which a provider starts, so that it can send this much past data first.
const PAST: Duration = Duration::from_secs(60);
/// Status for unknown paths.
const UNKNOWN_PATH: u16 = 404;

/// Connects to registered providers only.
#[derive(Clone, Default)]
pub struct MemoryDial {
    providers: Arc<Mutex<HashMap<String, MemoryProvider>>>,
}

impl MemoryDial {
    /// Creates a dialer without providers.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the provider at `host:port` and creates it if necessary.
    pub fn provider(&self, address: &str) -> MemoryProvider {
        self.providers.lock().entry(address.to_owned()).or_insert_with(MemoryProvider::new).clone()
    }
}

impl Dial for MemoryDial {
    fn dial<'a>(
        &'a self,
        address: &'a DialAddress,
        _: &'a AddressCheck<'a>,
        limit: Duration,
    ) -> DialFuture<'a> {
        let provider = self.providers.lock().get(&address.to_string()).cloned();
        Box::pin(async move {
            let Some(provider) = provider else { return Err(Cause::Dns.into()) };
            let connected = timeout(limit, provider.connect()).await;
            let socket = connected.unwrap_or_else(|_| Err(Cause::ConnectTimeout.into()))?;
            Ok(Dialled { socket, peer: None })
        })
    }

    fn resolve<'a>(&'a self, _: &'a DialAddress, _: Duration) -> ResolveFuture<'a> {
        Box::pin(async { Ok(Vec::new()) })
    }
}

/// The reaction of a provider to connection attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reachability {
    /// It accepts after this time.
    After(Duration),
    /// It refuses connections.
    Refuses,
    /// It never answers.
    Silent,
    /// Its certificate is invalid.
    BadCertificate,
    /// Its name is unknown.
    Unknown,
}

/// The response of a provider to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Behaviour {
    /// Streams.
    Play(Play),
    /// Responds with a status and a short text.
    Status(u16),
    /// Responds with 200 and a web page.
    Html,
    /// Responds with 200 and a small JSON document.
    Json,
    /// Responds with 200 and an HLS playlist.
    Hls,
    /// Responds with 200 and an empty body.
    Empty,
    /// Sends no response and keeps the connection open.
    NoAnswer,
    /// Redirects with 302 to this location.
    Redirect(String),
    /// Sends a file, or the requested part of it.
    File(TestFile),
    /// Sends a response, and waits for the next request over the same connection.
    Page(TestPage),
    /// Plays like a radio station.
    Station(TestStation),
    /// Responds with 200 and endless bytes that are not a transport stream.
    Garbage,
    /// Sends exactly these bytes, including the head, and closes.
    Raw(Bytes),
    /// Closes without a response.
    Close,
    /// Resets the connection without a response.
    Reset,
}

impl Behaviour {
    /// Streams a [`TsSource`] with this name.
    pub fn play(label: &str) -> Self {
        Self::Play(Play::new(TsSource::new(label)))
    }
}

/// A stream and the way in which a provider sends it.
#[derive(Debug, Clone, PartialEq)]
pub struct Play {
    /// The stream.
    pub ts: TsSource,
    /// Amount of past data sent at once at the start; at most a minute.
    pub burst: Duration,
    /// The past is sent at this many times the rate of the programme instead, until it has reached the present.
    pub burst_speed: Option<f64>,
    /// Programme seconds per second: 1.0 is real time, less is too slow.
    pub speed: f64,
    /// Starts with the next picture that is due instead of the previous one.
    pub is_punctual: bool,
    /// Maximum delay of a picture. Each picture is delayed by a different part of it.
    pub late_max: Duration,
    /// Pictures of this much programme are sent together, when the first of them is due.
    pub clump: Duration,
    /// A break after this many packets.
    pub after: Option<(u64, Break)>,
    /// The head of the response.
    pub head: ResponseHead,
}

impl Play {
    /// Streams in real time without faults.
    pub fn new(ts: TsSource) -> Self {
        Self {
            ts,
            burst: Duration::ZERO,
            burst_speed: None,
            speed: 1.0,
            is_punctual: false,
            late_max: Duration::ZERO,
            clump: Duration::ZERO,
            after: None,
            head: ResponseHead::Plain,
        }
    }
}

/// The form of a response head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseHead {
    /// `HTTP/1.1 200 OK`, closed at the end.
    Plain,
    /// With chunked transfer encoding.
    Chunked,
    /// With a `Content-Length`, which may be wrong.
    Length(u64),
    /// `ICY 200 OK`.
    Icy,
    /// With invalid header lines.
    Broken,
    /// No head.
    Missing,
}

/// The way in which a playing connection breaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Break {
    /// It ends normally.
    End,
    /// It is reset.
    Reset,
    /// It stays open without data.
    Silence,
    /// It continues with bytes that are not a transport stream.
    Garbage,
    /// It continues with null packets only.
    Nulls,
    /// It continues with packets of a PID that no table announces.
    UnknownPids,
    /// It continues with clear tables and scrambled streams.
    Scrambled,
    /// It continues with clear tables and audio, and with scrambled video.
    ScrambledVideo,
    /// It continues with tables and audio alone.
    OnlyAudio,
}

/// A request as received by the provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    /// Time of the request.
    pub at: Instant,
    /// Path and query.
    pub path: String,
    /// The header lines.
    pub headers: Vec<String>,
}

impl SeenRequest {
    /// Returns the value of a header; its name is in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.iter().filter_map(|it| it.split_once(':'));
        lines.find(|it| it.0.eq_ignore_ascii_case(name)).map(|it| it.1.trim())
    }
}

/// An in-memory provider. Clones share one provider.
#[derive(Clone)]
pub struct MemoryProvider {
    inner: Arc<Mutex<ProviderState>>,
}

struct ProviderState {
    /// The time at which the programme was [`PAST`] long.
    epoch: Instant,
    reachability: Reachability,
    /// Behaviours per path; the last one is repeated.
    scripts: HashMap<String, VecDeque<Behaviour>>,
    fallback: Option<Behaviour>,
    limit: Option<(usize, u16)>,
    is_stubborn: bool,
    sockets: Vec<Arc<SocketState>>,
    peak: usize,
    n_accepted: usize,
    requests: Vec<SeenRequest>,
    playing: Vec<(String, watch::Sender<Option<Break>>)>,
}

impl ProviderState {
    /// Returns the number of sockets that look open to the provider: neither shut down nor dropped.
    fn n_open(&self) -> usize {
        let is_open = |it: &&Arc<SocketState>| {
            let is_shut = it.is_shut.load(Ordering::SeqCst) && !self.is_stubborn;
            !is_shut && !it.is_gone.load(Ordering::SeqCst)
        };
        self.sockets.iter().filter(is_open).count()
    }
}

impl MemoryProvider {
    fn new() -> Self {
        Self {
            inner: Arc::new(Mutex::new(ProviderState {
                epoch: Instant::now(),
                reachability: Reachability::After(Duration::ZERO),
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

    /// Sets the behaviour for `path`, which includes the query.
    pub fn set(&self, path: &str, behaviour: Behaviour) {
        self.script(path, [behaviour]);
    }

    /// Sets the behaviours for the next requests for `path`; the last one is repeated.
    pub fn script(&self, path: &str, behaviours: impl IntoIterator<Item = Behaviour>) {
        self.inner.lock().scripts.insert(path.to_owned(), behaviours.into_iter().collect());
    }

    /// Sets the behaviour for unknown paths.
    pub fn set_fallback(&self, behaviour: Behaviour) {
        self.inner.lock().fallback = Some(behaviour);
    }

    /// Sets how the provider reacts to connection attempts.
    pub fn set_reachability(&self, reachability: Reachability) {
        self.inner.lock().reachability = reachability;
    }

    /// Responds with `status` while `n` other sockets are open.
    pub fn set_limit(&self, n: usize, status: u16) {
        self.inner.lock().limit = Some((n, status));
    }

    /// Makes the provider ignore that the client shut down its side: it keeps its side open and continues to
    /// send.
    pub fn set_stubborn(&self, is_stubborn: bool) {
        self.inner.lock().is_stubborn = is_stubborn;
    }

    /// Breaks every connection that is playing `path`.
    pub fn break_now(&self, path: &str, how: Break) {
        for (_, playing) in self.inner.lock().playing.iter().filter(|(it, _)| it == path) {
            playing.send_replace(Some(how));
        }
    }

    /// Returns the number of sockets that are open for the provider.
    pub fn n_open(&self) -> usize {
        self.inner.lock().n_open()
    }

    /// Returns the number of sockets whose client end exists, including those that were shut down.
    pub fn n_held(&self) -> usize {
        self.inner.lock().sockets.iter().filter(|it| !it.is_gone.load(Ordering::SeqCst)).count()
    }

    /// Returns the maximum number of sockets that were open at the same time.
    pub fn peak(&self) -> usize {
        self.inner.lock().peak
    }

    /// Returns the number of connections so far.
    pub fn n_accepted(&self) -> usize {
        self.inner.lock().n_accepted
    }

    /// Returns all requests in order.
    pub fn requests(&self) -> Vec<SeenRequest> {
        self.inner.lock().requests.clone()
    }

    async fn connect(self) -> Result<BoxedSocket, UpstreamError> {
        let reachability = self.inner.lock().reachability;
        match reachability {
            Reachability::After(time) if time.is_zero() => {}
            Reachability::After(time) => sleep(time).await,
            Reachability::Refuses => return Err(Cause::Connect("connection refused".into()).into()),
            Reachability::Silent => pending().await,
            Reachability::BadCertificate => {
                return Err(Cause::Tls("invalid peer certificate: Expired".into()).into());
            }
            Reachability::Unknown => return Err(Cause::Dns.into()),
        }
        let (socket, stream, state) = MemorySocket::pair(SOCKET_BYTES);
        {
            let mut inner = self.inner.lock();
            inner.sockets.retain(|it| !it.is_gone.load(Ordering::SeqCst));
            inner.sockets.push(state.clone());
            inner.n_accepted += 1;
            inner.peak = inner.peak.max(inner.n_open());
        }
        tokio::spawn(self.serve(stream, state));
        // A real network never answers in the same instant.
        tokio::task::yield_now().await;
        Ok(Box::new(socket))
    }

    /// Records a request and returns what it leads to.
    fn next_behaviour(&self, request: &SeenRequest) -> Behaviour {
        let mut inner = self.inner.lock();
        inner.requests.push(request.clone());
        let next = match inner.scripts.get_mut(&request.path) {
            Some(script) if script.len() > 1 => script.pop_front(),
            Some(script) => script.front().cloned(),
            None => inner.fallback.clone(),
        };
        match inner.limit {
            Some((n, status)) if inner.n_open() > n => Behaviour::Status(status),
            _ => next.unwrap_or(Behaviour::Status(UNKNOWN_PATH)),
        }
    }

    async fn serve(self, mut stream: DuplexStream, state: Arc<SocketState>) {
        let (request, behaviour) = loop {
            let Some((path, headers)) = read_head(&mut stream).await else { return };
            let request = SeenRequest { at: Instant::now(), path: path.clone(), headers };
            match self.next_behaviour(&request) {
                Behaviour::Page(page) => {
                    if !page.send(&request, &mut stream).await.is_ok_and(|it| it) {
                        return;
                    }
                }
                behaviour => break (request, behaviour),
            }
        };
        let (mut from_client, mut to_client) = tokio::io::split(stream);
        // A client that shuts down its side has gone, unless the provider is stubborn.
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
            // An error means that the client has gone.
            _ = self.perform(&request, behaviour, &mut to_client, &state) => {}
        }
    }

    async fn perform(
        &self,
        request: &SeenRequest,
        behaviour: Behaviour,
        out: &mut (impl AsyncWrite + Unpin),
        state: &SocketState,
    ) -> io::Result<()> {
        match behaviour {
            Behaviour::Play(play) => return self.play(&request.path, play, out, state).await,
            Behaviour::File(file) => file.send(request, out).await?,
            Behaviour::Page(page) => drop(page.send(request, out).await?),
            Behaviour::Station(station) => station.send(request, out).await?,
            Behaviour::Status(status) => {
                answer(out, &format!("{status} Refused"), "text/plain", "no").await?
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
            Behaviour::Reset => state.is_reset.store(true, Ordering::SeqCst),
        }
        Ok(())
    }

    async fn play(
        &self,
        path: &str,
        play: Play,
        out: &mut (impl AsyncWrite + Unpin),
        state: &SocketState,
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
            Some(Break::Reset) => state.is_reset.store(true, Ordering::SeqCst),
            Some(Break::Silence) => pending().await,
            Some(Break::Garbage) => garbage(out).await?,
            Some(Break::Nulls) => endless(out, &null_packet().repeat(7)).await?,
            Some(Break::UnknownPids) => {
                let mut packet = null_packet();
                set_pid(&mut packet, 0x1ABC);
                endless(out, &packet.repeat(7)).await?;
            }
            Some(how @ (Break::Scrambled | Break::ScrambledVideo | Break::OnlyAudio)) => {
                spoiled(out, stream, how, &play.ts).await?;
            }
        }
        Ok(())
    }
}

/// Sends the stream at its rate until the configured break.
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
        let mut due = stream.at().saturating_sub(position).div_f64(play.speed);
        if let Some(speed) = play.burst_speed {
            due = due.max((stream.at() + play.burst).saturating_sub(position).div_f64(speed));
        }
        if !play.clump.is_zero() {
            due = play.clump * due.div_duration_f64(play.clump).floor() as u32;
        }
        sleep_until(began + due + lateness(stream, play.late_max)).await;
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

/// Returns the delay of the next picture: constant for the same picture, without a pattern between pictures.
fn lateness(stream: &TsStream, most: Duration) -> Duration {
    if most.is_zero() {
        return Duration::ZERO;
    }
    let part = (stream.at().as_millis() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 48;
    most.mul_f64(part as f64 / f64::from(u16::MAX))
}

/// Sends endless bytes without two sync bytes at a packet distance.
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

/// Continues in real time with packets that are scrambled or missing.
async fn spoiled(
    out: &mut (impl AsyncWrite + Unpin),
    mut stream: TsStream,
    how: Break,
    ts: &TsSource,
) -> io::Result<()> {
    loop {
        let mut bytes = stream.frame().to_vec();
        for packet in packets_mut(&mut bytes) {
            let pid = Packet::new(packet).pid();
            let is_video = ts.video.is_some_and(|it| it.0 == pid);
            let is_table = pid == PAT_PID || pid == ts.pmt_pid;
            match how {
                Break::OnlyAudio if is_video => set_pid(packet, NULL_PID),
                Break::Scrambled if !is_table => packet[3] |= 0x80,
                Break::ScrambledVideo if is_video => packet[3] |= 0x80,
                _ => {}
            }
        }
        out.write_all(&bytes).await?;
        sleep(Duration::from_millis(40)).await;
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

/// Reads a request and returns its path and header lines; `None` if the client leaves before it is complete.
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
