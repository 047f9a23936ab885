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
use crate::context::FrameContext;

/// Why a plugin is refused where callers have things of their own.
const NO_USER: &str = "This belongs to users, and a plugin is not a user.";

/// Answers the calls of plugins over the pipes of their processes.
pub struct PluginCalls {
    /// Weak, because the context holds the plugins, which hold this.
    frame: Weak<FrameContext>,
    router: Router,
}

impl PluginCalls {
    /// Makes one that knows these routes.
    pub fn new(frame: &Arc<FrameContext>, routes: Vec<Route>) -> Self {
        Self { frame: Arc::downgrade(frame), router: Router::new(routes) }
    }

    /// Answers a call. Never fails: refusals are answers.
    pub async fn answer(&self, caller: Arc<PluginCaller>, call: ApiCall) -> ApiAnswer {
        let Some(frame) = self.frame.upgrade() else {
            return ApiAnswer::refused(503, "The gateway is stopping.");
        };
        let reply = match self.dispatch(frame, caller, call).await {
            Ok(reply) => reply,
            Err(refusal) => refusal.into_response(),
        };
        read(reply).await
    }

    async fn dispatch(
        &self,
        frame: Arc<FrameContext>,
        caller: Arc<PluginCaller>,
        sent: ApiCall,
    ) -> Result<Reply, Refusal> {
        let found = self.router.find(&sent.path).ok_or_else(|| Refusal::not_found("Not found."))?;
        let method = Method::from_bytes(sent.method.as_bytes()).unwrap_or_default();
        let route = found.route(&method).cloned();
        let route = route.ok_or_else(|| Refusal::wrong_method(&method, found.allow()))?;
        let body = sent.body.map(|it| Bytes::from(it.to_string())).unwrap_or_default();
        let connection = own_connection(&frame, &caller)?;
        let mut call = Call {
            method,
            parameters: found.parameters,
            path: sent.path,
            query: Arc::new(Query::parse(&sent.query)),
            ..Call::new(frame, &route, connection)
        };
        call.headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        call.become_plugin(caller, &route)?;
        let body = (!body.is_empty()).then_some(Ok::<_, warp::Error>(body));
        run(&route, call, stream::iter(body)).await
    }
}

/// Returns the caller of a call over pipes, which the audit shows.
fn own_connection(frame: &FrameContext, caller: &PluginCaller) -> Result<Caller, Refusal> {
    let local = SocketAddr::from((Ipv4Addr::LOCALHOST, frame.config.api_listen.address().port()));
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
        let Some(plugin) = token.and_then(|it| self.frame.plugin_processes.handle.caller(it)) else {
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

    /// Returns whether a plugin calls.
    pub fn is_plugin(&self) -> bool {
        self.plugin.is_some()
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
///
/// # Errors
/// The refusal that the plugin gets.
pub fn check(plugin: &PluginCaller, route: &Route, access: Access) -> Result<(), Refusal> {
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
