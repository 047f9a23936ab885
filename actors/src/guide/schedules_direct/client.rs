//! Logins, requests and pauses.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use data_encoding::HEXLOWER;
use domain::egress::Reach;
use domain::guide::schedules_direct::{BASE_URL, LineupEntry, ServiceCountry, ServiceFault, ServiceStatus};
use domain::guide::source::GuideSource;
use domain::secret::Secret;
use domain::stream::RequestHeaders;
use parking_lot::Mutex;
use reqwest::Method;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};
use tokio::time::Instant;

use crate::fetch::{Fetch, FetchError, FetchLimits, ServiceRequest};

/// Lifetime of a token if the service does not say it.
const TOKEN_SECONDS: u64 = 23 * 3_600;
/// A token is renewed this long before it expires.
const TOKEN_RESERVE_SECONDS: u64 = 600;
/// Maximum number of logins that are remembered. More sources of this kind than this log in more often.
const LOGINS_MAX: usize = 64;
/// Maximum length of an answer, in bytes.
const ANSWER_BYTES_MAX: u64 = 64 << 20;
/// Maximum time of one request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(5 * 60);
/// An answer up to this length may be a refusal. Lists are longer, and are not parsed twice.
const REFUSAL_BYTES_MAX: usize = 64 * 1024;

/// Reason why a request to the service failed. Contains neither login nor address.
#[derive(Debug, thiserror::Error)]
pub enum ServiceError {
    /// The source has no user name or no password.
    #[error("the guide source needs a user name and a password")]
    NoLogin,
    /// Nothing can be fetched yet.
    #[error("the gateway is starting")]
    Starting,
    /// The service refuses the request.
    #[error("{0}")]
    Fault(ServiceFault),
    /// The service refused an earlier request, and is not asked again for a while.
    #[error("{fault}; it is asked again in {} minutes", .seconds.div_ceil(60))]
    Paused {
        /// The reason.
        fault: ServiceFault,
        /// Remaining length of the pause.
        seconds: u64,
    },
    /// There is no answer.
    #[error("{}", .0.with_causes())]
    Fetch(FetchError),
    /// The answer is not the expected one.
    #[error("Schedules Direct sent an answer that cannot be read")]
    Unreadable,
}

impl From<ServiceFault> for ServiceError {
    fn from(fault: ServiceFault) -> Self {
        Self::Fault(fault)
    }
}

/// The client of the service, with the logins of all sources. Clones share them.
#[derive(Clone, Default)]
pub struct SchedulesDirect {
    fetch: Arc<OnceLock<Fetch>>,
    logins: Arc<Mutex<HashMap<LoginKey, Arc<Login>>>>,
}

/// Identifies a login: the address of the service, the user, and the hash of the password.
#[derive(Clone, PartialEq, Eq, Hash)]
struct LoginKey {
    base_url: String,
    username: String,
    password_hash: String,
}

#[derive(Default)]
pub(super) struct Login {
    state: Mutex<LoginState>,
    /// The answers that were shown last. Locked while it is requested.
    pub(super) shown: tokio::sync::Mutex<Shown>,
    /// Held while a token is requested.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct LoginState {
    /// The token and its end.
    token: Option<(Secret, Instant)>,
    paused: Option<(ServiceFault, Instant)>,
    /// Number of lineups that can be added, and the time at which the number was known.
    changes: Option<(u64, Instant)>,
}

/// Answers that are kept for a while, so that a page that is opened often requests nothing.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) account: Option<(Instant, ServiceStatus, Vec<LineupEntry>)>,
    pub(super) countries: Option<(Instant, Arc<[ServiceCountry]>)>,
}

impl SchedulesDirect {
    /// Sets how requests are sent. Only the first call has an effect.
    pub(crate) fn connect(&self, fetch: &Fetch) {
        self.fetch.get_or_init(|| {
            let limits =
                FetchLimits { total_timeout: ANSWER_TIMEOUT, bytes_max: ANSWER_BYTES_MAX, ..fetch.limits() };
            fetch.clone().within(limits)
        });
    }

    /// Sends a request and returns its answer as JSON. `path` begins with a slash.
    ///
    /// # Errors
    /// The service does not answer, or refuses the request.
    pub(crate) async fn json(
        &self,
        source: &GuideSource,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, ServiceError> {
        let answer = self.bytes(source, method, path, body).await?;
        serde_json::from_slice(&answer).map_err(|_| ServiceError::Unreadable)
    }

    /// Sends a request and returns the body of its answer.
    ///
    /// # Errors
    /// The service does not answer, or refuses the request.
    pub(crate) async fn bytes(
        &self,
        source: &GuideSource,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Vec<u8>, ServiceError> {
        let key = LoginKey::new(source)?;
        let login = self.login(&key);
        let body = body.map(Value::to_string);
        let mut token = self.token(&key, &login).await?;
        let mut is_second = false;
        loop {
            login.check_pause()?;
            let answer = self.send(&key, Some(&token), method.clone(), path, body.as_deref()).await;
            match answer {
                // The service may end a token early; a new one is requested once.
                Err(ServiceError::Fault(ServiceFault::TokenExpired)) if !is_second => {
                    is_second = true;
                    login.forget(&token);
                    token = self.token(&key, &login).await?;
                }
                Err(ServiceError::Fault(fault)) => {
                    login.pause(fault);
                    return Err(fault.into());
                }
                answer => return answer,
            }
        }
    }

    /// Returns the number of lineups that can be added today, if it is known.
    pub(super) fn changes_remaining(&self, source: &GuideSource) -> Option<u64> {
        const DAY: Duration = Duration::from_secs(86_400);
        let login = self.login(&LoginKey::new(source).ok()?);
        let changes = login.state.lock().changes;
        changes.filter(|it| it.1.elapsed() < DAY).map(|it| it.0)
    }

    pub(super) fn set_changes_remaining(&self, source: &GuideSource, remaining: u64) {
        if let Ok(key) = LoginKey::new(source) {
            self.login(&key).state.lock().changes = Some((remaining, Instant::now()));
        }
    }

    /// Returns the login of a source.
    ///
    /// # Errors
    /// The source has no login.
    pub(super) fn login_of(&self, source: &GuideSource) -> Result<Arc<Login>, ServiceError> {
        Ok(self.login(&LoginKey::new(source)?))
    }

    fn login(&self, key: &LoginKey) -> Arc<Login> {
        let mut logins = self.logins.lock();
        if logins.len() >= LOGINS_MAX && !logins.contains_key(key) {
            // A pause outlives this: forgetting it could lock an account.
            logins.retain(|_, it| it.check_pause().is_err());
        }
        logins.entry(key.clone()).or_default().clone()
    }

    /// Returns the token of a login, which is new if there is none.
    async fn token(&self, key: &LoginKey, login: &Login) -> Result<Secret, ServiceError> {
        let _turn = login.turn.lock().await;
        login.check_pause()?;
        if let Some(token) = login.valid_token() {
            return Ok(token);
        }
        let body = json!({ "username": key.username, "password": key.password_hash }).to_string();
        let answer = self.send(key, None, Method::POST, "/token", Some(&body)).await;
        let answer = answer.inspect_err(|error| {
            if let ServiceError::Fault(fault) = error {
                login.pause(*fault);
            }
        })?;
        let answer: Value = serde_json::from_slice(&answer).map_err(|_| ServiceError::Unreadable)?;
        let token = answer["token"].as_str().filter(|it| !it.is_empty()).ok_or(ServiceError::Unreadable)?;
        let token = Secret::new(token);
        login.state.lock().token = Some((token.clone(), Instant::now() + lifetime(&answer)));
        Ok(token)
    }

    async fn send(
        &self,
        key: &LoginKey,
        token: Option<&Secret>,
        method: Method,
        path: &str,
        body: Option<&str>,
    ) -> Result<Vec<u8>, ServiceError> {
        let extra = token.map(|it| ("token".to_owned(), it.expose().to_owned()));
        let headers = RequestHeaders { extra: extra.into_iter().collect(), ..RequestHeaders::default() };
        let url = format!("{}{path}", key.base_url);
        let reach = Reach::default();
        let request = ServiceRequest { method, url: &url, body, headers: &headers, reach };
        let fetch = self.fetch.get().ok_or(ServiceError::Starting)?;
        let answer = fetch.exchange(request).await.map_err(ServiceError::Fetch)?;
        let is_good = answer.status.is_success();
        if !is_good || answer.body.len() <= REFUSAL_BYTES_MAX {
            let code = serde_json::from_slice::<Value>(&answer.body).ok().and_then(|it| it["code"].as_i64());
            if let Some(fault) = code.and_then(ServiceFault::from_code) {
                return Err(fault.into());
            }
        }
        match is_good {
            true => Ok(answer.body),
            false => {
                let host = host_of(&key.base_url);
                Err(ServiceError::Fetch(FetchError::Status {
                    host,
                    status: answer.status,
                    retry_after: None,
                }))
            }
        }
    }
}

impl LoginKey {
    fn new(source: &GuideSource) -> Result<Self, ServiceError> {
        let text = |it: &Option<String>| it.clone().filter(|it| !it.trim().is_empty());
        let username = text(&source.username).ok_or(ServiceError::NoLogin)?;
        let password = source.password.as_ref().filter(|it| !it.expose().is_empty());
        let password = password.ok_or(ServiceError::NoLogin)?;
        Ok(Self { base_url: base_url(source), username, password_hash: sha1_hex(password.expose()) })
    }
}

impl Login {
    fn valid_token(&self) -> Option<Secret> {
        let state = self.state.lock();
        state.token.as_ref().filter(|it| it.1 > Instant::now()).map(|it| it.0.clone())
    }

    /// Forgets a token, unless it was replaced meanwhile.
    fn forget(&self, token: &Secret) {
        self.state.lock().token.take_if(|it| it.0 == *token);
    }

    fn check_pause(&self) -> Result<(), ServiceError> {
        let paused = self.state.lock().paused;
        let now = Instant::now();
        match paused.filter(|it| it.1 > now) {
            Some((fault, until)) => {
                Err(ServiceError::Paused { fault, seconds: (until - now).as_secs().max(1) })
            }
            None => Ok(()),
        }
    }

    /// Pauses requests if the fault needs it.
    fn pause(&self, fault: ServiceFault) {
        if let Some(seconds) = fault.pause_seconds() {
            self.state.lock().paused = Some((fault, Instant::now() + Duration::from_secs(seconds)));
        }
    }
}

/// Returns the address of the service of a source, without a slash at its end.
pub(super) fn base_url(source: &GuideSource) -> String {
    let url = source.url.as_ref().map_or(BASE_URL, |it| it.expose());
    url.trim_end_matches('/').to_owned()
}

fn host_of(url: &str) -> String {
    url::Url::parse(url).ok().and_then(|it| it.host_str().map(str::to_owned)).unwrap_or_default()
}

/// Returns for how long a token is used.
fn lifetime(answer: &Value) -> Duration {
    // Both times are of the clock of the service, so that a wrong clock here does no harm.
    let now = answer["datetime"].as_str().and_then(|it| it.parse::<jiff::Timestamp>().ok());
    let end = answer["tokenExpires"].as_i64();
    let seconds = now.zip(end).and_then(|(now, end)| u64::try_from(end.saturating_sub(now.as_second())).ok());
    let seconds = seconds.unwrap_or(TOKEN_SECONDS).min(TOKEN_SECONDS);
    Duration::from_secs(seconds.saturating_sub(TOKEN_RESERVE_SECONDS).max(60))
}

/// Returns the hash in which the service wants passwords, in hexadecimal digits.
fn sha1_hex(text: &str) -> String {
    HEXLOWER.encode(&Sha1::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_of_a_token_is_that_of_the_service_within_limits() {
        let of = |answer: Value| lifetime(&answer).as_secs();
        let now = "2026-01-01T00:00:00Z";
        let at = 1_767_225_600;
        assert_eq!(of(json!({ "datetime": now, "tokenExpires": at + 7_200 })), 6_600);
        assert_eq!(of(json!({ "datetime": now, "tokenExpires": at + 10 })), 60);
        assert_eq!(of(json!({ "datetime": now, "tokenExpires": at - 10 })), TOKEN_SECONDS - 600);
        assert_eq!(of(json!({ "datetime": now, "tokenExpires": i64::MAX })), TOKEN_SECONDS - 600);
        assert_eq!(of(json!({})), TOKEN_SECONDS - 600);
    }

    #[test]
    fn the_password_is_sent_as_its_hash() {
        assert_eq!(sha1_hex("hunter2"), "f3bbbd66a63d4bf1747940578ec3d0103530e21d");
    }
}
