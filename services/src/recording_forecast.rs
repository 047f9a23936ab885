//! Other showings for recordings that the forecast says will have no connection.

use std::collections::HashMap;
use std::sync::Arc;

use actors::{RecordingPools, now_ms};
use domain::ids::{ChannelId, RecordingId};
use domain::recording::Recording;
use domain::recording::forecast::{Forecast, Prospect};
use domain::recording::rules::{
    Airing, GuideScan, HORIZON_MS, ProgrammeTest, RecordingRule, RuleList, RuleSelection, RuleSet,
    RuleSubject, TextMode, TextTest,
};

use crate::recording_rules::{Permissions, RecordingRules, dvr_settings, new_rule, read_guides};
use crate::rule_places::RulePlaces;

/// Maximum number of lost recordings for which another showing is searched.
const ALTERNATIVES_MAX: usize = 200;

/// Another showing of the episode of a lost recording, which would have a connection.
#[derive(Clone, Debug)]
pub struct Alternative {
    pub channel: ChannelId,
    pub airing: Airing,
}

impl RecordingRules {
    /// Searches another showing for recordings that are lost. Blocks.
    pub fn alternatives(&self, forecast: &Forecast) -> HashMap<RecordingId, Alternative> {
        let (recordings, channels, now) =
            (self.models.recordings.load(), self.models.channels.load(), now_ms());
        let is_lost = |it: &&Arc<Recording>| {
            let is_known =
                it.followed.as_ref().is_some_and(|it| it.episode.is_known() && !it.guide_key.is_empty());
            is_known && matches!(forecast.get(it.id), Some(Prospect::Lost(_)))
        };
        let lost: Vec<_> = recordings.iter().filter(is_lost).take(ALTERNATIVES_MAX).collect();
        if lost.is_empty() {
            return HashMap::new();
        }
        let (places, made_by) = (RulePlaces::new(&self.models), self.models.recording_rules.load());
        let rules: Vec<_> = lost
            .iter()
            .map(|it| {
                let rule = it.rule().and_then(|id| made_by.get(id.0));
                rule_of_showings(it, rule.map(|it| places.resolved(it)))
            })
            .collect();
        let set = RuleSet::new(&rules, []);
        let mut scan = GuideScan::new(&set, []);
        read_guides(
            &self.models,
            &self.guides,
            &mut scan,
            now / 1000,
            now.saturating_add(HORIZON_MS) / 1000,
            None,
        );
        let (airings, _) = scan.finish();
        let (permissions, settings) = (Permissions::new(&self.models), dvr_settings(&self.models));
        let mut pools = RecordingPools::new(&*self.plans);
        let mut found = HashMap::<RecordingId, Alternative>::new();
        for (subject, airing) in airings {
            let RuleSubject::Rule(at) = subject else { continue };
            let (Some(recording), Some(rule)) = (lost.get(at as usize), rules.get(at as usize)) else {
                continue;
            };
            let is_it = recording.followed.as_ref().is_some_and(|it| airing.is_episode(it.episode));
            let is_earlier = found.get(&recording.id).is_none_or(|it| airing.start < it.airing.start);
            if !is_it || !is_earlier || airing.start <= now {
                continue;
            }
            for id in airing.channels.iter() {
                let Some(channel) = channels.get(id.0) else { continue };
                let may_record = permissions.may_record(rule, channel, &settings);
                if may_record && forecast.has_room(*id, airing.start, airing.end, &pools.get(channel.uuid)) {
                    found.insert(recording.id, Alternative { channel: *id, airing: Airing::clone(&airing) });
                    break;
                }
            }
        }
        found
    }
}

/// Returns a rule that selects the showings of a programme. What the rule that made its recording demands holds for all.
fn rule_of_showings(recording: &Recording, made_by: Option<RecordingRule>) -> RecordingRule {
    let title = TextTest { mode: TextMode::Exact, text: recording.title().to_owned() };
    let conditions = made_by.as_ref().and_then(RecordingRule::conditions).cloned().unwrap_or_default();
    let test = ProgrammeTest { title: Some(title), conditions, ..ProgrammeTest::default() };
    let channel = made_by.and_then(|it| it.channel);
    let rule = new_rule(RuleList::Series, RuleSelection::Programmes(test), recording.owner);
    RecordingRule { channel, ..rule }
}
