//! Values of a panel, whatever their type.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::playlist::m3u::text::clean;

/// A scalar value of any type. Reading one never fails: of a list its first element counts, and an object is nothing.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum LooseValue {
    #[default]
    Nothing,
    Text(String),
    Whole(i64),
    Decimal(f64),
    Flag(bool),
}

/// The largest whole number that a decimal represents exactly, 2^53.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

impl LooseValue {
    /// Returns a text without control characters and outer white space. `None` if it is empty, or one of the words that
    /// panels write for a missing value.
    pub fn text(&self) -> Option<String> {
        let text = match self {
            Self::Text(text) => clean(text),
            Self::Whole(number) => number.to_string(),
            Self::Decimal(_) => self.whole()?.to_string(),
            Self::Nothing | Self::Flag(_) => return None,
        };
        let is_missing =
            ["", "null", "none", "n/a", "undefined"].iter().any(|it| text.eq_ignore_ascii_case(it));
        (!is_missing).then_some(text)
    }

    /// Returns a whole number, also from a text.
    pub fn whole(&self) -> Option<i64> {
        match self {
            Self::Whole(number) => Some(*number),
            Self::Decimal(number) if number.fract() == 0.0 && number.abs() <= EXACT_MAX => {
                Some(*number as i64)
            }
            Self::Flag(flag) => Some(i64::from(*flag)),
            Self::Text(text) => {
                let text = text.trim();
                text.parse().ok().or_else(|| Self::Decimal(text.parse().ok()?).whole())
            }
            Self::Nothing | Self::Decimal(_) => None,
        }
    }

    /// Returns whether it means yes.
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Text(text)
                if ["true", "yes", "on"].iter().any(|it| text.trim().eq_ignore_ascii_case(it)) =>
            {
                true
            }
            _ => self.whole().is_some_and(|it| it != 0),
        }
    }

    pub fn is_nothing(&self) -> bool {
        *self == Self::Nothing
    }
}

impl<'de> Deserialize<'de> for LooseValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LooseVisitor)
    }
}

struct LooseVisitor;

impl<'de> Visitor<'de> for LooseVisitor {
    type Value = LooseValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<LooseValue, E> {
        Ok(LooseValue::Flag(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<LooseValue, E> {
        Ok(LooseValue::Whole(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<LooseValue, E> {
        Ok(i64::try_from(value).map_or(LooseValue::Nothing, LooseValue::Whole))
    }

    fn visit_f64<E>(self, value: f64) -> Result<LooseValue, E> {
        Ok(LooseValue::Decimal(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<LooseValue, E> {
        Ok(LooseValue::Text(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<LooseValue, E> {
        Ok(LooseValue::Text(value))
    }

    fn visit_unit<E>(self) -> Result<LooseValue, E> {
        Ok(LooseValue::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LooseValue, A::Error> {
        let first = list.next_element()?.unwrap_or_default();
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(first)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LooseValue, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LooseValue::Nothing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_whatever_its_type() {
        for (json, text, whole, is_yes) in [
            ("7", Some("7"), Some(7), true),
            ("\"7\"", Some("7"), Some(7), true),
            ("\" 7 \"", Some("7"), Some(7), true),
            ("7.0", Some("7"), Some(7), true),
            ("\"7.0\"", Some("7.0"), Some(7), true),
            ("7.5", None, None, false),
            ("1e300", None, None, false),
            ("18446744073709551615", None, None, false),
            ("-1", Some("-1"), Some(-1), true),
            ("0", Some("0"), Some(0), false),
            ("\"0\"", Some("0"), Some(0), false),
            ("true", None, Some(1), true),
            ("false", None, Some(0), false),
            ("\"true\"", Some("true"), None, true),
            ("\"News\\u0000 HD\"", Some("News HD"), None, false),
            ("null", None, None, false),
            ("\"\"", None, None, false),
            ("\"NULL\"", None, None, false),
            ("\"None\"", None, None, false),
            ("\"N/A\"", None, None, false),
            ("[]", None, None, false),
            ("[\"7\", {}, []]", Some("7"), Some(7), true),
            ("[[7]]", Some("7"), Some(7), true),
            ("{\"a\": [1]}", None, None, false),
        ] {
            let value: LooseValue = serde_json::from_str(json).unwrap();
            assert_eq!(
                (value.text().as_deref(), value.whole(), value.is_yes()),
                (text, whole, is_yes),
                "{json}"
            );
        }
    }
}
