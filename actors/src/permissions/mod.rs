//! What a user, or a caller without credentials, may see and watch now.

mod recordings;

use std::sync::Arc;

use domain::core_settings::{NETWORK_ACCESS, allows_adult_without_user};
use domain::ids::UserId;
use domain::lineup::{ViewLimits, visible};
use domain::user::{self, User, UserLevel};
use domain::vod::visible::{self as vod_visible, VodLimits};
use domain::vod::{AccountCategory, Relation, Title, TitleKind};
use storage::Models;

pub use self::recordings::VisibleRecordings;
use crate::clock::now_ms;
use crate::plans::Target;

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
            recording.is_none_or(|it| VisibleRecordings::new(models, user).shows(&it))
        }
        _ => true,
    };
    if user == user::ANONYMOUS {
        return channel.is_none_or(|it| visible(&view_limits(models, None), it))
            && may_watch_title(models, None, target)
            && may_play(None);
    }
    let now = now_ms();
    let is_allowed = |it: &&Arc<User>| it.is_active_at(now) && it.is_within_hours(now);
    let Some(user) = users.get(user.0).filter(is_allowed) else { return false };
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
