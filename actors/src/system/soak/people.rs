//! Who watches, each with a strict reader.

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

use super::house::{DAY_CHANNEL, House, NIGHT_CHANNEL, ZAPPED};
use super::{MINUTE, SECOND};
use crate::channel::{WatchRefusal, WatchReply};
use crate::seats::SeatRequest;
use crate::testing::channel;

/// What all viewers write into.
#[derive(Default)]
pub(super) struct Book {
    /// What should not have happened.
    wrong: Mutex<Vec<String>>,
    n_asking: AtomicUsize,
    pub(super) n_served: AtomicU64,
    pub(super) n_full: AtomicU64,
    pub(super) n_no_seat: AtomicU64,
    pub(super) n_bytes: AtomicU64,
}

/// Everybody who watches.
pub(super) struct Viewers {
    pub(super) book: Arc<Book>,
    day: Arc<Mutex<TsReader>>,
    /// The lead of the one who watches all day, near the beginning.
    first_lead_ms: Mutex<Option<i64>>,
    tasks: Vec<JoinHandle<()>>,
}

/// Someone who watches.
#[derive(Clone)]
struct Person {
    house: Arc<House>,
    book: Arc<Book>,
    name: &'static str,
    /// Their luck, which is the same each day.
    luck: u64,
}

/// Why someone no longer watches.
#[derive(Debug, PartialEq)]
enum Left {
    /// They had seen enough.
    Enough,
    /// The connection was closed from the other side.
    Closed,
    /// The stream ended.
    Ended(EndReason),
}

impl Viewers {
    pub(super) fn come(house: &Arc<House>, hours: u32) -> Self {
        let book = Arc::new(Book::default());
        let day = Arc::new(Mutex::new(TsReader::default()));
        let evening = Instant::now() + hours * 60 * MINUTE + 10 * MINUTE;
        let person = |name: &'static str| Person {
            house: house.clone(),
            book: book.clone(),
            name,
            luck: name.bytes().map(u64::from).sum(),
        };
        let tasks = vec![
            tokio::spawn(person("all day").watches_all_day(day.clone(), evening)),
            tokio::spawn(person("nights").watches_at_night()),
            tokio::spawn(person("zapper").zaps()),
            tokio::spawn(person("prober").probes_and_plays()),
            tokio::spawn(person("comes back").leaves_and_comes_back()),
            tokio::spawn(person("seated").has_one_seat_and_two_devices()),
        ];
        Self { book, day, first_lead_ms: Mutex::new(None), tasks }
    }

    /// Nobody saw what they should not have, and whoever should watch still does.
    pub(super) fn are_well(&self) {
        let wrong = self.book.wrong.lock();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert!(self.tasks.iter().all(|it| !it.is_finished()), "somebody went home");
    }

    /// How far programme and wall have moved apart for the one who watches all day.
    pub(super) fn day_lead_ms(&self) -> i64 {
        let lead = self.day.lock().lead_ms();
        lead - *self.first_lead_ms.lock().get_or_insert(lead)
    }

    /// The one who watches all day has been told this much, and when last.
    pub(super) fn day(&self) -> (u64, Duration, Option<Duration>) {
        let day = self.day.lock();
        (day.n_wraps(), day.programme(), day.newest_at())
    }

    pub(super) fn n_asking(&self) -> usize {
        self.book.n_asking.load(Relaxed)
    }

    /// Everybody leaves.
    pub(super) async fn leave(&self) {
        for task in &self.tasks {
            task.abort();
        }
        sleep(SECOND).await;
    }
}

impl Person {
    /// A number from 0 to below `most`.
    fn chance(&mut self, most: u64) -> u64 {
        self.luck = self.luck.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.luck >> 33) % most
    }

    fn wrong(&self, what: impl std::fmt::Debug) {
        let mut wrong = self.book.wrong.lock();
        // The first few say it all.
        if wrong.len() < 10 {
            wrong.push(format!("{} at {:?}: {what:?}", self.name, self.house.time()));
        }
    }

    /// Asks as somebody with a name on this device; who is refused for want of a slot or a seat has bad luck.
    async fn ask(
        &self,
        number: u32,
        device: &str,
        seat: Option<SeatRequest>,
    ) -> Option<(Tail, Arc<Connection>)> {
        self.book.n_asking.fetch_add(1, Relaxed);
        let scenario = &self.house.scenario;
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
        self.book.n_asking.fetch_sub(1, Relaxed);
        match taken {
            Ok(tail) => {
                self.book.n_served.fetch_add(1, Relaxed);
                return Some((tail, connection));
            }
            Err(why) if why.starts_with("NoSlot") => self.book.n_full.fetch_add(1, Relaxed),
            Err(why) if why == "NoSeat" => self.book.n_no_seat.fetch_add(1, Relaxed),
            Err(why) => {
                self.wrong((number, why));
                0
            }
        };
        None
    }

    /// Reads until then, and holds what comes against the standard.
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
                self.book.n_bytes.fetch_add(bytes.len() as u64, Relaxed);
                if let Err(what) = reader.lock().read(&bytes, self.house.time()) {
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

    /// Watches this channel for so long; answers whether there was something to watch.
    async fn watches(&self, number: u32, device: &str, time: Duration) -> bool {
        let Some(seen) = self.ask(number, device, None).await else { return false };
        let reader = Mutex::new(TsReader::default());
        let began = Instant::now();
        let left = self.watch(seen, &reader, began + time).await;
        if left != Left::Enough {
            self.wrong((number, left));
        }
        // A picture each second, and what lay in the ring before.
        let programme = reader.lock().programme();
        if time > MINUTE && programme + 20 * SECOND < time {
            self.wrong(format!("{programme:?} of programme in {time:?} of channel {number}"));
        }
        true
    }

    async fn watches_all_day(self, reader: Arc<Mutex<TsReader>>, evening: Instant) {
        let Some(seen) = self.ask(DAY_CHANNEL, "television", None).await else { return };
        let left = self.watch(seen, &reader, evening).await;
        self.wrong(left);
    }

    /// Nine hours, five hours off, and again.
    async fn watches_at_night(self) {
        sleep(30 * MINUTE).await;
        loop {
            if !self.watches(NIGHT_CHANNEL, "bedroom", 9 * 60 * MINUTE).await {
                self.wrong("nothing to watch at night");
            }
            sleep(300 * MINUTE).await;
        }
    }

    /// For an hour at a time, from one channel to the next: the new one is opened before the old one is
    /// closed, as media servers do.
    async fn zaps(mut self) {
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
                        // Where two channels share a slot the old one makes room for the new one.
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

    /// A player that looks first, hangs up, and plays.
    async fn probes_and_plays(mut self) {
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

    /// Looks in where others watch, and comes back while the channel lingers and after.
    async fn leaves_and_comes_back(mut self) {
        loop {
            for number in [DAY_CHANNEL, NIGHT_CHANNEL, DAY_CHANNEL] {
                let time = Duration::from_secs(120 + self.chance(600));
                self.watches(number, "tablet", time).await;
                sleep(Duration::from_secs(self.chance(12))).await;
            }
            sleep(40 * MINUTE).await;
        }
    }

    /// One at a time: while the one device watches the other is refused, and then not.
    async fn has_one_seat_and_two_devices(self) {
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
                None => self.wrong("the seat did not come back"),
            }
        }
    }
}
