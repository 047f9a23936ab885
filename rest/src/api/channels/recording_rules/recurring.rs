//! `/api/channels/recurring-rules/`: weekly times of a channel, or all programmes with a title.

use std::sync::Arc;

use domain::ids::{ChannelId, RecordingRuleId, UserId};
use domain::recording::rules::{
    CivilDay, KEEP_MAX, ProgrammeTest, RecordingRule, RuleList, RuleSelection, TextMode, TextTest,
    WeeklyTimes,
};
use domain::recording::{PADDING_SECONDS_MAX, PRIORITY_MAX, PROGRAMME_TEXT_CHARS_MAX, QUOTA_BYTES_MAX};
use domain::user_group::ADD_RECORDING;
use http::StatusCode;
use resource_derive::View;
use route_frame::access::STANDARD;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::recording_rules::remove_scheduled;

use super::rules::{NOT_ALLOWED, apply_new, apply_now, blank, check, may_see, remove, text_test};
use crate::api::channels::recordings::{PADDING_SECONDS_MIN, check_may_schedule, clamp_priority};
use crate::context::RestCall;
use crate::list::{Page, WholeOrPages};
use crate::record::{RecordCall, Render, set, set_fields, view_from};

/// A rule that records weekly times of a channel, or programmes with a title.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RecurringRule", new = NewRecurringRule, edit = RecurringRuleEdit)]
pub(crate) struct RecurringRuleView {
    /// Assigned by the gateway and never reused.
    #[field(example = "3")]
    id: RecordingRuleId,
    /// Name for people.
    #[field(edit, blank, example = "Evening news")]
    name: String,
    /// Whether the rule makes recordings.
    #[field(edit)]
    enabled: bool,
    /// Id of the channel. Required for weekly times; preferred for programmes.
    #[field(edit, example = "1")]
    channel: Option<ChannelId>,
    /// Days of the week from 0, Monday, to 6, Sunday, for a rule of weekly times.
    #[field(edit, items_max = 7)]
    days_of_week: Option<Vec<u32>>,
    /// Start as `HH:MM` or `HH:MM:SS` in the time zone of the rule. A time that a clock change skips is moved by the
    /// change; of a time that it repeats, the first one counts.
    #[field(edit, example = "20:00:00")]
    start_time: Option<String>,
    /// End; one that is not after the start is on the next day.
    #[field(edit, example = "20:15:00")]
    end_time: Option<String>,
    /// First day.
    #[field(edit, example = "2031-05-04")]
    start_date: Option<String>,
    /// Last day.
    #[field(edit, example = "2031-12-31")]
    end_date: Option<String>,
    /// Id of a channel in the guide, for a rule of programmes.
    #[field(edit, blank, example = "news.example")]
    tvg_id: Option<String>,
    /// Title of the programmes, regardless of case.
    #[field(edit, blank, example = "Evening")]
    title: Option<String>,
    /// Records only episodes that the guide marks as new or that were never seen before.
    #[field(edit)]
    record_new_only: bool,
    /// How many recordings stay; older ones are deleted. 0 keeps all.
    #[field(edit, at_least = 0, at_most = KEEP_MAX as i64)]
    keep: u32,
    /// How many bytes its recordings have together; older ones are deleted. 0 means no limit.
    #[field(edit, at_least = 0, at_most = QUOTA_BYTES_MAX as i64)]
    quota_bytes: u64,
    /// Time zone of the weekly times, such as `Europe/Berlin`; `null` for that of the settings.
    #[field(edit, blank, example = "Europe/Berlin")]
    time_zone: Option<String>,
    /// Seconds that are recorded before the start, or left out if negative; `null` for those of the settings.
    #[field(edit, at_least = PADDING_SECONDS_MIN, at_most = PADDING_SECONDS_MAX as i64)]
    padding_before: Option<i32>,
    /// Seconds that are recorded after the end, or left out if negative; `null` for those of the settings.
    #[field(edit, at_least = PADDING_SECONDS_MIN, at_most = PADDING_SECONDS_MAX as i64)]
    padding_after: Option<i32>,
    /// Priority of its recordings, from 0 to 100.
    #[field(edit, at_least = 0, at_most = PRIORITY_MAX as i64, example = "50")]
    priority: u32,
    /// Id of the user who made the rule.
    owner: Option<UserId>,
    /// Time of creation.
    created_at: Time,
    /// Time of the last change.
    updated_at: Time,
}

const LIST: &str = "/api/channels/recurring-rules/";
const ONE: &str = "/api/channels/recurring-rules/{id}/";

pub(super) fn routes() -> Vec<Route> {
    let changes = [
        Route::post(LIST, STANDARD, "Creates a recurring rule.", create),
        Route::put(ONE, STANDARD, "Updates a recurring rule. Fields may be left out.", update),
        Route::patch(ONE, STANDARD, "Partially updates a recurring rule.", update),
        Route::delete(ONE, STANDARD, "Deletes a recurring rule and its scheduled recordings.", delete),
    ];
    let reads = [
        Route::get(LIST, STANDARD, "Lists recurring rules. Non-admins find their own.", list),
        Route::get(ONE, STANDARD, "Returns a recurring rule.", retrieve),
    ];
    let changes = changes.map(|it| it.refuses(StatusCode::FORBIDDEN, NOT_ALLOWED));
    reads.into_iter().chain(changes).map(|it| it.also_with(ADD_RECORDING)).collect()
}

impl Render for RecordingRule {
    type View = RecurringRuleView;
    type Lookup = ();

    fn view(&self, (): &()) -> RecurringRuleView {
        let weekly = match &self.selection {
            RuleSelection::Weekly(times) => Some(times),
            RuleSelection::Programmes(_) => None,
        };
        let test = match &self.selection {
            RuleSelection::Weekly(_) => None,
            RuleSelection::Programmes(test) => Some(test),
        };
        view_from!(RecurringRuleView from self {
            id, name, enabled, channel, keep, quota_bytes, padding_before, padding_after, owner, created_at,
            updated_at;
            days_of_week: weekly.map(|it| it.days.iter().map(|it| u32::from(*it)).collect()),
            start_time: weekly.map(|it| clock(it.start)),
            end_time: weekly.map(|it| clock(it.end)),
            start_date: weekly.and_then(|it| it.from).map(|it| it.to_string()),
            end_date: weekly.and_then(|it| it.until).map(|it| it.to_string()),
            tvg_id: test.and_then(|it| it.tvg_id.clone()),
            title: test.and_then(|it| it.title.as_ref()).map(|it| it.text.clone()),
            record_new_only: test.is_some_and(|it| it.only_new),
            time_zone: weekly.and_then(|it| it.zone.clone()),
            priority: u32::from(self.priority),
        })
    }
}

/// Formats seconds since midnight as `HH:MM:SS`.
pub(super) fn clock(seconds: u32) -> String {
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Reads `HH:MM` or `HH:MM:SS`.
pub(super) fn seconds_of(text: &str) -> Result<u32, &'static str> {
    let time = text.trim().parse::<jiff::civil::Time>().ok().filter(|_| text.contains(':'));
    let time = time.ok_or("Time has wrong format. Use HH:MM or HH:MM:SS.")?;
    let part = |it: i8| u32::try_from(it).unwrap_or_default();
    Ok(part(time.hour()) * 3600 + part(time.minute()) * 60 + part(time.second()))
}

async fn list(call: Call, paging: WholeOrPages) -> Result<Page<RecurringRuleView>, Refusal> {
    let rules = call.rest().models.recording_rules.load();
    let may_see = may_see(&call, RuleList::Recurring)?;
    let found: Vec<_> = rules.iter().filter(|it| may_see(it)).collect();
    paging.render(&call, &found)
}

/// Returns the rule of the path, if the caller may see it.
fn seen(call: &Call) -> Result<Arc<RecordingRule>, Refusal> {
    let rule = call.rest().models.recording_rules.load().get(call.id()?).cloned();
    let may_see = may_see(call, RuleList::Recurring)?;
    rule.filter(|it| may_see(it)).ok_or_else(Refusal::unknown::<RecordingRule>)
}

async fn retrieve(call: Call) -> Result<RecurringRuleView, Refusal> {
    call.render(&*seen(&call)?)
}

async fn create(call: Call, new: NewRecurringRule) -> Result<Created<RecurringRuleView>, Refusal> {
    check_may_schedule(&call)?;
    let mut errors = FieldErrors::default();
    let is_of_programmes =
        new.title.iter().flatten().next().is_some() && new.start_time.iter().flatten().next().is_none();
    let has_id_only = new.tvg_id.iter().flatten().any(|it| !it.trim().is_empty())
        && [&new.start_time, &new.end_time].into_iter().all(|it| it.iter().flatten().next().is_none());
    if !is_of_programmes && has_id_only {
        return Err(Refusal::field("title", "This field is required."));
    }
    if !is_of_programmes {
        for (field, is_missing) in [
            ("start_time", new.start_time.iter().flatten().next().is_none()),
            ("end_time", new.end_time.iter().flatten().next().is_none()),
            ("channel", new.channel.iter().flatten().next().is_none()),
        ] {
            if is_missing {
                errors.add(field, "This field is required.");
            }
        }
        errors.or(())?;
        errors = FieldErrors::default();
    }
    let selection = match is_of_programmes {
        true => RuleSelection::Programmes(ProgrammeTest::default()),
        false => {
            let times =
                WeeklyTimes { days: Vec::new(), start: 0, end: 0, from: None, until: None, zone: None };
            RuleSelection::Weekly(times)
        }
    };
    let mut rule = blank(&call, RuleList::Recurring, selection)?;
    let edit = RecurringRuleEdit {
        name: new.name,
        enabled: new.enabled,
        channel: new.channel,
        days_of_week: new.days_of_week,
        start_time: new.start_time,
        end_time: new.end_time,
        start_date: new.start_date,
        end_date: new.end_date,
        tvg_id: new.tvg_id,
        title: new.title,
        record_new_only: new.record_new_only,
        keep: new.keep,
        quota_bytes: new.quota_bytes,
        time_zone: new.time_zone,
        padding_before: new.padding_before,
        padding_after: new.padding_after,
        priority: new.priority,
    };
    apply_edit(&mut rule, edit, &mut errors);
    check(&call, &rule, &mut errors);
    errors.or(())?;
    let made = call.create(move |_, id| Ok(RecordingRule { id: RecordingRuleId(id), ..rule })).await?;
    apply_new(&call, made.0.id).await?;
    Ok(made)
}

/// Refuses the fields that a rule of this kind does not have. Clients send whole records back, so empty ones are accepted.
fn refuse_other_kind(rule: &RecordingRule, edit: &RecurringRuleEdit, errors: &mut FieldErrors) {
    let has = |it: &Option<Option<String>>| it.iter().flatten().any(|it| !it.trim().is_empty());
    let days = edit.days_of_week.iter().flatten().any(|it| !it.is_empty());
    let (fields, reason): (&[_], _) = match &rule.selection {
        RuleSelection::Weekly(_) => (
            &[
                ("title", has(&edit.title)),
                ("tvg_id", has(&edit.tvg_id)),
                ("record_new_only", edit.record_new_only == Some(true)),
            ],
            "A rule of weekly times has no programmes.",
        ),
        RuleSelection::Programmes(_) => (
            &[
                ("days_of_week", days),
                ("start_time", has(&edit.start_time)),
                ("end_time", has(&edit.end_time)),
                ("start_date", has(&edit.start_date)),
                ("end_date", has(&edit.end_date)),
                ("time_zone", has(&edit.time_zone)),
            ],
            "A rule of programmes has no weekly times.",
        ),
    };
    for (field, is_sent) in fields {
        if *is_sent {
            errors.add(*field, reason);
        }
    }
}

fn apply_edit(rule: &mut RecordingRule, edit: RecurringRuleEdit, errors: &mut FieldErrors) {
    set_fields!(rule from edit: name, enabled, channel, keep, quota_bytes, padding_before, padding_after);
    set(&mut rule.priority, edit.priority.map(clamp_priority));
    match &mut rule.selection {
        RuleSelection::Weekly(times) => {
            let name = |it: Option<String>| it.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
            set(&mut times.zone, edit.time_zone.map(name));
            if let Some(days) = edit.days_of_week {
                let days = days.unwrap_or_default();
                times.days = days.into_iter().map(|it| u8::try_from(it).unwrap_or(u8::MAX)).collect();
                times.days.sort_unstable();
                times.days.dedup();
            }
            for (field, value, sent) in [
                ("start_time", &mut times.start, edit.start_time),
                ("end_time", &mut times.end, edit.end_time),
            ] {
                match sent.flatten().map(|it| seconds_of(&it)) {
                    Some(Ok(seconds)) => *value = seconds,
                    Some(Err(reason)) => errors.add(field, reason),
                    None => {}
                }
            }
            for (field, value, sent) in [
                ("start_date", &mut times.from, edit.start_date),
                ("end_date", &mut times.until, edit.end_date),
            ] {
                match sent.map(|it| it.map(|it| it.parse::<CivilDay>()).transpose()) {
                    Some(Ok(day)) => *value = day,
                    Some(Err(_)) => errors.add(field, "Date has wrong format. Use YYYY-MM-DD."),
                    None => {}
                }
            }
        }
        RuleSelection::Programmes(test) => {
            let text = |it: Option<String>| it.map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
            set(&mut test.tvg_id, edit.tvg_id.map(text));
            let exact = |it: Option<String>| text_test(it, TextMode::Exact);
            set::<Option<TextTest>>(&mut test.title, edit.title.map(exact));
            set(&mut test.only_new, edit.record_new_only);
        }
    }
    if rule.name.chars().count() > PROGRAMME_TEXT_CHARS_MAX {
        rule.name = rule.name.chars().take(PROGRAMME_TEXT_CHARS_MAX).collect();
    }
}

async fn update(call: Call, edit: RecurringRuleEdit) -> Result<RecurringRuleView, Refusal> {
    check_may_schedule(&call)?;
    let before = seen(&call)?;
    let (mut rule, mut errors) = (RecordingRule::clone(&before), FieldErrors::default());
    refuse_other_kind(&rule, &edit, &mut errors);
    apply_edit(&mut rule, edit, &mut errors);
    check(&call, &rule, &mut errors);
    errors.or(())?;
    let context = Arc::clone(call.rest());
    let updated = call.update(move |write, record: &mut RecordingRule| {
        if *record != *before {
            return Err(Refusal::status(StatusCode::CONFLICT)
                .with_detail("Somebody else changed the rule. Try again."));
        }
        if rule != *before {
            rule.updated_at = actors::now_ms();
            *record = rule;
            remove_scheduled(write, &context.models, record.id, true)?;
        }
        Ok(())
    });
    let updated = updated.await?;
    apply_now(&call, updated.id).await;
    Ok(updated)
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    check_may_schedule(&call)?;
    let (id, context) = (seen(&call)?.id, Arc::clone(call.rest()));
    call.write(move |write| remove(write, &context, id)).await?;
    Ok(NoContent)
}
