//! Imports the films and series of an M3U playlist, after its channels.
//!
//! The entries are read from the spool of the refresh again, once for each kind of list that is written, so that only the
//! episodes of some series are in memory at a time.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::ops::ControlFlow;

use domain::account::{Account, RefreshOutcome};
use domain::ids::VodCategoryId;
use domain::playlist::filters::StreamFilters;
use domain::playlist::rules::Rules;
use domain::playlist::titles::{ListedFile, ListedTitle, is_title, listed_title};
use domain::stream::StreamProperties;
use domain::vod::category::UNCATEGORISED;
use domain::vod::{AccountCategory, FoundCategory, FoundEpisode, FoundTitle, RelationId, TitleKind};
use storage::{FoundEpisodes, FoundTitles, LandedTitles, Models, TitleSync};
use tracing::warn;

use super::error::{VodError, words_of};
use super::land;
use crate::refresh::Spool;

/// Maximum number of episodes that are in memory at a time, about.
const EPISODES_AT_ONCE: u64 = 50_000;
/// Maximum number of categories that are kept of a playlist.
const CATEGORIES_MAX: usize = 5_000;

/// Returns whether films and episodes of the playlist of an account are titles, and not streams.
pub(crate) fn has_titles(account: &Account) -> bool {
    account.enable_vod && !account.list.lists_titles()
}

/// Returns whether an entry of the playlist of an account is a title, and not a stream.
pub(crate) fn takes(account: &Account, properties: &StreamProperties) -> bool {
    has_titles(account) && is_title(properties)
}

/// The films and series of a playlist.
pub(crate) struct TitleImport<'a> {
    pub(crate) models: &'a Models,
    pub(crate) account: &'a Account,
    pub(crate) entries: &'a Spool<StreamProperties>,
    /// Whether an admin accepts that most titles are missing.
    pub(crate) confirm: bool,
    /// Milliseconds since 1970.
    pub(crate) now: i64,
    pub(crate) is_stopped: &'a dyn Fn() -> bool,
}

/// The titles of one kind in a playlist.
struct Listed<'a> {
    import: &'a TitleImport<'a>,
    kind: TitleKind,
    reader: &'a Reader,
    /// The categories by the name of their group.
    categories: &'a HashMap<String, VodCategoryId>,
}

/// Reads entries with the settings of the account.
struct Reader {
    rules: Rules,
    filters: Option<StreamFilters>,
}

impl Reader {
    fn new(account: &Account) -> Self {
        // The refresh was refused if they are invalid.
        Self {
            rules: Rules::new(&account.rules).unwrap_or_default(),
            filters: StreamFilters::new(&account.filters).ok(),
        }
    }

    fn read(&self, properties: StreamProperties) -> Option<ListedTitle> {
        let is_kept = is_title(&properties) && self.filters.as_ref().is_none_or(|it| it.keep(&properties));
        let rule = is_kept.then(|| self.rules.apply(&properties))?;
        listed_title(properties, rule)
    }
}

impl TitleImport<'_> {
    /// Imports the titles. A failure concerns one kind, is recorded and logged, and changes nothing of that kind.
    pub(crate) fn run(&self) {
        let reader = Reader::new(self.account);
        for kind in TitleKind::ALL {
            let Err(error) = self.kind(kind, &reader) else { continue };
            let (what, _) = words_of(kind);
            warn!(
                account.id = %self.account.id,
                "failed to import the {what} of account \"{}\": {error}", self.account.name
            );
            let Some(outcome) = error.outcome() else { continue };
            if let Err(error) = self.note_failure(kind, outcome, &error.sentence()) {
                warn!(account.id = %self.account.id, "failed to store the result of an import: {error}");
            }
        }
    }

    fn note_failure(&self, kind: TitleKind, outcome: RefreshOutcome, message: &str) -> storage::Result<()> {
        self.models.vod.note_failed_sync(self.account.id, kind, outcome, message, self.now)
    }

    fn kind(&self, kind: TitleKind, reader: &Reader) -> Result<(), VodError> {
        let (groups, n_entries) = self.groups(kind, reader)?;
        let (what, _) = words_of(kind);
        if n_entries == 0 {
            let syncs = self.models.vod_syncs.load();
            let had_some = syncs
                .get(self.account.id.0)
                .and_then(|it| it.kind_sync(kind))
                .is_some_and(|it| it.n_good > 0);
            return if had_some { Err(VodError::Empty { what }) } else { Ok(()) };
        }
        let found = groups.into_iter().map(|provider_id| {
            let name = if provider_id.is_empty() { UNCATEGORISED.to_owned() } else { provider_id.clone() };
            FoundCategory { kind, provider_id, name }
        });
        let links = land::categories(self.models, self.account, kind, found.collect(), self.now)?;
        let enabled = links.iter().filter(|it| it.enabled);
        let ids = |it: &AccountCategory| (it.provider_ids.clone(), it.category);
        let categories: HashMap<String, VodCategoryId> = enabled
            .map(ids)
            .flat_map(|(names, category)| names.into_iter().map(move |name| (name, category)))
            .collect();
        if categories.is_empty() {
            return Ok(());
        }
        let listed = Listed { import: self, kind, reader, categories: &categories };
        let sync = TitleSync {
            account: self.account.id,
            kind,
            asked: None,
            is_confirmed: self.confirm,
            stale_days: self.account.stale_stream_days,
            now: self.now,
        };
        let _: LandedTitles = land::titles(self.models, &sync, &listed, self.is_stopped)?;
        match kind {
            TitleKind::Movie => Ok(()),
            TitleKind::Series => self.episodes(&listed, n_entries),
        }
    }

    /// Returns the groups of the titles of a kind, and the number of their entries.
    fn groups(&self, kind: TitleKind, reader: &Reader) -> Result<(Vec<String>, u64), VodError> {
        let mut seen = BTreeMap::new();
        let mut n_entries = 0;
        self.entries.for_each(|properties| {
            self.check_stop()?;
            if let Some(title) = reader.read(properties).filter(|it| it.kind == kind) {
                n_entries += 1;
                let n = seen.len();
                if n < CATEGORIES_MAX {
                    seen.entry(title.category).or_insert(n);
                }
            }
            Ok::<_, VodError>(())
        })?;
        let mut groups: Vec<_> = seen.into_iter().collect();
        groups.sort_unstable_by_key(|it| it.1);
        Ok((groups.into_iter().map(|it| it.0).collect(), n_entries))
    }

    /// Writes the episodes of all series, those of some series at a time.
    fn episodes(&self, listed: &Listed<'_>, n_entries: u64) -> Result<(), VodError> {
        let mut relations: HashMap<String, RelationId> = HashMap::new();
        self.models.vod.for_each(|title| {
            if title.id.kind() == TitleKind::Series {
                let own = title.relations_of(self.account.id);
                relations.extend(own.map(|it| (it.provider_id.clone(), it.id)));
            }
        })?;
        let n_parts = n_entries.div_ceil(EPISODES_AT_ONCE).max(1);
        for part in 0..n_parts {
            let mut found: BTreeMap<RelationId, Vec<FoundEpisode>> = BTreeMap::new();
            self.entries.for_each(|properties| {
                self.check_stop()?;
                let Some(title) = listed.read(properties) else { return Ok(()) };
                let (Some(relation), ListedFile::Episode(mut episode)) =
                    (relations.get(&title.provider_id), title.file)
                else {
                    return Ok(());
                };
                if u64::from(relation.0) % n_parts != part {
                    return Ok(());
                }
                let episodes = found.entry(*relation).or_default();
                if episode.number == 0 {
                    let of_season = episodes.iter().filter(|it| it.season == episode.season);
                    episode.number = of_season.map(|it| it.number).max().unwrap_or(0).saturating_add(1);
                }
                if episodes.len() < storage::EPISODES_MAX {
                    episodes.push(*episode);
                }
                Ok::<_, VodError>(())
            })?;
            let found = found.into_iter().map(|(relation, episodes)| FoundEpisodes { relation, episodes });
            land::episodes(self.models, self.account, found.collect(), self.now)?;
        }
        Ok(())
    }

    fn check_stop(&self) -> Result<(), VodError> {
        if (self.is_stopped)() { Err(VodError::Stopped) } else { Ok(()) }
    }
}

impl Listed<'_> {
    fn read(&self, properties: StreamProperties) -> Option<ListedTitle> {
        self.reader.read(properties).filter(|it| it.kind == self.kind)
    }
}

impl FoundTitles for Listed<'_> {
    fn for_each(&self, visit: &mut dyn FnMut(FoundTitle) -> ControlFlow<()>) -> io::Result<()> {
        // Each episode names its series.
        let mut seen = HashSet::new();
        let mut has_enough = false;
        let read = self.import.entries.for_each(|properties| {
            let Some(title) = self.read(properties) else { return Ok(()) };
            let Some(category) = self.categories.get(&title.category) else { return Ok(()) };
            if self.kind == TitleKind::Series && !seen.insert(title.provider_id.clone()) {
                return Ok(());
            }
            has_enough = visit(found(title, *category)).is_break();
            // An error stops the iteration; this one only means that the visitor has enough.
            if has_enough { Err(io::ErrorKind::Interrupted.into()) } else { Ok(()) }
        });
        if has_enough { Ok(()) } else { read }
    }
}

fn found(title: ListedTitle, category: VodCategoryId) -> FoundTitle {
    let mut found = FoundTitle::new(title.provider_id, category, "");
    (found.facts, found.custom_properties) = (title.facts, title.properties);
    if let ListedFile::Film { address, extension } = title.file {
        (found.address, found.extension) = (Some(address), extension);
    }
    found
}
