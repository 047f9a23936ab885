//! `/api/accounts/users/`: all users, for admins.

use std::collections::BTreeSet;
use std::sync::Arc;

use actors::now_ms;
use domain::core_settings::DVR_SETTINGS;
use domain::ids::{LineupId, PermissionId, UserGroupId, UserId};
use domain::lineup::Lineup;
use domain::recording::DvrSettings;
use domain::secret::Secret;
use domain::user::{
    API_KEY_CHARS, PasswordHash, USERNAME_CHARS_MAX, User, UserLevel, UsernameError, check_username,
    is_last_superuser,
};
use domain::user_group::{Permission, UserGroup, permissions_of};
use http::StatusCode;
use resource_derive::{Query, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::{Created, NoContent, Route};
use route_frame::value::{ShownSecret, Time, WriteOnly};
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::records::remove_playlists_of;
use storage::{Table, Write};

use super::user_groups::{PERMISSIONS_MAX, check_permissions};
use super::{api_keys, avatar, logins, passwords, pictures, properties};
use crate::rest::choice::choice;
use crate::rest::list::{Ordering, Page, Search, WholeOrPages, matches};
use crate::rest::record::{Lookup, RecordCall, Render, find, refuse_if, set, set_fields, view_from};

/// Maximum length of a password, in characters.
pub(super) const PASSWORD_CHARS_MAX: usize = 128;
/// Maximum length of other texts, in characters.
pub(super) const CHARS_MAX: usize = 254;
/// Maximum number of concurrent streams that a user may be granted.
const STREAM_LIMIT_MAX: i64 = 10_000;

/// A person or a program with credentials.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "UserAccount", new = NewUser, edit = UserEdit)]
pub(crate) struct UserView {
    /// Assigned by the gateway and never reused.
    #[field(example = "7")]
    id: UserId,
    /// Codenames of the permissions that the user holds, directly or through a group.
    #[field(example = "[\"view_channel\"]")]
    all_permissions: Vec<String>,
    /// URL of the picture; `null` if the user has none, or initials instead.
    avatar_url: Option<String>,
    /// Time of the last login with a password, to the minute.
    last_login: Option<Time>,
    /// When the user was created.
    date_joined: Time,
    /// Unique regardless of case. Letters, digits and `@ . + - _`.
    #[field(required, chars_max = USERNAME_CHARS_MAX, example = "anna")]
    username: String,
    /// Email address, for information only.
    #[field(edit, blank, chars_max = CHARS_MAX, example = "anna@example.com")]
    email: String,
    /// First name, for information only.
    #[field(edit, blank, chars_max = CHARS_MAX)]
    first_name: String,
    /// Last name, for information only.
    #[field(edit, blank, chars_max = CHARS_MAX)]
    last_name: String,
    /// Inactive users are refused everywhere.
    #[field(edit)]
    is_active: bool,
    /// For clients that read it; grants no permission.
    #[field(edit)]
    is_staff: bool,
    /// Grants every permission, regardless of the level.
    #[field(edit)]
    is_superuser: bool,
    /// 0 may watch, 1 may also see channels and status, 10 may do everything.
    #[field(required, example = "0")]
    user_level: UserLevel,
    /// Ids of channel profiles. A user below level 10 sees only their channels; an empty list means no limit.
    #[field(edit, items_max = 1000, example = "[]")]
    channel_profiles: Vec<LineupId>,
    /// Ids of groups of users.
    #[field(edit, items_max = 1000, example = "[]")]
    groups: Vec<UserGroupId>,
    /// Ids of the permissions that the user holds directly. They are kept for clients and grant nothing; the level does.
    #[field(edit, aliases = &["user_permissions"], items_max = PERMISSIONS_MAX, example = "[4]")]
    permissions: Vec<PermissionId>,
    /// Maximum number of concurrent streams; 0 means no limit.
    #[field(edit, at_most = STREAM_LIMIT_MAX, example = "2")]
    stream_limit: u32,
    /// Whether the user may schedule recordings: admins may, and users of level 1 if `dvr_settings` allows it.
    may_record: bool,
    /// Appearance of the user in clients: `type` is `gravatar`, `initials`, `upload` or `url`; also `url`, `initials`,
    /// `color`, `email`, and `fallback` with `type`, `initials`, `background` and `color`.
    #[field(edit)]
    avatar_config: Map<String, Value>,
    /// Custom data, merged key by key; `null` removes a key. `xc_password` is the password for player apps,
    /// `hide_adult_content` hides channels that are marked as adult, `allowed_networks` lists the networks from which the
    /// user may use each surface (`UI`, `STREAMS`, `XC_API`, `M3U_EPG`, `TUNER`, `METRICS`); an empty list is no limit.
    #[field(edit)]
    custom_properties: Map<String, Value>,
    /// Visible to its owner only. A text sets the key: at least 32 characters, random. `null` and an empty text keep the
    /// present key, because clients send back what they were shown.
    #[field(edit, blank, chars_max = *API_KEY_CHARS.end())]
    api_key: Option<ShownSecret>,
    /// Required for a new user. A new password ends all logins of the user. That of an admin has at least 10 characters,
    /// and 8 besides the user name.
    #[field(write_only, chars_max = PASSWORD_CHARS_MAX)]
    #[serde(skip)]
    password: WriteOnly<Secret>,
    /// Required for a new password of the caller.
    #[field(write_only, chars_max = PASSWORD_CHARS_MAX)]
    #[serde(skip)]
    current_password: WriteOnly<Secret>,
    /// Whether the API key and the player password are removed together with the old password.
    #[field(write_only)]
    #[serde(skip)]
    revoke_secrets: WriteOnly<bool>,
}

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
    let users = call.app.models.users.load();
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
    call.retrieve(&call.app.models.users.load())
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
    call.create(|write, id| {
        user.id = UserId(id);
        check_name_of(write, &user)?;
        check_references(write, &user)?;
        Ok(user)
    })
    .await
}

async fn update(call: Call, mut edit: UserEdit) -> Result<UserView, Refusal> {
    let id = call.id()?;
    let known = call.app.models.users.load().get(id).cloned().ok_or_else(Refusal::unknown::<User>)?;
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
    call.update(move |write, user: &mut User| {
        let before = user.effective_level();
        edit.apply(user)?;
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
        check_references(write, user)?;
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
    pictures::remove_unused(&call.app, id.0).await;
    Ok(NoContent)
}

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
    let users = call.app.models.users.load();
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

/// Refuses lineups and groups that do not exist.
fn check_references(write: &Write<'_>, user: &User) -> Result<(), Refusal> {
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

/// Returns the name if a user may have it.
pub(super) fn check_name(name: &str) -> Result<String, Refusal> {
    let message = match check_username(name) {
        Ok(()) => return Ok(name.to_owned()),
        Err(UsernameError::Characters) => {
            "Enter a valid username. This value may contain only letters, numbers, and \
             @/./+/-/_ characters."
                .to_owned()
        }
        Err(UsernameError::Length) => format!("Ensure this field has 1 to {USERNAME_CHARS_MAX} characters."),
        Err(UsernameError::Reserved) => {
            "This name is part of an address of the gateway. Choose another one.".to_owned()
        }
    };
    Err(Refusal::field("username", message))
}

/// Accepts an empty text, or an `@` with text on both sides.
pub(super) fn check_email(email: String) -> Result<String, Refusal> {
    let is_address = |it: &str| {
        let has_sides = it.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty());
        has_sides && !it.contains(char::is_whitespace)
    };
    match email.is_empty() || is_address(&email) {
        true => Ok(email),
        false => Err(Refusal::field("email", "Enter a valid email address.")),
    }
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
        if let Some(config) = self.avatar_config {
            avatar::check(&config)?;
            user.avatar = config;
        }
        properties::merge(user, self.custom_properties.unwrap_or_default())
    }
}

/// The user who requested a view, and the groups of all users.
pub(crate) struct UserLookup {
    viewer: Arc<User>,
    settings: DvrSettings,
    groups: Arc<Table<UserGroup>>,
    /// Start of the addresses of pictures.
    origin: String,
}

impl Lookup for UserLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        let groups = call.app.models.user_groups.load();
        let settings = call.app.models.settings.load();
        let settings = DvrSettings::from_setting(settings.one_by("key", DVR_SETTINGS).map(|it| &it.value));
        Ok(Self { viewer: Arc::clone(call.identity()?), settings, groups, origin: call.origin() })
    }
}

impl Render for User {
    type View = UserView;
    type Lookup = UserLookup;

    fn view(&self, UserLookup { viewer, settings, groups, origin }: &UserLookup) -> UserView {
        let is_own = viewer.id == self.id;
        let key = self.api_key.as_ref().filter(|_| is_own);
        let permissions = permissions_of(self, groups.iter().map(|it| &**it));
        view_from!(UserView from self {
            id, last_login, username, email, first_name, last_name, is_active, is_staff, is_superuser, groups,
            permissions, stream_limit;
            api_key: key.map(|it| ShownSecret(it.key.clone())),
            all_permissions: permissions.iter().map(Permission::codename).collect(),
            avatar_url: avatar::url_of(self, origin),
            date_joined: Time(self.joined_at),
            user_level: self.level,
            channel_profiles: self.lineups.clone(),
            may_record: settings.permit(self),
            avatar_config: self.avatar.clone(),
            custom_properties: properties::visible(self, is_own || viewer.may(UserLevel::Admin)),
            password: WriteOnly::HIDDEN,
            current_password: WriteOnly::HIDDEN,
            revoke_secrets: WriteOnly::HIDDEN,
        })
    }
}
