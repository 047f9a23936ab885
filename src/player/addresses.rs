//! The addresses that players store. They begin with [`Call::player_origin`](crate::rest::frame::call::Call::player_origin)
//! and contain nothing that changes.

use domain::channel::Channel;
use domain::logo::Logo;
use storage::Table;

use crate::logo_cache::logo_copy_address;

/// Returns the address of a channel.
pub(crate) fn stream_address(origin: &str, channel: &Channel) -> String {
    format!("{origin}/proxy/ts/stream/{}", channel.uuid)
}

/// Returns the address of the logo of a channel: that of the copy of the gateway, which needs no credentials and reveals
/// none of a provider. Channels of a playlist that is only played have no logo record, and the address of the playlist.
pub(crate) fn logo_address(origin: &str, logos: &Table<Logo>, channel: &Channel) -> Option<String> {
    if let Some(logo) = channel.logo_id.and_then(|id| logos.get(id.0)) {
        return Some(logo_copy_address(origin, logo));
    }
    let url = channel.logo.as_deref()?;
    Some(if url.starts_with('/') { format!("{origin}{url}") } else { url.to_owned() })
}
