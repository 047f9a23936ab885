//! The control socket: a Unix socket in the data folder. A client sends a proof that it can read the key file, and one
//! request as a line of JSON, and gets one reply.
//!
//! The proof is for the programs of stream profiles. They run as the same user and cannot read the data folder, but
//! before Linux 7.1 the kernel cannot keep them from connecting to a socket in it.

use std::fs::{self, File, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use actors::NodeDrain;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use config::DataFolder;
use hmac::{Hmac, KeyInit, Mac};
use media::spawn_blocking;
use node::forward::Forwarder;
use rustix::process::geteuid;
use sha2::{Digest, Sha256};
use storage::Models;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader as AsyncBufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::{sleep, timeout};
use tokio_util::task::AbortOnDropHandle;
use tracing::warn;

use super::request::{ControlReply, ControlRequest, execute};
use crate::handover::{RestartRequest, RestartRequests};

/// Maximum length of a request, in bytes.
const REQUEST_BYTES_MAX: u64 = 64 << 10;
/// Maximum length of a reply, in bytes. The list of 100,000 users is shorter.
const REPLY_BYTES_MAX: u64 = 32 << 20;
/// Maximum time for a request to arrive, and for a reply to be taken. Requests are served one by one, so a client that
/// hangs delays others for this long.
const TRANSFER_TIMEOUT: Duration = Duration::from_millis(if cfg!(test) { 2_000 } else { 10_000 });
/// Maximum time that a command waits for the gateway.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for an export, which may write a hundred thousand files to a slow network disk.
const EXPORT_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Pause after a failed accept, which would otherwise repeat at once, e.g. without free file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A reply, or the reason of a refusal.
type Outcome = Result<ControlReply, String>;

/// The parts of a node of a cluster that the operator uses.
pub(crate) struct ControlledNode {
    pub(crate) drain: Arc<NodeDrain>,
    pub(crate) forwarder: Arc<Forwarder>,
}

/// The listening side. Dropping it closes and removes the socket.
#[derive(Debug)]
pub(crate) struct ControlSocket {
    path: PathBuf,
    _task: AbortOnDropHandle<()>,
}

impl ControlSocket {
    /// Opens the socket of a data folder, and executes requests on its records. Replaces the socket of a gateway that was
    /// killed: the caller has the store open, so no other gateway uses the folder.
    pub(crate) fn open(
        folder: &DataFolder,
        models: Models,
        restarts: RestartRequests,
        node: Option<ControlledNode>,
    ) -> io::Result<Self> {
        let path = folder.control_socket();
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let proof = proof(folder)?;
        let short = ShortPath::new(&path)?;
        let listener = UnixListener::bind(&short.path)?;
        // A client of another user that connects before this is refused by its credentials.
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        let task = actors::spawn(serve(listener, folder.clone(), models, (restarts, node), proof));
        Ok(Self { path, _task: AbortOnDropHandle::new(task) })
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // If it stays, the next gateway replaces it.
        let _ = fs::remove_file(&self.path);
    }
}

async fn serve(
    listener: UnixListener,
    folder: DataFolder,
    models: Models,
    (restarts, node): (RestartRequests, Option<ControlledNode>),
    proof: String,
) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) if is_permitted(&stream) => {
                if let Err(error) = answer(stream, &folder, &models, (&restarts, node.as_ref()), &proof).await
                {
                    warn!("failed to serve the control socket: {error}");
                }
            }
            Ok(_) => warn!("refused a connection of another user to the control socket"),
            Err(error) => {
                warn!("failed to accept a connection to the control socket: {error}");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Returns whether the client runs as the gateway's user or as root.
fn is_permitted(stream: &UnixStream) -> bool {
    stream.peer_cred().is_ok_and(|it| it.uid() == 0 || it.uid() == geteuid().as_raw())
}

async fn answer(
    stream: UnixStream,
    folder: &DataFolder,
    models: &Models,
    (restarts, node): (&RestartRequests, Option<&ControlledNode>),
    proof: &str,
) -> io::Result<()> {
    let (reader, mut writer) = stream.into_split();
    let mut line = String::new();
    let mut reader = AsyncBufReader::new(reader.take(REQUEST_BYTES_MAX));
    if timeout(TRANSFER_TIMEOUT, reader.read_line(&mut line)).await?? == 0 {
        // Somebody wanted to know whether a gateway listens: see [`is_open`].
        return Ok(());
    }
    // Comparing hashes takes the same time however much of the proof is right.
    if Sha256::digest(line.trim_end()) != Sha256::digest(proof) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the client cannot read the key file"));
    }
    line.clear();
    timeout(TRANSFER_TIMEOUT, reader.read_line(&mut line)).await??;
    // Kept until the reply is written: the gateway waits for that before it stops.
    let mut restarting = None;
    let outcome: Outcome = match serde_json::from_str::<ControlRequest>(&line) {
        Ok(ControlRequest::Restart) => {
            let (request, reply) = RestartRequest::new();
            // If nobody takes it, the outcome says so.
            let _ = restarts.send(request).await;
            restarting.insert(reply).outcome().await.map(|()| ControlReply::Done)
        }
        Ok(ControlRequest::Drain { is_draining }) => match node {
            Some(node) => {
                node.drain.set(is_draining);
                Ok(ControlReply::Done)
            }
            None => Err("this gateway belongs to no cluster".to_owned()),
        },
        Ok(request) => {
            let passed = match node.filter(|_| request.is_shared()) {
                Some(node) => pass(node, &request).await,
                None => None,
            };
            match passed {
                Some(outcome) => outcome,
                None => execute_here(folder.clone(), models.clone(), request).await,
            }
        }
        // The cause could quote the password.
        Err(_) => Err("the running gateway does not know this request; is it of another version?".to_owned()),
    };
    let mut reply = serde_json::to_vec(&outcome)?;
    reply.push(b'\n');
    timeout(TRANSFER_TIMEOUT, writer.write_all(&reply)).await?
}

/// Passes a request to the node that writes what all nodes share. `None`: this is the one, so it executes the request itself.
async fn pass(node: &ControlledNode, request: &ControlRequest) -> Option<Outcome> {
    let Ok(request) = serde_json::to_value(request) else {
        return Some(Err("the request has no JSON form".to_owned()));
    };
    let outcome = node.forwarder.pass(&request).await?;
    let unreadable =
        |error| format!("failed to read the reply of the node that writes the configuration: {error}");
    Some(outcome.and_then(|it| serde_json::from_value(it).map_err(unreadable)))
}

/// Executes a request on the store of the running gateway.
pub(crate) async fn execute_here(folder: DataFolder, models: Models, request: ControlRequest) -> Outcome {
    let executed = spawn_blocking(move || execute(&folder, &models.store, Some(&models), request)).await;
    executed.map_err(|it| it.to_string())?.map_err(|error| format!("{error:#}"))
}

/// Returns whether a gateway listens on the socket of this folder.
pub(super) fn is_open(folder: &DataFolder) -> bool {
    ShortPath::new(&folder.control_socket()).is_ok_and(|it| BlockingStream::connect(&it.path).is_ok())
}

/// Sends a request to the gateway that uses this folder. Blocks.
pub(super) fn ask(folder: &DataFolder, request: &ControlRequest) -> io::Result<Outcome> {
    let short = ShortPath::new(&folder.control_socket())?;
    let mut stream = BlockingStream::connect(&short.path)?;
    let is_export = matches!(request, ControlRequest::ExportStrm { .. });
    stream.set_read_timeout(Some(if is_export { EXPORT_TIMEOUT } else { REPLY_TIMEOUT }))?;
    stream.set_write_timeout(Some(TRANSFER_TIMEOUT))?;
    let proof = proof(folder).map_err(io::Error::other)?;
    let request = serde_json::to_string(request)?;
    stream.write_all(format!("{proof}\n{request}\n").as_bytes())?;
    let mut reply = String::new();
    BufReader::new(stream.take(REPLY_BYTES_MAX)).read_line(&mut reply)?;
    Ok(serde_json::from_str(&reply)?)
}

/// Returns a text that only a process that can read the key file knows, and that does not reveal the key.
fn proof(folder: &DataFolder) -> io::Result<String> {
    let mut mac = Hmac::<Sha256>::new_from_slice(&fs::read(folder.key())?).map_err(io::Error::other)?;
    mac.update(b"headwater control socket");
    Ok(STANDARD.encode(mac.finalize().into_bytes()))
}

/// A path of a socket that the system accepts: it limits the path to 107 bytes, which a data folder may exceed.
struct ShortPath {
    path: PathBuf,
    /// The path goes through this open folder.
    _folder: File,
}

impl ShortPath {
    fn new(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let folder = File::open(folder)?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd())).join(name);
        Ok(Self { path, _folder: folder })
    }
}

#[cfg(test)]
mod tests {
    use services::open_store::open_store;
    use tempfile::TempDir;
    use tokio::time::Instant;

    use super::*;
    use crate::handover;

    struct Fixture {
        folder: TempDir,
        _socket: ControlSocket,
    }

    impl Fixture {
        async fn start() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let data = DataFolder::new(folder.path());
            let opening = data.clone();
            let models =
                spawn_blocking(move || Models::new(open_store(&opening).unwrap()).unwrap()).await.unwrap();
            Self {
                folder,
                _socket: ControlSocket::open(&data, models, handover::requests().0, None).unwrap(),
            }
        }

        /// Sends the proof and bytes, and returns the reply.
        async fn say(&self, bytes: &[u8]) -> String {
            let proof = proof(&DataFolder::new(self.folder.path())).unwrap();
            self.say_without_proof(&[proof.as_bytes(), b"\n", bytes].concat()).await
        }

        async fn say_without_proof(&self, bytes: &[u8]) -> String {
            let path = self.folder.path().join("control.sock");
            let mut stream = UnixStream::connect(path).await.unwrap();
            // The gateway may refuse a request before it was read completely.
            let _ = stream.write_all(bytes).await;
            let mut reply = String::new();
            let _ = stream.read_to_string(&mut reply).await;
            reply
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn an_unknown_or_endless_request_is_refused_and_the_next_one_is_served() {
        let fixture = Fixture::start().await;
        let endless = vec![b'x'; 2 * REQUEST_BYTES_MAX as usize];
        for odd in [&b"{\"request\":\"shut_down\"}\n"[..], b"\n", b"{\"request\":\"add_user\"}\n", &endless] {
            let reply = fixture.say(odd).await;
            assert!(reply.contains("another version") || (odd == endless && reply.is_empty()), "{reply}");
        }
        assert_eq!(
            fixture.say(b"{\"request\":\"list_users\"}\n").await,
            "{\"Ok\":{\"reply\":\"users\",\"users\":[]}}\n"
        );
    }

    // Holds T-login.2 and T-prog.1: programs of stream profiles run as the same user, and cannot read the key.
    #[tokio::test(flavor = "multi_thread")]
    async fn a_client_that_cannot_read_the_key_is_refused() {
        let fixture = Fixture::start().await;
        let list = "{\"request\":\"list_users\"}\n";
        for wrong in [list.to_owned(), format!("\n{list}"), format!("AAAA\n{list}")] {
            assert_eq!(fixture.say_without_proof(wrong.as_bytes()).await, "", "{wrong}");
        }
        assert!(fixture.say(list.as_bytes()).await.contains("users"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn a_silent_client_delays_others_for_a_limited_time() {
        let fixture = Fixture::start().await;
        let begun = Instant::now();
        let _silent = UnixStream::connect(fixture.folder.path().join("control.sock")).await.unwrap();
        assert!(fixture.say(b"{\"request\":\"list_users\"}\n").await.contains("users"));
        assert!(begun.elapsed() >= TRANSFER_TIMEOUT);
    }
}
