//! What earlier versions wrote must be read for ever.
//!
//! `records.json` has one line per noun and version: the bytes as they were written, and what they say. `store-1.bin`
//! is a whole small store. Both are only ever added to: `cargo test -p storage --test it golden::write -- --ignored`
//! writes what is not there yet.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use domain::account::{Account, AccountProfile};
use domain::channel::Channel;
use domain::ids::{AccountId, ChannelId, ProfileId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Headers, SourceKind, Stream};
use domain::stream_profile::StreamProfile;
use serde_json::{Value, json};
use storage::records::schema;
use storage::{Record, Store};
use uuid::Uuid;

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

fn account() -> Account {
    let mut headers = Headers::default();
    assert!(headers.set("User-Agent", "player/1.0") && headers.set("X-Token", "abc"));
    Account {
        id: AccountId(1),
        name: "Provider".to_owned(),
        is_active: true,
        headers,
        release_delay: Duration::from_millis(1_500),
        profiles: vec![AccountProfile {
            id: ProfileId(1),
            name: "Default".to_owned(),
            is_default: true,
            is_active: true,
            max_streams: 2,
        }],
    }
}

fn channel() -> Channel {
    Channel {
        id: ChannelId(4),
        uuid: Uuid::from_u128(0x1234_5678_9abc_def0),
        name: "News".to_owned(),
        number: Some("4.1".parse().unwrap()),
        group: Some("Free".to_owned()),
        logo: None,
        tvg_id: Some("news.example".to_owned()),
        streams: vec![StreamId(2), StreamId(1)],
        stream_profile: Some(StreamProfile::Proxy),
        enabled: true,
    }
}

fn stream(id: u32) -> Stream {
    let url = SourceUrl::new(format!("http://tv.example/live/user/secret/{id}.ts"));
    Stream {
        id: StreamId(id),
        account: AccountId(1),
        name: format!("Stream {id}"),
        kind: SourceKind::of(&url),
        url,
        headers: Headers::default(),
        tvg_id: None,
        group: Some("Free".to_owned()),
        logo: Some("http://tv.example/logo.png".to_owned()),
        number: None,
        profile: None,
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// A record as this version writes it.
fn written<T: Record>(record: &T) -> Value {
    let mut bytes = vec![T::VERSION];
    bytes.extend(rmp_serde::to_vec_named(record).unwrap());
    let says = serde_json::to_value(record).unwrap();
    json!({ "collection": T::COLLECTION, "version": T::VERSION, "bytes": hex(&bytes), "says": says })
}

fn reads<T: Record>(line: &Value) {
    let record: T = storage::decode(&bytes(line["bytes"].as_str().unwrap())).unwrap();
    let says = serde_json::to_value(&record).unwrap();
    // Fields that came later have their defaults; those of then say what they said.
    for (field, value) in line["says"].as_object().unwrap() {
        assert_eq!(&says[field], value, "{} {field}", T::COLLECTION);
    }
}

fn records() -> Vec<Value> {
    serde_json::from_str(&fs::read_to_string(golden("records.json")).unwrap()).unwrap()
}

#[test]
fn records_of_every_released_version_still_decode() {
    let lines = records();
    for line in &lines {
        match line["collection"].as_str().unwrap() {
            Account::COLLECTION => reads::<Account>(line),
            Channel::COLLECTION => reads::<Channel>(line),
            Stream::COLLECTION => reads::<Stream>(line),
            other => panic!("nobody reads {other}"),
        }
    }
    // What this version writes is kept too.
    for now in [written(&account()), written(&channel()), written(&stream(1))] {
        let is_kept = |it: &Value| it["collection"] == now["collection"] && it["version"] == now["version"];
        assert!(lines.iter().any(is_kept), "no golden record of {} {}", now["collection"], now["version"]);
    }
}

#[test]
fn a_store_of_the_first_version_opens() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&golden("store-1.bin"), folder.path());
    let store = Store::open(&folder.path().join("store"), &folder.path().join("key"), schema()).unwrap();
    assert_eq!(store.collection::<Account>().all().unwrap(), [account()]);
    assert_eq!(store.collection::<Channel>().all().unwrap(), [channel()]);
    assert_eq!(
        store.collection::<Channel>().one_by("uuid", channel().uuid.as_bytes()).unwrap(),
        Some(channel())
    );
    assert_eq!(store.collection::<Stream>().all().unwrap(), (1..=250).map(stream).collect::<Vec<_>>());
    store.write_blocking(|write| write.put(&stream(251))).unwrap();
}

#[test]
#[ignore = "writes the golden files of this version"]
fn write() {
    let now = [written(&account()), written(&channel()), written(&stream(1))];
    let mut lines = if golden("records.json").exists() { records() } else { Vec::new() };
    for line in now {
        let is_kept = |it: &Value| it["collection"] == line["collection"] && it["version"] == line["version"];
        if !lines.iter().any(is_kept) {
            lines.push(line);
        }
    }
    fs::write(golden("records.json"), serde_json::to_string_pretty(&lines).unwrap() + "\n").unwrap();
    if golden("store-1.bin").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("store"), &folder.path().join("key"), schema()).unwrap();
    store.write_blocking(|write| write.put(&account()).and_then(|()| write.put(&channel()))).unwrap();
    let mut bulk = store.bulk::<Stream>(1).unwrap();
    (1..=250).try_for_each(|id| bulk.put(&stream(id))).unwrap();
    bulk.land(|_, _| Ok::<_, storage::Error>(())).unwrap();
    drop(store);
    pack(folder.path(), &golden("store-1.bin"));
}

/// All files of a folder in one compressed one; databases are mostly zeros.
fn pack(folder: &Path, into: &Path) {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap().flatten() {
            match entry.file_type().unwrap().is_dir() {
                true => folders.push(entry.path()),
                false => {
                    let name = entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
                    files.insert(name, fs::read(entry.path()).unwrap());
                }
            }
        }
    }
    let mut encoder =
        flate2::write::DeflateEncoder::new(fs::File::create(into).unwrap(), flate2::Compression::best());
    encoder.write_all(&rmp_serde::to_vec(&files).unwrap()).unwrap();
    encoder.finish().unwrap();
}

fn unpack(from: &Path, folder: &Path) {
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(fs::File::open(from).unwrap()).read_to_end(&mut bytes).unwrap();
    let files: BTreeMap<String, Vec<u8>> = rmp_serde::from_slice(&bytes).unwrap();
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
