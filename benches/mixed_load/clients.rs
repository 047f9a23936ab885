//! The client process: clients spread over the channels, with a report for each phase.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client_pool::{Client, ClientPool, Reading, WARM_UP, now, print_line};
use super::support::percentile;

/// A client that has received no clock for this long at the end of a phase counts as lost.
const SILENCE: Duration = Duration::from_secs(1);

/// The boundary between two phases.
struct Boundary {
    /// Name of the phase that starts.
    name: String,
    at: Instant,
    /// For each client: its newest clock reading, and the number of its lags in earlier phases.
    readings: Vec<(Reading, usize)>,
    lost: usize,
}

/// Runs the clients. Arguments: address, number of clients, and the path of each channel. Prints `watching` when all of
/// them receive data. Each line of input is the name of a phase that starts, the last one is `end`; then it prints a
/// report for each phase.
pub fn run(arguments: &[String]) {
    let address: SocketAddr = arguments[0].parse().expect("an address");
    let n: usize = arguments[1].parse().expect("a number of clients");
    let paths = &arguments[2..];
    let mut pool = ClientPool::new();
    let mut clients = Vec::new();
    for number in 0..n {
        pool.join(&mut clients, address, &paths[number % paths.len()]);
        pool.turn(&mut clients, Duration::from_millis(2), false);
    }
    pool.wait_for_all(&mut clients);
    pool.run(&mut clients, WARM_UP, false);
    print_line("watching");
    let input = lines();
    let mut boundaries: Vec<Boundary> = Vec::new();
    while boundaries.last().is_none_or(|it| it.name != "end") {
        pool.turn(&mut clients, Duration::from_millis(10), !boundaries.is_empty());
        match input.try_recv() {
            Ok(name) => boundaries.push(boundary(name, &clients)),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return,
        }
    }
    for client in &mut clients {
        // Not `percentile`, which would sort them.
        let least = client.lags.iter().copied().fold(f64::INFINITY, f64::min);
        client.lags.iter_mut().for_each(|lag| *lag -= least);
    }
    for pair in boundaries.windows(2) {
        print_line(&report(&clients, &pair[0], &pair[1]).to_string());
    }
}

/// Returns the lines that the parent sends.
fn lines() -> Receiver<String> {
    let (sender, receiver) = sync_channel(1);
    std::thread::spawn(move || {
        for line in std::io::stdin().lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

fn boundary(name: String, clients: &[Client]) -> Boundary {
    let at = now();
    let newest = |client: &Client| client.newest.expect("all watched before the first part began");
    let readings = clients.iter().map(|it| (newest(it), it.lags.len())).collect();
    let is_lost = |client: &&Client| client.is_over || at - newest(client).at > SILENCE;
    Boundary { name, at, readings, lost: clients.iter().filter(is_lost).count() }
}

/// Adds the first and the last clock of each client, and the number of packets between them.
fn report(clients: &[Client], begin: &Boundary, end: &Boundary) -> Value {
    let mut lags = Vec::new();
    let mut spans = Vec::new();
    for (client, ((first, from), (last, to))) in clients.iter().zip(begin.readings.iter().zip(&end.readings))
    {
        lags.extend_from_slice(&client.lags[*from..*to]);
        spans.push(json!([first.clock, last.clock, last.packets - first.packets]));
    }
    json!({
        "name": begin.name,
        "seconds": (end.at - begin.at).as_secs_f64(),
        "lag_p50_ms": percentile(&mut lags, 0.5),
        "lag_p99_ms": percentile(&mut lags, 0.99),
        "lag_max_ms": percentile(&mut lags, 1.0),
        "lost": end.lost,
        "spans": spans,
    })
}
