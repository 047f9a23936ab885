//! `/api/accounts/logins/`: the logins of a user, one for each device; and how a login begins and continues.

use std::sync::Arc;

use actors::now_ms;
use domain::ids::{DeviceLoginId, UserId};
use domain::login::{BrowserLogin, DeviceLogin, surplus};
use domain::user::{PasswordHash, User, UserLevel};
use http::StatusCode;
use resource_derive::{Query, View};
use serde::Serialize;
use storage::Write;
use tracing::warn;
use uuid::Uuid;

use crate::http::reply::Refusal;
use crate::rest::frame::access::STREAMER;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::find;
use crate::rest::frame::route::{NoContent, Route};
use crate::rest::frame::value::Time;

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

async fn list(call: Call, filters: DeviceLoginFilters) -> Result<Vec<DeviceLoginView>, Refusal> {
    let caller = call.identity()?;
    let id = filters.user_id.unwrap_or(caller.id);
    if id != caller.id && !caller.may(UserLevel::Admin) {
        return Err(Refusal::no_permission());
    }
    let user = call.app.models.users.load().get(id.0).cloned().ok_or_else(Refusal::unknown::<User>)?;
    let current = current(&call);
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
    Ok(call.app.auth.logins_of(&user).iter().map(view).collect())
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let caller = Arc::clone(call.identity()?);
    call.delete(move |_, login: &DeviceLogin| {
        let may_end = login.user == caller.id || caller.may(UserLevel::Admin);
        // The same answer as for an unknown login, which reveals nothing about others.
        if may_end { Ok(()) } else { Err(Refusal::unknown::<DeviceLogin>()) }
    })
    .await
}

/// Returns the key of the login to which the request belongs. Requests with an API key have none.
pub(super) fn current(call: &Call) -> Option<Uuid> {
    call.app.auth.login_of(&call.headers).map(|it| it.key)
}

/// Returns the login of a user who has just logged in: the one that this device has just used, or a new one. Returns
/// `None` if it cannot be stored, which does not prevent the login: admins may have to free the full disk.
pub(super) async fn begin(call: &Call, user: &User) -> Option<Arc<DeviceLogin>> {
    let (address, agent, now) = (call.caller.address().to_canonical(), call.caller.agent.clone(), now_ms());
    let known = call.app.auth.logins_of(user);
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

/// Stores a login of a user who has just logged in, and removes those that have ended or are too many.
pub(super) async fn add(
    call: &Call,
    user: &User,
    browser: Option<BrowserLogin>,
) -> Result<Arc<DeviceLogin>, Refusal> {
    let (address, agent, now) = (call.caller.address().to_canonical(), call.caller.agent.clone(), now_ms());
    let (user, generation) = (user.id, user.generation);
    call.write(move |write| {
        let mut stored = find::<User>(write, user.0)?;
        stored.last_login = Some(now);
        write.put(&stored)?;
        let known = of_user(write, user)?;
        for id in surplus(&known, stored.generation, address, &agent, now) {
            write.remove::<DeviceLogin>(id.0)?;
        }
        let login = DeviceLogin {
            id: DeviceLoginId(write.next_id::<DeviceLogin>()?),
            user,
            key: Uuid::new_v4(),
            // The generation of the password that was verified.
            generation,
            created_at: now,
            used_at: now,
            address,
            agent,
            browser,
        };
        write.put(&login)?;
        Ok(Arc::new(login))
    })
    .await
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

/// Ends the login with this key.
pub(super) fn end(write: &mut Write<'_>, key: Uuid) -> Result<(), Refusal> {
    for login in write.by::<DeviceLogin>("key", key.as_bytes())? {
        write.remove::<DeviceLogin>(login.id.0)?;
    }
    Ok(())
}

/// Replaces the password of a user, which ends all logins except for `kept`.
pub(super) fn replace_password(
    write: &mut Write<'_>,
    user: &mut User,
    password: Option<PasswordHash>,
    kept: Option<Uuid>,
) -> Result<(), Refusal> {
    let Some(password) = password else { return Ok(()) };
    user.set_password(password);
    for mut login in of_user(write, user.id)? {
        if Some(login.key) == kept {
            login.generation = user.generation;
            write.put(&login)?;
        } else {
            write.remove::<DeviceLogin>(login.id.0)?;
        }
    }
    Ok(())
}

/// Ends all logins of a user who is deleted.
pub(super) fn end_all(write: &mut Write<'_>, user: UserId) -> Result<(), Refusal> {
    for login in of_user(write, user)? {
        write.remove::<DeviceLogin>(login.id.0)?;
    }
    Ok(())
}

fn of_user(write: &Write<'_>, user: UserId) -> Result<Vec<DeviceLogin>, Refusal> {
    Ok(write.by::<DeviceLogin>("user", user.0.to_be_bytes())?)
}
