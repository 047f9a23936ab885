//! Finds the searchable texts in the inside of a programme element.

use std::borrow::Cow;

use super::query::GuideField;

/// Calls `visit` with each text of a searchable field, in the order of the elements.
///
/// The inside is as `domain::guide` writes it: these elements have text only, and `<` and `>` occur only as the
/// delimiters of tags. Anything else gives other texts, and no error.
pub(super) fn for_each_text<'a>(inner: &'a str, mut visit: impl FnMut(GuideField, Cow<'a, str>)) {
    let mut rest = inner;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        let Some(field) = field_of(rest.as_bytes()) else { continue };
        let Some((tag, after)) = rest.split_once('>') else { return };
        if tag.ends_with('/') {
            continue;
        }
        let end = after.find('<').unwrap_or(after.len());
        visit(field, unescaped(&after[..end]));
        rest = &after[end..];
    }
}

/// Returns the field of a tag, without its `<`.
fn field_of(tag: &[u8]) -> Option<GuideField> {
    let (field, name): (_, &[u8]) = match tag.first()? {
        b't' => (GuideField::Title, b"title"),
        b's' => (GuideField::SubTitle, b"sub-title"),
        b'd' => (GuideField::Description, b"desc"),
        b'c' => (GuideField::Category, b"category"),
        _ => return None,
    };
    let after = tag.strip_prefix(name)?.first()?;
    matches!(after, b'>' | b' ' | b'/').then_some(field)
}

/// Replaces the references to characters. Unknown ones stay.
fn unescaped(text: &str) -> Cow<'_, str> {
    if !text.contains('&') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('&') {
        out.push_str(before);
        let reference = after.split_once(';').and_then(|(name, after)| Some((character(name)?, after)));
        rest = match reference {
            Some((it, after)) => {
                out.push(it);
                after
            }
            None => {
                out.push('&');
                after
            }
        };
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn character(name: &str) -> Option<char> {
    match name {
        "amp" => Some('&'),
        "lt" => Some('<'),
        "gt" => Some('>'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            code.ok().and_then(char::from_u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_the_searchable_fields_are_found() {
        let inner = "<title lang=\"en\">Tom &amp; Jerry</title><title>Two</title><sub-title>&#65;&#x42;</sub-title>\
                     <desc>a &lt;b&gt; &unknown; &quot;c&apos;&#xD800; & d</desc><credits><director>No</director></credits>\
                     <date>2020</date><category/><category>News</category><titles>No</titles><desc lang=\"de\"/>";
        let mut found = Vec::new();
        for_each_text(inner, |field, text| found.push((field, text.into_owned())));
        let expected = [
            (GuideField::Title, "Tom & Jerry"),
            (GuideField::Title, "Two"),
            (GuideField::SubTitle, "AB"),
            (GuideField::Description, "a <b> &unknown; \"c'&#xD800; & d"),
            (GuideField::Category, "News"),
        ];
        assert_eq!(found, expected.map(|(field, text)| (field, text.to_owned())));
    }

    #[test]
    fn texts_other_than_xml_give_no_error() {
        for inner in
            ["", "<", "<title", "<title>", "<title>a", "<title/", "title>a</title>", "<desc >&", "<é>"]
        {
            for_each_text(inner, |_, _| {});
        }
    }
}
