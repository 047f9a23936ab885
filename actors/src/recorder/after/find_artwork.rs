//! What finds the pictures of recordings.

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use domain::recording::{ArtworkOrigin, Recording};

/// A picture for a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Artwork {
    pub bytes: Bytes,
    /// Extension of its file, without a dot.
    pub extension: &'static str,
    pub origin: ArtworkOrigin,
}

/// Finds and fetches the pictures of recordings.
pub trait FindArtwork: Send + Sync {
    /// Returns the picture of a recording; `None` if neither its programme nor its channel has one. The error is the reason
    /// why the one that there is cannot be fetched.
    fn find(
        &self,
        recording: Arc<Recording>,
    ) -> Pin<Box<dyn Future<Output = Result<Option<Artwork>, String>> + Send + '_>>;
}
