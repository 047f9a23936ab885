//! The records in the engine, and the numbers in them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{AccountId, ProfileId, ServerGroupId, UserId};

/// A node of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct NodeId(pub u32);

/// The boot of a machine, as the kernel names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BootId(pub Uuid);

/// A random number that a process chooses when it starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ProcessId(pub u64);

/// The revision of a record. It grows with each write to the bucket, whatever the key. 0: the record does not exist.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revision(pub u64);

/// A time during which a node is a member without interruption: the revision of its first record. It is the fencing
/// number of all leases of that time. 0: none.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Incarnation(pub u64);

/// The key of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecordKey {
    Member(NodeId),
    Pool(PoolId),
    /// The uuid of a channel, or that of a preview.
    Channel(Uuid),
    Job(JobName),
    Seats(UserId),
}

/// The value of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterRecord {
    Member(MemberRecord),
    Pool(PoolTable),
    Channel(OwnerRecord),
    Job(JobRecord),
    Seats(SeatRecord),
}

/// The state of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MemberState {
    /// Written by the node itself.
    Alive,
    /// Written by another node, which has seen no renewal for 20 s.
    Expired,
    /// Written by the node itself after it closed all its sources for good.
    Left,
}

/// `member.NODE`: a node and its present incarnation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberRecord {
    pub state: MemberState,
    pub boot: BootId,
    pub process: ProcessId,
    /// The number of this write. With `process`, it shows a node that an unconfirmed write of its own was applied.
    pub write: u64,
    /// The present incarnation. `None` in its first record, which cannot know its own revision.
    pub incarnation: Option<Incarnation>,
    /// This incarnation of the node and all earlier ones are over.
    pub over: Incarnation,
    /// Incarnations after `closed_after`, up to and including `closed`, have no open connections: they were of this
    /// boot, and either their process ended or it closed them. A machine that lost power closes nothing.
    pub closed_after: Incarnation,
    pub closed: Incarnation,
    /// The highest revision that the node had seen when it wrote this. A record whose own revision is not higher proves
    /// that the engine has lost writes.
    pub highest: Revision,
    /// The node knows of no restart of the engine within the last 20 s.
    pub settled: bool,
}

impl MemberRecord {
    /// Returns the incarnation of this record, read at `revision`. Later than all that are over, even if the engine
    /// counts from a lower revision again.
    pub fn incarnation_at(&self, revision: Revision) -> Incarnation {
        self.incarnation.unwrap_or(Incarnation(revision.0.max(self.over.0 + 1)))
    }

    /// Returns how an incarnation of this node ended. `None`: it is not known to be over.
    pub fn ending_of(&self, incarnation: Incarnation) -> Option<CoolingReason> {
        if incarnation > self.over {
            None
        } else if incarnation > self.closed_after && incarnation <= self.closed {
            Some(CoolingReason::Closed)
        } else {
            Some(CoolingReason::Lost)
        }
    }
}

/// The key of a slot table. Pools connected by a server group share one table, so that a lease takes all its pools in
/// one swap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PoolId {
    /// All account profiles of the accounts of a server group.
    Group(ServerGroupId),
    /// An account profile whose account has no server group.
    Profile(ProfileId),
}

/// The id of a lease, and before it is granted, of its request. Never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId {
    pub process: ProcessId,
    pub number: u64,
}

/// `pool.ID`: the leases and the waiting requests of pools that share limits. Every entry counts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolTable {
    pub entries: Vec<SlotEntry>,
    /// In the order of their arrival; at most [`WAITERS_MAX`](super::rules::WAITERS_MAX).
    pub waiters: Vec<Waiter>,
}

/// A lease in a slot table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotEntry {
    pub lease: LeaseId,
    pub node: NodeId,
    pub incarnation: Incarnation,
    pub profile: ProfileId,
    pub account: AccountId,
    pub purpose: SlotPurpose,
    /// Time for which the provider counts a closed connection, in milliseconds.
    pub release_delay_ms: u32,
    /// Time for which the entry cools if its node is lost, in milliseconds; `None`:
    /// [`CRASH_COOLING`](super::rules::CRASH_COOLING). Versions that do not know it lose it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub crash_cooling_ms: Option<u32>,
    pub state: SlotState,
}

/// The state of a lease in a slot table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotState {
    /// Its node may have a connection.
    Held,
    /// Its node is closing the connection.
    Closing,
    /// The connection is closed, but the provider may still count it.
    Cooling(CoolingReason),
}

/// The reason why an entry cools, which determines for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoolingReason {
    /// The connection was closed in the regular way: the release delay of the account applies.
    Closed,
    /// The node was lost. A machine without power closes nothing, so the provider may count longer.
    Lost,
}

/// A request that waits for a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiter {
    pub lease: LeaseId,
    pub node: NodeId,
    pub incarnation: Incarnation,
    /// The account profiles that would do, best first, each with its account.
    pub profiles: Vec<(ProfileId, AccountId)>,
}

/// The purpose of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlotPurpose {
    Live,
    Preview,
    Trial,
    Vod,
    Catchup,
    Recording,
    Probe,
}

/// `channel.TARGET`: the origin of a channel.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OwnerRecord {
    /// The node that opens the source. `None`: nobody plays the channel.
    pub origin: Option<(NodeId, Incarnation)>,
    /// Grows with each change of the origin. Numbers of chunks are unique with it and the node of the origin: after the
    /// engine has lost records, an epoch may occur again on another node.
    pub epoch: u64,
}

/// A job that one node runs for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum JobName {
    /// Writes the configuration.
    Writer,
    Importer,
    Schedules,
    Integrations,
    Plugins,
    Backup,
    /// A recording, by its id.
    Recording(u32),
}

/// `job.NAME`: the node that runs a job. The revision of this record is the fencing number of its work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobRecord {
    pub owner: Option<(NodeId, Incarnation)>,
}

/// `seat.USER`: the sessions of a user with a limit, on all nodes, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatRecord {
    pub sessions: Vec<SeatEntry>,
}

/// A session of a user on one node. Entries of one device and one target are one session, whatever their nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeatEntry {
    pub seat: LeaseId,
    pub node: NodeId,
    pub incarnation: Incarnation,
    /// Identifies the address and the program.
    pub device: Uuid,
    /// The channel or title.
    pub target: Uuid,
    /// Set when another session of the user takes its place. It no longer counts, and its node ends it.
    pub ended: Option<SeatEnd>,
}

/// The reason why a session ends for another one of its user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SeatEnd {
    /// The same device watches something else now.
    Replaced,
    /// Another session of the user began at the limit.
    OverLimit,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_written_and_read_unchanged() {
        let lease = LeaseId { process: ProcessId(u64::MAX), number: 3 };
        let (node, incarnation) = (NodeId(7), Incarnation(11));
        let (profile, account) = (ProfileId(5), AccountId(4));
        let (purpose, release_delay_ms) = (SlotPurpose::Catchup, 2_000);
        let state = SlotState::Cooling(CoolingReason::Lost);
        let table = PoolTable {
            entries: vec![SlotEntry {
                lease,
                node,
                incarnation,
                profile,
                account,
                purpose,
                release_delay_ms,
                crash_cooling_ms: None,
                state,
            }],
            waiters: vec![Waiter { lease, node, incarnation, profiles: vec![(profile, account)] }],
        };
        let text = serde_json::to_string(&table).unwrap();
        assert!(text.contains(r#""state":{"cooling":"lost"}"#), "{text}");
        assert_eq!(serde_json::from_str::<PoolTable>(&text).unwrap(), table);
        let mut own = table;
        own.entries[0].crash_cooling_ms = Some(7_000);
        let text = serde_json::to_string(&own).unwrap();
        assert!(text.contains(r#""crash_cooling_ms":7000"#), "{text}");
        assert_eq!(serde_json::from_str::<PoolTable>(&text).unwrap(), own);
        let (device, target, ended) = (Uuid::nil(), Uuid::nil(), Some(SeatEnd::OverLimit));
        let seats = SeatRecord {
            sessions: vec![SeatEntry { seat: lease, node, incarnation, device, target, ended }],
        };
        let text = serde_json::to_string(&seats).unwrap();
        assert!(text.contains(r#""ended":"over_limit""#), "{text}");
        assert_eq!(serde_json::from_str::<SeatRecord>(&text).unwrap(), seats);
        let owner = OwnerRecord { origin: Some((node, incarnation)), epoch: 2 };
        assert_eq!(serde_json::to_string(&owner).unwrap(), r#"{"origin":[7,11],"epoch":2}"#);
    }

    #[test]
    fn an_incarnation_is_its_first_revision_and_later_than_those_before() {
        let mut record = MemberRecord {
            state: MemberState::Alive,
            boot: BootId(Uuid::nil()),
            process: ProcessId(1),
            write: 1,
            incarnation: None,
            over: Incarnation(4),
            closed_after: Incarnation(2),
            closed: Incarnation(3),
            highest: Revision(8),
            settled: true,
        };
        assert_eq!(record.incarnation_at(Revision(9)), Incarnation(9));
        assert_eq!(record.incarnation_at(Revision(3)), Incarnation(5)); // the engine counts anew
        let endings = [2, 3, 4, 5].map(|it| record.ending_of(Incarnation(it)));
        let [lost, closed] = [Some(CoolingReason::Lost), Some(CoolingReason::Closed)];
        assert_eq!(endings, [lost, closed, lost, None]);
        record.incarnation = Some(Incarnation(5));
        assert_eq!(record.incarnation_at(Revision(30)), Incarnation(5));
    }
}
