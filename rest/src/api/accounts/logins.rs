//! `/api/accounts/logins/`: the logins of a user, one for each device; and how a login begins and continues.

use std::sync::Arc;

use actors::now_ms;
use domain::event::{CallerRef, Event, EventBody};
use domain::ids::{DeviceLoginId, UserId};
use domain::login::{BrowserLogin, DeviceLogin, surplus};
use domain::user::{PasswordHash, User, UserLevel};
use http::StatusCode;
use resource_derive::{Query, View};
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::{NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use services::auth::Auth;
use storage::Write;
use tracing::warn;
use uuid::Uuid;

use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::find;

/// A login on a device, with its refresh token.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct DeviceLoginView {
    /// Assigned by the gateway.
    #[field(example = "7")]
    id: DeviceLoginId,
    /// When the user logged in.
    created_at: Time,
    /// When the device last got a token, to the minute.
    last_used: Time,
    /// When the device has to log in again if it gets no further token.
    expires_at: Time,
    /// Address of the device at the last use.
    #[field(example = "192.168.1.5")]
    ip_address: String,
    /// Program of the device at the last use.
    user_agent: String,
    /// Whether a browser keeps the login in a cookie.
    is_browser: bool,
    /// Whether this request belongs to the login.
    is_current: bool,
}

/// Selects the user.
#[derive(Debug, Query)]
pub(crate) struct DeviceLoginFilters {
    /// Id of the user; the caller by default. Only admins may name another user.
    user_id: Option<UserId>,
}

const LIST: &str = "/api/accounts/logins/";
const ONE: &str = "/api/accounts/logins/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STREAMER, "Lists the logins of the caller.", list)
            .refuses(StatusCode::FORBIDDEN, "Only admins may name another user.")
            .refuses(StatusCode::NOT_FOUND, "The user does not exist."),
        Route::delete(ONE, STREAMER, "Ends a login: its tokens are invalid from now on.", delete),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (DeviceLoginFilters, WholeOrPages),
) -> Result<Page<DeviceLoginView>, Refusal> {
    let caller = call.identity()?;
    let id = filters.user_id.unwrap_or(caller.id);
    if id != caller.id && !caller.may(UserLevel::Admin) {
        return Err(Refusal::no_permission());
    }
    let user = call.rest().models.users.load().get(id.0).cloned().ok_or_else(Refusal::unknown::<User>)?;
    let current = current(&call).map(|it| it.key());
    let view = |login: &Arc<DeviceLogin>| DeviceLoginView {
        id: login.id,
        created_at: Time(login.created_at),
        last_used: Time(login.used_at),
        expires_at: Time(login.used_at.saturating_add(login.idle_seconds_max() * 1000)),
        ip_address: login.address.to_string(),
        user_agent: login.agent.clone(),
        is_browser: login.browser.is_some(),
        is_current: Some(login.key) == current,
    };
    paging.render_with(&call, &call.rest().auth.logins_of(&user), view)
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let caller = call.identity()?;
    let may_end = |it: &Arc<DeviceLogin>| it.user == caller.id || caller.may(UserLevel::Admin);
    let found = call.rest().auth.login_with_id(DeviceLoginId(call.id()?)).filter(may_end);
    // The same answer as for an unknown login, which reveals nothing about others.
    let login = found.ok_or_else(Refusal::unknown::<DeviceLogin>)?;
    end(&call, vec![login.key]).await?;
    Ok(NoContent)
}

/// The login to which a request belongs.
pub(super) struct CurrentLogin {
    login: Arc<DeviceLogin>,
    auth: Auth,
}

impl CurrentLogin {
    pub(super) fn key(&self) -> Uuid {
        self.login.key
    }

    /// Returns the login as it is in memory, if it is not in the store and has not ended.
    fn in_memory(&self) -> Option<Arc<DeviceLogin>> {
        self.auth.memory_logins().by_key(self.login.key)
    }
}

/// Returns the login to which the request belongs. Requests with an API key have none.
pub(super) fn current(call: &Call) -> Option<CurrentLogin> {
    let auth = call.rest().auth.clone();
    Some(CurrentLogin { login: auth.login_of(&call.headers)?, auth })
}

/// Returns the login of a user who has just logged in: the one that this device has just used, or a new one. Returns
/// `None` if it cannot be stored, which does not prevent the login: admins may have to free the full disk.
pub(super) async fn begin(call: &Call, user: &User) -> Option<Arc<DeviceLogin>> {
    report(call, user);
    let (address, agent, now) = (call.caller.address().to_canonical(), call.caller.agent.clone(), now_ms());
    let known = call.rest().auth.logins_of(user);
    let is_recent =
        |it: &DeviceLogin| it.browser.is_none() && it.is_on(address, &agent) && it.was_just_used(now);
    if let Some(recent) = known.into_iter().find(|it| is_recent(it)) {
        return Some(recent);
    }
    match add(call, user, None).await {
        Ok(login) => Some(login),
        Err(refusal) => {
            warn!(
                user.id = user.id.0,
                "failed to store a login, so it ends with its access token: {refusal}"
            );
            None
        }
    }
}

/// Returns the login of a user who has just logged in with a browser: stored or, while the store refuses writes, in memory.
/// An admin has to sign in to the page in order to free the full disk.
pub(super) async fn begin_in_browser(
    call: &Call,
    user: &User,
    browser: BrowserLogin,
) -> Result<Arc<DeviceLogin>, Refusal> {
    report(call, user);
    match add(call, user, Some(browser.clone())).await {
        Err(refusal) if is_refused_write(&refusal) => {
            warn!(
                user.id = user.id.0,
                "failed to store a login, so it ends with the next restart: {refusal}"
            );
            let login = new_login(call, user, Some(browser));
            Ok(call.rest().auth.memory_logins().add(login, now_ms()))
        }
        added => added,
    }
}

/// Reports that a user has logged in.
fn report(call: &Call, user: &User) {
    let (ip, user_agent) = (call.caller.address().to_canonical(), call.caller.agent.clone());
    let caller = CallerRef { user: Some(user.username.clone()), ip, user_agent };
    call.rest().events.emit(Event { at: now_ms(), body: EventBody::UserLogin { caller } });
}

/// Returns whether the store refused a write, and may take one later.
fn is_refused_write(refusal: &Refusal) -> bool {
    refusal.reason().0 == StatusCode::SERVICE_UNAVAILABLE
}

/// Returns a login that has no id yet.
fn new_login(call: &Call, user: &User, browser: Option<BrowserLogin>) -> DeviceLogin {
    let now = now_ms();
    DeviceLogin {
        id: DeviceLoginId(0),
        user: user.id,
        key: Uuid::new_v4(),
        // The generation of the password that was verified.
        generation: user.generation,
        created_at: now,
        used_at: now,
        address: call.caller.address().to_canonical(),
        agent: call.caller.agent.clone(),
        browser,
    }
}

/// Stores a login of a user who has just logged in, and removes those that have ended or are too many.
async fn add(call: &Call, user: &User, browser: Option<BrowserLogin>) -> Result<Arc<DeviceLogin>, Refusal> {
    let login = new_login(call, user, browser);
    call.write(move |write| {
        let mut stored = find::<User>(write, login.user.0)?;
        stored.last_login = Some(login.created_at);
        write.put(&stored)?;
        put_new(write, login, stored.generation)
    })
    .await
}

/// Stores a login under a new id, and removes those of its user that have ended or are too many.
fn put_new(write: &mut Write<'_>, login: DeviceLogin, generation: u32) -> Result<Arc<DeviceLogin>, Refusal> {
    let known = logins_of_user(write, login.user)?;
    for id in surplus(&known, generation, login.address, &login.agent, login.used_at) {
        write.remove::<DeviceLogin>(id.0)?;
    }
    let login = DeviceLogin { id: DeviceLoginId(write.next_id::<DeviceLogin>()?), ..login };
    write.put(&login)?;
    Ok(Arc::new(login))
}

/// Replaces the value of the cookie of a login that is in memory, and stores it if the store takes writes again. Returns
/// `false` if another request was faster.
pub(super) async fn continue_in_memory(call: &Call, login: &DeviceLogin, digest: [u8; 32]) -> bool {
    let (auth, key) = (call.rest().auth.clone(), login.key);
    let Some(before) = login.browser.as_ref().map(|it| it.digest) else { return false };
    let device = (call.caller.address().to_canonical(), &*call.caller.agent);
    if !auth.memory_logins().replace_cookie(key, &before, digest, now_ms(), device) {
        return false;
    }
    let written = call.write({
        let auth = auth.clone();
        move |write| {
            // It may have ended meanwhile, and then it must not come back.
            let Some(login) = auth.memory_logins().by_key(key) else { return Ok(false) };
            let user = write.get::<User>(login.user.0)?.filter(|it| it.generation == login.generation);
            let is_stored = !write.by::<DeviceLogin>("key", key.as_bytes())?.is_empty();
            let Some(user) = user.filter(|_| !is_stored) else { return Ok(is_stored) };
            put_new(write, DeviceLogin::clone(&login), user.generation)?;
            Ok(true)
        }
    });
    match written.await {
        Ok(true) => auth.memory_logins().remove_stored(key),
        Ok(false) => {}
        Err(refusal) => warn!(login.id = login.id.0, "failed to store a login that is in memory: {refusal}"),
    }
    true
}

/// Returns the login if tokens can name it. The other nodes of a cluster would refuse tokens of a login that is only in the
/// memory of this one.
pub(super) fn named_in_tokens<'a>(call: &Call, login: &'a DeviceLogin) -> Option<&'a DeviceLogin> {
    let is_in_cluster = call.rest().models.store.log_status().borrow().is_some();
    (!is_in_cluster || call.rest().auth.is_stored(login.key)).then_some(login)
}

/// Records that a login got another token. A failure only lets the login expire earlier.
pub(super) async fn continue_login(call: &Call, login: &DeviceLogin) {
    let now = now_ms();
    if login.was_just_used(now) {
        return;
    }
    let (id, address, agent) = (login.id.0, call.caller.address().to_canonical(), call.caller.agent.clone());
    let written = call.write(move |write| {
        if let Some(login) = write.get::<DeviceLogin>(id)? {
            write.put(&DeviceLogin { used_at: now, address, agent, ..login })?;
        }
        Ok(())
    });
    if let Err(refusal) = written.await {
        warn!(login.id = id, "failed to write the use of a login: {refusal}");
    }
}

/// Ends the logins with these keys.
pub(super) async fn end(call: &Call, keys: Vec<Uuid>) -> Result<(), Refusal> {
    let auth = &call.rest().auth;
    keys.iter().for_each(|it| auth.memory_logins().end(*it));
    let ended = keys.clone();
    let written = call.write(move |write| {
        for key in ended {
            for login in write.by::<DeviceLogin>("key", key.as_bytes())? {
                write.remove::<DeviceLogin>(login.id.0)?;
            }
        }
        Ok(())
    });
    match written.await {
        // Those in memory have ended without it. One may just have been stored, so the write is tried in any case.
        Err(refusal) if is_refused_write(&refusal) && !keys.iter().any(|it| auth.is_stored(*it)) => Ok(()),
        written => written,
    }
}

/// Replaces the password of a user, which ends all logins except for `kept`.
pub(super) fn replace_password(
    write: &mut Write<'_>,
    user: &mut User,
    password: Option<PasswordHash>,
    kept: Option<CurrentLogin>,
) -> Result<(), Refusal> {
    let Some(password) = password else { return Ok(()) };
    user.set_password(password);
    let kept = kept.filter(|it| it.login.user == user.id);
    let mut is_kept = false;
    for mut login in logins_of_user(write, user.id)? {
        if kept.as_ref().is_some_and(|it| it.key() == login.key) {
            login.generation = user.generation;
            write.put(&login)?;
            is_kept = true;
        } else {
            write.remove::<DeviceLogin>(login.id.0)?;
        }
    }
    // Those in memory have the former generation, and end with it. The kept one is stored with the password.
    if let Some(login) = kept.filter(|_| !is_kept).and_then(|it| it.in_memory()) {
        let generation = user.generation;
        put_new(write, DeviceLogin { generation, ..DeviceLogin::clone(&login) }, generation)?;
    }
    Ok(())
}

/// Ends all logins of a user who is deleted.
pub(super) fn end_all(write: &mut Write<'_>, user: UserId) -> Result<(), Refusal> {
    for login in logins_of_user(write, user)? {
        write.remove::<DeviceLogin>(login.id.0)?;
    }
    Ok(())
}

fn logins_of_user(write: &Write<'_>, user: UserId) -> Result<Vec<DeviceLogin>, Refusal> {
    Ok(write.by::<DeviceLogin>("user", user.0.to_be_bytes())?)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Rest;

    #[tokio::test]
    async fn a_login_with_a_password_is_an_event_and_a_request_with_a_token_is_none() {
        let rest = Rest::start().await;
        let mut events = rest.context.events.subscribe();
        let user = json!({ "username": "anna", "password": "river stone lamp", "user_level": 0 });
        let made = rest.admin("POST", "/api/accounts/users/", user).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let login = json!({ "username": "anna", "password": "river stone lamp" }).to_string();
        let json_type = [("content-type", "application/json")];
        let tokens = rest.send("POST", "/api/accounts/token/", &json_type, login).await;
        assert_eq!(tokens.status, 200, "{}", tokens.text);
        let event = events.recv().await.unwrap();
        let EventBody::UserLogin { caller } = &event.body else { panic!("{event:?}") };
        assert_eq!(caller.user.as_deref(), Some("anna"));
        let bearer = format!("Bearer {}", tokens.body["access"].as_str().unwrap());
        let me = rest.send("GET", "/api/accounts/users/me/", &[("authorization", &bearer)], "").await;
        assert_eq!((me.status, &me.body["username"]), (200, &json!("anna")));
        rest.admin("GET", "/api/accounts/users/", Value::Null).await;
        rest.context.events.emit(Event { at: 0, body: EventBody::StoreResumed });
        assert_eq!(events.recv().await.unwrap().body, EventBody::StoreResumed);
    }
}
