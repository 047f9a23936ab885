//! The marks of adult content in playlists.
//!
//! The format has none, so generators and players write their own: flags of generators that convert panels, of apps for
//! televisions, and of F-Player, and the code of Smart IPTV that opens a locked channel. The table of
//! [`attributes`](super::attributes) has their names.

use super::attributes::{AttributeMeaning, meaning_of};
use crate::panel::LooseValue;

/// Returns whether the attributes of an entry mark it as adult content. Their keys are in lower case.
pub fn is_marked(attributes: &[(String, String)]) -> bool {
    attributes.iter().any(|(key, value)| match meaning_of(key) {
        Some(AttributeMeaning::AdultCode) => is_code(value),
        Some(AttributeMeaning::Adult) => LooseValue::Text(value.clone()).is_yes(),
        _ => false,
    })
}

/// Returns whether an attribute with this key, in lower case, can be a mark.
pub(crate) fn is_mark(key: &str) -> bool {
    matches!(meaning_of(key), Some(AttributeMeaning::Adult | AttributeMeaning::AdultCode))
}

/// Returns whether a value is a code. Every number is one except a single zero, which generators write for none.
fn is_code(value: &str) -> bool {
    let code = LooseValue::Text(value.to_owned()).text();
    code.is_some_and(|it| !["0", "-1", "no", "false", "off"].iter().any(|no| it.eq_ignore_ascii_case(no)))
}

#[cfg(test)]
mod tests {
    use crate::playlist::delta::stream_properties;
    use crate::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};

    #[test]
    fn every_mark_of_adult_content_counts_and_its_absence_does_not() {
        for (attributes, is_adult) in [
            (r#" is_adult="1""#, true),
            (r#" IS_ADULT="1""#, true),
            (" is_adult=1", true),
            (r#" is_adult="true""#, true),
            (r#" is-adult="yes""#, true),
            (r#" adult='1'"#, true),
            (r#" tvg-adult="1""#, true),
            (r#" censored="1""#, true),
            (r#" tvg-id="a" group-title="B" is_adult="1" catchup="xc""#, true),
            (r#" is_adult="0" censored="1""#, true),
            (r#",is_adult="1" tvg-id="a""#, true),
            (r#" parent-code="1234""#, true),
            (r#" parent-code="0000""#, true),
            (r#" is_adult="0""#, false),
            (r#" is_adult="""#, false),
            (r#" is_adult="null""#, false),
            (r#" is_adult="None""#, false),
            (r#" is_adult="false""#, false),
            (r#" censored="0""#, false),
            (r#" parent-code="""#, false),
            (r#" parent-code="0""#, false),
            (r#" group-title="Adult" tvg-name="adult""#, false),
            ("", false),
        ] {
            let text = format!("#EXTINF:-1{attributes},One\nhttp://tv.example/1.ts\n");
            let entry =
                parse(text.as_bytes(), PlaylistLimits::default()).0.into_iter().find_map(|it| match it {
                    PlaylistItem::Entry(entry) => Some(entry),
                    _ => None,
                });
            let properties = stream_properties(entry.unwrap());
            assert_eq!((properties.is_adult, properties.name.as_str()), (is_adult, "One"), "{attributes}");
        }
    }
}
