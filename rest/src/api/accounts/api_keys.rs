//! `/api/accounts/api-keys/`: the API key of a user.

use std::sync::Arc;

use domain::ids::UserId;
use domain::secret::Secret;
use domain::user::{API_KEY_CHARS, ApiKey, User, UserLevel, check_api_key};
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::{Created, Route};
use serde::Serialize;
use server::reply::Refusal;

use super::user_view::UserView;
use crate::context::RestCall;
use crate::record::RecordCall;

/// Selects the owner of the key.
#[derive(Clone, Debug, Body)]
pub(crate) struct KeyOwner {
    /// Id of the owner; the caller by default. Only admins may name another user.
    #[field(example = "7")]
    user_id: Option<Option<UserId>>,
}

/// The caller's API key.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct OwnKeyView {
    /// For the header `X-API-Key`, or `Authorization: ApiKey`.
    key: Option<String>,
}

/// A new API key. It replaces the previous one.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct NewKeyView {
    /// For the header `X-API-Key`, or `Authorization: ApiKey`. From now on only its owner can read it.
    key: String,
    /// Owner of the key.
    user: UserView,
}

/// An API key that a person has chosen.
#[derive(Clone, Debug, Body)]
pub(crate) struct ChosenKey {
    /// The key: at least 32 letters, digits and signs, random. It replaces the previous one.
    #[field(chars_max = *API_KEY_CHARS.end())]
    key: Secret,
    /// Id of the owner; the caller by default. Only admins may name another user.
    #[field(example = "7")]
    user_id: Option<Option<UserId>>,
}

/// Result of setting or revoking a key.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct KeyChangedView {
    /// Always `true`.
    success: bool,
}

pub(super) fn routes() -> Vec<Route> {
    let not_yours = "Only admins may name another user.";
    let unknown = "The user does not exist.";
    let action = |route: Route| {
        route.refuses(StatusCode::FORBIDDEN, not_yours).refuses(StatusCode::NOT_FOUND, unknown)
    };
    vec![
        Route::get("/api/accounts/api-keys/", STREAMER, "Returns the caller's API key.", retrieve),
        action(Route::post(
            "/api/accounts/api-keys/generate/",
            STREAMER,
            "Creates an API key, which replaces the previous one.",
            generate,
        )),
        action(Route::post(
            "/api/accounts/api-keys/set/",
            STREAMER,
            "Sets an API key that the caller has chosen.",
            choose,
        )),
        action(Route::post("/api/accounts/api-keys/revoke/", STREAMER, "Revokes an API key.", revoke)),
    ]
}

async fn retrieve(call: Call) -> Result<OwnKeyView, Refusal> {
    let key = call.user()?.api_key.as_ref();
    Ok(OwnKeyView { key: key.map(|it| it.key.expose().to_owned()) })
}

async fn generate(call: Call, body: KeyOwner) -> Result<Created<NewKeyView>, Refusal> {
    let key = call.rest().auth.new_api_key();
    let text = key.key.expose().to_owned();
    let user = change(&call, body, move |user| user.api_key = Some(key)).await?;
    Ok(Created(NewKeyView { key: text, user: call.render(&*user)? }))
}

async fn choose(call: Call, body: ChosenKey) -> Result<KeyChangedView, Refusal> {
    let key = checked_key(&call, "key", Some(body.key))?;
    change(&call, KeyOwner { user_id: body.user_id }, move |user| user.api_key = key).await?;
    Ok(KeyChangedView { success: true })
}

/// Returns the key that a client has sent in this field, for storage; `None` if it sent none.
pub(super) fn checked_key(call: &Call, field: &str, sent: Option<Secret>) -> Result<Option<ApiKey>, Refusal> {
    let Some(key) = sent.filter(|it| !it.expose().is_empty()) else { return Ok(None) };
    check_api_key(key.expose()).map_err(|reason| Refusal::field(field, reason.to_string()))?;
    Ok(Some(call.rest().auth.api_key(key)))
}

async fn revoke(call: Call, body: KeyOwner) -> Result<KeyChangedView, Refusal> {
    change(&call, body, |user| user.api_key = None).await?;
    Ok(KeyChangedView { success: true })
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
