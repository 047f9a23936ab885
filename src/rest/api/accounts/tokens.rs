//! `/api/accounts/token/`: logging in, staying so, and out.

use actors::now_ms;
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User};
use http::StatusCode;
use tracing::warn;

use super::users::PASSWORD_CHARS_MAX;
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::{body, view};
use crate::rest::frame::route::{Access, Route, STREAMER};

body! {
    /// Who logs in.
    Login {
        /// Whatever the case of its letters.
        username: String [required(), chars_max(USERNAME_CHARS_MAX), example("anna")],
        /// Never the player password.
        password: Secret [required(), chars_max(PASSWORD_CHARS_MAX)],
    }
}

body! {
    /// What an access token is asked for with.
    TokenRefresh {
        /// The refresh token of a login.
        refresh: Secret [required()],
    }
}

view! {
    /// The tokens of a login.
    TokenPair {
        /// Good for 24 hours, to get access tokens with.
        refresh: String,
        /// Good for 30 minutes, for `Authorization: Bearer`.
        access: String,
    }
}

view! {
    /// An access token.
    AccessToken {
        /// Good for 30 minutes, for `Authorization: Bearer`.
        access: String,
    }
}

view! {
    /// What became of it.
    LoggedOut {
        /// For people.
        message: &'static str [example("Logout successful")],
    }
}

/// So much newer is the time of the last login before it is written again, in milliseconds: programs log in for every
/// request, and each write waits for a disk.
const LOGIN_NOTED_EVERY_MS: i64 = 60_000;

pub(super) fn routes() -> Vec<Route> {
    let wrong = "User name and password do not fit together, or the user is inactive.";
    let login_at = |path| {
        Route::post(path, Access::Anyone, "Logs in with a password.", login)
            .refuses(StatusCode::UNAUTHORIZED, wrong)
    };
    vec![
        login_at("/api/accounts/token/"),
        login_at("/api/accounts/auth/login/"),
        Route::post("/api/accounts/token/refresh/", Access::Anyone, "Gets an access token.", refresh)
            .refuses(StatusCode::UNAUTHORIZED, "The token is not good, or not any more."),
        Route::post(
            "/api/accounts/auth/logout/",
            STREAMER,
            "Logs out: the program forgets its tokens. They end by themselves, or with the password.",
            logout,
        ),
    ]
}

async fn login(call: Call, login: Login) -> Result<TokenPair, Refusal> {
    let username = login.username.unwrap_or_default();
    let password = login.password.unwrap_or_else(|| Secret::new(""));
    let (address, agent) = (call.caller.address(), &call.caller.agent);
    let user = call.app.auth.login(&username, password.expose(), address, agent).await?;
    note_login(&call, &user).await;
    let tokens = call.app.auth.tokens(&user);
    Ok(TokenPair { refresh: tokens.refresh, access: tokens.access })
}

/// Nobody is kept out because the time could not be written.
async fn note_login(call: &Call, user: &User) {
    let now = now_ms();
    if user.last_login.is_some_and(|it| now.saturating_sub(it) < LOGIN_NOTED_EVERY_MS) {
        return;
    }
    let id = user.id.0;
    let noted = call.write(move |write| {
        if let Some(mut user) = write.get::<User>(id)? {
            user.last_login = Some(now);
            write.put(&user)?;
        }
        Ok(())
    });
    if let Err(refusal) = noted.await {
        warn!(user.id = id, "failed to write the time of a login: {refusal}");
    }
}

async fn refresh(call: Call, body: TokenRefresh) -> Result<AccessToken, Refusal> {
    let token = body.refresh.unwrap_or_else(|| Secret::new(""));
    Ok(AccessToken { access: call.app.auth.refresh(token.expose())? })
}

async fn logout(_: Call) -> Result<LoggedOut, Refusal> {
    Ok(LoggedOut { message: "Logout successful" })
}
