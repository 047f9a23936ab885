//! The work, the memory and the traffic of NATS servers, as they and the system tell.

use std::time::Duration;

use cluster::testing::NatsServers;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

/// Work and memory of a server.
#[derive(Clone, Copy, Default)]
struct Used {
    cpu: Duration,
    resident: u64,
    bytes_in: u64,
    bytes_out: u64,
}

/// Returns what a server tells about itself.
async fn facts(monitor: &str) -> Value {
    let host = monitor.trim_start_matches("http://");
    let mut socket = TcpStream::connect(host).await.expect("the server listens");
    // HTTP/1.0, so that the answer ends with the connection.
    let request = format!("GET /varz HTTP/1.0\r\nHost: {host}\r\n\r\n");
    socket.write_all(request.as_bytes()).await.expect("the server reads");
    let mut text = String::new();
    socket.read_to_string(&mut text).await.expect("an answer");
    let body = text.split_once("\r\n\r\n").map(|it| it.1).expect("an answer has a head");
    serde_json::from_str(body).expect("JSON")
}

/// Returns the work of each server until now.
async fn used(nats: &NatsServers) -> Vec<Used> {
    let mut all = Vec::new();
    for at in 0..3 {
        let process = nats.process(at).expect("the server runs");
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the server runs");
        // The name in parentheses may contain spaces; user and system time are the 12th and 13th field after it.
        let fields: Vec<u64> = stat
            .rsplit(')')
            .next()
            .map(|it| it.split_whitespace().skip(1).map(|it| it.parse().unwrap_or_default()).collect())
            .expect("a line has an end");
        let facts = facts(&nats.monitor(at)).await;
        let number = |name: &str| facts[name].as_u64().unwrap_or_default();
        all.push(Used {
            cpu: Duration::from_millis((fields[10] + fields[11]) * 10),
            resident: fields[20] * 4096,
            bytes_in: number("in_bytes"),
            bytes_out: number("out_bytes"),
        });
    }
    all
}

/// Measures the servers during some work.
pub(crate) async fn measure(nats: &NatsServers, work: impl AsyncFnOnce()) -> Value {
    let (begin, before) = (Instant::now(), used(nats).await);
    work().await;
    let (passed, after) = (begin.elapsed().as_secs_f64(), used(nats).await);
    let servers: Vec<_> = before
        .iter()
        .zip(&after)
        .map(|(before, after)| {
            json!({
                "core_percent": (after.cpu - before.cpu).as_secs_f64() / passed * 100.0,
                "resident_mib": after.resident as f64 / 1048576.0,
                "in_kib_per_second": (after.bytes_in - before.bytes_in) as f64 / 1024.0 / passed,
                "out_kib_per_second": (after.bytes_out - before.bytes_out) as f64 / 1024.0 / passed,
            })
        })
        .collect();
    json!({ "servers": servers, "seconds": passed })
}
