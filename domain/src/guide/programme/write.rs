//! Writes programmes in canonical XMLTV.

use super::parts::{
    Credit, LocalText, ProgrammeAudio, ProgrammeIcon, ProgrammeImage, ProgrammeRating, ProgrammeUrl,
    ProgrammeVideo, ReviewKind,
};
use super::{CreditRole, Programme};
use crate::guide::xmltv::time::push_time;
use crate::xml::push_escaped;

/// The keyword that stands for [`Programme::is_live`].
pub(super) const LIVE: &str = "live";

/// Writes the inside of the `programme` element: its children in the order of the DTD, valid and escaped.
///
/// Attributes other than start, stop and channel are rare. They come first: the result then begins with a space, and
/// `>` ends them. [`write_programme`](crate::guide::xmltv::write_programme) and [`from_xml`](super::from_xml) take both
/// forms.
pub fn to_xml(programme: &Programme, out: &mut String) {
    attributes(programme, out);
    if programme.titles.is_empty() {
        // The DTD requires a title.
        out.push_str("<title></title>");
    }
    local_texts(out, "title", &programme.titles);
    local_texts(out, "sub-title", &programme.sub_titles);
    for it in &programme.descriptions {
        open_local(out, "desc", it);
        push_lines(out, &it.text);
        close(out, "desc");
    }
    credits(out, &programme.credits);
    if let Some(date) = &programme.date {
        element(out, "date", date);
    }
    local_texts(out, "category", &programme.categories);
    local_texts(out, "keyword", &programme.keywords);
    if programme.is_live {
        element(out, "keyword", LIVE);
    }
    local_texts(out, "language", programme.language.as_slice());
    local_texts(out, "orig-language", programme.orig_language.as_slice());
    if let Some(length) = programme.length {
        open(out, "length", &[("units", Some(length.unit.word()))]);
        push_number(out, length.value);
        close(out, "length");
    }
    programme.icons.iter().for_each(|it| icon(out, it));
    programme.urls.iter().for_each(|it| url(out, it));
    local_texts(out, "country", &programme.countries);
    for it in &programme.episode_numbers {
        open(out, "episode-num", &[("system", it.system.as_deref())]);
        push_escaped(out, &it.value);
        close(out, "episode-num");
    }
    if let Some(it) = &programme.video {
        video(out, it);
    }
    if let Some(it) = &programme.audio {
        audio(out, it);
    }
    if let Some(it) = &programme.previously_shown {
        empty(out, "previously-shown", &[("start", it.start.as_deref()), ("channel", it.channel.as_deref())]);
    }
    local_texts(out, "premiere", programme.premiere.as_slice());
    local_texts(out, "last-chance", programme.last_chance.as_slice());
    if programme.is_new {
        empty(out, "new", &[]);
    }
    for it in &programme.subtitles {
        open(out, "subtitles", &[("type", it.kind.map(|it| it.word()))]);
        local_texts(out, "language", it.language.as_slice());
        close(out, "subtitles");
    }
    programme.ratings.iter().for_each(|it| rating(out, "rating", it));
    programme.star_ratings.iter().for_each(|it| rating(out, "star-rating", it));
    for it in &programme.reviews {
        let attributes = [
            ("type", Some(it.kind.word())),
            ("source", it.source.as_deref()),
            ("reviewer", it.reviewer.as_deref()),
            ("lang", it.lang.as_deref()),
        ];
        open(out, "review", &attributes);
        match it.kind {
            ReviewKind::Text => push_lines(out, &it.text),
            ReviewKind::Url => push_escaped(out, &it.text),
        }
        close(out, "review");
    }
    programme.images.iter().for_each(|it| image(out, it));
}

fn attributes(programme: &Programme, out: &mut String) {
    let start = out.len();
    for (name, time) in [("pdc-start", programme.pdc_start), ("vps-start", programme.vps_start)] {
        if let Some(time) = time {
            out.extend([" ", name, "=\""]);
            push_time(out, time);
            out.push('"');
        }
    }
    push_attributes(
        out,
        &[
            ("showview", programme.showview.as_deref()),
            ("videoplus", programme.videoplus.as_deref()),
            ("clumpidx", programme.clump_index.as_deref()),
            // The last one, as `without_catchup_id` expects it.
            ("catchup-id", programme.catchup_id.as_deref()),
        ],
    );
    if out.len() > start {
        out.push('>');
    }
}

/// Splits the inside of a programme, as [`to_xml`] writes it, around its name in the archive of the provider, which is left
/// out. The first part has only attributes, and is empty if the second one is everything.
pub(crate) fn without_catchup_id(inner: &str) -> (&str, &str) {
    let found = || {
        let attributes = inner.starts_with(' ').then(|| inner.split_once('>'))??.0;
        let at = attributes.find(" catchup-id=\"")?;
        // `>` ends the attributes that remain, and begins nothing if none do.
        let end = if at == 0 { attributes.len() + 1 } else { attributes.len() };
        Some((inner.get(..at)?, inner.get(end..)?))
    };
    found().unwrap_or(("", inner))
}

fn credits(out: &mut String, credits: &[Credit]) {
    if credits.is_empty() {
        return;
    }
    out.push_str("<credits>");
    if credits.is_sorted_by_key(|it| it.role) {
        credits.iter().for_each(|it| credit(out, it));
    } else {
        for role in CreditRole::ALL {
            credits.iter().filter(|it| it.role == *role).for_each(|it| credit(out, it));
        }
    }
    out.push_str("</credits>");
}

fn credit(out: &mut String, it: &Credit) {
    let name = it.role.word();
    // Only actors have attributes.
    let is_actor = it.role == CreditRole::Actor;
    let character = it.character.as_deref().filter(|_| is_actor);
    let guest = it.is_guest.filter(|_| is_actor).map(yes_or_no);
    open(out, name, &[("role", character), ("guest", guest)]);
    push_escaped(out, &it.name);
    it.images.iter().for_each(|it| image(out, it));
    it.urls.iter().for_each(|it| url(out, it));
    close(out, name);
}

fn icon(out: &mut String, it: &ProgrammeIcon) {
    out.push_str("<icon src=\"");
    push_escaped(out, &it.src);
    for (name, size) in [("\" width=\"", it.width), ("\" height=\"", it.height)] {
        if let Some(size) = size {
            out.push_str(name);
            push_number(out, size);
        }
    }
    out.push_str("\"/>");
}

fn url(out: &mut String, it: &ProgrammeUrl) {
    open(out, "url", &[("system", it.system.as_deref())]);
    push_escaped(out, &it.url);
    close(out, "url");
}

fn video(out: &mut String, it: &ProgrammeVideo) {
    let parts = [
        ("present", it.present.map(yes_or_no)),
        ("colour", it.colour.map(yes_or_no)),
        ("aspect", it.aspect.as_deref()),
        ("quality", it.quality.as_deref()),
    ];
    elements(out, "video", &parts);
}

fn audio(out: &mut String, it: &ProgrammeAudio) {
    elements(out, "audio", &[("present", it.present.map(yes_or_no)), ("stereo", it.stereo.as_deref())]);
}

fn rating(out: &mut String, name: &str, it: &ProgrammeRating) {
    open(out, name, &[("system", it.system.as_deref())]);
    element(out, "value", &it.value);
    it.icons.iter().for_each(|it| icon(out, it));
    close(out, name);
}

fn image(out: &mut String, it: &ProgrammeImage) {
    let size = it.size.and_then(|it| ["1", "2", "3"].get(usize::from(it).checked_sub(1)?).copied());
    let attributes = [
        ("type", it.kind.map(|it| it.word())),
        ("size", size),
        ("orient", it.is_portrait.map(|it| if it { "P" } else { "L" })),
        ("system", it.system.as_deref()),
    ];
    open(out, "image", &attributes);
    push_escaped(out, &it.url);
    close(out, "image");
}

/// Writes an element with one child for each part that is known, and nothing if none is.
fn elements(out: &mut String, name: &str, parts: &[(&str, Option<&str>)]) {
    if parts.iter().all(|(_, it)| it.is_none()) {
        return;
    }
    open(out, name, &[]);
    for (name, text) in parts {
        if let Some(text) = text {
            element(out, name, text);
        }
    }
    close(out, name);
}

fn local_texts(out: &mut String, name: &str, texts: &[LocalText]) {
    for it in texts {
        open_local(out, name, it);
        push_escaped(out, &it.text);
        close(out, name);
    }
}

fn element(out: &mut String, name: &str, text: &str) {
    open(out, name, &[]);
    push_escaped(out, text);
    close(out, name);
}

/// Writes an element without children.
fn empty(out: &mut String, name: &str, attributes: &[(&str, Option<&str>)]) {
    out.extend(["<", name]);
    push_attributes(out, attributes);
    out.push_str("/>");
}

fn open_local(out: &mut String, name: &str, text: &LocalText) {
    open(out, name, &[("lang", text.lang.as_deref())]);
}

fn open(out: &mut String, name: &str, attributes: &[(&str, Option<&str>)]) {
    out.extend(["<", name]);
    push_attributes(out, attributes);
    out.push('>');
}

fn close(out: &mut String, name: &str) {
    out.extend(["</", name, ">"]);
}

fn push_attributes(out: &mut String, attributes: &[(&str, Option<&str>)]) {
    for (name, value) in attributes {
        if let Some(value) = value {
            out.extend([" ", name, "=\""]);
            push_escaped(out, value);
            out.push('"');
        }
    }
}

/// Writes a text with its line breaks.
fn push_lines(out: &mut String, text: &str) {
    for (n, line) in text.split('\n').enumerate() {
        if n > 0 {
            out.push('\n');
        }
        push_escaped(out, line);
    }
}

fn push_number(out: &mut String, number: u32) {
    out.push_str(&number.to_string());
}

fn yes_or_no(it: bool) -> &'static str {
    if it { "yes" } else { "no" }
}
