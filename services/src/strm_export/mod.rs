//! The export of films and series as STRM files into a folder, for media servers and Kodi: by a schedule of the settings,
//! by a request of an admin, and by `headwater export strm`.
//!
//! An export contains the titles that one user may see, and its addresses contain the player secret of that user, never a
//! password. Reading order: `titles.rs` (what is exported), `files.rs` (which files are written and removed), `folder.rs`
//! (how nothing outside the folder is reached), `schedule.rs`.

mod files;
mod folder;
mod schedule;
mod titles;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use actors::now_ms;
use anyhow::{Context, bail, ensure};
use config::PublicUrl;
use domain::core_settings::{self, LIBRARY_SETTINGS, SYSTEM_SETTINGS};
use domain::ids::UserId;
use domain::library_settings::{ExportSettings, LibrarySettings, is_export_folder};
use domain::user::User;
use media::spawn_blocking;
use parking_lot::Mutex;
use storage::Models;
use tokio::sync::OwnedMutexGuard;

use self::files::ExportFiles;
pub use self::files::ExportReport;
pub use self::schedule::follow;
use self::titles::put_titles;
use crate::auth::player_secret_of;

/// An export to make: its titles, its folder and its addresses.
#[derive(Clone, Debug)]
pub struct ExportOrder {
    pub folder: PathBuf,
    pub user: Arc<User>,
    pub has_nfo: bool,
    /// The address under which players reach the gateway, without a slash at the end.
    pub origin: String,
}

/// Values that replace those of the settings.
#[derive(Clone, Debug, Default)]
pub struct ExportChoices {
    pub folder: Option<String>,
    pub username: Option<String>,
    pub has_nfo: Option<bool>,
}

impl ExportOrder {
    /// Reads the settings. `public_url` is that of the configuration, which the settings override.
    ///
    /// # Errors
    /// Names what is missing, and where to set it.
    pub fn new(
        models: &Models,
        choices: ExportChoices,
        public_url: Option<&PublicUrl>,
    ) -> anyhow::Result<Self> {
        let ExportSettings { folder, user, has_nfo, .. } = export_settings(models);
        let folder = choices.folder.unwrap_or(folder);
        ensure!(
            !folder.is_empty(),
            "set the folder of the export first: strm_folder in the library settings"
        );
        ensure!(is_export_folder(&folder), "the folder of the export must be an absolute path without ..");
        let users = models.users.load();
        let user = match (choices.username, user) {
            (Some(name), _) => {
                let found = users.one_by("username", User::name_key(&name)).cloned();
                found.with_context(|| format!("there is no user {name}"))?
            }
            (None, Some(UserId(id))) => {
                users.get(id).cloned().context("the user of the export was deleted; choose another one")?
            }
            (None, None) => bail!("set the user of the export first: strm_user in the library settings"),
        };
        ensure!(
            user.is_active_at(now_ms()),
            "user {} is inactive, so no player could play the export",
            user.username
        );
        let settings = models.settings.load();
        let system = settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
        let of_setting = core_settings::public_url(system).and_then(|it| it.parse::<PublicUrl>().ok());
        let origin = of_setting.as_ref().or(public_url).map(|it| it.as_str().to_owned());
        let origin = origin.context(
            "set public_url in the system settings first: the address under which players reach the gateway",
        )?;
        Ok(Self { folder: folder.into(), user, has_nfo: choices.has_nfo.unwrap_or(has_nfo), origin })
    }

    /// Writes the files that differ, and removes those of earlier exports whose titles are gone. Blocks.
    pub fn run(&self, models: &Models) -> anyhow::Result<ExportReport> {
        let folder = || self.folder.display();
        let secret = player_secret_of(&models.store, &self.user)?;
        let mut files = ExportFiles::begin(&self.folder).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => anyhow::anyhow!("another export uses the folder {}", folder()),
            _ => anyhow::Error::new(error).context(format!("failed to open the folder {}", folder())),
        })?;
        match put_titles(self, models, &secret, &mut files) {
            // Rather an outdated export than an empty library, where everything watched is forgotten.
            Ok(0) if files.has_earlier() => {
                bail!("user {} sees no film and no series, so the earlier export is kept", self.user.username)
            }
            Ok(_) => {}
            Err(error) => {
                files.abandon();
                return Err(error.context(format!("failed to write to the folder {}", folder())));
            }
        }
        files.finish().with_context(|| format!("failed to write to the folder {}", folder()))
    }
}

/// Returns the settings of the export.
fn export_settings(models: &Models) -> ExportSettings {
    let settings = models.settings.load();
    LibrarySettings::from_setting(settings.one_by("key", LIBRARY_SETTINGS).map(|it| &it.value)).export
}

/// The outcome of the last export since the start.
#[derive(Clone, Debug)]
pub struct LastExport {
    /// Milliseconds since 1970.
    pub finished_at: i64,
    pub outcome: Result<ExportReport, String>,
}

/// Runs exports one by one. Clones share the state.
#[derive(Clone)]
pub struct StrmExports(Arc<Inner>);

struct Inner {
    models: Models,
    /// That of the configuration.
    public_url: Option<PublicUrl>,
    last: Mutex<Option<LastExport>>,
    running: Arc<tokio::sync::Mutex<()>>,
}

impl StrmExports {
    pub fn new(models: Models, public_url: Option<PublicUrl>) -> Self {
        let (last, running) = (Mutex::default(), Arc::default());
        Self(Arc::new(Inner { models, public_url, last, running }))
    }

    pub fn last(&self) -> Option<LastExport> {
        self.0.last.lock().clone()
    }

    /// Returns whether an export runs.
    pub fn is_running(&self) -> bool {
        self.0.running.try_lock().is_err()
    }

    /// Checks that an export is possible with the present settings.
    pub fn order(&self) -> anyhow::Result<ExportOrder> {
        ExportOrder::new(&self.0.models, ExportChoices::default(), self.0.public_url.as_ref())
    }

    /// Starts an export by the present settings in the background. Returns false if another one runs.
    pub fn start(&self) -> bool {
        let Ok(running) = Arc::clone(&self.0.running).try_lock_owned() else { return false };
        let exports = self.clone();
        actors::spawn(async move { exports.run_locked(running).await });
        true
    }

    /// Exports by the present settings. Returns `None` if another export runs.
    async fn run(&self) -> Option<LastExport> {
        let running = Arc::clone(&self.0.running).try_lock_owned().ok()?;
        Some(self.run_locked(running).await)
    }

    async fn run_locked(&self, _running: OwnedMutexGuard<()>) -> LastExport {
        let inner = Arc::clone(&self.0);
        let order = self.order();
        let exporting = spawn_blocking(move || order?.run(&inner.models));
        let outcome = match exporting.await {
            Ok(outcome) => outcome.map_err(|error| format!("{error:#}")),
            Err(_) => Err("internal error".to_owned()),
        };
        let last = LastExport { finished_at: now_ms(), outcome };
        *self.0.last.lock() = Some(last.clone());
        last
    }
}
