//! Stream profiles: the delivery of streams to viewers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::command::{CommandTemplate, CommandTemplateError};
use crate::ids::StreamProfileId;
use crate::video_page::PAGE_PROGRAM;

/// A stream profile: a named way to deliver streams, which streams and channels refer to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamProfile {
    pub id: StreamProfileId,
    /// Unique.
    pub name: String,
    pub delivery: Delivery,
    /// The program that reads streams: a name or an absolute path. Empty for other deliveries.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub command: String,
    /// The arguments of the program, as [`CommandTemplate`] parses them.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub parameters: String,
    /// Sent to the provider instead of the user agent of account and stream.
    #[serde(default)]
    pub user_agent: Option<String>,
    /// Streams and channels that refer to an inactive profile are treated as if they referred to none.
    pub is_active: bool,
    /// A built-in profile, which can be neither changed nor deleted.
    #[serde(default)]
    pub locked: bool,
    /// Whether viewers without a login are redirected, too, who then see the address of the provider.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redirect_without_login: bool,
}

/// The arguments of ffmpeg: it logs only warnings and its speed, analyses the stream no longer than a viewer waits,
/// generates missing time stamps, and writes every packet at once. A playlist behind the address leads only to the
/// protocols that the address itself may have.
macro_rules! ffmpeg {
    ($encoding:literal) => {
        concat!(
            "-nostdin -hide_banner -loglevel warning -stats -analyzeduration 2000000 -fflags +genpts+discardcorrupt ",
            "-protocol_whitelist {protocols} -user_agent {userAgent} -i {streamUrl} -map 0:v:0? -map 0:a? ",
            $encoding,
            " -f mpegts -mpegts_flags +resend_headers -muxdelay 0 -flush_packets 1 pipe:1"
        )
    };
}

impl StreamProfile {
    /// The profile for addresses that the gateway cannot read itself.
    pub const FFMPEG_COPY: StreamProfileId = StreamProfileId(3);

    /// The profile for pages of video sites.
    pub const STREAMLINK: StreamProfileId = StreamProfileId(5);

    /// Returns the profiles that every store starts with. Their ids never change.
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
            redirect_without_login: false,
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
                Self::STREAMLINK.0,
                "Streamlink",
                Delivery::Command,
                PAGE_PROGRAM,
                "--stdout --loglevel warning --http-header User-Agent={userAgent} {streamUrl} best",
            ),
        ]
    }

    /// Returns the built-in profile for pages of video sites.
    pub fn for_pages() -> Self {
        let [.., pages] = Self::built_in();
        pages
    }

    /// Returns the built-in profile with this delivery.
    pub fn from_delivery(delivery: Delivery) -> Self {
        let [proxy, redirect, ffmpeg, ..] = Self::built_in();
        match delivery {
            Delivery::Proxy => proxy,
            Delivery::Redirect => redirect,
            Delivery::Command => ffmpeg,
        }
    }

    /// Parses its command; `None` for other deliveries.
    ///
    /// # Errors
    /// If the command is invalid. Writing checks it, so only an old record can be.
    pub fn template(&self) -> Option<Result<CommandTemplate, CommandTemplateError>> {
        (self.delivery == Delivery::Command).then(|| CommandTemplate::new(&self.command, &self.parameters))
    }
}

/// The way in which a viewer gets a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Delivery {
    /// The gateway reads the stream once and serves it to all viewers.
    #[default]
    Proxy,
    /// The viewer is redirected to the provider's address; the gateway and its limits are not involved.
    Redirect,
    /// A program reads the stream, and the gateway serves its output to all viewers.
    Command,
}

impl Delivery {
    /// Returns the name that the API and its events use.
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
                let values = CommandValues {
                    stream_url: "http://h/a b",
                    user_agent,
                    channel_id: "c",
                    protocols: "http",
                };
                let argv = template.clone().unwrap().fill(values);
                assert_eq!(argv.arguments.iter().filter(|it| *it == "http://h/a b").count(), 1, "{argv:?}");
                let n_agents = argv.arguments.iter().filter(|it| it.contains("Player/1 (x)")).count();
                assert_eq!(n_agents, usize::from(user_agent.is_some()), "{argv:?}");
            }
        }
        assert_eq!(StreamProfile::from_delivery(Delivery::Command).id, StreamProfile::FFMPEG_COPY);
    }
}
