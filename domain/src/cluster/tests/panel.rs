//! Panels that say how many connections a login has, after the loss of a node whose account is full.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::cases::{Cluster, POOL, pool};
use super::random::Random;
use crate::cluster::panel_count::{EVIDENCE_INTERVAL, PanelCounts, PanelQuestion, QUESTION_INTERVAL};
use crate::cluster::record::{PoolId, PoolTable, ProcessId};
use crate::cluster::{BootTime, NodeInput};
use crate::plan::SlotPool;

const LIMIT: usize = 2;

/// A panel that answers.
#[derive(Debug, Clone, Copy)]
enum Panel {
    /// It shows the connections as they were so many seconds ago.
    Late(u64),
    /// It shows as many connections too few.
    Low(u32),
    /// It looks at the connections at the beginning and then each so many seconds.
    Cached(u64),
    Always(u32),
    /// It says no number.
    Silent,
}

/// A connection, as the provider counts it. Times are seconds since the beginning.
#[derive(Debug)]
struct Connection {
    node: usize,
    from: u64,
    gone_at: Option<u64>,
}

/// Three nodes with one account of two connections, and the panel of the account.
struct Household {
    cluster: Cluster,
    counts: Vec<PanelCounts>,
    panel: Panel,
    connections: Vec<Connection>,
    seconds: u64,
    /// The time and node of each question.
    questions: Vec<(u64, usize)>,
    granted: Vec<(u64, usize)>,
}

impl Household {
    fn new(panel: Panel) -> Self {
        let counts = (0..3).map(|_| PanelCounts::default()).collect();
        let (connections, questions, granted) = (Vec::new(), Vec::new(), Vec::new());
        Self { cluster: Cluster::new(3), counts, panel, connections, seconds: 0, questions, granted }
    }

    fn account() -> [SlotPool; 1] {
        [pool(1, LIMIT as u32, 0)]
    }

    fn ask(&mut self, node: usize, lease: u64) {
        self.cluster.ask(node, lease, &Self::account());
        self.note_grants();
    }

    /// The machine of a node vanishes. The provider counts its connections for so many seconds more.
    fn lose(&mut self, node: usize, counted_for: u64) {
        self.cluster.nodes[node] = None;
        for it in self.connections.iter_mut().filter(|it| it.node == node) {
            it.gone_at = Some(self.seconds + counted_for);
        }
    }

    /// Opens the connections of new leases. Panics if the provider counts too many then.
    fn note_grants(&mut self) {
        for (node, _) in self.cluster.granted() {
            self.granted.push((self.seconds, node));
            self.connections.push(Connection { node, from: self.seconds, gone_at: None });
            let n = self.counted_at(self.seconds);
            assert!(n as usize <= LIMIT, "{n} connections with {:?}: {:?}", self.panel, self.connections);
        }
    }

    fn counted_at(&self, at: u64) -> u32 {
        let is_counted = |it: &&Connection| it.from <= at && it.gone_at.is_none_or(|gone_at| at < gone_at);
        self.connections.iter().filter(is_counted).count() as u32
    }

    fn answer(&self) -> Option<u32> {
        let n = self.counted_at(self.seconds);
        match self.panel {
            Panel::Late(seconds) => {
                Some(self.seconds.checked_sub(seconds).map_or(0, |it| self.counted_at(it)))
            }
            Panel::Low(by) => Some(n.saturating_sub(by)),
            Panel::Cached(period) => Some(self.counted_at(self.seconds / period * period)),
            Panel::Always(n) => Some(n),
            Panel::Silent => None,
        }
    }

    fn tables(&self, node: usize) -> BTreeMap<PoolId, PoolTable> {
        let node = self.cluster.nodes[node].as_ref();
        let table = node.and_then(|it| it.pool(POOL)?.view()).map(|it| (POOL, it.1.clone()));
        table.into_iter().collect()
    }

    /// Lets seconds pass. Answers arrive a second after their questions.
    fn wait(&mut self, seconds: u64) {
        let mut asked: Vec<(usize, PanelQuestion, Option<u32>)> = Vec::new();
        for _ in 0..seconds {
            self.seconds += 1;
            self.cluster.wait(1);
            self.note_grants();
            let now = self.cluster.now;
            for (node, question, answer) in std::mem::take(&mut asked) {
                self.answered(node, &question, answer, now);
            }
            for node in 0..self.counts.len() {
                let tables = self.tables(node);
                self.counts[node].see(tables.values(), now);
                let process = ProcessId(node as u64);
                if let Some(question) = self.counts[node].due(&tables, process, &|_, _| true, now) {
                    self.questions.push((self.seconds, node));
                    asked.push((node, question, self.answer()));
                }
            }
        }
    }

    fn answered(&mut self, node: usize, question: &PanelQuestion, answer: Option<u32>, now: BootTime) {
        let tables = self.tables(node);
        let gone = self.counts[node].answered(question, answer, tables.get(&POOL), now);
        if let Some(leases) = gone {
            self.cluster.on(node, NodeInput::ConnectionsGone { pool: POOL, leases });
            self.note_grants();
        }
    }
}

/// Returns the seconds from the loss of a node to the grant for one that waits. Both connections of the account were open for
/// `age` before, and the provider counts the lost one for so many seconds more.
fn time_of_grant(panel: Panel, age: u64, counted_for: u64) -> u64 {
    let mut house = Household::new(panel);
    house.ask(0, 1);
    house.ask(1, 1);
    house.wait(age);
    let lost_at = house.seconds;
    house.lose(0, counted_for);
    house.ask(2, 1);
    assert_eq!(house.granted.len(), 2, "{panel:?}");
    house.wait(70);
    let &(at, node) = house.granted.get(2).expect("the slot is granted in the end");
    assert_eq!(node, 2);
    at - lost_at
}

#[test]
fn a_panel_that_shows_a_lost_connection_as_gone_shortens_the_cooling_and_one_that_lies_does_not() {
    let check = |panel: Panel, age: u64, counted_for: u64, expected: RangeInclusive<u64>| {
        let time = time_of_grant(panel, age, counted_for);
        assert!(expected.contains(&time), "{panel:?}, {age} s old, counted for {counted_for} s: {time} s");
    };
    let whole = || 46..=52;
    check(Panel::Late(0), 600, 5, 22..=30);
    check(Panel::Late(20), 600, 5, 27..=38);
    check(Panel::Late(0), 600, 35, 38..=47);
    // The lost lease was too new, and the panel was not seen to count it.
    check(Panel::Late(0), 60, 5, whole());
    check(Panel::Late(0), 290, 5, whole());
    check(Panel::Always(0), 600, 45, whole());
    check(Panel::Always(1), 600, 45, whole());
    check(Panel::Always(2), 600, 45, whole());
    check(Panel::Always(9), 600, 45, whole());
    check(Panel::Silent, 600, 45, whole());
    check(Panel::Low(1), 600, 45, whole());
    check(Panel::Low(2), 4_000, 45, whole());
    check(Panel::Cached(1_000), 600, 45, whole());
}

#[test]
fn no_limit_is_exceeded_whatever_a_panel_always_answers() {
    let mut random = Random::new(7);
    for _ in 0..25 {
        let panel = match random.number_in(0..5) {
            0 => Panel::Late(random.number_in(0..240)),
            1 => Panel::Low(random.number_in(1..3) as u32),
            2 => Panel::Cached(random.number_in(1..240)),
            3 => Panel::Always(random.number_in(0..4) as u32),
            _ => Panel::Silent,
        };
        let mut house = Household::new(panel);
        for lease in 1..random.number_in(4..7) {
            let node = random.number_in(0..3) as usize;
            house.ask(node, lease);
            house.wait(random.number_in(0..420));
        }
        let lost = random.number_in(0..3) as usize;
        house.lose(lost, random.number_in(1..45));
        for node in (0..3).filter(|it| *it != lost) {
            house.ask(node, 20);
        }
        // Panics if there are too many connections.
        house.wait(120);
    }
}

#[test]
fn a_panel_is_asked_each_5_s_while_a_slot_cools_and_somebody_waits_and_else_at_most_once_an_hour() {
    let mut house = Household::new(Panel::Late(0));
    house.ask(0, 1);
    house.ask(1, 1);
    house.wait(2 * 3_600);
    // Once by each node; the panel was right.
    assert!(house.questions.len() <= 3, "{:?}", house.questions);
    house.questions.clear();
    house.lose(0, 30);
    house.wait(60);
    assert_eq!(house.questions, [], "nobody waits");

    let mut wrong = Household::new(Panel::Silent);
    wrong.ask(0, 1);
    wrong.wait(2 * 3_600);
    assert!(wrong.questions.len() <= 6, "{:?}", wrong.questions);
    let pairs = |questions: &[(u64, usize)]| -> Vec<u64> {
        let times: Vec<u64> = questions.iter().filter(|it| it.1 == 0).map(|it| it.0).collect();
        times.windows(2).map(|it| it[1] - it[0]).collect()
    };
    assert!(pairs(&wrong.questions).iter().all(|it| Duration::from_secs(*it) >= EVIDENCE_INTERVAL));

    let mut cooling = Household::new(Panel::Always(2));
    cooling.ask(0, 1);
    cooling.ask(1, 1);
    cooling.wait(600);
    cooling.questions.clear();
    cooling.lose(0, 40);
    cooling.ask(2, 1);
    cooling.wait(60);
    // 20 s until the take-over, then 30 s of cooling, and only the node that waits asks.
    assert!((5..=7).contains(&cooling.questions.len()), "{:?}", cooling.questions);
    assert!(cooling.questions.iter().all(|it| it.1 == 2));
    let interval = QUESTION_INTERVAL.as_secs();
    assert!(cooling.questions.windows(2).all(|it| it[1].0 - it[0].0 >= interval), "{:?}", cooling.questions);
}
