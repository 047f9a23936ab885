//! From the records of the service to a programme.

use std::collections::BTreeSet;

use serde_json::Value;

use super::answers::{Airing, Artwork, ContentRating, Movie, Person, ProgramInfo, QualityRating, Title};
use crate::guide::programme::{
    Credit, CreditRole, EpisodeNumber, ImageKind, LengthUnit, LocalText, PreviouslyShown, Programme,
    ProgrammeAudio, ProgrammeIcon, ProgrammeImage, ProgrammeLength, ProgrammeRating, ProgrammeSubtitles,
    ProgrammeUrl, ProgrammeVideo, SubtitlesKind,
};

/// Characters of the identifier of a programme that its series shares.
pub const POSTER_ROOT_CHARS: usize = 10;
/// The language of genres and notes.
const ENGLISH: &str = "en";
/// The width in pixels that an image should have.
const IMAGE_WIDTH: i64 = 480;

/// Returns the identifier under which the service has the artwork of a programme: that of its series, or of the film.
pub fn poster_root(program: &str) -> &str {
    match program.get(..2) {
        Some("EP") => program.get(..POSTER_ROOT_CHARS).unwrap_or(program),
        _ => program,
    }
}

/// Returns a programme as a station shows it. `None` without a title, or with a length that is not valid.
pub fn programme(airing: &Airing, info: &ProgramInfo, images: &[ProgrammeImage]) -> Option<Programme> {
    let is_valid = airing.start > 0 && (1..=7 * 86_400).contains(&airing.duration);
    let title = |it: &Title| local(it.language.as_deref(), &it.text);
    let titles: Vec<_> = info.titles.iter().filter_map(title).collect();
    if !is_valid || titles.is_empty() {
        return None;
    }
    let mut programme = Programme {
        start: airing.start,
        stop: airing.start + airing.duration,
        titles,
        sub_titles: info.episode_title.as_deref().and_then(|it| local(None, it)).into_iter().collect(),
        descriptions: descriptions(info),
        credits: credits(info),
        date: date(info),
        categories: categories(info),
        length: length(info),
        icons: images
            .first()
            .map(|it| ProgrammeIcon { src: it.url.clone(), ..ProgrammeIcon::default() })
            .into_iter()
            .collect(),
        images: images.to_vec(),
        urls: urls(info),
        episode_numbers: episode_numbers(airing, info),
        ratings: ratings(airing, info),
        star_ratings: info.movie.as_ref().map(star_ratings).unwrap_or_default(),
        is_new: airing.new,
        is_live: airing.live_tape_delay.as_deref() == Some("Live"),
        ..Programme::default()
    };
    describe_event(info, &mut programme);
    describe_screening(airing, info, &mut programme);
    describe_signal(airing, &mut programme);
    Some(programme)
}

/// Returns a text without surrounding space, if there is one.
fn local(lang: Option<&str>, text: &str) -> Option<LocalText> {
    let text = text.trim();
    let lang = lang.map(str::trim).filter(|it| !it.is_empty()).map(str::to_owned);
    (!text.is_empty()).then(|| LocalText { lang, text: text.to_owned() })
}

fn english(text: &str) -> Option<LocalText> {
    local(Some(ENGLISH), text)
}

/// Returns the long descriptions, or the short ones without them.
fn descriptions(info: &ProgramInfo) -> Vec<LocalText> {
    let all = match info.descriptions.long.is_empty() {
        true => &info.descriptions.short,
        false => &info.descriptions.long,
    };
    all.iter().filter_map(|it| local(it.language.as_deref(), &it.text)).collect()
}

/// Returns genres, and the kind of programme where no genre says it.
fn categories(info: &ProgramInfo) -> Vec<LocalText> {
    let kind = match info.entity_type.as_deref() {
        Some("Movie") => Some("Movie"),
        Some("Sports") => Some("Sports event"),
        Some("Episode") => Some("Series"),
        _ => None,
    };
    let mut seen = BTreeSet::new();
    let all = info.genres.iter().map(String::as_str).chain(kind);
    all.filter(|it| seen.insert(it.to_lowercase())).filter_map(english).collect()
}

/// Returns credits in the order of roles that XMLTV wants.
fn credits(info: &ProgramInfo) -> Vec<Credit> {
    let credit = |it: &Person| {
        let role = role(&it.role)?;
        let name = it.name.trim();
        let character = it.character_name.clone().filter(|it| !it.trim().is_empty());
        let is_guest = (role == CreditRole::Actor && it.role == "Guest Star").then_some(true);
        (!name.is_empty()).then(|| Credit { character, is_guest, ..Credit::new(role, name) })
    };
    let mut credits: Vec<_> = info.cast.iter().chain(&info.crew).filter_map(credit).collect();
    credits.sort_by_key(|it| it.role);
    credits
}

/// Returns the role of XMLTV for the name of a role.
fn role(name: &str) -> Option<CreditRole> {
    let name = name.to_lowercase();
    let contains = |word: &str| name.contains(word);
    Some(match name.as_str() {
        "actor" | "guest star" | "voice" | "self" => CreditRole::Actor,
        "anchor" | "host" | "narrator" | "presenter" | "correspondent" => CreditRole::Presenter,
        "guest" | "musical guest" | "contestant" => CreditRole::Guest,
        _ if contains("director") && !contains("art") && !contains("assistant") => CreditRole::Director,
        _ if contains("writer") || contains("screenplay") || contains("story") => CreditRole::Writer,
        _ if contains("producer") => CreditRole::Producer,
        _ if contains("composer") || contains("original music") => CreditRole::Composer,
        _ if contains("editor") => CreditRole::Editor,
        _ if contains("commentator") => CreditRole::Commentator,
        _ => return None,
    })
}

/// Returns the year of a film, or the date of the first screening.
fn date(info: &ProgramInfo) -> Option<String> {
    let year = info.movie.as_ref().and_then(|it| it.year.clone());
    let digits = |text: String| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let date = year.or(info.original_air_date.clone()).map(digits)?;
    [4, 6, 8].contains(&date.len()).then_some(date)
}

fn length(info: &ProgramInfo) -> Option<ProgrammeLength> {
    let seconds = info.movie.as_ref().and_then(|it| it.duration).or(info.duration).filter(|it| *it > 0)?;
    Some(ProgrammeLength { value: seconds, unit: LengthUnit::Seconds })
}

fn urls(info: &ProgramInfo) -> Vec<ProgrammeUrl> {
    let url = info.official_url.clone().filter(|it| it.starts_with("http"));
    url.map(|url| ProgrammeUrl { system: None, url }).into_iter().collect()
}

/// Returns the number of the episode in the common notations, and the identifier of the programme.
fn episode_numbers(airing: &Airing, info: &ProgramInfo) -> Vec<EpisodeNumber> {
    let mut numbers = Vec::new();
    let mut add = |system: &str, value: String| {
        numbers.push(EpisodeNumber { system: Some(system.to_owned()), value });
    };
    let number = |it: &Value, field: &str| it[field].as_u64().filter(|it| (1..100_000).contains(it));
    let preferred = info.metadata.iter().find_map(|it| it.get("Gracenote"));
    let found = preferred.or_else(|| info.metadata.iter().find_map(|it| it.values().next()));
    let (season, episode) = found.map_or((None, None), |it| (number(it, "season"), number(it, "episode")));
    let part = airing.multipart.filter(|it| it.part_number > 0);
    if season.is_some() || episode.is_some() || part.is_some() {
        let counted = |it: Option<u64>| it.map_or(String::new(), |it| (it - 1).to_string());
        let part = part.map_or(String::new(), |it| match it.total_parts {
            0 => (it.part_number - 1).to_string(),
            total => format!("{}/{total}", it.part_number - 1),
        });
        add("xmltv_ns", format!("{}.{}.{part}", counted(season), counted(episode)));
    }
    match (season, episode) {
        (Some(season), Some(episode)) => add("onscreen", format!("S{season:02}E{episode:02}")),
        (None, Some(episode)) => add("onscreen", format!("E{episode}")),
        _ => {}
    }
    if info.id.len() == 14 {
        add("dd_progid", format!("{}.{}", &info.id[..10], &info.id[10..]));
    }
    numbers
}

/// Returns the ratings of this screening, those of the programme, and the reasons for them.
fn ratings(airing: &Airing, info: &ProgramInfo) -> Vec<ProgrammeRating> {
    let rating = |it: &ContentRating| {
        let (body, code) = (it.body.trim(), it.code.trim());
        let system = (!body.is_empty()).then(|| body.to_owned());
        (!code.is_empty()).then(|| ProgrammeRating {
            system,
            value: code.to_owned(),
            ..ProgrammeRating::default()
        })
    };
    let mut ratings: Vec<_> = airing.ratings.iter().chain(&info.content_rating).filter_map(rating).collect();
    ratings.dedup();
    ratings.extend(info.content_advisory.iter().filter(|it| !it.trim().is_empty()).map(|it| {
        ProgrammeRating {
            system: Some("advisory".to_owned()),
            value: it.trim().to_owned(),
            ..ProgrammeRating::default()
        }
    }));
    ratings
}

fn star_ratings(movie: &Movie) -> Vec<ProgrammeRating> {
    let rating = |it: &QualityRating| {
        let value = format!("{}/{}", it.rating.as_ref()?, it.max_rating.as_ref()?);
        Some(ProgrammeRating { system: it.ratings_body.clone(), value, ..ProgrammeRating::default() })
    };
    movie.quality_rating.iter().filter_map(rating).collect()
}

/// Adds the teams and the place of a sports event.
fn describe_event(info: &ProgramInfo, programme: &mut Programme) {
    let Some(event) = &info.event_details else { return };
    let of = |is_home| event.teams.iter().find(|it| it.is_home == is_home).map(|it| it.name.trim());
    if programme.sub_titles.is_empty()
        && let (Some(home), Some(away)) = (of(true), of(false))
    {
        programme.sub_titles.extend(english(&format!("{away} at {home}")));
    }
    if programme.descriptions.is_empty() {
        programme.descriptions.extend(event.venue100.as_deref().and_then(english));
    }
}

/// Adds premiere, finale and repetition.
fn describe_screening(airing: &Airing, info: &ProgramInfo, programme: &mut Programme) {
    let note = airing.is_premiere_or_finale.as_deref().unwrap_or_default();
    if note.contains("Finale") {
        programme.keywords.extend(english(note));
    }
    if airing.premiere || note.contains("Premiere") {
        let note = if note.contains("Premiere") { note } else { "Premiere" };
        programme.premiere = english(note);
    }
    let is_first = airing.new || programme.is_live || programme.premiere.is_some();
    if !is_first && info.entity_type.as_deref() == Some("Episode") {
        let start = info.original_air_date.as_deref().map(|it| it.replace('-', ""));
        programme.previously_shown = Some(PreviouslyShown { start, ..PreviouslyShown::default() });
    }
}

/// Adds picture, sound and subtitles.
fn describe_signal(airing: &Airing, programme: &mut Programme) {
    let has = |all: &[String], word: &str| all.iter().any(|it| it.eq_ignore_ascii_case(word));
    let quality = [("uhdtv", "UHDTV"), ("hdtv", "HDTV"), ("sdtv", "SDTV")];
    let quality = quality.iter().find(|it| has(&airing.video_properties, it.0));
    programme.video =
        quality.map(|it| ProgrammeVideo { quality: Some(it.1.to_owned()), ..ProgrammeVideo::default() });
    let sound = [
        ("Atmos", "dolby digital"),
        ("DD 5.1", "dolby digital"),
        ("DD", "dolby digital"),
        ("Dolby", "dolby"),
        ("stereo", "stereo"),
    ];
    let sound = sound.iter().find(|it| has(&airing.audio_properties, it.0));
    programme.audio =
        sound.map(|it| ProgrammeAudio { stereo: Some(it.1.to_owned()), ..ProgrammeAudio::default() });
    let subtitles = [
        ("cc", SubtitlesKind::Teletext),
        ("subtitled", SubtitlesKind::Onscreen),
        ("signed", SubtitlesKind::DeafSigned),
    ];
    let subtitles = subtitles.iter().filter(|it| has(&airing.audio_properties, it.0));
    programme.subtitles =
        subtitles.map(|it| ProgrammeSubtitles { kind: Some(it.1), language: None }).collect();
}

/// Returns the images that a programme gets: a poster and a wide one, each in a size that suits a screen. `base_url` is
/// that of the service.
pub fn best_images(all: &[Artwork], base_url: &str) -> Vec<ProgrammeImage> {
    let number = |it: &Option<String>| it.as_ref().and_then(|it| it.parse::<i64>().ok());
    let distance =
        |it: &&Artwork| number(&it.width).map_or(i64::MAX, |it| (it - IMAGE_WIDTH).saturating_abs());
    let of_aspect = |aspects: &[&str]| {
        let suits = |it: &&Artwork| it.aspect.as_deref().is_some_and(|it| aspects.contains(&it));
        all.iter().filter(suits).min_by_key(distance)
    };
    let image = |it: &Artwork, kind| {
        let is_address = it.uri.starts_with("http://") || it.uri.starts_with("https://");
        let url = if is_address { it.uri.clone() } else { format!("{base_url}/image/{}", it.uri) };
        let size = number(&it.width).max(number(&it.height)).map(|it| match it {
            ..200 => 1,
            200..=400 => 2,
            _ => 3,
        });
        ProgrammeImage {
            url,
            kind: Some(kind),
            size,
            is_portrait: Some(kind == ImageKind::Poster),
            ..ProgrammeImage::default()
        }
    };
    let poster = of_aspect(&["2x3", "3x4"]).map(|it| image(it, ImageKind::Poster));
    let wide = of_aspect(&["16x9", "4x3"]).map(|it| image(it, ImageKind::Backdrop));
    poster.into_iter().chain(wide).collect()
}
