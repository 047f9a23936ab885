//! The gateway as one value: start it, ask it for its addresses, stop it.

mod for_nodes;
mod stopping;

use std::future::pending;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use actors::{
    AfterSettings, Events, Fetch, FetchError, FetchLimits, FilmCacheSettings, GuideParts, GuideServices,
    Importer, IntegrationParts, MetricsSnapshot, Plans, PluginTargets, PredecessorParts, RecordingsFolder,
    StorePlans, Switchboard, System, SystemParts, effective_settings,
};
use config::{Config, DataFolder};
use domain::plan::PlanContext;
use domain::secret::Secret;
use domain::settings::Settings;
use domain::user::UserLevel;
use domain::video_page::PAGE_PROGRAM;
use media::{BlockingError, DialSettings, Launcher, TcpDial, can_restrict_files, spawn_blocking};
use node::archives::follow_archives;
use node::fetch::FetchForNodes;
use node::forward::Forwarder;
use node::membership::{MembershipError, NodeParts};
use node::play::PlayForNodes;
use node::port::NodePort;
use node::recordings::Reporter;
use node::routes::NodePortParts;
use node::tls::install_tls;
use node::work::NodeWork;
use push::context::{PushContext, StatisticsViews};
use rest::context::{Contexts, RestContext};
use rest::demo::Demo;
use rest::recording_artwork::RecordingArtwork;
use rest::{Port, plugin_archives, pushed_channel, pushed_past_stats, pushed_stats};
use route_frame::context::FrameContext;
use rustix::process::{Resource, getrlimit, setrlimit};
use server::accept::Server;
use server::admission::Admission;
use server::listening::{ListenError, listen_on};
use server::origin::Origins;
use server::{Forward, Routes, route_table};
use services::auth::may_stream_from;
use services::backups::follow_schedule;
use services::event_watch::WatchedParts;
use services::files::{COMSKIP_CONFIG, Files, Folder};
use services::http_client::fetch;
use services::plugins::ApiCalls;
use services::recent_log::RecentLog;
use services::{event_watch, matching, name_cleaning, store_watch, strm_export};
use storage::guide::GuideFiles;
use storage::plugin_files::PluginFiles;
use storage::{Models, Store};
use tokio::runtime::Handle;
use tokio::sync::{Mutex, mpsc};
use tokio_util::task::AbortOnDropHandle;
use tracing::{info, warn};
use warp::Filter;

use self::for_nodes::ForNodes;
pub use self::stopping::{Drained, DrainingGateway, Stopped};
use crate::control::{ControlSocket, ControlledNode};
use crate::discovery::Discovery;
pub use crate::discovery::DiscoveryAddresses;
use crate::handover::{self, Listeners, RestartRequest, TakeOver};

/// Folder of the beginnings and ends of films, in the data folder.
const FILMS_FOLDER: &str = "films";

/// The two runtimes. A test passes its own handle twice.
#[derive(Clone, Debug)]
pub struct Runtimes {
    /// Carries packets: accept loops, connections, openers, pumps, and the closer.
    pub packets: Handle,
    /// Runs everything else: actors and handlers. Nothing here may delay a packet.
    pub work: Handle,
}

impl Runtimes {
    /// Runs a function on a thread of the control plane that may block. It begins at once.
    fn blocking<R: Send + 'static, F: FnOnce() -> R + Send + 'static>(
        &self,
        work: F,
    ) -> impl Future<Output = Result<R, StartError>> + use<R, F> {
        let _entered = self.work.enter();
        let done = spawn_blocking(work);
        async move { done.await.map_err(StartError::Blocking) }
    }

    /// Uses the caller's runtime for both.
    pub fn current() -> Self {
        Runtimes { packets: Handle::current(), work: Handle::current() }
    }
}

/// Reason why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Listen(#[from] ListenError),
    #[error("failed to read the store")]
    Store(#[source] storage::Error),
    #[error("failed to start the actors")]
    Actors(#[source] actors::StartError),
    #[error("failed to set up the HTTP client for playlists")]
    Fetch(#[source] FetchError),
    #[error("failed to set up connections to providers: {0}")]
    Dial(String),
    #[error(transparent)]
    Membership(#[from] MembershipError),
    #[error("a runtime has shut down")]
    Runtime,
    #[error("a step of the start has no result: {0}")]
    Blocking(BlockingError),
}

/// The process that had the sockets before, with the slots and the membership that it still uses.
pub(crate) type ServingPredecessor = (Arc<TakeOver>, PredecessorParts);

/// A running gateway. Dropping it closes its ports and cancels its connections at once; [`Gateway::stop`] lets
/// them end.
pub struct Gateway {
    system: Arc<System>,
    context: Arc<RestContext>,
    api: Server,
    player: Server,
    api_addr: SocketAddr,
    player_addr: SocketAddr,
    control: Option<ControlSocket>,
    /// Other handles of the listening sockets, for a process that takes over. `None` once the gateway stops.
    listeners: Option<Listeners>,
    restarts: Option<Mutex<mpsc::Receiver<RestartRequest>>>,
    _store_watch: AbortOnDropHandle<()>,
    _event_watch: AbortOnDropHandle<()>,
    /// Present if this machine is a node that shares the configuration.
    cluster_plugins: Option<AbortOnDropHandle<()>>,
    matching: AbortOnDropHandle<()>,
    recording_rules: AbortOnDropHandle<()>,
    discovery: Option<Discovery>,
    backup_schedule: Option<AbortOnDropHandle<()>>,
    /// Present if the history is kept.
    history: Option<AbortOnDropHandle<()>>,
    /// Present if this machine is a node that shares the configuration.
    node_port: Option<NodePort>,
    strm_schedule: AbortOnDropHandle<()>,
    names: AbortOnDropHandle<()>,
    completions: AbortOnDropHandle<()>,
    archives: AbortOnDropHandle<()>,
}

impl Gateway {
    /// Starts a gateway on an initialised store: first the actors, then the two ports. Both ports answer when this
    /// returns. Later commits to the store take effect without a restart.
    pub async fn start(config: Config, store: Store, runtimes: Runtimes) -> Result<Gateway, StartError> {
        // Bind first: a port in use is the most likely reason for a failed start.
        let listeners = Listeners::bind(&config, None)?;
        Self::start_on(listeners, None, config, store, runtimes).await
    }

    /// Does the same as [`Gateway::start`] with these sockets. `predecessor` is the process that had them before and still
    /// uses these slots.
    pub(crate) async fn start_on(
        listeners: Listeners,
        predecessor: Option<ServingPredecessor>,
        config: Config,
        store: Store,
        runtimes: Runtimes,
    ) -> Result<Gateway, StartError> {
        install_tls();
        let (api_listener, api_addr) = listen_on(&listeners.api, &runtimes.packets)?;
        let (player_listener, player_addr) = listen_on(&listeners.player, &runtimes.packets)?;
        // Port 0 chooses a free port; addresses for players name it.
        let (api_listen, player_listen) =
            (config.api_listen.with_port(api_addr), config.player_listen.with_port(player_addr));
        let config = Config { api_listen, player_listen, ..config };

        store.set_disk_timeout(config.limits.disk_timeout);
        let opened = runtimes.blocking(move || {
            let models = Models::new(store)?;
            let guide_files = GuideFiles::from_store(&models.store)?;
            Ok((models, guide_files))
        });
        let (models, guide_files) = opened.await?.map_err(StartError::Store)?;
        for account in models.accounts.load().iter().filter(|it| !it.certificates.verify) {
            warn!(account = account.name, account.id = %account.id, "the account accepts any certificate");
        }
        let own_listeners: Arc<[SocketAddr]> = [api_addr, player_addr].into();
        let (membership, of_node) = {
            let (config, store, packets) = (config.clone(), models.store.clone(), runtimes.packets.clone());
            let preparing = async move { node::membership::prepare(&config, &store, &packets).await };
            runtimes.work.spawn(preparing).await.map_err(|_| StartError::Runtime)??
        };
        let kept = predecessor.as_ref().and_then(|(take_over, parts)| {
            let membership = parts.membership()?;
            Some((membership, take_over.predecessor_port()))
        });
        let (system, fetch) =
            start_system(&config, &models, &guide_files, &runtimes, own_listeners, predecessor, of_node)
                .await?;
        let fetch_for_nodes = FetchForNodes::new(fetch.clone());

        let limits = &config.limits;
        let (connections_max, per_address_max) = (limits.connections_max, limits.connections_per_address_max);
        let admission = Admission::behind(config.trusted_proxies.clone(), connections_max, per_address_max);
        let origins = {
            let config = config.clone();
            Arc::new(runtimes.blocking(move || Origins::new(&config)).await?)
        };
        origins.log(&config);
        let contexts = {
            let (system, admission) = (Arc::clone(&system), Arc::clone(&admission));
            let new = move || Contexts::new(config, models, guide_files, &system, fetch, admission);
            runtimes.blocking(new)
        };
        let contexts = contexts.await?.map_err(StartError::Store)?;
        let Contexts { frame, rest: context, players } = contexts;
        let pushed = Arc::new(push_context(&context));
        let frame = Arc::new(frame);

        // With the runtime of the control plane, whose task it is.
        let node_listener = match membership {
            Some(membership) => {
                let nodes = Arc::clone(&context.nodes);
                let joining = async move { node::membership::start(&nodes, membership, kept).await };
                runtimes.work.spawn(joining).await.map_err(|_| StartError::Runtime)??
            }
            None => None,
        };
        if context.nodes.node().is_some() {
            context.recordings.recorder.report_files_with(Arc::new(Reporter(Arc::downgrade(&context.nodes))));
        }
        context.recordings.recorder.find_artwork_with(Arc::new(RecordingArtwork(Arc::downgrade(&context))));
        let (api_routes, player_routes) = routes(&frame, &pushed);
        let node_port = node_listener.zip(context.nodes.node()).map(|(listener, node)| {
            let handler = route_table(api_routes.clone(), Arc::clone(&origins), runtimes.work.clone(), None);
            let player =
                route_table(player_routes.clone(), Arc::clone(&origins), runtimes.work.clone(), None);
            let parts = NodePortParts {
                trust: Arc::clone(&node.trust),
                store: context.models.store.clone(),
                api: handler.for_nodes(),
                play: PlayForNodes::new(player.for_nodes()),
                fetch: fetch_for_nodes,
                work: NodeWork::new(
                    &context.nodes,
                    Arc::new(ForNodes { players: Arc::downgrade(&players), pushed: Arc::downgrade(&pushed) }),
                    runtimes.work.clone(),
                ),
                folder: context.config.data_dir.clone(),
                rings: system.shared_channels(),
                drain: Arc::clone(&node.drain),
                integrations: context.operation.integrations.clone(),
                addresses: context.live.plans.addresses(),
            };
            let _entered = runtimes.packets.enter();
            NodePort::start(listener, parts)
        });
        let forward = context.nodes.node().map(|it| forward_to_writer(&it.forwarder));
        let open = |listener, routes| {
            let handler = route_table(routes, Arc::clone(&origins), runtimes.work.clone(), forward.clone());
            let header_timeout = context.config.limits.header_timeout;
            Server::start(listener, handler, Arc::clone(&admission), header_timeout, &runtimes.packets)
        };
        let (api, player) = (open(api_listener, api_routes), open(player_listener, player_routes));
        info!(api.address = %api_addr, player.address = %player_addr, "gateway started");
        let store_watch = store_watch::follow(context.models.store.clone(), context.events.clone());
        let _store_watch = AbortOnDropHandle::new(runtimes.work.spawn(store_watch));
        let watched = WatchedParts {
            models: context.models.clone(),
            events: context.events.clone(),
            data_dir: context.config.data_dir.clone(),
            recorder: context.recordings.recorder.clone(),
            plugins: Arc::clone(&context.plugins.processes),
        };
        let _event_watch = AbortOnDropHandle::new(runtimes.work.spawn(event_watch::follow(watched)));
        let (models, events) = (context.models.clone(), context.events.clone());
        let matching = async move { matching::follow(models, &events).await };
        let matching = AbortOnDropHandle::new(runtimes.work.spawn(matching));
        let recording_rules =
            AbortOnDropHandle::new(runtimes.work.spawn(context.recordings.recording_rules.clone().follow()));
        let names = name_cleaning::follow(context.models.clone());
        let names = AbortOnDropHandle::new(runtimes.work.spawn(names));
        let completions = context.imports.completions.clone().follow();
        let completions = AbortOnDropHandle::new(runtimes.work.spawn(completions));
        let strm_schedule = strm_export::follow(context.imports.strm_exports.clone());
        let strm_schedule = AbortOnDropHandle::new(runtimes.work.spawn(strm_schedule));
        let archives =
            AbortOnDropHandle::new(runtimes.work.spawn(follow_archives(Arc::clone(&context.nodes))));
        let discovery = Discovery::start(&context, player_addr, &runtimes.work);
        {
            let _entered = runtimes.work.enter();
            system.relay_predecessor();
        }
        // After the ports answer; no plugin delays the start.
        let for_plugins = Arc::clone(&context);
        let starting = runtimes.blocking(move || {
            let calls = Arc::new(rest::plugin_calls(&frame));
            let answer: ApiCalls = Arc::new(move |caller, call| {
                let calls = Arc::clone(&calls);
                Box::pin(async move { calls.answer(caller, call).await })
            });
            let RestContext { models, config, plugins, .. } = &*for_plugins;
            plugins.processes.start(models.clone(), config, &plugins.installed.files, answer);
        });
        let starting = runtimes.work.spawn(async move {
            if let Err(error) = starting.await {
                warn!("failed to start the plugins: {error}");
            }
        });
        let cluster_plugins = context.nodes.node().map(|_| {
            let context = Arc::clone(&context);
            AbortOnDropHandle::new(runtimes.work.spawn(async move {
                // Without processes, the folders are still kept up to date.
                let _ = starting.await;
                plugin_archives::follow_cluster(context).await;
            }))
        });
        Ok(Gateway {
            system,
            context,
            api,
            player,
            api_addr,
            player_addr,
            control: None,
            listeners: Some(listeners),
            restarts: None,
            _store_watch,
            _event_watch,
            matching,
            recording_rules,
            discovery,
            backup_schedule: None,
            history: None,
            node_port,
            strm_schedule,
            names,
            completions,
            cluster_plugins,
            archives,
        })
    }

    /// Lets commands of the operator reach the gateway over a socket in its data folder. Without the socket, these
    /// commands work only while the gateway is stopped, so a failure is only logged.
    pub(crate) fn open_control_socket(&mut self, folder: &DataFolder) {
        let (requests, restarts) = handover::requests();
        let node = self
            .context
            .nodes
            .node()
            .map(|it| ControlledNode { drain: Arc::clone(&it.drain), forwarder: Arc::clone(&it.forwarder) });
        match ControlSocket::open(folder, self.models().clone(), requests, node) {
            Ok(socket) => (self.control, self.restarts) = (Some(socket), Some(Mutex::new(restarts))),
            Err(error) => {
                let path = folder.control_socket();
                warn!(
                    "failed to open {}, so user commands need the gateway to be stopped: {error}",
                    path.display()
                );
            }
        }
    }

    /// Declares that the store is that of the data folder: it can be backed up and restored, and is backed up by schedule.
    pub(crate) fn enable_backups(&mut self, runtimes: &Runtimes) {
        self.context.operation.backups.enable();
        let schedule = follow_schedule(self.context.operation.backups.clone());
        self.backup_schedule = Some(AbortOnDropHandle::new(runtimes.work.spawn(schedule)));
    }

    /// Keeps the history of rates and viewers in the folder of a temporary store, which is deleted with it.
    pub(crate) fn keep_temporary_history(&mut self, runtimes: &Runtimes) {
        self.context.operation.history.keep_in(self.context.models.store.folder());
        self.keep_history(runtimes);
    }

    /// Keeps the history of rates and viewers in the data folder.
    pub(crate) fn keep_history(&mut self, runtimes: &Runtimes) {
        let following = self.context.operation.history.clone().follow();
        self.history = Some(AbortOnDropHandle::new(runtimes.work.spawn(following)));
    }

    /// Waits until a restoration wants the gateway to stop and to start again with the restored store. Without this call,
    /// a restoration waits for the next start.
    pub async fn restart_requested(&self) {
        self.context.operation.backups.restart_requested().await;
    }

    /// Waits until this gateway cannot be a node of its cluster, because the others write what it cannot read. Returns why.
    pub async fn unfit_for_cluster(&self) -> String {
        let removed = async {
            match self.context.nodes.node() {
                Some(node) => node.trust.removed().await,
                None => pending().await,
            }
        };
        let unfit = async {
            match self.context.nodes.cluster.get() {
                Some(cluster) => node::versions::until_unfit(cluster).await,
                None => pending().await,
            }
        };
        tokio::select! {
            reason = unfit => reason,
            () = removed => "this node was removed from the cluster, so it stops".to_owned(),
        }
    }

    /// Waits until an operator wants the gateway to restart. Never returns without a control socket.
    pub async fn handover_requested(&self) -> RestartRequest {
        let requested = match &self.restarts {
            Some(restarts) => restarts.lock().await.recv().await,
            None => None,
        };
        match requested {
            Some(request) => request,
            None => pending().await,
        }
    }

    /// Checks whether the gateway can restart now.
    ///
    /// # Errors
    /// The process before the last restart still serves viewers: a third process would not know its slots.
    pub fn check_restart(&self) -> Result<(), String> {
        if !self.system.has_serving_predecessor() {
            return Ok(());
        }
        Err("the process before the last restart still serves viewers; try again when they have left, or stop and start \
             the gateway, which disconnects them"
            .to_owned())
    }

    /// Returns for how long viewers may keep their streams after a restart.
    pub fn drain_time(&self) -> Duration {
        self.context.config.limits.drain_time
    }

    /// Returns whether this gateway is a member of a cluster: then its viewers keep their streams only if the new process
    /// continues its membership, with its slots.
    pub fn is_in_cluster(&self) -> bool {
        self.context.nodes.cluster.get().is_some()
    }

    /// Returns handles of the listening sockets.
    ///
    /// # Errors
    /// No descriptor is free.
    pub fn listeners(&self) -> io::Result<Listeners> {
        match &self.listeners {
            Some(listeners) => listeners.try_clone(),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Lets admins read these lines of the log. Only the first call has an effect.
    pub fn show_log(&self, log: RecentLog) {
        // An error means that there are lines already.
        let _ = self.context.operation.recent_log.set(log);
    }

    /// Declares that the gateway is the demo. Only the first call has an effect.
    pub(crate) fn show_demo(&self, demo: Demo) {
        let _ = self.context.demo.set(demo);
    }

    /// Returns the bound address of the admin API.
    pub fn api_addr(&self) -> SocketAddr {
        self.api_addr
    }

    /// Returns the bound address for players.
    pub fn player_addr(&self) -> SocketAddr {
        self.player_addr
    }

    /// Returns the address under which clients reach the gateway, if an admin has set it.
    pub fn public_url(&self) -> Option<String> {
        self.context.public_url()
    }

    /// Returns the bound addresses of the discovery of tuners, if it is on.
    pub fn discovery_addresses(&self) -> Option<DiscoveryAddresses> {
        self.discovery.as_ref().map(Discovery::addresses)
    }

    /// Returns the actors and the values that outlive them.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Returns the public API of live channels.
    pub fn switchboard(&self) -> Switchboard {
        self.system.switchboard()
    }

    /// Returns the stored records and their in-memory views.
    pub fn models(&self) -> &Models {
        &self.context.models
    }

    /// Returns the programmes of guide sources.
    pub fn guide_files(&self) -> &GuideFiles {
        &self.context.guide.guides.files
    }

    /// Returns the public API of playlist refreshes.
    pub fn importer(&self) -> Importer {
        self.system.importer()
    }

    /// Returns the engine settings in effect.
    pub fn settings(&self) -> Arc<Settings> {
        self.system.settings()
    }

    /// Returns the code with which the first admin can be created from anywhere, or `None` if an admin exists.
    pub fn setup_code(&self) -> Option<Secret> {
        let has_admin =
            self.context.models.users.load().iter().any(|it| it.effective_level() == UserLevel::Admin);
        self.context.operation.setup_code.text().filter(|_| !has_admin)
    }

    /// Returns the event bus.
    pub fn events(&self) -> Events {
        self.system.events()
    }

    /// Reads all counters.
    pub fn counts(&self) -> MetricsSnapshot {
        self.system.counts()
    }
}

/// Starts the actors, and has them follow the commits of the store. Returns them with the HTTP client of this node.
async fn start_system(
    config: &Config,
    models: &Models,
    guide_files: &GuideFiles,
    runtimes: &Runtimes,
    own_listeners: Arc<[SocketAddr]>,
    predecessor: Option<ServingPredecessor>,
    of_node: Option<NodeParts>,
) -> Result<(Arc<System>, Fetch), StartError> {
    let has_ffmpeg = media::find_program("ffmpeg").is_some();
    let conditions = PlanContext {
        has_ffmpeg,
        has_streamlink: media::find_program(PAGE_PROGRAM).is_some(),
        user_agent: config.user_agent.clone(),
        own_listeners: own_listeners.clone(),
        node: of_node.as_ref().map(|it| it.channels.name.as_str().into()),
    };
    let fetch = fetch(config).map_err(StartError::Fetch)?.beside(own_listeners.clone());
    let fetch = match &of_node {
        Some(it) => fetch.among(conditions.clone(), Arc::clone(&it.fetcher)),
        None => fetch,
    };
    let plans = StorePlans::new(models.clone(), config.engine.default_stream_profile).under(conditions);
    let plans = plans.asking(fetch.clone());
    let plans: Arc<dyn Plans> = Arc::new(plans);
    let dial = TcpDial::new(DialSettings::default()).map_err(|error| StartError::Dial(error.to_string()))?;
    let launcher = launcher(config);
    let (limits, folder) = (&config.limits, config.data_dir.join(FILMS_FOLDER));
    let disk_bytes = limits.film_disk_cache_bytes;
    let films = FilmCacheSettings {
        memory_bytes: limits.film_cache_bytes,
        disk: (disk_bytes > 0).then_some((folder, disk_bytes)),
    };
    let packets = runtimes.packets.clone();
    let node = of_node.as_ref().map(|it| it.channels.name.as_str());
    let recordings = RecordingsFolder::new(config.recordings_folder()).with_node(node);
    let is_edge = of_node.as_ref().is_some_and(|it| !it.channels.may_originate);
    let link = of_node.as_ref().map(|it| it.leases.link.clone());
    let (leases, shared) = of_node.map(|it| (it.leases, (it.channels, it.seats))).unzip();
    let parts = SystemParts { dial: Arc::new(dial), packets, launcher, films, cluster: leases };
    let (base, models) = (config.engine.clone(), models.clone());
    let files = Files::new(&config.data_dir);
    let uploads = files.folder(Folder::Playlists);
    let vod_interval = config.limits.vod_request_interval;
    let past = RecordingsFolder::new(config.timeshift_folder());
    let after_recordings = AfterSettings {
        comskip: config.programs.comskip.clone(),
        comskip_config: files.folder(Folder::Comskip).join(COMSKIP_CONFIG),
        scratch: config.data_dir.join("cache/recordings"),
    };
    let guides = GuideParts {
        models: models.clone(),
        files: guide_files.clone(),
        fetch: fetch.clone().within(FetchLimits {
            bytes_max: config.limits.guide_bytes_max,
            total_timeout: config.limits.guide_timeout,
            ..fetch.limits()
        }),
        services: GuideServices::default(),
        uploads: files.folder(Folder::Guides),
        unpacked_bytes_max: config.limits.guide_unpacked_bytes_max,
    };
    let (targets, files) = (models.clone(), PluginFiles::new(&config.data_dir));
    let plugins = runtimes.blocking(move || PluginTargets::read(targets, files));
    let of_app = fetch.clone();
    let integrations = IntegrationParts {
        models: models.clone(),
        plugins: plugins.await?,
        own_listeners,
        settings: config.integrations.settings(config.user_agent.clone()),
        is_edge,
    };
    let system = runtimes.work.spawn(async move {
        let system = System::start(effective_settings(&models, &base), plans, parts).await?;
        if let Some((channels, seats)) = shared {
            system.share_channels(channels);
            system.share_seats(seats);
        }
        if let Some((take_over, parts)) = predecessor {
            let connector = take_over.ring_connector();
            let predecessor = system.follow_predecessor(parts.slots, connector, link);
            if let Err(error) = take_over.follow(predecessor) {
                // Its slots count as in use then until the next restart.
                warn!("failed to follow the process before this one: {error}");
            }
        }
        let of_users = models.clone();
        let may_connect = move |user, address| may_stream_from(&of_users, user, address);
        system.deliver_events(integrations);
        system.follow(models.clone(), base, Arc::new(may_connect));
        system.keep_health(models.clone());
        system.ask_devices(models.clone(), fetch.clone());
        system.ask_panels(models.clone(), fetch.clone());
        system.import_vod(models.clone(), fetch.clone(), vod_interval);
        system.keep_past_in(models.clone(), past, recordings.clone());
        system.send_outputs(models.clone());
        system.record_into(models.clone(), recordings);
        system.work_after_recordings(after_recordings);
        system.import_into(models, fetch, uploads);
        system.import_guides(guides);
        Ok(system)
    });
    let system = system.await.map_err(|_| StartError::Runtime)?;
    Ok((Arc::new(system.map_err(StartError::Actors)?), of_app))
}

/// Returns what the WebSocket uses.
fn push_context(context: &RestContext) -> PushContext {
    PushContext {
        models: context.models.clone(),
        auth: context.auth.clone(),
        networks: Arc::clone(&context.networks),
        events: context.events.clone(),
        matching: Arc::clone(&context.guide.matching),
        plugin_processes: Arc::clone(&context.plugins.processes),
        integrations: context.operation.integrations.clone(),
        importer: context.imports.importer.clone(),
        vod_importer: context.imports.vod_importer.clone(),
        guide_refreshes: context.guide.guide_refreshes.clone(),
        nodes: Arc::clone(&context.nodes),
        sockets_per_user_max: context.config.limits.websockets_per_user_max,
        views: StatisticsViews { films: pushed_stats, past: pushed_past_stats, channel: pushed_channel },
    }
}

/// Returns what sends the writes of clients to the node that writes the configuration.
fn forward_to_writer(forwarder: &Arc<Forwarder>) -> Forward {
    let forwarder = Arc::clone(forwarder);
    Arc::new(move |request| {
        let forwarder = Arc::clone(&forwarder);
        Box::pin(async move { forwarder.forward(request).await })
    })
}

/// Builds the launcher of programs, and says what it cannot do on this machine.
fn launcher(config: &Config) -> Launcher {
    if !can_restrict_files() {
        warn!(
            data_dir = %config.data_dir.display(),
            "this kernel cannot restrict the files of programs (Landlock, Linux 5.13): the programs of stream profiles \
             can read the data folder; run the gateway in a container or a service on a newer kernel"
        );
    }
    Launcher::new(config.programs.launcher_settings(&config.data_dir))
}

/// Returns the routes of the API port and those of the player port. Clients know one host and port, the
/// player port. Therefore that port also serves every API route.
fn routes(frame: &Arc<FrameContext>, pushed: &Arc<PushContext>) -> (Routes, Routes) {
    let for_port = |port| {
        let table = rest::filter(Arc::clone(frame), port);
        push::route(Arc::clone(pushed)).or(table).unify().boxed()
    };
    (for_port(Port::Api), for_port(Port::Player))
}

/// Raises the soft limit of open files to the hard limit and returns the limit now in effect. Every viewer needs one
/// file, and the usual soft limit of 1,024 is meant for programs that use `select`.
pub fn raise_file_limit() -> Option<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let before = limit.current;
        limit.current = limit.maximum;
        if setrlimit(Resource::Nofile, limit).is_err() {
            limit.current = before;
        }
    }
    limit.current
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use config::Listen;
    use domain::playlist::catalogue::Catalogue;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::demo::{self, Source};
    use crate::play;

    fn config(listen: &str) -> Config {
        let listen: Listen = listen.parse().unwrap();
        Config { api_listen: listen, player_listen: listen, ..Config::default() }
    }

    async fn store(catalogue: Catalogue) -> Store {
        play::temporary(catalogue).await.unwrap()
    }

    async fn start(config: Config) -> Gateway {
        Gateway::start(config, store(Catalogue::default()).await, Runtimes::current()).await.unwrap()
    }

    async fn ask(port: u16, request: &str) -> String {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        socket.write_all(format!("{request}\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn both_ports_serve_status_and_metrics_and_refuse_unknown_callers() {
        let gateway = start(config("127.0.0.1:0")).await;
        for port in [gateway.api_addr().port(), gateway.player_addr().port()] {
            assert!(ask(port, "GET / HTTP/1.0").await.contains("<!doctype html>"));
            assert!(ask(port, "GET /healthz HTTP/1.0").await.ends_with("ok\n"));
            assert!(ask(port, "GET /metrics HTTP/1.0").await.contains("\nheadwater_connections 1\n"));
            assert!(ask(port, "GET /api/channels/ HTTP/1.0").await.starts_with("HTTP/1.0 401"));
        }
        let api = gateway.api_addr().port();
        assert!(ask(api, "GET /playlist.m3u HTTP/1.0").await.starts_with("HTTP/1.0 404"));
        assert_eq!(gateway.stop().await, Stopped { is_clean: true });
    }

    #[tokio::test]
    async fn a_wildcard_address_includes_ipv4() {
        let gateway = start(config("0")).await;
        assert!(ask(gateway.player_addr().port(), "GET /healthz HTTP/1.0").await.ends_with("ok\n"));
    }

    #[tokio::test]
    async fn the_error_names_a_port_that_is_in_use() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let started = Gateway::start(
            config(&address.to_string()),
            store(Catalogue::default()).await,
            Runtimes::current(),
        )
        .await;
        let text = started.err().unwrap().to_string();
        assert_eq!(text, format!("failed to listen on {address}"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_demo_plays_and_a_stop_ends_its_viewers() {
        let source = Source::start("127.0.0.1:0".parse().unwrap(), &Runtimes::current()).await.unwrap();
        let catalogue = demo::catalogue(source.address());
        let uuid = catalogue.channels[0].uuid;
        let gateway =
            Gateway::start(config("127.0.0.1:0"), store(catalogue).await, Runtimes::current()).await.unwrap();

        let mut viewer = TcpStream::connect(gateway.player_addr()).await.unwrap();
        let request = format!("GET /proxy/ts/stream/{uuid}.ts/?x=y HTTP/1.0\r\nRange: bytes=0-\r\n\r\n");
        viewer.write_all(request.as_bytes()).await.unwrap();
        let mut begin = vec![0; 4096];
        viewer.read_exact(&mut begin).await.unwrap();
        assert!(begin.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&begin));
        let head = begin.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        assert_eq!((begin[head], begin[head + 188], begin[head + 376]), (0x47, 0x47, 0x47));

        let (stopped, ended) = tokio::join!(gateway.stop(), viewer.read_to_end(&mut begin));
        assert_eq!((stopped.is_clean, ended.is_ok()), (true, true));
    }
}
