//! Generated guides: programmes that follow from the name of a channel or stream, as event channels carry it
//! (`NHL 03: Bruins vs Leafs @ 8:00 PM ET`).
//!
//! A generated guide is a set of properties of its guide source. Nothing is stored: programmes are computed when they are
//! read, from the name and the time. The start of a programme does not depend on the window that is asked for, so ids of
//! programmes are stable.

mod properties;
mod template;
#[cfg(test)]
mod tests;
mod when;

use std::collections::BTreeMap;

use jiff::tz::TimeZone;
use regex::Regex;

use self::template::Template;
use crate::guide::programme::{LocalText, Programme, ProgrammeIcon};
use crate::pattern::TEXT_BYTES_MAX;

pub use self::properties::{GuidePropertyError, STREAM_INDEX_MAX};
pub(crate) use self::when::month;

/// Maximum number of programmes of one answer: 14 days of the shortest ones, and some more.
pub const PROGRAMMES_MAX: usize = 5_000;

/// Length of a day in UTC, in seconds.
const DAY: i64 = 86_400;
/// Times further from 1970 than this, in seconds, count as this: about 8,000 years, which every calendar here can hold.
const TIME_MAX: i64 = 250_000_000_000;

/// The values of the groups of the patterns, and those that follow from the event, by the name of the placeholder.
type Values = BTreeMap<String, String>;

/// The name that the patterns are applied to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSource {
    /// The name of the channel.
    Channel,
    /// The name of a stream of the channel.
    Stream {
        /// Position in the failover order, from 1.
        index: usize,
    },
}

/// A generated guide: the checked properties of its guide source.
#[derive(Debug, Clone)]
pub struct GeneratedGuide {
    title_pattern: Option<Regex>,
    time_pattern: Option<Regex>,
    date_pattern: Option<Regex>,
    /// Texts of the event, or of every programme if the name contains no time.
    event: Texts,
    /// Texts before the event.
    upcoming: Texts,
    /// Texts after the event.
    ended: Texts,
    /// Texts of names that the patterns do not match.
    fallback: Texts,
    /// Length of a programme, in seconds.
    duration: i64,
    /// The time zone of the times in names.
    zone: TimeZone,
    /// The time zone of the times in texts.
    output_zone: TimeZone,
    categories: Vec<String>,
    include_date: bool,
    include_live: bool,
    include_new: bool,
    logo: Option<Template>,
    poster: Option<Template>,
    name_source: NameSource,
}

/// The templates of one kind of programme. Without a title template, the title is the name.
#[derive(Debug, Clone, Default)]
struct Texts {
    title: Option<Template>,
    description: Option<Template>,
}

/// The contents of a name.
struct Reading {
    values: Values,
    /// Start and end of the event, if the name contains one.
    event: Option<(i64, i64)>,
}

/// Returns the key of the guide channel of a generated guide: `dummy_` and the name of the guide source in lower case,
/// with other characters than letters and digits replaced.
pub fn guide_channel_key(source_name: &str) -> String {
    let plain = |it: char| if it.is_alphanumeric() { it } else { '_' };
    format!("dummy_{}", source_name.trim().to_lowercase().chars().map(plain).collect::<String>())
}

/// Returns the programmes of a channel or stream with this name that overlap `from..until`, by start, at most
/// [`PROGRAMMES_MAX`]. They follow each other without a gap. All times are Unix seconds.
///
/// A name with a date has its event on that day; a name with only a time has it today, seen from `now`. Programmes before
/// the event are upcoming, those after it have ended. Other programmes begin at multiples of the length of a programme,
/// counted from midnight in UTC.
pub fn programmes(guide: &GeneratedGuide, name: &str, now: i64, from: i64, until: i64) -> Vec<Programme> {
    let name = clipped(name);
    let [now, from, until] = [now, from, until].map(|it| it.clamp(-TIME_MAX, TIME_MAX));
    let Some(reading) = guide.read(name, now) else {
        let values = Values::from([name_value(name)]);
        let blocks = blocks(guide.duration, from, until);
        return blocks.map(|it| guide.programme(&guide.fallback, name, &values, it)).collect();
    };
    let values = &reading.values;
    let Some((start, stop)) = reading.event else {
        let blocks = blocks(guide.duration, from, until);
        return blocks.map(|it| guide.main_programme(name, values, it)).collect();
    };
    let before = blocks(guide.duration, from, until.min(start)).map(|(begin, end)| (begin, end.min(start)));
    let before = before.map(|it| guide.programme(&guide.upcoming, name, values, it));
    let is_wanted = start < until && stop > from;
    let event = is_wanted.then(|| guide.main_programme(name, values, (start, stop)));
    let after = blocks(guide.duration, from.max(stop), until).map(|(begin, end)| (begin.max(stop), end));
    let after = after.map(|it| guide.programme(&guide.ended, name, values, it));
    before.chain(event).chain(after).take(PROGRAMMES_MAX).collect()
}

impl GeneratedGuide {
    /// Returns the name that the patterns are applied to.
    pub fn name_source(&self) -> NameSource {
        self.name_source
    }

    /// Returns the address of the logo for a channel with this name, if the properties contain one.
    pub fn logo(&self, name: &str, now: i64) -> Option<String> {
        let name = clipped(name);
        let template = self.logo.as_ref()?;
        Some(template.render_url(&self.read(name, now.clamp(-TIME_MAX, TIME_MAX))?.values))
    }

    /// Returns the values of all placeholders for this name, or `None` if the patterns do not match it.
    pub fn placeholders(&self, name: &str, now: i64) -> Option<BTreeMap<String, String>> {
        self.read(clipped(name), now.clamp(-TIME_MAX, TIME_MAX)).map(|it| it.values)
    }

    /// Applies the patterns. `None` if the title pattern does not match or, without one, no pattern matches.
    fn read(&self, name: &str, now: i64) -> Option<Reading> {
        let mut values = Values::from([name_value(name)]);
        let has_title = capture(self.title_pattern.as_ref(), name, &mut values);
        if self.title_pattern.is_some() && !has_title {
            return None;
        }
        let has_time = capture(self.time_pattern.as_ref(), name, &mut values);
        let has_date = capture(self.date_pattern.as_ref(), name, &mut values);
        if !(has_title || has_time || has_date) {
            return None;
        }
        let event = when::event(&values, &self.zone, self.duration, now);
        if let Some((start, stop)) = event {
            values.extend(when::placeholders(start, stop, &self.output_zone));
        }
        Some(Reading { values, event })
    }

    /// Returns a programme that shows the event itself.
    fn main_programme(&self, name: &str, values: &Values, span: (i64, i64)) -> Programme {
        let mut programme = self.programme(&self.event, name, values, span);
        programme.categories = self.categories.iter().map(LocalText::new).collect();
        programme.is_live = self.include_live;
        programme.is_new = self.include_new;
        programme.date = self.include_date.then(|| when::xmltv_date(span.0, &self.output_zone)).flatten();
        programme
    }

    fn programme(&self, texts: &Texts, name: &str, values: &Values, span: (i64, i64)) -> Programme {
        let title = texts.title.as_ref().map(|it| it.render(values)).filter(|it| !it.is_empty());
        let description = texts.description.as_ref().map(|it| it.render(values));
        let mut programme = programme(title.as_deref().unwrap_or(name), description, span);
        let poster = self.poster.as_ref().map(|it| it.render_url(values));
        programme.icons =
            poster.map(|src| ProgrammeIcon { src, ..ProgrammeIcon::default() }).into_iter().collect();
        programme
    }
}

fn programme(title: &str, description: Option<String>, (start, stop): (i64, i64)) -> Programme {
    let description = description.filter(|it| !it.is_empty());
    Programme {
        start,
        stop,
        titles: vec![LocalText::new(title)],
        descriptions: description.map(LocalText::new).into_iter().collect(),
        ..Programme::default()
    }
}

/// Returns the name as a placeholder.
fn name_value(name: &str) -> (String, String) {
    ("channel_name".to_owned(), name.to_owned())
}

/// Returns the part of a name that patterns are applied to: all of it, unless it is longer than [`TEXT_BYTES_MAX`].
fn clipped(name: &str) -> &str {
    &name[..name.floor_char_boundary(TEXT_BYTES_MAX)]
}

/// Adds the values of the named groups of a pattern, and returns whether it matches.
fn capture(pattern: Option<&Regex>, name: &str, values: &mut Values) -> bool {
    let Some((pattern, found)) = pattern.and_then(|it| Some((it, it.captures(name)?))) else { return false };
    for group in pattern.capture_names().flatten() {
        let value = found.name(group).map_or("", |it| it.as_str().trim());
        // A group that takes no part in this match does not hide the same group of another pattern.
        if !value.is_empty() || !values.contains_key(group) {
            values.insert(group.to_owned(), value.to_owned());
        }
    }
    true
}

/// Returns the blocks of this length that overlap `from..until`, counted from midnight in UTC; the last block of a day may
/// be shorter. At most [`PROGRAMMES_MAX`].
fn blocks(length: i64, from: i64, until: i64) -> impl Iterator<Item = (i64, i64)> {
    let day = from.div_euclid(DAY) * DAY;
    let mut next = day + (from - day) / length * length;
    let block = move || {
        if next >= until {
            return None;
        }
        let start = next;
        let midnight = start.div_euclid(DAY) * DAY + DAY;
        next = (start + length).min(midnight);
        Some((start, next))
    };
    std::iter::from_fn(block).take(if from < until { PROGRAMMES_MAX } else { 0 })
}
