//! New logs, and nodes that were off while something changed.

use std::sync::Arc;

use domain::cluster::certificate::{ClusterAuthority, NodeCertificate};
use domain::cluster::record::NodeId;
use domain::cluster::token::NodeRole;
use parking_lot::Mutex;
use storage::log::{Append, CommitLog, LogRead, LogUnreachable, copy_records, log_of};
use storage::{Error, Record as _, Store};
use tempfile::TempDir;

use super::NodeError;
use super::authority::{NodeSecrets, revoke};
use super::file::{NodeFile, begin_cluster};
use super::join::{JoinRequest, admit, create_token, rotate_keys};
use super::reseed::{ReseedRefusal, begin_new_log, check_need, newest_keys};
use super::tests::VecLog;
use super::trust::NodeTrust;

const NOW: i64 = 1_700_000_000_000;

/// A log to which another node appends before this one, so many times.
#[derive(Default)]
struct ContestedLog {
    log: VecLog,
    n_others: Mutex<u32>,
}

impl CommitLog for ContestedLog {
    fn append(&self, expected_last: u64, entry: &[u8]) -> Append {
        let mut n_others = self.n_others.lock();
        if *n_others == 0 {
            return self.log.append(expected_last, entry);
        }
        *n_others -= 1;
        self.log.append(expected_last, b"an entry of another node");
        Append::Conflict
    }

    fn read(&self, sequence: u64) -> Result<LogRead, LogUnreachable> {
        self.log.read(sequence)
    }

    fn last(&self) -> Result<u64, LogUnreachable> {
        self.log.last()
    }
}

fn new_store() -> Store {
    Store::temporary(storage::records::schema()).unwrap()
}

/// Begins a cluster. Returns the store, its file, and where that is.
fn first_node(log: &Arc<ContestedLog>) -> (Store, NodeFile, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let store = new_store();
    let file = begin_cluster(&store, &folder.path().join("node"), Arc::clone(log) as Arc<_>, NOW).unwrap();
    (store, file, folder)
}

/// Admits a machine. Returns its file.
fn joined(store: &Store, file: &NodeFile, role: NodeRole) -> NodeFile {
    let (secrets, token) = (NodeSecrets::new().unwrap(), create_token(store, role, NOW).unwrap());
    let answer = admit(store, &file.data_keys, &JoinRequest::new(&token, &secrets), NOW).unwrap();
    NodeFile::from_answer(&secrets, &answer).unwrap()
}

#[test]
fn a_new_log_needs_a_reason_and_the_store_keeps_its_old_one_if_that_fails() {
    let log = Arc::new(ContestedLog::default());
    let (store, file, _folder) = first_node(&log);
    let edge = joined(&store, &file, NodeRole::Edge);
    let shared: Arc<dyn CommitLog> = Arc::clone(&log) as Arc<_>;
    let keys = newest_keys(&store, &file).unwrap();
    let check = |file: &NodeFile| check_need(&store, file, Arc::clone(&shared), &keys);
    assert!(matches!(check(&edge), Err(ReseedRefusal::Edge)));
    assert!(matches!(check(&file), Err(ReseedRefusal::Healthy)));
    let position = || store.log_status().borrow().as_ref().unwrap().position;
    let old = position();

    // The end of the log is lost. Another node appends nevertheless, again and again.
    log.log.entries.lock().pop();
    check(&file).unwrap();
    *log.n_others.lock() = u32::MAX;
    let refused = begin_new_log(&store, &shared, &keys);
    assert!(matches!(refused, Err(NodeError::Store(Error::NotWriter))), "{refused:?}");
    assert_eq!(position(), old);

    *log.n_others.lock() = 3;
    let new = begin_new_log(&store, &shared, &keys).unwrap();
    assert!(new == position() && new.log != old.log && new.sequence == log.last().unwrap());
    let LogRead::Entry(entry) = log.read(new.sequence).unwrap() else { panic!("the entry") };
    assert_eq!(log_of(&entry), Some(new.log));
    assert!(store.writes_shared());
    assert!(matches!(check(&file), Err(ReseedRefusal::Healthy)), "the new one is undamaged");

    // A store that was restored belongs to no log, and has to say which one.
    store.leave_log().unwrap();
    check(&file).unwrap();
    let restored = new_store();
    assert!(matches!(begin_new_log(&restored, &shared, &keys), Err(NodeError::NoCluster)));
    copy_records(&store, &restored, &[ClusterAuthority::COLLECTION]).unwrap();
    assert_ne!(begin_new_log(&restored, &shared, &keys).unwrap().log, new.log);
}

#[test]
fn a_node_gets_the_present_keys_from_another_one_unless_it_was_revoked() {
    let log = Arc::new(ContestedLog::default());
    let (store, file, folder) = first_node(&log);
    let other = joined(&store, &file, NodeRole::Full);
    let path = folder.path().join("other");
    other.write(&path).unwrap();
    // The other node has what there was before the rotation.
    let of_other = new_store();
    let collections = [ClusterAuthority::COLLECTION, NodeCertificate::COLLECTION];
    copy_records(&store, &of_other, &collections).unwrap();
    let rotated = rotate_keys(&store, &file.data_keys).unwrap();
    assert_eq!(newest_keys(&store, &file).unwrap(), rotated);
    let trust = NodeTrust::new(file, folder.path().join("node"), store.clone()).unwrap();
    let id = other.node;
    let late = NodeTrust::new(other, path.clone(), of_other).unwrap();
    assert_ne!(late.data_keys(), rotated);

    let sealed = trust.keys_for(id).unwrap().unwrap();
    assert!(trust.take_sealed_keys(&sealed).is_err(), "sealed for another node");
    late.take_sealed_keys(&sealed).unwrap();
    assert_eq!(
        (late.data_keys(), NodeFile::read(&path).unwrap().unwrap().data_keys),
        (rotated.clone(), rotated)
    );
    assert!(late.take_sealed_keys(b"rubbish").is_err());
    assert_eq!(trust.keys_for(NodeId(9)).unwrap(), None);
    revoke(&store, id, NOW).unwrap();
    assert_eq!(trust.keys_for(id).unwrap(), None);
}
