//! The address under which clients reach the gateway, when an admin sets it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use url::Url;

/// Maximum length of a public URL, in bytes.
const BYTES_MAX: usize = 512;

/// An `http` or `https` address with an optional path, without credentials, query and fragment.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicUrl {
    /// Without a slash at the end.
    text: String,
}

/// The reason why a public URL is invalid, worded to follow the name of the setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PublicUrlError {
    #[error("must be an http or https address, such as https://tv.example.com or https://example.com/tv")]
    NotAnAddress,
    #[error("must not contain a user name or a password")]
    Credentials,
    #[error("must not contain a query or a fragment")]
    Query,
    #[error("must have at most {BYTES_MAX} bytes")]
    Long,
}

impl PublicUrl {
    /// Returns the address without a slash at the end.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for PublicUrl {
    type Err = PublicUrlError;

    fn from_str(text: &str) -> Result<Self, PublicUrlError> {
        let text = text.trim();
        if text.len() > BYTES_MAX {
            return Err(PublicUrlError::Long);
        }
        let is_web = |it: &Url| matches!(it.scheme(), "http" | "https") && it.has_host();
        // The parser accepts spaces and backslashes, and guesses what was meant.
        let is_plain = text.bytes().all(|it| it.is_ascii_graphic() && !b"\\\"<>`{}|^".contains(&it));
        let has_scheme = text.split_once("://").is_some_and(|(scheme, rest)| {
            matches!(&*scheme.to_ascii_lowercase(), "http" | "https") && !rest.starts_with('/')
        });
        let url = Url::parse(text).ok().filter(|it| is_web(it) && is_plain && has_scheme);
        let url = url.ok_or(PublicUrlError::NotAnAddress)?;
        // An empty user name is not kept by the parser.
        if !url.username().is_empty() || url.password().is_some() || url.authority().contains('@') {
            return Err(PublicUrlError::Credentials);
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(PublicUrlError::Query);
        }
        Ok(Self { text: url.as_str().trim_end_matches('/').to_owned() })
    }
}

impl fmt::Display for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for PublicUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicUrl({self})")
    }
}

impl Serialize for PublicUrl {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for PublicUrl {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_an_origin_with_an_optional_path() {
        for (text, read) in [
            ("https://tv.example.com", "https://tv.example.com"),
            ("https://tv.example.com/", "https://tv.example.com"),
            (" HTTP://TV.example:80/ ", "http://tv.example"),
            ("https://example.com:8443/tv/home/", "https://example.com:8443/tv/home"),
            ("http://[fd00::5]:9191", "http://[fd00::5]:9191"),
            ("https://b\u{fc}cher.example", "-"),
        ] {
            let found = text.parse::<PublicUrl>();
            match read {
                "-" => assert_eq!(found, Err(PublicUrlError::NotAnAddress), "{text}"),
                read => assert_eq!(found.unwrap().as_str(), read, "{text}"),
            }
        }
    }

    #[test]
    fn an_address_with_other_parts_or_another_scheme_is_refused_with_the_reason() {
        let long = format!("https://tv.example/{}", "a".repeat(BYTES_MAX));
        for (text, error) in [
            ("", PublicUrlError::NotAnAddress),
            ("tv.example.com", PublicUrlError::NotAnAddress),
            ("ftp://tv.example.com", PublicUrlError::NotAnAddress),
            ("javascript:alert(1)", PublicUrlError::NotAnAddress),
            ("http:tv.example", PublicUrlError::NotAnAddress),
            ("http:///tv.example", PublicUrlError::NotAnAddress),
            ("http://", PublicUrlError::NotAnAddress),
            ("http://a b", PublicUrlError::NotAnAddress),
            ("http://a\"b", PublicUrlError::NotAnAddress),
            ("http://a\\b", PublicUrlError::NotAnAddress),
            ("http://a\r\nx: y", PublicUrlError::NotAnAddress),
            ("http://user@tv.example", PublicUrlError::Credentials),
            ("http://:secret@tv.example", PublicUrlError::Credentials),
            ("http://tv.example/?a=b", PublicUrlError::Query),
            ("http://tv.example/#a", PublicUrlError::Query),
            (&long, PublicUrlError::Long),
        ] {
            assert_eq!(text.parse::<PublicUrl>(), Err(error), "{text:.40}");
        }
    }
}
