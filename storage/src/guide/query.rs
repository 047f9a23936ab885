//! Searches for programmes: what can be asked, and how a text is checked.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use domain::guide::programme::ProgrammeId;
use domain::guide::words::{lower, lower_into, words};
use domain::ids::GuideChannelId;

use super::texts::for_each_text;

/// Maximum number of words and other conditions in a query.
pub const QUERY_WORDS_MAX: usize = 64;

/// The texts of a programme that can be searched, in all their languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum GuideField {
    Title,
    SubTitle,
    Description,
    Category,
}

impl GuideField {
    /// Returns the number in guide files.
    pub(super) fn number(self) -> u8 {
        match self {
            Self::Title => 0,
            Self::SubTitle => 1,
            Self::Description => 2,
            Self::Category => 3,
        }
    }
}

/// A test of a text, such as a regular expression.
pub type TextTest = Arc<dyn Fn(&str) -> bool + Send + Sync>;

/// A condition for the texts of a programme.
#[derive(Clone)]
pub enum TextQuery {
    /// Each word of `text` is in the field: at the beginning of a word, or with `whole` as a whole word. Case and accents
    /// do not count. A text without words is in no field. The search index answers it.
    Words { field: GuideField, text: String, whole: bool },
    /// `text` is in one of the texts of the field; case does not count. Texts are read to answer it, so it should stand
    /// beside a condition that the index answers, or in a short window of time.
    Contains { field: GuideField, text: String },
    /// One of the texts of the field passes the test. The same applies as to `Contains`.
    Matches { field: GuideField, test: TextTest },
    /// All of these conditions; none of them is always met.
    All(Vec<TextQuery>),
    /// At least one of these conditions.
    Any(Vec<TextQuery>),
}

/// A search for programmes. The default finds all.
#[derive(Debug, Clone)]
pub struct GuideQuery {
    pub text: Option<TextQuery>,
    /// `None`: all guide channels.
    pub channels: Option<BTreeSet<GuideChannelId>>,
    /// Allowed starts, in Unix seconds.
    pub starts: Range<i64>,
    /// Allowed ends, in Unix seconds.
    pub stops: Range<i64>,
}

impl Default for GuideQuery {
    fn default() -> Self {
        let any = i64::MIN..i64::MAX;
        Self { text: None, channels: None, starts: any.clone(), stops: any }
    }
}

/// Bounds of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SearchLimits {
    /// Maximum number of programmes in the result: the page, and all pages before it.
    pub n_max: usize,
    /// Maximum number of programmes whose texts are read, for conditions that the index does not answer. A search that
    /// needs more has no result.
    pub checked_max: usize,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The first programmes, by start and then by guide channel.
    pub ids: Vec<ProgrammeId>,
    /// The exact number of programmes.
    pub count: u64,
    /// Whether the texts of more than `checked_max` programmes would have to be read. None was read then, and nothing is
    /// found.
    pub is_too_wide: bool,
}

impl TextQuery {
    /// Returns whether the search index answers the whole condition.
    pub(super) fn is_indexed(&self) -> bool {
        match self {
            Self::Words { .. } => true,
            Self::Contains { .. } | Self::Matches { .. } => false,
            Self::All(parts) | Self::Any(parts) => parts.iter().all(Self::is_indexed),
        }
    }

    /// Returns the number of words and other conditions.
    pub(super) fn size(&self) -> usize {
        match self {
            Self::Words { text, .. } => words(text).len().max(1),
            Self::Contains { .. } | Self::Matches { .. } => 1,
            Self::All(parts) | Self::Any(parts) => 1 + parts.iter().map(Self::size).sum::<usize>(),
        }
    }

    /// Prepares the check of programmes that the search index has found. Conditions that it has answered for all of them
    /// are not checked again.
    pub(super) fn check(&self) -> TextCheck<'_> {
        match self {
            Self::All(parts) => {
                TextCheck::All(parts.iter().filter(|it| !it.is_indexed()).map(Self::check).collect())
            }
            other => other.whole_check(),
        }
    }

    /// Prepares the check of the whole condition.
    fn whole_check(&self) -> TextCheck<'_> {
        match self {
            Self::Words { field, text, whole } => {
                TextCheck::Words { field: *field, words: words(text), whole: *whole }
            }
            Self::Contains { field, text } => TextCheck::Contains { field: *field, text: lower(text) },
            Self::Matches { field, test } => TextCheck::Matches { field: *field, test: &**test },
            Self::All(parts) => {
                // Words last: splitting a text takes longest.
                let (words, others): (Vec<_>, Vec<_>) = parts.iter().partition(|it| it.is_indexed());
                TextCheck::All(others.into_iter().chain(words).map(Self::whole_check).collect())
            }
            Self::Any(parts) => TextCheck::Any(parts.iter().map(Self::whole_check).collect()),
        }
    }
}

/// A condition, prepared for checking many programmes.
pub(super) enum TextCheck<'a> {
    Words { field: GuideField, words: Vec<String>, whole: bool },
    Contains { field: GuideField, text: String },
    Matches { field: GuideField, test: &'a (dyn Fn(&str) -> bool + Send + Sync) },
    All(Vec<TextCheck<'a>>),
    Any(Vec<TextCheck<'a>>),
}

impl TextCheck<'_> {
    /// Returns whether a programme with this inside meets the condition. `buffer` is reused from one to the next.
    pub(super) fn passes(&self, inner: &str, buffer: &mut String) -> bool {
        match self {
            Self::Words { field, words: wanted, whole } => {
                let mut present = BTreeSet::new();
                for_each_text(inner, |of, text| {
                    if of == *field {
                        present.extend(words(&text));
                    }
                });
                let is_present = |word: &String| match whole {
                    true => present.contains(word),
                    false => present.range(word.clone()..).next().is_some_and(|it| it.starts_with(&**word)),
                };
                !wanted.is_empty() && wanted.iter().all(is_present)
            }
            Self::Contains { field, text: wanted } => has_text(inner, *field, |text| {
                lower_into(text, buffer);
                buffer.contains(&**wanted)
            }),
            Self::Matches { field, test } => has_text(inner, *field, test),
            Self::All(parts) => parts.iter().all(|it| it.passes(inner, buffer)),
            Self::Any(parts) => parts.iter().any(|it| it.passes(inner, buffer)),
        }
    }
}

/// Returns whether one of the texts of a field passes the test.
fn has_text(inner: &str, field: GuideField, mut test: impl FnMut(&str) -> bool) -> bool {
    let mut is_found = false;
    for_each_text(inner, |of, text| is_found |= of == field && !is_found && test(&text));
    is_found
}

impl fmt::Debug for TextQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Words { field, text, whole } => write!(f, "Words({field:?}, {text:?}, {whole})"),
            Self::Contains { field, text } => write!(f, "Contains({field:?}, {text:?})"),
            Self::Matches { field, .. } => write!(f, "Matches({field:?})"),
            Self::All(parts) => f.debug_tuple("All").field(parts).finish(),
            Self::Any(parts) => f.debug_tuple("Any").field(parts).finish(),
        }
    }
}
