//! Decides the ids of all streams, and which of them the store has already.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use domain::account::CUSTOM_ACCOUNT;
use domain::ids::{AccountId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::Stream;
use import_from::{Existing, Foundation, IdPicker, Report, SourceTable};
use storage::Store;

use super::spool::SpooledStreams;

/// The ids of the streams of a source in the store.
#[derive(Default)]
pub(super) struct ResolvedStreams {
    /// By the id of the source.
    pub(super) ids: HashMap<u32, StreamId>,
    /// The new streams by account of the store: the account of the source, and how many there are.
    pub(super) new: BTreeMap<AccountId, Vec<(Option<u32>, usize)>>,
    /// The streams of the store that the source has as well.
    pub(super) known: HashSet<StreamId>,
}

impl ResolvedStreams {
    /// Returns the number of streams that are written.
    pub(super) fn n_new(&self) -> usize {
        self.new.values().flatten().map(|it| it.1).sum()
    }
}

/// Decides about each stream. A stream of an account that the store has already is recognised by its address.
pub(super) fn resolve(
    store: &Store,
    streams: &mut SpooledStreams,
    foundation: &Foundation,
    existing: &Existing,
    report: &mut Report,
) -> anyhow::Result<ResolvedStreams> {
    let mut resolved = ResolvedStreams::default();
    let mut ids = IdPicker::new(existing.unused.stream, [streams.id_max()]);
    for (source, n_streams) in streams.accounts() {
        let kind = report.kind(SourceTable::Streams.label());
        let Some(account) = foundation.account(source) else {
            let source = source.unwrap_or_default();
            for _ in 0..n_streams {
                kind.skip(
                    format!("a stream of account {source}"),
                    "its account was skipped or does not exist",
                );
            }
            continue;
        };
        let mut by_url: HashMap<SourceUrl, VecDeque<StreamId>> = HashMap::new();
        store.collection::<Stream>().for_each_of(u64::from(account.0), |stream| {
            by_url.entry(stream.provider.url).or_default().push_back(stream.id);
        })?;
        let mut n_new = 0;
        streams.for_each(source, |stream| {
            if account != CUSTOM_ACCOUNT && stream.url.is_file() {
                kind.skip(
                    format!("stream {}", stream.id),
                    "a list of a provider may not name files of this machine",
                );
                return Ok(());
            }
            let known = by_url.get_mut(&stream.url).and_then(VecDeque::pop_front);
            let id = match known {
                Some(id) => {
                    kind.merged += 1;
                    resolved.known.insert(id);
                    id
                }
                None => {
                    kind.taken += 1;
                    n_new += 1;
                    StreamId(ids.pick(stream.id))
                }
            };
            resolved.ids.insert(stream.id, id);
            Ok(())
        })?;
        if n_new > 0 {
            resolved.new.entry(account).or_default().push((source, n_new));
        }
    }
    Ok(resolved)
}
