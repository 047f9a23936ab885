//! Makes damaged elements well-formed.

use memchr::memmem;

use super::scan::{Markup, Section, end_tag, markup};
use super::schema::{self, ElementKind};
use super::tag::{each_attribute, name_length, tag};
use super::text::{allowed, push_content, push_value};

/// Attributes of one tag; more are dropped.
const ATTRIBUTES_MAX: usize = 32;
/// Levels below the element; tags below are dropped, and their texts stay.
const DEPTH_MAX: usize = 16;
/// Tags of one element; more are dropped. The longest lists of credits have some hundred.
const TAGS_MAX: usize = 4_000;
/// Longer names are cut.
const NAME_BYTES_MAX: usize = 64;

/// Makes an element well-formed, whatever is wrong with it, so that the damage costs the children that have it at most.
///
/// Tags that are not closed end where a child of the element begins; end tags without a start, tags of HTML, and second
/// values of attributes are dropped. Entities of HTML become characters, `&` and `<` in texts stay as texts.
pub(super) fn repaired(element: &str, kind: ElementKind) -> String {
    let out = String::with_capacity(element.len() + element.len() / 8);
    let (open, ends) = (Vec::new(), [None; 3]);
    let mut repair = Repair { kind, out, open, n_tags: 0, has_title: false, loose: "", ends };
    let mut rest = element;
    while !rest.is_empty() {
        let length = match rest.as_bytes()[0] {
            b'<' => repair.markup(rest),
            _ => {
                let length = rest.find('<').unwrap_or(rest.len());
                repair.text(&rest[..length]);
                length
            }
        };
        rest = &rest[length..];
    }
    repair.close_to(0);
    repair.out
}

struct Repair<'a> {
    kind: ElementKind,
    out: String,
    /// The open elements; the first one is the element itself.
    open: Vec<Open>,
    n_tags: usize,
    /// A title has a text.
    has_title: bool,
    /// The last text directly below the element, where none belongs.
    loose: &'a str,
    /// The next end of each kind of section as far as it was looked for, as bytes before the end of the element; 0 if there
    /// is none.
    ends: [Option<usize>; 3],
}

/// An element that is open.
struct Open {
    name: String,
    /// Where its name is in the output.
    at: usize,
}

impl<'a> Repair<'a> {
    /// Copies what begins with a `<`. Returns its length.
    fn markup(&mut self, rest: &'a str) -> usize {
        if let Markup::Section(section) = markup(rest.as_bytes()) {
            return self.section(rest, section);
        }
        let name = &rest[1..];
        if name.starts_with(is_name_start)
            && let Some(length) = self.start_tag(rest, 1)
        {
            return length;
        }
        if let Some(name) = name.strip_prefix('/')
            && name.trim_ascii_start().starts_with(is_name_start)
        {
            return self.end_tag(rest);
        }
        let gap = name.len() - name.trim_ascii_start().len();
        if gap > 0
            && self.open.len() == 1
            && self.begins_child(&name[gap..])
            && let Some(length) = self.start_tag(rest, 1 + gap)
        {
            return length;
        }
        self.text("<");
        1
    }

    /// Returns whether the name of a child and the end of its tag follow a `<` with a space after it.
    fn begins_child(&self, text: &str) -> bool {
        let length = name_length(text.as_bytes());
        self.kind.has_child(&text[..length]) && text[length..].trim_ascii_start().starts_with('>')
    }

    fn section(&mut self, rest: &'a str, section: Section) -> usize {
        let from = section.open().len();
        let inside = &rest.as_bytes()[from..];
        let known = &mut self.ends[section as usize];
        if known.is_none_or(|it| it > inside.len()) {
            *known = Some(memmem::find(inside, section.close().as_bytes()).map_or(0, |it| inside.len() - it));
        }
        let end = known.filter(|it| *it > 0).map(|it| rest.len() - it);
        // A second one can only begin in it if this one was never closed.
        let is_closed = |end: &usize| !rest[from..*end].contains(section.open());
        let Some(end) = end.filter(is_closed) else { return from };
        if section == Section::Characters {
            self.characters(&rest[from..end]);
        }
        end + section.close().len()
    }

    /// Copies the text of a section of characters, in which nothing is markup.
    fn characters(&mut self, text: &'a str) {
        match self.open.len() {
            0 => {}
            1 => self.loose = text,
            _ => {
                self.note_title(text);
                self.out.push_str(Section::Characters.open());
                self.out.extend(text.chars().map(allowed));
                self.out.push_str(Section::Characters.close());
            }
        }
    }

    fn text(&mut self, text: &'a str) {
        match self.open.len() {
            0 => {}
            1 if text.trim_ascii().is_empty() => {}
            1 => self.loose = text,
            _ => {
                self.note_title(text);
                push_content(text, &mut self.out);
            }
        }
    }

    fn note_title(&mut self, text: &str) {
        let is_title = !self.has_title && self.open.last().is_some_and(|it| it.name == "title");
        self.has_title |= is_title && !text.trim_ascii().is_empty();
    }

    /// Copies a start tag whose name is at `name_at`. Returns its length, and `None` if it is a text.
    fn start_tag(&mut self, rest: &'a str, name_at: usize) -> Option<usize> {
        let written = &rest[name_at..][..name_length(&rest.as_bytes()[name_at..])];
        let name = name_of(written);
        let tag = tag(rest.as_bytes(), usize::MAX);
        let to_first = || rest.find('>').map_or(rest.len(), |it| it + 1);
        let length = tag.map_or_else(to_first, |it| it.length);
        let is_whole = rest[..length].ends_with('>');
        let is_known = self.open.is_empty() || schema::is_known(&name) || schema::is_inline(&name);
        if !is_whole && !is_known {
            return None;
        }
        let is_empty = tag.is_some_and(|it| it.is_empty);
        let end = length - if is_empty { 2 } else { usize::from(is_whole) };
        let attributes = rest.get(name_at + written.len()..end).unwrap_or_default();
        if self.open.is_empty() {
            self.begin(self.kind.name().to_owned(), attributes);
        } else if !self.is_dropped(&name) {
            self.make_room_for(&name);
            if self.open.len() <= DEPTH_MAX && self.n_tags < TAGS_MAX {
                self.begin(name, attributes);
                if is_empty {
                    self.close_to(self.open.len() - 1);
                }
            }
        }
        Some(length)
    }

    /// Drops tags of HTML, with a space or line break in place of those that separate words.
    fn is_dropped(&mut self, name: &str) -> bool {
        let is_inline = schema::is_inline(name);
        if is_inline && matches!(name, "br" | "p" | "div" | "li" | "hr") && self.open.len() > 1 {
            self.out.push_str("<br/>");
            self.n_tags += 1;
        }
        is_inline || matches!(name, "programme" | "channel" | "tv")
    }

    /// Closes the open elements that cannot have this child.
    fn make_room_for(&mut self, name: &str) {
        let has_place = |it: &Open| schema::has_part(&it.name, name);
        if let Some(parent) = self.open.iter().rposition(has_place) {
            self.close_to(parent + 1);
        } else if self.kind.has_child(name) {
            self.close_to(1);
        }
        self.loose = "";
    }

    /// Copies an end tag. Returns its length.
    fn end_tag(&mut self, rest: &'a str) -> usize {
        let (written, length) = end_tag(rest.as_bytes()).unwrap_or((&rest.as_bytes()[2..], rest.len()));
        let name = name_of(str::from_utf8(written).unwrap_or_default().trim_ascii());
        let found = self.open.iter().skip(1).rposition(|it| it.name == name).map(|it| it + 1);
        let is_child = self.kind.has_child(&name);
        match (found, self.open.last()) {
            (Some(at), _) => self.close_to(at),
            (None, None) => {}
            (None, Some(_)) if self.open.len() == 1 => self.loose_title(&name),
            (None, Some(_)) if schema::is_inline(&name) || name == self.kind.name() => {}
            (None, Some(last)) if schema::is_container(&last.name) => {}
            (None, Some(last)) => {
                // The name of its start tag is damaged.
                if is_child && self.open.len() == 2 && !self.kind.has_child(&last.name) {
                    self.out.replace_range(last.at..last.at + last.name.len(), &name);
                    self.has_title |= name == "title";
                    if let Some(last) = self.open.last_mut() {
                        last.name = name;
                    }
                }
                self.close_to(self.open.len() - 1);
            }
        }
        length
    }

    /// Makes a title of the text before its end tag, if its start tag is lost.
    fn loose_title(&mut self, name: &str) {
        let text = std::mem::take(&mut self.loose);
        if name != "title" || self.has_title || text.trim_ascii().is_empty() {
            return;
        }
        let text = text.split_once('>').map_or(text, |it| it.1);
        self.has_title = true;
        self.begin("title".to_owned(), "");
        push_content(text, &mut self.out);
        self.close_to(1);
    }

    /// Writes a start tag.
    fn begin(&mut self, name: String, attributes: &str) {
        self.n_tags += 1;
        self.out.push('<');
        self.open.push(Open { at: self.out.len(), name });
        if let Some(it) = self.open.last() {
            self.out.push_str(&it.name);
        }
        let mut seen: Vec<(String, &str)> = Vec::new();
        each_attribute(attributes, ATTRIBUTES_MAX, |name, value| {
            let name = name_of(name);
            match seen.iter_mut().find(|it| it.0 == name) {
                // The first one that says something.
                Some(it) if it.1.is_empty() => it.1 = value,
                Some(_) => {}
                None if name.starts_with("xmlns") => {}
                None => seen.push((name, value)),
            }
        });
        for (name, value) in seen {
            self.out.extend([" ", &name, "=\""]);
            push_value(value, &mut self.out);
            self.out.push('"');
        }
        self.out.push('>');
    }

    /// Closes elements until so many are open.
    fn close_to(&mut self, n_open: usize) {
        for it in self.open.drain(n_open.min(self.open.len())..).rev() {
            self.out.extend(["</", &it.name, ">"]);
        }
    }
}

fn is_name_start(it: char) -> bool {
    it.is_ascii_alphabetic() || it == '_'
}

/// Returns a name in lower case, as XML allows it. A prefix becomes a part of it.
fn name_of(written: &str) -> String {
    let is_shown = |it: &char| !it.is_control() && *it != '\u{FEFF}';
    let chars = written.chars().filter(is_shown).take(NAME_BYTES_MAX).map(|it| match it {
        it if it.is_ascii_alphanumeric() || matches!(it, '-' | '_' | '.') => it.to_ascii_lowercase(),
        _ => '_',
    });
    let name: String = chars.collect();
    // The only name with a prefix that has a meaning.
    if name == "xml_lang" { "lang".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn repaired_inside(inside: &str) -> String {
        let whole = repaired(&format!("<programme>{inside}</programme>"), ElementKind::Programme);
        assert!(roxmltree::Document::parse(&whole).is_ok(), "{whole}");
        let inside = whole.strip_prefix("<programme>").and_then(|it| it.strip_suffix("</programme>"));
        inside.unwrap_or_else(|| panic!("{whole}")).to_owned()
    }

    #[test]
    fn mistakes_in_texts_are_repaired() {
        for (text, expected) in [
            ("R&eacute;gion &nbsp;1", "Région \u{A0}1"),
            ("A & B &unknown; &amp; &lt; &; &", "A &amp; B &amp;unknown; &amp; &lt; &amp;; &amp;"),
            ("1 < 2 <3 <", "1 &lt; 2 &lt;3 &lt;"),
            ("\u{0}\u{1F}\u{FFFF}&#0;&#x1;&#65;", "     A"),
            ("]]>", "]]&gt;"),
            ("<![CDATA[ & < \u{1}]]>", "<![CDATA[ & <  ]]>"),
            ("<![CDATA[ A <![CDATA[B]]>", " A <![CDATA[B]]>"),
            ("A <!-- a -- b -->B <!-- C", "A B  C"),
            ("x<br>y<BR>z</br>", "x<br/>y<br/>z"),
            ("&quot;&NewLine;&lbrace;&fjlig;", "&quot;\n{fj"),
            ("A <b>B</i> C <Jerry D", "A B C &lt;Jerry D"),
        ] {
            assert_eq!(
                repaired_inside(&format!("<desc>{text}</desc>")),
                format!("<desc>{expected}</desc>"),
                "{text}"
            );
        }
    }

    #[test]
    fn a_damaged_child_costs_no_other() {
        for (damaged, expected) in [
            ("<desc>d", "<desc>d</desc>"),
            ("<title>K<desc>d</desc>", "<title>K</title><desc>d</desc>"),
            ("<title>K</titel><desc>d</desc>", "<title>K</title><desc>d</desc>"),
            ("<title>K</title</desc>", "<title>K</title>"),
            ("<title>K</title></desc>", "<title>K</title>"),
            ("<desc/></desc><title>K</title>", "<desc></desc><title>K</title>"),
            ("<titl>K</title>", "<title>K</title>"),
            ("title>K</title>", "<title>K</title>"),
            ("< title>K</ title>", "<title>K</title>"),
            ("<TITLE>K</Title>", "<title>K</title>"),
            ("<tit\u{0}le>K</title>", "<title>K</title>"),
            ("<title lang=en>K</title>", "<title lang=\"en\">K</title>"),
            ("<title lang=\"en>K</title>", "<title lang=\"en\">K</title>"),
            ("<title lang='a' lang='b' xml:lang='c' xmlns:d='e'>K</title>", "<title lang=\"a\">K</title>"),
            (
                "<icon src/><icon src=\"http://x/a\"b.jpg\"/>",
                "<icon></icon><icon src=\"http://x/a&quot;b.jpg\"></icon>",
            ),
            ("<credits><actor>A</credits></actor>", "<credits><actor>A</actor></credits>"),
            ("<credits><actor>A<actor>B</credits>", "<credits><actor>A</actor><actor>B</actor></credits>"),
            ("<credits><actor>A<new/>", "<credits><actor>A</actor></credits><new></new>"),
            (
                "<rating><value>6<icon src='x'/><title>K",
                "<rating><value>6</value><icon src=\"x\"></icon></rating><title>K</title>",
            ),
            ("</programme><tv><title>K</title></tv>", "<title>K</title>"),
            ("<dc:a x:y='1'/><title>K", "<dc_a x_y=\"1\"></dc_a><title>K</title>"),
            ("<title>K</title><desc><![CDATA[d</desc><new/>", "<title>K</title><desc>d</desc><new></new>"),
        ] {
            assert_eq!(repaired_inside(damaged), expected, "{damaged}");
        }
    }

    #[test]
    fn an_element_with_too_much_in_it_is_cut() {
        let deep = repaired_inside(&format!("<title>K</title><desc>{}d", "<x>".repeat(100_000)));
        assert!(deep.starts_with("<title>K</title><desc><x>") && deep.len() < 1_000);
        let wide = repaired_inside(&format!("<title>K</title>{}", "<new/>".repeat(100_000)));
        assert!(wide.len() < 100_000);
        let many: String = (0..100_000).map(|n| format!(" a{n}='1'")).collect();
        assert!(repaired_inside(&format!("<title{many}>K</title>")).ends_with(">K</title>"));
    }

    proptest! {
        #[test]
        fn every_element_becomes_well_formed(
            text in "\\PC{0,40}|[<>&;/!?'\"a:\\[\\]CDAT=# \\x00-]{0,40}",
            parts in proptest::collection::vec(proptest::sample::select(vec![
                "<title>", "</title>", "<desc", " lang=\"", "\"", "'", ">", "/>", "<credits>", "<actor>", "</credits>",
                "<!--", "-->", "<![CDATA[", "]]>", "<?", "?>", "&", "<", "</", "=", " ", "x", "<br>", "<x:y>", "</programme>",
            ]), 0..20),
        ) {
            for inside in [text, parts.concat()] {
                repaired_inside(&format!("{inside}<new/>"));
            }
        }
    }
}
