//! Reports streams whose health becomes bad.

use std::collections::BTreeSet;

use domain::event::{Event, EventBody, StreamRef};
use domain::ids::StreamId;
use domain::stream::Stream;
use media::spawn_blocking;
use storage::Models;

use super::HealthTable;
use crate::clock::now_ms;
use crate::events::Events;

/// A stream with a lower score is unhealthy.
const UNHEALTHY_BELOW: u8 = 30;
/// It is so until its score is this.
const HEALTHY_FROM: u8 = 50;
/// Maximum number of streams that are reported at a time; the others follow.
const REPORTED_MAX: usize = 20;

/// The streams that were unhealthy at the last look, and that need no report.
#[derive(Default)]
pub(super) struct UnhealthyStreams(BTreeSet<StreamId>);

impl UnhealthyStreams {
    /// Begins with those that are unhealthy already: they were reported before a restart.
    pub(super) fn new(table: &HealthTable) -> Self {
        let mut known = Self::default();
        known.0.extend(table.scores().into_iter().filter(|it| it.1 < UNHEALTHY_BELOW).map(|it| it.0));
        known
    }

    /// Returns the streams that have become unhealthy since the last look, with their scores.
    fn new_ones(&mut self, scores: Vec<(StreamId, u8)>) -> Vec<(StreamId, u8)> {
        for (recovered, _) in scores.iter().filter(|it| it.1 >= HEALTHY_FROM) {
            self.0.remove(recovered);
        }
        let unhealthy = scores.into_iter().filter(|it| it.1 < UNHEALTHY_BELOW && !self.0.contains(&it.0));
        let new: Vec<_> = unhealthy.take(REPORTED_MAX).collect();
        self.0.extend(new.iter().map(|it| it.0));
        new
    }

    /// Reports the streams that have become unhealthy.
    pub(super) async fn report(&mut self, table: &HealthTable, models: &Models, events: &Events) {
        for (id, score) in self.new_ones(table.scores()) {
            let Some(cause) = table.get(id).map(|it| it.last_cause.unwrap_or_default()) else { continue };
            let models = models.clone();
            let found = spawn_blocking(move || stream_ref(&models, id));
            // A stream that was deleted meanwhile needs no report.
            let Ok(Some(stream)) = found.await else { continue };
            let body = EventBody::StreamUnhealthy { stream, score, cause };
            events.emit_paced(id.to_string(), Event { at: now_ms(), body });
        }
    }
}

/// Returns a stream as events name it. Blocks.
fn stream_ref(models: &Models, id: StreamId) -> Option<StreamRef> {
    let stream = models.store.collection::<Stream>().get(id.0).ok()??;
    let account = models.accounts.load().get(stream.account.0).map(|it| it.name.clone());
    let profile = stream.stream_profile.and_then(|it| models.stream_profiles.load().get(it.0).cloned());
    Some(StreamRef {
        id,
        name: stream.name().to_owned(),
        url: stream.url().clone(),
        profile_used: profile.map(|it| it.delivery).unwrap_or_default(),
        account_name: account.unwrap_or_default(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_reported_once_until_it_has_recovered() {
        let mut known = UnhealthyStreams::default();
        let mut look = |score: u8| known.new_ones(vec![(StreamId(1), score)]).len();
        // The score, and whether it is reported.
        for (score, is_reported) in
            [(60, 0), (30, 0), (29, 1), (10, 0), (40, 0), (29, 0), (50, 0), (31, 0), (20, 1), (0, 0)]
        {
            assert_eq!(look(score), is_reported, "{score}");
        }
    }

    #[test]
    fn many_unhealthy_streams_are_reported_a_few_at_a_time() {
        let mut known = UnhealthyStreams::default();
        let all: Vec<_> = (0..50).map(|id| (StreamId(id), 0)).collect();
        let counts: Vec<_> = (0..4).map(|_| known.new_ones(all.clone()).len()).collect();
        assert_eq!(counts, [20, 20, 10, 0]);
    }
}
