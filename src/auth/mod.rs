//! Who somebody is: passwords, tokens, API keys, and what becomes of those who guess.
//!
//! A credential says who somebody is and nothing more. What a user may do is looked up at every use, in a view in
//! memory, so whoever is lowered, made inactive or deleted is so at the next request.
//!
//! Reading order: [`Auth`], `passwords` (slow hashes, few at a time), `tokens`, `keys`, `throttle` (failures).

mod hs256;
mod keys;
mod passwords;
#[cfg(test)]
mod tests;
mod throttle;
mod tokens;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actors::{Events, now_ms};
use domain::event::{CallerRef, Event, EventBody};
use domain::secret::{Secret, ServerKeys};
use domain::user::{ApiKey, USERNAME_CHARS_MAX, User};
use governor::clock::DefaultClock;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use serde_json::json;
use storage::{Models, Table, View};
use tracing::info;

pub(crate) use self::passwords::PASSWORD_BYTES_MAX;
use self::passwords::Passwords;
pub use self::passwords::hash_password;
use self::throttle::Throttle;
pub(crate) use self::tokens::Tokens;
use self::tokens::{Fault, Signer, Use};
use crate::config::AuthLimits;
use crate::http::reply::Refusal;

/// Tells users apart. A handle: clones are the same.
#[derive(Clone)]
pub(crate) struct Auth(Arc<Inner>);

struct Inner {
    users: View<Table<User>>,
    /// Tells of what happened.
    tell: Tell,
    signer: Signer,
    /// Makes of an API key what it is looked up by.
    lookup: [u8; 32],
    passwords: Passwords,
    throttle: Throttle,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth(…)")
    }
}

/// The id of the one record of keys.
const SERVER_KEYS: u32 = 1;

/// Where events go.
type Tell = Box<dyn Fn(Event) + Send + Sync>;

/// Why somebody is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Denied {
    /// No credentials were shown where some are needed.
    Nobody,
    /// An API key that is nobody's.
    ApiKey,
    /// The user is known and inactive.
    Inactive,
    /// An access token that is not good, or not any more.
    Token { expired: bool },
    /// A refresh token that is not good, or not any more.
    Refresh { expired: bool },
    /// User name and password do not fit together, or the user is inactive: it is not said which.
    Login,
    /// Too many log in at once.
    Busy,
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        let token = |expired| if expired { "Token is expired" } else { "Token is invalid" };
        match denied {
            Denied::Nobody => Refusal::unauthorized("Authentication credentials were not provided."),
            Denied::ApiKey => Refusal::unauthorized("Invalid API key"),
            Denied::Inactive => Refusal::unauthorized("User inactive"),
            Denied::Token { expired } => {
                let detail = "Given token not valid for any token type";
                let message = token(expired);
                let message =
                    json!({ "token_class": "AccessToken", "token_type": "access", "message": message });
                let body = json!({ "detail": detail, "code": "token_not_valid", "messages": [message] });
                Refusal::unauthorized(detail).with_body(body)
            }
            Denied::Refresh { expired } => {
                let detail = token(expired);
                let body = json!({ "detail": detail, "code": "token_not_valid" });
                Refusal::unauthorized(detail).with_body(body)
            }
            Denied::Login => Refusal::unauthorized("No active account found with the given credentials"),
            Denied::Busy => Refusal::unavailable("too many log in at once").retry_soon(),
        }
    }
}

/// What a password may be compared with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Door {
    /// The account's password.
    Account,
    /// The player password, and the account's.
    Player,
}

impl Auth {
    /// Over the users of this store, with the keys that it began with. For a thread that may block.
    ///
    /// # Errors
    /// When the store cannot be read, or has no keys.
    pub(crate) fn new(models: &Models, events: Events, limits: &AuthLimits) -> Result<Self, storage::Error> {
        let keys = models.store.collection::<ServerKeys>().get(SERVER_KEYS)?;
        let keys =
            keys.ok_or_else(|| storage::Error::Key("the store has no keys for credentials".to_owned()))?;
        Ok(Self::over(models.users.clone(), &keys, limits, move |event| events.happened(event)))
    }

    fn over(
        users: View<Table<User>>,
        keys: &ServerKeys,
        limits: &AuthLimits,
        tell: impl Fn(Event) + Send + Sync + 'static,
    ) -> Self {
        Self(Arc::new(Inner {
            users,
            tell: Box::new(tell),
            signer: Signer::new(&keys.tokens),
            lookup: keys.lookup,
            passwords: Passwords::new(limits.remember_login),
            throttle: Throttle::new(limits.failure_delay_max, DefaultClock::default()),
        }))
    }

    /// Whose credentials these headers show: `Authorization: Bearer` with an access token, `Authorization: ApiKey`, or
    /// `X-API-Key`, looked for in this order. `None` if there are none of these. Memory only.
    ///
    /// # Errors
    /// When the first that are shown are not good; others beside them do not count then.
    pub(crate) fn user_of(&self, headers: &HeaderMap) -> Result<Option<Arc<User>>, Denied> {
        if let Some(value) = headers.get(AUTHORIZATION) {
            let (scheme, rest) = scheme(value);
            if scheme.eq_ignore_ascii_case(b"bearer") {
                let token = str::from_utf8(rest).map_err(|_| Denied::Token { expired: false })?;
                return self.user_of_token(token).map(Some);
            }
            if scheme.eq_ignore_ascii_case(b"apikey") {
                return self.user_of_key(rest).map(Some);
            }
            // Other schemes are not ours: a proxy before us may have asked for them.
        }
        headers.get("x-api-key").map(|key| self.user_of_key(key.as_bytes())).transpose()
    }

    /// Whose access token this is. Memory only.
    ///
    /// # Errors
    /// When it is not good, or its user is inactive, has another password since, or is gone.
    pub(crate) fn user_of_token(&self, token: &str) -> Result<Arc<User>, Denied> {
        self.subject(token, Use::Access, |expired| Denied::Token { expired })
    }

    /// For how long the access token in these headers is still good; `None` where they show none, such as an API key,
    /// which is good until it is taken back. Whether it is good at all is what [`user_of`](Self::user_of) says.
    pub(crate) fn good_for(&self, headers: &HeaderMap) -> Option<Duration> {
        let (scheme, rest) = scheme(headers.get(AUTHORIZATION)?);
        let is_bearer = scheme.eq_ignore_ascii_case(b"bearer");
        let token = str::from_utf8(rest).ok().filter(|_| is_bearer)?;
        let seconds = self.0.signer.ends_at(token)?.saturating_sub(now_seconds());
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    fn user_of_key(&self, key: &[u8]) -> Result<Arc<User>, Denied> {
        let key = str::from_utf8(key).map_err(|_| Denied::ApiKey)?.trim();
        let digest = keys::lookup(&self.0.lookup, key).ok_or(Denied::ApiKey)?;
        active(self.0.users.load().one_by("api_key", digest), Denied::ApiKey)
    }

    fn subject(&self, token: &str, wanted: Use, bad: impl Fn(bool) -> Denied) -> Result<Arc<User>, Denied> {
        let subject = self
            .0
            .signer
            .read(token.trim(), wanted, now_seconds())
            .map_err(|it| bad(it == Fault::Expired))?;
        let users = self.0.users.load();
        let user = users.get(subject.user.0).filter(|it| it.generation == subject.generation);
        active(user, bad(false))
    }

    /// Who logs in to their account. Waits for its turn, as few passwords are looked at together; a repeated good login
    /// is answered from memory. An answer to a failure comes later the more there were, and never says what is wrong.
    ///
    /// # Errors
    /// [`Denied::Login`], or [`Denied::Busy`] when too many wait.
    pub(crate) async fn login(
        &self,
        username: &str,
        password: &str,
        address: IpAddr,
        agent: &str,
    ) -> Result<Arc<User>, Denied> {
        self.knock(Door::Account, username, password, address, agent).await
    }

    /// Who logs in with a player, by the player password or by the account's; everything else as with
    /// [`login`](Self::login).
    ///
    /// # Errors
    /// [`Denied::Login`], or [`Denied::Busy`] when too many wait.
    pub(crate) async fn player(
        &self,
        username: &str,
        password: &str,
        address: IpAddr,
        agent: &str,
    ) -> Result<Arc<User>, Denied> {
        self.knock(Door::Player, username, password, address, agent).await
    }

    async fn knock(
        &self,
        door: Door,
        username: &str,
        password: &str,
        address: IpAddr,
        agent: &str,
    ) -> Result<Arc<User>, Denied> {
        let user = self.named(username);
        if let Some(user) = user.as_ref().filter(|it| it.is_active) {
            let fits_player = door == Door::Player
                && user
                    .player_password
                    .as_ref()
                    .is_some_and(|it| self.0.passwords.equal(it.expose(), password));
            if fits_player || self.0.passwords.remembers(user, password) {
                return Ok(Arc::clone(user));
            }
        }
        let fits = self.0.passwords.verify(user.as_deref(), password).await.map_err(|_| Denied::Busy)?;
        // While the password was looked at, the user may have become another one.
        let now = user.as_ref().and_then(|it| self.0.users.load().get(it.id.0).cloned());
        let reason = match (&user, now) {
            (None, _) | (_, None) => "unknown user",
            (Some(then), Some(now)) if !fits || then.password != now.password => "wrong password",
            (_, Some(now)) if !now.is_active => "inactive user",
            (_, Some(now)) => {
                self.0.passwords.remember(&now, password);
                return Ok(now);
            }
        };
        self.tell_failure(reason, username, address, agent);
        self.0.throttle.failed(username, address).await.map_err(|_| Denied::Busy)?;
        Err(Denied::Login)
    }

    fn named(&self, username: &str) -> Option<Arc<User>> {
        // Names are not longer, and this is what lower-casing a hostile one would cost.
        if username.len() > 4 * USERNAME_CHARS_MAX {
            return None;
        }
        self.0.users.load().one_by("username", User::name_key(username)).cloned()
    }

    fn tell_failure(&self, reason: &'static str, username: &str, address: IpAddr, agent: &str) {
        let username: String =
            username.chars().filter(|it| !it.is_control()).take(USERNAME_CHARS_MAX).collect();
        info!(user.name = username, client.address = %address, reason, "a login failed");
        let attempt = CallerRef { user: Some(username), ip: address, user_agent: agent.to_owned() };
        let body = EventBody::LoginFailed { attempt, reason: reason.to_owned() };
        (self.0.tell)(Event { at: now_ms(), body });
    }

    /// The tokens of a user who has just logged in.
    pub(crate) fn tokens(&self, user: &User) -> Tokens {
        self.0.signer.both(user, now_seconds())
    }

    /// The tokens of a user who logged in then.
    #[cfg(test)]
    pub(crate) fn tokens_of(&self, user: &User, at_seconds: i64) -> Tokens {
        self.0.signer.both(user, at_seconds)
    }

    /// An access token for a refresh token.
    ///
    /// # Errors
    /// When it is not good, or its user is inactive, has another password since, or is gone.
    pub(crate) fn refresh(&self, token: &str) -> Result<String, Denied> {
        let user = self.subject(token, Use::Refresh, |expired| Denied::Refresh { expired })?;
        Ok(self.0.signer.sign(&user, Use::Access, now_seconds()))
    }

    /// The hash of a new password, to be kept.
    ///
    /// # Errors
    /// [`Denied::Busy`] when too many wait.
    pub(crate) async fn hash(&self, password: String) -> Result<Secret, Denied> {
        self.0.passwords.hash(password).await.map_err(|_| Denied::Busy)
    }

    /// A new API key, to be kept.
    pub(crate) fn new_api_key(&self) -> ApiKey {
        keys::generate(&self.0.lookup)
    }
}

fn active(user: Option<&Arc<User>>, unknown: Denied) -> Result<Arc<User>, Denied> {
    let user = user.ok_or(unknown)?;
    if user.is_active { Ok(Arc::clone(user)) } else { Err(Denied::Inactive) }
}

/// The scheme of an `Authorization` header, and what comes after it.
fn scheme(value: &HeaderValue) -> (&[u8], &[u8]) {
    let bytes = value.as_bytes().trim_ascii();
    let end = bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len());
    (&bytes[..end], bytes[end..].trim_ascii())
}

fn now_seconds() -> i64 {
    now_ms() / 1000
}
