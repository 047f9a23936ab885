//! From a request to an answer: finds the route, checks access, reads the input and calls the handler.
//!
//! The order ensures that a refusal reveals nothing that the client may not know, and that the body of a refused client
//! is not read:
//!
//! ```text
//! path ─ 404 ─► method ─ 405 ─► credentials ─ 401 ─► level ─ 403 ─► body ─ 415, 413, 408, 400 ─► input ─ 400 ─► handler
//! ```

use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use futures_util::{Stream, StreamExt};
use http::header::{ALLOW, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Map, Value};
use tokio::time::timeout;
use warp::Filter;
use warp::reply::Response as Reply;

use super::call::Call;
use super::input::{Query, RequestInput};
use super::route::{Access, Answer, Redirect, Route};
use super::router::Router;
use crate::app::App;
use crate::http::Routes;
use crate::http::caller::{Caller, caller};
use crate::http::reply::Refusal;

/// Maximum size of a body without authentication, in bytes.
const ANONYMOUS_BODY_BYTES_MAX: usize = 64 << 10;

/// Returns one filter for all routes. It answers every path that the table covers, and rejects all others.
pub(in crate::rest) fn filter(app: Arc<App>, routes: Vec<Route>) -> Routes {
    let router = Arc::new(Router::new(routes));
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    let is_covered = {
        let router = Arc::clone(&router);
        move |path: warp::path::FullPath| {
            let is_covered = router.covers(path.as_str());
            async move { if is_covered { Ok(()) } else { Err(warp::reject::not_found()) } }
        }
    };
    warp::path::full()
        .and_then(is_covered)
        .untuple_one()
        .and(warp::method())
        .and(warp::path::full())
        .and(query)
        .and(caller())
        .and(warp::header::headers_cloned())
        .and(warp::body::stream())
        .then(move |method, path: warp::path::FullPath, query, caller, headers, body| {
            let request = Request { method, path: path.as_str().to_owned(), query, caller, headers };
            let (router, app) = (Arc::clone(&router), Arc::clone(&app));
            async move { answer(&router, app, request, body).await.unwrap_or_else(Refusal::into_response) }
        })
        .boxed()
}

/// A request without its body.
struct Request {
    method: Method,
    path: String,
    query: String,
    caller: Caller,
    headers: HeaderMap,
}

async fn answer(
    router: &Router,
    app: Arc<App>,
    request: Request,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Reply, Refusal> {
    if request.path == "/api" {
        return Ok(redirect("/api/", &request.query));
    }
    let found = router.find(&request.path).ok_or_else(|| Refusal::not_found("Not found."))?;
    let Some(route) = found.route(&request.method) else {
        if request.method == Method::OPTIONS {
            return Ok(options(&found.allow()));
        }
        return Err(Refusal::wrong_method(&request.method, found.allow()));
    };
    let user = match route.access {
        Access::Anyone => app.auth.user_of(&request.headers).ok().flatten(),
        Access::Networks(class) => {
            class.check(&app, &request.caller)?;
            None
        }
        Access::From(level) => {
            let user = app.auth.user_of(&request.headers)?.ok_or_else(Refusal::no_credentials)?;
            if !user.may(level) {
                return Err(Refusal::no_permission());
            }
            Some(user)
        }
    };
    let body = if route.inputs.body.is_some() {
        let bytes_max = match user {
            Some(_) => app.config.limits.body_bytes_max,
            None => app.config.limits.body_bytes_max.min(ANONYMOUS_BODY_BYTES_MAX),
        };
        read_body(&request.headers, bytes_max, app.config.limits.body_timeout, body).await?
    } else {
        Value::Null
    };
    let query = Arc::new(Query::parse(&request.query));
    let input = RequestInput { query: Arc::clone(&query), body, is_partial: route.method == Method::PATCH };
    let call = Call {
        app,
        caller: request.caller,
        headers: request.headers,
        user,
        parameters: found.parameters.clone(),
        path: request.path,
        query,
    };
    (route.handler)(call, &input).await
}

/// Redirects without naming a host, so that the client stays on the host it used.
fn redirect(path: &str, query: &str) -> Reply {
    let location = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    Redirect(location).into_reply()
}

fn options(allow: &str) -> Reply {
    let mut reply = Reply::default();
    *reply.status_mut() = StatusCode::NO_CONTENT;
    if let Ok(allow) = HeaderValue::from_str(allow) {
        reply.headers_mut().insert(ALLOW, allow);
    }
    reply
}

/// Reads a body as JSON. An empty body is read as `{}`.
async fn read_body(
    headers: &HeaderMap,
    bytes_max: usize,
    time_max: Duration,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Value, Refusal> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|it| it > bytes_max) {
        return Err(Refusal::too_large(bytes_max));
    }
    let read = timeout(time_max, collect(bytes_max, body));
    let bytes = read.await.map_err(|_| Refusal::status(StatusCode::REQUEST_TIMEOUT))??;
    if bytes.is_empty() {
        return Ok(Map::new().into());
    }
    check_content_type(headers)?;
    // The parser refuses more than 128 levels of nesting, which would otherwise exhaust the stack.
    serde_json::from_slice(&bytes)
        .map_err(|error| Refusal::bad_request(format!("JSON parse error - {error}")))
}

async fn collect(
    bytes_max: usize,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Vec<u8>, Refusal> {
    let mut bytes = Vec::new();
    let mut body = std::pin::pin!(body);
    while let Some(part) = body.next().await {
        let mut part = part.map_err(|_| Refusal::bad_request("The body ended early."))?;
        if bytes.len() + part.remaining() > bytes_max {
            return Err(Refusal::too_large(bytes_max));
        }
        while part.has_remaining() {
            let chunk = part.chunk();
            bytes.extend_from_slice(chunk);
            let n = chunk.len();
            part.advance(n);
        }
    }
    Ok(bytes)
}

/// Checks that a body is declared as JSON or not at all, and is not compressed: a compressed body hides its size.
fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    if let Some(coding) = headers.get(CONTENT_ENCODING).filter(|it| *it != "identity") {
        return Err(Refusal::unsupported(&format!("content coding {coding:?}")));
    }
    let Some(content_type) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let text = content_type.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_json = essence == "application/json"
        || essence.strip_prefix("application/").is_some_and(|it| it.ends_with("+json"));
    if is_json { Ok(()) } else { Err(Refusal::unsupported(&format!("media type {content_type:?}"))) }
}
