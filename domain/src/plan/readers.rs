//! The reader of a stream: the gateway, a program, or the viewer after a redirect.

use std::collections::HashMap;

use uuid::Uuid;

use crate::account::{Account, PlaylistLocation};
use crate::command::{Argv, CommandTemplate, CommandTemplateError, CommandValues};
use crate::ffmpeg::{FfmpegInput, input_options, protocols, proxy_options};
use crate::ids::StreamProfileId;
use crate::proxy::ProxyAddress;
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
    /// its address would be useless to a viewer and would reveal local paths. A file is read only if `list`, the list of
    /// its account, is not from the network.
    ///
    /// With a proxy, a redirect is proxied as well, because nothing of the account may be fetched around the proxy. A stream
    /// that the proxy cannot carry is refused.
    pub(super) fn delivery(
        &mut self,
        url: &SourceUrl,
        account: &Account,
        profile: &StreamProfile,
        headers: &RequestHeaders,
    ) -> Result<(Delivery, Option<Argv>), Unplayable> {
        let (list, proxy) = (&account.list, account.proxy.as_ref().filter(|_| !url.is_file()));
        if url.is_file() && list.is_foreign() {
            return Err(Unplayable::LOCAL_FILE);
        }
        if proxy.is_some() && !url.is_http() {
            return Err(Unplayable::PROXY);
        }
        match profile.delivery {
            Delivery::Redirect if url.is_http() && proxy.is_none() => Ok((Delivery::Redirect, None)),
            Delivery::Proxy | Delivery::Redirect => {
                match SourceKind::from_url(url).reader(self.has_ffmpeg)? {
                    StreamReader::Gateway => Ok((Delivery::Proxy, None)),
                    StreamReader::Ffmpeg => {
                        let ffmpeg = StreamProfile::from_delivery(Delivery::Command);
                        let (delivery, argv) = self.command(url, list, &ffmpeg, headers, proxy)?;
                        let input = FfmpegInput {
                            url,
                            headers,
                            is_trusted: true,
                            cookies: &[],
                            format: None,
                            variant: None,
                        };
                        Ok((delivery, argv.map(|it| it.with_input_options(input_options(&input)))))
                    }
                }
            }
            Delivery::Command => self.command(url, list, profile, headers, proxy),
        }
    }

    fn command(
        &mut self,
        url: &SourceUrl,
        list: &PlaylistLocation,
        profile: &StreamProfile,
        headers: &RequestHeaders,
        proxy: Option<&ProxyAddress>,
    ) -> Result<(Delivery, Option<Argv>), Unplayable> {
        if !is_for_programs(url, list) {
            return Err(Unplayable::FOR_NO_PROGRAM);
        }
        let template = self.templates.entry(profile.id).or_insert_with(|| profile.template());
        let Some(Ok(template)) = template else { return Err(Unplayable::COMMAND) };
        let argv = template.fill(CommandValues {
            stream_url: url.expose(),
            // Only HTTP has user agents, and programs reject the option for other protocols.
            user_agent: headers.user_agent.as_deref().filter(|_| url.is_http()),
            channel_id: &self.channel_id,
            protocols: protocols(url),
        });
        let Some(proxy) = proxy else { return Ok((Delivery::Command, Some(argv))) };
        let options =
            proxy_options(proxy).filter(|_| argv.is_ffmpeg_with_input()).ok_or(Unplayable::PROXY)?;
        Ok((Delivery::Command, Some(argv.with_input_options(options))))
    }
}

/// Returns whether a program may be given this address. It must neither be mistaken for an option or a path, nor make a
/// program read local files, unless it is from a list that is a file of the operator.
fn is_for_programs(url: &SourceUrl, list: &PlaylistLocation) -> bool {
    let is_allowed = match list {
        PlaylistLocation::File(_) => !url.scheme().is_empty(),
        PlaylistLocation::None => url.is_network() || url.is_file(),
        PlaylistLocation::Url(_) | PlaylistLocation::Panel(_) | PlaylistLocation::Upload(_) => {
            url.is_network()
        }
    };
    is_allowed && !url.expose().contains('\0')
}
