//! The request that opens a stream of a provider.

use std::sync::Arc;

use domain::command::Argv;
use domain::ffmpeg::{self, FfmpegInput};
use domain::plan::{Candidate, PlanContext};
use domain::portal::PortalStreamAddress;
use domain::proxy::{ProxyAddress, ProxyScheme};
use domain::source_url::SourceUrl;
use media::dial::{Proxy, ProxyProtocol};
use media::source::{
    AudioConverter, KnownSource, OpenRequest, PlaylistAddress, PlaylistReader, ProgramInput,
};

use crate::certificates::certificate_trust;
use crate::egress::Egress;

/// Returns the request that opens a candidate. `known` is what its address has shown before; a program opens a playlist of
/// segments directly then.
pub(crate) fn open_request(
    candidate: &Candidate,
    conditions: &PlanContext,
    known: KnownSource,
) -> OpenRequest {
    let command = candidate.command.as_ref().map(words);
    let input = candidate.command.as_ref().and_then(|it| it.input.as_ref());
    let can_use_proxy = candidate.proxy.as_ref().is_none_or(|it| ffmpeg::proxy_options(it).is_some());
    let playlist_reader = (conditions.has_ffmpeg && can_use_proxy).then(|| playlist_reader(candidate));
    // A program cannot be given an address that is made later.
    let has_address = !PortalStreamAddress::is_one(&candidate.url);
    let known_playlist = known.playlist.filter(|_| has_address);
    let of_playlist = playlist_reader.as_ref().zip(known_playlist).map(|(command_of, format)| {
        let url = candidate.url.expose().to_owned();
        let variant = known.variant;
        command_of(&PlaylistAddress { url, format, is_trusted: true, cookies: Vec::new(), variant })
    });
    let referrer = candidate.headers.referrer.iter().map(|it| ("Referer".to_owned(), it.clone()));
    OpenRequest {
        url: candidate.url.expose().to_owned(),
        user_agent: candidate.headers.user_agent.clone(),
        headers: referrer.chain(candidate.headers.extra.iter().cloned()).collect(),
        command: command.or(of_playlist),
        command_input: input.map(|it| ProgramInput(it.expose().into())),
        policy: Some(Arc::new(Egress::new(candidate.reach, conditions.own_listeners.clone()))),
        playlist_reader,
        audio_converter: conditions.has_ffmpeg.then(audio_converter),
        proxy: candidate.proxy.as_ref().map(|it| Arc::new(media_proxy(it))),
        trust: candidate.certificates.as_deref().map(certificate_trust),
        prefers_program: false,
        other_addresses: None,
        address_maker: None,
        program: candidate.program,
        known,
    }
}

/// Returns a proxy as the dialer knows it.
fn media_proxy(address: &ProxyAddress) -> Proxy {
    Proxy {
        protocol: match address.scheme {
            ProxyScheme::Http => ProxyProtocol::Http,
            ProxyScheme::Https => ProxyProtocol::Https,
            ProxyScheme::Socks5 => ProxyProtocol::Socks5,
        },
        host: address.host.clone(),
        port: address.port,
        login: address.login.as_ref().map(|(user, password)| (user.clone(), password.expose().to_owned())),
    }
}

/// Returns the reader of the playlists of segments that a candidate leads to.
fn playlist_reader(candidate: &Candidate) -> PlaylistReader {
    let (headers, proxy) = (candidate.headers.clone(), candidate.proxy.clone());
    Arc::new(move |found| {
        let input = FfmpegInput {
            url: &SourceUrl::new(found.url.as_str()),
            headers: &headers,
            is_trusted: found.is_trusted,
            cookies: &found.cookies,
            format: Some(found.format.ffmpeg_name()),
            variant: found.variant,
        };
        words(&ffmpeg::playlist_command_through(&input, proxy.as_ref()))
    })
}

/// Returns the converter of stations whose sound a transport stream cannot carry.
fn audio_converter() -> AudioConverter {
    Arc::new(|container| words(&ffmpeg::audio_command(container.ffmpeg_name())))
}

/// Returns the program and its arguments as one list.
fn words(command: &Argv) -> Vec<String> {
    std::iter::once(&command.program).chain(&command.arguments).cloned().collect()
}
