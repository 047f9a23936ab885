//! Which streams a list is asked for, and how they are found.

use std::collections::HashSet;
use std::sync::Arc;

use domain::account::Account;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::streams::{StreamOrder, StreamPage, StreamQuery, StreamSnapshot};
use storage::NotReady;

use crate::app::App;
use crate::http::reply::Refusal;
use crate::rest::api::channels::channels::visible;
use crate::rest::api::channels::values::{GroupFilter, GroupNames};
use crate::rest::frame::call::Call;
use crate::rest::frame::list::Ordering;
use crate::rest::frame::record::query;
use crate::rest::frame::value::choice;

query! {
    /// Which streams. Where several are given, all have to hold.
    StreamFilters {
        /// Part of the name, whatever the case of its letters.
        name: String,
        /// Names of groups with commas between them: any of these.
        channel_group_name: GroupNames [items_max(1000)],
        /// Names or ids of groups with commas between them: any of these.
        channel_group: GroupNames [items_max(1000)],
        /// Ids of playlist accounts with commas between them: any of these. Those of an inactive one are listed.
        m3u_account: Vec<AccountId> [items_max(1000)],
        /// Part of the account's name, whatever the case of its letters.
        m3u_account_name: String,
        /// Those of active accounts, or those of inactive ones. Where nothing is said, those of active ones are listed.
        m3u_account_is_active: bool,
        /// The same as `m3u_account_is_active`: streams of an inactive account are not played.
        enabled: bool,
        /// Part of the id in a guide, whatever the case of its letters.
        tvg_id: String,
        /// Those of the channel of this id.
        assigned: ChannelId,
        /// Those of no channel, if this is true.
        unassigned: bool,
        /// Those that have not vanished from their list, if this is true.
        hide_stale: bool,
        /// Ids with commas between them: these and no others.
        ids: Vec<StreamId> [items_max(10_000)],
        /// Part of the name, of the id in a guide or of the group's name, whatever the case of its letters.
        search: String,
        /// How they are sorted; by id where nothing is said.
        ordering: Ordering<By>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Id,
    Name,
    TvgId,
    Group,
    GroupName,
    Account,
    AccountName,
}
choice!(By {
    Id = "id",
    Name = "name",
    TvgId = "tvg_id",
    Group = "channel_group",
    GroupName = "channel_group__name",
    Account = "m3u_account",
    AccountName = "m3u_account__name",
});

/// What is asked of the index, ready to be held against it.
pub(super) struct Wanted {
    query: StreamQuery,
    /// The accounts in the order of their names, if that is the order.
    by_account: Option<Vec<AccountId>>,
}

impl StreamFilters {
    pub(super) fn wanted(self, call: &Call) -> Result<Wanted, Refusal> {
        let models = &call.app.models;
        let accounts = self.accounts(&models.accounts.load());
        let groups = self.groups(call);
        let only = match self.assigned {
            Some(channel) => {
                let channels = models.channels.load();
                let channel = channels.get(channel.0).filter(|it| visible(call, it));
                Some(channel.map(|it| it.streams.iter().copied().collect()).unwrap_or_default())
            }
            None => None,
        };
        let without = self.unassigned.filter(|it| *it).map(|_| assigned(&call.app));
        let (by, descending) = self.ordering.map_or((By::Id, false), |it| (it.by, it.is_descending));
        let by_account = (by == By::AccountName).then(|| by_name(&call.app, descending));
        let order = match by {
            By::Id | By::AccountName => StreamOrder::Id,
            By::Name => StreamOrder::Name,
            By::TvgId => StreamOrder::TvgId,
            By::Group | By::GroupName => StreamOrder::Group,
            By::Account => StreamOrder::Account,
        };
        let query = StreamQuery {
            ids: self.ids.map(HashSet::from_iter),
            name: self.name,
            tvg_id: self.tvg_id,
            search: self.search,
            groups,
            accounts: Some(accounts),
            only,
            without,
            hide_stale: self.hide_stale.unwrap_or(false),
            order,
            descending,
        };
        Ok(Wanted { query, by_account })
    }

    fn accounts(&self, accounts: &storage::Table<Account>) -> HashSet<AccountId> {
        let ids: Option<HashSet<AccountId>> =
            self.m3u_account.as_ref().map(|it| it.iter().copied().collect());
        let name = self.m3u_account_name.as_ref().map(|it| it.to_lowercase());
        let is_specific = ids.is_some() || self.ids.is_some() || self.assigned.is_some();
        let states = [self.m3u_account_is_active, self.enabled];
        let is_wanted = |account: &Account| {
            let has_state = match states {
                [None, None] => account.is_active || is_specific,
                states => states.into_iter().flatten().all(|it| it == account.is_active),
            };
            has_state
                && ids.as_ref().is_none_or(|it| it.contains(&account.id))
                && name.as_ref().is_none_or(|it| account.name.to_lowercase().contains(it))
        };
        accounts.iter().filter(|it| is_wanted(it)).map(|it| it.id).collect()
    }

    /// Both filters have to hold where both are given.
    fn groups(&self, call: &Call) -> Option<HashSet<String>> {
        let groups = call.app.models.groups.load();
        let names = |wanted: &GroupNames| -> HashSet<String> {
            GroupFilter::of(wanted.clone(), &groups).names.into_iter().collect()
        };
        match (self.channel_group_name.as_ref().map(names), self.channel_group.as_ref().map(names)) {
            (Some(one), Some(other)) => Some(one.intersection(&other).cloned().collect()),
            (one, other) => one.or(other),
        }
    }
}

/// The streams of all channels.
fn assigned(app: &App) -> HashSet<StreamId> {
    let channels = app.models.channels.load();
    channels.iter().flat_map(|it| it.streams.iter().copied()).collect()
}

/// The accounts by name.
fn by_name(app: &App, descending: bool) -> Vec<AccountId> {
    let accounts = app.models.accounts.load();
    let mut accounts: Vec<_> = accounts.iter().map(|it| (it.name.to_lowercase(), it.id)).collect();
    accounts.sort_unstable();
    if descending {
        accounts.reverse();
    }
    accounts.into_iter().map(|it| it.1).collect()
}

/// The streams as of the last answered write, so that everybody reads what they wrote.
pub(super) async fn index(app: &App) -> Result<Arc<StreamSnapshot>, Refusal> {
    let models = &app.models;
    models.streams.at(models.store.version()).await.map_err(|error| match error {
        NotReady::Late => Refusal::unavailable(error.to_string()).retry_soon(),
        NotReady::Ended => Refusal::fault(format_args!("list streams: {error}")),
    })
}

impl Wanted {
    /// The streams of a window. Takes some milliseconds when there are half a million: for a thread that may block.
    pub(super) fn find(&self, index: &StreamSnapshot, mut offset: usize, mut limit: usize) -> StreamPage {
        let Some(by_account) = &self.by_account else { return index.find(&self.query, offset, limit) };
        let mut all = StreamPage::default();
        let is_wanted =
            |it: &&AccountId| self.query.accounts.as_ref().is_none_or(|wanted| wanted.contains(it));
        for account in by_account.iter().filter(is_wanted) {
            let query = StreamQuery { accounts: Some(HashSet::from([*account])), ..self.query.clone() };
            let page = index.find(&query, offset, limit);
            all.count += page.count;
            offset = offset.saturating_sub(page.count);
            limit -= page.ids.len();
            all.ids.extend(page.ids);
        }
        all
    }
}
