//! Slows down guessing: after failures, the next passwords are verified later and later.
//!
//! The delay comes before the password is looked at, so that a right guess takes as long as a wrong one, and no work is
//! done meanwhile. Failures count for the client network and for the name. A *known device* (client network and program)
//! has logged in as the user before; only its own failures count for it, and it has its own share of the queue, so
//! nobody else can slow it down or lock it out.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use config::client_network;
use domain::ids::UserId;
use domain::user::{USERNAME_CHARS_MAX, User};
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout};

use super::passwords::WAIT_MAX;

/// Number of failures without a delay, for typing mistakes.
const UNDELAYED: u32 = 3;
/// Delay after the next failure; it doubles with each further one.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// Number of failures from which the delay is the maximum.
const COUNTED_MAX: u32 = 12;
/// Interval after which one failure is forgotten.
const FORGET_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of logins in progress of one client network, of one known device, and of one name as long as logins of
/// the name are not delayed: more could be guessed from many addresses before the first guess has failed.
const SHARE: u32 = 16;
/// Maximum number of further logins of these that wait for their turn while none of them has to be delayed: the apps of
/// all users behind one address.
const QUEUE: u32 = 512;
/// Maximum number of logins that wait for their turn in all.
const QUEUED_MAX: usize = 1024;
/// Maximum number of counters. Hashing takes so long that fewer failures are possible within the time in which they are
/// forgotten. If it is reached nevertheless, new keys are not counted but delayed as long as possible.
const COUNTERS_MAX: usize = 32_768;
/// Minimum time between two searches for counters that are no longer needed.
const PURGE_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum number of delayed logins.
const DELAYED_MAX: usize = 1024;
/// Maximum number of known devices of one user; the one that has not logged in for the longest time is forgotten.
const DEVICES_MAX: usize = 32;

/// Counts failures and logins in progress, and remembers devices.
pub(super) struct Throttle {
    state: Mutex<State>,
    queued: Semaphore,
    delayed: Semaphore,
    delay_max: Duration,
    /// Random keys of this process, so that nobody can choose names whose counters collide.
    hasher: RandomState,
}

struct State {
    counters: HashMap<u64, Counter>,
    devices: HashMap<UserId, VecDeque<u64>>,
    purged: Instant,
}

struct Counter {
    n_failures: u32,
    /// Logins in progress, and those that wait for their turn.
    n_open: u32,
    /// Time at which the last failure was added or forgotten.
    since: Instant,
    /// One permit for each login in progress. `None` until the first one.
    turns: Option<Arc<Semaphore>>,
}

/// Too many logins are in progress, in total or from this client, or this one has waited too long.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany;

/// The client and the name of a login.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    /// The user of that name, if there is one.
    pub(super) user: Option<UserId>,
    pub(super) username: &'a str,
    pub(super) address: IpAddr,
    pub(super) agent: &'a str,
}

/// A login in progress, whose password may be verified now. Dropped without a result, it counts as failed, because the
/// client may have left while the password was being verified.
pub(super) struct Admitted<'a> {
    throttle: &'a Throttle,
    /// The places that were taken: of the client network or the known device, and of the name.
    places: [Option<Place>; 2],
    /// Keys that a failure counts for.
    counted: [Option<u64>; 2],
    device: u64,
    is_known: bool,
    is_delayed: bool,
}

/// A place among the logins of a client network, a known device or a name.
struct Place {
    key: u64,
    /// `None` while it waits for its turn.
    turn: Option<OwnedSemaphorePermit>,
}

impl Throttle {
    pub(super) fn new(delay_max: Duration) -> Self {
        let state = State { counters: HashMap::new(), devices: HashMap::new(), purged: Instant::now() };
        Self {
            state: Mutex::new(state),
            queued: Semaphore::new(QUEUED_MAX),
            delayed: Semaphore::new(DELAYED_MAX),
            delay_max,
            hasher: RandomState::new(),
        }
    }

    /// Waits until the password of this login may be verified.
    ///
    /// # Errors
    /// Returns an error at once if too many logins are in progress or wait for their turn, and later if this one has
    /// waited too long.
    pub(super) async fn admit(&self, attempt: Attempt<'_>) -> Result<Admitted<'_>, TooMany> {
        let (mut waiting, mut delay) = self.enter(attempt)?;
        while let Some((at, turns)) = waiting.next_turn() {
            let _permit = self.queued.try_acquire().map_err(|_| TooMany)?;
            let turn = timeout(WAIT_MAX, turns.acquire_owned()).await.map_err(|_| TooMany)?;
            // Others may have failed meanwhile.
            delay = self.delay(waiting.begin(at, turn.map_err(|_| TooMany)?));
            if !delay.is_zero() {
                waiting.release_name();
            }
        }
        if !delay.is_zero() {
            let _permit = self.delayed.try_acquire().map_err(|_| TooMany)?;
            tokio::time::sleep(delay).await;
        }
        Ok(waiting.admit(!delay.is_zero()))
    }

    /// Takes a place, and returns it with the delay.
    fn enter(&self, attempt: Attempt<'_>) -> Result<(Waiting<'_>, Duration), TooMany> {
        let name: String = attempt.username.chars().take(USERNAME_CHARS_MAX).collect();
        let network = client_network(attempt.address);
        let of_network = self.hasher.hash_one(("network", network));
        let of_name = self.hasher.hash_one(("name", User::name_key(&name)));
        let device = self.hasher.hash_one(("device", attempt.user.map(|it| it.0), network, attempt.agent));
        let mut state = self.state.lock();
        let is_known =
            attempt.user.and_then(|it| state.devices.get(&it)).is_some_and(|it| it.contains(&device));
        let counted = if is_known { [Some(device), None] } else { [Some(of_network), Some(of_name)] };
        let delay = self.delay(state.most_failures(counted));
        let key = if is_known { device } else { of_network };
        let place = state.open(key, if delay.is_zero() { QUEUE } else { 0 })?;
        // A delayed login takes no place of its name, so that nobody can take all of them.
        let place_of_name = match (!is_known && delay.is_zero()).then(|| state.open(of_name, QUEUE)) {
            Some(Err(error)) => {
                state.close(place);
                return Err(error);
            }
            of_name => of_name.transpose()?,
        };
        drop(state);
        let places = [Some(place), place_of_name];
        let admitted = Admitted { throttle: self, places, counted, device, is_known, is_delayed: false };
        Ok((Waiting(Some(admitted)), delay))
    }

    /// Fails `n` times without waiting, and returns the delays in milliseconds.
    #[cfg(test)]
    pub(super) fn fail(&self, attempt: Attempt<'_>, n: usize) -> Vec<u128> {
        let once = |_| {
            let (waiting, delay) = self.enter(attempt).unwrap();
            drop(waiting.admit(false));
            delay.as_millis()
        };
        (0..n).map(once).collect()
    }

    fn delay(&self, n_failures: u32) -> Duration {
        if n_failures >= COUNTED_MAX {
            return self.delay_max;
        }
        let delay = match n_failures.checked_sub(UNDELAYED) {
            Some(doublings) => FIRST_DELAY.saturating_mul(1 << doublings.min(16)),
            None => Duration::ZERO,
        };
        delay.min(self.delay_max)
    }
}

impl State {
    /// Returns the number of recent failures, up to [`COUNTED_MAX`].
    fn failures(&mut self, key: u64) -> u32 {
        let now = Instant::now();
        if let Some(counter) = self.counters.get_mut(&key) {
            counter.forget(now);
            return counter.n_failures;
        }
        if self.has_room() { 0 } else { COUNTED_MAX }
    }

    /// Returns the largest number of recent failures of some keys.
    fn most_failures(&mut self, keys: [Option<u64>; 2]) -> u32 {
        keys.iter().flatten().map(|key| self.failures(*key)).max().unwrap_or(COUNTED_MAX)
    }

    fn has_room(&mut self) -> bool {
        let now = Instant::now();
        if self.counters.len() >= COUNTERS_MAX && now.duration_since(self.purged) >= PURGE_INTERVAL {
            self.purged = now;
            self.counters.retain(|_, counter| {
                counter.forget(now);
                counter.is_needed()
            });
        }
        self.counters.len() < COUNTERS_MAX
    }

    /// Returns the counter of a key, or `None` if there are too many.
    fn counter(&mut self, key: u64) -> Option<&mut Counter> {
        if !self.counters.contains_key(&key) && !self.has_room() {
            return None;
        }
        let new = || Counter { n_failures: 0, n_open: 0, since: Instant::now(), turns: None };
        Some(self.counters.entry(key).or_insert_with(new))
    }

    /// Takes a place, if at most so many wait for their turn.
    fn open(&mut self, key: u64, n_waiting_max: u32) -> Result<Place, TooMany> {
        let counter = self.counter(key).ok_or(TooMany)?;
        if counter.n_open >= SHARE + n_waiting_max {
            return Err(TooMany);
        }
        counter.n_open += 1;
        let turns = counter.turns.get_or_insert_with(|| Arc::new(Semaphore::new(SHARE as usize)));
        Ok(Place { key, turn: Arc::clone(turns).try_acquire_owned().ok() })
    }

    fn close(&mut self, Place { key, turn }: Place) {
        drop(turn);
        if let Some(counter) = self.counters.get_mut(&key) {
            counter.n_open = counter.n_open.saturating_sub(1);
            counter.forget(Instant::now());
            if !counter.is_needed() {
                self.counters.remove(&key);
            }
        }
    }

    fn fail(&mut self, key: u64) {
        if let Some(counter) = self.counter(key) {
            counter.forget(Instant::now());
            counter.n_failures = (counter.n_failures + 1).min(COUNTED_MAX);
        }
    }

    fn remember(&mut self, user: UserId, device: u64) {
        let devices = self.devices.entry(user).or_default();
        devices.retain(|it| *it != device);
        if devices.len() >= DEVICES_MAX {
            devices.pop_front();
        }
        devices.push_back(device);
    }
}

impl Counter {
    /// Forgets one failure for each interval since the last change.
    fn forget(&mut self, now: Instant) {
        if self.n_failures == 0 {
            self.since = now;
        }
        while self.n_failures > 0 && now.duration_since(self.since) >= FORGET_INTERVAL {
            self.n_failures -= 1;
            self.since += FORGET_INTERVAL;
        }
    }

    fn is_needed(&self) -> bool {
        self.n_failures > 0 || self.n_open > 0
    }
}

/// A place of a login that is still delayed. Dropped, it is given back, and nothing has failed.
struct Waiting<'a>(Option<Admitted<'a>>);

impl<'a> Waiting<'a> {
    /// Returns the next place whose turn this login has to wait for, and where the turn comes from.
    fn next_turn(&self) -> Option<(usize, Arc<Semaphore>)> {
        let waiting = self.0.as_ref()?;
        let is_waiting = |it: &Option<Place>| it.as_ref().is_some_and(|it| it.turn.is_none());
        let at = waiting.places.iter().position(is_waiting)?;
        let key = waiting.places[at].as_ref()?.key;
        Some((at, waiting.throttle.state.lock().counters.get(&key)?.turns.clone()?))
    }

    /// Takes the turn of this place. Returns the number of recent failures.
    fn begin(&mut self, at: usize, turn: OwnedSemaphorePermit) -> u32 {
        let Some(admitted) = &mut self.0 else { return COUNTED_MAX };
        if let Some(place) = &mut admitted.places[at] {
            place.turn = Some(turn);
        }
        admitted.throttle.state.lock().most_failures(admitted.counted)
    }

    /// Gives the place of the name back.
    fn release_name(&mut self) {
        if let Some(admitted) = &mut self.0
            && let Some(place) = admitted.places[1].take()
        {
            admitted.throttle.state.lock().close(place);
        }
    }

    fn admit(mut self, is_delayed: bool) -> Admitted<'a> {
        let mut admitted = self.0.take().expect("taken only here, which consumes it");
        admitted.is_delayed = is_delayed;
        admitted
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(mut admitted) = self.0.take() {
            admitted.counted = [None, None];
        }
    }
}

impl Admitted<'_> {
    /// Returns whether the user has logged in from this device before.
    pub(super) fn is_known(&self) -> bool {
        self.is_known
    }

    /// Returns whether it was delayed because of failures.
    pub(super) fn is_delayed(&self) -> bool {
        self.is_delayed
    }

    /// Gives the place back: the password was not verified.
    pub(super) fn withdraw(mut self) {
        self.counted = [None, None];
    }

    /// Remembers the device: the password was right.
    pub(super) fn succeeded(mut self, user: UserId) {
        self.counted = [None, None];
        self.throttle.state.lock().remember(user, self.device);
    }
}

impl Drop for Admitted<'_> {
    fn drop(&mut self) {
        let mut state = self.throttle.state.lock();
        for key in self.counted.iter().flatten() {
            state.fail(*key);
        }
        for place in self.places.iter_mut().filter_map(Option::take) {
            state.close(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;
    use std::task::Poll;

    use super::*;

    const DELAY_MAX: Duration = Duration::from_secs(10);
    const HOME: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const ANNA: UserId = UserId(1);

    fn address(n: u32) -> IpAddr {
        Ipv4Addr::from_bits(0x0a00_0000 + n).into()
    }

    fn guess(username: &str, address: IpAddr) -> Attempt<'_> {
        Attempt { user: (username == "anna").then_some(ANNA), username, address, agent: "agent" }
    }

    /// Returns the delay of a login without taking a place.
    fn delay(throttle: &Throttle, attempt: Attempt<'_>) -> Duration {
        throttle.enter(attempt).map(|it| it.1).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn delays_of_failures_grow_up_to_the_maximum() {
        let throttle = Throttle::new(DELAY_MAX);
        assert_eq!(
            throttle.fail(guess("anna", HOME), 14),
            [0, 0, 0, 250, 500, 1000, 2000, 4000, 8000, 10_000, 10_000, 10_000, 10_000, 10_000]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn one_failure_is_forgotten_per_minute() {
        let throttle = Throttle::new(DELAY_MAX);
        throttle.fail(guess("anna", HOME), 20);
        tokio::time::advance(FORGET_INTERVAL * 6).await;
        assert_eq!(throttle.fail(guess("anna", HOME), 2), [2000, 4000]);
        tokio::time::advance(FORGET_INTERVAL * 60).await;
        assert_eq!(throttle.fail(guess("anna", HOME), 4), [0, 0, 0, 250]);
    }

    #[tokio::test(start_paused = true)]
    async fn failures_count_for_the_address_and_for_the_name() {
        let throttle = Throttle::new(DELAY_MAX);
        throttle.fail(guess("anna", HOME), 12);
        assert_eq!(delay(&throttle, guess("berta", HOME)), DELAY_MAX, "another name from the same address");
        assert_eq!(
            delay(&throttle, guess("ANNA", address(1))),
            DELAY_MAX,
            "the same name from another address"
        );
        assert_eq!(delay(&throttle, guess("cara", address(2))), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn one_network_of_64_bits_is_one_address() {
        let throttle = Throttle::new(DELAY_MAX);
        for n in 0..12 {
            let (name, address) = (format!("user{n}"), format!("2001:db8:1:2::{n}"));
            throttle.fail(guess(&name, address.parse().unwrap()), 1);
        }
        let of = |name, address: &str| delay(&throttle, guess(name, address.parse().unwrap()));
        assert_eq!(of("x", "2001:db8:1:2:ffff::1"), DELAY_MAX);
        assert_eq!(of("y", "2001:db8:1:3::1"), Duration::ZERO);
    }

    /// Holds T-guess.1.
    #[tokio::test(start_paused = true)]
    async fn a_right_password_of_a_new_device_waits_as_long_as_a_wrong_one() {
        let throttle = Throttle::new(DELAY_MAX);
        throttle.fail(guess("anna", HOME), 12);
        let begun = Instant::now();
        throttle.admit(guess("anna", HOME)).await.ok().unwrap().succeeded(ANNA);
        assert_eq!(begun.elapsed(), DELAY_MAX);
    }

    /// Holds T-guess.2.
    #[tokio::test(start_paused = true)]
    async fn a_known_device_waits_for_its_own_failures_only() {
        let throttle = Throttle::new(DELAY_MAX);
        throttle.admit(guess("anna", HOME)).await.ok().unwrap().succeeded(ANNA);
        let stranger = Attempt { agent: "other", ..guess("anna", HOME) };
        throttle.fail(stranger, 12);
        let held: Vec<_> = (0..SHARE).map(|_| throttle.enter(stranger).ok().unwrap()).collect();
        assert!(throttle.enter(stranger).is_err(), "the network has used its share");
        let begun = Instant::now();
        throttle.admit(guess("anna", HOME)).await.ok().unwrap().succeeded(ANNA);
        assert_eq!(begun.elapsed(), Duration::ZERO);
        drop(held);
        assert_eq!(throttle.fail(guess("anna", HOME), 4), [0, 0, 0, 250], "its own failures count");
        assert_eq!(delay(&throttle, guess("berta", address(1))), Duration::ZERO);
    }

    /// All apps behind one address start at the same moment.
    #[tokio::test(start_paused = true)]
    async fn logins_of_an_address_without_failures_wait_for_their_turn() {
        let throttle = Throttle::new(DELAY_MAX);
        let names: Vec<String> = (0..SHARE + QUEUE).map(|it| format!("user{it}")).collect();
        let mut logins: Vec<_> = names.iter().map(|it| Box::pin(throttle.admit(guess(it, HOME)))).collect();
        let mut admitted = VecDeque::new();
        for (n, login) in (0..).zip(&mut logins) {
            match futures_util::poll!(login.as_mut()) {
                Poll::Ready(it) if n < SHARE => admitted.push_back(it.ok().unwrap()),
                other => assert!(n >= SHARE && other.is_pending(), "{n}"),
            }
        }
        assert!(throttle.admit(guess("one more", HOME)).await.is_err());
        assert!(throttle.admit(guess("elsewhere", address(1))).await.is_ok());
        for login in logins.drain(SHARE as usize..) {
            admitted.pop_front().unwrap().withdraw();
            admitted.push_back(login.await.ok().unwrap());
        }
        drop(admitted);
        assert_eq!(delay(&throttle, guess("user0", HOME)), DELAY_MAX, "the last ones failed");
    }

    /// Waiting neither avoids the delay nor holds places of others.
    #[tokio::test(start_paused = true)]
    async fn a_login_that_waited_for_its_turn_is_delayed_by_failures_meanwhile() {
        let throttle = Throttle::new(DELAY_MAX);
        let mut held: Vec<_> = (0..SHARE).map(|_| throttle.enter(guess("anna", HOME)).unwrap().0).collect();
        let mut next = Box::pin(throttle.admit(guess("berta", HOME)));
        assert!(futures_util::poll!(next.as_mut()).is_pending());
        held.drain(..12).for_each(|it| drop(it.admit(false)));
        let begun = Instant::now();
        let next = next.await.ok().unwrap();
        assert_eq!((begun.elapsed(), next.is_delayed()), (DELAY_MAX, true));
        drop(next);
        let held: Vec<_> =
            (4..SHARE).map(|_| throttle.enter(guess("anna", HOME)).unwrap().0).chain(held).collect();
        assert!(throttle.enter(guess("cara", HOME)).is_err(), "nobody waits after failures");
        drop(held);
    }

    /// Holds T-guess.1.
    #[tokio::test(start_paused = true)]
    async fn a_name_is_guessed_a_few_times_only_before_its_guesses_are_delayed() {
        let throttle = Throttle::new(DELAY_MAX);
        let mut guesses: Vec<_> =
            (0..200).map(|it| Box::pin(throttle.admit(guess("anna", address(it))))).collect();
        let mut begun = Vec::new();
        for it in &mut guesses {
            if let Poll::Ready(guess) = futures_util::poll!(it.as_mut()) {
                begun.push(guess.ok().unwrap());
            }
        }
        assert_eq!(begun.len(), SHARE as usize);
        drop(begun);
        let at = Instant::now();
        for guess in futures_util::future::join_all(guesses.drain(SHARE as usize..)).await {
            let guess = guess.ok().unwrap();
            assert!(guess.is_delayed());
            guess.withdraw();
        }
        assert_eq!(at.elapsed(), DELAY_MAX);
        // A new device of the user is delayed as well, and not kept out.
        assert_eq!(delay(&throttle, guess("anna", HOME)), DELAY_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_turn_that_never_comes_is_not_waited_for_without_end() {
        let throttle = Throttle::new(DELAY_MAX);
        let _held: Vec<_> = (0..SHARE).map(|_| throttle.enter(guess("anna", HOME)).unwrap().0).collect();
        let begun = Instant::now();
        assert!(throttle.admit(guess("berta", HOME)).await.is_err());
        assert_eq!(begun.elapsed(), WAIT_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn a_login_counts_as_failed_only_once_its_password_is_being_verified() {
        let throttle = Throttle::new(DELAY_MAX);
        for _ in 0..10 {
            drop(throttle.enter(guess("anna", HOME)).ok().unwrap().0);
        }
        assert_eq!(throttle.state.lock().counters.len(), 0, "nothing is kept of it");
        for _ in 0..4 {
            drop(throttle.admit(guess("anna", HOME)).await.ok().unwrap());
        }
        assert_eq!(delay(&throttle, guess("anna", HOME)).as_millis(), 500);
    }

    #[tokio::test(start_paused = true)]
    async fn the_counters_are_bounded_and_drop_old_entries() {
        let throttle = Throttle::new(DELAY_MAX);
        for n in 0..u32::try_from(COUNTERS_MAX).unwrap() {
            throttle.state.lock().fail(n.into());
        }
        assert_eq!(throttle.state.lock().counters.len(), COUNTERS_MAX);
        assert!(throttle.enter(guess("one more", HOME)).is_err(), "there is no room to count it");
        tokio::time::advance(FORGET_INTERVAL).await;
        assert_eq!(delay(&throttle, guess("one more", HOME)), Duration::ZERO);
        assert!(throttle.state.lock().counters.len() < 10);
    }

    #[tokio::test(start_paused = true)]
    async fn a_user_has_a_limited_number_of_known_devices_and_the_oldest_is_forgotten() {
        let throttle = Throttle::new(DELAY_MAX);
        let agents: Vec<_> = (0..=DEVICES_MAX).map(|it| it.to_string()).collect();
        let login =
            async |agent| throttle.admit(Attempt { agent, ..guess("anna", HOME) }).await.ok().unwrap();
        for agent in &agents {
            login(agent).await.succeeded(ANNA);
        }
        assert!(!login(&agents[0]).await.is_known());
        assert!(login(&agents[1]).await.is_known() && login(&agents[DEVICES_MAX]).await.is_known());
        assert_eq!(throttle.state.lock().devices[&ANNA].len(), DEVICES_MAX);
    }

    #[tokio::test(start_paused = true)]
    async fn the_number_of_delayed_logins_is_limited() {
        let throttle = Throttle::new(DELAY_MAX);
        throttle.fail(guess("anna", HOME), 12);
        let admit = |n: usize| Box::pin(throttle.admit(guess("anna", address(n as u32))));
        let mut held: Vec<_> = (0..DELAYED_MAX).map(admit).collect();
        for it in &mut held {
            assert!(futures_util::poll!(it.as_mut()).is_pending());
        }
        assert!(admit(DELAYED_MAX).await.is_err());
        let begun = Instant::now();
        assert!(held.pop().unwrap().await.is_ok());
        assert_eq!(begun.elapsed(), DELAY_MAX);
        assert!(futures_util::poll!(admit(DELAYED_MAX)).is_pending(), "a place is free again");
    }
}
