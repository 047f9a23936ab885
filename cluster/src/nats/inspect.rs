//! Looks at a server without changing anything, for `headwater cluster check`.

use std::time::Duration;

use async_nats::{Client, RequestErrorKind};
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::options::NatsOptions;
use super::session::REQUEST_TIMEOUT;
use super::streams::StreamKind;
use super::version;

/// Longest time for a monitoring page, and its longest length.
const MONITOR_TIMEOUT: Duration = Duration::from_secs(5);
const MONITOR_BYTES_MAX: u64 = 1 << 20;

/// A server that accepts this node.
#[derive(Debug, Clone)]
pub struct ServerFacts {
    /// The name that the server has in its own configuration.
    pub name: String,
    pub version: String,
    /// Why the version cannot be used, as a continuation of "the NATS server …".
    pub version_problem: Option<String>,
    /// The name of the NATS cluster to which the server belongs.
    pub cluster: Option<String>,
    /// Why JetStream does not answer.
    pub jetstream_problem: Option<String>,
    /// JetStream runs and has not answered in time, or has no leader: its servers may just have started.
    pub may_be_starting: bool,
    /// Time of a request to JetStream and its answer.
    pub round_trip: Option<Duration>,
    /// The streams of Headwater that exist.
    pub streams: Vec<StreamFacts>,
    /// How far the clock of the leader of the records is ahead of the clock of this machine, in milliseconds; give or
    /// take half the round trip. `None`: there is no stream to ask.
    pub clock_ahead_ms: Option<i64>,
}

/// A stream of Headwater.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamFacts {
    pub name: &'static str,
    pub n_replicas: usize,
    pub leader: Option<String>,
    /// Replicas, other than the leader, that have all entries.
    pub n_current: usize,
    pub bytes: u64,
    pub bytes_max: i64,
}

/// The part of a server's configuration that its monitoring shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MonitorFacts {
    /// The server writes to disk before it acknowledges.
    pub is_synced: bool,
    /// How far the clock of the server is ahead of the clock of this machine, in milliseconds.
    pub clock_ahead_ms: Option<i64>,
}

#[derive(Deserialize)]
struct StreamAnswer {
    config: Option<StreamConfig>,
    state: Option<StreamState>,
    cluster: Option<StreamCluster>,
    /// The time of the server.
    ts: Option<String>,
    error: Option<ApiError>,
}

#[derive(Deserialize)]
struct StreamConfig {
    num_replicas: usize,
    max_bytes: i64,
}

#[derive(Deserialize)]
struct StreamState {
    bytes: u64,
}

#[derive(Deserialize)]
struct StreamCluster {
    leader: Option<String>,
    #[serde(default)]
    replicas: Vec<Replica>,
}

#[derive(Deserialize)]
struct Replica {
    #[serde(default)]
    current: bool,
}

#[derive(Deserialize)]
struct ApiError {
    #[serde(default)]
    description: String,
    #[serde(default)]
    err_code: u32,
}

/// The code of the error "JetStream system temporarily unavailable".
const NO_LEADER: u32 = 10_008;

#[derive(Deserialize)]
struct AccountAnswer {
    error: Option<ApiError>,
}

/// Connects to one server, and asks it about itself. The error is a sentence about why that failed.
pub async fn inspect(options: &NatsOptions, address: &str) -> Result<ServerFacts, String> {
    let client = options.connect(address, CancellationToken::new()).await?;
    let info = client.server_info();
    let mut facts = ServerFacts {
        name: info.server_name,
        version_problem: version::check(&info.version).err(),
        version: info.version,
        cluster: info.cluster,
        jetstream_problem: None,
        may_be_starting: false,
        round_trip: None,
        streams: Vec::new(),
        clock_ahead_ms: None,
    };
    let begin = Instant::now();
    match ask::<AccountAnswer>(&client, "$JS.API.INFO").await {
        Ok(AccountAnswer { error: None }) => facts.round_trip = Some(begin.elapsed()),
        Ok(AccountAnswer { error: Some(it) }) => {
            facts.may_be_starting = it.err_code == NO_LEADER;
            facts.jetstream_problem = Some(it.description);
        }
        Err(it) => {
            facts.may_be_starting = it.is_silent;
            facts.jetstream_problem = Some(it.text);
        }
    }
    if facts.jetstream_problem.is_some() {
        return Ok(facts);
    }
    for kind in StreamKind::ALL {
        let subject = format!("$JS.API.STREAM.INFO.{}", kind.name());
        let (sent, begin) = (Timestamp::now(), Instant::now());
        // A stream that does not exist yet is created by the first node.
        let Ok(StreamAnswer { error: None, config: Some(config), state, cluster, ts }) =
            ask::<StreamAnswer>(&client, &subject).await
        else {
            continue;
        };
        if facts.clock_ahead_ms.is_none() {
            facts.clock_ahead_ms = ts.and_then(|it| ahead_ms(&it, sent, begin.elapsed()));
        }
        let cluster = cluster.as_ref();
        facts.streams.push(StreamFacts {
            name: kind.name(),
            n_replicas: config.num_replicas,
            leader: cluster.and_then(|it| it.leader.clone()),
            n_current: cluster.map_or(0, |it| it.replicas.iter().filter(|it| it.current).count()),
            bytes: state.map_or(0, |it| it.bytes),
            bytes_max: config.max_bytes,
        });
    }
    Ok(facts)
}

/// Why a request to JetStream has no answer.
struct NoAnswer {
    text: String,
    is_silent: bool,
}

async fn ask<T: DeserializeOwned>(client: &Client, subject: &str) -> Result<T, NoAnswer> {
    let request = async_nats::Request::new().timeout(Some(REQUEST_TIMEOUT));
    let answer = client.send_request(subject.to_owned(), request).await.map_err(|it| match it.kind() {
        RequestErrorKind::NoResponders => NoAnswer {
            text: "JetStream does not run on any server of this account".to_owned(),
            is_silent: false,
        },
        kind => NoAnswer { text: it.to_string(), is_silent: kind == RequestErrorKind::TimedOut },
    })?;
    serde_json::from_slice(&answer.payload)
        .map_err(|it| NoAnswer { text: format!("its answer cannot be read: {it}"), is_silent: false })
}

/// Returns how far a clock is ahead that showed `theirs` half-way between sending a request and its answer.
fn ahead_ms(theirs: &str, sent: Timestamp, took: Duration) -> Option<i64> {
    let theirs: Timestamp = theirs.parse().ok()?;
    let half = i64::try_from(took.as_millis() / 2).unwrap_or(i64::MAX);
    Some(theirs.as_millisecond().saturating_sub(sent.as_millisecond()).saturating_sub(half))
}

#[derive(Deserialize)]
struct Monitored {
    jetstream: Option<MonitoredJetStream>,
    now: Option<String>,
}

#[derive(Deserialize)]
struct MonitoredJetStream {
    config: Option<MonitoredConfig>,
}

#[derive(Deserialize)]
struct MonitoredConfig {
    #[serde(default)]
    sync_always: bool,
}

/// Checks the address of the monitoring of a server: `http://host:port`.
pub fn check_monitor_address(address: &str) -> Result<(), &'static str> {
    let host = address.strip_prefix("http://").ok_or("it must begin with http://")?;
    let is_port = |it: &str| it.parse::<u16>().is_ok_and(|it| it > 0);
    match host.trim_end_matches('/').rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && is_port(port) && !host.contains(['/', '@', ' ']) => Ok(()),
        _ => Err("it must be a host and a port, such as http://10.0.0.1:8222"),
    }
}

/// Reads the monitoring page of a server.
pub async fn monitor(address: &str) -> Result<MonitorFacts, String> {
    check_monitor_address(address)?;
    let host = address.trim_start_matches("http://").trim_end_matches('/');
    let (sent, begin) = (Timestamp::now(), Instant::now());
    let page = timeout(MONITOR_TIMEOUT, page(host)).await.map_err(|_| "it does not answer".to_owned())?;
    let page = page.map_err(|it| it.to_string())?;
    let body = page.split_once("\r\n\r\n").map(|it| it.1).ok_or("its answer is not HTTP")?;
    let found: Monitored =
        serde_json::from_str(body).map_err(|_| "its answer is not that of NATS".to_owned())?;
    let config = found.jetstream.and_then(|it| it.config).ok_or("JetStream is not enabled on it")?;
    let clock_ahead_ms = found.now.and_then(|it| ahead_ms(&it, sent, begin.elapsed()));
    Ok(MonitorFacts { is_synced: config.sync_always, clock_ahead_ms })
}

/// Gets the page about the server. HTTP/1.0, so that it ends with the connection.
async fn page(host: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(host).await?;
    stream.write_all(format!("GET /varz HTTP/1.0\r\nHost: {host}\r\n\r\n").as_bytes()).await?;
    let mut text = String::new();
    stream.take(MONITOR_BYTES_MAX).read_to_string(&mut text).await?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monitoring_is_at_a_host_and_a_port() {
        for address in ["http://10.0.0.1:8222", "http://nats.example:80/", "http://[::1]:8222"] {
            assert_eq!(check_monitor_address(address), Ok(()), "{address}");
        }
        for address in
            ["10.0.0.1:8222", "https://a:1", "http://a", "http://a:0", "http://u@a:1", "http://a/b:1"]
        {
            assert!(check_monitor_address(address).is_err(), "{address}");
        }
    }

    #[test]
    fn the_difference_of_clocks_leaves_out_half_the_way() {
        let at = |ms: i64| Timestamp::from_millisecond(ms).unwrap();
        assert_eq!(ahead_ms("1970-01-01T00:00:10.5Z", at(10_000), Duration::from_millis(100)), Some(450));
        assert_eq!(ahead_ms("1970-01-01T00:00:09.000000001Z", at(10_000), Duration::ZERO), Some(-1_000));
        assert_eq!(ahead_ms("yesterday", at(10_000), Duration::ZERO), None);
    }
}
