//! Messages between nodes: not stored, and delivered at most once.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;
use tracing::debug;

use super::records::refused;
use super::session::{Live, Shared};
use crate::engine::{EngineError, Key, Message};

const PREFIX: &str = "hw.message.";

pub(super) async fn publish(
    shared: &Shared,
    session: u64,
    subject: &Key,
    payload: Bytes,
) -> Result<(), EngineError> {
    let live = shared.live(session)?;
    let (bytes, bytes_max) = (payload.len(), live.session.payload_max);
    if bytes > bytes_max {
        return Err(EngineError::TooLong { bytes, bytes_max });
    }
    let sent = live.client.publish(format!("{PREFIX}{subject}"), payload).await;
    sent.map_err(|it| refused("send a message", &it))
}

/// Receives messages in each session.
pub(super) async fn subscribe(shared: Arc<Shared>, prefix: Key, messages: mpsc::Sender<Message>) {
    let mut last = 0;
    loop {
        let live = tokio::select! {
            live = shared.next_live(last) => live,
            () = messages.closed() => return,
        };
        last = live.session.number;
        tokio::select! {
            result = receive(&live, &prefix, &messages) => match result {
                Ok(()) => return,
                Err(reason) => live.end(&reason),
            },
            () = live.ended.cancelled() => {}
            () = messages.closed() => return,
        }
    }
}

/// Returns `Ok` once nobody receives the messages.
async fn receive(live: &Live, prefix: &Key, messages: &mpsc::Sender<Message>) -> Result<(), String> {
    let subscribe = async |subject: String| {
        live.client.subscribe(subject).await.map_err(|it| format!("messages cannot be received: {it}"))
    };
    let exact = subscribe(format!("{PREFIX}{prefix}")).await?;
    let below = subscribe(format!("{PREFIX}{prefix}.>")).await?;
    let mut received = stream::select(exact, below);
    while let Some(it) = received.next().await {
        let Some(subject) = it.subject.strip_prefix(PREFIX).and_then(Key::new) else { continue };
        match messages.try_send(Message { subject, payload: it.payload }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(it)) => debug!("dropped a message to {}", it.subject),
            Err(mpsc::error::TrySendError::Closed(_)) => return Ok(()),
        }
    }
    Err("receiving messages has ended".to_owned())
}
