//! The number of personal playlists, and the channels that they may contain.

use std::collections::HashSet;

use domain::ids::{ChannelId, UserId};
use domain::personal_playlist::{PLAYLIST_CHANNELS_MAX, PLAYLISTS_PER_USER_MAX, PersonalPlaylist};
use route_frame::call::Call;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;

use crate::api::channels::values::{item, no_such};
use crate::context::RestCall;
use crate::record::refuse_if;

/// Checks that a user may add another playlist.
pub(super) fn check_count(write: &Write<'_>, owner: UserId) -> Result<(), Refusal> {
    let n = write.by::<PersonalPlaylist>("owner", owner.0.to_be_bytes())?.len();
    let message = format!("A user can have at most {PLAYLISTS_PER_USER_MAX} personal playlists.");
    refuse_if(n >= PLAYLISTS_PER_USER_MAX, &message)
}

/// Checks that the caller finds all these channels. One that is deleted meanwhile does no harm: the lists of channels leave
/// it out.
pub(super) fn check_channels(call: &Call, ids: &[ChannelId]) -> Result<(), FieldErrors> {
    let (channels, is_listed) = (call.rest().models.channels.load(), call.listed());
    let mut errors = FieldErrors::default();
    for (n, id) in ids.iter().enumerate() {
        if !channels.get(id.0).is_some_and(|it| is_listed(it)) {
            errors.add("channels", item(n, &no_such(id)));
        }
    }
    errors.or(())
}

/// Adds a channel at the end of a playlist. Channels that were deleted make room for it.
pub(super) fn add_channel(
    playlist: &mut PersonalPlaylist,
    id: ChannelId,
    existing: &HashSet<ChannelId>,
) -> Result<(), Refusal> {
    if playlist.channels.len() >= PLAYLIST_CHANNELS_MAX {
        playlist.channels.retain(|it| existing.contains(it));
    }
    playlist.add(id);
    let message = format!("A personal playlist can have at most {PLAYLIST_CHANNELS_MAX} channels.");
    refuse_if(playlist.channels.len() > PLAYLIST_CHANNELS_MAX, &message)
}
