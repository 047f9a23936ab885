//! The films and episodes that a user has watched, and where the user stopped.

use serde::{Deserialize, Serialize};

use super::title::TitleId;
use crate::ids::EpisodeId;

/// Maximum number of films and episodes of a user. The ones that were watched longest ago make room.
pub const PROGRESS_MAX: usize = 1_000;
/// Part of the length, in percent, from which on a film counts as watched. Credits follow. As in Jellyfin and Plex.
const WATCHED_FROM_PERCENT: u64 = 90;

/// The progress of a user. It grants no access: the user finds the titles that the user may see anyway.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WatchProgress {
    /// The latest one last, each once. May contain titles that were merged or are gone.
    pub items: Vec<WatchedItem>,
}

/// A film or an episode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WatchedId {
    Movie(TitleId),
    Episode(EpisodeId),
}

/// How far a user has watched a film or an episode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchedItem {
    pub id: WatchedId,
    /// Where to continue, in seconds; 0 is the beginning, also after the end.
    pub position_secs: u32,
    /// The length as the player states it, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_secs: Option<u32>,
    /// Whether it was watched to its end, or the user says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_watched: bool,
    /// How often it was watched to its end.
    #[serde(default)]
    pub n_watched: u32,
    /// When a player last reported it, in milliseconds since 1970.
    pub at: i64,
}

/// A report by a player or a user. Absent values stay as they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgressReport {
    pub position_secs: Option<u32>,
    pub duration_secs: Option<u32>,
    /// States that the user has watched it, or has not, whatever the position is.
    pub is_watched: Option<bool>,
}

impl WatchProgress {
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    /// Returns the progress of the first of these ids that has one: the id of a title, or of one that was merged into it.
    pub fn find(&self, ids: &[WatchedId]) -> Option<&WatchedItem> {
        ids.iter().find_map(|id| self.items.iter().find(|it| it.id == *id))
    }

    /// Notes a report about the first of these ids; the others were merged into it. `at` is in milliseconds since 1970.
    pub fn report(&mut self, ids: &[WatchedId], report: ProgressReport, at: i64) {
        let Some(id) = ids.first() else { return };
        let before = self.find(ids).cloned();
        self.forget(ids);
        let mut item = before.unwrap_or(WatchedItem {
            id: *id,
            position_secs: 0,
            duration_secs: None,
            is_watched: false,
            n_watched: 0,
            at,
        });
        item.id = *id;
        item.at = at;
        item.apply(report);
        if self.items.len() >= PROGRESS_MAX {
            self.items.remove(0);
        }
        self.items.push(item);
    }

    /// Removes these ids. Returns whether that was a change.
    pub fn forget(&mut self, ids: &[WatchedId]) -> bool {
        let before = self.items.len();
        self.items.retain(|it| !ids.contains(&it.id));
        self.items.len() != before
    }
}

impl WatchedItem {
    fn apply(&mut self, report: ProgressReport) {
        self.duration_secs = report.duration_secs.filter(|it| *it > 0).or(self.duration_secs);
        if let Some(position) = report.position_secs {
            let is_at_end = self
                .duration_secs
                .is_some_and(|it| u64::from(position) * 100 >= u64::from(it) * WATCHED_FROM_PERCENT);
            // The reports after the end belong to the same showing.
            let has_ended = self.is_watched && self.position_secs == 0;
            if is_at_end && !has_ended {
                self.is_watched = true;
                self.n_watched = self.n_watched.saturating_add(1);
            }
            self.position_secs = if is_at_end { 0 } else { position };
        }
        match report.is_watched {
            Some(true) => {
                self.n_watched = self.n_watched.max(1);
                (self.is_watched, self.position_secs) = (true, 0);
            }
            Some(false) => {
                self.is_watched = false;
                self.n_watched = 0;
            }
            None => {}
        }
    }

    /// Returns whether the user has begun and not ended.
    pub fn is_in_progress(&self) -> bool {
        self.position_secs > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn film(number: u32) -> WatchedId {
        WatchedId::Movie(TitleId::movie(number).unwrap())
    }

    fn at(position: u32, duration: u32) -> ProgressReport {
        ProgressReport {
            position_secs: Some(position),
            duration_secs: Some(duration),
            ..ProgressReport::default()
        }
    }

    #[test]
    fn a_film_counts_as_watched_near_its_end_and_can_be_begun_again() {
        let mut progress = WatchProgress::default();
        let watched = ProgressReport { is_watched: Some(true), ..ProgressReport::default() };
        let unwatched = ProgressReport { is_watched: Some(false), ..ProgressReport::default() };
        let no_length = ProgressReport { position_secs: Some(9_000), ..ProgressReport::default() };
        for (report, position, is_watched, n_watched) in [
            (at(10, 6_000), 10, false, 0),
            (at(5_399, 6_000), 5_399, false, 0),
            (at(5_400, 6_000), 0, true, 1),
            (at(5_900, 6_000), 0, true, 1),
            (at(60, 6_000), 60, true, 1),
            (at(6_000, 6_000), 0, true, 2),
            (unwatched, 0, false, 0),
            (at(100, 0), 100, false, 0),
            (watched, 0, true, 1),
            (no_length, 0, true, 1),
            (at(u32::MAX, u32::MAX), 0, true, 1),
        ] {
            progress.report(&[film(1)], report, 5);
            let item = progress.find(&[film(1)]).unwrap();
            assert_eq!(
                (item.position_secs, item.is_watched, item.n_watched),
                (position, is_watched, n_watched)
            );
            assert_eq!(item.is_in_progress(), position > 0, "{report:?}");
        }
        assert_eq!(progress.items.len(), 1);
    }

    #[test]
    fn the_latest_is_last_a_merged_title_keeps_its_progress_and_the_oldest_makes_room() {
        let mut progress = WatchProgress::default();
        let episode = WatchedId::Episode(EpisodeId(1));
        progress.report(&[film(1)], at(10, 100), 1);
        progress.report(&[episode], at(20, 100), 2);
        progress.report(&[film(1)], at(30, 100), 3);
        assert_eq!(progress.items.iter().map(|it| it.id).collect::<Vec<_>>(), [episode, film(1)]);
        assert_eq!(progress.find(&[film(7), film(1)]).map(|it| it.position_secs), Some(30));
        progress.report(&[film(7), film(1)], ProgressReport::default(), 4);
        assert_eq!(progress.find(&[film(1)]), None);
        assert_eq!(progress.find(&[film(7)]).map(|it| (it.position_secs, it.at)), Some((30, 4)));
        assert!(progress.forget(&[film(7)]) && !progress.forget(&[film(7)]));
        for number in 1..=u32::try_from(PROGRESS_MAX).unwrap() + 5 {
            progress.report(&[film(number)], at(1, 100), 5);
        }
        assert_eq!((progress.items.len(), progress.items[0].id), (PROGRESS_MAX, film(6)));
        progress.report(&[], at(1, 1), 6);
        assert_eq!(progress.items.len(), PROGRESS_MAX);
    }
}
