//! Finds packet boundaries in a byte stream.

use bytes::{Buf, Bytes, BytesMut};

use super::packet::{PACKET, SYNC};

/// Distances between sync bytes: plain packets, packets with a four-byte time code in front (M2TS), packets
/// with sixteen bytes of error correction behind.
const STRIDES: [usize; 3] = [PACKET, 192, 204];
/// Number of sync bytes at one distance that confirm it.
const SYNCS_WANTED: usize = 3;
/// Maximum length of a run of packets with a longer stride.
const RUN_BYTES_MAX: usize = 64 * 1024 / PACKET * PACKET;

/// Splits bytes, in pieces of any size, into runs of whole 188-byte packets.
///
/// In sync, plain packets are returned as parts of the pushed bytes without copying, except for a packet that
/// spans two pushes. Packets of 192 and 204 bytes are stripped to 188. Out of sync, bytes are skipped and
/// counted until packets are found again. Fewer bytes are kept between calls than the last push plus a few
/// packets.
#[derive(Debug, Default)]
pub struct Aligner {
    /// Bytes before those of `input`: less than one packet in sync, the search area out of sync.
    carry: BytesMut,
    input: Bytes,
    /// Distance of packets while in sync.
    stride: Option<usize>,
    n_skipped: u64,
}

impl Aligner {
    /// Creates an aligner without input.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds bytes. The stash_rest of earlier ones is kept, so [`Aligner::next`] should be called until it returns
    /// `None`.
    pub fn push(&mut self, bytes: Bytes) {
        if self.input.is_empty() {
            self.input = bytes;
        } else {
            let mut both = BytesMut::with_capacity(self.input.len() + bytes.len());
            both.extend_from_slice(&self.input);
            both.extend_from_slice(&bytes);
            self.input = both.freeze();
        }
    }

    /// Returns the next run of whole packets, each starting with the sync byte; `None` until more bytes are
    /// pushed.
    #[expect(clippy::should_implement_trait, reason = "it returns `None` only until the next push")]
    pub fn next(&mut self) -> Option<Bytes> {
        loop {
            let Some(stride) = self.stride else {
                self.search();
                self.stride?;
                continue;
            };
            if self.carry.is_empty() && self.input.is_empty() {
                return None;
            }
            let run = match () {
                () if !self.carry.is_empty() => self.across_pushes(stride),
                () if stride == PACKET => self.plain_run(),
                () => self.stripped_run(stride),
            };
            match run {
                Run::Packets(run) => return Some(run),
                Run::More => return None,
                Run::OutOfSync => self.stride = None,
            }
        }
    }

    /// Returns whether packets were found and all bytes since then belong to packets.
    pub fn in_sync(&self) -> bool {
        self.stride.is_some()
    }

    /// Returns whether a packet has begun whose end was not pushed yet. To be called when [`Aligner::next`] has returned
    /// `None`.
    pub fn has_partial_packet(&self) -> bool {
        self.in_sync() && !self.carry.is_empty()
    }

    /// Returns the number of bytes that belonged to no packet.
    pub fn n_skipped(&self) -> u64 {
        self.n_skipped
    }

    /// Completes the packet that started in an earlier push.
    fn across_pushes(&mut self, stride: usize) -> Run {
        let wanted = stride.saturating_sub(self.carry.len()).min(self.input.len());
        self.carry.extend_from_slice(&self.input[..wanted]);
        self.input.advance(wanted);
        if self.carry[0] != SYNC {
            return Run::OutOfSync;
        }
        if self.carry.len() < stride {
            return Run::More;
        }
        let mut unit = self.carry.split_to(stride);
        unit.truncate(PACKET);
        Run::Packets(unit.freeze())
    }

    /// Returns all packets at the start of the input without copying.
    fn plain_run(&mut self) -> Run {
        let n_packets = self.input.chunks_exact(PACKET).take_while(|it| it[0] == SYNC).count();
        if n_packets > 0 {
            return Run::Packets(self.input.split_to(n_packets * PACKET));
        }
        self.stash_rest(PACKET)
    }

    /// Returns the packets at the start of the input without the bytes between them.
    fn stripped_run(&mut self, stride: usize) -> Run {
        let units = self.input.chunks_exact(stride).take_while(|it| it[0] == SYNC);
        let mut run = BytesMut::new();
        let mut n_units = 0;
        for unit in units.take(RUN_BYTES_MAX / PACKET) {
            run.extend_from_slice(&unit[..PACKET]);
            n_units += 1;
        }
        if n_units > 0 {
            self.input.advance(n_units * stride);
            return Run::Packets(run.freeze());
        }
        self.stash_rest(stride)
    }

    /// Handles an input that does not start with a whole packet: it is too short, or not a packet.
    fn stash_rest(&mut self, stride: usize) -> Run {
        if self.input[0] != SYNC || self.input.len() >= stride {
            return Run::OutOfSync;
        }
        self.carry.extend_from_slice(&self.input);
        self.input.clear();
        Run::More
    }

    /// Searches for packets and skips bytes before them.
    fn search(&mut self) {
        self.carry.extend_from_slice(&self.input);
        self.input.clear();
        let mut at = 0;
        let found = loop {
            let Some(offset) = memchr::memchr(SYNC, &self.carry[at..]) else {
                at = self.carry.len();
                break None;
            };
            at += offset;
            match stride_at(&self.carry[at..]) {
                Guess::Stride(stride) => break Some(stride),
                Guess::Unclear => break None,
                Guess::No => at += 1,
            }
        };
        self.n_skipped += at as u64;
        self.carry.advance(at);
        self.stride = found;
        if found.is_some() {
            // From here on packets are not copied.
            self.input = self.carry.split().freeze();
        }
    }
}

enum Run {
    Packets(Bytes),
    More,
    OutOfSync,
}

enum Guess {
    Stride(usize),
    Unclear,
    No,
}

/// Returns whether `bytes`, which start with a sync byte, start with packets, and at what distance. Two whole
/// packets that end exactly with the bytes are accepted too, because a short response may contain no more.
fn stride_at(bytes: &[u8]) -> Guess {
    let mut guess = Guess::No;
    for stride in STRIDES {
        let mut syncs = (0..SYNCS_WANTED).map(|index| bytes.get(index * stride).map(|it| *it == SYNC));
        if syncs.clone().all(|it| it == Some(true)) || (bytes.len() == 2 * stride && bytes[stride] == SYNC) {
            return Guess::Stride(stride);
        }
        if syncs.all(|it| it != Some(false)) {
            guess = Guess::Unclear;
        }
    }
    guess
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packet(number: usize, fill: u8) -> Vec<u8> {
        let mut packet = vec![fill; PACKET];
        packet[..4].copy_from_slice(&[SYNC, 0x01, number as u8, 0x10 | number as u8 & 0x0F]);
        packet
    }

    fn stream(n_packets: usize) -> Vec<u8> {
        (0..n_packets).flat_map(|it| packet(it, it as u8)).collect()
    }

    /// Pushes pieces of this size and collects the packets.
    fn aligned(bytes: &[u8], piece: usize) -> (Vec<u8>, Aligner) {
        let mut aligner = Aligner::new();
        let mut out = Vec::new();
        for piece in bytes.chunks(piece) {
            aligner.push(Bytes::copy_from_slice(piece));
            while let Some(run) = aligner.next() {
                assert!(!run.is_empty() && run.len() % PACKET == 0);
                assert!(run.chunks(PACKET).all(|it| it[0] == SYNC));
                out.extend_from_slice(&run);
            }
        }
        (out, aligner)
    }

    #[test]
    fn packets_are_whole_for_pieces_of_any_size() {
        let bytes = stream(40);
        for piece in [1, 7, 187, 188, 189, 500, 1316, 4096, bytes.len()] {
            let (out, aligner) = aligned(&bytes, piece);
            assert!(out == bytes, "in pieces of {piece}");
            assert!(aligner.in_sync() && aligner.n_skipped() == 0);
        }
    }

    #[test]
    fn whole_packets_are_returned_without_copying() {
        let bytes = Bytes::from(stream(10));
        let mut aligner = Aligner::new();
        aligner.push(Bytes::from(stream(10)));
        while aligner.next().is_some() {}
        aligner.push(bytes.clone());
        assert_eq!(aligner.next().unwrap().as_ptr(), bytes.as_ptr());
    }

    #[test]
    fn two_packets_are_enough_to_synchronise() {
        assert_eq!(aligned(&stream(2), 1000).0, stream(2));
        assert_eq!(aligned(&stream(1), 1000).0, Vec::<u8>::new());
    }

    #[test]
    fn garbage_before_and_between_packets_is_skipped_and_counted() {
        let mut bytes = b"HTTP garbage, G even with sync bytes, GGG".to_vec();
        let garbage = bytes.len() as u64;
        bytes.extend(stream(6));
        bytes.extend([0x47; 5].map(|it| it ^ 1));
        bytes.extend(stream(6));
        for piece in [1, 100, 5000] {
            let (out, aligner) = aligned(&bytes, piece);
            assert_eq!(out, [stream(6), stream(6)].concat());
            assert_eq!(aligner.n_skipped(), garbage + 5);
        }
    }

    #[test]
    fn longer_packets_are_stripped() {
        let m2ts: Vec<u8> = (0..20).flat_map(|it| [vec![1, 2, 3, 4], packet(it, 0)].concat()).collect();
        let fec: Vec<u8> = (0..20).flat_map(|it| [packet(it, 0), vec![9; 16]].concat()).collect();
        let expected: Vec<u8> = (0..20).flat_map(|it| packet(it, 0)).collect();
        for piece in [1, 191, 1000, 100_000] {
            // The last packet is returned when its trailing bytes have arrived.
            assert_eq!(aligned(&m2ts, piece).0, expected[..19 * PACKET]);
            assert_eq!(aligned(&fec, piece).0, expected);
        }
    }

    #[test]
    fn a_packet_without_its_end_is_reported() {
        let bytes = stream(6);
        for (n_bytes, expected) in [(5 * PACKET, false), (5 * PACKET + 1, true), (6 * PACKET - 1, true)] {
            let (_, aligner) = aligned(&bytes[..n_bytes], bytes.len());
            assert_eq!(aligner.has_partial_packet(), expected, "{n_bytes} bytes");
        }
        // Out of sync, nothing is known about packets.
        assert!(!aligned(&bytes[1..PACKET], PACKET).1.has_partial_packet());
    }

    #[test]
    fn the_search_area_is_bounded() {
        let mut aligner = Aligner::new();
        for _ in 0..200 {
            aligner.push(Bytes::from(vec![0x46; 10_000]));
            assert!(aligner.next().is_none());
            assert!(aligner.carry.len() < 2 * 204);
        }
        assert_eq!(aligner.n_skipped(), 2_000_000);
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_give_whole_packets_and_few_bytes_are_kept(
            pieces in prop::collection::vec(
                prop_oneof![
                    prop::collection::vec(any::<u8>(), 0..400),
                    prop::collection::vec(prop_oneof![Just(SYNC), any::<u8>()], 0..400),
                    (1..8_usize).prop_map(stream),
                ],
                0..20,
            ),
            size in 1..600_usize,
        ) {
            let bytes = pieces.concat();
            let (out, aligner) = aligned(&bytes, size);
            let kept = aligner.carry.len() + aligner.input.len();
            prop_assert!(out.len() + kept + aligner.n_skipped() as usize <= bytes.len());
            prop_assert!(kept < 204 * 2 + size);
        }
    }
}
