//! A household watches for a day and a night of virtual time, and nothing ages.
//!
//! Dramatis personae: the *house* (`house.rs`) with its channels, accounts and sources; the *people* (`people.rs`)
//! who watch, each with a strict reader; the *troubles* (`troubles.rs`) that the channel watched all day goes
//! through, and what must come of each; and the *admin*, here, who looks at everything each minute and holds it
//! against what must be true.
//!
//! A day takes seconds because the streams are thin: a small picture every other second. By hand, `SOAK_HOURS` and
//! `SOAK_FRAME_RATE` make it longer and denser.

mod house;
mod people;
mod told;
mod troubles;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use tokio::time::{Instant, sleep, sleep_until};

use self::house::{CHANNELS, DAY_CHANNEL, House};
use self::people::Viewers;
use self::told::Told;
use self::troubles::Troubles;
use crate::plans::Target;
use crate::registry::MetricsSnapshot;
use crate::testing::channel;
use crate::{events, timeline};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);

/// Longest that a channel may be anything but playing, in minutes as the admin sees them: it gives up after one.
const UNSTEADY_MINUTES_MAX: u32 = 2;

/// How much more memory the last hour may need than the second. A leak of a hundred bytes a chunk would be ten times
/// that.
const GROWTH_KIB_MAX: i64 = 24 << 10;

/// How far the programme of the one who watches all day may be from the wall clock, however many sources it was made
/// of: what one source may be late, and what one change may be wrong by.
const LEAD_MS_MAX: i64 = 600;

mod slow {
    /// Holds T-life.8, T-fo.4, T-slot.1 and T-view.1 over a day and a night.
    #[tokio::test(start_paused = true)]
    async fn a_household_watches_for_a_day_and_nothing_ages() {
        super::days(super::number("SOAK_HOURS", 24)).await;
    }
}

fn number(variable: &str, usual: u32) -> u32 {
    std::env::var(variable).ok().and_then(|it| it.parse().ok()).unwrap_or(usual)
}

/// What the admin saw and goes by.
struct Admin {
    before: MetricsSnapshot,
    /// For how many minutes in a row a channel was not playing.
    unsteady: BTreeMap<Target, u32>,
    kib_early: Option<i64>,
    n_looks: u64,
    lead_ms_max: i64,
}

async fn days(hours: u32) {
    let tasks_before = tasks();
    let house = House::build().await;
    let tasks_empty = tasks();
    let began = Instant::now();
    let told = Told::listen(&house);
    let viewers = Viewers::come(&house, hours);
    let mut troubles = Troubles::default();
    let mut admin = Admin {
        before: house.system().counts(),
        unsteady: BTreeMap::new(),
        kib_early: None,
        n_looks: 0,
        lead_ms_max: 0,
    };
    // The first viewers sit down.
    sleep(20 * SECOND).await;
    for minute in 1..=hours * 60 {
        sleep_until(began + minute * MINUTE).await;
        house.minute(minute).await;
        troubles.of_minute(&house, minute).await;
        admin.looks_at(&house, &viewers, &troubles).await;
        if minute.is_multiple_of(60) {
            admin.every_hour(&house, &viewers, &troubles, &told, minute / 60).await;
        }
    }
    house.holds_its_schedules(hours);
    viewers.leave().await;
    house.scenario.is_quiet().await;
    admin.reports(&house, &viewers, &troubles, &told);

    // Nothing is left of the day but what is remembered for a while, and then not even that.
    sleep(2 * timeline::ENDED_KEPT_FOR).await;
    assert_eq!(house.n_runs(), 0, "runs are remembered that ended long ago");
    assert_eq!(tasks() - told.n_tasks(), tasks_empty, "a task is left");
    assert!(house.system().stop().await);
    drop((house, told));
    sleep(SECOND).await;
    assert_eq!(tasks(), tasks_before);
}

impl Admin {
    /// What must be true at any minute.
    async fn looks_at(&mut self, house: &House, viewers: &Viewers, troubles: &Troubles) {
        self.n_looks += 1;
        let system = house.system();
        let switchboard = system.switchboard();
        let overview = switchboard.overview().await.expect("an overview");
        self.unsteady.retain(|it, _| overview.iter().any(|row| row.target == *it));
        for row in &overview {
            let status = row.status.as_ref().expect("each channel answers");
            let unsteady = self.unsteady.entry(row.target).or_default();
            let is_steady = status.state == "playing" || status.clients.is_empty();
            *unsteady = if is_steady { 0 } else { *unsteady + 1 };
            assert!(*unsteady <= UNSTEADY_MINUTES_MAX, "{} is {} for minutes", status.name, status.state);
        }
        let mut n_runs = 0;
        for number in CHANNELS {
            let alone = house.scenario.status(channel(number)).await;
            assert!(alone.is_none_or(|it| it.target == channel(number)));
            for run in switchboard.timeline(channel(number).uuid()) {
                assert!(run.entries.len() <= timeline::ENTRIES_MAX);
                assert!(run.entries.is_sorted_by_key(|it| it.bytes_in), "bytes go back in a timeline");
                n_runs += 1;
            }
        }
        // The one who watches all day: one answer, and the picture is there.
        let day = house.scenario.status(channel(DAY_CHANNEL)).await.expect("it lives all day");
        assert_eq!((day.state, day.n_failovers), ("playing", troubles.n_failovers), "{day:?}");
        viewers.are_well();

        let counts = system.counts();
        only_grows(&self.before, &counts);
        house.limits_hold();
        assert_eq!(system.state.env.registry.channels().len(), counts.channels);
        assert_eq!(system.state.env.registry.clients().len(), counts.clients);
        assert!(system.state.channel_table.all().len() <= CHANNELS.count());
        assert!(n_runs <= timeline::ENDED_MAX + CHANNELS.count());
        assert!(system.events().recent().len() <= events::HISTORY_MAX);
        assert!(system.state.slot_table.n_remembered() <= house.n_accounts());
        assert!(system.switchboard().seats().len() <= counts.clients + viewers.n_asking());
        self.before = counts;
    }

    /// What must be true at rest, and what would show over hours.
    async fn every_hour(
        &mut self,
        house: &House,
        viewers: &Viewers,
        troubles: &Troubles,
        told: &Told,
        hour: u32,
    ) {
        house.leases_are_sockets().await;
        assert_eq!(
            (told.n_reconnects(DAY_CHANNEL), told.n_failovers(DAY_CHANNEL), told.n_switches(DAY_CHANNEL)),
            (troubles.n_reconnects, troubles.n_failovers, troubles.n_switches),
            "in hour {hour} something happened that nobody caused"
        );
        // Joining is as quick as in the first hour.
        let asked = Instant::now();
        let mut late = house.scenario.watch(channel(DAY_CHANNEL)).await;
        late.tail.chunk().await.expect("a late viewer sees something");
        assert!(asked.elapsed() < 3 * SECOND, "to join took {:?}", asked.elapsed());
        drop(late);
        let lead_ms = viewers.day_lead_ms();
        self.lead_ms_max = self.lead_ms_max.max(lead_ms.abs());
        println!(
            "hour {hour}: programme {lead_ms} ms from the wall after {} seams; {} KiB, {} tasks",
            troubles.n_seams(),
            resident_kib(),
            tasks()
        );
        assert!(lead_ms.abs() <= LEAD_MS_MAX, "{lead_ms} ms after {} seams", troubles.n_seams());
        match self.kib_early {
            None if hour == 2 => self.kib_early = Some(resident_kib()),
            // Where tests share a process the others' memory is counted too.
            Some(early) if std::env::var_os("NEXTEST").is_some() => {
                let growth = resident_kib() - early;
                assert!(growth < GROWTH_KIB_MAX, "{growth} KiB more than in the second hour");
            }
            _ => {}
        }
    }
}

impl Admin {
    /// What the day was, for whoever runs it by hand.
    fn reports(&self, house: &House, viewers: &Viewers, troubles: &Troubles, told: &Told) {
        let counts = house.system().counts();
        let book = &viewers.book;
        let (n_wraps, programme, _) = viewers.day();
        println!(
            "{} looks; {} seams ({} reconnects, {} failovers, {} switches), {} connections to the provider",
            self.n_looks,
            troubles.n_seams(),
            troubles.n_reconnects,
            troubles.n_failovers,
            troubles.n_switches,
            house.scenario.provider.n_accepted(),
        );
        println!(
            "all day: {programme:?} of programme, at most {} ms from the wall, its clock went round {n_wraps} times",
            self.lead_ms_max
        );
        println!(
            "everybody: {} joins served, {} without a slot, {} without a seat, {} bytes; events (of refreshes): {:?}",
            book.n_served.load(Relaxed),
            book.n_full.load(Relaxed),
            book.n_no_seat.load(Relaxed),
            book.n_bytes.load(Relaxed),
            told.n_events()
        );
        println!("{counts:?}");
        assert!(
            n_wraps > 0 || troubles.n_seams() < 50,
            "the clock of the first source wraps in the fourth hour"
        );
        assert!(
            book.n_full.load(Relaxed) > 0 && book.n_no_seat.load(Relaxed) > 0,
            "no limit was ever reached"
        );
    }
}

/// No counter goes back.
fn only_grows(before: &MetricsSnapshot, now: &MetricsSnapshot) {
    let of = |it: &MetricsSnapshot| {
        [
            it.bytes_in,
            it.bytes_out,
            it.misses,
            it.missed_bytes,
            it.failovers,
            it.reconnects,
            it.switches,
            it.losses,
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
