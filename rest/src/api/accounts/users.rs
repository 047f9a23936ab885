//! `/api/accounts/users/`: all users, for admins.

use std::collections::BTreeSet;

use actors::now_ms;
use domain::group::Group;
use domain::ids::{GroupId, UserId};
use domain::lineup::Lineup;
use domain::secret::Secret;
use domain::user::{PasswordHash, User, UserLevel, is_last_superuser};
use domain::user_group::{UserGroup, held_permissions};
use http::StatusCode;
use resource_derive::Query;
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;
use storage::records::remove_playlists_of;

use super::user_groups::check_permissions;
use super::user_rules::{check_email, check_name};
use super::user_view::{NewUser, UserEdit, UserView};
use super::viewing_times::set_sleep;
use super::{api_keys, avatar, logins, passwords, pictures, properties};
use crate::choice::choice;
use crate::context::RestCall;
use crate::list::{Ordering, Page, Search, WholeOrPages, matches};
use crate::record::{RecordCall, find, refuse_if, set, set_fields};

/// Filters of the list of users.
#[derive(Debug, Query)]
pub(crate) struct Filters {
    /// Part of the name, regardless of case.
    search: Option<Search>,
    /// Order of the list; by id by default.
    ordering: Option<Ordering<By>>,
}

choice!(
    enum By {
        Id = "id",
        Username = "username",
    }
);

const LIST: &str = "/api/accounts/users/";
const ONE: &str = "/api/accounts/users/{id}/";

pub(super) fn routes() -> Vec<Route> {
    let last = "The user is the last active superuser.";
    vec![
        Route::get(LIST, ADMIN, "Lists users.", list),
        Route::post(LIST, ADMIN, "Creates a user.", create).with_properties_body(),
        Route::get(ONE, ADMIN, "Returns a user.", retrieve),
        Route::put(ONE, ADMIN, "Updates a user. Omit the password to keep it.", update)
            .with_properties_body(),
        Route::patch(ONE, ADMIN, "Partially updates a user.", update).with_properties_body(),
        Route::delete(ONE, ADMIN, "Deletes a user.", delete).refuses(StatusCode::BAD_REQUEST, last),
    ]
}

async fn list(call: Call, (filters, paging): (Filters, WholeOrPages)) -> Result<Page<UserView>, Refusal> {
    let users = call.rest().models.users.load();
    let is_wanted = |user: &User| matches(filters.search.as_ref(), [&user.username]);
    let mut users: Vec<_> = users.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering::ascending(By::Id));
    match ordering.by {
        By::Id => ordering.sort_by(&mut users, |it| it.id),
        By::Username => ordering.sort_by(&mut users, |it| User::name_key(&it.username)),
    }
    paging.render(&call, &users)
}

async fn retrieve(call: Call) -> Result<UserView, Refusal> {
    call.retrieve(&call.rest().models.users.load())
}

async fn create(call: Call, new: NewUser) -> Result<Created<UserView>, Refusal> {
    let mut edit = UserEdit::from(new);
    let key = api_keys::checked_key(&call, "api_key", edit.api_key.take().flatten().map(|it| it.0))?;
    let password = edit.password.take().ok_or_else(|| FieldErrors::required("password"))?;
    let mut user = User::new(UserId(0), "", UserLevel::Streamer, now_ms());
    edit.apply(&mut user)?;
    check_name_is_free(&call, &user)?;
    user.api_key = key;
    // Hashed last, because hashing is expensive.
    user.set_password(passwords::hash(&call, &user, &password).await?);
    let by_admin = call.owner()?.is_some();
    call.create(move |write, id| {
        user.id = UserId(id);
        check_name_of(write, &user)?;
        check_references(write, &user, &[])?;
        let held = held_permissions(&user, &write.all::<UserGroup>()?);
        user.follow_permissions(&BTreeSet::new(), &held, by_admin);
        Ok(user)
    })
    .await
}

async fn update(call: Call, mut edit: UserEdit) -> Result<UserView, Refusal> {
    let id = call.id()?;
    let known = call.rest().models.users.load().get(id).cloned().ok_or_else(Refusal::unknown::<User>)?;
    let key = api_keys::checked_key(&call, "api_key", edit.api_key.take().flatten().map(|it| it.0))?;
    let password = edit.password.take();
    if known.id == call.identity()?.id {
        properties::check_own_networks(&call, |user| edit.clone().apply(user))?;
        if password.is_some() {
            passwords::check_current(&call, &known, edit.current_password.as_ref()).await?;
        }
    }
    let password = new_password(&call, &known, password, |user| edit.clone().apply(user)).await?;
    let (revokes, kept) = (edit.revoke_secrets == Some(true) && password.is_some(), logins::current(&call));
    let by_admin = call.owner()?.is_some();
    call.update(move |write, user: &mut User| {
        let before = user.effective_level();
        let groups = write.all::<UserGroup>()?;
        let (held_before, groups_before) = (held_permissions(user, &groups), user.channel_groups.clone());
        edit.apply(user)?;
        let held = held_permissions(user, &groups);
        user.follow_permissions(&held_before, &held, by_admin);
        if key.is_some() {
            user.api_key = key;
        }
        logins::replace_password(write, user, password, kept)?;
        passwords::check_promotion(before, user)?;
        if revokes {
            user.revoke_secrets();
        }
        if !(user.is_active && user.is_superuser) && is_last(write, id)? {
            let field = if user.is_active { "is_superuser" } else { "is_active" };
            return Err(Refusal::field(field, LAST_SUPERUSER));
        }
        check_references(write, user, &groups_before)?;
        check_name_of(write, user)
    })
    .await
}

async fn delete(call: Call) -> Result<NoContent, Refusal> {
    let id = UserId(call.id()?);
    call.write(move |write| {
        find::<User>(write, id.0)?;
        refuse_if(is_last(write, id.0)?, LAST_SUPERUSER)?;
        logins::end_all(write, id)?;
        remove_playlists_of(write, id)?;
        write.remove::<User>(id.0)?;
        Ok(())
    })
    .await?;
    pictures::remove_unused(call.rest(), id.0).await;
    Ok(NoContent)
}

const ADMIN_EXPIRES: &str =
    "The account of an admin has no end. Set this field to null, or choose a lower level.";
const LAST_SUPERUSER: &str = "This is the last active superuser. Create another one first.";

fn is_last(write: &Write<'_>, id: u32) -> Result<bool, Refusal> {
    Ok(is_last_superuser(&write.all::<User>()?, UserId(id)))
}

/// Returns the hash of a new password. Hashing is expensive, so the rest of the edit is checked first, on the user as
/// known.
pub(super) async fn new_password(
    call: &Call,
    known: &User,
    password: Option<Secret>,
    apply: impl FnOnce(&mut User) -> Result<(), Refusal>,
) -> Result<Option<PasswordHash>, Refusal> {
    let Some(password) = password else { return Ok(None) };
    let mut user = known.clone();
    apply(&mut user)?;
    check_name_is_free(call, &user)?;
    Ok(Some(passwords::hash(call, &user, &password).await?))
}

/// Checks early that the name is free, to avoid an expensive hash; the write checks again.
fn check_name_is_free(call: &Call, user: &User) -> Result<(), Refusal> {
    let users = call.rest().models.users.load();
    match users.one_by("username", User::name_key(&user.username)) {
        Some(other) if other.id != user.id => Err(name_is_taken()),
        _ => Ok(()),
    }
}

fn name_is_taken() -> Refusal {
    Refusal::field("username", "A user with that username already exists.")
}

/// Refuses a user whose name another one has.
pub(super) fn check_name_of(write: &Write<'_>, user: &User) -> Result<(), Refusal> {
    let same_name = write.by::<User>("username", User::name_key(&user.username))?;
    if same_name.iter().any(|it| it.id != user.id) { Err(name_is_taken()) } else { Ok(()) }
}

/// Refuses lineups and groups that do not exist. A channel group that the user had before may have been deleted since.
fn check_references(write: &Write<'_>, user: &User, groups_before: &[GroupId]) -> Result<(), Refusal> {
    for id in user.channel_groups.iter().filter(|it| !groups_before.contains(it)) {
        write.get::<Group>(id.0)?.ok_or_else(|| Refusal::no_such("channel_group_ids", id))?;
    }
    for id in &user.lineups {
        write.get::<Lineup>(id.0)?.ok_or_else(|| Refusal::no_such("channel_profiles", id))?;
    }
    for id in &user.groups {
        write.get::<UserGroup>(id.0)?.ok_or_else(|| Refusal::no_such("groups", id))?;
    }
    Ok(())
}

/// Returns each item once, in the order of the first ones.
fn distinct<T: Copy + Ord>(items: Vec<T>) -> Vec<T> {
    let mut seen = BTreeSet::new();
    items.into_iter().filter(|it| seen.insert(*it)).collect()
}

impl UserEdit {
    /// Applies the edit, except for the password.
    fn apply(self, user: &mut User) -> Result<(), Refusal> {
        if let Some(name) = self.username {
            // An unchanged name may violate the rules, because other tools can set it.
            user.username = if name == user.username { name } else { check_name(&name)? };
        }
        if let Some(email) = self.email {
            user.email = check_email(email)?;
        }
        set(&mut user.lineups, self.channel_profiles.map(distinct));
        set(&mut user.groups, self.groups.map(distinct));
        set(&mut user.permissions, self.permissions.map(check_permissions).transpose()?);
        set_fields!(user from self: first_name, last_name, is_active, is_staff, is_superuser, stream_limit);
        set(&mut user.level, self.user_level);
        set(&mut user.expires_at, self.exp_date.map(|it| it.map(|it| it.0)));
        if user.expires_at.is_some() && user.effective_level() == UserLevel::Admin {
            return Err(Refusal::field("exp_date", ADMIN_EXPIRES));
        }
        set(&mut user.channel_groups, self.channel_group_ids.map(distinct));
        set(&mut user.allowed_hours, self.allowed_hours.map(|it| it.map(|it| it.0)));
        set_sleep(user, self.sleep_until, self.sleep_minutes)?;
        if let Some(config) = self.avatar_config {
            avatar::check(&config)?;
            user.avatar = config;
        }
        properties::merge(user, self.custom_properties.unwrap_or_default())
    }
}
