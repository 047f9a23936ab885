//! Reads programmes from XMLTV.

use std::borrow::Cow;

use roxmltree::{Document, Node, ParsingOptions};

use super::Programme;
use super::parts::{
    Credit, CreditRole, EpisodeNumber, ImageKind, LengthUnit, LocalText, PreviouslyShown, ProgrammeAudio,
    ProgrammeIcon, ProgrammeImage, ProgrammeLength, ProgrammeRating, ProgrammeReview, ProgrammeSubtitles,
    ProgrammeUrl, ProgrammeVideo, ReviewKind, SubtitlesKind,
};
use super::text::{
    DESCRIPTION_CHARS_MAX, ENTRIES_MAX, TEXT_CHARS_MAX, VALUE_CHARS_MAX, address, line, lines,
};
use super::write::LIVE;
use crate::guide::xmltv::time::parse_time;

/// More nodes of one element of a guide are an error. The longest lists of credits have some hundred.
const NODES_MAX: u32 = 20_000;
/// The stored form of a programme can have more nodes than the element that it was read from, but not twice as many.
const STORED_NODES_MAX: u32 = 2 * NODES_MAX;

/// The inside of a programme cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not the inside of a programme in XMLTV: {0}")]
pub struct ProgrammeXmlError(roxmltree::Error);

/// Reads a programme from the inside of its element, as [`to_xml`](super::to_xml) writes it. Elements that the DTD does
/// not have are ignored.
pub fn from_xml(start: i64, stop: i64, inner: &str) -> Result<Programme, ProgrammeXmlError> {
    let mut element = String::with_capacity(inner.len() + 24);
    element.push_str("<programme");
    if !inner.starts_with(' ') {
        element.push('>');
    }
    element.extend([inner, "</programme>"]);
    let document = parse(&element, STORED_NODES_MAX).map_err(ProgrammeXmlError)?;
    Ok(programme_from_element(document.root_element(), start, stop))
}

/// Parses one element of a guide.
pub(crate) fn parse_element(element: &str) -> Result<Document<'_>, roxmltree::Error> {
    parse(element, NODES_MAX)
}

fn parse(element: &str, nodes_limit: u32) -> Result<Document<'_>, roxmltree::Error> {
    Document::parse_with_options(element, ParsingOptions { nodes_limit, ..ParsingOptions::default() })
}

/// Reads everything but start, stop and channel from a `programme` element.
pub(crate) fn programme_from_element(element: Node<'_, '_>, start: i64, stop: i64) -> Programme {
    let mut programme = Programme { start, stop, ..Programme::default() };
    for it in element.attributes() {
        match it.name() {
            "pdc-start" => programme.pdc_start = parse_time(it.value()),
            "vps-start" => programme.vps_start = parse_time(it.value()),
            "showview" => programme.showview = value(it.value()),
            "videoplus" => programme.videoplus = value(it.value()),
            // The value that the DTD assumes.
            "catchup-id" => programme.catchup_id = address(it.value()),
            "clumpidx" => programme.clump_index = value(it.value()).filter(|it| it != "0/1"),
            _ => {}
        }
    }
    for it in elements(element) {
        child(&mut programme, it);
    }
    if !programme.credits.is_sorted_by_key(|it| it.role) {
        programme.credits.sort_by_key(|it| it.role);
    }
    programme
}

fn child(programme: &mut Programme, it: Node<'_, '_>) {
    match it.tag_name().name() {
        "title" => add(&mut programme.titles, local_text(it)),
        "sub-title" => add(&mut programme.sub_titles, local_text(it)),
        "desc" => {
            let text = lines(&text_of(it), DESCRIPTION_CHARS_MAX);
            let description = LocalText { lang: lang(it), text };
            add(&mut programme.descriptions, Some(description).filter(|it| !it.text.is_empty()));
        }
        "credits" => elements(it).for_each(|it| add(&mut programme.credits, credit(it))),
        "date" => programme.date = value(&text_of(it)),
        "category" => add(&mut programme.categories, local_text(it)),
        "keyword" => match local_text(it) {
            Some(LocalText { lang: None, text }) if text == LIVE => programme.is_live = true,
            keyword => add(&mut programme.keywords, keyword),
        },
        "language" => programme.language = local_text(it),
        "orig-language" => programme.orig_language = local_text(it),
        "length" => programme.length = programme.length.or_else(|| length(it)),
        "icon" => add(&mut programme.icons, icon(it)),
        "url" => add(&mut programme.urls, url(it)),
        "country" => add(&mut programme.countries, local_text(it)),
        "episode-num" => {
            let number =
                value(&text_of(it)).map(|value| EpisodeNumber { system: attribute(it, "system"), value });
            add(&mut programme.episode_numbers, number);
        }
        "video" => programme.video = video(it),
        "audio" => programme.audio = audio(it),
        "previously-shown" => {
            programme.previously_shown =
                Some(PreviouslyShown { start: attribute(it, "start"), channel: attribute(it, "channel") });
        }
        "premiere" => programme.premiere = Some(note(it)),
        "last-chance" => programme.last_chance = Some(note(it)),
        "new" => programme.is_new = is_set(it),
        "live" => programme.is_live |= is_set(it),
        "subtitles" => {
            let kind = attribute(it, "type").and_then(|it| SubtitlesKind::from_word(&it));
            let language = part(it, "language").and_then(local_text);
            add(&mut programme.subtitles, Some(ProgrammeSubtitles { kind, language }));
        }
        "rating" => add(&mut programme.ratings, rating(it)),
        "star-rating" => add(&mut programme.star_ratings, rating(it)),
        "review" => add(&mut programme.reviews, review(it)),
        "image" => add(&mut programme.images, image(it)),
        _ => {}
    }
}

fn credit(it: Node<'_, '_>) -> Option<Credit> {
    let role = CreditRole::from_word(it.tag_name().name())?;
    let mut credit = Credit::new(role, line(&own_text_of(it), TEXT_CHARS_MAX));
    if role == CreditRole::Actor {
        credit.character = attribute(it, "role");
        credit.is_guest = attribute(it, "guest").and_then(|it| yes_or_no(&it));
    }
    for it in elements(it) {
        match it.tag_name().name() {
            "image" => add(&mut credit.images, image(it)),
            "url" => add(&mut credit.urls, url(it)),
            _ => {}
        }
    }
    (!credit.name.is_empty()).then_some(credit)
}

fn length(it: Node<'_, '_>) -> Option<ProgrammeLength> {
    let value = text_of(it).trim().parse().ok()?;
    let unit = attribute(it, "units").map_or(Some(LengthUnit::Minutes), |it| LengthUnit::from_word(&it))?;
    Some(ProgrammeLength { value, unit })
}

fn icon(it: Node<'_, '_>) -> Option<ProgrammeIcon> {
    let pixels = |name| it.attribute(name)?.trim().parse().ok();
    let src = address(it.attribute("src")?)?;
    Some(ProgrammeIcon { src, width: pixels("width"), height: pixels("height") })
}

fn url(it: Node<'_, '_>) -> Option<ProgrammeUrl> {
    Some(ProgrammeUrl { system: attribute(it, "system"), url: address(&text_of(it))? })
}

fn video(it: Node<'_, '_>) -> Option<ProgrammeVideo> {
    let video = ProgrammeVideo {
        present: part_value(it, "present").and_then(|it| yes_or_no(&it)),
        colour: part_value(it, "colour").and_then(|it| yes_or_no(&it)),
        aspect: part_value(it, "aspect"),
        quality: part_value(it, "quality"),
    };
    (video != ProgrammeVideo::default()).then_some(video)
}

fn audio(it: Node<'_, '_>) -> Option<ProgrammeAudio> {
    let audio = ProgrammeAudio {
        present: part_value(it, "present").and_then(|it| yes_or_no(&it)),
        stereo: part_value(it, "stereo"),
    };
    (audio != ProgrammeAudio::default()).then_some(audio)
}

/// Reads a rating. Some guides write its value without the element for it.
fn rating(it: Node<'_, '_>) -> Option<ProgrammeRating> {
    let mut icons = Vec::new();
    elements(it).filter(|it| it.has_tag_name("icon")).for_each(|it| add(&mut icons, icon(it)));
    let value = part_value(it, "value").or_else(|| value(&own_text_of(it)))?;
    Some(ProgrammeRating { system: attribute(it, "system"), value, icons })
}

fn review(it: Node<'_, '_>) -> Option<ProgrammeReview> {
    let kind = attribute(it, "type").and_then(|it| ReviewKind::from_word(&it)).unwrap_or(ReviewKind::Text);
    let text = match kind {
        ReviewKind::Text => lines(&text_of(it), DESCRIPTION_CHARS_MAX),
        ReviewKind::Url => address(&text_of(it))?,
    };
    let (source, reviewer) = (attribute(it, "source"), attribute(it, "reviewer"));
    (!text.is_empty()).then(|| ProgrammeReview { kind, source, reviewer, lang: lang(it), text })
}

fn image(it: Node<'_, '_>) -> Option<ProgrammeImage> {
    Some(ProgrammeImage {
        url: address(&own_text_of(it))?,
        kind: attribute(it, "type").and_then(|it| ImageKind::from_word(&it)),
        size: attribute(it, "size").and_then(|it| it.parse().ok()).filter(|it| (1..=3).contains(it)),
        is_portrait: attribute(it, "orient").and_then(|it| match it.as_str() {
            "P" => Some(true),
            "L" => Some(false),
            _ => None,
        }),
        system: attribute(it, "system"),
    })
}

pub(super) fn add<T>(list: &mut Vec<T>, entry: Option<T>) {
    if let Some(entry) = entry
        && list.len() < ENTRIES_MAX
    {
        list.push(entry);
    }
}

/// Returns the text of an element in one line, with its language; `None` if it is empty.
fn local_text(it: Node<'_, '_>) -> Option<LocalText> {
    Some(note(it)).filter(|it| !it.text.is_empty())
}

/// Returns the text of an element in one line, with its language. It can be empty.
fn note(it: Node<'_, '_>) -> LocalText {
    LocalText { lang: lang(it), text: line(&text_of(it), TEXT_CHARS_MAX) }
}

/// Returns the language of a text, from `lang` or `xml:lang`.
fn lang(it: Node<'_, '_>) -> Option<String> {
    let attribute = it.attributes().find(|it| it.name() == "lang")?;
    value(attribute.value())
}

/// Returns a short text; `None` if it is empty.
pub(super) fn value(text: &str) -> Option<String> {
    Some(line(text, VALUE_CHARS_MAX)).filter(|it| !it.is_empty())
}

fn attribute(it: Node<'_, '_>, name: &str) -> Option<String> {
    value(it.attribute(name)?)
}

fn part<'a, 'input>(it: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    elements(it).find(|it| it.tag_name().name() == name)
}

fn part_value(it: Node<'_, '_>, name: &str) -> Option<String> {
    value(&text_of(part(it, name)?))
}

fn elements<'a, 'input>(it: Node<'a, 'input>) -> impl Iterator<Item = Node<'a, 'input>> {
    it.children().filter(Node::is_element)
}

/// Returns the text of an element and of the elements in it. Some guides have markup in texts.
fn text_of<'a>(it: Node<'a, '_>) -> Cow<'a, str> {
    if elements(it).next().is_none() {
        return own_text_of(it);
    }
    let mut text = String::new();
    for it in it.descendants() {
        if it.is_text() {
            text.push_str(it.text().unwrap_or_default());
        } else if it.has_tag_name("br") {
            text.push('\n');
        }
    }
    text.into()
}

/// Returns the text of an element without that of the elements in it.
fn own_text_of<'a>(it: Node<'a, '_>) -> Cow<'a, str> {
    let mut parts = it.children().filter(Node::is_text).filter_map(|it| it.text());
    let first = parts.next().unwrap_or_default();
    let mut text = Cow::Borrowed(first);
    parts.for_each(|it| text.to_mut().push_str(it));
    text
}

/// Returns whether an element without contents is there. Some guides write a `0` into it.
fn is_set(it: Node<'_, '_>) -> bool {
    !matches!(text_of(it).trim(), "0" | "no" | "false")
}

fn yes_or_no(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}
