//! Nodes of a cluster: gateways in processes of their own, and NATS.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;

use cluster::testing::NatsServers;
use domain::cluster::version::{ClusterVersion, OWN_VERSIONS};
use serde_json::{Value, json};
use storage::Store;
use storage::records::schema;
use tempfile::TempDir;

use super::api::{ADMIN, Api, PASSWORD};
use super::binary::{BINARY, Binary};
use super::{tools, until_async};

/// Starts one NATS server.
pub fn nats() -> NatsServers {
    NatsServers::start(&tools::installed("bin/nats-server"), 1)
}

/// Fails if a file in a folder contains one of these texts.
pub fn contains_none(folder: &Path, texts: &[&str]) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            contains_none(&path, texts);
        } else if let Ok(bytes) = fs::read(&path) {
            for text in texts {
                let is_in = bytes.windows(text.len()).any(|it| it == text.as_bytes());
                assert!(!is_in, "{} contains {text:?}", path.display());
            }
        }
    }
}

/// A data folder with the settings of a node.
pub struct Machine {
    pub folder: TempDir,
    pub name: &'static str,
    servers: String,
    /// The file of the program.
    pub program: String,
    /// The command that becomes the program, and the address of the machine.
    command: Vec<String>,
    host: String,
    /// More settings, such as `cluster.role=edge`.
    pub settings: Vec<String>,
}

impl Machine {
    pub fn new(name: &'static str, nats: &NatsServers) -> Self {
        Self::new_at(name, nats, Vec::new(), "127.0.0.1".to_owned())
    }

    /// Returns a machine on which a command becomes the program.
    pub fn new_at(name: &'static str, nats: &NatsServers, command: Vec<String>, host: String) -> Self {
        let servers = format!("cluster.servers={}", json!(nats.options().servers));
        let settings = Vec::new();
        let (folder, program) = (tempfile::tempdir().expect("a folder"), BINARY.to_owned());
        Self { folder, name, servers, program, command, host, settings }
    }

    pub fn run(&self, arguments: &[&str]) -> Binary {
        let name = format!("cluster.node_name={}", self.name);
        let folder = self.folder.path().display().to_string();
        let own = ["--data-dir", &folder, "--set", &self.servers, "--set", &name];
        let port = format!("cluster.listen={}:0", self.host);
        let addresses = format!("cluster.addresses=[\"{}\"]", self.host);
        let any = format!("{}:0", self.host);
        let listen = ["--set", &port, "--set", &addresses, "--player-listen", &any, "--api-listen", &any];
        let command: Vec<_> = self.command.iter().map(String::as_str).collect();
        let more: Vec<_> = self.settings.iter().flat_map(|it| ["--set", it.as_str()]).collect();
        Binary::start_program(&self.program, &command, &[arguments, &own, &listen, &more].concat())
    }

    /// Runs a gateway of its own, which knows of no cluster.
    pub fn run_alone(&self) -> Binary {
        let folder = self.folder.path().display().to_string();
        Binary::start_program(&self.program, &[], &["serve", "--data-dir", &folder])
    }

    pub async fn command(&self, arguments: &[&str]) -> (Option<i32>, String) {
        self.run(arguments).outcome().await
    }

    pub async fn succeeds(&self, arguments: &[&str]) -> String {
        let (code, text) = self.command(arguments).await;
        assert_eq!(code, Some(0), "{arguments:?}: {text}");
        text
    }

    /// Runs a gateway of its own until it has its first admin.
    pub async fn with_admin(self) -> Self {
        let mut program = self.run_alone();
        Api::stranger_at(program.address().await).become_first_admin().await;
        program.signal("TERM");
        assert!(program.ended().await.success(), "{}", program.output());
        self
    }

    pub async fn serve(self, arguments: &[&str]) -> Node {
        let program = self.run(&[&["serve"], arguments].concat());
        let address = program.address().await;
        Node { machine: self, program, api: Api::stranger_at(address), address }
    }
}

/// A gateway that runs.
pub struct Node {
    pub machine: Machine,
    pub program: Binary,
    pub address: SocketAddr,
    pub api: Api,
}

impl Node {
    /// Returns the status of a live channel as this node shows it.
    pub async fn channel(&self, uuid: &str) -> Value {
        self.api.get(&format!("/proxy/ts/status/{uuid}")).await.body
    }

    /// Waits until a channel has its origin at a node. A new cluster grants nothing for 20 s; until then, each node plays for
    /// itself.
    pub async fn until_origin_is(&self, uuid: &str, name: &str) {
        let what = format!("{} to have the origin {name}: {}", self.machine.name, self.program.output());
        until_async(&what, async || self.channel(uuid).await["source_node"] == name).await;
    }

    pub async fn logs_in(&mut self) {
        let mut reply = None;
        until_async(&format!("a login at {}", self.machine.name), async || {
            let answer = Api::stranger_at(self.address).token(ADMIN, PASSWORD).await;
            let is_done = answer.status == 200;
            reply = Some(answer);
            is_done
        })
        .await;
        let reply = reply.expect("waited for it");
        self.api = Api::stranger_at(self.address).bearer(reply.text("access"));
    }

    /// Waits until it has restarted by itself, once since it was started, and logs in.
    pub async fn has_restarted(&mut self) {
        let address = |output: &str| {
            let (before, _) =
                output.rsplit_once("/playlist.m3u").filter(|it| it.0.contains("/playlist.m3u"))?;
            before.rsplit("http://").next()?.parse().ok()
        };
        until_async(&format!("{} to restart", self.machine.name), async || {
            address(&self.program.output()).is_some()
        })
        .await;
        self.address = address(&self.program.output()).expect("waited for it");
        self.logs_in().await;
    }

    /// Returns the names of the channels that this node lists.
    pub async fn channels(&self) -> Vec<String> {
        let reply = self.api.get("/api/channels/channels/").await;
        assert_eq!(reply.status, 200, "{reply:?}");
        let all = reply.body["results"].as_array().or(reply.body.as_array()).cloned().unwrap_or_default();
        let mut names: Vec<_> =
            all.iter().map(|it| it["name"].as_str().expect("a name").to_owned()).collect();
        names.sort();
        names
    }

    /// Creates a channel; waits for a node that writes.
    pub async fn creates(&self, name: &str) {
        let what = format!("{} to create {name}: {}", self.machine.name, self.program.output());
        until_async(&what, async || {
            let reply = self.api.post("/api/channels/channels/", json!({ "name": name })).await;
            assert!(matches!(reply.status, 201 | 503), "{reply:?}");
            if reply.status == 503 {
                assert!(reply.answer.header("retry-after").is_some(), "{reply:?}");
            }
            reply.status == 201
        })
        .await;
    }

    pub async fn lists(&self, names: &[&str]) {
        let what = format!("{} to list {names:?}: {}", self.machine.name, self.program.output());
        until_async(&what, async || self.channels().await == names).await;
    }

    /// Waits until another node is a member.
    pub async fn sees(&self, name: &str) {
        until_async(&format!("{} to see {name}", self.machine.name), async || {
            let body = self.api.get("/api/core/nodes/").await.body;
            let nodes = body["nodes"].as_array().cloned().unwrap_or_default();
            nodes.iter().any(|it| it["name"] == name && it["state"] == "alive")
        })
        .await;
    }

    pub async fn stops(mut self) -> Machine {
        self.program.signal("TERM");
        assert_eq!(self.program.ended().await.code(), Some(0), "{}", self.program.output());
        self.machine
    }

    /// Kills the gateway. Its guard lives, and tells the other nodes.
    pub async fn killed(mut self) -> Machine {
        self.program.signal("KILL");
        self.program.ended().await;
        self.machine
    }

    /// Kills the gateway and its guard, so that the other nodes learn nothing, as when its machine is lost.
    pub async fn vanishes(self) -> Machine {
        self.program.loses_guard();
        self.killed().await
    }
}

/// Makes a machine the first node of a cluster, and lets another one join. Both run, and an admin has logged in.
pub async fn two_nodes(first: Machine, second: Machine) -> [Node; 2] {
    let mut nodes = nodes([first, second]).await.into_iter();
    [(); 2].map(|()| nodes.next().expect("two"))
}

/// Makes the first machine the first node of a cluster, and lets the others join. All run, and an admin has logged in.
pub async fn nodes(machines: impl IntoIterator<Item = Machine>) -> Vec<Node> {
    let mut machines = machines.into_iter();
    let first = machines.next().expect("a machine");
    first.succeeds(&["cluster", "init"]).await;
    let mut first = first.serve(&[]).await;
    first.logs_in().await;
    let mut nodes = vec![first];
    for machine in machines {
        let mut token = String::new();
        // Only the node that writes makes tokens, and a new cluster has none for a while.
        until_async("a join token", async || {
            let (code, text) = nodes[0].machine.command(&["cluster", "token"]).await;
            text.trim().clone_into(&mut token);
            code == Some(0)
        })
        .await;
        let mut node = machine.serve(&["--join", &token]).await;
        node.logs_in().await;
        node.sees(nodes[0].machine.name).await;
        nodes[0].sees(node.machine.name).await;
        nodes.push(node);
    }
    nodes
}

/// Lets another machine join in a role, through the node that writes. An admin has logged in there.
pub async fn join(writer: &Node, machine: Machine, role: &str) -> Node {
    let mut token = String::new();
    // A new cluster makes none for a while.
    until_async("a join token", async || {
        let (code, text) = writer.machine.command(&["cluster", "token", "--role", role]).await;
        text.trim().clone_into(&mut token);
        code == Some(0)
    })
    .await;
    let mut node = machine.serve(&["--join", &token]).await;
    node.logs_in().await;
    node.sees(writer.machine.name).await;
    writer.sees(node.machine.name).await;
    node
}

/// Starts the only node of a cluster that writes the version before the newest, as after an upgrade of all nodes.
pub async fn upgraded(machine: Machine) -> Node {
    machine.succeeds(&["cluster", "init"]).await;
    let root = machine.folder.path().to_owned();
    let version = OWN_VERSIONS.newest - 1;
    let writing = tokio::task::spawn_blocking(move || {
        let store = Store::open(&root.join("store"), &root.join("key"), schema()).expect("a store");
        store.leave_log().expect("a store that can be written");
        store.write_blocking(move |write| write.put(&ClusterVersion { version })).expect("a commit");
        store.close();
    });
    writing.await.expect("a thread");
    machine.succeeds(&["cluster", "reseed"]).await;
    machine.serve(&[]).await
}
