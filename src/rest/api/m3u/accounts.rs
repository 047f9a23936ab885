//! `/api/m3u/accounts/`: playlist accounts.

use std::collections::HashSet;

use actors::now_ms;
use domain::account::{Account, AccountProfile, PlaylistLocation, REFRESH_INTERVAL_HOURS, RefreshRecord};
use domain::channel::Channel;
use domain::ids::{AccountId, StreamId};
use domain::stream::Stream;
use http::StatusCode;
use storage::Write;
use storage::records::next_profile_id;
use tracing::warn;

use super::edit::Change;
use super::view::{M3UAccount, M3UAccountEdit, Shown};
use super::{LOCKED, find_unlocked};
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::list::{Ordering, Page, WholeOrPages};
use crate::rest::frame::record::query;
use crate::rest::frame::route::{ADMIN, Created, Done, Route, STANDARD};
use crate::rest::frame::value::choice;

query! {
    /// Which accounts.
    Filters {
        /// Part of the name, whatever the case of its letters.
        search: String,
        /// The same.
        name: String,
        /// Only those that are active, or only those that are not.
        is_active: bool,
        /// How they are sorted; by id where nothing is said.
        ordering: Ordering<By>,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Id,
    Name,
    Priority,
}
choice!(By { Id = "id", Name = "name", Priority = "priority" });

pub(super) const LIST: &str = "/api/m3u/accounts/";
pub(super) const ONE: &str = "/api/m3u/accounts/{id}/";

/// Channels that one commit takes the streams of a deleted account out of. There may be more than a commit can change.
const CHANNELS_AT_ONCE: usize = 5_000;

pub(super) fn routes() -> Vec<Route> {
    const IS_LOCKED: &str = "The account is the one of streams that are made by hand.";
    vec![
        Route::get(LIST, STANDARD, "Lists playlist accounts.", list),
        Route::post(LIST, ADMIN, "Makes a playlist account and fetches its list.", create),
        Route::get(ONE, STANDARD, "Shows a playlist account.", retrieve),
        Route::put(ONE, ADMIN, "Changes a playlist account.", update)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
        Route::patch(ONE, ADMIN, "Changes a playlist account.", update)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
        Route::delete(ONE, ADMIN, "Deletes a playlist account with its streams.", remove)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
    ]
}

async fn list(call: Call, (filters, paging): (Filters, WholeOrPages)) -> Result<Page<M3UAccount>, Refusal> {
    let accounts = call.app.models.accounts.load();
    let parts = [filters.search, filters.name].map(|it| it.map(|it| it.to_lowercase()));
    let is_wanted = |account: &Account| {
        let name = account.name.to_lowercase();
        parts.iter().flatten().all(|it| name.contains(it))
            && filters.is_active.is_none_or(|it| it == account.is_active)
    };
    let mut accounts: Vec<_> = accounts.iter().filter(|it| is_wanted(it)).collect();
    match filters.ordering {
        None => {}
        Some(ordering) => match ordering.by {
            By::Id => ordering.sort_by(&mut accounts, |it| it.id),
            By::Name => ordering.sort_by(&mut accounts, |it| it.name.to_lowercase()),
            By::Priority => ordering.sort_by(&mut accounts, |it| it.priority),
        },
    }
    let shown = Shown::to(&call)?;
    paging.of(&call, &accounts, |it| shown.account(it))
}

async fn retrieve(call: Call) -> Result<M3UAccount, Refusal> {
    let accounts = call.app.models.accounts.load();
    let account = accounts.get(call.id()?).ok_or_else(Refusal::unknown::<Account>)?;
    Ok(Shown::to(&call)?.account(account))
}

async fn create(call: Call, edit: M3UAccountEdit) -> Result<Created<M3UAccount>, Refusal> {
    let change = Change::of(edit, &PlaylistLocation::None).await?;
    let at = now_ms();
    let account = call
        .write(move |write| {
            let id = next_profile_id(write)?;
            let profile = AccountProfile::default_of(id, "Default", 0);
            let mut account = Account::new(AccountId(id.0), "", PlaylistLocation::None, profile, at);
            account.schedule.interval_hours = REFRESH_INTERVAL_HOURS;
            change.apply(&mut account, at);
            write.put(&account)?;
            Ok(account)
        })
        .await?;
    refresh_if_possible(&call, &account, true).await;
    Ok(Created(Shown::to(&call)?.account(&account)))
}

async fn update(call: Call, edit: M3UAccountEdit) -> Result<M3UAccount, Refusal> {
    let id = call.id()?;
    let before = call.app.models.accounts.load().get(id).cloned();
    let before = before.ok_or_else(Refusal::unknown::<Account>)?;
    if before.is_custom() {
        return Err(Refusal::bad_request(LOCKED));
    }
    let change = Change::of(edit, &before.list).await?;
    let (account, has_another_list, is_read_otherwise) = call
        .write(move |write| {
            let before = find_unlocked(write, id)?;
            let mut account = before.clone();
            change.apply(&mut account, now_ms());
            write.put(&account)?;
            let has_another_list = account.list != before.list || account.is_active && !before.is_active;
            let read_by = |it: &Account| (it.headers.clone(), it.rules.clone(), it.identity);
            let is_read_otherwise = has_another_list || read_by(&account) != read_by(&before);
            Ok((account, has_another_list, is_read_otherwise))
        })
        .await?;
    if is_read_otherwise {
        refresh_if_possible(&call, &account, has_another_list).await;
    }
    Ok(Shown::to(&call)?.account(&account))
}

/// Nobody has to ask for another list of an account; and one that is being read is not read as it was to be before.
async fn refresh_if_possible(call: &Call, account: &Account, has_new_list: bool) {
    if account.is_active
        && account.list != PlaylistLocation::None
        && let Err(error) = call.app.importer.changed(account.id, has_new_list).await
    {
        // The schedule comes back to it.
        warn!(account.id = %account.id, "failed to start a refresh: {error}");
    }
}

async fn remove(call: Call) -> Result<Done, Refusal> {
    let id = call.id()?;
    while !call.write(move |write| remove_some(write, id, CHANNELS_AT_ONCE)).await? {}
    Ok(Done)
}

/// Takes the streams of an account out of channels, of so many at most. When none is left the account goes with its
/// streams, and this answers that it is done. Other accounts are not looked at.
pub(super) fn remove_some(write: &mut Write<'_>, id: u32, channels_max: usize) -> Result<bool, Refusal> {
    find_unlocked(write, id)?;
    let owner = u64::from(id);
    let is_of_account =
        |write: &Write<'_>, stream: StreamId| write.owner_of::<Stream>(stream.0) == Some(owner);
    let mut n_changed = 0;
    for mut channel in write.all::<Channel>()? {
        let gone: HashSet<_> =
            channel.streams.iter().copied().filter(|it| is_of_account(write, *it)).collect();
        if gone.is_empty() {
            continue;
        }
        if n_changed == channels_max {
            return Ok(false);
        }
        channel.streams.retain(|it| !gone.contains(it));
        write.put(&channel)?;
        n_changed += 1;
    }
    write.remove_owner::<Stream>(owner);
    write.remove::<RefreshRecord>(id)?;
    write.remove::<Account>(id)?;
    Ok(true)
}
