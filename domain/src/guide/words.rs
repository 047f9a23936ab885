//! Splits texts of guides into words, for the index of guide files and for the queries against it.

/// Maximum length of a word, in bytes. The rest of a longer word does not count.
pub const WORD_BYTES_MAX: usize = 48;

/// Splits texts into words: runs of letters and digits, in lower case and without accents. An ideograph is a word of its
/// own, because the languages that use them put no spaces between words.
#[derive(Debug, Default)]
pub struct WordSplitter {
    word: String,
}

impl WordSplitter {
    /// Calls `visit` with each word of the text, in order.
    pub fn split(&mut self, text: &str, mut visit: impl FnMut(&str)) {
        self.word.clear();
        for it in text.chars() {
            match it {
                'a'..='z' | '0'..='9' => self.push(it),
                'A'..='Z' => self.push(it.to_ascii_lowercase()),
                _ if it.is_ascii() => self.end(&mut visit),
                _ => it.to_lowercase().for_each(|it| self.add(it, &mut visit)),
            }
        }
        self.end(&mut visit);
    }

    /// Adds a character that is not ASCII, or comes from one.
    fn add(&mut self, it: char, visit: &mut impl FnMut(&str)) {
        if let Some(base) = without_accent(it) {
            self.push(base);
        } else if is_ideograph(it) {
            self.end(visit);
            self.push(it);
            self.end(visit);
        } else if it.is_alphanumeric() {
            self.push(it);
        } else if !is_combining_accent(it) {
            self.end(visit);
        }
    }

    fn push(&mut self, it: char) {
        if self.word.len() + it.len_utf8() <= WORD_BYTES_MAX {
            self.word.push(it);
        }
    }

    fn end(&mut self, visit: &mut impl FnMut(&str)) {
        if !self.word.is_empty() {
            visit(&self.word);
            self.word.clear();
        }
    }
}

/// Returns the words of a text.
pub fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    WordSplitter::default().split(text, |word| found.push(word.to_owned()));
    found
}

/// Returns the text in lower case, character by character, so that the result of a part does not depend on its
/// surroundings.
pub fn lower(text: &str) -> String {
    let mut out = String::new();
    lower_into(text, &mut out);
    out
}

/// Writes the text in lower case, as [`lower`] returns it, into `out`, which it replaces.
pub fn lower_into(text: &str, out: &mut String) {
    out.clear();
    if text.is_ascii() {
        out.push_str(text);
        out.make_ascii_lowercase();
    } else {
        out.extend(text.chars().flat_map(char::to_lowercase));
    }
}

/// Accents that are characters of their own, after the letter.
fn is_combining_accent(it: char) -> bool {
    matches!(it, '\u{300}'..='\u{36F}')
}

fn is_ideograph(it: char) -> bool {
    matches!(it, '\u{3040}'..='\u{30FF}' | '\u{3400}'..='\u{4DBF}' | '\u{4E00}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

/// Returns the letter of a Latin letter with an accent; lower case only.
fn without_accent(it: char) -> Option<char> {
    Some(match it {
        'à'..='å' | 'ā'..='ą' | 'ǎ' | 'ạ'..='ặ' => 'a',
        'ç' | 'ć'..='č' => 'c',
        'ď' | 'đ' => 'd',
        'è'..='ë' | 'ē'..='ě' | 'ẹ'..='ệ' => 'e',
        'ĝ'..='ģ' => 'g',
        'ĥ' | 'ħ' => 'h',
        'ì'..='ï' | 'ĩ'..='ı' | 'ỉ' | 'ị' => 'i',
        'ĵ' => 'j',
        'ķ' => 'k',
        'ĺ'..='ł' => 'l',
        'ñ' | 'ń'..='ň' => 'n',
        'ò'..='ö' | 'ø' | 'ō'..='ő' | 'ơ' | 'ọ'..='ợ' => 'o',
        'ŕ'..='ř' => 'r',
        'ś'..='š' | 'ș' => 's',
        'ţ'..='ŧ' | 'ț' => 't',
        'ù'..='ü' | 'ũ'..='ų' | 'ư' | 'ụ'..='ự' => 'u',
        'ŵ' => 'w',
        'ý' | 'ÿ' | 'ŷ' | 'ỳ'..='ỹ' => 'y',
        'ź'..='ž' => 'z',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_in_lower_case_and_without_accents() {
        for (text, expected) in [
            ("The 10 o'clock News", "the 10 o clock news"),
            ("Pokémon: ÉTÉ Čapek", "pokemon ete capek"),
            ("Pokemon\u{301} \u{130}stanbul", "pokemon istanbul"),
            ("Straße Žižkov Łódź Nguyễn", "straße zizkov lodz nguyen"),
            ("Вести-24", "вести 24"),
            ("東京 news東", "東 京 news 東"),
            ("뉴스 데스크", "뉴스 데스크"),
            (" --- ", ""),
        ] {
            assert_eq!(words(text).join(" "), expected, "{text}");
        }
    }

    #[test]
    fn the_rest_of_a_long_word_does_not_count() {
        let text = format!("{}ä b", "x".repeat(WORD_BYTES_MAX));
        assert_eq!(words(&text), ["x".repeat(WORD_BYTES_MAX), "b".to_owned()]);
    }

    proptest! {
        #[test]
        fn the_lower_case_of_a_text_is_that_of_its_characters(text in "\\PC{0,20}|[ -~]{0,20}", before in "\\PC{0,9}") {
            let expected: String = text.chars().flat_map(char::to_lowercase).collect();
            let mut out = before;
            lower_into(&text, &mut out);
            prop_assert_eq!(&out, &expected);
            prop_assert_eq!(lower(&text), expected);
        }

        #[test]
        fn words_of_a_text_are_those_of_the_text_in_lower_case(text in "\\PC{0,40}") {
            let found = words(&text);
            prop_assert_eq!(&found, &words(&lower(&text)));
            for word in found {
                prop_assert!(!word.is_empty() && word.len() <= WORD_BYTES_MAX);
                prop_assert_eq!(words(&word), [word]);
            }
        }
    }
}
