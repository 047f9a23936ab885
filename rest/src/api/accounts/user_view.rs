//! A user in answers and bodies.

use std::sync::Arc;

use domain::core_settings::DVR_SETTINGS;
use domain::ids::{GroupId, LineupId, PermissionId, UserGroupId, UserId};
use domain::recording::DvrSettings;
use domain::secret::Secret;
use domain::user::{API_KEY_CHARS, USERNAME_CHARS_MAX, User, UserLevel};
use domain::user_group::{Permission, UserGroup, permissions_of};
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::{ShownSecret, Time, WriteOnly};
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;
use storage::Table;

use super::user_groups::PERMISSIONS_MAX;
use super::user_rules::{CHARS_MAX, PASSWORD_CHARS_MAX};
use super::viewing_times::{Hours, SLEEP_MINUTES_MAX};
use super::{avatar, properties};
use crate::context::RestCall;
use crate::record::{Lookup, Render, view_from};

/// Maximum number of concurrent streams that a user may be granted.
const STREAM_LIMIT_MAX: i64 = 10_000;

/// A person or a program with credentials.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "UserAccount", new = NewUser, edit = UserEdit)]
pub(crate) struct UserView {
    /// Assigned by the gateway and never reused.
    #[field(example = "7")]
    id: UserId,
    /// Codenames of the permissions that the user holds, directly or through a group. Few have an effect; see
    /// `/api/accounts/permissions/`.
    #[field(example = "[\"view_channel\"]")]
    all_permissions: Vec<String>,
    /// Codenames of those of them that would have an effect if an admin confirmed them: they are from before permissions had
    /// one.
    #[field(example = "[\"add_recording\"]")]
    unconfirmed_permissions: Vec<String>,
    /// URL of the picture; `null` if the user has none, or initials instead.
    avatar_url: Option<String>,
    /// Time of the last login with a password, to the minute.
    last_login: Option<Time>,
    /// When the user was created.
    date_joined: Time,
    /// Unique regardless of case. Letters, digits, spaces and signs, except `/ \ ? # % :`.
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
    /// When the account ends: from then on the user is refused everywhere, and streams end. `null` if it has none. Admins have
    /// none.
    #[field(edit, example = "null")]
    exp_date: Option<Time>,
    /// The hours in which the user may watch; `null` sets no limit. `time_zone` is an IANA name, and `mon` to `sun` are lists of
    /// ranges such as `07:00-19:30`; a day that is missing has no hours. Outside of them live channels, films, recordings and
    /// the past are refused, and streams end. Admins have no such limit.
    #[field(edit, example = "{\"time_zone\": \"Europe/Berlin\", \"sat\": [\"09:00-19:30\"]}")]
    allowed_hours: Option<Hours>,
    /// When all streams of the user end, within 24 hours: a sleep timer. It is `null` again then. Users set their own, too.
    #[field(edit, example = "null")]
    sleep_until: Option<Time>,
    /// Sets `sleep_until` to this number of minutes from now; 0 removes it.
    #[field(write_only, at_least = 0, at_most = SLEEP_MINUTES_MAX)]
    #[serde(skip)]
    sleep_minutes: WriteOnly<u32>,
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
    /// Ids of channel groups. A user below level 10 sees only channels that are in one of them, and in one of the channel
    /// profiles; an empty list means no limit. A group that is deleted stays in the list.
    #[field(edit, items_max = 1000, example = "[]")]
    channel_group_ids: Vec<GroupId>,
    /// Ids of groups of users.
    #[field(edit, items_max = 1000, example = "[]")]
    groups: Vec<UserGroupId>,
    /// Ids of the permissions that the user holds directly. An admin who adds one confirms it. The level decides; few
    /// permissions have an effect, and none goes beyond what level 1 has.
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
    /// user may use each surface (`UI`, `STREAMS`, `XC_API`, `M3U_EPG`, `TUNER`, `METRICS`); an empty list means no
    /// limit.
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
        let groups = call.rest().models.user_groups.load();
        let settings = call.rest().models.settings.load();
        let settings = DvrSettings::from_setting(settings.one_by("key", DVR_SETTINGS).map(|it| &it.value));
        Ok(Self { viewer: Arc::clone(call.identity()?), settings, groups, origin: call.origin() })
    }
}

/// Returns the codenames of the permissions with an effect that nobody has confirmed. A superuser needs none.
pub(super) fn unconfirmed(user: &User, held: &[Permission]) -> Vec<String> {
    let is_open = |it: &&Permission| it.effect().is_some() && !user.granted.contains(&it.id);
    held.iter().filter(|_| !user.is_superuser).filter(is_open).map(Permission::codename).collect()
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
            unconfirmed_permissions: unconfirmed(self, &permissions),
            avatar_url: avatar::url_of(self, origin),
            date_joined: Time(self.joined_at),
            exp_date: self.expires_at.map(Time),
            allowed_hours: self.allowed_hours.clone().map(Hours),
            sleep_until: self.sleep_until.map(Time),
            sleep_minutes: WriteOnly::HIDDEN,
            channel_group_ids: self.channel_groups.clone(),
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
