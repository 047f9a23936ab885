//! The application context: every service that request handlers use, as one shared value.
//!
//! To add a service, add a field and construct it in [`App::new`].
//!
//! Nothing that an `App` holds may hold the `App` in turn. The [`System`] knows nothing of it, and the `App` refers to
//! the `System` weakly: the routes keep the `App` alive until the last connection has ended, and must not keep the
//! actors running for as long.

use std::any::Any;
use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};

use actors::{
    Events, Fetch, GuideRefreshes, HlsSessions, Importer, Integrations, LeaseInfo, LiveSettings,
    MetricsSnapshot, Plans, Recorder, SchedulesDirect, SlotsSnapshot, Switchboard, System, TimeShift, Trials,
    UdpOutputs, Vod, VodImporter,
};
use config::{Config, DataFolder, PublicUrl};
use domain::account::Account;
use domain::core_settings::{self, SYSTEM_SETTINGS};
use domain::ids::ProfileId;
use server::admission::Admission;
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
use storage::Models;
use storage::guide::GuideFiles;
use tracing::warn;

use crate::network_access::NetworkAccess;
use crate::pace::WritePace;
use crate::states::States;

/// Services and configuration of one gateway.
pub struct App {
    pub config: Config,
    pub models: Models,
    pub files: Files,
    pub guides: Guides,
    /// Films and series.
    pub titles: Titles,
    pub plugins: InstalledPlugins,
    pub plugin_processes: Arc<PluginProcesses>,
    /// How far back the past of channels can be watched.
    pub archives: Arc<ArchiveCache>,
    /// Held while files of logos are saved or deleted.
    pub logo_files: tokio::sync::Mutex<()>,
    pub logo_cache: Arc<LogoCache>,
    /// Held from the reading of a programme that a client changes until it is written.
    pub written_programme: tokio::sync::Mutex<()>,
    pub backups: Backups,
    pub auth: Auth,
    /// Lets its owner create the first admin.
    pub setup_code: SetupCode,
    pub switchboard: Switchboard,
    pub importer: Importer,
    /// Imports films and series.
    pub vod_importer: VodImporter,
    pub guide_refreshes: GuideRefreshes,
    pub schedules_direct: SchedulesDirect,
    pub trials: Trials,
    pub vod: Vod,
    /// Viewers with HLS.
    pub hls_sessions: HlsSessions,
    pub recorder: Recorder,
    pub time_shift: TimeShift,
    /// Channels that are sent as datagrams.
    pub udp_outputs: UdpOutputs,
    pub recording_rules: RecordingRules,
    pub matching: Arc<Matching>,
    pub events: Events,
    /// Delivers events to integrations.
    pub integrations: Integrations,
    pub plans: Arc<dyn Plans>,
    /// Engine settings in effect: the configuration, overridden by the core settings.
    pub settings: LiveSettings,
    pub admission: Arc<Admission>,
    /// The networks that may use the gateway.
    pub networks: Arc<NetworkAccess>,
    pub write_pace: WritePace,
    /// Held while the uploaded picture of a user changes.
    pub picture_changes: tokio::sync::Mutex<()>,
    pub strm_exports: StrmExports,
    /// Lines of the log, if this gateway shows them.
    pub recent_log: OnceLock<RecentLog>,
    /// True once the gateway has begun to stop.
    pub is_draining: Arc<AtomicBool>,
    /// Set before that if another process serves the same addresses next.
    pub has_successor: AtomicBool,
    states: States,
    /// Weak, because connections keep this, and must not keep the actors running.
    pub system: Weak<System>,
}

impl App {
    /// Builds the context around a started system and the HTTP client of this node. Reads the store, so it blocks.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read or has no server keys.
    pub fn new(
        config: Config,
        models: Models,
        guide_files: GuideFiles,
        system: &Arc<System>,
        fetch: Fetch,
        admission: Arc<Admission>,
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
            plugin_processes: Arc::new(PluginProcesses::new(system)),
            archives: Arc::default(),
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
            matching: Arc::default(),
            plans: Arc::clone(system.plans()),
            settings: system.live_settings(),
            integrations: system.integrations(),
            networks: Arc::new(NetworkAccess::new(&config, &models, &events)),
            write_pace: WritePace::default(),
            picture_changes: tokio::sync::Mutex::default(),
            strm_exports: StrmExports::new(models.clone(), config.public_url.clone()),
            recent_log: OnceLock::new(),
            is_draining: Arc::default(),
            has_successor: AtomicBool::new(false),
            states: States::default(),
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

    /// Adds the state of a part of the gateway.
    pub fn with<T: Any + Send + Sync>(mut self, state: T) -> Self {
        self.states = self.states.with(state);
        self
    }

    /// Returns the state of a part of the gateway.
    pub fn state<T: Any>(&self) -> &T {
        self.states.get()
    }

    /// Returns the address under which clients reach the gateway, without a slash at the end: that of the core settings,
    /// else that of the configuration.
    pub fn public_url(&self) -> Option<String> {
        let settings = self.models.settings.load();
        let value = settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
        // One that an earlier version accepted may be invalid in this version.
        let of_setting = core_settings::public_url(value).and_then(|it| it.parse::<PublicUrl>().ok());
        let url = of_setting.as_ref().or(self.config.public_url.as_ref());
        url.map(ToString::to_string)
    }

    /// Returns true once a user exists. Before that, nobody can log in, and callers without credentials are not
    /// restricted to what a viewer of the lowest level sees.
    pub fn has_users(&self) -> bool {
        !self.models.users.load().is_empty()
    }

    /// Reads all counters of the system. All are zero once the system has been dropped.
    pub fn counts(&self) -> MetricsSnapshot {
        self.system.upgrade().map(|it| it.counts()).unwrap_or_default()
    }

    /// Returns the provider slots in use.
    pub fn leases(&self) -> Vec<LeaseInfo> {
        self.system.upgrade().map(|it| it.leases()).unwrap_or_default()
    }

    /// Returns all provider slots and waiting requests at one moment.
    pub fn slots(&self) -> SlotsSnapshot {
        self.system.upgrade().map(|it| it.slots()).unwrap_or_default()
    }

    /// Returns the limit of an account profile that was discovered since the last change of its account.
    pub fn discovered_limit(&self, account: &Account, profile: ProfileId) -> Option<u32> {
        self.system.upgrade()?.discovered_limit(profile, account.updated_at)
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App(…)")
    }
}
