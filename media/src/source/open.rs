//! Opens sources: connects with redirects, joins groups, starts programs, and waits for the first payload packet.

use std::collections::VecDeque;
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue, StatusCode};
use tokio::time::{Instant, sleep, timeout_at};
use tracing::debug;

use super::body::{BodyFilter, FilteredBody};
use super::cookies::CookieJar;
use super::file::FileSource;
use super::hls::{HlsSource, NamedTarget, PlaylistResponse};
use super::http::{HttpUpstream, is_headless};
use super::node::{NodeRequest, NodeSource};
use super::probe::{BodyPart, InnerHead, Probe, Probed};
use super::process::ProcessSource;
use super::radio::{ConvertedSource, RadioSource};
use super::refusal::refusal_cause;
use super::request::{
    self, AudioContainer, OpenRequest, PROGRAM_INPUT_MAX, PlaylistAddress, PlaylistFormat, ProgramInput,
};
use super::settings::SourceSettings;
use super::target::{HttpTarget, location, program_address};
use super::udp::{self, UdpSource, UdpTarget};
use super::upstream::Upstream;
use super::{KnownSource, ProgramOutput, Source, SourceInfo, SourceKind, Supply};
use crate::dial::BoxedSocket;
use crate::error::{Cause, UpstreamError};
use crate::permit::Permit;
use crate::radio::{FrameReader, IcyHeaders};
use crate::ts::table_reader::TableHints;

/// Maximum number of bytes kept from before the first payload packet. A flood of other packets must not fill
/// the memory; the tables are repeated anyway.
pub(super) const READ_AHEAD_BYTES_MAX: usize = 2 << 20;

/// Time between requests for a station that has played and does not after a request for titles.
const STATION_RETRY: Duration = Duration::from_secs(1);

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
    if let Some(maker) = request.address_maker.clone() {
        request.url = maker.address().await?;
    }
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
        let input = request.command_input.as_ref().map(written_input).transpose()?;
        let program = ProgramCommand { command, url: &request.url, input };
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
    let OpenedHttp { target, n_redirects, supply, body, filter, sends_titles, .. } = opened;
    let place = target.address.to_string();
    match body {
        OpenedBody::Stream(read_ahead, probe) => {
            http.delivers();
            debug!(%place, n_redirects, "upstream opened");
            let mut info = SourceInfo { n_redirects, ..SourceInfo::new(place, started) }.with_probe(&probe);
            info.known.sends_titles = sends_titles;
            let kind = match filter.is_empty() {
                true => SourceKind::Http(http),
                false => SourceKind::Filtered(Box::new(FilteredBody::new(http, filter))),
            };
            Ok(Source { info, hints: probe.hints(), read_ahead, supply, kind, is_whole: false })
        }
        OpenedBody::Radio(frames) => {
            http.delivers();
            debug!(%place, n_redirects, ?sends_titles, "upstream is radio");
            let known = KnownSource { sends_titles, ..KnownSource::default() };
            let info = SourceInfo { n_redirects, known, ..SourceInfo::new(place, started) };
            Ok(Source {
                info,
                hints: TableHints::default(),
                read_ahead: VecDeque::new(),
                supply: if supply == Supply::Live { Supply::Radio } else { supply },
                kind: SourceKind::Radio(Box::new(RadioSource::new(FilteredBody::new(http, filter), *frames))),
                is_whole: false,
            })
        }
        OpenedBody::Audio(container, early) => {
            let what = container.description();
            debug!(%place, n_redirects, what, "a program converts the station");
            let converter = request.audio_converter.as_ref();
            let command = converter.ok_or_else(|| Cause::NeedsProgram(what.to_owned()))?(container);
            let body = FilteredBody::new(http, filter);
            let opening = open_converted(&command, body, early, &upstream, output, started);
            let mut source = opening.await?;
            let known = KnownSource { sends_titles, ..KnownSource::default() };
            source.info = SourceInfo { n_redirects, known, ..SourceInfo::new(place, started) };
            Ok(source)
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

/// Returns a pipe that contains this input and then ends.
fn written_input(input: &ProgramInput) -> Result<OwnedFd, UpstreamError> {
    let failed = |error: io::Error| Cause::Program(format!("its input: {}", error.kind()));
    if input.0.len() > PROGRAM_INPUT_MAX {
        return Err(Cause::Program("its input is too long".to_owned()).into());
    }
    let (reader, mut writer) = io::pipe().map_err(failed)?;
    // An empty pipe takes it at once.
    writer.write_all(input.0.as_bytes()).map_err(failed)?;
    Ok(reader.into())
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

/// Converts the body of a station with a program and waits for its first payload packet, for at most the start time of
/// programs since `started`.
async fn open_converted(
    command: &[String],
    body: FilteredBody,
    early: VecDeque<Bytes>,
    upstream: &Upstream,
    output: &mut ProgramOutput,
    started: Instant,
) -> Result<Source, UpstreamError> {
    let mut converted = Box::new(ConvertedSource::start(command, body, early, upstream).await?);
    let mut probe = Probe::new(None, TableHints::default());
    let first_payload = async {
        let mut read_ahead = ReadAhead::default();
        loop {
            let bytes = converted.read().await?;
            if read_ahead.first_payload(&mut probe, bytes)? {
                return Ok::<_, UpstreamError>(read_ahead.pieces);
            }
        }
    };
    let opened = timeout_at(started + upstream.settings.program_start_timeout, first_payload).await;
    let read_ahead = opened
        .unwrap_or_else(|_| Err(probe.cause_of_timeout().into()))
        .inspect_err(|_| *output = ProgramOutput::from_program(converted.program()))?;
    converted.delivers();
    Ok(Source {
        info: SourceInfo::new("", started),
        hints: probe.hints(),
        read_ahead,
        supply: Supply::Program,
        kind: SourceKind::Converted(converted),
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
                other => return Err(Cause::NotTs(other.description().to_owned()).into()),
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

    /// Returns half of the time that is left, so that another request has the other half.
    fn half(&self) -> Self {
        let now = Instant::now();
        let until = now + self.longest.saturating_duration_since(now) / 2;
        Self { usual: until, longest: until }
    }

    /// Returns all of the time that is left.
    fn rest(&self) -> Self {
        Self { usual: self.longest, longest: self.longest }
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
            other => Err(Cause::NotTs(other.description().to_owned()).into()),
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
    /// The filter of the bytes after those in `body`.
    filter: BodyFilter,
    icy: IcyHeaders,
    /// Whether titles were sent when they were asked for; `None` if they were not asked for.
    sends_titles: Option<bool>,
}

enum OpenedBody {
    /// A transport stream: its bytes up to and including the first payload packet, and the probe that has found it.
    Stream(VecDeque<Bytes>, Box<Probe>),
    /// Audio frames, with the reader that has the first bytes.
    Radio(Box<FrameReader>),
    /// Sound that a program converts, with everything that was read of it.
    Audio(AudioContainer, VecDeque<Bytes>),
    Playlist(Box<FoundPlaylist>),
}

/// A playlist of segments, which has been read in part.
struct FoundPlaylist {
    /// The facts that a program needs.
    address: PlaylistAddress,
    response: PlaylistResponse,
}

/// Opens an address over HTTP, and asks for titles if it is a station that may have some: with another request, because a
/// request that asks for them may get another answer. `is_elsewhere` records whether another host was asked after a
/// redirect, also if the opening fails or is dropped.
async fn open_http(
    request: &OpenRequest,
    http: &mut HttpUpstream,
    upstream: &Upstream,
    time: &OpeningTime,
    is_elsewhere: &mut bool,
) -> Result<OpenedHttp, UpstreamError> {
    let known = request.known.sends_titles;
    let asks_titles = known == Some(true);
    let opened = open_response(request, asks_titles, http, upstream, time, is_elsewhere).await;
    match &opened {
        Ok(opened) if known.is_none() && opened.may_have_titles() => {
            // The provider must never see two connections.
            http.hang_up().await;
            let time = time.half();
            let asked = open_response(request, true, http, upstream, &time, is_elsewhere).await;
            if asked.as_ref().is_ok_and(OpenedHttp::is_radio) {
                return asked;
            }
        }
        Err(error) if asks_titles && is_other_answer(error) => {}
        Ok(opened) if asks_titles && !opened.is_radio() => {}
        _ => return opened,
    }
    debug!("the station does not answer a request for titles");
    loop {
        http.hang_up().await;
        let opened = open_response(request, false, http, upstream, &time.rest(), is_elsewhere).await;
        match opened {
            // It has just played: the provider may still count the connections before.
            Err(error) if known.is_none() && is_other_answer(&error) => {
                if Instant::now() + STATION_RETRY >= time.longest {
                    return Err(error);
                }
                sleep(STATION_RETRY).await;
            }
            opened => return opened.map(|it| OpenedHttp { sends_titles: Some(false), ..it }),
        }
    }
}

/// Returns whether an answer fails that another request may not get.
fn is_other_answer(error: &UpstreamError) -> bool {
    matches!(error.cause(), Cause::Status(_) | Cause::NotTs(_) | Cause::Protocol(_) | Cause::Empty)
}

impl OpenedHttp {
    fn is_radio(&self) -> bool {
        matches!(self.body, OpenedBody::Radio(_))
    }

    /// Returns whether this is a station that may send titles if they are asked for.
    fn may_have_titles(&self) -> bool {
        self.is_radio() && self.icy.is_icy && self.icy.interval.is_none()
    }
}

/// Requests an address and follows redirects, until a body is recognised.
async fn open_response(
    request: &OpenRequest,
    asks_titles: bool,
    http: &mut HttpUpstream,
    upstream: &Upstream,
    time: &OpeningTime,
    is_elsewhere: &mut bool,
) -> Result<OpenedHttp, UpstreamError> {
    *is_elsewhere = false;
    let first = HttpTarget::parse(&request.url)?;
    let mut target = first.clone();
    let mut cookies = CookieJar::default();
    // With the number of changes of cookies: servers redirect to the same address to set one.
    let mut visited = vec![(first.clone(), 0)];
    let mut redirected_by = None;
    loop {
        // Built before dialling, so that an invalid request opens no connection.
        let is_trusted = first.may_share_secrets_with(&target);
        let mut outgoing = request::request(request, &target, is_trusted, &cookies.pairs(&target))?;
        if asks_titles {
            outgoing.headers_mut().insert("icy-metadata", HeaderValue::from_static("1"));
        }
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
        let head = (!is_headless(&response)).then(|| IcyHeaders::from_headers(response.headers()));
        let described = AnswerDescription { content_type, hints: request.table_hints(), icy: head };
        let (first_bytes, filter, icy) = first_bytes(http, described, time).await?;
        let body = match first_bytes {
            FirstBytes::Radio(frames) => OpenedBody::Radio(frames),
            FirstBytes::Audio(container, early) => OpenedBody::Audio(container, early),
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
        let sends_titles = asks_titles.then_some(icy.interval.is_some());
        let n_redirects = visited.len() - 1;
        return Ok(OpenedHttp { target, n_redirects, supply, body, filter, icy, sends_titles });
    }
}

/// The beginning of a body.
enum FirstBytes {
    /// Everything up to and including the first payload packet, and the probe that has found it.
    Payload(VecDeque<Bytes>, Box<Probe>),
    /// A playlist, with everything that was read of it.
    Playlist(PlaylistFormat, VecDeque<Bytes>),
    /// Audio frames, with the reader that has the first bytes.
    Radio(Box<FrameReader>),
    /// Sound that a program converts, with everything that was read of it.
    Audio(AudioContainer, VecDeque<Bytes>),
}

/// A response before its body.
struct AnswerDescription<'a> {
    content_type: Option<&'a str>,
    hints: TableHints,
    /// The statements of the head about titles; `None` if the head is inside of the body, or absent.
    icy: Option<IcyHeaders>,
}

/// Returns whether a response is a recording. A live stream has no length; some servers declare an absurd one.
fn supply_of(headers: &HeaderMap) -> Supply {
    let length = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.trim().parse::<u64>().ok());
    match length {
        Some(1..=RECORDING_BYTES_MAX) if !headers.contains_key(TRANSFER_ENCODING) => Supply::Recording,
        _ => Supply::Live,
    }
}

/// Reads until a payload packet has arrived, or until the body is recognised as a playlist or as radio. Also returns what
/// the following bytes pass through, and what the head says about titles.
async fn first_bytes(
    http: &mut HttpUpstream,
    described: AnswerDescription<'_>,
    time: &OpeningTime,
) -> Result<(FirstBytes, BodyFilter, IcyHeaders), UpstreamError> {
    let AnswerDescription { content_type, hints, icy } = described;
    let mut probe = Probe::from_answer(content_type, hints.clone());
    let mut inner = InnerHead::new(icy);
    let (mut filter, mut has_begun) = (BodyFilter::default(), false);
    let mut read_ahead = ReadAhead::default();
    // The bytes of a compressed body, which the reader of a playlist unpacks itself.
    let mut packed: Option<ReadAhead> = None;
    loop {
        let read = timeout_at(time.until(&probe), http.read()).await;
        let read = read.unwrap_or_else(|_| Err(probe.cause_of_timeout().into()))?;
        let has_ended = read.is_none();
        match read.map(|it| inner.push(it)) {
            None => filter.end(),
            Some(BodyPart::More) => continue,
            Some(BodyPart::Status(status)) => return Err(Cause::Status(status).into()),
            Some(BodyPart::Body(bytes)) => {
                if let Some(interval) = inner.icy().interval.filter(|_| !has_begun) {
                    filter.cut_titles(interval);
                }
                has_begun = true;
                if let Some(packed) = &mut packed {
                    packed.push(bytes.clone());
                }
                filter.push(bytes);
            }
        }
        while let Some(bytes) = filter.next_piece()? {
            if bytes.is_empty() {
                continue;
            }
            let probed = probe.push(&bytes)?;
            read_ahead.push(bytes);
            let found = match probed {
                Probed::More => continue,
                Probed::Packed => {
                    let taken = std::mem::take(&mut read_ahead);
                    filter.unpack(taken.pieces.clone());
                    packed = Some(taken);
                    probe = Probe::from_unpacked(content_type, hints.clone());
                    continue;
                }
                Probed::Payload => FirstBytes::Payload(read_ahead.pieces, Box::new(probe)),
                Probed::Audio(container) => FirstBytes::Audio(container, read_ahead.pieces),
                Probed::Radio => FirstBytes::Radio(Box::new(probe.into_frames())),
                Probed::Playlist(format) => FirstBytes::Playlist(format, packed.unwrap_or(read_ahead).pieces),
            };
            return Ok((found, filter, inner.icy()));
        }
        if has_ended {
            let found = FirstBytes::Playlist(probe.end()?, packed.unwrap_or(read_ahead).pieces);
            return Ok((found, filter, inner.icy()));
        }
    }
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
