//! The records of the gateway and the rules between them.
//!
//! This crate is pure. It has no clock (time is an argument), does no I/O, is not async, writes no logs and keeps no
//! state except what the caller keeps. Therefore each rule can be tested with a table, each parser can be fuzzed alone,
//! and each decision can be replayed.
//!
//! In reading order:
//!
//! 1. Records: a [`channel`] has [`stream`]s. A stream is an address ([`source_url`]) of an [`account`], and keeps its id
//!    over refreshes ([`stream_ids`]); it has [`entry_details`] and may be protected by a [`drm`] system or be a
//!    [`video_page`]. A [`stream_profile`] determines its delivery, with a [`command`] or [`ffmpeg`].
//!    Accounts can be in an [`account_group`] or share a limit ([`server_group`]), have several addresses
//!    ([`account_addresses`]) and a [`proxy`], may lead into some networks ([`egress`]), and name [`local_hosts`] there;
//!    a [`user_agent`] names a program to providers. A [`group`] sorts channels, a [`logo`] is their picture, a
//!    [`lineup`] selects those that a [`user`] may watch, a [`personal_playlist`] those that a user has chosen, and
//!    [`udp_output`] sends one as datagrams. A [`user_group`] sorts users, a [`login`] is a device of one, and a
//!    [`secret`] prints without its value; a [`django_hash`] is a password from another service. [`ids`] has the ids of all.
//! 2. Settings: [`settings`] are those of the operator, a [`setting`] is the record of one that admins change, and
//!    [`core_settings`] is its meaning; [`backup_schedule`], [`tuner`], [`user_limits`] and [`library_settings`] are some
//!    of them. An [`output_profile`] changes a stream for some clients, and an [`output_format`] is the form in which they
//!    get it. [`discovery`] announces tuners, and [`clients`] lists programs with needs of their own.
//! 3. Decisions: the [`plan`] of a live channel, the assignment of slots and seats ([`limits`]), and the stream to play
//!    next ([`playout`]). For films: the [`byte_range`] that a request selects, the [`container`] of a file, and what a
//!    viewer's one connection reads next ([`vod_session`]). Several nodes that act as one: [`cluster`].
//! 4. Search: [`streams`], all of them in columns, and their [`health`], as plays show it. The [`history`] of rates,
//!    viewers and slots.
//! 5. Events: an [`event`], with its [`time`], the [`integration`]s and [`plugin`]s that receive it, the
//!    [`template`] of a text about it, and a [`notice`] for users. The codes of [`texts`] are for other languages. The [`audit`] records changes by admins, and [`undo`]
//!    takes those of many records back.
//! 6. Playlists: [`playlist`], the same from a [`panel`], the channels that follow from them ([`auto_sync`]), and the
//!    [`guide`] that goes with them. Search and replace for admins: a [`pattern`].
//! 7. Films and series: [`vod`], as files for media servers: [`strm`], with their facts: [`nfo`]; their names, and those of channels, as people know
//!    them: [`name_cleaning`]. Recordings of channels: [`recording`], and the
//!    commercials in them: [`comskip`]. The past of channels: [`catchup`] of providers, and [`timeshift`] of the gateway.
//! 8. The client of a request: [`origin`], also behind proxies
//!    ([`forwarded`]), and its parameters: [`query`]. Text in [`xml`].

pub mod account;
pub mod account_addresses;
pub mod account_group;
pub mod address_owner;
pub mod allowed_hours;
pub mod audit;
pub mod auto_sync;
pub mod backup_schedule;
pub mod byte_range;
pub mod catchup;
pub mod certificate;
pub mod channel;
pub mod clients;
pub mod cluster;
pub mod command;
pub mod comskip;
pub mod container;
pub mod core_settings;
pub mod discovery;
pub mod django_hash;
pub mod drm;
pub mod egress;
pub mod entry_details;
pub mod event;
pub mod ffmpeg;
pub mod forwarded;
pub mod group;
pub mod guide;
pub mod health;
pub mod history;
pub mod ids;
pub mod integration;
pub mod library_settings;
pub mod limits;
pub mod lineup;
pub mod local_hosts;
pub mod login;
pub mod logo;
pub mod name_cleaning;
pub mod nfo;
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
pub mod portal;
pub mod proxy;
pub mod query;
pub mod recording;
pub mod secret;
pub mod server_group;
pub mod service_key;
pub mod setting;
pub mod settings;
pub mod source_url;
pub mod stream;
pub mod stream_identity;
pub mod stream_ids;
pub mod stream_profile;
pub mod streams;
pub mod strm;
pub mod template;
pub mod texts;
pub mod time;
pub mod timeshift;
pub mod tmdb;
pub mod tuner;
pub mod udp_output;
pub mod undo;
pub mod user;
pub mod user_agent;
pub mod user_group;
pub mod user_limits;
pub mod video_page;
pub mod vod;
pub mod vod_session;
pub mod xml;
