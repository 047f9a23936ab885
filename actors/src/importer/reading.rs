//! From bytes to entries: unpacked, parsed and spooled as they come.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use bytes::Bytes;
use domain::account::PlaylistLocation;
use domain::group;
use domain::playlist::m3u::{
    PlaylistEntry, PlaylistItem, PlaylistParser, PlaylistProblem, PlaylistProblemKind,
};
use domain::stream::{SourceKind, StreamProperties};
use tokio::sync::mpsc;

use super::error::ImportError;
use super::progress::RefreshPhase;
use super::run::{Job, PROBLEMS_TOLD_MAX, Source};
use super::spool::Spool;
use crate::fetch::Unpacked;

/// What is unpacked and parsed at a time.
const PIECE_BYTES: usize = 64 * 1024;

/// A list that was read to its end.
#[derive(Default)]
pub(super) struct ReadList {
    /// What the entries say. A stream's facts stand in for its entry.
    pub(super) entries: Spool<StreamProperties>,
    pub(super) problems: Vec<PlaylistProblem>,
    pub(super) n_problems: u64,
    /// Why nothing of it is a playlist.
    pub(super) no_playlist: Option<String>,
    /// It came from another machine.
    is_foreign: bool,
}

impl ReadList {
    pub(super) fn n_entries(&self) -> u64 {
        self.entries.len() as u64
    }

    fn take(&mut self, item: PlaylistItem, full: &mut io::Result<()>) {
        match item {
            PlaylistItem::Header(_) => {}
            PlaylistItem::Problem(problem) => self.problem(problem),
            PlaylistItem::Entry(entry)
                if self.is_foreign && SourceKind::of(&entry.url) == SourceKind::File =>
            {
                self.problem(PlaylistProblem {
                    line: entry.line,
                    kind: PlaylistProblemKind::LocalFile,
                    text: "a list from the network may not name files of this machine".to_owned(),
                });
            }
            PlaylistItem::Entry(entry) if full.is_ok() => *full = self.entries.push(&facts(entry)),
            PlaylistItem::Entry(_) => {}
        }
    }

    fn problem(&mut self, problem: PlaylistProblem) {
        if matches!(problem.kind, PlaylistProblemKind::NotAPlaylist | PlaylistProblemKind::MediaPlaylist) {
            self.no_playlist.get_or_insert_with(|| problem.text.clone());
        }
        self.n_problems += 1;
        if self.problems.len() < PROBLEMS_TOLD_MAX {
            self.problems.push(problem);
        }
    }
}

/// Reads a list to its end.
pub(super) fn read(job: &Job, source: Source, bytes_max: u64) -> Result<ReadList, ImportError> {
    let mut bytes = match source {
        Source::Pieces(pieces) => Unpacked::new(pieces, bytes_max)?,
        Source::File(path) => Unpacked::new(open(&path).map_err(ImportError::File)?, bytes_max)?,
    };
    job.teller.tell(|it| it.phase = RefreshPhase::Parsing);
    let mut list =
        ReadList { is_foreign: matches!(job.account.list, PlaylistLocation::Url(_)), ..ReadList::default() };
    let mut parser = PlaylistParser::new(job.options.limits);
    let mut piece = vec![0; PIECE_BYTES];
    let mut n_read = 0;
    let mut full = Ok(());
    loop {
        job.go_on()?;
        let n_bytes = bytes.read(&mut piece)?;
        if n_bytes == 0 {
            break;
        }
        parser.push(&piece[..n_bytes], &mut |item| list.take(item, &mut full));
        n_read += n_bytes as u64;
        job.teller.tell(|it| (it.bytes, it.entries) = (n_read, list.n_entries()));
    }
    parser.finish(&mut |item| list.take(item, &mut full));
    full?;
    Ok(list)
}

/// A plain file. Anything else might never end, or never begin.
fn open(path: &Path) -> io::Result<File> {
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is no plain file"));
    }
    File::open(path)
}

/// What an entry says, for the spool.
fn facts(entry: PlaylistEntry) -> StreamProperties {
    let group = entry.group.map(|it| match it.char_indices().nth(group::GROUP_NAME_CHARS_MAX) {
        Some((end, _)) => it[..end].to_owned(),
        None => it,
    });
    StreamProperties {
        name: entry.name,
        url: entry.url,
        headers: entry.headers,
        tvg_id: entry.tvg_id,
        group,
        logo: entry.tvg_logo,
        number: entry.tvg_chno,
    }
}

/// The entry that says this.
pub(super) fn entry(facts: StreamProperties) -> PlaylistEntry {
    PlaylistEntry {
        line: 0,
        name: facts.name,
        url: facts.url,
        duration: None,
        tvg_id: facts.tvg_id,
        tvg_name: None,
        tvg_logo: facts.logo,
        tvg_chno: facts.number,
        group: facts.group,
        headers: facts.headers,
        attributes: Vec::new(),
    }
}

/// What comes from the socket, for a reader that may block.
pub(super) struct Pieces {
    pieces: mpsc::Receiver<Option<Bytes>>,
    current: Bytes,
    is_over: bool,
}

impl Pieces {
    pub(super) fn new(pieces: mpsc::Receiver<Option<Bytes>>) -> Self {
        Self { pieces, current: Bytes::new(), is_over: false }
    }
}

impl Read for Pieces {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() && !self.is_over {
            match self.pieces.blocking_recv() {
                Some(Some(piece)) => self.current = piece,
                Some(None) => self.is_over = true,
                // Whoever fed us has given up, and knows why.
                None => return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it broke off")),
            }
        }
        let n_bytes = self.current.len().min(buffer.len());
        buffer[..n_bytes].copy_from_slice(&self.current.split_to(n_bytes));
        Ok(n_bytes)
    }
}
