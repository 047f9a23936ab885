//! Plugins as callers.

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::{ApiCall, PluginCaller, now_ms};
use domain::plugin::{ApiAccess, ApiScope, Permissions, PluginKey};
use domain::time::iso_millis;
use http::Method;
use route_frame::plugin::check;
use route_frame::route::Route;
use serde_json::{Value, json};

use super::{Port, plugin_calls, routes_of};
use crate::testing::Rest;

/// Paths that only users have something at.
const PERSONAL: [&str; 6] = [
    "/api/accounts/api-keys/",
    "/api/accounts/users/me/",
    "/api/accounts/users/me/addresses/",
    "/api/channels/favorites/",
    "/api/vod/favorites/",
    "/api/vod/progress/",
];

fn plugin(permissions: Permissions) -> Arc<PluginCaller> {
    Arc::new(PluginCaller { key: PluginKey::from_folder("demo").unwrap(), permissions })
}

fn scoped(scopes: &[&str]) -> Arc<PluginCaller> {
    let scopes = scopes.iter().map(|it| ApiScope::parse(it).unwrap()).collect();
    plugin(Permissions { api: ApiAccess::Scopes(scopes), ..Permissions::none() })
}

async fn call(
    rest: &Rest,
    caller: &Arc<PluginCaller>,
    method: &str,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    let body = (!body.is_null()).then_some(body);
    let call = ApiCall { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), body };
    let answer = plugin_calls(&rest.frame).answer(caller.clone(), call).await;
    (answer.status, serde_json::from_str(&answer.body).unwrap())
}

#[tokio::test]
async fn a_plugin_reads_everything_that_does_not_belong_to_a_user() {
    let rest = Rest::start().await;
    let caller = plugin(Permissions::undeclared());
    let is_readable = |it: &&Route| {
        it.method == Method::GET
            && it.path_parameters().next().is_none()
            && check(&caller, it, it.access.for_parameters(&Default::default())).is_ok()
    };
    let mut refused = BTreeSet::new();
    let routes = routes_of(Port::Api);
    assert!(routes.iter().filter(is_readable).count() > 50);
    for route in routes.iter().filter(is_readable) {
        let (status, body) = call(&rest, &caller, "GET", route.path, Value::Null).await;
        assert_ne!(status, 500, "{} {status} {body}", route.path);
        if status == 401 || status == 403 {
            refused.insert(route.path);
        }
    }
    assert_eq!(refused, PERSONAL.into());
}

#[tokio::test]
async fn scopes_decide_what_a_plugin_reads_and_changes() {
    let rest = Rest::start().await;
    let (reader, writer) = (scoped(&["channels:read"]), scoped(&["*:write"]));
    const GROUPS: &str = "/api/channels/groups/";
    let news = || json!({ "name": "News" });
    assert_eq!(call(&rest, &reader, "GET", GROUPS, Value::Null).await.0, 200);
    let (status, body) = call(&rest, &reader, "POST", GROUPS, news()).await;
    assert_eq!(status, 403);
    assert!(body["detail"].as_str().unwrap().contains("permissions"), "{body}");
    assert_eq!(call(&rest, &writer, "POST", GROUPS, news()).await.0, 201);
    for (caller, method, path, expected) in [
        (&reader, "GET", "/api/m3u/accounts/", 403),
        (&reader, "GET", "/api/%63hannels/groups/", 200),
        (&writer, "GET", "/api/m3u/accounts/?page=1", 200),
        (&writer, "GET", "/api/accounts/users/", 403),
        (&writer, "GET", "/api/%61ccounts/users/", 403),
        (&writer, "GET", "/api/plugins/plugins/", 403),
        (&writer, "GET", "/api/nothing/", 404),
        (&writer, "DELETE", GROUPS, 405),
        (&writer, "POST", GROUPS, 400),
        // No JSON.
        (&writer, "GET", "/api/channels/logos/1/cache/", 403),
        // Things of users.
        (&writer, "GET", "/api/channels/favorites/", 403),
    ] {
        let (status, body) = call(&rest, caller, method, path, Value::Null).await;
        assert_eq!(status, expected, "{method} {path} {body}");
    }
    let named = scoped(&["plugins:write"]);
    assert_eq!(call(&rest, &named, "GET", "/api/plugins/plugins/", Value::Null).await.0, 200);
    for what in ["run", "enabled", "restart", "limits"] {
        let path = format!("/api/plugins/plugins/demo/{what}/");
        let (status, body) = call(&rest, &named, "POST", &path, json!({})).await;
        assert!(status == 403 && body["detail"].as_str().unwrap().starts_with("Plugins cannot"), "{body}");
    }
}

#[tokio::test]
async fn changes_by_a_plugin_are_recorded_with_its_name_and_can_be_undone() {
    let rest = Rest::start().await;
    let caller = scoped(&["*:write"]);
    let (_, channel) =
        call(&rest, &caller, "POST", "/api/channels/channels/", json!({ "name": "One" })).await;
    let deleted = json!({ "channel_ids": [channel["id"]] });
    let (status, body) = call(&rest, &caller, "DELETE", "/api/channels/channels/bulk-delete/", deleted).await;
    assert!(status < 300, "{status} {body}");
    let audit = rest.admin("GET", "/api/core/audit/", Value::Null).await.body["results"].clone();
    let (last, first) = (&audit[0], &audit[1]);
    assert_eq!((&last["username"], &last["user_id"]), (&json!("plugin:demo"), &json!(0)), "{audit}");
    assert_eq!((&first["method"], &first["client_ip"]), (&json!("POST"), &json!("127.0.0.1")), "{audit}");
    assert_eq!(first["user_agent"], "plugin:demo");
    let undo = rest.admin("GET", "/api/channels/undo/", Value::Null).await.body;
    assert!(undo.to_string().contains("plugin:demo"), "{undo}");
    let stored = rest.models.users.load().get(0).cloned();
    assert!(stored.is_none(), "a plugin is not a user");
}

#[tokio::test]
async fn recordings_and_rules_of_a_plugin_have_no_owner() {
    let rest = Rest::start().await;
    let caller = scoped(&["channels:write", "recordings:write"]);
    let made = call(&rest, &caller, "POST", "/api/channels/channels/", json!({ "name": "One" })).await;
    let channel = made.1["id"].clone();
    let at = |hours: i64| iso_millis(now_ms() + hours * 3_600_000);
    let recording = json!({ "channel": channel, "start_time": at(1), "end_time": at(2) });
    let (status, body) = call(&rest, &caller, "POST", "/api/channels/recordings/", recording).await;
    assert_eq!((status, &body["owner"]), (201, &Value::Null), "{body}");
    let rule = json!({
        "channel": channel, "name": "Daily", "days_of_week": [0, 1, 2, 3, 4, 5, 6], "start_time": "20:00",
        "end_time": "20:15",
    });
    let (status, body) = call(&rest, &caller, "POST", "/api/channels/recurring-rules/", rule).await;
    assert_eq!((status, &body["owner"]), (201, &Value::Null), "{body}");
    let list = rest.admin("GET", "/api/channels/recordings/", Value::Null).await.body;
    assert!(list["count"].as_u64().unwrap() > 3, "the rule records: {list}");
    let path = format!("/api/channels/recordings/{}/", list["results"][0]["id"]);
    assert_eq!(call(&rest, &caller, "DELETE", &path, Value::Null).await.0, 204);
}
