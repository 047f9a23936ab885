//! Schedules Direct: a service for guide data, over the JSON interface of version 20141201
//! (<https://github.com/SchedulesDirect/JSON-Service/wiki/API-20141201>).
//!
//! Here are its codes, its records, and how they become programmes. Requests are sent elsewhere.

mod answers;
mod faults;
mod marks;
mod programme;
#[cfg(test)]
mod tests;

pub use self::answers::{
    Airing, Artwork, LineupEntry, PostalLineup, ProgramInfo, ServiceCountry, ServiceStatus, Station,
    StationArtwork, countries, date_of, headends, lineups, stations,
};
pub use self::faults::ServiceFault;
pub use self::marks::{DayMark, GuideMarks, MARK_CHARS};
pub use self::programme::{POSTER_ROOT_CHARS, best_images, poster_root, programme};

/// The address of the service, if a guide source has no other.
pub const BASE_URL: &str = "https://json.schedulesdirect.org/20141201";
/// Days of guide data that are requested, from the present day in UTC on.
pub const DAYS: u32 = 14;
/// Maximum number of lineups that an account can have.
pub const LINEUPS_MAX: u64 = 4;
/// Maximum number of stations of all lineups of an account together.
pub const STATIONS_MAX: usize = 8_000;
/// Maximum number of lineups that can be added in a day.
pub const CHANGES_MAX: u64 = 6;
/// Maximum number of programmes of one request.
pub const PROGRAMS_MAX: usize = 5_000;
/// Maximum number of programmes of one request for artwork.
pub const ARTWORK_MAX: usize = 500;
/// Minimum time between two refreshes, in milliseconds.
pub const REFRESH_PAUSE_MS: i64 = 2 * 3_600 * 1_000;
