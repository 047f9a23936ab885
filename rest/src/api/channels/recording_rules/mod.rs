//! Rules that make recordings: `/api/channels/recurring-rules/` and `/api/channels/series-rules/`.
//!
//! Both lists have the same records. A change of a rule replaces its scheduled recordings, apart from those that a user
//! edited; what has begun stays.

#[cfg(test)]
mod condition_tests;
mod conditions;
mod deleted;
mod recurring;
mod rules;
mod series;
mod series_rule;
#[cfg(test)]
mod tests;

use domain::recording::rules::{AiringMark, AiringReason, QualityWish, TextMode};
use route_frame::route::Route;

pub(crate) use self::deleted::DeletedRules;
use crate::choice::choice;

choice!(TextMode {
    Exact = "exact",
    Contains = "contains",
    Search = "search",
    Regex = "regex",
});

choice!(QualityWish {
    Any = "any",
    High = "hd",
    Ultra = "uhd",
    Standard = "sd",
});

choice!(AiringMark {
    Scheduled = "scheduled",
    Alternative = "alternative",
    Recorded = "recorded",
    NotNew = "not_new",
    Skipped = "skipped",
});

choice!(AiringReason {
    Running = "running",
    OtherRule = "other_rule",
    ByHand = "by_hand",
    Stopped = "stopped",
    Deleted = "deleted",
    Repeat = "repeat",
    ShownBefore = "shown_before",
    NotMarked = "not_marked",
    InLibrary = "in_library",
    Begun = "begun",
    RuleOff = "rule_off",
    NoChannel = "no_channel",
    TooLong = "too_long",
    TooShort = "too_short",
    TooMany = "too_many",
});

pub(super) fn routes() -> Vec<Route> {
    recurring::routes().into_iter().chain(series::routes()).collect()
}
