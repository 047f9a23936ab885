//! Checks of the machine: data folder, room, ports, ffmpeg.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::MetadataExt;
use std::process::{Command, Stdio};

use config::{Config, DataFolder};
use rustix::process::geteuid;
use services::disk_space::{DISK_BYTES_LOW, DiskSpace};

use super::{CheckReport, Finding};
use crate::control;

/// Name of the file that is created, and removed again, to test the data folder.
const TEST_FILE: &str = ".doctor";

pub(super) fn check(config: &Config, folder: &DataFolder, report: &mut CheckReport) {
    let is_running = control::is_running(folder);
    report.add(folder_finding(folder));
    report.add(key_finding(folder));
    report.add(room_finding(folder));
    for (setting, address) in [("player_listen", config.player_listen), ("api_listen", config.api_listen)] {
        report.add(port_finding(setting, address.address(), is_running));
    }
    report.add(ffmpeg_finding());
}

/// Checks that the data folder can be written.
fn folder_finding(folder: &DataFolder) -> Finding {
    let subject = format!("data folder {}", folder.root().display());
    let subject = subject.as_str();
    let metadata = match fs::metadata(folder.root()) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Finding::warning(
                subject,
                "it does not exist yet",
                "`headwater serve` creates it; choose another folder with --data-dir.",
            );
        }
        Err(error) => {
            return Finding::problem(subject, error.to_string(), "Choose another folder with --data-dir.");
        }
    };
    if !metadata.is_dir() {
        return Finding::problem(subject, "it is not a folder", "Choose another one with --data-dir.");
    }
    let own = geteuid().as_raw();
    if metadata.uid() != own && own != 0 {
        let message = format!("it belongs to user {}, and this is user {own}", metadata.uid());
        return Finding::problem(subject, message, "Run this as the user of the gateway, or as root.");
    }
    let path = folder.root().join(TEST_FILE);
    let written = File::create(&path).and_then(|it| it.sync_all());
    // It may not exist if it could not be created.
    let _ = fs::remove_file(&path);
    match written {
        Ok(()) => Finding::good(subject, "can be written"),
        Err(error) => Finding::problem(
            subject,
            format!("it cannot be written: {error}"),
            "Free some room, or give the user of the gateway the right to write.",
        ),
    }
}

/// Checks that the key file is there and only its owner can read it.
fn key_finding(folder: &DataFolder) -> Finding {
    const SUBJECT: &str = "key file";
    let has_store = folder.store().exists();
    match fs::metadata(folder.key()) {
        Ok(metadata) if metadata.mode() & 0o077 != 0 => Finding::warning(
            SUBJECT,
            "other users of this machine can read it",
            &format!("Run: chmod 600 {}", folder.key().display()),
        ),
        Ok(_) => Finding::good(SUBJECT, "only its owner can read it"),
        Err(error) if error.kind() == ErrorKind::NotFound && !has_store => {
            Finding::good(SUBJECT, "is created with the store")
        }
        Err(error) => Finding::problem(
            SUBJECT,
            format!("it cannot be read: {error}"),
            "Without it, the passwords in the store are lost; copy it back from a back-up of the data folder.",
        ),
    }
}

/// Checks the room on the file system of the data folder, or of the nearest folder above it that exists.
fn room_finding(folder: &DataFolder) -> Finding {
    const SUBJECT: &str = "room";
    let Some(space) = folder.root().ancestors().find_map(DiskSpace::read) else {
        return Finding::warning(SUBJECT, "the system does not say how much is left", "");
    };
    let (available, total) = (space.available >> 20, space.total >> 20);
    let message = format!("{available} MiB of {total} MiB are available");
    if space.available < DISK_BYTES_LOW {
        return Finding::warning(SUBJECT, message, "Free some room: a full disk refuses every change.");
    }
    Finding::good(SUBJECT, message)
}

/// Checks that a port is free, or used by the gateway of this data folder.
fn port_finding(setting: &str, address: SocketAddr, is_running: bool) -> Finding {
    let subject = format!("port {address}");
    if address.port() == 0 {
        return Finding::good(&subject, "a free one is chosen");
    }
    match (TcpListener::bind(address), is_running) {
        (Ok(_), false) => Finding::good(&subject, "is free"),
        (Ok(_), true) => Finding::warning(
            &subject,
            "is free, although the gateway runs",
            &format!(
                "The gateway was started with another {setting}; give the same options to this command."
            ),
        ),
        (Err(error), true) if error.kind() == ErrorKind::AddrInUse => {
            Finding::good(&subject, "is in use, and the gateway runs")
        }
        (Err(error), _) => Finding::problem(
            &subject,
            bind_error(&error),
            &format!(
                "Stop the program that uses it (see `ss -ltnp`), or choose another one with --{}.",
                setting.replace('_', "-")
            ),
        ),
    }
}

fn bind_error(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "another program uses it".to_owned(),
        ErrorKind::PermissionDenied => "this user may not use it; ports below 1024 belong to root".to_owned(),
        ErrorKind::AddrNotAvailable => "this machine does not have that address".to_owned(),
        _ => error.to_string(),
    }
}

/// Checks that ffmpeg runs, and returns its version.
fn ffmpeg_finding() -> Finding {
    const SUBJECT: &str = "ffmpeg";
    const USED_FOR: &str =
        "Install ffmpeg: DASH, RTSP and RTMP sources, fMP4 in HLS, and conversions need it.";
    let Some(path) = media::find_program("ffmpeg") else {
        return Finding::warning(SUBJECT, "was not found in PATH", USED_FOR);
    };
    let output = Command::new(&path).arg("-version").stdin(Stdio::null()).output();
    let version = match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).into_owned(),
        Ok(output) => {
            return Finding::warning(
                SUBJECT,
                format!("{} ends with {}", path.display(), output.status),
                USED_FOR,
            );
        }
        Err(error) => return Finding::warning(SUBJECT, format!("{}: {error}", path.display()), USED_FOR),
    };
    // `ffmpeg version 7.1.1-1 Copyright …`
    let version = version.split_whitespace().nth(2).unwrap_or("of unknown version").to_owned();
    Finding::good(SUBJECT, format!("{} {version}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::commands::doctor::Verdict;

    #[test]
    fn a_folder_that_can_be_written_is_good_and_stays_as_it_is() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(root.path());
        assert_eq!(folder_finding(&folder).verdict, Verdict::Good);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
        let missing = DataFolder::new(&root.path().join("missing"));
        assert_eq!(folder_finding(&missing).verdict, Verdict::Warning);
        assert!(!missing.root().exists());
        assert_eq!(room_finding(&missing).subject, "room");
        let file = root.path().join("file");
        File::create(&file).unwrap();
        assert_eq!(folder_finding(&DataFolder::new(&file)).verdict, Verdict::Problem);
    }

    #[test]
    fn a_key_file_that_others_can_read_or_that_is_missing_is_reported() {
        let root = tempfile::tempdir().unwrap();
        let folder = DataFolder::new(root.path());
        assert_eq!(key_finding(&folder).verdict, Verdict::Good);
        fs::create_dir(folder.store()).unwrap();
        assert_eq!(key_finding(&folder).verdict, Verdict::Problem);
        fs::write(folder.key(), "key").unwrap();
        fs::set_permissions(folder.key(), fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(key_finding(&folder).verdict, Verdict::Warning);
        fs::set_permissions(folder.key(), fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(key_finding(&folder).verdict, Verdict::Good);
    }

    #[test]
    fn a_port_of_another_program_is_a_problem_and_one_of_the_gateway_is_not() {
        let used = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = used.local_addr().unwrap();
        let finding = port_finding("api_listen", address, false);
        assert_eq!(
            (finding.verdict, finding.message.as_str()),
            (Verdict::Problem, "another program uses it")
        );
        assert!(finding.advice.contains("--api-listen"), "{}", finding.advice);
        assert_eq!(port_finding("api_listen", address, true).verdict, Verdict::Good);
    }

    #[test]
    fn the_version_of_ffmpeg_is_named() {
        let finding = ffmpeg_finding();
        assert_eq!(finding.verdict, Verdict::Good, "{finding}");
        assert!(finding.message.contains("ffmpeg "), "{}", finding.message);
    }
}
