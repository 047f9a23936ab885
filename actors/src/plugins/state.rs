//! What the tasks of plugins share.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::plugin::{ConfinementFacts, Enforcement, LackingPart, PluginKey};
use media::closer::Closer;
use media::{Launcher, can_restrict_files, can_restrict_ports, can_restrict_signals, spawn_blocking};
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Mutex as AsyncMutex, Semaphore, mpsc, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::backend::PluginBackend;
use super::command::Command;
use super::confine::{self, OwnFolders};
use super::groups::{ControlGroups, ROOT};
use super::log::PluginLog;
use super::python::{self, Python};
use super::run::Runs;
use super::scan::Scans;
use super::schedules::Schedules;
use super::settings::PluginSettings;
use super::status::PluginStatus;
use super::tokens::ProcessTokens;
use super::usage::{self, PluginResources};

/// Processes are not measured again within this time.
const SAMPLE_PERIOD: Duration = Duration::from_millis(900);

/// The handle for plugins, shared between clones.
#[derive(Clone)]
pub struct Plugins {
    pub(super) shared: Arc<PluginsState>,
}

pub(super) struct PluginsState {
    pub(super) launcher: Launcher,
    pub(super) closer: Closer,
    /// Processes are started there.
    pub(super) runtime: Handle,
    pub(super) stop: CancellationToken,
    pub(super) parts: OnceLock<PluginParts>,
    pub(super) entries: Mutex<HashMap<PluginKey, Arc<KnownPlugin>>>,
    pub(super) tasks: TaskTracker,
    pub(super) starts: Semaphore,
    pub(super) runs: Runs,
    pub(super) schedules: Schedules,
    /// Changes when a plugin begins or ceases to accept runs.
    pub(super) readiness: watch::Sender<u64>,
    /// The Python that was found, until a start fails.
    pub(super) python: AsyncMutex<Option<Python>>,
    /// Results of reading the code of plugins.
    pub(super) scans: Mutex<Scans>,
    pub(super) scan_turn: AsyncMutex<()>,
    pub(super) sample: Mutex<ResourceSample>,
    pub(super) tokens: ProcessTokens,
    /// Users of running plugins, if the gateway runs as root.
    pub(super) users: Mutex<Vec<u32>>,
}

pub(super) struct PluginParts {
    pub(super) backend: Arc<dyn PluginBackend>,
    pub(super) settings: PluginSettings,
    pub(super) groups: Option<ControlGroups>,
    pub(super) enforced: Enforcement,
    /// The parts that this machine lacks to enforce the rest.
    pub(super) lacking: Vec<LackingPart>,
}

impl PluginParts {
    /// Blocks.
    pub(super) fn new(backend: Arc<dyn PluginBackend>, settings: PluginSettings) -> Self {
        let groups = Some(()).filter(|()| !settings.is_safe_mode).and_then(|()| ControlGroups::find());
        let enforced = Enforcement {
            files: can_restrict_files(),
            ports: can_restrict_ports(),
            signals: can_restrict_signals(),
            own_user: confine::any_user().is_some(),
            control_group: groups.is_some(),
        };
        let lacking = LackingPart::list(&enforced, &confinement_facts());
        Self { backend, settings, groups, enforced, lacking }
    }
}

/// Reads what decides how a part of the confinement is switched on. Blocks.
fn confinement_facts() -> ConfinementFacts {
    let read = |path: &str| fs::read_to_string(path).ok();
    ConfinementFacts {
        kernel: read("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned(),
        security_modules: read("/sys/kernel/security/lsm"),
        has_control_groups: Path::new(ROOT).join("cgroup.controllers").exists(),
    }
}

/// The use of resources by the processes of plugins when they were measured last.
#[derive(Default)]
pub(super) struct ResourceSample {
    pub(super) groups: HashSet<u32>,
    pub(super) at: Option<Instant>,
    pub(super) used: HashMap<u32, PluginResources>,
}

/// A plugin as the handle sees it.
pub(super) struct KnownPlugin {
    pub(super) commands: mpsc::Sender<Command>,
    pub(super) status: Mutex<PluginStatus>,
    pub(super) log: Arc<Mutex<PluginLog>>,
    pub(super) folders: OwnFolders,
    pub(super) data_bytes: Mutex<u64>,
    /// Held while the folders are given to the user of the next process.
    pub(super) preparation: Mutex<()>,
}

impl PluginsState {
    /// Returns what a process group uses, measured within the last second for all plugins together.
    pub(super) async fn sample(self: &Arc<Self>, group: u32) -> Option<PluginResources> {
        let shared = self.clone();
        let measured = spawn_blocking(move || {
            let mut sample = shared.sample.lock();
            if sample.at.is_none_or(|it| it.elapsed() >= SAMPLE_PERIOD) {
                sample.used = usage::by_group(&sample.groups);
                sample.at = Some(Instant::now());
            }
            sample.used.get(&group).copied()
        });
        measured.await.ok().flatten()
    }

    /// Returns the Python that was found last, or finds one.
    pub(super) async fn find_python(&self, configured: Option<&str>) -> Result<Python, String> {
        let mut found = self.python.lock().await;
        if let Some(python) = &*found {
            return Ok(python.clone());
        }
        let python = python::find(configured, confine::any_user(), &self.launcher, &self.closer).await?;
        Ok(found.insert(python).clone())
    }
}
