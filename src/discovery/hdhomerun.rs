//! Answers clients that search for HDHomeRun devices.

use std::sync::Arc;

use domain::discovery::AnswerLimit;
use domain::discovery::hdhomerun::{DiscoverRequest, PACKET_BYTES_MAX, reply};
use tokio::net::UdpSocket;
use tokio::time::sleep;
use tracing::debug;

use super::{Devices, ERROR_PAUSE};

/// Answers requests until the task is cancelled.
pub(super) async fn answer(socket: Arc<UdpSocket>, devices: Arc<Devices>) {
    let mut limit = AnswerLimit::default();
    // One byte more, so that a packet that is too long does not look complete.
    let mut buffer = [0; PACKET_BYTES_MAX + 1];
    loop {
        let (length, sender) = match socket.recv_from(&mut buffer).await {
            Ok(received) => received,
            // An earlier answer did not arrive.
            Err(error) => {
                debug!("HDHomeRun discovery: {error}");
                sleep(ERROR_PAUSE).await;
                continue;
            }
        };
        let Some(request) = DiscoverRequest::parse(&buffer[..length]) else { continue };
        if !devices.may_answer(sender.ip(), &mut limit) {
            continue;
        }
        let wanted = devices.for_client(sender.ip()).into_iter().filter(|it| request.is_for(it));
        for packet in wanted.filter_map(|it| reply(&it)) {
            if let Err(error) = socket.send_to(&packet, sender).await {
                debug!(client.address = %sender, "failed to answer a discovery: {error}");
            }
        }
    }
}
