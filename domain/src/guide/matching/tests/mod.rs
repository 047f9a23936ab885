//! Matching as admins see it: names as providers and guides write them, and what becomes of them.

mod decisions;
mod groups;
mod labelled;
mod names;
mod properties;

use super::*;
use crate::ids::{GuideChannelId, GuideSourceId};

/// A guide channel of a test: source, priority, key and names.
type Row<'a> = (u32, i32, &'a str, &'a [&'a str]);

/// Prepares guide channels with the ids 1, 2, 3, …
fn matcher(rows: &[Row<'_>], aliases: &[GuideAlias], settings: MatchSettings) -> Matcher {
    let names: Vec<Vec<String>> =
        rows.iter().map(|it| it.3.iter().map(|it| (*it).to_owned()).collect()).collect();
    let entries = rows.iter().zip(&names).zip(1..).map(|((row, names), id)| GuideEntry {
        id: GuideChannelId(id),
        source: GuideSourceId(row.0),
        priority: row.1,
        has_station_keys: false,
        key: row.2,
        names,
    });
    Matcher::new(entries, aliases.iter(), settings)
}

/// Prepares a guide whose channels have these keys and names.
fn guide(rows: &[(&str, &str)]) -> Matcher {
    let names: Vec<[&str; 1]> = rows.iter().map(|it| [it.1]).collect();
    let rows: Vec<Row<'_>> = rows.iter().zip(&names).map(|(row, names)| (1, 0, row.0, &names[..])).collect();
    matcher(&rows, &[], MatchSettings::default())
}

fn named(name: &str) -> Subject<'_> {
    Subject { name, ..Subject::default() }
}

/// Returns the guide channel that is linked with a channel.
fn link(matcher: &Matcher, subject: &Subject<'_>) -> Option<u32> {
    match matcher.find(subject, false).decision {
        Decision::Link(id) => Some(id.0),
        _ => None,
    }
}
