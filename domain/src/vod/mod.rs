//! Films and series: the titles of all accounts, with their episodes and categories.
//!
//! A [`title`] is a film or a series. Each [`Relation`] of it states that an account offers it. What accounts offer
//! arrives as [`found`]; [`identity`] decides to which title it belongs, and [`delta`] what it changes. [`query`] finds titles, and
//! [`visible`] decides who may see them. An [`episode`] belongs to a series, and a [`category`] sorts titles.

pub mod category;
pub mod completion;
mod completion_question;
pub mod delta;
pub mod episode;
pub mod episode_name;
pub mod favorites;
pub mod found;
pub mod identity;
pub mod progress;
pub mod query;
pub mod regroup;
pub mod relation;
pub mod sync;
pub mod title;
pub mod title_name;
pub mod visible;

use serde_json::{Map, Value};
use uuid::Uuid;

pub use self::category::{AccountCategory, VodCategory};
pub use self::completion::{Completion, CompletionOutcome};
pub use self::completion_question::CompletionQuestion;
pub use self::episode::{Episode, EpisodeAlias, EpisodeFacts, EpisodeOffer};
pub use self::favorites::TitleFavorites;
pub use self::found::{FoundCategory, FoundDetails, FoundEpisode, FoundTitle};
pub use self::identity::{NAMES_PER_ID_MAX, TitleIndex};
pub use self::progress::{WatchProgress, WatchedId, WatchedItem};
pub use self::relation::{MatchReason, Relation, RelationId, TitleDetails};
pub use self::sync::{KindSync, VodSync};
pub use self::title::{
    ExternalIds, MatchingIds, Title, TitleAlias, TitleEdits, TitleFacts, TitleId, TitleKind,
};
pub use self::title_name::TitleName;

/// Maximum length of a name, in characters.
pub const NAME_CHARS_MAX: usize = 255;
/// Maximum length of a rating, in characters.
pub const RATING_CHARS_MAX: usize = 10;
/// Maximum length of a description, in characters.
pub const DESCRIPTION_CHARS_MAX: usize = 4_000;
/// Maximum length of a genre, in characters.
pub const GENRE_CHARS_MAX: usize = 255;
/// Maximum length of an address of a picture, in characters.
pub const LOGO_CHARS_MAX: usize = 2_048;
/// Maximum length of an id of an external catalogue, in characters.
pub const EXTERNAL_ID_CHARS_MAX: usize = 32;
/// Maximum length of an id that a provider uses, in characters.
pub const PROVIDER_ID_CHARS_MAX: usize = 255;
/// Maximum length of a file name extension, in characters.
pub const EXTENSION_CHARS_MAX: usize = 10;
/// Maximum size of the custom properties of a relation, a title or an episode, in bytes as JSON.
pub const PROPERTIES_BYTES_MAX: usize = 8 << 10;
/// Maximum size of the details of a relation, in bytes as JSON.
pub const DETAILS_BYTES_MAX: usize = 64 << 10;

/// Returns a UUID that ends with an id, so that the record of the id can be found without an index. The rest of it is
/// random.
pub fn uuid_of(id: u32, random: u128) -> Uuid {
    let mut bytes = random.to_be_bytes();
    bytes[12..].copy_from_slice(&id.to_be_bytes());
    // Version 8: the format is our own.
    bytes[6] = (bytes[6] & 0x0f) | 0x80;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    Uuid::from_bytes(bytes)
}

/// Returns the id with which a UUID ends. A UUID from elsewhere ends with any number.
pub fn id_in(uuid: Uuid) -> u32 {
    uuid.as_u128() as u32
}

/// Shortens a text to a number of characters.
pub(crate) fn shorten(text: &mut String, chars_max: usize) {
    // A text is at least as long in bytes as in characters.
    if text.len() > chars_max
        && let Some((end, _)) = text.char_indices().nth(chars_max)
    {
        text.truncate(end);
    }
}

/// Shortens a text. One of spaces only is none.
pub(crate) fn shorten_option(text: &mut Option<String>, chars_max: usize) {
    if let Some(inside) = text.take().filter(|it| !it.trim().is_empty()) {
        let mut inside = inside;
        shorten(&mut inside, chars_max);
        *text = Some(inside);
    }
}

/// Leaves out the properties that do not fit a number of bytes. Smaller ones stay.
pub(crate) fn limit_properties(properties: &mut Map<String, Value>, bytes_max: usize) {
    let mut left = bytes_max;
    properties.retain(|name, value| {
        let size = name.len() + 4 + serde_json::to_vec(value).map_or(usize::MAX / 2, |it| it.len());
        let fits = size <= left;
        left -= if fits { size } else { 0 };
        fits
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_uuid_ends_with_its_id_and_is_otherwise_random() {
        let (one, other) = (uuid_of(7, u128::MAX), uuid_of(7, 1 << 80));
        assert_eq!((id_in(one), id_in(other)), (7, 7));
        assert_ne!(one, other);
        assert_eq!((one.get_version_num(), one.get_variant()), (8, uuid::Variant::RFC4122));
    }

    #[test]
    fn texts_and_properties_are_limited() {
        let mut text = "é".repeat(300);
        shorten(&mut text, 255);
        assert_eq!(text.chars().count(), 255);
        let mut empty = Some("  ".to_owned());
        shorten_option(&mut empty, 5);
        assert_eq!(empty, None);
        let mut properties =
            json!({ "a": "x".repeat(90), "b": "x".repeat(20), "c": 1 }).as_object().unwrap().clone();
        limit_properties(&mut properties, 50);
        assert_eq!(properties.keys().collect::<Vec<_>>(), ["b", "c"]);
    }
}
