//! Which recordings will have a connection, before they begin.
//!
//! The forecast is greedy, so that the same recordings always have the same result: those with the highest priority get
//! connections first, then those that have begun, then the earliest. Each uses the first account of its channel that has a
//! free slot for the whole programme. Overlapping recordings of a channel share their connection. Padding is added at the
//! end, as far as slots are left: it never takes the place of a programme.
//!
//! Viewers are not part of it, because nobody knows what they will watch.

#[cfg(test)]
mod tests;
mod timeline;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use self::timeline::Timeline;
use super::Recording;
use crate::ids::{AccountId, ChannelId, ProfileId, RecordingId, ServerGroupId};
use crate::plan::SlotPool;

/// How far ahead the forecast looks, in milliseconds.
pub const FORECAST_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// Maximum number of recordings that are listed as those that fill an account.
pub const HOLDERS_MAX: usize = 50;

/// A limit of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitId {
    Profile(ProfileId),
    ServerGroup(ServerGroupId),
}

/// A recording that needs a connection. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq)]
pub struct ForecastDemand {
    pub id: RecordingId,
    pub channel: ChannelId,
    /// The programme, without padding.
    pub start: i64,
    pub end: i64,
    /// Start and end with padding.
    pub begins_at: i64,
    pub ends_at: i64,
    pub priority: u8,
    pub has_begun: bool,
    /// The accounts that can play the channel, in the order in which they are tried.
    pub pools: Arc<[SlotPool]>,
}

/// The prospects of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prospect {
    /// It has a connection, with this padding around the programme in milliseconds.
    Assigned { account: AccountId, profile: ProfileId, padding_before: i64, padding_after: i64 },
    /// All accounts are full at some time of its programme; one entry each.
    Lost(Vec<FullAccount>),
    /// Nothing can play its channel.
    NoSource,
}

/// An account that has no slot for a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FullAccount {
    pub account: AccountId,
    pub account_name: String,
    pub limit: LimitId,
    pub max_streams: u32,
    /// The first time within the programme at which it is full.
    pub from: i64,
    pub until: i64,
    /// The recordings that use its slots at that time, in order of their ids.
    pub holders: Vec<RecordingId>,
}

/// The forecast of recordings.
#[derive(Default)]
pub struct Forecast {
    prospects: BTreeMap<RecordingId, Prospect>,
    limits: HashMap<LimitId, Limit>,
    channels: HashMap<ChannelId, Vec<Span>>,
}

struct Limit {
    usage: Timeline,
    /// The programmes and paddings that use it.
    holders: BTreeSet<(i64, i64, RecordingId)>,
    /// The longest use, so that a search in `holders` can begin early enough.
    longest: i64,
}

/// A time in which a channel plays from a pool.
#[derive(Clone, Copy)]
struct Span {
    start: i64,
    end: i64,
    profile: ProfileId,
}

impl ForecastDemand {
    /// Returns the demand of a recording that is not over.
    pub fn of(it: &Recording, pools: Arc<[SlotPool]>, now: i64) -> Self {
        Self {
            id: it.id,
            channel: it.channel,
            start: it.start,
            end: it.end,
            begins_at: it.begins_at(),
            ends_at: it.ends_at(),
            priority: it.priority,
            has_begun: it.has_begun(now),
            pools,
        }
    }
}

impl Forecast {
    /// Assigns recordings to accounts.
    pub fn new(mut demands: Vec<ForecastDemand>) -> Self {
        demands.sort_by_key(|it| (std::cmp::Reverse(it.priority), !it.has_begun, it.start, it.id));
        let mut forecast = Self::default();
        let mut assigned = Vec::new();
        for it in &demands {
            let prospect = match forecast.place(it) {
                Ok(pool) => {
                    assigned.push((it, pool));
                    let (account, profile) = (pool.account, pool.profile);
                    Prospect::Assigned { account, profile, padding_before: 0, padding_after: 0 }
                }
                Err(prospect) => prospect,
            };
            forecast.prospects.insert(it.id, prospect);
        }
        for (it, pool) in assigned {
            let begin = forecast.extended(it, pool, (it.begins_at, it.start), false);
            let end = forecast.extended(it, pool, (it.end, it.ends_at), true);
            if let Some(Prospect::Assigned { padding_before, padding_after, .. }) =
                forecast.prospects.get_mut(&it.id)
            {
                (*padding_before, *padding_after) = (begin, end);
            }
        }
        forecast
    }

    /// Iterates over the prospects by the ids of their recordings.
    pub fn prospects(&self) -> impl Iterator<Item = (RecordingId, &Prospect)> {
        self.prospects.iter().map(|(id, it)| (*id, it))
    }

    pub fn get(&self, id: RecordingId) -> Option<&Prospect> {
        self.prospects.get(&id)
    }

    /// Returns whether a further recording of a programme would have a connection.
    pub fn has_room(&self, channel: ChannelId, start: i64, end: i64, pools: &[SlotPool]) -> bool {
        self.pool_for(channel, start, end, pools).is_ok()
    }

    /// Assigns the programme of a recording to a pool.
    fn place<'d>(&mut self, it: &'d ForecastDemand) -> Result<&'d SlotPool, Prospect> {
        let pool = self
            .pool_for(it.channel, it.start, it.end, &it.pools)
            .map_err(|full| if full.is_empty() { Prospect::NoSource } else { Prospect::Lost(full) })?;
        self.take(it, pool, it.start, it.end);
        Ok(pool)
    }

    /// Returns the pool for a programme, or what is full.
    fn pool_for<'d>(
        &self,
        channel: ChannelId,
        start: i64,
        end: i64,
        pools: &'d [SlotPool],
    ) -> Result<&'d SlotPool, Vec<FullAccount>> {
        let playing = self.playing(channel, start, end);
        let mut full = Vec::new();
        for pool in pools {
            // A channel plays from one account at a time.
            if !playing.is_empty() && !playing.contains(&pool.profile) {
                continue;
            }
            match self.first_full(channel, start, end, pool) {
                None => return Ok(pool),
                Some(it) => full.push(it),
            }
        }
        Err(full)
    }

    /// Returns the profiles from which a channel plays at some moment of a time.
    fn playing(&self, channel: ChannelId, start: i64, end: i64) -> Vec<ProfileId> {
        let spans = self.channels.get(&channel).into_iter().flatten();
        spans.filter(|it| it.start < end && start < it.end).map(|it| it.profile).collect()
    }

    /// Returns the parts of a time in which the channel does not play from the profile yet.
    fn open_parts(&self, channel: ChannelId, profile: ProfileId, start: i64, end: i64) -> Vec<(i64, i64)> {
        let mut parts = vec![(start, end)];
        for span in self.channels.get(&channel).into_iter().flatten() {
            if span.profile != profile || span.end <= start || end <= span.start {
                continue;
            }
            let cut = |(from, until): (i64, i64)| {
                [(from, until.min(span.start)), (from.max(span.end), until)]
                    .into_iter()
                    .filter(|it| it.0 < it.1)
            };
            parts = parts.into_iter().flat_map(cut).collect();
        }
        parts
    }

    /// Returns the limits of a pool: its own and that of its server group. Those without a maximum are left out.
    fn limits_of(pool: &SlotPool) -> impl Iterator<Item = (LimitId, u32)> {
        let shared = pool.shared.as_ref().map(|it| (LimitId::ServerGroup(it.group), it.max_streams));
        [Some((LimitId::Profile(pool.profile), pool.max_streams)), shared]
            .into_iter()
            .flatten()
            .filter(|it| it.1 > 0)
    }

    fn first_full(&self, channel: ChannelId, start: i64, end: i64, pool: &SlotPool) -> Option<FullAccount> {
        let parts = self.open_parts(channel, pool.profile, start, end);
        for (id, max) in Self::limits_of(pool) {
            let Some(limit) = self.limits.get(&id) else { continue };
            for (from, until) in &parts {
                if let Some((from, until)) = limit.usage.first_at_least(max, *from, *until) {
                    let holders = limit.holders_at(from);
                    let (account, account_name) = (pool.account, pool.account_name.clone());
                    return Some(FullAccount {
                        account,
                        account_name,
                        limit: id,
                        max_streams: max,
                        from,
                        until,
                        holders,
                    });
                }
            }
        }
        None
    }

    /// Takes the slots of a pool for a part of a recording.
    fn take(&mut self, it: &ForecastDemand, pool: &SlotPool, start: i64, end: i64) {
        let parts = self.open_parts(it.channel, pool.profile, start, end);
        for (id, _) in Self::limits_of(pool) {
            let new = || Limit { usage: Timeline::default(), holders: BTreeSet::new(), longest: 0 };
            let limit = self.limits.entry(id).or_insert_with(new);
            limit.holders.insert((start, end, it.id));
            limit.longest = limit.longest.max(end - start);
            parts.iter().for_each(|(from, until)| limit.usage.add(*from, *until));
        }
        let profile = pool.profile;
        let spans = parts.into_iter().map(|(start, end)| Span { start, end, profile });
        self.channels.entry(it.channel).or_default().extend(spans);
    }

    /// Adds as much padding as slots are left. `is_after` says at which side of the programme. Returns its length.
    fn extended(
        &mut self,
        it: &ForecastDemand,
        pool: &SlotPool,
        (from, until): (i64, i64),
        is_after: bool,
    ) -> i64 {
        let (mut from, mut until) = (from, until);
        if from >= until {
            return 0;
        }
        // The part that touches the programme, up to what stands in the way.
        for span in self.channels.get(&it.channel).into_iter().flatten() {
            if span.profile != pool.profile && span.start < until && from < span.end {
                match is_after {
                    true => until = until.min(span.start),
                    false => from = from.max(span.end),
                }
            }
        }
        for (open_from, open_until) in self.open_parts(it.channel, pool.profile, from, until) {
            for (id, max) in Self::limits_of(pool) {
                let Some(limit) = self.limits.get(&id) else { continue };
                match is_after {
                    true => {
                        if let Some((full, _)) =
                            limit.usage.first_at_least(max, open_from, open_until.min(until))
                        {
                            until = until.min(full);
                        }
                    }
                    false => {
                        if let Some(full) =
                            limit.usage.last_end_at_least(max, open_from.max(from), open_until)
                        {
                            from = from.max(full);
                        }
                    }
                }
            }
        }
        if from >= until {
            return 0;
        }
        self.take(it, pool, from, until);
        until - from
    }
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
