//! Decides which recordings go because of their age or because there is no room, and which end because nothing else helps.
//!
//! Finished recordings go in one order everywhere: the one that ended first, then the lower id. A protected recording never
//! goes. Recordings that run end in another order: the lowest priority, then the one that began last, then the higher id.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::{DvrSettings, Recording};
use crate::ids::{RecordingId, RecordingRuleId, UserId};
use crate::user::User;

/// Property of a user that overrides [`DvrSettings::user_quota_bytes`].
pub const USER_QUOTA: &str = "recording_quota_bytes";
/// Recordings end before the disk has less room than this, in bytes, so that the store can still be written.
pub const DISK_BYTES_RESERVED: u64 = 64 << 20;
/// Room is made for the recordings that run for this long, in seconds.
const AHEAD_SECONDS: u64 = 2;
const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// The file of a recording that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GrowingFile {
    pub bytes: u64,
    pub bytes_per_second: u64,
}

/// Everything that retention depends on.
pub struct RetentionInput<'a> {
    pub recordings: &'a [Arc<Recording>],
    pub growing: &'a HashMap<RecordingId, GrowingFile>,
    pub settings: &'a DvrSettings,
    /// Quotas in bytes; 0 is none.
    pub rule_quota: &'a dyn Fn(RecordingRuleId) -> u64,
    pub user_quota: &'a dyn Fn(UserId) -> u64,
    /// Whether the file lies on the disk of this node.
    pub is_here: &'a dyn Fn(&Recording) -> bool,
    /// Room on the disk in bytes, if it is known.
    pub available: Option<u64>,
    pub now: i64,
}

/// The recordings that share a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum QuotaScope {
    Rule(RecordingRuleId),
    User(UserId),
    All,
}

/// The cause of a removal or of an early end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetentionCause {
    Age,
    Count,
    Quota(QuotaScope),
    Disk,
}

impl fmt::Display for RetentionCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Age => "it is older than recordings are kept",
            Self::Count => "there are more recordings than are kept",
            Self::Quota(QuotaScope::Rule(_)) => "the quota of its rule is used up",
            Self::Quota(QuotaScope::User(_)) => "the quota of its user is used up",
            Self::Quota(QuotaScope::All) => "the quota of all recordings is used up",
            Self::Disk => "the disk of the recordings is almost full",
        })
    }
}

/// The result of a look at the files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RetentionPlan {
    /// Finished recordings that go with their files, in this order.
    pub removed: Vec<(RecordingId, RetentionCause)>,
    /// Recordings that run and end now, in this order.
    pub ended: Vec<(RecordingId, RetentionCause)>,
    /// Quotas without room for another recording.
    pub full: BTreeSet<QuotaScope>,
    /// Whether the disk has no room for another recording.
    pub is_disk_full: bool,
}

impl RetentionPlan {
    /// Returns why a recording cannot begin; `None` if it can.
    pub fn refusal(&self, it: &Recording) -> Option<RetentionCause> {
        let full = scopes(it).find(|scope| self.full.contains(scope)).map(RetentionCause::Quota);
        full.or_else(|| self.is_disk_full.then_some(RetentionCause::Disk))
    }
}

/// Returns the quota of a user in bytes; 0 is none.
pub fn user_quota(user: &User, settings: &DvrSettings) -> u64 {
    let own = user.custom_properties.get(USER_QUOTA).and_then(serde_json::Value::as_u64);
    own.unwrap_or(settings.user_quota_bytes)
}

/// Returns the quotas that a recording counts towards.
fn scopes(it: &Recording) -> impl Iterator<Item = QuotaScope> {
    let rule = it.rule().map(QuotaScope::Rule);
    rule.into_iter().chain(it.owner.map(QuotaScope::User)).chain([QuotaScope::All])
}

/// Returns what goes and what ends.
pub fn retention(input: &RetentionInput<'_>) -> RetentionPlan {
    let mut look = Look::new(input);
    look.remove_old();
    look.remove_many();
    look.keep_quotas();
    look.keep_room();
    look.plan
}

struct Look<'i, 'a> {
    input: &'i RetentionInput<'a>,
    /// Finished recordings that may go, in the order in which they go.
    removable: Vec<&'i Recording>,
    n_finished: usize,
    /// Recordings that run, in the order in which they end.
    running: Vec<(&'i Recording, GrowingFile)>,
    used: BTreeMap<QuotaScope, u64>,
    gone: HashSet<RecordingId>,
    freed: u64,
    plan: RetentionPlan,
}

/// When a recording ended: its file, or its time if it has none. One from an archive was made later than its time.
fn ended_at(it: &Recording) -> i64 {
    let ended_at = it.file.as_ref().and_then(|it| it.ended_at).unwrap_or_else(|| it.ends_at());
    ended_at.max(it.created_at)
}

fn is_finished(it: &Recording) -> bool {
    it.status.is_final() && it.file.as_ref().is_none_or(|it| it.ended_at.is_some())
}

impl<'i, 'a> Look<'i, 'a> {
    fn new(input: &'i RetentionInput<'a>) -> Self {
        let (mut removable, mut running, mut used) = (Vec::new(), Vec::new(), BTreeMap::new());
        let mut n_finished = 0;
        for it in input.recordings {
            let growing = input.growing.get(&it.id).copied();
            let bytes = growing.map_or(0, |it| it.bytes).max(it.stored_bytes());
            for scope in scopes(it).filter(|_| bytes > 0) {
                *used.entry(scope).or_default() += bytes;
            }
            if is_finished(it) {
                n_finished += usize::from(it.file.is_some());
                removable.extend((!it.protected).then_some(&**it));
            } else if !it.status.is_final() && it.file.is_some() {
                running.push((&**it, growing.unwrap_or_default()));
            }
        }
        removable.sort_unstable_by_key(|it| (ended_at(it), it.id));
        running.sort_unstable_by_key(|(it, _)| (it.priority, Reverse((it.begins_at(), it.id))));
        let (gone, plan) = (HashSet::new(), RetentionPlan::default());
        Self { input, removable, n_finished, running, used, gone, freed: 0, plan }
    }

    fn remove(&mut self, it: &Recording, cause: RetentionCause) {
        if !self.gone.insert(it.id) {
            return;
        }
        for scope in scopes(it) {
            if let Some(used) = self.used.get_mut(&scope) {
                *used = used.saturating_sub(it.stored_bytes());
            }
        }
        if (self.input.is_here)(it) {
            self.freed += it.stored_bytes();
        }
        self.n_finished -= usize::from(it.file.is_some());
        self.plan.removed.push((it.id, cause));
    }

    fn remove_old(&mut self) {
        let days = i64::from(self.input.settings.retention_days);
        let limit = self.input.now.saturating_sub(days * DAY_MS);
        if days > 0 {
            for it in self.removable.clone().into_iter().filter(|it| ended_at(it) < limit) {
                self.remove(it, RetentionCause::Age);
            }
        }
    }

    fn remove_many(&mut self) {
        let most = self.input.settings.retention_count as usize;
        for it in self.removable.clone().into_iter().filter(|it| most > 0 && it.file.is_some()) {
            if self.n_finished <= most {
                break;
            }
            if !self.gone.contains(&it.id) {
                self.remove(it, RetentionCause::Count);
            }
        }
    }

    fn keep_quotas(&mut self) {
        let scopes: Vec<_> = self.used.keys().copied().collect();
        for scope in scopes {
            let quota = match scope {
                QuotaScope::Rule(id) => (self.input.rule_quota)(id),
                QuotaScope::User(id) => (self.input.user_quota)(id),
                QuotaScope::All => self.input.settings.quota_bytes,
            };
            if quota == 0 {
                continue;
            }
            let is_in = |it: &Recording| scopes_contain(it, scope);
            let wanted = self.growth(is_in);
            for it in self.removable.clone().into_iter().filter(|it| it.file.is_some() && is_in(it)) {
                if self.used_by(scope).saturating_add(wanted) <= quota {
                    break;
                }
                self.remove(it, RetentionCause::Quota(scope));
            }
            let free = quota.saturating_sub(self.used_by(scope));
            if free <= wanted {
                self.plan.full.insert(scope);
                self.end(free, RetentionCause::Quota(scope), is_in);
            }
        }
    }

    fn keep_room(&mut self) {
        let Some(available) = self.input.available else { return };
        let wanted = self.growth(|_| true);
        let kept_free = self.input.settings.retention_free_bytes;
        if kept_free > 0 {
            let least = kept_free.max(DISK_BYTES_RESERVED.saturating_add(wanted));
            let is_here = |it: &&Recording| it.file.is_some() && (self.input.is_here)(it);
            for it in self.removable.clone().into_iter().filter(is_here) {
                if available.saturating_add(self.freed) >= least {
                    break;
                }
                self.remove(it, RetentionCause::Disk);
            }
        }
        let free = available.saturating_add(self.freed).saturating_sub(DISK_BYTES_RESERVED);
        if free <= wanted {
            self.plan.is_disk_full = true;
            self.end(free, RetentionCause::Disk, |_| true);
        }
    }

    fn used_by(&self, scope: QuotaScope) -> u64 {
        self.used.get(&scope).copied().unwrap_or(0)
    }

    fn is_ending(&self, id: RecordingId) -> bool {
        self.plan.ended.iter().any(|it| it.0 == id)
    }

    /// Returns by how much the files of running recordings grow until something can be done about it.
    fn growth(&self, is_meant: impl Fn(&Recording) -> bool) -> u64 {
        let meant = self.running.iter().filter(|(it, _)| is_meant(it) && !self.is_ending(it.id));
        meant.map(|(_, file)| file.bytes_per_second.saturating_mul(AHEAD_SECONDS)).sum()
    }

    /// Ends one recording, and further ones as long as the others would need more room than there is.
    fn end(&mut self, free: u64, cause: RetentionCause, is_meant: impl Fn(&Recording) -> bool) {
        let mut is_first = true;
        for (it, _) in self.running.clone() {
            if !is_meant(it) || self.is_ending(it.id) {
                continue;
            }
            if !is_first && self.growth(&is_meant) < free {
                return;
            }
            is_first = false;
            self.plan.ended.push((it.id, cause));
        }
    }
}

fn scopes_contain(it: &Recording, scope: QuotaScope) -> bool {
    scopes(it).any(|own| own == scope)
}

#[cfg(test)]
mod tests {
    use RetentionCause::{Age, Count, Disk, Quota};
    use uuid::Uuid;

    use super::*;
    use crate::ids::ChannelId;
    use crate::recording::rules::EpisodeKey;
    use crate::recording::{FollowedAiring, RecordedFile, RecordingStatus};

    const MIB: u64 = 1 << 20;

    /// A recording of a user with a file of 10 MiB that ended on this day.
    fn finished(id: u32, day: i64) -> Recording {
        let (times, uuid) = (day * DAY_MS - 1_000..day * DAY_MS, Uuid::from_u128(2));
        Recording {
            status: RecordingStatus::Completed,
            file: Some(RecordedFile {
                path: format!("{id}.ts"),
                bytes: 10 * MIB,
                started_at: day * DAY_MS - 1_000,
                ended_at: Some(day * DAY_MS),
                node: None,
            }),
            owner: Some(UserId(1)),
            ..Recording::new(RecordingId(id), ChannelId(2), uuid, "News", times, 0)
        }
    }

    /// One that runs with 1 MiB/s.
    fn running(id: u32, priority: u8, day: i64) -> Recording {
        let mut it = Recording { status: RecordingStatus::Recording, priority, ..finished(id, day) };
        it.file.as_mut().unwrap().ended_at = None;
        it
    }

    fn protected(it: Recording) -> Recording {
        Recording { protected: true, ..it }
    }

    fn made_by_rule(id: u32, it: Recording) -> Recording {
        let episode = EpisodeKey::from_day("2026-01-01".parse().unwrap());
        let followed = FollowedAiring::by_hand(&it, "a".to_owned(), episode);
        Recording { followed: Some(FollowedAiring { rule: Some(RecordingRuleId(id)), ..followed }), ..it }
    }

    fn plan(recordings: Vec<Recording>, settings: &DvrSettings, available: Option<u64>) -> RetentionPlan {
        let recordings: Vec<_> = recordings.into_iter().map(Arc::new).collect();
        let growing = recordings.iter().filter(|it| !it.status.is_final()).map(|it| {
            let file = GrowingFile { bytes: it.stored_bytes(), bytes_per_second: MIB };
            (it.id, file)
        });
        retention(&RetentionInput {
            recordings: &recordings,
            growing: &growing.collect(),
            settings,
            rule_quota: &|id| if id == RecordingRuleId(7) { 25 * MIB } else { 0 },
            user_quota: &|id| if id == UserId(2) { 25 * MIB } else { 0 },
            is_here: &|it| it.file.as_ref().is_some_and(|it| it.node.is_none()),
            available,
            now: 100 * DAY_MS,
        })
    }

    fn ids(of: &[(RecordingId, RetentionCause)]) -> Vec<u32> {
        of.iter().map(|it| it.0.0).collect()
    }

    #[test]
    fn nothing_goes_without_a_setting() {
        let all = || vec![finished(1, 1), finished(2, 2), running(3, 50, 99)];
        assert_eq!(plan(all(), &DvrSettings::default(), Some(1 << 40)), RetentionPlan::default());
        let found = plan(all(), &DvrSettings::default(), Some(1));
        assert_eq!((found.removed, ids(&found.ended)), (Vec::new(), vec![3]));
    }

    #[test]
    fn the_oldest_go_by_age_and_count_and_protected_ones_stay() {
        let all = || vec![finished(4, 60), protected(finished(1, 1)), finished(3, 50), finished(2, 50)];
        let settings = DvrSettings { retention_days: 45, ..DvrSettings::default() };
        let found = plan(all(), &settings, None).removed;
        assert_eq!(found, [(RecordingId(2), Age), (RecordingId(3), Age)]);
        let settings = DvrSettings { retention_count: 2, ..DvrSettings::default() };
        let found = plan(all(), &settings, None).removed;
        assert_eq!(found, [(RecordingId(2), Count), (RecordingId(3), Count)]);
    }

    #[test]
    fn a_failed_recording_goes_by_age_only() {
        let failed = Recording { file: None, status: RecordingStatus::Failed, ..finished(1, 1) };
        let settings = DvrSettings {
            retention_count: 1,
            quota_bytes: 1,
            retention_free_bytes: u64::MAX,
            ..DvrSettings::default()
        };
        assert_eq!(plan(vec![failed.clone()], &settings, Some(0)).removed, []);
        let settings = DvrSettings { retention_days: 1, ..settings };
        assert_eq!(ids(&plan(vec![failed], &settings, Some(0)).removed), [1]);
    }

    #[test]
    fn each_quota_counts_its_own_recordings() {
        let settings = DvrSettings { quota_bytes: 45 * MIB, ..DvrSettings::default() };
        let all = vec![
            made_by_rule(7, finished(1, 4)),
            made_by_rule(7, finished(2, 3)),
            made_by_rule(7, finished(3, 2)),
            finished(4, 1),
            finished(5, 5),
            finished(6, 6),
        ];
        let found = plan(all, &settings, None).removed;
        let (rule, total) = (QuotaScope::Rule(RecordingRuleId(7)), QuotaScope::All);
        assert_eq!(found, [(RecordingId(3), Quota(rule)), (RecordingId(4), Quota(total))]);
        let of_user = |it: Recording| Recording { owner: Some(UserId(2)), ..it };
        let all = vec![of_user(finished(1, 1)), of_user(finished(2, 2)), of_user(finished(3, 3))];
        let found = plan(all, &DvrSettings::default(), None).removed;
        assert_eq!(found, [(RecordingId(1), Quota(QuotaScope::User(UserId(2))))]);
    }

    #[test]
    fn a_quota_of_protected_files_ends_what_runs_and_lets_nothing_begin() {
        let scope = QuotaScope::Rule(RecordingRuleId(7));
        let all = vec![
            made_by_rule(7, protected(finished(1, 1))),
            made_by_rule(7, protected(finished(2, 2))),
            made_by_rule(7, running(3, 50, 3)),
            running(4, 10, 4),
        ];
        let found = plan(all, &DvrSettings::default(), None);
        assert_eq!((&found.removed, &found.ended), (&Vec::new(), &vec![(RecordingId(3), Quota(scope))]));
        let refused = found.refusal(&made_by_rule(7, finished(9, 9)));
        assert_eq!((refused, found.refusal(&finished(9, 9))), (Some(Quota(scope)), None));
    }

    #[test]
    fn a_full_disk_takes_only_recordings_that_are_on_it_and_quotas_take_all() {
        let of_other = |mut it: Recording| {
            it.file.as_mut().unwrap().node = Some("attic".to_owned());
            it
        };
        let all = || vec![of_other(finished(1, 1)), finished(2, 2), finished(3, 3)];
        let settings =
            DvrSettings { retention_free_bytes: DISK_BYTES_RESERVED + 20 * MIB, ..DvrSettings::default() };
        let found = plan(all(), &settings, Some(DISK_BYTES_RESERVED + 15 * MIB));
        assert_eq!(found.removed, [(RecordingId(2), Disk)]);
        let settings = DvrSettings { quota_bytes: 20 * MIB, ..DvrSettings::default() };
        assert_eq!(plan(all(), &settings, None).removed, [(RecordingId(1), Quota(QuotaScope::All))]);
    }

    #[test]
    fn a_full_disk_takes_old_recordings_first_and_then_ends_the_lowest_priority() {
        let all = || {
            vec![
                protected(finished(1, 1)),
                finished(2, 2),
                running(3, 90, 3),
                running(4, 10, 4),
                running(5, 10, 5),
            ]
        };
        let settings =
            DvrSettings { retention_free_bytes: DISK_BYTES_RESERVED + 20 * MIB, ..DvrSettings::default() };
        // What goes is enough.
        let found = plan(all(), &settings, Some(DISK_BYTES_RESERVED + 15 * MIB));
        assert_eq!((found.removed, found.ended), (vec![(RecordingId(2), Disk)], Vec::new()));
        assert!(!found.is_disk_full);
        // It is not: three recordings need 6 MiB, and the other two 4 MiB.
        let found = plan(all(), &settings, Some(DISK_BYTES_RESERVED - 5 * MIB));
        assert_eq!((ids(&found.removed), ids(&found.ended)), (vec![2], vec![5]));
        assert_eq!(found.refusal(&finished(9, 9)), Some(Disk));
        let found = plan(all(), &settings, Some(0));
        assert_eq!(ids(&found.ended), [5, 4, 3], "nothing may grow below the reserve");
    }

    #[test]
    fn the_property_of_a_user_overrides_the_setting() {
        let settings = DvrSettings { user_quota_bytes: 5, ..DvrSettings::default() };
        let mut user = User::new(UserId(1), "anna", crate::user::UserLevel::Standard, 0);
        assert_eq!(user_quota(&user, &settings), 5);
        user.custom_properties.insert(USER_QUOTA.to_owned(), 7.into());
        assert_eq!(user_quota(&user, &settings), 7);
    }
}
