//! Makes a guide the present one: its channels, its state and its file at once.

use std::collections::HashSet;
use std::sync::Arc;

use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSource;
use domain::guide::state::GuideState;
use domain::ids::GuideChannelId;
use storage::guide::{FinishedGuide, GuideFiles};
use storage::{BulkWrite, Models, Write};

use super::collector::CollectedChannels;
use super::error::GuideError;
use crate::events::StoredEvent;

/// A guide that was written to a file, and not yet committed.
pub(super) struct Landing {
    pub(super) source: Arc<GuideSource>,
    pub(super) channels: CollectedChannels,
    /// Reserved ids of new channels.
    pub(super) bulk: Option<BulkWrite<GuideChannel>>,
    pub(super) finished: FinishedGuide,
    /// The state of the source with this guide, except for the numbers of the guide itself.
    pub(super) state: GuideState,
    pub(super) event: Option<StoredEvent>,
}

/// Commits a guide, and takes its file into use. Returns the number of its channels.
///
/// # Errors
/// The former guide stays as it was.
pub(super) fn land(models: &Models, files: &GuideFiles, landing: Landing) -> Result<u64, GuideError> {
    let Landing { source, channels, bulk, finished, mut state, event } = landing;
    let CollectedChannels { mut present, gone, has_changes } = channels;
    let n_gone = gone.len();
    let linked = linked(models);
    // A guide that forgets a channel for a day must not cost a channel its link.
    let kept: Vec<_> = gone.into_iter().filter(|it| linked.contains(&it.id)).collect();
    let is_same = !has_changes && kept.len() == n_gone;
    present.extend(kept);
    let n_channels = present.len() as u64;
    (state.n_channels, state.n_programmes) = (n_channels, finished.n_programmes());
    state.generation = finished.generation();
    let owner = u64::from(source.id.0);
    match bulk {
        None if is_same => {
            models.store.write_blocking(move |write| put(write, &source, &state, event.as_ref()))?;
        }
        bulk => {
            let mut bulk = match bulk {
                Some(bulk) => bulk,
                None => models.store.bulk_write(owner)?,
            };
            present.iter().try_for_each(|it| bulk.put(it))?;
            bulk.commit(move |write, _| put(write, &source, &state, event.as_ref()))?;
        }
    }
    files.install(finished);
    Ok(n_channels)
}

/// Writes the state, and an event that reports it. Fails if the source was deleted, or leads elsewhere now.
pub(super) fn put(
    write: &mut Write<'_>,
    source: &GuideSource,
    state: &GuideState,
    event: Option<&StoredEvent>,
) -> Result<(), GuideError> {
    check_source(write, source)?;
    event.map_or(Ok(()), |it| it.enqueue(write))?;
    Ok(write.put(state)?)
}

/// Fails if the source was deleted, or leads elsewhere now.
pub(super) fn check_source(write: &Write<'_>, source: &GuideSource) -> Result<(), GuideError> {
    let now = write.get::<GuideSource>(source.id.0)?.ok_or(GuideError::SourceChanged)?;
    if is_same_guide(&now, source) { Ok(()) } else { Err(GuideError::SourceChanged) }
}

/// Returns whether two versions of a source lead to the same guide.
pub fn is_same_guide(one: &GuideSource, other: &GuideSource) -> bool {
    let place = |it: &GuideSource| {
        (it.kind, it.url.clone(), it.file.clone(), it.account, it.username.clone(), it.password.clone())
    };
    // The zone decides what the times of the same file mean.
    place(one) == place(other) && one.time_zone == other.time_zone
}

/// Returns the guide channels that channels are linked to.
fn linked(models: &Models) -> HashSet<GuideChannelId> {
    let channels = models.channels.load();
    channels.iter().flat_map(|it| it.guide_channel.iter().chain(&it.further_guides).copied()).collect()
}
