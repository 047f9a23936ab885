//! How fast do apps get a large catalogue, and how long does its export take?
//!
//! The real program has 125,000 films in 100 categories, and 20,000 series. One app lists the films: after the start, so that
//! the list is built, then again, compressed, with the entity tag that it got, and after changes of the catalogue. Then pages and searches of the REST
//! interface are requested one after the other. Then the films are exported into a new folder, and again without a change.
//!
//! `cargo bench --bench library -- [--films 125000] [--series 20000]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]

#[path = "support/client_pool.rs"]
#[expect(dead_code, reason = "this bench uses a part of it")]
mod client_pool;
#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench has no roles")]
mod options;
#[path = "support/process.rs"]
#[expect(dead_code, reason = "this bench measures memory and time only")]
mod process;
mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId, UserId, VodCategoryId};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use domain::user::{User, UserLevel};
use domain::vod::{
    AccountCategory, ExternalIds, Relation, RelationId, Title, TitleFacts, TitleId, TitleKind, VodCategory,
    uuid_of,
};
use serde_json::{Map, Value, json};
use storage::Store;

use self::client_pool::now;
use self::options::Options;
use self::process::{Process, free_port};
use self::support::percentile;

const N_CATEGORIES: u32 = 100;
/// A write takes a bounded number of records.
const TITLES_OF_A_WRITE: usize = 5_000;
const N_REQUESTS: usize = 20;
const N_PAGES: usize = 200;
const MIB: f64 = 1024.0 * 1024.0;
const LOGIN: &str = "username=anna&password=player";

fn main() {
    let options = Options::from_process();
    let (films, series) = (options.number("--films", 125_000), options.number("--series", 20_000));
    let folder = tempfile::tempdir().expect("a temporary directory");
    fill(folder.path(), films, series);
    let address = free_port();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
    command.arg("serve").arg("--data-dir").arg(folder.path()).args(["--log-level", "warn"]);
    command.args(["--player-listen", &address.to_string(), "--api-listen", "127.0.0.1:0"]);
    command.args(["--set", "public_url=https://tv.example"]);
    let server = Process::spawn(&mut command);
    while client_pool::fetch(address, "/healthz").is_none_or(|it| it.split(' ').nth(1) != Some("200")) {
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("memory of the program: {:.0} MiB", server.resident() as f64 / MIB);
    let lists = lists(address, films);
    println!("memory of the program with lists: {:.0} MiB", server.resident() as f64 / MIB);
    let pages = pages(address);
    let exports = exports(folder.path());
    let results =
        json!({ "films": films, "series": series, "lists": lists, "pages": pages, "exports": exports });
    support::record("library", results);
}

/// Creates the store.
fn fill(folder: &Path, films: u32, series: u32) {
    let store = folder.join("store");
    std::fs::create_dir_all(&store).expect("the folder can be written");
    let store = Store::open(&store, &folder.join("key"), storage::records::schema()).expect("a store");
    storage::seed(&store).expect("the store can be written");
    let write = |write: &mut storage::Write<'_>| {
        let list = PlaylistLocation::Url(SourceUrl::new("http://127.0.0.1:1/list.m3u"));
        let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
        let account = Account::new(AccountId(2), "Films", list, profile, 0);
        write.put(&Account { enable_vod: true, ..account })?;
        let root = User::new(UserId(2), "root", UserLevel::Admin, 0);
        let password = Some(services::auth::hash_password("correct horse"));
        write.put(&User { password, ..root })?;
        let anna = User::new(UserId(1), "anna", UserLevel::Streamer, 0);
        write.put(&User { player_password: Some(Secret::new("player")), ..anna })?;
        for n in 0..=N_CATEGORIES {
            let kind = if n == N_CATEGORIES { TitleKind::Series } else { TitleKind::Movie };
            let category = VodCategoryId(n + 1);
            write.put(&VodCategory { id: category, name: format!("Category {n}"), kind })?;
            write.put(&AccountCategory {
                id: n + 1,
                account: AccountId(2),
                category,
                kind,
                provider_ids: vec![n.to_string()],
                enabled: true,
                custom_properties: Map::new(),
                last_seen: None,
            })?;
        }
        Ok::<_, storage::Error>(())
    };
    store.write_blocking(write).expect("the store can be written");
    let films = (1..=films).filter_map(TitleId::movie);
    let ids: Vec<TitleId> = films.chain((1..=series).filter_map(TitleId::series)).collect();
    for ids in ids.chunks(TITLES_OF_A_WRITE) {
        let titles: Vec<Title> = ids.iter().map(|it| title(*it)).collect();
        let write = move |write: &mut storage::Write<'_>| titles.iter().try_for_each(|it| write.put(it));
        store.write_blocking(write).expect("the store can be written");
    }
    store.close();
}

fn title(id: TitleId) -> Title {
    let number = id.number();
    let (category, ids) = match id.kind() {
        TitleKind::Movie => (number % N_CATEGORIES + 1, Some(number.to_string())),
        TitleKind::Series => (N_CATEGORIES + 1, None),
    };
    let facts = TitleFacts {
        name: format!("A film of some length {number}"),
        description: Some(format!("The plot of number {number}, in which several people do several things.")),
        year: Some(1950 + (number % 70) as u16),
        rating: Some("7.5".to_owned()),
        genre: Some("Drama, Thriller".to_owned()),
        duration_secs: Some(6_000),
        logo: Some(format!("http://pictures.example/{number}.jpg")),
        ids: ExternalIds { tmdb: ids, imdb: None },
        ..TitleFacts::default()
    };
    let relation = Relation::new(
        RelationId(1_000_000 + id.key()),
        AccountId(2),
        VodCategoryId(category),
        number.to_string(),
        0,
    );
    let properties = json!({ "cast": "Anna Example, Otto Example", "director": "Maria Example" });
    let custom_properties = properties.as_object().cloned().unwrap_or_default();
    let relation = Relation { extension: "mkv".to_owned(), facts, custom_properties, ..relation };
    Title { relations: vec![relation], ..Title::new(id, uuid_of(id.key(), u128::from(id.key()) << 64), 0) }
}

/// Measures the list of films as one app requests it.
fn lists(address: SocketAddr, films: u32) -> Value {
    let path = format!("/player_api.php?{LOGIN}&action=get_vod_streams");
    let built = request(address, &path, "");
    let tag = built
        .head
        .lines()
        .find_map(|it| it.strip_prefix("etag: ").or(it.strip_prefix("Etag: ")))
        .expect("an entity tag")
        .to_owned();
    println!(
        "built: {:.1} ms to the first byte, {:.1} ms in all, {} bytes",
        built.first_ms, built.all_ms, built.bytes
    );
    assert!(built.bytes > films as usize * 100);
    let mut rows = vec![
        json!({ "name": "built", "first_ms": built.first_ms, "all_ms": built.all_ms, "bytes": built.bytes }),
    ];
    for (name, header) in [
        ("again", String::new()),
        ("gzip", "Accept-Encoding: gzip\r\n".to_owned()),
        ("not modified", format!("If-None-Match: {tag}\r\n")),
    ] {
        let answers: Vec<Timed> = (0..N_REQUESTS).map(|_| request(address, &path, &header)).collect();
        rows.push(figures(name, &answers));
    }
    let token = log_in(address);
    for (name, header) in [("after a change", ""), ("after a change, gzip", "Accept-Encoding: gzip\r\n")] {
        let answers: Vec<Timed> = (0..N_REQUESTS)
            .map(|n| {
                rename(address, &token, n, name);
                request(address, &path, header)
            })
            .collect();
        rows.push(figures(name, &answers));
    }
    rows.into()
}

/// Renames a film.
fn rename(address: SocketAddr, token: &str, n: usize, name: &str) {
    let done = Command::new("curl")
        .args(["-s", "-f", "-X", "PATCH", "-H", "Content-Type: application/json"])
        .args(["-H", &format!("Authorization: Bearer {token}")])
        .args(["-d", &json!({ "name": format!("Renamed {name} {n}") }).to_string()])
        .arg(format!("http://{address}/api/vod/movies/{}/", n + 1))
        .output()
        .expect("curl runs");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stdout));
}

/// Measures pages and searches of the REST interface.
fn pages(address: SocketAddr) -> Value {
    let header = format!("Authorization: Bearer {}\r\n", log_in(address));
    let mut rows = Vec::new();
    for (name, query) in [
        ("page", "page={n}"),
        ("page by year", "ordering=-year&page={n}"),
        ("search", "search=length {n}7"),
        ("category", "category=Category {n}|movie"),
    ] {
        let path = |n: usize| {
            format!("/api/vod/movies/?{}", query.replace("{n}", &n.to_string()).replace(' ', "%20"))
        };
        let answers: Vec<Timed> =
            (0..N_PAGES).map(|n| request(address, &path(n % 90 + 1), &header)).collect();
        rows.push(figures(name, &answers));
    }
    rows.into()
}

fn log_in(address: SocketAddr) -> String {
    let done = Command::new("curl")
        .args(["-s", "-X", "POST", "-H", "Content-Type: application/json"])
        .args(["-d", r#"{"username":"root","password":"correct horse"}"#])
        .arg(format!("http://{address}/api/accounts/token/"))
        .output()
        .expect("curl runs");
    let answer: Value = serde_json::from_slice(&done.stdout).expect("tokens");
    answer["access"].as_str().expect("a token").to_owned()
}

fn figures(name: &str, answers: &[Timed]) -> Value {
    let mut first: Vec<f64> = answers.iter().map(|it| it.first_ms).collect();
    let mut all: Vec<f64> = answers.iter().map(|it| it.all_ms).collect();
    let [first_p50, first_p99] = [0.5, 0.99].map(|it| percentile(&mut first, it));
    let [all_p50, all_p99] = [0.5, 0.99].map(|it| percentile(&mut all, it));
    println!(
        "{name}: first byte p50 {first_p50:.1} ms, p99 {first_p99:.1} ms; all p50 {all_p50:.1} ms, p99 {all_p99:.1} ms; {} bytes",
        answers[0].bytes
    );
    json!({
        "name": name, "first_p50_ms": first_p50, "first_p99_ms": first_p99, "all_p50_ms": all_p50,
        "all_p99_ms": all_p99, "bytes": answers[0].bytes,
    })
}

/// Measures an export into a new folder, and one without a change.
fn exports(folder: &Path) -> Value {
    let target = folder.join("export");
    let mut rows = Vec::new();
    for name in ["new", "unchanged"] {
        let begun = now();
        let mut command = Command::new(env!("CARGO_BIN_EXE_headwater"));
        command.args(["export", "strm"]).arg(&target).args(["--user", "anna", "--data-dir"]).arg(folder);
        let done =
            command.args(["--set", "public_url=https://tv.example"]).output().expect("the program runs");
        let (text, seconds) =
            (String::from_utf8_lossy(&done.stdout).into_owned(), begun.elapsed().as_secs_f64());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        println!("export, {name}: {seconds:.2} s; {}", text.trim());
        rows.push(json!({ "name": name, "seconds": seconds }));
    }
    rows.into()
}

/// An answer and how long it took.
struct Timed {
    head: String,
    first_ms: f64,
    all_ms: f64,
    bytes: usize,
}

fn request(address: SocketAddr, path: &str, header: &str) -> Timed {
    let begun = now();
    let mut socket = TcpStream::connect(address).expect("the server accepts");
    write!(socket, "GET {path} HTTP/1.1\r\nHost: {address}\r\n{header}Connection: close\r\n\r\n")
        .expect("the server reads");
    let mut answer = vec![0; 64 << 10];
    let n = socket.read(&mut answer).expect("the server answers");
    let first_ms = milliseconds(begun);
    answer.truncate(n);
    socket.read_to_end(&mut answer).expect("the server answers");
    let all_ms = milliseconds(begun);
    let end = answer.windows(4).position(|it| it == b"\r\n\r\n").expect("a head") + 4;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 304"), "{head}");
    Timed { head, first_ms, all_ms, bytes: answer.len() - end }
}

fn milliseconds(begun: Instant) -> f64 {
    (now() - begun).as_secs_f64() * 1_000.0
}
