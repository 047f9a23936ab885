//! Changes of the place that the streams of an account come from: a URL, a file, a panel, or an uploaded file.

use domain::account::PlaylistLocation;
use domain::panel::{PanelAddress, PanelLogin};
use domain::portal::{PortalDevice, PortalPlace, pasted_address};
use domain::secret::Secret;
use domain::source_url::SourceUrl;
use server::field_errors::{FieldErrors, NO_FIELD};

use super::device::SentDevice;
use super::text::AccountType;
use super::view::M3UAccountEdit;
use crate::api::text::is_web_url;

/// Change of the location of the playlist.
pub(super) enum LocationChange {
    Stays,
    Is(PlaylistLocation),
    /// Removes the location if it is a URL.
    NoUrl,
    NoFile,
    None,
}

impl LocationChange {
    pub(super) fn differs_from(&self, now: &PlaylistLocation) -> bool {
        matches!(self, Self::Is(list) if list != now)
    }

    pub(super) fn apply(self, list: &mut PlaylistLocation) {
        match (self, &list) {
            (Self::Is(other), _) => *list = other,
            (Self::None, PlaylistLocation::Url(_) | PlaylistLocation::File(_))
            | (Self::NoUrl, PlaylistLocation::Url(_))
            | (Self::NoFile, PlaylistLocation::File(_)) => *list = PlaylistLocation::None,
            (Self::Stays | Self::NoUrl | Self::NoFile | Self::None, _) => {}
        }
    }
}

/// Fields of an account that determine the location, with blanks as none.
struct Sent {
    server_url: Option<Option<String>>,
    file_path: Option<Option<String>>,
    username: Option<String>,
    password: Option<Secret>,
}

/// Takes the location out of an edit of an account with this one, and the device of its default profile, if it has a portal.
pub(super) fn location_of(
    edit: &mut M3UAccountEdit,
    now: &PlaylistLocation,
    known: Option<&PortalDevice>,
    errors: &mut FieldErrors,
) -> (LocationChange, Option<PortalDevice>) {
    let account_type = edit.account_type.unwrap_or_else(|| AccountType::new(now));
    let device = SentDevice::from_account(edit);
    if account_type == AccountType::Portal {
        edit.account_type = None;
        return portal(edit, device, now, known, errors);
    }
    device.refuse(errors);
    (other_location_of(edit, now, errors), None)
}

/// Returns a portal, and the device with which its channels are listed.
fn portal(
    edit: &mut M3UAccountEdit,
    device: SentDevice,
    now: &PlaylistLocation,
    known: Option<&PortalDevice>,
    errors: &mut FieldErrors,
) -> (LocationChange, Option<PortalDevice>) {
    if edit.file_path.take().flatten().is_some_and(|it| !it.is_empty()) {
        errors.add("file_path", "An account of the type STALKER has no file.");
    }
    let device = device.with_login(edit.username.take(), edit.password.take()).applied_to(known, errors);
    let place = match edit.server_url.take() {
        Some(sent) => match sent.filter(|it| !it.is_empty()).map(|it| pasted_address(&it)) {
            Some(Ok((server, endpoint))) => {
                // What has answered at the same address is still the entry point.
                let answered = now.portal().filter(|it| it.server == server);
                let endpoint = endpoint.or_else(|| answered?.endpoint.clone());
                Some(PortalPlace { server, endpoint })
            }
            Some(Err(_)) => {
                errors.add("server_url", "Enter the URL of a portal, such as http://portal.example/c/.");
                None
            }
            None => {
                errors.add("server_url", PORTAL_REQUIRED);
                None
            }
        },
        None => {
            let known = now.portal().cloned();
            if known.is_none() {
                errors.add("server_url", PORTAL_REQUIRED);
            }
            known
        }
    };
    match place {
        Some(place) => (LocationChange::Is(PlaylistLocation::Portal(place)), device),
        None => (LocationChange::Stays, device),
    }
}

const PORTAL_REQUIRED: &str = "This field is required for accounts of the type STALKER.";

/// Takes the location of an account without a portal out of an edit.
fn other_location_of(
    edit: &mut M3UAccountEdit,
    now: &PlaylistLocation,
    errors: &mut FieldErrors,
) -> LocationChange {
    let filled = |it: Option<String>| it.filter(|it| !it.is_empty());
    let sent = Sent {
        server_url: edit.server_url.take().map(filled),
        file_path: edit.file_path.take().map(filled),
        username: edit.username.take().and_then(filled),
        password: edit.password.take().flatten().filter(|it| !it.expose().is_empty()),
    };
    let (before, account_type) = (AccountType::new(now), edit.account_type.take());
    match account_type.unwrap_or(before) {
        AccountType::Panel => panel(sent, now, errors),
        AccountType::Standard | AccountType::Portal => {
            let change = standard(sent, errors);
            // An account of a panel or a portal that becomes another one needs another location.
            match (before, change) {
                (_, LocationChange::Is(list)) => LocationChange::Is(list),
                (AccountType::Standard, change) => change,
                (AccountType::Panel | AccountType::Portal, _) => LocationChange::Is(PlaylistLocation::None),
            }
        }
    }
}

/// Returns a URL, a file or none. An empty text means none.
fn standard(sent: Sent, errors: &mut FieldErrors) -> LocationChange {
    for (field, is_sent) in [("username", sent.username.is_some()), ("password", sent.password.is_some())] {
        if is_sent {
            errors.add(field, "Only an account of the type XC has it.");
        }
    }
    match (sent.server_url, sent.file_path) {
        (Some(Some(url)), _) if !is_web_url(&url) => {
            errors.add("server_url", "Enter a valid URL.");
            LocationChange::Stays
        }
        (Some(Some(_)), Some(Some(_))) => {
            errors.add(NO_FIELD, "Give server_url or file_path, not both.");
            LocationChange::Stays
        }
        (Some(Some(url)), _) => LocationChange::Is(PlaylistLocation::Url(SourceUrl::new(url))),
        (_, Some(Some(path))) => LocationChange::Is(PlaylistLocation::File(path)),
        (Some(None), Some(None)) => LocationChange::None,
        (Some(None), None) => LocationChange::NoUrl,
        (None, Some(None)) => LocationChange::NoFile,
        (None, None) => LocationChange::Stays,
    }
}

/// Returns the login of a panel: what was sent, otherwise what the address contains, otherwise what is known.
fn panel(sent: Sent, now: &PlaylistLocation, errors: &mut FieldErrors) -> LocationChange {
    if sent.file_path.is_some_and(|it| it.is_some()) {
        errors.add("file_path", "An account of the type XC has no file.");
    }
    let known = now.panel();
    let address = match (sent.server_url, now) {
        (Some(Some(text)), _) => Some(PanelAddress::parse(&text)),
        (Some(None), _) => None,
        (None, PlaylistLocation::Panel(login)) => {
            Some(Ok(PanelAddress { server: login.server.clone(), login: None }))
        }
        (None, PlaylistLocation::Url(url)) => Some(PanelAddress::parse(url.expose())),
        (None, _) => None,
    };
    let address = match address {
        Some(Ok(address)) => Some(address),
        Some(Err(_)) => {
            errors.add("server_url", "Enter the URL of a panel, such as http://panel.example:8080.");
            None
        }
        None => {
            errors.add("server_url", REQUIRED);
            None
        }
    };
    let pasted = address.as_ref().and_then(|it| it.login.clone());
    let (pasted_user, pasted_password) = pasted.unzip();
    let username = sent.username.or(pasted_user).or_else(|| known.map(|it| it.username.clone()));
    let password = sent.password.or(pasted_password).or_else(|| known.map(|it| it.password.clone()));
    for (field, is_missing) in [("username", username.is_none()), ("password", password.is_none())] {
        if is_missing {
            errors.add(field, REQUIRED);
        }
    }
    match (address, username, password) {
        (Some(address), Some(username), Some(password)) => {
            LocationChange::Is(PlaylistLocation::Panel(PanelLogin {
                server: address.server,
                username,
                password,
            }))
        }
        _ => LocationChange::Stays,
    }
}

const REQUIRED: &str = "This field is required for accounts of the type XC.";
