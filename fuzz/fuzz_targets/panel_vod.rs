//! What panels say about films and series: nothing panics, every value is within its limits, and the split into pieces
//! makes no difference. Names of titles and episodes are read from the same bytes.
#![no_main]

use domain::panel::vod::{
    BACKDROPS_MAX, ID_BYTES_MAX, PICTURE_BYTES_MAX, PLOT_CHARS_MAX, PanelFacts, RATING_CHARS_MAX,
    TITLE_CHARS_MAX, VodListParser, read_movie, read_movie_info, read_series, read_series_info,
};
use domain::panel::{Element, ListEnd};
use domain::vod::episode_name::episode_name;
use domain::vod::title_name::{LABEL_CHARS_MAX, TitleName};
use libfuzzer_sys::fuzz_target;

/// A small limit, so that small inputs reach it.
const ELEMENT_BYTES_MAX: usize = 256;

fn split(list: &[u8], piece: usize) -> (Vec<Option<Vec<u8>>>, ListEnd) {
    let mut elements = Vec::new();
    let mut parser = VodListParser::new(ELEMENT_BYTES_MAX);
    for bytes in list.chunks(piece) {
        parser.push(bytes, &mut |element| {
            elements.push(match element {
                Element::Value { json, .. } => Some(json.to_vec()),
                Element::TooLong => None,
            });
        });
    }
    (elements, parser.finish())
}

fn check_id(id: &str) {
    assert!(!id.is_empty() && id.len() <= ID_BYTES_MAX);
    assert!(id.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it)), "{id}");
}

fn check_name(name: &str) {
    assert!(!name.is_empty() && name.chars().count() <= TITLE_CHARS_MAX && !name.contains(char::is_control));
}

fn check_read_name(text: &str) {
    let read = TitleName::new(text);
    assert_eq!(read.words, read.words.split(' ').filter(|it| !it.is_empty()).collect::<Vec<_>>().join(" "));
    assert_eq!(read.words.is_empty(), TitleName::new(&read.words).words.is_empty());
    assert!(read.year.is_none_or(|it| (1900..=2100).contains(&it)));
    assert!(read.label.chars().count() <= LABEL_CHARS_MAX);
}

fn check(facts: &PanelFacts) {
    assert!(facts.plot.as_ref().is_none_or(|it| it.chars().count() <= PLOT_CHARS_MAX));
    assert!(facts.rating.as_ref().is_none_or(|it| it.chars().count() <= RATING_CHARS_MAX));
    assert!(facts.year.is_none_or(|it| (1870..=2100).contains(&it)));
    assert!(facts.duration_secs != Some(0));
    assert!(facts.backdrops.len() <= BACKDROPS_MAX);
    let mut pictures = facts.picture.iter().chain(&facts.backdrops);
    assert!(pictures.all(|it| it.len() <= PICTURE_BYTES_MAX && it.to_ascii_lowercase().starts_with("http")));
    assert!(
        [&facts.tmdb_id, &facts.imdb_id].into_iter().flatten().all(|it| !it.trim_matches('0').is_empty())
    );
}

fuzz_target!(|data: &[u8]| {
    // The first byte determines the size of the pieces.
    let Some((cut, answer)) = data.split_first() else { return };
    let (elements, end) = split(answer, answer.len().max(1));
    assert_eq!(split(answer, usize::from(*cut).max(1)), (elements.clone(), end));
    for json in elements.iter().flatten() {
        if let Ok(movie) = read_movie(json) {
            check_id(&movie.id);
            check_name(&movie.name);
            check(&movie.facts);
        }
        if let Ok(series) = read_series(json) {
            check_id(&series.id);
            check_name(&series.name);
            check(&series.facts);
        }
    }
    if let Ok(info) = read_movie_info(answer) {
        check(&info.facts);
    }
    if let Ok(info) = read_series_info(answer) {
        check(&info.facts);
        for it in &info.episodes {
            check_id(&it.id);
            check_name(&it.name);
            check(&it.facts);
        }
    }
    let text = String::from_utf8_lossy(answer);
    check_read_name(&text);
    if let Some(read) = episode_name(&text) {
        assert!(text.contains(read.series) && text.contains(read.title));
    }
});
