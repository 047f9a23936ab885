//! What the routes for players use.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actors::{HlsSessions, LiveSettings, Plans, Recorder, Switchboard, TimeShift, Vod, now_ms};
use config::Config;
use domain::ids::UserId;
use domain::settings::PROGRAM_START_TIMEOUT;
use node::context::NodeContext;
use route_frame::call::Call;
use route_frame::states::States;
use services::archives::ArchiveCache;
use services::auth::Auth;
use services::guide::Guides;
use services::titles::Titles;
use storage::Models;

/// The parts of the gateway that this crate uses. Everything of it, apart from its own state, is shared with the rest of the gateway.
pub struct PlayerContext {
    /// The configuration.
    pub config: Config,
    /// The stored records.
    pub models: Models,
    /// The programmes of channels.
    pub guides: Guides,
    /// Films and series.
    pub titles: Titles,
    /// Authenticates users.
    pub auth: Auth,
    /// The streams of channels, films and archives.
    pub plans: Arc<dyn Plans>,
    /// Live channels.
    pub switchboard: Switchboard,
    /// Viewers with HLS.
    pub hls_sessions: HlsSessions,
    /// Films, episodes and archives that are played.
    pub vod: Vod,
    /// The past of channels.
    pub time_shift: TimeShift,
    /// Recordings.
    pub recorder: Recorder,
    /// Engine settings in effect.
    pub settings: LiveSettings,
    /// This machine as a node.
    pub nodes: Arc<NodeContext>,
    /// True once the gateway has begun to stop.
    pub is_draining: Arc<AtomicBool>,
    /// How far back the past of channels can be watched.
    pub archives: Arc<ArchiveCache>,
    /// The state of each part of this crate: those of [`states`](crate::states).
    pub states: States,
}

impl PlayerContext {
    /// Returns true once a user exists. Before that, callers without credentials are not restricted to what a viewer of the
    /// lowest level sees.
    pub(crate) fn has_users(&self) -> bool {
        !self.models.users.load().is_empty()
    }

    /// Returns true if the user still exists, is active and has not expired.
    pub(crate) fn is_active(&self, user: UserId) -> bool {
        self.models.users.load().get(user.0).is_some_and(|it| it.is_active_at(now_ms()))
    }

    /// Returns the maximum wait for the beginning of a stream. A program that converts the stream starts after it.
    pub(crate) fn start_timeout(&self, has_program: bool) -> Duration {
        let program_start = if has_program { PROGRAM_START_TIMEOUT } else { Duration::ZERO };
        self.settings.load().start_timeout + program_start
    }

    /// Returns whether the gateway has begun to stop.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }
}

/// The context of this crate, for handlers.
pub trait PlayerCall {
    /// Returns what the routes for players use.
    fn player(&self) -> &Arc<PlayerContext>;
}

impl PlayerCall for Call {
    fn player(&self) -> &Arc<PlayerContext> {
        self.frame.contexts.get()
    }
}
