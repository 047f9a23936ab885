//! Requests to services with an interface of their own. No redirect is followed.

use domain::egress::Reach;
use domain::stream::RequestHeaders;
use reqwest::header::{ACCEPT_ENCODING, CONTENT_TYPE, USER_AGENT};
use reqwest::{Method, Response, StatusCode, Url};
use tokio::time::Instant;

use super::{Deadline, Fetch, FetchBody, FetchError, with_headers};
use crate::egress::Egress;

/// A request to a service.
#[derive(Clone, Debug)]
pub(crate) struct ServiceRequest<'a> {
    pub(crate) method: Method,
    pub(crate) url: &'a str,
    /// A JSON document.
    pub(crate) body: Option<&'a str>,
    pub(crate) headers: &'a RequestHeaders,
    pub(crate) reach: Reach,
}

/// The answer of a service, whatever its status: some services explain a refusal in the body.
#[derive(Clone, Debug)]
pub(crate) struct ServiceAnswer {
    pub(crate) status: StatusCode,
    /// Unpacked.
    pub(crate) body: Vec<u8>,
}

/// The head of an answer.
pub(super) struct Direct {
    pub(super) response: Response,
    pub(super) host: String,
    pub(super) deadline: Deadline,
}

impl Fetch {
    /// Sends a request to a service, and returns its whole answer.
    ///
    /// # Errors
    /// There is no answer; see [`FetchError`]. A status that reports an error is an answer.
    pub(crate) async fn exchange(&self, request: ServiceRequest<'_>) -> Result<ServiceAnswer, FetchError> {
        let Direct { response, host, deadline } = self.direct(request).await?;
        let status = response.status();
        let body = FetchBody::with_any_status(response, None, host, self.limits.bytes_max, deadline)?;
        Ok(ServiceAnswer { status, body: body.whole().await? })
    }

    /// Sends a request, and returns the head of its answer.
    pub(super) async fn direct(&self, request: ServiceRequest<'_>) -> Result<Direct, FetchError> {
        let ServiceRequest { method, url, body, headers, reach } = request;
        let egress = Egress::new(reach, self.own_listeners.clone());
        let url = Url::parse(url).map_err(|_| FetchError::Address)?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(FetchError::Address);
        }
        let limit = self.limits.total_timeout;
        let deadline = Deadline { at: Instant::now() + limit, limit };
        let host = url.host_str().unwrap_or_default().to_owned();
        let client = self.client_to(&url, &egress).await?;
        let mut sent = with_headers(client.request(method, url), headers)
            .header(USER_AGENT, headers.user_agent.as_deref().unwrap_or(&self.user_agent))
            .header(ACCEPT_ENCODING, "gzip");
        if let Some(body) = body {
            sent = sent.header(CONTENT_TYPE, "application/json").body(body.to_owned());
        }
        let response = self.judged(&host, deadline.keep(&host, sent.send()).await)?;
        Ok(Direct { response, host, deadline })
    }
}
