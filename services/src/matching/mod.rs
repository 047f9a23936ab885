//! Runs the matching of channels with guide channels, one run at a time, and reports its progress.

mod after_refresh;

use std::sync::Arc;

use actors::{find_together, matcher};
use domain::channel::Channel;
use domain::guide::matching::{Decision, MatchResult};
use domain::ids::ChannelId;
use media::spawn_blocking;
use serde_json::Value;
use server::reply::Refusal;
use storage::Models;
use tokio::sync::{Mutex, broadcast};
use tokio_util::sync::CancellationToken;

pub use self::after_refresh::follow;

/// Reports that a slow reader may lag behind before it loses the oldest.
const REPORTS_MAX: usize = 64;
/// Number of channels between two reports of progress.
const CHANNELS_PER_REPORT: usize = 500;

/// A report of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MatchReport {
    Progress {
        total: usize,
        /// Channels for which a guide channel was found so far.
        matched: usize,
        remaining: usize,
        /// Name of the channel that is matched next.
        current: String,
    },
    /// The links are written, or the run ended before.
    Finished { is_complete: bool, matched: usize, message: String },
    /// One channel was matched on request.
    Single {
        id: ChannelId,
        /// The channel as the interface shows it.
        channel: Value,
        is_matched: bool,
        message: String,
    },
}

/// Reports the end of a run, also if the run fails or its request is gone.
pub struct EndReport {
    reports: broadcast::Sender<MatchReport>,
    report: MatchReport,
}

impl EndReport {
    /// Reports that the run is complete.
    pub fn complete(mut self, matched: usize, message: String) {
        self.report = MatchReport::Finished { is_complete: true, matched, message };
    }
}

impl Drop for EndReport {
    fn drop(&mut self) {
        // An error only means that nobody listens.
        let _ = self.reports.send(self.report.clone());
    }
}

/// The service that matches channels.
pub struct Matching {
    /// Held during a run, because each has an index of all guide channels of about 100 MB at most.
    running: Arc<Mutex<()>>,
    reports: broadcast::Sender<MatchReport>,
}

impl Default for Matching {
    fn default() -> Self {
        Self { running: Arc::default(), reports: broadcast::channel(REPORTS_MAX).0 }
    }
}

impl Matching {
    /// Finds the guide channels of channels, in order. `lists_all` also lists candidates that are not needed for the
    /// decisions. With `reports`, subscribers get the progress. A run stops when its caller is gone, at the latest after the
    /// guide channels are prepared.
    pub async fn find(
        &self,
        models: &Models,
        channels: Vec<Arc<Channel>>,
        lists_all: bool,
        reports: bool,
    ) -> Result<Vec<MatchResult>, Refusal> {
        let running = Arc::clone(&self.running).lock_owned().await;
        let (models, sender) = (models.clone(), self.reports.clone());
        let stop = CancellationToken::new();
        let _stop_without_caller = stop.clone().drop_guard();
        let run = move || {
            let _running = running;
            if stop.is_cancelled() {
                return Vec::new();
            }
            let (matcher, total) = (matcher(&models, None), channels.len());
            let (mut n, mut matched) = (0, 0);
            find_together(&models, &matcher, &channels, |channel, subject| {
                if stop.is_cancelled() {
                    return None;
                }
                if reports && n % CHANNELS_PER_REPORT == 0 {
                    let (remaining, current) = (total - n, channel.name.clone());
                    // An error only means that nobody listens.
                    let _ = sender.send(MatchReport::Progress { total, matched, remaining, current });
                }
                let result = matcher.find(subject, lists_all);
                matched += usize::from(matches!(result.decision, Decision::Link(_)));
                n += 1;
                Some(result)
            })
        };
        spawn_blocking(run).await.map_err(|_| Refusal::fault("match channels"))
    }

    /// Returns the report of the end of a run that begins.
    pub fn begin(&self) -> EndReport {
        let message = "Matching ended early".to_owned();
        let report = MatchReport::Finished { is_complete: false, matched: 0, message };
        EndReport { reports: self.reports.clone(), report }
    }

    /// Reports a result to subscribers.
    pub fn report(&self, report: MatchReport) {
        // An error only means that nobody listens.
        let _ = self.reports.send(report);
    }

    pub fn subscribe(&self) -> broadcast::Receiver<MatchReport> {
        self.reports.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::sync::mpsc;

    use storage::Store;
    use tokio::runtime::Builder;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_run_stops_without_its_caller() {
        let models = Models::new(Store::temporary(storage::records::schema()).unwrap()).unwrap();
        let channel = Arc::new(Channel::new(ChannelId(1), Uuid::nil(), "News", 0));
        let runtime = Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
        runtime.block_on(async {
            let matching = Matching::default();
            let mut reports = matching.subscribe();
            // The run cannot begin while this occupies the only thread.
            let (release, released) = mpsc::channel();
            let occupied = spawn_blocking(move || released.recv());
            {
                let mut find = pin!(matching.find(&models, vec![channel.clone()], false, true));
                assert!(futures_util::poll!(&mut find).is_pending());
            }
            release.send(()).unwrap();
            occupied.await.unwrap().unwrap();
            spawn_blocking(|| {}).await.unwrap();
            assert!(reports.try_recv().is_err(), "nothing was matched");
            matching.find(&models, vec![channel], false, true).await.unwrap();
            assert!(reports.try_recv().is_ok());
        });
    }
}
