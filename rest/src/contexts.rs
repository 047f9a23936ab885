//! The contexts of the crates whose routes are in the table.

use std::sync::{Arc, OnceLock, Weak};

use actors::System;
use node::context::NodeContext;
use player::context::PlayerContext;
use route_frame::app::App;

use crate::api::{ChannelRowCache, DeletedRules};
use crate::demo::Demo;

/// Adds the contexts of nodes and players, and the state of each resource that has some. Reads the store, so it blocks.
///
/// # Errors
/// Returns an error if the store cannot be read.
pub fn with_contexts(app: App, system: &System) -> Result<App, storage::Error> {
    let nodes = Arc::new(NodeContext {
        config: app.config.clone(),
        models: app.models.clone(),
        files: app.files.clone(),
        guide_files: app.guides.files.clone(),
        archives: Arc::clone(&app.archives),
        backups: app.backups.clone(),
        auth: app.auth.clone(),
        switchboard: app.switchboard.clone(),
        vod: app.vod.clone(),
        time_shift: app.time_shift.clone(),
        recorder: app.recorder.clone(),
        events: app.events.clone(),
        integrations: app.integrations.clone(),
        plans: Arc::clone(&app.plans),
        system: Weak::clone(&app.system),
        cluster: OnceLock::new(),
        node: OnceLock::new(),
    });
    let players = Arc::new(PlayerContext {
        config: app.config.clone(),
        models: app.models.clone(),
        guides: app.guides.clone(),
        titles: app.titles.clone(),
        auth: app.auth.clone(),
        plans: Arc::clone(&app.plans),
        switchboard: app.switchboard.clone(),
        hls_sessions: app.hls_sessions.clone(),
        vod: app.vod.clone(),
        time_shift: app.time_shift.clone(),
        recorder: app.recorder.clone(),
        settings: app.settings.clone(),
        nodes: Arc::clone(&nodes),
        is_draining: Arc::clone(&app.is_draining),
        archives: Arc::clone(&app.archives),
        states: player::states(&app.config, &app.models, system)?,
    });
    let app = app.with(players).with(nodes).with(OnceLock::<Demo>::new());
    Ok(app.with(ChannelRowCache::default()).with(DeletedRules::default()))
}
