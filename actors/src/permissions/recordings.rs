//! Which recordings a viewer may play.

use std::sync::Arc;

use domain::channel::Channel;
use domain::ids::UserId;
use domain::lineup::{ViewLimits, visible};
use domain::recording::Recording;
use domain::user::{User, UserLevel};
use storage::{Models, Table};

use super::view_limits;

/// The recordings that a viewer may play: admins all, others their own and those of channels that they may watch. A snapshot
/// of one moment.
#[derive(Clone)]
pub struct VisibleRecordings {
    limits: ViewLimits,
    channels: Arc<Table<Channel>>,
    user: Option<UserId>,
    is_admin: bool,
}

impl VisibleRecordings {
    /// For a user, or for callers without credentials.
    pub fn new(models: &Models, user: Option<&User>) -> Self {
        Self {
            limits: view_limits(models, user),
            channels: models.channels.load(),
            user: user.map(|it| it.id),
            is_admin: user.is_some_and(|it| it.may(UserLevel::Admin)),
        }
    }

    /// Returns whether the viewer may play a recording.
    pub fn shows(&self, recording: &Recording) -> bool {
        self.is_admin
            || (self.user.is_some() && recording.owner == self.user)
            || self.channel(recording).is_some_and(|it| visible(&self.limits, it))
    }

    /// Returns the channel of a recording, if it still exists.
    pub fn channel(&self, recording: &Recording) -> Option<&Arc<Channel>> {
        self.channels.get(recording.channel.0)
    }
}
