//! Reads a few fields of a programme, many times faster than all of them.

use std::borrow::Cow;

use memchr::memchr;

use super::parts::{EpisodeNumber, LocalText, PreviouslyShown};
use super::read::{add, value};
use super::text::{DESCRIPTION_CHARS_MAX, TEXT_CHARS_MAX, line, lines};
use super::{Programme, ProgrammeXmlError, from_xml};

/// Reads titles, subtitles, descriptions, date, categories, episode numbers, and whether the programme is new or a
/// repetition. Texts have no language, and other fields are empty.
///
/// # Errors
/// The inside cannot be read, as far as these fields need it.
pub(crate) fn brief_from_xml(start: i64, stop: i64, inner: &str) -> Result<Programme, ProgrammeXmlError> {
    match canonical(inner) {
        Some(programme) => Ok(Programme { start, stop, ..programme }),
        None => from_xml(start, stop, inner),
    }
}

/// Returns the fields if the inside is as [`to_xml`](super::to_xml) writes it: no comments, `<` and `>` only as delimiters of
/// tags, and no other elements within those that have the fields.
fn canonical(inner: &str) -> Option<Programme> {
    let mut programme = Programme::default();
    let mut rest = inner;
    if rest.starts_with(' ') {
        rest = split(rest, b'>')?.1;
    }
    while !rest.is_empty() {
        let (tag, after) = split(rest.strip_prefix('<')?, b'>')?;
        let (is_empty, tag) = tag.strip_suffix('/').map_or((false, tag), |it| (true, it));
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if is_empty {
            match name {
                "new" => programme.is_new = true,
                "previously-shown" => programme.previously_shown = Some(PreviouslyShown::default()),
                _ => {}
            }
            rest = after;
            continue;
        }
        rest = match name {
            "title" | "sub-title" | "desc" | "date" | "category" | "episode-num" => {
                let (text, close) = split(after, b'<')?;
                child(&mut programme, name, attributes, &unescaped(text));
                close.strip_prefix('/')?.strip_prefix(name)?.strip_prefix('>')?
            }
            // The others that are read have no contents, and no other name begins like this.
            _ if name.starts_with(['!', '?', '/']) || matches!(name, "new" | "previously-shown") => {
                return None;
            }
            _ => after_end(after, name)?,
        };
    }
    Some(programme)
}

fn child(programme: &mut Programme, name: &str, attributes: &str, text: &str) {
    let local_text =
        |text: String| Some(LocalText { lang: None, text }).filter(|it: &LocalText| !it.text.is_empty());
    match name {
        "title" => add(&mut programme.titles, local_text(line(text, TEXT_CHARS_MAX))),
        "sub-title" => add(&mut programme.sub_titles, local_text(line(text, TEXT_CHARS_MAX))),
        "desc" => add(&mut programme.descriptions, local_text(lines(text, DESCRIPTION_CHARS_MAX))),
        "category" => add(&mut programme.categories, local_text(line(text, TEXT_CHARS_MAX))),
        "date" => programme.date = value(text),
        _ => {
            let system = attributes.strip_prefix("system=\"").and_then(|it| it.strip_suffix('"'));
            let system = system.and_then(|it| value(&unescaped(it)));
            add(&mut programme.episode_numbers, value(text).map(|value| EpisodeNumber { system, value }));
        }
    }
}

/// Returns what is before and after the first of these bytes.
fn split(text: &str, byte: u8) -> Option<(&str, &str)> {
    let at = memchr(byte, text.as_bytes())?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

/// Returns what is after the end of an element.
fn after_end<'a>(mut text: &'a str, name: &str) -> Option<&'a str> {
    loop {
        text = split(text, b'<')?.1;
        let end = text.strip_prefix('/').and_then(|it| it.strip_prefix(name));
        if let Some(after) = end.and_then(|it| it.strip_prefix('>')) {
            return Some(after);
        }
    }
}

fn unescaped(text: &str) -> Cow<'_, str> {
    match memchr(b'&', text.as_bytes()) {
        Some(_) => html_escape::decode_html_entities(text),
        None => Cow::Borrowed(text),
    }
}
