//! The application context: every service that request handlers use, as one shared value.
//!
//! To add a service, add a field and construct it in [`App::new`].
//!
//! Nothing that an `App` holds may hold the `App` in turn. The [`System`] knows nothing of it, and the `App` refers to
//! the `System` weakly: the routes keep the `App` alive until the last connection has ended, and must not keep the
//! actors running for as long.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};

use actors::{
    Cluster, Events, Fetch, GuideRefreshes, HlsSessions, Importer, Integrations, LeaseInfo, LiveSettings,
    MetricsSnapshot, Plans, Recorder, SchedulesDirect, SlotsSnapshot, Switchboard, System, TimeShift, Trials,
    UdpOutputs, Vod, VodImporter,
};
use config::{Config, DataFolder, NetworkClass, NetworkRules, PublicUrl, UserNetworks, WrongNetworks};
use domain::account::Account;
use domain::core_settings::{self, NETWORK_ACCESS, SYSTEM_SETTINGS};
use domain::ids::ProfileId;
use domain::setting::CoreSetting;
use domain::user::User;
use parking_lot::RwLock;
use server::admission::Admission;
use server::caller::Caller;
use server::network_refusals::{NetworkDenial, NetworkRefusals};
use server::reply::Refusal;
use services::archives::ArchiveCache;
use services::auth::{Auth, SetupCode};
use services::backups::Backups;
use services::files::Files;
use services::guide::Guides;
use services::logo_cache::LogoCache;
use services::matching::Matching;
use services::plugins::{InstalledPlugins, PluginProcesses};
use services::recent_log::RecentLog;
use services::recording_rules::RecordingRules;
use services::strm_export::StrmExports;
use services::titles::Titles;
use storage::guide::GuideFiles;
use storage::{Models, Table};
use tracing::warn;

use crate::rest::frame::pace::WritePace;

/// Services and configuration of one gateway.
pub(crate) struct App {
    pub(crate) config: Config,
    pub(crate) models: Models,
    pub(crate) files: Files,
    pub(crate) guides: Guides,
    /// Films and series.
    pub(crate) titles: Titles,
    pub(crate) plugins: InstalledPlugins,
    pub(crate) plugin_processes: PluginProcesses,
    /// How far back the past of channels can be watched.
    pub(crate) archives: ArchiveCache,
    /// Held while files of logos are saved or deleted.
    pub(crate) logo_files: tokio::sync::Mutex<()>,
    pub(crate) logo_cache: Arc<LogoCache>,
    /// Held from the reading of a programme that a client changes until it is written.
    pub(crate) written_programme: tokio::sync::Mutex<()>,
    pub(crate) backups: Backups,
    pub(crate) auth: Auth,
    /// Lets its owner create the first admin.
    pub(crate) setup_code: SetupCode,
    pub(crate) switchboard: Switchboard,
    pub(crate) importer: Importer,
    /// Imports films and series.
    pub(crate) vod_importer: VodImporter,
    pub(crate) guide_refreshes: GuideRefreshes,
    pub(crate) schedules_direct: SchedulesDirect,
    pub(crate) trials: Trials,
    pub(crate) vod: Vod,
    /// Viewers with HLS.
    pub(crate) hls_sessions: HlsSessions,
    pub(crate) recorder: Recorder,
    pub(crate) time_shift: TimeShift,
    /// Channels that are sent as datagrams.
    pub(crate) udp_outputs: UdpOutputs,
    pub(crate) recording_rules: RecordingRules,
    pub(crate) matching: Matching,
    pub(crate) events: Events,
    /// Delivers events to integrations.
    pub(crate) integrations: Integrations,
    pub(crate) plans: Arc<dyn Plans>,
    /// Engine settings in effect: the configuration, overridden by the core settings.
    pub(crate) settings: LiveSettings,
    pub(crate) admission: Arc<Admission>,
    pub(crate) network_refusals: NetworkRefusals,
    pub(crate) write_pace: WritePace,
    /// Held while the uploaded picture of a user changes.
    pub(crate) picture_changes: tokio::sync::Mutex<()>,
    pub(crate) strm_exports: StrmExports,
    /// Lines of the log, if this gateway shows them.
    pub(crate) recent_log: OnceLock<RecentLog>,
    /// Present if the configuration names a cluster.
    pub(crate) cluster: OnceLock<Cluster>,
    /// True once the gateway has begun to stop.
    pub(crate) is_draining: AtomicBool,
    /// Set before that if another process serves the same addresses next.
    pub(crate) has_successor: AtomicBool,
    states: States,
    system: Weak<System>,
    /// The rules in force, with the settings that they were built from.
    network_rules: RwLock<Option<BuiltRules>>,
}

/// The state of each part of the gateway that is not a service: one value of a type of its own.
#[derive(Default)]
pub(crate) struct States(HashMap<TypeId, Box<dyn Any + Send + Sync>>);

impl States {
    /// Adds the state of a part.
    pub(crate) fn with<T: Any + Send + Sync>(mut self, state: T) -> Self {
        self.0.insert(TypeId::of::<T>(), Box::new(state));
        self
    }

    fn get(&self, state: TypeId) -> Option<&(dyn Any + Send + Sync)> {
        self.0.get(&state).map(|it| &**it)
    }
}

/// Network rules, and the settings that they were built from.
type BuiltRules = (Arc<Table<CoreSetting>>, Arc<NetworkRules>);

impl App {
    /// Builds the context around a started system and the HTTP client of this node. Reads the store, so it blocks.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read or has no server keys.
    pub(crate) fn new(
        config: Config,
        models: Models,
        guide_files: GuideFiles,
        system: &Arc<System>,
        fetch: Fetch,
        admission: Arc<Admission>,
        states: States,
    ) -> Result<Self, storage::Error> {
        let events = system.events();
        let files = Files::new(&config.data_dir);
        let guides = Guides::new(models.clone(), guide_files);
        let plugins = InstalledPlugins::new(&config.data_dir);
        if let Err(error) = plugins.files.recover() {
            warn!("failed to tidy the folder of plugins: {error}");
        }
        Ok(App {
            plugins,
            plugin_processes: PluginProcesses::new(system),
            archives: ArchiveCache::default(),
            auth: Auth::new(&models, events.clone(), &config.auth)?,
            setup_code: SetupCode::generate(),
            switchboard: system.switchboard(),
            importer: system.importer(),
            vod_importer: system.vod_importer(),
            guide_refreshes: system.guide_refreshes(),
            schedules_direct: system.schedules_direct(),
            trials: system.trials(),
            vod: system.vod(),
            hls_sessions: system.hls_sessions(),
            recorder: system.recorder(),
            time_shift: system.time_shift(),
            udp_outputs: system.udp_outputs(),
            recording_rules: RecordingRules::new(
                models.clone(),
                guides.clone(),
                Arc::clone(system.plans()),
                system.recorder(),
            ),
            titles: Titles::new(models.clone(), system.vod_importer()),
            matching: Matching::default(),
            plans: Arc::clone(system.plans()),
            settings: system.live_settings(),
            integrations: system.integrations(),
            network_refusals: {
                let events = events.clone();
                NetworkRefusals::new(move |event| events.emit(event))
            },
            write_pace: WritePace::default(),
            picture_changes: tokio::sync::Mutex::default(),
            strm_exports: StrmExports::new(models.clone(), config.public_url.clone()),
            recent_log: OnceLock::new(),
            cluster: OnceLock::new(),
            is_draining: AtomicBool::new(false),
            has_successor: AtomicBool::new(false),
            network_rules: RwLock::default(),
            states,
            system: Arc::downgrade(system),
            files: files.clone(),
            guides,
            backups: Backups::new(models.clone(), files, DataFolder::new(&config.data_dir), events.clone()),
            logo_files: tokio::sync::Mutex::new(()),
            logo_cache: Arc::new(LogoCache::new(config.data_dir.join("cache/logos"), fetch)),
            written_programme: tokio::sync::Mutex::new(()),
            config,
            models,
            events,
            admission,
        })
    }

    /// Returns the state of a part of the gateway.
    pub(crate) fn state<T: Any>(&self) -> &T {
        let state = self.states.get(TypeId::of::<T>()).and_then(|it| it.downcast_ref());
        state.expect("the gateway adds the state of each part")
    }

    /// Refuses callers from networks that may not use this class. `path` is that of the route.
    pub(crate) fn check_connect(
        &self,
        caller: &Caller,
        class: NetworkClass,
        path: &str,
    ) -> Result<(), Refusal> {
        match caller.is_in(self.network_rules().connect(class)) {
            true => Ok(()),
            false => Err(self.network_refusals.refuse(caller, class, path, NetworkDenial::Connect)),
        }
    }

    /// Refuses callers from networks that need credentials for this class.
    pub(crate) fn check_anonymous(
        &self,
        caller: &Caller,
        class: NetworkClass,
        path: &str,
    ) -> Result<(), Refusal> {
        match caller.is_in(self.network_rules().anonymous(class)) {
            true => Ok(()),
            false => Err(self.network_refusals.refuse(caller, class, path, NetworkDenial::Anonymous)),
        }
    }

    /// Refuses a user on a network from which this user may not use the class.
    pub(crate) fn check_user(
        &self,
        user: &User,
        caller: &Caller,
        class: NetworkClass,
        path: &str,
    ) -> Result<(), Refusal> {
        match UserNetworks::from_user(user).limit(class) {
            Some(networks) if !caller.is_in(networks) => {
                Err(self.network_refusals.refuse(caller, class, path, NetworkDenial::User))
            }
            _ => Ok(()),
        }
    }

    /// Returns the networks of each class in force. Changes of the settings take effect with the next request.
    pub(crate) fn network_rules(&self) -> Arc<NetworkRules> {
        let settings = self.models.settings.load();
        if let Some((of, rules)) = &*self.network_rules.read()
            && Arc::ptr_eq(of, &settings)
        {
            return Arc::clone(rules);
        }
        let value = settings.one_by("key", NETWORK_ACCESS).map(|it| &it.value);
        let (rules, wrong) = NetworkRules::new(&self.config, value);
        for WrongNetworks { member, reason, .. } in wrong {
            warn!("ignoring {member} of the setting {NETWORK_ACCESS}: it {reason}");
        }
        let rules = Arc::new(rules);
        *self.network_rules.write() = Some((settings, Arc::clone(&rules)));
        rules
    }

    /// Returns the address under which clients reach the gateway, without a slash at the end: that of the core settings,
    /// else that of the configuration.
    pub(crate) fn public_url(&self) -> Option<String> {
        let settings = self.models.settings.load();
        let value = settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
        // One that an earlier version accepted may be invalid in this version.
        let of_setting = core_settings::public_url(value).and_then(|it| it.parse::<PublicUrl>().ok());
        let url = of_setting.as_ref().or(self.config.public_url.as_ref());
        url.map(ToString::to_string)
    }

    /// Returns true once a user exists. Before that, nobody can log in, and callers without credentials are not
    /// restricted to what a viewer of the lowest level sees.
    pub(crate) fn has_users(&self) -> bool {
        !self.models.users.load().is_empty()
    }

    /// Reads all counters of the system. All are zero once the system has been dropped.
    pub(crate) fn counts(&self) -> MetricsSnapshot {
        self.system.upgrade().map(|it| it.counts()).unwrap_or_default()
    }

    /// Returns the provider slots in use.
    pub(crate) fn leases(&self) -> Vec<LeaseInfo> {
        self.system.upgrade().map(|it| it.leases()).unwrap_or_default()
    }

    /// Returns all provider slots and waiting requests at one moment.
    pub(crate) fn slots(&self) -> SlotsSnapshot {
        self.system.upgrade().map(|it| it.slots()).unwrap_or_default()
    }

    /// Returns the limit of an account profile that was discovered since the last change of its account.
    pub(crate) fn discovered_limit(&self, account: &Account, profile: ProfileId) -> Option<u32> {
        self.system.upgrade()?.discovered_limit(profile, account.updated_at)
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App(…)")
    }
}
