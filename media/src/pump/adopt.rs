//! Chunks of another process, which keep their numbers in the ring of a pump where they continue it.

use tokio::time::Instant;

use crate::chunk::Chunk;
use crate::node::RingPosition;
use crate::pump::message::PumpMessage;
use crate::pump::{Following, Pump};
use crate::source::NodeChunk;
use crate::ts::packet::{Packet, packets};

impl Pump {
    /// Takes a chunk of another process. Returns false if it has to pass through the splice.
    pub(super) fn take_chunk(&mut self, chunk: NodeChunk, now: Instant) -> bool {
        let can_adopt = self.mirror.is_continued_by(&chunk, &self.writer, self.has_played);
        let Some(Following { reader, .. }) = &mut self.following else { return true };
        // Decided by the first chunk, because the splice may hold packets of the others back.
        if *reader.adopts.get_or_insert(can_adopt) {
            if can_adopt {
                self.adopt(chunk, now);
            }
            return true;
        }
        let is_filler = chunk.chunk.head().filler;
        if is_filler {
            // This ring has filler of its own. That of the origin says that it works.
            reader.chunk_was_read(now);
        }
        is_filler
    }

    /// Writes a chunk of another process as it is, so that both rings are the same.
    fn adopt(&mut self, NodeChunk { epoch, mut chunk, n_lost, .. }: NodeChunk, now: Instant) {
        let follows = chunk.head().sequence == self.writer.next_sequence();
        chunk.head.discontinuity |= self.mirror.has_adopted() && !follows;
        self.read_adopted_packets(&chunk, follows, now);
        let Some(Following { attempt, reader, is_playing }) = &mut self.following else { return };
        let attempt = *attempt;
        // Filler says that the origin works, although its upstream does not.
        let has_resumed = reader.chunk_was_read(now);
        let has_begun = !chunk.head().filler && !*is_playing;
        *is_playing |= has_begun;
        let position = RingPosition { epoch, sequence: chunk.head().sequence };
        self.mirror.adopt(position);
        self.shared.set_adopted(position);
        if let Some(gap) = &mut self.gap {
            // Filler of the origin fills it.
            gap.fill_at(now + self.settings.mirror_filler_delay);
        }
        self.writer.adopt(chunk, n_lost, now);
        if has_resumed {
            (self.on_message)(PumpMessage::Resumed(attempt));
        }
        if has_begun {
            self.announce(attempt);
        }
        self.writer.publish(now);
    }

    /// Reads what the packets of a chunk show of their source, and lets the splice continue after them. `follows`: it is
    /// the next chunk of the ring.
    fn read_adopted_packets(&mut self, chunk: &Chunk, follows: bool, now: Instant) {
        let Some(Following { reader, is_playing, .. }) = &mut self.following else { return };
        if !follows || !*is_playing {
            self.splice.adopt(chunk.head().tables.as_deref(), &chunk.head().counters);
            self.shared.set_tables(self.splice.source_tables());
            reader.details.begin_tables(self.splice.source_tables());
        }
        let at = now - self.began;
        let mut has_change = false;
        for packet in packets(&chunk.bytes).map(Packet::new) {
            self.splice.adopted_packet(packet, at);
            reader.details.guide_packet(packet, self.splice.source_tables(), self.guide_data.as_deref());
            if self.splice.take_table_change() {
                has_change = true;
                reader.details.begin_tables(self.splice.source_tables());
            }
            reader.details.picture_packet(packet);
            if let Some(pcr) = self.splice.source_tables().and_then(|it| it.clock_reference(packet)) {
                self.shared.record_pcr(pcr, packet.discontinuity(), now);
            }
        }
        if has_change {
            self.shared.set_tables(self.splice.source_tables());
        }
        if let Some(size) = reader.details.take_picture_size() {
            self.shared.set_picture(size);
        }
        if let Some(rate) = reader.details.take_frame_rate() {
            self.shared.set_frame_rate(rate);
        }
    }

    /// The ring has chunks of its own from now on.
    pub(super) fn diverge(&mut self) {
        if self.mirror.diverge() {
            self.shared.diverged();
        }
    }

    /// No other process continues the ring: a gap is filled at once.
    pub(super) fn end_mirror(&mut self, now: Instant) {
        self.diverge();
        if let Some(gap) = &mut self.gap {
            gap.fill_now(now);
        }
    }
}
