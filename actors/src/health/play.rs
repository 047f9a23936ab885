//! Measures one live channel: the bit rate, the codecs and the picture of the stream that plays.

use std::time::Duration;

use domain::health::Measurement;
use domain::ids::StreamId;
use media::groups::GroupLength;
use media::pump::{KnownStream, PumpHandle};
use media::ring::Ring;
use media::ts::tables::ElementaryStream;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use super::HealthTable;
use crate::clock::now_ms;

/// Minimum time over which a bit rate is measured.
const RATE_TIME_MIN: Duration = Duration::from_secs(5);

/// Codecs and pictures of a stream, as far as they are known.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StreamFacts {
    /// Name of the video codec.
    pub video_codec: Option<String>,
    /// Name of the audio codec.
    pub audio_codec: Option<String>,
    /// Width and height in pixels.
    pub picture: Option<(u32, u32)>,
    /// Frames per second.
    pub frame_rate: Option<f64>,
}

/// The play of a live channel, shared with the task that measures it.
pub(crate) struct PlayMeter {
    health: HealthTable,
    pump: PumpHandle,
    ring: Ring,
    play: Mutex<Option<Play>>,
}

/// A stream that plays.
struct Play {
    stream: StreamId,
    since: Instant,
    /// Time and bytes at the start of the current measurement.
    measured: (Instant, u64),
}

impl PlayMeter {
    pub(crate) fn new(health: HealthTable, pump: PumpHandle, ring: Ring) -> Self {
        Self { health, pump, ring, play: Mutex::new(None) }
    }

    /// Notes that a stream plays from now on.
    pub(crate) fn begin(&self, stream: StreamId) {
        let now = Instant::now();
        let play = Play { stream, since: now, measured: (now, self.ring.meter().bytes_in()) };
        *self.play.lock() = Some(play);
    }

    /// Notes that the stream does not play any longer. Returns for how long it played.
    pub(crate) fn end(&self) -> Option<Duration> {
        self.measure();
        self.play.lock().take().map(|it| it.since.elapsed())
    }

    /// Returns a stream for the pump, with what earlier plays have shown of it.
    pub(crate) fn known_stream(&self, stream: StreamId) -> KnownStream {
        self.health.known_stream(stream)
    }

    /// Returns codecs and pictures of the stream that plays.
    pub(crate) fn facts(&self) -> StreamFacts {
        let tables = self.pump.tables();
        let codec = |it: Option<&ElementaryStream>| it.map(|it| it.codec().to_owned());
        StreamFacts {
            video_codec: tables.as_ref().and_then(|it| codec(it.video())),
            audio_codec: tables.as_ref().and_then(|it| codec(it.audio())),
            picture: self.pump.picture().map(|it| (it.width, it.height)),
            frame_rate: self.pump.frame_rate(),
        }
    }

    /// Reports what is known of the stream that plays.
    pub(crate) fn measure(&self) {
        let (stream, bitrate_kbps) = {
            let mut play = self.play.lock();
            let Some(play) = &mut *play else { return };
            let (since, bytes) = play.measured;
            let (now, bytes_now) = (Instant::now(), self.ring.meter().bytes_in());
            let time = now - since;
            let rate = (time >= RATE_TIME_MIN).then(|| kilobits(bytes_now.saturating_sub(bytes), time));
            if rate.is_some() {
                play.measured = (now, bytes_now);
            }
            (play.stream, rate)
        };
        let StreamFacts { video_codec, audio_codec, picture, .. } = self.facts();
        let seen = self.pump.seen(pump_key(stream));
        let measurement = Measurement {
            bitrate_kbps,
            video_codec,
            audio_codec,
            picture,
            group_ms: milliseconds(seen.group),
            moves: seen.moves,
        };
        if measurement != Measurement::default() {
            self.health.measured(stream, measurement);
        }
    }
}

impl HealthTable {
    /// Returns a stream for a pump, with what earlier plays have shown of it.
    pub(crate) fn known_stream(&self, stream: StreamId) -> KnownStream {
        let group = match self.get(stream).and_then(|it| it.known_group_ms(now_ms())) {
            None => GroupLength::Unknown,
            Some(0) => GroupLength::None,
            Some(length) => GroupLength::Known(Duration::from_millis(length.into())),
        };
        KnownStream { key: pump_key(stream), group }
    }
}

/// Returns the key of a stream for a pump.
fn pump_key(stream: StreamId) -> u64 {
    stream.0.into()
}

/// Returns the length of a group as it is stored; 0 if there are none.
fn milliseconds(group: GroupLength) -> Option<u32> {
    match group {
        GroupLength::Unknown => None,
        GroupLength::Known(length) => Some(u32::try_from(length.as_millis()).unwrap_or(u32::MAX).max(1)),
        GroupLength::None => Some(0),
    }
}

/// Returns the rate in kilobits per second.
fn kilobits(bytes: u64, time: Duration) -> u32 {
    (bytes as f64 * 8.0 / 1000.0 / time.as_secs_f64()).round() as u32
}
