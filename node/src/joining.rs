//! How this machine becomes a node of a cluster: it is admitted with a token, and begins with a snapshot.
//!
//! The file of the node is written before the snapshot is fetched, because the token is used up then. After an interruption,
//! the next start fetches the snapshot.

use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use cluster::codec::{StoredRecord, decode, record_key};
use cluster::nats::NatsEngine;
use cluster::{Engine, EngineState, Key, NodeInfo, NodeRole, WatchEvent};
use config::{ClusterConfig, Config, DataFolder};
use domain::cluster::record::MemberState;
use domain::cluster::token::JoinToken;
use domain::cluster::version::{OWN_VERSIONS, unfit};
use http::{Request, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use media::spawn_blocking;
use rustls::ClientConfig;
use services::open_store::create_root;
use storage::log::restore_snapshot;
use storage::records::schema;
use tokio::io::AsyncWriteExt;
use tokio::time::{Instant, timeout, timeout_at};
use tracing::{info, warn};

use super::authority::{JOIN_NAME, NodeSecrets};
use super::client::{NodeConnection, connect};
use super::file::NodeFile;
use super::join::{JoinAnswer, JoinRequest};
use super::port_of;
use super::routes::{JOIN_PATH, KEYS_PATH, SNAPSHOT_PATH};
use super::time_limits::{JOIN_ANSWER_TIMEOUT, NATS_TIMEOUT, SNAPSHOT_PART_TIMEOUT};
use super::tls::{first_client_config, join_client_config};
use crate::tls::install_tls;

/// Maximum size of the answer to a machine that joins, in bytes.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// The snapshot while it is unpacked, in the data folder.
const UNPACKED: &str = "store.joining";

/// Why a machine did not join.
#[derive(Debug, thiserror::Error)]
#[error("failed to join the cluster: {0}")]
pub struct JoinError(String);

impl JoinError {
    fn new(what: impl std::fmt::Display) -> Self {
        Self(what.to_string())
    }
}

/// Makes this machine a node, if it is not one yet and there is a token, and fetches the records of a node without a store.
///
/// # Errors
/// If the cluster cannot be reached or does not accept the token, or if there is a store that belongs to no cluster.
pub async fn prepare(config: &Config, folder: &DataFolder, token: Option<&str>) -> Result<(), JoinError> {
    let token = token.map(str::parse::<JoinToken>).transpose().map_err(JoinError::new)?;
    let path = folder.node();
    if token.is_none() && !path.try_exists().unwrap_or_default() {
        // Also without the rights to the folder, which the store reports.
        return Ok(());
    }
    let read = spawn_blocking(move || NodeFile::read(&path)).await.map_err(JoinError::new)?;
    let file = read.map_err(JoinError::new)?;
    let has_store = folder.store().exists();
    let (file, token) = match (file, token) {
        (None, None) => return Ok(()),
        (Some(_), token) if has_store => {
            if token.is_some() {
                info!("this machine is a node of the cluster already; the join token is not used");
            }
            return Ok(());
        }
        (file, token) => (file, token),
    };
    if has_store {
        return Err(JoinError(format!(
            "{} has a store of its own, and a node begins with that of the cluster: use another folder (--data-dir), or \
             move the store away",
            folder.root().display()
        )));
    }
    if !config.cluster.is_enabled() {
        return Err(JoinError::new("set `servers` in the table [cluster] of the configuration first"));
    }
    create_root(folder).map_err(JoinError::new)?;
    let nodes = reachable_nodes(&config.cluster).await?;
    let file = match (file, token) {
        (Some(file), _) => file,
        (None, Some(token)) => {
            let file = ask_for_admission(&nodes, &token).await?;
            let (path, written) = (folder.node(), file.clone());
            let writing = spawn_blocking(move || written.write(&path)).await;
            writing.map_err(JoinError::new)?.map_err(JoinError::new)?;
            file
        }
        (None, None) => return Ok(()),
    };
    fetch_records(&nodes, &file, folder).await
}

/// A node that renews its membership, as far as NATS says.
pub(super) struct FoundNode {
    pub(super) name: String,
    pub(super) addresses: Vec<String>,
}

/// Lists the full nodes that are members, if this machine can read what they write.
async fn reachable_nodes(config: &ClusterConfig) -> Result<Vec<FoundNode>, JoinError> {
    install_tls();
    let options = config.nats().map_err(JoinError)?;
    let engine = NatsEngine::start(options);
    let mut state = engine.state();
    let until = Instant::now() + NATS_TIMEOUT;
    if timeout_at(until, state.wait_for(|it| it.session().is_some())).await.is_err() {
        return Err(JoinError(match &*engine.state().borrow() {
            EngineState::Disconnected { reason } => reason.clone(),
            EngineState::Connected(_) => "the connection to NATS was lost".to_owned(),
        }));
    }
    let mut events = engine.watch(Key::new("member"));
    let mut nodes: std::collections::BTreeMap<Key, NodeInfo> = std::collections::BTreeMap::new();
    let mut written = None;
    loop {
        match timeout_at(until, events.recv()).await {
            Ok(Some(WatchEvent::Record(record))) => {
                let key = record_key(&record.key);
                let decoded = key.zip(record.value).map(|(key, value)| decode(&record.key, key, &value));
                if let Some(Ok(StoredRecord::Member(member))) = &decoded {
                    written = written.max(member.node.written());
                }
                if let Some(Ok(StoredRecord::Member(member))) = decoded
                    && member.record.state == MemberState::Alive
                {
                    nodes.insert(record.key, member.node);
                } else {
                    nodes.remove(&record.key);
                }
            }
            Ok(Some(WatchEvent::Complete)) => break,
            Ok(Some(WatchEvent::Session(_))) => {}
            Ok(None) | Err(_) => return Err(JoinError::new("NATS does not answer")),
        }
    }
    if let Some(reason) = written.and_then(|it| unfit(OWN_VERSIONS, it)) {
        return Err(JoinError(reason));
    }
    let is_useful = |it: &NodeInfo| it.role == NodeRole::Full && it.certificate.is_some();
    let nodes: Vec<_> = nodes.into_values().filter(is_useful).collect();
    if nodes.is_empty() {
        return Err(JoinError::new(
            "no node of the cluster is running; start one, or begin a cluster with `headwater cluster init` there",
        ));
    }
    Ok(nodes.into_iter().map(|it| FoundNode { name: it.name, addresses: it.addresses }).collect())
}

/// Connects to a node, over the first of its addresses that works. The error has the reason of each.
async fn reach(node: &FoundNode, config: &Arc<ClientConfig>) -> Result<NodeConnection<Full<Bytes>>, String> {
    let mut reasons = Vec::new();
    for address in &node.addresses {
        let address = port_of(address);
        match connect(&address, JOIN_NAME, Arc::clone(config)).await {
            Ok(connection) => return Ok(connection),
            Err(error) => reasons.push(format!("{address}: {error}")),
        }
    }
    if reasons.is_empty() {
        reasons.push("it names no address (`cluster.addresses`)".to_owned());
    }
    Err(format!("the node \"{}\" cannot be reached: {}", node.name, reasons.join("; ")))
}

async fn ask(
    connection: &mut NodeConnection<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> Result<http::Response<Incoming>, String> {
    let answer = timeout(JOIN_ANSWER_TIMEOUT, connection.sender.send_request(request)).await;
    answer.map_err(|_| "it does not answer".to_owned())?.map_err(|it| it.to_string())
}

/// Reads the detail of a refusal.
async fn detail(response: http::Response<Incoming>) -> String {
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    let body = body.map(|it| it.to_bytes()).unwrap_or_default();
    let value: serde_json::Value = serde_json::from_slice(&body).unwrap_or_default();
    value["detail"].as_str().map_or_else(|| format!("it answers {status}"), str::to_owned)
}

/// Asks the nodes for admission, until the one that writes the configuration answers.
async fn ask_for_admission(nodes: &[FoundNode], token: &JoinToken) -> Result<NodeFile, JoinError> {
    let secrets = NodeSecrets::new().map_err(JoinError::new)?;
    let config = Arc::new(join_client_config(token.authority).map_err(JoinError::new)?);
    let body = serde_json::to_vec(&JoinRequest::new(token, &secrets)).map_err(JoinError::new)?;
    let mut reasons = Vec::new();
    for node in nodes {
        let mut connection = match reach(node, &config).await {
            Ok(it) => it,
            Err(reason) => {
                reasons.push(reason);
                continue;
            }
        };
        let request = Request::post(JOIN_PATH).body(Full::from(body.clone())).map_err(JoinError::new)?;
        match ask(&mut connection, request).await {
            Ok(response) if response.status() == StatusCode::OK => {
                let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
                let body = body.map_err(JoinError::new)?.to_bytes();
                let answer: JoinAnswer = serde_json::from_slice(&body).map_err(JoinError::new)?;
                info!(node = answer.node.0, by = node.name, "admitted to the cluster");
                return NodeFile::from_answer(&secrets, &answer).map_err(JoinError::new);
            }
            // Its answer about the token is that of all.
            Ok(response) if response.status() != StatusCode::SERVICE_UNAVAILABLE => {
                return Err(JoinError(detail(response).await));
            }
            Ok(response) => reasons.push(format!("the node \"{}\": {}", node.name, detail(response).await)),
            Err(reason) => reasons.push(format!("the node \"{}\": {reason}", node.name)),
        }
    }
    Err(JoinError(reasons.join("; ")))
}

/// Fetches a snapshot from one of the nodes, and makes it the store.
async fn fetch_records(nodes: &[FoundNode], file: &NodeFile, folder: &DataFolder) -> Result<(), JoinError> {
    let config = first_client_config(file.certificates(), file.private_key()).map_err(JoinError::new)?;
    let config = Arc::new(config);
    let mut reasons = Vec::new();
    for node in nodes {
        match fetch_from(node, &config, file, folder).await {
            Ok(()) => {
                info!(from = node.name, "this node has the configuration of the cluster");
                return Ok(());
            }
            Err(reason) => {
                warn!("failed to get the configuration: {reason}");
                reasons.push(reason);
            }
        }
    }
    Err(JoinError(reasons.join("; ")))
}

async fn fetch_from(
    node: &FoundNode,
    config: &Arc<ClientConfig>,
    file: &NodeFile,
    folder: &DataFolder,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("the node \"{}\": {error}", node.name);
    let archive = tempfile::NamedTempFile::new_in(folder.root()).map_err(|it| failed(&it))?;
    download_snapshot(node, config, archive.path()).await?;
    let (keys, folder) = (file.data_keys.clone(), folder.clone());
    let unpacking = spawn_blocking(move || unpack(archive.path(), &keys, &folder));
    unpacking.await.map_err(|it| failed(&it))?.map_err(|it| failed(&it))
}

/// Fetches the data keys from a node, sealed for this one. The error is for people.
pub(super) async fn fetch_keys(node: &FoundNode, config: &Arc<ClientConfig>) -> Result<Bytes, String> {
    let failed = |error: &dyn std::fmt::Display| format!("the node \"{}\": {error}", node.name);
    let mut connection = reach(node, config).await?;
    let request = Request::get(KEYS_PATH).body(Full::default()).map_err(|it| failed(&it))?;
    let response = ask(&mut connection, request).await.map_err(|it| failed(&it))?;
    if response.status() != StatusCode::OK {
        return Err(failed(&detail(response).await));
    }
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect();
    let body = timeout(JOIN_ANSWER_TIMEOUT, body).await.map_err(|_| failed(&"it sends nothing more"))?;
    body.map(|it| it.to_bytes()).map_err(|it| failed(&it))
}

/// Fetches a snapshot from a node into a file, which is replaced. The error is for people.
pub(super) async fn download_snapshot(
    node: &FoundNode,
    config: &Arc<ClientConfig>,
    path: &Path,
) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("the node \"{}\": {error}", node.name);
    let mut connection = reach(node, config).await?;
    let request = Request::get(SNAPSHOT_PATH).body(Full::default()).map_err(|it| failed(&it))?;
    let response = ask(&mut connection, request).await.map_err(|it| failed(&it))?;
    if response.status() != StatusCode::OK {
        return Err(failed(&detail(response).await));
    }
    let options = fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path);
    let mut target = tokio::fs::File::from_std(options.map_err(|it| failed(&it))?);
    let mut body = response.into_body();
    loop {
        let frame = timeout(SNAPSHOT_PART_TIMEOUT, body.frame())
            .await
            .map_err(|_| failed(&"it sends nothing more"))?;
        let Some(frame) = frame else { break };
        if let Ok(part) = frame.map_err(|it| failed(&it))?.into_data() {
            target.write_all(&part).await.map_err(|it| failed(&it))?;
        }
    }
    target.flush().await.map_err(|it| failed(&it))
}

/// Makes a snapshot the store. Blocks.
fn unpack(archive: &Path, keys: &storage::log::LogKeys, folder: &DataFolder) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| error.to_string();
    let unpacked = folder.root().join(UNPACKED);
    if unpacked.exists() {
        // Of an attempt that was interrupted.
        fs::remove_dir_all(&unpacked).map_err(|it| failed(&it))?;
    }
    let mut save = |_: &str, _: &str, _: &[u8]| Ok(());
    restore_snapshot(archive, keys, &unpacked, &folder.key(), &schema(), &mut save)
        .map_err(|it| failed(&it))?;
    fs::rename(&unpacked, folder.store()).map_err(|it| failed(&it))?;
    fs::File::open(folder.root()).and_then(|it| it.sync_all()).map_err(|it| failed(&it))
}
