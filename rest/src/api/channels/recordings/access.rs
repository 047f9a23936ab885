//! The recordings that a caller may see, and whether the caller may schedule some.

use std::sync::Arc;

use domain::recording::{DvrSettings, Recording};
use route_frame::call::Call;
use server::reply::Refusal;

use crate::context::RestCall;

/// Returns the settings of recordings.
pub(in crate::api::channels) fn dvr_settings(call: &Call) -> DvrSettings {
    services::recording_rules::dvr_settings(&call.rest().models)
}

/// Returns the test by which a recording is shown to the caller: admins find all, others their own while the settings let
/// them schedule recordings.
pub(super) fn may_see(call: &Call) -> Result<impl Fn(&Recording) -> bool + use<>, Refusal> {
    let (user, is_admin) = (call.identity()?.id, call.is_admin());
    let may_record = dvr_settings(call).permit(call.identity()?);
    Ok(move |it: &Recording| is_admin || (may_record && it.owner == Some(user)))
}

/// Refuses a caller who may not schedule recordings.
pub(in crate::api::channels) fn check_may_schedule(call: &Call) -> Result<(), Refusal> {
    match dvr_settings(call).permit(call.identity()?) {
        true => Ok(()),
        false => Err(Refusal::no_permission()),
    }
}

/// Returns the recording of the path, if the caller may see it.
pub(super) fn seen(call: &Call) -> Result<Arc<Recording>, Refusal> {
    let recording = call.rest().models.recordings.load().get(call.id()?).cloned();
    let may_see = may_see(call)?;
    recording.filter(|it| may_see(it)).ok_or_else(Refusal::unknown::<Recording>)
}
