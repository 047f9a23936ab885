//! Everything at once, for as long as one likes: viewers of every kind, sources that fail in every way, accounts at
//! their limits, an admin who meddles, refreshes in the background, listeners, and actors that end.
//!
//! All the while no account is overdrawn and no lease ends before its socket; what a viewer gets is a clean stream in
//! which nothing is missing, and what is said of it is true. Whenever it is quiet again, nothing is left.

mod admin;
mod house;
mod ledger;
mod listeners;
mod process;
mod trouble;
mod viewers;
mod watchman;

mod slow {
    use std::time::Duration;

    use tokio::time::{Instant, timeout};

    use super::house::House;
    use super::watchman::{self, Baseline};
    use super::{admin, listeners, process, trouble, viewers};
    use crate::support::random::Random;
    use crate::support::signal::Clip;

    /// Rounds in CI, and how long each is under load.
    const ROUNDS: u64 = 3;
    const LASTS: Duration = Duration::from_secs(10);
    /// The same where somebody says for how many minutes.
    const LASTS_BY_HAND: Duration = Duration::from_secs(55);
    /// Longest time from the end of the load to rest.
    const REST_MAX: Duration = Duration::from_secs(150);
    /// What memory in use may grow by after the first round, in KiB. The recent past and what is kept for speed has
    /// bounds, and has not reached them by then.
    const GROWTH_KIB_MAX: u64 = 16 << 10;

    /// How close a provider follows when we close: at once, after a while, never by itself.
    const CLOSE_DELAYS: [u64; 4] = [0, 50, 200, 3_600_000];

    async fn under_load(house: &House, random: &mut Random, lasts: Duration) {
        let until = Instant::now() + lasts;
        house.live.close_delay(Duration::from_millis(*random.pick(&CLOSE_DELAYS)));
        let mut own = || Random(random.below(1 << 31));
        let keepers = (0..6).map(|it| viewers::keeper(house, it, own(), until)).collect::<Vec<_>>();
        let zappers = (0..3).map(|it| viewers::zapper(house, it, own(), until)).collect::<Vec<_>>();
        let idlers = (0..2).map(|it| viewers::idler(house, it, own(), until)).collect::<Vec<_>>();
        let saboteurs =
            (0..trouble::SABOTEURS).map(|it| trouble::saboteur(house, it, own(), until)).collect::<Vec<_>>();
        use futures_util::future::join_all;
        tokio::join!(
            async { tokio::join!(join_all(keepers), join_all(zappers), join_all(idlers)) },
            viewers::prober(house, own(), until),
            join_all(saboteurs),
            trouble::program_killer(house, own(), until),
            trouble::reaper(house, own(), until),
            admin::controller(house, own(), until),
            admin::editor(house, own(), until),
            admin::importer(house, own(), until),
            admin::reader(house, own(), until),
            listeners::eager(house, until),
            listeners::deaf(house, until),
            listeners::passing(house, own(), until),
            watchman::watches(house, until),
        );
    }

    #[expect(clippy::print_stderr, reason = "who waits for an hour wants to see something")]
    fn tell(text: &str) {
        eprintln!("{text}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn however_long_everything_happens_at_once_every_byte_is_accounted_for_and_nothing_is_left() {
        // Holds T-slot.1, T-life.1, T-life.6 and T-view.1 for the whole house.
        // `STAMINA_MINUTES=60 STAMINA_SEED=7` by hand: see CONTRIBUTING.md.
        let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
        let (minutes, seed) = (number("STAMINA_MINUTES"), number("STAMINA_SEED").unwrap_or(1));
        let lasts = if minutes.is_some() { LASTS_BY_HAND } else { LASTS };
        let rounds = minutes.unwrap_or(ROUNDS);
        tell(&format!("stamina: seed {seed}, {rounds} rounds of {} s", lasts.as_secs()));
        let panics = process::counts_panics();
        let mut random = Random(seed);
        let clip = match minutes {
            Some(_) => Some(Clip::plain().await),
            None => None,
        };
        let house = House::build(&mut random, clip).await;
        let baseline = Baseline::of(&house).await;
        let mut warm = None;
        for round in 1..=rounds {
            under_load(&house, &mut random, lasts).await;
            let rest = timeout(REST_MAX, watchman::rests(&house, &mut random, &baseline)).await;
            let (line, kib) = rest.expect("it comes to rest");
            tell(&format!("round {round}: {line}"));
            assert_eq!(panics.load(std::sync::atomic::Ordering::Relaxed), 0, "something panicked, see above");
            let before = *warm.get_or_insert(kib);
            let grown = kib.saturating_sub(before);
            assert!(grown < GROWTH_KIB_MAX, "grew by {grown} KiB since the first round");
        }
        watchman::ends(house, &baseline).await;
    }
}
