//! The HTTP client for everything that is fetched and not streamed, with limits.
//!
//! Redirects are followed here and not by the library, so that every hop is checked: only `http` and `https`, a maximum
//! number of hops, no credentials for another server, and only addresses that the rule of `domain::egress` allows. Names
//! are resolved here for the same reason, once per hop, and the library connects to the checked addresses. Only a proxy
//! resolves names itself. Error texts contain no URL, because the address of a playlist often contains a password.
//!
//! Bodies are returned as received. [`Unpacked`] detects compression by the bytes, because the headers of servers are
//! often wrong.

mod elsewhere;
mod exchange;
mod proxied;
#[cfg(test)]
mod tests;
mod turns;
mod unpacked;

use std::future::ready;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::egress::{Distance, EgressError, Reach};
use domain::ids::AccountId;
use domain::proxy::{ProxyAddress, ProxyScheme};
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use media::certificate::RefusedCertificate;
use media::dial::trust::{CertificateTrust, http_config};
use media::error::UpstreamError;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, ETAG, HeaderMap, IF_MODIFIED_SINCE, IF_NONE_MATCH,
    LAST_MODIFIED, LOCATION, REFERER, RETRY_AFTER, USER_AGENT,
};
use reqwest::{Client, ClientBuilder, Method, RequestBuilder, Response, StatusCode, Url};
use serde::{Deserialize, Serialize};
use tokio::net::lookup_host;
use tokio::time::{Instant, timeout, timeout_at};
use url::Host;

pub use self::elsewhere::{
    AccountRequest, AnswerHead, AskedPause, NodeFetcher, RelayedAnswer, RelayedBody, RelayedError, Relaying,
};
use self::elsewhere::{FetchCluster, NodeWay};
use self::exchange::Direct;
pub(crate) use self::exchange::ServiceRequest;
pub(crate) use self::turns::Turn;
use self::turns::Turns;
pub(crate) use self::unpacked::Unpacked;
use crate::egress::Egress;
use crate::portals::session::PortalSessions;

/// The default `User-Agent`, if neither account nor caller sets one.
pub(crate) const DEFAULT_USER_AGENT: &str = concat!("Headwater/", env!("CARGO_PKG_VERSION"));

/// Maximum number of redirects.
const REDIRECTS_MAX: usize = 5;

/// Limits of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchLimits {
    /// Maximum wait for a connection, including name resolution and TLS.
    pub connect_timeout: Duration,
    /// Maximum wait for the headers, and between two reads of the body.
    pub read_timeout: Duration,
    /// Maximum time from the first request to the last byte. Ends a download that drips forever.
    pub total_timeout: Duration,
    /// Maximum length of a body in bytes; for a compressed one both before and after it is unpacked.
    pub bytes_max: u64,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(60),
            total_timeout: Duration::from_secs(15 * 60),
            bytes_max: 1 << 30,
        }
    }
}

/// Reason why a download failed. Contains no URL.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The text is not an `http` or `https` address.
    #[error("the address is not a valid http or https URL")]
    Address,
    /// The client cannot be created.
    #[error("set up the HTTP client")]
    Client(#[source] reqwest::Error),
    /// The TLS library rejects its own defaults.
    #[error("set up TLS")]
    Tls(#[source] UpstreamError),
    /// The certificate of the server is not accepted.
    #[error("{refused} (\"{host}\"); the settings of the account can accept it")]
    Certificate {
        /// Host of the request.
        host: String,
        /// The certificate and the reason.
        refused: RefusedCertificate,
    },
    /// The connection failed, the server did not answer, or the body broke off.
    #[error("fetch from \"{host}\"")]
    Transfer {
        /// Host of the request.
        host: String,
        /// The error of the library.
        #[source]
        cause: reqwest::Error,
    },
    /// The body was not complete in time.
    #[error("\"{host}\" did not send everything within {} s", .limit.as_secs())]
    Slow {
        /// Host of the request.
        host: String,
        /// The time limit.
        limit: Duration,
    },
    /// The body has a content encoding that was not requested.
    #[error("\"{host}\" answered with an unsupported content encoding")]
    Encoding {
        /// Host of the server.
        host: String,
    },
    /// The proxy of the account failed, or cannot reach the server.
    #[error("reach \"{host}\" through the proxy of the account")]
    Proxy {
        /// Host of the request.
        host: String,
        /// The error of the library.
        #[source]
        cause: reqwest::Error,
    },
    /// The name of the proxy has no address.
    #[error("find the address of the proxy of the account")]
    ProxyName(#[source] io::Error),
    /// The proxy requires a login, or refuses the one of the account.
    #[error("the proxy refuses the login of the account")]
    ProxyLogin,
    /// The name of the server has no address.
    #[error("find the address of \"{host}\"")]
    Name {
        /// Host of the request.
        host: String,
        /// The error of the resolver.
        #[source]
        cause: io::Error,
    },
    /// The address may not be connected to.
    #[error("\"{host}\" leads to an address that is not allowed")]
    Forbidden {
        /// Host of the request.
        host: String,
        /// The reason.
        #[source]
        reason: EgressError,
    },
    /// The server answered with an error status.
    #[error("\"{host}\" answered {status}")]
    Status {
        /// Host of the server.
        host: String,
        /// The status.
        status: StatusCode,
        /// How long the server asks to wait before the next request.
        retry_after: Option<Duration>,
    },
    /// A redirect has no valid target, or too many of them follow each other.
    #[error("\"{host}\" sent an invalid redirect, or too many")]
    Redirect {
        /// Host of the server.
        host: String,
    },
    /// The body cannot be unpacked, or is too long once it is.
    #[error("unpack the answer of \"{host}\"")]
    Unreadable {
        /// Host of the server.
        host: String,
        /// The reason.
        #[source]
        cause: io::Error,
    },
    /// The body is longer than allowed.
    #[error("the answer of \"{host}\" is longer than {bytes_max} bytes")]
    TooLong {
        /// Host of the server.
        host: String,
        /// The maximum length.
        bytes_max: u64,
    },
    /// The request failed at the node of the cluster that has sent it.
    #[error("{} (asked by the node {node})", .error.text)]
    AtNode {
        /// Name of the node.
        node: String,
        /// The error there.
        error: RelayedError,
    },
    /// The node that passed an answer on is lost.
    #[error("fetch through the node {node}: {reason}")]
    NodeLost {
        /// Name of the node.
        node: String,
        /// The reason.
        reason: String,
    },
    /// No node that may use the account sends the request. Contains the reason.
    #[error("{0}")]
    NoNode(String),
}

/// The shared HTTP client for everything that is not streamed. Cheap to clone.
#[derive(Clone)]
pub struct Fetch {
    /// The addresses of the gateway itself, to which no provider may lead.
    own_listeners: Arc<[SocketAddr]>,
    limits: FetchLimits,
    /// `User-Agent` for requests without one.
    user_agent: Arc<str>,
    turns: Turns,
    /// The devices of portal accounts.
    portals: PortalSessions,
    /// Set on a node of a cluster.
    cluster: Option<Arc<FetchCluster>>,
    way: Way,
    /// The certificates of servers that are accepted.
    trust: Option<Arc<CertificateTrust>>,
}

/// The way to the servers of requests.
#[derive(Clone)]
enum Way {
    Direct,
    /// Through the proxy of an account.
    Proxy(Arc<ProxyAddress>),
    /// Through another node.
    Node(Arc<NodeWay>),
}

impl Fetch {
    /// Creates a client with these limits. The process must have a TLS provider installed.
    ///
    /// # Errors
    /// The client cannot be created.
    pub fn new(limits: FetchLimits) -> Result<Self, FetchError> {
        let fetch = Self {
            own_listeners: [].into(),
            limits,
            user_agent: DEFAULT_USER_AGENT.into(),
            turns: Turns::default(),
            portals: PortalSessions::default(),
            cluster: None,
            way: Way::Direct,
            trust: None,
        };
        // A client that cannot be created is reported at the start.
        fetch.client_for(Vec::new())?.build().map_err(FetchError::Client)?;
        Ok(fetch)
    }

    /// Sets the addresses on which the gateway listens. No provider may lead to them.
    pub fn beside(self, own_listeners: Arc<[SocketAddr]>) -> Self {
        Self { own_listeners, ..self }
    }

    /// Creates a client that connects to these addresses, whatever the name. A client serves one request, so that no
    /// connection is reused that another rule has allowed.
    fn client_for(&self, addresses: Vec<SocketAddr>) -> Result<ClientBuilder, FetchError> {
        let proxy = match &self.way {
            Way::Proxy(proxy) if proxy.scheme == ProxyScheme::Https => Some(&*proxy.host),
            _ => None,
        };
        let trust = self.trust.as_deref().cloned().unwrap_or_default();
        let tls = http_config(&trust, proxy).map_err(FetchError::Tls)?;
        Ok(Client::builder()
            .tls_backend_preconfigured(tls)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(self.limits.connect_timeout)
            .read_timeout(self.limits.read_timeout)
            .dns_resolver(Arc::new(Resolved(addresses)))
            // The environment of the process names no proxy for accounts.
            .no_proxy())
    }

    /// Returns a client for a request to this server, which connects to checked addresses only.
    async fn client_to(&self, url: &Url, egress: &Egress) -> Result<Client, FetchError> {
        let builder = match &self.way {
            Way::Direct => self.client_for(self.addresses(url, egress).await?)?,
            Way::Proxy(proxy) => self.through_proxy(proxy, url, egress).await?,
            // This node never connects for such an account.
            Way::Node(_) => {
                let reason = "only other nodes may use the account, and they send no such requests";
                return Err(FetchError::NoNode(reason.to_owned()));
            }
        };
        builder.build().map_err(FetchError::Client)
    }

    /// Returns the addresses of a server that may be connected to.
    async fn addresses(&self, url: &Url, egress: &Egress) -> Result<Vec<SocketAddr>, FetchError> {
        let host = || url.host_str().unwrap_or_default().to_owned();
        let port = url.port_or_known_default().unwrap_or_default();
        let found = match url.host() {
            Some(Host::Ipv4(address)) => vec![SocketAddr::new(address.into(), port)],
            Some(Host::Ipv6(address)) => vec![SocketAddr::new(address.into(), port)],
            Some(Host::Domain(name)) => {
                match timeout(self.limits.connect_timeout, lookup_host((name, port))).await {
                    Ok(Ok(found)) => found.collect(),
                    Ok(Err(cause)) => return Err(FetchError::Name { host: host(), cause }),
                    Err(_) => {
                        return Err(FetchError::Name { host: host(), cause: io::ErrorKind::TimedOut.into() });
                    }
                }
            }
            None => return Err(FetchError::Address),
        };
        let mut refusal = None;
        let is_allowed = |it: &SocketAddr| egress.check(*it).map_err(|reason| refusal = Some(reason)).is_ok();
        let allowed: Vec<_> = found.into_iter().filter(is_allowed).collect();
        match refusal {
            Some(reason) if allowed.is_empty() => Err(FetchError::Forbidden { host: host(), reason }),
            _ => Ok(allowed),
        }
    }

    /// Sets the default `User-Agent`. It must be a valid header value.
    pub fn known_as(self, user_agent: &str) -> Self {
        Self { user_agent: user_agent.into(), ..self }
    }

    /// Returns a client with other limits.
    pub fn within(self, limits: FetchLimits) -> Self {
        Self { limits, ..self }
    }

    /// Requests `url` with these headers, and returns the body, to be read as it arrives. A redirect to another server,
    /// or to an unencrypted connection, gets none of the headers except the `User-Agent`. `reach` is that of `url`;
    /// redirects lead no nearer than the server that sends them.
    ///
    /// # Errors
    /// The request failed; see [`FetchError`].
    pub async fn get(
        &self,
        url: &str,
        headers: &RequestHeaders,
        reach: Reach,
    ) -> Result<FetchBody, FetchError> {
        let host =
            || Url::parse(url).ok().and_then(|it| it.host_str().map(str::to_owned)).unwrap_or_default();
        let body = self.get_if_changed(url, headers, reach, &Validators::default()).await?;
        // Nothing was known that could be unchanged.
        body.ok_or_else(|| FetchError::Status {
            host: host(),
            status: StatusCode::NOT_MODIFIED,
            retry_after: None,
        })
    }

    /// Does the same as [`Fetch::get`] if the content differs from the one that had these validators. Returns `None` if
    /// the server says that it does not.
    ///
    /// # Errors
    /// The request failed; see [`FetchError`].
    pub async fn get_if_changed(
        &self,
        url: &str,
        headers: &RequestHeaders,
        reach: Reach,
        known: &Validators,
    ) -> Result<Option<FetchBody>, FetchError> {
        let deadline =
            Deadline { at: Instant::now() + self.limits.total_timeout, limit: self.limits.total_timeout };
        if let Way::Node(way) = &self.way {
            let request = AccountRequest {
                account: way.account,
                url: SourceUrl::new(url),
                headers: headers.clone(),
                reach,
                known: known.clone(),
                limits: self.limits,
            };
            return self.ask(way, request, deadline).await;
        }
        let mut egress = Egress::new(reach, self.own_listeners.clone());
        let mut url = Url::parse(url).map_err(|_| FetchError::Address)?;
        let first = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            if !matches!(url.scheme(), "http" | "https") {
                return Err(FetchError::Address);
            }
            let host = url.host_str().unwrap_or_default().to_owned();
            let client = self.client_to(&url, &egress).await?;
            let request = client.get(url.clone());
            let request =
                if may_receive_headers(&first, &url) { with_headers(request, headers) } else { request };
            let user_agent = headers.user_agent.as_deref().unwrap_or(&self.user_agent);
            let request = request.header(USER_AGENT, user_agent).header(ACCEPT_ENCODING, "gzip");
            let sent = deadline.keep(&host, known.add_to(request).send()).await;
            let response = self.judged(&host, sent)?;
            let peer = self.peer_of(&url, &response);
            if response.status() == StatusCode::NOT_MODIFIED && *known != Validators::default() {
                return Ok(None);
            }
            if response.status().is_redirection() {
                egress = peer.map_or(egress.clone(), |it| egress.after(it));
                let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
                let next = location.and_then(|it| url.join(it).ok());
                url = next.ok_or(FetchError::Redirect { host })?;
                continue;
            }
            let origin = peer.map(|it| domain::egress::distance(it.ip()).unwrap_or(Distance::Private));
            return FetchBody::new(response, origin, host, self.limits.bytes_max, deadline).map(Some);
        }
        Err(FetchError::Redirect { host: url.host_str().unwrap_or_default().to_owned() })
    }

    /// Sends a JSON document with these headers, and returns the answer. Redirects are not followed.
    ///
    /// # Errors
    /// The request failed; see [`FetchError`].
    pub async fn post_json(
        &self,
        url: &str,
        document: String,
        headers: &RequestHeaders,
        reach: Reach,
    ) -> Result<FetchBody, FetchError> {
        let request = ServiceRequest { method: Method::POST, url, body: Some(&document), headers, reach };
        let Direct { response, host, deadline } = self.direct(request).await?;
        if response.status().is_redirection() {
            return Err(FetchError::Redirect { host });
        }
        FetchBody::new(response, None, host, self.limits.bytes_max, deadline)
    }

    /// Waits until no other request is sent to the panel of an account. The turn ends when the value is dropped. Panels
    /// block accounts that ask several questions at once.
    pub(crate) async fn turn(&self, account: AccountId) -> Turn {
        self.turns.take(account).await
    }

    /// Returns the sessions of devices at portals, which all clients made from this one share.
    pub(crate) fn portals(&self) -> &PortalSessions {
        &self.portals
    }

    /// Returns the limits of this client.
    pub fn limits(&self) -> FetchLimits {
        self.limits
    }
}

/// The headers by which a server recognises a content that it sent before.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Validators {
    pub etag: Option<String>,
    pub last_modified: Option<String>,
}

impl Validators {
    /// Maximum length of a header that is stored, in bytes. A longer one is ignored.
    const BYTES_MAX: usize = 512;

    fn new(response: &Response) -> Self {
        let text = |name| {
            let text = response.headers().get(name).and_then(|it| it.to_str().ok())?;
            (text.len() <= Self::BYTES_MAX).then(|| text.to_owned())
        };
        Self { etag: text(ETAG), last_modified: text(LAST_MODIFIED) }
    }

    fn add_to(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(etag) = &self.etag {
            request = request.header(IF_NONE_MATCH, etag);
        }
        match &self.last_modified {
            Some(at) => request.header(IF_MODIFIED_SINCE, at),
            None => request,
        }
    }
}

/// The addresses of a name, resolved and checked before.
struct Resolved(Vec<SocketAddr>);

impl Resolve for Resolved {
    fn resolve(&self, _: Name) -> Resolving {
        let addresses: Addrs = Box::new(self.0.clone().into_iter());
        Box::pin(ready(Ok(addresses)))
    }
}

/// Returns whether this address may receive the headers for the first one. The same server may, and so may the standard
/// HTTPS port of a server that was addressed on the standard HTTP port.
fn may_receive_headers(first: &Url, now: &Url) -> bool {
    let of = |it: &Url| (it.scheme().to_owned(), it.port_or_known_default());
    let is_upgrade = of(first) == ("http".to_owned(), Some(80)) && of(now) == ("https".to_owned(), Some(443));
    first.host() == now.host() && (of(first) == of(now) || is_upgrade)
}

/// Adds the headers for this server. An invalid header is not left out: the request fails.
fn with_headers(mut request: RequestBuilder, headers: &RequestHeaders) -> RequestBuilder {
    for (name, value) in &headers.extra {
        // Only encodings that this client can read may be requested.
        if !name.eq_ignore_ascii_case(ACCEPT_ENCODING.as_str()) {
            request = request.header(name, value);
        }
    }
    match &headers.referrer {
        Some(referrer) => request.header(REFERER, referrer),
        None => request,
    }
}

/// The deadline of a download.
#[derive(Clone, Copy)]
struct Deadline {
    at: Instant,
    limit: Duration,
}

impl Deadline {
    async fn keep<T>(
        self,
        host: &str,
        work: impl Future<Output = reqwest::Result<T>>,
    ) -> Result<T, FetchError> {
        let failed = |cause: reqwest::Error| match RefusedCertificate::in_error(&cause) {
            Some(refused) => FetchError::Certificate { host: host.to_owned(), refused: refused.clone() },
            None => FetchError::Transfer { host: host.to_owned(), cause: cause.without_url() },
        };
        self.limit(host, async { work.await.map_err(failed) }).await
    }

    async fn limit<T>(
        self,
        host: &str,
        work: impl Future<Output = Result<T, FetchError>>,
    ) -> Result<T, FetchError> {
        let late = |_| FetchError::Slow { host: host.to_owned(), limit: self.limit };
        timeout_at(self.at, work).await.map_err(late)?
    }
}

/// A body that is read as it arrives.
pub struct FetchBody {
    source: BodySource,
    head: AnswerHead,
    left: u64,
    bytes_max: u64,
    deadline: Deadline,
}

/// The source of a body.
enum BodySource {
    Server(Response),
    Node(Box<dyn RelayedBody>),
}

impl FetchBody {
    fn new(
        response: Response,
        origin: Option<Distance>,
        host: String,
        bytes_max: u64,
        deadline: Deadline,
    ) -> Result<Self, FetchError> {
        if !response.status().is_success() {
            let retry_after = retry_after(response.headers(), crate::clock::now_ms());
            return Err(FetchError::Status { host, status: response.status(), retry_after });
        }
        Self::with_any_status(response, origin, host, bytes_max, deadline)
    }

    /// Returns the body of an answer that may report an error.
    fn with_any_status(
        response: Response,
        origin: Option<Distance>,
        host: String,
        bytes_max: u64,
        deadline: Deadline,
    ) -> Result<Self, FetchError> {
        let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
        // The header may claim gzip wrongly; the bytes decide.
        if !encodings.all(|it| [&b"gzip"[..], b"x-gzip", b"identity", b""].contains(&it.as_bytes())) {
            return Err(FetchError::Encoding { host });
        }
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|it| it > bytes_max) {
            return Err(FetchError::TooLong { host, bytes_max });
        }
        let head = AnswerHead { host, origin, announced, validators: Validators::new(&response) };
        Ok(Self { source: BodySource::Server(response), head, left: bytes_max, bytes_max, deadline })
    }

    /// Returns the body of an answer that another node passes on.
    fn from_node(answer: RelayedAnswer, bytes_max: u64, deadline: Deadline) -> Self {
        let RelayedAnswer { head, body } = answer;
        Self { source: BodySource::Node(body), head, left: bytes_max, bytes_max, deadline }
    }

    /// Returns the head of the answer.
    pub fn head(&self) -> &AnswerHead {
        &self.head
    }

    /// Returns the length that the server announced, in bytes.
    pub fn announced(&self) -> Option<u64> {
        self.head.announced
    }

    /// Returns the headers for a later conditional request.
    pub fn validators(&self) -> &Validators {
        &self.head.validators
    }

    /// Returns the network of the server that sends the body, after all redirects.
    pub fn origin(&self) -> Option<Distance> {
        self.head.origin
    }

    /// Returns the next piece, or `None` at the end.
    ///
    /// # Errors
    /// The body breaks off, is too long or takes too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let (host, deadline) = (&self.head.host, self.deadline);
        let piece = match &mut self.source {
            BodySource::Server(response) => deadline.keep(host, response.chunk()).await?,
            BodySource::Node(body) => deadline.limit(host, body.next()).await?,
        };
        if let Some(piece) = &piece {
            self.left = self
                .left
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| FetchError::TooLong { host: host.clone(), bytes_max: self.bytes_max })?;
        }
        Ok(piece)
    }
}

impl FetchBody {
    /// Returns the whole body, unpacked if it is compressed.
    ///
    /// # Errors
    /// The body breaks off, is too long, takes too long or cannot be unpacked.
    pub async fn whole(mut self) -> Result<Vec<u8>, FetchError> {
        let mut packed = Vec::new();
        while let Some(piece) = self.next().await? {
            packed.extend_from_slice(&piece);
        }
        let mut whole = Vec::new();
        let unpacked = Unpacked::new(io::Cursor::new(packed), self.bytes_max)
            .and_then(|mut unpacked| unpacked.read_to_end(&mut whole));
        unpacked.map_err(|cause| FetchError::Unreadable { host: self.head.host, cause })?;
        Ok(whole)
    }
}

/// Reads the header `Retry-After`: seconds, or a date.
pub(crate) fn retry_after(headers: &HeaderMap, now_ms: i64) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let at = jiff::fmt::rfc2822::parse(text).ok()?.timestamp().as_millisecond();
    Some(Duration::from_millis(u64::try_from(at.saturating_sub(now_ms)).unwrap_or(0)))
}

impl FetchError {
    /// Returns how long the server asks to wait before the next request, if it refuses this one for that reason.
    pub fn asks_to_wait(&self) -> Option<Option<Duration>> {
        match self {
            Self::Status { status: StatusCode::TOO_MANY_REQUESTS, retry_after, .. } => Some(*retry_after),
            // Without a time, this is an error of the server.
            Self::Status { status: StatusCode::SERVICE_UNAVAILABLE, retry_after: Some(wait), .. } => {
                Some(Some(*wait))
            }
            Self::AtNode { error, .. } => error.asks_to_wait.map(|it| it.length),
            _ => None,
        }
    }

    /// Returns whether another try soon may help.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Transfer { .. } | Self::Slow { .. } | Self::Name { .. } => true,
            Self::Proxy { .. } | Self::ProxyName(_) => true,
            Self::NoNode(_) | Self::NodeLost { .. } => true,
            Self::AtNode { error, .. } => error.is_temporary,
            Self::Status { status, .. } => {
                status.is_server_error()
                    || [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT].contains(status)
            }
            _ => false,
        }
    }

    /// Returns whether the server has answered, so that the answer to another request may be a good one.
    pub(crate) fn is_answer(&self) -> bool {
        match self {
            Self::Status { .. } | Self::TooLong { .. } | Self::Unreadable { .. } | Self::Encoding { .. } => {
                true
            }
            Self::AtNode { error, .. } => error.is_answer,
            _ => false,
        }
    }

    /// Returns whether the message completes "failed to".
    pub(crate) fn completes_failed_to(&self) -> bool {
        match self {
            Self::Transfer { .. } | Self::Name { .. } | Self::Proxy { .. } => true,
            Self::ProxyName(_) | Self::Client(_) | Self::NodeLost { .. } => true,
            Self::AtNode { error, .. } => error.completes_failed_to,
            _ => false,
        }
    }

    /// Returns the message with its causes. None of them contains the address.
    pub fn with_causes(&self) -> String {
        with_causes(self)
    }
}

/// Returns the text of an error with all its causes.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
