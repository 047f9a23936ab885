//! Questions to a portal: their queries and headers.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::address::folder_of;
use super::device::PortalDevice;
use super::title::TitleModule;
use crate::secret::Secret;
use crate::source_url::SourceUrl;
use crate::stream::RequestHeaders;

/// A question to a portal.
#[derive(Debug, Clone, PartialEq)]
pub enum PortalQuestion<'a> {
    /// Asks for a token.
    Handshake,
    /// Names the device. `second_step` follows an accepted login; `is_invalid` is what the handshake said of the token.
    Profile {
        second_step: bool,
        is_invalid: bool,
    },
    /// Sends the login of the device.
    Login,
    /// The state of the subscription.
    MainInfo,
    Genres,
    AllChannels,
    /// A page of the channels of a genre, from 1; `*` is all of them.
    Page {
        genre: &'a str,
        page: u32,
    },
    /// The programmes of all channels of the next hours.
    Guide {
        hours: u32,
    },
    /// A page of the programmes of a channel on a day, from 1. The day is `YYYY-MM-DD` in the zone of the device.
    Day {
        channel: &'a str,
        date: &'a str,
        page: u32,
    },
    /// Asks for the link of a programme in the archive.
    ArchiveLink {
        cmd: &'a Secret,
    },
    /// The categories of titles.
    Categories {
        module: TitleModule,
    },
    /// A page of the titles of a category, from 1.
    Titles {
        module: TitleModule,
        category: &'a str,
        page: u32,
    },
    /// A page of what a title consists of, from 1: the seasons of a series, the episodes of a season, or the files of a
    /// film or an episode.
    Parts {
        module: TitleModule,
        title: &'a str,
        season: Option<&'a str>,
        episode: Option<&'a str>,
        page: u32,
    },
    /// Asks for the link of a film, or of the episode with this number.
    TitleLink {
        cmd: &'a Secret,
        number: Option<u32>,
    },
    /// Asks for the link of a live channel.
    Link {
        cmd: &'a Secret,
    },
    /// Tells that the box is still on.
    Events {
        is_playing: bool,
    },
}

/// The name under which boxes ask.
pub const BOX_USER_AGENT: &str = "Mozilla/5.0 (QtEmbedded; U; Linux; C) AppleWebKit/533.3 (KHTML, like Gecko) MAG200 stbapp ver: 2 rev: 250 Safari/533.3";
/// The versions that boxes name; some portals refuse a box without them.
const VERSIONS: &str = "ImageDescription: 0.2.18-r14-pub-250; ImageDate: Fri Jan 15 15:20:44 EET 2016; PORTAL version: 5.1.0; API Version: JS API version: 328; STB API version: 134; Player Engine version: 0x566";

const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~').remove(b'*');

impl PortalQuestion<'_> {
    /// Returns the address that answers it.
    pub fn url(&self, endpoint: &SourceUrl, device: &PortalDevice) -> SourceUrl {
        let mut query = Query(format!("{}?", endpoint.expose()));
        match self {
            Self::Handshake => {
                query.action("stb", "handshake");
                // A portal would keep a token that is offered.
                query.add("token", "");
            }
            Self::Profile { second_step, is_invalid } => query.profile(device, *second_step, *is_invalid),
            Self::Login => {
                query.action("stb", "do_auth");
                query.add("login", &device.username);
                query.add("password", device.password.expose());
                query.add_ids(device);
            }
            Self::MainInfo => query.action("account_info", "get_main_info"),
            Self::Genres => query.action("itv", "get_genres"),
            Self::AllChannels => query.action("itv", "get_all_channels"),
            Self::Page { genre, page } => {
                query.action("itv", "get_ordered_list");
                query.add("genre", genre);
                query.add("fav", "0");
                query.add("sortby", "number");
                query.add("p", &page.to_string());
            }
            Self::Guide { hours } => {
                query.action("itv", "get_epg_info");
                query.add("period", &hours.to_string());
            }
            Self::Day { channel, date, page } => {
                query.action("epg", "get_simple_data_table");
                query.add("ch_id", channel);
                query.add("date", date);
                query.add("p", &page.to_string());
            }
            Self::ArchiveLink { cmd } => {
                query.action("tv_archive", "create_link");
                query.add("cmd", cmd.expose());
                query.add("series", "");
                query.add("forced_storage", "");
                query.add("disable_ad", "0");
                query.add("download", "0");
            }
            Self::Categories { module } => query.action(module.name(), "get_categories"),
            Self::Titles { module, category, page } => {
                query.action(module.name(), "get_ordered_list");
                query.add("category", category);
                query.add("genre", "*");
                query.add("fav", "0");
                query.add("sortby", "name");
                query.add("p", &page.to_string());
            }
            Self::Parts { module, title, season, episode, page } => {
                query.action(module.name(), "get_ordered_list");
                query.add("movie_id", title);
                query.add("season_id", season.unwrap_or("0"));
                query.add("episode_id", episode.unwrap_or("0"));
                query.add("p", &page.to_string());
            }
            Self::TitleLink { cmd, number } => {
                query.action("vod", "create_link");
                query.add("cmd", cmd.expose());
                query.add("series", &number.map_or_else(String::new, |it| it.to_string()));
                query.add("forced_storage", "");
                query.add("disable_ad", "0");
                query.add("download", "0");
            }
            Self::Link { cmd } => {
                query.action("itv", "create_link");
                query.add("cmd", cmd.expose());
                query.add("forced_storage", "undefined");
                query.add("disable_ad", "0");
            }
            Self::Events { is_playing } => {
                query.action("watchdog", "get_events");
                query.add("init", "0");
                query.add("cur_play_type", if *is_playing { "1" } else { "0" });
                query.add("event_active_id", "0");
            }
        }
        query.add("JsHttpRequest", "1-xml");
        SourceUrl::new(query.0)
    }
}

/// The address of a question, as far as it is known.
struct Query(String);

impl Query {
    fn action(&mut self, kind: &str, action: &str) {
        self.0 += &format!("type={kind}&action={action}");
    }

    fn profile(&mut self, device: &PortalDevice, second_step: bool, is_invalid: bool) {
        self.action("stb", "get_profile");
        let flag = |it: bool| if it { "1" } else { "0" };
        for (name, value) in [
            ("hd", "1"),
            ("ver", VERSIONS),
            ("num_banks", "2"),
            ("stb_type", device.model()),
            ("image_version", "218"),
            ("hw_version", "1.7-BD-00"),
            ("auth_second_step", flag(second_step)),
            ("not_valid_token", flag(is_invalid)),
        ] {
            self.add(name, value);
        }
        self.add_known("sn", device.serial_number.expose());
        self.add_ids(device);
        self.add_known("signature", device.signature.expose());
    }

    fn add(&mut self, name: &str, value: &str) {
        self.0 += &format!("&{name}={}", utf8_percent_encode(value, KEPT));
    }

    /// Adds what an admin entered, and nothing else.
    fn add_known(&mut self, name: &str, value: &str) {
        if !value.is_empty() {
            self.add(name, value);
        }
    }

    fn add_ids(&mut self, device: &PortalDevice) {
        self.add_known("device_id", device.device_id.expose());
        self.add_known("device_id2", device.device_id2.expose());
    }
}

/// Returns the headers of a question. Those of the account come first, except for the cookie and the token, by which the
/// portal knows the device.
pub fn headers(
    account: &RequestHeaders,
    endpoint: &SourceUrl,
    device: &PortalDevice,
    token: Option<&Secret>,
    zone: &str,
) -> RequestHeaders {
    let mut headers = RequestHeaders {
        user_agent: Some(BOX_USER_AGENT.to_owned()),
        referrer: Some(format!("{}/c/", folder_of(endpoint))),
        extra: Vec::new(),
    };
    let cookie = format!("mac={}; stb_lang=en; timezone={zone}", device.mac.expose());
    headers.set("Cookie", &cookie);
    headers.set("X-User-Agent", &format!("Model: {}; Link: WiFi", device.model()));
    if let Some(token) = token {
        headers.set("Authorization", &format!("Bearer {}", token.expose()));
    }
    let is_own = |name: &str| ["cookie", "authorization"].iter().any(|it| name.eq_ignore_ascii_case(it));
    for (name, value) in account.extra.iter().filter(|it| !is_own(&it.0)) {
        headers.set(name, value);
    }
    headers.user_agent = account.user_agent.clone().or(headers.user_agent);
    headers.referrer = account.referrer.clone().or(headers.referrer);
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::portal::MacAddress;

    fn device() -> PortalDevice {
        PortalDevice::new(MacAddress::parse("00:1A:79:AB:CD:EF").unwrap())
    }

    #[test]
    fn a_question_names_its_type_its_action_and_what_an_admin_entered() {
        let endpoint = SourceUrl::new("http://p.example/portal.php");
        let cmd = Secret::new("ffrt http://localhost/ch/7_");
        let check = |question: PortalQuestion<'_>, device: &PortalDevice, expected: &str| {
            let url = question.url(&endpoint, device);
            let expected = format!("http://p.example/portal.php?{expected}&JsHttpRequest=1-xml");
            assert_eq!(url.expose(), expected);
            assert_eq!(url.to_string(), "http://p.example/…");
        };
        check(PortalQuestion::Handshake, &device(), "type=stb&action=handshake&token=");
        check(PortalQuestion::Guide { hours: 24 }, &device(), "type=itv&action=get_epg_info&period=24");
        check(PortalQuestion::Genres, &device(), "type=itv&action=get_genres");
        check(
            PortalQuestion::Page { genre: "*", page: 2 },
            &device(),
            "type=itv&action=get_ordered_list&genre=*&fav=0&sortby=number&p=2",
        );
        check(
            PortalQuestion::Link { cmd: &cmd },
            &device(),
            "type=itv&action=create_link&cmd=ffrt%20http%3A%2F%2Flocalhost%2Fch%2F7_&forced_storage=undefined&disable_ad=0",
        );
        check(
            PortalQuestion::Day { channel: "7", date: "2026-11-30", page: 2 },
            &device(),
            "type=epg&action=get_simple_data_table&ch_id=7&date=2026-11-30&p=2",
        );
        check(
            PortalQuestion::ArchiveLink { cmd: &Secret::new("auto /media/5.mpg") },
            &device(),
            "type=tv_archive&action=create_link&cmd=auto%20%2Fmedia%2F5.mpg&series=&forced_storage=&disable_ad=0&download=0",
        );
        let (vod, series) = (TitleModule::Vod, TitleModule::Series);
        let parts =
            |season, episode| PortalQuestion::Parts { module: vod, title: "7", season, episode, page: 1 };
        for (question, expected) in [
            (PortalQuestion::Categories { module: series }, "type=series&action=get_categories"),
            (
                PortalQuestion::Titles { module: vod, category: "3", page: 2 },
                "type=vod&action=get_ordered_list&category=3&genre=*&fav=0&sortby=name&p=2",
            ),
            (parts(None, None), "type=vod&action=get_ordered_list&movie_id=7&season_id=0&episode_id=0&p=1"),
            (
                parts(Some("12"), Some("9")),
                "type=vod&action=get_ordered_list&movie_id=7&season_id=12&episode_id=9&p=1",
            ),
            (
                PortalQuestion::TitleLink { cmd: &Secret::new("/media/7.mpg"), number: Some(3) },
                "type=vod&action=create_link&cmd=%2Fmedia%2F7.mpg&series=3&forced_storage=&disable_ad=0&download=0",
            ),
        ] {
            check(question, &device(), expected);
        }
        check(
            PortalQuestion::Events { is_playing: true },
            &device(),
            "type=watchdog&action=get_events&init=0&cur_play_type=1&event_active_id=0",
        );
        let login = PortalDevice { username: "an/na".into(), password: Secret::new("p&s"), ..device() };
        check(PortalQuestion::Login, &login, "type=stb&action=do_auth&login=an%2Fna&password=p%26s");
        let profile = PortalQuestion::Profile { second_step: false, is_invalid: true };
        let url = profile.url(&endpoint, &device());
        for name in ["sn=", "device_id", "signature="] {
            assert!(!url.expose().contains(name), "{name} is never made up");
        }
        let known =
            PortalDevice { serial_number: Secret::new("S1"), device_id: Secret::new("D1"), ..device() };
        let url = profile.url(&endpoint, &known);
        for value in ["&sn=S1", "&device_id=D1", "&stb_type=MAG250", "&not_valid_token=1"] {
            assert!(url.expose().contains(value), "{value}");
        }
    }

    #[test]
    fn headers_are_those_of_a_box_with_those_of_the_account() {
        let endpoint = SourceUrl::new("http://p.example/stalker_portal/server/load.php");
        let mut account = RequestHeaders::default();
        account.set("X-Own", "1");
        account.set("Cookie", "mac=other");
        let token = Secret::new("T1");
        let found = headers(&account, &endpoint, &device(), Some(&token), "Europe/Paris");
        let value = |name: &str| found.extra.iter().find(|it| it.0 == name).map(|it| it.1.as_str());
        assert_eq!(value("Cookie"), Some("mac=00:1A:79:AB:CD:EF; stb_lang=en; timezone=Europe/Paris"));
        assert_eq!(value("X-User-Agent"), Some("Model: MAG250; Link: WiFi"));
        assert_eq!((value("Authorization"), value("X-Own")), (Some("Bearer T1"), Some("1")));
        assert_eq!(found.referrer.as_deref(), Some("http://p.example/stalker_portal/c/"));
        assert!(found.user_agent.unwrap().contains("MAG200"));
        account.set("User-Agent", "Own/1");
        let found = headers(&account, &endpoint, &device(), None, "UTC");
        assert_eq!(found.user_agent.as_deref(), Some("Own/1"));
        assert!(!found.extra.iter().any(|it| it.0 == "Authorization"));
    }
}
