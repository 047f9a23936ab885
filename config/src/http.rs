//! Settings of the HTTP interface.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize, Serializer};
use url::{Origin, Url};

use super::values::texts;

/// Maximum number of origins.
const ORIGINS_MAX: usize = 100;

/// How pages of other origins may use the gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Http {
    /// Origins whose pages may read every answer, if they send credentials in a header or in the address.
    pub allowed_origins: AllowedOrigins,
}

/// A list of origins: scheme, host and port as browsers send them in the header `Origin`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedOrigins(Vec<String>);

impl AllowedOrigins {
    /// Returns whether the list contains the value of a header `Origin`.
    pub fn contains(&self, origin: &str) -> bool {
        self.0.iter().any(|it| it == origin)
    }

    /// Adds the origins of a comma-separated text.
    fn add(&mut self, texts: &str) -> Result<(), String> {
        for text in texts.split(',').map(str::trim).filter(|it| !it.is_empty()) {
            let origin = parsed(text).ok_or_else(|| {
                format!("`{text}` is not an origin; expected for example https://player.example or http://nas:8081")
            })?;
            if !self.contains(&origin) {
                self.0.push(origin);
            }
        }
        if self.0.len() > ORIGINS_MAX {
            return Err(format!("at most {ORIGINS_MAX} origins are allowed"));
        }
        Ok(())
    }
}

/// Returns an origin as browsers write it: in lower case, without the usual port of its scheme.
fn parsed(text: &str) -> Option<String> {
    let url = Url::parse(text).ok().filter(|it| matches!(it.scheme(), "http" | "https"))?;
    let is_bare = matches!(url.path(), "" | "/")
        && url.query().is_none()
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    match url.origin() {
        origin @ Origin::Tuple(..) if is_bare => Some(origin.ascii_serialization()),
        _ => None,
    }
}

impl FromStr for AllowedOrigins {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut origins = Self::default();
        origins.add(text)?;
        Ok(origins)
    }
}

impl fmt::Display for AllowedOrigins {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(", "))
    }
}

impl Serialize for AllowedOrigins {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AllowedOrigins {
    /// Accepts a list of texts, or one comma-separated text.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut origins = Self::default();
        texts(deserializer, "a list of origins")?
            .iter()
            .try_for_each(|it| origins.add(it))
            .map_err(Error::custom)?;
        Ok(origins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_as_browsers_send_them() {
        let origins: AllowedOrigins =
            "https://Player.example/, http://nas:8081,https://tv.example:443".parse().unwrap();
        for (origin, expected) in [
            ("https://player.example", true),
            ("http://nas:8081", true),
            ("https://tv.example", true),
            ("http://player.example", false),
            ("https://player.example.evil", false),
            ("http://nas", false),
            ("null", false),
            ("", false),
        ] {
            assert_eq!(origins.contains(origin), expected, "{origin}");
        }
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "*",
            "any",
            "null",
            "player.example",
            "https://a.example/app",
            "ftp://a",
            "https://u@a",
            "file:///a",
        ] {
            let error = text.parse::<AllowedOrigins>().unwrap_err();
            assert!(error.contains(text) && error.contains("https://player.example"), "{text}: {error}");
        }
    }
}
