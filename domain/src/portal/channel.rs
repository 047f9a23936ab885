//! The channels and genres of a portal.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::address::folder_of;
use super::guide::guide_key;
use super::information::field;
use super::link::{PortalMedia, PortalStreamAddress};
use crate::catchup::Archive;
use crate::channel::ChannelNumber;
use crate::group::GROUP_NAME_CHARS_MAX;
use crate::ids::AccountId;
use crate::panel::{CATEGORIES_MAX, ElementProblem, LooseValue};
use crate::playlist::catalogue::is_id;
use crate::playlist::content;
use crate::playlist::m3u::text::decode;
use crate::secret::Secret;
use crate::source_url::SourceUrl;
use crate::stream::StreamProperties;

/// Maximum length of a name, in characters; the end of a longer one is dropped.
const NAME_CHARS_MAX: usize = 512;
/// Maximum length of an id, in bytes. Portals number their channels.
const ID_BYTES_MAX: usize = 128;
/// Maximum length of a guide id, in characters, of the address of a logo and of a command, in bytes.
const GUIDE_ID_CHARS_MAX: usize = 512;
const LOGO_BYTES_MAX: usize = 4096;
const CMD_BYTES_MAX: usize = 4096;

/// Genres by id.
pub type PortalGenres = HashMap<String, PortalGenre>;

/// A genre of a portal, which becomes a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortalGenre {
    pub name: String,
    /// Whether the portal lists its channels only to those who ask for the genre: content for adults.
    pub is_censored: bool,
}

/// A live channel of a portal.
#[derive(Debug, Clone, PartialEq)]
pub struct PortalChannel {
    pub id: String,
    /// Never empty.
    pub name: String,
    pub number: Option<ChannelNumber>,
    /// The id of its genre.
    pub genre: Option<String>,
    pub logo: Option<String>,
    /// The id of its channel in a programme guide.
    pub tvg_id: Option<String>,
    pub cmd: Secret,
    /// Whether a link has to be made from `cmd`; otherwise `cmd` contains it.
    pub needs_link: bool,
    pub is_censored: bool,
    /// The archive that the portal keeps of it.
    pub archive: Option<Archive>,
}

/// The fields of a channel as portals call them.
#[derive(Deserialize)]
struct RawChannel {
    #[serde(default)]
    id: LooseValue,
    #[serde(default)]
    name: LooseValue,
    #[serde(default)]
    number: LooseValue,
    #[serde(default)]
    cmd: LooseValue,
    #[serde(default)]
    cmds: Value,
    #[serde(default)]
    tv_genre_id: LooseValue,
    #[serde(default)]
    logo: LooseValue,
    #[serde(default)]
    xmltv_id: LooseValue,
    #[serde(default)]
    use_http_tmp_link: LooseValue,
    #[serde(default)]
    use_load_balancing: LooseValue,
    #[serde(default)]
    censored: LooseValue,
    #[serde(default)]
    lock: LooseValue,
    #[serde(default)]
    enable_tv_archive: LooseValue,
    #[serde(default)]
    tv_archive: LooseValue,
    #[serde(default)]
    archive: LooseValue,
    #[serde(default)]
    tv_archive_duration: LooseValue,
}

/// Reads the list of genres: a list or an object, by itself or in `data`. What is not a genre is left out, and so is the one
/// that stands for all.
pub fn read_genres(js: &Value) -> PortalGenres {
    let inner = js.get("data").filter(|it| it.is_array() || it.is_object()).unwrap_or(js);
    let values: Box<dyn Iterator<Item = &Value>> = match inner {
        Value::Array(list) => Box::new(list.iter()),
        Value::Object(map) => Box::new(map.values()),
        _ => Box::new(std::iter::empty()),
    };
    let genre = |it: &Value| {
        let id = field(it, "id").text().filter(|it| it != "*" && it.len() <= ID_BYTES_MAX)?;
        let name = field(it, "title").text().or_else(|| field(it, "alias").text())?;
        let name = name.chars().take(GROUP_NAME_CHARS_MAX).collect();
        Some((id, PortalGenre { name, is_censored: field(it, "censored").is_yes() }))
    };
    values.filter_map(genre).take(CATEGORIES_MAX).collect()
}

/// Reads a live channel. A channel without a name gets one from its id.
///
/// # Errors
/// It cannot be used.
pub fn read_channel(json: &[u8]) -> Result<PortalChannel, ElementProblem> {
    if !json.trim_ascii_start().starts_with(b"{") {
        return Err(ElementProblem::NotAnObject);
    }
    let raw: RawChannel = serde_json::from_str(&decode(json)).map_err(|_| ElementProblem::NotAnObject)?;
    let is_usable = |it: &String| it.len() <= ID_BYTES_MAX && it != "0" && !it.contains(char::is_whitespace);
    let id = raw.id.text().filter(is_usable).ok_or(ElementProblem::NoId)?;
    let name = match raw.name.text() {
        Some(name) => name.chars().take(NAME_CHARS_MAX).collect(),
        None => format!("Channel {id}"),
    };
    // Newer portals list several addresses; the first is that of `cmd`.
    let first = match &raw.cmds {
        Value::Array(all) => all.first().map(|it| field(it, "url")),
        _ => None,
    };
    let cmd = raw.cmd.text().or_else(|| first?.text()).unwrap_or_default();
    if cmd.len() > CMD_BYTES_MAX {
        return Err(ElementProblem::TooLong);
    }
    let needs_link = raw.use_http_tmp_link.is_yes()
        || raw.use_load_balancing.is_yes()
        || PortalStreamAddress::is_made_by_portal(&cmd);
    let number = raw.number.text().and_then(|it| it.parse::<ChannelNumber>().ok());
    let has_archive = [&raw.enable_tv_archive, &raw.tv_archive, &raw.archive].iter().any(|it| it.is_yes());
    let guide_id = raw.xmltv_id.text().filter(|it| it.chars().count() <= GUIDE_ID_CHARS_MAX && is_id(it));
    Ok(PortalChannel {
        id,
        name,
        number: number.filter(|it| !it.is_zero()),
        genre: raw.tv_genre_id.text().filter(|it| it.len() <= ID_BYTES_MAX),
        logo: raw.logo.text().filter(|it| it.len() <= LOGO_BYTES_MAX),
        tvg_id: guide_id,
        cmd: Secret::new(cmd),
        needs_link,
        is_censored: raw.censored.is_yes() || raw.lock.is_yes(),
        archive: Archive::from_portal(has_archive, raw.tv_archive_duration.whole()),
    })
}

impl PortalChannel {
    /// Returns the properties of its stream in this account. `server` is the base address of the portal, and `endpoint` what
    /// has answered.
    pub fn into_properties(
        self,
        account: AccountId,
        server: &SourceUrl,
        endpoint: &SourceUrl,
        genres: &PortalGenres,
    ) -> StreamProperties {
        let genre = self.genre.and_then(|it| genres.get(&it));
        // The guide of the portal knows the channel by its id.
        let guide_id = self.tvg_id.unwrap_or_else(|| guide_key(account, &self.id));
        let (id, cmd, needs_link) = (self.id, self.cmd, self.needs_link);
        let address = PortalStreamAddress { media: PortalMedia::Channel, id, cmd, needs_link };
        StreamProperties {
            content: content::from_panel(None, &self.name),
            tvg_id: Some(guide_id),
            group: genre.map(|it| it.name.clone()),
            logo: self.logo.and_then(|it| logo_url(&it, endpoint)),
            number: self.number,
            archive: self.archive.map(Box::new),
            is_adult: self.is_censored || genre.is_some_and(|it| it.is_censored),
            ..StreamProperties::new(self.name, address.url(server))
        }
    }
}

/// Returns the address of the logo of a channel, which may be the name of a file below this entry point.
pub fn logo_url(logo: &str, endpoint: &SourceUrl) -> Option<String> {
    let logo = logo.trim();
    let url = SourceUrl::new(logo);
    match url.scheme() {
        "" if logo.is_empty() => None,
        "" if logo.starts_with("//") => Some(format!("http:{logo}")),
        "" if logo.starts_with('/') => {
            let (scheme, host) = (endpoint.scheme(), endpoint.authority()?);
            Some(format!("{scheme}://{host}{logo}"))
        }
        "" => Some(format!("{}/misc/logos/320/{logo}", folder_of(endpoint))),
        _ if url.is_http() => Some(logo.to_owned()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(json: Value) -> Result<PortalChannel, ElementProblem> {
        read_channel(json.to_string().as_bytes())
    }

    fn channel() -> Value {
        json!({
            "id": "7", "name": "News", "number": "3", "censored": 0, "cmd": "ffrt http://localhost/ch/7_",
            "cmds": [{ "id": "9", "ch_id": "7", "url": "ffrt http://localhost/ch/7_" }], "tv_genre_id": "2",
            "logo": "7.png", "xmltv_id": "news.example", "use_http_tmp_link": "1", "use_load_balancing": "0",
            "lock": 0, "status": 1, "open": 1, "archive": 1, "enable_tv_archive": "1", "tv_archive_duration": "168",
        })
    }

    #[test]
    fn a_channel_is_read_with_its_usual_fields() {
        let expected = PortalChannel {
            id: "7".to_owned(),
            name: "News".to_owned(),
            number: "3".parse().ok(),
            genre: Some("2".to_owned()),
            logo: Some("7.png".to_owned()),
            tvg_id: Some("news.example".to_owned()),
            cmd: Secret::new("ffrt http://localhost/ch/7_"),
            needs_link: true,
            is_censored: false,
            archive: Archive::from_portal(true, Some(168)),
        };
        let found = read(channel()).unwrap();
        assert_eq!(found, expected);
        assert!(!format!("{found:?}").contains("localhost"));
        assert_eq!(read(json!([7])), Err(ElementProblem::NotAnObject));
        assert_eq!(read(json!({ "name": "News" })), Err(ElementProblem::NoId));
        assert_eq!(read(json!({ "id": 7 })).unwrap().name, "Channel 7");
        let first = read(json!({ "id": 7, "cmds": [{ "url": "ffmpeg http://s.example/7" }] })).unwrap();
        assert_eq!((first.cmd.expose(), first.needs_link), ("ffmpeg http://s.example/7", false));
    }

    #[test]
    fn no_type_of_any_field_makes_a_channel_unreadable_except_its_id() {
        let fields: Vec<String> = channel().as_object().unwrap().keys().cloned().collect();
        let values = [
            json!(7),
            json!("7"),
            json!(7.5),
            json!(null),
            json!(true),
            json!([]),
            json!({}),
            json!(["7"]),
            json!(""),
        ];
        for field in fields {
            for value in &values {
                let mut element = channel();
                element[&field] = value.clone();
                let is_id = field != "id" || [json!(7), json!("7"), json!(["7"])].contains(value);
                assert_eq!(read(element).is_ok(), is_id, "{field}: {value}");
            }
            let mut element = channel();
            element.as_object_mut().unwrap().remove(&field);
            assert_eq!(read(element).is_ok(), field != "id", "{field}");
        }
    }

    #[test]
    fn a_link_is_made_if_the_portal_says_so_or_the_command_names_no_server() {
        for (link, balancing, cmd, expected) in [
            (json!(0), json!("0"), "ffmpeg http://s.example/live/1.ts", false),
            (json!("1"), json!(0), "ffmpeg http://s.example/live/1.ts", true),
            (json!(0), json!(1), "http://s.example/live/1.ts", true),
            (json!(0), json!(0), "ffrt http://localhost/ch/1_", true),
            (json!(null), json!(null), "auto http://LOCALHOST:80/ch/1_", true),
            (json!(0), json!(0), "ffrt http:///ch/1_", true),
            (json!(0), json!(0), "/ch/1_", true),
            (json!(0), json!(0), "", true),
            (json!(0), json!(0), "udp://239.0.0.1:1234", false),
        ] {
            let found = read(json!({
                "id": 1, "use_http_tmp_link": link, "use_load_balancing": balancing, "cmd": cmd
            }));
            assert_eq!(found.unwrap().needs_link, expected, "{cmd}");
        }
    }

    #[test]
    fn an_archive_has_as_many_days_as_its_hours_fill() {
        for (marks, hours, days) in [
            (json!({ "enable_tv_archive": 1 }), json!(168), Some(7)),
            (json!({ "enable_tv_archive": "1" }), json!("25"), Some(2)),
            (json!({ "archive": 1 }), json!(24), Some(1)),
            (json!({ "tv_archive": 1 }), json!(null), Some(1)),
            (json!({ "archive": 1 }), json!(i64::MAX), Some(365)),
            (json!({ "archive": 0, "enable_tv_archive": "0" }), json!(168), None),
            (json!({}), json!(168), None),
        ] {
            let mut element = json!({ "id": 7, "tv_archive_duration": hours });
            element.as_object_mut().unwrap().extend(marks.as_object().unwrap().clone());
            let archive = read(element.clone()).unwrap().archive;
            assert_eq!(archive.map(|it| it.days), days, "{element}");
        }
    }

    #[test]
    fn genres_are_read_in_every_form_without_the_one_that_stands_for_all() {
        let news = || ("2".to_owned(), PortalGenre { name: "News".to_owned(), is_censored: false });
        let adult = || ("9".to_owned(), PortalGenre { name: "Night".to_owned(), is_censored: true });
        let list = json!([
            { "id": "*", "title": "All", "alias": "all" },
            { "id": 2, "title": "News", "censored": "0" },
            { "id": "9", "title": "Night", "censored": 1 },
            { "id": "5" }, { "title": "no id" }, "text", null
        ]);
        let both = PortalGenres::from([news(), adult()]);
        assert_eq!(read_genres(&list), both);
        assert_eq!(read_genres(&json!({ "data": list })), both);
        assert_eq!(read_genres(&json!({ "1": list[1], "2": list[2] })), both);
        for empty in [json!(false), json!([]), json!(null), json!({}), json!("text")] {
            assert!(read_genres(&empty).is_empty(), "{empty}");
        }
    }

    #[test]
    fn a_channel_becomes_a_stream_with_its_genre_as_group_and_is_adult_if_either_is() {
        let server = SourceUrl::new("http://p.example");
        let endpoint = SourceUrl::new("http://p.example/portal.php");
        let genres = read_genres(&json!([
            { "id": "2", "title": "News" }, { "id": "9", "title": "Night", "censored": 1 }
        ]));
        for (genre, censored, group, is_adult) in [
            ("2", 0, Some("News"), false),
            ("2", 1, Some("News"), true),
            ("9", 0, Some("Night"), true),
            ("77", 0, None, false),
        ] {
            let mut element = channel();
            (element["tv_genre_id"], element["censored"]) = (json!(genre), json!(censored));
            let properties =
                read(element).unwrap().into_properties(AccountId(2), &server, &endpoint, &genres);
            assert_eq!((properties.group.as_deref(), properties.is_adult), (group, is_adult));
            assert_eq!(PortalStreamAddress::id_in(&properties.url), Some("7"));
            assert_eq!(properties.logo.as_deref(), Some("http://p.example/misc/logos/320/7.png"));
            assert!(properties.content.is_live());
            assert_eq!(properties.tvg_id.as_deref(), Some("news.example"));
        }
        let nameless = read(json!({ "id": 8, "name": "Other" })).unwrap();
        let properties = nameless.into_properties(AccountId(2), &server, &endpoint, &genres);
        assert_eq!(properties.tvg_id.as_deref(), Some("portal-2-8"));
    }

    #[test]
    fn a_logo_is_an_address_or_a_file_of_the_portal() {
        let endpoint = SourceUrl::new("http://p.example:80/stalker_portal/server/load.php");
        for (logo, url) in [
            ("http://l.example/7.png", Some("http://l.example/7.png")),
            ("7.png", Some("http://p.example:80/stalker_portal/misc/logos/320/7.png")),
            ("/l/7.png", Some("http://p.example:80/l/7.png")),
            ("//l.example/7.png", Some("http://l.example/7.png")),
            ("file:///etc/passwd", None),
            ("", None),
        ] {
            assert_eq!(logo_url(logo, &endpoint).as_deref(), url, "{logo}");
        }
    }
}
