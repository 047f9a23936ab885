//! The connection of a session: a slot of one candidate, and the file or the stream that is read with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::plan::{Candidate, TitleCandidate};
use domain::playout::Attempt;
use domain::settings::LEASE_WAIT;
use domain::stream::SourceKind;
use media::Permit;
use media::error::{Cause, UpstreamError};
use media::source::{self, FilePart, KnownSource, OpenRequest, RemoteFile, Source, Upstream};
use tokio::time::{Instant, timeout};
use tracing::debug;
use uuid::Uuid;

use super::VodRefusal;
use super::cache::FileVersion;
use crate::ask::ANSWER_TIMEOUT;
use crate::channel::{LiveEnv, open_request};
use crate::plans::Target;
use crate::slots::{Asking, Holder, LeasePurpose, Request, SlotCandidate, SlotMessage};

/// Number of bytes at the end of a file that another provider's file has to have in common with it.
pub(super) const COMPARED_BYTES: u64 = 64 << 10;
/// Time after the end of a connection during which its provider may still count it.
const JUST_CLOSED: Duration = Duration::from_secs(5);
/// The number of the only attempt of a holder.
const ATTEMPT: Attempt = Attempt(1);

/// The connection of one session, or none.
pub(super) struct FileSource {
    env: Arc<LiveEnv>,
    counter: Arc<AtomicU64>,
    target: Target,
    slot: Option<HeldSlot>,
    /// Instead of `slot`, if a program reads the title.
    stream: Option<HeldStream>,
    /// The files that turned out to be playlists of segments.
    playlists: HashSet<Uuid>,
    /// When a connection was closed for the last time.
    closed_at: Option<Instant>,
}

/// A slot, and the file that is read with it.
struct HeldSlot {
    // Dropped first: the lease is inside.
    file: RemoteFile,
    candidate: TitleCandidate,
    lease: u64,
    holder: Holder,
    /// When the open connection was opened.
    opened_at: Instant,
}

/// A slot, and the program that reads a playlist of segments with it.
struct HeldStream {
    // Dropped first: the lease is inside.
    source: Source,
    holder: Holder,
}

/// The file that a new connection has to agree with.
pub(super) struct Expected {
    pub(super) version: FileVersion,
    /// The last [`COMPARED_BYTES`] of the file, if they are known.
    pub(super) tail: Option<Bytes>,
    /// Bytes of the file were passed on, so that the rest has to be of the same file.
    pub(super) is_required: bool,
}

/// An opened part of a file.
pub(super) struct OpenedFile {
    pub(super) candidate: TitleCandidate,
    pub(super) part: FilePart,
    pub(super) version: FileVersion,
    /// The file is that of another provider, and was compared.
    pub(super) is_compared: bool,
}

/// Why a file could not be opened.
pub(super) struct OpenFailure {
    pub(super) why: VodRefusal,
    pub(super) can_retry: bool,
    /// The title is a playlist of segments, which [`FileSource::open_stream`] opens.
    pub(super) is_stream: bool,
}

impl OpenFailure {
    fn new(why: VodRefusal, can_retry: bool) -> Self {
        Self { why, can_retry, is_stream: false }
    }
}

impl FileSource {
    pub(super) fn new(env: Arc<LiveEnv>, counter: Arc<AtomicU64>, target: Target) -> Self {
        let (slot, stream, playlists, closed_at) = Default::default();
        Self { env, counter, target, slot, stream, playlists, closed_at }
    }

    pub(super) fn has_slot(&self) -> bool {
        self.slot.is_some() || self.stream.is_some()
    }

    /// Returns the number under which the slot is held.
    pub(super) fn holder(&self) -> Option<u64> {
        let stream = self.stream.as_ref().map(|it| &it.holder);
        self.slot.as_ref().map(|it| &it.holder).or(stream).map(Holder::number)
    }

    /// Notes that the open connection was lost.
    pub(super) fn lost(&self, cause: &UpstreamError) {
        if let Some(slot) = &self.slot {
            self.env.plans.health().file_lost(slot.candidate.file, cause, slot.opened_at.elapsed());
        }
    }

    /// Closes the connection and keeps the slot.
    pub(super) fn reset(&mut self) {
        if let Some(slot) = &mut self.slot {
            slot.file.reset();
            self.closed_at = Some(Instant::now());
        }
    }

    /// Closes the connection, or ends the program, and returns the slot.
    pub(super) fn release(&mut self) {
        self.reset();
        self.slot = None;
        self.stream = None;
    }

    /// Gives back an empty buffer for the next bytes.
    pub(super) fn reuse(&mut self, buffer: BytesMut) {
        if let Some(slot) = &mut self.slot {
            slot.file.reuse(buffer);
        }
    }

    /// Waits for bytes and for messages at the same time. Cancel-safe.
    pub(super) async fn next(&mut self, reads: bool) -> SourceEvent {
        let Some(slot) = &mut self.slot else { return std::future::pending().await };
        let event = tokio::select! {
            biased;
            message = slot.holder.next() => event_of(message).await,
            read = slot.file.read(), if reads => SourceEvent::Read(read),
        };
        self.release_if_revoked(event)
    }

    /// Closes the connection at once if its lease is revoked.
    fn release_if_revoked(&mut self, event: SourceEvent) -> SourceEvent {
        if matches!(event, SourceEvent::Revoked) {
            self.release();
        }
        event
    }

    /// Opens a connection that begins at `at`: with the slot that is held, or else with the first free slot of the
    /// candidates. A file of another provider than expected is compared first. Dropping the future leaves the slot, if
    /// one was granted; [`Self::reset`] then closes the connection.
    pub(super) async fn open(
        &mut self,
        candidates: &[TitleCandidate],
        expected: Option<&Expected>,
        at: u64,
        asking: Asking,
        granted: impl Fn(),
    ) -> Result<OpenedFile, OpenFailure> {
        let mut tried = self.leave_inactive(candidates);
        let mut last: Option<UpstreamError> = None;
        let mut may_help = false;
        let mut is_stream = false;
        let is_archive = matches!(self.target, Target::Archive(_));
        loop {
            if self.slot.is_none() {
                let order = order(candidates, &tried, expected);
                if order.is_empty() {
                    let why = last.map_or(VodRefusal::NoVersions, VodRefusal::Upstream);
                    return Err(OpenFailure { why, can_retry: may_help, is_stream });
                }
                let taken = self.take_slot(candidates, &order, asking.clone()).await;
                taken.map_err(|it| OpenFailure { is_stream, ..it })?;
                granted();
            }
            let Some(slot) = &mut self.slot else { continue };
            let started = Instant::now();
            let revoked = slot.holder.revocation();
            let opened = tokio::select! {
                biased;
                () = revoked.cancelled() => Err(Cause::Revoked.into()),
                opened = slot.open(&self.env, at, expected) => opened,
            };
            match opened {
                Err(error) if is_revoked(&error) => {
                    self.release();
                    return Err(OpenFailure::new(VodRefusal::Upstream(error), true));
                }
                Ok(opened) => {
                    slot.opened_at = Instant::now();
                    let profile = slot.candidate.candidate.pool.profile;
                    self.env.plans.health().file_opened(opened.version.file, profile, started.elapsed());
                    return Ok(opened);
                }
                Err(error) if is_playlist(&error) || is_archive && is_lengthless(&error) => {
                    is_stream = true;
                    let file = slot.candidate.file;
                    self.playlists.insert(file);
                    // A file that can be sought in is better, also at an account of lower priority.
                    tried.extend((0..candidates.len()).filter(|it| candidates[*it].file == file));
                    let why = VodRefusal::Upstream(error);
                    if order(candidates, &tried, expected).is_empty() {
                        // With the slot, for the program.
                        return Err(OpenFailure { why, can_retry: false, is_stream });
                    }
                    self.slot = None;
                }
                // With the slot that is held, at the next address of the account.
                Err(error) if has_moved(&self.env, &slot.candidate, &error) => last = Some(error),
                Err(error) => {
                    debug!(target = %self.target, account = slot.candidate.candidate.pool.account_name, "failed to open a file: {error}");
                    let is_limit = judge(&self.env, &error, &slot.candidate, slot.lease, &slot.holder);
                    let just_closed = self.closed_at.is_some_and(|it| it.elapsed() < JUST_CLOSED);
                    tried.extend(same_way(candidates, &slot.candidate));
                    // Another limit of the same account is better than a wait.
                    let has_other = order(candidates, &tried, expected).into_iter().any(|it| {
                        let other = &candidates[it];
                        let pool = &slot.candidate.candidate.pool;
                        other.file == slot.candidate.file && !other.candidate.pool.shares_limit_with(pool)
                    });
                    if is_limit && just_closed && !has_other {
                        // The provider may still count the connection that was closed for this one.
                        return Err(OpenFailure::new(VodRefusal::Upstream(error), true));
                    }
                    may_help |= !error.is_permanent();
                    last = Some(error);
                    self.slot = None;
                }
            }
        }
    }

    /// Lets a program read the playlist of segments that the title is, with the slot that is held, or else with the first
    /// free slot. Dropping the future ends the program and returns the slot.
    pub(super) async fn open_stream(
        &mut self,
        candidates: &[TitleCandidate],
        asking: Asking,
        granted: impl Fn(),
    ) -> Result<TitleCandidate, OpenFailure> {
        let mut tried = self.leave_inactive(candidates);
        let mut last: Option<UpstreamError> = None;
        let mut may_help = false;
        self.slot.take_if(|it| !self.playlists.contains(&it.candidate.file));
        loop {
            if self.slot.is_none() {
                let mut order = order(candidates, &tried, None);
                order.retain(|it| self.playlists.contains(&candidates[*it].file));
                if order.is_empty() {
                    let why = last.map_or(VodRefusal::NoVersions, VodRefusal::Upstream);
                    return Err(OpenFailure::new(why, may_help));
                }
                self.take_slot(candidates, &order, asking.clone()).await?;
                granted();
            }
            let Some(HeldSlot { file, candidate, lease, holder, .. }) = self.slot.take() else { continue };
            let request = OpenRequest { prefers_program: true, ..prepared(&self.env, &candidate.candidate) };
            let revoked = holder.revocation();
            let opened = tokio::select! {
                biased;
                () = revoked.cancelled() => Err(Cause::Revoked.into()),
                opened = open_with(file, request, self.env.upstream()) => opened,
            };
            match opened {
                Err(error) if is_revoked(&error) => {
                    return Err(OpenFailure::new(VodRefusal::Upstream(error), true));
                }
                Ok(source) => {
                    self.stream = Some(HeldStream { source, holder });
                    return Ok(candidate);
                }
                Err(error) => {
                    debug!(target = %self.target, account = candidate.candidate.pool.account_name, "failed to open a stream: {error}");
                    judge(&self.env, &error, &candidate, lease, &holder);
                    may_help |= !error.is_permanent();
                    tried.extend(same_way(candidates, &candidate));
                    last = Some(error);
                }
            }
        }
    }

    /// Waits for bytes of the stream and for messages at the same time. Cancel-safe.
    pub(super) async fn next_of_stream(&mut self, reads: bool) -> SourceEvent {
        let Some(stream) = &mut self.stream else { return std::future::pending().await };
        let event = tokio::select! {
            biased;
            message = stream.holder.next() => event_of(message).await,
            read = stream.source.read(), if reads => SourceEvent::Read(match read {
                Err(_) if stream.source.is_complete() => Ok(None),
                read => read.map(Some),
            }),
        };
        self.release_if_revoked(event)
    }

    /// Uses the slot that is held for the candidates as they are now, and returns that of an account or profile that was
    /// deactivated. Returns the candidates that are not to be used any more.
    fn leave_inactive(&mut self, candidates: &[TitleCandidate]) -> HashSet<usize> {
        let plans = &self.env.plans;
        if let Some(slot) = &mut self.slot
            && !candidates.iter().any(|it| it.file == slot.candidate.file)
        {
            // Another time in the archive, with the slot that is held.
            let pool = &slot.candidate.candidate.pool;
            match candidates.iter().find(|it| it.candidate.pool.profile == pool.profile) {
                Some(same_login) => {
                    slot.candidate = same_login.clone();
                    slot.file.forget_place();
                }
                None => self.slot = None,
            }
        }
        self.slot.take_if(|it| !plans.is_active(&it.candidate.candidate.pool));
        let is_inactive = |it: &usize| !plans.is_active(&candidates[*it].candidate.pool);
        (0..candidates.len()).filter(is_inactive).collect()
    }

    /// Takes the first free slot of these candidates.
    async fn take_slot(
        &mut self,
        candidates: &[TitleCandidate],
        order: &[usize],
        asking: Asking,
    ) -> Result<(), OpenFailure> {
        let failure = |why| OpenFailure::new(why, false);
        let number = self.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let holder = Holder::start(self.env.slots.clone(), number, ATTEMPT).await;
        let mut holder = holder.map_err(|_| failure(VodRefusal::Stopping))?;
        let candidate = |it: &usize| SlotCandidate::new(*it, &candidates[*it].candidate);
        self.env.slots.request(Request {
            holder: number,
            target: self.target,
            port: holder.port(),
            attempt: ATTEMPT,
            order: order.iter().map(candidate).collect(),
            asking,
            claim: None,
            purpose: match self.target {
                Target::Archive(_) => LeasePurpose::Catchup,
                _ => LeasePurpose::Vod,
            },
        });
        match timeout(LEASE_WAIT + ANSWER_TIMEOUT, holder.next()).await {
            Ok(Some(SlotMessage::Granted { index, lease, .. })) if index < candidates.len() => {
                let candidate = candidates[index].clone();
                let id = lease.id();
                let permit: Box<dyn Permit> = match self.env.plans.link(&candidate.candidate) {
                    Some(link) => link.held_by(Box::new(lease)),
                    None => Box::new(lease),
                };
                let file = RemoteFile::new(permit, self.env.upstream());
                self.slot = Some(HeldSlot { file, candidate, lease: id, holder, opened_at: Instant::now() });
                Ok(())
            }
            Ok(Some(SlotMessage::Full { full, .. })) => {
                self.env.registry.refused_full.add_one();
                Err(OpenFailure::new(VodRefusal::Full(full), true))
            }
            _ => Err(failure(VodRefusal::NoAnswer)),
        }
    }
}

/// Returns the request that opens a candidate. The link of a portal is made when it is sent.
fn prepared(env: &LiveEnv, candidate: &Candidate) -> OpenRequest {
    let request = open_request(candidate, &env.plans.conditions(), KnownSource::default());
    OpenRequest { address_maker: env.plans.link(candidate).map(|it| it as _), ..request }
}

/// Returns whether the account has changed to another address because of this error.
fn has_moved(env: &LiveEnv, candidate: &TitleCandidate, error: &UpstreamError) -> bool {
    let Candidate { pool, url, .. } = &candidate.candidate;
    env.plans.addresses().stream_failed(pool.account, url, error)
}

/// Records why a candidate failed. Returns whether the provider may count too many connections.
fn judge(
    env: &LiveEnv,
    error: &UpstreamError,
    candidate: &TitleCandidate,
    lease: u64,
    holder: &Holder,
) -> bool {
    env.registry.source_failed(error.label());
    let pool = candidate.candidate.pool.clone();
    env.plans.health().file_failed(candidate.file, pool.profile, error);
    let refusal = env.slots.provider_refused(lease, &pool, candidate.candidate.stream, error);
    if refusal.is_crowded {
        env.slots.make_room(holder.number(), pool);
    }
    error.can_be_connection_limit()
}

/// Returns the candidates that read the same file in the same way.
fn same_way(candidates: &[TitleCandidate], failed: &TitleCandidate) -> Vec<usize> {
    let is_same = |it: &TitleCandidate| {
        it.file == failed.file && it.candidate.pool.profile == failed.candidate.pool.profile
    };
    (0..candidates.len()).filter(|it| is_same(&candidates[*it])).collect()
}

/// Returns whether the address leads to a playlist of segments, which a program has to read.
fn is_playlist(error: &UpstreamError) -> bool {
    matches!(error.cause(), Cause::NeedsProgram(_))
}

/// Returns whether a provider sends no file. A part of an archive is read like a live stream then.
fn is_lengthless(error: &UpstreamError) -> bool {
    matches!(error.cause(), Cause::NotSeekable(_))
}

/// Returns whether the lease was revoked while its connection was being opened.
fn is_revoked(error: &UpstreamError) -> bool {
    *error.cause() == Cause::Revoked
}

/// Opens a stream with the lease of a file.
async fn open_with(
    file: RemoteFile,
    request: OpenRequest,
    upstream: Upstream,
) -> Result<Source, UpstreamError> {
    match file.into_permit().await {
        Some(permit) => source::open(request, permit, upstream).await,
        None => Err(Cause::Panicked.into()),
    }
}

/// A change of a connection.
pub(super) enum SourceEvent {
    Read(Result<Option<Bytes>, UpstreamError>),
    /// Another holder needs the slot.
    Message(SlotMessage),
    /// The lease was revoked, and the connection is closed.
    Revoked,
}

/// Returns the event of a message to the holder.
async fn event_of(message: Option<SlotMessage>) -> SourceEvent {
    match message {
        Some(SlotMessage::Revoked { .. }) => SourceEvent::Revoked,
        Some(message) => SourceEvent::Message(message),
        None => std::future::pending().await,
    }
}

impl HeldSlot {
    async fn open(
        &mut self,
        env: &LiveEnv,
        at: u64,
        expected: Option<&Expected>,
    ) -> Result<OpenedFile, UpstreamError> {
        // As of now: the account may have changed to another address since the candidates were found.
        let candidate = &mut self.candidate.candidate;
        candidate.url = env.plans.addressed(candidate);
        let request = prepared(env, candidate);
        let file = self.candidate.file;
        let is_compared = match expected.filter(|it| it.version.file != file) {
            None => false,
            Some(expected) => match self.compare(&request, expected).await? {
                false if expected.is_required => {
                    return Err(Cause::NotSeekable("its file is another one".into()).into());
                }
                is_same => is_same,
            },
        };
        let part = self.file.open(&request, at, None).await?;
        let version = FileVersion { file, length: part.length, validator: part.validator.clone() };
        Ok(OpenedFile { candidate: self.candidate.clone(), part, version, is_compared })
    }

    /// Returns whether the file has the same length and the same end as the expected one.
    async fn compare(&mut self, request: &OpenRequest, expected: &Expected) -> Result<bool, UpstreamError> {
        let Some(tail) = &expected.tail else { return Ok(false) };
        let length = expected.version.length;
        match self.file.open(request, length - tail.len() as u64, None).await {
            Ok(part) => {
                let is_same = part.length == length && self.read_end(tail.len()).await? == *tail;
                self.file.reset();
                Ok(is_same)
            }
            // It is shorter.
            Err(error) if *error.cause() == Cause::Status(416) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the rest of the open part, of at most this length.
    async fn read_end(&mut self, n_bytes: usize) -> Result<Bytes, UpstreamError> {
        let mut end = BytesMut::with_capacity(n_bytes);
        while end.len() < n_bytes {
            let read = timeout(super::STALL_TIMEOUT, self.file.read()).await;
            let Some(bytes) = read.map_err(|_| UpstreamError::new(Cause::Stall))?? else { break };
            end.extend_from_slice(&bytes);
        }
        Ok(end.freeze())
    }
}

/// Returns the candidates that were not tried yet: those with the expected file first.
fn order(candidates: &[TitleCandidate], tried: &HashSet<usize>, expected: Option<&Expected>) -> Vec<usize> {
    let mut order: Vec<usize> = (0..candidates.len()).filter(|it| !tried.contains(it)).collect();
    if let Some(expected) = expected {
        let is_other = |file: Uuid| file != expected.version.file;
        let may_differ = expected.tail.is_some() || !expected.is_required;
        order.retain(|it| !is_other(candidates[*it].file) || may_differ);
        order.sort_by_key(|it| is_other(candidates[*it].file));
    }
    order
}

/// Asks for a few bytes of a file, to learn its length. Needs a slot that is free now. Returns no version of a playlist of
/// segments, which has no length.
pub(super) async fn probe(
    mut source: FileSource,
    candidates: &[TitleCandidate],
) -> Result<(TitleCandidate, Option<FileVersion>), VodRefusal> {
    let mut last = VodRefusal::NoVersions;
    let mut playlist = None;
    let mut tried = HashSet::new();
    loop {
        let order = order(candidates, &tried, None);
        if order.is_empty() {
            return playlist.map(|it| (it, None)).ok_or(last);
        }
        // Nobody yields to a question.
        match source.take_slot(candidates, &order, Asking::Switch).await {
            Ok(()) => {}
            Err(failure) => return playlist.map(|it| (it, None)).ok_or(failure.why),
        }
        let Some(mut slot) = source.slot.take() else { continue };
        let conditions = source.env.plans.conditions();
        let request = prepared(&source.env, &slot.candidate.candidate);
        let is_named_playlist = matches!(slot.candidate.candidate.kind, SourceKind::Hls | SourceKind::Dash);
        let revoked = slot.holder.revocation();
        let opened = tokio::select! {
            biased;
            () = revoked.cancelled() => Err(Cause::Revoked.into()),
            opened = slot.file.open(&request, 0, Some(1)) => opened,
        };
        match opened {
            // One byte does not show it.
            Ok(_) if is_named_playlist && conditions.has_ffmpeg => {
                playlist = playlist.or(Some(slot.candidate.clone()));
                tried.extend(same_way(candidates, &slot.candidate));
            }
            Ok(part) => {
                slot.file.reset();
                let file = slot.candidate.file;
                let version = FileVersion { file, length: part.length, validator: part.validator };
                return Ok((slot.candidate.clone(), Some(version)));
            }
            Err(error) => {
                if is_playlist(&error) && conditions.has_ffmpeg {
                    playlist = playlist.or(Some(slot.candidate.clone()));
                }
                tried.extend(same_way(candidates, &slot.candidate));
                last = VodRefusal::Upstream(error);
            }
        }
    }
}
