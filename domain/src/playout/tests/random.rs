//! Random schedules against the model of the owner.

use proptest::collection::vec;
use proptest::prelude::*;

use crate::playout::model::{Op, run, run_bytes};

fn op() -> impl Strategy<Value = Op> {
    any::<[u8; 3]>().prop_map(Op::from_bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    // Holds the pure part of T-life.1: at the end, and in every state that claims so, nothing is held.
    #[test]
    fn the_playout_and_its_owner_always_agree(
        plan in any::<u8>(),
        options in any::<u8>(),
        ops in vec(op(), 0..120),
    ) {
        run(plan, options, &ops);
    }
}

#[test]
fn a_schedule_of_bytes_runs_to_its_end() {
    run_bytes(&[]);
    run_bytes(&[3, 0]);
    run_bytes(&[3, 0, 0, 0, 0, 3, 0, 0, 3, 0, 0, 3, 0, 0, 16, 2, 0, 24, 255, 255, 1]);
}
