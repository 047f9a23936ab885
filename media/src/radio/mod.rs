//! Radio stations that send audio frames without a container: finds the frames, cuts out the titles of ICY, and packs the
//! frames as a transport stream. Pure; [`crate::source`] does the reading.

mod frames;
mod icy;
mod packer;
#[cfg(test)]
mod tests;

pub use self::frames::FrameReader;
pub use self::icy::{IcyCutter, IcyHeaders, TITLE_CHARS_MAX};
pub use self::packer::RadioPacker;
