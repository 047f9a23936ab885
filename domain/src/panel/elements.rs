//! Splits a JSON list into its elements while it arrives.
//!
//! A panel with 100,000 streams sends one JSON value of some ten megabytes. Only one element of it is kept in memory, and
//! an element that is not valid JSON spoils none of its neighbours. Lists that arrive as objects (`{"0": …, "1": …}`, as
//! PHP encodes lists with gaps) are read in the same way.

/// An element of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Element<'a> {
    /// The bytes of its value, which may be invalid JSON, and its key if the list is an object.
    Value { key: Option<&'a [u8]>, json: &'a [u8] },
    /// It was longer than allowed and dropped.
    TooLong,
}

/// How a list ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListEnd {
    /// With its closing bracket.
    Complete,
    /// The data ended before.
    Truncated,
    /// It never began.
    NotAList(NotAList),
}

/// The kind of data that arrived in place of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotAList {
    #[error("the panel sent an empty answer")]
    Nothing,
    #[error("the panel sent a web page instead of its list")]
    WebPage,
    #[error("the panel sent something else instead of its list")]
    SomethingElse,
}

/// The splitter. Push bytes as they arrive, then call `finish`.
///
/// Not `Debug`, because an element may contain a password.
pub struct ElementParser {
    element_bytes_max: usize,
    state: State,
    is_object: bool,
    /// The present element; empty if there is none.
    element: Vec<u8>,
    is_too_long: bool,
    /// Brackets that are open inside the element.
    depth: u32,
    is_in_text: bool,
    is_escaped: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Before the opening bracket.
    Start,
    Inside,
    /// After the closing bracket; the rest is ignored.
    Over,
    Refused(NotAList),
}

impl ElementParser {
    /// Longer elements are dropped. The usual ones have some hundred bytes.
    pub const ELEMENT_BYTES_MAX: usize = 64 * 1024;

    /// Creates a parser that drops elements of more bytes than this.
    pub fn new(element_bytes_max: usize) -> Self {
        Self {
            element_bytes_max,
            state: State::Start,
            is_object: false,
            element: Vec::new(),
            is_too_long: false,
            depth: 0,
            is_in_text: false,
            is_escaped: false,
        }
    }

    /// Splits more bytes; calls `out` for each complete element.
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(Element<'_>)) {
        for byte in bytes {
            match self.state {
                State::Start => self.start(*byte),
                State::Inside => self.inside(*byte, out),
                State::Over | State::Refused(_) => return,
            }
        }
    }

    /// Returns whether the list has ended. What follows it is ignored.
    pub(crate) fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Ends the list. An element without its end is dropped.
    pub fn finish(self) -> ListEnd {
        match self.state {
            State::Start => ListEnd::NotAList(NotAList::Nothing),
            State::Inside => ListEnd::Truncated,
            State::Over => ListEnd::Complete,
            State::Refused(reason) => ListEnd::NotAList(reason),
        }
    }

    fn start(&mut self, byte: u8) {
        match byte {
            b'[' | b'{' => (self.state, self.is_object) = (State::Inside, byte == b'{'),
            b'<' => self.state = State::Refused(NotAList::WebPage),
            // White space and the byte-order mark.
            0..=b' ' | 0xEF | 0xBB | 0xBF => {}
            _ => self.state = State::Refused(NotAList::SomethingElse),
        }
    }

    fn inside(&mut self, byte: u8, out: &mut impl FnMut(Element<'_>)) {
        if self.is_in_text {
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_in_text = false,
                _ => {}
            }
            return self.add(byte);
        }
        match byte {
            b',' if self.depth == 0 => return self.end_element(out),
            b']' | b'}' if self.depth == 0 => {
                self.end_element(out);
                self.state = State::Over;
                return;
            }
            b'"' => self.is_in_text = true,
            b'[' | b'{' => self.depth = self.depth.saturating_add(1),
            b']' | b'}' => self.depth -= 1,
            // White space between elements is not part of any.
            0..=b' ' if self.element.is_empty() => return,
            _ => {}
        }
        self.add(byte);
    }

    fn add(&mut self, byte: u8) {
        if self.element.len() < self.element_bytes_max {
            self.element.push(byte);
        } else {
            self.is_too_long = true;
        }
    }

    fn end_element(&mut self, out: &mut impl FnMut(Element<'_>)) {
        let is_too_long = std::mem::take(&mut self.is_too_long);
        if is_too_long {
            out(Element::TooLong);
        } else if !self.element.is_empty() {
            let (key, json) = match split_key(&self.element).filter(|_| self.is_object) {
                Some((key, json)) => (Some(key), json),
                None => (None, &self.element[..]),
            };
            out(Element::Value { key, json });
        }
        self.element.clear();
    }
}

/// Splits `"key": value`. The key keeps its escapes.
fn split_key(element: &[u8]) -> Option<(&[u8], &[u8])> {
    let rest = element.strip_prefix(b"\"")?;
    let mut is_escaped = false;
    let end = rest.iter().position(|byte| {
        let is_end = *byte == b'"' && !is_escaped;
        is_escaped = *byte == b'\\' && !is_escaped;
        is_end
    })?;
    let value = rest[end + 1..].trim_ascii_start().strip_prefix(b":")?;
    Some((&rest[..end], value.trim_ascii_start()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, ListEnd) {
        let mut whole = None;
        for piece in [1, 3, text.len().max(1)] {
            let mut elements = Vec::new();
            let mut parser = ElementParser::new(24);
            for bytes in text.as_bytes().chunks(piece) {
                parser.push(bytes, &mut |it| {
                    elements.push(match it {
                        Element::Value { key: None, json } => String::from_utf8(json.to_vec()).unwrap(),
                        Element::Value { key: Some(key), json } => {
                            format!("{}={}", str::from_utf8(key).unwrap(), str::from_utf8(json).unwrap())
                        }
                        Element::TooLong => "too long".to_owned(),
                    });
                });
            }
            let split = (elements, parser.finish());
            assert_eq!(*whole.get_or_insert_with(|| split.clone()), split, "pieces of {piece} bytes");
        }
        whole.unwrap()
    }

    #[test]
    fn a_list_is_split_into_its_elements_whatever_they_contain() {
        for (text, elements) in [
            ("[]", &[][..]),
            (" \u{feff}[ 1 , 2 ] rest", &["1 ", "2 "]),
            (r#"[{"a":"],[\"{"},[[1],2]]"#, &[r#"{"a":"],[\"{"}"#, "[[1],2]"]),
            (r#"{"1":{"a":1},"x\"y" : [2]}"#, &[r#"1={"a":1}"#, r#"x\"y=[2]"#]),
            (r#"[1,{"name":"a very long name"},2]"#, &["1", "too long", "2"]),
            ("[oops,{'a'},,2]", &["oops", "{'a'}", "2"]),
            (r#"{oops,"a"}"#, &["oops", "\"a\""]),
        ] {
            let elements: Vec<_> = elements.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(split(text), (elements, ListEnd::Complete), "{text}");
        }
    }

    #[test]
    fn the_end_of_the_data_tells_a_list_from_everything_else() {
        for (text, end) in [
            ("", ListEnd::NotAList(NotAList::Nothing)),
            (" \r\n", ListEnd::NotAList(NotAList::Nothing)),
            ("<!DOCTYPE html><html>[1]", ListEnd::NotAList(NotAList::WebPage)),
            ("null", ListEnd::NotAList(NotAList::SomethingElse)),
            ("false", ListEnd::NotAList(NotAList::SomethingElse)),
            ("Too many requests [1]", ListEnd::NotAList(NotAList::SomethingElse)),
            ("[", ListEnd::Truncated),
            ("[1,2", ListEnd::Truncated),
            ("[{\"a\":\"b]", ListEnd::Truncated),
            ("[[1]", ListEnd::Truncated),
        ] {
            assert_eq!(split(text).1, end, "{text}");
        }
        assert_eq!(split("[1,2,3").0, ["1", "2"], "the last element may be incomplete");
    }
}
