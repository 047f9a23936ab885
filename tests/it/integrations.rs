//! Deliveries to integrations by the real program: none is lost when it is killed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use domain::ids::{DeliveryId, IntegrationId};
use domain::integration::{Delivery, Integration, Recipient};
use storage::Store;
use storage::records::schema;
use tempfile::TempDir;
use uuid::Uuid;

use crate::support::binary::Binary;
use crate::support::eventually;
use crate::support::webhook::WebhookTarget;

/// Integrations of a round.
const TARGETS: u32 = 3;
/// Deliveries that are added to each of them before each round.
const PER_ROUND: u32 = 20;

/// Runs a function on the store while no program uses it.
pub(crate) async fn with_store<R: Send + 'static>(
    data: &Path,
    work: impl FnOnce(&Store) -> R + Send + 'static,
) -> R {
    let (store, key) = (data.join("store"), data.join("key"));
    let run = move || {
        let store = Store::open(&store, &key, schema()).unwrap();
        let done = work(&store);
        store.close();
        done
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

fn delivery(id: u32, integration: u32, now: i64) -> Delivery {
    Delivery {
        id: DeliveryId(id),
        to: Recipient::Integration(IntegrationId(integration)),
        event_id: Uuid::from_u128(id.into()),
        event: "vod_stop".to_owned(),
        created_at: now,
        payload: format!(r#"{{"event_type":"vod_stop","number":{id}}}"#),
        summary: String::new(),
        channel: None,
        n_attempts: 0,
        due_at: now,
        reason: None,
        dead_at: None,
        run: None,
        n_crashes: 0,
        passed_run: None,
        addresses: Default::default(),
    }
}

fn start(data: &TempDir) -> Binary {
    Binary::start(&["serve", "--data-dir", &data.path().display().to_string()])
}

// Holds T-int.2 (with the real program).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_gateway_loses_no_delivery_and_repeats_only_those_in_flight() {
    // `HEADWATER_KILLS=200` is for a long run by hand.
    let n_kills: u32 = std::env::var("HEADWATER_KILLS").ok().and_then(|it| it.parse().ok()).unwrap_or(4);
    let data = tempfile::tempdir().unwrap();
    let target = WebhookTarget::start(Duration::from_millis(2)).await;
    let integrations: Vec<Integration> =
        (1..=TARGETS).map(|id| target.integration(id, &["vod_stop"])).collect();
    with_store(data.path(), move |store| {
        storage::seed(store).unwrap();
        let added = store.write_blocking(move |write| integrations.iter().try_for_each(|it| write.put(it)));
        added.unwrap();
    })
    .await;
    let mut sent: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for round in 0..n_kills {
        let added = with_store(data.path(), move |store| {
            store.write_blocking(move |write| {
                let mut added = Vec::new();
                for integration in (0..PER_ROUND * TARGETS).map(|it| it % TARGETS + 1) {
                    let id = write.next_id::<Delivery>()?;
                    write.put(&delivery(id, integration, actors::now_ms()))?;
                    added.push((integration, id));
                }
                Ok::<_, storage::Error>(added)
            })
        });
        for (integration, id) in added.await.unwrap() {
            sent.entry(integration).or_default().push(id);
        }
        let n_wanted = target.len() + 1 + (round as usize * 7) % (PER_ROUND as usize);
        let mut program = start(&data);
        eventually("some deliveries", || target.len() >= n_wanted).await;
        program.signal("KILL");
        program.ended().await;
    }
    let _program = start(&data);
    let numbers = || -> Vec<(u32, u32)> {
        let received = target.received();
        let one = |(id, body): &(String, serde_json::Value)| {
            let integration = id.rsplit_once('_')?.1.parse().ok()?;
            Some((integration, u32::try_from(body["number"].as_u64()?).ok()?))
        };
        received.iter().map(|it| one(it).expect("a delivery")).collect()
    };
    let n_sent: usize = sent.values().map(Vec::len).sum();
    eventually("all deliveries", || numbers().into_iter().collect::<BTreeSet<_>>().len() == n_sent).await;
    let mut seen: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    let mut n_repeated = 0;
    for (integration, number) in numbers() {
        let own = seen.entry(integration).or_default();
        match own.last() {
            // One attempt at a time: what is repeated was the last one.
            Some(last) if *last == number => n_repeated += 1,
            _ => own.push(number),
        }
    }
    assert_eq!(seen, sent, "each one, in order");
    assert!(n_repeated <= n_kills * TARGETS, "{n_repeated} repeated after {n_kills} kills");
}
