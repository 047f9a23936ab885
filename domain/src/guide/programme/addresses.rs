//! Replaces addresses in the stored form of a programme.

use memchr::memchr2;

use crate::xml::push_escaped;

/// The target of an address in a programme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    /// An icon of the programme.
    Icon,
    /// Another image: of the programme, of a person or of a rating.
    Image,
    /// A page about the programme or a person, or a review.
    Page,
}

/// Writes the stored form of a programme. `replace` gets each address that can contain credentials, i.e. those with a user
/// or a query, and returns what is written instead; `None` keeps the address.
///
/// Texts that happen to contain an address are kept.
pub fn push_replacing_addresses(
    out: &mut String,
    inner: &str,
    mut replace: impl FnMut(AddressKind, &str) -> Option<String>,
) {
    // Of most programmes.
    if !may_have_credentials(inner) {
        return out.push_str(inner);
    }
    let (mut n_copied, mut are_ratings) = (0, false);
    for (at, _) in inner.match_indices('<') {
        let text = &inner[at..];
        // The DTD has all icons of the programme before the first rating.
        are_ratings |= text.starts_with("<rating") || text.starts_with("<star-rating");
        let Some((kind, begin, length)) = address_at(text) else { continue };
        let kind = if are_ratings && kind == AddressKind::Icon { AddressKind::Image } else { kind };
        let (begin, end) = (at + begin, at + begin + length);
        let written = &inner[begin..end];
        if !may_have_credentials(written) {
            continue;
        }
        if let Some(new) = replace(kind, &html_escape::decode_html_entities(written)) {
            out.push_str(&inner[n_copied..begin]);
            push_escaped(out, &new);
            n_copied = end;
        }
    }
    out.push_str(&inner[n_copied..]);
}

fn may_have_credentials(text: &str) -> bool {
    memchr2(b'@', b'?', text.as_bytes()).is_some()
}

/// Returns where the address is in an element that contains one, and its length. `text` begins with `<`.
fn address_at(text: &str) -> Option<(AddressKind, usize, usize)> {
    const ICON: &str = "<icon src=\"";
    if let Some(rest) = text.strip_prefix(ICON) {
        return Some((AddressKind::Icon, ICON.len(), rest.find('"')?));
    }
    let kind = if is_element(text, "<image") {
        AddressKind::Image
    } else if is_element(text, "<url") || text.starts_with("<review type=\"url\"") {
        AddressKind::Page
    } else {
        return None;
    };
    // `>` is escaped in attributes.
    let begin = text.find('>')? + 1;
    Some((kind, begin, text[begin..].find('<')?))
}

fn is_element(text: &str, start: &str) -> bool {
    text.strip_prefix(start).is_some_and(|it| it.starts_with(['>', ' ']))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn replaced(inner: &str) -> (String, Vec<(AddressKind, String)>) {
        let (mut out, mut seen) = (String::new(), Vec::new());
        push_replacing_addresses(&mut out, inner, |kind, url| {
            seen.push((kind, url.to_owned()));
            Some("N&W".to_owned())
        });
        (out, seen)
    }

    #[test]
    fn addresses_with_a_user_or_a_query_are_replaced_and_texts_are_not() {
        let inner = " clumpidx=\"0/2\"><title>http://t/?a</title><desc>See &lt;icon src=&quot;http://u:p@h/?x</desc>\
                     <credits><actor>A@?<image type=\"person\">http://u:p@h/a</image><url>http://h/u?k=1&amp;l=2</url>\
                     </actor></credits><icon src=\"http://u:p@h/i?a=1&amp;b=2\" width=\"1\"/><icon src=\"http://h/plain\"/>\
                     <url system=\"imdb\">http://u@h/</url><rating><value>?</value><icon src=\"http://u@h/r\"/></rating>\
                     <review type=\"text\">What?</review>\
                     <review type=\"url\" lang=\"en\">http://h/r?q</review><image>http://h/plain</image>";
        let (out, seen) = replaced(inner);
        let expected = [
            (AddressKind::Image, "http://u:p@h/a"),
            (AddressKind::Page, "http://h/u?k=1&l=2"),
            (AddressKind::Icon, "http://u:p@h/i?a=1&b=2"),
            (AddressKind::Page, "http://u@h/"),
            (AddressKind::Image, "http://u@h/r"),
            (AddressKind::Page, "http://h/r?q"),
        ];
        assert_eq!(seen, expected.map(|(kind, url)| (kind, url.to_owned())));
        assert_eq!(
            out,
            " clumpidx=\"0/2\"><title>http://t/?a</title><desc>See &lt;icon src=&quot;http://u:p@h/?x</desc>\
             <credits><actor>A@?<image type=\"person\">N&amp;W</image><url>N&amp;W</url>\
             </actor></credits><icon src=\"N&amp;W\" width=\"1\"/><icon src=\"http://h/plain\"/>\
             <url system=\"imdb\">N&amp;W</url><rating><value>?</value><icon src=\"N&amp;W\"/></rating>\
             <review type=\"text\">What?</review>\
             <review type=\"url\" lang=\"en\">N&amp;W</review><image>http://h/plain</image>"
        );
        let mut kept = String::new();
        push_replacing_addresses(&mut kept, inner, |_, _| None);
        assert_eq!(kept, inner);
    }

    proptest! {
        #[test]
        fn nothing_else_is_changed_whatever_the_text_is(inner in "(<icon src=\"|<image>|<url >|<review type=\"url\"|[<>\"@?a-z/]){0,20}") {
            let mut kept = String::new();
            push_replacing_addresses(&mut kept, &inner, |_, _| None);
            prop_assert_eq!(kept, inner);
        }
    }
}
