//! The identity of this node towards others, and whom it trusts: the certificates in the store, without those that were
//! revoked.

use std::collections::BTreeSet;
use std::fmt;
use std::future::pending;
use std::path::PathBuf;
use std::sync::Arc;

use domain::cluster::certificate::{NodeCertificate, SealedKeys, node_of};
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use media::spawn_blocking;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use storage::log::{LogKeys, seal_keys};
use storage::{Record, Store, Table, View};
use tracing::{error, info};

use super::authority::read_authority;
use super::file::NodeFile;
use super::join::{for_role, stored_keys};
use super::tls::{NodeIdentity, NodeTls, TrustedNodes, client_config};
use super::{NodeError, digest, revoked_serials};

/// The certificates, keys and data keys of this node.
pub struct NodeTrust {
    /// As it was read; `keys` may be newer.
    file: NodeFile,
    path: PathBuf,
    keys: Mutex<LogKeys>,
    store: Store,
    certificates: View<Table<NodeCertificate>>,
    built: Mutex<Option<Built>>,
}

/// The encryption, with the certificates that it was built from.
#[derive(Clone)]
struct Built {
    of: Arc<Table<NodeCertificate>>,
    server: NodeTls,
    client: Arc<ClientConfig>,
}

impl fmt::Debug for NodeTrust {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeTrust({:?})", self.file)
    }
}

impl NodeTrust {
    /// Uses the file of the node, which is at this path. Blocks.
    pub fn new(file: NodeFile, path: PathBuf, store: Store) -> Result<Self, NodeError> {
        let certificates = store.table()?;
        let keys = Mutex::new(file.data_keys.clone());
        let trust = Self { file, path, keys, store, certificates, built: Mutex::new(None) };
        trust.built()?;
        trust.take_rotated_keys()?;
        Ok(trust)
    }

    pub fn data_keys(&self) -> LogKeys {
        self.keys.lock().clone()
    }

    /// Takes the data keys that the store has for this node, if they are newer, into its file. Returns them. Blocks.
    fn take_rotated_keys(&self) -> Result<Option<LogKeys>, NodeError> {
        match stored_keys(&self.store, self.file.node, &self.file.sealing)? {
            Some(keys) => self.take_keys(keys),
            None => Ok(None),
        }
    }

    /// Takes data keys that another node has sealed for this one, if they are newer. Blocks.
    ///
    /// # Errors
    /// If they are not sealed for this node, or if the file cannot be written.
    pub fn take_sealed_keys(&self, sealed: &[u8]) -> Result<(), NodeError> {
        self.take_keys(self.file.sealing.open(sealed)?).map(drop)
    }

    /// Seals the data keys for another node. `None` if the cluster has no such node, or if this node lacks some of them.
    ///
    /// # Errors
    /// If they cannot be encrypted.
    pub fn keys_for(&self, node: NodeId) -> Result<Option<Vec<u8>>, NodeError> {
        let certificates = self.certificates.load();
        let certificate = certificates.iter().find(|it| it.node == node && it.revoked_at.is_none());
        let keys = self.data_keys();
        let (Some(certificate), true) = (certificate, keys.provider.is_some()) else { return Ok(None) };
        Ok(Some(seal_keys(&certificate.sealing_key, &for_role(&keys, certificate.role))?))
    }

    fn take_keys(&self, keys: LogKeys) -> Result<Option<LogKeys>, NodeError> {
        let present = self.keys.lock().cluster.generation();
        if keys.cluster.generation() <= present {
            return Ok(None);
        }
        let mut file = self.file.clone();
        file.data_keys = keys.clone();
        file.write(&self.path)?;
        *self.keys.lock() = keys.clone();
        info!(generation = keys.cluster.generation(), "the data keys of the cluster were rotated");
        Ok(Some(keys))
    }

    /// Follows rotations of the data keys until the store is closed.
    pub async fn follow_keys(self: Arc<Self>) {
        let mut changes = self.store.changes();
        loop {
            // First of all, because they may have come before the subscription.
            let trust = Arc::clone(&self);
            let taking = spawn_blocking(move || match trust.take_rotated_keys()? {
                Some(keys) => Ok(trust.store.set_log_keys(keys)?),
                None => Ok::<_, NodeError>(()),
            });
            if let Ok(Err(error)) = taking.await {
                error!("failed to take the new data keys of the cluster: {error}");
            }
            if !changes.next_in(SealedKeys::COLLECTION).await {
                return;
            }
        }
    }

    /// Returns the encryption of connections from others. Follows the certificates in the store.
    pub fn server(&self) -> Result<NodeTls, NodeError> {
        self.built().map(|it| it.server)
    }

    /// Returns the encryption of connections to others.
    pub fn client(&self) -> Result<Arc<ClientConfig>, NodeError> {
        self.built().map(|it| it.client)
    }

    /// Returns the node with this certificate; `None` if it is unknown or was revoked.
    pub fn node_of(&self, certificate: &CertificateDer<'_>) -> Option<(NodeId, NodeRole)> {
        let certificates = self.certificates.load();
        node_of(certificates.iter().map(|it| &**it), &digest(certificate))
    }

    /// Returns the file of this node, as it was read.
    pub fn file(&self) -> &NodeFile {
        &self.file
    }

    /// Returns the number of this node.
    pub fn node(&self) -> NodeId {
        self.file.node
    }

    /// Returns the role of a node; `None` if it is unknown or was removed.
    pub fn role_of(&self, node: NodeId) -> Option<NodeRole> {
        let certificates = self.certificates.load();
        let valid = certificates.iter().find(|it| it.node == node && it.revoked_at.is_none());
        valid.map(|it| it.role)
    }

    /// Returns the numbers of all nodes that have joined and were not removed.
    pub fn valid_nodes(&self) -> BTreeSet<u32> {
        let certificates = self.certificates.load();
        certificates.iter().filter(|it| it.revoked_at.is_none()).map(|it| it.node.0).collect()
    }

    /// Returns whether a node was removed from the cluster.
    pub fn is_removed(&self, node: NodeId) -> bool {
        let certificates = self.certificates.load();
        let mut of_node = certificates.iter().filter(|it| it.node == node).peekable();
        of_node.peek().is_some() && of_node.all(|it| it.revoked_at.is_some())
    }

    /// Waits until this node is removed from the cluster.
    pub async fn removed(&self) {
        let mut changes = self.store.changes();
        // First of all, because it may have happened before the subscription.
        while !self.is_removed(self.file.node) {
            if !changes.next_in(NodeCertificate::COLLECTION).await {
                return pending().await;
            }
        }
    }

    /// Returns the role of this node, as its token said.
    pub fn role(&self) -> NodeRole {
        self.file.role
    }

    fn trusted(&self, certificates: &[NodeCertificate]) -> Result<TrustedNodes, NodeError> {
        if self.file.role == NodeRole::Edge {
            let valid = certificates.iter().filter(|it| it.revoked_at.is_none());
            return Ok(TrustedNodes::Listed(Arc::new(valid.map(|it| it.fingerprint).collect())));
        }
        let authority = read_authority(&self.store)?;
        Ok(TrustedNodes::Except(authority.revocation_list(&revoked_serials(certificates))?))
    }

    fn built(&self) -> Result<Built, NodeError> {
        let certificates = self.certificates.load();
        let mut built = self.built.lock();
        if let Some(it) = &*built
            && Arc::ptr_eq(&it.of, &certificates)
        {
            return Ok(it.clone());
        }
        let listed: Vec<_> = certificates.iter().map(|it| NodeCertificate::clone(it)).collect();
        let identity = NodeIdentity {
            certificates: self.file.certificates(),
            key: self.file.private_key(),
            trusted: self.trusted(&listed)?,
        };
        let invalid = |error: rustls::Error| NodeError::Certificate {
            what: "use the certificate of this node",
            cause: error.to_string(),
        };
        let server = NodeTls::new(&identity).map_err(invalid)?;
        let client = Arc::new(client_config(&identity).map_err(invalid)?);
        let new = Built { of: certificates, server, client };
        *built = Some(new.clone());
        Ok(new)
    }
}
