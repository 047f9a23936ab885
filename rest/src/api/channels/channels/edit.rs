//! Creates and changes channels.

use std::collections::HashSet;

use actors::now_ms;
use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel, FURTHER_GUIDES_MAX};
use domain::guide::channel::GuideChannel;
use domain::guide::shift::OFFSET_MINUTES_MAX;
use domain::ids::{ChannelId, GuideChannelId, LogoId, StreamId, StreamProfileId};
use domain::logo::Logo;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::timeshift::TimeShiftMode;
use domain::user::UserLevel;
use resource_derive::Body;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;
use uuid::Uuid;

use super::adult;
use super::changed_fields::ChannelOverride;
use super::guide::set_guide;
use super::numbers::{Changes, Taken, conflicts, put_all};
use super::udp_output::UdpOutputEdit;
use crate::api::channels::lineups::{NewMemberships, check_lineups, set_lineups};
use crate::api::channels::logos::{LogoRef, LogoUrl, NamedBy, logo_of_address};
use crate::api::channels::streams::TVG_ID_CHARS_MAX;
use crate::api::channels::undo::UndoLog;
use crate::api::channels::values::{ChannelNumberValue, GroupRef, Text, find_group, no_such, no_such_group};
use crate::choice::Named;
use crate::record::{find, set, set_fields, set_text};

/// Maximum number of streams of a channel.
pub(super) const STREAMS_MAX: usize = 1_000;
/// Maximum number of channel profiles of one request.
pub(super) const LINEUPS_MAX: usize = 1_000;
/// Maximum size of the custom properties as JSON, in bytes.
const PROPERTIES_BYTES_MAX: usize = 100_000;
/// Maximum offset of a guide, in minutes either way.
const OFFSET_MINUTES: i64 = OFFSET_MINUTES_MAX as i64;

/// Values of a channel. Fields that are left out keep their value.
#[derive(Clone, Debug, Body)]
#[resource(name = "ChannelEdit", edit = ChannelEdit)]
pub(crate) struct NewChannel {
    /// Id of the channel in a bulk update; ignored elsewhere.
    #[field(example = "7")]
    id: Option<ChannelId>,
    /// Name of the channel.
    #[field(chars_max = CHANNEL_NAME_CHARS_MAX, example = "News")]
    name: Text,
    /// Number of the channel, unique. A new channel without one gets the lowest free whole number; `null` removes the
    /// number of an existing channel.
    #[field(aliases = &["number"], example = "4.1")]
    channel_number: Option<Option<ChannelNumberValue>>,
    /// Disabled channels are neither listed for viewers nor played.
    enabled: Option<bool>,
    /// The opposite of `enabled`, which has priority.
    hidden_from_output: Option<bool>,
    /// Channel group, by id or name.
    #[field(aliases = &["channel_group"], example = "3")]
    channel_group_id: Option<Option<GroupRef>>,
    /// Id of the channel in the guide.
    #[field(blank, chars_max = TVG_ID_CHARS_MAX, example = "news.example")]
    tvg_id: Option<Option<Text>>,
    /// Station of the channel in a guide that some players bring themselves.
    #[field(blank, chars_max = TVG_ID_CHARS_MAX, example = "20453")]
    tvc_guide_stationid: Option<Option<Text>>,
    /// Ids of the streams in the order of failover, each once.
    #[field(items_max = STREAMS_MAX, example = "[1]")]
    streams: Option<Vec<StreamId>>,
    /// Stream profile for streams without one of their own.
    #[field(aliases = &["stream_profile"])]
    stream_profile_id: Option<Option<StreamProfileId>>,
    /// URL of the logo. The logo with this URL is used, and created if there is none.
    #[field(blank)]
    logo_url: Option<Option<LogoUrl>>,
    /// Id of the logo. Has priority over `logo_url` if it is another one than before.
    logo_id: Option<Option<LogoId>>,
    /// Logo, by id or by address. Has priority over the other two.
    #[field(blank)]
    logo: Option<Option<LogoRef>>,
    /// Whether a start tries the healthiest streams first; otherwise the order of `streams` counts.
    healthiest_first: Option<bool>,
    /// Id of the guide channel whose programmes the channel shows. Without one, the guide channel with its `tvg_id` counts.
    #[field(aliases = &["epg_data"], example = "12")]
    epg_data_id: Option<Option<GuideChannelId>>,
    /// Ids of guide channels that fill the hours and the fields that those before them lack, in order: after the guide channel
    /// of `epg_data_id`, or of `tvg_id`. At most 4.
    #[field(items_max = FURTHER_GUIDES_MAX, example = "[13]")]
    further_epg_data_ids: Option<Vec<GuideChannelId>>,
    /// Minutes by which the programmes of the channel are later than its guide says, from -1440 to 1440; `null` leaves it to the
    /// `tvg-shift` of its first stream.
    #[field(at_least = -OFFSET_MINUTES, at_most = OFFSET_MINUTES, example = "60")]
    epg_offset_minutes: Option<Option<i16>>,
    /// Whether the `tvg-shift` of the first stream also applies to a guide channel that is linked by hand.
    epg_follows_stream: Option<bool>,
    /// Changes of an automatically created channel, with priority over the same fields outside. A field that is `null`
    /// gets the value of the provider back and follows it again; `null` instead of the object does so for all fields.
    r#override: Option<Option<ChannelOverride>>,
    /// Hides the channel from users of a lower level.
    user_level: Option<UserLevel>,
    /// Hides the channel from users who hide adult content. Without a decision, or if the decision is the same, it follows
    /// the marks of the streams; another value than the present one is a decision, which stays.
    is_adult: Option<bool>,
    /// When the gateway keeps the past of the channel itself; `null` leaves it to `timeshift_settings`.
    timeshift: Option<Option<Named<TimeShiftMode>>>,
    /// Where the channel is also sent as datagrams, for set-top boxes; `null` is nowhere.
    udp_output: Option<Option<UdpOutputEdit>>,
    /// Data of clients, which the gateway does not interpret. At most 100,000 bytes.
    custom_properties: Option<Map<String, Value>>,
    /// Ids of the channel profiles in which a new channel is enabled; `[0]` is all and `[]` is none. By default each
    /// profile decides by its `add_new_channels`. Ignored for existing channels.
    #[field(items_max = LINEUPS_MAX, example = "[0]")]
    channel_profile_ids: Option<NewMemberships>,
}

/// Creates a channel.
pub(super) fn create_channel(
    write: &mut Write<'_>,
    mut taken: Taken,
    mut edit: ChannelEdit,
) -> Result<Channel, Refusal> {
    let id = ChannelId(write.next_id::<Channel>()?);
    let before = Channel::new(id, Uuid::new_v4(), "", now_ms());
    let lineups = edit.channel_profile_ids.take().flatten();
    let mut errors = FieldErrors::default();
    check_lineups(write, "channel_profile_ids", &lineups, &mut errors)?;
    let applied = edit.apply(write, &before, &mut UndoLog::default())?;
    let mut channel = match applied {
        Ok(channel) => errors.or(channel)?,
        Err(others) => {
            errors.append(others);
            return Err(errors.into());
        }
    };
    if channel.number.is_none() {
        channel.number = Some(taken.lowest(write)?);
    }
    set_lineups(write, &[id], &lineups)?;
    put_one(write, before, channel)
}

/// Changes a channel.
pub(super) fn change_channel(write: &mut Write<'_>, id: u32, edit: ChannelEdit) -> Result<Channel, Refusal> {
    let before = find::<Channel>(write, id)?;
    let channel = edit.apply(write, &before, &mut UndoLog::default())??;
    put_one(write, before, channel)
}

impl ChannelEdit {
    /// Returns the channel after the edit, or the errors. Does not check whether the number is free. Creates the logo if
    /// its address is new, and notes it.
    pub(super) fn apply(
        mut self,
        write: &mut Write<'_>,
        before: &Channel,
        log: &mut UndoLog,
    ) -> Result<Result<Channel, FieldErrors>, Refusal> {
        let mut errors = FieldErrors::default();
        let mut channel = before.clone();
        self.apply_override(before, &mut errors);
        let (logo_id, logo_url) = self.sent_logo();
        if let Some(group) = self.channel_group_id {
            channel.group = None;
            if let Some(wanted) = group {
                channel.group = find_group(write, &wanted)?.map(|it| it.id);
                if channel.group.is_none() {
                    errors.add("channel_group_id", no_such_group(&wanted));
                }
            }
        }
        if let Some(streams) = self.streams {
            check_streams(write, "streams", &streams, &mut errors);
            channel.streams = streams;
        }
        if let Some(profile) = self.stream_profile_id {
            if let Some(id) = profile
                && write.get::<StreamProfile>(id.0)?.is_none()
            {
                errors.add("stream_profile_id", no_such(id));
            }
            channel.stream_profile = profile;
        }
        set_logo(write, &mut channel, logo_id, logo_url, &mut errors, log)?;
        if let Some(properties) = self.custom_properties {
            if !fits(&properties) {
                errors.add(
                    "custom_properties",
                    format!("Ensure this field has no more than {PROPERTIES_BYTES_MAX} bytes."),
                );
            }
            channel.custom_properties = properties;
        }
        set_fields!(channel from self: name, healthiest_first, user_level, timeshift);
        set(&mut channel.number, self.channel_number.map(|it| it.map(|it| it.0)));
        set_text(&mut channel.tvg_id, self.tvg_id.map(|it| it.map(|it| it.0)));
        set_text(&mut channel.guide_station, self.tvc_guide_stationid.map(|it| it.map(|it| it.0)));
        set(&mut channel.guide_offset, self.epg_offset_minutes);
        if let Some(further) = self.further_epg_data_ids {
            check_guides(write, &further, &mut errors);
            channel.further_guides = further;
        }
        set(&mut channel.enabled, self.enabled.or(self.hidden_from_output.map(|it| !it)));
        set(&mut channel.udp_output, self.udp_output.map(|it| it.map(|it| Box::new(it.into()))));
        adult::apply(write, before, &mut channel, self.is_adult)?;
        if let Some(wanted) = self.epg_data_id.filter(|it| *it != before.guide_channel) {
            set_guide(write, &mut channel, wanted, "epg_data_id", &mut errors, log)?;
        }
        // After the link, which takes the offset away.
        set(&mut channel.keeps_stream_offset, self.epg_follows_stream);
        Ok(errors.or(channel))
    }
}

/// A field that can be absent and can be `null`.
type Sent<T> = Option<Option<T>>;

impl ChannelEdit {
    /// Takes the id and the address of the logo that were sent.
    fn sent_logo(&mut self) -> (Sent<LogoId>, Sent<String>) {
        let url = self.logo_url.take().map(|it| it.map(|it| it.0).filter(|it| !it.is_empty()));
        match self.logo.take() {
            None => (self.logo_id, url),
            Some(None) => (Some(None), None),
            Some(Some(LogoRef::Id(id))) => (Some(Some(id)), None),
            Some(Some(LogoRef::Address(url))) => (None, Some(Some(url).filter(|it| !it.is_empty()))),
        }
    }
}

/// Sets the logo by id or address, whichever differs from the present one.
fn set_logo(
    write: &mut Write<'_>,
    channel: &mut Channel,
    id: Option<Option<LogoId>>,
    url: Option<Option<String>>,
    errors: &mut FieldErrors,
    log: &mut UndoLog,
) -> Result<(), Refusal> {
    let id = id.filter(|it| *it != channel.logo_id);
    let url = url.filter(|it| *it != channel.logo);
    match (id, url) {
        (Some(Some(id)), _) => match write.get::<Logo>(id.0)? {
            Some(logo) => (channel.logo_id, channel.logo) = (Some(id), Some(logo.url)),
            None => errors.add("logo_id", no_such(id)),
        },
        (_, Some(Some(url))) => {
            let logo = logo_of_address(write, &url, &channel.name, NamedBy::Admin, log)?;
            if logo.is_none() && url.starts_with('/') {
                errors.add("logo_url", "No logo has this path.");
            }
            (channel.logo_id, channel.logo) = (logo.map(|it| it.id), Some(url));
        }
        (Some(None), _) | (_, Some(None)) => (channel.logo_id, channel.logo) = (None, None),
        (None, None) => {}
    }
    Ok(())
}

fn put_one(write: &mut Write<'_>, before: Channel, channel: Channel) -> Result<Channel, Refusal> {
    let changes: Changes = vec![(before, channel)];
    if !conflicts(write, &changes)?.is_empty() {
        return Err(Refusal::taken("channel_number"));
    }
    let mut channels = put_all(write, changes, &mut UndoLog::default())?;
    channels.pop().ok_or_else(|| Refusal::fault("write a channel"))
}

/// Checks that the streams exist and are listed once.
pub(super) fn check_streams(write: &Write<'_>, field: &str, streams: &[StreamId], errors: &mut FieldErrors) {
    let mut seen = HashSet::new();
    for id in streams {
        if !seen.insert(id) {
            errors.add(field, format!("Stream {id} is listed more than once."));
        } else if write.owner_of::<Stream>(id.0).is_none() {
            errors.add(field, no_such(id));
        }
    }
}

fn check_guides(write: &Write<'_>, guides: &[GuideChannelId], errors: &mut FieldErrors) {
    for (at, id) in guides.iter().enumerate() {
        if guides[..at].contains(id) {
            errors.add("further_epg_data_ids", format!("Guide channel {id} is listed more than once."));
        } else if write.owner_of::<GuideChannel>(id.0).is_none() {
            errors.add("further_epg_data_ids", no_such(id));
        }
    }
}

fn fits(properties: &Map<String, Value>) -> bool {
    serde_json::to_vec(properties).is_ok_and(|it| it.len() <= PROPERTIES_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_properties_have_a_maximum_size() {
        let properties = |n: usize| Map::from_iter([("a".to_owned(), Value::from("x".repeat(n)))]);
        assert!(fits(&properties(PROPERTIES_BYTES_MAX - 8)) && !fits(&properties(PROPERTIES_BYTES_MAX - 7)));
    }
}
