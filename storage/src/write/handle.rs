//! The handle of the writer thread: a queue of jobs, and the thread itself.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::error::{Error, Result};
use crate::write::Write;
use crate::write::writer::{Answer, Job, Writer};

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
    /// Dropped after the queue, so that it waits for a writer without further jobs.
    thread: Arc<WriterThread>,
}

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
    fn close(&self) {
        let deadline = Instant::now() + CLOSE_MAX;
        let mut is_told = false;
        let thread = self.thread.lock().take();
        while let Some(thread) = &thread
            && !thread.is_finished()
            && thread.thread().id() != std::thread::current().id()
        {
            if Instant::now() > deadline {
                tracing::error!("the disk does not respond; the store is left as it is");
                break;
            }
            // Senders that waiting callers still hold do not keep the store open. The queue may be full.
            is_told = is_told || self.queue.upgrade().is_none_or(|queue| queue.try_send(Job::Close).is_ok());
            std::thread::sleep(CLOSE_PAUSE);
        }
        // Not left to the last handle: a process may exit while other tasks still hold one.
        self.remove_temporary();
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
        let thread = std::thread::Builder::new()
            .name("store".to_owned())
            .spawn(move || writer.run(jobs))
            .map_err(|error| Error::disk("start the writer's thread", error))?;
        let thread = WriterThread { queue: queue.downgrade(), thread: Mutex::new(Some(thread)), temporary };
        Ok(Self { queue, thread: Arc::new(thread) })
    }

    /// Runs a function on the writer thread and waits until its changes are durable.
    pub(crate) async fn write<R, E, F>(&self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, answer) = write_job(fill);
        if self.queue.send(job).await.is_err() {
            return Err(Error::Closed.into());
        }
        answer.await.unwrap_or_else(|_| Err(self.unanswered().into()))
    }

    /// Does the same as [`WriterHandle::write`], on a thread that may block.
    pub(crate) fn write_blocking<R, E, F>(&self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let (job, answer) = write_job(fill);
        if !self.submit(job) {
            return Err(Error::Closed.into());
        }
        answer.blocking_recv().unwrap_or_else(|_| Err(self.unanswered().into()))
    }

    /// Submits a job and waits for its reply.
    pub(crate) fn request<R>(&self, job: impl FnOnce(oneshot::Sender<Result<R>>) -> Job) -> Result<R> {
        let (reply, answer) = oneshot::channel();
        if !self.submit(job(reply)) {
            return Err(Error::Closed);
        }
        answer.blocking_recv().unwrap_or_else(|_| Err(self.unanswered()))
    }

    /// Submits a job; waits while the queue is full. Returns false if the store is closed.
    pub(crate) fn submit(&self, job: Job) -> bool {
        self.queue.blocking_send(job).is_ok()
    }

    /// Submits a job from a context that must not block.
    pub(crate) fn submit_without_waiting(&self, job: Job) {
        if let Err(mpsc::error::TrySendError::Full(job)) = self.queue.try_send(job) {
            let queue = self.queue.clone();
            std::thread::spawn(move || drop(queue.blocking_send(job)));
        }
    }

    /// Returns the error of a job whose reply was dropped.
    pub(crate) fn unanswered(&self) -> Error {
        if self.queue.is_closed() { Error::Closed } else { Error::Panicked }
    }

    /// Waits for the submitted jobs and stops the thread.
    pub(crate) fn close(&self) {
        self.thread.close();
    }
}

/// Receives the result of a write.
type PendingAnswer<R, E> = oneshot::Receiver<Result<R, E>>;

fn write_job<R, E, F>(fill: F) -> (Job, PendingAnswer<R, E>)
where
    F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    let (reply, answer) = oneshot::channel();
    (Job::Write(Box::new(move |write| answer_when_durable(fill(write), reply))), answer)
}

/// Replies with a failure immediately, and with a success once it is durable.
pub(crate) fn answer_when_durable<R, E>(
    filled: Result<R, E>,
    reply: oneshot::Sender<Result<R, E>>,
) -> Option<Answer>
where
    R: Send + 'static,
    E: From<Error> + Send + 'static,
{
    match filled {
        // The caller may be gone; the write is committed anyway.
        Ok(value) => Some(Box::new(move |done| drop(reply.send(done.map(|()| value).map_err(E::from))))),
        Err(error) => {
            drop(reply.send(Err(error)));
            None
        }
    }
}
