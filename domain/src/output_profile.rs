//! Output profiles: what is changed in a stream for some clients before it is sent to them.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::command::{Argv, CommandTemplate, CommandValues};
use crate::ids::{OutputProfileId, StreamProfileId};
use crate::pattern::Pattern;
use crate::stream_profile::StreamProfile;

/// Maximum number of output profiles.
pub const OUTPUT_PROFILES_MAX: usize = 100;
/// Maximum number of packet identifiers that one profile leaves out.
pub const LEFT_OUT_PIDS_MAX: usize = 100;

/// An output profile: what is left out of a stream, and a program that converts the rest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputProfile {
    pub id: OutputProfileId,
    /// Unique.
    pub name: String,
    #[serde(default)]
    pub container: Container,
    /// Packet identifiers of elementary streams that are left out.
    #[serde(default)]
    pub left_out_pids: BTreeSet<u16>,
    /// Elementary streams of these kinds are left out.
    #[serde(default)]
    pub left_out_kinds: BTreeSet<LeftOutKind>,
    /// The stream profile whose program converts the stream. `None` if the profile has a command of its own, or none.
    #[serde(default)]
    pub stream_profile: Option<StreamProfileId>,
    /// A program that converts the stream: a name or an absolute path. Empty if there is none.
    #[serde(default)]
    pub command: String,
    /// The arguments of the program, as [`CommandTemplate`] parses them.
    #[serde(default)]
    pub parameters: String,
    /// A regular expression. Clients whose user agent it matches get the profile unless another one was chosen. Empty
    /// matches no client.
    #[serde(default)]
    pub user_agent_pattern: String,
    /// The order in which patterns are tried.
    #[serde(default)]
    pub position: u32,
    /// Clients get no inactive profile.
    pub is_active: bool,
}

/// The container of a stream that is sent to clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Container {
    #[default]
    Mpegts,
}

/// The kind of an elementary stream that can be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LeftOutKind {
    Video,
    Audio,
    Subtitles,
    Teletext,
    Data,
}

/// The elementary streams that are left out.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LeftOut {
    pub pids: BTreeSet<u16>,
    pub kinds: BTreeSet<LeftOutKind>,
}

impl LeftOut {
    pub fn is_empty(&self) -> bool {
        self.pids.is_empty() && self.kinds.is_empty()
    }
}

/// The stream of one channel as an output profile changes it. All clients of the channel with equal renditions share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendition {
    pub profile: OutputProfileId,
    /// Name of the profile.
    pub name: String,
    pub left_out: LeftOut,
    /// The program that converts the stream, from its standard input to its standard output.
    pub command: Option<Argv>,
}

/// Reason why an output profile cannot be used, worded as the rest of a sentence that begins with the profile.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenditionError {
    #[error("needs stream profile {0}, which is inactive or runs no program")]
    StreamProfile(StreamProfileId),
    #[error("has an invalid command")]
    Command,
}

impl OutputProfile {
    /// Creates an active profile that changes nothing.
    pub fn new(id: OutputProfileId, name: impl Into<String>) -> Self {
        Self {
            id,
            name: name.into(),
            container: Container::default(),
            left_out_pids: BTreeSet::new(),
            left_out_kinds: BTreeSet::new(),
            stream_profile: None,
            command: String::new(),
            parameters: String::new(),
            user_agent_pattern: String::new(),
            position: 0,
            is_active: true,
        }
    }

    /// Returns what the profile makes of a channel, or `None` if it changes nothing. `stream_profile` finds an active
    /// stream profile.
    ///
    /// # Errors
    /// The profile needs a program that cannot be started.
    pub fn rendition<S: AsRef<StreamProfile>>(
        &self,
        channel: Uuid,
        stream_profile: impl FnOnce(StreamProfileId) -> Option<S>,
    ) -> Result<Option<Rendition>, RenditionError> {
        let template = match self.stream_profile {
            Some(id) => {
                let missing = RenditionError::StreamProfile(id);
                let found = stream_profile(id).ok_or_else(|| missing.clone())?;
                Some(found.as_ref().template().ok_or(missing)?)
            }
            None => self.template(),
        };
        let channel_id = channel.to_string();
        let values =
            CommandValues { stream_url: INPUT, user_agent: None, channel_id: &channel_id, protocols: "pipe" };
        let command = template.transpose().map_err(|_| RenditionError::Command)?.map(|it| it.fill(values));
        let left_out = LeftOut { pids: self.left_out_pids.clone(), kinds: self.left_out_kinds.clone() };
        let changes_nothing = command.is_none() && left_out.is_empty();
        let rendition = || Rendition { profile: self.id, name: self.name.clone(), left_out, command };
        Ok((!changes_nothing).then(rendition))
    }

    /// Returns the profile's own command, parsed, if it has one.
    pub fn template(&self) -> Option<Result<CommandTemplate, crate::command::CommandTemplateError>> {
        (!self.command.is_empty()).then(|| CommandTemplate::new(&self.command, &self.parameters))
    }
}

/// The address from which a program reads its standard input; the value of `{streamUrl}`.
const INPUT: &str = "pipe:0";

/// The rules by which clients get an output profile.
#[derive(Debug, Default)]
pub struct OutputRules {
    /// Active profiles.
    active: BTreeSet<OutputProfileId>,
    /// The patterns of active profiles, in the order in which they are tried.
    patterns: Vec<(Pattern, OutputProfileId)>,
}

/// The facts that decide about the output profile of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OutputWish<'a> {
    /// The profile that the user prefers.
    pub of_user: Option<OutputProfileId>,
    pub user_agent: &'a str,
    /// The profile of clients without another one.
    pub default: Option<OutputProfileId>,
}

impl OutputRules {
    /// Compiles the patterns of the profiles. An invalid pattern matches no client.
    pub fn new<'a>(profiles: impl IntoIterator<Item = &'a OutputProfile>) -> Self {
        let mut active: Vec<_> = profiles.into_iter().filter(|it| it.is_active).collect();
        active.sort_by_key(|it| (it.position, it.id));
        let pattern = |it: &&OutputProfile| Some((Pattern::new(&it.user_agent_pattern, "").ok()?, it.id));
        Self {
            patterns: active.iter().filter_map(pattern).collect(),
            active: active.iter().map(|it| it.id).collect(),
        }
    }

    /// Returns whether this is an active profile.
    pub fn is_active(&self, id: OutputProfileId) -> bool {
        self.active.contains(&id)
    }

    /// Chooses the profile of a client that names none: that of its user, the first whose pattern matches its user
    /// agent, or the default. Inactive profiles are skipped.
    pub fn choose(&self, wish: OutputWish<'_>) -> Option<OutputProfileId> {
        let active = |id: &OutputProfileId| self.is_active(*id);
        let by_agent = || self.patterns.iter().find(|it| it.0.is_match(wish.user_agent)).map(|it| it.1);
        wish.of_user.filter(active).or_else(by_agent).or(wish.default.filter(active))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::stream_profile::Delivery;

    fn profile(id: u32, pattern: &str) -> OutputProfile {
        OutputProfile {
            user_agent_pattern: pattern.to_owned(),
            ..OutputProfile::new(OutputProfileId(id), format!("profile {id}"))
        }
    }

    fn id(id: u32) -> Option<OutputProfileId> {
        Some(OutputProfileId(id))
    }

    #[test]
    fn the_user_goes_before_the_user_agent_and_the_default_comes_last() {
        let first = OutputProfile { position: 1, ..profile(2, "(?i)kodi") };
        let inactive = OutputProfile { is_active: false, ..profile(5, "VLC") };
        let all = [
            OutputProfile { position: 2, ..profile(1, "Kodi|VLC") },
            first,
            profile(3, ""),
            profile(4, "("),
            inactive,
        ];
        let rules = OutputRules::new(&all);
        let choose = |of_user, user_agent, default| rules.choose(OutputWish { of_user, user_agent, default });
        assert_eq!(choose(id(3), "kodi/20", id(1)), id(3));
        assert_eq!(choose(None, "KODI/20", id(1)), id(2));
        assert_eq!(choose(None, "VLC/3", id(3)), id(1));
        assert_eq!(choose(None, "mpv", id(3)), id(3));
        assert_eq!(choose(None, "mpv", None), None);
        assert_eq!(choose(id(5), "mpv", id(9)), None, "inactive and unknown profiles are skipped");
        assert!(rules.is_active(OutputProfileId(4)) && !rules.is_active(OutputProfileId(5)));
    }

    #[test]
    fn a_rendition_has_what_is_left_out_and_a_command_that_reads_its_standard_input() {
        let none = |_| None::<Arc<StreamProfile>>;
        let made = |profile: &OutputProfile| profile.rendition(Uuid::from_u128(7), none).unwrap();
        assert_eq!(made(&profile(1, "")), None, "nothing is changed");
        let radio = OutputProfile { left_out_kinds: [LeftOutKind::Video].into(), ..profile(1, "") };
        let rendition = made(&radio).unwrap();
        assert_eq!((rendition.left_out.kinds.len(), rendition.command), (1, None));
        let own = OutputProfile {
            command: "conv".to_owned(),
            parameters: "-ua {userAgent} -p {protocols} {channelId} {streamUrl}".to_owned(),
            ..profile(1, "")
        };
        let command = made(&own).unwrap().command.unwrap();
        let expected = ["-p", "pipe", "00000000-0000-0000-0000-000000000007", "pipe:0"];
        assert_eq!(
            (command.program.as_str(), command.arguments),
            ("conv", expected.map(str::to_owned).to_vec())
        );
    }

    #[test]
    fn a_profile_whose_program_cannot_be_started_is_refused() {
        let needs = |id: u32| OutputProfile { stream_profile: Some(StreamProfileId(id)), ..profile(1, "") };
        let found =
            |id: StreamProfileId| StreamProfile::built_in().into_iter().find(|it| it.id == id).map(Arc::new);
        let make = |it: &OutputProfile| it.rendition(Uuid::nil(), found);
        let copy = make(&needs(StreamProfile::FFMPEG_COPY.0)).unwrap().unwrap().command.unwrap();
        assert_eq!(copy.program, "ffmpeg");
        assert!(
            copy.arguments.windows(2).any(|it| it == ["-i", "pipe:0"])
                && !copy.arguments.contains(&"-user_agent".to_owned())
        );
        let proxy = StreamProfile::from_delivery(Delivery::Proxy).id;
        assert_eq!(make(&needs(proxy.0)), Err(RenditionError::StreamProfile(proxy)));
        assert_eq!(make(&needs(99)), Err(RenditionError::StreamProfile(StreamProfileId(99))));
        let broken = OutputProfile { command: "x".to_owned(), parameters: "'".to_owned(), ..profile(1, "") };
        assert_eq!(make(&broken), Err(RenditionError::Command));
    }
}
