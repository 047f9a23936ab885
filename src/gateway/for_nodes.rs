//! This gateway, as other nodes of its cluster use it.

use std::sync::{Arc, Weak};

use config::DataFolder;
use futures_util::future::BoxFuture;
use http::{HeaderMap, Method, Uri};
use node::local_gateway::{LocalGateway, OperatorOutcome};
use node::work::STOPPING;
use player::context::PlayerContext;
use player::recordings::file::FileRequest;
use player::recordings::for_nodes::answer_node;
use push::context::PushContext;
use push::refreshes_for_others;
use serde_json::Value;
use server::reply::Refusal;
use warp::reply::Response as Reply;

use crate::control::{ControlRequest, execute_here};

/// The parts above the node port. Weak, because connections of other nodes keep it.
pub(super) struct ForNodes {
    pub(super) players: Weak<PlayerContext>,
    pub(super) pushed: Weak<PushContext>,
}

impl LocalGateway for ForNodes {
    fn recording(
        self: Arc<Self>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
    ) -> BoxFuture<'static, Result<Reply, Refusal>> {
        Box::pin(async move {
            let context = self.players.upgrade().ok_or_else(|| Refusal::unavailable(STOPPING))?;
            let request = FileRequest { context: &context, method: &method, headers: &headers };
            answer_node(&request, &uri).await
        })
    }

    fn refreshes(&self) -> Vec<Value> {
        self.pushed.upgrade().map(|it| refreshes_for_others(&it)).unwrap_or_default()
    }

    fn execute(self: Arc<Self>, request: Value) -> BoxFuture<'static, Option<OperatorOutcome>> {
        Box::pin(async move {
            let request = serde_json::from_value::<ControlRequest>(request).ok()?;
            let Some(context) = self.players.upgrade() else { return Some(Err(STOPPING.to_owned())) };
            let folder = DataFolder::new(&context.config.data_dir);
            let executed = execute_here(folder, context.models.clone(), request).await;
            Some(executed.and_then(|it| serde_json::to_value(it).map_err(|it| it.to_string())))
        })
    }
}
