//! A radio station that sends audio frames without a container, with titles if they are asked for.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::{Instant, sleep_until};

use super::provider::SeenRequest;

/// The sound of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StationSound {
    /// MPEG-1 layer 3 at 44.1 kHz.
    Mp3,
    /// MPEG-2 layer 3 at 22.05 kHz.
    SlowMp3,
    /// MPEG-2.5 layer 3 at 8 kHz.
    SlowestMp3,
    /// MPEG-1 layer 2 at 48 kHz.
    Mp2,
    /// AAC at 44.1 kHz.
    Aac,
    /// AAC at 24 kHz, as it is the core of HE-AAC at 48 kHz.
    HeAac,
}

impl StationSound {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Mp3, Self::SlowMp3, Self::SlowestMp3, Self::Mp2, Self::Aac, Self::HeAac];

    /// Returns a frame, which decoders read as silence or noise.
    pub fn frame(self) -> Vec<u8> {
        let (head, length): (&[u8], usize) = match self {
            Self::Mp3 => (&[0xFF, 0xFB, 0x90, 0x00], 417),
            Self::SlowMp3 => (&[0xFF, 0xF3, 0x80, 0x00], 208),
            Self::SlowestMp3 => (&[0xFF, 0xE3, 0x18, 0x00], 72),
            Self::Mp2 => (&[0xFF, 0xFD, 0xA4, 0x00], 576),
            Self::Aac => (&[0xFF, 0xF1, 0x50, 0x80, 0x2E, 0x7F, 0xFC], 371),
            Self::HeAac => (&[0xFF, 0xF1, 0x58, 0x80, 0x19, 0x1F, 0xFC], 200),
        };
        let mut frame = vec![0x55; length];
        frame[..head.len()].copy_from_slice(head);
        frame
    }

    /// Returns samples per frame and samples per second.
    pub fn samples(self) -> (u32, u32) {
        match self {
            Self::Mp3 => (1152, 44_100),
            Self::SlowMp3 => (576, 22_050),
            Self::SlowestMp3 => (576, 8_000),
            Self::Mp2 => (1152, 48_000),
            Self::Aac => (1024, 44_100),
            Self::HeAac => (1024, 24_000),
        }
    }
}

/// A station, and the way in which it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestStation {
    /// The sound.
    pub sound: StationSound,
    /// The head of the response, without the line about titles and the empty line.
    pub head: String,
    /// Bytes before the first frame.
    pub before: Vec<u8>,
    /// Past that is sent at once at the start.
    pub burst: Duration,
    /// Programme that is sent together, when the first of it is due.
    pub clump: Duration,
    /// Bytes between blocks with titles, and the titles of one block after the other; the last is followed by empty blocks.
    pub titles: Option<(usize, Vec<String>)>,
    /// The answer to a request for titles.
    pub answer_to_titles: AnswerToTitles,
}

/// The answer of a station to a request for titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnswerToTitles {
    /// It sends titles.
    Titles,
    /// It plays without titles.
    Ignored,
    /// It answers with this status.
    Status(u16),
    /// It never answers.
    None,
}

impl TestStation {
    /// An Icecast server that sends a title every 8,000 bytes.
    pub fn new(sound: StationSound) -> Self {
        Self {
            sound,
            head: "HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\nicy-name: Radio\r\n".to_owned(),
            before: Vec::new(),
            burst: Duration::from_secs(2),
            clump: Duration::ZERO,
            titles: Some((8_000, vec!["Artist - Song".to_owned()])),
            answer_to_titles: AnswerToTitles::Titles,
        }
    }

    pub(super) async fn send(
        self,
        request: &SeenRequest,
        out: &mut (impl AsyncWrite + Unpin),
    ) -> io::Result<()> {
        let is_asked = request.header("icy-metadata") == Some("1");
        match self.answer_to_titles {
            AnswerToTitles::Status(status) if is_asked => {
                let head = format!("HTTP/1.0 {status} Refused\r\nContent-Length: 0\r\n\r\n");
                return out.write_all(head.as_bytes()).await;
            }
            AnswerToTitles::None if is_asked => std::future::pending().await,
            _ => {}
        }
        let has_titles = is_asked && self.answer_to_titles == AnswerToTitles::Titles;
        let titles = self.titles.filter(|_| has_titles);
        let line = titles.as_ref().map_or(String::new(), |it| format!("icy-metaint: {}\r\n", it.0));
        out.write_all(format!("{}{line}\r\n", self.head).as_bytes()).await?;
        let mut blocks = TitleBlocks::new(titles);
        out.write_all(&blocks.insert(&self.before)).await?;
        let (n_samples, rate) = self.sound.samples();
        let (frame, began) = (self.sound.frame(), Instant::now());
        for n in 0_u64.. {
            let at = Duration::from_secs(1) * n as u32 * n_samples / rate;
            let mut due = at.saturating_sub(self.burst);
            if !self.clump.is_zero() {
                due = self.clump * (due.as_millis() / self.clump.as_millis()) as u32;
            }
            sleep_until(began + due).await;
            out.write_all(&blocks.insert(&frame)).await?;
        }
        Ok(())
    }
}

/// Inserts blocks with titles.
struct TitleBlocks {
    interval: usize,
    n_before_block: usize,
    titles: std::vec::IntoIter<String>,
}

impl TitleBlocks {
    fn new(titles: Option<(usize, Vec<String>)>) -> Self {
        let (interval, titles) = titles.unwrap_or((usize::MAX, Vec::new()));
        Self { interval, n_before_block: interval, titles: titles.into_iter() }
    }

    fn insert(&mut self, mut bytes: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        while bytes.len() >= self.n_before_block {
            let (before, rest) = bytes.split_at(self.n_before_block);
            out.extend_from_slice(before);
            out.extend(title_block(self.titles.next().as_deref()));
            (bytes, self.n_before_block) = (rest, self.interval);
        }
        self.n_before_block -= bytes.len();
        out.extend_from_slice(bytes);
        out
    }
}

/// Returns the block of a title, or an empty one.
fn title_block(title: Option<&str>) -> Vec<u8> {
    let mut text = title.map_or(String::new(), |it| format!("StreamTitle='{it}';")).into_bytes();
    text.resize(text.len().next_multiple_of(16), 0);
    text.insert(0, (text.len() / 16) as u8);
    text
}
