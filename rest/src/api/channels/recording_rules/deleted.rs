//! Rules that were deleted lately, so that one that is made again continues where the old one ended.

use std::collections::VecDeque;
use std::sync::Arc;

use actors::now_ms;
use domain::ids::RecordingRuleId;
use domain::recording::Recording;
use domain::recording::rules::{RecordingRule, RuleMemory};
use parking_lot::Mutex;
use route_frame::call::Call;
use server::reply::Refusal;
use storage::Write;

use crate::context::{RestCall, RestContext};

/// For how long a deleted rule is remembered, in milliseconds.
const AGE_MS_MAX: i64 = 60 * 60 * 1000;
/// Maximum number of rules that are remembered; then the oldest is forgotten.
const RULES_MAX: usize = 1_000;

/// The rules that were deleted lately, oldest first, with what they remembered.
#[derive(Default)]
pub(crate) struct DeletedRules(Mutex<VecDeque<DeletedRule>>);

struct DeletedRule {
    rule: RecordingRule,
    memory: RuleMemory,
    at: i64,
}

impl DeletedRules {
    fn add(&self, deleted: DeletedRule) {
        let mut all = self.0.lock();
        if all.len() >= RULES_MAX {
            all.pop_front();
        }
        all.push_back(deleted);
    }

    /// Takes the rule that was deleted last and selected the same for the same user.
    fn take(&self, rule: &RecordingRule, now: i64) -> Option<DeletedRule> {
        let mut all = self.0.lock();
        all.retain(|it| !it.is_forgotten(now));
        let at = all.iter().rposition(|it| it.selected_like(rule))?;
        all.remove(at)
    }
}

impl DeletedRule {
    fn is_forgotten(&self, now: i64) -> bool {
        now.saturating_sub(self.at) >= AGE_MS_MAX
    }

    fn selected_like(&self, rule: &RecordingRule) -> bool {
        let key = |it: &RecordingRule| (it.owner, it.list, it.channel);
        key(&self.rule) == key(rule) && self.rule.selection == rule.selection
    }
}

/// Returns a rule as it will be once it is written, with its memory: a new one continues a rule that was deleted lately, whose
/// recordings have the id of that one.
pub(super) fn draft_of(
    context: &RestContext,
    mut rule: RecordingRule,
) -> (RecordingRule, Option<Arc<RuleMemory>>) {
    if rule.id.0 != 0 {
        let memory = context.models.rule_memories.load().get(rule.id.0).cloned();
        return (rule, memory);
    }
    let (all, now) = (context.deleted_rules.0.lock(), now_ms());
    let found = all.iter().rfind(|it| !it.is_forgotten(now) && it.selected_like(&rule));
    let memory = found.map(|it| {
        (rule.id, rule.created_at) = (it.rule.id, it.rule.created_at);
        Arc::new(it.memory.clone())
    });
    (rule, memory)
}

/// Removes a rule and what it remembers.
pub(super) fn remove_rule(
    write: &mut Write<'_>,
    context: &RestContext,
    id: RecordingRuleId,
) -> Result<(), Refusal> {
    let rule = write.get::<RecordingRule>(id.0)?;
    let memory = write.get::<RuleMemory>(id.0)?.unwrap_or_else(|| RuleMemory::new(id));
    write.remove::<RecordingRule>(id.0)?;
    write.remove::<RuleMemory>(id.0)?;
    if let Some(rule) = rule {
        context.deleted_rules.add(DeletedRule { rule, memory, at: now_ms() });
    }
    Ok(())
}

/// Lets a rule that was made now continue one that was deleted lately, if there is one: it has the recordings of that one,
/// and makes none that a user has deleted.
pub(super) async fn continue_deleted(call: &Call, id: RecordingRuleId) -> Result<(), Refusal> {
    let rule = call.rest().models.recording_rules.load().get(id.0).cloned();
    let Some(deleted) = rule.and_then(|it| call.rest().deleted_rules.take(&it, now_ms())) else {
        return Ok(());
    };
    let context = Arc::clone(call.rest());
    call.write(move |write| {
        let Some(mut rule) = write.get::<RecordingRule>(id.0)? else { return Ok(()) };
        let old = deleted.rule.id;
        for it in context.models.recordings.load().iter().filter(|it| it.rule() == Some(old)) {
            let Some(mut recording) = write.get::<Recording>(it.id.0)? else { continue };
            if let Some(followed) = recording.followed.as_mut().filter(|it| it.rule == Some(old)) {
                followed.rule = Some(id);
                write.put(&recording)?;
            }
        }
        // What was shown since then is new.
        rule.created_at = deleted.rule.created_at;
        write.put(&rule)?;
        write.put(&RuleMemory { id, ..deleted.memory })?;
        Ok(())
    })
    .await
}
