//! One type per kind of id, so that an account's id cannot be taken for a stream's.

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
    /// An account profile: credentials of an account with a limit of their own. Unique over all accounts.
    ProfileId
}
id! {
    /// An address that a channel can play from.
    StreamId
}
id! {
    /// A channel of the lineup. Channels that play are known by their uuid; this one is for lists and tuners.
    ChannelId
}

id! {
    /// A channel group.
    GroupId
}

id! {
    /// A stream profile: a way to hand streams on.
    StreamProfileId
}

id! {
    /// A user of ours. Not a user at a provider.
    UserId
}
