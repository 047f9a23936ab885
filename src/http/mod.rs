//! HTTP code that all routes share: the accept loop, the identity of the caller, error responses, and the adapter from
//! routes to responses.

pub(crate) mod accept;
pub(crate) mod admission;
pub(crate) mod caller;
pub(crate) mod network;
pub(crate) mod network_refusals;
pub(crate) mod reply;
mod socket;

use std::convert::Infallible;

use http::{Method, Request, Response, StatusCode};
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tower_service::Service;
use tracing::debug;
use warp::filters::BoxedFilter;
use warp::reject::Reject;
use warp::reply::Response as Reply;
use warp::{Filter, Rejection};

use self::accept::Handler;
use self::reply::Refusal;

/// A set of routes. A rejection means that no route matches; a refusal is a response.
pub(crate) type Routes = BoxedFilter<(Reply,)>;

/// The routes behind a server.
///
/// Every request is handled in its own task on the work runtime, so that no handler runs on a thread that carries
/// packets. The task is aborted when its request ends. A panic in it costs one response, not the connection.
#[derive(Clone)]
pub(crate) struct RouteTable<S> {
    service: S,
    work: Handle,
}

/// Creates the handler of a server from these routes, with an error response where none matches.
pub(crate) fn route_table(
    routes: Routes,
    work: Handle,
) -> RouteTable<
    impl Service<Request<Incoming>, Response = Reply, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static,
> {
    let service = warp::service(routes.recover(recover).unify());
    RouteTable { service, work }
}

impl<S> Handler for RouteTable<S>
where
    S: Service<Request<Incoming>, Response = Reply, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    type Body = WarpBody;

    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Reply> + Send {
        let method = request.method().clone();
        let path = printable_path(request.uri().path());
        let mut service = self.service.clone();
        // `CONNECT` and `OPTIONS *` have no path, and warp panics when a filter reads the full path.
        let has_path = request.uri().path().starts_with('/');
        let task = AbortOnDropHandle::new(self.work.spawn(async move {
            match has_path {
                true => service.call(request).await,
                false => Ok(Refusal::not_found("not found").into_response()),
            }
        }));
        async move {
            let response = match task.await {
                Ok(Ok(response)) => response,
                Ok(Err(never)) => match never {},
                Err(error) if error.is_panic() => {
                    tracing::error!(%method, path, "a handler panicked; the preceding log lines have the details");
                    Refusal::bug().into_response()
                }
                Err(_) => Refusal::unavailable("the gateway is stopping").into_response(),
            };
            debug!(%method, path, status = response.status().as_u16(), "request handled");
            response
        }
    }
}

/// The body type of warp responses, which warp does not export by name.
pub(crate) type WarpBody = <Reply as ResponseBody>::Body;

pub(crate) trait ResponseBody {
    type Body;
}

impl<B> ResponseBody for Response<B> {
    type Body = B;
}

/// Returns a path that is safe to log. Paths of players can contain a user name and a password, so only paths that
/// cannot are printed in full.
fn printable_path(path: &str) -> String {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match first {
        "" | "api" | "healthz" | "metrics" | "playlist.m3u" | "proxy" | "ws" => path.to_owned(),
        _ => "/…".to_owned(),
    }
}

/// Rejection of a known path with a method that it does not support.
#[derive(Debug)]
struct WrongMethod {
    allow: &'static str,
}

impl Reject for WrongMethod {}

/// Matches requests whose method is in `allow`, which has the format of the `Allow` header. Must follow the path
/// filter.
pub(crate) fn method(allow: &'static str) -> impl Filter<Extract = (Method,), Error = Rejection> + Copy {
    warp::method().and_then(move |method: Method| async move {
        if allow.split(", ").any(|it| it == method.as_str()) {
            Ok(method)
        } else {
            Err(warp::reject::custom(WrongMethod { allow }))
        }
    })
}

/// Extracts one percent-decoded segment of the path. A segment that is not valid UTF-8 matches no route.
pub(crate) fn segment() -> impl Filter<Extract = (String,), Error = Rejection> + Copy {
    warp::path::param::<String>().and_then(|raw: String| async move {
        percent_decode_str(&raw)
            .decode_utf8()
            .map(|it| it.into_owned())
            .map_err(|_| warp::reject::not_found())
    })
}

/// Turns rejections into responses; the only place that does.
pub(crate) async fn recover(rejection: Rejection) -> Result<Reply, Infallible> {
    Ok(refusal(&rejection).into_response())
}

fn refusal(rejection: &Rejection) -> Refusal {
    if rejection.is_not_found() {
        return Refusal::not_found("not found");
    }
    if let Some(wrong) = rejection.find::<WrongMethod>() {
        return Refusal::method(wrong.allow);
    }
    if rejection.find::<warp::reject::PayloadTooLarge>().is_some() {
        return Refusal::status(StatusCode::PAYLOAD_TOO_LARGE);
    }
    if rejection.find::<warp::reject::LengthRequired>().is_some() {
        return Refusal::status(StatusCode::LENGTH_REQUIRED);
    }
    if rejection.find::<warp::reject::UnsupportedMediaType>().is_some() {
        return Refusal::status(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    if rejection.find::<warp::reject::MissingHeader>().is_some()
        || rejection.find::<warp::reject::InvalidHeader>().is_some()
        || rejection.find::<warp::reject::InvalidQuery>().is_some()
        || rejection.find::<warp::body::BodyDeserializeError>().is_some()
    {
        return Refusal::bad_request("malformed request");
    }
    tracing::error!("unexpected rejection: {rejection:?}");
    Refusal::bug()
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn answer(method: &str, path: &str) -> Response<bytes::Bytes> {
        let name = warp::path("name")
            .and(segment())
            .and(warp::path::end())
            .and(super::method("GET, HEAD"))
            .map(|name: String, _| reply::text(StatusCode::OK, name));
        let other =
            warp::path("other").and(warp::path::end()).and(super::method("POST")).map(|_| unreachable!());
        let routes: Routes = name.or(other).unify().boxed();
        let mut service = warp::service(routes.recover(recover).unify());
        let request = Request::builder()
            .method(method)
            .uri(path)
            .body(http_body_util::Empty::<bytes::Bytes>::new())
            .unwrap();
        let response = service.call(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
        Response::from_parts(parts, body)
    }

    #[tokio::test]
    async fn an_unknown_path_is_404_and_a_wrong_method_405_with_the_allowed_ones() {
        let response = answer("GET", "/nothing").await;
        assert_eq!(
            (response.status().as_u16(), &response.body()[..]),
            (404, &br#"{"detail":"not found"}"#[..])
        );
        let response = answer("DELETE", "/name/x").await;
        assert_eq!(response.status().as_u16(), 405);
        assert_eq!(response.headers()["allow"], "GET, HEAD");
        assert_eq!(response.headers()["content-type"], "application/json");
    }

    #[tokio::test]
    async fn segments_are_decoded_and_a_trailing_slash_is_ignored() {
        assert_eq!(&answer("GET", "/name/a%20b%2Fc/?unknown=1").await.body()[..], b"a b/c");
        assert_eq!(answer("GET", "/name/%ff").await.status().as_u16(), 404);
        assert_eq!(answer("GET", "/name/a/b").await.status().as_u16(), 404);
    }

    #[test]
    fn a_path_that_may_contain_credentials_is_not_logged() {
        assert_eq!(printable_path("/live/user/secret/7.ts"), "/…");
        assert_eq!(printable_path("/proxy/ts/stream/x"), "/proxy/ts/stream/x");
    }
}
