//! Compares every entry of a playlist with the stored streams, before anything is written.

use std::sync::Arc;

use domain::account::RefreshRecord;
use domain::channel::Channel;
use domain::ids::StreamId;
use domain::playlist::delta::{
    DeltaCounts, EntryChange, KnownStreams, MatchedEntry, MissingAction, MissingStream, SeenAgain,
    StalePolicy,
};
use domain::playlist::rules::Rules;
use domain::stream::Stream;
use domain::stream_identity::{KeyReader, PanelAgreement};
use storage::Table;
use tokio_util::sync::CancellationToken;

use super::adult::AdultStreams;
use super::error::ImportError;
use super::job::{ImportSummary, Job, SyncSummary};
use super::reading::ReadList;
use super::selection::{GroupChanges, Selection};

/// Maximum number of changes for an ordinary write. New streams are stored together, changed ones each in a different
/// block, and an ordinary write blocks all others while it is filled.
const FEW_NEW_MAX: usize = 2_000;
const FEW_CHANGED_MAX: usize = 500;
/// Maximum size of these changes, in bytes of their texts. An entry can have hundreds of kilobytes.
const FEW_BYTES_MAX: usize = 8 << 20;

/// The result of a comparison.
pub(super) struct Compared {
    pub(super) known: KnownStreams,
    pub(super) counts: DeltaCounts,
    /// New and changed entries, if the total number of changes is small.
    pub(super) few: Option<Vec<MatchedEntry>>,
    /// Stored streams that the playlist does not contain.
    pub(super) gone: Vec<MissingStream>,
    /// Decides which entries are imported.
    pub(super) selection: Selection,
    pub(super) groups: GroupChanges,
    pub(super) vanishing: StalePolicy,
    /// The channels that determined which streams may be removed.
    pub(super) channels: Arc<Table<Channel>>,
    /// Fingerprint of the stored streams.
    pub(super) fingerprint: u64,
    /// Number of entries that are films and episodes, and not streams.
    n_titles: u64,
    /// The streams that are marked as adult content.
    pub(super) adult: AdultStreams,
    /// How many streams of the last good playlist this one contains.
    seen_again: SeenAgain,
    /// The same for the streams of a week ago, by their records, and by the size of the playlists.
    seen_again_of_week: [SeenAgain; 2],
}

impl Compared {
    pub(super) fn n_gone(&self, fate: MissingAction) -> u64 {
        self.gone.iter().filter(|it| it.action == fate).count() as u64
    }

    /// Returns the number of entries that filters and disabled groups leave out.
    pub(super) fn n_left_out(&self) -> u64 {
        self.counts.n_left_out.saturating_sub(self.n_titles)
    }

    /// Checks that the playlist contains enough of the known streams.
    pub(super) fn check_losses(&self, job: &Job) -> Result<(), ImportError> {
        if job.options.confirm {
            return Ok(());
        }
        let PanelAgreement { n_pairs, n_agreeing } = self.known.panel_ids();
        if !self.known.panel_ids().is_trusted() {
            return Err(ImportError::Renumbered { n_pairs, n_agreeing });
        }
        if !self.seen_again.is_plausible() {
            let SeenAgain { n_known, n_seen } = self.seen_again;
            return Err(ImportError::Unfamiliar { n_known, n_seen });
        }
        match self.seen_again_of_week.into_iter().find(|it| !it.is_plausible()) {
            Some(SeenAgain { n_known, n_seen }) => Err(ImportError::Dwindled { n_known, n_seen }),
            None => Ok(()),
        }
    }

    /// Returns whether the playlist changes nothing.
    pub(super) fn is_same(&self) -> bool {
        let DeltaCounts { n_new, n_changed, .. } = self.counts;
        n_new + n_changed == 0 && self.gone.iter().all(|it| it.action == MissingAction::KeepStale)
    }

    pub(super) fn imported(&self, list: &ReadList) -> ImportSummary {
        ImportSummary {
            n_entries: list.n_entries(),
            contents: list.contents,
            n_new: self.counts.n_new,
            n_changed: self.counts.n_changed,
            n_stale: self.n_gone(MissingAction::MarkStale),
            n_removed: self.n_gone(MissingAction::Remove),
            n_left_out: self.n_left_out(),
            n_moved: self.counts.n_moved,
            n_contested: self.known.n_contested(),
            n_titles: self.n_titles,
            sync: SyncSummary::default(),
            problems: list.findings.problems.clone(),
            n_problems: list.findings.n_problems,
        }
    }
}

/// The stored streams of an account, which can be read while its list arrives.
pub(super) struct StoredStreams {
    known: KnownStreams,
    adult: AdultStreams,
    /// Fingerprint of the streams.
    fingerprint: u64,
}

impl StoredStreams {
    /// Reads the streams, until `stop`. `reader` reads the keys of the list.
    pub(super) fn read(job: &Job, reader: KeyReader, stop: &CancellationToken) -> Result<Self, ImportError> {
        let account = &job.account;
        let owner = u64::from(account.id.0);
        let streams = job.models.store.collection::<Stream>();
        // Read before the first stream, so that later changes are detected.
        let fingerprint = streams.fingerprint_of(owner);
        let mut known =
            KnownStreams::new(account.id, account.identity_order(), reader, Rules::new(&account.rules)?);
        known.reserve(streams.len_of(owner));
        let mut adult = AdultStreams::new(job.models.groups.load());
        streams.while_of(owner, |stream: Stream| {
            adult.note(stream.id, stream.is_adult(), stream.group());
            known.add(&stream);
            !stop.is_cancelled()
        })?;
        match stop.is_cancelled() {
            true => Err(ImportError::Stopped),
            false => Ok(Self { known, adult, fingerprint }),
        }
    }

    /// Returns whether neither the streams nor the marks of their groups have changed since.
    fn is_current(&self, job: &Job) -> bool {
        let streams = job.models.store.collection::<Stream>();
        streams.fingerprint_of(u64::from(job.account.id.0)) == self.fingerprint
            && self.adult.is_of(&job.models.groups.load())
    }
}

/// Compares a playlist with the stored streams of its account. They are read again if `stored` is missing or outdated.
pub(super) fn compare(
    job: &Job,
    list: &ReadList,
    stored: Option<StoredStreams>,
) -> Result<Compared, ImportError> {
    let (models, account) = (&job.models, &job.account);
    let read = || StoredStreams::read(job, list.keys.reader.clone(), &job.stop);
    let stored = stored.filter(|it| it.is_current(job)).map_or_else(read, Ok)?;
    let StoredStreams { mut known, mut adult, fingerprint } = stored;
    known.assign(&list.keys.entries);

    let mut selection = Selection::new(job)?;
    let mut few = FewChanges::new();
    let mut n_titles = 0;
    list.entries.for_each(|facts| {
        job.check_stop()?;
        let taken = known.match_properties(facts);
        if !selection.keep(&taken) {
            n_titles += u64::from(selection.is_title(&taken.properties));
            known.leave_out(&taken);
            return Ok(());
        }
        if let EntryChange::Changed(id) = taken.change {
            let group = taken.rule.group.as_ref().or(taken.properties.group.as_ref());
            adult.note(id, taken.properties.is_adult, group.map(String::as_str));
        }
        if matches!(taken.change, EntryChange::Unchanged(_)) {
            return Ok(());
        }
        let entry_bytes = taken.properties.text_bytes();
        few.add(taken, entry_bytes, known.counts());
        Ok::<_, ImportError>(())
    })?;
    let refresh = models.refreshes.load().get(account.id.0).cloned();
    let refresh = refresh.unwrap_or_else(|| Arc::new(RefreshRecord::new(account.id)));
    let now = job.options.now();
    let of_sizes = SeenAgain { n_known: refresh.n_entries_of_week(now), n_seen: list.n_entries() };
    let seen_again_of_week = [known.seen_again_since(refresh.compared_since(now)), of_sizes];
    let vanishing = StalePolicy {
        last_good: refresh.good_at.unwrap_or(now),
        now,
        stale_stream_days: account.stale_stream_days,
    };
    let channels = models.channels.load();
    let gone = known.finish(vanishing, |id| is_used(&channels, id));
    let n_going = gone.iter().filter(|it| it.action != MissingAction::KeepStale).count();
    let few = few.entries().filter(|_| known.counts().n_changed as usize + n_going <= FEW_CHANGED_MAX);
    Ok(Compared {
        counts: known.counts(),
        seen_again: known.seen_again(),
        seen_again_of_week,
        known,
        few,
        gone,
        groups: selection.changes(job, vanishing),
        selection,
        vanishing,
        channels,
        fingerprint,
        n_titles,
        adult,
    })
}

/// New and changed entries, as long as there are few.
struct FewChanges<T> {
    entries: Vec<T>,
    bytes: usize,
    are_too_many: bool,
}

impl<T> FewChanges<T> {
    fn new() -> Self {
        Self { entries: Vec::new(), bytes: 0, are_too_many: false }
    }

    /// Adds an entry whose texts have this size. `counts` contain it.
    fn add(&mut self, entry: T, entry_bytes: usize, counts: DeltaCounts) {
        self.bytes = self.bytes.saturating_add(entry_bytes);
        self.are_too_many |= counts.n_new > FEW_NEW_MAX as u64
            || counts.n_changed > FEW_CHANGED_MAX as u64
            || self.bytes > FEW_BYTES_MAX;
        match self.are_too_many {
            true => self.entries = Vec::new(),
            false => self.entries.push(entry),
        }
    }

    fn entries(self) -> Option<Vec<T>> {
        (!self.are_too_many).then_some(self.entries)
    }
}

/// Returns whether a channel uses this stream.
pub(super) fn is_used(channels: &Table<Channel>, id: StreamId) -> bool {
    channels.by("stream", id.0.to_be_bytes()).next().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_changes_are_kept_as_long_as_they_are_small() {
        let added = |n: usize, entry_bytes: usize| {
            let mut few = FewChanges::new();
            for n_new in 1..=n as u64 {
                few.add((), entry_bytes, DeltaCounts { n_new, ..DeltaCounts::default() });
            }
            few.entries().map(|it| it.len())
        };
        assert_eq!(added(2_000, 10), Some(2_000));
        assert_eq!(added(2_001, 10), None);
        assert_eq!(added(40, 200_000), Some(40));
        assert_eq!(added(50, 200_000), None, "10 MB");
    }
}
