//! Reads a playlist: fetched or from a file, plain or compressed, up to the limits.
//!
//! ```text
//!   this runtime           a thread that may block
//!   server ── pieces ────▶ unpack ─▶ parse ─▶ entries and problems
//! ```

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use domain::account::GUIDE_URLS_MAX;
use domain::catchup::add_defaults;
use domain::egress::{Distance, Reach};
use domain::guide::shift::SHIFT_ATTRIBUTE;
use domain::playlist::m3u::{
    PlaylistEntry, PlaylistItem, PlaylistLimits, PlaylistParser, PlaylistProblem, PlaylistProblemKind,
};
use domain::source_url::SourceUrl;
use domain::stream::{RequestHeaders, SourceKind};
use media::{BlockingError, spawn_blocking};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::fetch::{Fetch, FetchBody, FetchError, Unpacked};

/// Maximum number of pieces between the socket and the parser.
const PIECES_MAX: usize = 16;

/// Number of bytes that are unpacked and parsed at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// Maximum number of problems that are reported individually.
pub const PROBLEMS_REPORTED_MAX: usize = 20;

/// The place of a playlist.
#[derive(Clone, Debug)]
pub enum PlaylistSource {
    /// A server, with the headers of the request, and the addresses that it may lead to. Such a playlist must not name
    /// local files.
    Url(SourceUrl, RequestHeaders, Reach),
    /// A file of any kind, such as a pipe.
    File(PathBuf),
    /// A regular file. Another kind is an error, because reading it might never end or never begin.
    RegularFile(PathBuf),
    /// A regular file that an admin uploaded. It counts as fetched from the internet.
    Uploaded(PathBuf),
}

/// Maximum number of attributes of the playlist that hold for all its entries.
const CATCHUP_MAX: usize = 8;

/// The result of reading a playlist, or of the part that was read.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlaylistFindings {
    /// Number of usable entries.
    pub n_entries: u64,
    /// The first problems; at most [`PROBLEMS_REPORTED_MAX`].
    pub problems: Vec<PlaylistProblem>,
    /// Number of all problems.
    pub n_problems: u64,
    /// Reason why the data is not a playlist, if it is not.
    pub not_a_playlist: Option<String>,
    /// Whether the first line is `#EXTM3U`. Known at the end.
    pub has_header: bool,
    /// Addresses of guides on the web that the playlist names; at most [`GUIDE_URLS_MAX`].
    pub guide_urls: Vec<SourceUrl>,
    /// Attributes of the playlist that describe an archive or the offset of guides, and hold for entries without their own.
    pub(crate) catchup: Vec<(String, String)>,
}

impl PlaylistFindings {
    pub(crate) fn problem(&mut self, problem: PlaylistProblem) {
        if matches!(problem.kind, PlaylistProblemKind::NotAPlaylist | PlaylistProblemKind::MediaPlaylist) {
            self.not_a_playlist.get_or_insert_with(|| problem.text.clone());
        }
        self.n_problems += 1;
        if self.problems.len() < PROBLEMS_REPORTED_MAX {
            self.problems.push(problem);
        }
    }
}

/// Reason why a playlist was not read to its end.
#[derive(Debug, thiserror::Error)]
pub enum PlaylistReadError {
    /// The download failed.
    #[error("{}", .0.with_causes())]
    Fetch(FetchError),
    /// The file cannot be opened.
    #[error("{0}")]
    Open(io::Error),
    /// The data cannot be read to its end: it is too long, or its compression is damaged.
    #[error("{0}")]
    Read(#[from] io::Error),
    /// The thread panicked.
    #[error("reading the playlist failed because of an internal error; see the log")]
    Panicked,
}

impl PlaylistReadError {
    /// Returns whether another try soon may help.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Fetch(error) if error.is_temporary())
    }
}

/// Reads a playlist to its end. `on_progress` is called after every piece and at the end. Dropping the future stops
/// the reading at the next piece.
///
/// # Errors
/// The playlist cannot be read to its end. Earlier entries were passed to `on_entry` nevertheless.
pub async fn read_playlist(
    fetch: &Fetch,
    source: PlaylistSource,
    limits: PlaylistLimits,
    mut on_entry: impl FnMut(PlaylistEntry) + Send + 'static,
    mut on_progress: impl FnMut(&PlaylistFindings) + Send + 'static,
) -> Result<(), PlaylistReadError> {
    let stop = CancellationToken::new();
    let _guard = stop.clone().drop_guard();
    let is_stopped = stop.clone();
    let (fed, read) = feed(fetch, source, &stop, move |bytes| {
        let mut entry = |it| {
            on_entry(it);
            Ok(())
        };
        let findings = bytes.parse(limits, &mut entry, |_, findings| {
            on_progress(findings);
            match is_stopped.is_cancelled() {
                true => Err(PlaylistReadError::Read(io::ErrorKind::Interrupted.into())),
                false => Ok(()),
            }
        })?;
        on_progress(&findings);
        Ok(())
    })
    .await;
    fed.map_err(PlaylistReadError::Fetch)?;
    read.unwrap_or(Err(PlaylistReadError::Panicked))
}

/// Runs `work` with the bytes of a playlist on a thread that may block, and feeds it from the socket. Returns how the
/// download ended, and the result of the work. A failed download is the reason why the work found no end.
pub(crate) async fn feed<R: Send + 'static>(
    fetch: &Fetch,
    source: PlaylistSource,
    stop: &CancellationToken,
    work: impl FnOnce(PlaylistBytes) -> R + Send + 'static,
) -> (Result<(), FetchError>, Result<R, BlockingError>) {
    let bytes_max = fetch.limits().bytes_max;
    let origin = Arc::new(OnceLock::new());
    let read = |input, is_remote| PlaylistBytes { input, is_remote, bytes_max, origin: origin.clone() };
    match source {
        PlaylistSource::Url(url, headers, reach) => {
            let (sender, pieces) = mpsc::channel(PIECES_MAX);
            let bytes = read(Input::Pieces(Pieces::new(pieces)), true);
            let thread = spawn_blocking(move || work(bytes));
            let feeding = async {
                let body = fetch.get(url.expose(), &headers, reach).await?;
                if let Some(network) = body.origin() {
                    let _ = origin.set(network);
                }
                download(body, sender).await
            };
            let fed = stop.run_until_cancelled(feeding).await.unwrap_or(Ok(()));
            (fed, thread.await)
        }
        PlaylistSource::File(path) => {
            let bytes = read(Input::File(path), false);
            (Ok(()), spawn_blocking(move || work(bytes)).await)
        }
        PlaylistSource::Uploaded(path) => {
            let _ = origin.set(Distance::Public);
            let bytes = read(Input::RegularFile(path), true);
            (Ok(()), spawn_blocking(move || work(bytes)).await)
        }
        PlaylistSource::RegularFile(path) => {
            let bytes = read(Input::RegularFile(path), false);
            (Ok(()), spawn_blocking(move || work(bytes)).await)
        }
    }
}

/// Sends everything that the server sends, then `None`. After an error, the `None` is missing.
async fn download(mut body: FetchBody, pieces: mpsc::Sender<Option<Bytes>>) -> Result<(), FetchError> {
    while let Some(piece) = body.next().await? {
        if pieces.send(Some(piece)).await.is_err() {
            // The thread has ended; its result contains the reason.
            return Ok(());
        }
    }
    let _ = pieces.send(None).await;
    Ok(())
}

/// The bytes of a playlist, for a thread that may block.
pub(crate) struct PlaylistBytes {
    input: Input,
    is_remote: bool,
    bytes_max: u64,
    /// The network of the server, once it has answered.
    origin: Arc<OnceLock<Distance>>,
}

enum Input {
    Pieces(Pieces),
    File(PathBuf),
    RegularFile(PathBuf),
}

impl PlaylistBytes {
    /// Returns where the network of the server will be found when the playlist was read; empty for a file.
    pub(crate) fn origin(&self) -> Arc<OnceLock<Distance>> {
        self.origin.clone()
    }

    /// Unpacks and parses the playlist. Calls `on_piece` after every piece with the number of unpacked bytes so far;
    /// an error of it stops the reading.
    ///
    /// # Errors
    /// The playlist cannot be read to its end, `on_entry` failed, or `on_piece` stopped the reading.
    pub(crate) fn parse<E: From<PlaylistReadError>>(
        self,
        limits: PlaylistLimits,
        on_entry: &mut impl FnMut(PlaylistEntry) -> io::Result<()>,
        mut on_piece: impl FnMut(u64, &PlaylistFindings) -> Result<(), E>,
    ) -> Result<PlaylistFindings, E> {
        let is_remote = self.is_remote;
        let mut findings = PlaylistFindings::default();
        let mut failed = Ok(());
        let mut parser = PlaylistParser::new(limits);
        let mut n_read = 0;
        self.for_each_piece(|piece| {
            parser.push(piece, &mut |item| take(item, is_remote, &mut findings, on_entry, &mut failed));
            n_read += piece.len() as u64;
            on_piece(n_read, &findings)
        })?;
        let summary = parser.finish(&mut |item| take(item, is_remote, &mut findings, on_entry, &mut failed));
        findings.has_header = summary.has_header;
        failed.map_err(PlaylistReadError::Read)?;
        Ok(findings)
    }

    /// Unpacks the bytes, and calls `on_piece` with each piece of them; an error of it stops the reading. The first piece
    /// is empty: the first bytes have arrived.
    ///
    /// # Errors
    /// The bytes cannot be read to their end, or `on_piece` stopped the reading.
    pub(crate) fn for_each_piece<E: From<PlaylistReadError>>(
        self,
        mut on_piece: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        let bytes_max = self.bytes_max;
        let unpacked = match self.input {
            Input::Pieces(pieces) => Unpacked::new(pieces, bytes_max),
            Input::File(path) => Unpacked::new(File::open(path).map_err(PlaylistReadError::Open)?, bytes_max),
            Input::RegularFile(path) => {
                Unpacked::new(open_regular(&path).map_err(PlaylistReadError::Open)?, bytes_max)
            }
        };
        let mut bytes = unpacked.map_err(PlaylistReadError::Read)?;
        on_piece(&[])?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let n_bytes = bytes.read(&mut piece).map_err(PlaylistReadError::Read)?;
            if n_bytes == 0 {
                return Ok(());
            }
            on_piece(&piece[..n_bytes])?;
        }
    }
}

/// Checks an item of the parser. After the first error of `on_entry` no more entries are passed to it.
fn take(
    item: PlaylistItem,
    is_remote: bool,
    findings: &mut PlaylistFindings,
    on_entry: &mut impl FnMut(PlaylistEntry) -> io::Result<()>,
    failed: &mut io::Result<()>,
) {
    match item {
        PlaylistItem::Header(header) => {
            let is_of_all = |it: &(String, String)| it.0.starts_with("catchup") || it.0 == SHIFT_ATTRIBUTE;
            let catchup = header.attributes.into_iter().filter(is_of_all);
            findings.catchup.extend(catchup.take(CATCHUP_MAX.saturating_sub(findings.catchup.len())));
            for url in header.guide_urls.into_iter().filter(SourceUrl::is_http) {
                if findings.guide_urls.len() < GUIDE_URLS_MAX && !findings.guide_urls.contains(&url) {
                    findings.guide_urls.push(url);
                }
            }
        }
        PlaylistItem::Problem(problem) => findings.problem(problem),
        PlaylistItem::Entry(entry) if is_remote && SourceKind::from_url(&entry.url) == SourceKind::File => {
            findings.problem(PlaylistProblem {
                line: entry.line,
                kind: PlaylistProblemKind::LocalFile,
                text: "a list from the network may not name files of this machine".to_owned(),
            });
        }
        PlaylistItem::Entry(mut entry) if failed.is_ok() => {
            add_defaults(&mut entry.attributes, &findings.catchup);
            *failed = on_entry(entry);
            findings.n_entries += u64::from(failed.is_ok());
        }
        PlaylistItem::Entry(_) => {}
    }
}

fn open_regular(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    File::open(path)
}

/// Reads the pieces of a download on a thread that may block.
struct Pieces {
    pieces: mpsc::Receiver<Option<Bytes>>,
    current: Bytes,
    is_over: bool,
}

impl Pieces {
    fn new(pieces: mpsc::Receiver<Option<Bytes>>) -> Self {
        Self { pieces, current: Bytes::new(), is_over: false }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.is_over {
            match self.pieces.blocking_recv() {
                Some(Some(piece)) => self.current = piece,
                Some(None) => self.is_over = true,
                // The download failed; its error contains the reason.
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the download broke off")),
            }
        }
        let n_bytes = self.current.len().min(buffer.len());
        buffer[..n_bytes].copy_from_slice(&self.current.split_to(n_bytes));
        Ok(n_bytes)
    }
}
