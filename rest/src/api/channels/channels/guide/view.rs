//! Results of matching in answers.

use domain::channel::Channel;
use domain::guide::matching::{Candidate, Decision, MatchResult};
use domain::ids::{ChannelId, GuideChannelId, GuideSourceId};
use resource_derive::View;
use serde::Serialize;

use super::lookup::GuideLookup;
use crate::api::channels::channels::view::ChannelView;
use crate::api::channels::undo::UndoHandleView;
use crate::choice::{Named, choice};

choice!(
    enum DecisionName {
        Link = "link",
        Tie = "tie",
        BelowThreshold = "below_threshold",
        NoCandidate = "no_candidate",
        NoName = "no_name",
    }
);

impl DecisionName {
    pub(super) fn new(decision: Decision) -> Self {
        match decision {
            Decision::Link(_) => Self::Link,
            Decision::Tie => Self::Tie,
            Decision::BelowThreshold => Self::BelowThreshold,
            Decision::NoCandidate => Self::NoCandidate,
            Decision::NoName => Self::NoName,
        }
    }
}

/// A guide channel that may belong to a channel.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "MatchCandidate")]
pub(crate) struct CandidateView {
    /// Id of the guide channel.
    #[field(example = "12")]
    epg_data_id: GuideChannelId,
    /// Its key in the guide.
    #[field(example = "news.example")]
    tvg_id: String,
    /// Its name.
    #[field(example = "News")]
    name: String,
    /// Id of its guide source.
    #[field(example = "1")]
    epg_source: GuideSourceId,
    /// Agreement in percent.
    #[field(example = "97.0")]
    score: f64,
    /// Reasons for the score.
    #[field(example = "[\"same name\", \"same country uk\"]")]
    reasons: Vec<String>,
}

impl CandidateView {
    fn new(candidate: &Candidate, lookup: &GuideLookup) -> Option<Self> {
        let guide = lookup.get(candidate.channel)?;
        Some(Self {
            epg_data_id: guide.id,
            tvg_id: guide.key.clone(),
            name: guide.name().to_owned(),
            epg_source: guide.source,
            score: f64::from(candidate.points) / 10.0,
            reasons: candidate.reasons.iter().map(ToString::to_string).collect(),
        })
    }
}

/// The result for one channel.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "MatchedChannel")]
pub(crate) struct MatchedChannelView {
    /// Id of the channel.
    #[field(example = "7")]
    channel_id: ChannelId,
    /// Name of the channel.
    #[field(example = "UK: News HD")]
    channel_name: String,
    /// `link`: one guide channel fits. `tie`: several fit equally well. `below_threshold`: none fits well enough.
    /// `no_candidate`: nothing resembles the name. `no_name`: the channel is a heading, or its name has no word.
    decision: Named<DecisionName>,
    /// Id of the guide channel that fits.
    #[field(example = "12")]
    epg_data_id: Option<GuideChannelId>,
    /// At most 10 guide channels, the best first.
    candidates: Vec<CandidateView>,
}

impl MatchedChannelView {
    pub(super) fn new(channel: &Channel, result: &MatchResult, lookup: &GuideLookup) -> Self {
        let candidates = result.candidates.iter().filter_map(|it| CandidateView::new(it, lookup));
        Self {
            channel_id: channel.id,
            channel_name: channel.name.clone(),
            decision: Named(DecisionName::new(result.decision)),
            epg_data_id: match result.decision {
                Decision::Link(id) => Some(id),
                _ => None,
            },
            candidates: candidates.collect(),
        }
    }
}

/// Result of matching channels.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct MatchedView {
    /// Message for people.
    #[field(example = "Linked 2 of 3 channels")]
    pub(super) message: String,
    /// Whether this is a preview, and nothing was changed.
    pub(super) preview: bool,
    /// Number of matched channels.
    #[field(example = "3")]
    pub(super) total_count: usize,
    /// Number of selected channels that were left out, because they have a guide channel.
    #[field(example = "0")]
    pub(super) skipped_count: usize,
    /// Number of channels that are linked now, or would be.
    #[field(example = "2")]
    pub(super) matches_count: usize,
    /// Number of channels for which several guide channels fit equally well.
    #[field(example = "1")]
    pub(super) ties_count: usize,
    /// Results for the first 1,000 channels. Those that need a decision come first: ties, then those below the threshold.
    pub(super) results: Vec<MatchedChannelView>,
    /// The handle with which the links can be undone; `null` if nothing was changed.
    pub(super) undo: Option<UndoHandleView>,
}

/// Result of matching one channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct MatchedOneView {
    /// Message for people.
    #[field(example = "Linked channel News with news.example")]
    pub(super) message: String,
    /// Whether a guide channel fits.
    pub(super) matched: bool,
    /// The channel after the change.
    pub(super) channel: ChannelView,
    /// The decision and its candidates.
    pub(super) result: MatchedChannelView,
    /// The handle with which the link can be undone; `null` if nothing was changed.
    pub(super) undo: Option<UndoHandleView>,
}
