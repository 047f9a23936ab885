//! Reads a stream in order, from a given position on, and reports any gap or silence as an error.

use std::time::Duration;

use async_nats::jetstream::Message;
use async_nats::jetstream::consumer::pull::{Config, Stream};
use async_nats::jetstream::consumer::{AckPolicy, DeliverPolicy};
use futures_util::StreamExt;

use super::session::Live;

/// Time without a message or heartbeat after which a reader has failed is twice this.
const HEARTBEAT: Duration = Duration::from_secs(2);
/// Time for which one request for messages is open.
const EXPIRES: Duration = Duration::from_secs(10);
/// Maximum number of messages, and bytes, that are on their way.
const BATCH: usize = 256;
/// Time without requests after which the server forgets a reader.
const INACTIVE: Duration = Duration::from_secs(30);

/// A reader of a stream. A failed one is not continued: its session ends.
pub(super) struct Reader {
    messages: Stream,
    last_sequence: u64,
    /// Messages that existed when the reader began and were not read yet.
    n_initial: u64,
}

/// A message that was read.
pub(super) struct ReadMessage {
    pub(super) message: Message,
    /// Its sequence in the stream.
    pub(super) sequence: u64,
}

impl Reader {
    pub(super) async fn new(
        live: &Live,
        stream: &str,
        subjects: Vec<String>,
        from: DeliverPolicy,
    ) -> Result<Self, String> {
        let config = Config {
            deliver_policy: from,
            ack_policy: AckPolicy::None,
            filter_subjects: subjects,
            inactive_threshold: INACTIVE,
            // The reader is as short-lived as its session, so the server keeps it in memory.
            num_replicas: 1,
            memory_storage: true,
            ..Config::default()
        };
        let consumer = live
            .jetstream
            .create_consumer_on_stream(config, stream)
            .await
            .map_err(|it| format!("the stream {stream} cannot be read: {it}"))?;
        let n_initial = consumer.cached_info().num_pending;
        let messages = consumer
            .stream()
            .max_messages_per_batch(BATCH)
            .heartbeat(HEARTBEAT)
            .expires(EXPIRES)
            .messages()
            .await
            .map_err(|it| format!("the stream {stream} cannot be read: {it}"))?;
        Ok(Self { messages, last_sequence: 0, n_initial })
    }

    /// Returns whether all messages that existed when the reader began were read.
    pub(super) fn is_complete(&self) -> bool {
        self.n_initial == 0
    }

    /// Waits for the next message.
    pub(super) async fn next(&mut self) -> Result<ReadMessage, String> {
        let message = match self.messages.next().await {
            Some(Ok(it)) => it,
            Some(Err(error)) => return Err(format!("reading was interrupted: {error}")),
            None => return Err("reading has ended".to_owned()),
        };
        let info = message.info().map_err(|it| format!("a message has no position: {it}"))?;
        if info.consumer_sequence != self.last_sequence + 1 {
            return Err("messages are missing".to_owned());
        }
        self.last_sequence = info.consumer_sequence;
        self.n_initial = if info.pending == 0 { 0 } else { self.n_initial.saturating_sub(1) };
        let sequence = info.stream_sequence;
        Ok(ReadMessage { message, sequence })
    }
}
