//! A series rule in answers and bodies.

use domain::ids::{ChannelId, GroupId, RecordingRuleId};
use domain::recording::rules::{
    KEEP_MAX, LENGTH_MINUTES_MAX, QualityWish, RULE_CHANNELS_MAX, SEASON_MAX, TextMode,
};
use domain::recording::{PADDING_SECONDS_MAX, PRIORITY_MAX, QUOTA_BYTES_MAX};
use resource_derive::{Body, View};
use serde::Serialize;

use crate::api::channels::recordings::PADDING_SECONDS_MIN;
use crate::choice::{Named, choice};

/// Maximum number of programmes in a preview.
const PREVIEW_MAX: u32 = 200;

choice!(
    /// The episodes that a rule records.
    enum EpisodeMode {
        All = "all",
        New = "new",
        MarkedNew = "marked_new",
        Unseen = "unseen",
    }
);

/// A rule that records programmes.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "SeriesRule")]
pub(crate) struct SeriesRuleView {
    /// Assigned by the gateway and never reused.
    #[field(example = "3")]
    pub(super) id: RecordingRuleId,
    /// Id of the channel in the guide; empty for all channels.
    #[field(example = "news.example")]
    pub(super) tvg_id: String,
    /// `new` records only episodes that the guide marks as new or that were never seen before, `marked_new` only the former,
    /// and `unseen` only the latter, whatever the guide says.
    pub(super) mode: Named<EpisodeMode>,
    /// Text that the title must have; empty if every title is right.
    #[field(example = "Evening")]
    pub(super) title: String,
    /// How the title is compared, regardless of case.
    pub(super) title_mode: Named<TextMode>,
    /// Text that the description must have; empty if every description is right.
    pub(super) description: String,
    /// How the description is compared.
    pub(super) description_mode: Named<TextMode>,
    /// The channel that is preferred.
    pub(super) channel_id: Option<ChannelId>,
    /// The channels on which the rule records, besides those of `channel_group_ids`; all channels if both are empty.
    #[field(items_max = RULE_CHANNELS_MAX)]
    pub(super) channel_ids: Vec<ChannelId>,
    /// The groups of channels on which the rule records.
    #[field(items_max = RULE_CHANNELS_MAX)]
    pub(super) channel_group_ids: Vec<GroupId>,
    /// Days of the week on which programmes begin, from 0, Monday, to 6, Sunday; empty for all.
    #[field(items_max = 7)]
    pub(super) days_of_week: Vec<u32>,
    /// The earliest time of the day at which programmes begin.
    #[field(example = "20:00:00")]
    pub(super) start_after: Option<String>,
    /// The time of the day before which programmes begin. If it is not after `start_after`, it is on the next day.
    #[field(example = "23:00:00")]
    pub(super) start_before: Option<String>,
    /// Time zone of days and times; `null` for that of the settings.
    #[field(example = "Europe/Berlin")]
    pub(super) time_zone: Option<String>,
    /// The first season that is recorded. Programmes without a season are left out.
    pub(super) season_from: Option<u32>,
    /// The shortest programme that is recorded, in minutes.
    pub(super) min_minutes: Option<u32>,
    /// The longest programme that is recorded, in minutes.
    pub(super) max_minutes: Option<u32>,
    /// The quality of the channel that is preferred. Others are recorded if no showing has it.
    pub(super) quality: Named<QualityWish>,
    /// Whether films and episodes that the library has are left out.
    pub(super) skip_library: bool,
    /// How many recordings stay; 0 keeps all.
    pub(super) keep: u32,
    /// How many bytes its recordings have together; 0 means no limit.
    pub(super) quota_bytes: u64,
    /// Seconds before the start, or left out if negative; `null` for those of the settings.
    pub(super) padding_before: Option<i32>,
    /// Seconds after the end, or left out if negative; `null` for those of the settings.
    pub(super) padding_after: Option<i32>,
    /// Priority of its recordings.
    #[field(example = "50")]
    pub(super) priority: u32,
    /// Whether the rule makes recordings.
    pub(super) enabled: bool,
}

/// A rule that records programmes. One with the same guide id and title is replaced.
#[derive(Debug, Body)]
pub(crate) struct NewSeriesRule {
    /// Id of the channel in the guide; without it, all channels count.
    #[field(blank, example = "news.example")]
    pub(super) tvg_id: Option<Option<String>>,
    /// `new` records only episodes that the guide marks as new or that were never seen before, `marked_new` only the former,
    /// and `unseen` only the latter, whatever the guide says; the default is `all`.
    pub(super) mode: Option<Named<EpisodeMode>>,
    /// Text that the title must have.
    #[field(blank, example = "Evening")]
    pub(super) title: Option<Option<String>>,
    /// How the title is compared, regardless of case; the default is `exact`.
    pub(super) title_mode: Option<Named<TextMode>>,
    /// Text that the description must have.
    #[field(blank)]
    pub(super) description: Option<Option<String>>,
    /// How the description is compared; the default is `contains`.
    pub(super) description_mode: Option<Named<TextMode>>,
    /// The channel that is preferred.
    pub(super) channel_id: Option<Option<ChannelId>>,
    /// The channels on which the rule records, besides those of `channel_group_ids`; without both, all channels.
    #[field(items_max = RULE_CHANNELS_MAX)]
    pub(super) channel_ids: Option<Option<Vec<ChannelId>>>,
    /// The groups of channels on which the rule records.
    #[field(items_max = RULE_CHANNELS_MAX)]
    pub(super) channel_group_ids: Option<Option<Vec<GroupId>>>,
    /// Days of the week on which programmes begin, from 0, Monday, to 6, Sunday; without it, all.
    #[field(items_max = 7)]
    pub(super) days_of_week: Option<Option<Vec<u32>>>,
    /// The earliest time of the day at which programmes begin, as `HH:MM` or `HH:MM:SS`.
    #[field(blank, example = "20:00")]
    pub(super) start_after: Option<Option<String>>,
    /// The time of the day before which programmes begin. If it is not after `start_after`, it is on the next day.
    #[field(blank, example = "23:00")]
    pub(super) start_before: Option<Option<String>>,
    /// Time zone of days and times, such as `Europe/Berlin`; without it, that of the settings.
    #[field(blank, example = "Europe/Berlin")]
    pub(super) time_zone: Option<Option<String>>,
    /// The first season that is recorded. Programmes without a season are left out then.
    #[field(at_least = 0, at_most = SEASON_MAX as i64)]
    pub(super) season_from: Option<Option<u32>>,
    /// The shortest programme that is recorded, in minutes.
    #[field(at_least = 0, at_most = LENGTH_MINUTES_MAX as i64)]
    pub(super) min_minutes: Option<Option<u32>>,
    /// The longest programme that is recorded, in minutes.
    #[field(at_least = 0, at_most = LENGTH_MINUTES_MAX as i64)]
    pub(super) max_minutes: Option<Option<u32>>,
    /// The quality of the channel that is preferred; the default is `any`. Others are recorded if no showing has it.
    pub(super) quality: Option<Named<QualityWish>>,
    /// Whether films and episodes that the library has are left out: those with the title and the year, or with the title, the
    /// season and the number.
    pub(super) skip_library: Option<bool>,
    /// How many recordings stay; 0 keeps all.
    #[field(at_least = 0, at_most = KEEP_MAX as i64)]
    pub(super) keep: Option<u32>,
    /// How many bytes its recordings have together; older ones are deleted. 0 means no limit.
    #[field(at_least = 0, at_most = QUOTA_BYTES_MAX as i64)]
    pub(super) quota_bytes: Option<u64>,
    /// Seconds before the start, or left out if negative; without it, those of the settings.
    #[field(at_least = PADDING_SECONDS_MIN, at_most = PADDING_SECONDS_MAX as i64)]
    pub(super) padding_before: Option<Option<i32>>,
    /// Seconds after the end, or left out if negative; without it, those of the settings.
    #[field(at_least = PADDING_SECONDS_MIN, at_most = PADDING_SECONDS_MAX as i64)]
    pub(super) padding_after: Option<Option<i32>>,
    /// Priority of its recordings, from 0 to 100.
    #[field(at_least = 0, at_most = PRIORITY_MAX as i64)]
    pub(super) priority: Option<u32>,
    /// Whether the rule makes recordings.
    pub(super) enabled: Option<bool>,
    /// Maximum number of programmes in a preview.
    #[field(at_least = 1, at_most = PREVIEW_MAX as i64)]
    pub(super) limit: Option<u32>,
}
