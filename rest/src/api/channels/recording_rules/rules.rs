//! Checks, applies and removes rules of both lists.

use domain::ids::{ChannelId, RecordingRuleId};
use domain::recording::rules::{
    PATTERN_RULES_MAX, RULES_MAX, RecordingRule, RuleList, RuleSelection, TextMode, TextTest,
};
use route_frame::call::Call;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use services::recording_rules::{RuleScope, new_rule, remove_scheduled};
use storage::Write;
use tracing::warn;

use super::deleted::{continue_deleted, remove_rule};
use crate::api::channels::recordings::{channel_of, dvr_settings};
use crate::context::{RestCall, RestContext};

pub(super) const NOT_ALLOWED: &str = "Non-admins make rules only if the settings allow recordings.";

/// Returns the test by which a rule is shown to the caller: admins find all, others their own while the settings let them
/// schedule recordings.
pub(super) fn may_see(
    call: &Call,
    list: RuleList,
) -> Result<impl Fn(&RecordingRule) -> bool + use<>, Refusal> {
    let (user, is_admin) = (call.identity()?.id, call.is_admin());
    let may_record = dvr_settings(call).permit(call.identity()?);
    Ok(move |it: &RecordingRule| it.list == list && (is_admin || (may_record && it.owner == Some(user))))
}

/// Returns the text test of a field; blank texts are none.
pub(super) fn text_test(text: Option<String>, mode: TextMode) -> Option<TextTest> {
    text.filter(|it| !it.trim().is_empty()).map(|text| TextTest { mode, text })
}

/// Checks a rule that is about to be written, and whether its channel is one that the caller sees.
pub(super) fn check(call: &Call, rule: &RecordingRule, errors: &mut FieldErrors) {
    for wrong in rule.check().err().unwrap_or_default() {
        errors.add(wrong.field, wrong.reason);
    }
    if let Some(Err(reason)) = rule.channel.map(|it: ChannelId| channel_of(call, it)) {
        errors.add("channel", reason);
    }
    let rules = call.rest().models.recording_rules.load();
    let others = || rules.iter().filter(|it| it.id != rule.id);
    if others().count() >= RULES_MAX {
        errors.add("title", "There are too many rules. Delete some first.");
    } else if rule.is_pattern() && others().filter(|it| it.is_pattern()).count() >= PATTERN_RULES_MAX {
        let reason = format!(
            "There are {PATTERN_RULES_MAX} rules that search all programmes already. Use a guide id or an exact title."
        );
        errors.add("title", reason);
    }
}

/// Applies a rule that was made, as the continuation of one that was deleted lately.
pub(super) async fn apply_new(call: &Call, rule: RecordingRuleId) -> Result<(), Refusal> {
    continue_deleted(call, rule).await?;
    apply_now(call, rule).await;
    Ok(())
}

/// Applies a rule that was written. The rule stays if that fails; the next evaluation tries again.
pub(super) async fn apply_now(call: &Call, rule: RecordingRuleId) {
    if let Err(refusal) = call.rest().recordings.recording_rules.evaluate(RuleScope::Some(vec![rule])).await {
        warn!("failed to apply a rule of recordings: {refusal:?}");
    }
}

/// Removes a rule with its scheduled recordings. Returns the number of these.
pub(super) fn remove(
    write: &mut Write<'_>,
    context: &RestContext,
    rule: RecordingRuleId,
) -> Result<usize, Refusal> {
    let n_removed = remove_scheduled(write, &context.models, rule, false)?;
    remove_rule(write, context, rule)?;
    Ok(n_removed)
}

pub(super) fn blank(call: &Call, list: RuleList, selection: RuleSelection) -> Result<RecordingRule, Refusal> {
    Ok(new_rule(list, selection, call.owner()?))
}
