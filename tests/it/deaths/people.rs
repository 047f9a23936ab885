//! Who watches, and who listens.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::support::client::Player;
use crate::support::eventually;
use crate::support::push::Listener;

/// Somebody who watches.
pub struct Viewer {
    pub player: Player,
    pub label: &'static str,
}

impl Viewer {
    /// Nothing was noticed: one picture, nothing torn, nothing missing, no end.
    #[track_caller]
    pub fn noticed_nothing(&self, meanwhile: &str) {
        self.saw_only_what_was_whole(meanwhile);
        self.player.received(|it| {
            assert_eq!(it.ended, None, "{meanwhile}: {} was cut off", self.label);
            assert!(it.ts.steps.is_empty(), "{meanwhile}: {:?} of {} are missing", it.ts.steps, self.label);
            assert_eq!(it.ts.declared_discontinuities, 0, "{meanwhile}: {} has a seam", self.label);
        });
    }

    /// What came is one picture, nothing of it torn, up to where it ended.
    #[track_caller]
    pub fn saw_only_what_was_whole(&self, meanwhile: &str) {
        self.player.received(|it| {
            let complaints = it.ts.complaints.join("\n  ");
            assert!(complaints.is_empty(), "{meanwhile}: {} is not clean:\n  {complaints}", self.label);
            assert_eq!(it.ts.labels, [self.label], "{meanwhile}");
            assert_eq!(it.n_bytes % 188, 0, "{meanwhile}: {} ends within a packet", self.label);
        });
    }

    /// The same where the channel may have gone to its other stream.
    #[track_caller]
    pub fn saw_only_what_was_whole_or_its_backup(&self, meanwhile: &str) {
        self.player.received(|it| {
            let complaints = it.ts.complaints.join("\n  ");
            assert!(complaints.is_empty(), "{meanwhile}: {} is not clean:\n  {complaints}", self.label);
            let is_ours = |it: &String| it.starts_with(self.label);
            assert!(it.ts.labels.iter().all(is_ours), "{meanwhile}: {} shows {:?}", self.label, it.ts.labels);
        });
    }

    /// More comes.
    pub async fn goes_on(&self) {
        self.player.more_bytes(40_000).await;
    }
}

/// A program at the WebSocket that keeps the newest frames, and opens a socket again when its own is closed.
pub struct Ears {
    heard: Arc<Mutex<Vec<Value>>>,
    closed_with: Arc<Mutex<Vec<Option<u16>>>>,
    _task: AbortOnDropHandle<()>,
}

impl Ears {
    pub fn open(address: SocketAddr, path: String) -> Ears {
        let heard = Arc::<Mutex<Vec<Value>>>::default();
        let closed_with = Arc::<Mutex<Vec<Option<u16>>>>::default();
        let (keep, codes) = (heard.clone(), closed_with.clone());
        let task = tokio::spawn(async move {
            loop {
                let mut socket = Listener::open(address, &path, &[]).await.unwrap();
                let code = loop {
                    match socket.next().await {
                        Ok(mut frame) => {
                            let mut heard = keep.lock();
                            if heard.len() > 300 {
                                heard.drain(..100);
                            }
                            heard.push(frame["data"].take());
                        }
                        Err(code) => break code,
                    }
                };
                codes.lock().push(code);
            }
        });
        Ears { heard, closed_with, _task: AbortOnDropHandle::new(task) }
    }

    pub fn heard(&self, kind: &str, fits: impl Fn(&Value) -> bool) -> bool {
        self.heard.lock().iter().any(|it| it["type"] == kind && fits(it))
    }

    /// Waits for a frame that comes from now on.
    pub async fn hears(&self, kind: &str, fits: impl Fn(&Value) -> bool) {
        self.heard.lock().clear();
        eventually("a frame", || self.heard(kind, &fits)).await;
    }

    /// How often the socket was closed, and with which codes.
    pub fn closed(&self) -> Vec<Option<u16>> {
        self.closed_with.lock().clone()
    }
}
