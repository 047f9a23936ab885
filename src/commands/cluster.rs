//! `headwater cluster check` and `headwater cluster status`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use cluster::codec::{StoredMember, StoredRecord, decode, key, record_key};
use cluster::nats::{NatsEngine, NatsOptions, ServerFacts, inspect, monitor, replicas};
use cluster::{
    Engine, Key, NodeInfo, NodeLoad, NodeRole, Record, Revision, WatchEvent, node_id, written_version,
};
use config::{ClusterConfig, Config};
use domain::cluster::record::{ClusterRecord, JobName, JobRecord, MemberState, NodeId, RecordKey};
use domain::cluster::rules::RENEW_INTERVAL;
use domain::cluster::version::{RaiseRefusal, raised_version};
use node::tls::install_tls;
use node::versions;
use tokio::runtime::Builder;
use tokio::sync::mpsc::Receiver;
use tokio::time::{Instant, timeout_at};

use super::doctor::{CheckReport, Finding};
use super::reachability::check_nodes;
use crate::terminal::{printable, say};

/// Longest time for reaching the engine.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// Clocks that differ by more than this are reported.
const CLOCK_MS_MAX: i64 = 1000;

/// A round trip above this is reported, because each opening of a limited source waits for one.
const ROUND_TRIP_MAX: Duration = Duration::from_millis(100);

/// Checks all servers, and prints each finding as soon as it is there. Blocks.
pub(super) fn check(config: &Config) -> anyhow::Result<ExitCode> {
    let options = options(&config.cluster)?;
    let mut report = CheckReport::default();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let is_in_use = check_servers(&config.cluster, &options, &mut report).await;
        // A session would create what is missing.
        if is_in_use {
            check_nodes(config, options, &mut report).await;
        }
    });
    Ok(report.end())
}

/// Lists the nodes. Blocks.
pub(super) fn status(config: &Config) -> anyhow::Result<ExitCode> {
    let options = options(&config.cluster)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(print_nodes(options))?;
    Ok(ExitCode::SUCCESS)
}

pub(super) fn options(config: &ClusterConfig) -> anyhow::Result<NatsOptions> {
    install_tls();
    if !config.is_enabled() {
        return Err(anyhow!(
            "this node is on its own: set `servers` in the table [cluster] of the configuration (see docs/cluster.md)"
        ));
    }
    config.nats().map_err(|it| anyhow!("failed to {it}"))
}

/// Returns whether they have data of a cluster.
async fn check_servers(config: &ClusterConfig, options: &NatsOptions, report: &mut CheckReport) -> bool {
    number_of_servers(options.servers.len(), report);
    let mut clusters = BTreeMap::new();
    let mut is_in_use = false;
    for address in &options.servers {
        match inspect(options, address).await {
            Ok(facts) => {
                clusters.insert(facts.cluster.clone(), address);
                server(address, &facts, options.servers.len(), report);
                is_in_use |= facts.version_problem.is_none() && !facts.streams.is_empty();
            }
            Err(reason) => report.add(Finding::problem(
                address,
                reason,
                "Start the server, or correct `cluster.servers`, the login and the certificates.",
            )),
        }
    }
    if clusters.len() > 1 {
        report.add(Finding::problem(
            "servers",
            "they do not belong to one NATS cluster",
            "Give all of them the same `cluster { name: … }` and routes to each other.",
        ));
    }
    sync(config, report).await;
    is_in_use
}

fn number_of_servers(n: usize, report: &mut CheckReport) {
    report.add(match n {
        1 => Finding::warning(
            "servers",
            "there is one NATS server, so the cluster stands still while it is down",
            "Run three servers on three machines.",
        ),
        2 => Finding::warning(
            "servers",
            "there are two NATS servers, and the cluster stands still while either of them is down",
            "Add a third server on another machine; a small one is enough.",
        ),
        n => Finding::good("servers", format!("{n}")),
    });
}

fn server(address: &str, facts: &ServerFacts, n_servers: usize, report: &mut CheckReport) {
    let what = format!("{} ({address})", facts.name);
    match &facts.version_problem {
        Some(it) => report.add(Finding::problem(&what, it.clone(), "Update the NATS server.")),
        None => report.add(Finding::good(&what, format!("version {}", facts.version))),
    }
    if let Some(it) = &facts.jetstream_problem {
        let advice = "Add `jetstream { store_dir: …, sync_interval: always }` to its configuration, and `jetstream: enabled` \
             to the account.";
        report.add(Finding::problem(&what, format!("JetStream does not answer: {it}"), advice));
        return;
    }
    if let Some(it) = facts.round_trip {
        let text = format!("a request takes {:.1} ms", it.as_secs_f64() * 1000.0);
        report.add(if it > ROUND_TRIP_MAX {
            Finding::warning(
                &what,
                text,
                "Use NATS servers that are nearer: opening a source waits for them.",
            )
        } else {
            Finding::good(&what, text)
        });
    }
    if let Some(it) = facts.clock_ahead_ms {
        report.add(clock(&what, it));
    }
    let wanted = replicas(n_servers);
    for it in &facts.streams {
        let text = format!(
            "stream {} has {} of {wanted} replicas, {} of them up to date, and uses {} of {} MiB",
            it.name,
            it.n_replicas,
            it.n_current + 1,
            it.bytes >> 20,
            it.bytes_max >> 20,
        );
        let is_current = it.n_current + 1 >= it.n_replicas;
        report.add(if it.n_replicas >= wanted && is_current {
            Finding::good(&what, text)
        } else if it.n_replicas >= wanted {
            Finding::warning(&what, text, "Wait until the missing server has caught up, or start it.")
        } else {
            Finding::warning(&what, text, "Start all servers; a node adds the replicas when it connects.")
        });
    }
    if facts.streams.is_empty() {
        report.add(Finding::good(&what, "has no data of a cluster yet; the first node creates it"));
    }
}

fn clock(what: &str, ahead_ms: i64) -> Finding {
    let seconds = ahead_ms.unsigned_abs() as f64 / 1000.0;
    let direction = if ahead_ms < 0 { "behind" } else { "ahead" };
    let text = format!("its clock is {seconds:.1} s {direction}");
    if ahead_ms.abs() > CLOCK_MS_MAX {
        Finding::warning(
            what,
            text,
            "Synchronise the clocks of all machines: schedules and logins depend on them.",
        )
    } else {
        Finding::good(what, text)
    }
}

/// Checks that the servers write to disk before they acknowledge, as far as they show it.
async fn sync(config: &ClusterConfig, report: &mut CheckReport) {
    const LINE: &str = "`jetstream { sync_interval: always }`";
    if config.monitors.is_empty() {
        report.add(Finding::warning(
            "writing to disk",
            "the servers do not show it to nodes, so it was not checked",
            &format!(
                "Make sure that the configuration of each server has {LINE}. To have it checked, set `http: HOST:8222` \
                 there and `cluster.monitors` here."
            ),
        ));
    }
    for address in &config.monitors {
        match monitor(address).await {
            Ok(facts) => {
                if let Some(it) = facts.clock_ahead_ms {
                    report.add(clock(address, it));
                }
                report.add(if facts.is_synced {
                    Finding::good(address, "writes to disk before it acknowledges")
                } else {
                    Finding::problem(
                        address,
                        "acknowledges writes before they are on disk, so a power cut can lose them",
                        &format!("Set {LINE} and restart the server."),
                    )
                });
            }
            Err(reason) => report.add(Finding::warning(
                address,
                format!("the monitoring cannot be read: {reason}"),
                "Correct `cluster.monitors`, or set `http: HOST:8222` in the configuration of the server.",
            )),
        }
    }
}

async fn print_nodes(options: NatsOptions) -> anyhow::Result<()> {
    let mut last = anyhow!("no server is configured");
    let mut found = None;
    for address in &options.servers {
        match inspect(&options, address).await {
            Ok(facts) => {
                found = Some(facts);
                break;
            }
            Err(reason) => last = anyhow!(reason),
        }
    }
    let facts = found.ok_or(last).context("failed to reach the cluster")?;
    // A session would create what is missing.
    if facts.version_problem.is_none() && facts.streams.is_empty() {
        let problem = facts.jetstream_problem;
        return match problem {
            Some(it) => Err(anyhow!("failed to reach the cluster: JetStream does not answer: {it}")),
            None => {
                say("No node has joined yet.");
                Ok(())
            }
        };
    }
    let engine = NatsEngine::start(options);
    connected(&engine).await?;
    let writer = writer(&engine).await;
    let mut events = engine.watch(Key::new("member"));
    say("Looking for renewals, which takes some seconds.");
    let nodes = renewals(&mut events).await;
    let width = nodes.iter().map(|it| it.stored.node.name.len()).max().unwrap_or_default().max(4);
    say(&format!(
        "{:<width$}  {:<5}  {:<15}  {:<10}  {:<6}  {:>8}  {:>8}  {}",
        "NODE", "ROLE", "STATE", "VERSION", "READS", "CHANNELS", "CLIENTS", "CONFIGURATION"
    ));
    for node in &nodes {
        let NodeLoad { channels, clients, .. } = node.stored.node.load;
        let role = match node.stored.node.role {
            NodeRole::Full => "full",
            NodeRole::Edge => "edge",
        };
        let (name, version) = (printable(&node.stored.node.name), printable(&node.stored.node.version));
        let (state, part) = (node.state(), writer.part_of(&node.stored.node));
        let reads = node.stored.node.versions.to_string();
        say(&format!(
            "{name:<width$}  {role:<5}  {state:<15}  {version:<10}  {reads:<6}  {channels:>8}  {clients:>8}  {part}"
        ));
    }
    print_versions(&nodes);
    Ok(())
}

/// Prints which version of their data the nodes write, and what prevents a later one.
fn print_versions(nodes: &[FoundNode]) {
    let Some(written) = written_version(nodes.iter().map(|it| &it.stored.node)) else { return };
    say(&format!("The nodes write version {written} of their data."));
    let members = nodes.iter().filter_map(|it| versions::member(&it.stored.node, it.has_renewed));
    let members: Vec<_> = members.collect();
    for node in members.iter().filter(|it| !it.versions.contains(written)) {
        let name = printable(&node.name);
        say(&format!("{name} reads {} and cannot be a member: update it.", node.versions));
    }
    match raised_version(written, &members, false) {
        Ok(raised) if raised > written => {
            say(&format!(
                "All nodes read version {raised}; `headwater cluster finalize` lets them write it."
            ));
        }
        Err(RaiseRefusal::TooOld { names, .. }) => {
            say(&format!("These nodes read no later one: {}.", printable(&names.join(", "))));
        }
        Ok(_) | Err(RaiseRefusal::NoneCommon { .. }) => {}
    }
}

/// Waits until the engine is connected.
pub(super) async fn connected(engine: &NatsEngine) -> anyhow::Result<()> {
    let mut state = engine.state();
    let until = Instant::now() + CONNECT_TIMEOUT;
    if timeout_at(until, state.wait_for(|it| it.session().is_some())).await.is_err() {
        let reason = match &*engine.state().borrow() {
            cluster::EngineState::Disconnected { reason } => reason.clone(),
            cluster::EngineState::Connected(_) => "the connection was lost".to_owned(),
        };
        return Err(anyhow!("failed to reach the cluster: {reason}"));
    }
    Ok(())
}

/// The part of the nodes in the configuration.
#[derive(Default)]
struct WriterFacts {
    /// The node with the job of writing.
    owner: Option<NodeId>,
    /// The last entry of the log.
    last: u64,
}

/// Asks who writes the configuration.
async fn writer(engine: &NatsEngine) -> WriterFacts {
    let state = engine.state().borrow().clone();
    let Some(session) = state.session() else { return WriterFacts::default() };
    let job = RecordKey::Job(JobName::Writer);
    let key = key(job);
    let value = engine.read(session.number, &key).await.ok().and_then(|it| it.value);
    let owner = match value.map(|it| decode(&key, job, &it)) {
        Some(Ok(StoredRecord::Other(ClusterRecord::Job(JobRecord { owner })))) => owner.map(|it| it.0),
        _ => None,
    };
    let last = engine.log_state(session.number).await.map_or(0, |it| it.last);
    WriterFacts { owner, last }
}

impl WriterFacts {
    /// Returns the part of a node.
    fn part_of(&self, node: &NodeInfo) -> String {
        match node.load.configuration {
            None => "its own".to_owned(),
            Some(_) if self.owner == Some(node_id(&node.name)) => "writes".to_owned(),
            // The record of a node is some seconds old.
            Some(it) if it < self.last => format!("at {it} of {}", self.last),
            Some(_) => "follows".to_owned(),
        }
    }
}

/// A node as its records show it.
pub(super) struct FoundNode {
    pub(super) stored: StoredMember,
    revision: Revision,
    /// It has renewed its record while this command watched.
    has_renewed: bool,
}

impl FoundNode {
    fn state(&self) -> &'static str {
        match self.stored.record.state {
            MemberState::Alive if self.has_renewed => "alive",
            MemberState::Alive => "does not answer",
            MemberState::Expired => "expired",
            MemberState::Left => "left",
        }
    }

    pub(super) fn is_alive(&self) -> bool {
        self.stored.record.state == MemberState::Alive && self.has_renewed
    }

    fn is_waited_for(&self) -> bool {
        self.stored.record.state == MemberState::Alive && !self.has_renewed
    }
}

/// Watches the members until each has renewed its record, or two renewals are due.
pub(super) async fn renewals(events: &mut Receiver<WatchEvent>) -> Vec<FoundNode> {
    let until = Instant::now() + RENEW_INTERVAL * 2;
    let mut nodes: BTreeMap<Key, FoundNode> = BTreeMap::new();
    let mut is_complete = false;
    while !is_complete || nodes.values().any(FoundNode::is_waited_for) {
        match timeout_at(until, events.recv()).await {
            Ok(Some(WatchEvent::Record(record))) => note(&mut nodes, &record),
            Ok(Some(WatchEvent::Complete)) => is_complete = true,
            Ok(Some(WatchEvent::Session(_))) => {}
            Ok(None) | Err(_) => break,
        }
    }
    let mut nodes: Vec<_> = nodes.into_values().collect();
    nodes.sort_by(|a, b| a.stored.node.name.cmp(&b.stored.node.name));
    nodes
}

fn note(nodes: &mut BTreeMap<Key, FoundNode>, record: &Record) {
    let Some(value) = &record.value else {
        nodes.remove(&record.key);
        return;
    };
    let Some(key) = record_key(&record.key) else { return };
    match decode(&record.key, key, value) {
        Ok(StoredRecord::Member(stored)) => {
            let before = nodes.get(&record.key);
            let has_renewed = before.is_some_and(|it| it.has_renewed || it.revision != record.revision);
            let node = FoundNode { stored, revision: record.revision, has_renewed };
            nodes.insert(record.key.clone(), node);
        }
        Ok(StoredRecord::Other(_)) => {}
        Err(error) => say(&error.to_string()),
    }
}
