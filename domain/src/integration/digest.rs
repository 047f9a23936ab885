//! Several events as one message, for integrations that want at most one in some minutes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::time::iso_millis;

/// Name by which deliveries of digests are known, in place of that of an event.
pub const DIGEST: &str = "digest";
/// Limits of the time between two messages, in minutes: up to a day.
pub const DIGEST_MINUTES: std::ops::RangeInclusive<u16> = 1..=1_440;
/// Maximum number of events that a digest contains. Further ones are counted.
const EVENTS_MAX: usize = 100;
/// Maximum size of the events in a digest, in bytes.
const EVENTS_BYTES_MAX: usize = 256 * 1024;
/// Maximum number of sentences in its text.
const SENTENCES_MAX: usize = 15;
/// Maximum length of its text, in characters. Services refuse longer ones.
const TEXT_CHARS_MAX: usize = 1_500;

/// The payload of a digest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Digest {
    event_type: String,
    /// When the first event happened.
    timestamp: String,
    /// Number of events.
    count: u32,
    /// The payloads of the first events.
    events: Vec<Map<String, Value>>,
    /// A sentence about each of the first events.
    sentences: Vec<String>,
}

impl Digest {
    /// Begins with no event, at this time in milliseconds since 1970.
    pub fn new(at: i64) -> Self {
        Self {
            event_type: DIGEST.to_owned(),
            timestamp: iso_millis(at),
            count: 0,
            events: Vec::new(),
            sentences: Vec::new(),
        }
    }

    /// Reads a stored payload; `None` if it is damaged.
    pub fn read(payload: &str) -> Option<Self> {
        serde_json::from_str(payload).ok()
    }

    /// Adds an event: its payload as JSON, and a sentence about it.
    pub fn add(&mut self, payload: &str, sentence: &str) {
        self.count = self.count.saturating_add(1);
        let n_bytes: usize = self.events.iter().map(|it| Value::Object(it.clone()).to_string().len()).sum();
        if self.events.len() < EVENTS_MAX
            && n_bytes + payload.len() <= EVENTS_BYTES_MAX
            && let Ok(Value::Object(members)) = serde_json::from_str(payload)
        {
            self.events.push(members);
        }
        if self.sentences.len() < SENTENCES_MAX {
            self.sentences.push(sentence.to_owned());
        }
    }

    /// Returns the payload as JSON.
    pub fn to_payload(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the text for people: a line for each of the first events, and how many more there were.
    pub fn text(&self) -> String {
        let Some((first, [])) = self.sentences.split_first() else {
            return self.lines();
        };
        first.clone()
    }

    fn lines(&self) -> String {
        let (mut text, mut n_named) = (format!("{} events:", self.count), 0);
        for sentence in &self.sentences {
            if text.chars().count() + sentence.chars().count() > TEXT_CHARS_MAX {
                break;
            }
            text.push_str("\n- ");
            text.push_str(sentence);
            n_named += 1;
        }
        match self.count - n_named {
            0 => text,
            n => format!("{text}\nand {n} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn digest(n: u32) -> Digest {
        let mut digest = Digest::new(0);
        for number in 1..=n {
            let payload = json!({ "event_type": "channel_start", "channel_name": format!("News {number}") });
            digest.add(&payload.to_string(), &format!("News {number} plays."));
        }
        digest
    }

    #[test]
    fn a_digest_has_each_event_and_a_text_of_their_sentences() {
        assert_eq!(digest(1).text(), "News 1 plays.");
        assert_eq!(digest(2).text(), "2 events:\n- News 1 plays.\n- News 2 plays.");
        let payload: Value = serde_json::from_str(&digest(2).to_payload()).unwrap();
        assert_eq!(
            (&payload["event_type"], &payload["count"], &payload["events"][1]["channel_name"]),
            (&json!("digest"), &json!(2), &json!("News 2"))
        );
        assert_eq!(Digest::read(&digest(2).to_payload()), Some(digest(2)));
        assert_eq!(Digest::read("{}"), None);
    }

    #[test]
    fn a_flood_of_events_is_counted_and_the_digest_stays_small() {
        let flood = digest(5_000);
        let text = flood.text();
        assert!(text.starts_with("5000 events:") && text.ends_with("and 4985 more"), "{text}");
        let mut long = digest(1);
        (0..200).for_each(|_| long.add(&json!({ "a": "x".repeat(10_000) }).to_string(), &"y".repeat(400)));
        assert!(long.to_payload().len() < 300_000 && long.text().chars().count() < 1_600);
        assert!(long.text().ends_with("and 197 more"), "{}", long.text());
    }
}
