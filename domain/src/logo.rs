//! A logo of channels: an address in the network, or a file that was uploaded.

use serde::{Deserialize, Serialize};

use crate::ids::{AccountId, GuideSourceId, LogoId};

/// Maximum length of a logo's name, in characters.
pub const LOGO_NAME_CHARS_MAX: usize = 255;
/// Maximum length of a logo's address, in characters.
pub const LOGO_URL_CHARS_MAX: usize = 4096;

/// Returns the path under which the gateway serves a logo. It is the address of an uploaded one.
pub fn logo_copy_path(id: LogoId) -> String {
    format!("/api/channels/logos/{id}/cache/")
}

/// A logo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Logo {
    pub id: LogoId,
    pub name: String,
    /// Its address, unique. That of an uploaded file is the path under which the gateway serves it.
    pub url: String,
    /// Name of the uploaded file, if it is one.
    #[serde(default)]
    pub file: Option<String>,
    /// The account whose playlist named the address; `None` if an admin typed it.
    #[serde(default)]
    pub named_by: Option<AccountId>,
    /// The guide source that named the address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guide_source: Option<GuideSourceId>,
    /// Milliseconds since 1970.
    #[serde(default)]
    pub updated_at: i64,
}
