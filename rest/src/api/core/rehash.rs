//! `/api/core/rehash-streams/`: kept for clients of similar services, where the identity of streams is a stored hash.

use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

/// Result of a request to identify the streams again.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RehashView {
    /// Always true.
    success: bool,
    /// Says why nothing was to be done.
    message: &'static str,
    /// Always `null`, because no task was started.
    task_id: Option<String>,
}

pub(super) fn routes() -> Vec<Route> {
    let path = "/api/core/rehash-streams/";
    vec![
        Route::post(path, ADMIN, "Checks the identity of streams, which needs no change.", rehash)
            .that_reads(),
    ]
}

async fn rehash(_: Call) -> Result<RehashView, Refusal> {
    const MESSAGE: &str = "Nothing to do: streams have no stored hash. Each refresh recognises the streams of an \
                           account by the property that the account names, and keeps their ids.";
    Ok(RehashView { success: true, message: MESSAGE, task_id: None })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::Rest;

    #[tokio::test]
    async fn a_rehash_changes_nothing_and_says_so() {
        let rest = Rest::start().await;
        let version = rest.models.store.version();
        let answer = rest.admin("POST", "/api/core/rehash-streams/", json!({})).await;
        assert_eq!((answer.status, &answer.body["success"]), (200, &json!(true)));
        assert!(answer.body["message"].as_str().unwrap().starts_with("Nothing to do"));
        assert_eq!(rest.models.store.version(), version);
    }
}
