//! The health of streams: outcomes of real plays, kept in memory and written to the store now and then.
//!
//! Live channels report to the table. A task of the system measures what plays every few seconds, and writes changed
//! streams to the store once a minute and when the system stops. A crash loses at most the last minute.

mod files;
mod play;
#[cfg(test)]
mod tests;
mod unhealthy;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::health::{FailureSide, HEALTH_STREAMS_MAX, Measurement, StreamHealth};
use domain::ids::StreamId;
use domain::playout::Lack;
use domain::stream::Stream;
use media::error::{Scope, UpstreamError};
use media::spawn_blocking;
use parking_lot::Mutex;
use storage::{Models, Write};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::warn;

use self::files::FileTable;
pub(crate) use self::play::PlayMeter;
pub use self::play::StreamFacts;
use self::unhealthy::UnhealthyStreams;
use crate::clock::now_ms;
use crate::events::Events;

/// Interval at which the streams that play are measured.
const MEASURE_PERIOD: Duration = Duration::from_secs(10);
/// Interval at which changed streams are written to the store.
const WRITE_PERIOD: Duration = Duration::from_secs(60);
/// Maximum number of streams in one write to the store; the others follow with the next one.
const WRITTEN_MAX: usize = 1_000;
/// Maximum number of streams whose failures are counted until somebody takes them; those of others are not counted.
const FAILURES_MAX: usize = 4_096;

/// The health of all streams that were played. Cheap to clone.
#[derive(Clone, Default)]
pub struct HealthTable {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    streams: HashMap<StreamId, StreamHealth>,
    /// Streams that differ from the store, those dropped from the table included.
    changed: BTreeSet<StreamId>,
    /// Failures and losses of streams since they were taken last.
    failures: HashMap<StreamId, u32>,
    plays: Vec<Weak<PlayMeter>>,
    files: FileTable,
}

impl HealthTable {
    /// Returns the health of a stream; `None` if it was never played.
    pub fn get(&self, stream: StreamId) -> Option<StreamHealth> {
        self.inner.lock().streams.get(&stream).cloned()
    }

    /// Returns the health of these streams that were played.
    pub fn get_all(&self, streams: impl IntoIterator<Item = StreamId>) -> HashMap<StreamId, StreamHealth> {
        let inner = self.inner.lock();
        streams.into_iter().filter_map(|id| Some((id, inner.streams.get(&id)?.clone()))).collect()
    }

    /// Returns the score of a stream; `None` if it was never played.
    pub fn score(&self, stream: StreamId) -> Option<u8> {
        let now = now_ms();
        self.inner.lock().streams.get(&stream).map(|it| it.score(now))
    }

    /// Returns the scores of all streams that were played.
    pub fn scores(&self) -> Vec<(StreamId, u8)> {
        let now = now_ms();
        self.inner.lock().streams.iter().map(|(id, it)| (*id, it.score(now))).collect()
    }

    /// Takes the streams that failed to open or were lost since the last call, with the number. Failures of accounts, such
    /// as a full one, do not count.
    pub fn take_failures(&self) -> HashMap<StreamId, u32> {
        std::mem::take(&mut self.inner.lock().failures)
    }

    /// Replaces the health of a stream.
    #[cfg(any(test, feature = "testing"))]
    pub fn put(&self, health: StreamHealth) {
        self.change(health.stream, |it, _| *it = health);
    }

    /// Notes that a stream delivered its first packets.
    pub(crate) fn opened(&self, stream: StreamId, took: Duration) {
        let took_ms = u32::try_from(took.as_millis()).unwrap_or(u32::MAX);
        self.change(stream, |health, at| health.opened(took_ms, at));
    }

    /// Notes that an opening failed, or that a stream was lost after it had played for some time.
    pub(crate) fn lost(&self, stream: StreamId, cause: &UpstreamError, played: Option<Duration>) {
        let side = match cause.scope() {
            Scope::Stream => FailureSide::Stream,
            Scope::Candidate => FailureSide::Account,
        };
        if played.is_some() || side == FailureSide::Stream {
            self.inner.lock().note_failure(stream);
        }
        self.change(stream, |health, at| match played {
            Some(played) => {
                health.lost(cause.label(), u64::try_from(played.as_millis()).unwrap_or(u64::MAX), at)
            }
            None => health.failed(cause.label(), side, at),
        });
    }

    /// Notes that a stream ended after it had played well, or plays on without a part.
    pub(crate) fn ended(&self, stream: StreamId, cause: &UpstreamError) {
        self.change(stream, |health, at| health.ended(cause.label(), at));
    }

    /// Notes that this part of a stream, which its tables promise, has not come since it plays, or has come; or that its
    /// picture stands still, or moves.
    pub(crate) fn lacks(&self, stream: StreamId, lack: Lack, is_missing: bool) {
        let is_noted = self.get(stream).is_some_and(|it| match lack {
            Lack::Motion => it.still_picture_at.is_some(),
            lack => it.lacked_lately(lack, now_ms()),
        });
        if is_missing || is_noted {
            self.change(stream, |health, at| health.lacks(lack, is_missing, at));
        }
    }

    /// Returns those of these streams in which this part had not come when they were played lately.
    pub(crate) fn lacking_lately(
        &self,
        streams: impl Iterator<Item = StreamId>,
        lack: Lack,
    ) -> Vec<StreamId> {
        let (inner, now) = (self.inner.lock(), now_ms());
        let lacks = |it: &StreamId| inner.streams.get(it).is_some_and(|it| it.lacked_lately(lack, now));
        streams.filter(lacks).collect()
    }

    /// Notes what a person should know about a stream that plays.
    pub(crate) fn noted(&self, stream: StreamId, note: &str) {
        self.change(stream, |health, at| health.noted(note, at));
    }

    pub(crate) fn measured(&self, stream: StreamId, measurement: Measurement) {
        self.change(stream, |health, at| health.measured(measurement, at));
    }

    /// Measures this play from now on, for as long as it exists.
    pub(crate) fn follow(&self, play: &Arc<PlayMeter>) {
        let mut inner = self.inner.lock();
        inner.plays.retain(|it| it.strong_count() > 0);
        inner.plays.push(Arc::downgrade(play));
    }

    fn change(&self, stream: StreamId, change: impl FnOnce(&mut StreamHealth, i64)) {
        let at = now_ms();
        let mut inner = self.inner.lock();
        if !inner.streams.contains_key(&stream) && inner.streams.len() >= HEALTH_STREAMS_MAX {
            let oldest = inner.streams.values().min_by_key(|it| it.updated_at).map(|it| it.stream);
            if let Some(oldest) = oldest {
                inner.streams.remove(&oldest);
                inner.changed.insert(oldest);
            }
        }
        change(inner.streams.entry(stream).or_insert_with(|| StreamHealth::new(stream)), at);
        inner.changed.insert(stream);
    }

    fn measure_plays(&self) {
        let plays: Vec<_> = self.inner.lock().plays.iter().filter_map(Weak::upgrade).collect();
        plays.iter().for_each(|it| it.measure());
    }

    /// Loads the stored health, except of streams that are in the table already. Blocks.
    fn load(&self, models: &Models) -> Result<(), storage::Error> {
        let stored = models.store.collection::<StreamHealth>().all()?;
        let mut inner = self.inner.lock();
        for health in stored.into_iter().take(HEALTH_STREAMS_MAX) {
            inner.streams.entry(health.stream).or_insert(health);
        }
        Ok(())
    }

    /// Takes some changed streams, each with its health; `None` is one that has left the table.
    fn take_changed(&self) -> Vec<(StreamId, Option<StreamHealth>)> {
        let mut inner = self.inner.lock();
        let some: Vec<StreamId> = inner.changed.iter().copied().take(WRITTEN_MAX).collect();
        for id in &some {
            inner.changed.remove(id);
        }
        some.into_iter().map(|id| (id, inner.streams.get(&id).cloned())).collect()
    }

    /// Writes all changed streams. What the store refuses stays in memory, and is written with the next change.
    pub(crate) async fn write(&self, models: &Models) {
        loop {
            let changed = self.take_changed();
            let is_last = changed.len() < WRITTEN_MAX;
            if changed.is_empty() {
                return;
            }
            let ids: Vec<StreamId> = changed.iter().map(|it| it.0).collect();
            let table = self.clone();
            let fill = move |write: &mut Write<'_>| table.fill(write, changed);
            if let Err(error) = models.store.write(fill).await {
                warn!("failed to store the health of streams: {error}");
                self.inner.lock().changed.extend(ids);
                return;
            }
            if is_last {
                return;
            }
        }
    }

    fn fill(
        &self,
        write: &mut Write<'_>,
        changed: Vec<(StreamId, Option<StreamHealth>)>,
    ) -> Result<(), storage::Error> {
        for (id, health) in changed {
            match health.filter(|_| write.owner_of::<Stream>(id.0).is_some()) {
                Some(health) => write.put(&health)?,
                None => {
                    // The stream was deleted, or its health was dropped.
                    write.remove::<StreamHealth>(id.0)?;
                    self.inner.lock().streams.remove(&id);
                }
            }
        }
        Ok(())
    }
}

impl Inner {
    fn note_failure(&mut self, stream: StreamId) {
        if self.failures.len() < FAILURES_MAX || self.failures.contains_key(&stream) {
            let n = self.failures.entry(stream).or_default();
            *n = n.saturating_add(1);
        }
    }
}

/// Measures, writes and reports until it is dropped. Begins with the stored values, so it can be restarted at any time.
pub(crate) async fn keep(table: HealthTable, models: Models, events: Events) {
    let (loading, of) = (table.clone(), models.clone());
    match spawn_blocking(move || loading.load(&of)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => warn!("failed to read the health of streams: {error}"),
        Err(error) => warn!("failed to read the health of streams: {error}"),
    }
    let mut ticks = interval(MEASURE_PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut written_at = Instant::now();
    let mut unhealthy = UnhealthyStreams::new(&table);
    loop {
        ticks.tick().await;
        table.measure_plays();
        unhealthy.report(&table, &models, &events).await;
        if written_at.elapsed() >= WRITE_PERIOD {
            table.write(&models).await;
            written_at = Instant::now();
        }
    }
}
