//! Writes with an expectation: the request and the meaning of its answers.

use std::time::Duration;

use async_nats::jetstream::ErrorCode;
use async_nats::jetstream::publish::PublishAck;
use async_nats::jetstream::response::Response;
use async_nats::{HeaderMap, Message, Request, RequestErrorKind};
use bytes::Bytes;
use domain::cluster::SwapOutcome;
use domain::cluster::record::Revision;
use tokio::time::{Instant, sleep};
use tracing::{debug, warn};

use super::session::{Live, REQUEST_TIMEOUT};

/// Pause after an attempt that reached no leader.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// A write to a stream.
pub(super) struct Write {
    pub(super) stream: &'static str,
    pub(super) subject: String,
    pub(super) headers: HeaderMap,
    /// The sequence that the server is to expect, which is also in the headers.
    pub(super) expected: u64,
    pub(super) payload: Bytes,
}

/// Sends a write and waits for its outcome.
///
/// It is sent again only after the answer that no server takes writes of this stream at present; then the earlier
/// attempt was not applied.
pub(super) async fn publish(live: &Live, write: Write) -> SwapOutcome {
    let (bytes, bytes_max) = (write.payload.len(), live.session.payload_max);
    if bytes > bytes_max {
        warn!("{bytes} bytes for {} are more than NATS accepts ({bytes_max})", write.stream);
        return SwapOutcome::Unknown;
    }
    let until = Instant::now() + REQUEST_TIMEOUT;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let request =
            Request::new().headers(write.headers.clone()).payload(write.payload.clone()).timeout(Some(left));
        match live.client.send_request(write.subject.clone(), request).await {
            Ok(answer) => {
                live.answered();
                return outcome(live, &write, &answer);
            }
            Err(error) if error.kind() == RequestErrorKind::NoResponders && left > RETRY_PAUSE => {
                sleep(RETRY_PAUSE).await;
            }
            Err(error) => {
                debug!("no outcome of a write to {}: {error}", write.stream);
                live.unanswered();
                return SwapOutcome::Unknown;
            }
        }
    }
}

fn outcome(live: &Live, write: &Write, answer: &Message) -> SwapOutcome {
    match serde_json::from_slice::<Response<PublishAck>>(&answer.payload) {
        Ok(Response::Ok(ack)) if ack.stream == write.stream => SwapOutcome::Applied(Revision(ack.sequence)),
        Ok(Response::Err { error }) if error.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE => {
            // "wrong last sequence: 7"
            let text = error.to_string();
            let last =
                text.split(": ").nth(1).and_then(|it| it.split(' ').next()).and_then(|it| it.parse().ok());
            if last.is_some_and(|it: u64| it < write.expected) {
                live.end("a record is older than it was");
            }
            SwapOutcome::Conflict
        }
        // Another write to the same subject is on its way, and may fail.
        Ok(Response::Err { error })
            if error.error_code() == ErrorCode::STREAM_WRONG_LAST_SEQUENCE_CONSTANT =>
        {
            SwapOutcome::Unknown
        }
        Ok(Response::Err { error }) => {
            warn!("NATS refuses a write to {}: {error}", write.stream);
            SwapOutcome::Unknown
        }
        Ok(Response::Ok(ack)) => {
            warn!("the stream {} of NATS takes writes of {}", ack.stream, write.stream);
            SwapOutcome::Unknown
        }
        Err(error) => {
            warn!("the answer of NATS to a write cannot be read: {error}");
            SwapOutcome::Unknown
        }
    }
}
