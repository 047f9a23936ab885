//! Writes guides in XMLTV, valid against `xmltv.dtd` (<https://github.com/XMLTV/xmltv/blob/master/xmltv.dtd>): all channels
//! first, the elements of each in the order of the DTD.
//!
//! The document has no DOCTYPE: readers that refuse document types for safety refuse the whole guide.

use super::time::push_time;
use crate::guide::programme::{AddressKind, push_replacing_addresses, without_catchup_id};
use crate::xml::push_escaped;

/// A channel of a guide.
#[derive(Debug, Clone, Copy, Default)]
pub struct XmltvChannel<'a> {
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
    push_escaped(out, version);
    out.push_str("\">\n");
}

/// Writes a channel.
pub fn write_channel(out: &mut String, channel: &XmltvChannel<'_>) {
    out.push_str("  <channel id=\"");
    push_escaped(out, channel.id);
    out.push_str("\">\n");
    let mut names = channel.names.iter().filter(|it| !it.is_empty()).peekable();
    // The DTD requires a name.
    let unnamed = names.peek().is_none().then_some(&channel.id);
    for name in names.chain(unnamed) {
        out.push_str("    <display-name>");
        push_escaped(out, name);
        out.push_str("</display-name>\n");
    }
    if let Some(icon) = channel.icon {
        out.push_str("    <icon src=\"");
        push_escaped(out, icon);
        out.push_str("\"/>\n");
    }
    out.push_str("  </channel>\n");
}

/// Writes a programme. `start` and `stop` are seconds since 1970-01-01; `inner` is the inside of the element as
/// [`to_xml`](crate::guide::programme::to_xml) writes it, and is copied
/// without the name of the programme in the archive of its provider.
pub fn write_programme(out: &mut String, channel_id: &str, start: i64, stop: i64, inner: &str) {
    write_with(out, channel_id, (start, stop), inner, |out, inner| out.push_str(inner));
}

/// Writes a programme like [`write_programme`], with other addresses: see [`push_replacing_addresses`].
pub fn write_programme_replacing(
    out: &mut String,
    channel_id: &str,
    times: (i64, i64),
    inner: &str,
    replace: impl FnMut(AddressKind, &str) -> Option<String>,
) {
    write_with(out, channel_id, times, inner, |out, inner| push_replacing_addresses(out, inner, replace));
}

fn write_with(
    out: &mut String,
    channel_id: &str,
    (start, stop): (i64, i64),
    inner: &str,
    push_inner: impl FnOnce(&mut String, &str),
) {
    let (attributes, inner) = without_catchup_id(inner);
    out.push_str("  <programme start=\"");
    push_time(out, start);
    out.push_str("\" stop=\"");
    push_time(out, stop);
    out.push_str("\" channel=\"");
    push_escaped(out, channel_id);
    out.push('"');
    out.push_str(attributes);
    if attributes.is_empty() && !inner.starts_with(' ') {
        out.push('>');
    }
    push_inner(out, inner);
    out.push_str("</programme>\n");
}

/// Writes the end of a guide.
pub fn write_end(out: &mut String) {
    out.push_str("</tv>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_do_not_get_the_names_of_programmes_in_archives() {
        for (inner, expected) in [
            (" catchup-id=\"http://u:p@h/7.ts\"><title>A</title>", "><title>A</title>"),
            (
                " clumpidx=\"0/2\" catchup-id=\"&gt;&quot;\"><title>A</title>",
                " clumpidx=\"0/2\"><title>A</title>",
            ),
            (
                " clumpidx=\"0/2\"><title> catchup-id=</title>",
                " clumpidx=\"0/2\"><title> catchup-id=</title>",
            ),
            ("<title> catchup-id=&quot;7&quot;</title>", "><title> catchup-id=&quot;7&quot;</title>"),
        ] {
            let (mut out, mut replaced) = (String::new(), String::new());
            write_programme(&mut out, "1", 0, 60, inner);
            assert!(out.ends_with(&format!("channel=\"1\"{expected}</programme>\n")), "{out}");
            write_programme_replacing(&mut replaced, "1", (0, 60), inner, |_, _| None);
            assert_eq!(replaced, out);
        }
    }

    #[test]
    fn a_guide_lists_channels_with_their_names_and_icons_in_the_order_of_the_dtd() {
        let mut out = String::new();
        write_start(&mut out, "0.1.0");
        let icon = Some("http://h/logo?a=1&b=2");
        write_channel(&mut out, &XmltvChannel { id: "4.1", names: &["News & \"More\"", "4.1", ""], icon });
        write_channel(&mut out, &XmltvChannel { id: "<5>", names: &[""], icon: None });
        write_programme(&mut out, "4.1", 0, 60, "<title>A &amp; B</title>");
        write_programme(&mut out, "<5>", 60, 120, " clumpidx=\"0/2\"><title>C</title>");
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
             \x20 <programme start=\"19700101000000 +0000\" stop=\"19700101000100 +0000\" channel=\"4.1\">\
             <title>A &amp; B</title></programme>\n\
             \x20 <programme start=\"19700101000100 +0000\" stop=\"19700101000200 +0000\" channel=\"&lt;5&gt;\" \
             clumpidx=\"0/2\"><title>C</title></programme>\n\
             </tv>\n"
        );
    }
}
