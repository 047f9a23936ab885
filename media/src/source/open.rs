//! Opens sources: connects with redirects, joins groups, starts programs, and waits for the first payload packet.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, StatusCode};
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use super::cookies::CookieJar;
use super::file::FileSource;
use super::hls::{HlsSource, NamedTarget, PlaylistResponse};
use super::http::{HttpUpstream, is_headless};
use super::node::{NodeRequest, NodeSource};
use super::probe::{BodyPart, InnerHead, Probe, Probed};
use super::process::ProcessSource;
use super::refusal::refusal_cause;
use super::request::{self, OpenRequest, PlaylistAddress, PlaylistFormat};
use super::settings::SourceSettings;
use super::target::{HttpTarget, location, program_address};
use super::udp::{self, UdpSource, UdpTarget};
use super::upstream::Upstream;
use super::{ProgramOutput, Source, SourceInfo, SourceKind, Supply};
use crate::dial::BoxedSocket;
use crate::error::{Cause, UpstreamError};
use crate::permit::Permit;
use crate::ts::table_reader::TableHints;

/// Maximum number of bytes kept from before the first payload packet. A flood of other packets must not fill
/// the memory; the tables are repeated anyway.
pub(super) const READ_AHEAD_BYTES_MAX: usize = 2 << 20;

/// Longest response that is taken for a recording: about twelve days at 8 Mbit/s.
const RECORDING_BYTES_MAX: u64 = 1 << 40;

/// Opens an upstream and waits for its first payload packet.
///
/// The permit is returned in every case after the socket is gone: by the source, or by the closer if this
/// function fails, is dropped at an await, or panics.
///
/// # Errors
/// The reason why no source was opened. Nothing is open then, or it is closing.
pub async fn open(
    request: OpenRequest,
    permit: Box<dyn Permit>,
    upstream: Upstream,
) -> Result<Source, UpstreamError> {
    open_with_output(request, permit, upstream, &mut ProgramOutput::default()).await
}

/// Reads the ring of another process over a connected stream, and waits for its first chunk.
///
/// # Errors
/// Same as [`open`].
pub async fn open_node(
    stream: BoxedSocket,
    request: &NodeRequest,
    permit: Box<dyn Permit>,
    upstream: &Upstream,
) -> Result<Source, UpstreamError> {
    let until = Instant::now() + upstream.settings.first_packet_timeout;
    let opening = async {
        let mut source = attach_node(stream, request, permit, upstream).await?;
        source.wait_for_content().await?;
        Ok(source)
    };
    timeout_at(until, opening).await.unwrap_or_else(|_| Err(Cause::FirstPacketTimeout.into()))
}

/// Reads the ring of another process over a connected stream, which may not have a chunk yet.
///
/// # Errors
/// Same as [`open`].
pub async fn attach_node(
    stream: BoxedSocket,
    request: &NodeRequest,
    permit: Box<dyn Permit>,
    upstream: &Upstream,
) -> Result<Source, UpstreamError> {
    let started = Instant::now();
    let attaching = NodeSource::attach(stream, request, permit, upstream.closer.clone());
    let attached = timeout_at(started + upstream.settings.first_packet_timeout, attaching).await;
    let node = attached.unwrap_or_else(|_| Err(Cause::FirstPacketTimeout.into()))?;
    Ok(Source {
        info: SourceInfo::new(&request.place, started),
        hints: TableHints::default(),
        read_ahead: VecDeque::new(),
        supply: Supply::Live,
        kind: SourceKind::Node(Box::new(node)),
        is_whole: false,
    })
}

/// Starts a program that converts a stream from its standard input, and waits for its first payload packet. Somebody has
/// to write that input meanwhile. The permit is that to run the program; it is returned when the program is gone.
///
/// # Errors
/// Same as [`open`].
pub async fn open_fed(
    command: &[String],
    input: OwnedFd,
    permit: Box<dyn Permit>,
    upstream: Upstream,
) -> Result<Source, UpstreamError> {
    let started = Instant::now();
    let program = ProgramCommand { command, url: "", input: Some(input) };
    open_program(program, permit, upstream, &mut ProgramOutput::default(), started).await
}

/// Like [`open`]. A program that fails leaves its log in `output`.
///
/// # Errors
/// Same as [`open`].
pub async fn open_with_output(
    mut request: OpenRequest,
    permit: Box<dyn Permit>,
    upstream: Upstream,
    output: &mut ProgramOutput,
) -> Result<Source, UpstreamError> {
    let opened = open_address(&mut request, permit, upstream, output).await;
    if let Some(others) = &request.other_addresses {
        match &opened {
            Ok(_) => others.opened(&request.url),
            Err(_) => others.failed(),
        }
    }
    opened
}

/// Opens the address of a request, or another address of the stream, which is in the request then.
async fn open_address(
    request: &mut OpenRequest,
    permit: Box<dyn Permit>,
    upstream: Upstream,
    output: &mut ProgramOutput,
) -> Result<Source, UpstreamError> {
    let started = Instant::now();
    if let Some(command) = &request.command {
        check_for_program(request, &upstream).await?;
        let program = ProgramCommand { command, url: &request.url, input: None };
        return open_program(program, permit, upstream, output, started).await;
    }
    if let Some(path) = file_path(&request.url) {
        let mut file = FileSource::open(path, permit).await?;
        let read_ahead = VecDeque::from([file.read().await?]);
        let info = SourceInfo::new("file", started);
        // A file is read at the rate of its programme anyway.
        return Ok(Source {
            info,
            hints: request.table_hints(),
            read_ahead,
            supply: Supply::Live,
            kind: SourceKind::File(Box::new(file)),
            is_whole: false,
        });
    }
    if let Some(target) = udp::parse(&request.url) {
        return open_udp(target?, request, permit, &upstream, started).await;
    }
    let upstream = upstream.on_behalf_of(request);
    // Outside the timed future, so that a timeout hands socket and permit to the closer.
    let mut http = HttpUpstream::new(permit, upstream.closer.clone());
    let (mut refusal, mut others) = (None, VecDeque::new());
    let opened = loop {
        let mut is_elsewhere = false;
        // Each address has its time for itself.
        let time = OpeningTime::new(Instant::now(), &upstream.settings);
        let opening = open_http(request, &mut http, &upstream, &time, &mut is_elsewhere);
        let opened = timeout_at(time.longest, opening).await;
        match opened.unwrap_or_else(|_| Err(Cause::FirstPacketTimeout.into())) {
            Ok(opened) => break opened,
            Err(error) if is_address_refused(&error, is_elsewhere) => {
                if refusal.is_none() {
                    others = request.other_addresses.iter().flat_map(|it| it.after_refusal()).collect();
                }
                // The refusal of the address in use says more than those of the others.
                let error = refusal.get_or_insert(error);
                let Some(url) = others.pop_front() else { return Err(error.clone()) };
                debug!(%error, "the server does not serve this address, asking for another one of the stream");
                // The provider must never see two connections.
                http.hang_up().await;
                request.url = url;
            }
            Err(error) => return Err(refusal.unwrap_or(error)),
        }
    };
    let place = opened.target.address.to_string();
    let n_redirects = opened.n_redirects;
    match opened.body {
        OpenedBody::Stream(read_ahead, probe) => {
            http.delivers();
            debug!(%place, n_redirects, "upstream opened");
            let info = SourceInfo { n_redirects, ..SourceInfo::new(place, started) };
            Ok(Source {
                info: info.with_probe(&probe),
                hints: probe.hints(),
                read_ahead,
                supply: opened.supply,
                kind: SourceKind::Http(http),
                is_whole: false,
            })
        }
        OpenedBody::Playlist(found) => {
            let FoundPlaylist { address: mut found, response } = *found;
            let format = found.format;
            debug!(%place, n_redirects, ?format, "upstream sends a playlist of segments");
            let mut what = format.description().to_owned();
            let prefers_program = request.prefers_program && request.playlist_reader.is_some();
            if format == PlaylistFormat::Hls && !prefers_program {
                let mut hls = Box::new(HlsSource::new(http, &upstream, request, response));
                let deadline = started + upstream.settings.program_start_timeout;
                match first_payload_of(&mut hls, request.table_hints(), deadline).await {
                    Ok(probe) => {
                        let info = SourceInfo { n_redirects, ..SourceInfo::new(place, started) };
                        let kind = SourceKind::Hls(hls);
                        return Ok(Source {
                            info: info.with_probe(&probe),
                            hints: probe.hints(),
                            // The source of the playlist keeps it.
                            read_ahead: VecDeque::new(),
                            supply: Supply::Segments,
                            kind,
                            is_whole: false,
                        });
                    }
                    Err(error) => match error.cause() {
                        Cause::NeedsProgram(reason) => what.clone_from(reason),
                        // Segments of another container.
                        Cause::NotTs(_) if request.playlist_reader.is_some() => {}
                        _ => return Err(error),
                    },
                }
                (http, found.variant) = hls.into_http().ok_or(Cause::Panicked)?;
                debug!(what, "a program reads the playlist");
            }
            let needs_program = || match request.proxy {
                Some(_) => Cause::Unsupported(format!("{what} through this proxy")),
                None => Cause::NeedsProgram(what),
            };
            let command = request.playlist_reader.as_ref().ok_or_else(needs_program)?(&found);
            // The provider must never see the program's connection beside this one.
            let permit = http.into_permit().await.ok_or(Cause::Panicked)?;
            let program = ProgramCommand { command: &command, url: &found.url, input: None };
            let mut source = open_program(program, permit, upstream, output, started).await?;
            source.info.n_redirects = n_redirects;
            (source.info.known.playlist, source.info.known.variant) = (Some(format), found.variant);
            Ok(source)
        }
    }
}

/// Checks the form of an address. `None` for other schemes than UDP and RTP.
///
/// # Errors
/// The reason why it cannot be opened.
pub fn check_udp_address(url: &str) -> Option<Result<(), String>> {
    Some(udp::parse(url)?.map(drop).map_err(|cause| cause.to_string()))
}

/// Joins a group or opens a port, and waits for the first payload packet.
async fn open_udp(
    target: UdpTarget,
    request: &OpenRequest,
    permit: Box<dyn Permit>,
    upstream: &Upstream,
    started: Instant,
) -> Result<Source, UpstreamError> {
    let Upstream { dial, closer, settings, .. } = upstream;
    let policy = request.policy.as_deref();
    let opening = UdpSource::open(target, policy, permit, &**dial, closer, settings);
    let mut udp = Box::new(opening.await?);
    let time = OpeningTime::new(started, settings);
    let mut probe = Probe::new(None, request.table_hints());
    let mut read_ahead = ReadAhead::default();
    loop {
        let read = timeout_at(time.until(&probe), udp.read()).await;
        let bytes = read.unwrap_or_else(|_| Err(probe.cause_of_timeout().into()))?;
        if read_ahead.first_payload(&mut probe, bytes)? {
            break;
        }
    }
    udp.delivers();
    let hints = probe.hints();
    let info = SourceInfo::new(udp.place(), started).with_probe(&probe);
    let read_ahead = read_ahead.pieces;
    debug!(place = %info.place, "receiving datagrams");
    Ok(Source { info, hints, read_ahead, supply: Supply::Live, kind: SourceKind::Udp(udp), is_whole: false })
}

/// Checks the address that a program will connect to by itself. All addresses of its host have to be allowed, because the
/// program may choose any.
async fn check_for_program(request: &OpenRequest, upstream: &Upstream) -> Result<(), UpstreamError> {
    let Some(policy) = request.policy.as_ref().filter(|it| !it.trusts_request()) else { return Ok(()) };
    let Some(address) = program_address(&request.url)? else { return Ok(()) };
    if request.proxy.is_some() {
        // The proxy resolves names.
        return match address.host.parse() {
            Ok(ip) => Ok(policy.check(SocketAddr::new(ip, address.port), None).map_err(Cause::Forbidden)?),
            Err(_) => Ok(()),
        };
    }
    let addresses = upstream.dial.resolve(&address, upstream.settings.connect_timeout).await?;
    let check = |it| policy.check(it, None).map_err(Cause::Forbidden);
    Ok(addresses.into_iter().try_for_each(check)?)
}

/// A program to run: its name or path, then its arguments.
struct ProgramCommand<'a> {
    command: &'a [String],
    /// An address that the arguments contain, or nothing.
    url: &'a str,
    input: Option<OwnedFd>,
}

/// Runs a program and waits for its first payload packet, for at most the start time of programs since `started`.
async fn open_program(
    program: ProgramCommand<'_>,
    permit: Box<dyn Permit>,
    upstream: Upstream,
    output: &mut ProgramOutput,
    started: Instant,
) -> Result<Source, UpstreamError> {
    let ProgramCommand { command, url, input } = program;
    let Upstream { closer, launcher, settings, .. } = upstream;
    let mut program = Box::new(ProcessSource::start(command, url, input, permit, closer, launcher).await?);
    let deadline = started + settings.program_start_timeout;
    // A program has chosen the programme, and gives it another number.
    let mut probe = Probe::new(None, TableHints::default());
    let first_payload = async {
        let mut read_ahead = ReadAhead::default();
        loop {
            let bytes = program.read().await?;
            if read_ahead.first_payload(&mut probe, bytes)? {
                return Ok::<_, UpstreamError>(read_ahead.pieces);
            }
        }
    };
    let opened = timeout_at(deadline, first_payload).await;
    let read_ahead = opened
        .unwrap_or_else(|_| Err(probe.cause_of_timeout().into()))
        .inspect_err(|_| *output = ProgramOutput::from_program(&program))?;
    program.delivers();
    let name = command.first().map_or("", |it| it.rsplit('/').next().unwrap_or(it));
    let info = SourceInfo::new(name, started);
    debug!(place = %info.place, "program started");
    Ok(Source {
        info,
        hints: probe.hints(),
        read_ahead,
        supply: Supply::Program,
        kind: SourceKind::Process(program),
        is_whole: false,
    })
}

/// Reads an HLS source ahead until its first payload packet. Returns the probe that has found it.
async fn first_payload_of(
    hls: &mut HlsSource,
    hints: TableHints,
    deadline: Instant,
) -> Result<Probe, UpstreamError> {
    let mut probe = Probe::new(None, hints);
    let reading = async {
        loop {
            match probe.push(&hls.read_ahead(READ_AHEAD_BYTES_MAX).await?)? {
                Probed::More => {}
                Probed::Payload => return Ok::<_, UpstreamError>(()),
                Probed::Playlist(format) => return Err(Cause::NotTs(format.description().to_owned()).into()),
            }
        }
    };
    let opened = timeout_at(deadline, reading).await;
    let late = || probe.cause_of_timeout().into();
    opened.unwrap_or_else(|_| Err(hls.last_error().unwrap_or_else(late)))?;
    Ok(probe)
}

/// Returns whether the server that a request names does not serve this address, so that it may serve another one of the same
/// stream. A refused login and a full account say nothing about the address, and neither does the status of a server
/// that this one redirected to (`is_elsewhere`).
fn is_address_refused(error: &UpstreamError, is_elsewhere: bool) -> bool {
    match error.cause() {
        Cause::Status(404..=406) => !is_elsewhere,
        Cause::NotTs(what) => matches!(what.as_str(), "text/html" | "text/xml" | "application/xhtml+xml"),
        _ => false,
    }
}

/// How long an opening may take. The limit grows with what the answer turns out to be.
struct OpeningTime {
    /// For connections, heads, and bytes that show nothing yet.
    usual: Instant,
    /// For a stream whose tables are late.
    longest: Instant,
}

impl OpeningTime {
    fn new(started: Instant, settings: &SourceSettings) -> Self {
        let longest = settings.program_start_timeout.max(settings.first_packet_timeout);
        Self { usual: started + settings.first_packet_timeout, longest: started + longest }
    }

    /// Returns the end of the time for a body of which this is known.
    fn until(&self, probe: &Probe) -> Instant {
        if probe.lacks_tables() { self.longest } else { self.usual }
    }
}

/// The last bytes read before the first payload packet.
#[derive(Default)]
struct ReadAhead {
    pieces: VecDeque<Bytes>,
    n_bytes: usize,
}

impl ReadAhead {
    /// Takes bytes of a source that has to be a stream. Returns whether they contain the first payload packet.
    fn first_payload(&mut self, probe: &mut Probe, bytes: Bytes) -> Result<bool, UpstreamError> {
        let probed = probe.push(&bytes)?;
        self.push(bytes);
        match probed {
            Probed::More => Ok(false),
            Probed::Payload => Ok(true),
            Probed::Playlist(format) => Err(Cause::NotTs(format.description().to_owned()).into()),
        }
    }

    fn push(&mut self, bytes: Bytes) {
        self.n_bytes += bytes.len();
        self.pieces.push_back(bytes);
        while self.n_bytes > READ_AHEAD_BYTES_MAX && self.pieces.len() > 1 {
            self.n_bytes -= self.pieces.pop_front().map_or(0, |it| it.len());
        }
    }
}

/// A response whose body was recognised.
struct OpenedHttp {
    target: HttpTarget,
    n_redirects: usize,
    supply: Supply,
    body: OpenedBody,
}

enum OpenedBody {
    /// A transport stream: its bytes up to and including the first payload packet, and the probe that has found it.
    Stream(VecDeque<Bytes>, Box<Probe>),
    Playlist(Box<FoundPlaylist>),
}

/// A playlist of segments, which has been read in part.
struct FoundPlaylist {
    /// The facts that a program needs.
    address: PlaylistAddress,
    response: PlaylistResponse,
}

/// Opens an address over HTTP. `is_elsewhere` records whether another host was asked after a redirect, also if the opening
/// fails or is dropped.
async fn open_http(
    request: &OpenRequest,
    http: &mut HttpUpstream,
    upstream: &Upstream,
    time: &OpeningTime,
    is_elsewhere: &mut bool,
) -> Result<OpenedHttp, UpstreamError> {
    let first = HttpTarget::parse(&request.url)?;
    let mut target = first.clone();
    let mut cookies = CookieJar::default();
    // With the number of changes of cookies: servers redirect to the same address to set one.
    let mut visited = vec![(first.clone(), 0)];
    let mut redirected_by = None;
    loop {
        // Built before dialling, so that an invalid request opens no connection.
        let is_trusted = first.may_share_secrets_with(&target);
        let outgoing = request::request(request, &target, is_trusted, &cookies.pairs(&target))?;
        let check = |to| request.policy.as_ref().map_or(Ok(()), |it| it.check(to, redirected_by));
        let is_redirected = visited.len() > 1;
        let dial = &*upstream.dial;
        let requesting = async {
            let connect_timeout = upstream.settings.connect_timeout;
            let peer = http.dial(dial, &target.address, &check, connect_timeout).await?;
            Ok((peer, http.send(outgoing).await?))
        };
        let requested = timeout_at(time.usual, requesting).await;
        let requested = requested.unwrap_or_else(|_| Err(UpstreamError::new(Cause::FirstPacketTimeout)));
        let (peer, response) = requested.map_err(|it| it.behind_redirect(is_redirected))?;
        let status = response.status();
        cookies.store(&target, response.headers());
        if let Some(location) = location(status, response.headers()) {
            let next = (target.join(&location?)?, cookies.n_changes());
            if visited.contains(&next) {
                return Err(Cause::RedirectLoop.into());
            }
            if visited.len() > upstream.settings.redirects_max {
                return Err(Cause::TooManyRedirects.into());
            }
            debug!(from = ?target, to = ?next.0, "upstream redirects");
            // The provider must never see two connections.
            http.hang_up().await;
            redirected_by = peer;
            target = next.0.clone();
            *is_elsewhere = !target.address.host.eq_ignore_ascii_case(&first.address.host);
            visited.push(next);
            continue;
        }
        match status {
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT => return Err(Cause::Empty.into()),
            _ if !status.is_success() => {
                let error = UpstreamError::new(refusal_cause(http, &response).await);
                return Err(error.behind_redirect(is_redirected));
            }
            _ => {}
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let probe = Probe::new(content_type, request.table_hints());
        let body = match first_bytes(http, probe, is_headless(&response), time).await? {
            FirstBytes::Payload(read_ahead, probe) => OpenedBody::Stream(read_ahead, probe),
            FirstBytes::Playlist(format, early) => {
                let (url, described) = (target.expose(), cookies.described(&target));
                let address = PlaylistAddress { format, url, cookies: described, is_trusted, variant: None };
                let requested = NamedTarget { target: first, named_by: None };
                let found = NamedTarget { target: target.clone(), named_by: peer };
                let response = PlaylistResponse { early: early.into(), requested, found, cookies };
                OpenedBody::Playlist(Box::new(FoundPlaylist { address, response }))
            }
        };
        let supply = supply_of(response.headers());
        return Ok(OpenedHttp { target, n_redirects: visited.len() - 1, supply, body });
    }
}

/// The beginning of a body.
enum FirstBytes {
    /// Everything up to and including the first payload packet, and the probe that has found it.
    Payload(VecDeque<Bytes>, Box<Probe>),
    /// A playlist, with everything that was read of it.
    Playlist(PlaylistFormat, VecDeque<Bytes>),
}

/// Returns whether a response is a recording. A live stream has no length; some servers declare an absurd one.
fn supply_of(headers: &HeaderMap) -> Supply {
    let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.trim().parse::<u64>().ok());
    match length {
        Some(1..=RECORDING_BYTES_MAX) if !headers.contains_key(TRANSFER_ENCODING) => Supply::Recording,
        _ => Supply::Live,
    }
}

/// Reads until a payload packet has arrived, or until the body is recognised as a playlist.
async fn first_bytes(
    http: &mut HttpUpstream,
    mut probe: Probe,
    is_headless: bool,
    time: &OpeningTime,
) -> Result<FirstBytes, UpstreamError> {
    let mut inner = InnerHead::new(!is_headless);
    let mut read_ahead = ReadAhead::default();
    loop {
        let read = timeout_at(time.until(&probe), http.read()).await;
        let Some(bytes) = read.unwrap_or_else(|_| Err(probe.cause_of_timeout().into()))? else { break };
        let bytes = match inner.push(bytes) {
            BodyPart::More => continue,
            BodyPart::Status(status) => return Err(Cause::Status(status).into()),
            BodyPart::Body(bytes) if bytes.is_empty() => continue,
            BodyPart::Body(bytes) => bytes,
        };
        let probed = probe.push(&bytes)?;
        read_ahead.push(bytes);
        match probed {
            Probed::More => {}
            Probed::Payload => return Ok(FirstBytes::Payload(read_ahead.pieces, Box::new(probe))),
            Probed::Playlist(format) => return Ok(FirstBytes::Playlist(format, read_ahead.pieces)),
        }
    }
    Ok(FirstBytes::Playlist(probe.end()?, read_ahead.pieces))
}

/// Returns the path of a file address; `None` for other addresses.
fn file_path(url: &str) -> Option<&str> {
    let url = url.trim();
    match url.strip_prefix("file://") {
        // `file://localhost/path` is the same as `file:///path`.
        Some(path) => Some(path.strip_prefix("localhost").unwrap_or(path)),
        None => url.starts_with(['/', '.']).then_some(url),
    }
}
