//! The lineups that a caller may see.

use std::sync::Arc;

use domain::ids::LineupId;
use domain::lineup::Lineup;
use route_frame::call::Call;

use crate::context::RestCall;

/// Returns whether the caller may see the lineup: admins see all, others those that are assigned to them.
pub(super) fn is_own(call: &Call, id: LineupId) -> bool {
    call.is_admin() || call.user().is_ok_and(|it| it.lineups.contains(&id))
}

/// Returns a lineup that the caller may see.
pub(in crate::api::channels) fn find_own(call: &Call, id: LineupId) -> Option<Arc<Lineup>> {
    call.rest().models.lineups.load().get(id.0).filter(|it| is_own(call, it.id)).cloned()
}
