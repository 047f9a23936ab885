//! The work on the files of recordings after their end, one recording at a time.
//!
//! What is to be done is in the records, so that a restart neither forgets nor repeats it. Programs that read a file run
//! confined: they can read this file only, and write to a folder of their own. In a cluster, each node does the work on its
//! files.

mod artwork;
mod comskip;
mod cut;
mod ffmpeg;
mod find_artwork;
mod nfo;
mod remux;
mod report;
mod settings;
mod step;

use std::sync::Arc;
use std::time::Duration;

use domain::ids::RecordingId;
use domain::recording::{AfterStep, RecordedFile, Recording};
use storage::Record;
use tokio::time::sleep;
use tracing::warn;

pub use self::find_artwork::{Artwork, FindArtwork};
pub use self::settings::AfterSettings;
use self::step::blocking;
use super::state::{RecorderState, any_changed};
use crate::writer::role_changed;

/// Pause after work that has to wait, such as for a disk that is not mounted.
const PAUSE: Duration = Duration::from_secs(30);

impl RecorderState {
    /// Does the work of all recordings. Returns when the gateway stops.
    pub(super) async fn follow_work(self: Arc<Self>) {
        let (Some(parts), Some(settings)) = (self.parts.get(), self.after.get()) else { return };
        let (mut changes, mut role) = (parts.models.store.changes(), parts.models.store.log_status());
        let folder = parts.folder.clone();
        // Parts of copies that a process left behind that was killed. Without the folder, they go with the next copy.
        let _ = blocking(move || folder.remove_parts()).await;
        while !self.stop.is_cancelled() {
            let writes = parts.models.store.writes_shared();
            let done = match self.next_work(writes) {
                Some((AfterStep::RemoveObsolete, id)) => remux::remove_obsolete(&self, id).await,
                Some((AfterStep::Comskip, id)) => comskip::find_commercials(&self, settings, id).await,
                Some((AfterStep::Remux, id)) => remux::convert(&self, settings, id).await,
                Some((AfterStep::Cut, id)) => cut::copy(&self, id).await,
                Some((AfterStep::Nfo, id)) => nfo::describe(&self, id).await,
                Some((AfterStep::Artwork, id)) => artwork::illustrate(&self, id).await,
                Some((AfterStep::Report, id)) => report::ready(&self, id).await,
                None => {
                    tokio::select! {
                        () = any_changed(&mut changes, &[Recording::COLLECTION]) => {}
                        () = role_changed(&mut role, writes) => {}
                        () = self.stop.cancelled() => return,
                    }
                    continue;
                }
            };
            if let Err(reason) = done {
                warn!("the work after recordings waits: {reason}");
                tokio::select! {
                    () = sleep(PAUSE) => {}
                    () = self.stop.cancelled() => return,
                }
            }
        }
    }

    /// Returns the recording whose work was requested first, of those with a file on this node.
    fn next_work(&self, writes: bool) -> Option<(AfterStep, RecordingId)> {
        let parts = self.parts.get()?;
        let recordings = parts.models.recordings.load();
        // A file without a node is from before the cluster, and that of the node that writes.
        let has = |it: &RecordedFile| parts.folder.has(it) && (writes || it.node.is_some());
        let is_here = |it: &&Arc<Recording>| it.file.as_ref().map_or(writes, has);
        let open = recordings.iter().filter(is_here).filter_map(|it| Some((it.next_step()?, it.id)));
        open.min().map(|((_, step), id)| (step, id))
    }
}
