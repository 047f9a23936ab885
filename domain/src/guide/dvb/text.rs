//! Texts (ETSI EN 300 468, annex A): a first byte selects the character set; without one it is ISO 6937.

use encoding_rs::{
    BIG5, EUC_KR, Encoding, GBK, ISO_8859_2, ISO_8859_3, ISO_8859_4, ISO_8859_5, ISO_8859_6, ISO_8859_7,
    ISO_8859_8, ISO_8859_10, ISO_8859_13, ISO_8859_14, ISO_8859_15, ISO_8859_16, UTF_8, UTF_16BE,
    WINDOWS_874, WINDOWS_1252, WINDOWS_1254,
};

/// Control codes of texts with one byte per character: a line break; all others are left out.
const LINE_BREAK: u8 = 0x8A;
/// The same code in texts with more bytes per character.
const WIDE_LINE_BREAK: char = '\u{E08A}';

/// How a text is encoded.
enum CharacterSet {
    Iso6937,
    /// One byte per character, with control codes from 0x80 to 0x9F.
    Narrow(&'static Encoding),
    /// Several bytes per character.
    Wide(&'static Encoding),
}

/// Decodes a text. What cannot be decoded is left out or becomes U+FFFD.
pub fn decode(bytes: &[u8]) -> String {
    let Some((set, text)) = character_set(bytes) else { return String::new() };
    let decoded = match set {
        CharacterSet::Iso6937 => iso_6937(text),
        CharacterSet::Narrow(encoding) => {
            let pieces = text.split_inclusive(|it| (0x80..0xA0).contains(it));
            let mut decoded = String::with_capacity(text.len());
            for piece in pieces {
                let control = piece.last().copied().filter(|it| (0x80..0xA0).contains(it));
                let plain = &piece[..piece.len() - usize::from(control.is_some())];
                decoded.push_str(&encoding.decode_without_bom_handling(plain).0);
                decoded.extend((control == Some(LINE_BREAK)).then_some('\n'));
            }
            decoded
        }
        CharacterSet::Wide(encoding) => encoding.decode_without_bom_handling(text).0.into_owned(),
    };
    let clean = decoded.chars().filter_map(|it| match it {
        WIDE_LINE_BREAK | '\n' => Some('\n'),
        '\u{E080}'..='\u{E09F}' => None,
        it if it.is_control() => None,
        it => Some(it),
    });
    clean.collect()
}

/// Returns the character set and the text behind its selection. `None` for an unknown or compressed one.
fn character_set(bytes: &[u8]) -> Option<(CharacterSet, &[u8])> {
    let first = *bytes.first()?;
    if first >= 0x20 {
        return Some(match is_utf_8(bytes) {
            true => (CharacterSet::Wide(UTF_8), bytes),
            false => (CharacterSet::Iso6937, bytes),
        });
    }
    let rest = &bytes[1..];
    let set = match first {
        0x01..=0x0B => CharacterSet::Narrow(iso_8859(first + 4)?),
        0x10 => {
            let (table, rest) = rest.split_first_chunk::<2>()?;
            let table = u8::try_from(u16::from_be_bytes(*table)).ok()?;
            return Some((CharacterSet::Narrow(iso_8859(table)?), rest));
        }
        0x11 => CharacterSet::Wide(UTF_16BE),
        0x12 => CharacterSet::Wide(EUC_KR),
        0x13 => CharacterSet::Wide(GBK),
        0x14 => CharacterSet::Wide(BIG5),
        0x15 => CharacterSet::Wide(UTF_8),
        // A text that begins with a line break or another control code.
        0x0C..=0x0F | 0x16..=0x1E => CharacterSet::Iso6937,
        // 0x1F selects an encoding that is private to a broadcaster; 0 does not occur in texts.
        _ => return None,
    };
    Some((set, rest))
}

/// Returns whether a text without selection is UTF-8, which some broadcasters send. ISO 6937 with letters beyond ASCII is
/// practically never valid UTF-8, because an accent is followed by a letter.
fn is_utf_8(bytes: &[u8]) -> bool {
    bytes.iter().any(|it| *it >= 0xC0) && std::str::from_utf8(bytes).is_ok()
}

/// Returns a part of ISO 8859. Parts 1, 9 and 11 are included in the code pages of Windows.
fn iso_8859(part: u8) -> Option<&'static Encoding> {
    Some(match part {
        1 => WINDOWS_1252,
        2 => ISO_8859_2,
        3 => ISO_8859_3,
        4 => ISO_8859_4,
        5 => ISO_8859_5,
        6 => ISO_8859_6,
        7 => ISO_8859_7,
        8 => ISO_8859_8,
        9 => WINDOWS_1254,
        10 => ISO_8859_10,
        11 => WINDOWS_874,
        13 => ISO_8859_13,
        14 => ISO_8859_14,
        15 => ISO_8859_15,
        16 => ISO_8859_16,
        _ => return None,
    })
}

/// The upper half of ISO 6937 from 0xA0 on, without accents. A space stands for an unused code.
const UPPER_HALF: &str = "\u{A0}¡¢£€¥ §¤‘“«←↑→↓°±²³×µ¶·÷’”»¼½¾¿                ―¹®©™♪¬¦    ⅛⅜⅝⅞ΩÆĐªĦ ĲĿŁØŒºÞŦŊŉĸæđðħıĳŀłøœßþŧŋ\u{AD}";

/// The accents of ISO 6937, which precede their letter: the code, the combining character, and letters with and without
/// the accent.
const ACCENTS: [(u8, char, &str, &str); 13] = [
    (0xC1, '\u{300}', "AEIOUaeiou", "ÀÈÌÒÙàèìòù"),
    (0xC2, '\u{301}', "ACEILNORSUYZaceilnorsuyz", "ÁĆÉÍĹŃÓŔŚÚÝŹáćéíĺńóŕśúýź"),
    (0xC3, '\u{302}', "ACEGHIJOSUWYaceghijosuwy", "ÂĈÊĜĤÎĴÔŜÛŴŶâĉêĝĥîĵôŝûŵŷ"),
    (0xC4, '\u{303}', "AINOUainou", "ÃĨÑÕŨãĩñõũ"),
    (0xC5, '\u{304}', "AEIOUaeiou", "ĀĒĪŌŪāēīōū"),
    (0xC6, '\u{306}', "AGUagu", "ĂĞŬăğŭ"),
    (0xC7, '\u{307}', "CEGIZcegz", "ĊĖĠİŻċėġż"),
    (0xC8, '\u{308}', "AEIOUYaeiouy", "ÄËÏÖÜŸäëïöüÿ"),
    (0xCA, '\u{30A}', "AUau", "ÅŮåů"),
    (0xCB, '\u{327}', "CGKLNRSTcklnrst", "ÇĢĶĻŅŖŞŢçķļņŗşţ"),
    (0xCD, '\u{30B}', "OUou", "ŐŰőű"),
    (0xCE, '\u{328}', "AEIUaeiu", "ĄĘĮŲąęįų"),
    (0xCF, '\u{30C}', "CDELNRSTZcdelnrstz", "ČĎĚĽŇŘŠŤŽčďěľňřšťž"),
];

fn iso_6937(text: &[u8]) -> String {
    let mut decoded = String::with_capacity(text.len() + 8);
    let mut bytes = text.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        match byte {
            0x20..0x7F | b'\n' => decoded.push(char::from(byte)),
            LINE_BREAK => decoded.push('\n'),
            0x00..0xA0 => {}
            0xC0..=0xCF => {
                let Some(accent) = ACCENTS.iter().find(|it| it.0 == byte) else { continue };
                let Some(letter) = bytes.next_if(u8::is_ascii_alphabetic).map(char::from) else { continue };
                let (_, combining, plain, accented) = accent;
                match plain.chars().zip(accented.chars()).find(|it| it.0 == letter) {
                    Some((_, accented)) => decoded.push(accented),
                    None => decoded.extend([letter, *combining]),
                }
            }
            0xA0..=0xFF => {
                let found = UPPER_HALF.chars().nth(usize::from(byte - 0xA0));
                decoded.extend(found.filter(|it| *it != ' '));
            }
        }
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_selection_of_a_character_set_is_followed() {
        for (bytes, expected) in [
            (&b"News"[..], "News"),
            (b"\x05M\xFCnchen", "München"),
            (b"\x01\xBD\xDE\xD2\xDE\xE1\xE2\xD8", "Новости"),
            (b"\x03\xC5\xE9\xE4\xDE\xF3\xE5\xE9\xF2", "Ειδήσεις"),
            (b"\x0B\xA4uro", "€uro"),
            (b"\x10\x00\x02\xA3\xF3d\xBC", "Łódź"),
            (b"\x10\x00\x01caf\xE9", "café"),
            (b"\x11\x04\x1D\x04\x3E", "Но"),
            (b"\x13\xD0\xC2\xCE\xC5", "新闻"),
            (b"\x15M\xC3\xBCnchen \xE2\x82\xAC", "München €"),
            (b"M\xC3\xBCnchen", "München"),
            (b"\x1F\x01\x02", ""),
            (b"\x10\x00", ""),
            (b"\x10\x00\x0C1", ""),
            (b"\x00", ""),
            (b"", ""),
        ] {
            assert_eq!(decode(bytes), expected, "{bytes:?}");
        }
    }

    #[test]
    fn iso_6937_joins_accents_and_letters() {
        for (bytes, expected) in [
            (&b"M\xC8unchen"[..], "München"),
            (b"\xCFCesk\xC2y \xCEe", "Český ę"),
            (b"\xC1x\xC1", "x\u{300}"),
            (b"Gro\xFB \xA4 \xD0 \xFF", "Groß € ― \u{AD}"),
            (b"\xC9a\xC0b\xA6c\xD8", "abc"),
            (b"\xC2", ""),
        ] {
            assert_eq!(decode(bytes), expected, "{bytes:?}");
        }
        assert_eq!(UPPER_HALF.chars().count(), 0x60);
        for (_, _, plain, accented) in ACCENTS {
            assert_eq!(plain.chars().count(), accented.chars().count(), "{plain}");
        }
    }

    #[test]
    fn control_codes_are_line_breaks_or_left_out() {
        assert_eq!(decode(b"\x86One\x87\x8Atwo\x00\x07"), "One\ntwo");
        assert_eq!(decode(b"\x05\x86One\x87\x8Atwo"), "One\ntwo");
        assert_eq!(decode("\u{15}\u{E086}One\u{E08A}two".as_bytes()), "One\ntwo");
    }

    #[test]
    fn any_bytes_are_decoded_within_bounds() {
        for first in 0..=255 {
            for second in 0..=255 {
                let text = decode(&[first, second, 0xC2, 0x41, 0xFF]);
                assert!(text.len() <= 24 && !text.contains('\0'), "{first} {second}");
            }
        }
    }
}
