//! How long does the import of a large playlist take, and how much memory?
//!
//! A server on this machine sends 500,000 entries in the style of a provider. They are imported into a new store; then
//! again without a change, with every hundredth entry changed, with a hundred entries changed, and with every address
//! changed. The process contains only the store, its views and the import, so the peak memory is theirs.
//!
//! `cargo bench --bench import -- [--entries 500000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/importing.rs"]
mod importing;
#[path = "support/list.rs"]
mod list;
#[path = "support/memory.rs"]
mod memory;
#[expect(dead_code, reason = "this bench computes no percentiles")]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use actors::ImportSummary;
use domain::account::PlaylistLocation;
use domain::source_url::SourceUrl;
use serde_json::{Value, json};

use self::importing::{Importing, MIB, option};

fn main() {
    let entries = option("--entries", 500_000);
    let changed_every = Arc::new(AtomicU64::new(u64::MAX));
    let url = list::serve(entries, Arc::clone(&changed_every));
    let importing = Importing::new(PlaylistLocation::Url(SourceUrl::new(url)));
    let measure = |what: &str, every: u64| -> (ImportSummary, Value) {
        changed_every.store(every, Ordering::SeqCst);
        importing.run(what)
    };
    let (first, new) = measure("new", u64::MAX);
    assert_eq!((first.n_entries, first.n_new), (entries, entries));
    let (second, same) = measure("without a change", u64::MAX);
    assert_eq!((second.n_new, second.n_changed, second.n_stale), (0, 0, 0));
    let (third, hundredth) = measure("every hundredth", 100);
    assert_eq!(third.n_changed, entries.div_ceil(100));
    let (_, back) = measure("and back", u64::MAX);
    let (fifth, few) = measure("a hundred", entries.div_ceil(100));
    assert_eq!(fifth.n_changed, 100);
    let (sixth, moved) = measure("every address", 0);
    assert_eq!((sixth.n_moved, sixth.n_new, sixth.n_stale), (entries, 0, 0));
    let figures = importing.models.store.statistics();
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
            "every_address_changed": moved,
            "disk_mib": figures.disk_bytes as f64 / MIB,
            "live_mib": figures.live_bytes as f64 / MIB,
        }),
    );
}
