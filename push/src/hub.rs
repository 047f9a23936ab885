//! The hub: one task builds all frames while at least one session listens.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use actors::{
    ChannelStatus, DetailsUpdate, EpisodeLoad, GuidePhase, GuideRefreshStatus, IntegrationStatus,
    PluginNotification, RefreshPhase, RefreshStatus, ReportedPosition, Target, VodPhase, VodRefreshStatus,
    VodSessionInfo, now_ms,
};
use domain::event::{Event, EventBody};
use domain::ids::{AccountId, GuideSourceId};
use domain::recording::{Recording, RecordingStatus};
use node::overview;
use node::status::WantedClients;
use parking_lot::Mutex;
use services::matching::MatchReport;
use storage::{ChangeMessage, ChangedIds, Changes, Record, Table};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use super::frames::{self, Notification, RecordingCounts};
use super::other_nodes;
use super::statistics::{ClientsOf, Statistics, StatisticsReader};
use crate::context::PushContext;

/// Interval of the statistics.
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of recordings that are named one by one after a commit.
const RECORDINGS_NAMED_MAX: usize = 20;
/// Notifications that a slow socket may lag behind before it loses the oldest.
const LAG_MAX: usize = 256;

/// The newest statistics; `None` before the first reading.
type Newest = Option<Arc<Statistics>>;

/// Distributes frames to sessions. Clones share one task.
#[derive(Clone)]
pub(super) struct Hub(Arc<Inner>);

struct Inner {
    context: Arc<PushContext>,
    /// The task, which runs while a listener holds it.
    running: Mutex<Weak<Running>>,
}

struct Running {
    wanted: Arc<Wanted>,
    /// Weak, so that the only sender is dropped with the task and closes the channel for its listeners.
    notifications: broadcast::WeakSender<Arc<Notification>>,
    statistics: watch::Receiver<Newest>,
    _task: AbortOnDropHandle<()>,
}

/// The subscription of one session.
pub(super) struct Listener {
    notifications: broadcast::Receiver<Arc<Notification>>,
    statistics: watch::Receiver<Newest>,
    /// The number of this listener in [`Wanted`].
    id: u64,
    running: Arc<Running>,
}

/// The clients that each listener wants to see. Bounded by the listeners.
#[derive(Default)]
struct Wanted(Mutex<(u64, HashMap<u64, ClientsOf>)>);

impl Wanted {
    fn add(&self) -> u64 {
        let (last, of) = &mut *self.0.lock();
        *last += 1;
        of.insert(*last, ClientsOf::None);
        *last
    }

    /// Returns the clients that somebody wants.
    fn all(&self) -> WantedClients {
        let mut channels = BTreeSet::new();
        for wanted in self.0.lock().1.values() {
            match wanted {
                ClientsOf::All => return WantedClients::All,
                ClientsOf::Channel(uuid) => drop(channels.insert(*uuid)),
                ClientsOf::None => {}
            }
        }
        WantedClients::Of(channels)
    }
}

/// An item of a subscription.
pub(super) enum HubMessage {
    Notification(Arc<Notification>),
    Statistics(Arc<Statistics>),
    /// The listener was too slow and lost this many notifications.
    Missed(u64),
    /// The hub has ended.
    Closed,
}

impl Hub {
    pub(super) fn new(context: Arc<PushContext>) -> Self {
        Self(Arc::new(Inner { context, running: Mutex::default() }))
    }

    /// Subscribes. The first listener starts the task, on the current runtime.
    pub(super) fn listen(&self) -> Listener {
        let mut running = self.0.running.lock();
        let joined = running.upgrade().and_then(|it| Some((it.notifications.upgrade()?.subscribe(), it)));
        let (notifications, now) = joined.unwrap_or_else(|| {
            let (notifications, now) = start(Arc::clone(&self.0.context));
            *running = Arc::downgrade(&now);
            (notifications, now)
        });
        let mut statistics = now.statistics.clone();
        // A new listener gets the current statistics at once.
        statistics.mark_changed();
        Listener { notifications, statistics, id: now.wanted.add(), running: now }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.running.wanted.0.lock().1.remove(&self.id);
    }
}

impl Listener {
    /// Sets the channels whose clients this listener needs, from the next statistics on. At first, it needs none.
    pub(super) fn wants(&self, clients: ClientsOf) {
        self.running.wanted.0.lock().1.insert(self.id, clients);
    }

    /// Returns the next item, preferring notifications. Cancel-safe.
    pub(super) async fn next(&mut self) -> HubMessage {
        loop {
            tokio::select! {
                biased;
                received = self.notifications.recv() => return match received {
                    Ok(notification) => HubMessage::Notification(notification),
                    Err(RecvError::Lagged(count)) => HubMessage::Missed(count),
                    Err(RecvError::Closed) => HubMessage::Closed,
                },
                changed = self.statistics.changed() => {
                    if changed.is_err() {
                        return HubMessage::Closed;
                    }
                    let newest = self.statistics.borrow_and_update().clone();
                    if let Some(statistics) = newest {
                        return HubMessage::Statistics(statistics);
                    }
                }
            }
        }
    }
}

/// Subscribes to events and changes before the task first runs, so that none is missed in between.
fn start(context: Arc<PushContext>) -> (broadcast::Receiver<Arc<Notification>>, Arc<Running>) {
    let (sender, receiver) = broadcast::channel(LAG_MAX);
    let (newest, statistics) = watch::channel(None);
    let feeds = Feeds {
        events: context.events.subscribe(),
        changes: context.models.store.changes(),
        matching: context.matching.subscribe(),
        plugins: context.plugin_processes.subscribe(),
        integrations: context.integrations.statuses(),
        refreshes: Refreshes::begin(&context),
        known: KnownRecordings(context.models.recordings.load()),
    };
    let notifications = sender.downgrade();
    let wanted = Arc::new(Wanted::default());
    let of_task = Arc::clone(&wanted);
    let task = actors::spawn(async move {
        let _panic_log = PanicLog;
        let measuring = measure(&context, &newest, &of_task);
        tokio::join!(
            measuring,
            watch_sessions(&context, &sender),
            other_nodes::watch_refreshes(&context, &sender),
            watch_recordings(&context, &sender),
            forward(&context, feeds, &sender)
        );
    });
    (receiver, Arc::new(Running { wanted, notifications, statistics, _task: AbortOnDropHandle::new(task) }))
}

/// Logs a panic of the task. Its listeners are closed, and the next listener starts a new task.
struct PanicLog;

impl Drop for PanicLog {
    fn drop(&mut self) {
        if std::thread::panicking() {
            error!(
                "the WebSocket hub panicked; its sockets are closed, and the next socket starts a new hub"
            );
        }
    }
}

async fn measure(context: &PushContext, newest: &watch::Sender<Newest>, wanted: &Wanted) {
    let mut reader = StatisticsReader::new(context.views.channel);
    let mut ticks = every_period();
    loop {
        ticks.tick().await;
        let statuses = live(context, &wanted.all()).await;
        let totals = overview::totals(&context.nodes).await;
        let table = context.models.channels.load();
        let statistics = reader.read(statuses, &totals, &table, Instant::now(), now_ms());
        newest.send_replace(Some(Arc::new(statistics)));
    }
}

/// Returns the status of all live channels, those of other nodes included. One that does not answer in time is left out.
async fn live(context: &PushContext, clients: &WantedClients) -> Vec<(Target, ChannelStatus)> {
    let overview = overview::overview(&context.nodes, clients).await.unwrap_or_default();
    overview.into_iter().filter_map(|it| it.status.map(|status| (it.target, status))).collect()
}

/// The inputs of the frames.
struct Feeds {
    events: broadcast::Receiver<Arc<Event>>,
    changes: Changes,
    matching: broadcast::Receiver<MatchReport>,
    plugins: broadcast::Receiver<PluginNotification>,
    integrations: Vec<IntegrationStatus>,
    refreshes: Refreshes,
    known: KnownRecordings,
}

async fn forward(context: &PushContext, feeds: Feeds, sender: &broadcast::Sender<Arc<Notification>>) {
    let Feeds {
        mut events,
        mut changes,
        mut matching,
        mut plugins,
        mut integrations,
        mut refreshes,
        mut known,
    } = feeds;
    // An error only means that there is no listener.
    let send = |notification: Arc<Notification>| drop(sender.send(notification));
    let mut ticks = every_period();
    let mut is_open = true;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(event) => {
                    if matches!(event.body, EventBody::M3uRefresh { .. } | EventBody::EpgRefresh { .. }) {
                        refreshes.send_changes(context, send);
                    }
                    frames::event(&event).into_iter().for_each(send);
                }
                Err(RecvError::Lagged(count)) => send(frames::lost(count)),
                Err(RecvError::Closed) => return,
            },
            message = changes.next(), if is_open => match message {
                ChangeMessage::Changed(change) => {
                    frames::changed(&change).into_iter().for_each(send);
                    frames::notices_changed(&change).into_iter().for_each(send);
                    if let Some(ids) = change.ids(Recording::COLLECTION) {
                        known.changed(context, Some(ids)).into_iter().for_each(send);
                    }
                }
                ChangeMessage::Lagged => {
                    send(frames::changed_unknown());
                    known.changed(context, None).into_iter().for_each(send);
                }
                ChangeMessage::Closed => is_open = false,
            },
            _ = ticks.tick() => {
                refreshes.send_changes(context, send);
                send_integrations(context, &mut integrations, send);
            }
            happened = plugins.recv() => match happened {
                Ok(happened) => send(frames::plugin(&happened)),
                Err(RecvError::Lagged(count)) => send(frames::lost(count)),
                Err(RecvError::Closed) => return,
            },
            report = matching.recv() => match report {
                Ok(report) => frames::matching(&report).into_iter().for_each(send),
                // Reports of progress; the next one has the later numbers.
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return,
            },
        }
    }
}

/// The progress that was sent last, one row per account and per guide source.
struct Refreshes {
    playlists: HashMap<AccountId, RefreshStatus>,
    guides: HashMap<GuideSourceId, GuideRefreshStatus>,
    vod: HashMap<AccountId, VodRefreshStatus>,
    episodes: HashMap<AccountId, EpisodeLoad>,
    details: Vec<DetailsUpdate>,
}

impl Refreshes {
    /// Skips finished refreshes; running ones are sent at the first call of `send_changes`.
    fn begin(context: &PushContext) -> Self {
        let playlists = context.importer.progress().into_iter().filter(|it| it.phase == RefreshPhase::Done);
        let guides = context.guide_refreshes.progress().into_iter().filter(|it| it.phase == GuidePhase::Done);
        Self {
            playlists: playlists.map(|it| (it.account, it)).collect(),
            guides: guides.map(|it| (it.source, it)).collect(),
            vod: context
                .vod_importer
                .progress()
                .into_iter()
                .filter(|it| it.phase == VodPhase::Done)
                .map(|it| (it.account, it))
                .collect(),
            episodes: HashMap::new(),
            details: context.vod_importer.updates().into_iter().filter(DetailsUpdate::is_done).collect(),
        }
    }

    /// Sends the rows that have changed.
    fn send_changes(&mut self, context: &PushContext, send: impl Fn(Arc<Notification>)) {
        let now = now_ms();
        let playlists = context.importer.progress();
        for row in playlists.iter().filter(|it| self.playlists.get(&it.account) != Some(it)) {
            send(Notification::for_admins(frames::refresh(row, now)));
        }
        self.playlists = playlists.into_iter().map(|it| (it.account, it)).collect();
        let guides = context.guide_refreshes.progress();
        for row in guides.iter().filter(|it| self.guides.get(&it.source) != Some(it)) {
            send(Notification::for_admins(frames::guide_refresh(row, now)));
        }
        self.guides = guides.into_iter().map(|it| (it.source, it)).collect();
        let vod = context.vod_importer.progress();
        for row in vod.iter().filter(|it| self.vod.get(&it.account) != Some(it)) {
            send(Notification::for_admins(frames::vod_refresh(row, now)));
        }
        self.vod = vod.into_iter().map(|it| (it.account, it)).collect();
        let episodes = context.vod_importer.episode_loads();
        for load in episodes.iter().filter(|it| self.episodes.get(&it.account) != Some(it)) {
            send(frames::episode_load(load));
        }
        // The last frame of a load says that none is left.
        for (account, load) in &self.episodes {
            if !episodes.iter().any(|it| it.account == *account) {
                let n_done = load.n_done + load.n_left;
                send(frames::episode_load(&EpisodeLoad { n_done, n_left: 0, ..*load }));
            }
        }
        self.episodes = episodes.into_iter().map(|it| (it.account, it)).collect();
        let details = context.vod_importer.updates();
        for update in details.iter().filter(|it| !self.details.contains(it)) {
            send(frames::details_update(update));
        }
        self.details = details;
    }
}

/// Sends the statistics of films and of the past of channels while something is being watched, and once after the last viewer
/// has left. Besides the notifications, because other nodes may be slow to answer.
async fn watch_sessions(context: &PushContext, sender: &broadcast::Sender<Arc<Notification>>) {
    let (mut films, mut past) = (Sessions::default(), Sessions::default());
    let mut ticks = every_period();
    loop {
        ticks.tick().await;
        // An error only means that there is no listener.
        let watched = overview::films(&context.nodes).await;
        if films.note(&watched)
            && let Some(stats) = (context.views.films)(&context.models, &watched)
        {
            drop(sender.send(frames::vod_stats(&stats)));
        }
        let watched = overview::past(&context.nodes).await;
        if past.note(&watched)
            && let Some(stats) = (context.views.past)(&context.models, &watched)
        {
            drop(sender.send(frames::timeshift_stats(&stats)));
        }
    }
}

/// The sessions that were sent last.
#[derive(Default)]
struct Sessions(Vec<SentSession>);

/// The parts of a session whose change makes it be sent again.
#[derive(PartialEq)]
struct SentSession {
    id: u64,
    bytes_sent: u64,
    n_requests: usize,
    programme_start: Option<i64>,
    reported: Option<ReportedPosition>,
}

impl Sessions {
    /// Notes the sessions. Returns whether they have changed.
    fn note(&mut self, sessions: &[VodSessionInfo]) -> bool {
        let sent = |it: &VodSessionInfo| SentSession {
            id: it.id,
            bytes_sent: it.bytes_sent,
            n_requests: it.n_requests,
            programme_start: it.programme_start,
            reported: it.reported,
        };
        let now: Vec<_> = sessions.iter().map(sent).collect();
        let has_changed = now != self.0;
        self.0 = now;
        has_changed
    }
}

/// The recordings as the last notifications described them.
struct KnownRecordings(Arc<Table<Recording>>);

impl KnownRecordings {
    /// Returns the notifications of what has changed since: one by one if these few records may have changed.
    fn changed(&mut self, context: &PushContext, ids: Option<&ChangedIds>) -> Vec<Arc<Notification>> {
        let after = context.models.recordings.load();
        let before = std::mem::replace(&mut self.0, after.clone());
        if let Some(ChangedIds::Few(ids)) = ids
            && ids.len() <= RECORDINGS_NAMED_MAX
        {
            let of = |id: &u32| {
                let record = |it: &Arc<Table<Recording>>| it.get(*id).cloned();
                frames::recording_changed(record(&before).as_deref(), record(&after).as_deref())
            };
            return ids.iter().flat_map(of).collect();
        }
        let mut counts = RecordingCounts::default();
        let place = |it: &Recording| (it.channel, it.start, it.end, it.padding_before, it.padding_after);
        for it in after.iter() {
            match before.get(it.id.0) {
                None => counts.scheduled += 1,
                Some(other) if place(other) != place(it) => counts.rescheduled += 1,
                Some(_) => {}
            }
        }
        counts.removed = before.iter().filter(|it| after.get(it.id.0).is_none()).count();
        vec![frames::recordings_refreshed(counts)]
    }
}

/// Sends the sizes of the files of recordings that run, on whichever node, when one has changed or a recording has begun.
async fn watch_recordings(context: &PushContext, sender: &broadcast::Sender<Arc<Notification>>) {
    let mut sent = Vec::new();
    let mut ticks = every_period();
    loop {
        ticks.tick().await;
        let recordings = context.models.recordings.load();
        let running: Vec<_> =
            recordings.iter().filter(|it| it.status == RecordingStatus::Recording).cloned().collect();
        let sizes = match running.is_empty() {
            // Nobody is asked for nothing.
            true => BTreeMap::new(),
            false => overview::recordings(&context.nodes).await,
        };
        let size = |it: &Arc<Recording>| Some((it.id, it.owner, *sizes.get(&it.id)?));
        let now: Vec<_> = running.iter().filter_map(size).collect();
        if now != sent && !now.is_empty() {
            // An error only means that there is no listener.
            let _ = sender.send(frames::recording_progress(&now));
        }
        sent = now;
    }
}

/// Sends the integrations whose state has changed since the last time. Those that were deleted are reported as changed
/// records.
fn send_integrations(
    context: &PushContext,
    sent: &mut Vec<IntegrationStatus>,
    send: impl Fn(Arc<Notification>),
) {
    let now = context.integrations.statuses();
    // Running attempts change many times a second, and nothing shows them.
    let is_same = |a: &IntegrationStatus, b: &IntegrationStatus| {
        IntegrationStatus { n_running: 0, ..a.clone() } == IntegrationStatus { n_running: 0, ..b.clone() }
    };
    for status in now.iter().filter(|it| !sent.iter().any(|other| is_same(it, other))) {
        send(frames::integration_state(status));
    }
    *sent = now;
}

pub(super) fn every_period() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
