//! The certificates of nodes, and the authority that issues them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::record::NodeId;
use super::token::NodeRole;
use crate::secret::Secret;

/// The certificate authority of a cluster.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterAuthority {
    /// Its own certificate, in DER.
    pub certificate: Vec<u8>,
    /// Its private key, in PKCS #8 and hexadecimal digits.
    pub key: Secret,
}

impl fmt::Debug for ClusterAuthority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClusterAuthority(…)")
    }
}

/// A certificate that was issued. One that is not listed is refused, even if the authority signed it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCertificate {
    pub id: u32,
    pub node: NodeId,
    pub role: NodeRole,
    /// SHA-256 of the certificate.
    pub fingerprint: [u8; 32],
    pub serial: [u8; 16],
    /// The X25519 key with which secrets are sealed for the node.
    pub sealing_key: [u8; 32],
    /// Milliseconds since 1970, like the other times.
    pub issued_at: i64,
    /// Since when it is refused.
    #[serde(default)]
    pub revoked_at: Option<i64>,
}

/// The data keys of the cluster, sealed for one node after a rotation. Only that node can open them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SealedKeys {
    pub node: NodeId,
    pub sealed: Vec<u8>,
}

/// Returns the node that a certificate with this fingerprint belongs to, unless it is unknown or revoked.
pub fn node_of<'a>(
    certificates: impl IntoIterator<Item = &'a NodeCertificate>,
    fingerprint: &[u8; 32],
) -> Option<(NodeId, NodeRole)> {
    let found = certificates.into_iter().find(|it| it.fingerprint == *fingerprint)?;
    found.revoked_at.is_none().then_some((found.node, found.role))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_listed_certificate_that_is_not_revoked_names_a_node() {
        let listed = |id: u32, revoked_at| NodeCertificate {
            id,
            node: NodeId(id),
            role: NodeRole::Full,
            fingerprint: [id as u8; 32],
            serial: [0; 16],
            sealing_key: [0; 32],
            issued_at: 0,
            revoked_at,
        };
        let all = [listed(1, None), listed(2, Some(5))];
        assert_eq!(node_of(&all, &[1; 32]), Some((NodeId(1), NodeRole::Full)));
        assert_eq!(node_of(&all, &[2; 32]), None);
        assert_eq!(node_of(&all, &[3; 32]), None);
    }
}
