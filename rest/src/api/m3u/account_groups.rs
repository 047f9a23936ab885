//! `/api/m3u/accounts/{id}/group-settings/`: the groups of an account, and the channels that refreshes create for them.

use actors::{RefreshPhase, RepackError, now_ms, repack_group};
use domain::account::Account;
use domain::account_group::AccountGroup;
use domain::auto_sync::{OrphanCleanup, SyncSettings};
use domain::channel::Channel;
use domain::group::Group;
use domain::guide::source::GuideSource;
use domain::ids::{AccountGroupId, AccountId, GroupId};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::stream_profile::StreamProfile;
use http::StatusCode;
use resource_derive::{Body, Query, View};
use route_frame::access::{ADMIN, STANDARD};
use route_frame::call::Call;
use route_frame::field::{Field, Kind};
use route_frame::input::Element;
use route_frame::route::Route;
use route_frame::value::{Readable, Shape, Time};
use serde::Serialize;
use serde_json::{Map, Value};
use server::field_errors::FieldErrors;
use server::reply::Refusal;
use storage::Write;
use storage::records::link_key;

use super::built_in::{LOCKED, find_unlocked};
use super::refresh::refresh_if_possible;
use super::vod::{CategorySetting, change_category};
use crate::api::channels::streams::blocking;
use crate::api::channels::values::ChannelNumberValue;
use crate::api::text::sentence;
use crate::context::RestCall;
use crate::record::{set, set_fields};

/// A channel group that the playlist of an account names, with the settings of the account.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "ChannelGroupM3UAccount")]
pub(crate) struct AccountGroupView {
    /// Id of the account.
    #[field(example = "2")]
    pub(super) m3u_account: AccountId,
    /// Id of the channel group.
    #[field(example = "3")]
    pub(super) channel_group: GroupId,
    /// Name of the channel group.
    #[field(example = "News")]
    pub(super) channel_group_name: String,
    /// Whether streams of the group are imported.
    pub(super) enabled: bool,
    /// Whether refreshes create, change and remove channels for the streams of the group.
    pub(super) auto_channel_sync: bool,
    /// First number of these channels.
    #[field(example = "100")]
    pub(super) auto_sync_channel_start: Option<ChannelNumberValue>,
    /// Last number of these channels.
    #[field(example = "199")]
    pub(super) auto_sync_channel_end: Option<ChannelNumberValue>,
    /// Further settings. Visible to admins only.
    pub(super) custom_properties: Map<String, Value>,
    /// Whether the group is missing from the latest playlist.
    pub(super) is_stale: bool,
    /// When the playlist last named the group.
    pub(super) last_seen: Option<Time>,
    /// Number of streams of the account in the group.
    #[field(example = "120")]
    pub(super) stream_count: usize,
}

impl AccountGroupView {
    /// Returns the view of a group of an account. `good_at` is the end of the last successful refresh of the account.
    pub(in crate::api) fn new(
        link: &AccountGroup,
        group: &Group,
        stream_count: usize,
        good_at: Option<i64>,
        is_admin: bool,
    ) -> Self {
        Self {
            m3u_account: link.account,
            channel_group: group.id,
            channel_group_name: group.name.clone(),
            enabled: link.enabled,
            auto_channel_sync: link.auto_channel_sync,
            auto_sync_channel_start: link.sync_start.map(ChannelNumberValue),
            auto_sync_channel_end: link.sync_end.map(ChannelNumberValue),
            custom_properties: if is_admin { link.custom_properties.clone() } else { Map::new() },
            is_stale: link.last_seen.is_some(),
            last_seen: link.last_seen.or(good_at).map(Time),
            stream_count,
        }
    }
}

/// Settings of groups of an account. They apply at the next refresh.
#[derive(Clone, Debug, Body)]
struct GroupSettings {
    /// The groups to change; all others stay.
    #[field(items_max = 10_000)]
    group_settings: Option<Vec<GroupSetting>>,
    /// The categories of films and series to change; all others stay.
    #[field(items_max = 10_000)]
    category_settings: Option<Vec<CategorySetting>>,
}

/// The settings of one group. Fields that are left out stay.
#[derive(Clone, Debug, Body)]
pub(crate) struct GroupSetting {
    /// Id of the channel group.
    #[field(example = "3")]
    channel_group: GroupId,
    /// Whether streams of the group are imported.
    enabled: Option<bool>,
    /// Whether refreshes create, change and remove channels for the streams of the group.
    auto_channel_sync: Option<bool>,
    /// First number of these channels; `null` is 1.
    #[field(example = "100")]
    auto_sync_channel_start: Option<Option<ChannelNumberValue>>,
    /// Last number of these channels; `null` is none. Streams for which no number is left get no channel.
    #[field(example = "199")]
    auto_sync_channel_end: Option<Option<ChannelNumberValue>>,
    /// Further settings, all optional: `channel_numbering_mode` (`fixed`: free numbers of the range; `provider`: numbers of
    /// the provider, else free ones from `channel_numbering_fallback` on; `next_available`: the lowest free numbers),
    /// `compact_numbering` (every refresh closes gaps), `channel_sort_order` (`provider`, `name`, `tvg_id`, `updated_at`),
    /// `channel_sort_reverse`, `name_regex_pattern` and `name_replace_pattern` (change names), `name_match_regex` and
    /// `name_match_exclude_regex` (select streams by name), `group_override` (id of the group of the channels),
    /// `stream_profile_id`, `channel_profile_ids` (those of new channels; `[0]` is all), `custom_logo_id` (id of the logo of
    /// the channels), `custom_epg_id` (id of the guide source whose channels are linked with the channels, by guide id or
    /// name), `force_dummy_epg` (the channels get no guide id, so that their programmes are made from their names). Other
    /// properties are data of clients.
    custom_properties: Option<Option<Map<String, Value>>>,
}

impl Shape for GroupSetting {
    const KIND: Kind = Kind::Record(&GroupSetting::RECORD);
}

impl Readable for GroupSetting {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        Self::read_element(value, false).map_err(FieldErrors::first_message)
    }
}

/// Result of a change.
#[derive(Clone, Debug, Serialize, View)]
struct GroupSettingsView {
    /// Message for people.
    #[field(example = "Group settings updated successfully. They apply at the next refresh.")]
    message: String,
}

/// The channels that refreshes of an account created.
#[derive(Clone, Debug, Serialize, View)]
struct AutoCreatedChannelsView {
    /// Number of channels.
    #[field(example = "120")]
    count: usize,
    /// Names of some of them.
    sample_names: Vec<String>,
}

/// Selects a group.
#[derive(Debug, Query)]
struct RepackQuery {
    /// Id of the channel group.
    channel_group_id: Option<GroupId>,
}

/// Selects a group.
#[derive(Clone, Debug, Body)]
struct RepackBody {
    /// Id of the channel group, if it is not in the query.
    #[field(example = "3")]
    channel_group_id: Option<GroupId>,
}

/// Result of packing numbers.
#[derive(Clone, Debug, Serialize, View)]
struct RepackedView {
    /// Message for people.
    #[field(example = "12 channels have another number.")]
    message: String,
    /// Number of channels with another number.
    #[field(example = "12")]
    channels_updated: u64,
}

const SETTINGS: &str = "/api/m3u/accounts/{id}/group-settings/";
const COUNT: &str = "/api/m3u/accounts/{id}/auto-created-channels-count/";
const REPACK: &str = "/api/m3u/accounts/{id}/repack-group/";

const REFRESHING: &str = "The account is being refreshed. Try again afterwards.";

/// Number of names in the answer that counts channels.
const SAMPLE_NAMES: usize = 5;

pub(super) fn routes() -> Vec<Route> {
    const SUMMARY: &str = "Partially updates the settings of groups. They apply at the next refresh.";
    vec![
        Route::patch(SETTINGS, ADMIN, SUMMARY, change_settings)
            .with_bulk_body()
            .refuses(StatusCode::BAD_REQUEST, LOCKED),
        Route::get(COUNT, STANDARD, "Counts the channels that refreshes of an account created.", count),
        Route::post(
            REPACK,
            ADMIN,
            "Assigns the numbers of the automatic channels of a group anew, without gaps.",
            repack,
        )
        .refuses(StatusCode::BAD_REQUEST, "The account has no automatic channels in this group.")
        .refuses(StatusCode::CONFLICT, REFRESHING),
    ]
}

async fn change_settings(call: Call, changes: GroupSettings) -> Result<GroupSettingsView, Refusal> {
    let id = call.id()?;
    let categories = changes.category_settings.unwrap_or_default();
    let settings = changes.group_settings.unwrap_or_default();
    let account = call
        .write(move |write| {
            let account = find_unlocked(write, id)?;
            let mut errors = FieldErrors::default();
            for (n, setting) in (1..).zip(settings) {
                let group = setting.channel_group;
                if let Err(message) = change_one(write, &account, setting)? {
                    errors.add("group_settings", format!("Item {n}: Channel group {group}: {message}."));
                }
            }
            for (n, setting) in (1..).zip(categories) {
                let category = setting.id;
                if let Err(message) = change_category(write, account.id, setting)? {
                    errors.add("category_settings", format!("Item {n}: Category {category}: {message}."));
                }
            }
            Ok(errors.or(account)?)
        })
        .await?;
    // A running refresh uses the settings of its beginning.
    refresh_if_possible(&call, &account, false).await;
    let message = "Group settings updated successfully. They apply at the next refresh.".to_owned();
    Ok(GroupSettingsView { message })
}

/// Changes the settings of one group, or returns the reason why they are invalid.
fn change_one(
    write: &mut Write<'_>,
    account: &Account,
    setting: GroupSetting,
) -> Result<Result<(), String>, Refusal> {
    let group = setting.channel_group;
    if write.get::<Group>(group.0)?.is_none() {
        return Ok(Err("the group does not exist".to_owned()));
    }
    let known = write.by::<AccountGroup>("link", link_key(account.id, group))?.into_iter().next();
    let mut link = match known {
        Some(link) => link,
        None => {
            let id = AccountGroupId(write.next_id::<AccountGroup>()?);
            let new = AccountGroup::new(id, account.id, group, account.auto_enable_new_groups_live);
            AccountGroup { last_seen: Some(now_ms()), ..new }
        }
    };
    set_fields!(link from setting: enabled, auto_channel_sync, custom_properties);
    set(&mut link.sync_start, setting.auto_sync_channel_start.map(|it| it.map(|it| it.0)));
    set(&mut link.sync_end, setting.auto_sync_channel_end.map(|it| it.map(|it| it.0)));
    let settings = match SyncSettings::read(&link) {
        Ok(settings) => settings,
        Err(error) => return Ok(Err(error.to_string())),
    };
    if let Some(other) = settings.group_override
        && write.get::<Group>(other.0)?.is_none()
    {
        return Ok(Err(format!("group_override: channel group {other} does not exist")));
    }
    if let Some(profile) = settings.stream_profile
        && write.get::<StreamProfile>(profile.0)?.is_none()
    {
        return Ok(Err(format!("stream_profile_id: stream profile {profile} does not exist")));
    }
    if let Some(logo) = settings.custom_logo
        && write.get::<Logo>(logo.0)?.is_none()
    {
        return Ok(Err(format!("custom_logo_id: logo {logo} does not exist")));
    }
    if let Some(source) = settings.custom_guide
        && write.get::<GuideSource>(source.0)?.is_none()
    {
        return Ok(Err(format!("custom_epg_id: guide source {source} does not exist")));
    }
    for id in settings.channel_profiles.into_iter().flatten().filter(|it| *it != 0) {
        if write.get::<Lineup>(id)?.is_none() {
            return Ok(Err(format!("channel_profile_ids: channel profile {id} does not exist")));
        }
    }
    write.put(&link)?;
    Ok(Ok(()))
}

async fn count(call: Call) -> Result<AutoCreatedChannelsView, Refusal> {
    let id = call.id()?;
    if call.rest().models.accounts.load().get(id).is_none() {
        return Err(Refusal::unknown::<Account>());
    }
    let channels = call.rest().models.channels.load();
    let created = || channels.by("auto_account", id.to_be_bytes()).filter(|it| it.followed().is_some());
    let sample_names = created().take(SAMPLE_NAMES).map(|it| it.name.clone()).collect();
    Ok(AutoCreatedChannelsView { count: created().count(), sample_names })
}

async fn repack(call: Call, (query, body): (RepackQuery, RepackBody)) -> Result<RepackedView, Refusal> {
    let group = query.channel_group_id.or(body.channel_group_id);
    let group = group.ok_or_else(|| Refusal::bad_request("channel_group_id is required"))?;
    let id = call.id()?;
    let account = call.rest().models.accounts.load().get(id).cloned();
    let account = account.ok_or_else(Refusal::unknown::<Account>)?.id;
    let progress = call.rest().imports.importer.progress_of(account);
    if progress.is_some_and(|it| it.phase != RefreshPhase::Done) {
        return Err(Refusal::status(StatusCode::CONFLICT).with_detail(REFRESHING));
    }
    let models = call.rest().models.clone();
    let packed = blocking(move || Ok(repack_group(&models, account, group))).await?;
    let channels_updated = packed.map_err(|error| match error {
        RepackError::Store(error) => Refusal::from(error),
        RepackError::NoSuchAccount => Refusal::unknown::<Account>(),
        RepackError::NoSuchGroup | RepackError::Settings(_) => Refusal::bad_request(sentence(error)),
    })?;
    let message = match channels_updated {
        1 => "1 channel has another number.".to_owned(),
        n => format!("{n} channels have another number."),
    };
    Ok(RepackedView { message, channels_updated })
}

/// Removes the channels that refreshes of an account created, as far as the account does not keep changed ones, which
/// then belong to the admin. Changes at most this number of channels; returns true if none is left.
pub(super) fn release_channels(
    write: &mut Write<'_>,
    account: &Account,
    channels_max: usize,
) -> Result<bool, Refusal> {
    let cleanup = OrphanCleanup::from_account(account);
    let channels = write.by::<Channel>("auto_account", account.id.0.to_be_bytes())?;
    let is_last = channels.len() <= channels_max;
    for mut channel in channels.into_iter().take(channels_max) {
        if cleanup.removes(&channel) {
            write.remove::<Channel>(channel.id.0)?;
        } else {
            channel.auto = None;
            write.put(&channel)?;
        }
    }
    Ok(is_last)
}

#[cfg(test)]
mod tests {
    use domain::auto_sync::{ORPHAN_CLEANUP, SyncInput, SyncStream, auto_channel_uuid, plan_sync};
    use domain::ids::{AccountId, ChannelId, StreamId};
    use serde_json::json;

    use super::*;
    use crate::testing::Rest;

    async fn make(rest: &Rest, path: &str, body: Value) -> u64 {
        let made = rest.admin("POST", path, body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        made.body["id"].as_u64().unwrap()
    }

    async fn account_and_group(rest: &Rest) -> (String, u64) {
        let account = make(rest, "/api/m3u/accounts/", json!({ "name": "a" })).await;
        let group = make(rest, "/api/channels/groups/", json!({ "name": "News" })).await;
        (format!("/api/m3u/accounts/{account}/"), group)
    }

    /// Writes the channels of two streams, as a refresh does.
    async fn create_channels(rest: &Rest, account: &str, group: u64) -> u32 {
        let id = rest.admin("GET", account, Value::Null).await.body["id"].as_u64().unwrap();
        let (account, group) =
            (AccountId(u32::try_from(id).unwrap()), GroupId(u32::try_from(group).unwrap()));
        let stream = |id: u32| SyncStream {
            guide_channel: None,
            id: StreamId(id),
            group,
            name: format!("Stream {id}"),
            tvg_id: None,
            station: None,
            logo: None,
            number: None,
            updated_at: 0,
            position: None,
            is_missing: false,
        };
        let input = SyncInput {
            account,
            cleanup: OrphanCleanup::Always,
            groups: &[(group, SyncSettings::default())],
            streams: vec![stream(1), stream(2)],
            packed: None,
        };
        let plan = plan_sync(input, std::iter::empty());
        let channels = (1..).zip(plan.creations).map(|(id, auto)| {
            let uuid = auto_channel_uuid(&auto);
            Channel::automatic(ChannelId(id), uuid, auto, 0)
        });
        rest.put(channels).await;
        account.0
    }

    #[tokio::test]
    async fn settings_of_groups_are_checked_and_changed_together() {
        let rest = Rest::start().await;
        let (account, group) = account_and_group(&rest).await;
        let path = format!("{account}group-settings/");
        let setting = json!({ "channel_group": group, "auto_channel_sync": true, "auto_sync_channel_start": 10.5,
            "auto_sync_channel_end": 20, "custom_properties": { "compact_numbering": true } });
        let changed = rest.admin("PATCH", &path, json!({ "group_settings": [setting] })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert!(changed.body["message"].as_str().unwrap().contains("next refresh"));
        let only = json!({ "group_settings": [{ "channel_group": group, "enabled": false }], "category_settings": [] });
        assert_eq!(rest.admin("PATCH", &path, only).await.status, 200);
        let groups = rest.standard("GET", &account, Value::Null).await.body["channel_groups"].clone();
        assert_eq!((&groups[0]["enabled"], &groups[0]["auto_channel_sync"]), (&json!(false), &json!(true)));
        assert_eq!(groups[0]["auto_sync_channel_start"], json!(10.5));
        assert_eq!(groups[0]["custom_properties"], json!({}), "data of clients is for admins");
        let groups = rest.admin("GET", &account, Value::Null).await.body["channel_groups"].clone();
        assert_eq!(groups[0]["custom_properties"], json!({ "compact_numbering": true }));

        let settings_body = |more: Value| {
            let mut setting = json!({ "channel_group": group });
            setting.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({ "group_settings": [{ "channel_group": group, "enabled": true }, setting] })
        };
        for (more, expected) in [
            (
                json!({ "auto_sync_channel_end": 5 }),
                "auto_sync_channel_end: must be >= auto_sync_channel_start",
            ),
            (json!({ "channel_group": 99 }), "the group does not exist"),
            (json!({ "custom_properties": { "name_match_regex": "(" } }), "name_match_regex"),
            (json!({ "custom_properties": { "group_override": 99 } }), "channel group 99 does not exist"),
            (
                json!({ "custom_properties": { "stream_profile_id": "99" } }),
                "stream profile 99 does not exist",
            ),
            (
                json!({ "custom_properties": { "channel_profile_ids": [0, 9] } }),
                "channel profile 9 does not exist",
            ),
            (
                json!({ "custom_properties": { "channel_numbering_mode": "x" } }),
                "fixed, provider, next_available",
            ),
        ] {
            let refused = rest.admin("PATCH", &path, settings_body(more)).await;
            let message = refused.body["group_settings"][0].as_str().unwrap_or_default().to_owned();
            assert!(refused.status == 400 && message.starts_with("Item 2: "), "{}", refused.text);
            assert!(message.contains(expected), "{message}");
        }
        let after =
            rest.admin("GET", &account, Value::Null).await.body["channel_groups"][0]["enabled"].clone();
        assert_eq!(after, json!(false), "a refused change changes nothing");
        let categories = rest.admin("PATCH", &path, json!({ "category_settings": [{ "id": 1 }] })).await;
        assert_eq!(categories.status, 400);
        assert_eq!(rest.admin("PATCH", "/api/m3u/accounts/1/group-settings/", json!({})).await.status, 400);
    }

    #[tokio::test]
    async fn a_group_with_settings_survives_a_cleanup_and_its_deletion_removes_them() {
        let rest = Rest::start().await;
        let (account, group) = account_and_group(&rest).await;
        let link =
            AccountGroup::new(AccountGroupId(1), AccountId(1), GroupId(u32::try_from(group).unwrap()), false);
        let id = rest.admin("GET", &account, Value::Null).await.body["id"].as_u64().unwrap();
        rest.put([AccountGroup { account: AccountId(u32::try_from(id).unwrap()), ..link }]).await;
        let one = format!("/api/channels/groups/{group}/");
        let shown = rest.admin("GET", &one, Value::Null).await.body["m3u_accounts"].take();
        let of_account = rest.admin("GET", &account, Value::Null).await.body["channel_groups"].take();
        assert_eq!((shown.as_array().map(Vec::len), &shown), (Some(1), &of_account));
        assert_eq!((&shown[0]["m3u_account"], &shown[0]["enabled"]), (&json!(id), &json!(false)));
        let cleaned = rest.admin("POST", "/api/channels/groups/cleanup/", Value::Null).await;
        assert_eq!(cleaned.body["deleted_count"], 0, "a disabled group would be enabled when it comes back");
        assert_eq!(rest.admin("DELETE", &one, Value::Null).await.status, 204);
        assert_eq!(rest.admin("GET", &account, Value::Null).await.body["channel_groups"], json!([]));
    }

    #[tokio::test]
    async fn numbers_of_a_group_are_packed_on_request() {
        let rest = Rest::start().await;
        let (account, group) = account_and_group(&rest).await;
        let path = format!("{account}repack-group/");
        let missing = rest.admin("POST", &path, json!({})).await;
        assert_eq!(
            (missing.status, missing.body),
            (400, json!({ "detail": "channel_group_id is required" }))
        );
        let manual = rest.admin("POST", &format!("{path}?channel_group_id={group}"), Value::Null).await;
        assert_eq!(manual.status, 400, "the group has no automatic channels");
        let body = json!({ "channel_group_id": group });
        let settings = json!({ "group_settings": [{ "channel_group": group, "auto_channel_sync": true }] });
        rest.admin("PATCH", &format!("{account}group-settings/"), settings).await;
        let packed = rest.admin("POST", &path, body).await;
        assert_eq!((packed.status, &packed.body["channels_updated"]), (200, &json!(0)));
    }

    #[tokio::test]
    async fn automatic_channels_are_counted_and_end_with_their_account_unless_an_admin_changed_them() {
        let rest = Rest::start().await;
        for (cleanup, expected) in [(Value::Null, 1), (json!("always"), 0), (json!("never"), 2)] {
            let (account, group) = account_and_group(&rest).await;
            let properties = json!({ "custom_properties": { ORPHAN_CLEANUP: cleanup } });
            assert_eq!(rest.admin("PATCH", &account, properties).await.status, 200);
            create_channels(&rest, &account, group).await;
            let renamed = rest.admin("PATCH", "/api/channels/channels/1/", json!({ "name": "Mine" })).await;
            assert_eq!(renamed.status, 200, "{}", renamed.text);
            let counted =
                rest.standard("GET", &format!("{account}auto-created-channels-count/"), Value::Null).await;
            assert_eq!(counted.body, json!({ "count": 2, "sample_names": ["Mine", "Stream 2"] }));
            assert_eq!(rest.admin("DELETE", &account, Value::Null).await.status, 204);
            let channels = rest.models.channels.load();
            assert_eq!(channels.len(), expected, "{cleanup}");
            assert!(channels.iter().all(|it| it.auto.is_none()));
            for channel in channels.iter() {
                rest.admin("DELETE", &format!("/api/channels/channels/{}/", channel.id), Value::Null).await;
            }
            rest.admin("DELETE", &format!("/api/channels/groups/{group}/"), Value::Null).await;
        }
        let bad = json!({ "name": "b", "custom_properties": { ORPHAN_CLEANUP: "sometimes" } });
        let refused = rest.admin("POST", "/api/m3u/accounts/", bad).await;
        assert!(refused.status == 400 && refused.body["custom_properties"].is_array(), "{}", refused.text);
    }
}
