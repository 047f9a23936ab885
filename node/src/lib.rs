//! The nodes of a cluster: how this one becomes a member ([`membership`]), the authority that issues their certificates,
//! how a node joins, and the encryption between them.
//!
//! A cluster begins with [`file::begin_cluster`]. A machine joins with a token: [`join::create_token`] makes it, the
//! machine ([`joining`]) sends [`join::JoinRequest`] over a connection of [`tls::join_client_config`], and [`join::admit`]
//! answers with a certificate and the data keys, sealed for this machine. All other connections between nodes need a
//! certificate on both sides ([`tls::NodeTls`]).
//!
//! From then on the store of a node follows the log. Others connect to its [`port`]; writes of its clients go to the node
//! that writes the configuration ([`forward`]), and uploaded files and guides come from the object store ([`files`]). A node
//! whose store the log no longer continues begins anew with a snapshot ([`rejoin`]); a damaged log is replaced from the
//! store of one node ([`reseed`]). Which version of their data the nodes write is decided in [`versions`]. What others play and what they are to do is asked over their ports ([`peers`]).

mod answer;
pub mod archives;
pub mod authority;
mod client;
pub mod context;
mod control;
pub mod drain;
mod edge;
mod events;
pub mod fetch;
pub mod file;
pub mod files;
pub mod forward;
#[cfg(test)]
mod golden_tests;
mod guard;
pub mod join;
pub mod joining;
pub mod local_gateway;
pub mod membership;
mod operator;
pub mod overview;
pub mod own_node;
pub mod peers;
pub mod play;
pub mod playing_control;
pub mod port;
pub mod reach;
pub mod recordings;
mod rejoin;
pub mod reseed;
#[cfg(test)]
mod reseed_tests;
mod rings;
pub mod routes;
pub mod status;
#[cfg(test)]
mod tests;
mod time_limits;
pub mod timelines;
pub mod tls;
pub mod trust;
pub mod uploads;
pub mod versions;
pub mod work;

use std::net::IpAddr;
use std::path::PathBuf;

use config::NODE_PORT;
use domain::cluster::certificate::{ClusterAuthority, NodeCertificate};
use domain::cluster::record::NodeId;
use domain::cluster::token::TokenRefusal;
use domain::cluster::version::RaiseRefusal;
use sha2::{Digest, Sha256};
use storage::Store;

pub use self::guard::tell_end;

/// Why a node was not admitted, or a certificate not issued.
#[derive(Debug, thiserror::Error)]
pub enum NodeError {
    #[error(transparent)]
    Refused(#[from] TokenRefusal),
    #[error("this gateway belongs to no cluster; begin one with `headwater cluster init`")]
    NoCluster,
    #[error("this gateway belongs to a cluster already")]
    IsCluster,
    /// The log has so many entries.
    #[error(
        "the log in NATS has {0} entries already, so another cluster uses it: join that cluster with `headwater cluster \
         token` there and `headwater serve --join` here, or give this cluster a NATS account of its own; if no gateway \
         uses that cluster any more, remove it with `nats stream rm HW_LOG`"
    )]
    OtherCluster(u64),
    #[error("there is no node {}", .0.0)]
    UnknownNode(NodeId),
    #[error(
        "this node writes the configuration, so it cannot be removed: drain it first, and another one writes"
    )]
    RemovesWriter,
    #[error("the request of the node is invalid")]
    InvalidRequest,
    /// Says which version is written, and what this gateway reads.
    #[error("{0}")]
    Version(String),
    #[error(transparent)]
    Raise(#[from] RaiseRefusal),
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

/// Returns the address of the node port for the address of a node, which has a port only if it is not the usual one.
fn port_of(address: &str) -> String {
    if let Ok(ip) = address.parse::<IpAddr>() {
        return std::net::SocketAddr::new(ip, NODE_PORT).to_string();
    }
    let has_port = address.rsplit_once(':').is_some_and(|it| it.1.parse::<u16>().is_ok());
    if has_port { address.to_owned() } else { format!("{address}:{NODE_PORT}") }
}

/// Reads the authority of the cluster.
fn stored_authority(store: &Store) -> Result<ClusterAuthority, NodeError> {
    store.collection::<ClusterAuthority>().get(1)?.ok_or(NodeError::NoCluster)
}

/// Lists the serial numbers of all revoked certificates.
pub fn revoked_serials(certificates: &[NodeCertificate]) -> Vec<[u8; 16]> {
    certificates.iter().filter(|it| it.revoked_at.is_some()).map(|it| it.serial).collect()
}
