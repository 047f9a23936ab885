//! Playlists: the parser ([`m3u`]), the changes of a refresh ([`delta`]) and the [`rules`] of an account, records built
//! without a store ([`catalogue`]), and the writer ([`write`](mod@write)) with its additional [`tags`]. [`attributes`] is
//! the table of those that entries have.

pub mod adult;
pub mod attributes;
pub mod catalogue;
pub mod content;
pub mod delta;
pub mod filters;
pub mod m3u;
pub mod rules;
pub mod tags;
pub mod titles;
pub mod write;
