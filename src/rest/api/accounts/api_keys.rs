//! `/api/accounts/api-keys/`: the one API key that a user may have.

use std::sync::Arc;

use domain::ids::UserId;
use domain::user::{User, UserLevel};
use http::StatusCode;

use super::users::UserAccount;
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::{body, view};
use crate::rest::frame::route::{Created, Route, STREAMER};

body! {
    /// Whose key.
    KeyOwner {
        /// The caller where nothing is said. Somebody else's only for admins.
        user_id: Option<UserId> [example("7")],
    }
}

view! {
    /// The caller's API key.
    OwnKey {
        /// For `X-API-Key`, or `Authorization: ApiKey`.
        key: Option<String>,
    }
}

view! {
    /// A new API key. The one before it is good no longer.
    NewKey {
        /// For `X-API-Key`, or `Authorization: ApiKey`. Afterwards its owner alone can see it.
        key: String,
        /// Whose it is.
        user: UserAccount,
    }
}

view! {
    /// What became of it.
    Revoked {
        /// There is no key any more.
        success: bool,
    }
}

pub(super) fn routes() -> Vec<Route> {
    let not_yours = "Somebody else's key is for admins.";
    let nobody = "There is no such user.";
    let action =
        |route: Route| route.refuses(StatusCode::FORBIDDEN, not_yours).refuses(StatusCode::NOT_FOUND, nobody);
    vec![
        Route::get("/api/accounts/api-keys/", STREAMER, "Shows the caller's API key.", show),
        action(Route::post(
            "/api/accounts/api-keys/generate/",
            STREAMER,
            "Makes an API key, in place of the one before.",
            generate,
        )),
        action(Route::post("/api/accounts/api-keys/revoke/", STREAMER, "Takes an API key away.", revoke)),
    ]
}

async fn show(call: Call) -> Result<OwnKey, Refusal> {
    let key = call.user()?.api_key.as_ref();
    Ok(OwnKey { key: key.map(|it| it.key.expose().to_owned()) })
}

async fn generate(call: Call, body: KeyOwner) -> Result<Created<NewKey>, Refusal> {
    let key = call.app.auth.new_api_key();
    let text = key.key.expose().to_owned();
    let user = change(&call, body, move |user| user.api_key = Some(key)).await?;
    Ok(Created(NewKey { key: text, user: UserAccount::of(&user, call.user()?) }))
}

async fn revoke(call: Call, body: KeyOwner) -> Result<Revoked, Refusal> {
    change(&call, body, |user| user.api_key = None).await?;
    Ok(Revoked { success: true })
}

async fn change(
    call: &Call,
    body: KeyOwner,
    change: impl FnOnce(&mut User) + Send + 'static,
) -> Result<Arc<User>, Refusal> {
    let caller = call.user()?;
    let id = body.user_id.flatten().unwrap_or(caller.id);
    if id != caller.id && !caller.may(UserLevel::Admin) {
        return Err(Refusal::no_permission().with_detail("Not allowed to create keys for other users."));
    }
    call.write(move |write| {
        let mut user = write.get::<User>(id.0)?.ok_or_else(|| Refusal::not_found("User not found."))?;
        change(&mut user);
        write.put(&user)?;
        Ok(Arc::new(user))
    })
    .await
}
