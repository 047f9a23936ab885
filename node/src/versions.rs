//! Which version of their data the nodes write: checked before this one takes part, and raised by an operator.

use std::collections::BTreeSet;

use actors::{Cluster, ClusterView, NodeState};
use cluster::{NodeInfo, written_version};
use domain::cluster::certificate::NodeCertificate;
use domain::cluster::version::{
    ClusterVersion, FIRST_VERSION, MemberVersions, OWN_VERSIONS, SERVICE_KEYS_VERSION, VersionRange,
    raised_version, unfit,
};
use serde::{Deserialize, Serialize};
use services::written_version::CLUSTER_VERSION_ID;
use storage::records::separate_service_keys;
use storage::{Store, Table, View, Write};

use super::NodeError;

/// The version that the nodes write, as the configuration of this one says.
#[derive(Clone)]
pub struct WrittenVersion(View<Table<ClusterVersion>>);

impl WrittenVersion {
    /// Follows a store. Blocks.
    ///
    /// # Errors
    /// If this version of the gateway cannot read what the nodes of the store write.
    pub fn read(store: &Store) -> Result<Self, NodeError> {
        let written = Self(store.table()?);
        match unfit(OWN_VERSIONS, written.get()) {
            Some(reason) => Err(NodeError::Version(reason)),
            None => Ok(written),
        }
    }

    pub fn get(&self) -> u32 {
        self.0.load().get(CLUSTER_VERSION_ID).map_or(FIRST_VERSION, |it| it.version)
    }
}

/// Lets a new cluster begin with the newest version.
pub(super) fn begin(write: &mut Write<'_>) -> storage::Result<()> {
    write.put(&ClusterVersion { version: OWN_VERSIONS.newest })
}

/// Returns what a node says about the versions that it reads; `None` if it has not joined.
pub fn member(node: &NodeInfo, is_alive: bool) -> Option<MemberVersions> {
    let certificate = node.certificate?;
    Some(MemberVersions { name: node.name.clone(), certificate, versions: node.versions, is_alive })
}

/// Lists what the nodes say that this one knows.
pub fn members(view: &ClusterView) -> Vec<MemberVersions> {
    view.nodes.iter().filter_map(|it| member(&it.info, it.state == NodeState::Alive)).collect()
}

/// Returns the number of a node that is named by it: one that has joined and of which there is no record.
pub fn number_in(name: &str) -> Option<u32> {
    name.strip_prefix('#')?.parse().ok()
}

/// Returns those nodes that count, of which these numbers are in valid certificates. What a node without a record reads is not
/// known, so it counts as one that announces nothing.
fn counted(mut members: Vec<MemberVersions>, valid: &BTreeSet<u32>) -> Vec<MemberVersions> {
    members.retain(|it| valid.contains(&it.certificate));
    let seen: BTreeSet<u32> = members.iter().map(|it| it.certificate).collect();
    members.extend(valid.difference(&seen).map(|number| MemberVersions {
        name: format!("#{number}"),
        certificate: *number,
        versions: VersionRange::default(),
        is_alive: false,
    }));
    members
}

/// Returns the version to which [`raise`] would raise the one that the nodes write; `None` if it would not. The numbers are
/// those in valid certificates.
pub fn finalizable(view: &ClusterView, valid: &BTreeSet<u32>) -> Option<u32> {
    let written = written_version(view.nodes.iter().map(|it| &it.info))?;
    let raised = raised_version(written, &counted(members(view), valid), false);
    raised.ok().filter(|it| *it > written)
}

/// The version before and after it was raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Raised {
    pub from: u32,
    pub to: u32,
}

/// Raises the version that the nodes write to the highest that all of them read. Nodes that were removed do not count, nor
/// with `is_forced` those that do not run. One of which there is no record counts, under its number.
///
/// # Errors
/// If the store belongs to no cluster, or if nodes are too old.
pub fn raise(
    write: &mut Write<'_>,
    members: Vec<MemberVersions>,
    is_forced: bool,
) -> Result<Raised, NodeError> {
    let certificates = write.all::<NodeCertificate>()?;
    if certificates.is_empty() {
        return Err(NodeError::NoCluster);
    }
    let valid = certificates.iter().filter(|it| it.revoked_at.is_none()).map(|it| it.node.0).collect();
    let members = counted(members, &valid);
    let from = write.get::<ClusterVersion>(CLUSTER_VERSION_ID)?.map_or(FIRST_VERSION, |it| it.version);
    let to = raised_version(from, &members, is_forced)?;
    if to > from {
        write.put(&ClusterVersion { version: to })?;
    }
    if to >= SERVICE_KEYS_VERSION {
        separate_service_keys(write)?;
    }
    Ok(Raised { from, to })
}

/// Waits until this node cannot read what the others write. Returns why.
pub async fn until_unfit(cluster: &Cluster) -> String {
    match cluster.changes().wait_for(|it| it.is_unfit).await {
        Ok(view) => view.problem.clone().unwrap_or_default(),
        // The gateway ends.
        Err(_) => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use actors::NodeView;
    use cluster::NodeLoad;
    use domain::cluster::record::NodeId;
    use domain::cluster::token::NodeRole;
    use domain::cluster::version::PLUGIN_VALUES_VERSION;
    use domain::core_settings::COMPLETION_SETTINGS;
    use domain::service_key::ServiceKey;
    use domain::setting::CoreSetting;
    use serde_json::json;
    use services::written_version::may_have;
    use storage::records::schema;
    use uuid::Uuid;

    use super::*;

    fn certificate(id: u32, revoked_at: Option<i64>) -> NodeCertificate {
        NodeCertificate {
            id,
            node: NodeId(id),
            role: NodeRole::Full,
            fingerprint: [id as u8; 32],
            serial: [0; 16],
            sealing_key: [0; 32],
            issued_at: 0,
            revoked_at,
        }
    }

    /// A node that runs, and one that does not and announces nothing.
    fn members() -> Vec<MemberVersions> {
        let node = |name: &str, certificate, versions, is_alive| {
            let node = NodeInfo { name: name.to_owned(), certificate, versions, ..NodeInfo::default() };
            member(&node, is_alive)
        };
        let all = [
            node("attic", Some(1), OWN_VERSIONS, true),
            node("barn", Some(2), VersionRange::default(), false),
            node("guest", None, VersionRange::default(), true),
        ];
        all.into_iter().flatten().collect()
    }

    fn raised(store: &Store, is_forced: bool) -> Result<Raised, NodeError> {
        store.write_blocking(move |write| raise(write, members(), is_forced))
    }

    #[test]
    fn a_node_that_is_off_counts_until_it_is_removed_or_left_out() {
        let store = Store::temporary(schema()).unwrap();
        assert!(matches!(raised(&store, false), Err(NodeError::NoCluster)));
        store
            .write_blocking(|write| [1, 2].iter().try_for_each(|it| write.put(&certificate(*it, None))))
            .unwrap();
        let written = WrittenVersion::read(&store).unwrap();
        let refused = raised(&store, false).unwrap_err().to_string();
        assert!(refused.contains("no later one: barn."), "{refused}");
        assert_eq!(written.get(), FIRST_VERSION);
        store.write_blocking(|write| write.put(&certificate(2, Some(5)))).unwrap();
        // One that was never seen.
        store.write_blocking(|write| write.put(&certificate(3, None))).unwrap();
        let refused = raised(&store, false).unwrap_err().to_string();
        assert!(refused.contains("no later one: #3."), "{refused}");
        assert_eq!((number_in("#3"), number_in("3"), number_in("#attic")), (Some(3), None, None));
        store.write_blocking(|write| write.put(&certificate(3, Some(6)))).unwrap();
        let newest = OWN_VERSIONS.newest;
        assert_eq!(raised(&store, false).unwrap(), Raised { from: FIRST_VERSION, to: newest });
        assert_eq!(written.get(), newest);
        assert_eq!(raised(&store, true).unwrap(), Raised { from: newest, to: newest });
    }

    #[test]
    fn a_raised_version_moves_the_keys_of_services_out_of_the_settings() {
        let store = Store::temporary(schema()).unwrap();
        let value = json!({ "tmdb_api_key": "abc", "completion_enabled": true });
        let (key, name) = (COMPLETION_SETTINGS.to_owned(), String::new());
        store
            .write_blocking(move |write| {
                write.put(&CoreSetting { id: 1, key, name, value })?;
                write.put(&certificate(1, None))
            })
            .unwrap();
        raised(&store, true).unwrap();
        let keys = store.collection::<ServiceKey>().all().unwrap();
        assert_eq!(keys.iter().map(|it| it.value.expose()).collect::<Vec<_>>(), ["abc"]);
        let settings = store.collection::<CoreSetting>().all().unwrap();
        assert!(!settings[0].value.to_string().contains("abc"), "{settings:?}");
        assert_eq!(settings[0].value["completion_enabled"], true);
    }

    #[test]
    fn a_later_version_that_all_nodes_read_can_be_finalized() {
        let node = |name: &str, versions, written| NodeView {
            id: NodeId(1),
            info: NodeInfo {
                name: name.to_owned(),
                certificate: Some(1),
                versions,
                load: NodeLoad { written: Some(written), ..NodeLoad::default() },
                ..NodeInfo::default()
            },
            // One that does not run counts, too.
            state: NodeState::Left,
            incarnation: None,
            last_seen: None,
            clock_offset_ms: None,
            is_own: false,
        };
        let check = |nodes: Vec<NodeView>, expected| {
            let view = ClusterView { disconnected: None, problem: None, is_unfit: false, nodes };
            assert_eq!(finalizable(&view, &[1].into()), expected);
            assert_eq!(finalizable(&view, &[1, 4].into()), None);
        };
        let (old, new) = (VersionRange { oldest: 1, newest: 2 }, VersionRange { oldest: 2, newest: 3 });
        check(vec![node("attic", new, 2), node("barn", new, 2)], Some(3));
        check(vec![node("attic", new, 2), node("barn", old, 2)], None);
        check(vec![node("attic", new, 3), node("barn", new, 2)], None);
        check(Vec::new(), None);
    }

    #[test]
    fn records_of_a_version_wait_until_all_nodes_of_a_cluster_write_it() {
        let store = Store::temporary(schema()).unwrap();
        let write =
            |version| store.write_blocking(move |write| write.put(&ClusterVersion { version })).unwrap();
        // Alone, also after it has left a cluster.
        assert!(may_have(&store, PLUGIN_VALUES_VERSION).unwrap());
        write(PLUGIN_VALUES_VERSION - 1);
        assert!(may_have(&store, PLUGIN_VALUES_VERSION).unwrap());
        store.begin_log(Uuid::from_u128(1), 0).unwrap();
        assert!(!may_have(&store, PLUGIN_VALUES_VERSION).unwrap());
        store.leave_log().unwrap();
        write(PLUGIN_VALUES_VERSION);
        store.begin_log(Uuid::from_u128(2), 0).unwrap();
        assert!(may_have(&store, PLUGIN_VALUES_VERSION).unwrap());
    }

    #[test]
    fn a_store_of_a_cluster_that_writes_a_later_version_is_refused() {
        let store = Store::temporary(schema()).unwrap();
        let version = OWN_VERSIONS.newest + 1;
        store.write_blocking(move |write| write.put(&ClusterVersion { version })).unwrap();
        let refused = WrittenVersion::read(&store).err().unwrap().to_string();
        assert!(refused.contains("update this node"), "{refused}");
    }
}
