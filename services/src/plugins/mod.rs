//! Installed plugins: their folders and their records together. Nothing here runs code of a plugin.

mod offers;
mod processes;
pub mod repositories;
mod signature;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use actors::{check_cron, now_ms};
use domain::plugin::{
    Field, Manifest, ManifestFault, Plugin, PluginKey, PluginSettings, actions_of, actions_of_plugin,
    fields_of, fields_of_plugin, unknown_parts,
};
use serde_json::{Map, Value};
use storage::Write;
use storage::plugin_files::{FolderError, PluginFiles};

pub use self::processes::{ApiCalls, PluginProcesses};

/// Maximum number of installed plugins.
pub const PLUGINS_MAX: usize = 200;

/// The plugins of this gateway.
#[derive(Debug)]
pub struct InstalledPlugins {
    pub files: PluginFiles,
    /// The folder of the files that plugins write, one for each.
    data: PathBuf,
    /// Held while a plugin is installed, removed, enabled or disabled.
    pub changes: tokio::sync::Mutex<()>,
}

/// A plugin as it is now.
#[derive(Debug)]
pub struct PluginEntry {
    pub key: PluginKey,
    /// `None` until it is enabled or configured for the first time, if it was put into the folder by hand.
    pub record: Option<Arc<Plugin>>,
    /// `None` if its folder is missing.
    pub manifest: Option<Result<Manifest, FolderError>>,
    pub has_logo: bool,
}

impl InstalledPlugins {
    /// Uses the folders below the data folder.
    pub fn new(data_dir: &Path) -> Self {
        Self {
            files: PluginFiles::new(data_dir),
            data: data_dir.join("plugin-data"),
            changes: tokio::sync::Mutex::new(()),
        }
    }

    /// Reads a plugin with this record; `None` if it has neither a record nor a folder. Blocks.
    pub fn read(&self, key: &PluginKey, record: Option<Arc<Plugin>>) -> Option<PluginEntry> {
        let manifest = self.files.exists(key).then(|| self.files.manifest(key));
        if record.is_none() && manifest.is_none() {
            return None;
        }
        Some(PluginEntry { key: key.clone(), record, manifest, has_logo: self.files.has_logo(key) })
    }

    /// Removes the files that a plugin wrote. Blocks.
    pub fn remove_data(&self, key: &PluginKey) -> io::Result<()> {
        match fs::remove_dir_all(self.data.join(key.as_str())) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }
}

impl PluginEntry {
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()?.as_ref().ok()
    }

    /// Returns the fields of the manifest, else those that the code reported when it ran last; see [`fields_of_plugin`].
    pub fn fields(&self) -> Vec<Field> {
        let reported = self.record.as_ref().and_then(|it| it.reported.as_ref());
        fields_of_plugin(self.manifest(), reported)
    }

    /// Returns the actions of the manifest, else those that the code reported when it ran last.
    pub fn actions(&self) -> Vec<Map<String, Value>> {
        let reported = self.record.as_ref().and_then(|it| it.reported.as_ref());
        let actions = actions_of_plugin(self.manifest(), reported);
        actions.iter().map(|it| it.json().clone()).collect()
    }

    /// Returns what an admin has to know about the manifest, and about what the code reported, as sentences.
    pub fn warnings(&self) -> Vec<String> {
        let Some(manifest) = self.manifest() else { return Vec::new() };
        let mut warnings = Vec::new();
        if manifest.is_legacy {
            warnings.push("The plugin has no manifest.".to_owned());
        }
        if !manifest.permissions.is_declared {
            let text = "The plugin declares no permissions: it uses the whole API and the network.";
            warnings.push(text.to_owned());
        }
        let ignored = |place: &str, it: &ManifestFault| format!("Ignored in {place}: {it}.");
        warnings.extend(manifest.ignored.iter().map(|it| ignored("plugin.json", it)));
        if let Some(reported) = self.record.as_ref().and_then(|it| it.reported.as_ref()) {
            let (fields, actions) = (&manifest.fields, &manifest.actions);
            let of_fields = fields.is_none().then(|| fields_of(&Value::from(reported.fields.clone())).1);
            let of_actions = actions.is_none().then(|| actions_of(&Value::from(reported.actions.clone())).1);
            let faults = of_fields.into_iter().chain(of_actions).flatten();
            warnings.extend(faults.map(|it| ignored("the code of the plugin", &it)));
        }
        let fields = self.fields();
        warnings.extend(unknown_parts(manifest, &fields, &self.actions()));
        for field in fields.iter().filter(|it| it.lacks_options()) {
            warnings.push(format!(
                "The field \"{}\" has no options to choose from. Any value is accepted until the code of the plugin \
                 lists some.",
                field.id
            ));
        }
        for action in manifest.actions.iter().flatten() {
            for event in &action.unknown_events {
                warnings.push(format!("The action \"{}\" asks for the unknown event {event}.", action.id));
            }
            if let Some(Err(error)) = action.schedule.as_ref().map(|it| check_cron(it)) {
                warnings.push(format!(
                    "The action \"{}\" runs without its schedule, which is not valid: {error}",
                    action.id
                ));
            }
        }
        warnings
    }
}

/// Returns the record of a plugin for a write, a new one if it has none.
pub fn record_of(write: &mut Write<'_>, key: &PluginKey) -> Result<Plugin, storage::Error> {
    if let Some(record) = write.by::<Plugin>("key", key.as_str())?.into_iter().next() {
        return Ok(record);
    }
    let at = now_ms();
    Ok(Plugin {
        id: write.next_id::<Plugin>()?,
        key: key.clone(),
        is_enabled: false,
        was_enabled: false,
        granted: None,
        allowed_packages: Vec::new(),
        accepted_gaps: Default::default(),
        limits: Default::default(),
        settings: PluginSettings::default(),
        version: String::new(),
        archive: None,
        reported: None,
        failed_starts: 0,
        failed: None,
        installed_at: at,
        updated_at: at,
    })
}
