//! Playlists: what providers send ([`m3u`]), what is made of it ([`catalogue`]), and what is handed on
//! ([`write`](mod@write)).

pub mod catalogue;
pub mod m3u;
pub mod write;
