//! The numbers and the UUID of recordings in player apps, which know films, series and episodes by number.
//!
//! They follow from what they stand for, so that they never change, and lie above all ids of titles: the store assigns those
//! from 1 on, and one that is taken from another service is below, too. Apps read them as numbers of 32 bits with a sign.

use uuid::Uuid;

use super::Recording;
use crate::ids::RecordingId;

/// The first number: that of the category of recordings among films. That of series is the next one. Titles and episodes
/// have smaller ids.
pub const RECORDING_NUMBER_FIRST: u32 = 2_000_000_000;
const FIRST: u32 = RECORDING_NUMBER_FIRST;
/// Number of numbers.
const COUNT: u32 = 147_000_000;
/// The UUIDs of recordings, apart from the id in the last four bytes.
const UUIDS: u128 = 0x7265_636f_7264_8000_8000_0000_0000_0000;

/// Id of the category that contains the recordings as films.
pub const FILM_CATEGORY: u32 = FIRST;
/// Id of the category that contains the recordings as series.
pub const SERIES_CATEGORY: u32 = FIRST + 1;

impl RecordingId {
    /// Returns the number of the recording as a film or an episode. `None` for ids beyond all that can be reached.
    pub fn player_number(self) -> Option<u32> {
        (self.0 < COUNT).then(|| FIRST + self.0)
    }

    /// Returns the recording with this number.
    pub fn from_player_number(number: u32) -> Option<Self> {
        number.checked_sub(FIRST).filter(|it| *it < COUNT).map(Self)
    }

    /// Returns the UUID of the recording in addresses.
    pub fn uuid(self) -> Uuid {
        Uuid::from_u128(UUIDS | u128::from(self.0))
    }

    /// Returns the recording with this UUID.
    pub fn from_uuid(uuid: Uuid) -> Option<Self> {
        let number = uuid.as_u128().checked_sub(UUIDS)?;
        u32::try_from(number).ok().map(Self)
    }
}

impl Recording {
    /// Returns whether players list the recording as an episode of a series: one with season and episode, or one that a
    /// rule for programmes made. Films are none.
    pub fn is_episode(&self) -> bool {
        let programme = self.programme.as_ref();
        let has_number = programme.is_some_and(|it| it.season.is_some() && it.episode.is_some());
        let is_of_rule =
            self.followed.as_ref().is_some_and(|it| it.rule.is_some() && !it.guide_key.is_empty());
        (has_number || is_of_rule) && !programme.is_some_and(|it| it.is_movie)
    }

    /// Returns the number of the series that the recording is an episode of. It follows from the title, regardless of case,
    /// so that it outlives rules and recordings.
    pub fn series_number(&self) -> u32 {
        let value = stable_hash(self.title().trim().to_lowercase().as_bytes());
        FIRST + u32::try_from(value % u64::from(COUNT)).unwrap_or(0)
    }
}

/// Returns a hash that is the same in every version (FNV-1a).
pub fn stable_hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_uuids_of_recordings_lead_back_to_them() {
        for id in [0, 1, 77, COUNT - 1].map(RecordingId) {
            let number = id.player_number().unwrap();
            assert!(i32::try_from(number).is_ok());
            assert_eq!(RecordingId::from_player_number(number), Some(id));
            assert_eq!(RecordingId::from_uuid(id.uuid()), Some(id));
        }
        assert_eq!(RecordingId(COUNT).player_number(), None);
        assert_eq!(RecordingId::from_player_number(FIRST - 1), None);
        assert_eq!(RecordingId::from_player_number(FIRST + COUNT), None);
        assert_eq!(RecordingId::from_uuid(Uuid::nil()), None);
        assert_eq!(RecordingId::from_uuid(Uuid::max()), None);
    }

    #[test]
    fn the_number_of_a_series_is_the_same_in_every_version() {
        assert_eq!(stable_hash(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(stable_hash(b"a"), 0xaf63_dc4c_8601_ec8c);
    }
}
