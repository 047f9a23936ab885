//! Recordings for players: as films and series of a panel, in a playlist and a guide of their own, and as files.
//!
//! A viewer finds and plays the same recordings everywhere: those of [`VisibleRecordings`] that have a file, as long as the
//! setting `recordings_in_players` is set.

pub mod file;
pub mod for_nodes;
pub mod hls;
mod output;
pub mod parts;
pub mod picture;
pub(super) mod rows;

use std::sync::Arc;

use actors::{Target, VisibleRecordings};
use domain::channel::Channel;
use domain::core_settings::{SYSTEM_SETTINGS, time_zone};
use domain::ids::RecordingId;
use domain::recording::Recording;
use http::Method;
use http::header::CONTENT_TYPE;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use route_frame::call::Call;
use route_frame::route::MediaType;
use server::WarpBody;
use server::reply::Refusal;
use services::recording_rules::dvr_settings;
use warp::reply::Response as Reply;

use self::file::FileSelection;
use self::hls::HlsPlaylist;
pub(super) use self::output::routes;
pub use self::output::{RECORDINGS_GUIDE, RECORDINGS_PLAYLIST};
use super::seat::take_seat;
use crate::context::PlayerCall;

/// The recordings that a viewer finds, the newest one first.
pub(super) struct ListedRecordings {
    visible: VisibleRecordings,
    zone: TimeZone,
    pub(super) recordings: Vec<Arc<Recording>>,
}

impl ListedRecordings {
    /// Empty if players list no recordings.
    pub(super) fn new(call: &Call) -> Self {
        let models = &call.player().models;
        let visible = VisibleRecordings::new(models, call.user().ok().map(|it| &**it));
        let mut recordings = Vec::new();
        if dvr_settings(&call.player().models).recordings_in_players {
            let all = models.recordings.load();
            recordings.extend(all.iter().filter(|it| it.file.is_some() && visible.shows(it)).cloned());
            recordings.sort_by_key(|it| std::cmp::Reverse((it.start, it.id)));
        }
        let settings = models.settings.load();
        let system = settings.one_by("key", SYSTEM_SETTINGS).map(|it| &it.value);
        let zone = TimeZone::get(time_zone(system)).unwrap_or(TimeZone::UTC);
        Self { visible, zone, recordings }
    }

    /// Returns the channel of a recording, if it still exists.
    pub(super) fn channel(&self, recording: &Recording) -> Option<&Arc<Channel>> {
        self.visible.channel(recording)
    }

    /// Returns the start of a recording as people read it, such as `2031-05-04 20:15`.
    fn local_start(&self, recording: &Recording, format: &str) -> String {
        let start = Timestamp::from_millisecond(recording.start).unwrap_or_default();
        start.to_zoned(self.zone.clone()).strftime(format).to_string()
    }

    /// Returns the name in lists: of a film its title, of an episode with season and number, of anything else with the start.
    pub(super) fn name(&self, recording: &Recording) -> String {
        let title = recording.title();
        let programme = recording.programme.as_ref();
        match programme.and_then(|it| it.season.zip(it.episode)) {
            Some((season, episode)) => format!("{title} S{season:02}E{episode:02}"),
            None if programme.is_some_and(|it| it.is_movie) => title.to_owned(),
            None => format!("{title} ({})", self.local_start(recording, "%Y-%m-%d %H:%M")),
        }
    }
}

/// Returns the recording with this number in player apps, if the caller finds it.
pub(super) fn find_by_number(call: &Call, number: u32) -> Option<Arc<Recording>> {
    find(call, RecordingId::from_player_number(number)?)
}

/// Returns a recording with a file, if the caller finds it.
pub(super) fn find(call: &Call, id: RecordingId) -> Option<Arc<Recording>> {
    if !dvr_settings(&call.player().models).recordings_in_players {
        return None;
    }
    let models = &call.player().models;
    let recording = models.recordings.load().get(id.0).cloned()?;
    let visible = VisibleRecordings::new(models, call.user().ok().map(|it| &**it));
    (recording.file.is_some() && visible.shows(&recording)).then_some(recording)
}

/// Returns the playlist of a recording for players of HLS. `file` is the address of its file.
pub(super) async fn play_as_hls(call: &Call, recording: &Recording, file: &str) -> Result<Reply, Refusal> {
    let text = hls::playlist(call.player(), recording, file).await?;
    let mut reply = Reply::new(WarpBody::from(text));
    reply.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(HlsPlaylist::NAME));
    Ok(reply)
}

/// Plays a recording that the caller finds, with a seat as for a film.
pub(super) async fn play(
    call: &Call,
    recording: &Recording,
    selection: FileSelection<'_>,
) -> Result<Reply, Refusal> {
    let held = match call.method {
        Method::HEAD => None,
        _ => take_seat(call, Target::Recording(recording.id), Refusal::unknown::<Recording>).await?,
    };
    parts::answer(call, recording, selection, held).await
}
