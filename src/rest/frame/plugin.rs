//! Plugins as callers: over the pipes of their processes, and over HTTP with the token of a running process.
//!
//! A plugin has the level of an admin within the scopes that an admin granted, and is not a user: it owns nothing, and routes
//! about the caller's own things refuse it.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Weak};

use actors::{API_BODY_BYTES_MAX, ApiAnswer, ApiCall, PluginCaller};
use bytes::Bytes;
use domain::origin::Origin;
use domain::query::Query;
use domain::user::{ANONYMOUS, User, UserLevel};
use futures_util::stream;
use http::header::{CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use media::Connection;
use server::caller::Caller;
use server::reply::Refusal;
use services::auth::bearer;
use warp::reply::Response as Reply;

use super::access::Access;
use super::call::Call;
use super::dispatch::run;
use super::input::FileInput;
use super::route::{AnswerShape, Route};
use super::router::Router;
use crate::app::App;

/// Why a plugin is refused where callers have things of their own.
const NO_USER: &str = "This belongs to users, and a plugin is not a user.";

/// Answers the calls of plugins over the pipes of their processes.
pub(crate) struct PluginCalls {
    /// The app holds the plugins, which hold this.
    app: Weak<App>,
    router: Router,
}

impl PluginCalls {
    pub(in crate::rest) fn new(app: &Arc<App>, routes: Vec<Route>) -> Self {
        Self { app: Arc::downgrade(app), router: Router::new(routes) }
    }

    /// Answers a call. Never fails: refusals are answers.
    pub(crate) async fn answer(&self, caller: Arc<PluginCaller>, call: ApiCall) -> ApiAnswer {
        let Some(app) = self.app.upgrade() else {
            return ApiAnswer::refused(503, "The gateway is stopping.");
        };
        let reply = match self.dispatch(app, caller, call).await {
            Ok(reply) => reply,
            Err(refusal) => refusal.into_response(),
        };
        read(reply).await
    }

    async fn dispatch(
        &self,
        app: Arc<App>,
        caller: Arc<PluginCaller>,
        sent: ApiCall,
    ) -> Result<Reply, Refusal> {
        let found = self.router.find(&sent.path).ok_or_else(|| Refusal::not_found("Not found."))?;
        let method = Method::from_bytes(sent.method.as_bytes()).unwrap_or_default();
        let route = found.route(&method).cloned();
        let route = route.ok_or_else(|| Refusal::wrong_method(&method, found.allow()))?;
        let body = sent.body.map(|it| Bytes::from(it.to_string())).unwrap_or_default();
        let (connection, headers) = (own_connection(&app, &caller)?, HeaderMap::new());
        let mut call = Call {
            app,
            method,
            caller: connection,
            headers,
            user: None,
            plugin: None,
            // There is no network.
            network_class: None,
            parameters: found.parameters,
            pattern: route.path,
            path: sent.path,
            query: Arc::new(Query::parse(&sent.query)),
            fields: Vec::new(),
        };
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        call.become_plugin(caller, &route)?;
        let body = (!body.is_empty()).then_some(Ok::<_, warp::Error>(body));
        run(&route, call, stream::iter(body)).await
    }
}

/// Returns the caller of a call over pipes, which the audit shows.
fn own_connection(app: &App, caller: &PluginCaller) -> Result<Caller, Refusal> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, app.config.api_listen.address().port()));
    let bug = || Refusal::fault("name a plugin in headers");
    let header = |text: String| HeaderValue::from_str(&text).map_err(|_| bug());
    let headers =
        HeaderMap::from_iter([(HOST, header(local.to_string())?), (USER_AGENT, header(name(caller))?)]);
    let origin = Origin::direct(IpAddr::from(Ipv4Addr::LOCALHOST));
    Ok(Caller::new(Arc::new(Connection::new(0, local)), origin, local, &headers))
}

/// Returns the name of a plugin as the author of changes. No user can have it, because of the colon.
fn name(caller: &PluginCaller) -> String {
    format!("plugin:{}", caller.key)
}

impl Call {
    /// Makes the running plugin whose token the request has the caller, if it comes from this machine. Returns whether it
    /// did; other requests are those of users.
    pub(super) fn authenticate_plugin(&mut self, route: &Route) -> Result<bool, Refusal> {
        if self.plugin.is_some() {
            return Ok(true);
        }
        let token = bearer(&self.headers).filter(|_| self.caller.origin.is_from_loopback());
        let Some(plugin) = token.and_then(|it| self.app.plugin_processes.handle.caller(it)) else {
            return Ok(false);
        };
        self.become_plugin(plugin, route)?;
        Ok(true)
    }

    /// Makes a plugin the caller, if its scopes include the route.
    fn become_plugin(&mut self, plugin: Arc<PluginCaller>, route: &Route) -> Result<(), Refusal> {
        check(&plugin, route, route.access.for_parameters(&self.parameters))?;
        self.user = Some(Arc::new(User::new(ANONYMOUS, name(&plugin), UserLevel::Admin, 0)));
        self.plugin = Some(plugin);
        Ok(())
    }

    /// Refuses plugins where callers have things of their own.
    pub(super) fn check_no_plugin(&self) -> Result<(), Refusal> {
        match self.plugin {
            Some(_) => Err(Refusal::no_permission().with_detail(NO_USER)),
            None => Ok(()),
        }
    }
}

/// Refuses routes that a plugin may not use.
fn check(plugin: &PluginCaller, route: &Route, access: Access) -> Result<(), Refusal> {
    let refused = |reason: &str| Err(Refusal::no_permission().with_detail(reason));
    if !plugin.permissions.permits_api(route.path, !route.method.is_safe()) {
        return refused("The permissions of the plugin do not include this part of the API.");
    }
    if let Some(reason) = route.refused_to_plugins {
        return refused(reason);
    }
    if matches!(access, Access::PathLogin | Access::QueryLogin) {
        return refused(NO_USER);
    }
    let is_json = match route.answer {
        AnswerShape::Nothing | AnswerShape::One(_) | AnswerShape::Page(_) | AnswerShape::ArrayOrPage(_) => {
            route.inputs.file != Some(FileInput::Required)
        }
        AnswerShape::Content(_)
        | AnswerShape::OneOf(_)
        | AnswerShape::Redirect
        | AnswerShape::StreamOrRedirect(_) => false,
    };
    match is_json {
        true => Ok(()),
        false => refused(
            "Plugins use the parts of the API that take and return JSON, no streams, pictures or files.",
        ),
    }
}

/// Reads a reply, of limited size.
async fn read(reply: Reply) -> ApiAnswer {
    let status = reply.status().as_u16();
    let Ok(body) = Limited::new(reply.into_body(), API_BODY_BYTES_MAX).collect().await else {
        let reason = "The answer has more than 4 MiB. Ask for it in pages, with page and page_size.";
        return ApiAnswer::refused(StatusCode::PAYLOAD_TOO_LARGE.as_u16(), reason);
    };
    let body = body.to_bytes();
    if body.is_empty() {
        return ApiAnswer { status, body: "null".to_owned() };
    }
    match String::from_utf8(body.into()) {
        // JSON is written on one line.
        Ok(body) if !body.contains('\n') => ApiAnswer { status, body },
        _ => ApiAnswer::refused(StatusCode::INTERNAL_SERVER_ERROR.as_u16(), "The answer is not JSON."),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use actors::now_ms;
    use domain::plugin::{ApiAccess, ApiScope, Permissions, PluginKey};
    use domain::time::iso_millis;
    use serde_json::{Value, json};

    use super::*;
    use crate::rest::frame::testing::Rest;
    use crate::rest::{Port, plugin_calls, routes_of};

    /// Paths that only users have something at.
    const PERSONAL: [&str; 5] = [
        "/api/accounts/api-keys/",
        "/api/accounts/users/me/",
        "/api/accounts/users/me/addresses/",
        "/api/channels/favorites/",
        "/api/vod/favorites/",
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
        let call =
            ApiCall { method: method.to_owned(), path: path.to_owned(), query: query.to_owned(), body };
        let answer = plugin_calls(rest.app()).answer(caller.clone(), call).await;
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
            assert!(
                status == 403 && body["detail"].as_str().unwrap().starts_with("Plugins cannot"),
                "{body}"
            );
        }
    }

    #[tokio::test]
    async fn changes_by_a_plugin_are_recorded_with_its_name_and_can_be_undone() {
        let rest = Rest::start().await;
        let caller = scoped(&["*:write"]);
        let (_, channel) =
            call(&rest, &caller, "POST", "/api/channels/channels/", json!({ "name": "One" })).await;
        let deleted = json!({ "channel_ids": [channel["id"]] });
        let (status, body) =
            call(&rest, &caller, "DELETE", "/api/channels/channels/bulk-delete/", deleted).await;
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
}
