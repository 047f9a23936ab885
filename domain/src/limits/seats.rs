//! The decision about a seat: whether a user may watch one more channel, and which sessions end for it.

use std::cmp::Reverse;

use crate::settings::AtLimit;
use crate::user_limits::UserLimits;

/// The device and the channel of a session, relative to the device that requests a seat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SeatHolder {
    /// The requesting device watches the same channel: the same session, possibly over another connection.
    Same,
    /// The requesting device watches another channel.
    Own,
    /// Another device.
    Other,
}

/// A session that holds a seat of the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldSeat {
    pub holder: SeatHolder,
    /// Its channel, as any number chosen by the caller.
    pub channel: usize,
    /// Whether no other session watches the channel. Matters only if the rules end sessions of other devices.
    pub is_alone: bool,
}

/// The rules that apply at the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SeatRules {
    pub at_limit: AtLimit,
    pub user_limits: UserLimits,
}

/// The decision about a request for a seat. Numbers are indices into the sessions held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeatDecision {
    /// The session has a seat already; this is another connection of it.
    Share(usize),
    /// One more session is allowed.
    Take,
    /// One more session is allowed after these sessions are ended.
    Replace(Vec<usize>),
    /// No seat is free.
    Full,
}

/// Decides whether a user with these sessions, oldest first, may have one more, of this channel. `limit` 0 is unlimited.
///
/// - A session never competes with itself.
/// - At the limit a device may give up its oldest sessions for the new one, and only as many as needed. If they are not
///   enough, none is ended.
/// - Other devices are affected only if the user limits say so: then as many sessions end as needed, in the order of the
///   user limits. Without that, a lowered limit disconnects nobody.
pub fn decide_seat(limit: u32, channel: usize, held: &[HeldSeat], rules: SeatRules) -> SeatDecision {
    let SeatRules { at_limit, user_limits } = rules;
    if let Some(same) = held.iter().position(|it| it.holder == SeatHolder::Same) {
        return SeatDecision::Share(same);
    }
    let counts_channels = user_limits.ignore_same_channel_connections;
    let counted = counted(held, counts_channels);
    let limit = limit as usize;
    let is_watched = counts_channels && held.iter().any(|it| it.channel == channel);
    if limit == 0 || counted.len() < limit || is_watched {
        return SeatDecision::Take;
    }
    let surplus = counted.len() - limit + 1;
    let is_own = |it: &&Vec<usize>| it.iter().all(|index| held[*index].holder == SeatHolder::Own);
    let own = counted.iter().filter(is_own).take(surplus);
    if at_limit == AtLimit::ReplaceOwn && own.clone().count() == surplus {
        return replace(own);
    }
    if !user_limits.terminate_on_limit_exceeded {
        return SeatDecision::Full;
    }
    let mut others: Vec<&Vec<usize>> = counted.iter().collect();
    others.sort_by_key(|it| {
        let keeps_own = at_limit == AtLimit::Refuse || !is_own(it);
        let is_shared =
            user_limits.prioritize_single_client_channels && !it.iter().all(|index| held[*index].is_alone);
        let (oldest, newest) = (it.first().copied(), it.last().copied());
        let age = if user_limits.terminate_oldest { (oldest, None) } else { (None, newest.map(Reverse)) };
        (keeps_own, is_shared, age)
    });
    replace(others.into_iter().take(surplus))
}

/// Returns what counts towards the limit: each session, or the sessions of each channel together. Never empty lists.
fn counted(held: &[HeldSeat], by_channel: bool) -> Vec<Vec<usize>> {
    let mut counted: Vec<Vec<usize>> = Vec::new();
    for (index, seat) in held.iter().enumerate() {
        let same = counted.iter_mut().find(|it| by_channel && held[it[0]].channel == seat.channel);
        match same {
            Some(same) => same.push(index),
            None => counted.push(vec![index]),
        }
    }
    counted
}

fn replace<'a>(ended: impl Iterator<Item = &'a Vec<usize>>) -> SeatDecision {
    let mut ended: Vec<usize> = ended.flatten().copied().collect();
    ended.sort_unstable();
    SeatDecision::Replace(ended)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Parses sessions, oldest first: `s`ame, `o`wn and other (`x`), each of a channel of its own.
    fn sessions(held: &str) -> Vec<HeldSeat> {
        let one = |(channel, it)| {
            let holder = match it {
                's' => SeatHolder::Same,
                'o' => SeatHolder::Own,
                _ => SeatHolder::Other,
            };
            HeldSeat { holder, channel, is_alone: true }
        };
        held.chars().enumerate().map(one).collect()
    }

    /// The number of a channel that no session watches.
    const ANOTHER: usize = 99;

    fn rules(at_limit: AtLimit) -> SeatRules {
        SeatRules { at_limit, ..SeatRules::default() }
    }

    fn ending(user_limits: UserLimits) -> SeatRules {
        let user_limits = UserLimits { terminate_on_limit_exceeded: true, ..user_limits };
        SeatRules { at_limit: AtLimit::ReplaceOwn, user_limits }
    }

    #[track_caller]
    fn check_seat(limit: u32, held: &str, expected: SeatDecision) {
        assert_eq!(decide_seat(limit, ANOTHER, &sessions(held), rules(AtLimit::ReplaceOwn)), expected);
    }

    #[test]
    fn a_request_for_a_seat_is_shared_granted_replaces_or_is_refused() {
        use SeatDecision::{Full, Replace, Share, Take};
        check_seat(1, "", Take);
        check_seat(0, "xxoo", Take); // 0 is unlimited
        check_seat(3, "xo", Take); // one more is allowed: the session of the device continues
        check_seat(1, "x", Full);
        check_seat(1, "o", Replace(vec![0]));
        check_seat(2, "xo", Replace(vec![1]));
        check_seat(2, "oo", Replace(vec![0])); // its oldest session
        check_seat(1, "s", Share(0));
        check_seat(2, "xs", Share(1));
        check_seat(1, "xxos", Share(3)); // a session never competes with itself
        // The limit was lowered below the current use.
        check_seat(1, "xxx", Full);
        check_seat(1, "xo", Full); // ending its own session would not be enough, so it continues
        check_seat(2, "oxo", Replace(vec![0, 2]));
        check_seat(1, "oo", Replace(vec![0, 1]));
    }

    #[test]
    fn with_refuse_a_device_at_the_limit_keeps_its_session() {
        let verdict = |limit, held| decide_seat(limit, ANOTHER, &sessions(held), rules(AtLimit::Refuse));
        assert_eq!(verdict(1, "o"), SeatDecision::Full);
        assert_eq!(verdict(1, "s"), SeatDecision::Share(0));
        assert_eq!(verdict(2, "o"), SeatDecision::Take);
    }

    #[test]
    fn the_user_limits_choose_the_sessions_of_other_devices_that_end() {
        use SeatDecision::Replace;
        let defaults = UserLimits::default();
        let newest = UserLimits { terminate_oldest: false, ..defaults };
        let check = |limits, limit, held: &[HeldSeat], expected| {
            assert_eq!(decide_seat(limit, ANOTHER, held, ending(limits)), expected);
        };
        check(defaults, 2, &sessions("xx"), Replace(vec![0]));
        check(newest, 2, &sessions("xx"), Replace(vec![1]));
        check(defaults, 2, &sessions("xo"), Replace(vec![1])); // its own first
        check(defaults, 1, &sessions("xo"), Replace(vec![0, 1]));
        let mut shared = sessions("xx");
        shared[0].is_alone = false;
        check(defaults, 2, &shared, Replace(vec![1])); // a provider's connection comes free
        check(
            UserLimits { prioritize_single_client_channels: false, ..defaults },
            2,
            &shared,
            Replace(vec![0]),
        );
    }

    #[test]
    fn connections_to_one_channel_count_once_if_the_user_limits_say_so() {
        let once = UserLimits { ignore_same_channel_connections: true, ..UserLimits::default() };
        let rules = SeatRules { user_limits: once, ..SeatRules::default() };
        let mut held = sessions("xx");
        held[1].channel = held[0].channel;
        assert_eq!(decide_seat(2, ANOTHER, &held, rules), SeatDecision::Take);
        assert_eq!(decide_seat(1, ANOTHER, &held, rules), SeatDecision::Full);
        assert_eq!(decide_seat(1, held[0].channel, &held, rules), SeatDecision::Take);
        assert_eq!(decide_seat(1, ANOTHER, &held, ending(once)), SeatDecision::Replace(vec![0, 1]));
    }

    fn any_seat() -> impl Strategy<Value = HeldSeat> {
        let holder = prop_oneof![1 => Just(SeatHolder::Same), 3 => Just(SeatHolder::Own), 3 => Just(SeatHolder::Other)];
        (holder, 0..4_usize, any::<bool>()).prop_map(|(holder, channel, is_alone)| HeldSeat {
            holder,
            channel,
            is_alone,
        })
    }

    fn any_rules() -> impl Strategy<Value = SeatRules> {
        (any::<bool>(), any::<[bool; 4]>()).prop_map(|(replaces, [ends, oldest, single, once])| SeatRules {
            at_limit: if replaces { AtLimit::ReplaceOwn } else { AtLimit::Refuse },
            user_limits: UserLimits {
                terminate_on_limit_exceeded: ends,
                terminate_oldest: oldest,
                prioritize_single_client_channels: single,
                ignore_same_channel_connections: once,
            },
        })
    }

    proptest! {
        #[test]
        fn no_seat_decision_exceeds_the_limit_or_ends_more_sessions_than_needed(
            limit in 0..5_u32,
            channel in 0..4_usize,
            held in prop::collection::vec(any_seat(), 0..8),
            rules in any_rules(),
        ) {
            let UserLimits { terminate_on_limit_exceeded: ends, ignore_same_channel_connections: once, .. } =
                rules.user_limits;
            let counted = counted(&held, once);
            let is_own = |it: &Vec<usize>| it.iter().all(|index| held[*index].holder == SeatHolder::Own);
            let n_own = counted.iter().filter(|it| is_own(it)).count();
            let replaces = rules.at_limit == AtLimit::ReplaceOwn;
            match decide_seat(limit, channel, &held, rules) {
                SeatDecision::Share(index) => prop_assert_eq!(held[index].holder, SeatHolder::Same),
                SeatDecision::Take => prop_assert!(
                    limit == 0 || counted.len() < limit as usize || once && held.iter().any(|it| it.channel == channel)
                ),
                SeatDecision::Replace(ended) => {
                    prop_assert!(ended.is_sorted_by(|a, b| a < b));
                    prop_assert!(ends || replaces && ended.iter().all(|it| held[*it].holder == SeatHolder::Own));
                    let n_left = counted.iter().filter(|it| !it.iter().all(|index| ended.contains(index))).count();
                    prop_assert_eq!(n_left + 1, limit as usize, "just enough");
                }
                SeatDecision::Full => {
                    prop_assert!(limit > 0 && !ends && counted.len() >= limit as usize);
                    prop_assert!(held.iter().all(|it| it.holder != SeatHolder::Same));
                    prop_assert!(!replaces || counted.len() - n_own >= limit as usize, "ending its own sessions would have sufficed");
                }
            }
        }
    }
}
