//! The identity of this node towards others, and whom it trusts: the certificates in the store, without those that were
//! revoked.

use std::fmt;
use std::sync::Arc;

use domain::cluster::certificate::{NodeCertificate, node_of};
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use parking_lot::Mutex;
use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use storage::log::LogKeys;
use storage::{Store, Table, View};

use super::authority::read_authority;
use super::file::NodeFile;
use super::tls::{NodeIdentity, NodeTls, client_config};
use super::{NodeError, digest, revoked_serials};

/// The certificates, keys and data keys of this node.
pub(crate) struct NodeTrust {
    file: NodeFile,
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
    /// Blocks.
    pub(crate) fn new(file: NodeFile, store: Store) -> Result<Self, NodeError> {
        let certificates = store.table()?;
        let trust = Self { file, store, certificates, built: Mutex::new(None) };
        trust.built().map(|_| trust)
    }

    pub(crate) fn data_keys(&self) -> &LogKeys {
        &self.file.data_keys
    }

    /// Returns the encryption of connections from others. Follows the certificates in the store.
    pub(crate) fn server(&self) -> Result<NodeTls, NodeError> {
        self.built().map(|it| it.server)
    }

    /// Returns the encryption of connections to others.
    pub(crate) fn client(&self) -> Result<Arc<ClientConfig>, NodeError> {
        self.built().map(|it| it.client)
    }

    /// Returns the node with this certificate; `None` if it is unknown or was revoked.
    pub(crate) fn node_of(&self, certificate: &CertificateDer<'_>) -> Option<(NodeId, NodeRole)> {
        let certificates = self.certificates.load();
        node_of(certificates.iter().map(|it| &**it), &digest(certificate))
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
            revoked: read_authority(&self.store)?.revocation_list(&revoked_serials(&listed))?,
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
