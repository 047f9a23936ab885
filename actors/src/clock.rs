//! The wall clock, for timestamps that people read. Waiting and measuring uses [`tokio::time::Instant`], which nobody
//! can set.

use std::time::SystemTime;

use rustix::time::{ClockId, clock_gettime};

/// A difference between the clocks that counts as a jump, in milliseconds. Corrections by NTP are smaller, or slow.
const JUMP_MS_MIN: i64 = 1_000;

/// Returns the milliseconds since 1970 by the system clock; 0 for earlier times.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Returns the milliseconds since the start of the machine, those of a suspension included. Nobody can set this clock.
fn since_boot_ms() -> i64 {
    let time = clock_gettime(ClockId::Boottime);
    time.tv_sec.saturating_mul(1_000).saturating_add(time.tv_nsec / 1_000_000)
}

/// Notices when somebody sets the wall clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockWatch {
    wall: i64,
    since_boot: i64,
}

impl ClockWatch {
    pub(crate) fn new() -> Self {
        Self { wall: now_ms(), since_boot: since_boot_ms() }
    }

    /// Returns by how much the wall clock was set since the last call, in milliseconds.
    pub(crate) fn jump(&mut self) -> i64 {
        self.jump_to(now_ms(), since_boot_ms())
    }

    fn jump_to(&mut self, wall: i64, since_boot: i64) -> i64 {
        let passed = since_boot.saturating_sub(self.since_boot);
        let jump = wall.saturating_sub(self.wall).saturating_sub(passed);
        *self = Self { wall, since_boot };
        if jump.abs() >= JUMP_MS_MIN { jump } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clock_that_was_set_has_jumped() {
        const HOUR: i64 = 3_600_000;
        let mut watch = ClockWatch { wall: 10 * HOUR, since_boot: 500 };
        for (wall, since_boot, expected) in [
            (10 * HOUR + 400, 900, 0),
            // A long pause of the process, or a suspension of the machine.
            (12 * HOUR + 400, 2 * HOUR + 900, 0),
            (13 * HOUR + 800, 2 * HOUR + 1_300, HOUR),
            (13 * HOUR + 1_200, 2 * HOUR + 1_700, 0),
            (12 * HOUR + 1_600, 2 * HOUR + 2_100, -HOUR),
            // Corrections.
            (12 * HOUR + 2_700, 2 * HOUR + 2_500, 0),
            (12 * HOUR + 2_400, 2 * HOUR + 2_900, 0),
            (12 * HOUR + 2_800, 2 * HOUR + 3_300, 0),
        ] {
            assert_eq!(watch.jump_to(wall, since_boot), expected, "{wall} {since_boot}");
        }
    }

    #[test]
    fn the_clocks_of_this_machine_go_alike() {
        let mut watch = ClockWatch::new();
        assert_eq!(watch.jump(), 0);
    }
}
