//! Soak of the leases: for an hour of virtual time, viewers come, zap and leave at random, and sources break in every way.
//!
//! Each account has a provider of its own, which counts its connections. No provider ever sees more than its account
//! allows, its connections are the leases of the slot table whenever nothing is being opened or closed, and no viewer waits
//! longer for an answer than a start may take.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use domain::ids::ProfileId;
use domain::plan::Plan;
use media::meter::Connection;
use media::ring::Tail;
use media::testing::{Behaviour, Break, MemoryDial, MemoryProvider, Play, TsSource};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::task::AbortOnDropHandle;

use crate::channel::{WatchRefusal, WatchReply};
use crate::plans::{Plans, Target};
use crate::testing::{Scenario, candidate, channel, limited, plan, settings};

const HOUR: Duration = Duration::from_secs(3600);

/// The limits of accounts 1, 2, …
const LIMITS: [u32; 4] = [1, 2, 3, 2];

/// The streams of channels 1, 2, …, each with its account.
const CHANNELS: [&[(&str, u32)]; 7] = [
    &[("a", 1), ("b", 2)],
    &[("c", 2), ("d", 3), ("e", 4)],
    &[("f", 3), ("g", 3)],
    &[("h", 4), ("i", 1)],
    &[("j", 1), ("k", 2), ("l", 3)],
    &[("m", 2)],
    &[("n", 4), ("o", 3)],
];

const N_VIEWERS: u64 = 10;

/// The position in their programme at which sources begin.
const BEGINNING: Duration = Duration::from_secs(60);

/// Maximum wait until nothing is being opened or closed.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);

mod slow {
    /// Holds T-slot.1 while everything fails.
    #[tokio::test(start_paused = true)]
    async fn leases_are_the_connections_of_providers_for_an_hour_of_faults() {
        super::hour_of_faults().await;
    }
}

/// Faults of sources.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// The connection breaks in this way.
    Breaks(Break),
    /// The provider refuses with this status.
    Refuses(u16),
    /// The provider says that all its tuners are in use.
    AllInUse,
    NoAnswer,
    /// Every start begins with seconds of programme at once.
    Bursts,
    /// The programme arrives seconds at a time.
    Clumps,
    /// The clock of the programme is another one from now on.
    Jumps,
    /// The picture ends, and sound and clock go on.
    PictureFreezes,
}

const FAULTS: [Fault; 13] = [
    Fault::Breaks(Break::End),
    Fault::Breaks(Break::Reset),
    Fault::Breaks(Break::Silence),
    Fault::Breaks(Break::Garbage),
    Fault::Breaks(Break::Nulls),
    Fault::Refuses(403),
    Fault::Refuses(458),
    Fault::AllInUse,
    Fault::NoAnswer,
    Fault::Bursts,
    Fault::Clumps,
    Fault::Jumps,
    Fault::PictureFreezes,
];

/// Pseudo-random numbers, the same in every run.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to below `end`.
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end
    }

    /// Returns a time from `least` to `most` seconds.
    fn seconds(&mut self, least: u64, most: u64) -> Duration {
        let ms = self.below(1 + 1000 * (most - least) as usize);
        Duration::from_secs(least) + Duration::from_millis(ms as u64)
    }
}

struct FixedPlans(HashMap<Target, Arc<Plan>>);

impl Plans for FixedPlans {
    fn plan(&self, target: &Target) -> Option<Arc<Plan>> {
        self.0.get(target).cloned()
    }
}

/// The system, and a provider for each account.
struct Environment {
    scenario: Scenario,
    providers: Vec<MemoryProvider>,
    began: Instant,
    log: Log,
}

/// The answers to viewers.
#[derive(Default)]
struct Log {
    n_served: AtomicU64,
    /// Refused because all connections of the accounts were in use.
    n_full: AtomicU64,
    /// Refused because nothing played.
    n_unavailable: AtomicU64,
    /// Nothing had arrived when the time for a start was over.
    n_late: AtomicU64,
    longest_wait: Mutex<Duration>,
}

/// Returns a thin stream.
fn source(name: &str) -> TsSource {
    TsSource { bitrate: 12_000, frame_rate: 2, gop: 2, ..TsSource::new(name) }
}

impl Environment {
    async fn new() -> Arc<Self> {
        let began = Instant::now();
        let dial = MemoryDial::new();
        let providers: Vec<_> =
            (1..=LIMITS.len()).map(|account| dial.provider(&format!("tv{account}:80"))).collect();
        let mut plans = HashMap::new();
        for (number, streams) in (1..).zip(CHANNELS) {
            let candidates = streams.iter().zip(1..).map(|((name, account), nth)| {
                providers[*account as usize - 1]
                    .set(&format!("/{name}"), Behaviour::Play(Play::new(source(name))));
                let stream = limited(10 * number + nth, name, *account, LIMITS[*account as usize - 1]);
                candidate(&stream, &format!("http://tv{account}:80/{name}"))
            });
            plans.insert(channel(number), Arc::new(plan(number, candidates.collect())));
        }
        let first = providers[0].clone();
        let scenario = Scenario::with_provider(settings(), Arc::new(FixedPlans(plans)), dial, first).await;
        Arc::new(Self { scenario, providers, began, log: Log::default() })
    }

    /// Applies a fault to a source. Returns whether it lasts until [`Self::heal`].
    fn fail(&self, (name, account): (&str, u32), fault: Fault, random: &mut Random) -> bool {
        let provider = &self.providers[account as usize - 1];
        let path = format!("/{name}");
        let playing = Play::new(source(name));
        let behaviour = match fault {
            Fault::Breaks(how) => {
                provider.break_now(&path, how);
                return false;
            }
            Fault::Refuses(status) => Behaviour::Status(status),
            Fault::AllInUse => Behaviour::Raw(
                "HTTP/1.1 503 S\r\nX-HDHomeRun-Error: 805 All Tuners In Use\r\nContent-Length: 0\r\n\r\n"
                    .into(),
            ),
            Fault::NoAnswer => Behaviour::NoAnswer,
            Fault::Bursts => Behaviour::Play(Play { burst: random.seconds(3, 15), ..playing }),
            Fault::Clumps => Behaviour::Play(Play { clump: random.seconds(3, 10), ..playing }),
            Fault::Jumps => {
                let start = random.below(1 << 33) as u64;
                Behaviour::Play(Play::new(TsSource { start, ..playing.ts }))
            }
            Fault::PictureFreezes => {
                let picture_until = Some(BEGINNING + self.began.elapsed() + random.seconds(1, 10));
                Behaviour::Play(Play::new(TsSource { picture_until, ..playing.ts }))
            }
        };
        provider.set(&path, behaviour);
        if random.below(3) > 0 {
            provider.break_now(&path, if random.below(2) == 0 { Break::End } else { Break::Reset });
        }
        true
    }

    /// Makes a source play, from its next connection on.
    fn heal(&self, (name, account): (&str, u32)) {
        self.providers[account as usize - 1]
            .set(&format!("/{name}"), Behaviour::Play(Play::new(source(name))));
    }

    /// Checks the limits, and returns whether the connections that each provider sees are the leases of its account.
    fn check_limits(&self) -> bool {
        let leases = self.scenario.system.leases();
        let mut is_settled = true;
        for ((account, limit), provider) in (1..).zip(LIMITS).zip(&self.providers) {
            let n_leases = leases.iter().filter(|it| it.profile == ProfileId(account)).count();
            assert!(n_leases <= limit as usize, "account {account} has {n_leases} leases of {limit}");
            assert!(
                provider.peak() <= limit as usize,
                "account {account} saw {} of {limit}",
                provider.peak()
            );
            is_settled &= n_leases == provider.n_open();
        }
        let counts = self.scenario.system.counts();
        is_settled && counts.sockets_open == counts.leases
    }

    /// Waits until every lease is a connection that its provider sees.
    async fn settled(&self) {
        let waits = async {
            while !self.check_limits() {
                sleep(Duration::from_millis(20)).await;
            }
        };
        if timeout(SETTLED_WITHIN, waits).await.is_err() {
            let seen: Vec<_> = self.providers.iter().map(MemoryProvider::n_open).collect();
            panic!("the providers see {seen:?} connections of {:?}", self.scenario.system.leases());
        }
    }

    /// Requests a channel and waits for its first data, as the handler of a stream does.
    async fn ask(&self, number: u32, device: &str) -> Option<(Tail, Arc<Connection>)> {
        let (asked, longest) = (Instant::now(), settings().start_timeout);
        let (answer, connection) =
            timeout(longest, self.scenario.ask_as(channel(number), Some(device), device))
                .await
                .expect("an answer within the time for a start");
        let counted = match answer {
            WatchReply::Tail { mut tail, .. } => match timeout(longest - asked.elapsed(), tail.ready()).await
            {
                Ok(Ok(())) => {
                    self.answered(&self.log.n_served, asked);
                    return Some((tail, connection));
                }
                Ok(Err(_)) => &self.log.n_unavailable,
                Err(_) => &self.log.n_late,
            },
            WatchReply::Refused(WatchRefusal::Full(_)) => &self.log.n_full,
            WatchReply::Refused(_) => &self.log.n_unavailable,
            other => panic!("{other:?}"),
        };
        self.answered(counted, asked);
        None
    }

    fn answered(&self, counted: &AtomicU64, asked: Instant) {
        counted.fetch_add(1, Relaxed);
        let mut longest = self.log.longest_wait.lock();
        *longest = asked.elapsed().max(*longest);
    }

    /// A viewer who watches for a while, and then zaps or leaves for a while.
    async fn view(self: Arc<Self>, nth: u64) {
        let mut random = Random(nth);
        let device = format!("viewer {nth}");
        let mut watching: Option<AbortOnDropHandle<()>> = None;
        while self.began.elapsed() < HOUR {
            let number = 1 + random.below(CHANNELS.len()) as u32;
            // Players open the next channel before they close the last one, or after it.
            if random.below(2) == 0 {
                drop(watching.take());
            }
            let seen = self.ask(number, &device).await;
            watching =
                seen.map(|(tail, connection)| AbortOnDropHandle::new(tokio::spawn(read(tail, connection))));
            sleep(random.seconds(0, 90)).await;
            if random.below(3) == 0 {
                drop(watching.take());
                sleep(random.seconds(0, 60)).await;
            }
        }
        drop(watching);
    }
}

/// Reads until the stream ends or the gateway closes the connection.
async fn read(mut tail: Tail, connection: Arc<Connection>) {
    let reading = async { while tail.chunk().await.is_ok() {} };
    tokio::select! {
        () = connection.cancel.cancelled() => {}
        () = reading => {}
    }
}

async fn hour_of_faults() {
    let environment = Environment::new().await;
    let viewers: Vec<_> = (1..=N_VIEWERS).map(|nth| tokio::spawn(environment.clone().view(nth))).collect();
    let sources: Vec<_> = CHANNELS.iter().copied().flatten().copied().collect();
    let mut random = Random(41);
    let mut n_faults = [0; FAULTS.len()];
    let mut failing = Vec::new();
    while environment.began.elapsed() < HOUR {
        let (source, nth) = (sources[random.below(sources.len())], random.below(FAULTS.len()));
        n_faults[nth] += 1;
        if environment.fail(source, FAULTS[nth], &mut random) {
            failing.push((source, Instant::now() + random.seconds(5, 60)));
        }
        for (source, _) in failing.extract_if(.., |it| it.1 <= Instant::now()) {
            environment.heal(source);
        }
        for _ in 0..5 {
            environment.check_limits();
            sleep(random.seconds(0, 2)).await;
        }
        environment.settled().await;
    }
    for viewer in viewers {
        viewer.await.expect("no panic of a viewer");
    }
    environment.scenario.is_quiet().await;
    environment.settled().await;
    assert_eq!(environment.scenario.system.leases(), []);
    let log = &environment.log;
    let peaks: Vec<_> = environment.providers.iter().map(MemoryProvider::peak).collect();
    let n_accepted: usize = environment.providers.iter().map(MemoryProvider::n_accepted).sum();
    let longest = *log.longest_wait.lock();
    println!(
        "{} served, {} full, {} unavailable, {} late; longest wait {longest:?}; {n_accepted} connections, at most {peaks:?} \
         at once; faults {n_faults:?}; {:?}",
        log.n_served.load(Relaxed),
        log.n_full.load(Relaxed),
        log.n_unavailable.load(Relaxed),
        log.n_late.load(Relaxed),
        environment.scenario.system.counts(),
    );
    assert!(longest <= settings().start_timeout, "a viewer waited {longest:?}");
    assert!(n_faults.iter().all(|it| *it > 0), "{n_faults:?}");
    assert_eq!(peaks, LIMITS.map(|it| it as usize), "every limit was reached");
    assert!(log.n_served.load(Relaxed) > 100 && log.n_full.load(Relaxed) > 0);
    for provider in &environment.providers {
        assert_eq!((provider.n_open(), provider.n_held()), (0, 0));
    }
    assert!(environment.scenario.system.stop().await);
}
