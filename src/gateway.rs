//! The gateway as one value: started, asked for its addresses, stopped.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use actors::{
    Counts, Events, Fetch, FetchError, FetchLimits, Importer, Parts, Plans, StorePlans, Switchboard, System,
    effective_settings,
};
use domain::plan::Conditions;
use domain::settings::Settings;
use media::{DialSettings, TcpDial};
use socket2::{Domain, Protocol, Socket, Type};
use storage::{Models, Store};
use tokio::net::TcpListener;
use tokio::runtime::Handle;
use tokio::time::Instant;
use tracing::info;
use warp::Filter;

use crate::auth::Auth;
use crate::config::{Config, Listen};
use crate::http::accept::Door;
use crate::http::admission::Admission;
use crate::http::route_table;
use crate::metrics::Metrics;
use crate::player::{self, Blocked, PlayerParts};
use crate::push::{self, PushParts};
use crate::rest::{self, RestParts};
use crate::status::{self, StatusParts};

/// Connections that wait to be accepted, at most.
const BACKLOG: i32 = 1024;

/// The two runtimes. A test passes its own handle twice.
#[derive(Clone, Debug)]
pub struct Runtimes {
    /// Carries packets: accept loops, connections, openers, pumps, and the closer.
    pub packets: Handle,
    /// Everything else: actors and handlers. What happens here may not hold up a packet.
    pub work: Handle,
}

impl Runtimes {
    /// Both on the runtime of the caller.
    pub fn current() -> Self {
        Runtimes { packets: Handle::current(), work: Handle::current() }
    }
}

/// Why a gateway did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error("failed to listen on {listen}")]
    Listen { listen: Listen, source: io::Error },
    #[error("failed to read the store")]
    Store(#[source] storage::Error),
    #[error("failed to start the actors")]
    Actors(#[source] actors::StartError),
    #[error("failed to prepare for fetching playlists")]
    Fetch(#[source] FetchError),
    #[error("failed to prepare connections to providers: {0}")]
    Dial(String),
    #[error("a runtime is shut down")]
    Runtime,
}

/// How a gateway ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stopped {
    /// Every connection ended by itself, and every actor in time.
    pub is_clean: bool,
}

/// A running gateway. Dropping it closes its ports and cancels its connections at once; [`Gateway::stop`] lets
/// them end.
pub struct Gateway {
    system: Arc<System>,
    models: Models,
    api: Door,
    player: Door,
    api_addr: SocketAddr,
    player_addr: SocketAddr,
    draining: Arc<AtomicBool>,
    drain_timeout: Duration,
}

impl Gateway {
    /// Starts a gateway on a store that was begun: the actors, then the two ports. When this returns, both ports
    /// answer. What is committed from now on takes effect by itself.
    pub async fn start(config: Config, store: Store, runtimes: Runtimes) -> Result<Gateway, StartError> {
        install_tls();
        // Bound before anything is started: a port that is taken is the likeliest reason not to start.
        let (api_listener, api_addr) = bind(config.api_listen, &runtimes.packets)?;
        let (player_listener, player_addr) = bind(config.player_listen, &runtimes.packets)?;

        let models = runtimes.work.spawn_blocking(move || Models::of(store));
        let models = models.await.map_err(|_| StartError::Runtime)?.map_err(StartError::Store)?;
        let has_ffmpeg = media::find_program("ffmpeg").is_some();
        let conditions = Conditions { has_ffmpeg, user_agent: config.user_agent.clone() };
        let plans = StorePlans::new(models.clone(), config.engine.default_stream_profile).under(conditions);
        let plans: Arc<dyn Plans> = Arc::new(plans);
        let dial =
            TcpDial::new(DialSettings::default()).map_err(|error| StartError::Dial(error.to_string()))?;
        let fetch = fetch(&config).map_err(StartError::Fetch)?;
        let parts = Parts { dial: Arc::new(dial), packets: runtimes.packets.clone() };
        let (base, followed) = (config.engine.clone(), models.clone());
        let system = {
            let (settings, plans) = (effective_settings(&models, &base), Arc::clone(&plans));
            async move {
                let system = System::start(settings, plans, parts).await?;
                system.follow(followed.clone(), base);
                system.import_into(followed, fetch);
                Ok(system)
            }
        };
        let system = runtimes.work.spawn(system).await.map_err(|_| StartError::Runtime)?;
        let system = Arc::new(system.map_err(StartError::Actors)?);

        let limits = &config.limits;
        let admission = Admission::new(limits.connections_max, limits.connections_per_address_max);
        let draining = Arc::new(AtomicBool::new(false));
        let counts = {
            let system = Arc::downgrade(&system);
            Arc::new(move || system.upgrade().map(|it| it.counts()).unwrap_or_default())
        };
        let status = status::routes(StatusParts {
            metrics: Arc::new(Metrics::new(counts.clone(), Arc::clone(&admission))),
            networks: Arc::new(config.metrics_networks.clone()),
            draining: Arc::clone(&draining),
        });
        let auth = {
            let (models, events, limits) = (models.clone(), system.events(), config.auth.clone());
            runtimes.work.spawn_blocking(move || Auth::new(&models, events, &limits))
        };
        let auth = auth.await.map_err(|_| StartError::Runtime)?.map_err(StartError::Store)?;
        let blocked = system.events();
        let player_parts = PlayerParts {
            switchboard: system.switchboard(),
            plans,
            models: models.clone(),
            settings: system.live_settings(),
            networks: Arc::new(config.stream_networks.clone()),
            blocked: Arc::new(Blocked::new(move |event| blocked.happened(event))),
            auth: auth.clone(),
        };
        let player = player::routes(player_parts.clone());
        let push = push::route(PushParts {
            switchboard: system.switchboard(),
            importer: system.importer(),
            events: system.events(),
            counts,
            models: models.clone(),
            auth: auth.clone(),
        });
        let leases = {
            let system = Arc::downgrade(&system);
            Arc::new(move || system.upgrade().map(|it| it.leases()).unwrap_or_default())
        };
        let rest = rest::filter(RestParts {
            models: models.clone(),
            auth,
            switchboard: system.switchboard(),
            events: system.events(),
            importer: system.importer(),
            trials: system.trials(),
            leases,
            engine: Arc::new(config.engine.clone()),
            log_level: config.log.level.as_str().into(),
            body_bytes_max: limits.body_bytes_max,
            body_timeout: limits.body_timeout,
        });
        // Clients know one host and one port, and that is the players': it answers what the other one answers too.
        let api_routes = rest.or(status).unify().or(push).unify().boxed();
        let player_routes = api_routes.clone().or(player).unify();
        // Last of all: anything of three segments looks like it.
        let player_routes = player_routes.or(player::short_route(player_parts)).unify().boxed();

        let open = |listener, routes| {
            let handler = route_table(routes, runtimes.work.clone());
            Door::open(listener, handler, Arc::clone(&admission), limits.header_timeout, &runtimes.packets)
        };
        let gateway = Gateway {
            system,
            models,
            api: open(api_listener, api_routes),
            player: open(player_listener, player_routes),
            api_addr,
            player_addr,
            draining,
            drain_timeout: limits.drain_timeout,
        };
        info!(api.address = %api_addr, player.address = %player_addr, "gateway started");
        Ok(gateway)
    }

    /// Where administrators' programs call: the port as bound.
    pub fn api_addr(&self) -> SocketAddr {
        self.api_addr
    }

    /// Where players call: the port as bound.
    pub fn player_addr(&self) -> SocketAddr {
        self.player_addr
    }

    /// What happens now, as one value.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// The door to live channels.
    pub fn switchboard(&self) -> Switchboard {
        self.system.switchboard()
    }

    /// What is remembered.
    pub fn models(&self) -> &Models {
        &self.models
    }

    /// The door to refreshes of playlists.
    pub fn importer(&self) -> Importer {
        self.system.importer()
    }

    /// The settings the engine runs with now.
    pub fn settings(&self) -> Arc<Settings> {
        self.system.settings()
    }

    /// What happens, as it happens.
    pub fn events(&self) -> Events {
        self.system.events()
    }

    /// One reading of everything that is counted.
    pub fn counts(&self) -> Counts {
        self.system.counts()
    }

    /// Stops in the reverse order of the start: no new connection, every stream ends after its last packets, open
    /// answers may finish until the drain time-out, upstream sockets are closed; the store takes no more writes.
    pub async fn stop(self) -> Stopped {
        info!("gateway stopping");
        self.draining.store(true, Ordering::Relaxed);
        let deadline = Instant::now() + self.drain_timeout;
        self.api.drain();
        self.player.drain();
        let (actors_ended, api_ended, player_ended) =
            tokio::join!(self.system.stop(), self.api.drained(deadline), self.player.drained(deadline));
        // Only now: until the last answer somebody may have something to write.
        let store = self.models.store.clone();
        let closed = tokio::task::spawn_blocking(move || store.close()).await.is_ok();
        let is_clean = actors_ended && api_ended && player_ended && closed;
        info!(clean = is_clean, "gateway stopped");
        Stopped { is_clean }
    }
}

/// The client for all that is fetched and not streamed, as the configuration wants it.
pub(crate) fn fetch(config: &Config) -> Result<Fetch, FetchError> {
    let limits = FetchLimits {
        bytes_max: config.limits.playlist_bytes_max,
        total_timeout: config.limits.playlist_timeout,
        ..FetchLimits::default()
    };
    let fetch = Fetch::new(limits)?;
    Ok(match &config.user_agent {
        Some(agent) => fetch.known_as(agent),
        None => fetch,
    })
}

/// Makes the TLS provider of this process, once. Later calls do nothing.
pub fn install_tls() {
    // An error says that there is one already.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Lets this process open as many files as the system allows it: every viewer is one, and the usual soft limit of
/// 1,024 is for programs that use `select`. Says how many there are now.
pub fn raise_file_limit() -> Option<u64> {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    if limit.current != limit.maximum {
        let before = limit.current;
        limit.current = limit.maximum;
        if setrlimit(Resource::Nofile, limit).is_err() {
            limit.current = before;
        }
    }
    limit.current
}

/// Binds a port. "All addresses" is both IPv6 and IPv4 where there is IPv6, else IPv4.
pub(crate) fn bind(listen: Listen, packets: &Handle) -> Result<(TcpListener, SocketAddr), StartError> {
    let address = listen.address();
    let bound = match bind_to(address) {
        Err(error) if listen.is_everywhere() && is_no_ipv6(&error) => {
            bind_to(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), address.port()))
        }
        bound => bound,
    };
    let _entered = packets.enter();
    bound
        .and_then(TcpListener::from_std)
        .and_then(|listener| Ok((listener.local_addr()?, listener)))
        .map(|(address, listener)| (listener, address))
        .map_err(|source| StartError::Listen { listen, source })
}

fn bind_to(address: SocketAddr) -> io::Result<std::net::TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(false)?;
    }
    // A restart must not wait for connections of the last run to be forgotten.
    socket.set_reuse_address(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// The kernel has no IPv6, or no address of it. (Address family not supported: 97 on Linux, without a kind of its
/// own in the standard library.)
fn is_no_ipv6(error: &io::Error) -> bool {
    const EAFNOSUPPORT: i32 = 97;
    error.raw_os_error() == Some(EAFNOSUPPORT) || error.kind() == io::ErrorKind::AddrNotAvailable
}

#[cfg(test)]
mod tests {
    use domain::playlist::catalogue::Catalogue;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;
    use crate::demo::{self, Source};
    use crate::play;

    fn config(listen: &str) -> Config {
        let listen: Listen = listen.parse().unwrap();
        Config { api_listen: listen, player_listen: listen, ..Config::default() }
    }

    async fn store(catalogue: Catalogue) -> Store {
        play::temporary(catalogue).await.unwrap()
    }

    async fn start(config: Config) -> Gateway {
        Gateway::start(config, store(Catalogue::default()).await, Runtimes::current()).await.unwrap()
    }

    async fn ask(port: u16, request: &str) -> String {
        let mut socket = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
        socket.write_all(format!("{request}\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        socket.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn both_ports_say_what_they_are_and_count_and_refuse_what_they_do_not_know() {
        let gateway = start(config("127.0.0.1:0")).await;
        for port in [gateway.api_addr().port(), gateway.player_addr().port()] {
            assert!(ask(port, "GET / HTTP/1.0").await.contains("\"name\":\"headwater\""));
            assert!(ask(port, "GET /healthz HTTP/1.0").await.ends_with("ok\n"));
            assert!(ask(port, "GET /metrics HTTP/1.0").await.contains("\nheadwater_connections 1\n"));
            assert!(ask(port, "GET /api/channels/ HTTP/1.0").await.starts_with("HTTP/1.0 401"));
        }
        let api = gateway.api_addr().port();
        assert!(ask(api, "GET /playlist.m3u HTTP/1.0").await.starts_with("HTTP/1.0 404"));
        assert_eq!(gateway.stop().await, Stopped { is_clean: true });
    }

    #[tokio::test]
    async fn all_addresses_are_ipv4_too() {
        let gateway = start(config("0")).await;
        assert!(ask(gateway.player_addr().port(), "GET /healthz HTTP/1.0").await.ends_with("ok\n"));
    }

    #[tokio::test]
    async fn a_port_that_is_taken_is_named() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let started = Gateway::start(
            config(&address.to_string()),
            store(Catalogue::default()).await,
            Runtimes::current(),
        )
        .await;
        let text = started.err().unwrap().to_string();
        assert_eq!(text, format!("failed to listen on {address}"));
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn the_demo_plays_and_ends_its_viewers_when_it_stops() {
        let source = Source::start("127.0.0.1:0".parse().unwrap(), &Runtimes::current()).await.unwrap();
        let catalogue = demo::catalogue(source.address());
        let uuid = catalogue.channels[0].uuid;
        let gateway =
            Gateway::start(config("127.0.0.1:0"), store(catalogue).await, Runtimes::current()).await.unwrap();

        let mut viewer = TcpStream::connect(gateway.player_addr()).await.unwrap();
        let request = format!("GET /proxy/ts/stream/{uuid}.ts/?x=y HTTP/1.0\r\nRange: bytes=0-\r\n\r\n");
        viewer.write_all(request.as_bytes()).await.unwrap();
        let mut begin = vec![0; 4096];
        viewer.read_exact(&mut begin).await.unwrap();
        assert!(begin.starts_with(b"HTTP/1.0 200"), "{}", String::from_utf8_lossy(&begin));
        let head = begin.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        assert_eq!((begin[head], begin[head + 188], begin[head + 376]), (0x47, 0x47, 0x47));

        let (stopped, ended) = tokio::join!(gateway.stop(), viewer.read_to_end(&mut begin));
        assert_eq!((stopped.is_clean, ended.is_ok()), (true, true));
    }
}
