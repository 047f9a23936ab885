//! The discovery of UPnP: searches by UDP on port 1900, and notifications (UPnP Device Architecture 1.0, section 1).

use std::net::Ipv4Addr;

use uuid::Uuid;

use super::AnnouncedDevice;
use crate::tuner::device_uuid;

/// Port of searches and notifications.
pub const PORT: u16 = 1_900;
/// Address of searches and notifications.
pub const GROUP: Ipv4Addr = Ipv4Addr::new(239, 255, 255, 250);
/// Type of the announced devices.
pub const DEVICE_TYPE: &str = "urn:schemas-upnp-org:device:MediaServer:1";
/// Maximum length of a search, in bytes.
pub const SEARCH_BYTES_MAX: usize = 1_500;
/// Time for which clients remember a device without a further notification, in seconds.
pub const MAX_AGE: u32 = 1_800;

const ROOT_DEVICE: &str = "upnp:rootdevice";
const SERVER: &str = concat!("Linux/1.0 UPnP/1.0 Headwater/", env!("CARGO_PKG_VERSION"));

/// The target of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Search {
    /// Every device and every type.
    All,
    RootDevices,
    /// Devices of [`DEVICE_TYPE`].
    Type,
    /// The device with this unique name.
    Device(Uuid),
}

impl Search {
    /// Reads a message. `None` if it is not a valid search for something that the gateway could be.
    pub fn parse(message: &[u8]) -> Option<Self> {
        if message.len() > SEARCH_BYTES_MAX {
            return None;
        }
        let mut lines = std::str::from_utf8(message).ok()?.split("\r\n");
        if lines.next()? != "M-SEARCH * HTTP/1.1" {
            return None;
        }
        let (mut is_discovery, mut target) = (false, None);
        for line in lines.take_while(|it| !it.is_empty()) {
            let (name, value) = line.split_once(':')?;
            match name.trim() {
                it if it.eq_ignore_ascii_case("man") => is_discovery = value.trim() == "\"ssdp:discover\"",
                it if it.eq_ignore_ascii_case("st") => target = Self::from_target(value.trim()),
                _ => {}
            }
        }
        target.filter(|_| is_discovery)
    }

    fn from_target(target: &str) -> Option<Self> {
        match target {
            "ssdp:all" => Some(Self::All),
            ROOT_DEVICE => Some(Self::RootDevices),
            DEVICE_TYPE => Some(Self::Type),
            _ => Uuid::try_parse(target.strip_prefix("uuid:")?).ok().map(Self::Device),
        }
    }

    /// Returns the answers for a device: none if the search is not for it.
    pub fn answers(self, device: &AnnouncedDevice) -> Vec<String> {
        let uuid = device_uuid(&device.device_id);
        let types = types(uuid);
        let wanted: Vec<&str> = match self {
            Self::All => types.iter().map(String::as_str).collect(),
            Self::RootDevices => vec![ROOT_DEVICE],
            Self::Type => vec![DEVICE_TYPE],
            Self::Device(wanted) if wanted == uuid => vec![&types[1]],
            Self::Device(_) => Vec::new(),
        };
        let answer = |kind: &str| {
            let (usn, base_url) = (unique_name(uuid, kind), &device.base_url);
            format!(
                "HTTP/1.1 200 OK\r\nCACHE-CONTROL: max-age={MAX_AGE}\r\nEXT:\r\nLOCATION: {base_url}/device.xml\r\n\
                 SERVER: {SERVER}\r\nST: {kind}\r\nUSN: {usn}\r\n\r\n"
            )
        };
        wanted.into_iter().map(answer).collect()
    }
}

/// Returns the messages that announce a device.
pub fn alive(device: &AnnouncedDevice) -> Vec<String> {
    let uuid = device_uuid(&device.device_id);
    let message = |kind: &String| {
        let (usn, base_url) = (unique_name(uuid, kind), &device.base_url);
        format!(
            "NOTIFY * HTTP/1.1\r\nHOST: {GROUP}:{PORT}\r\nCACHE-CONTROL: max-age={MAX_AGE}\r\n\
             LOCATION: {base_url}/device.xml\r\nNT: {kind}\r\nNTS: ssdp:alive\r\nSERVER: {SERVER}\r\nUSN: {usn}\r\n\r\n"
        )
    };
    types(uuid).iter().map(message).collect()
}

/// Returns the messages that a device is gone.
pub fn gone(device_id: &str) -> Vec<String> {
    let uuid = device_uuid(device_id);
    let message = |kind: &String| {
        let usn = unique_name(uuid, kind);
        format!(
            "NOTIFY * HTTP/1.1\r\nHOST: {GROUP}:{PORT}\r\nNT: {kind}\r\nNTS: ssdp:byebye\r\nUSN: {usn}\r\n\r\n"
        )
    };
    types(uuid).iter().map(message).collect()
}

/// Returns the names under which a device is announced: as a device of its own, by its unique name, and by its type.
fn types(uuid: Uuid) -> [String; 3] {
    [ROOT_DEVICE.to_owned(), format!("uuid:{uuid}"), DEVICE_TYPE.to_owned()]
}

fn unique_name(uuid: Uuid, kind: &str) -> String {
    let name = format!("uuid:{uuid}");
    if kind == name { name } else { format!("{name}::{kind}") }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn device() -> AnnouncedDevice {
        let base_url = "http://192.168.1.5:9191".to_owned();
        AnnouncedDevice { device_id: "12345678".to_owned(), tuner_count: 10, base_url }
    }

    fn search(target: &str) -> String {
        format!(
            "M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nMan: \"ssdp:discover\"\r\nMX: 2\r\nST: {target}\r\n\r\n"
        )
    }

    #[test]
    fn a_search_for_the_device_is_answered_with_its_address() {
        let uuid = device_uuid("12345678");
        for (target, n_answers) in [
            ("ssdp:all", 3),
            ("upnp:rootdevice", 1),
            (DEVICE_TYPE, 1),
            (&*format!("uuid:{uuid}"), 1),
            ("uuid:00000000-0000-0000-0000-000000000000", 0),
            ("urn:schemas-upnp-org:device:MediaRenderer:1", 0),
            ("uuid:x", 0),
            ("", 0),
        ] {
            let answers = Search::parse(search(target).as_bytes()).map(|it| it.answers(&device()));
            let answers = answers.unwrap_or_default();
            assert_eq!(answers.len(), n_answers, "{target}");
            for answer in answers {
                assert!(answer.contains("LOCATION: http://192.168.1.5:9191/device.xml\r\n"), "{answer}");
                assert!(
                    answer.contains(&format!("USN: uuid:{uuid}")) && answer.ends_with("\r\n\r\n"),
                    "{answer}"
                );
                assert!(
                    target == "ssdp:all" || answer.contains(&format!("\r\nST: {target}\r\n")),
                    "{answer}"
                );
            }
        }
    }

    #[test]
    fn other_messages_are_not_answered() {
        let valid = search("ssdp:all");
        for message in [
            valid.replace("M-SEARCH", "NOTIFY"),
            valid.replace("\"ssdp:discover\"", "ssdp:discover"),
            valid.replace("ST: ssdp:all\r\n", ""),
            valid.replace("MX: 2", "MX"),
            valid.replace("MX: 2", &"x: y\r\n".repeat(500)),
            String::new(),
        ] {
            assert_eq!(Search::parse(message.as_bytes()), None, "{message}");
        }
        assert_eq!(Search::parse(b"M-SEARCH * HTTP/1.1\r\nST: \xff\r\n\r\n"), None);
    }

    #[test]
    fn a_device_announces_itself_under_three_names_and_takes_all_of_them_back() {
        let (alive, gone) = (alive(&device()), gone("12345678"));
        assert_eq!((alive.len(), gone.len()), (3, 3));
        let name = |message: &String| {
            message.lines().find_map(|it| it.strip_prefix("USN: ")).map(str::to_owned).expect("a unique name")
        };
        for (here, away) in alive.iter().zip(&gone) {
            assert!(here.contains("NTS: ssdp:alive") && away.contains("NTS: ssdp:byebye"), "{here} {away}");
            assert_eq!(name(here), name(away));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_fault(
            bytes in proptest::collection::vec(any::<u8>(), 0..200),
            text in "(M-SEARCH \\* HTTP/1.1\r\n)?([a-zA-Z]{0,4}:?.{0,10}\r\n){0,5}",
        ) {
            let _ = Search::parse(&bytes);
            let _ = Search::parse(text.as_bytes());
        }
    }
}
