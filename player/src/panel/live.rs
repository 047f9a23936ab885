//! Live categories and channels, as a panel describes them.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::Arc;

use bytes::Bytes;
use domain::channel::Channel;
use domain::ids::{ChannelId, PersonalPlaylistId};
use domain::lineup::{ViewLimits, guide_channel_id, visible_by_groups, whole_number};
use domain::personal_playlist::PersonalPlaylist;
use route_frame::call::Call;
use route_frame::route::Document;
use serde::{Serialize, Serializer};
use server::encoding::accepts_gzip;
use server::reply::Refusal;
use services::addresses::logo_address;
use storage::Table;

use super::PanelAnswer;
use crate::context::PlayerCall;
use crate::marks::MarkCache;
use crate::prepared::{AnswerKey, PreparedAnswer, PreparedAnswers, Tables};
use crate::selection::{place_of, visible_of};

/// Id of the category of channels without a group: the largest number of 32 bits with a sign, which no group reaches. The
/// ids of the other categories are those of groups, or belong to personal playlists.
const UNGROUPED: u32 = i32::MAX.unsigned_abs();
/// Added to the id of a personal playlist, this is the id of its category.
const PERSONAL: u32 = 2_000_000_000;
/// Maximum number of personal playlists that are categories.
const PERSONAL_MAX: usize = 100;
const UNGROUPED_NAME: &str = "Other";

/// A category. Its id is a text that contains a number, and differs from those of films and series.
#[derive(Debug, Serialize)]
struct Category<'a> {
    category_id: String,
    category_name: &'a str,
    parent_id: u32,
}

/// A channel. Its types are those of panels: `category_id`, `added` and `is_adult` are texts that contain numbers.
#[derive(Debug, Serialize)]
struct LiveStream<'a> {
    /// The channel number if it is whole; unique.
    num: u64,
    name: &'a str,
    stream_type: &'static str,
    stream_id: u32,
    stream_icon: Option<String>,
    /// Id of the channel in the guide.
    epg_channel_id: String,
    /// When the channel was created, in seconds since 1970.
    added: String,
    is_adult: &'static str,
    category_id: String,
    /// That category, and those of personal playlists.
    category_ids: Vec<u32>,
    custom_sid: &'static str,
    /// Whether past programmes can be watched, and for how many days.
    tv_archive: u8,
    tv_archive_duration: u32,
    direct_source: &'static str,
}

pub(super) async fn categories(call: &Call) -> Result<PanelAnswer, Refusal> {
    list(call, "live_categories", None, |key, tables, out| write_categories(out, key, tables)).await
}

/// Returns the channels of a category, or of all. A category that the caller does not see has none.
pub(super) async fn streams(call: &Call, category: Option<&str>) -> Result<PanelAnswer, Refusal> {
    // 0 is the id of no group.
    let part = category.map(|it| it.parse().unwrap_or(0));
    list(call, "live_streams", part, |key, tables, out| write_array(out, streams_of(key, tables))).await
}

/// Returns the rest of the answer that contains everything, from the live categories in its `categories` on, without the
/// brace that ends it.
pub(super) async fn all(call: &Call) -> Result<Bytes, Refusal> {
    let prepared = prepared(call, "panel", None, false, |key, tables, out| {
        out.write_all(br#""live":"#)?;
        write_categories(out, key, tables)?;
        out.write_all(br#"},"available_channels":"#)?;
        let streams = streams_of(key, tables).map(|it| (it.stream_id.to_string(), it));
        Ok(serde_json::Serializer::new(out).collect_map(streams)?)
    });
    Ok(prepared.await?.text)
}

async fn list(
    call: &Call,
    list: &'static str,
    part: Option<u32>,
    build: impl FnOnce(&AnswerKey, &Tables, &mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Result<PanelAnswer, Refusal> {
    let is_gzip = accepts_gzip(&call.headers);
    let PreparedAnswer { text, tag } = prepared(call, list, part, is_gzip, build).await?;
    Ok(PanelAnswer::List(Document::new(text, tag, "application/json", &call.headers).with_gzip(is_gzip)))
}

async fn prepared(
    call: &Call,
    list: &'static str,
    part: Option<u32>,
    is_gzip: bool,
    build: impl FnOnce(&AnswerKey, &Tables, &mut dyn Write) -> io::Result<()> + Send + 'static,
) -> Result<PreparedAnswer, Refusal> {
    let limits: ViewLimits = call.view_limits();
    let tables =
        Tables::load(&call.player().models, &call.player().archives, call.player().states.get::<MarkCache>());
    let playlists = playlists_of(call, &tables.playlists)?;
    let (origin, may_catch_up) = (call.player_origin(), call.may_catch_up());
    let key = AnswerKey { list, part, origin, limits, playlists, may_catch_up, is_gzip };
    call.player().states.get::<PreparedAnswers>().get(key, tables, build).await
}

/// Returns the personal playlists that the user may read: first the favourites, then the others by name.
fn playlists_of(
    call: &Call,
    playlists: &Table<PersonalPlaylist>,
) -> Result<Vec<PersonalPlaylistId>, Refusal> {
    let user = call.user()?.id.0.to_be_bytes();
    let mut found: Vec<_> = playlists.by("owner", user).chain(playlists.by("assigned", user)).collect();
    found.sort_by_key(|it| (!it.is_favorites, it.name.to_lowercase(), it.id));
    found.dedup_by_key(|it| it.id);
    Ok(found.into_iter().map(|it| it.id).take(PERSONAL_MAX).collect())
}

/// Returns the id of the category of a personal playlist, if it has one.
fn category_of_playlist(id: PersonalPlaylistId) -> Option<u32> {
    PERSONAL.checked_add(id.0).filter(|it| *it < UNGROUPED)
}

/// Returns the categories of the personal playlists of a user, and the channels of each that the user may see.
fn personal<'a>(
    key: &'a AnswerKey,
    tables: &'a Tables,
) -> impl Iterator<Item = (Category<'a>, impl Iterator<Item = &'a Arc<Channel>>)> {
    let playlists = key.playlists.iter().filter_map(|it| tables.playlists.get(it.0));
    playlists.filter_map(|playlist| {
        let id = category_of_playlist(playlist.id)?;
        let category = Category { category_id: id.to_string(), category_name: &playlist.name, parent_id: 0 };
        Some((category, visible_of(playlist, &key.limits, &tables.channels)))
    })
}

/// Writes the categories that contain a channel: those of personal playlists, then the others in the order that an admin
/// gave their groups, and then of their first channels.
fn write_categories(out: &mut dyn Write, key: &AnswerKey, tables: &Tables) -> io::Result<()> {
    let mut seen = HashSet::new();
    let channels = visible_by_groups(&key.limits, tables.channels.iter(), place_of(&tables.groups));
    let categories = channels.into_iter().filter_map(|channel| {
        let (id, name) = category_of(tables, channel);
        let category = || Category { category_id: id.to_string(), category_name: name, parent_id: 0 };
        seen.insert(id).then(category)
    });
    let personal =
        personal(key, tables).filter_map(|(category, mut channels)| channels.next().map(|_| category));
    write_array(out, personal.chain(categories))
}

fn write_array<T: Serialize>(out: &mut dyn Write, items: impl Iterator<Item = T>) -> io::Result<()> {
    Ok(serde_json::Serializer::new(out).collect_seq(items)?)
}

/// Returns the channels of the requested category, or all. Those of a personal playlist have its order.
fn streams_of<'a>(key: &'a AnswerKey, tables: &'a Tables) -> impl Iterator<Item = LiveStream<'a>> {
    let mut personal_categories: HashMap<ChannelId, Vec<u32>> = HashMap::new();
    let mut of_playlist = None;
    for playlist in key.playlists.iter().filter_map(|it| tables.playlists.get(it.0)) {
        let Some(category) = category_of_playlist(playlist.id) else { continue };
        for channel in &playlist.channels {
            personal_categories.entry(*channel).or_default().push(category);
        }
        if key.part == Some(category) {
            of_playlist = Some(visible_of(playlist, &key.limits, &tables.channels).collect());
        }
    }
    let is_wanted = |channel: &Channel| key.part.is_none_or(|part| part == category_of(tables, channel).0);
    let channels: Vec<_> = of_playlist.unwrap_or_else(|| {
        let wanted = tables.channels.iter().filter(|it| is_wanted(it));
        visible_by_groups(&key.limits, wanted, place_of(&tables.groups))
    });
    channels.into_iter().map(move |channel| {
        let personal = personal_categories.remove(&channel.id).unwrap_or_default();
        stream(key, tables, channel, personal)
    })
}

fn stream<'a>(key: &AnswerKey, tables: &Tables, channel: &'a Channel, personal: Vec<u32>) -> LiveStream<'a> {
    let archive_days = if key.may_catch_up { tables.archives.days(channel.id) } else { 0 };
    let (category, _) = category_of(tables, channel);
    let category_ids = std::iter::once(category).chain(personal).collect();
    LiveStream {
        num: whole_number(channel),
        name: &channel.name,
        stream_type: if tables.marked.is_radio(channel.id) { "radio_streams" } else { "live" },
        stream_id: channel.id.0,
        stream_icon: logo_address(&key.origin, &tables.logos, channel),
        epg_channel_id: guide_channel_id(channel),
        added: (channel.created_at / 1000).to_string(),
        is_adult: if channel.is_adult { "1" } else { "0" },
        category_id: category.to_string(),
        category_ids,
        custom_sid: "",
        tv_archive: u8::from(archive_days > 0),
        tv_archive_duration: archive_days,
        direct_source: "",
    }
}

/// Returns id and name of the category of a channel.
fn category_of<'a>(tables: &'a Tables, channel: &Channel) -> (u32, &'a str) {
    let group = channel.group.and_then(|it| tables.groups.get(it.0));
    group.map_or((UNGROUPED, UNGROUPED_NAME), |it| (it.id.0, &it.name))
}
