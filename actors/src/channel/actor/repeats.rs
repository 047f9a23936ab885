//! Folds repeated failures in the log: a source that fails every second gets one line in [`PERIOD`], not fifteen.

use std::collections::HashMap;
use std::time::Duration;

use domain::ids::StreamId;
use tokio::time::Instant;

/// Time for which failures like a logged one are only counted.
pub(super) const PERIOD: Duration = Duration::from_secs(15);
/// Kinds of failures that are distinguished; all failures of further ones are logged.
const KINDS_MAX: usize = 256;

/// The failures of a live channel that were logged, and those like them since.
#[derive(Default)]
pub(super) struct RepeatedFailures {
    kinds: HashMap<(StreamId, &'static str), Repeated>,
}

struct Repeated {
    logged_at: Instant,
    n_more: u32,
}

/// Failures that were counted since one like them was logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct More {
    pub(super) n: u32,
    pub(super) seconds: u64,
}

impl RepeatedFailures {
    /// Notes a failure of a stream for this cause. Returns `None` if it is only counted, and otherwise the failures that
    /// were counted before it.
    pub(super) fn add(&mut self, stream: StreamId, cause: &'static str) -> Option<More> {
        let now = Instant::now();
        let kind = (stream, cause);
        match self.kinds.get_mut(&kind) {
            Some(it) if now - it.logged_at < PERIOD => {
                it.n_more += 1;
                None
            }
            Some(it) => {
                let more = More { n: it.n_more, seconds: (now - it.logged_at).as_secs() };
                *it = Repeated { logged_at: now, n_more: 0 };
                Some(more)
            }
            None => {
                if self.kinds.len() < KINDS_MAX {
                    self.kinds.insert(kind, Repeated { logged_at: now, n_more: 0 });
                }
                Some(More { n: 0, seconds: 0 })
            }
        }
    }

    /// Returns what was counted and not logged, by stream and cause, and forgets it.
    pub(super) fn take(&mut self) -> Vec<(StreamId, &'static str, More)> {
        let kinds = std::mem::take(&mut self.kinds).into_iter().filter(|(_, it)| it.n_more > 0);
        let more = |it: Repeated| More { n: it.n_more, seconds: it.logged_at.elapsed().as_secs() };
        kinds.map(|((stream, cause), it)| (stream, cause, more(it))).collect()
    }
}

impl std::fmt::Display for More {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.n {
            0 => Ok(()),
            n => write!(f, " ({n} more in {} s)", self.seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn failures_like_a_logged_one_are_counted_for_fifteen_seconds() {
        let mut repeated = RepeatedFailures::default();
        let (one, two) = (StreamId(1), StreamId(2));
        assert_eq!(repeated.add(one, "stall").unwrap().to_string(), "");
        for _ in 0..14 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert_eq!(repeated.add(one, "stall"), None);
        }
        assert!(repeated.add(one, "connect").is_some(), "another cause");
        assert!(repeated.add(two, "stall").is_some(), "another stream");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(repeated.add(one, "stall").unwrap().to_string(), " (14 more in 15 s)");
        assert_eq!(repeated.add(one, "stall"), None);
        tokio::time::advance(Duration::from_secs(3)).await;
        assert_eq!(repeated.take(), [(one, "stall", More { n: 1, seconds: 3 })]);
        assert!(repeated.take().is_empty());
    }
}
