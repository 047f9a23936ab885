//! Scripts: which ones may run, and what they get.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use domain::integration::{Script, WrongIntegrationField};
use rustix::fs::{Access, access};
use serde_json::{Map, Value};

/// Maximum size of the value of a variable, in bytes. The kernel takes 128 KiB for each.
const VARIABLE_BYTES_MAX: usize = 32 * 1024;
/// Prefixes of the variables.
const PREFIXES: [&str; 2] = ["SERVICE_", "DISPATCHARR_"];
/// Permissions of group and others to write.
const WRITABLE_BY_OTHERS: u32 = 0o022;
/// Where scripts find programs.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// A script that may run, without links.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CheckedScript {
    pub(super) path: PathBuf,
    /// The folder in which it runs.
    pub(super) folder: PathBuf,
}

/// Checks that a script may run. Blocks.
///
/// # Errors
/// The field and a sentence about it.
pub(super) fn check(script: &Script, dirs: &[PathBuf]) -> Result<CheckedScript, WrongIntegrationField> {
    let wrong = |field, reason: &str| Err(WrongIntegrationField { field, reason: reason.to_owned() });
    if dirs.is_empty() {
        return wrong(
            "path",
            "Scripts are off: the operator has set no folder of scripts (integrations.script_dirs).",
        );
    }
    if !script.path.starts_with('/') {
        return wrong("path", "Enter an absolute path.");
    }
    let real_dirs: Vec<PathBuf> = dirs.iter().filter_map(|it| fs::canonicalize(it).ok()).collect();
    let is_allowed = |it: &Path| real_dirs.iter().any(|dir| it.starts_with(dir));
    // Whether a file exists elsewhere is not told.
    let Some(path) = fs::canonicalize(&script.path).ok().filter(|it| is_allowed(it)) else {
        return wrong("path", "There is no such script below the folders of scripts.");
    };
    let Ok(file) = path.metadata() else { return wrong("path", "The script cannot be read.") };
    if !file.is_file() {
        return wrong("path", "This is not a file.");
    }
    if file.permissions().mode() & WRITABLE_BY_OTHERS != 0 {
        return wrong("path", "The script can be written by its group or by others (chmod go-w).");
    }
    if access(&path, Access::EXEC_OK).is_err() {
        return wrong("path", "The script cannot be executed (chmod +x).");
    }
    let folder = match &script.working_directory {
        Some(folder) => PathBuf::from(folder),
        None => path.parent().unwrap_or(Path::new("/")).to_owned(),
    };
    if !folder.is_absolute() || !folder.is_dir() {
        return wrong("working_directory", "There is no such folder.");
    }
    Ok(CheckedScript { path, folder })
}

/// Returns the whole environment of a script: where programs are, and the values of the payload.
pub(super) fn environment(payload: &Map<String, Value>) -> Vec<(String, String)> {
    let mut environment =
        vec![("PATH".to_owned(), PATH.to_owned()), ("LANG".to_owned(), "C.UTF-8".to_owned())];
    for (key, value) in payload {
        let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
        if key.is_empty() || !key.chars().all(is_name) {
            continue;
        }
        let text = match value {
            Value::Null => String::new(),
            Value::String(text) => text.replace('\0', ""),
            other => other.to_string(),
        };
        let text = &text[..text.floor_char_boundary(VARIABLE_BYTES_MAX)];
        let key = key.to_ascii_uppercase();
        environment.extend(PREFIXES.map(|prefix| (format!("{prefix}{key}"), text.to_owned())));
    }
    environment
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use serde_json::json;

    use super::*;

    #[test]
    fn only_safe_scripts_below_the_folders_of_the_operator_run() {
        let root = tempfile::tempdir().unwrap();
        let (dir, other) = (root.path().join("scripts"), root.path().join("other"));
        fs::create_dir(&dir).unwrap();
        fs::create_dir(&other).unwrap();
        let make = |path: PathBuf, mode: u32| {
            fs::write(&path, "#!/bin/sh\n").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let good = make(dir.join("good.sh"), 0o755);
        make(dir.join("open.sh"), 0o777);
        make(dir.join("group.sh"), 0o775);
        make(dir.join("plain.sh"), 0o644);
        make(other.join("foreign.sh"), 0o755);
        symlink(other.join("foreign.sh"), dir.join("link.sh")).unwrap();
        symlink(&good, other.join("in.sh")).unwrap();
        let result = |path: &Path, folder: Option<&str>| {
            let script = Script {
                path: path.display().to_string(),
                working_directory: folder.map(str::to_owned),
                timeout_s: 30,
            };
            check(&script, std::slice::from_ref(&dir)).map_err(|it| it.field)
        };
        let real = fs::canonicalize(&good).unwrap();
        let folder = real.parent().unwrap().to_owned();
        assert_eq!(result(&good, None), Ok(CheckedScript { path: real.clone(), folder }));
        assert_eq!(result(&good, Some("/")), Ok(CheckedScript { path: real, folder: "/".into() }));
        assert_eq!(result(&good, Some("/no/such")), Err("working_directory"));
        // A link from elsewhere leads to a script that is allowed.
        assert!(result(&other.join("in.sh"), None).is_ok());
        for wrong in ["open.sh", "group.sh", "plain.sh", "link.sh", "missing.sh", "../other/foreign.sh", ""] {
            assert_eq!(result(&dir.join(wrong), None), Err("path"), "{wrong}");
        }
        assert_eq!(result(Path::new("good.sh"), None), Err("path"));
        let script = Script { path: good.display().to_string(), working_directory: None, timeout_s: 30 };
        assert_eq!(check(&script, &[]).unwrap_err().field, "path");
    }

    #[test]
    fn every_value_is_a_variable_under_both_names() {
        let payload =
            json!({"event_type": "vod_stop", "gap_ms": 5, "none": null, "ok": true, "nul": "a\0b", "a-b": 1});
        let environment = environment(payload.as_object().unwrap());
        let of = |name: &str| environment.iter().find(|it| it.0 == name).map(|it| &*it.1);
        assert_eq!(
            (of("SERVICE_EVENT_TYPE"), of("DISPATCHARR_EVENT_TYPE")),
            (Some("vod_stop"), Some("vod_stop"))
        );
        assert_eq!(
            (of("SERVICE_GAP_MS"), of("SERVICE_NONE"), of("SERVICE_OK")),
            (Some("5"), Some(""), Some("true"))
        );
        assert_eq!((of("SERVICE_NUL"), of("SERVICE_A-B"), of("PATH")), (Some("ab"), None, Some(PATH)));
        assert_eq!(environment.len(), 2 + 5 * 2);
    }
}
