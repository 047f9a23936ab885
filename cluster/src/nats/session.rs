//! Sessions: connects, checks that the data is the same as before, and begins again when anything is in doubt.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::Context;
use async_nats::jetstream::context::ContextBuilder;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

use super::options::NatsOptions;
use super::streams::{self, StreamKind};
use super::version;
use crate::engine::{EngineError, EngineState, Session};

/// Longest time for the answer to a request.
pub(super) const REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Pause after a failed attempt to begin a session; the first one, which doubles up to the second.
const PAUSES: [Duration; 2] = [Duration::from_millis(100), Duration::from_secs(2)];

/// Requests in a row without an answer after which another server is tried.
const UNANSWERED_MAX: u32 = 2;

/// Bytes of a message that are kept for its headers.
const HEADER_BYTES: usize = 1024;

/// The values that the tasks of an engine share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) options: NatsOptions,
    pub(super) state: watch::Sender<EngineState>,
    live: Mutex<Option<Arc<Live>>>,
    /// Cancelled when the engine is dropped.
    pub(super) stopped: CancellationToken,
}

/// A session with its connection.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: Session,
    pub(super) client: Client,
    pub(super) jetstream: Context,
    /// Cancelled when the connection has ended, or anything about it is in doubt.
    pub(super) ended: CancellationToken,
    /// The highest revision of a record that this process has seen. Shared by the sessions until the engine restarts,
    /// so that a late answer of an earlier session does not raise it afterwards.
    highest: Arc<AtomicU64>,
    unanswered: AtomicU32,
}

impl Live {
    /// Notes a revision that was seen.
    pub(super) fn saw(&self, revision: u64) {
        self.highest.fetch_max(revision, Ordering::Relaxed);
    }

    pub(super) fn highest(&self) -> u64 {
        self.highest.load(Ordering::Relaxed)
    }

    pub(super) fn answered(&self) {
        self.unanswered.store(0, Ordering::Relaxed);
    }

    /// Counts a request without an answer. The server may be cut off from the others, so another one is tried.
    pub(super) fn unanswered(&self) {
        if self.unanswered.fetch_add(1, Ordering::Relaxed) + 1 >= UNANSWERED_MAX {
            self.end("NATS does not answer");
        }
    }

    /// Ends the session. The next one checks everything anew.
    pub(super) fn end(&self, reason: &str) {
        if !self.ended.is_cancelled() {
            warn!("a new connection to NATS is needed: {reason}");
            self.ended.cancel();
        }
    }
}

impl Shared {
    pub(super) fn new(options: NatsOptions) -> Self {
        let reason = "not connected yet".to_owned();
        let (state, _) = watch::channel(EngineState::Disconnected { reason });
        Self { options, state, live: Mutex::new(None), stopped: CancellationToken::new() }
    }

    /// Returns the connection of a session, if it is the present one.
    pub(super) fn live(&self, session: u64) -> Result<Arc<Live>, EngineError> {
        let live = self.live.lock().clone();
        let is_present = |it: &Arc<Live>| it.session.number == session && !it.ended.is_cancelled();
        live.filter(is_present).ok_or(EngineError::SessionEnded)
    }

    /// Waits for a session other than this one.
    pub(super) async fn next_live(&self, last: u64) -> Arc<Live> {
        let mut state = self.state.subscribe();
        loop {
            let session = state.borrow_and_update().session();
            let live = session.filter(|it| it.number != last).map(|it| self.live(it.number));
            if let Some(Ok(live)) = live {
                return live;
            }
            // The sender is in `self`, so this waits for a change.
            if state.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        }
    }
}

/// Keeps sessions, one after the other, until the engine is dropped.
pub(super) async fn run(shared: Arc<Shared>) {
    let stopped = shared.stopped.clone();
    stopped.run_until_cancelled(keep_sessions(&shared)).await;
    shared.live.lock().take();
}

async fn keep_sessions(shared: &Shared) {
    // Nodes begin with different servers, so that they do not all depend on the first one.
    let mut server = usize::try_from(std::process::id()).unwrap_or_default();
    let mut identity = None;
    let mut highest = Arc::new(AtomicU64::new(0));
    let (mut number, mut n_restarts, mut pause) = (0, 0, PAUSES[0]);
    loop {
        let address = &shared.options.servers[server % shared.options.servers.len()];
        server = server.wrapping_add(1);
        let opened = match open(shared, address).await {
            Ok(it) => it,
            Err(reason) => {
                disconnected(shared, reason);
                sleep(pause).await;
                pause = (pause * 2).min(PAUSES[1]);
                continue;
            }
        };
        number += 1;
        let (is_other, is_shorter) = (
            identity.as_ref().is_some_and(|it| *it != opened.identity),
            opened.last_revision < highest.load(Ordering::Relaxed),
        );
        if is_other || is_shorter {
            n_restarts += 1;
            highest = Arc::new(AtomicU64::new(0));
            let how = if is_other { "is a new one" } else { "has lost records" };
            warn!(
                "the bucket of the cluster {how}: no slots are granted until all nodes have registered again"
            );
        }
        identity = Some(opened.identity);
        pause = PAUSES[0];
        let session = Session { number, n_restarts, payload_max: opened.payload_max };
        let live = Live {
            session,
            client: opened.client,
            jetstream: opened.jetstream,
            ended: opened.ended,
            highest: highest.clone(),
            unanswered: AtomicU32::new(0),
        };
        let ended = live.ended.clone();
        *shared.live.lock() = Some(Arc::new(live));
        shared.state.send_replace(EngineState::Connected(session));
        info!("connected to the NATS server {address}");
        ended.cancelled().await;
        shared.live.lock().take();
        disconnected(shared, format!("the connection to the NATS server {address} has ended"));
    }
}

/// Notes why there is no session. Logs a reason once, however often it repeats.
fn disconnected(shared: &Shared, reason: String) {
    let state = EngineState::Disconnected { reason };
    shared.state.send_if_modified(|present| {
        let is_new = *present != state;
        if is_new && let EngineState::Disconnected { reason } = &state {
            warn!("no connection to the cluster's engine: {reason}");
        }
        let before = std::mem::replace(present, state);
        is_new || before.session().is_some()
    });
}

/// A checked connection.
struct Opened {
    client: Client,
    jetstream: Context,
    ended: CancellationToken,
    /// Differs between buckets of the same name.
    identity: String,
    last_revision: u64,
    payload_max: usize,
}

async fn open(shared: &Shared, address: &str) -> Result<Opened, String> {
    let ended = CancellationToken::new();
    let client = shared.options.connect(address, ended.clone()).await?;
    version::check(&client.server_info().version).map_err(|it| format!("the NATS server {address} {it}"))?;
    let jetstream = ContextBuilder::new().timeout(REQUEST_TIMEOUT).build(client.clone());
    let mut infos = BTreeMap::new();
    for kind in StreamKind::ALL {
        let info = streams::ensure(&jetstream, kind, shared.options.servers.len()).await?;
        infos.insert(kind, info);
    }
    let records = &infos[&StreamKind::Records];
    Ok(Opened {
        identity: streams::identity(records),
        last_revision: records.state.last_sequence,
        payload_max: client.max_payload().saturating_sub(HEADER_BYTES),
        client,
        jetstream,
        ended,
    })
}

/// Reads something in a session, and reports it as events.
pub(super) trait SessionReader {
    type Event: Send;

    /// Returns `Ok` once nobody receives the events, or nothing more can be read in any session.
    fn read(
        &mut self,
        live: &Live,
        events: &mpsc::Sender<Self::Event>,
    ) -> impl Future<Output = Result<(), String>> + Send;
}

/// Runs a reader in one session after another. Its error ends the session.
pub(super) async fn read_in_each_session<R: SessionReader>(
    mut reader: R,
    shared: Arc<Shared>,
    events: mpsc::Sender<R::Event>,
) {
    let mut last = 0;
    loop {
        let live = tokio::select! {
            live = shared.next_live(last) => live,
            () = events.closed() => return,
        };
        last = live.session.number;
        tokio::select! {
            result = reader.read(&live, &events) => match result {
                Ok(()) => return,
                Err(reason) => live.end(&reason),
            },
            () = live.ended.cancelled() => {}
            () = events.closed() => return,
        }
    }
}
