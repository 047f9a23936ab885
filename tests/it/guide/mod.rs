//! Guides: sources over REST, refreshes of guides that are good, unchanged, damaged or much smaller, uploads, matching with
//! channels, and the readers of programmes.

pub mod fixture;
mod lies;
mod matching;
pub mod readers;
mod refreshes;
mod slow;
pub mod sources;
mod uploads;
mod written;
