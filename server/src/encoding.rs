//! Compressed answers: whether a client accepts them.

use http::HeaderMap;
use http::header::ACCEPT_ENCODING;

/// Returns true if the client accepts an answer that is compressed with gzip.
pub fn accepts_gzip(headers: &HeaderMap) -> bool {
    accepts(headers, &["gzip", "x-gzip"])
}

/// Returns true if the client accepts an answer that is compressed with brotli.
pub fn accepts_brotli(headers: &HeaderMap) -> bool {
    accepts(headers, &["br"])
}

/// Returns true if the client accepts a coding with one of these names.
fn accepts(headers: &HeaderMap, names: &[&str]) -> bool {
    let lines = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|it| it.to_str().ok());
    let mut wildcard = false;
    for coding in lines.flat_map(|it| it.split(',')) {
        let mut parts = coding.split(';').map(str::trim);
        let name = parts.next().unwrap_or_default().to_ascii_lowercase();
        let weight = parts.find_map(|it| it.strip_prefix("q=").or(it.strip_prefix("Q=")));
        let is_accepted = weight.is_none_or(|it| it.trim().parse::<f32>().is_ok_and(|it| it > 0.0));
        if names.contains(&&*name) {
            return is_accepted;
        }
        if name == "*" {
            wildcard = is_accepted;
        }
    }
    wildcard
}

#[cfg(test)]
mod tests {
    use http::header::HeaderValue;

    use super::*;

    #[test]
    fn gzip_is_used_only_if_the_client_accepts_it() {
        for (sent, expected) in [
            ("gzip", true),
            ("GZIP", true),
            ("deflate, gzip;q=0.5", true),
            ("br;q=1.0, x-gzip", true),
            ("*", true),
            ("*, gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("gzip;q=x", false),
            ("identity", false),
            ("", false),
            ("gzipped", false),
        ] {
            let headers = HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static(sent))]);
            assert_eq!(accepts_gzip(&headers), expected, "{sent}");
        }
        assert!(!accepts_gzip(&HeaderMap::new()));
    }
}
