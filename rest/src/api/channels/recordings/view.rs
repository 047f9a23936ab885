//! A recording in answers and bodies.

use std::sync::Arc;

use actors::Recorder;
use domain::channel::Channel;
use domain::ids::{ChannelId, RecordingId, RecordingRuleId, UserId};
use domain::recording::forecast::{Forecast, Prospect};
use domain::recording::{
    FURTHER_RULES_MAX, GAPS_MAX, PADDING_SECONDS_MAX, PARTS_MAX, PRIORITY_MAX, RecordedFile, Recording,
    RecordingStatus,
};
use node::recordings::ReachableFiles;
use resource_derive::View;
use route_frame::call::Call;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value, json};
use server::reply::Refusal;
use storage::Table;

use super::after_view::{ArtworkView, ComskipState, ComskipView, CutView, RemuxView, artwork_address};
use super::program_id::ProgramId;
use crate::choice::{Choice, Named, choice};
use crate::context::RestCall;
use crate::record::{Lookup, Render, view_from};
use crate::text_code::TextCodeView;

/// Minimum padding, in seconds.
pub(in crate::api::channels) const PADDING_SECONDS_MIN: i64 = -(PADDING_SECONDS_MAX as i64);

choice!(
    /// The prospects of a recording.
    enum ForecastState {
        Assigned = "assigned",
        PaddingCut = "padding_cut",
        Lost = "lost",
        NoSource = "no_source",
    }
);

impl ForecastState {
    pub(super) fn new(it: &Recording, prospect: &Prospect) -> Self {
        match prospect {
            Prospect::Assigned { padding_before, padding_after, .. } => {
                let wanted = ((it.start - it.begins_at()).max(0), (it.ends_at() - it.end).max(0));
                if (*padding_before, *padding_after) == wanted { Self::Assigned } else { Self::PaddingCut }
            }
            Prospect::Lost(_) => Self::Lost,
            Prospect::NoSource => Self::NoSource,
        }
    }
}

/// A recording of a channel.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "Recording", new = NewRecording, edit = RecordingEdit)]
pub(crate) struct RecordingView {
    /// Assigned by the gateway and never reused.
    #[field(example = "4")]
    id: RecordingId,
    /// Id of the channel.
    #[field(edit, example = "1")]
    channel_id: ChannelId,
    /// The same as `channel_id`, for clients of similar services.
    #[field(edit, example = "1")]
    channel: ChannelId,
    /// Name of the channel when the recording was made.
    channel_name: String,
    /// Id of the programme, which the guide need not know. If the guide knows it, times and title may be left out.
    #[field(edit, example = "4503601413783552")]
    program_id: Option<ProgramId>,
    /// Title of the programme, or the name of the channel.
    #[field(example = "Evening")]
    title: String,
    /// Start, without padding. May be past: what is over by then is missing, unless the archive of the provider has it. If the
    /// end is past too, the archive must have all of it.
    #[field(edit)]
    start_time: Time,
    /// End, without padding.
    #[field(edit)]
    end_time: Time,
    /// Seconds that are recorded before the start. A negative number begins that much later.
    #[field(edit, at_least = PADDING_SECONDS_MIN, at_most = PADDING_SECONDS_MAX as i64, example = "60")]
    padding_before: i32,
    /// Seconds that are recorded after the end. A negative number ends that much earlier.
    #[field(edit, at_least = PADDING_SECONDS_MIN, at_most = PADDING_SECONDS_MAX as i64, example = "300")]
    padding_after: i32,
    /// From 0 to 100; the higher one wins when not all recordings can be made.
    #[field(edit, at_least = 0, at_most = PRIORITY_MAX as i64, example = "50")]
    priority: u32,
    /// Whether quotas, retention and the number that a rule keeps leave the recording alone.
    #[field(edit)]
    protected: bool,
    /// Status. Setting `completed` or `stopped` ends a running recording and keeps its file.
    #[field(edit, example = "scheduled")]
    status: Named<RecordingStatus>,
    /// Why the recording has its status, or why it has not begun.
    reason: Option<String>,
    /// The code of `reason`, if it has one.
    reason_code: Option<TextCodeView>,
    /// The prospects of an upcoming recording of the next two weeks: see `forecast/`.
    forecast: Option<Named<ForecastState>>,
    /// Times in which nothing was recorded.
    #[field(items_max = GAPS_MAX)]
    gaps: Vec<GapView>,
    /// The search for commercials; `null` if none was requested.
    comskip: Option<ComskipView>,
    /// The conversion to another container; `null` if none was wanted.
    remux: Option<RemuxView>,
    /// The copy without commercials; `null` if none was wanted, or none were found.
    cut: Option<CutView>,
    /// Path of the description for media servers (NFO) below the folder of recordings.
    nfo_file: Option<String>,
    /// The picture; `null` if none was wanted.
    artwork: Option<ArtworkView>,
    /// Path of the file below the folder of recordings.
    #[field(example = "TV_Shows/Evening/2031-05-04 20-15.ts")]
    file_name: Option<String>,
    /// Size of the file in bytes.
    file_size: Option<u64>,
    /// Name of the node of the cluster that has the file, or its last part.
    #[field(example = "attic")]
    node: Option<String>,
    /// Whether all of the file can be read now. False while a node that has the file or a part of it is down.
    is_available: bool,
    /// The parts, in order, if several nodes have made the recording; otherwise empty. `file_url` plays those that can be read
    /// now, one after the other.
    #[field(items_max = PARTS_MAX)]
    parts: Vec<RecordingPartView>,
    /// Path of the file in this interface.
    #[field(example = "/api/channels/recordings/4/file/")]
    file_url: Option<String>,
    /// When the first packet was stored.
    started_at: Option<Time>,
    /// When the last packet was stored; `null` while the file grows.
    ended_at: Option<Time>,
    /// Id of the rule that made the recording.
    rule_id: Option<RecordingRuleId>,
    /// Ids of all rules that want the recording, the one that made it first. A programme that several rules want is one
    /// recording, with the highest priority and the longest padding of them.
    #[field(items_max = FURTHER_RULES_MAX + 1)]
    rule_ids: Vec<RecordingRuleId>,
    /// Id of the user who made the recording.
    owner: Option<UserId>,
    /// Always `null`; for clients of similar services.
    task_id: Option<String>,
    /// The same facts in the form of similar services. Of what clients send, `program` counts: `title`, `sub_title`,
    /// `description`, `tvg_id`, `season` and `episode`.
    #[field(edit)]
    custom_properties: Option<Map<String, Value>>,
    /// Time of creation.
    created_at: Time,
    /// Time of the last change.
    updated_at: Time,
}

/// A part of a recording that several nodes have made.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct RecordingPartView {
    /// Name of the node that has it.
    #[field(example = "attic")]
    node: Option<String>,
    /// Whether it can be read now: its node runs.
    is_available: bool,
    /// Path of its file below the folder of recordings of its node.
    file_name: String,
    /// Size in bytes; 0 while nobody knows it.
    file_size: u64,
    /// Path of its file in this interface.
    #[field(example = "/api/channels/recordings/4/file/?part=1")]
    file_url: String,
    /// When its first packet was stored.
    started_at: Time,
    /// When its last packet was stored; `null` while it grows, or while its node is down.
    ended_at: Option<Time>,
}

/// A time in which nothing was recorded.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "RecordingGap")]
pub(crate) struct GapView {
    /// Start.
    start: Time,
    /// End; `null` while it lasts.
    end: Option<Time>,
    /// Why nothing was recorded.
    reason: String,
    /// The code of `reason`, if it has one.
    reason_code: Option<TextCodeView>,
}

/// Data that views of recordings depend on.
pub(crate) struct RecorderLookup(Recorder, Arc<Forecast>, Arc<Table<Channel>>, ReachableFiles);

impl Lookup for RecorderLookup {
    fn load(call: &Call) -> Result<Self, Refusal> {
        Ok(Self(
            call.rest().recordings.recorder.clone(),
            call.rest().recordings.recorder.forecast(&call.rest().models),
            call.rest().models.channels.load(),
            ReachableFiles::now(&call.rest().nodes),
        ))
    }
}

impl Render for Recording {
    type View = RecordingView;
    type Lookup = RecorderLookup;

    fn view(&self, lookup: &RecorderLookup) -> RecordingView {
        let file = self.file.as_ref();
        let running = lookup.0.progress(self.id).map(|it| it.bytes);
        let file_size = file.map(|it| running.unwrap_or(0).max(it.bytes));
        let file_url = file.map(|_| format!("/api/channels/recordings/{}/file/", self.id));
        let started_at = self.parts().next().map(|it| Time(it.started_at));
        let ended_at = file.and_then(|it| it.ended_at).map(Time);
        let programme = self.programme.as_ref();
        let program_id = programme.and_then(|it| it.id.clone()).map(ProgramId);
        let mut properties = json!({
            "status": self.status.name(),
            "interrupted_reason": self.reason.as_ref().filter(|_| self.status != RecordingStatus::Completed),
            "program": programme.map(|it| json!({
                "id": program_id,
                "title": it.title,
                "sub_title": it.sub_title,
                "description": it.description,
                "tvg_id": it.tvg_id,
                "season": it.season,
                "episode": it.episode,
                "start_time": Time(self.start),
                "end_time": Time(self.end),
            })),
            "rule": self.rule().map(|id| json!({
                "id": id,
                "type": if self.followed.as_ref().is_some_and(|it| it.guide_key.is_empty()) { "recurring" } else { "series" },
            })),
            "file_name": file.and_then(|it| it.path.rsplit('/').next()),
            "file_path": file.map(|it| &it.path),
            "file_url": file_url,
            "started_at": started_at,
            "ended_at": ended_at,
            "bytes_written": file_size,
            "poster_url": self.after.artwork.as_ref().and_then(|it| artwork_address(it, self.id)),
            "poster_logo_id": lookup.2.get(self.channel.0).and_then(|it| it.logo_id),
            "remux_success": self.after.remux.as_ref().filter(|it| !it.state.is_open()).map(|it| it.reason.is_none()),
            "comskip": self.after.comskip.as_ref().map(|it| json!({
                "status": ComskipState::new(it).name(),
                "reason": it.reason,
                "commercials": it.commercials.len(),
                "edl": it.edl,
            })),
        });
        if let Some(members) = properties.as_object_mut() {
            members.retain(|_, it| !it.is_null());
        }
        let part = |(n, it): (usize, &RecordedFile)| RecordingPartView {
            node: it.node.clone(),
            is_available: lookup.3.has(it),
            file_name: it.path.clone(),
            file_size: it.bytes,
            file_url: format!("/api/channels/recordings/{}/file/?part={}", self.id, n + 1),
            started_at: Time(it.started_at),
            ended_at: it.ended_at.map(Time),
        };
        let parts = self.parts().enumerate().filter(|_| !self.earlier_parts.is_empty()).map(part);
        let gap = |it: &domain::recording::Gap| GapView {
            start: Time(it.start),
            end: it.end.map(Time),
            reason: it.reason.clone(),
            reason_code: TextCodeView::find(&it.reason),
        };
        view_from!(RecordingView from self {
            id, channel, channel_name, padding_before, padding_after, protected, status, reason, owner,
            created_at, updated_at;
            reason_code: self.reason.as_deref().and_then(TextCodeView::find),
            channel_id: self.channel,
            program_id,
            title: self.title().to_owned(),
            start_time: Time(self.start),
            end_time: Time(self.end),
            priority: u32::from(self.priority),
            forecast: lookup
                .1
                .get(self.id)
                .filter(|_| !self.status.is_final())
                .map(|it| Named(ForecastState::new(self, it))),
            gaps: self.gaps.iter().map(gap).collect(),
            comskip: self.after.comskip.as_ref().map(ComskipView::new),
            remux: self.after.remux.as_ref().map(RemuxView::new),
            cut: self.after.cut.as_ref().map(|it| CutView::new(it, self.id)),
            nfo_file: self.after.nfo.as_ref().and_then(|it| it.path.clone()),
            artwork: self.after.artwork.as_ref().map(|it| ArtworkView::new(it, self.id)),
            file_name: file.map(|it| it.path.clone()),
            file_size,
            node: file.and_then(|it| it.node.clone()),
            is_available: file.is_some() && self.parts().all(|it| lookup.3.has(it)),
            parts: parts.collect(),
            file_url,
            started_at,
            ended_at,
            rule_id: self.rule(),
            rule_ids: self.rules().collect(),
            task_id: None,
            custom_properties: properties.as_object().cloned(),
        })
    }
}
