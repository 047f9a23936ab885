//! Refreshes of guide sources after changes.

use actors::is_same_guide;
use domain::guide::source::GuideSource;
use route_frame::call::Call;
use services::files::Folder;
use tracing::warn;

use crate::context::RestCall;
use crate::saved_upload::remove_upload;

/// Removes the former file of a changed source, and starts or stops its refresh.
pub(super) async fn after_update(call: &Call, source: &GuideSource, before: &GuideSource) {
    if let Some(file) = before.file.clone().filter(|_| source.file != before.file) {
        remove_upload(call, Folder::Guides, file).await;
    }
    let is_new = !is_same_guide(source, before);
    if is_new || source.is_active != before.is_active {
        refresh_if_possible(call, source, source.is_active).await;
    }
}

/// Starts a refresh after a change if the source has something to fetch. A running refresh with the old values is stopped.
pub(super) async fn refresh_if_possible(call: &Call, source: &GuideSource, has_new_guide: bool) {
    if source.kind.is_refreshed()
        && let Err(error) = call.rest().guide.guide_refreshes.changed(source.id, has_new_guide).await
    {
        // The schedule will try again.
        warn!(source.id = %source.id, "failed to start the refresh of a guide: {error}");
    }
}
