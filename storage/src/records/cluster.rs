//! The certificate authority of a cluster, the certificates of its nodes, join tickets, the files that nodes share, and the
//! version of what they write.

use domain::cluster::certificate::{ClusterAuthority, NodeCertificate, SealedKeys};
use domain::cluster::shared_file::SharedFile;
use domain::cluster::token::JoinTicket;
use domain::cluster::version::ClusterVersion;

use crate::record::{Keys, Record, Sharing};

impl Record for ClusterAuthority {
    const COLLECTION: &'static str = "cluster_authority";
    /// Any full node admits others.
    const SHARING: Sharing = Sharing::FullNodes;
    const SEALED: bool = true;

    /// The collection has one record.
    fn id(&self) -> u32 {
        1
    }
}

impl Record for NodeCertificate {
    const COLLECTION: &'static str = "node_certificates";
    /// Each node refuses those that were revoked.
    const SHARING: Sharing = Sharing::AllNodes;
    const GRANTS_ACCESS: bool = true;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("fingerprint", self.fingerprint);
        keys.plain("node", self.node.0.to_be_bytes());
    }
}

impl Record for JoinTicket {
    const COLLECTION: &'static str = "join_tickets";
    const SHARING: Sharing = Sharing::FullNodes;
    const SEALED: bool = true;
    const GRANTS_ACCESS: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

impl Record for SealedKeys {
    const COLLECTION: &'static str = "sealed_keys";
    /// Each node finds its own.
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.node.0
    }
}

impl Record for SharedFile {
    const COLLECTION: &'static str = "shared_files";
    /// The record has no content. A node fetches only what it may read.
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("path", self.path());
    }
}

impl Record for ClusterVersion {
    const COLLECTION: &'static str = "cluster_version";
    /// Each node has to read what is written.
    const SHARING: Sharing = Sharing::AllNodes;

    /// The collection has one record.
    fn id(&self) -> u32 {
        1
    }
}
