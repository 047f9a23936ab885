//! The programme of a recording, and what the guide says about it.

use std::sync::Arc;

use domain::ids::ChannelId;
use domain::recording::rules::EpisodeKey;
use domain::recording::{
    DESCRIPTION_CHARS_MAX, FollowedAiring, PROGRAMME_TEXT_CHARS_MAX, RecordedProgramme, Recording,
};
use http::StatusCode;
use resource_derive::Body;
use route_frame::call::Call;
use serde_json::{Map, Value};
use server::reply::Refusal;
use services::guide::{EntryId, read_guide};

use super::access::{check_may_schedule, seen};
use super::view::RecordingView;
use crate::context::RestCall;
use crate::record::RecordCall;
use crate::seen::SeenThings;

/// A programme of the guide. Times are milliseconds since 1970.
pub(super) struct GuideProgramme {
    pub(super) start: i64,
    pub(super) end: i64,
    pub(super) programme: RecordedProgramme,
    pub(super) episode: EpisodeKey,
}

impl GuideProgramme {
    /// Returns what a recording of this programme follows. Only one with the times of the guide follows it.
    pub(super) fn followed_by(&self, recording: &Recording) -> Option<FollowedAiring> {
        let guide_key = self.programme.tvg_id.clone()?;
        let has_times = (recording.start, recording.end) == (self.start, self.end);
        has_times.then(|| FollowedAiring::by_hand(recording, guide_key, self.episode))
    }
}

/// Returns what the guide says about a programme, with the times at which a channel shows it; `None` if it does not know it, or
/// no channel that the caller may watch shows it.
pub(super) async fn guide_programme(
    call: &Call,
    id: &str,
    channel: Option<ChannelId>,
) -> Result<Option<GuideProgramme>, Refusal> {
    let Ok(entry_id) = id.parse::<EntryId>() else { return Ok(None) };
    let guides = call.rest().guide.guides.reader();
    let (context, seen, id) = (Arc::clone(call.rest()), SeenThings::new(call), id.to_owned());
    read_guide(move || {
        let found = match entry_id {
            EntryId::Stored(id, minutes) => {
                let found = guides.stored(id, minutes, &|it| Some(it.id) == channel);
                let found = found.filter(|(of, entry)| seen.shows_programme(&guides, of.id, entry));
                found.map(|(of, entry)| (entry, of.key.clone()))
            }
            EntryId::Generated(channel, start) => {
                let channel = context.models.channels.load().get(channel.0).cloned();
                let channel = channel.filter(|it| seen.sees(it));
                channel.and_then(|it| Some((guides.generated(&it, start)?.1, it.uuid.to_string())))
            }
        };
        Ok(found.map(|(entry, tvg_id)| {
            let programme = entry.programme();
            GuideProgramme {
                start: entry.start.saturating_mul(1000),
                end: entry.stop.saturating_mul(1000),
                episode: EpisodeKey::from_programme(&programme, &tvg_id),
                programme: RecordedProgramme::from_guide(&programme, id, &tvg_id),
            }
        }))
    })
    .await
}

/// Changes what a recording says about its programme.
#[derive(Debug, Body)]
pub(crate) struct UpdateMetadata {
    /// Title; an empty one restores the name of the channel.
    #[field(blank, chars_max = PROGRAMME_TEXT_CHARS_MAX, example = "Evening")]
    title: Option<String>,
    /// Title of the episode.
    #[field(blank, chars_max = PROGRAMME_TEXT_CHARS_MAX)]
    sub_title: Option<String>,
    /// Description.
    #[field(blank, chars_max = DESCRIPTION_CHARS_MAX)]
    description: Option<String>,
    /// Number of the season.
    #[field(example = "3")]
    season: Option<u32>,
    /// Number of the episode.
    #[field(example = "7")]
    episode: Option<u32>,
}

/// Changes the programme of a recording to what the body says or, if it says nothing, to what the guide says now. The file
/// keeps its name.
pub(super) async fn update_metadata(call: Call, sent: UpdateMetadata) -> Result<RecordingView, Refusal> {
    check_may_schedule(&call)?;
    let recording = seen(&call)?;
    let UpdateMetadata { title, sub_title, description, season, episode } = sent;
    let texts = [&title, &sub_title, &description];
    let says_nothing = texts.iter().all(|it| it.is_none()) && season.is_none() && episode.is_none();
    let guide = match recording.programme.as_ref().and_then(|it| it.id.as_deref()) {
        Some(id) if says_nothing => guide_programme(&call, id, Some(recording.channel)).await?,
        _ => None,
    };
    if says_nothing && guide.is_none() {
        let detail = "The guide does not know the programme.".to_owned();
        return Err(Refusal::status(StatusCode::CONFLICT).with_detail(detail));
    }
    call.update(move |_, recording: &mut Recording| {
        match guide {
            Some(guide) => recording.programme = Some(guide.programme),
            None => {
                let programme = recording.programme.get_or_insert_default();
                let some = |it: String| Some(it).filter(|it| !it.is_empty());
                programme.title = title.unwrap_or(std::mem::take(&mut programme.title));
                programme.sub_title = sub_title.map_or(programme.sub_title.take(), some);
                programme.description = description.map_or(programme.description.take(), some);
                programme.season = season.or(programme.season);
                programme.episode = episode.or(programme.episode);
            }
        }
        recording.updated_at = actors::now_ms();
        recording.after.describe_again(recording.updated_at);
        Ok(())
    })
    .await
}

/// Applies what a client says about the programme in the form of similar services.
///
/// # Errors
/// The message for the client.
pub(super) fn apply_properties(
    programme: &mut Option<RecordedProgramme>,
    properties: &Map<String, Value>,
) -> Result<(), String> {
    let Some(program) = properties.get("program").filter(|it| !it.is_null()) else { return Ok(()) };
    let program = program.as_object().ok_or("`program` must be an object.")?;
    let text = |name: &str, chars_max: usize| match program.get(name) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(Value::String(text)) if text.chars().count() <= chars_max && !text.contains('\0') => {
            Ok(Some(Some(text.trim().to_owned()).filter(|it| !it.is_empty())))
        }
        Some(_) => Err(format!("`program.{name}` must be a text of up to {chars_max} characters.")),
    };
    let number = |name: &str| match program.get(name) {
        None => Ok(None),
        Some(Value::Null) => Ok(Some(None)),
        Some(value) => match value.as_u64().and_then(|it| u32::try_from(it).ok()) {
            Some(number) => Ok(Some(Some(number))),
            None => Err(format!("`program.{name}` must be a whole number.")),
        },
    };
    let mut changed = programme.clone().unwrap_or_default();
    if let Some(title) = text("title", PROGRAMME_TEXT_CHARS_MAX)? {
        changed.title = title.unwrap_or_default();
    }
    let replace = |value: &mut Option<String>, sent: Option<Option<String>>| {
        if let Some(sent) = sent {
            *value = sent;
        }
    };
    replace(&mut changed.sub_title, text("sub_title", PROGRAMME_TEXT_CHARS_MAX)?);
    replace(&mut changed.description, text("description", DESCRIPTION_CHARS_MAX)?);
    replace(&mut changed.tvg_id, text("tvg_id", PROGRAMME_TEXT_CHARS_MAX)?);
    changed.season = number("season")?.unwrap_or(changed.season);
    changed.episode = number("episode")?.unwrap_or(changed.episode);
    let id = match program.get("id") {
        Some(Value::Number(id)) => Some(id.to_string()),
        _ => text("id", PROGRAMME_TEXT_CHARS_MAX)?.flatten(),
    };
    changed.id = changed.id.or(id);
    if changed != RecordedProgramme::default() {
        *programme = Some(changed);
    }
    Ok(())
}
