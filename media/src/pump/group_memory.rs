//! The distances of the random-access points of streams, kept for the next connection to the same stream.

use std::collections::VecDeque;

use crate::groups::GroupLength;
use crate::pump::handle::KnownStream;

/// Number of streams whose distance is kept. A channel changes between a few.
const STREAMS_MAX: usize = 64;

/// The group lengths of the last streams, by the key of the stream; the newest last.
#[derive(Debug, Default)]
pub(super) struct GroupMemory {
    learned: VecDeque<(u64, GroupLength)>,
}

impl GroupMemory {
    /// Notes what a connection has shown, which includes what was known before.
    pub(super) fn learn(&mut self, key: u64, group: GroupLength) {
        self.learned.retain(|(it, _)| *it != key);
        if self.learned.len() == STREAMS_MAX {
            self.learned.pop_front();
        }
        self.learned.push_back((key, group));
    }

    /// Notes what is known of a stream from elsewhere, if nothing was learned of it here.
    pub(super) fn know(&mut self, stream: KnownStream) {
        if self.get(stream.key) == GroupLength::Unknown && stream.group != GroupLength::Unknown {
            self.learn(stream.key, stream.group);
        }
    }

    /// Returns what the last connection to this stream has shown.
    pub(super) fn get(&self, key: u64) -> GroupLength {
        self.learned.iter().find(|(it, _)| *it == key).map_or(GroupLength::Unknown, |it| it.1)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_group_length_is_kept_for_sixty_four_streams() {
        let known = |seconds| GroupLength::Known(Duration::from_secs(seconds));
        let mut memory = GroupMemory::default();
        assert_eq!(memory.get(1), GroupLength::Unknown);
        memory.learn(1, known(2));
        memory.learn(1, known(4));
        memory.learn(2, GroupLength::None);
        assert_eq!((memory.get(1), memory.get(2)), (known(4), GroupLength::None));
        for key in 3..=65 {
            memory.learn(key, known(key));
        }
        assert_eq!((memory.get(1), memory.get(2)), (GroupLength::Unknown, GroupLength::None));
    }

    #[test]
    fn what_was_learned_here_comes_before_what_is_known_from_elsewhere() {
        let known = |seconds| GroupLength::Known(Duration::from_secs(seconds));
        let mut memory = GroupMemory::default();
        memory.know(1.into());
        assert_eq!(memory.get(1), GroupLength::Unknown);
        for group in [known(9), known(8), GroupLength::Unknown] {
            memory.know(KnownStream { key: 1, group });
            assert_eq!(memory.get(1), known(9));
        }
        memory.know(KnownStream { key: 2, group: GroupLength::None });
        assert_eq!(memory.get(2), GroupLength::None);
    }
}
