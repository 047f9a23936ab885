//! `/api/m3u/accounts/{id}/profiles/`: the profiles of an account.

use std::sync::Arc;

use actors::now_ms;
use domain::account::{Account, AccountProfile};
use domain::ids::ProfileId;
use domain::panel::ProfileInfo;
use domain::pattern::Pattern;
use http::StatusCode;
use resource_derive::{Body, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;
use storage::records::next_profile_id;

use super::built_in::{LOCKED, find_unlocked};
use super::device::{SentDevice, check_devices};
use super::logins;
use super::text::Exact;
use super::view::{AccountLookup, M3UAccountProfileEdit, M3UAccountProfileView, NewM3UAccountProfile};
use crate::api::text::sentence;
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{Lookup, RecordCall, Render, set, set_fields};

/// A pattern to test.
#[derive(Clone, Debug, Body)]
pub(crate) struct PatternTrial {
    /// A URL of a stream of the account.
    #[field(example = "http://provider.example/live/user1/password1/7.ts")]
    url: Exact,
    /// Same as in profile.
    #[field(chars_max = 1_024, example = "/user1/password1/")]
    search_pattern: Exact,
    /// Same as in profile.
    #[field(blank, chars_max = 1_024, example = "/user2/password2/")]
    replace_pattern: Exact,
}

/// Result of applying a pattern to a URL.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct PatternResultView {
    /// The URL that the gateway would request.
    #[field(example = "http://provider.example/live/user2/password2/7.ts")]
    url: Exact,
    /// Whether the URL changed. A URL that does not match is used unchanged.
    is_changed: bool,
}

const LIST: &str = "/api/m3u/accounts/{id}/profiles/";
const ONE: &str = "/api/m3u/accounts/{id}/profiles/{profile_id}/";
const TEST: &str = "/api/m3u/accounts/{id}/profiles/test/";

/// Maximum number of profiles of an account. Each stream can be tried with every profile.
const PROFILES_MAX: usize = 100;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists the profiles of an account.", list),
        Route::post(LIST, ADMIN, "Creates a profile of an account.", create)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::post(TEST, ADMIN, "Returns the URL that the patterns of a profile produce.", test_pattern),
        Route::get(ONE, STANDARD, "Returns a profile of an account.", retrieve),
        Route::put(ONE, ADMIN, "Updates a profile of an account.", update)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::patch(ONE, ADMIN, "Partially updates a profile of an account.", update)
            .with_properties_body()
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::delete(
            ONE,
            ADMIN,
            "Deletes a profile of an account. Streams that play with it continue.",
            delete,
        )
        .refuses(StatusCode::BAD_REQUEST, "The profile is the default profile."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<M3UAccountProfileView>, Refusal> {
    let account = account_of(&call)?;
    let mut profiles: Vec<_> = account.profiles.iter().collect();
    profiles.sort_by_key(|it| !it.is_default);
    let lookup = AccountLookup::load(&call)?;
    paging.render_with(&call, &profiles, |it| (&*account, *it).view(&lookup))
}

async fn retrieve(call: Call) -> Result<M3UAccountProfileView, Refusal> {
    let account = account_of(&call)?;
    let id = ProfileId(call.id_of("profile_id")?);
    let profile = account.profiles.iter().find(|it| it.id == id).ok_or_else(unknown)?;
    call.render(&(&*account, profile))
}

async fn create(call: Call, new: NewM3UAccountProfile) -> Result<Created<M3UAccountProfileView>, Refusal> {
    let id = call.id()?;
    let (account, profile) = call
        .write(move |write| {
            let mut account = find_unlocked(write, id)?;
            if account.profiles.len() >= PROFILES_MAX {
                return Err(Refusal::bad_request(format!(
                    "An account can have at most {PROFILES_MAX} profiles."
                )));
            }
            let is_of_portal = account.list.portal().is_some();
            if new.replace_pattern.is_none() && !is_of_portal {
                let mut errors = FieldErrors::new("replace_pattern", NEEDED);
                if new.search_pattern.is_none() {
                    errors.add("search_pattern", NEEDED);
                }
                return Err(errors.into());
            }
            let profile_id = next_profile_id(write)?;
            let mut profile =
                AccountProfile { is_default: false, ..AccountProfile::default_of(profile_id, "", 0) };
            apply(new.into(), &mut profile, is_of_portal)?;
            account.profiles.push(profile.clone());
            put(write, account, profile)
        })
        .await?;
    Ok(Created(call.render(&(&account, &profile))?))
}

async fn update(call: Call, edit: M3UAccountProfileEdit) -> Result<M3UAccountProfileView, Refusal> {
    let (id, profile_id) = (call.id()?, ProfileId(call.id_of("profile_id")?));
    let (account, profile) = call
        .write(move |write| {
            let mut account = find_unlocked(write, id)?;
            let is_of_portal = account.list.portal().is_some();
            let profile = account.profiles.iter_mut().find(|it| it.id == profile_id).ok_or_else(unknown)?;
            let before = profile.clone();
            apply(edit, profile, is_of_portal)?;
            let profile = profile.clone();
            // Another login: what is known of the former one is wrong, and the next check asks again.
            let login = |it: &AccountProfile| {
                (it.search_pattern.clone(), it.replace_pattern.clone(), it.device.clone())
            };
            if login(&profile) != login(&before)
                && let Some(info) = write.get::<ProfileInfo>(profile_id.0)?
            {
                write.put(&info.forget_answer())?;
            }
            if profile == before {
                return Ok((account, profile));
            }
            put(write, account, profile)
        })
        .await?;
    call.render(&(&account, &profile))
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let (id, profile_id) = (call.id()?, ProfileId(call.id_of("profile_id")?));
    call.write(move |write| {
        let mut account = find_unlocked(write, id)?;
        let at = account.profiles.iter().position(|it| it.id == profile_id).ok_or_else(unknown)?;
        if account.profiles[at].is_default {
            return Err(Refusal::bad_request("The default profile of an account cannot be deleted."));
        }
        account.profiles.remove(at);
        write.remove::<ProfileInfo>(profile_id.0)?;
        account.updated_at = now_ms();
        write.put(&account)?;
        Ok(NoContent)
    })
    .await
}

async fn test_pattern(call: Call, trial: PatternTrial) -> Result<PatternResultView, Refusal> {
    account_of(&call)?;
    let PatternTrial { url: Exact(url), search_pattern: Exact(search), replace_pattern: Exact(replace) } =
        trial;
    // Plans use the same function.
    let pattern =
        Pattern::new(&search, &replace).map_err(|error| Refusal::field("search_pattern", sentence(error)))?;
    let changed = pattern.apply(&url).into_owned();
    Ok(PatternResultView { is_changed: changed != url, url: Exact(changed) })
}

fn account_of(call: &Call) -> Result<Arc<Account>, Refusal> {
    let accounts = call.rest().models.accounts.load();
    accounts.get(call.id()?).cloned().ok_or_else(Refusal::unknown::<Account>)
}

fn unknown() -> Refusal {
    Refusal::not_found("No M3UAccountProfile matches the given query.")
}

const NEEDED: &str = "This field is required for non-default profiles.";

/// Applies the edit to a profile of an account with or without a portal.
fn apply(
    mut edit: M3UAccountProfileEdit,
    profile: &mut AccountProfile,
    is_of_portal: bool,
) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    let device = SentDevice::from_profile(&mut edit);
    if is_of_portal {
        profile.device = device.applied_to(profile.device.as_deref(), &mut errors).map(Box::new);
    } else {
        device.refuse(&mut errors);
    }
    set_fields!(profile from edit: name, max_streams, is_active, search_pattern, replace_pattern);
    let properties = edit.custom_properties.map(Option::unwrap_or_default);
    set(&mut profile.custom_properties, properties.map(logins::without_answer));
    set(&mut profile.expires_at, edit.exp_date.map(|it| it.map(|it| it.0)));
    match (profile.search_pattern.is_empty(), profile.is_default) {
        (true, false) if is_of_portal => {}
        (true, false) => errors.add("search_pattern", NEEDED),
        (true, true) if !profile.replace_pattern.is_empty() => {
            errors.add("search_pattern", "A replacement needs a search pattern.");
        }
        (true, true) => {}
        (false, _) => {
            if let Err(error) = Pattern::new(&profile.search_pattern, &profile.replace_pattern) {
                errors.add("search_pattern", sentence(error));
            }
        }
    }
    errors.or(())
}

/// Writes an account with one new or changed profile.
fn put(
    write: &mut Write<'_>,
    mut account: Account,
    profile: AccountProfile,
) -> Result<(Account, AccountProfile), Refusal> {
    let is_other = |it: &&AccountProfile| it.id != profile.id && it.name == profile.name;
    if account.profiles.iter().find(is_other).is_some() {
        return Err(Refusal::taken("name"));
    }
    check_devices(&account)?;
    account.updated_at = now_ms();
    write.put(&account)?;
    Ok((account, profile))
}
