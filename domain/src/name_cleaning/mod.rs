//! Names of films, series and channels as people know them, instead of `|EN| Heat [4K]` or `The_Matrix`.
//!
//! An admin chooses with [`NameCleaning`] which names are cleaned; [`NameCleaner`] apply them: first the own patterns of the
//! admin, then the bundled rules, which are tables. The name of the provider stays beside the cleaned one, so a change of
//! the settings applies to names that are stored already.

mod clean;
mod settings;
mod tables;
#[cfg(test)]
mod tests;

use serde_json::Value;

use crate::ids::AccountId;
use crate::pattern::Pattern;
use crate::vod::{NAME_CHARS_MAX, TitleKind, shorten};

pub(crate) use self::clean::is_film_version;
pub use self::settings::{NameCleaning, PATTERNS_MAX};

/// Whose name it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NameKind {
    Movie,
    Series,
    Channel,
}

impl NameKind {
    pub const ALL: [Self; 3] = [Self::Movie, Self::Series, Self::Channel];

    /// Returns the word of the interface.
    pub fn name(self) -> &'static str {
        match self {
            Self::Movie => "movie",
            Self::Series => "series",
            Self::Channel => "channel",
        }
    }
}

impl From<TitleKind> for NameKind {
    fn from(kind: TitleKind) -> Self {
        match kind {
            TitleKind::Movie => Self::Movie,
            TitleKind::Series => Self::Series,
        }
    }
}

/// The rules of an admin, ready to apply.
#[derive(Debug, Clone, Default)]
pub struct NameCleaner {
    settings: NameCleaning,
    patterns: Vec<(Option<NameKind>, Pattern)>,
}

impl NameCleaner {
    /// Compiles the rules of settings. Patterns that were valid once and no longer are count as absent.
    pub fn new(settings: NameCleaning) -> Self {
        let patterns = settings.patterns.iter().filter_map(|it| settings::read_pattern(it).ok()).collect();
        Self { settings, patterns }
    }

    /// Compiles the rules of the value of the core setting.
    pub fn from_setting(value: Option<&Value>) -> Self {
        Self::new(NameCleaning::from_setting(value))
    }

    /// Returns whether the other rules come from the same settings.
    pub fn is_same(&self, other: &Self) -> bool {
        self.settings == other.settings
    }

    /// Returns whether names stay as they are, whatever they are.
    pub fn are_none(&self) -> bool {
        let NameCleaning { movies, series, channels, clean_accounts, .. } = &self.settings;
        !movies && !series && !channels && clean_accounts.is_empty() && self.patterns.is_empty()
    }

    /// Returns the cleaned name. `None` if the provider's name is shown as it is: nothing changes, or nothing would be left.
    pub fn clean(&self, kind: NameKind, account: AccountId, name: &str) -> Option<String> {
        if self.are_none() || self.settings.keep_accounts.contains(&account) {
            return None;
        }
        let mut cleaned = name.to_owned();
        let patterns = self.patterns.iter().filter(|it| it.0.is_none_or(|it| it == kind));
        for (_, pattern) in patterns {
            let changed = pattern.apply(&cleaned);
            if changed.contains(char::is_alphanumeric) {
                cleaned = changed.trim().to_owned();
            }
        }
        if self.settings.has_bundled_rules(kind, account) {
            cleaned = clean::clean(&cleaned, kind);
        }
        shorten(&mut cleaned, NAME_CHARS_MAX);
        cleaned.truncate(cleaned.trim_end().len());
        (cleaned != name && cleaned.contains(char::is_alphanumeric)).then_some(cleaned)
    }
}
