//! The form of the records of the nodes: their keys, and their values in JSON.

use bytes::Bytes;
use domain::cluster::record::{
    ClusterRecord, JobName, MemberRecord, NodeId, OwnerRecord, PoolId, PoolTable, RecordKey, SeatRecord,
};
use domain::cluster::version::{FIRST_VERSION, VersionRange};
use domain::ids::{ProfileId, ServerGroupId, UserId};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::engine::Key;

/// The task of a node.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NodeRole {
    /// Opens sources, serves viewers and runs jobs.
    #[default]
    Full,
    /// Serves viewers, and holds no secrets of providers.
    Edge,
}

/// The work of a node, so that others can choose the one with the least.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeLoad {
    /// Channels that the node plays.
    pub channels: u64,
    /// Connections of viewers.
    pub clients: u64,
    /// Connections to providers that it holds.
    pub leases: u64,
    /// Load average of the last minute over the number of processors, in percent. `None`: the system does not say.
    pub cpu_percent: Option<u32>,
    /// The last commit of the shared configuration that the node has. `None`: it does not share one.
    pub configuration: Option<u64>,
    /// The version that the node writes, if it shares the configuration. `None`: it announces no versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub written: Option<u32>,
    /// The wall clock of the node when it wrote this, in milliseconds since 1970. `None`: it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// The node is drained: it gives its channels away, and is asked for none.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_draining: bool,
    /// When the streams of the viewers of a drained node end, by its wall clock in milliseconds since 1970. `None`: it is not
    /// drained, or does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_ends: Option<i64>,
}

/// The description that a node gives of itself in its record. Other nodes do not decide by it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct NodeInfo {
    pub name: String,
    pub role: NodeRole,
    /// Version of Headwater.
    pub version: String,
    /// Addresses under which other nodes reach this one, each a host with or without a port.
    pub addresses: Vec<String>,
    /// The number in its certificate. `None`: it has none, so others cannot connect to it.
    pub certificate: Option<u32>,
    /// The versions that it reads.
    pub versions: VersionRange,
    pub load: NodeLoad,
}

impl NodeInfo {
    /// Returns the version that the node writes. `None`: it has not joined, so it writes nothing for others.
    pub fn written(&self) -> Option<u32> {
        self.certificate.map(|_| self.load.written.unwrap_or(FIRST_VERSION))
    }
}

/// Returns the version that is written in a cluster of these nodes. `None`: none of them has joined.
///
/// It only grows, so that the highest counts: nodes that do not run have old ones, and others hear of a new one a moment later.
pub fn written_version<'a>(nodes: impl IntoIterator<Item = &'a NodeInfo>) -> Option<u32> {
    nodes.into_iter().filter_map(NodeInfo::written).max()
}

/// The value of a member's record: what the rules need, and what the node says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredMember {
    #[serde(flatten)]
    pub record: MemberRecord,
    #[serde(default)]
    pub node: NodeInfo,
}

/// A value that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoredRecord {
    Member(StoredMember),
    Other(ClusterRecord),
}

/// A value that this version cannot read.
#[derive(Debug, thiserror::Error)]
#[error("the record {key} cannot be read; is a node of another version in the cluster? {reason}")]
pub struct DecodeError {
    pub key: Key,
    pub reason: String,
}

/// Returns the id of a node with this name. Every process of the node gets the same.
pub fn node_id(name: &str) -> NodeId {
    // FNV-1a. A node that meets another one with its id refuses to start.
    let hash =
        name.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    NodeId(hash)
}

/// Returns the key in the engine.
pub fn key(record: RecordKey) -> Key {
    let text = match record {
        RecordKey::Member(NodeId(id)) => format!("member.{id}"),
        RecordKey::Pool(PoolId::Group(ServerGroupId(id))) => format!("pool.group-{id}"),
        RecordKey::Pool(PoolId::Profile(ProfileId(id))) => format!("pool.profile-{id}"),
        RecordKey::Channel(uuid) => format!("channel.{uuid}"),
        RecordKey::Job(job) => match job {
            JobName::Writer => "job.writer".to_owned(),
            JobName::Importer => "job.importer".to_owned(),
            JobName::Schedules => "job.schedules".to_owned(),
            JobName::Integrations => "job.integrations".to_owned(),
            JobName::Plugins => "job.plugins".to_owned(),
            JobName::Backup => "job.backup".to_owned(),
            JobName::Recording(id) => format!("job.recording-{id}"),
        },
        RecordKey::Seats(UserId(id)) => format!("seat.{id}"),
    };
    Key::new(text).expect("these texts are keys")
}

/// Returns the record of a key; `None` for the keys of others.
pub fn record_key(key: &Key) -> Option<RecordKey> {
    let (kind, name) = key.as_str().split_once('.')?;
    match kind {
        "member" => Some(RecordKey::Member(NodeId(name.parse().ok()?))),
        "pool" => {
            let (kind, id) = name.split_once('-')?;
            let id = id.parse().ok()?;
            match kind {
                "group" => Some(RecordKey::Pool(PoolId::Group(ServerGroupId(id)))),
                "profile" => Some(RecordKey::Pool(PoolId::Profile(ProfileId(id)))),
                _ => None,
            }
        }
        "channel" => Some(RecordKey::Channel(Uuid::parse_str(name).ok()?)),
        "job" => {
            let job = match name {
                "writer" => JobName::Writer,
                "importer" => JobName::Importer,
                "schedules" => JobName::Schedules,
                "integrations" => JobName::Integrations,
                "plugins" => JobName::Plugins,
                "backup" => JobName::Backup,
                _ => JobName::Recording(name.strip_prefix("recording-")?.parse().ok()?),
            };
            Some(RecordKey::Job(job))
        }
        "seat" => Some(RecordKey::Seats(UserId(name.parse().ok()?))),
        _ => None,
    }
}

/// Writes a value. `node` is what the node of a member's record says about itself.
pub fn encode(record: &ClusterRecord, node: &NodeInfo) -> Bytes {
    let encoded = match record {
        ClusterRecord::Member(it) => {
            serde_json::to_vec(&StoredMember { record: it.clone(), node: node.clone() })
        }
        ClusterRecord::Pool(it) => serde_json::to_vec(it),
        ClusterRecord::Channel(it) => serde_json::to_vec(it),
        ClusterRecord::Job(it) => serde_json::to_vec(it),
        ClusterRecord::Seats(it) => serde_json::to_vec(it),
    };
    Bytes::from(encoded.expect("these types are JSON"))
}

/// Reads a value.
pub fn decode(key: &Key, record: RecordKey, value: &[u8]) -> Result<StoredRecord, DecodeError> {
    fn read<T: DeserializeOwned>(key: &Key, value: &[u8]) -> Result<T, DecodeError> {
        let error = |it: serde_json::Error| DecodeError { key: key.clone(), reason: it.to_string() };
        serde_json::from_slice(value).map_err(error)
    }
    let other = match record {
        RecordKey::Member(_) => return read(key, value).map(StoredRecord::Member),
        RecordKey::Pool(_) => ClusterRecord::Pool(read::<PoolTable>(key, value)?),
        RecordKey::Channel(_) => ClusterRecord::Channel(read::<OwnerRecord>(key, value)?),
        RecordKey::Job(_) => ClusterRecord::Job(read(key, value)?),
        RecordKey::Seats(_) => ClusterRecord::Seats(read::<SeatRecord>(key, value)?),
    };
    Ok(StoredRecord::Other(other))
}

#[cfg(test)]
mod tests {
    use domain::cluster::record::{BootId, Incarnation, JobRecord, MemberState, ProcessId, Revision};

    use super::*;

    #[test]
    fn every_key_is_read_as_it_was_written() {
        let keys = [
            RecordKey::Member(NodeId(u32::MAX)),
            RecordKey::Pool(PoolId::Group(ServerGroupId(3))),
            RecordKey::Pool(PoolId::Profile(ProfileId(4))),
            RecordKey::Channel(Uuid::from_u128(7)),
            RecordKey::Job(JobName::Writer),
            RecordKey::Job(JobName::Importer),
            RecordKey::Job(JobName::Schedules),
            RecordKey::Job(JobName::Integrations),
            RecordKey::Job(JobName::Plugins),
            RecordKey::Job(JobName::Backup),
            RecordKey::Job(JobName::Recording(9)),
            RecordKey::Seats(UserId(6)),
        ];
        for it in keys {
            assert_eq!(record_key(&key(it)), Some(it));
        }
        for text in
            ["member", "member.x", "pool.5", "pool.account-5", "channel.1", "job.cook", "seat.x", "card.1"]
        {
            assert_eq!(record_key(&Key::new(text).unwrap()), None, "{text}");
        }
    }

    #[test]
    fn a_member_is_stored_with_its_description_and_read_without_one() {
        let record = MemberRecord {
            state: MemberState::Alive,
            boot: BootId(Uuid::from_u128(1)),
            process: ProcessId(u64::MAX),
            write: 4,
            incarnation: Some(Incarnation(3)),
            over: Incarnation(2),
            closed_after: Incarnation(1),
            closed: Incarnation(2),
            highest: Revision(9),
            settled: true,
        };
        let node = NodeInfo { name: "attic".to_owned(), version: "1.2.3".to_owned(), ..NodeInfo::default() };
        let at = RecordKey::Member(NodeId(1));
        let text = encode(&ClusterRecord::Member(record.clone()), &node);
        let read = decode(&key(at), at, &text).unwrap();
        assert_eq!(read, StoredRecord::Member(StoredMember { record: record.clone(), node }));
        // A record of a version that says nothing, or more.
        let mut json: serde_json::Value = serde_json::from_slice(&text).unwrap();
        json.as_object_mut().unwrap().remove("node");
        json["later"] = true.into();
        let read = decode(&key(at), at, json.to_string().as_bytes()).unwrap();
        assert_eq!(read, StoredRecord::Member(StoredMember { record, node: NodeInfo::default() }));
        assert!(decode(&key(at), at, b"{}").unwrap_err().to_string().contains("member.1"));
        let at = RecordKey::Job(JobName::Writer);
        let read =
            decode(&key(at), at, &encode(&ClusterRecord::Job(JobRecord::default()), &NodeInfo::default()));
        assert_eq!(read.unwrap(), StoredRecord::Other(ClusterRecord::Job(JobRecord::default())));
    }

    #[test]
    fn the_id_of_a_node_follows_from_its_name() {
        assert_eq!(node_id("attic"), node_id("attic"));
        assert_ne!(node_id("attic"), node_id("cellar"));
        assert_eq!(node_id(""), NodeId(0x811c_9dc5));
    }
}
