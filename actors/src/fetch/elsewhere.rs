//! Requests for accounts that this node of a cluster may not use. One of the account's nodes sends them.
//!
//! ```text
//!   this node ─ AccountRequest ─▶ node of the account ─ request, redirects, proxy ─▶ provider
//!             ◀─ head, pieces ────┘                     ◀─ answer, as it arrives ─────┘
//! ```
//!
//! That node resolves names and checks addresses as for its own requests. Limits count on both nodes.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::account::Account;
use domain::account_addresses::HostFailure;
use domain::egress::{Distance, Reach};
use domain::ids::AccountId;
use domain::plan::PlanContext;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use serde::{Deserialize, Serialize};

use super::{Deadline, Fetch, FetchBody, FetchError, FetchLimits, Validators, Way};

/// A request that another node sends for this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountRequest {
    pub account: AccountId,
    pub url: SourceUrl,
    pub headers: RequestHeaders,
    pub reach: Reach,
    /// The validators of the content that is known already.
    pub known: Validators,
    pub limits: FetchLimits,
}

/// The head of an answer with a body.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerHead {
    /// The host that sends the body, after all redirects.
    pub host: String,
    /// Its network.
    pub origin: Option<Distance>,
    /// Length that it announced, in bytes.
    pub announced: Option<u64>,
    pub validators: Validators,
}

/// The answer to a request that another node has sent.
pub struct RelayedAnswer {
    pub head: AnswerHead,
    pub body: Box<dyn RelayedBody>,
}

/// A body that another node passes on as it arrives there.
pub trait RelayedBody: Send {
    /// Returns the next piece, or `None` at the end.
    fn next(&mut self) -> Pin<Box<dyn Future<Output = Result<Option<Bytes>, FetchError>> + Send + '_>>;
}

/// The future of an answer of another node; `None` if the content is the known one.
pub type Relaying<'a> = Pin<Box<dyn Future<Output = Result<Option<RelayedAnswer>, FetchError>> + Send + 'a>>;

/// Lets other nodes send requests.
pub trait NodeFetcher: Send + Sync + 'static {
    /// Lets one of the nodes with these names send a request. The caller limits the wait.
    fn fetch<'a>(&'a self, request: &'a AccountRequest, nodes: &'a [String]) -> Relaying<'a>;
}

/// The cluster of a client.
pub(super) struct FetchCluster {
    conditions: PlanContext,
    others: Arc<dyn NodeFetcher>,
}

/// The way of requests to an account that only other nodes may use.
pub(super) struct NodeWay {
    pub(super) account: AccountId,
    nodes: Vec<String>,
    others: Arc<dyn NodeFetcher>,
}

impl Fetch {
    /// Returns a client of a node in a cluster. The conditions say which accounts the node may use; for all others, it asks
    /// other nodes.
    pub fn among(self, conditions: PlanContext, others: Arc<dyn NodeFetcher>) -> Self {
        Self { cluster: Some(Arc::new(FetchCluster { conditions, others })), ..self }
    }

    /// Returns a client for the servers of an account: through its nodes if this node may not use it, otherwise through its
    /// proxy, if it has one.
    pub fn for_account(&self, account: &Account) -> Self {
        let elsewhere = self.cluster.as_ref().filter(|it| !it.conditions.may_use(account));
        let Some(cluster) = elsewhere else { return self.to_account_servers(account) };
        let (nodes, others) = (account.nodes.clone(), Arc::clone(&cluster.others));
        let way = NodeWay { account: account.id, nodes, others };
        Self { way: Way::Node(Arc::new(way)), ..self.clone() }
    }

    /// Sends a request of another node for an account that this one may use.
    ///
    /// # Errors
    /// The request failed.
    pub async fn send_for_node(
        &self,
        account: &Account,
        request: &AccountRequest,
    ) -> Result<Option<FetchBody>, RelayedError> {
        let AccountRequest { url, headers, reach, known, limits, .. } = request;
        let fetch = self.to_account_servers(account).within(*limits);
        let sent = fetch.get_if_changed(url.expose(), headers, *reach, known).await;
        sent.map_err(|error| RelayedError::new(&error, url.host().unwrap_or_default()))
    }

    /// Lets a node of the account send a request.
    pub(super) async fn ask(
        &self,
        way: &NodeWay,
        request: AccountRequest,
        deadline: Deadline,
    ) -> Result<Option<FetchBody>, FetchError> {
        let host = request.url.host().unwrap_or_default();
        let answer = deadline.limit(host, way.others.fetch(&request, &way.nodes)).await?;
        let body = |answer| FetchBody::from_node(answer, self.limits.bytes_max, deadline);
        Ok(answer.map(body))
    }
}

/// The error of a request that another node has sent, with the facts that follow from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RelayedError {
    /// The message with its causes. Contains no URL.
    pub text: String,
    pub completes_failed_to: bool,
    pub host_failure: HostFailure,
    pub is_temporary: bool,
    pub is_answer: bool,
    pub asks_to_wait: Option<AskedPause>,
}

/// A pause that a server asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskedPause {
    /// `None`: it names no length.
    pub length: Option<Duration>,
}

impl RelayedError {
    /// Maximum length of the text in bytes: a host and the causes of a library need less.
    const TEXT_BYTES_MAX: usize = 2048;

    /// Describes an error of a request to the host `asked`.
    pub fn new(error: &FetchError, asked: &str) -> Self {
        let mut text = error.with_causes();
        text.truncate(text.floor_char_boundary(Self::TEXT_BYTES_MAX));
        Self {
            text,
            completes_failed_to: error.completes_failed_to(),
            host_failure: error.host_failure(asked),
            is_temporary: error.is_temporary(),
            is_answer: error.is_answer(),
            asks_to_wait: error.asks_to_wait().map(|length| AskedPause { length }),
        }
    }
}
