//! `headwater serve` and the commands for its data folder, with the real binary.

use std::collections::BTreeSet;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use domain::account::{Account, PlaylistLocation};
use domain::stream::Stream;
use domain::user::{User, UserLevel};
use serde_json::json;
use storage::Store;
use storage::records::schema;

use crate::data_folder::Data;
use crate::support::api::Api;
use crate::support::binary::Binary;
use crate::support::client::Player;
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::{WAIT_MAX, eventually};

const NEWS: &str = "/live/anna/news.ts";
const FILM: &str = "/live/anna/film.ts";

/// Returns the stored users of a folder that no program uses.
async fn stored_users(data: Data) -> Vec<User> {
    tokio::task::spawn_blocking(move || data.open().collection::<User>().all().unwrap()).await.unwrap()
}

async fn set_up() -> (Provider, Data) {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    provider.path(FILM).plays(Picture::new("film"));
    let list = provider.playlist(&[("news", "News", NEWS), ("film", "Film", FILM)]);
    let data = Data::with_list(list).await;
    (provider, data)
}

/// Truncates the database.
fn harm(data: &Data) {
    let is_database = |it: &PathBuf| it.join("db").exists();
    let folders = std::fs::read_dir(data.store()).unwrap().map(|it| it.unwrap().path());
    let database = folders.into_iter().find(is_database).unwrap().join("db");
    let bytes = std::fs::read(&database).unwrap();
    std::fs::write(&database, &bytes[..bytes.len() / 2]).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stored_channels_play_again_under_the_same_urls_after_a_kill() {
    let (provider, data) = set_up().await;
    let mut paths = None;
    for _ in 0..2 {
        let mut program = data.run(&["serve"]);
        let address = program.address().await;
        let found = program.streams().await;
        assert_eq!(found.len(), 2);
        assert_eq!(paths.get_or_insert(found.clone()), &found, "URLs are permanent");
        let player = Player::watch(address, &found[0]).await;
        player.sees("news").await;
        program.signal("KILL");
        assert_eq!(program.ended().await.code(), None);
        eventually("the provider's connections to close", || provider.open() == 0).await;
    }
    let (code, reply) = data.ran(&["check"]).await;
    assert!(code == Some(0) && reply.contains("store OK") && reply.contains("2 channels"), "{reply}");
}

/// Enough entries that the program can be killed during the import.
const N_ENTRIES: usize = 6_000;

/// Returns a playlist with the version in every name.
fn version(number: usize) -> String {
    let entry = |it: usize| format!("#EXTINF:-1,Channel {it} v{number}\nhttp://tv.example/{it}.ts\n");
    format!("#EXTM3U\n{}", (0..N_ENTRIES).map(entry).collect::<String>())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_kill_during_an_import_leaves_the_old_list_or_the_new_one() {
    let (provider, data) = set_up().await;
    let list = data.folder.path().join("list.m3u");
    std::fs::write(&list, version(0)).unwrap();
    let mut account = None;
    // Each round kills at another moment; the last round runs to its end.
    let moments = ["fetching", "parsing", "comparing", "writing", "done"];
    for (round, moment) in moments.into_iter().enumerate() {
        let mut program = data.run(&["serve"]);
        let address = program.address().await;
        let player = Player::watch(address, &program.streams().await[0]).await;
        player.sees("news").await;
        let admin = Api::stranger_at(address).become_first_admin().await;
        std::fs::write(&list, version(round)).unwrap();
        let path = match account {
            Some(id) => format!("/api/m3u/refresh/{id}/"),
            None => {
                let new = json!({ "name": "large", "file_path": list });
                let made = admin.post("/api/m3u/accounts/", new).await;
                assert_eq!(made.status, 201, "{made:?}");
                let id = made.body["id"].as_u64().unwrap();
                account = Some(id);
                format!("/api/m3u/refresh/{id}/")
            }
        };
        let asked = admin.post(&path, json!({})).await;
        assert_eq!(asked.status, 202, "{asked:?}");
        // If the phase ends before it is observed, that moment is as good.
        let order = |it: &str| moments.iter().position(|known| *known == it);
        loop {
            let phase = admin.get(&path).await.body["phase"].as_str().map(str::to_owned);
            if phase.as_deref().and_then(order) >= order(moment) {
                break;
            }
        }
        program.signal("KILL");
        program.ended().await;
        eventually("the provider's connections to close", || provider.open() == 0).await;
        let (store, key) = (data.store(), data.key());
        let id = account.unwrap();
        let names = tokio::task::spawn_blocking(move || {
            let store = Store::open(&store, &key, schema()).unwrap();
            let mut names = Vec::new();
            store.collection::<Stream>().for_each_of(id, |it| names.push(it.name().to_owned())).unwrap();
            names
        });
        let names = names.await.unwrap();
        let versions: BTreeSet<_> = names.iter().filter_map(|it| it.rsplit(' ').next()).collect();
        assert!(versions.len() <= 1 && [0, N_ENTRIES].contains(&names.len()), "{moment}: {versions:?}");
        if moment == "done" {
            assert_eq!(versions.into_iter().collect::<Vec<_>>(), [format!("v{round}")]);
        }
    }
    let (code, reply) = data.ran(&["check"]).await;
    assert!(code == Some(0) && reply.contains("store OK"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_first_start_creates_its_folder_and_explains_how_to_create_a_user() {
    let data = Data::new();
    let mut program = data.run(&["serve"]);
    program.address().await;
    let next = format!("headwater --data-dir {} user add admin --superuser", data.root());
    eventually("the hint what to do next", || program.output().contains(&next)).await;
    let page = format!("http://{}/setup#", program.address().await);
    assert!(program.output().contains(&page), "{}", program.output());
    assert!(data.key().exists() && data.store().exists());
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));

    let arguments: Vec<_> = next.split_whitespace().skip(1).collect();
    let (code, reply) = Binary::start(&arguments).outcome().await;
    assert_eq!(code, Some(0), "{reply}");
    let program = data.run(&["serve"]);
    program.address().await;
    assert!(!program.output().contains("/setup"), "{}", program.output());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_log_of_the_start_tells_who_needs_no_credentials() {
    let said = async |settings: &[&str], expected: &[&str]| {
        let data = tempfile::tempdir().unwrap();
        let folder = data.path().display().to_string();
        let program = Binary::start(&[&["serve", "--data-dir", &folder], settings].concat());
        program.address().await;
        let output = program.output();
        for text in expected {
            assert!(output.contains(text), "{text}: {output}");
        }
    };
    let defaults = [
        "networks that need no credentials streams=loopback, private playlists=loopback, private metrics=loopback",
        "requests that a proxy forwards need credentials, because trusted_proxies is empty",
    ];
    said(&[], &defaults).await;
    let settings = [
        "--set",
        "trusted_proxies=192.0.2.7",
        "--stream-networks",
        "none",
        "--set",
        "network_access.tuner.connect=private",
    ];
    let expected = [
        "networks that need no credentials streams=none playlists=none",
        "only these networks may use the tuner networks=private",
        "the clients of these proxies are known by X-Forwarded-For or Forwarded trusted_proxies=192.0.2.7",
    ];
    said(&settings, &expected).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn store_commands_fail_with_one_line_while_a_gateway_runs() {
    let (_provider, data) = set_up().await;
    let program = data.run(&["serve"]);
    program.address().await;
    let new = data.folder.path().join("new").display().to_string();
    let commands: [&[&str]; 3] = [&["serve"], &["check"], &["store", "salvage", &new]];
    for command in commands {
        let (code, reply) = data.ran(command).await;
        assert_eq!(code, Some(1), "{command:?}: {reply}");
        assert_eq!(reply.lines().count(), 1, "{command:?}: {reply}");
        assert!(reply.contains("in use") && reply.contains(&data.root()), "{command:?}: {reply}");
    }
    assert!(!Path::new(&new).exists());
}

// Holds T-bak.4, except for a full disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unusable_data_folder_is_reported_in_one_line_before_a_port_is_bound() {
    type Harm = fn(&Data);
    let cases: [(Harm, &str); 5] = [
        (|data| std::fs::remove_file(data.key()).unwrap(), "is missing"),
        (|data| std::fs::write(data.key(), "something else\n").unwrap(), "is not a Headwater key file"),
        (
            |data| {
                // The key of another store.
                let other = Data::new();
                std::thread::scope(|it| it.spawn(|| drop(other.open())).join().unwrap());
                std::fs::copy(other.key(), data.key()).unwrap();
            },
            "key file",
        ),
        (harm, "headwater store salvage"),
        (
            |data| {
                std::fs::remove_dir_all(data.store()).unwrap();
                std::fs::write(data.store(), "").unwrap();
            },
            "--data-dir",
        ),
    ];
    for (harm, expected) in cases {
        let (_provider, data) = set_up().await;
        harm(&data);
        let (code, reply) = data.ran(&["serve"]).await;
        assert_eq!(code, Some(1), "{expected}: {reply}");
        assert_eq!(reply.lines().count(), 1, "{expected}: {reply}");
        assert!(reply.starts_with("headwater: ") && reply.contains(expected), "{expected}: {reply}");
        assert!(reply.contains(&data.root()) || expected == "key file", "{reply}");
    }
    // A path where even root cannot create a folder.
    let (code, reply) = Binary::start(&["serve", "--data-dir", "/sys/headwater"]).outcome().await;
    assert_eq!((code, reply.lines().count()), (Some(1), 1), "{reply}");
    assert!(reply.contains("/sys/headwater") && reply.contains("--data-dir"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn salvage_moves_readable_records_of_a_damaged_store_into_a_new_one_that_plays() {
    let (_provider, data) = set_up().await;
    // A database without its commit file: all records exist, but nothing proves that they are complete.
    let commit_file = std::fs::read_dir(data.store()).unwrap().map(|it| it.unwrap().path());
    let commit_file = commit_file.into_iter().find(|it| it.is_file() && !it.ends_with("lock")).unwrap();
    std::fs::remove_file(commit_file).unwrap();
    let (code, reply) = data.ran(&["check"]).await;
    assert!(code == Some(1) && reply.contains("store damaged"), "{reply}");
    assert_eq!(data.ran(&["serve"]).await.0, Some(1));

    let new = data.folder.path().join("new");
    let (code, reply) = data.ran(&["store", "salvage", &new.display().to_string()]).await;
    assert!(code == Some(0) && reply.contains("to use it, move"), "{reply}");
    std::fs::rename(data.store(), data.folder.path().join("old")).unwrap();
    std::fs::rename(new, data.store()).unwrap();
    let program = data.run(&["serve"]);
    let address = program.address().await;
    let paths = program.streams().await;
    Player::watch(address, &paths[1]).await.sees("film").await;
}

/// Returns the password that a command printed.
fn printed_password(reply: &str) -> &str {
    reply.lines().find_map(|it| it.strip_prefix("password: ")).unwrap_or_else(|| panic!("{reply}"))
}

/// Runs the user commands on this data folder.
async fn manage_users(data: &Data) {
    for (command, code, expected) in [
        (&["user", "add", "boss", "--superuser"][..], 0, "created user boss (admin)"),
        (&["user", "add", "Boss"], 1, "already exists"),
        (&["user", "add", "anna"], 0, "created user anna (viewer)"),
        (&["user", "list"], 0, "boss  (admin, superuser)  last login: never"),
        (&["user", "passwd", "ANNA", "--revoke-secrets"], 0, "changed the password of user ANNA"),
        (&["user", "passwd", "nobody"], 1, "there is no user nobody"),
        (&["user", "delete", "boss"], 1, "last active superuser"),
        (&["user", "delete", "anna"], 0, "deleted user anna"),
        (&["user", "delete", "anna"], 1, "there is no user anna"),
    ] {
        let (ended, reply) = data.ran(command).await;
        assert!(ended == Some(code) && reply.contains(expected), "{command:?}: {reply}");
        assert!(code == 0 || reply.lines().count() == 1, "{command:?}: {reply}");
    }
    let (_, reply) = data.ran(&["user", "list"]).await;
    assert!(reply.lines().count() == 1 && reply.contains("boss"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_commands_work_while_the_gateway_is_stopped() {
    let data = Data::new();
    let (code, reply) = data.ran(&["user", "list"]).await;
    assert!(code == Some(1) && reply.contains("there is no store"), "{reply}");
    manage_users(&data).await;
    // The socket of a killed gateway is left behind, and nobody listens.
    drop(UnixListener::bind(data.control_socket()).unwrap());
    assert_eq!(data.ran(&["user", "list"]).await.0, Some(0));
}

/// Holds T-login.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn user_commands_work_while_the_gateway_runs_and_take_effect_at_once() {
    // A longer path than the name of a socket can be.
    let data = Data { folder: tempfile::Builder::new().prefix(&"x".repeat(120)).tempdir().unwrap() };
    let mut program = data.run(&["serve"]);
    let gateway = Api::stranger_at(program.address().await);
    manage_users(&data).await;
    let mode = std::fs::metadata(data.control_socket()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let (_, reply) = data.ran(&["user", "add", "bert"]).await;
    let bert = gateway.login("bert", printed_password(&reply)).await;
    assert_eq!(bert.get("/api/accounts/users/me/").await.status, 200);
    let (_, changed) = data.ran(&["user", "passwd", "bert"]).await;
    assert_eq!(bert.get("/api/accounts/users/me/").await.status, 401, "the old login ended");
    assert_eq!(gateway.token("bert", printed_password(&reply)).await.status, 401);
    assert_eq!(gateway.token("bert", printed_password(&changed)).await.status, 200);
    assert!(!program.output().contains(printed_password(&changed)));

    let bert = gateway.login("bert", printed_password(&changed)).await;
    let (code, reply) = data.ran(&["keys", "rotate"]).await;
    assert!(code == Some(0) && reply.contains("log in again"), "{reply}");
    assert_eq!(bert.get("/api/accounts/users/me/").await.status, 401, "signed with the old key");
    let bert = gateway.login("bert", printed_password(&changed)).await;
    assert_eq!(bert.get("/api/accounts/users/me/").await.status, 200);
    let mut short = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"));
    short
        .args(["--data-dir", &data.root(), "user", "add", "weak", "--superuser"])
        .env("HEADWATER_PASSWORD", "short");
    let refused = tokio::task::spawn_blocking(move || short.output()).await.unwrap().unwrap();
    let refused = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(refused.contains("at least 10 characters"), "{refused}");

    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
    assert!(!data.control_socket().exists(), "removed at the stop");
    assert_eq!(data.ran(&["user", "list"]).await.0, Some(0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_is_created_once_with_a_given_or_generated_password() {
    let data = Data::new();
    let (code, reply) = data.ran(&["user", "add", "admin", "--superuser"]).await;
    let made = reply.lines().find_map(|it| it.strip_prefix("password: ")).map(str::to_owned);
    assert!(code == Some(0) && made.as_ref().is_some_and(|it| it.len() == 24), "{reply}");

    let line = ["--data-dir", &data.root(), "user", "add", "anna", "--level", "1", "--password-stdin"];
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_headwater"));
    let mut child = command
        .args(line)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"correct horse\r\nnot this\n").unwrap();
    let waiting = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = tokio::time::timeout(WAIT_MAX, waiting).await.unwrap().unwrap().unwrap();
    let reply = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success() && !reply.contains("correct horse") && !reply.contains("password:"),
        "{reply}"
    );

    for (name, expected) in [("Admin", "already"), ("a/b", "letters"), ("live", "choose another")] {
        let (code, reply) = data.ran(&["user", "add", name]).await;
        assert!(code == Some(1) && reply.contains(expected), "{name}: {reply}");
    }
    let (code, reply) = data.ran(&["user", "add", "bert", "--level", "5"]).await;
    assert!(code == Some(1) && reply.contains("0, 1 or 10"), "{reply}");

    let users = stored_users(data).await;
    let found: Vec<_> = users.iter().map(|it| (it.username.as_str(), it.level, it.is_superuser)).collect();
    assert_eq!(found, [("admin", UserLevel::Admin, true), ("anna", UserLevel::Standard, false)]);
    let hashes: Vec<_> = users.iter().filter_map(|it| it.password.as_ref()).map(|it| it.expose()).collect();
    assert!(hashes.len() == 2 && hashes.iter().all(|it| it.starts_with("$argon2id$")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_can_be_imported_repeatedly_and_another_list_does_not_replace_it() {
    let (data, lists) = (Data::new(), Data::new());
    let list = |text: &str| std::fs::write(lists.folder.path().join("tv.m3u"), text).unwrap();
    let path = lists.folder.path().join("tv.m3u").display().to_string();
    list(
        "#EXTM3U\n#EXTINF:-1,One\nhttp://a.example/1\n#EXTINF:-1,Lost\n#EXTINF:-1,Two\nhttp://a.example/2\n",
    );
    let (code, reply) = data.ran(&["import", &path, "--max-streams", "2"]).await;
    assert!(code == Some(0) && reply.contains("account tv: 2 entries: 2 new"), "{reply}");
    assert!(reply.contains("line 4: "), "{reply}");
    list("#EXTM3U\n#EXTINF:-1,One\nhttp://a.example/1\n#EXTINF:-1,Three\nhttp://a.example/3\n");
    let (code, reply) = data.ran(&["import", &path]).await;
    assert!(code == Some(0) && reply.contains("1 new, 0 changed, 1 no longer listed"), "{reply}");

    let other = data.folder.path().join("tv.m3u");
    std::fs::copy(&path, &other).unwrap();
    let other = other.display().to_string();
    for (arguments, expected) in [
        (vec!["import", &other], "another list"),
        (vec!["import", &other, "--account", "custom"], "custom streams"),
        (vec!["import", "/no/such/list.m3u"], "/no/such/list.m3u"),
    ] {
        let (code, reply) = data.ran(&arguments).await;
        assert!(code == Some(1) && reply.contains(expected), "{arguments:?}: {reply}");
        assert_eq!(reply.lines().count(), 1, "{arguments:?}: {reply}");
    }
    // A first import that fails leaves no account behind; the account of an earlier one stays.
    let empty = lists.folder.path().join("empty.m3u").display().to_string();
    std::fs::write(&empty, "#EXTM3U\n").unwrap();
    for list in [empty.as_str(), "http://127.0.0.1:9/list.m3u"] {
        let (code, reply) = data.ran(&["import", list]).await;
        assert!(code == Some(1) && reply.lines().count() == 1, "{reply}");
    }
    list("#EXTM3U\n");
    assert_eq!(data.ran(&["import", &path]).await.0, Some(1));
    let (code, reply) = data.ran(&["import", &other, "--account", "other"]).await;
    assert!(code == Some(0) && reply.contains("account other: 2 entries: 2 new"), "{reply}");

    let open = move || data.open().collection::<Account>().all().unwrap();
    let accounts = tokio::task::spawn_blocking(open).await.unwrap();
    let found: Vec<_> = accounts.iter().map(|it| (it.name.as_str(), it.profiles[0].max_streams)).collect();
    assert_eq!(found, [("custom", 0), ("tv", 2), ("other", 0)]);
    assert_eq!(accounts[1].list, PlaylistLocation::File(path));
}
