//! The answer of a replacement.

use domain::ids::StreamId;
use domain::stream_identity::{PairKey, StreamPair};
use resource_derive::View;
use serde::Serialize;

use super::carry_out::Done;
use super::comparison::{Comparison, UnpairedReason};
use crate::api::channels::undo::UndoHandleView;
use crate::choice::{Named, choice};

/// Pairs of streams of two accounts, and what became of them.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "AccountReplacement")]
pub(crate) struct ReplacementView {
    /// Message for people.
    #[field(
        example = "Replaced 687 streams of \"Old\" in 680 channels by streams of \"New\"; without a pair: 12"
    )]
    message: String,
    /// Whether this is a preview, and nothing was changed.
    preview: bool,
    /// Number of channels that changed, or would change with a preview.
    #[field(example = "680")]
    channels_count: usize,
    /// Number of channels that refreshes of the other account created for the same streams, and that are removed, or would be
    /// with a preview. A refresh creates no further ones.
    #[field(example = "0")]
    duplicates_count: usize,
    /// Number of such channels that stay, because an admin changed them, or recordings, rules or personal playlists name
    /// them.
    #[field(example = "0")]
    duplicates_kept_count: usize,
    /// Number of pairs.
    #[field(example = "687")]
    pairs_count: usize,
    /// Number of streams that channels use and that have no pair.
    #[field(example = "12")]
    unpaired_count: usize,
    /// Number of pairs that each property found.
    paired_by: Vec<PairedByView>,
    /// The pairs, those with the lowest score first: a part of them.
    pairs: Vec<StreamPairView>,
    /// The streams that stay as they are: a part of them.
    unpaired: Vec<UnpairedView>,
    /// The handle with which the replacement can be undone; `null` if nothing was changed.
    undo: Option<UndoHandleView>,
}

/// The number of pairs that a property found.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "PairedBy")]
pub(crate) struct PairedByView {
    /// The property.
    #[field(example = "guide_id")]
    key: Named<PairKey>,
    /// Number of pairs.
    #[field(example = "600")]
    streams: usize,
}

/// A stream, and the one that takes its place.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "StreamPair")]
pub(crate) struct StreamPairView {
    /// Id of the stream of this account.
    #[field(example = "7")]
    stream_id: StreamId,
    /// Its name.
    #[field(example = "News HD")]
    name: String,
    /// Host of its URL.
    #[field(example = "one.example")]
    host: Option<String>,
    /// Id of the stream of the other account.
    #[field(example = "907")]
    replacement_id: StreamId,
    /// Its name.
    #[field(example = "UK: News HD")]
    replacement_name: String,
    /// Host of its URL.
    #[field(example = "two.example")]
    replacement_host: Option<String>,
    /// Property by which they are a pair.
    #[field(example = "guide_id")]
    paired_by: Named<PairKey>,
    /// Agreement in percent.
    #[field(example = "98.0")]
    score: f64,
    /// Number of channels that use the stream.
    #[field(example = "1")]
    channels_count: usize,
}

/// A stream without a pair.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "UnpairedStream")]
pub(crate) struct UnpairedView {
    /// Id of the stream.
    #[field(example = "8")]
    stream_id: StreamId,
    /// Its name.
    #[field(example = "Local TV")]
    name: String,
    /// Host of its URL.
    #[field(example = "one.example")]
    host: Option<String>,
    /// Why it has no pair: nothing fits it, several streams fit equally well, or the request leaves it out.
    #[field(example = "no_match")]
    reason: Named<UnpairedReason>,
    /// Number of channels that use the stream.
    #[field(example = "1")]
    channels_count: usize,
}

choice!(PairKey { PanelId = "panel_id", GuideId = "guide_id", Name = "name" });

/// The rows of lists that an answer has.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub(super) offset: usize,
    pub(super) limit: usize,
}

/// Describes a replacement, or without `done` a preview of one.
pub(super) fn view(found: &Comparison, message: &str, rows: Rows, done: Option<Done>) -> ReplacementView {
    let by = |key: PairKey| PairedByView {
        key: Named(key),
        streams: found.pairs.iter().filter(|it| it.key == key).count(),
    };
    let pairs = found.pairs.iter().skip(rows.offset).take(rows.limit);
    let unpaired = found.unpaired.iter().skip(rows.offset).take(rows.limit);
    let n_channels = done.as_ref().map_or(found.channels.len(), |it| it.n_channels);
    let n_removed = done.as_ref().map_or(found.duplicates.removed.len(), |it| it.n_removed);
    ReplacementView {
        message: message.to_owned(),
        preview: done.is_none(),
        channels_count: n_channels,
        duplicates_count: n_removed,
        duplicates_kept_count: found.duplicates.n_kept,
        pairs_count: found.pairs.len(),
        unpaired_count: found.unpaired.len(),
        paired_by: [PairKey::PanelId, PairKey::GuideId, PairKey::Name].map(by).into(),
        pairs: pairs.map(|it| found.pair(it)).collect(),
        unpaired: unpaired.map(|(id, reason)| found.unpaired(*id, *reason)).collect(),
        undo: done.and_then(|it| it.undo),
    }
}

impl Comparison {
    fn shown(&self, id: StreamId) -> (String, Option<String>) {
        self.listed.get(&id).map(|it| (it.name.clone(), it.host.clone())).unwrap_or_default()
    }

    fn n_channels(&self, id: StreamId) -> usize {
        self.uses.get(&id).copied().unwrap_or_default()
    }

    fn pair(&self, pair: &StreamPair) -> StreamPairView {
        let (name, host) = self.shown(pair.from);
        let (replacement_name, replacement_host) = self.shown(pair.to);
        StreamPairView {
            stream_id: pair.from,
            name,
            host,
            replacement_id: pair.to,
            replacement_name,
            replacement_host,
            paired_by: Named(pair.key),
            score: f64::from(pair.points) / 10.0,
            channels_count: self.n_channels(pair.from),
        }
    }

    fn unpaired(&self, stream_id: StreamId, reason: UnpairedReason) -> UnpairedView {
        let (name, host) = self.shown(stream_id);
        let channels_count = self.n_channels(stream_id);
        UnpairedView { stream_id, name, host, reason: Named(reason), channels_count }
    }
}
