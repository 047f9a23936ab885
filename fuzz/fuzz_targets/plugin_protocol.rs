//! The messages of plugins: nothing that a plugin sends panics, depends on how it arrives, or breaks the answers to it.

#![no_main]

use domain::plugin::protocol::{
    Fault, Incoming, LINE_BYTES_MAX, MESSAGES_MAX, MessageReader, SENT_BYTES_MAX, Violation, answer,
    api_answer,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

/// Reads everything, in pieces of this size, until something breaks a rule.
fn read(content: &[u8], piece_bytes: usize) -> Vec<Result<Incoming, Violation>> {
    let (mut reader, mut messages) = (MessageReader::default(), Vec::new());
    for piece in content.chunks(piece_bytes) {
        if let Err(violation) = reader.push(piece) {
            messages.push(Err(violation));
            return messages;
        }
        while let Some(message) = reader.next_message(0) {
            let is_last = message.is_err();
            messages.push(message);
            if is_last {
                return messages;
            }
        }
    }
    messages
}

/// Checks that an answer is one line that a plugin can read, and returns its result.
fn check(line: Option<Vec<u8>>, id: &Value) -> Value {
    let line = line.expect("a short answer");
    assert!(line.len() <= SENT_BYTES_MAX && line.ends_with(b"\n"));
    assert_eq!(line.iter().filter(|it| **it == b'\n').count(), 1, "an answer is one line");
    let mut answer: Value = serde_json::from_slice(&line).expect("an answer is JSON");
    assert!(answer["id"] == *id || id.is_f64(), "another id than {id}");
    answer["result"].take()
}

/// Returns whether a value contains a number that may change slightly when it is written and read.
fn has_float(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_float),
        Value::Object(members) => members.values().any(has_float),
        value => value.is_f64(),
    }
}

fuzz_target!(|content: &[u8]| {
    let messages = read(content, LINE_BYTES_MAX);
    assert_eq!(messages, read(content, 1), "messages depend on how they arrive");
    assert!(messages.len() <= MESSAGES_MAX as usize + 1);
    for message in messages.into_iter().flatten() {
        match message {
            Incoming::Call { id: Some(id), method, .. } => {
                let result = Value::from(method.clone());
                assert_eq!(check(answer(&id, &Ok(result.clone())), &id), result);
                let mut answered = check(api_answer(&id, 200, &result.to_string()), &id);
                assert_eq!((answered["status"].take(), answered["body"].take()), (200.into(), result));
                check(answer(&id, &Err(Fault { code: -1, message: method })), &id);
            }
            Incoming::Call { id: None, .. } | Incoming::Stray => {}
            // Written again, it means the same.
            Incoming::Answer { id, result } => {
                let line = answer(&id.into(), &result).expect("a short answer");
                let again = Incoming::read(&line).expect("an answer is a message");
                if !result.as_ref().is_ok_and(has_float) {
                    assert_eq!(again, Incoming::Answer { id, result });
                }
            }
        }
    }
});
