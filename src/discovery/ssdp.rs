//! Answers clients that search for UPnP devices, and announces the tuners to those that listen.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::discovery::AnswerLimit;
use domain::discovery::ssdp::{GROUP, MAX_AGE, PORT, SEARCH_BYTES_MAX, Search, alive, gone};
use tokio::net::UdpSocket;
use tokio::time::{interval, sleep};
use tracing::debug;

use super::{Devices, ERROR_PAUSE};

/// Interval of notifications: clients forget a device after [`MAX_AGE`], and may miss one notification.
const NOTIFY_INTERVAL: Duration = Duration::from_secs(MAX_AGE as u64 / 3);

/// Joins the group to which searches are sent.
pub(super) fn join(socket: UdpSocket, settings: &config::Discovery) -> io::Result<UdpSocket> {
    socket.join_multicast_v4(GROUP, settings.interface)?;
    Ok(socket)
}

/// Answers searches and sends notifications until the task is cancelled.
pub(super) async fn answer(socket: Arc<UdpSocket>, devices: Arc<Devices>) {
    let mut limit = AnswerLimit::default();
    let mut notifications = interval(NOTIFY_INTERVAL);
    let mut buffer = [0; SEARCH_BYTES_MAX + 1];
    loop {
        tokio::select! {
            _ = notifications.tick() => {
                let messages = devices.for_client(GROUP.into()).iter().flat_map(alive).collect();
                send(&socket, messages, SocketAddr::from((GROUP, PORT))).await;
            }
            received = socket.recv_from(&mut buffer) => {
                let Ok((length, sender)) = received else {
                    // An earlier answer did not arrive.
                    sleep(ERROR_PAUSE).await;
                    continue;
                };
                let Some(search) = Search::parse(&buffer[..length]) else { continue };
                if devices.may_answer(sender.ip(), &mut limit) {
                    let answers = devices.for_client(sender.ip()).iter().flat_map(|it| search.answers(it)).collect();
                    send(&socket, answers, sender).await;
                }
            }
        }
    }
}

/// Announces that devices are gone.
pub(super) async fn announce_end(socket: &UdpSocket, device_ids: impl Iterator<Item = String>) {
    let messages = device_ids.flat_map(|it| gone(&it)).collect();
    send(socket, messages, SocketAddr::from((GROUP, PORT))).await;
}

async fn send(socket: &UdpSocket, messages: Vec<String>, to: SocketAddr) {
    for message in messages {
        if let Err(error) = socket.send_to(message.as_bytes(), to).await {
            return debug!(client.address = %to, "failed to send for the UPnP discovery: {error}");
        }
    }
}
