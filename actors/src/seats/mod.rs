//! The limit per user: a logged-in user cannot watch without a seat.
//!
//! A *session* is one device (address and program) of a user that watches one target. It holds one seat, regardless of
//! its number of connections: players probe before they play, and open a new connection before they close the old one.
//! The [`SeatTable`] is a plain value owned by the system that contains the sessions. A [`Seat`] is the guard of one
//! connection, carried by the tail, so a session lasts exactly as long as one of its connections can be reached. No
//! counter exists that could drift.
//!
//! Users without a limit have seats too, because the sessions of a user who may no longer watch are ended through them.

mod ended;
mod shared;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use domain::ids::UserId;
use domain::limits::{self, HeldSeat, SeatDecision, SeatHolder, SeatRules};
use media::meter::Connection;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

use self::ended::EndedDevices;
pub use self::shared::SeatParts;
use self::shared::{SeatAdmission, SeatAnswer, SharedSeats};
use crate::plans::Target;
use crate::viewer::Viewer;

/// Maximum wait for a seat. When a player changes the channel with another program, its new request often arrives
/// before its first connection ends.
pub(crate) const SEAT_WAIT: Duration = Duration::from_secs(1);

/// End reason of a session whose device started to watch something else.
const REPLACED: &str = "replaced by the same device";

/// End reason of a session that ends because the user started another one at the limit of streams.
const OVER_LIMIT: &str = "ended for another stream of the user, who is at the limit";

/// End reason of the sessions of a user who may no longer watch their target, or nothing at all.
pub(crate) const NOT_ALLOWED: &str = "the user may no longer watch";

/// End reason of the sessions of a user whose allowed hours are over.
pub(crate) const HOURS_OVER: &str = "the allowed hours of the user are over";

/// End reason of the sessions of a user whose sleep timer has run out.
pub(crate) const TIMER_OVER: &str = "the sleep timer of the user has run out";

/// A request for a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatRequest {
    /// The user.
    pub user: UserId,
    /// Maximum number of simultaneous sessions of this user; 0 is unlimited.
    pub limit: u32,
}

/// The current state of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatInfo {
    /// The user who holds the seat.
    pub user: UserId,
    /// Address of the device.
    pub address: IpAddr,
    /// `User-Agent` of the device.
    pub agent: String,
    /// Watched target.
    pub target: Target,
    /// Time since the start.
    pub age: Duration,
    /// Number of connections.
    pub n_connections: usize,
}

struct Session {
    address: IpAddr,
    agent: String,
    target: Target,
    since: Instant,
    /// Connections by the number of their guards; never empty.
    connections: BTreeMap<u64, Arc<Connection>>,
    /// End reason. An ended session no longer counts; its connections are closing.
    ended: Option<&'static str>,
    admission: SeatAdmission,
}

impl Session {
    fn new(viewer: &Viewer, target: Target) -> Self {
        Self {
            address: viewer.address,
            agent: viewer.agent.clone(),
            target,
            since: Instant::now(),
            connections: BTreeMap::new(),
            ended: None,
            admission: SeatAdmission::Local,
        }
    }

    /// Returns whether somebody watches.
    fn has_begun(&self) -> bool {
        let is_seated =
            matches!(self.admission, SeatAdmission::Local | SeatAdmission::Answered(SeatAnswer::Granted));
        is_seated && self.ended.is_none()
    }

    fn is_refused(&self) -> bool {
        self.admission == SeatAdmission::Answered(SeatAnswer::Refused)
    }

    fn is_of(&self, viewer: &Viewer) -> bool {
        self.address == viewer.address && self.agent == viewer.agent
    }

    /// Marks the session as ended. The caller cancels the returned connections outside of the lock.
    fn end(&mut self, why: &'static str) -> impl Iterator<Item = Arc<Connection>> {
        self.ended = Some(why);
        self.connections.values().cloned()
    }
}

#[derive(Default)]
struct Inner {
    /// Sessions by user and age: a later session has a higher number. Bounded by the number of connections.
    sessions: BTreeMap<(UserId, u64), Session>,
    last_id: u64,
    ended_devices: EndedDevices,
}

impl Inner {
    /// Ends a session, if it has not ended. Returns its connections, which the caller cancels outside of the lock.
    fn end(&mut self, key: (UserId, u64), why: &'static str) -> Vec<Arc<Connection>> {
        let Some(session) = self.sessions.get_mut(&key).filter(|it| it.ended.is_none()) else {
            return Vec::new();
        };
        if why == OVER_LIMIT {
            self.ended_devices.add(key.0, session);
        }
        session.end(why).collect()
    }

    fn user_sessions(&mut self, user: UserId) -> impl Iterator<Item = (u64, &mut Session)> {
        let all = self.sessions.range_mut((user, 0)..=(user, u64::MAX));
        all.map(|(key, session)| (key.1, session)).filter(|it| it.1.ended.is_none())
    }

    /// Returns the ids of the sessions of a user, oldest first, and the seats as the decision about another one needs
    /// them, each with its target. `is_alone` is known only if `counts_all`.
    fn held_by(
        &mut self,
        user: UserId,
        viewer: &Viewer,
        target: Target,
        counts_all: bool,
    ) -> (Vec<u64>, Vec<(HeldSeat, Target)>) {
        let mut n_sessions: BTreeMap<Target, usize> = BTreeMap::new();
        for session in self.sessions.values().filter(|it| counts_all && it.ended.is_none()) {
            *n_sessions.entry(session.target).or_default() += 1;
        }
        let (mut ids, mut held): (Vec<u64>, Vec<(HeldSeat, Target)>) = Default::default();
        for (id, session) in self.user_sessions(user) {
            let channel = held.iter().position(|it| it.1 == session.target).unwrap_or(held.len());
            let is_alone = n_sessions.get(&session.target) == Some(&1);
            ids.push(id);
            held.push((
                HeldSeat { holder: holder(session, viewer, target), channel, is_alone },
                session.target,
            ));
        }
        (ids, held)
    }
}

/// All sessions: a plain value owned by the system. Seats are guards on it.
#[derive(Default)]
pub(crate) struct SeatTable {
    inner: Mutex<Inner>,
    /// Notified when a seat is released, or the cluster has answered.
    returned: Notify,
    /// In a cluster, the way to its member.
    shared: OnceLock<SharedSeats>,
}

/// All seats of a user are taken by these sessions, oldest first.
#[derive(Debug)]
pub(crate) struct SeatsTaken {
    pub(crate) by: Vec<SeatInfo>,
}

impl std::fmt::Display for SeatsTaken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (index, it) in self.by.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{} is watched from {} with {:?}", it.target, it.address, it.agent)?;
        }
        Ok(())
    }
}

impl SeatTable {
    /// Creates an empty table.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Takes a seat for a connection in one step: the seat of the same session, a free one, or if the rules allow it
    /// that of another session of the user, which ends.
    ///
    /// # Errors
    /// All seats are taken; the error contains their sessions. No session was ended.
    pub(crate) fn take(
        self: &Arc<Self>,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
        rules: SeatRules,
    ) -> Result<Seat, SeatsTaken> {
        let SeatRequest { user, limit } = request;
        let mut replaced = Vec::new();
        let mut inner = self.inner.lock();
        inner.last_id += 1;
        let guard = inner.last_id;
        // All sessions are counted only if the decision depends on it.
        let ends_others = rules.user_limits.terminate_on_limit_exceeded && limit > 0;
        let (ids, held) = inner.held_by(user, viewer, target, ends_others);
        // The number of a channel is the index of its first session.
        let channel = held.iter().position(|it| it.1 == target).unwrap_or(held.len());
        let held: Vec<_> = held.into_iter().map(|it| it.0).collect();
        let session = match limits::decide_seat(limit, channel, &held, rules) {
            SeatDecision::Share(index) => ids[index],
            SeatDecision::Full => {
                let by = inner.user_sessions(user).map(|(_, it)| info(user, it)).collect();
                return Err(SeatsTaken { by });
            }
            SeatDecision::Take => guard,
            SeatDecision::Replace(ended) => {
                for index in ended {
                    let why = if held[index].holder == SeatHolder::Own { REPLACED } else { OVER_LIMIT };
                    replaced.extend(inner.end((user, ids[index]), why));
                }
                guard
            }
        };
        let entry = inner.sessions.entry((user, session)).or_insert_with(|| Session::new(viewer, target));
        entry.connections.insert(guard, connection.clone());
        drop(inner);
        cancel(replaced);
        Ok(Seat { table: self.clone(), session: (user, session), guard })
    }

    /// Takes a seat like [`Self::take`], and waits for it at most [`SEAT_WAIT`]. In a cluster, the sessions of a user with a
    /// limit on other nodes count and end as those here.
    ///
    /// # Errors
    /// No seat was released in time; the error contains the sessions that hold them.
    pub(crate) async fn take_soon(
        self: &Arc<Self>,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
        rules: SeatRules,
    ) -> Result<Seat, SeatsTaken> {
        let rules = self.rules_for(request, viewer, target, rules);
        let taken = match self.shared.get().filter(|_| request.limit > 0) {
            Some(shared) => self.take_shared(shared, request, viewer, target, connection, rules).await,
            None => {
                let deadline = Instant::now() + SEAT_WAIT;
                self.wait_for(deadline, || self.take(request, viewer, target, connection, rules)).await
            }
        };
        let devices = &mut self.inner.lock().ended_devices;
        match &taken {
            Ok(_) => devices.remove(request.user, viewer),
            // The pause until the next request begins now.
            Err(_) => drop(devices.asks_again(request.user, viewer, target)),
        }
        taken
    }

    /// Returns the rules for a request: a device that asks again by itself, after another device of the user ended it, does
    /// not end that one in turn.
    fn rules_for(
        &self,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        mut rules: SeatRules,
    ) -> SeatRules {
        let asks_again =
            request.limit > 0 && self.inner.lock().ended_devices.asks_again(request.user, viewer, target);
        rules.user_limits.terminate_on_limit_exceeded &= !asks_again;
        rules
    }

    /// Looks after each change of the table, until there is something or the time is over. Returns the last error then.
    async fn wait_for<T, E>(&self, until: Instant, mut look: impl FnMut() -> Result<T, E>) -> Result<T, E> {
        loop {
            // Created before the look, so that no change in between is missed.
            let changed = self.returned.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let found = look();
            if found.is_ok() || timeout_at(until, changed).await.is_err() {
                return found;
            }
        }
    }

    /// Ends every session for which a reason is given. Returns the users of those that were watched, with the reasons.
    pub(crate) fn end_where(
        &self,
        why: impl Fn(UserId, IpAddr, Target) -> Option<&'static str>,
    ) -> Vec<(UserId, &'static str)> {
        let (mut ended, mut users) = (Vec::new(), Vec::new());
        {
            let mut inner = self.inner.lock();
            let sessions = inner.sessions.iter_mut().filter(|it| it.1.ended.is_none());
            for ((user, _), session) in sessions {
                let Some(why) = why(*user, session.address, session.target) else { continue };
                if session.has_begun() {
                    users.push((*user, why));
                }
                ended.extend(session.end(why));
            }
        }
        cancel(ended);
        users
    }

    /// Returns the number of sessions that have begun and not ended.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().sessions.values().filter(|it| it.has_begun()).count()
    }

    /// Returns the sessions that have begun and not ended.
    pub(crate) fn all(&self) -> Vec<SeatInfo> {
        let inner = self.inner.lock();
        let counting = inner.sessions.iter().filter(|it| it.1.has_begun());
        counting.map(|((user, _), session)| info(*user, session)).collect()
    }
}

/// Returns the relation of a session to a viewer of the same user.
fn holder(session: &Session, viewer: &Viewer, target: Target) -> SeatHolder {
    match (session.is_of(viewer), session.target == target) {
        (true, true) => SeatHolder::Same,
        (true, false) => SeatHolder::Own,
        (false, _) => SeatHolder::Other,
    }
}

fn info(user: UserId, session: &Session) -> SeatInfo {
    SeatInfo {
        user,
        address: session.address,
        agent: session.agent.clone(),
        target: session.target,
        age: session.since.elapsed(),
        n_connections: session.connections.len(),
    }
}

/// Cancels connections. A body whose socket is full is never polled, so closing the connection is the only way to end
/// it; this also ends a request that still waits for its reply.
fn cancel(connections: Vec<Arc<Connection>>) {
    for connection in connections {
        connection.cancel.cancel();
    }
}

/// The seat of one connection. It is released by its drop and in no other way.
pub(crate) struct Seat {
    table: Arc<SeatTable>,
    session: (UserId, u64),
    guard: u64,
}

impl Seat {
    /// Returns the user who holds the seat.
    pub(crate) fn user(&self) -> UserId {
        self.session.0
    }

    /// Returns why the gateway ended the session, if it did.
    pub(crate) fn why_ended(&self) -> Option<&'static str> {
        self.table.inner.lock().sessions.get(&self.session).and_then(|it| it.ended)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        {
            let mut inner = self.table.inner.lock();
            if let Some(session) = inner.sessions.get_mut(&self.session) {
                session.connections.remove(&self.guard);
                if session.connections.is_empty()
                    && let Some(session) = inner.sessions.remove(&self.session)
                    && session.admission != SeatAdmission::Local
                    && let Some(shared) = self.table.shared.get()
                {
                    shared.give_back(self.session);
                }
            }
        }
        self.table.returned.notify_waiters();
    }
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seat({} of user {})", self.guard, self.session.0)
    }
}
