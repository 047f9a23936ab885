//! Filters and order of the list of channels.

use std::collections::HashSet;
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::{ChannelId, LineupId};
use resource_derive::Query;

use crate::http::reply::Refusal;
use crate::rest::api::channels::lineups::find_own;
use crate::rest::api::channels::values::{GroupFilter, GroupNames};
use crate::rest::frame::call::Call;
use crate::rest::frame::list::{Ordering, Search, matches};
use crate::rest::frame::value::{Named, choice};

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
        Name = "name",
        GroupName = "channel_group__name",
        Id = "id",
    }
);

/// Returns a channel that the caller may see.
pub(super) fn find_visible(call: &Call, id: u32) -> Result<Arc<Channel>, Refusal> {
    let (channels, is_listed) = (call.app.models.channels.load(), call.listed());
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
        let groups = call.app.models.groups.load();
        let group_name = |channel: &Channel| {
            let group = channel.group.and_then(|it| groups.get(it.0));
            group.map(|it| it.name.to_lowercase()).unwrap_or_default()
        };
        let ids: Option<HashSet<ChannelId>> = self.ids.map(HashSet::from_iter);
        let of_groups = self.channel_group.map(|it| GroupFilter::of(it, &groups).ids);
        let state = match self.visibility_filter {
            Some(Named(Visibility::Active)) => Some(true),
            Some(Named(Visibility::Hidden)) => Some(false),
            Some(Named(Visibility::All)) | None => None,
        };
        let states = [self.enabled, state];
        let is_wanted = |channel: &Channel| {
            let guide = channel.tvg_id.as_deref().unwrap_or_default();
            is_listed(channel)
                && lineup.as_ref().is_none_or(|it| it.contains(channel.id))
                && states.into_iter().flatten().all(|it| it == channel.enabled)
                && of_groups.as_ref().is_none_or(|it| channel.group.is_some_and(|group| it.contains(&group)))
                && ids.as_ref().is_none_or(|it| it.contains(&channel.id))
                && (self.only_streamless != Some(true) || channel.streams.is_empty())
                && matches(self.name.as_ref(), [&channel.name])
                && matches(self.tvg_id.as_ref(), [guide])
                && matches(self.search.as_ref(), [&channel.name, guide, &group_name(channel)])
        };
        let channels = call.app.models.channels.load();
        let mut channels: Vec<_> = channels.iter().filter(|it| is_wanted(it)).cloned().collect();
        let ordering = self.ordering.unwrap_or(Ordering::ascending(By::Number));
        match ordering.by {
            // Channels without a number come last.
            By::Number => ordering.sort_by(&mut channels, |it| (it.number.is_none(), it.number)),
            By::Name => ordering.sort_by(&mut channels, |it| it.name.to_lowercase()),
            By::GroupName => ordering.sort_by(&mut channels, |it| group_name(it)),
            By::Id => ordering.sort_by(&mut channels, |it| it.id),
        }
        Ok(channels)
    }
}
