//! `headwater backup` and `headwater restore`.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail, ensure};
use config::{Config, DataFolder, NewBackup, RestoreArgs};
use domain::secret::Secret;
use domain::time::iso_millis;
use services::backups::PendingRestore;
use services::open_store::{DataError, create_root, open_store};
use storage::backup::{Archive, BackupSecret, KeyKind};

use super::nodes::must_not_run;
use crate::control::{self, ControlReply, ControlRequest};
use crate::terminal::say;

/// Maximum length of a passphrase, in bytes.
const PASSPHRASE_BYTES_MAX: u64 = 1024;

/// Writes a back-up to a new file, also while the gateway runs.
pub(super) fn back_up(config: &Config, new: &NewBackup) -> anyhow::Result<ExitCode> {
    let passphrase = passphrase(new.passphrase_stdin)?;
    let has_passphrase = passphrase.is_some();
    let file = absolute(&new.file)?;
    let request = ControlRequest::BackUp { file: file.clone(), passphrase };
    let reply = control::run(&DataFolder::new(&config.data_dir), request)?;
    let ControlReply::BackedUp { records, bytes } = reply else {
        bail!("the running gateway answered something else; is it of another version?");
    };
    let restores_with = match has_passphrase {
        true => "it restores with its passphrase".to_owned(),
        false => {
            let key = DataFolder::new(&config.data_dir).key();
            format!(
                "it restores only with the key file {}: keep a copy of that file elsewhere",
                key.display()
            )
        }
    };
    say(&format!("wrote {records} records to {} ({bytes} bytes); {restores_with}", file.display()));
    Ok(ExitCode::SUCCESS)
}

/// Replaces the store by a back-up. While the gateway runs, the back-up is used from its next start.
pub(super) fn restore(config: &Config, args: &RestoreArgs) -> anyhow::Result<ExitCode> {
    let folder = DataFolder::new(&config.data_dir);
    let is_node = folder.node().exists();
    if is_node {
        must_not_run(&folder)?;
        ensure!(
            folder.store().exists(),
            "this node has no store; start it once, so that it gets that of the cluster, and stop it again"
        );
    }
    let archive = Archive::open(&args.file)?;
    let manifest = archive.manifest().clone();
    let secret = match (passphrase(args.passphrase_stdin)?, &args.key_file) {
        (Some(passphrase), _) => BackupSecret::Passphrase(passphrase),
        (None, Some(key_file)) => BackupSecret::from_key_file(key_file)?,
        (None, None) if manifest.key_kind() == KeyKind::Passphrase => {
            bail!("the back-up is encrypted under a passphrase; send it to --passphrase-stdin")
        }
        (None, None) => BackupSecret::from_key_file(&folder.key()).context(
            "the back-up restores only with the key file of its installation; name it with --key-file",
        )?,
    };
    let archive = archive.unlock(&secret)?;
    create_root(&folder)?;
    let pending = PendingRestore::new(&folder);
    let name = args.file.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    match is_node {
        true => pending.prepare_for_node(&archive, &folder.key(), &name)?,
        false => pending.prepare(&archive, &folder.key(), &name)?,
    }
    let made_at = iso_millis(manifest.created_at);
    match open_store(&folder) {
        Ok(store) => {
            store.close();
            say(&format!("restored the back-up of {made_at} to {}", folder.root().display()));
            if is_node {
                say("Run `headwater cluster reseed` now: it makes this the configuration of all nodes.");
            }
            Ok(ExitCode::SUCCESS)
        }
        Err(DataError::Store(storage::Error::AlreadyRunning(_))) => {
            say(&format!("the back-up of {made_at} is ready; restart the running gateway to use it"));
            Ok(ExitCode::SUCCESS)
        }
        Err(error) => Err(error.into()),
    }
}

/// Returns the path for the gateway, whose working folder may be another one.
fn absolute(path: &Path) -> anyhow::Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("{} is not a valid path", path.display()))
}

/// Reads a passphrase from standard input, without its line break.
fn passphrase(is_sent: bool) -> anyhow::Result<Option<Secret>> {
    if !is_sent {
        return Ok(None);
    }
    let mut text = String::new();
    std::io::stdin()
        .take(PASSPHRASE_BYTES_MAX + 1)
        .read_to_string(&mut text)
        .context("failed to read the passphrase")?;
    let text = text.lines().next().unwrap_or_default();
    ensure!(!text.is_empty(), "the passphrase is empty");
    ensure!(
        text.len() as u64 <= PASSPHRASE_BYTES_MAX,
        "the passphrase is longer than {PASSPHRASE_BYTES_MAX} bytes"
    );
    Ok(Some(Secret::new(text)))
}
