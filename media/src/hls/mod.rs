//! HTTP Live Streaming as a client sees it: reads playlists, and decides what is fetched next.
//! Pure: text, results and time in, decisions out. `crate::source` fetches.
//!
//! `playlist.rs` reads the text of master and media playlists (RFC 8216), with the faults that providers write.
//! `variants.rs` chooses one of the variants of a master playlist. `machine.rs` follows the media playlist of that variant.

mod attributes;
mod machine;
mod names;
mod playlist;
#[cfg(test)]
mod tests;
mod variants;

pub use self::machine::{HlsMachine, HlsStep, SegmentJob, StreamBreak};
pub use self::playlist::{
    ADDRESS_BYTES_MAX, HlsError, HlsPlaylist, KeyMethod, MasterPlaylist, MediaPlaylist, MediaSegment,
    PLAYLIST_BYTES_MAX, SEGMENTS_MAX, SegmentRange, VARIANTS_MAX, Variant, VariantPicture,
};
pub use self::variants::{VariantLimits, Variants, variant_for_program};
