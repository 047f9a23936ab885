//! Applies commits to the live state: new plans, new settings, and users who may no longer watch.

mod viewing_times;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::account_addresses::AddressRecord;
use domain::channel::Channel;
use domain::core_settings::{self, PROXY_SETTINGS, USER_LIMIT_SETTINGS};
use domain::ids::UserId;
use domain::lineup::Lineup;
use domain::server_group::ServerGroup;
use domain::setting::CoreSetting;
use domain::settings::Settings;
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::User;
use domain::user_agent::UserAgent;
use domain::user_limits::UserLimits;
use domain::vod::{AccountCategory, Title};
use storage::{Change, ChangeMessage, Changes, Models, Record};
use tracing::warn;

use self::viewing_times::ViewingTimes;
use crate::events::Events;
use crate::live_settings::LiveSettings;
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

/// Returns whether a user may watch from an address. The networks of users are not known here.
pub type AddressRule = Arc<dyn Fn(UserId, IpAddr) -> bool + Send + Sync>;

/// Follows the store until it closes. It starts by applying everything, so it can be restarted at any time.
pub(crate) async fn follow(
    models: Models,
    base: Settings,
    may_connect: AddressRule,
    live: LiveSettings,
    switchboard: Switchboard,
    events: Events,
) {
    let mut changes = models.store.changes();
    let mut viewing = ViewingTimes::new();
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
            viewing.check(&models, &may_connect, &switchboard, &events).await;
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
        next = tokio::select! {
            round = next_round(&mut changes) => round,
            () = viewing.next_end() => Some(Round { permissions: true, ..Round::default() }),
        };
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
        self.plans |= OF_PLANS.iter().any(|it| change.ids(it).is_some());
        self.settings |= change.ids(CoreSetting::COLLECTION).is_some();
        // A core setting decides whether channels marked as adult are visible without a user.
        let of_permissions = [
            User::COLLECTION,
            Lineup::COLLECTION,
            Channel::COLLECTION,
            CoreSetting::COLLECTION,
            Title::COLLECTION,
            AccountCategory::COLLECTION,
        ];
        self.permissions |= of_permissions.iter().any(|it| change.ids(it).is_some());
    }
}

#[cfg(test)]
mod tests;
