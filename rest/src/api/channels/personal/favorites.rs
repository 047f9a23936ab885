//! `/api/channels/favorites/`: the favourites of the caller.

use std::collections::HashSet;

use actors::now_ms;
use domain::channel::Channel;
use domain::ids::{ChannelId, PersonalPlaylistId, UserId};
use domain::personal_playlist::{PLAYLIST_CHANNELS_MAX, PersonalPlaylist};
use http::StatusCode;
use player::selection::visible_of;
use resource_derive::{Body, View};
use route_frame::access::STANDARD;
use route_frame::call::Call;
use route_frame::route::{NoContent, Route};
use serde::Serialize;
use server::reply::Refusal;
use storage::Write;

use super::limits::{add_channel, check_channels, check_count};
use crate::context::RestCall;

/// The favourites of a user.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct FavoritesView {
    /// Id of the favourites among the personal playlists; `null` before the first favourite.
    playlist_id: Option<PersonalPlaylistId>,
    /// Ids of the channels that the user may watch, in order.
    #[field(example = "[1, 2]")]
    channels: Vec<ChannelId>,
}

/// New favourites.
#[derive(Clone, Debug, Body)]
pub(crate) struct NewFavorites {
    /// Ids of the channels, in order.
    #[field(items_max = PLAYLIST_CHANNELS_MAX, example = "[1, 2]")]
    channels: Vec<ChannelId>,
}

const ALL: &str = "/api/channels/favorites/";
const ONE: &str = "/api/channels/favorites/{channel_id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(ALL, STANDARD, "Returns the favourites of the caller.", retrieve),
        Route::patch(ALL, STANDARD, "Replaces the favourites of the caller.", replace),
        Route::put(ONE, STANDARD, "Adds a channel to the favourites of the caller.", add)
            .refuses(StatusCode::BAD_REQUEST, "The favourites are full."),
        Route::delete(ONE, STANDARD, "Removes a channel from the favourites of the caller.", remove),
    ]
}

async fn retrieve(call: Call) -> Result<FavoritesView, Refusal> {
    let owner = call.user()?.id;
    let favorites = call.rest().models.personal_playlists.load();
    let favorites = favorites.one_by("favorites", owner.0.to_be_bytes()).cloned();
    Ok(view(&call, favorites.as_deref()))
}

async fn replace(call: Call, body: NewFavorites) -> Result<FavoritesView, Refusal> {
    check_channels(&call, &body.channels)?;
    let owner = call.user()?.id;
    let favorites = call.write(move |write| {
        let mut favorites = favorites_of_user(write, owner)?;
        favorites.set_channels(body.channels);
        put(write, favorites)
    });
    let favorites = favorites.await?;
    Ok(view(&call, Some(&favorites)))
}

async fn add(call: Call) -> Result<FavoritesView, Refusal> {
    let (owner, id) = (call.user()?.id, ChannelId(call.id_of("channel_id")?));
    let (channels, is_listed) = (call.rest().models.channels.load(), call.listed());
    if !channels.get(id.0).is_some_and(|it| is_listed(it)) {
        return Err(Refusal::unknown::<Channel>());
    }
    let existing: HashSet<ChannelId> = channels.iter().map(|it| it.id).collect();
    let favorites = call.write(move |write| {
        let mut favorites = favorites_of_user(write, owner)?;
        add_channel(&mut favorites, id, &existing)?;
        put(write, favorites)
    });
    let favorites = favorites.await?;
    Ok(view(&call, Some(&favorites)))
}

/// A channel that is not among the favourites is not an error: a repeated request has the same result.
async fn remove(call: Call) -> Result<NoContent, Refusal> {
    let (owner, id) = (call.user()?.id, ChannelId(call.id_of("channel_id")?));
    call.write(move |write| {
        let found = write.by::<PersonalPlaylist>("favorites", owner.0.to_be_bytes())?.into_iter().next();
        if let Some(mut favorites) = found
            && favorites.remove(id)
        {
            put(write, favorites)?;
        }
        Ok(NoContent)
    })
    .await
}

/// Returns the favourites of a user, or new ones.
fn favorites_of_user(write: &mut Write<'_>, owner: UserId) -> Result<PersonalPlaylist, Refusal> {
    if let Some(found) = write.by::<PersonalPlaylist>("favorites", owner.0.to_be_bytes())?.into_iter().next()
    {
        return Ok(found);
    }
    check_count(write, owner)?;
    let id = PersonalPlaylistId(write.next_id::<PersonalPlaylist>()?);
    Ok(PersonalPlaylist::favorites(id, owner, now_ms()))
}

fn put(write: &mut Write<'_>, favorites: PersonalPlaylist) -> Result<PersonalPlaylist, Refusal> {
    let favorites = PersonalPlaylist { updated_at: now_ms(), ..favorites };
    write.put(&favorites)?;
    Ok(favorites)
}

fn view(call: &Call, favorites: Option<&PersonalPlaylist>) -> FavoritesView {
    let (channels, limits) = (call.rest().models.channels.load(), call.view_limits());
    let ids = |it: &PersonalPlaylist| visible_of(it, &limits, &channels).map(|it| it.id).collect();
    FavoritesView { playlist_id: favorites.map(|it| it.id), channels: favorites.map(ids).unwrap_or_default() }
}
