//! Who reads the past of channels from the gateway's own files.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::TimeShift;
use crate::clock::now_ms;
use crate::viewer::Viewer;
use crate::vod::{ReportedPosition, VodSessionInfo, VodTitle};

/// A request that reads the past of a channel; listed until it is dropped.
pub struct PastSession {
    time_shift: TimeShift,
    session: Arc<ReadingSession>,
}

pub(super) struct ReadingSession {
    number: u64,
    title: VodTitle,
    viewer: Viewer,
    name: Option<String>,
    /// Start of the part, in seconds since 1970.
    programme_start: i64,
    /// Milliseconds since 1970.
    started_at: i64,
    started: Instant,
    bytes_sent: AtomicU64,
    length: Option<u64>,
    reported: Mutex<Option<ReportedPosition>>,
    end: CancellationToken,
}

impl PastSession {
    /// Notes bytes that were sent.
    pub fn sent(&self, n_bytes: usize) {
        self.session.bytes_sent.fetch_add(n_bytes as u64, Ordering::Relaxed);
    }

    /// Waits until somebody ends the session, or the gateway stops.
    pub async fn ended(&self) {
        self.session.end.cancelled().await;
    }
}

impl Drop for PastSession {
    fn drop(&mut self) {
        self.time_shift.shared.sessions.lock().remove(&self.session.number);
    }
}

impl ReadingSession {
    fn info(&self) -> VodSessionInfo {
        let bytes_sent = self.bytes_sent.load(Ordering::Relaxed);
        VodSessionInfo {
            id: self.number,
            node: None,
            title: self.title.clone(),
            viewer: self.viewer.clone(),
            name: self.name.clone(),
            started_at: self.started_at,
            age: self.started.elapsed(),
            profile: None,
            programme_start: Some(self.programme_start),
            n_requests: 1,
            n_connections: 0,
            bytes_read: 0,
            bytes_sent,
            position: bytes_sent,
            length: self.length,
            has_slot: false,
            reported: *self.reported.lock(),
        }
    }
}

impl TimeShift {
    /// Lists a viewer who reads a part that begins at a time in seconds since 1970.
    pub fn enter(
        &self,
        title: VodTitle,
        viewer: Viewer,
        name: Option<String>,
        programme_start: i64,
        length: Option<u64>,
    ) -> PastSession {
        let number = self.shared.counter.fetch_add(1, Ordering::Relaxed) + 1;
        let session = Arc::new(ReadingSession {
            number,
            title,
            viewer,
            name,
            programme_start,
            started_at: now_ms(),
            started: Instant::now(),
            bytes_sent: AtomicU64::new(0),
            length,
            reported: Mutex::default(),
            end: self.shared.stop.child_token(),
        });
        self.shared.sessions.lock().insert(number, session.clone());
        PastSession { time_shift: self.clone(), session }
    }

    /// Returns those who read the past of channels, in the order in which they began.
    pub fn sessions(&self) -> Vec<VodSessionInfo> {
        self.shared.sessions.lock().values().map(|it| it.info()).collect()
    }

    /// Ends a session. Returns `None` if it does not exist.
    pub fn stop_session(&self, id: u64) -> Option<VodSessionInfo> {
        let session = self.shared.sessions.lock().get(&id).cloned()?;
        session.end.cancel();
        Some(session.info())
    }

    /// Notes where a player says that its viewer is. Returns `None` if the session does not exist.
    pub fn report_position(&self, id: u64, position: ReportedPosition) -> Option<()> {
        let session = self.shared.sessions.lock().get(&id).cloned()?;
        *session.reported.lock() = Some(position);
        Some(())
    }
}
