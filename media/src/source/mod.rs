//! One opened upstream, and how it is opened.
//!
//! A source owns its socket, or its program, and the permit to hold it. Dropping it hands both to the closer; the
//! permit comes back when the provider can no longer see the socket, and nobody of the program is left.

mod file;
mod http;
pub(crate) mod payload;
mod probe;
mod process;
mod request;
mod target;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::http::header::{CONTENT_TYPE, LOCATION};
use ::http::{HeaderMap, StatusCode};
use bytes::Bytes;
use tokio::time::{Instant, timeout_at};
use tracing::debug;

use crate::Permit;
use crate::closer::Closer;
use crate::dial::Dial;
use crate::error::{Cause, UpstreamError};
use crate::source::file::FileSource;
use crate::source::http::{Line, is_headless};
use crate::source::probe::{Inner, InnerHead, Probe};
use crate::source::process::ProcessSource;
use crate::source::target::Target;

pub use crate::source::process::find_program;
pub use crate::source::request::OpenRequest;

/// How much is kept of what comes before the first payload packet. A flood of other packets must not
/// fill the memory; tables come again.
const READ_AHEAD_BYTES_MAX: usize = 2 << 20;

/// How long an upstream may take for what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    /// Until a connection is there, names and TLS included; for each redirect anew.
    pub connect_timeout: Duration,
    /// From the start of the first dial until a payload packet has come, redirects included.
    pub first_packet_timeout: Duration,
    /// The same for a program, which has to start, to connect, and to look at what it gets.
    pub program_start_timeout: Duration,
    /// Most redirects that are followed.
    pub redirects_max: usize,
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            first_packet_timeout: Duration::from_secs(4),
            program_start_timeout: Duration::from_secs(10),
            redirects_max: 5,
        }
    }
}

/// What it takes to open sources; shared by all of a system.
#[derive(Clone)]
pub struct Upstream {
    /// Opens connections.
    pub dial: Arc<dyn Dial>,
    /// Closes them.
    pub closer: Closer,
    /// How long what may take.
    pub settings: SourceSettings,
}

/// What is known of an opened source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceInfo {
    /// Host and port, "file", or the program's name, of where the packets come from in the end. Carries no credentials.
    pub place: String,
    /// How many redirects led there.
    pub n_redirects: usize,
    /// From the start of the first dial to the first payload packet.
    pub opened_in: Duration,
}

/// An opened upstream from which payload has come.
///
/// Dropping it closes it in the background and gives the permit back afterwards.
pub struct Source {
    info: SourceInfo,
    /// What came before and with the first payload packet.
    read_ahead: VecDeque<Bytes>,
    waits: bool,
    kind: Kind,
}

enum Kind {
    Http(Line),
    File(Box<FileSource>),
    Process(Box<ProcessSource>),
}

/// What a program has said of itself.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProgramOutput {
    /// Its last lines, the oldest first, without addresses and what else may be secret.
    pub lines: Vec<String>,
    /// How much of the programme it makes in a second, in seconds, where it says so as ffmpeg does.
    pub speed: Option<f32>,
}

/// Opens an upstream and waits for its first payload packet.
///
/// Whatever way this ends, the permit comes back when no socket is left: through the source, or through
/// the closer when this fails, is dropped at any await, or panics.
///
/// # Errors
/// Why there is no source; nothing is open any more, or closing.
pub async fn open(
    request: OpenRequest,
    permit: Box<dyn Permit>,
    upstream: Upstream,
) -> Result<Source, UpstreamError> {
    open_with_output(request, permit, upstream, &mut ProgramOutput::default()).await
}

/// The same; a program that fails leaves in `said` what it said.
///
/// # Errors
/// As of [`open`].
pub async fn open_with_output(
    request: OpenRequest,
    permit: Box<dyn Permit>,
    upstream: Upstream,
    said: &mut ProgramOutput,
) -> Result<Source, UpstreamError> {
    let started = Instant::now();
    if let Some(command) = &request.command {
        return open_program(command, &request.url, permit, upstream, said).await;
    }
    if let Some(path) = file_path(&request.url) {
        let mut file = FileSource::open(path, permit).await?;
        let read_ahead = VecDeque::from([file.read().await?]);
        let info = SourceInfo { place: "file".into(), n_redirects: 0, opened_in: started.elapsed() };
        return Ok(Source { info, read_ahead, waits: false, kind: Kind::File(Box::new(file)) });
    }
    // Outside of what is timed, so that a time-out finds it here and hands socket and permit to the closer.
    let mut line = Line::new(permit, upstream.closer.clone());
    let deadline = started + upstream.settings.first_packet_timeout;
    let opened = timeout_at(deadline, open_http(&request, &mut line, &upstream)).await;
    let (target, n_redirects, read_ahead) = match opened {
        Ok(result) => result?,
        Err(_) => return Err(Cause::FirstPacketTimeout.into()),
    };
    let info = SourceInfo { place: target.address.to_string(), n_redirects, opened_in: started.elapsed() };
    debug!(place = %info.place, n_redirects, "upstream opened");
    Ok(Source { info, read_ahead, waits: false, kind: Kind::Http(line) })
}

async fn open_program(
    command: &[String],
    url: &str,
    permit: Box<dyn Permit>,
    upstream: Upstream,
    said: &mut ProgramOutput,
) -> Result<Source, UpstreamError> {
    let started = Instant::now();
    let mut program = Box::new(ProcessSource::start(command, url, permit, upstream.closer).await?);
    let deadline = started + upstream.settings.program_start_timeout;
    let first_payload = async {
        let mut probe = Probe::new(None);
        let mut read_ahead = ReadAhead::default();
        loop {
            let bytes = program.read().await?;
            let has_payload = probe.push(&bytes)?;
            read_ahead.push(bytes);
            if has_payload {
                return Ok::<_, UpstreamError>(read_ahead.pieces);
            }
        }
    };
    let opened = timeout_at(deadline, first_payload).await;
    let read_ahead = opened
        .unwrap_or_else(|_| Err(Cause::FirstPacketTimeout.into()))
        .inspect_err(|_| *said = news_of(&program))?;
    let name = command.first().map_or("", |it| it.rsplit('/').next().unwrap_or(it));
    let info = SourceInfo { place: name.to_owned(), n_redirects: 0, opened_in: started.elapsed() };
    debug!(place = %info.place, "program started");
    Ok(Source { info, read_ahead, waits: true, kind: Kind::Process(program) })
}

fn news_of(program: &ProcessSource) -> ProgramOutput {
    let said = program.said();
    ProgramOutput { lines: said.lines().map(str::to_owned).collect(), speed: said.speed() }
}

/// What is read before the source is there, the last of it.
#[derive(Default)]
struct ReadAhead {
    pieces: VecDeque<Bytes>,
    n_bytes: usize,
}

impl ReadAhead {
    fn push(&mut self, bytes: Bytes) {
        self.n_bytes += bytes.len();
        self.pieces.push_back(bytes);
        while self.n_bytes > READ_AHEAD_BYTES_MAX && self.pieces.len() > 1 {
            self.n_bytes -= self.pieces.pop_front().map_or(0, |it| it.len());
        }
    }
}

async fn open_http(
    request: &OpenRequest,
    line: &mut Line,
    upstream: &Upstream,
) -> Result<(Target, usize, VecDeque<Bytes>), UpstreamError> {
    let first = Target::parse(&request.url)?;
    let mut target = first.clone();
    let mut visited = vec![first.clone()];
    loop {
        // Made before the dial: what cannot be asked for needs no connection.
        let ask = request::request(request, &target, first.may_share_secrets_with(&target))?;
        line.dial(&*upstream.dial, &target.address, upstream.settings.connect_timeout).await?;
        let answer = line.ask(ask).await?;
        let status = answer.status();
        if let Some(location) = location(status, answer.headers()) {
            let next = target.join(&location?)?;
            if visited.contains(&next) {
                return Err(Cause::RedirectLoop.into());
            }
            if visited.len() > upstream.settings.redirects_max {
                return Err(Cause::TooManyRedirects.into());
            }
            debug!(from = ?target, to = ?next, "upstream redirects");
            // The provider must not see two.
            line.hang_up().await;
            visited.push(next.clone());
            target = next;
            continue;
        }
        match status {
            StatusCode::NO_CONTENT | StatusCode::RESET_CONTENT => return Err(Cause::Empty.into()),
            _ if !status.is_success() => return Err(Cause::Status(status.as_u16()).into()),
            _ => {}
        }
        let content_type = answer.headers().get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
        let read_ahead = first_payload(line, content_type, is_headless(&answer)).await?;
        return Ok((target, visited.len() - 1, read_ahead));
    }
}

/// Where a redirect leads; `None` for other answers.
fn location(status: StatusCode, headers: &HeaderMap) -> Option<Result<String, UpstreamError>> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    // Not every location is ASCII, though it should be.
    let location = headers.get(LOCATION).map(|it| String::from_utf8_lossy(it.as_bytes()).into_owned());
    Some(location.ok_or_else(|| Cause::BadRedirect.into()))
}

/// Reads until a payload packet has come; returns all that was read.
async fn first_payload(
    line: &mut Line,
    content_type: Option<&str>,
    is_headless: bool,
) -> Result<VecDeque<Bytes>, UpstreamError> {
    let mut inner = InnerHead::new(!is_headless);
    let mut probe = Probe::new(content_type);
    let mut read_ahead = ReadAhead::default();
    while let Some(bytes) = line.read().await? {
        let bytes = match inner.push(bytes) {
            Inner::More => continue,
            Inner::Status(status) => return Err(Cause::Status(status).into()),
            Inner::Body(bytes) if bytes.is_empty() => continue,
            Inner::Body(bytes) => bytes,
        };
        let has_payload = probe.push(&bytes)?;
        read_ahead.push(bytes);
        if has_payload {
            return Ok(read_ahead.pieces);
        }
    }
    Err(probe.end().into())
}

/// The path of a file address; `None` when it is no file.
fn file_path(url: &str) -> Option<&str> {
    let url = url.trim();
    match url.strip_prefix("file://") {
        // `file://localhost/path` is the same as `file:///path`.
        Some(path) => Some(path.strip_prefix("localhost").unwrap_or(path)),
        None => url.starts_with(['/', '.']).then_some(url),
    }
}

impl Source {
    /// The next bytes, first what the opener has read already. May be cancelled: nothing is lost.
    ///
    /// # Errors
    /// `Ended` at the end, and what broke otherwise. After an error the source is of no more use.
    pub async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        if let Some(bytes) = self.read_ahead.pop_front() {
            return Ok(bytes);
        }
        match &mut self.kind {
            Kind::Http(line) => line.read().await?.ok_or_else(|| Cause::Ended.into()),
            Kind::File(file) => file.read().await,
            Kind::Process(program) => program.read().await,
        }
    }

    /// What the program has said until now; `None` if this is none.
    pub fn program_output(&self) -> Option<ProgramOutput> {
        match &self.kind {
            Kind::Process(program) => Some(news_of(program)),
            _ => None,
        }
    }

    /// Whether it waits while nobody reads it, and may have more ready than is due. A provider that streams live does
    /// not wait, and a file is read in its time anyway.
    pub(crate) fn waits_for_its_reader(&self) -> bool {
        self.waits
    }

    /// The same source as one that waits, as a program does.
    #[cfg(test)]
    pub(crate) fn that_waits(self) -> Self {
        Self { waits: true, ..self }
    }

    /// What is known of it.
    pub fn info(&self) -> &SourceInfo {
        &self.info
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source").field("info", &self.info).finish_non_exhaustive()
    }
}
