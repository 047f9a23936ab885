//! Where each noun lives and how it is found; nothing else.

mod account;
mod channel;
mod stream;

use crate::record::Schema;

/// All nouns of the gateway.
pub fn schema() -> Schema {
    Schema::new()
        .with::<domain::account::Account>()
        .with::<domain::channel::Channel>()
        .with::<domain::stream::Stream>()
}
