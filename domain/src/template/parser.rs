//! From parts of a source to nodes.
//!
//! ```text
//! or         = and {"or" and}
//! and        = not {"and" not}
//! not        = "not" not | compared
//! compared   = filtered [("==" | "!=" | "<" | "<=" | ">" | ">=" | "in" | "not" "in") filtered]
//! filtered   = primary {"|" name [":" primary {"," primary} | "(" [primary {"," primary}] ")"]}
//! primary    = text | number | name | "true" | "false" | "none" | "(" or ")"
//! ```

use serde_json::Value;

use super::error::TemplateError;
use super::filter::Filter;
use super::lexer::{Edges, Part, Token, TokenKind, split};
use super::node::{Comparison, Expression, Node};

/// Maximum depth of conditions and of brackets in each other.
const DEPTH_MAX: usize = 32;

/// Reads a source whose values have these names, or any names without a list.
pub(super) fn parse(source: &str, names: Option<&[&str]>) -> Result<Vec<Node>, TemplateError> {
    // The branches of each open condition; the last one is not complete.
    let mut open: Vec<OpenIf> = Vec::new();
    let mut nodes = Vec::new();
    for part in split(source)? {
        let fault = |at: usize, reason: &str| TemplateError::at(source, at, reason);
        match part {
            Part::Text { at, text } => nodes.push(Node::Text { at, text: text.to_owned() }),
            Part::Value(tokens, edges) => {
                let mut words = Words::new(source, names, tokens, edges);
                nodes.push(Node::Value { at: edges.start, value: words.whole()? });
            }
            Part::Tag(tokens, edges) => {
                let mut words = Words::new(source, names, tokens, edges);
                let (at, keyword) = words.keyword()?;
                if keyword == "if" {
                    if open.len() == DEPTH_MAX {
                        return Err(fault(at, "there are too many conditions inside of each other"));
                    }
                    let condition = Some(words.whole()?);
                    open.push(OpenIf {
                        at,
                        outer: std::mem::take(&mut nodes),
                        branches: Vec::new(),
                        condition,
                    });
                    continue;
                }
                let Some(current) = open.last_mut() else {
                    let reason = match keyword {
                        "elif" | "else" | "endif" => format!("{keyword} has no if"),
                        _ => format!("unknown tag {keyword:?}: there are if, elif, else and endif"),
                    };
                    return Err(TemplateError::at(source, at, reason));
                };
                match keyword {
                    "elif" | "else" if current.condition.is_none() => {
                        return Err(fault(at, "else is the last branch of a condition"));
                    }
                    "elif" => {
                        let condition = Some(words.whole()?);
                        current.end_branch(&mut nodes, condition);
                    }
                    "else" => {
                        words.end()?;
                        current.end_branch(&mut nodes, None);
                    }
                    "endif" => {
                        words.end()?;
                        current.end_branch(&mut nodes, None);
                        let OpenIf { outer, branches, .. } = open.pop().expect("there is an open condition");
                        nodes = outer;
                        nodes.push(Node::If(branches));
                    }
                    _ => {
                        let reason = format!("unknown tag {keyword:?}: there are if, elif, else and endif");
                        return Err(TemplateError::at(source, at, reason));
                    }
                }
            }
        }
    }
    match open.last() {
        Some(open) => Err(TemplateError::at(source, open.at, "if has no endif")),
        None => Ok(nodes),
    }
}

/// A condition whose end was not read yet.
struct OpenIf {
    at: usize,
    /// The nodes before it.
    outer: Vec<Node>,
    branches: Vec<(Option<Expression>, Vec<Node>)>,
    /// The condition of the branch that is being read; `None` after else.
    condition: Option<Expression>,
}

impl OpenIf {
    fn end_branch(&mut self, nodes: &mut Vec<Node>, next: Option<Expression>) {
        let condition = std::mem::replace(&mut self.condition, next);
        self.branches.push((condition, std::mem::take(nodes)));
    }
}

/// The words of one tag.
struct Words<'a> {
    source: &'a str,
    names: Option<&'a [&'a str]>,
    tokens: std::iter::Peekable<std::vec::IntoIter<Token<'a>>>,
    /// The offset of the end of the tag.
    end: usize,
    depth: usize,
}

impl<'a> Words<'a> {
    fn new(source: &'a str, names: Option<&'a [&'a str]>, tokens: Vec<Token<'a>>, edges: Edges) -> Self {
        Self { source, names, tokens: tokens.into_iter().peekable(), end: edges.end, depth: 0 }
    }

    fn fault(&self, at: usize, reason: impl Into<String>) -> TemplateError {
        TemplateError::at(self.source, at, reason)
    }

    /// Returns the offset of the next word.
    fn at(&mut self) -> usize {
        self.tokens.peek().map_or(self.end, |it| it.at)
    }

    fn keyword(&mut self) -> Result<(usize, &'a str), TemplateError> {
        match self.tokens.next() {
            Some(Token { at, kind: TokenKind::Name(name) }) => Ok((at, name)),
            _ => Err(self.fault(self.end, "the tag needs a word: if, elif, else or endif")),
        }
    }

    fn next_is(&mut self, wanted: &TokenKind<'_>) -> bool {
        self.tokens.next_if(|it| it.kind == *wanted).is_some()
    }

    fn end(&mut self) -> Result<(), TemplateError> {
        match self.tokens.peek() {
            Some(token) => {
                let at = token.at;
                Err(self.fault(at, "the tag has to end here"))
            }
            None => Ok(()),
        }
    }

    /// Reads an expression up to the end of the tag.
    fn whole(&mut self) -> Result<Expression, TemplateError> {
        let value = self.or()?;
        self.end()?;
        Ok(value)
    }

    fn or(&mut self) -> Result<Expression, TemplateError> {
        let mut any = vec![self.and()?];
        while self.next_is(&TokenKind::Name("or")) {
            any.push(self.and()?);
        }
        Ok(if any.len() == 1 { any.remove(0) } else { Expression::Any(any) })
    }

    fn and(&mut self) -> Result<Expression, TemplateError> {
        let mut all = vec![self.not()?];
        while self.next_is(&TokenKind::Name("and")) {
            all.push(self.not()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expression::All(all) })
    }

    fn not(&mut self) -> Result<Expression, TemplateError> {
        let mut is_negated = false;
        while self.next_is(&TokenKind::Name("not")) {
            is_negated = !is_negated;
        }
        let value = self.compared()?;
        // Twice not is a truth value as well, which only conditions see.
        Ok(if is_negated { Expression::Not(Box::new(value)) } else { value })
    }

    fn compared(&mut self) -> Result<Expression, TemplateError> {
        let left = self.filtered()?;
        let Some(comparison) = self.comparison()? else { return Ok(left) };
        let right = self.filtered()?;
        Ok(Expression::Compared(Box::new(left), comparison, Box::new(right)))
    }

    fn comparison(&mut self) -> Result<Option<Comparison>, TemplateError> {
        let comparison = match self.tokens.peek().map(|it| &it.kind) {
            Some(TokenKind::Sign("==")) => Comparison::Equal,
            Some(TokenKind::Sign("!=")) => Comparison::NotEqual,
            Some(TokenKind::Sign("<")) => Comparison::Less,
            Some(TokenKind::Sign("<=")) => Comparison::LessOrEqual,
            Some(TokenKind::Sign(">")) => Comparison::Greater,
            Some(TokenKind::Sign(">=")) => Comparison::GreaterOrEqual,
            Some(TokenKind::Name("in")) => Comparison::In,
            Some(TokenKind::Name("not")) => {
                self.tokens.next();
                let at = self.at();
                return match self.next_is(&TokenKind::Name("in")) {
                    true => Ok(Some(Comparison::NotIn)),
                    false => Err(self.fault(at, "\"in\" has to follow \"not\" here")),
                };
            }
            _ => return Ok(None),
        };
        self.tokens.next();
        Ok(Some(comparison))
    }

    fn filtered(&mut self) -> Result<Expression, TemplateError> {
        let (mut value, mut n_filters) = (self.primary()?, 0);
        while self.next_is(&TokenKind::Sign("|")) {
            let at = self.at();
            n_filters += 1;
            if n_filters > DEPTH_MAX {
                return Err(self.fault(at, "there are too many filters"));
            }
            let Some(Token { kind: TokenKind::Name(name), .. }) = self.tokens.next() else {
                return Err(self.fault(at, "a filter has to follow |"));
            };
            let filter = Filter::ALL.into_iter().find(|it| it.0 == name).ok_or_else(|| {
                let names = Filter::ALL.map(|it| it.0).join(", ");
                self.fault(at, format!("unknown filter {name:?}: there are {names}"))
            })?;
            let arguments = self.arguments()?;
            let (min, max) = filter.1.arguments();
            if !(min..=max).contains(&arguments.len()) {
                let wanted = match (min, max) {
                    (0, _) => "no argument".to_owned(),
                    (1, 1) => "one argument".to_owned(),
                    _ => format!("{min} or {max} arguments"),
                };
                return Err(self.fault(at, format!("the filter {name:?} has {wanted}")));
            }
            value = Expression::Filtered(Box::new(value), filter.1, arguments);
        }
        Ok(value)
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, TemplateError> {
        let mut arguments = Vec::new();
        if self.next_is(&TokenKind::Sign(":")) {
            arguments.push(self.primary()?);
            while self.next_is(&TokenKind::Sign(",")) {
                arguments.push(self.primary()?);
            }
        } else if self.next_is(&TokenKind::Sign("(")) && !self.next_is(&TokenKind::Sign(")")) {
            loop {
                arguments.push(self.primary()?);
                if self.next_is(&TokenKind::Sign(")")) {
                    break;
                }
                let at = self.at();
                if !self.next_is(&TokenKind::Sign(",")) {
                    return Err(self.fault(at, "a comma or ) has to follow"));
                }
            }
        }
        Ok(arguments)
    }

    fn primary(&mut self) -> Result<Expression, TemplateError> {
        let at = self.at();
        let Some(token) = self.tokens.next() else { return Err(self.fault(at, "a value is missing")) };
        match token.kind {
            TokenKind::Text(text) => Ok(Expression::Literal(Value::String(text))),
            TokenKind::Number(text) => match serde_json::from_str(text) {
                Ok(number) => Ok(Expression::Literal(Value::Number(number))),
                Err(_) => Err(self.fault(at, format!("{text} is not a number"))),
            },
            TokenKind::Name("true" | "True") => Ok(Expression::Literal(Value::Bool(true))),
            TokenKind::Name("false" | "False") => Ok(Expression::Literal(Value::Bool(false))),
            TokenKind::Name("none" | "None" | "null") => Ok(Expression::Literal(Value::Null)),
            TokenKind::Name(name @ ("and" | "or" | "in" | "not" | "if")) => {
                Err(self.fault(at, format!("a value is missing before {name:?}")))
            }
            TokenKind::Name(name) => match self.names {
                Some(names) if !names.contains(&name) => {
                    Err(self.fault(at, format!("unknown value {name:?}: there are {}", names.join(", "))))
                }
                _ => Ok(Expression::Name(name.to_owned())),
            },
            TokenKind::Sign("(") if self.depth < DEPTH_MAX => {
                self.depth += 1;
                let value = self.or()?;
                self.depth -= 1;
                let at = self.at();
                match self.next_is(&TokenKind::Sign(")")) {
                    true => Ok(value),
                    false => Err(self.fault(at, ") is missing")),
                }
            }
            TokenKind::Sign("(") => Err(self.fault(at, "there are too many brackets inside of each other")),
            TokenKind::Sign(sign) => Err(self.fault(at, format!("a value is missing before {sign}"))),
        }
    }
}
