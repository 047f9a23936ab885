//! One row of the other service, from its database or from its REST interface.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::table::SourceTable;

/// Maximum size of the JSON in one field, in bytes. Larger values count as missing.
pub(crate) const JSON_BYTES_MAX: usize = 100 * 1024;

/// A row with the known columns that it has.
///
/// A database export has every value as text, the REST interface has typed values; the accessors accept both. A value
/// of the wrong type counts as missing.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SourceRow {
    cells: Vec<(&'static str, Value)>,
}

impl SourceRow {
    /// Creates a row from the columns of a table; ignores unknown ones.
    pub fn new<'a>(table: SourceTable, values: impl IntoIterator<Item = (&'a str, Value)>) -> Self {
        let known = |(name, value)| table.column(name).map(|name| (name, value));
        Self { cells: values.into_iter().filter_map(known).collect() }
    }

    /// Creates a row from an object of the REST interface.
    pub fn from_object(table: SourceTable, object: &Map<String, Value>) -> Self {
        Self::new(table, object.iter().map(|(name, value)| (name.as_str(), value.clone())))
    }

    /// Adds or replaces a value.
    pub fn set(&mut self, column: &'static str, value: Value) {
        self.cells.retain(|it| it.0 != column);
        self.cells.push((column, value));
    }

    fn value(&self, column: &str) -> &Value {
        self.cells.iter().find(|it| it.0 == column).map_or(&Value::Null, |it| &it.1)
    }

    /// Returns whether the value is there and not null.
    pub fn has(&self, column: &str) -> bool {
        !self.value(column).is_null()
    }

    /// Returns a text that is not empty.
    pub fn text(&self, column: &str) -> Option<&str> {
        self.value(column).as_str().filter(|it| !it.is_empty())
    }

    pub fn integer(&self, column: &str) -> Option<i64> {
        match self.value(column) {
            Value::Number(number) => number.as_i64(),
            Value::String(text) => text.parse().ok(),
            _ => None,
        }
    }

    /// Returns an id; 0 and values above the maximum count as missing.
    pub fn id(&self, column: &str) -> Option<u32> {
        self.integer(column).and_then(|it| u32::try_from(it).ok()).filter(|it| (1..ID_MAX).contains(it))
    }

    /// Returns the id in the first of these columns that has one.
    pub fn first_id(&self, columns: [&str; 2]) -> Option<u32> {
        columns.iter().find_map(|it| self.id(it))
    }

    /// Returns a number as text, as it is written.
    pub fn number(&self, column: &str) -> Option<String> {
        match self.value(column) {
            Value::Number(number) => Some(number.to_string()),
            Value::String(text) if !text.is_empty() => Some(text.clone()),
            _ => None,
        }
    }

    /// Returns a truth value, which a database export writes as `t` or `true`.
    pub fn flag(&self, column: &str) -> Option<bool> {
        match self.value(column) {
            Value::Bool(flag) => Some(*flag),
            Value::String(text) => match text.as_str() {
                "t" | "true" => Some(true),
                "f" | "false" => Some(false),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns an object; a missing or invalid one is empty.
    pub fn object(&self, column: &str) -> Map<String, Value> {
        match self.value(column) {
            Value::Object(object) => object.clone(),
            Value::String(text) if text.len() <= JSON_BYTES_MAX => {
                serde_json::from_str(text).unwrap_or_default()
            }
            _ => Map::new(),
        }
    }

    /// Returns a time in milliseconds since 1970.
    pub fn time_ms(&self, column: &str) -> Option<i64> {
        self.text(column)?.parse::<Timestamp>().ok().map(Timestamp::as_millisecond)
    }
}

/// Ids are smaller than this, so that new ids remain.
pub(crate) const ID_MAX: u32 = 1 << 31;

/// Returns a text without control characters and outer spaces, cut to this many characters.
pub fn plain(text: &str, chars_max: usize) -> String {
    let spaced: String = text.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
    let cut: String = spaced.trim().chars().take(chars_max).collect();
    cut.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_an_export_and_typed_values_are_read_alike() {
        let export = [
            ("id", json!("7")),
            ("is_active", json!("t")),
            ("custom_properties", json!("{\"a\": 1}")),
            ("created_at", json!("2026-11-20 23:06:06.502962+00")),
            ("unknown", json!("x")),
        ];
        let typed = [
            ("id", json!(7)),
            ("is_active", json!(true)),
            ("custom_properties", json!({ "a": 1 })),
            ("created_at", json!("2026-11-20T23:06:06.502962Z")),
        ];
        for row in
            [SourceRow::new(SourceTable::Accounts, export), SourceRow::new(SourceTable::Accounts, typed)]
        {
            assert_eq!((row.id("id"), row.flag("is_active")), (Some(7), Some(true)));
            assert_eq!(Value::from(row.object("custom_properties")), json!({ "a": 1 }));
            assert_eq!(row.time_ms("created_at"), Some(1_795_215_966_502));
            assert_eq!((row.text("name"), row.has("unknown")), (None, false));
        }
    }

    #[test]
    fn absurd_values_count_as_missing() {
        for id in [json!(0), json!(-1), json!("4294967296"), json!(2_147_483_648_u32), json!("x"), json!([])]
        {
            assert_eq!(SourceRow::new(SourceTable::Groups, [("id", id.clone())]).id("id"), None, "{id}");
        }
        let row = SourceRow::new(SourceTable::Accounts, [("custom_properties", json!("{broken"))]);
        assert!(row.object("custom_properties").is_empty());
        assert_eq!(plain(" a\u{0}b\n ", 255), "a b");
        assert_eq!(plain("abc def", 4), "abc");
    }
}
