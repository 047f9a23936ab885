//! The viewers, each with a strict reader.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::time::Duration;

use domain::ids::UserId;
use media::meter::Connection;
use media::ring::{EndReason, Tail};
use media::testing::TsReader;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::environment::{DAY_CHANNEL, Environment, NIGHT_CHANNEL, ZAPPED};
use super::{MINUTE, SECOND};
use crate::channel::{WatchRefusal, WatchReply};
use crate::seats::SeatRequest;
use crate::testing::channel;

/// The shared record of all viewers.
#[derive(Default)]
pub(super) struct ViewerLog {
    /// Unexpected observations.
    wrong: Mutex<Vec<String>>,
    n_asking: AtomicUsize,
    pub(super) n_served: AtomicU64,
    pub(super) n_full: AtomicU64,
    pub(super) n_no_seat: AtomicU64,
    pub(super) n_bytes: AtomicU64,
}

/// All viewers.
pub(super) struct Viewers {
    pub(super) log: Arc<ViewerLog>,
    day: Arc<Mutex<TsReader>>,
    /// The clock lead of the all-day viewer near the start.
    first_lead_ms: Mutex<Option<i64>>,
    tasks: Vec<JoinHandle<()>>,
}

/// A viewer.
#[derive(Clone)]
struct SimulatedViewer {
    environment: Arc<Environment>,
    log: Arc<ViewerLog>,
    name: &'static str,
    /// State of the random numbers, the same in every run.
    random_state: u64,
}

/// Reason why a viewer stopped.
#[derive(Debug, PartialEq)]
enum Left {
    /// The planned time was over.
    Enough,
    /// The gateway closed the connection.
    Closed,
    /// The stream ended.
    Ended(EndReason),
}

impl Viewers {
    pub(super) fn start(environment: &Arc<Environment>, hours: u32) -> Self {
        let log = Arc::new(ViewerLog::default());
        let day = Arc::new(Mutex::new(TsReader::default()));
        let end = Instant::now() + hours * 60 * MINUTE + 10 * MINUTE;
        let person = |name: &'static str| SimulatedViewer {
            environment: environment.clone(),
            log: log.clone(),
            name,
            random_state: name.bytes().map(u64::from).sum(),
        };
        let tasks = vec![
            tokio::spawn(person("all day").watch_all_day(day.clone(), end)),
            tokio::spawn(person("nights").watch_at_night()),
            tokio::spawn(person("zapper").zap()),
            tokio::spawn(person("prober").probe_and_play()),
            tokio::spawn(person("returning").leave_and_return()),
            tokio::spawn(person("seated").use_two_devices_with_one_seat()),
        ];
        Self { log, day, first_lead_ms: Mutex::new(None), tasks }
    }

    /// Checks that no viewer observed an error, and that the permanent viewers still watch.
    pub(super) fn check(&self) {
        let wrong = self.log.wrong.lock();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(self.tasks.iter().all(|it| !it.is_finished()), "a viewer stopped too early");
    }

    /// Returns the drift of the programme clock against the wall clock for the all-day viewer.
    pub(super) fn day_lead_ms(&self) -> i64 {
        let lead = self.day.lock().lead_ms();
        lead - *self.first_lead_ms.lock().get_or_insert(lead)
    }

    /// Returns how much the all-day viewer received, and when last.
    pub(super) fn day(&self) -> (u64, Duration, Option<Duration>) {
        let day = self.day.lock();
        (day.n_wraps(), day.programme(), day.newest_at())
    }

    pub(super) fn n_asking(&self) -> usize {
        self.log.n_asking.load(Relaxed)
    }

    /// Disconnects all viewers.
    pub(super) async fn disconnect(&self) {
        for task in &self.tasks {
            task.abort();
        }
        sleep(SECOND).await;
    }
}

impl SimulatedViewer {
    /// Returns a pseudo-random number from 0 to below `most`.
    fn chance(&mut self, most: u64) -> u64 {
        self.random_state =
            self.random_state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random_state >> 33) % most
    }

    fn wrong(&self, what: impl std::fmt::Debug) {
        let mut wrong = self.log.wrong.lock();
        // The first observations are enough.
        if wrong.len() < 10 {
            wrong.push(format!("{} at {:?}: {what:?}", self.name, self.environment.time()));
        }
    }

    /// Requests to watch as a named user on this device; a refusal because of a missing slot or seat is counted.
    async fn ask(
        &self,
        number: u32,
        device: &str,
        seat: Option<SeatRequest>,
    ) -> Option<(Tail, Arc<Connection>)> {
        self.log.n_asking.fetch_add(1, Relaxed);
        let scenario = &self.environment.scenario;
        let (answer, connection) = match seat {
            Some(seat) => scenario.ask_seated(channel(number), seat, device).await,
            None => scenario.ask_as(channel(number), Some(self.name), device).await,
        };
        let taken = match answer {
            WatchReply::Tail { mut tail, .. } => {
                tail.ready().await.map(|()| tail).map_err(|end| format!("{end:?}"))
            }
            WatchReply::Refused(refusal) => Err(match refusal {
                WatchRefusal::Full(_) => "NoSlot".to_owned(),
                WatchRefusal::Seats { .. } => "NoSeat".to_owned(),
                other => other.to_string(),
            }),
            other => Err(format!("{other:?}")),
        };
        self.log.n_asking.fetch_sub(1, Relaxed);
        match taken {
            Ok(tail) => {
                self.log.n_served.fetch_add(1, Relaxed);
                return Some((tail, connection));
            }
            Err(why) if why.starts_with("NoSlot") => self.log.n_full.fetch_add(1, Relaxed),
            Err(why) if why == "NoSeat" => self.log.n_no_seat.fetch_add(1, Relaxed),
            Err(why) => {
                self.wrong((number, why));
                0
            }
        };
        None
    }

    /// Reads until the given time, and checks the data against the standard.
    async fn watch(
        &self,
        (mut tail, connection): (Tail, Arc<Connection>),
        reader: &Mutex<TsReader>,
        until: Instant,
    ) -> Left {
        let reading = async {
            loop {
                let bytes = match tail.chunk().await {
                    Ok(bytes) => bytes,
                    Err(end) => return Left::Ended(end),
                };
                self.log.n_bytes.fetch_add(bytes.len() as u64, Relaxed);
                if let Err(what) = reader.lock().read(&bytes, self.environment.time()) {
                    self.wrong(what);
                }
            }
        };
        tokio::select! {
            biased;
            () = connection.cancel.cancelled() => Left::Closed,
            left = reading => left,
            () = sleep_until(until) => Left::Enough,
        }
    }

    /// Watches a channel for some time. Returns whether it played.
    async fn watch_for(&self, number: u32, device: &str, time: Duration) -> bool {
        let Some(seen) = self.ask(number, device, None).await else { return false };
        let reader = Mutex::new(TsReader::default());
        let began = Instant::now();
        let left = self.watch(seen, &reader, began + time).await;
        if left != Left::Enough {
            self.wrong((number, left));
        }
        // One picture per second, and the content of the ring before.
        let programme = reader.lock().programme();
        if time > MINUTE && programme + 20 * SECOND < time {
            self.wrong(format!("{programme:?} of programme in {time:?} of channel {number}"));
        }
        true
    }

    async fn watch_all_day(self, reader: Arc<Mutex<TsReader>>, end: Instant) {
        let Some(seen) = self.ask(DAY_CHANNEL, "television", None).await else { return };
        let left = self.watch(seen, &reader, end).await;
        self.wrong(left);
    }

    /// Watches for nine hours, pauses for five, and repeats.
    async fn watch_at_night(self) {
        sleep(30 * MINUTE).await;
        loop {
            if !self.watch_for(NIGHT_CHANNEL, "bedroom", 9 * 60 * MINUTE).await {
                self.wrong("nothing to watch at night");
            }
            sleep(300 * MINUTE).await;
        }
    }

    /// Changes channels for an hour: the new channel is opened before the old one is closed, as media servers do.
    async fn zap(mut self) {
        loop {
            let until = Instant::now() + 60 * MINUTE;
            let mut watching: Option<AbortOnDropHandle<()>> = None;
            while Instant::now() < until {
                let number = *ZAPPED.start() + self.chance(3) as u32;
                let seen = self.ask(number, "zapping box", None).await;
                drop(watching.take());
                if let Some(seen) = seen {
                    let person = self.clone();
                    watching = Some(AbortOnDropHandle::new(tokio::spawn(async move {
                        let reader = Mutex::default();
                        // If two channels share a slot, the old one makes room for the new one.
                        if let Left::Ended(end) = person.watch(seen, &reader, until).await {
                            person.wrong(end);
                        }
                    })));
                }
                let time = Duration::from_secs(5 + self.chance(60));
                sleep(time).await;
            }
            drop(watching);
            sleep(120 * MINUTE).await;
        }
    }

    /// A player that probes, hangs up, and plays.
    async fn probe_and_play(mut self) {
        loop {
            sleep(Duration::from_secs(300 + self.chance(240))).await;
            let number = *ZAPPED.start() + self.chance(3) as u32;
            let Some((mut tail, _)) = self.ask(number, "prober", None).await else { continue };
            if tail.chunk().await.is_err() {
                self.wrong("nothing to probe");
            }
            drop(tail);
            let time = MINUTE + Duration::from_secs(self.chance(90));
            let Some(seen) = self.ask(number, "prober", None).await else { continue };
            if let Left::Ended(end) = self.watch(seen, &Mutex::default(), Instant::now() + time).await {
                self.wrong(end);
            }
        }
    }

    /// Joins channels of other viewers, and returns while the channel lingers and after.
    async fn leave_and_return(mut self) {
        loop {
            for number in [DAY_CHANNEL, NIGHT_CHANNEL, DAY_CHANNEL] {
                let time = Duration::from_secs(120 + self.chance(600));
                self.watch_for(number, "tablet", time).await;
                sleep(Duration::from_secs(self.chance(12))).await;
            }
            sleep(40 * MINUTE).await;
        }
    }

    /// With one seat, the second device is refused while the first one watches, and admitted afterwards.
    async fn use_two_devices_with_one_seat(self) {
        let seat = Some(SeatRequest { user: UserId(7), limit: 1 });
        loop {
            sleep(50 * MINUTE).await;
            let Some(seen) = self.ask(3, "salon", seat).await else { continue };
            let watching = async {
                let reader = Mutex::default();
                if let Left::Ended(end) = self.watch(seen, &reader, Instant::now() + 20 * MINUTE).await {
                    self.wrong(end);
                }
            };
            let trying = async {
                for _ in 0..3 {
                    sleep(5 * MINUTE).await;
                    if self.ask(3, "phone", seat).await.is_some() {
                        self.wrong("two devices on one seat");
                    }
                }
            };
            tokio::join!(watching, trying);
            match self.ask(3, "phone", seat).await {
                Some(seen) => drop(self.watch(seen, &Mutex::default(), Instant::now() + 5 * MINUTE).await),
                None => self.wrong("the seat was not released"),
            }
        }
    }
}
