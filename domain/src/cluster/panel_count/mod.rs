//! Judges the number of connections that the panel of an account shows after a machine was lost.
//!
//! A machine without power closes no connection, so its slots cool for [`CRASH_COOLING`](super::rules::CRASH_COOLING). A
//! panel counts the connections of a login (`active_cons`) and may show earlier that they are gone. Nothing is opened to
//! find out, and an answer only ever shortens the cooling.
//!
//! A panel may always answer the same number, nothing, or an old number. So its answer counts only if all of this holds:
//! - It is not larger than the number of leases that living nodes hold and have held for [`SETTLED_AFTER`], twice in
//!   succession with [`QUESTION_INTERVAL`] between, while the leases stayed the same.
//! - The lost leases were there for as long before the loss.
//! - Within [`EVIDENCE_PERIOD`], the panel has shown at least as many connections as it would have to show if the lost ones
//!   were still open. A panel that always says the same fails here.
//! - The panel has not shown too few connections since, while leases were held for that long.
//!
//! For this evidence, a panel is asked while leases are held: when more are held than it was seen to count within
//! [`EVIDENCE_RENEWAL`], and not more often than [`EVIDENCE_INTERVAL`].

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::BootTime;
use super::record::{CoolingReason, LeaseId, PoolId, PoolTable, ProcessId, SlotEntry, SlotState};
use super::rules::TAKE_OVER;
use crate::ids::{AccountId, ProfileId};

/// Interval between questions about one account profile while its slots cool.
pub const QUESTION_INTERVAL: Duration = Duration::from_secs(5);

/// Time for which a lease must have been held before the panel is expected to count its connection.
pub const SETTLED_AFTER: Duration = Duration::from_secs(5 * 60);

/// Time for which a number that a panel has shown is evidence that it counts.
pub const EVIDENCE_PERIOD: Duration = Duration::from_secs(24 * 60 * 60);

/// Age of the evidence at which it is looked for anew.
pub const EVIDENCE_RENEWAL: Duration = Duration::from_secs(12 * 60 * 60);

/// Interval between two questions that look for evidence.
pub const EVIDENCE_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Time after which a panel that has shown too few connections is asked again.
const DOUBT_INTERVAL: Duration = Duration::from_secs(30);

/// A question to the panel of an account profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelQuestion {
    pub pool: PoolId,
    pub account: AccountId,
    pub profile: ProfileId,
    leases: ProfileLeases,
}

/// The leases of an account profile in a slot table, as far as a panel is compared with them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ProfileLeases {
    /// Held for [`SETTLED_AFTER`].
    settled: BTreeSet<LeaseId>,
    /// Cooling because their node was lost, and settled before.
    lost: BTreeSet<LeaseId>,
    /// All others: new ones, closing ones, those that cool after a return, and lost ones that were new.
    others: BTreeSet<LeaseId>,
}

/// The answers of panels about the account profiles of this cluster, as one node knows them.
#[derive(Debug, Default)]
pub struct PanelCounts {
    /// The leases in the tables. Bounded by their entries.
    leases: BTreeMap<LeaseId, SeenLease>,
    /// The profiles that have leases, or evidence that is not too old.
    profiles: BTreeMap<ProfileId, SeenProfile>,
}

/// When this node saw a lease.
#[derive(Debug, Clone, Copy)]
struct SeenLease {
    since: BootTime,
    /// Set when its node was lost.
    lost_at: Option<BootTime>,
}

#[derive(Debug, Default)]
struct SeenProfile {
    asked_at: Option<BootTime>,
    /// The largest number within [`EVIDENCE_PERIOD`] that was not too small, and the time of the answer.
    evidence: Option<(u32, BootTime)>,
    /// The leases for which an answer was too small, and its time.
    doubt: Option<(BTreeSet<LeaseId>, BootTime)>,
    /// The answer was too small again: the panel is not believed for [`EVIDENCE_PERIOD`].
    distrusted_at: Option<BootTime>,
    /// The leases of the last answer that showed that the lost ones are gone.
    gone: Option<(ProfileLeases, BootTime)>,
}

impl PanelCounts {
    /// Takes note of the present tables.
    pub fn see<'a>(&mut self, tables: impl IntoIterator<Item = &'a PoolTable>, now: BootTime) {
        let mut seen = BTreeSet::new();
        for entry in tables.into_iter().flat_map(|it| &it.entries) {
            let lease = self.leases.entry(entry.lease).or_insert(SeenLease { since: now, lost_at: None });
            if entry.state == SlotState::Cooling(CoolingReason::Lost) {
                lease.lost_at.get_or_insert(now);
            }
            seen.insert(entry.lease);
            self.profiles.entry(entry.profile).or_default();
        }
        self.leases.retain(|lease, _| seen.contains(lease));
        self.profiles.retain(|_, it| {
            it.asked_at.is_none_or(|at| now.since(at) < EVIDENCE_PERIOD) || it.evidence(now).is_some()
        });
    }

    /// Returns the question that is due now, and notes that it is asked. `may_ask` says whether an account profile has a
    /// panel. At most one question should be without an answer.
    pub fn due(
        &mut self,
        tables: &BTreeMap<PoolId, PoolTable>,
        process: ProcessId,
        may_ask: &dyn Fn(AccountId, ProfileId) -> bool,
        now: BootTime,
    ) -> Option<PanelQuestion> {
        let urgent = |it: &PanelQuestion| {
            tables.get(&it.pool).is_some_and(|table| self.is_waited_for(it, table, process, now))
        };
        let all: Vec<PanelQuestion> = self.questions(tables, now);
        let due = all.iter().find(|it| urgent(it) && may_ask(it.account, it.profile));
        let due = due.or_else(|| {
            let mut others = all.iter();
            others.find(|it| self.lacks_evidence(it, now) && may_ask(it.account, it.profile))
        });
        let question = due?.clone();
        self.profiles.entry(question.profile).or_default().asked_at = Some(now);
        Some(question)
    }

    /// Processes an answer: the number of connections of the login, or `None` if the panel did not say a plain number.
    /// `table` is the present one of the question's pool. Returns the lost leases whose connections are gone.
    pub fn answered(
        &mut self,
        question: &PanelQuestion,
        count: Option<u32>,
        table: Option<&PoolTable>,
        now: BootTime,
    ) -> Option<BTreeSet<LeaseId>> {
        let is_same = table.is_some_and(|it| self.leases_of(question.profile, it, now) == question.leases);
        let profile = self.profiles.entry(question.profile).or_default();
        let Some(count) = count.filter(|_| is_same) else {
            profile.gone = None;
            return None;
        };
        let PanelQuestion { leases, .. } = question;
        let n_settled = u32::try_from(leases.settled.len()).unwrap_or(u32::MAX);
        profile.judge(count, leases, n_settled, now);
        let n_lost = u32::try_from(leases.lost.len()).unwrap_or(u32::MAX);
        let shows_gone = n_lost > 0
            && count <= n_settled
            && profile.believed(now).is_some_and(|seen| seen >= n_settled.saturating_add(n_lost));
        if !shows_gone {
            profile.gone = None;
            return None;
        }
        match &profile.gone {
            Some((before, at)) if before == leases => {
                (now.since(*at) >= QUESTION_INTERVAL).then(|| leases.lost.clone())
            }
            _ => {
                profile.gone = Some((leases.clone(), now));
                None
            }
        }
    }

    /// Returns a question for each account profile with leases.
    fn questions(&self, tables: &BTreeMap<PoolId, PoolTable>, now: BootTime) -> Vec<PanelQuestion> {
        let mut questions: Vec<PanelQuestion> = Vec::new();
        for (pool, table) in tables {
            for SlotEntry { profile, account, .. } in &table.entries {
                if !questions.iter().any(|it| (it.pool, it.profile) == (*pool, *profile)) {
                    let leases = self.leases_of(*profile, table, now);
                    let (pool, account, profile) = (*pool, *account, *profile);
                    questions.push(PanelQuestion { pool, account, profile, leases });
                }
            }
        }
        questions
    }

    fn leases_of(&self, profile: ProfileId, table: &PoolTable, now: BootTime) -> ProfileLeases {
        let mut leases = ProfileLeases::default();
        for entry in table.entries.iter().filter(|it| it.profile == profile) {
            let seen = self.leases.get(&entry.lease);
            let is_settled = |it: &SeenLease| match it.lost_at {
                // The entry was held until other nodes took over.
                Some(at) => at.since(it.since) >= SETTLED_AFTER + TAKE_OVER,
                None => now.since(it.since) >= SETTLED_AFTER,
            };
            let of_state = match entry.state {
                SlotState::Held if seen.is_some_and(is_settled) => &mut leases.settled,
                SlotState::Cooling(CoolingReason::Lost) if seen.is_some_and(is_settled) => &mut leases.lost,
                _ => &mut leases.others,
            };
            of_state.insert(entry.lease);
        }
        leases
    }

    /// Returns whether slots cool after a loss, and this process has the first request that waits for one of them.
    fn is_waited_for(
        &self,
        question: &PanelQuestion,
        table: &PoolTable,
        process: ProcessId,
        now: BootTime,
    ) -> bool {
        let is_wanted = |it: &(ProfileId, AccountId)| it.0 == question.profile;
        let first = table.waiters.iter().find(|it| it.profiles.iter().any(is_wanted));
        !question.leases.lost.is_empty()
            && first.is_some_and(|it| it.lease.process == process)
            && self.may_ask_again(question.profile, QUESTION_INTERVAL, now)
    }

    /// Returns whether more leases are held than the panel was seen to count of late.
    fn lacks_evidence(&self, question: &PanelQuestion, now: BootTime) -> bool {
        let ProfileLeases { settled, lost, others } = &question.leases;
        let Some(profile) = self.profiles.get(&question.profile) else { return false };
        // While anything else changes, the number says little.
        if settled.is_empty() || !(lost.is_empty() && others.is_empty()) || profile.is_distrusted(now) {
            return false;
        }
        if profile.doubt.is_some() {
            return self.may_ask_again(question.profile, DOUBT_INTERVAL, now);
        }
        let is_new = |at: BootTime| now.since(at) < EVIDENCE_RENEWAL;
        let seen = profile.evidence.filter(|it| is_new(it.1)).map_or(0, |it| it.0);
        (seen as usize) < settled.len() && self.may_ask_again(question.profile, EVIDENCE_INTERVAL, now)
    }

    fn may_ask_again(&self, profile: ProfileId, interval: Duration, now: BootTime) -> bool {
        let asked_at = self.profiles.get(&profile).and_then(|it| it.asked_at);
        asked_at.is_none_or(|at| now.since(at) >= interval)
    }
}

impl SeenProfile {
    /// Compares an answer with the leases that are certain to have a connection.
    fn judge(&mut self, count: u32, leases: &ProfileLeases, n_settled: u32, now: BootTime) {
        if count >= n_settled.max(1) {
            self.doubt = None;
            if self.evidence(now).is_none_or(|seen| count >= seen) {
                self.evidence = Some((count, now));
            }
        } else if count < n_settled {
            // A source may have been opening again just then, so one answer proves nothing.
            match &self.doubt {
                Some((settled, at)) if leases.settled.is_superset(settled) => {
                    if now.since(*at) >= DOUBT_INTERVAL {
                        *self = Self { asked_at: self.asked_at, distrusted_at: Some(now), ..Self::default() };
                    }
                }
                _ => self.doubt = Some((leases.settled.clone(), now)),
            }
        }
    }

    fn evidence(&self, now: BootTime) -> Option<u32> {
        self.evidence.filter(|it| now.since(it.1) < EVIDENCE_PERIOD).map(|it| it.0)
    }

    fn is_distrusted(&self, now: BootTime) -> bool {
        self.distrusted_at.is_some_and(|at| now.since(at) < EVIDENCE_PERIOD)
    }

    /// Returns the largest number that the panel was seen to show, if it is believed.
    fn believed(&self, now: BootTime) -> Option<u32> {
        (self.doubt.is_none() && !self.is_distrusted(now)).then(|| self.evidence(now)).flatten()
    }
}
