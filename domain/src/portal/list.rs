//! Splits a list of channels while it arrives: `{"js":{"total_items":…,"data":[…]}}`, and the forms without some of these.

use super::answer::{PortalError, check_text};
use crate::panel::{Element, ElementParser, LooseValue};

/// The values of a list beside its channels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PortalList {
    /// The number of channels of all pages, as the portal states it; `None` if it states none.
    pub total_items: Option<u64>,
    /// The number of channels of a page; `None` if the portal states none.
    pub max_page_items: Option<u64>,
}

/// The splitter. Push bytes as they arrive, then call `finish`.
///
/// The list is the value of `js`, if that is a list, otherwise its `data`. A list with gaps arrives as an object. Not
/// `Debug`, because a channel may contain a link.
pub struct PortalListParser {
    element_bytes_max: usize,
    state: State,
    /// The first bytes, until they show that this is an answer.
    start: Vec<u8>,
    /// Brackets that are open outside of the list, and the key before the present value.
    depth: u32,
    key: Key,
    /// Inside of the object `js`.
    is_in_js: bool,
    text: Option<Text>,
    /// A value other than a text, for the keys of [`PortalList`].
    value: Vec<u8>,
    is_value: bool,
    list: PortalList,
    has_list: bool,
    /// `js` says that there is no list: `false`, `null` or `[]`.
    is_empty: bool,
    elements: Option<ElementParser>,
    is_over: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Start,
    Inside,
    Refused,
}

/// The keys that count, each at its depth.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Key {
    Other,
    Js,
    Data,
    TotalItems,
    MaxPageItems,
}

/// A text outside of the list; only its beginning is kept.
struct Text {
    bytes: Vec<u8>,
    is_escaped: bool,
}

/// Bytes that are kept of a text or a value outside of the list.
const KEPT_BYTES_MAX: usize = 32;
/// Bytes after which the beginning of an answer shows what it is.
const START_BYTES: usize = 64;

impl Default for PortalListParser {
    fn default() -> Self {
        Self::new(ElementParser::ELEMENT_BYTES_MAX)
    }
}

impl PortalListParser {
    /// Creates a parser that drops channels of more bytes than this.
    pub fn new(element_bytes_max: usize) -> Self {
        Self {
            element_bytes_max,
            state: State::Start,
            start: Vec::new(),
            depth: 0,
            key: Key::Other,
            is_in_js: false,
            text: None,
            value: Vec::new(),
            is_value: false,
            list: PortalList::default(),
            has_list: false,
            is_empty: false,
            elements: None,
            is_over: false,
        }
    }

    /// Splits more bytes; calls `out` for each complete channel.
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(Element<'_>)) {
        let mut rest = bytes;
        if self.state == State::Start {
            let n_more = START_BYTES.saturating_sub(self.start.len()).min(rest.len());
            let (more, left) = rest.split_at(n_more);
            self.start.extend_from_slice(more);
            rest = left;
            if self.start.len() < START_BYTES {
                return;
            }
            self.begin(out);
        }
        if self.state == State::Inside {
            self.split(rest, out);
        }
    }

    /// Ends the list.
    ///
    /// # Errors
    /// It was something else than a list of a portal, or it is cut off, so that channels are missing from it.
    pub fn finish(mut self, out: &mut impl FnMut(Element<'_>)) -> Result<PortalList, PortalError> {
        if self.state == State::Start {
            self.begin(out);
        }
        if self.state == State::Refused {
            return Err(check_text(&self.start).unwrap_or(PortalError::NotAPortal));
        }
        if !self.is_over {
            return Err(PortalError::Damaged);
        }
        if self.has_list || self.is_empty { Ok(self.list) } else { Err(PortalError::NotAPortal) }
    }

    fn begin(&mut self, out: &mut impl FnMut(Element<'_>)) {
        if check_text(&self.start).is_some() {
            self.state = State::Refused;
            return;
        }
        self.state = State::Inside;
        let start = std::mem::take(&mut self.start);
        self.split(&start, out);
    }

    fn split(&mut self, bytes: &[u8], out: &mut impl FnMut(Element<'_>)) {
        for byte in bytes {
            match &mut self.elements {
                Some(elements) => {
                    elements.push(std::slice::from_ref(byte), out);
                    if elements.is_over() {
                        self.elements = None;
                    }
                }
                None if self.is_over => return,
                None => self.outside(*byte),
            }
        }
    }

    /// Reads a byte outside of the list.
    fn outside(&mut self, byte: u8) {
        if let Some(text) = &mut self.text {
            match byte {
                _ if text.is_escaped => text.is_escaped = false,
                b'\\' => text.is_escaped = true,
                b'"' => return self.text_ended(),
                _ => {}
            }
            if text.bytes.len() < KEPT_BYTES_MAX {
                text.bytes.push(byte);
            }
            return;
        }
        match byte {
            b'"' => self.text = Some(Text { bytes: Vec::new(), is_escaped: false }),
            b':' => self.is_value = true,
            b'[' | b'{' if self.is_list(byte) => {
                let mut elements = ElementParser::new(self.element_bytes_max);
                elements.push(&[byte], &mut |_| {});
                (self.elements, self.has_list, self.is_value) = (Some(elements), true, false);
            }
            b'[' | b'{' => {
                self.is_in_js |= self.depth == 1 && self.is_value && self.key == Key::Js;
                self.depth = self.depth.saturating_add(1);
                (self.is_value, self.key) = (false, Key::Other);
            }
            b']' | b'}' => {
                self.value_ended();
                self.depth = self.depth.saturating_sub(1);
                self.is_over = self.depth == 0;
                self.is_in_js &= self.depth > 1;
                self.key = Key::Other;
            }
            b',' => self.value_ended(),
            0..=b' ' => {}
            _ if self.is_value && self.value.len() < KEPT_BYTES_MAX => self.value.push(byte),
            _ => {}
        }
    }

    /// Returns whether the value that begins is the list.
    fn is_list(&self, byte: u8) -> bool {
        self.is_value
            && !self.has_list
            && match self.key {
                Key::Js => byte == b'[',
                Key::Data => true,
                _ => false,
            }
    }

    fn text_ended(&mut self) {
        let Some(Text { bytes, .. }) = self.text.take() else { return };
        if self.is_value {
            self.value = bytes;
            return;
        }
        // Inside of other values, keys of the same name mean something else.
        self.key = match (self.depth, &bytes[..]) {
            (1, b"js") => Key::Js,
            (2, b"data") if self.is_in_js => Key::Data,
            (2, b"total_items") if self.is_in_js => Key::TotalItems,
            (2, b"max_page_items") if self.is_in_js => Key::MaxPageItems,
            _ => Key::Other,
        };
    }

    fn value_ended(&mut self) {
        let value = std::mem::take(&mut self.value);
        let number = || {
            let text = std::str::from_utf8(&value).ok()?;
            LooseValue::Text(text.to_owned()).whole().and_then(|it| u64::try_from(it).ok())
        };
        match self.key {
            _ if !self.is_value => {}
            Key::TotalItems => self.list.total_items = number(),
            Key::MaxPageItems => self.list.max_page_items = number(),
            Key::Js | Key::Data => self.is_empty |= matches!(&value[..], b"false" | b"null" | b""),
            Key::Other => {}
        }
        self.is_value = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> (Vec<String>, Result<PortalList, PortalError>) {
        let mut whole = None;
        for piece in [1, 3, 70, text.len().max(1)] {
            let mut elements = Vec::new();
            let mut out = |it: Element<'_>| {
                elements.push(match it {
                    Element::Value { json, .. } => String::from_utf8(json.to_vec()).unwrap(),
                    Element::TooLong => "too long".to_owned(),
                });
            };
            let mut parser = PortalListParser::new(24);
            for bytes in text.as_bytes().chunks(piece) {
                parser.push(bytes, &mut out);
            }
            let end = parser.finish(&mut out);
            let split = (elements, end);
            assert_eq!(*whole.get_or_insert_with(|| split.clone()), split, "pieces of {piece} bytes: {text}");
        }
        whole.unwrap()
    }

    fn list(total_items: u64, max_page_items: u64) -> Result<PortalList, PortalError> {
        Ok(PortalList { total_items: Some(total_items), max_page_items: Some(max_page_items) })
    }

    #[test]
    fn the_channels_of_a_list_are_found_in_every_form_of_its_envelope() {
        let none = || Ok(PortalList::default());
        for (text, elements, end) in [
            (
                r#"{"js":{"total_items":2,"max_page_items":14,"data":[{"id":1},{"id":2}]},"text":"generated"}"#,
                &[r#"{"id":1}"#, r#"{"id":2}"#][..],
                list(2, 14),
            ),
            (
                r#"{"js":{"data":[{"id":"1"}],"total_items":"1","cur_page":0,"max_page_items":"14"}}"#,
                &[r#"{"id":"1"}"#],
                list(1, 14),
            ),
            (
                r#"{ "js" : { "data" : {"1":{"id":1},"5":{"id":5}} } }"#,
                &[r#"{"id":1}"#, r#"{"id":5}"#],
                none(),
            ),
            (r#"{"js":[{"id":1}]}"#, &[r#"{"id":1}"#], none()),
            (
                r#"{"text":"[{\"js\":[1]}]","data":[9],"b":{"data":[8]},"js":{"a":{"data":[9]},"data":[1]}}"#,
                &["1"],
                none(),
            ),
            (
                r#"{"js":{"data":[{"name":"a ] } \" , long name"},{"id":2}]}}"#,
                &["too long", r#"{"id":2}"#],
                none(),
            ),
            (r#"{"js":{"total_items":0,"max_page_items":14,"data":[]}}"#, &[], list(0, 14)),
            (r#"{"js":[]}"#, &[], none()),
            (r#"{"js":false}"#, &[], none()),
            (r#"{"js":null,"text":""}"#, &[], none()),
            (r#"{"js":{"data":false}}"#, &[], none()),
        ] {
            let elements: Vec<_> = elements.iter().map(|it| (*it).to_owned()).collect();
            assert_eq!(split(text), (elements, end), "{text}");
        }
    }

    #[test]
    fn a_list_that_is_cut_off_or_none_is_told_from_an_empty_one() {
        for (text, error) in [
            ("", PortalError::Nothing),
            ("Authorization failed.", PortalError::Unauthorized),
            ("<html>", PortalError::WebPage),
            ("[1,2]", PortalError::NotAPortal),
            ("{}", PortalError::NotAPortal),
            (r#"{"js":{}}"#, PortalError::NotAPortal),
            (r#"{"js":{"total_items":1}}"#, PortalError::NotAPortal),
            (r#"{"js":true}"#, PortalError::NotAPortal),
            (r#"{"js":{"data":[{"id":1}"#, PortalError::Damaged),
            (r#"{"js":{"data":[{"id":1}]"#, PortalError::Damaged),
            (r#"{"js":{"data":[{"id":1}]}"#, PortalError::Damaged),
            (r#"{"js":{"total_items":1,"#, PortalError::Damaged),
        ] {
            assert_eq!(split(text).1, Err(error), "{text}");
        }
    }
}
