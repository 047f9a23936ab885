//! A whole gateway on free ports, made of playlists, in the process and on the runtime of the test.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use domain::channel::Channel;
use domain::event::{Event, EventBody};
use domain::playlist::catalogue::{Catalogue, CatalogueBuilder};
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};
use domain::settings::Settings;
use domain::stream::RequestHeaders;
use headwater::config::{Config, Listen};
use headwater::{Gateway, Runtimes};
use storage::{Models, Store, Write};
use tokio::time::Instant;

use super::client::{Player, Request, fetch};
use super::{PATIENCE, eventually};

/// What a gateway is to be made of.
pub struct Setup {
    catalogue: CatalogueBuilder,
    n_lists: usize,
    config: Config,
    release_delay: Duration,
    folder: Option<PathBuf>,
}

/// Settings that let a story pass quickly; the rest is as for everybody.
fn brisk() -> Settings {
    Settings {
        channel_shutdown_delay: Duration::from_millis(200),
        stall_timeout: Duration::from_secs(1),
        ..Settings::default()
    }
}

impl Setup {
    pub fn new() -> Setup {
        let local = Listen::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let config = Config { api_listen: local, player_listen: local, engine: brisk(), ..Config::default() };
        Setup {
            catalogue: CatalogueBuilder::new(),
            n_lists: 0,
            config,
            release_delay: Duration::ZERO,
            folder: None,
        }
    }

    /// A playlist as an account of its own without a limit.
    pub fn list(self, text: &str) -> Setup {
        self.limited_list(text, 0)
    }

    pub fn limited_list(mut self, text: &str, max_streams: u32) -> Setup {
        self.n_lists += 1;
        let account =
            self.catalogue.account(&format!("list {}", self.n_lists), max_streams, RequestHeaders::default());
        for item in parse(text.as_bytes(), PlaylistLimits::default()).0 {
            if let PlaylistItem::Entry(entry) = item {
                self.catalogue.entry(account, entry);
            }
        }
        self
    }

    pub fn engine(mut self, change: impl FnOnce(&mut Settings)) -> Setup {
        change(&mut self.config.engine);
        self
    }

    pub fn config(mut self, change: impl FnOnce(&mut Config)) -> Setup {
        change(&mut self.config);
        self
    }

    /// How long every provider counts a connection that was closed.
    pub fn release_delay(mut self, delay: Duration) -> Setup {
        self.release_delay = delay;
        self
    }

    /// The store lies in this data folder, and not in memory.
    pub fn folder(mut self, folder: &Path) -> Setup {
        self.folder = Some(folder.to_owned());
        self
    }

    pub async fn start(self) -> TestGateway {
        let mut catalogue = self.catalogue.build();
        for account in &mut catalogue.accounts {
            account.release_delay = self.release_delay;
        }
        // `RUST_LOG=debug cargo test … -- --nocapture` shows what the gateway says.
        if let Ok(filter) = std::env::var("RUST_LOG") {
            let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        }
        let store = match self.folder {
            Some(folder) => {
                let catalogue = catalogue.clone();
                let kept = tokio::task::spawn_blocking(move || kept_in(&folder, catalogue));
                kept.await.expect("a store")
            }
            None => headwater::play::temporary(catalogue.clone()).await.expect("a store"),
        };
        let started = Gateway::start(self.config, store, Runtimes::current()).await;
        let gateway = started.expect("the gateway starts");
        TestGateway { address: gateway.player_addr(), api: gateway.api_addr(), gateway, catalogue }
    }
}

/// A store as the program has it in its data folder, with a catalogue in it.
fn kept_in(folder: &Path, catalogue: Catalogue) -> Store {
    let store = folder.join("store");
    std::fs::create_dir_all(&store).expect("the folder can be written");
    let store = Store::open(&store, &folder.join("key"), storage::records::schema()).expect("a store");
    storage::seed(&store).expect("it is written");
    storage::store_catalogue(&store, catalogue).expect("it is written");
    store
}

/// A gateway that runs until it is dropped.
pub struct TestGateway {
    /// Where players call.
    pub address: SocketAddr,
    /// Where administrators' programs call.
    pub api: SocketAddr,
    pub gateway: Gateway,
    pub catalogue: Catalogue,
}

impl TestGateway {
    /// What the gateway remembers.
    pub fn models(&self) -> &Models {
        self.gateway.models()
    }

    /// Changes what is remembered, as an admin would, and waits until that is answered.
    pub async fn change<F>(&self, change: F)
    where
        F: FnOnce(&mut Write<'_>) -> storage::Result<()> + Send + 'static,
    {
        self.models().store.write(change).await.expect("it is written");
    }

    /// One list without a limit, with brisk settings.
    pub async fn of(list: &str) -> TestGateway {
        Setup::new().list(list).start().await
    }

    /// A channel as it was at the start, by its name.
    pub fn channel(&self, name: &str) -> &Channel {
        let found = self.catalogue.channels.iter().find(|it| it.name == name);
        found.unwrap_or_else(|| panic!("no channel {name} in the lists"))
    }

    /// The path of a channel's stream, by the channel's name.
    pub fn path(&self, channel: &str) -> String {
        format!("/proxy/ts/stream/{}", self.channel(channel).uuid)
    }

    pub fn get(&self, channel: &str) -> Request {
        Request::get(self.path(channel))
    }

    /// Asks for a channel; the answer is recorded in the background.
    pub async fn watch(&self, channel: &str) -> Player {
        Player::watch(self.address, &self.path(channel)).await
    }

    /// Events of the past, oldest first.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.gateway.events().recent()
    }

    pub fn event_names(&self) -> Vec<&'static str> {
        self.events().iter().map(|event| event.body.name()).collect()
    }

    pub fn n_events(&self, name: &str) -> usize {
        self.event_names().iter().filter(|it| **it == name).count()
    }

    /// `(from, to, cause)` of each failover, in order.
    pub fn failovers(&self) -> Vec<(String, String, String)> {
        let failover = |event: &Arc<Event>| match &event.body {
            EventBody::ChannelFailover { from, to, cause, .. } => {
                Some((from.name.clone(), to.name.clone(), cause.clone()))
            }
            _ => None,
        };
        self.events().iter().filter_map(failover).collect()
    }

    /// The page of metrics: name, with labels if there are any, and value.
    pub async fn metrics(&self) -> BTreeMap<String, f64> {
        let answer = fetch(self.address, Request::get("/metrics")).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let text = answer.text();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(name, value)| (name.to_owned(), value.parse().unwrap_or(f64::NAN)))
            .collect()
    }

    /// Waits until nothing is left of what was watched: no client, channel, lease or socket.
    #[track_caller]
    pub fn is_quiet(&self) -> impl Future<Output = ()> + '_ {
        let story = std::panic::Location::caller();
        async move {
            let left = || {
                let counts = self.gateway.counts();
                [counts.clients, counts.channels, counts.leases, counts.sockets_open]
            };
            let deadline = Instant::now() + PATIENCE;
            while left() != [0; 4] {
                assert!(
                    Instant::now() < deadline,
                    "{story}: clients, channels, leases, sockets left: {:?}",
                    left()
                );
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
    }

    #[track_caller]
    pub fn has_clients(&self, n: usize) -> impl Future<Output = ()> + '_ {
        eventually("the number of clients", move || self.gateway.counts().clients == n)
    }
}
