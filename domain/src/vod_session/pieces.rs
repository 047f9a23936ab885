//! Some bytes of a file.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::{Bytes, BytesMut};

/// Pieces below this length are joined, so that a trickling provider does not fill the memory with tiny pieces.
const SMALL: usize = 4 << 10;
/// Maximum length of a piece that another one is joined to.
const JOINED_MAX: usize = 16 << 10;
/// Minimum length of a buffer that is worth being used again.
const SPARE_BYTES: usize = super::PIECE_BYTES_MAX;

/// Pieces of a file by their first byte. They do not overlap.
#[derive(Debug, Default)]
pub struct Pieces {
    pieces: BTreeMap<u64, Bytes>,
    n_bytes: usize,
    /// The empty buffer of pieces that were dropped.
    spare: Option<BytesMut>,
}

impl Pieces {
    /// Returns the number of bytes.
    pub fn n_bytes(&self) -> usize {
        self.n_bytes
    }

    /// Returns all pieces, each with its position.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &Bytes)> {
        self.pieces.iter().map(|it| (*it.0, it.1))
    }

    /// Returns an empty buffer of [`super::PIECE_BYTES_MAX`] or more, in which pieces were that have been dropped.
    pub fn take_spare(&mut self) -> Option<BytesMut> {
        self.spare.take()
    }

    /// Drops all bytes.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// Returns the bytes from this position to the end of their piece.
    pub fn piece(&self, at: u64) -> Option<Bytes> {
        let (start, bytes) = self.pieces.range(..=at).next_back()?;
        let skipped = usize::try_from(at - start).ok()?;
        (skipped < bytes.len()).then(|| bytes.slice(skipped..))
    }

    /// Returns the first position from `at` on that is not held.
    pub fn end_of_run(&self, at: u64) -> u64 {
        let mut end = at;
        let first = self.pieces.range(..=at).next_back().map_or(at, |it| *it.0);
        for (start, bytes) in self.pieces.range(first..) {
            if *start > end {
                break;
            }
            end = end.max(start + bytes.len() as u64);
        }
        end
    }

    /// Returns the number of held bytes in this part.
    pub fn within(&self, part: Range<u64>) -> usize {
        let first = self.pieces.range(..=part.start).next_back().map_or(part.start, |it| *it.0);
        let pieces = self.pieces.range(first..part.end.max(first));
        pieces.map(|(start, bytes)| overlap(&(*start..start + bytes.len() as u64), &part)).sum()
    }

    /// Returns the first position after all held bytes.
    #[cfg(test)]
    pub(super) fn pieces_end(&self) -> u64 {
        self.pieces.iter().next_back().map_or(0, |(start, bytes)| start + bytes.len() as u64)
    }

    /// Adds the bytes that are not held yet.
    pub fn insert(&mut self, mut at: u64, mut bytes: Bytes) {
        while !bytes.is_empty() {
            let known = usize::try_from(self.end_of_run(at) - at).unwrap_or(usize::MAX).min(bytes.len());
            let _ = bytes.split_to(known);
            at += known as u64;
            let next = self.pieces.range(at..).next().map_or(u64::MAX, |it| *it.0);
            let n_free = usize::try_from(next - at).unwrap_or(usize::MAX).min(bytes.len());
            let new = bytes.split_to(n_free);
            self.add(at, new);
            at += n_free as u64;
        }
    }

    fn add(&mut self, at: u64, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.n_bytes += bytes.len();
        if bytes.len() < SMALL
            && let Some((start, before)) = self.pieces.range_mut(..at).next_back()
            && *start + before.len() as u64 == at
            && before.len() + bytes.len() <= JOINED_MAX
        {
            let mut joined = BytesMut::with_capacity(before.len() + bytes.len());
            joined.extend_from_slice(before);
            joined.extend_from_slice(&bytes);
            *before = joined.freeze();
            return;
        }
        self.pieces.insert(at, bytes);
    }

    /// Drops bytes outside of these parts, the lowest first, until at most `target` bytes are held.
    pub fn drop_outside(&mut self, parts: &[Range<u64>], target: usize) {
        let starts: Vec<u64> = self.pieces.keys().copied().collect();
        for start in starts {
            if self.n_bytes <= target {
                return;
            }
            let Some(bytes) = self.take(start) else { continue };
            let piece = start..start + bytes.len() as u64;
            let needed = parts.iter().filter(|it| overlap(it, &piece) > 0);
            let needed = needed.fold(None, |hull: Option<Range<u64>>, it| {
                let part = it.start.max(piece.start)..it.end.min(piece.end);
                Some(hull.map_or(part.clone(), |it| it.start.min(part.start)..it.end.max(part.end)))
            });
            match needed {
                Some(needed) => {
                    let kept = (needed.start - start) as usize..(needed.end - start) as usize;
                    self.n_bytes += kept.len();
                    self.pieces.insert(needed.start, bytes.slice(kept));
                }
                None => self.keep_buffer(bytes),
            }
        }
    }

    /// Drops pieces of a part, the highest first and none that overlaps with `kept`, until at most `target` bytes are
    /// held.
    pub fn drop_from_end(&mut self, part: Range<u64>, kept: &Range<u64>, target: usize) {
        let starts: Vec<u64> = self.pieces.keys().rev().copied().collect();
        for start in starts {
            if self.n_bytes <= target {
                return;
            }
            let Some(bytes) = self.pieces.get(&start) else { continue };
            let piece = start..start + bytes.len() as u64;
            if overlap(&piece, &part) > 0
                && overlap(&piece, kept) == 0
                && let Some(bytes) = self.take(start)
            {
                self.keep_buffer(bytes);
            }
        }
    }

    /// Keeps the buffer of a dropped piece, unless another piece of it is in use.
    fn keep_buffer(&mut self, bytes: Bytes) {
        if self.spare.is_none()
            && let Ok(mut buffer) = bytes.try_into_mut()
        {
            buffer.clear();
            self.spare = buffer.try_reclaim(SPARE_BYTES).then_some(buffer);
        }
    }

    /// Removes a piece by its first byte.
    fn take(&mut self, start: u64) -> Option<Bytes> {
        let bytes = self.pieces.remove(&start)?;
        self.n_bytes -= bytes.len();
        Some(bytes)
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> usize {
    let n_bytes = a.end.min(b.end).saturating_sub(a.start.max(b.start));
    usize::try_from(n_bytes).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(range: Range<u64>) -> Bytes {
        range.map(|it| it as u8).collect::<Vec<_>>().into()
    }

    /// Returns the held parts, after checking their content.
    fn parts(held: &Pieces) -> Vec<Range<u64>> {
        let mut parts: Vec<Range<u64>> = Vec::new();
        for (start, piece) in &held.pieces {
            assert_eq!(*piece, bytes(*start..start + piece.len() as u64));
            match parts.last_mut().filter(|it| it.end == *start) {
                Some(last) => last.end += piece.len() as u64,
                None => parts.push(*start..start + piece.len() as u64),
            }
        }
        assert_eq!(held.n_bytes, held.pieces.values().map(Bytes::len).sum::<usize>());
        parts
    }

    #[test]
    fn overlapping_bytes_are_held_once() {
        let mut held = Pieces::default();
        held.insert(100, bytes(100..200));
        held.insert(300, bytes(300..400));
        held.insert(50, bytes(50..350));
        held.insert(120, bytes(120..130));
        assert_eq!(parts(&held), vec![50..400]);
        assert_eq!(held.n_bytes(), 350);
        assert_eq!((held.end_of_run(49), held.end_of_run(50), held.end_of_run(399)), (49, 400, 400));
        assert_eq!(held.within(390..900), 10);
        assert_eq!(held.piece(399), Some(bytes(399..400)));
        assert_eq!(held.piece(400), None);
    }

    #[test]
    fn tiny_pieces_are_joined() {
        let mut held = Pieces::default();
        for at in 0..40_000 {
            held.insert(at, bytes(at..at + 1));
        }
        assert_eq!(parts(&held), vec![0..40_000]);
        assert!(held.pieces.len() < 4, "{} pieces", held.pieces.len());
    }

    #[test]
    fn the_buffer_of_dropped_pieces_is_used_again_when_nothing_of_it_is_in_use() {
        let mut buffer = BytesMut::with_capacity(SPARE_BYTES);
        let start = buffer.as_ptr();
        let mut held = Pieces::default();
        for at in [0, SPARE_BYTES as u64 / 2] {
            buffer.resize(SPARE_BYTES / 2, 7);
            held.insert(at, buffer.split().freeze());
        }
        drop(buffer);
        let passed_on = held.piece(0);
        held.drop_outside(&[], SPARE_BYTES / 2);
        assert_eq!(held.take_spare(), None, "the other half is held");
        held.drop_outside(&[], 0);
        assert_eq!(held.take_spare(), None, "a client has the first half");
        held.insert(0, passed_on.into_iter().next().unwrap_or_default());
        held.drop_outside(&[], 0);
        let spare = held.take_spare().map(|it| (it.as_ptr(), it.len(), it.capacity()));
        assert_eq!(spare, Some((start, 0, SPARE_BYTES)));
        held.insert(0, bytes(0..9_000));
        held.drop_outside(&[], 0);
        assert_eq!(held.take_spare(), None, "the buffer is too short");
    }

    #[test]
    fn what_nobody_needs_is_dropped_first_and_only_as_much_as_necessary() {
        let mut held = Pieces::default();
        for at in (0..100_000).step_by(10_000) {
            held.insert(at, bytes(at..at + 10_000));
        }
        let needed = std::slice::from_ref(&(25_000..60_000));
        held.drop_outside(needed, 70_000);
        assert_eq!(parts(&held), [25_000..60_000, 70_000..100_000]);
        held.drop_outside(needed, 30_000);
        assert_eq!(parts(&held), needed);
        held.drop_from_end(25_000..60_000, &(30_000..35_000), 20_000);
        assert_eq!(parts(&held), vec![25_000..40_000]);
    }
}
