//! The result of a preview of a refresh.

use std::sync::Arc;

use domain::ids::StreamId;
use domain::playlist::delta::DeltaCounts;
use domain::source_url::SourceUrl;
use domain::stream_identity::IdentityKey;
use parking_lot::Mutex;

/// The result of a preview: the effects of a refresh.
#[derive(Debug, Clone, Default)]
pub struct RefreshPreview {
    /// Number of usable entries.
    pub n_entries: u64,
    /// Numbers of entries by change.
    pub counts: DeltaCounts,
    /// Number of entries that filters and disabled groups leave out. Films and episodes that become titles do not count.
    pub n_left_out: u64,
    /// Number of streams that would become stale.
    pub n_stale: u64,
    /// Number of streams that would be removed.
    pub n_removed: u64,
    /// Number of known streams that several entries could be.
    pub n_contested: u64,
    /// The number of streams that each key recognises, in the order of the keys.
    pub recognised: Vec<(IdentityKey, u64)>,
    /// Why an admin would have to confirm the refresh.
    pub refusal: Option<String>,
    /// At most 200 changes of each kind.
    pub changes: Vec<PreviewedChange>,
}

/// One change of a preview.
#[derive(Debug, Clone)]
pub struct PreviewedChange {
    /// `None` for a new stream.
    pub stream: Option<StreamId>,
    /// The key that recognises the stream; `None` for a new one and for one that is missing.
    pub key: Option<IdentityKey>,
    pub before: Option<PreviewedStream>,
    pub after: Option<PreviewedStream>,
}

/// A stream as a preview shows it.
#[derive(Debug, Clone)]
pub struct PreviewedStream {
    pub name: String,
    pub url: SourceUrl,
}

/// Where an import that is a preview leaves it.
pub(super) type PreviewSlot = Arc<Mutex<Option<RefreshPreview>>>;
