//! The output profile of a client: which one it gets, and what that makes of the stream.
//!
//! ```text
//! ?output_profile=ID ─► profile of the user ─► first pattern that matches the user agent ─► default ─► none
//! ```

use std::sync::Arc;

use actors::Target;
use domain::clients::segment_container;
use domain::core_settings::{STREAM_SETTINGS, default_output_profile};
use domain::ids::{OutputProfileId, StreamProfileId};
use domain::output_format::{OutputFormat, SegmentContainer, StreamFormat};
use domain::output_profile::{OutputProfile, OutputRules, OutputWish, Rendition};
use domain::stream_profile::StreamProfile;
use domain::user::User;
use parking_lot::RwLock;
use resource_derive::Query;
use route_frame::field::{Field, Kind};
use route_frame::value::{Readable, Shape, not_a_choice};
use serde_json::Value;
use server::caller::Caller;
use server::reply::{Refusal, TunerError};
use storage::{Models, Table};

use crate::context::PlayerContext;

/// The id of an output profile in the query of a stream.
#[derive(Clone, Copy, Debug)]
struct ProfileId(u32);

impl Shape for ProfileId {
    const KIND: Kind = u32::KIND;
}

impl Readable for ProfileId {
    /// Jellyfin adds `?transcode=heavy` to the addresses of a tuner also if they have a query already.
    fn read(value: &Value, field: &Field) -> Result<Self, String> {
        match value.as_str().and_then(|it| it.split_once('?')) {
            Some((id, _)) => u32::read(&Value::from(id), field).map(Self),
            None => u32::read(value, field).map(Self),
        }
    }
}

/// Selects the form of the stream. Other parameters are ignored, because players add their own.
#[derive(Debug, Default, Query)]
pub(super) struct StreamQuery {
    /// Id of an output profile; 0 is none. Without it, the user, the user agent and the settings decide.
    #[field(example = "1")]
    output_profile: Option<ProfileId>,
    /// Form of the stream: `mpegts` (or `ts`) and `fmp4` (or `mp4`) in one response, `hls` (or `m3u8`) for a playlist. The
    /// extension of the address has precedence; without both, the user decides.
    #[field(example = "mpegts")]
    output_format: Option<NamedFormat>,
    /// Another name of `output_format`, of which unknown values are ignored.
    #[field(chars_max = 100, example = "hls")]
    output: Option<String>,
    /// Container of the segments of HLS: `ts` or `fmp4`. Without it, the user agent decides.
    #[field(example = "fmp4")]
    container: Option<NamedContainer>,
    /// `1` for HLS with low latency, which needs fMP4.
    #[field(chars_max = 100, example = "1")]
    ll: Option<String>,
    /// Converts the sound and copies the picture, for browsers, which play neither AC-3 nor MP2. Overrides output
    /// profiles.
    sound: Option<Sound>,
    /// Plays the past of the channel from this time on, in UTC: seconds since 1970, or any form of `/timeshift/`.
    #[field(chars_max = 100, example = "1769884200")]
    utc: Option<String>,
    /// Duration of that part in seconds; two hours without it, at most eight.
    #[field(chars_max = 100, example = "3600")]
    duration: Option<String>,
    /// End of that part, if there is no duration.
    #[field(chars_max = 100, example = "1769887800")]
    utcend: Option<String>,
}

impl StreamQuery {
    /// Returns the format that the query asks for.
    pub(super) fn format(&self) -> Option<OutputFormat> {
        let of_parameter = self.output_format.map(|it| it.0);
        of_parameter.or_else(|| OutputFormat::from_name(self.output.as_deref()?))
    }

    /// Returns what a player of HLS gets. `agent` is its user agent.
    pub(super) fn hls_format(&self, agent: &str) -> StreamFormat {
        let is_low_latency = self.ll.as_deref().is_some_and(|it| matches!(it, "1" | "true" | "yes"));
        let container = match &self.container {
            Some(NamedContainer(container)) => *container,
            None if is_low_latency => SegmentContainer::Fmp4,
            None => segment_container(agent),
        };
        match container {
            SegmentContainer::Fmp4 if is_low_latency => StreamFormat::LowLatencyHls,
            container => StreamFormat::Hls(container),
        }
    }

    /// Returns whether the query leaves the container of HLS open.
    pub(super) fn leaves_container_open(&self) -> bool {
        matches!(self.hls_format(""), StreamFormat::Hls(_)) && self.container.is_none()
    }

    /// Returns the part of the past that the query asks for.
    pub(super) fn past(&self) -> Option<WantedPart<'_>> {
        let start = self.utc.as_deref().map(str::trim).filter(|it| !it.is_empty())?;
        let (duration, end) = (self.duration.as_deref(), self.utcend.as_deref());
        Some(WantedPart { start, duration, end })
    }
}

/// A part of the past of a channel, as the query of a live address has it.
#[derive(Debug, Clone, Copy)]
pub(super) struct WantedPart<'a> {
    pub(super) start: &'a str,
    /// In seconds.
    pub(super) duration: Option<&'a str>,
    pub(super) end: Option<&'a str>,
}

/// The sounds that browsers may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sound {
    Aac,
}

const SOUNDS: &[&str] = &["aac"];

impl Shape for Sound {
    const KIND: Kind = Kind::Choice(SOUNDS);
}

impl Readable for Sound {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        match value.as_str() {
            Some("aac") => Ok(Self::Aac),
            _ => Err(not_a_choice(value, SOUNDS)),
        }
    }
}

/// The formats that players may ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamedFormat(OutputFormat);

const FORMATS: &[&str] = &["mpegts", "ts", "hls", "m3u8", "fmp4", "mp4"];

impl Shape for NamedFormat {
    const KIND: Kind = Kind::Choice(FORMATS);
}

impl Readable for NamedFormat {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        match value.as_str() {
            Some("mpegts" | "ts") => Ok(Self(OutputFormat::Ts)),
            Some("hls" | "m3u8") => Ok(Self(OutputFormat::Hls)),
            Some("fmp4" | "mp4") => Ok(Self(OutputFormat::Mp4)),
            _ => Err(not_a_choice(value, FORMATS)),
        }
    }
}

/// The containers of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct NamedContainer(SegmentContainer);

const CONTAINERS: &[&str] = &["ts", "fmp4"];

impl Shape for NamedContainer {
    const KIND: Kind = Kind::Choice(CONTAINERS);
}

impl Readable for NamedContainer {
    fn read(value: &Value, _: &Field) -> Result<Self, String> {
        match value.as_str() {
            Some("ts") => Ok(Self(SegmentContainer::Ts)),
            Some("fmp4") => Ok(Self(SegmentContainer::Fmp4)),
            _ => Err(not_a_choice(value, CONTAINERS)),
        }
    }
}

/// The key of the custom properties of a user with the id of the preferred profile.
const OF_USER: &str = "output_profile";

/// The rules of all output profiles, compiled once for each version of them.
#[derive(Default)]
pub(crate) struct CompiledOutputRules(RwLock<Option<CompiledRules>>);

/// Rules, and the profiles that they were compiled from.
type CompiledRules = (Arc<Table<OutputProfile>>, Arc<OutputRules>);

impl CompiledOutputRules {
    fn load(&self, models: &Models) -> CompiledRules {
        let profiles = models.output_profiles.load();
        if let Some(known) = self.0.read().as_ref().filter(|it| Arc::ptr_eq(&it.0, &profiles)) {
            return known.clone();
        }
        let rules = Arc::new(OutputRules::new(profiles.iter().map(|it| &**it)));
        let compiled = (profiles, rules);
        *self.0.write() = Some(compiled.clone());
        compiled
    }
}

/// Returns whether addresses may ask for an output profile: 0, or the id of an active one.
pub(super) fn is_output_profile(context: &PlayerContext, id: u32) -> bool {
    id == 0
        || context.states.get::<CompiledOutputRules>().load(&context.models).1.is_active(OutputProfileId(id))
}

/// Returns what the output profile of a client makes of a target; `None` if the client gets the stream as it is.
///
/// # Errors
/// The profile in the query does not exist or is inactive, or the chosen one needs a program that cannot be started.
pub(super) fn rendition(
    context: &PlayerContext,
    user: Option<&User>,
    caller: &Caller,
    target: Target,
    query: &StreamQuery,
) -> Result<Option<Arc<Rendition>>, Refusal> {
    if query.sound.is_some() {
        return sound_for_browsers(target).map(Some);
    }
    let (profiles, rules) = context.states.get::<CompiledOutputRules>().load(&context.models);
    let chosen = match query.output_profile.map(|it| it.0) {
        Some(0) => None,
        Some(id) if rules.is_active(OutputProfileId(id)) => Some(OutputProfileId(id)),
        Some(id) => {
            let message = format!("No active output profile has the id {id}.");
            return Err(Refusal::field("output_profile", message).with_tuner_error(TunerError::TuneFailed));
        }
        None => {
            let settings = context.models.settings.load();
            let default = default_output_profile(settings.one_by("key", STREAM_SETTINGS).map(|it| &it.value));
            rules.choose(OutputWish {
                of_user: user.and_then(user_profile),
                user_agent: &caller.agent,
                default,
            })
        }
    };
    let Some(profile) = chosen.and_then(|it| profiles.get(it.0)) else { return Ok(None) };
    let stream_profiles = context.models.stream_profiles.load();
    let active = |id: StreamProfileId| stream_profiles.get(id.0).filter(|it| it.is_active);
    let made = profile.rendition(target.uuid(), active);
    made.map(|it| it.map(Arc::new)).map_err(|error| {
        Refusal::unavailable(format!("output profile \"{}\" {error}", profile.name))
            .with_tuner_error(TunerError::TuneFailed)
    })
}

/// The arguments with which ffmpeg copies the picture and converts the sound. It reads little before it begins.
const SOUND_PARAMETERS: &str = "-nostdin -loglevel error -probesize 1000000 -analyzeduration 1000000 -f mpegts \
                                -i {streamUrl} -map 0:v:0? -map 0:a:0? -c:v copy -c:a aac -b:a 160k -ac 2 -f mpegts \
                                -muxdelay 0 -flush_packets 1 pipe:1";

/// Returns the profile that converts the sound for browsers. It is built in, so that no admin can break it; all
/// viewers of a channel share its program.
pub(super) fn sound_for_browsers(target: Target) -> Result<Arc<Rendition>, Refusal> {
    let unavailable = |text: &str| Refusal::unavailable(text).with_tuner_error(TunerError::TuneFailed);
    if media::find_program("ffmpeg").is_none() {
        return Err(unavailable("The sound cannot be converted, because this machine has no ffmpeg."));
    }
    let profile = OutputProfile {
        command: "ffmpeg".to_owned(),
        parameters: SOUND_PARAMETERS.to_owned(),
        ..OutputProfile::new(OutputProfileId(0), "sound for browsers")
    };
    let made = profile.rendition(target.uuid(), |_| None::<Arc<StreamProfile>>).ok().flatten();
    made.map(Arc::new).ok_or_else(|| Refusal::fault("read the arguments of the sound for browsers"))
}

/// Returns the profile that a user prefers. Clients of similar services send it as a number or as a text.
fn user_profile(user: &User) -> Option<OutputProfileId> {
    let value = user.custom_properties.get(OF_USER)?;
    let number = value.as_u64().and_then(|it| u32::try_from(it).ok());
    number.or_else(|| value.as_str()?.trim().parse().ok()).map(OutputProfileId)
}

#[cfg(test)]
mod tests {
    use domain::ids::UserId;
    use domain::user::UserLevel;
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn the_profile_of_a_user_is_a_number_or_a_text() {
        let check = |value: Value, expected: Option<u32>| {
            let mut user = User::new(UserId(1), "anna", UserLevel::Streamer, 0);
            user.custom_properties.insert(OF_USER.to_owned(), value.clone());
            assert_eq!(user_profile(&user), expected.map(OutputProfileId), "{value}");
        };
        check(json!(7), Some(7));
        check(json!(" 7 "), Some(7));
        for other in [json!("small"), json!(-1), json!(5_000_000_000_u64), json!(null)] {
            check(other, None);
        }
    }
}
