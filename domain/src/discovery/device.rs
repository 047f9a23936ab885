//! The description of an HDHomeRun device at `/discover.json`. A gateway that emulates one has it too.

use serde_json::{Map, Value};

use crate::source_url::SourceUrl;

/// Port on which devices describe themselves. They stream on another one.
pub const DESCRIPTION_PORT: u16 = 80;

/// Maximum length of a description, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 64 << 10;

/// Maximum number of tuners that is believed. Devices have two to eight, and software ones a few more.
pub const STATED_TUNERS_MAX: u32 = 64;

const PATH: &str = "/discover.json";

/// Returns the number of tuners in the description of a device. `None` if the document is something else, or names none or
/// more than [`STATED_TUNERS_MAX`].
pub fn stated_tuners(description: &[u8]) -> Option<u32> {
    if description.len() > DESCRIPTION_BYTES_MAX {
        return None;
    }
    let document: Map<String, Value> = serde_json::from_slice(description).ok()?;
    // Any other document of that name may have a number of the same name.
    document.get("DeviceID")?.as_str().filter(|it| !it.trim().is_empty())?;
    let n_tuners = match document.get("TunerCount")? {
        Value::Number(number) => u32::try_from(number.as_u64()?).ok()?,
        Value::String(text) => text.trim().parse().ok()?,
        _ => return None,
    };
    (1..=STATED_TUNERS_MAX).contains(&n_tuners).then_some(n_tuners)
}

/// Returns the addresses at which the device that sends a stream may describe itself, best first: its own port, then `port`.
/// Empty for a stream that is not sent over HTTP. Only an address without encryption leads to the other port, because
/// anybody on the way can answer there.
pub fn description_urls(stream: &SourceUrl, port: u16) -> Vec<SourceUrl> {
    let (Some(authority), Some(host)) = (stream.authority(), stream.host()) else { return Vec::new() };
    if !stream.is_http() {
        return Vec::new();
    }
    let scheme = stream.scheme().to_ascii_lowercase();
    let own = format!("{scheme}://{authority}{PATH}");
    // An IPv6 address loses its brackets in `host`.
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let other = match port {
        DESCRIPTION_PORT => format!("http://{host}{PATH}"),
        port => format!("http://{host}:{port}{PATH}"),
    };
    let is_same = authority == host && port == DESCRIPTION_PORT || authority == format!("{host}:{port}");
    match scheme == "http" && !is_same {
        true => [own, other].map(SourceUrl::new).into(),
        false => vec![SourceUrl::new(own)],
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_description_of_a_device_states_its_tuners_as_a_number_or_as_text() {
        let described =
            |count: Value| json!({ "DeviceID": "1013A1B5", "TunerCount": count, "ModelNumber": "HDHR5" });
        for (document, expected) in [
            (described(json!(1)), Some(1)),
            (described(json!(4)), Some(4)),
            (described(json!("2")), Some(2)),
            (described(json!(" 10 ")), Some(10)),
            (described(json!(64)), Some(64)),
            (described(json!(0)), None),
            (described(json!("0")), None),
            (described(json!(65)), None),
            (described(json!("65")), None),
            (described(json!(-1)), None),
            (described(json!(2.5)), None),
            (described(json!(u64::from(u32::MAX) + 3)), None),
            (described(json!("two")), None),
            (described(json!("")), None),
            (described(json!(true)), None),
            (described(json!([2])), None),
            (described(Value::Null), None),
            (json!({ "TunerCount": 2 }), None),
            (json!({ "DeviceID": "", "TunerCount": 2 }), None),
            (json!({ "DeviceID": 7, "TunerCount": 2 }), None),
            (json!({ "DeviceID": "1013A1B5" }), None),
            (json!([described(json!(2))]), None),
            (json!(2), None),
        ] {
            assert_eq!(stated_tuners(document.to_string().as_bytes()), expected, "{document}");
        }
        for other in
            ["", "<!DOCTYPE html><html><body>TunerCount: 2</body></html>", "{\"DeviceID\":\"1\",", "\u{1}"]
        {
            assert_eq!(stated_tuners(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_description_that_is_too_long_is_not_read() {
        let with_length = |length: usize| {
            let text = json!({ "DeviceID": "1", "TunerCount": 2 }).to_string();
            format!("{text}{}", " ".repeat(length - text.len()))
        };
        assert_eq!(stated_tuners(with_length(DESCRIPTION_BYTES_MAX).as_bytes()), Some(2));
        assert_eq!(stated_tuners(with_length(DESCRIPTION_BYTES_MAX + 1).as_bytes()), None);
    }

    #[test]
    fn a_device_describes_itself_where_it_streams_or_on_the_port_of_descriptions() {
        for (stream, expected) in [
            (
                "http://10.0.0.9:5004/auto/v5",
                &["http://10.0.0.9:5004/discover.json", "http://10.0.0.9/discover.json"][..],
            ),
            (
                "HTTP://tuner.local:5004?x=1#y",
                &["http://tuner.local:5004/discover.json", "http://tuner.local/discover.json"],
            ),
            (
                "http://[fd00::9]:5004/a",
                &["http://[fd00::9]:5004/discover.json", "http://[fd00::9]/discover.json"],
            ),
            ("http://[fd00::9]/a", &["http://[fd00::9]/discover.json"]),
            ("http://10.0.0.9/auto/v5", &["http://10.0.0.9/discover.json"]),
            ("http://10.0.0.9:80/auto/v5", &["http://10.0.0.9:80/discover.json"]),
            ("https://tuner.example:8443/a", &["https://tuner.example:8443/discover.json"]),
            ("udp://@239.0.0.1:1234", &[]),
            ("rtsp://10.0.0.9/a", &[]),
            ("http:///a", &[]),
            ("", &[]),
        ] {
            let urls = description_urls(&SourceUrl::new(stream), DESCRIPTION_PORT);
            assert_eq!(urls.iter().map(SourceUrl::expose).collect::<Vec<_>>(), expected, "{stream}");
        }
        let other = description_urls(&SourceUrl::new("http://10.0.0.9:5004/a"), 8080);
        assert_eq!(other[1].expose(), "http://10.0.0.9:8080/discover.json");
        // A password before the host is in neither.
        for url in description_urls(&SourceUrl::new("http://anna:secret@h:81/x"), DESCRIPTION_PORT) {
            assert!(!url.expose().contains("secret"));
        }
    }
}
