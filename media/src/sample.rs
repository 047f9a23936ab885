//! Reads a few seconds of a source and reports the contents. Nothing is stored and nobody watches.

use std::time::Duration;

use tokio::task::yield_now;
use tokio::time::{Instant, timeout_at};

use crate::error::UpstreamError;
use crate::source::payload::PayloadDetector;
use crate::source::{ProgramOutput, Source};
use crate::ts::align::Aligner;
use crate::ts::clock::{PCR_HZ, pcr_step};
use crate::ts::packet::{Packet, packets};
use crate::ts::picture::{PictureReader, PictureSize};
use crate::ts::tables::{StreamKind, Tables};

/// Bytes after which the task yields to other tasks.
const TURN_BYTES: usize = 256 << 10;

/// The contents of the part of a source that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sample {
    /// Bytes read.
    pub bytes: u64,
    /// Duration of the reading.
    pub took: Duration,
    /// Duration of the programme by its own clock; `None` without a clock.
    pub programme: Option<Duration>,
    /// Name of the video codec, for display.
    pub video: Option<&'static str>,
    /// Size of the picture, if the stream contained it.
    pub picture: Option<PictureSize>,
    /// Codec of each audio stream, in the order of the PMT.
    pub audio: Vec<&'static str>,
    /// Number of programmes in the PAT.
    pub n_programmes: usize,
    /// Output of the program, if the source is a program.
    pub program: Option<ProgramOutput>,
}

/// Reads a source and records its contents.
pub struct Sampler {
    source: Source,
    began: Instant,
    bytes: u64,
    aligner: Aligner,
    detector: PayloadDetector,
    picture: Option<PictureReader>,
    last_pcr: Option<u64>,
    /// Elapsed time of the programme clock, in ticks of the PCR.
    ticks: u64,
}

impl Sampler {
    /// Creates a sampler for a source from which nothing was read since it was opened.
    pub fn new(source: Source) -> Self {
        let detector = PayloadDetector::from_hints(source.hints());
        Self {
            source,
            began: Instant::now(),
            bytes: 0,
            aligner: Aligner::new(),
            detector,
            picture: None,
            last_pcr: None,
            ticks: 0,
        }
    }

    /// Reads for this duration. May be cancelled: what was read until then counts.
    ///
    /// # Errors
    /// The reason why the source ended early; `Stall` or `Scrambled` when no payload packet arrives within
    /// `stall_timeout`.
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
                return if end <= silence { Ok(()) } else { Err(self.detector.cause_of_silence().into()) };
            };
            let bytes = read?;
            n_bytes += bytes.len();
            if self.take(bytes) {
                last_payload = Instant::now();
            } else if Instant::now() >= silence {
                return Err(self.detector.cause_of_silence().into());
            }
            // A source that always has more data would starve other tasks.
            if n_bytes >= TURN_BYTES {
                n_bytes = 0;
                yield_now().await;
            }
        }
    }

    /// Reads bytes and returns whether they contain payload.
    fn take(&mut self, bytes: bytes::Bytes) -> bool {
        self.bytes += bytes.len() as u64;
        self.aligner.push(bytes);
        let mut has_payload = false;
        while let Some(run) = self.aligner.next() {
            for packet in packets(&run).map(Packet::new) {
                has_payload |= self.detector.packet(packet);
                if self.detector.take_change() {
                    self.picture = self.detector.tables().and_then(PictureReader::new);
                }
                if let Some(picture) = &mut self.picture {
                    picture.packet(packet);
                }
                let clock = self.detector.tables().map(|it| it.pmt.pcr_pid);
                if let Some(pcr) = packet.pcr().filter(|_| clock == Some(packet.pid())) {
                    self.clock(pcr, packet.discontinuity());
                }
            }
        }
        has_payload
    }

    fn clock(&mut self, pcr: u64, is_break: bool) {
        if let Some(last) = self.last_pcr.replace(pcr) {
            self.ticks += pcr_step(last, pcr, is_break).unwrap_or(0);
        }
    }

    /// Returns the contents read so far.
    pub fn sample(&mut self) -> Sample {
        let picture = self.picture.as_mut().and_then(PictureReader::size);
        let tables = self.detector.tables();
        let of_kind = |kind| {
            let pmt = tables.map(|it: &Tables| &it.pmt);
            let streams = pmt.into_iter().flat_map(|pmt| pmt.streams.iter().map(move |it| (pmt, it)));
            streams.filter(move |(pmt, it)| pmt.kind(it) == kind).map(|(_, it)| it.codec())
        };
        Sample {
            bytes: self.bytes,
            took: self.began.elapsed(),
            programme: self.last_pcr.map(|_| Duration::from_micros(self.ticks / (PCR_HZ / 1_000_000))),
            video: of_kind(StreamKind::Video).next(),
            picture,
            audio: of_kind(StreamKind::Audio).collect(),
            // Programme number 0 is the network information table.
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
    use crate::launcher::Launcher;
    use crate::source::{OpenRequest, SourceSettings, Upstream, open};
    use crate::testing::{Behaviour, MemoryDial, PermitCount, Play, TsSource};

    async fn sampler(play: Play) -> Sampler {
        let dial = MemoryDial::new();
        dial.provider("tv:80").set("/a", Behaviour::Play(play));
        let closer = Closer::new(Handle::current());
        let upstream = Upstream {
            dial: Arc::new(dial),
            closer,
            launcher: Launcher::default(),
            settings: SourceSettings::default(),
        };
        let request = OpenRequest { url: "http://tv:80/a".to_owned(), ..OpenRequest::default() };
        let permit = PermitCount::default().permit(|| {});
        Sampler::new(open(request, permit, upstream).await.unwrap())
    }

    const STALL: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn the_programme_is_measured_by_its_own_clock() {
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
    async fn a_cancelled_reading_counts_what_was_read() {
        let mut sampler = sampler(Play::new(TsSource::new("a"))).await;
        let read = sampler.read(Duration::from_secs(60), STALL);
        assert!(timeout_at(Instant::now() + Duration::from_secs(2), read).await.is_err());
        let sample = sampler.sample();
        assert!(sample.bytes > 0 && sample.programme.unwrap() > Duration::from_secs(1), "{sample:?}");
        assert_eq!((sample.took, sample.program), (Duration::from_secs(2), None));
    }
}
