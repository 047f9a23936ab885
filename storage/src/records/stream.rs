//! Streams, in blocks per account, because a playlist has hundreds of thousands.

use domain::account::CUSTOM_ACCOUNT;
use domain::stream::Stream;

use crate::record::{CollectionKind, Keys, Record, Sharing};

impl Record for Stream {
    const COLLECTION: &'static str = "streams";
    const SHARING: Sharing = Sharing::FullNodes;
    const KIND: CollectionKind = CollectionKind::Paged;
    /// Addresses contain user names and passwords.
    const SEALED: bool = true;
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        // Few streams have their own profile.
        if let Some(profile) = self.stream_profile {
            keys.plain("stream_profile", profile.0.to_be_bytes());
        }
    }

    /// A refresh fetches the streams of a playlist again. Nobody has the streams that admins added.
    fn may_be_missed(owner: u64) -> bool {
        owner != u64::from(CUSTOM_ACCOUNT.0)
    }

    fn owner(&self) -> u64 {
        u64::from(self.account.0)
    }
}
