//! Some seconds of a source, read to say what is in them: nobody watches them, and nothing of them is kept.

use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::error::{Cause, UpstreamError};
use crate::source::payload::PayloadWatch;
use crate::source::{ProgramOutput, Source};
use crate::ts::align::Aligner;
use crate::ts::clock::{PCR_HZ, pcr_step};
use crate::ts::packet::{Packet, packets};
use crate::ts::picture::{PictureReader, PictureSize};
use crate::ts::tables::{StreamKind, Tables};

/// After how many bytes others have the thread.
const TURN_BYTES: usize = 256 << 10;

/// What was in the part of a source that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Bytes read.
    pub bytes: u64,
    /// For how long was read.
    pub took: Duration,
    /// How much programme came in that time, by its own clock; `None` where it has none.
    pub programme: Option<Duration>,
    /// The codec of the pictures, for people.
    pub video: Option<&'static str>,
    /// Their size, where it was seen.
    pub picture: Option<PictureSize>,
    /// The codec of each stream of sound, in the order of the programme.
    pub audio: Vec<&'static str>,
    /// Programmes that the stream announces.
    pub n_programmes: usize,
    /// What the program has said, if one reads the source.
    pub program: Option<ProgramOutput>,
}

/// Reads a source, and keeps account.
pub struct Sampler {
    source: Source,
    began: Instant,
    bytes: u64,
    aligner: Aligner,
    watch: PayloadWatch,
    picture: Option<PictureReader>,
    last_pcr: Option<u64>,
    /// Of the programme's clock.
    ticks: u64,
}

impl Sampler {
    /// Of a source from which nothing was read since it was opened.
    pub fn new(source: Source) -> Self {
        Self {
            source,
            began: Instant::now(),
            bytes: 0,
            aligner: Aligner::new(),
            watch: PayloadWatch::default(),
            picture: None,
            last_pcr: None,
            ticks: 0,
        }
    }

    /// Reads for so long. May be cancelled: what was read until then counts.
    ///
    /// # Errors
    /// Why there was no more to read before the time was up; `Stall` after so much time without a payload packet.
    pub async fn read(&mut self, time: Duration, stall_timeout: Duration) -> Result<(), UpstreamError> {
        let end = Instant::now() + time;
        let mut last_payload = Instant::now();
        let mut n_bytes = 0;
        loop {
            let silence = last_payload + stall_timeout;
            if Instant::now() >= end {
                return Ok(());
            }
            let Ok(read) = timeout_at(end.min(silence), self.source.read()).await else {
                return if end <= silence { Ok(()) } else { Err(Cause::Stall.into()) };
            };
            let bytes = read?;
            n_bytes += bytes.len();
            if self.take(bytes) {
                last_payload = Instant::now();
            } else if Instant::now() >= silence {
                return Err(Cause::Stall.into());
            }
            // What has always more to read would let nobody else.
            if n_bytes >= TURN_BYTES {
                n_bytes = 0;
                yield_now().await;
            }
        }
    }

    /// Whether there was payload in these bytes.
    fn take(&mut self, bytes: bytes::Bytes) -> bool {
        self.bytes += bytes.len() as u64;
        self.aligner.push(bytes);
        let mut has_payload = false;
        while let Some(run) = self.aligner.next() {
            for packet in packets(&run) {
                has_payload |= self.watch.packet(packet);
                if self.watch.take_news() {
                    self.picture = self.watch.tables().and_then(PictureReader::of);
                }
                let packet = Packet::new(packet);
                if let Some(picture) = &mut self.picture {
                    picture.packet(packet);
                }
                let clock = self.watch.tables().map(|it| it.pmt.pcr_pid);
                if let Some(pcr) = packet.pcr().filter(|_| clock == Some(packet.pid())) {
                    self.clock(pcr, packet.discontinuity());
                }
            }
        }
        has_payload
    }

    fn clock(&mut self, pcr: u64, is_break: bool) {
        // A jump is no programme.
        if let Some(last) = self.last_pcr.replace(pcr) {
            self.ticks += pcr_step(last, pcr, is_break).unwrap_or(0);
        }
    }

    /// What there was until now.
    pub fn sample(&mut self) -> Sample {
        let picture = self.picture.as_mut().and_then(PictureReader::size);
        let tables = self.watch.tables();
        let of_kind = |kind| {
            let streams = tables.map(|it: &Tables| it.pmt.streams.as_slice()).unwrap_or_default();
            streams.iter().filter(move |it| it.kind() == kind).map(|it| it.codec())
        };
        Sample {
            bytes: self.bytes,
            took: self.began.elapsed(),
            programme: self.last_pcr.map(|_| Duration::from_micros(self.ticks / (PCR_HZ / 1_000_000))),
            video: of_kind(StreamKind::Video).next(),
            picture,
            audio: of_kind(StreamKind::Audio).collect(),
            // Number 0 names a table of the network.
            n_programmes: tables.map_or(0, |it| it.pat.programs.iter().filter(|it| it.0 != 0).count()),
            program: self.source.program_output(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::runtime::Handle;

    use super::*;
    use crate::closer::Closer;
    use crate::source::{OpenRequest, SourceSettings, Upstream, open};
    use crate::testing::{Behaviour, MemoryDial, PermitCount, Play, TsSource};

    async fn sampler(play: Play) -> Sampler {
        let dial = MemoryDial::new();
        dial.provider("tv:80").set("/a", Behaviour::Play(play));
        let closer = Closer::new(Handle::current());
        let upstream = Upstream { dial: Arc::new(dial), closer, settings: SourceSettings::default() };
        let request = OpenRequest { url: "http://tv:80/a".to_owned(), ..OpenRequest::default() };
        let permit = PermitCount::default().permit(|| {});
        Sampler::new(open(request, permit, upstream).await.unwrap())
    }

    const STALL: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn programme_is_measured_by_its_own_clock() {
        for (speed, expected) in [(1.0, 10.0), (0.5, 5.0), (2.0, 20.0)] {
            let mut sampler = sampler(Play { speed, ..Play::new(TsSource::new("a")) }).await;
            sampler.read(Duration::from_secs(10), STALL).await.unwrap();
            let sample = sampler.sample();
            let programme = sample.programme.unwrap().as_secs_f64();
            assert!((programme - expected).abs() < 0.5, "{programme} s at {speed}");
            assert_eq!(sample.took, Duration::from_secs(10));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_read_before_a_reading_is_broken_off_counts() {
        let mut sampler = sampler(Play::new(TsSource::new("a"))).await;
        let read = sampler.read(Duration::from_secs(60), STALL);
        assert!(timeout_at(Instant::now() + Duration::from_secs(2), read).await.is_err());
        let sample = sampler.sample();
        assert!(sample.bytes > 0 && sample.programme.unwrap() > Duration::from_secs(1), "{sample:?}");
        assert_eq!((sample.took, sample.program), (Duration::from_secs(2), None));
    }
}
