//! The message of a guard: the process that it guarded has ended, and so have the programs of that process.
//!
//! The guard is a process of the same machine. It sends the message only after the kernel has closed all connections of
//! the process, and it speaks for one process: by its number in the record of the node. So a message that comes late or
//! twice changes nothing once another process of the node has written that record.

use super::record::{CoolingReason, Incarnation, MemberRecord, MemberState, ProcessId, Revision};
use super::rules::{ClusterRule, ClusterRules};

/// Returns the record that says that the incarnation of a process is over, and that its connections are closed. It
/// replaces the present record of the node, which has this revision. `None`: the message changes nothing, because the
/// record is that of another process, or says so already.
///
/// Other nodes end its leases as after a return: only the release delay of the account applies. Whether earlier
/// incarnations have closed their connections is not known here, so none of them counts as closed.
pub fn record_after_end(
    process: ProcessId,
    revision: Revision,
    present: &MemberRecord,
    rules: ClusterRules,
) -> Option<MemberRecord> {
    let ended = present.incarnation_at(revision);
    let is_of_process = present.process == process || !rules.hold(ClusterRule::GuardNamesProcess);
    let is_known =
        present.state == MemberState::Left || present.ending_of(ended) == Some(CoolingReason::Closed);
    (is_of_process && !is_known).then(|| MemberRecord {
        state: MemberState::Expired,
        incarnation: Some(ended),
        over: ended,
        closed_after: Incarnation(ended.0.saturating_sub(1)),
        closed: ended,
        highest: present.highest.max(revision),
        ..present.clone()
    })
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::cluster::record::BootId;

    const PROCESS: ProcessId = ProcessId(7);

    /// Returns a renewal of the incarnation 10.
    fn renewal() -> MemberRecord {
        MemberRecord {
            state: MemberState::Alive,
            boot: BootId(Uuid::nil()),
            process: PROCESS,
            write: 4,
            incarnation: Some(Incarnation(10)),
            over: Incarnation(9),
            closed_after: Incarnation(2),
            closed: Incarnation(5),
            highest: Revision(11),
            settled: true,
        }
    }

    fn after(present: &MemberRecord) -> Option<MemberRecord> {
        record_after_end(PROCESS, Revision(12), present, ClusterRules::default())
    }

    #[test]
    fn a_message_of_a_guard_ends_the_incarnation_of_its_process_and_no_other_one() {
        let [lost, closed] = [Some(CoolingReason::Lost), Some(CoolingReason::Closed)];
        let first = MemberRecord { incarnation: None, over: Incarnation(9), ..renewal() };
        let expired = MemberRecord { state: MemberState::Expired, over: Incarnation(10), ..renewal() };
        for (present, ended) in [(renewal(), 10), (first, 12), (expired, 10)] {
            let next = after(&present).unwrap();
            assert_eq!((next.state, next.process), (MemberState::Expired, PROCESS), "{present:?}");
            assert_eq!(next.incarnation_at(Revision(13)), Incarnation(ended), "{present:?}");
            let endings = [ended - 1, ended, ended + 1].map(|it| next.ending_of(Incarnation(it)));
            assert_eq!(endings, [lost, closed, None], "{present:?}");
            assert!(next.highest >= Revision(12));
            assert_eq!(after(&next), None, "said twice");
        }
    }

    #[test]
    fn a_late_or_foreign_message_of_a_guard_changes_nothing() {
        let other = MemberRecord { process: ProcessId(8), ..renewal() };
        let other_expired =
            MemberRecord { state: MemberState::Expired, over: Incarnation(10), ..other.clone() };
        let left = MemberRecord { state: MemberState::Left, over: Incarnation(10), ..renewal() };
        for present in [other, other_expired, left] {
            assert_eq!(after(&present), None, "{present:?}");
        }
    }
}
