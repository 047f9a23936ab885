//! Every later version must read the files of all released versions.
//!
//! `records.json` has an entry for each record type and version, and for each case that a first one cannot have as well: the
//! encoded bytes, and their content. `store-1.bin` is a complete small store of the first format. `store-2.bin` is one of
//! the second format, as a crash leaves it: with a long record in pieces, the leftovers of a bulk write, and a record that
//! was set aside. `backup-1.tar.gz` is a back-up with the same records, and `log-1.bin` has entries of the log of a cluster and `snapshot-1.tar.gz` is
//! a snapshot of its beginning. Existing entries never change:
//! `cargo test -p storage --test it golden::write -- --ignored` adds the missing ones.

mod log;
mod samples;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use data_encoding::HEXLOWER;
use domain::account::{Account, RefreshRecord};
use domain::account_addresses::AddressRecord;
use domain::account_group::AccountGroup;
use domain::audit::AuditEntry;
use domain::channel::Channel;
use domain::cluster::certificate::{ClusterAuthority, NodeCertificate, SealedKeys};
use domain::cluster::token::JoinTicket;
use domain::cluster::version::ClusterVersion;
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::matching::GuideAlias;
use domain::guide::schedules_direct::GuideMarks;
use domain::guide::source::GuideSource;
use domain::guide::state::GuideState;
use domain::health::StreamHealth;
use domain::ids::AccountId;
use domain::lineup::Lineup;
use domain::login::DeviceLogin;
use domain::logo::Logo;
use domain::notice::{DismissedNotices, Notice};
use domain::output_profile::OutputProfile;
use domain::panel::ProfileInfo;
use domain::personal_playlist::PersonalPlaylist;
use domain::plugin::PluginValue;
use domain::recording::rules::{RecordingRule, RuleMemory};
use domain::recording::{LeftFiles, Recording};
use domain::secret::{Secret, ServerKeys};
use domain::server_group::ServerGroup;
use domain::service_key::ServiceKey;
use domain::setting::CoreSetting;
use domain::stream::Stream;
use domain::stream_ids::StreamIdPage;
use domain::stream_profile::StreamProfile;
use domain::tuner::TunerDevice;
use domain::undo::{UndoChange, UndoEntry, UndoPart};
use domain::user::User;
use domain::user_agent::UserAgent;
use domain::user_group::UserGroup;
use domain::vod::{AccountCategory, Episode, Title, TitleDetails, TitleFavorites, VodCategory, VodSync};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use storage::backup::{Archive, BackupSecret, create_backup};
use storage::log::LogPosition;
use storage::records::schema;
use storage::{Record, Schema, Sharing, Store};

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name)
}

/// Returns a record of every type, as this version writes it.
fn now() -> Vec<Value> {
    vec![
        written(&samples::account()),
        written_as("live_form", &samples::account_of_panel()),
        written_as("stream_profile", &samples::account_with_stream_profile()),
        written_as("identity_keys", &samples::account_with_identity_keys()),
        written_as("portal", &samples::account_of_portal()),
        written(&samples::account_group()),
        written(&samples::audit_entry()),
        written(&samples::account_addresses()),
        written_as("live_form", &samples::account_addresses_of_panel()),
        written(&samples::channel()),
        written_as("udp_output", &samples::channel_with_udp_output()),
        written_as("adult", &samples::channel_of_adult_streams()),
        written_as("guide_offset", &samples::channel_with_guide_offset()),
        written_as("further_guides", &samples::channel_with_further_guides()),
        written_as("detached", &samples::detached_channel()),
        written(&samples::cluster_authority()),
        written(&samples::node_certificate()),
        written(&samples::sealed_keys()),
        written(&samples::join_ticket()),
        written(&ClusterVersion { version: 2 }),
        written(&samples::group()),
        written_as("position", &samples::ordered_group()),
        written(&samples::guide_channel()),
        written(&samples::guide_alias()),
        written(&samples::guide_marks()),
        written(&samples::guide_source()),
        written_as("schedule", &samples::guide_source_with_schedule()),
        written_as("times", &samples::guide_source_with_times()),
        written(&samples::guide_state()),
        written_as("zone", &samples::guide_state_in_zone()),
        written(&samples::lineup()),
        written_as("adult", &samples::adult_group()),
        written(&samples::personal_playlist()),
        written(&samples::plugin_value()),
        written(&samples::refresh()),
        written(&samples::server_group()),
        written(&samples::server_keys()),
        written(&samples::login()),
        written(&samples::profile_info()),
        written(&samples::notice()),
        written(&samples::dismissed_notices()),
        written(&samples::recording()),
        written_as("followed", &samples::recording_of_a_rule()),
        written_as("rules", &samples::recording_of_two_rules()),
        written_as("parts", &samples::recording_of_two_nodes()),
        written(&samples::left_files()),
        written(&samples::recording_rule()),
        written_as("weekly", &samples::weekly_recording_rule()),
        written_as("conditions", &samples::recording_rule_with_conditions()),
        written_as("zone", &samples::weekly_recording_rule_in_zone()),
        written(&samples::rule_memory()),
        written(&samples::output_profile()),
        written(&samples::service_key()),
        written(&samples::setting()),
        written(&samples::stream(1)),
        written_as("adult", &samples::adult_stream()),
        written_as("guide_offset", &samples::stream_with_guide_offset()),
        written_as("details", &samples::stream_with_details()),
        written(&samples::stream_ids()),
        written(&samples::stream_profile()),
        written_as("open", &samples::open_stream_profile()),
        written(&samples::user()),
        written_as("end", &samples::user_with_an_end()),
        written_as("grants", &samples::user_with_grants()),
        written_as("hours", &samples::user_with_hours()),
        written(&samples::user_group()),
        written(&samples::health()),
        written_as("groups", &samples::health_with_groups()),
        written(&LogPosition::beginning(uuid::Uuid::from_u128(0x10c), 7)),
        written(&samples::logo()),
        written(&samples::tuner_device()),
        written(&samples::undo()),
        written(&samples::undo_part()),
        written_as("lineups", &samples::undo_part_of_lineups()),
        written_as("titles", &samples::undo_part_of_titles()),
        written(&samples::user_agent()),
        written(&samples::title()),
        written_as("reasons", &samples::title_of_reasons()),
        written(&samples::title_details()),
        written(&samples::episode()),
        written(&samples::vod_category()),
        written(&samples::account_category()),
        written(&samples::vod_sync()),
        written(&samples::title_favorites()),
        written_as("progress", &samples::watch_progress()),
    ]
}

fn hex(bytes: &[u8]) -> String {
    HEXLOWER.encode(bytes)
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

/// Encodes a record as this version writes it.
fn written<T: Record>(record: &T) -> Value {
    let mut bytes = vec![T::VERSION];
    bytes.extend(rmp_serde::to_vec_named(record).unwrap());
    let says = serde_json::to_value(record).unwrap();
    json!({ "collection": T::COLLECTION, "version": T::VERSION, "bytes": hex(&bytes), "says": says })
}

/// Encodes another record of a type, for values that the first one cannot have as well.
fn written_as<T: Record>(case: &str, record: &T) -> Value {
    let mut line = written(record);
    line["case"] = case.into();
    line
}

/// Returns whether two lines are of the same type, version and case.
fn is_same(one: &Value, other: &Value) -> bool {
    ["collection", "version", "case"].iter().all(|it| one[*it] == other[*it])
}

fn reads<T: Record>(line: &Value) {
    let record: T = storage::decode(&bytes(line["bytes"].as_str().unwrap())).unwrap();
    let says = serde_json::to_value(&record).unwrap();
    // Back-ups contain records as JSON.
    let again: T = serde_json::from_slice(&serde_json::to_vec(&record).unwrap()).unwrap();
    assert_eq!(written(&again), written(&record), "{} differs after a back-up", T::COLLECTION);
    // Later fields have their defaults; all others are unchanged.
    assert!(contains(&says, &line["says"]), "{}: {says} has not all of {}", T::COLLECTION, line["says"]);
}

/// Returns whether a value is another one, apart from fields that only the first one has.
fn contains(now: &Value, then: &Value) -> bool {
    match (now, then) {
        (Value::Object(now), Value::Object(then)) => {
            then.iter().all(|(name, value)| now.get(name).is_some_and(|it| contains(it, value)))
        }
        (Value::Array(now), Value::Array(then)) => {
            now.len() == then.len() && now.iter().zip(then).all(|(now, then)| contains(now, then))
        }
        _ => now == then,
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
            AccountGroup::COLLECTION => reads::<AccountGroup>(line),
            AddressRecord::COLLECTION => reads::<AddressRecord>(line),
            AuditEntry::COLLECTION => reads::<AuditEntry>(line),
            Channel::COLLECTION => reads::<Channel>(line),
            ClusterAuthority::COLLECTION => reads::<ClusterAuthority>(line),
            NodeCertificate::COLLECTION => reads::<NodeCertificate>(line),
            SealedKeys::COLLECTION => reads::<SealedKeys>(line),
            JoinTicket::COLLECTION => reads::<JoinTicket>(line),
            ClusterVersion::COLLECTION => reads::<ClusterVersion>(line),
            Group::COLLECTION => reads::<Group>(line),
            Lineup::COLLECTION => reads::<Lineup>(line),
            GuideChannel::COLLECTION => reads::<GuideChannel>(line),
            GuideAlias::COLLECTION => reads::<GuideAlias>(line),
            GuideMarks::COLLECTION => reads::<GuideMarks>(line),
            GuideSource::COLLECTION => reads::<GuideSource>(line),
            GuideState::COLLECTION => reads::<GuideState>(line),
            PersonalPlaylist::COLLECTION => reads::<PersonalPlaylist>(line),
            PluginValue::COLLECTION => reads::<PluginValue>(line),
            RefreshRecord::COLLECTION => reads::<RefreshRecord>(line),
            ServerGroup::COLLECTION => reads::<ServerGroup>(line),
            ServerKeys::COLLECTION => reads::<ServerKeys>(line),
            DeviceLogin::COLLECTION => reads::<DeviceLogin>(line),
            CoreSetting::COLLECTION => reads::<CoreSetting>(line),
            ProfileInfo::COLLECTION => reads::<ProfileInfo>(line),
            Notice::COLLECTION => reads::<Notice>(line),
            DismissedNotices::COLLECTION => reads::<DismissedNotices>(line),
            Recording::COLLECTION => reads::<Recording>(line),
            LeftFiles::COLLECTION => reads::<LeftFiles>(line),
            RecordingRule::COLLECTION => reads::<RecordingRule>(line),
            RuleMemory::COLLECTION => reads::<RuleMemory>(line),
            OutputProfile::COLLECTION => reads::<OutputProfile>(line),
            Stream::COLLECTION => reads::<Stream>(line),
            StreamProfile::COLLECTION => reads::<StreamProfile>(line),
            User::COLLECTION => reads::<User>(line),
            UserGroup::COLLECTION => reads::<UserGroup>(line),
            StreamHealth::COLLECTION => reads::<StreamHealth>(line),
            LogPosition::COLLECTION => reads::<LogPosition>(line),
            Logo::COLLECTION => reads::<Logo>(line),
            TunerDevice::COLLECTION => reads::<TunerDevice>(line),
            UndoEntry::COLLECTION => reads::<UndoEntry>(line),
            StreamIdPage::COLLECTION => reads::<StreamIdPage>(line),
            UndoPart::COLLECTION => reads::<UndoPart>(line),
            UserAgent::COLLECTION => reads::<UserAgent>(line),
            Title::COLLECTION => reads::<Title>(line),
            TitleDetails::COLLECTION => reads::<TitleDetails>(line),
            Episode::COLLECTION => reads::<Episode>(line),
            VodCategory::COLLECTION => reads::<VodCategory>(line),
            AccountCategory::COLLECTION => reads::<AccountCategory>(line),
            VodSync::COLLECTION => reads::<VodSync>(line),
            TitleFavorites::COLLECTION => reads::<TitleFavorites>(line),
            ServiceKey::COLLECTION => reads::<ServiceKey>(line),
            other => panic!("unknown collection {other}"),
        }
    }
    // This version has its entries too.
    for now in now() {
        let is_present = lines.iter().any(|it| is_same(it, &now));
        assert!(is_present, "no golden record of {} {} {}", now["collection"], now["version"], now["case"]);
    }
}

#[test]
fn every_kind_of_change_that_can_be_undone_has_a_golden_record() {
    // A new kind does not compile here: it needs a golden record of its own.
    let number = |change: &UndoChange| match change {
        UndoChange::ChannelEdited { .. } => 0,
        UndoChange::ChannelCreated(_) => 1,
        UndoChange::ChannelDeleted(_) => 2,
        UndoChange::GroupCreated(_) => 3,
        UndoChange::GroupDeleted(_) => 4,
        UndoChange::LogoCreated(_) => 5,
        UndoChange::LogoDeleted(_) => 6,
        UndoChange::StreamCreated(_) => 7,
        UndoChange::StreamDeleted(_) => 8,
        UndoChange::GuideAliasCreated(_) => 9,
        UndoChange::GuideAliasDeleted(_) => 10,
        UndoChange::LineupEdited { .. } => 11,
        UndoChange::TitlesChanged { .. } => 12,
    };
    let parts = records().into_iter().filter(|it| it["collection"] == UndoPart::COLLECTION);
    let mut found: Vec<i32> = parts
        .map(|it| storage::decode::<UndoPart>(&bytes(it["bytes"].as_str().unwrap())).unwrap())
        .flat_map(|it| it.changes.iter().map(number).collect::<Vec<_>>())
        .collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, (0..=12).collect::<Vec<_>>());
}

/// Writes a record that cannot be read as a refresh.
#[derive(Serialize, Deserialize)]
struct Unreadable {
    id: u32,
}

impl Record for Unreadable {
    const COLLECTION: &'static str = RefreshRecord::COLLECTION;
    const SHARING: Sharing = Sharing::Local;

    fn id(&self) -> u32 {
        self.id
    }
}

/// Sets such a record aside.
#[derive(Serialize, Deserialize)]
struct MayBeMissed {
    id: u32,
    message: String,
}

impl Record for MayBeMissed {
    const COLLECTION: &'static str = RefreshRecord::COLLECTION;
    const SHARING: Sharing = Sharing::Local;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id
    }
}

#[test]
fn a_store_of_the_second_format_opens_as_a_crash_left_it() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&golden("store-2.bin"), folder.path());
    let open = || Store::open(&folder.path().join("store"), &folder.path().join("key"), schema()).unwrap();
    for _ in 0..2 {
        let store = open();
        assert_eq!(store.collection::<Account>().all().unwrap(), [samples::account()]);
        assert_eq!(store.collection::<Channel>().all().unwrap(), [samples::channel()]);
        assert_eq!(
            store.collection::<CoreSetting>().all().unwrap(),
            [samples::setting(), samples::long_setting()]
        );
        assert_eq!(
            store.collection::<Stream>().all().unwrap(),
            (1..=250).map(samples::stream).collect::<Vec<_>>()
        );
        assert_eq!(store.set_aside(), [format!("record 9 of {}", RefreshRecord::COLLECTION)]);
    }
    open().write_blocking(|write| write.put(&samples::stream(251))).unwrap();
}

#[test]
fn a_store_of_the_first_version_opens() {
    let folder = tempfile::tempdir().unwrap();
    unpack(&golden("store-1.bin"), folder.path());
    let store = Store::open(&folder.path().join("store"), &folder.path().join("key"), schema()).unwrap();
    assert_eq!(store.collection::<Account>().all().unwrap(), [samples::account()]);
    assert_eq!(store.collection::<Channel>().all().unwrap(), [samples::channel()]);
    assert_eq!(
        store.collection::<Channel>().one_by("uuid", samples::channel().uuid.as_bytes()).unwrap(),
        Some(samples::channel())
    );
    assert_eq!(
        store.collection::<Stream>().all().unwrap(),
        (1..=250).map(samples::stream).collect::<Vec<_>>()
    );
    store.write_blocking(|write| write.put(&samples::stream(251))).unwrap();
}

/// The passphrase of golden back-ups.
fn passphrase() -> BackupSecret {
    BackupSecret::Passphrase(Secret::new("correct horse"))
}

/// Writes the records of the golden stores.
fn fill(store: &Store) {
    let fill = |write: &mut storage::Write<'_>| {
        write.put(&samples::account())?;
        write.put(&samples::channel())?;
        write.put(&samples::group())?;
        write.put(&samples::refresh())?;
        write.put(&samples::server_keys())?;
        write.put(&samples::setting())?;
        write.put(&samples::long_setting())?;
        write.put(&samples::stream_profile())?;
        write.put(&samples::user())
    };
    store.write_blocking(fill).unwrap();
    let mut bulk = store.bulk_write::<Stream>(2).unwrap();
    (1..=250).try_for_each(|id| bulk.put(&samples::stream(id))).unwrap();
    bulk.commit(|_, _| Ok::<_, storage::Error>(())).unwrap();
}

/// Holds T-bak.1: back-ups of every released version stay here and are never written again.
#[test]
fn a_back_up_of_each_version_restores_every_record() {
    let folder = tempfile::tempdir().unwrap();
    let (store, key) = (folder.path().join("store"), folder.path().join("key"));
    let archive = Archive::open(&golden("backup-1.tar.gz")).unwrap().unlock(&passphrase()).unwrap();
    let mut no_files = |_: &str, _: &str, _: &[u8]| panic!("the back-up has no files");
    archive.restore(&store, &key, &schema(), &mut no_files).unwrap();
    let store = Store::open(&store, &key, schema()).unwrap();
    assert_eq!(store.collection::<Account>().all().unwrap(), [samples::account()]);
    assert_eq!(store.collection::<Channel>().all().unwrap(), [samples::channel()]);
    assert_eq!(store.collection::<Group>().all().unwrap(), [samples::group()]);
    assert_eq!(
        store.collection::<CoreSetting>().all().unwrap(),
        [samples::setting(), samples::long_setting()]
    );
    assert_eq!(
        store.collection::<Stream>().all().unwrap(),
        (1..=250).map(samples::stream).collect::<Vec<_>>()
    );
    assert_eq!(store.collection::<User>().all().unwrap(), [samples::user()]);
    store.write_blocking(|write| write.put(&samples::stream(251))).unwrap();
}

#[test]
#[ignore = "writes the golden files of this version"]
fn write() {
    let now = now();
    let mut lines = if golden("records.json").exists() { records() } else { Vec::new() };
    for line in now {
        if !lines.iter().any(|it| is_same(it, &line)) {
            lines.push(line);
        }
    }
    fs::write(golden("records.json"), serde_json::to_string_pretty(&lines).unwrap() + "\n").unwrap();
    log::write();
    if !golden("backup-1.tar.gz").exists() {
        let store = Store::temporary(schema()).unwrap();
        fill(&store);
        let mut file = File::create(golden("backup-1.tar.gz")).unwrap();
        create_backup(&store, &[], &passphrase(), 1_700_000_000_000, &mut file).unwrap();
    }
    if golden("store-2.bin").exists() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open =
        |schema| Store::open(&folder.path().join("store"), &folder.path().join("key"), schema).unwrap();
    open(Schema::new().with::<Unreadable>())
        .write_blocking(|write| write.put(&Unreadable { id: 9 }))
        .unwrap();
    assert_eq!(open(Schema::new().with::<MayBeMissed>()).set_aside().len(), 1);
    let store = open(schema());
    fill(&store);
    // Some blocks are on the disk and belong to no commit when the files are read.
    let mut unfinished = store.bulk_write::<Stream>(3).unwrap();
    let of_another = |id: u32| Stream { account: AccountId(3), ..samples::stream(id) };
    (1_001..=3_050).try_for_each(|id| unfinished.put(&of_another(id))).unwrap();
    pack(folder.path(), &golden("store-2.bin"));
}

/// Packs all files of a folder into one compressed file. Databases are mostly zeros.
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
        flate2::write::DeflateEncoder::new(File::create(into).unwrap(), flate2::Compression::best());
    encoder.write_all(&rmp_serde::to_vec(&files).unwrap()).unwrap();
    encoder.finish().unwrap();
}

fn unpack(from: &Path, folder: &Path) {
    let mut bytes = Vec::new();
    flate2::read::DeflateDecoder::new(File::open(from).unwrap()).read_to_end(&mut bytes).unwrap();
    let files: BTreeMap<String, Vec<u8>> = rmp_serde::from_slice(&bytes).unwrap();
    for (name, bytes) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }
}
