//! A provider that begins each response with some of its past, ends, breaks off, freezes, and changes its clock at random.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::*;
use crate::testing::{Behaviour, Break, Play, TsSource, labels_in};
use crate::ts::clock::{PCR_HZ, PCR_MODULUS, STAMP_MODULUS, distance};
use crate::ts::packet::packets;
use crate::ts::pes::stamps;

const VIDEO: u16 = 0x100;
const SOUND: u16 = 0x101;
/// The distance of two pictures, in ticks of 90 kHz.
const PICTURE: i64 = 3_600;
/// The pictures of a source are numbered modulo this.
const NUMBERS: u8 = 250;
/// No gap is longer than so many pictures.
const MISSING_MAX: u8 = 220;

#[tokio::test(start_paused = true)]
async fn minutes_of_bursts_ends_freezes_and_jumps_lose_no_order() {
    soak(Duration::from_secs(8 * 60), 1).await;
}

mod night {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_hour_of_bursts_ends_freezes_and_jumps_loses_no_order() {
        for seed in 2..5 {
            soak(Duration::from_secs(3_600), seed).await;
        }
    }
}

/// Random numbers that are the same for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % n
    }

    fn choose<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// Reads the output, and checks it.
struct Output {
    began: Instant,
    counters: [Option<u8>; 0x2000],
    clock: Option<u64>,
    /// The programme since the first clock reference, in ticks of the PCR.
    programme: u64,
    lead_max: f64,
    /// Label, number and presentation time of the last picture.
    picture: Option<(String, u8, u64)>,
    n_pictures: u64,
    n_sounds: u64,
}

impl Output {
    fn read(&mut self, bytes: &[u8]) {
        for bytes in packets(bytes) {
            let packet = Packet::new(bytes);
            if packet.pid() == NULL_PID {
                continue;
            }
            let at = self.began.elapsed().as_secs_f64();
            let last = self.counters[usize::from(packet.pid())].replace(packet.cc());
            let is_next = |last: u8| (last + u8::from(packet.has_payload())) & 0x0F == packet.cc();
            assert!(last.is_none_or(is_next) || packet.discontinuity(), "PID {:#x} at {at} s", packet.pid());
            if let Some(pcr) = packet.pcr() {
                let step = (pcr + PCR_MODULUS - self.clock.replace(pcr).unwrap_or(pcr)) % PCR_MODULUS;
                assert!(step < 20 * PCR_HZ, "the clock goes back or far ahead at {at} s");
                self.programme += step;
                self.lead_max = self.lead_max.max(self.programme as f64 / PCR_HZ as f64 - at);
            }
            let (Some(presented), Some(label)) = (stamps(packet).pts, labels_in(bytes).pop()) else {
                continue;
            };
            match packet.pid() {
                VIDEO => self.picture(label, bytes[187] - 1, presented, at),
                SOUND => self.sound(&label, presented, at),
                _ => {}
            }
        }
    }

    fn picture(&mut self, label: String, number: u8, presented: u64, at: f64) {
        self.n_pictures += 1;
        if let Some((last_label, last, last_presented)) = &self.picture {
            let step = distance(*last_presented, presented, STAMP_MODULUS);
            assert!(step > 0, "a picture is presented {step} ticks after the last one at {at} s");
            let n_later = (u16::from(number) + u16::from(NUMBERS) - u16::from(*last)) % u16::from(NUMBERS);
            let is_new = (1..=u16::from(MISSING_MAX)).contains(&n_later);
            assert!(*last_label != label || is_new, "{label}: picture {number} after {last} at {at} s");
        }
        self.picture = Some((label, number, presented));
    }

    /// Sound and picture of a source are presented together.
    fn sound(&mut self, label: &str, presented: u64, at: f64) {
        self.n_sounds += 1;
        let Some((_, _, picture)) = self.picture.as_ref().filter(|it| it.0 == label) else { return };
        let after = distance(*picture, presented, STAMP_MODULUS);
        // A picture that is still awaited belongs to an earlier connection.
        if after.abs() <= PICTURE {
            assert_eq!(after % PICTURE, 0, "sound and picture at {at} s");
        }
    }
}

async fn soak(length: Duration, seed: u64) {
    let mut random = Random(seed);
    let mut setup = Setup::new();
    let mut output = Output {
        began: Instant::now(),
        counters: [None; 0x2000],
        clock: None,
        programme: 0,
        lead_max: f64::MIN,
        picture: None,
        n_pictures: 0,
        n_sounds: 0,
    };
    let mut ts = TsSource { bitrate: 100_000, ..TsSource::new("0") };
    let mut tail = setup.tail();
    let (mut attempt, mut first_lead) = (0, None);
    while output.began.elapsed() < length {
        attempt += 1;
        if random.below(3) == 0 {
            // A new clock, such as that of an encoder that was started again.
            let start = random.below(STAMP_MODULUS);
            ts = TsSource { start, label: attempt.to_string(), ..ts };
        }
        let seconds = 3 + random.below(40);
        let n_packets = ts.bytes(Duration::ZERO, Duration::from_secs(seconds)).len() / PACKET;
        let how = random.choose(&[Break::End, Break::Reset, Break::Silence, Break::Garbage]);
        let play = Play {
            burst: Duration::from_millis(random.below(10_000)),
            burst_speed: random.choose(&[None, Some(3.0), Some(4.0), Some(8.0)]),
            after: Some((n_packets as u64 + random.below(9), how)),
            ..Play::new(ts.clone())
        };
        setup.provider.set("/x", Behaviour::Play(play));
        setup.pump.follow(attempt, 1, setup.open("/x").await);
        loop {
            let bytes = all_for(&mut tail, Duration::from_millis(400)).await;
            output.read(&bytes);
            let is_lost = |it: PumpMessage| matches!(it, PumpMessage::Lost { .. });
            if setup.messages.try_recv().is_ok_and(|it| is_lost(it.0)) {
                break;
            }
        }
        let first = *first_lead.get_or_insert(output.lead_max);
        assert!(
            output.lead_max <= first + 3.0,
            "{} s after attempt {attempt}, {first} s at first",
            output.lead_max
        );
        sleep(Duration::from_millis(random.below(1_500))).await;
    }
    let expected = length.as_secs() * 25;
    // Seconds are missing after each silence, and at each clock of another encoder.
    assert!(output.n_pictures > expected / 2 && output.n_sounds > expected / 2, "{}", output.n_pictures);
}
