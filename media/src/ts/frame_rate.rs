//! Measures the frame rate of a source from the time stamps of its pictures, whatever the codec is.

use super::clock::{STAMP_HZ, STAMP_MODULUS};
use super::packet::Packet;
use super::pes::stamps;
use super::tables::Tables;

/// Decoding time over which the rate is measured.
const MEASURED_TICKS: u64 = 2 * STAMP_HZ;
/// A longer step from one picture to the next is a gap or a jump, and the measurement begins again.
const STEP_MAX: u64 = STAMP_HZ;
/// Rates outside of this are slides or errors.
const RATES: std::ops::RangeInclusive<f64> = 2.0..=240.0;

/// Counts the pictures of the first video stream of a programme until its rate is known.
#[derive(Debug)]
pub(crate) struct FrameRateReader {
    pid: u16,
    /// The decoding time of the newest picture.
    newest: Option<u64>,
    n_steps: u32,
    ticks: u64,
}

impl FrameRateReader {
    /// Creates a reader for this programme; `None` if it has no video.
    pub(crate) fn new(tables: &Tables) -> Option<Self> {
        let pid = tables.video()?.pid;
        Some(Self { pid, newest: None, n_steps: 0, ticks: 0 })
    }

    /// Reads one packet of any stream.
    #[inline]
    pub(crate) fn packet(&mut self, packet: Packet<'_>) {
        if packet.pid() == self.pid
            && packet.pusi()
            && let Some(time) = stamps(packet).decode()
        {
            self.picture(time);
        }
    }

    fn picture(&mut self, time: u64) {
        let Some(before) = self.newest.replace(time) else { return };
        match time.wrapping_sub(before) % STAMP_MODULUS {
            // Both fields of a frame.
            0 => {}
            step if step > STEP_MAX => (self.n_steps, self.ticks) = (0, 0),
            step => (self.n_steps, self.ticks) = (self.n_steps + 1, self.ticks + step),
        }
    }

    /// Returns the rate in frames per second once enough pictures were counted.
    pub(crate) fn rate(&self) -> Option<f64> {
        let is_enough = self.ticks >= MEASURED_TICKS;
        let rate = is_enough.then(|| f64::from(self.n_steps) * STAMP_HZ as f64 / self.ticks as f64)?;
        RATES.contains(&rate).then(|| (rate * 1000.0).round() / 1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reader() -> FrameRateReader {
        FrameRateReader { pid: 0x100, newest: None, n_steps: 0, ticks: 0 }
    }

    #[test]
    fn the_frame_rate_is_measured_from_decoding_times() {
        let check = |first: u64, step: u64, n: u64, expected: Option<f64>| {
            let mut reader = reader();
            (0..n).for_each(|it| reader.picture((first + it * step) % STAMP_MODULUS));
            assert_eq!(reader.rate(), expected, "{n} steps of {step} from {first}");
        };
        check(0, 3_600, 51, Some(25.0));
        check(0, 3_600, 50, None);
        check(STAMP_MODULUS - 7_200, 3_600, 80, Some(25.0));
        check(0, 3_003, 80, Some(29.97));
        check(0, 3_753, 80, Some(23.981));
        check(0, 1_500, 200, Some(60.0));
        check(0, 90_000, 10, None);
        check(0, 180_000, 10, None);
    }

    #[test]
    fn a_gap_and_a_jump_of_the_clock_are_not_counted() {
        let mut reader = reader();
        let mut time = 0;
        for n in 0..75_u64 {
            // A second field has the time of its frame.
            reader.picture(time);
            reader.picture(time);
            time = if n == 20 { 5_000_000 } else { time + 1_800 };
        }
        assert_eq!(reader.rate(), None, "the jump began the measurement again");
        (0..60).for_each(|n| reader.picture(time + n * 1_800));
        assert_eq!(reader.rate(), Some(50.0));
    }
}
