//! Start order and supervision of all actors. Only this module knows the list of actors.
//!
//! ```text
//! System (root)
//! ├── Events
//! ├── Slots          grants before: queue and policy in front of the SlotTable
//! ├── Bandwidth      measures during
//! ├── Channels       parent only
//! │   └── LiveChannel ── Client
//! ├── Switchboard    its table is rebuilt from the ChannelTable
//! ├── Importer       refreshes playlists; what runs ends with it
//! └── Guides         refreshes guides; what runs ends with it
//! ```
//!
//! One for one: an actor that dies is restarted alone, and no viewer notices, because the state that must agree with
//! reality (leases, meters, the table of channels, recent events) belongs to the system and not to the actor. Channels
//! is the exception: live channels end with it. An actor that dies repeatedly is restarted once a second.
//!
//! A separate task follows the store; it is restarted when it dies.

#[cfg(test)]
mod deaths;
mod drain;
#[cfg(any(test, feature = "testing"))]
mod hooks;
#[cfg(test)]
mod lease_soak;
mod root;
#[cfg(test)]
mod soak;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::cluster::client_ids::first_client;
use domain::ids::ProfileId;
use domain::settings::{Settings, SettingsError};
use media::closer::Closer;
use media::dial::Dial;
use media::launcher::Launcher;
use media::ring::{Budget, EndReason};
use media::source::{SourceSettings, Upstream};
use ractor::{ActorCell, ActorRef, SpawnErr};
use storage::Models;
use storage::guide::GuideFiles;
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use tracing::{debug, info};

pub use self::drain::Draining;
use self::root::{Restart, Root};
use crate::ask::Address;
use crate::catalogue::VodImporter;
use crate::channel::{self, ChannelParts, LiveEnv, SharedChannels};
use crate::channels::{self, ChannelTable};
use crate::cluster::{BootTimeReader, ClusterLeases, ClusterLink, ClusterParts};
use crate::events::{self, Bus, Events};
use crate::fetch::Fetch;
use crate::guide::{
    self, GuideImports, GuideParts, GuidePreviews, GuideProgress, GuideRefreshes, GuideServices,
    SchedulesDirect, WrittenGuides,
};
use crate::health::{self, HealthTable};
use crate::hls::HlsSessions;
use crate::importer::{self, Importer, Imports, RefreshProgress};
use crate::integrations::{Courier, IntegrationParts, Integrations, Outbox};
use crate::live_settings::LiveSettings;
use crate::panel_counts::{self, PanelCountParts};
use crate::plans::Plans;
use crate::plugins::Plugins;
use crate::predecessor::{Predecessor, RingConnector};
use crate::programs::Programs;
use crate::recorder::{AfterSettings, Recorder};
use crate::recording_files::RecordingsFolder;
use crate::registry::{MetricsSnapshot, Registry};
use crate::seats::{SeatParts, SeatTable};
use crate::slots::{self, LeaseInfo, LeaseTable, OtherSlot, SlotTable, SlotsSnapshot};
use crate::switchboard::{self, Switchboard};
use crate::tasks::{self, RespawnedTask};
use crate::timeline::Timelines;
use crate::timeshift::TimeShift;
use crate::transcoders::Transcoders;
use crate::trials::Trials;
use crate::udp_outputs::UdpOutputs;
use crate::vod::{FilmCacheSettings, Vod};
use crate::{AddressRule, bandwidth, memory, reload};

/// Maximum wait for live channels to finish with their clients when the system stops.
const CHANNELS_DEADLINE: Duration = Duration::from_secs(5);

/// Maximum wait for the upstream sockets to close after that.
const CLOSER_DEADLINE: Duration = Duration::from_secs(2);

/// Maximum wait for an actor to handle its queued messages before it ends with the root.
const ACTOR_DEADLINE: Duration = Duration::from_secs(1);

/// Divisor of the memory that all rings may use together without a configured limit.
const RING_MEMORY_SHARE: u64 = 4;

/// Limit of all rings together if the amount of memory is unknown, in bytes.
const RING_BYTES_FALLBACK: u64 = 1 << 30;

/// The external dependencies of a system.
pub struct SystemParts {
    /// The connector for upstreams.
    pub dial: Arc<dyn Dial>,
    /// The packet runtime: openers, pumps and the closer run there.
    pub packets: Handle,
    /// Starts the programs of stream profiles.
    pub launcher: Launcher,
    /// How much is kept of films.
    pub films: FilmCacheSettings,
    /// Set if this gateway is a node of a cluster that shares limits.
    pub cluster: Option<ClusterParts>,
}

/// Reason why a system did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The settings contradict each other.
    #[error("check the settings")]
    Settings(#[source] SettingsError),
    /// An actor did not start.
    #[error("start an actor")]
    Actor(#[source] SpawnErr),
}

/// The state that outlives every actor.
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
    guide_imports: Arc<OnceLock<GuideImports>>,
    guide_progress: Arc<GuideProgress>,
    written_guides: Arc<OnceLock<WrittenGuides>>,
    guide_previews: Arc<GuidePreviews>,
    guide_services: GuideServices,
    vod_importer: VodImporter,
    /// Cancelled when the system stops: imports and trials end immediately, and no actor is restarted.
    stop: CancellationToken,
    trials: Trials,
    vod: Vod,
    hls_sessions: HlsSessions,
    recorder: Recorder,
    time_shift: TimeShift,
    udp_outputs: UdpOutputs,
    programs: Programs,
    integrations: Integrations,
    outbox: Outbox,
    plugins: Plugins,
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
    guides: Address<guide::Message>,
}

impl Addresses {
    /// Returns the current actor.
    fn get(&self, who: SystemActor) -> Option<ActorCell> {
        match who {
            SystemActor::Events => self.events.current().map(|it| it.get_cell()),
            SystemActor::Slots => self.slots.current().map(|it| it.get_cell()),
            SystemActor::Bandwidth => self.bandwidth.current().map(|it| it.get_cell()),
            SystemActor::Channels => self.channels.current().map(|it| it.get_cell()),
            SystemActor::Switchboard => self.switchboard.current().map(|it| it.get_cell()),
            SystemActor::Importer => self.importer.current().map(|it| it.get_cell()),
            SystemActor::Guides => self.guides.current().map(|it| it.get_cell()),
        }
    }
}

/// The running system as one value. A process may have several.
pub struct System {
    state: SystemState,
    closer: Closer,
    root: ActorRef<Restart>,
    root_task: parking_lot::Mutex<Option<JoinHandle<()>>>,
    /// The follower of the store, if it runs; ends with the system.
    follower: parking_lot::Mutex<Option<RespawnedTask>>,
    /// The task that collects guide data of streams, if it runs; ends with the system.
    guide_collector: parking_lot::Mutex<Option<RespawnedTask>>,
    /// The task that measures and stores the health of streams, if it runs; ends with the system.
    health_keeper: parking_lot::Mutex<Option<(RespawnedTask, Models)>>,
    /// The task that asks devices for the number of their tuners, if it runs; ends with the system.
    device_questions: parking_lot::Mutex<Option<RespawnedTask>>,
    /// The leases of the cluster, for questions to panels. `None`: this gateway is not a node of a cluster.
    panel_counts: Option<PanelCountParts>,
    /// The task that asks panels for their connections, if it runs; ends with the system.
    panel_questions: parking_lot::Mutex<Option<RespawnedTask>>,
    /// Passes decisions of the cluster to live channels, if it runs; ends with the system.
    shared_channels: parking_lot::Mutex<Option<AbortOnDropHandle<()>>>,
    /// Stores events for integrations, if it runs; ends with the system.
    courier: parking_lot::Mutex<Option<Courier>>,
    /// Makes the next reading of the metrics panic.
    #[cfg(any(test, feature = "testing"))]
    count_fails: std::sync::atomic::AtomicBool,
}

impl System {
    /// Starts the actors on the current runtime.
    ///
    /// # Errors
    /// The settings contradict each other, or an actor does not start.
    pub async fn start(
        settings: Settings,
        plans: Arc<dyn Plans>,
        mut parts: SystemParts,
    ) -> Result<Self, StartError> {
        let cluster = parts.cluster.take();
        let node = cluster.as_ref().map(|it| it.node);
        let panel_counts = cluster.as_ref().map(|it| PanelCountParts {
            tables: it.tables.clone(),
            link: it.link.clone(),
            clock: BootTimeReader::Kernel,
        });
        let leases = |of_node: Arc<SlotTable>| -> Arc<dyn LeaseTable> {
            match cluster {
                Some(parts) => ClusterLeases::start(of_node, parts, BootTimeReader::Kernel),
                None => of_node,
            }
        };
        let mut system = Self::start_with(settings, plans, parts, leases).await?;
        system.panel_counts = panel_counts;
        if let Some(node) = node {
            // Nobody watches yet.
            for counter in [&system.state.counter, &system.state.env.next_client] {
                counter.fetch_add(first_client(node), Ordering::Relaxed);
            }
        }
        Ok(system)
    }

    /// Starts with the table of leases that `leases` makes from that of a single node.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub(crate) async fn start_with(
        settings: Settings,
        plans: Arc<dyn Plans>,
        parts: SystemParts,
        leases: impl FnOnce(Arc<SlotTable>) -> Arc<dyn LeaseTable>,
    ) -> Result<Self, StartError> {
        settings.check().map_err(StartError::Settings)?;
        let addresses = Addresses {
            events: Address::new(),
            slots: Address::new(),
            bandwidth: Address::new(),
            channels: Address::new(),
            switchboard: Address::new(),
            importer: Address::new(),
            guides: Address::new(),
        };
        let closer = Closer::new(parts.packets.clone());
        let bus = Bus::new();
        let slot_table = SlotTable::new(addresses.slots.clone());
        let upstream = Upstream {
            dial: parts.dial,
            closer: closer.clone(),
            launcher: parts.launcher,
            // The time-outs are set at each opening.
            settings: SourceSettings::default(),
        };
        let ring_bytes = settings.ring_budget_bytes.unwrap_or_else(|| {
            memory::usable_bytes().map_or(RING_BYTES_FALLBACK, |it| it / RING_MEMORY_SHARE)
        });
        let health = plans.health();
        let guide_services = GuideServices::default();
        let outbox = Outbox::default();
        let env = Arc::new(LiveEnv {
            plans,
            packets: parts.packets,
            upstream,
            budget: Budget::new(usize::try_from(ring_bytes).unwrap_or(usize::MAX)),
            slots: leases(slot_table.clone()),
            events: Events::new(addresses.events.clone(), bus.clone(), outbox.clone()),
            registry: Arc::new(Registry::default()),
            next_client: AtomicU64::new(1),
            timelines: Arc::new(Timelines::default()),
            transcoders: Transcoders::default(),
            health,
            stream_guides: guide_services.stream_guides.clone(),
            shared_channels: OnceLock::new(),
            settings: LiveSettings::new(settings),
            predecessor: Predecessor::default(),
            is_draining: false.into(),
        });
        let (counter, stop) = (Arc::new(AtomicU64::new(0)), CancellationToken::new());
        let seat_table = SeatTable::new();
        let switchboard = || Switchboard::new(addresses.switchboard.clone(), env.clone(), seat_table.clone());
        let time_shift =
            TimeShift::new(switchboard(), env.packets.clone(), counter.clone(), stop.child_token());
        let switchboard_of_outputs = switchboard();
        let vod = Vod::new(env.clone(), counter.clone(), seat_table.clone(), stop.child_token(), parts.films);
        let hls_sessions = HlsSessions::new(switchboard(), stop.child_token());
        let recorder =
            Recorder::new(switchboard(), vod.clone(), env.clone(), time_shift.clone(), stop.child_token());
        let plugins = Plugins::new(
            env.upstream.launcher.clone(),
            closer.clone(),
            env.packets.clone(),
            stop.child_token(),
        );
        let state = SystemState {
            vod,
            hls_sessions,
            recorder,
            time_shift,
            udp_outputs: UdpOutputs::new(switchboard_of_outputs, env.packets.clone(), stop.child_token()),
            trials: Trials::new(env.clone(), counter.clone(), stop.child_token()),
            programs: Programs::new(env.clone(), stop.child_token()),
            integrations: Integrations::new(
                env.upstream.launcher.clone(),
                closer.clone(),
                plugins.clone(),
                outbox.clone(),
                stop.child_token(),
            ),
            outbox,
            plugins,
            env,
            slot_table,
            seat_table,
            channel_table: Arc::new(ChannelTable::default()),
            bus,
            counter,
            imports: Arc::new(OnceLock::new()),
            refresh_progress: Arc::new(RefreshProgress::default()),
            guide_imports: Arc::new(OnceLock::new()),
            guide_progress: Arc::new(GuideProgress::default()),
            written_guides: Arc::new(OnceLock::new()),
            guide_previews: Arc::default(),
            guide_services,
            vod_importer: VodImporter::new(stop.child_token()),
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
            guide_collector: parking_lot::Mutex::new(None),
            health_keeper: parking_lot::Mutex::new(None),
            device_questions: parking_lot::Mutex::new(None),
            panel_counts: None,
            panel_questions: parking_lot::Mutex::new(None),
            shared_channels: parking_lot::Mutex::new(None),
            courier: parking_lot::Mutex::new(None),
            #[cfg(any(test, feature = "testing"))]
            count_fails: Default::default(),
        })
    }

    /// Returns the handle for live channels.
    pub fn switchboard(&self) -> Switchboard {
        let state = &self.state;
        Switchboard::new(state.addresses.switchboard.clone(), state.env.clone(), state.seat_table.clone())
    }

    /// Counts the slots that the process before this one still uses, and reads its channels over connections of `connect`.
    /// `link` leads to the member of a cluster. To be called before anything plays. Only the first call has an effect.
    pub fn follow_predecessor(
        &self,
        slots: Vec<OtherSlot>,
        connect: RingConnector,
        link: Option<ClusterLink>,
    ) -> Predecessor {
        let predecessor = self.state.env.predecessor.clone();
        predecessor.follow(self.state.slot_table.clone(), slots, connect, link);
        predecessor
    }

    /// Makes this process the origin of the channels that the process before it plays, so that other nodes read them here.
    /// Nothing without a cluster. To be called on a runtime, when everything has started.
    pub fn relay_predecessor(&self) {
        let can_relay = self.shared_channels().is_some_and(|it| it.may_originate());
        let targets = self.state.env.predecessor.targets();
        for target in targets.into_iter().filter(|_| can_relay) {
            let switchboard = self.switchboard();
            // Each ends with its answer, or with its deadline.
            tasks::spawn(async move {
                let outcome = switchboard.relay(target).await;
                debug!(channel.target = %target, "relaying a channel of the process before this one: {outcome:?}");
            });
        }
    }

    /// Returns whether the process before this one still uses slots.
    pub fn has_serving_predecessor(&self) -> bool {
        self.state.env.predecessor.is_serving()
    }

    /// Returns the handle for refreshes of playlists. No account is refreshed before [`System::import_into`].
    pub fn importer(&self) -> Importer {
        Importer::new(self.state.addresses.importer.clone(), self.state.refresh_progress.clone())
    }

    /// Starts refreshing the playlists of these accounts, by schedule and on request. `uploads` is the folder of uploaded
    /// playlists. Only the first call has an effect.
    pub fn import_into(&self, models: Models, fetch: Fetch, uploads: PathBuf) {
        self.set_imports(Imports::new(models, fetch, uploads));
    }

    /// Starts to ask devices that say that all their tuners are in use how many they have.
    pub fn ask_devices(&self, models: Models, fetch: Fetch) {
        *self.device_questions.lock() = Some(slots::ask_devices(&self.state.slot_table, models, fetch));
    }

    /// Starts to ask panels how many connections their logins have after a machine of the cluster was lost. Does nothing if
    /// this gateway is not a node of a cluster.
    pub fn ask_panels(&self, models: Models, fetch: Fetch) {
        let parts = self.panel_counts.clone();
        *self.panel_questions.lock() = parts.map(|it| panel_counts::ask_panels(it, models, fetch));
    }

    /// Returns the handle for imports of films and series. Nothing is imported before [`System::import_vod`].
    pub fn vod_importer(&self) -> VodImporter {
        self.state.vod_importer.clone()
    }

    /// Starts importing the films and series of these accounts. `interval` is that of questions about titles to one
    /// panel. Only the first call has an effect.
    pub fn import_vod(&self, models: Models, fetch: Fetch, interval: Duration) {
        self.state.vod_importer.start(models, fetch, interval);
    }

    pub(crate) fn set_imports(&self, imports: Imports) {
        // Fails at the second call.
        let _ = self.state.imports.set(imports);
    }

    /// Returns the handle for refreshes of guides. No guide is refreshed before [`System::import_guides`].
    pub fn guide_refreshes(&self) -> GuideRefreshes {
        let state = &self.state;
        GuideRefreshes::new(
            state.addresses.guides.clone(),
            state.guide_progress.clone(),
            state.written_guides.clone(),
            state.guide_previews.clone(),
        )
    }

    /// Starts refreshing guides, by schedule and on request. Only the first call has an effect.
    pub fn import_guides(&self, parts: GuideParts) {
        let events = Some(self.state.env.events.clone());
        let services = GuideServices { events, ..self.state.guide_services.clone() };
        services.schedules_direct.connect(&parts.fetch);
        let parts = GuideParts { services, ..parts };
        *self.guide_collector.lock() = Some(self.collect_guides(parts.models.clone()));
        self.accept_written_guides(parts.models.clone(), parts.files.clone());
        // Fails at the second call.
        let _ = self.state.guide_previews.parts.set(parts.clone());
        self.set_guide_imports(GuideImports::new(parts));
    }

    /// Accepts programmes that clients write, without refreshing guides. Only the first call has an effect.
    pub fn accept_written_guides(&self, models: Models, files: GuideFiles) {
        // Fails at the second call.
        let _ = self.state.written_guides.set(WrittenGuides::new(models, files));
    }

    /// Returns the client of the service Schedules Direct.
    pub fn schedules_direct(&self) -> SchedulesDirect {
        self.state.guide_services.schedules_direct.clone()
    }

    /// Starts collecting guide data of streams.
    fn collect_guides(&self, models: Models) -> RespawnedTask {
        let (guides, refreshes) = (self.state.guide_services.stream_guides.clone(), self.guide_refreshes());
        tasks::respawn("guide data of streams", move || {
            let refreshes = refreshes.clone();
            guides.clone().collect(models.clone(), async move |source| {
                // Fails only when the gateway stops.
                let _ = refreshes.refresh(source, false).await;
            })
        })
    }

    pub(crate) fn set_guide_imports(&self, imports: GuideImports) {
        // Fails at the second call.
        let _ = self.state.guide_imports.set(imports);
    }

    /// Returns the handle for trials of stream profiles.
    pub fn trials(&self) -> Trials {
        self.state.trials.clone()
    }

    /// Returns the handle for films and episodes.
    pub fn vod(&self) -> Vod {
        self.state.vod.clone()
    }

    /// Returns the handle for the sessions of viewers with HLS.
    pub fn hls_sessions(&self) -> HlsSessions {
        self.state.hls_sessions.clone()
    }

    /// Returns the handle for recordings. None is made before [`System::record_into`].
    pub fn recorder(&self) -> Recorder {
        self.state.recorder.clone()
    }

    /// Starts to make the recordings of a store, with files in this folder. Only the first call has an effect.
    pub fn record_into(&self, models: Models, folder: RecordingsFolder) {
        self.state.recorder.start(models, folder);
    }

    /// Starts the work on the files of recordings after their end, after [`System::record_into`]. Only the first call has
    /// an effect.
    pub fn work_after_recordings(&self, settings: AfterSettings) {
        self.state.recorder.work_after(settings);
    }

    /// Returns the handle for the past of channels. None is kept before [`System::keep_past_in`].
    pub fn time_shift(&self) -> TimeShift {
        self.state.time_shift.clone()
    }

    /// Starts to keep the past of the channels of a store in a folder. `recordings` is the folder of recordings, which
    /// comes first when the disk is short of room. Only the first call has an effect.
    pub fn keep_past_in(&self, models: Models, folder: RecordingsFolder, recordings: RecordingsFolder) {
        self.state.time_shift.start(models, folder, recordings);
    }

    /// Returns the handle for what channels are sent as datagrams. None is before [`System::send_outputs`].
    pub fn udp_outputs(&self) -> UdpOutputs {
        self.state.udp_outputs.clone()
    }

    /// Starts to send the channels of a store that have an output. Only the first call has an effect.
    pub fn send_outputs(&self, models: Models) {
        self.state.udp_outputs.start(models);
    }

    /// Returns the handle for programs that make a short transport stream.
    pub fn programs(&self) -> Programs {
        self.state.programs.clone()
    }

    /// Returns the handle for plugins. None starts before [`Plugins::start`].
    pub fn plugins(&self) -> Plugins {
        self.state.plugins.clone()
    }

    /// Lets the cluster decide which node opens the source of a live channel. Has to be called before the first channel
    /// plays, on a runtime; only the first call has an effect.
    pub fn share_channels(&self, parts: ChannelParts) {
        let mut task = self.shared_channels.lock();
        if task.is_none() {
            let (shared, passing) = SharedChannels::start(parts, Arc::new(self.switchboard()));
            // Set once, under the lock.
            let _ = self.state.env.shared_channels.set(shared);
            *task = Some(passing);
        }
    }

    /// Lets the limits of users count the sessions of all nodes of the cluster. Has to be called before the first one begins,
    /// on a runtime; only the first call has an effect.
    pub fn share_seats(&self, parts: SeatParts) {
        self.state.seat_table.share(parts, BootTimeReader::Kernel);
    }

    /// Returns the live channels that the cluster knows; `None` without a cluster.
    pub fn shared_channels(&self) -> Option<Arc<SharedChannels>> {
        self.state.env.shared_channels.get().cloned()
    }

    /// Returns the event bus.
    pub fn events(&self) -> Events {
        self.state.env.events.clone()
    }

    /// Returns the plans of live channels.
    pub fn plans(&self) -> &Arc<dyn Plans> {
        &self.state.env.plans
    }

    /// Returns the current settings of the engine.
    pub fn settings(&self) -> Arc<Settings> {
        self.state.env.settings()
    }

    /// Returns what starts programs.
    pub fn launcher(&self) -> Launcher {
        self.state.env.upstream.launcher.clone()
    }

    /// Returns a handle to the settings that does not keep the system alive.
    pub fn live_settings(&self) -> LiveSettings {
        self.state.env.settings.clone()
    }

    /// Applies commits from now on: live channels load their plans again, and core settings override `base`, the
    /// settings of file, environment and arguments. Runs on the current runtime until the system ends; a second call
    /// replaces the first. Sessions end whose address `may_connect` no longer allows.
    pub fn follow(&self, models: Models, base: Settings, may_connect: AddressRule) {
        let (live, switchboard, events) = (self.live_settings(), self.switchboard(), self.events());
        let following = tasks::respawn("the follower of the store", move || {
            let (models, may_connect) = (models.clone(), Arc::clone(&may_connect));
            reload::follow(
                models,
                base.clone(),
                may_connect,
                live.clone(),
                switchboard.clone(),
                events.clone(),
            )
        });
        *self.follower.lock() = Some(following);
    }

    /// Returns the health of streams.
    pub fn health(&self) -> HealthTable {
        self.state.env.health.clone()
    }

    /// Measures the streams that play, and stores their health, until the system ends. Begins with the stored health. A
    /// second call replaces the first.
    pub fn keep_health(&self, models: Models) {
        let (table, of, events) = (self.health(), models.clone(), self.events());
        let keeper = tasks::respawn("the health of streams", move || {
            health::keep(table.clone(), of.clone(), events.clone())
        });
        *self.health_keeper.lock() = Some((keeper, models));
    }

    /// Returns the handle for integrations. Nothing is delivered before [`System::deliver_events`].
    pub fn integrations(&self) -> Integrations {
        self.state.integrations.clone()
    }

    /// Starts to store events for integrations, and to deliver them. Only the first call has an effect.
    pub fn deliver_events(&self, parts: IntegrationParts) {
        let mut courier = self.courier.lock();
        if courier.is_none() {
            let models = &parts.models;
            let (store, integrations) = (models.store.clone(), models.integrations.clone());
            *courier =
                Some(self.state.outbox.start(store, integrations, parts.plugins.clone(), parts.is_edge));
            self.state.integrations.start(parts);
        }
    }

    /// Changes the settings. Playback continues; later waits and new channels use the new settings.
    ///
    /// # Errors
    /// The settings contradict each other; nothing changed.
    pub fn configure(&self, settings: Settings) -> Result<(), SettingsError> {
        self.state.env.settings.set(settings)
    }

    /// Returns one reading of all metrics.
    pub fn counts(&self) -> MetricsSnapshot {
        #[cfg(any(test, feature = "testing"))]
        self.fail_if_asked();
        let (leases, leases_closing) = self.state.env.slots.counts();
        let sockets_open = self.closer.n_sockets();
        let seats = self.state.seat_table.len();
        let transcoders = self.state.env.transcoders.n_taken();
        let (vod_sessions, vod_cache_bytes) = (self.state.vod.n_sessions(), self.state.vod.cached_bytes());
        let counts = self.state.env.registry.counts();
        MetricsSnapshot {
            leases,
            leases_closing,
            sockets_open,
            seats,
            transcoders,
            vod_sessions,
            vod_cache_bytes,
            ..counts
        }
    }

    /// Returns all leases.
    pub fn leases(&self) -> Vec<LeaseInfo> {
        self.state.env.slots.leases()
    }

    /// Returns all slots and waiting requests at one moment.
    pub fn slots(&self) -> SlotsSnapshot {
        self.state.env.slots.snapshot()
    }

    /// Returns the limit of an account profile that was discovered since `changed_at`, the last change of its account.
    pub fn discovered_limit(&self, profile: ProfileId, changed_at: i64) -> Option<u32> {
        self.state.env.slots.discovered_limit(profile, changed_at)
    }

    /// Ends every live channel, waits until their clients read the last chunks and the sockets close, then ends the
    /// actors. Returns whether everything ended within its deadline. A second call does nothing.
    pub async fn stop(&self) -> bool {
        self.state.stop.cancel();
        self.follower.lock().take();
        self.guide_collector.lock().take();
        self.device_questions.lock().take();
        self.panel_questions.lock().take();
        // Before their channels end, so that no recording starts one again.
        self.state.recorder.ended().await;
        self.state.time_shift.ended().await;
        self.state.udp_outputs.ended().await;
        self.switchboard().close();
        // Covers a switchboard that is dead at this moment.
        for (_, live) in self.state.channel_table.all() {
            let _ = live.actor.cast(channel::Message::Stop(EndReason::Stopped));
        }
        let viewers_ended = async {
            let channels = tokio::time::timeout(CHANNELS_DEADLINE, self.state.channel_table.emptied()).await;
            self.state.trials.ended().await;
            self.state.vod.ended().await;
            channels.is_ok()
        };
        // A plugin that hangs keeps no viewer.
        let (channels, ()) = tokio::join!(viewers_ended, self.state.plugins.ended());
        let sockets = tokio::time::timeout(CLOSER_DEADLINE, self.closer.idle()).await.is_ok();
        let keeper = self.health_keeper.lock().take();
        if let Some((task, models)) = keeper {
            drop(task);
            self.health().write(&models).await;
        }
        // In reverse start order, each after its queued messages, so that no event is lost.
        for who in CHILDREN.iter().rev() {
            if let Some(actor) = self.state.addresses.get(*who) {
                // An actor that does not end in time ends with the root.
                let _ = actor.drain_and_wait(Some(ACTOR_DEADLINE)).await;
            }
        }
        // The last events come from the actors.
        let courier = self.courier.lock().take();
        if let Some(courier) = courier {
            courier.stop().await;
        }
        self.state.integrations.ended().await;
        self.root.stop(None);
        let task = self.root_task.lock().take();
        if let Some(task) = task {
            // The root ends with its children; failures were logged where they occurred.
            let _ = task.await;
        }
        info!(clean = channels && sockets, "engine stopped");
        channels && sockets
    }
}

impl Drop for System {
    fn drop(&mut self) {
        // Dropping the last reference does not end an actor, so a system that was not stopped is ended here.
        self.state.stop.cancel();
        self.root.stop(None);
    }
}

/// The children of the root.
#[cfg_attr(not(any(test, feature = "testing")), expect(unreachable_pub, reason = "tests see it"))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SystemActor {
    /// Distributes events.
    Events,
    /// The queue in front of the slots.
    Slots,
    /// Checks sources and clients once a second.
    Bandwidth,
    /// The parent of live channels.
    Channels,
    /// Finds or starts live channels.
    Switchboard,
    /// Refreshes playlists.
    Importer,
    /// Refreshes guides.
    Guides,
}

/// Start order.
const CHILDREN: [SystemActor; 7] = [
    SystemActor::Events,
    SystemActor::Slots,
    SystemActor::Bandwidth,
    SystemActor::Channels,
    SystemActor::Switchboard,
    SystemActor::Importer,
    SystemActor::Guides,
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
                // The code that starts a live channel reports its end.
                spawn(channels::Actor, (), root, &addresses.channels).await
            }
            SystemActor::Switchboard => {
                let arguments = switchboard::Arguments {
                    env: self.env.clone(),
                    table: self.channel_table.clone(),
                    slots: self.env.slots.clone(),
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
                    vod: self.vod_importer.clone(),
                    stop: self.stop.child_token(),
                };
                spawn(importer::Actor, arguments, root, &addresses.importer).await
            }
            SystemActor::Guides => {
                let arguments = guide::Arguments {
                    imports: self.guide_imports.clone(),
                    progress: self.guide_progress.clone(),
                    events: self.env.events.clone(),
                    stop: self.stop.child_token(),
                };
                spawn(guide::Actor, arguments, root, &addresses.guides).await
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
