//! Reads frames. Everything that the format does not allow is an error.

use std::str;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use tokio::time::Instant;

use super::{
    END_TEXT_BYTES_MAX, FLAG_DISCONTINUITY, FLAG_FILLER, FLAG_NEW_TABLES, FLAG_PROGRAMME_TIME,
    FLAG_RANDOM_ACCESS, FLAG_TABLES, FLAGS, FRAME_BYTES_MAX, FRAME_HEAD_BYTES, KIND_ALIVE, KIND_CHUNK,
    KIND_END, KIND_SKIP, MAGIC, NodeFrame, PROLOGUE_BYTES, RING_FORMAT_VERSION,
};
use crate::chunk::{Chunk, ChunkHead};
use crate::chunker::CHUNK_BYTES_MAX;
use crate::ring::EndReason;
use crate::ts::packet::{NULL_PID, PACKET, SYNC};
use crate::ts::section::is_whole_section;
use crate::ts::tables::{Pat, Pmt, Tables};

/// Longest age that a chunk can claim. A ring keeps chunks for less.
const AGE_MAX: Duration = Duration::from_secs(600);

/// Highest number of a chunk.
const SEQUENCE_MAX: u64 = 1 << 62;
/// Latest programme clock: a thousand years.
const TIME_MAX: u64 = 1 << 60;

/// The fault of frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The stream does not begin with a prologue.
    #[error("the stream does not begin with a prologue")]
    Prologue,
    /// The other side uses another version of the format.
    #[error("version {0} of the ring format is not supported")]
    Version(u8),
    /// No frame has this kind.
    #[error("frames of kind {0} do not exist")]
    Kind(u8),
    /// A frame is longer or shorter than its kind allows.
    #[error("a frame of kind {0} cannot have {1} bytes")]
    Length(u8, usize),
    /// A field of a chunk has a value that is not allowed.
    #[error("the {0} of a chunk are invalid")]
    Chunk(&'static str),
    /// The number of a chunk does not follow that of the chunk before it.
    #[error("chunk {found} follows chunk {before}")]
    Order {
        /// The number of the chunk before.
        before: u64,
        /// The number that was found.
        found: u64,
    },
    /// The reason of an end is unknown, or its text is not UTF-8.
    #[error("the reason of an end is invalid")]
    End,
    /// Bytes follow the end.
    #[error("bytes follow the end")]
    AfterEnd,
}

/// Decodes the frames of one connection.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: BytesMut,
    epoch: Option<u64>,
    tables: Option<Arc<Tables>>,
    /// The number of the last chunk.
    last: Option<u64>,
    /// Whether a skip came after it.
    has_skipped: bool,
    has_ended: bool,
}

impl FrameDecoder {
    /// Creates a decoder for a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds received bytes. The caller takes all frames before it adds more, so that the buffer stays short.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the epoch, once the prologue was read.
    pub fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// Returns the next frame; `None` if it is not complete. `now` is the time of its arrival.
    ///
    /// # Errors
    /// The bytes are not what the format allows. Nothing can be read after an error.
    pub fn next(&mut self, now: Instant) -> Result<Option<NodeFrame>, FrameError> {
        if self.epoch.is_none() && !self.read_prologue()? {
            return Ok(None);
        }
        if self.has_ended {
            return if self.buffer.is_empty() { Ok(None) } else { Err(FrameError::AfterEnd) };
        }
        let Some(head) = self.buffer.first_chunk::<FRAME_HEAD_BYTES>() else { return Ok(None) };
        let kind = head[0];
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]) as usize;
        let is_possible = match kind {
            KIND_CHUNK => length <= FRAME_BYTES_MAX,
            KIND_ALIVE => length == 0,
            KIND_SKIP => length == 8,
            KIND_END => (1..=1 + END_TEXT_BYTES_MAX).contains(&length),
            _ => return Err(FrameError::Kind(kind)),
        };
        if !is_possible {
            return Err(FrameError::Length(kind, length));
        }
        if self.buffer.len() < FRAME_HEAD_BYTES + length {
            self.buffer.reserve(FRAME_HEAD_BYTES + length - self.buffer.len());
            return Ok(None);
        }
        self.buffer.advance(FRAME_HEAD_BYTES);
        let content = self.buffer.split_to(length);
        let frame = match kind {
            KIND_CHUNK => NodeFrame::Chunk(self.chunk(&content, now)?),
            KIND_SKIP => {
                self.has_skipped = true;
                NodeFrame::Skip { n_bytes: Fields(&content).u64().unwrap_or(0) }
            }
            KIND_END => {
                self.has_ended = true;
                NodeFrame::End(end(&content)?)
            }
            _ => NodeFrame::Alive,
        };
        Ok(Some(frame))
    }

    fn read_prologue(&mut self) -> Result<bool, FrameError> {
        let n = self.buffer.len().min(MAGIC.len());
        if self.buffer[..n] != MAGIC[..n] {
            return Err(FrameError::Prologue);
        }
        match self.buffer.get(4) {
            None | Some(&RING_FORMAT_VERSION) => {}
            Some(other) => return Err(FrameError::Version(*other)),
        }
        if self.buffer.len() < PROLOGUE_BYTES {
            return Ok(false);
        }
        let prologue = self.buffer.split_to(PROLOGUE_BYTES);
        if prologue[5..8] != [0; 3] {
            return Err(FrameError::Prologue);
        }
        self.epoch = Fields(&prologue[8..]).u64();
        Ok(true)
    }

    fn chunk(&mut self, content: &[u8], now: Instant) -> Result<Chunk, FrameError> {
        const SHORT: FrameError = FrameError::Chunk("fields");
        let mut fields = Fields(content);
        let sequence = fields.u64().ok_or(SHORT)?;
        let age = Duration::from_micros(fields.u32().ok_or(SHORT)?.into());
        let flags = fields.u8().ok_or(SHORT)?;
        let has = |flag| flags & flag != 0;
        let is_filler = has(FLAG_FILLER);
        if flags & !FLAGS != 0
            || has(FLAG_NEW_TABLES) && !has(FLAG_TABLES)
            || is_filler && has(FLAG_RANDOM_ACCESS)
        {
            return Err(FrameError::Chunk("flags"));
        }
        // No ring lives so long, and numbers are added to.
        if sequence > SEQUENCE_MAX {
            return Err(FrameError::Chunk("number"));
        }
        if let Some(before) = self.last
            && (sequence <= before || sequence != before + 1 && !self.has_skipped)
        {
            return Err(FrameError::Order { before, found: sequence });
        }
        let programme_time = match has(FLAG_PROGRAMME_TIME) {
            true => Some(fields.u64().filter(|it| *it <= TIME_MAX).ok_or(FrameError::Chunk("clock"))?),
            false => None,
        };
        if has(FLAG_NEW_TABLES) {
            self.tables = Some(Arc::new(tables(&mut fields).ok_or(FrameError::Chunk("tables"))?));
        }
        let tables = match has(FLAG_TABLES) {
            true => Some(self.tables.clone().ok_or(FrameError::Chunk("tables"))?),
            false => None,
        };
        let counters = counters(&mut fields).ok_or(FrameError::Chunk("counters"))?;
        let Fields(packets) = fields;
        let is_whole = !packets.is_empty()
            && packets.len() <= CHUNK_BYTES_MAX
            && packets.len().is_multiple_of(PACKET)
            && packets.chunks(PACKET).all(|it| it[0] == SYNC);
        if !is_whole {
            return Err(FrameError::Chunk("packets"));
        }
        (self.last, self.has_skipped) = (Some(sequence), false);
        let head = ChunkHead {
            sequence,
            arrived: now.checked_sub(age.min(AGE_MAX)).unwrap_or(now),
            programme_time,
            random_access: has(FLAG_RANDOM_ACCESS),
            discontinuity: has(FLAG_DISCONTINUITY),
            filler: is_filler,
            tables,
            counters,
        };
        // A copy of exact length, because a part of the buffer would keep all of it in memory.
        Ok(Chunk { head, bytes: Bytes::copy_from_slice(packets) })
    }
}

fn tables(fields: &mut Fields<'_>) -> Option<Tables> {
    let pat = Pat::parse(fields.section()?)?;
    let pmt_pid = fields.u16().filter(|it| *it < NULL_PID)?;
    let pmt = Pmt::parse(fields.section()?)?;
    Some(Tables { pat, pmt, pmt_pid })
}

fn counters(fields: &mut Fields<'_>) -> Option<Arc<[(u16, u8)]>> {
    let n = usize::from(fields.u16()?);
    let all = fields.take(3 * n)?;
    let counters: Vec<_> =
        all.as_chunks::<3>().0.iter().map(|it| (u16::from_be_bytes([it[0], it[1]]), it[2])).collect();
    let is_valid = counters.iter().all(|(pid, counter)| *pid < NULL_PID && *counter < 16)
        && counters.is_sorted_by(|a, b| a.0 < b.0);
    is_valid.then(|| counters.into())
}

fn end(content: &[u8]) -> Result<EndReason, FrameError> {
    let (code, text) = content.split_first().ok_or(FrameError::End)?;
    let text = str::from_utf8(text).map_err(|_| FrameError::End)?;
    Ok(match (code, text) {
        (0, "") => EndReason::Closed,
        (1, "") => EndReason::Stopped,
        (2, text) => EndReason::NothingPlays(text.into()),
        (3, text) => EndReason::NoSlot(text.into()),
        (4, "") => EndReason::Kicked,
        (5, "") => EndReason::TooSlow,
        (6, "") => EndReason::Silent,
        _ => return Err(FrameError::End),
    })
}

/// The fields that were not read yet.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// Reads a section with its length in front.
    fn section(&mut self) -> Option<&'a [u8]> {
        let length = self.u16()?;
        self.take(length.into()).filter(|it| is_whole_section(it))
    }
}
