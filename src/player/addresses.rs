//! The addresses of streams and logos that leave the gateway. Players store them for ever, so they contain nothing that
//! changes. `origin` is always the address of the gateway as the caller reaches it, without a trailing slash.

use domain::channel::Channel;
use domain::logo::Logo;
use domain::secret::Secret;
use domain::user::User;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use storage::Table;
use url::Url;

use crate::guide::EntryId;
use crate::logo_cache::logo_copy_address;

/// The characters to encode in a segment of a path: all but the unreserved ones.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the stream address of a channel for players that need no credentials or send them in a header.
pub(crate) fn stream_address(origin: &str, channel: &Channel) -> String {
    format!("{origin}/proxy/ts/stream/{}", channel.uuid)
}

/// The stream addresses of one answer.
pub(crate) struct StreamAddresses {
    place: Place,
    /// The output profile that they ask for; 0 asks for none.
    output_profile: Option<u32>,
}

enum Place {
    /// For callers on a network that needs no credentials.
    Open { origin: String },
    /// With a login in the path: everything up to the id of the channel.
    WithLogin { prefix: String },
}

impl StreamAddresses {
    /// Returns the addresses for callers on a network that needs no credentials.
    pub(crate) fn open(origin: impl Into<String>) -> Self {
        Self { place: Place::Open { origin: origin.into() }, output_profile: None }
    }

    /// Returns the addresses for players that log in with this user name and password.
    pub(crate) fn with_login(origin: &str, user: &User, password: &Secret) -> Self {
        let encoded = |text| utf8_percent_encode(text, SEGMENT);
        let (name, password) = (encoded(&user.username), encoded(password.expose()));
        let place = Place::WithLogin { prefix: format!("{origin}/live/{name}/{password}/") };
        Self { place, output_profile: None }
    }

    /// Makes the addresses ask for an output profile.
    pub(crate) fn with_output_profile(self, output_profile: Option<u32>) -> Self {
        Self { output_profile, ..self }
    }

    pub(crate) fn of(&self, channel: &Channel) -> String {
        let mut address = match &self.place {
            Place::Open { origin } => stream_address(origin, channel),
            Place::WithLogin { prefix } => format!("{prefix}{}", channel.id),
        };
        if let Some(id) = self.output_profile {
            address.push_str(&format!("?output_profile={id}"));
        }
        address
    }
}

/// Returns the address of the logo of a channel: that of the copy of the gateway, which needs no credentials and reveals
/// none of a provider. Channels of a playlist that is only played have no logo record, and the address of the playlist.
pub(crate) fn logo_address(origin: &str, logos: &Table<Logo>, channel: &Channel) -> Option<String> {
    match channel.logo_id.and_then(|it| logos.get(it.0)) {
        Some(logo) => Some(logo_copy_address(origin, logo)),
        None => without_record(channel).map(without_credentials),
    }
}

/// Returns the address where the logo of a channel is from. Uploaded logos are at the gateway. Credentials in the address
/// are for admins only.
pub(crate) fn original_logo_address(
    origin: &str,
    logos: &Table<Logo>,
    channel: &Channel,
    with_credentials: bool,
) -> Option<String> {
    if channel.logo_id.and_then(|it| logos.get(it.0)).is_some_and(|it| it.file.is_some()) {
        return logo_address(origin, logos, channel);
    }
    let url = without_record(channel)?;
    Some(if with_credentials { url.to_owned() } else { without_credentials(url) })
}

/// Returns the address that a channel itself has. A path is that of an upload whose record is gone.
fn without_record(channel: &Channel) -> Option<&str> {
    channel.logo.as_deref().filter(|it| !it.is_empty() && !it.starts_with('/'))
}

/// Returns the address of the copy of the image that stands for a programme. It needs no credentials.
pub(crate) fn poster_address(origin: &str, id: EntryId) -> String {
    format!("{origin}/api/epg/programs/{id}/poster/")
}

/// Removes user name, password and query of an address. An invalid address that may contain any is removed.
pub(crate) fn without_credentials(url: &str) -> String {
    match Url::parse(url) {
        Ok(parsed) if parsed.query().is_none() => without_user(url),
        Ok(mut parsed) => {
            parsed.set_query(None);
            without_user(parsed.as_str())
        }
        Err(_) if url.contains(['@', '?']) => String::new(),
        Err(_) => url.to_owned(),
    }
}

/// Removes user name and password of an address. An invalid address that may contain any is removed.
pub(crate) fn without_user(url: &str) -> String {
    match Url::parse(url) {
        Ok(parsed) if parsed.username().is_empty() && parsed.password().is_none() => url.to_owned(),
        Ok(mut parsed) => {
            let cleared = parsed.set_username("").and(parsed.set_password(None));
            cleared.map(|()| parsed.to_string()).unwrap_or_default()
        }
        Err(_) if url.contains('@') => String::new(),
        Err(_) => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use domain::ids::{ChannelId, UserId};
    use domain::user::UserLevel;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_login_in_an_address_is_encoded() {
        let user = User::new(UserId(1), "anna@home", UserLevel::Streamer, 0);
        let channel = Channel::new(ChannelId(7), Uuid::from_u128(7), "One", 0);
        let addresses =
            StreamAddresses::with_login("https://tv.example/base", &user, &Secret::new("a/b c_d"));
        assert_eq!(addresses.of(&channel), "https://tv.example/base/live/anna%40home/a%2Fb%20c_d/7");
        let open = StreamAddresses::open("http://h:9191");
        assert_eq!(open.of(&channel), format!("http://h:9191/proxy/ts/stream/{}", channel.uuid));
        let small = open.with_output_profile(Some(2));
        let address = format!("http://h:9191/proxy/ts/stream/{}?output_profile=2", channel.uuid);
        assert_eq!(small.of(&channel), address);
    }

    #[test]
    fn users_see_no_credentials_in_the_address_of_an_image() {
        for (url, shown) in [
            ("http://tv.example/a.png", "http://tv.example/a.png"),
            ("http://tv.example/a.png?token=x", "http://tv.example/a.png"),
            ("http://anna:secret@tv.example/a.png", "http://tv.example/a.png"),
            ("http://anna:secret@tv.example/a.png?token=x", "http://tv.example/a.png"),
            ("//anna:secret@tv.example/a.png", ""),
            ("http://anna:secret@[tv.example/a.png", ""),
            ("images/a.png?token=x", ""),
            ("images/a.png", "images/a.png"),
            ("/api/channels/logos/1/cache/", "/api/channels/logos/1/cache/"),
        ] {
            assert_eq!(without_credentials(url), shown);
        }
        assert_eq!(without_user("http://anna:secret@tv.example/?id=1"), "http://tv.example/?id=1");
        assert_eq!(without_user("//anna:secret@tv.example/"), "");
    }
}
