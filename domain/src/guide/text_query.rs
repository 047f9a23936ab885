//! The grammar of text searches: words, phrases in quotes, `AND`, `OR` and parentheses.
//!
//! Words next to each other must all occur, as with `AND`. `AND` binds tighter than `OR`. Both are operators in capital
//! letters only. A quote inside of a word is part of it.

use std::fmt;

/// Maximum length of a query, in characters.
pub const QUERY_CHARS_MAX: usize = 500;
/// Maximum number of words and phrases of a query.
pub const QUERY_TERMS_MAX: usize = 32;
/// Maximum number of parentheses inside of each other.
pub const QUERY_DEPTH_MAX: usize = 16;

/// A parsed query. `All` and `Any` have at least two members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextQuery {
    Term(TextTerm),
    All(Vec<TextQuery>),
    Any(Vec<TextQuery>),
}

/// A word or a phrase of a query. Not empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextTerm {
    pub text: String,
    /// Whether it was in quotes.
    pub is_phrase: bool,
}

/// The reason why a query is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TextQueryError {
    #[error("the search text is empty")]
    Empty,
    #[error("the search text has more than {QUERY_CHARS_MAX} characters")]
    TooLong,
    #[error("the search text has more than {QUERY_TERMS_MAX} words and phrases")]
    TooManyTerms,
    #[error("more than {QUERY_DEPTH_MAX} parentheses are inside of each other")]
    TooDeep,
    #[error("a quote is not closed")]
    OpenQuote,
    #[error("a phrase in quotes is empty")]
    EmptyPhrase,
    #[error("a parenthesis is not closed")]
    OpenParenthesis,
    #[error("a parenthesis is closed that was not opened")]
    StrayParenthesis,
    #[error("a word is missing before or after AND, OR or inside of parentheses")]
    MissingTerm,
}

/// A part of the text of a query.
#[derive(Debug, PartialEq, Eq)]
enum Token {
    And,
    Or,
    Open,
    Close,
    Term(TextTerm),
}

impl TextQuery {
    /// Parses a query.
    ///
    /// # Errors
    /// Returns an error if it does not follow the grammar or exceeds a limit.
    pub fn parse(text: &str) -> Result<Self, TextQueryError> {
        if text.chars().nth(QUERY_CHARS_MAX).is_some() {
            return Err(TextQueryError::TooLong);
        }
        let tokens = tokens(text)?;
        if tokens.is_empty() {
            return Err(TextQueryError::Empty);
        }
        if tokens.iter().filter(|it| matches!(it, Token::Term(_))).count() > QUERY_TERMS_MAX {
            return Err(TextQueryError::TooManyTerms);
        }
        let mut parser = Parser { tokens: tokens.into_iter().peekable(), depth: 0 };
        let query = parser.any()?;
        match parser.tokens.next() {
            None => Ok(query),
            Some(_) => Err(TextQueryError::StrayParenthesis),
        }
    }

    /// Returns whether a text matches, given whether it contains a term.
    pub fn matches(&self, contains: &impl Fn(&TextTerm) -> bool) -> bool {
        match self {
            Self::Term(term) => contains(term),
            Self::All(parts) => parts.iter().all(|it| it.matches(contains)),
            Self::Any(parts) => parts.iter().any(|it| it.matches(contains)),
        }
    }

    /// Combines queries, all of which must match. `None` without a query.
    pub fn all(parts: Vec<Self>) -> Option<Self> {
        combined(parts, Self::All)
    }

    /// Combines queries, one of which must match. `None` without a query.
    pub fn any(parts: Vec<Self>) -> Option<Self> {
        combined(parts, Self::Any)
    }
}

fn combined(mut parts: Vec<TextQuery>, several: fn(Vec<TextQuery>) -> TextQuery) -> Option<TextQuery> {
    if parts.len() > 1 { Some(several(parts)) } else { parts.pop() }
}

/// Writes the query so that parsing it gives the same query.
impl fmt::Display for TextQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, operator) = match self {
            Self::Term(term) if term.is_phrase => return write!(f, "\"{}\"", term.text),
            Self::Term(term) => return f.write_str(&term.text),
            Self::All(parts) => (parts, " AND "),
            Self::Any(parts) => (parts, " OR "),
        };
        for (n, part) in parts.iter().enumerate() {
            if n > 0 {
                f.write_str(operator)?;
            }
            match part {
                Self::Term(_) => write!(f, "{part}")?,
                Self::All(_) | Self::Any(_) => write!(f, "({part})")?,
            }
        }
        Ok(())
    }
}

fn tokens(text: &str) -> Result<Vec<Token>, TextQueryError> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, after) = match first {
            '(' => (Token::Open, &rest[1..]),
            ')' => (Token::Close, &rest[1..]),
            '"' => {
                let (phrase, after) = rest[1..].split_once('"').ok_or(TextQueryError::OpenQuote)?;
                let text = phrase.trim().to_owned();
                if text.is_empty() {
                    return Err(TextQueryError::EmptyPhrase);
                }
                (Token::Term(TextTerm { text, is_phrase: true }), after)
            }
            _ => {
                let ends = |it: char| it.is_whitespace() || matches!(it, '(' | ')');
                let (word, after) = rest.split_at(rest.find(ends).unwrap_or(rest.len()));
                let token = match word {
                    "AND" => Token::And,
                    "OR" => Token::Or,
                    _ => Token::Term(TextTerm { text: word.to_owned(), is_phrase: false }),
                };
                (token, after)
            }
        };
        tokens.push(token);
        rest = after.trim_start();
    }
    Ok(tokens)
}

struct Parser<I: Iterator<Item = Token>> {
    tokens: std::iter::Peekable<I>,
    depth: usize,
}

impl<I: Iterator<Item = Token>> Parser<I> {
    fn any(&mut self) -> Result<TextQuery, TextQueryError> {
        let mut parts = vec![self.all()?];
        while self.tokens.next_if_eq(&Token::Or).is_some() {
            parts.push(self.all()?);
        }
        TextQuery::any(parts).ok_or(TextQueryError::MissingTerm)
    }

    fn all(&mut self) -> Result<TextQuery, TextQueryError> {
        let mut parts = vec![self.one()?];
        loop {
            match self.tokens.peek() {
                Some(Token::And) => {
                    self.tokens.next();
                    parts.push(self.one()?);
                }
                Some(Token::Term(_) | Token::Open) => parts.push(self.one()?),
                Some(Token::Or | Token::Close) | None => break,
            }
        }
        TextQuery::all(parts).ok_or(TextQueryError::MissingTerm)
    }

    fn one(&mut self) -> Result<TextQuery, TextQueryError> {
        match self.tokens.next() {
            Some(Token::Term(term)) => Ok(TextQuery::Term(term)),
            Some(Token::Open) => {
                self.depth += 1;
                if self.depth > QUERY_DEPTH_MAX {
                    return Err(TextQueryError::TooDeep);
                }
                let inside = self.any()?;
                self.depth -= 1;
                match self.tokens.next() {
                    Some(Token::Close) => Ok(inside),
                    _ => Err(TextQueryError::OpenParenthesis),
                }
            }
            Some(Token::And | Token::Or | Token::Close) | None => Err(TextQueryError::MissingTerm),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn word(text: &str) -> TextQuery {
        TextQuery::Term(TextTerm { text: text.to_owned(), is_phrase: false })
    }

    fn phrase(text: &str) -> TextQuery {
        TextQuery::Term(TextTerm { text: text.to_owned(), is_phrase: true })
    }

    #[test]
    fn words_must_all_occur_and_and_binds_tighter_than_or() {
        use TextQuery::{All, Any};
        for (text, expected) in [
            ("news", word("news")),
            (" late  news ", All(vec![word("late"), word("news")])),
            ("late AND news", All(vec![word("late"), word("news")])),
            ("a b OR c", Any(vec![All(vec![word("a"), word("b")]), word("c")])),
            ("a (b OR c)", All(vec![word("a"), Any(vec![word("b"), word("c")])])),
            ("((a))", word("a")),
            ("\"The News\" OR (weather)", Any(vec![phrase("The News"), word("weather")])),
            ("and or", All(vec![word("and"), word("or")])),
            ("\"AND\" rock\"n\"roll", All(vec![phrase("AND"), word("rock\"n\"roll")])),
            ("Größe AND 日本", All(vec![word("Größe"), word("日本")])),
        ] {
            assert_eq!(TextQuery::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_query_outside_of_the_grammar_is_refused_with_the_reason() {
        use TextQueryError::{
            Empty, EmptyPhrase, MissingTerm, OpenParenthesis, OpenQuote, StrayParenthesis, TooDeep, TooLong,
            TooManyTerms,
        };
        for (text, expected) in [
            (String::new(), Empty),
            ("  ".to_owned(), Empty),
            ("AND".to_owned(), MissingTerm),
            ("a OR".to_owned(), MissingTerm),
            ("a AND OR b".to_owned(), MissingTerm),
            ("()".to_owned(), MissingTerm),
            ("(a".to_owned(), OpenParenthesis),
            ("a)".to_owned(), StrayParenthesis),
            ("\"a".to_owned(), OpenQuote),
            ("\" \"".to_owned(), EmptyPhrase),
            ("a".repeat(QUERY_CHARS_MAX + 1), TooLong),
            ("a ".repeat(QUERY_TERMS_MAX + 1), TooManyTerms),
            ("(".repeat(QUERY_DEPTH_MAX + 1) + "a" + &")".repeat(QUERY_DEPTH_MAX + 1), TooDeep),
        ] {
            assert_eq!(TextQuery::parse(&text), Err(expected), "{text}");
        }
        assert!(TextQuery::parse(&"ä".repeat(QUERY_CHARS_MAX)).is_ok());
    }

    #[test]
    fn a_text_matches_by_the_terms_that_it_contains() {
        let query = TextQuery::parse("(news OR weather) AND late").unwrap();
        let matches = |text: &str| query.matches(&|term: &TextTerm| text.contains(&term.text));
        assert!(matches("late news") && matches("late weather"));
        assert!(!matches("late") && !matches("news and weather"));
    }

    /// Queries as the parser builds them: a member of `All` is never an `All` itself, because both are one list.
    fn query() -> impl Strategy<Value = TextQuery> {
        let term = prop_oneof![
            "[a-zäß0-9]{1,5}".prop_map(|it| word(&it)),
            "[a-z()]{1,3}( OR [a-z]{1,3})?".prop_map(|it| phrase(&it)),
        ];
        term.prop_recursive(3, 12, 3, |inner| {
            let parts = || proptest::collection::vec(inner.clone(), 2..4);
            prop_oneof![parts().prop_map(TextQuery::All), parts().prop_map(TextQuery::Any)]
        })
    }

    proptest! {
        #[test]
        fn a_written_query_is_read_as_the_same_query(query in query()) {
            prop_assert_eq!(TextQuery::parse(&query.to_string()), Ok(query));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "[ab\"() ANDOR\\PC]{0,60}") {
            if let Ok(query) = TextQuery::parse(&text) {
                prop_assert_eq!(TextQuery::parse(&query.to_string()), Ok(query));
            }
        }
    }
}
