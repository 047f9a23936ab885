//! The reader of a stream: the gateway, a program, or the viewer after a redirect.

use std::collections::HashMap;

use uuid::Uuid;

use crate::command::{Argv, CommandTemplate, CommandTemplateError, CommandValues};
use crate::ids::StreamProfileId;
use crate::source_url::SourceUrl;
use crate::stream::{RequestHeaders, SourceKind, StreamReader, Unplayable};
use crate::stream_profile::{Delivery, StreamProfile};

/// Determines the reader of each address of one plan, and parses each command once.
pub(super) struct StreamReaders {
    has_ffmpeg: bool,
    channel_id: String,
    templates: HashMap<StreamProfileId, Option<Result<CommandTemplate, CommandTemplateError>>>,
}

impl StreamReaders {
    pub(super) fn new(has_ffmpeg: bool, channel: Uuid) -> Self {
        Self { has_ffmpeg, channel_id: channel.to_string(), templates: HashMap::new() }
    }

    /// Returns the delivery of an address under a profile, and its command.
    ///
    /// A redirect needs no reader, so any HTTP address is accepted. A file is proxied even under *redirect*, because
    /// its address would be useless to a viewer and would reveal local paths.
    pub(super) fn of(
        &mut self,
        url: &SourceUrl,
        profile: &StreamProfile,
        headers: &RequestHeaders,
    ) -> Result<(Delivery, Option<Argv>), Unplayable> {
        match profile.delivery {
            Delivery::Redirect if is_http(url) => Ok((Delivery::Redirect, None)),
            Delivery::Proxy | Delivery::Redirect => match SourceKind::of(url).reader(self.has_ffmpeg)? {
                StreamReader::Gateway => Ok((Delivery::Proxy, None)),
                StreamReader::Ffmpeg => self.command(url, &StreamProfile::of(Delivery::Command), headers),
            },
            Delivery::Command => self.command(url, profile, headers),
        }
    }

    fn command(
        &mut self,
        url: &SourceUrl,
        profile: &StreamProfile,
        headers: &RequestHeaders,
    ) -> Result<(Delivery, Option<Argv>), Unplayable> {
        if !is_for_programs(url) {
            return Err(Unplayable::FOR_NO_PROGRAM);
        }
        let template = self.templates.entry(profile.id).or_insert_with(|| profile.template());
        let Some(Ok(template)) = template else { return Err(Unplayable::COMMAND) };
        let argv = template.fill(CommandValues {
            stream_url: url.expose(),
            // Only HTTP has user agents, and programs reject the option for other protocols.
            user_agent: headers.user_agent.as_deref().filter(|_| is_http(url)),
            channel_id: &self.channel_id,
        });
        Ok((Delivery::Command, Some(argv)))
    }
}

fn is_http(url: &SourceUrl) -> bool {
    ["http", "https"].iter().any(|it| url.scheme().eq_ignore_ascii_case(it))
}

/// Returns whether a program may be given this address. It comes from a provider's playlist, and must neither be
/// mistaken for an option nor make ffmpeg read local files through one of its pseudo-protocols.
fn is_for_programs(url: &SourceUrl) -> bool {
    const LOCAL_SCHEMES: [&str; 13] = [
        "async", "cache", "concat", "concatf", "crypto", "data", "fd", "ipfs", "md5", "pipe", "subfile",
        "tee", "unix",
    ];
    let scheme = url.scheme().to_ascii_lowercase();
    // Also for `crypto+http`.
    let first = scheme.split('+').next().unwrap_or_default();
    !first.is_empty() && !LOCAL_SCHEMES.contains(&first) && !url.expose().contains('\0')
}
