//! The keys of guide channels and the guide ids of channels, in a form in which spellings of one key are the same.

use super::countries::Country;
use super::names::{NameRules, NormalName, squashed};
use super::vocabulary::Quality;

/// Maximum number of characters of a key that are read.
const KEY_CHARS_MAX: usize = 255;
/// Texts that providers write in place of an id.
const NO_ID: [&str; 8] = ["0", "-", "none", "null", "n/a", "na", "unknown", "undefined"];

/// The parts of a key such as `BBCOne.uk@HD`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NormalKey {
    /// The words in one text, such as `bbc1`.
    pub text: String,
    pub country: Option<Country>,
    pub shift: u8,
    pub quality: Quality,
}

/// Returns the guide id without white space around it, unless it stands for none.
pub fn guide_id(text: &str) -> Option<&str> {
    let text = text.trim();
    let is_none = text.is_empty() || NO_ID.iter().any(|it| it.eq_ignore_ascii_case(text));
    (!is_none).then_some(text)
}

/// Returns the country at the end of a key, such as `7.de`, also of one whose rest says nothing.
pub(super) fn country_of_key(key: &str) -> Option<Country> {
    let (_, code) = key.split('@').next()?.rsplit_once('.')?;
    Country::from_code(&code.to_lowercase()).filter(|_| (2..=3).contains(&code.len()))
}

impl NormalKey {
    /// Reads a key. `None` if it is a number, or a letter without a country, because those of different sources are not
    /// comparable.
    pub fn parse(key: &str) -> Option<Self> {
        let key: String = guide_id(key)?.chars().take(KEY_CHARS_MAX).collect();
        let (base, feed) = key.split_once('@').unwrap_or((&key, ""));
        let suffix = base.rsplit_once('.').filter(|it| (2..=3).contains(&it.1.len()));
        let country = suffix.and_then(|it| Country::from_code(&it.1.to_lowercase()));
        let name = suffix.filter(|_| country.is_some()).map_or(base, |it| it.0);
        let spaced = with_spaces(name);
        let words = NormalName::new(&format!("{spaced} {feed}"), &NameRules::default());
        let text = squashed(words.words.iter().map(String::as_str));
        let country = country.or(words.country);
        let n_letters = text.chars().filter(|it| it.is_alphabetic()).count();
        let is_usable = n_letters >= 2 || (n_letters == 1 && country.is_some());
        is_usable.then_some(Self { text, country, shift: words.shift, quality: words.quality })
    }
}

/// Separates the words of `BBCOne` and `SkySports`.
fn with_spaces(name: &str) -> String {
    let mut spaced = String::with_capacity(name.len() + 8);
    let mut chars = name.chars().peekable();
    let mut before = ' ';
    while let Some(it) = chars.next() {
        let begins_small = chars.peek().is_some_and(|it| it.is_lowercase());
        if it.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && begins_small)) {
            spaced.push(' ');
        }
        spaced.push(it);
        before = it;
    }
    spaced
}

/// Services whose keys contain the number of a Gracenote station.
const STATION_SERVICES: [&str; 3] = ["zap2it.com", "schedulesdirect.org", "gracenote.com"];

/// Returns the number of the Gracenote station in a key: `I20453.json.schedulesdirect.org`, or `20453` if all keys of the
/// source are such numbers.
pub fn station(key: &str, has_bare_numbers: bool) -> Option<&str> {
    let lower = key.to_ascii_lowercase();
    let is_number = |it: &&str| (4..=7).contains(&it.len()) && it.bytes().all(|it| it.is_ascii_digit());
    if has_bare_numbers && is_number(&key) {
        return Some(key);
    }
    if !STATION_SERVICES.iter().any(|it| lower.ends_with(it)) {
        return None;
    }
    // `I4.20453.zap2it.com` begins with the number of the channel.
    let mut numbers = key.split('.').map(|it| it.strip_prefix(['I', 'i']).unwrap_or(it)).filter(is_number);
    numbers.next_back()
}
