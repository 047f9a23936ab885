//! Filters of an account: which entries of its playlist are imported.

use std::fmt;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::pattern::{self, PatternError};
use crate::stream::StreamProperties;

/// Maximum number of filters of one account.
pub const FILTERS_MAX: usize = 100;
/// Maximum length of a filter's pattern, in characters.
pub const FILTER_CHARS_MAX: usize = 200;

/// A filter: entries that match are imported, or left out.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
pub struct StreamFilter {
    /// Unique in its account.
    pub id: u32,
    pub field: FilterField,
    /// A regular expression, which may match anywhere in the value.
    pub pattern: String,
    /// Whether matching entries are left out.
    pub exclude: bool,
    /// Filters with a smaller number are applied first; equal ones in the order of their ids.
    #[serde(default)]
    pub order: i32,
    /// `case_sensitive` is true unless it is `false`. Other properties are data of clients.
    #[serde(default)]
    pub custom_properties: Map<String, Value>,
}

/// The value that a filter examines, as the provider sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FilterField {
    Group,
    Name,
    Url,
}

impl StreamFilter {
    /// Returns whether upper and lower case letters differ.
    pub fn is_case_sensitive(&self) -> bool {
        self.custom_properties.get("case_sensitive") != Some(&Value::Bool(false))
    }

    /// Compiles the pattern.
    ///
    /// # Errors
    /// The pattern is invalid.
    pub fn compile(&self) -> Result<Regex, PatternError> {
        pattern::compile(&self.pattern, !self.is_case_sensitive())
    }
}

/// Without its pattern, because one for addresses may contain a login.
impl fmt::Debug for StreamFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamFilter")
            .field("id", &self.id)
            .field("field", &self.field)
            .finish_non_exhaustive()
    }
}

/// The filters of an account, compiled and in order.
#[derive(Debug, Clone, Default)]
pub struct StreamFilters(Vec<(FilterField, Regex, bool)>);

impl StreamFilters {
    /// Compiles the filters.
    ///
    /// # Errors
    /// The id of the first filter whose pattern is invalid, and the reason.
    pub fn new(filters: &[StreamFilter]) -> Result<Self, (u32, PatternError)> {
        let mut sorted: Vec<_> = filters.iter().collect();
        sorted.sort_by_key(|it| (it.order, it.id));
        let compile = |it: &StreamFilter| {
            let find = it.compile().map_err(|error| (it.id, error))?;
            Ok((it.field, find, it.exclude))
        };
        sorted.into_iter().map(compile).collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether an entry is imported: the first filter that matches decides. Entries that no filter matches are
    /// imported.
    pub fn keep(&self, properties: &StreamProperties) -> bool {
        let value = |field: FilterField| match field {
            FilterField::Group => properties.group.as_deref().unwrap_or_default(),
            FilterField::Name => &properties.name,
            FilterField::Url => properties.url.expose(),
        };
        let deciding = self.0.iter().find(|(field, find, _)| find.is_match(value(*field)));
        deciding.is_none_or(|(_, _, exclude)| !exclude)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_url::SourceUrl;

    fn filter(id: u32, field: FilterField, pattern: &str, exclude: bool) -> StreamFilter {
        let custom_properties = Map::new();
        StreamFilter { id, field, pattern: pattern.to_owned(), exclude, order: 0, custom_properties }
    }

    fn keeps(filters: &[StreamFilter], name: &str, group: Option<&str>) -> bool {
        StreamFilters::new(filters).unwrap().keep(&StreamProperties {
            group: group.map(str::to_owned),
            ..StreamProperties::new(name, SourceUrl::new("http://tv/live/anna/hunter2/1.ts"))
        })
    }

    #[test]
    fn the_first_matching_filter_decides() {
        use FilterField::{Group, Name, Url};
        let only_news = [filter(1, Name, "News", false), filter(2, Name, ".*", true)];
        assert!(keeps(&only_news, "BBC News", None) && !keeps(&only_news, "Film", None));
        let swapped = [StreamFilter { order: 1, ..only_news[0].clone() }, only_news[1].clone()];
        assert!(!keeps(&swapped, "BBC News", None), "the order decides before the id");
        assert!(keeps(&[], "Film", None));
        assert!(keeps(&[filter(1, Name, "News", false)], "Film", None), "no filter matches");
        assert!(!keeps(&[filter(1, Group, "^$", true)], "Film", None), "a missing group is an empty text");
        assert!(!keeps(&[filter(1, Url, "/live/", true)], "Film", None));
        assert!(keeps(&[filter(1, Group, "adult", true)], "Film", Some("Adult")));
        let mut any_case = filter(1, Group, "adult", true);
        any_case.custom_properties.insert("case_sensitive".to_owned(), Value::Bool(false));
        assert!(!keeps(&[any_case], "Film", Some("Adult")));
    }

    #[test]
    fn an_invalid_filter_is_reported_and_prints_no_pattern() {
        let filters =
            [filter(1, FilterField::Name, "a", true), filter(7, FilterField::Name, "(hunter2", true)];
        let (id, error) = StreamFilters::new(&filters).unwrap_err();
        assert!(id == 7 && !error.to_string().contains("hunter2"), "{error}");
        assert!(!format!("{filters:?}").contains("hunter2"));
    }
}
