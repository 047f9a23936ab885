//! Requests to the catalogue: their pace, their repetition, and errors without the key.

use std::time::Duration;

use actors::{Fetch, FetchError};
use domain::egress::Reach;
use domain::secret::Secret;
use domain::stream::RequestHeaders;
use domain::tmdb::CompletionSettings;
use http::StatusCode;
use serde_json::Value;
use tokio::time::sleep;
use url::form_urlencoded;

/// How often a request is sent, at most.
const ATTEMPTS_MAX: u32 = 3;
/// Longest pause that the catalogue may ask for. A longer one ends the run.
const PAUSE_MAX: Duration = Duration::from_secs(60);

/// Pauses between requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delays {
    /// Before each request: at most ten a second, one after the other. The catalogue allows about forty.
    pub(super) between: Duration,
    /// After a failure, twice as long after the next one. Also after a refusal that names no pause.
    pub(super) after_failure: Duration,
}

impl Default for Delays {
    fn default() -> Self {
        Self { between: Duration::from_millis(100), after_failure: Duration::from_secs(2) }
    }
}

/// Why a question has no answer. No text contains the key or an address.
#[derive(Debug, thiserror::Error)]
pub(super) enum AskError {
    /// The catalogue has nothing under this id.
    #[error("TMDB has no such title")]
    Missing,
    /// Another question will fail too, so the run ends.
    #[error("{0}")]
    Ending(String),
    /// Another title may have an answer.
    #[error("{0}")]
    Failed(String),
}

/// Asks one question after the other.
pub(super) struct Client<'a> {
    fetch: &'a Fetch,
    delays: Delays,
    address: &'a str,
    /// The key as a parameter; `None` for a token, which is in the headers.
    key: Option<&'a Secret>,
    headers: RequestHeaders,
}

impl<'a> Client<'a> {
    /// A token of version 4 has dots, a key of version 3 has none.
    pub(super) fn new(fetch: &'a Fetch, delays: Delays, settings: &'a CompletionSettings) -> Self {
        let is_token = |it: &&Secret| it.expose().contains('.');
        let key = settings.api_key.as_ref();
        let mut headers = RequestHeaders::default();
        headers.set("Accept", "application/json");
        if let Some(token) = key.filter(is_token) {
            headers.set("Authorization", &format!("Bearer {}", token.expose()));
        }
        let key = key.filter(|it| !is_token(it));
        Self { fetch, delays, address: &settings.address, key, headers }
    }

    fn url(&self, path: &str, parameters: &[(&str, &str)]) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(parameters);
        if let Some(key) = self.key {
            query.append_pair("api_key", key.expose());
        }
        format!("{}/{path}?{}", self.address, query.finish())
    }

    /// Returns the answer under this path with these parameters.
    pub(super) async fn get(&self, path: &str, parameters: &[(&str, &str)]) -> Result<Value, AskError> {
        let url = self.url(path, parameters);
        let mut pause = self.delays.after_failure;
        let mut attempt = 1;
        loop {
            sleep(self.delays.between).await;
            let error = match self.get_once(&url).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            let asked = error.asks_to_wait();
            let wait = asked.map_or(pause, |it| it.unwrap_or(pause));
            if asked.is_some() && wait > PAUSE_MAX {
                return Err(AskError::Ending(format!("TMDB asks to wait {} s", wait.as_secs())));
            }
            if attempt >= ATTEMPTS_MAX || !error.is_temporary() {
                return Err(said(&error));
            }
            sleep(wait).await;
            (pause, attempt) = (pause * 2, attempt + 1);
        }
    }

    async fn get_once(&self, url: &str) -> Result<Value, FetchError> {
        // An admin typed the address.
        let body = self.fetch.get(url, &self.headers, Reach::default()).await?.whole().await?;
        // A text other than JSON has the shape of none of the answers.
        Ok(serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

fn said(error: &FetchError) -> AskError {
    match error {
        FetchError::Status { status: StatusCode::NOT_FOUND, .. } => AskError::Missing,
        FetchError::Status { status: StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN, .. } => {
            AskError::Ending("TMDB refuses the key".to_owned())
        }
        _ => AskError::Failed(format!("TMDB does not answer: {}", error.with_causes())),
    }
}
