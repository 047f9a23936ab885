//! Imports of playlists: new, changed, missing and removed streams, and invalid playlists.

mod damage;
mod edits;
pub mod fixture;
mod identity;
mod refusals;
mod slow;
mod sources;
