//! Filters and order of the list of channels.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::health::SCORE_FAILING_BELOW;
use domain::ids::{ChannelId, LineupId, LogoId, StreamId, StreamProfileId};
use domain::streams::StreamQuery;
use domain::user::UserLevel;
use resource_derive::Query;
use route_frame::call::Call;
use server::reply::Refusal;

use super::guide::GuideLookup;
use crate::api::channels::channels::rows::ChannelRow;
use crate::api::channels::lineups::find_own;
use crate::api::channels::values::{GroupFilter, GroupNames};
use crate::choice::{Named, choice};
use crate::context::RestCall;
use crate::list::{Ordering, Search, contains_lower};

/// Filters of the list of channels. A channel must match all of them.
#[derive(Debug, Query)]
pub(crate) struct ChannelFilters {
    /// Names or ids of channel groups, separated by commas.
    #[field(items_max = 1000)]
    channel_group: Option<GroupNames>,
    /// Part of the name, of the group name or of the guide id, regardless of case.
    search: Option<Search>,
    /// Part of the name, regardless of case.
    name: Option<Search>,
    /// Part of the guide id, regardless of case.
    tvg_id: Option<Search>,
    /// Ids of channels, separated by commas.
    #[field(items_max = 10_000)]
    ids: Option<Vec<ChannelId>>,
    /// Whether the channel is enabled.
    enabled: Option<bool>,
    /// `active` selects enabled channels, `hidden` disabled ones; all by default.
    visibility_filter: Option<Named<Visibility>>,
    /// Id of a channel profile. Selects its channels.
    channel_profile_id: Option<LineupId>,
    /// If true, `channel_profile_id` also selects the channels that are disabled in the profile.
    show_disabled: Option<bool>,
    /// If true, selects channels without streams.
    only_streamless: Option<bool>,
    /// If true, selects channels with a stream that is missing from its latest playlist.
    only_stale: Option<bool>,
    /// If true, selects channels with streams that have all been opened and have a health score below 40.
    only_failing: Option<bool>,
    /// If true, selects channels with streams of which none has ever been opened. Headwater remembers the last 50,000 streams.
    only_unplayed: Option<bool>,
    /// Guide channels that the channels show, by names, keys or ids, separated by commas. `true` selects channels with a
    /// guide channel, `false` and `null` those without one.
    #[field(items_max = 1000, chars_max = 512)]
    epg: Option<Vec<String>>,
    /// If true, selects automatically created channels with fields that an admin changed.
    only_has_overrides: Option<bool>,
    /// If true, selects channels whose past programmes can be watched. There are none.
    only_catchup: Option<bool>,
    /// Id of a stream of the channel.
    stream_id: Option<StreamId>,
    /// Id of the stream profile of the channel.
    stream_profile_id: Option<StreamProfileId>,
    /// Id of the logo.
    logo_id: Option<LogoId>,
    /// Whether users who hide adult content cannot see the channel.
    is_adult: Option<bool>,
    /// Minimum level of the users who can see the channel.
    user_level: Option<UserLevel>,
    /// Order of the list; by number by default.
    ordering: Option<Ordering<By>>,
}

choice!(
    enum Visibility {
        Active = "active",
        Hidden = "hidden",
        All = "all",
    }
);

choice!(
    enum By {
        Number = "channel_number",
        ShortNumber = "number",
        Name = "name",
        GroupName = "channel_group__name",
        GuideName = "epg_data__name",
        TvgId = "tvg_id",
        CreatedAt = "created_at",
        UpdatedAt = "updated_at",
        Id = "id",
    }
);

/// Returns a channel that the caller may see.
pub(super) fn find_visible(call: &Call, id: u32) -> Result<Arc<Channel>, Refusal> {
    let (channels, is_listed) = (call.rest().models.channels.load(), call.listed());
    let channel = channels.get(id).filter(|it| is_listed(it));
    channel.cloned().ok_or_else(Refusal::unknown::<Channel>)
}

impl ChannelFilters {
    /// Returns the matching channels that the caller may see, in order.
    pub(super) fn find(self, call: &Call) -> Result<Vec<Arc<Channel>>, Refusal> {
        let is_listed = call.listed();
        let lineup = match self.channel_profile_id {
            Some(id) => {
                let lineup = find_own(call, id).ok_or_else(|| Refusal::no_such("channel_profile_id", id))?;
                (self.show_disabled != Some(true)).then_some(lineup)
            }
            None => None,
        };
        let groups = call.rest().models.groups.load();
        let ids: Option<HashSet<ChannelId>> = self.ids.map(HashSet::from_iter);
        let of_groups = self.channel_group.map(|it| GroupFilter::new(it, &groups).ids);
        let state = match self.visibility_filter {
            Some(Named(Visibility::Active)) => Some(true),
            Some(Named(Visibility::Hidden)) => Some(false),
            Some(Named(Visibility::All)) | None => None,
        };
        let states = [self.enabled, state];
        let (guides, of_guide) = (GuideLookup::new(&call.rest().models), self.epg.map(GuideFilter::new));
        let stale = (self.only_stale == Some(true)).then(|| stale_streams(call));
        let played =
            PlayedFilter::new(call, self.only_failing == Some(true), self.only_unplayed == Some(true));
        let archives = (self.only_catchup == Some(true)).then(|| call.archives());
        let is_wanted = |row: &ChannelRow| {
            let channel = &*row.channel;
            is_listed(channel)
                && lineup.as_ref().is_none_or(|it| it.contains(channel.id))
                && states.into_iter().flatten().all(|it| it == channel.enabled)
                && of_groups.as_ref().is_none_or(|it| channel.group.is_some_and(|group| it.contains(&group)))
                && ids.as_ref().is_none_or(|it| it.contains(&channel.id))
                && (self.only_streamless != Some(true) || channel.streams.is_empty())
                && stale.as_ref().is_none_or(|it| channel.streams.iter().any(|id| it.contains(id)))
                && played.as_ref().is_none_or(|it| it.matches(&channel.streams))
                && of_guide.as_ref().is_none_or(|it| it.matches(guides.guide_channel(channel)))
                && (self.only_has_overrides != Some(true) || !channel.edited_values().is_empty())
                && archives.as_ref().is_none_or(|it| it.days(channel.id) > 0)
                && self.stream_id.is_none_or(|it| channel.streams.contains(&it))
                && self.stream_profile_id.is_none_or(|it| channel.stream_profile == Some(it))
                && self.logo_id.is_none_or(|it| channel.logo_id == Some(it))
                && self.is_adult.is_none_or(|it| channel.is_adult == it)
                && self.user_level.is_none_or(|it| channel.user_level == it)
                && contains_lower(self.name.as_ref(), [&row.name])
                && contains_lower(self.tvg_id.as_ref(), [&row.tvg_id])
                && contains_lower(self.search.as_ref(), [&row.name, &row.tvg_id, &row.group])
        };
        let rows = call.rest().channel_rows.load(&call.rest().models);
        let ordering = self.ordering.unwrap_or(Ordering::ascending(By::Number));
        let mut found: Vec<&ChannelRow> = match ordering.by {
            By::Name => rows.by_name(ordering.is_descending).filter(|it| is_wanted(it)).collect(),
            _ => rows.iter().filter(|it| is_wanted(it)).collect(),
        };
        match ordering.by {
            By::Name => {}
            By::Number | By::ShortNumber if !ordering.is_descending => {}
            // In both orders those without a number come where their missing number puts them.
            By::Number | By::ShortNumber => {
                ordering.sort_by(&mut found, |it| (it.channel.number.is_none(), it.channel.number))
            }
            By::GuideName => ordering.sort_by(&mut found, |it| {
                // Channels without a guide channel come last.
                let name = guides.guide_channel(&it.channel).map(|it| it.name().to_lowercase());
                (name.is_none(), name)
            }),
            By::GroupName => ordering.sort_by(&mut found, |it| &it.group),
            By::TvgId => ordering.sort_by(&mut found, |it| &it.tvg_id),
            By::CreatedAt => ordering.sort_by(&mut found, |it| it.channel.created_at),
            By::UpdatedAt => ordering.sort_by(&mut found, |it| it.channel.updated_at),
            By::Id => ordering.sort_by(&mut found, |it| it.channel.id),
        }
        Ok(found.into_iter().map(|it| Arc::clone(&it.channel)).collect())
    }
}

/// Selects channels by what is known of their streams.
struct PlayedFilter {
    /// The scores of the streams that were opened.
    scores: HashMap<StreamId, u8>,
    selects_failing: bool,
    selects_unplayed: bool,
}

impl PlayedFilter {
    /// Returns `None` if every channel matches.
    fn new(call: &Call, selects_failing: bool, selects_unplayed: bool) -> Option<Self> {
        if !selects_failing && !selects_unplayed {
            return None;
        }
        let scores = call.rest().live.plans.health().scores().into_iter().collect();
        Some(Self { scores, selects_failing, selects_unplayed })
    }

    fn matches(&self, streams: &[StreamId]) -> bool {
        let fails = |id: &StreamId| self.scores.get(id).is_some_and(|it| *it < SCORE_FAILING_BELOW);
        !streams.is_empty()
            && (!self.selects_failing || streams.iter().all(fails))
            && (!self.selects_unplayed || !streams.iter().any(|it| self.scores.contains_key(it)))
    }
}

/// Guide channels of a filter.
struct GuideFilter {
    /// Whether channels without a guide channel are selected.
    selects_none: bool,
    selects_all: bool,
    /// Names and keys in lower case, and ids.
    texts: HashSet<String>,
}

impl GuideFilter {
    fn new(wanted: Vec<String>) -> Self {
        let mut filter = Self { selects_none: false, selects_all: false, texts: HashSet::new() };
        for text in wanted {
            match text.as_str() {
                "true" => filter.selects_all = true,
                "false" | "null" => filter.selects_none = true,
                _ => drop(filter.texts.insert(text.to_lowercase())),
            }
        }
        filter
    }

    fn matches(&self, guide: Option<&Arc<GuideChannel>>) -> bool {
        let Some(guide) = guide else { return self.selects_none };
        let has = |text: &str| self.texts.contains(&text.to_lowercase());
        self.selects_all
            || !self.texts.is_empty()
                && (has(guide.name()) || has(&guide.key) || self.texts.contains(&guide.id.to_string()))
    }
}

/// Returns the streams of channels that are missing from their latest playlist.
fn stale_streams(call: &Call) -> HashSet<StreamId> {
    let models = &call.rest().models;
    let channels = models.channels.load();
    let assigned: HashSet<StreamId> = channels.iter().flat_map(|it| it.streams.iter().copied()).collect();
    let index = models.streams.load();
    let stream_ids = |hide_stale| {
        let query = StreamQuery { only: Some(assigned.clone()), hide_stale, ..StreamQuery::default() };
        index.ids(&query)
    };
    let fresh: HashSet<StreamId> = stream_ids(true).into_iter().collect();
    stream_ids(false).into_iter().filter(|it| !fresh.contains(it)).collect()
}
