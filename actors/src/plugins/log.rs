//! The log of a plugin: what it logs, prints and writes to standard error, in two files of limited size.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use domain::plugin::protocol::Rate;
use jiff::Timestamp;

/// Size of one of the two files, in bytes: together 10 MiB.
const FILE_BYTES_MAX: u64 = 5 << 20;
/// Maximum number of lines in a second; the others are counted.
const LINES_MAX: u32 = 100;
/// Maximum length of a line, in bytes.
pub(super) const LINE_BYTES_MAX: usize = 4 << 10;
/// The name of the current file.
const NAME: &str = "plugin.log";
/// The name of the file before.
const NAME_BEFORE: &str = "plugin.log.1";
/// Secrets that are shorter occur everywhere.
const SECRET_BYTES_MIN: usize = 4;

/// The log of one plugin. Writing blocks for as long as the disk takes.
#[derive(Debug)]
pub(super) struct PluginLog {
    folder: PathBuf,
    file: Option<File>,
    size: u64,
    rate: Rate,
    left_out: u64,
    /// Texts that are replaced, longest first.
    secrets: Vec<String>,
}

impl PluginLog {
    pub(super) fn new(folder: PathBuf) -> Self {
        Self { folder, file: None, size: 0, rate: Rate::new(LINES_MAX), left_out: 0, secrets: Vec::new() }
    }

    /// Replaces these texts in all lines from now on.
    pub(super) fn hide(&mut self, secrets: &[String]) {
        self.secrets = secrets.iter().filter(|it| it.len() >= SECRET_BYTES_MIN).cloned().collect();
        self.secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
    }

    /// Returns a text without secrets.
    pub(super) fn redact(&self, text: &str) -> String {
        self.secrets.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "…"))
    }

    /// Writes a text as one line or more, at this time in milliseconds since 1970. An error leaves the text out.
    pub(super) fn write(&mut self, now_ms: i64, level: &str, text: &str) {
        for line in text.lines() {
            if !self.rate.allows(now_ms.unsigned_abs()) {
                self.left_out += 1;
                continue;
            }
            let left_out = std::mem::take(&mut self.left_out);
            if left_out > 0 {
                let note = format!("{left_out} lines were left out: more than {LINES_MAX} in a second");
                self.write_line(now_ms, "warning", &note);
            }
            self.write_line(now_ms, level, line);
        }
    }

    fn write_line(&mut self, now_ms: i64, level: &str, line: &str) {
        let mut line = self.redact(line).replace(|it: char| it.is_control() && it != '\t', " ");
        line.truncate(line.floor_char_boundary(LINE_BYTES_MAX));
        let time = Timestamp::from_millisecond(now_ms).unwrap_or_default();
        let line = format!("{time} {level} {line}\n");
        if let Err(error) = self.append(line.as_bytes()) {
            self.file = None;
            tracing::debug!(folder = %self.folder.display(), "failed to write the log of a plugin: {error}");
        }
    }

    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        if self.size + line.len() as u64 > FILE_BYTES_MAX {
            self.file = None;
            fs::rename(self.folder.join(NAME), self.folder.join(NAME_BEFORE))?;
            self.size = 0;
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
                let mut options = OpenOptions::new();
                let file = options.append(true).create(true).mode(0o600).open(self.folder.join(NAME))?;
                self.size = file.metadata()?.len();
                none.insert(file)
            }
        };
        file.write_all(line)?;
        self.size += line.len() as u64;
        Ok(())
    }
}

/// Returns the last lines of the log in a folder, oldest first. Blocks.
pub(super) fn last_lines(folder: &Path, max: usize) -> Vec<String> {
    let mut lines = VecDeque::new();
    for name in [NAME_BEFORE, NAME] {
        // A plugin that has not logged has no file.
        let Ok(text) = tail(&folder.join(name), max.saturating_mul(LINE_BYTES_MAX)) else { continue };
        lines.extend(text.lines().map(str::to_owned));
    }
    while lines.len() > max {
        lines.pop_front();
    }
    lines.into()
}

/// Reads at most this many bytes from the end of a file, beginning with a whole line.
fn tail(path: &Path, bytes_max: usize) -> io::Result<String> {
    let mut file = File::open(path)?;
    let begin = file.metadata()?.len().saturating_sub(bytes_max as u64);
    file.seek(SeekFrom::Start(begin))?;
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    match begin > 0 {
        true => Ok(text.split_once('\n').map_or(String::new(), |it| it.1.to_owned())),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_is_counted_and_the_files_stay_small() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = PluginLog::new(folder.path().join("logs"));
        for _ in 0..1_000 {
            log.write(5_000, "info", "flood");
        }
        log.write(6_000, "info", "calm");
        let lines = last_lines(&folder.path().join("logs"), 1_000);
        assert_eq!(lines.len(), 102);
        assert!(
            lines[100].ends_with("warning 900 lines were left out: more than 100 in a second"),
            "{lines:?}"
        );
        assert!(lines[101].ends_with("info calm"));

        let long = "é".repeat(LINE_BYTES_MAX);
        for second in 10..60 {
            for _ in 0..100 {
                log.write(second * 1_000, "info", &long);
            }
        }
        let sizes: Vec<u64> = [NAME, NAME_BEFORE]
            .map(|it| folder.path().join("logs").join(it).metadata().unwrap().len())
            .into();
        assert!(sizes.iter().all(|it| (1..=FILE_BYTES_MAX).contains(it)), "{sizes:?}");
        assert_eq!(last_lines(&folder.path().join("logs"), 7).len(), 7);
    }

    #[test]
    fn secrets_and_control_characters_are_not_written() {
        let folder = tempfile::tempdir().unwrap();
        let mut log = PluginLog::new(folder.path().to_owned());
        log.hide(&["pass".to_owned(), "passphrase".to_owned(), "x".to_owned()]);
        log.write(0, "info", "a passphrase, a pass\u{1b}[31m and x\nsecond");
        let lines = last_lines(folder.path(), 10);
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("info a …, a … [31m and x"), "{lines:?}");
        assert_eq!(last_lines(&folder.path().join("none"), 10), Vec::<String>::new());
    }
}
