//! The queue of refreshes: those that run, and those that wait for their turn.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;
use uuid::Uuid;

use super::{RefreshRow, RefreshTable};

/// The refreshes of records of one kind. Each record is in the queue at most once, which bounds it by the number of records.
/// `R` is what a refresh is requested with, and `W` the work of one that runs.
pub(crate) struct RefreshQueue<I, R, W> {
    running_max: usize,
    running: BTreeMap<I, RunningRefresh<R, W>>,
    /// In the order of their requests.
    waiting: VecDeque<WaitingRefresh<I, R>>,
}

/// A refresh that waits for its turn.
pub(crate) struct WaitingRefresh<I, R> {
    pub(crate) id: I,
    pub(crate) job: Uuid,
    pub(crate) request: R,
}

/// A refresh that runs.
pub(crate) struct RunningRefresh<R, W> {
    pub(crate) job: Uuid,
    pub(crate) request: R,
    pub(crate) began: Instant,
    /// The record changed meanwhile: another refresh follows, with this request.
    pub(crate) again: Option<R>,
    pub(crate) work: W,
}

/// The work of a refresh in a task.
pub(crate) struct RefreshTask {
    /// The name of the record when the refresh began.
    pub(crate) name: String,
    pub(crate) stop: CancellationToken,
    pub(crate) task: AbortOnDropHandle<()>,
}

impl<I: Copy + Ord, R, W> RefreshQueue<I, R, W> {
    /// Creates a queue of which this many refreshes run at one time.
    pub(crate) fn new(running_max: usize) -> Self {
        Self { running_max, running: BTreeMap::new(), waiting: VecDeque::new() }
    }

    /// Returns the job of the refresh of a record, if one runs or waits.
    pub(crate) fn job(&self, id: I) -> Option<Uuid> {
        let waiting = || self.waiting.iter().find(|it| it.id == id).map(|it| it.job);
        self.running.get(&id).map(|it| it.job).or_else(waiting)
    }

    /// Adds a refresh.
    ///
    /// # Errors
    /// One of the record runs or waits, with this job.
    pub(crate) fn add(&mut self, id: I, job: Uuid, request: R) -> Result<(), Uuid> {
        match self.job(id) {
            Some(job) => Err(job),
            None => {
                self.waiting.push_back(WaitingRefresh { id, job, request });
                Ok(())
            }
        }
    }

    /// Takes the first waiting refresh of a record that is ready, unless enough run. It has to be [started](Self::started).
    pub(crate) fn take_next(&mut self, is_ready: impl Fn(I) -> bool) -> Option<WaitingRefresh<I, R>> {
        if self.running.len() >= self.running_max {
            return None;
        }
        let at = self.waiting.iter().position(|it| is_ready(it.id))?;
        self.waiting.remove(at)
    }

    /// Notes that a refresh runs.
    pub(crate) fn started(&mut self, WaitingRefresh { id, job, request }: WaitingRefresh<I, R>, work: W) {
        let running = RunningRefresh { job, request, began: Instant::now(), again: None, work };
        self.running.insert(id, running);
    }

    /// Removes a refresh that ended. `None` if this job does not run.
    pub(crate) fn finished(&mut self, id: I, job: Uuid) -> Option<RunningRefresh<R, W>> {
        if self.running.get(&id)?.job != job {
            return None;
        }
        self.running.remove(&id)
    }

    pub(crate) fn running(&self) -> impl Iterator<Item = &RunningRefresh<R, W>> {
        self.running.values()
    }

    pub(crate) fn running_mut(&mut self, id: I) -> Option<&mut RunningRefresh<R, W>> {
        self.running.get_mut(&id)
    }

    /// Returns the request of a refresh that waits.
    pub(crate) fn waiting_mut(&mut self, id: I) -> Option<&mut R> {
        self.waiting.iter_mut().find(|it| it.id == id).map(|it| &mut it.request)
    }

    /// Returns whether one waits.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns whether one runs.
    pub(crate) fn is_running(&self) -> bool {
        !self.running.is_empty()
    }

    /// Forgets the refreshes that wait.
    pub(crate) fn clear_waiting(&mut self) {
        self.waiting.clear();
    }
}

impl<I: Ord, R> RefreshQueue<I, R, RefreshTask> {
    /// Waits for the refreshes that run, at most for this long. One that does not end in time is dropped and writes nothing.
    pub(crate) async fn ended(&mut self, at_most: Duration) {
        let running = std::mem::take(&mut self.running);
        let ended = async {
            for (_, it) in running {
                // The task itself reports how it ended.
                let _ = it.work.task.await;
            }
        };
        let _ = timeout(at_most, ended).await;
    }
}

/// Does the work of a refresh in a task of its own, so that a panic ends nothing else. `finish` completes the progress of one
/// that ended without doing so; `report` gets the outcome, which is `panicked` after a panic.
pub(crate) fn start_refresh<P, D>(
    progress: Arc<RefreshTable<P>>,
    (id, job): (P::Id, Uuid),
    work: impl Future<Output = D> + Send + 'static,
    panicked: D,
    finish: fn(&mut P, &D),
    report: impl FnOnce(D) + Send + 'static,
) -> AbortOnDropHandle<()>
where
    P: RefreshRow + Send + 'static,
    P::Id: Send,
    D: Send + 'static,
{
    AbortOnDropHandle::new(crate::tasks::spawn(async move {
        let done = AbortOnDropHandle::new(crate::tasks::spawn(work)).await.unwrap_or(panicked);
        if let Some(mut last) = progress.get(id).filter(|it| it.job() == job && !it.is_done()) {
            finish(&mut last, &done);
            progress.update(last);
        }
        report(done);
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(n: u128) -> Uuid {
        Uuid::from_u128(n)
    }

    /// Starts what may run, and returns it.
    fn start(queue: &mut RefreshQueue<u32, bool, ()>, is_ready: impl Fn(u32) -> bool) -> Vec<u32> {
        let mut started = Vec::new();
        while let Some(next) = queue.take_next(&is_ready) {
            started.push(next.id);
            queue.started(next, ());
        }
        started
    }

    #[test]
    fn refreshes_run_in_the_order_of_their_requests_and_each_record_once() {
        let mut queue = RefreshQueue::new(2);
        for id in [3, 1, 2] {
            queue.add(id, job(id.into()), false).unwrap();
        }
        assert_eq!(queue.add(1, job(9), true), Err(job(1)), "it waits");
        assert_eq!(start(&mut queue, |_| true), [3, 1]);
        assert_eq!(queue.add(3, job(9), true), Err(job(3)), "it runs");
        assert!(queue.finished(3, job(9)).is_none(), "another job");
        assert_eq!(queue.finished(3, job(3)).map(|it| it.job), Some(job(3)));
        assert_eq!((start(&mut queue, |_| true), queue.has_waiting()), (vec![2], false));
    }

    #[test]
    fn a_record_that_is_not_ready_lets_later_ones_pass() {
        let mut queue = RefreshQueue::new(1);
        for id in [1, 2] {
            queue.add(id, job(id.into()), false).unwrap();
        }
        *queue.waiting_mut(1).unwrap() = true;
        assert_eq!(start(&mut queue, |it| it != 1), [2]);
        queue.finished(2, job(2)).unwrap();
        let next = queue.take_next(|_| true).unwrap();
        assert_eq!((next.id, next.request), (1, true));
    }
}
