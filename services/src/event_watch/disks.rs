//! Reports disks that are almost full: once, until there is room again.

use std::path::PathBuf;
use std::time::Duration;

use actors::{Events, Recorder, now_ms};
use domain::event::{Event, EventBody};
use media::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use crate::disk_space::{DISK_BYTES_LOW, DiskSpace};

/// Interval at which the disks are looked at.
const PERIOD: Duration = Duration::from_secs(60);

/// Whether a disk was low at the last look.
#[derive(Default)]
struct DiskState {
    is_low: bool,
}

impl DiskState {
    /// Notes the room, in bytes. Returns whether it has become low. It is low until there is an eighth more than the limit, so
    /// that room around the limit is reported once.
    fn becomes_low(&mut self, available: u64, low: u64) -> bool {
        let low = if self.is_low { low + low / 8 } else { low };
        self.becomes(available < low)
    }

    /// Notes whether the room is low. Returns whether it has become so.
    fn becomes(&mut self, is_low: bool) -> bool {
        let was_low = std::mem::replace(&mut self.is_low, is_low);
        is_low && !was_low
    }
}

/// Looks at the disks for as long as the gateway runs.
pub(super) async fn follow(data_dir: PathBuf, recorder: Recorder, events: Events) {
    let (mut data, mut recordings) = (DiskState::default(), DiskState::default());
    let mut ticks = interval(PERIOD);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let folder = data_dir.clone();
        let space = spawn_blocking(move || DiskSpace::read(&folder)).await.ok().flatten();
        if let Some(space) = space
            && data.becomes_low(space.available, DISK_BYTES_LOW)
        {
            report(&events, "data", space.available);
        }
        let room = recorder.room();
        // The recorder knows its own limit.
        if let Some(available) = room.available
            && recordings.becomes(room.is_disk_full())
        {
            report(&events, "recordings", available);
        }
    }
}

fn report(events: &Events, folder: &'static str, available_bytes: u64) {
    events.emit(Event { at: now_ms(), body: EventBody::DiskLow { folder, available_bytes } });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_reported_once_until_there_is_room_again() {
        let mut disk = DiskState::default();
        // Room, and whether it is reported with a limit of 80.
        for (available, is_reported) in [
            (100, false),
            (80, false),
            (79, true),
            (10, false),
            (89, false),
            (79, false),
            (90, false),
            (79, true),
        ] {
            assert_eq!(disk.becomes_low(available, 80), is_reported, "{available}");
        }
    }
}
