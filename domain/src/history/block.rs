//! The blocks of the files of a history.
//!
//! A file is a ring of blocks of one size. The time of a step determines the place of its block, so a file needs neither
//! an index nor an order of writes, and damage of one block touches no other one. A block has a checksum and its own
//! time: a torn, older or foreign block is not taken for the wanted one.
//!
//! Numbers are little-endian.
//!
//! ```text
//! block   "HWH1"  start of the step in seconds since 1970 (8)  entries (2)  incomplete kinds (2)  length of the step (4)
//!         zero (8)  CRC-32 of everything else up to the last entry (4)  entries  zeros
//! entry   kind (1)  zeros (3)  id (4)  the fields of the sample, in the order of the struct (80)
//! ```

use std::collections::BTreeMap;

use super::{HistorySample, HistorySubject, SubjectKind};

/// Begin of a block. Its last character is the version of the format.
const MAGIC: [u8; 4] = *b"HWH1";
/// Length of the part before the entries, in bytes.
pub const HEADER_BYTES: usize = 32;
const CHECKSUM_AT: usize = HEADER_BYTES - 4;
const ENTRY_BYTES: usize = 88;

/// The steps of a file, and their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolution {
    /// Length of a step, in seconds.
    pub step_seconds: u32,
    /// Number of steps that a file has.
    pub n_blocks: usize,
}

impl Resolution {
    /// Five minutes, for two days.
    pub const FINE: Self = Self { step_seconds: 300, n_blocks: 576 };
    /// One hour, for 60 days.
    pub const COARSE: Self = Self { step_seconds: 3_600, n_blocks: 1_440 };

    /// Returns the start of the step that contains a time. Both are in seconds since 1970.
    pub fn start(self, at: i64) -> i64 {
        let step = i64::from(self.step_seconds);
        at.div_euclid(step).saturating_mul(step)
    }

    /// Returns the place of the block of the step that starts at a time.
    pub fn place(self, start: i64) -> usize {
        let number = start.div_euclid(i64::from(self.step_seconds));
        let blocks = i64::try_from(self.n_blocks).unwrap_or(i64::MAX);
        usize::try_from(number.rem_euclid(blocks)).unwrap_or_default()
    }

    /// Returns the time that a file covers, in seconds.
    pub fn span_seconds(self) -> i64 {
        i64::from(self.step_seconds).saturating_mul(i64::try_from(self.n_blocks).unwrap_or(i64::MAX))
    }
}

/// Returns the size of a block with these kinds of subjects, in bytes: a whole number of pages of a disk.
pub const fn block_bytes(kinds: &[SubjectKind]) -> usize {
    let mut entries = 0;
    let mut i = 0;
    while i < kinds.len() {
        entries += kinds[i].subjects_max();
        i += 1;
    }
    (HEADER_BYTES + entries * ENTRY_BYTES).next_multiple_of(4_096)
}

/// The samples of one step of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Block {
    /// Start of the step, in seconds since 1970.
    pub start: i64,
    /// Length of the step, in seconds.
    pub step_seconds: u32,
    /// The kinds that had more subjects than are kept, as bits.
    incomplete: u16,
    samples: BTreeMap<HistorySubject, HistorySample>,
}

impl Block {
    /// Creates the block of a step without samples.
    pub fn new(start: i64, resolution: Resolution) -> Self {
        Self { start, step_seconds: resolution.step_seconds, ..Self::default() }
    }

    /// Returns the sample of a subject: of one that was not in use, one without anything over the time in which the gateway
    /// measured. `None` if nothing is known.
    pub fn sample(&self, subject: HistorySubject) -> Option<HistorySample> {
        let absent = || {
            let whole = self.samples.get(&HistorySubject::Gateway)?;
            let is_known = self.incomplete & subject.kind().bit() == 0;
            is_known.then(|| HistorySample { seconds: whole.seconds, ..HistorySample::default() })
        };
        self.samples.get(&subject).copied().or_else(absent)
    }

    /// Returns all samples by subject.
    pub fn samples(&self) -> &BTreeMap<HistorySubject, HistorySample> {
        &self.samples
    }

    /// Adds a sample. New subjects beyond `subjects_max` of their kind are dropped, and the kind is incomplete then.
    pub fn add(&mut self, subject: HistorySubject, sample: &HistorySample, subjects_max: usize) {
        if let Some(known) = self.samples.get_mut(&subject) {
            known.add(sample);
        } else if self.samples.keys().filter(|it| it.kind() == subject.kind()).count() < subjects_max {
            self.samples.insert(subject, *sample);
        } else {
            self.incomplete |= subject.kind().bit();
        }
    }

    /// Adds all samples of another block, as [`Block::add`] does.
    pub fn add_block(&mut self, other: &Self, subjects_max: usize) {
        self.incomplete |= other.incomplete;
        for (subject, sample) in &other.samples {
            self.add(*subject, sample, subjects_max);
        }
    }

    /// Keeps the samples of the subjects that `is_kept` accepts. Returns whether all are kept.
    pub fn retain(&mut self, is_kept: impl Fn(HistorySubject) -> bool) -> bool {
        let before = self.samples.len();
        self.samples.retain(|it, _| is_kept(*it));
        self.samples.len() == before
    }

    /// Keeps the busiest subjects of each kind, as many as files have.
    pub fn shrink(&mut self) {
        for kind in SubjectKind::ALL {
            let of_kind = self.samples.iter().filter(|it| it.0.kind() == kind);
            let mut found: Vec<_> =
                of_kind.map(|(subject, sample)| (sample.weight(kind), *subject)).collect();
            if found.len() <= kind.subjects_max() {
                continue;
            }
            self.incomplete |= kind.bit();
            found.sort_unstable_by(|a, b| b.cmp(a));
            for (_, subject) in found.drain(kind.subjects_max()..) {
                self.samples.remove(&subject);
            }
        }
    }

    /// Returns the part of the block with these kinds, for a file of its own.
    pub fn part(&self, kinds: &[SubjectKind]) -> Self {
        let bits = kinds.iter().fold(0, |bits, it| bits | it.bit());
        let mut part = self.clone();
        part.incomplete &= bits;
        part.retain(|it| kinds.contains(&it.kind()));
        part
    }

    /// Writes the block as a file has it, without the zeros at its end.
    pub fn encode(&self) -> Vec<u8> {
        let n_entries = u16::try_from(self.samples.len()).unwrap_or(u16::MAX);
        let mut bytes = Vec::with_capacity(HEADER_BYTES + self.samples.len() * ENTRY_BYTES);
        bytes.extend(MAGIC);
        bytes.extend(self.start.to_le_bytes());
        bytes.extend(n_entries.to_le_bytes());
        bytes.extend(self.incomplete.to_le_bytes());
        bytes.extend(self.step_seconds.to_le_bytes());
        bytes.resize(HEADER_BYTES, 0);
        for (subject, sample) in self.samples.iter().take(usize::from(n_entries)) {
            bytes.extend([subject.kind() as u8, 0, 0, 0]);
            bytes.extend(subject.id().to_le_bytes());
            write_sample(&mut bytes, sample);
        }
        let checksum = checksum(&bytes);
        if let Some(place) = bytes.get_mut(CHECKSUM_AT..HEADER_BYTES) {
            place.copy_from_slice(&checksum.to_le_bytes());
        }
        bytes
    }

    /// Reads a block. Returns `None` if it is empty, torn, damaged or of another version.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader(bytes);
        if reader.take::<4>()? != MAGIC {
            return None;
        }
        let start = i64::from_le_bytes(reader.take()?);
        let n_entries = usize::from(u16::from_le_bytes(reader.take()?));
        let incomplete = u16::from_le_bytes(reader.take()?);
        let step_seconds = reader.u32()?;
        let _ = reader.take::<8>()?;
        let stored = reader.u32()?;
        let whole = bytes.get(..HEADER_BYTES + n_entries * ENTRY_BYTES)?;
        if checksum(whole) != stored {
            return None;
        }
        let mut samples = BTreeMap::new();
        for _ in 0..n_entries {
            let [kind, ..] = reader.take::<4>()?;
            let kind = *SubjectKind::ALL.get(usize::from(kind))?;
            let subject = HistorySubject::new(kind, reader.u32()?);
            samples.insert(subject, reader.sample()?);
        }
        Some(Self { start, step_seconds, incomplete, samples })
    }
}

/// Returns the checksum of a block, in which its own place counts as zeros.
fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(bytes.get(..CHECKSUM_AT).unwrap_or_default());
    hasher.update(bytes.get(HEADER_BYTES..).unwrap_or_default());
    hasher.finalize()
}

fn write_sample(bytes: &mut Vec<u8>, it: &HistorySample) {
    bytes.extend(it.seconds.to_le_bytes());
    bytes.extend(it.bytes_in.to_le_bytes());
    bytes.extend(it.bytes_out.to_le_bytes());
    bytes.extend(it.peak_in_kbps.to_le_bytes());
    bytes.extend(it.peak_out_kbps.to_le_bytes());
    bytes.extend(it.viewer_seconds.to_le_bytes());
    bytes.extend(it.viewers_max.to_le_bytes());
    bytes.extend(it.playing_seconds.to_le_bytes());
    bytes.extend(it.failing_seconds.to_le_bytes());
    bytes.extend(it.failovers.to_le_bytes());
    bytes.extend(it.losses.to_le_bytes());
    bytes.extend(it.slot_seconds.to_le_bytes());
    bytes.extend(it.slots_max.to_le_bytes());
    bytes.extend(it.slots_limit.to_le_bytes());
    bytes.extend(it.recording_bytes.to_le_bytes());
}

/// Reads fields one after another.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk::<N>()?;
        self.0 = rest;
        Some(*first)
    }

    fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take()?))
    }

    fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take()?))
    }

    fn sample(&mut self) -> Option<HistorySample> {
        Some(HistorySample {
            seconds: self.u32()?,
            bytes_in: self.u64()?,
            bytes_out: self.u64()?,
            peak_in_kbps: self.u32()?,
            peak_out_kbps: self.u32()?,
            viewer_seconds: self.u64()?,
            viewers_max: self.u32()?,
            playing_seconds: self.u32()?,
            failing_seconds: self.u32()?,
            failovers: self.u32()?,
            losses: self.u32()?,
            slot_seconds: self.u64()?,
            slots_max: self.u32()?,
            slots_limit: self.u32()?,
            recording_bytes: self.u64()?,
        })
    }
}
