//! Films, series and episodes, in blocks by ranges of ids, because accounts offer hundreds of thousands.
//!
//! The owner of a record is the range of its id. Ranges do not overlap, so the range of a record is found at once, and an
//! import can replace some ranges without the others.

use domain::ids::{AccountId, VodCategoryId};
use domain::vod::{
    AccountCategory, Episode, Title, TitleDetails, TitleId, TitleKind, VodCategory, VodSync, id_in,
};
use uuid::Uuid;

use crate::record::{CollectionKind, Keys, Record, Sharing};

/// Number of ids in a range, as a power of two.
const RANGE_BITS: u32 = 13;

/// Returns the owner of a title, by the key of its id.
pub(crate) fn title_owner(key: u32) -> u64 {
    u64::from(key >> RANGE_BITS)
}

/// Returns the keys of the titles that have this owner.
pub(crate) fn title_keys_of(owner: u64) -> std::ops::RangeInclusive<u32> {
    let first = u32::try_from(owner << RANGE_BITS).unwrap_or(u32::MAX);
    first..=first | ((1 << RANGE_BITS) - 1)
}

/// Returns the value of the indexes `tmdb` and `imdb`.
pub fn external_id_key(kind: TitleKind, id: &str) -> Vec<u8> {
    let mut key = vec![match kind {
        TitleKind::Movie => 0,
        TitleKind::Series => 1,
    }];
    key.extend_from_slice(id.as_bytes());
    key
}

/// Returns the value of the index `name` of categories.
pub fn category_key(kind: TitleKind, name: &str) -> Vec<u8> {
    external_id_key(kind, name)
}

/// Returns the value of the index `link` of the categories of accounts.
pub fn category_link_key(account: AccountId, category: VodCategoryId) -> [u8; 8] {
    let mut key = [0; 8];
    key[..4].copy_from_slice(&account.0.to_be_bytes());
    key[4..].copy_from_slice(&category.0.to_be_bytes());
    key
}

/// Adds the key of a UUID, unless the UUID ends with the id of its record.
fn uuid_key(keys: &mut Keys, uuid: Uuid, id: u32) {
    if id_in(uuid) != id {
        keys.plain("uuid", uuid.as_bytes());
    }
}

impl Record for Title {
    const COLLECTION: &'static str = "vod_titles";
    const SHARING: Sharing = Sharing::FullNodes;
    const KIND: CollectionKind = CollectionKind::Paged;
    /// Addresses contain user names and passwords.
    const SEALED: bool = true;
    /// A refresh fetches the titles again. A missing title is not listed, so nobody sees a hidden one.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id.key()
    }

    fn owner(&self) -> u64 {
        title_owner(self.id.key())
    }

    fn keys(&self, keys: &mut Keys) {
        uuid_key(keys, self.uuid, self.id.key());
        for alias in &self.aliases {
            keys.plain("alias", alias.id.key().to_be_bytes());
            keys.plain("uuid", alias.uuid.as_bytes());
        }
        for relation in &self.relations {
            keys.plain("relation", relation.id.0.to_be_bytes());
        }
        let ids = self.matching_ids();
        let kind = self.id.kind();
        ids.tmdb.iter().for_each(|it| keys.plain("tmdb", external_id_key(kind, it)));
        ids.imdb.iter().for_each(|it| keys.plain("imdb", external_id_key(kind, it)));
    }
}

/// Returns the owner of the details of a relation.
fn details_owner(relation: u32) -> u64 {
    u64::from(relation >> RANGE_BITS)
}

impl Record for TitleDetails {
    const COLLECTION: &'static str = "vod_details";
    const SHARING: Sharing = Sharing::FullNodes;
    const KIND: CollectionKind = CollectionKind::Paged;
    /// Providers name addresses with logins in them.
    const SEALED: bool = true;
    /// Loaded again at the next opening.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.relation.0
    }

    fn owner(&self) -> u64 {
        details_owner(self.relation.0)
    }
}

impl Record for Episode {
    const COLLECTION: &'static str = "vod_episodes";
    const SHARING: Sharing = Sharing::FullNodes;
    const KIND: CollectionKind = CollectionKind::Paged;
    /// Addresses contain user names and passwords.
    const SEALED: bool = true;
    /// Loaded again when the series is opened.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn owner(&self) -> u64 {
        u64::from(self.id.0 >> RANGE_BITS)
    }

    fn keys(&self, keys: &mut Keys) {
        uuid_key(keys, self.uuid, self.id.0);
        keys.plain("series", series_key(self.series));
        for alias in &self.aliases {
            keys.plain("alias", alias.id.0.to_be_bytes());
            keys.plain("uuid", alias.uuid.as_bytes());
        }
    }
}

/// Returns the value of the index `series` of episodes.
pub(crate) fn series_key(series: TitleId) -> [u8; 4] {
    series.key().to_be_bytes()
}

impl Record for VodCategory {
    const COLLECTION: &'static str = "vod_categories";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id.0
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("name", category_key(self.kind, &self.name));
    }
}

impl Record for AccountCategory {
    const COLLECTION: &'static str = "vod_account_categories";
    const SHARING: Sharing = Sharing::AllNodes;

    fn id(&self) -> u32 {
        self.id
    }

    fn keys(&self, keys: &mut Keys) {
        keys.unique("link", category_link_key(self.account, self.category));
        keys.plain("account", self.account.0.to_be_bytes());
        keys.plain("category", self.category.0.to_be_bytes());
    }
}

impl Record for VodSync {
    const COLLECTION: &'static str = "vod_syncs";
    const SHARING: Sharing = Sharing::AllNodes;
    /// Without it, the next import has nothing to compare its size with.
    const MAY_BE_MISSED: bool = true;

    fn id(&self) -> u32 {
        self.account.0
    }
}
