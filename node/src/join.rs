//! How a machine joins a cluster.

use domain::cluster::certificate::{NodeCertificate, SealedKeys};
use domain::cluster::record::NodeId;
use domain::cluster::token::{JoinTicket, JoinToken, NodeRole};
use rustls::pki_types::CertificateDer;
use serde::{Deserialize, Serialize};
use storage::Store;
use storage::log::{LogKeys, SealingKey, seal_keys};

use super::authority::{Authority, NodeSecrets, add_node, revoke};
use super::file::NodeFile;
use super::{NodeError, digest, stored_authority};

/// Maximum size of a request, in bytes.
pub const REQUEST_BYTES_MAX: usize = 4 << 10;

/// The request of a joining machine. `Debug` omits the secret.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinRequest {
    ticket: u32,
    secret: [u8; 16],
    /// The Ed25519 key of its certificate.
    public_key: [u8; 32],
    /// The X25519 key with which the data keys are sealed.
    sealing_key: [u8; 32],
}

impl std::fmt::Debug for JoinRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JoinRequest").field("ticket", &self.ticket).finish_non_exhaustive()
    }
}

impl JoinRequest {
    pub fn new(token: &JoinToken, secrets: &NodeSecrets) -> Self {
        Self {
            ticket: token.ticket,
            secret: token.secret,
            public_key: *secrets.public_key(),
            sealing_key: secrets.sealing.public(),
        }
    }

    /// Parses the JSON of a request. Never panics, whatever the bytes are.
    pub fn parse(bytes: &[u8]) -> Result<Self, NodeError> {
        let parsed = serde_json::from_slice(bytes).ok().filter(|_| bytes.len() <= REQUEST_BYTES_MAX);
        parsed.ok_or(NodeError::InvalidRequest)
    }
}

/// The answer to a machine that was admitted.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinAnswer {
    pub node: NodeId,
    pub role: NodeRole,
    /// Its certificate and that of the authority, in DER.
    pub certificates: [Vec<u8>; 2],
    /// The data keys, sealed for it.
    sealed_keys: Vec<u8>,
}

impl JoinAnswer {
    /// Returns the certificate of the node and that of the authority.
    pub fn certificates(&self) -> [CertificateDer<'static>; 2] {
        self.certificates.clone().map(CertificateDer::from)
    }

    /// Opens the data keys.
    pub fn keys(&self, sealing: &SealingKey) -> Result<LogKeys, NodeError> {
        Ok(sealing.open(&self.sealed_keys)?)
    }
}

/// Makes a token with which one machine joins within an hour, and removes expired ones. Blocks.
///
/// # Errors
/// If the store belongs to no cluster.
pub fn create_token(store: &Store, role: NodeRole, now: i64) -> Result<JoinToken, NodeError> {
    let authority = digest(&stored_authority(store)?.certificate);
    let mut secret = [0; 16];
    getrandom::fill(&mut secret).map_err(|cause| NodeError::Certificate {
        what: "get random bytes from the system",
        cause: cause.to_string(),
    })?;
    store.write_blocking(move |write| {
        for old in write.all::<JoinTicket>()?.into_iter().filter(|it| it.has_expired(now)) {
            write.remove::<JoinTicket>(old.id)?;
        }
        let ticket = write.next_id::<JoinTicket>()?;
        let digest = digest(&secret);
        write.put(&JoinTicket { id: ticket, digest, role, created_at: now, used_by: None })?;
        Ok(JoinToken { ticket, authority, secret })
    })
}

/// Admits a machine: redeems its token, and stores and returns its certificate, all in one commit. Blocks.
///
/// # Errors
/// If the token is unknown, was used or has expired, or if this node is not a full node.
pub fn admit(
    store: &Store,
    keys: &LogKeys,
    request: &JoinRequest,
    now: i64,
) -> Result<JoinAnswer, NodeError> {
    let authority = Authority::from_stored(&stored_authority(store)?)?;
    let root = authority.certificate().to_vec();
    let (request, keys) = (request.clone(), keys.clone());
    store.write_blocking(move |write| {
        let unknown = domain::cluster::token::TokenRefusal::Unknown;
        let mut ticket = write.get::<JoinTicket>(request.ticket)?.ok_or(unknown)?;
        let id = write.next_id::<NodeCertificate>()?;
        let role = ticket.redeem(&digest(&request.secret), NodeId(id), now)?;
        write.put(&ticket)?;
        let (public_key, sealing_key) = (&request.public_key, &request.sealing_key);
        let (node, certificate) = add_node(write, &authority, id, role, public_key, sealing_key, now)?;
        let sealed_keys = seal_keys(sealing_key, &for_role(&keys, role))?;
        Ok(JoinAnswer { node, role, certificates: [certificate.to_vec(), root], sealed_keys })
    })
}

pub(super) fn for_role(keys: &LogKeys, role: NodeRole) -> LogKeys {
    match role {
        NodeRole::Full => keys.clone(),
        NodeRole::Edge => keys.for_edge(),
    }
}

/// Removes a node from the cluster: revokes its certificates, and gives the others new data keys. To be called on the node that
/// writes the configuration, with the file of that node. Blocks.
///
/// # Errors
/// If the cluster has no such node, or if it is this one.
pub fn remove_node(store: &Store, file: &NodeFile, node: NodeId, now: i64) -> Result<(), NodeError> {
    if file.node == node {
        return Err(NodeError::RemovesWriter);
    }
    revoke(store, node, now)?;
    // The store has the newest ones, once they were rotated.
    let stored = stored_keys(store, file.node, &file.sealing)?;
    rotate_keys(store, &stored.unwrap_or_else(|| file.data_keys.clone())).map(drop)
}

/// Adds a generation to both data keys, and stores them sealed for each node that was not revoked. Each node opens its own
/// with [`stored_keys`]; the caller uses the new keys once all nodes have them. Blocks.
pub fn rotate_keys(store: &Store, keys: &LogKeys) -> Result<LogKeys, NodeError> {
    let provider = keys.provider.as_ref().ok_or(NodeError::NoCluster)?;
    let rotated = LogKeys { cluster: keys.cluster.rotated()?, provider: Some(provider.rotated()?) };
    let new = rotated.clone();
    store.write_blocking(move |write| {
        for certificate in write.all::<NodeCertificate>()? {
            let id = certificate.node.0;
            match certificate.revoked_at {
                Some(_) => drop(write.remove::<SealedKeys>(id)?),
                None => {
                    let sealed = seal_keys(&certificate.sealing_key, &for_role(&new, certificate.role))?;
                    write.put(&SealedKeys { node: certificate.node, sealed })?;
                }
            }
        }
        Ok::<_, NodeError>(())
    })?;
    Ok(rotated)
}

/// Opens the data keys that are stored for a node, if there are any.
pub fn stored_keys(store: &Store, node: NodeId, sealing: &SealingKey) -> Result<Option<LogKeys>, NodeError> {
    let stored = store.collection::<SealedKeys>().get(node.0)?;
    Ok(stored.map(|it| sealing.open(&it.sealed)).transpose()?)
}
