//! The installed plugins as far as deliveries need them: which events their actions want, and how many run at a time.

use std::collections::BTreeMap;
use std::sync::Arc;

use domain::plugin::{Plugin, PluginKey, actions_of_plugin};
use parking_lot::Mutex;
use storage::Models;
use storage::plugin_files::PluginFiles;
use tracing::warn;

use crate::plugins::InstalledPlugin;

/// All installed plugins. Clones share them.
#[derive(Clone)]
pub struct PluginTargets {
    inner: Arc<Inner>,
}

struct Inner {
    models: Models,
    files: PluginFiles,
    known: Mutex<Arc<BTreeMap<u32, Arc<PluginTarget>>>>,
}

/// A plugin whose actions run for events and at times.
#[derive(Debug, PartialEq)]
pub(super) struct PluginTarget {
    pub(super) id: u32,
    pub(super) key: PluginKey,
    pub(super) is_enabled: bool,
    pub(super) concurrency: u8,
    /// The actions that want events.
    event_actions: Vec<EventAction>,
}

#[derive(Debug, PartialEq)]
struct EventAction {
    id: String,
    events: Vec<String>,
}

impl PluginTargets {
    /// Reads the installed plugins. Blocks.
    pub fn read(models: Models, files: PluginFiles) -> Self {
        let targets = Self { inner: Arc::new(Inner { models, files, known: Mutex::default() }) };
        targets.read_again();
        targets
    }

    /// Reads them again, after their records have changed. Returns the enabled ones. Blocks.
    pub(super) fn read_again(&self) -> Vec<InstalledPlugin> {
        let (mut known, mut enabled) = (BTreeMap::new(), Vec::new());
        let before = self.all();
        for record in self.inner.models.plugins.load().iter() {
            let target = match self.inner.files.manifest(&record.key) {
                Ok(manifest) => {
                    let installed = InstalledPlugin { record: Plugin::clone(record), manifest };
                    let target = Arc::new(PluginTarget::new(&installed));
                    enabled.extend(record.is_enabled.then_some(installed));
                    target
                }
                // What waits stays, and the plugin cannot start.
                Err(cause) => {
                    if record.is_enabled {
                        warn!(plugin.key = %record.key, "a plugin gets no events: {cause}");
                    }
                    Arc::new(PluginTarget::without_manifest(record))
                }
            };
            known.insert(record.id, target);
        }
        if *before != known {
            *self.inner.known.lock() = Arc::new(known);
        }
        enabled
    }

    /// Returns all plugins, by id.
    pub(super) fn all(&self) -> Arc<BTreeMap<u32, Arc<PluginTarget>>> {
        self.inner.known.lock().clone()
    }

    pub(super) fn get(&self, id: u32) -> Option<Arc<PluginTarget>> {
        self.inner.known.lock().get(&id).cloned()
    }
}

impl PluginTarget {
    fn new(installed: &InstalledPlugin) -> Self {
        let InstalledPlugin { record, manifest } = installed;
        let actions = actions_of_plugin(Some(manifest), record.reported.as_ref());
        let wanting = actions.into_iter().filter(|it| !it.events.is_empty());
        Self {
            concurrency: manifest.concurrency,
            event_actions: wanting.map(|it| EventAction { id: it.id, events: it.events }).collect(),
            ..Self::without_manifest(record)
        }
    }

    fn without_manifest(record: &Plugin) -> Self {
        let Plugin { id, key, is_enabled, .. } = record;
        Self { id: *id, key: key.clone(), is_enabled: *is_enabled, concurrency: 1, event_actions: Vec::new() }
    }

    /// Iterates over the actions that an event runs. None while the plugin is disabled.
    pub(super) fn wanting<'a>(&'a self, event: &'a str) -> impl Iterator<Item = &'a str> {
        let actions = self.event_actions.iter().filter(|_| self.is_enabled);
        actions.filter(move |it| it.events.iter().any(|it| it == event)).map(|it| &*it.id)
    }
}
