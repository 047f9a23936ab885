//! `/api/m3u/server-groups/`: accounts that share one limit of connections.

use std::sync::Arc;

use actors::now_ms;
use domain::account::Account;
use domain::ids::{AccountId, ServerGroupId};
use domain::server_group::{SERVER_GROUP_NAME_CHARS_MAX, ServerGroup};
use resource_derive::{Query, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use server::reply::Refusal;
use storage::{Table, Write};

use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{Lookup, RecordCall, Render, find, set};

/// A server group: accounts whose connections the provider counts together.
#[derive(Clone, Debug, Serialize, View)]
#[resource(new = NewServerGroup, edit = ServerGroupEdit)]
pub(crate) struct ServerGroupView {
    /// Assigned by the gateway and never reused.
    #[field(example = "1")]
    id: ServerGroupId,
    /// Unique name.
    #[field(required, chars_max = SERVER_GROUP_NAME_CHARS_MAX, example = "Provider")]
    name: String,
    /// Maximum number of connections of all accounts of the group together. 0: no number of its own; the limit of each
    /// account profile also applies to the connections of the whole group.
    #[field(edit, example = "2")]
    max_streams: u32,
    /// Ids of the accounts of the group. An account joins with its field `server_group`.
    #[field(example = "[2, 3]")]
    accounts: Vec<AccountId>,
}

/// Filters of the list of server groups.
#[derive(Debug, Query)]
struct Filters {
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<ByName>>,
}

const LIST: &str = "/api/m3u/server-groups/";
const ONE: &str = "/api/m3u/server-groups/{id}/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, STANDARD, "Lists server groups.", list),
        Route::post(LIST, ADMIN, "Creates a server group.", create),
        Route::get(ONE, STANDARD, "Returns a server group.", retrieve),
        Route::put(ONE, ADMIN, "Updates a server group.", update),
        Route::patch(ONE, ADMIN, "Partially updates a server group.", update),
        Route::delete(ONE, ADMIN, "Deletes a server group. Its accounts stay, without a group.", delete),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<ServerGroupView>, Refusal> {
    let groups = call.rest().models.server_groups.load();
    let mut groups: Vec<_> =
        groups.iter().filter(|it| matches(filters.search.as_ref(), [&it.name])).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Id));
    ordering.sort(&mut groups, |it| it.id, |it| &it.name);
    paging.render(&call, &groups)
}

async fn retrieve(call: Call) -> Result<ServerGroupView, Refusal> {
    call.retrieve(&call.rest().models.server_groups.load())
}

async fn create(call: Call, new: NewServerGroup) -> Result<Created<ServerGroupView>, Refusal> {
    let max_streams = new.max_streams.unwrap_or(0);
    call.create(move |_, id| Ok(ServerGroup { id: ServerGroupId(id), name: new.name, max_streams })).await
}

async fn update(call: Call, edit: ServerGroupEdit) -> Result<ServerGroupView, Refusal> {
    call.update(move |_, group: &mut ServerGroup| {
        set(&mut group.name, edit.name);
        set(&mut group.max_streams, edit.max_streams);
        Ok(())
    })
    .await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        find::<ServerGroup>(write, id)?;
        for mut account in write.all::<Account>()? {
            if account.server_group == Some(ServerGroupId(id)) {
                account.server_group = None;
                account.updated_at = now_ms();
                write.put(&account)?;
            }
        }
        write.remove::<ServerGroup>(id)?;
        Ok(NoContent)
    })
    .await
}

/// Refuses an account whose server group does not exist.
pub(super) fn check(write: &Write<'_>, account: &Account) -> Result<(), Refusal> {
    match account.server_group {
        Some(id) if write.get::<ServerGroup>(id.0)?.is_none() => Err(Refusal::no_such("server_group", id)),
        _ => Ok(()),
    }
}

/// The accounts of all server groups.
pub(crate) struct Members(Arc<Table<Account>>);

impl Lookup for Members {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Members(call.rest().models.accounts.load()))
    }
}

impl Render for ServerGroup {
    type View = ServerGroupView;
    type Lookup = Members;

    fn view(&self, members: &Members) -> ServerGroupView {
        let is_member = |it: &&Arc<Account>| it.server_group == Some(self.id);
        ServerGroupView {
            id: self.id,
            name: self.name.clone(),
            max_streams: self.max_streams,
            accounts: members.0.iter().filter(is_member).map(|it| it.id).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Rest;

    const ACCOUNTS: &str = "/api/m3u/accounts/";

    async fn make(rest: &Rest, path: &str, body: Value) -> u64 {
        let made = rest.admin("POST", path, body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.body["id"].as_u64().unwrap()
    }

    #[tokio::test]
    async fn accounts_join_and_leave_a_server_group() {
        let rest = Rest::start().await;
        let group = make(&rest, LIST, json!({ "name": "Provider" })).await;
        let account = make(&rest, ACCOUNTS, json!({ "name": "a", "server_group": group })).await;
        let path = format!("{LIST}{group}/");
        let shown = json!({ "id": group, "name": "Provider", "max_streams": 0, "accounts": [account] });
        assert_eq!(rest.standard("GET", &path, Value::Null).await.body, shown);
        let edited = rest.admin("PATCH", &path, json!({ "max_streams": 2 })).await;
        assert_eq!((edited.status, &edited.body["max_streams"]), (200, &json!(2)));

        let of_account = format!("{ACCOUNTS}{account}/");
        let left = rest.admin("PATCH", &of_account, json!({ "server_group": null })).await;
        assert_eq!((left.status, &left.body["server_group"]), (200, &Value::Null));
        assert_eq!(rest.standard("GET", &path, Value::Null).await.body["accounts"], json!([]));
        let refused = rest.admin("PATCH", &of_account, json!({ "server_group": 99 })).await;
        let errors = json!({ "server_group": ["Invalid pk \"99\" - object does not exist."] });
        assert_eq!((refused.status, refused.body), (400, errors));

        rest.admin("PATCH", &of_account, json!({ "server_group": group })).await;
        assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 204);
        assert_eq!(rest.admin("GET", &of_account, Value::Null).await.body["server_group"], Value::Null);
        assert_eq!(rest.admin("DELETE", &path, Value::Null).await.status, 404);
    }

    #[tokio::test]
    async fn a_server_group_has_a_unique_name_of_limited_length() {
        let rest = Rest::start().await;
        make(&rest, LIST, json!({ "name": "One", "max_streams": 1 })).await;
        let refused = rest.admin("POST", LIST, json!({ "name": "One" })).await;
        assert_eq!((refused.status, refused.body), (400, json!({ "name": ["This field must be unique."] })));
        for body in [json!({}), json!({ "name": "x".repeat(101) }), json!({ "name": "a", "max_streams": -1 })]
        {
            assert_eq!(rest.admin("POST", LIST, body.clone()).await.status, 400, "{body}");
        }
        let listed = rest.standard("GET", &format!("{LIST}?search=oN&ordering=-name"), Value::Null).await;
        assert_eq!((&listed.body["count"], &listed.body["results"][0]["name"]), (&json!(1), &json!("One")));
    }
}
