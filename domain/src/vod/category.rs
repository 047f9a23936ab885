//! Categories of films and series, and their links with accounts.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::title::TitleKind;
use crate::ids::{AccountId, VodCategoryId};

/// Maximum length of a category's name, in characters.
pub const CATEGORY_NAME_CHARS_MAX: usize = 255;
/// The category of titles without one.
pub const UNCATEGORISED: &str = "Uncategorized";

/// A category of films or of series. Name and kind are unique together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VodCategory {
    pub id: VodCategoryId,
    pub name: String,
    pub kind: TitleKind,
}

/// The link of an account with a category that its provider lists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccountCategory {
    pub id: u32,
    pub account: AccountId,
    pub category: VodCategoryId,
    pub kind: TitleKind,
    /// The ids under which the provider lists the category. Several if it lists the same name more than once.
    pub provider_ids: Vec<String>,
    /// Only titles of enabled categories are imported, listed and played.
    pub enabled: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub custom_properties: Map<String, Value>,
    /// When a category missing from the provider's answer was last seen there, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_seen: Option<i64>,
}
