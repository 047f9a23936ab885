//! The channels that refreshes create, change and remove: one for each stream of the groups that an admin chose.
//!
//! [`plan_sync`] compares the streams with the channels and decides everything; the importer carries it out. A value
//! that an admin changed is kept: see [`AutoChannel`].

mod adoption;
mod numbers;
mod settings;
#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::collections::{HashMap, HashSet};

use uuid::Uuid;

use self::numbers::Numbering;
pub use self::settings::{NumberingMode, SyncOrder, SyncSettings, SyncSettingsError};
use crate::account::Account;
use crate::channel::{AutoChannel, CHANNEL_NAME_CHARS_MAX, Channel, ChannelNumber, SyncedValues};
use crate::ids::{AccountId, ChannelId, GroupId, GuideChannelId, StreamId};
use crate::name_cleaning::NameKind;
use crate::user::UserLevel;

/// Maximum number of channels that the refreshes of one account create. Channels are in memory as a whole.
pub const AUTO_CHANNELS_MAX: usize = 50_000;

/// The property of an account that decides what happens to a channel whose stream is gone.
pub const ORPHAN_CLEANUP: &str = "orphan_channel_cleanup";

/// The action for a channel whose stream is gone, or no longer in a synchronised group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OrphanCleanup {
    /// It is removed.
    Always,
    /// It is removed, unless an admin changed it or added streams.
    #[default]
    PreserveCustomized,
    /// It stays.
    Never,
}

impl OrphanCleanup {
    /// Returns the value of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "always" => Some(Self::Always),
            "preserve_customized" => Some(Self::PreserveCustomized),
            "never" => Some(Self::Never),
            _ => None,
        }
    }

    /// Returns the setting of an account.
    pub fn from_account(account: &Account) -> Self {
        let name = account.custom_properties.get(ORPHAN_CLEANUP).and_then(|it| it.as_str());
        name.and_then(Self::from_name).unwrap_or_default()
    }

    /// Returns whether a channel without its stream is removed.
    pub fn removes(self, channel: &Channel) -> bool {
        match self {
            _ if channel.is_detached() => false,
            Self::Always => true,
            Self::PreserveCustomized => !channel.is_customized(),
            Self::Never => false,
        }
    }
}

/// A stream that could have a channel.
#[derive(Debug, Clone, PartialEq)]
pub struct SyncStream {
    pub id: StreamId,
    /// The group whose settings apply.
    pub group: GroupId,
    pub name: String,
    pub tvg_id: Option<String>,
    pub logo: Option<String>,
    /// The guide channel of the guide source that the settings of the group choose.
    pub guide_channel: Option<GuideChannelId>,
    pub station: Option<String>,
    /// The number of the provider.
    pub number: Option<ChannelNumber>,
    pub updated_at: i64,
    /// Its place in the order of the provider, if that is known.
    pub position: Option<u32>,
    /// The playlist no longer contains it, but it may return: its channel stays as it is, and it gets no new one.
    pub is_missing: bool,
}

/// The state before a synchronisation.
pub struct SyncInput<'a> {
    pub account: AccountId,
    pub cleanup: OrphanCleanup,
    /// The groups with automatic channels, in the order in which they get numbers.
    pub groups: &'a [(GroupId, SyncSettings)],
    /// The streams in these groups, by id.
    pub streams: Vec<SyncStream>,
    /// The group whose numbers are packed now, besides those that always are.
    pub packed: Option<GroupId>,
}

/// The changes of a synchronisation.
#[derive(Debug, Default, PartialEq)]
pub struct SyncPlan {
    pub removals: Vec<ChannelId>,
    /// For [`Channel::follow`].
    pub updates: Vec<(ChannelId, AutoChannel)>,
    /// For [`Channel::automatic`], in the order of the streams.
    pub creations: Vec<AutoChannel>,
    /// Number of streams for which no number is left.
    pub n_without_number: u64,
    /// Number of streams beyond [`AUTO_CHANNELS_MAX`].
    pub n_beyond_max: u64,
}

impl SyncPlan {
    pub fn is_empty(&self) -> bool {
        self.removals.is_empty() && self.updates.is_empty() && self.creations.is_empty()
    }
}

/// Plans the changes of the channels of an account.
pub fn plan_sync<'a>(input: SyncInput<'_>, channels: impl Iterator<Item = &'a Channel>) -> SyncPlan {
    let channels: Vec<&Channel> = channels.collect();
    let mut plan = SyncPlan::default();
    let own = |it: &&Channel| it.auto.as_ref().is_some_and(|auto| auto.account == input.account);
    let mut by_stream: HashMap<StreamId, &Channel> = HashMap::new();
    for channel in channels.iter().copied().filter(own) {
        if let Some(auto) = &channel.auto {
            by_stream.entry(auto.stream).or_insert(channel);
        }
    }
    let settings: HashMap<GroupId, &SyncSettings> = input.groups.iter().map(|it| (it.0, &it.1)).collect();
    let mut wanted = wanted(input.streams, input.groups, &settings);
    // Channels of a former provider took them over.
    let taken_over: HashSet<StreamId> = channels.iter().flat_map(|it| it.taken_streams()).collect();
    wanted.retain(|it| by_stream.contains_key(&it.id) || !taken_over.contains(&it.id));
    adoption::adopt(input.account, &mut by_stream, &wanted, &settings);

    let in_use: HashSet<ChannelId> =
        wanted.iter().filter_map(|it| by_stream.get(&it.id)).map(|it| it.id).collect();
    let mut n_channels = 0;
    let mut taken = Vec::new();
    for channel in channels {
        let is_orphan = own(&channel) && !in_use.contains(&channel.id);
        if is_orphan && input.cleanup.removes(channel) {
            plan.removals.push(channel.id);
            continue;
        }
        n_channels += usize::from(own(&channel));
        taken.extend(channel.number);
    }

    let is_packed = |group| settings[&group].is_compact || input.packed == Some(group);
    let mut numbering = Numbering::new(taken);
    for stream in &wanted {
        if let Some(channel) = by_stream.get(&stream.id).filter(|it| !stream.is_missing && !it.is_detached())
        {
            numbering.release_invalid(channel, stream, settings[&stream.group], is_packed(stream.group));
        }
    }
    for stream in wanted {
        let settings = settings[&stream.group];
        let known = by_stream.get(&stream.id);
        if stream.is_missing || known.is_some_and(|it| it.is_detached()) {
            continue;
        }
        let number = match known {
            Some(channel) => numbering.number_of(channel, &stream, settings),
            None if n_channels >= AUTO_CHANNELS_MAX => {
                plan.n_beyond_max += 1;
                continue;
            }
            None => match numbering.next(&stream, settings) {
                Some(number) => Some(number),
                None => {
                    plan.n_without_number += 1;
                    continue;
                }
            },
        };
        let auto = automatic(input.account, stream, settings, number);
        match known {
            Some(channel) if channel.auto.as_deref() == Some(&auto) => {}
            Some(channel) => plan.updates.push((channel.id, auto)),
            None => {
                n_channels += 1;
                plan.creations.push(auto);
            }
        }
    }
    plan
}

/// Returns the streams that have or get a channel, in the order in which they get numbers.
fn wanted(
    streams: Vec<SyncStream>,
    groups: &[(GroupId, SyncSettings)],
    settings: &HashMap<GroupId, &SyncSettings>,
) -> Vec<SyncStream> {
    let mut by_group: HashMap<GroupId, Vec<SyncStream>> = HashMap::new();
    for stream in streams {
        let Some(settings) = settings.get(&stream.group) else { continue };
        let is_included = settings.include.as_ref().is_none_or(|it| it.is_match(&stream.name));
        if is_included && !settings.exclude.as_ref().is_some_and(|it| it.is_match(&stream.name)) {
            by_group.entry(stream.group).or_default().push(stream);
        }
    }
    let mut wanted = Vec::new();
    for (group, settings) in groups {
        let mut streams = by_group.remove(group).unwrap_or_default();
        match settings.order {
            SyncOrder::Provider => streams.sort_by_key(|it| (it.position.is_none(), it.position, it.id)),
            SyncOrder::Name => streams.sort_by_cached_key(|it| (natural(&it.name), it.id)),
            SyncOrder::TvgId => streams.sort_by_cached_key(|it| {
                (it.tvg_id.is_none(), it.tvg_id.as_deref().map(str::to_lowercase), it.id)
            }),
            SyncOrder::UpdatedAt => streams.sort_by_key(|it| (Reverse(it.updated_at), it.id)),
        }
        if settings.is_reversed {
            streams.reverse();
        }
        wanted.extend(streams);
    }
    wanted
}

/// Returns a key that sorts texts without case, and numbers in them by their value.
fn natural(text: &str) -> Vec<(bool, u128, String)> {
    let mut parts: Vec<(bool, u128, String)> = Vec::new();
    for it in text.to_lowercase().chars() {
        let digit = it.to_digit(10);
        match parts.last_mut() {
            Some((true, _, part)) if digit.is_none() => part.push(it),
            // Longer numbers are compared by their first digits.
            Some((false, number, _)) if digit.is_some() && *number < u128::MAX / 100 => {
                *number = *number * 10 + u128::from(digit.unwrap_or_default());
            }
            _ => match digit {
                Some(digit) => parts.push((false, digit.into(), String::new())),
                None => parts.push((true, 0, it.to_string())),
            },
        }
    }
    parts
}

/// Returns the origin and the values of the channel of a stream.
fn automatic(
    account: AccountId,
    stream: SyncStream,
    settings: &SyncSettings,
    number: Option<ChannelNumber>,
) -> AutoChannel {
    let synced = SyncedValues {
        name: channel_name(account, &stream.name, settings),
        number,
        group: Some(settings.group_override.unwrap_or(stream.group)),
        logo: settings.custom_logo_url.clone().or(stream.logo),
        tvg_id: stream.tvg_id.filter(|_| !settings.without_guide),
        stream_profile: settings.stream_profile,
        guide_channel: stream.guide_channel,
        guide_station: stream.station,
    };
    AutoChannel { account, group: stream.group, stream: stream.id, synced, is_detached: false }
}

/// Returns the name of the channel of a stream with this name.
pub fn channel_name(account: AccountId, stream: &str, settings: &SyncSettings) -> String {
    let renamed = settings.rename.as_ref().map(|it| it.apply(stream).trim().to_owned());
    let name = renamed.filter(|it| !it.is_empty());
    let name = name.as_deref().unwrap_or(stream);
    let cleaned = settings.cleaner.clean(NameKind::Channel, account, name);
    let name = cleaned.as_deref().unwrap_or(name);
    name.chars().filter(|it| !it.is_control()).take(CHANNEL_NAME_CHARS_MAX).collect()
}

/// The namespace of the uuids of automatic channels. Changing it would change the addresses of channels that return.
const NAMESPACE: Uuid = Uuid::from_u128(0x2c1b_8e77_4d0a_4f53_9b61_07c3_5a9e_d214);

/// Returns the uuid of the channel of a stream: the same whenever the stream gets one again.
pub fn auto_channel_uuid(auto: &AutoChannel) -> Uuid {
    Uuid::new_v5(&NAMESPACE, format!("{}:{}", auto.account, auto.stream).as_bytes())
}

impl Channel {
    /// Creates the channel of a stream.
    pub fn automatic(id: ChannelId, uuid: Uuid, auto: AutoChannel, at: i64) -> Self {
        let SyncedValues { name, number, group, logo, tvg_id, stream_profile, guide_channel, guide_station } =
            auto.synced.clone();
        let mut channel = Self::new(id, uuid, name, at);
        channel.streams = vec![auto.stream];
        (channel.number, channel.group, channel.logo) = (number, group, logo);
        (channel.tvg_id, channel.stream_profile) = (tvg_id, stream_profile);
        (channel.guide_channel, channel.guide_station) = (guide_channel, guide_station);
        channel.auto = Some(Box::new(auto));
        channel
    }

    /// Applies the values of a refresh. Values that an admin changed stay.
    pub fn follow(&mut self, auto: AutoChannel) {
        fn set<T: PartialEq + Clone>(value: &mut T, before: &T, after: &T) {
            if value == before {
                value.clone_from(after);
            }
        }
        let Some(before) = &self.auto else { return };
        let (before, after) = (&before.synced, &auto.synced);
        set(&mut self.name, &before.name, &after.name);
        set(&mut self.number, &before.number, &after.number);
        set(&mut self.group, &before.group, &after.group);
        let logo = self.logo.clone();
        set(&mut self.logo, &before.logo, &after.logo);
        if self.logo != logo {
            // The record has the earlier address.
            self.logo_id = None;
        }
        set(&mut self.tvg_id, &before.tvg_id, &after.tvg_id);
        set(&mut self.stream_profile, &before.stream_profile, &after.stream_profile);
        set(&mut self.guide_channel, &before.guide_channel, &after.guide_channel);
        set(&mut self.guide_station, &before.guide_station, &after.guide_station);
        let followed = self.auto.as_ref().map(|it| it.stream);
        if let Some(followed) = followed.filter(|it| *it != auto.stream) {
            // Another stream takes the place of the one that is missing.
            if let Some(place) = self.streams.iter().position(|it| *it == followed) {
                self.streams[place] = auto.stream;
                let mut seen = HashSet::new();
                self.streams.retain(|it| seen.insert(*it));
            } else if self.streams.is_empty() {
                self.streams.push(auto.stream);
            }
        }
        self.auto = Some(Box::new(auto));
    }

    /// Returns the names of the synchronised values that an admin changed; none if no refresh sets values of the channel.
    pub fn edited_values(&self) -> Vec<&'static str> {
        let Some(synced) = self.followed().map(|it| &it.synced) else { return Vec::new() };
        let values = [
            ("name", self.name != synced.name),
            ("channel_number", self.number != synced.number),
            ("channel_group_id", self.group != synced.group),
            ("logo_url", self.logo != synced.logo),
            ("tvg_id", self.tvg_id != synced.tvg_id),
            ("stream_profile_id", self.stream_profile != synced.stream_profile),
            ("tvc_guide_stationid", self.guide_station != synced.guide_station),
            // Where the group chooses none, a link is the result of matching and no change of a value.
            ("epg_data_id", synced.guide_channel.is_some() && self.guide_channel != synced.guide_channel),
        ];
        values.into_iter().filter(|it| it.1).map(|it| it.0).collect()
    }

    /// Returns whether an admin changed a channel that a refresh created, or its streams. A link to a guide that matching found
    /// is no change, and neither is the offset that comes with it.
    pub fn is_customized(&self) -> bool {
        let Some(auto) = &self.auto else { return true };
        !self.edited_values().is_empty()
            || self.streams != [auto.stream]
            || !self.enabled
            || self.user_level != UserLevel::default()
            || self.is_adult_by_hand()
            || self.timeshift.is_some()
            || self.healthiest_first
            || self.guide_offset.is_some()
            || !self.further_guides.is_empty()
            || !self.custom_properties.is_empty()
    }
}
