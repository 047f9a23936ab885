//! Ends the streams of users who may no longer watch: after a commit, and when their account, their allowed hours or their
//! sleep timer ends.

use std::collections::BTreeMap;
use std::future::pending;
use std::time::Duration;

use domain::event::{Event, EventBody};
use domain::ids::UserId;
use domain::user::User;
use storage::Models;
use tracing::warn;

use super::AddressRule;
use crate::clock::now_ms;
use crate::events::Events;
use crate::permissions::may_watch;
use crate::plans::Target;
use crate::seats::{HOURS_OVER, NOT_ALLOWED, TIMER_OVER};
use crate::switchboard::Switchboard;

/// Maximum time until the clock of the machine is read again.
const CLOCK_CHECK: Duration = Duration::from_secs(60);
/// A timer that another node of a cluster has removed this long before its end has run out there: clocks differ.
const CLOCK_TOLERANCE_MS: i64 = 5_000;

/// The next time at which streams may have to end, and the sleep timers. Times are milliseconds since 1970.
pub(super) struct ViewingTimes {
    next: Option<i64>,
    /// The timers as they were at the last check, of users who have one. Those that have run out are kept until they are removed
    /// from the store, so that they end nothing twice.
    timers: BTreeMap<UserId, Timer>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Timer {
    ends_at: i64,
    has_ended: bool,
}

impl ViewingTimes {
    pub(super) fn new() -> Self {
        Self { next: None, timers: BTreeMap::new() }
    }

    /// Ends the sessions that have to end now, reports them, and removes the timers that have run out.
    pub(super) async fn check(
        &mut self,
        models: &Models,
        may_connect: &AddressRule,
        switchboard: &Switchboard,
        events: &Events,
    ) {
        let now = now_ms();
        let slept = self.timers_run_out(models, now);
        let ended = switchboard.end_sessions(|user, address, target| {
            if slept.contains(&user) {
                return Some(TIMER_OVER);
            }
            why_over(models, user, target, now)
                .or_else(|| (!may_connect(user, address)).then_some(NOT_ALLOWED))
        });
        report(models, ended, events, now);
        self.next = models.users.load().iter().filter_map(|it| it.next_end(now)).min();
        remove_timers(models, slept, now).await;
    }

    /// Returns the users whose timer has run out since the last check.
    fn timers_run_out(&mut self, models: &Models, now: i64) -> Vec<UserId> {
        let is_writer = models.store.writes_shared();
        let before = std::mem::take(&mut self.timers);
        let users = models.users.load();
        let mut over = Vec::new();
        for user in users.iter() {
            let known = before.get(&user.id).copied();
            let Some(ends_at) = user.sleep_until else {
                let is_due = |it: &Timer| !it.has_ended && it.ends_at <= now + CLOCK_TOLERANCE_MS;
                // Here, only this node and the user remove it.
                if !is_writer && known.as_ref().is_some_and(is_due) {
                    over.push(user.id);
                }
                continue;
            };
            let had_ended = known.is_some_and(|it| it.ends_at == ends_at && it.has_ended);
            if ends_at <= now && !had_ended {
                over.push(user.id);
            }
            self.timers.insert(user.id, Timer { ends_at, has_ended: ends_at <= now });
        }
        over
    }

    /// Waits until something ends. At once if that time has passed meanwhile.
    pub(super) async fn next_end(&self) {
        let Some(end) = self.next else { return pending().await };
        loop {
            let now = now_ms();
            if now >= end {
                return;
            }
            let wait = Duration::from_millis(u64::try_from(end - now).unwrap_or(0));
            // The clock of the machine may be set meanwhile.
            tokio::time::sleep(wait.min(CLOCK_CHECK)).await;
        }
    }
}

/// Returns why a user may not watch a target any more.
fn why_over(models: &Models, user: UserId, target: Target, now: i64) -> Option<&'static str> {
    if may_watch(models, user, target) {
        return None;
    }
    let is_within = models.users.load().get(user.0).is_none_or(|it| it.is_within_hours(now));
    Some(if is_within { NOT_ALLOWED } else { HOURS_OVER })
}

/// Reports the users whose streams ended because of their hours or their timer: each once.
fn report(models: &Models, ended: Vec<(UserId, &'static str)>, events: &Events, now: i64) {
    let mut n_streams: BTreeMap<(UserId, &'static str), u32> = BTreeMap::new();
    for (user, why) in ended {
        *n_streams.entry((user, why)).or_default() += 1;
    }
    let users = models.users.load();
    for ((id, why), streams) in n_streams {
        let reason = match why {
            HOURS_OVER => "allowed_hours",
            TIMER_OVER => "sleep_timer",
            _ => continue,
        };
        let username = users.get(id.0).map(|it| it.username.clone()).unwrap_or_default();
        let body = EventBody::ViewingEnded { user_id: id.0, username, reason, streams };
        events.emit(Event { at: now, body });
    }
}

/// Removes the timers that have run out from the store, unless they were set anew.
async fn remove_timers(models: &Models, users: Vec<UserId>, now: i64) {
    if users.is_empty() || !models.store.writes_shared() {
        return;
    }
    let removed = models.store.write(move |write| {
        for id in &users {
            let Some(mut user) = write.get::<User>(id.0)? else { continue };
            if user.sleep_until.is_some_and(|it| it <= now) {
                user.sleep_until = None;
                write.put(&user)?;
            }
        }
        Ok::<_, storage::Error>(())
    });
    if let Err(cause) = removed.await {
        warn!("failed to remove sleep timers that have run out: {cause}");
    }
}
