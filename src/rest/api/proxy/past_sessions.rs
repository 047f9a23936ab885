//! The sessions of players that watch the past of channels.

use actors::{Target, VodSessionInfo};

use crate::app::App;

/// Returns the sessions of this node that have a request or a slot, those with the own time-shift included.
pub(crate) fn past_sessions(app: &App) -> Vec<VodSessionInfo> {
    let mut sessions = app.vod.all_sessions();
    sessions.retain(|it| matches!(it.title.target, Target::Archive(_)) && (it.n_requests > 0 || it.has_slot));
    sessions.extend(app.time_shift.sessions());
    sessions
}
