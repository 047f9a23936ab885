//! Reports channels that were created, changed or removed. The changes of one request, or of one import, are one event.

use std::sync::Arc;
use std::time::Duration;

use actors::{Events, now_ms};
use domain::channel::Channel;
use domain::event::{ChannelRef, ChannelsRef, Event, EventBody};
use domain::ids::ChannelId;
use storage::{Models, Record, Table};
use tokio::time::{Instant, timeout_at};

/// Commits that follow each other within this time belong together.
const SETTLE_TIME: Duration = Duration::from_millis(500);
/// An event is emitted at the latest after this time, however many commits follow.
const SETTLE_MAX: Duration = Duration::from_secs(5);

/// Emits events until the store is closed. In a cluster, the node that writes the configuration emits them.
pub(super) async fn follow(models: Models, events: Events) {
    let mut changes = models.store.changes();
    let mut known = models.channels.load();
    while changes.next_in(Channel::COLLECTION).await {
        let latest = Instant::now() + SETTLE_MAX;
        loop {
            let until = latest.min(Instant::now() + SETTLE_TIME);
            match timeout_at(until, changes.next_in(Channel::COLLECTION)).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(_) => break,
            }
        }
        let present = models.channels.load();
        let before = std::mem::replace(&mut known, Arc::clone(&present));
        if models.store.writes_shared() {
            for body in differences(&before, &present) {
                events.emit(Event { at: now_ms(), body });
            }
        }
    }
}

/// Returns the events for what differs.
fn differences(before: &Table<Channel>, after: &Table<Channel>) -> Vec<EventBody> {
    let created = after.iter().filter(|it| before.get(it.id.0).is_none());
    let changed = after.iter().filter(|it| before.get(it.id.0).is_some_and(|old| is_changed(old, it)));
    let removed = before.iter().filter(|it| after.get(it.id.0).is_none());
    let [created, changed, removed] = [
        ChannelsRef::new(created.map(|it| named(it))),
        ChannelsRef::new(changed.map(|it| named(it))),
        ChannelsRef::new(removed.map(|it| named(it))),
    ];
    let all = [
        (created.count, EventBody::ChannelCreated { channels: created }),
        (changed.count, EventBody::ChannelChanged { channels: changed }),
        (removed.count, EventBody::ChannelRemoved { channels: removed }),
    ];
    all.into_iter().filter(|it| it.0 > 0).map(|it| it.1).collect()
}

fn named(channel: &Channel) -> (ChannelId, ChannelRef) {
    let Channel { id, uuid, name, number, .. } = channel;
    (*id, ChannelRef { uuid: *uuid, name: name.clone(), number: *number })
}

/// Returns whether a channel differs in more than what refreshes note about it.
fn is_changed(old: &Arc<Channel>, new: &Arc<Channel>) -> bool {
    let compared =
        |it: &Channel| Channel { updated_at: 0, auto: None, moved_streams: Vec::new(), ..it.clone() };
    !Arc::ptr_eq(old, new) && compared(old) != compared(new)
}
