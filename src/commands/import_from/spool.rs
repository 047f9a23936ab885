//! The streams of a source in a temporary file, because there may be millions.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use anyhow::Context;
use import_from::SourceStream;

/// Maximum length of one entry, in bytes. A stream is shorter, because its texts are limited.
const ENTRY_BYTES_MAX: u32 = 256 * 1024;

/// Where a stream is in the file.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// The account of the source; 0 for manually created streams.
    account: u32,
    id: u32,
    offset: u64,
}

/// Streams while they are collected. The file has no name and disappears with the process.
pub(super) struct Spool {
    file: BufWriter<File>,
    end: u64,
    places: Vec<Place>,
    ids: HashSet<u32>,
}

/// Streams that were collected, by account.
pub(super) struct SpooledStreams {
    file: BufReader<File>,
    at: u64,
    /// By account and id.
    places: Vec<Place>,
}

impl Spool {
    pub(super) fn new() -> anyhow::Result<Self> {
        let file = tempfile::tempfile().context("failed to create a temporary file")?;
        Ok(Self { file: BufWriter::new(file), end: 0, places: Vec::new(), ids: HashSet::new() })
    }

    /// Adds a stream. Returns false if one with its id is there already.
    pub(super) fn push(&mut self, stream: &SourceStream) -> anyhow::Result<bool> {
        if !self.ids.insert(stream.id) {
            return Ok(false);
        }
        let bytes = serde_json::to_vec(stream)?;
        let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        self.file
            .write_all(&length.to_le_bytes())
            .and_then(|()| self.file.write_all(&bytes))
            .context(FULL)?;
        let account = stream.account.unwrap_or(0);
        self.places.push(Place { account, id: stream.id, offset: self.end });
        self.end += 4 + u64::from(length);
        Ok(true)
    }

    pub(super) fn finish(self) -> anyhow::Result<SpooledStreams> {
        let mut file = self.file.into_inner().map_err(|error| error.into_error()).context(FULL)?;
        file.seek(SeekFrom::Start(0))?;
        let mut places = self.places;
        places.sort_unstable();
        Ok(SpooledStreams { file: BufReader::new(file), at: 0, places })
    }
}

/// The reason why the temporary file cannot be written.
const FULL: &str = "failed to write a temporary file; is the disk full?";

impl SpooledStreams {
    /// Returns the accounts of the source that have streams, with the numbers of these; `None` is manually created ones.
    pub(super) fn accounts(&self) -> Vec<(Option<u32>, usize)> {
        let chunks = self.places.chunk_by(|a, b| a.account == b.account);
        chunks.map(|it| ((it[0].account != 0).then_some(it[0].account), it.len())).collect()
    }

    /// Returns the largest id; 0 if there are none.
    pub(super) fn id_max(&self) -> u32 {
        self.places.iter().map(|it| it.id).max().unwrap_or(0)
    }

    /// Calls a function with each stream of an account, by id.
    pub(super) fn for_each(
        &mut self,
        account: Option<u32>,
        mut visit: impl FnMut(SourceStream) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let account = account.unwrap_or(0);
        let first = self.places.partition_point(|it| it.account < account);
        let last = self.places.partition_point(|it| it.account <= account);
        let mut bytes = Vec::new();
        for n in first..last {
            let offset = self.places[n].offset;
            let distance = i64::try_from(offset)? - i64::try_from(self.at)?;
            self.file.seek_relative(distance)?;
            let mut length = [0; 4];
            self.file.read_exact(&mut length)?;
            let length = u32::from_le_bytes(length).min(ENTRY_BYTES_MAX);
            bytes.resize(length as usize, 0);
            self.file.read_exact(&mut bytes)?;
            self.at = offset + 4 + u64::from(length);
            visit(serde_json::from_slice(&bytes)?)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use import_from::{SourceRow, SourceTable};
    use serde_json::json;

    use super::*;

    #[test]
    fn streams_are_returned_by_account_and_each_id_once() {
        let mut spool = Spool::new().unwrap();
        for (id, account) in [(7, json!(2)), (3, json!(null)), (5, json!(2)), (7, json!(3)), (9, json!(1))] {
            let row = SourceRow::new(
                SourceTable::Streams,
                [("id", json!(id)), ("url", json!(format!("http://h/{id}"))), ("m3u_account_id", account)],
            );
            let is_new = spool.push(&SourceStream::read(&row).unwrap()).unwrap();
            assert_eq!(is_new, id != 7 || spool.places.len() == 1);
        }
        let mut spooled = spool.finish().unwrap();
        assert_eq!(spooled.accounts(), [(None, 1), (Some(1), 1), (Some(2), 2)]);
        assert_eq!(spooled.id_max(), 9);
        let mut found = Vec::new();
        for (account, _) in spooled.accounts() {
            spooled
                .for_each(account, |it| {
                    found.push((it.account, it.id, it.url.expose().to_owned()));
                    Ok(())
                })
                .unwrap();
        }
        let expected = [(None, 3), (Some(1), 9), (Some(2), 5), (Some(2), 7)];
        assert_eq!(found, expected.map(|(account, id)| (account, id, format!("http://h/{id}"))));
    }
}
