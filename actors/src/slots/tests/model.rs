//! Random tests of slots.

use super::*;

/// One step of a random scenario.
#[derive(Clone, Debug)]
enum Step {
    Ask {
        holder: u64,
        order: Vec<u32>,
        asking: u8,
    },
    Cancel {
        holder: u64,
    },
    Closing {
        holder: u64,
    },
    Delivers {
        holder: u64,
    },
    /// The provider refuses the newest connection of the holder.
    Refused {
        holder: u64,
    },
    Return {
        holder: u64,
    },
    Restart,
    Wait {
        ms: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let holder = 0u64..6;
    prop_oneof![
        6 => (holder.clone(), prop::collection::vec(0u32..4, 1..4), 0u8..4)
            .prop_map(|(holder, order, asking)| Step::Ask { holder, order, asking }),
        1 => holder.clone().prop_map(|holder| Step::Cancel { holder }),
        2 => holder.clone().prop_map(|holder| Step::Closing { holder }),
        3 => holder.clone().prop_map(|holder| Step::Delivers { holder }),
        2 => holder.clone().prop_map(|holder| Step::Refused { holder }),
        3 => holder.prop_map(|holder| Step::Return { holder }),
        1 => Just(Step::Restart),
        3 => (0u64..2000).prop_map(|ms| Step::Wait { ms }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Holds T-slot.1 and T-slot.9 in this crate: after any steps, including failures of the actor, no pool has more leases than its
    /// limit, and neither has the server group of pools 1 and 2; the table contains exactly the leases of the holders; no
    /// request that was answered is listed as waiting; and at the end no slot is in use and nobody waits. Pool 0 is as
    /// [`PoolWithoutLimit`] expects.
    #[test]
    fn leases_never_exceed_a_limit_and_all_are_returned(
        group_max in 0u32..4,
        steps in prop::collection::vec(step(), 1..80),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(random_scenario(group_max, steps));
    }
}

/// Facts that the steps show about pool 0, which has no configured limit.
#[derive(Default)]
struct PoolWithoutLimit {
    /// The leases whose connections have delivered packets.
    delivering: BTreeSet<u64>,
    /// Largest number of connections that played at once, if it was more than one.
    peak: u32,
    limit: Option<u32>,
    n_used: u32,
    /// The pools for which requests wait.
    awaited: BTreeSet<ProfileId>,
}

impl PoolWithoutLimit {
    const POOL: ProfileId = ProfileId(0);

    fn leases(table: &SlotTable) -> Vec<LeaseInfo> {
        table.leases().into_iter().filter(|it| it.profile == Self::POOL).collect()
    }

    /// Notes the state before a step.
    fn before_step(&mut self, fixture: &SlotsFixture) {
        self.limit = fixture.slots.discovered_limit(Self::POOL, 0);
        self.n_used = Self::leases(&fixture.table).len() as u32;
        let waiting = fixture.table.snapshot().waiting;
        self.awaited = waiting.iter().flat_map(|it| &it.pools).map(|it| it.1).collect();
    }

    /// More connections play than the limit allows: it is forgotten.
    fn delivers(&mut self, leases: &mut [(u32, Lease)], fixture: &SlotsFixture) {
        for (_, lease) in leases {
            lease.delivers();
            self.delivering.insert(lease.id());
        }
        let plays = |it: &&LeaseInfo| !it.closing && self.delivering.contains(&it.id);
        let n_playing = Self::leases(&fixture.table).iter().filter(plays).count() as u32;
        if n_playing > 1 {
            self.peak = self.peak.max(n_playing);
        }
        let limit = fixture.slots.discovered_limit(Self::POOL, 0);
        assert!(limit.is_none_or(|it| it >= n_playing), "{n_playing} play under a limit of {limit:?}");
    }

    /// A refusal beside connections that play is a limit, unless more have played at once before.
    fn refused(&mut self, holder: &Holder, lease: &Lease, fixture: &SlotsFixture) {
        let leases = Self::leases(&fixture.table);
        if !leases.iter().any(|it| it.id == lease.id()) {
            return;
        }
        let is_carried = |it: &&LeaseInfo| it.id != lease.id() && self.delivering.contains(&it.id);
        let n_carried = leases.iter().filter(is_carried).count() as u32;
        let shows_limit = n_carried > 0 && n_carried >= self.peak;
        self.limit = if shows_limit { Some(n_carried) } else { self.limit };
        fixture.slots.refused(lease.id(), &pool(0, 0), StreamId(holder.id as u32));
        assert_eq!(fixture.slots.discovered_limit(Self::POOL, 0), self.limit);
    }

    /// A second connection is granted only where nobody waits, and beside others only where two have played at once.
    fn granted_beside(&self, profile: ProfileId) {
        assert!(!self.awaited.contains(&profile), "granted beside a request that waits");
        if profile == Self::POOL && self.n_used > 0 {
            assert!(self.peak >= 2, "granted beside {} connections", self.n_used);
            assert!(self.limit.is_none_or(|it| self.n_used < it), "granted beyond the limit");
        }
    }

    /// At most one connection more than a discovered limit is opened.
    fn after_step(&self, fixture: &SlotsFixture) {
        let n_used = Self::leases(&fixture.table).len() as u32;
        let limit = fixture.slots.discovered_limit(Self::POOL, 0);
        if n_used > self.n_used && limit == self.limit {
            assert!(limit.is_none_or(|it| n_used <= it + 1), "{n_used} leases, limit {limit:?}");
        }
    }
}

/// Pool 0 is unlimited; each other pool has as many slots as its number.
async fn random_scenario(group_max: u32, steps: Vec<Step>) {
    let pool = |id: u32| if (1..=2).contains(&id) { grouped(id, id, group_max) } else { pool(id, id) };
    let address = Address::new();
    let table = SlotTable::new(address.clone());
    let start = async || {
        let (actor, _) = ractor::Actor::spawn(None, Actor, Arguments { table: table.clone() }).await.unwrap();
        actor
    };
    address.set(start().await);
    let fixture = SlotsFixture { table: table.clone(), slots: table.clone() };
    let mut holders = Vec::new();
    for id in 0..6 {
        holders.push((fixture.holder(id).await, Vec::<(u32, Lease)>::new(), Vec::<u32>::new()));
    }
    let mut attempt = 0;
    let mut unlimited = PoolWithoutLimit::default();
    for step in steps {
        unlimited.before_step(&fixture);
        // The attempt of a second connection, until it is answered.
        let mut beside = None;
        match step {
            Step::Ask { holder, order, asking } => {
                attempt += 1;
                let asking =
                    [join(), Asking::Failover, Asking::Switch, Asking::Beside][asking as usize].clone();
                if let Asking::Beside = asking {
                    beside = Some(Attempt(attempt));
                }
                let pools: Vec<_> = order.iter().map(|it| pool(*it)).collect();
                let holder = &mut holders[holder as usize];
                holder.0.ask(attempt, &pools, asking);
                holder.2 = order;
            }
            Step::Cancel { holder } => fixture.slots.cancel(holder, Attempt(attempt)),
            Step::Closing { holder } => holders[holder as usize].1.iter_mut().for_each(|it| it.1.closing()),
            Step::Delivers { holder } => unlimited.delivers(&mut holders[holder as usize].1, &fixture),
            Step::Refused { holder } => {
                let (holder, leases, _) = &mut holders[holder as usize];
                if let Some((_, lease)) = leases.pop() {
                    unlimited.refused(holder, &lease, &fixture);
                }
            }
            Step::Return { holder } => drop(holders[holder as usize].1.pop()),
            Step::Restart => {
                address.current().unwrap().kill();
                address.set(start().await);
            }
            Step::Wait { ms } => tokio::time::sleep(Duration::from_millis(ms)).await,
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
        for (holder, leases, order) in &mut holders {
            while let Ok(message) = holder.messages.try_recv() {
                match message {
                    // The reply may belong to an older request; the pool is read from the table.
                    SlotMessage::Granted { attempt, lease, .. } => {
                        if beside.take_if(|it| *it == attempt).is_some() {
                            let held = table.leases().into_iter().find(|it| it.id == lease.id());
                            unlimited.granted_beside(held.expect("a lease").profile);
                        }
                        leases.push((order.first().copied().unwrap_or(0), lease))
                    }
                    SlotMessage::Full { attempt, .. } => {
                        beside.take_if(|it| *it == attempt);
                    }
                    SlotMessage::Yield { asked_by, .. } if leases.len() > 1 => {
                        drop(leases.pop());
                        let _ = asked_by;
                    }
                    SlotMessage::Yield { asked_by, .. } => fixture.slots.kept(holder.id, asked_by),
                    SlotMessage::Revoked { .. } => panic!("a single node revokes nothing"),
                }
            }
        }
        assert_eq!(beside, None, "a second connection is granted or refused at once");
        unlimited.after_step(&fixture);
        let in_hands: usize = holders.iter().map(|it| it.1.len()).sum();
        assert_eq!(fixture.out(), in_hands, "the table and the leases differ");
        for limit in 1..4u32 {
            let out = table.leases().iter().filter(|it| it.profile == ProfileId(limit)).count();
            assert!(out <= limit as usize, "{out} leases out of {limit} slots");
        }
        let in_group = [AccountId(1), AccountId(2)];
        let out = table.leases().iter().filter(|it| in_group.contains(&it.account_id)).count();
        assert!(group_max == 0 || out <= group_max as usize, "{out} leases in a group of {group_max}");
        assert_eq!(table.snapshot().in_use.len(), in_hands);
    }
    holders.clear();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(table.counts(), (0, 0));
    // What was discovered is kept.
    let discovered = table.snapshot().discovered;
    assert_eq!(table.snapshot(), SlotsSnapshot { discovered, ..SlotsSnapshot::default() });
}

/// A channel of the next test: a holder, its lease while it plays, and how many viewers watch it.
struct ZapChannel {
    holder: Holder,
    lease: Option<Lease>,
    n_viewers: usize,
}

/// An account without a configured limit at a provider that carries `limit` connections.
struct UndeclaredLimit {
    fixture: SlotsFixture,
    channels: Vec<ZapChannel>,
    limit: usize,
    n_refusals: usize,
}

impl UndeclaredLimit {
    fn n_carried(&self) -> usize {
        self.channels.iter().filter(|it| it.lease.is_some()).count()
    }

    /// Lets the other channels answer requests to yield; returns the reply to the request of channel `asking`.
    async fn reply(&mut self, asking: usize) -> Result<Lease, FullPool> {
        loop {
            tokio::time::sleep(Duration::from_millis(5)).await;
            for (at, channel) in self.channels.iter_mut().enumerate() {
                while let Ok(message) = channel.holder.messages.try_recv() {
                    match message {
                        SlotMessage::Granted { lease, .. } if at == asking => return Ok(lease),
                        SlotMessage::Full { full, .. } if at == asking => return Err(full),
                        SlotMessage::Yield { .. } if channel.n_viewers == 0 => channel.lease = None,
                        SlotMessage::Yield { asked_by, .. } => {
                            channel.holder.slots.kept(channel.holder.id, asked_by);
                        }
                        other => panic!("unexpected {other:?}"),
                    }
                }
            }
        }
    }

    /// A viewer leaves `from`, which lingers, and wants to watch `to`. Returns whether it plays.
    async fn zap(&mut self, from: Option<usize>, to: usize) -> bool {
        if let Some(from) = from {
            self.channels[from].n_viewers -= 1;
        }
        self.channels[to].n_viewers += 1;
        for pause in [0, 500, 1_000, 2_000] {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if self.channels[to].lease.is_some() {
                return true;
            }
            self.channels[to].holder.ask(1, &[unlimited()], join());
            let Ok(mut lease) = self.reply(to).await else { return false };
            if self.n_carried() < self.limit {
                lease.delivers();
                self.channels[to].lease = Some(lease);
                return true;
            }
            self.n_refusals += 1;
            let holder = &self.channels[to].holder;
            if holder.slots.refused(lease.id(), &unlimited(), StreamId(to as u32)) {
                holder.slots.make_room(holder.id, unlimited());
            }
        }
        false
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// As many viewers as an undeclared limit allows zap at random. Each of them gets every channel, no slot is lost,
    /// and the provider refuses only as long as the limit is unknown.
    #[test]
    fn viewers_who_zap_within_an_undeclared_limit_are_always_served(
        limit in 1usize..4,
        zaps in prop::collection::vec((0usize..3, 0usize..7, 0u64..4_000), 1..40),
    ) {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let fixture = SlotsFixture::new().await;
            let mut channels = Vec::new();
            for id in 1..=7 {
                channels.push(ZapChannel { holder: fixture.holder(id).await, lease: None, n_viewers: 0 });
            }
            let mut account = UndeclaredLimit { fixture, channels, limit, n_refusals: 0 };
            let mut watched = vec![None; limit];
            for (viewer, to, ms) in zaps {
                let viewer = viewer % limit;
                assert!(account.zap(watched[viewer], to).await, "a viewer was refused");
                watched[viewer] = Some(to);
                assert!(account.n_carried() <= limit);
                assert_eq!(account.fixture.out(), account.n_carried(), "a slot was lost");
                tokio::time::sleep(Duration::from_millis(ms)).await;
            }
            assert!(account.n_refusals <= 1, "{} refusals", account.n_refusals);
        });
    }
}
