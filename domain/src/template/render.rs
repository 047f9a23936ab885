//! From a template and values to a text.

use std::cmp::Ordering;

use serde_json::{Map, Value};

use super::node::{Comparison, Expression, Node};
use super::value::{RENDERED_BYTES_MAX, Rendering, is_true, text_of};

/// The text, and where its parts come from.
pub(super) struct RenderOutput {
    pub(super) text: String,
    /// Whether the text begins like an object or a list.
    pub(super) begins_as_json: bool,
    /// The offsets in the text at which parts begin, with those of their sources, and whether they stand there as well.
    parts: Vec<(usize, usize, bool)>,
    /// Whether the text is inside a JSON string, and behind a backslash there.
    place: Place,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    InString,
    BehindBackslash,
}

/// Renders nodes. The error is the offset of the node that does not fit.
pub(super) fn render(nodes: &[Node], values: &Map<String, Value>) -> Result<RenderOutput, usize> {
    let mut output =
        RenderOutput { text: String::new(), begins_as_json: false, parts: Vec::new(), place: Place::Outside };
    output.nodes(nodes, values)?;
    Ok(output)
}

impl RenderOutput {
    /// Returns the offset in the source that a part of the text comes from.
    pub(super) fn source_of(&self, offset: usize) -> usize {
        let n = self.parts.partition_point(|it| it.0 <= offset);
        let part = self.parts.get(n.saturating_sub(1));
        part.map_or(0, |it| if it.2 { it.1 + offset.saturating_sub(it.0) } else { it.1 })
    }

    fn nodes(&mut self, nodes: &[Node], values: &Map<String, Value>) -> Result<(), usize> {
        for node in nodes {
            match node {
                Node::Text { at, text } => self.push(*at, text, true)?,
                Node::Value { at, value } => self.value(*at, &evaluate(value, values))?,
                Node::If(branches) => {
                    let holds = |it: &Option<Expression>| {
                        it.as_ref().is_none_or(|it| is_true(&evaluate(it, values).value))
                    };
                    if let Some((_, nodes)) = branches.iter().find(|it| holds(&it.0)) {
                        self.nodes(nodes, values)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Writes a value for its place.
    fn value(&mut self, at: usize, rendering: &Rendering) -> Result<(), usize> {
        let Rendering { value, is_json } = rendering;
        let text = text_of(value);
        if *is_json && self.place == Place::Outside {
            return self.push(at, &text, false);
        }
        if !self.begins_as_json {
            return self.push_plain(at, &text, false);
        }
        match self.place {
            Place::Outside => self.push(at, &value.to_string(), false),
            Place::InString | Place::BehindBackslash => {
                let quoted = Value::String(text.into_owned()).to_string();
                self.push(at, quoted.get(1..quoted.len() - 1).unwrap_or_default(), false)
            }
        }
    }

    /// Writes a text of the template, or JSON.
    fn push(&mut self, at: usize, text: &str, is_source: bool) -> Result<(), usize> {
        if self.text.trim_start().is_empty() {
            self.begins_as_json = text.trim_start().starts_with(['{', '[']);
        }
        if self.begins_as_json {
            for byte in text.bytes() {
                self.place = match (self.place, byte) {
                    (Place::Outside, b'"') | (Place::BehindBackslash, _) => Place::InString,
                    (Place::InString, b'\\') => Place::BehindBackslash,
                    (Place::InString, b'"') => Place::Outside,
                    (place, _) => place,
                };
            }
        }
        self.push_plain(at, text, is_source)
    }

    fn push_plain(&mut self, at: usize, text: &str, is_source: bool) -> Result<(), usize> {
        if self.text.len() + text.len() > RENDERED_BYTES_MAX {
            return Err(at);
        }
        self.parts.push((self.text.len(), at, is_source));
        self.text.push_str(text);
        Ok(())
    }
}

fn evaluate(expression: &Expression, values: &Map<String, Value>) -> Rendering {
    let value = match expression {
        Expression::Literal(value) => value.clone(),
        Expression::Name(name) => values.get(name).cloned().unwrap_or_default(),
        Expression::Filtered(value, filter, arguments) => {
            let arguments: Vec<Value> = arguments.iter().map(|it| evaluate(it, values).value).collect();
            return filter.apply(evaluate(value, values), &arguments);
        }
        Expression::Not(value) => Value::Bool(!holds(value, values)),
        Expression::All(all) => Value::Bool(all.iter().all(|it| holds(it, values))),
        Expression::Any(any) => Value::Bool(any.iter().any(|it| holds(it, values))),
        Expression::Compared(left, comparison, right) => {
            Value::Bool(compare(&evaluate(left, values).value, *comparison, &evaluate(right, values).value))
        }
    };
    Rendering { value, is_json: false }
}

fn holds(expression: &Expression, values: &Map<String, Value>) -> bool {
    is_true(&evaluate(expression, values).value)
}

fn compare(left: &Value, comparison: Comparison, right: &Value) -> bool {
    let order = || order(left, right);
    match comparison {
        Comparison::Equal => order() == Some(Ordering::Equal),
        Comparison::NotEqual => order() != Some(Ordering::Equal),
        Comparison::Less => order().is_some_and(Ordering::is_lt),
        Comparison::LessOrEqual => order().is_some_and(Ordering::is_le),
        Comparison::Greater => order().is_some_and(Ordering::is_gt),
        Comparison::GreaterOrEqual => order().is_some_and(Ordering::is_ge),
        Comparison::In => text_of(right).contains(&*text_of(left)),
        Comparison::NotIn => !text_of(right).contains(&*text_of(left)),
    }
}

/// Compares numbers by value, also those in texts, and everything else as text.
fn order(left: &Value, right: &Value) -> Option<Ordering> {
    match (number(left), number(right)) {
        (Some(left), Some(right)) => left.partial_cmp(&right),
        _ => Some(text_of(left).cmp(&text_of(right))),
    }
}

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.parse().ok().filter(|it: &f64| it.is_finite()),
        _ => None,
    }
}
