//! Links to the streams of a portal, and the lasting addresses that the gateway stores in place of them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde_json::Value;

use super::answer::PortalError;
use super::information::field;
use crate::secret::Secret;
use crate::source_url::SourceUrl;

/// The stored address of something that a portal plays: `stalker://HOST/itv/ID?link=1&cmd=…` is a live channel,
/// `stalker://HOST/archive/ID?at=…` the past of one, and `stalker://HOST/vod/ID?…` a film or an episode.
///
/// Everything but the command identifies it. The command changes with the portal, and may contain a link, so the address
/// prints without it, as every [`SourceUrl`] does.
#[derive(Clone, PartialEq, Eq)]
pub struct PortalStreamAddress {
    pub media: PortalMedia,
    /// The id of the channel, the film or the series.
    pub id: String,
    pub cmd: Secret,
    /// Whether a link has to be made from the command.
    pub needs_link: bool,
}

/// The kind of content at an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PortalMedia {
    Channel,
    /// The archive of a channel: the programme at this time, in seconds since 1970.
    Archive {
        at: i64,
    },
    /// A film. One with files has no command of its own: its first file has.
    Film {
        has_files: bool,
    },
    /// An episode of a series, or of one of its seasons, whose command is the same for all episodes.
    Numbered {
        season: Option<u32>,
        number: u32,
    },
    /// An episode of a series whose seasons and episodes have ids. Its first file has a command.
    Episode {
        season: String,
        episode: String,
    },
    /// A series, of which only the episodes are played.
    Series(SeriesParts),
}

/// How a portal lists the episodes of a series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SeriesParts {
    /// With the series itself: their numbers.
    Numbered(Vec<u32>),
    /// As seasons and episodes with ids.
    Seasons,
    /// As seasons with numbers, in the module of series.
    Module,
}

/// The scheme of stored addresses. No program and no player knows it.
const SCHEME: &str = "stalker";
const CHANNELS: &str = "/itv/";
const ARCHIVES: &str = "/archive/";
const TITLES: &str = "/vod/";
const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const REASON_CHARS_MAX: usize = 100;

impl PortalStreamAddress {
    /// Creates the address of a title from an element of a list.
    pub(super) fn new(media: PortalMedia, id: String, cmd: String, element: &Value) -> Self {
        let is_marked =
            ["use_http_tmp_link", "use_load_balancing"].iter().any(|it| field(element, it).is_yes());
        let needs_link = is_marked || Self::is_made_by_portal(&cmd);
        Self { media, id, cmd: Secret::new(cmd), needs_link }
    }

    /// Returns the address at this portal.
    pub fn url(&self, server: &SourceUrl) -> SourceUrl {
        let cmd = utf8_percent_encode(self.cmd.expose(), KEPT);
        let link = u8::from(self.needs_link);
        let separator = if matches!(self.media, PortalMedia::Channel) { '?' } else { '&' };
        SourceUrl::new(format!("{}{separator}link={link}&cmd={cmd}", self.identity(server)))
    }

    /// Returns the part of the address that identifies it.
    fn identity(&self, server: &SourceUrl) -> String {
        let host = server.authority().unwrap_or_default();
        let text = |it: &str| utf8_percent_encode(it, KEPT).to_string();
        let (folder, which) = match &self.media {
            PortalMedia::Channel => (CHANNELS, String::new()),
            PortalMedia::Archive { at } => (ARCHIVES, format!("?at={at}")),
            PortalMedia::Film { has_files } => (TITLES, format!("?files={}", u8::from(*has_files))),
            PortalMedia::Numbered { season: None, number } => (TITLES, format!("?number={number}")),
            PortalMedia::Numbered { season: Some(season), number } => {
                (TITLES, format!("?part={season}&number={number}"))
            }
            PortalMedia::Episode { season, episode } => {
                (TITLES, format!("?season={}&episode={}", text(season), text(episode)))
            }
            PortalMedia::Series(SeriesParts::Numbered(numbers)) => {
                let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
                (TITLES, format!("?parts={}", numbers.join(",")))
            }
            PortalMedia::Series(SeriesParts::Seasons) => (TITLES, "?parts=seasons".to_owned()),
            PortalMedia::Series(SeriesParts::Module) => (TITLES, "?parts=module".to_owned()),
        };
        format!("{SCHEME}://{host}{folder}{}{which}", text(&self.id))
    }

    /// Reads a stored address. `None` for every other address.
    pub fn parse(url: &SourceUrl) -> Option<Self> {
        let (folder, id) = place_in(url)?;
        let query = url.expose().split_once('?').map_or("", |it| it.1);
        let value = |name: &str| {
            let pair = query.split('&').filter_map(|it| it.split_once('=')).find(|it| it.0 == name);
            pair.map(|it| percent_decode_str(it.1).decode_utf8_lossy().into_owned())
        };
        let number = |name: &str| value(name).and_then(|it| it.parse().ok());
        let media = match folder {
            CHANNELS => PortalMedia::Channel,
            ARCHIVES => PortalMedia::Archive { at: value("at")?.parse().ok()? },
            _ => match (number("number"), value("season"), value("episode")) {
                (Some(nth), ..) => PortalMedia::Numbered { season: number("part"), number: nth },
                (None, Some(season), Some(episode)) => PortalMedia::Episode { season, episode },
                _ => match value("parts").as_deref() {
                    Some("seasons") => PortalMedia::Series(SeriesParts::Seasons),
                    Some("module") => PortalMedia::Series(SeriesParts::Module),
                    Some(list) => {
                        let numbers = list.split(',').filter_map(|it| it.parse().ok()).collect();
                        PortalMedia::Series(SeriesParts::Numbered(numbers))
                    }
                    None => PortalMedia::Film { has_files: value("files").is_some_and(|it| it != "0") },
                },
            },
        };
        Some(Self {
            media,
            id: percent_decode_str(id).decode_utf8_lossy().into_owned(),
            cmd: Secret::new(value("cmd").unwrap_or_default()),
            needs_link: value("link").is_none_or(|it| it != "0"),
        })
    }

    /// Returns whether this is the address of something that a portal plays.
    pub fn is_one(url: &SourceUrl) -> bool {
        place_in(url).is_some()
    }

    /// Returns the id of a live channel in a stored address, as it is written there. It identifies the stream among those
    /// of its account.
    pub fn id_in(url: &SourceUrl) -> Option<&str> {
        place_in(url).filter(|it| it.0 == CHANNELS).map(|it| it.1)
    }

    /// Returns the address without the command, as admins see it. It identifies what is played.
    pub fn shown(url: &SourceUrl) -> Option<String> {
        Some(Self::parse(url)?.identity(url))
    }

    /// Returns the address of the past of a channel: of the programme at this time, in seconds since 1970. `None` for an
    /// address that is not that of a channel.
    pub fn archive_at(channel: &SourceUrl, at: i64) -> Option<SourceUrl> {
        let found = Self::parse(channel).filter(|it| it.media == PortalMedia::Channel)?;
        let media = PortalMedia::Archive { at };
        Some(Self { media, cmd: Secret::new(""), needs_link: true, id: found.id }.url(channel))
    }

    /// Returns whether the link of a command has to be made by the portal: the command contains none, or one on
    /// `localhost`, which stands for a server that the portal chooses.
    pub(super) fn is_made_by_portal(cmd: &str) -> bool {
        link_in(cmd).is_none_or(|it| it.host().is_none_or(|it| it.eq_ignore_ascii_case("localhost")))
    }

    /// Returns the link of a command that contains one.
    ///
    /// # Errors
    /// It contains none.
    pub fn link(&self) -> Result<SourceUrl, PortalError> {
        link_in(self.cmd.expose()).ok_or_else(|| PortalError::NoLink("its list has none".to_owned()))
    }
}

/// Returns the folder and the id in a stored address, as they are written there.
fn place_in(url: &SourceUrl) -> Option<(&'static str, &str)> {
    if url.scheme() != SCHEME {
        return None;
    }
    let path = url.path();
    let place = [CHANNELS, ARCHIVES, TITLES].into_iter().find_map(|it| Some((it, path.strip_prefix(it)?)));
    place.filter(|it| !it.1.is_empty() && !it.1.contains('/'))
}

/// Returns an address of a stream as admins see it: the whole, but that of a portal without its command.
pub fn shown_address(url: &SourceUrl) -> String {
    PortalStreamAddress::shown(url).unwrap_or_else(|| url.expose().to_owned())
}

/// Returns the link in a command: the first address in it. The word before it, such as `ffmpeg`, `ffrt` or `auto`, names the
/// player of the box, and what follows are options of that player.
pub fn link_in(cmd: &str) -> Option<SourceUrl> {
    let url = SourceUrl::new(cmd.split_whitespace().find(|it| it.contains("://"))?);
    url.is_network().then_some(url)
}

/// Reads the answer to the question for a link.
///
/// # Errors
/// It contains none. A link on `localhost` is none, unless the portal itself is there.
pub fn read_link(js: &Value, server: &SourceUrl) -> Result<SourceUrl, PortalError> {
    let cmd = match js {
        Value::String(cmd) => Some(cmd.clone()),
        // Advertisements come before it.
        Value::Array(list) => list.last().and_then(|it| field(it, "cmd").text()),
        js => field(js, "cmd").text(),
    };
    let is_local = |it: &SourceUrl| it.host().is_none_or(|it| it.eq_ignore_ascii_case("localhost"));
    let link = cmd.as_deref().and_then(link_in).filter(|it| !is_local(it) || is_local(server));
    let reason = field(js, "error").text().map(|it| reason_of(&it));
    match (link, reason) {
        (Some(link), None) => Ok(link),
        (_, Some(reason)) => Err(PortalError::NoLink(reason)),
        (None, None) => Err(PortalError::NoLink("its answer contains none".to_owned())),
    }
}

/// Returns what an error of a portal means. Only known words are explained; a text that may contain a part of an address is left
/// out.
fn reason_of(error: &str) -> String {
    match error {
        "nothing_to_play" => "the channel is off air, or not part of the subscription".to_owned(),
        "limit" => "its servers are full".to_owned(),
        "link_fault" => "it failed to make one".to_owned(),
        "access_denied" => "the channel is not part of the subscription".to_owned(),
        other if other.contains(['/', '@', '=', '?']) => "it reports an error".to_owned(),
        // What is cut could hide a value of the device from those who look for it.
        other if other.chars().count() > REASON_CHARS_MAX => "it reports an error".to_owned(),
        other => other.chars().filter(|it| !it.is_control()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stored_address_is_read_again_and_its_id_alone_identifies_the_stream() {
        let server = SourceUrl::new("http://p.example:8080/stalker_portal");
        let film = |has_files| PortalMedia::Film { has_files };
        let numbered = |season| PortalMedia::Numbered { season, number: 3 };
        let episode = PortalMedia::Episode { season: "12:1".to_owned(), episode: "9&9".to_owned() };
        for (media, id, cmd, needs_link) in [
            (PortalMedia::Channel, "7", "ffrt http://localhost/ch/7_", true),
            (PortalMedia::Channel, "a/b é", "http://s.example/1?a=b&c=d#e", false),
            (PortalMedia::Channel, "1", "", true),
            (PortalMedia::Archive { at: 1_796_022_000 }, "7", "", true),
            (film(false), "7", "eyJ0eXBlIjoibW92aWUifQ==", true),
            (film(true), "7", "/media/7.mpg", true),
            (numbered(None), "7", "/media/7.mpg", true),
            (numbered(Some(2)), "7", "cmd&number=5", true),
            (episode, "7:2", "", true),
            (PortalMedia::Series(SeriesParts::Numbered(vec![1, 2, 9])), "7", "/media/7.mpg", true),
            (PortalMedia::Series(SeriesParts::Seasons), "7", "", true),
            (PortalMedia::Series(SeriesParts::Module), "7", "", true),
        ] {
            let address = PortalStreamAddress { media, id: id.into(), cmd: Secret::new(cmd), needs_link };
            let url = address.url(&server);
            assert!(PortalStreamAddress::parse(&url) == Some(address), "{}", url.expose());
            assert_eq!(url.to_string(), "stalker://p.example:8080/…");
            let shown = PortalStreamAddress::shown(&url).unwrap();
            assert!(!shown.contains("cmd") && !shown.contains("link"), "{shown}");
            assert_eq!(PortalStreamAddress::shown(&SourceUrl::new(shown.as_str())), Some(shown));
            assert!(!url.is_network() && !url.is_http() && !url.is_file());
        }
        let url = SourceUrl::new("stalker://p.example/itv/7?link=1&cmd=x");
        assert_eq!(PortalStreamAddress::id_in(&url), Some("7"));
        assert_eq!(PortalStreamAddress::shown(&url).as_deref(), Some("stalker://p.example/itv/7"));
        let past = PortalStreamAddress::archive_at(&url, 5).unwrap();
        assert_eq!(PortalStreamAddress::shown(&past).as_deref(), Some("stalker://p.example/archive/7?at=5"));
        assert!(PortalStreamAddress::id_in(&past).is_none(), "it is not a stream");
        assert_eq!(PortalStreamAddress::archive_at(&past, 6), None);
        for other in [
            "http://p.example/itv/7",
            "stalker://p.example/radio/7",
            "stalker://p.example/itv/",
            "stalker://p.example/vod/7/8",
            "7",
            "",
        ] {
            assert!(!PortalStreamAddress::is_one(&SourceUrl::new(other)), "{other}");
        }
    }

    #[test]
    fn the_word_before_a_link_and_the_options_after_it_are_cut() {
        for (cmd, link) in [
            ("ffmpeg http://s.example/1.ts?t=a", Some("http://s.example/1.ts?t=a")),
            ("auto http://s.example/1.ts", Some("http://s.example/1.ts")),
            ("ffrt3 http://s.example/1.ts position:0", Some("http://s.example/1.ts")),
            ("  http://s.example/1.ts ", Some("http://s.example/1.ts")),
            ("udp://239.0.0.1:1234", Some("udp://239.0.0.1:1234")),
            ("rtsp://s.example/1", Some("rtsp://s.example/1")),
            ("ffmpeg file:///etc/passwd", None),
            ("ffmpeg stalker://p.example/itv/1", None),
            ("ffmpeg", None),
            ("", None),
        ] {
            assert_eq!(link_in(cmd), link.map(SourceUrl::new), "{cmd}");
        }
    }

    #[test]
    fn an_answer_contains_a_link_or_the_reason_why_it_does_not() {
        let portal = SourceUrl::new("http://p.example");
        let read = |js: Value| read_link(&js, &portal).map(|it| it.expose().to_owned());
        let no_link = |it: &str| Err(PortalError::NoLink(it.to_owned()));
        let link = || Ok("http://s.example/1.ts?token=a".to_owned());
        let cmd = "ffmpeg http://s.example/1.ts?token=a";
        for (js, expected) in [
            (json!({ "id": 1, "cmd": cmd, "error": "", "streamer_id": 0 }), link()),
            (json!({ "cmd": cmd, "error": null }), link()),
            (json!([{ "cmd": cmd }]), link()),
            (json!([{ "media_type": "vclub_ad", "cmd": "http://ad.example/1" }, { "cmd": cmd }]), link()),
            (json!(cmd), link()),
            (json!({ "cmd": "", "error": "limit" }), no_link("its servers are full")),
            (
                json!({ "cmd": "", "error": "nothing_to_play" }),
                no_link("the channel is off air, or not part of the subscription"),
            ),
            (json!({ "error": "see http://p.example/?mac=00:1A" }), no_link("it reports an error")),
            (json!({ "error": "play/live.php?mac=00:1A" }), no_link("it reports an error")),
            (json!({ "cmd": "ffrt http://localhost/ch/1" }), no_link("its answer contains none")),
            (json!({ "cmd": "ffrt http:///ch/1" }), no_link("its answer contains none")),
            (json!({}), no_link("its answer contains none")),
            (json!([]), no_link("its answer contains none")),
            (json!(false), no_link("its answer contains none")),
            (json!(null), no_link("its answer contains none")),
        ] {
            assert_eq!(read(js.clone()), expected, "{js}");
        }
        let near = SourceUrl::new("http://localhost:8080");
        assert!(read_link(&json!({ "cmd": "http://localhost/1.ts" }), &near).is_ok());
    }
}
