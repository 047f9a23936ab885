//! `/api/accounts/token/`: login, refresh and logout.

use actors::now_ms;
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User};
use http::StatusCode;
use resource_derive::{Body, View};
use serde::Serialize;
use tracing::warn;

use super::users::PASSWORD_CHARS_MAX;
use crate::http::reply::Refusal;
use crate::rest::frame::access::{Access, STREAMER};
use crate::rest::frame::call::Call;
use crate::rest::frame::route::Route;

/// Credentials of a login.
#[derive(Clone, Debug, Body)]
pub(crate) struct Login {
    /// Compared regardless of case.
    #[field(chars_max = USERNAME_CHARS_MAX, example = "anna")]
    username: String,
    /// The login password, not the player password.
    #[field(chars_max = PASSWORD_CHARS_MAX)]
    password: Secret,
}

/// Request for an access token.
#[derive(Clone, Debug, Body)]
pub(crate) struct TokenRefresh {
    /// The refresh token of a login.
    refresh: Secret,
}

/// Tokens of a login.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TokenPairView {
    /// Valid for 24 hours; used to get access tokens.
    refresh: String,
    /// Valid for 30 minutes; for `Authorization: Bearer`.
    access: String,
}

/// An access token.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct AccessTokenView {
    /// Valid for 30 minutes; for `Authorization: Bearer`.
    access: String,
}

/// Result of a logout.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LoggedOutView {
    /// Message for people.
    #[field(example = "Logout successful")]
    message: &'static str,
}

/// Minimum time between two writes of a user's last login, in milliseconds. Some clients log in for every request, and
/// each write waits for the disk.
const LOGIN_INTERVAL_MS: i64 = 60_000;

pub(super) fn routes() -> Vec<Route> {
    let wrong = "Wrong user name or password, or the user is inactive.";
    let login_at = |path| {
        Route::post(path, Access::Anyone, "Logs in with a password.", login)
            .refuses(StatusCode::UNAUTHORIZED, wrong)
    };
    vec![
        login_at("/api/accounts/token/"),
        login_at("/api/accounts/auth/login/"),
        Route::post("/api/accounts/token/refresh/", Access::Anyone, "Returns an access token.", refresh)
            .refuses(StatusCode::UNAUTHORIZED, "The token is invalid or expired."),
        Route::post(
            "/api/accounts/auth/logout/",
            STREAMER,
            "Logs out. The client discards its tokens, which expire or are revoked by a new password.",
            logout,
        ),
    ]
}

async fn login(call: Call, login: Login) -> Result<TokenPairView, Refusal> {
    let (address, agent) = (call.caller.address(), &call.caller.agent);
    let user = call.app.auth.login(&login.username, login.password.expose(), address, agent).await?;
    record_login(&call, &user).await;
    let tokens = call.app.auth.tokens(&user);
    Ok(TokenPairView { refresh: tokens.refresh, access: tokens.access })
}

/// Records the time of a login. A failure does not prevent the login.
async fn record_login(call: &Call, user: &User) {
    let now = now_ms();
    if user.last_login.is_some_and(|it| now.saturating_sub(it) < LOGIN_INTERVAL_MS) {
        return;
    }
    let id = user.id.0;
    let written = call.write(move |write| {
        if let Some(mut user) = write.get::<User>(id)? {
            user.last_login = Some(now);
            write.put(&user)?;
        }
        Ok(())
    });
    if let Err(refusal) = written.await {
        warn!(user.id = id, "failed to write the time of a login: {refusal}");
    }
}

async fn refresh(call: Call, body: TokenRefresh) -> Result<AccessTokenView, Refusal> {
    Ok(AccessTokenView { access: call.app.auth.refresh(body.refresh.expose())? })
}

async fn logout(_: Call) -> Result<LoggedOutView, Refusal> {
    Ok(LoggedOutView { message: "Logout successful" })
}
