//! What nodes say to each other stays as it is: nodes of neighbouring versions work together. A change needs another version of
//! the cluster, except for a field that older versions may ignore.
//!
//! `cargo test --lib golden_tests::write -- --ignored` seals data keys, if the file is missing.

use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};

use actors::{AccountRequest, AnswerHead, RelayedError};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use storage::log::{LogKeys, SealingKey, seal_keys};

use super::archives::NodeArchives;
use super::forward::Forwarded;
use super::join::{JoinAnswer, JoinRequest};
use super::status::NodeStatus;
use super::timelines::NodeRun;
use crate::playing_control::{Controlled, Order};

fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/testdata").join(name)
}

fn golden(name: &str) -> Value {
    serde_json::from_slice(&fs::read(path(name)).unwrap()).unwrap()
}

#[track_caller]
fn stays<T: Serialize + DeserializeOwned + Debug>(message: &Value) {
    let read: T = serde_json::from_value(message.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), *message, "{read:?}");
}

#[test]
fn the_messages_between_nodes_stay_as_they_are() {
    let messages = golden("messages.json");
    let each = |name: &str| messages[name].as_array().unwrap().clone();
    stays::<JoinRequest>(&messages["join_request"]);
    stays::<JoinAnswer>(&messages["join_answer"]);
    stays::<NodeStatus>(&messages["status"]);
    stays::<NodeArchives>(&messages["archives"]);
    stays::<Vec<NodeRun>>(&messages["timeline"]);
    stays::<Forwarded>(&messages["forwarded"]);
    stays::<AccountRequest>(&messages["account_request"]);
    stays::<AnswerHead>(&messages["answer_head"]);
    each("relayed_errors").iter().for_each(stays::<RelayedError>);
    assert_eq!(each("orders").len(), 6);
    each("orders").iter().for_each(stays::<Order>);
    each("outcomes").iter().for_each(stays::<Controlled>);
}

#[test]
fn data_keys_that_an_earlier_version_has_sealed_are_opened() {
    let golden = golden("sealed-keys.json");
    let key: SealingKey = serde_json::from_value(golden["sealing_key"].clone()).unwrap();
    let sealed: Vec<u8> = serde_json::from_value(golden["sealed"].clone()).unwrap();
    let keys = key.open(&sealed).unwrap();
    assert_eq!(serde_json::to_value(keys).unwrap(), golden["keys"]);
}

#[test]
#[ignore = "writes a golden file of this version"]
fn write() {
    let path = path("sealed-keys.json");
    if path.exists() {
        return;
    }
    let (key, keys) = (SealingKey::random().unwrap(), LogKeys::new().unwrap());
    let sealed = seal_keys(&key.public(), &keys).unwrap();
    let golden = json!({ "sealing_key": key, "sealed": sealed, "keys": keys });
    fs::write(path, golden.to_string() + "\n").unwrap();
}
