//! Who is started in which order, who supervises whom, what restarts with what. The only file that knows this list.
//!
//! ```text
//! System (root)
//! ├── Events
//! ├── Slots          grants before: queue and policy in front of the SlotTable
//! ├── Bandwidth      measures during
//! ├── Channels       parent only
//! │   └── LiveChannel ── Client
//! ├── Switchboard    its table is rebuilt from the ChannelTable
//! └── Importer       refreshes playlists; what runs ends with it
//! ```
//!
//! One for one: whoever dies restarts alone and no viewer notices, because what must agree with reality (leases,
//! meters, the table of channels, the events of the recent past) is not in the actor but owned by the system.
//! Channels is the exception: live channels end with it. Who dies again and again is started once a second.
//!
//! Beside them runs the follower of the store, which begins anew when it dies.

#[cfg(test)]
mod deaths;
#[cfg(any(test, feature = "testing"))]
mod hooks;
mod root;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod tests;

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::settings::{Settings, SettingsError};
use media::closer::Closer;
use media::dial::Dial;
use media::ring::{Budget, EndReason};
use media::source::{SourceSettings, Upstream};
use ractor::{ActorCell, ActorRef, SpawnErr};
use storage::Models;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tracing::info;

use self::root::{Restart, Root};
use crate::ask::Address;
use crate::channel::{self, LiveEnv};
use crate::channels::{self, ChannelTable};
use crate::events::{self, Bus, Events};
use crate::fetch::Fetch;
use crate::importer::{self, Importer, Imports, RefreshProgress};
use crate::plans::Plans;
use crate::registry::{MetricsSnapshot, Registry};
use crate::reload::{self, LiveSettings};
use crate::seats::SeatTable;
use crate::slots::{self, LeaseInfo, SlotTable, Slots};
use crate::switchboard::{self, Switchboard};
use crate::tasks::{self, RespawnedTask};
use crate::timeline::Timelines;
use crate::trials::Trials;
use crate::{bandwidth, memory};

/// How long live channels have to say farewell to their clients when the system stops.
const CHANNELS_DEADLINE: Duration = Duration::from_secs(5);

/// How long the sockets upstream have to close after that.
const CLOSER_DEADLINE: Duration = Duration::from_secs(2);

/// How long an actor has to handle what it was told before it is ended with the root.
const ACTOR_DEADLINE: Duration = Duration::from_secs(1);

/// The share of memory all rings may hold together when nothing is configured.
const RING_MEMORY_SHARE: u64 = 4;

/// The bound of all rings together where it is not known how much memory there is.
const RING_BYTES_FALLBACK: u64 = 1 << 30;

/// What a system needs from outside.
pub struct SystemParts {
    /// How upstreams are connected to.
    pub dial: Arc<dyn Dial>,
    /// The runtime that carries packets: openers, pumps and the closer run there.
    pub packets: Handle,
}

/// Why a system did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings contradict each other.
    #[error("check the settings")]
    Settings(#[source] SettingsError),
    /// An actor did not start.
    #[error("start an actor")]
    Actor(#[source] SpawnErr),
}

/// What outlives every actor.
#[derive(Clone)]
struct SystemState {
    env: Arc<LiveEnv>,
    slot_table: Arc<SlotTable>,
    seat_table: Arc<SeatTable>,
    channel_table: Arc<ChannelTable>,
    bus: Arc<Bus>,
    counter: Arc<AtomicU64>,
    imports: Arc<OnceLock<Imports>>,
    refresh_progress: Arc<RefreshProgress>,
    /// Cancelled when the system stops: what is imported or tried ends at once, and nobody is started again.
    stop: CancellationToken,
    trials: Trials,
    addresses: Addresses,
}

#[derive(Clone)]
struct Addresses {
    events: Address<events::Message>,
    slots: Address<slots::Message>,
    bandwidth: Address<bandwidth::Message>,
    channels: Address<()>,
    switchboard: Address<switchboard::Message>,
    importer: Address<importer::Message>,
}

impl Addresses {
    /// Who lives behind the door of `who` now.
    fn of(&self, who: SystemActor) -> Option<ActorCell> {
        match who {
            SystemActor::Events => self.events.current().map(|it| it.get_cell()),
            SystemActor::Slots => self.slots.current().map(|it| it.get_cell()),
            SystemActor::Bandwidth => self.bandwidth.current().map(|it| it.get_cell()),
            SystemActor::Channels => self.channels.current().map(|it| it.get_cell()),
            SystemActor::Switchboard => self.switchboard.current().map(|it| it.get_cell()),
            SystemActor::Importer => self.importer.current().map(|it| it.get_cell()),
        }
    }
}

/// Everything that happens now, as one value. A process may have several.
pub struct System {
    state: SystemState,
    closer: Closer,
    root: ActorRef<Restart>,
    root_task: parking_lot::Mutex<Option<JoinHandle<()>>>,
    /// What follows the store, if anything does; ends with the system.
    follower: parking_lot::Mutex<Option<RespawnedTask>>,
    /// Whoever counts next, panics.
    #[cfg(any(test, feature = "testing"))]
    count_fails: std::sync::atomic::AtomicBool,
}

impl System {
    /// Starts the actors on the current runtime.
    ///
    /// # Errors
    /// When the settings contradict each other.
    pub async fn start(
        settings: Settings,
        plans: Arc<dyn Plans>,
        parts: SystemParts,
    ) -> Result<Self, StartError> {
        settings.check().map_err(StartError::Settings)?;
        let addresses = Addresses {
            events: Address::new(),
            slots: Address::new(),
            bandwidth: Address::new(),
            channels: Address::new(),
            switchboard: Address::new(),
            importer: Address::new(),
        };
        let closer = Closer::new(parts.packets.clone());
        let bus = Bus::new();
        let slot_table = SlotTable::new();
        let upstream = Upstream {
            dial: parts.dial,
            closer: closer.clone(),
            // The time-outs are looked up at each opening.
            settings: SourceSettings::default(),
        };
        let ring_bytes = settings.ring_budget_bytes.unwrap_or_else(|| {
            memory::usable_bytes().map_or(RING_BYTES_FALLBACK, |it| it / RING_MEMORY_SHARE)
        });
        let env = Arc::new(LiveEnv {
            plans,
            packets: parts.packets,
            upstream,
            budget: Budget::new(usize::try_from(ring_bytes).unwrap_or(usize::MAX)),
            slots: Slots::new(addresses.slots.clone(), slot_table.clone()),
            events: Events::new(addresses.events.clone(), bus.clone()),
            registry: Arc::new(Registry::default()),
            next_client: AtomicU64::new(1),
            timelines: Arc::new(Timelines::default()),
            settings: LiveSettings::new(settings),
        });
        let (counter, stop) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        let state = SystemState {
            trials: Trials::new(env.clone(), counter.clone(), stop.child_token()),
            env,
            slot_table,
            seat_table: SeatTable::new(),
            channel_table: Arc::new(ChannelTable::default()),
            bus,
            counter,
            imports: Arc::new(OnceLock::new()),
            refresh_progress: Arc::new(RefreshProgress::default()),
            stop,
            addresses,
        };
        let (root, root_task) =
            ractor::Actor::spawn(None, Root, state.clone()).await.map_err(StartError::Actor)?;
        let root_task = parking_lot::Mutex::new(Some(root_task));
        Ok(Self {
            state,
            closer,
            root,
            root_task,
            follower: parking_lot::Mutex::new(None),
            #[cfg(any(test, feature = "testing"))]
            count_fails: Default::default(),
        })
    }

    /// The door to live channels.
    pub fn switchboard(&self) -> Switchboard {
        let state = &self.state;
        Switchboard::new(state.addresses.switchboard.clone(), state.env.clone(), state.seat_table.clone())
    }

    /// The door to refreshes of playlists. Nothing is refreshed before [`System::import_into`].
    pub fn importer(&self) -> Importer {
        Importer::new(self.state.addresses.importer.clone(), self.state.refresh_progress.clone())
    }

    /// From now on the playlists of these accounts are refreshed, by schedule and by wish. Once; a later call does
    /// nothing.
    pub fn import_into(&self, models: Models, fetch: Fetch) {
        self.set_imports(Imports::of(models, fetch));
    }

    pub(crate) fn set_imports(&self, imports: Imports) {
        // The second time.
        let _ = self.state.imports.set(imports);
    }

    /// The door to trials of stream profiles.
    pub fn trials(&self) -> Trials {
        self.state.trials.clone()
    }

    /// The bus of events.
    pub fn events(&self) -> Events {
        self.state.env.events.clone()
    }

    /// The plans live channels play from.
    pub fn plans(&self) -> &Arc<dyn Plans> {
        &self.state.env.plans
    }

    /// The settings the engine runs with.
    pub fn settings(&self) -> Arc<Settings> {
        self.state.env.settings()
    }

    /// The same for who asks again and again; it does not keep the system alive.
    pub fn live_settings(&self) -> LiveSettings {
        self.state.env.settings.clone()
    }

    /// From now on plans and settings follow what is committed: live channels read theirs again, and core settings
    /// lie over `base`, which is what file, environment and arguments say. Runs on the current runtime until the
    /// system ends; a second call takes the place of the first.
    pub fn follow(&self, models: Models, base: Settings) {
        let (live, switchboard) = (self.live_settings(), self.switchboard());
        let following = tasks::respawn("the follower of the store", move || {
            reload::follow(models.clone(), base.clone(), live.clone(), switchboard.clone())
        });
        *self.follower.lock() = Some(following);
    }

    /// Changes the settings. What plays goes on; waits that begin from now on, and channels that start, follow them.
    ///
    /// # Errors
    /// When they contradict each other; nothing has changed then.
    pub fn configure(&self, settings: Settings) -> Result<(), SettingsError> {
        self.state.env.settings.set(settings)
    }

    /// One reading of everything that is counted.
    pub fn counts(&self) -> MetricsSnapshot {
        #[cfg(any(test, feature = "testing"))]
        self.fail_if_asked();
        let (leases, leases_closing) = self.state.slot_table.counts();
        let sockets_open = self.closer.n_sockets();
        let seats = self.state.seat_table.len();
        MetricsSnapshot { leases, leases_closing, sockets_open, seats, ..self.state.env.registry.counts() }
    }

    /// Every lease as it stands.
    pub fn leases(&self) -> Vec<LeaseInfo> {
        self.state.slot_table.leases()
    }

    /// Ends every live channel, lets their clients take their last chunks and the sockets close, then ends the actors.
    /// Answers whether everything ended by itself within its deadline. A second call does nothing.
    pub async fn stop(&self) -> bool {
        self.state.stop.cancel();
        self.follower.lock().take();
        self.switchboard().close();
        // Should the switchboard be dead just now.
        for (_, live) in self.state.channel_table.all() {
            let _ = live.actor.cast(channel::Message::Stop(EndReason::Stopped));
        }
        let channels =
            tokio::time::timeout(CHANNELS_DEADLINE, self.state.channel_table.emptied()).await.is_ok();
        self.state.trials.ended().await;
        let sockets = tokio::time::timeout(CLOSER_DEADLINE, self.closer.idle()).await.is_ok();
        // In the reverse order of their start, each with what it was told: nothing that happened goes untold.
        for who in CHILDREN.iter().rev() {
            if let Some(actor) = self.state.addresses.of(*who) {
                // One that does not end in time ends with the root.
                let _ = actor.drain_and_wait(Some(ACTOR_DEADLINE)).await;
            }
        }
        self.root.stop(None);
        let task = self.root_task.lock().take();
        if let Some(task) = task {
            // The root ends with its children; how it ended was logged where it happened.
            let _ = task.await;
        }
        info!(clean = channels && sockets, "engine stopped");
        channels && sockets
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // Dropping the last reference ends no actor; a system that was not stopped is ended here.
        self.state.stop.cancel();
        self.root.stop(None);
    }
}

/// The children of the root.
#[cfg_attr(not(any(test, feature = "testing")), expect(unreachable_pub, reason = "tests see it"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemActor {
    /// Passes on what happened.
    Events,
    /// The queue in front of the slots.
    Slots,
    /// Measures.
    Bandwidth,
    /// The parent of live channels.
    Channels,
    /// Finds or starts live channels.
    Switchboard,
    /// Refreshes playlists.
    Importer,
}

/// In the order of their start.
const CHILDREN: [SystemActor; 6] = [
    SystemActor::Events,
    SystemActor::Slots,
    SystemActor::Bandwidth,
    SystemActor::Channels,
    SystemActor::Switchboard,
    SystemActor::Importer,
];

impl SystemState {
    async fn start(&self, who: SystemActor, root: ActorCell) -> Result<ActorCell, SpawnErr> {
        let addresses = &self.addresses;
        match who {
            SystemActor::Events => {
                let arguments = events::Arguments { bus: self.bus.clone() };
                spawn(events::Actor, arguments, root, &addresses.events).await
            }
            SystemActor::Slots => {
                let arguments = slots::Arguments { table: self.slot_table.clone() };
                spawn(slots::Actor, arguments, root, &addresses.slots).await
            }
            SystemActor::Bandwidth => {
                let arguments = bandwidth::Arguments { registry: self.env.registry.clone() };
                spawn(bandwidth::Actor, arguments, root, &addresses.bandwidth).await
            }
            SystemActor::Channels => {
                // Live channels are told of as over by whoever started them.
                spawn(channels::Actor, (), root, &addresses.channels).await
            }
            SystemActor::Switchboard => {
                let arguments = switchboard::Arguments {
                    env: self.env.clone(),
                    table: self.channel_table.clone(),
                    slots: self.slot_table.clone(),
                    channels: addresses.channels.clone(),
                    address: addresses.switchboard.clone(),
                    counter: self.counter.clone(),
                };
                spawn(switchboard::Actor, arguments, root, &addresses.switchboard).await
            }
            SystemActor::Importer => {
                let arguments = importer::Arguments {
                    imports: self.imports.clone(),
                    progress: self.refresh_progress.clone(),
                    events: self.env.events.clone(),
                    stop: self.stop.child_token(),
                };
                spawn(importer::Actor, arguments, root, &addresses.importer).await
            }
        }
    }
}

async fn spawn<A: ractor::Actor>(
    actor: A,
    arguments: A::Arguments,
    root: ActorCell,
    address: &Address<A::Msg>,
) -> Result<ActorCell, SpawnErr> {
    let (actor, _) = ractor::Actor::spawn_linked(None, actor, arguments, root).await?;
    address.set(actor.clone());
    Ok(actor.get_cell())
}
