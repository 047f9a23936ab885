//! Writes playlists that every player can read.

use std::fmt::Write;

use crate::channel::ChannelNumber;

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
    pub group: &'a str,
}

/// Writes the first line. The guide's address is written to both attributes that players look for.
pub fn write_header(out: &mut String, guide_url: Option<&str>) {
    out.push_str("#EXTM3U");
    if let Some(url) = guide_url {
        attribute(out, "x-tvg-url", url);
        attribute(out, "url-tvg", url);
    }
    out.push('\n');
}

/// Writes one entry: two lines.
pub fn write_entry(out: &mut String, line: &OutputEntry<'_>) {
    out.push_str("#EXTINF:-1");
    attribute(out, "tvg-id", line.tvg_id);
    attribute(out, "tvg-name", line.name);
    attribute(out, "tvg-logo", line.tvg_logo);
    if let Some(number) = line.tvg_chno {
        write!(out, " tvg-chno=\"{number}\"").expect("writing to a String cannot fail");
    }
    attribute(out, "group-title", line.group);
    out.push(',');
    text(out, line.name, false);
    out.push('\n');
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
        write_header(&mut out, Some("http://h/guide?a=b"));
        let number = "4.0".parse().ok();
        write_entry(
            &mut out,
            &OutputEntry {
                name: "News",
                url: "http://h/1",
                tvg_id: "news",
                tvg_logo: "http://h/l",
                tvg_chno: number,
                group: "All",
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
             #EXTINF:-1 tvg-id=\"news\" tvg-name=\"News\" tvg-logo=\"http://h/l\" tvg-chno=\"4\" group-title=\"All\",News\n\
             http://h/1\n\
             #EXTINF:-1 tvg-id=\"\" tvg-name=\"The 'Best', TV\" tvg-logo=\"\" group-title=\"A'B \",The \"Best\", TV\n\
             http://h/2\n"
        );
    }

    #[test]
    fn a_playlist_without_a_guide_has_a_plain_header() {
        let mut out = String::new();
        write_header(&mut out, None);
        assert_eq!(out, "#EXTM3U\n");
    }

    proptest! {
        #[test]
        fn the_parser_reads_what_the_writer_wrote(
            name in "[^\\p{Cc}]{0,30}|tvg-[a-z]=['\"]x['\"]",
            id in "[^\\p{Cc}\"]{0,30}",
            group in "[\"'a-z=, ]{0,30}",
        ) {
            let mut out = String::new();
            write_header(&mut out, None);
            let line = OutputEntry { name: &name, url: "http://h/1", tvg_id: &id, tvg_logo: "l", group: &group, tvg_chno: None };
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
