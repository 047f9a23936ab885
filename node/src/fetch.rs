//! Lists, panels, guides and images of accounts that only some nodes may use: another node sends the requests.
//!
//! ```text
//!   refresh ─▶ this node ─▶ node of the account ─┬─ may use it ─▶ provider
//!                 ▲  └─────▶ the next one ◀───────┴─ may not, is busy, or has an earlier version
//!                 └─ none is left: the refresh fails
//! ```
//!
//! | Answer | Meaning |
//! |---|---|
//! | 200 | The body of the provider as it arrives, with an [`AnswerHead`] in a header. An error in the middle is a trailer. |
//! | 304 | The content is the known one. |
//! | 502 | The request failed; the body is the [`RelayedError`]. |
//! | 421, 503, 404 | The node may not use the account, is busy or stopping, or has an earlier version. |

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::{fmt, io};

use actors::{
    AccountRequest, AnswerHead, Fetch, FetchBody, FetchError, NodeFetcher, RelayedAnswer, RelayedBody,
    RelayedError, Relaying,
};
use bytes::Bytes;
use domain::account::Account;
use domain::ids::AccountId;
use domain::plan::PlanContext;
use futures_util::stream::unfold;
use http::header::{HeaderName, HeaderValue, TE, TRAILER};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited, StreamBody};
use hyper::body::{Frame, Incoming};
use serde::Serialize;
use serde::de::DeserializeOwned;
use storage::{Store, Table};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::answer::{NodeBody, read_json, refuse, reply};
use super::forward::POSITION_HEADER;
use super::peers::{OtherNode, OtherNodes};
use super::play::ASK_ANOTHER;
use super::time_limits::FETCH_TURN_WAIT;
use super::work::{NodeWork, STOPPING};

/// Path on the node port.
pub(super) const FETCH_PATH: &str = "/node/v1/fetch";
/// Maximum size of a request: an address and some headers.
const REQUEST_BYTES_MAX: usize = 256 << 10;
/// Maximum size of an error.
const ERROR_BYTES_MAX: usize = 64 << 10;
/// Maximum number of requests that this node sends for others at a time.
const REQUESTS_MAX: usize = 32;

/// Header of an answer: its head.
const HEAD_HEADER: HeaderName = HeaderName::from_static("headwater-fetched");
/// Trailer of an answer: the error that ends it.
const ERROR_TRAILER: HeaderName = HeaderName::from_static("headwater-fetch-error");

/// Lets other nodes send requests of this one.
pub(super) struct AccountFetcher {
    store: Store,
    /// Set when the membership has begun. Before that, no other node is known.
    others: OnceLock<OtherNodes>,
}

impl AccountFetcher {
    pub(super) fn new(store: Store) -> Self {
        Self { store, others: OnceLock::new() }
    }

    pub(super) fn follow(&self, others: OtherNodes) {
        // Called once.
        let _ = self.others.set(others);
    }

    /// Asks the nodes with these names, one after another, until one sends the request.
    async fn ask_each(
        &self,
        request: &AccountRequest,
        names: &[String],
    ) -> Result<Option<RelayedAnswer>, FetchError> {
        let Some(others) = self.others.get() else { return Err(none_runs(names)) };
        let nodes = others.named(names);
        if nodes.is_empty() {
            return Err(none_runs(names));
        }
        let mut reasons = Vec::new();
        for node in &nodes {
            match self.ask(others, node, request).await {
                Ok(answer) => return answer,
                Err(reason) => {
                    warn!(
                        node = node.name, account.id = %request.account,
                        "a node does not fetch for an account that this one may not use: {reason}"
                    );
                    reasons.push(format!("{}: {reason}", node.name));
                }
            }
        }
        let reasons = reasons.join("; ");
        Err(FetchError::NoNode(format!("no node of the account fetches for this one: {reasons}")))
    }

    /// Lets a node send a request.
    ///
    /// # Errors
    /// The reason why it does not send it.
    async fn ask(
        &self,
        others: &OtherNodes,
        node: &OtherNode,
        request: &AccountRequest,
    ) -> Result<Result<Option<RelayedAnswer>, FetchError>, String> {
        let text = |error: &dyn fmt::Display| error.to_string();
        let body = serde_json::to_vec(request).map_err(|it| text(&it))?;
        let mut asked = Request::post(FETCH_PATH).header(TE, HeaderValue::from_static("trailers"));
        if let Some(status) = &*self.store.log_status().borrow() {
            asked = asked.header(POSITION_HEADER, status.position.sequence);
        }
        let asked = asked.body(Full::new(Bytes::from(body))).map_err(|it| text(&it))?;
        let (response, connection) = others.open(node, asked).await?;
        let (head, body) = response.into_parts();
        let unreadable = || "its answer is unknown to this version".to_owned();
        match head.status {
            StatusCode::OK => {
                let head: AnswerHead = json_in(&head.headers, &HEAD_HEADER).ok_or_else(unreadable)?;
                let body = PassedBody { node: node.name.clone(), body, _connection: connection };
                Ok(Ok(Some(RelayedAnswer { head, body: Box::new(body) })))
            }
            StatusCode::NOT_MODIFIED => Ok(Ok(None)),
            StatusCode::BAD_GATEWAY => {
                let read = Limited::new(body, ERROR_BYTES_MAX).collect().await.map_err(|it| text(&it))?;
                let error = serde_json::from_slice(&read.to_bytes()).map_err(|_| unreadable())?;
                Ok(Err(FetchError::AtNode { node: node.name.clone(), error }))
            }
            status => Err(refusal(status)),
        }
    }
}

impl NodeFetcher for AccountFetcher {
    fn fetch<'a>(&'a self, request: &'a AccountRequest, nodes: &'a [String]) -> Relaying<'a> {
        Box::pin(self.ask_each(request, nodes))
    }
}

fn none_runs(names: &[String]) -> FetchError {
    FetchError::NoNode(format!("none of the nodes of the account runs: {}", names.join(", ")))
}

/// Returns why a node with this answer does not send a request.
fn refusal(status: StatusCode) -> String {
    match status {
        StatusCode::NOT_FOUND => "its version cannot do this yet, so update it".to_owned(),
        ASK_ANOTHER => "it may not use the account".to_owned(),
        StatusCode::SERVICE_UNAVAILABLE => "it is busy, or stopping".to_owned(),
        status => format!("status {status}"),
    }
}

/// The body of an answer that another node passes on.
struct PassedBody {
    node: String,
    body: Incoming,
    /// The body arrives as long as the connection is kept.
    _connection: AbortOnDropHandle<()>,
}

impl RelayedBody for PassedBody {
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Result<Option<Bytes>, FetchError>> + Send + '_>> {
        Box::pin(async move {
            let node = || self.node.clone();
            let Some(frame) = self.body.frame().await else { return Ok(None) };
            let lost = |error: hyper::Error| FetchError::NodeLost { node: node(), reason: error.to_string() };
            match frame.map_err(lost)?.into_data() {
                Ok(piece) => Ok(Some(piece)),
                Err(last) => match last.trailers_ref().and_then(|it| json_in(it, &ERROR_TRAILER)) {
                    Some(error) => Err(FetchError::AtNode { node: node(), error }),
                    None => Ok(None),
                },
            }
        })
    }
}

/// Sends requests of other nodes.
pub struct FetchForNodes {
    fetch: Fetch,
    free: Arc<Semaphore>,
}

impl FetchForNodes {
    pub fn new(fetch: Fetch) -> Self {
        Self { fetch, free: Arc::new(Semaphore::new(REQUESTS_MAX)) }
    }

    /// Sends the request of another node, if this one may use its account.
    pub(super) async fn answer(&self, work: &NodeWork, request: Request<Incoming>) -> Response<NodeBody> {
        let (head, body) = request.into_parts();
        let Some(request) = read_json::<AccountRequest>(body, REQUEST_BYTES_MAX).await else {
            warn!("the request of another node to a provider is unknown to this version, or did not arrive");
            return refuse(
                StatusCode::BAD_REQUEST,
                "the request is unknown to this version, or did not arrive",
            );
        };
        let Ok(Ok(permit)) = timeout(FETCH_TURN_WAIT, Arc::clone(&self.free).acquire_owned()).await else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "this node sends too many requests for others");
        };
        let (fetch, headers) = (self.fetch.clone(), head.headers);
        let asked = request.url.host().unwrap_or_default().to_owned();
        let sending = work.run(|context| async move {
            // The account may have been created or changed just now.
            context.node()?.forwarder.follow(&headers).await;
            let account =
                usable(&context.models.accounts.load(), &context.plans.conditions(), request.account)
                    .cloned()?;
            Some(fetch.send_for_node(&account, &request).await)
        });
        match sending.await {
            None => refuse(StatusCode::SERVICE_UNAVAILABLE, STOPPING),
            Some(None) => refuse(ASK_ANOTHER, "this node may not use the account"),
            Some(Some(Ok(None))) => reply(StatusCode::NOT_MODIFIED, "application/json", Vec::new()),
            Some(Some(Ok(Some(body)))) => pass_on(body, asked, permit),
            Some(Some(Err(error))) => {
                let text = serde_json::to_vec(&error).unwrap_or_default();
                reply(StatusCode::BAD_GATEWAY, "application/json", text)
            }
        }
    }
}

/// Returns an account if this node may use it. Otherwise it sends nothing, so that it does not serve as a proxy for other addresses.
fn usable<'a>(
    accounts: &'a Table<Account>,
    conditions: &PlanContext,
    id: AccountId,
) -> Option<&'a Arc<Account>> {
    accounts.get(id.0).filter(|it| conditions.may_use(it))
}

/// Returns an answer with a body that is read as fast as the other node takes it. `asked` is the host of the request.
fn pass_on(body: FetchBody, asked: String, permit: OwnedSemaphorePermit) -> Response<NodeBody> {
    let Some(head) = json_value(body.head()) else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "internal error");
    };
    let frames = unfold(Some((body, asked, permit)), async |state| {
        let (mut body, asked, permit) = state?;
        match body.next().await {
            Ok(Some(piece)) => Some((Ok(Frame::data(piece)), Some((body, asked, permit)))),
            Ok(None) => None,
            Err(error) => {
                let error = json_value(&RelayedError::new(&error, &asked));
                let trailers = error.map(|it| HeaderMap::from_iter([(ERROR_TRAILER, it)]));
                Some((trailers.map(Frame::trailers).ok_or_else(|| io::Error::other("it broke off")), None))
            }
        }
    });
    let mut response = Response::new(StreamBody::new(frames).boxed_unsync());
    response.headers_mut().insert(HEAD_HEADER, head);
    response.headers_mut().insert(TRAILER, ERROR_TRAILER.into());
    response
}

fn json_value(content: &impl Serialize) -> Option<HeaderValue> {
    HeaderValue::try_from(serde_json::to_string(content).ok()?).ok()
}

fn json_in<T: DeserializeOwned>(headers: &HeaderMap, name: &HeaderName) -> Option<T> {
    serde_json::from_slice(headers.get(name)?.as_bytes()).ok()
}

#[cfg(test)]
mod tests {
    use domain::account::{AccountProfile, PlaylistLocation};
    use domain::account_addresses::HostFailure;
    use domain::ids::ProfileId;
    use storage::Models;

    use super::*;

    #[tokio::test]
    async fn a_node_sends_nothing_for_accounts_that_do_not_name_it() {
        let models = media::spawn_blocking(|| {
            let models = Models::new(Store::temporary(storage::records::schema()).unwrap()).unwrap();
            for (id, nodes) in [(1, &[][..]), (2, &["cellar"]), (3, &["attic", "cellar"]), (4, &["attic"])] {
                let profile = AccountProfile::default_of(ProfileId(id), "Home", 1);
                let account = Account::new(AccountId(id), id.to_string(), PlaylistLocation::None, profile, 0);
                let nodes = nodes.iter().map(|it| (*it).to_owned()).collect();
                let account = Account { nodes, ..account };
                models.store.write_blocking(move |write| write.put(&account)).unwrap();
            }
            models
        });
        let models = models.await.unwrap();
        let conditions = PlanContext { node: Some("cellar".into()), ..PlanContext::default() };
        let accounts = models.accounts.load();
        let sends = |id: u32| usable(&accounts, &conditions, AccountId(id)).is_some();
        assert_eq!([1, 2, 3, 4, 5].map(sends), [true, true, true, false, false]);
    }

    #[test]
    fn a_node_of_an_earlier_version_has_to_be_updated() {
        assert_eq!(refusal(StatusCode::NOT_FOUND), "its version cannot do this yet, so update it");
        assert_eq!(refusal(StatusCode::FORBIDDEN), "status 403 Forbidden");
    }

    #[test]
    fn an_error_fits_into_a_trailer() {
        let error = RelayedError {
            text: "fetch from \"tv.example\": größer\n".to_owned(),
            completes_failed_to: true,
            host_failure: HostFailure::TimedOut,
            is_temporary: true,
            is_answer: false,
            asks_to_wait: None,
        };
        let headers = HeaderMap::from_iter([(ERROR_TRAILER, json_value(&error).unwrap())]);
        assert_eq!(json_in::<RelayedError>(&headers, &ERROR_TRAILER), Some(error));
    }
}
