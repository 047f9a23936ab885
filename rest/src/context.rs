//! What the resources use of the gateway, in groups of what belongs together.

use std::fmt;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use actors::{
    Events, Fetch, GuideRefreshes, Importer, Integrations, LeaseInfo, Plans, Recorder, RefreshPreviews,
    SchedulesDirect, SlotsSnapshot, Switchboard, System, TimeShift, Trials, UdpOutputs, Vod, VodImporter,
};
use config::{Config, DataFolder};
use domain::account::Account;
use domain::ids::ProfileId;
use node::context::NodeContext;
use player::context::PlayerContext;
use route_frame::call::Call;
use route_frame::context::{FrameContext, public_url};
use route_frame::network_access::NetworkAccess;
use route_frame::pace::WritePace;
use route_frame::states::States;
use server::admission::Admission;
use services::auth::{Auth, SetupCode};
use services::backups::Backups;
use services::completion::Completions;
use services::files::{Files, Folder};
use services::guide::Guides;
use services::history::{History, HistoryParts};
use services::logo_cache::LogoCache;
use services::matching::Matching;
use services::plugins::repositories::Repositories;
use services::plugins::{InstalledPlugins, PluginProcesses};
use services::recent_log::RecentLog;
use services::recording_rules::RecordingRules;
use services::strm_export::StrmExports;
use services::titles::Titles;
use storage::Models;
use storage::guide::GuideFiles;
use tokio::sync::{Mutex, Semaphore};
use tracing::warn;

use crate::api::{ChannelRowCache, DeletedRules};
use crate::demo::Demo;

/// The parts of the gateway that the resources use. Everything of it, apart from its own state, is shared with the rest of the
/// gateway.
pub struct RestContext {
    pub config: Config,
    pub models: Models,
    pub files: Files,
    pub auth: Auth,
    pub events: Events,
    /// This machine as a node.
    pub nodes: Arc<NodeContext>,
    /// The networks that may use the gateway.
    pub networks: Arc<NetworkAccess>,
    pub live: LiveContext,
    pub imports: ImportContext,
    pub guide: GuideContext,
    pub recordings: RecordingContext,
    pub plugins: PluginContext,
    pub pictures: PictureContext,
    pub operation: OperationContext,
    /// Set once if this gateway is the demo.
    pub demo: OnceLock<Demo>,
    pub(crate) channel_rows: ChannelRowCache,
    pub(crate) deleted_rules: DeletedRules,
}

/// Live channels, films and the past.
pub struct LiveContext {
    pub switchboard: Switchboard,
    /// The streams of channels, films and archives.
    pub plans: Arc<dyn Plans>,
    /// Films, episodes and archives that are played.
    pub vod: Vod,
    pub time_shift: TimeShift,
    /// Channels that are sent as datagrams.
    pub udp_outputs: UdpOutputs,
}

/// Accounts, and the streams and titles that come from them.
pub struct ImportContext {
    pub importer: Importer,
    pub previews: RefreshPreviews,
    /// Held while the streams of two accounts are paired.
    pub(crate) pairing_turn: Arc<Semaphore>,
    /// Imports films and series.
    pub vod_importer: VodImporter,
    pub trials: Trials,
    /// Films and series.
    pub titles: Titles,
    pub strm_exports: StrmExports,
    /// Completes films and series.
    pub completions: Completions,
}

/// The guide, and what fills it.
pub struct GuideContext {
    pub guides: Guides,
    pub guide_refreshes: GuideRefreshes,
    pub schedules_direct: SchedulesDirect,
    pub matching: Arc<Matching>,
    /// Held from the reading of a programme that a client changes until it is written.
    pub written_programme: Mutex<()>,
}

/// Recordings and their rules.
pub struct RecordingContext {
    pub recorder: Recorder,
    pub recording_rules: RecordingRules,
}

/// Plugins, installed and running.
pub struct PluginContext {
    pub installed: InstalledPlugins,
    pub processes: Arc<PluginProcesses>,
    /// Where plugins can be installed from.
    pub repositories: Repositories,
}

/// Logos and the pictures of users.
pub struct PictureContext {
    /// Held while files of logos are saved or deleted.
    pub logo_files: Mutex<()>,
    pub logo_cache: Arc<LogoCache>,
    /// Held while the uploaded picture of a user changes.
    pub picture_changes: Mutex<()>,
}

/// The gateway itself, for its admins.
pub struct OperationContext {
    pub backups: Backups,
    /// Lets its owner create the first admin.
    pub setup_code: SetupCode,
    /// Delivers events to integrations.
    pub integrations: Integrations,
    pub admission: Arc<Admission>,
    /// Rates and viewers over days and weeks.
    pub history: History,
    /// Lines of the log, if this gateway shows them.
    pub recent_log: OnceLock<RecentLog>,
    /// True once the gateway has begun to stop.
    pub is_draining: Arc<AtomicBool>,
    /// Set before that if another process serves the same addresses next.
    pub has_successor: AtomicBool,
}

/// The contexts of all crates whose routes are in the table.
pub struct Contexts {
    pub frame: FrameContext,
    pub rest: Arc<RestContext>,
    pub players: Arc<PlayerContext>,
}

impl Contexts {
    /// Makes the contexts around a started system and the HTTP client of this node. Reads the store, so it blocks.
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
        let installed = InstalledPlugins::new(&config.data_dir);
        if let Err(error) = installed.files.recover() {
            warn!("failed to tidy the folder of plugins: {error}");
        }
        let auth = Auth::new(&models, events.clone(), &config.auth)?;
        let guides = Guides::new(models.clone(), guide_files.clone());
        let titles = Titles::new(models.clone(), system.vod_importer());
        let backups =
            Backups::new(models.clone(), files.clone(), DataFolder::new(&config.data_dir), events.clone());
        let history = history(&config, &models, system);
        let networks = Arc::new(NetworkAccess::new(&config, &models, &events));
        let plugin_processes = Arc::new(PluginProcesses::new(system));
        let (archives, is_draining) = (Arc::default(), Arc::default());

        let nodes = Arc::new(NodeContext {
            config: config.clone(),
            models: models.clone(),
            files: files.clone(),
            guide_files,
            archives: Arc::clone(&archives),
            backups: backups.clone(),
            auth: auth.clone(),
            switchboard: system.switchboard(),
            vod: system.vod(),
            time_shift: system.time_shift(),
            recorder: system.recorder(),
            events: events.clone(),
            integrations: system.integrations(),
            plans: Arc::clone(system.plans()),
            system: Arc::downgrade(system),
            cluster: OnceLock::new(),
            node: OnceLock::new(),
        });
        let players = Arc::new(PlayerContext {
            config: config.clone(),
            models: models.clone(),
            guides: guides.clone(),
            titles: titles.clone(),
            auth: auth.clone(),
            plans: Arc::clone(system.plans()),
            switchboard: system.switchboard(),
            hls_sessions: system.hls_sessions(),
            vod: system.vod(),
            time_shift: system.time_shift(),
            recorder: system.recorder(),
            settings: system.live_settings(),
            nodes: Arc::clone(&nodes),
            is_draining: Arc::clone(&is_draining),
            archives: Arc::clone(&archives),
            states: player::states(&config, &models, system)?,
        });
        let rest = Arc::new(RestContext {
            live: LiveContext {
                switchboard: system.switchboard(),
                plans: Arc::clone(system.plans()),
                vod: system.vod(),
                time_shift: system.time_shift(),
                udp_outputs: system.udp_outputs(),
            },
            imports: ImportContext {
                importer: system.importer(),
                previews: RefreshPreviews::new(
                    models.clone(),
                    fetch.clone(),
                    files.folder(Folder::Playlists),
                ),
                pairing_turn: Arc::new(Semaphore::new(1)),
                vod_importer: system.vod_importer(),
                trials: system.trials(),
                titles,
                strm_exports: StrmExports::new(models.clone(), config.public_url.clone()),
                completions: Completions::new(models.clone(), fetch.clone()),
            },
            recordings: RecordingContext {
                recorder: system.recorder(),
                recording_rules: RecordingRules::new(
                    models.clone(),
                    guides.clone(),
                    Arc::clone(system.plans()),
                    system.recorder(),
                ),
            },
            guide: GuideContext {
                guides,
                guide_refreshes: system.guide_refreshes(),
                schedules_direct: system.schedules_direct(),
                matching: Arc::default(),
                written_programme: Mutex::default(),
            },
            plugins: PluginContext {
                installed,
                processes: Arc::clone(&plugin_processes),
                repositories: Repositories::new(models.clone(), fetch.clone(), files.clone()),
            },
            pictures: PictureContext {
                logo_files: Mutex::default(),
                logo_cache: Arc::new(LogoCache::new(config.data_dir.join("cache/logos"), fetch)),
                picture_changes: Mutex::default(),
            },
            operation: OperationContext {
                backups,
                setup_code: SetupCode::generate(),
                integrations: system.integrations(),
                admission,
                history,
                recent_log: OnceLock::new(),
                is_draining,
                has_successor: AtomicBool::new(false),
            },
            config: config.clone(),
            models: models.clone(),
            files: files.clone(),
            auth: auth.clone(),
            events,
            nodes,
            networks: Arc::clone(&networks),
            demo: OnceLock::new(),
            channel_rows: ChannelRowCache::default(),
            deleted_rules: DeletedRules::default(),
        });
        let contexts = States::default().with(Arc::clone(&players)).with(Arc::clone(&rest));
        let write_pace = WritePace::default();
        let frame = FrameContext {
            config,
            models,
            files,
            auth,
            networks,
            archives,
            plugin_processes,
            write_pace,
            contexts,
        };
        Ok(Self { frame, rest, players })
    }
}

/// Makes the history of this gateway. It measures once the gateway lets it.
fn history(config: &Config, models: &Models, system: &Arc<System>) -> History {
    let parts = HistoryParts {
        models: models.clone(),
        switchboard: system.switchboard(),
        vod: system.vod(),
        time_shift: system.time_shift(),
        recorder: system.recorder(),
        system: Arc::downgrade(system),
    };
    History::new(parts, &config.data_dir)
}

impl RestContext {
    /// Returns the address under which clients reach the gateway, as [`public_url`] says.
    pub fn public_url(&self) -> Option<String> {
        public_url(&self.config, &self.models)
    }

    /// Returns the provider slots in use.
    pub(crate) fn leases(&self) -> Vec<LeaseInfo> {
        self.nodes.system.upgrade().map(|it| it.leases()).unwrap_or_default()
    }

    /// Returns all provider slots and waiting requests at one moment.
    pub(crate) fn slots(&self) -> SlotsSnapshot {
        self.nodes.system.upgrade().map(|it| it.slots()).unwrap_or_default()
    }

    /// Returns the limit of an account profile that was discovered since the last change of its account.
    pub(crate) fn discovered_limit(&self, account: &Account, profile: ProfileId) -> Option<u32> {
        self.nodes.system.upgrade()?.discovered_limit(profile, account.updated_at)
    }

    /// Returns the number of tuners that the device of an account profile states, since the last change of its account.
    pub(crate) fn stated_limit(&self, account: &Account, profile: ProfileId) -> Option<u32> {
        self.slots().stated_limit(profile, account.updated_at)
    }
}

impl fmt::Debug for RestContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RestContext(…)")
    }
}

/// The context of this crate, for handlers.
pub(crate) trait RestCall {
    /// Returns what the resources use.
    fn rest(&self) -> &Arc<RestContext>;
}

impl RestCall for Call {
    fn rest(&self) -> &Arc<RestContext> {
        self.frame.contexts.get()
    }
}
