//! The clients: spread over the channels, they watch, and tell of each part of the run how it was for them.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::crowd::{Client, Crowd, Reading, WARM_UP, now, say};
use super::support::percentile;

/// A client that has heard no clock for so long at the end of a part counts as lost.
const SILENCE: Duration = Duration::from_secs(1);

/// Where a part of the run begins, and with that the one before ends.
struct Boundary {
    /// The name of the part that begins.
    name: String,
    at: Instant,
    /// Of each client: the newest reading, and how many of its lags belong to the parts before.
    readings: Vec<(Reading, usize)>,
    lost: usize,
}

/// Arguments: address, number of clients, and the path of each channel. Says `watching` when all of them do. Each line
/// of input is the name of a part that begins, the last of them `end`; then it reports, a line for each part.
pub fn run(arguments: &[String]) {
    let address: SocketAddr = arguments[0].parse().expect("an address");
    let n: usize = arguments[1].parse().expect("a number of clients");
    let paths = &arguments[2..];
    let mut crowd = Crowd::new();
    let mut clients = Vec::new();
    for number in 0..n {
        crowd.join(&mut clients, address, &paths[number % paths.len()]);
        crowd.turn(&mut clients, Duration::from_millis(2), false);
    }
    crowd.wait_for_all(&mut clients);
    crowd.run(&mut clients, WARM_UP, false);
    say("watching");
    let input = lines();
    let mut boundaries: Vec<Boundary> = Vec::new();
    while boundaries.last().is_none_or(|it| it.name != "end") {
        crowd.turn(&mut clients, Duration::from_millis(10), !boundaries.is_empty());
        match input.try_recv() {
            Ok(name) => boundaries.push(boundary(name, &clients)),
            Err(TryRecvError::Empty) => {}
            Err(TryRecvError::Disconnected) => return,
        }
    }
    for client in &mut clients {
        // Not the percentile, which would sort them.
        let least = client.lags.iter().copied().fold(f64::INFINITY, f64::min);
        client.lags.iter_mut().for_each(|lag| *lag -= least);
    }
    for pair in boundaries.windows(2) {
        say(&report(&clients, &pair[0], &pair[1]).to_string());
    }
}

/// The lines that the parent says.
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

/// Beside the figures of all clients together, the first and the last clock of each and the packets between them.
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
