//! Who listens at the WebSocket: one that reads all, one that never reads, and those who come and go.

use tokio::net::TcpSocket;
use tokio::time::{Instant, sleep, timeout};

use super::house::House;
use crate::support::push::{Listener, upgrade};
use crate::support::random::Random;

async fn opened(house: &House, buffer: Option<u32>) -> Listener {
    let key = [("x-api-key", house.root.api_key.as_str())];
    let socket = TcpSocket::new_v4().unwrap();
    if let Some(bytes) = buffer {
        socket.set_recv_buffer_size(bytes).unwrap();
    }
    let address = house.gateway.address;
    Listener::over(socket, address, upgrade(address, "/ws/", &key)).await.expect("an admin is let in")
}

/// Reads every frame; each is whole and says what it is.
pub async fn eager(house: &House, until: Instant) {
    let mut listener = opened(house, None).await;
    while Instant::now() < until {
        match listener.next().await {
            Ok(frame) => {
                assert!(frame["data"]["type"].is_string(), "{frame}");
                house.ledger.note(|it| it.frames += 1);
            }
            Err(closed) => panic!("the socket of an admin was closed: {closed:?}"),
        }
    }
}

/// Opens a socket and never takes a byte from it.
pub async fn deaf(house: &House, until: Instant) {
    let _listener = opened(house, Some(4 << 10)).await;
    sleep(until.saturating_duration_since(Instant::now())).await;
}

pub async fn passing(house: &House, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let mut listener = opened(house, None).await;
        let leaves = Instant::now() + random.millis(0, 3_000);
        while let Ok(frame) = timeout(leaves.saturating_duration_since(Instant::now()), listener.next()).await
        {
            assert!(frame.is_ok(), "the socket of an admin was closed: {frame:?}");
        }
        drop(listener);
        random.pause(500).await;
    }
}
