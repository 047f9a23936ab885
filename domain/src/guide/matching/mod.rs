//! Finds the guide channels that belong to channels: by what an admin linked before, by guide id, by Gracenote station and by
//! name. A wrong link is worse than none: several equally good candidates are refused.

mod alias;
mod countries;
mod form;
mod groups;
mod index;
mod keys;
mod matcher;
mod names;
mod score;
mod scripts;
mod settings;
#[cfg(test)]
mod tests;
mod tokens;
mod vocabulary;

pub use self::alias::{AliasName, GUIDE_ALIASES_MAX, GuideAlias};
pub use self::countries::Country;
pub use self::keys::{NormalKey, guide_id, station};
pub use self::matcher::{CANDIDATES_MAX, Candidate, Decision, GuideEntry, MatchResult, Matcher, Subject};
pub use self::names::{NameRules, NormalName};
pub use self::score::Reason;
pub(crate) use self::scripts::plain;
pub use self::settings::{IGNORED_TEXT_CHARS_MAX, IGNORED_TEXTS_MAX, MatchSettings};
pub use self::vocabulary::{Quality, quality_of_name};
pub(crate) use self::vocabulary::{
    digits, is_common_word, is_decoration, is_leading_code, is_remark, is_weak, quality,
};
