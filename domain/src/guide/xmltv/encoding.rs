//! Encodings of guides: by byte-order mark, by the XML declaration, and by looking at each element if both are wrong.

use std::borrow::Cow;

use encoding_rs::{Decoder, Encoding, ISO_2022_JP, UTF_8, UTF_16BE, UTF_16LE};
use memchr::memmem;

use crate::playlist::m3u::text;

/// Bytes in which the XML declaration is looked for.
pub(super) const DECLARATION_BYTES: usize = 1024;

/// The encoding of a guide.
pub(super) enum GuideEncoding {
    /// `<`, `>` and quotes are the same bytes as in ASCII, so elements are found first and decoded after.
    Elements(ElementEncoding),
    /// The bytes are converted as they arrive.
    Stream(Box<Decoder>),
}

/// The encoding of single elements.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementEncoding {
    /// The declared one, unless it is UTF-8.
    declared: Option<&'static Encoding>,
}

impl GuideEncoding {
    /// Detects the encoding by the first bytes of a guide. Also returns the length of the byte-order mark.
    pub(super) fn detect(start: &[u8]) -> (Self, usize) {
        match start {
            [0xEF, 0xBB, 0xBF, ..] => (Self::Elements(ElementEncoding { declared: None }), 3),
            [0xFF, 0xFE, ..] => (Self::stream(UTF_16LE), 2),
            [0xFE, 0xFF, ..] => (Self::stream(UTF_16BE), 2),
            [b'<', 0, ..] => (Self::stream(UTF_16LE), 0),
            [0, b'<', ..] => (Self::stream(UTF_16BE), 0),
            _ => match declared(start) {
                Some(it) if it == ISO_2022_JP => (Self::stream(it), 0),
                it => (Self::Elements(ElementEncoding::from_declared(it)), 0),
            },
        }
    }

    fn stream(encoding: &'static Encoding) -> Self {
        Self::Stream(Box::new(encoding.new_decoder_without_bom_handling()))
    }
}

impl ElementEncoding {
    /// UTF-8.
    pub(super) const UTF_8: Self = Self { declared: None };

    /// Encodings that are not similar to ASCII cannot be true: the declaration was read as ASCII.
    fn from_declared(declared: Option<&'static Encoding>) -> Self {
        Self { declared: declared.filter(|it| it.is_ascii_compatible() && *it != UTF_8) }
    }

    /// Returns the number of characters; of bytes in an encoding other than UTF-8.
    pub(super) fn n_chars(self, bytes: &[u8]) -> usize {
        match self.declared {
            Some(_) => bytes.len(),
            // The other bytes of a character begin with the bits 10.
            None => bytes.iter().filter(|it| **it & 0xC0 != 0x80).count(),
        }
    }

    /// Decodes an element.
    ///
    /// Text in another encoding is hardly ever valid UTF-8, so valid UTF-8 counts as such whatever is declared, except
    /// for encodings of East Asia, where short texts can be valid in both.
    pub(super) fn decode(self, bytes: &[u8]) -> Cow<'_, str> {
        let Some(declared) = self.declared else { return text::decode(bytes) };
        let utf_8 = std::str::from_utf8(bytes).ok();
        if let Some(text) = utf_8.filter(|it| it.is_ascii() || declared.is_single_byte()) {
            return text.into();
        }
        match declared.decode_without_bom_handling_and_without_replacement(bytes) {
            Some(text) => text,
            None => utf_8.map_or_else(|| declared.decode_without_bom_handling(bytes).0, Cow::Borrowed),
        }
    }
}

/// Returns the encoding of the elements after another XML declaration, as in guides that were joined; `None` if it names
/// none that can be true.
pub(super) fn declared_encoding(declaration: &[u8]) -> Option<ElementEncoding> {
    let found = declared(declaration).filter(|it| *it != ISO_2022_JP && it.is_ascii_compatible());
    found.map(|it| ElementEncoding::from_declared(Some(it)))
}

/// Returns the encoding that the XML declaration names.
fn declared(start: &[u8]) -> Option<&'static Encoding> {
    let at = memmem::find(start, b"<?xml")?;
    // Some declarations lack the question mark at their end.
    let length = memchr::memchr(b'>', &start[at..])?;
    let declaration = &start[at..at + length];
    let name = memmem::find(declaration, b"encoding")?;
    let value = declaration[name + b"encoding".len()..].trim_ascii_start().strip_prefix(b"=")?;
    let (quote, value) = value.trim_ascii_start().split_first()?;
    let end = value.iter().position(|it| it == quote)?;
    Encoding::for_label(&value[..end])
}

#[cfg(test)]
mod tests {
    use encoding_rs::{BIG5, GBK, SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

    use super::*;

    fn encoding_of(start: &str) -> Option<&'static Encoding> {
        match GuideEncoding::detect(start.as_bytes()).0 {
            GuideEncoding::Elements(it) => it.declared,
            GuideEncoding::Stream(_) => panic!("{start} is converted as a stream"),
        }
    }

    #[test]
    fn the_declaration_names_the_encoding_unless_it_cannot_be_true() {
        for (start, encoding) in [
            ("<?xml version='1.0' encoding='ISO-8859-1'?>", Some(WINDOWS_1252)),
            ("<?xml version=\"1.0\" encoding = \"windows-1251\" ?>", Some(WINDOWS_1251)),
            ("\n junk <?xml encoding='gbk'?>", Some(GBK)),
            ("<?xml encoding='utf8'?>", None),
            ("<?xml encoding='utf-16'?>", None),
            ("<?xml encoding='hz-gb-2312'?>", None),
            ("<?xml encoding='nonsense'?>", None),
            ("<?xml encoding='latin1", None),
            ("<?xml encoding='windows-1251'><tv>", Some(WINDOWS_1251)),
            ("<?xml encoding=''?>", None),
            ("<?xml version='1.0'?><a encoding='latin1'/>", None),
            ("", None),
        ] {
            assert_eq!(encoding_of(start), encoding, "{start}");
        }
    }

    #[test]
    fn an_element_is_decoded_as_declared_unless_it_is_utf_8() {
        let decode = |declared, bytes: &[u8]| ElementEncoding { declared }.decode(bytes).into_owned();
        assert_eq!(decode(None, b"M\xFCnchen \xC3\xA4"), "München ä");
        assert_eq!(decode(Some(WINDOWS_1251), b"\xCC\xE8\xF0"), "Мир");
        assert_eq!(decode(Some(WINDOWS_1251), "Мир".as_bytes()), "Мир");
        assert_eq!(decode(Some(GBK), b"\xC4\xE3\xBA\xC3"), "你好");
        assert_eq!(decode(Some(GBK), "你好吗".as_bytes()), "你好吗");
        assert_eq!(decode(Some(SHIFT_JIS), b"\x83\x65\x83\x8C\x83\x72 <a>"), "テレビ <a>");
        assert_eq!(decode(Some(BIG5), b"\xFF\xFFa"), "\u{FFFD}\u{FFFD}a");
    }
}
