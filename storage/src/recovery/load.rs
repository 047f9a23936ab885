//! Reading everything once, at open.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::engine::block::Block;
use crate::engine::commit_file::CommitMark;
use crate::engine::shared::Shared;
use crate::engine::state::{At, Directory, Group, Pairs, State, pair_of};
use crate::engine::value::{Place, Value};
use crate::error::{Error, Result};
use crate::record::CollectionKind;

/// A store as it was found.
pub(crate) struct Loaded {
    pub(crate) state: State,
    /// The largest number ever given to a commit or a stage, as far as one can see.
    pub(crate) last: u64,
    /// What a crash left behind.
    pub(crate) leftovers: BTreeSet<Vec<u8>>,
    /// What does not read and may be missed, still where it was.
    pub(crate) harmed: Vec<Harmed>,
}

/// A single record that counts and does not read.
pub(crate) struct Harmed {
    pub(crate) place: Place,
    pub(crate) bytes: Vec<u8>,
    pub(crate) why: Error,
}

/// More damaged records than this are no accident of one record: the store does not open.
const HARMED_MAX: usize = 16;

/// A group in the making.
#[derive(Default)]
struct Draft {
    blocks: BTreeMap<u32, At>,
    ids: Vec<(u32, u32)>,
    index: Vec<(u32, u32)>,
}

struct Loading<'a> {
    shared: &'a Shared,
    directories: Vec<Directory>,
    indexes: Vec<Vec<(u32, u32)>>,
    groups: BTreeMap<(usize, u64), Draft>,
    counters: BTreeMap<usize, u32>,
    last: u64,
    meta: Option<Value>,
    harmed: Vec<Harmed>,
    /// What was set aside before: where it was, and the commit at which it was.
    aside: Vec<(Place, u64)>,
}

pub(crate) fn load(shared: &Shared, mark: &CommitMark) -> Result<Loaded> {
    let damaged = |what: String| Error::Damaged { at: shared.folder.clone(), what };
    let disk = shared.disk();
    let mut stages = HashSet::new();
    for item in disk.scan(b"s") {
        let (key, bytes) = item?;
        // What cannot be read is told below.
        let has_landed = Value::of_key(&key, &bytes).is_ok_and(|it| it.is_gone);
        if let Some(Place::Stage(number)) = Place::parse(&key)
            && !has_landed
        {
            stages.insert(number);
        }
    }
    let is_unknown = |it: &(&String, &u64)| *it.1 > 0 && shared.schema.position(it.0).is_none();
    if let Some((name, _)) = mark.counts.iter().find(is_unknown) {
        return Err(damaged(format!("it has a collection {name:?} that this version does not know")));
    }
    let nouns = &shared.schema.nouns;
    let mut loading = Loading {
        shared,
        directories: nouns.iter().map(|it| Directory::new(it.kind)).collect(),
        indexes: nouns.iter().map(|_| Vec::new()).collect(),
        groups: BTreeMap::new(),
        counters: BTreeMap::new(),
        last: 0,
        meta: None,
        harmed: Vec::new(),
        aside: Vec::new(),
    };
    let mut leftovers = BTreeSet::new();
    // Versions of one thing follow each other, the highest last: it is known to count when the next thing comes.
    let mut candidate: Option<(Place, Found)> = None;
    for item in disk.scan(b"") {
        let (key, bytes) = item.map_err(|error| damaged(error.to_string()))?;
        let Some(place) = Place::parse(&key) else {
            return Err(damaged("it has a key that this version does not know".to_owned()));
        };
        let found = match Value::of_key(&key, &bytes) {
            Ok(value) => {
                loading.last = loading.last.max(value.commit);
                Found::Whole(value)
            }
            Err(why) if loading.may_be_missed(&place) => Found::Harmed(bytes, why),
            Err(error) => return Err(damaged(format!("{}: {error}", shown(&place)))),
        };
        loading.last = loading.last.max(place.version());
        if let Place::Stage(number) = place {
            loading.last = loading.last.max(number);
        }
        if matches!(place, Place::Stage(_)) || stages.contains(&place.version()) {
            leftovers.insert(key);
            continue;
        }
        if let Some((before, found)) = candidate.replace((place, found)) {
            let is_same = candidate.as_ref().is_some_and(|(place, _)| place.stem() == before.stem());
            loading
                .settle(before, found, is_same, &mut leftovers)
                .map_err(|error| in_store(shared, error))?;
        }
    }
    if let Some((place, found)) = candidate {
        loading.settle(place, found, false, &mut leftovers).map_err(|error| in_store(shared, error))?;
    }
    loading.finish(mark, leftovers).map_err(|error| in_store(shared, error))
}

/// What lies at a place.
enum Found {
    Whole(Value),
    Harmed(Vec<u8>, Error),
}

/// A record that does not read makes the store as a whole one that needs care.
fn in_store(shared: &Shared, error: Error) -> Error {
    match error {
        Error::DamagedRecord(what) => Error::Damaged { at: shared.folder.clone(), what },
        other => other,
    }
}

/// A place in words.
pub(crate) fn shown(place: &Place) -> String {
    match place {
        Place::Counter(collection) => format!("the counter of {collection}"),
        Place::Meta => "the number of the last commit".to_owned(),
        Place::Block { collection, owner, block, .. } => format!("block {block} of {collection} of {owner}"),
        Place::Single { collection, id, .. } => format!("record {id} of {collection}"),
        Place::Stage(number) => format!("the mark of stage {number}"),
        Place::Aside(place) => format!("{}, set aside,", shown(place)),
    }
}

impl Loading<'_> {
    fn position(&self, collection: &str, kind: CollectionKind) -> Result<usize> {
        let position = self.shared.schema.position(collection);
        position.filter(|it| self.shared.noun(*it).kind == kind).ok_or_else(|| {
            Error::DamagedRecord(format!(
                "it has a collection {collection:?} that this version does not know"
            ))
        })
    }

    fn may_be_missed(&self, place: &Place) -> bool {
        let Place::Single { collection, .. } = place else { return false };
        let noun = self.position(collection, CollectionKind::Single);
        noun.is_ok_and(|noun| self.shared.noun(noun).may_be_missed)
    }

    /// Decides about what lies at a place, now that it is known whether a higher version of the same follows.
    fn settle(
        &mut self,
        place: Place,
        found: Found,
        is_replaced: bool,
        leftovers: &mut BTreeSet<Vec<u8>>,
    ) -> Result<()> {
        match found {
            _ if is_replaced => drop(leftovers.insert(place.key())),
            Found::Whole(value) if value.is_gone => drop(leftovers.insert(place.key())),
            Found::Harmed(bytes, why) => self.harmed.push(Harmed { place, bytes, why }),
            Found::Whole(value) => match self.take(&place, &value) {
                Err(why @ Error::DamagedRecord(_)) if self.may_be_missed(&place) => {
                    self.harmed.push(Harmed { place, bytes: value.encode(), why });
                }
                other => other?,
            },
        }
        Ok(())
    }

    /// Takes in what counts; all of it or, with an error, nothing that matters of a single record.
    fn take(&mut self, place: &Place, value: &Value) -> Result<()> {
        match place {
            Place::Meta => self.meta = Some(value.clone()),
            Place::Aside(place) => self.aside.push(((**place).clone(), value.commit)),
            Place::Counter(collection) => {
                let noun = self.shared.schema.position(collection);
                let next = <[u8; 4]>::try_from(&*value.payload).map(u32::from_be_bytes);
                if let (Some(noun), Ok(next)) = (noun, next) {
                    self.counters.insert(noun, next);
                }
            }
            Place::Single { collection, id, version } => {
                let noun = self.position(collection, CollectionKind::Single)?;
                let at = value.at(*version);
                let bytes = self.shared.unseal(noun, place, value)?;
                let (found, _, keys) = (self.shared.noun(noun).read)(&bytes)?;
                if found != *id {
                    return Err(Error::DamagedRecord(format!("{} says that it is {found}", shown(place))));
                }
                self.directories[noun].singles.insert(*id, at);
                self.directories[noun].count_bytes(None, Some(at));
                self.indexes[noun].extend(keys.iter().map(|key| (pair_of(key), *id)));
            }
            Place::Block { collection, owner, block, version } => {
                let noun = self.position(collection, CollectionKind::Paged)?;
                let at = value.at(*version);
                let payload = self.shared.unseal(noun, place, value)?;
                let draft = self.groups.entry((noun, *owner)).or_default();
                draft.blocks.insert(*block, at);
                self.directories[noun].count_bytes(None, Some(at));
                for (id, bytes) in Block::decode(&payload)?.records {
                    let (found, _, keys) = (self.shared.noun(noun).read)(&bytes)?;
                    if found != id {
                        return Err(Error::DamagedRecord(format!(
                            "record {id} of {collection} says that it is {found}"
                        )));
                    }
                    draft.ids.push((id, *block));
                    draft.index.extend(keys.iter().map(|key| (pair_of(key), id)));
                }
            }
            Place::Stage(_) => {}
        }
        Ok(())
    }

    fn finish(mut self, mark: &CommitMark, leftovers: BTreeSet<Vec<u8>>) -> Result<Loaded> {
        let damaged = |what: String| Error::Damaged { at: self.shared.folder.clone(), what };
        let Some(meta) = self.meta.take() else {
            return Err(damaged("the database is empty, but it was not".to_owned()));
        };
        let (format, proof) =
            meta.payload.split_first().ok_or_else(|| damaged("it has no format".to_owned()))?;
        if *format > self.shared.format {
            return Err(Error::TooNew { found: *format, known: self.shared.format });
        }
        self.shared.vault.unseal_bytes(b"meta", proof)?;
        let commit = meta.commit;
        if commit < mark.commit {
            let acknowledged = mark.commit;
            return Err(damaged(format!(
                "commit {acknowledged} was acknowledged, the database ends at {commit}"
            )));
        }
        for ((noun, owner), draft) in self.groups {
            let group =
                Group { blocks: draft.blocks, ids: Pairs::of(draft.ids), index: Pairs::of(draft.index) };
            self.directories[noun].groups.insert(owner, group);
        }
        for (noun, index) in self.indexes.into_iter().enumerate() {
            let directory = &mut self.directories[noun];
            directory.index = Pairs::of(index);
            let largest = directory.singles.keys().next_back().copied();
            let in_groups = directory.groups.values().filter_map(|it| it.ids.bounds()).map(|it| it.1).max();
            let name = self.shared.noun(noun).name;
            let missed = self.harmed.iter().map(|it| &it.place).chain(self.aside.iter().map(|it| &it.0));
            let missed = missed.filter_map(|place| match place {
                Place::Single { collection, id, .. } if collection == name => Some(*id),
                _ => None,
            });
            let after = missed.max().max(largest).max(in_groups).map_or(1, |id| id.saturating_add(1));
            directory.next_id = self.counters.get(&noun).copied().unwrap_or(1).max(after);
        }
        let counts = crate::write::writer::counts(self.shared, &self.directories);
        if commit == mark.commit {
            for (name, found) in &counts {
                let acknowledged = mark.counts.get(name).copied().unwrap_or(0);
                let of_this =
                    |place: &Place| matches!(place, Place::Single { collection, .. } if collection == name);
                // Set aside since that commit, or about to be. One that was removed may be among them.
                let n_missed = self.harmed.iter().filter(|it| of_this(&it.place)).count()
                    + self.aside.iter().filter(|it| it.1 == commit && of_this(&it.0)).count();
                if !(*found..=*found + n_missed as u64).contains(&acknowledged) {
                    return Err(damaged(format!(
                        "{name} has {found} records, {acknowledged} were acknowledged"
                    )));
                }
            }
        }
        if self.harmed.len() > HARMED_MAX {
            let (first, n) = (&self.harmed[0], self.harmed.len());
            return Err(damaged(format!(
                "{n} records do not read, {} for instance: {}",
                shown(&first.place),
                first.why
            )));
        }
        let aside = self.aside.into_iter().map(|it| it.0).collect();
        let state = State { directories: self.directories, commit, aside };
        Ok(Loaded { state, last: self.last.max(commit), leftovers, harmed: self.harmed })
    }
}
