//! One type per kind of id, so that an account's id cannot be mistaken for a stream's.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A playlist account.
    AccountId
}
id! {
    /// An account profile: credentials of an account with their own limit. Unique across all accounts.
    ProfileId
}
id! {
    /// An address that a channel can play from.
    StreamId
}
id! {
    /// A channel of the lineup. Live channels are identified by their uuid; this id is for lists and tuners.
    ChannelId
}

id! {
    /// A channel group.
    GroupId
}

id! {
    /// A lineup: a selection of channels.
    LineupId
}

id! {
    /// A personal playlist of a user.
    PersonalPlaylistId
}

id! {
    /// A server group: accounts that share one limit.
    ServerGroupId
}

id! {
    /// The link of an account with a channel group that its playlist names.
    AccountGroupId
}

id! {
    /// A logo of channels.
    LogoId
}

id! {
    /// A stream profile: a way to deliver streams.
    StreamProfileId
}

id! {
    /// An output profile: what is changed in a stream for some clients.
    OutputProfileId
}

id! {
    /// An integration: a target of events.
    IntegrationId
}

id! {
    /// A delivery: an event on its way to an integration.
    DeliveryId
}

id! {
    /// An entry of the log of deliveries.
    LogEntryId
}

id! {
    /// A login of a user on a device.
    DeviceLoginId
}

id! {
    /// A permission that users can hold.
    PermissionId
}

id! {
    /// A group of users.
    UserGroupId
}

id! {
    /// A user of the gateway, as opposed to a user at a provider.
    UserId
}

id! {
    /// An additional emulated tuner.
    TunerDeviceId
}

id! {
    /// A guide source.
    GuideSourceId
}

id! {
    /// A guide channel: a channel as a guide source names it.
    GuideChannelId
}

id! {
    /// A category of films or of series. Taken from the ids of channel groups, so that the ids of both differ.
    VodCategoryId
}

id! {
    /// An episode of a series.
    EpisodeId
}

id! {
    /// A recording of a channel.
    RecordingId
}

id! {
    /// A rule that makes recordings.
    RecordingRuleId
}
