//! Where each noun lives and how it is found; nothing else.

mod account;
mod channel;
mod group;
mod refresh;
mod setting;
mod stream;
mod stream_profile;
mod user;

pub use self::account::next_profile_id;

use crate::record::Schema;

/// All nouns of the gateway.
pub fn schema() -> Schema {
    Schema::new()
        .with::<domain::account::Account>()
        .with::<domain::account::RefreshRecord>()
        .with::<domain::channel::Channel>()
        .with::<domain::group::Group>()
        .with::<domain::secret::ServerKeys>()
        .with::<domain::setting::CoreSetting>()
        .with::<domain::stream::Stream>()
        .with::<domain::stream_profile::StreamProfile>()
        .with::<domain::user::User>()
}
