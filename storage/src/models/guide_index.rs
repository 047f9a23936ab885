//! The index of all guide channels, as a view: it contains a commit before the commit is answered.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use domain::guide::channel::GuideChannel;
use domain::guide::index::GuideIndex;
use domain::ids::{GuideChannelId, GuideSourceId};

use crate::changes::{Change, ChangedIds};
use crate::error::Result;
use crate::read::collection::Collection;
use crate::read::view::{Reader, View};
use crate::record::Record;
use crate::store::Store;

/// Changed records that are read one by one. After more changes, the changed sources are read completely.
const FEW_MAX: usize = 200;

/// A fingerprint of the records of each source.
type Fingerprints = HashMap<GuideSourceId, u64>;

/// Creates the view. Blocks.
pub(crate) fn guide_index(store: &Store) -> Result<View<GuideIndex>> {
    let mut known = Fingerprints::new();
    store.view(
        const { &[GuideChannel::COLLECTION] },
        move |reader: &Reader<'_>, before: Option<(&GuideIndex, &Change)>| {
            let channels = reader.collection::<GuideChannel>();
            let index = before.map(|(index, _)| index.clone()).unwrap_or_default();
            let few = match before.and_then(|(_, change)| change.ids(GuideChannel::COLLECTION)) {
                Some(ChangedIds::Few(ids)) if ids.len() <= FEW_MAX => Some(ids),
                _ => None,
            };
            // The writer waits, so the records do not change meanwhile.
            let now = fingerprints(&channels);
            let next = match few {
                Some(ids) => edited(index, &channels, ids)?,
                None => compared(index, &channels, &known, &now)?,
            };
            known = now;
            Ok(next)
        },
    )
}

fn fingerprints(channels: &Collection<'_, GuideChannel>) -> Fingerprints {
    let sources = channels.owners().into_iter().filter_map(|it| u32::try_from(it).ok());
    sources.map(|it| (GuideSourceId(it), channels.fingerprint_of(it.into()))).collect()
}

/// Reads the sources again whose fingerprint changed.
fn compared(
    mut index: GuideIndex,
    channels: &Collection<'_, GuideChannel>,
    known: &Fingerprints,
    now: &Fingerprints,
) -> Result<GuideIndex> {
    let gone: Vec<_> = index.sources().filter(|it| !now.contains_key(it)).collect();
    for source in gone {
        index = index.without(source);
    }
    for source in now.iter().filter(|(source, it)| known.get(source) != Some(it)).map(|it| it.0) {
        let mut found = Vec::new();
        channels.for_each_of(source.0.into(), |it| found.push(Arc::new(it)))?;
        index = index.with(*source, found);
    }
    Ok(index)
}

/// Reads a few changed records.
fn edited(mut index: GuideIndex, channels: &Collection<'_, GuideChannel>, ids: &[u32]) -> Result<GuideIndex> {
    let mut changed: BTreeMap<GuideSourceId, Vec<Arc<GuideChannel>>> = BTreeMap::new();
    for id in ids {
        if let Some(before) = index.get(GuideChannelId(*id)) {
            changed.entry(before.source).or_default();
        }
        if let Some(channel) = channels.get(*id)? {
            changed.entry(channel.source).or_default().push(Arc::new(channel));
        }
    }
    for (source, mut present) in changed {
        let unchanged = index.source_channels(source).iter().filter(|it| !ids.contains(&it.id.0));
        present.extend(unchanged.cloned());
        index = match present.is_empty() {
            true => index.without(source),
            false => index.with(source, present),
        };
    }
    Ok(index)
}

#[cfg(test)]
mod tests {
    use domain::ids::GuideChannelId;
    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;
    use crate::records::schema;

    #[derive(Debug, Clone)]
    enum Op {
        Put { id: u32, source: u32, key: u8 },
        Remove(u32),
        Replace { source: u32, n: u32 },
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (1..20u32, 1..4u32, any::<u8>()).prop_map(|(id, source, key)| Op::Put { id, source, key }),
            (1..20u32).prop_map(Op::Remove),
            (1..4u32, 0..400u32).prop_map(|(source, n)| Op::Replace { source, n }),
        ]
    }

    fn channel(id: u32, source: u32, key: &str) -> GuideChannel {
        GuideChannel {
            id: GuideChannelId(id),
            source: GuideSourceId(source),
            key: key.to_owned(),
            names: vec![format!("Name {id}")],
            icon: None,
        }
    }

    fn apply(store: &Store, op: &Op) {
        match *op {
            Op::Put { id, source, key } => {
                // A record cannot change its owner.
                let of = store.collection::<GuideChannel>().get(id).unwrap().map_or(source, |it| it.source.0);
                store.write_blocking(move |write| write.put(&channel(id, of, &key.to_string()))).unwrap();
            }
            Op::Remove(id) => {
                store.write_blocking(move |write| write.remove::<GuideChannel>(id).map(drop)).unwrap();
            }
            Op::Replace { source, n } => {
                let mut bulk = store.bulk_write::<GuideChannel>(source.into()).unwrap();
                for id in 0..n {
                    bulk.put(&channel(1_000 * source + id, source, &format!("{n}.{id}"))).unwrap();
                }
                bulk.commit(|_, _| Ok::<_, Error>(())).unwrap();
            }
        }
    }

    fn sorted(all: impl Iterator<Item = GuideChannel>) -> Vec<GuideChannel> {
        let mut all: Vec<_> = all.collect();
        all.sort_by_key(|it| it.id);
        all
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn the_index_of_guide_channels_contains_every_commit(ops in proptest::collection::vec(op(), 1..12)) {
            let store = Store::temporary(schema()).unwrap();
            let view = guide_index(&store).unwrap();
            for op in ops {
                apply(&store, &op);
                let of_store = sorted(store.collection::<GuideChannel>().all().unwrap().into_iter());
                prop_assert_eq!(sorted(view.load().iter().map(|it| (**it).clone())), of_store);
            }
            let fresh = guide_index(&store).unwrap();
            prop_assert_eq!(fresh.load().len(), view.load().len());
        }
    }
}
