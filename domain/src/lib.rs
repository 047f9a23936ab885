//! The records of the gateway and the rules between them.
//!
//! This crate is pure. It has no clock (time is an argument), does no I/O, is not async, writes no logs and keeps no
//! state except what the caller keeps. Therefore each rule can be tested with a table, each parser can be fuzzed alone,
//! and each decision can be replayed.
//!
//! The records know no file format; [`playlist`] converts between both. In reading order:
//!
//! 1. Records: a [`channel`] has [`stream`]s; a stream is an address ([`source_url`]) of an [`account`]; a
//!    [`stream_ids`] records to which stream an id belongs; a [`stream_profile`] determines its delivery; an account may have several addresses ([`account_addresses`]) and a [`proxy`], may lead into some networks ([`egress`]), and names [`local_hosts`] there; a [`user_agent`] names a program to providers; a [`group`] sorts
//!    channels, and a [`logo`] is their picture; a [`lineup`] selects those that a [`user`] may watch, a
//!    [`personal_playlist`] those that a user has chosen, and a [`user_group`] sorts users; a [`secret`]
//!    prints without its value. [`ids`] has their ids, [`settings`] those of the operator, [`setting`] the record of a
//!    setting that admins change, [`core_settings`] its meaning, and [`backup_schedule`], [`tuner`]
//!    and [`library_settings`] that of three of them; an [`output_profile`] changes a stream for some clients, and an [`output_format`] is the form in which they get it. [`discovery`] announces tuners, and
//!    [`clients`] lists programs with needs of their own.
//! 2. Decisions: the [`plan`] of a live channel, the assignment of slots and seats ([`limits`]), and the stream to play
//!    next ([`playout`]). For films: the [`byte_range`] that a request selects, the [`container`] of a file, and what a
//!    viewer's one connection reads next ([`vod_session`]).
//!    Several nodes that act as one: [`cluster`].
//! 3. Search: [`streams`], all of them in columns. Their [`health`], as plays show it.
//! 4. Notifications: an [`event`], with its [`time`], the [`integration`]s that receive it, the [`template`] of a text about it, and a [`notice`] for users. Changes by admins are recorded as entries of the [`audit`], and
//!    those of many records at once can be taken back: [`undo`].
//! 5. Playlists: [`playlist`], the same from a [`panel`], and the [`guide`] that goes with them. Search and replace for admins: a [`pattern`].
//! 6. Films and series: [`vod`], as files for media servers: [`strm`]. Recordings of channels: [`recording`], and the commercials in them: [`comskip`]. The past of channels that the gateway keeps: [`timeshift`].
//! 7. Records of another service: [`import_from`]. The client of a request, also behind proxies: [`origin`], and its
//!    parameters: [`query`]. Text in [`xml`].

pub mod account;
pub mod account_addresses;
pub mod account_group;
pub mod audit;
pub mod auto_sync;
pub mod backup_schedule;
pub mod byte_range;
pub mod catchup;
pub mod channel;
pub mod clients;
pub mod cluster;
pub mod command;
pub mod comskip;
pub mod container;
pub mod core_settings;
pub mod discovery;
pub mod egress;
pub mod event;
pub mod ffmpeg;
pub mod forwarded;
pub mod group;
pub mod guide;
pub mod health;
pub mod ids;
pub mod import_from;
pub mod integration;
pub mod library_settings;
pub mod limits;
pub mod lineup;
pub mod local_hosts;
pub mod login;
pub mod logo;
pub mod notice;
pub mod origin;
pub mod output_format;
pub mod output_profile;
pub mod panel;
pub mod pattern;
pub mod personal_playlist;
pub mod plan;
pub mod playlist;
pub mod playout;
pub mod plugin;
pub mod proxy;
pub mod query;
pub mod recording;
pub mod secret;
pub mod server_group;
pub mod setting;
pub mod settings;
pub mod source_url;
pub mod stream;
pub mod stream_ids;
pub mod stream_profile;
pub mod streams;
pub mod strm;
pub mod template;
pub mod time;
pub mod timeshift;
pub mod tuner;
pub mod udp_output;
pub mod undo;
pub mod user;
pub mod user_agent;
pub mod user_group;
pub mod user_limits;
pub mod vod;
pub mod vod_session;
pub mod xml;
