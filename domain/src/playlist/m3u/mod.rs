//! Parses M3U playlists as providers send them: bytes in, entries out.
//!
//! Parsing never fails: an unusable item is dropped or repaired, and reported with its line number. Memory is limited
//! by one line and one item, time is linear in the number of bytes, and the sizes of the pushed parts make no
//! difference.
//!
//! ```text
//!   bytes ─ lines ─▶ line ─┬─ #EXTM3U   ─▶ Header
//!                          ├─ #EXTINF   ─┐ name, attributes
//!                          ├─ #EXTVLCOPT ┤ headers, group …   all belong to the next address
//!                          └─ address   ─┴▶ Entry
//! ```

mod extinf;
mod item;
mod lines;
pub(crate) mod options;
#[cfg(any(test, feature = "fuzzing"))]
pub mod options_check;
mod request_headers;
pub(crate) mod text;

pub use self::item::{
    PlaylistEntry, PlaylistHeader, PlaylistItem, PlaylistLimits, PlaylistProblem, PlaylistProblemKind,
    PlaylistSummary,
};

use crate::channel::ChannelNumber;
use crate::entry_details::PlayerOption;
use crate::playlist::attributes::{AttributeMeaning, meaning_of};
use crate::playlist::m3u::lines::{Lines, RawLine};
use crate::source_url::{SourceUrl, is_scheme};
use crate::stream::RequestHeaders;

/// Maximum number of addresses of guides that one first line names.
pub const GUIDE_URLS_MAX: usize = 200;

/// The attributes of a first line with addresses of guides.
const GUIDE_ATTRIBUTES: [&str; 7] =
    ["x-tvg-url", "url-tvg", "tvg-url", "x-tvg-urls", "tvg-urls", "epg-url", "url-epg"];

/// The parser. Push bytes as they arrive, then call `finish`.
///
/// Neither it nor its fields are `Debug`, because an incomplete line may contain a part of a password.
pub struct PlaylistParser {
    lines: Lines,
    reader: ItemReader,
}

impl PlaylistParser {
    pub fn new(limits: PlaylistLimits) -> Self {
        Self { lines: Lines::new(limits.line_bytes_max), reader: ItemReader::new(limits) }
    }

    /// Parses more bytes; calls `out` for each complete item.
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(PlaylistItem)) {
        let reader = &mut self.reader;
        self.lines.push(bytes, &mut |number, line| reader.line(number, line, out));
    }

    /// Parses the last line, which may lack a terminator.
    pub fn finish(mut self, out: &mut impl FnMut(PlaylistItem)) -> PlaylistSummary {
        let reader = &mut self.reader;
        self.lines.finish(&mut |number, line| reader.line(number, line, out));
        self.reader.drop_draft(out);
        self.reader.summary
    }
}

/// Parses a whole playlist. For tests and small playlists.
pub fn parse(bytes: &[u8], limits: PlaylistLimits) -> (Vec<PlaylistItem>, PlaylistSummary) {
    let mut items = Vec::new();
    let mut parser = PlaylistParser::new(limits);
    parser.push(bytes, &mut |item| items.push(item));
    let summary = parser.finish(&mut |item| items.push(item));
    (items, summary)
}

/// The state between two lines.
struct ItemReader {
    limits: PlaylistLimits,
    draft: Draft,
    summary: PlaylistSummary,
    /// The group of `#EXTGRP`, which holds until the next one.
    group: Option<String>,
    is_begun: bool,
    /// The remaining lines are ignored.
    is_finished: bool,
}

/// The next entry, until its address is read.
#[derive(Default)]
struct Draft {
    /// Line of its `#EXTINF`, if any.
    line: Option<u64>,
    /// Its `#EXTINF` was dropped, so its address is dropped too.
    is_dropped: bool,
    name: String,
    duration: Option<f64>,
    tvg_id: Option<String>,
    tvg_name: Option<String>,
    tvg_logo: Option<String>,
    tvg_chno: Option<ChannelNumber>,
    group_title: Option<String>,
    headers: RequestHeaders,
    options: Vec<PlayerOption>,
    attributes: Vec<(String, String)>,
}

/// The consumer of items.
type Out<'a> = &'a mut dyn FnMut(PlaylistItem);

impl ItemReader {
    fn new(limits: PlaylistLimits) -> Self {
        Self {
            limits,
            draft: Draft::default(),
            summary: PlaylistSummary::default(),
            group: None,
            is_begun: false,
            is_finished: false,
        }
    }

    fn line(&mut self, number: u64, line: RawLine<'_>, out: Out<'_>) {
        self.summary.lines = number;
        if self.is_finished {
            return;
        }
        match line {
            RawLine::Whole(bytes) => {
                let bytes = text::trim(bytes);
                match bytes.first() {
                    None => {}
                    Some(b'#') => self.directive(number, &text::decode(bytes), out),
                    Some(b'<' | b'{' | b'[') if !self.is_begun => {
                        self.is_finished = true;
                        self.problem(
                            number,
                            PlaylistProblemKind::NotAPlaylist,
                            "this is not a playlist",
                            out,
                        );
                    }
                    Some(_) => self.address(number, &text::decode_address(bytes), out),
                }
                self.is_begun |= !bytes.is_empty();
            }
            RawLine::TooLong { start, bytes } => {
                self.is_begun = true;
                let text =
                    format!("line has {bytes} bytes, at most {} are allowed", self.limits.line_bytes_max);
                self.problem(number, PlaylistProblemKind::LineTooLong, text, out);
                self.line_dropped(text::trim(start), out);
            }
        }
    }

    /// If a line of an entry is dropped, the whole entry is dropped, because it could lack its name.
    fn line_dropped(&mut self, start: &[u8], out: Out<'_>) {
        if text::after_prefix_bytes(start, b"#EXTINF").is_some() {
            self.drop_draft(out);
            self.draft.is_dropped = true;
        } else if !start.starts_with(b"#") {
            self.draft = Draft::default();
        }
    }

    fn directive(&mut self, number: u64, line: &str, out: Out<'_>) {
        // In the order of frequency.
        if let Some(rest) = text::after_prefix(line, "#EXTINF") {
            self.extinf(number, rest, out);
        } else if let Some(rest) = text::after_prefix(line, "#EXTGRP") {
            self.group = self.display_text(number, text::unquote(rest.trim_start_matches(':').trim()), out);
        } else if let Some(rest) = text::after_prefix(line, "#EXTVLCOPT") {
            self.player_option(number, rest, out);
        } else if let Some(rest) = text::after_prefix(line, "#EXTHTTP:") {
            self.json_headers(number, rest, out);
        } else if let Some(rest) = text::after_prefix(line, "#KODIPROP:") {
            self.kodi_property(number, rest, out);
        } else if let Some(rest) = text::after_prefix(line, "#EXTM3U") {
            self.header(number, rest, out);
        } else if ["#EXT-X-TARGETDURATION", "#EXT-X-STREAM-INF", "#EXT-X-MEDIA-SEQUENCE"]
            .iter()
            .any(|it| text::after_prefix(line, it).is_some())
        {
            self.is_finished = true;
            self.draft = Draft::default();
            let text = "this is the playlist of one HLS stream, not a list of channels";
            self.problem(number, PlaylistProblemKind::MediaPlaylist, text, out);
        }
        // Anything else is a comment.
    }

    fn header(&mut self, number: u64, rest: &str, out: Out<'_>) {
        self.summary.has_header = true;
        // Another playlist begins.
        self.group = None;
        let mut header = PlaylistHeader::default();
        let (mut n_dropped, mut n_guides_dropped) = (0, 0);
        let found = extinf::attributes(rest, |key, value| {
            let is_guide = GUIDE_ATTRIBUTES.iter().any(|it| key.eq_ignore_ascii_case(it));
            let value = text::clean(value);
            if is_guide {
                for url in text::addresses(&value).filter(|it| is_address(it)).map(SourceUrl::new) {
                    match header.guide_urls.contains(&url) {
                        true => {}
                        false if header.guide_urls.len() >= GUIDE_URLS_MAX => n_guides_dropped += 1,
                        false => header.guide_urls.push(url),
                    }
                }
            } else if header.attributes.len() >= self.limits.attributes_max {
                n_dropped += 1;
            } else if !value.is_empty() {
                header.attributes.push((key.to_ascii_lowercase(), value));
            }
        });
        self.attribute_problems(number, found.is_unterminated, n_dropped, out);
        if n_guides_dropped > 0 {
            let text = format!(
                "{n_guides_dropped} addresses of guides were left out, at most {GUIDE_URLS_MAX} are kept"
            );
            self.problem(number, PlaylistProblemKind::TooManyAttributes, text, out);
        }
        out(PlaylistItem::Header(header));
    }

    fn extinf(&mut self, number: u64, rest: &str, out: Out<'_>) {
        // Directives before the first `#EXTINF` belong to it; later ones belong to the entry that ends here.
        if self.draft.line.is_some() || self.draft.is_dropped {
            self.drop_draft(out);
        }
        let (duration, rest) = extinf::duration(rest);
        self.draft.line = Some(number);
        self.draft.duration = duration;
        let mut n_dropped = 0;
        let found = extinf::attributes(rest, |key, value| {
            n_dropped += u32::from(!self.attribute(number, key, value, out));
        });
        self.attribute_problems(number, found.is_unterminated, n_dropped, out);
        self.draft.name = self.display_text(number, found.name, out).unwrap_or_default();
    }

    /// Stores one attribute of an entry; the first valid one of each name counts. Returns false if the limit is
    /// reached.
    fn attribute(&mut self, number: u64, key: &str, value: &str, out: Out<'_>) -> bool {
        fn keep<T>(field: &mut Option<T>, value: Option<T>) {
            if field.is_none() {
                *field = value;
            }
        }
        match meaning_of(key) {
            Some(AttributeMeaning::GuideId) => {
                let value = self.limited_value(number, "tvg-id", value, self.limits.name_chars_max, out);
                keep(&mut self.draft.tvg_id, value);
            }
            Some(AttributeMeaning::Name) => {
                let value = self.display_text(number, value, out);
                keep(&mut self.draft.tvg_name, value);
            }
            Some(AttributeMeaning::Group) => {
                let value = self.display_text(number, value, out);
                keep(&mut self.draft.group_title, value);
            }
            Some(AttributeMeaning::Logo) => {
                let value = self.limited_value(number, "tvg-logo", value, self.limits.url_bytes_max, out);
                keep(&mut self.draft.tvg_logo, value);
            }
            Some(AttributeMeaning::Number) => {
                let value = self.number(number, value, out);
                keep(&mut self.draft.tvg_chno, value);
            }
            Some(AttributeMeaning::UserAgent) => self.request_header(number, "User-Agent", value, out),
            Some(AttributeMeaning::Referrer) => self.request_header(number, "Referer", value, out),
            _ if self.draft.attributes.len() >= self.limits.attributes_max => return false,
            _ => {
                let max = self.limits.url_bytes_max;
                let value = self.limited_value(number, "an attribute", value, max, out);
                self.draft.attributes.extend(value.map(|it| (key.to_ascii_lowercase(), it)));
            }
        }
        true
    }

    fn attribute_problems(&mut self, number: u64, is_unterminated: bool, n_dropped: u32, out: Out<'_>) {
        if is_unterminated {
            let text = "unclosed quote; the end of its value is a guess";
            self.problem(number, PlaylistProblemKind::UnterminatedQuote, text, out);
        }
        if n_dropped > 0 {
            let text =
                format!("{n_dropped} attributes beyond the first {} are ignored", self.limits.attributes_max);
            self.problem(number, PlaylistProblemKind::TooManyAttributes, text, out);
        }
    }

    /// Processes a line that is not a directive: the address that completes an entry.
    fn address(&mut self, number: u64, line: &str, out: Out<'_>) {
        let (address, list) = options::split_address(line);
        if std::mem::take(&mut self.draft.is_dropped) {
            self.draft = Draft::default();
            return;
        }
        if self.summary.entries >= self.limits.entries_max {
            self.is_finished = true;
            let text = format!("only the first {} entries are imported", self.limits.entries_max);
            return self.problem(number, PlaylistProblemKind::TooManyEntries, text, out);
        }
        if !is_address(address) {
            self.draft = Draft::default();
            return self.problem(
                number,
                PlaylistProblemKind::NotAnAddress,
                "this is neither an address nor a directive",
                out,
            );
        }
        if address.len() > self.limits.url_bytes_max {
            self.draft = Draft::default();
            let text = format!(
                "address has {} bytes, at most {} are allowed",
                address.len(),
                self.limits.url_bytes_max
            );
            return self.problem(number, PlaylistProblemKind::AddressTooLong, text, out);
        }
        self.address_options(number, &list, out);
        let draft = std::mem::take(&mut self.draft);
        let url = SourceUrl::new(address);
        let line = draft.line.unwrap_or(number);
        let name = if !draft.name.is_empty() {
            draft.name
        } else if let Some(name) = &draft.tvg_name {
            name.clone()
        } else {
            let name = name_of_address(&url).unwrap_or_else(|| format!("line {line}"));
            self.display_text(number, &name, out).unwrap_or_else(|| format!("line {line}"))
        };
        self.summary.entries += 1;
        out(PlaylistItem::Entry(PlaylistEntry {
            line,
            name,
            url,
            duration: draft.duration,
            tvg_id: draft.tvg_id,
            tvg_name: draft.tvg_name,
            tvg_logo: draft.tvg_logo,
            tvg_chno: draft.tvg_chno,
            group: draft.group_title.or_else(|| self.group.clone()),
            headers: draft.headers,
            options: draft.options,
            attributes: draft.attributes,
        }));
    }

    /// Drops the unfinished entry, and reports it if it has an `#EXTINF`.
    fn drop_draft(&mut self, out: Out<'_>) {
        let draft = std::mem::take(&mut self.draft);
        if let (Some(line), false) = (draft.line, self.is_finished) {
            self.problem(line, PlaylistProblemKind::NoAddress, "the entry has no address", out);
        }
    }

    /// Returns a text for people: truncated if too long, `None` if empty.
    fn display_text(&mut self, number: u64, value: &str, out: Out<'_>) -> Option<String> {
        let mut value = text::clean(value);
        let max = self.limits.name_chars_max;
        if value.len() > max
            && let Some((end, _)) = value.char_indices().nth(max)
        {
            value.truncate(end);
            value.truncate(value.trim_end().len());
            self.problem(
                number,
                PlaylistProblemKind::NameTooLong,
                format!("a name is truncated to {max} characters"),
                out,
            );
        }
        (!value.is_empty()).then_some(value)
    }

    /// Returns an identifier or an address: dropped if too long, because a truncated one would be another one.
    fn limited_value(
        &mut self,
        number: u64,
        what: &str,
        value: &str,
        max: usize,
        out: Out<'_>,
    ) -> Option<String> {
        let value = text::clean(value);
        if value.len() > max {
            let text = format!("the value of {what} has {} bytes, at most {max} are allowed", value.len());
            self.problem(number, PlaylistProblemKind::ValueTooLong, text, out);
            return None;
        }
        (!value.is_empty()).then_some(value)
    }

    /// Parses a channel number. Many playlists write `0` or `-1` for none.
    fn number(&mut self, number: u64, value: &str, out: Out<'_>) -> Option<ChannelNumber> {
        let value = value.trim();
        if value.is_empty() || value == "-1" {
            return None;
        }
        match value.parse::<ChannelNumber>() {
            Ok(number) => (!number.is_zero()).then_some(number),
            Err(error) => {
                self.problem(number, PlaylistProblemKind::BadNumber, error.to_string(), out);
                None
            }
        }
    }

    fn problem(&mut self, line: u64, kind: PlaylistProblemKind, text: impl Into<String>, out: Out<'_>) {
        self.summary.problems += 1;
        out(PlaylistItem::Problem(PlaylistProblem { line, kind, text: text.into() }));
    }
}

/// Returns whether the text is `scheme://` with something after it.
fn is_address(text: &str) -> bool {
    text.split_once("://").is_some_and(|(scheme, rest)| is_scheme(scheme) && !rest.is_empty())
}

/// Returns the last segment of the path, or the host.
fn name_of_address(url: &SourceUrl) -> Option<String> {
    let piece = url.path().rsplit('/').find(|it| !it.is_empty()).map(text::percent_decode);
    piece.map(|it| text::clean(&it)).filter(|it| !it.is_empty()).or_else(|| url.host().map(str::to_owned))
}

#[cfg(test)]
mod tests;
