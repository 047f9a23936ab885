//! A file that is played at the rate of its programme clock, like a live stream, until it ends.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep_until};

use crate::error::{Cause, UpstreamError};
use crate::permit::Permit;
use crate::source::target::decode;
use crate::ts::align::Aligner;
use crate::ts::clock::{PCR_HZ, PCR_MODULUS};
use crate::ts::packet::{PACKET, Packet, packets};

/// Bytes per read.
const READ_BYTES: usize = 64 << 10;
/// Maximum number of bytes without a packet boundary before the file is rejected.
const UNSYNCED_BYTES_MAX: usize = 1 << 20;
/// A clock step above this limit, or backwards, is a discontinuity; playback continues without a pause.
const STEP_MAX: Duration = Duration::from_secs(2);

/// An open file and the permit to play it.
pub(super) struct FileSource {
    // Field order is drop order.
    file: File,
    buffer: BytesMut,
    aligner: Aligner,
    /// Bytes read without finding a packet; `None` after the first packet.
    n_unsynced: Option<usize>,
    clock: PlaybackClock,
    /// Pieces that were read and are not due yet.
    waiting: VecDeque<(Instant, Bytes)>,
    _permit: Box<dyn Permit>,
}

impl FileSource {
    /// Opens the file at a path, which may be percent-encoded.
    pub(super) async fn open(path: &str, permit: Box<dyn Permit>) -> Result<Self, UpstreamError> {
        let opened = match File::open(path).await {
            Err(error) if error.kind() == io::ErrorKind::NotFound => File::open(decode(path)).await,
            other => other,
        };
        let file = opened.map_err(|error| file_cause(&error))?;
        // Reading a pipe or a device would block a thread until somebody writes to it.
        if !file.metadata().await.map_err(|error| file_cause(&error))?.is_file() {
            return Err(Cause::File("not a regular file".into()).into());
        }
        Ok(Self {
            file,
            buffer: BytesMut::new(),
            aligner: Aligner::new(),
            n_unsynced: Some(0),
            clock: PlaybackClock::default(),
            waiting: VecDeque::new(),
            _permit: permit,
        })
    }

    /// Returns the next packets when they are due. May be cancelled.
    pub(super) async fn read(&mut self) -> Result<Bytes, UpstreamError> {
        loop {
            if let Some((due, _)) = self.waiting.front() {
                sleep_until(*due).await;
                let piece = self.waiting.pop_front().map(|(_, bytes)| bytes);
                return Ok(piece.unwrap_or_default());
            }
            self.buffer.reserve(READ_BYTES);
            match self.file.read_buf(&mut self.buffer).await {
                Ok(0) if self.n_unsynced.is_some() => return Err(not_ts()),
                Ok(0) => return Err(Cause::Ended.into()),
                Ok(n) => {
                    self.aligner.push(self.buffer.split().freeze());
                    self.n_unsynced = self.n_unsynced.map(|it| it + n);
                }
                Err(error) => return Err(file_cause(&error).into()),
            }
            while let Some(run) = self.aligner.next() {
                self.n_unsynced = None;
                self.clock.cut(&run, &mut self.waiting);
            }
            if self.n_unsynced.is_some_and(|it| it > UNSYNCED_BYTES_MAX) {
                return Err(not_ts());
            }
        }
    }
}

fn file_cause(error: &io::Error) -> Cause {
    Cause::File(error.kind().to_string())
}

fn not_ts() -> UpstreamError {
    Cause::NotTs("another type of file".into()).into()
}

/// Computes when packets are due by the programme clock of the file.
#[derive(Default)]
struct PlaybackClock {
    pid: Option<u16>,
    /// The last clock reference and the time at which it was due.
    last: Option<(u64, Instant)>,
}

impl PlaybackClock {
    /// Splits a run of packets at its clock references. Each piece is due when its clock reference is due.
    fn cut(&mut self, run: &Bytes, out: &mut VecDeque<(Instant, Bytes)>) {
        let mut start = 0;
        for (index, packet) in packets(run).enumerate() {
            let packet = Packet::new(packet);
            let Some(pcr) = packet.pcr() else { continue };
            if *self.pid.get_or_insert(packet.pid()) != packet.pid() {
                continue;
            }
            let at = index * PACKET;
            let due = self.due();
            if at > start {
                out.push_back((due, run.slice(start..at)));
            }
            start = at;
            self.last = Some((pcr, self.due_of(pcr)));
        }
        if start < run.len() {
            out.push_back((self.due(), run.slice(start..)));
        }
    }

    fn due(&self) -> Instant {
        self.last.map_or_else(Instant::now, |(_, due)| due)
    }

    fn due_of(&self, pcr: u64) -> Instant {
        let Some((last, due)) = self.last else { return Instant::now() };
        let ticks = (pcr + PCR_MODULUS - last) % PCR_MODULUS;
        let step = Duration::from_micros(ticks * 1_000_000 / PCR_HZ);
        // After a late read, playback catches up by no more than the delay.
        if step > STEP_MAX { due.max(Instant::now()) } else { due + step }
    }
}
