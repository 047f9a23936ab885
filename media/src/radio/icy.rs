//! Titles of ICY: blocks of text between the audio bytes of a station.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderMap;

/// Maximum number of characters of a title.
pub const TITLE_CHARS_MAX: usize = 256;
/// Largest distance of blocks that is believed.
const INTERVAL_MAX: usize = 1 << 20;
/// A block has a length in units of so many bytes.
const BLOCK_UNIT: usize = 16;

/// The statements of the headers of a response about titles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IcyHeaders {
    /// Whether the server speaks ICY, so that it may have titles.
    pub is_icy: bool,
    /// Bytes between two blocks with titles; `None` if the body has none.
    pub interval: Option<usize>,
}

impl IcyHeaders {
    /// Reads the headers of a response.
    pub fn from_headers(headers: &HeaderMap) -> Self {
        let lines = headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap_or_default()));
        Self::from_pairs(lines)
    }

    /// Reads the lines of a head that is inside of a body.
    pub fn from_head(head: &[u8]) -> Self {
        let text = String::from_utf8_lossy(head);
        let is_icy = text.starts_with("ICY ");
        let headers = Self::from_pairs(text.lines().filter_map(|it| it.split_once(':')));
        Self { is_icy: is_icy || headers.is_icy, ..headers }
    }

    fn from_pairs<'a>(pairs: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut headers = Self::default();
        for (name, value) in pairs {
            let Some(rest) = name.trim().to_ascii_lowercase().strip_prefix("icy-").map(str::to_owned) else {
                continue;
            };
            headers.is_icy = true;
            if rest == "metaint" {
                let interval = value.trim().parse().ok();
                headers.interval = interval.filter(|it| (1..=INTERVAL_MAX).contains(it));
            }
        }
        headers
    }
}

/// Cuts the blocks with titles out of a body, and reads them.
#[derive(Debug)]
pub struct IcyCutter {
    interval: usize,
    /// Audio bytes before the next block.
    n_before_block: usize,
    /// Length of the block that arrives.
    block_bytes: Option<usize>,
    block: Vec<u8>,
    /// The last title, until it is taken.
    title: Option<Arc<str>>,
}

impl IcyCutter {
    /// Creates a cutter for a body with a block after each `interval` bytes of audio.
    pub fn new(interval: usize) -> Self {
        let interval = interval.max(1);
        Self { interval, n_before_block: interval, block_bytes: None, block: Vec::new(), title: None }
    }

    /// Takes the next bytes of the body, and gives those of them that are audio to `out`.
    pub fn push(&mut self, mut bytes: Bytes, mut out: impl FnMut(Bytes)) {
        while !bytes.is_empty() {
            match self.block_bytes {
                None if self.n_before_block > 0 => {
                    let piece = bytes.split_to(self.n_before_block.min(bytes.len()));
                    self.n_before_block -= piece.len();
                    out(piece);
                }
                None => self.block_bytes = Some(usize::from(bytes.split_to(1)[0]) * BLOCK_UNIT),
                Some(length) => {
                    let piece = bytes.split_to((length - self.block.len()).min(bytes.len()));
                    self.block.extend_from_slice(&piece);
                }
            }
            if self.block_bytes == Some(self.block.len()) {
                // A block without a title changes nothing; an empty title ends the last one.
                self.title = title_of(&self.block).map(Into::into).or(self.title.take());
                self.block.clear();
                (self.block_bytes, self.n_before_block) = (None, self.interval);
            }
        }
    }

    /// Returns the last title, once. It is empty if the station has ended it.
    pub fn take_title(&mut self) -> Option<Arc<str>> {
        self.title.take()
    }
}

/// Returns the title in a block; `None` if it has none.
fn title_of(block: &[u8]) -> Option<String> {
    const START: &[u8] = b"StreamTitle='";
    const END: &[u8] = b"';";
    let block = &block[..block.iter().rposition(|it| *it != 0)? + 1];
    let at = memchr::memmem::find(block, START)? + START.len();
    let rest = &block[at..];
    // Titles contain apostrophes, which nothing marks.
    let mut ends = memchr::memmem::find_iter(rest, END);
    let is_end = |at: &usize| is_next_field(&rest[at + END.len()..]);
    let end = ends.find(is_end).or_else(|| memchr::memmem::rfind(rest, END));
    let title = match end {
        Some(end) => &rest[..end],
        None => rest.strip_suffix(b"'").unwrap_or(rest),
    };
    let cleaned = decoded(title).replace(char::is_control, " ");
    Some(cleaned.trim().chars().take(TITLE_CHARS_MAX).collect())
}

/// Returns whether a block ends here, or continues with the name of a field.
fn is_next_field(rest: &[u8]) -> bool {
    let rest = rest.trim_ascii();
    let name = rest.iter().take_while(|it| it.is_ascii_alphanumeric()).count();
    rest.is_empty() || name > 0 && rest[name..].starts_with(b"='")
}

/// Reads UTF-8, also if its last character is cut, and otherwise Latin-1.
fn decoded(text: &[u8]) -> String {
    match std::str::from_utf8(text) {
        Ok(text) => text.to_owned(),
        Err(error) if error.error_len().is_none() && error.valid_up_to() > 0 => {
            String::from_utf8_lossy(&text[..error.valid_up_to()]).into_owned()
        }
        Err(_) => text.iter().map(|it| char::from(*it)).collect(),
    }
}
