//! MPEG transport stream syntax: pure functions and small readers over bytes, tolerant of any input.
//!
//! Nothing here does I/O, reads a clock or can panic on what it is given.

pub mod align;
#[cfg(test)]
pub(crate) mod build;
pub mod clock;
pub mod packet;
pub mod picture;
pub mod tables;

#[cfg(test)]
mod tests;
