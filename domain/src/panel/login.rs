//! The login of an account at a panel, and the addresses that follow from it.

use std::fmt;

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::pattern::Pattern;
use crate::secret::Secret;
use crate::source_url::SourceUrl;

/// A login at a panel. Prints without user and password.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PanelLogin {
    /// The base address, without a slash at its end: `http://panel.example:8080`, or with a path.
    pub server: SourceUrl,
    pub username: String,
    pub password: Secret,
}

/// A question to a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PanelAction {
    /// The state of the account and of the server.
    AccountInfo,
    LiveCategories,
    LiveStreams,
}

/// A question about films and series. Ids are those of the panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VodQuestion<'a> {
    MovieCategories,
    SeriesCategories,
    /// The films of a category, or all.
    Movies {
        category: Option<&'a str>,
    },
    /// The series of a category, or all.
    Series {
        category: Option<&'a str>,
    },
    MovieInfo {
        id: &'a str,
    },
    /// The details of a series, with its episodes.
    SeriesInfo {
        id: &'a str,
    },
}

/// The parts of a pasted address of a panel.
#[derive(Clone, PartialEq, Eq)]
pub struct PanelAddress {
    /// The base address, as in [`PanelLogin::server`].
    pub server: SourceUrl,
    /// User and password, if the address contains both.
    pub login: Option<(String, Secret)>,
}

/// Why a text is not the address of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PanelAddressError {
    #[error("the address of a panel begins with http:// or https://")]
    Scheme,
    #[error("the address has no valid host")]
    Host,
}

/// Characters that would change the structure of a path or a query.
const ESCAPED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'&')
    .add(b'+')
    .add(b'/')
    .add(b':')
    .add(b'<')
    .add(b'=')
    .add(b'>')
    .add(b'?')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'{')
    .add(b'|')
    .add(b'}');

/// Files of a panel that are pasted with its address.
const FILES: [&str; 6] =
    ["player_api.php", "get.php", "xmltv.php", "panel_api.php", "portal.php", "index.php"];
/// Folders that contain the user, the password and a stream.
const FOLDERS: [&str; 4] = ["live", "movie", "series", "timeshift"];

impl PanelLogin {
    /// Returns the address that answers a question.
    pub fn api_url(&self, action: PanelAction) -> SourceUrl {
        let server = self.server.expose();
        let (user, password) = (escaped(&self.username), escaped(self.password.expose()));
        let action = match action {
            PanelAction::AccountInfo => "",
            PanelAction::LiveCategories => "&action=get_live_categories",
            PanelAction::LiveStreams => "&action=get_live_streams",
        };
        SourceUrl::new(format!("{server}/player_api.php?username={user}&password={password}{action}"))
    }

    /// Returns the address that answers a question about films and series.
    pub fn vod_url(&self, question: VodQuestion<'_>) -> SourceUrl {
        let (action, parameter) = match question {
            VodQuestion::MovieCategories => ("get_vod_categories", None),
            VodQuestion::SeriesCategories => ("get_series_categories", None),
            VodQuestion::Movies { category } => ("get_vod_streams", category.map(|it| ("category_id", it))),
            VodQuestion::Series { category } => ("get_series", category.map(|it| ("category_id", it))),
            VodQuestion::MovieInfo { id } => ("get_vod_info", Some(("vod_id", id))),
            VodQuestion::SeriesInfo { id } => ("get_series_info", Some(("series_id", id))),
        };
        let server = self.server.expose();
        let (user, password) = (escaped(&self.username), escaped(self.password.expose()));
        let parameter =
            parameter.map(|(name, value)| format!("&{name}={}", escaped(value))).unwrap_or_default();
        SourceUrl::new(format!(
            "{server}/player_api.php?username={user}&password={password}&action={action}{parameter}"
        ))
    }

    /// Returns the address of a film.
    pub fn movie_url(&self, id: &str, extension: &str) -> SourceUrl {
        self.file_url("movie", id, extension)
    }

    /// Returns the address of an episode.
    pub fn episode_url(&self, id: &str, extension: &str) -> SourceUrl {
        self.file_url("series", id, extension)
    }

    fn file_url(&self, folder: &str, id: &str, extension: &str) -> SourceUrl {
        let server = self.server.expose();
        let (user, password) = (escaped(&self.username), escaped(self.password.expose()));
        let separator = if extension.is_empty() { "" } else { "." };
        let (id, extension) = (escaped(id), escaped(extension));
        SourceUrl::new(format!("{server}/{folder}/{user}/{password}/{id}{separator}{extension}"))
    }

    /// Returns the address of the guide.
    pub fn guide_url(&self) -> SourceUrl {
        let server = self.server.expose();
        let (user, password) = (escaped(&self.username), escaped(self.password.expose()));
        SourceUrl::new(format!("{server}/xmltv.php?username={user}&password={password}"))
    }

    /// Returns the address of a live stream.
    pub fn stream_url(&self, id: u64) -> SourceUrl {
        let server = self.server.expose();
        let (user, password) = (escaped(&self.username), escaped(self.password.expose()));
        SourceUrl::new(format!("{server}/live/{user}/{password}/{id}.ts"))
    }

    /// Returns the login with which a profile plays, whose pattern changes the addresses of streams. `None` if these are
    /// no addresses of a panel then.
    pub fn profile_login(&self, pattern: &Pattern) -> Option<Self> {
        let url = self.stream_url(1);
        let changed = pattern.apply(url.expose());
        let PanelAddress { server, login } = PanelAddress::parse(&changed).ok()?;
        let (username, password) = login?;
        Some(Self { server, username, password })
    }
}

impl PanelAddress {
    /// Reads the forms in which people copy the address of a panel: with or without scheme, port, path and slash; with
    /// `/player_api.php`; the address of the playlist (`/get.php?username=…&password=…`) or of a stream, which contain
    /// the login; and the portal address that ends with `/c/`.
    ///
    /// # Errors
    /// It has no host, or another scheme.
    pub fn parse(text: &str) -> Result<Self, PanelAddressError> {
        let text = text.trim();
        if text.contains(char::is_control) {
            return Err(PanelAddressError::Host);
        }
        let (scheme, rest) = match text.split_once("://") {
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => ("http", rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => ("https", rest),
            // The scheme of another address may be inside a query.
            Some((before, _)) if !before.contains(['/', '?']) => return Err(PanelAddressError::Scheme),
            _ => ("http", text),
        };
        let rest = rest.split_once('#').map_or(rest, |it| it.0);
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_once('/').unwrap_or((place, ""));
        let (user_info, host) = authority.rsplit_once('@').map_or((None, authority), |it| (Some(it.0), it.1));
        if !is_host(host) {
            return Err(PanelAddressError::Host);
        }
        let segments: Vec<&str> = path.split('/').map(str::trim).filter(|it| !it.is_empty()).collect();
        let (base, in_path) = base_of(&segments);
        let mut server = format!("{scheme}://{}", host.to_ascii_lowercase());
        for segment in base {
            server.push('/');
            server.push_str(segment);
        }
        let login = login_of_query(query).or(in_path).or_else(|| login_of_user_info(user_info?));
        Ok(Self { server: SourceUrl::new(server), login })
    }
}

/// Returns the segments of the base address, and the login that follows them in the address of a stream.
fn base_of<'a>(segments: &'a [&'a str]) -> (&'a [&'a str], Option<(String, Secret)>) {
    let (mut base, mut login) = (segments, None);
    // Ends, because each round shortens the base.
    loop {
        base = match base {
            [before @ .., folder, user, password, _stream] if FOLDERS.contains(folder) => {
                login = Some((decoded(user), Secret::new(decoded(password))));
                before
            }
            [before @ .., "c"] => before,
            _ => match base.iter().position(|it| FILES.iter().any(|file| it.eq_ignore_ascii_case(file))) {
                Some(at) => &base[..at],
                None => return (base, login),
            },
        };
    }
}

fn login_of_query(query: &str) -> Option<(String, Secret)> {
    let value = |name: &str| {
        let mut pairs = query.split('&').filter_map(|it| it.split_once('='));
        let value = pairs.find(|it| it.0.eq_ignore_ascii_case(name))?.1;
        Some(decoded(&value.replace('+', " "))).filter(|it| !it.is_empty())
    };
    Some((value("username")?, Secret::new(value("password")?)))
}

fn login_of_user_info(user_info: &str) -> Option<(String, Secret)> {
    let (user, password) = user_info.split_once(':')?;
    (!user.is_empty() && !password.is_empty()).then(|| (decoded(user), Secret::new(decoded(password))))
}

fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn decoded(text: &str) -> String {
    percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// Returns whether this is a host with or without a port. Hosts with an underscore exist.
fn is_host(host: &str) -> bool {
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    };
    let is_name = match name.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
        Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
        None => {
            !name.is_empty()
                && name.chars().all(|it| it.is_alphanumeric() || matches!(it, '.' | '-' | '_'))
                && name.starts_with(char::is_alphanumeric)
        }
    };
    is_name && port.is_none_or(|it| it.parse::<u16>().is_ok_and(|it| it != 0))
}

impl fmt::Debug for PanelLogin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PanelLogin").field("server", &self.server).finish_non_exhaustive()
    }
}

impl fmt::Debug for PanelAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PanelAddress").field("server", &self.server).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, server: &str, login: Option<(&str, &str)>) {
        let address = PanelAddress::parse(text).unwrap();
        assert_eq!(address.server.expose(), server, "{text}");
        let found = address.login.as_ref().map(|it| (it.0.as_str(), it.1.expose()));
        assert_eq!(found, login, "{text}");
    }

    /// Holds T-pl.5.
    #[test]
    fn an_address_is_recognised_in_the_forms_in_which_people_paste_it() {
        let login = Some(("anna", "pass word"));
        for text in [
            "http://panel.example:8080",
            "http://panel.example:8080/",
            " panel.example:8080// ",
            "HTTP://Panel.Example:8080/player_api.php",
            "http://panel.example:8080/player_api.php?action=x",
            "http://panel.example:8080/xmltv.php#top",
            "http://panel.example:8080/c/",
        ] {
            check(text, "http://panel.example:8080", None);
        }
        for text in [
            "http://panel.example/get.php?username=anna&password=pass%20word&type=m3u_plus&output=ts",
            "http://panel.example/get.php?password=pass+word&username=anna",
            "http://panel.example/live/anna/pass%20word/7.ts",
            "panel.example/movie/anna/pass%20word/7.mkv?a=b",
            "http://anna:pass%20word@panel.example/",
        ] {
            check(text, "http://panel.example", login);
        }
        check("https://panel.example/sub/path/", "https://panel.example/sub/path", None);
        check(
            "https://panel.example/sub/get.php?username=a&password=b",
            "https://panel.example/sub",
            Some(("a", "b")),
        );
        check("http://my_panel:25461", "http://my_panel:25461", None);
        check("http://[2001:db8::1]:80/", "http://[2001:db8::1]:80", None);
        check("http://192.0.2.7", "http://192.0.2.7", None);
        check("http://panel.example/live", "http://panel.example/live", None);
        check("http://panel.example/get.php?username=anna", "http://panel.example", None);
    }

    #[test]
    fn a_text_without_a_usable_host_is_refused() {
        for (text, reason) in [
            ("", PanelAddressError::Host),
            ("http://", PanelAddressError::Host),
            ("http:///path", PanelAddressError::Host),
            ("http://a b/", PanelAddressError::Host),
            ("http://panel.example:0", PanelAddressError::Host),
            ("http://panel.example:99999", PanelAddressError::Host),
            ("http://[::1", PanelAddressError::Host),
            ("?x=http://a", PanelAddressError::Host),
            ("ftp://panel.example", PanelAddressError::Scheme),
            ("file:///etc/passwd", PanelAddressError::Scheme),
        ] {
            assert_eq!(PanelAddress::parse(text).unwrap_err(), reason, "{text}");
        }
    }

    #[test]
    fn addresses_contain_the_escaped_login_and_print_without_it() {
        let login = PanelLogin {
            server: SourceUrl::new("http://panel.example:8080/sub"),
            username: "an/na".to_owned(),
            password: Secret::new("p&s ?é"),
        };
        assert_eq!(
            login.api_url(PanelAction::LiveStreams).expose(),
            "http://panel.example:8080/sub/player_api.php?username=an%2Fna&password=p%26s%20%3F%C3%A9&action=get_live_streams"
        );
        assert_eq!(
            login.guide_url().expose(),
            "http://panel.example:8080/sub/xmltv.php?username=an%2Fna&password=p%26s%20%3F%C3%A9"
        );
        let url = login.stream_url(7);
        assert_eq!(url.expose(), "http://panel.example:8080/sub/live/an%2Fna/p%26s%20%3F%C3%A9/7.ts");
        let read = PanelAddress::parse(url.expose()).unwrap();
        assert_eq!(read.login, Some((login.username.clone(), login.password.clone())));
        assert_eq!(read.server, login.server);
        let printed = format!("{login:?} {read:?} {url:?}").replace("panel.example", "");
        assert!(
            !printed.contains("an/na") && !printed.contains("p&s") && !printed.contains("%26"),
            "{printed}"
        );
    }

    #[test]
    fn the_login_of_a_profile_follows_from_its_pattern() {
        let login = PanelLogin {
            server: SourceUrl::new("http://panel.example"),
            username: "anna".to_owned(),
            password: Secret::new("one"),
        };
        let pattern = Pattern::new("/anna/one/", "/bert/two/").unwrap();
        let other = login.profile_login(&pattern).unwrap();
        assert_eq!((other.username.as_str(), other.password.expose()), ("bert", "two"));
        assert_eq!(other.server, login.server);
        assert!(login.profile_login(&Pattern::new("^.*$", "nothing").unwrap()).is_none());
    }
}
