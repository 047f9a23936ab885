//! Templates: texts with placeholders in braces.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::Values;

/// Maximum length of a rendered text, in characters.
const RENDERED_CHARS_MAX: usize = 2_000;

/// Ending of a placeholder for a value in lower case with letters and digits only, for addresses of images.
const NORMALIZED: &str = "_normalize";

/// A text with placeholders such as `{team1}`. Braces around anything else are text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Template {
    parts: Vec<Part>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    /// A placeholder, with braces.
    Placeholder(String),
}

impl Template {
    /// Parses a template. Any text is one.
    pub(super) fn new(text: &str) -> Self {
        let mut parts = Vec::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let behind = &rest[at + 1..];
            let end = behind.find(|it: char| !(it.is_alphanumeric() || it == '_')).unwrap_or(behind.len());
            let is_placeholder = end > 0 && behind[end..].starts_with('}');
            let text_end = if is_placeholder { at } else { at + 1 + end };
            if text_end > 0 {
                parts.push(Part::Text(rest[..text_end].to_owned()));
            }
            rest = &rest[text_end..];
            if is_placeholder {
                parts.push(Part::Placeholder(rest[..end + 2].to_owned()));
                rest = &rest[end + 2..];
            }
        }
        if !rest.is_empty() {
            parts.push(Part::Text(rest.to_owned()));
        }
        Self { parts }
    }

    /// Returns the text with the values in place of their placeholders, at most [`RENDERED_CHARS_MAX`] characters.
    /// Unknown placeholders stay as they are.
    pub(super) fn render(&self, values: &Values) -> String {
        let rendered = self.render_with(values, |value| value);
        rendered.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Returns the text like [`Template::render`], with values encoded for an address.
    pub(super) fn render_url(&self, values: &Values) -> String {
        self.render_with(values, |value| utf8_percent_encode(&value, NON_ALPHANUMERIC).to_string())
    }

    fn render_with(&self, values: &Values, encode: impl Fn(String) -> String) -> String {
        let mut rendered = String::new();
        let mut left = RENDERED_CHARS_MAX;
        for part in &self.parts {
            let value = match part {
                Part::Text(text) => text.clone(),
                Part::Placeholder(placeholder) => {
                    value_of(placeholder, values).map(&encode).unwrap_or_else(|| placeholder.clone())
                }
            };
            let n_before = rendered.len();
            rendered.extend(value.chars().take(left));
            left -= rendered[n_before..].chars().count();
        }
        rendered
    }
}

/// Returns the value of a placeholder with braces.
fn value_of(placeholder: &str, values: &Values) -> Option<String> {
    let name = placeholder.trim_matches(['{', '}']);
    if let Some(value) = values.get(name) {
        return Some(value.clone());
    }
    let value = values.get(name.strip_suffix(NORMALIZED)?)?;
    Some(value.chars().filter(|it| it.is_alphanumeric()).flat_map(char::to_lowercase).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values() -> Values {
        [("team1", "St. Louis"), ("team2", "")].map(|(key, value)| (key.to_owned(), value.to_owned())).into()
    }

    #[test]
    fn placeholders_are_replaced_and_other_braces_are_text() {
        for (template, expected) in [
            ("{team1} event", "St. Louis event"),
            ("{team1}{team2}", "St. Louis"),
            ("{team1_normalize}", "stlouis"),
            ("{other} {{team1}} { } {", "{other} {St. Louis} { } {"),
            ("{team1", "{team1"),
            ("a  b\n{team2} c", "a b c"),
            ("{é}", "{é}"),
            ("", ""),
        ] {
            assert_eq!(Template::new(template).render(&values()), expected, "{template:?}");
        }
    }

    #[test]
    fn values_in_addresses_are_encoded() {
        let address = Template::new("http://h/{team1}/{team1_normalize}.png");
        assert_eq!(address.render_url(&values()), "http://h/St%2E%20Louis/stlouis.png");
    }

    #[test]
    fn a_rendered_text_is_bounded() {
        let long = Values::from([("a".to_owned(), "ä".repeat(8_000))]);
        assert_eq!(Template::new(&"{a}".repeat(300)).render(&long).chars().count(), RENDERED_CHARS_MAX);
    }
}
