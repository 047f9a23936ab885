//! Channels that are also sent as datagrams, to set-top boxes or multicast groups.
//!
//! The keeper starts a run for each channel with an output that is wanted now. A run reads the live channel as a viewer
//! without a login does: it takes no seat, counts as one viewer where connections are short, and survives failover.
//!
//! ```text
//!  channels, viewers ─► keeper ─► run ─► switchboard ─► ring of the live channel
//!                                  └► schedule ─► socket
//! ```

mod run;
#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::udp_output::{UdpOutput, UdpOutputMode};
use parking_lot::Mutex;
use storage::Models;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::warn;
use uuid::Uuid;

use crate::channel::RecordingReader;
use crate::plans::Target;
use crate::switchboard::Switchboard;
use crate::tasks::{self, RespawnedTask};

/// How often channels and viewers are looked at.
const LOOK_PERIOD: Duration = Duration::from_secs(1);
/// A channel that is sent while it is watched is sent this long after its last viewer.
const LINGER: Duration = Duration::from_secs(3);
/// Maximum wait for runs to end.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of channels that are sent at the same time.
pub(crate) const OUTPUTS_MAX: usize = 256;

/// The present state of the output of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UdpOutputState {
    /// The channel has no output or is disabled, or nobody watches it and the output waits for that.
    Idle,
    /// The output waits for the channel to play.
    Starting,
    /// The channel is sent.
    Sending,
    /// Nothing can be sent, for this reason.
    Failing(String),
}

/// The handle for the outputs of channels, shared between clones.
#[derive(Clone)]
pub struct UdpOutputs {
    shared: Arc<Shared>,
}

struct Shared {
    switchboard: Switchboard,
    packets: tokio::runtime::Handle,
    models: OnceLock<Models>,
    /// By the UUID of the channel; at most [`OUTPUTS_MAX`].
    running: Mutex<HashMap<Uuid, Running>>,
    runs: TaskTracker,
    stop: CancellationToken,
    keeper: Mutex<Option<RespawnedTask>>,
}

struct Running {
    output: UdpOutput,
    stop: CancellationToken,
    /// When the output was last found to be wanted.
    wanted_at: Instant,
    /// The present state of the run.
    state: Arc<Mutex<UdpOutputState>>,
}

impl UdpOutputs {
    pub(crate) fn new(
        switchboard: Switchboard,
        packets: tokio::runtime::Handle,
        stop: CancellationToken,
    ) -> Self {
        let shared = Shared {
            switchboard,
            packets,
            models: OnceLock::new(),
            running: Mutex::default(),
            runs: TaskTracker::new(),
            stop,
            keeper: Mutex::default(),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Starts to send the channels of a store that have an output. Only the first call has an effect.
    pub(crate) fn start(&self, models: Models) {
        if self.shared.models.set(models).is_err() {
            return;
        }
        let shared = Arc::downgrade(&self.shared);
        let task = tasks::respawn("the keeper of outputs", move || {
            let shared = shared.upgrade();
            async move {
                if let Some(shared) = shared {
                    shared.keep().await;
                }
            }
        });
        *self.shared.keeper.lock() = Some(task);
    }

    /// Returns what the output of a channel does at present.
    pub fn state(&self, channel: Uuid) -> UdpOutputState {
        let running = self.shared.running.lock();
        running.get(&channel).map_or(UdpOutputState::Idle, |it| it.state.lock().clone())
    }

    /// Waits until nothing is sent, after the system was told to stop.
    pub(crate) async fn ended(&self) {
        self.shared.keeper.lock().take();
        self.shared.runs.close();
        // A run that does not end in time ends with the runtime.
        let _ = timeout(END_TIMEOUT, self.shared.runs.wait()).await;
    }
}

impl Shared {
    async fn keep(self: Arc<Self>) {
        let Some(models) = self.models.get() else { return };
        let mut has_too_many = false;
        loop {
            let channels = models.channels.load();
            let all = channels.iter().filter(|it| it.enabled);
            let mut all: Vec<_> =
                all.filter_map(|it| Some((it.id, it.uuid, it.udp_output.as_deref()?.clone()))).collect();
            all.sort_by_key(|it| it.0);
            let has_more = all.len() > OUTPUTS_MAX;
            if has_more && !std::mem::replace(&mut has_too_many, has_more) {
                warn!("only the first {OUTPUTS_MAX} channels with an output are sent");
            }
            has_too_many = has_more;
            let outputs: HashMap<Uuid, UdpOutput> =
                all.into_iter().take(OUTPUTS_MAX).map(|it| (it.1, it.2)).collect();
            let watched = match outputs.values().any(|it| it.mode == UdpOutputMode::Watched) {
                true => self.watched().await,
                false => HashSet::new(),
            };
            self.apply(&outputs, &watched);
            tokio::select! {
                () = sleep(LOOK_PERIOD) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Returns the channels that somebody else watches now.
    async fn watched(&self) -> HashSet<Uuid> {
        let overview = self.switchboard.overview().await.unwrap_or_default();
        let is_watched = |it: &crate::ChannelOverview| {
            let clients = it.status.iter().flat_map(|it| &it.clients);
            clients.into_iter().any(|it| it.datagrams.is_none() && !RecordingReader::is_agent(&it.agent))
        };
        let watched = overview.into_iter().filter(is_watched);
        watched
            .filter_map(|it| if let Target::Channel(uuid) = it.target { Some(uuid) } else { None })
            .collect()
    }

    /// Starts and stops runs.
    fn apply(self: &Arc<Self>, outputs: &HashMap<Uuid, UdpOutput>, watched: &HashSet<Uuid>) {
        let now = Instant::now();
        let is_wanted = |uuid: &Uuid, output: &UdpOutput| match output.mode {
            UdpOutputMode::Always => true,
            UdpOutputMode::Watched => watched.contains(uuid),
        };
        let mut running = self.running.lock();
        for (uuid, run) in running.iter_mut() {
            match outputs.get(uuid) {
                Some(output) if *output != run.output => run.stop.cancel(),
                Some(output) if is_wanted(uuid, output) => run.wanted_at = now,
                Some(_) if now.duration_since(run.wanted_at) <= LINGER => {}
                _ => run.stop.cancel(),
            }
        }
        for (uuid, output) in outputs {
            if running.contains_key(uuid) || !is_wanted(uuid, output) || self.stop.is_cancelled() {
                continue;
            }
            let stop = self.stop.child_token();
            let (uuid, output) = (*uuid, output.clone());
            let state = Arc::new(Mutex::new(UdpOutputState::Starting));
            let run = Running {
                output: output.clone(),
                stop: stop.clone(),
                wanted_at: now,
                state: Arc::clone(&state),
            };
            running.insert(uuid, run);
            // Also after a panic, so that the keeper starts another run.
            let forget = Forget { shared: Arc::clone(self), uuid };
            let run = async move {
                let forget = forget;
                run::run(&forget.shared.switchboard, uuid, &output, &state, &stop).await;
            };
            self.runs.spawn_on(run, &self.packets);
        }
    }
}

/// Removes a run from the table when it ends.
struct Forget {
    shared: Arc<Shared>,
    uuid: Uuid,
}

impl Drop for Forget {
    fn drop(&mut self) {
        self.shared.running.lock().remove(&self.uuid);
    }
}
