//! A target of webhooks that keeps what it gets.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::IntegrationId;
use domain::integration::{Integration, Subscription, Target, Webhook};
use domain::source_url::SourceUrl;
use parking_lot::Mutex;
use serde_json::Value;
use storage::Write;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

/// A request: its `webhook-id`, and its body.
pub type Received = (String, Value);

/// A running target. It answers every request with success, after a pause.
#[derive(Debug)]
pub struct WebhookTarget {
    address: SocketAddr,
    received: Arc<Mutex<Vec<Received>>>,
    _task: AbortOnDropHandle<()>,
}

impl WebhookTarget {
    pub async fn start(pause: Duration) -> WebhookTarget {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("it listens");
        let received = Arc::new(Mutex::new(Vec::new()));
        let kept = received.clone();
        let task = tokio::spawn(async move {
            let mut connections = tokio::task::JoinSet::new();
            while let Ok((socket, _)) = listener.accept().await {
                connections.spawn(serve(socket, kept.clone(), pause));
            }
        });
        WebhookTarget { address, received, _task: AbortOnDropHandle::new(task) }
    }

    /// Returns what it got so far, in order.
    pub fn received(&self) -> Vec<Received> {
        self.received.lock().clone()
    }

    pub fn len(&self) -> usize {
        self.received.lock().len()
    }

    /// Returns an integration that sends these events to it, one at a time.
    pub fn integration(&self, id: u32, events: &[&str]) -> Integration {
        let webhook = Webhook {
            url: SourceUrl::new(format!("http://{}/{id}", self.address)),
            method: "POST".to_owned(),
            headers: Vec::new(),
            preset: None,
            options: Default::default(),
            signing: None,
            ca_certificate: None,
        };
        let subscription = |(n, event): (u32, &&str)| Subscription {
            id: id * 100 + n,
            event: (*event).to_owned(),
            is_enabled: true,
            template: None,
        };
        Integration {
            id: IntegrationId(id),
            name: format!("Target {id}"),
            is_enabled: true,
            target: Target::Webhook(webhook),
            subscriptions: (0..).zip(events).map(subscription).collect(),
            parallel: 1,
            max_age_s: None,
            created_at: 0,
            is_trusted: false,
            digest_minutes: None,
        }
    }

    /// Returns the function that stores [`WebhookTarget::integration`].
    pub fn subscribe(
        &self,
        id: u32,
        events: &[&str],
    ) -> impl FnOnce(&mut Write<'_>) -> storage::Result<()> + Send + 'static {
        let integration = self.integration(id, events);
        move |write| write.put(&integration)
    }
}

/// Serves a connection until it ends.
async fn serve(socket: TcpStream, received: Arc<Mutex<Vec<Received>>>, pause: Duration) -> Option<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let (mut id, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            socket.read_line(&mut line).await.ok().filter(|it| *it > 0)?;
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line == "\r\n" {
                    break;
                }
                continue;
            };
            match &*name.to_ascii_lowercase() {
                "webhook-id" => id = value.to_owned(),
                "content-length" => length = value.parse().ok()?,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.ok()?;
        received.lock().push((id, serde_json::from_slice(&body).ok()?));
        tokio::time::sleep(pause).await;
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.ok()?;
    }
}
