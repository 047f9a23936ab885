//! The log: the stream `HW_LOG`.

use std::time::Duration;

use async_nats::HeaderMap;
use async_nats::jetstream::consumer::DeliverPolicy;
use async_nats::jetstream::stream::RawMessageErrorKind;
use bytes::Bytes;
use domain::cluster::SwapOutcome;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep};

use super::publish::{Write, publish};
use super::reader::Reader;
use super::records::refused;
use super::session::{Live, SessionReader, Shared};
use super::streams::{self, LOG_SUBJECT, StreamKind};
use crate::engine::{EngineError, LogEntry, LogEvent, LogState};

/// Time for which a log that seems to have lost its end is looked at again. A server that was replaced as leader
/// without knowing it answers with an old state for about 10 s.
const CONFIRM_LOSS: Duration = Duration::from_secs(15);

pub(super) async fn append(shared: &Shared, session: u64, expected_last: u64, payload: Bytes) -> SwapOutcome {
    let Ok(live) = shared.live(session) else { return SwapOutcome::Unknown };
    let mut headers = HeaderMap::new();
    headers.insert("Nats-Expected-Last-Sequence", expected_last.to_string());
    let stream = StreamKind::Log.name();
    let write = Write { stream, subject: LOG_SUBJECT.to_owned(), headers, expected: 0, payload };
    publish(&live, write).await
}

pub(super) async fn read(
    shared: &Shared,
    session: u64,
    sequence: u64,
) -> Result<Option<LogEntry>, EngineError> {
    let live = shared.live(session)?;
    let stream = live.jetstream.get_stream_no_info(StreamKind::Log.name()).await;
    let stream = stream.map_err(|it| refused("read the log", &it))?;
    match stream.get_raw_message(sequence).await {
        Ok(it) => {
            live.answered();
            Ok(Some(LogEntry { sequence: it.sequence, payload: it.payload }))
        }
        Err(error) if error.kind() == RawMessageErrorKind::NoMessageFound => {
            live.answered();
            Ok(None)
        }
        Err(error) => {
            live.unanswered();
            Err(refused("read the log", &error))
        }
    }
}

pub(super) async fn state(live: &Live) -> Result<LogState, EngineError> {
    match live.jetstream.get_stream(StreamKind::Log.name()).await {
        Ok(stream) => {
            live.answered();
            let info = stream.cached_info();
            let last = info.state.last_sequence;
            let first = if info.state.messages == 0 { last + 1 } else { info.state.first_sequence };
            Ok(LogState { identity: streams::identity(info), first, last, bytes: info.state.bytes })
        }
        Err(error) => {
            live.unanswered();
            Err(refused("read the state of the log", &error))
        }
    }
}

pub(super) async fn trim(shared: &Shared, session: u64, before: u64) -> Result<(), EngineError> {
    let live = shared.live(session)?;
    let stream = live.jetstream.get_stream_no_info(StreamKind::Log.name()).await;
    let stream = stream.map_err(|it| refused("trim the log", &it))?;
    stream.purge().sequence(before).await.map_err(|it| refused("trim the log", &it))?;
    Ok(())
}

/// Reports the entries of the log from a position on.
pub(super) struct Follower {
    /// The sequence of the next entry to report.
    next: u64,
    /// The log that was read so far.
    identity: Option<String>,
    is_begun: bool,
}

impl Follower {
    pub(super) fn new(from: u64) -> Self {
        Self { next: from.max(1), identity: None, is_begun: false }
    }
}

impl SessionReader for Follower {
    type Event = LogEvent;

    async fn read(&mut self, live: &Live, events: &mpsc::Sender<LogEvent>) -> Result<(), String> {
        let log = confirmed_state(live, self).await?;
        let is_continued = can_continue(&log, self);
        self.identity = Some(log.identity.clone());
        if events.send(LogEvent::Session { session: live.session, log }).await.is_err() || !is_continued {
            return Ok(());
        }
        let start_sequence = self.next;
        let from = DeliverPolicy::ByStartSequence { start_sequence };
        let subjects = vec![LOG_SUBJECT.to_owned()];
        let mut reader = Reader::new(live, StreamKind::Log.name(), subjects, from).await?;
        let mut is_complete = false;
        loop {
            if !is_complete && reader.is_complete() {
                is_complete = true;
                if events.send(LogEvent::Complete).await.is_err() {
                    return Ok(());
                }
            }
            let read = reader.next().await?;
            if read.sequence != self.next {
                // Trimmed meanwhile: the next session reports it.
                return Err("entries of the log are missing".to_owned());
            }
            let entry = LogEntry { sequence: read.sequence, payload: read.message.payload.clone() };
            if events.send(LogEvent::Entry(entry)).await.is_err() {
                return Ok(());
            }
            self.next += 1;
            self.is_begun = true;
        }
    }
}

/// Returns the state of the log, a bad one only after it has stayed so.
async fn confirmed_state(live: &Live, follower: &Follower) -> Result<LogState, String> {
    let until = Instant::now() + CONFIRM_LOSS;
    loop {
        let log = state(live).await.map_err(|it| it.to_string())?;
        let is_shorter = log.last + 1 < follower.next;
        if !(is_shorter && follower.is_begun) || Instant::now() >= until {
            return Ok(log);
        }
        sleep(Duration::from_secs(1)).await;
    }
}

fn can_continue(log: &LogState, follower: &Follower) -> bool {
    let is_same = follower.identity.as_ref().is_none_or(|it| *it == log.identity);
    is_same && log.first <= follower.next && follower.next <= log.last + 1
}
