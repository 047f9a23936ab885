//! The address of a part of an archive.

use std::fmt::Write;

use jiff::civil::DateTime;

use super::{Archive, ArchiveKind, ProviderZone};
use crate::portal::PortalStreamAddress;
use crate::source_url::SourceUrl;

/// Maximum length of an address, in bytes.
const BYTES_MAX: usize = 8 << 10;

/// The placeholder for the name of a programme in an archive.
pub(super) const CATCHUP_ID: &str = "{catchup-id}";

/// The requested part of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArchiveTimes {
    /// In seconds since 1970.
    pub start: i64,
    /// In seconds.
    pub duration: i64,
    /// The present, in seconds since 1970.
    pub now: i64,
}

impl Archive {
    /// Returns the address of a part, like [`Self::address_of`], if it has no name of a programme.
    pub fn address(
        &self,
        live: &SourceUrl,
        source: Option<&SourceUrl>,
        times: ArchiveTimes,
        zone: &ProviderZone,
    ) -> Option<SourceUrl> {
        self.address_of(None, live, source, times, zone)
    }

    /// Returns the address of a part. `live` and `source` are the live address and [`Archive::source`] as the account
    /// profile plays them; `catchup_id` is the name that the guide gives the programme in the archive. `None` if the live
    /// address has no form from which this archive can be reached, or without the name that it needs.
    pub fn address_of(
        &self,
        catchup_id: Option<&str>,
        live: &SourceUrl,
        source: Option<&SourceUrl>,
        times: ArchiveTimes,
        zone: &ProviderZone,
    ) -> Option<SourceUrl> {
        let times = ArchiveTimes { start: times.start.checked_sub(self.correction_s.into())?, ..times };
        if self.kind == ArchiveKind::Portal {
            return PortalStreamAddress::archive_at(live, times.start);
        }
        let live = live.expose();
        // As earlier versions stored it.
        let source = source.map(|it| with_braces(it.expose()));
        let template = match self.kind {
            ArchiveKind::Whole | ArchiveKind::Vod => source.clone()?,
            ArchiveKind::Append => appended(live, source.as_deref()?),
            ArchiveKind::Shift => {
                let separator = if live.contains('?') { '&' } else { '?' };
                format!("{live}{separator}utc={{utc}}&lutc={{lutc}}")
            }
            ArchiveKind::Flussonic => flussonic(live, None)?,
            ArchiveKind::FlussonicHls => flussonic(live, Some(false))?,
            ArchiveKind::FlussonicTs => flussonic(live, Some(true))?,
            ArchiveKind::Xtream => xtream(live)?,
            ArchiveKind::Portal => return None,
        };
        let named = template.find(CATCHUP_ID);
        let catchup_id = match named {
            None => None,
            Some(_) => Some(catchup_id?),
        };
        let filling = Filling { times, zone, catchup_id };
        if source.as_deref().is_some_and(|it| filling.lacks_value(it)) {
            return None;
        }
        let is_template = matches!(self.kind, ArchiveKind::Whole | ArchiveKind::Append) && named.is_none();
        if is_template && !filling.names_start(&template) {
            return None;
        }
        let address = SourceUrl::new(filling.fill(&template)?);
        // The guide can come from elsewhere, and must not lead away from the servers of the playlist.
        let server = |it: &str| split(it).map(|it| it.0.to_owned());
        let is_own_server = named.is_none_or(|at| match server(&template[..at]) {
            Some(_) => true,
            None => at <= 1 && server(address.expose()) == server(live),
        });
        (address.is_http() && is_own_server).then_some(address)
    }
}

/// Returns a live address with the end of an archive address. A query has one question mark, whatever the end begins with.
fn appended(live: &str, end: &str) -> String {
    let separator = if live.contains('?') { '&' } else { '?' };
    match end.strip_prefix(['?', '&']) {
        Some(query) => format!("{live}{separator}{query}"),
        None => format!("{live}{end}"),
    }
}

/// Splits `http://host/path?query` into `http://host`, the path without its first slash, and the query with its mark.
fn split(live: &str) -> Option<(&str, &str, &str)> {
    let host = live.find("://")? + 3;
    let slash = host + live[host..].find('/')?;
    let query = live.find('?').unwrap_or(live.len());
    Some((&live[..slash], live.get(slash + 1..query)?, &live[query..]))
}

/// Returns the template for the live address of a Flussonic server, as a transport stream or as HLS.
fn flussonic(live: &str, is_ts: Option<bool>) -> Option<String> {
    let (server, path, query) = split(live)?;
    let (channel, last) = path.rsplit_once('/')?;
    let (server, query) = (escaped(server), escaped(query));
    let channel = escaped(channel);
    let list = last.strip_suffix(".m3u8");
    Some(match is_ts.unwrap_or(list.is_none()) {
        true => format!("{server}/{channel}/timeshift_abs-{{utc}}.ts{query}"),
        // The names of other lists are of one quality or one sound.
        false => match list.filter(|it| !matches!(*it, "index" | "video")) {
            Some(list) => {
                format!("{server}/{channel}/{}-timeshift_rel-{{offset:1}}.m3u8{query}", escaped(list))
            }
            None => format!("{server}/{channel}/timeshift_rel-{{offset:1}}.m3u8{query}"),
        },
    })
}

/// Returns the template for the live address of a panel: `http://host/live/user/password/7.ts`, also without `live` or
/// without an extension.
fn xtream(live: &str) -> Option<String> {
    let (server, path, _) = split(live)?;
    let segments: Vec<&str> = path.split('/').collect();
    let (base, user, password, name) = match segments.as_slice() {
        [base @ .., "live", user, password, name] => (base, user, password, name),
        [base @ .., user, password, name] => (base, user, password, name),
        _ => return None,
    };
    let (id, extension) = name.split_once('.').unwrap_or((name, "ts"));
    let extension = if extension == "m3u8" { "m3u8" } else { "ts" };
    if [*user, *password, id].iter().any(|it| it.is_empty()) || !id.bytes().all(|it| it.is_ascii_digit()) {
        return None;
    }
    let base: String = base.iter().map(|it| format!("/{it}")).collect();
    let place = escaped(&format!("{server}{base}/timeshift/{user}/{password}"));
    Some(format!("{place}/{{duration:60}}/{{Y}}-{{m}}-{{d}}:{{H}}-{{M}}/{id}.{extension}"))
}

/// Keeps the braces of an address from being read as placeholders.
fn escaped(text: &str) -> String {
    text.replace('{', "%7B").replace('}', "%7D")
}

/// Placeholders that are also written without braces.
const WORDS: [&str; 9] = ["utc", "start", "utcend", "end", "lutc", "now", "timestamp", "duration", "offset"];

/// Writes known placeholders without braces, such as `$utc`, with braces, and doubled braces as single ones.
pub(super) fn with_braces(template: &str) -> String {
    let single = (template.contains("{{") && template.contains("}}"))
        .then(|| template.replace("{{", "{").replace("}}", "}"));
    let template = single.as_deref().unwrap_or(template);
    let mut parts = template.split('$');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (word, rest) = part.split_at(word_length(part));
        match WORDS.contains(&word) {
            true => text.extend(["${", word, "}", rest]),
            false => text.extend(["$", part]),
        }
    }
    text
}

/// Returns the length of the word at the beginning of a text.
fn word_length(text: &str) -> usize {
    text.find(|it: char| !(it.is_ascii_alphanumeric() || it == '_')).unwrap_or(text.len())
}

/// Returns whether braces contain the name of a placeholder, known or not, with or without an argument.
fn is_placeholder(name: &str) -> bool {
    if name.starts_with('(') {
        return true;
    }
    let name = name.split_once(':').map_or(name, |it| it.0);
    !name.is_empty() && name.bytes().all(|it| it.is_ascii_alphabetic() || b"-_".contains(&it))
}

/// Replaces placeholders.
struct Filling<'a> {
    times: ArchiveTimes,
    zone: &'a ProviderZone,
    catchup_id: Option<&'a str>,
}

impl Filling<'_> {
    /// Replaces `{name}`, `{name:argument}` and `${name}`. Unknown ones stay.
    fn fill(&self, template: &str) -> Option<String> {
        let (mut filled, mut rest) = (String::new(), template);
        while let Some(open) = rest.find('{') {
            let (before, after) = (&rest[..open], &rest[open + 1..]);
            let close = after.find(['{', '}']).filter(|it| after.as_bytes()[*it] == b'}');
            let value = close.and_then(|it| self.value(&after[..it]));
            match (close, value) {
                (Some(close), Some(value)) => {
                    filled.push_str(before.strip_suffix('$').unwrap_or(before));
                    filled.push_str(&value);
                    rest = &after[close + 1..];
                }
                _ => {
                    filled.push_str(&rest[..=open]);
                    rest = after;
                }
            }
            if filled.len() > BYTES_MAX {
                return None;
            }
        }
        filled.push_str(rest);
        (filled.len() <= BYTES_MAX).then_some(filled)
    }

    /// Returns whether a template has a placeholder without a value: `{name}`, `${name}`, or `$name` as a whole value or
    /// segment. A provider would get the placeholder itself.
    fn lacks_value(&self, template: &str) -> bool {
        let in_braces = template.split('{').skip(1).filter_map(|it| it.split_once('}')).map(|it| it.0);
        let is_unknown = |name: &str| is_placeholder(name) && self.value(name).is_none();
        let ends_word = |text: &str| text.ends_with(|it: char| it.is_ascii_alphanumeric());
        let is_bare = |at: usize| {
            let after = &template[at + 1..];
            let length = word_length(after);
            after.starts_with(|it: char| it.is_ascii_alphabetic())
                && !ends_word(&template[..at])
                && !after[length..].starts_with(['$', '%'])
        };
        in_braces.into_iter().any(is_unknown) || template.match_indices('$').any(|it| is_bare(it.0))
    }

    /// Returns whether an address differs with the start. Otherwise the provider would send the live programme in place of
    /// the past.
    fn names_start(&self, template: &str) -> bool {
        // Another year, month, day, hour, minute and second.
        const DISTANCE: i64 = 400 * 86_400 + 3 * 3600 + 61;
        let start = self.times.start.saturating_sub(DISTANCE);
        let other = Filling { times: ArchiveTimes { start, ..self.times }, ..*self };
        self.fill(template) != other.fill(template)
    }

    fn value(&self, name: &str) -> Option<String> {
        let ArchiveTimes { start, duration, now } = self.times;
        // `(b)yyyyMMddHHmmss` and `(e)timestamp`, as in lists for OTT Navigator.
        let ends = [("(b)", start), ("(e)", start.checked_add(duration)?)];
        if let Some((format, at)) = ends.into_iter().find_map(|it| Some((name.strip_prefix(it.0)?, it.1))) {
            return match format {
                "" | "timestamp" | "unix" => Some(at.to_string()),
                _ => self.date(format, at),
            };
        }
        if name == "catchup-id" {
            return self.catchup_id.map(str::to_owned);
        }
        let (name, argument) = name.split_once(':').map_or((name, None), |it| (it.0, Some(it.1)));
        let argument = argument.filter(|it| !it.is_empty());
        let at = match name {
            "utc" | "start" => start,
            "utcend" | "end" => start.checked_add(duration)?,
            "lutc" | "now" | "timestamp" => now,
            "duration" | "offset" => {
                let divisor = argument.map_or(Some(1), |it| it.parse::<i64>().ok()).filter(|it| *it > 0)?;
                // The end of the programme is not to be missing.
                let number = match name {
                    "duration" => duration.max(0).checked_add(divisor - 1)? / divisor,
                    _ => now.checked_sub(start)?.max(0) / divisor,
                };
                return Some(number.to_string());
            }
            _ => {
                let mut letters = name.chars();
                let part = part(letters.next()?, self.zone.clock(start)?)?;
                return (letters.next().is_none() && argument.is_none()).then_some(part);
            }
        };
        match argument {
            None => Some(at.to_string()),
            Some(format) => self.date(format, at),
        }
    }

    /// Writes a time in the zone of the provider. The format has letters as in pvr.iptvsimple, or as in Java: `YmdHMS` or
    /// `yyyyMMddHHmmss`.
    fn date(&self, format: &str, at: i64) -> Option<String> {
        const JAVA: [(&str, char); 6] =
            [("yyyy", 'Y'), ("MM", 'm'), ("dd", 'd'), ("HH", 'H'), ("mm", 'M'), ("ss", 'S')];
        let clock = self.zone.clock(at)?;
        let is_java = format.contains("yyyy");
        let (mut text, mut rest) = (String::new(), format);
        while let Some(first) = rest.chars().next() {
            let java = JAVA.iter().filter(|_| is_java).find(|it| rest.starts_with(it.0));
            let (letter, length) = java.map_or((first, first.len_utf8()), |it| (it.1, it.0.len()));
            match part(letter, clock).filter(|_| !is_java || java.is_some()) {
                Some(part) => text.push_str(&part),
                None => text.push(letter),
            }
            rest = &rest[length..];
        }
        Some(text)
    }
}

/// Returns a part of a date.
fn part(letter: char, clock: DateTime) -> Option<String> {
    let mut text = String::new();
    let two = |it: i8| format!("{it:02}");
    match letter {
        'Y' => write!(text, "{:04}", clock.year()).ok()?,
        'm' => text = two(clock.month()),
        'd' => text = two(clock.day()),
        'H' => text = two(clock.hour()),
        'M' => text = two(clock.minute()),
        'S' => text = two(clock.second()),
        _ => return None,
    }
    Some(text)
}
