//! Channels of the other service.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use domain::channel::{AutoChannel, CHANNEL_NAME_CHARS_MAX, Channel, ChannelNumber, SyncedValues};
use domain::ids::{ChannelId, StreamId};
use domain::user::UserLevel;
use uuid::Uuid;

use super::account_links::by_account;
use super::household::{GuideChannel, Household};
use super::ids::IdPicker;
use super::plan::{Existing, Foundation, Rules};
use super::report::Report;
use super::row::{SourceRow, plain};
use super::stream::TVG_ID_CHARS_MAX;
use super::table::SourceTable;

/// Maximum number of streams of one channel.
const STREAMS_PER_CHANNEL_MAX: usize = 1000;
/// The namespace of uuids for channels without a valid one. With it, a second import finds the channels of the first.
const NAMESPACE: Uuid = Uuid::from_u128(0x2a5c_9d7e_41f3_4b86_a0c8_7e93_15d4_b26f);

const STATION_ID: &str = "tvc_guide_stationid";

/// The channels that are written, and where those of the source are found.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlannedChannels {
    pub(crate) new: Vec<Channel>,
    /// By the id of the source.
    pub(crate) ids: HashMap<u32, ChannelId>,
}

/// Lookups for the conversion of channels.
struct ChannelSources<'a> {
    overrides: HashMap<u32, &'a SourceRow>,
    logos: HashMap<u32, &'a SourceRow>,
    guide_channels: &'a HashMap<u32, GuideChannel>,
    /// The groups of each account.
    links: BTreeMap<u32, Vec<&'a SourceRow>>,
    /// The streams of each channel, in order.
    streams: BTreeMap<u32, Vec<u32>>,
}

impl<'a> ChannelSources<'a> {
    fn new(household: &'a Household) -> Self {
        let mut links = household.channel_streams.clone();
        links.sort();
        let mut streams: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for link in links {
            let of_channel = streams.entry(link.channel).or_default();
            if !of_channel.contains(&link.stream) && of_channel.len() < STREAMS_PER_CHANNEL_MAX {
                of_channel.push(link.stream);
            }
        }
        Self {
            overrides: household.by_id(SourceTable::ChannelOverrides, "channel_id"),
            logos: household.by_id(SourceTable::Logos, "id"),
            guide_channels: &household.guide_channels,
            links: by_account(household, SourceTable::AccountGroups),
            streams,
        }
    }

    /// Returns the row whose value counts: that of the manual values if it has one, otherwise the channel's.
    fn in_force<'r>(&'r self, source: u32, row: &'r SourceRow, column: &str) -> &'r SourceRow {
        self.overrides.get(&source).copied().filter(|it| it.has(column)).unwrap_or(row)
    }
}

impl Foundation {
    /// Takes channels over. One whose uuid the store has already is not changed.
    pub(crate) fn channels(
        &self,
        household: &Household,
        existing: &Existing,
        stream_ids: &HashMap<u32, StreamId>,
        rules: &Rules<'_>,
        report: &mut Report,
    ) -> PlannedChannels {
        let sources = ChannelSources::new(household);
        let mut rows: Vec<(u32, &SourceRow)> = Vec::new();
        let mut known_ids = HashSet::new();
        let kind = report.kind(SourceTable::Channels.label());
        for row in household.rows(SourceTable::Channels) {
            match row.id("id").filter(|it| known_ids.insert(*it)) {
                Some(source) => rows.push((source, row)),
                None => kind.skip("a channel", "its id is missing, too large, or occurs twice"),
            }
        }
        // In the order of ids, so that of two channels with one number or uuid the older one keeps it, and so that an
        // import that was interrupted can keep the ids of the rest.
        rows.sort_by_key(|it| it.0);
        let mut ids = IdPicker::new(existing.unused.channel, rows.iter().map(|it| it.0));
        let mut uuids: HashMap<Uuid, ChannelId> =
            existing.channels.iter().map(|it| (it.uuid, it.id)).collect();
        let n_existing = uuids.len();
        let mut planned = PlannedChannels::default();
        let mut new_uuids = HashSet::new();
        for (source, row) in rows {
            let what = || format!("channel {source} {}", plain(row.text("name").unwrap_or_default(), 60));
            let given = row.text("uuid").and_then(|it| Uuid::parse_str(it).ok()).filter(|it| !it.is_nil());
            let mut uuid = given.unwrap_or_else(|| Uuid::new_v5(&NAMESPACE, &source.to_be_bytes()));
            if new_uuids.contains(&uuid) {
                uuid = Uuid::new_v5(&NAMESPACE, &source.to_be_bytes());
                kind.change(what(), "another channel has its uuid, so it gets a new one");
            } else if given.is_none() {
                kind.change(what(), "its uuid is missing or invalid, so it gets a new one");
            }
            if let Some(id) = uuids.get(&uuid) {
                kind.merged += 1;
                planned.ids.insert(source, *id);
                continue;
            }
            let id = ChannelId(ids.pick(source));
            let mut channel = Channel::new(id, uuid, "", row.time_ms("created_at").unwrap_or(rules.now));
            self.fill_channel(&mut channel, source, row, &sources, stream_ids, &mut |reason| {
                kind.change(what(), reason);
            });
            new_uuids.insert(uuid);
            uuids.insert(uuid, id);
            planned.ids.insert(source, id);
            kind.taken += 1;
            planned.new.push(channel);
        }
        debug_assert_eq!(uuids.len(), n_existing + planned.new.len());
        let taken = existing.channels.iter().filter_map(|it| it.number).collect();
        make_numbers_unique(&mut planned.new, taken, report);
        planned
    }

    fn fill_channel(
        &self,
        channel: &mut Channel,
        source: u32,
        row: &SourceRow,
        sources: &ChannelSources<'_>,
        stream_ids: &HashMap<u32, StreamId>,
        change: &mut dyn FnMut(&str),
    ) {
        let value = |column| sources.in_force(source, row, column);
        let given = value("name").text("name").unwrap_or_default();
        channel.name = plain(given, CHANNEL_NAME_CHARS_MAX);
        if channel.name.is_empty() {
            channel.name = format!("Channel {source}");
        }
        if channel.name != given {
            change("its name is missing, too long, or has control characters");
        }
        if let Some(number) = value("channel_number").number("channel_number") {
            match number.parse::<ChannelNumber>() {
                Ok(number) => channel.number = Some(number),
                Err(error) => change(&format!("its number {} is left out: {error}", plain(&number, 30))),
            }
        }
        let group = value("channel_group_id").id("channel_group_id");
        channel.group = group.and_then(|it| self.group_ids.get(&it).copied());
        if group.is_some() && channel.group.is_none() {
            change("its group does not exist");
        }
        let logo = value("logo_id").id("logo_id");
        channel.logo_id = logo.and_then(|it| self.logo_ids.get(&it).copied());
        let logo = channel.logo_id.and(logo).and_then(|it| sources.logos.get(&it));
        channel.logo = channel.logo_id.zip(logo).and_then(|(id, row)| self.logo_address(id, row));
        let profile = value("stream_profile_id").id("stream_profile_id");
        channel.stream_profile = profile.and_then(|it| self.stream_profile(it));
        if profile.is_some() && channel.stream_profile.is_none() {
            change("its stream profile was skipped or does not exist");
        }
        channel.enabled = row.flag("hidden_from_output") != Some(true);
        channel.is_adult = row.flag("is_adult") == Some(true);
        let level = row.integer("user_level").unwrap_or_default();
        channel.user_level = level_of_channel(level);
        if i64::from(channel.user_level.number()) != level {
            change("its user level does not exist here; it gets the next higher one");
        }
        let wanted = sources.streams.get(&source).map_or(&[][..], Vec::as_slice);
        channel.streams = wanted.iter().filter_map(|it| stream_ids.get(it).copied()).collect();
        if channel.streams.len() < wanted.len() {
            let missing = wanted.len() - channel.streams.len();
            change(&format!("{missing} of its {} streams were skipped or do not exist", wanted.len()));
        }
        if row.flag("auto_created") == Some(true) {
            channel.auto = self.auto_channel(row, &channel.streams, sources).map(Box::new);
            if channel.auto.is_none() {
                change("a refresh created it, and its group cannot be found; it is an ordinary channel now");
            }
        }
        let mut seen = BTreeSet::new();
        channel.streams.retain(|it| seen.insert(*it));
        let guide_id = value("epg_data_id").id("epg_data_id");
        let guide = guide_id.and_then(|it| sources.guide_channels.get(&it));
        channel.guide_channel = guide_id.and_then(|it| self.guide_channel_ids.get(&it).copied());
        let tvg_id = value("tvg_id").text("tvg_id").or(guide.map(|it| it.tvg_id.as_str()));
        channel.tvg_id = tvg_id.map(|it| plain(it, TVG_ID_CHARS_MAX)).filter(|it| !it.is_empty());
        if guide.is_some() && channel.guide_channel.is_none() {
            change("its guide channel was skipped, and only the guide id is kept");
        }
        let station = value(STATION_ID).text(STATION_ID).map(|it| plain(it, TVG_ID_CHARS_MAX));
        channel.guide_station = station.filter(|it| !it.is_empty());
    }
}

impl Foundation {
    /// Returns the origin of a channel that a refresh created. The values are those of the refresh, so that a manual value
    /// differs from them and is kept.
    fn auto_channel(
        &self,
        row: &SourceRow,
        streams: &[StreamId],
        sources: &ChannelSources<'_>,
    ) -> Option<AutoChannel> {
        let source = row.first_id(["auto_created_by_id", "auto_created_by"])?;
        let account = self.accounts.get(&source).filter(|it| it.is_new)?.account.id;
        let own_group = row.id("channel_group_id")?;
        let group = self.synced_group(sources.links.get(&source)?, own_group)?;
        let logo = row.id("logo_id").and_then(|it| sources.logos.get(&it));
        let tvg_id = row.text("tvg_id").map(|it| plain(it, TVG_ID_CHARS_MAX));
        let synced = SyncedValues {
            guide_channel: None,
            guide_station: None,
            name: plain(row.text("name").unwrap_or_default(), CHANNEL_NAME_CHARS_MAX),
            number: row.number("channel_number").and_then(|it| it.parse().ok()),
            group: self.group_ids.get(&own_group).copied(),
            logo: logo.and_then(|it| self.logo_address(*self.logo_ids.get(&it.id("id")?)?, it)),
            tvg_id: tvg_id.filter(|it| !it.is_empty()),
            stream_profile: row.id("stream_profile_id").and_then(|it| self.stream_profile(it)),
        };
        Some(AutoChannel { account, group, stream: *streams.first()?, synced, is_detached: false })
    }
}

/// Returns the level that hides a channel from at least as many users as the given one.
fn level_of_channel(level: i64) -> UserLevel {
    let is_high_enough = |it: &UserLevel| i64::from(it.number()) >= level;
    UserLevel::ALL.into_iter().find(is_high_enough).unwrap_or(UserLevel::Admin)
}

/// Gives channels whose number is taken the next free whole numbers after the largest one.
fn make_numbers_unique(channels: &mut [Channel], taken: HashSet<ChannelNumber>, report: &mut Report) {
    let largest = taken.iter().copied().chain(channels.iter().filter_map(|it| it.number)).max();
    let mut next = ChannelNumber::next_after([largest]);
    let mut used = taken;
    let kind = report.kind(SourceTable::Channels.label());
    for channel in channels {
        let Some(number) = channel.number else { continue };
        if used.insert(number) {
            continue;
        }
        channel.number = next;
        let what = format!("channel {} {}", channel.id, channel.name);
        match next {
            Some(free) => kind.change(what, &format!("its number {number} is taken, so it gets {free}")),
            None => kind.change(what, &format!("its number {number} is taken, and no higher one is free")),
        }
        if let Some(free) = next {
            used.insert(free);
            next = free.next();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_channel_is_never_visible_to_more_users_than_before() {
        for (number, level) in [
            (-5, UserLevel::Streamer),
            (0, UserLevel::Streamer),
            (1, UserLevel::Standard),
            (2, UserLevel::Admin),
            (10, UserLevel::Admin),
            (i64::MAX, UserLevel::Admin),
        ] {
            assert_eq!(level_of_channel(number), level, "{number}");
        }
    }

    #[test]
    fn the_first_of_two_channels_with_one_number_keeps_it() {
        let number = |it: &str| it.parse::<ChannelNumber>().ok();
        let channel = |id, it| Channel {
            number: number(it),
            ..Channel::new(ChannelId(id), Uuid::from_u128(u128::from(id)), "c", 0)
        };
        let mut channels = [channel(1, "5"), channel(2, "5"), channel(3, "7.5"), channel(4, "2")];
        let mut report = Report::default();
        make_numbers_unique(&mut channels, number("2").into_iter().collect(), &mut report);
        let numbers: Vec<_> = channels.iter().map(|it| it.number.unwrap().to_string()).collect();
        assert_eq!(numbers, ["5", "8", "7.5", "9"]);
        assert!(report.to_string().contains("its number 5 is taken, so it gets 8"));
    }
}
