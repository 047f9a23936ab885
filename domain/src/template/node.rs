//! The parts of a template after it was read.

use serde_json::Value;

use super::filter::Filter;

/// A part of a template. Offsets are those in the source, in bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Text {
        at: usize,
        text: String,
    },
    Value {
        at: usize,
        value: Expression,
    },
    /// The first branch whose condition holds. A branch without a condition always does.
    If(Vec<(Option<Expression>, Vec<Node>)>),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Literal(Value),
    Name(String),
    Filtered(Box<Expression>, Filter, Vec<Expression>),
    Not(Box<Expression>),
    /// All of them hold.
    All(Vec<Expression>),
    /// One of them holds.
    Any(Vec<Expression>),
    Compared(Box<Expression>, Comparison, Box<Expression>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    /// The text on the left is a part of the one on the right.
    In,
    NotIn,
}
