//! The end of the channels that viewers of a drained node watch.

use std::collections::HashSet;
use std::time::Duration;

use tokio::time::{sleep, sleep_until};
use tracing::info;

use super::SharedChannels;
use crate::channel::Message;
use crate::cluster::NodeDrain;

/// Pause before channels are ended that could not be before, such as those that other nodes still read.
const END_PAUSE: Duration = Duration::from_secs(1);

/// Ends the live channels that the viewers of a drained node watch when the time for them is over, as often as the node is
/// drained.
pub(super) async fn end_viewers(shared: &SharedChannels, drain: &NodeDrain) {
    let mut changes = drain.changes();
    loop {
        let end = changes.end();
        let ending = async {
            match end {
                Some(at) => {
                    sleep_until(at).await;
                    end_channels(shared).await;
                }
                None => std::future::pending().await,
            }
        };
        // An end of the drain cancels it.
        let has_changed = tokio::select! {
            has_changed = changes.next() => has_changed,
            () = ending => changes.next().await,
        };
        if !has_changed {
            return;
        }
    }
}

/// Ends the channels that play now, each as soon as no other node reads it from here. Later viewers of this node stay: they
/// would come again at once.
async fn end_channels(shared: &SharedChannels) {
    let serials: HashSet<u64> = shared.unread().1.into_iter().collect();
    info!(channels = serials.len(), "the time for viewers of this node, which is drained, is over");
    loop {
        let (unread, all) = shared.unread();
        if !all.iter().any(|it| serials.contains(it)) {
            return;
        }
        for (serial, actor) in unread {
            if serials.contains(&serial) {
                // Fails when the channel has ended.
                let _ = actor.cast(Message::EndViewers);
            }
        }
        sleep(END_PAUSE).await;
    }
}
