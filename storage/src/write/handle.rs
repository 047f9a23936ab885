//! The handle of the writer thread: a queue of jobs, and the thread itself.

use std::fs;
use std::path::PathBuf;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::engine::disk_watch::DiskWatch;
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
    disk_watch: Arc<DiskWatch>,
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

    /// Runs a function on the writer thread and waits until its changes are durable.
    pub(crate) fn write<R, E, F>(
        &self,
        fill: F,
    ) -> impl Future<Output = Result<R, E>> + Send + use<'_, R, E, F>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let outcome = FillOutcome::default();
        let fill = outcome.stored_by(fill);
        self.write_and_take(fill, outcome)
    }

    async fn write_and_take<R, E>(&self, fill: UntypedFill, outcome: FillOutcome<R, E>) -> Result<R, E>
    where
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let done = self.write_untyped(fill).await;
        outcome.take(done)
    }

    /// Does the same as [`WriterHandle::write`], on a thread that may block.
    pub(crate) fn write_blocking<R, E, F>(&self, fill: F) -> Result<R, E>
    where
        F: FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static,
        R: Send + 'static,
        E: From<Error> + Send + 'static,
    {
        let outcome = FillOutcome::default();
        let done = block_on(self.write_untyped(outcome.stored_by(fill)));
        outcome.take(done)
    }

    /// Does the same as [`WriterHandle::write`] for every type: the function returns whether it succeeded, and so does this.
    async fn write_untyped(&self, fill: UntypedFill) -> Result<bool> {
        self.run_write(|reply| Job::Write(Box::new(move |write| reply.answer(|| fill(write))))).await
    }

    /// Submits a job that writes, and waits until its changes are durable. It is not carried out if the disk hangs before it
    /// begins. Returns whether its function succeeded.
    async fn run_write(&self, job: impl FnOnce(Reply) -> Job) -> Result<bool> {
        let is_given_up = Arc::new(AtomicBool::new(false));
        let (sender, answer) = oneshot::channel();
        let job = job(Reply { sender, is_given_up: Arc::clone(&is_given_up) });
        let mut answered = None;
        let done = self.run(job, pin!(async { answered = answer.await.ok() })).await;
        if done.is_err() {
            is_given_up.store(true, Ordering::SeqCst);
        }
        done?;
        answered.unwrap_or_else(|| Err(self.unanswered()))
    }

    /// Does the same as [`WriterHandle::run_write`], on a thread that may block.
    pub(crate) fn run_write_blocking(&self, job: impl FnOnce(Reply) -> Job) -> Result<bool> {
        block_on(self.run_write(job))
    }

    /// Submits a job and waits for its reply, on a thread that may block.
    pub(crate) fn request<R: Send>(&self, job: impl FnOnce(oneshot::Sender<Result<R>>) -> Job) -> Result<R> {
        let (reply, answer) = oneshot::channel();
        let mut answered = None;
        self.run_blocking(job(reply), pin!(async { answered = answer.await.ok() }))?;
        answered.unwrap_or_else(|| Err(self.unanswered()))
    }

    /// Does the same as [`WriterHandle::run`], on a thread that may block.
    fn run_blocking(&self, job: Job, answered: Answered<'_>) -> Result<()> {
        block_on(self.run(job, answered))
    }

    /// Submits a job, also if the queue is full, and waits until it is answered. Gives up when the disk hangs.
    async fn run(&self, job: Job, answered: Answered<'_>) -> Result<()> {
        if let Some(why) = self.disk_watch.present_hang() {
            return Err(Error::Stopped(why));
        }
        let done = async {
            self.queue.send(job).await.map_err(|_| Error::Closed)?;
            answered.await;
            Ok(())
        };
        tokio::select! {
            biased;
            done = done => done,
            why = self.disk_watch.hang() => Err(Error::Stopped(why)),
        }
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
    /// Returns false if it has not ended, because the disk hangs.
    pub(crate) fn close(&self) -> bool {
        self.thread.close()
    }
}

/// Waits on a thread that may block. The future needs neither a timer nor input and output.
fn block_on<R>(future: impl Future<Output = Result<R>>) -> Result<R> {
    let runtime = Builder::new_current_thread().build();
    runtime.map_err(|error| Error::disk("wait for the store", error))?.block_on(future)
}

/// Ends when a job was answered, or never will be.
type Answered<'a> = Pin<&'a mut (dyn Future<Output = ()> + Send)>;

/// The function of a write without its types. Returns whether it succeeded.
type UntypedFill = Box<dyn FnOnce(&mut Write<'_>) -> bool + Send>;

/// The result of the function of a write, for its caller. It alone depends on the types of the function, so that everything
/// else is compiled once.
pub(crate) struct FillOutcome<R, E>(Arc<Mutex<Option<Result<R, E>>>>);

impl<R, E> Default for FillOutcome<R, E> {
    fn default() -> Self {
        Self(Arc::default())
    }
}

impl<R: Send + 'static, E: From<Error> + Send + 'static> FillOutcome<R, E> {
    /// Returns a function that calls this one and stores what it returns.
    fn stored_by(&self, fill: impl FnOnce(&mut Write<'_>) -> Result<R, E> + Send + 'static) -> UntypedFill {
        let outcome = self.share();
        Box::new(move |write| outcome.store(fill(write)))
    }

    /// Returns a handle for the thread of the writer.
    pub(crate) fn share(&self) -> Self {
        Self(Arc::clone(&self.0))
    }

    /// Returns whether the function succeeded.
    pub(crate) fn store(self, returned: Result<R, E>) -> bool {
        let is_ok = returned.is_ok();
        *self.0.lock() = Some(returned);
        is_ok
    }

    /// Returns what the function returned, or why it was not called or its changes are not durable.
    pub(crate) fn take(self, done: Result<bool>) -> Result<R, E> {
        done?;
        self.0.lock().take().unwrap_or_else(|| Err(Error::Panicked.into()))
    }
}

/// Replies to the caller of a write.
pub(crate) struct Reply {
    sender: oneshot::Sender<Result<bool>>,
    /// The caller was told that the write is not made.
    is_given_up: Arc<AtomicBool>,
}

impl Reply {
    /// Runs the function of a write, unless its caller has given up. It returns whether it succeeded. Replies with a failure
    /// immediately, and with a success once it is durable.
    pub(crate) fn answer(self, fill: impl FnOnce() -> bool) -> Option<Answer> {
        if self.is_given_up.load(Ordering::SeqCst) {
            return None;
        }
        // The caller may be gone; the write is committed anyway.
        match fill() {
            true => Some(Box::new(move |done| drop(self.sender.send(done.map(|()| true))))),
            false => {
                drop(self.sender.send(Ok(false)));
                None
            }
        }
    }

    /// Replies that the function is not called.
    pub(crate) fn refuse(self, why: Error) {
        drop(self.sender.send(Err(why)));
    }
}
