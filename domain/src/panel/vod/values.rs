//! Values of titles, whatever their type.

use std::fmt;

use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::{
    BACKDROPS_MAX, ID_BYTES_MAX, LINE_CHARS_MAX, PICTURE_BYTES_MAX, PLOT_CHARS_MAX, RATING_CHARS_MAX,
};
use crate::panel::info::{kept, time_ms};
use crate::panel::lists::truncated;
use crate::panel::loose::LooseValue;

/// A list of values: a list, one value, or a text that contains a list. Keeps the first ones.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LooseList(pub(super) Vec<LooseValue>);

/// An object of plain values; anything else is an empty one.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct LooseObject(pub(super) Map<String, Value>);

/// Maximum number of items that are kept of a list.
const ITEMS_MAX: usize = 16;
/// The longest film, in seconds. Longer ones are errors.
const DURATION_MAX: i64 = 48 * 60 * 60;

impl<'de> Deserialize<'de> for LooseList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ListVisitor)
    }
}

struct ListVisitor;

impl<'de> Visitor<'de> for ListVisitor {
    type Value = LooseList;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any value")
    }

    fn visit_bool<E>(self, _: bool) -> Result<LooseList, E> {
        Ok(LooseList::default())
    }

    fn visit_i64<E>(self, value: i64) -> Result<LooseList, E> {
        Ok(LooseList(vec![LooseValue::Whole(value)]))
    }

    fn visit_u64<E>(self, value: u64) -> Result<LooseList, E> {
        Ok(i64::try_from(value)
            .map_or_else(|_| LooseList::default(), |it| LooseList(vec![LooseValue::Whole(it)])))
    }

    fn visit_f64<E>(self, value: f64) -> Result<LooseList, E> {
        Ok(LooseList(vec![LooseValue::Decimal(value)]))
    }

    fn visit_str<E>(self, value: &str) -> Result<LooseList, E> {
        // Some panels write the list as a text.
        let inner =
            value.trim_start().starts_with('[').then(|| serde_json::from_str::<Vec<LooseValue>>(value).ok());
        let mut list = inner.flatten().unwrap_or_else(|| vec![LooseValue::Text(value.to_owned())]);
        list.truncate(ITEMS_MAX);
        Ok(LooseList(list))
    }

    fn visit_unit<E>(self) -> Result<LooseList, E> {
        Ok(LooseList::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<LooseList, A::Error> {
        let mut items = Vec::new();
        while items.len() < ITEMS_MAX
            && let Some(item) = list.next_element()?
        {
            items.push(item);
        }
        while list.next_element::<IgnoredAny>()?.is_some() {}
        Ok(LooseList(items))
    }

    /// A list with gaps.
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<LooseList, A::Error> {
        let mut items = Vec::new();
        while items.len() < ITEMS_MAX
            && let Some((IgnoredAny, item)) = map.next_entry()?
        {
            items.push(item);
        }
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(LooseList(items))
    }
}

impl<'de> Deserialize<'de> for LooseObject {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(match Value::deserialize(deserializer)? {
            Value::Object(object) => Self(kept(object)),
            _ => Self::default(),
        })
    }
}

/// Returns the first of several fields that has a value.
pub(super) fn first<'a>(values: &[&'a LooseValue]) -> &'a LooseValue {
    static NOTHING: LooseValue = LooseValue::Nothing;
    values.iter().copied().find(|it| it.text().is_some() || decimal(it).is_some()).unwrap_or(&NOTHING)
}

/// Returns an id that can be part of an address.
pub(super) fn id(value: &LooseValue) -> Option<String> {
    let is_usable = |it: &String| {
        it.len() <= ID_BYTES_MAX
            && !it.starts_with('-')
            && it.bytes().all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
            && it.bytes().any(|it| it != b'0')
    };
    let whole = || value.whole().filter(|it| *it > 0 && !matches!(value, LooseValue::Flag(_)));
    value.text().filter(is_usable).or_else(|| whole().map(|it| it.to_string()))
}

/// Returns the ids of categories. 0 stands for none.
pub(super) fn categories(one: &LooseValue, all: &LooseList) -> Vec<String> {
    let mut ids: Vec<String> = Vec::new();
    for value in [one].into_iter().chain(&all.0) {
        // Some panels write several ids into one text: "3,4" or "[3,4]".
        let text = value.text().unwrap_or_default();
        for part in text.split([',', '[', ']', '"']).map(str::trim) {
            let is_id = !part.is_empty() && part != "0" && part.len() <= ID_BYTES_MAX;
            if is_id && ids.len() < ITEMS_MAX && !ids.iter().any(|it| it == part) {
                ids.push(part.to_owned());
            }
        }
    }
    ids
}

/// Returns a text of one line, whose end is dropped if it is too long.
pub(super) fn line(value: &LooseValue, chars_max: usize) -> Option<String> {
    let text = match value {
        LooseValue::Text(text) if text.contains(['\n', '\r']) => {
            LooseValue::Text(text.replace("\r\n", " ").replace(['\n', '\r'], " ")).text()
        }
        value => value.text(),
    };
    text.map(|it| truncated(it, chars_max))
}

pub(super) fn plot(value: &LooseValue) -> Option<String> {
    line(value, PLOT_CHARS_MAX)
}

/// Returns names, which some panels send as a list.
pub(super) fn names(list: &LooseList) -> Option<String> {
    let names: Vec<String> = list.0.iter().filter_map(|it| line(it, LINE_CHARS_MAX)).collect();
    (!names.is_empty()).then(|| truncated(names.join(", "), LINE_CHARS_MAX))
}

fn decimal(value: &LooseValue) -> Option<f64> {
    match value {
        LooseValue::Decimal(number) => Some(*number),
        LooseValue::Whole(number) => Some(*number as f64),
        LooseValue::Text(text) => text.trim().replace(',', ".").parse().ok(),
        LooseValue::Nothing | LooseValue::Flag(_) => None,
    }
    .filter(|it: &f64| it.is_finite())
}

/// Returns a rating. 0 stands for none; text that is not a number, such as `PG-13`, is kept.
pub(super) fn rating(value: &LooseValue) -> Option<String> {
    match decimal(value) {
        Some(number) if !(0.0..=100.0).contains(&number) || number == 0.0 => None,
        Some(number) if number.fract() == 0.0 => Some(format!("{number:.0}")),
        Some(number) => Some(format!("{number:.3}").trim_end_matches('0').trim_end_matches('.').to_owned()),
        None => value.text().filter(|it| it.chars().count() <= RATING_CHARS_MAX),
    }
}

/// Returns a year from a year or a date.
pub(super) fn year(value: &LooseValue) -> Option<u16> {
    let text = value.text()?;
    let is_year = |it: &u16| (1870..=2100).contains(it);
    // A date may begin or end with the year.
    let mut parts = text.split(|it: char| !it.is_ascii_digit()).filter(|it| it.len() == 4);
    parts.find_map(|it| it.parse().ok().filter(is_year))
}

/// Returns seconds: a number of them, or `H:MM:SS`.
pub(super) fn duration(seconds: &LooseValue, clock: &LooseValue, minutes: &[&LooseValue]) -> Option<u32> {
    let in_bounds = |it: i64| (1..=DURATION_MAX).contains(&it).then_some(it as u32);
    let of_seconds = seconds.whole().and_then(in_bounds);
    let of_clock = || {
        let text = clock.text()?;
        let parts: Option<Vec<i64>> = text.split(':').map(|it| it.trim().parse().ok()).collect();
        match parts?[..] {
            [hours, minutes, seconds]
                if [hours, minutes, seconds].iter().all(|it| (0..=10_000).contains(it)) =>
            {
                in_bounds(hours * 3600 + minutes * 60 + seconds)
            }
            [minutes, seconds] if [minutes, seconds].iter().all(|it| (0..=10_000).contains(it)) => {
                in_bounds(minutes * 60 + seconds)
            }
            _ => None,
        }
    };
    let of_minutes = || {
        let text = first(minutes).text()?;
        let digits: String = text.chars().take_while(char::is_ascii_digit).collect();
        in_bounds(digits.parse::<i64>().ok()?.checked_mul(60)?)
    };
    of_seconds.or_else(of_clock).or_else(of_minutes)
}

/// Returns the address of a picture. An address without a scheme is one of the same scheme as the panel's, so `http`.
pub(super) fn picture(value: &LooseValue) -> Option<String> {
    let text = value.text()?;
    let text = if text.starts_with("//") { format!("http:{text}") } else { text };
    let is_web = ["http://", "https://"].iter().any(|it| {
        text.get(..it.len()).is_some_and(|start| start.eq_ignore_ascii_case(it)) && text.len() > it.len()
    });
    (is_web && text.len() <= PICTURE_BYTES_MAX && !text.contains(char::is_whitespace)).then_some(text)
}

pub(super) fn pictures(list: &LooseList) -> Vec<String> {
    list.0.iter().filter_map(picture).take(BACKDROPS_MAX).collect()
}

/// Returns an id of an external catalogue: letters and digits, not only zeros.
pub(super) fn external_id(values: &[&LooseValue]) -> Option<String> {
    let of = |it: &&LooseValue| {
        id(it).filter(|it| {
            it.bytes().any(|it| (b'1'..=b'9').contains(&it)) && it.len() <= 50 && !it.starts_with('-')
        })
    };
    values.iter().find_map(of)
}

/// Returns the extension of a file, in lower case and without a point.
pub(super) fn extension(value: &LooseValue) -> Option<String> {
    let text = value.text()?.trim_start_matches('.').to_ascii_lowercase();
    let is_usable = (1..=8).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_alphanumeric());
    is_usable.then_some(text)
}

/// Returns a time in milliseconds since 1970.
pub(super) fn time(values: &[&LooseValue]) -> Option<i64> {
    values.iter().find_map(|it| time_ms(it))
}

/// Returns a number of a season or an episode; "Season 2" is one, too.
pub(super) fn ordinal(value: &LooseValue) -> Option<u32> {
    let of_text = || {
        let text = value.text()?;
        let start = text.find(|it: char| it.is_ascii_digit())?;
        let digits: String = text[start..].chars().take_while(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    let whole = value.whole().filter(|_| !matches!(value, LooseValue::Flag(_)));
    whole.or_else(of_text).and_then(|it| u32::try_from(it).ok()).filter(|it| *it <= ORDINAL_MAX)
}

/// The largest number of a season or an episode. Daily programmes number by date.
pub(super) const ORDINAL_MAX: u32 = 99_999_999;
