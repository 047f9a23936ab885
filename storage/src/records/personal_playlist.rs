//! Personal playlists.

use domain::ids::UserId;
use domain::personal_playlist::PersonalPlaylist;
use domain::vod::TitleFavorites;

use crate::error::Result;
use crate::record::{Keys, Record, Sharing};
use crate::write::Write;

impl Record for PersonalPlaylist {
    const COLLECTION: &'static str = "personal_playlists";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.plain("owner", self.owner.0.to_be_bytes());
        match self.is_favorites {
            true => keys.unique("favorites", self.owner.0.to_be_bytes()),
            false => keys.unique("name", Self::name_key(self.owner, &self.name)),
        }
        for user in &self.assigned_to {
            keys.plain("assigned", user.0.to_be_bytes());
        }
    }
}

/// Removes the playlists and favourites of a user who is deleted, and the user from playlists that are assigned to others.
pub fn remove_playlists_of(write: &mut Write<'_>, user: UserId) -> Result<()> {
    for mut playlist in write.by::<PersonalPlaylist>("assigned", user.0.to_be_bytes())? {
        playlist.assigned_to.remove(&user);
        write.put(&playlist)?;
    }
    for playlist in write.by::<PersonalPlaylist>("owner", user.0.to_be_bytes())? {
        write.remove::<PersonalPlaylist>(playlist.id.0)?;
    }
    write.remove::<TitleFavorites>(user.0)?;
    Ok(())
}
