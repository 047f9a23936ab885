//! The device of a profile of an account at a portal, as admins enter it. Its values are never returned.

use domain::account::Account;
use domain::portal::{MacAddress, PortalDevice};
use domain::secret::Secret;
use server::field_errors::FieldErrors;
use server::reply::Refusal;

use super::view::{M3UAccountEdit, M3UAccountProfileEdit};

/// Returns the device of the default profile of an account.
pub(super) fn device_of(account: &Account) -> Option<&PortalDevice> {
    account.default_profile()?.device.as_deref()
}

/// Refuses two profiles of an account with the same device: each handshake of one would end the session of the other.
///
/// # Errors
/// An account has such profiles.
pub(super) fn check_devices(account: &Account) -> Result<(), Refusal> {
    let macs: Vec<_> = account.profiles.iter().filter_map(|it| Some(&it.device.as_ref()?.mac)).collect();
    let is_repeated = |(at, mac): (usize, &&MacAddress)| macs[..at].contains(mac);
    if macs.iter().enumerate().any(is_repeated) {
        return Err(Refusal::field("mac_address", "Another profile of the account has this MAC address."));
    }
    Ok(())
}

/// The fields of a device that were sent. An outer `None` keeps a value, an inner one removes it.
#[derive(Default)]
pub(super) struct SentDevice {
    mac_address: Option<Option<String>>,
    serial_number: Option<Option<Secret>>,
    device_id: Option<Option<Secret>>,
    device_id2: Option<Option<Secret>>,
    signature: Option<Option<Secret>>,
    device_model: Option<Option<String>>,
    username: Option<Option<String>>,
    password: Option<Option<Secret>>,
}

/// Takes the fields of a device, except for the login, out of an edit of an account or a profile: both have them under the
/// same names.
macro_rules! sent_device {
    ($edit:expr) => {
        SentDevice {
            mac_address: $edit.mac_address.take(),
            serial_number: $edit.serial_number.take(),
            device_id: $edit.device_id.take(),
            device_id2: $edit.device_id2.take(),
            signature: $edit.signature.take(),
            device_model: $edit.device_model.take(),
            ..SentDevice::default()
        }
    };
}

impl SentDevice {
    /// Takes the fields of a device, except for the login, out of an edit of an account.
    pub(super) fn from_account(edit: &mut M3UAccountEdit) -> Self {
        sent_device!(edit)
    }

    /// Takes the fields of a device out of an edit of a profile.
    pub(super) fn from_profile(edit: &mut M3UAccountProfileEdit) -> Self {
        sent_device!(edit).with_login(edit.username.take(), edit.password.take())
    }

    /// Adds the login, which accounts of several types have.
    pub(super) fn with_login(
        self,
        username: Option<Option<String>>,
        password: Option<Option<Secret>>,
    ) -> Self {
        Self { username, password, ..self }
    }

    /// Refuses values of a device for an account of another type.
    pub(super) fn refuse(self, errors: &mut FieldErrors) {
        let is_text = |it: Option<Option<String>>| it.flatten().is_some_and(|it| !it.is_empty());
        let is_secret = |it: Option<Option<Secret>>| it.flatten().is_some_and(|it| !it.expose().is_empty());
        for (field, is_sent) in [
            ("mac_address", is_text(self.mac_address)),
            ("serial_number", is_secret(self.serial_number)),
            ("device_id", is_secret(self.device_id)),
            ("device_id2", is_secret(self.device_id2)),
            ("signature", is_secret(self.signature)),
            ("device_model", is_text(self.device_model)),
            ("username", is_text(self.username)),
            ("password", is_secret(self.password)),
        ] {
            if is_sent {
                errors.add(field, "Only an account of the type STALKER has it.");
            }
        }
    }

    /// Returns the device with these values in place of the known ones. `None` after an error.
    pub(super) fn applied_to(
        self,
        known: Option<&PortalDevice>,
        errors: &mut FieldErrors,
    ) -> Option<PortalDevice> {
        let mac = self.mac_address.flatten().filter(|it| !it.trim().is_empty());
        let mac = match (mac, known) {
            // Clients send back what they were shown.
            (Some(text), Some(known)) if text == known.mac.masked() => Some(known.mac.clone()),
            (Some(text), _) => MacAddress::parse(&text)
                .map_err(|_| errors.add("mac_address", "Enter a MAC address, such as 00:1A:79:12:34:56."))
                .ok(),
            (None, Some(known)) => Some(known.mac.clone()),
            (None, None) => {
                errors.add("mac_address", "This field is required for accounts of the type STALKER.");
                None
            }
        };
        let mut device = known.cloned().or_else(|| Some(PortalDevice::new(mac.clone()?)))?;
        device.mac = mac?;
        for (value, sent) in [
            (&mut device.serial_number, self.serial_number),
            (&mut device.device_id, self.device_id),
            (&mut device.device_id2, self.device_id2),
            (&mut device.signature, self.signature),
            (&mut device.password, self.password),
        ] {
            match sent {
                None => {}
                Some(None) => *value = Secret::new(""),
                // An empty text keeps a secret, because forms cannot show it.
                Some(Some(sent)) if sent.expose().is_empty() => {}
                Some(Some(sent)) => *value = sent,
            }
        }
        for (value, sent) in [(&mut device.model, self.device_model), (&mut device.username, self.username)] {
            if let Some(sent) = sent {
                *value = sent.unwrap_or_default();
            }
        }
        if device.username.is_empty() {
            device.password = Secret::new("");
        }
        Some(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(mac: &str) -> SentDevice {
        SentDevice { mac_address: Some(Some(mac.to_owned())), ..SentDevice::default() }
    }

    fn applied(sent: SentDevice, known: Option<&PortalDevice>) -> Option<PortalDevice> {
        let mut errors = FieldErrors::default();
        sent.applied_to(known, &mut errors)
    }

    #[test]
    fn a_device_keeps_what_is_not_sent_and_what_is_sent_back_as_it_is_shown() {
        let mut known = applied(sent("00-1a-79-ab-cd-ef"), None).unwrap();
        known.serial_number = Secret::new("S1");
        (known.username, known.password) = ("anna".to_owned(), Secret::new("hunter2"));
        for change in [SentDevice::default(), sent(&known.mac.masked()), sent(""), sent("001A79ABCDEF")] {
            assert_eq!(applied(change, Some(&known)), Some(known.clone()));
        }
        let empty = SentDevice { serial_number: Some(Some(Secret::new(""))), ..SentDevice::default() };
        assert_eq!(applied(empty, Some(&known)), Some(known.clone()));
        let removed = SentDevice { serial_number: Some(None), username: Some(None), ..SentDevice::default() };
        let removed = applied(removed, Some(&known)).unwrap();
        assert!(removed.serial_number.expose().is_empty() && removed.password.expose().is_empty());
        let other = applied(sent("00:1A:79:00:00:01"), Some(&known)).unwrap();
        assert_eq!((other.mac.expose(), other.serial_number.expose()), ("00:1A:79:00:00:01", "S1"));
    }

    #[test]
    fn a_mac_address_is_required_and_checked() {
        assert_eq!(applied(SentDevice::default(), None), None);
        assert_eq!(applied(sent("00:1A:79"), None), None);
        assert_eq!(applied(sent("00:1A:79:**:**:**"), None), None);
    }
}
