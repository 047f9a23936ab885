//! Which recordings will have a connection, before they begin.
//!
//! The forecast is greedy: recordings with the highest priority get connections first, then the earliest. Each uses the
//! first account of its channel that has a free slot for the whole programme; if there is none, one that has its slot moves
//! to another of its accounts, if that helps and takes nothing from those before it. A recording that gets no account for
//! its whole programme uses what is free meanwhile, from one account after the other, and those after it do not get that;
//! it is lost if a part is missing. Overlapping recordings of a channel share their connection. Padding is added at the
//! end, as far as slots are left: it never takes the place of a programme.
//!
//! The same recordings always have the same forecast, whatever has passed of them: recordings that overlap with present
//! ones belong to it when they are over, too. So a forecast that is made again takes nothing from anybody.
//!
//! The recorder follows the forecast: a channel starts from the account of its recording, and of equal recordings the one
//! whose account it is gets the slot. Viewers are not part of it, because nobody knows what they will watch.

mod reserved;
mod slots;
#[cfg(test)]
mod tests;
mod timeline;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

pub use self::reserved::reserved_peaks;
use self::slots::SlotUse;
use super::Recording;
use crate::ids::{AccountId, ChannelId, ProfileId, RecordingId, ServerGroupId};
use crate::plan::SlotPool;

/// How far ahead the forecast looks, in milliseconds.
pub const FORECAST_MS: i64 = 14 * 24 * 60 * 60 * 1000;
/// Maximum number of recordings that are listed as those that fill an account.
pub const HOLDERS_MAX: usize = 50;
/// A channel that plays this long before or after a recording keeps its account, in milliseconds.
const NEAR_MS: i64 = 10_000;
/// Maximum number of recordings of an account that are tried on another account to make room for one.
const MOVES_MAX: usize = 8;

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
    /// The programme, without padding, from the creation of the recording on.
    pub start: i64,
    pub end: i64,
    /// Start and end with padding.
    pub begins_at: i64,
    pub ends_at: i64,
    /// Length of the padding before the start.
    pub padding_before: i64,
    pub priority: u8,
    /// The account profile from which viewers watch its channel; nothing moves it.
    pub watched: Option<ProfileId>,
    /// It has ended, and others did not get what it had.
    pub is_over: bool,
    /// The accounts that can play the channel, in the order in which they are tried.
    pub pools: Arc<[SlotPool]>,
}

/// The prospects of a recording.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Prospect {
    /// It has a connection, with this padding around the programme in milliseconds. The account is the first one, if no
    /// account has a slot for the whole programme.
    Assigned { account: AccountId, profile: ProfileId, padding_before: i64, padding_after: i64 },
    /// All accounts are full at some time of its programme; one entry each. It is recorded while one has a free slot.
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

/// A time in which a recording has a connection, in milliseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForecastPart {
    pub from: i64,
    pub until: i64,
    pub profile: ProfileId,
}

/// The forecast of recordings.
#[derive(Default)]
pub struct Forecast {
    prospects: BTreeMap<RecordingId, Prospect>,
    used: SlotUse,
}

impl ForecastDemand {
    /// Returns the demand of a recording. `watched` is the account profile from which viewers watch its channel.
    pub fn from_recording(it: &Recording, pools: Arc<[SlotPool]>, watched: Option<ProfileId>) -> Self {
        let is_over = it.status.is_final();
        let ended_at = it.file.as_ref().and_then(|it| it.ended_at).filter(|_| is_over).unwrap_or(i64::MAX);
        let ends_at = it.ends_at().min(ended_at);
        // One that was made while its programme was on is later than those that had begun then. Negative padding shortens the
        // programme.
        let end = it.end.min(ends_at);
        let start = it.start.max(it.begins_at()).max(it.created_at).min(end);
        Self {
            id: it.id,
            channel: it.channel,
            start,
            end,
            begins_at: it.begins_at().max(it.created_at).min(start),
            ends_at,
            padding_before: it.start.saturating_sub(it.begins_at()).max(0),
            priority: it.priority,
            watched,
            is_over,
            pools,
        }
    }
}

impl Forecast {
    /// Returns the recordings that a forecast is made of: those that are not over, up to [`FORECAST_MS`] ahead, and those
    /// that are over but overlapped with one of them, or with one that did.
    pub fn wanted<'r>(all: impl Iterator<Item = &'r Recording>, now: i64) -> Vec<&'r Recording> {
        let (mut over, mut wanted): (Vec<_>, Vec<_>) = all.partition(|it| it.status.is_final());
        let until = now.saturating_add(FORECAST_MS);
        wanted.retain(|it| it.ends_at() > now && it.begins_at() < until);
        let mut since = wanted.iter().map(|it| it.begins_at()).min().unwrap_or(now);
        over.retain(|it| it.begins_at() <= now);
        over.sort_unstable_by_key(|it| std::cmp::Reverse(it.ends_at()));
        for it in over {
            if it.ends_at() <= since {
                break;
            }
            since = since.min(it.begins_at());
            wanted.push(it);
        }
        wanted
    }

    /// Assigns recordings to accounts.
    pub fn new(mut demands: Vec<ForecastDemand>) -> Self {
        demands.sort_by_key(|it| (std::cmp::Reverse(it.priority), it.start, it.id));
        let mut forecast = Self::default();
        let places: HashMap<_, _> = demands.iter().map(|it| it.id).zip(0..).collect();
        let mut lacking: Vec<&ForecastDemand> = Vec::new();
        for (at, it) in demands.iter().enumerate() {
            let prospect = if it.pools.is_empty() {
                Prospect::NoSource
            } else if let Some(pool) = forecast.used.place(it) {
                assigned(pool)
            } else if let Some(pool) = forecast.place_by_moving(&demands[..at], &places, &lacking, it) {
                assigned(pool)
            } else {
                lacking.push(it);
                forecast.used.fill_programme(it);
                Prospect::Lost(Vec::new())
            };
            forecast.prospects.insert(it.id, prospect);
        }
        for it in lacking {
            let full = forecast.used.full_accounts(it);
            let first = forecast.parts(it.id).iter().min_by_key(|it| it.from).filter(|_| full.is_empty());
            let pool = first.and_then(|first| it.pools.iter().find(|it| it.profile == first.profile));
            forecast.prospects.insert(it.id, pool.map_or(Prospect::Lost(full), assigned));
        }
        for it in &demands {
            forecast.used.fill(it, it.begins_at, it.start);
            forecast.used.fill(it, it.end, it.ends_at);
            let begin = forecast.used.begin(it);
            let before = if begin <= it.begins_at { it.padding_before } else { it.start - begin };
            let after = forecast.used.end(it) - it.end;
            if let Some(Prospect::Assigned { padding_before, padding_after, .. }) =
                forecast.prospects.get_mut(&it.id)
            {
                (*padding_before, *padding_after) = (before, after);
            }
        }
        for it in demands.iter().filter(|it| it.is_over) {
            forecast.prospects.remove(&it.id);
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

    /// Returns the times in which a recording has a connection.
    pub fn parts(&self, id: RecordingId) -> &[ForecastPart] {
        self.used.parts(id)
    }

    /// Returns the account profile that a recording uses at a time.
    pub fn profile_at(&self, id: RecordingId, at: i64) -> Option<ProfileId> {
        self.parts(id).iter().find(|it| (it.from..it.until).contains(&at)).map(|it| it.profile)
    }

    /// Returns how many slots of each limit recordings need at once within a time.
    pub fn peaks(&self, from: i64, until: i64) -> BTreeMap<LimitId, u32> {
        self.used.peaks(from, until)
    }

    /// Returns the channels that recordings read within a time.
    pub fn channels(&self, from: i64, until: i64) -> impl Iterator<Item = ChannelId> {
        self.used.channels(from, until)
    }

    /// Returns whether a further recording of a programme would have a connection.
    pub fn has_room(&self, channel: ChannelId, start: i64, end: i64, pools: &[SlotPool]) -> bool {
        self.used.pool_for(channel, start, end, pools, &[]).is_some()
    }

    /// Moves a recording that is in the way to another of its accounts, if that gives this one a slot. Those before it that
    /// lack something get what is left over.
    fn place_by_moving<'d>(
        &mut self,
        placed: &[ForecastDemand],
        places: &HashMap<RecordingId, usize>,
        lacking: &[&ForecastDemand],
        it: &'d ForecastDemand,
    ) -> Option<&'d SlotPool> {
        if !self.used.is_alone(it) {
            return None;
        }
        let is_own = |pool: &SlotPool| it.pools.iter().any(|own| own.profile == pool.profile);
        let holders: Vec<_> = it
            .pools
            .iter()
            .flat_map(|pool| self.used.holders(it, pool).into_iter().take(MOVES_MAX))
            .collect();
        for id in holders {
            let Some(other) = places.get(&id).and_then(|at| placed.get(*at)) else { continue };
            let Some(Prospect::Assigned { profile, .. }) = self.prospects.get(&id) else { continue };
            let Some(before) = other.pools.iter().find(|it| it.profile == *profile) else { continue };
            let is_whole = self.parts(id).iter().any(|it| (it.from, it.until) == (other.start, other.end));
            if !is_whole || other.pools.iter().all(is_own) || !self.used.is_alone(other) {
                continue;
            }
            self.used.put_back(other, before);
            if let Some(pool) = self.used.place(it) {
                if let Some(after) = self.used.place(other) {
                    if !lacking.iter().any(|earlier| self.used.lacks(earlier, it, pool)) {
                        self.prospects.insert(id, assigned(after));
                        let near = lacking.iter().filter(|it| it.start < other.end && other.start < it.end);
                        near.for_each(|it| self.used.fill_programme(it));
                        return Some(pool);
                    }
                    self.used.put_back(other, after);
                }
                self.used.put_back(it, pool);
            }
            self.used.take(other, before, other.start, other.end);
        }
        None
    }
}

fn assigned(pool: &SlotPool) -> Prospect {
    let (account, profile) = (pool.account, pool.profile);
    Prospect::Assigned { account, profile, padding_before: 0, padding_after: 0 }
}
