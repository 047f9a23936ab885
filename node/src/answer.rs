//! Answers of the node port, and the reading of bodies.

use std::io;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::time::timeout;
use warp::reply::Response as Reply;

use super::time_limits::BODY_TIMEOUT;

pub(super) type NodeBody = UnsyncBoxBody<Bytes, io::Error>;

pub(super) fn refuse(status: StatusCode, detail: &str) -> Response<NodeBody> {
    let body = json!({ "detail": detail }).to_string();
    reply(status, "application/json", body.into_bytes())
}

/// Returns a reply with a value as JSON.
pub(super) fn json_reply(status: StatusCode, value: &impl Serialize) -> Response<NodeBody> {
    match serde_json::to_vec(value) {
        Ok(body) => reply(status, "application/json", body),
        Err(_) => refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error"),
    }
}

/// Returns the reply of a route of another port.
pub(super) fn passed_on(reply: Reply) -> Response<NodeBody> {
    reply.map(|body| body.map_err(io::Error::other).boxed_unsync())
}

pub(super) fn reply(status: StatusCode, content_type: &'static str, body: Vec<u8>) -> Response<NodeBody> {
    let body = Full::new(Bytes::from(body)).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Reads a body of at most this size; `None` if it is longer, or does not arrive in time.
pub(super) async fn read_body(body: Incoming, bytes_max: usize) -> Option<Bytes> {
    let reading = timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect());
    Some(reading.await.ok()?.ok()?.to_bytes())
}

/// Reads a body as [`read_body`] does; `None` also if this version does not know its content.
pub(super) async fn read_json<T: DeserializeOwned>(body: Incoming, bytes_max: usize) -> Option<T> {
    serde_json::from_slice(&read_body(body, bytes_max).await?).ok()
}
