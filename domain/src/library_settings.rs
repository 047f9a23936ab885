//! How films and series are shown to players and exported, which is stored in the core settings.

use serde_json::{Map, Value, json};

use crate::ids::UserId;

/// Maximum length of the path of the folder of an export, in bytes.
pub const EXPORT_FOLDER_BYTES_MAX: usize = 1024;

/// Settings of films and series at the surfaces.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LibrarySettings {
    pub panel_rows: PanelRows,
    pub export: ExportSettings,
}

/// The rows of lists of films for player apps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum PanelRows {
    /// One for each film.
    #[default]
    Titles,
    /// One for each version of a film, so that apps can choose.
    Versions,
}

impl PanelRows {
    const NAMES: [(&str, Self); 2] = [("titles", Self::Titles), ("versions", Self::Versions)];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|it| it.1 == self).map_or("", |it| it.0)
    }
}

/// The scheduled export of films and series as STRM files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportSettings {
    pub is_enabled: bool,
    /// Absolute path; empty is none.
    pub folder: String,
    /// The user who may see the exported titles, and with whose player secret they play.
    pub user: Option<UserId>,
    /// Whether NFO files with the facts of titles are written too.
    pub has_nfo: bool,
    /// Minute, hour, day of month, month, day of week, in the time zone of the core settings.
    pub cron_expression: String,
}

impl Default for ExportSettings {
    fn default() -> Self {
        Self {
            is_enabled: false,
            folder: String::new(),
            user: None,
            has_nfo: false,
            cron_expression: "30 4 * * *".to_owned(),
        }
    }
}

/// Member with the cron expression, whose validity is checked elsewhere.
pub const EXPORT_CRON_MEMBER: &str = "strm_cron_expression";

impl LibrarySettings {
    /// Reads the value of the setting. Missing and invalid members have their defaults.
    pub fn from_setting(value: Option<&Value>) -> Self {
        let mut settings = Self::default();
        for (name, value) in value.and_then(Value::as_object).into_iter().flatten() {
            // A member that was valid once may be invalid in this version.
            let _ = settings.set(name, value);
        }
        settings
    }

    /// Changes one member of the setting.
    ///
    /// # Errors
    /// The reason why the member is invalid, worded to follow its name.
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), &'static str> {
        const FLAG: &str = "must be true or false";
        match name {
            "panel_rows" => {
                let rows = value.as_str().and_then(|name| PanelRows::NAMES.iter().find(|it| it.0 == name));
                self.panel_rows = rows.ok_or("must be titles or versions")?.1;
            }
            "strm_enabled" => self.export.is_enabled = value.as_bool().ok_or(FLAG)?,
            "strm_folder" => {
                let folder = value.as_str().filter(|it| it.is_empty() || is_export_folder(it));
                folder
                    .ok_or("must be an absolute path of a folder, without ..")?
                    .clone_into(&mut self.export.folder);
            }
            "strm_user" if value.is_null() => self.export.user = None,
            "strm_user" => {
                let id = value.as_u64().and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0);
                self.export.user = Some(UserId(id.ok_or("must be the id of a user")?));
            }
            "strm_nfo" => self.export.has_nfo = value.as_bool().ok_or(FLAG)?,
            EXPORT_CRON_MEMBER => {
                let expression = value.as_str().map(str::trim).filter(|it| !it.is_empty());
                expression.ok_or("must be a cron expression")?.clone_into(&mut self.export.cron_expression);
            }
            _ => return Err("is not a setting"),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let export = &self.export;
        let value = json!({
            "panel_rows": self.panel_rows.name(),
            "strm_enabled": export.is_enabled,
            "strm_folder": export.folder,
            "strm_user": export.user.map(|it| it.0),
            "strm_nfo": export.has_nfo,
            EXPORT_CRON_MEMBER: export.cron_expression,
        });
        value.as_object().cloned().unwrap_or_default()
    }
}

/// Returns whether an export may use a folder: an absolute path other than the root, whose components are names.
pub fn is_export_folder(path: &str) -> bool {
    let Some(components) = path.strip_prefix('/') else { return false };
    let components = components.strip_suffix('/').unwrap_or(components);
    path.len() <= EXPORT_FOLDER_BYTES_MAX
        && components.split('/').all(|it| !matches!(it, "" | "." | "..") && !it.contains(char::is_control))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_read_from_their_value_and_an_invalid_member_has_its_default() {
        let value = json!({
            "panel_rows": "versions", "strm_enabled": true, "strm_folder": "/srv/strm", "strm_user": 3,
            "strm_nfo": true, "strm_cron_expression": " 0 5 * * * ", "old": 1,
        });
        let settings = LibrarySettings::from_setting(Some(&value));
        assert_eq!((settings.panel_rows, settings.export.user), (PanelRows::Versions, Some(UserId(3))));
        assert_eq!(settings.export.cron_expression, "0 5 * * *");
        assert_eq!(LibrarySettings::from_setting(Some(&Value::from(settings.to_setting()))), settings);
        for (name, value) in [
            ("panel_rows", json!("all")),
            ("strm_enabled", json!("yes")),
            ("strm_folder", json!("srv/strm")),
            ("strm_folder", json!("/")),
            ("strm_folder", json!("/srv/../etc")),
            ("strm_folder", json!("/srv//strm")),
            ("strm_folder", json!("/srv/a\nb")),
            ("strm_user", json!(0)),
            ("strm_user", json!("1")),
            ("strm_nfo", json!(1)),
            ("strm_cron_expression", json!(" ")),
            ("other", json!(1)),
        ] {
            assert!(LibrarySettings::default().set(name, &value).is_err(), "{name} {value}");
        }
        assert!(is_export_folder("/srv/strm/") && is_export_folder("/a"));
        assert_eq!(LibrarySettings::from_setting(None), LibrarySettings::default());
    }
}
