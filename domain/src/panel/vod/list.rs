//! Splits the lists of films, series and their categories.

use crate::panel::elements::{Element, ElementParser, ListEnd, NotAList};

/// Maximum number of bytes before a list, such as the warnings of a panel's own program. A list that begins later is
/// none.
pub const PREAMBLE_BYTES_MAX: usize = 8 * 1024;

/// An [`ElementParser`] that skips text before the list. Push bytes as they arrive, then call `finish`.
pub struct VodListParser {
    elements: ElementParser,
    head: Head,
}

enum Head {
    /// The bytes so far; the list has not begun.
    Waiting(Vec<u8>),
    Begun,
    Refused(NotAList),
}

/// Where a list begins in its first bytes.
enum Start {
    At(usize),
    Never(NotAList),
    Unknown,
}

impl VodListParser {
    /// Creates a parser that drops elements of more bytes than this.
    pub fn new(element_bytes_max: usize) -> Self {
        Self { elements: ElementParser::new(element_bytes_max), head: Head::Waiting(Vec::new()) }
    }

    /// Splits more bytes; calls `out` for each complete element.
    pub fn push(&mut self, bytes: &[u8], out: &mut impl FnMut(Element<'_>)) {
        let head = match &mut self.head {
            Head::Begun => return self.elements.push(bytes, out),
            Head::Refused(_) => return,
            Head::Waiting(head) => head,
        };
        let n_kept = bytes.len().min(PREAMBLE_BYTES_MAX - head.len());
        head.extend_from_slice(&bytes[..n_kept]);
        match start_of(head) {
            Start::At(at) => {
                self.elements.push(&head[at..], out);
                self.elements.push(&bytes[n_kept..], out);
                self.head = Head::Begun;
            }
            Start::Never(reason) => self.head = Head::Refused(reason),
            Start::Unknown if head.len() == PREAMBLE_BYTES_MAX => {
                self.head = Head::Refused(NotAList::SomethingElse);
            }
            Start::Unknown => {}
        }
    }

    /// Ends the list. An element without its end is dropped.
    pub fn finish(self) -> ListEnd {
        match self.head {
            Head::Begun => self.elements.finish(),
            Head::Refused(reason) => ListEnd::NotAList(reason),
            Head::Waiting(head) => ListEnd::NotAList(match head.trim_ascii().first() {
                None => NotAList::Nothing,
                Some(b'<') => NotAList::WebPage,
                Some(_) => NotAList::SomethingElse,
            }),
        }
    }
}

/// Finds the beginning of a list or an object. After other text, only one counts whose first element is visible, because
/// a bracket is also part of ordinary text.
fn start_of(head: &[u8]) -> Start {
    let is_blank = |it: &u8| matches!(it, 0..=b' ' | 0xEF | 0xBB | 0xBF);
    let Some(first) = head.iter().position(|it| !is_blank(it)) else { return Start::Unknown };
    match head[first] {
        b'[' | b'{' => return Start::At(first),
        b'<' if is_page(&head[first..]) => return Start::Never(NotAList::WebPage),
        _ => {}
    }
    for (at, byte) in head.iter().enumerate().filter(|it| matches!(it.1, b'[' | b'{')) {
        let next = head[at + 1..].iter().find(|it| !it.is_ascii_whitespace());
        match (byte, next) {
            (b'[', Some(b'{')) | (b'{', Some(b'"')) => return Start::At(at),
            (_, None) => return Start::Unknown,
            _ => {}
        }
    }
    Start::Unknown
}

/// Returns whether this is the beginning of a whole page, and not a warning with some markup before a list.
fn is_page(bytes: &[u8]) -> bool {
    let starts = |tag: &str| bytes.get(..tag.len()).is_some_and(|it| it.eq_ignore_ascii_case(tag.as_bytes()));
    ["<html", "<!doctype", "<head", "<body", "<?xml", "<script"].into_iter().any(starts)
}

/// Returns the object or list of an answer that was received whole, without the text before it.
pub(super) fn without_preamble(bytes: &[u8]) -> Result<&[u8], NotAList> {
    let head = &bytes[..bytes.len().min(PREAMBLE_BYTES_MAX)];
    match start_of(head) {
        Start::At(at) => Ok(&bytes[at..]),
        Start::Never(reason) => Err(reason),
        Start::Unknown => Err(match head.trim_ascii().first() {
            None => NotAList::Nothing,
            Some(b'<') => NotAList::WebPage,
            Some(_) => NotAList::SomethingElse,
        }),
    }
}
