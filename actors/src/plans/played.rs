//! Addresses that are played and are not those of streams. Each has an id that no stream in the store has.

use std::collections::VecDeque;
use std::sync::Arc;

use domain::ids::{AccountId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};

/// Maximum number of addresses. Beyond it, the one is forgotten that was planned longest ago.
const ADDRESSES_MAX: usize = 256;

/// The first id of an address. The store counts from 1, and has far fewer streams.
const FIRST: u32 = 0xFFFF_0000;

/// Returns whether an id is one of an address and not of a stream. It has a meaning on one node only.
pub fn is_id(id: StreamId) -> bool {
    id.0 >= FIRST
}

/// The addresses that were played last.
#[derive(Default)]
pub(super) struct PlayedAddresses {
    n_added: u32,
    /// The one that was planned last comes last.
    streams: VecDeque<Arc<Stream>>,
}

impl PlayedAddresses {
    /// Adds an address of an account. It is known by its host alone.
    pub(super) fn add(&mut self, account: AccountId, url: SourceUrl) -> StreamId {
        let known = self.streams.iter().find(|it| it.account == account && *it.url() == url);
        if let Some(id) = known.map(|it| it.id) {
            return id;
        }
        let id = StreamId(FIRST + self.n_added % (u32::MAX - FIRST));
        self.n_added += 1;
        let name = url.host().unwrap_or_default().to_owned();
        self.streams.push_back(Arc::new(Stream::new(id, account, StreamProperties::new(name, url), 0)));
        if self.streams.len() > ADDRESSES_MAX {
            self.streams.pop_front();
        }
        id
    }

    pub(super) fn get(&mut self, id: StreamId) -> Option<Arc<Stream>> {
        let at = self.streams.iter().position(|it| it.id == id)?;
        let stream = self.streams.remove(at)?;
        self.streams.push_back(Arc::clone(&stream));
        Some(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_play_are_known_by_ids_of_their_own_and_their_number_is_bounded() {
        let mut played = PlayedAddresses::default();
        let url = |n: usize| SourceUrl::new(format!("http://p.example/live/u/secret/{n}.ts"));
        let first = played.add(AccountId(2), url(0));
        assert!(is_id(first) && !is_id(StreamId(1)) && !is_id(StreamId(9_999_999)));
        assert_eq!(played.add(AccountId(2), url(0)), first);
        assert_ne!(played.add(AccountId(3), url(0)), first);
        let stream = played.get(first).unwrap();
        assert_eq!((stream.name(), stream.account), ("p.example", AccountId(2)));
        for n in 1..ADDRESSES_MAX + 10 {
            played.add(AccountId(2), url(n));
            // What plays is planned again and again, and stays.
            assert!(played.get(first).is_some());
        }
        assert_eq!(played.streams.len(), ADDRESSES_MAX);
        assert_eq!(played.get(StreamId(5)), None);
    }
}
