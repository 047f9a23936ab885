//! One task makes all frames, for as long as somebody listens.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use actors::{ChannelStatus, Importer, RefreshPhase, Target, now_ms};
use domain::event::{Event, EventBody};
use domain::ids::AccountId;
use parking_lot::Mutex;
use storage::{ChangeMessage, Changes};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, MissedTickBehavior};
use tokio_util::task::AbortOnDropHandle;
use tracing::error;

use super::frames::{self, Happening};
use super::statistics::{Statistician, Statistics};
use crate::app::App;

/// How often everything is read.
const PERIOD: Duration = Duration::from_secs(1);
/// Happenings that a slow socket may be behind before it loses the oldest.
const LAG_MAX: usize = 256;

/// The newest statistics; `None` before the first.
type Newest = Option<Arc<Statistics>>;

/// Where sessions listen. Clones are the same.
#[derive(Clone)]
pub(super) struct Hub(Arc<Inner>);

struct Inner {
    app: Arc<App>,
    /// Runs while a listener holds it.
    running: Mutex<Weak<Running>>,
}

struct Running {
    /// Weak: the only sender ends with the task, and listeners hear that it did.
    happenings: broadcast::WeakSender<Arc<Happening>>,
    statistics: watch::Receiver<Newest>,
    _task: AbortOnDropHandle<()>,
}

/// What one session listens to.
pub(super) struct Listener {
    happenings: broadcast::Receiver<Arc<Happening>>,
    statistics: watch::Receiver<Newest>,
    _running: Arc<Running>,
}

/// What a listener hears.
pub(super) enum Heard {
    Happening(Arc<Happening>),
    Statistics(Arc<Statistics>),
    /// It was too slow for so many happenings.
    Missed(u64),
    /// There will be nothing more.
    Silence,
}

impl Hub {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self(Arc::new(Inner { app, running: Mutex::default() }))
    }

    /// Listens from now on. The first listener starts what all listen to, on the current runtime.
    pub(super) fn listen(&self) -> Listener {
        let mut running = self.0.running.lock();
        let joined = running.upgrade().and_then(|it| Some((it.happenings.upgrade()?.subscribe(), it)));
        let (happenings, now) = joined.unwrap_or_else(|| {
            let (happenings, now) = start(Arc::clone(&self.0.app));
            *running = Arc::downgrade(&now);
            (happenings, now)
        });
        let mut statistics = now.statistics.clone();
        // What is there already is news to whoever comes now.
        statistics.mark_changed();
        Listener { happenings, statistics, _running: now }
    }
}

impl Listener {
    /// What comes next; happenings first. Cancel-safe.
    pub(super) async fn next(&mut self) -> Heard {
        loop {
            tokio::select! {
                biased;
                heard = self.happenings.recv() => return match heard {
                    Ok(happening) => Heard::Happening(happening),
                    Err(RecvError::Lagged(count)) => Heard::Missed(count),
                    Err(RecvError::Closed) => Heard::Silence,
                },
                changed = self.statistics.changed() => {
                    if changed.is_err() {
                        return Heard::Silence;
                    }
                    let newest = self.statistics.borrow_and_update().clone();
                    if let Some(statistics) = newest {
                        return Heard::Statistics(statistics);
                    }
                }
            }
        }
    }
}

/// Subscribes at once, so that nothing is missed between now and when the task first runs.
fn start(app: Arc<App>) -> (broadcast::Receiver<Arc<Happening>>, Arc<Running>) {
    let (line, receiver) = broadcast::channel(LAG_MAX);
    let (newest, statistics) = watch::channel(None);
    let (events, changes) = (app.events.subscribe(), app.models.store.changes());
    let happenings = line.downgrade();
    let task = tokio::spawn(async move {
        let _last = LastWord;
        tokio::join!(measure(&app, &newest), tell(&app, events, changes, &line));
    });
    (receiver, Arc::new(Running { happenings, statistics, _task: AbortOnDropHandle::new(task) }))
}

/// Says so when the task ends by a defect. Its listeners hear silence, and whoever listens next starts another.
struct LastWord;

impl Drop for LastWord {
    fn drop(&mut self) {
        if std::thread::panicking() {
            error!(
                "the hub of the WebSocket panicked; its sockets are closed, and the next one starts another"
            );
        }
    }
}

async fn measure(app: &App, newest: &watch::Sender<Newest>) {
    let mut statistician = Statistician::default();
    let mut ticks = every_period();
    loop {
        ticks.tick().await;
        let statuses = live(app).await;
        let table = app.models.channels.load();
        let statistics = statistician.read(statuses, &app.counts(), &table, Instant::now(), now_ms());
        newest.send_replace(Some(Arc::new(statistics)));
    }
}

/// How all live channels are doing. One that does not answer in time is left out this time.
async fn live(app: &App) -> Vec<(Target, ChannelStatus)> {
    let overview = app.switchboard.overview().await.unwrap_or_default();
    overview.into_iter().filter_map(|it| it.status.map(|status| (it.target, status))).collect()
}

async fn tell(
    app: &App,
    mut events: broadcast::Receiver<Arc<Event>>,
    mut changes: Changes,
    line: &broadcast::Sender<Arc<Happening>>,
) {
    // Nobody listening is no error.
    let tell = |happening: Arc<Happening>| drop(line.send(happening));
    let mut refreshes = Refreshes::begin(&app.importer);
    let mut ticks = every_period();
    let mut is_open = true;
    loop {
        tokio::select! {
            event = events.recv() => match event {
                Ok(event) => {
                    if matches!(event.body, EventBody::M3uRefresh { .. }) {
                        refreshes.look(&app.importer, tell);
                    }
                    frames::event(&event).into_iter().for_each(tell);
                }
                Err(RecvError::Lagged(count)) => tell(frames::lost(count)),
                Err(RecvError::Closed) => return,
            },
            news = changes.next(), if is_open => match news {
                ChangeMessage::Changed(change) => frames::changed(&change).into_iter().for_each(tell),
                ChangeMessage::Lagged => tell(frames::changed_somehow()),
                ChangeMessage::Closed => is_open = false,
            },
            _ = ticks.tick() => refreshes.look(&app.importer, tell),
        }
    }
}

/// What was told of the refreshes last: one row per account, as the importer shows them.
struct Refreshes(HashMap<AccountId, actors::RefreshStatus>);

impl Refreshes {
    /// What is over is no news; what runs is told at the first look.
    fn begin(importer: &Importer) -> Self {
        let over = importer.progress().into_iter().filter(|it| it.phase == RefreshPhase::Done);
        Self(over.map(|it| (it.account, it)).collect())
    }

    /// Tells what is not as it was.
    fn look(&mut self, importer: &Importer, tell: impl Fn(Arc<Happening>)) {
        let (rows, now) = (importer.progress(), now_ms());
        for row in &rows {
            if self.0.get(&row.account) != Some(row) {
                tell(frames::refresh(row, now));
            }
        }
        self.0 = rows.into_iter().map(|it| (it.account, it)).collect();
    }
}

fn every_period() -> tokio::time::Interval {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ticks
}
