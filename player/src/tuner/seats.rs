//! The tuners that are in use: an emulated device offers a number of simultaneous streams, and no more.
//!
//! The addresses in a lineup are the same as everywhere else, so that they stay valid. A stream therefore takes a tuner
//! if its client is known to use one: it has no user, and its network address has read a lineup or a device since the
//! start of the gateway. All connections of one program that play the same channel take one tuner, because clients
//! probe before they play.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use actors::Target;
use config::client_network;
use domain::tuner::DeviceKey;
use parking_lot::Mutex;
use route_frame::call::Call;
use server::caller::Caller;
use tokio::sync::Notify;
use tokio::time::{Instant, timeout_at};

/// Maximum number of client networks that are known to use a tuner. Beyond it, the one that has read nothing for the
/// longest time is forgotten.
const CLIENTS_MAX: usize = 1024;
/// Maximum number of devices that are remembered for one client network.
const DEVICES_MAX: usize = 8;
/// Maximum wait for a tuner: clients open the next stream before the last one is closed.
const TUNER_WAIT: Duration = Duration::from_secs(1);

/// All tuners of the client are in use.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TunersTaken {
    /// Number of tuners of the devices that the client uses.
    pub count: u32,
}

/// The tuners of all devices that are in use, and the clients that use tuners. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct TunerSeats {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Notified when a tuner is released.
    released: Notify,
}

#[derive(Default)]
struct State {
    /// The devices of each client network, the one that it has read last first.
    clients: HashMap<IpAddr, VecDeque<DeviceKey>>,
    /// The client networks, the one that has read last at the end.
    order: VecDeque<IpAddr>,
    /// Bounded by the number of connections.
    sessions: Vec<Session>,
    last_id: u64,
}

/// A program that plays a channel.
struct Session {
    id: u64,
    device: DeviceKey,
    address: IpAddr,
    agent: String,
    target: Target,
    n_connections: usize,
}

/// The share of one connection in a tuner. Dropping it releases the share.
pub(crate) struct TunerSeat {
    shared: Arc<Shared>,
    session: u64,
}

impl TunerSeats {
    /// Notes that the caller uses a device, unless a user is logged in: users have limits of their own.
    pub(super) fn note_client(&self, call: &Call, device: DeviceKey) {
        if call.user().is_err() {
            self.note(call.caller.address(), device);
        }
    }

    fn note(&self, address: IpAddr, device: DeviceKey) {
        let network = client_network(address);
        let mut state = self.shared.state.lock();
        let State { clients, order, .. } = &mut *state;
        let devices = clients.entry(network).or_default();
        devices.retain(|it| *it != device);
        devices.push_front(device);
        devices.truncate(DEVICES_MAX);
        order.retain(|it| *it != network);
        order.push_back(network);
        if order.len() > CLIENTS_MAX
            && let Some(oldest) = order.pop_front()
        {
            clients.remove(&oldest);
        }
    }

    /// Returns whether this caller is known to use a tuner.
    pub(crate) fn is_client(&self, caller: &Caller) -> bool {
        self.shared.state.lock().clients.contains_key(&client_network(caller.address()))
    }

    /// Takes a tuner for a connection of a caller without a user, and waits for it at most [`TUNER_WAIT`]. `None` if the
    /// caller uses no tuner. `count` returns the number of tuners of a device that still exists.
    ///
    /// # Errors
    /// No tuner was released in time.
    pub(crate) async fn take(
        &self,
        caller: &Caller,
        target: Target,
        count: impl Fn(DeviceKey) -> Option<u32>,
    ) -> Result<Option<TunerSeat>, TunersTaken> {
        let deadline = Instant::now() + TUNER_WAIT;
        loop {
            // Created before the check, so that no release in between is missed.
            let released = self.shared.released.notified();
            tokio::pin!(released);
            released.as_mut().enable();
            match self.take_now(caller.address(), &caller.agent, target, &count) {
                Err(taken) if timeout_at(deadline, released).await.is_err() => return Err(taken),
                Err(_) => {}
                seat => return seat,
            }
        }
    }

    fn take_now(
        &self,
        address: IpAddr,
        agent: &str,
        target: Target,
        count: impl Fn(DeviceKey) -> Option<u32>,
    ) -> Result<Option<TunerSeat>, TunersTaken> {
        let mut state = self.shared.state.lock();
        let seat = |session| Ok(Some(TunerSeat { shared: Arc::clone(&self.shared), session }));
        let is_same = |it: &&mut Session| it.address == address && it.agent == agent && it.target == target;
        if let Some(session) = state.sessions.iter_mut().find(is_same) {
            session.n_connections += 1;
            return seat(session.id);
        }
        let devices = state.clients.get(&client_network(address));
        let counts: Vec<(DeviceKey, u32)> =
            devices.into_iter().flatten().filter_map(|it| Some((*it, count(*it)?))).collect();
        let n_used = |device| state.sessions.iter().filter(|it| it.device == device).count();
        let free = counts.iter().find(|(device, count)| n_used(*device) < *count as usize);
        let Some((device, _)) = free else {
            let count = counts.iter().map(|it| it.1).sum();
            return if counts.is_empty() { Ok(None) } else { Err(TunersTaken { count }) };
        };
        let device = *device;
        state.last_id += 1;
        let id = state.last_id;
        let agent = agent.to_owned();
        state.sessions.push(Session { id, device, address, agent, target, n_connections: 1 });
        seat(id)
    }
}

impl Drop for TunerSeat {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state.lock();
            if let Some(at) = state.sessions.iter().position(|it| it.id == self.session) {
                state.sessions[at].n_connections -= 1;
                if state.sessions[at].n_connections == 0 {
                    state.sessions.swap_remove(at);
                }
            }
        }
        self.shared.released.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::{LineupId, StreamId};

    use super::*;

    const KIDS: DeviceKey = DeviceKey::Lineup(LineupId(1));

    fn address(n: u32) -> IpAddr {
        std::net::Ipv4Addr::from_bits(0x0a00_0000 + n).into()
    }

    fn take(seats: &TunerSeats, from: u32, target: u32) -> Result<Option<TunerSeat>, TunersTaken> {
        let count = |device| match device {
            DeviceKey::Main => Some(2),
            DeviceKey::Lineup(_) => Some(1),
            DeviceKey::Additional(_) => None,
        };
        seats.take_now(address(from), "Lavf", Target::Stream(StreamId(target)), count)
    }

    fn taken(result: Result<Option<TunerSeat>, TunersTaken>) -> Option<TunersTaken> {
        result.err()
    }

    #[test]
    fn a_client_gets_as_many_tuners_as_its_devices_have() {
        let seats = TunerSeats::default();
        assert!(take(&seats, 1, 1).unwrap().is_none(), "no client of a tuner");
        seats.note(address(1), DeviceKey::Main);
        let first = take(&seats, 1, 1).unwrap();
        let _second = take(&seats, 1, 2).unwrap().unwrap();
        let same = take(&seats, 1, 2).unwrap();
        assert_eq!(taken(take(&seats, 1, 3)), Some(TunersTaken { count: 2 }));
        // Another client shares the tuners of the device, and one that uses none is not limited.
        seats.note(address(2), DeviceKey::Main);
        assert!(taken(take(&seats, 2, 1)).is_some());
        assert!(take(&seats, 3, 1).unwrap().is_none());
        // A client of two devices has the tuners of both.
        seats.note(address(1), KIDS);
        let _third = take(&seats, 1, 3).unwrap().unwrap();
        assert_eq!(taken(take(&seats, 1, 4)), Some(TunersTaken { count: 3 }));

        drop(same);
        assert!(taken(take(&seats, 2, 1)).is_some(), "its tuner has another connection");
        drop(first);
        assert!(take(&seats, 2, 1).unwrap().is_some());
    }

    #[test]
    fn a_device_that_is_gone_limits_nobody() {
        let seats = TunerSeats::default();
        seats.note(address(1), DeviceKey::Additional(domain::ids::TunerDeviceId(1)));
        assert!(take(&seats, 1, 1).unwrap().is_none());
    }

    #[test]
    fn the_number_of_known_clients_is_limited_and_the_oldest_is_forgotten() {
        let seats = TunerSeats::default();
        for n in 0..=CLIENTS_MAX as u32 {
            seats.note(address(0), DeviceKey::Main);
            seats.note(address(n), DeviceKey::Main);
        }
        let state = seats.shared.state.lock();
        assert_eq!((state.clients.len(), state.order.len()), (CLIENTS_MAX, CLIENTS_MAX));
        assert!(state.clients.contains_key(&address(0)) && !state.clients.contains_key(&address(1)));
    }
}
