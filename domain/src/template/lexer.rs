//! From a source to texts, tags and the words in tags.

use super::error::TemplateError;

/// A part of a source.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part<'a> {
    Text {
        at: usize,
        text: &'a str,
    },
    /// `{{ … }}`, without the braces.
    Value(Vec<Token<'a>>, Edges),
    /// `{% … %}`.
    Tag(Vec<Token<'a>>, Edges),
}

/// Where a tag begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Edges {
    pub(super) start: usize,
    /// The offset of the closing braces.
    pub(super) end: usize,
}

/// A word in a tag.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Token<'a> {
    pub(super) at: usize,
    pub(super) kind: TokenKind<'a>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum TokenKind<'a> {
    Name(&'a str),
    Text(String),
    Number(&'a str),
    /// One of [`SIGNS`].
    Sign(&'static str),
}

/// The signs of the language, longer ones first.
const SIGNS: [&str; 11] = ["==", "!=", "<=", ">=", "<", ">", "|", "(", ")", ",", ":"];

/// Splits a source.
pub(super) fn split(source: &str) -> Result<Vec<Part<'_>>, TemplateError> {
    let fault = |at: usize, reason: &str| TemplateError::at(source, at, reason);
    let (mut parts, mut at) = (Vec::new(), 0);
    while at < source.len() {
        let Some(start) = next_opening(source, at) else {
            parts.push(Part::Text { at, text: &source[at..] });
            break;
        };
        if start > at {
            parts.push(Part::Text { at, text: &source[at..start] });
        }
        let inside = start + 2;
        if source[start..].starts_with("{#") {
            let length = source[inside..]
                .find("#}")
                .ok_or_else(|| fault(start, "the comment has no end: #} is missing"))?;
            at = inside + length + 2;
            continue;
        }
        let is_value = source[start..].starts_with("{{");
        let closing = if is_value { "}}" } else { "%}" };
        let (tokens, end) = tokens(source, inside, closing)?
            .ok_or_else(|| fault(start, &format!("the tag has no end: {closing} is missing")))?;
        let edges = Edges { start, end };
        parts.push(if is_value { Part::Value(tokens, edges) } else { Part::Tag(tokens, edges) });
        at = end + 2;
    }
    Ok(parts)
}

/// Returns the offset of the next tag or comment.
fn next_opening(source: &str, from: usize) -> Option<usize> {
    let mut at = from;
    loop {
        let found = at + source[at..].find('{')?;
        if matches!(source.as_bytes().get(found + 1), Some(b'{' | b'%' | b'#')) {
            return Some(found);
        }
        at = found + 1;
    }
}

/// Returns the words up to the closing braces, and the offset of these; `None` if they are missing.
fn tokens<'a>(
    source: &'a str,
    from: usize,
    closing: &str,
) -> Result<Option<(Vec<Token<'a>>, usize)>, TemplateError> {
    let (mut tokens, mut at) = (Vec::new(), from);
    loop {
        at += source[at..].len() - source[at..].trim_start().len();
        let rest = &source[at..];
        if rest.starts_with(closing) {
            return Ok(Some((tokens, at)));
        }
        let Some(first) = rest.chars().next() else { return Ok(None) };
        let (kind, length) = match first {
            '"' | '\'' => match text(rest, first) {
                Some((text, length)) => (TokenKind::Text(text), length),
                None => return Err(TemplateError::at(source, at, "the text in quotes has no end")),
            },
            '-' | '0'..='9' => {
                let length = 1 + length_while(&rest[1..], |it| it.is_ascii_digit() || it == '.');
                (TokenKind::Number(&rest[..length]), length)
            }
            _ if is_word(first) => {
                let length = length_while(rest, |it| is_word(it) || it.is_ascii_digit());
                (TokenKind::Name(&rest[..length]), length)
            }
            _ => match SIGNS.into_iter().find(|it| rest.starts_with(it)) {
                Some(sign) => (TokenKind::Sign(sign), sign.len()),
                None => return Err(TemplateError::at(source, at, format!("unexpected {first:?}"))),
            },
        };
        tokens.push(Token { at, kind });
        at += length;
    }
}

fn is_word(char: char) -> bool {
    char.is_ascii_alphabetic() || char == '_'
}

fn length_while(text: &str, is_part: impl Fn(char) -> bool) -> usize {
    text.find(|it| !is_part(it)).unwrap_or(text.len())
}

/// Reads a text in quotes. Returns it with the length of its source; `None` without an end.
fn text(rest: &str, quote: char) -> Option<(String, usize)> {
    let mut text = String::new();
    let mut chars = rest.char_indices().skip(1);
    while let Some((at, char)) = chars.next() {
        match char {
            '\\' => text.push(match chars.next()?.1 {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                other => other,
            }),
            _ if char == quote => return Some((text, at + 1)),
            _ => text.push(char),
        }
    }
    None
}
