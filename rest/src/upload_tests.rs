//! Uploaded files, through the steps before a handler.

use bytes::Bytes;
use futures_util::stream;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http_body_util::BodyExt;
use resource_derive::Body;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::dispatch;
use route_frame::route::Route;
use route_frame::upload::{PARTS_MAX, Upload};
use serde_json::{Value, json};
use server::reply::Refusal;

use crate::testing::{self, Rest};

/// A body beside a file.
#[derive(Debug, Body)]
struct Labels {
    /// A text.
    label: String,
    /// A number.
    number: Option<u32>,
}

async fn both(_: Call, (labels, file): (Labels, Option<Upload>)) -> Result<Value, Refusal> {
    let bytes = file.as_ref().map(|it| String::from_utf8_lossy(&it.bytes().unwrap()).into_owned());
    let name = file.as_ref().and_then(Upload::file_name);
    Ok(json!([labels.label, labels.number, bytes, name]))
}

async fn only(_: Call, file: Upload) -> Result<Value, Refusal> {
    Ok(json!([String::from_utf8_lossy(&file.bytes().unwrap())]))
}

const BYTES_MAX: u64 = 1000;

fn with_labels() -> Route {
    Route::post("/api/labels/", ADMIN, "Stores.", both).with_upload(BYTES_MAX)
}

fn alone() -> Route {
    Route::post("/api/files/", ADMIN, "Stores.", only).with_upload(BYTES_MAX)
}

async fn send(route: &Route, content_type: &str, body: impl Into<Bytes>) -> (u16, Value) {
    let rest = Rest::start().await;
    let mut call = rest.call(route);
    call.headers.insert(AUTHORIZATION, rest.bearer(testing::ADMIN).parse().unwrap());
    if !content_type.is_empty() {
        call.headers.insert(CONTENT_TYPE, content_type.parse().unwrap());
    }
    // In small pieces, as a slow connection delivers them.
    let body: Bytes = body.into();
    let pieces: Vec<Result<Bytes, warp::Error>> =
        body.chunks(7).map(|it| Ok(Bytes::copy_from_slice(it))).collect();
    let reply = dispatch::run(route, call, stream::iter(pieces)).await;
    let reply = reply.unwrap_or_else(Refusal::into_response);
    let status = reply.status().as_u16();
    let text = reply.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&text).unwrap())
}

const MULTIPART: &str = "multipart/form-data; boundary=XX";

/// Returns a body of parts: the parameters of the disposition, and the content.
fn parts(parts: &[(&str, &str)]) -> String {
    let one = |(disposition, content): &(&str, &str)| {
        format!("--XX\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{content}\r\n")
    };
    parts.iter().map(one).collect::<String>() + "--XX--\r\n"
}

#[tokio::test]
async fn a_file_and_fields_arrive_in_one_body() {
    let body = parts(&[
        ("name=\"label\"", "one"),
        ("name=\"file\"; filename=\"../a.m3u\"", "#EXTM3U\r\n"),
        ("name=\"number\"", "7"),
    ]);
    assert_eq!(
        send(&with_labels(), MULTIPART, body).await,
        (200, json!(["one", 7, "#EXTM3U\r\n", "../a.m3u"]))
    );
    let body = parts(&[("name=\"label\"", "one")]);
    assert_eq!(send(&with_labels(), MULTIPART, body).await, (200, json!(["one", null, null, null])));
    let body = json!({ "label": "one" }).to_string();
    assert_eq!(send(&with_labels(), "application/json", body).await, (200, json!(["one", null, null, null])));
}

#[tokio::test]
async fn a_body_can_be_the_file_itself() {
    assert_eq!(send(&alone(), "image/png", "abc").await, (200, json!(["abc"])));
    assert_eq!(send(&alone(), "", "abc").await, (200, json!(["abc"])));
    let codes = json!({ "file": [{ "code": "required", "values": {} }] });
    let required = json!({ "file": ["This field is required."], "codes": codes });
    assert_eq!(send(&alone(), "image/png", "").await, (400, required.clone()));
    assert_eq!(send(&alone(), MULTIPART, parts(&[("name=\"a\"", "b")])).await, (400, required));
    let (status, _) = send(&with_labels(), "image/png", "abc").await;
    assert_eq!(status, 415, "a body of fields is not a picture");
}

#[tokio::test]
async fn an_upload_that_is_too_large_or_malformed_is_refused() {
    let fits = "a".repeat(1000);
    let large = "a".repeat(1001);
    assert_eq!(send(&alone(), "text/plain", fits.clone()).await.0, 200);
    assert_eq!(send(&alone(), "text/plain", large.clone()).await.0, 413);
    let file = "name=\"file\"; filename=\"a\"";
    assert_eq!(send(&alone(), MULTIPART, parts(&[(file, &fits)])).await.0, 200);
    assert_eq!(send(&alone(), MULTIPART, parts(&[(file, &large)])).await.0, 413);
    let texts = "a".repeat(70_000);
    assert_eq!(send(&with_labels(), MULTIPART, parts(&[("name=\"label\"", &texts)])).await.0, 413);
    let many: Vec<_> = (0..=PARTS_MAX).map(|_| ("name=\"label\"", "a")).collect();
    assert_eq!(send(&with_labels(), MULTIPART, parts(&many)).await.0, 400);
    let twice = send(&alone(), MULTIPART, parts(&[(file, "a"), (file, "b")])).await;
    assert_eq!(twice, (400, json!({ "file": ["Send one file only."] })));
    for body in [
        "",
        "--XX",
        "--XX\r\n\r\n",
        "--YY--\r\n",
        "rubbish",
        "--XX\r\nContent-Disposition: form-data\r\n\r\na",
    ] {
        assert_eq!(send(&alone(), MULTIPART, body).await.0, 400, "{body:?}");
    }
    assert_eq!(send(&alone(), "multipart/form-data", "a").await.0, 400, "no boundary");
}
