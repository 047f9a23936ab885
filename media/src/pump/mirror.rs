//! Whether the ring of a pump is the same as that of another process.

use crate::node::RingPosition;
use crate::ring::Writer;
use crate::source::NodeChunk;

/// The chunks of another process in the ring of a pump, which have their numbers there.
#[derive(Default)]
pub(super) struct Mirror {
    /// The life of the ring whose chunks were written last; `None` after output of sources of this process.
    adopted: Option<u64>,
    /// Whether the last chunk is one of another process.
    is_last: bool,
}

impl Mirror {
    /// Returns whether a chunk of another process continues the ring of `writer` under its own number. Otherwise it is
    /// spliced like any source.
    pub(super) fn is_continued_by(&self, chunk: &NodeChunk, writer: &Writer, has_played: bool) -> bool {
        // The writer is asked last: its next number is known only while no chunk of this process is open.
        match self.adopted {
            Some(adopted) => {
                (adopted == chunk.epoch || chunk.continues == Some(adopted))
                    && chunk.chunk.head().sequence >= writer.next_sequence()
            }
            // Nothing was written yet, so every number is possible.
            None => !has_played && writer.next_sequence() == 0,
        }
    }

    /// Returns whether only filler was written since the last chunk of another process.
    pub(super) fn has_adopted(&self) -> bool {
        self.adopted.is_some()
    }

    /// Returns whether the last chunk is one of another process.
    pub(super) fn is_last(&self) -> bool {
        self.is_last
    }

    /// Records that a chunk of another process is the last one.
    pub(super) fn adopt(&mut self, position: RingPosition) {
        (self.adopted, self.is_last) = (Some(position.epoch), true);
    }

    /// Records that sources of this process have output, so that chunks of another process do not continue the ring.
    pub(super) fn forget(&mut self) {
        self.adopted = None;
    }

    /// Records that the next chunk is one of this process. Returns whether the last one was not.
    pub(super) fn diverge(&mut self) -> bool {
        std::mem::take(&mut self.is_last)
    }
}
