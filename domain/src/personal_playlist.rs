//! Personal playlists: channels that a user has chosen, in an order of the user's own, and the favourites of a user, which
//! are one of them.

use std::collections::{BTreeSet, HashSet};

use serde::{Deserialize, Serialize};

use crate::ids::{ChannelId, PersonalPlaylistId, UserId};

/// Maximum number of personal playlists of a user, favourites included.
pub const PLAYLISTS_PER_USER_MAX: usize = 50;
/// Maximum number of channels of a personal playlist.
pub const PLAYLIST_CHANNELS_MAX: usize = 5_000;
/// Maximum number of users to whom a personal playlist is assigned.
pub const PLAYLIST_ASSIGNED_MAX: usize = 1_000;
/// Maximum length of the name of a personal playlist, in characters.
pub const PLAYLIST_NAME_CHARS_MAX: usize = 100;
/// Name of the favourites of every user.
pub const FAVORITES: &str = "Favorites";

/// A selection of channels of a user.
///
/// It grants no access: everyone who reads it finds those of its channels that they may see anyway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PersonalPlaylist {
    pub id: PersonalPlaylistId,
    pub owner: UserId,
    /// Unique among the playlists of the owner, ignoring case.
    pub name: String,
    /// Whether these are the favourites of the owner, of which there is one list.
    #[serde(default)]
    pub is_favorites: bool,
    /// In the order of the owner, without duplicates. May contain ids of deleted channels, which are never used again.
    #[serde(default)]
    pub channels: Vec<ChannelId>,
    /// Users who may read the playlist besides its owner.
    #[serde(default)]
    pub assigned_to: BTreeSet<UserId>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub created_at: i64,
    #[serde(default)]
    pub updated_at: i64,
}

impl PersonalPlaylist {
    /// Creates a playlist without channels.
    pub fn new(id: PersonalPlaylistId, owner: UserId, name: impl Into<String>, at: i64) -> Self {
        Self {
            id,
            owner,
            name: name.into(),
            is_favorites: false,
            channels: Vec::new(),
            assigned_to: BTreeSet::new(),
            created_at: at,
            updated_at: at,
        }
    }

    /// Creates the favourites of a user, without channels.
    pub fn favorites(id: PersonalPlaylistId, owner: UserId, at: i64) -> Self {
        Self { is_favorites: true, ..Self::new(id, owner, FAVORITES, at) }
    }

    /// Returns whether a user reads the playlist in players and lists: the owner, and users to whom it is assigned.
    pub fn is_readable_by(&self, user: UserId) -> bool {
        self.owner == user || self.assigned_to.contains(&user)
    }

    /// Returns the form of owner and name in which names are compared.
    pub fn name_key(owner: UserId, name: &str) -> Vec<u8> {
        let mut key = owner.0.to_be_bytes().to_vec();
        key.extend_from_slice(name.to_lowercase().as_bytes());
        key
    }

    /// Replaces the channels. A repeated channel counts once, at its first place.
    pub fn set_channels(&mut self, channels: impl IntoIterator<Item = ChannelId>) {
        let mut seen = HashSet::new();
        self.channels = channels.into_iter().filter(|it| seen.insert(*it)).collect();
    }

    /// Adds a channel at the end. Returns whether that was a change.
    pub fn add(&mut self, channel: ChannelId) -> bool {
        let is_new = !self.channels.contains(&channel);
        if is_new {
            self.channels.push(channel);
        }
        is_new
    }

    /// Removes a channel. Returns whether that was a change.
    pub fn remove(&mut self, channel: ChannelId) -> bool {
        let n = self.channels.len();
        self.channels.retain(|it| *it != channel);
        self.channels.len() < n
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_playlist_keeps_its_order_and_lists_a_channel_once() {
        let mut playlist = PersonalPlaylist::new(PersonalPlaylistId(1), UserId(1), "Evening", 0);
        playlist.set_channels([3, 1, 3, 2].map(ChannelId));
        assert_eq!(playlist.channels, [3, 1, 2].map(ChannelId));
        assert!(playlist.add(ChannelId(9)) && !playlist.add(ChannelId(1)));
        assert!(playlist.remove(ChannelId(3)) && !playlist.remove(ChannelId(3)));
        assert_eq!(playlist.channels, [1, 2, 9].map(ChannelId));
    }

    #[test]
    fn the_owner_and_assigned_users_read_a_playlist() {
        let mut playlist = PersonalPlaylist::favorites(PersonalPlaylistId(1), UserId(1), 0);
        playlist.assigned_to.insert(UserId(2));
        assert_eq!([1, 2, 3].map(|it| playlist.is_readable_by(UserId(it))), [true, true, false]);
    }
}
