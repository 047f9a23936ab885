//! Checks the stream of a viewer, as strictly as a recorder would, over days.

use std::collections::HashMap;
use std::time::Duration;

use crate::ts::clock::{STAMP_HZ, STAMP_MODULUS, distance};
use crate::ts::packet::{NULL_PID, PACKET, Packet, PacketBytes, packets};
use crate::ts::pes::stamps;

/// The state of one PID.
#[derive(Debug)]
struct PidState {
    last: PacketBytes,
    /// The newest time stamp, wrapped.
    decode: Option<u64>,
}

/// Checks a transport stream against the standard and the wall clock: packets are whole, counters are
/// continuous or a packet declares the break, and no clock or time stamp goes back.
#[derive(Debug, Default)]
pub struct TsReader {
    pids: HashMap<u16, PidState>,
    /// The newest programme clock, wrapped, and its arrival time.
    clock: Option<(u64, Duration)>,
    /// Arrival time of the first clock.
    began: Option<Duration>,
    /// Programme time from the first clock to the newest, in ticks.
    programme: u64,
    /// Number of wraps of the clock.
    n_wraps: u64,
    n_bytes: u64,
    n_filler: u64,
}

impl TsReader {
    /// Reads bytes that arrived at `at`, a time since any fixed moment.
    ///
    /// # Errors
    /// A description of the first violation.
    pub fn read(&mut self, bytes: &[u8], at: Duration) -> Result<(), String> {
        if !bytes.len().is_multiple_of(PACKET) {
            return Err(format!("{} bytes are not a whole number of packets", bytes.len()));
        }
        self.n_bytes += bytes.len() as u64;
        packets(bytes).try_for_each(|packet| self.packet(packet, at))
    }

    /// Returns the bytes read.
    pub fn n_bytes(&self) -> u64 {
        self.n_bytes
    }

    /// Returns the null packets among them.
    pub fn n_filler(&self) -> u64 {
        self.n_filler
    }

    /// Returns the number of wraps of the clock.
    pub fn n_wraps(&self) -> u64 {
        self.n_wraps
    }

    /// Returns the programme time from the first clock to the newest.
    pub fn programme(&self) -> Duration {
        Duration::from_micros(self.programme * 100 / 9)
    }

    /// Returns the arrival time of the newest clock.
    pub fn newest_at(&self) -> Option<Duration> {
        self.clock.map(|it| it.1)
    }

    /// Returns the programme time less the wall time between the first clock and the newest, in milliseconds.
    pub fn lead_ms(&self) -> i64 {
        let (Some(began), Some((_, newest))) = (self.began, self.clock) else { return 0 };
        self.programme().as_millis() as i64 - (newest - began).as_millis() as i64
    }

    fn packet(&mut self, bytes: &PacketBytes, at: Duration) -> Result<(), String> {
        let packet = Packet::new(bytes);
        let pid = packet.pid();
        if !packet.is_valid() {
            return Err(format!("after {} bytes: not a packet", self.n_bytes));
        }
        if pid == NULL_PID {
            self.n_filler += 1;
            return Ok(());
        }
        let mut decode = None;
        if let Some(known) = self.pids.get(&pid) {
            decode = known.decode;
            let (before, now) = (Packet::new(&known.last).cc(), packet.cc());
            let is_repeated = bytes[4..] == known.last[4..];
            let is_continuous = match packet.has_payload() {
                true => now == (before + 1) & 0x0F || now == before && is_repeated,
                false => now == before,
            };
            if !is_continuous && !packet.discontinuity() {
                return Err(format!("the counter of {pid:#x} goes from {before} to {now} at {at:?}"));
            }
        }
        if let Some(pcr) = packet.pcr() {
            self.clock(pcr / 300, at)?;
        }
        if let Some(stamp) = stamps(packet).decode() {
            if decode.is_some_and(|it| distance(it, stamp, STAMP_MODULUS) < 0) {
                return Err(format!("time stamps of {pid:#x} go back from {decode:?} to {stamp} at {at:?}"));
            }
            decode = Some(stamp);
        }
        self.pids.insert(pid, PidState { last: *bytes, decode });
        Ok(())
    }

    fn clock(&mut self, clock: u64, at: Duration) -> Result<(), String> {
        let Some((before, _)) = self.clock.replace((clock, at)) else {
            self.began = Some(at);
            return Ok(());
        };
        let step = distance(before, clock, STAMP_MODULUS);
        let Ok(forward) = u64::try_from(step) else {
            return Err(format!("the clock goes back by {} ms at {at:?}", -step * 1000 / STAMP_HZ as i64));
        };
        self.n_wraps += u64::from(clock < before);
        self.programme += forward;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TsSource;
    use crate::ts::packet::set_cc;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn a_reader_compares_programme_and_wall_time_across_a_wrap_of_the_clock() {
        let source = TsSource { start: STAMP_MODULUS - 5 * STAMP_HZ, ..TsSource::new("a") };
        let (mut stream, mut reader) = (source.stream(Duration::ZERO), TsReader::default());
        while stream.at() <= 10 * SECOND {
            let at = stream.at() * 9 / 10;
            reader.read(&stream.frame(), at).unwrap();
        }
        assert_eq!((reader.programme(), reader.lead_ms(), reader.n_wraps()), (10 * SECOND, 1000, 1));
    }

    #[test]
    fn a_reader_finds_violations() {
        let source = TsSource::new("a");
        let good = source.bytes(Duration::ZERO, SECOND).to_vec();
        let read = |second: &[u8]| {
            let mut reader = TsReader::default();
            reader.read(&good, SECOND).unwrap();
            reader.read(second, SECOND)
        };
        let wrong = |second: &[u8], what: &str| {
            let error = read(second).unwrap_err();
            assert!(error.contains(what), "{error}");
        };
        wrong(&good[..100], "whole");
        wrong(&[0; PACKET], "not a packet");
        wrong(&good, "counter");
        let mut back = good.clone();
        let counters = |bytes: &[u8]| {
            let mut last = HashMap::<u16, u8>::new();
            last.extend(packets(bytes).map(|it| (Packet::new(it).pid(), Packet::new(it).cc())));
            last
        };
        let last = counters(&good);
        for packet in crate::ts::packet::packets_mut(&mut back) {
            let view = Packet::new(packet);
            let cc = view.cc() + last[&view.pid()] + 1;
            set_cc(packet, cc);
        }
        wrong(&back, "back");
    }
}
