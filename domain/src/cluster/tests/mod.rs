//! The model: many nodes with a simulated engine, network, clocks and provider, driven by seeded schedules.
//!
//! A seed replays a schedule: `CLUSTER_SEED=n`. The number of schedules is `CLUSTER_SCHEDULES`; a long run begins at
//! another seed with `CLUSTER_FIRST_SEED`. `CLUSTER_TRACE=1` prints what happens.

mod cases;
mod engine;
mod panel;
mod provider;
mod random;
mod seats;
mod world;

use std::env;
use std::ops::Range;

use self::world::full::GIVE_UP_MS;
use super::rules::ClusterRule;

/// The number of schedules of all parts of a night together, unless the environment says otherwise.
const SCHEDULES: u64 = 100_000;

/// The number of schedules without those of a night.
const SCHEDULES_OF_CI: u64 = 300;

/// The schedules are divided into tests that run at the same time.
const PARTS: u64 = 4;

/// The number of schedules within which the model must notice that a rule is broken.
const SCHEDULES_TO_NOTICE: u64 = 20_000;

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().map(|it| it.parse().expect("the variable is a number"))
}

/// Prints the seed if a schedule panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("replay this schedule with CLUSTER_SEED={}", self.0);
        }
    }
}

/// Runs one part of the schedules: limits hold at any time, and work resumes after the faults.
fn check(part: u64) {
    let seeds = match number("CLUSTER_SEED") {
        Some(seed) => seed..seed + u64::from(part == 0),
        None => {
            let first = number("CLUSTER_FIRST_SEED").unwrap_or(0);
            let length = number("CLUSTER_SCHEDULES").unwrap_or(SCHEDULES).div_ceil(PARTS);
            first + part * length..first + (part + 1) * length
        }
    };
    run(seeds);
}

fn run(seeds: Range<u64>) {
    for seed in seeds {
        let _replay = Seed(seed);
        if let Err(violation) = world::run(seed, None) {
            panic!("{violation}");
        }
    }
}

#[test]
fn limits_hold_and_work_resumes_in_hundreds_of_schedules() {
    run(0..SCHEDULES_OF_CI);
}

/// Runs schedules in which the account is full and a machine fails.
fn run_full(seeds: Range<u64>) {
    for seed in seeds {
        let _replay = Seed(seed);
        if let Err(violation) = world::run_full(seed, GIVE_UP_MS) {
            panic!("{violation}");
        }
    }
}

// Holds T-clu.1 (the model).
#[test]
fn no_viewer_of_a_surviving_machine_ends_while_the_account_is_full() {
    match number("CLUSTER_SEED") {
        Some(seed) => run_full(seed..seed + 1),
        None => run_full(0..SCHEDULES_OF_CI),
    }
}

#[test]
fn the_model_notices_viewers_who_end_too_early() {
    let ends = |seed| world::run_full(seed, GIVE_UP_MS / 2).is_err();
    assert!((0..SCHEDULES_OF_CI).any(ends));
}

mod night {
    use super::*;

    // Holds T-clu.1 (the model).
    #[test]
    fn no_viewer_of_a_surviving_machine_ends_in_tens_of_thousands_of_schedules() {
        let n = number("CLUSTER_SCHEDULES").unwrap_or(SCHEDULES) / PARTS;
        let first = number("CLUSTER_FIRST_SEED").unwrap_or(0);
        run_full(first..first + n);
    }

    #[test]
    fn limits_hold_and_work_resumes_in_the_first_quarter_of_all_schedules() {
        check(0);
    }

    #[test]
    fn limits_hold_and_work_resumes_in_the_second_quarter_of_all_schedules() {
        check(1);
    }

    #[test]
    fn limits_hold_and_work_resumes_in_the_third_quarter_of_all_schedules() {
        check(2);
    }

    #[test]
    fn limits_hold_and_work_resumes_in_the_last_quarter_of_all_schedules() {
        check(3);
    }
}

/// Checks that the model notices when this rule is broken.
fn is_noticed(rule: ClusterRule) {
    let found =
        (0..SCHEDULES_TO_NOTICE).find_map(|seed| world::run(seed, Some(rule)).err().map(|it| (seed, it)));
    let (seed, violation) = found.expect("the model notices that the rule is broken");
    assert_eq!(world::run(seed, None), Ok(()), "the schedule passes with all rules");
    println!("seed {seed}: {violation:.300}");
}

/// One test for each rule: the model fails when it is broken.
mod the_model_notices_a_broken {
    use super::*;

    #[test]
    fn renew_from_own_revision() {
        is_noticed(ClusterRule::RenewFromOwnRevision);
    }

    #[test]
    fn close_at_deadline() {
        is_noticed(ClusterRule::CloseAtDeadline);
    }

    #[test]
    fn take_over_after_20s() {
        is_noticed(ClusterRule::TakeOverAfter20s);
    }

    #[test]
    fn take_over_by_swap() {
        is_noticed(ClusterRule::TakeOverBySwap);
    }

    #[test]
    fn closed_on_same_boot() {
        is_noticed(ClusterRule::ClosedOnSameBoot);
    }

    #[test]
    fn cooling_after_return() {
        is_noticed(ClusterRule::CoolingAfterReturn);
    }

    #[test]
    fn cooling_after_crash() {
        is_noticed(ClusterRule::CoolingAfterCrash);
    }

    #[test]
    fn cooling_seen_by_itself() {
        is_noticed(ClusterRule::CoolingSeenByItself);
    }

    #[test]
    fn closing_counts() {
        is_noticed(ClusterRule::ClosingCounts);
    }

    #[test]
    fn grant_by_swap() {
        is_noticed(ClusterRule::GrantBySwap);
    }

    #[test]
    fn time_out_does_not_count_as_a_failure() {
        is_noticed(ClusterRule::TimeOutIsNoFailure);
    }

    #[test]
    fn time_out_does_not_count_as_a_success() {
        is_noticed(ClusterRule::TimeOutIsNoSuccess);
    }

    #[test]
    fn pause_after_restart() {
        is_noticed(ClusterRule::PauseAfterRestart);
    }

    #[test]
    fn pause_at_start() {
        is_noticed(ClusterRule::PauseAtStart);
    }

    #[test]
    fn register_again() {
        is_noticed(ClusterRule::RegisterAgain);
    }

    #[test]
    fn own_by_swap() {
        is_noticed(ClusterRule::OwnBySwap);
    }

    #[test]
    fn remove_ended_waiters() {
        is_noticed(ClusterRule::RemoveEndedWaiters);
    }

    #[test]
    fn keep_predecessor() {
        is_noticed(ClusterRule::KeepPredecessor);
    }

    #[test]
    fn predecessor_counts() {
        is_noticed(ClusterRule::PredecessorCounts);
    }

    #[test]
    fn guard_names_process() {
        is_noticed(ClusterRule::GuardNamesProcess);
    }

    #[test]
    fn monotonic_clock() {
        is_noticed(ClusterRule::MonotonicClock);
    }

    /// The schedule that shows it comes late.
    mod night {
        use super::*;

        #[test]
        fn deadline_from_sending() {
            is_noticed(ClusterRule::DeadlineFromSending);
        }

        #[test]
        fn guard_counts_predecessor() {
            is_noticed(ClusterRule::GuardCountsPredecessor);
        }

        #[test]
        fn close_handed_over() {
            is_noticed(ClusterRule::CloseHandedOver);
        }

        #[test]
        fn predecessor_is_registered() {
            is_noticed(ClusterRule::PredecessorIsRegistered);
        }

        #[test]
        fn suspend_counts() {
            is_noticed(ClusterRule::SuspendCounts);
        }

        #[test]
        fn guard_kills_frozen() {
            is_noticed(ClusterRule::GuardKillsFrozen);
        }
    }
}
