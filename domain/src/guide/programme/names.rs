//! Identifiers of programmes in databases of films and series.

use super::Programme;

/// Returns the first `tt` with at least seven digits in an episode number or address.
pub(super) fn imdb_id(programme: &Programme) -> Option<&str> {
    let numbers = programme.episode_numbers.iter().map(|it| it.value.as_str());
    let texts = numbers.chain(programme.urls.iter().map(|it| it.url.as_str()));
    texts.into_iter().find_map(|text| {
        text.split(|it: char| !it.is_ascii_alphanumeric()).find(|it| {
            let digits = it.strip_prefix("tt").unwrap_or_default();
            (7..=10).contains(&digits.len()) && digits.bytes().all(|it| it.is_ascii_digit())
        })
    })
}

/// Returns the first number in an episode number or address of a site: `603` in `movie/603`.
pub(super) fn number_in<'a>(programme: &'a Programme, sites: &[&str]) -> Option<&'a str> {
    let is_site = |system: &str| {
        let system = system.to_ascii_lowercase();
        sites.iter().any(|it| system.contains(it))
    };
    let numbers = programme.episode_numbers.iter().map(|it| (it.system.as_deref(), it.value.as_str()));
    let urls = programme.urls.iter().map(|it| (it.system.as_deref(), it.url.as_str()));
    let mut texts = numbers.chain(urls).filter(|(system, _)| system.is_some_and(is_site));
    texts.find_map(|(_, text)| {
        let mut parts = text.split(|it: char| !it.is_ascii_digit());
        parts.find(|it| !it.is_empty() && it.len() <= 10)
    })
}
