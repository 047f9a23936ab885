//! A complete gateway on free ports, built from playlists, in the process and on the runtime of the test.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::{Config, ContainerProxy, Listen};
use domain::channel::Channel;
use domain::event::{Event, EventBody};
use domain::playlist::catalogue::{Catalogue, CatalogueBuilder};
use domain::playlist::m3u::{PlaylistItem, PlaylistLimits, parse};
use domain::settings::Settings;
use domain::stream::RequestHeaders;
use headwater::{Gateway, Runtimes};
use storage::{Models, Store, Write};
use tempfile::TempDir;
use tokio::time::Instant;

use super::client::{Player, Request, fetch};
use super::{WAIT_MAX, eventually};

/// The events that tests cause on the side: by the login of an admin, by channels that they store, and by the disk of the
/// machine.
pub const SIDE_EVENTS: [&str; 5] =
    ["channel_created", "channel_changed", "channel_removed", "disk_low", "user_login"];

/// The configuration of a test gateway.
pub struct Setup {
    catalogue: CatalogueBuilder,
    n_lists: usize,
    config: Config,
    release_delay: Duration,
    folder: Option<PathBuf>,
}

/// Returns settings with short timeouts; the others are the defaults.
fn fast_settings() -> Settings {
    Settings {
        channel_shutdown_delay: Duration::from_millis(200),
        stall_timeout: Duration::from_secs(1),
        ..Settings::default()
    }
}

impl Setup {
    pub fn new() -> Setup {
        let local = Listen::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let mut config = Config {
            api_listen: local,
            player_listen: local,
            engine: fast_settings(),
            // The tests may run in a rootless container, where loopback is not local.
            container_proxy: ContainerProxy::None,
            ..Config::default()
        };
        config.programs.launcher = Some(env!("CARGO_BIN_EXE_headwater").into());
        Setup {
            catalogue: CatalogueBuilder::new(),
            n_lists: 0,
            config,
            release_delay: Duration::ZERO,
            folder: None,
        }
    }

    /// Adds a playlist as an account without a limit.
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

    /// Sets how long every provider counts a closed connection.
    pub fn release_delay(mut self, delay: Duration) -> Setup {
        self.release_delay = delay;
        self
    }

    /// Stores the data in this folder instead of in memory.
    pub fn folder(mut self, folder: &Path) -> Setup {
        self.folder = Some(folder.to_owned());
        self
    }

    pub async fn start(mut self) -> TestGateway {
        let mut catalogue = self.catalogue.build();
        for account in &mut catalogue.accounts {
            account.release_delay = self.release_delay;
        }
        // `RUST_LOG=debug cargo test … -- --nocapture` prints the log of the gateway.
        if let Ok(filter) = std::env::var("RUST_LOG") {
            let _ = tracing_subscriber::fmt().with_env_filter(filter).with_test_writer().try_init();
        }
        // No test shares files with another one.
        let mut data = None;
        if self.config.data_dir == Config::default().data_dir {
            let folder = data.insert(tempfile::tempdir().expect("a temporary folder"));
            self.config.data_dir = self.folder.clone().unwrap_or_else(|| folder.path().to_owned());
        }
        let store = match self.folder {
            Some(folder) => {
                let catalogue = catalogue.clone();
                let kept = tokio::task::spawn_blocking(move || create_store(&folder, catalogue));
                kept.await.expect("a store")
            }
            None => headwater::play::temporary(catalogue.clone()).await.expect("a store"),
        };
        let started = Gateway::start(self.config, store, Runtimes::current()).await;
        let gateway = started.expect("the gateway starts");
        TestGateway {
            address: gateway.player_addr(),
            api: gateway.api_addr(),
            gateway,
            catalogue,
            _data: data,
        }
    }
}

/// Creates a store with a catalogue, as the program does in its data folder.
fn create_store(folder: &Path, catalogue: Catalogue) -> Store {
    let store = folder.join("store");
    std::fs::create_dir_all(&store).expect("the folder can be written");
    let store = Store::open(&store, &folder.join("key"), storage::records::schema()).expect("a store");
    storage::seed(&store).expect("the store can be written");
    storage::store_catalogue(&store, catalogue).expect("the store can be written");
    store
}

/// A gateway that runs until it is dropped.
pub struct TestGateway {
    /// Address of the player port.
    pub address: SocketAddr,
    /// Address of the admin API.
    pub api: SocketAddr,
    pub gateway: Gateway,
    pub catalogue: Catalogue,
    /// Its data folder, unless a test has named one.
    _data: Option<TempDir>,
}

impl TestGateway {
    /// Returns the stored records.
    pub fn models(&self) -> &Models {
        self.gateway.models()
    }

    /// Changes stored records, as an admin would, and waits for the commit.
    pub async fn change<F>(&self, change: F)
    where
        F: FnOnce(&mut Write<'_>) -> storage::Result<()> + Send + 'static,
    {
        self.models().store.write(change).await.expect("the change is committed");
    }

    /// Starts a gateway with one playlist without a limit and with short timeouts.
    pub async fn with_list(list: &str) -> TestGateway {
        Setup::new().list(list).start().await
    }

    /// Returns a channel of the initial lineup by its name.
    pub fn channel(&self, name: &str) -> &Channel {
        let found = self.catalogue.channels.iter().find(|it| it.name == name);
        found.unwrap_or_else(|| panic!("no channel {name} in the playlists"))
    }

    /// Returns the path of a channel's stream by the channel's name.
    pub fn path(&self, channel: &str) -> String {
        format!("/proxy/ts/stream/{}", self.channel(channel).uuid)
    }

    pub fn get(&self, channel: &str) -> Request {
        Request::get(self.path(channel))
    }

    /// Requests a channel; the response is recorded in the background.
    pub async fn watch(&self, channel: &str) -> Player {
        Player::watch(self.address, &self.path(channel)).await
    }

    /// Returns the recorded events, oldest first.
    pub fn events(&self) -> Vec<Arc<Event>> {
        self.gateway.events().recent()
    }

    /// Returns the names of the events, oldest first, without those that tests cause on the side.
    pub fn event_names(&self) -> Vec<&'static str> {
        let events = self.events();
        events.iter().map(|event| event.body.name()).filter(|it| !SIDE_EVENTS.contains(it)).collect()
    }

    pub fn n_events(&self, name: &str) -> usize {
        self.events().iter().filter(|it| it.body.name() == name).count()
    }

    /// Returns `(from, to, cause)` of each failover, in order.
    pub fn failovers(&self) -> Vec<(String, String, String)> {
        let failover = |event: &Arc<Event>| match &event.body {
            EventBody::ChannelFailover { from, to, cause, .. } => {
                Some((from.name.clone(), to.name.clone(), cause.clone()))
            }
            _ => None,
        };
        self.events().iter().filter_map(failover).collect()
    }

    /// Returns the metrics: name with labels, and value.
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

    /// Waits until all clients, live channels, leases and sockets are gone.
    #[track_caller]
    pub fn until_idle(&self) -> impl Future<Output = ()> + '_ {
        let caller = std::panic::Location::caller();
        async move {
            let left = || {
                let counts = self.gateway.counts();
                [counts.clients, counts.channels, counts.leases, counts.sockets_open]
            };
            let deadline = Instant::now() + WAIT_MAX;
            while left() != [0; 4] {
                assert!(
                    Instant::now() < deadline,
                    "{caller}: clients, channels, leases, sockets left: {:?}",
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
