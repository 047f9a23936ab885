//! What is to be asked of the panel of one account, in the order of its importance.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use domain::vod::{RelationId, TitleId};
use tokio::sync::oneshot;
use tokio::time::Instant;
use uuid::Uuid;

use super::pace::Pace;
use crate::refresh::RefreshQueue;

/// Maximum number of opened titles that wait for their details. More are told to come later.
pub(super) const OPENED_MAX: usize = 64;
/// Maximum number of viewers who wait for the same title.
const WAITERS_MAX: usize = 256;
/// Maximum number of series whose episodes are loaded in the background; the next refresh finds the rest.
pub(super) const BACKGROUND_MAX: usize = 100_000;
/// Maximum number of titles that wait for an update of their details.
pub(super) const UPDATES_MAX: usize = 100_000;
/// Maximum number of titles whose failures are remembered, and for how long none of them is asked for again.
const FAILED_MAX: usize = 256;
const FAILED_TIME: Duration = Duration::from_secs(60);

/// The state of the details of a title that was opened. The stored part of them can be shown in each case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OpenOutcome {
    /// The stored details are young enough, or were loaded now.
    Loaded,
    /// There is nothing to load: no active account with a panel offers the title.
    NothingToLoad,
    /// The panel has not answered yet. The details are stored when it does.
    Pending,
    /// The panel refuses questions for this time. The title is loaded afterwards.
    Postponed(Duration),
    /// Too many titles wait for this panel.
    Busy,
    /// The panel did not answer usefully; a sentence for an admin, without credentials.
    Failed(String),
    NoSuchTitle,
}

/// A title as one account offers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Offer {
    pub(super) title: TitleId,
    pub(super) relation: RelationId,
}

/// A requested refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SyncRequest {
    pub(super) job: Uuid,
    pub(super) confirm: bool,
}

/// A title that somebody opened, and those who wait for its details.
pub(super) struct Opened {
    pub(super) offer: Offer,
    /// The panel refused it before.
    pub(super) is_retry: bool,
    pub(super) waiters: Vec<oneshot::Sender<OpenOutcome>>,
}

/// A title whose details an admin wants to have updated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Update {
    pub(super) offer: Offer,
    /// The request that it belongs to.
    pub(super) job: Uuid,
    /// The panel refused it before.
    pub(super) is_retry: bool,
}

/// The next piece of work.
pub(super) enum Next {
    Nothing,
    /// Nothing may be asked for this time.
    Wait(Duration),
    Open(Opened),
    Sync(SyncRequest),
    Update(Update),
    /// The episodes of a series that nobody waits for.
    Episodes(Offer),
}

/// The queue of one account.
pub(super) struct AccountQueue {
    pub(super) pace: Pace,
    /// Whether a task works on the queue.
    pub(super) is_worked_on: bool,
    /// The refreshes of the account, at most one, each with whether the loss of many titles is confirmed.
    syncs: RefreshQueue<(), bool, ()>,
    opened: VecDeque<Opened>,
    updates: VecDeque<Update>,
    background: VecDeque<Offer>,
    /// Series of the background since it was last empty.
    n_background: usize,
    failed: VecDeque<(Offer, Instant, String)>,
}

impl Default for AccountQueue {
    fn default() -> Self {
        Self {
            pace: Pace::default(),
            is_worked_on: false,
            syncs: RefreshQueue::new(1),
            opened: VecDeque::new(),
            updates: VecDeque::new(),
            background: VecDeque::new(),
            n_background: 0,
            failed: VecDeque::new(),
        }
    }
}

impl AccountQueue {
    /// Takes the next piece of work: what people wait for first.
    pub(super) fn next(&mut self, now: Instant, interval: Duration) -> Next {
        if !self.has_work() {
            return Next::Nothing;
        }
        let refused = self.pace.refused_for(now);
        if !refused.is_zero() {
            return Next::Wait(refused);
        }
        let wait = self.pace.wait(now, interval);
        if let Some(opened) = self.opened.pop_front_if(|_| wait.is_zero()) {
            self.pace.asked(now);
            return Next::Open(opened);
        }
        if !self.opened.is_empty() {
            return Next::Wait(wait);
        }
        if let Some(sync) = self.syncs.take_next(|()| true) {
            let request = SyncRequest { job: sync.job, confirm: sync.request };
            self.syncs.started(sync, ());
            return Next::Sync(request);
        }
        if let Some(update) = self.updates.pop_front_if(|_| wait.is_zero()) {
            self.pace.asked(now);
            return Next::Update(update);
        }
        if !self.updates.is_empty() {
            return Next::Wait(wait);
        }
        match self.background.pop_front_if(|_| wait.is_zero()) {
            Some(offer) => {
                self.pace.asked(now);
                Next::Episodes(offer)
            }
            None => Next::Wait(wait),
        }
    }

    /// Requests a refresh; returns the job of the one that waits or runs already.
    pub(super) fn request(&mut self, sync: SyncRequest) -> Result<(), Uuid> {
        self.syncs.add((), sync.job, sync.confirm)
    }

    /// Notes that a refresh ended.
    pub(super) fn sync_ended(&mut self, job: Uuid) {
        self.syncs.finished((), job);
    }

    /// Adds a title that somebody opened. Returns false if too many wait.
    pub(super) fn open(&mut self, offer: Offer, waiter: Option<oneshot::Sender<OpenOutcome>>) -> bool {
        if let Some(known) = self.opened.iter_mut().find(|it| it.offer == offer) {
            known.waiters.retain(|it| !it.is_closed());
            let has_room = known.waiters.len() < WAITERS_MAX;
            known.waiters.extend(waiter.filter(|_| has_room));
            return has_room;
        }
        if self.opened.len() >= OPENED_MAX {
            return false;
        }
        self.background.retain(|it| *it != offer);
        let waiters = waiter.into_iter().collect();
        self.opened.push_back(Opened { offer, is_retry: false, waiters });
        true
    }

    /// Puts a title back that the panel refused for now.
    pub(super) fn retry(&mut self, offer: Offer) {
        match self.opened.iter_mut().find(|it| it.offer == offer) {
            Some(known) => known.is_retry = true,
            None => self.opened.push_front(Opened { offer, is_retry: true, waiters: Vec::new() }),
        }
    }

    /// Adds titles whose details are to be updated. Returns how many of them have to wait: all but those that wait
    /// already, and those for which there is no room.
    pub(super) fn update(&mut self, job: Uuid, offers: impl IntoIterator<Item = Offer>) -> usize {
        let mut waiting: HashSet<Offer> = self.updates.iter().map(|it| it.offer).collect();
        let before = self.updates.len();
        for offer in offers {
            if self.updates.len() < UPDATES_MAX && waiting.insert(offer) {
                self.updates.push_back(Update { offer, job, is_retry: false });
            }
        }
        self.updates.len() - before
    }

    /// Puts an update back that the panel refused for now.
    pub(super) fn update_again(&mut self, update: Update) {
        self.updates.push_front(Update { is_retry: true, ..update });
    }

    /// Replaces the series whose episodes are loaded when nobody waits for anything.
    pub(super) fn load(&mut self, mut offers: Vec<Offer>) {
        let waiting: HashSet<Offer> = self.opened.iter().map(|it| it.offer).collect();
        offers.retain(|it| !waiting.contains(it));
        offers.truncate(BACKGROUND_MAX);
        self.n_background = offers.len();
        self.background = offers.into();
    }

    /// Returns how many series are left in the background, and of how many.
    pub(super) fn background(&self) -> (usize, usize) {
        (self.background.len(), self.n_background)
    }

    /// Notes that a title could not be loaded.
    pub(super) fn failed(&mut self, offer: Offer, now: Instant, reason: String) {
        self.failed.retain(|it| it.0 != offer);
        if self.failed.len() >= FAILED_MAX {
            self.failed.pop_front();
        }
        self.failed.push_back((offer, now, reason));
    }

    /// Returns why a title could not be loaded a moment ago.
    pub(super) fn failure(&mut self, offer: Offer, now: Instant) -> Option<String> {
        self.failed.retain(|it| now.saturating_duration_since(it.1) < FAILED_TIME);
        self.failed.iter().find(|it| it.0 == offer).map(|it| it.2.clone())
    }

    /// Returns whether nothing is worth keeping of it.
    pub(super) fn is_forgettable(&self, now: Instant) -> bool {
        !self.has_work()
            && !self.is_worked_on
            && !self.syncs.is_running()
            && self.pace.refused_for(now).is_zero()
            && self.failed.is_empty()
    }

    fn has_work(&self) -> bool {
        !self.opened.is_empty()
            || self.syncs.has_waiting()
            || !self.updates.is_empty()
            || !self.background.is_empty()
    }

    /// Forgets all work, because the account is gone; returns the jobs of the updates, each as often as it has one.
    pub(super) fn clear(&mut self) -> Vec<Uuid> {
        self.opened.clear();
        self.background.clear();
        self.syncs.clear_waiting();
        self.updates.drain(..).map(|it| it.job).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn offer(number: u32) -> Offer {
        Offer { title: TitleId::series(number).unwrap(), relation: RelationId(number) }
    }

    fn sync() -> SyncRequest {
        SyncRequest { job: Uuid::from_u128(7), confirm: false }
    }

    #[track_caller]
    fn check(next: &Next, expected: &str) {
        let seen = match next {
            Next::Nothing => "nothing".to_owned(),
            Next::Wait(time) => format!("wait {}", time.as_secs()),
            Next::Open(it) => format!("open {} for {}", it.offer.relation, it.waiters.len()),
            Next::Sync(_) => "sync".to_owned(),
            Next::Update(it) => format!("update {}", it.offer.relation),
            Next::Episodes(it) => format!("episodes {}", it.relation),
        };
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_people_wait_for_comes_first_and_one_question_per_interval() {
        let (mut queue, mut now) = (AccountQueue::default(), Instant::now());
        check(&queue.next(now, SECOND), "nothing");
        queue.load(vec![offer(1), offer(2), offer(3)]);
        check(&queue.next(now, SECOND), "episodes 1");
        check(&queue.next(now, SECOND), "wait 1");
        queue.request(sync()).unwrap();
        assert!(queue.open(offer(9), None) && queue.open(offer(3), None));
        check(&queue.next(now, SECOND), "wait 1");
        now += SECOND;
        check(&queue.next(now, SECOND), "open 9 for 0");
        now += SECOND;
        check(&queue.next(now, SECOND), "open 3 for 0");
        check(&queue.next(now, SECOND), "sync");
        assert_eq!(queue.request(sync()), Err(Uuid::from_u128(7)), "it runs");
        check(&queue.next(now, SECOND), "wait 1");
        assert_eq!(queue.background(), (1, 3), "the third one was opened");
        now += SECOND;
        check(&queue.next(now, SECOND), "episodes 2");
        check(&queue.next(now, SECOND), "nothing");
    }

    #[test]
    fn updates_come_before_the_background_and_each_title_waits_once() {
        let (mut queue, mut now) = (AccountQueue::default(), Instant::now());
        let job = Uuid::from_u128(7);
        queue.load(vec![offer(1)]);
        assert_eq!(queue.update(job, [offer(2), offer(3), offer(2)]), 2);
        assert_eq!(queue.update(job, [offer(3), offer(4)]), 1);
        assert!(queue.open(offer(9), None));
        let update = Update { offer: offer(2), job, is_retry: false };
        for expected in ["open 9 for 0", "update 2", "update 2", "update 3", "update 4", "episodes 1"] {
            let next = queue.next(now, SECOND);
            check(&next, expected);
            if matches!(next, Next::Update(it) if it == update) {
                queue.update_again(update);
            }
            now += SECOND;
        }
        assert_eq!(queue.update(job, (1..=200_000).map(offer)), UPDATES_MAX);
        assert_eq!(queue.clear().len(), UPDATES_MAX);
        check(&queue.next(now, SECOND), "nothing");
    }

    #[test]
    fn a_refusal_delays_everything() {
        let (mut queue, now) = (AccountQueue::default(), Instant::now());
        queue.pace.refused(now, Some(30 * SECOND));
        queue.request(sync()).unwrap();
        check(&queue.next(now, SECOND), "wait 30");
        assert!(queue.open(offer(1), None));
        check(&queue.next(now, SECOND), "wait 30");
        check(&queue.next(now + 30 * SECOND, SECOND), "open 1 for 0");
        check(&queue.next(now + 30 * SECOND, SECOND), "sync");
    }

    #[test]
    fn viewers_of_one_title_wait_together_and_their_number_is_bounded() {
        let (mut queue, now) = (AccountQueue::default(), Instant::now());
        let channels: Vec<_> = (0..3).map(|_| oneshot::channel()).collect();
        let (senders, _receivers): (Vec<_>, Vec<_>) = channels.into_iter().unzip();
        for sender in senders {
            assert!(queue.open(offer(1), Some(sender)));
        }
        (2..=64).for_each(|it| assert!(queue.open(offer(it), None)));
        assert!(!queue.open(offer(65), None));
        check(&queue.next(now, SECOND), "open 1 for 3");
    }

    #[test]
    fn a_failure_is_remembered_for_a_minute() {
        let (mut queue, now) = (AccountQueue::default(), Instant::now());
        for number in 1..=300 {
            queue.failed(offer(number), now, "x".to_owned());
        }
        assert_eq!(queue.failed.len(), FAILED_MAX);
        assert_eq!(queue.failure(offer(300), now).as_deref(), Some("x"));
        assert_eq!(queue.failure(offer(300), now + FAILED_TIME), None);
        assert!(queue.is_forgettable(now));
    }
}
