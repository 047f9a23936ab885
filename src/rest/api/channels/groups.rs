//! `/api/channels/groups/`: channel groups.

use std::collections::{HashMap, HashSet};

use domain::channel::Channel;
use domain::group::{GROUP_NAME_CHARS_MAX, Group};
use domain::ids::{AccountId, GroupId};
use http::StatusCode;
use storage::Write;

use crate::app::App;
use crate::http::reply::Refusal;
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::list::{Ordering, Page, WholeOrPages};
use crate::rest::frame::record::{query, record, view};
use crate::rest::frame::route::{ADMIN, Created, Done, Route, STANDARD};
use crate::rest::frame::value::choice;

record! {
    /// A channel group: how channels and streams are sorted for people.
    ChannelGroup / ChannelGroupEdit {
        read {
            /// Given by the gateway; never given again.
            id: GroupId [example("7")],
            /// Channels that are in it.
            channel_count: u32 [example("12")],
            /// Playlist accounts with streams that their provider, a rule or an admin puts into it.
            m3u_account_count: usize [example("1")],
        }
        edit {
            /// Unique over all groups, the names included that they had before.
            name: String [required(), chars_max(GROUP_NAME_CHARS_MAX), example("News")],
        }
    }
}

query! {
    /// Which groups.
    Filters {
        /// Part of the name, whatever the case of its letters.
        search: String,
        /// The same.
        name: String,
        /// How they are sorted; by name where nothing is said.
        ordering: Ordering<By>,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Id,
    Name,
}
choice!(By { Id = "id", Name = "name" });

view! {
    /// What was cleared away.
    GroupCleanup {
        /// For people.
        message: String [example("Deleted 2 groups")],
        /// How many groups were deleted.
        deleted_count: usize [example("2")],
        /// Their names.
        deleted_groups: Vec<String>,
    }
}

const LIST: &str = "/api/channels/groups/";
const ONE: &str = "/api/channels/groups/{id}/";
const CLEAN_UP: &str = "/api/channels/groups/cleanup/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists channel groups.", list),
        Route::post(LIST, ADMIN, "Makes a channel group.", create),
        Route::get(ONE, STANDARD, "Shows a channel group.", retrieve),
        Route::put(ONE, ADMIN, "Renames a channel group.", update),
        Route::patch(ONE, ADMIN, "Renames a channel group.", update),
        Route::delete(ONE, ADMIN, "Deletes a channel group that has no channels.", remove)
            .refuses(StatusCode::BAD_REQUEST, "The group has channels."),
        Route::post(CLEAN_UP, ADMIN, "Deletes every channel group without channels and streams.", clean_up),
    ]
}

async fn list(call: Call, (filters, paging): (Filters, WholeOrPages)) -> Result<Page<ChannelGroup>, Refusal> {
    let groups = call.app.models.groups.load();
    let parts = [filters.search, filters.name].map(|it| it.map(|it| it.to_lowercase()));
    let is_wanted = |group: &Group| {
        let name = group.name.to_lowercase();
        parts.iter().flatten().all(|it| name.contains(it))
    };
    let mut groups: Vec<_> = groups.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering { by: By::Name, is_descending: false });
    match ordering.by {
        By::Id => ordering.sort_by(&mut groups, |it| it.id),
        By::Name => ordering.sort_by(&mut groups, |it| it.name.to_lowercase()),
    }
    let counts = Counts::of(&call.app);
    paging.of(&call, &groups, |it| counts.view(it))
}

async fn retrieve(call: Call) -> Result<ChannelGroup, Refusal> {
    let groups = call.app.models.groups.load();
    let group = groups.get(call.id()?).ok_or_else(Refusal::unknown::<Group>)?;
    Ok(Counts::of(&call.app).view(group))
}

async fn create(call: Call, edit: ChannelGroupEdit) -> Result<Created<ChannelGroup>, Refusal> {
    let group = call
        .write(move |write| {
            let mut group = Group::new(GroupId(write.next_id::<Group>()?), "");
            edit.apply(&mut group);
            write.put(&group)?;
            Ok(group)
        })
        .await?;
    Ok(Created(Counts::of(&call.app).view(&group)))
}

async fn update(call: Call, edit: ChannelGroupEdit) -> Result<ChannelGroup, Refusal> {
    let id = call.id()?;
    let group = call
        .write(move |write| {
            let mut group = find::<Group>(write, id)?;
            edit.apply(&mut group);
            write.put(&group)?;
            Ok(group)
        })
        .await?;
    Ok(Counts::of(&call.app).view(&group))
}

async fn remove(call: Call) -> Result<Done, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        find::<Group>(write, id)?;
        if has_channels(write, id)? {
            return Err(Refusal::bad_request("A group that has channels cannot be deleted."));
        }
        write.remove::<Group>(id)?;
        Ok(Done)
    })
    .await
}

async fn clean_up(call: Call) -> Result<GroupCleanup, Refusal> {
    let of_streams: HashSet<String> =
        call.app.models.streams.load().groups(None).into_iter().map(|it| it.0).collect();
    let deleted_groups = call
        .write(move |write| {
            let mut names = Vec::new();
            for group in write.all::<Group>()? {
                let has_streams = group.names().any(|it| of_streams.contains(it));
                if !has_streams && !has_channels(write, group.id.0)? {
                    write.remove::<Group>(group.id.0)?;
                    names.push(group.name);
                }
            }
            Ok(names)
        })
        .await?;
    let deleted_count = deleted_groups.len();
    Ok(GroupCleanup { message: format!("Deleted {deleted_count} groups"), deleted_count, deleted_groups })
}

fn has_channels(write: &Write<'_>, group: u32) -> Result<bool, Refusal> {
    Ok(!write.by::<Channel>("group", group.to_be_bytes())?.is_empty())
}

impl ChannelGroupEdit {
    /// What was sent goes over what is there.
    fn apply(self, group: &mut Group) {
        match self.name {
            // A new one has no old name under which anybody could look for it.
            Some(name) if group.name.is_empty() => group.name = name,
            Some(name) => group.rename(name),
            None => {}
        }
    }
}

/// How much each group has, counted once per request.
struct Counts {
    channels: HashMap<GroupId, u32>,
    /// By the name that streams call their group.
    accounts: HashMap<String, HashSet<AccountId>>,
}

impl Counts {
    fn of(app: &App) -> Self {
        let mut channels = HashMap::new();
        for group in app.models.channels.load().iter().filter_map(|it| it.group) {
            *channels.entry(group).or_default() += 1;
        }
        let mut accounts: HashMap<String, HashSet<AccountId>> = HashMap::new();
        let streams = app.models.streams.load();
        for account in streams.accounts() {
            for (name, _) in streams.groups(Some(&HashSet::from([account]))) {
                accounts.entry(name).or_default().insert(account);
            }
        }
        Counts { channels, accounts }
    }

    fn view(&self, group: &Group) -> ChannelGroup {
        let accounts: HashSet<_> =
            group.names().filter_map(|it| self.accounts.get(it)).flatten().copied().collect();
        ChannelGroup {
            id: group.id,
            channel_count: self.channels.get(&group.id).copied().unwrap_or(0),
            m3u_account_count: accounts.len(),
            name: group.name.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::account::CUSTOM_ACCOUNT;
    use domain::ids::{ChannelId, StreamId};
    use domain::source_url::SourceUrl;
    use domain::stream::{RequestHeaders, Stream, StreamProperties};
    use serde_json::{Value, json};
    use uuid::Uuid;

    use super::*;
    use crate::rest::frame::testing::Rest;

    async fn make(rest: &Rest, name: &str) -> u64 {
        let made = rest.admin("POST", LIST, json!({ "name": name })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.body["id"].as_u64().unwrap()
    }

    fn one(id: u64) -> String {
        format!("{LIST}{id}/")
    }

    /// A channel in a group.
    fn channel(id: u32, group: u64) -> Channel {
        let group = Some(GroupId(u32::try_from(group).unwrap()));
        let uuid = Uuid::from_u128(u128::from(id));
        Channel { group, ..Channel::new(ChannelId(id), uuid, format!("channel {id}"), 0) }
    }

    #[tokio::test]
    async fn a_group_is_made_shown_renamed_and_deleted() {
        let rest = Rest::start().await;
        let id = make(&rest, " News ").await;
        let shown = json!({ "id": id, "name": "News", "channel_count": 0, "m3u_account_count": 0 });
        assert_eq!(rest.standard("GET", &one(id), Value::Null).await.body, shown);
        let renamed = rest.admin("PUT", &one(id), json!({ "name": "Sports" })).await;
        assert_eq!((renamed.status, &renamed.body["name"]), (200, &json!("Sports")));
        let same = rest.admin("PATCH", &one(id), json!({})).await;
        assert_eq!((same.status, same.body), (200, renamed.body));
        assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
        let gone = rest.standard("GET", &one(id), Value::Null).await;
        let detail = json!({ "detail": "No ChannelGroup matches the given query." });
        assert_eq!((gone.status, gone.body), (404, detail));
    }

    #[tokio::test]
    async fn two_groups_cannot_have_one_name_not_even_an_old_one() {
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
    async fn a_group_that_streams_are_in_under_an_old_name_counts_their_accounts_and_is_not_cleared_away() {
        let rest = Rest::start().await;
        let id = make(&rest, "News").await;
        rest.admin("PATCH", &one(id), json!({ "name": "World" })).await;
        let stream = |id, group: &str| {
            let facts = StreamProperties {
                name: "one".to_owned(),
                url: SourceUrl::new("http://provider.example/1"),
                headers: RequestHeaders::default(),
                tvg_id: None,
                group: Some(group.to_owned()),
                logo: None,
                number: None,
            };
            Stream::new(StreamId(id), CUSTOM_ACCOUNT, facts, 0)
        };
        rest.put([stream(1, "News"), stream(2, "World")]).await;
        rest.models.streams.at(rest.models.store.version()).await.unwrap();
        assert_eq!(rest.standard("GET", &one(id), Value::Null).await.body["m3u_account_count"], 1);
        assert_eq!(rest.admin("POST", CLEAN_UP, Value::Null).await.body["deleted_count"], 0);
        assert_eq!(rest.admin("DELETE", &one(id), Value::Null).await.status, 204);
    }

    #[tokio::test]
    async fn a_group_with_channels_is_kept_and_counts_them() {
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
        let detail = json!({ "detail": "A group that has channels cannot be deleted." });
        assert_eq!((refused.status, refused.body), (400, detail));
        let cleaned = rest.admin("POST", CLEAN_UP, Value::Null).await;
        assert_eq!(
            (cleaned.status, cleaned.body),
            (200, json!({ "message": "Deleted 1 groups", "deleted_count": 1, "deleted_groups": ["free"] }))
        );
        assert_eq!(rest.standard("GET", &one(used), Value::Null).await.status, 200);
    }
}
