//! WebSocket clients: one that reads everything, one that never reads, and short-lived ones.

use tokio::net::TcpSocket;
use tokio::time::{Instant, sleep, timeout};

use super::fixture::LoadTestFixture;
use crate::support::random::Random;
use crate::support::websocket::{WebSocketClient, upgrade};

async fn opened(fixture: &LoadTestFixture, buffer: Option<u32>) -> WebSocketClient {
    let key = [("x-api-key", fixture.root.api_key.as_str())];
    let socket = TcpSocket::new_v4().unwrap();
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes).unwrap();
    }
    let address = fixture.gateway.address;
    WebSocketClient::over(socket, address, upgrade(address, "/ws/", &key))
        .await
        .expect("an admin can connect")
}

/// Reads every frame and checks that each has a type.
pub async fn reader(fixture: &LoadTestFixture, until: Instant) {
    let mut listener = opened(fixture, None).await;
    while Instant::now() < until {
        match listener.next().await {
            Ok(frame) => {
                assert!(frame["data"]["type"].is_string(), "{frame}");
                fixture.audit.note(|it| it.frames += 1);
            }
            Err(closed) => panic!("the socket of an admin was closed: {closed:?}"),
        }
    }
}

/// Opens a socket and never reads from it.
pub async fn non_reader(fixture: &LoadTestFixture, until: Instant) {
    let _listener = opened(fixture, Some(4 << 10)).await;
    sleep(until.saturating_duration_since(Instant::now())).await;
}

pub async fn short_lived(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let mut listener = opened(fixture, None).await;
        let leaves = Instant::now() + random.millis(0, 3_000);
        while let Ok(frame) = timeout(leaves.saturating_duration_since(Instant::now()), listener.next()).await
        {
            assert!(frame.is_ok(), "the socket of an admin was closed: {frame:?}");
        }
        drop(listener);
        random.pause(500).await;
    }
}
