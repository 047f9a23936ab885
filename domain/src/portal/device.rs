//! The device that an account at a portal belongs to. An admin enters all of its values; none is made up or tried.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::secret::Secret;

/// The MAC address of a device, in the form `00:1A:79:AB:CD:EF`. A portal knows its customers by it, so it prints without
/// its value.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MacAddress(Secret);

/// The text is not a MAC address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("enter a MAC address, such as 00:1A:79:12:34:56")]
pub struct MacAddressError;

/// A device as a portal knows it. Only the MAC address is required; an empty text is not sent. Prints without its values.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortalDevice {
    pub mac: MacAddress,
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub serial_number: Secret,
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub device_id: Secret,
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub device_id2: Secret,
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub signature: Secret,
    /// The login that some portals ask for beside the MAC address.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    #[serde(default = "nothing", skip_serializing_if = "is_nothing")]
    pub password: Secret,
    /// The model of the box. Empty: [`PortalDevice::MODEL`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

fn nothing() -> Secret {
    Secret::new("")
}

fn is_nothing(secret: &Secret) -> bool {
    secret.expose().is_empty()
}

impl MacAddress {
    /// Reads six bytes in hexadecimal digits, with colons, hyphens, spaces or nothing between them.
    ///
    /// # Errors
    /// It has other characters, or another number of digits.
    pub fn parse(text: &str) -> Result<Self, MacAddressError> {
        let text = text.trim();
        let is_between = |it: char| matches!(it, ':' | '-' | ' ' | '.');
        let digits: Vec<char> = text.chars().filter(|it| !is_between(*it)).collect();
        if digits.len() != 12 || !digits.iter().all(char::is_ascii_hexdigit) {
            return Err(MacAddressError);
        }
        let bytes = digits.chunks(2).map(|it| it.iter().collect::<String>().to_ascii_uppercase());
        Ok(Self(Secret::new(bytes.collect::<Vec<_>>().join(":"))))
    }

    /// Returns the whole address. Never use it in a log, an error or an event.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    /// Returns the address with its device part hidden, for admins. The rest is that of the manufacturer.
    pub fn masked(&self) -> String {
        format!("{}:**:**:**", self.expose().get(..8).unwrap_or_default())
    }
}

impl PortalDevice {
    /// The model that portals expect if an admin names none.
    pub const MODEL: &str = "MAG250";
    /// Maximum length of a value, in bytes.
    pub const VALUE_BYTES_MAX: usize = 512;

    /// Creates a device of which only the MAC address is known.
    pub fn new(mac: MacAddress) -> Self {
        Self {
            mac,
            serial_number: nothing(),
            device_id: nothing(),
            device_id2: nothing(),
            signature: nothing(),
            username: String::new(),
            password: nothing(),
            model: String::new(),
        }
    }

    /// Returns the model that requests name.
    pub fn model(&self) -> &str {
        if self.model.is_empty() { Self::MODEL } else { &self.model }
    }

    /// Returns whether it has a login beside its MAC address.
    pub fn has_login(&self) -> bool {
        !self.username.is_empty()
    }

    /// Returns a text of the portal without the values of the device, which portals repeat in their messages.
    pub fn redacted(&self, text: &str) -> String {
        let mac = self.mac.expose();
        let (hyphens, bare) = (mac.replace(':', "-"), mac.replace(':', ""));
        let values = [
            mac,
            &hyphens,
            &bare,
            self.serial_number.expose(),
            self.device_id.expose(),
            self.device_id2.expose(),
            self.signature.expose(),
            self.password.expose(),
            &self.username,
        ];
        // A short value would hide parts of other words.
        let hidden = values.into_iter().filter(|it| it.len() >= 4);
        hidden.fold(text.to_owned(), |text, value| replaced(&text, value))
    }
}

/// Replaces a value in a text, whatever the case of its letters.
fn replaced(text: &str, value: &str) -> String {
    let (lower, value) = (text.to_ascii_lowercase(), value.to_ascii_lowercase());
    let (mut out, mut from) = (String::with_capacity(text.len()), 0);
    for (at, found) in lower.match_indices(&value) {
        out.push_str(&text[from..at]);
        out.push('…');
        from = at + found.len();
    }
    out.push_str(&text[from..]);
    out
}

impl fmt::Debug for MacAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MacAddress(…)")
    }
}

impl fmt::Debug for PortalDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PortalDevice").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mac_address_is_read_in_its_usual_forms_and_nothing_else_is_one() {
        for text in [
            "00:1a:79:ab:cd:ef",
            "00-1A-79-AB-CD-EF",
            "001A79ABCDEF",
            " 00 1a 79 ab cd ef ",
            "001a.79ab.cdef",
        ] {
            assert_eq!(MacAddress::parse(text).unwrap().expose(), "00:1A:79:AB:CD:EF", "{text}");
        }
        for text in ["", "00:1A:79:AB:CD", "00:1A:79:AB:CD:EF:00", "00:1A:79:AB:CD:EG", "é0:1A:79:AB:CD:E"] {
            assert_eq!(MacAddress::parse(text), Err(MacAddressError), "{text}");
        }
    }

    #[test]
    fn a_device_prints_without_its_values_and_hides_them_in_the_texts_of_its_portal() {
        let mut device = PortalDevice::new(MacAddress::parse("00:1A:79:AB:CD:EF").unwrap());
        (device.serial_number, device.password) = (Secret::new("0123456789ABC"), Secret::new("hunter2"));
        let printed = format!("{device:?} {:?}", device.mac);
        assert!(!printed.contains("AB:CD") && !printed.contains("0123"), "{printed}");
        assert_eq!(device.mac.masked(), "00:1A:79:**:**:**");
        for text in [
            "box 00:1a:79:ab:cd:ef is blocked",
            "box 001A79ABCDEF is blocked",
            "box 0123456789abc is blocked",
        ] {
            assert_eq!(device.redacted(text), "box … is blocked");
        }
    }

    #[test]
    fn a_record_keeps_what_an_admin_entered_and_reads_one_with_a_mac_address_alone() {
        let mut device = PortalDevice::new(MacAddress::parse("00:1A:79:AB:CD:EF").unwrap());
        let text = serde_json::to_string(&device).unwrap();
        assert_eq!(text, r#"{"mac":"00:1A:79:AB:CD:EF"}"#);
        assert_eq!(serde_json::from_str::<PortalDevice>(&text).unwrap(), device);
        (device.device_id, device.model) = (Secret::new("id"), "MAG322".to_owned());
        let text = serde_json::to_string(&device).unwrap();
        assert_eq!(serde_json::from_str::<PortalDevice>(&text).unwrap(), device);
        assert_eq!((device.model(), PortalDevice::new(device.mac.clone()).model()), ("MAG322", "MAG250"));
    }
}
