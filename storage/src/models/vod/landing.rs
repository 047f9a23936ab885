//! Writes the titles that an account lists.
//!
//! One pass over the list checks it, a second one decides what changes, and the changes are sorted by the range of their
//! title. So each range is read and written once, by one commit or a few, whatever the order of the list is. Others write at
//! the same time: each title is read again when its changes are written.
//!
//! ```text
//!   list ── pass 1 ─▶ names of ids, size ── guard ─▶ pass 2 ─▶ changes by range ─▶ one range after the other
//!                                                      └─────▶ titles that are the same ─▶ merged at the end
//! ```

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::{fmt, io};

use domain::account::{Account, RefreshOutcome};
use domain::ids::{AccountId, VodCategoryId};
use domain::name_cleaning::NameCleaner;
use domain::playlist::delta::{MissingAction, SeenAgain, StalePolicy};
use domain::vod::delta::{EntryChange, KnownRelations};
use domain::vod::identity::{Belongs, EntryIdentity, IdNames, TitleIndex, contradicts};
use domain::vod::{
    AccountCategory, FoundTitle, KindSync, MatchReason, Relation, RelationId, Title, TitleId, TitleKind,
    TitleName, VodSync, uuid_of,
};
use serde::{Deserialize, Serialize};

use super::admin::{current, merge};
use super::names::{name_cleaner, uncleaned};
use super::packed::PackedList;
use super::{VodTitles, random_u128};
use crate::error::{Error, Result};
use crate::records::vod::title_owner;
use crate::store::Store;
use crate::write::Write;

/// Titles of one ordinary write. Each may be in another block.
const TITLES_PER_WRITE: usize = 200;
/// Changed titles of a range from which on the whole range is written. A range has some thousand titles.
const BULK_MIN: usize = 600;
/// Ids that are reserved at a time.
const RESERVED_IDS: u32 = 2_000;
/// Links of accounts with categories that one write removes.
const LINKS_PER_WRITE: usize = 1_000;
/// Maximum compressed size of the changes of an import, in bytes.
const CHANGES_BYTES_MAX: usize = 512 << 20;

/// A list of titles that can be read repeatedly.
pub trait FoundTitles {
    /// Visits the titles in the same order each time, until `visit` breaks.
    ///
    /// # Errors
    /// The list cannot be read.
    fn for_each(&self, visit: &mut dyn FnMut(FoundTitle) -> ControlFlow<()>) -> io::Result<()>;
}

impl FoundTitles for PackedList<FoundTitle> {
    fn for_each(&self, visit: &mut dyn FnMut(FoundTitle) -> ControlFlow<()>) -> io::Result<()> {
        self.for_each(visit)
    }
}

impl FoundTitles for [FoundTitle] {
    fn for_each(&self, visit: &mut dyn FnMut(FoundTitle) -> ControlFlow<()>) -> io::Result<()> {
        let _ = self.iter().cloned().try_for_each(visit);
        Ok(())
    }
}

/// The description of a list of titles.
#[derive(Debug, Clone)]
pub struct TitleSync {
    pub account: AccountId,
    pub kind: TitleKind,
    /// The categories whose titles the provider listed. `None` is all that are enabled. Titles of other enabled categories
    /// stay as they are.
    pub asked: Option<BTreeSet<VodCategoryId>>,
    /// Whether an admin accepts that most titles are missing.
    pub is_confirmed: bool,
    /// Days after which a stale relation is removed; 0 removes it at the next import.
    pub stale_days: u32,
    /// Milliseconds since 1970.
    pub now: i64,
}

/// The changes of an import of titles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LandedTitles {
    pub n_found: u64,
    pub n_new: u64,
    pub n_changed: u64,
    pub n_stale: u64,
    /// Relations that were stale for long enough.
    pub n_removed: u64,
    /// Titles that turned out to be the same as another one.
    pub n_merged: u64,
    /// Entries of categories that are not enabled.
    pub n_left_out: u64,
    /// Entries with the provider's id of another one.
    pub n_twice: u64,
    /// Ids of external catalogues that were ignored, because the account gives them to different titles.
    pub n_ids_ignored: u64,
}

/// As a message for people.
impl fmt::Display for LandedTitles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} titles", self.n_found)?;
        let counts = [
            (self.n_new, "new"),
            (self.n_changed, "changed"),
            (self.n_stale, "missing"),
            (self.n_removed, "removed"),
            (self.n_merged, "merged"),
            (self.n_left_out, "of disabled categories"),
            (self.n_twice, "listed twice"),
            (self.n_ids_ignored, "unusable ids"),
        ];
        counts.into_iter().filter(|it| it.0 != 0).try_for_each(|(n, what)| write!(f, ", {n} {what}"))
    }
}

/// The reason why a list of titles was not imported. Nothing was changed, except after [`LandError::Stopped`] and errors of
/// the store, after which a part may have been.
#[derive(Debug, thiserror::Error)]
pub enum LandError {
    #[error("the provider lists nothing")]
    Empty,
    #[error(
        "the list has only {n_seen} of {n_known} known titles; import it with confirmation to accept this"
    )]
    Unfamiliar { n_known: u64, n_seen: u64 },
    #[error("the list has {n} entries, at most {max} are accepted")]
    TooMany { n: usize, max: usize },
    #[error("the title was removed")]
    TitleGone,
    #[error("the account was deleted")]
    AccountGone,
    #[error("the import was stopped")]
    Stopped,
    #[error("failed to read the list: {0}")]
    List(#[from] io::Error),
    #[error(transparent)]
    Store(#[from] Error),
}

impl LandError {
    /// Returns the outcome to record.
    pub fn outcome(&self) -> RefreshOutcome {
        match self {
            Self::Unfamiliar { .. } => RefreshOutcome::AwaitingConfirmation,
            _ => RefreshOutcome::Error,
        }
    }
}

/// A change of one title.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum TitleChange {
    Add {
        account: AccountId,
        relation: RelationId,
        reason: MatchReason,
        found: Box<FoundTitle>,
    },
    Update {
        relation: RelationId,
        found: Box<FoundTitle>,
    },
    Stale {
        relation: RelationId,
        last_seen: i64,
    },
    Remove {
        relation: RelationId,
    },
    /// The rules that clean names changed.
    Clean {
        relation: RelationId,
        name: Option<String>,
    },
    /// The order of the relations changed with the priorities of accounts.
    Sort,
}

/// The changes of an import by the range of their title.
#[derive(Default)]
pub(super) struct TitleChanges {
    by_owner: BTreeMap<u64, PackedList<(TitleId, TitleChange)>>,
}

impl TitleChanges {
    pub(super) fn push(&mut self, title: TitleId, change: TitleChange) -> io::Result<()> {
        let list = self.by_owner.entry(title_owner(title.key()));
        list.or_insert_with(|| PackedList::new(CHANGES_BYTES_MAX)).push(&(title, change))
    }
}

/// The priorities of accounts, larger ones first.
pub(super) type Priorities = Arc<HashMap<AccountId, i32>>;

pub(super) fn priorities(store: &Store) -> Result<Priorities> {
    let accounts = store.collection::<Account>().all()?;
    Ok(Arc::new(accounts.iter().map(|it| (it.id, it.priority)).collect()))
}

pub(super) fn sort(title: &mut Title, priorities: &HashMap<AccountId, i32>) {
    title.sort_relations(|it| priorities.get(&it).copied().unwrap_or_default());
}

/// Ids of new titles and relations.
#[derive(Default)]
struct NewIds {
    reserved: std::ops::Range<u32>,
}

impl NewIds {
    /// Returns a number that neither a title nor a relation ever had.
    fn next(&mut self, store: &Store) -> Result<u32> {
        loop {
            if self.reserved.is_empty() {
                self.reserved = store.reserve_ids::<Title>(RESERVED_IDS)?;
            }
            // The key of a film is even, and that of a series with the same number follows it.
            if let Some(key) = self.reserved.next().filter(|it| it % 2 == 0) {
                return Ok(key / 2);
            }
        }
    }
}

/// Relations and titles that an import removed.
#[derive(Default)]
pub(super) struct Removed {
    pub(super) relations: Vec<(TitleId, RelationId)>,
}

impl VodTitles {
    /// Compares the titles that an account lists with the stored ones, and writes the differences in several commits. A list
    /// that changes nothing writes no title. Blocks; one import runs at a time.
    ///
    /// # Errors
    /// The list is empty, or lacks most of the known titles: nothing is changed.
    pub fn land_titles<L: FoundTitles + ?Sized>(
        &self,
        sync: &TitleSync,
        found: &L,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<LandedTitles, LandError> {
        let _only_one = self.landing.lock();
        Landing::new(self, sync, is_stopped)?.run(found)
    }

    /// Records an import that failed.
    pub fn note_failed_sync(
        &self,
        account: AccountId,
        kind: TitleKind,
        outcome: RefreshOutcome,
        message: &str,
        now: i64,
    ) -> Result<()> {
        let message = message.to_owned();
        self.store.write_blocking(move |write| {
            if write.get::<Account>(account.0)?.is_none() {
                return Ok(());
            }
            let mut record = write.get::<VodSync>(account.0)?.unwrap_or_else(|| VodSync::new(account));
            let of_kind = record.kind_sync_mut(kind).get_or_insert_with(|| no_sync(now));
            (of_kind.outcome, of_kind.message, of_kind.tried_at) = (outcome, message, now);
            write.put(&record)
        })
    }

    /// Removes all relations of accounts that do not exist any more, and the titles without another one. Several commits;
    /// blocks. Call after an account was deleted; if that is interrupted, the next import repeats it.
    pub fn remove_missing_accounts(&self) -> Result<(), LandError> {
        let _only_one = self.landing.lock();
        let priorities = priorities(&self.store)?;
        let mut changes = TitleChanges::default();
        let mut pushed = Ok(());
        self.while_each(|title| {
            for relation in title.relations.iter().filter(|it| !priorities.contains_key(&it.account)) {
                if pushed.is_ok() {
                    pushed = changes.push(title.id, TitleChange::Remove { relation: relation.id });
                }
            }
            pushed.is_ok()
        })?;
        pushed?;
        let mut removed = Removed::default();
        apply_all(&self.store, &changes, &priorities, 0, &mut removed, &|| false)?;
        self.clean_up(removed)?;
        let links = self.store.collection::<AccountCategory>().all()?;
        let links: Vec<u32> =
            links.iter().filter(|it| !priorities.contains_key(&it.account)).map(|it| it.id).collect();
        for some in links.chunks(LINKS_PER_WRITE) {
            let some = some.to_vec();
            self.store.write_blocking(move |write| {
                some.iter().try_for_each(|it| write.remove::<AccountCategory>(*it).map(drop))
            })?;
        }
        let syncs = self.store.collection::<VodSync>().ids();
        for id in syncs.into_iter().filter(|it| !priorities.contains_key(&AccountId(*it))) {
            self.store.write_blocking(move |write| write.remove::<VodSync>(id))?;
        }
        Ok(())
    }
}

fn no_sync(now: i64) -> KindSync {
    KindSync {
        outcome: RefreshOutcome::Error,
        message: String::new(),
        tried_at: now,
        good_at: None,
        n_good: 0,
        earlier: BTreeMap::new(),
    }
}

/// An import that is under way.
struct Landing<'a> {
    titles: &'a VodTitles,
    sync: &'a TitleSync,
    is_stopped: &'a dyn Fn() -> bool,
    priorities: Priorities,
    /// The enabled categories of the account.
    enabled: HashSet<VodCategoryId>,
    before: Option<KindSync>,
    known: KnownRelations,
    index: TitleIndex,
    cleaner: NameCleaner,
    names: IdNames,
    ids: NewIds,
    changes: TitleChanges,
    /// Titles that are the same, in the order in which they were found.
    merges: Vec<(TitleId, TitleId, MatchReason)>,
    landed: LandedTitles,
}

impl<'a> Landing<'a> {
    /// Reads all titles.
    fn new(
        titles: &'a VodTitles,
        sync: &'a TitleSync,
        is_stopped: &'a dyn Fn() -> bool,
    ) -> Result<Self, LandError> {
        let store = &titles.store;
        if store.collection::<Account>().get(sync.account.0)?.is_none() {
            return Err(LandError::AccountGone);
        }
        let links = store.collection::<AccountCategory>().by("account", sync.account.0.to_be_bytes())?;
        let enabled =
            links.iter().filter(|it| it.enabled && it.kind == sync.kind).map(|it| it.category).collect();
        let record = store.collection::<VodSync>().get(sync.account.0)?;
        let mut landing = Self {
            titles,
            sync,
            is_stopped,
            priorities: priorities(store)?,
            enabled,
            before: record.and_then(|it| it.kind_sync(sync.kind).cloned()),
            known: KnownRelations::new(sync.account),
            index: TitleIndex::default(),
            cleaner: name_cleaner(store)?,
            names: IdNames::default(),
            ids: NewIds::default(),
            changes: TitleChanges::default(),
            merges: Vec::new(),
            landed: LandedTitles::default(),
        };
        let mut pushed = Ok(());
        let is_wanted = |id: TitleId| id.kind() == sync.kind;
        titles.while_each_id(is_wanted, |mut title| {
            pushed = landing.mend(&mut title);
            landing.known.add(&title);
            landing.index.add(&title);
            pushed.is_ok() && !is_stopped()
        })?;
        pushed?;
        landing.check_stop()?;
        for (into, from, reason) in landing.index.take_same() {
            let (one, other) = (landing.index.current(into), landing.index.current(from));
            landing.merge(one.min(other), one.max(other), reason);
        }
        Ok(landing)
    }

    /// Applies changes of accounts and of rules to a stored title: their priorities, those that were deleted, and names.
    fn mend(&mut self, title: &mut Title) -> io::Result<()> {
        for (relation, name) in uncleaned(title, &self.cleaner).collect::<Vec<_>>() {
            if let Some(known) = title.relation_mut(relation) {
                known.clean_name.clone_from(&name);
            }
            self.changes.push(title.id, TitleChange::Clean { relation, name })?;
        }
        for relation in title.relations.iter().filter(|it| !self.priorities.contains_key(&it.account)) {
            self.changes.push(title.id, TitleChange::Remove { relation: relation.id })?;
        }
        match title.relations.len() > 1 && !is_sorted(title, &self.priorities) {
            true => self.changes.push(title.id, TitleChange::Sort),
            false => Ok(()),
        }
    }

    fn run<L: FoundTitles + ?Sized>(mut self, found: &L) -> Result<LandedTitles, LandError> {
        self.check(found)?;
        self.each(found, |landing, found| landing.compare(found))?;
        self.find_missing()?;
        let (store, now) = (&self.titles.store, self.sync.now);
        let mut removed = Removed::default();
        apply_all(store, &self.changes, &self.priorities, now, &mut removed, self.is_stopped)?;
        self.landed.n_merged = self.merge_all()?;
        self.titles.clean_up(removed)?;
        self.finish()?;
        Ok(self.landed)
    }

    fn check_stop(&self) -> Result<(), LandError> {
        if (self.is_stopped)() { Err(LandError::Stopped) } else { Ok(()) }
    }

    /// Visits the entries of enabled categories. Returns the number of all entries.
    fn each<L: FoundTitles + ?Sized>(
        &mut self,
        found: &L,
        mut visit: impl FnMut(&mut Self, FoundTitle) -> Result<(), LandError>,
    ) -> Result<u64, LandError> {
        let mut n = 0_u64;
        let mut failed = None;
        found.for_each(&mut |mut title| {
            n += 1;
            title.limit();
            title.clean_name =
                self.cleaner.clean(self.sync.kind.into(), self.sync.account, &title.facts.name);
            let visited = match () {
                () if n.is_multiple_of(1_000) && (self.is_stopped)() => Err(LandError::Stopped),
                () if self.enabled.contains(&title.category) => visit(self, title),
                () => Ok(()),
            };
            failed = visited.err();
            if failed.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        failed.map_or(Ok(n), Err)
    }

    /// Checks that the list is plausible.
    fn check<L: FoundTitles + ?Sized>(&mut self, found: &L) -> Result<(), LandError> {
        let n_all = self.each(found, |landing, found| {
            landing.landed.n_found += 1;
            landing.known.list(&found.provider_id);
            if !found.facts.ids.is_empty() {
                landing.names.add(&found.facts.ids, &TitleName::new(found.name()));
            }
            Ok(())
        })?;
        self.names.finish();
        self.landed.n_left_out = n_all - self.landed.n_found;
        self.landed.n_ids_ignored = self.names.n_ignored() as u64;
        if self.landed.n_found == 0 && self.is_anything_asked() {
            return Err(LandError::Empty);
        }
        let mut seen_again = self.known.seen_again(|it| self.is_asked(it));
        if !self.sync.is_confirmed && !seen_again.is_plausible() {
            self.find_renumbered(found)?;
            seen_again = self.known.seen_again(|it| self.is_asked(it));
        }
        if !self.sync.is_confirmed && !seen_again.is_plausible() {
            let SeenAgain { n_known, n_seen } = seen_again;
            return Err(LandError::Unfamiliar { n_known, n_seen });
        }
        Ok(())
    }

    /// Counts known titles as listed whose provider has given them other ids: those with the same id of an external catalogue,
    /// with the same name and year, or with the same name in the same category.
    fn find_renumbered<L: FoundTitles + ?Sized>(&mut self, found: &L) -> Result<(), LandError> {
        let (mut listed, mut listed_in) = (HashSet::new(), HashSet::new());
        self.each(found, |landing, mut found| {
            landing.names.keep_good(&mut found.facts.ids);
            let name = TitleName::new(found.name());
            found.facts.year = found.facts.year.or(name.year);
            if let Belongs::To(title, _) = landing.index.find(identity(&found, &name)) {
                listed_in.insert((title, found.category));
                if found.facts.year.is_some() || !found.facts.ids.is_empty() {
                    listed.insert(title);
                }
            }
            Ok(())
        })?;
        let index = &self.index;
        self.known.list_titles(|title, category| {
            let title = index.current(title);
            listed.contains(&title) || listed_in.contains(&(title, category))
        });
        Ok(())
    }

    /// Returns whether the provider was asked for the titles of an enabled category.
    fn is_asked(&self, category: VodCategoryId) -> bool {
        self.enabled.contains(&category) && self.sync.asked.as_ref().is_none_or(|it| it.contains(&category))
    }

    fn is_anything_asked(&self) -> bool {
        self.enabled.iter().any(|it| self.is_asked(*it))
    }

    /// Decides what an entry changes.
    fn compare(&mut self, mut found: FoundTitle) -> Result<(), LandError> {
        self.names.keep_good(&mut found.facts.ids);
        // Most names are read for this only, if at all.
        let mut name = None;
        if found.facts.year.is_none() {
            let read = name.insert(TitleName::new(found.name()));
            found.facts.year = read.year;
        }
        let change = self.known.compare(&found);
        if change == EntryChange::Same {
            return Ok(());
        }
        let name = name.unwrap_or_else(|| TitleName::new(found.name()));
        match change {
            EntryChange::Same => {}
            EntryChange::Twice => self.landed.n_twice += 1,
            EntryChange::Changed(title, relation) => {
                self.landed.n_changed += 1;
                self.change(self.index.current(title), relation, found, &name)?;
            }
            EntryChange::New => {
                self.landed.n_new += 1;
                let relation = RelationId(self.ids.next(&self.titles.store)?);
                let (title, reason) = self.place(&found, &name)?;
                self.known.put(&found, title, relation);
                self.add(title, relation, reason, found, &name)?;
            }
        }
        Ok(())
    }

    /// Returns the title of an entry, a new one if necessary.
    fn place(&mut self, found: &FoundTitle, name: &TitleName) -> Result<(TitleId, MatchReason), LandError> {
        Ok(match self.index.find(identity(found, name)) {
            Belongs::To(title, reason) => (title, reason),
            Belongs::ToBoth(into, from, reason) => {
                self.merge(into, from, reason.clone());
                (into, reason)
            }
            Belongs::New => (self.new_title()?, MatchReason::First),
        })
    }

    fn new_title(&mut self) -> Result<TitleId, LandError> {
        let number = self.ids.next(&self.titles.store)?;
        Ok(TitleId::new(self.sync.kind, number).expect("half of a key is a number"))
    }

    fn add(
        &mut self,
        title: TitleId,
        relation: RelationId,
        reason: MatchReason,
        found: FoundTitle,
        name: &TitleName,
    ) -> Result<(), LandError> {
        self.index.put(identity(&found, name), title, true);
        let found = Box::new(found);
        let account = self.sync.account;
        Ok(self.changes.push(title, TitleChange::Add { account, relation, reason, found })?)
    }

    /// Decides where a known relation with other values belongs.
    fn change(
        &mut self,
        title: TitleId,
        relation: RelationId,
        found: FoundTitle,
        name: &TitleName,
    ) -> Result<(), LandError> {
        let belongs = self.index.find(identity(&found, name));
        if found.facts.ids.is_empty()
            && let Belongs::To(to, MatchReason::NameAndYear) = &belongs
            && *to != title
            && self.is_renamed(title, relation, name)?
        {
            // The provider has numbered its titles anew.
            let to = *to;
            return self.move_to(title, to, relation, MatchReason::NameAndYear, found, name);
        }
        let stays = found.facts.ids.is_empty() || matches!(&belongs, Belongs::To(to, _) if *to == title);
        if !stays
            && let Some(stored) = self.titles.get(title)?
            && let Some(before) = stored.relation(relation).filter(|it| !it.is_pinned)
        {
            let is_other = contradicts(&before.ids(), &found.facts.ids);
            match belongs {
                Belongs::New if is_other => {
                    // With the same name, the provider has corrected an id.
                    let is_same_name = TitleName::new(before.name()).words == name.words;
                    if stored.relations.len() > 1 || !is_same_name {
                        let to = self.new_title()?;
                        return self.move_to(title, to, relation, MatchReason::First, found, name);
                    }
                }
                Belongs::New => {}
                Belongs::To(to, reason) if is_other => {
                    return self.move_to(title, to, relation, reason, found, name);
                }
                Belongs::ToBoth(into, from, reason) if is_other => {
                    self.merge(into, from, reason.clone());
                    return self.move_to(title, into, relation, reason, found, name);
                }
                Belongs::To(to, reason) => self.merge(to.min(title), to.max(title), reason),
                Belongs::ToBoth(into, from, reason) => {
                    self.merge(into, from, reason.clone());
                    if title != into && title != from {
                        self.merge(into.min(title), into.max(title), reason);
                    }
                }
            }
        }
        self.index.put(identity(&found, name), title, false);
        Ok(self.changes.push(title, TitleChange::Update { relation, found: Box::new(found) })?)
    }

    /// Returns whether a known relation had another name, and no ids that tell which title it is.
    fn is_renamed(&self, title: TitleId, relation: RelationId, name: &TitleName) -> Result<bool, LandError> {
        let stored = self.titles.get(title)?;
        let before = stored.as_ref().and_then(|it| it.relation(relation)).filter(|it| !it.is_pinned);
        Ok(before.is_some_and(|it| it.ids().is_empty() && TitleName::new(it.name()).words != name.words))
    }

    fn move_to(
        &mut self,
        from: TitleId,
        to: TitleId,
        relation: RelationId,
        reason: MatchReason,
        found: FoundTitle,
        name: &TitleName,
    ) -> Result<(), LandError> {
        self.changes.push(from, TitleChange::Remove { relation })?;
        // Under a new id, because another film plays under the old one.
        let relation = RelationId(self.ids.next(&self.titles.store)?);
        self.add(to, relation, reason, found, name)
    }

    fn merge(&mut self, into: TitleId, from: TitleId, reason: MatchReason) {
        if into != from {
            self.index.merge(into, from);
            self.merges.push((into, from, reason));
        }
    }

    /// Decides what becomes of the relations that the list does not have.
    fn find_missing(&mut self) -> Result<(), LandError> {
        let at = StalePolicy {
            last_good: self.before.as_ref().and_then(|it| it.good_at).unwrap_or(self.sync.now),
            now: self.sync.now,
            stale_stream_days: self.sync.stale_days,
        };
        // A category that was disabled since is not asked for, and its titles are not wanted.
        let missing = self.known.missing(at, |it| self.enabled.contains(&it) && !self.is_asked(it));
        for it in missing {
            let change = match it.action {
                MissingAction::KeepStale => continue,
                MissingAction::MarkStale => {
                    self.landed.n_stale += 1;
                    TitleChange::Stale { relation: it.relation, last_seen: it.last_seen }
                }
                MissingAction::Remove => {
                    self.landed.n_removed += 1;
                    TitleChange::Remove { relation: it.relation }
                }
            };
            self.changes.push(self.index.current(it.title), change)?;
        }
        Ok(())
    }

    /// Merges the titles that turned out to be the same.
    fn merge_all(&self) -> Result<u64, LandError> {
        let mut n = 0;
        for (into, from, reason) in &self.merges {
            self.check_stop()?;
            let (into, from, reason, now) = (*into, *from, reason.clone(), self.sync.now);
            let priorities = Arc::clone(&self.priorities);
            let is_merged = self
                .titles
                .store
                .write_blocking(move |write| merge(write, into, from, &reason, &priorities, now))?;
            n += u64::from(is_merged);
        }
        Ok(n)
    }

    /// Records the import.
    fn finish(&self) -> Result<(), LandError> {
        let (account, kind, now) = (self.sync.account, self.sync.kind, self.sync.now);
        let mut earlier = BTreeMap::new();
        for category in self.enabled.iter().filter(|it| !self.is_asked(**it)) {
            let before = self.before.as_ref();
            let then = before.and_then(|it| it.earlier.get(category).copied().or(it.good_at));
            earlier.extend(then.map(|it| (*category, it)));
        }
        let of_kind = KindSync {
            outcome: RefreshOutcome::Success,
            message: self.landed.to_string(),
            tried_at: now,
            good_at: Some(now),
            n_good: self.landed.n_found,
            earlier,
        };
        self.titles.store.write_blocking(move |write| {
            if write.get::<Account>(account.0)?.is_none() {
                return Err(LandError::AccountGone);
            }
            let mut record = write.get::<VodSync>(account.0)?.unwrap_or_else(|| VodSync::new(account));
            *record.kind_sync_mut(kind) = Some(of_kind);
            Ok(write.put(&record)?)
        })
    }
}

fn identity<'a>(found: &'a FoundTitle, name: &'a TitleName) -> EntryIdentity<'a> {
    EntryIdentity { ids: &found.facts.ids, name, year: found.facts.year }
}

fn is_sorted(title: &Title, priorities: &HashMap<AccountId, i32>) -> bool {
    let mut sorted: Vec<(bool, i32, AccountId, RelationId)> = Vec::with_capacity(title.relations.len());
    for it in &title.relations {
        let priority = priorities.get(&it.account).copied().unwrap_or_default();
        sorted.push((it.is_stale(), -priority.max(-i32::MAX), it.account, it.id));
    }
    sorted.is_sorted()
}

/// Applies all changes, range by range.
pub(super) fn apply_all(
    store: &Store,
    changes: &TitleChanges,
    priorities: &Priorities,
    now: i64,
    removed: &mut Removed,
    is_stopped: &dyn Fn() -> bool,
) -> Result<(), LandError> {
    for (owner, list) in &changes.by_owner {
        if is_stopped() {
            return Err(LandError::Stopped);
        }
        let mut by_title: BTreeMap<TitleId, Vec<TitleChange>> = BTreeMap::new();
        list.for_each(|(title, change)| {
            by_title.entry(title).or_default().push(change);
            ControlFlow::Continue(())
        })?;
        if by_title.len() >= BULK_MIN {
            apply_to_range(store, *owner, by_title, priorities, now, removed)?;
        } else {
            apply_few(store, by_title, priorities, now, removed)?;
        }
    }
    Ok(())
}

/// Writes the changed titles one by one.
fn apply_few(
    store: &Store,
    by_title: BTreeMap<TitleId, Vec<TitleChange>>,
    priorities: &Priorities,
    now: i64,
    removed: &mut Removed,
) -> Result<(), LandError> {
    let mut by_title = by_title.into_iter().peekable();
    while by_title.peek().is_some() {
        let some: Vec<_> = by_title.by_ref().take(TITLES_PER_WRITE).collect();
        let priorities = Arc::clone(priorities);
        let gone = store.write_blocking(move |write| {
            let mut removed = Removed::default();
            write.keep_reserved_ids::<Title>();
            for (id, changes) in &some {
                // An admin may have merged it meanwhile.
                let title = current(write, *id)?;
                put_changed(write, *id, title, changes, &priorities, now, &mut removed)?;
            }
            Ok::<_, Error>(removed)
        })?;
        removed.relations.extend(gone.relations);
    }
    Ok(())
}

/// Writes a title after its changes, or removes it.
fn put_changed(
    write: &mut Write<'_>,
    id: TitleId,
    title: Option<Title>,
    changes: &[TitleChange],
    priorities: &HashMap<AccountId, i32>,
    now: i64,
    removed: &mut Removed,
) -> Result<()> {
    let key = title.as_ref().map_or(id, |it| it.id).key();
    match changed(id, title, changes, priorities, now, removed)? {
        Some(title) => write.put(&title),
        None => write.remove::<Title>(key).map(drop),
    }
}

/// Writes all titles of a range anew.
fn apply_to_range(
    store: &Store,
    owner: u64,
    by_title: BTreeMap<TitleId, Vec<TitleChange>>,
    priorities: &Priorities,
    now: i64,
    removed: &mut Removed,
) -> Result<(), LandError> {
    let titles = store.collection::<Title>();
    let mut bulk = store.bulk_write::<Title>(owner)?;
    let mut gone = Removed::default();
    let mut done = HashSet::new();
    let mut failed = None;
    titles.for_each_of(owner, |title| {
        let id = title.id;
        done.insert(id);
        if failed.is_none() {
            let now = match by_title.get(&id) {
                Some(changes) => changed(id, Some(title), changes, priorities, now, &mut gone),
                None => Ok(Some(title)),
            };
            failed = now.and_then(|it| it.iter().try_for_each(|it| bulk.put(it))).err();
        }
    })?;
    failed.map_or(Ok(()), Err)?;
    for (id, changes) in by_title.iter().filter(|(id, _)| !done.contains(*id)) {
        if let Some(title) = changed(*id, None, changes, priorities, now, &mut gone)? {
            bulk.put(&title)?;
        }
    }
    let (before, priorities) = (store.clone(), Arc::clone(priorities));
    let more = bulk.commit(move |write, touched| {
        let mut gone = Removed::default();
        for id in touched.iter().map(|it| TitleId::from_key(*it)) {
            // The bulk write is not visible yet: this reads what others wrote since it began.
            let theirs = before.collection::<Title>().get(id.key())?;
            match by_title.get(&id) {
                // It was created or moved there meanwhile.
                None => match theirs {
                    Some(title) => write.put(&title)?,
                    None => drop(write.remove::<Title>(id.key())?),
                },
                Some(changes) => put_changed(write, id, theirs, changes, &priorities, now, &mut gone)?,
            }
        }
        Ok::<_, Error>(gone)
    })?;
    for it in [gone, more] {
        removed.relations.extend(it.relations);
    }
    Ok(())
}

fn put_found(relation: &mut Relation, found: &FoundTitle) {
    let label = TitleName::new(&found.facts.name).label;
    relation.label = (!label.is_empty()).then_some(label);
    found.clone().put_into(relation);
}

/// Returns a title after its changes, `None` if no relation is left.
fn changed(
    id: TitleId,
    title: Option<Title>,
    changes: &[TitleChange],
    priorities: &HashMap<AccountId, i32>,
    now: i64,
    removed: &mut Removed,
) -> Result<Option<Title>> {
    let mut title = match title {
        Some(title) => title,
        None => Title::new(id, uuid_of(id.key(), random_u128()?), now),
    };
    for change in changes {
        match change {
            TitleChange::Add { account, relation, reason, found } => {
                let mut added = Relation::new(*relation, *account, found.category, "", now);
                added.reason = reason.clone();
                put_found(&mut added, found);
                title.relations.push(added);
            }
            TitleChange::Update { relation, found } => {
                if let Some(known) = title.relation_mut(*relation) {
                    put_found(known, found);
                    known.last_seen = None;
                }
            }
            TitleChange::Stale { relation, last_seen } => {
                if let Some(known) = title.relation_mut(*relation) {
                    known.last_seen = Some(*last_seen);
                }
            }
            TitleChange::Remove { relation } => {
                title.relations.retain(|it| it.id != *relation);
                removed.relations.push((title.id, *relation));
            }
            TitleChange::Clean { relation, name } => {
                if let Some(known) = title.relation_mut(*relation) {
                    known.clean_name.clone_from(name);
                }
            }
            TitleChange::Sort => {}
        }
    }
    if title.relations.is_empty() {
        return Ok(None);
    }
    sort(&mut title, priorities);
    title.limit_size();
    title.updated_at = title.updated_at.max(now);
    Ok(Some(title))
}
