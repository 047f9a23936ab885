//! `headwater check` and `headwater store salvage`, for a store that no gateway is using.

use std::path::Path;
use std::process::ExitCode;

use config::{Config, DataFolder};
use storage::records::schema;

use crate::terminal::say;

/// Checks the store without changing it, and prints a report.
pub(super) fn check(config: &Config) -> anyhow::Result<ExitCode> {
    let folder = DataFolder::new(&config.data_dir);
    let report = storage::check(&folder.store(), &folder.key(), &schema())?;
    say(&report.to_string());
    Ok(if report.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Copies all readable records of the store into a new store.
pub(super) fn salvage(config: &Config, into: &Path) -> anyhow::Result<ExitCode> {
    let folder = DataFolder::new(&config.data_dir);
    let salvaged = storage::salvage(&folder.store(), into, &folder.key(), &schema())?;
    let mut text = salvaged.to_string();
    if salvaged.is_saved {
        let (old, new) = (folder.store(), into);
        text += &format!(
            "to use it, move {} away, then move {} into its place; leave the key file where it is\n",
            old.display(),
            new.display()
        );
    }
    say(&text);
    Ok(if salvaged.is_saved { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
