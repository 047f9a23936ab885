//! Sets of programmes of a guide file, by their number.

/// A set of numbers below a limit: one bit for each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bitmap {
    bits: Vec<u64>,
    n: u32,
}

impl Bitmap {
    pub(super) fn empty(n: u32) -> Self {
        Self { bits: vec![0; (n as usize).div_ceil(64)], n }
    }

    pub(super) fn full(n: u32) -> Self {
        let mut full = Self { bits: vec![u64::MAX; (n as usize).div_ceil(64)], n };
        full.clear(n, n.next_multiple_of(64));
        full
    }

    /// Adds a number; false if it is not below the limit.
    #[must_use]
    pub(super) fn insert(&mut self, at: u32) -> bool {
        let is_valid = at < self.n;
        if is_valid {
            self.bits[(at / 64) as usize] |= 1 << (at % 64);
        }
        is_valid
    }

    pub(super) fn intersect(&mut self, other: &Self) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a &= b);
    }

    pub(super) fn unite(&mut self, other: &Self) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(a, b)| *a |= b);
    }

    /// Removes the numbers of a range.
    pub(super) fn clear(&mut self, from: u32, until: u32) {
        let mut at = from;
        while at < until {
            let next = (at / 64 + 1).saturating_mul(64).min(until);
            let n = next - at;
            let mask = if n == 64 { u64::MAX } else { ((1 << n) - 1) << (at % 64) };
            if let Some(bits) = self.bits.get_mut((at / 64) as usize) {
                *bits &= !mask;
            }
            at = next;
        }
    }

    /// Iterates over the numbers of a range that begins at a multiple of 64, in order.
    pub(super) fn iter(&self, from: u32, until: u32) -> impl Iterator<Item = u32> {
        let words = (from / 64) as usize..(until as usize).div_ceil(64).min(self.bits.len());
        words.flat_map(move |word| {
            let mut bits = self.bits[word];
            std::iter::from_fn(move || {
                let at = (bits != 0).then(|| bits.trailing_zeros())?;
                bits &= bits - 1;
                Some(word as u32 * 64 + at)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_numbers_that_were_added_and_not_removed() {
        let all = |set: &Bitmap| set.iter(0, 200).collect::<Vec<_>>();
        let mut set = Bitmap::empty(130);
        assert!([0, 63, 64, 129].into_iter().all(|it| set.insert(it)) && !set.insert(130));
        assert_eq!(all(&set), [0, 63, 64, 129]);
        assert_eq!(set.iter(64, 128).collect::<Vec<_>>(), [64]);
        let mut full = Bitmap::full(130);
        assert_eq!(all(&full), (0..130).collect::<Vec<_>>());
        full.intersect(&set);
        assert_eq!(full, set);
        set.clear(1, 129);
        assert_eq!(all(&set), [0, 129]);
        full.clear(0, 64);
        set.unite(&full);
        assert_eq!(all(&set), [0, 64, 129]);
        assert_eq!((all(&Bitmap::full(0)), all(&Bitmap::full(64)).len()), (vec![], 64));
    }
}
