//! The addresses of streams and logos that leave the gateway. Players store them for ever, so they contain nothing that
//! changes. `origin` is always the address of the gateway as the caller reaches it, without a trailing slash.

use domain::channel::Channel;
use domain::ids::RecordingId;
use domain::logo::Logo;
use domain::output_format::OutputFormat;
use domain::secret::Secret;
use domain::user::User;
use domain::vod::{Episode, Title, TitleKind};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use storage::Table;
use url::Url;

use crate::guide::EntryId;
use crate::image_types::{backdrop_name, image_version};
use crate::logo_cache::logo_copy_address;

/// The characters to encode in a segment of a path: all but the unreserved ones.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Returns the stream address of a channel for players that need no credentials or send them in a header.
pub fn stream_address(origin: &str, channel: &Channel) -> String {
    format!("{origin}/proxy/ts/stream/{}", channel.uuid)
}

/// The stream addresses of one answer.
pub struct StreamAddresses {
    place: Place,
    /// The output profile that they ask for; 0 asks for none.
    output_profile: Option<u32>,
    /// The format that they ask for.
    format: Option<OutputFormat>,
}

enum Place {
    /// For callers on a network that needs no credentials.
    Open { origin: String },
    /// With a login in the path: everything up to the id of the channel.
    WithLogin { prefix: String, titles: TitleAddresses },
}

impl StreamAddresses {
    /// Returns the addresses for callers on a network that needs no credentials.
    pub fn open(origin: impl Into<String>) -> Self {
        Self { place: Place::Open { origin: origin.into() }, output_profile: None, format: None }
    }

    /// Returns the addresses for players that log in with this user name and password.
    pub fn with_login(origin: &str, user: &User, password: &Secret) -> Self {
        let encoded = |text| utf8_percent_encode(text, SEGMENT);
        let (name, password) = (encoded(&user.username), encoded(password.expose()));
        let prefix = format!("{origin}/live/{name}/{password}/");
        let titles = TitleAddresses { origin: origin.to_owned(), login: format!("{name}/{password}") };
        let place = Place::WithLogin { prefix, titles };
        Self { place, output_profile: None, format: None }
    }

    /// Makes the addresses ask for an output profile.
    pub fn with_output_profile(self, output_profile: Option<u32>) -> Self {
        Self { output_profile, ..self }
    }

    /// Makes the addresses ask for a format.
    pub fn with_format(self, format: Option<OutputFormat>) -> Self {
        Self { format, ..self }
    }

    /// Returns the address of a film.
    pub fn film(&self, film: &Title, extension: &str) -> String {
        match &self.place {
            Place::Open { origin } => format!("{origin}/proxy/vod/movie/{}", film.uuid),
            Place::WithLogin { titles, .. } => titles.film(film.id.number(), extension),
        }
    }

    /// Returns the address of an episode.
    pub fn episode(&self, episode: &Episode, extension: &str) -> String {
        match &self.place {
            Place::Open { origin } => format!("{origin}/proxy/vod/episode/{}", episode.uuid),
            Place::WithLogin { titles, .. } => titles.episode(episode.id.0, extension),
        }
    }

    /// Returns the address of a recording.
    pub fn recording(&self, id: RecordingId, extension: &str) -> String {
        match &self.place {
            Place::Open { origin } => format!("{origin}/proxy/vod/recording/{}", id.uuid()),
            Place::WithLogin { titles, .. } => titles.film(id.player_number().unwrap_or(0), extension),
        }
    }

    /// Returns the template of the addresses of the past of a channel. The placeholders are those that all player apps
    /// replace, and in UTC; parts of a date would be in the zone of the player.
    pub fn past(&self, channel: &Channel) -> String {
        format!("{}?utc={{utc}}&lutc={{lutc}}&duration={{duration}}", self.live(channel))
    }

    fn live(&self, channel: &Channel) -> String {
        match &self.place {
            Place::Open { origin } => stream_address(origin, channel),
            Place::WithLogin { prefix, .. } => format!("{prefix}{}", channel.id),
        }
    }

    /// Returns the address of a channel, with the format and the output profile.
    pub fn channel(&self, channel: &Channel) -> String {
        let mut address = self.live(channel);
        let mut parameters = Vec::new();
        match (&self.place, self.format) {
            // As without a format: players store these addresses.
            (_, None | Some(OutputFormat::Ts)) => {}
            (Place::WithLogin { .. }, Some(format)) => {
                address.push('.');
                address.push_str(format.name());
            }
            (Place::Open { origin }, Some(OutputFormat::Hls)) => {
                address = format!("{origin}/proxy/hls/{}/index.m3u8", channel.uuid);
            }
            (Place::Open { .. }, Some(OutputFormat::Mp4)) => parameters.push("output_format=fmp4".to_owned()),
        }
        parameters.extend(self.output_profile.map(|id| format!("output_profile={id}")));
        for (n, parameter) in parameters.iter().enumerate() {
            address.push(if n == 0 { '?' } else { '&' });
            address.push_str(parameter);
        }
        address
    }
}

/// The addresses of films and episodes, with a login in the path: everything up to the kind.
pub(crate) struct TitleAddresses {
    origin: String,
    login: String,
}

impl TitleAddresses {
    /// Returns the addresses for players that log in with this user name and password.
    pub(crate) fn with_login(origin: &str, user: &User, password: &Secret) -> Self {
        let encoded = |text| utf8_percent_encode(text, SEGMENT);
        let login = format!("{}/{}", encoded(&user.username), encoded(password.expose()));
        Self { origin: origin.to_owned(), login }
    }

    /// Returns the address of a film, or of one version of it, by the number that apps use.
    pub(crate) fn film(&self, number: u32, extension: &str) -> String {
        self.address("movie", number, extension)
    }

    /// Returns the address of an episode.
    pub(crate) fn episode(&self, number: u32, extension: &str) -> String {
        self.address("series", number, extension)
    }

    fn address(&self, kind: &str, number: u32, extension: &str) -> String {
        let dot = if extension.is_empty() { "" } else { "." };
        format!("{}/{kind}/{}/{number}{dot}{extension}", self.origin, self.login)
    }
}

/// Returns the address of the copy of the picture of a film or a series, which anybody may read. Its last segment changes
/// with the picture.
pub fn image_address(origin: &str, title: &Title) -> String {
    let version = image_version(title.logo().unwrap_or_default());
    format!("{origin}{}{version}", image_path(title.id.kind(), title.id.number()))
}

/// Returns the address of a background picture of a title, by its position.
pub fn backdrop_address(origin: &str, title: &Title, index: usize, url: &str) -> String {
    let path = image_path(title.id.kind(), title.id.number());
    format!("{origin}{path}{}", backdrop_name(index, url))
}

/// Returns the address of the copy of the picture of an episode.
pub fn episode_image_address(origin: &str, episode: &Episode, url: &str) -> String {
    format!("{origin}/api/vod/episodes/{}/image/{}", episode.id, image_version(url))
}

fn image_path(kind: TitleKind, number: u32) -> String {
    match kind {
        TitleKind::Movie => format!("/api/vod/movies/{number}/image/"),
        TitleKind::Series => format!("/api/vod/series/{number}/image/"),
    }
}

/// Returns the address of the logo of a channel: that of the copy of the gateway, which needs no credentials and reveals
/// none of a provider. Channels of a playlist that is only played have no logo record, and the address of the playlist.
pub fn logo_address(origin: &str, logos: &Table<Logo>, channel: &Channel) -> Option<String> {
    match channel.logo_id.and_then(|it| logos.get(it.0)) {
        Some(logo) => Some(logo_copy_address(origin, logo)),
        None => without_record(channel).map(without_credentials),
    }
}

/// Returns the address where the logo of a channel is from. Uploaded logos are at the gateway. Credentials in the address
/// are for admins only.
pub fn original_logo_address(
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
pub fn poster_address(origin: &str, id: EntryId) -> String {
    format!("{origin}/api/epg/programs/{id}/poster/")
}

/// Removes user name, password and query of an address. An invalid address that may contain any is removed.
pub fn without_credentials(url: &str) -> String {
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
pub fn without_user(url: &str) -> String {
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
    use domain::vod::TitleId;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_login_in_an_address_is_encoded() {
        let user = User::new(UserId(1), "anna@home", UserLevel::Streamer, 0);
        let channel = Channel::new(ChannelId(7), Uuid::from_u128(7), "One", 0);
        let addresses =
            StreamAddresses::with_login("https://tv.example/base", &user, &Secret::new("a/b c_d"));
        assert_eq!(addresses.channel(&channel), "https://tv.example/base/live/anna%40home/a%2Fb%20c_d/7");
        let film = Title::new(TitleId::movie(5).unwrap(), Uuid::from_u128(5), 0);
        assert_eq!(
            addresses.film(&film, "mkv"),
            "https://tv.example/base/movie/anna%40home/a%2Fb%20c_d/5.mkv"
        );
        let open = StreamAddresses::open("http://h:9191");
        assert_eq!(open.film(&film, "mkv"), format!("http://h:9191/proxy/vod/movie/{}", film.uuid));
        assert_eq!(open.channel(&channel), format!("http://h:9191/proxy/ts/stream/{}", channel.uuid));
        let small = open.with_output_profile(Some(2));
        let address = format!("http://h:9191/proxy/ts/stream/{}?output_profile=2", channel.uuid);
        assert_eq!(small.channel(&channel), address);
        let live = "https://tv.example/base/live/anna%40home/a%2Fb%20c_d/7";
        let stream = format!("http://h:9191/proxy/ts/stream/{}", channel.uuid);
        for (format, of_user, open) in [
            (OutputFormat::Ts, live.to_owned(), stream.clone()),
            (
                OutputFormat::Hls,
                format!("{live}.m3u8"),
                format!("http://h:9191/proxy/hls/{}/index.m3u8", channel.uuid),
            ),
            (OutputFormat::Mp4, format!("{live}.mp4"), format!("{stream}?output_format=fmp4")),
        ] {
            let with_login =
                StreamAddresses::with_login("https://tv.example/base", &user, &Secret::new("a/b c_d"));
            assert_eq!(with_login.with_format(Some(format)).channel(&channel), of_user);
            assert_eq!(
                StreamAddresses::open("http://h:9191").with_format(Some(format)).channel(&channel),
                open
            );
        }
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
