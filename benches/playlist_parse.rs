//! How fast is a large playlist parsed, and how much memory does that take?
//!
//! 500,000 entries in the style of a provider arrive in pieces of 64 KiB. First the items are dropped at once, which
//! measures the parser alone; then a catalogue is built from them. Only the time inside parser and builder counts.
//!
//! `cargo bench --bench playlist_parse -- [--entries 500000]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/list.rs"]
#[expect(dead_code, reason = "this bench has no server")]
mod list;
#[path = "support/memory.rs"]
mod memory;
#[expect(dead_code, reason = "this bench has one process")]
mod support;

use std::time::{Duration, Instant};

use domain::playlist::catalogue::CatalogueBuilder;
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, PlaylistParser};
use domain::stream::RequestHeaders;
use serde_json::{Value, json};

use self::memory::peak_resident_bytes;

const PIECE_BYTES: usize = 64 * 1024;
const MIB: f64 = 1024.0 * 1024.0;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let entries =
        arguments.iter().position(|it| it == "--entries").and_then(|at| arguments.get(at + 1)?.parse().ok());
    let entries: u64 = entries.unwrap_or(500_000);

    let parser = measure("parser alone", entries, &mut |_| {});
    // Holds T-pl.6. The limit has a margin for other machines, and is still smaller than the list.
    let peak = peak_resident_bytes() as f64 / MIB;
    assert!(peak < 32.0, "the parser alone needed {peak:.0} MiB");
    let mut builder = CatalogueBuilder::new();
    let account = builder.account("bench", 0, RequestHeaders::default());
    let catalogue = measure("with catalogue", entries, &mut |item| {
        if let PlaylistItem::Entry(entry) = item {
            builder.entry(account, entry);
        }
    });
    let started = Instant::now();
    let n_channels = builder.build().channels.len();
    println!("{n_channels} channels numbered in {:.0} ms", started.elapsed().as_secs_f64() * 1000.0);
    support::record("playlist_parse", json!({ "parser_alone": parser, "with_catalogue": catalogue }));
}

/// Parses a playlist with this many entries.
fn measure(what: &str, entries: u64, out: &mut impl FnMut(PlaylistItem)) -> Value {
    const ENTRIES_AT_ONCE: u64 = 2_000;
    let mut parser = PlaylistParser::new(PlaylistLimits::default());
    let mut spent = Duration::ZERO;
    let mut bytes = 0;
    let mut text = String::from("#EXTM3U url-tvg=\"http://guide.example/xmltv.xml\"\n");
    for first in (0..entries).step_by(ENTRIES_AT_ONCE as usize) {
        (first..entries.min(first + ENTRIES_AT_ONCE)).for_each(|it| list::entry(&mut text, it, false));
        bytes += text.len();
        for piece in text.as_bytes().chunks(PIECE_BYTES) {
            let started = Instant::now();
            parser.push(piece, out);
            spent += started.elapsed();
        }
        text.clear();
    }
    let summary = parser.finish(out);
    assert_eq!((summary.entries, summary.problems), (entries, 0), "every entry is read");

    let seconds = spent.as_secs_f64();
    let (mib, peak) = (bytes as f64 / MIB, peak_resident_bytes() as f64 / MIB);
    println!(
        "{what:>14}: {mib:.0} MiB in {seconds:.3} s, {:.0} MiB/s, {:.0} entries/s, peak memory {peak:.1} MiB",
        mib / seconds,
        entries as f64 / seconds,
    );
    json!({
        "entries": entries,
        "mib": mib,
        "seconds": seconds,
        "mib_per_second": mib / seconds,
        "entries_per_second": entries as f64 / seconds,
        "peak_resident_mib": peak,
    })
}
