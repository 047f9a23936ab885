//! The rhythm in which streams have sent, kept for the next connection to the same stream.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::time::Instant;

/// Number of streams whose rhythm is kept. A channel changes between a few.
const STREAMS_MAX: usize = 16;
/// A rhythm is forgotten after this time.
const MEMORY: Duration = Duration::from_secs(600);

/// How long a stream is silent although it is healthy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Rhythm {
    /// Silence to expect after one of its bursts; zero if it sends evenly.
    pub(super) silence_to_expect: Duration,
    /// Its longest pause of the last minutes.
    pub(super) longest_pause: Duration,
}

/// The rhythms of the last streams, by the key of the stream; the newest last.
#[derive(Debug, Default)]
pub(super) struct RhythmMemory {
    learned: VecDeque<(u64, Rhythm, Instant)>,
}

impl RhythmMemory {
    /// Notes the rhythm of a connection that ends.
    pub(super) fn learn(&mut self, key: u64, rhythm: Rhythm, now: Instant) {
        self.learned.retain(|(it, ..)| *it != key);
        if self.learned.len() == STREAMS_MAX {
            self.learned.pop_front();
        }
        self.learned.push_back((key, rhythm, now));
    }

    /// Returns the rhythm of the last connection to this stream.
    pub(super) fn get(&self, key: u64, now: Instant) -> Rhythm {
        let known = self.learned.iter().find(|(it, _, at)| *it == key && now - *at < MEMORY);
        known.map_or(Rhythm::default(), |it| it.1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rhythm_is_kept_for_ten_minutes_and_for_sixteen_streams() {
        let now = Instant::now();
        let rhythm = |seconds| Rhythm {
            silence_to_expect: Duration::from_secs(seconds),
            longest_pause: Duration::from_secs(1),
        };
        let mut memory = RhythmMemory::default();
        memory.learn(1, rhythm(5), now);
        memory.learn(1, rhythm(7), now);
        memory.learn(2, rhythm(9), now);
        assert_eq!((memory.get(1, now), memory.get(2, now)), (rhythm(7), rhythm(9)));
        assert_eq!(memory.get(3, now), Rhythm::default());
        assert_eq!(memory.get(1, now + MEMORY), Rhythm::default());
        for key in 3..=17 {
            memory.learn(key, rhythm(3), now);
        }
        assert_eq!((memory.get(1, now), memory.get(2, now)), (Rhythm::default(), rhythm(9)));
    }
}
