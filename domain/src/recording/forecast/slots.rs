//! The slots that recordings use at each time.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::timeline::Timeline;
use super::{ForecastDemand, ForecastPart, FullAccount, HOLDERS_MAX, LimitId, NEAR_MS};
use crate::ids::{ChannelId, ProfileId, RecordingId};
use crate::plan::SlotPool;
use crate::recording::hash::Plain;

/// The use of all limits and channels.
#[derive(Default)]
pub(super) struct SlotUse {
    limits: HashMap<LimitId, Limit, Plain>,
    channels: HashMap<ChannelId, ChannelUse, Plain>,
    parts: HashMap<RecordingId, Vec<ForecastPart>, Plain>,
}

#[derive(Default)]
struct Limit {
    usage: Timeline,
    /// The programmes and paddings that use it.
    holders: BTreeSet<(i64, i64, RecordingId)>,
    /// The longest use, so that a search in `holders` can begin early enough.
    longest: i64,
}

#[derive(Default)]
struct ChannelUse {
    /// The times in which it plays, by their beginning; they do not overlap, because a channel plays from one account at a
    /// time.
    spans: BTreeMap<i64, Span>,
    /// The recordings that read it.
    readers: Vec<(i64, i64, RecordingId)>,
}

/// A time in which a channel plays from an account profile.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
    profile: ProfileId,
}

impl ChannelUse {
    /// Returns the times in which the channel plays within a time.
    fn playing(&self, start: i64, end: i64) -> Vec<Span> {
        let last_first = self.spans.range(..end).rev().map(|it| *it.1);
        let mut found: Vec<_> = last_first.take_while(|it| it.end > start).collect();
        found.reverse();
        found
    }
}

impl SlotUse {
    pub(super) fn parts(&self, id: RecordingId) -> &[ForecastPart] {
        self.parts.get(&id).map_or(&[], Vec::as_slice)
    }

    /// Assigns the programme of a recording to one account.
    pub(super) fn place<'d>(&mut self, it: &'d ForecastDemand) -> Option<&'d SlotPool> {
        let mut preferred: Vec<_> = it.watched.into_iter().collect();
        let (from, until) = (it.begins_at.saturating_sub(NEAR_MS), it.ends_at.saturating_add(NEAR_MS));
        preferred.extend(self.playing(it.channel, from, until).iter().map(|it| it.profile));
        let pool = self.pool_for(it.channel, it.start, it.end, &it.pools, &preferred)?;
        self.take(it, pool, it.start, it.end);
        Some(pool)
    }

    /// Returns the pool for a programme: of those that fit, the first preferred one, otherwise the first one.
    pub(super) fn pool_for<'d>(
        &self,
        channel: ChannelId,
        start: i64,
        end: i64,
        pools: &'d [SlotPool],
        preferred: &[ProfileId],
    ) -> Option<&'d SlotPool> {
        let playing = self.playing(channel, start, end);
        let fits = |it: &&SlotPool| {
            // A channel plays from one account at a time.
            playing.iter().all(|span| span.profile == it.profile)
                && self.first_full(&playing, start, end, it).is_none()
        };
        let of = |profile: &ProfileId| pools.iter().find(|it| it.profile == *profile);
        preferred.iter().filter_map(of).find(fits).or_else(|| pools.iter().find(fits))
    }

    /// Returns the accounts that are full while a programme has no connection; nothing if it has all of it.
    pub(super) fn full_accounts(&self, it: &ForecastDemand) -> Vec<FullAccount> {
        let missing = self.missing(it);
        let full = |pool: &SlotPool| {
            let full = missing.iter().find_map(|(from, until)| {
                self.first_full(&self.playing(it.channel, *from, *until), *from, *until, pool)
            });
            let (limit, max_streams, from, until) = full?;
            Some(FullAccount {
                account: pool.account,
                account_name: pool.account_name.clone(),
                limit,
                max_streams,
                from,
                until,
                holders: self.limits.get(&limit).map(|it| it.holders_at(from)).unwrap_or_default(),
            })
        };
        it.pools.iter().filter_map(full).collect()
    }

    /// Returns whether a recording lacks a connection while another one has this pool, which it could use itself.
    pub(super) fn lacks(&self, it: &ForecastDemand, other: &ForecastDemand, pool: &SlotPool) -> bool {
        let counts = |own: &SlotPool| limits_of(own).any(|own| limits_of(pool).any(|it| it.0 == own.0));
        let overlaps = |from: i64, until: i64| from < other.end && other.start < until;
        overlaps(it.start, it.end)
            && it.pools.iter().any(counts)
            && self.missing(it).iter().any(|(from, until)| overlaps(*from, *until))
    }

    /// Returns the recordings that fill an account, in the order of their ids.
    pub(super) fn holders(&self, it: &ForecastDemand, pool: &SlotPool) -> Vec<RecordingId> {
        let playing = self.playing(it.channel, it.start, it.end);
        let full = self.first_full(&playing, it.start, it.end, pool);
        let limit = full.and_then(|(id, _, from, _)| Some((self.limits.get(&id)?, from)));
        limit.map(|(it, from)| it.holders_at(from)).unwrap_or_default()
    }

    /// Returns whether no other recording reads the channel during a programme.
    pub(super) fn is_alone(&self, it: &ForecastDemand) -> bool {
        let readers = self.channels.get(&it.channel).into_iter().flat_map(|it| &it.readers);
        readers.filter(|other| other.0 < it.end && it.start < other.1).all(|other| other.2 == it.id)
    }

    /// Takes the slots of a pool for a part of a recording.
    pub(super) fn take(&mut self, it: &ForecastDemand, pool: &SlotPool, start: i64, end: i64) {
        if start >= end {
            return;
        }
        let open = open_parts(&self.playing(it.channel, start, end), pool.profile, start, end);
        for (id, _) in limits_of(pool) {
            let limit = self.limits.entry(id).or_default();
            limit.holders.insert((start, end, it.id));
            limit.longest = limit.longest.max(end - start);
            open.iter().for_each(|(from, until)| limit.usage.add(*from, *until));
        }
        let channel = self.channels.entry(it.channel).or_default();
        channel.readers.push((start, end, it.id));
        let profile = pool.profile;
        channel.spans.extend(open.into_iter().map(|(start, end)| (start, Span { start, end, profile })));
        self.parts.entry(it.id).or_default().push(ForecastPart { from: start, until: end, profile });
    }

    /// Puts back the slots for the programme of a recording, which has to be alone on its channel.
    pub(super) fn put_back(&mut self, it: &ForecastDemand, pool: &SlotPool) {
        for (id, _) in limits_of(pool) {
            let Some(limit) = self.limits.get_mut(&id) else { continue };
            limit.holders.remove(&(it.start, it.end, it.id));
            limit.usage.remove(it.start, it.end);
        }
        if let Some(channel) = self.channels.get_mut(&it.channel) {
            channel.readers.retain(|other| other.2 != it.id);
            channel.spans.remove(&it.start);
        }
        self.parts.remove(&it.id);
    }

    /// Returns how many slots of each limit recordings need at once within a time.
    pub(super) fn peaks(&self, from: i64, until: i64) -> BTreeMap<LimitId, u32> {
        let peaks = self.limits.iter().map(|(id, it)| (*id, it.usage.peak(from, until)));
        peaks.filter(|it| it.1 > 0).collect()
    }

    /// Returns the channels that recordings read within a time.
    pub(super) fn channels(&self, from: i64, until: i64) -> impl Iterator<Item = ChannelId> {
        let is_used = move |it: &ChannelUse| !it.playing(from, until).is_empty();
        self.channels.iter().filter(move |it| is_used(it.1)).map(|it| *it.0)
    }

    /// Returns the parts of a programme without a connection.
    pub(super) fn missing(&self, it: &ForecastDemand) -> Vec<(i64, i64)> {
        let mut parts: Vec<_> = self.parts(it.id).iter().map(|it| (it.from, it.until)).collect();
        parts.sort_unstable();
        let (mut missing, mut at) = (Vec::new(), it.start);
        for (from, until) in parts {
            if at < from {
                missing.push((at, from.min(it.end)));
            }
            at = at.max(until);
        }
        if at < it.end {
            missing.push((at, it.end));
        }
        missing
    }

    /// Gives a programme whatever is free of what it lacks.
    pub(super) fn fill_programme(&mut self, it: &ForecastDemand) {
        for (from, until) in self.missing(it) {
            self.fill(it, from, until);
        }
    }

    /// Gives a recording whatever is free in a time. It stays with an account as long as that has a slot.
    pub(super) fn fill(&mut self, it: &ForecastDemand, from: i64, until: i64) {
        let of = |profile: ProfileId| it.pools.iter().find(|it| it.profile == profile);
        let beside = |parts: &[ForecastPart]| {
            let before = parts.iter().find(|it| it.until == from).map(|it| it.profile);
            (before, parts.iter().find(|it| it.from == until).map(|it| it.profile))
        };
        let (before, after) = beside(self.parts(it.id));
        let mut last = before.or(it.watched);
        let mut at = from;
        while at < until {
            let span = self.playing(it.channel, at, until).first().copied();
            if let Some(span) = span.filter(|it| it.start <= at) {
                let end = span.end.min(until);
                if let Some(pool) = of(span.profile) {
                    self.take(it, pool, at, end);
                    last = Some(span.profile);
                }
                at = end;
                continue;
            }
            let end = span.map_or(until, |it| it.start);
            let free = |pool: &SlotPool| self.free_until(pool, at, end);
            let stays = last.and_then(of).map(|it| (free(it), it)).filter(|found| found.0 > at);
            let longest = || {
                let all = it.pools.iter().map(|it| (free(it), it));
                // Of equal ones the last is the maximum.
                let key = |found: &(i64, &SlotPool)| (found.0, Some(found.1.profile) == after);
                all.rev().max_by_key(key).filter(|found| found.0 > at)
            };
            match stays.or_else(longest) {
                Some((end, pool)) => {
                    self.take(it, pool, at, end);
                    last = Some(pool.profile);
                    at = end;
                }
                None => {
                    let full = it.pools.iter().map(|it| self.full_until(it, at, end));
                    at = full.min().unwrap_or(end).max(at.saturating_add(1));
                }
            }
        }
    }

    /// Returns when the part begins that a recording has until its programme begins; the begin of the programme if none.
    pub(super) fn begin(&self, it: &ForecastDemand) -> i64 {
        let parts = self.parts(it.id);
        let mut at = it.start;
        while let Some(part) = parts.iter().find(|it| it.until == at) {
            at = part.from;
        }
        at
    }

    /// Returns when the part ends that a recording has from the end of its programme on; the end of the programme if none.
    pub(super) fn end(&self, it: &ForecastDemand) -> i64 {
        let parts = self.parts(it.id);
        let mut at = it.end;
        while let Some(part) = parts.iter().find(|it| it.from == at) {
            at = part.until;
        }
        at
    }

    fn playing(&self, channel: ChannelId, start: i64, end: i64) -> Vec<Span> {
        self.channels.get(&channel).map_or_else(Vec::new, |it| it.playing(start, end))
    }

    /// Returns the limit of a pool that is reached first, with its maximum and the time in which it is. `playing` are the
    /// times in which the channel plays.
    fn first_full(
        &self,
        playing: &[Span],
        start: i64,
        end: i64,
        pool: &SlotPool,
    ) -> Option<(LimitId, u32, i64, i64)> {
        let open = open_parts(playing, pool.profile, start, end);
        for (id, max) in maxima_of(pool) {
            let Some(limit) = self.limits.get(&id) else { continue };
            let full = open.iter().find_map(|(from, until)| limit.usage.first_at_least(max, *from, *until));
            if let Some((from, until)) = full {
                return Some((id, max, from, until));
            }
        }
        None
    }

    /// Returns the time until which a pool has a free slot; the time itself if it has none.
    fn free_until(&self, pool: &SlotPool, at: i64, end: i64) -> i64 {
        maxima_of(pool).fold(end, |end, (id, max)| {
            let full = self.limits.get(&id).and_then(|it| it.usage.first_at_least(max, at, end));
            full.map_or(end, |it| it.0)
        })
    }

    /// Returns the time until which a pool has no free slot; the time itself if it has one.
    fn full_until(&self, pool: &SlotPool, at: i64, end: i64) -> i64 {
        let full = maxima_of(pool).filter_map(|(id, max)| {
            let full = self.limits.get(&id)?.usage.first_at_least(max, at, end)?;
            (full.0 == at).then_some(full.1)
        });
        full.max().unwrap_or(at)
    }
}

/// Returns the parts of a time in which a channel does not play from the profile yet.
fn open_parts(playing: &[Span], profile: ProfileId, start: i64, end: i64) -> Vec<(i64, i64)> {
    let (mut open, mut at) = (Vec::new(), start);
    for span in playing.iter().filter(|it| it.profile == profile) {
        if at < span.start {
            open.push((at, span.start));
        }
        at = span.end;
    }
    if at < end {
        open.push((at, end));
    }
    open
}

/// Returns the limits for which a connection of a pool counts.
fn limits_of(pool: &SlotPool) -> impl Iterator<Item = (LimitId, u32)> {
    let shared = pool.shared.as_ref().map(|it| (LimitId::ServerGroup(it.group), it.max_streams));
    [Some((LimitId::Profile(pool.profile), pool.max_streams)), shared].into_iter().flatten()
}

/// Returns the limits of a pool that have a maximum.
pub(super) fn maxima_of(pool: &SlotPool) -> impl Iterator<Item = (LimitId, u32)> {
    limits_of(pool).filter(|it| it.1 > 0)
}

impl Limit {
    fn holders_at(&self, at: i64) -> Vec<RecordingId> {
        let from = (at.saturating_sub(self.longest), i64::MIN, RecordingId(0));
        let until = (at, i64::MAX, RecordingId(u32::MAX));
        let found = self.holders.range(from..=until).filter(|it| it.1 > at).map(|it| it.2);
        let found: BTreeSet<_> = found.collect();
        found.into_iter().take(HOLDERS_MAX).collect()
    }
}
