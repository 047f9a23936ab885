//! Every later version must read the records of all versions that [`OWN_VERSIONS`] names, and write those of the oldest one.
//! `testdata/records.json` has them as this one writes them. A change of them needs another version of the cluster, except
//! for a field that older versions may lose.
//!
//! [`OWN_VERSIONS`]: domain::cluster::version::OWN_VERSIONS

use serde_json::{Map, Value};

use crate::codec::{StoredRecord, decode, encode, record_key};
use crate::{Key, NodeInfo};

const RECORDS: &str = include_str!("testdata/records.json");

#[test]
fn the_records_in_the_engine_stay_as_they_are() {
    let records: Map<String, Value> = serde_json::from_str(RECORDS).unwrap();
    assert_eq!(records.len(), 5);
    for (name, record) in records {
        let key = Key::new(name.clone()).unwrap();
        let read = decode(&key, record_key(&key).unwrap(), record.to_string().as_bytes()).unwrap();
        let written = match read {
            StoredRecord::Member(it) => {
                encode(&domain::cluster::record::ClusterRecord::Member(it.record), &it.node)
            }
            StoredRecord::Other(it) => encode(&it, &NodeInfo::default()),
        };
        let written: Value = serde_json::from_slice(&written).unwrap();
        assert_eq!(written, record, "{name}");
    }
}
