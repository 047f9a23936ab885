//! What does a large guide cost: its import, its output as XMLTV, a grid, a search, and short lists of programmes?
//!
//! A guide of 2,000 channels with 2,000,000 programmes, about 200 MB of XMLTV, is read and written to a guide file, in the
//! threads of a refresh. Then the file is read in the ways in which the interfaces read it. The process has nothing else, so
//! that its memory is that of the guide.
//!
//! `cargo bench -p storage --bench guide -- [--programmes 2000000] [--channels 2000] [--words 2]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/memory.rs"]
mod memory;
mod support;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::hint::black_box;
use std::io::{BufReader, BufWriter, Write as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Instant;

use domain::guide::marks::with_marks;
use domain::guide::programme::{from_xml, to_xml};
use domain::guide::xmltv::{
    Item, XmltvLimits, XmltvReader, write_end, write_programme, write_programme_replacing, write_start,
};
use domain::ids::{GuideChannelId, GuideSourceId};
use serde_json::{Map, Value, json};
use storage::guide::{
    Found, GuideField, GuideFile, GuideFiles, GuideQuery, SearchLimits, TextQuery, TextTest,
};

use self::memory::peak_resident_bytes;
use self::support::percentile;

const MIB: f64 = 1024.0 * 1024.0;
const SOURCE: GuideSourceId = GuideSourceId(1);
/// 2026-01-01T00:00:00Z.
const BEGIN: i64 = 1_767_225_600;
const HOUR: i64 = 3_600;
const DAYS: i64 = 14;
/// A page of results.
const PAGE: SearchLimits = SearchLimits { n_max: 50, checked_max: 100_000 };
const N_REQUESTS: usize = 200;

fn main() {
    let n_programmes = option("--programmes", 2_000_000);
    let n_channels = option("--channels", 2_000);
    let n_words = option("--words", 2);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("guide.xml");
    let megabytes = generate(&path, n_programmes, n_channels, n_words) / 1e6;
    println!("{n_programmes} programmes of {n_channels} channels, {megabytes:.0} MB of XMLTV");

    let read_seconds = seconds(|| assert_eq!(read(&path, |_, _, _, _| {}), n_programmes));
    println!("read in {read_seconds:.2} s");
    let files = GuideFiles::open(&folder.path().join("guides")).expect("a folder");
    let before = peak_since_now();
    let import_seconds = seconds(|| import(&files, &path, n_programmes));
    let import_mib = (peak_resident_bytes() - before) as f64 / MIB;
    let file = files.file(SOURCE).expect("a file");
    let disk_mib = file.n_bytes() as f64 / MIB;
    println!(
        "imported in {import_seconds:.2} s, of which {:.2} s are the guide file; memory {import_mib:.0} MiB, disk {disk_mib:.0} MiB",
        import_seconds - read_seconds
    );
    let generation = file.generation();
    drop((file, files));

    let before = peak_since_now();
    let files = GuideFiles::open(&folder.path().join("guides")).expect("a folder");
    let open_ms = seconds(|| files.adopt([(SOURCE, generation)]).expect("a file")) * 1e3;
    let file = files.file(SOURCE).expect("a file");
    let open_mib = (peak_resident_bytes() - before) as f64 / MIB;
    println!("opened in {open_ms:.1} ms; memory {open_mib:.1} MiB");

    let output = output(&file);
    let grid = grid(&file, n_channels);
    let short = short_lists(&file, n_channels);
    let search = search(&file);
    support::record(
        "guide",
        json!({
            "programmes": n_programmes,
            "channels": n_channels,
            "xmltv_mb": megabytes,
            "read_seconds": read_seconds,
            "import_seconds": import_seconds,
            "import_memory_mib": import_mib,
            "disk_mib": disk_mib,
            "open_ms": open_ms,
            "open_memory_mib": open_mib,
            "output": output,
            "grid_50_channels_6_hours": grid,
            "short_list_of_4": short,
            "search": search,
        }),
    );
}

/// Imports the guide like a refresh, without the store.
fn import(files: &GuideFiles, path: &Path, n_programmes: u64) {
    let mut writer = files.begin(SOURCE).expect("room on the disk");
    let mut ids = HashMap::new();
    read(path, |channel, start, stop, inner| {
        let n = ids.len() as u32;
        let id = *ids.entry(channel.to_owned()).or_insert(GuideChannelId(n + 1));
        writer.add(id, start, stop, inner).expect("room on the disk");
    });
    let finished = writer.finish().expect("room on the disk");
    assert_eq!(finished.n_programmes(), n_programmes);
    files.install(finished);
}

/// Reads all programmes of the guide as a refresh does, while a thread parses the next ones: channel, start, stop and stored
/// form. Returns their number.
fn read(path: &Path, mut visit: impl FnMut(&str, i64, i64, &str)) -> u64 {
    let input = BufReader::with_capacity(1 << 20, File::open(path).expect("a file"));
    let (mut n, mut inner) = (0, String::new());
    std::thread::scope(|scope| {
        let (sender, batches) = sync_channel::<Vec<_>>(2);
        scope.spawn(move || {
            let mut items = XmltvReader::new(input, XmltvLimits::default()).peekable();
            while items.peek().is_some() {
                sender.send(items.by_ref().take(64).collect()).expect("all are wanted");
            }
        });
        for item in batches.into_iter().flatten() {
            if let Item::Programme { channel, programme } = item.expect("the guide is valid") {
                inner.clear();
                to_xml(&with_marks(&programme), &mut inner);
                visit(&channel, programme.start, programme.stop, &inner);
                n += 1;
            }
        }
    });
    n
}

/// Writes all programmes of the file as XMLTV, as a request for the whole guide does. Counts bytes instead of sending
/// them.
fn output(file: &GuideFile) -> Value {
    const CHUNK_BYTES: usize = 64 * 1024;
    let before = peak_since_now();
    let began = Instant::now();
    let (mut first_ms, mut n_bytes) = (None, 0);
    let mut out = String::new();
    write_start(&mut out, "bench");
    for channel in file.channels() {
        let id = channel.0.to_string();
        for cell in file.cells(channel, BEGIN, BEGIN + DAYS * 24 * HOUR) {
            for it in cell.expect("the file is valid").iter() {
                write_programme_replacing(&mut out, &id, (it.start, it.stop), it.inner, |_, _| None);
            }
            if out.len() >= CHUNK_BYTES {
                n_bytes += black_box(&out).len();
                first_ms.get_or_insert_with(|| began.elapsed().as_secs_f64() * 1e3);
                out.clear();
            }
        }
    }
    write_end(&mut out);
    n_bytes += out.len();
    let rate = n_bytes as f64 / 1e6 / began.elapsed().as_secs_f64();
    let first_ms = first_ms.unwrap_or_default();
    let mib = (peak_resident_bytes() - before) as f64 / MIB;
    println!(
        "output of {:.0} MB: first chunk after {first_ms:.2} ms, {rate:.0} MB/s, memory {mib:.1} MiB",
        n_bytes as f64 / 1e6
    );
    json!({ "mb": n_bytes as f64 / 1e6, "first_chunk_ms": first_ms, "mb_per_second": rate, "memory_mib": mib })
}

/// Reads 50 channels for 6 hours, and parses their programmes.
fn grid(file: &GuideFile, n_channels: u64) -> Value {
    measured("grid of 50 channels and 6 hours", |at| {
        let begin = BEGIN + HOUR * (at as i64 * 5 % (DAYS * 24 - 6));
        for channel in 0..50 {
            let channel = GuideChannelId(((at as u64 * 31 + channel * 7) % n_channels) as u32 + 1);
            for it in file.programmes(channel, begin, begin + 6 * HOUR).expect("the file is valid") {
                black_box(from_xml(it.start, it.stop, &it.inner).expect("the programme is valid"));
            }
        }
    })
}

/// Reads the next four programmes of a channel, and parses them.
fn short_lists(file: &GuideFile, n_channels: u64) -> Value {
    measured("short list of 4 programmes", |at| {
        let channel = GuideChannelId((at as u64 * 7919 % n_channels) as u32 + 1);
        let begin = BEGIN + 5 * 24 * HOUR;
        let found = file.programmes(channel, begin, begin + 6 * HOUR).expect("the file is valid");
        for it in found.iter().take(4) {
            black_box(from_xml(it.start, it.stop, &it.inner).expect("the programme is valid"));
        }
    })
}

fn search(file: &GuideFile) -> Value {
    let words = |field, text: &str, whole| TextQuery::Words { field, text: text.to_owned(), whole };
    let title = |text: &str| words(GuideField::Title, text, false);
    let all = GuideQuery::default;
    let text = |text| GuideQuery { text: Some(text), ..all() };
    let day = BEGIN + 3 * 24 * HOUR..BEGIN + 4 * 24 * HOUR;
    let part = TextQuery::Contains { field: GuideField::Title, text: "ord12".to_owned() };
    let test: TextTest = Arc::new(|text| text.bytes().filter(u8::is_ascii_digit).count() > 9);
    let matches = TextQuery::Matches { field: GuideField::Title, test };
    let queries = [
        ("all", all()),
        (
            "airing at a moment",
            GuideQuery { starts: i64::MIN..day.start + 1, stops: day.start + 1..i64::MAX, ..all() },
        ),
        ("a rare word", text(title("word19999"))),
        ("a prefix of 1 in 10 words", text(title("word1"))),
        ("a prefix of all words", text(title("w"))),
        ("two words", text(title("word12 word7"))),
        ("two words in a day", GuideQuery { starts: day.clone(), ..text(title("word12 word7")) }),
        (
            "a word of the title or the description",
            text(TextQuery::Any(vec![title("word77"), words(GuideField::Description, "word77", true)])),
        ),
        ("a phrase beside its words", text(TextQuery::All(vec![title("word12 word7"), part.clone()]))),
        (
            "a part of a word, in an hour",
            GuideQuery { starts: day.start..day.start + HOUR, ..text(part.clone()) },
        ),
        (
            "a part of a word, in half a day",
            GuideQuery { starts: day.start..day.start + 12 * HOUR, ..text(part.clone()) },
        ),
        ("a part of a word, in a day", GuideQuery { starts: day.clone(), ..text(part) }),
        ("a test of titles, in an hour", GuideQuery { starts: day.start..day.start + HOUR, ..text(matches) }),
    ];
    let mut results = Map::new();
    for (name, query) in queries {
        let run = || file.search(&query, &PAGE).expect("the file is valid");
        let Found { count, is_too_wide, .. } = run();
        let mut all: Vec<f64> = (0..20).map(|_| seconds(|| drop(black_box(run()))) * 1e3).collect();
        let [p50, max] = [0.5, 1.0].map(|p| percentile(&mut all, p));
        let refused = if is_too_wide { ", refused" } else { "" };
        println!("{name:>40}: {count:>7} found{refused}; p50 {p50:.1} ms, max {max:.1} ms");
        let result = json!({ "count": count, "is_refused": is_too_wide, "p50_ms": p50, "max_ms": max });
        results.insert(name.to_owned(), result);
    }
    Value::Object(results)
}

/// Runs requests one after another, and prints how long one takes.
fn measured(name: &str, mut run: impl FnMut(usize)) -> Value {
    let mut all: Vec<f64> = (0..N_REQUESTS).map(|at| seconds(|| run(at)) * 1e3).collect();
    let total = all.iter().sum::<f64>();
    let [p50, p99] = [0.5, 0.99].map(|p| percentile(&mut all, p));
    println!("{name}: p50 {p50:.2} ms, p99 {p99:.2} ms; {N_REQUESTS} in {total:.0} ms");
    json!({ "p50_ms": p50, "p99_ms": p99, "all_ms": total, "requests": N_REQUESTS })
}

/// Writes a guide, channel by channel, and returns its size. One programme in eight has more text.
fn generate(path: &Path, n_programmes: u64, n_channels: u64, n_words: u64) -> f64 {
    let mut out = BufWriter::new(File::create(path).expect("a file"));
    let mut text = String::new();
    write_start(&mut text, "bench");
    let mut random = 1u64;
    let mut next = |n: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % n
    };
    let per_channel = n_programmes.div_ceil(n_channels);
    let duration = DAYS * 24 * HOUR / per_channel as i64;
    let mut inner = String::new();
    for at in 0..n_programmes {
        let (channel, slot) = (at / per_channel, (at % per_channel) as i64);
        inner.clear();
        // Words are as unequally frequent as those of a language.
        let mut word = |out: &mut String| {
            let n = 1 + next(20_000);
            let n = next(n);
            write!(out, "word{n}").expect("writing to a String succeeds");
        };
        inner.push_str("<title>");
        word(&mut inner);
        inner.push(' ');
        word(&mut inner);
        inner.push_str("</title>");
        let n_words = if at.is_multiple_of(8) { 8 * n_words } else { 0 };
        if n_words > 0 {
            inner.push_str("<desc>");
            for _ in 0..n_words {
                word(&mut inner);
                inner.push(' ');
            }
            inner.push_str("</desc><category>Category</category>");
        }
        let start = BEGIN + slot * duration;
        write_programme(&mut text, &format!("c{channel}"), start, start + duration, &inner);
        if text.len() > 1 << 16 {
            out.write_all(text.as_bytes()).expect("room on the disk");
            text.clear();
        }
    }
    write_end(&mut text);
    out.write_all(text.as_bytes()).expect("room on the disk");
    out.flush().expect("room on the disk");
    fs::metadata(path).expect("a file").len() as f64
}

/// Returns the resident memory, and lets the peak begin anew.
fn peak_since_now() -> u64 {
    // Not possible in every container: the peak is then that of the whole run.
    let _ = fs::write("/proc/self/clear_refs", "5");
    peak_resident_bytes()
}

fn option(name: &str, default: u64) -> u64 {
    let arguments: Vec<String> = std::env::args().collect();
    let at = arguments.iter().position(|it| it == name);
    at.map_or(default, |at| arguments[at + 1].parse().expect("a number"))
}

fn seconds(run: impl FnOnce()) -> f64 {
    let began = Instant::now();
    run();
    began.elapsed().as_secs_f64()
}
