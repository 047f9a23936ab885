//! Applies commits to the live state: new plans, new settings, and users who may no longer watch.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::account_addresses::AddressRecord;
use domain::channel::Channel;
use domain::core_settings::{
    self, NETWORK_ACCESS, PROXY_SETTINGS, USER_LIMIT_SETTINGS, allows_adult_without_user,
};
use domain::ids::UserId;
use domain::lineup::{Lineup, ViewLimits, visible};
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::settings::Settings;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::{self, User, UserLevel};
use domain::user_agent::UserAgent;
use domain::user_limits::UserLimits;
use domain::vod::visible::{self as vod_visible, VodLimits};
use domain::vod::{AccountCategory, Relation, Title, TitleKind};
use storage::{Change, ChangeMessage, Changes, Models, Record};
use tracing::warn;

use crate::live_settings::LiveSettings;
use crate::plans::Target;
use crate::recorder::SeenRecordings;
use crate::switchboard::Switchboard;

/// Delay between two rounds: the first of many commits in a row is applied immediately, the others together.
const ROUND_DELAY: Duration = Duration::from_millis(200);

/// The collections that plans depend on.
const OF_PLANS: [&str; 8] = [
    Account::COLLECTION,
    AddressRecord::COLLECTION,
    Channel::COLLECTION,
    CoreSetting::COLLECTION,
    ServerGroup::COLLECTION,
    Stream::COLLECTION,
    StreamProfile::COLLECTION,
    UserAgent::COLLECTION,
];

/// Returns the settings of the engine: those of file, environment and arguments, overridden by the core settings of an
/// admin. A core setting that conflicts with the others is ignored and logged.
pub fn effective_settings(models: &Models, base: &Settings) -> Settings {
    let settings = models.settings.load();
    let value = |key: &str| settings.one_by("key", key).map(|it| &it.value);
    let (mut effective, left_out) = core_settings::effective(base, value(PROXY_SETTINGS));
    effective.user_limits = UserLimits::from_setting(value(USER_LIMIT_SETTINGS));
    for (field, reason) in left_out {
        warn!(field, "core setting ignored: {field} {reason}");
    }
    effective
}

/// Returns what a user or, without one, a caller without credentials may see. While no user exists, everybody sees every
/// enabled channel.
pub fn view_limits(models: &Models, user: Option<&User>) -> ViewLimits {
    match user {
        Some(user) => {
            let lineups = models.lineups.load();
            ViewLimits::from_user(user, |id| lineups.get(id.0).cloned())
        }
        None if models.users.load().is_empty() => ViewLimits::none(),
        None => {
            let settings = models.settings.load();
            let rule = settings.one_by("key", NETWORK_ACCESS).map(|it| &it.value);
            ViewLimits::anonymous(allows_adult_without_user(rule))
        }
    }
}

/// Returns the limits of what a user, or a caller without credentials, may see of films and series.
pub fn vod_limits(models: &Models, user: Option<&User>) -> VodLimits {
    match user {
        Some(user) => VodLimits::from_user(user),
        None if models.users.load().is_empty() => VodLimits::none(),
        None => {
            let settings = models.settings.load();
            let rule = settings.one_by("key", NETWORK_ACCESS).map(|it| &it.value);
            VodLimits::anonymous(allows_adult_without_user(rule))
        }
    }
}

/// Returns whether the user may watch the target now. A channel that does not exist or is disabled refuses and ends by
/// itself, for everybody. A film whose account is deleted plays on, like a channel.
pub fn may_watch(models: &Models, user: UserId, target: Target) -> bool {
    let (users, channels) = (models.users.load(), models.channels.load());
    let channel = match target {
        Target::Channel(uuid) | Target::Archive(uuid) => {
            channels.one_by("uuid", uuid.as_bytes()).filter(|it| it.enabled)
        }
        Target::Stream(_) | Target::Movie(_) | Target::Episode(_) | Target::Recording(_) => None,
    };
    // A recording that was deleted plays on from its open file, as for a film.
    let may_play = |user: Option<&User>| match target {
        Target::Recording(id) => {
            let recording = models.recordings.load().get(id.0).cloned();
            recording.is_none_or(|it| SeenRecordings::of(models, user).shows(&it))
        }
        _ => true,
    };
    if user == user::ANONYMOUS {
        return channel.is_none_or(|it| visible(&view_limits(models, None), it))
            && may_watch_title(models, None, target)
            && may_play(None);
    }
    let Some(user) = users.get(user.0).filter(|it| it.is_active) else { return false };
    match target {
        Target::Stream(_) => user.may(UserLevel::Admin),
        Target::Recording(_) => may_play(Some(user)),
        Target::Movie(_) | Target::Episode(_) => may_watch_title(models, Some(user), target),
        Target::Channel(_) | Target::Archive(_) => {
            channel.is_none_or(|it| visible(&view_limits(models, Some(user)), it))
        }
    }
}

/// Returns whether a user, or a caller without credentials, may watch a film or an episode, and a category with it is
/// enabled. True for channels and streams.
fn may_watch_title(models: &Models, user: Option<&User>, target: Target) -> bool {
    let Some(title) = title_of(models, target) else { return true };
    let links = models.vod_account_categories.load();
    let is_disabled = |relation: &Relation| {
        let is_of = |it: &AccountCategory| (it.account, it.category) == (relation.account, relation.category);
        links.iter().any(|it| is_of(it) && !it.enabled)
    };
    vod_visible::visible(&vod_limits(models, user), &title, |it| !is_disabled(it))
}

/// Returns a film, or the series of an episode. One that cannot be read ends by itself, like a deleted one.
fn title_of(models: &Models, target: Target) -> Option<Title> {
    let titles = &models.vod;
    match target {
        Target::Movie(uuid) => titles.by_uuid(TitleKind::Movie, uuid).ok().flatten(),
        Target::Episode(uuid) => {
            let episode = titles.episode_by_uuid(uuid).ok().flatten()?;
            titles.get(episode.series).ok().flatten()
        }
        Target::Channel(_) | Target::Stream(_) | Target::Archive(_) | Target::Recording(_) => None,
    }
}

/// Returns whether a user may watch from an address. The networks of users are not known here.
pub type AddressRule = Arc<dyn Fn(UserId, IpAddr) -> bool + Send + Sync>;

/// Follows the store until it closes. It starts by applying everything, so it can be restarted at any time.
pub(crate) async fn follow(
    models: Models,
    base: Settings,
    may_connect: AddressRule,
    live: LiveSettings,
    switchboard: Switchboard,
) {
    let mut changes = models.store.changes();
    // Covers commits before the subscription.
    let mut next = Some(Round::ALL);
    while let Some(round) = next {
        if round.settings {
            let settings = effective_settings(&models, &base);
            if settings != *live.load()
                && let Err(cause) = live.set(settings)
            {
                warn!("settings not changed: {cause}");
            }
        }
        if round.permissions {
            switchboard.keep_permitted(|user, address, target| {
                may_watch(&models, user, target) && may_connect(user, address)
            });
        }
        if round.plans {
            // No other code notifies live channels, so the notification is repeated; a switchboard that dies meanwhile
            // has a successor that receives it.
            while let Err(cause) = switchboard.reload().await {
                warn!("failed to notify live channels of changed plans, trying again: {cause}");
                tokio::time::sleep(ROUND_DELAY).await;
            }
            tokio::time::sleep(ROUND_DELAY).await;
        }
        next = next_round(&mut changes).await;
    }
}

/// The parts of the live state that a commit affects.
#[derive(Clone, Copy, Default)]
struct Round {
    plans: bool,
    settings: bool,
    /// Users, their lineups, and the visibility of channels, films and series.
    permissions: bool,
}

/// Waits for a commit, and merges the commits that arrived meanwhile. `None` after the store closed.
async fn next_round(changes: &mut Changes) -> Option<Round> {
    let mut round = Round::default();
    let mut message = changes.next().await;
    loop {
        match message {
            ChangeMessage::Changed(change) => round.add(&change),
            ChangeMessage::Lagged => round = Round::ALL,
            ChangeMessage::Closed => return None,
        }
        match changes.try_next() {
            Some(more) => message = more,
            None => return Some(round),
        }
    }
}

impl Round {
    const ALL: Round = Round { plans: true, settings: true, permissions: true };

    fn add(&mut self, change: &Change) {
        self.plans |= OF_PLANS.iter().any(|it| change.of(it).is_some());
        self.settings |= change.of(CoreSetting::COLLECTION).is_some();
        // A core setting decides whether channels marked as adult are visible without a user.
        let of_permissions = [
            User::COLLECTION,
            Lineup::COLLECTION,
            Channel::COLLECTION,
            CoreSetting::COLLECTION,
            Title::COLLECTION,
            AccountCategory::COLLECTION,
        ];
        self.permissions |= of_permissions.iter().any(|it| change.of(it).is_some());
    }
}

#[cfg(test)]
mod tests;
