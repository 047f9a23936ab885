//! `/api/m3u/refresh-account-info/`: what the panels of accounts say about their logins.

use actors::LoginCheckStart;
use domain::account::Account;
use domain::ids::ProfileId;
use domain::panel::ProfileInfo;
use domain::time::iso_millis;
use http::StatusCode;
use resource_derive::View;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Accepted, Route};
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::reply::Refusal;
use storage::Write;

use crate::context::RestCall;

const CHECK: &str = "/api/m3u/refresh-account-info/{profile_id}/";

/// Members of the custom properties of a profile that contain the answer of its panel.
const ANSWER: [&str; 4] = ["user_info", "server_info", "last_refresh", "auth_timestamp"];

/// A check that was started.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct LoginCheckView {
    /// Always `true`; the profile contains the answer later.
    success: bool,
    /// Message for people.
    #[field(example = "Account info refresh initiated for profile Default.")]
    message: String,
}

pub(super) fn routes() -> Vec<Route> {
    vec![Route::post(CHECK, ADMIN, "Checks the login of a profile at its panel.", check).refuses(
        StatusCode::BAD_REQUEST,
        "The account of the profile is neither of the type XC nor STALKER.",
    )]
}

async fn check(call: Call) -> Result<Accepted<LoginCheckView>, Refusal> {
    let id = ProfileId(call.id_of("profile_id")?);
    let found = {
        let accounts = call.rest().models.accounts.load();
        let account_and_profile = |account: &Account| {
            let profile = account.profiles.iter().find(|it| it.id == id)?;
            Some((account.id, profile.name.clone()))
        };
        accounts.iter().find_map(|it| account_and_profile(it))
    };
    let (account, name) = found.ok_or_else(unknown)?;
    let started = call.rest().imports.importer.check_login(account, id).await;
    let message = match started.map_err(super::refresh::stopping)? {
        LoginCheckStart::Started => format!("Account info refresh initiated for profile {name}."),
        LoginCheckStart::AlreadyRunning => {
            format!("Account info of profile {name} is already being refreshed.")
        }
        LoginCheckStart::NoSuchProfile => return Err(unknown()),
        LoginCheckStart::NoPanel => {
            return Err(Refusal::bad_request(
                "Only accounts of the types XC and STALKER have account information.",
            ));
        }
    };
    Ok(Accepted(LoginCheckView { success: true, message }))
}

/// Forgets what the panel said about the logins of an account, whose list is another one now.
pub(super) fn forget_answers(write: &mut Write<'_>, account: &mut Account) -> Result<(), Refusal> {
    for profile in &mut account.profiles {
        profile.panel_max_streams = 0;
        if let Some(info) = write.get::<ProfileInfo>(profile.id.0)? {
            write.put(&info.forget_answer())?;
        }
    }
    Ok(())
}

fn unknown() -> Refusal {
    Refusal::not_found("No M3UAccountProfile matches the given query.")
}

/// Returns the custom properties of a profile with the answer of its panel, where clients expect it.
pub(super) fn with_answer(properties: &Map<String, Value>, info: Option<&ProfileInfo>) -> Map<String, Value> {
    let mut all = properties.clone();
    if let Some((info, at)) = info.and_then(|it| Some((it, it.answered_at?))) {
        all.insert("user_info".to_owned(), info.user_info.clone().into());
        all.insert("server_info".to_owned(), info.server_info.clone().into());
        all.insert("last_refresh".to_owned(), json!(iso_millis(at)));
        all.insert("auth_timestamp".to_owned(), json!(at as f64 / 1000.0));
    }
    all
}

/// Returns the properties without the answer of the panel, which clients send back.
pub(super) fn without_answer(mut properties: Map<String, Value>) -> Map<String, Value> {
    ANSWER.iter().for_each(|it| drop(properties.remove(*it)));
    properties
}
