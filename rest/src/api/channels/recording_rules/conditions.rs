//! The further conditions of a series rule, as clients send them.

use domain::ids::{ChannelId, GroupId};
use domain::recording::rules::{DayHours, NewBy, ProgrammeConditions, ProgrammeTest};
use route_frame::call::Call;
use server::field_errors::FieldErrors;

use super::recurring::seconds_of;
use super::series_rule::{EpisodeMode, NewSeriesRule};
use crate::api::channels::recordings::channel_of;
use crate::api::channels::values::no_such;
use crate::context::RestCall;

/// Returns the episodes that a rule records, as one choice.
pub(super) fn mode_of(test: &ProgrammeTest) -> EpisodeMode {
    match (test.only_new, test.conditions.new_by) {
        (false, _) => EpisodeMode::All,
        (true, NewBy::Either) => EpisodeMode::New,
        (true, NewBy::Mark) => EpisodeMode::MarkedNew,
        (true, NewBy::Identity) => EpisodeMode::Unseen,
    }
}

/// Takes the conditions out of a body. Channels and groups that the caller does not see are refused by their field; the values
/// themselves are checked with the rule.
pub(super) fn conditions_of(
    call: &Call,
    new: &mut NewSeriesRule,
    errors: &mut FieldErrors,
) -> ProgrammeConditions {
    let days = new.days_of_week.take().flatten().unwrap_or_default();
    let mut days: Vec<_> = days.into_iter().map(|it| u8::try_from(it).unwrap_or(u8::MAX)).collect();
    days.sort_unstable();
    days.dedup();
    let zone = new.time_zone.take().flatten().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    ProgrammeConditions {
        channels: channels_of(call, new.channel_ids.take().flatten().unwrap_or_default(), errors),
        groups: groups_of(call, new.channel_group_ids.take().flatten().unwrap_or_default(), errors),
        days,
        hours: hours_of(new, errors),
        zone,
        season_from: new.season_from.flatten(),
        minutes_min: new.min_minutes.flatten(),
        minutes_max: new.max_minutes.flatten(),
        new_by: match new.mode.map(|it| it.0) {
            Some(EpisodeMode::MarkedNew) => NewBy::Mark,
            Some(EpisodeMode::Unseen) => NewBy::Identity,
            Some(EpisodeMode::All | EpisodeMode::New) | None => NewBy::Either,
        },
        quality: new.quality.map(|it| it.0).unwrap_or_default(),
        skip_library: new.skip_library.unwrap_or(false),
    }
}

fn channels_of(call: &Call, mut ids: Vec<ChannelId>, errors: &mut FieldErrors) -> Vec<ChannelId> {
    ids.sort_unstable();
    ids.dedup();
    if let Some(reason) = ids.iter().find_map(|it| channel_of(call, *it).err()) {
        errors.add("channel_ids", reason);
    }
    ids
}

fn groups_of(call: &Call, mut ids: Vec<GroupId>, errors: &mut FieldErrors) -> Vec<GroupId> {
    ids.sort_unstable();
    ids.dedup();
    let groups = call.rest().models.groups.load();
    if let Some(unknown) = ids.iter().find(|it| groups.get(it.0).is_none()) {
        errors.add("channel_group_ids", no_such(*unknown));
    }
    ids
}

/// Returns the time of the day. One end alone leaves the other one at midnight.
fn hours_of(new: &mut NewSeriesRule, errors: &mut FieldErrors) -> Option<DayHours> {
    let mut end = |field: &'static str, sent: Option<Option<String>>| {
        let sent = sent.flatten().filter(|it| !it.trim().is_empty())?;
        match seconds_of(&sent) {
            Ok(seconds) => Some(seconds),
            Err(reason) => {
                errors.add(field, reason);
                None
            }
        }
    };
    let (from, until) =
        (end("start_after", new.start_after.take()), end("start_before", new.start_before.take()));
    let is_whole_day = from.is_none_or(|it| it == 0) && until.is_none_or(|it| it == 0);
    let is_same = from.is_some() && until.is_some();
    match is_whole_day && !is_same {
        true => None,
        false => Some(DayHours { from: from.unwrap_or_default(), until: until.unwrap_or_default() }),
    }
}
