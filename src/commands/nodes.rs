//! `headwater cluster init`, `token`, `remove` and `leave`: who belongs to the cluster. `finalize`: what its nodes write.

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;

use actors::now_ms;
use anyhow::{Context, anyhow, bail, ensure};
use cluster::codec::{StoredMember, StoredRecord, decode, record_key};
use cluster::nats::{NatsEngine, NatsOptions, inspect};
use cluster::{Engine, EngineLog, Key, WatchEvent};
use config::{Config, DataFolder};
use domain::cluster::record::{MemberState, NodeId};
use domain::cluster::token::NodeRole;
use node::file::{NodeFile, begin_cluster};
use node::versions::{self, Raised};
use services::open_store::open_store;
use tokio::runtime::Builder;
use tokio::time::{Instant, timeout_at};

use super::cluster::{CONNECT_TIMEOUT, connected, options};
use crate::control::{self, ControlReply, ControlRequest};
use crate::terminal::say;

/// Makes this gateway the first node of a cluster. Blocks.
pub(super) fn init(config: &Config) -> anyhow::Result<ExitCode> {
    let options = options(&config.cluster)?;
    let folder = DataFolder::new(&config.data_dir);
    must_not_run(&folder)?;
    // `EngineLog` blocks a thread of its own while this runtime drives the connection.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        check_servers(&options).await?;
        let engine = Arc::new(NatsEngine::start(options));
        connected(&engine).await?;
        let log = Arc::new(EngineLog::new(engine, 0));
        let folder = folder.clone();
        let begun = media::spawn_blocking(move || {
            let store = open_store(&folder)?;
            let begun = begin_cluster(&store, &folder.node(), log, now_ms());
            store.close();
            begun.map(drop).map_err(anyhow::Error::from)
        });
        begun.await?
    })?;
    let name = config.cluster.name().map_err(|it| anyhow!("failed to use {it}"))?;
    say(&format!(
        "This gateway is the first node of a cluster, as \"{name}\". Its configuration is now that of the \
         cluster; nothing was lost.\n\n\
         Keep {}: it has the keys of this node.\n\n\
         What comes next:\n  \
         1. Let other nodes reach port {} of this machine{}.\n  \
         2. headwater serve\n  \
         3. headwater cluster token     prints what a machine needs to join\n  \
         4. headwater serve --join TOKEN     on the other machine, with an empty data folder and the same table [cluster]",
        folder.node().display(),
        config.cluster.listen().address().port(),
        if config.cluster.addresses.is_empty() {
            ", and set cluster.addresses if it has several addresses"
        } else {
            ""
        },
    ));
    Ok(ExitCode::SUCCESS)
}

/// Prints a join token. Blocks.
pub(super) fn token(config: &Config, role: NodeRole) -> anyhow::Result<ExitCode> {
    let reply = ask_running(config, ControlRequest::JoinToken { role })?;
    let ControlReply::Token { token } = reply else {
        bail!("the running gateway answered something else; is it of another version?");
    };
    say(token.expose());
    Ok(ExitCode::SUCCESS)
}

/// Begins or ends the drain of this node. Blocks.
pub(super) fn drain(config: &Config, is_draining: bool) -> anyhow::Result<ExitCode> {
    ask_running(config, ControlRequest::Drain { is_draining })?;
    say(if is_draining {
        "This node gives its channels and jobs to other nodes, and opens no more. `headwater cluster drain --end` ends that."
    } else {
        "This node opens channels and begins jobs again."
    });
    Ok(ExitCode::SUCCESS)
}

/// Revokes the certificates of a node. Blocks.
pub(super) fn remove(config: &Config, name: &str) -> anyhow::Result<ExitCode> {
    let options = options(&config.cluster)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let node = runtime.block_on(number_of(options, name))?;
    ask_running(config, ControlRequest::RemoveNode { node })?;
    say(&format!(
        "The node \"{name}\" is removed: other nodes refuse its certificate. Remove its nkey in NATS, too. If it joins again, \
         it needs a new token and an empty data folder."
    ));
    Ok(ExitCode::SUCCESS)
}

/// Raises the version that the nodes write. Blocks.
pub(super) fn finalize(config: &Config, is_forced: bool) -> anyhow::Result<ExitCode> {
    let options = options(&config.cluster)?;
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let members = runtime.block_on(async {
        let engine = NatsEngine::start(options);
        connected(&engine).await?;
        anyhow::Ok(members(&engine).await)
    })?;
    let member = |it: &StoredMember| versions::member(&it.node, it.record.state == MemberState::Alive);
    let members = members.iter().filter_map(member).collect();
    let reply = ask_running(config, ControlRequest::Finalize { members, is_forced })?;
    let ControlReply::Finalized(Raised { from, to }) = reply else {
        bail!("the running gateway answered something else; is it of another version?");
    };
    say(&match from == to {
        true => format!("The nodes write version {to} of their data, and none of them reads a later one."),
        false => format!(
            "The nodes write version {to} of their data now, instead of {from}. Older versions of the gateway cannot be nodes \
             any more."
        ),
    });
    Ok(ExitCode::SUCCESS)
}

/// Makes this machine a gateway of its own. Blocks.
pub(super) fn leave(config: &Config) -> anyhow::Result<ExitCode> {
    let folder = DataFolder::new(&config.data_dir);
    must_not_run(&folder)?;
    let path = folder.node();
    let file = NodeFile::read(&path).ok().flatten();
    ensure!(folder.store().exists(), "there is no store at {}", folder.store().display());
    let store = open_store(&folder)?;
    let has_log = store.log_status().borrow().is_some();
    ensure!(has_log || path.exists(), "this gateway belongs to no cluster");
    store.leave_log()?;
    store.close();
    if path.exists() {
        fs::remove_file(&path).with_context(|| format!("failed to remove {}", path.display()))?;
    }
    let name = config.cluster.name().unwrap_or_default();
    let number = file.map_or_else(String::new, |it| format!(" (node {})", it.node.0));
    say(&format!(
        "This machine{number} is a gateway of its own again, with the configuration that it has. Remove the table [cluster] \
         before it is started, and run `headwater cluster remove {name}` on another node."
    ));
    Ok(ExitCode::SUCCESS)
}

pub(super) fn must_not_run(folder: &DataFolder) -> anyhow::Result<()> {
    ensure!(
        !control::is_running(folder),
        "a gateway runs on {}; stop it, run this command, and start it again",
        folder.root().display()
    );
    Ok(())
}

/// Asks the running gateway, which passes on what only the node that writes the configuration can do.
fn ask_running(config: &Config, request: ControlRequest) -> anyhow::Result<ControlReply> {
    let folder = DataFolder::new(&config.data_dir);
    ensure!(
        control::is_running(&folder),
        "no gateway runs on {}; start it with `headwater serve`",
        folder.root().display()
    );
    control::run(&folder, request)
}

/// Checks that at least one server can be used, and that none is too old. Servers that have just started get some time.
pub(super) async fn check_servers(options: &NatsOptions) -> anyhow::Result<()> {
    let until = Instant::now() + CONNECT_TIMEOUT;
    loop {
        let (mut reasons, mut is_usable, mut may_be_starting) = (Vec::new(), false, false);
        for address in &options.servers {
            match inspect(options, address).await {
                Ok(facts) => {
                    if let Some(problem) = facts.version_problem {
                        bail!("the NATS server {address} cannot be used: {problem}");
                    }
                    may_be_starting |= facts.may_be_starting;
                    match facts.jetstream_problem {
                        Some(problem) => reasons.push(format!(
                            "JetStream of {address} does not answer: {problem} (add `jetstream {{ store_dir: …, \
                             sync_interval: always }}` to its configuration)"
                        )),
                        None => is_usable = true,
                    }
                }
                Err(reason) => reasons.push(reason),
            }
        }
        if is_usable {
            return Ok(());
        }
        // Each look lasts as long as a request, so there is no need for a pause.
        ensure!(
            may_be_starting && Instant::now() < until,
            "no NATS server can be used: {}; `headwater cluster check` says more",
            reasons.join("; ")
        );
    }
}

/// Returns the number in the certificate of a node with this name.
async fn number_of(options: NatsOptions, name: &str) -> anyhow::Result<NodeId> {
    let engine = NatsEngine::start(options);
    connected(&engine).await?;
    if let Some(member) = members(&engine).await.into_iter().find(|it| it.node.name == name) {
        let number = member.node.certificate;
        return number.map(NodeId).with_context(|| format!("the node \"{name}\" has no certificate"));
    }
    // One without a record has no name.
    if let Some(number) = versions::number_in(name) {
        return Ok(NodeId(number));
    }
    bail!("the cluster has no node \"{name}\"; `headwater cluster status` lists them")
}

/// Reads the records of all members; those that came, if NATS stops to answer.
pub(super) async fn members(engine: &NatsEngine) -> Vec<StoredMember> {
    let mut events = engine.watch(Key::new("member"));
    let until = Instant::now() + CONNECT_TIMEOUT;
    let mut members = Vec::new();
    while let Ok(Some(event)) = timeout_at(until, events.recv()).await {
        let record = match event {
            WatchEvent::Record(record) => record,
            WatchEvent::Complete => break,
            WatchEvent::Session(_) => continue,
        };
        let Some(key) = record_key(&record.key) else { continue };
        let decoded = record.value.map(|it| decode(&record.key, key, &it));
        if let Some(Ok(StoredRecord::Member(member))) = decoded {
            members.push(member);
        }
    }
    members
}
