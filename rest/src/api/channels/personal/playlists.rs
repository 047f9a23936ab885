//! `/api/channels/playlists/`: personal playlists.

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::now_ms;
use domain::channel::Channel;
use domain::ids::{ChannelId, PersonalPlaylistId, UserId};
use domain::lineup::ViewLimits;
use domain::personal_playlist::{
    PLAYLIST_ASSIGNED_MAX, PLAYLIST_CHANNELS_MAX, PLAYLIST_NAME_CHARS_MAX, PersonalPlaylist,
};
use domain::user::User;
use http::StatusCode;
use player::selection::{is_readable, visible_of};
use resource_derive::{Query, View};
use route_frame::access::{STANDARD, STREAMER};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;
use storage::{Table, Write};

use super::limits::{check_channels, check_count};
use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{Lookup, RecordCall, Render, find, set, view_from};

/// A personal playlist: channels that a user has chosen, in an order of the user's own.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "PersonalPlaylist", new = NewPersonalPlaylist, edit = PersonalPlaylistEdit)]
pub(crate) struct PersonalPlaylistView {
    /// Assigned by the gateway and never reused.
    #[field(example = "3")]
    id: PersonalPlaylistId,
    /// Name, unique among the playlists of the owner.
    #[field(required, chars_max = PLAYLIST_NAME_CHARS_MAX, example = "Evening")]
    name: String,
    /// Ids of the channels that the caller may watch, in order.
    #[field(edit, items_max = PLAYLIST_CHANNELS_MAX, example = "[2, 1]")]
    channels: Vec<ChannelId>,
    /// Ids of the users who may read the playlist besides its owner; only admins change them. Empty for users who neither
    /// own the playlist nor are admins.
    #[field(edit, items_max = PLAYLIST_ASSIGNED_MAX, example = "[5]")]
    assigned_to: Vec<UserId>,
    /// Id of the user to whom the playlist belongs.
    #[field(example = "2")]
    owner: UserId,
    /// Whether the playlist belongs to the caller.
    is_own: bool,
    /// Whether these are the favourites of the owner.
    is_favorites: bool,
    /// Time of creation.
    created_at: Time,
    /// Time of the last change.
    updated_at: Time,
}

/// Filters of the list of personal playlists.
#[derive(Debug, Query)]
struct Filters {
    /// Id of the owner.
    owner: Option<UserId>,
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Order of the list; by name by default.
    ordering: Option<Ordering<ByName>>,
}

const LIST: &str = "/api/channels/playlists/";
const ONE: &str = "/api/channels/playlists/{id}/";

pub(super) fn routes() -> Vec<Route> {
    const FOREIGN: &str = "The playlist belongs to another user.";
    let list_summary =
        "Lists personal playlists: own ones, those assigned to the caller, and for admins all.";
    let changes = [
        Route::put(ONE, STANDARD, "Updates a personal playlist.", update),
        Route::patch(ONE, STANDARD, "Partially updates a personal playlist.", update),
        Route::delete(ONE, STANDARD, "Deletes a personal playlist.", delete),
    ];
    let others = [
        Route::get(LIST, STREAMER, list_summary, list),
        Route::post(LIST, STANDARD, "Creates a personal playlist.", create),
        Route::get(ONE, STREAMER, "Returns a personal playlist.", retrieve),
    ];
    others.into_iter().chain(changes.map(|it| it.refuses(StatusCode::FORBIDDEN, FOREIGN))).collect()
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<PersonalPlaylistView>, Refusal> {
    let playlists = call.rest().models.personal_playlists.load();
    let is_wanted = |it: &PersonalPlaylist| {
        is_readable(&call, it)
            && filters.owner.is_none_or(|owner| it.owner == owner)
            && matches(filters.search.as_ref(), [&it.name])
    };
    let mut playlists: Vec<_> = playlists.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Name));
    ordering.sort(&mut playlists, |it| it.id, |it| &it.name);
    paging.render(&call, &playlists)
}

async fn retrieve(call: Call) -> Result<PersonalPlaylistView, Refusal> {
    let playlist = call.rest().models.personal_playlists.load().get(call.id()?).cloned();
    let playlist = playlist.filter(|it| is_readable(&call, it));
    call.render(&*playlist.ok_or_else(Refusal::unknown::<PersonalPlaylist>)?)
}

async fn create(call: Call, new: NewPersonalPlaylist) -> Result<Created<PersonalPlaylistView>, Refusal> {
    let (owner, is_admin) = (call.user()?.id, call.is_admin());
    let channels = new.channels.unwrap_or_default();
    check_channels(&call, &channels)?;
    call.create(move |write, id| {
        check_count(write, owner)?;
        let mut playlist = PersonalPlaylist::new(PersonalPlaylistId(id), owner, new.name, now_ms());
        playlist.set_channels(channels);
        assign(write, &mut playlist, new.assigned_to, is_admin)?;
        Ok(playlist)
    })
    .await
}

async fn update(call: Call, edit: PersonalPlaylistEdit) -> Result<PersonalPlaylistView, Refusal> {
    let is_admin = call.is_admin();
    check_owner(&call)?;
    if let Some(channels) = &edit.channels {
        check_channels(&call, channels)?;
    }
    call.update(move |write, playlist: &mut PersonalPlaylist| {
        if playlist.is_favorites && edit.name.as_ref().is_some_and(|it| *it != playlist.name) {
            return Err(Refusal::field("name", "The favourites cannot be renamed."));
        }
        set(&mut playlist.name, edit.name);
        if let Some(channels) = edit.channels {
            playlist.set_channels(channels);
        }
        assign(write, playlist, edit.assigned_to, is_admin)?;
        playlist.updated_at = now_ms();
        Ok(())
    })
    .await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    check_owner(&call)?;
    let id = call.id()?;
    call.write(move |write| {
        find::<PersonalPlaylist>(write, id)?;
        write.remove::<PersonalPlaylist>(id)?;
        Ok(NoContent)
    })
    .await
}

/// Checks that the playlist of the path belongs to the caller, or that the caller is an admin. The owner never changes.
fn check_owner(call: &Call) -> Result<(), Refusal> {
    let playlist = call.rest().models.personal_playlists.load().get(call.id()?).cloned();
    let playlist = playlist.filter(|it| is_readable(call, it));
    let playlist = playlist.ok_or_else(Refusal::unknown::<PersonalPlaylist>)?;
    match call.is_admin() || playlist.owner == call.identity()?.id {
        true => Ok(()),
        false => Err(Refusal::no_permission()),
    }
}

/// Assigns a playlist to users.
fn assign(
    write: &Write<'_>,
    playlist: &mut PersonalPlaylist,
    users: Option<Vec<UserId>>,
    is_admin: bool,
) -> Result<(), Refusal> {
    const FIELD: &str = "assigned_to";
    let Some(users) = users else { return Ok(()) };
    let users: BTreeSet<UserId> = users.into_iter().collect();
    if users == playlist.assigned_to {
        return Ok(());
    }
    if !is_admin {
        return Err(Refusal::field(FIELD, "Only admins assign playlists to users."));
    }
    for id in &users {
        write.get::<User>(id.0)?.ok_or_else(|| Refusal::no_such(FIELD, id))?;
    }
    playlist.assigned_to = users;
    Ok(())
}

/// Data that views of personal playlists depend on.
pub(crate) struct PlaylistLookup {
    channels: Arc<Table<Channel>>,
    limits: ViewLimits,
    user: UserId,
    is_admin: bool,
}

impl Lookup for PlaylistLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        let (channels, limits) = (call.rest().models.channels.load(), call.view_limits());
        Ok(Self { channels, limits, user: call.identity()?.id, is_admin: call.is_admin() })
    }
}

impl Render for PersonalPlaylist {
    type View = PersonalPlaylistView;
    type Lookup = PlaylistLookup;

    fn view(&self, lookup: &PlaylistLookup) -> PersonalPlaylistView {
        let is_own = self.owner == lookup.user;
        let assigned = self.assigned_to.iter().filter(|_| is_own || lookup.is_admin);
        view_from!(PersonalPlaylistView from self {
            id, name, owner, is_favorites, created_at, updated_at;
            channels: visible_of(self, &lookup.limits, &lookup.channels).map(|it| it.id).collect(),
            assigned_to: assigned.copied().collect(),
            is_own,
        })
    }
}
