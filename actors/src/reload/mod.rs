//! What is committed reaches what is live: new plans, new settings, and users who may no longer watch.

use std::sync::Arc;
use std::time::Duration;

use domain::account::Account;
use domain::channel::Channel;
use domain::core_settings::{self, PROXY_SETTINGS};
use domain::setting::CoreSetting;
use domain::settings::{Settings, SettingsError};
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use domain::user::User;
use parking_lot::RwLock;
use storage::{Change, ChangeMessage, Changes, Models, Record};
use tracing::warn;

use crate::switchboard::Switchboard;

/// Between two rounds: the first of a hundred commits in a row is followed at once, the others together.
const PAUSE: Duration = Duration::from_millis(200);

/// What plans are made of.
const OF_PLANS: [&str; 5] = [
    Account::COLLECTION,
    Channel::COLLECTION,
    CoreSetting::COLLECTION,
    Stream::COLLECTION,
    StreamProfile::COLLECTION,
];

/// The settings as they are now. Clones are the same.
#[derive(Clone)]
pub struct LiveSettings(Arc<RwLock<Arc<Settings>>>);

impl LiveSettings {
    pub(crate) fn new(settings: Settings) -> Self {
        Self(Arc::new(RwLock::new(Arc::new(settings))))
    }

    /// The settings after the last change.
    pub fn load(&self) -> Arc<Settings> {
        self.0.read().clone()
    }

    pub(crate) fn set(&self, settings: Settings) -> Result<(), SettingsError> {
        settings.check()?;
        *self.0.write() = Arc::new(settings);
        Ok(())
    }
}

/// The settings of the engine: what file, environment and arguments say, and over it what an admin set. What of that
/// does not go with the rest is left out and logged.
pub fn effective_settings(models: &Models, base: &Settings) -> Settings {
    let settings = models.settings.load();
    let value = settings.one_by("key", PROXY_SETTINGS).map(|it| &it.value);
    let (effective, left_out) = core_settings::effective(base, value);
    for (field, reason) in left_out {
        warn!(field, "a core setting is left out: {field} {reason}");
    }
    effective
}

/// Follows the store until it closes. Begins with everything, so it may end and begin anew at any time.
pub(crate) async fn follow(models: Models, base: Settings, live: LiveSettings, switchboard: Switchboard) {
    let mut changes = models.store.changes();
    // What was committed before the subscription.
    let mut news = Some(Round::ALL);
    while let Some(round) = news {
        if round.settings {
            let settings = effective_settings(&models, &base);
            if settings != *live.load()
                && let Err(cause) = live.set(settings)
            {
                warn!("the settings stay as they are: {cause}");
            }
        }
        if round.users {
            let users = models.users.load();
            switchboard.keep_users(|it| users.get(it.0).is_some_and(|it| it.is_active));
        }
        if round.plans {
            // Nobody else tells live channels; one that dies meanwhile is followed by one that hears of it.
            while let Err(cause) = switchboard.reload().await {
                warn!("live channels are not told yet that their plans changed: {cause}");
                tokio::time::sleep(PAUSE).await;
            }
            tokio::time::sleep(PAUSE).await;
        }
        news = next_round(&mut changes).await;
    }
}

/// What there is to do.
#[derive(Clone, Copy, Default)]
struct Round {
    plans: bool,
    settings: bool,
    users: bool,
}

/// Waits for a commit, and takes those along that came meanwhile. `None` once the store is closed.
async fn next_round(changes: &mut Changes) -> Option<Round> {
    let mut round = Round::default();
    let mut news = changes.next().await;
    loop {
        match news {
            ChangeMessage::Changed(change) => round.add(&change),
            ChangeMessage::Lagged => round = Round::ALL,
            ChangeMessage::Closed => return None,
        }
        match changes.try_next() {
            Some(more) => news = more,
            None => return Some(round),
        }
    }
}

impl Round {
    const ALL: Round = Round { plans: true, settings: true, users: true };

    fn add(&mut self, change: &Change) {
        self.plans |= OF_PLANS.iter().any(|it| change.of(it).is_some());
        self.settings |= change.of(CoreSetting::COLLECTION).is_some();
        self.users |= change.of(User::COLLECTION).is_some();
    }
}

#[cfg(test)]
mod tests;
