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
use route_frame::app::App;
use serde_json::Value;
use server::reply::Refusal;
use warp::reply::Response as Reply;

use crate::control::{ControlRequest, execute_here};

/// The parts above the node port. Weak, because connections of other nodes keep it.
pub(super) struct ForNodes(pub(super) Weak<App>);

impl LocalGateway for ForNodes {
    fn recording(
        self: Arc<Self>,
        method: Method,
        uri: Uri,
        headers: HeaderMap,
    ) -> BoxFuture<'static, Result<Reply, Refusal>> {
        Box::pin(async move {
            let app = self.0.upgrade().ok_or_else(|| Refusal::unavailable(STOPPING))?;
            let context = app.state::<Arc<PlayerContext>>();
            let request = FileRequest { context, method: &method, headers: &headers };
            answer_node(&request, &uri).await
        })
    }

    fn refreshes(&self) -> Vec<Value> {
        self.0.upgrade().map(|app| refreshes_for_others(app.state::<Arc<PushContext>>())).unwrap_or_default()
    }

    fn execute(self: Arc<Self>, request: Value) -> BoxFuture<'static, Option<OperatorOutcome>> {
        Box::pin(async move {
            let request = serde_json::from_value::<ControlRequest>(request).ok()?;
            let Some(app) = self.0.upgrade() else { return Some(Err(STOPPING.to_owned())) };
            let folder = DataFolder::new(&app.config.data_dir);
            let executed = execute_here(folder, app.models.clone(), request).await;
            Some(executed.and_then(|it| serde_json::to_value(it).map_err(|it| it.to_string())))
        })
    }
}
