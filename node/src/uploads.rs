//! Files of clients, which all nodes have: sharing a new one, and fetching one that is not here yet.

use domain::ids::GuideSourceId;
use server::reply::Refusal;
use services::files::Folder;
use tracing::warn;

use crate::context::NodeContext;
use crate::files::Shared;

/// Shares an uploaded file with the other nodes before a record names it. Does nothing without a cluster.
pub async fn share_upload(context: &NodeContext, folder: Folder, name: &str) -> Result<(), Refusal> {
    share_upload_file(context, folder, name).await.map_err(|error| {
        warn!("failed to share an uploaded file with the other nodes: {error}");
        Refusal::unavailable(format!("The file cannot be shared with the other nodes: {error}.")).retry_soon()
    })
}

/// Does the same as [`share_upload`]. The error is the reason.
pub async fn share_upload_file(context: &NodeContext, folder: Folder, name: &str) -> Result<(), String> {
    let Some(node) = context.node() else { return Ok(()) };
    node.files.share(&Shared::Upload(folder, name.to_owned())).await.map_err(|it| it.to_string())
}

/// Shares the programmes of a source with the other nodes. Does nothing without a cluster.
pub async fn share_programmes(context: &NodeContext, source: GuideSourceId) -> Result<(), Refusal> {
    let Some(node) = context.node() else { return Ok(()) };
    let Some(file) = context.guide_files.file(source) else { return Ok(()) };
    let shared = node.files.share(&Shared::Programmes(source, file.generation())).await;
    shared.map_err(|error| {
        warn!("failed to share programmes with the other nodes: {error}");
        let text =
            format!("The programmes are kept here, but cannot be shared with the other nodes: {error}.");
        Refusal::unavailable(text).retry_soon()
    })
}

/// Fetches an uploaded file that this node does not have yet. Does nothing without a cluster.
pub async fn fetch_upload(context: &NodeContext, folder: Folder, name: &str) {
    let Some(node) = context.node() else { return };
    let file = Shared::Upload(folder, name.to_owned());
    if let Err(error) = node.files.fetch_missing(&file).await {
        node.files.report(&format!("failed to fetch a file of the cluster: {error}"));
    }
}
