//! How a stream is handed on.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::command::{CommandTemplate, CommandTemplateError};
use crate::ids::StreamProfileId;

/// A stream profile: a named way to hand streams on, which streams and channels refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProfile {
    pub id: StreamProfileId,
    /// Unique.
    pub name: String,
    pub delivery: Delivery,
    /// The program that reads streams, where they are handed on by one: a name or an absolute path. Else empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// What it is run with, as [`CommandTemplate`] reads it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameters: String,
    /// Sent to the provider in place of what account and stream say.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// Streams and channels that refer to an inactive one are handed on as if they referred to none.
    pub is_active: bool,
    /// One of ours, which can neither be changed nor deleted.
    #[serde(default)]
    pub locked: bool,
}

/// How ffmpeg is run: quiet but for warnings and its speed, with an eye on the stream no longer than a viewer waits,
/// with time stamps where there are none, and with every packet handed on at once.
macro_rules! ffmpeg {
    ($encoding:literal) => {
        concat!(
            "-nostdin -hide_banner -loglevel warning -stats -analyzeduration 2000000 -fflags +genpts+discardcorrupt ",
            "-user_agent {userAgent} -i {streamUrl} -map 0:v:0? -map 0:a? ",
            $encoding,
            " -f mpegts -mpegts_flags +resend_headers -muxdelay 0 -flush_packets 1 pipe:1"
        )
    };
}

impl StreamProfile {
    /// The profile of addresses that the gateway does not read itself.
    pub const FFMPEG_COPY: StreamProfileId = StreamProfileId(3);

    /// The profiles that every store begins with. Their ids never change.
    pub fn built_in() -> [Self; 5] {
        let profile = |id, name: &str, delivery, command: &str, parameters: &str| Self {
            id: StreamProfileId(id),
            name: name.to_owned(),
            delivery,
            command: command.to_owned(),
            parameters: parameters.to_owned(),
            user_agent: None,
            is_active: true,
            locked: true,
        };
        let transcode = ffmpeg!(
            "-c:v libx264 -preset veryfast -pix_fmt yuv420p -force_key_frames expr:gte(t,n_forced*2) -c:a aac -b:a 160k"
        );
        [
            profile(1, "Proxy", Delivery::Proxy, "", ""),
            profile(2, "Redirect", Delivery::Redirect, "", ""),
            profile(Self::FFMPEG_COPY.0, "FFmpeg copy", Delivery::Command, "ffmpeg", ffmpeg!("-c copy")),
            profile(4, "FFmpeg H.264 and AAC", Delivery::Command, "ffmpeg", transcode),
            profile(
                5,
                "Streamlink",
                Delivery::Command,
                "streamlink",
                "--stdout --loglevel warning --http-header User-Agent={userAgent} {streamUrl} best",
            ),
        ]
    }

    /// The built-in profile that hands on in this way, for where no other is named.
    pub fn of(delivery: Delivery) -> Self {
        let [proxy, redirect, ffmpeg, ..] = Self::built_in();
        match delivery {
            Delivery::Proxy => proxy,
            Delivery::Redirect => redirect,
            Delivery::Command => ffmpeg,
        }
    }

    /// Its command; `None` if it has none because it hands on in another way.
    ///
    /// # Errors
    /// When the command cannot be read. None such is ever written.
    pub fn template(&self) -> Option<Result<CommandTemplate, CommandTemplateError>> {
        (self.delivery == Delivery::Command).then(|| CommandTemplate::new(&self.command, &self.parameters))
    }
}

/// What a viewer gets of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The gateway reads the stream once and serves it to all.
    #[default]
    Proxy,
    /// The viewer is sent to the provider's address and the gateway is out of the way, as are its limits.
    Redirect,
    /// A program reads the stream, and the gateway serves what it writes to all.
    Command,
}

impl Delivery {
    /// The name that the interface and its events use.
    pub fn name(self) -> &'static str {
        match self {
            Self::Proxy => "proxy",
            Self::Redirect => "redirect",
            Self::Command => "command",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::CommandValues;

    #[test]
    fn every_built_in_command_can_be_run_with_and_without_a_user_agent() {
        for profile in StreamProfile::built_in() {
            let Some(template) = profile.template() else { continue };
            for user_agent in [None, Some("Player/1 (x)")] {
                let values = CommandValues { stream_url: "http://h/a b", user_agent, channel_id: "c" };
                let argv = template.clone().unwrap().fill(values);
                assert_eq!(argv.arguments.iter().filter(|it| *it == "http://h/a b").count(), 1, "{argv:?}");
                let n_agents = argv.arguments.iter().filter(|it| it.contains("Player/1 (x)")).count();
                assert_eq!(n_agents, usize::from(user_agent.is_some()), "{argv:?}");
            }
        }
        assert_eq!(StreamProfile::of(Delivery::Command).id, StreamProfile::FFMPEG_COPY);
    }
}
