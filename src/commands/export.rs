//! `headwater export`: writes films and series as files for media servers.

use std::process::ExitCode;

use anyhow::{Context, bail};
use config::{Config, DataFolder, NewStrmExport};

use crate::control::{self, ControlReply, ControlRequest};
use crate::terminal::say;

/// Writes STRM files, also while the gateway runs.
pub(super) fn strm(config: &Config, new: &NewStrmExport) -> anyhow::Result<ExitCode> {
    let folder = new.folder.as_deref().map(|it| {
        let absolute =
            std::path::absolute(it).with_context(|| format!("{} is not a valid path", it.display()))?;
        let text = absolute.to_str().with_context(|| format!("{} is not valid UTF-8", it.display()))?;
        anyhow::Ok(text.trim_end_matches('/').to_owned())
    });
    let request = ControlRequest::ExportStrm {
        folder: folder.transpose()?,
        username: new.user.clone(),
        // Without the option, the setting decides.
        has_nfo: new.nfo.then_some(true),
        public_url: config.public_url.clone(),
    };
    let reply = control::run(&DataFolder::new(&config.data_dir), request)?;
    let ControlReply::Exported { folder, report } = reply else {
        bail!("the running gateway answered something else; is it of another version?");
    };
    let kept = match report.kept {
        0 => String::new(),
        n => format!("; kept {n} that somebody else wrote or changed"),
    };
    say(&format!(
        "exported to {folder}: wrote {} files, removed {}, left {} unchanged{kept}",
        report.written, report.removed, report.unchanged
    ));
    Ok(ExitCode::SUCCESS)
}
