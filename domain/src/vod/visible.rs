//! The rule that decides which films and series a viewer may see. Lists, details, exports and playback all use it.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::title::{Title, TitleKind};
use crate::ids::VodCategoryId;
use crate::user::{User, UserLevel};

/// Property of a user: whether films are visible. The default is true.
pub const MOVIES_PROPERTY: &str = "vod_movies";
/// Property of a user: whether series are visible. The default is true.
pub const SERIES_PROPERTY: &str = "vod_series";
/// Property of a user: ids of the categories whose titles are visible. Without it, all are.
pub const CATEGORIES_PROPERTY: &str = "vod_categories";
/// Property of a user: the highest age for which visible titles are rated.
pub const AGE_PROPERTY: &str = "vod_age_max";
/// Property of a user with a highest age: whether titles without an age rating are visible. The default is false.
pub const UNRATED_PROPERTY: &str = "vod_unrated";

/// The age from which adult content counts as suitable.
const ADULT_AGE: u8 = 18;

/// The limits of what a viewer may see of films and series. Two viewers with equal limits see the same titles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VodLimits {
    is_admin: bool,
    movies: bool,
    series: bool,
    hides_adult: bool,
    /// Titles of these categories only. `None` sets no limit.
    categories: Option<BTreeSet<VodCategoryId>>,
    age_max: Option<u8>,
    allows_unrated: bool,
}

/// The values of a title that the rule needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TitleTraits {
    pub kind: TitleKind,
    pub is_adult: bool,
    pub hidden: bool,
    /// The age of its rating.
    pub age: Option<u8>,
}

impl TitleTraits {
    pub fn from_title(title: &Title) -> Self {
        Self {
            kind: title.id.kind(),
            is_adult: title.is_adult(),
            hidden: title.hidden,
            age: title.rating().and_then(age_of_rating),
        }
    }
}

impl VodLimits {
    /// For admins, and for everybody while no user exists.
    pub fn none() -> Self {
        Self {
            is_admin: true,
            movies: true,
            series: true,
            hides_adult: false,
            categories: None,
            age_max: None,
            allows_unrated: true,
        }
    }

    /// For callers without credentials, who see adult titles only if a rule allows them.
    pub fn anonymous(allows_adult: bool) -> Self {
        Self { is_admin: false, hides_adult: !allows_adult, ..Self::none() }
    }

    /// For a user. A property with an invalid value hides what it is about, so that a mistake never shows more.
    pub fn from_user(user: &User) -> Self {
        if user.effective_level() == UserLevel::Admin {
            return Self::none();
        }
        let properties = &user.custom_properties;
        let age_max = match properties.get(AGE_PROPERTY) {
            None | Some(Value::Null) => None,
            Some(age) => Some(age.as_u64().and_then(|it| u8::try_from(it).ok()).unwrap_or(0)),
        };
        Self {
            is_admin: false,
            movies: flag(properties, MOVIES_PROPERTY, true),
            series: flag(properties, SERIES_PROPERTY, true),
            hides_adult: user.hide_adult,
            categories: match properties.get(CATEGORIES_PROPERTY) {
                None | Some(Value::Null) => None,
                Some(ids) => Some(category_ids(ids)),
            },
            age_max,
            allows_unrated: age_max.is_none() || flag(properties, UNRATED_PROPERTY, false),
        }
    }

    /// Returns whether the viewer may see titles of this kind at all.
    pub fn allows_kind(&self, kind: TitleKind) -> bool {
        match kind {
            TitleKind::Movie => self.movies,
            TitleKind::Series => self.series,
        }
    }

    /// Returns whether the viewer may see a category and the titles in it.
    pub fn allows_category(&self, category: VodCategoryId) -> bool {
        self.categories.as_ref().is_none_or(|it| it.contains(&category))
    }

    /// Returns whether the viewer may see a title with these properties, in whichever category it is.
    pub fn allows(&self, title: TitleTraits) -> bool {
        let age = match title.is_adult {
            true => Some(title.age.unwrap_or(ADULT_AGE).max(ADULT_AGE)),
            false => title.age,
        };
        let is_old_enough = match (self.age_max, age) {
            (None, _) => true,
            (Some(age_max), Some(age)) => age <= age_max,
            (Some(_), None) => self.allows_unrated,
        };
        self.allows_kind(title.kind)
            && (self.is_admin || !title.hidden)
            && !(self.hides_adult && title.is_adult)
            && is_old_enough
    }
}

fn flag(properties: &Map<String, Value>, name: &str, default: bool) -> bool {
    match properties.get(name) {
        None | Some(Value::Null) => default,
        Some(value) => value.as_bool().unwrap_or(false),
    }
}

fn category_ids(value: &Value) -> BTreeSet<VodCategoryId> {
    let ids = value.as_array().into_iter().flatten();
    ids.filter_map(|it| Some(VodCategoryId(u32::try_from(it.as_u64()?).ok()?))).collect()
}

/// Returns whether a viewer with these limits may see and watch a title. `is_available` tells which relations count: those
/// of active accounts in enabled categories.
pub fn visible(limits: &VodLimits, title: &Title, is_available: impl Fn(&super::Relation) -> bool) -> bool {
    let relations = || title.relations.iter().filter(|it| is_available(it));
    limits.allows(TitleTraits::from_title(title)) && relations().any(|it| limits.allows_category(it.category))
}

/// Returns the age of a rating such as `PG-13`, `FSK 16` or `18+`. A number alone is a score up to 10, and an age above.
pub fn age_of_rating(rating: &str) -> Option<u8> {
    let plain: String = rating.chars().filter(|it| it.is_ascii_alphanumeric() || *it == '+').collect();
    let label = plain.to_ascii_uppercase();
    let age = match &*label {
        "G" | "U" | "AL" | "TVG" | "TVY" | "TP" | "ATP" | "L" => 0,
        "TVY7" | "TVY7FV" => 7,
        "PG" | "TVPG" => 10,
        "12A" => 12,
        "PG13" => 13,
        "TV14" => 14,
        "MA15+" | "MA15" | "R15+" => 15,
        "R" | "TVMA" | "NC17" => 17,
        "R18" | "R18+" | "X" | "XXX" => 18,
        _ => return age_in(rating, &label),
    };
    Some(age)
}

/// Returns the age in a rating like `FSK 16`, `-12`, `18+` or `16`.
fn age_in(rating: &str, label: &str) -> Option<u8> {
    if rating.contains(['.', ',', '/']) {
        return None;
    }
    let is_marked = label.contains('+') || label.starts_with("FSK") || rating.trim().starts_with('-');
    let digits = label.trim_start_matches("FSK").trim_matches('+');
    let age: u8 = digits.parse().ok()?;
    ((is_marked || age > 10) && age <= 21).then_some(age)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ids::{AccountId, UserId};
    use crate::vod::{Relation, RelationId, TitleFacts, TitleId, uuid_of};

    fn user(properties: Value) -> User {
        let mut user = User::new(UserId(5), "Kid", UserLevel::Standard, 0);
        user.custom_properties = properties.as_object().unwrap().clone();
        user
    }

    fn title(kind: TitleKind, rating: &str) -> Title {
        let id = TitleId::new(kind, 7).unwrap();
        let mut relation = Relation::new(RelationId(8), AccountId(2), VodCategoryId(3), "1", 0);
        relation.facts = TitleFacts { rating: Some(rating.to_owned()), ..TitleFacts::default() };
        Title { relations: vec![relation], ..Title::new(id, uuid_of(id.key(), 0), 0) }
    }

    #[test]
    fn ratings_are_ages_or_scores() {
        for (rating, age) in [
            ("PG-13", Some(13)),
            ("pg13", Some(13)),
            ("TV-MA", Some(17)),
            ("G", Some(0)),
            ("FSK 16", Some(16)),
            ("FSK-6", Some(6)),
            ("18+", Some(18)),
            ("+12", Some(12)),
            ("-12", Some(12)),
            ("16", Some(16)),
            ("7", None),
            ("8.3", None),
            ("10/10", None),
            ("0", None),
            ("NR", None),
            ("99", None),
            ("", None),
        ] {
            assert_eq!(age_of_rating(rating), age, "{rating}");
        }
    }

    #[test]
    fn each_property_of_a_user_limits_what_is_visible_and_an_invalid_one_hides() {
        let movie = title(TitleKind::Movie, "PG-13");
        let mut adult = title(TitleKind::Movie, "5.0");
        adult.edits.is_adult = Some(true);
        let unrated = title(TitleKind::Series, "8.3");
        let mut hidden = title(TitleKind::Movie, "G");
        hidden.hidden = true;
        let titles = [&movie, &adult, &unrated, &hidden];
        for (properties, expected) in [
            (json!({}), [true, true, true, false]),
            (json!({ "vod_movies": false }), [false, false, true, false]),
            (json!({ "vod_series": false }), [true, true, false, false]),
            (json!({ "vod_series": "yes" }), [true, true, false, false]),
            (json!({ "vod_categories": [3] }), [true, true, true, false]),
            (json!({ "vod_categories": [4] }), [false, false, false, false]),
            (json!({ "vod_categories": "3" }), [false, false, false, false]),
            (json!({ "vod_age_max": 13 }), [true, false, false, false]),
            (json!({ "vod_age_max": 12 }), [false, false, false, false]),
            (json!({ "vod_age_max": 13, "vod_unrated": true }), [true, false, true, false]),
            (json!({ "vod_age_max": "13" }), [false, false, false, false]),
            (json!({ "vod_age_max": null, "vod_categories": null }), [true, true, true, false]),
        ] {
            let limits = VodLimits::from_user(&user(properties.clone()));
            assert_eq!(titles.map(|it| visible(&limits, it, |_| true)), expected, "{properties}");
        }
        let mut kid = user(json!({}));
        kid.hide_adult = true;
        let seen = |limits: &VodLimits| titles.map(|it| visible(limits, it, |_| true));
        assert_eq!(seen(&VodLimits::from_user(&kid)), [true, false, true, false]);
        assert_eq!(seen(&VodLimits::anonymous(false)), [true, false, true, false]);
        assert_eq!(seen(&VodLimits::none()), [true; 4], "admins see hidden titles");
        kid.is_superuser = true;
        assert_eq!(seen(&VodLimits::from_user(&kid)), [true; 4]);
        assert!(!visible(&VodLimits::none(), &movie, |_| false), "no account offers it any more");
    }
}
