//! The connection of a session: a slot of one candidate, and the file that is read with it.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use domain::plan::TitleCandidate;
use domain::playout::Attempt;
use domain::settings::LEASE_WAIT;
use media::error::{Cause, UpstreamError};
use media::source::{FilePart, OpenRequest, RemoteFile};
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
}

impl FileSource {
    pub(super) fn new(env: Arc<LiveEnv>, counter: Arc<AtomicU64>, target: Target) -> Self {
        Self { env, counter, target, slot: None, closed_at: None }
    }

    pub(super) fn has_slot(&self) -> bool {
        self.slot.is_some()
    }

    /// Returns the number under which the slot is held.
    pub(super) fn holder(&self) -> Option<u64> {
        self.slot.as_ref().map(|it| it.holder.number())
    }

    /// Closes the connection and keeps the slot.
    pub(super) fn reset(&mut self) {
        if let Some(slot) = &mut self.slot {
            slot.file.reset();
            self.closed_at = Some(Instant::now());
        }
    }

    /// Closes the connection and returns the slot.
    pub(super) fn release(&mut self) {
        self.reset();
        self.slot = None;
    }

    /// Waits for bytes and for messages at the same time. Cancel-safe.
    pub(super) async fn next(&mut self, reads: bool) -> SourceEvent {
        let Some(slot) = &mut self.slot else { return std::future::pending().await };
        tokio::select! {
            biased;
            message = slot.holder.next() => match message {
                Some(message) => SourceEvent::Message(message),
                None => std::future::pending().await,
            },
            read = slot.file.read(), if reads => SourceEvent::Read(read),
        }
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
        let mut tried: HashSet<usize> = HashSet::new();
        let mut last: Option<UpstreamError> = None;
        let mut may_help = false;
        loop {
            if self.slot.is_none() {
                let order = order(candidates, &tried, expected);
                if order.is_empty() {
                    let why = last.map_or(VodRefusal::NoVersions, VodRefusal::Upstream);
                    return Err(OpenFailure { why, can_retry: may_help });
                }
                self.take_slot(candidates, &order, asking.clone()).await?;
                granted();
            }
            let Some(slot) = &mut self.slot else { continue };
            match slot.open(&self.env, at, expected).await {
                Ok(opened) => return Ok(opened),
                Err(error) => {
                    debug!(target = %self.target, account = slot.candidate.candidate.pool.account_name, "failed to open a file: {error}");
                    self.env.registry.source_failed(error.label());
                    let pool = slot.candidate.candidate.pool.clone();
                    let is_limit = error.can_be_connection_limit();
                    if is_limit && self.env.slots.refused(slot.lease, &pool, slot.candidate.candidate.stream)
                    {
                        self.env.slots.make_room(slot.holder.number(), pool);
                    }
                    let just_closed = self.closed_at.is_some_and(|it| it.elapsed() < JUST_CLOSED);
                    if is_limit && just_closed {
                        // The provider may still count the connection that was closed for this one.
                        return Err(OpenFailure { why: VodRefusal::Upstream(error), can_retry: true });
                    }
                    may_help |= !error.is_permanent();
                    let same = |it: &TitleCandidate| {
                        it.file == slot.candidate.file
                            && it.candidate.pool.profile == slot.candidate.candidate.pool.profile
                    };
                    tried.extend((0..candidates.len()).filter(|it| same(&candidates[*it])));
                    last = Some(error);
                    self.slot = None;
                }
            }
        }
    }

    /// Takes the first free slot of these candidates.
    async fn take_slot(
        &mut self,
        candidates: &[TitleCandidate],
        order: &[usize],
        asking: Asking,
    ) -> Result<(), OpenFailure> {
        let failure = |why| OpenFailure { why, can_retry: false };
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
            purpose: LeasePurpose::Vod,
        });
        match timeout(LEASE_WAIT + ANSWER_TIMEOUT, holder.next()).await {
            Ok(Some(SlotMessage::Granted { index, lease, .. })) if index < candidates.len() => {
                let candidate = candidates[index].clone();
                let id = lease.id();
                let file = RemoteFile::new(Box::new(lease), self.env.upstream());
                self.slot = Some(HeldSlot { file, candidate, lease: id, holder });
                Ok(())
            }
            Ok(Some(SlotMessage::Full { full, .. })) => {
                self.env.registry.refused_full.add_one();
                Err(OpenFailure { why: VodRefusal::Full(full), can_retry: true })
            }
            _ => Err(failure(VodRefusal::NoAnswer)),
        }
    }
}

/// A change of a connection.
pub(super) enum SourceEvent {
    Read(Result<Option<Bytes>, UpstreamError>),
    Message(SlotMessage),
}

impl HeldSlot {
    async fn open(
        &mut self,
        env: &LiveEnv,
        at: u64,
        expected: Option<&Expected>,
    ) -> Result<OpenedFile, UpstreamError> {
        let request = open_request(&self.candidate.candidate, &env.plans.conditions(), None);
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
        if expected.is_required {
            order.sort_by_key(|it| is_other(candidates[*it].file));
        }
    }
    order
}

/// Asks for a few bytes of a file, to learn its length. Needs a slot that is free now.
pub(super) async fn probe(
    mut source: FileSource,
    candidates: &[TitleCandidate],
) -> Result<(TitleCandidate, FileVersion), VodRefusal> {
    let mut last = VodRefusal::NoVersions;
    let mut tried = HashSet::new();
    loop {
        let order = order(candidates, &tried, None);
        if order.is_empty() {
            return Err(last);
        }
        // Nobody yields to a question.
        source.take_slot(candidates, &order, Asking::Switch).await.map_err(|it| it.why)?;
        let Some(mut slot) = source.slot.take() else { continue };
        let request = open_request(&slot.candidate.candidate, &source.env.plans.conditions(), None);
        match slot.file.open(&request, 0, Some(1)).await {
            Ok(part) => {
                slot.file.reset();
                let file = slot.candidate.file;
                let version = FileVersion { file, length: part.length, validator: part.validator };
                return Ok((slot.candidate.clone(), version));
            }
            Err(error) => {
                let same = |it: &TitleCandidate| {
                    it.file == slot.candidate.file
                        && it.candidate.pool.profile == slot.candidate.candidate.pool.profile
                };
                tried.extend((0..candidates.len()).filter(|it| same(&candidates[*it])));
                last = VodRefusal::Upstream(error);
            }
        }
    }
}
