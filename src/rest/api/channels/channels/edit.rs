//! How a channel is made and changed.

use std::collections::HashSet;

use actors::now_ms;
use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel};
use domain::ids::{ChannelId, StreamId, StreamProfileId};
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::UserLevel;
use serde_json::{Map, Value};
use storage::Write;
use uuid::Uuid;

use super::numbers::{Changes, Taken, conflicts, put_all};
use crate::http::reply::Refusal;
use crate::rest::api::channels::streams::TVG_ID_CHARS_MAX;
use crate::rest::api::channels::values::{
    ChannelNumberValue, GroupRef, Text, find_group, no_such, no_such_group,
};
use crate::rest::frame::call::find;
use crate::rest::frame::input::FieldErrors;
use crate::rest::frame::record::body;
use crate::rest::frame::value::WebUrl;

/// Streams of a channel.
const STREAMS_MAX: usize = 1_000;
/// Bytes of the custom properties, as JSON.
const PROPERTIES_BYTES_MAX: usize = 100_000;

body! {
    /// What a channel is to be. What is left out stays as it is.
    ChannelEdit {
        /// Which channel, where many are changed at once; ignored elsewhere.
        id: ChannelId [example("7")],
        /// Its name.
        name: Text [required(), chars_max(CHANNEL_NAME_CHARS_MAX), example("News")],
        /// Its number, unique over all channels. A new channel without one gets the lowest whole number that is free;
        /// `null` takes it away from one that has one.
        channel_number: Option<ChannelNumberValue> [also(&["number"]), example("4.1")],
        /// A channel that is not enabled is neither listed for viewers nor played.
        enabled: bool,
        /// Its channel group: an id or a name.
        channel_group_id: Option<GroupRef> [also(&["channel_group"]), example("3")],
        /// Its id in a guide.
        tvg_id: Option<Text> [blank(), chars_max(TVG_ID_CHARS_MAX), example("news.example")],
        /// Ids of its streams in the order in which they are tried, each once.
        streams: Vec<StreamId> [items_max(STREAMS_MAX), example("[1]")],
        /// How its streams are handed on, where they do not say it themselves.
        stream_profile_id: Option<StreamProfileId>,
        /// Address of its picture.
        logo_url: Option<WebUrl> [blank()],
        /// Its logo: only `null`, because there are none yet.
        logo_id: Option<u32>,
        /// Its guide: only `null`, because there is none yet.
        epg_data_id: Option<u32>,
        /// Users of a lower level do not see it.
        user_level: UserLevel,
        /// Users who hide adult content do not see it.
        is_adult: bool,
        /// Kept for programs; nobody looks into it. At most 100,000 bytes.
        custom_properties: Map<String, Value>,
    }
}

impl ChannelEdit {
    /// Makes a channel of it.
    pub(super) fn make(self, write: &mut Write<'_>, mut taken: Taken) -> Result<Channel, Refusal> {
        let id = ChannelId(write.next_id::<Channel>()?);
        let before = Channel::new(id, Uuid::new_v4(), "", now_ms());
        let mut channel = self.apply(write, &before)??;
        if channel.number.is_none() {
            channel.number = Some(taken.lowest(write)?);
        }
        put_one(write, before, channel)
    }

    /// Changes a channel.
    pub(super) fn change(self, write: &mut Write<'_>, id: u32) -> Result<Channel, Refusal> {
        let before = find::<Channel>(write, id)?;
        let channel = self.apply(write, &before)??;
        put_one(write, before, channel)
    }

    /// What was sent, over what is there; or what is wrong with it. Whether the number is free is for later.
    pub(super) fn apply(
        self,
        write: &Write<'_>,
        before: &Channel,
    ) -> Result<Result<Channel, FieldErrors>, Refusal> {
        let mut errors = FieldErrors::default();
        let mut channel = before.clone();
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
            check_streams(write, "streams", &streams, &mut errors)?;
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
        for (field, sent) in [("logo_id", self.logo_id), ("epg_data_id", self.epg_data_id)] {
            if let Some(Some(id)) = sent {
                errors.add(field, no_such(id));
            }
        }
        if let Some(properties) = self.custom_properties {
            if !fits(&properties) {
                errors.add(
                    "custom_properties",
                    format!("Ensure this field has no more than {PROPERTIES_BYTES_MAX} bytes."),
                );
            }
            channel.custom_properties = properties;
        }
        if let Some(Text(name)) = self.name {
            channel.name = name;
        }
        if let Some(number) = self.channel_number {
            channel.number = number.map(|it| it.0);
        }
        if let Some(tvg_id) = self.tvg_id {
            channel.tvg_id = tvg_id.map(|it| it.0).filter(|it| !it.is_empty());
        }
        if let Some(logo) = self.logo_url {
            channel.logo = logo.map(|it| it.0).filter(|it| !it.is_empty());
        }
        channel.enabled = self.enabled.unwrap_or(channel.enabled);
        channel.user_level = self.user_level.unwrap_or(channel.user_level);
        channel.is_adult = self.is_adult.unwrap_or(channel.is_adult);
        Ok(if errors.is_empty() { Ok(channel) } else { Err(errors) })
    }
}

fn put_one(write: &mut Write<'_>, before: Channel, channel: Channel) -> Result<Channel, Refusal> {
    let changes: Changes = vec![(before, channel)];
    if !conflicts(write, &changes)?.is_empty() {
        return Err(Refusal::taken("channel_number"));
    }
    let mut channels = put_all(write, changes)?;
    channels.pop().ok_or_else(|| Refusal::fault("write a channel"))
}

/// Are these streams there, and each once?
pub(super) fn check_streams(
    write: &Write<'_>,
    field: &str,
    streams: &[StreamId],
    errors: &mut FieldErrors,
) -> Result<(), Refusal> {
    let mut seen = HashSet::new();
    for id in streams {
        if !seen.insert(id) {
            errors.add(field, format!("Stream {id} is there more than once."));
        } else if write.get::<Stream>(id.0)?.is_none() {
            errors.add(field, no_such(id));
        }
    }
    Ok(())
}

fn fits(properties: &Map<String, Value>) -> bool {
    serde_json::to_vec(properties).is_ok_and(|it| it.len() <= PROPERTIES_BYTES_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn custom_properties_have_a_size_that_they_may_have() {
        let of = |n: usize| Map::from_iter([("a".to_owned(), Value::from("x".repeat(n)))]);
        assert!(fits(&of(PROPERTIES_BYTES_MAX - 8)) && !fits(&of(PROPERTIES_BYTES_MAX - 7)));
    }
}
