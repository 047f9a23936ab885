//! The history of rates, viewers, slots and failovers: what is measured, and how measurements are added up.
//!
//! A [`HistorySample`] covers a span of time for one [`HistorySubject`]. [`meter`] makes samples from counters, a [`block`]
//! holds those of one step of time as a file has them, and [`series`] turns blocks into the columns that a page draws.

pub mod block;
pub mod meter;
pub mod series;
pub mod settings;

use crate::ids::{AccountId, ChannelId, StreamId, UserId};

/// The subject of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HistorySubject {
    /// This gateway, or this node of a cluster.
    Gateway,
    Account(AccountId),
    Channel(ChannelId),
    User(UserId),
    Stream(StreamId),
}

/// A kind of subjects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    Gateway,
    Account,
    Channel,
    User,
    Stream,
}

impl SubjectKind {
    /// All kinds, in the order of their numbers in files.
    pub const ALL: [Self; 5] = [Self::Gateway, Self::Account, Self::Channel, Self::User, Self::Stream];

    /// Returns the maximum number of subjects of this kind in one step of time. The busiest are kept, of streams those that
    /// failed first.
    pub const fn subjects_max(self) -> usize {
        match self {
            Self::Gateway => 1,
            Self::Account => 63,
            Self::Channel => 192,
            Self::User => 128,
            Self::Stream => 184,
        }
    }

    /// Returns the bit of this kind in a set of kinds.
    fn bit(self) -> u16 {
        1 << self as u16
    }
}

impl HistorySubject {
    /// Returns the kind of the subject.
    pub fn kind(self) -> SubjectKind {
        match self {
            Self::Gateway => SubjectKind::Gateway,
            Self::Account(_) => SubjectKind::Account,
            Self::Channel(_) => SubjectKind::Channel,
            Self::User(_) => SubjectKind::User,
            Self::Stream(_) => SubjectKind::Stream,
        }
    }

    fn id(self) -> u32 {
        match self {
            Self::Gateway => 0,
            Self::Account(id) => id.0,
            Self::Channel(id) => id.0,
            Self::User(id) => id.0,
            Self::Stream(id) => id.0,
        }
    }

    fn new(kind: SubjectKind, id: u32) -> Self {
        match kind {
            SubjectKind::Gateway => Self::Gateway,
            SubjectKind::Account => Self::Account(AccountId(id)),
            SubjectKind::Channel => Self::Channel(ChannelId(id)),
            SubjectKind::User => Self::User(UserId(id)),
            SubjectKind::Stream => Self::Stream(StreamId(id)),
        }
    }
}

/// Measurements over a span of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HistorySample {
    /// Time in which the gateway measured, in seconds.
    pub seconds: u32,
    /// Bytes received from providers.
    pub bytes_in: u64,
    /// Bytes sent to viewers.
    pub bytes_out: u64,
    /// Highest rates between two readings, in kilobits per second.
    pub peak_in_kbps: u32,
    pub peak_out_kbps: u32,
    /// Number of viewers, added up over the seconds.
    pub viewer_seconds: u64,
    pub viewers_max: u32,
    /// Time in which a stream played, in seconds.
    pub playing_seconds: u32,
    /// Time in which viewers waited for a stream, in seconds. Of a stream: in which they waited after it had failed.
    pub failing_seconds: u32,
    /// Failovers; of a stream, those away from it.
    pub failovers: u32,
    /// Streams that failed to open, and sources lost.
    pub losses: u32,
    /// Number of slots in use, added up over the seconds.
    pub slot_seconds: u64,
    pub slots_max: u32,
    /// Limit of the slots; 0 without one.
    pub slots_limit: u32,
    /// Size of the recordings.
    pub recording_bytes: u64,
}

impl HistorySample {
    /// Adds the sample of the same subject over another span of time: sums are added, of maxima the larger one stays.
    pub fn add(&mut self, other: &Self) {
        self.seconds = self.seconds.saturating_add(other.seconds);
        self.bytes_in = self.bytes_in.saturating_add(other.bytes_in);
        self.bytes_out = self.bytes_out.saturating_add(other.bytes_out);
        self.viewer_seconds = self.viewer_seconds.saturating_add(other.viewer_seconds);
        self.playing_seconds = self.playing_seconds.saturating_add(other.playing_seconds);
        self.failing_seconds = self.failing_seconds.saturating_add(other.failing_seconds);
        self.failovers = self.failovers.saturating_add(other.failovers);
        self.losses = self.losses.saturating_add(other.losses);
        self.slot_seconds = self.slot_seconds.saturating_add(other.slot_seconds);
        self.peak_in_kbps = self.peak_in_kbps.max(other.peak_in_kbps);
        self.peak_out_kbps = self.peak_out_kbps.max(other.peak_out_kbps);
        self.viewers_max = self.viewers_max.max(other.viewers_max);
        self.slots_max = self.slots_max.max(other.slots_max);
        self.slots_limit = self.slots_limit.max(other.slots_limit);
        self.recording_bytes = self.recording_bytes.max(other.recording_bytes);
    }

    /// Returns what decides which subjects of a kind are kept: bytes, then viewers, then slots. Streams that failed come
    /// before all that did not, because a stream that never opens has no bytes.
    fn weight(&self, kind: SubjectKind) -> (u32, u64, u64, u64) {
        let failures =
            if kind == SubjectKind::Stream { self.losses.saturating_add(self.failovers) } else { 0 };
        (failures, self.bytes_in.saturating_add(self.bytes_out), self.viewer_seconds, self.slot_seconds)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::block::{Block, Resolution, block_bytes};
    use super::*;

    /// Kinds in the file of everything but users.
    const KINDS: [SubjectKind; 3] = [SubjectKind::Gateway, SubjectKind::Account, SubjectKind::Channel];

    /// Returns a block in which the gateway has this sample.
    pub(super) fn gateway_block(start: i64, sample: &HistorySample) -> Block {
        let mut block = Block::new(start, Resolution::FINE);
        block.add(HistorySubject::Gateway, sample, 1);
        block
    }

    pub(super) fn any_sample() -> impl Strategy<Value = HistorySample> {
        (any::<[u32; 9]>(), prop::array::uniform5(0_u64..1 << 50)).prop_map(|(small, large)| HistorySample {
            seconds: small[0] % 3_601,
            bytes_in: large[0],
            bytes_out: large[1],
            peak_in_kbps: small[1],
            peak_out_kbps: small[2],
            viewer_seconds: large[2],
            viewers_max: small[3],
            playing_seconds: small[4] % 3_601,
            failing_seconds: small[5] % 3_601,
            failovers: small[6] % 1_000,
            losses: small[7] % 1_000,
            slot_seconds: large[3],
            slots_max: small[8],
            slots_limit: small[8] / 2,
            recording_bytes: large[4],
        })
    }

    fn any_block() -> impl Strategy<Value = Block> {
        let subject =
            (0_usize..5, 0_u32..40).prop_map(|(kind, id)| HistorySubject::new(SubjectKind::ALL[kind], id));
        prop::collection::vec((subject, any_sample()), 0..20).prop_map(|samples| {
            let mut block = Block::new(0, Resolution::FINE);
            samples.iter().for_each(|(subject, sample)| block.add(*subject, sample, 10));
            block
        })
    }

    /// A file that a test can make often.
    const RING: Resolution = Resolution { step_seconds: 300, n_blocks: 12 };

    /// Reads the block of a step from the bytes of a file.
    fn read(file: &[u8], size: usize, start: i64) -> Option<Block> {
        let at = RING.place(start) * size;
        Block::decode(&file[at..at + size]).filter(|it| it.start == start)
    }

    proptest! {
        #[test]
        fn a_block_reads_back(block in any_block()) {
            prop_assert_eq!(Block::decode(&block.encode()), Some(block));
        }

        #[test]
        fn damage_of_any_byte_is_noticed(block in any_block(), at in any::<prop::sample::Index>(), flip in 1_u8..) {
            let mut bytes = block.encode();
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            prop_assert_eq!(Block::decode(&bytes), None);
        }

        #[test]
        fn any_bytes_can_be_decoded(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            prop_assert_eq!(Block::decode(&bytes), None);
        }

        #[test]
        fn a_crash_at_any_byte_of_a_write_leaves_all_other_blocks_readable(
            blocks in prop::collection::vec(any_block(), 2..12),
            n_written in any::<prop::sample::Index>(),
        ) {
            let size = block_bytes(&SubjectKind::ALL);
            // The last write goes to the place of the oldest block.
            let start = |i: usize| if i + 1 == blocks.len() { 300 * 12 } else { 300 * i64::try_from(i).unwrap() };
            let mut file = vec![0; size * RING.n_blocks];
            let mut written = Vec::new();
            for (i, block) in blocks.iter().enumerate() {
                let mut block = block.clone();
                block.start = start(i);
                let bytes = block.encode();
                let at = RING.place(block.start) * size;
                let n = if i + 1 == blocks.len() { n_written.index(bytes.len()) } else { bytes.len() };
                file[at..at + n].copy_from_slice(&bytes[..n]);
                written.push(block);
            }
            let torn = written.pop().unwrap();
            for block in &written[1..] {
                let found = read(&file, size, block.start);
                prop_assert_eq!(found.as_ref(), Some(block));
            }
            // The torn one is whole, or it is not there.
            prop_assert!(read(&file, size, torn.start).is_none_or(|it| it == torn));
        }
    }

    #[test]
    fn the_busiest_channels_are_kept_and_the_others_are_unknown() {
        let mut block = gateway_block(0, &HistorySample { seconds: 300, ..HistorySample::default() });
        for id in 0..300_u32 {
            let sample = HistorySample { seconds: 300, bytes_in: u64::from(id), ..HistorySample::default() };
            block.add(HistorySubject::Channel(ChannelId(id)), &sample, 1_000);
        }
        block.shrink();
        let channel = |id| block.sample(HistorySubject::Channel(ChannelId(id)));
        assert_eq!((channel(107), channel(108).map(|it| it.bytes_in)), (None, Some(108)));
        assert_eq!(channel(1_000), None, "it may be one of those that were dropped");
        assert!(block.sample(HistorySubject::Account(AccountId(1))).is_some(), "no account was dropped");
        let part = block.part(&[SubjectKind::Gateway, SubjectKind::User]);
        assert_eq!(part.samples().len(), 1);
        assert!(part.sample(HistorySubject::User(UserId(1))).is_some());
    }

    #[test]
    fn streams_that_failed_are_kept_before_those_that_played() {
        let mut block = gateway_block(0, &HistorySample { seconds: 300, ..HistorySample::default() });
        for id in 0..400_u32 {
            // The first ones never opened.
            let (bytes_in, losses) = if id < 10 { (0, 1) } else { (u64::from(id), 0) };
            let sample = HistorySample { seconds: 300, bytes_in, losses, ..HistorySample::default() };
            block.add(HistorySubject::Stream(StreamId(id)), &sample, 1_000);
        }
        block.shrink();
        let stream =
            |id| block.sample(HistorySubject::Stream(StreamId(id))).map(|it| (it.bytes_in, it.losses));
        assert_eq!([stream(0), stream(9), stream(10)], [Some((0, 1)), Some((0, 1)), None]);
        assert_eq!([stream(225), stream(226)], [None, Some((226, 0))]);
    }

    #[test]
    fn a_full_block_fits_into_its_place() {
        let mut block = Block::new(0, Resolution::FINE);
        for kind in SubjectKind::ALL {
            for id in 0..1_000 {
                block.add(HistorySubject::new(kind, id), &HistorySample::default(), 1_000);
            }
        }
        block.shrink();
        let with = |kind| [SubjectKind::Gateway, kind];
        let (users, streams) = (with(SubjectKind::User), with(SubjectKind::Stream));
        for (kinds, size) in [(&KINDS[..], 24_576), (&users[..], 12_288), (&streams[..], 16_384)] {
            assert_eq!(block_bytes(kinds), size);
            assert!(block.part(kinds).encode().len() <= size);
        }
    }
}
