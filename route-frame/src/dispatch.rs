//! From a request to an answer: finds the route, checks access, reads the input and calls the handler.
//!
//! The order ensures that a refusal reveals nothing that the client may not know, and that the body of a refused client
//! is not read:
//!
//! ```text
//! path ─ 404 ─► method ─ 405 ─► network ─ 403 ─► credentials ─ 401 ─► level ─ 403 ─► body ─ 415, 413, 408, 400 ─►
//! input ─ 400 ─► handler
//! ```
//!
//! Only a form with the name and the password of a user is read before the credentials are checked.

use std::sync::Arc;
use std::time::Duration;

use bytes::Buf;
use domain::clients::ERROR_MEMBERS;
use domain::query::Query;
use futures_util::{Stream, StreamExt};
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONTENT_ENCODING, CONTENT_LENGTH,
    CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH, ORIGIN, VARY, WARNING,
};
use http::{HeaderMap, Method, StatusCode};
use parking_lot::Mutex;
use serde_json::{Map, Value};
use server::Routes;
use server::caller::{Caller, caller};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use tokio::time::timeout;
use warp::Filter;
use warp::reply::Response as Reply;

use super::access::Access;
use super::call::{Call, QUERY_PASSWORD, QUERY_USERNAME};
use super::input::{FileInput, RequestInput};
use super::list::{self, ORDERING, STRICT};
use super::revision::{IfMatch, RecordKey, tag};
use super::route::{Answer, PageReaders, Redirect, Route};
use super::router::{PathMatch, Router};
use super::upload::{FILE, Upload, UploadLimits, read_multipart, read_whole};
use crate::context::FrameContext;

/// Some editors write it before a text in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Maximum length of the name of an unknown field in an answer, in characters.
const MEMBER_CHARS_MAX: usize = 60;
/// Maximum size of a body without authentication, in bytes.
const ANONYMOUS_BODY_BYTES_MAX: usize = 4 << 10;

/// Returns one filter for all routes. It answers every request.
pub fn filter(frame: Arc<FrameContext>, routes: Vec<Route>) -> Routes {
    let router = Arc::new(Router::new(routes));
    let query = warp::query::raw().or(warp::any().map(String::new)).unify();
    warp::method()
        .and(warp::path::full())
        .and(query)
        .and(caller())
        .and(warp::header::headers_cloned())
        .and(warp::body::stream())
        .then(move |method, path: warp::path::FullPath, query, caller, headers, body| {
            let request = Request { method, path: path.as_str().to_owned(), query, caller, headers };
            let (router, frame) = (Arc::clone(&router), Arc::clone(&frame));
            async move { answer_to_page(&router, frame, request, body).await }
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

/// Answers a request, which a page of another origin may have sent.
async fn answer_to_page(
    router: &Router,
    frame: Arc<FrameContext>,
    request: Request,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Reply {
    let origin = request
        .headers
        .get(ORIGIN)
        .filter(|it| it.to_str().is_ok_and(|origin| frame.config.http.allowed_origins.contains(origin)));
    let (origin, is_preflight) = (origin.cloned(), request.method == Method::OPTIONS);
    let mut reply = answer(router, frame, request, body).await.unwrap_or_else(Refusal::into_response);
    if let Some(origin) = origin {
        for_allowed_page(origin, is_preflight, &mut reply);
    }
    reply
}

async fn answer(
    router: &Router,
    frame: Arc<FrameContext>,
    request: Request,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Reply, Refusal> {
    if request.path == "/api" {
        return Ok(redirect("api/", &request.query));
    }
    let found = router.find(&request.path).ok_or_else(|| Refusal::not_found("Not found."))?;
    let Some(route) = found.route(&request.method).cloned() else {
        if request.method == Method::OPTIONS {
            return Ok(options(&found));
        }
        return Err(Refusal::wrong_method(&request.method, found.allow()));
    };
    let get = found.route(&Method::GET).cloned();
    let has_every_reader = route.readers == PageReaders::Every;
    let call = Call {
        method: request.method,
        headers: request.headers,
        network_class: route.network_class,
        parameters: found.parameters,
        path: request.path,
        query: Arc::new(Query::parse(&request.query)),
        ..Call::new(frame, &route, request.caller)
    };
    // A deletion has no answer that could be the record.
    let shows_record =
        route.record.is_some() && call.method != Method::DELETE && call.headers.contains_key(IF_MATCH);
    let present = get.filter(|_| shows_record).map(|it| (it, call.clone()));
    let on_refusal = route.on_refusal.filter(|_| call.method == Method::GET).map(|it| (it, call.clone()));
    let mut answer = run(&route, call, body).await;
    if let Some((on_refusal, call)) = on_refusal
        && let Err(refusal) = answer
    {
        answer = on_refusal(call, refusal).await;
    }
    if let (Some((get, call)), Err(refusal)) = (present, &answer)
        && refusal.is(StatusCode::PRECONDITION_FAILED)
    {
        return with_present_record(&get, call).await;
    }
    if has_every_reader { Ok(for_every_page(answer)) } else { answer }
}

/// Answers a write whose condition does not hold: with the record as the caller sees it now.
async fn with_present_record(get: &Route, call: Call) -> Result<Reply, Refusal> {
    let call = Call { method: Method::GET, pattern: get.path, ..call };
    let mut reply = run(get, call, futures_util::stream::empty::<Result<bytes::Bytes, _>>()).await?;
    *reply.status_mut() = StatusCode::PRECONDITION_FAILED;
    Ok(reply)
}

/// Lets pages of any origin read an answer.
fn for_every_page(answer: Result<Reply, Refusal>) -> Reply {
    let mut reply = answer.unwrap_or_else(Refusal::into_response);
    reply.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    reply
}

/// Lets a page of one of the configured origins read an answer, and answers its preflight request.
fn for_allowed_page(origin: HeaderValue, is_preflight: bool, reply: &mut Reply) {
    let headers = reply.headers_mut();
    // Caches must not give the answer for one origin to another.
    headers.append(VARY, HeaderValue::from_static("Origin"));
    if headers.contains_key(ACCESS_CONTROL_ALLOW_ORIGIN) {
        return;
    }
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("*"));
    if is_preflight && let Some(allow) = headers.get(ALLOW).cloned() {
        insert_preflight(headers, allow);
    }
}

/// Adds what pages may send.
fn insert_preflight(headers: &mut HeaderMap, allow: HeaderValue) {
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, allow);
    // The wildcard does not include `Authorization`.
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    // One day.
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
}

/// Checks the access, reads the body and calls the handler.
///
/// # Errors
/// The refusal, which is also an answer.
pub async fn run(
    route: &Route,
    mut call: Call,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Reply, Refusal> {
    call.check_connect()?;
    let mut body = std::pin::pin!(body);
    if matches!(route.access, Access::QueryLogin) {
        let form = if route.takes_form() { read_form(&call, body.as_mut()).await? } else { Vec::new() };
        let names = route.inputs.query.iter().map(|it| it.name).chain([QUERY_USERNAME, QUERY_PASSWORD]);
        let query = call.query.with_form(&form, names);
        let twice = |name| FieldErrors::new(name, "This parameter occurs several times.");
        call.query = Arc::new(query.map_err(twice)?);
    }
    if !call.authenticate_plugin(route)? {
        call.user = route.access.authenticate(&call, route.permission).await?;
    }
    if let Err(refusal) = call.check_user() {
        // Where everyone may call, credentials that are not valid here are treated like missing ones.
        if !matches!(route.access, Access::Anyone) {
            return Err(refusal);
        }
        call.user = None;
    }
    call.check_place(route.access.for_parameters(&call.parameters))?;
    let (body, file) = read_input(route, &call, body).await?;
    let is_partial = route.method == Method::PATCH;
    if let Some(shape) = route.inputs.body.filter(|_| is_partial) {
        shape.check_any_field(&body)?;
    }
    let mut warning = warning_of_unknown(route, &call.query, &body)?;
    if let Some(value) = list::unknown_ordering(route, &call.query) {
        call.query = Arc::new(call.query.without(ORDERING));
        warning = warning_naming("unknown ordering", &[value.as_str()]);
    }
    if let Some(user) = call.user.as_ref().filter(|_| route.is_write()) {
        call.frame.write_pace.wait(user).await;
    }
    call.fields = route.inputs.body.map(|it| it.sent_fields(&body)).unwrap_or_default();
    call.fields.extend(file.as_ref().map(|_| FILE));
    let input = RequestInput { query: Arc::clone(&call.query), body, file, is_partial };
    let revision = Revision::new(route, &mut call)?;
    let is_for_every_page = route.readers == PageReaders::WithLogin && call.user.is_some();
    let answer = (route.handler)(call, &input)?;
    // The handler may wait for long.
    drop(input);
    let mut answer = answer.await;
    if let Ok(reply) = &mut answer {
        reply.headers_mut().extend(warning.map(|it| (WARNING, it)));
        revision.describe(reply);
    }
    let error = ERROR_MEMBERS.iter().find(|it| it.path == route.path);
    let answer = answer.map_err(|it| match error {
        Some(error) => it.with_error(error.has_success),
        None => it,
    });
    if is_for_every_page { Ok(for_every_page(answer)) } else { answer }
}

/// The revision of the record of an answer.
struct Revision {
    /// For a read: as it was before, so that a change meanwhile does not get the tag of the older record.
    before: Option<u64>,
    /// For a write.
    written: Arc<Mutex<Option<u64>>>,
}

impl Revision {
    /// Notes the record that a request is about, and the condition of a write.
    ///
    /// # Errors
    /// The record is another one than the client knows: 412.
    fn new(route: &Route, call: &mut Call) -> Result<Self, Refusal> {
        let mut before = None;
        if let Some(collection) = route.record {
            let key = RecordKey { collection, id: call.id()? };
            let digest = || call.frame.models.store.digest(collection, key.id);
            match route.is_write() {
                true => {
                    let if_match = IfMatch::from_headers(&call.headers);
                    if_match.as_ref().map_or(Ok(()), |it| it.check(digest()?))?;
                    call.if_match = if_match;
                }
                false => before = digest()?,
            }
            call.record = Some(key);
        }
        Ok(Self { before, written: Arc::clone(&call.written) })
    }

    /// Adds the entity tag, unless the answer has one.
    fn describe(&self, reply: &mut Reply) {
        let digest = self.before.or_else(|| self.written.lock().take());
        if let Some(digest) = digest.filter(|_| reply.status().is_success()) {
            reply.headers_mut().entry(ETAG).or_insert_with(|| tag(digest));
        }
    }
}

/// Returns a header that names the members of a body that are not fields, if it has such.
///
/// # Errors
/// There are such members, and the client asks for `strict=true`.
fn warning_of_unknown(route: &Route, query: &Query, body: &Value) -> Result<Option<HeaderValue>, Refusal> {
    let Some(shape) = route.inputs.body else { return Ok(None) };
    let unknown = shape.unknown_members(body, route.answer.fields());
    if unknown.is_empty() {
        return Ok(None);
    }
    if query.single(STRICT) == Some("true") {
        let mut errors = FieldErrors::default();
        for name in unknown {
            errors.add(name, "There is no such field.");
        }
        return Err(errors.into());
    }
    Ok(warning_naming("unknown fields", &unknown))
}

/// Returns a header `Warning` that names something of a request.
fn warning_naming(what: &str, names: &[&str]) -> Option<HeaderValue> {
    // The names are those of the client, and a header has no line breaks and quotes.
    let is_plain = |it: &char| it.is_ascii_graphic() && !matches!(it, '"' | '\\');
    let shown = |name: &&str| name.chars().take(MEMBER_CHARS_MAX).filter(is_plain).collect::<String>();
    let names: Vec<String> = names.iter().map(shown).collect();
    // Code 299 of RFC 7234 is for any text.
    HeaderValue::try_from(format!("299 - \"{what}: {}\"", names.join(", "))).ok()
}

/// Reads the body as the fields and the file that the route takes.
async fn read_input(
    route: &Route,
    call: &Call,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<(Value, Option<Upload>), Refusal> {
    let limits = &call.frame.config.limits;
    let content_type = call.headers.get(CONTENT_TYPE).and_then(|it| it.to_str().ok());
    let essence = content_type.map(essence);
    if let Some(needed) = route.inputs.file
        // Only users upload files.
        && call.user.is_some()
    {
        let upload = UploadLimits { bytes_max: route.upload_bytes_max, silence_max: limits.body_timeout };
        match (content_type, essence.as_deref()) {
            (Some(content_type), Some("multipart/form-data")) => {
                return read_multipart(content_type, &call.frame.files, upload, body).await;
            }
            (_, Some("application/json")) => {}
            _ if needed == FileInput::Required => {
                check_content_coding(&call.headers)?;
                let file = read_whole(&call.frame.files, upload, body).await?;
                return Ok((Map::new().into(), file));
            }
            _ => {}
        }
    }
    if !route.inputs.has_body() {
        return Ok((Value::Null, None));
    }
    let bytes_max = match call.user {
        Some(_) => limits.body_bytes_max.min(route.body_bytes_max),
        None => limits.body_bytes_max.min(ANONYMOUS_BODY_BYTES_MAX),
    };
    Ok((read_body(&call.headers, bytes_max, limits.body_timeout, body).await?, None))
}

/// Returns a media type without its parameters, in lower case.
fn essence(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// Redirects to a path beside that of the request, so that the client stays on the host and below the path it used.
fn redirect(path: &str, query: &str) -> Reply {
    let location = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
    Redirect(location).into_reply()
}

/// Lists the methods of a path, and answers CORS preflight requests where pages of any origin may read the answers.
fn options(found: &PathMatch<'_>) -> Reply {
    let mut reply = Reply::default();
    *reply.status_mut() = StatusCode::NO_CONTENT;
    let Ok(allow) = HeaderValue::from_str(&found.allow()) else { return reply };
    let headers = reply.headers_mut();
    if found.is_for_any_origin() {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
        insert_preflight(headers, allow.clone());
    }
    headers.insert(ALLOW, allow);
    reply
}

/// Reads a form, whose sender is not known yet. Apps that send the parameters in the query may add an empty body of any
/// type.
async fn read_form(
    call: &Call,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Vec<u8>, Refusal> {
    let limits = &call.frame.config.limits;
    let bytes_max = limits.body_bytes_max.min(ANONYMOUS_BODY_BYTES_MAX);
    let bytes = read_bytes(&call.headers, bytes_max, limits.body_timeout, body).await?;
    if bytes.is_empty() {
        return Ok(bytes);
    }
    check_content_coding(&call.headers)?;
    let content_type = call.headers.get(CONTENT_TYPE).map(|it| it.to_str().unwrap_or("unknown"));
    match content_type.map(|it| (it, essence(it))) {
        Some((sent, essence)) if essence != "application/x-www-form-urlencoded" => {
            Err(Refusal::unsupported(&format!("media type {sent:?}")))
        }
        _ => Ok(bytes),
    }
}

/// Reads a body of limited size within a limited time.
async fn read_bytes(
    headers: &HeaderMap,
    bytes_max: usize,
    time_max: Duration,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Vec<u8>, Refusal> {
    let announced = headers.get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<usize>().ok());
    if announced.is_some_and(|it| it > bytes_max) {
        return Err(Refusal::too_large(bytes_max));
    }
    let read = timeout(time_max, collect(bytes_max, body));
    read.await.map_err(|_| Refusal::status(StatusCode::REQUEST_TIMEOUT))?
}

/// Reads a body as JSON. An empty body is read as `{}`.
async fn read_body(
    headers: &HeaderMap,
    bytes_max: usize,
    time_max: Duration,
    body: impl Stream<Item = Result<impl Buf, warp::Error>> + Send,
) -> Result<Value, Refusal> {
    let bytes = read_bytes(headers, bytes_max, time_max, body).await?;
    if bytes.is_empty() {
        return Ok(Map::new().into());
    }
    check_content_type(headers)?;
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&bytes);
    // The parser refuses more than 128 levels of nesting, which would otherwise exhaust the stack.
    serde_json::from_slice(bytes).map_err(|error| Refusal::bad_request(format!("JSON parse error - {error}")))
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
    check_content_coding(headers)?;
    let Some(content_type) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = essence(content_type.to_str().unwrap_or_default());
    let is_json = essence == "application/json"
        || essence.strip_prefix("application/").is_some_and(|it| it.ends_with("+json"));
    if is_json { Ok(()) } else { Err(Refusal::unsupported(&format!("media type {content_type:?}"))) }
}

fn check_content_coding(headers: &HeaderMap) -> Result<(), Refusal> {
    match headers.get(CONTENT_ENCODING).filter(|it| *it != "identity") {
        Some(coding) => Err(Refusal::unsupported(&format!("content coding {coding:?}"))),
        None => Ok(()),
    }
}
