//! How long does an event take to its webhooks, and what does that cost?
//!
//! First one webhook, with a pause between events: *beyond a flush* is the time that is left of a delivery when the time of
//! one small write to the store is taken away. Then many webhooks at a rate, of which one never answers and one refuses
//! connections; the times are those of the others, from the event to the arrival of the request. *Event to store* is the
//! time from such an event to the commit that contains it in the queue of the webhook that never answers. Memory and CPU
//! time are those of this process, which contains the targets as well. Last, pages of a log with many rows, without HTTP.
//!
//! `cargo bench --bench integrations -- [--webhooks 50] [--per-minute 10000] [--seconds 60] [--idle 100] [--rows 100000]`

#![expect(clippy::print_stdout, unreachable_pub, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

#[path = "support/gateway.rs"]
mod gateway;
#[path = "support/options.rs"]
#[expect(dead_code, reason = "this bench has no roles")]
mod options;
mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use actors::{LogFilter, now_ms};
use domain::event::{Event, EventBody, VodRef};
use domain::ids::{DeliveryId, IntegrationId, LogEntryId};
use domain::integration::{
    Delivery, DeliveryLogEntry, Integration, Recipient, Subscription, Target, Webhook,
};
use domain::plugin::RunCause;
use domain::source_url::SourceUrl;
use headwater::Gateway;
use parking_lot::Mutex;
use serde_json::{Value, json};
use storage::{ChangeMessage, ChangedIds, Record};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use uuid::Uuid;

use self::options::Options;
use self::support::percentile;

/// Integrations of the log: as many as have a thousand entries each.
const LOG_INTEGRATIONS: u32 = 100;
/// Wait for the last deliveries.
const END_MAX: Duration = Duration::from_secs(60);

/// The integration whose target never answers, so that what is queued for it stays.
const HUNG: u32 = 2;

/// The members of the results that have a goal, and the goal.
const GOALS: [(&str, &str, f64); 8] = [
    ("p99 beyond a flush, idle, ms", "/idle/beyond_a_flush/p99_ms", 20.0),
    ("p99 from event to store, ms", "/loaded/event_to_store/p99_ms", 50.0),
    ("p99 from event to target, ms", "/loaded/event_to_target/p99_ms", 100.0),
    ("lost deliveries", "/loaded/lost", 0.0),
    ("cores", "/loaded/cores", 1.0),
    ("resident memory, MiB", "/loaded/resident_mib", 64.0),
    ("p99 of a page of the log, ms", "/log/page/p99_ms", 10.0),
    ("p99 of a page of one integration, ms", "/log/page_of_an_integration/p99_ms", 10.0),
];

/// The numbers of events, and when each was in the stored queue.
type Stored = Arc<Mutex<Vec<(u64, Instant)>>>;

/// Arrivals: the path of the target, the number of the event, and when.
type Arrivals = Arc<Mutex<Vec<(String, u64, Instant)>>>;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let options = Options::from_process();
    let n_webhooks = options.number("--webhooks", 50_u32);
    let per_minute = options.number("--per-minute", 10_000_u64);
    let seconds = options.number("--seconds", 60_u64);
    let n_idle = options.number("--idle", 100_u64);
    let n_rows = options.number("--rows", 100_000_u32);
    let gateway = gateway::start(0, |_| None).await;
    let arrivals = Arrivals::default();
    let (good, hung) = (target(arrivals.clone(), false).await, target(Arrivals::default(), true).await);
    // Nobody listens there any more.
    let refusing = TcpListener::bind("127.0.0.1:0").await.expect("a port").local_addr().expect("it listens");

    subscribe(&gateway, vec![(1, good)]).await;
    let idle = idle(&gateway, &arrivals, n_idle).await;
    let others = (2..=n_webhooks).map(|id| match id {
        HUNG => (id, hung),
        3 => (id, refusing),
        _ => (id, good),
    });
    subscribe(&gateway, others.collect()).await;
    let loaded = loaded(&gateway, &arrivals, n_webhooks, per_minute, seconds).await;
    let pages = pages(&gateway, n_rows).await;
    let results = json!({ "idle": idle, "loaded": loaded, "log": pages });
    println!("{results:#}\n");
    for (what, place, goal) in GOALS {
        let value = results.pointer(place).and_then(Value::as_f64).unwrap_or(f64::NAN);
        let verdict = if value <= goal { "reached" } else { "missed" };
        println!("{what:>40}: {value:>8.2} (goal {goal}: {verdict})");
    }
    support::record("integrations", results);
    gateway.stop().await;
}

/// Starts a target that notes what arrives, and answers unless it hangs.
async fn target(arrivals: Arrivals, hangs: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it listens");
    tokio::spawn(async move {
        while let Ok((socket, _)) = listener.accept().await {
            tokio::spawn(serve(socket, arrivals.clone(), hangs));
        }
    });
    address
}

async fn serve(socket: TcpStream, arrivals: Arrivals, hangs: bool) -> Option<()> {
    let mut socket = BufReader::new(socket);
    loop {
        let (mut path, mut length) = (String::new(), 0);
        loop {
            let mut line = String::new();
            socket.read_line(&mut line).await.ok().filter(|it| *it > 0)?;
            if path.is_empty() {
                path = line.split(' ').nth(1)?.to_owned();
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length: ") {
                length = value.trim().parse().ok()?;
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await.ok()?;
        let body: Value = serde_json::from_slice(&body).ok()?;
        arrivals.lock().push((path, body["client_id"].as_str()?.parse().ok()?, Instant::now()));
        if hangs {
            std::future::pending::<()>().await;
        }
        socket.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.ok()?;
    }
}

async fn subscribe(gateway: &Gateway, targets: Vec<(u32, SocketAddr)>) {
    let integration = |(id, address): (u32, SocketAddr)| {
        let webhook = Webhook {
            url: SourceUrl::new(format!("http://{address}/{id}")),
            method: "POST".to_owned(),
            headers: Vec::new(),
            preset: None,
            options: Default::default(),
            signing: None,
            ca_certificate: None,
        };
        let subscription =
            Subscription { id, event: "vod_start".to_owned(), is_enabled: true, template: None };
        Integration {
            id: IntegrationId(id),
            name: format!("Target {id}"),
            is_enabled: true,
            target: Target::Webhook(webhook),
            subscriptions: vec![subscription],
            parallel: 1,
            max_age_s: None,
            created_at: 0,
            is_trusted: false,
            digest_minutes: None,
        }
    };
    let all: Vec<_> = targets.into_iter().map(integration).collect();
    let store = &gateway.models().store;
    let added = store.write(move |write| all.iter().try_for_each(|it| write.put(it)));
    let added: Result<(), storage::Error> = added.await;
    added.expect("the integrations are stored");
}

fn emit(gateway: &Gateway, number: u64) -> Instant {
    let vod = VodRef {
        session: number,
        uuid: Uuid::from_u128(1),
        is_episode: false,
        name: "A film with a name of usual length".to_owned(),
        ip: [192, 0, 2, 1].into(),
        user_agent: "VLC/3.0.20 LibVLC/3.0.20".to_owned(),
        user: None,
    };
    gateway.events().emit(Event { at: now_ms(), body: EventBody::VodStart { vod } });
    Instant::now()
}

fn row(mut milliseconds: Vec<f64>) -> Value {
    let mut at = |p: f64| (percentile(&mut milliseconds, p) * 100.0).round() / 100.0;
    let (p50, p99, max) = (at(0.5), at(0.99), at(1.0));
    json!({ "p50_ms": p50, "p99_ms": p99, "max_ms": max, "n": milliseconds.len() })
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// Single events, each after a small write.
async fn idle(gateway: &Gateway, arrivals: &Arrivals, n: u64) -> Value {
    let (mut flushes, mut deliveries, mut beyond) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..n {
        let began = Instant::now();
        let entry = entry(1, number as i64);
        let written: Result<(), storage::Error> =
            gateway.models().store.write(move |write| write.put(&entry)).await;
        written.expect("it is written");
        let flush = milliseconds(began.elapsed());
        tokio::time::sleep(Duration::from_millis(20)).await;
        let emitted = emit(gateway, number);
        let arrived = loop {
            let found = arrivals.lock().iter().find(|it| it.1 == number).map(|it| it.2);
            match found {
                Some(at) => break at,
                None => tokio::time::sleep(Duration::from_millis(1)).await,
            }
        };
        let delivery = milliseconds(arrived.saturating_duration_since(emitted));
        flushes.push(flush);
        deliveries.push(delivery);
        beyond.push((delivery - flush).max(0.0));
        // Until the outcome is stored.
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    arrivals.lock().clear();
    json!({ "flush": row(flushes), "delivery": row(deliveries), "beyond_a_flush": row(beyond) })
}

/// Events at a rate, for all webhooks.
async fn loaded(
    gateway: &Gateway,
    arrivals: &Arrivals,
    n_webhooks: u32,
    per_minute: u64,
    seconds: u64,
) -> Value {
    let pause = Duration::from_secs_f64(60.0 * f64::from(n_webhooks) / per_minute as f64);
    let n_events = (seconds as f64 / pause.as_secs_f64()).ceil() as u64;
    // Opens the connections, whose number is that of the targets and not of the events.
    emit(gateway, n_events);
    while arrivals.lock().len() < n_webhooks as usize - 2 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    arrivals.lock().clear();
    let stored = Stored::default();
    let noting = tokio::spawn(note_stored(gateway.models().store.clone(), stored.clone()));
    let cpu = process_cpu();
    let began = Instant::now();
    let mut emitted = Vec::new();
    for number in 0..n_events {
        tokio::time::sleep_until((began + pause * u32::try_from(number).expect("few events")).into()).await;
        emitted.push(emit(gateway, number));
    }
    let n_expected = n_events as usize * (n_webhooks as usize - 2);
    while arrivals.lock().len() < n_expected && began.elapsed() < Duration::from_secs(seconds) + END_MAX {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = began.elapsed();
    noting.abort();
    let cpu = (process_cpu() - cpu).as_secs_f64() / took.as_secs_f64();
    let arrived = std::mem::take(&mut *arrivals.lock());
    let lag =
        |it: &(String, u64, Instant)| milliseconds(it.2.saturating_duration_since(emitted[it.1 as usize]));
    let lags: Vec<f64> = arrived.iter().map(lag).collect();
    let to_store = emitted.iter().zip(0..).filter_map(|(emitted, number)| {
        let stored = stored.lock().iter().find(|it| it.0 == number)?.1;
        Some(milliseconds(stored.saturating_duration_since(*emitted)))
    });
    let to_store: Vec<f64> = to_store.collect();
    json!({
        "webhooks": n_webhooks,
        "events": n_events,
        "lost": n_expected.saturating_sub(arrived.len()),
        "event_to_store": row(to_store),
        "event_to_target": row(lags),
        "cores": (cpu * 100.0).round() / 100.0,
        "resident_mib": resident_mib(),
    })
}

/// Notes when events are in the stored queue of the integration that hangs.
async fn note_stored(store: storage::Store, stored: Stored) {
    let hung = Recipient::Integration(IntegrationId(HUNG));
    let mut changes = store.changes();
    loop {
        let change = match changes.next().await {
            ChangeMessage::Changed(change) => change,
            ChangeMessage::Lagged => continue,
            ChangeMessage::Closed => return,
        };
        let at = Instant::now();
        let Some(ChangedIds::Few(ids)) = change.ids(Delivery::COLLECTION) else { continue };
        let deliveries = store.collection::<Delivery>();
        let queued = ids.iter().filter_map(|id| deliveries.get(*id).ok()?);
        let new = queued.filter(|it| it.to == hung && it.n_attempts == 0);
        let numbers = new.filter_map(|it| {
            let payload: Value = serde_json::from_str(&it.payload).ok()?;
            payload["client_id"].as_str()?.parse::<u64>().ok()
        });
        // Later commits may contain it again; the first one counts.
        stored.lock().extend(numbers.map(|number| (number, at)));
    }
}

/// Pages of the log.
async fn pages(gateway: &Gateway, n_rows: u32) -> Value {
    let models = gateway.models().clone();
    for first in (0..n_rows).step_by(5_000) {
        let written = models.store.write(move |write| {
            for n in first..(first + 5_000).min(n_rows) {
                let id = LogEntryId(write.next_id::<DeliveryLogEntry>()?);
                let own = DeliveryLogEntry { id, ..entry(n % LOG_INTEGRATIONS + 1, now_ms()) };
                write.put(&own)?;
            }
            Ok::<_, storage::Error>(())
        });
        written.await.expect("the log is stored");
    }
    let integrations = gateway.system().integrations();
    let all = LogFilter::default();
    while integrations.log(&all, 0, 1).map_or(0, |it| it.n_all) < n_rows as usize {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let measured = tokio::task::spawn_blocking(move || {
        let (mut first, mut of_one) = (Vec::new(), Vec::new());
        for n in 0..200_usize {
            let began = Instant::now();
            let page = integrations.log(&LogFilter::default(), n * 50, 50).expect("a page");
            first.push(milliseconds(began.elapsed()));
            assert_eq!(page.items.len(), 50);
            let filter = LogFilter {
                to: Some(Recipient::Integration(IntegrationId(n as u32 % LOG_INTEGRATIONS + 1))),
                is_success: Some(true),
                ..LogFilter::default()
            };
            let began = Instant::now();
            integrations.log(&filter, 100, 50).expect("a page");
            of_one.push(milliseconds(began.elapsed()));
        }
        json!({ "page": row(first), "page_of_an_integration": row(of_one) })
    });
    let mut results = measured.await.expect("no panic");
    results["rows"] = n_rows.into();
    results
}

fn entry(integration: u32, at: i64) -> DeliveryLogEntry {
    DeliveryLogEntry {
        id: LogEntryId(0),
        to: Recipient::Integration(IntegrationId(integration)),
        subscription: Some(integration),
        delivery: Some(DeliveryId(1)),
        event_id: Uuid::from_u128(1),
        event: "vod_start".to_owned(),
        cause: RunCause::Event,
        action: None,
        is_success: true,
        request: "x".repeat(400),
        answer: None,
        output: None,
        result: None,
        reason: None,
        attempt: 1,
        duration_ms: 5,
        created_at: at,
    }
}

/// Returns the CPU time of this process.
fn process_cpu() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after_name = stat.rsplit_once(')').map_or("", |it| it.1);
    let ticks: u64 =
        after_name.split_whitespace().skip(11).take(2).filter_map(|it| it.parse::<u64>().ok()).sum();
    // A tick of /proc is 10 ms on every architecture of Linux.
    Duration::from_millis(ticks * 10)
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|it| it.starts_with("VmRSS:"));
    line.and_then(|it| it.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) / 1024
}
