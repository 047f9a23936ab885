//! Model test: random histories compared with ordered maps. Reopening and compacting are steps of the history.

use std::collections::BTreeMap;

use proptest::prelude::*;
use storage::{Error, Store};

use crate::support::{Item, Note, Place, item, note, replace};

#[derive(Debug, Clone)]
enum Step {
    Put(Vec<(u32, u8)>),
    Remove(u32),
    PutItems(Vec<(u32, u64)>),
    RemoveItem(u32),
    RemoveOwner(u64),
    Replace(u64, u32),
    /// A write of more than one slice.
    Large(u32),
    Refused(u32),
    Reopen,
    Compact,
}

fn step() -> impl Strategy<Value = Step> {
    let (id, owner) = (1u32..40, 1u64..4);
    prop_oneof![
        4 => prop::collection::vec((id.clone(), 0u8..20), 1..5).prop_map(Step::Put),
        2 => id.clone().prop_map(Step::Remove),
        4 => prop::collection::vec((1u32..400, owner.clone()), 1..150).prop_map(Step::PutItems),
        2 => (1u32..400).prop_map(Step::RemoveItem),
        1 => owner.clone().prop_map(Step::RemoveOwner),
        2 => (owner, 0u32..350).prop_map(|(owner, n)| Step::Replace(owner, n)),
        1 => (100u32..400).prop_map(Step::Large),
        1 => id.prop_map(Step::Refused),
        2 => Just(Step::Reopen),
        1 => Just(Step::Compact),
    ]
}

#[derive(Default)]
struct Model {
    notes: BTreeMap<u32, Note>,
    items: BTreeMap<u32, Item>,
    n_steps: usize,
}

impl Model {
    fn apply(&mut self, step: &Step, store: &mut Option<Store>, place: &Place) {
        self.n_steps += 1;
        let now = self.n_steps;
        let open = store.as_ref().unwrap();
        match step.clone() {
            Step::Put(notes) => {
                let notes: Vec<_> = notes.into_iter().map(|(id, name)| note(id, &name.to_string())).collect();
                let mut after = self.notes.clone();
                let mut is_valid = true;
                for it in &notes {
                    is_valid &= after.values().all(|other| other.id == it.id || other.name != it.name);
                    after.insert(it.id, it.clone());
                }
                let done = open.write_blocking(move |write| notes.iter().try_for_each(|it| write.put(it)));
                assert_eq!(done.is_ok(), is_valid, "{done:?}");
                if is_valid {
                    self.notes = after;
                }
            }
            Step::Remove(id) => {
                let done = open.write_blocking(move |write| write.remove::<Note>(id)).unwrap();
                assert_eq!(done, self.notes.remove(&id).is_some());
            }
            Step::PutItems(items) => {
                let name = format!("step {now}");
                let items: Vec<_> = items.into_iter().map(|(id, owner)| item(id, owner, &name)).collect();
                self.items.extend(items.iter().map(|it| (it.id, it.clone())));
                open.write_blocking(move |write| items.iter().try_for_each(|it| write.put(it))).unwrap();
            }
            Step::RemoveItem(id) => {
                let done = open.write_blocking(move |write| write.remove::<Item>(id)).unwrap();
                assert_eq!(done, self.items.remove(&id).is_some());
            }
            Step::RemoveOwner(owner) => {
                // Includes a record that the same write moves to this owner.
                let moved = self.items.values().find(|it| it.owner != owner).cloned();
                let first = moved.clone();
                open.write_blocking(move |write| {
                    if let Some(it) = &first {
                        write.put(&Item { owner, ..it.clone() })?;
                    }
                    write.remove_owner::<Item>(owner);
                    Ok::<_, Error>(())
                })
                .unwrap();
                self.items.retain(|id, it| it.owner != owner && moved.as_ref().is_none_or(|it| it.id != *id));
            }
            Step::Replace(owner, n) => {
                let name = format!("step {now}");
                let ids = (1..=n).filter(|id| self.items.get(id).is_none_or(|it| it.owner == owner));
                let items: Vec<_> = ids.map(|id| item(id, owner, &name)).collect();
                replace(open, owner, &items).unwrap();
                self.items.retain(|_, it| it.owner != owner);
                self.items.extend(items.into_iter().map(|it| (it.id, it)));
            }
            Step::Large(n) => {
                let notes: Vec<_> = (1_000..1_000 + n).map(|id| note(id, &format!("{now} {id}"))).collect();
                self.notes.extend(notes.iter().map(|it| (it.id, it.clone())));
                self.notes.retain(|id, _| *id < 1_000 || *id % 3 != 0);
                open.write_blocking(move |write| {
                    notes.iter().try_for_each(|it| write.put(it))?;
                    (1_000..1_400)
                        .filter(|id| id % 3 == 0)
                        .try_for_each(|id| write.remove::<Note>(id).map(drop))
                })
                .unwrap();
            }
            Step::Refused(id) => {
                let done: Result<(), _> = open.write_blocking(move |write| {
                    write.remove::<Note>(id)?;
                    write.put(&item(id, 1, "refused"))?;
                    Err(Error::Closed)
                });
                assert!(done.is_err());
            }
            Step::Reopen => {
                let live_bytes = open.statistics().live_bytes;
                *store = None;
                *store = Some(place.open());
                let counted_again = store.as_ref().unwrap().statistics().live_bytes;
                assert_eq!(live_bytes, counted_again);
            }
            Step::Compact => open.compact().unwrap(),
        }
    }

    fn compare(&self, store: &Store) {
        let notes = store.collection::<Note>();
        assert_eq!(notes.all().unwrap(), self.notes.values().cloned().collect::<Vec<_>>());
        for tag in 0..3 {
            let expected: Vec<_> = self.notes.values().filter(|it| it.tag == tag).cloned().collect();
            assert_eq!(notes.by("tag", [tag]).unwrap(), expected);
        }
        let items = store.collection::<Item>();
        let mut all = items.all().unwrap();
        all.sort_by_key(|it| it.id);
        assert_eq!(all, self.items.values().cloned().collect::<Vec<_>>());
        assert_eq!(items.len(), self.items.len());
        for owner in 1..4 {
            assert_eq!(items.len_of(owner), self.items.values().filter(|it| it.owner == owner).count());
        }
        for it in self.items.values().step_by(37) {
            assert_eq!(items.get(it.id).unwrap().as_ref(), Some(it));
            let alike: Vec<_> = self.items.values().filter(|other| other.name == it.name).cloned().collect();
            assert_eq!(items.by("name", &it.name).unwrap(), alike);
        }
    }
}

fn run(steps: Vec<Step>) {
    let place = Place::new();
    let mut store = Some(place.open());
    let mut model = Model::default();
    let mut table = store.as_ref().unwrap().table::<Note>().unwrap();
    for step in &steps {
        model.apply(step, &mut store, &place);
        let open = store.as_ref().unwrap();
        if matches!(step, Step::Reopen) {
            table = open.table::<Note>().unwrap();
        }
        model.compare(open);
        assert!(table.load().iter().map(|it| &**it).eq(model.notes.values()));
    }
    drop(store);
    model.compare(&place.open());
    let report = place.check().unwrap();
    assert!(report.is_ok(), "{report:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn the_store_is_an_ordered_map_that_survives_reopening(steps in prop::collection::vec(step(), 1..25)) {
        run(steps);
    }
}

mod night {
    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, max_shrink_iters: 200, ..ProptestConfig::default() })]

        #[test]
        fn the_store_is_an_ordered_map_over_long_histories(steps in prop::collection::vec(step(), 20..60)) {
            run(steps);
        }
    }
}
