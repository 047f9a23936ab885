//! Chunks: runs of whole packets that all readers share without copying.

use std::sync::Arc;

use bytes::Bytes;
use tokio::time::Instant;

use crate::ts::tables::Tables;

/// The properties of a chunk that are known without parsing its packets.
#[derive(Clone, Debug)]
pub struct ChunkHead {
    /// Number of the chunk; increases by one during the whole life of the ring.
    pub sequence: u64,
    /// Arrival time of the first packet.
    pub arrived: Instant,
    /// The programme clock at or shortly before the first packet, unwrapped, in ticks of 27 MHz.
    pub programme_time: Option<u64>,
    /// Whether the first packet starts a random-access point.
    pub random_access: bool,
    /// Whether packets are missing before the chunk, or a new source starts with it.
    pub discontinuity: bool,
    /// Whether the chunk contains only null packets.
    pub filler: bool,
    /// The tables in force before its first packet.
    pub tables: Option<Arc<Tables>>,
    /// The last continuity counter before the first packet, for each PID in ascending order.
    pub counters: Arc<[(u16, u8)]>,
}

impl ChunkHead {
    /// Returns the last continuity counter on `pid` before this chunk.
    pub fn counter(&self, pid: u16) -> Option<u8> {
        let index = self.counters.binary_search_by_key(&pid, |it| it.0).ok()?;
        Some(self.counters[index].1)
    }

    /// Returns the memory that this head uses beside its own size, in bytes. Tables that it shares with `before`, the
    /// head of the chunk before, count there.
    pub(crate) fn memory(&self, before: Option<&Self>) -> usize {
        let shared = before.and_then(|it| it.tables.as_ref());
        let own = self.tables.as_ref().filter(|it| shared.is_none_or(|shared| !Arc::ptr_eq(shared, it)));
        size_of_val(&*self.counters) + own.map_or(0, |it| it.memory())
    }
}

/// A run of whole packets. A clone shares the bytes.
#[derive(Clone, Debug)]
pub struct Chunk {
    pub(crate) head: ChunkHead,
    pub(crate) bytes: Bytes,
}

impl Chunk {
    /// Returns the properties of the chunk.
    pub fn head(&self) -> &ChunkHead {
        &self.head
    }

    /// Returns the packets, as a shared reference without copying.
    pub fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Returns the length in bytes, a multiple of [`PACKET`](crate::ts::packet::PACKET).
    #[expect(clippy::len_without_is_empty, reason = "a chunk is never empty")]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}
