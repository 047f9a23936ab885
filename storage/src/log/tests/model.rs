//! Model test: several nodes write in random order while the log fails, writers are deposed, and machines lose power.
//!
//! Each write stamps all records of one group with its number, and leaves a note of its own for ever. So at the end, each
//! group shows one whole write, and no answered write may be missing.

use std::collections::BTreeMap;
use std::path::PathBuf;

use proptest::prelude::*;
use proptest::test_runner::Config;

use super::sim_log::Fault;
use super::*;

const NODES: [&str; 4] = ["a", "b", "c", "edge"];
const GROUPS: u32 = 3;

#[derive(Debug, Clone)]
enum Step {
    /// A small write by a node.
    Write {
        node: usize,
        group: u32,
    },
    /// An import of this many records by a node, together with a small write.
    Import {
        node: usize,
        group: u32,
        n: u32,
    },
    BecomeWriter(usize),
    CatchUp(usize),
    Reopen(usize),
    /// The next append fails.
    Fail(Fault),
    /// The log does not answer during the next write, or answers again.
    Silence(Fault),
    /// A write during which the machine loses power: before or after its entry is in the log, and before it is committed.
    PowerCut {
        node: usize,
        group: u32,
        is_appended: bool,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let (node, group) = (0..NODES.len(), 0..GROUPS);
    let fault = prop_oneof![Just(Fault::Applied), Just(Fault::Lost), Just(Fault::Late)];
    let of_group = (node.clone(), group.clone());
    prop_oneof![
        8 => of_group.clone().prop_map(|(node, group)| Step::Write { node, group }),
        3 => (of_group.clone(), 0u32..200).prop_map(|((node, group), n)| Step::Import { node, group, n }),
        4 => node.clone().prop_map(Step::BecomeWriter),
        2 => node.clone().prop_map(Step::CatchUp),
        1 => node.prop_map(Step::Reopen),
        3 => fault.clone().prop_map(Step::Fail),
        1 => fault.prop_map(Step::Silence),
        1 => (of_group, any::<bool>())
            .prop_map(|((node, group), is_appended)| Step::PowerCut { node, group, is_appended }),
    ]
}

struct Model {
    cluster: Cluster,
    stores: Vec<Option<Store>>,
    /// The number of the last write that was answered, by group.
    answered: BTreeMap<u32, u32>,
    all_answered: Vec<u32>,
    n_writes: u32,
}

/// The records of a write: notes that exchange their unique names with each write, and items of two owners.
fn stamp(write: &mut Write<'_>, group: u32, number: u32) -> Result<()> {
    write.put(&note(1_000 + number, &format!("write {number}")))?;
    let (first, second) = (10 * group + 1, 10 * group + 2);
    write.remove::<Note>(second)?;
    write.put(&note(first, &format!("{group} {}", number % 2)))?;
    write.put(&note(second, &format!("{group} {}", (number + 1) % 2)))?;
    let owner = u64::from(100 + group + number % 2 * 10);
    write.put(&item(10_000 + group, owner, &number.to_string()))?;
    write.put(&item(20_000 + group, 7, &number.to_string()))?;
    write.put(&Label { id: group + 1, text: number.to_string() })
}

impl Model {
    fn new() -> Self {
        let cluster = Cluster::new();
        let stores = NODES.iter().map(|name| Some(cluster.open(name))).collect();
        Self { cluster, stores, answered: BTreeMap::new(), all_answered: Vec::new(), n_writes: 0 }
    }

    fn store(&self, node: usize) -> &Store {
        self.stores[node].as_ref().unwrap()
    }

    fn note_answer(&mut self, group: u32, done: Result<()>) {
        match done {
            Ok(()) => {
                self.answered.insert(group, self.n_writes);
                self.all_answered.push(self.n_writes);
            }
            Err(Error::NotWriter | Error::LogUnknown) => {}
            Err(error) => panic!("{error:?}"),
        }
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Write { node, group } => {
                self.n_writes += 1;
                let number = self.n_writes;
                let done = write(self.store(node), move |write| stamp(write, group, number));
                self.note_answer(group, done);
            }
            Step::Import { node, group, n } => {
                self.n_writes += 1;
                let number = self.n_writes;
                let owner = u64::from(group + 1);
                let items: Vec<_> = (0..n)
                    .map(|at| {
                        // Some change with each import.
                        let text = if at % 7 == number % 7 { number } else { at };
                        item(100 * 1_000 * (group + 1) + at, owner, &text.to_string().repeat(30))
                    })
                    .collect();
                let done = self.store(node).bulk_write::<Item>(owner).and_then(|mut bulk| {
                    items.iter().try_for_each(|it| bulk.put(it))?;
                    bulk.commit(move |write, _| {
                        write.put(&note(900 + group, &format!("{group} has {n} since {number}")))?;
                        stamp(write, group, number)
                    })
                });
                self.note_answer(group, done);
            }
            Step::BecomeWriter(node) => match self.store(node).become_writer() {
                Ok(_) => assert_ne!(NODES[node], "edge"),
                Err(Error::NotWriter) => assert_eq!(NODES[node], "edge"),
                Err(Error::LogUnreachable(_)) => {}
                Err(error) => panic!("{error:?}"),
            },
            Step::CatchUp(node) => {
                let done = self.store(node).catch_up();
                assert!(matches!(done, Ok(_) | Err(Error::LogUnreachable(_))), "{done:?}");
            }
            Step::Reopen(node) => {
                self.stores[node] = None;
                self.stores[node] = Some(self.cluster.open(NODES[node]));
            }
            Step::Fail(fault) => self.cluster.log.fail_next(fault),
            Step::Silence(fault) => {
                self.cluster.log.stop_answering(fault);
                let writers = (0..NODES.len()).filter(|it| role(self.store(*it)) == LogRole::Writer);
                let writer = writers.collect::<Vec<_>>().first().copied().unwrap_or(0);
                self.apply(Step::Write { node: writer, group: 0 });
                self.apply(Step::CatchUp((writer + 1) % NODES.len()));
                self.cluster.log.answer_again();
            }
            Step::PowerCut { node, group, is_appended } => self.cut_power(node, group, is_appended),
        }
    }

    fn cut_power(&mut self, node: usize, group: u32, is_appended: bool) {
        self.n_writes += 1;
        let number = self.n_writes;
        let folder = self.cluster.folder_of(NODES[node]);
        let image = self.cluster.folder_of("image");
        let copy = move |from: &PathBuf, to: &PathBuf| {
            drop(std::fs::remove_dir_all(to));
            copy_folder(from, to);
        };
        let (from, to) = (folder.clone(), image.clone());
        self.cluster.log.hook(Some(Box::new(move |is_after| {
            if is_after == is_appended {
                copy(&from, &to);
            }
        })));
        if !is_appended {
            self.cluster.log.stop_answering(Fault::Lost);
        }
        // Nobody hears the answer.
        drop(write(self.store(node), move |write| stamp(write, group, number)));
        self.cluster.log.hook(None);
        self.cluster.log.answer_again();
        // What this store did afterwards never happened.
        self.stores[node] = None;
        if image.exists() {
            std::fs::remove_dir_all(&folder).unwrap();
            std::fs::rename(&image, &folder).unwrap();
        }
        self.stores[node] = Some(self.cluster.open(NODES[node]));
    }

    fn check(&self) {
        self.stores.iter().flatten().for_each(|it| it.stop_writing().unwrap());
        let positions: Vec<_> = self.stores.iter().flatten().map(|it| it.catch_up().unwrap()).collect();
        assert!(positions.windows(2).all(|it| it[0] == it[1]), "{positions:?}");
        let (notes, items) = content(self.store(0));
        for (node, name) in NODES.iter().enumerate().skip(1) {
            let is_edge = *name == "edge";
            assert_eq!(
                content(self.store(node)),
                (notes.clone(), if is_edge { Vec::new() } else { items.clone() })
            );
        }
        let next_id = |node: usize| self.store(node).shared().state.read().directories[0].next_id;
        assert!((1..NODES.len()).all(|it| next_id(it) == next_id(0)));
        for number in &self.all_answered {
            assert!(notes.iter().any(|it| it.id == 1_000 + number), "the answered write {number} is lost");
        }
        for group in 0..GROUPS {
            let stamped: Vec<u32> = items
                .iter()
                .filter(|it| it.id == 10_000 + group || it.id == 20_000 + group)
                .map(|it| it.text.parse().unwrap())
                .collect();
            let answered = self.answered.get(&group).copied();
            let Some(&number) = stamped.first() else {
                assert_eq!(answered, None, "group {group}");
                continue;
            };
            assert_eq!(stamped, [number, number], "group {group} has a part of a write");
            assert!(answered.is_none_or(|it| number >= it), "group {group}: {number} replaced {answered:?}");
            assert!(notes.iter().any(|it| it.id == 1_000 + number));
            assert!(notes.contains(&note(10 * group + 1, &format!("{group} {}", number % 2))));
            assert!(notes.contains(&note(10 * group + 2, &format!("{group} {}", (number + 1) % 2))));
            // The import is as large as the note of the same commit says.
            let n_items = items.iter().filter(|it| it.owner == u64::from(group + 1)).count();
            let said = notes.iter().find(|it| it.id == 900 + group);
            let said = said.map_or(0, |it| it.name.split(' ').nth(2).unwrap().parse().unwrap());
            assert_eq!(n_items, said, "group {group}");
        }
    }
}

proptest! {
    #![proptest_config(Config { cases: 24, max_shrink_iters: 200, ..Config::default() })]

    #[test]
    fn all_nodes_end_equal_and_no_answered_write_is_lost(steps in prop::collection::vec(step(), 1..40)) {
        let mut model = Model::new();
        model.apply(Step::BecomeWriter(0));
        steps.into_iter().for_each(|step| model.apply(step));
        model.check();
    }
}
