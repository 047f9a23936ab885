//! Everything that is fetched and not streamed: one HTTP client, with limits.
//!
//! Redirects are followed here and not by the library, so that every hop is looked at: only `http` and `https`, a hop
//! limit, and what the user meant for one server goes to no other. Error texts name no URL, because a playlist's
//! address carries a password as often as not.
//!
//! Bodies come as they were sent. Whoever reads them takes them through [`Unpacked`], which tells by the bytes whether
//! they are compressed: what servers say of that is often wrong.

#[cfg(test)]
mod tests;
mod unpacked;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use domain::stream::RequestHeaders;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, LOCATION, REFERER, USER_AGENT};
use reqwest::{Client, RequestBuilder, Response, StatusCode, Url};
use tokio::time::{Instant, timeout_at};

pub(crate) use self::unpacked::Unpacked;

/// Who asks, where neither account nor caller says otherwise.
const OUR_USER_AGENT: &str = concat!("Headwater/", env!("CARGO_PKG_VERSION"));

/// Hops followed before a chain counts as a loop.
const REDIRECTS_MAX: usize = 5;

/// How much may be fetched, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Longest wait for a connection, names and TLS included.
    pub connect_timeout: Duration,
    /// Longest wait for headers, and between two reads of the body.
    pub read_timeout: Duration,
    /// Longest time from the first request to the last byte. Ends what drips for ever.
    pub total_timeout: Duration,
    /// Longest body in bytes; of a compressed one both before and after it is unpacked.
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

/// Why something could not be fetched. Names no URL.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// The text is no `http` or `https` address.
    #[error("the address is not a valid http or https URL")]
    Address,
    /// The client could not be made.
    #[error("set up the HTTP client")]
    Client(#[source] reqwest::Error),
    /// No connection, no answer, or the body broke off.
    #[error("fetch from \"{host}\"")]
    Transfer {
        /// Whom was asked.
        host: String,
        /// What went wrong.
        #[source]
        cause: reqwest::Error,
    },
    /// It did not all come in time.
    #[error("\"{host}\" did not send everything within {} s", .limit.as_secs())]
    Slow {
        /// Whom was asked.
        host: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The body is compressed in a way that was not asked for.
    #[error("\"{host}\" answered in an encoding that is not understood")]
    Encoding {
        /// Who answered.
        host: String,
    },
    /// The server refused.
    #[error("\"{host}\" answered {status}")]
    Status {
        /// Who answered.
        host: String,
        /// With what.
        status: StatusCode,
    },
    /// A redirect led nowhere, elsewhere than to `http` or `https`, or on and on.
    #[error("\"{host}\" redirects in a way that is not followed")]
    Redirect {
        /// Who redirected.
        host: String,
    },
    /// The body is longer than allowed.
    #[error("the answer of \"{host}\" is longer than {bytes_max} bytes")]
    TooLong {
        /// Who answered.
        host: String,
        /// What was allowed.
        bytes_max: u64,
    },
}

/// The shared HTTP client for everything that is not a stream. Cheap to clone.
#[derive(Clone)]
pub struct Fetch {
    client: Client,
    limits: FetchLimits,
    /// What servers are told where nobody says it.
    user_agent: Arc<str>,
}

impl Fetch {
    /// A client with these limits. The process must have a TLS provider installed.
    ///
    /// # Errors
    /// When the client cannot be built.
    pub fn new(limits: FetchLimits) -> Result<Self, FetchError> {
        let client = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(limits.connect_timeout)
            .read_timeout(limits.read_timeout)
            .build()
            .map_err(FetchError::Client)?;
        Ok(Self { client, limits, user_agent: OUR_USER_AGENT.into() })
    }

    /// The same client under another name, where headers give none. The name has to be fit for a header.
    pub fn known_as(self, user_agent: &str) -> Self {
        Self { user_agent: user_agent.into(), ..self }
    }

    /// Asks for `url` with these headers, and answers its body, to be read as it arrives. A redirect to another server,
    /// or to an unprotected connection, gets none of them but the user agent.
    ///
    /// # Errors
    /// When there is no good answer; see [`FetchError`].
    pub async fn get(&self, url: &str, headers: &RequestHeaders) -> Result<FetchBody, FetchError> {
        let mut url = Url::parse(url).map_err(|_| FetchError::Address)?;
        let deadline =
            Deadline { at: Instant::now() + self.limits.total_timeout, limit: self.limits.total_timeout };
        let first = url.clone();
        for _ in 0..=REDIRECTS_MAX {
            if !matches!(url.scheme(), "http" | "https") {
                return Err(FetchError::Address);
            }
            let host = url.host_str().unwrap_or_default().to_owned();
            let request = self.client.get(url.clone());
            let request = if may_know(&first, &url) { with_all(request, headers) } else { request };
            let user_agent = headers.user_agent.as_deref().unwrap_or(&self.user_agent);
            let request = request.header(USER_AGENT, user_agent).header(ACCEPT_ENCODING, "gzip");
            let response = deadline.keep(&host, request.send()).await?;
            if response.status().is_redirection() {
                let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
                let next = location.and_then(|it| url.join(it).ok());
                url = next.ok_or(FetchError::Redirect { host })?;
                continue;
            }
            return FetchBody::of(response, host, self.limits.bytes_max, deadline);
        }
        Err(FetchError::Redirect { host: url.host_str().unwrap_or_default().to_owned() })
    }

    /// How much may be fetched.
    pub fn limits(&self) -> FetchLimits {
        self.limits
    }
}

/// May this address get what the user meant for the first one? The same server may, and the protected door of one that
/// was asked at the usual unprotected one.
fn may_know(first: &Url, now: &Url) -> bool {
    let of = |it: &Url| (it.scheme().to_owned(), it.port_or_known_default());
    let is_upgrade = of(first) == ("http".to_owned(), Some(80)) && of(now) == ("https".to_owned(), Some(443));
    first.host() == now.host() && (of(first) == of(now) || is_upgrade)
}

/// Everything that is meant for this server. A header that cannot be sent is left out by no one: the request fails.
fn with_all(mut request: RequestBuilder, headers: &RequestHeaders) -> RequestBuilder {
    for (name, value) in &headers.extra {
        // Bodies must come in an encoding that we read.
        if !name.eq_ignore_ascii_case(ACCEPT_ENCODING.as_str()) {
            request = request.header(name, value);
        }
    }
    match &headers.referrer {
        Some(referrer) => request.header(REFERER, referrer),
        None => request,
    }
}

/// When everything has to be there.
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
        let host = || host.to_owned();
        match timeout_at(self.at, work).await {
            Ok(done) => {
                done.map_err(|cause| FetchError::Transfer { host: host(), cause: cause.without_url() })
            }
            Err(_) => Err(FetchError::Slow { host: host(), limit: self.limit }),
        }
    }
}

/// A body that is read as it arrives.
pub struct FetchBody {
    response: Response,
    host: String,
    left: u64,
    bytes_max: u64,
    deadline: Deadline,
}

impl FetchBody {
    fn of(response: Response, host: String, bytes_max: u64, deadline: Deadline) -> Result<Self, FetchError> {
        if !response.status().is_success() {
            return Err(FetchError::Status { host, status: response.status() });
        }
        let mut encodings = response.headers().get_all(CONTENT_ENCODING).iter();
        // What is said to be gzip may be none; that is seen in the bytes.
        if !encodings.all(|it| [&b"gzip"[..], b"x-gzip", b"identity", b""].contains(&it.as_bytes())) {
            return Err(FetchError::Encoding { host });
        }
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|it| it > bytes_max) {
            return Err(FetchError::TooLong { host, bytes_max });
        }
        Ok(Self { response, host, left: bytes_max, bytes_max, deadline })
    }

    /// The next piece, or `None` at the end.
    ///
    /// # Errors
    /// When the body breaks off, is longer than allowed or takes too long.
    pub async fn next(&mut self) -> Result<Option<Bytes>, FetchError> {
        let piece = self.deadline.keep(&self.host, self.response.chunk()).await?;
        if let Some(piece) = &piece {
            self.left = self
                .left
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| FetchError::TooLong { host: self.host.clone(), bytes_max: self.bytes_max })?;
        }
        Ok(piece)
    }
}

impl FetchError {
    /// The sentence with its causes. The address is in none of them.
    pub fn with_causes(&self) -> String {
        with_causes(self)
    }
}

/// An error with everything that led to it.
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
