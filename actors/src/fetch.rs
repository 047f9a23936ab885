//! Everything that is fetched and not streamed: one HTTP client, with limits.
//!
//! Redirects are followed here and not by the library, so that every hop is looked at: only `http` and `https`, a hop
//! limit, and no header of ours to another host. Error texts name no URL, because a playlist's address carries a
//! password as often as not.

use std::time::Duration;

use reqwest::{
    Client, Response, StatusCode, Url,
    header::{CONTENT_LENGTH, LOCATION, USER_AGENT},
};

/// Hops followed before a chain counts as a loop.
const REDIRECTS_MAX: usize = 5;

/// How much may be fetched, and how long it may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchLimits {
    /// Longest wait for a connection, names and TLS included.
    pub connect_timeout: Duration,
    /// Longest wait for headers, and between two reads of the body.
    pub read_timeout: Duration,
    /// Longest body in bytes.
    pub bytes_max: u64,
}

impl Default for FetchLimits {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            read_timeout: Duration::from_secs(60),
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
        Ok(Self { client, limits })
    }

    /// Asks for `url` and answers its body, to be read as it arrives.
    ///
    /// # Errors
    /// When there is no good answer; see [`FetchError`].
    pub async fn get(&self, url: &str, user_agent: &str) -> Result<FetchBody, FetchError> {
        let mut url = Url::parse(url).map_err(|_| FetchError::Address)?;
        for _ in 0..=REDIRECTS_MAX {
            if !matches!(url.scheme(), "http" | "https") {
                return Err(FetchError::Address);
            }
            let host = url.host_str().unwrap_or_default().to_owned();
            let response =
                self.client.get(url.clone()).header(USER_AGENT, user_agent).send().await.map_err(
                    |cause| FetchError::Transfer { host: host.clone(), cause: cause.without_url() },
                )?;
            if response.status().is_redirection() {
                let location = response.headers().get(LOCATION).and_then(|it| it.to_str().ok());
                let next = location.and_then(|it| url.join(it).ok());
                url = next.ok_or(FetchError::Redirect { host })?;
                continue;
            }
            return FetchBody::of(response, host, self.limits.bytes_max);
        }
        Err(FetchError::Redirect { host: url.host_str().unwrap_or_default().to_owned() })
    }
}

/// A body that is read as it arrives.
pub struct FetchBody {
    response: Response,
    host: String,
    left: u64,
    bytes_max: u64,
}

impl FetchBody {
    fn of(response: Response, host: String, bytes_max: u64) -> Result<Self, FetchError> {
        if !response.status().is_success() {
            return Err(FetchError::Status { host, status: response.status() });
        }
        let announced =
            response.headers().get(CONTENT_LENGTH).and_then(|it| it.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|it| it > bytes_max) {
            return Err(FetchError::TooLong { host, bytes_max });
        }
        Ok(Self { response, host, left: bytes_max, bytes_max })
    }

    /// The next piece, or `None` at the end.
    ///
    /// # Errors
    /// When the body breaks off or is longer than allowed.
    pub async fn next(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, FetchError> {
        let piece = self
            .response
            .chunk()
            .await
            .map_err(|cause| FetchError::Transfer { host: self.host.clone(), cause: cause.without_url() })?;
        if let Some(piece) = &piece {
            self.left = self
                .left
                .checked_sub(piece.len() as u64)
                .ok_or_else(|| FetchError::TooLong { host: self.host.clone(), bytes_max: self.bytes_max })?;
        }
        Ok(piece)
    }
}
