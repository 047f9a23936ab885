//! Which stream an id belongs to, recorded apart from the streams.
//!
//! Channels refer to streams by their ids. A playlist can be fetched again if the records of its streams are damaged, but
//! it does not contain ids. So the identity of each stream is recorded under its id as well, in pages of their own, and a
//! stream that returns gets its id back.

use std::num::NonZeroU64;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::account::StreamIdentity;
use crate::ids::{AccountId, StreamId};
use crate::playlist::delta::panel_id_of;
use crate::stream::StreamProperties;

/// Number of consecutive ids in a page.
pub const IDS_PER_PAGE: u32 = 256;
/// The namespace of the hashes. Changing it would give new ids to the streams of a damaged store.
const NAMESPACE: Uuid = Uuid::from_u128(0x6f0d_31c4_9be2_4d7a_8c55_e0a1_76f2_43b9);

/// Identifies a stream among all streams of all accounts: a hash of its account and of what identifies it there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StreamKey(NonZeroU64);

impl StreamKey {
    /// Returns the key of a stream with these properties. Streams that differ only in their position in the playlist have
    /// the same key.
    pub fn new(account: AccountId, identity: StreamIdentity, properties: &StreamProperties) -> Self {
        let text = match panel_id_of(identity, &properties.url) {
            Some(panel_id) => format!("{account} {panel_id}"),
            None => format!("{account} url {}", properties.url.expose()),
        };
        let (half, _) = Uuid::new_v5(&NAMESPACE, text.as_bytes()).as_u64_pair();
        Self(NonZeroU64::new(half).unwrap_or(NonZeroU64::MIN))
    }
}

/// The keys of the streams with [`IDS_PER_PAGE`] consecutive ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamIdPage {
    /// The first id, divided by [`IDS_PER_PAGE`].
    pub number: u32,
    /// In the order of the ids; 0 where no stream is. What is missing at the end is 0.
    keys: Vec<u64>,
}

impl StreamIdPage {
    pub fn new(number: u32) -> Self {
        Self { number, keys: Vec::new() }
    }

    /// Returns the number of the page with this id.
    pub fn number_of(id: StreamId) -> u32 {
        id.0 / IDS_PER_PAGE
    }

    /// Records the key of a stream of this page, or that the stream does not exist any more.
    pub fn set(&mut self, id: StreamId, key: Option<StreamKey>) {
        let at = (id.0 % IDS_PER_PAGE) as usize;
        if at >= self.keys.len() {
            self.keys.resize(at + 1, 0);
        }
        self.keys[at] = key.map_or(0, |it| it.0.get());
        let n = self.keys.iter().rposition(|it| *it != 0).map_or(0, |last| last + 1);
        self.keys.truncate(n);
    }

    /// Lists the streams in the order of their ids.
    pub fn iter(&self) -> impl Iterator<Item = (StreamId, StreamKey)> + '_ {
        let first = self.number.saturating_mul(IDS_PER_PAGE);
        let ids = (first..=u32::MAX).take(IDS_PER_PAGE as usize).map(StreamId);
        ids.zip(&self.keys).filter_map(|(id, key)| Some((id, StreamKey(NonZeroU64::new(*key)?))))
    }

    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source_url::SourceUrl;

    fn key(account: u32, identity: StreamIdentity, url: &str) -> StreamKey {
        let properties = StreamProperties::new("News", SourceUrl::new(url));
        StreamKey::new(AccountId(account), identity, &properties)
    }

    fn key_with_value(key: u64) -> StreamKey {
        StreamKey(NonZeroU64::new(key).unwrap())
    }

    #[test]
    fn a_key_is_the_same_for_ever_and_differs_by_account_and_identity() {
        let url = "http://h/live/u/p/7.ts";
        assert_eq!(key(2, StreamIdentity::Url, url), key_with_value(0xe3a8_7b08_b5d4_5cd1));
        assert_eq!(key(2, StreamIdentity::StreamId, url), key_with_value(0xd100_eddc_ca73_59b3));
        let other_login = "http://i/live/v/q/7.ts";
        assert_eq!(key(2, StreamIdentity::StreamId, other_login), key(2, StreamIdentity::StreamId, url));
        assert_ne!(key(2, StreamIdentity::Url, other_login), key(2, StreamIdentity::Url, url));
        assert_ne!(key(3, StreamIdentity::Url, url), key(2, StreamIdentity::Url, url));
        let film = "http://h/movie/u/p/7.ts";
        assert_ne!(key(2, StreamIdentity::StreamId, film), key(2, StreamIdentity::StreamId, url));
    }

    #[test]
    fn a_page_lists_what_was_set_and_becomes_empty() {
        let mut page = StreamIdPage::new(StreamIdPage::number_of(StreamId(600)));
        for (id, key) in [(767, 3), (512, 1), (600, 2)] {
            page.set(StreamId(id), Some(key_with_value(key)));
        }
        let listed = |page: &StreamIdPage| page.iter().map(|it| (it.0.0, it.1.0.get())).collect::<Vec<_>>();
        assert_eq!(listed(&page), [(512, 1), (600, 2), (767, 3)]);
        page.set(StreamId(767), None);
        page.set(StreamId(512), None);
        assert_eq!((listed(&page), page.is_empty()), (vec![(600, 2)], false));
        page.set(StreamId(600), None);
        assert!(page.is_empty());
        let mut last = StreamIdPage::new(StreamIdPage::number_of(StreamId(u32::MAX)));
        last.set(StreamId(u32::MAX), Some(key_with_value(9)));
        assert_eq!(listed(&last), [(u32::MAX, 9)]);
    }
}
