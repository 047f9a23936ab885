//! What does a page of 500,000 streams cost, with its filter and its exact count?
//!
//! The index is built in the same way as by the follower, from streams of four accounts; its memory is the growth of
//! the process. Then pages of fifty are requested; the first page in an order, which sorts, is measured separately. The
//! time until an edit is visible in the index is measured with a store.
//!
//! `cargo bench -p storage --bench stream_list -- [--streams 500000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/measure.rs"]
mod measure;
mod support;

use std::hint::black_box;

use domain::ids::{AccountId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::streams::{ShardBuilder, StreamOrder, StreamQuery, StreamSnapshot};
use serde_json::{Map, Value, json};
use storage::records::schema;
use storage::{Error, Store, StreamIndex};

use self::measure::{micros, resident_bytes, seconds};
use self::support::percentile;

const MIB: f64 = 1024.0 * 1024.0;
const N_ACCOUNTS: u32 = 4;
const N_PAGES: usize = 200;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let at = arguments.iter().position(|argument| argument == "--streams");
    let n: u32 = at.map_or(500_000, |at| arguments[at + 1].parse().expect("--streams N"));

    let before = resident_bytes();
    let mut index = StreamSnapshot::default();
    let build = seconds(|| {
        for account in 1..=N_ACCOUNTS {
            let mut builder = ShardBuilder::new(AccountId(account));
            (1..=n)
                .filter(|id| id % N_ACCOUNTS + 1 == account)
                .for_each(|id| builder.add(&stream(id, account)));
            index = index.with(builder.build());
        }
    });
    let memory = (resident_bytes() - before) / MIB;
    let counted = index.bytes() as f64 / MIB;
    println!(
        "{n} streams built in {build:.2} s; memory {memory:.0} MiB, of which {counted:.0} MiB are columns"
    );

    let text = |it: &str| Some(it.to_owned());
    let query = StreamQuery::default;
    let group = format!("Group {}, all", n / 500);
    let groups = Some([group].into());
    let queries = [
        ("all, by id", query()),
        ("all, by name", StreamQuery { order: StreamOrder::Name, ..query() }),
        ("all, by group", StreamQuery { order: StreamOrder::Group, ..query() }),
        ("name ~ rare, by name", StreamQuery { name: text("1234 hd"), order: StreamOrder::Name, ..query() }),
        (
            "name ~ one in nine, by name",
            StreamQuery { name: text("7 hd"), order: StreamOrder::Name, ..query() },
        ),
        ("name ~ all, by name", StreamQuery { name: text("channel"), order: StreamOrder::Name, ..query() }),
        ("search ~ rare, by name", StreamQuery { search: text("4321"), order: StreamOrder::Name, ..query() }),
        ("one group, by name", StreamQuery { groups, order: StreamOrder::Name, ..query() }),
        ("no stale, by name", StreamQuery { hide_stale: true, order: StreamOrder::Name, ..query() }),
    ];
    let mut pages = Map::new();
    for (name, query) in queries {
        let first = micros(|| drop(black_box(index.find(&query, 0, 50)))) / 1e3;
        let count = index.find(&query, 0, 0).count;
        let mut later: Vec<f64> = (0..N_PAGES)
            .map(|at| {
                let offset = at * 50 % count.max(1);
                micros(|| assert_eq!(black_box(index.find(&query, offset, 50)).count, count)) / 1e3
            })
            .collect();
        let deep = micros(|| drop(black_box(index.find(&query, count / 2, 50)))) / 1e3;
        let [p50, p99] = [0.5, 0.99].map(|p| percentile(&mut later, p));
        println!(
            "{name:>28}: {count:>6} found; first {first:.1} ms, p50 {p50:.2} ms, p99 {p99:.2} ms, in the middle {deep:.1} ms"
        );
        pages.insert(
            name.to_owned(),
            json!({ "count": count, "first_ms": first, "p50_ms": p50, "p99_ms": p99, "middle_ms": deep }),
        );
    }
    let kept = index.bytes() as f64 / MIB;
    println!("with the orders that were asked for: {kept:.0} MiB");
    let through_store = through_store(n);
    support::record(
        "stream_list",
        json!({
            "streams": n,
            "build_seconds": build,
            "memory_mib": memory,
            "columns_mib": counted,
            "columns_and_orders_mib": kept,
            "pages": pages,
            "through_store": Value::Object(through_store),
        }),
    );
}

/// Measures the index of a store: the time of the first read, and until an edit or an import is visible.
fn through_store(n: u32) -> Map<String, Value> {
    let store = Store::temporary(schema()).expect("a store");
    let import = |account: u32, ids: std::ops::RangeInclusive<u32>| {
        let mut bulk = store.bulk_write::<Stream>(account.into()).expect("the transaction starts");
        ids.for_each(|id| bulk.put(&stream(id, account)).expect("the record is accepted"));
        bulk.commit(|_, _| Ok::<_, Error>(())).expect("the write is committed");
    };
    import(1, 1..=n);
    let mut index = None;
    let start = seconds(|| index = Some(StreamIndex::start(&store).expect("the store can be read")));
    let index = index.expect("set above");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
    let see = || drop(runtime.block_on(index.at(store.version())).expect("the index follows the store"));
    let mut edits: Vec<f64> = (1..=100u32)
        .map(|id| {
            let edited = stream(id * 977 % n + 1, 1);
            store.write_blocking(move |write| write.put(&edited)).expect("the write is committed");
            micros(see) / 1e3
        })
        .collect();
    import(2, n + 1..=n + 10_000);
    let small_import = micros(see) / 1e3;
    let [p50, p99] = [0.5, 0.99].map(|p| percentile(&mut edits, p));
    println!(
        "with a store: read in {start:.2} s; an edit is visible after p50 {p50:.2} ms, p99 {p99:.2} ms; an import of 10,000 after {small_import:.0} ms"
    );
    let row = json!({ "start_seconds": start, "edit_seen_p50_ms": p50, "edit_seen_p99_ms": p99, "import_of_10000_seen_ms": small_import });
    row.as_object().cloned().unwrap_or_default()
}

fn stream(id: u32, account: u32) -> Stream {
    let facts = StreamProperties {
        tvg_id: Some(format!("channel{id}.example")),
        group: Some(format!("Group {}, all", id / 250)),
        ..StreamProperties::new(
            format!("Channel {id} HD"),
            SourceUrl::new(format!("http://provider.example:8080/live/user/password/{id}.ts")),
        )
    };
    let mut stream = Stream::new(StreamId(id), AccountId(account), facts, 0);
    stream.last_seen = id.is_multiple_of(50).then_some(0);
    stream
}
