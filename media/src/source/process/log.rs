//! The log of a program, read from its standard error: the last lines without secrets, and its processing
//! speed.

use std::collections::VecDeque;
use std::pin::pin;

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;

use crate::source::target::decode;

/// Number of lines that are kept.
const LINES_MAX: usize = 20;
/// Maximum number of bytes read of one line; the rest is skipped.
const READ_LINE_BYTES_MAX: usize = 4 << 10;
/// Maximum length of a kept line.
const KEPT_CHARS_MAX: usize = 300;

/// The last lines of the log.
pub(in crate::source) struct ProgramLog {
    /// `None` after the pipe was closed.
    pipe: Option<Receiver>,
    line: Vec<u8>,
    is_cut: bool,
    lines: VecDeque<String>,
    speed: Option<f32>,
    redactor: Redactor,
}

impl ProgramLog {
    pub(super) fn new(pipe: Receiver, redactor: Redactor) -> Self {
        Self { pipe: Some(pipe), ..Self::closed(redactor) }
    }

    fn closed(redactor: Redactor) -> Self {
        Self { pipe: None, line: Vec::new(), is_cut: false, lines: VecDeque::new(), speed: None, redactor }
    }

    /// Reads the next bytes; waits for ever after the end of the log. Cancel-safe.
    pub(super) async fn read(&mut self) {
        let Some(pipe) = &mut self.pipe else { return std::future::pending().await };
        let mut bytes = [0; 4096];
        match pipe.read(&mut bytes).await {
            Ok(n) if n > 0 => self.push(&bytes[..n]),
            _ => self.close(),
        }
    }

    /// Reads until the other future completes.
    pub(super) async fn read_while(&mut self, other: impl Future<Output = ()>) {
        let mut other = pin!(other);
        loop {
            tokio::select! {
                () = &mut other => return,
                () = self.read() => {}
            }
        }
    }

    /// Reads until the pipe is closed. Cancel-safe.
    pub(super) async fn read_to_end(&mut self) {
        while self.pipe.is_some() {
            self.read().await;
        }
    }

    /// Stops reading. An incomplete last line counts as a line.
    pub(super) fn close(&mut self) {
        self.pipe = None;
        self.end_line();
    }

    /// Returns the last line.
    pub(super) fn last(&self) -> Option<&str> {
        self.lines.back().map(String::as_str)
    }

    /// Returns the last lines, oldest first.
    pub(in crate::source) fn lines(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str)
    }

    /// Returns the processing speed in programme seconds per second, in the format of ffmpeg.
    pub(in crate::source) fn speed(&self) -> Option<f32> {
        self.speed
    }

    fn push(&mut self, bytes: &[u8]) {
        for byte in bytes {
            match byte {
                // ffmpeg overwrites its progress line.
                b'\n' | b'\r' => self.end_line(),
                _ if self.line.len() < READ_LINE_BYTES_MAX => self.line.push(*byte),
                _ => self.is_cut = true,
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line).into_owned();
        self.line.clear();
        let mut line = line.trim();
        if std::mem::take(&mut self.is_cut) {
            // A word that is cut may be a part of a secret, which would not be recognised.
            line = line.rsplit_once(char::is_whitespace).map_or("", |it| it.0);
        }
        if let Some(speed) = progress(line) {
            self.speed = speed.or(self.speed);
        } else if !line.is_empty() {
            if self.lines.len() == LINES_MAX {
                self.lines.pop_front();
            }
            let line = self.redactor.redact(line);
            let line = line.chars().filter(|it| !it.is_control()).take(KEPT_CHARS_MAX).collect();
            self.lines.push_back(line);
        }
    }
}

/// Returns the speed of a progress line of ffmpeg: `Some(None)` if it is unknown, `None` for other lines.
fn progress(line: &str) -> Option<Option<f32>> {
    if !line.starts_with("frame=") && !line.starts_with("size=") {
        return None;
    }
    let (_, speed) = line.rsplit_once("speed=")?;
    Some(speed.trim().trim_end_matches('x').parse().ok().filter(|it: &f32| it.is_finite()))
}

/// Removes secrets from a text: addresses, and parts of the address that the program was given.
pub(super) struct Redactor {
    /// Longest first, so that a part of a secret is not replaced before the whole.
    secrets: Vec<String>,
}

/// Shorter parts occur everywhere.
const SECRET_BYTES_MIN: usize = 3;
/// Arguments of this length and more are treated as secret values, for example of headers.
const ARGUMENT_BYTES_MIN: usize = 12;

impl Redactor {
    /// Creates a redactor for a program with this address and these arguments.
    pub(super) fn new(address: &str, arguments: &[String]) -> Self {
        let rest = address.split_once("://").map_or(address, |it| it.1);
        let path = rest.find('/').unwrap_or(rest.len());
        let (authority, path) = rest.split_at(path);
        let login = authority.rsplit_once('@').map_or("", |it| it.0);
        let pieces = [login, path].into_iter().flat_map(|it| {
            it.split(['/', '?', '&', '=', ':', '@', '#', ';', ',', '|']).chain(it.split(['/', '?', '&', '#']))
        });
        let values = arguments.iter().filter(|it| !it.starts_with('-') || it.contains('=')).map(|it| {
            let is_option = it.starts_with('-');
            it.split_once('=').filter(|_| is_option).map_or(it.as_str(), |it| it.1)
        });
        let values = values.filter(|it| it.len() >= ARGUMENT_BYTES_MIN);
        let both =
            [address].into_iter().chain(pieces).chain(values).flat_map(|it| [it.to_owned(), decode(it)]);
        let mut secrets: Vec<_> = both.filter(|it| it.len() >= SECRET_BYTES_MIN).collect();
        secrets.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup();
        Self { secrets }
    }

    fn redact(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in &self.secrets {
            text = text.replace(secret, "…");
        }
        without_addresses(&text)
    }
}

/// Replaces addresses, which are recognised by `://`.
fn without_addresses(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let scheme = rest[..at].rfind(|it: char| !it.is_ascii_alphanumeric() && !"+-.".contains(it));
        let begin = scheme.map_or(0, |it| it + rest[it..].chars().next().map_or(1, char::len_utf8));
        let after = &rest[at..];
        let end = after.find(|it: char| it.is_whitespace() || "'\"<>".contains(it)).unwrap_or(after.len());
        out.push_str(&rest[..begin]);
        out.push_str("(address)");
        rest = &after[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(address: &str, pieces: &[&[u8]]) -> ProgramLog {
        let mut log = ProgramLog::closed(Redactor::new(address, &[]));
        pieces.iter().for_each(|it| log.push(it));
        log.end_line();
        log
    }

    #[test]
    fn the_last_lines_are_kept_without_progress_lines() {
        let log = log(
            "",
            &[b"one\ntw", b"o\r\n\n", b"frame=  1 fps=0.0 speed=N/A\rframe= 30 fps=2 speed=1.02x \r", b"end"],
        );
        assert_eq!(log.lines().collect::<Vec<_>>(), ["one", "two", "end"]);
        assert_eq!(log.speed(), Some(1.02));
        let flood = b"line\n".repeat(1000);
        assert_eq!(self::log("", &[&flood]).lines().count(), LINES_MAX);
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let endless = b"word ".repeat(100_000);
        let mut log = ProgramLog::closed(Redactor::new("", &[]));
        log.push(&endless);
        assert!(log.line.capacity() <= 2 * READ_LINE_BYTES_MAX);
        log.end_line();
        assert_eq!(log.last().unwrap().chars().count(), KEPT_CHARS_MAX);
    }

    #[test]
    fn no_part_of_the_address_is_kept() {
        let address = "http://anna:s%20cret@h:80/live/anna/pa55/17.ts?token=abcdef&x=1";
        for line in [
            format!("[http @ 0x1] {address}: Server returned 404 Not Found"),
            "Opening 'http://h/live/anna/pa55/17_0.ts?token=abcdef' for reading".to_owned(),
            "no such path /live/anna/pa55/17.ts?token=abcdef".to_owned(),
            "login anna with s cret or s%20cret refused".to_owned(),
            format!("{} {address}", "x".repeat(READ_LINE_BYTES_MAX - 30)),
            "https://other/?key=abcdef then (rtsp://x/pa55) and pa55".to_owned(),
        ] {
            let log = log(address, &[line.as_bytes(), b"\n"]);
            for secret in ["anna", "s cret", "s%20cret", "pa55", "abcdef", "http://", "token="] {
                assert!(!log.lines().any(|it| it.contains(secret)), "{secret}: {:?}", log.last());
            }
        }
        let with_address = log(address, &[b"[h264 @ 0x1] error while decoding at http://h/x, skipped\n"]);
        assert_eq!(with_address.last(), Some("[h264 @ 0x1] error while decoding at (address) skipped"));
    }

    #[test]
    fn argument_values_are_not_kept() {
        let arguments = ["-headers", "Authorization: Bearer x", "--key=0123456789abcdef", "mpegts"];
        let redactor = Redactor::new("", &arguments.map(str::to_owned));
        let line = "mpegts: cannot use Authorization: Bearer x or 0123456789abcdef";
        assert_eq!(redactor.redact(line), "mpegts: cannot use … or …");
    }
}
