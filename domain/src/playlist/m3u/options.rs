//! Options of players in playlists: after a `|` behind an address, and in the lines of VLC and Kodi.
//!
//! No document describes the form after `|`. Kodi writes `name=value&name=value` with percent-encoded values, apps for
//! televisions write quotes around values and a `|` before each option, and people forget to encode.
//!
//! ```text
//!   http://h/1|User-Agent=Box&Referer=http%3A%2F%2Fsite%2F
//!   http://h/1|User-Agent="Box"|Origin="http://site"
//!   http://h/1%7CUser-Agent%3DBox
//! ```

use std::borrow::Cow;

use self::OptionMeaning::{Header, HeaderLines, HeaderList, Player};
use super::text;

/// The meaning of an option, whatever its spelling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OptionMeaning {
    /// The request header of this name.
    Header(&'static str),
    /// Several headers, `Name: value` in lines.
    HeaderLines,
    /// Several headers, `Name=value&Name=value`.
    HeaderList,
    /// A setting of a player, or a key: only a player can use it.
    Player,
}

/// Spellings of options, without case, hyphens and underscores, and without the prefix `http-` of VLC.
const KNOWN: [(&str, OptionMeaning); 42] = [
    ("useragent", Header("User-Agent")),
    ("ua", Header("User-Agent")),
    ("referer", Header("Referer")),
    ("referrer", Header("Referer")),
    ("origin", Header("Origin")),
    ("cookie", Header("Cookie")),
    ("cookies", Header("Cookie")),
    ("authorization", Header("Authorization")),
    ("accept", Header("Accept")),
    ("acceptlanguage", Header("Accept-Language")),
    ("xforwardedfor", Header("X-Forwarded-For")),
    ("xrequestedwith", Header("X-Requested-With")),
    ("headers", HeaderLines),
    ("header", HeaderLines),
    ("streamheaders", HeaderList),
    ("manifestheaders", HeaderList),
    ("commonheaders", HeaderList),
    // Settings of Kodi's transfers.
    ("acceptcharset", Player),
    ("acceptencoding", Player),
    ("activeremote", Player),
    ("auth", Player),
    ("connectiontimeout", Player),
    ("customrequest", Player),
    ("encoding", Player),
    ("failonerror", Player),
    ("noshout", Player),
    ("postdata", Player),
    ("proxy", Player),
    ("redirectlimit", Player),
    ("seekable", Player),
    ("sslcipherlist", Player),
    ("verifypeer", Player),
    // Keys and manifests, as apps for televisions write them.
    ("drmscheme", Player),
    ("drmlicense", Player),
    ("drmlicenseurl", Player),
    ("drmlegacy", Player),
    ("drm", Player),
    ("licensetype", Player),
    ("licensekey", Player),
    ("licenseurl", Player),
    ("manifesttype", Player),
    ("mimetype", Player),
];

/// Returns the meaning of an option; `None` for an unknown name, which after `|` is that of a header.
pub(crate) fn meaning(name: &str) -> Option<OptionMeaning> {
    const PREFIXES: [&str; 2] = ["inputstream.adaptive.", "inputstream."];
    let name = name.trim().trim_start_matches(['-', '!']);
    let is_player = PREFIXES.iter().any(|it| text::after_prefix(name, it).is_some());
    let name = PREFIXES.iter().find_map(|it| text::after_prefix(name, it)).unwrap_or(name);
    let name = text::after_prefix(name, "http-").unwrap_or(name);
    if name.len() > 40 {
        return is_player.then_some(Player);
    }
    let plain: String =
        name.chars().filter(|it| !matches!(it, '-' | '_')).map(|it| it.to_ascii_lowercase()).collect();
    let known = KNOWN.iter().find(|it| it.0 == plain).map(|it| it.1);
    known.or(is_player.then_some(Player))
}

/// Maximum number of options that are read of one list, which bounds the time for a hostile one.
const LIST_OPTIONS_MAX: usize = 64;
/// Number of bytes that are decoded to see whether an option begins.
const BEGINNING_BYTES: usize = 96;

/// Splits the options off an address. Without options, the second text is empty.
pub(crate) fn split_address(line: &str) -> (&str, Cow<'_, str>) {
    let first = line.find('|');
    let has_equals = first.is_some_and(|at| line[at..].contains('='));
    for (at, _) in line.match_indices('|') {
        let list = &line[at + 1..];
        let list = if has_equals || begins_option(list) {
            Cow::Borrowed(list)
        } else if begins_encoded_option(list) {
            text::percent_decode(list).into()
        } else {
            continue;
        };
        // Some apps want a question mark before the pipe.
        let address = line[..at].trim_end();
        return (address.strip_suffix('?').unwrap_or(address), list);
    }
    // A pipe that is encoded as well is one only if a known option follows.
    for (at, _) in line.match_indices('%') {
        if text::after_prefix(&line[at..], "%7C").is_some() && begins_encoded_option(&line[at + 3..]) {
            return (line[..at].trim_end(), text::percent_decode(&line[at + 3..]).into());
        }
    }
    (line, Cow::Borrowed(""))
}

/// Returns whether an encoded text begins with a known option.
fn begins_encoded_option(text: &str) -> bool {
    let beginning = &text[..text.floor_char_boundary(BEGINNING_BYTES)];
    beginning.contains('%') && begins_option(&text::percent_decode(beginning)) || begins_option(beginning)
}

/// Returns whether a text begins with a known option and its separator.
fn begins_option(text: &str) -> bool {
    name_of(text.trim_start_matches(['"', '\'', ' '])).is_some_and(|(name, _)| meaning(name).is_some())
}

/// Calls `take` with name and decoded value of each option of a list, in the order found. Linear time.
pub(crate) fn for_each_option(list: &str, mut take: impl FnMut(&str, String)) {
    let mut rest = text::unquote(list.trim());
    for _ in 0..LIST_OPTIONS_MAX {
        rest = rest.trim_start_matches(|it: char| matches!(it, '|' | '&') || it.is_whitespace());
        // `&amp;`: the list was escaped as for XML.
        rest = text::after_prefix(rest, "amp;").unwrap_or(rest);
        if rest.is_empty() {
            return;
        }
        let Some((name, value)) = name_of(rest) else {
            // A word without a value.
            rest = &rest[rest.find(['|', '&']).unwrap_or(rest.len())..];
            continue;
        };
        let (value, behind) = value_of(value);
        let name = text::percent_decode(name);
        let name = name.trim().trim_start_matches(['!', '-']);
        take(name, decoded(value, meaning(name) == Some(Header("User-Agent"))));
        rest = behind;
    }
}

/// Returns the name at the beginning of an option, and the text of its value. A colon separates known names as well.
fn name_of(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|it: char| !is_name_char(it))?;
    let (name, behind) = text.split_at(end);
    let behind = behind.trim_start();
    if name.is_empty() {
        return None;
    }
    match behind.strip_prefix('=') {
        Some(value) => Some((name, value)),
        None if meaning(name).is_some() => Some((name, behind.strip_prefix(':')?)),
        None => None,
    }
}

fn is_name_char(it: char) -> bool {
    it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.' | '!' | '%')
}

/// Splits the value of an option from the next one.
fn value_of(text: &str) -> (&str, &str) {
    let trimmed = text.trim_start();
    for quote in ['"', '\''] {
        let Some(inside) = trimmed.strip_prefix(quote) else { continue };
        // A quote inside a value does not end it.
        let ends = inside.match_indices(quote).map(|it| it.0);
        let is_end = |at: &usize| {
            let behind = inside[at + 1..].trim_start();
            behind.is_empty() || behind.starts_with(['|', '&'])
        };
        if let Some(at) = ends.into_iter().find(is_end) {
            return (&inside[..at], &inside[at + 1..]);
        }
    }
    // Searched once, because a text can have a separator at every second byte.
    let query = query_start(text);
    let mut separators = text.match_indices(['|', '&']);
    let end = separators.find(|(at, separator)| {
        let in_query = *separator == "&" && query.is_some_and(|it| it <= *at);
        starts_next(in_query, separator, &text[at + 1..])
    });
    let (value, behind) = text.split_at(end.map_or(text.len(), |it| it.0));
    (value.trim(), behind)
}

/// Returns where a text begins to be an address with a query: behind both signs of one.
fn query_start(text: &str) -> Option<usize> {
    Some((text.find("://")? + 3).max(text.find('?')? + 1))
}

/// Returns whether a separator begins the next option. In an address with a query that was not encoded, a `&` separates its
/// parameters, unless a known option follows.
fn starts_next(in_query: bool, separator: &str, behind: &str) -> bool {
    let behind = behind.trim_start();
    let behind = text::after_prefix(behind, "amp;").unwrap_or(behind);
    if behind.is_empty() || behind.starts_with(['|', '&']) {
        return true;
    }
    match name_of(behind) {
        Some((name, _)) if in_query => meaning(name).is_some() || is_header_name(name),
        Some(_) => true,
        // A word alone, as in `a=1&flag&b=2`. Other text belongs to the value, as in a user agent.
        None => {
            let end = behind.find(|it| !is_name_char(it)).unwrap_or(behind.len());
            separator == "&" && !in_query && (end == behind.len() || behind[end..].starts_with(['|', '&']))
        }
    }
}

/// Returns whether a name is written like that of a header, which parameters of an address are not: `X-Own`.
fn is_header_name(name: &str) -> bool {
    name.contains('-') && name.starts_with(|it: char| it.is_ascii_uppercase())
}

/// Decodes a value: percent signs, and quotes that were encoded as well. In a user agent, a plus may stand for each space; in
/// tokens it stands for itself.
fn decoded(value: &str, is_agent: bool) -> String {
    let value = value.trim();
    // A quote that nobody closed.
    let value = value.strip_prefix(['"', '\'']).unwrap_or(value);
    let has_plus = is_agent && value.contains('%') && !value.contains(' ') && !value.contains("%20");
    let spaced: Cow<'_, str> = if has_plus { value.replace('+', " ").into() } else { value.into() };
    let decoded = text::percent_decode(&spaced);
    text::unquote(decoded.trim()).to_owned()
}

/// Calls `take` with name and value of each line `Name: value`. Line ends may be written as `\r\n`.
pub(crate) fn for_each_header_line(lines: &str, mut take: impl FnMut(&str, &str)) {
    let lines = lines.replace("\\r", "\n").replace("\\n", "\n");
    for line in lines.split(['\r', '\n']) {
        if let Some((name, value)) = line.split_once(':') {
            take(name.trim(), value.trim());
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Checks the address of a line and its options, written as `name=value;`.
    #[track_caller]
    fn check(line: &str, address: &str, expected: &str) {
        let (found, list) = split_address(line);
        let mut options = String::new();
        for_each_option(&list, |name, value| options.push_str(&format!("{name}={value};")));
        assert_eq!((found, options.as_str()), (address, expected), "{line}");
    }

    #[test]
    fn options_are_read_however_they_are_separated_and_quoted() {
        let all = "User-Agent=Box/1.0;Referer=https://s.example/w;Origin=https://s.example;";
        for options in [
            "User-Agent=Box/1.0&Referer=https://s.example/w&Origin=https://s.example",
            "User-Agent=Box%2F1.0&Referer=https%3A%2F%2Fs.example%2Fw&Origin=https%3A%2F%2Fs.example",
            "User-Agent=Box/1.0|Referer=https://s.example/w|Origin=https://s.example",
            "User-Agent=Box/1.0|Referer=https://s.example/w&Origin=https://s.example",
            "User-Agent=\"Box/1.0\"&Referer=\"https://s.example/w\"&Origin=\"https://s.example\"",
            "User-Agent=\"Box/1.0\"|Referer='https://s.example/w'|Origin=\"https://s.example\"",
            "User-Agent=%22Box%2F1.0%22&Referer=%22https://s.example/w%22&Origin=https://s.example",
            "\"User-Agent=Box/1.0&Referer=https://s.example/w&Origin=https://s.example\"",
            " User-Agent = Box/1.0 & Referer = https://s.example/w | Origin = https://s.example ",
            "|User-Agent=Box/1.0&&Referer=https://s.example/w|&Origin=https://s.example|",
            "User-Agent=Box/1.0&amp;Referer=https://s.example/w&amp;Origin=https://s.example",
            "User-Agent: Box/1.0|Referer: https://s.example/w|Origin: https://s.example",
            "User-Agent%3DBox%2F1.0%26Referer%3Dhttps%3A%2F%2Fs.example%2Fw%26Origin%3Dhttps%3A%2F%2Fs.example",
        ] {
            check(&format!("http://h/1|{options}"), "http://h/1", all);
            check(&format!("http://h/1?|{options}"), "http://h/1", all);
            check(&format!("http://h/1?a=b |{options}"), "http://h/1?a=b", all);
        }
        let encoded = "http://h/1%7CUser-Agent%3DBox%2F1.0%7CReferer%3Dhttps%3A%2F%2Fs.example%2Fw";
        check(encoded, "http://h/1", "User-Agent=Box/1.0;Referer=https://s.example/w;");
        check("http://h/1%7cuser-agent=Box", "http://h/1", "user-agent=Box;");
    }

    #[test]
    fn values_keep_what_only_looks_like_a_separator() {
        for (options, expected) in [
            ("Referer=http://r/?a=1&b=2&User-Agent=X", "Referer=http://r/?a=1&b=2;User-Agent=X;"),
            ("User-Agent=A (b|c; d&e) F|Origin=o", "User-Agent=A (b|c; d&e) F;Origin=o;"),
            ("User-Agent=\"a|b=c\"&X-A=1", "User-Agent=a|b=c;X-A=1;"),
            ("User-Agent=\"Box \"5\" x\"&X-A=1", "User-Agent=Box \"5\" x;X-A=1;"),
            ("User-Agent=\"Box&X-A=1", "User-Agent=Box;X-A=1;"),
            ("X-A=100%&X-B=1+1&X-C=a%2Fb+c", "X-A=100%;X-B=1+1;X-C=a/b+c;"),
            ("User-Agent=Box%2F1.0+(Linux)", "User-Agent=Box/1.0 (Linux);"),
            ("Cookie=a=b; c=d&X-A=", "Cookie=a=b; c=d;X-A=;"),
            ("seekable=0&flag&X-A=1", "seekable=0;X-A=1;"),
            ("!X-A=1&-X-B=2", "X-A=1;X-B=2;"),
            ("drmScheme=clearkey&drmLicense=00:11", "drmScheme=clearkey;drmLicense=00:11;"),
            ("Referer=http://r/?a=1&amp;b=2&amp;User-Agent=X", "Referer=http://r/?a=1&amp;b=2;User-Agent=X;"),
            ("=&==|", ""),
        ] {
            check(&format!("http://h/1|{options}"), "http://h/1", expected);
        }
        for address in ["http://h/1", "http://h/a|b", "http://h/a%7Cb", "http://h/?x=a%7Cb%3Dc", "http://h/|"]
        {
            check(address, address, "");
        }
    }

    #[test]
    fn a_long_list_of_separators_takes_linear_time() {
        // With quadratic time, each of them takes more than the longest time of a test.
        for (beginning, part) in [("", "&("), ("http://r/", "&("), ("http://r/?", "&a"), ("?", "&a=1 (|(")] {
            let value = format!("{beginning}{}", part.repeat(1 << 18));
            let mut n_bytes = 0;
            for_each_option(&format!("Referer={value}"), |_, value| n_bytes += value.len());
            assert!(n_bytes > 0, "{part}");
        }
    }

    #[test]
    fn spellings_of_one_option_mean_the_same() {
        for (names, expected) in [
            (
                &["User-Agent", "user_agent", "http-user-agent", "USERAGENT", "-user-agent"][..],
                Some(Header("User-Agent")),
            ),
            (&["Referer", "referrer", "http-referrer", "http-referer"], Some(Header("Referer"))),
            (&["http-cookie", "cookies", "Cookie"], Some(Header("Cookie"))),
            (&["headers", "-headers"], Some(HeaderLines)),
            (
                &["inputstream.adaptive.stream_headers", "inputstream.adaptive.manifest_headers"],
                Some(HeaderList),
            ),
            (
                &["inputstream.adaptive.license_key", "inputstream.adaptive.x", "drmLicense", "drm-scheme"],
                Some(Player),
            ),
            // These are for a licence server, which the gateway never asks.
            (&["inputstream.adaptive.license_headers"], Some(Player)),
            (&["X-Own", "a", ""], None),
        ] {
            for name in names {
                assert_eq!(meaning(name), expected, "{name}");
            }
        }
    }

    #[test]
    fn lines_of_headers_are_separated_however_they_end() {
        for lines in [
            "Referer: http://r/\r\nX-A: 1",
            "Referer: http://r/\\r\\nX-A: 1\\r\\n",
            "Referer:http://r/\nX-A:1",
        ] {
            let mut found = Vec::new();
            for_each_header_line(lines, |name, value| found.push(format!("{name}={value}")));
            assert_eq!(found, ["Referer=http://r/", "X-A=1"], "{lines}");
        }
    }

    proptest! {
        #[test]
        fn encoded_options_are_read_as_they_were_written(
            options in prop::collection::vec(("X-[A-Z][a-z]{1,6}", "[a-zA-Z0-9 /:?&|=\";(){}%+é-]{1,20}[a-z]"), 1..5),
            separator in "[&|]",
        ) {
            let encode = |it: &str| percent_encoding::utf8_percent_encode(it, percent_encoding::NON_ALPHANUMERIC).to_string();
            let list: Vec<_> = options.iter().map(|it| format!("{}={}", it.0, encode(&it.1))).collect();
            let line = format!("http://h/1|{}", list.join(&separator));
            let (address, list) = split_address(&line);
            prop_assert_eq!(address, "http://h/1");
            let mut found = Vec::new();
            for_each_option(&list, |name, value| found.push((name.to_owned(), value)));
            let expected: Vec<_> =
                options.iter().map(|it| (it.0.clone(), it.1.trim().to_owned())).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn any_line_is_read(line in "\\PC{0,40}|[a-z|&=\"'%7C3D: ]{0,60}") {
            let (address, list) = split_address(&line);
            prop_assert!(line.starts_with(address));
            let mut n = 0;
            for_each_option(&list, |_, _| n += 1);
            prop_assert!(n <= line.len());
        }
    }
}
