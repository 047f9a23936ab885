//! The steps before and after a handler.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::AUTHORIZATION;
use http_body_util::BodyExt;
use route_frame::access::{Access, STREAMER};
use route_frame::call::Call;
use route_frame::dispatch::run;
use route_frame::route::Route;
use server::reply::Refusal;
use tokio::time::Instant;

use crate::testing::{self, Rest};

/// Holds T-load.1.
#[tokio::test]
async fn a_user_without_admin_rights_who_writes_often_waits() {
    let rest = Rest::start().await;
    let route = Route::post("/api/changes/", STREAMER, "Changes.", holders);
    let begun = Instant::now();
    // 60 at once, and one after a quarter of a second.
    for _ in 0..61 {
        let mut call = rest.call(&route);
        let bearer = rest.bearer(testing::STREAMER);
        call.headers.insert(AUTHORIZATION, bearer.parse().unwrap());
        run(&route, call, futures_util::stream::empty::<Result<Bytes, _>>()).await.unwrap();
    }
    assert!(begun.elapsed() >= Duration::from_millis(250), "{:?}", begun.elapsed());
}

/// Counts the holders of the query, which the input shares with the call.
async fn holders(call: Call) -> Result<usize, Refusal> {
    Ok(Arc::strong_count(&call.query))
}

/// Holds T-load.1.
#[tokio::test]
async fn the_input_of_a_request_is_dropped_before_its_handler_waits() {
    let rest = Rest::start().await;
    let route = Route::get("/api/holders/", Access::Anyone, "Counts.", holders);
    let call = rest.call(&route);
    let reply = run(&route, call, futures_util::stream::empty::<Result<Bytes, _>>()).await.unwrap();
    let text = reply.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(&text[..], b"1");
}
