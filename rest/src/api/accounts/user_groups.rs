//! `/api/accounts/groups/` and `/api/accounts/permissions/`: groups of users, and the permissions that they and users
//! can hold. The level of a user decides what the user may do; a few permissions add to level 0 and 1, once an admin has given
//! or confirmed them.

use std::collections::BTreeSet;
use std::sync::Arc;

use domain::ids::{PermissionId, UserGroupId, UserId};
use domain::user::User;
use domain::user_group::{
    Permission, USER_GROUP_NAME_CHARS_MAX, UserGroup, held_permissions, permissions_of,
};
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use serde::Serialize;
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::{Table, Write};

use super::user_view::unconfirmed;
use crate::context::RestCall;
use crate::list::{ByName, Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{Lookup, RecordCall, Render, find, set};

/// A group of users, with permissions that its users hold.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "Group", new = NewUserGroup, edit = UserGroupEdit)]
pub(crate) struct UserGroupView {
    /// Assigned by the gateway and never reused.
    #[field(example = "7")]
    id: UserGroupId,
    /// Number of users in the group.
    #[field(example = "2")]
    user_count: usize,
    /// Unique name.
    #[field(required, chars_max = USER_GROUP_NAME_CHARS_MAX, example = "Family")]
    name: String,
    /// Ids of permissions. An admin who adds one confirms it for the users of the group.
    #[field(edit, items_max = PERMISSIONS_MAX, example = "[4]")]
    permissions: Vec<PermissionId>,
}

/// A permission that users and groups can hold.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "Permission")]
pub(crate) struct PermissionView {
    /// Id of the permission. Never changes.
    #[field(example = "4")]
    id: PermissionId,
    /// Name for people.
    #[field(example = "Can view user")]
    name: String,
    /// Name for programs.
    #[field(example = "view_user")]
    codename: String,
    /// Its effect once an admin has given or confirmed it; `null` without one.
    effect: Option<&'static str>,
}

/// A user with permissions that nobody has confirmed.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct UnconfirmedView {
    /// Id of the user.
    #[field(example = "7")]
    id: UserId,
    /// Name of the user.
    #[field(example = "anna")]
    username: String,
    /// Codenames of the permissions with an effect that the user holds, but that have none yet.
    #[field(example = "[\"add_recording\"]")]
    permissions: Vec<String>,
}

/// Selects users.
#[derive(Debug, Body)]
struct Confirmation {
    /// Ids of the users whose present permissions get their effect.
    #[field(items_max = PERMISSIONS_MAX, example = "[7]")]
    user_ids: Vec<UserId>,
}

/// Result of a confirmation.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct ConfirmationView {
    /// Number of users whose permissions got an effect.
    #[field(example = "1")]
    confirmed_count: usize,
}

/// Filters of the list of groups.
#[derive(Debug, Query)]
struct Filters {
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<ByName>>,
}

/// Selects the permissions.
#[derive(Debug, Query)]
struct Holder {
    /// Id of a user. Selects the permissions that the user holds, directly or through a group; by default all that exist.
    user_id: Option<UserId>,
}

/// Maximum number of permissions in one list: more than exist.
pub(super) const PERMISSIONS_MAX: usize = 1_000;

const LIST: &str = "/api/accounts/groups/";
const ONE: &str = "/api/accounts/groups/{id}/";
const UNCONFIRMED: &str = "/api/accounts/permissions/unconfirmed/";
const CONFIRM: &str = "/api/accounts/permissions/confirm/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(LIST, ADMIN, "Lists groups of users.", list),
        Route::post(LIST, ADMIN, "Creates a group of users.", create),
        Route::get(ONE, ADMIN, "Returns a group of users.", retrieve),
        Route::put(ONE, ADMIN, "Updates a group of users.", update),
        Route::patch(ONE, ADMIN, "Partially updates a group of users.", update),
        Route::delete(ONE, ADMIN, "Deletes a group of users, but not its users.", delete),
        Route::get("/api/accounts/permissions/", ADMIN, "Lists permissions.", permissions)
            .refuses(StatusCode::NOT_FOUND, "The user does not exist."),
        Route::get(
            UNCONFIRMED,
            ADMIN,
            "Lists the users with permissions from before these had an effect, which nobody has confirmed.",
            unconfirmed_users,
        ),
        Route::post(
            CONFIRM,
            ADMIN,
            "Sets the present permissions of users as confirmed: they get their effect.",
            confirm,
        )
        .not_for_plugins("An admin confirms permissions."),
    ]
}

async fn list(
    call: Call,
    (filters, paging): (Filters, WholeOrPages),
) -> Result<Page<UserGroupView>, Refusal> {
    let groups = call.rest().models.user_groups.load();
    let mut groups: Vec<_> =
        groups.iter().filter(|it| matches(filters.search.as_ref(), [&it.name])).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(ByName::Id));
    ordering.sort(&mut groups, |it| it.id, |it| &it.name);
    paging.render(&call, &groups)
}

async fn retrieve(call: Call) -> Result<UserGroupView, Refusal> {
    call.retrieve(&call.rest().models.user_groups.load())
}

async fn create(call: Call, new: NewUserGroup) -> Result<Created<UserGroupView>, Refusal> {
    let permissions = check_permissions(new.permissions.unwrap_or_default())?;
    call.create(move |_, id| Ok(UserGroup { id: UserGroupId(id), name: new.name, permissions })).await
}

async fn update(call: Call, edit: UserGroupEdit) -> Result<UserGroupView, Refusal> {
    let permissions = edit.permissions.map(check_permissions).transpose()?;
    let by_admin = call.owner()?.is_some();
    call.update(move |write, group: &mut UserGroup| {
        let before = write.all::<UserGroup>()?;
        set(&mut group.name, edit.name);
        set(&mut group.permissions, permissions);
        let mut after = before.clone();
        after.iter_mut().filter(|it| it.id == group.id).for_each(|it| it.clone_from(group));
        follow(write, group.id, (&before, &after), by_admin, |_| {})
    })
    .await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = UserGroupId(call.id()?);
    call.write(move |write| {
        find::<UserGroup>(write, id.0)?;
        let groups = write.all::<UserGroup>()?;
        follow(write, id, (&groups, &groups), false, |user| user.groups.retain(|it| *it != id))?;
        write.remove::<UserGroup>(id.0)?;
        Ok(NoContent)
    })
    .await
}

/// Changes the users of a group, which had other permissions before.
fn follow(
    write: &mut Write<'_>,
    id: UserGroupId,
    (before, after): (&[UserGroup], &[UserGroup]),
    by_admin: bool,
    change: impl Fn(&mut User),
) -> Result<(), Refusal> {
    for mut user in write.all::<User>()?.into_iter().filter(|it| it.groups.contains(&id)) {
        let (present, held_before) = (user.clone(), held_permissions(&user, before));
        change(&mut user);
        let held = held_permissions(&user, after);
        user.follow_permissions(&held_before, &held, by_admin);
        if user != present {
            write.put(&user)?;
        }
    }
    Ok(())
}

async fn unconfirmed_users(call: Call, paging: WholeOrPages) -> Result<Page<UnconfirmedView>, Refusal> {
    let (users, groups) = (call.rest().models.users.load(), call.rest().models.user_groups.load());
    let view = |user: &Arc<User>| {
        let permissions = unconfirmed(user, &permissions_of(user, groups.iter().map(|it| &**it)));
        let username = user.username.clone();
        (!permissions.is_empty()).then(|| UnconfirmedView { id: user.id, username, permissions })
    };
    paging.page_from(&call, users.iter().filter_map(view).collect())
}

async fn confirm(call: Call, sent: Confirmation) -> Result<ConfirmationView, Refusal> {
    call.write(move |write| {
        let groups = write.all::<UserGroup>()?;
        let mut confirmed_count = 0;
        for id in sent.user_ids.into_iter().collect::<BTreeSet<_>>() {
            let mut user = write.get::<User>(id.0)?.ok_or_else(|| Refusal::no_such("user_ids", id))?;
            let held = held_permissions(&user, &groups);
            if user.granted != held {
                user.granted = held;
                write.put(&user)?;
                confirmed_count += 1;
            }
        }
        Ok(ConfirmationView { confirmed_count })
    })
    .await
}

async fn permissions(
    call: Call,
    (holder, paging): (Holder, WholeOrPages),
) -> Result<Page<PermissionView>, Refusal> {
    let permissions: Vec<Permission> = match holder.user_id {
        Some(id) => {
            let user =
                call.rest().models.users.load().get(id.0).cloned().ok_or_else(Refusal::unknown::<User>)?;
            let groups = call.rest().models.user_groups.load();
            permissions_of(&user, groups.iter().map(|it| &**it))
        }
        None => Permission::all().collect(),
    };
    let view = |it: &Permission| PermissionView {
        id: it.id,
        name: it.name(),
        codename: it.codename(),
        effect: it.effect(),
    };
    paging.render_with(&call, &permissions, view)
}

/// Returns the permissions as a set if all of them exist.
pub(super) fn check_permissions(ids: Vec<PermissionId>) -> Result<BTreeSet<PermissionId>, FieldErrors> {
    let unknown = ids.iter().find(|it| Permission::from_id(**it).is_none());
    match unknown {
        Some(id) => {
            let message = format!("Invalid pk \"{id}\" - object does not exist.");
            Err(FieldErrors::new("permissions", message))
        }
        None => Ok(ids.into_iter().collect()),
    }
}

/// All users, to count those of a group.
pub(crate) struct AllUsers(Arc<Table<User>>);

impl Lookup for AllUsers {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Self(call.rest().models.users.load()))
    }
}

impl Render for UserGroup {
    type View = UserGroupView;
    type Lookup = AllUsers;

    fn view(&self, AllUsers(users): &AllUsers) -> UserGroupView {
        UserGroupView {
            id: self.id,
            user_count: users.iter().filter(|it| it.groups.contains(&self.id)).count(),
            name: self.name.clone(),
            permissions: self.permissions.iter().copied().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Rest, SUPERUSER};

    #[tokio::test]
    async fn a_group_gives_its_permissions_to_its_users_until_it_is_deleted() {
        let rest = Rest::start().await;
        let all = rest.admin("GET", "/api/accounts/permissions/", Value::Null).await.body;
        let first = json!({ "id": 1, "name": "Can add user", "codename": "add_user", "effect": null });
        assert_eq!((&all["count"], &all["results"][0]), (&json!(64), &first));

        let made = rest.admin("POST", LIST, json!({ "name": "Family", "permissions": [12, 12] })).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let group = format!("{LIST}{}/", made.body["id"]);
        let user = json!({
            "username": "anna", "password": "x", "user_level": 0, "groups": [made.body["id"]], "permissions": [4],
        });
        let anna = rest.admin("POST", "/api/accounts/users/", user).await;
        assert_eq!(anna.status, 201, "{}", anna.text);
        assert_eq!(
            (&anna.body["groups"], &anna.body["permissions"], &anna.body["all_permissions"]),
            (&json!([made.body["id"]]), &json!([4]), &json!(["view_user", "view_channel"]))
        );
        let shown = rest.admin("GET", &group, Value::Null).await.body;
        let expected =
            json!({ "id": made.body["id"], "name": "Family", "permissions": [12], "user_count": 1 });
        assert_eq!(shown, expected);
        let held = format!("/api/accounts/permissions/?user_id={}", anna.body["id"]);
        assert_eq!(rest.admin("GET", &held, Value::Null).await.body["count"], 2);
        let root = format!("/api/accounts/permissions/?user_id={SUPERUSER}");
        assert_eq!(rest.admin("GET", &root, Value::Null).await.body["count"], 64);

        let renamed = rest.admin("PUT", &group, json!({ "name": "Home" })).await;
        assert_eq!((renamed.status, &renamed.body["permissions"]), (200, &json!([12])));
        assert_eq!(rest.admin("DELETE", &group, Value::Null).await.status, 204);
        let path = format!("/api/accounts/users/{}/", anna.body["id"]);
        let after = rest.admin("GET", &path, Value::Null).await.body;
        assert_eq!((&after["groups"], &after["all_permissions"]), (&json!([]), &json!(["view_user"])));
    }

    #[tokio::test]
    async fn unknown_permissions_groups_and_users_are_refused_by_field() {
        let rest = Rest::start().await;
        let unknown = |id: u32| json!([format!("Invalid pk \"{id}\" - object does not exist.")]);
        let refused = rest.admin("POST", LIST, json!({ "name": "a", "permissions": [999] })).await;
        assert_eq!((refused.status, &refused.body["permissions"]), (400, &unknown(999)));
        for (field, id) in [("permissions", 65), ("groups", 7), ("channel_profiles", 9)] {
            let refused = rest.admin("PATCH", "/api/accounts/users/1/", json!({ field: [id] })).await;
            assert_eq!((refused.status, &refused.body[field]), (400, &unknown(id)), "{}", refused.text);
        }
        let path = "/api/accounts/permissions/?user_id=99";
        assert_eq!(rest.admin("GET", path, Value::Null).await.status, 404);
        rest.admin("POST", LIST, json!({ "name": "a" })).await;
        let taken = rest.admin("POST", LIST, json!({ "name": "a" })).await;
        assert_eq!(taken.body, json!({ "name": ["This field must be unique."] }));
    }
}
