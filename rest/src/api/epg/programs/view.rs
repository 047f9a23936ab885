//! Programmes in answers, in a short form.

use domain::ids::{ChannelId, GuideChannelId};
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;
use services::guide::{EntryId, GuideEntry};
use uuid::Uuid;

use super::values::time;

/// A programme in a list.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ProgramData")]
pub(crate) struct ProgramView {
    /// Stable over refreshes as long as the programme keeps channel and start: a number, or a text for a programme of a
    /// generated guide and for one that a channel shows with an offset.
    #[field(example = "4503601413783552")]
    id: EntryId,
    /// Start of the programme.
    start_time: Time,
    /// End of the programme.
    end_time: Time,
    /// Title in the first language of the guide, without marks such as `(New)`: the one that rules compare.
    #[field(example = "Evening News")]
    title: String,
    /// The title as the guide writes it, for people.
    #[field(example = "Evening News ᴺᵉʷ")]
    display_title: String,
    /// Title of the episode.
    sub_title: Option<String>,
    /// Description.
    description: Option<String>,
    /// Id of the channel in its guide source.
    #[field(example = "news.example")]
    tvg_id: String,
}

impl ProgramView {
    pub(in crate::api::epg) fn new(entry: &GuideEntry, tvg_id: &str) -> Self {
        let programme = entry.programme();
        Self {
            id: entry.id,
            start_time: time(entry.start),
            end_time: time(entry.stop),
            title: programme.plain_title().into_owned(),
            display_title: programme.title().to_owned(),
            sub_title: programme.sub_title().map(str::to_owned),
            description: programme.description().map(str::to_owned),
            tvg_id: tvg_id.to_owned(),
        }
    }
}

/// A programme in the guide of channels.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "GridProgram")]
pub(crate) struct GridProgramView {
    /// Same as in the list of programmes.
    #[field(example = "4503601413783552")]
    pub(in crate::api::epg) id: EntryId,
    /// Start of the programme.
    pub(in crate::api::epg) start_time: Time,
    /// End of the programme.
    pub(in crate::api::epg) end_time: Time,
    /// Title in the first language of the guide, without marks such as `(New)`: the one that rules compare.
    #[field(example = "Evening News")]
    pub(in crate::api::epg) title: String,
    /// The title as the guide writes it, for people.
    #[field(example = "Evening News ᴺᵉʷ")]
    pub(in crate::api::epg) display_title: String,
    /// Title of the episode.
    pub(in crate::api::epg) sub_title: Option<String>,
    /// Description.
    pub(in crate::api::epg) description: Option<String>,
    /// Id of the channel in its guide source; the UUID of the channel for a generated guide.
    #[field(example = "news.example")]
    pub(in crate::api::epg) tvg_id: String,
    /// Number of the season.
    #[field(example = "2")]
    pub(in crate::api::epg) season: Option<u32>,
    /// Number of the episode.
    #[field(example = "3")]
    pub(in crate::api::epg) episode: Option<u32>,
    /// Whether it is shown for the first time.
    pub(in crate::api::epg) is_new: bool,
    /// Whether it is broadcast live.
    pub(in crate::api::epg) is_live: bool,
    /// Whether it is the first episode of a season or series.
    pub(in crate::api::epg) is_premiere: bool,
    /// Whether it is the last episode of a season or series.
    pub(in crate::api::epg) is_finale: bool,
    /// Categories in the grid, as the guide writes them, at most eight. An additional field: known clients ignore it.
    #[field(may_be_absent, example = "[\"News\"]")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::api::epg) categories: Option<Vec<String>>,
    /// Ids of the channels that show the programme, in the grid.
    #[field(may_be_absent, example = "[7]")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::api::epg) channel_ids: Option<Vec<ChannelId>>,
    /// UUID of the requested channel, in an answer about channels.
    #[field(may_be_absent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::api::epg) channel_uuid: Option<Uuid>,
    /// Id of the requested guide channel, in an answer about these.
    #[field(may_be_absent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::api::epg) epg_data_id: Option<GuideChannelId>,
    /// The programme after this one, in an answer about the present moment.
    #[field(may_be_absent)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(in crate::api::epg) next: Option<ProgramView>,
}

impl GridProgramView {
    pub(in crate::api::epg) fn new(entry: &GuideEntry, tvg_id: &str) -> Self {
        let programme = entry.programme();
        let (season, episode) = programme.season_episode();
        Self {
            id: entry.id,
            start_time: time(entry.start),
            end_time: time(entry.stop),
            title: programme.plain_title().into_owned(),
            display_title: programme.title().to_owned(),
            sub_title: programme.sub_title().map(str::to_owned),
            description: programme.description().map(str::to_owned),
            tvg_id: tvg_id.to_owned(),
            season,
            episode,
            is_new: programme.is_new(),
            is_live: programme.is_live(),
            is_premiere: programme.is_premiere(),
            is_finale: programme.is_finale(),
            categories: None,
            channel_ids: None,
            channel_uuid: None,
            epg_data_id: None,
            next: None,
        }
    }
}
