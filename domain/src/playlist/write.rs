//! Writes playlists that every player can read.

use std::fmt::Write;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value};

use crate::channel::ChannelNumber;
use crate::entry_details::{ChannelMarks, EntryDetails, OptionForm, PlayerOption};
use crate::playlist::tags::PlaylistTags;
use crate::stream::RequestHeaders;

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
    /// Marks of the provider.
    pub marks: Option<&'a ChannelMarks>,
    /// Additional attributes, and lines before the address.
    pub tags: Option<&'a PlaylistTags>,
    /// For players that get the stream from the provider.
    pub hints: Option<OutputHints<'a>>,
}

/// Lines for a player that asks the provider itself.
#[derive(Debug, Clone, Copy)]
pub enum OutputHints<'a> {
    /// All headers, options and attributes. They may contain secrets of the account.
    Direct { headers: &'a RequestHeaders, details: Option<&'a EntryDetails> },
    /// User agent, referrer, origin, and the type of the manifest. Never a cookie, a login, another header or a key.
    Redirected { headers: &'a RequestHeaders, details: Option<&'a EntryDetails> },
}

impl<'a> OutputHints<'a> {
    fn headers(self) -> &'a RequestHeaders {
        match self {
            Self::Direct { headers, .. } | Self::Redirected { headers, .. } => headers,
        }
    }

    /// Returns the headers that lines of VLC do not have.
    fn other_headers(self) -> impl Iterator<Item = &'a (String, String)> {
        let is_direct = matches!(self, Self::Direct { .. });
        self.headers().extra.iter().filter(move |it| is_direct && !is_origin(it))
    }

    /// Returns the options of one form.
    fn options(self, form: OptionForm) -> impl Iterator<Item = &'a PlayerOption> {
        let (details, is_direct) = match self {
            Self::Direct { details, .. } => (details, true),
            Self::Redirected { details, .. } => (details, false),
        };
        let options = details.into_iter().flat_map(|it| &it.options);
        options.filter(move |it| it.form == form && (is_direct || it.is_manifest_type()))
    }
}

fn is_origin(header: &(String, String)) -> bool {
    header.0.eq_ignore_ascii_case("origin")
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
    marks(out, line);
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

/// Writes the marks of the provider, and for admins all attributes that only players use. A tag of the lineup replaces one.
fn marks(out: &mut String, line: &OutputEntry<'_>) {
    let is_tag = |name: &str| line.tags.is_some_and(|it| it.entries.contains_key(name));
    let mut write = |name: &str, value: &str| {
        if !is_tag(name) {
            attribute(out, name, value);
        }
    };
    if let Some(ChannelMarks { is_radio, language, country }) = line.marks {
        if *is_radio {
            write("radio", "true");
        }
        language.iter().for_each(|it| write("tvg-language", it));
        country.iter().for_each(|it| write("tvg-country", it));
    }
    if let Some(OutputHints::Direct { details: Some(details), .. }) = line.hints {
        details.channel_id.iter().for_each(|it| write("channel-id", it));
        details.attributes.iter().for_each(|it| write(&it.name, &it.value));
    }
}

fn name_and_url(out: &mut String, line: &OutputEntry<'_>) {
    out.push(',');
    display_name(out, line.name);
    out.push('\n');
    for (name, value) in line.tags.into_iter().flat_map(|it| &it.properties) {
        option(out, "#KODIPROP:", name, value);
    }
    if let Some(hints) = line.hints {
        hint_lines(out, hints);
    }
    text(out, line.url, false);
    let mut separator = '|';
    for it in line.hints.into_iter().flat_map(|it| it.options(OptionForm::Pipe)) {
        let value = utf8_percent_encode(&it.value, NON_ALPHANUMERIC);
        write!(out, "{separator}{}={value}", it.name).expect("writing to a String cannot fail");
        separator = '&';
    }
    out.push('\n');
}

/// Writes headers as VLC reads them, the others as a JSON object, and the options of players.
fn hint_lines(out: &mut String, hints: OutputHints<'_>) {
    const VLC: &str = "#EXTVLCOPT:";
    let headers = hints.headers();
    headers.user_agent.iter().for_each(|it| option(out, VLC, "http-user-agent", it));
    headers.referrer.iter().for_each(|it| option(out, VLC, "http-referrer", it));
    headers.extra.iter().filter(|it| is_origin(it)).for_each(|it| option(out, VLC, "http-origin", &it.1));
    let others: Map<String, Value> =
        hints.other_headers().map(|it| (it.0.clone(), it.1.clone().into())).collect();
    if !others.is_empty() {
        out.push_str("#EXTHTTP:");
        text(out, &Value::Object(others).to_string(), false);
        out.push('\n');
    }
    hints.options(OptionForm::Vlc).for_each(|it| option(out, VLC, &it.name, &it.value));
    hints.options(OptionForm::Kodi).for_each(|it| option(out, "#KODIPROP:", &it.name, &it.value));
}

fn option(out: &mut String, directive: &str, name: &str, value: &str) {
    out.push_str(directive);
    text(out, name, false);
    out.push('=');
    text(out, value, false);
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
    use crate::playlist::delta::stream_properties;
    use crate::playlist::m3u::{self, PlaylistEntry, PlaylistItem, PlaylistLimits};

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
                ..OutputEntry::default()
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

    /// Reads an entry with headers and options in every form, and writes it with these hints.
    fn written_again(is_direct: bool) -> (PlaylistEntry, String) {
        let list = "#KODIPROP:inputstream.adaptive.manifest_type=mpd\n\
            #KODIPROP:inputstream.adaptive.license_key=00:11\n\
            #EXTINF:-1 parent-code=\"1234\" group-logo=\"http://l/\" channel-id=\"gs-1\",One\n\
            #EXTVLCOPT:http-user-agent=Box/1.0\n\
            #EXTVLCOPT:network-caching=1000\n\
            #EXTHTTP:{\"Cookie\":\"hunter2\",\"X-Own\":\"hunter3\"}\n\
            http://h/1|Referer=http%3A%2F%2Fr%2F&Origin=http://o&drmLicense=22%3A33&seekable=0\n";
        let (items, _) = m3u::parse(list.as_bytes(), PlaylistLimits::default());
        let Some(PlaylistItem::Entry(entry)) = items.into_iter().next() else { panic!("no entry") };
        let properties = stream_properties(entry.clone());
        let (headers, details) = (&properties.headers, properties.details.as_deref());
        let hints = match is_direct {
            true => OutputHints::Direct { headers, details },
            false => OutputHints::Redirected { headers, details },
        };
        let mut out = String::new();
        let line =
            OutputEntry { name: "One", url: "http://h/1", hints: Some(hints), ..OutputEntry::default() };
        write_entry(&mut out, &line);
        (entry, out)
    }

    #[test]
    fn admins_get_everything_that_a_player_needs_at_the_provider() {
        let (entry, out) = written_again(true);
        assert_eq!(
            out,
            "#EXTINF:-1 tvg-id=\"\" tvg-name=\"One\" tvg-logo=\"\" group-title=\"\" channel-id=\"gs-1\" \
             parent-code=\"1234\" group-logo=\"http://l/\",One\n\
             #EXTVLCOPT:http-user-agent=Box/1.0\n\
             #EXTVLCOPT:http-referrer=http://r/\n\
             #EXTVLCOPT:http-origin=http://o\n\
             #EXTHTTP:{\"Cookie\":\"hunter2\",\"X-Own\":\"hunter3\"}\n\
             #EXTVLCOPT:network-caching=1000\n\
             #KODIPROP:inputstream.adaptive.manifest_type=mpd\n\
             #KODIPROP:inputstream.adaptive.license_key=00:11\n\
             http://h/1|drmLicense=22%3A33&seekable=0\n"
        );
        // Another gateway reads the same.
        let (items, _) = m3u::parse(out.as_bytes(), PlaylistLimits::default());
        let Some(PlaylistItem::Entry(again)) = items.into_iter().next() else { panic!("no entry") };
        let sorted = |it: &PlaylistEntry| {
            let mut extra = it.headers.extra.clone();
            extra.sort();
            let mut options = it.options.iter().map(|it| format!("{it:?}{}", it.value)).collect::<Vec<_>>();
            options.sort();
            (it.headers.user_agent.clone(), it.headers.referrer.clone(), extra, options)
        };
        assert_eq!(sorted(&again), sorted(&entry));
    }

    #[test]
    fn viewers_who_are_redirected_get_no_cookie_no_key_and_no_header_of_the_provider() {
        let (_, out) = written_again(false);
        assert_eq!(
            out,
            "#EXTINF:-1 tvg-id=\"\" tvg-name=\"One\" tvg-logo=\"\" group-title=\"\",One\n\
             #EXTVLCOPT:http-user-agent=Box/1.0\n\
             #EXTVLCOPT:http-referrer=http://r/\n\
             #EXTVLCOPT:http-origin=http://o\n\
             #KODIPROP:inputstream.adaptive.manifest_type=mpd\n\
             http://h/1\n"
        );
    }

    #[test]
    fn marks_of_the_provider_are_written_unless_a_tag_replaces_them() {
        let marks = ChannelMarks {
            is_radio: true,
            language: Some("English".to_owned()),
            country: Some("UK".to_owned()),
        };
        let tags = PlaylistTags {
            entries: [("tvg-country".to_owned(), "DE".to_owned())].into(),
            ..Default::default()
        };
        let mut out = String::new();
        let line = OutputEntry {
            name: "One",
            url: "http://h/1",
            marks: Some(&marks),
            tags: Some(&tags),
            ..OutputEntry::default()
        };
        write_entry(&mut out, &line);
        assert!(out.contains(" radio=\"true\" tvg-language=\"English\" tvg-country=\"DE\",One\n"), "{out}");
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
