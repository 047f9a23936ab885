//! `/api/accounts/users/`: everybody there is, for admins.

use std::sync::Arc;

use actors::now_ms;
use domain::ids::UserId;
use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User, UserLevel, UsernameError, check_username};
use http::StatusCode;
use serde_json::{Map, Value};
use storage::Write;

use super::properties;
use crate::http::reply::Refusal;
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::list::{Ordering, Page, WholeOrPages};
use crate::rest::frame::record::{query, record};
use crate::rest::frame::route::{ADMIN, Created, Done, Route};
use crate::rest::frame::value::{Time, choice};

/// Characters of a password, at most.
pub(super) const PASSWORD_CHARS_MAX: usize = 128;
/// Characters of other texts, at most.
pub(super) const CHARS_MAX: usize = 254;
/// Things that one user may be allowed to watch at one time.
const STREAM_LIMIT_MAX: i64 = 10_000;

record! {
    /// A person or a program that logs in.
    UserAccount / UserEdit {
        read {
            /// Given by the gateway; never given again.
            id: UserId [example("7")],
            /// Shown to its owner only.
            api_key: Option<String>,
            /// The last login with a password, to the minute.
            last_login: Option<Time>,
            /// When the user was made.
            date_joined: Time,
        }
        edit {
            /// Unique, whatever the case of its letters. Letters, digits and `@ . + - _`.
            username: String [required(), chars_max(USERNAME_CHARS_MAX), example("anna")],
            /// For people.
            email: String [blank(), chars_max(CHARS_MAX), example("anna@example.com")],
            /// For people.
            first_name: String [blank(), chars_max(CHARS_MAX)],
            /// For people.
            last_name: String [blank(), chars_max(CHARS_MAX)],
            /// An inactive user is refused everywhere.
            is_active: bool,
            /// For programs that look at it; no right comes of it here.
            is_staff: bool,
            /// Passes every check of level.
            is_superuser: bool,
            /// 0 watches, 1 also sees channels and state, 10 may do everything.
            user_level: UserLevel [required(), example("0")],
            /// Channel profiles that limit what is seen; none of them is no limit.
            channel_profiles: Vec<u32> [items_max(1000)],
            /// Things watched at one time; 0 is no limit.
            stream_limit: u32 [at_most(STREAM_LIMIT_MAX), example("2")],
            /// How the user is drawn.
            avatar_config: Map<String, Value>,
            /// What programs keep with the user, merged key by key; `null` takes a key away. `xc_password` is what
            /// player apps log in with, `hide_adult_content` hides channels that are marked so.
            custom_properties: Map<String, Value>,
        }
        write {
            /// Has to be there for a new user. Every token that was given for the one before ends with it.
            password: Secret [chars_max(PASSWORD_CHARS_MAX)],
        }
    }
}

query! {
    /// Which users.
    Filters {
        /// Part of the name, whatever the case of its letters.
        search: String,
        /// How they are sorted; by id where nothing is said.
        ordering: Ordering<By>,
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum By {
    Id,
    Username,
}
choice!(By { Id = "id", Username = "username" });

const LIST: &str = "/api/accounts/users/";
const ONE: &str = "/api/accounts/users/{id}/";

pub(super) fn routes() -> Vec<Route> {
    let last = "It is the last active superuser.";
    vec![
        Route::get(LIST, ADMIN, "Lists users.", list),
        Route::post(LIST, ADMIN, "Makes a user.", create),
        Route::get(ONE, ADMIN, "Shows a user.", retrieve),
        Route::put(
            ONE,
            ADMIN,
            "Changes a user. The password may be left out, and is then as it was.",
            update,
        ),
        Route::patch(ONE, ADMIN, "Changes of a user what is sent.", update),
        Route::delete(ONE, ADMIN, "Deletes a user.", remove).refuses(StatusCode::BAD_REQUEST, last),
    ]
}

async fn list(call: Call, (filters, paging): (Filters, WholeOrPages)) -> Result<Page<UserAccount>, Refusal> {
    let users = call.app.models.users.load();
    let part = filters.search.map(|it| it.to_lowercase());
    let is_wanted = |user: &User| part.as_ref().is_none_or(|it| user.username.to_lowercase().contains(it));
    let mut users: Vec<_> = users.iter().filter(|it| is_wanted(it)).collect();
    let ordering = filters.ordering.unwrap_or(Ordering { by: By::Id, is_descending: false });
    match ordering.by {
        By::Id => ordering.sort_by(&mut users, |it| it.id),
        By::Username => ordering.sort_by(&mut users, |it| User::name_key(&it.username)),
    }
    let viewer = call.user()?;
    paging.of(&call, &users, |it| UserAccount::of(it, viewer))
}

async fn retrieve(call: Call) -> Result<UserAccount, Refusal> {
    let users = call.app.models.users.load();
    let user = users.get(call.id()?).ok_or_else(Refusal::unknown::<User>)?;
    Ok(UserAccount::of(user, call.user()?))
}

async fn create(call: Call, mut edit: UserEdit) -> Result<Created<UserAccount>, Refusal> {
    let password =
        edit.password.take().ok_or_else(|| Refusal::field("password", "This field is required."))?;
    let mut user = User::new(UserId(0), "", UserLevel::Streamer, now_ms());
    edit.apply(&mut user)?;
    check_name_is_free(&call, &user)?;
    // Last, because it costs more than all the rest.
    user.password = Some(call.app.auth.hash(password.expose().to_owned()).await?);
    let user = call
        .write(move |write| {
            user.id = UserId(write.next_id::<User>()?);
            put(write, &user)?;
            Ok(user)
        })
        .await?;
    Ok(Created(UserAccount::of(&user, call.user()?)))
}

async fn update(call: Call, mut edit: UserEdit) -> Result<UserAccount, Refusal> {
    let id = call.id()?;
    let known = call.app.models.users.load().get(id).cloned().ok_or_else(Refusal::unknown::<User>)?;
    let password = edit.password.take();
    let password = new_password(&call, &known, password, |user| edit.clone().apply(user)).await?;
    let user = call
        .write(move |write| {
            let mut user = find::<User>(write, id)?;
            edit.apply(&mut user)?;
            set_password(&mut user, password);
            if !is_root(&user) && is_last_root(write, id)? {
                let field = if user.is_active { "is_superuser" } else { "is_active" };
                return Err(Refusal::field(field, LAST_ROOT));
            }
            put(write, &user)?;
            Ok(user)
        })
        .await?;
    Ok(UserAccount::of(&user, call.user()?))
}

async fn remove(call: Call) -> Result<Done, Refusal> {
    let id = call.id()?;
    call.write(move |write| {
        find::<User>(write, id)?;
        if is_last_root(write, id)? {
            return Err(Refusal::bad_request(LAST_ROOT));
        }
        write.remove::<User>(id)?;
        Ok(Done)
    })
    .await
}

const LAST_ROOT: &str = "The last active superuser stays one: make another one first.";

fn is_root(user: &User) -> bool {
    user.is_active && user.is_superuser
}

/// Is this user an active superuser, and nobody else?
fn is_last_root(write: &Write<'_>, id: u32) -> Result<bool, Refusal> {
    let roots: Vec<User> = write.all::<User>()?.into_iter().filter(is_root).collect();
    Ok(matches!(&roots[..], [only] if only.id.0 == id))
}

/// The hash of a password that was sent. Made last, because it costs more than all the rest: what else was sent is
/// tried first on the user as known.
pub(super) async fn new_password(
    call: &Call,
    known: &User,
    password: Option<Secret>,
    apply: impl FnOnce(&mut User) -> Result<(), Refusal>,
) -> Result<Option<Secret>, Refusal> {
    let Some(password) = password else { return Ok(None) };
    let mut user = known.clone();
    apply(&mut user)?;
    check_name_is_free(call, &user)?;
    Ok(Some(call.app.auth.hash(password.expose().to_owned()).await?))
}

/// For who is about to do something dear; that nobody has the name is certain only while it is written.
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

/// A new password ends every token that was given for the one before.
pub(super) fn set_password(user: &mut User, hash: Option<Secret>) {
    if hash.is_some() {
        user.password = hash;
        user.generation = user.generation.wrapping_add(1);
    }
}

/// Writes a user, unless somebody else has the name.
pub(super) fn put(write: &mut Write<'_>, user: &User) -> Result<(), Refusal> {
    let same_name = write.by::<User>("username", User::name_key(&user.username))?;
    if same_name.iter().any(|it| it.id != user.id) {
        return Err(name_is_taken());
    }
    Ok(write.put(user)?)
}

/// A name that a user may have.
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

/// Nothing, or something with an `@` between two other things.
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
    /// What was sent goes over what is there, the password apart.
    fn apply(self, user: &mut User) -> Result<(), Refusal> {
        if let Some(name) = self.username {
            // One that was given by other means may stay.
            user.username = if name == user.username { name } else { check_name(&name)? };
        }
        if let Some(email) = self.email {
            user.email = check_email(email)?;
        }
        if let Some(id) = self.channel_profiles.iter().flatten().next() {
            // There is no channel profile that it could be.
            return Err(Refusal::no_such("channel_profiles", id));
        }
        user.first_name = self.first_name.unwrap_or_else(|| std::mem::take(&mut user.first_name));
        user.last_name = self.last_name.unwrap_or_else(|| std::mem::take(&mut user.last_name));
        user.is_active = self.is_active.unwrap_or(user.is_active);
        user.is_staff = self.is_staff.unwrap_or(user.is_staff);
        user.is_superuser = self.is_superuser.unwrap_or(user.is_superuser);
        user.level = self.user_level.unwrap_or(user.level);
        user.stream_limit = self.stream_limit.unwrap_or(user.stream_limit);
        if let Some(avatar) = self.avatar_config {
            properties::check_size("avatar_config", &avatar)?;
            user.avatar = avatar;
        }
        properties::merge(user, self.custom_properties.unwrap_or_default())
    }
}

impl UserAccount {
    /// A user as `viewer` may see them.
    pub(super) fn of(user: &User, viewer: &Arc<User>) -> Self {
        let is_own = viewer.id == user.id;
        let key = user.api_key.as_ref().filter(|_| is_own);
        UserAccount {
            id: user.id,
            api_key: key.map(|it| it.key.expose().to_owned()),
            last_login: user.last_login.map(Time),
            date_joined: Time(user.joined_at),
            username: user.username.clone(),
            email: user.email.clone(),
            first_name: user.first_name.clone(),
            last_name: user.last_name.clone(),
            is_active: user.is_active,
            is_staff: user.is_staff,
            is_superuser: user.is_superuser,
            user_level: user.level,
            channel_profiles: user.lineups.clone(),
            stream_limit: user.stream_limit,
            avatar_config: user.avatar.clone(),
            custom_properties: properties::shown(user, is_own || viewer.may(UserLevel::Admin)),
        }
    }
}
