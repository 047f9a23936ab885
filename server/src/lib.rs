//! The HTTP server: accepted connections, the callers behind them, the table of routes, and refusals.
//!
//! Reading order: `accept` (accepting connections), `caller` and `origin` (where a request comes from), [`RouteTable`] (from a
//! request to its response), `reply` and `refusals` (error responses), `stream` (responses that leave HTTP).

pub mod accept;
pub mod admission;
pub mod base_url;
pub mod caller;
mod container;
pub mod encoding;
pub mod field_errors;
pub mod listening;
pub mod network_refusals;
pub mod noun;
pub mod origin;
pub mod refusals;
pub mod reply;
pub mod socket;
pub mod stream;
#[cfg(test)]
mod text_tests;

use std::convert::Infallible;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use http::{Request, Response, Uri};
use hyper::body::Incoming;
use media::Connection;
use tokio::runtime::Handle;
use tokio_util::task::AbortOnDropHandle;
use tower_service::Service;
use tracing::debug;
use warp::filters::BoxedFilter;
use warp::reply::Response as Reply;
use warp::{Filter, Rejection};

use self::accept::{ConnectionGuard, Handler, LocalAddr};
use self::admission::LimitReached;
use self::origin::Origins;
use self::reply::Refusal;

/// A set of routes, as a filter. A rejection means that no route matches; a refusal is a response.
pub type Routes = BoxedFilter<(Reply,)>;

/// Answers requests to the API whose client is known.
pub type ApiHandler = Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Reply> + Send + Sync>;

/// Has another node of a cluster answer a request. Returns the request if it is to be answered here.
pub type Forward =
    Arc<dyn Fn(Request<Incoming>) -> BoxFuture<'static, Result<Reply, Request<Incoming>>> + Send + Sync>;

/// The routes behind a server.
///
/// Every request is handled in its own task on the work runtime, so that no handler runs on a thread that carries
/// packets. The task is aborted when its request ends. A panic in it costs one response, not the connection.
///
/// The origin of a request is determined here, once for all routes.
#[derive(Clone)]
pub struct RouteTable<S> {
    service: S,
    origins: Arc<Origins>,
    work: Handle,
    /// For nodes of a cluster.
    forward: Option<Forward>,
}

/// Creates the handler of a server from these routes. `forward` sends requests that write to the node that may.
pub fn route_table(
    routes: Routes,
    origins: Arc<Origins>,
    work: Handle,
    forward: Option<Forward>,
) -> RouteTable<
    impl Service<Request<Incoming>, Response = Reply, Error = Infallible, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static,
> {
    let service = warp::service(routes.recover(recover).unify());
    RouteTable { service, origins, work, forward }
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

    fn answer(&self, mut request: Request<Incoming>) -> impl Future<Output = Reply> + Send {
        let counted = self.place(&mut request);
        self.run(request, counted)
    }
}

impl<S> RouteTable<S>
where
    S: Service<Request<Incoming>, Response = Reply, Error = Infallible, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static,
{
    /// Returns what answers requests whose origin another node has determined.
    pub fn for_nodes(self) -> ApiHandler {
        Arc::new(move |request| Box::pin(self.run(request, Ok(()))))
    }

    fn run(
        &self,
        mut request: Request<Incoming>,
        counted: Result<(), LimitReached>,
    ) -> impl Future<Output = Reply> + Send + use<S> {
        if let Some(uri) = with_one_leading_slash(request.uri()) {
            *request.uri_mut() = uri;
        }
        let method = request.method().clone();
        let path = printable_path(request.uri().path());
        let mut service = self.service.clone();
        // `CONNECT` and `OPTIONS *` have no path, and warp panics when a filter reads the full path.
        let has_path = request.uri().path().starts_with('/');
        let forward = self.forward.clone();
        let task = AbortOnDropHandle::new(self.work.spawn(async move {
            let request = match (forward, &counted) {
                (Some(forward), Ok(())) => match forward(request).await {
                    Ok(reply) => return Ok(reply),
                    Err(request) => request,
                },
                _ => request,
            };
            match counted {
                Ok(()) if has_path => service.call(request).await,
                Ok(()) => Ok(Refusal::not_found("Not found.").into_response()),
                Err(limit) => Ok(Refusal::unavailable(limit.to_string()).retry_soon().into_response()),
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

impl<S> RouteTable<S> {
    /// Adds the origin to a request, and counts its connection for the client.
    fn place(&self, request: &mut Request<Incoming>) -> Result<(), LimitReached> {
        let extensions = request.extensions();
        let (connection, local) = (extensions.get::<Arc<Connection>>(), extensions.get::<LocalAddr>());
        let (Some(connection), Some(LocalAddr(local))) = (connection, local) else { return Ok(()) };
        let origin = self.origins.origin(connection.peer.ip(), local.ip(), request.headers());
        let guard = extensions.get::<ConnectionGuard>();
        let counted = guard.map_or(Ok(()), |it| it.count_for(origin.address()));
        let place = guard.map(ConnectionGuard::request_place).unwrap_or_default();
        request.extensions_mut().insert(place);
        request.extensions_mut().insert(origin);
        counted
    }
}

/// The body type of warp responses, which warp does not export by name.
pub type WarpBody = <Reply as ResponseBody>::Body;

pub trait ResponseBody {
    type Body;
}

impl<B> ResponseBody for Response<B> {
    type Body = B;
}

/// Returns the target of a request whose path begins with several slashes, with only one of them. Programs send several
/// when they put a path behind an address that ends with a slash.
fn with_one_leading_slash(uri: &Uri) -> Option<Uri> {
    let path_and_query = uri.path_and_query()?.as_str();
    if !path_and_query.starts_with("//") {
        return None;
    }
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(format!("/{}", path_and_query.trim_start_matches('/')).parse().ok()?);
    Uri::from_parts(parts).ok()
}

/// Returns a path that is safe to log. Paths of players can contain a user name and a password, so only paths that
/// cannot are printed in full.
fn printable_path(path: &str) -> String {
    let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    match first {
        // The token of a session follows, which gives access to its media.
        "proxy" if path.contains("/session/") => "/proxy/hls/session/…".to_owned(),
        "" | "api" | "get.php" | "healthz" | "metrics" | "output" | "playlist.m3u" | "proxy" | "readyz"
        | "ws" | "xmltv.php" => path.to_owned(),
        _ => "/…".to_owned(),
    }
}

/// Answers a request that no route matched. The table of routes answers every request, so this is a bug.
async fn recover(rejection: Rejection) -> Result<Reply, Infallible> {
    tracing::error!("unexpected rejection: {rejection:?}");
    Ok(Refusal::bug().into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_slashes_before_a_path_are_removed() {
        for (target, expected) in [
            ("/", None),
            ("/proxy/ts", None),
            ("/proxy//ts", None),
            ("/?next=//x", None),
            ("*", None),
            ("host:80", None),
            ("http://host", None),
            ("http://host/proxy//ts", None),
            ("//", Some("/")),
            ("//proxy/ts", Some("/proxy/ts")),
            ("////proxy//ts", Some("/proxy//ts")),
            ("//proxy/ts?a=//b&c=%2F%2F", Some("/proxy/ts?a=//b&c=%2F%2F")),
            ("//?a=b", Some("/?a=b")),
            ("//user@host:80/x", Some("/user@host:80/x")),
            ("http://host:80//proxy/ts?a=b", Some("http://host:80/proxy/ts?a=b")),
            ("http://host//", Some("http://host/")),
        ] {
            let found = with_one_leading_slash(&target.parse().unwrap());
            assert_eq!(found.map(|it| it.to_string()).as_deref(), expected, "{target}");
        }
    }

    #[test]
    fn a_path_that_may_contain_credentials_is_not_logged() {
        assert_eq!(printable_path("/live/user/secret/7.ts"), "/…");
        assert_eq!(printable_path("/proxy/ts/stream/x"), "/proxy/ts/stream/x");
        assert_eq!(printable_path("/proxy/hls/session/secret/1.ts"), "/proxy/hls/session/…");
    }
}
