//! Letters that guides use for marks only: superscript, small, circled and squared ones.

/// Returns the plain lower-case letter or digit of a letter that is set apart from other text. Digits in superscript of
/// Latin-1 are none, because names have them.
pub(super) fn plain_letter(it: char) -> Option<char> {
    let letter = |first: char| char::from_u32('a' as u32 + (it as u32 - first as u32));
    Some(match it {
        '\u{24B6}'..='\u{24CF}' => letter('\u{24B6}')?,
        '\u{24D0}'..='\u{24E9}' => letter('\u{24D0}')?,
        '\u{1F130}'..='\u{1F149}' => letter('\u{1F130}')?,
        '\u{1F150}'..='\u{1F169}' => letter('\u{1F150}')?,
        '\u{1F170}'..='\u{1F189}' => letter('\u{1F170}')?,
        '\u{1F1E6}'..='\u{1F1FF}' => letter('\u{1F1E6}')?,
        'ᴬ' | 'ᵃ' | 'ᴀ' | 'ᵅ' => 'a',
        'ᴮ' | 'ᵇ' | 'ʙ' => 'b',
        'ᶜ' | 'ꟲ' | 'ᴄ' => 'c',
        'ᴰ' | 'ᵈ' | 'ᴅ' => 'd',
        'ᴱ' | 'ᵉ' | 'ᴇ' => 'e',
        'ᶠ' | 'ꟳ' | 'ꜰ' => 'f',
        'ᴳ' | 'ᵍ' | 'ɢ' => 'g',
        'ᴴ' | 'ʰ' | 'ʜ' => 'h',
        'ᴵ' | 'ⁱ' | 'ᶦ' | 'ᶤ' | 'ɪ' => 'i',
        'ᴶ' | 'ʲ' | 'ᴊ' => 'j',
        'ᴷ' | 'ᵏ' | 'ᴋ' => 'k',
        'ᴸ' | 'ˡ' | 'ᶫ' | 'ʟ' => 'l',
        'ᴹ' | 'ᵐ' | 'ᴍ' => 'm',
        'ᴺ' | 'ⁿ' | 'ᶰ' | 'ɴ' => 'n',
        'ᴼ' | 'ᵒ' | 'ᴏ' => 'o',
        'ᴾ' | 'ᵖ' | 'ᴘ' => 'p',
        'ꟴ' | '𐞥' => 'q',
        'ᴿ' | 'ʳ' | 'ʀ' => 'r',
        'ˢ' | 'ꜱ' => 's',
        'ᵀ' | 'ᵗ' | 'ᴛ' => 't',
        'ᵁ' | 'ᵘ' | 'ᴜ' => 'u',
        'ⱽ' | 'ᵛ' | 'ᴠ' => 'v',
        'ᵂ' | 'ʷ' | 'ᴡ' => 'w',
        'ˣ' => 'x',
        'ʸ' | 'ʏ' => 'y',
        'ᶻ' | 'ᴢ' => 'z',
        '⁰' => '0',
        '⁴'..='⁹' => char::from_u32('4' as u32 + (it as u32 - '⁴' as u32))?,
        _ => return None,
    })
}

/// Returns whether a character is a mark by itself.
fn is_symbol(it: char) -> bool {
    matches!(it, '🆕' | '🈟' | '🈞' | '🈢' | '🈑' | '🔴')
}

/// Returns whether a character is a part of a mark wherever it is.
pub(crate) fn is_glyph(it: char) -> bool {
    is_symbol(it) || plain_letter(it).is_some()
}

/// Returns the text with plain letters in place of those that are set apart.
pub(crate) fn plain(text: &str) -> String {
    // Emoji can have a selector after them.
    text.chars().filter(|it| *it != '\u{FE0F}').map(|it| plain_letter(it).unwrap_or(it)).collect()
}
