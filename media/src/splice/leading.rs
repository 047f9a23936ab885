//! The first pictures of a source that starts at an open group of pictures.
//!
//! *Leading* pictures follow the random-access picture in the stream and precede it on the screen. They refer to pictures
//! before it, which belong to another source in the output: a decoder would show them damaged, or report an error.
use crate::splice::pace::SECOND;
use crate::ts::clock::{STAMP_MODULUS, distance};

/// Determines the leading pictures of the first random-access picture of a source.
#[derive(Debug, Default)]
pub(crate) struct LeadingPictures {
    /// Presentation time of the first picture.
    first: Option<u64>,
    phase: Phase,
    /// Whether the last picture was a leading one; a PES packet without a time stamp belongs to it.
    is_leading: bool,
    /// The last bytes of the first picture.
    window: u32,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Phase {
    #[default]
    Awaited,
    /// The first picture is arriving.
    First,
    /// Pictures may be leading ones.
    Following,
    Over,
}

impl LeadingPictures {
    /// Creates this for a source that continues after the last picture that was sent.
    pub(crate) fn none() -> Self {
        LeadingPictures { phase: Phase::Over, ..Self::default() }
    }

    /// Takes the presentation time of the picture that starts now, and returns whether it is a leading picture.
    pub(crate) fn picture(&mut self, pts: Option<u64>) -> bool {
        let (Some(pts), false) = (pts, self.phase == Phase::Over) else { return self.is_leading };
        let step = distance(*self.first.get_or_insert(pts), pts, STAMP_MODULUS);
        self.is_leading = false;
        self.phase = match (&self.phase, step) {
            // A packet that is sent twice is still the first picture.
            (Phase::Awaited | Phase::First, 0) => Phase::First,
            _ if step.abs() > SECOND => Phase::Over,
            _ => {
                self.is_leading = step < 0;
                Phase::Following
            }
        };
        self.is_leading
    }

    /// Marks the first picture of H.265, of which this is a part, as a broken link (CRA as BLA), so that a decoder does
    /// not continue the picture numbers of the previous source.
    pub(crate) fn mark_broken_link(&mut self, payload: &mut [u8]) {
        const CRA: u8 = 21;
        const BLA_WITH_LEADING_PICTURES: u8 = 16;
        if self.phase != Phase::First {
            return;
        }
        for byte in payload {
            // The byte after a start code contains the type of the unit.
            if self.window & 0xFF_FFFF == 1 && *byte >> 1 & 0x3F == CRA {
                *byte = *byte & 0x81 | BLA_WITH_LEADING_PICTURES << 1;
            }
            self.window = self.window << 8 | u32::from(*byte);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the presentation times of the pictures that are not leading ones.
    fn shown(all: &[u64]) -> Vec<u64> {
        let mut leading = LeadingPictures::default();
        all.iter().copied().filter(|pts| !leading.picture(Some(*pts))).collect()
    }

    #[test]
    fn only_pictures_before_the_first_are_leading() {
        assert_eq!(shown(&[30, 10, 20, 60, 40, 50, 90, 70]), [30, 60, 40, 50, 90, 70]);
        assert_eq!(shown(&[30, 60, 40, 50]), [30, 60, 40, 50]);
        assert_eq!(shown(&[30, 30, 10, 60]), [30, 30, 60]);
        // The second field of the first picture is a picture of its own.
        assert_eq!(shown(&[30, 31, 10, 11, 60, 61]), [30, 31, 60, 61]);
        // Across the wrap of the clock.
        assert_eq!(shown(&[5, STAMP_MODULUS - 5, 20, 10]), [5, 20, 10]);
        // The clock of the source jumps, or has wrapped after a day.
        assert_eq!(shown(&[500_000, 10, 499_990]), [500_000, 10, 499_990]);
        assert_eq!(shown(&[500_000, 600_000, 499_990]), [500_000, 600_000, 499_990]);
    }

    #[test]
    fn a_packet_without_a_time_stamp_belongs_to_the_picture_before_it() {
        let mut leading = LeadingPictures::default();
        let pictures = [None, Some(30), None, Some(10), None, Some(60), None];
        let found = pictures.map(|pts| leading.picture(pts));
        assert_eq!(found, [false, false, false, true, true, false, false]);
    }

    #[test]
    fn a_clean_random_access_picture_becomes_a_broken_link_wherever_packets_divide_it() {
        let picture = [0, 0, 1, 0x46, 1, 0, 0, 0, 1, 0x2A, 1, 9, 0, 0, 1, 0x2B, 1, 0x2A];
        let expected = [0, 0, 1, 0x46, 1, 0, 0, 0, 1, 0x20, 1, 9, 0, 0, 1, 0x21, 1, 0x2A];
        for at in 0..picture.len() {
            let mut leading = LeadingPictures::default();
            assert!(!leading.picture(Some(30)));
            let mut marked = picture;
            let (head, tail) = marked.split_at_mut(at);
            leading.mark_broken_link(head);
            leading.mark_broken_link(tail);
            assert_eq!(marked, expected, "divided at {at}");
            // Later pictures stay as they are.
            assert!(!leading.picture(Some(60)));
            let mut later = picture;
            leading.mark_broken_link(&mut later);
            assert_eq!(later, picture);
        }
    }
}
