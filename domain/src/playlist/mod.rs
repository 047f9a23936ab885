//! Playlists: what providers send ([`m3u`]), what a refresh changes ([`delta`]) under the [`rules`] of an account, what
//! is made of lists without a store ([`catalogue`]), and what is handed on ([`write`](mod@write)).

pub mod catalogue;
pub mod delta;
pub mod m3u;
pub mod rules;
pub mod write;
