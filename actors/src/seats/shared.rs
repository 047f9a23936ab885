//! Seats of a node of a cluster: the sessions of a user with a limit are those of all nodes.
//!
//! ```text
//!   take_soon ── TakeSeat ──▶ the member's task ──▶ the engine
//!       ▲                           │ Seated, NotSeated, EndSession
//!       └──── SeatTable ◀───────────┘
//! ```
//!
//! The table lists a session from the moment at which it is asked for, so that a second connection of the same device waits
//! for the same answer. Users without a limit are not passed through the cluster.

use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::cluster::record::SeatEnd;
use domain::cluster::rules::SEAT_ANSWER;
use domain::cluster::seats::SeatRequest as ClusterSeatRequest;
use domain::cluster::{NodeEffect, NodeInput};
use domain::ids::UserId;
use domain::limits::SeatRules;
use media::meter::Connection;
use sha2::{Digest, Sha256};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::time::Instant;
use uuid::Uuid;

use super::{
    Inner, OVER_LIMIT, REPLACED, SEAT_WAIT, Seat, SeatRequest, SeatTable, SeatsTaken, Session, cancel, info,
};
use crate::cluster::{BootTimeReader, ClusterLink};
use crate::plans::Target;
use crate::tasks::{self, RespawnedTask};
use crate::viewer::Viewer;

/// Longest wait for an answer. The member answers without the engine after [`SEAT_ANSWER`]; later, there is none, and the
/// sessions of this node decide.
const ANSWER_MAX: Duration = SEAT_ANSWER.saturating_add(SEAT_WAIT);

/// The means by which a system shares the limits of users with the other nodes.
#[derive(Debug)]
pub struct SeatParts {
    pub link: ClusterLink,
    /// The effects about seats.
    pub effects: UnboundedReceiver<NodeEffect>,
}

/// The way to the member.
pub(super) struct SharedSeats {
    link: ClusterLink,
    clock: BootTimeReader,
    _following: RespawnedTask,
}

/// The answer of the cluster to a request for a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeatAnswer {
    Granted,
    Refused,
}

/// Whether the cluster admits a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SeatAdmission {
    /// The session was not passed through the cluster.
    Local,
    Awaited,
    Answered(SeatAnswer),
}

/// The first step of a request.
enum Begun {
    /// The connection belongs to a session that has begun.
    Seated(Seat),
    New(Seat, ClusterSeatRequest),
}

impl SharedSeats {
    /// Ends a session, or a request for one.
    pub(super) fn give_back(&self, (user, seat): (UserId, u64)) {
        self.link.send(NodeInput::ReturnSeat { user, seat });
    }
}

impl SeatTable {
    /// Lets the cluster decide about the sessions of users with a limit, from the next one on. Only the first call has an
    /// effect.
    pub(crate) fn share(self: &Arc<Self>, parts: SeatParts, clock: BootTimeReader) {
        let SeatParts { link, effects } = parts;
        let (me, effects) = (Arc::downgrade(self), Arc::new(tokio::sync::Mutex::new(effects)));
        let following = tasks::respawn("the seats of the cluster", move || {
            let (me, effects) = (me.clone(), effects.clone());
            async move { follow(&me, &mut *effects.lock().await).await }
        });
        let _ = self.shared.set(SharedSeats { link, clock, _following: following });
    }

    /// Takes a seat through the cluster.
    pub(super) async fn take_shared(
        self: &Arc<Self>,
        shared: &SharedSeats,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
        rules: SeatRules,
    ) -> Result<Seat, SeatsTaken> {
        let until = Instant::now() + ANSWER_MAX;
        let begin = || self.begin(shared, request, viewer, target, connection, rules).ok_or(());
        let seat = match self.wait_for(until, begin).await {
            Ok(Begun::Seated(seat)) => return Ok(seat),
            Ok(Begun::New(seat, of_cluster)) => {
                let (user, number) = seat.session;
                shared.link.send(NodeInput::TakeSeat { user, seat: number, request: of_cluster });
                seat
            }
            Err(()) => return Err(self.taken(request.user)),
        };
        match self.wait_for(until, || self.answer(seat.session).ok_or(())).await {
            Ok(SeatAnswer::Granted) => Ok(seat),
            Ok(SeatAnswer::Refused) => {
                drop(seat);
                Err(self.taken(request.user))
            }
            Err(()) => {
                drop(seat);
                self.take(request, viewer, target, connection, rules)
            }
        }
    }

    /// Adds a connection to the session of its device, or a new session. `None`: the session waits for its answer.
    fn begin(
        self: &Arc<Self>,
        shared: &SharedSeats,
        request: SeatRequest,
        viewer: &Viewer,
        target: Target,
        connection: &Arc<Connection>,
        rules: SeatRules,
    ) -> Option<Begun> {
        let SeatRequest { user, limit } = request;
        let mut inner = self.inner.lock();
        let is_same = |it: &Session| it.is_of(viewer) && it.target == target;
        let same = inner.user_sessions(user).find(|(_, it)| is_same(it) && !it.is_refused()).map(|it| it.0);
        let (session, of_cluster) = match same.and_then(|id| Some((id, inner.sessions.get(&(user, id))?))) {
            Some((_, it)) if it.admission == SeatAdmission::Awaited => return None,
            Some((id, _)) => (id, None),
            None => {
                let ends_others = rules.user_limits.terminate_on_limit_exceeded;
                let of_cluster = ClusterSeatRequest {
                    limit,
                    device: identity(&[&viewer.address.to_string(), &viewer.agent]),
                    target: identity(&[&format!("{target:?}")]),
                    rules,
                    shared: if ends_others { inner.targets_of_others(user) } else { Arc::default() },
                    until: shared.clock.now() + SEAT_WAIT,
                };
                (inner.last_id + 1, Some(of_cluster))
            }
        };
        inner.last_id += 1;
        let guard = inner.last_id;
        let admission = SeatAdmission::Awaited;
        let entry = inner.sessions.entry((user, session));
        let entry = entry.or_insert_with(|| Session { admission, ..Session::new(viewer, target) });
        entry.connections.insert(guard, connection.clone());
        drop(inner);
        let seat = Seat { table: self.clone(), session: (user, session), guard };
        Some(match of_cluster {
            Some(of_cluster) => Begun::New(seat, of_cluster),
            None => Begun::Seated(seat),
        })
    }

    fn answer(&self, session: (UserId, u64)) -> Option<SeatAnswer> {
        match self.inner.lock().sessions.get(&session)?.admission {
            SeatAdmission::Answered(it) => Some(it),
            SeatAdmission::Local | SeatAdmission::Awaited => None,
        }
    }

    fn set_answer(&self, session: (UserId, u64), answer: SeatAnswer) {
        // Without a session, it was given back.
        if let Some(it) = self.inner.lock().sessions.get_mut(&session) {
            it.admission = SeatAdmission::Answered(answer);
        }
        self.returned.notify_waiters();
    }

    /// Returns the sessions of a user on this node, as those that take all seats.
    fn taken(&self, user: UserId) -> SeatsTaken {
        let mut inner = self.inner.lock();
        let seated = inner.user_sessions(user).filter(|it| it.1.has_begun());
        SeatsTaken { by: seated.map(|(_, it)| info(user, it)).collect() }
    }

    fn on_effect(&self, effect: &NodeEffect) {
        match *effect {
            NodeEffect::Seated { user, seat, .. } => self.set_answer((user, seat), SeatAnswer::Granted),
            NodeEffect::NotSeated { user, seat } => self.set_answer((user, seat), SeatAnswer::Refused),
            NodeEffect::EndSession { user, seat, why } => {
                let why = match why {
                    SeatEnd::Replaced => REPLACED,
                    SeatEnd::OverLimit => OVER_LIMIT,
                };
                let ended = self.inner.lock().end((user, seat), why);
                cancel(ended);
            }
            _ => {}
        }
    }
}

impl Inner {
    /// Returns what other users watch on this node.
    fn targets_of_others(&self, user: UserId) -> Arc<[Uuid]> {
        let others = self.sessions.iter().filter(|(key, it)| key.0 != user && it.ended.is_none());
        others.map(|(_, it)| identity(&[&format!("{:?}", it.target)])).collect()
    }
}

/// Passes the effects on, until the table is not needed any more.
async fn follow(table: &Weak<SeatTable>, effects: &mut UnboundedReceiver<NodeEffect>) {
    while let Some(effect) = effects.recv().await {
        let Some(table) = table.upgrade() else { return };
        table.on_effect(&effect);
    }
}

/// Returns a number that stands for these texts on all nodes.
fn identity(texts: &[&str]) -> Uuid {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    Uuid::from_bytes(bytes)
}
