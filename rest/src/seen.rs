//! What a caller may see of the things that channels use: streams, logos, guide channels and groups.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::{GroupId, GuideChannelId, StreamId};
use domain::lineup::{ViewLimits, visible};
use domain::streams::StreamQuery;
use domain::user::UserLevel;
use route_frame::call::Call;
use services::guide::{GuideEntry, GuideReader};
use storage::Table;

/// The rule for things that channels use: a caller sees those of visible channels. Admins see all. Users of level 1 also see
/// those that no channel uses, unless adult content or channels of other lineups are hidden from them: nobody has said of an
/// unused thing that they may see it.
pub(crate) struct SeenThings {
    /// `None` for admins.
    limits: Option<ViewLimits>,
}

impl SeenThings {
    pub(crate) fn new(call: &Call) -> Self {
        Self { limits: (!call.is_admin()).then(|| call.view_limits()) }
    }

    /// Returns whether the caller is an admin.
    pub(crate) fn is_all(&self) -> bool {
        self.limits.is_none()
    }

    /// Returns whether the caller sees things that no channel uses.
    pub(crate) fn sees_unused(&self) -> bool {
        self.limits.as_ref().is_none_or(|it| it.level() >= UserLevel::Standard && !it.selects())
    }

    /// Returns whether the caller sees a channel.
    pub(crate) fn sees(&self, channel: &Channel) -> bool {
        self.limits.as_ref().is_none_or(|it| visible(it, channel))
    }

    /// Returns whether the caller sees a thing that these channels use.
    pub(crate) fn shows<'a>(&self, users: impl IntoIterator<Item = &'a Arc<Channel>>) -> bool {
        let mut users = users.into_iter().peekable();
        match users.peek() {
            None => self.sees_unused(),
            Some(_) => users.any(|it| self.sees(it)),
        }
    }

    /// Returns whether the caller sees a programme of a guide channel: users of level 1 see all programmes of their guide
    /// channels, and others those that a visible channel shows. Blocks.
    pub(crate) fn shows_programme(
        &self,
        guides: &GuideReader,
        of: GuideChannelId,
        entry: &GuideEntry,
    ) -> bool {
        let Some(limits) = &self.limits else { return true };
        match self.sees_unused() {
            true => self.shows(guides.links().channels_of(of)),
            false => guides.is_shown(of, entry, &|it| visible(limits, it)),
        }
    }

    /// Returns whether the caller sees a stream.
    pub(crate) fn shows_stream(&self, channels: &Table<Channel>, id: StreamId) -> bool {
        self.is_all() || self.shows(channels.by("stream", id.0.to_be_bytes()))
    }

    /// Returns whether the caller sees a channel group.
    pub(crate) fn shows_group(&self, channels: &Table<Channel>, id: GroupId) -> bool {
        self.is_all() || self.shows(channels.by("group", id.0.to_be_bytes()))
    }

    /// Limits a query to the streams that the caller sees.
    pub(crate) fn limit(&self, query: &mut StreamQuery, channels: &Table<Channel>) {
        if self.is_all() {
            return;
        }
        let (seen, hidden): (Vec<_>, Vec<_>) = channels.iter().partition(|it| self.sees(it));
        let seen: HashSet<StreamId> = seen.into_iter().flat_map(|it| it.streams.iter().copied()).collect();
        if self.sees_unused() {
            let hidden = hidden.into_iter().flat_map(|it| it.streams.iter().copied());
            let without = query.without.get_or_insert_with(BTreeSet::new);
            without.extend(hidden.filter(|it| !seen.contains(it)));
            return;
        }
        query.only = Some(match query.only.take() {
            Some(only) => only.intersection(&seen).copied().collect(),
            None => seen,
        });
    }
}
