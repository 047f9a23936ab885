//! `/api/channels/profiles/`: lineups, which the interface calls channel profiles.

mod memberships;
mod tags;
#[cfg(test)]
mod tests;
mod visible;

use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::{ChannelId, LineupId};
use domain::lineup::{LINEUP_NAME_CHARS_MAX, Lineup};
use domain::playlist::tags::PlaylistTags;
use domain::user::User;
use domain::user_group::VIEW_CHANNEL_PROFILE;
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use server::reply::Refusal;
use storage::Table;

pub(super) use self::memberships::{NewMemberships, check_lineups, set_lineups};
use self::tags::{SentTags, TagsValue};
pub(super) use self::visible::find_own;
use self::visible::is_own;
use crate::api::hdhr::remove_devices;
use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{Lookup, RecordCall, Render, find, set};

/// Maximum length of a description, in characters.
const DESCRIPTION_CHARS_MAX: usize = 1_000;

/// A channel profile: a selection of channels, for users and for tuners.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ChannelProfile", new = NewLineup, edit = LineupEdit)]
pub(crate) struct LineupView {
    /// Assigned by the gateway and never reused.
    #[field(example = "7")]
    id: LineupId,
    /// Ids of the channels that are enabled in the profile and that the caller may see.
    #[field(example = "[1, 2]")]
    channels: Vec<ChannelId>,
    /// Unique name; upper and lower case differ.
    #[field(required, chars_max = LINEUP_NAME_CHARS_MAX, example = "Kids")]
    name: String,
    /// Description for people.
    #[field(edit, blank, chars_max = DESCRIPTION_CHARS_MAX)]
    description: String,
    /// Whether new channels are enabled in the profile; true by default. A profile that is created with false begins
    /// without channels.
    #[field(edit)]
    add_new_channels: bool,
    /// Additional attributes of the first line of playlists of the profile, by name. Names have lower-case letters, digits,
    /// hyphens and underscores.
    #[field(edit, example = "{\"refresh\": \"3600\"}")]
    playlist_header: TagsValue,
    /// Additional attributes of every entry of playlists of the profile, by name.
    #[field(edit, example = "{\"tvg-shift\": \"1\"}")]
    playlist_attributes: TagsValue,
    /// Properties of every entry of playlists of the profile, by name, which Kodi reads (`#KODIPROP`).
    #[field(edit, example = "{\"mimetype\": \"video/mp2t\"}")]
    kodi_properties: TagsValue,
}

/// Filters of the list of channel profiles.
#[derive(Debug, Query)]
struct Filters {
    /// Part of the name or the description, regardless of case.
    search: Option<Search>,
    /// Part of the name, regardless of case.
    name: Option<Search>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<ByName>>,
}

/// The copy of a channel profile.
#[derive(Clone, Debug, Body)]
pub(crate) struct LineupCopy {
    /// Unique name of the copy.
    #[field(chars_max = LINEUP_NAME_CHARS_MAX, example = "Kids 2")]
    name: String,
}

const LIST: &str = "/api/channels/profiles/";
const ONE: &str = "/api/channels/profiles/{id}/";

pub(super) fn routes() -> Vec<Route> {
    let own = vec![
        Route::get(LIST, STANDARD, "Lists channel profiles. Non-admins see those assigned to them.", list)
            .also_with(VIEW_CHANNEL_PROFILE),
        Route::post(LIST, ADMIN, "Creates a channel profile.", create),
        Route::get(ONE, STANDARD, "Returns a channel profile.", retrieve).also_with(VIEW_CHANNEL_PROFILE),
        Route::put(ONE, ADMIN, "Updates a channel profile.", update),
        Route::patch(ONE, ADMIN, "Partially updates a channel profile.", update),
        Route::delete(ONE, ADMIN, "Deletes a channel profile.", delete)
            .refuses(StatusCode::BAD_REQUEST, "A user is limited to this profile alone."),
        Route::post(
            "/api/channels/profiles/{id}/duplicate/",
            ADMIN,
            "Creates a copy of a channel profile.",
            duplicate,
        ),
    ];
    own.into_iter().chain(memberships::routes()).collect()
}

async fn list(call: Call, (filters, paging): (Filters, WholeOrPages)) -> Result<Page<LineupView>, Refusal> {
    let lineups = call.rest().models.lineups.load();
    let is_wanted = |it: &Lineup| {
        is_own(&call, it.id)
            && matches(filters.name.as_ref(), [&it.name])
            && matches(filters.search.as_ref(), [&it.name, &it.description])
    };
    let mut lineups: Vec<_> = lineups.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Id));
    ordering.sort(&mut lineups, |it| it.id, |it| &it.name);
    paging.render(&call, &lineups)
}

async fn retrieve(call: Call) -> Result<LineupView, Refusal> {
    let lineup = find_own(&call, LineupId(call.id()?)).ok_or_else(Refusal::unknown::<Lineup>)?;
    call.render(&*lineup)
}

async fn create(call: Call, new: NewLineup) -> Result<Created<LineupView>, Refusal> {
    let sent = SentTags {
        header: new.playlist_header,
        entries: new.playlist_attributes,
        properties: new.kodi_properties,
    };
    let mut tags = PlaylistTags::default();
    sent.apply(&mut tags)?;
    call.create(move |_, id| {
        let lineup = Lineup::new(LineupId(id), new.name, new.add_new_channels.unwrap_or(true));
        Ok(Lineup { description: new.description.unwrap_or_default(), tags, ..lineup })
    })
    .await
}

async fn update(call: Call, edit: LineupEdit) -> Result<LineupView, Refusal> {
    call.update(move |write, lineup: &mut Lineup| {
        set(&mut lineup.name, edit.name);
        set(&mut lineup.description, edit.description);
        let sent = SentTags {
            header: edit.playlist_header,
            entries: edit.playlist_attributes,
            properties: edit.kodi_properties,
        };
        sent.apply(&mut lineup.tags)?;
        if let Some(has_new) = edit.add_new_channels.filter(|it| *it != lineup.has_new_channels) {
            let channels: Vec<Channel> = write.all()?;
            lineup.set_new_channels(has_new, channels.iter().map(|it| it.id));
        }
        Ok(())
    })
    .await
}

/// Also removes the lineup from its users, and its tuner devices. Not if a user has no other: without a lineup, that user would see everything.
async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = LineupId(call.id()?);
    call.write(move |write| {
        find::<Lineup>(write, id.0)?;
        let mut users: Vec<User> = write.all()?;
        users.retain(|it| it.lineups.contains(&id));
        let limited: Vec<_> = users.iter().filter(|it| it.lineups.iter().all(|it| *it == id)).collect();
        if let Some(first) = limited.first() {
            let others = match limited.len() - 1 {
                0 => String::new(),
                n => format!(" (and of {n} others)"),
            };
            let name = &first.username;
            return Err(Refusal::bad_request(format!(
                "This is the only channel profile of the user {name}{others}. Assign another one first."
            )));
        }
        for mut user in users {
            user.lineups.retain(|it| *it != id);
            write.put(&user)?;
        }
        remove_devices(write, id)?;
        write.remove::<Lineup>(id.0)?;
        Ok(NoContent)
    })
    .await
}

async fn duplicate(call: Call, copy: LineupCopy) -> Result<Created<LineupView>, Refusal> {
    let original = call.id()?;
    call.create(move |write, id| {
        let original = find::<Lineup>(write, original)?;
        Ok(Lineup { id: LineupId(id), name: copy.name, ..original })
    })
    .await
}

/// The channels that the caller may see.
pub(crate) struct ListedChannels {
    channels: Arc<Table<Channel>>,
    is_listed: Box<dyn Fn(&Channel) -> bool + Send + Sync>,
}

impl Lookup for ListedChannels {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Self { channels: call.rest().models.channels.load(), is_listed: Box::new(call.listed()) })
    }
}

impl Render for Lineup {
    type View = LineupView;
    type Lookup = ListedChannels;

    fn view(&self, all: &ListedChannels) -> LineupView {
        let channels = all.channels.iter().filter(|it| self.contains(it.id) && (all.is_listed)(it));
        LineupView {
            id: self.id,
            channels: channels.map(|it| it.id).collect(),
            name: self.name.clone(),
            description: self.description.clone(),
            add_new_channels: self.has_new_channels,
            playlist_header: TagsValue(self.tags.header.clone()),
            playlist_attributes: TagsValue(self.tags.entries.clone()),
            kodi_properties: TagsValue(self.tags.properties.clone()),
        }
    }
}
