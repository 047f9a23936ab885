//! Writes guides in XMLTV, valid against `xmltv.dtd` (<https://github.com/XMLTV/xmltv/blob/master/xmltv.dtd>): all channels
//! first, the elements of each in the order of the DTD.
//!
//! The document has no DOCTYPE: readers that refuse document types for safety refuse the whole guide.

/// A channel of a guide.
#[derive(Debug, Clone, Copy, Default)]
pub struct GuideChannel<'a> {
    /// Unique in the guide; the `tvg-id` of playlists.
    pub id: &'a str,
    /// The names under which readers find the channel, the preferred one first. Empty ones are left out.
    pub names: &'a [&'a str],
    /// Address of the logo, if there is one.
    pub icon: Option<&'a str>,
}

/// Writes the beginning of a guide, made by this version of the gateway.
pub fn write_start(out: &mut String, version: &str) {
    out.push_str("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv generator-info-name=\"Headwater ");
    escaped(out, version);
    out.push_str("\">\n");
}

/// Writes a channel.
pub fn write_channel(out: &mut String, channel: &GuideChannel<'_>) {
    out.push_str("  <channel id=\"");
    escaped(out, channel.id);
    out.push_str("\">\n");
    let mut names = channel.names.iter().filter(|it| !it.is_empty()).peekable();
    // The DTD requires a name.
    let unnamed = names.peek().is_none().then_some(&channel.id);
    for name in names.chain(unnamed) {
        out.push_str("    <display-name>");
        escaped(out, name);
        out.push_str("</display-name>\n");
    }
    if let Some(icon) = channel.icon {
        out.push_str("    <icon src=\"");
        escaped(out, icon);
        out.push_str("\"/>\n");
    }
    out.push_str("  </channel>\n");
}

/// Writes the end of a guide.
pub fn write_end(out: &mut String) {
    out.push_str("</tv>\n");
}

/// Writes a text for the content of an element or for an attribute in double quotes. Characters that XML does not allow
/// become spaces, and so do line breaks, which readers of attributes would change.
fn escaped(out: &mut String, text: &str) {
    for it in text.chars() {
        match it {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            it if it.is_control() || matches!(it, '\u{FFFE}' | '\u{FFFF}') => out.push(' '),
            it => out.push(it),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guide_lists_channels_with_their_names_and_icons_in_the_order_of_the_dtd() {
        let mut out = String::new();
        write_start(&mut out, "0.1.0");
        let icon = Some("http://h/logo?a=1&b=2");
        write_channel(&mut out, &GuideChannel { id: "4.1", names: &["News & \"More\"", "4.1", ""], icon });
        write_channel(&mut out, &GuideChannel { id: "<5>", names: &[""], icon: None });
        write_end(&mut out);
        assert_eq!(
            out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <tv generator-info-name=\"Headwater 0.1.0\">\n\
             \x20 <channel id=\"4.1\">\n\
             \x20   <display-name>News &amp; &quot;More&quot;</display-name>\n\
             \x20   <display-name>4.1</display-name>\n\
             \x20   <icon src=\"http://h/logo?a=1&amp;b=2\"/>\n\
             \x20 </channel>\n\
             \x20 <channel id=\"&lt;5&gt;\">\n\
             \x20   <display-name>&lt;5&gt;</display-name>\n\
             \x20 </channel>\n\
             </tv>\n"
        );
    }

    #[test]
    fn characters_that_xml_does_not_allow_are_replaced() {
        let mut out = String::new();
        escaped(&mut out, "a\0b\u{1}c\u{FFFE}d\ne]]>ä😀");
        assert_eq!(out, "a b c d e]]&gt;ä😀");
    }
}
