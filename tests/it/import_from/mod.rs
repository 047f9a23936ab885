//! `headwater import-from`: a household moves to the gateway, and goes on as before.

mod export;
mod interface;
mod titles;

use std::path::PathBuf;
use std::time::Duration;

use domain::account::Account;
use domain::channel::Channel;
use domain::group::Group;
use domain::stream::Stream;
use domain::user::User;
use serde_json::json;
use storage::Store;
use tempfile::TempDir;

use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;

/// The uuid of the channel *News* at the service that the household leaves.
const NEWS_UUID: &str = "a7ff78a1-58a7-458f-9878-8178c06af1b4";
const NEWS: &str = "/live/anna/news.ts";
const BACKUP: &str = "/live/anna/backup.ts";
/// The password of the user *anna* there.
const PASSWORD: &str = "a longer one for anna";
/// Its hash: `hashlib.pbkdf2_hmac("sha256", password, b"NaCl5alt", 1000)`.
const HASH: &str = "pbkdf2_sha256$1000$NaCl5alt$4u7Nd4SozGhPeOrV0hkZpNOG+iDso/n+VnD25JWHr1w=";
const API_KEY: &str = "r1ZcaT8fq_7NNhcWET0BjNZhqETF26XZBTDwuLSPnyAXJ1AVoIKTFg";

/// Longest time of an import, for one with a million streams on a busy machine.
const IMPORT_TIME_MAX: Duration = Duration::from_secs(300);

/// A data folder, and a folder for sources.
struct Data {
    folder: TempDir,
}

impl Data {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Writes a source, and returns its path.
    fn source(&self, name: &str, bytes: impl AsRef<[u8]>) -> String {
        let path = self.folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// Runs the command on this folder; returns the exit code and the output.
    async fn import(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.import_with(&[], arguments).await
    }

    /// Runs the command with these environment variables.
    async fn import_with(&self, variables: &[&str], arguments: &[&str]) -> (Option<i32>, String) {
        let root = self.root();
        let command = [&["/usr/bin/env"][..], variables].concat();
        let arguments = [&["import-from"][..], arguments, &["--data-dir", root.to_str().unwrap()]].concat();
        Binary::start_with(&command, &arguments).outcome_within(IMPORT_TIME_MAX).await
    }

    /// Imports, and fails unless that works.
    async fn imported(&self, source: &str) -> String {
        let (code, output) = self.import(&[source]).await;
        assert_eq!(code, Some(0), "{output}");
        output
    }

    async fn gateway(&self) -> TestGateway {
        Setup::new().folder(&self.root()).start().await
    }

    /// Opens the store and returns a value from it.
    async fn read<R: Send + 'static>(&self, read: impl FnOnce(&Store) -> R + Send + 'static) -> R {
        let root = self.root();
        let open = move || {
            let store =
                Store::open(&root.join("store"), &root.join("key"), storage::records::schema()).unwrap();
            let value = read(&store);
            store.close();
            value
        };
        tokio::task::spawn_blocking(open).await.unwrap()
    }
}

fn provider() -> Provider {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(BACKUP).plays(Picture::new("backup"));
    provider
}

/// Numbers of records in a store.
fn counts(store: &Store) -> [usize; 5] {
    [
        store.collection::<Group>().len(),
        store.collection::<Account>().len(),
        store.collection::<Stream>().len(),
        store.collection::<Channel>().len(),
        store.collection::<User>().len(),
    ]
}

/// Watches the channel under the address that its viewers have stored, until this stream plays.
async fn watch_news(gateway: &TestGateway, stream: &str) {
    let player = Player::watch(gateway.address, &format!("/proxy/ts/stream/{NEWS_UUID}")).await;
    player.sees(stream).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_household_moves_with_its_ids_passwords_and_addresses() {
    let (provider, data) = (provider(), Data::new());
    let source = data.source("export.sql", export::copied(&provider));
    let report = data.imported(&source).await;
    for part in [
        "Imported:",
        "channels: 2 taken",
        "streams: 3 taken",
        "users: 2 taken",
        "password of user kid",
        "guide sources: 1 taken",
        "1 recordings",
    ] {
        assert!(report.contains(part), "{part} is missing in:\n{report}");
    }
    assert!(
        !report.contains("hunter2") && !report.contains(API_KEY) && !report.contains("NaCl5alt"),
        "{report}"
    );

    let gateway = data.gateway().await;
    let anna = Api::stranger(&gateway).login("anna", PASSWORD).await;
    let user = anna.get("/api/accounts/users/me/").await.body;
    assert_eq!((&user["id"], &user["user_level"]), (&json!(7), &json!(10)), "{user}");
    let channel = anna.get("/api/channels/channels/11/").await.body;
    assert_eq!(
        (&channel["uuid"], &channel["channel_number"], &channel["streams"]),
        (&json!(NEWS_UUID), &json!(6.5), &json!([22, 21])),
        "{channel}"
    );
    let by_key = Api::stranger(&gateway).key(API_KEY).get("/api/accounts/users/me/").await;
    assert_eq!((by_key.status, &by_key.body["username"]), (200, &json!("anna")));
    // The first stream of the channel is down.
    provider.path(BACKUP).answers(crate::support::upstream::MockResponse::status(404));
    watch_news(&gateway, "news").await;
    let profile = anna.get("/api/channels/profiles/1/").await.body;
    assert_eq!((&profile["name"], &profile["channels"]), (&json!("Kids"), &json!([11])), "{profile}");
    let live = fetch(gateway.address, Request::get("/live/kid/kid-tv/12.ts").method("HEAD")).await;
    assert_eq!(live.status(), 404, "not in the lineup of this user");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_imported_password_hash_is_replaced_at_the_first_login() {
    let (provider, data) = (provider(), Data::new());
    data.imported(&data.source("export.sql", export::copied(&provider))).await;
    let gateway = data.gateway().await;
    let hash = || {
        let users = gateway.models().users.load();
        users.get(7).unwrap().password.as_ref().unwrap().expose().to_owned()
    };
    assert_eq!(hash(), HASH);
    assert_eq!(Api::stranger(&gateway).token("anna", "wrong").await.status, 401);
    assert_eq!(hash(), HASH);
    let first = Api::stranger(&gateway).login("anna", PASSWORD).await;
    assert!(hash().starts_with("$argon2id$"), "{}", hash());
    let again = Api::stranger(&gateway).login("anna", PASSWORD).await;
    for api in [first, again] {
        assert_eq!(api.get("/api/accounts/users/me/").await.status, 200, "both logins are valid");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_writes_nothing_and_reports_the_same() {
    let (provider, data) = (provider(), Data::new());
    let source = data.source("export.sql", export::copied(&provider));
    let (code, dry) = data.import(&[&source, "--dry-run"]).await;
    assert_eq!(code, Some(0), "{dry}");
    assert!(!data.root().exists(), "without a store, none is created");
    let report = data.imported(&source).await;
    let lines = |it: &str| it.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    assert!(dry.starts_with("Nothing was written."), "{dry}");
    assert_eq!(lines(&dry), lines(&report));
    let before = data.read(|store| (counts(store), store.version())).await;
    let (code, again) = data.import(&[&source, "--dry-run"]).await;
    assert_eq!(code, Some(0), "{again}");
    assert!(again.contains("channels: 0 taken, 2 already there"), "{again}");
    assert_eq!(data.read(|store| (counts(store), store.version())).await, before);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_import_adds_only_what_is_missing() {
    let (provider, data) = (provider(), Data::new());
    let whole = export::copied(&provider);
    // Without the last stream, which the second channel plays, and without that channel.
    let is_missing =
        |line: &&str| !line.starts_with("23\t") && !line.starts_with("12\t") && !line.contains("\t23\t");
    let part: String = whole.lines().filter(is_missing).map(|line| format!("{line}\n")).collect();
    data.imported(&data.source("part.sql", part)).await;
    let first = data.read(counts).await;
    data.imported(&data.source("whole.sql", &whole)).await;
    let second = data.read(counts).await;
    assert_eq!(second, [first[0], first[1], first[2] + 1, first[3] + 1, first[4]]);
    let report = data.imported(&data.source("inserted.sql", export::inserted(&provider))).await;
    assert_eq!(data.read(counts).await, second, "{report}");
    let ids = data.read(|store| store.collection::<Channel>().ids()).await;
    assert_eq!(ids, [11, 12]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_export_with_insert_statements_or_compressed_is_imported_alike() {
    let provider = provider();
    let mut stores = Vec::new();
    for (name, bytes) in [
        ("copied.sql", export::copied(&provider).into_bytes()),
        ("inserted.sql", export::inserted(&provider).into_bytes()),
        ("copied.sql.gz", export::compressed(&export::copied(&provider))),
    ] {
        let data = Data::new();
        data.imported(&data.source(name, bytes)).await;
        stores.push(
            data.read(|store| {
                let mut channels = store.collection::<Channel>().all().unwrap();
                // The time of the import.
                channels.iter_mut().for_each(|it| (it.created_at, it.updated_at) = (0, 0));
                let streams = store.collection::<Stream>().all().unwrap();
                let users = store.collection::<User>().all().unwrap();
                let users: Vec<_> =
                    users.into_iter().map(|it| (it.id, it.username, it.password, it.level)).collect();
                (channels, streams, users)
            })
            .await,
        );
    }
    assert_eq!(stores[0], stores[1]);
    assert_eq!(stores[0], stores[2]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_cannot_be_read_changes_nothing_and_says_what_to_do() {
    let (provider, data) = (provider(), Data::new());
    let whole = export::copied(&provider);
    let half = &whole[..whole.find("\\.\n\nCOPY public.m3u_m3uaccount ").unwrap()];
    for (name, bytes, part) in [
        ("half.sql", half.as_bytes(), "truncated"),
        ("custom.dump", b"PGDMP\x01\x0e\x00", "pg_restore --no-owner --file=export.sql"),
        ("other.sql", b"CREATE TABLE public.other (\n    id integer\n);\n", "none of the expected tables"),
        ("latin.sql", b"SET client_encoding = 'LATIN1';\n", "--encoding=UTF8"),
    ] {
        let (code, output) = data.import(&[&data.source(name, bytes)]).await;
        assert_eq!(code, Some(1), "{output}");
        assert!(output.contains(part), "{output}");
        assert_eq!(data.read(counts).await, [0, 1, 0, 0, 0], "{name}");
    }
    let (code, output) = data.import(&["/does/not/exist.sql"]).await;
    assert!(code == Some(1) && output.contains("/does/not/exist.sql"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_gateway_has_to_be_stopped_first() {
    let (provider, data) = (provider(), Data::new());
    let source = data.source("export.sql", export::copied(&provider));
    let _gateway = data.gateway().await;
    let (code, output) = data.import(&[&source]).await;
    assert_eq!(code, Some(1), "{output}");
    assert!(output.contains("stop the gateway"), "{output}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_beside_a_running_gateway_is_refused_at_once_and_disturbs_nothing() {
    let (provider, data) = (provider(), Data::new());
    data.imported(&data.source("export.sql", export::copied(&provider))).await;
    let more = data.source("more.sql", export::large(&provider, 100));
    let root = data.root().display().to_string();
    let mut program = Binary::start(&["serve", "--data-dir", &root]);
    let address = program.address().await;
    let admin = Api::stranger_at(address).login("anna", PASSWORD).await;
    let n_streams = async || admin.get("/api/channels/streams/?page_size=1").await.body["count"].clone();
    let player = Player::watch(address, &format!("/proxy/ts/stream/{NEWS_UUID}")).await;
    player.sees("backup").await;
    // Refused before the source is looked at.
    for arguments in [&[more.as_str()][..], &[more.as_str(), "--dry-run"], &["/does/not/exist.sql"]] {
        let (code, output) = data.import(arguments).await;
        assert_eq!(code, Some(1), "{output}");
        let sentence = format!("a gateway is running on {root}; stop the gateway, and run this again");
        assert!(output.contains(&sentence), "{output}");
    }
    assert_eq!(n_streams().await, json!(3));
    player.more_bytes(500_000).await;
    assert!(player.is_watching());
    drop(player);
    program.signal("TERM");
    assert!(program.ended().await.success());
    data.imported(&more).await;
    assert_eq!(data.read(counts).await[2], 103);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_household_is_imported_in_several_commits_and_can_be_repeated() {
    const N_STREAMS: usize = 21_000;
    let (provider, data) = (provider(), Data::new());
    let source = data.source("large.sql", export::large(&provider, N_STREAMS));
    data.imported(&source).await;
    let before = data.read(counts).await;
    assert_eq!(before[2], N_STREAMS + 3);
    data.imported(&source).await;
    assert_eq!(data.read(counts).await, before);
    let gateway = data.gateway().await;
    watch_news(&gateway, "backup").await;
}

/// These take minutes.
mod night {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_household_with_a_million_streams_moves() {
        const N_STREAMS: usize = 1_000_000;
        let (provider, data) = (provider(), Data::new());
        let source = data.source("million.sql", export::large(&provider, N_STREAMS));
        data.imported(&source).await;
        assert_eq!(data.read(counts).await[2], N_STREAMS + 3);
        let gateway = data.gateway().await;
        watch_news(&gateway, "backup").await;
    }
}
