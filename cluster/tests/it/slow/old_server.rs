//! Servers that cannot be used.

use std::path::Path;

use cluster::nats::{NatsEngine, NatsOptions};
use cluster::testing::NatsServers;

use super::support::{program, reason};

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_too_old_is_refused_with_what_to_do() {
    let program = Path::new("/usr/sbin/nats-server");
    assert!(program.exists(), "this test needs {}: just tools", program.display());
    let servers = NatsServers::start_unsynced(program);
    let engine = NatsEngine::start(servers.options());
    let reason = reason(&engine, "needs 2.12.3 or newer").await;
    assert!(reason.contains("has version 2.") && reason.contains("please update it"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_login_for_this_node_is_named() {
    let servers = NatsServers::start_with(&program(), 1, "authorization { user: a, password: b }");
    let engine = NatsEngine::start(servers.options());
    let reason = reason(&engine, "refuses the login").await;
    assert!(reason.contains(&servers.options().servers[0]), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_jetstream_is_told_what_it_needs() {
    // The last block counts.
    let servers = NatsServers::start_with(&program(), 1, "jetstream: disabled");
    let engine = NatsEngine::start(servers.options());
    let reason = reason(&engine, "JetStream").await;
    assert!(reason.contains("jetstream"), "{reason}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreachable_server_is_named() {
    let mut servers = NatsServers::start(&program(), 1);
    servers.kill(0);
    let options = NatsOptions { name: "a".to_owned(), ..servers.options() };
    let engine = NatsEngine::start(options);
    let reason = reason(&engine, "cannot be reached").await;
    assert!(reason.contains(&servers.options().servers[0]), "{reason}");
}
