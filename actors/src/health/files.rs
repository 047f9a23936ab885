//! The health of files of films, judged like that of streams: by the outcomes of real plays.
//!
//! It is not stored. Accounts have many more films than anybody opens, and a film is opened far less often than a channel.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use domain::health::{FailureSide, SCORE_UNKNOWN, StreamHealth, rank};
use domain::ids::{ProfileId, StreamId};
use domain::settings::CANDIDATE_MEMORY;
use media::error::{Scope, UpstreamError};
use uuid::Uuid;

use super::HealthTable;
use crate::clock::now_ms;

/// Maximum number of files. Beyond it, the one that was not read for the longest time is forgotten.
const FILES_MAX: usize = 10_000;
/// Added to the rank of an account profile that was refused lately, so that it comes after all others.
const REFUSED_RANK: u8 = 100;

/// The outcomes of reading files, by file.
#[derive(Default)]
pub(super) struct FileTable(HashMap<Uuid, FileHealth>);

struct FileHealth {
    health: StreamHealth,
    /// When an account profile was last refused, in milliseconds since 1970.
    refused: BTreeMap<ProfileId, i64>,
}

impl FileTable {
    fn change(&mut self, file: Uuid, change: impl FnOnce(&mut FileHealth)) {
        if !self.0.contains_key(&file) && self.0.len() >= FILES_MAX {
            let oldest = self.0.iter().min_by_key(|it| it.1.health.updated_at).map(|it| *it.0);
            oldest.and_then(|it| self.0.remove(&it));
        }
        // A file is not a stream.
        let new = || FileHealth { health: StreamHealth::new(StreamId(0)), refused: BTreeMap::new() };
        change(self.0.entry(file).or_insert_with(new));
    }
}

impl FileHealth {
    fn rank(&self, profile: ProfileId, now: i64) -> u8 {
        let memory = i64::try_from(CANDIDATE_MEMORY.as_millis()).unwrap_or(i64::MAX);
        let is_lately = |at: &i64| now.saturating_sub(*at) < memory;
        let is_refused = self.refused.get(&profile).is_some_and(is_lately);
        rank(self.health.score(now)) + if is_refused { REFUSED_RANK } else { 0 }
    }
}

impl HealthTable {
    /// Notes that a file was opened with an account profile.
    pub(crate) fn file_opened(&self, file: Uuid, profile: ProfileId, took: Duration) {
        let (now, took_ms) = (now_ms(), u32::try_from(took.as_millis()).unwrap_or(u32::MAX));
        self.inner.lock().files.change(file, |it| {
            it.health.opened(took_ms, now);
            it.refused.remove(&profile);
        });
    }

    /// Notes that a file could not be opened with an account profile.
    pub(crate) fn file_failed(&self, file: Uuid, profile: ProfileId, cause: &UpstreamError) {
        let now = now_ms();
        self.inner.lock().files.change(file, |it| {
            let side = match cause.scope() {
                Scope::Stream => FailureSide::Stream,
                Scope::Candidate => FailureSide::Account,
            };
            if side == FailureSide::Account {
                it.refused.insert(profile, now);
            }
            it.health.failed(cause.label(), side, now);
        });
    }

    /// Notes that a connection was lost after it had brought bytes of a file for this time.
    pub(crate) fn file_lost(&self, file: Uuid, cause: &UpstreamError, played: Duration) {
        let (now, played_ms) = (now_ms(), u64::try_from(played.as_millis()).unwrap_or(u64::MAX));
        self.inner.lock().files.change(file, |it| it.health.lost(cause.label(), played_ms, now));
    }

    /// Returns the rank of a file with an account profile; the healthiest has the lowest.
    pub fn file_rank(&self, file: Uuid, profile: ProfileId) -> u8 {
        let inner = self.inner.lock();
        inner.files.0.get(&file).map_or_else(|| rank(SCORE_UNKNOWN), |it| it.rank(profile, now_ms()))
    }
}

#[cfg(test)]
mod tests {
    use media::error::Cause;

    use super::*;

    const PROFILE: ProfileId = ProfileId(1);

    fn file(number: usize) -> Uuid {
        Uuid::from_u128(number as u128)
    }

    #[test]
    fn a_file_that_fails_comes_after_unknown_ones_and_one_that_plays_before() {
        let health = HealthTable::default();
        let unknown = health.file_rank(file(0), PROFILE);
        health.file_failed(file(1), PROFILE, &UpstreamError::new(Cause::Status(404)));
        health.file_opened(file(2), PROFILE, Duration::from_millis(20));
        assert!(health.file_rank(file(1), PROFILE) > unknown && health.file_rank(file(2), PROFILE) < unknown);
        // A refused account says nothing about the file.
        health.file_failed(file(2), PROFILE, &UpstreamError::new(Cause::Status(403)));
        assert!(health.file_rank(file(2), PROFILE) >= REFUSED_RANK);
        assert!(health.file_rank(file(2), ProfileId(2)) < unknown);
        health.file_opened(file(2), PROFILE, Duration::from_millis(20));
        assert!(health.file_rank(file(2), PROFILE) < unknown);
    }

    #[test]
    fn the_number_of_files_is_bounded() {
        let health = HealthTable::default();
        for number in 0..FILES_MAX + 5 {
            health.file_opened(file(number), PROFILE, Duration::ZERO);
        }
        assert_eq!(health.inner.lock().files.0.len(), FILES_MAX);
    }
}
