//! The built-in source: a provider on loopback that plays clips in real time and can be stopped and started.
//!
//! ```text
//! GET  /testcard-a.ts              200 with an endless video/mp2t body; 503 while stopped
//! POST /control/testcard-a/stop    closes its connections
//! POST /control/testcard-a/start
//! ```
//!
//! Each clip has one player that also runs without viewers, so that all connections of a clip receive the same
//! position, as with a broadcaster.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use config::Listen;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use media::{Clip, ClipError, Connection};
use rest::demo::SourceSwitches;
use server::accept::{Handler, Server};
use server::admission::Admission;
use server::listening::{ListenError, bind_on};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, sleep_until};
use tokio_util::task::AbortOnDropHandle;

use super::FEATURES;
use crate::gateway::Runtimes;

/// Pieces that a connection may lag behind before it loses some; about one second.
const LAG_MAX: usize = 64;
/// Distance between the time stamps of two clips, so that every failover crosses a time-stamp discontinuity.
const TIMESTAMP_OFFSET: Duration = Duration::from_secs(4 * 3600);
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Error that prevents the source from starting.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    #[error("failed to read the clip {name}")]
    Clip { name: &'static str, source: ClipError },
    #[error(transparent)]
    Listen(#[from] ListenError),
}

/// The running source. Dropping it stops its port, its connections and its players.
#[derive(Debug)]
pub struct Source {
    address: SocketAddr,
    switches: SourceSwitches,
    _server: Server,
}

impl Source {
    /// Starts the source at `listen`, or at a free port of the same address if that port is in use.
    pub async fn start(listen: SocketAddr, runtimes: &Runtimes) -> Result<Source, SourceError> {
        let packets = &runtimes.packets;
        let (listener, address) = match bind_on(Listen::at(listen), packets) {
            Err(error) if error.source.kind() == std::io::ErrorKind::AddrInUse => {
                bind_on(Listen::at(SocketAddr::new(listen.ip(), 0)), packets)?
            }
            bound => bound?,
        };
        let mut stations = Vec::with_capacity(FEATURES.len());
        for (feature, number) in FEATURES.iter().zip(1_u32..) {
            let error = |source| SourceError::Clip { name: feature.name, source };
            let clip = Clip::parse(feature.bytes).map_err(error)?;
            let (chunks, _) = broadcast::channel(LAG_MAX);
            let player =
                AbortOnDropHandle::new(packets.spawn(play(clip, TIMESTAMP_OFFSET * number, chunks.clone())));
            let on_air = watch::Sender::new(true);
            stations.push(Station { name: feature.name, chunks, on_air, _player: player });
        }
        let switches: Vec<_> = stations.iter().map(|it| (it.name, it.on_air.clone())).collect();
        let switches = SourceSwitches::new(switches);
        let handler = Provider { stations: stations.into(), switches: switches.clone() };
        let server = Server::start(listener, handler, Admission::new(0, 0), HEADER_TIMEOUT, packets);
        Ok(Source { address, switches, _server: server })
    }

    /// Returns the address that the source listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn switches(&self) -> SourceSwitches {
        self.switches.clone()
    }

    /// Returns the URL that stops or starts the clip `name` on POST; `order` is `stop` or `start`.
    pub fn control(&self, name: &str, order: &str) -> String {
        format!("http://{}/control/{name}/{order}", self.address)
    }
}

/// One clip and its state.
#[derive(Debug)]
struct Station {
    name: &'static str,
    chunks: broadcast::Sender<Bytes>,
    on_air: watch::Sender<bool>,
    _player: AbortOnDropHandle<()>,
}

/// Plays a clip in an endless loop, each piece when it is due.
async fn play(clip: Clip, starting_at: Duration, chunks: broadcast::Sender<Bytes>) {
    let mut player = clip.player().starting_at(starting_at);
    let start = Instant::now();
    loop {
        let (due, packets) = player.next();
        sleep_until(start + due).await;
        // An error means that there are no viewers; keep playing.
        let _ = chunks.send(packets);
    }
}

#[derive(Clone, Debug)]
struct Provider {
    stations: Arc<[Station]>,
    switches: SourceSwitches,
}

type ProviderBody = UnsyncBoxBody<Bytes, Infallible>;

impl Handler for Provider {
    type Body = ProviderBody;

    async fn answer(&self, request: Request<Incoming>) -> Response<ProviderBody> {
        let segments: Vec<&str> = request.uri().path().trim_matches('/').split('/').collect();
        let named = |name: &str| self.stations.iter().find(|it| it.name == name);
        match (request.method(), &segments[..]) {
            (&Method::POST, ["control", name, order @ ("stop" | "start")]) => match named(name) {
                Some(_) if !is_local(&request) => {
                    plain(StatusCode::FORBIDDEN, "allowed only from this machine\n".to_owned())
                }
                Some(station) => self.control(station.name, order),
                None => plain(StatusCode::NOT_FOUND, "no such source\n".to_owned()),
            },
            (&Method::GET | &Method::HEAD, [file]) => match file.strip_suffix(".ts").and_then(named) {
                Some(station) => station.stream(),
                None => plain(StatusCode::NOT_FOUND, "no such source\n".to_owned()),
            },
            _ => plain(StatusCode::NOT_FOUND, "GET /NAME.ts or POST /control/NAME/stop\n".to_owned()),
        }
    }
}

impl Provider {
    fn control(&self, name: &str, order: &str) -> Response<ProviderBody> {
        let is_on_air = order == "start";
        self.switches.set(name, is_on_air);
        let state = if is_on_air { "running" } else { "stopped" };
        plain(StatusCode::OK, format!("{name} is {state}\n"))
    }
}

impl Station {
    fn stream(&self) -> Response<ProviderBody> {
        let on_air = self.on_air.subscribe();
        if !*on_air.borrow() {
            return plain(StatusCode::SERVICE_UNAVAILABLE, "stopped\n".to_owned());
        }
        let pieces =
            stream::unfold((self.chunks.subscribe(), on_air), |(mut chunks, mut on_air)| async move {
                let piece = loop {
                    tokio::select! {
                        biased;
                        _ = on_air.wait_for(|it| !*it) => return None,
                        piece = chunks.recv() => match piece {
                            Ok(piece) => break piece,
                            Err(broadcast::error::RecvError::Lagged(_)) => {}
                            Err(broadcast::error::RecvError::Closed) => return None,
                        }
                    }
                };
                Some((Ok(Frame::data(piece)), (chunks, on_air)))
            });
        let mut response = Response::new(StreamBody::new(pieces).boxed_unsync());
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("video/mp2t"));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        response
    }
}

/// Returns true for requests from this machine. Only they may stop and start clips.
fn is_local(request: &Request<Incoming>) -> bool {
    request.extensions().get::<Arc<Connection>>().is_some_and(|it| it.peer.ip().is_loopback())
}

fn plain(status: StatusCode, text: String) -> Response<ProviderBody> {
    let mut response = Response::new(Full::from(text).boxed_unsync());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;

    use super::*;

    async fn ask(source: &Source, request: &str) -> TcpStream {
        let mut socket = TcpStream::connect(source.address()).await.unwrap();
        socket.write_all(format!("{request} HTTP/1.0\r\n\r\n").as_bytes()).await.unwrap();
        socket
    }

    async fn whole(source: &Source, request: &str) -> String {
        let mut answer = Vec::new();
        ask(source, request).await.read_to_end(&mut answer).await.unwrap();
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[tokio::test]
    async fn a_source_plays_whole_packets_until_it_is_stopped_and_again_after_a_start() {
        let source = Source::start("127.0.0.1:0".parse().unwrap(), &Runtimes::current()).await.unwrap();
        let mut viewer = ask(&source, "GET /testcard-a.ts").await;
        let mut begin = vec![0; 2000];
        viewer.read_exact(&mut begin).await.unwrap();
        let head = begin.windows(4).position(|it| it == b"\r\n\r\n").unwrap() + 4;
        assert!(begin.starts_with(b"HTTP/1.0 200"));
        assert_eq!((begin[head], begin[head + 188]), (0x47, 0x47));

        assert!(whole(&source, "POST /control/testcard-a/stop").await.ends_with("testcard-a is stopped\n"));
        let mut rest = Vec::new();
        viewer.read_to_end(&mut rest).await.unwrap();
        assert!(whole(&source, "GET /testcard-a.ts").await.starts_with("HTTP/1.0 503"));

        whole(&source, "POST /control/testcard-a/start").await;
        let mut viewer = ask(&source, "GET /testcard-a.ts").await;
        let mut begin = vec![0; 12];
        viewer.read_exact(&mut begin).await.unwrap();
        assert_eq!(begin, b"HTTP/1.0 200");
    }

    #[tokio::test]
    async fn unknown_paths_are_404_and_a_port_in_use_is_replaced_by_a_free_one() {
        let source = Source::start("127.0.0.1:0".parse().unwrap(), &Runtimes::current()).await.unwrap();
        assert!(whole(&source, "GET /nothing.ts").await.starts_with("HTTP/1.0 404"));
        assert!(whole(&source, "POST /control/nothing/stop").await.starts_with("HTTP/1.0 404"));
        assert!(whole(&source, "GET /control/testcard-a/stop").await.starts_with("HTTP/1.0 404"));
        let second = Source::start(source.address(), &Runtimes::current()).await.unwrap();
        assert_ne!(second.address(), source.address());
    }
}
