//! How much do the records of a large cluster cost?
//!
//! Ten members on three real NATS servers: no gateways, but their membership, channels and sessions of users. Each user has a
//! limit, so each session is a record that all nodes agree on. Viewers change channels at a steady rate: a session ends and
//! another one begins; and some of the channels are opened and closed. Measured are the CPU time and the memory of the
//! servers, the bytes that they send and receive, and the time until a session may begin.
//!
//! `cargo bench --bench cluster_load -- [--nodes 10] [--users 10000] [--zaps 200] [--channels 500] [--seconds 60]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]

#[path = "support/nats_use.rs"]
mod nats_use;
#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench has one process")]
mod options;
mod support;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actors::TestMember;
use cluster::nats::NatsEngine;
use cluster::testing::NatsServers;
use cluster::{NodeInfo, NodeLoad};
use domain::cluster::seats::SeatRequest;
use domain::cluster::{NodeEffect, NodeInput};
use domain::ids::UserId;
use domain::limits::SeatRules;
use serde_json::json;
use tokio::time::{Instant, interval, sleep, timeout};
use uuid::Uuid;

use self::nats_use::measure;
use self::options::Options;
use self::support::percentile;

/// Longest wait for a step of the preparation.
const WAIT_MAX: Duration = Duration::from_secs(300);
/// A new cluster grants nothing for this time.
const SETTLED: Duration = Duration::from_secs(25);
/// Sessions of the preparation that are asked for at once.
const AT_ONCE: usize = 64;
/// One in this many changes of channel opens a channel that nobody plays, or closes one.
const OPENS_ONE_IN: u64 = 100;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = Options::from_process();
    let n_nodes = options.number("--nodes", 10_usize);
    let n_users = options.number("--users", 10_000_u64);
    let zaps = options.number("--zaps", 200_u64);
    let n_channels = options.number("--channels", 500_u128);
    let seconds = options.number("--seconds", 60_u64);
    let program = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/tools/bin/nats-server");
    let nats = NatsServers::start(&program, 3);
    let mut members = Vec::new();
    for at in 0..n_nodes {
        let engine = Arc::new(NatsEngine::start(nats.options()));
        let info = NodeInfo { name: format!("node{at}"), load: NodeLoad::default(), ..NodeInfo::default() };
        let member = TestMember::start(engine, info).expect("the machine has a clock");
        members.push(Load {
            member,
            last_seat: 0,
            sessions: HashMap::new(),
            asked: HashMap::new(),
            times: Vec::new(),
        });
    }
    let joined = async {
        while members.iter().any(|it| it.member.n_alive() < n_nodes) {
            sleep(Duration::from_millis(200)).await;
        }
    };
    timeout(WAIT_MAX, joined).await.expect("all members see each other");
    sleep(SETTLED).await;

    let idle = measure(&nats, async || sleep(Duration::from_secs(seconds.min(30))).await).await;
    for channel in 0..n_channels {
        members[channel as usize % n_nodes].want_channel(channel, true);
    }
    let prepared = Instant::now();
    for user in 0..n_users {
        let member = &mut members[user as usize % n_nodes];
        member.take(user, 1);
        if member.asked.len() >= AT_ONCE {
            member.answered(AT_ONCE / 2).await;
        }
    }
    for member in &mut members {
        member.answered(0).await;
        member.times.clear();
    }
    let preparation = prepared.elapsed();

    let loaded = measure(&nats, async || {
        let mut ticks = interval(Duration::from_secs(1) / u32::try_from(zaps).expect("a few hundred"));
        for zap in 0..zaps * seconds {
            ticks.tick().await;
            // A fixed sequence that meets all users and nodes.
            let user = zap.wrapping_mul(7919) % n_users;
            let round = 2 + zap / n_users;
            let member = &mut members[user as usize % n_nodes];
            member.give_back(user);
            member.take(user, round);
            members.iter_mut().for_each(Load::note_answers);
            if zap % OPENS_ONE_IN == 0 {
                let channel = u128::from(zap / OPENS_ONE_IN);
                let opens = (channel / n_channels).is_multiple_of(2);
                members[(channel % n_channels) as usize % n_nodes].want_channel(channel % n_channels, !opens);
            }
        }
        for member in &mut members {
            member.answered(0).await;
        }
    })
    .await;
    let mut times: Vec<f64> = members.iter().flat_map(|it| it.times.iter().copied()).collect();
    let results = json!({
        "nodes": n_nodes, "users_with_a_session_of_a_limit": n_users, "channels": n_channels,
        "changes_of_channel_per_second": zaps, "seconds": seconds,
        "idle": idle,
        "loaded": loaded,
        "preparation_seconds": preparation.as_secs_f64(),
        "session_begins_ms": {
            "n": times.len(), "p50": percentile(&mut times, 0.5), "p99": percentile(&mut times, 0.99),
        },
    });
    println!("{results:#}");
    support::record("cluster_load", results);
}

/// The sessions and channels of one node.
struct Load {
    member: TestMember,
    last_seat: u64,
    /// The session of each user.
    sessions: HashMap<u64, u64>,
    /// When a session was asked for, by its number.
    asked: HashMap<u64, Instant>,
    /// Milliseconds until sessions could begin.
    times: Vec<f64>,
}

impl Load {
    fn take(&mut self, user: u64, round: u64) {
        let request = SeatRequest {
            limit: 2,
            device: Uuid::from_u128(user.into()),
            target: Uuid::from_u128(u128::from(round)),
            rules: SeatRules::default(),
            shared: Arc::default(),
            until: TestMember::now() + Duration::from_secs(2),
        };
        let seat = self.last_seat + 1;
        self.last_seat = seat;
        self.sessions.insert(user, seat);
        self.asked.insert(seat, Instant::now());
        self.member.send(NodeInput::TakeSeat { user: UserId(user as u32), seat, request });
    }

    fn give_back(&mut self, user: u64) {
        if let Some(seat) = self.sessions.remove(&user) {
            self.member.send(NodeInput::ReturnSeat { user: UserId(user as u32), seat });
        }
    }

    fn want_channel(&self, channel: u128, is_wanted: bool) {
        let channel = Uuid::from_u128(channel + 1);
        self.member.send(NodeInput::WantChannel { channel, is_wanted, may_originate: true });
    }

    fn note(&mut self, effect: &NodeEffect) {
        if let NodeEffect::Seated { seat, .. } | NodeEffect::NotSeated { seat, .. } = effect
            && let Some(asked) = self.asked.remove(seat)
        {
            self.times.push(asked.elapsed().as_secs_f64() * 1000.0);
        }
    }

    fn note_answers(&mut self) {
        while let Ok(effect) = self.member.effects.seats.try_recv() {
            self.note(&effect);
        }
    }

    /// Waits until at most this many requests are open.
    async fn answered(&mut self, n_left: usize) {
        while self.asked.len() > n_left {
            let effect =
                timeout(WAIT_MAX, self.member.effects.seats.recv()).await.expect("an answer in time");
            self.note(&effect.expect("the member runs"));
        }
    }
}
