//! Letters: without accents, and Cyrillic and Greek ones in Latin letters.

use icu_normalizer::DecomposingNormalizerBorrowed;

/// Returns the compatible basic form of a text: superscript and wide letters become plain ones, accents are removed, and
/// signs such as ™ are left out. The case stays.
pub(crate) fn plain(text: &str) -> String {
    if text.is_ascii() {
        return text.to_owned();
    }
    let text: String = text.chars().filter(|it| !matches!(it, '™' | '®' | '©' | '℠' | '´' | 'ʼ')).collect();
    let decomposed = DecomposingNormalizerBorrowed::new_nfkd().normalize(&text);
    let mut plain = String::with_capacity(decomposed.len());
    for it in decomposed.chars() {
        match it {
            // Combining marks of European scripts, of Hebrew and of Arabic, and joiners without width.
            '\u{300}'..='\u{36f}'
            | '\u{591}'..='\u{5c7}'
            | '\u{64b}'..='\u{65f}'
            | '\u{670}'
            | '\u{1ab0}'..='\u{1aff}'
            | '\u{1dc0}'..='\u{1dff}'
            | '\u{200b}'..='\u{200f}'
            | '\u{20d0}'..='\u{20ff}'
            | '\u{fe00}'..='\u{fe2f}'
            | '\u{feff}' => {}
            'ß' => plain.push_str("ss"),
            'æ' => plain.push_str("ae"),
            'Æ' => plain.push_str("AE"),
            'œ' => plain.push_str("oe"),
            'Œ' => plain.push_str("OE"),
            'ø' => plain.push('o'),
            'Ø' => plain.push('O'),
            'ł' => plain.push('l'),
            'Ł' => plain.push('L'),
            'đ' | 'ð' => plain.push('d'),
            'Đ' | 'Ð' => plain.push('D'),
            'ı' => plain.push('i'),
            'þ' => plain.push_str("th"),
            'Þ' => plain.push_str("TH"),
            other => plain.push(other),
        }
    }
    plain
}

/// Returns a form in which a Cyrillic or Greek text and its usual spellings in Latin letters are the same; `None` if the
/// text has letters of other scripts. Expects lower case without accents.
pub(super) fn sound(text: &str) -> Option<String> {
    let mut latin = String::with_capacity(text.len());
    for it in text.chars() {
        match it {
            it if it.is_ascii() => latin.push(it),
            it => latin.push_str(latin_of(it)?),
        }
    }
    for (spelling, short) in [
        ("shch", "s"),
        ("sch", "s"),
        ("sh", "s"),
        ("zh", "z"),
        ("kh", "h"),
        ("ch", "c"),
        ("ts", "c"),
        ("tz", "c"),
        ("ph", "f"),
        ("th", "t"),
        ("ou", "u"),
    ] {
        if latin.contains(spelling) {
            latin = latin.replace(spelling, short);
        }
    }
    let mut sound = String::with_capacity(latin.len());
    for it in latin.chars() {
        let it = if matches!(it, 'y' | 'j') { 'i' } else { it };
        if !sound.ends_with(it) || it.is_ascii_digit() {
            sound.push(it);
        }
    }
    Some(sound)
}

/// Returns whether a text has Cyrillic or Greek letters.
pub(super) fn is_foreign(text: &str) -> bool {
    text.chars().any(|it| latin_of(it).is_some())
}

/// Returns the Latin spelling of a Cyrillic or Greek letter.
fn latin_of(letter: char) -> Option<&'static str> {
    Some(match letter {
        'а' | 'α' => "a",
        'б' => "b",
        'в' | 'β' => "v",
        'г' | 'ґ' | 'γ' => "g",
        'д' | 'δ' => "d",
        'е' | 'э' | 'є' | 'ε' => "e",
        'ж' => "zh",
        'з' | 'ζ' => "z",
        'и' | 'і' | 'ι' | 'η' | 'й' => "i",
        'ј' => "j",
        'к' | 'κ' => "k",
        'л' | 'λ' => "l",
        'љ' => "lj",
        'м' | 'μ' => "m",
        'н' | 'ν' => "n",
        'њ' => "nj",
        'о' | 'ο' | 'ω' => "o",
        'п' | 'π' => "p",
        'р' | 'ρ' => "r",
        'с' | 'σ' | 'ς' => "s",
        'т' | 'τ' => "t",
        'ћ' | 'ђ' => "c",
        'у' => "u",
        'υ' => "y",
        'ф' | 'φ' => "f",
        'х' | 'χ' => "h",
        'ц' => "c",
        'ч' => "ch",
        'џ' => "dzh",
        'ш' => "sh",
        'щ' => "shch",
        'ъ' | 'ь' => "",
        'ы' => "y",
        'ю' => "yu",
        'я' => "ya",
        'θ' => "th",
        'ξ' => "ks",
        'ψ' => "ps",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_decorated_letters_become_plain_ones() {
        for (text, expected) in [
            ("Télé Québec", "Tele Quebec"),
            ("ᴴᴰ ⁴ᴷ ＳＫＹ", "HD 4K SKY"),
            ("Łódź Øst Straße", "Lodz Ost Strasse"),
            ("ESPN™", "ESPN"),
            ("TRT Türkiye ılıca", "TRT Turkiye ilica"),
            ("Россия", "Россия"),
        ] {
            assert_eq!(plain(text), expected);
        }
    }

    #[test]
    fn spellings_in_latin_letters_have_the_same_sound() {
        for (text, latin) in [
            ("первый канал", "pervyj kanal"),
            ("первый канал", "pervyi kanal"),
            ("россия", "rossiya"),
            ("звезда", "zvezda"),
            ("мир", "mir"),
            ("αντ", "ant"),
        ] {
            assert_eq!(sound(&plain(text)), sound(&plain(latin)), "{text}");
        }
        assert_eq!(sound("新聞"), None);
    }
}
