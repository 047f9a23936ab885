//! Applies rules: reads the guides, and makes, moves and removes the recordings that follow.
//!
//! One evaluation runs at a time. It plans on what it has read, and a recording that was changed meanwhile is left to the
//! next one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use actors::{Plans, Recorder, RecordingsFolder, now_ms, remember_deleted, role_changed, view_limits};
use domain::channel::Channel;
use domain::core_settings::DVR_SETTINGS;
use domain::guide::source::GuideSource;
use domain::guide::state::GuideState;
use domain::ids::{ChannelId, RecordingId, RecordingRuleId, UserId};
use domain::lineup::{Lineup, ViewLimits, visible};
use domain::recording::rules::{
    self, Airing, GuideScan, HORIZON_MS, KnownMatches, MarkedAiring, MatchCache, MatchKey, PlanInput,
    PlannedChange, RecordingRule, RuleList, RuleMemory, RuleSelection, RuleSet, RuleSubject, plan,
};
use domain::recording::{DvrSettings, PRIORITY_DEFAULT, RECORDINGS_MAX, Recording};
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::user::{User, UserLevel};
use jiff::tz::TimeZone;
use media::spawn_blocking;
use parking_lot::Mutex;
use server::reply::Refusal;
use storage::{Change, ChangeMessage, Models, Record, Write};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::followed_guides::{FollowedGuides, GuideZones};
use crate::guide::{ChannelGuide, GuideKey, Guides};
use crate::library::Library;
use crate::rule_places::{RulePlaces, quality_of, zone_name};

/// How often rules are applied without any change, because time passes.
const PERIOD: Duration = Duration::from_secs(15 * 60);
/// Changes within this time after the first one are applied together.
const SETTLE_TIME: Duration = Duration::from_secs(2);
/// Collections on which the rights of the owners of rules depend.
const RIGHTS: [&str; 3] = [User::COLLECTION, CoreSetting::COLLECTION, Lineup::COLLECTION];
/// Collections of which each change can move programmes or select others.
const OF_GUIDES: [&str; 4] =
    [GuideState::COLLECTION, GuideSource::COLLECTION, RecordingRule::COLLECTION, Channel::COLLECTION];
/// How far beyond the horizon guides are read, in seconds, so that what was found can be used again while time passes.
const READ_AHEAD_SECONDS: i64 = 24 * 60 * 60;

/// The rules that an evaluation applies.
#[derive(Clone, Debug)]
pub enum RuleScope {
    /// All, and the recordings that users made of programmes of a guide.
    All,
    Some(Vec<RecordingRuleId>),
}

/// The result of an evaluation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EvaluatedRules {
    /// The number of new recordings of each rule, also of those without any.
    pub created: BTreeMap<u32, usize>,
    pub(crate) n_moved: usize,
}

/// The programmes that a rule selects.
pub struct RulePreview {
    /// By their start.
    pub airings: Vec<MarkedAiring>,
    /// Whether a guide channel with its id exists.
    pub has_guide: bool,
    pub is_too_much: bool,
}

/// Facts at the last evaluation that decide whether a change matters.
struct KnownFacts {
    n_over: usize,
    rights: BTreeMap<u32, (bool, ViewLimits)>,
    /// See [`Guides::offsets_version`].
    offsets: u64,
}

/// The rules of recordings, and what they are applied to. Clones share their state.
#[derive(Clone)]
pub struct RecordingRules {
    pub models: Models,
    pub guides: Guides,
    pub plans: Arc<dyn Plans>,
    recorder: Recorder,
    state: Arc<RulesState>,
}

#[derive(Default)]
struct RulesState {
    /// Held while rules are applied, so that no programme gets two recordings.
    evaluation: tokio::sync::Mutex<()>,
    /// Programmes that the last evaluation of all rules has found.
    matches: Mutex<MatchCache>,
    /// The zones of guides at the last evaluation of all rules.
    zones: Mutex<GuideZones>,
}

impl RecordingRules {
    pub fn new(models: Models, guides: Guides, plans: Arc<dyn Plans>, recorder: Recorder) -> Self {
        Self { models, guides, plans, recorder, state: Arc::default() }
    }

    /// Applies the rules after each change of a guide, of a rule, of what users may record or of a finished recording, and
    /// periodically.
    pub async fn follow(self) {
        let mut changes = self.models.store.changes();
        let mut role = self.models.store.log_status();
        loop {
            // Read before, so that what changes meanwhile leads to another evaluation.
            let known = self.known();
            // In a cluster, the node that writes the configuration applies them.
            let writes = self.models.store.writes_shared();
            if writes && let Err(refusal) = self.evaluate(RuleScope::All).await {
                warn!("failed to apply the rules of recordings: {refusal:?}");
            }
            let changed = async {
                loop {
                    match changes.next().await {
                        ChangeMessage::Changed(change) if self.matters(&change, &known).await => return,
                        ChangeMessage::Changed(_) => {}
                        ChangeMessage::Lagged => return,
                        ChangeMessage::Closed => std::future::pending().await,
                    }
                }
            };
            tokio::select! {
                () = changed => {}
                () = role_changed(&mut role, writes) => {}
                () = sleep(PERIOD) => {}
            }
            sleep(SETTLE_TIME).await;
        }
    }

    /// Returns the facts of the moment that a change can leave as they are.
    fn known(&self) -> KnownFacts {
        KnownFacts {
            n_over: n_over(&self.models),
            rights: rights(&self.models),
            offsets: self.guides.offsets_version(),
        }
    }

    /// Returns whether rules have to be applied again after a change.
    async fn matters(&self, change: &Change, known: &KnownFacts) -> bool {
        let touches = |all: &[&str]| all.iter().any(|it| change.ids(it).is_some());
        if touches(&OF_GUIDES)
            || touches(&RIGHTS) && rights(&self.models) != known.rights
            || touches(&[Recording::COLLECTION]) && n_over(&self.models) != known.n_over
        {
            return true;
        }
        // Streams state by how much guides are late. Their index follows the store.
        touches(&[Stream::COLLECTION])
            && (self.models.streams.at(change.version).await.is_err()
                || self.guides.offsets_version() != known.offsets)
    }

    /// Applies rules to the guides as they are now.
    ///
    /// # Errors
    /// The guides or the store cannot be used.
    pub async fn evaluate(&self, scope: RuleScope) -> Result<EvaluatedRules, Refusal> {
        let _one_at_a_time = self.state.evaluation.lock().await;
        let rules = self.clone();
        let planned = spawn_blocking(move || rules.planned(&scope)).await;
        let (changes, mut evaluated) = planned
            .map_err(|error| Refusal::fault(format_args!("apply the rules of recordings: {error}")))?;
        if changes.is_empty() {
            return Ok(evaluated);
        }
        let recorder = self.recorder.clone();
        let written =
            self.models.store.write(move |write| Ok::<_, Refusal>(apply(write, &recorder, changes)?));
        let (done, removed) = written.await?;
        for it in done {
            match it {
                Done::Created(rule) => *evaluated.created.entry(rule.0).or_default() += 1,
                Done::Moved => evaluated.n_moved += 1,
            }
        }
        let n_created: usize = evaluated.created.values().sum();
        info!(
            "rules of recordings: {n_created} scheduled, {} moved, {} removed",
            evaluated.n_moved,
            removed.len()
        );
        for recording in removed {
            self.recorder.remove_file(&recording).await;
        }
        Ok(evaluated)
    }

    /// Reads the guides and plans. Blocks.
    fn planned(&self, scope: &RuleScope) -> (Vec<PlannedChange>, EvaluatedRules) {
        let models = &self.models;
        let (all_rules, recordings) = (models.recording_rules.load(), models.recordings.load());
        let is_wanted = |it: &RecordingRule| match scope {
            RuleScope::All => true,
            RuleScope::Some(ids) => ids.contains(&it.id),
        };
        let rules: Vec<_> = all_rules.iter().filter(|it| is_wanted(it)).cloned().collect();
        let created = rules.iter().map(|it| (it.id.0, 0)).collect();
        let evaluated = EvaluatedRules { created, n_moved: 0 };
        let recordings: Vec<_> = recordings.iter().cloned().collect();
        let by_hand = recordings.iter().map(|it| &**it).filter(|_| matches!(scope, RuleScope::All));
        let by_hand: Vec<_> = by_hand.collect();
        let sources = FollowedGuides::new(&self.models, &self.guides);
        let mut tests =
            RuleSet::tests(rules.iter().map(|it| &**it), by_hand, |it| sources.guide_of(it).map(|it| it.key));
        let places = RulePlaces::new(models);
        for (subject, test) in &mut tests {
            if let RuleSubject::Rule(at) = subject
                && let Some(rule) = rules.get(*at as usize)
            {
                places.resolve(rule, &mut test.conditions);
            }
        }
        let mut cache = matches!(scope, RuleScope::All).then(|| self.state.matches.lock());
        let set = match &mut cache {
            Some(cache) => cache.set_of(tests),
            None => Arc::new(RuleSet::from_tests(tests)),
        };
        let now = now_ms();
        let mut scan = GuideScan::new(&set, recordings.iter().map(|it| &**it));
        if !set.is_empty() {
            let (from, until) = ((now - HORIZON_MS) / 1000, (now + HORIZON_MS) / 1000);
            read_guides(&self.models, &self.guides, &mut scan, from, until, cache.as_deref_mut());
        }
        drop(cache);
        if scan.is_too_much() {
            warn!("rules of recordings select too many programmes of the guide; some are left out");
        }
        let (airings, mut covered) = scan.finish();
        if matches!(scope, RuleScope::All) {
            covered.extend(sources.moved(&recordings, &mut self.state.zones.lock()));
        }
        let memories = models.rule_memories.load();
        let memories: HashMap<_, _> = memories.iter().map(|it| (it.id, Arc::clone(it))).collect();
        let planning = Planning { rules: &rules, recordings: &recordings, memories: &memories, now };
        let mut changes = planning.run(self, (airings, covered), plan);
        let folder = self.recorder.folder();
        if !folder.is_some_and(RecordingsFolder::is_marked) {
            // Their disk is not mounted, so that their files cannot go with them.
            let has_files = |it: &Recording| it.parts().any(|it| folder.is_none_or(|folder| folder.has(it)));
            changes.retain(|it| !matches!(it, PlannedChange::Remove(recording) if has_files(recording)));
        }
        (changes, evaluated)
    }

    /// Returns the coming programmes that a rule selects on the channels that `is_listed` shows, with the result of the plan
    /// that follows if the rule is written now. `memory` is that of the rule. Blocks.
    pub fn preview(
        &self,
        rule: RecordingRule,
        memory: Option<Arc<RuleMemory>>,
        is_listed: impl Fn(&Channel) -> bool,
    ) -> RulePreview {
        let now = now_ms();
        let wanted = match &rule.selection {
            RuleSelection::Programmes(test) => test.tvg_id.as_deref().map(str::to_lowercase),
            RuleSelection::Weekly(_) => None,
        };
        let recordings = self.models.recordings.load();
        let stay = recordings.iter().filter(|it| !goes_with_change(it, rule.id, now, true));
        let recordings: Vec<_> = stay.cloned().collect();
        let memories = memory.into_iter().map(|it| (rule.id, it)).collect();
        // The programmes of one that is off are shown, too.
        let set = RuleSet::new([&RulePlaces::new(&self.models).resolved(&rule)], []);
        let rules = [Arc::new(rule)];
        let mut scan = GuideScan::new(&set, recordings.iter().map(|it| &**it));
        let (from, until) = ((now - HORIZON_MS) / 1000, (now + HORIZON_MS) / 1000);
        let keys = read_guides(&self.models, &self.guides, &mut scan, from, until, None);
        let is_too_much = scan.is_too_much();
        let planning = Planning { rules: &rules, recordings: &recordings, memories: &memories, now };
        let mut airings = planning.run(self, scan.finish(), rules::preview);
        let channels = self.models.channels.load();
        let can_see = |id: &ChannelId| channels.get(id.0).is_some_and(|it| is_listed(it));
        airings.retain(|it| it.airing.channels.iter().any(can_see));
        let has_guide = wanted.map_or(!keys.is_empty(), |it| keys.contains(&it));
        RulePreview { airings, has_guide, is_too_much }
    }
}

/// Returns how many recordings of rules are over, which changes when one ends or is deleted.
fn n_over(models: &Models) -> usize {
    let recordings = models.recordings.load();
    recordings.iter().filter(|it| it.rule().is_some() && it.status.is_final()).count()
}

/// Returns what each owner of a rule may record: whether anything, and what they may see. Users are written at every login,
/// which changes none of this.
fn rights(models: &Models) -> BTreeMap<u32, (bool, ViewLimits)> {
    let dvr = dvr_settings(models);
    let right = |user: &User| (dvr.permit(user), view_limits(models, Some(user)));
    let (rules, users) = (models.recording_rules.load(), models.users.load());
    let owners = rules.iter().filter_map(|it| users.get(it.owner?.0));
    owners.map(|it| (it.id.0, right(it))).collect()
}

/// The showings that a scan found, and the recordings at whose time the guide has a programme.
type Found = (Vec<(RuleSubject, Arc<Airing>)>, HashSet<RecordingId>);

/// The records on which a plan depends.
struct Planning<'a> {
    rules: &'a [Arc<RecordingRule>],
    recordings: &'a [Arc<Recording>],
    memories: &'a HashMap<RecordingRuleId, Arc<RuleMemory>>,
    now: i64,
}

impl Planning<'_> {
    /// Plans with the channels, rights and settings of the moment.
    fn run<T>(
        &self,
        of: &RecordingRules,
        (airings, covered): Found,
        plan: impl FnOnce(PlanInput<'_>) -> T,
    ) -> T {
        let models = &of.models;
        let channels = models.channels.load();
        let (permissions, dvr) = (Permissions::with(models, self.rules), dvr_settings(models));
        let zone = TimeZone::get(&zone_name(models)).unwrap_or(TimeZone::UTC);
        let (library, health) = (Library::new(models), of.plans.health());
        plan(PlanInput {
            rules: self.rules,
            recordings: self.recordings,
            memories: self.memories,
            airings,
            covered: &covered,
            channel: &|id| channels.get(id.0).map(|it| (it.name.clone(), it.uuid)),
            may_record: &|rule, channel| {
                channels.get(channel.0).is_some_and(|channel| permissions.may_record(rule, channel, &dvr))
            },
            quality: &|id| channels.get(id.0).map(|it| quality_of(it, &health)).unwrap_or_default(),
            is_in_library: &|rule, programme| library.has(rule.owner, programme),
            padding: dvr.padding(),
            zone: &zone,
            now: self.now,
            n_new_max: RECORDINGS_MAX.saturating_sub(self.recordings.len()),
        })
    }
}

/// Returns the settings of recordings.
pub fn dvr_settings(models: &Models) -> DvrSettings {
    let settings = models.settings.load();
    DvrSettings::from_setting(settings.one_by("key", DVR_SETTINGS).map(|it| &it.value))
}

/// Returns a rule without an id that is made now.
pub fn new_rule(list: RuleList, selection: RuleSelection, owner: Option<UserId>) -> RecordingRule {
    let now = now_ms();
    RecordingRule {
        id: RecordingRuleId(0),
        list,
        name: String::new(),
        enabled: true,
        selection,
        channel: None,
        keep: 0,
        quota_bytes: 0,
        padding_before: None,
        padding_after: None,
        priority: PRIORITY_DEFAULT,
        owner,
        created_at: now,
        updated_at: now,
    }
}

/// Reads the programmes of all guides that the scan wants, except those that the cache has. Times are seconds since 1970.
/// Blocks.
pub(crate) fn read_guides(
    models: &Models,
    guides: &Guides,
    scan: &mut GuideScan<'_>,
    from: i64,
    until: i64,
    mut cache: Option<&mut MatchCache>,
) -> Vec<String> {
    let reader = guides.reader();
    // Channels with the same programmes are read once; generated programmes belong to one channel each.
    let mut groups: BTreeMap<GuideKey, (ChannelGuide, Vec<Arc<Channel>>)> = BTreeMap::new();
    for channel in models.channels.load().iter().filter(|it| it.enabled) {
        // Placeholders say nothing that a rule could select.
        let guide = reader.channel_guide(channel).filter(|it| !it.is_placeholder);
        let Some(guide) = guide else { continue };
        groups.entry(guide.key()).or_insert((guide, Vec::new())).1.push(Arc::clone(channel));
    }
    if let Some(cache) = &mut cache {
        cache.exchange_titles(scan);
    }
    scan.set_guide_ids(groups.values().flat_map(|(guide, channels)| {
        let of_guide = (!guide.is_generated()).then_some(guide.guide_channel.key.as_str());
        channels.iter().filter_map(|it| it.tvg_id.as_deref()).chain(of_guide)
    }));
    let (mut keys, mut read) = (Vec::new(), HashMap::new());
    let (from_ms, until_ms) = (from.saturating_mul(1000), until.saturating_mul(1000));
    for (group, (guide, mut channels)) in groups {
        channels.sort_by_key(|it| (it.number.is_none(), it.number, it.id));
        let uuid = channels.first().map(|it| it.uuid.to_string()).unwrap_or_default();
        let key = if guide.is_generated() { uuid } else { guide.guide_channel.key.clone() };
        let id = group.number();
        let ids: Vec<_> = channels.iter().filter_map(|it| it.tvg_id.as_deref()).collect();
        keys.extend(ids.iter().map(|it| it.to_lowercase()).chain([key.to_lowercase()]));
        let shown_by: Arc<[ChannelId]> = channels.iter().map(|it| it.id).collect();
        let cached = cache.as_deref_mut().zip(guide.file()).map(|(cache, file)| {
            let guide_ids = ids.iter().map(|it| (*it).to_owned()).collect();
            let key = MatchKey { key: key.clone(), guide_ids, channels: Arc::clone(&shown_by) };
            let known = cache.take(id, &key, file, (from_ms, until_ms), || guide.content());
            (key, file, known)
        });
        if let Some((_, _, Some(known))) = cached {
            scan.reuse(&key, &known.matches, from_ms, until_ms);
            read.insert(id, known);
            continue;
        }
        let Some(mut scanned) = scan.channel(&key, &ids, shown_by) else { continue };
        // What is kept has to last for some time.
        let read_until = if cached.is_some() { until.saturating_add(READ_AHEAD_SECONDS) } else { until };
        for part in guide.parts(from, read_until) {
            part.for_each(|id, start, stop, inner| {
                scanned.programme(start, stop, inner, || id.map(|it| it.to_string()).unwrap_or_default());
            });
        }
        let matches = scanned.finish(from_ms, until_ms);
        // Afterwards, because a file whose reading has failed is damaged.
        if let (Some((key, file, _)), Some(matches), Some(content)) = (cached, matches, guide.content()) {
            let time = (from_ms, read_until.saturating_mul(1000));
            read.insert(id, KnownMatches { key, file, content, time, matches });
        }
    }
    if let Some(cache) = cache {
        cache.exchange_titles(scan);
        // With too many, another part of them can be left out next time.
        cache.replace(if scan.is_too_much() { HashMap::new() } else { read });
    }
    keys
}

/// The permissions of the owners of rules.
pub struct Permissions {
    owners: HashMap<u32, (Arc<User>, ViewLimits)>,
}

impl Permissions {
    pub fn new(models: &Models) -> Self {
        Self::with(models, &[])
    }

    /// The same, with the owners of rules that need not be stored.
    fn with(models: &Models, others: &[Arc<RecordingRule>]) -> Self {
        let (rules, recordings) = (models.recording_rules.load(), models.recordings.load());
        let users = models.users.load();
        let of_rules = rules.iter().chain(others).filter_map(|it| it.owner);
        let ids: HashSet<_> = of_rules.chain(recordings.iter().filter_map(|it| it.owner)).collect();
        let owners = ids.into_iter().filter_map(|id| {
            let user = users.get(id.0)?;
            Some((id.0, (Arc::clone(user), view_limits(models, Some(user)))))
        });
        Self { owners: owners.collect() }
    }

    /// Rules of users who were deleted or may no longer record make no recordings. Rules without an owner, which plugins
    /// make, are like those of admins.
    /// A rule that names channels or groups records on these only.
    pub fn may_record(&self, rule: &RecordingRule, channel: &Channel, settings: &DvrSettings) -> bool {
        if !rule.takes(channel.id, channel.group) {
            return false;
        }
        let Some(owner) = rule.owner else { return channel.enabled };
        let Some((user, limits)) = self.owners.get(&owner.0) else { return false };
        if user.may(UserLevel::Admin) {
            return channel.enabled;
        }
        settings.permit(user) && visible(limits, channel)
    }
}

/// A change that was written.
enum Done {
    Created(RecordingRuleId),
    Moved,
}

/// Writes the changes, as far as nobody changed their recordings and rules meanwhile. Returns the recordings that were
/// removed, too.
fn apply(
    write: &mut Write<'_>,
    recorder: &Recorder,
    changes: Vec<PlannedChange>,
) -> storage::Result<(Vec<Done>, Vec<Recording>)> {
    let (mut done, mut removed) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            PlannedChange::Create(recording) => {
                let Some(rule) = recording.rule() else { continue };
                if write.get::<RecordingRule>(rule.0)?.is_some_and(|it| it.enabled) {
                    let id = RecordingId(write.next_id::<Recording>()?);
                    write.put(&Recording { id, ..*recording })?;
                    done.push(Done::Created(rule));
                }
            }
            PlannedChange::Update { before, after } => {
                if write.get::<Recording>(before.id.0)?.as_ref() == Some(&*before) {
                    write.put(&*after)?;
                    done.push(Done::Moved);
                }
            }
            PlannedChange::Remove(recording) => {
                if write.get::<Recording>(recording.id.0)?.as_ref() == Some(&*recording) {
                    write.remove::<Recording>(recording.id.0)?;
                    if recording.file.is_some() {
                        remember_deleted(write, &recording)?;
                        recorder.leave_files(write, &recording)?;
                    }
                    removed.push(Recording::clone(&recording));
                }
            }
            PlannedChange::Remember { rule, old } => {
                if write.get::<RecordingRule>(rule.0)?.is_some() {
                    let mut memory = memory_of(write, rule)?;
                    old.into_iter().for_each(|it| memory.add_old(it));
                    write.put(&memory)?;
                }
            }
        }
    }
    Ok((done, removed))
}

fn memory_of(write: &Write<'_>, rule: RecordingRuleId) -> storage::Result<RuleMemory> {
    Ok(write.get::<RuleMemory>(rule.0)?.unwrap_or_else(|| RuleMemory::new(rule)))
}

/// Removes the recordings of a rule that have not begun, unless another rule wants them too. With `keeps_edited`, those that a
/// user changed stay. Returns their number.
pub fn remove_scheduled(
    write: &mut Write<'_>,
    models: &Models,
    rule: RecordingRuleId,
    keeps_edited: bool,
) -> storage::Result<usize> {
    let (now, mut n_removed) = (now_ms(), 0);
    let recordings = models.recordings.load();
    let is_of_rule = |it: &&Arc<Recording>| !it.status.is_final() && it.rules().any(|it| it == rule);
    for it in recordings.iter().filter(is_of_rule) {
        let Some(mut recording) = write.get::<Recording>(it.id.0)? else { continue };
        let (goes, before) = (goes_with_change(&recording, rule, now, keeps_edited), recording.rule());
        // What a rule has begun, or a user has edited, keeps its name.
        if before == Some(rule) && !goes {
            continue;
        }
        if recording.leave_rule(rule) {
            write.put(&recording)?;
        } else {
            write.remove::<Recording>(it.id.0)?;
            n_removed += 1;
        }
    }
    Ok(n_removed)
}

/// Returns whether a recording of a rule goes when the rule changes: it has not begun. With `keeps_edited`, one that a user
/// changed stays.
fn goes_with_change(recording: &Recording, rule: RecordingRuleId, now: i64, keeps_edited: bool) -> bool {
    let is_edited = || recording.followed.as_ref().is_some_and(|it| it.is_edited(recording));
    recording.rule() == Some(rule) && !recording.has_begun(now) && !(keeps_edited && is_edited())
}
