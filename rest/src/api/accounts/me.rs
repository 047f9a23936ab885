//! `/api/accounts/users/me/`: what users see and change of their own account.

use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User};
use resource_derive::Body;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde_json::{Map, Value};
use server::reply::Refusal;

use super::user_rules::{CHARS_MAX, PASSWORD_CHARS_MAX, check_email, check_name};
use super::user_view::UserView;
use super::users::{check_name_of, new_password};
use super::viewing_times::{SLEEP_MINUTES_MAX, set_sleep};
use super::{avatar, logins, passwords, properties};
use crate::record::{RecordCall, find, set};

/// Changes to the caller's own account. Level, groups, channel profiles, channel groups, allowed hours, flags and limits can
/// be changed by admins only, and are ignored here.
#[derive(Clone, Debug, Body)]
pub(crate) struct OwnEdit {
    /// Unique regardless of case. Letters, digits, spaces and signs, except `/ \ ? # % :`.
    #[field(chars_max = USERNAME_CHARS_MAX)]
    username: Option<String>,
    /// Email address, for information only.
    #[field(blank, chars_max = CHARS_MAX)]
    email: Option<String>,
    /// First name, for information only.
    #[field(blank, chars_max = CHARS_MAX)]
    first_name: Option<String>,
    /// Last name, for information only.
    #[field(blank, chars_max = CHARS_MAX)]
    last_name: Option<String>,
    /// Appearance of the user in clients, as in the user.
    avatar_config: Option<Map<String, Value>>,
    /// Merged key by key; `null` removes a key. Keys that only admins may change are ignored: `xc_password`,
    /// `hide_adult_content`, `allowed_networks`, `catchup_enabled`, `recordings_enabled`.
    custom_properties: Option<Map<String, Value>>,
    /// When all streams of the caller end, within 24 hours: a sleep timer. `null` removes it.
    sleep_until: Option<Option<Time>>,
    /// Sets `sleep_until` to this number of minutes from now; 0 removes it.
    #[field(at_least = 0, at_most = SLEEP_MINUTES_MAX)]
    sleep_minutes: Option<u32>,
    /// A new password ends all other logins of the user.
    #[field(chars_max = PASSWORD_CHARS_MAX)]
    password: Option<Secret>,
    /// Required for a new password, also with an API key.
    #[field(chars_max = PASSWORD_CHARS_MAX)]
    current_password: Option<Secret>,
    /// Whether the API key and the player password are removed together with the old password.
    revoke_secrets: Option<bool>,
}

const ME: &str = "/api/accounts/users/me/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(ME, STREAMER, "Returns the caller.", retrieve),
        Route::patch(ME, STREAMER, "Partially updates the caller.", update).with_properties_body(),
    ]
}

async fn retrieve(call: Call) -> Result<UserView, Refusal> {
    call.render(&**call.user()?)
}

async fn update(call: Call, mut edit: OwnEdit) -> Result<UserView, Refusal> {
    let known = call.user()?;
    let (id, password) = (known.id.0, edit.password.take());
    if password.is_some() {
        passwords::check_current(&call, known, edit.current_password.as_ref()).await?;
    }
    let password = new_password(&call, known, password, |user| edit.clone().apply(user)).await?;
    let (revokes, kept) = (edit.revoke_secrets == Some(true) && password.is_some(), logins::current(&call));
    let user = call.write(move |write| {
        let mut user = find::<User>(write, id)?;
        edit.apply(&mut user)?;
        logins::replace_password(write, &mut user, password, kept)?;
        if revokes {
            user.revoke_secrets();
        }
        check_name_of(write, &user)?;
        write.put(&user)?;
        Ok(user)
    });
    call.render(&user.await?)
}

impl OwnEdit {
    /// Applies the edit, except for the password.
    fn apply(self, user: &mut User) -> Result<(), Refusal> {
        if let Some(name) = self.username {
            user.username = if name == user.username { name } else { check_name(&name)? };
        }
        if let Some(email) = self.email {
            user.email = check_email(email)?;
        }
        set(&mut user.first_name, self.first_name);
        set(&mut user.last_name, self.last_name);
        if let Some(config) = self.avatar_config {
            avatar::check(&config)?;
            user.avatar = config;
        }
        set_sleep(user, self.sleep_until, self.sleep_minutes)?;
        properties::merge_own(user, self.custom_properties.unwrap_or_default())
    }
}
