//! Writes playlists that every player can read.

use std::fmt::Write;

use crate::channel::ChannelNumber;
use crate::playlist::tags::PlaylistTags;

/// An entry of a playlist to be written.
#[derive(Debug, Clone, Copy, Default)]
pub struct OutputEntry<'a> {
    pub name: &'a str,
    /// Written unchanged, except for line breaks.
    pub url: &'a str,
    pub tvg_id: &'a str,
    /// Address of the logo; empty if there is none.
    pub tvg_logo: &'a str,
    pub tvg_chno: Option<ChannelNumber>,
    /// Station in a guide that some players bring themselves (`tvc-guide-stationid`); empty if there is none.
    pub station: &'a str,
    pub group: &'a str,
    /// How the past of the channel is reached, if there is an archive.
    pub catchup: Option<OutputCatchup<'a>>,
    /// Additional attributes, and lines before the address.
    pub tags: Option<&'a PlaylistTags>,
}

/// How players reach the past of a channel.
#[derive(Debug, Clone, Copy)]
pub struct OutputCatchup<'a> {
    /// The template of the address.
    pub source: &'a str,
    /// Depth of the archive.
    pub days: u32,
}

/// Writes the first line. The guide's address is written to both attributes that players look for.
pub fn write_header(out: &mut String, guide_url: Option<&str>, tags: Option<&PlaylistTags>) {
    out.push_str("#EXTM3U");
    if let Some(url) = guide_url {
        attribute(out, "x-tvg-url", url);
        attribute(out, "url-tvg", url);
    }
    for (name, value) in tags.into_iter().flat_map(|it| &it.header) {
        attribute(out, name, value);
    }
    out.push('\n');
}

/// Writes one entry with its attributes: two lines, and one for each property.
pub fn write_entry(out: &mut String, line: &OutputEntry<'_>) {
    out.push_str("#EXTINF:-1");
    attribute(out, "tvg-id", line.tvg_id);
    attribute(out, "tvg-name", line.name);
    attribute(out, "tvg-logo", line.tvg_logo);
    if let Some(number) = line.tvg_chno {
        write!(out, " tvg-chno=\"{number}\"").expect("writing to a String cannot fail");
    }
    if !line.station.is_empty() {
        attribute(out, "tvc-guide-stationid", line.station);
    }
    attribute(out, "group-title", line.group);
    let is_replaced = || line.tags.is_some_and(|it| it.entries.iter().any(|it| it.0.starts_with("catchup")));
    if let Some(catchup) = line.catchup.filter(|_| !is_replaced()) {
        attribute(out, "catchup", "default");
        attribute(out, "catchup-source", catchup.source);
        write!(out, " catchup-days=\"{}\"", catchup.days).expect("writing to a String cannot fail");
    }
    for (name, value) in line.tags.into_iter().flat_map(|it| &it.entries) {
        attribute(out, name, value);
    }
    name_and_url(out, line);
}

/// Writes one entry without attributes: the plain form of the format.
pub fn write_plain_entry(out: &mut String, line: &OutputEntry<'_>) {
    out.push_str("#EXTINF:-1");
    name_and_url(out, line);
}

fn name_and_url(out: &mut String, line: &OutputEntry<'_>) {
    out.push(',');
    display_name(out, line.name);
    out.push('\n');
    for (name, value) in line.tags.into_iter().flat_map(|it| &it.properties) {
        out.push_str("#KODIPROP:");
        text(out, name, false);
        out.push('=');
        text(out, value, false);
        out.push('\n');
    }
    text(out, line.url, false);
    out.push('\n');
}

/// Quotes are replaced, because players cannot escape them and would misread the attributes that follow.
fn attribute(out: &mut String, key: &str, value: &str) {
    out.push(' ');
    out.push_str(key);
    out.push_str("=\"");
    text(out, value, true);
    out.push('"');
}

/// Writes the name at the end of an entry. A comma becomes a semicolon: Jellyfin takes the text after the last comma of
/// the line as the name (`M3uParser.cs`), and would cut off the rest.
fn display_name(out: &mut String, name: &str) {
    let start = out.len();
    text(out, name, false);
    if out[start..].contains(',') {
        let changed = out[start..].replace(',', ";");
        out.replace_range(start.., &changed);
    }
}

/// Replaces line breaks and other control characters, which would let a name start a line of its own.
fn text(out: &mut String, value: &str, is_quoted: bool) {
    out.extend(value.chars().map(|it| match it {
        '"' if is_quoted => '\'',
        it if it.is_control() || matches!(it, '\u{2028}' | '\u{2029}') => ' ',
        it => it,
    }));
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::playlist::m3u::{self, PlaylistItem, PlaylistLimits};

    #[test]
    fn a_playlist_is_written_as_players_expect_it() {
        let mut out = String::new();
        write_header(&mut out, Some("http://h/guide?a=b"), None);
        let number = "4.0".parse().ok();
        write_entry(
            &mut out,
            &OutputEntry {
                name: "News",
                url: "http://h/1",
                tvg_id: "news",
                tvg_logo: "http://h/l",
                tvg_chno: number,
                station: "20453",
                group: "All",
                catchup: Some(OutputCatchup { source: "http://h/1?utc={utc}", days: 3 }),
                tags: None,
            },
        );
        write_entry(
            &mut out,
            &OutputEntry {
                name: "The \"Best\",\nTV",
                url: "http://h/2",
                group: "A\"B\r",
                ..OutputEntry::default()
            },
        );
        assert_eq!(
            out,
            "#EXTM3U x-tvg-url=\"http://h/guide?a=b\" url-tvg=\"http://h/guide?a=b\"\n\
             #EXTINF:-1 tvg-id=\"news\" tvg-name=\"News\" tvg-logo=\"http://h/l\" tvg-chno=\"4\" \
             tvc-guide-stationid=\"20453\" group-title=\"All\" catchup=\"default\" \
             catchup-source=\"http://h/1?utc={utc}\" catchup-days=\"3\",News\n\
             http://h/1\n\
             #EXTINF:-1 tvg-id=\"\" tvg-name=\"The 'Best', TV\" tvg-logo=\"\" group-title=\"A'B \",The \"Best\"; TV\n\
             http://h/2\n"
        );
    }

    #[test]
    fn a_playlist_without_a_guide_has_a_plain_header() {
        let mut out = String::new();
        write_header(&mut out, None, None);
        assert_eq!(out, "#EXTM3U\n");
    }

    #[test]
    fn an_entry_without_attributes_is_a_name_and_an_address() {
        let mut out = String::new();
        let line = OutputEntry { name: "One, two", url: "http://h/1", tvg_id: "x", ..OutputEntry::default() };
        write_plain_entry(&mut out, &line);
        assert_eq!(out, "#EXTINF:-1,One; two\nhttp://h/1\n");
    }

    #[test]
    fn additional_tags_are_written_to_the_first_line_and_to_every_entry() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let tags = PlaylistTags {
            header: [pair("refresh", "3600")].into(),
            entries: [pair("tvg-shift", "\"1\"")].into(),
            properties: [pair("mimetype", "video/mp2t")].into(),
        };
        let mut out = String::new();
        write_header(&mut out, None, Some(&tags));
        let line =
            OutputEntry { name: "One", url: "http://h/1", tags: Some(&tags), ..OutputEntry::default() };
        write_entry(&mut out, &line);
        assert_eq!(
            out,
            "#EXTM3U refresh=\"3600\"\n\
             #EXTINF:-1 tvg-id=\"\" tvg-name=\"One\" tvg-logo=\"\" group-title=\"\" tvg-shift=\"'1'\",One\n\
             #KODIPROP:mimetype=video/mp2t\n\
             http://h/1\n"
        );
    }

    proptest! {
        #[test]
        fn the_parser_reads_what_the_writer_wrote(
            name in "[^\\p{Cc}]{0,30}|tvg-[a-z]=['\"]x['\"]",
            id in "[^\\p{Cc}\"]{0,30}",
            group in "[\"'a-z=, ]{0,30}",
        ) {
            let mut out = String::new();
            write_header(&mut out, None, None);
            let line = OutputEntry {
                name: &name,
                url: "http://h/1",
                tvg_id: &id,
                tvg_logo: "l",
                group: &group,
                ..OutputEntry::default()
            };
            write_entry(&mut out, &line);
            let (items, summary) = m3u::parse(out.as_bytes(), PlaylistLimits::default());
            prop_assert_eq!((summary.entries, summary.lines), (1, 3));
            let Some(PlaylistItem::Entry(read)) = items.last() else { panic!("no entry") };
            prop_assert_eq!(read.url.expose(), "http://h/1");
            // A value must not affect the next attribute.
            prop_assert_eq!(read.tvg_logo.as_deref(), Some("l"));
            prop_assert_eq!(read.tvg_id.as_deref().unwrap_or_default(), id.trim());
        }
    }
}
