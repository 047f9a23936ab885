//! The addresses of a portal: the one that an admin pastes, and the entry points that may answer.

use serde::{Deserialize, Serialize};

use crate::panel::{PanelAddress, PanelAddressError};
use crate::source_url::SourceUrl;

/// The portal of an account. Each account profile has a device of its own there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortalPlace {
    /// The base address, without a slash at its end: `http://portal.example`, or with a path such as `/stalker_portal`.
    pub server: SourceUrl,
    /// The entry point that an admin named, or that has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<SourceUrl>,
}

/// Why a text is not the address of a portal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PortalAddressError {
    #[error("the address of a portal begins with http:// or https://")]
    Scheme,
    #[error("the address has no valid host")]
    Host,
}

/// The entry points below a base address, in the order in which they are asked.
const ENTRY_POINTS: [&str; 3] = ["/portal.php", "/server/load.php", "/stalker_portal/server/load.php"];
/// The folder in which a portal is usually installed.
const FOLDER: &str = "/stalker_portal";
/// The files of entry points, below the folder that contains them.
const FILES: [&str; 2] = ["/server/load.php", "/portal.php"];

/// Reads the address of a portal as it is pasted: with or without scheme, ending with `/c/`, `/c/index.html` or with the
/// file of an entry point, which is returned as well.
///
/// # Errors
/// It has no host, or another scheme.
pub fn pasted_address(text: &str) -> Result<(SourceUrl, Option<SourceUrl>), PortalAddressError> {
    let text = text.trim();
    let text = &text[..text.find(['?', '#']).unwrap_or(text.len())];
    let lower = text.to_ascii_lowercase();
    let file = FILES.into_iter().find(|it| lower.ends_with(it));
    let text = match (file, lower.strip_suffix("/c/index.html")) {
        (Some(file), _) => &text[..text.len() - file.len()],
        (None, Some(base)) => &text[..base.len()],
        (None, None) => text,
    };
    let base = PanelAddress::parse(text).map_err(|error| match error {
        PanelAddressError::Scheme => PortalAddressError::Scheme,
        PanelAddressError::Host => PortalAddressError::Host,
    })?;
    let endpoint = file.map(|it| SourceUrl::new(format!("{}{it}", base.server.expose())));
    Ok((base.server, endpoint))
}

/// Returns the entry points of a base address that may answer, the known one first.
pub fn endpoints(server: &SourceUrl, known: Option<&SourceUrl>) -> Vec<SourceUrl> {
    let base = server.expose();
    let order: &[&str] = match base.ends_with(FOLDER) {
        true => &["/server/load.php", "/portal.php"],
        false => &ENTRY_POINTS,
    };
    let mut all: Vec<_> = known.into_iter().cloned().collect();
    for file in order {
        let endpoint = SourceUrl::new(format!("{base}{file}"));
        if !all.contains(&endpoint) {
            all.push(endpoint);
        }
    }
    all
}

/// Returns the folder that contains an entry point, without a slash at its end. Its web page is at `/c/` below it.
pub(super) fn folder_of(endpoint: &SourceUrl) -> &str {
    let text = endpoint.expose();
    FILES.into_iter().find_map(|it| text.strip_suffix(it)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_of_a_portal_is_read_in_the_forms_in_which_it_is_pasted() {
        for (text, base, endpoint) in [
            ("http://p.example/c/", "http://p.example", None),
            ("p.example:8080/c", "http://p.example:8080", None),
            ("http://p.example", "http://p.example", None),
            ("http://p.example/c/index.html", "http://p.example", None),
            ("HTTP://P.example/c/?x=1", "http://p.example", None),
            ("https://p.example/stalker_portal/c/", "https://p.example/stalker_portal", None),
            ("http://p.example/portal.php", "http://p.example", Some("http://p.example/portal.php")),
            (
                "http://p.example/stalker_portal/server/load.php?type=stb&action=handshake",
                "http://p.example/stalker_portal",
                Some("http://p.example/stalker_portal/server/load.php"),
            ),
        ] {
            let (found, file) = pasted_address(text).unwrap();
            assert_eq!((found.expose(), file.as_ref().map(|it| it.expose())), (base, endpoint), "{text}");
        }
        assert_eq!(pasted_address("ftp://p.example/c/"), Err(PortalAddressError::Scheme));
        for text in ["", "http://", "http://a b/c/", "http://p.example:0/c/"] {
            assert_eq!(pasted_address(text), Err(PortalAddressError::Host), "{text}");
        }
    }

    #[test]
    fn the_known_entry_point_is_asked_first_and_each_one_once() {
        let all = |server: &str, known: Option<&str>| {
            let known = known.map(SourceUrl::new);
            let found = endpoints(&SourceUrl::new(server), known.as_ref());
            found.iter().map(|it| it.expose().to_owned()).collect::<Vec<_>>()
        };
        let usual = [
            "http://p.example/portal.php",
            "http://p.example/server/load.php",
            "http://p.example/stalker_portal/server/load.php",
        ];
        assert_eq!(all("http://p.example", None), usual);
        assert_eq!(all("http://p.example", Some(usual[2])), [usual[2], usual[0], usual[1]]);
        assert_eq!(
            all("http://p.example/stalker_portal", None),
            [usual[2], "http://p.example/stalker_portal/portal.php"]
        );
    }

    #[test]
    fn the_folder_of_an_entry_point_contains_its_web_page() {
        for (endpoint, folder) in [
            ("http://p.example/portal.php", "http://p.example"),
            ("http://p.example/a/server/load.php", "http://p.example/a"),
            ("http://p.example/other", "http://p.example/other"),
        ] {
            assert_eq!(folder_of(&SourceUrl::new(endpoint)), folder);
        }
    }
}
