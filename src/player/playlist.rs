//! `/playlist.m3u`: all channels that the caller may watch, for players that are configured with a single URL.

use std::sync::Arc;

use domain::channel::Channel;
use domain::group::Group;
use domain::lineup::visible;
use domain::logo::Logo;
use domain::playlist::write::{OutputEntry, write_entry, write_header};
use domain::user::UserLevel;
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION};
use storage::Table;

use super::addresses::{logo_address, stream_address};
use crate::http::reply::Refusal;
use crate::rest::frame::access::Access;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::{Content, MediaType, Route};

/// An M3U playlist.
pub(super) struct M3u;

impl MediaType for M3u {
    const NAME: &'static str = "audio/x-mpegurl";
}

pub(super) fn routes() -> Vec<Route> {
    let players = Access::UsersOrNetworks(UserLevel::Streamer);
    vec![Route::get(
        "/playlist.m3u",
        players,
        "Returns a playlist of all channels that the caller may watch.",
        all_channels,
    )]
}

async fn all_channels(call: Call) -> Result<Content<M3u>, Refusal> {
    let models = &call.app.models;
    let (channels, groups, logos) = (models.channels.load(), models.groups.load(), models.logos.load());
    let limits = call.view_limits();
    let channels = channels.iter().filter(|it| visible(&limits, it));
    let text = playlist(channels, &groups, &logos, &call.player_origin());
    let content = Content::new(text).with_header(CACHE_CONTROL, "no-cache");
    Ok(content.with_header(CONTENT_DISPOSITION, "attachment; filename=\"playlist.m3u\""))
}

/// Writes the playlist: channels in the order of their numbers, those without one last. `origin` is the start of all
/// addresses.
fn playlist<'a>(
    channels: impl Iterator<Item = &'a Arc<Channel>>,
    groups: &Table<Group>,
    logos: &Table<Logo>,
    origin: &str,
) -> String {
    let mut text = String::new();
    write_header(&mut text, None);
    let group = |channel: &Channel| groups.get(channel.group?.0).map(|it| it.name.as_str());
    let mut channels: Vec<_> = channels.collect();
    channels.sort_by_key(|it| (it.number.is_none(), it.number));
    for channel in channels {
        let line = OutputEntry {
            name: &channel.name,
            url: &stream_address(origin, channel),
            tvg_id: channel.tvg_id.as_deref().unwrap_or_default(),
            tvg_logo: &logo_address(origin, logos, channel).unwrap_or_default(),
            tvg_chno: channel.number,
            group: group(channel).unwrap_or_default(),
        };
        write_entry(&mut text, &line);
    }
    text
}

#[cfg(test)]
mod tests {
    use domain::ids::{ChannelId, GroupId};
    use domain::playlist::catalogue::Catalogue;
    use storage::Models;
    use uuid::Uuid;

    use super::*;

    fn channel(id: u32, name: &str, number: Option<&str>) -> Channel {
        Channel {
            number: number.map(|it| it.parse().unwrap()),
            tvg_id: Some("one.example".to_owned()),
            ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), name, 0)
        }
    }

    /// Returns the playlist lines of these channels and one group.
    async fn lines(channels: Vec<Channel>) -> Vec<String> {
        let groups = vec![Group::new(GroupId(1), "News")];
        let store = crate::play::temporary(Catalogue { channels, groups, ..Catalogue::default() }).await;
        let models = tokio::task::spawn_blocking(|| Models::of(store.unwrap())).await.unwrap().unwrap();
        let text = playlist(
            models.channels.load().iter(),
            &models.groups.load(),
            &models.logos.load(),
            "http://tv.example:9191",
        );
        text.lines().map(str::to_owned).collect()
    }

    #[tokio::test]
    async fn a_playlist_contains_each_channel_with_a_url_on_the_requested_host() {
        let one = Channel { group: Some(GroupId(1)), ..channel(7, "One \"HD\"", Some("4.1")) };
        let lines = lines(vec![one]).await;
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], "#EXTM3U");
        assert!(lines[1].contains(r#"tvg-id="one.example" tvg-name="One 'HD'""#), "{}", lines[1]);
        assert!(lines[1].contains(r#"tvg-chno="4.1""#) && lines[1].ends_with(",One \"HD\""), "{}", lines[1]);
        assert!(lines[1].contains(r#"group-title="News""#), "{}", lines[1]);
        assert_eq!(lines[2], "http://tv.example:9191/proxy/ts/stream/00000000-0000-0000-0000-000000000007");
    }

    #[tokio::test]
    async fn channels_are_listed_by_number_and_those_without_one_last() {
        let channels = [("A", None), ("B", Some("10")), ("C", Some("9.5")), ("D", None), ("E", Some("2"))];
        let channels = (1..).zip(channels).map(|(id, (name, number))| channel(id, name, number)).collect();
        let lines = lines(channels).await;
        let names: Vec<_> = lines.iter().filter_map(|it| it.rsplit_once(',')).map(|it| it.1).collect();
        assert_eq!(names, ["E", "C", "B", "A", "D"]);
    }
}
