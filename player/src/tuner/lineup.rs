//! The channels of an emulated tuner, in the formats of an HDHomeRun.

use std::sync::Arc;

use domain::channel::{Channel, ChannelNumber};
use domain::health::StreamHealth;
use domain::lineup::{guide_channel_id, visible_by_groups, whole_number};
use domain::playlist::write::{OutputCatchup, OutputEntry, write_entry, write_header};
use http::header::CACHE_CONTROL;
use resource_derive::View;
use route_frame::call::Call;
use route_frame::route::Content;
use serde::Serialize;
use server::reply::Refusal;
use services::addresses::StreamAddresses;
use storage::Models;
use url::form_urlencoded::Serializer;

use super::device::{Device, DevicePath};
use super::{TunerSeats, Xml, document, push_element};
use crate::context::PlayerCall;
use crate::marks::MarkCache;
use crate::playlist::M3u;
use crate::selection::place_of;

/// A channel of a tuner. Names as HDHomeRun devices use them. A field that is not known is left out, because clients
/// take `null` for an error.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, View)]
#[resource(name = "TunerChannel")]
#[expect(non_snake_case, reason = "the names of the fields on the wire")]
pub(super) struct TunerChannelView {
    /// Number of the channel.
    #[field(example = "4.1")]
    GuideNumber: String,
    /// Name of the channel.
    #[field(example = "News")]
    GuideName: String,
    /// 1 if the picture has a high resolution, and 0 if not.
    #[field(may_be_absent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    HD: Option<u32>,
    /// Format of the picture.
    #[field(may_be_absent, example = "H264")]
    #[serde(skip_serializing_if = "Option::is_none")]
    VideoCodec: Option<&'static str>,
    /// Format of the sound.
    #[field(may_be_absent, example = "AAC")]
    #[serde(skip_serializing_if = "Option::is_none")]
    AudioCodec: Option<&'static str>,
    /// Id of the channel in the guide of the gateway.
    #[field(example = "4.1")]
    Guide_ID: String,
    /// Station of the channel in a guide that some programs bring themselves.
    #[field(may_be_absent, example = "20453")]
    #[serde(skip_serializing_if = "Option::is_none")]
    Station: Option<String>,
    /// Address of the stream.
    URL: String,
}

/// Height of a picture from which it has a high resolution, in pixels.
const HD_HEIGHT_MIN: u32 = 720;

pub(super) async fn json(call: Call, at: DevicePath) -> Result<Vec<TunerChannelView>, Refusal> {
    Ok(channels(&call, at)?.into_iter().map(|it| it.view).collect())
}

pub(super) async fn xml(call: Call, at: DevicePath) -> Result<Content<Xml>, Refusal> {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Lineup>\n".to_owned();
    for ListedChannel { view: channel, .. } in channels(&call, at)? {
        text.push_str("<Program>");
        push_element(&mut text, "GuideNumber", &channel.GuideNumber);
        push_element(&mut text, "GuideName", &channel.GuideName);
        for (name, value) in [("VideoCodec", channel.VideoCodec), ("AudioCodec", channel.AudioCodec)] {
            if let Some(value) = value {
                push_element(&mut text, name, value);
            }
        }
        if channel.HD == Some(1) {
            push_element(&mut text, "HD", "1");
        }
        push_element(&mut text, "URL", &channel.URL);
        text.push_str("</Program>\n");
    }
    text.push_str("</Lineup>\n");
    Ok(document(text))
}

pub(super) async fn m3u(call: Call, at: DevicePath) -> Result<Content<M3u>, Refusal> {
    let mut text = String::new();
    write_header(&mut text, Some(&guide_url(&call, &at.device(&call)?)), None);
    let (archives, addresses) = (call.archives(), StreamAddresses::open(call.origin()));
    let marked = call.player().states.get::<MarkCache>().load(&call.player().models);
    for ListedChannel { channel, view } in channels(&call, at)? {
        let days = archives.days(channel.id);
        let past = (days > 0).then(|| addresses.past(&channel));
        let entry = OutputEntry {
            name: &view.GuideName,
            url: &view.URL,
            tvg_id: &guide_channel_id(&channel),
            tvg_chno: view.GuideNumber.parse().ok(),
            catchup: past.as_deref().map(|source| OutputCatchup { source, days }),
            marks: marked.get(channel.id),
            ..OutputEntry::default()
        };
        write_entry(&mut text, &entry);
    }
    Ok(Content::new(text).with_header(CACHE_CONTROL, "no-cache"))
}

/// Returns the address of the guide of the channels of a device.
fn guide_url(call: &Call, device: &Device) -> String {
    let address = format!("{}/output/epg", call.player_origin());
    let Some(lineup) = &device.lineup else { return address };
    let query = Serializer::new(String::new()).append_pair("profile", &lineup.name).finish();
    format!("{address}?{query}")
}

/// A channel of a device, and how the device shows it.
struct ListedChannel {
    channel: Arc<Channel>,
    view: TunerChannelView,
}

/// Returns the channels of the device that the caller may see, in the order of playlists.
fn channels(call: &Call, at: DevicePath) -> Result<Vec<ListedChannel>, Refusal> {
    let device = at.device(call)?;
    call.player().states.get::<TunerSeats>().note_client(call, device.key);
    let (channels, limits, origin) =
        (call.player().models.channels.load(), call.view_limits(), call.origin());
    let of_device = channels.iter().filter(|it| is_of(&device, it));
    let groups = call.player().models.groups.load();
    let listed = visible_by_groups(&limits, of_device, place_of(&groups));
    let health = call.player().plans.health();
    let health = health.get_all(listed.iter().filter_map(|it| it.streams.first().copied()));
    let health_of = |it: &Channel| it.streams.first().and_then(|it| health.get(it));
    let addresses = StreamAddresses::open(origin).with_output_profile(device.output_profile);
    let shown = |channel: Arc<Channel>| {
        let view = view(&channel, health_of(&channel), &addresses);
        ListedChannel { channel, view }
    };
    Ok(listed.into_iter().cloned().map(shown).collect())
}

fn is_of(device: &Device, channel: &Channel) -> bool {
    device.lineup.as_ref().is_none_or(|it| it.contains(channel.id))
}

/// Returns the number of a channel for tuners: its own one or, without one, the same as in player apps. Clients take it
/// for a number with at most one dot, and for the identity of the channel.
fn guide_number(channel: &Channel) -> String {
    channel.number.map_or_else(|| whole_number(channel).to_string(), |it| it.to_string())
}

/// Returns the channel with this number in lineups.
pub(super) fn by_number(models: &Models, number: &str) -> Option<Arc<Channel>> {
    let own = number.parse::<ChannelNumber>().ok();
    let is_it = |it: &Channel| match it.number {
        Some(number) => Some(number) == own,
        None => whole_number(it).to_string() == number,
    };
    models.channels.load().iter().find(|it| is_it(it)).cloned()
}

/// `health` is that of the first stream of the channel.
fn view(channel: &Channel, health: Option<&StreamHealth>, addresses: &StreamAddresses) -> TunerChannelView {
    TunerChannelView {
        GuideNumber: guide_number(channel),
        GuideName: channel.name.clone(),
        HD: health.and_then(|it| it.height).map(|it| u32::from(it >= HD_HEIGHT_MIN)),
        VideoCodec: health.and_then(|it| codec(it.video_codec.as_deref()?)),
        AudioCodec: health.and_then(|it| codec(it.audio_codec.as_deref()?)),
        Guide_ID: guide_channel_id(channel),
        Station: channel.guide_station.clone(),
        URL: addresses.channel(channel),
    }
}

/// Returns the name that HDHomeRun devices have for a format.
fn codec(name: &str) -> Option<&'static str> {
    Some(match name {
        "MPEG-2 video" => "MPEG2",
        "H.264" => "H264",
        "H.265" => "HEVC",
        "AAC" => "AAC",
        "AC-3" => "AC3",
        "E-AC-3" => "EAC3",
        "MPEG audio" => "MPEG",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use domain::ids::{ChannelId, StreamId};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_channel_has_the_codecs_of_its_first_stream_if_they_are_known() {
        let number = "4.10".parse().ok();
        let channel = Channel { number, ..Channel::new(ChannelId(7), Uuid::from_u128(7), "News", 0) };
        let shown = |health: Option<&StreamHealth>| {
            let addresses = StreamAddresses::open("http://h:1/tv");
            serde_json::to_value(view(&channel, health, &addresses)).unwrap()
        };
        let url = format!("http://h:1/tv/proxy/ts/stream/{}", channel.uuid);
        let unknown = json!({ "GuideNumber": "4.1", "GuideName": "News", "Guide_ID": guide_channel_id(&channel), "URL": url });
        assert_eq!(shown(None), unknown);
        let mut health = StreamHealth::new(StreamId(1));
        assert_eq!(shown(Some(&health)), unknown);
        health.video_codec = Some("H.264".to_owned());
        health.audio_codec = Some("private data".to_owned());
        health.height = Some(1080);
        let mut known = unknown;
        (known["HD"], known["VideoCodec"]) = (json!(1), json!("H264"));
        assert_eq!(shown(Some(&health)), known);
    }

    #[test]
    fn a_channel_names_its_station_where_it_is_known() {
        let station = Some("20453".to_owned());
        let channel =
            Channel { guide_station: station, ..Channel::new(ChannelId(7), Uuid::from_u128(7), "News", 0) };
        let shown = serde_json::to_value(view(&channel, None, &StreamAddresses::open("http://h:1"))).unwrap();
        let expected = (json!("20453"), json!(guide_channel_id(&channel)));
        assert_eq!((shown["Station"].clone(), shown["Guide_ID"].clone()), expected);
    }
}
