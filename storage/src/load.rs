//! Reading everything once, at open.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use crate::block::Block;
use crate::error::{Error, Result};
use crate::record::Kind;
use crate::shared::Shared;
use crate::state::{At, Directory, Group, Pairs, State, pair_of};
use crate::value::{Place, Value};
use crate::witness::Statement;

/// A store as it was found.
pub(crate) struct Loaded {
    pub(crate) state: State,
    /// The largest number ever given to a commit or a stage, as far as one can see.
    pub(crate) last: u64,
    /// What a crash left behind.
    pub(crate) leftovers: BTreeSet<Vec<u8>>,
}

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
}

pub(crate) fn load(shared: &Shared, statement: &Statement) -> Result<Loaded> {
    let damaged = |what: String| Error::Damaged { at: shared.folder.clone(), what };
    let disk = shared.disk();
    let mut stages = HashSet::new();
    for item in disk.scan(b"s") {
        let (key, _) = item?;
        if let Some(Place::Stage(number)) = Place::parse(&key) {
            stages.insert(number);
        }
    }
    let is_unknown = |it: &(&String, &u64)| *it.1 > 0 && shared.schema.position(it.0).is_none();
    if let Some((name, _)) = statement.counts.iter().find(is_unknown) {
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
    };
    let mut leftovers = BTreeSet::new();
    // Versions of one thing follow each other, the highest last: it is known to count when the next thing comes.
    let mut candidate: Option<(Place, Value)> = None;
    for item in disk.scan(b"") {
        let (key, bytes) = item.map_err(|error| damaged(error.to_string()))?;
        let Some(place) = Place::parse(&key) else {
            return Err(damaged("it has a key that this version does not know".to_owned()));
        };
        let value =
            Value::of_key(&key, &bytes).map_err(|error| damaged(format!("{}: {error}", shown(&place))))?;
        loading.last = loading.last.max(value.commit).max(place.version());
        if let Place::Stage(number) = place {
            loading.last = loading.last.max(number);
        }
        if matches!(place, Place::Stage(_)) || stages.contains(&place.version()) {
            leftovers.insert(key);
            continue;
        }
        if let Some((before, value)) = candidate.replace((place, value)) {
            let is_same = candidate.as_ref().is_some_and(|(place, _)| place.stem() == before.stem());
            if is_same || value.is_gone {
                leftovers.insert(before.key());
            } else {
                loading.take(before, value).map_err(|error| in_store(shared, error))?;
            }
        }
    }
    if let Some((place, value)) = candidate {
        if value.is_gone {
            leftovers.insert(place.key());
        } else {
            loading.take(place, value).map_err(|error| in_store(shared, error))?;
        }
    }
    loading.finish(statement, leftovers).map_err(|error| in_store(shared, error))
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
    }
}

impl Loading<'_> {
    fn position(&self, collection: &str, kind: Kind) -> Result<usize> {
        let position = self.shared.schema.position(collection);
        position.filter(|it| self.shared.noun(*it).kind == kind).ok_or_else(|| {
            Error::DamagedRecord(format!(
                "it has a collection {collection:?} that this version does not know"
            ))
        })
    }

    /// Takes in what counts.
    fn take(&mut self, place: Place, value: Value) -> Result<()> {
        match &place {
            Place::Meta => self.meta = Some(value),
            Place::Counter(collection) => {
                let noun = self.shared.schema.position(collection);
                let next = <[u8; 4]>::try_from(&*value.payload).map(u32::from_be_bytes);
                if let (Some(noun), Ok(next)) = (noun, next) {
                    self.counters.insert(noun, next);
                }
            }
            Place::Single { collection, id, version } => {
                let noun = self.position(collection, Kind::Single)?;
                let at = value.at(*version);
                let bytes = self.shared.unseal(noun, &place, value)?;
                let (found, _, keys) = (self.shared.noun(noun).read)(&bytes)?;
                if found != *id {
                    return Err(Error::DamagedRecord(format!("{} says that it is {found}", shown(&place))));
                }
                self.directories[noun].singles.insert(*id, at);
                self.directories[noun].count_bytes(None, Some(at));
                self.indexes[noun].extend(keys.iter().map(|key| (pair_of(key), *id)));
            }
            Place::Block { collection, owner, block, version } => {
                let noun = self.position(collection, Kind::Paged)?;
                let at = value.at(*version);
                let payload = self.shared.unseal(noun, &place, value)?;
                let draft = self.groups.entry((noun, *owner)).or_default();
                draft.blocks.insert(*block, at);
                self.directories[noun].count_bytes(None, Some(at));
                for (id, bytes) in Block::decode(&payload)?.records {
                    let (_, _, keys) = (self.shared.noun(noun).read)(&bytes)?;
                    draft.ids.push((id, *block));
                    draft.index.extend(keys.iter().map(|key| (pair_of(key), id)));
                }
            }
            Place::Stage(_) => {}
        }
        Ok(())
    }

    fn finish(mut self, statement: &Statement, leftovers: BTreeSet<Vec<u8>>) -> Result<Loaded> {
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
        if commit < statement.commit {
            let acknowledged = statement.commit;
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
            let after = largest.max(in_groups).map_or(1, |id| id.saturating_add(1));
            directory.next_id = self.counters.get(&noun).copied().unwrap_or(1).max(after);
        }
        let counts = crate::writer::counts(self.shared, &self.directories);
        if commit == statement.commit {
            for (name, found) in &counts {
                let acknowledged = statement.counts.get(name).copied().unwrap_or(0);
                if *found != acknowledged {
                    return Err(damaged(format!(
                        "{name} has {found} records, {acknowledged} were acknowledged"
                    )));
                }
            }
        }
        let state = State { directories: self.directories, commit };
        Ok(Loaded { state, last: self.last.max(commit), leftovers })
    }
}
