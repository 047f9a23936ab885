//! `/api/accounts/token/`: login, refresh and logout.

use domain::secret::Secret;
use domain::user::USERNAME_CHARS_MAX;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::{Access, STREAMER};
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;
use uuid::Uuid;

use super::logins;
use super::user_rules::PASSWORD_CHARS_MAX;
use crate::context::RestCall;

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

/// Tokens of a login. Both end with the login: at a log-out, when its device is removed, or with a new password.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct TokenPairView {
    /// Valid for 24 hours; used to get access tokens.
    refresh: String,
    /// Valid for 30 minutes; for `Authorization: Bearer`.
    access: String,
}

/// Selects the login that ends.
#[derive(Clone, Debug, Body)]
pub(crate) struct Logout {
    /// A refresh token of the caller. By default, the login to which the access token of the request belongs ends.
    refresh: Option<Option<Secret>>,
}

/// Result of a logout.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LoggedOutView {
    /// Message for people.
    #[field(example = "Logout successful")]
    message: &'static str,
}

/// Description of the refusal of a login.
pub(super) const WRONG_LOGIN: &str = "Wrong user name or password, or the user is inactive.";

pub(super) fn routes() -> Vec<Route> {
    let login_at = |path| {
        Route::post(path, Access::Anyone, "Logs in with a password.", login)
            .refuses(StatusCode::UNAUTHORIZED, WRONG_LOGIN)
    };
    vec![
        login_at("/api/accounts/token/"),
        login_at("/api/accounts/auth/login/"),
        Route::post(
            "/api/accounts/token/refresh/",
            Access::Anyone,
            "Returns an access token and a new refresh token. The old one stays valid until it expires.",
            refresh,
        )
        .refuses(StatusCode::UNAUTHORIZED, "The token is invalid or expired, or its login has ended."),
        Route::post(
            "/api/accounts/auth/logout/",
            STREAMER,
            "Ends a login: its tokens are invalid from now on.",
            logout,
        ),
    ]
}

async fn login(call: Call, login: Login) -> Result<TokenPairView, Refusal> {
    let (address, agent) = (call.caller.address(), &call.caller.agent);
    let user = call.rest().auth.login(&login.username, login.password.expose(), address, agent).await?;
    let login = logins::begin(&call, &user).await;
    let tokens = call.rest().auth.tokens(&user, login.as_deref());
    Ok(TokenPairView { refresh: tokens.refresh, access: tokens.access })
}

async fn refresh(call: Call, body: TokenRefresh) -> Result<TokenPairView, Refusal> {
    let (user, login) = call.rest().auth.refresh(body.refresh.expose())?;
    logins::continue_login(&call, &login).await;
    let tokens = call.rest().auth.tokens(&user, Some(&login));
    Ok(TokenPairView { refresh: tokens.refresh, access: tokens.access })
}

async fn logout(call: Call, body: Logout) -> Result<LoggedOutView, Refusal> {
    let caller = call.user()?.id;
    let sent = body.refresh.flatten().and_then(|it| call.rest().auth.refresh(it.expose()).ok());
    let sent = sent.filter(|(user, _)| user.id == caller).map(|(_, login)| login.key);
    let current = logins::current(&call).map(|it| it.key());
    let ended: Vec<Uuid> = sent.into_iter().chain(current).collect();
    if !ended.is_empty() {
        logins::end(&call, ended).await?;
    }
    Ok(LoggedOutView { message: "Logout successful" })
}
