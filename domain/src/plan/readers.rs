//! The reader of a stream: the gateway, a program, or the viewer after a redirect.

use std::collections::HashMap;

use uuid::Uuid;

use super::PlanContext;
use crate::account::{Account, PlaylistLocation};
use crate::command::{Argv, CommandTemplate, CommandTemplateError, CommandValues};
use crate::drm::{Drm, DrmKeys, DrmSystem};
use crate::ffmpeg::{FfmpegInput, clear_key_command, input_options, protocols, proxy_options};
use crate::ids::StreamProfileId;
use crate::proxy::ProxyAddress;
use crate::secret::Secret;
use crate::source_url::SourceUrl;
use crate::stream::{RequestHeaders, SourceKind, StreamReader, Unplayable};
use crate::stream_profile::{Delivery, StreamProfile};
use crate::video_page::{PAGE_PROGRAM, site_of};

/// Determines the reader of each address of one plan, and parses each command once.
pub(super) struct StreamReaders {
    has_ffmpeg: bool,
    has_page_program: bool,
    channel_id: String,
    templates: HashMap<StreamProfileId, Option<Result<CommandTemplate, CommandTemplateError>>>,
}

impl StreamReaders {
    pub(super) fn new(context: &PlanContext, channel: Uuid) -> Self {
        Self {
            has_ffmpeg: context.has_ffmpeg,
            has_page_program: context.has_streamlink,
            channel_id: channel.to_string(),
            templates: HashMap::new(),
        }
    }

    /// Returns the delivery of an address under a profile, and its command.
    ///
    /// A redirect needs no reader, so any HTTP address is accepted. A file is proxied even under *redirect*, because
    /// its address would be useless to a viewer and would reveal local paths. A file is read only if `list`, the list of
    /// its account, is not from the network.
    ///
    /// With a proxy, a redirect is proxied as well, because nothing of the account may be fetched around the proxy. A stream
    /// that the proxy cannot carry is refused.
    ///
    /// A protected stream is left to viewers who are redirected and to programs of an admin. Otherwise ffmpeg decrypts it if
    /// its playlist contains the key.
    pub(super) fn delivery(
        &mut self,
        url: &SourceUrl,
        account: &Account,
        profile: &StreamProfile,
        (headers, drm): (&RequestHeaders, Option<&Drm>),
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
            Delivery::Command if site_of(url).is_some() && self.lacks(profile) => Err(Unplayable::PAGE),
            Delivery::Command if !profile.locked => self.command(url, list, profile, headers, proxy),
            _ if drm.is_some() => self.decrypted(url, list, headers, proxy, drm),
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

    /// Returns whether a profile runs the program for pages, and it is not installed.
    fn lacks(&self, profile: &StreamProfile) -> bool {
        profile.command == PAGE_PROGRAM && !self.has_page_program
    }

    /// Returns the command that decrypts a protected stream.
    fn decrypted(
        &self,
        url: &SourceUrl,
        list: &PlaylistLocation,
        headers: &RequestHeaders,
        proxy: Option<&ProxyAddress>,
        drm: Option<&Drm>,
    ) -> Result<(Delivery, Option<Argv>), Unplayable> {
        let key = key_of(url, drm, self.has_ffmpeg)?;
        if proxy.is_some_and(|it| proxy_options(it).is_none()) {
            return Err(Unplayable::PROXY);
        }
        let command = clear_key_command(url, headers, proxy, key).filter(|_| is_for_programs(url, list));
        command.map(|it| (Delivery::Command, Some(it))).ok_or(Unplayable::FOR_NO_PROGRAM)
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

/// Returns the key with which ffmpeg decrypts a protected stream.
fn key_of<'a>(url: &SourceUrl, drm: Option<&'a Drm>, has_ffmpeg: bool) -> Result<&'a Secret, Unplayable> {
    let Some(Drm { system, keys, is_dash }) = drm else { return Err(Unplayable::OTHER_DRM) };
    let is_dash = *is_dash || SourceKind::from_url(url) == SourceKind::Dash;
    Err(match (system, keys) {
        (DrmSystem::ClearKey, DrmKeys::Elsewhere) => Unplayable::CLEARKEY_SERVER,
        (DrmSystem::ClearKey, DrmKeys::Several) => Unplayable::CLEARKEY_SEVERAL,
        (DrmSystem::ClearKey, DrmKeys::One(_)) if !is_dash || !url.is_http() => Unplayable::CLEARKEY_KIND,
        (DrmSystem::ClearKey, DrmKeys::One(_)) if !has_ffmpeg => Unplayable::CLEARKEY_FFMPEG,
        (DrmSystem::ClearKey, DrmKeys::One(key)) => return Ok(key),
        (DrmSystem::Widevine, _) => Unplayable::WIDEVINE,
        (DrmSystem::PlayReady, _) => Unplayable::PLAYREADY,
        (DrmSystem::FairPlay, _) => Unplayable::FAIRPLAY,
        (DrmSystem::Other, _) => Unplayable::OTHER_DRM,
    })
}

/// Returns why neither the gateway nor ffmpeg can read an address.
pub(super) fn problem_of(url: &SourceUrl, drm: Option<&Drm>, has_ffmpeg: bool) -> Option<Unplayable> {
    match drm {
        Some(_) => key_of(url, drm, has_ffmpeg).err(),
        None => SourceKind::from_url(url).reader(has_ffmpeg).err(),
    }
}

/// Returns whether a program may be given this address. It must neither be mistaken for an option or a path, nor make a
/// program read local files, unless it is from a list that is a file of the operator.
fn is_for_programs(url: &SourceUrl, list: &PlaylistLocation) -> bool {
    let is_allowed = match list {
        PlaylistLocation::File(_) => !url.scheme().is_empty(),
        PlaylistLocation::None => url.is_network() || url.is_file(),
        PlaylistLocation::Url(_)
        | PlaylistLocation::Panel(_)
        | PlaylistLocation::Upload(_)
        | PlaylistLocation::Portal(_) => url.is_network(),
    };
    is_allowed && !url.expose().contains('\0')
}
