//! `/api/channels/groups/`: channel groups.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use actors::mark_group;
use domain::account::RefreshRecord;
use domain::account_group::AccountGroup;
use domain::channel::Channel;
use domain::group::{GROUP_NAME_CHARS_MAX, Group};
use domain::ids::{AccountId, GroupId};
use domain::user::UserLevel;
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, STREAMER};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use server::reply::Refusal;
use storage::{Table, Write};

use super::values::no_such;
use crate::api::m3u::AccountGroupView;
use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{Lookup, RecordCall, Render, find, refuse_if, set};
use crate::seen::SeenThings;

/// A channel group, by which channels and streams are sorted.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewChannelGroup, edit = ChannelGroupEdit)]
pub(crate) struct ChannelGroupView {
    /// Assigned by the gateway and never reused.
    #[field(example = "7")]
    id: GroupId,
    /// Number of channels in the group that the caller may see.
    #[field(example = "12")]
    channel_count: usize,
    /// Number of playlist accounts with streams in the group; 0 for users of level 0.
    #[field(example = "1")]
    m3u_account_count: usize,
    /// The playlist accounts that name the group, with their settings; empty for users of level 0.
    m3u_accounts: Vec<AccountGroupView>,
    /// Name, unique among the current and former names of all groups.
    #[field(required, chars_max = GROUP_NAME_CHARS_MAX, example = "News")]
    name: String,
    /// Place of the group in playlists, guides, tuners and player apps, from 1; groups with `null` follow in the order of
    /// their channel numbers.
    #[field(edit, at_least = 1, example = "1")]
    position: Option<u32>,
    /// Whether the channels of the group, and those that play streams of it, are adult content; also those that it gets later.
    /// Channels of which an admin decided otherwise stay as they are.
    #[field(edit, example = "false")]
    is_adult: bool,
}

/// The order of all groups.
#[derive(Clone, Debug, Body)]
struct GroupOrder {
    /// Ids of groups in their order, each once. The first one gets the position 1. Groups that are not named lose theirs.
    #[field(items_max = GROUPS_MAX, example = "[3, 1]")]
    group_ids: Vec<GroupId>,
}

/// Result of ordering groups.
#[derive(Clone, Debug, Serialize, View)]
struct GroupOrderView {
    /// Number of groups with a position.
    #[field(example = "2")]
    ordered_count: usize,
    /// Number of groups whose position changed.
    #[field(example = "2")]
    changed_count: usize,
}

/// Maximum number of groups that are ordered.
const GROUPS_MAX: usize = 20_000;

/// Filters of the list of groups.
#[derive(Debug, Query)]
struct Filters {
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Same as `search`.
    name: Option<Search>,
    /// Order of the list; by position and name by default.
    ordering: Option<Ordering<ByName>>,
}

const LIST: &str = "/api/channels/groups/";
const ONE: &str = "/api/channels/groups/{id}/";
const ORDER: &str = "/api/channels/groups/reorder/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STREAMER, "Lists channel groups. Non-admins see those of visible channels.", list),
        Route::post(LIST, ADMIN, "Creates a channel group.", create),
        Route::post(ORDER, ADMIN, "Sets the order of the channel groups for all outputs.", reorder),
        Route::get(ONE, STREAMER, "Returns a channel group.", retrieve),
        Route::put(ONE, ADMIN, "Changes a channel group.", update),
        Route::patch(ONE, ADMIN, "Partially updates a channel group.", update),
        Route::delete(ONE, ADMIN, "Deletes a channel group without channels.", delete)
            .refuses(StatusCode::BAD_REQUEST, "The group has channels."),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<ChannelGroupView>, Refusal> {
    let groups = call.rest().models.groups.load();
    let searches = [&filters.search, &filters.name];
    let contents = Contents::load(&call)?;
    let is_wanted = |group: &Group| {
        searches.iter().all(|it| matches(it.as_ref(), [&group.name])) && contents.shows(group)
    };
    let mut groups: Vec<_> = groups.iter().filter(|it| is_wanted(it)).collect();
    let is_by_position = filters.ordering.is_none();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Name));
    ordering.sort(&mut groups, |it| it.id, |it| &it.name);
    if is_by_position {
        groups.sort_by_key(|it| it.place());
    }
    paging.render(&call, &groups)
}

async fn retrieve(call: Call) -> Result<ChannelGroupView, Refusal> {
    let group = call.rest().models.groups.load().get(call.id()?).cloned();
    let contents = Contents::load(&call)?;
    let group = group.filter(|it| contents.shows(it)).ok_or_else(Refusal::unknown::<Group>)?;
    Ok(group.view(&contents))
}

async fn create(call: Call, new: NewChannelGroup) -> Result<Created<ChannelGroupView>, Refusal> {
    let position = new.position.flatten();
    let is_adult = new.is_adult.unwrap_or(false);
    let streams = call.rest().models.streams.load();
    call.create(move |write, id| {
        let group = Group { position, is_adult, ..Group::new(GroupId(id), new.name) };
        if is_adult {
            write.put(&group)?;
            mark_group(write, &group, &streams)?;
        }
        Ok(group)
    })
    .await
}

async fn update(call: Call, edit: ChannelGroupEdit) -> Result<ChannelGroupView, Refusal> {
    let streams = call.rest().models.streams.load();
    call.update(move |write, group: &mut Group| {
        edit.name.into_iter().for_each(|it| group.rename(it));
        set(&mut group.position, edit.position);
        if let Some(is_adult) = edit.is_adult.filter(|it| *it != group.is_adult) {
            group.is_adult = is_adult;
            write.put(group)?;
            mark_group(write, group, &streams)?;
        }
        Ok(())
    })
    .await
}

async fn reorder(call: Call, order: GroupOrder) -> Result<GroupOrderView, Refusal> {
    let places: HashMap<GroupId, u32> = order.group_ids.iter().copied().zip(1..).collect();
    if places.len() < order.group_ids.len() {
        return Err(Refusal::field("group_ids", "Name each group once."));
    }
    call.write(move |write| {
        let groups = write.all::<Group>()?;
        let known: HashSet<GroupId> = groups.iter().map(|it| it.id).collect();
        if let Some(id) = order.group_ids.iter().find(|it| !known.contains(it)) {
            return Err(Refusal::field("group_ids", no_such(*id)));
        }
        let mut changed_count = 0;
        for mut group in groups {
            let position = places.get(&group.id).copied();
            if group.position != position {
                group.position = position;
                write.put(&group)?;
                changed_count += 1;
            }
        }
        Ok(GroupOrderView { ordered_count: places.len(), changed_count })
    })
    .await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    const IN_USE: &str = "A group that has channels cannot be deleted.";
    let id = call.id()?;
    call.write(move |write| {
        let group = find::<Group>(write, id)?;
        refuse_if(has_channels(write, &group)?, IN_USE)?;
        for link in links(write, &group)? {
            write.remove::<AccountGroup>(link.id.0)?;
        }
        write.remove::<Group>(id)?;
        Ok(NoContent)
    })
    .await
}

pub(super) fn has_channels(write: &Write<'_>, group: &Group) -> Result<bool, Refusal> {
    Ok(!write.by::<Channel>("group", group.id.0.to_be_bytes())?.is_empty())
}

/// Returns the settings that accounts have for a group.
pub(super) fn links(write: &Write<'_>, group: &Group) -> Result<Vec<AccountGroup>, Refusal> {
    Ok(write.by::<AccountGroup>("group", group.id.0.to_be_bytes())?)
}

/// The channels and accounts of each group, as far as the caller may see them.
pub(crate) struct Contents {
    /// Number of visible channels by group.
    visible: HashMap<GroupId, usize>,
    channels: Arc<Table<Channel>>,
    seen: SeenThings,
    /// Accounts and their numbers of streams by the name of the group in streams.
    accounts: HashMap<String, HashMap<AccountId, usize>>,
    links: Arc<Table<AccountGroup>>,
    refreshes: Arc<Table<RefreshRecord>>,
    level: UserLevel,
}

impl Contents {
    /// Returns whether the caller may see the group, by the rule for everything that channels use.
    pub(super) fn shows(&self, group: &Group) -> bool {
        self.seen.shows_group(&self.channels, group.id)
    }

    /// Returns whether the caller may see the name of a group in playlists that has no record.
    pub(super) fn shows_unused(&self) -> bool {
        self.seen.sees_unused()
    }
}

impl Lookup for Contents {
    fn load(call: &Call) -> Result<Self, Refusal> {
        let level = call.identity()?.effective_level();
        let mut accounts = HashMap::<_, HashMap<_, _>>::new();
        let streams = call.rest().models.streams.load();
        for account in streams.accounts().into_iter().filter(|_| level > UserLevel::Streamer) {
            for (name, n_streams) in streams.groups(Some(&HashSet::from([account]))) {
                accounts.entry(name).or_default().insert(account, n_streams);
            }
        }
        let (channels, seen) = (call.rest().models.channels.load(), SeenThings::new(call));
        let mut visible = HashMap::new();
        for group in channels.iter().filter(|it| seen.sees(it)).filter_map(|it| it.group) {
            *visible.entry(group).or_default() += 1;
        }
        let (links, refreshes) =
            (call.rest().models.account_groups.load(), call.rest().models.refreshes.load());
        Ok(Contents { visible, channels, seen, accounts, links, refreshes, level })
    }
}

impl Contents {
    /// Returns the accounts that name a group.
    fn accounts_of(&self, group: &Group) -> Vec<AccountGroupView> {
        let links = self.links.by("group", group.id.0.to_be_bytes());
        let links = links.filter(|_| self.level > UserLevel::Streamer);
        let view = |link: &Arc<AccountGroup>| {
            let counts = group.names().filter_map(|it| self.accounts.get(it)?.get(&link.account));
            let good_at = self.refreshes.get(link.account.0).and_then(|it| it.good_at);
            AccountGroupView::new(link, group, counts.sum(), good_at, self.level == UserLevel::Admin)
        };
        links.map(view).collect()
    }
}

impl Render for Group {
    type View = ChannelGroupView;
    type Lookup = Contents;

    fn view(&self, contents: &Contents) -> ChannelGroupView {
        let accounts: HashSet<_> =
            self.names().filter_map(|it| contents.accounts.get(it)).flat_map(HashMap::keys).collect();
        ChannelGroupView {
            id: self.id,
            channel_count: contents.visible.get(&self.id).copied().unwrap_or_default(),
            m3u_account_count: accounts.len(),
            m3u_accounts: contents.accounts_of(self),
            name: self.name.clone(),
            position: self.position,
            is_adult: self.is_adult,
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::account::CUSTOM_ACCOUNT;
    use domain::ids::{ChannelId, StreamId};
    use domain::source_url::SourceUrl;
    use domain::stream::{Stream, StreamProperties};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::testing::{ADMIN as ADMIN_USER, Rest, STANDARD as STANDARD_USER, STREAMER as STREAMER_USER};

    async fn make(rest: &Rest, name: &str) -> u64 {
        let made = rest.admin("POST", LIST, json!({ "name": name })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.body["id"].as_u64().unwrap()
    }

    fn one(id: u64) -> String {
        format!("{LIST}{id}/")
    }

    /// Returns a channel in a group.
    fn channel(id: u32, group: u64) -> Channel {
        let group = Some(GroupId(u32::try_from(group).unwrap()));
        let uuid = Uuid::from_u128(u128::from(id));
        Channel { group, ..Channel::new(ChannelId(id), uuid, format!("channel {id}"), 0) }
    }

    #[tokio::test]
    async fn a_group_is_created_read_renamed_and_deleted() {
        let rest = Rest::start().await;
        let id = make(&rest, " News ").await;
        let shown = json!({
            "id": id, "name": "News", "channel_count": 0, "m3u_account_count": 0, "position": null,
            "is_adult": false, "m3u_accounts": [],
        });
        assert_eq!(rest.standard("GET", &one(id), Value::Null).await.body, shown);
        let renamed = rest.admin("PUT", &one(id), json!({ "name": "Sports" })).await;
        assert_eq!((renamed.status, &renamed.body["name"]), (200, &json!("Sports")));
        let same = rest.admin("PATCH", &one(id), json!({})).await;
        assert_eq!((same.status, same.body), (200, renamed.body));
        assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
        let gone = rest.standard("GET", &one(id), Value::Null).await;
        let text = "No ChannelGroup matches the given query.";
        let detail = json!({ "detail": text, "error": text });
        assert_eq!((gone.status, gone.body), (404, detail));
    }

    #[tokio::test]
    async fn an_admin_orders_groups_and_the_others_follow() {
        let rest = Rest::start().await;
        let (a, b, c) = (make(&rest, "a").await, make(&rest, "b").await, make(&rest, "c").await);
        let ordered = rest.admin("POST", ORDER, json!({ "group_ids": [c, b] })).await;
        assert_eq!(
            (ordered.status, &ordered.body),
            (200, &json!({ "ordered_count": 2, "changed_count": 2 }))
        );
        let listed = rest.admin("GET", LIST, Value::Null).await.body;
        let ids: Vec<_> = listed["results"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
        assert_eq!(ids, [json!(c), json!(b), json!(a)]);
        let moved = rest.admin("PATCH", &one(a), json!({ "position": 1 })).await;
        assert_eq!(moved.body["position"], 1, "{}", moved.text);
        rest.admin("POST", ORDER, json!({ "group_ids": [b] })).await;
        assert_eq!(rest.admin("GET", &one(c), Value::Null).await.body["position"], Value::Null);
        for wrong in [json!([b, b]), json!([b, 999])] {
            let refused = rest.admin("POST", ORDER, json!({ "group_ids": wrong })).await;
            assert_eq!(refused.status, 400, "{}", refused.text);
        }
        assert_eq!(rest.standard("POST", ORDER, json!({ "group_ids": [] })).await.status, 403);
    }

    #[tokio::test]
    async fn a_group_name_is_unique_among_current_and_former_names() {
        let rest = Rest::start().await;
        let id = make(&rest, "News").await;
        rest.admin("PATCH", &one(id), json!({ "name": "World" })).await;
        for name in ["News", "World"] {
            let refused = rest.admin("POST", LIST, json!({ "name": name })).await;
            let errors = json!({ "name": ["This field must be unique."] });
            assert_eq!((refused.status, refused.body), (400, errors));
        }
    }

    #[tokio::test]
    async fn cleanup_keeps_a_group_whose_former_name_streams_use() {
        let rest = Rest::start().await;
        let id = make(&rest, "News").await;
        rest.admin("PATCH", &one(id), json!({ "name": "World" })).await;
        let stream = |id, group: &str| {
            let facts = StreamProperties {
                group: Some(group.to_owned()),
                ..StreamProperties::new("one", SourceUrl::new("http://provider.example/1"))
            };
            Stream::new(StreamId(id), CUSTOM_ACCOUNT, facts, 0)
        };
        rest.put([stream(1, "News"), stream(2, "World")]).await;
        rest.models.streams.at(rest.models.store.version()).await.unwrap();
        assert_eq!(rest.standard("GET", &one(id), Value::Null).await.body["m3u_account_count"], 1);
        assert_eq!(
            rest.admin("POST", "/api/channels/groups/cleanup/", Value::Null).await.body["deleted_count"],
            0
        );
        assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
    }

    #[tokio::test]
    async fn users_see_the_groups_of_their_visible_channels() {
        let rest = Rest::start().await;
        let (news, adult, empty) =
            (make(&rest, "news").await, make(&rest, "adult").await, make(&rest, "empty").await);
        let admins = Channel { user_level: UserLevel::Admin, ..channel(2, news) };
        rest.put([
            channel(1, news),
            admins,
            Channel { user_level: UserLevel::Standard, ..channel(3, adult) },
        ])
        .await;
        for (user, expected) in [
            (STREAMER_USER, json!([[news, 1]])),
            (STANDARD_USER, json!([[adult, 1], [empty, 0], [news, 1]])),
            (ADMIN_USER, json!([[adult, 1], [empty, 0], [news, 2]])),
        ] {
            let listed = rest.ask(user, "GET", LIST, Value::Null).await.body;
            let listed = listed["results"].as_array().unwrap().iter();
            let counts: Value = listed.map(|it| json!([it["id"], it["channel_count"]])).collect();
            assert_eq!(counts, expected, "{user}");
        }
        assert_eq!(rest.streamer("GET", &one(adult), Value::Null).await.status, 404);
        assert_eq!(rest.streamer("GET", &one(news), Value::Null).await.status, 200);
    }

    #[tokio::test]
    async fn a_group_with_channels_counts_them_and_cannot_be_deleted() {
        let rest = Rest::start().await;
        let (used, free) = (make(&rest, "used").await, make(&rest, "free").await);
        rest.put([channel(1, used), channel(2, used)]).await;
        let groups = rest.standard("GET", &format!("{LIST}?ordering=-name"), Value::Null).await.body;
        let counts: Vec<_> = groups["results"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| (&it["id"], &it["channel_count"]))
            .collect();
        assert_eq!(counts, [(&json!(used), &json!(2)), (&json!(free), &json!(0))]);

        let refused = rest.admin("DELETE", &one(used), Value::Null).await;
        let text = "A group that has channels cannot be deleted.";
        let detail = json!({ "detail": text, "error": text });
        assert_eq!((refused.status, refused.body), (400, detail));
        let cleaned = rest.admin("POST", "/api/channels/groups/cleanup/", Value::Null).await;
        assert_eq!(
            (cleaned.status, cleaned.body),
            (200, json!({ "message": "Deleted 1 groups", "deleted_count": 1, "deleted_groups": ["free"] }))
        );
        assert_eq!(rest.standard("GET", &one(used), Value::Null).await.status, 200);
    }
}
