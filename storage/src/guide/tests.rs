//! Tests of guide files as a whole. The limits of memory and the sizes of blocks are small in tests, so that a few hundred
//! programmes have many sorted parts, cells and blocks of words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;

use domain::guide::programme::ProgrammeId;
use domain::ids::{GuideChannelId, GuideSourceId};
use proptest::prelude::*;

use super::*;
use crate::error::{Error, Fault};
use crate::small_disk::SmallDisk;

const SOURCE: GuideSourceId = GuideSourceId(3);
/// 2026-01-01.
const BEGIN: i64 = 1_767_225_600;
const ALL: (i64, i64) = (i64::MIN, i64::MAX);
const VOCABULARY: [&str; 12] =
    ["news", "new", "newton", "sport", "sports", "the", "a", "Ab", "ABC", "film", "été", "東京"];

/// A programme as it is added: guide channel, start in minutes after [`BEGIN`], duration in minutes, and its texts.
#[derive(Debug, Clone)]
struct Added {
    channel: u32,
    start: i64,
    duration: i64,
    title: String,
    description: String,
}

impl Added {
    fn new(channel: u32, start: i64, duration: i64, title: &str) -> Self {
        Self { channel, start, duration, title: title.to_owned(), description: String::new() }
    }

    fn inner(&self) -> String {
        let mut inner = format!("<title lang=\"en\">{}</title>", self.title);
        if !self.description.is_empty() {
            inner.push_str(&format!("<desc>{}</desc><category>x</category>", self.description));
        }
        inner
    }
}

/// A programme as a file returns it: guide channel, start, stop, inside.
type Row = (u32, i64, i64, String);

fn text() -> impl Strategy<Value = String> {
    proptest::collection::vec(proptest::sample::select(&VOCABULARY), 0..6).prop_map(|it| it.join(" "))
}

fn added() -> impl Strategy<Value = Added> {
    (1..6u32, 0..600i64, -5..200i64, text(), text()).prop_map(
        |(channel, start, duration, title, description)| Added {
            channel,
            start,
            duration,
            title,
            description,
        },
    )
}

fn unix(minutes: i64) -> i64 {
    BEGIN + 60 * minutes
}

/// Returns what a file has to contain, by guide channel and start.
fn expected(all: &[Added]) -> Vec<Row> {
    let by_key: BTreeMap<_, _> = all.iter().map(|it| ((it.channel, it.start), it)).collect();
    let entries: Vec<_> = by_key.into_iter().collect();
    let mut rows = Vec::new();
    for (at, ((channel, start), it)) in entries.iter().enumerate() {
        let next = entries.get(at + 1).filter(|it| it.0.0 == *channel).map(|it| it.0.1);
        let mut stop = start + it.duration;
        if it.duration <= 0 {
            stop = next.filter(|it| it - start <= 360).unwrap_or(start + 60);
        }
        rows.push((*channel, unix(*start), unix(next.map_or(stop, |it| it.min(stop))), it.inner()));
    }
    rows
}

fn add_all(writer: &mut GuideWriter, all: &[Added]) {
    for it in all {
        let (start, stop) = (unix(it.start), unix(it.start + it.duration));
        writer.add(GuideChannelId(it.channel), start, stop, &it.inner()).unwrap();
    }
}

fn write(files: &GuideFiles, all: &[Added]) -> Arc<GuideFile> {
    let mut writer = files.begin(SOURCE).unwrap();
    add_all(&mut writer, all);
    files.install(writer.finish().unwrap());
    files.file(SOURCE).unwrap()
}

fn rows(file: &GuideFile, (from, until): (i64, i64)) -> crate::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for channel in file.channels() {
        let programmes = file.programmes(channel, from, until)?;
        rows.extend(programmes.into_iter().map(|it| (channel.0, it.start, it.stop, it.inner.into())));
    }
    Ok(rows)
}

/// Reads every part of a file.
fn read_all(file: &GuideFile) -> crate::Result<(Vec<Row>, Vec<ProgrammeId>, Vec<ProgrammeId>)> {
    let limits = SearchLimits { n_max: usize::MAX, checked_max: usize::MAX };
    let of = |text| file.search(&GuideQuery { text, ..GuideQuery::default() }, &limits).map(|it| it.ids);
    // The beginning of every word: reads all blocks of words.
    let any =
        VOCABULARY.map(|it| TextQuery::Words { field: GuideField::Title, text: it.to_owned(), whole: false });
    Ok((rows(file, ALL)?, of(None)?, of(Some(TextQuery::Any(any.into())))?))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn programmes_in_any_order_come_back_by_channel_and_time(
        all in proptest::collection::vec(added(), 0..300),
        from in -10..610i64,
        length in 0..300i64,
    ) {
        let files = GuideFiles::temporary().unwrap();
        let file = write(&files, &all);
        let expected = expected(&all);
        prop_assert_eq!(file.n_programmes(), expected.len() as u64);
        prop_assert_eq!(&rows(&file, ALL).unwrap(), &expected);
        let window = (unix(from), unix(from + length));
        let within: Vec<_> = expected.iter().filter(|it| it.1 < window.1 && it.2 > window.0).cloned().collect();
        prop_assert_eq!(rows(&file, window).unwrap(), within);
        let n_ending_after = expected.iter().filter(|it| it.2 > window.0).count() as u64;
        prop_assert_eq!(file.n_ending_after(window.0), n_ending_after);
        for (channel, start, stop, inner) in &expected {
            let id = ProgrammeId::new(GuideChannelId(*channel), *start).unwrap();
            let found = file.programme(id).unwrap();
            let wanted = StoredProgramme { start: *start, stop: *stop, inner: inner.as_str().into() };
            prop_assert_eq!(found, Some(wanted));
            prop_assert_eq!(file.programme(ProgrammeId(id.0 + 1)).unwrap(), None);
        }
        for channel in 0..7 {
            let of_channel = || expected.iter().filter(|it| it.0 == channel);
            let span = of_channel().map(|it| it.1).min().zip(of_channel().map(|it| it.2).max());
            prop_assert_eq!(file.span(GuideChannelId(channel)), span);
            let (from, until) = file.numbers_of(GuideChannelId(channel));
            prop_assert_eq!((until - from) as usize, of_channel().count());
        }
        // Another reader of the same file, as after a restart.
        let again = GuideFiles::open(&files.folder()).unwrap();
        again.adopt([(SOURCE, file.generation())]).unwrap();
        prop_assert_eq!(rows(&again.file(SOURCE).unwrap(), ALL).unwrap(), expected);
        prop_assert_eq!(again.damaged(), []);
    }

    #[test]
    fn a_search_equals_a_naive_search(
        all in proptest::collection::vec(added(), 0..200),
        text in proptest::option::of(query()),
        channels in proptest::option::of(proptest::collection::btree_set(0..7u32, 0..4)),
        window in proptest::option::of((0..600i64, 0..300i64)),
        n_max in 0..40usize,
    ) {
        let files = GuideFiles::temporary().unwrap();
        let file = write(&files, &all);
        let (starts, stops) = match window {
            Some((from, length)) => (i64::MIN..unix(from + length), unix(from)..i64::MAX),
            None => (i64::MIN..i64::MAX, i64::MIN..i64::MAX),
        };
        let channels: Option<BTreeSet<_>> = channels.map(|it| it.into_iter().map(GuideChannelId).collect());
        let query = GuideQuery { text: text.clone(), channels: channels.clone(), starts, stops };
        let mut wanted: Vec<_> = expected(&all)
            .into_iter()
            .filter(|it| channels.as_ref().is_none_or(|of| of.contains(&GuideChannelId(it.0))))
            .filter(|it| query.starts.contains(&it.1) && query.stops.contains(&it.2))
            .filter(|it| text.as_ref().is_none_or(|text| is_met(text, &it.3)))
            .collect();
        wanted.sort_by_key(|it| (it.1, it.0));
        let ids: Vec<_> = wanted.iter().map(|it| ProgrammeId::new(GuideChannelId(it.0), it.1).unwrap()).collect();
        let found = file.search(&query, &SearchLimits { n_max, checked_max: 10_000 }).unwrap();
        let page = ids.iter().take(n_max).copied().collect::<Vec<_>>();
        prop_assert_eq!(found, Found { ids: page, count: ids.len() as u64, is_too_wide: false });
    }
}

fn query() -> impl Strategy<Value = TextQuery> {
    let field = || proptest::sample::select(&[GuideField::Title, GuideField::Description]);
    let some =
        proptest::sample::select(&["n", "new", "SPO", "the a", "A", "東", "ete", "sports news", "!", "zzz"]);
    let words = (field(), some, any::<bool>()).prop_map(|(field, text, whole)| TextQuery::Words {
        field,
        text: text.to_owned(),
        whole,
    });
    let part = proptest::sample::select(&["ew", "S N", "été", "zzz"]);
    let contains =
        (field(), part).prop_map(|(field, text)| TextQuery::Contains { field, text: text.to_owned() });
    let matches = field().prop_map(|field| {
        let test: TextTest = Arc::new(|text: &str| text.len().is_multiple_of(2));
        TextQuery::Matches { field, test }
    });
    prop_oneof![4 => words, 1 => contains, 1 => matches].prop_recursive(2, 8, 3, |inner| {
        let parts = || proptest::collection::vec(inner.clone(), 0..3);
        prop_oneof![parts().prop_map(TextQuery::All), parts().prop_map(TextQuery::Any)]
    })
}

/// Returns whether a programme meets a condition, computed in another way than by the search.
fn is_met(query: &TextQuery, inner: &str) -> bool {
    let texts = |field: GuideField| {
        let name = if field == GuideField::Title { "title" } else { "desc" };
        let (begin, end) = (format!("<{name}"), format!("</{name}>"));
        let element = inner.split_once(&begin).and_then(|it| it.1.split_once(&end));
        element.and_then(|it| it.0.split_once('>')).map(|it| it.1.to_owned())
    };
    let plain = |text: &str| text.to_lowercase().replace('é', "e").replace("東京", "東 京");
    match query {
        TextQuery::Words { field, text, whole } => {
            let present = plain(&texts(*field).unwrap_or_default());
            let wanted = plain(text).replace('!', "");
            let is_present = |word: &str| {
                present.split(' ').any(|it| if *whole { it == word } else { it.starts_with(word) })
            };
            !wanted.is_empty() && wanted.split(' ').all(is_present)
        }
        TextQuery::Contains { field, text } => {
            texts(*field).is_some_and(|it| it.to_lowercase().contains(&text.to_lowercase()))
        }
        TextQuery::Matches { field, test } => texts(*field).is_some_and(|it| test(&it)),
        TextQuery::All(parts) => parts.iter().all(|it| is_met(it, inner)),
        TextQuery::Any(parts) => parts.iter().any(|it| is_met(it, inner)),
    }
}

/// Some programmes of three guide channels, enough for several cells and blocks.
fn many() -> Vec<Added> {
    let text = |at: i64| VOCABULARY[at as usize % VOCABULARY.len()].repeat(20);
    let of = |channel: u32| {
        (0..150).map(move |at| Added::new(channel, at * 30, 30, &text(at + i64::from(channel))))
    };
    [1, 2, 7].into_iter().flat_map(of).collect()
}

#[test]
fn a_search_that_would_check_too_many_programmes_reads_none_and_says_so() {
    let files = GuideFiles::temporary().unwrap();
    let file = write(&files, &many());
    let text = Some(TextQuery::Contains { field: GuideField::Title, text: "SPORT".to_owned() });
    let query = GuideQuery { text, ..GuideQuery::default() };
    let search = |query: &GuideQuery, checked_max| {
        file.search(query, &SearchLimits { n_max: 1_000, checked_max }).unwrap()
    };
    let all = search(&query, 450);
    assert_eq!((all.count, all.ids.len(), all.is_too_wide), (76, 76, false));
    assert_eq!(search(&query, 449), Found { ids: Vec::new(), count: 0, is_too_wide: true });
    let hour = GuideQuery { starts: unix(0)..unix(60), ..query.clone() };
    assert!(!search(&hour, 6).is_too_wide && search(&hour, 5).is_too_wide);
    // Beside an indexed condition, only programmes with the word are checked.
    let words = TextQuery::Words { field: GuideField::Title, text: "sport".to_owned(), whole: false };
    let both = TextQuery::All(vec![words, query.text.clone().unwrap()]);
    let query = GuideQuery { text: Some(both), ..query };
    assert_eq!(search(&query, 100), all);
}

#[test]
fn conditions_that_the_index_has_answered_are_not_checked_again() {
    let words =
        |text: &str| TextQuery::Words { field: GuideField::Title, text: text.to_owned(), whole: false };
    let contains = |text: &str| TextQuery::Contains { field: GuideField::Title, text: text.to_owned() };
    let passes = |query: &TextQuery| query.check().passes("<title>News</title>", &mut String::new());
    let both = TextQuery::All(vec![words("sport"), TextQuery::All(vec![contains("EWS"), words("film")])]);
    assert!(passes(&both), "all programmes that are checked have both words");
    assert!(!passes(&TextQuery::All(vec![words("news"), contains("film")])));
    // Of several conditions, each programme meets another one.
    let other = TextQuery::All(vec![words("sport"), contains("ews")]);
    assert!(!passes(&TextQuery::Any(vec![other.clone(), contains("film")])));
    assert!(passes(&TextQuery::Any(vec![other, contains("ews")])));
}

#[test]
fn a_query_with_too_many_words_is_refused() {
    let files = GuideFiles::temporary().unwrap();
    let file = write(&files, &many());
    let search = |n: usize| {
        let text = "word ".repeat(n);
        let text = Some(TextQuery::Words { field: GuideField::Title, text, whole: false });
        file.search(&GuideQuery { text, ..GuideQuery::default() }, &SearchLimits { n_max: 1, checked_max: 1 })
    };
    assert_eq!(search(QUERY_WORDS_MAX).unwrap().count, 0);
    assert!(matches!(search(QUERY_WORDS_MAX + 1), Err(Error::TooLarge { .. })));
}

#[test]
fn programmes_that_cannot_be_stored_are_left_out_and_counted() {
    let files = GuideFiles::temporary().unwrap();
    let mut writer = files.begin(SOURCE).unwrap();
    let channel = GuideChannelId(1);
    let large = "x".repeat(PROGRAMME_BYTES_MAX);
    writer.add(channel, BEGIN, BEGIN + 60, &large).unwrap();
    writer.add(channel, BEGIN + 60, i64::MAX, "<title>b</title>").unwrap();
    for (channel, start, inner) in [
        (channel, 0, "early"),
        (channel, i64::MIN, "early"),
        (channel, i64::MAX, "late"),
        (GuideChannelId(1 << 21), BEGIN, "id"),
        (channel, BEGIN + 120, &*format!("{large}x")),
    ] {
        writer.add(channel, start, start.saturating_add(60), inner).unwrap();
    }
    assert_eq!((writer.n_added(), writer.n_refused()), (2, 5));
    let finished = writer.finish().unwrap();
    assert_eq!((finished.n_programmes(), finished.n_refused()), (2, 5));
    assert_eq!(finished.span(), Some((BEGIN, ProgrammeId::START_MAX)));
    files.install(finished);
    let found = files.file(SOURCE).unwrap().programmes(channel, BEGIN, BEGIN + 1).unwrap();
    assert_eq!((found.len(), found[0].inner.len()), (1, PROGRAMME_BYTES_MAX));
}

#[test]
fn an_empty_file_has_no_programmes() {
    let files = GuideFiles::temporary().unwrap();
    let file = write(&files, &[]);
    assert_eq!((file.n_programmes(), file.channels().count()), (0, 0));
    assert_eq!(read_all(&file).unwrap(), (vec![], vec![], vec![]));
    assert_eq!(file.span(GuideChannelId(1)), None);
}

#[test]
fn programmes_that_ended_before_the_new_guide_begins_are_kept_for_as_long_as_asked() {
    let files = GuideFiles::temporary().unwrap();
    let old: Vec<_> = (0..10).flat_map(|at| [1, 2].map(|it| Added::new(it, at * 60, 60, "old"))).collect();
    let previous = write(&files, &old);
    // The new guide of channel 1 begins at 300, within a programme of the old one; channel 2 is gone.
    let new = [Added::new(1, 330, 30, "new"), Added::new(3, 270, 30, "new")];
    let mut writer = files.begin(SOURCE).unwrap();
    add_all(&mut writer, &new);
    writer.keep_history(&previous, unix(90)).unwrap();
    let finished = writer.finish().unwrap();
    // Channel 1 keeps those from 60 to 300, channel 2 those from 60 to 240.
    assert_eq!((finished.n_history(), finished.n_programmes()), (4 + 3, 4 + 3 + 2));
    files.install(finished);
    let kept = [(1, 60), (1, 120), (1, 180), (1, 240), (2, 60), (2, 120), (2, 180)];
    let kept = kept.map(|(channel, start)| Added::new(channel, start, 60, "old"));
    let all = [&kept[..], &new].concat();
    assert_eq!(rows(&files.file(SOURCE).unwrap(), ALL).unwrap(), expected(&all));
}

#[test]
fn a_file_is_used_once_it_is_installed_and_its_readers_outlive_it() {
    let files = GuideFiles::temporary().unwrap();
    assert!(files.file(SOURCE).is_none());
    let first = write(&files, &many());
    let mut writer = files.begin(SOURCE).unwrap();
    add_all(&mut writer, &many()[..5]);
    let finished = writer.finish().unwrap();
    assert!(finished.generation() > first.generation());
    assert_eq!(files.file(SOURCE).unwrap().generation(), first.generation());
    assert_eq!(names(&files.folder()).len(), 2);
    files.install(finished);
    assert_eq!(files.file(SOURCE).unwrap().n_programmes(), 5);
    assert_eq!(names(&files.folder()).len(), 1);
    // The file is gone, and its reader still has it.
    assert_eq!(rows(&first, ALL).unwrap(), expected(&many()));
    files.remove(SOURCE);
    assert!(files.file(SOURCE).is_none() && names(&files.folder()).is_empty());
    assert!(files.begin(SOURCE).unwrap().finish().unwrap().generation() > 2);
    assert_eq!(files.damaged(), []);
}

#[test]
fn a_file_that_is_not_installed_or_not_finished_leaves_no_trace() {
    let files = GuideFiles::temporary().unwrap();
    let mut dropped = files.begin(SOURCE).unwrap();
    add_all(&mut dropped, &many());
    drop(dropped);
    drop(files.begin(SOURCE).unwrap().finish().unwrap());
    assert_eq!(names(&files.folder()), Vec::<String>::new());
    // Of two at the same time, the later one counts, whichever is installed last.
    let (mut first, second) = (files.begin(SOURCE).unwrap(), files.begin(SOURCE).unwrap());
    add_all(&mut first, &many());
    files.install(second.finish().unwrap());
    files.install(first.finish().unwrap());
    assert_eq!((files.file(SOURCE).unwrap().n_programmes(), names(&files.folder()).len()), (0, 1));
}

#[test]
fn a_start_uses_the_files_that_states_name_and_removes_all_others() {
    let folder = tempfile::tempdir().unwrap();
    let files = GuideFiles::open(folder.path()).unwrap();
    let present = write(&files, &many());
    // A crash before the commit that names it, and one while a file was written.
    let later = files.begin(SOURCE).unwrap().finish().unwrap();
    std::mem::forget(later);
    for name in ["9-1.guide", "3-77.guide.part~", "00ff.part~", "notes.txt"] {
        fs::write(folder.path().join(name), "x").unwrap();
    }
    let generation = present.generation();
    let again = GuideFiles::open(folder.path()).unwrap();
    assert!(again.file(SOURCE).is_none());
    again.adopt([(SOURCE, generation), (GuideSourceId(4), 0)]).unwrap();
    assert_eq!(names(folder.path()), [format!("3-{generation}.guide"), "notes.txt".to_owned()]);
    assert_eq!(rows(&again.file(SOURCE).unwrap(), ALL).unwrap(), expected(&many()));
    assert_eq!(again.damaged(), []);
    // No number is used twice, not even that of a removed file.
    assert!(again.begin(SOURCE).unwrap().finish().unwrap().generation() > generation + 1);
}

#[test]
fn a_missing_or_damaged_file_is_reported_and_an_earlier_one_is_used_if_there_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let files = GuideFiles::open(folder.path()).unwrap();
    let present = write(&files, &many());
    let generation = present.generation();
    let adopted = |generation| {
        let again = GuideFiles::open(folder.path()).unwrap();
        again.adopt([(SOURCE, generation)]).unwrap();
        (again.file(SOURCE).map(|it| it.generation()), again.damaged())
    };
    assert_eq!(adopted(generation + 1), (Some(generation), vec![SOURCE]));
    let path = folder.path().join(format!("3-{generation}.guide"));
    let whole = fs::read(&path).unwrap();
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert_eq!(adopted(generation), (None, vec![SOURCE]));
    assert_eq!(names(folder.path()), Vec::<String>::new());
    assert_eq!(adopted(generation), (None, vec![SOURCE]));
    // The next refresh ends it.
    let again = GuideFiles::open(folder.path()).unwrap();
    again.adopt([(SOURCE, generation)]).unwrap();
    write(&again, &many()[..3]);
    assert_eq!((again.damaged(), again.file(SOURCE).unwrap().n_programmes()), (vec![], 3));
}

#[test]
fn any_other_byte_and_any_other_length_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let files = GuideFiles::open(folder.path()).unwrap();
    let mut writer = files.begin(SOURCE).unwrap();
    add_all(&mut writer, &many()[140..170]);
    let finished = writer.finish().unwrap();
    let whole = read_all(finished.file()).unwrap();
    let path = folder.path().join(format!("3-{}.guide", finished.generation()));
    let bytes = fs::read(&path).unwrap();
    let generation = finished.generation();
    let other = folder.path().join("other");
    let check = |bytes: &[u8], what: &str| {
        fs::write(&other, bytes).unwrap();
        let read = GuideFile::open(&other, SOURCE, generation).and_then(|it| {
            let read = read_all(&it);
            assert_eq!(it.is_damaged(), read.is_err(), "{what}");
            read
        });
        assert!(matches!(read, Err(Error::DamagedGuide { .. })), "{what}: {read:?}");
    };
    for at in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        check(&changed, &format!("byte {at} of {}", bytes.len()));
    }
    for length in (0..bytes.len()).step_by(7) {
        check(&bytes[..length], &format!("length {length}"));
    }
    check(&[&bytes[..], b"x"].concat(), "a longer file");
    fs::write(&other, &bytes).unwrap();
    assert_eq!(read_all(&GuideFile::open(&other, SOURCE, generation).unwrap()).unwrap(), whole);
    for (source, generation) in [(GuideSourceId(4), generation), (SOURCE, generation + 1)] {
        assert!(matches!(GuideFile::open(&other, source, generation), Err(Error::DamagedGuide { .. })));
    }
}

#[test]
fn damage_that_is_found_while_reading_takes_the_file_out_of_use() {
    let folder = tempfile::tempdir().unwrap();
    let files = GuideFiles::open(folder.path()).unwrap();
    let file = write(&files, &many());
    let path = folder.path().join(format!("3-{}.guide", file.generation()));
    let mut bytes = fs::read(&path).unwrap();
    bytes[20] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let first = GuideChannelId(1);
    assert!(matches!(file.programmes(first, ALL.0, ALL.1), Err(Error::DamagedGuide { source_id: 3, .. })));
    assert!(files.file(SOURCE).is_none());
    assert_eq!(files.damaged(), [SOURCE]);
    // Its undamaged parts are still history.
    let mut writer = files.begin(SOURCE).unwrap();
    writer.add(GuideChannelId(9), unix(100_000), unix(100_030), "<title>new</title>").unwrap();
    writer.keep_history(&file, i64::MIN).unwrap();
    let finished = writer.finish().unwrap();
    assert!((301..450).contains(&finished.n_programmes()), "{}", finished.n_programmes());
    files.install(finished);
    assert_eq!(files.damaged(), []);
}

#[test]
fn a_full_disk_fails_the_refresh_and_leaves_the_former_guide() {
    let disk = SmallDisk::new(8);
    let files = GuideFiles::open(&disk.0).unwrap();
    let before = write(&files, &many());
    let mut writer = files.begin(SOURCE).unwrap();
    let hash = |at: u32, it: u32| crc32fast::hash(&[at, it].map(u32::to_be_bytes).concat());
    let noise = |at| (0..300).map(|it| format!("{:08x}", hash(at, it))).collect::<String>();
    let failed = (0..20_000u32).find_map(|at| {
        let inner = format!("<title>{}</title>", noise(at));
        writer.add(GuideChannelId(1), unix(at.into()), unix(i64::from(at) + 1), &inner).err()
    });
    let failed = match failed {
        Some(error) => {
            // Its parts take the room.
            drop(writer);
            error
        }
        None => writer.finish().unwrap_err(),
    };
    assert!(matches!(failed, Error::NoRoom { .. } | Error::Disk { fault: Fault::Full, .. }), "{failed}");
    assert_eq!(files.file(SOURCE).unwrap().generation(), before.generation());
    assert_eq!(rows(&files.file(SOURCE).unwrap(), ALL).unwrap(), expected(&many()));
    assert_eq!(names(&disk.0).len(), 1);
    // A small guide still fits.
    write(&files, &many()[..5]);
}

/// Lists the names in a folder, sorted.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_content_of_a_channel_changes_with_its_programmes_only() {
    let files = GuideFiles::temporary().unwrap();
    let contents = |title: &str, start: i64| {
        let all =
            [Added::new(1, 0, 30, "One"), Added::new(2, start, 30, title), Added::new(3, 0, 30, "Three")];
        let file = write(&files, &all);
        [1, 2, 3, 4].map(|it| file.content(GuideChannelId(it)).unwrap())
    };
    let first = contents("Two", 0);
    assert_eq!(contents("Two", 0), first, "another file with the same programmes");
    for (title, start) in [("Two!", 0), ("Two", 5), ("A longer title", 0)] {
        let other = contents(title, start);
        assert_ne!(other[1], first[1], "{title} {start}");
        assert_eq!((other[0], other[2], other[3]), (first[0], first[2], first[3]));
    }
}

// A folder that an earlier version did not have kept the gateway from starting on a full disk.
#[test]
fn a_missing_folder_on_a_full_disk_is_created_with_the_first_file() {
    let disk = SmallDisk::new(8);
    disk.limit_files(1);
    let files = GuideFiles::open(&disk.0.join("guides")).unwrap();
    files.adopt([(SOURCE, 1)]).unwrap();
    assert_eq!((files.damaged(), files.present().len()), (vec![SOURCE], 0));
    let refused = files.begin(SOURCE).err().unwrap();
    assert!(refused.is_full(), "{refused}");
    disk.limit_files(100);
    write(&files, &many()[..5]);
    assert_eq!(files.damaged(), []);
}
