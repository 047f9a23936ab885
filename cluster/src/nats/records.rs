//! Records: the bucket `HW` of NATS.

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::stream::LastRawMessageErrorKind;
use bytes::Bytes;
use domain::cluster::SwapOutcome;
use domain::cluster::record::Revision;
use tokio::sync::mpsc;

use super::publish::{Write, publish};
use super::reader::Reader;
use super::session::{Live, SessionReader, Shared};
use super::streams::StreamKind;
use crate::engine::{EngineError, Key, Record, WatchEvent};

const PREFIX: &str = "$KV.HW.";
/// The header that marks a removed record, as the tools of NATS write it.
const OPERATION: &str = "KV-Operation";

pub(super) async fn swap(
    shared: &Shared,
    session: u64,
    key: &Key,
    expected: Revision,
    value: Option<Bytes>,
) -> SwapOutcome {
    let Ok(live) = shared.live(session) else { return SwapOutcome::Unknown };
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Subject-Sequence", expected.0.to_string());
    if value.is_none() {
        headers.insert(OPERATION, "DEL");
    }
    let write = Write {
        stream: StreamKind::Records.name(),
        subject: format!("{PREFIX}{key}"),
        headers,
        expected: expected.0,
        payload: value.unwrap_or_default(),
    };
    let highest = live.highest();
    let outcome = publish(&live, write).await;
    if let SwapOutcome::Applied(revision) = outcome {
        live.saw(revision.0);
        if revision.0 <= highest {
            live.end("a new revision is lower than an earlier one");
        }
    }
    outcome
}

pub(super) async fn read(shared: &Shared, session: u64, key: &Key) -> Result<Record, EngineError> {
    let live = shared.live(session)?;
    let stream = live.jetstream.get_stream_no_info(StreamKind::Records.name()).await;
    let stream = stream.map_err(|it| refused("read a record", &it))?;
    // Answered by the leader, unless it does not know yet that it has been replaced.
    let read = stream.get_last_raw_message_by_subject(&format!("{PREFIX}{key}")).await;
    let record = match read {
        Ok(message) => {
            let value = (!is_removal(&message.headers)).then_some(message.payload);
            Record { key: key.clone(), revision: Revision(message.sequence), value }
        }
        Err(error) if error.kind() == LastRawMessageErrorKind::NoMessageFound => {
            Record { key: key.clone(), revision: Revision(0), value: None }
        }
        Err(error) => {
            live.unanswered();
            return Err(refused("read a record", &error));
        }
    };
    live.answered();
    live.saw(record.revision.0);
    Ok(record)
}

fn is_removal(headers: &HeaderMap) -> bool {
    headers.get(OPERATION).is_some_and(|it| matches!(it.as_str(), "DEL" | "PURGE"))
}

pub(super) fn refused(action: &'static str, error: &dyn std::fmt::Display) -> EngineError {
    EngineError::Refused { action, reason: error.to_string() }
}

/// Reports the records with a prefix (`None`: all).
pub(super) struct Watcher(pub(super) Option<Key>);

impl SessionReader for Watcher {
    type Event = WatchEvent;

    async fn read(&mut self, live: &Live, events: &mpsc::Sender<WatchEvent>) -> Result<(), String> {
        let subjects = match &self.0 {
            Some(it) => vec![format!("{PREFIX}{it}"), format!("{PREFIX}{it}.>")],
            None => vec![format!("{PREFIX}>")],
        };
        if events.send(WatchEvent::Session(live.session)).await.is_err() {
            return Ok(());
        }
        let mut reader =
            Reader::new(live, StreamKind::Records.name(), subjects, DeliverPolicy::LastPerSubject).await?;
        let mut is_complete = false;
        loop {
            if !is_complete && reader.is_complete() {
                is_complete = true;
                if events.send(WatchEvent::Complete).await.is_err() {
                    return Ok(());
                }
            }
            let read = reader.next().await?;
            live.saw(read.sequence);
            let key = read.message.subject.strip_prefix(PREFIX).and_then(Key::new);
            // Keys that this program cannot write are not from the cluster.
            let Some(key) = key else { continue };
            let is_removed = read.message.headers.as_ref().is_some_and(is_removal);
            let value = (!is_removed).then(|| read.message.payload.clone());
            let record = Record { key, revision: Revision(read.sequence), value };
            if events.send(WatchEvent::Record(record)).await.is_err() {
                return Ok(());
            }
        }
    }
}
