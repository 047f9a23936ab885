//! How long does the import of a large playlist take, and how much memory?
//!
//! A server on this machine sends 500,000 entries in the style of a provider. They are imported into a new store; then
//! again without a change, with every hundredth entry changed, and with a hundred entries changed. The process contains
//! only the store, its views and the import, so the peak memory is theirs.
//!
//! `cargo bench --bench import -- [--entries 500000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/list.rs"]
mod list;
#[path = "support/memory.rs"]
mod memory;
#[expect(dead_code, reason = "this bench computes no percentiles")]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use actors::{Fetch, FetchLimits, ImportOptions, ImportSummary, import};
use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::ids::{AccountId, ProfileId};
use domain::source_url::SourceUrl;
use serde_json::{Value, json};
use storage::{Models, Store};

use self::memory::peak_resident_bytes;

const MIB: f64 = 1024.0 * 1024.0;
const ACCOUNT: AccountId = AccountId(2);

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let entries =
        arguments.iter().position(|it| it == "--entries").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let entries: u64 = entries.unwrap_or(500_000);

    let changed_every = Arc::new(AtomicU64::new(u64::MAX));
    let url = list::serve(entries, changed_every.clone());
    headwater::install_tls();
    let store = Store::temporary(storage::records::schema()).expect("a store");
    storage::seed(&store).expect("a store");
    let list = PlaylistLocation::Url(SourceUrl::new(url));
    let account =
        Account::new(ACCOUNT, "bench", list, AccountProfile::default_of(ProfileId(2), "default", 0), 0);
    store.write_blocking(move |write| write.put(&account)).expect("an account");
    let models = Models::of(store).expect("models");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let fetch = Fetch::new(FetchLimits::default()).expect("a client");
    println!("before: peak memory {:.0} MiB", peak_resident_bytes() as f64 / MIB);

    let measure = |what: &str, every: u64| -> (ImportSummary, Value) {
        changed_every.store(every, Ordering::SeqCst);
        let started = Instant::now();
        let options = ImportOptions::default();
        let done = runtime.block_on(import(&models, &fetch, ACCOUNT, options, |_| {}));
        let seconds = started.elapsed().as_secs_f64();
        let imported = done.expect("the list is valid");
        let peak = peak_resident_bytes() as f64 / MIB;
        let ImportSummary { n_new, n_changed, .. } = imported;
        println!("{what:>20}: {seconds:.2} s, {n_new} new, {n_changed} changed, peak memory {peak:.0} MiB");
        let result =
            json!({ "seconds": seconds, "n_new": n_new, "n_changed": n_changed, "peak_resident_mib": peak });
        (imported, result)
    };
    let (first, new) = measure("new", u64::MAX);
    assert_eq!((first.n_entries, first.n_new, first.n_problems), (entries, entries, 0));
    let (second, same) = measure("without a change", u64::MAX);
    assert_eq!((second.n_new, second.n_changed, second.n_stale), (0, 0, 0));
    let (third, hundredth) = measure("every hundredth", 100);
    assert_eq!(third.n_changed, entries.div_ceil(100));
    let (_, back) = measure("and back", u64::MAX);
    let (fifth, few) = measure("a hundred", entries.div_ceil(100));
    assert_eq!(fifth.n_changed, 100);
    let figures = models.store.statistics();
    println!(
        "on disk {:.0} MiB, of which {:.0} MiB are live",
        figures.disk_bytes as f64 / MIB,
        figures.live_bytes as f64 / MIB
    );
    support::record(
        "import",
        json!({
            "entries": entries,
            "new": new,
            "without_a_change": same,
            "every_hundredth_changed": hundredth,
            "every_hundredth_changed_back": back,
            "a_hundred_changed": few,
            "disk_mib": figures.disk_bytes as f64 / MIB,
            "live_mib": figures.live_bytes as f64 / MIB,
        }),
    );
}
