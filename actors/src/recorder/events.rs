//! Recordings and their channels as events name them.

use domain::event::{ChannelRef, RecordingRef};
use domain::recording::Recording;
use storage::Models;

use crate::recording_files::{RecordingsFolder, dvr_settings};

/// Returns the channel of a recording, with the number that it has now. `models` are missing while the gateway starts.
pub(super) fn channel_ref(recording: &Recording, models: Option<&Models>) -> ChannelRef {
    let channels = models.map(|it| it.channels.load());
    let channel = channels.as_ref().and_then(|it| it.one_by("uuid", recording.channel_uuid.as_bytes()));
    ChannelRef {
        uuid: recording.channel_uuid,
        name: recording.channel_name.clone(),
        number: channel.and_then(|it| it.number),
    }
}

/// Returns a recording, with the path of its file in this folder, and whether that will change.
pub(super) fn recording_ref(
    recording: &Recording,
    models: Option<&Models>,
    folder: Option<&RecordingsFolder>,
) -> RecordingRef {
    let path = recording.file.as_ref().zip(folder).map(|(file, folder)| folder.display(&file.path));
    RecordingRef {
        id: recording.id.0,
        owner: recording.owner,
        program_title: recording.title().to_owned(),
        file_path: path.unwrap_or_default(),
        path_changes: models.is_some_and(|it| recording.path_changes(&dvr_settings(it))),
    }
}
