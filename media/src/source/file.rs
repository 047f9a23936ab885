//! A file played as if it were live: as fast as its programme clock runs, and then it ends.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use tokio::fs::File;
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, sleep_until};

use crate::Permit;
use crate::error::{Cause, UpstreamError};
use crate::source::target::decode;
use crate::ts::align::Aligner;
use crate::ts::clock::{PCR_HZ, PCR_MODULUS};
use crate::ts::packet::{PACKET, Packet, packets};

/// How much is read at once.
const READ_BYTES: usize = 64 << 10;
/// How much of a file may pass without a packet boundary before we say that it is something else.
const UNSYNCED_BYTES_MAX: usize = 1 << 20;
/// A clock that steps further than this, or back, has been set anew: we go on from there without a pause.
const STEP_MAX: Duration = Duration::from_secs(2);

/// An open file and the permit to play it.
pub(super) struct FileSource {
    // Field order is drop order.
    file: File,
    buffer: BytesMut,
    aligner: Aligner,
    /// Bytes read before the first packet was found; `None` once one was.
    n_unsynced: Option<usize>,
    clock: Pace,
    /// Pieces that are read and not due yet.
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
        // A pipe or a device would hold a thread for as long as nobody writes to it.
        if !file.metadata().await.map_err(|error| file_cause(&error))?.is_file() {
            return Err(Cause::File("it is no regular file".into()).into());
        }
        Ok(Self {
            file,
            buffer: BytesMut::new(),
            aligner: Aligner::new(),
            n_unsynced: Some(0),
            clock: Pace::default(),
            waiting: VecDeque::new(),
            _permit: permit,
        })
    }

    /// The next packets, when they are due. May be cancelled.
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
    Cause::NotTs("a file of something else".into()).into()
}

/// When packets are due by the clock of the file's programme.
#[derive(Default)]
struct Pace {
    pid: Option<u16>,
    /// The last clock reading, and when it was due.
    last: Option<(u64, Instant)>,
}

impl Pace {
    /// Cuts a run of packets at its clock readings; each piece is due when its reading is.
    fn cut(&mut self, run: &Bytes, out: &mut VecDeque<(Instant, Bytes)>) {
        let mut begin = 0;
        for (index, packet) in packets(run).enumerate() {
            let packet = Packet::new(packet);
            let Some(pcr) = packet.pcr() else { continue };
            if *self.pid.get_or_insert(packet.pid()) != packet.pid() {
                continue;
            }
            let at = index * PACKET;
            let due = self.due();
            if at > begin {
                out.push_back((due, run.slice(begin..at)));
            }
            begin = at;
            self.last = Some((pcr, self.due_of(pcr)));
        }
        if begin < run.len() {
            out.push_back((self.due(), run.slice(begin..)));
        }
    }

    fn due(&self) -> Instant {
        self.last.map_or_else(Instant::now, |(_, due)| due)
    }

    fn due_of(&self, pcr: u64) -> Instant {
        let Some((last, due)) = self.last else { return Instant::now() };
        let ticks = (pcr + PCR_MODULUS - last) % PCR_MODULUS;
        let step = Duration::from_micros(ticks * 1_000_000 / PCR_HZ);
        // Late reads do not make up for lost time by more than they lost.
        if step > STEP_MAX { due.max(Instant::now()) } else { due + step }
    }
}
