//! `/api/channels/series-rules/`: programmes that are recorded by guide id, title and description.

use std::collections::HashMap;
use std::sync::Arc;

use actors::remember_deleted;
use domain::ids::{ChannelId, RecordingRuleId};
use domain::recording::rules::{
    AiringMark, AiringReason, ProgrammeTest, RecordingRule, RuleList, RuleSelection, TextMode, TextTest,
};
use domain::recording::{PROGRAMME_TEXT_CHARS_MAX, Recording};
use domain::user_group::ADD_RECORDING;
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::STANDARD;
use route_frame::call::Call;
use route_frame::route::{NoContent, Route};
use route_frame::value::Time;
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::recording_rules::RuleScope;

use super::conditions::{conditions_of, mode_of};
use super::deleted::draft_of;
use super::recurring::clock;
use super::rules::{NOT_ALLOWED, apply_new, apply_now, blank, check, may_see, remove, text_test};
use super::series_rule::{EpisodeMode, NewSeriesRule, SeriesRuleView};
use crate::api::channels::recordings::{check_may_schedule, clamp_priority};
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::record::view_from;

/// Default number of programmes in a preview.
const PREVIEW_DEFAULT: u32 = 50;
/// Maximum number of guide ids in one request.
const GUIDE_IDS_MAX: usize = 1_000;

choice!(
    /// The recordings that are removed together.
    enum RemovalScope {
        Title = "title",
        Channel = "channel",
    }
);

/// Selects rules to apply.
#[derive(Debug, Body)]
pub(crate) struct RuleSelectionBody {
    /// Id of the channel in the guide; without it, all rules.
    #[field(blank)]
    tvg_id: Option<Option<String>>,
}

/// Selects scheduled recordings of rules.
#[derive(Debug, Body)]
pub(crate) struct SeriesRemoval {
    /// Ids of channels in the guide.
    #[field(items_max = GUIDE_IDS_MAX)]
    tvg_ids: Option<Vec<String>>,
    /// The same for one channel.
    tvg_id: Option<String>,
    /// Title of the programmes.
    title: Option<Option<String>>,
    /// `title` removes those with the title, `channel` all of the channel.
    scope: Option<Named<RemovalScope>>,
}

/// Selects the rule to delete.
#[derive(Debug, Query)]
struct RuleQuery {
    /// Id of the channel in the guide.
    tvg_id: Option<String>,
    /// Title of the rule.
    title: Option<String>,
}

/// Rules that record programmes.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SeriesRulesView {
    /// The rules; non-admins find their own.
    rules: Vec<SeriesRuleView>,
}

/// The result of a change of rules.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ChangedSeriesRulesView {
    /// Always true.
    success: bool,
    /// The rules after the change.
    rules: Vec<SeriesRuleView>,
    /// Scheduled recordings that were removed with their rules.
    removed: usize,
}

/// The result of applying rules.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct EvaluatedRulesView {
    /// Always true.
    success: bool,
    /// Recordings that were scheduled.
    scheduled: usize,
    /// The rules that were applied.
    details: Vec<EvaluatedRuleView>,
}

/// The result of one rule.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct EvaluatedRuleView {
    /// Id of the channel in the guide.
    tvg_id: String,
    /// Title of the rule.
    title: String,
    /// `ok`, or `disabled`.
    status: &'static str,
    /// Recordings that it scheduled.
    created: usize,
}

/// The coming programmes that a rule selects, and what follows from them.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RulePreviewView {
    /// The first programmes by their start.
    matches: Vec<MatchedProgramView>,
    /// Number of programmes.
    total: usize,
    /// Maximum number of programmes in `matches`.
    limit: u32,
    /// Whether the guide has a channel with the id.
    epg_found: bool,
    /// Whether so many programmes were found that some were left out.
    warn: bool,
}

/// A programme that a rule selects.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct MatchedProgramView {
    /// Id of the programme.
    id: String,
    /// Id of the channel in the guide.
    tvg_id: String,
    /// Title.
    title: String,
    /// Subtitle.
    sub_title: Option<String>,
    /// Description.
    description: Option<String>,
    /// Start.
    start_time: Time,
    /// End.
    end_time: Time,
    /// Season.
    season: Option<u32>,
    /// Episode.
    episode: Option<u32>,
    /// Whether the guide marks it as new.
    is_new: bool,
    /// The channel on which it is recorded, or would be.
    channel_id: Option<ChannelId>,
    /// Name of this channel.
    channel_name: Option<String>,
    /// The result if the rule is written now: `scheduled` has a recording or gets one, `alternative` gets one if that of
    /// another showing of the episode fails, the episode of `recorded` has been recorded, `not_new` is an old episode, and
    /// `skipped` is not recorded for the reason that is given.
    mark: Named<AiringMark>,
    /// The reason of the mark, if there is one: the recording is `running`, was made by an `other_rule` or `by_hand`, or was
    /// `stopped` or `deleted` by the user; the showing is a `repeat`, its episode was `shown_before` the rule was made, is
    /// `not_marked` as new, or is `in_library`; it has `begun`, or it is `too_long`, or `too_short` for negative padding; the rule is `rule_off`, its owner may record `no_channel` of the showing, or there
    /// are `too_many` recordings.
    reason: Option<Named<AiringReason>>,
}

/// The number of recordings that were removed.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RemovedSeriesView {
    /// Always true.
    success: bool,
    /// Scheduled recordings that were removed.
    removed: usize,
}

const LIST: &str = "/api/channels/series-rules/";
const ONE: &str = "/api/channels/series-rules/{key}/";
const PREVIEW: &str = "/api/channels/series-rules/preview/";
const EVALUATE: &str = "/api/channels/series-rules/evaluate/";
const BULK_REMOVE: &str = "/api/channels/series-rules/bulk-remove/";

pub(super) fn routes() -> Vec<Route> {
    let changes = [
        Route::post(
            LIST,
            STANDARD,
            "Creates a series rule, or replaces the one with its guide id and title.",
            create,
        ),
        Route::delete(LIST, STANDARD, "Deletes series rules by guide id and title.", delete),
        Route::delete(
            ONE,
            STANDARD,
            "Deletes the series rules of a guide id, whose slashes may be encoded.",
            delete_one,
        )
        .with_rest(),
        Route::post(
            PREVIEW,
            STANDARD,
            "Lists the programmes that a series rule would select, and which it would record.",
            show_preview,
        )
        .that_reads(),
        Route::post(EVALUATE, STANDARD, "Creates the recordings that series rules want now.", evaluate_now),
        Route::post(BULK_REMOVE, STANDARD, "Removes the scheduled recordings of series.", bulk_remove),
    ];
    let reads = [Route::get(LIST, STANDARD, "Lists series rules. Non-admins find their own.", list)];
    let changes = changes.map(|it| it.refuses(StatusCode::FORBIDDEN, NOT_ALLOWED));
    reads.into_iter().chain(changes).map(|it| it.also_with(ADD_RECORDING)).collect()
}

fn test_of(rule: &RecordingRule) -> Option<&ProgrammeTest> {
    match &rule.selection {
        RuleSelection::Programmes(test) => Some(test),
        RuleSelection::Weekly(_) => None,
    }
}

fn view(rule: &RecordingRule) -> Option<SeriesRuleView> {
    let test = test_of(rule)?;
    let text = |it: &Option<TextTest>| it.as_ref().map(|it| it.text.clone()).unwrap_or_default();
    let conditions = &test.conditions;
    let mode = |it: &Option<TextTest>, default| Named(it.as_ref().map_or(default, |it| it.mode));
    Some(view_from!(SeriesRuleView from rule {
        id, keep, quota_bytes, padding_before, padding_after, enabled;
        tvg_id: test.tvg_id.clone().unwrap_or_default(),
        mode: Named(mode_of(test)),
        channel_ids: conditions.channels.clone(),
        channel_group_ids: conditions.groups.clone(),
        days_of_week: conditions.days.iter().map(|it| u32::from(*it)).collect(),
        start_after: conditions.hours.map(|it| clock(it.from)),
        start_before: conditions.hours.map(|it| clock(it.until)),
        time_zone: conditions.zone.clone(),
        season_from: conditions.season_from,
        min_minutes: conditions.minutes_min,
        max_minutes: conditions.minutes_max,
        quality: Named(conditions.quality),
        skip_library: conditions.skip_library,
        title: text(&test.title),
        title_mode: mode(&test.title, TextMode::Exact),
        description: text(&test.description),
        description_mode: mode(&test.description, TextMode::Contains),
        channel_id: rule.channel,
        priority: u32::from(rule.priority),
    }))
}

fn seen(call: &Call) -> Result<Vec<Arc<RecordingRule>>, Refusal> {
    let may_see = may_see(call, RuleList::Series)?;
    Ok(call.rest().models.recording_rules.load().iter().filter(|it| may_see(it)).cloned().collect())
}

fn views(call: &Call) -> Result<Vec<SeriesRuleView>, Refusal> {
    Ok(seen(call)?.iter().filter_map(|it| view(it)).collect())
}

async fn list(call: Call) -> Result<SeriesRulesView, Refusal> {
    Ok(SeriesRulesView { rules: views(&call)? })
}

/// Returns the rule of a body. Checked.
fn rule_of(
    call: &Call,
    mut new: NewSeriesRule,
    replaced: Option<&RecordingRule>,
) -> Result<RecordingRule, Refusal> {
    let mut errors = FieldErrors::default();
    let text =
        |it: Option<Option<String>>| it.flatten().map(|it| it.trim().to_owned()).filter(|it| !it.is_empty());
    let description_mode = new.description_mode.map_or(TextMode::Contains, |it| it.0);
    if description_mode == TextMode::Exact {
        errors.add(
            "description_mode",
            "\"exact\" is not a valid choice. Choose one of: contains, search, regex.",
        );
    }
    let conditions = conditions_of(call, &mut new, &mut errors);
    let test = ProgrammeTest {
        tvg_id: text(new.tvg_id),
        title: text_test(text(new.title), new.title_mode.map_or(TextMode::Exact, |it| it.0)),
        description: text_test(text(new.description), description_mode),
        only_new: new.mode.is_some_and(|it| it.0 != EpisodeMode::All),
        conditions,
    };
    let mut rule = blank(call, RuleList::Series, RuleSelection::Programmes(test))?;
    if let Some(it) = replaced {
        (rule.id, rule.owner, rule.created_at) = (it.id, it.owner, it.created_at);
    }
    rule.channel = new.channel_id.flatten();
    rule.keep = new.keep.unwrap_or_default();
    rule.quota_bytes = new.quota_bytes.unwrap_or_default();
    rule.padding_before = new.padding_before.flatten();
    rule.padding_after = new.padding_after.flatten();
    rule.priority = new.priority.map_or(rule.priority, clamp_priority);
    rule.enabled = new.enabled.unwrap_or(true);
    check(call, &rule, &mut errors);
    errors.or(())?;
    Ok(rule)
}

/// Returns whether a rule has this guide id and, if one is asked for, this title.
fn is_named(rule: &RecordingRule, tvg_id: &str, title: Option<&str>) -> bool {
    let Some(test) = test_of(rule) else { return false };
    let own = test.title.as_ref().map_or("", |it| &it.text);
    let is_same = |one: &str, other: &str| one.trim().to_lowercase() == other.trim().to_lowercase();
    is_same(test.tvg_id.as_deref().unwrap_or_default(), tvg_id) && title.is_none_or(|it| is_same(own, it))
}

/// Returns the rule that a new one replaces.
fn replaced_by(call: &Call, new: &NewSeriesRule) -> Result<Option<Arc<RecordingRule>>, Refusal> {
    let text = |it: &Option<Option<String>>| it.clone().flatten().unwrap_or_default();
    let (tvg_id, title, owner) = (text(&new.tvg_id), text(&new.title), call.owner()?);
    let is_replaced = |it: &&Arc<RecordingRule>| it.owner == owner && is_named(it, &tvg_id, Some(&title));
    Ok(seen(call)?.iter().find(is_replaced).cloned())
}

async fn create(call: Call, new: NewSeriesRule) -> Result<ChangedSeriesRulesView, Refusal> {
    check_may_schedule(&call)?;
    let replaced = replaced_by(&call, &new)?;
    let rule = rule_of(&call, new, replaced.as_deref())?;
    let context = Arc::clone(call.rest());
    let written = call.write(move |write| {
        let (mut rule, mut n_removed) = (rule, 0);
        let is_new = rule.id.0 == 0;
        if is_new {
            rule.id = RecordingRuleId(write.next_id::<RecordingRule>()?);
        } else {
            n_removed = services::recording_rules::remove_scheduled(write, &context.models, rule.id, true)?;
        }
        write.put(&rule)?;
        Ok((rule.id, is_new, n_removed))
    });
    let (id, is_new, removed) = written.await?;
    if is_new {
        apply_new(&call, id).await?;
    } else {
        apply_now(&call, id).await;
    }
    Ok(ChangedSeriesRulesView { success: true, rules: views(&call)?, removed })
}

async fn remove_all(call: &Call, ids: Vec<RecordingRuleId>) -> Result<usize, Refusal> {
    let context = Arc::clone(call.rest());
    call.write(move |write| {
        let mut n_removed = 0;
        for id in ids {
            n_removed += remove(write, &context, id)?;
        }
        Ok(n_removed)
    })
    .await
}

async fn delete(call: Call, query: RuleQuery) -> Result<ChangedSeriesRulesView, Refusal> {
    check_may_schedule(&call)?;
    if query.tvg_id.is_none() && query.title.is_none() {
        return Err(Refusal::field("tvg_id", "This field is required."));
    }
    let tvg_id = query.tvg_id.unwrap_or_default();
    let rules = seen(&call)?;
    let named = rules.iter().filter(|it| is_named(it, &tvg_id, query.title.as_deref()));
    let removed = remove_all(&call, named.map(|it| it.id).collect()).await?;
    Ok(ChangedSeriesRulesView { success: true, rules: views(&call)?, removed })
}

async fn delete_one(call: Call) -> Result<NoContent, Refusal> {
    check_may_schedule(&call)?;
    let tvg_id = call.text("key")?.to_owned();
    let rules = seen(&call)?;
    let ids: Vec<_> = rules.iter().filter(|it| is_named(it, &tvg_id, None)).map(|it| it.id).collect();
    if ids.is_empty() {
        return Err(Refusal::unknown::<RecordingRule>());
    }
    remove_all(&call, ids).await?;
    Ok(NoContent)
}

async fn show_preview(call: Call, new: NewSeriesRule) -> Result<RulePreviewView, Refusal> {
    check_may_schedule(&call)?;
    let limit = new.limit.unwrap_or(PREVIEW_DEFAULT);
    let replaced = replaced_by(&call, &new)?;
    let (rule, memory) = draft_of(call.rest(), rule_of(&call, new, replaced.as_deref())?);
    let (context, is_listed) = (Arc::clone(call.rest()), call.listed());
    let found = services::guide::read_guide(move || {
        Ok(context.recordings.recording_rules.preview(rule, memory, is_listed))
    })
    .await?;
    let (total, channels) = (found.airings.len(), call.rest().models.channels.load());
    let matches = found.airings.into_iter().take(limit as usize).map(|marked| {
        let it = &marked.airing;
        let programme = it.programme.clone().unwrap_or_default();
        let channel = marked.channel.and_then(|it| channels.get(it.0));
        MatchedProgramView {
            id: programme.id.unwrap_or_default(),
            tvg_id: it.guide_key.clone(),
            title: programme.title,
            sub_title: programme.sub_title,
            description: programme.description,
            start_time: Time(it.start),
            end_time: Time(it.end),
            season: programme.season,
            episode: programme.episode,
            is_new: it.is_new,
            channel_id: channel.map(|it| it.id),
            channel_name: channel.map(|it| it.name.clone()),
            mark: Named(marked.mark),
            reason: marked.reason.map(Named),
        }
    });
    let (epg_found, warn) = (found.has_guide, found.is_too_much);
    Ok(RulePreviewView { matches: matches.collect(), total, limit, epg_found, warn })
}

async fn evaluate_now(call: Call, selection: RuleSelectionBody) -> Result<EvaluatedRulesView, Refusal> {
    check_may_schedule(&call)?;
    let mut rules = seen(&call)?;
    if let Some(tvg_id) = selection.tvg_id.flatten().filter(|it| !it.trim().is_empty()) {
        rules.retain(|it| is_named(it, &tvg_id, None));
    }
    let ids = rules.iter().map(|it| it.id).collect();
    let done = call.rest().recordings.recording_rules.evaluate(RuleScope::Some(ids)).await?;
    let details = rules.iter().filter_map(|rule| {
        let view = view(rule)?;
        Some(EvaluatedRuleView {
            tvg_id: view.tvg_id,
            title: view.title,
            status: if rule.enabled { "ok" } else { "disabled" },
            created: done.created.get(&rule.id.0).copied().unwrap_or_default(),
        })
    });
    let details: Vec<_> = details.collect();
    Ok(EvaluatedRulesView { success: true, scheduled: details.iter().map(|it| it.created).sum(), details })
}

async fn bulk_remove(call: Call, removal: SeriesRemoval) -> Result<RemovedSeriesView, Refusal> {
    check_may_schedule(&call)?;
    let ids = removal.tvg_ids.unwrap_or_default().into_iter().chain(removal.tvg_id);
    let ids: Vec<_> = ids.map(|it| it.trim().to_lowercase()).collect();
    if ids.is_empty() {
        return Err(Refusal::field("tvg_ids", "This field is required."));
    }
    let title = removal.title.flatten().filter(|it| it.chars().count() <= PROGRAMME_TEXT_CHARS_MAX);
    let title = title
        .filter(|_| removal.scope.is_none_or(|it| it.0 == RemovalScope::Title))
        .map(|it| it.to_lowercase());
    let rules: HashMap<_, _> = seen(&call)?.into_iter().map(|it| (it.id, it)).collect();
    let channels = call.rest().models.channels.load();
    let is_listed = |it: &str| ids.contains(&it.trim().to_lowercase());
    // As for rules: an id is that of the guide channel, or the one that the channel itself has.
    let has_id = |it: &Recording| {
        let of_rule = it.rule().and_then(|id| test_of(rules.get(&id)?)?.tvg_id.as_deref());
        let of_channel = channels.get(it.channel.0).and_then(|it| it.tvg_id.as_deref());
        let of_guide = it.followed.as_ref().map(|it| it.guide_key.as_str());
        [of_rule, of_channel, of_guide].into_iter().flatten().any(is_listed)
    };
    let is_wanted = |it: &Recording| {
        let programme = it.programme.as_ref();
        it.rule().is_some_and(|rule| rules.contains_key(&rule))
            && has_id(it)
            && title
                .as_ref()
                .is_none_or(|title| programme.is_some_and(|it| it.title.to_lowercase() == *title))
    };
    let recordings = call.rest().models.recordings.load();
    let wanted: Vec<_> = recordings.iter().filter(|it| is_wanted(it)).map(|it| it.id.0).collect();
    call.write(move |write| {
        let (now, mut removed) = (actors::now_ms(), 0);
        for id in wanted {
            if let Some(recording) = write.get::<Recording>(id)?.filter(|it| !it.has_begun(now)) {
                write.remove::<Recording>(id)?;
                remember_deleted(write, &recording)?;
                removed += 1;
            }
        }
        Ok(RemovedSeriesView { success: true, removed })
    })
    .await
}
