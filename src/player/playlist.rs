//! `/playlist.m3u`: every channel that is served, for players that take one address and nothing else.

use domain::channel::Channel;
use domain::playlist::catalogue::Catalogue;
use domain::playlist::write::{Line, entry, header};
use http::header::{CACHE_CONTROL, CONTENT_DISPOSITION, HeaderValue};
use http::{Method, StatusCode};
use warp::Filter;
use warp::reply::Response as Reply;

use super::PlayerParts;
use crate::http::caller::{Caller, caller};
use crate::http::reply::{Refusal, with_type};
use crate::http::{Routes, method};

/// GET and HEAD.
pub(super) fn route(parts: PlayerParts) -> Routes {
    warp::path("playlist.m3u")
        .and(warp::path::end())
        .and(method("GET, HEAD"))
        .and(caller())
        .map(move |_: Method, caller: Caller| answer(&parts, &caller))
        .boxed()
}

fn answer(parts: &PlayerParts, caller: &Caller) -> Reply {
    if !parts.networks.contains(caller.address()) {
        return Refusal::network().into_response();
    }
    let text = playlist(&parts.catalogue, &caller.host);
    let mut response = with_type(StatusCode::OK, "audio/x-mpegurl", text);
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(CONTENT_DISPOSITION, HeaderValue::from_static("attachment; filename=\"playlist.m3u\""));
    response
}

/// Addresses are made with the host and port that the caller used: what reached us once will do so again.
fn playlist(catalogue: &Catalogue, host: &str) -> String {
    let mut text = String::new();
    header(&mut text, None);
    let group = |channel: &Channel| {
        catalogue.groups.iter().find(|it| Some(it.id) == channel.group).map(|it| it.name.as_str())
    };
    for channel in catalogue.channels.iter().filter(|it| it.enabled) {
        let line = Line {
            name: &channel.name,
            url: &stream_url(host, channel),
            tvg_id: channel.tvg_id.as_deref().unwrap_or_default(),
            tvg_logo: channel.logo.as_deref().unwrap_or_default(),
            tvg_chno: channel.number,
            group: group(channel).unwrap_or_default(),
        };
        entry(&mut text, &line);
    }
    text
}

/// Where a channel is played. Players remember this for ever, so nothing that changes is in it.
pub(crate) fn stream_url(host: &str, channel: &Channel) -> String {
    format!("http://{host}/proxy/ts/stream/{}", channel.uuid)
}

#[cfg(test)]
mod tests {
    use domain::ids::ChannelId;
    use uuid::Uuid;

    use super::*;

    fn channel(name: &str, enabled: bool) -> Channel {
        Channel {
            number: Some("4.1".parse().unwrap()),
            tvg_id: Some("one.example".to_owned()),
            enabled,
            ..Channel::new(ChannelId(1), Uuid::from_u128(7), name, 0)
        }
    }

    #[test]
    fn a_playlist_names_each_channel_with_an_address_on_the_host_that_was_asked() {
        let channels = vec![channel("One \"HD\"", true), channel("Off", false)];
        let catalogue = Catalogue { channels, ..Catalogue::default() };
        let text = playlist(&catalogue, "tv.example:9191");
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[0], "#EXTM3U");
        assert!(lines[1].contains(r#"tvg-id="one.example" tvg-name="One 'HD'""#), "{}", lines[1]);
        assert!(lines[1].contains(r#"tvg-chno="4.1""#) && lines[1].ends_with(",One \"HD\""), "{}", lines[1]);
        assert_eq!(lines[2], "http://tv.example:9191/proxy/ts/stream/00000000-0000-0000-0000-000000000007");
    }
}
