//! Playlists become streams: what stays, what goes, and what no provider can spoil.

mod edits;
mod house;
mod identity;
mod refusals;
mod slow;
mod sources;
