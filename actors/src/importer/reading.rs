//! Reads the playlist of an account into a spool.

use domain::account::Account;
use domain::egress::Distance;
use domain::group;
use domain::playlist::content::ContentCounts;
use domain::playlist::delta;
use domain::playlist::m3u::PlaylistEntry;
use domain::stream::StreamProperties;
use domain::stream_identity::{IdentityKeys, KeyReader, account_logins};

use super::error::ImportError;
use super::job::Job;
use super::progress::RefreshPhase;
use crate::memory::usable_bytes;
use crate::playlist::{PlaylistBytes, PlaylistFindings};
use crate::refresh::spool::{self, Spool};

/// A playlist that was read to its end.
pub(super) struct ReadList {
    /// The stream properties of each entry, in the order of the playlist.
    pub(super) entries: Spool<StreamProperties>,
    pub(super) keys: ListKeys,
    pub(super) findings: PlaylistFindings,
    pub(super) contents: ContentCounts,
    /// The network that it came from; `None` for a file.
    pub(super) origin: Option<Distance>,
}

impl ReadList {
    pub(super) fn n_entries(&self) -> u64 {
        self.entries.len() as u64
    }
}

/// The keys of the entries of a playlist, in its order.
pub(super) struct ListKeys {
    /// Reads the keys of streams as those of the entries were read.
    pub(super) reader: KeyReader,
    pub(super) entries: Vec<IdentityKeys>,
}

impl ListKeys {
    pub(super) fn new(account: &Account) -> Self {
        Self { reader: KeyReader::new(account_logins(account)), entries: Vec::new() }
    }

    /// Adds the next entry.
    pub(super) fn add(&mut self, properties: &StreamProperties) {
        self.entries.push(self.reader.read(properties));
    }
}

/// Reads a playlist to its end, and reports the progress. `keys` are those of an empty list.
pub(super) fn read(job: &Job, bytes: PlaylistBytes, mut keys: ListKeys) -> Result<ReadList, ImportError> {
    let mut entries = Spool::new(spool::bytes_max(usable_bytes()));
    let mut contents = ContentCounts::default();
    let mut is_parsing = false;
    let origin = bytes.origin();
    let findings = bytes.parse(
        job.options.limits,
        &mut |entry| {
            let mut properties = properties(entry);
            job.normalise(&mut properties);
            contents.add(properties.content);
            keys.add(&properties);
            entries.push(&properties)
        },
        |n_bytes, findings| {
            job.check_stop()?;
            job.reporter.update(|it| {
                if !std::mem::replace(&mut is_parsing, true) {
                    it.phase = RefreshPhase::Parsing;
                }
                (it.bytes, it.entries) = (n_bytes, findings.n_entries);
            });
            Ok::<_, ImportError>(())
        },
    )?;
    Ok(ReadList { entries, keys, findings, contents, origin: origin.get().copied() })
}

/// Returns the stream properties of an entry, with a group name of an acceptable length.
fn properties(entry: PlaylistEntry) -> StreamProperties {
    let mut properties = delta::stream_properties(entry);
    if let Some(group) = &mut properties.group
        && let Some((end, _)) = group.char_indices().nth(group::GROUP_NAME_CHARS_MAX)
    {
        group.truncate(end);
    }
    properties
}
