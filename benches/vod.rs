//! What does a large catalogue of films and series cost: its import, the same import again, its memory, and its pages?
//!
//! One account lists 125,000 films and 20,000 series. The lists are generated while they are read, so the time is that of
//! comparing and writing. A second account then lists the films in another order. Memory is that of a process of its own that
//! opens the store with the index. Then pages of fifty are requested with their exact counts; the first page in an order,
//! which sorts, is measured separately.
//!
//! `cargo bench -p storage --bench vod -- [--films 125000] [--series 20000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/measure.rs"]
mod measure;
#[path = "support/memory.rs"]
mod memory;
mod support;

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::{fs, io};

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId, VodCategoryId};
use domain::vod::query::{VodOrder, VodQuery, VodSources};
use domain::vod::visible::VodLimits;
use domain::vod::{AccountCategory, FoundCategory, FoundTitle, Title, TitleKind};
use serde_json::{Map, Value, json};
use storage::records::schema;
use storage::{FoundTitles, LandedTitles, Store, TitleSync, VodIndex, VodTitles};

use self::measure::{micros, resident_bytes, seconds};
use self::memory::peak_resident_bytes;
use self::support::percentile;

const MIB: f64 = 1024.0 * 1024.0;
const N_CATEGORIES: u32 = 100;
const N_PAGES: usize = 200;
const FIRST: AccountId = AccountId(2);
const SECOND: AccountId = AccountId(3);
/// 2026-01-01T00:00:00Z, in milliseconds.
const NOW: i64 = 1_767_225_600_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    if let Some(at) = arguments.iter().position(|it| it == "--resident") {
        return print_resident(Path::new(&arguments[at + 1]));
    }
    let (n_films, n_series) = (option("--films", 125_000), option("--series", 20_000));
    let folder = tempfile::tempdir().expect("a folder");
    let store = open(folder.path());
    let titles = VodTitles::new(&store);
    let index = VodIndex::start(&store).expect("the store can be read");
    let categories = [FIRST, SECOND].map(|account| prepare(&store, &titles, account));
    let list = |kind, n, account: usize| List {
        kind,
        n,
        stride: [1, 7_919][account],
        categories: &categories[account],
    };

    let before = peak_since_now();
    let mut landed = Vec::new();
    let import_seconds = seconds(|| {
        landed.push(land(&titles, FIRST, &list(TitleKind::Movie, n_films, 0)));
        landed.push(land(&titles, FIRST, &list(TitleKind::Series, n_series, 0)));
    });
    let import_mib = (peak_resident_bytes() - before) as f64 / MIB;
    assert_eq!(landed.iter().map(|it| it.n_new).sum::<u64>(), u64::from(n_films + n_series));
    println!(
        "{n_films} films and {n_series} series imported in {import_seconds:.2} s; memory {import_mib:.0} MiB"
    );

    let written = fingerprints(&store);
    let before = peak_since_now();
    let unchanged_seconds = seconds(|| {
        land(&titles, FIRST, &list(TitleKind::Movie, n_films, 0));
        land(&titles, FIRST, &list(TitleKind::Series, n_series, 0));
    });
    let unchanged_mib = (peak_resident_bytes() - before) as f64 / MIB;
    assert_eq!(fingerprints(&store), written, "nothing was written");
    println!("imported again without a change in {unchanged_seconds:.2} s; memory {unchanged_mib:.0} MiB");

    let second_seconds = seconds(|| {
        let landed = land(&titles, SECOND, &list(TitleKind::Movie, n_films, 1));
        assert_eq!(landed.n_new, u64::from(n_films));
    });
    println!("the films of a second account in another order imported in {second_seconds:.2} s");

    let pages = pages(&store, &index);
    let disk_mib = store.statistics().live_bytes as f64 / MIB;
    drop((index, titles));
    store.close();
    drop(store);
    let output = Command::new(std::env::current_exe().expect("a program"))
        .arg("--resident")
        .arg(folder.path())
        .output()
        .expect("the program runs");
    let resident: Value = serde_json::from_slice(&output.stdout).expect("a result");
    println!("disk {disk_mib:.0} MiB; opened with the index: {resident}");
    support::record(
        "vod",
        json!({
            "films": n_films,
            "series": n_series,
            "import_seconds": import_seconds,
            "import_memory_mib": import_mib,
            "unchanged_seconds": unchanged_seconds,
            "unchanged_memory_mib": unchanged_mib,
            "second_account_seconds": second_seconds,
            "disk_mib": disk_mib,
            "resident": resident,
            "pages": pages,
        }),
    );
}

fn open(folder: &Path) -> Store {
    Store::open(&folder.join("store"), &folder.join("key"), schema()).expect("a store")
}

/// Opens the store and prints the memory that it takes.
fn print_resident(folder: &Path) {
    let before = resident_bytes();
    let mut opened = None;
    let open_seconds = seconds(|| {
        let store = open(folder);
        let index = VodIndex::start(&store).expect("the store can be read");
        opened = Some((store, index));
    });
    let (_store, index) = opened.expect("it was opened");
    let index = index.load();
    for order in [VodOrder::Name, VodOrder::Year, VodOrder::CreatedAt] {
        let query = VodQuery { order, ..VodQuery::default() };
        drop(black_box(index.find(&query, &VodLimits::none(), None, 0, 50)));
    }
    let report = json!({
        "open_seconds": open_seconds,
        "resident_mib": (resident_bytes() - before) / MIB,
        "index_mib": index.bytes() as f64 / MIB,
    });
    println!("{report}");
}

/// Creates an account with enabled categories of both kinds.
fn prepare(store: &Store, titles: &VodTitles, id: AccountId) -> [Vec<VodCategoryId>; 2] {
    let profile = AccountProfile::default_of(ProfileId(id.0), "Default", 1);
    let account = Account::new(id, format!("Account {id}"), PlaylistLocation::None, profile, NOW);
    let account = Account { enable_vod: true, ..account };
    store.write_blocking(move |write| write.put(&account)).expect("the account is written");
    TitleKind::ALL.map(|kind| {
        let name = |it: u32| format!("{} {it}", kind.name());
        let found =
            (0..N_CATEGORIES).map(|it| FoundCategory { kind, provider_id: it.to_string(), name: name(it) });
        let links =
            titles.land_categories(id, kind, found.collect(), true, NOW).expect("the categories are written");
        links.iter().map(|it| it.category).collect()
    })
}

/// A list that is generated while it is read.
struct List<'a> {
    kind: TitleKind,
    n: u32,
    /// Distance of entries that follow each other.
    stride: u64,
    categories: &'a [Vec<VodCategoryId>; 2],
}

impl FoundTitles for List<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(FoundTitle) -> ControlFlow<()>) -> io::Result<()> {
        let numbers = (0..u64::from(self.n)).map(|it| it * self.stride % u64::from(self.n));
        let _ = numbers.map(|it| self.title(it)).try_for_each(visit);
        Ok(())
    }
}

impl List<'_> {
    fn title(&self, number: u64) -> FoundTitle {
        let words =
            ["Night", "River", "Last", "Garden", "Winter", "Shadow", "Road", "Silent", "Blue", "House"];
        let word = |at: u64| words[(number / 10_u64.pow(at as u32) % 10) as usize];
        let year = 1950 + (number % 75) as u16;
        let name = format!("EN - {} {} {} {number} ({year})", word(0), word(1), word(2));
        let category = self.categories[usize::from(self.kind == TitleKind::Series)]
            [(number % u64::from(N_CATEGORIES)) as usize];
        let mut found = FoundTitle::new(number.to_string(), category, name);
        found.facts.year = Some(year);
        found.facts.rating = Some(format!("{}.{}", number % 10, number / 10 % 10));
        found.facts.logo = Some(format!(
            "http://images.example:8080/posters/w600/{:016x}.jpg",
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15)
        ));
        // Every tenth has no id.
        found.facts.ids.tmdb = (!number.is_multiple_of(10)).then(|| (number + 1).to_string());
        found.last_modified = Some(1_700_000_000 + number as i64);
        match self.kind {
            TitleKind::Movie => found.extension = "mkv".to_owned(),
            TitleKind::Series => {
                found.facts.description =
                    Some(format!("A long story of {} and {}. ", word(0), word(1)).repeat(6));
                found.facts.genre = Some("Drama, Crime".to_owned());
                let values = json!({ "cast": "A. Actor, B. Actor, C. Actor", "director": "D. Director", "episode_run_time": "45" });
                found.custom_properties = values.as_object().cloned().unwrap_or_default();
            }
        }
        found
    }
}

fn land(titles: &VodTitles, account: AccountId, list: &List<'_>) -> LandedTitles {
    let sync =
        TitleSync { account, kind: list.kind, asked: None, is_confirmed: false, stale_days: 7, now: NOW };
    titles.land_titles(&sync, list, &|| false).expect("the list is imported")
}

fn fingerprints(store: &Store) -> Vec<u64> {
    let titles = store.collection::<Title>();
    titles.owners().into_iter().map(|it| titles.fingerprint_of(it)).collect()
}

/// Measures pages of fifty with their exact counts.
fn pages(store: &Store, index: &VodIndex) -> Map<String, Value> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let index = runtime.block_on(index.at(store.version())).expect("the index follows");
    let accounts = store.collection::<Account>().all().expect("accounts");
    let links = store.collection::<AccountCategory>().all().expect("categories");
    let query = VodQuery::default;
    let text = |it: &str| Some(it.to_owned());
    let films = Some(TitleKind::Movie);
    let queries = [
        ("all, by id", query()),
        ("films, by name", VodQuery { kind: films, order: VodOrder::Name, ..query() }),
        ("films, by year", VodQuery { kind: films, order: VodOrder::Year, descending: true, ..query() }),
        ("films, by time", VodQuery { kind: films, order: VodOrder::CreatedAt, ..query() }),
        ("name ~ rare", VodQuery { name: text("1234 ("), order: VodOrder::Name, ..query() }),
        ("name ~ one in ten", VodQuery { name: text("garden"), order: VodOrder::Name, ..query() }),
        ("name ~ all", VodQuery { name: text("en -"), order: VodOrder::Name, ..query() }),
        ("one category", VodQuery { categories: Some([links[0].category].into()), ..query() }),
        ("years", VodQuery { year_gte: Some(1980), year_lte: Some(1990), order: VodOrder::Name, ..query() }),
    ];
    let mut results = Map::new();
    for (name, query) in queries {
        // A request builds its sources, too.
        let find = |offset| {
            let sources = VodSources::new(&accounts, &links);
            index.find(&query, &VodLimits::anonymous(false), Some(&sources), offset, 50)
        };
        let first = micros(|| drop(black_box(find(0)))) / 1e3;
        let count = find(0).count;
        let mut later: Vec<f64> = (0..N_PAGES)
            .map(|at| {
                let offset = at * count / N_PAGES;
                micros(|| assert_eq!(black_box(find(offset)).count, count)) / 1e3
            })
            .collect();
        let [p50, p99] = [0.5, 0.99].map(|p| percentile(&mut later, p));
        println!("{name:>20}: {count:>6} found; first {first:.1} ms, p50 {p50:.2} ms, p99 {p99:.2} ms");
        results.insert(
            name.to_owned(),
            json!({ "count": count, "first_ms": first, "p50_ms": p50, "p99_ms": p99 }),
        );
    }
    let titles = VodTitles::new(store);
    let page = index.find(&query(), &VodLimits::none(), None, 1_000, 50).ids;
    let mut reads: Vec<f64> = (0..N_PAGES)
        .map(|_| micros(|| page.iter().for_each(|it| drop(black_box(titles.get(*it))))) / 1e3)
        .collect();
    let p99 = percentile(&mut reads, 0.99);
    let mut n = 0;
    let all_seconds = seconds(|| titles.for_each(|_| n += 1).expect("titles"));
    println!("records of a page: p99 {p99:.2} ms; all {n} records read in {all_seconds:.2} s");
    results.insert("records of a page".to_owned(), json!({ "p99_ms": p99 }));
    results.insert("all records".to_owned(), json!({ "count": n, "seconds": all_seconds }));
    results
}

/// Begins a new peak of the resident memory and returns the present one, in bytes.
fn peak_since_now() -> u64 {
    // Not possible in every container: the peak is then that of the whole run.
    let _ = fs::write("/proc/self/clear_refs", "5");
    peak_resident_bytes()
}

fn option(name: &str, default: u32) -> u32 {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|it| it == name);
    at.map_or(default, |at| arguments[at + 1].parse().expect("a number"))
}
