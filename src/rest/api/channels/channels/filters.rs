//! Which channels a list is asked for.

use std::collections::HashSet;
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::ChannelId;
use domain::user::{UserLevel, can_see};

use crate::http::reply::Refusal;
use crate::rest::api::channels::values::{GroupFilter, GroupNames};
use crate::rest::frame::call::Call;
use crate::rest::frame::list::Ordering;
use crate::rest::frame::record::query;
use crate::rest::frame::value::{Named, choice};

query! {
    /// Which channels. Where several are given, all have to hold.
    ChannelFilters {
        /// Names or ids of channel groups with commas between them: any of these.
        channel_group: GroupNames [items_max(1000)],
        /// Part of the name, of the group's name or of the id in a guide, whatever the case of its letters.
        search: String,
        /// Part of the name, whatever the case of its letters.
        name: String,
        /// Part of the id in a guide, whatever the case of its letters.
        tvg_id: String,
        /// Ids with commas between them: these and no others.
        ids: Vec<ChannelId> [items_max(10_000)],
        /// Those that are enabled, or those that are not.
        enabled: bool,
        /// The same in other words; all where nothing is said.
        visibility_filter: Named<Visibility>,
        /// Those without a stream, if this is true.
        only_streamless: bool,
        /// How they are sorted; by number where nothing is said.
        ordering: Ordering<By>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Visibility {
    Active,
    Hidden,
    All,
}
choice!(Visibility { Active = "active", Hidden = "hidden", All = "all" });

#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Number,
    Name,
    GroupName,
    Id,
}
choice!(By { Number = "channel_number", Name = "name", GroupName = "channel_group__name", Id = "id" });

/// Is this channel there for the caller? For an admin all are; for others those that they may watch.
pub(in crate::rest::api::channels) fn visible(call: &Call, channel: &Channel) -> bool {
    call.user().is_ok_and(|it| it.may(UserLevel::Admin) || can_see(it, channel))
}

/// The channel of this id, if it is there for the caller.
pub(super) fn find_visible(call: &Call, id: u32) -> Result<Arc<Channel>, Refusal> {
    let channels = call.app.models.channels.load();
    let channel = channels.get(id).filter(|it| visible(call, it));
    channel.cloned().ok_or_else(Refusal::unknown::<Channel>)
}

impl ChannelFilters {
    /// The channels that are asked for and there for the caller, in order.
    pub(super) fn find(self, call: &Call) -> Vec<Arc<Channel>> {
        let groups = call.app.models.groups.load();
        let group_name = |channel: &Channel| {
            let group = channel.group.and_then(|it| groups.get(it.0));
            group.map(|it| it.name.to_lowercase()).unwrap_or_default()
        };
        let [search, name, tvg_id] =
            [self.search, self.name, self.tvg_id].map(|it| it.map(|it| it.to_lowercase()));
        let has = |text: &str, part: &Option<String>| {
            part.as_ref().is_none_or(|it| text.to_lowercase().contains(it.as_str()))
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
            visible(call, channel)
                && states.into_iter().flatten().all(|it| it == channel.enabled)
                && of_groups.as_ref().is_none_or(|it| channel.group.is_some_and(|group| it.contains(&group)))
                && ids.as_ref().is_none_or(|it| it.contains(&channel.id))
                && (self.only_streamless != Some(true) || channel.streams.is_empty())
                && has(&channel.name, &name)
                && has(guide, &tvg_id)
                && (has(&channel.name, &search) || has(guide, &search) || has(&group_name(channel), &search))
        };
        let channels = call.app.models.channels.load();
        let mut channels: Vec<_> = channels.iter().filter(|it| is_wanted(it)).cloned().collect();
        let ordering = self.ordering.unwrap_or(Ordering { by: By::Number, is_descending: false });
        match ordering.by {
            // Those without a number stand last.
            By::Number => ordering.sort_by(&mut channels, |it| (it.number.is_none(), it.number)),
            By::Name => sort_by_text(ordering, &mut channels, |it| it.name.to_lowercase()),
            By::GroupName => sort_by_text(ordering, &mut channels, |it| group_name(it)),
            By::Id => ordering.sort_by(&mut channels, |it| it.id),
        }
        channels
    }
}

/// Sorts by a text that is made once per channel.
fn sort_by_text(ordering: Ordering<By>, channels: &mut Vec<Arc<Channel>>, text: impl Fn(&Channel) -> String) {
    let mut with_text: Vec<_> = channels.drain(..).map(|it| (text(&it), it)).collect();
    ordering.sort_by(&mut with_text, |it| it.0.clone());
    channels.extend(with_text.into_iter().map(|it| it.1));
}
