//! Addresses without the parts that change from day to day.

use super::panel_id::{PanelContent, panel_id};
use crate::source_url::SourceUrl;

/// Names of parameters whose values are credentials, signatures or times.
const TOKEN_PARAMETERS: &[&str] = &[
    "accesstoken",
    "apikey",
    "auth",
    "authkey",
    "authorization",
    "authtoken",
    "exp",
    "expire",
    "expires",
    "expiry",
    "hash",
    "hdnea",
    "hdntl",
    "hdnts",
    "hmac",
    "jwt",
    "key",
    "keypairid",
    "login",
    "mac",
    "md5",
    "nonce",
    "pass",
    "passwd",
    "password",
    "playtoken",
    "policy",
    "pwd",
    "sess",
    "session",
    "sessionid",
    "sig",
    "sign",
    "signature",
    "st",
    "tk",
    "token",
    "user",
    "username",
    "utoken",
    "validfrom",
    "validto",
    "vt",
    "wmsauthsign",
];
/// The least length of a random text, in characters.
const RANDOM_CHARS_MIN: usize = 16;
/// The number of digits of a time in seconds since 1970. Shorter texts are not token-like.
const TIME_CHARS_MIN: usize = 10;
/// The least number of changes between letters and digits of a random text. Words with a number have one or two.
const RANDOM_CHANGES_MIN: usize = 3;
/// The range of numbers that are times in seconds since 1970: from 2014 to 2039.
const SECONDS: std::ops::Range<u64> = 1_400_000_000..2_200_000_000;

/// How much of an address is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BareForm {
    /// Tokens in the query, and the login of the account.
    WithPath,
    /// Random parts of the path, too. They may be tokens or ids.
    WithoutRandomParts,
}

/// The result of leaving out parts of an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BareAddress {
    /// A part was left out only because it looks random, so it may be the id of the stream.
    pub(super) is_guess: bool,
}

/// Writes an address without its token-like parts. The scheme and the usual port are left out, because providers change
/// them without changing the stream. Returns `None` if nothing is left that could identify a stream.
pub(super) fn write_bare(
    url: &SourceUrl,
    logins: &[String],
    form: BareForm,
    to: &mut String,
) -> Option<BareAddress> {
    to.clear();
    let mut is_guess = false;
    let authority = url.authority().filter(|it| !it.is_empty())?;
    let (url, program) = url.split_program();
    to.push_str(without_usual_port(authority));
    to.make_ascii_lowercase();
    let host_bytes = to.len();
    if let Some((kind, id)) = panel_id(&url) {
        *to += match kind {
            PanelContent::Live => "/live/",
            PanelContent::Movie => "/movie/",
            PanelContent::Series => "/series/",
        };
        *to += id;
    } else {
        let rest = url.expose().split_once("://").map_or("", |it| it.1);
        let rest = &rest[..rest.find('#').unwrap_or(rest.len())];
        let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
        for part in path.split('/').skip(1) {
            let is_known = part.is_empty() || logins.iter().any(|it| it == part) || has_token_parameter(part);
            let is_random = !is_known && form == BareForm::WithoutRandomParts && is_token(stem(part));
            is_guess |= is_random;
            // What is left out still has its place, so that shorter addresses do not become equal.
            let is_left = !is_known && !is_random;
            *to += if is_left { "/" } else { "/*" };
            *to += if is_left { part } else { "" };
        }
        for parameter in query.split('&').filter(|it| !it.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            if is_token_parameter(name) || logins.iter().any(|it| it == value) {
                continue;
            }
            if is_token(value) {
                // Digits of a time are not an id.
                is_guess |= value.bytes().any(|it| !it.is_ascii_digit());
                continue;
            }
            to.push('&');
            *to += parameter;
        }
    }
    if let Some(program) = program {
        *to += &format!("#{program}");
    }
    // A host alone, or only gaps, identify nothing.
    let is_left = to.bytes().skip(host_bytes).any(|it| it.is_ascii_alphanumeric() || !it.is_ascii());
    is_left.then_some(BareAddress { is_guess })
}

/// Returns whether the path of an address may have a random part. Only then do the two forms differ.
pub(super) fn may_have_random_parts(url: &SourceUrl) -> bool {
    url.path().split('/').any(|it| stem(it).len() >= TIME_CHARS_MIN) && panel_id(url).is_none()
}

/// Returns the host, and the port unless it is the usual one.
pub(super) fn without_usual_port(authority: &str) -> &str {
    let usual = [":80", ":443"].iter().find_map(|it| authority.strip_suffix(it));
    usual.unwrap_or(authority)
}

/// Returns a file name without its extension.
fn stem(part: &str) -> &str {
    match part.rsplit_once('.') {
        Some((stem, extension)) if extension.len() <= 4 => stem,
        _ => part,
    }
}

/// Returns whether a part of a path contains a token with its name, as in `hdnts=exp=1~acl=*~hmac=ab`.
fn has_token_parameter(part: &str) -> bool {
    let mut parameters = part.split(['~', ';', ',']).filter_map(|it| it.split_once('='));
    parameters.any(|(name, _)| is_token_parameter(name))
}

fn is_token_parameter(name: &str) -> bool {
    let plain = name.bytes().filter(u8::is_ascii_alphanumeric).map(|it| it.to_ascii_lowercase());
    let plain: Vec<u8> = plain.take(32).collect();
    plain.starts_with(b"xamz") || TOKEN_PARAMETERS.iter().any(|it| it.as_bytes() == plain)
}

/// Returns whether a text looks like a token, a signature or a time, and not like a name or a number of a channel.
fn is_token(text: &str) -> bool {
    let bytes = text.as_bytes();
    let is_digits = !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit);
    if is_digits {
        let seconds = match bytes.len() {
            10 => text.parse::<u64>().ok(),
            13 => text[..10].parse::<u64>().ok(),
            _ => None,
        };
        return seconds.is_some_and(|it| SECONDS.contains(&it));
    }
    let is_hex = |it: &u8| it.is_ascii_hexdigit() || *it == b'-';
    if bytes.len() >= RANDOM_CHARS_MIN && bytes.iter().all(is_hex) {
        return bytes.iter().any(u8::is_ascii_digit);
    }
    bytes.split(|it| !it.is_ascii_alphanumeric()).any(is_random)
}

/// Returns whether a row of letters and digits is random.
fn is_random(text: &[u8]) -> bool {
    if text.len() < RANDOM_CHARS_MIN {
        return false;
    }
    let changes =
        |is_one: fn(&u8) -> bool| text.windows(2).filter(|it| is_one(&it[0]) != is_one(&it[1])).count();
    changes(u8::is_ascii_digit) >= RANDOM_CHANGES_MIN
        || changes(u8::is_ascii_uppercase) >= 2 * RANDOM_CHANGES_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bare(url: &str, form: BareForm) -> Option<String> {
        let mut text = String::new();
        let logins = ["anna".to_owned(), "hunter2".to_owned()];
        write_bare(&SourceUrl::new(url), &logins, form, &mut text).map(|_| text)
    }

    #[test]
    fn an_address_loses_its_token_like_parts_and_keeps_what_names_the_stream() {
        for (url, expected) in [
            ("http://H.example:80/news.m3u8", Some("h.example/news.m3u8")),
            ("https://h.example/news.m3u8?token=abc", Some("h.example/news.m3u8")),
            ("http://h:8080/a/1.ts?id=7&Expires=1&sid=3", Some("h:8080/a/1.ts&id=7&sid=3")),
            ("http://h/a/1.ts?hdnts=exp=1~acl=*~hmac=ab", Some("h/a/1.ts")),
            ("http://h/a/1.ts?x=9f86d081884c7d659a2feaa0c55ad015", Some("h/a/1.ts")),
            ("http://h/a/1.ts?X-Amz-Date=1&t=1764470400", Some("h/a/1.ts")),
            ("http://h/hdnts=exp=1~acl=/*~hmac=ab/ch1/news.ts", Some("h/*/*/ch1/news.ts")),
            ("http://h/token=abc,1/ch1;x=2/news.ts", Some("h/*/ch1;x=2/news.ts")),
            ("http://u:p@h/anna/hunter2/news.ts", Some("h/*/*/news.ts")),
            ("http://h/live/other/login/7.ts", Some("h/live/7")),
            ("http://h/live/other/login/7.ts#program=2", Some("h/live/7#2")),
            ("http://h/1764470400/news.ts", Some("h/1764470400/news.ts")),
            ("udp://@239.0.0.1:1234", None),
            ("http://h/", None),
            ("http://h?token=abc", None),
            ("file:///a/b.ts", None),
            ("nothing", None),
        ] {
            assert_eq!(bare(url, BareForm::WithPath).as_deref(), expected, "{url}");
        }
        for (url, expected) in [
            ("http://h/eyJhbGciOiJIUzI1NiJ9/news.ts", Some("h/*/news.ts")),
            ("http://h/550e8400-e29b-41d4-a716-446655440000/master.m3u8", Some("h/*/master.m3u8")),
            ("http://h/9f86d081884c7d659a2f/1764470400/news.ts", Some("h/*/*/news.ts")),
            ("http://h/bbc-one-hd-east-1080p50/index.m3u8", Some("h/bbc-one-hd-east-1080p50/index.m3u8")),
            ("http://h/40038191234567/index.m3u8", Some("h/40038191234567/index.m3u8")),
            ("http://h/AAAA1111/5/index.m3u8", Some("h/AAAA1111/5/index.m3u8")),
        ] {
            assert_eq!(bare(url, BareForm::WithoutRandomParts).as_deref(), expected, "{url}");
        }
    }
}
