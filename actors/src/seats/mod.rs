//! The users' limit: nobody with a user watches without a seat.
//!
//! A *session* is one device (address and program) of a user watching one target; it holds one seat, however many
//! connections it has: players probe and play, and open again before they close. The [`SeatTable`] is a plain value
//! owned by the system: the sessions there are. A [`Seat`] is one connection's guard on it, carried by the tail, so
//! that a session lasts exactly as long as something can reach one of its connections; there is no counter.
//!
//! Every user has seats, also without a limit: whoever may no longer watch is ended by them.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::UserId;
use domain::limits::{self, SeatDecision, SeatHolder};
use domain::settings::AtLimit;
use media::meter::Connection;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::plans::Target;
use crate::viewer::Viewer;

/// How long a request waits for a seat when there is none. A player that closes one thing and opens another with a
/// different program is often here before the end of the first connection is.
pub(crate) const SEAT_WAIT: Duration = Duration::from_secs(1);

/// Why the session ended whose device went on to something else.
const REPLACED: &str = "replaced by the same device";

/// Why the sessions ended of a user who was deleted or made inactive.
const NOT_ALLOWED: &str = "its user may no longer watch";

/// Whose seat a viewer needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeatRequest {
    /// The user.
    pub user: UserId,
    /// Things this user may watch at one time; 0 is no limit.
    pub limit: u32,
}

/// One session as it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct SeatInfo {
    /// Whose seat it holds.
    pub user: UserId,
    /// Where the device is.
    pub address: IpAddr,
    /// Its `User-Agent`.
    pub agent: String,
    /// What it watches.
    pub target: Target,
    /// For how long.
    pub age: Duration,
    /// Connections it has.
    pub n_connections: usize,
}

struct Session {
    address: IpAddr,
    agent: String,
    target: Target,
    since: Instant,
    /// By the number of their guards; never empty.
    connections: BTreeMap<u64, Arc<Connection>>,
    /// Why it was ended. It counts no more; its connections are on their way out.
    ended: Option<&'static str>,
}

impl Session {
    fn is_of(&self, viewer: &Viewer) -> bool {
        self.address == viewer.address && self.agent == viewer.agent
    }

    /// Marks it as ended; its connections are to be cancelled, outside of the lock.
    fn end(&mut self, why: &'static str) -> impl Iterator<Item = Arc<Connection>> {
        self.ended = Some(why);
        self.connections.values().cloned()
    }
}

#[derive(Default)]
struct Inner {
    /// By user and age: a later session has a higher number. Bounded by the connections there are.
    sessions: BTreeMap<(UserId, u64), Session>,
    last_id: u64,
}

impl Inner {
    fn of_user(&mut self, user: UserId) -> impl Iterator<Item = (u64, &mut Session)> {
        let all = self.sessions.range_mut((user, 0)..=(user, u64::MAX));
        all.map(|(key, session)| (key.1, session)).filter(|it| it.1.ended.is_none())
    }
}

/// Who watches what: a plain value owned by the system. Seats are guards on it.
#[derive(Default)]
pub(crate) struct SeatTable {
    inner: Mutex<Inner>,
    /// Rung at every return.
    returned: Notify,
}

/// Every seat of a user is taken: these sessions have them, oldest first.
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
    /// An empty table.
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self::default())
    }

    /// Takes a seat for a connection in one step: a share of the session's own, a free one, or under
    /// [`AtLimit::ReplaceOwn`] that of something else the same device watches, which is ended.
    ///
    /// # Errors
    /// With the sessions that have the seats, when there is none; nobody was ended then.
    pub(crate) fn take(
        self: &Arc<Self>,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
        at_limit: AtLimit,
    ) -> Result<Seat, SeatsTaken> {
        let SeatRequest { user, limit } = request;
        let mut replaced = Vec::new();
        let mut inner = self.inner.lock();
        inner.last_id += 1;
        let guard = inner.last_id;
        let held: Vec<_> = inner.of_user(user).map(|(id, it)| (id, seated(it, viewer, target))).collect();
        let seated: Vec<_> = held.iter().map(|it| it.1).collect();
        let session = match limits::decide_seat(limit, &seated, at_limit) {
            SeatDecision::Share(index) => held[index].0,
            SeatDecision::Full => {
                let by = inner.of_user(user).map(|(_, it)| info(user, it)).collect();
                return Err(SeatsTaken { by });
            }
            SeatDecision::Take => guard,
            SeatDecision::Replace(own) => {
                for index in own {
                    if let Some(session) = inner.sessions.get_mut(&(user, held[index].0)) {
                        replaced.extend(session.end(REPLACED));
                    }
                }
                guard
            }
        };
        let new = || Session {
            address: viewer.address,
            agent: viewer.agent.clone(),
            target,
            since: Instant::now(),
            connections: BTreeMap::new(),
            ended: None,
        };
        let entry = inner.sessions.entry((user, session)).or_insert_with(new);
        entry.connections.insert(guard, connection.clone());
        drop(inner);
        cancel(replaced);
        Ok(Seat { table: self.clone(), session: (user, session), guard })
    }

    /// The same, after waiting for a seat for at most [`SEAT_WAIT`].
    ///
    /// # Errors
    /// With the sessions that have the seats, when none came back.
    pub(crate) async fn take_soon(
        self: &Arc<Self>,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
        at_limit: AtLimit,
    ) -> Result<Seat, SeatsTaken> {
        let deadline = Instant::now() + SEAT_WAIT;
        loop {
            // Made before looking, so that no return is missed in between.
            let returned = self.returned.notified();
            tokio::pin!(returned);
            returned.as_mut().enable();
            match self.take(request, viewer, target, connection, at_limit) {
                Err(taken) if tokio::time::timeout_at(deadline, returned).await.is_err() => {
                    return Err(taken);
                }
                Err(_) => {}
                seat => return seat,
            }
        }
    }

    /// Ends every session whose user may no longer watch.
    pub(crate) fn keep_users(&self, may_watch: impl Fn(UserId) -> bool) {
        let mut users: Vec<_> = self.inner.lock().sessions.keys().map(|it| it.0).collect();
        users.dedup();
        for user in users.into_iter().filter(|it| !may_watch(*it)) {
            let ended: Vec<_> = {
                let mut inner = self.inner.lock();
                inner.of_user(user).flat_map(|(_, it)| it.end(NOT_ALLOWED)).collect()
            };
            cancel(ended);
        }
    }

    /// Sessions that count.
    pub(crate) fn len(&self) -> usize {
        self.inner.lock().sessions.values().filter(|it| it.ended.is_none()).count()
    }

    /// Every session that counts.
    pub(crate) fn all(&self) -> Vec<SeatInfo> {
        let inner = self.inner.lock();
        let counting = inner.sessions.iter().filter(|it| it.1.ended.is_none());
        counting.map(|((user, _), session)| info(*user, session)).collect()
    }
}

/// How a session looks to a viewer of the same user.
fn seated(session: &Session, viewer: &Viewer, target: Target) -> SeatHolder {
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

/// A body whose socket is full is never polled: closing the connection is the only way to end it, and it also ends
/// a request that still waits for its answer.
fn cancel(connections: Vec<Arc<Connection>>) {
    for connection in connections {
        connection.cancel.cancel();
    }
}

/// One connection's share of its session's seat. Returned by dropping it; there is no other way.
pub(crate) struct Seat {
    table: Arc<SeatTable>,
    session: (UserId, u64),
    guard: u64,
}

impl Seat {
    /// Whose it is.
    pub(crate) fn user(&self) -> UserId {
        self.session.0
    }

    /// Why its session was ended by us, if it was.
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
                if session.connections.is_empty() {
                    inner.sessions.remove(&self.session);
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
