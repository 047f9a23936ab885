//! Watches the picture and the sound of a source, each by itself, on the clock of its programme. Pure.
//!
//! Nothing is decoded: a picture is there if access units of it begin, whatever they show, and it stands still if the same
//! ones come again and again.

use std::time::Duration;

use crate::pump::message::Lack;
use crate::pump::still_picture::StillPicture;
use crate::ts::clock::{STAMP_HZ, STAMP_MODULUS, distance, pcr_step};
use crate::ts::packet::{NULL_PID, Packet};
use crate::ts::pes::{is_pes_start, stamps};
use crate::ts::random_access::RandomAccess;
use crate::ts::tables::{Pmt, StreamKind, Tables};

/// Ticks of 90 kHz.
type Ticks = u64;

/// Sound and picture of the same time arrive at most this far apart in most streams. Time that only their stamps show
/// counts beyond it.
const INTERLEAVE: Ticks = STAMP_HZ;
/// A larger step of time stamps is a jump.
const STAMP_STEP_MAX: Ticks = 5 * STAMP_HZ;
/// The longest distance of access units is remembered for one to two such periods.
const DISTANCE_MEMORY: Ticks = 60 * STAMP_HZ;
/// The rate of pictures is measured over one to two such periods.
const RATE_PERIOD: Ticks = 10 * STAMP_HZ;
/// Pictures whose mean distance is longer are slides, which are not supervised.
const MEAN_DISTANCE_MAX: Ticks = STAMP_HZ;
/// Distances that are needed to know the rate: a cover may be sent a few times at the start.
const DISTANCES_MIN: u64 = 5;
/// A silence counts as a loss after this many of the longest usual distances.
const LONGEST_DISTANCES: u64 = 3;

/// The meaning of a PID in the programme.
const NOTHING: u8 = 0;
const PICTURE: u8 = 1;
const SOUND: u8 = 2;

/// A change of what a source lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WatchReport {
    /// This part is missing. `never`: it has not come since the source began.
    Lacks { lack: Lack, never: bool },
    /// This part is there again.
    Complete(Lack),
}

/// The picture and the sound of one source.
pub(super) struct StreamWatch {
    /// The PMT that is in force.
    pmt: Option<Pmt>,
    /// The meaning of each PID.
    roles: Box<[u8; 1 << 13]>,
    time: ProgrammeTime,
    picture: Part,
    sound: Part,
    /// The random-access points of the picture.
    access: Option<RandomAccess>,
    still: StillPicture,
    /// Whether each lack was reported, by [`Lack`].
    reported: [bool; 3],
}

impl StreamWatch {
    /// Each limit in programme time; zero: not watched.
    pub(super) fn new(picture: Duration, sound: Duration) -> Self {
        Self {
            pmt: None,
            roles: Box::new([NOTHING; 1 << 13]),
            time: ProgrammeTime::default(),
            picture: Part::new(picture),
            sound: Part::new(sound),
            access: None,
            still: StillPicture::default(),
            reported: [false; 3],
        }
    }

    /// Takes the tables that are in force from now on.
    pub(super) fn set_tables(&mut self, tables: Option<&Tables>) {
        if tables.map(|it| &it.pmt) == self.pmt.as_ref() {
            return;
        }
        self.pmt = tables.map(|it| it.pmt.clone());
        self.roles.fill(NOTHING);
        self.access = tables.and_then(RandomAccess::new);
        self.still = StillPicture::default();
        let now = self.time.now();
        let mut has = [false; 2];
        if let Some(tables) = tables {
            let video = tables.video().map(|it| it.pid);
            for stream in &tables.pmt.streams {
                let role = match tables.pmt.kind(stream) {
                    StreamKind::Video if video == Some(stream.pid) => PICTURE,
                    StreamKind::Audio => SOUND,
                    StreamKind::Video | StreamKind::Other => continue,
                };
                if stream.pid != NULL_PID {
                    self.roles[usize::from(stream.pid)] = role;
                    has[usize::from(role - 1)] = true;
                }
            }
        }
        self.picture.set_promised(has[0], now);
        self.sound.set_promised(has[1], now);
    }

    /// Reads one packet of the source.
    #[inline]
    pub(super) fn packet(&mut self, packet: Packet<'_>) {
        let role = self.roles[usize::from(packet.pid())];
        if role != NOTHING {
            self.part_packet(role, packet);
        }
    }

    fn part_packet(&mut self, role: u8, packet: Packet<'_>) {
        let now = self.time.now();
        let part = if role == PICTURE { &mut self.picture } else { &mut self.sound };
        if packet.is_scrambled() {
            // Scrambling has a cause of its own.
            part.excused_at = now;
            return;
        }
        if is_pes_start(packet) {
            let lack = if role == PICTURE { Lack::Picture } else { Lack::Sound };
            part.begin_unit(now, self.reported[lack as usize]);
            let by_stamps = part.advance(stamps(packet).decode());
            self.time.by_stamps = self.time.by_stamps.max(by_stamps);
            if role == PICTURE && part.timeout > 0 {
                self.still.begin_unit(now, self.access.is_some_and(|it| it.is_start(packet)));
            }
        }
        if role == PICTURE {
            self.still.packet(packet);
        }
    }

    /// Takes a reference of the programme clock, in ticks of 27 MHz. `is_break`: the stream declares a discontinuity.
    pub(super) fn pcr(&mut self, pcr: u64, is_break: bool) {
        if self.time.pcr(pcr, is_break) {
            (self.picture.since_pcr, self.sound.since_pcr) = (0, 0);
        }
    }

    /// Returns what has changed since the last call, at most one lack at a time.
    pub(super) fn check(&mut self) -> Option<WatchReport> {
        let now = self.time.now();
        let (picture, sound) = (self.picture.missing(now, true), self.sound.missing(now, false));
        let is_still = picture.is_none() && self.picture.is_supervised() && self.still.is_still();
        let states = [
            (Lack::Picture, picture.is_some(), picture == Some(true)),
            (Lack::Sound, sound.is_some(), sound == Some(true)),
            (Lack::Motion, is_still, false),
        ];
        let (lack, lacks, never) =
            states.into_iter().find(|(lack, lacks, _)| self.reported[*lack as usize] != *lacks)?;
        self.reported[lack as usize] = lacks;
        Some(if lacks { WatchReport::Lacks { lack, never } } else { WatchReport::Complete(lack) })
    }

    /// Returns whether this part was missing at the last check.
    pub(super) fn lacks(&self, lack: Lack) -> bool {
        self.reported[lack as usize]
    }

    /// Returns whether this part has come: a unit of it, or pictures that differ for some seconds.
    pub(super) fn has(&self, lack: Lack) -> bool {
        match lack {
            Lack::Picture => self.picture.last.is_some(),
            Lack::Sound => self.sound.last.is_some(),
            Lack::Motion => self.picture.is_supervised() && self.still.moves(),
        }
    }
}

/// The time of a programme, which only its own clocks move: the PCR, and the time stamps of picture and sound while
/// there is none. It never goes back.
#[derive(Debug, Default)]
struct ProgrammeTime {
    at: Ticks,
    last_pcr: Option<u64>,
    /// The time by which the stamps of picture or sound have advanced since the last step of the PCR.
    by_stamps: Ticks,
}

impl ProgrammeTime {
    fn now(&self) -> Ticks {
        self.at + self.by_stamps.saturating_sub(INTERLEAVE)
    }

    /// Returns whether the clock went on, so that the stamps begin anew.
    fn pcr(&mut self, pcr: u64, is_break: bool) -> bool {
        let last = self.last_pcr.replace(pcr);
        let step = last.and_then(|it| pcr_step(it, pcr, is_break)).unwrap_or(0) / 300;
        if step == 0 && last == Some(pcr) {
            return false;
        }
        self.at += step.max(self.by_stamps.saturating_sub(INTERLEAVE));
        self.by_stamps = 0;
        true
    }
}

/// The picture or all sound of a programme.
#[derive(Debug)]
struct Part {
    timeout: Ticks,
    is_promised: bool,
    /// When the tables began to promise it.
    promised_at: Ticks,
    /// The last access unit.
    last: Option<Ticks>,
    /// The last scrambled packet.
    excused_at: Ticks,
    last_stamp: Option<u64>,
    /// The time by which its stamps have advanced since the last step of the PCR.
    since_pcr: Ticks,
    distances: Distances,
}

impl Part {
    fn new(timeout: Duration) -> Self {
        Self {
            timeout: Ticks::try_from(timeout.as_millis()).unwrap_or(Ticks::MAX / 90).saturating_mul(90),
            is_promised: false,
            promised_at: 0,
            last: None,
            excused_at: 0,
            last_stamp: None,
            since_pcr: 0,
            distances: Distances::default(),
        }
    }

    fn set_promised(&mut self, is_promised: bool, now: Ticks) {
        if is_promised && !self.is_promised {
            (self.promised_at, self.last, self.distances) = (now, None, Distances::default());
        }
        self.is_promised = is_promised;
    }

    /// `was_missing`: the silence before it is not one of its usual ones.
    fn begin_unit(&mut self, now: Ticks, was_missing: bool) {
        if let Some(last) = self.last.replace(now) {
            self.distances.push(now - last, now, was_missing);
        }
    }

    /// Takes the decoding time of a unit, and returns what the stamps have advanced since the last step of the PCR.
    fn advance(&mut self, stamp: Option<u64>) -> Ticks {
        if let Some(stamp) = stamp {
            let step = self.last_stamp.replace(stamp).map_or(0, |it| distance(it, stamp, STAMP_MODULUS));
            self.since_pcr += Ticks::try_from(step).ok().filter(|it| *it <= STAMP_STEP_MAX).unwrap_or(0);
        }
        self.since_pcr
    }

    /// Returns whether it is missing, and then whether it never came. `has_rate`: it counts only while it is frequent.
    fn missing(&self, now: Ticks, has_rate: bool) -> Option<bool> {
        if self.timeout == 0 || !self.is_promised || has_rate && self.last.is_some() && !self.is_supervised()
        {
            return None;
        }
        let since = self.last.unwrap_or(self.promised_at).max(self.excused_at);
        let limit = self.timeout.max(LONGEST_DISTANCES * self.distances.longest());
        (now.saturating_sub(since) >= limit).then_some(self.last.is_none())
    }

    fn is_supervised(&self) -> bool {
        self.is_promised && self.distances.is_frequent()
    }
}

/// The distances of access units.
#[derive(Clone, Copy, Debug, Default)]
struct Distances {
    /// The longest of the current period and of the one before.
    longest: [Ticks; 2],
    longest_began: Ticks,
    /// Number and sum in the current period and in the one before.
    rate: [(u64, Ticks); 2],
    rate_began: Ticks,
}

impl Distances {
    fn push(&mut self, step: Ticks, now: Ticks, was_missing: bool) {
        if now - self.longest_began > DISTANCE_MEMORY {
            (self.longest, self.longest_began) = ([0, self.longest[0]], now);
        }
        if now - self.rate_began > RATE_PERIOD {
            (self.rate, self.rate_began) = ([(0, 0), self.rate[0]], now);
        }
        if !was_missing {
            self.longest[0] = self.longest[0].max(step);
        }
        self.rate[0].0 += 1;
        self.rate[0].1 += step;
    }

    fn longest(&self) -> Ticks {
        self.longest[0].max(self.longest[1])
    }

    fn is_frequent(&self) -> bool {
        let [(n, sum), (n_before, sum_before)] = self.rate;
        let n = n + n_before;
        n >= DISTANCES_MIN && sum + sum_before <= n * MEAN_DISTANCE_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ts::build::{AUDIO_PID, Builder, VIDEO_PID, pat};
    use crate::ts::clock::{PCR_HZ, PCR_MODULUS};
    use crate::ts::packet::PacketBytes;
    use crate::ts::pes::map_stamps;

    const SECOND_AUDIO_PID: u16 = 0x103;
    const OTHER_PID: u16 = 0x104;
    const TELEVISION: &[(u8, u16)] = &[(0x1B, VIDEO_PID), (0x0F, AUDIO_PID)];
    /// Limits of picture and sound in seconds.
    const BOTH: [u64; 2] = [5, 10];

    /// The content that a source sends at one instant of its programme.
    #[derive(Clone, Copy)]
    enum Sent {
        /// An access unit on this PID, with these bytes.
        Unit(u16, u8),
        /// A scrambled packet on this PID.
        Scrambled(u16),
        /// A clock reference; `true` if a discontinuity is declared.
        Clock(bool),
    }
    use Sent::{Clock, Scrambled, Unit};

    /// Creates a unit with a time stamp.
    fn unit(builder: &mut Builder, pid: u16, content: u8, stamp: u64) -> PacketBytes {
        let mut packet = builder.data(pid);
        packet[1] |= 0x40;
        packet[4..18].copy_from_slice(&[0, 0, 1, 0xE0, 0, 0, 0x80, 0x80, 5, 0x21, 0, 1, 0, 1]);
        packet[18..].fill(content);
        assert!(map_stamps(&mut packet, |_| stamp % STAMP_MODULUS));
        packet
    }

    /// Sends what `sent` says for each 10 ms of programme, whose clock shows `start` seconds first. Returns what is reported, with the
    /// time in milliseconds.
    fn reports(
        streams: &[(u8, u16)],
        [picture, sound]: [u64; 2],
        start: impl Fn(u64) -> i64,
        n_ms: u64,
        sent: impl Fn(u64) -> Vec<Sent>,
    ) -> Vec<(u64, WatchReport)> {
        let mut builder = Builder::new(streams);
        let tables = Tables { pat: pat(), pmt: builder.pmt.clone(), pmt_pid: 0x100 };
        let mut watch = StreamWatch::new(Duration::from_secs(picture), Duration::from_secs(sound));
        watch.set_tables(Some(&tables));
        let mut found = Vec::new();
        for ms in (0..n_ms).step_by(10) {
            let stamp = ((start(ms) * 90_000 + ms as i64 * 90).rem_euclid(STAMP_MODULUS as i64)) as u64;
            for it in sent(ms) {
                match it {
                    Unit(pid, content) => {
                        watch.packet(Packet::new(&unit(&mut builder, pid, content, stamp + 18_000)));
                        let mut rest = builder.data(pid);
                        rest[4..].fill(content);
                        watch.packet(Packet::new(&rest));
                    }
                    Scrambled(pid) => {
                        let mut packet = builder.data(pid);
                        packet[3] |= 0x80;
                        watch.packet(Packet::new(&packet));
                    }
                    Clock(is_break) => watch.pcr(stamp * 300 % PCR_MODULUS, is_break),
                }
            }
            while let Some(report) = watch.check() {
                found.push((ms, report));
            }
        }
        found
    }

    /// The usual programme: 25 pictures a second that differ, sound each 20 ms, a clock each 40 ms.
    fn usual(ms: u64) -> Vec<Sent> {
        let mut all = Vec::new();
        if ms.is_multiple_of(40) {
            all.extend([Clock(false), Unit(VIDEO_PID, (ms / 40) as u8)]);
        }
        if ms.is_multiple_of(20) {
            all.push(Unit(AUDIO_PID, 7));
        }
        all
    }

    fn without(all: Vec<Sent>, pid: u16) -> Vec<Sent> {
        all.into_iter().filter(|it| !matches!(it, Unit(of, _) if *of == pid)).collect()
    }

    fn without_clock(all: Vec<Sent>) -> Vec<Sent> {
        all.into_iter().filter(|it| !matches!(it, Clock(_))).collect()
    }

    #[track_caller]
    fn check_lost(
        lack: Lack,
        never: bool,
        range: std::ops::RangeInclusive<u64>,
        found: &[(u64, WatchReport)],
    ) {
        let [(at, report), ..] = found else { panic!("nothing was reported") };
        assert_eq!(*report, WatchReport::Lacks { lack, never });
        assert!(range.contains(at), "{at} ms");
    }

    #[test]
    fn a_picture_that_ends_while_sound_and_clock_go_on_is_missing_after_its_timeout() {
        let ends = |ms| if ms < 20_000 { usual(ms) } else { without(usual(ms), VIDEO_PID) };
        check_lost(Lack::Picture, false, 24_900..=25_200, &reports(TELEVISION, BOTH, |_| 0, 40_000, ends));
        // Its clock ends with it.
        let both = |ms| if ms < 20_000 { usual(ms) } else { without_clock(without(usual(ms), VIDEO_PID)) };
        check_lost(Lack::Picture, false, 24_900..=26_200, &reports(TELEVISION, BOTH, |_| 0, 40_000, both));
    }

    #[test]
    fn sound_that_ends_while_the_picture_goes_on_is_missing_after_its_timeout() {
        let ends = |ms| if ms < 5_000 { usual(ms) } else { without(usual(ms), AUDIO_PID) };
        check_lost(Lack::Sound, false, 14_900..=15_200, &reports(TELEVISION, BOTH, |_| 0, 40_000, ends));
    }

    #[test]
    fn a_part_that_comes_back_is_complete_and_its_silence_is_not_usual() {
        let gap = |ms| match ms {
            20_000..30_000 | 60_000..70_000 => without(usual(ms), VIDEO_PID),
            _ => usual(ms),
        };
        let found = reports(TELEVISION, BOTH, |_| 0, 80_000, gap);
        let names: Vec<_> = found.iter().map(|(ms, it)| (ms / 1_000, *it)).collect();
        let lost = WatchReport::Lacks { lack: Lack::Picture, never: false };
        let back = WatchReport::Complete(Lack::Picture);
        assert_eq!(names, [(24, lost), (30, back), (64, lost), (70, back)]);
    }

    #[test]
    fn three_times_the_longest_distance_is_allowed() {
        // A pause of four seconds in the third second, then the end.
        let pauses = |ms| match ms {
            3_000..7_000 | 20_000.. => without(usual(ms), VIDEO_PID),
            _ => usual(ms),
        };
        check_lost(Lack::Picture, false, 31_900..=32_300, &reports(TELEVISION, BOTH, |_| 0, 60_000, pauses));
    }

    #[test]
    fn what_has_no_usual_rate_of_pictures_is_not_supervised() {
        for distance in [1_200, 2_000, 5_000, 10_000, 1_000_000] {
            let slides = |ms: u64| {
                let mut all = without(usual(ms), VIDEO_PID);
                // A cover is often sent twice at the start.
                if ms.is_multiple_of(distance) || ms == 40 {
                    all.push(Unit(VIDEO_PID, ms as u8));
                }
                all
            };
            let found = reports(TELEVISION, BOTH, |_| 0, 120_000, slides);
            assert_eq!(found, [], "a picture each {distance} ms");
        }
    }

    #[test]
    fn one_of_two_soundtracks_may_end_and_silent_frames_are_sound() {
        let streams = [(0x1B, VIDEO_PID), (0x0F, AUDIO_PID), (0x81, SECOND_AUDIO_PID)];
        let two = |ms: u64| {
            let mut all = usual(ms);
            if ms < 5_000 && ms.is_multiple_of(30) {
                all.push(Unit(SECOND_AUDIO_PID, 0));
            }
            all
        };
        assert_eq!(reports(&streams, BOTH, |_| 0, 60_000, two), []);
    }

    #[test]
    fn subtitles_cues_and_data_are_not_supervised() {
        for stream_type in [0x05, 0x06, 0x15, 0x86, 0xC0] {
            let mut streams = TELEVISION.to_vec();
            if stream_type != 0x86 {
                streams.push((stream_type, OTHER_PID));
            }
            let found = reports(
                &streams,
                BOTH,
                |_| 0,
                60_000,
                |ms| {
                    let mut all = usual(ms);
                    if ms < 3_000 {
                        all.push(Unit(OTHER_PID, 1));
                    }
                    all
                },
            );
            assert_eq!(found, [], "type {stream_type}");
        }
    }

    #[test]
    fn scrambled_packets_have_a_cause_of_their_own() {
        let scrambled = |ms| {
            let mut all = usual(ms);
            if ms >= 10_000 {
                all = without(all, VIDEO_PID);
                all.push(Scrambled(VIDEO_PID));
            }
            all
        };
        assert_eq!(reports(TELEVISION, BOTH, |_| 0, 60_000, scrambled), []);
    }

    #[test]
    fn a_part_that_starts_late_has_its_time_from_the_first_packet() {
        let late = |begins: u64, pid| move |ms| if ms < begins { without(usual(ms), pid) } else { usual(ms) };
        assert_eq!(reports(TELEVISION, BOTH, |_| 0, 30_000, late(9_900, AUDIO_PID)), []);
        assert_eq!(reports(TELEVISION, BOTH, |_| 0, 30_000, late(4_900, VIDEO_PID)), []);
        let found = reports(TELEVISION, BOTH, |_| 0, 30_000, late(12_000, AUDIO_PID));
        check_lost(Lack::Sound, true, 10_000..=10_100, &found);
        assert_eq!(found[1], (12_000, WatchReport::Complete(Lack::Sound)));
        let found = reports(TELEVISION, BOTH, |_| 0, 30_000, late(u64::MAX, VIDEO_PID));
        check_lost(Lack::Picture, true, 5_000..=5_100, &found);
    }

    #[test]
    fn a_programme_that_stops_as_a_whole_lacks_no_part() {
        let stops = |ms| if (10_000..40_000).contains(&ms) { Vec::new() } else { usual(ms) };
        // Its clock stands still meanwhile, and jumps.
        assert_eq!(reports(TELEVISION, BOTH, |_| 0, 60_000, stops), []);
    }

    #[test]
    fn jumps_and_wraps_of_the_clock_move_no_time() {
        for jump in [-94_000, -3_600, -50, -6, 6, 50, 3_600, 94_000] {
            let start = |ms| if ms < 20_000 { 0 } else { jump };
            assert_eq!(reports(TELEVISION, BOTH, start, 40_000, usual), [], "by {jump} s");
        }
        // 2³³ ticks are 95,443.7 s.
        assert_eq!(reports(TELEVISION, BOTH, |_| 95_430, 40_000, usual), []);
        let ends = |ms| if ms < 9_000 { usual(ms) } else { without(usual(ms), VIDEO_PID) };
        check_lost(
            Lack::Picture,
            false,
            13_900..=14_200,
            &reports(TELEVISION, BOTH, |_| 95_432, 40_000, ends),
        );
        assert_eq!(PCR_MODULUS / PCR_HZ, 95_443);
    }

    #[test]
    fn the_same_picture_again_and_again_is_still_until_another_one_comes() {
        let same = |ms| match ms {
            0..5_000 | 30_000.. => usual(ms),
            _ => {
                let mut all = without(usual(ms), VIDEO_PID);
                if ms.is_multiple_of(40) {
                    all.push(Unit(VIDEO_PID, 7));
                }
                all
            }
        };
        let found = reports(TELEVISION, BOTH, |_| 0, 40_000, same);
        let [(at, still), (until, again)] = found.as_slice() else { panic!("{found:?}") };
        assert!((14_900..=15_200).contains(at) && (30_000..=30_100).contains(until), "{found:?}");
        assert_eq!(*still, WatchReport::Lacks { lack: Lack::Motion, never: false });
        assert_eq!(*again, WatchReport::Complete(Lack::Motion));
        assert_eq!(reports(TELEVISION, [0, 10], |_| 0, 40_000, same), [], "its picture is not watched");
    }

    #[test]
    fn a_still_picture_that_ends_is_a_lost_one() {
        let ends = |ms: u64| match ms {
            0..20_000 if ms.is_multiple_of(40) => vec![Clock(false), Unit(VIDEO_PID, 7), Unit(AUDIO_PID, 7)],
            _ => without(usual(ms), VIDEO_PID),
        };
        let found: Vec<_> =
            reports(TELEVISION, BOTH, |_| 0, 40_000, ends).into_iter().map(|it| it.1).collect();
        let lost = |lack| WatchReport::Lacks { lack, never: false };
        assert_eq!(found, [lost(Lack::Motion), lost(Lack::Picture), WatchReport::Complete(Lack::Motion)]);
    }

    #[test]
    fn a_cover_is_not_a_still_picture() {
        for distance in [1_200, 5_000, 10_000] {
            let cover = |ms: u64| {
                let mut all = without(usual(ms), VIDEO_PID);
                if ms.is_multiple_of(distance) {
                    all.push(Unit(VIDEO_PID, 7));
                }
                all
            };
            assert_eq!(reports(TELEVISION, BOTH, |_| 0, 120_000, cover), [], "each {distance} ms");
        }
    }

    #[test]
    fn a_limit_of_zero_is_off() {
        let nothing = |_| vec![Clock(false)];
        assert_eq!(reports(TELEVISION, [0, 0], |_| 0, 60_000, nothing), []);
        let ends = |ms| if ms < 5_000 { usual(ms) } else { without(usual(ms), VIDEO_PID) };
        assert_eq!(reports(TELEVISION, [0, 10], |_| 0, 60_000, ends), []);
    }

    #[test]
    fn radio_has_no_picture_to_lack() {
        let sound = |ms| without(usual(ms), VIDEO_PID);
        assert_eq!(reports(&[(0x0F, AUDIO_PID)], BOTH, |_| 0, 60_000, sound), []);
    }
}
