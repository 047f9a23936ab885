//! The names of segments, to recognise them in another version of a playlist.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::hls::playlist::{MediaPlaylist, MediaSegment};

/// The name of a segment: the last part of its path, and its range. Tokens in the query or in folders may change in every
/// version of a playlist. Only a hash is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SegmentName(u64);

impl SegmentName {
    pub(super) fn from_segment(segment: &MediaSegment) -> Self {
        let address: &str = &segment.address;
        let path = address.split(['?', '#']).next().unwrap_or_default();
        let file = path.rsplit('/').next().unwrap_or_default();
        let mut hasher = DefaultHasher::new();
        (file, segment.range).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// Returns the names of all segments of a playlist.
    pub(super) fn all_of(list: &MediaPlaylist) -> Vec<Self> {
        list.segments.iter().map(Self::from_segment).collect()
    }
}
