//! The health of a stream, as real plays show it. Nothing is connected only to measure it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::StreamId;
use crate::playout::Lack;

/// Maximum number of streams whose health is kept; those without a play for the longest time are dropped.
pub const HEALTH_STREAMS_MAX: usize = 50_000;
/// Maximum number of causes that are counted for one stream.
pub const CAUSES_MAX: usize = 32;
/// Maximum number of notes of one stream.
const NOTES_MAX: usize = 16;
/// A note that was not seen for this long is forgotten, in milliseconds.
const NOTES_KEPT_MS: i64 = 7 * 24 * 60 * 60 * 1000;
/// The score of a stream about which nothing is known.
pub const SCORE_UNKNOWN: u8 = 50;
/// A stream with a lower score fails more often than it plays.
pub const SCORE_FAILING_BELOW: u8 = 40;

/// After this time without a play, a score is half as far from [`SCORE_UNKNOWN`]; in milliseconds.
const HALF_LIFE_MS: f64 = 24.0 * 60.0 * 60.0 * 1000.0;
/// A loss after this time of play does not change the score, in milliseconds: a stream that plays for hours is healthy.
const STABLE_AFTER_MS: u64 = 10 * 60 * 1000;
/// Time for which a stream is known to lack a part that its tables promise, in milliseconds.
const LACK_MEMORY_MS: i64 = 24 * 60 * 60 * 1000;
/// The same for a picture that stood still, in milliseconds: a provider without a programme may have one soon.
const STILL_MEMORY_MS: i64 = 60 * 60 * 1000;
/// Time for which the distance of random-access points is known after it was measured, in milliseconds.
const GROUP_MEMORY_MS: i64 = 24 * 60 * 60 * 1000;
/// Each outcome moves the reliability by this part of the way to its end of the scale.
const WEIGHT: u16 = 3;
/// Width of a rank, so that small differences do not change the order of streams.
const RANK_WIDTH: u8 = 20;

/// The outcomes of the plays of a stream, and its last measurements.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamHealth {
    pub stream: StreamId,
    /// Openings that succeeded or failed. Those that were cancelled do not count.
    #[serde(default)]
    pub attempts: u32,
    /// Openings that failed because of the stream.
    #[serde(default)]
    pub failures: u32,
    /// Openings that failed because of the account, such as a full one.
    #[serde(default)]
    pub refusals: u32,
    /// Losses of the stream while it played.
    #[serde(default)]
    pub losses: u32,
    /// Number of failures, refusals and losses by the label of the cause.
    #[serde(default)]
    pub causes: BTreeMap<String, u32>,
    /// Weighted share of the successes, in thousandths; the last outcomes weigh most.
    #[serde(default)]
    pub reliability: u16,
    /// Time from the request to the first packets at the last success, in milliseconds.
    #[serde(default)]
    pub first_packet_ms: Option<u32>,
    /// Kilobits per second.
    #[serde(default)]
    pub bitrate_kbps: Option<u32>,
    #[serde(default)]
    pub video_codec: Option<String>,
    #[serde(default)]
    pub audio_codec: Option<String>,
    /// Pixels.
    #[serde(default)]
    pub width: Option<u32>,
    /// Pixels.
    #[serde(default)]
    pub height: Option<u32>,
    /// The longest usual distance of random-access points, in milliseconds; 0 if the stream has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_ms: Option<u32>,
    /// When that was measured, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_at: Option<i64>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub last_success: Option<i64>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub last_failure: Option<i64>,
    /// Label of the cause of the last failure.
    #[serde(default)]
    pub last_cause: Option<String>,
    /// When its picture, which its tables promise, had not come for a while after its start; milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_picture_at: Option<i64>,
    /// The same for its sound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_sound_at: Option<i64>,
    /// When it was noticed that its picture stands still; `None` once it moved again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub still_picture_at: Option<i64>,
    /// Facts that a person should know about the stream although it plays: each label with the time at which that was seen last,
    /// in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub notes: BTreeMap<String, i64>,
    /// When bit rate, codecs and picture size were measured, in milliseconds since 1970.
    #[serde(default)]
    pub measured_at: Option<i64>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub updated_at: i64,
}

/// Values measured while a stream plays; `None` is unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Measurement {
    pub bitrate_kbps: Option<u32>,
    pub video_codec: Option<String>,
    pub audio_codec: Option<String>,
    /// Width and height in pixels.
    pub picture: Option<(u32, u32)>,
    /// The distance of random-access points in milliseconds; 0 if there are none.
    pub group_ms: Option<u32>,
    /// The pictures of the last seconds differ.
    pub moves: bool,
}

/// The side that caused a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailureSide {
    Stream,
    Account,
}

impl StreamHealth {
    /// Creates the health of a stream about which nothing is known.
    pub fn new(stream: StreamId) -> Self {
        Self {
            stream,
            attempts: 0,
            failures: 0,
            refusals: 0,
            losses: 0,
            causes: BTreeMap::new(),
            reliability: 500,
            first_packet_ms: None,
            bitrate_kbps: None,
            video_codec: None,
            audio_codec: None,
            width: None,
            height: None,
            group_ms: None,
            group_at: None,
            last_success: None,
            last_failure: None,
            last_cause: None,
            no_picture_at: None,
            no_sound_at: None,
            still_picture_at: None,
            notes: BTreeMap::new(),
            measured_at: None,
            updated_at: 0,
        }
    }

    /// Notes that the stream delivered its first packets this long after the request.
    pub fn opened(&mut self, first_packet_ms: u32, at: i64) {
        self.attempts = self.attempts.saturating_add(1);
        self.first_packet_ms = Some(first_packet_ms);
        self.last_success = Some(at);
        self.reliability += (1000 - self.reliability.min(1000)) / WEIGHT;
        self.updated_at = at;
    }

    /// Notes that an opening failed.
    pub fn failed(&mut self, cause: &str, side: FailureSide, at: i64) {
        self.attempts = self.attempts.saturating_add(1);
        match side {
            FailureSide::Stream => {
                self.failures = self.failures.saturating_add(1);
                self.reliability -= self.reliability / WEIGHT;
            }
            FailureSide::Account => self.refusals = self.refusals.saturating_add(1),
        }
        self.note_cause(cause, at);
    }

    /// Notes that the stream was lost after it had played for this long.
    pub fn lost(&mut self, cause: &str, played_ms: u64, at: i64) {
        if played_ms < STABLE_AFTER_MS {
            self.reliability -= self.reliability / WEIGHT;
        }
        self.ended(cause, at);
    }

    /// Notes that the stream ended after healthy play: it counts as a loss, and does not change the score.
    pub fn ended(&mut self, cause: &str, at: i64) {
        self.losses = self.losses.saturating_add(1);
        self.note_cause(cause, at);
    }

    /// Notes that this part of the stream plays, or does not come although its tables promise it.
    pub fn lacks(&mut self, lack: Lack, is_missing: bool, at: i64) {
        let noted = match lack {
            Lack::Picture => &mut self.no_picture_at,
            Lack::Sound => &mut self.no_sound_at,
            Lack::Motion => &mut self.still_picture_at,
        };
        *noted = is_missing.then_some(at);
        self.updated_at = at;
    }

    /// Returns whether this part had not come when the stream was played in the last day, or its picture stood still in the
    /// last hour.
    pub fn lacked_lately(&self, lack: Lack, now: i64) -> bool {
        let (noted, memory) = match lack {
            Lack::Picture => (self.no_picture_at, LACK_MEMORY_MS),
            Lack::Sound => (self.no_sound_at, LACK_MEMORY_MS),
            Lack::Motion => (self.still_picture_at, STILL_MEMORY_MS),
        };
        noted.is_some_and(|at| now.saturating_sub(at) < memory)
    }

    /// Notes what a person should know about the stream although it plays. What was not seen for a week is forgotten.
    pub fn noted(&mut self, label: &str, at: i64) {
        self.notes.retain(|_, seen_at| at.saturating_sub(*seen_at) < NOTES_KEPT_MS);
        if self.notes.len() < NOTES_MAX || self.notes.contains_key(label) {
            self.notes.insert(label.to_owned(), at);
        }
        self.updated_at = at;
    }

    /// Notes measurements of the stream that plays. Unknown values stay as they are.
    pub fn measured(&mut self, measurement: Measurement, at: i64) {
        let Measurement { bitrate_kbps, video_codec, audio_codec, picture, group_ms, moves } = measurement;
        self.bitrate_kbps = bitrate_kbps.or(self.bitrate_kbps);
        if video_codec.is_some() || audio_codec.is_some() {
            self.video_codec = video_codec;
            self.audio_codec = audio_codec;
        }
        if let Some((width, height)) = picture {
            (self.width, self.height) = (Some(width), Some(height));
        }
        if group_ms.is_some() {
            (self.group_ms, self.group_at) = (group_ms, Some(at));
        }
        if moves {
            self.still_picture_at = None;
        }
        self.measured_at = Some(at);
        self.updated_at = at;
    }

    /// Returns the distance of random-access points in milliseconds, if it was measured in the last day; 0 if the stream has
    /// none.
    pub fn known_group_ms(&self, now: i64) -> Option<u32> {
        let at = self.group_at?;
        self.group_ms.filter(|_| now.saturating_sub(at) < GROUP_MEMORY_MS)
    }

    fn note_cause(&mut self, cause: &str, at: i64) {
        if self.causes.len() < CAUSES_MAX || self.causes.contains_key(cause) {
            let n = self.causes.entry(cause.to_owned()).or_default();
            *n = n.saturating_add(1);
        }
        self.last_failure = Some(at);
        self.last_cause = Some(cause.to_owned());
        self.updated_at = at;
    }

    /// Returns the health from 0 (always fails) to 100 (never fails). It approaches [`SCORE_UNKNOWN`] while the stream is
    /// not played.
    pub fn score(&self, now: i64) -> u8 {
        let age = now.saturating_sub(self.updated_at).max(0) as f64;
        let distance = f64::from(self.reliability.min(1000)) / 10.0 - f64::from(SCORE_UNKNOWN);
        let score = f64::from(SCORE_UNKNOWN) + distance * 0.5_f64.powf(age / HALF_LIFE_MS);
        score.round().clamp(0.0, 100.0) as u8
    }
}

/// Returns the rank of a score; the healthiest has the lowest. Streams of one rank keep the order of their channel.
pub fn rank(score: u8) -> u8 {
    (100 - score.min(100)) / RANK_WIDTH
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: i64 = 24 * 60 * 60 * 1000;

    #[test]
    fn a_note_that_was_not_seen_for_a_week_is_forgotten() {
        let mut health = StreamHealth::new(StreamId(1));
        health.noted("a", 0);
        health.noted("b", NOTES_KEPT_MS - 1);
        assert_eq!(health.notes.keys().collect::<Vec<_>>(), ["a", "b"]);
        health.noted("c", NOTES_KEPT_MS);
        assert_eq!(health.notes.keys().collect::<Vec<_>>(), ["b", "c"]);
        (0..99).for_each(|it| health.noted(&it.to_string(), NOTES_KEPT_MS));
        assert_eq!(health.notes.len(), NOTES_MAX);
        let text = serde_json::to_string(&StreamHealth::new(StreamId(1))).unwrap();
        assert!(
            !text.contains("notes") && !text.contains("still_picture_at") && !text.contains("group"),
            "older versions read it: {text}"
        );
    }

    fn after(outcomes: &str) -> StreamHealth {
        let mut health = StreamHealth::new(StreamId(1));
        for outcome in outcomes.chars() {
            match outcome {
                '+' => health.opened(100, DAY),
                '-' => health.failed("http_status", FailureSide::Stream, DAY),
                'a' => health.failed("http_status", FailureSide::Account, DAY),
                's' => health.lost("stall", 1_000, DAY),
                'l' => health.lost("stall", STABLE_AFTER_MS, DAY),
                'e' => health.ended("ended", DAY),
                other => panic!("{other}"),
            }
        }
        health
    }

    #[test]
    fn a_part_that_never_came_is_remembered_for_a_day_or_until_it_comes() {
        const HOUR: i64 = DAY / 24;
        let table = [
            (Lack::Picture, Lack::Sound, DAY),
            (Lack::Sound, Lack::Picture, DAY),
            // A picture that stood still may move soon.
            (Lack::Motion, Lack::Picture, HOUR),
        ];
        for (lack, other, memory) in table {
            let mut health = after("+");
            assert!(!health.lacked_lately(lack, DAY));
            health.lacks(lack, true, DAY);
            let end = DAY + memory;
            assert!(health.lacked_lately(lack, end - 1) && !health.lacked_lately(lack, end));
            assert!(!health.lacked_lately(other, DAY));
            health.lacks(lack, false, DAY + 1);
            assert!(!health.lacked_lately(lack, DAY + 1));
        }
    }

    #[test]
    fn an_end_after_healthy_play_is_counted_and_changes_no_score() {
        let (ended, played) = (after("+e"), after("+"));
        assert_eq!((ended.score(DAY), ended.losses), (played.score(DAY), 1));
        assert_eq!(ended.causes.get("ended"), Some(&1));
        assert!(after("+s").score(DAY) < played.score(DAY));
    }

    #[test]
    fn successes_raise_the_score_and_failures_of_the_stream_lower_it() {
        let score = |outcomes: &str| after(outcomes).score(DAY);
        assert_eq!(score(""), SCORE_UNKNOWN);
        assert!(score("+++") > score("+") && score("+") > SCORE_UNKNOWN);
        assert!(score("--") < score("-") && score("-") < SCORE_UNKNOWN);
        assert!(score("+-") > score("-") && score("+-") < score("+"));
        assert_eq!(score("+a"), score("+"), "a full account says nothing about the stream");
        assert!(score("+s") < score("+"));
        assert_eq!(score("+l"), score("+"), "it played for long");
        assert_eq!((score(&"+".repeat(100)) > 95, score(&"-".repeat(100)) < 5), (true, true));
    }

    #[test]
    fn a_score_approaches_the_middle_while_the_stream_is_not_played() {
        let (good, bad) = (after("++++"), after("----"));
        assert!(good.score(2 * DAY) < good.score(DAY) && good.score(60 * DAY) == SCORE_UNKNOWN);
        assert!(bad.score(2 * DAY) > bad.score(DAY) && bad.score(60 * DAY) == SCORE_UNKNOWN);
        assert_eq!(good.score(0), good.score(DAY), "a clock that was set back changes nothing");
    }

    #[test]
    fn outcomes_are_counted_by_cause() {
        let health = after("+-as");
        assert_eq!((health.attempts, health.failures, health.refusals, health.losses), (3, 1, 1, 1));
        let causes: Vec<_> = health.causes.iter().map(|(cause, n)| (cause.as_str(), *n)).collect();
        assert_eq!(causes, [("http_status", 2), ("stall", 1)]);
        assert_eq!((health.last_cause.as_deref(), health.last_failure), (Some("stall"), Some(DAY)));
        let mut many = StreamHealth::new(StreamId(1));
        (0..100).for_each(|n| many.failed(&n.to_string(), FailureSide::Stream, 0));
        assert_eq!(many.causes.len(), CAUSES_MAX);
    }

    #[test]
    fn unknown_measurements_keep_the_earlier_ones() {
        let mut health = StreamHealth::new(StreamId(1));
        let all = Measurement {
            bitrate_kbps: Some(4_000),
            video_codec: Some("H.264".to_owned()),
            audio_codec: Some("AAC".to_owned()),
            picture: Some((1920, 1080)),
            group_ms: Some(2_000),
            moves: false,
        };
        health.measured(all, 1);
        health.measured(Measurement::default(), 2);
        assert_eq!((health.bitrate_kbps, health.width, health.height), (Some(4_000), Some(1920), Some(1080)));
        assert_eq!((health.video_codec.as_deref(), health.measured_at), (Some("H.264"), Some(2)));
        assert_eq!((health.group_ms, health.group_at), (Some(2_000), Some(1)));
    }

    #[test]
    fn the_distance_of_random_access_points_is_known_for_a_day() {
        let mut health = StreamHealth::new(StreamId(1));
        assert_eq!(health.known_group_ms(0), None);
        for group_ms in [Some(0), Some(8_000)] {
            health.measured(Measurement { group_ms, ..Measurement::default() }, DAY);
            // What else is measured later does not renew it.
            health.measured(Measurement::default(), 2 * DAY - 1);
            assert_eq!(health.known_group_ms(2 * DAY - 1), group_ms);
            assert_eq!(health.known_group_ms(2 * DAY), None);
        }
    }

    #[test]
    fn a_picture_that_moves_in_a_later_play_stands_still_no_longer() {
        let mut health = StreamHealth::new(StreamId(1));
        health.lacks(Lack::Motion, true, 1);
        health.measured(Measurement::default(), 2);
        assert_eq!(health.still_picture_at, Some(1));
        health.measured(Measurement { moves: true, ..Measurement::default() }, 3);
        assert_eq!(health.still_picture_at, None);
    }

    #[test]
    fn the_healthiest_has_the_lowest_rank() {
        assert_eq!([100, 81, 80, 50, 20, 0].map(rank), [0, 0, 1, 2, 4, 5]);
    }
}
