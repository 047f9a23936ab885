//! The favourite films and series of a user, and what the user has watched.

use serde::{Deserialize, Serialize};

use super::progress::WatchProgress;
use super::title::TitleId;
use crate::ids::UserId;

/// Maximum number of favourites of a user.
pub const FAVORITES_MAX: usize = 5_000;

/// The favourites of a user, and the progress. They grant no access: the user finds those that the user may see anyway.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TitleFavorites {
    pub user: UserId,
    /// The latest one last, without duplicates. May contain titles that were merged or are gone.
    pub titles: Vec<TitleId>,
    /// When they last changed, in milliseconds since 1970.
    #[serde(default)]
    pub updated_at: i64,
    /// Here and not in a collection of its own, which nodes of earlier versions could not read.
    #[serde(default, skip_serializing_if = "WatchProgress::is_empty")]
    pub progress: WatchProgress,
}

impl TitleFavorites {
    /// Creates a list without titles.
    pub fn new(user: UserId) -> Self {
        Self { user, titles: Vec::new(), updated_at: 0, progress: WatchProgress::default() }
    }

    pub fn is_full(&self) -> bool {
        self.titles.len() >= FAVORITES_MAX
    }

    /// Adds a title. Returns whether that was a change.
    pub fn add(&mut self, title: TitleId) -> bool {
        let is_new = !self.titles.contains(&title);
        if is_new {
            self.titles.push(title);
        }
        is_new
    }

    /// Removes a title. Returns whether that was a change.
    pub fn remove(&mut self, title: TitleId) -> bool {
        let before = self.titles.len();
        self.titles.retain(|it| *it != title);
        self.titles.len() != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_a_favourite_once() {
        let (one, other) = (TitleId::movie(1).unwrap(), TitleId::series(1).unwrap());
        let mut favorites = TitleFavorites::new(UserId(2));
        assert!(favorites.add(one) && favorites.add(other) && !favorites.add(one));
        assert!(favorites.remove(one) && !favorites.remove(one));
        assert_eq!((favorites.titles.as_slice(), favorites.is_full()), (&[other][..], false));
    }
}
