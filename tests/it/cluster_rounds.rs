//! Five nodes, three NATS servers and a provider that counts its sockets, each on a machine with a network of its own, while
//! processes and networks fail. The last node is an edge node.
//!
//! One account has fewer connections than channels, and players zap between these. The connections of another account are
//! all in use: at each node, one viewer of each of its channels stays. The response of no such viewer ends, unless the node
//! itself fails.

mod night {
    use std::collections::BTreeSet;
    use std::io::{Write as _, stderr};
    use std::net::SocketAddr;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
    use std::time::Duration;

    use cluster::testing::NatsServers;
    use parking_lot::Mutex;
    use serde_json::json;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::task::JoinSet;
    use tokio::time::{Instant, sleep, timeout};
    use tokio_util::task::AbortOnDropHandle;

    use crate::support::cluster::{Machine, Node, join, nodes};
    use crate::support::cluster_content::{FilledAccount, fill_accounts};
    use crate::support::namespace::{Machines, ROUTER, is_inside, run};
    use crate::support::random::Random;
    use crate::support::tools;
    use crate::support::upstream::Provider;

    const NAMES: [&str; 5] = ["attic", "barn", "cellar", "den", "entry"];
    const CHANNELS: [&str; 4] = ["One", "Two", "Three", "Four"];
    /// The channels of those who stay, which use all connections of their account.
    const FULL: [&str; 2] = ["Five", "Six"];
    /// The number of connections of each account.
    const LIMIT: usize = 2;
    const N_SERVERS: usize = 3;
    /// The machines of the NATS servers follow those of the nodes.
    const FIRST_SERVER: usize = NAMES.len() + 1;
    /// Longest time until everything works again after a fault. This only ends a wait that would last forever.
    const RECOVERY_MAX: Duration = Duration::from_secs(300);

    /// A failure of a process, a network or a disk.
    #[derive(Debug, Clone, Copy)]
    enum Fault {
        /// A gateway is killed, and started again.
        Kill(usize),
        /// A gateway is killed together with its guard, so that the others learn nothing, and started again.
        Vanish(usize),
        /// A gateway is frozen until its guard kills it, or shorter.
        Freeze(usize),
        /// A gateway loses the NATS servers, in these directions.
        CutFromNats {
            node: usize,
            sends: bool,
            receives: bool,
        },
        /// Two gateways lose each other.
        CutApart(usize, usize),
        /// A gateway loses the NATS servers and all other gateways.
        Isolate(usize),
        /// The link of a gateway to the other machines has 200 ms more from end to end and back, and loses 5 % of its packets.
        SlowLink(usize),
        /// The NATS server that leads is killed, and started again.
        KillLeader,
        FreezeLeader,
        KillMajority,
        /// A NATS server loses its disk.
        LoseDisk(usize),
    }

    impl Fault {
        /// Returns one failure of each kind, in random order.
        fn all(random: &mut Random) -> Vec<Self> {
            let node = |random: &mut Random| random.below(NAMES.len() as u64) as usize;
            let cut = |random: &mut Random, sends, receives| Self::CutFromNats {
                node: node(random),
                sends,
                receives,
            };
            let (first, distance) = (node(random), 1 + random.below(NAMES.len() as u64 - 1) as usize);
            let mut all = vec![
                Self::Kill(node(random)),
                Self::Vanish(node(random)),
                Self::Freeze(node(random)),
                cut(random, true, true),
                cut(random, true, false),
                cut(random, false, true),
                Self::CutApart(first, (first + distance) % NAMES.len()),
                Self::Isolate(node(random)),
                Self::SlowLink(node(random)),
                Self::KillLeader,
                Self::FreezeLeader,
                Self::KillMajority,
                Self::LoseDisk(random.below(N_SERVERS as u64) as usize),
            ];
            random.shuffle(&mut all);
            all
        }

        /// Returns the node that fails, whose viewers may have to connect again.
        fn failed_node(self) -> Option<usize> {
            match self {
                Self::Kill(at) | Self::Vanish(at) | Self::Freeze(at) | Self::Isolate(at) => Some(at),
                Self::CutFromNats { node, .. } => Some(node),
                Self::CutApart(..)
                | Self::SlowLink(_)
                | Self::KillLeader
                | Self::FreezeLeader
                | Self::KillMajority
                | Self::LoseDisk(_) => None,
            }
        }
    }

    /// A viewer who stays until the response ends.
    struct Staying {
        task: AbortOnDropHandle<()>,
        n_bytes: Arc<AtomicU64>,
    }

    impl Staying {
        /// Asks for a channel until it plays.
        async fn begin(address: SocketAddr, path: &str) -> Self {
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            let begin = Instant::now();
            loop {
                let mut socket = TcpStream::connect(address).await.expect("the node runs");
                socket.write_all(request.as_bytes()).await.expect("the node reads");
                let mut buffer = vec![0; 65_536];
                if let Ok(n) = socket.read(&mut buffer).await
                    && buffer[..n].starts_with(b"HTTP/1.1 200")
                {
                    let n_bytes = Arc::<AtomicU64>::default();
                    let of_task = Arc::clone(&n_bytes);
                    let task = tokio::spawn(async move {
                        while let Ok(n @ 1..) = socket.read(&mut buffer).await {
                            of_task.fetch_add(n as u64, Ordering::Relaxed);
                        }
                    });
                    return Self { task: AbortOnDropHandle::new(task), n_bytes };
                }
                assert!(begin.elapsed() < RECOVERY_MAX, "no viewer can stay at {address}{path}");
                sleep(Duration::from_millis(200)).await;
            }
        }
    }

    /// A player at each node, which asks for one channel after another.
    #[derive(Default)]
    struct Watching {
        /// Where each node is reached; `None` while it does not run.
        addresses: Mutex<[Option<SocketAddr>; NAMES.len()]>,
        paths: Vec<String>,
        /// Received bytes of streams at each node.
        n_bytes: [AtomicU64; NAMES.len()],
        is_over: AtomicBool,
    }

    impl Watching {
        async fn watch(self: Arc<Self>, at: usize, mut random: Random) {
            while !self.is_over.load(Ordering::Relaxed) {
                let address = self.addresses.lock()[at];
                let path = random.pick(&self.paths).clone();
                let time = random.millis(500, 6_000);
                if let Some(address) = address {
                    // Gateways are killed and frozen while they are asked.
                    let _ = timeout(time, self.play(at, address, &path)).await;
                }
                random.pause(500).await;
            }
        }

        async fn play(&self, at: usize, address: SocketAddr, path: &str) -> std::io::Result<()> {
            let mut socket = TcpStream::connect(address).await?;
            let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n\r\n");
            socket.write_all(request.as_bytes()).await?;
            let mut buffer = vec![0; 65_536];
            let n = socket.read(&mut buffer).await?;
            if !buffer[..n].starts_with(b"HTTP/1.1 200") {
                return Ok(());
            }
            loop {
                let n = socket.read(&mut buffer).await?;
                if n == 0 {
                    return Ok(());
                }
                self.n_bytes[at].fetch_add(n as u64, Ordering::Relaxed);
            }
        }

        fn received(&self) -> [u64; NAMES.len()] {
            std::array::from_fn(|at| self.n_bytes[at].load(Ordering::Relaxed))
        }
    }

    struct Cluster {
        machines: Machines,
        nats: NatsServers,
        nodes: Vec<Option<Node>>,
        watching: Arc<Watching>,
        provider: Provider,
        /// The paths of the channels of the full account.
        full: Vec<String>,
        /// For each node, a viewer of each of these channels.
        staying: [Vec<Staying>; NAMES.len()],
        /// The names of channels whose creation was answered.
        created: BTreeSet<String>,
    }

    impl Cluster {
        fn node(&self, at: usize) -> &Node {
            self.nodes[at].as_ref().expect("it runs")
        }

        async fn start_node(&mut self, at: usize, machine: Machine) {
            let node = machine.serve(&[]).await;
            self.watching.addresses.lock()[at] = Some(node.address);
            self.nodes[at] = Some(node);
        }

        /// Begins a fault, lets it last, and ends it.
        async fn suffer(&mut self, fault: Fault, random: &mut Random) {
            match fault {
                Fault::Kill(at) | Fault::Vanish(at) => {
                    let node = self.nodes[at].take().expect("it runs");
                    self.watching.addresses.lock()[at] = None;
                    let machine = match fault {
                        Fault::Vanish(_) => node.vanishes().await,
                        _ => node.killed().await,
                    };
                    self.last(random.millis(1_000, 35_000)).await;
                    self.start_node(at, machine).await;
                }
                Fault::Freeze(at) => {
                    self.node(at).program.signal("STOP");
                    self.last(random.millis(3_000, 25_000)).await;
                    let mut node = self.nodes[at].take().expect("it runs");
                    if node.program.is_running() {
                        node.program.signal("CONT");
                    }
                    sleep(Duration::from_secs(1)).await;
                    if node.program.is_running() {
                        self.nodes[at] = Some(node);
                    } else {
                        self.start_node(at, node.machine).await;
                    }
                }
                Fault::CutFromNats { node, sends, receives } => {
                    for server in FIRST_SERVER..FIRST_SERVER + N_SERVERS {
                        if sends {
                            self.machines.cut(node + 1, server);
                        }
                        if receives {
                            self.machines.cut(server, node + 1);
                        }
                    }
                    self.last(random.millis(5_000, 45_000)).await;
                }
                Fault::CutApart(a, b) => {
                    self.machines.cut(a + 1, b + 1);
                    self.machines.cut(b + 1, a + 1);
                    self.last(random.millis(5_000, 30_000)).await;
                }
                Fault::Isolate(at) => {
                    for other in (1..FIRST_SERVER + N_SERVERS).filter(|it| *it != at + 1) {
                        self.machines.cut(at + 1, other);
                        self.machines.cut(other, at + 1);
                    }
                    self.last(random.millis(5_000, 45_000)).await;
                }
                Fault::SlowLink(at) => {
                    self.machines.slow_down(at + 1);
                    self.last(random.millis(10_000, 40_000)).await;
                }
                Fault::KillLeader | Fault::FreezeLeader => {
                    let Some(leader) = self.nats.leader(0).await else { return };
                    if matches!(fault, Fault::KillLeader) {
                        self.nats.kill(leader);
                        self.last(random.millis(1_000, 20_000)).await;
                        self.nats.restart(leader);
                    } else {
                        self.nats.freeze(leader);
                        self.last(random.millis(1_000, 20_000)).await;
                        self.nats.thaw(leader);
                    }
                }
                Fault::KillMajority => {
                    self.nats.kill(0);
                    self.nats.kill(1);
                    self.last(random.millis(1_000, 30_000)).await;
                    self.nats.restart(0);
                    self.nats.restart(1);
                }
                Fault::LoseDisk(at) => {
                    self.nats.kill(at);
                    self.nats.remove_data(at);
                    self.last(random.millis(1_000, 10_000)).await;
                    self.nats.restart(at);
                }
            }
            self.machines.restore();
        }

        /// Lets a fault last, while the configuration is written.
        async fn last(&mut self, time: Duration) {
            let until = Instant::now() + time;
            let mut n = self.created.len();
            while Instant::now() < until {
                for at in 0..NAMES.len() {
                    let Some(node) = &self.nodes[at] else { continue };
                    let (api, name) = (node.api.clone(), format!("new {n}"));
                    n += 1;
                    // A gateway that is frozen does not answer, and one without a writer refuses.
                    let writing = tokio::spawn({
                        let name = name.clone();
                        async move { api.post("/api/channels/channels/", json!({ "name": name })).await.status }
                    });
                    if let Ok(Ok(201)) = timeout(Duration::from_secs(5), writing).await {
                        self.created.insert(name);
                        break;
                    }
                }
                sleep(Duration::from_secs(2)).await;
            }
        }

        /// Lets a viewer of each channel of the full account stay at each node, and waits until all its connections are in use.
        async fn viewers_stay(&mut self) {
            for at in 0..NAMES.len() {
                let address = self.node(at).address;
                for path in &self.full[self.staying[at].len()..] {
                    self.staying[at].push(Staying::begin(address, path).await);
                }
            }
            let begin = Instant::now();
            for name in FULL {
                while self.provider.open_on(&format!("/live/bert/{name}.ts")) == 0 {
                    assert!(begin.elapsed() < RECOVERY_MAX, "{name} has no connection");
                    sleep(Duration::from_millis(200)).await;
                }
            }
        }

        /// Fails if the response of a viewer at a node has ended that has not failed.
        fn nobody_ended(&mut self, fault: Fault, what: &str) {
            if let Some(at) = fault.failed_node() {
                self.staying[at].clear();
            }
            for (at, viewers) in self.staying.iter().enumerate() {
                for (viewer, name) in viewers.iter().zip(FULL) {
                    let n_bytes = viewer.n_bytes.load(Ordering::Relaxed);
                    assert!(
                        !viewer.task.is_finished(),
                        "{what}: the viewer of {name} at {} ended after {n_bytes} bytes:\n{}",
                        NAMES[at],
                        self.node(at).program.output()
                    );
                }
            }
        }

        /// Fails if the provider has seen more connections of an account than it allows.
        fn limits_held(&self, what: &str) {
            for account in ["anna", "bert"] {
                let (peak, refusals) = (self.provider.peak_of(account), self.provider.refusals());
                let overlaps = self.provider.overlaps(account);
                assert!(
                    peak <= LIMIT,
                    "{what}: {peak} connections of {account} at once, {refusals} refused: {overlaps:#?}"
                );
            }
        }

        /// Waits until there are streams at all nodes, and all have what was created.
        async fn recovers(&mut self, what: &str) -> Duration {
            let begin = Instant::now();
            let before = self.watching.received();
            loop {
                let now = self.watching.received();
                let silent: Vec<_> = (0..NAMES.len()).filter(|it| now[*it] == before[*it]).collect();
                if silent.is_empty() {
                    break;
                }
                if begin.elapsed() > RECOVERY_MAX {
                    let outputs = silent
                        .iter()
                        .map(|it| format!("{}:\n{}", NAMES[*it], self.node(*it).program.output()));
                    panic!("{what}: no stream at\n{}", outputs.collect::<String>());
                }
                sleep(Duration::from_millis(200)).await;
            }
            for node in self.nodes.iter_mut().flatten() {
                // Tokens do not live as long as this test.
                node.logs_in().await;
                loop {
                    let channels: BTreeSet<_> = node.channels().await.into_iter().collect();
                    let missing: Vec<_> = self.created.difference(&channels).collect();
                    if missing.is_empty() {
                        break;
                    }
                    let (name, output) = (node.machine.name, node.program.output());
                    assert!(begin.elapsed() < RECOVERY_MAX, "{what}: {name} lacks {missing:?}:\n{output}");
                    sleep(Duration::from_millis(200)).await;
                }
            }
            begin.elapsed()
        }
    }

    // Holds T-clu.1.
    #[test]
    fn limits_and_answered_writes_hold_while_machines_and_networks_fail() {
        if is_inside(
            "cluster_rounds::night::limits_and_answered_writes_hold_while_machines_and_networks_fail",
        ) {
            run(rounds());
        }
    }

    async fn rounds() {
        // `HEADWATER_ROUNDS=100` is for a long run by hand; `HEADWATER_SEED` chooses others.
        let number =
            |name: &str, default| std::env::var(name).ok().and_then(|it| it.parse().ok()).unwrap_or(default);
        let (n_rounds, seed): (u64, u64) = (number("HEADWATER_ROUNDS", 1), number("HEADWATER_SEED", 1));
        let mut random = Random(seed);
        let machines = Machines::new(NAMES.len() + N_SERVERS);
        let on = |at| (Machines::host(at), Machines::command(at));
        let servers = (FIRST_SERVER..FIRST_SERVER + N_SERVERS).map(on).collect();
        let nats = NatsServers::start_on(&tools::installed("bin/nats-server"), servers);
        let provider = Provider::start_at(ROUTER.parse().unwrap());
        let of_node =
            |(at, name)| Machine::new_at(name, &nats, Machines::command(at + 1), Machines::host(at + 1));
        let mut all: Vec<_> = NAMES.into_iter().enumerate().map(of_node).collect();
        let accounts = [
            FilledAccount { name: "Provider", user: "anna", channels: &CHANNELS, limit: LIMIT },
            FilledAccount { name: "Full", user: "bert", channels: &FULL, limit: LIMIT },
        ];
        let mut paths = fill_accounts(&all[0], &provider, &accounts).await;
        let full = paths.split_off(CHANNELS.len());
        for account in &accounts {
            provider.limit(account.user, LIMIT, 403, Duration::ZERO);
        }
        let edge = all.pop().expect("one for each name");
        let mut nodes = nodes(all).await;
        let edge = join(&nodes[0], edge, "edge").await;
        nodes.push(edge);
        let nodes: Vec<_> = nodes.into_iter().map(Some).collect();
        let addresses = std::array::from_fn(|at| nodes[at].as_ref().map(|it| it.address));
        let watching = Arc::new(Watching { paths, addresses: Mutex::new(addresses), ..Watching::default() });
        let mut players = JoinSet::new();
        for at in 0..NAMES.len() {
            players.spawn(Arc::clone(&watching).watch(at, Random(seed + 1 + at as u64)));
        }
        let (staying, created) = (std::array::from_fn(|_| Vec::new()), BTreeSet::new());
        let mut cluster = Cluster { machines, nats, nodes, watching, provider, full, staying, created };
        cluster.recovers("the start").await;
        let mut faults = Vec::new();
        for round in 0..n_rounds {
            if faults.is_empty() {
                faults = Fault::all(&mut random);
            }
            let fault = faults.pop().unwrap();
            cluster.viewers_stay().await;
            cluster.suffer(fault, &mut random).await;
            let what = format!("round {round} of seed {seed}, {fault:?}");
            let recovery = cluster.recovers(&what).await;
            let n_created = cluster.created.len();
            let _ = writeln!(stderr(), "{what}: recovered in {recovery:?}; {n_created} channels created");
            cluster.nobody_ended(fault, &what);
            cluster.limits_held(&what);
        }
        cluster.viewers_stay().await;
        cluster.watching.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = players.join_next().await {
            ended.expect("a player does not panic");
        }
        assert!(cluster.watching.received().iter().all(|it| *it > 0));
        for node in cluster.nodes.into_iter().flatten() {
            node.stops().await;
        }
    }
}
