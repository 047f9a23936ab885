//! The field `override` in bodies: what an admin changes in an automatically created channel.

use domain::channel::{CHANNEL_NAME_CHARS_MAX, Channel};
use domain::ids::{GuideChannelId, LogoId, StreamProfileId};
use resource_derive::Body;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::value::{Readable, Shape};
use serde_json::Value;
use server::field_errors::FieldErrors;

use super::edit::ChannelEdit;
use crate::api::channels::logos::LogoUrl;
use crate::api::channels::streams::TVG_ID_CHARS_MAX;
use crate::api::channels::values::{ChannelNumberValue, GroupRef, Text};

/// Fields of an automatically created channel. Fields that are left out stay; `null` is the value of the provider.
#[derive(Clone, Debug, Body)]
#[resource(name = "ChannelOverrideEdit")]
pub(crate) struct ChannelOverride {
    /// Name of the channel.
    #[field(chars_max = CHANNEL_NAME_CHARS_MAX, example = "News")]
    name: Option<Option<Text>>,
    /// Number of the channel, unique.
    #[field(example = "4.1")]
    channel_number: Option<Option<ChannelNumberValue>>,
    /// Channel group, by id or name.
    #[field(example = "3")]
    channel_group_id: Option<Option<GroupRef>>,
    /// Id of the logo.
    #[field(example = "5")]
    logo_id: Option<Option<LogoId>>,
    /// Id of the channel in the guide.
    #[field(chars_max = TVG_ID_CHARS_MAX, example = "news.example")]
    tvg_id: Option<Option<Text>>,
    /// Same as the field outside.
    #[field(chars_max = TVG_ID_CHARS_MAX, example = "20453")]
    tvc_guide_stationid: Option<Option<Text>>,
    /// Id of the guide channel.
    #[field(example = "12")]
    epg_data_id: Option<Option<GuideChannelId>>,
    /// Id of the stream profile.
    stream_profile_id: Option<Option<StreamProfileId>>,
}

impl Shape for ChannelOverride {
    const KIND: Kind = Kind::Record(&ChannelOverride::RECORD);
}

impl Readable for ChannelOverride {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

impl ChannelOverride {
    /// `null` for every field.
    const NONE: Self = Self {
        name: Some(None),
        channel_number: Some(None),
        channel_group_id: Some(None),
        logo_id: Some(None),
        tvg_id: Some(None),
        tvc_guide_stationid: None,
        epg_data_id: Some(None),
        stream_profile_id: Some(None),
    };

    fn has_values(&self) -> bool {
        let Self { name, channel_number, channel_group_id, logo_id, tvg_id, .. } = self;
        matches!(name, Some(Some(_)))
            || matches!(channel_number, Some(Some(_)))
            || matches!(channel_group_id, Some(Some(_)))
            || matches!(logo_id, Some(Some(_)))
            || matches!(tvg_id, Some(Some(_)))
            || matches!(self.tvc_guide_stationid, Some(Some(_)))
            || matches!(self.epg_data_id, Some(Some(_)))
            || matches!(self.stream_profile_id, Some(Some(_)))
    }
}

impl ChannelEdit {
    /// Moves the values of `override` to the fields outside.
    pub(super) fn apply_override(&mut self, before: &Channel, errors: &mut FieldErrors) {
        const MANUAL: &str =
            "Cannot set override on a manual channel; overrides only apply to auto-created channels.";
        let Some(sent) = self.r#override.take().map(|it| it.unwrap_or(ChannelOverride::NONE)) else { return };
        let Some(synced) = before.followed().map(|it| &it.synced) else {
            if sent.has_values() {
                errors.add("override", MANUAL);
            }
            return;
        };
        if let Some(name) = sent.name {
            self.name = Some(name.unwrap_or_else(|| Text(synced.name.clone())));
        }
        if let Some(number) = sent.channel_number {
            self.channel_number = Some(number.or(synced.number.map(ChannelNumberValue)));
        }
        if let Some(group) = sent.channel_group_id {
            self.channel_group_id = Some(group.or(synced.group.map(GroupRef::Id)));
        }
        match sent.logo_id {
            Some(Some(id)) => self.logo_id = Some(Some(id)),
            Some(None) => {
                (self.logo_id, self.logo_url) = (None, Some(synced.logo.clone().map(LogoUrl)));
            }
            None => {}
        }
        if let Some(tvg_id) = sent.tvg_id {
            self.tvg_id = Some(tvg_id.or_else(|| synced.tvg_id.clone().map(Text)));
        }
        if let Some(station) = sent.tvc_guide_stationid {
            self.tvc_guide_stationid = Some(station);
        }
        if let Some(guide) = sent.epg_data_id {
            // The group does not set this link, so the link stays as it is.
            self.epg_data_id = guide.or(synced.guide_channel).map(Some);
        }
        if let Some(profile) = sent.stream_profile_id {
            self.stream_profile_id = Some(profile.or(synced.stream_profile));
        }
    }
}
