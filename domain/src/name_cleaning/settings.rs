//! The core setting that chooses which names are cleaned.

use serde_json::{Map, Value, json};

use super::NameKind;
use crate::ids::AccountId;
use crate::pattern::{PATTERN_BYTES_MAX, Pattern};

/// Maximum number of own patterns.
pub const PATTERNS_MAX: usize = 50;
/// Maximum number of accounts in a list.
const ACCOUNTS_MAX: usize = 1_000;
/// Separates a pattern from its replacement.
const ARROW: &str = "=>";

/// The names that are cleaned; none by default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameCleaning {
    /// Whether the bundled rules apply to films, series and channels of every account.
    pub movies: bool,
    pub series: bool,
    pub channels: bool,
    /// Accounts to all of whose names the bundled rules apply.
    pub clean_accounts: Vec<AccountId>,
    /// Accounts whose names stay as they are.
    pub keep_accounts: Vec<AccountId>,
    /// Own patterns, as [`read_pattern`] reads them.
    pub patterns: Vec<String>,
}

impl NameCleaning {
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
    pub fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let flag = || value.as_bool().ok_or("must be true or false");
        match name {
            "clean_movies" => self.movies = flag()?,
            "clean_series" => self.series = flag()?,
            "clean_channels" => self.channels = flag()?,
            "clean_accounts" => self.clean_accounts = accounts(value)?,
            "keep_accounts" => self.keep_accounts = accounts(value)?,
            "patterns" => self.patterns = patterns(value)?,
            _ => return Err("is not a setting".to_owned()),
        }
        Ok(())
    }

    /// Returns the value of the setting.
    pub fn to_setting(&self) -> Map<String, Value> {
        let ids = |of: &[AccountId]| of.iter().map(|it| it.0).collect::<Vec<_>>();
        let value = json!({
            "clean_movies": self.movies,
            "clean_series": self.series,
            "clean_channels": self.channels,
            "clean_accounts": ids(&self.clean_accounts),
            "keep_accounts": ids(&self.keep_accounts),
            "patterns": self.patterns,
        });
        value.as_object().cloned().unwrap_or_default()
    }

    /// Returns whether the bundled rules apply to a name.
    pub(super) fn has_bundled_rules(&self, kind: NameKind, account: AccountId) -> bool {
        let of_kind = match kind {
            NameKind::Movie => self.movies,
            NameKind::Series => self.series,
            NameKind::Channel => self.channels,
        };
        of_kind || self.clean_accounts.contains(&account)
    }
}

/// Reads ids of accounts: numbers, or texts of digits, as the form of the settings sends them.
fn accounts(value: &Value) -> Result<Vec<AccountId>, String> {
    let id = |it: &Value| {
        let number = it.as_u64().or_else(|| it.as_str()?.trim().parse().ok());
        number.and_then(|it| u32::try_from(it).ok()).filter(|it| *it > 0).map(AccountId)
    };
    let ids = value.as_array().filter(|it| it.len() <= ACCOUNTS_MAX);
    let ids = ids.and_then(|it| it.iter().map(id).collect());
    ids.ok_or_else(|| format!("must be a list of up to {ACCOUNTS_MAX} ids of accounts"))
}

fn patterns(value: &Value) -> Result<Vec<String>, String> {
    let texts = value.as_array().filter(|it| it.len() <= PATTERNS_MAX);
    let texts: Option<Vec<&str>> = texts.and_then(|it| it.iter().map(Value::as_str).collect());
    let texts = texts.ok_or_else(|| format!("must be a list of up to {PATTERNS_MAX} texts"))?;
    let errors: Vec<String> = (1..)
        .zip(&texts)
        .filter_map(|(n, it)| Some(format!("pattern {n}: {}", read_pattern(it).err()?)))
        .collect();
    match errors.is_empty() {
        true => Ok(texts.into_iter().map(str::to_owned).collect()),
        false => Err(format!("has invalid entries: {}", errors.join("; "))),
    }
}

/// Reads `PATTERN => REPLACEMENT`, or `KIND: PATTERN => REPLACEMENT` for names of one kind. The replacement may be empty.
///
/// # Errors
/// The reason why the pattern is invalid, without its text.
pub(super) fn read_pattern(text: &str) -> Result<(Option<NameKind>, Pattern), String> {
    if text.len() > 2 * PATTERN_BYTES_MAX {
        return Err(format!("it is too long: at most {} bytes are allowed", 2 * PATTERN_BYTES_MAX));
    }
    let of_kind = NameKind::ALL.into_iter().find_map(|kind| {
        let rest = text.trim_start().strip_prefix(kind.name())?.strip_prefix(": ")?;
        Some((Some(kind), rest))
    });
    let (kind, rest) = of_kind.unwrap_or((None, text));
    let (find, replace) = rest.rsplit_once(ARROW).ok_or("write it as PATTERN => REPLACEMENT")?;
    // One space on each side belongs to the arrow; further ones to the pattern and the replacement.
    let (find, replace) =
        (find.strip_suffix(' ').unwrap_or(find), replace.strip_prefix(' ').unwrap_or(replace));
    let pattern = Pattern::new(find, replace).map_err(|it| it.to_string())?;
    Ok((kind, pattern))
}
