//! The messages between the gateway and a plugin: JSON-RPC 2.0, one message per line.
//!
//! A line that is too long or no message, and too many messages, are [`Violation`]s, which end the process of the plugin:
//! nothing that it sends can fill the memory of the gateway.

use serde_json::{Map, Value, json};

/// Version of the protocol.
pub const PROTOCOL: u32 = 1;
/// Maximum size of a line from a plugin, in bytes.
pub const LINE_BYTES_MAX: usize = 1 << 20;
/// Maximum size of a line to a plugin, in bytes.
pub const SENT_BYTES_MAX: usize = 4 << 20;
/// Maximum number of messages from a plugin in one second.
pub const MESSAGES_MAX: u32 = 1_000;
/// A message counts once more for each of these bytes, so that floods of large messages are floods, too.
pub const MESSAGE_BYTES: usize = 16 << 10;
/// The error number of an unknown method.
pub const UNKNOWN_METHOD: i64 = -32601;
/// The error number of a call that was refused.
pub const REFUSED: i64 = -32000;

/// A message from a plugin.
#[derive(Clone, Debug, PartialEq)]
pub enum Incoming {
    /// The answer to the request with this number.
    Answer { id: u64, result: Result<Value, Fault> },
    /// A call, which is answered if it has an id.
    Call { id: Option<Value>, method: String, params: Map<String, Value> },
    /// An answer that belongs to no request.
    Stray,
}

/// The error of an answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// As in JSON-RPC.
    pub code: i64,
    /// A sentence.
    pub message: String,
}

/// Why the process of a plugin has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    #[error("it sent a line of more than 1 MiB")]
    LongLine,
    #[error("it sent a line that does not follow the protocol")]
    NoMessage,
    #[error("it sent more than {MESSAGES_MAX} messages in a second")]
    Flood,
}

impl Incoming {
    /// Reads a line.
    pub fn read(line: &[u8]) -> Result<Self, Violation> {
        let Ok(Value::Object(mut members)) = serde_json::from_slice(line) else {
            return Err(Violation::NoMessage);
        };
        if let Some(method) = members.remove("method") {
            let Value::String(method) = method else { return Err(Violation::NoMessage) };
            let params = match members.remove("params") {
                Some(Value::Object(params)) => params,
                None | Some(Value::Null) => Map::new(),
                Some(_) => return Err(Violation::NoMessage),
            };
            let id = members.remove("id").filter(|it| it.is_number() || it.is_string());
            return Ok(Self::Call { id, method, params });
        }
        let result = match (members.remove("result"), members.remove("error")) {
            (_, Some(Value::Object(error))) => Err(Fault {
                code: error.get("code").and_then(Value::as_i64).unwrap_or(REFUSED),
                message: text_of(&error, "message").unwrap_or("error").to_owned(),
            }),
            (Some(result), None | Some(Value::Null)) => Ok(result),
            _ => return Err(Violation::NoMessage),
        };
        // Numbers that we never send belong to no request.
        Ok(members.get("id").and_then(Value::as_u64).map_or(Self::Stray, |id| Self::Answer { id, result }))
    }
}

/// Returns the member of this name, if it is a text.
pub fn text_of<'a>(members: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    members.get(name).and_then(Value::as_str)
}

/// Returns the line of a request. `None` if it is too long.
pub fn request(id: u64, method: &str, params: &Value) -> Option<Vec<u8>> {
    line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
}

/// Returns the line of a message without an answer. `None` if it is too long.
pub fn notification(method: &str, params: &Value) -> Option<Vec<u8>> {
    line(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
}

/// Returns the line of an answer. `None` if it is too long.
pub fn answer(id: &Value, result: &Result<Value, Fault>) -> Option<Vec<u8>> {
    line(&match result {
        Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
        Err(Fault { code, message }) => {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
        }
    })
}

/// Returns the line of an answer with a status and a body, which is JSON without ends of lines. `None` if it is too long.
pub fn api_answer(id: &Value, status: u16, body: &str) -> Option<Vec<u8>> {
    // The body is not parsed, because it may have megabytes.
    let line =
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"status\":{status},\"body\":{body}}}}}\n");
    (line.len() <= SENT_BYTES_MAX).then(|| line.into_bytes())
}

fn line(message: &Value) -> Option<Vec<u8>> {
    let mut line = message.to_string().into_bytes();
    line.push(b'\n');
    (line.len() <= SENT_BYTES_MAX).then_some(line)
}

/// Splits bytes into lines of limited length.
#[derive(Debug, Default)]
pub struct MessageLines {
    bytes: Vec<u8>,
    /// The bytes before this position contain no end of a line.
    searched: usize,
}

impl MessageLines {
    /// Adds bytes.
    ///
    /// # Errors
    /// The current line is too long. Those that were complete before have to be taken first.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        self.bytes.extend_from_slice(bytes);
        match self.bytes.len() > LINE_BYTES_MAX && !self.bytes[..=LINE_BYTES_MAX].contains(&b'\n') {
            true => Err(Violation::LongLine),
            false => Ok(()),
        }
    }

    /// Takes the next complete line without its end. Empty lines are skipped.
    pub fn next_line(&mut self) -> Option<Vec<u8>> {
        loop {
            let Some(at) = self.bytes[self.searched..].iter().position(|it| *it == b'\n') else {
                self.searched = self.bytes.len();
                return None;
            };
            let rest = self.bytes.split_off(self.searched + at + 1);
            let mut line = std::mem::replace(&mut self.bytes, rest);
            self.searched = 0;
            while line.last().is_some_and(u8::is_ascii_whitespace) {
                line.pop();
            }
            if !line.is_empty() {
                return Some(line);
            }
        }
    }
}

/// Reads messages from the bytes that a plugin sends.
#[derive(Debug)]
pub struct MessageReader {
    lines: MessageLines,
    rate: Rate,
}

impl Default for MessageReader {
    fn default() -> Self {
        Self { lines: MessageLines::default(), rate: Rate::new(MESSAGES_MAX) }
    }
}

impl MessageReader {
    /// Adds bytes. The messages in those that were added before have to be taken first.
    ///
    /// # Errors
    /// The current line is too long.
    pub fn push(&mut self, bytes: &[u8]) -> Result<(), Violation> {
        self.lines.push(bytes)
    }

    /// Takes the next complete message. The time is in milliseconds since any moment. Nothing may be taken after an error.
    pub fn next_message(&mut self, now_ms: u64) -> Option<Result<Incoming, Violation>> {
        let line = self.lines.next_line()?;
        let is_allowed = (0..=line.len() / MESSAGE_BYTES).all(|_| self.rate.allows(now_ms));
        Some(if is_allowed { Incoming::read(&line) } else { Err(Violation::Flood) })
    }
}

/// Counts what happens within each second.
#[derive(Clone, Copy, Debug)]
pub struct Rate {
    max: u32,
    second: u64,
    count: u32,
}

impl Rate {
    /// Allows this many in each second.
    pub fn new(max: u32) -> Self {
        Self { max, second: 0, count: 0 }
    }

    /// Counts one at this time, in milliseconds since any moment. Returns whether it is allowed.
    pub fn allows(&mut self, now_ms: u64) -> bool {
        let second = now_ms / 1_000;
        if second != self.second {
            (self.second, self.count) = (second, 0);
        }
        self.count = self.count.saturating_add(1);
        self.count <= self.max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn messages_are_calls_notifications_and_answers() {
        let check = |line: &str, expected: Result<Incoming, Violation>| {
            assert_eq!(Incoming::read(line.as_bytes()), expected, "{line}");
        };
        let call = |id: Option<Value>, method: &str, params: Value| {
            let Value::Object(params) = params else { unreachable!() };
            Ok(Incoming::Call { id, method: method.to_owned(), params })
        };
        let refused = |code, message: &str| Err(Fault { code, message: message.to_owned() });
        check(
            r#"{"jsonrpc":"2.0","method":"log","params":{"a":1},"x":2}"#,
            call(None, "log", json!({"a": 1})),
        );
        check(r#"{"method":"api","id":"p1"}"#, call(Some(json!("p1")), "api", json!({})));
        check(r#"{"method":"api","id":7,"params":null}"#, call(Some(json!(7)), "api", json!({})));
        check(r#"{"id":2,"result":null}"#, Ok(Incoming::Answer { id: 2, result: Ok(Value::Null) }));
        let error = r#"{"id":2,"error":{"code":-32601,"message":"no","data":{}}}"#;
        check(error, Ok(Incoming::Answer { id: 2, result: refused(-32601, "no") }));
        check(r#"{"id":2,"error":{}}"#, Ok(Incoming::Answer { id: 2, result: refused(REFUSED, "error") }));
        check(r#"{"id":"x","result":1}"#, Ok(Incoming::Stray));
        check(r#"{"id":-1,"result":1}"#, Ok(Incoming::Stray));
        for wrong in [
            "",
            "hello",
            "1",
            "[]",
            "{}",
            r#"{"method":1}"#,
            r#"{"method":"x","params":[]}"#,
            r#"{"id":1}"#,
            r#"{"id":1,"error":"x"}"#,
            "{\"method\":\"\u{fffd}",
        ] {
            check(wrong, Err(Violation::NoMessage));
        }
        assert_eq!(Incoming::read(b"{\"method\":\"\xff\"}"), Err(Violation::NoMessage));
        let deep = "[".repeat(100_000);
        check(&format!("{{\"id\":1,\"result\":{deep}"), Err(Violation::NoMessage));
    }

    #[test]
    fn sent_messages_are_lines_of_limited_length() {
        let sent = request(3, "run", &json!({"text": "a\nb"})).unwrap();
        assert_eq!(sent.iter().filter(|it| **it == b'\n').count(), 1);
        assert_eq!(
            Incoming::read(&notification("ping", &json!({})).unwrap()),
            Ok(Incoming::Call { id: None, method: "ping".to_owned(), params: Map::new() })
        );
        assert_eq!(
            Incoming::read(&answer(&json!(4), &Ok(json!(5))).unwrap()),
            Ok(Incoming::Answer { id: 4, result: Ok(json!(5)) })
        );
        assert_eq!(request(3, "run", &json!("x".repeat(SENT_BYTES_MAX))), None);
    }

    #[test]
    fn a_line_may_have_one_mebibyte_and_no_more() {
        let mut lines = MessageLines::default();
        lines.push(&vec![b'x'; LINE_BYTES_MAX]).unwrap();
        lines.push(b"\nnext").unwrap();
        assert_eq!(lines.next_line().unwrap().len(), LINE_BYTES_MAX);
        assert_eq!(lines.next_line(), None);
        assert_eq!(lines.push(&vec![b'x'; LINE_BYTES_MAX]), Err(Violation::LongLine));
    }

    #[test]
    fn the_rate_counts_each_second_anew() {
        let mut rate = Rate::new(2);
        let allowed = [0, 500, 999, 1_000, 1_001, 1_002, 9_000].map(|it| rate.allows(it));
        assert_eq!(allowed, [true, true, false, true, true, false, true]);
    }

    #[test]
    fn messages_are_counted_and_large_ones_more_than_once() {
        let small = b"{\"method\":\"progress\"}\n".repeat(1_001);
        let mut reader = MessageReader::default();
        reader.push(&small).unwrap();
        let all: Vec<_> = (0..1_001).map_while(|_| reader.next_message(0)).collect();
        assert!(all.iter().take(1_000).all(Result::is_ok));
        assert_eq!((all.len(), &all[1_000]), (1_001, &Err(Violation::Flood)));

        // 64 times 16 KiB, and the rest.
        let large = format!("{{\"method\":\"{}\"}}\n", "x".repeat(LINE_BYTES_MAX - 20));
        let mut reader = MessageReader::default();
        let n_allowed = (0..20).take_while(|_| {
            reader.push(large.as_bytes()).unwrap();
            reader.next_message(999).is_some_and(|it| it.is_ok())
        });
        assert_eq!(n_allowed.count(), 1_000 / 64);
        assert!(reader.next_message(1_000).is_none());
    }

    proptest! {
        #[test]
        fn lines_do_not_depend_on_how_they_arrive(
            lines in proptest::collection::vec("[a-z]{1,9}", 0..9),
            pieces in proptest::collection::vec(1..7_usize, 1..50),
        ) {
            let bytes: Vec<u8> = lines.iter().flat_map(|it| format!("{it}\r\n\n").into_bytes()).collect();
            let (mut found, mut splitter, mut rest) = (Vec::new(), MessageLines::default(), &bytes[..]);
            for piece in pieces.iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (now, later) = rest.split_at((*piece).min(rest.len()));
                splitter.push(now).unwrap();
                while let Some(line) = splitter.next_line() {
                    found.push(String::from_utf8(line).unwrap());
                }
                rest = later;
            }
            prop_assert_eq!(found, lines);
        }

        #[test]
        fn no_line_makes_reading_panic(line in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Incoming::read(&line);
        }
    }
}
