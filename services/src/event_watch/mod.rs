//! Emits the events that nothing else reports: changes of channels, full disks, and runs of plugins.

mod channels;
mod disks;
mod plugin_runs;

use std::path::PathBuf;
use std::sync::Arc;

use actors::{Events, Recorder};
use storage::Models;

use crate::plugins::PluginProcesses;

/// The parts of the gateway that the events are about.
pub struct WatchedParts {
    pub models: Models,
    pub events: Events,
    /// The data folder.
    pub data_dir: PathBuf,
    pub recorder: Recorder,
    pub plugins: Arc<PluginProcesses>,
}

/// Emits events until the store is closed.
pub async fn follow(parts: WatchedParts) {
    let WatchedParts { models, events, data_dir, recorder, plugins } = parts;
    tokio::select! {
        () = channels::follow(models, events.clone()) => {}
        () = disks::follow(data_dir, recorder, events.clone()) => {}
        () = plugin_runs::follow(plugins.subscribe(), events) => {}
    }
}
