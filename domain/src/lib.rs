//! The nouns of the gateway and the rules that hold between them.
//!
//! This room is pure. It has no clock (time is an argument), does no I/O, is not async, writes no logs and
//! remembers nothing between two calls but what the caller keeps. So each rule can be tested with a table,
//! each parser fuzzed alone, and each decision replayed.
//!
//! The nouns know no file format; [`playlist`] knows the nouns. In reading order:
//!
//! 1. What there is: a [`channel`] has [`stream`]s, a stream is an address ([`source_url`]) of an [`account`],
//!    and a [`stream_profile`] says how it is handed on; a [`group`] sorts channels, a [`user`] watches them, a
//!    [`secret`] never shows. [`ids`] names them all, [`settings`] are the operator's, a
//!    [`setting`] is how an admin's are kept and [`core_settings`] what they mean.
//! 2. What is decided: the [`plan`] of a live channel, who gets a slot ([`limits`]), and what plays next
//!    ([`playout`]).
//! 3. What is found: [`streams`], all of them in columns.
//! 4. What is told: an [`event`], with its [`time`].
//! 5. What is read and written: [`playlist`]. What admins make of texts: a [`pattern`].

pub mod account;
pub mod channel;
pub mod command;
pub mod core_settings;
pub mod event;
pub mod group;
pub mod ids;
pub mod limits;
pub mod pattern;
pub mod plan;
pub mod playlist;
pub mod playout;
pub mod secret;
pub mod setting;
pub mod settings;
pub mod source_url;
pub mod stream;
pub mod stream_profile;
pub mod streams;
pub mod time;
pub mod user;
