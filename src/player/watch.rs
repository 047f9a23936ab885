//! A target as an endless transport stream, whichever address it was asked for by.
//!
//! ```text
//! HEAD ─► headers at once, nothing is opened
//! GET ─► known 404 ─► switchboard ─┬─ Redirect ─► 302
//!                                  ├─ Refused ──► 404 or 503
//!                                  └─ Tail ─ first real chunk ─► 200, body
//!                                               └─ none in time ─► 503
//! ```

use actors::{AskError, SeatRequest, Target, Viewer, WatchRefusal, WatchReply, WatchRequest};
use domain::ids::UserId;
use domain::source_url::SourceUrl;
use domain::user::User;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_MAX_AGE, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName, HeaderValue,
    LOCATION,
};
use http::{HeaderMap, Method, StatusCode};
use media::{EndReason, Tail};
use tokio::time::timeout;
use tracing::info;
use warp::reply::Response as Reply;

use super::body::TailBody;
use crate::app::App;
use crate::auth::Denied;
use crate::http::caller::Caller;
use crate::http::reply::{Refusal, TunerError};

/// The methods of every address of a stream.
pub(super) const METHODS: &str = "GET, HEAD, OPTIONS";
/// Tells reverse proxies to pass the stream on as it comes.
const ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");

/// Answers a request for `target`. Whether the caller may have it is decided before, except for the seat of `user`.
pub(super) async fn watch(
    app: &App,
    target: Target,
    user: Option<&User>,
    method: &Method,
    caller: Caller,
) -> Result<Reply, Refusal> {
    if !app.plans.exists(&target) {
        return Err(unknown_channel());
    }
    if method == Method::HEAD {
        return Ok(streaming(warp::reply::stream(futures_util::stream::empty::<
            Result<Vec<u8>, std::io::Error>,
        >())));
    }
    let client_address = caller.address();
    let viewer =
        Viewer { user: user.map(|it| it.username.clone()), address: client_address, agent: caller.agent };
    let seat = user.map(|it| SeatRequest { user: it.id, limit: it.stream_limit });
    let request = WatchRequest { target, viewer, connection: caller.connection, seat };
    match app.switchboard.watch(request).await {
        Ok(WatchReply::Tail { client, tail }) => {
            // Whoever was let go while asking had no session yet that could be ended.
            if user.is_some_and(|it| !is_active(app, it.id)) {
                return Err(Denied::Inactive.into());
            }
            let tail = first_packets(tail, app.settings.load().start_timeout).await.inspect_err(|refusal| {
                info!(channel.target = %target, client.id = client, client.address = %client_address, "client got no packets: {refusal}");
            })?;
            Ok(streaming(warp::reply::stream(TailBody::new(tail))))
        }
        Ok(WatchReply::Redirect(url)) => redirect(&url),
        Ok(WatchReply::Refused(reason)) => {
            info!(channel.target = %target, client.address = %client_address, "client refused: {reason}");
            Err(no_watch(&reason))
        }
        Err(AskError::Timeout) => Err(busy("the gateway does not answer in time")),
        Err(AskError::Gone) => Err(busy("the gateway is stopping")),
    }
}

/// Returns true if the user still exists and is active.
fn is_active(app: &App, user: UserId) -> bool {
    app.models.users.load().get(user.0).is_some_and(|it| it.is_active)
}

/// The answer, with what lets a page of another origin read it: players in a browser live on one, and need to read
/// refusals too.
pub(super) fn for_any_origin(answer: Result<Reply, Refusal>) -> Reply {
    let mut response = answer.unwrap_or_else(Refusal::into_response);
    response.headers_mut().insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    response
}

/// Waits for real packets: until they are there, no status is given away.
async fn first_packets(mut tail: Tail, start_timeout: std::time::Duration) -> Result<Tail, Refusal> {
    match timeout(start_timeout, tail.ready()).await {
        Ok(Ok(())) => Ok(tail),
        Ok(Err(end)) => Err(no_packets(&end)),
        Err(_) => {
            let detail = format!("no stream of the channel played within {} s", start_timeout.as_secs_f64());
            Err(Refusal::unavailable(detail).with_tuner_error(TunerError::NoVideoData))
        }
    }
}

/// The answer to a client whose tail ended before it began.
fn no_packets(end: &EndReason) -> Refusal {
    let refusal = Refusal::unavailable(end.to_string());
    match end {
        EndReason::NoSlot(_) => refusal.with_tuner_error(TunerError::AllTunersInUse).retry_soon(),
        EndReason::NothingPlays(_) | EndReason::Silent => refusal.with_tuner_error(TunerError::NoVideoData),
        EndReason::Closed | EndReason::Stopped | EndReason::Kicked | EndReason::TooSlow => {
            refusal.with_tuner_error(TunerError::SystemBusy).retry_soon()
        }
    }
}

/// The answer to a client that gets no tail.
fn no_watch(reason: &WatchRefusal) -> Refusal {
    let detail = reason.to_string();
    match reason {
        WatchRefusal::NotFound => unknown_channel(),
        WatchRefusal::NoStreams | WatchRefusal::Unplayable(_) => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::TuneFailed)
        }
        WatchRefusal::Full(pool) => {
            let detail = format!("{detail}; the longest has played for {} s", pool.since.as_secs());
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        // Not 403: players take that for a wrong password, and the user would look for the fault there.
        WatchRefusal::Seats { .. } => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        WatchRefusal::NothingPlays(_) => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::NoVideoData)
        }
        WatchRefusal::Stopping => busy("the channel is stopping"),
    }
}

/// The answer where there is no such channel, and the same where the caller does not see it.
pub(super) fn unknown_channel() -> Refusal {
    Refusal::not_found("no such channel").with_tuner_error(TunerError::UnknownChannel)
}

fn busy(detail: &str) -> Refusal {
    Refusal::unavailable(detail).with_tuner_error(TunerError::SystemBusy).retry_soon()
}

/// The headers of a stream, with this body. It has no length and no end that anybody could seek to; and whoever is
/// told that it is over must hang up, because media servers hold on to silent tuners.
fn streaming(body: impl warp::Reply) -> Reply {
    let mut response = body.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("video/mp2t"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    headers.insert(ACCEL_BUFFERING, HeaderValue::from_static("no"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

fn redirect(url: &SourceUrl) -> Result<Reply, Refusal> {
    let Ok(location) = HeaderValue::from_str(url.expose()) else {
        return Err(Refusal::unavailable("the address of the stream cannot be sent")
            .with_tuner_error(TunerError::TuneFailed));
    };
    let mut response = crate::http::reply::text(StatusCode::FOUND, "");
    response.headers_mut().insert(LOCATION, location);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, no-store"));
    Ok(response)
}

/// What a browser asks before it lets a page read a stream. Browsers send no credentials by themselves here, so no
/// origin is special.
pub(super) fn preflight() -> Reply {
    let mut response = crate::http::reply::text(StatusCode::NO_CONTENT, "");
    let headers: &mut HeaderMap = response.headers_mut();
    headers.remove(CONTENT_TYPE);
    headers.insert(ALLOW, HeaderValue::from_static(METHODS));
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    // Everything does not include this one.
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("*, Authorization"));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("86400"));
    response
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use actors::FullPool;

    use super::*;

    #[track_caller]
    fn check(refusal: Refusal, status: u16, tuner_error: &str, retry_after: Option<&str>) {
        let response = refusal.into_response();
        let header = |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap());
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(header("x-hdhomerun-error"), Some(tuner_error));
        assert_eq!(header("retry-after"), retry_after);
        assert_eq!(header("content-type"), Some("application/json"));
    }

    #[test]
    fn a_refusal_says_what_a_tuner_would_say_and_whether_asking_again_soon_helps() {
        let full = FullPool { account: "one".to_owned(), since: Duration::from_secs(90), max_streams: 1 };
        check(no_watch(&WatchRefusal::Full(full)), 503, "805 All Tuners In Use", Some("3"));
        check(no_watch(&WatchRefusal::Seats { limit: 1 }), 503, "805 All Tuners In Use", Some("3"));
        check(no_watch(&WatchRefusal::Stopping), 503, "803 System Busy", Some("3"));
        check(no_watch(&WatchRefusal::NoStreams), 503, "806 Tune Failed", None);
        check(no_watch(&WatchRefusal::Unplayable("no".to_owned())), 503, "806 Tune Failed", None);
        check(no_watch(&WatchRefusal::NothingPlays("no".to_owned())), 503, "807 No Video Data", None);
        check(no_watch(&WatchRefusal::NotFound), 404, "801 Unknown Channel", None);
        check(no_packets(&EndReason::NoSlot("full".into())), 503, "805 All Tuners In Use", Some("3"));
        check(no_packets(&EndReason::NothingPlays("404".into())), 503, "807 No Video Data", None);
        check(no_packets(&EndReason::Stopped), 503, "803 System Busy", Some("3"));
    }

    #[test]
    fn a_full_account_is_named_with_how_long_it_has_been_so() {
        let full = FullPool { account: "one".to_owned(), since: Duration::from_secs(90), max_streams: 1 };
        let text = no_watch(&WatchRefusal::Full(full)).to_string();
        assert!(text.contains("\"one\"") && text.contains("90 s"), "{text}");
    }

    #[test]
    fn a_redirect_whose_address_no_header_can_carry_is_a_refusal() {
        assert!(redirect(&SourceUrl::new("http://a.example/\r\nx: y")).is_err());
        let response = redirect(&SourceUrl::new("http://a.example/1.ts")).unwrap();
        assert_eq!(
            (response.status(), &response.headers()["location"]),
            (StatusCode::FOUND, &HeaderValue::from_static("http://a.example/1.ts"))
        );
    }
}
