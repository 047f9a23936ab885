//! `/api/channels/recordings/storage/`: the folder of the files, its room, and who uses it.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::path::Path;

use domain::ids::UserId;
use domain::recording::retention::user_quota;
use media::spawn_blocking;
use node::overview;
use resource_derive::View;
use route_frame::call::Call;
use serde::Serialize;
use server::reply::Refusal;

use super::access::dvr_settings;
use crate::context::RestCall;

/// The folder of recordings, its room, and who uses it.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RecordingStorageView {
    /// Path of the folder, which only the operator sets.
    #[field(example = "/var/lib/headwater/recordings")]
    folder: String,
    /// False if recordings have files and the folder lacks its marker file, for example because a disk is not mounted.
    is_mounted: bool,
    /// Whether no recording begins because the disk is almost full.
    is_disk_full: bool,
    /// Available bytes on the disk; `null` if they are unknown.
    #[field(example = "250000000000")]
    available_bytes: Option<u64>,
    /// Size of all files.
    #[field(example = "40000000000")]
    used_bytes: u64,
    /// Size of those that only users delete.
    protected_bytes: u64,
    /// Number of recordings with a file.
    #[field(example = "12")]
    recordings: usize,
    /// The owners of recordings with files, the largest first.
    users: Vec<RecordingUserView>,
}

/// How much the recordings of a user take.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RecordingUserView {
    /// Id of the user; `null` for recordings of nobody.
    #[field(example = "3")]
    user_id: Option<UserId>,
    /// Name of the user; `null` for a deleted one.
    #[field(example = "anna")]
    username: Option<String>,
    /// Size of the files.
    used_bytes: u64,
    /// Size that they may have; 0 means no limit.
    quota_bytes: u64,
    /// Number of recordings with a file.
    recordings: usize,
}

pub(super) async fn get(call: Call) -> Result<RecordingStorageView, Refusal> {
    let (context, settings) = (call.rest(), dvr_settings(&call));
    let (recordings, users) = (context.models.recordings.load(), context.models.users.load());
    let (room, sizes) = (context.recordings.recorder.room(), overview::recordings(&context.nodes).await);
    let (mut used_bytes, mut protected_bytes, mut n_recordings) = (0, 0, 0);
    let mut by_user = HashMap::<Option<UserId>, (u64, usize)>::new();
    for it in recordings.iter() {
        if it.file.is_none() {
            continue;
        }
        let running = sizes.get(&it.id).copied().unwrap_or(0);
        let bytes = running.max(it.stored_bytes());
        used_bytes += bytes;
        protected_bytes += if it.protected { bytes } else { 0 };
        n_recordings += 1;
        let (of_user, n_of_user) = by_user.entry(it.owner).or_default();
        *of_user += bytes;
        *n_of_user += 1;
    }
    let view = |(user_id, (used_bytes, recordings)): (Option<UserId>, (u64, usize))| {
        let user = user_id.and_then(|it| users.get(it.0));
        RecordingUserView {
            user_id,
            username: user.map(|it| it.username.clone()),
            used_bytes,
            quota_bytes: user.map_or(0, |it| user_quota(it, &settings)),
            recordings,
        }
    };
    let mut users: Vec<_> = by_user.into_iter().map(view).collect();
    users.sort_by_key(|it| (Reverse(it.used_bytes), it.user_id));
    let folder = context.config.recordings_folder();
    let mut available_bytes = room.available;
    if available_bytes.is_none() && !room.is_unmarked {
        let folder = folder.clone();
        available_bytes = spawn_blocking(move || available_for(&folder)).await.ok().flatten();
    }
    Ok(RecordingStorageView {
        folder: folder.display().to_string(),
        is_mounted: !room.is_unmarked,
        is_disk_full: room.is_disk_full(),
        available_bytes,
        used_bytes,
        protected_bytes,
        recordings: n_recordings,
        users,
    })
}

/// Returns the room in bytes for a folder that was never used: that of the nearest folder above it that exists.
fn available_for(folder: &Path) -> Option<u64> {
    let found = folder.ancestors().find_map(|it| rustix::fs::statvfs(it).ok())?;
    Some(found.f_bavail.saturating_mul(found.f_frsize))
}
