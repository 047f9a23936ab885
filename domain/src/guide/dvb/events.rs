//! Events (EIT).

use super::{ServiceId, decode_text, descriptors, length_prefixed, short_prefixed};
use crate::guide::programme::{EpisodeNumber, LocalText, Programme, ProgrammeRating, ProgrammeVideo};

/// Seconds between 1970-01-01 and day 0 of the modified Julian calendar, negative.
const JULIAN_EPOCH: i64 = -40_587 * 86_400;

/// Reads the body of a section: its service, and the events that have a time and a title.
pub(super) fn read(service: u16, body: &[u8]) -> Option<(ServiceId, Vec<Programme>)> {
    let head = body.first_chunk::<6>()?;
    let service = ServiceId {
        network: u16::from_be_bytes([head[2], head[3]]),
        stream: u16::from_be_bytes([head[0], head[1]]),
        service,
    };
    let mut rest = &body[6..];
    let mut programmes = Vec::new();
    while let Some((event, after)) = rest.split_first_chunk::<10>() {
        let Some((descriptors, after)) = length_prefixed(after) else { break };
        rest = after;
        programmes.extend(span(event).and_then(|it| programme(it, descriptors)));
    }
    Some((service, programmes))
}

/// Reads start and end of an event, in Unix seconds. `None` for an event without a fixed time.
fn span(event: &[u8; 10]) -> Option<(i64, i64)> {
    let day = i64::from(u16::from_be_bytes([event[2], event[3]]));
    let start = JULIAN_EPOCH + day * 86_400 + seconds([event[4], event[5], event[6]])?;
    let length = seconds([event[7], event[8], event[9]])?;
    (length > 0 && length <= 86_400).then_some((start, start + length))
}

/// Reads hours, minutes and seconds in binary-coded decimals.
fn seconds(time: [u8; 3]) -> Option<i64> {
    let [hours, minutes, seconds] = time.map(|it| {
        let (tens, ones) = (i64::from(it >> 4), i64::from(it & 0x0F));
        (tens < 10 && ones < 10).then_some(tens * 10 + ones)
    });
    let (hours, minutes, seconds) = (hours?, minutes?, seconds?);
    (hours <= 24 && minutes < 60 && seconds < 60).then_some(hours * 3_600 + minutes * 60 + seconds)
}

/// The texts of an event in one language.
#[derive(Default)]
struct Texts {
    language: [u8; 3],
    title: String,
    short: String,
    extended: String,
}

/// Reads the descriptors of an event. `None` without a title.
fn programme((start, stop): (i64, i64), loop_bytes: &[u8]) -> Option<Programme> {
    let mut texts: Vec<Texts> = Vec::new();
    let mut programme = Programme { start, stop, ..Programme::default() };
    for (tag, data) in descriptors(loop_bytes) {
        match tag {
            0x4D => drop(short_event(data, &mut texts)),
            0x4E => drop(extended_event(data, &mut texts)),
            0x50 => component(data, &mut programme),
            0x54 => {
                programme.categories.extend(data.as_chunks::<2>().0.iter().filter_map(|it| category(it[0])))
            }
            0x55 => programme.ratings.extend(data.as_chunks::<4>().0.iter().filter_map(rating)),
            0x76 => programme.episode_numbers.extend(content_identifiers(data)),
            _ => {}
        }
    }
    for text in texts.into_iter().filter(|it| !it.title.is_empty()) {
        let lang = language(text.language);
        let of = |text: String| LocalText { lang: lang.clone(), text };
        let (short, extended) = (text.short, text.extended);
        // Broadcasters put a subtitle, or the beginning of the long text, into the short one.
        let is_subtitle = !extended.is_empty() && !short.is_empty() && !extended.starts_with(&short);
        let description = if extended.is_empty() { short.clone() } else { extended };
        programme.titles.push(of(text.title));
        programme.sub_titles.extend(is_subtitle.then(|| of(short)));
        programme.descriptions.extend((!description.is_empty()).then(|| of(description)));
    }
    programme.categories.dedup_by(|a, b| a.text == b.text);
    (!programme.titles.is_empty()).then_some(programme)
}

/// Returns the texts of a language.
fn texts_in<'a>(texts: &'a mut Vec<Texts>, language: &[u8; 3]) -> &'a mut Texts {
    let at = texts.iter().position(|it| it.language == *language).unwrap_or_else(|| {
        texts.push(Texts { language: *language, ..Texts::default() });
        texts.len() - 1
    });
    &mut texts[at]
}

fn short_event(data: &[u8], texts: &mut Vec<Texts>) -> Option<()> {
    let (language, rest) = data.split_first_chunk::<3>()?;
    let (title, rest) = short_prefixed(rest)?;
    let text = short_prefixed(rest).map_or(&[][..], |it| it.0);
    let texts = texts_in(texts, language);
    texts.title = one_line(&decode_text(title));
    texts.short = decode_text(text).trim().to_owned();
    Some(())
}

/// Reads a part of the long text; its parts are in order. Items such as the names of actors become lines of their own.
fn extended_event(data: &[u8], texts: &mut Vec<Texts>) -> Option<()> {
    let (language, rest) = data.get(1..)?.split_first_chunk::<3>()?;
    let (mut items, rest) = short_prefixed(rest)?;
    let texts = texts_in(texts, language);
    while let Some((name, after)) = short_prefixed(items) {
        let Some((value, after)) = short_prefixed(after) else { break };
        items = after;
        let (name, value) = (one_line(&decode_text(name)), one_line(&decode_text(value)));
        if !value.is_empty() {
            let line = if name.is_empty() { value } else { format!("{name}: {value}") };
            texts.extended = format!("{}\n{line}\n", texts.extended.trim_end()).trim_start().to_owned();
        }
    }
    let text = decode_text(short_prefixed(rest)?.0);
    texts.extended.push_str(&text);
    Some(())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the language of a code of ISO 639-2: two letters for those of Europe, else the code itself.
fn language(code: [u8; 3]) -> Option<String> {
    const LANGUAGES: &str = "ara=ar bul=bg cat=ca ces=cs cze=cs cym=cy wel=cy dan=da deu=de ger=de ell=el gre=el \
        eng=en spa=es est=et eus=eu baq=eu fin=fi fra=fr fre=fr gle=ga heb=he hrv=hr hun=hu isl=is ice=is ita=it \
        lav=lv lit=lt mkd=mk mac=mk nld=nl dut=nl nor=no pol=pl por=pt ron=ro rum=ro rus=ru slk=sk slo=sk slv=sl \
        sqi=sq alb=sq srp=sr swe=sv tur=tr ukr=uk zho=zh chi=zh jpn=ja kor=ko";
    let code = std::str::from_utf8(&code).ok()?.to_ascii_lowercase();
    if !code.bytes().all(|it| it.is_ascii_lowercase())
        || ["und", "qaa", "mul", "zxx"].contains(&code.as_str())
    {
        return None;
    }
    let known = LANGUAGES.split_whitespace().filter_map(|it| it.split_once('=')).find(|it| it.0 == code);
    Some(known.map_or(code.clone(), |it| it.1.to_owned()))
}

/// Reads picture formats of video components: their resolution and shape.
fn component(data: &[u8], programme: &mut Programme) {
    let [content, kind, ..] = data else { return };
    let (is_hd, is_wide) = match (content & 0x0F, kind) {
        // MPEG-2 video: first in standard and then in high definition.
        (0x1, 0x01..=0x10) => (*kind > 8, (kind - 1) % 4 > 0),
        // H.264.
        (0x5, 0x01..=0x08) => (false, kind % 4 > 1),
        (0x5, 0x0B..=0x10) => (true, true),
        // H.265.
        (0x9, 0x00..=0x03) => (true, true),
        _ => return,
    };
    programme.video = Some(ProgrammeVideo {
        aspect: Some(if is_wide { "16:9" } else { "4:3" }.to_owned()),
        quality: is_hd.then(|| "HDTV".to_owned()),
        ..ProgrammeVideo::default()
    });
}

/// Returns the category of the first byte of a content descriptor.
fn category(content: u8) -> Option<LocalText> {
    let text = match content {
        0x11 => "Thriller",
        0x12 => "Adventure",
        0x13 => "Science fiction",
        0x14 => "Comedy",
        0x15 => "Soap",
        0x16 => "Romance",
        0x10..=0x1F => "Movie / Drama",
        0x21 => "News / Weather",
        0x22 => "News magazine",
        0x23 => "Documentary",
        0x24 => "Discussion / Interview",
        0x20..=0x2F => "News / Current affairs",
        0x31 => "Game show",
        0x32 => "Variety show",
        0x33 => "Talk show",
        0x30..=0x3F => "Show / Game show",
        0x43 => "Football",
        0x44 => "Tennis",
        0x47 => "Motor sport",
        0x40..=0x4F => "Sports",
        0x50..=0x5F => "Children's / Youth programmes",
        0x60..=0x6F => "Music / Ballet / Dance",
        0x70..=0x7F => "Arts / Culture",
        0x80..=0x8F => "Social / Political issues / Economics",
        0x91 => "Nature / Animals",
        0x93 => "Medicine",
        0x90..=0x9F => "Education / Science",
        0xA1 => "Travel",
        0xA5 => "Cooking",
        0xA0..=0xAF => "Leisure hobbies",
        _ => return None,
    };
    Some(LocalText::with_lang("en", text))
}

/// Reads a parental rating: the country, and the minimum age minus three.
fn rating(data: &[u8; 4]) -> Option<ProgrammeRating> {
    let [country @ .., value] = data;
    let country =
        std::str::from_utf8(country).ok().filter(|it| it.bytes().all(|it| it.is_ascii_alphanumeric()))?;
    let is_age = (0x01..=0x0F).contains(value);
    is_age.then(|| ProgrammeRating {
        system: Some(country.to_ascii_uppercase()),
        value: (value + 3).to_string(),
        ..ProgrammeRating::default()
    })
}

/// Reads the identifiers of a programme and of its series (TV-Anytime), as long as they are in the section itself.
fn content_identifiers(mut data: &[u8]) -> Vec<EpisodeNumber> {
    let mut found = Vec::new();
    while let Some((head, rest)) = data.split_first() {
        let (kind, location) = (head >> 2, head & 0x03);
        let Some((text, rest)) = (if location == 0 { short_prefixed(rest) } else { None }) else { break };
        data = rest;
        let system = match kind {
            0x01 | 0x31 => "crid-programme",
            0x02 | 0x32 => "crid-series",
            _ => continue,
        };
        let value = String::from_utf8_lossy(text).trim().to_owned();
        if !value.is_empty() && !value.contains(char::is_control) {
            found.push(EpisodeNumber { system: Some(system.to_owned()), value });
        }
    }
    found
}
