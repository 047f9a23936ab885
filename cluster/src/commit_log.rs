//! The log of the configuration over the engine, as the store of a node uses it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use domain::cluster::SwapOutcome;
use storage::log::{Append, CommitLog, LogRead, LogUnreachable};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use crate::engine::{Engine, EngineError, LogState};

/// Longest wait for a connection to the engine.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Time for which an end of the log that lies before a known entry is looked at again. A server that does not know yet
/// that it was replaced as the leader answers with an old state for about 10 s.
const CONFIRM_LOSS: Duration = Duration::from_secs(15);

/// A [`CommitLog`] in the engine of a cluster. Its calls block: they must not be made by a task of the runtime.
#[derive(Debug)]
pub struct EngineLog {
    engine: Arc<dyn Engine>,
    runtime: Handle,
    /// The highest sequence of an entry that certainly exists.
    highest: AtomicU64,
}

impl EngineLog {
    /// Creates the log for a store that has the entries up to `known`. To be called in the runtime that drives the engine.
    pub fn new(engine: Arc<dyn Engine>, known: u64) -> Self {
        Self { engine, runtime: Handle::current(), highest: AtomicU64::new(known) }
    }

    /// Returns the present session, and waits for one.
    async fn session(&self) -> Result<u64, LogUnreachable> {
        let mut state = self.engine.state();
        match timeout(CONNECT_TIMEOUT, state.wait_for(|it| it.session().is_some())).await {
            Ok(Ok(it)) => it.session().map(|it| it.number).ok_or_else(not_connected),
            Ok(Err(_)) | Err(_) => Err(not_connected()),
        }
    }

    async fn read_entry(&self, sequence: u64) -> Result<LogRead, LogUnreachable> {
        // Entries count from 1, and engines refuse other numbers.
        if sequence == 0 {
            return Ok(LogRead::Removed);
        }
        let session = self.session().await?;
        match self.engine.read_log(session, sequence).await.map_err(unreachable)? {
            Some(entry) => {
                self.highest.fetch_max(sequence, Ordering::Relaxed);
                Ok(LogRead::Entry(entry.payload.to_vec()))
            }
            None => {
                let state = self.engine.log_state(session).await.map_err(unreachable)?;
                Ok(if sequence < state.first { LogRead::Removed } else { LogRead::End })
            }
        }
    }

    /// Returns the state of the log. A bad one only after it has stayed so.
    async fn confirmed_state(&self) -> Result<LogState, LogUnreachable> {
        let until = Instant::now() + CONFIRM_LOSS;
        loop {
            let session = self.session().await?;
            let state = self.engine.log_state(session).await.map_err(unreachable)?;
            if state.last >= self.highest.load(Ordering::Relaxed) || Instant::now() >= until {
                return Ok(state);
            }
            sleep(Duration::from_secs(1)).await;
        }
    }
}

impl CommitLog for EngineLog {
    fn append(&self, expected_last: u64, entry: &[u8]) -> Append {
        let append = async {
            let Ok(session) = self.session().await else { return SwapOutcome::Unknown };
            self.engine.append(session, expected_last, Bytes::copy_from_slice(entry)).await
        };
        match self.runtime.block_on(append) {
            SwapOutcome::Applied(sequence) => {
                self.highest.fetch_max(sequence.0, Ordering::Relaxed);
                Append::Appended
            }
            SwapOutcome::Conflict => Append::Conflict,
            SwapOutcome::Unknown => Append::Unknown,
        }
    }

    fn read(&self, sequence: u64) -> Result<LogRead, LogUnreachable> {
        self.runtime.block_on(self.read_entry(sequence))
    }

    fn last(&self) -> Result<u64, LogUnreachable> {
        self.runtime.block_on(self.confirmed_state()).map(|it| it.last)
    }
}

fn not_connected() -> LogUnreachable {
    LogUnreachable("there is no connection to the engine".to_owned())
}

fn unreachable(error: EngineError) -> LogUnreachable {
    LogUnreachable(error.to_string())
}
