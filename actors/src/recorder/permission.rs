//! Whether a recording may begin: what its owner was allowed when it was scheduled can have changed since.

use domain::lineup::visible;
use domain::recording::Recording;
use domain::user::UserLevel;
use storage::Models;

use crate::permissions::view_limits;
use crate::recording_files::dvr_settings;

/// Returns why the owner of a recording may not make it now; `None` if nothing forbids it. A recording without an owner is
/// like one of an admin.
pub(super) fn owner_refusal(models: &Models, recording: &Recording) -> Option<&'static str> {
    let id = recording.owner?;
    let users = models.users.load();
    let Some(owner) = users.get(id.0) else {
        return Some("the user who made the recording was deleted");
    };
    if !owner.is_active {
        return Some("the user who made the recording is inactive");
    }
    if owner.may(UserLevel::Admin) {
        return None;
    }
    if !dvr_settings(models).permit(owner) {
        return Some("the user who made the recording may no longer record");
    }
    let limits = view_limits(models, Some(owner));
    let channels = models.channels.load();
    // A channel that was deleted or disabled has a reason of its own.
    let channel = channels.get(recording.channel.0).filter(|it| it.enabled)?;
    (!visible(&limits, channel)).then_some("the user who made the recording may no longer watch the channel")
}
