//! `/api/demo/sources/`: the built-in sources of the demo. Other gateways have none.

use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};

/// A built-in source.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DemoSourceView {
    /// Name of the source.
    #[field(example = "testcard-a")]
    name: String,
    /// Whether it sends its clip. A stopped source closes its connections and refuses new ones.
    is_running: bool,
}

/// The wanted state of a source.
#[derive(Clone, Debug, Body)]
pub(crate) struct DemoOrder {
    /// Whether the source sends its clip.
    is_running: bool,
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/demo/sources/", ADMIN, "Lists the built-in sources of the demo.", list),
        Route::post(
            "/api/demo/sources/{name}/",
            ADMIN,
            "Starts or stops a built-in source of the demo.",
            order,
        )
        .refuses(StatusCode::NOT_FOUND, "No such source, or the gateway is not the demo."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<DemoSourceView>, Refusal> {
    let demo = call.rest().demo.get();
    let sources = demo.into_iter().flat_map(|it| it.switches.all());
    let view = |(name, is_running): (&str, bool)| DemoSourceView { name: name.to_owned(), is_running };
    paging.page_from(&call, sources.map(view).collect())
}

async fn order(call: Call, order: DemoOrder) -> Result<DemoSourceView, Refusal> {
    let name = call.text("name")?;
    let set = call.rest().demo.get().and_then(|it| it.switches.set(name, order.is_running));
    let name = set.ok_or_else(|| Refusal::not_found("No such source."))?;
    Ok(DemoSourceView { name: name.to_owned(), is_running: order.is_running })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use crate::testing::Rest;

    #[tokio::test]
    async fn a_gateway_that_is_not_the_demo_has_no_built_in_sources() {
        let rest = Rest::start().await;
        let listed = rest.admin("GET", "/api/demo/sources/", Value::Null).await.body;
        assert_eq!((&listed["count"], &listed["results"]), (&json!(0), &json!([])));
        let order = rest.admin("POST", "/api/demo/sources/testcard-a/", json!({ "is_running": false })).await;
        assert_eq!(order.status, 404);
    }
}
