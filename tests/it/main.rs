//! End-to-end tests of the gateway: a provider on a real socket, a gateway on port 0, and players.
//!
//! One module per feature. Tests that are slow by design are in modules named `slow`; those that take
//! minutes, in modules named `night`, which CI leaves out.

#![expect(
    clippy::unwrap_used,
    unreachable_pub,
    reason = "a test binary: nothing is published, and unwrap says where"
)]

/// Counts the bytes in use.
#[global_allocator]
static MEMORY: cap::Cap<std::alloc::System> = cap::Cap::new(std::alloc::System, usize::MAX);

mod account_addresses;
mod account_groups;
mod account_proxies;
mod account_replaced;
mod actor_failures;
mod anonymous;
mod backups;
mod catchup;
mod catchup_archives;
mod certificates;
mod clear_key;
mod clients;
mod cluster_channels;
mod cluster_configuration;
mod cluster_control;
mod cluster_drain;
mod cluster_edge_titles;
mod cluster_edges;
mod cluster_files;
mod cluster_jobs;
mod cluster_log;
mod cluster_members;
mod cluster_recordings;
mod cluster_remove;
mod cluster_restart;
mod cluster_rounds;
mod cluster_seats;
mod cluster_slots;
mod cluster_status;
mod cluster_upgrade;
mod confinement;
mod conformance;
mod connect;
mod connect_limits;
mod dashboard;
mod data_folder;
mod demo;
mod discovery;
mod egress;
mod event_causes;
mod events;
mod failing_disk;
mod failover;
mod films;
mod first_start;
mod full_disk;
mod full_disk_start;
mod guessing;
mod guide;
mod hls_failover;
mod hls_input;
mod hls_output;
mod hls_secrets;
mod hls_sound;
mod http_server;
mod hung_targets;
mod import;
mod import_from;
mod integrations;
mod library;
mod lifecycle;
mod limits;
mod lineups;
mod live;
mod load_test;
mod logging;
mod multicast;
mod notification_services;
mod openapi;
mod operator;
mod output_profiles;
mod own_time_shift;
mod pacing;
mod panels;
mod player_clients;
mod player_panel;
mod playlist;
mod playlists_out;
mod plugin_compat;
mod plugin_examples;
mod plugin_processes;
mod plugin_queue;
mod plugin_requests;
mod plugins;
mod portal_content;
mod portal_provider;
mod portals;
mod programs;
mod proxies;
mod radio;
mod recording_rules;
mod recordings;
mod recordings_after;
mod recordings_begin;
mod recordings_disk_lost;
mod recordings_failover;
mod recordings_in_players;
mod recordings_killed;
mod recordings_missed;
mod rest;
mod rest_channels;
mod rest_m3u;
mod rest_streams;
mod restart;
mod restart_viewers;
mod schedules_direct;
mod schemathesis;
mod screen;
mod seats;
mod self_test;
mod serve;
mod shapes;
mod shutdown;
mod specification;
mod status;
mod store;
mod stream_guides;
mod streaming;
mod support;
mod switching;
mod tidy;
mod time_zones;
mod trials;
mod tuner;
mod users;
mod vod_play;
mod web_audit;
mod web_now;
mod web_pages;
mod web_shell;
mod web_watch;
mod webhook_library;
mod websocket;
mod xmltv_tools;
