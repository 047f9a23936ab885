//! `/api/m3u/accounts/{id}/profiles/`: the profiles of an account.

use actors::now_ms;
use domain::account::{Account, AccountProfile};
use domain::ids::ProfileId;
use domain::pattern::Pattern;
use http::StatusCode;
use storage::Write;
use storage::records::next_profile_id;

use super::text::{Exact, sentence};
use super::view::{M3UAccountProfile, M3UAccountProfileEdit, Shown};
use super::{LOCKED, find_unlocked};
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::list::{Page, WholeOrPages};
use crate::rest::frame::record::{body, view};
use crate::rest::frame::route::{ADMIN, Created, Done, Route, STANDARD};

body! {
    /// A pattern to be tried.
    PatternTrial {
        /// An address as streams of the account have it.
        url: Exact [required(), example("http://provider.example/live/user1/password1/7.ts")],
        /// As of a profile.
        search_pattern: Exact [required(), chars_max(1_024), example("/user1/password1/")],
        /// As of a profile.
        replace_pattern: Exact [required(), blank(), chars_max(1_024), example("/user2/password2/")],
    }
}

view! {
    /// What became of an address.
    PatternResult {
        /// The address that would be asked for.
        url: Exact [example("http://provider.example/live/user2/password2/7.ts")],
        /// Whether it is another one. An address in which the pattern finds nothing is asked for as it is.
        is_changed: bool,
    }
}

const LIST: &str = "/api/m3u/accounts/{id}/profiles/";
const ONE: &str = "/api/m3u/accounts/{id}/profiles/{profile_id}/";
const TEST: &str = "/api/m3u/accounts/{id}/profiles/test/";

/// Profiles of one account. Each stream of it may be tried with every one.
const PROFILES_MAX: usize = 100;

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists the profiles of an account.", list),
        Route::post(LIST, ADMIN, "Makes a profile of an account.", create)
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::post(TEST, ADMIN, "Shows what the patterns of a profile make of an address.", try_pattern),
        Route::get(ONE, STANDARD, "Shows a profile of an account.", retrieve),
        Route::put(ONE, ADMIN, "Changes a profile of an account.", update)
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::patch(ONE, ADMIN, "Changes a profile of an account.", update)
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::delete(ONE, ADMIN, "Deletes a profile of an account. What plays on it goes on.", remove)
            .refuses(StatusCode::BAD_REQUEST, "It is the default profile."),
    ]
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<M3UAccountProfile>, Refusal> {
    let account = account_of(&call)?;
    let mut profiles: Vec<_> = account.profiles.iter().collect();
    profiles.sort_by_key(|it| !it.is_default);
    let shown = Shown::to(&call)?;
    paging.of(&call, &profiles, |it| shown.profile(&account, it))
}

async fn retrieve(call: Call) -> Result<M3UAccountProfile, Refusal> {
    let account = account_of(&call)?;
    let id = ProfileId(call.id_of("profile_id")?);
    let profile = account.profiles.iter().find(|it| it.id == id).ok_or_else(unknown)?;
    Ok(Shown::to(&call)?.profile(&account, profile))
}

async fn create(call: Call, edit: M3UAccountProfileEdit) -> Result<Created<M3UAccountProfile>, Refusal> {
    let id = call.id()?;
    let (account, profile) = call
        .write(move |write| {
            let mut account = find_unlocked(write, id)?;
            if account.profiles.len() >= PROFILES_MAX {
                return Err(Refusal::bad_request(format!("An account has {PROFILES_MAX} profiles at most.")));
            }
            if edit.replace_pattern.is_none() {
                let mut errors = FieldErrors::of("replace_pattern", NEEDED);
                if edit.search_pattern.is_none() {
                    errors.add("search_pattern", NEEDED);
                }
                return Err(errors.into());
            }
            let profile_id = next_profile_id(write)?;
            let mut profile =
                AccountProfile { is_default: false, ..AccountProfile::default_of(profile_id, "", 0) };
            apply(edit, &mut profile)?;
            account.profiles.push(profile.clone());
            keep(write, account, profile)
        })
        .await?;
    Ok(Created(Shown::to(&call)?.profile(&account, &profile)))
}

async fn update(call: Call, edit: M3UAccountProfileEdit) -> Result<M3UAccountProfile, Refusal> {
    let (id, profile_id) = (call.id()?, ProfileId(call.id_of("profile_id")?));
    let (account, profile) = call
        .write(move |write| {
            let mut account = find_unlocked(write, id)?;
            let profile = account.profiles.iter_mut().find(|it| it.id == profile_id).ok_or_else(unknown)?;
            apply(edit, profile)?;
            let profile = profile.clone();
            keep(write, account, profile)
        })
        .await?;
    Ok(Shown::to(&call)?.profile(&account, &profile))
}

async fn remove(call: Call) -> Result<Done, Refusal> {
    let (id, profile_id) = (call.id()?, ProfileId(call.id_of("profile_id")?));
    call.write(move |write| {
        let mut account = find_unlocked(write, id)?;
        let at = account.profiles.iter().position(|it| it.id == profile_id).ok_or_else(unknown)?;
        if account.profiles[at].is_default {
            return Err(Refusal::bad_request("The default profile of an account cannot be deleted."));
        }
        account.profiles.remove(at);
        account.updated_at = now_ms();
        write.put(&account)?;
        Ok(Done)
    })
    .await
}

async fn try_pattern(call: Call, trial: PatternTrial) -> Result<PatternResult, Refusal> {
    account_of(&call)?;
    let PatternTrial { url, search_pattern, replace_pattern } = trial;
    let (url, search, replace) = (
        url.unwrap_or_default().0,
        search_pattern.unwrap_or_default().0,
        replace_pattern.unwrap_or_default().0,
    );
    // What a plan does with the address of a stream.
    let pattern =
        Pattern::new(&search, &replace).map_err(|error| Refusal::field("search_pattern", sentence(error)))?;
    let changed = pattern.apply(&url).into_owned();
    Ok(PatternResult { is_changed: changed != url, url: Exact(changed) })
}

fn account_of(call: &Call) -> Result<std::sync::Arc<Account>, Refusal> {
    let accounts = call.app.models.accounts.load();
    accounts.get(call.id()?).cloned().ok_or_else(Refusal::unknown::<Account>)
}

fn unknown() -> Refusal {
    Refusal::not_found("No M3UAccountProfile matches the given query.")
}

const NEEDED: &str = "This field is required for non-default profiles.";

/// What was sent goes over what is there.
fn apply(edit: M3UAccountProfileEdit, profile: &mut AccountProfile) -> Result<(), FieldErrors> {
    let mut errors = FieldErrors::default();
    profile.name = edit.name.unwrap_or_else(|| std::mem::take(&mut profile.name));
    profile.max_streams = edit.max_streams.unwrap_or(profile.max_streams);
    profile.is_active = edit.is_active.unwrap_or(profile.is_active);
    if let Some(Exact(search)) = edit.search_pattern {
        profile.search_pattern = search;
    }
    if let Some(Exact(replace)) = edit.replace_pattern {
        profile.replace_pattern = replace;
    }
    if let Some(properties) = edit.custom_properties {
        profile.custom_properties = properties.unwrap_or_default();
    }
    if let Some(ends) = edit.exp_date {
        profile.expires_at = ends.map(|it| it.0);
    }
    match (profile.search_pattern.is_empty(), profile.is_default) {
        (true, false) => errors.add("search_pattern", NEEDED),
        (true, true) if !profile.replace_pattern.is_empty() => {
            errors.add("search_pattern", "A replacement needs something to replace.");
        }
        (true, true) => {}
        (false, _) => {
            if let Err(error) = Pattern::new(&profile.search_pattern, &profile.replace_pattern) {
                errors.add("search_pattern", sentence(error));
            }
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

/// Writes an account of which one profile is new or changed.
fn keep(
    write: &mut Write<'_>,
    mut account: Account,
    profile: AccountProfile,
) -> Result<(Account, AccountProfile), Refusal> {
    let is_other = |it: &&AccountProfile| it.id != profile.id && it.name == profile.name;
    if account.profiles.iter().find(is_other).is_some() {
        return Err(Refusal::taken("name"));
    }
    account.updated_at = now_ms();
    write.put(&account)?;
    Ok((account, profile))
}
