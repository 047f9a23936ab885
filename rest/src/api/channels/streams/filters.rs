//! Filters of the list of streams, and the search in the index.

use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use domain::account::Account;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::playlist::content::StreamContent;
use domain::streams::{StreamOrder, StreamPage, StreamQuery, StreamSnapshot};
use resource_derive::Query;
use route_frame::call::Call;
use route_frame::filter::read_filter;
use serde_json::{Map, Value};
use server::reply::Refusal;
use storage::NotReady;

use super::health::ByHealth;
use super::view::blocking;
use crate::api::channels::values::{GroupFilter, GroupNames};
use crate::choice::{Named, choice};
use crate::context::{RestCall, RestContext};
use crate::list::{Ordering, Search, matches};
use crate::seen::SeenThings;

/// Maximum number of streams of one request.
pub(super) const IDS_MAX: usize = 10_000;

/// Filters of the list of streams. A stream must match all of them.
#[derive(Debug, Query)]
pub(crate) struct StreamFilters {
    /// Part of the name, regardless of case.
    name: Option<String>,
    /// Names of groups, separated by commas.
    #[field(items_max = 1000)]
    channel_group_name: Option<GroupNames>,
    /// Names or ids of groups, separated by commas.
    #[field(items_max = 1000)]
    channel_group: Option<GroupNames>,
    /// Ids of playlist accounts, separated by commas. Includes inactive accounts.
    #[field(items_max = 1000)]
    m3u_account: Option<Vec<AccountId>>,
    /// Part of the account name, regardless of case.
    m3u_account_name: Option<Search>,
    /// Whether the account is active. By default only streams of active accounts are listed.
    m3u_account_is_active: Option<bool>,
    /// Same as `m3u_account_is_active`: streams of an inactive account are not played.
    enabled: Option<bool>,
    /// Part of the guide id, regardless of case.
    tvg_id: Option<String>,
    /// Id of a channel that uses the stream.
    assigned: Option<ChannelId>,
    /// If true, selects streams that no channel uses.
    unassigned: Option<bool>,
    /// If true, excludes streams that are missing from the latest playlist.
    hide_stale: Option<bool>,
    /// Whether the provider keeps an archive, so that past programmes can be watched.
    is_catchup: Option<bool>,
    /// Content of the stream; several values are separated by commas.
    #[field(items_max = 4)]
    content_type: Option<Vec<Named<StreamContent>>>,
    /// Ids of streams, separated by commas.
    #[field(items_max = 10_000)]
    ids: Option<Vec<StreamId>>,
    /// Part of the name, of the guide id or of the group name, regardless of case.
    search: Option<String>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<By>>,
}

choice!(
    enum By {
        Id = "id",
        Name = "name",
        TvgId = "tvg_id",
        Group = "channel_group",
        GroupName = "channel_group__name",
        Account = "m3u_account",
        AccountName = "m3u_account__name",
        Health = "health",
    }
);

/// A query to the index.
pub(super) struct Wanted {
    query: StreamQuery,
    /// Accounts in the order of their names, if that is the requested order.
    by_account: Option<Vec<AccountId>>,
    /// The scores of streams, if these are the requested order.
    by_health: Option<ByHealth>,
}

impl StreamFilters {
    pub(super) fn wanted(self, call: &Call) -> Result<Wanted, Refusal> {
        let models = &call.rest().models;
        let accounts = self.accounts(&models.accounts.load());
        let groups = self.groups(call);
        let only = match self.assigned {
            Some(channel) => {
                let (channels, is_listed) = (models.channels.load(), call.listed());
                let channel = channels.get(channel.0).filter(|it| is_listed(it));
                Some(channel.map(|it| it.streams.iter().copied().collect()).unwrap_or_default())
            }
            None => None,
        };
        let without = self.unassigned.filter(|it| *it).map(|_| assigned(call.rest()));
        let (by, descending) = self.ordering.map_or((By::Id, false), |it| (it.by, it.is_descending));
        let by_account = (by == By::AccountName).then(|| by_name(call.rest(), descending));
        let by_health = (by == By::Health).then(|| ByHealth::new(call.rest(), descending));
        let order = match by {
            By::Id | By::AccountName | By::Health => StreamOrder::Id,
            By::Name => StreamOrder::Name,
            By::TvgId => StreamOrder::TvgId,
            By::Group | By::GroupName => StreamOrder::Group,
            By::Account => StreamOrder::Account,
        };
        let mut query = StreamQuery {
            ids: self.ids.map(HashSet::from_iter),
            name: self.name,
            tvg_id: self.tvg_id,
            search: self.search,
            groups,
            accounts: Some(accounts),
            only,
            without,
            hide_stale: self.hide_stale.unwrap_or(false),
            has_archive: self.is_catchup,
            contents: self.content_type.map(|it| it.into_iter().map(|it| it.0).collect()),
            order,
            descending,
        };
        SeenThings::new(call).limit(&mut query, &models.channels.load());
        Ok(Wanted { query, by_account, by_health })
    }

    fn accounts(&self, accounts: &storage::Table<Account>) -> HashSet<AccountId> {
        let ids: Option<HashSet<AccountId>> =
            self.m3u_account.as_ref().map(|it| it.iter().copied().collect());
        let is_specific = ids.is_some() || self.ids.is_some() || self.assigned.is_some();
        let states = [self.m3u_account_is_active, self.enabled];
        let is_wanted = |account: &Account| {
            let has_state = match states {
                [None, None] => account.is_active || is_specific,
                states => states.into_iter().flatten().all(|it| it == account.is_active),
            };
            has_state
                && ids.as_ref().is_none_or(|it| it.contains(&account.id))
                && matches(self.m3u_account_name.as_ref(), [&account.name])
        };
        accounts.iter().filter(|it| is_wanted(it)).map(|it| it.id).collect()
    }

    /// Returns the groups that match both filters.
    fn groups(&self, call: &Call) -> Option<HashSet<String>> {
        let groups = call.rest().models.groups.load();
        let names = |wanted: &GroupNames| -> HashSet<String> {
            GroupFilter::new(wanted.clone(), &groups).names.into_iter().collect()
        };
        match (self.channel_group_name.as_ref().map(names), self.channel_group.as_ref().map(names)) {
            (Some(one), Some(other)) => Some(one.intersection(&other).cloned().collect()),
            (one, other) => one.or(other),
        }
    }
}

/// Returns the streams of all channels.
fn assigned(context: &RestContext) -> BTreeSet<StreamId> {
    let channels = context.models.channels.load();
    channels.iter().flat_map(|it| it.streams.iter().copied()).collect()
}

/// Returns the accounts in the order of their names.
fn by_name(context: &RestContext, descending: bool) -> Vec<AccountId> {
    let accounts = context.models.accounts.load();
    let mut accounts: Vec<_> = accounts.iter().map(|it| (it.name.to_lowercase(), it.id)).collect();
    accounts.sort_unstable();
    if descending {
        accounts.reverse();
    }
    accounts.into_iter().map(|it| it.1).collect()
}

/// Returns the index of the latest committed write, so that clients read their own writes.
pub(super) async fn index(context: &RestContext) -> Result<Arc<StreamSnapshot>, Refusal> {
    let models = &context.models;
    models.streams.at(models.store.version()).await.map_err(|error| match error {
        NotReady::Late => Refusal::unavailable(error.to_string()).retry_soon(),
        NotReady::Ended => Refusal::fault(format_args!("list streams: {error}")),
    })
}

/// Returns the ids of the streams that match filters of the list, for operations on all of them.
pub(in crate::api::channels) async fn select(
    call: &Call,
    filter: &Map<String, Value>,
) -> Result<Vec<StreamId>, Refusal> {
    let wanted = read_filter::<StreamFilters>(filter)?.wanted(call)?;
    let index = index(call.rest()).await?;
    blocking(move || Ok(wanted.find(&index, 0, usize::MAX).ids)).await
}

impl Wanted {
    /// Returns the streams of a window. Takes some milliseconds with half a million streams, so call it on a thread
    /// that may block.
    pub(super) fn find(&self, index: &StreamSnapshot, mut offset: usize, mut limit: usize) -> StreamPage {
        if let Some(by_health) = &self.by_health {
            return by_health.find(index, &self.query, offset, limit);
        }
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
