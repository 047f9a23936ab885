//! Several guides of one channel: each fills the hours and the fields that those before it lack.

use super::programme::{Programme, from_xml, to_xml};
use super::words::lower;

/// Two programmes whose starts are at most this far apart can be the same showing, in seconds.
pub const SAME_START: i64 = 5 * 60;
/// Parts of a programme that are shorter than this fill no gap, in seconds: guides differ by some minutes.
const PART_MIN: i64 = 5 * 60;

/// The programmes of the guides before, by their start. Times are seconds since 1970.
pub struct Covered {
    starts: Vec<(i64, usize)>,
    /// Times with a programme, without overlaps.
    spans: Vec<(i64, i64)>,
}

impl Covered {
    /// Takes start and stop of each programme.
    pub fn new(programmes: impl Iterator<Item = (i64, i64)>) -> Self {
        let mut times: Vec<((i64, i64), usize)> = programmes.zip(0..).collect();
        times.sort_unstable();
        let mut spans: Vec<(i64, i64)> = Vec::new();
        for ((start, stop), _) in &times {
            match spans.last_mut() {
                Some(last) if *start <= last.1 => last.1 = last.1.max(*stop),
                _ => spans.push((*start, *stop)),
            }
        }
        Self { starts: times.into_iter().map(|it| (it.0.0, it.1)).collect(), spans }
    }

    /// Returns the positions of the programmes that start at nearly this time.
    pub fn starting_near(&self, start: i64) -> impl Iterator<Item = usize> {
        let first = self.starts.partition_point(|it| it.0 < start - SAME_START);
        self.starts[first..].iter().take_while(move |it| it.0 <= start + SAME_START).map(|it| it.1)
    }

    /// Returns the longest part of a programme at whose time no other one is. `None` if only some minutes are left.
    pub fn gap(&self, start: i64, stop: i64) -> Option<(i64, i64)> {
        let first = self.spans.partition_point(|it| it.1 <= start);
        let (mut from, mut longest) = (start, None);
        let within = self.spans[first..].iter().take_while(|it| it.0 < stop);
        for (begin, end) in within.copied().chain([(stop, stop)]) {
            let part = (from, begin);
            if part.1 - part.0 > longest.map_or(0, |(from, until): (i64, i64)| until - from) {
                longest = Some(part);
            }
            from = from.max(end);
        }
        longest.filter(|it| *it == (start, stop) || it.1 - it.0 >= PART_MIN)
    }
}

/// The elements that a programme of another guide can add, in their stored form.
const ELEMENTS: [&str; 19] = [
    "<sub-title",
    "<desc",
    "<credits",
    "<date",
    "<category",
    "<keyword",
    "<language",
    "<orig-language",
    "<length",
    "<icon",
    "<url",
    "<country",
    "<episode-num",
    "<video",
    "<audio",
    "<rating",
    "<star-rating",
    "<review",
    "<image",
];

/// Returns the stored form of a programme with the fields that it lacks and the same showing in another guide has. `None` if
/// the other one adds nothing, or is another showing: it has another title.
pub fn completed(inner: &str, other: &str) -> Option<String> {
    let lacks_title = inner.contains("<title></title>") || !inner.contains("<title");
    let adds = |it: &&str| !inner.contains(*it) && other.contains(*it);
    if !lacks_title && !ELEMENTS.iter().any(adds) {
        return None;
    }
    // Their times are not part of the stored form.
    let (mut programme, other) = (from_xml(0, 1, inner).ok()?, from_xml(0, 1, other).ok()?);
    if !programme.title().is_empty() && lower(programme.title()) != lower(other.title()) {
        return None;
    }
    add_missing(&mut programme, other);
    let mut out = String::new();
    to_xml(&programme, &mut out);
    (out != inner).then_some(out)
}

fn add_missing(programme: &mut Programme, other: Programme) {
    fn list<T>(own: &mut Vec<T>, other: Vec<T>) {
        if own.is_empty() {
            *own = other;
        }
    }
    fn value<T>(own: &mut Option<T>, other: Option<T>) {
        if own.is_none() {
            *own = other;
        }
    }
    if programme.title().is_empty() {
        programme.titles = other.titles;
    }
    list(&mut programme.sub_titles, other.sub_titles);
    list(&mut programme.descriptions, other.descriptions);
    list(&mut programme.credits, other.credits);
    list(&mut programme.categories, other.categories);
    list(&mut programme.keywords, other.keywords);
    list(&mut programme.icons, other.icons);
    list(&mut programme.urls, other.urls);
    list(&mut programme.countries, other.countries);
    list(&mut programme.episode_numbers, other.episode_numbers);
    list(&mut programme.ratings, other.ratings);
    list(&mut programme.star_ratings, other.star_ratings);
    list(&mut programme.reviews, other.reviews);
    list(&mut programme.images, other.images);
    value(&mut programme.date, other.date);
    value(&mut programme.language, other.language);
    value(&mut programme.orig_language, other.orig_language);
    value(&mut programme.length, other.length);
    value(&mut programme.video, other.video);
    value(&mut programme.audio, other.audio);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_programme_fills_the_longest_gap_at_its_time() {
        let covered = Covered::new([(0, 1000), (3000, 4000), (3500, 5000), (9000, 9100)].into_iter());
        for (programme, gap) in [
            ((1000, 3000), Some((1000, 3000))),
            ((900, 3100), Some((1000, 3000))),
            ((5000, 12_000), Some((5000, 9000))),
            ((8000, 20_000), Some((9100, 20_000))),
            ((0, 1000), None),
            ((3000, 5000), None),
            ((3200, 3300), None),
            // Some minutes are left.
            ((3000, 5200), None),
            ((3000, 5300), Some((5000, 5300))),
            // A short programme is whole.
            ((1000, 1060), Some((1000, 1060))),
            ((-60, 0), Some((-60, 0))),
        ] {
            assert_eq!(covered.gap(programme.0, programme.1), gap, "{programme:?}");
        }
        let empty = Covered::new([].into_iter());
        assert_eq!(empty.gap(5, 6), Some((5, 6)));
        assert_eq!(empty.starting_near(0).count(), 0);
    }

    #[test]
    fn the_same_showing_starts_within_five_minutes() {
        let covered = Covered::new([(0, 60), (1000, 2000), (1200, 1300)].into_iter());
        for (start, found) in
            [(1000, vec![1, 2]), (700, vec![1]), (699, vec![]), (1500, vec![2]), (1501, vec![])]
        {
            assert_eq!(covered.starting_near(start).collect::<Vec<_>>(), found, "{start}");
        }
    }

    #[test]
    fn a_programme_gets_the_fields_that_it_lacks_from_the_same_showing() {
        let full = "<title>Evening News</title><sub-title>Part 2</sub-title><desc>About.</desc>\
                    <category>News</category><episode-num system=\"onscreen\">S01E02</episode-num>";
        for (inner, completed_form) in [
            ("<title lang=\"en\">Evening news</title>", Some("<title lang=\"en\">Evening news</title>")),
            ("<title></title>", Some("<title>Evening News</title>")),
        ] {
            let rest = full.strip_prefix("<title>Evening News</title>").unwrap();
            let expected = completed_form.map(|it| format!("{it}{rest}"));
            assert_eq!(completed(inner, full), expected, "{inner}");
        }
        let own = "<title>Evening News</title><desc>My own.</desc><category>Magazine</category>";
        let both = completed(own, full).unwrap();
        assert!(both.contains("My own.") && both.contains("Magazine") && both.contains("S01E02"), "{both}");
        assert!(!both.contains("About.") && !both.contains(">News<"), "{both}");
        assert_eq!(completed("<title>Film</title>", full), None, "another showing");
        assert_eq!(completed(full, own), None, "nothing is missing");
    }
}
