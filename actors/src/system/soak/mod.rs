//! Load test: viewers watch for a day and a night of virtual time, and nothing degrades.
//!
//! Parts: the *environment* (`environment.rs`) with channels, accounts and sources; the *viewers* (`viewers.rs`), each
//! with a strict reader; the *faults* (`faults.rs`) of the channel that is watched all day, with their expected
//! effects; the *observed* events (`observed.rs`); and the *monitor*, here, which checks all invariants every minute.
//!
//! A day takes seconds because the streams are thin: one small picture every two seconds. `SOAK_HOURS` and
//! `SOAK_FRAME_RATE` make it longer and denser.

mod environment;
mod faults;
mod observed;
mod viewers;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use self::environment::{CHANNELS, DAY_CHANNEL, Environment};
use self::faults::Faults;
use self::observed::ObservedEvents;
use self::viewers::Viewers;
use crate::plans::Target;
use crate::registry::MetricsSnapshot;
use crate::testing::channel;
use crate::{events, timeline};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Maximum number of consecutive minutes in which a channel may not play: it gives up after one.
const UNSTEADY_MINUTES_MAX: u32 = 2;

/// Maximum growth of memory from the second to the last hour. A leak of a hundred bytes per chunk would be ten times as
/// much.
const GROWTH_KIB_MAX: i64 = 24 << 10;

/// Maximum difference between the programme clock of the all-day viewer and the wall clock, over any number of sources:
/// the delay of one source, and the error of one switch.
const LEAD_MS_MAX: i64 = 600;

mod slow {
    /// Holds T-life.8, T-fo.4, T-mem.5, T-slot.1 and T-view.1 over an evening.
    #[tokio::test(start_paused = true)]
    async fn an_evening_of_viewing_degrades_nothing() {
        super::days(3).await;
    }
}

mod night {
    /// Holds what an evening holds over a day and a night, in which bounded histories reach their bounds.
    #[tokio::test(start_paused = true)]
    async fn a_day_of_viewing_degrades_nothing() {
        super::days(super::number("SOAK_HOURS", 24)).await;
    }
}

fn number(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}

/// The state of the monitor.
struct Monitor {
    before: MetricsSnapshot,
    /// Consecutive minutes in which a channel was not playing.
    not_playing: BTreeMap<Target, u32>,
    kib_early: Option<i64>,
    n_checks: u64,
    lead_ms_max: i64,
}

async fn days(hours: u32) {
    let tasks_before = tasks();
    let environment = Environment::build().await;
    let tasks_empty = tasks();
    let began = Instant::now();
    let observed = ObservedEvents::listen(&environment);
    let viewers = Viewers::start(&environment, hours);
    let mut faults = Faults::default();
    let mut monitor = Monitor {
        before: environment.system().counts(),
        not_playing: BTreeMap::new(),
        kib_early: None,
        n_checks: 0,
        lead_ms_max: 0,
    };
    // The first viewers start.
    sleep(20 * SECOND).await;
    for minute in 1..=hours * 60 {
        sleep_until(began + minute * MINUTE).await;
        environment.run_minute(minute).await;
        faults.run_minute(&environment, minute).await;
        monitor.check_minute(&environment, &viewers, &faults).await;
        if minute.is_multiple_of(60) {
            monitor.check_hour(&environment, &viewers, &faults, &observed, minute / 60).await;
        }
    }
    environment.check_schedules(hours);
    viewers.disconnect().await;
    environment.scenario.is_quiet().await;
    monitor.print_report(&environment, &viewers, &faults, &observed);

    // At the end only bounded history is left, and then not even that.
    sleep(2 * timeline::ENDED_KEPT_FOR).await;
    assert_eq!(environment.n_runs(), 0, "runs are remembered that ended long ago");
    assert_eq!(tasks() - observed.n_tasks(), tasks_empty, "a task is left");
    assert!(environment.system().stop().await);
    drop((environment, observed));
    sleep(SECOND).await;
    assert_eq!(tasks(), tasks_before);
}

impl Monitor {
    /// Invariants of every minute.
    async fn check_minute(&mut self, environment: &Environment, viewers: &Viewers, faults: &Faults) {
        self.n_checks += 1;
        let system = environment.system();
        let switchboard = system.switchboard();
        let overview = switchboard.overview().await.expect("an overview");
        self.not_playing.retain(|it, _| overview.iter().any(|row| row.target == *it));
        for row in &overview {
            let status = row.status.as_ref().expect("each channel answers");
            let not_playing = self.not_playing.entry(row.target).or_default();
            let is_steady = status.state == "playing" || status.clients.is_empty();
            *not_playing = if is_steady { 0 } else { *not_playing + 1 };
            assert!(*not_playing <= UNSTEADY_MINUTES_MAX, "{} is {} for minutes", status.name, status.state);
        }
        let mut n_runs = 0;
        for number in CHANNELS {
            let alone = environment.scenario.status(channel(number)).await;
            assert!(alone.is_none_or(|it| it.target == channel(number)));
            for run in switchboard.timeline(channel(number).uuid()) {
                assert!(run.entries.len() <= timeline::ENTRIES_MAX);
                assert!(run.entries.is_sorted_by_key(|it| it.bytes_in), "bytes go back in a timeline");
                n_runs += 1;
            }
        }
        // The all-day viewer has one connection, and receives pictures.
        let day = environment.scenario.status(channel(DAY_CHANNEL)).await.expect("it lives all day");
        assert_eq!((day.state, day.n_failovers), ("playing", faults.n_failovers), "{day:?}");
        viewers.check();

        let counts = system.counts();
        check_counters(&self.before, &counts);
        environment.check_limits();
        assert_eq!(system.state.env.registry.channels().len(), counts.channels);
        assert_eq!(system.state.env.registry.clients().len(), counts.clients);
        assert!(system.state.channel_table.all().len() <= CHANNELS.count());
        assert!(n_runs <= timeline::ENDED_MAX + CHANNELS.count());
        assert!(system.events().recent().len() <= events::HISTORY_MAX);
        assert!(system.state.slot_table.n_remembered() <= environment.n_accounts());
        assert!(system.switchboard().seats().len() <= counts.clients + viewers.n_asking());
        self.before = counts;
    }

    /// Invariants without running faults, and trends over hours.
    async fn check_hour(
        &mut self,
        environment: &Environment,
        viewers: &Viewers,
        faults: &Faults,
        observed: &ObservedEvents,
        hour: u32,
    ) {
        environment.check_leases().await;
        assert_eq!(
            (
                observed.n_reconnects(DAY_CHANNEL),
                observed.n_failovers(DAY_CHANNEL),
                observed.n_switches(DAY_CHANNEL)
            ),
            (faults.n_reconnects, faults.n_failovers, faults.n_switches),
            "in hour {hour} something happened that nobody caused"
        );
        // A join is as fast as in the first hour.
        let asked = Instant::now();
        let mut late = environment.scenario.watch(channel(DAY_CHANNEL)).await;
        late.tail.chunk().await.expect("a late viewer sees something");
        assert!(asked.elapsed() < 3 * SECOND, "to join took {:?}", asked.elapsed());
        drop(late);
        let lead_ms = viewers.day_lead_ms();
        self.lead_ms_max = self.lead_ms_max.max(lead_ms.abs());
        println!(
            "hour {hour}: programme {lead_ms} ms from the wall after {} seams; {} KiB, {} tasks",
            faults.n_seams(),
            resident_kib(),
            tasks()
        );
        assert!(lead_ms.abs() <= LEAD_MS_MAX, "{lead_ms} ms after {} seams", faults.n_seams());
        match self.kib_early {
            None if hour == 2 => self.kib_early = Some(resident_kib()),
            // If tests share a process, the memory of the others counts too.
            Some(early) if std::env::var_os("NEXTEST").is_some() => {
                let growth = resident_kib() - early;
                assert!(growth < GROWTH_KIB_MAX, "{growth} KiB more than in the second hour");
            }
            _ => {}
        }
    }
}

impl Monitor {
    /// Prints a report for manual runs.
    fn print_report(
        &self,
        environment: &Environment,
        viewers: &Viewers,
        faults: &Faults,
        observed: &ObservedEvents,
    ) {
        let counts = environment.system().counts();
        let log = &viewers.log;
        let (n_wraps, programme, _) = viewers.day();
        println!(
            "{} checks; {} seams ({} reconnects, {} failovers, {} switches), {} connections to the provider",
            self.n_checks,
            faults.n_seams(),
            faults.n_reconnects,
            faults.n_failovers,
            faults.n_switches,
            environment.scenario.provider.n_accepted(),
        );
        println!(
            "all day: {programme:?} of programme, at most {} ms from the wall clock; its clock wrapped {n_wraps} times",
            self.lead_ms_max
        );
        println!(
            "everybody: {} joins served, {} without a slot, {} without a seat, {} bytes; events (of refreshes): {:?}",
            log.n_served.load(Relaxed),
            log.n_full.load(Relaxed),
            log.n_no_seat.load(Relaxed),
            log.n_bytes.load(Relaxed),
            observed.n_events()
        );
        println!("{counts:?}");
        assert!(
            n_wraps > 0 || faults.n_seams() < 50,
            "the clock of the first source wraps in the fourth hour"
        );
        assert!(log.n_full.load(Relaxed) > 0 && log.n_no_seat.load(Relaxed) > 0, "no limit was ever reached");
    }
}

/// Checks that no counter decreases.
fn check_counters(before: &MetricsSnapshot, now: &MetricsSnapshot) {
    let of = |it: &MetricsSnapshot| {
        [
            it.bytes_in,
            it.bytes_out,
            it.misses,
            it.missed_bytes,
            it.failovers,
            it.reconnects,
            it.switches,
            it.losses(),
            it.channel_starts,
            it.refused_full,
            it.refused_seats,
            it.starts.count,
        ]
    };
    let goes_back = of(before).into_iter().zip(of(now)).any(|(before, now)| before > now);
    assert!(!goes_back, "{before:?} and then {now:?}");
    assert_eq!(now.missed_bytes, 0, "everybody keeps up");
}

fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

fn resident_kib() -> i64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|it| it.strip_prefix("VmRSS:"));
    line.and_then(|it| it.trim().strip_suffix(" kB")?.parse().ok()).unwrap_or(0)
}
