//! The health of streams in answers, and as an order of the list.

use std::collections::{HashMap, HashSet};

use actors::now_ms;
use domain::health::{SCORE_UNKNOWN, StreamHealth};
use domain::ids::StreamId;
use domain::streams::{StreamOrder, StreamPage, StreamQuery, StreamSnapshot};
use resource_derive::View;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::context::RestContext;

/// Values measured while a stream played.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "StreamStats")]
pub(crate) struct StreamStatsView {
    /// Name of the video codec.
    #[field(example = "H.264")]
    video_codec: Option<String>,
    /// Name of the audio codec.
    #[field(example = "AAC")]
    audio_codec: Option<String>,
    /// Size of the picture.
    #[field(example = "1920x1080")]
    resolution: Option<String>,
    /// Width of the picture in pixels.
    #[field(example = "1920")]
    width: Option<u32>,
    /// Height of the picture in pixels.
    #[field(example = "1080")]
    height: Option<u32>,
    /// Bit rate in kilobits per second.
    #[field(example = "4800")]
    bitrate_kbps: Option<u32>,
}

impl StreamStatsView {
    /// Returns `None` if the stream was never measured.
    pub(in crate::api::channels) fn new(health: &StreamHealth) -> Option<Self> {
        health.measured_at?;
        let size = health.width.zip(health.height);
        Some(Self {
            video_codec: health.video_codec.clone(),
            audio_codec: health.audio_codec.clone(),
            resolution: size.map(|(width, height)| format!("{width}x{height}")),
            width: health.width,
            height: health.height,
            bitrate_kbps: health.bitrate_kbps,
        })
    }
}

/// Outcomes of the plays of a stream.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "StreamHealth")]
pub(crate) struct StreamHealthView {
    /// From 0 (always fails) to 100 (never fails). Approaches 50, which is unknown, while the stream is not played.
    #[field(example = "90")]
    score: u32,
    /// Number of openings that succeeded or failed.
    #[field(example = "12")]
    attempts: u32,
    /// Number of openings that failed because of the stream.
    #[field(example = "1")]
    failures: u32,
    /// Number of openings that failed because of the account, such as a full one.
    #[field(example = "0")]
    refusals: u32,
    /// Number of losses while the stream played.
    #[field(example = "1")]
    losses: u32,
    /// Number of failures, refusals and losses by cause.
    #[field(example = "{\"stall\": 2}")]
    causes: Map<String, Value>,
    /// Time from the request to the first packets at the last success, in milliseconds.
    #[field(example = "340")]
    first_packet_ms: Option<u32>,
    /// When the stream last delivered packets.
    last_success: Option<Time>,
    /// When the stream last failed or was lost.
    last_failure: Option<Time>,
    /// Cause of the last failure.
    #[field(example = "stall")]
    last_cause: Option<String>,
    /// When it was noticed that the picture stands still, which is the same with a cover of a radio station and a provider
    /// without a programme; `null` if it moves.
    still_picture_at: Option<Time>,
    /// Usual longest distance of the key frames in seconds; 0 if the stream has none, `null` if that is unknown.
    #[field(example = "2.0")]
    group_seconds: Option<f64>,
    /// Peculiarities of the stream: `table_checksum`, `program_number`, `program_chosen`. Each has the time when it was seen
    /// last, in milliseconds since 1970.
    #[field(example = "{\"table_checksum\": 1700000000000}")]
    notes: Map<String, Value>,
}

impl StreamHealthView {
    pub(super) fn new(health: &StreamHealth) -> Self {
        let notes = health.notes.iter().map(|(label, at)| (label.clone(), Value::from(*at)));
        let causes = health.causes.iter().map(|(cause, n)| (cause.clone(), Value::from(*n)));
        let now = now_ms();
        Self {
            score: health.score(now).into(),
            attempts: health.attempts,
            failures: health.failures,
            refusals: health.refusals,
            losses: health.losses,
            causes: causes.collect(),
            first_packet_ms: health.first_packet_ms,
            last_success: health.last_success.map(Time),
            last_failure: health.last_failure.map(Time),
            last_cause: health.last_cause.clone(),
            still_picture_at: health.still_picture_at.map(Time),
            group_seconds: health.known_group_ms(now).map(|it| f64::from(it) / 1000.0),
            notes: notes.collect(),
        }
    }
}

/// Returns the health of these streams that were played.
pub(in crate::api::channels) fn health_of(
    context: &RestContext,
    streams: impl IntoIterator<Item = StreamId>,
) -> HashMap<StreamId, StreamHealth> {
    context.live.plans.health().get_all(streams)
}

/// The streams that were played, with their scores, the lowest first. All others have the score of unknown ones.
pub(super) struct ByHealth {
    scores: Vec<(u8, StreamId)>,
    is_descending: bool,
}

impl ByHealth {
    pub(super) fn new(context: &RestContext, is_descending: bool) -> Self {
        let mut scores: Vec<_> =
            context.live.plans.health().scores().into_iter().map(|(id, score)| (score, id)).collect();
        scores.sort_unstable();
        Self { scores, is_descending }
    }

    /// Returns the streams of a window, ordered by score and then by id.
    pub(super) fn find(
        &self,
        index: &StreamSnapshot,
        query: &StreamQuery,
        offset: usize,
        limit: usize,
    ) -> StreamPage {
        let played: HashSet<StreamId> = self.scores.iter().map(|it| it.1).collect();
        let only = match &query.only {
            Some(only) => only.intersection(&played).copied().collect(),
            None => played.clone(),
        };
        let known = StreamQuery { only: Some(only), order: StreamOrder::Id, ..query.clone() };
        let known: HashSet<StreamId> = index.ids(&known).into_iter().collect();
        let (mut low, mut high) = (Vec::new(), Vec::new());
        for (score, id) in self.scores.iter().filter(|it| known.contains(&it.1)) {
            let side = if *score < SCORE_UNKNOWN { &mut low } else { &mut high };
            side.push(*id);
        }
        let mut without = query.without.clone().unwrap_or_default();
        without.extend(&known);
        let unknown = StreamQuery {
            without: Some(without),
            order: StreamOrder::Id,
            descending: self.is_descending,
            ..query.clone()
        };
        if self.is_descending {
            std::mem::swap(&mut low, &mut high);
            low.reverse();
            high.reverse();
        }
        let mut page = StreamPage { count: known.len(), ids: Vec::new() };
        let (mut offset, mut limit) = (offset, limit);
        take(&low, &mut offset, &mut limit, &mut page.ids);
        let others = index.find(&unknown, offset, limit);
        page.count += others.count;
        offset = offset.saturating_sub(others.count);
        limit -= others.ids.len();
        page.ids.extend(others.ids);
        take(&high, &mut offset, &mut limit, &mut page.ids);
        page
    }
}

/// Appends the part of a list that is in the window, and moves the window behind the list.
fn take(list: &[StreamId], offset: &mut usize, limit: &mut usize, into: &mut Vec<StreamId>) {
    let before = into.len();
    into.extend(list.iter().skip(*offset).take(*limit));
    *offset = offset.saturating_sub(list.len());
    *limit -= into.len() - before;
}
