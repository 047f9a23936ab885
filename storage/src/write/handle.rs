//! The handle of the writer thread: a queue of jobs, and the thread itself.

use std::fs;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::engine::disk_watch::DiskWatch;
use crate::engine::state::Partition;
use crate::error::{Error, Result};
use crate::write::reply::{GivenUp, Reply};
use crate::write::writer::{Fill, Job, StageFill, Writer};

/// Jobs that wait for the writer before a caller has to wait to submit another.
const QUEUE: usize = 256;

/// Longest wait for the end of the writer. A failed disk may hang for minutes, and everything answered is durable.
const CLOSE_MAX: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 10 });
/// Pause between two looks at the writer, while closing.
const CLOSE_PAUSE: Duration = Duration::from_millis(2);

/// Submits jobs to the writer thread. Clones share one thread; the last one stops it.
#[derive(Clone)]
pub(crate) struct WriterHandle {
    queue: mpsc::Sender<Job>,
    disk_watch: Arc<DiskWatch>,
    /// Dropped after the queue, so that it waits for a writer without further jobs.
    thread: Arc<WriterThread>,
}

/// A job whose reply was not waited for yet.
pub(crate) struct PendingReply<R>(oneshot::Receiver<Result<R>>);

/// The writer thread, and the folder of a temporary store.
struct WriterThread {
    queue: mpsc::WeakSender<Job>,
    thread: Mutex<Option<JoinHandle<()>>>,
    temporary: Option<PathBuf>,
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.close();
    }
}

impl WriterThread {
    /// Waits for the submitted jobs and stops the thread, unless the disk hangs.
    fn close(&self) -> bool {
        let deadline = Instant::now() + CLOSE_MAX;
        let mut is_told = false;
        let mut has_ended = true;
        let thread = self.thread.lock().take();
        while let Some(thread) = &thread
            && !thread.is_finished()
            && thread.thread().id() != std::thread::current().id()
        {
            if Instant::now() > deadline {
                tracing::error!("the disk does not respond; the store is left as it is");
                has_ended = false;
                break;
            }
            // Senders that waiting callers still hold do not keep the store open. The queue may be full.
            is_told = is_told || self.queue.upgrade().is_none_or(|queue| queue.try_send(Job::Close).is_ok());
            std::thread::sleep(CLOSE_PAUSE);
        }
        // Not left to the last handle: a process may exit while other tasks still hold one.
        self.remove_temporary();
        has_ended
    }

    /// Removes the folder of a temporary store. Readers with open files can continue.
    fn remove_temporary(&self) {
        if let Some(folder) = &self.temporary {
            // An error means that the folder is already removed or was taken over by something else.
            drop(fs::remove_dir_all(folder));
        }
    }
}

impl WriterHandle {
    /// Starts the thread of a writer. A temporary folder is removed with the last handle.
    pub(crate) fn start(writer: Writer, temporary: Option<PathBuf>) -> Result<Self> {
        let (queue, jobs) = mpsc::channel(QUEUE);
        let disk_watch = Arc::clone(&writer.shared.disk_watch);
        let watch = disk_watch.start()?;
        let failed = |error| Error::disk("start the writer's thread", error);
        let timer = Builder::new_current_thread().enable_time().build().map_err(failed)?;
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writer.run(jobs, &timer, watch))
            .map_err(failed)?;
        let thread = WriterThread { queue: queue.downgrade(), thread: Mutex::new(Some(thread)), temporary };
        Ok(Self { queue, disk_watch, thread: Arc::new(thread) })
    }

    /// Returns whether the folder of the store is removed with the last handle.
    pub(crate) fn is_temporary(&self) -> bool {
        self.thread.temporary.is_some()
    }

    /// Runs a function on the writer thread and waits until its changes are durable. Returns whether it succeeded.
    pub(crate) async fn write(&self, fill: Fill) -> Result<bool> {
        self.write_job(|reply| Job::Write(fill, reply)).await
    }

    /// Does the same as [`WriterHandle::write`], on a thread that may block.
    pub(crate) fn write_blocking(&self, fill: Fill) -> Result<bool> {
        block_on(pin!(self.write(fill)))
    }

    /// Completes a bulk write: this partition replaces the present one, together with the changes of the function. Waits
    /// until they are durable, on a thread that may block. Returns whether the function succeeded.
    pub(crate) fn commit_stage(
        &self,
        stage: u64,
        partition: Box<Partition>,
        fill: StageFill,
    ) -> Result<bool> {
        block_on(pin!(self.write_job(|reply| Job::CommitStage { stage, partition, fill, reply })))
    }

    /// Submits a job and waits until its changes are durable. It is not carried out if the disk hangs before it begins.
    async fn write_job(&self, job: impl FnOnce(Reply) -> Job) -> Result<bool> {
        let is_given_up = GivenUp::default();
        let (reply, answer) = Reply::new(is_given_up.clone());
        let done = async { answer.await.unwrap_or_else(|_| Err(self.unanswered())) };
        self.submit(job(reply), pin!(done), || is_given_up.set()).await
    }

    /// Submits a job and waits for its reply, on a thread that may block.
    pub(crate) fn request<R>(&self, job: impl FnOnce(oneshot::Sender<Result<R>>) -> Job) -> Result<R>
    where
        R: Send,
    {
        let (reply, answer) = oneshot::channel();
        let mut answered = None;
        self.request_job(
            job(reply),
            pin!(async {
                answered = answer.await.ok();
                Ok(true)
            }),
        )?;
        answered.unwrap_or_else(|| Err(self.unanswered()))
    }

    /// Submits a job on a thread that may block. Waits for a place in the queue only; the reply is that of
    /// [`WriterHandle::wait_for`].
    pub(crate) fn begin_request<R>(
        &self,
        job: impl FnOnce(oneshot::Sender<Result<R>>) -> Job,
    ) -> Result<PendingReply<R>> {
        let (reply, answer) = oneshot::channel();
        self.request_job(job(reply), pin!(async { Ok(true) }))?;
        Ok(PendingReply(answer))
    }

    /// Waits for the reply to a job, on a thread that may block.
    pub(crate) fn wait_for<R>(&self, pending: PendingReply<R>) -> Result<R>
    where
        R: Send,
    {
        let mut answered = None;
        let done = async {
            answered = pending.0.await.ok();
            Ok(true)
        };
        block_on(pin!(self.unless_hanging(pin!(done), || ())))?;
        answered.unwrap_or_else(|| Err(self.unanswered()))
    }

    fn request_job(&self, job: Job, done: Pin<&mut Done<'_>>) -> Result<bool> {
        block_on(pin!(self.submit(job, done, || ())))
    }

    /// Submits a job, also if the queue is full, and waits for its answer. Gives up when the disk hangs.
    async fn submit(&self, job: Job, done: Pin<&mut Done<'_>>, give_up: impl FnOnce()) -> Result<bool> {
        if let Some(why) = self.disk_watch.present_hang() {
            return Err(Error::Stopped(why));
        }
        let done = async {
            if self.queue.send(job).await.is_err() {
                return Err(Error::Closed);
            }
            done.await
        };
        self.unless_hanging(pin!(done), give_up).await
    }

    /// Waits for the end of a job. Gives up when the disk hangs.
    async fn unless_hanging(&self, done: Pin<&mut Done<'_>>, give_up: impl FnOnce()) -> Result<bool> {
        tokio::select! {
            biased;
            done = done => done,
            why = self.disk_watch.hang() => {
                give_up();
                Err(Error::Stopped(why))
            }
        }
    }

    /// Submits a job from a context that must not block. The job is lost if the queue is full and the system has no thread
    /// that waits for a place.
    pub(crate) fn submit_without_waiting(&self, job: Job) {
        if let Err(mpsc::error::TrySendError::Full(job)) = self.queue.try_send(job) {
            let queue = self.queue.clone();
            let waiting = std::thread::Builder::new().spawn(move || drop(queue.blocking_send(job)));
            if let Err(error) = waiting {
                tracing::warn!("failed to start a thread that hands a job to the store: {error}");
            }
        }
    }

    /// Returns the error of a job whose reply was dropped.
    pub(crate) fn unanswered(&self) -> Error {
        if self.queue.is_closed() { Error::Closed } else { Error::Panicked }
    }

    /// Waits for the submitted jobs and stops the thread.
    /// Returns false if it has not ended, because the disk hangs.
    pub(crate) fn close(&self) -> bool {
        self.thread.close()
    }
}

/// The end of a job, and whether it succeeded.
type Done<'a> = dyn Future<Output = Result<bool>> + Send + 'a;

/// Waits on a thread that may block. The future needs neither a timer nor input and output.
fn block_on(done: Pin<&mut Done<'_>>) -> Result<bool> {
    let runtime = Builder::new_current_thread().build();
    runtime.map_err(|error| Error::disk("wait for the store", error))?.block_on(done)
}
