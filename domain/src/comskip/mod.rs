//! The detection of commercials in recordings by the program `comskip`: its configuration, its result, and the list of
//! commercials beside a recording.

mod config;
mod edl;

pub use self::config::{CONFIG_BYTES_MAX, ComskipConfig, ConfigError};
pub use self::edl::{COMMERCIALS_MAX, Commercial, commercials_of_edl, edl_of, length_of_report};
