//! Requests that are not granted yet: which pools they ask, in which order.

use std::collections::BTreeMap;

use domain::cluster::BootTime;
use domain::cluster::record::{PoolId, PoolTable};
use domain::plan::SlotPool;
use tokio::time::Instant;

use crate::slots::{Asking, Request, SlotCandidate, WaitingEntry};

/// A request that is not granted yet.
pub(super) struct Pending {
    pub(super) request: Request,
    /// Time at which the cluster refuses it.
    pub(super) until: BootTime,
    /// Time at which it is refused here, if the cluster has not answered.
    pub(super) expires: Instant,
    /// Consecutive candidates of one table.
    runs: Vec<Run>,
    /// The next run to try without waiting.
    next: usize,
    stage: Stage,
    /// The requests in the cluster that have no answer.
    pub(super) asks: Vec<Ask>,
    /// Lists the request as waiting.
    pub(super) listed: Option<WaitingEntry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Trying,
    Waiting,
}

/// Consecutive candidates that belong to one table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Run {
    /// `None`: the candidates have no limit.
    pub(super) pool: Option<PoolId>,
    /// Indices into the order of the request.
    pub(super) places: Vec<usize>,
}

/// A request to one slot table.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) number: u64,
    pub(super) pool: PoolId,
    /// Indices into the order of the request.
    pub(super) places: Vec<usize>,
}

/// The next step of a request without an ask in the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Take a slot without a limit, if there is one.
    Local(Vec<usize>),
    /// Ask these tables for a slot that is free now.
    Try(PoolId, Vec<usize>),
    /// Wait in all these tables.
    Wait(Vec<(PoolId, Vec<usize>)>),
    Refuse,
}

impl Pending {
    pub(super) fn new(request: Request, until: BootTime, expires: Instant) -> Self {
        let runs = runs(&request.order);
        let (asks, listed) = (Vec::new(), None);
        Self { request, until, expires, runs, next: 0, stage: Stage::Trying, asks, listed }
    }

    /// Returns what to do next. Each step is returned once, so this ends with a refusal.
    pub(super) fn step(&mut self) -> Step {
        let is_beside = matches!(self.request.asking, Asking::Beside);
        if self.stage == Stage::Waiting {
            return Step::Refuse;
        }
        // One table decides at once whether to grant or to wait.
        if (self.runs.len() > 1 || is_beside)
            && let Some(run) = self.runs.get(self.next)
        {
            self.next += 1;
            return match run.pool {
                Some(pool) => Step::Try(pool, run.places.clone()),
                None => Step::Local(run.places.clone()),
            };
        }
        self.stage = Stage::Waiting;
        if is_beside {
            return Step::Refuse;
        }
        let mut pools: Vec<(PoolId, Vec<usize>)> = Vec::new();
        for run in &self.runs {
            let Some(pool) = run.pool else { continue };
            match pools.iter_mut().find(|it| it.0 == pool) {
                Some(it) => it.1.extend(&run.places),
                None => pools.push((pool, run.places.clone())),
            }
        }
        Step::Wait(pools)
    }

    /// Returns whether other candidates follow that are tried.
    pub(super) fn has_more_to_try(&self) -> bool {
        self.stage == Stage::Trying && self.next < self.runs.len()
    }

    /// Returns the candidates without a limit.
    pub(super) fn unlimited(&self) -> Vec<usize> {
        self.runs.iter().filter(|it| it.pool.is_none()).flat_map(|it| it.places.clone()).collect()
    }
}

/// Returns the table of a pool in the cluster. `None`: it has no limit, and each node grants its slots by itself.
///
/// All accounts of a server group are in its table, also those without a limit, because another account of the group may
/// bring its own limit to the group.
pub(super) fn table_of(pool: &SlotPool) -> Option<PoolId> {
    match &pool.shared {
        Some(shared) => Some(PoolId::Group(shared.group)),
        None => (pool.max_streams > 0).then_some(PoolId::Profile(pool.profile)),
    }
}

fn runs(order: &[SlotCandidate]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (place, candidate) in order.iter().enumerate() {
        let pool = table_of(&candidate.pool);
        match runs.last_mut() {
            Some(run) if run.pool == pool => run.places.push(place),
            _ => runs.push(Run { pool, places: vec![place] }),
        }
    }
    runs
}

/// Returns the pool with the limits that are left for a request to a table: without reserved slots, and without slots of
/// the same account in other tables, where they were granted before the account came into a server group or left it.
/// `None`: nothing is left.
pub(super) fn limits_left(
    pool: &SlotPool,
    table: PoolId,
    reserved: (u32, u32),
    tables: &BTreeMap<PoolId, PoolTable>,
) -> Option<SlotPool> {
    let others = || tables.iter().filter(|it| *it.0 != table).flat_map(|it| &it.1.entries);
    let n_own = others().filter(|it| it.profile == pool.profile).count();
    let left = |max: u32, reserved: u32, n_others: usize| match max {
        0 => Some(0),
        _ => {
            let used = reserved.saturating_add(u32::try_from(n_others).unwrap_or(u32::MAX));
            max.checked_sub(used).filter(|it| *it > 0)
        }
    };
    let mut pool = pool.clone();
    pool.max_streams = left(pool.max_streams, reserved.0, n_own)?;
    if let Some(shared) = &mut pool.shared {
        let n_group = others().filter(|it| shared.accounts.contains(&it.account)).count();
        // Those of the profile count for its group too.
        shared.max_streams = left(shared.max_streams, reserved.1.max(reserved.0), n_group)?;
    }
    Some(pool)
}
