//! Many clients of one path, and some more that join and leave.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::json;

use super::client_pool::{Client, ClientPool, WARM_UP, now, print_line};
use super::support::percentile;

/// Runs the clients. Arguments: address, path, number of clients, seconds, probes. Prints `begin` and `end` around the
/// measurement, then a report.
pub fn run(arguments: &[String]) {
    let address: SocketAddr = arguments[0].parse().expect("an address");
    let path = &arguments[1];
    let number = |at: usize| arguments[at].parse::<usize>().expect("a number");
    let (n, seconds, probes) = (number(2), number(3) as u64, number(4));
    let mut pool = ClientPool::new();
    let mut clients = Vec::new();
    for _ in 0..n {
        pool.join(&mut clients, address, path);
        pool.turn(&mut clients, Duration::from_millis(2), false);
    }
    pool.wait_for_all(&mut clients);
    pool.run(&mut clients, WARM_UP, false);
    let start = now();
    let before: u64 = clients.iter().map(|client| client.bytes).sum();
    print_line("begin");
    pool.run(&mut clients, Duration::from_secs(seconds), true);
    print_line("end");
    let measured = start.elapsed().as_secs_f64();
    let bytes = clients.iter().map(|client| client.bytes).sum::<u64>() - before;
    assert!(clients.iter().all(|client| !client.is_over), "the server dropped a client");
    let mut joins = Vec::new();
    for _ in 0..probes {
        pool.join(&mut clients, address, path);
        pool.wait_for_all(&mut clients);
        let probe = clients.pop().expect("pushed above");
        joins.push(probe.joined.map_or(f64::NAN, |time| time.as_secs_f64() * 1_000.0));
    }
    let lags: Vec<f64> = clients.iter_mut().flat_map(own_lags).collect();
    let report = json!({ "bytes": bytes, "seconds": measured, "lag_ms": lags, "join_ms": joins });
    print_line(&report.to_string());
}

/// Returns the delays relative to the client's own minimum, rounded to 0.01 ms.
fn own_lags(client: &mut Client) -> Vec<f64> {
    let least = percentile(&mut client.lags, 0.0);
    client.lags.iter().map(|lag| ((lag - least) * 100.0).round() / 100.0).collect()
}
