//! Writes frames.

use std::sync::Arc;
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};

use super::{
    END_TEXT_BYTES_MAX, FLAG_DISCONTINUITY, FLAG_FILLER, FLAG_NEW_TABLES, FLAG_PROGRAMME_TIME,
    FLAG_RANDOM_ACCESS, FLAG_TABLES, FRAME_HEAD_BYTES, KIND_ALIVE, KIND_CHUNK, KIND_END, KIND_SKIP, MAGIC,
    RING_FORMAT_VERSION,
};
use crate::chunk::ChunkHead;
use crate::ring::EndReason;
use crate::ts::tables::Tables;

/// Encodes the frames of one connection.
#[derive(Debug, Default)]
pub struct FrameEncoder {
    /// The tables that were sent last.
    tables: Option<Arc<Tables>>,
}

impl FrameEncoder {
    /// Creates an encoder for a new connection.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the prologue.
    pub fn prologue(epoch: u64) -> Bytes {
        let mut out = BytesMut::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[RING_FORMAT_VERSION, 0, 0, 0]);
        out.put_u64(epoch);
        out.freeze()
    }

    /// Returns the beginning of the frame of a chunk: everything but its `n_bytes` of packets, which have to follow. `age`
    /// is the time since its arrival.
    pub fn chunk(&mut self, head: &ChunkHead, n_bytes: usize, age: Duration) -> Bytes {
        let mut out = BytesMut::with_capacity(FRAME_HEAD_BYTES + 32 + 3 * head.counters.len());
        out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
        out.put_u64(head.sequence);
        out.put_u32(u32::try_from(age.as_micros()).unwrap_or(u32::MAX));
        let new_tables = head.tables.as_ref().filter(|tables| {
            !self.tables.as_ref().is_some_and(|sent| Arc::ptr_eq(sent, tables) || sent == *tables)
        });
        let flags = [
            (FLAG_RANDOM_ACCESS, head.random_access),
            (FLAG_DISCONTINUITY, head.discontinuity),
            (FLAG_FILLER, head.filler),
            (FLAG_PROGRAMME_TIME, head.programme_time.is_some()),
            (FLAG_TABLES, head.tables.is_some()),
            (FLAG_NEW_TABLES, new_tables.is_some()),
        ];
        out.put_u8(flags.iter().filter(|it| it.1).fold(0, |all, it| all | it.0));
        if let Some(time) = head.programme_time {
            out.put_u64(time);
        }
        if let Some(tables) = new_tables {
            put_section(&mut out, &tables.pat.section());
            out.put_u16(tables.pmt_pid);
            put_section(&mut out, &tables.pmt.section());
            self.tables = Some(Arc::clone(tables));
        }
        out.put_u16(head.counters.len() as u16);
        for (pid, counter) in head.counters.iter() {
            out.put_u16(*pid);
            out.put_u8(*counter);
        }
        let length = out.len() - FRAME_HEAD_BYTES + n_bytes;
        out[..FRAME_HEAD_BYTES].copy_from_slice(&frame_head(KIND_CHUNK, length));
        out.freeze()
    }

    /// Returns the frame that says that the connection works.
    pub fn alive() -> Bytes {
        frame(KIND_ALIVE, &[])
    }

    /// Returns the frame that says how many bytes are lost before the next chunk.
    pub fn skip(n_bytes: u64) -> Bytes {
        frame(KIND_SKIP, &n_bytes.to_be_bytes())
    }

    /// Returns the last frame. A long text is cut.
    pub fn end(reason: &EndReason) -> Bytes {
        let (code, text) = match reason {
            EndReason::Closed => (0, ""),
            EndReason::Stopped => (1, ""),
            EndReason::NothingPlays(text) => (2, &**text),
            EndReason::NoSlot(text) => (3, &**text),
            EndReason::Kicked => (4, ""),
            EndReason::TooSlow => (5, ""),
            EndReason::Silent => (6, ""),
        };
        let text = &text[..text.floor_char_boundary(END_TEXT_BYTES_MAX)];
        frame(KIND_END, &[&[code], text.as_bytes()].concat())
    }
}

fn put_section(out: &mut BytesMut, section: &[u8]) {
    out.put_u16(section.len() as u16);
    out.extend_from_slice(section);
}

fn frame_head(kind: u8, length: usize) -> [u8; FRAME_HEAD_BYTES] {
    let [a, b, c, d] = (length as u32).to_be_bytes();
    [kind, a, b, c, d]
}

fn frame(kind: u8, content: &[u8]) -> Bytes {
    [&frame_head(kind, content.len())[..], content].concat().into()
}
