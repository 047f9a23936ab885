//! Authentication: passwords, tokens, API keys, and delays after failed logins.
//!
//! Credentials only identify a user. Permissions are looked up at every use in an in-memory view, so permission changes
//! apply from the next request.
//!
//! Reading order: [`Auth`], `passwords` (slow hashes, few at a time), `hash_memory` (where they are computed), `tokens`,
//! `memory_logins` (those that the store refused), `keys`, `throttle` (delays after failures), `failures` (their reports).

mod denied;
mod failures;
mod hash_memory;
mod hs256;
mod keys;
mod memory_logins;
mod passwords;
mod player_secrets;
mod setup_code;
#[cfg(test)]
mod tests;
mod throttle;
mod tokens;
mod user_networks;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actors::{Events, now_ms};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use config::AuthLimits;
use data_encoding::HEXLOWER;
use domain::core_settings::{self, SYSTEM_SETTINGS};
use domain::django_hash::DjangoHash;
use domain::event::Event;
use domain::ids::DeviceLoginId;
use domain::login::DeviceLogin;
use domain::secret::{Secret, ServerKeys};
use domain::setting::CoreSetting;
use domain::user::{ApiKey, USERNAME_CHARS_MAX, User, check_admin_password};
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue};
use storage::{Models, Record, Store, Table, View};
use tracing::warn;
use uuid::Uuid;

pub use self::denied::Denied;
use self::failures::{FailedLogin, FailureReports};
pub use self::keys::random;
pub use self::memory_logins::MemoryLogins;
use self::passwords::{Lane, Passwords};
pub use self::passwords::{PASSWORD_BYTES_MAX, hash_password};
use self::player_secrets::PlayerSecrets;
pub use self::setup_code::SetupCode;
use self::throttle::{Attempt, Throttle};
pub use self::tokens::Tokens;
use self::tokens::{Signer, TokenError, TokenUse};
pub use self::user_networks::may_stream_from;

/// Authenticates users. A handle; clones share their state.
#[derive(Clone)]
pub struct Auth(Arc<Inner>);

struct Inner {
    /// Only for renewing imported password hashes.
    store: Store,
    users: View<Table<User>>,
    logins: View<Table<DeviceLogin>>,
    memory_logins: MemoryLogins,
    settings: View<Table<CoreSetting>>,
    /// Follows the server keys, which the operator can replace.
    signer: View<Signer>,
    /// Key of the digests that API keys are looked up by.
    lookup: [u8; 32],
    player_secrets: PlayerSecrets,
    passwords: Passwords,
    throttle: Throttle,
    failures: FailureReports,
}

impl fmt::Debug for Auth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Auth(…)")
    }
}

/// Id of the only record of server keys.
pub const SERVER_KEYS: u32 = 1;

/// Returns the player secret of a user, for code that has the store only. Blocks.
///
/// # Errors
/// Returns an error if the store cannot be read or has no keys.
pub(crate) fn player_secret_of(store: &Store, user: &User) -> Result<Secret, storage::Error> {
    Ok(PlayerSecrets::new(&server_keys(store.collection::<ServerKeys>().get(SERVER_KEYS)?)?).secret(user))
}

fn server_keys(stored: Option<ServerKeys>) -> Result<ServerKeys, storage::Error> {
    stored.ok_or_else(|| storage::Error::Key("the store has no keys for credentials".to_owned()))
}

/// Reason of a failed login in log and events.
const UNKNOWN_USER: &str = "unknown user";

/// Kind of login, which determines the accepted passwords.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LoginKind {
    /// Accepts the account password.
    Account,
    /// Accepts the player password, the player secret and, unless a core setting forbids it, the account password.
    Player,
}

impl Auth {
    /// Authenticates the users of this store with its server keys. Reads the store, so it blocks.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read or has no keys.
    pub fn new(models: &Models, events: Events, limits: &AuthLimits) -> Result<Self, storage::Error> {
        Self::from_parts(&models.store, models.users.clone(), limits, move |event| events.emit(event))
    }

    fn from_parts(
        store: &Store,
        users: View<Table<User>>,
        limits: &AuthLimits,
        publish: impl Fn(Event) + Send + Sync + 'static,
    ) -> Result<Self, storage::Error> {
        let keys = server_keys(store.collection::<ServerKeys>().get(SERVER_KEYS)?)?;
        let signer = store.view(const { &[ServerKeys::COLLECTION] }, move |reader, _| {
            let keys = server_keys(reader.collection::<ServerKeys>().get(SERVER_KEYS)?)?;
            Ok(Signer::new(&keys.tokens))
        })?;
        Ok(Self(Arc::new(Inner {
            store: store.clone(),
            users,
            logins: store.table()?,
            memory_logins: MemoryLogins::new(signer.clone()),
            settings: store.table()?,
            signer,
            lookup: keys.lookup,
            player_secrets: PlayerSecrets::new(&keys),
            passwords: Passwords::new(limits.remember_login),
            throttle: Throttle::new(limits.failure_delay_max),
            failures: FailureReports::new(publish),
        })))
    }

    /// Returns the user of the first credentials in these headers: `Authorization: Bearer` with an access token,
    /// `Authorization: ApiKey`, or `X-API-Key`, in this order. Returns `None` if the headers have none of these. Reads
    /// only memory.
    ///
    /// # Errors
    /// Returns an error if the first credentials are invalid, even if the headers contain others.
    pub fn user_of(&self, headers: &HeaderMap) -> Result<Option<Arc<User>>, Denied> {
        if let Some(value) = headers.get(AUTHORIZATION) {
            let (scheme, rest) = scheme(value);
            if scheme.eq_ignore_ascii_case(b"bearer") {
                let token = str::from_utf8(rest).map_err(|_| Denied::Token { expired: false })?;
                return self.user_of_token(token).map(Some);
            }
            if scheme.eq_ignore_ascii_case(b"apikey") {
                return self.user_of_key(rest).map(Some);
            }
            // Other schemes may be meant for a reverse proxy.
        }
        headers.get("x-api-key").map(|key| self.user_of_key(key.as_bytes())).transpose()
    }

    /// Returns the user of an access token. Reads only memory.
    ///
    /// # Errors
    /// Returns an error if the token is invalid, if its login has ended, or if its user was deleted, is inactive, or has
    /// changed the password.
    pub fn user_of_token(&self, token: &str) -> Result<Arc<User>, Denied> {
        self.subject(token, TokenUse::Access, |expired| Denied::Token { expired }).map(|it| it.0)
    }

    /// Returns a token with which this user plays one film or episode, and when it expires, in milliseconds since 1970. It
    /// ends with the login of these headers, if they have one.
    pub fn play_token(&self, user: &User, headers: &HeaderMap, title: Uuid) -> (String, i64) {
        let (login, now) = (self.login_of(headers), now_seconds());
        let token = self.0.signer.load().play(user, login.as_deref(), title, now);
        (token, (now + tokens::PLAY_SECONDS) * 1000)
    }

    /// Returns the user of a token that plays this film or episode. Reads only memory.
    ///
    /// # Errors
    /// Returns an error if the token is invalid or for another title, or if [`user_of_token`](Self::user_of_token) would.
    pub fn user_of_play_token(&self, token: &str, title: Uuid) -> Result<Arc<User>, Denied> {
        let bad = |expired| Denied::Token { expired };
        let subject = self.0.signer.load().read(token.trim(), TokenUse::Play, now_seconds());
        if subject.is_ok_and(|it| it.title != Some(title)) {
            return Err(bad(false));
        }
        self.subject(token, TokenUse::Play, bad).map(|it| it.0)
    }

    /// Returns the login of the access token in these headers, if they have a valid one.
    pub fn login_of(&self, headers: &HeaderMap) -> Option<Arc<DeviceLogin>> {
        let token = bearer(headers)?;
        self.subject(token, TokenUse::Access, |expired| Denied::Token { expired }).ok()?.1
    }

    /// Returns all logins of a user, by id: those of the store, then those in memory.
    pub fn logins_of(&self, user: &User) -> Vec<Arc<DeviceLogin>> {
        let logins = self.0.logins.load();
        let mut all: Vec<_> = logins.by("user", user.id.0.to_be_bytes()).cloned().collect();
        let in_memory = self.0.memory_logins.user_logins(user.id).into_iter().rev();
        all.extend(in_memory.filter(|it| !self.is_stored(it.key)));
        all.retain(|it| it.generation == user.generation && !it.is_expired(now_ms()));
        all
    }

    /// Returns the login with this id.
    pub fn login_with_id(&self, id: DeviceLoginId) -> Option<Arc<DeviceLogin>> {
        let stored = self.0.logins.load().get(id.0).cloned();
        stored.or_else(|| self.0.memory_logins.by_id(id))
    }

    /// Returns the logins that the store refused.
    pub fn memory_logins(&self) -> &MemoryLogins {
        &self.0.memory_logins
    }

    /// Returns whether the store has a login with this key.
    pub fn is_stored(&self, key: Uuid) -> bool {
        self.0.logins.load().one_by("key", key.as_bytes()).is_some()
    }

    /// Returns the remaining lifetime of the access token in these headers, or `None` if they have none. (An API key is
    /// valid until it is revoked.) Does not check whether the user exists; [`user_of`](Self::user_of) does.
    pub fn expires_in(&self, headers: &HeaderMap) -> Option<Duration> {
        let seconds = self.0.signer.load().expiry(bearer(headers)?)?.saturating_sub(now_seconds());
        Some(Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
    }

    fn user_of_key(&self, key: &[u8]) -> Result<Arc<User>, Denied> {
        let key = str::from_utf8(key).map_err(|_| Denied::ApiKey)?.trim();
        let digest = keys::lookup(&self.0.lookup, key).ok_or(Denied::ApiKey)?;
        active(self.0.users.load().one_by("api_key", digest), Denied::ApiKey)
    }

    fn subject(
        &self,
        token: &str,
        wanted: TokenUse,
        bad: impl Fn(bool) -> Denied,
    ) -> Result<(Arc<User>, Option<Arc<DeviceLogin>>), Denied> {
        let subject = self
            .0
            .signer
            .load()
            .read(token.trim(), wanted, now_seconds())
            .map_err(|it| bad(it == TokenError::Expired))?;
        let login = match subject.login {
            Some(key) => {
                let stored = self.0.logins.load().one_by("key", key.as_bytes()).cloned();
                let login = stored.or_else(|| self.0.memory_logins.by_key(key));
                Some(login.filter(|it| it.user == subject.user).ok_or_else(|| bad(false))?)
            }
            None => None,
        };
        // A login can follow its user into the next generation; a token cannot.
        let generation = login.as_ref().map_or(subject.generation, |it| it.generation);
        let users = self.0.users.load();
        let user = users.get(subject.user.0).filter(|it| it.generation == generation);
        Ok((active(user, bad(false))?, login))
    }

    /// Returns the number of failed logins since the start.
    pub fn n_failed_logins(&self) -> u64 {
        self.0.failures.count()
    }

    /// Logs a user in to the account. Only few passwords are verified at a time; a repeated successful login is
    /// answered from a cache. After failures the password is verified later and later, unless the user has logged in
    /// from this device before. The response to a failure never reveals the reason.
    ///
    /// # Errors
    /// Returns [`Denied::Login`], or [`Denied::Busy`] if too many logins are waiting.
    pub async fn login(
        &self,
        username: &str,
        password: &str,
        address: IpAddr,
        agent: &str,
    ) -> Result<Arc<User>, Denied> {
        self.authenticate(LoginKind::Account, username, password, address, agent).await
    }

    /// Logs a player program in with the player password, the player secret or, unless a core setting forbids it, the
    /// account password; otherwise like [`login`](Self::login).
    ///
    /// # Errors
    /// Returns [`Denied::Login`], or [`Denied::Busy`] if too many logins are waiting.
    pub async fn player(
        &self,
        username: &str,
        password: &str,
        address: IpAddr,
        agent: &str,
    ) -> Result<Arc<User>, Denied> {
        self.authenticate(LoginKind::Player, username, password, address, agent).await
    }

    async fn authenticate(
        &self,
        kind: LoginKind,
        username: &str,
        password: &str,
        address: IpAddr,
        agent: &str,
    ) -> Result<Arc<User>, Denied> {
        let user = self.named(username);
        let takes_account_password = kind == LoginKind::Account || self.players_use_login_password();
        let attempt = Attempt { user: user.as_ref().map(|it| it.id), username, address, agent };
        let admitted = self.0.throttle.admit(attempt).await.map_err(|_| Denied::Busy)?;
        if let Some(user) = user.as_ref().filter(|it| it.is_active) {
            let fits_player = kind == LoginKind::Player && self.is_for_players(user, password);
            if fits_player || (takes_account_password && self.0.passwords.is_cached(user, password)) {
                admitted.succeeded(user.id);
                return active(Some(user), Denied::Login);
            }
        }
        let lane = match (admitted.is_known(), admitted.is_delayed()) {
            (true, _) => Lane::Known,
            (false, false) => Lane::New,
            (false, true) => Lane::Delayed,
        };
        let verifying = self.0.passwords.verify(lane, user.as_deref(), password);
        let Ok(fits) = verifying.await else {
            admitted.withdraw();
            return Err(Denied::Busy);
        };
        // Verified in any case, so that a refusal takes the same time.
        let fits = fits && takes_account_password;
        // The user may have changed while the password was being verified.
        let now = user.as_ref().and_then(|it| self.0.users.load().get(it.id.0).cloned());
        let reason = match (&user, now) {
            (None, _) | (_, None) => UNKNOWN_USER,
            (Some(then), Some(now)) if !fits || then.password != now.password => "wrong password",
            (_, Some(now)) if !now.is_active => "inactive user",
            (_, Some(now)) => {
                let now = self.renew_hash(now, password).await;
                self.0.passwords.cache(&now, password);
                admitted.succeeded(now.id);
                return active(Some(&now), Denied::Login);
            }
        };
        // The name of an unknown user may be a password that was typed into the wrong field.
        let known = user.filter(|_| reason != UNKNOWN_USER);
        self.0.failures.report(FailedLogin { user: known, reason, address, agent });
        drop(admitted);
        Err(Denied::Login)
    }

    /// Returns whether this is the player password or the player secret of a user.
    fn is_for_players(&self, user: &User, password: &str) -> bool {
        let equals = |secret: &Secret| self.0.passwords.equal(secret.expose(), password);
        user.player_password.as_ref().is_some_and(equals) || equals(&self.player_secret(user))
    }

    /// Returns the player secret of a user, which every login of a player accepts in place of the player password. It
    /// stays the same until it is revoked. For addresses that players store, such as those in playlists.
    pub fn player_secret(&self, user: &User) -> Secret {
        self.0.player_secrets.secret(user)
    }

    fn players_use_login_password(&self) -> bool {
        let settings = self.0.settings.load();
        core_settings::login_password_for_players(settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value))
    }

    /// Replaces an imported hash by one of the gateway, now that the password is known. If that fails, the next login
    /// tries again.
    async fn renew_hash(&self, user: Arc<User>, password: &str) -> Arc<User> {
        let old = user.password.clone();
        if old.as_ref().is_none_or(|it| DjangoHash::parse(it.expose()).is_none()) {
            return user;
        }
        let Ok(hash) = self.0.passwords.hash(password.to_owned()).await else { return user };
        let is_weak = check_admin_password(password, &user.username).is_err();
        let id = user.id;
        let written = self.0.store.write(move |write| {
            let Some(mut now) = write.get::<User>(id.0)?.filter(|it| it.password == old) else {
                return Ok(None);
            };
            // Not a new password: the tokens of the user stay valid.
            (now.password, now.has_weak_password) = (Some(hash), is_weak);
            write.put(&now)?;
            Ok::<_, storage::Error>(Some(now))
        });
        match written.await {
            Ok(Some(now)) => Arc::new(now),
            Ok(None) => user,
            Err(error) => {
                warn!("failed to renew the imported password hash of user {id}: {error}");
                user
            }
        }
    }

    fn named(&self, username: &str) -> Option<Arc<User>> {
        // No name is longer; this bounds the cost of lower-casing a hostile one.
        if username.len() > 4 * USERNAME_CHARS_MAX {
            return None;
        }
        self.0.users.load().one_by("username", User::name_key(username)).cloned()
    }

    /// Returns a new value for the cookie of a browser, with the hash by which its login is found.
    pub fn new_cookie(&self) -> (Secret, [u8; 32]) {
        let ApiKey { key, digest } = self.new_api_key();
        (key, digest)
    }

    /// Returns the hash of a value of a cookie, and the login and the active user to which it belongs.
    pub fn login_of_cookie(&self, value: &str) -> Option<([u8; 32], Arc<User>, Arc<DeviceLogin>)> {
        let digest = keys::lookup(&self.0.lookup, value)?;
        let stored = self.0.logins.load().by("cookie", digest).next().cloned();
        let login = stored.or_else(|| self.0.memory_logins.by_cookie(&digest))?;
        let user = self.0.users.load().get(login.user.0).cloned()?;
        let is_valid =
            user.is_active_at(now_ms()) && user.generation == login.generation && !login.is_expired(now_ms());
        is_valid.then_some((digest, user, login))
    }

    /// Returns a short text that differs between installations, for names of cookies: browsers send the cookies of a host
    /// to all of its ports.
    pub fn installation(&self) -> String {
        let digest = keys::lookup(&self.0.lookup, "installation").unwrap_or_default();
        HEXLOWER.encode(&digest[..digest.len().min(4)])
    }

    /// Creates the tokens of a login. Without a login, the refresh token is invalid.
    pub fn tokens(&self, user: &User, login: Option<&DeviceLogin>) -> Tokens {
        self.0.signer.load().both(user, login, now_seconds())
    }

    /// Creates the tokens of a user who logged in at the given time.
    #[cfg(any(test, feature = "testing"))]
    pub fn tokens_of(&self, user: &User, at_seconds: i64) -> Tokens {
        self.0.signer.load().both(user, None, at_seconds)
    }

    /// Returns the user and the login of a refresh token.
    ///
    /// # Errors
    /// Returns an error if the token is invalid, if its login has ended, or if its user was deleted, is inactive, or has
    /// changed the password.
    pub fn refresh(&self, token: &str) -> Result<(Arc<User>, Arc<DeviceLogin>), Denied> {
        let (user, login) = self.subject(token, TokenUse::Refresh, |expired| Denied::Refresh { expired })?;
        Ok((user, login.ok_or(Denied::Refresh { expired: false })?))
    }

    /// Hashes a new password for storage.
    ///
    /// # Errors
    /// Returns [`Denied::Busy`] if too many passwords are waiting to be hashed.
    pub async fn hash(&self, password: String) -> Result<Secret, Denied> {
        self.0.passwords.hash(password).await.map_err(|_| Denied::Busy)
    }

    /// Returns an API key that somebody has chosen, for storage.
    pub fn api_key(&self, key: Secret) -> ApiKey {
        keys::chosen(&self.0.lookup, key)
    }

    /// Generates a new API key for storage.
    pub fn new_api_key(&self) -> ApiKey {
        keys::generate(&self.0.lookup)
    }
}

/// Returns an API key of another service for storage; `None` if its length is invalid.
pub fn stored_api_key(keys: &ServerKeys, key: &Secret) -> Option<ApiKey> {
    let digest = keys::lookup(&keys.lookup, key.expose())?;
    Some(ApiKey { key: key.clone(), digest })
}

fn active(user: Option<&Arc<User>>, unknown: Denied) -> Result<Arc<User>, Denied> {
    let user = user.ok_or(unknown)?;
    if !user.is_active {
        return Err(Denied::Inactive);
    }
    if user.has_expired(now_ms()) { Err(Denied::Expired) } else { Ok(Arc::clone(user)) }
}

/// Returns the token after `Authorization: Bearer`.
pub fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, rest) = scheme(headers.get(AUTHORIZATION)?);
    let is_bearer = scheme.eq_ignore_ascii_case(b"bearer");
    str::from_utf8(rest).ok().filter(|_| is_bearer)
}

/// Returns the name and the password of `Authorization: Basic` (RFC 7617) in these headers, if they have it.
///
/// # Errors
/// Returns [`Denied::Login`] if it has no name and password in UTF-8.
pub fn basic_login(headers: &HeaderMap) -> Result<Option<(String, Secret)>, Denied> {
    let Some((scheme, rest)) = headers.get(AUTHORIZATION).map(scheme) else { return Ok(None) };
    if !scheme.eq_ignore_ascii_case(b"basic") {
        return Ok(None);
    }
    let login = BASE64.decode(rest).ok().and_then(|it| String::from_utf8(it).ok());
    let login = login.as_deref().and_then(|it| it.split_once(':')).ok_or(Denied::Login)?;
    Ok(Some((login.0.to_owned(), Secret::new(login.1))))
}

/// Splits an `Authorization` header into its scheme and the rest.
fn scheme(value: &HeaderValue) -> (&[u8], &[u8]) {
    let bytes = value.as_bytes().trim_ascii();
    let end = bytes.iter().position(u8::is_ascii_whitespace).unwrap_or(bytes.len());
    (&bytes[..end], bytes[end..].trim_ascii())
}

fn now_seconds() -> i64 {
    now_ms() / 1000
}
