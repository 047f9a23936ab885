//! Load test for any duration: all kinds of viewers, all kinds of source failures, accounts at their limits, admin
//! activity, background refreshes, WebSocket clients, and failing actors.
//!
//! During the load no account exceeds its limit, no lease ends before its socket, every viewer receives a clean stream
//! without gaps, and the reported numbers are right. Whenever the gateway is idle again, nothing is left over.

mod admin;
mod byte_audit;
mod checks;
mod faults;
mod fixture;
mod process;
mod viewers;
mod websocket_clients;

mod night {
    use std::time::Duration;

    use tokio::time::{Instant, timeout};

    use super::checks::{self, Baseline};
    use super::fixture::LoadTestFixture;
    use super::{admin, faults, process, viewers, websocket_clients};
    use crate::support::random::Random;
    use crate::support::signal::Clip;

    /// Number of rounds, and the duration of the load in each.
    const ROUNDS: u64 = 3;
    const ROUND: Duration = Duration::from_secs(10);
    /// Duration of a round when the number of minutes is set.
    const MANUAL_ROUND: Duration = Duration::from_secs(55);
    /// Longest time from the end of the load until the gateway is idle.
    const IDLE_TIMEOUT: Duration = Duration::from_secs(150);
    /// Maximum growth of memory in use after the first round, in KiB. Histories and caches are bounded, and have not
    /// reached their bounds after one round.
    const GROWTH_KIB_MAX: u64 = 16 << 10;

    /// How long a provider waits before it closes after the gateway did, in milliseconds; the last value means never.
    const CLOSE_DELAYS: [u64; 4] = [0, 50, 200, 3_600_000];

    async fn run_load(fixture: &LoadTestFixture, random: &mut Random, lasts: Duration) {
        let until = Instant::now() + lasts;
        fixture.live.close_delay(Duration::from_millis(*random.pick(&CLOSE_DELAYS)));
        let mut own = || Random(random.below(1 << 31));
        let steady_viewers =
            (0..6).map(|it| viewers::steady_viewer(fixture, it, own(), until)).collect::<Vec<_>>();
        let zappers = (0..3).map(|it| viewers::zapper(fixture, it, own(), until)).collect::<Vec<_>>();
        let slow_viewers =
            (0..2).map(|it| viewers::slow_viewer(fixture, it, own(), until)).collect::<Vec<_>>();
        let fault_injectors = (0..faults::FAULT_INJECTORS)
            .map(|it| faults::fault_injector(fixture, it, own(), until))
            .collect::<Vec<_>>();
        use futures_util::future::join_all;
        tokio::join!(
            async { tokio::join!(join_all(steady_viewers), join_all(zappers), join_all(slow_viewers)) },
            viewers::prober(fixture, own(), until),
            join_all(fault_injectors),
            faults::program_killer(fixture, own(), until),
            faults::actor_killer(fixture, own(), until),
            admin::controller(fixture, own(), until),
            admin::editor(fixture, own(), until),
            admin::importer(fixture, own(), until),
            admin::reader(fixture, own(), until),
            websocket_clients::reader(fixture, until),
            websocket_clients::non_reader(fixture, until),
            websocket_clients::short_lived(fixture, own(), until),
            checks::check_until(fixture, until),
        );
    }

    #[expect(clippy::print_stderr, reason = "a run of an hour needs visible progress")]
    fn print(text: &str) {
        eprintln!("{text}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn every_byte_is_accounted_for_under_load_and_nothing_is_left_over() {
        // Holds T-slot.1, T-life.1, T-life.6 and T-view.1 for the whole gateway.
        // `LOAD_TEST_MINUTES=60 LOAD_TEST_SEED=7` sets duration and seed: see CONTRIBUTING.md.
        let number = |name: &str| std::env::var(name).ok().and_then(|it| it.parse::<u64>().ok());
        let (minutes, seed) = (number("LOAD_TEST_MINUTES"), number("LOAD_TEST_SEED").unwrap_or(1));
        let lasts = if minutes.is_some() { MANUAL_ROUND } else { ROUND };
        let rounds = minutes.unwrap_or(ROUNDS);
        print(&format!("load test: seed {seed}, {rounds} rounds of {} s", lasts.as_secs()));
        let panics = process::count_panics();
        let mut random = Random(seed);
        let clip = match minutes {
            Some(_) => Some(Clip::plain().await),
            None => None,
        };
        let fixture = LoadTestFixture::build(&mut random, clip).await;
        let baseline = Baseline::of(&fixture).await;
        let mut warm = None;
        for round in 1..=rounds {
            run_load(&fixture, &mut random, lasts).await;
            let rest = timeout(IDLE_TIMEOUT, checks::check_idle(&fixture, &mut random, &baseline)).await;
            let (line, kib) = rest.expect("the gateway becomes idle");
            print(&format!("round {round}: {line}"));
            assert_eq!(panics.load(std::sync::atomic::Ordering::Relaxed), 0, "something panicked, see above");
            let before = *warm.get_or_insert(kib);
            let grown = kib.saturating_sub(before);
            assert!(grown < GROWTH_KIB_MAX, "grew by {grown} KiB since the first round");
        }
        checks::shut_down(fixture, &baseline).await;
    }
}
