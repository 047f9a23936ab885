//! Events of a node of a cluster that does not deliver.

use domain::integration::OutboxEvent;

use super::*;

/// Lets the gateway of a fixture be a node of a cluster that does not write.
async fn become_follower(fixture: &Fixture) {
    let store = fixture.models.store.clone();
    let begun = tokio::task::spawn_blocking(move || store.begin_log(Uuid::new_v4(), 0)).await.unwrap();
    begun.unwrap();
}

async fn leave_cluster(fixture: &Fixture) {
    let store = fixture.models.store.clone();
    tokio::task::spawn_blocking(move || store.leave_log()).await.unwrap().unwrap();
}

#[tokio::test]
async fn events_wait_on_a_node_that_does_not_deliver_and_are_taken_once() {
    let (node, writer, server) = (Fixture::new().await, Fixture::new().await, Server::start([]).await);
    let id = node.add(to(&server)).await;
    assert_eq!(writer.add(to(&server)).await, id);
    become_follower(&node).await;
    node.emit(film("of the node"));
    // Nobody wants it.
    node.emit(Event { at: now_ms(), body: EventBody::NodeState { node: "attic".to_owned(), state: "left" } });
    let n_waiting = || node.models.store.collection::<OutboxEvent>().len();
    until(|| n_waiting() == 1).await;
    let passed = node.integrations.to_pass_on().await.unwrap();
    assert_eq!((passed.events.len(), passed.deliveries.len()), (1, 0));
    // A node that does not deliver takes nothing, or it would go in a circle.
    let refused = node.integrations.take(passed.clone()).await;
    assert!(matches!(refused, Err(IntegrationError::Store(storage::Error::NotWriter))), "{refused:?}");
    // The answer to the first request was lost.
    for _ in 0..2 {
        writer.integrations.take(passed.clone()).await.unwrap();
    }
    let event_id = passed.events[0].event_id.to_string();
    node.integrations.passed_on(passed).await.unwrap();
    assert!(node.integrations.to_pass_on().await.unwrap().is_empty());
    assert_eq!(server.until_asked(1).await[0].json()["event_id"], event_id);

    // From the time when it delivered itself; one of them for an integration that was deleted meanwhile.
    let delivery = |to: u32| Delivery {
        id: DeliveryId(to),
        to: Recipient::Integration(IntegrationId(to)),
        event_id: Uuid::from_u128(7),
        event: "vod_stop".to_owned(),
        created_at: now_ms(),
        payload: "{}".to_owned(),
        summary: String::new(),
        channel: None,
        n_attempts: 3,
        due_at: 0,
        reason: None,
        dead_at: None,
        run: None,
        n_crashes: 0,
        passed_run: None,
        addresses: Default::default(),
    };
    let (to_it, to_none) = (delivery(id.0), delivery(99));
    let run_id = to_it.run_id();
    node.write(move |write| write.put(&to_it).and_then(|()| write.put(&to_none))).await;
    let passed = node.integrations.to_pass_on().await.unwrap();
    assert_eq!(passed.deliveries.len(), 2);
    for _ in 0..2 {
        writer.integrations.take(passed.clone()).await.unwrap();
    }
    node.integrations.passed_on(passed).await.unwrap();
    server.until_asked(2).await;
    writer.until(id, |it| it.n_waiting == 0).await;
    let logged = writer.until_logged(id, 2).await;
    assert_eq!((logged[0].attempt, logged[0].event_id), (4, Uuid::from_u128(7)));
    assert!(writer.models.store.collection::<Delivery>().is_empty());
    let known = Delivery { id: DeliveryId(50), passed_run: Some(run_id), ..delivery(id.0) };
    assert_eq!(known.run_id(), run_id);

    // Once it delivers itself, what waits needs nobody else.
    node.emit(film("of the node again"));
    until(|| n_waiting() == 1).await;
    leave_cluster(&node).await;
    server.until_asked(3).await;
    node.until(id, |it| it.n_waiting == 0).await;
    assert_eq!((n_waiting(), server.requests().len()), (0, 3));
}

#[tokio::test]
async fn what_every_node_sees_is_delivered_by_the_one_that_delivers_and_by_its_successor() {
    let (node, server) = (Fixture::new().await, Server::start([]).await);
    let id = node.add(to(&server)).await;
    become_follower(&node).await;
    let seen = film("seen by all");
    node.outbox.offer_seen_by_all(Uuid::from_u128(9), &Arc::new(seen.clone()));
    // It is not stored, in contrast to an event of the node itself.
    node.emit(film("of the node"));
    until(|| node.models.store.collection::<OutboxEvent>().len() == 1).await;
    leave_cluster(&node).await;
    let asked = server.until_asked(2).await;
    let mut ids: Vec<_> = asked.iter().map(|it| it.json()["event_id"].clone()).collect();
    ids.retain(|it| *it == Uuid::from_u128(9).to_string());
    assert_eq!(ids.len(), 1);
    // Once it delivers, it does so at once.
    node.outbox.offer_seen_by_all(Uuid::from_u128(10), &Arc::new(seen));
    server.until_asked(3).await;
    node.until(id, |it| it.n_waiting == 0).await;
}

#[tokio::test]
async fn an_edge_node_keeps_all_events_up_to_a_limit() {
    let node = Fixture::new().await;
    become_follower(&node).await;
    // As on an edge node, which knows no integration.
    let outbox = Outbox::default();
    let targets = PluginTargets::read(node.models.clone(), PluginFiles::new("/no/such/folder".as_ref()));
    let courier = outbox.start(node.models.store.clone(), node.models.integrations.clone(), targets, true);
    node.write(|write| {
        for id in 1..outbox::PASSED_EVENTS_MAX as u32 {
            let payload = "{}".to_owned();
            let (event, summary) = ("vod_stop".to_owned(), String::new());
            write.put(&OutboxEvent {
                id,
                event_id: Uuid::nil(),
                event,
                created_at: 0,
                payload,
                summary,
                channel: None,
                addresses: Default::default(),
            })?;
        }
        Ok(())
    })
    .await;
    let n_waiting = || node.models.store.collection::<OutboxEvent>().len();
    outbox.offer(&Arc::new(film("kept")));
    until(|| n_waiting() == outbox::PASSED_EVENTS_MAX).await;
    outbox.offer(&Arc::new(film("lost")));
    until(|| outbox.n_lost() == 1).await;
    assert_eq!(n_waiting(), outbox::PASSED_EVENTS_MAX);
    courier.stop().await;
    // They go in parts.
    assert_eq!(node.integrations.to_pass_on().await.unwrap().len(), 256);
}
