//! What connections have shown about the number that a provider allows on an account profile.
//!
//! Most accounts have no configured limit, and many providers enforce one that the account does not name. The gateway
//! discovers it by a refusal while connections of its own play, and forgets it when more connections play at once. A device
//! that says that all its connections are in use is believed for a minute, because other programs use them too. The
//! number of tuners that it states is believed for a day, as an upper bound.

use std::time::{Duration, Instant};

use crate::ids::StreamId;

/// Time after which a refusal no longer prevents attempts beyond a discovered limit.
const REFUSAL_MEMORY: Duration = Duration::from_secs(600);

/// Shortest interval between two refused attempts beyond a discovered limit to open the same stream.
const SAME_STREAM_INTERVAL: Duration = Duration::from_secs(60);

/// Number of streams that may be refused beyond a discovered limit within [`REFUSAL_MEMORY`].
const REFUSED_STREAMS_MAX: usize = 5;

/// Time for which a device that says that all its connections are in use is believed.
const TOLD_MEMORY: Duration = Duration::from_secs(60);

/// Time after which it is asked again for a viewer who waited in vain.
const TOLD_INTERVAL: Duration = Duration::from_secs(5);

/// Time for which the number of tuners that a device states is believed, and for which it is not asked again.
const STATED_MEMORY: Duration = Duration::from_secs(24 * 3600);

/// Time after which a device that did not state its tuners is asked again.
const QUESTION_INTERVAL: Duration = Duration::from_secs(3600);

/// Observations about the connections of an account profile.
///
/// - A refusal while connections play discovers a limit, unless more have played at once before: then the refusal has
///   another cause, such as a stream that the subscription does not include.
/// - The limit is forgotten as soon as more connections play at once. Because the observation can be wrong, an attempt
///   beyond it is allowed from time to time: see [`Self::may_exceed`].
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedLimit {
    /// Largest number of connections that played at once.
    peak: u32,
    discovered: Option<u32>,
    /// When the provider last said that all its connections are in use, if the limit is known from that only.
    told_at: Option<Instant>,
    /// The number of tuners that the device states, which is at most its limit.
    stated: Option<u32>,
    /// When the device may be asked for that number again, which is then forgotten.
    asked_again_at: Option<Instant>,
    /// The last refusal of each stream, oldest first. At most [`REFUSED_STREAMS_MAX`].
    refusals: Vec<(StreamId, Instant)>,
}

impl ObservedLimit {
    /// The value before the first observation.
    pub const NOTHING: Self = Self {
        peak: 0,
        discovered: None,
        told_at: None,
        stated: None,
        asked_again_at: None,
        refusals: Vec::new(),
    };

    /// Returns the limit in force: the discovered one, or the number of tuners that the device states if that is smaller.
    pub fn in_force(&self) -> Option<u32> {
        self.discovered.into_iter().chain(self.stated).min()
    }

    /// Returns the number of tuners that the device states.
    pub fn stated(&self) -> Option<u32> {
        self.stated
    }

    /// Returns the discovered limit, unless the provider only says that all its connections are in use now.
    pub fn lasting(&self) -> Option<u32> {
        self.discovered.filter(|_| self.told_at.is_none())
    }

    /// Returns whether the limit in force is known from the device alone: it says that all its connections are in use now, or
    /// how many it has.
    pub fn is_told(&self) -> bool {
        let is_stated =
            self.stated.is_some_and(|it| self.discovered.is_none_or(|discovered| it <= discovered));
        self.told_at.is_some() || is_stated
    }

    /// Returns whether the device is to be asked now for the number of its tuners. Counts as a question that gets no answer,
    /// until [`Self::tuners_stated`].
    pub fn begin_question(&mut self, now: Instant) -> bool {
        self.expire(now);
        let is_due = self.asked_again_at.is_none_or(|it| it <= now);
        if is_due {
            self.asked_again_at = Some(now + QUESTION_INTERVAL);
        }
        is_due
    }

    /// The device states the number of its tuners. Returns whether that is possible: it has not carried more before.
    pub fn tuners_stated(&mut self, n_tuners: u32, now: Instant) -> bool {
        self.asked_again_at = Some(now + STATED_MEMORY);
        self.stated = Some(n_tuners).filter(|it| *it >= self.peak);
        self.stated.is_some()
    }

    /// The provider says that all its connections are in use, while `n_carried` of the gateway's own were playing or closing.
    /// Returns the limit if it was not known.
    pub fn told(&mut self, n_carried: u32, now: Instant) -> Option<u32> {
        let is_new = self.discovered.is_none();
        if n_carried == 0 || (!is_new && self.told_at.is_none()) {
            return None;
        }
        (self.discovered, self.told_at) = (Some(n_carried), Some(now));
        is_new.then_some(n_carried)
    }

    /// Forgets what the provider said more than a minute ago, and the number of tuners that it stated a day ago.
    pub fn expire(&mut self, now: Instant) {
        if self.asked_again_at.is_some_and(|it| it <= now) {
            self.stated = None;
        }
        if self.told_at.take_if(|it| now.saturating_duration_since(*it) >= TOLD_MEMORY).is_some() {
            self.discovered = None;
        }
    }

    /// Returns whether two connections have played at once.
    pub fn has_carried_two(&self) -> bool {
        self.peak >= 2
    }

    /// `n_playing` connections play at once. Returns the limit that this disproves; it is forgotten. A device that stated a
    /// smaller number of tuners is not asked again before the day is over.
    pub fn plays(&mut self, n_playing: u32) -> Option<u32> {
        self.peak = self.peak.max(n_playing);
        let stated = self.stated.take_if(|it| *it < n_playing);
        let disproved = self.discovered.take_if(|it| *it < n_playing);
        if disproved.is_some() {
            self.refusals.clear();
            self.told_at = None;
        }
        disproved.or(stated)
    }

    /// The provider refused to open this stream while `n_carried` other connections were playing or closing. Returns
    /// the limit if this discovers it.
    pub fn refused(&mut self, stream: StreamId, n_carried: u32, now: Instant) -> Option<u32> {
        if n_carried == 0 || n_carried < self.peak {
            return None;
        }
        self.refusals.retain(|it| it.0 != stream && is_remembered(it.1, now));
        if self.refusals.len() >= REFUSED_STREAMS_MAX {
            self.refusals.remove(0);
        }
        self.refusals.push((stream, now));
        self.told_at = None;
        (self.discovered.replace(n_carried) != Some(n_carried)).then_some(n_carried)
    }

    /// Returns whether one attempt to open this stream beyond the discovered limit is allowed, after no other holder
    /// gave up its slot.
    ///
    /// A wrong observation must not lock viewers out, and a provider must not be flooded: a stream is tried once a
    /// minute, and none is after five different ones were refused within ten minutes.
    pub fn may_exceed(&self, stream: StreamId, now: Instant) -> bool {
        let age = |at: Instant| now.saturating_duration_since(at);
        if let Some(at) = self.told_at {
            return age(at) >= TOLD_INTERVAL;
        }
        let n_refused = self.refusals.iter().filter(|it| is_remembered(it.1, now)).count();
        let was_refused = self.refusals.iter().any(|it| it.0 == stream && age(it.1) < SAME_STREAM_INTERVAL);
        !was_refused && n_refused < REFUSED_STREAMS_MAX
    }
}

fn is_remembered(at: Instant, now: Instant) -> bool {
    now.saturating_duration_since(at) < REFUSAL_MEMORY
}

/// Returns whether a channel may open a second connection beside the one that it has, without asking anybody to yield.
///
/// `max_streams` is the configured limit (0 is none), `n_used` the number of slots in use, and `is_awaited` whether a
/// request waits for a slot. Without a configured limit, no other connection may be open there, or the provider must
/// have carried two at once before: otherwise the second one might cost the first.
pub fn may_open_beside(max_streams: u32, observed: &ObservedLimit, n_used: u32, is_awaited: bool) -> bool {
    let has_room = match max_streams {
        0 if n_used == 0 => true,
        0 => observed.has_carried_two() && observed.in_force().is_none_or(|it| n_used < it),
        max => n_used < max,
    };
    has_room && !is_awaited
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWS: StreamId = StreamId(1);
    const SPORT: StreamId = StreamId(2);

    #[expect(clippy::disallowed_methods, reason = "time is simulated from here on")]
    fn start() -> Instant {
        Instant::now()
    }

    #[test]
    fn a_refusal_while_a_connection_plays_discovers_a_limit() {
        let now = start();
        let mut observed = ObservedLimit::NOTHING;
        assert_eq!(observed.refused(NEWS, 0, now), None, "no other connection plays");
        assert_eq!(observed.in_force(), None);
        assert_eq!(observed.refused(NEWS, 1, now), Some(1));
        assert_eq!(observed.refused(SPORT, 1, now), None, "it is known");
        assert_eq!(observed.in_force(), Some(1));
    }

    #[test]
    fn a_refusal_below_the_number_that_has_played_at_once_discovers_nothing() {
        let now = start();
        let mut observed = ObservedLimit::NOTHING;
        observed.plays(2);
        assert_eq!(observed.refused(NEWS, 1, now), None);
        assert_eq!(observed.refused(NEWS, 2, now), Some(2));
        assert_eq!(observed.in_force(), Some(2));
    }

    #[test]
    fn a_device_that_says_that_it_is_full_is_believed_for_a_minute() {
        let now = start();
        let after = |seconds: f64| now + Duration::from_secs_f64(seconds);
        let mut observed = ObservedLimit::NOTHING;
        assert_eq!(observed.told(0, now), None, "no other connection plays");
        assert_eq!((observed.in_force(), observed.is_told()), (None, false));
        observed.plays(3);
        assert_eq!(observed.told(2, now), Some(2), "others share the device, so more played before");
        assert!(observed.is_told());
        for (seconds, may_exceed) in [(0.0, false), (4.9, false), (5.0, true)] {
            assert_eq!(observed.may_exceed(NEWS, after(seconds)), may_exceed, "{seconds}");
        }
        observed.expire(after(59.9));
        assert_eq!(observed.in_force(), Some(2));
        observed.expire(after(60.1));
        assert_eq!((observed.in_force(), observed.is_told()), (None, false));
        // Another refusal begins the minute anew, and its number counts.
        observed.told(2, after(100.0));
        assert_eq!(observed.told(1, after(140.0)), None);
        observed.expire(after(199.0));
        assert_eq!(observed.in_force(), Some(1));
        assert_eq!(observed.plays(2), Some(1));
        assert!(!observed.is_told());
        // A limit that was discovered otherwise stays.
        observed.refused(NEWS, 2, after(300.0));
        observed.refused(NEWS, 3, after(300.0));
        assert_eq!(observed.told(1, after(301.0)), None);
        observed.expire(after(400.0));
        assert_eq!((observed.in_force(), observed.is_told()), (Some(3), false));
    }

    #[test]
    fn a_device_is_asked_for_its_tuners_once_a_day_and_after_an_hour_without_an_answer() {
        let now = start();
        let after = |hours: u64, seconds: u64| now + Duration::from_secs(3600 * hours + seconds);
        let mut observed = ObservedLimit::NOTHING;
        for (at, is_due) in [(0, true), (1, false), (3599, false), (3600, true), (3601, false)] {
            assert_eq!(observed.begin_question(after(0, at)), is_due, "{at}");
            assert_eq!((observed.in_force(), observed.stated()), (None, None), "a question changes nothing");
        }
        assert!(observed.tuners_stated(2, after(2, 0)));
        assert!(!observed.begin_question(after(25, 3599)));
        observed.expire(after(25, 3599));
        assert_eq!((observed.in_force(), observed.stated(), observed.lasting()), (Some(2), Some(2), None));
        observed.expire(after(26, 0));
        assert_eq!((observed.in_force(), observed.stated()), (None, None));
        assert!(observed.begin_question(after(26, 0)));
    }

    #[test]
    fn stated_tuners_are_an_upper_bound_and_a_device_that_carries_more_disproves_them() {
        let now = start();
        let mut observed = ObservedLimit::NOTHING;
        assert!(observed.tuners_stated(3, now));
        assert!(observed.is_told());
        assert!(
            !may_open_beside(0, &observed, 1, false),
            "a statement does not show that a second connection plays"
        );
        // A smaller number in use elsewhere comes first, and ends first.
        assert_eq!(observed.told(2, now), Some(2));
        assert_eq!(observed.in_force(), Some(2));
        observed.expire(now + TOLD_MEMORY);
        assert_eq!(observed.in_force(), Some(3));
        assert_eq!(observed.refused(NEWS, 1, now), Some(1));
        assert_eq!((observed.in_force(), observed.is_told()), (Some(1), false));
        assert_eq!(observed.plays(3), Some(1));
        assert_eq!((observed.in_force(), observed.is_told()), (Some(3), true));
        assert_eq!(observed.plays(4), Some(3));
        assert_eq!((observed.in_force(), observed.is_told()), (None, false));
        assert!(!observed.begin_question(now + Duration::from_secs(23 * 3600)), "it would say the same");
        // What is disproved already is not believed again.
        assert!(!observed.tuners_stated(3, now));
        assert_eq!(observed.in_force(), None);
        assert!(observed.tuners_stated(4, now));
    }

    #[test]
    fn a_success_disproves_a_discovered_limit() {
        let now = start();
        let mut observed = ObservedLimit::NOTHING;
        observed.refused(NEWS, 1, now);
        assert_eq!(observed.plays(1), None);
        assert_eq!(observed.in_force(), Some(1));
        assert_eq!(observed.plays(2), Some(1));
        assert_eq!((observed.in_force(), observed.may_exceed(NEWS, now)), (None, true));
        // The same refusal shows nothing any more.
        assert_eq!(observed.refused(NEWS, 1, now), None);
    }

    #[test]
    fn a_stream_that_was_not_refused_may_exceed_a_discovered_limit_until_five_were() {
        let now = start();
        let mut observed = ObservedLimit::NOTHING;
        for stream in 1..=5 {
            assert!(observed.may_exceed(StreamId(stream), now), "{stream}");
            observed.refused(StreamId(stream), 1, now);
            assert!(!observed.may_exceed(StreamId(stream), now), "{stream} was just refused");
        }
        assert!(!observed.may_exceed(StreamId(6), now));
        assert!(!observed.may_exceed(NEWS, now + SAME_STREAM_INTERVAL));
        assert!(observed.may_exceed(NEWS, now + REFUSAL_MEMORY), "nobody is locked out for ever");
    }

    #[test]
    fn a_refused_stream_is_tried_beyond_a_discovered_limit_once_a_minute() {
        let start = start();
        let mut observed = ObservedLimit::NOTHING;
        let mut n_attempts = 0;
        for second in 0..3_600 {
            let now = start + Duration::from_secs(second);
            if observed.may_exceed(NEWS, now) {
                observed.refused(NEWS, 1, now);
                n_attempts += 1;
            }
        }
        assert_eq!(n_attempts, 60);
        assert_eq!(observed.refusals.len(), 1);
    }

    #[test]
    fn a_second_connection_needs_a_free_slot_or_a_provider_that_has_carried_two() {
        let now = start();
        let unknown = ObservedLimit::NOTHING;
        let mut generous = ObservedLimit::NOTHING;
        generous.plays(2);
        let mut full = generous.clone();
        full.refused(NEWS, 2, now);
        let check = |max_streams, observed: &ObservedLimit, n_used, expected| {
            assert_eq!(may_open_beside(max_streams, observed, n_used, false), expected);
            assert!(!may_open_beside(max_streams, observed, n_used, true), "somebody waits");
        };
        check(1, &generous, 1, false);
        check(2, &unknown, 1, true);
        check(0, &unknown, 0, true);
        check(0, &unknown, 1, false);
        check(0, &generous, 1, true);
        check(0, &generous, 7, true);
        check(0, &full, 1, true);
        check(0, &full, 2, false);
    }
}
