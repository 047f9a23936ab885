//! `headwater cluster reseed`: begins a new log with the configuration of this node.

use std::process::ExitCode;
use std::sync::Arc;

use actors::{SnapshotParts, store_snapshot};
use anyhow::{Context, anyhow, ensure};
use cluster::nats::NatsEngine;
use cluster::{Engine, EngineLog, node_id};
use config::{Config, DataFolder};
use media::spawn_blocking;
use node::file::NodeFile;
use node::reseed::{begin_new_log, check_need, newest_keys};
use services::open_store::open_store;
use storage::Store;
use storage::log::{CommitLog, LogKeys, LogPosition};
use tokio::runtime::Builder;

use super::cluster::{connected, options};
use super::nodes::{check_servers, members, must_not_run};
use crate::terminal::{say, say_error};

/// Begins a new log. Blocks.
pub(super) fn reseed(config: &Config, is_forced: bool) -> anyhow::Result<ExitCode> {
    let options = options(&config.cluster)?;
    let folder = DataFolder::new(&config.data_dir);
    must_not_run(&folder)?;
    let file = NodeFile::read(&folder.node())?.context(
        "this gateway belongs to no cluster; `headwater cluster init` begins one, `headwater serve --join` joins one",
    )?;
    ensure!(folder.store().exists(), "there is no store at {}", folder.store().display());
    let name = config.cluster.name().map_err(|it| anyhow!("failed to use {it}"))?;
    // `EngineLog` blocks threads of its own while this runtime drives the connection.
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        check_servers(&options).await?;
        let engine = Arc::new(NatsEngine::start(options));
        connected(&engine).await?;
        let log: Arc<dyn CommitLog> = Arc::new(EngineLog::new(Arc::<NatsEngine>::clone(&engine), 0));
        let opened = folder.clone();
        let store = spawn_blocking(move || open_store(&opened)).await??;
        let begun = begin(&store, file, log, &engine, &name, is_forced).await;
        if let Ok((position, keys)) = &begun {
            complete(&store, &folder, &engine, *position, keys.clone()).await;
        }
        store.close();
        begun.map(drop)
    })?;
    say(&format!(
        "The configuration of \"{name}\" is now that of the cluster, with a new log. Start this node; the other ones notice it, \
         take it over and restart by themselves. Nodes that are off do so at their next start."
    ));
    Ok(ExitCode::SUCCESS)
}

async fn begin(
    store: &Store,
    file: NodeFile,
    log: Arc<dyn CommitLog>,
    engine: &NatsEngine,
    name: &str,
    is_forced: bool,
) -> anyhow::Result<(LogPosition, LogKeys)> {
    let (of_store, of_log) = (store.clone(), Arc::clone(&log));
    let checking = spawn_blocking(move || {
        let keys = newest_keys(&of_store, &file)?;
        if !is_forced {
            check_need(&of_store, &file, of_log, &keys)?;
        }
        anyhow::Ok(keys)
    });
    let keys = checking.await??;
    let own = store.log_status().borrow().as_ref().map(|it| it.position.sequence);
    // A store that was restored counts whatever the others have.
    if let Some(own) = own.filter(|_| !is_forced) {
        must_be_newest(engine, name, own).await?;
    }
    let store = store.clone();
    let beginning = spawn_blocking(move || {
        let position = begin_new_log(&store, &log, &keys)?;
        anyhow::Ok((position, keys))
    });
    beginning.await?
}

/// Stores the first snapshot of the new log, and removes the old entries. Otherwise the node does it when it runs.
async fn complete(
    store: &Store,
    folder: &DataFolder,
    engine: &NatsEngine,
    position: LogPosition,
    keys: LogKeys,
) {
    let parts = SnapshotParts {
        folder: folder.root().to_owned(),
        keys: Arc::new(move || keys.clone()),
        limits: Default::default(),
    };
    let completing = async {
        let session = engine.state().borrow().session().map(|it| it.number);
        let session = session.ok_or_else(|| "the connection to NATS was lost".to_owned())?;
        store_snapshot(engine, session, store, &parts).await?;
        engine.trim_log(session, position.sequence).await.map_err(|it| it.to_string())
    };
    if let Err(reason) = completing.await {
        say_error(&format!(
            "The new log has begun, and has no snapshot yet, which this node makes when it runs: {reason}"
        ));
    }
}

/// Checks that no other node says that it has more of the configuration.
async fn must_be_newest(engine: &NatsEngine, name: &str, own: u64) -> anyhow::Result<()> {
    for member in members(engine).await {
        let theirs = member.node.load.configuration.unwrap_or_default();
        ensure!(
            theirs <= own || node_id(&member.node.name) == node_id(name),
            "the node \"{}\" has entry {theirs} of the configuration, and this one entry {own}: run this there. If that store is \
             lost, `--force` makes this one count",
            member.node.name
        );
    }
    Ok(())
}
