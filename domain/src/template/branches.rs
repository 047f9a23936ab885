//! Values that reach the branches of a template, so that each can be checked before an event takes it.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value};

use super::node::{Expression, Node};
use super::value::text_of;

/// Maximum number of combinations of values.
const COMBINATIONS_MAX: usize = 64;
/// Maximum number of values that are tried for one name.
const VALUES_MAX: usize = 8;

/// The values to try for each name of a condition.
type Wanted = BTreeMap<String, Vec<Value>>;

/// Returns the sample with values that the conditions compare with: first each of them alone, then several of them, as
/// far as the bound allows. A value keeps the type of the sample's one.
pub(super) fn samples(nodes: &[Node], sample: &Map<String, Value>) -> Vec<Map<String, Value>> {
    let mut wanted = Wanted::new();
    collect(nodes, sample, &mut wanted);
    let alone = |(name, values): (&String, &Vec<Value>)| {
        let name = name.clone();
        let with = move |value: &Value| {
            let mut changed = sample.clone();
            changed.insert(name.clone(), value.clone());
            changed
        };
        values.iter().map(with).collect::<Vec<_>>()
    };
    let mut samples: Vec<_> = wanted.iter().flat_map(alone).take(COMBINATIONS_MAX).collect();
    let lists: Vec<_> = wanted.into_iter().filter(|it| !it.1.is_empty()).collect();
    let mut indices = vec![0; lists.len()];
    while lists.len() > 1 && samples.len() < COMBINATIONS_MAX {
        let chosen =
            lists.iter().zip(&indices).map(|((name, values), at)| (name.clone(), values[*at].clone()));
        let mut changed = sample.clone();
        changed.extend(chosen);
        samples.push(changed);
        let next = lists.iter().zip(&indices).position(|((_, values), at)| at + 1 < values.len());
        let Some(next) = next else { break };
        indices[next] += 1;
        indices[..next].fill(0);
    }
    samples
}

fn collect(nodes: &[Node], sample: &Map<String, Value>, wanted: &mut Wanted) {
    for node in nodes {
        let Node::If(branches) = node else { continue };
        for (condition, nodes) in branches {
            if let Some(condition) = condition {
                add_condition(condition, sample, wanted);
            }
            collect(nodes, sample, wanted);
        }
    }
}

fn add_condition(condition: &Expression, sample: &Map<String, Value>, wanted: &mut Wanted) {
    match condition {
        Expression::Literal(_) => {}
        Expression::Name(name) => {
            let values = match sample.get(name) {
                Some(Value::Number(number)) => vec![number.clone().into(), 0.into(), 1.into()],
                Some(Value::Bool(_)) => vec![true.into(), false.into()],
                Some(Value::String(text)) => vec![text.clone().into(), "".into(), "x".into()],
                Some(Value::Null) | None => vec!["".into(), "x".into()],
                Some(Value::Array(_) | Value::Object(_)) => Vec::new(),
            };
            values.into_iter().for_each(|it| add(wanted, name, it));
        }
        Expression::Filtered(value, _, arguments) => {
            add_condition(value, sample, wanted);
            arguments.iter().for_each(|it| add_condition(it, sample, wanted));
        }
        Expression::Not(value) => add_condition(value, sample, wanted),
        Expression::All(all) | Expression::Any(all) => {
            all.iter().for_each(|it| add_condition(it, sample, wanted));
        }
        Expression::Compared(left, _, right) => {
            for (one, other) in [(left, right), (right, left)] {
                add_condition(one, sample, wanted);
                let value = match &**other {
                    Expression::Literal(value) => Some(value),
                    Expression::Name(name) => sample.get(name),
                    _ => None,
                };
                if let (Some(name), Some(value)) = (name_of(one), value) {
                    let values = compared_with(value, sample.get(name));
                    values.into_iter().for_each(|it| add(wanted, name, it));
                }
            }
        }
    }
}

/// Returns the name that an expression filters.
fn name_of(expression: &Expression) -> Option<&str> {
    match expression {
        Expression::Name(name) => Some(name),
        Expression::Filtered(value, ..) => name_of(value),
        _ => None,
    }
}

fn add(wanted: &mut Wanted, name: &str, value: Value) {
    let values = wanted.entry(name.to_owned()).or_default();
    if values.len() < VALUES_MAX && !values.contains(&value) {
        values.push(value);
    }
}

/// Returns the compared value, and for a number those next to it, with the type of the sample's value.
fn compared_with(value: &Value, sample: Option<&Value>) -> Vec<Value> {
    let text = text_of(value);
    let numbers: Vec<Number> = match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(number), _) => {
            [number, number.saturating_add(1), number.saturating_sub(1)].map(Number::from).into()
        }
        (Err(_), Ok(number)) => {
            [number, number + 1.0, number - 1.0].into_iter().filter_map(Number::from_f64).collect()
        }
        (Err(_), Err(_)) => Vec::new(),
    };
    match sample {
        Some(Value::Number(_)) => numbers.into_iter().map(Value::from).collect(),
        Some(Value::String(_) | Value::Null) | None => {
            let texts = numbers.iter().map(Number::to_string);
            [text.into_owned()].into_iter().chain(texts).map(Value::from).collect()
        }
        Some(Value::Bool(_) | Value::Array(_) | Value::Object(_)) => Vec::new(),
    }
}
