//! `/api/m3u/accounts/`: playlist accounts.

use std::collections::HashSet;

use actors::now_ms;
use domain::account::{Account, AccountProfile, PlaylistLocation, REFRESH_INTERVAL_HOURS, RefreshRecord};
use domain::account_addresses::AddressRecord;
use domain::account_group::AccountGroup;
use domain::channel::Channel;
use domain::ids::{AccountId, StreamId};
use domain::panel::ProfileInfo;
use domain::stream::Stream;
use http::StatusCode;
use media::spawn_blocking;
use resource_derive::Query;
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::upload::Upload;
use server::reply::Refusal;
use storage::Write;
use storage::records::next_profile_id;
use tracing::{error, warn};

use super::built_in::{LOCKED, find_unlocked};
use super::device::{check_devices, device_of};
use super::edit::Change;
use super::files::{self, PLAYLIST_BYTES_MAX};
use super::refresh::refresh_if_possible;
use super::view::{M3UAccountEdit, M3UAccountView, NewM3UAccount};
use super::{account_groups, guide, logins, server_groups, vod};
use crate::choice::choice;
use crate::context::RestCall;
use crate::list::{Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{RecordCall, set};
use crate::saved_upload::SavedUpload;

/// Filters of the list of accounts.
#[derive(Debug, Query)]
pub(crate) struct Filters {
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Same as `search`.
    name: Option<Search>,
    /// Whether the account is active.
    is_active: Option<bool>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<By>>,
}

choice!(
    enum By {
        Id = "id",
        Name = "name",
        Priority = "priority",
    }
);

pub(super) const LIST: &str = "/api/m3u/accounts/";
pub(super) const ONE: &str = "/api/m3u/accounts/{id}/";

/// Number of channels that one commit removes the streams of a deleted account from. More channels can be affected than
/// one commit can change.
const CHANNELS_AT_ONCE: usize = 5_000;

pub(super) fn routes() -> Vec<Route> {
    const IS_LOCKED: &str = "The account is the built-in one for streams that admins add.";
    vec![
        Route::get(LIST, STANDARD, "Lists playlist accounts.", list),
        Route::post(LIST, ADMIN, "Creates a playlist account and fetches its playlist.", create)
            .with_properties_body()
            .with_upload(PLAYLIST_BYTES_MAX),
        Route::get(ONE, STANDARD, "Returns a playlist account.", retrieve),
        Route::put(ONE, ADMIN, "Updates a playlist account.", update)
            .with_properties_body()
            .with_upload(PLAYLIST_BYTES_MAX)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
        Route::patch(ONE, ADMIN, "Partially updates a playlist account.", update)
            .with_properties_body()
            .with_upload(PLAYLIST_BYTES_MAX)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
        Route::delete(ONE, ADMIN, "Deletes a playlist account with its streams.", delete)
            .refuses(StatusCode::BAD_REQUEST, IS_LOCKED),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<M3UAccountView>, Refusal> {
    let accounts = call.rest().models.accounts.load();
    let searches = [&filters.search, &filters.name];
    let is_wanted = |account: &Account| {
        searches.iter().all(|it| matches(it.as_ref(), [&account.name]))
            && filters.is_active.is_none_or(|it| it == account.is_active)
    };
    let mut accounts: Vec<_> = accounts.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(By::Id));
    match ordering.by {
        By::Id => ordering.sort_by(&mut accounts, |it| it.id),
        By::Name => ordering.sort_by(&mut accounts, |it| it.name.to_lowercase()),
        By::Priority => ordering.sort_by(&mut accounts, |it| it.priority),
    }
    paging.render(&call, &accounts)
}

async fn retrieve(call: Call) -> Result<M3UAccountView, Refusal> {
    call.retrieve(&call.rest().models.accounts.load())
}

async fn create(
    call: Call,
    (new, file): (NewM3UAccount, Option<Upload>),
) -> Result<Created<M3UAccountView>, Refusal> {
    let wants_guide = new.create_epg == Some(true);
    let change = Change::new(new.into(), &PlaylistLocation::None, None, None).await?;
    let saved = saved(&call, &change, file).await?;
    let list = saved.as_ref().map(|it| PlaylistLocation::Upload(it.name.clone()));
    let at = now_ms();
    let (account, guide) = call
        .write(move |write| {
            let id = next_profile_id(write)?;
            let profile = AccountProfile::default_of(id, "Default", 0);
            let mut account = Account::new(AccountId(id.0), "", PlaylistLocation::None, profile, at);
            account.schedule.interval_hours = REFRESH_INTERVAL_HOURS;
            change.apply(&mut account);
            server_groups::check(write, &account)?;
            Change::check_references(write, &account)?;
            set(&mut account.list, list);
            write.put(&account)?;
            let guide = if wants_guide { guide::create(write, &account)? } else { None };
            Ok((account, guide))
        })
        .await?;
    if let Some(saved) = saved {
        saved.keep();
    }
    refresh_if_possible(&call, &account, true).await;
    guide::refresh(&call, guide).await;
    Ok(Created(call.render(&account)?))
}

async fn update(
    call: Call,
    (edit, file): (M3UAccountEdit, Option<Upload>),
) -> Result<M3UAccountView, Refusal> {
    let id = call.id()?;
    let before = call.rest().models.accounts.load().get(id).cloned();
    let before = before.ok_or_else(Refusal::unknown::<Account>)?;
    if before.is_custom() {
        return Err(Refusal::bad_request(LOCKED));
    }
    let wants_guide = edit.create_epg == Some(true);
    let uses_first_address = edit.use_first_address == Some(true);
    let change = Change::new(edit, &before.list, before.proxy.as_ref(), device_of(&before)).await?;
    let saved = saved(&call, &change, file).await?;
    let list = saved.as_ref().map(|it| PlaylistLocation::Upload(it.name.clone()));
    let (account, then, guide, has_new_list, has_new_reading) = call
        .write(move |write| {
            let before = find_unlocked(write, id)?;
            let mut account = before.clone();
            change.apply(&mut account);
            set(&mut account.list, list);
            let has_new_device = device_of(&account) != device_of(&before);
            check_devices(&account)?;
            if account.list != before.list || has_new_device {
                logins::forget_answers(write, &mut account)?;
            }
            if account.list != before.list {
                guide::forget_guides(write, &account)?;
                write.remove::<AddressRecord>(id)?;
            } else if let Some(mut record) = write.get::<AddressRecord>(id)? {
                let known = record.clone();
                if uses_first_address {
                    record.forget_addresses();
                }
                if account.live_form != before.live_form {
                    record.forget_form();
                }
                if record == AddressRecord::new(AccountId(id)) {
                    write.remove::<AddressRecord>(id)?;
                } else if record != known {
                    write.put(&record)?;
                }
            }
            if account != before {
                server_groups::check(write, &account)?;
                Change::check_references(write, &account)?;
                account.updated_at = now_ms();
                write.put(&account)?;
            }
            let guide = if wants_guide { guide::create(write, &account)? } else { None };
            let has_new_list = account.list != before.list
                || has_new_device
                || account.is_active && !before.is_active
                // A list that was refused may be read now.
                || account.certificates != before.certificates;
            let reading = |it: &Account| {
                (
                    it.headers.clone(),
                    it.allowed_networks,
                    it.rules.clone(),
                    (it.identity, it.identity_keys.clone()),
                    it.proxy.clone(),
                )
            };
            let has_new_list = has_new_list || vod::moves_entries(&before, &account);
            let has_new_reading = has_new_list || reading(&account) != reading(&before);
            Ok((account, before, guide, has_new_list, has_new_reading))
        })
        .await?;
    if let Some(saved) = saved {
        saved.keep();
    }
    if !account.certificates.verify && then.certificates.verify {
        warn!(account = account.name, account.id = %account.id, "the account accepts any certificate");
    }
    if account.list != then.list {
        files::remove(&call, &then.list).await;
    }
    if has_new_reading {
        refresh_if_possible(&call, &account, has_new_list).await;
    }
    vod::after_change(&call, Some(&then), &account).await;
    guide::refresh(&call, guide).await;
    call.render(&account)
}

/// Saves the uploaded playlist of an account. Refuses it beside another location.
async fn saved(call: &Call, change: &Change, file: Option<Upload>) -> Result<Option<SavedUpload>, Refusal> {
    match file {
        None => Ok(None),
        Some(_) if change.has_location() => {
            Err(Refusal::field("file", "Give a file, or server_url or file_path, not both."))
        }
        Some(file) => files::save(call, file).await.map(Some),
    }
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    let list = call.rest().models.accounts.load().get(id).map(|it| it.list.clone());
    while !call.write(move |write| remove_some(write, id, CHANNELS_AT_ONCE)).await? {}
    if let Some(list) = list {
        files::remove(&call, &list).await;
    }
    let vod = call.rest().models.vod.clone();
    match spawn_blocking(move || vod.remove_missing_accounts()).await {
        Ok(Ok(())) => {}
        // They are not listed any more, and the next import removes them.
        Ok(Err(error)) => {
            warn!("failed to remove the films and series of a deleted account: {error}")
        }
        Err(error) => error!("removing the films and series of a deleted account panicked: {error}"),
    }
    Ok(NoContent)
}

/// Removes the channels that refreshes of an account created, then its streams from other channels: at most this number
/// of channels each. If no channel is left, deletes the account with its streams and groups and returns true. Channels of other accounts are unaffected.
pub(super) fn remove_some(write: &mut Write<'_>, id: u32, channels_max: usize) -> Result<bool, Refusal> {
    let account = find_unlocked(write, id)?;
    if !account_groups::release_channels(write, &account, channels_max)? {
        return Ok(false);
    }
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
    for link in write.by::<AccountGroup>("account", id.to_be_bytes())? {
        write.remove::<AccountGroup>(link.id.0)?;
    }
    for profile in &account.profiles {
        write.remove::<ProfileInfo>(profile.id.0)?;
    }
    write.remove_owner::<Stream>(owner);
    write.remove::<RefreshRecord>(id)?;
    write.remove::<AddressRecord>(id)?;
    write.remove::<Account>(id)?;
    Ok(true)
}
