//! Viewers and WebSocket clients that check what they receive.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::task::AbortOnDropHandle;

use crate::support::client::Player;
use crate::support::eventually;
use crate::support::websocket::WebSocketClient;

/// A player and the label of the picture it expects.
pub struct TestViewer {
    pub player: Player,
    pub label: &'static str,
}

impl TestViewer {
    /// Checks that the viewer saw one picture without damage, gap or end.
    #[track_caller]
    pub fn is_undisturbed(&self, meanwhile: &str) {
        self.received_clean_stream(meanwhile);
        self.player.received(|it| {
            assert_eq!(it.ended, None, "{meanwhile}: {} was cut off", self.label);
            assert!(it.ts.steps.is_empty(), "{meanwhile}: {:?} of {} are missing", it.ts.steps, self.label);
            assert_eq!(it.ts.declared_discontinuities, 0, "{meanwhile}: {} has a discontinuity", self.label);
        });
    }

    /// Checks that everything received so far is one undamaged picture.
    #[track_caller]
    pub fn received_clean_stream(&self, meanwhile: &str) {
        self.player.received(|it| {
            let complaints = it.ts.complaints.join("\n  ");
            assert!(complaints.is_empty(), "{meanwhile}: {} is not clean:\n  {complaints}", self.label);
            assert_eq!(it.ts.labels, [self.label], "{meanwhile}");
            assert_eq!(it.n_bytes % 188, 0, "{meanwhile}: {} ends in the middle of a packet", self.label);
        });
    }

    /// Does the same, and allows the channel's other stream.
    #[track_caller]
    pub fn received_clean_stream_from_either_source(&self, meanwhile: &str) {
        self.player.received(|it| {
            let complaints = it.ts.complaints.join("\n  ");
            assert!(complaints.is_empty(), "{meanwhile}: {} is not clean:\n  {complaints}", self.label);
            let is_ours = |it: &String| it.starts_with(self.label);
            assert!(it.ts.labels.iter().all(is_ours), "{meanwhile}: {} shows {:?}", self.label, it.ts.labels);
        });
    }

    /// Waits for more data.
    pub async fn keeps_playing(&self) {
        self.player.more_bytes(40_000).await;
    }
}

/// A WebSocket client that keeps the newest frames and reconnects when its socket closes.
pub struct WebSocketLog {
    heard: Arc<Mutex<Vec<Value>>>,
    closed_with: Arc<Mutex<Vec<Option<u16>>>>,
    _task: AbortOnDropHandle<()>,
}

impl WebSocketLog {
    pub fn open(address: SocketAddr, path: String) -> WebSocketLog {
        let heard = Arc::<Mutex<Vec<Value>>>::default();
        let closed_with = Arc::<Mutex<Vec<Option<u16>>>>::default();
        let (keep, codes) = (heard.clone(), closed_with.clone());
        let task = tokio::spawn(async move {
            loop {
                let mut socket = WebSocketClient::open(address, &path, &[]).await.unwrap();
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
        WebSocketLog { heard, closed_with, _task: AbortOnDropHandle::new(task) }
    }

    pub fn received(&self, kind: &str, fits: impl Fn(&Value) -> bool) -> bool {
        self.heard.lock().iter().any(|it| it["type"] == kind && fits(it))
    }

    /// Waits for a frame that arrives after this call.
    pub async fn next(&self, kind: &str, fits: impl Fn(&Value) -> bool) {
        self.heard.lock().clear();
        eventually("a frame", || self.received(kind, &fits)).await;
    }

    /// Returns the close code of each socket that was closed.
    pub fn closed(&self) -> Vec<Option<u16>> {
        self.closed_with.lock().clone()
    }
}
