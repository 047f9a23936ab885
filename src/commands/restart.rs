//! `headwater restart`: replaces the running gateway by a new process.

use std::process::ExitCode;

use anyhow::ensure;
use config::{Config, DataFolder};

use crate::control::{self, ControlRequest};
use crate::terminal::say;

/// Asks the running gateway, and waits until its new process has read its configuration.
pub(super) fn run(config: &Config) -> anyhow::Result<ExitCode> {
    let folder = DataFolder::new(&config.data_dir);
    ensure!(
        control::is_running(&folder),
        "no gateway runs on {}; start it with `headwater serve`",
        folder.root().display()
    );
    control::run(&folder, ControlRequest::Restart)?;
    say("the new process is prepared and takes over\n");
    Ok(ExitCode::SUCCESS)
}
