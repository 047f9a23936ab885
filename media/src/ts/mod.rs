//! MPEG transport stream syntax: pure functions and small readers that tolerate any input.
//!
//! This module does no I/O, reads no clock, and does not panic on any input.

pub mod access_points;
pub mod align;
pub mod audio_frame;
#[cfg(test)]
pub(crate) mod build;
pub mod clock;
pub(crate) mod cue;
pub(crate) mod frame_rate;
pub mod packet;
pub mod pes;
pub mod picture;
pub mod random_access;
pub(crate) mod section;
pub mod service_info;
pub mod table_reader;
pub mod tables;

#[cfg(test)]
mod tests;
