//! The file of a node, outside of its store: its keys, its certificate, and the data keys.
//!
//! The file is one JSON object, readable for its owner only, as the key file of the store is.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use domain::secret::Secret;
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use storage::Store;
use storage::log::{CommitLog, LogKeys, SealingKey};
use uuid::Uuid;

use super::NodeError;
use super::authority::{NodeSecrets, add_first_node};
use super::join::JoinAnswer;

/// Maximum size of the file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// A node of a cluster, as it is stored. `Debug` omits the keys.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NodeFile {
    /// Version of this form.
    format: u32,
    pub node: NodeId,
    pub role: NodeRole,
    /// The private Ed25519 key in PKCS #8, in hexadecimal digits, like the certificates.
    key: Secret,
    certificate: String,
    authority: String,
    pub sealing: SealingKey,
    pub data_keys: LogKeys,
}

impl std::fmt::Debug for NodeFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("NodeFile").field("node", &self.node).field("role", &self.role).finish_non_exhaustive()
    }
}

const FORMAT: u32 = 1;

impl NodeFile {
    fn new(
        node: NodeId,
        role: NodeRole,
        secrets: &NodeSecrets,
        certificates: [&[u8]; 2],
        data_keys: LogKeys,
    ) -> Self {
        Self {
            format: FORMAT,
            node,
            role,
            key: Secret::new(HEXLOWER.encode(secrets.private_key().secret_pkcs8_der())),
            certificate: HEXLOWER.encode(certificates[0]),
            authority: HEXLOWER.encode(certificates[1]),
            sealing: secrets.sealing.clone(),
            data_keys,
        }
    }

    /// Makes the file of a machine that was admitted.
    ///
    /// # Errors
    /// If the data keys in the answer are not sealed for this machine.
    pub fn from_answer(secrets: &NodeSecrets, answer: &JoinAnswer) -> Result<Self, NodeError> {
        let [certificate, authority] = &answer.certificates;
        let keys = answer.keys(&secrets.sealing)?;
        Ok(Self::new(answer.node, answer.role, secrets, [certificate, authority], keys))
    }

    /// Reads the file. `None` if it does not exist.
    ///
    /// # Errors
    /// If it cannot be read, or is not such a file. The error does not contain its text.
    pub fn read(path: &Path) -> Result<Option<Self>, NodeError> {
        let failed = |cause: String| NodeError::File { what: "read", path: path.to_owned(), cause };
        match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
            Ok(metadata) if metadata.len() > FILE_BYTES_MAX => {
                return Err(failed("it is too large".to_owned()));
            }
            Ok(_) => {}
        }
        let text = fs::read(path).map_err(|error| failed(error.to_string()))?;
        let invalid = || failed("it is not the file of a node".to_owned());
        let file: Self = serde_json::from_slice(&text).map_err(|_| invalid())?;
        let is_valid = file.format == FORMAT
            && [file.key.expose(), &file.certificate, &file.authority].iter().all(|it| bytes(it).is_some());
        if is_valid { Ok(Some(file)) } else { Err(invalid()) }
    }

    /// Writes the file; returns once it is durable. An earlier one is replaced in one step.
    pub fn write(&self, path: &Path) -> Result<(), NodeError> {
        let draft = path.with_extension("new");
        let write = || {
            match fs::remove_file(&draft) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
            file.write_all(&serde_json::to_vec_pretty(self)?)?;
            file.sync_all()?;
            fs::rename(&draft, path)?;
            File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
        };
        let failed = |error: io::Error| NodeError::File {
            what: "write",
            path: path.to_owned(),
            cause: error.to_string(),
        };
        write().map_err(failed)
    }

    /// Returns the certificate of this node, and that of the authority.
    pub fn certificates(&self) -> [CertificateDer<'static>; 2] {
        // Digits were checked when the file was read or made.
        [&self.certificate, &self.authority].map(|it| CertificateDer::from(bytes(it).unwrap_or_default()))
    }

    /// Returns the private key of the certificate, in PKCS #8.
    pub fn private_key(&self) -> rustls::pki_types::PrivatePkcs8KeyDer<'static> {
        bytes(self.key.expose()).unwrap_or_default().into()
    }
}

/// Makes this machine the first node of a cluster: its store begins the log, whose first entry is a new authority and the
/// certificate of the node, and the file of the node is written. The records of the store stay as they are. Blocks.
///
/// # Errors
/// If the machine is a node already, or if the log is that of another cluster. After an error, the store belongs to no log.
/// After a crash in the middle, this can be repeated.
pub fn begin_cluster(
    store: &Store,
    path: &Path,
    log: Arc<dyn CommitLog>,
    now: i64,
) -> Result<NodeFile, NodeError> {
    if NodeFile::read(path)?.is_some() {
        return Err(NodeError::IsCluster);
    }
    let last = log.last().map_err(storage::Error::LogUnreachable)?;
    // What an attempt of this store has left that ended before the file was written.
    let own = store.log_status().borrow().as_ref().map(|it| it.position.sequence);
    if last > 0 && own != Some(last) {
        return Err(NodeError::OtherCluster(last));
    }
    let begin = || {
        let (secrets, data_keys) = (NodeSecrets::new()?, LogKeys::new()?);
        store.begin_log(Uuid::new_v4(), last)?;
        store.attach_log(log, data_keys.clone())?;
        store.become_writer()?;
        let (node, certificate, authority) = add_first_node(store, &secrets, now)?;
        let file = NodeFile::new(node, NodeRole::Full, &secrets, [&certificate, &authority], data_keys);
        file.write(path).map(|()| file)
    };
    begin().inspect_err(|_| {
        // A store that cannot be written any more reports that itself.
        let _ = store.leave_log();
    })
}

/// Reads hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    HEXLOWER_PERMISSIVE.decode(digits.as_bytes()).ok()
}
