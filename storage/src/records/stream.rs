//! Streams, in blocks per account, because a playlist has hundreds of thousands.

use domain::stream::Stream;

use crate::record::{CollectionKind, Keys, Record};

impl Record for Stream {
    const COLLECTION: &'static str = "streams";
    const KIND: CollectionKind = CollectionKind::Paged;
    /// Addresses contain user names and passwords.
    const SEALED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        // Few streams have their own profile.
        if let Some(profile) = self.stream_profile {
            keys.plain("stream_profile", profile.0.to_be_bytes());
        }
    }

    fn owner(&self) -> u64 {
        u64::from(self.account.0)
    }
}
