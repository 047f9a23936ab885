//! `/api/accounts/users/me/`: what users see and change of themselves.

use domain::secret::Secret;
use domain::user::{USERNAME_CHARS_MAX, User};
use serde_json::{Map, Value};

use super::properties;
use super::users::{
    CHARS_MAX, PASSWORD_CHARS_MAX, UserAccount, check_email, check_name, new_password, put, set_password,
};
use crate::http::reply::Refusal;
use crate::rest::frame::call::{Call, find};
use crate::rest::frame::record::body;
use crate::rest::frame::route::{Route, STREAMER};

body! {
    /// What users may change of themselves. Level, flags and limits are for admins, and ignored here.
    OwnEdit {
        /// Unique, whatever the case of its letters. Letters, digits and `@ . + - _`.
        username: String [chars_max(USERNAME_CHARS_MAX)],
        /// For people.
        email: String [blank(), chars_max(CHARS_MAX)],
        /// For people.
        first_name: String [blank(), chars_max(CHARS_MAX)],
        /// For people.
        last_name: String [blank(), chars_max(CHARS_MAX)],
        /// How the user is drawn.
        avatar_config: Map<String, Value>,
        /// Merged key by key; `null` takes a key away. Keys that are for admins are ignored: `xc_password`,
        /// `hide_adult_content`, `allowed_networks`, `catchup_enabled`.
        custom_properties: Map<String, Value>,
        /// Every token that was given for the one before ends with it, this one too.
        password: Secret [chars_max(PASSWORD_CHARS_MAX)],
    }
}

const ME: &str = "/api/accounts/users/me/";

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get(ME, STREAMER, "Shows the caller.", show),
        Route::patch(ME, STREAMER, "Changes of the caller what is sent.", update),
    ]
}

async fn show(call: Call) -> Result<UserAccount, Refusal> {
    let user = call.user()?;
    Ok(UserAccount::of(user, user))
}

async fn update(call: Call, mut edit: OwnEdit) -> Result<UserAccount, Refusal> {
    let known = call.user()?;
    let (id, password) = (known.id.0, edit.password.take());
    let password = new_password(&call, known, password, |user| edit.clone().apply(user)).await?;
    let user = call
        .write(move |write| {
            let mut user = find::<User>(write, id)?;
            edit.apply(&mut user)?;
            set_password(&mut user, password);
            put(write, &user)?;
            Ok(user)
        })
        .await?;
    Ok(UserAccount::of(&user, call.user()?))
}

impl OwnEdit {
    /// What was sent goes over what is there, the password apart.
    fn apply(self, user: &mut User) -> Result<(), Refusal> {
        if let Some(name) = self.username {
            user.username = if name == user.username { name } else { check_name(&name)? };
        }
        if let Some(email) = self.email {
            user.email = check_email(email)?;
        }
        user.first_name = self.first_name.unwrap_or_else(|| std::mem::take(&mut user.first_name));
        user.last_name = self.last_name.unwrap_or_else(|| std::mem::take(&mut user.last_name));
        if let Some(avatar) = self.avatar_config {
            properties::check_size("avatar_config", &avatar)?;
            user.avatar = avatar;
        }
        properties::merge_own(user, self.custom_properties.unwrap_or_default())
    }
}
