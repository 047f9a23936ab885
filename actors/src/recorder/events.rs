//! Recordings and their channels as events name them.

use domain::event::{ChannelRef, RecordingRef};
use domain::recording::Recording;

use crate::recording_files::RecordingsFolder;

/// Returns the channel of a recording.
pub(super) fn channel_ref(recording: &Recording) -> ChannelRef {
    ChannelRef { uuid: recording.channel_uuid, name: recording.channel_name.clone(), number: None }
}

/// Returns a recording, with the path of its file in this folder.
pub(super) fn recording_ref(recording: &Recording, folder: Option<&RecordingsFolder>) -> RecordingRef {
    let path = recording.file.as_ref().zip(folder).map(|(file, folder)| folder.display(&file.path));
    RecordingRef {
        id: recording.id.0,
        owner: recording.owner,
        program_title: recording.title().to_owned(),
        file_path: path.unwrap_or_default(),
    }
}
