//! The nodes of a cluster: how this one becomes a member ([`membership`]), the authority that issues their certificates,
//! how a node joins, and the encryption between them.
//!
//! A cluster begins with [`file::begin_cluster`]. A machine joins with a token: [`join::create_token`] makes it, the
//! machine sends [`join::JoinRequest`] over a connection of [`tls::join_client_config`], and [`join::admit`] answers
//! with a certificate and the data keys, sealed for this machine. All other connections between nodes need a certificate
//! on both sides ([`tls::NodeTls`]).

pub mod authority;
pub mod file;
pub mod join;
pub(crate) mod membership;
mod ring_port;
#[cfg(test)]
mod tests;
pub mod tls;

use std::path::PathBuf;

use domain::cluster::certificate::{ClusterAuthority, NodeCertificate};
use domain::cluster::record::NodeId;
use domain::cluster::token::TokenRefusal;
use sha2::{Digest, Sha256};
use storage::Store;

/// Why a node was not admitted, or a certificate not issued.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Refused(#[from] TokenRefusal),
    #[error("this gateway belongs to no cluster; begin one with `headwater cluster init`")]
    NoCluster,
    #[error("this gateway belongs to a cluster already")]
    IsCluster,
    #[error("there is no node {}", .0.0)]
    UnknownNode(NodeId),
    #[error("the request of the node is invalid")]
    InvalidRequest,
    /// Says what, without secrets.
    #[error("failed to {what}: {cause}")]
    Certificate { what: &'static str, cause: String },
    /// The file of the node.
    #[error("failed to {what} {}: {cause}", path.display())]
    File { what: &'static str, path: PathBuf, cause: String },
    #[error(transparent)]
    Store(#[from] storage::Error),
}

impl NodeError {
    fn certificate(what: &'static str) -> impl FnOnce(rcgen::Error) -> Self {
        move |cause| Self::Certificate { what, cause: cause.to_string() }
    }
}

/// Returns the SHA-256 of a certificate or a secret.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Returns the name in the certificate of a node.
pub fn node_name(node: NodeId) -> String {
    format!("node-{}.headwater.internal", node.0)
}

/// Reads the authority of the cluster.
fn stored_authority(store: &Store) -> Result<ClusterAuthority, NodeError> {
    store.collection::<ClusterAuthority>().get(1)?.ok_or(NodeError::NoCluster)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn of_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let is_valid = digits.len().is_multiple_of(2) && digits.iter().all(u8::is_ascii_hexdigit);
    is_valid.then(|| digits.chunks(2).map(byte).collect()).flatten()
}

/// Lists the serial numbers of all revoked certificates.
pub fn revoked_serials(certificates: &[NodeCertificate]) -> Vec<[u8; 16]> {
    certificates.iter().filter(|it| it.revoked_at.is_some()).map(|it| it.serial).collect()
}
