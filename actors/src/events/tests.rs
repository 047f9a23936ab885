//! Tests of the events actor.

use domain::event::{CallerRef, EventBody};

use super::*;

fn event(at: i64) -> Event {
    let attempt =
        CallerRef { user: None, ip: "10.0.0.1".parse().expect("an address"), user_agent: String::new() };
    Event { at, body: EventBody::LoginFailed { attempt, reason: "a test".into() } }
}

pub(crate) async fn events() -> Events {
    let bus = Bus::new();
    let (actor, _) = ractor::Actor::spawn(None, Actor, Arguments { bus: bus.clone() }).await.unwrap();
    let address = Address::new();
    address.set(actor);
    Events::new(address, bus, Outbox::default())
}

#[tokio::test]
async fn a_subscriber_receives_all_events_in_order() {
    let events = events().await;
    let mut subscriber = events.subscribe();
    for at in 0..100 {
        events.emit(event(at));
    }
    for at in 0..100 {
        assert_eq!(subscriber.recv().await.unwrap().at, at);
    }
}

#[tokio::test]
async fn the_history_keeps_only_the_newest_events() {
    let events = events().await;
    let mut subscriber = events.subscribe();
    for at in 0..=HISTORY_MAX as i64 {
        events.emit(event(at));
        assert_eq!(subscriber.recv().await.unwrap().at, at);
    }
    let recent = events.recent();
    assert_eq!(
        (recent.len(), recent[0].at, recent[HISTORY_MAX - 1].at),
        (HISTORY_MAX, 1, HISTORY_MAX as i64)
    );
    let numbers: Vec<_> = events.history().iter().map(|it| (it.0, it.1.at)).collect();
    assert_eq!(
        (numbers[0], numbers[HISTORY_MAX - 1]),
        ((HISTORY_MAX as u64 + 1, HISTORY_MAX as i64), (2, 1))
    );
}

#[tokio::test]
async fn a_subscriber_that_does_not_read_blocks_nobody_and_loses_the_oldest_events() {
    let events = events().await;
    let mut lazy = events.subscribe();
    let mut keen = events.subscribe();
    for at in 0..1000 {
        events.emit(event(at));
        assert_eq!(keen.recv().await.unwrap().at, at);
    }
    assert!(matches!(lazy.recv().await, Err(broadcast::error::RecvError::Lagged(744))));
}

#[tokio::test(start_paused = true)]
async fn an_event_of_one_cause_is_emitted_once_in_some_minutes() {
    let events = Events::new(Address::new(), Bus::new(), Outbox::default());
    let full = |account: &str| {
        let body = EventBody::AccountFull {
            account_name: account.to_owned(),
            wanted: "News".to_owned(),
            max_streams: 1,
            reason: String::new(),
        };
        events.emit_paced(account.to_owned(), Event { at: 0, body });
        events.bus.paced.lock().len()
    };
    assert_eq!([full("one"), full("one"), full("two")], [1, 1, 2]);
    tokio::time::advance(PACE / 2).await;
    assert_eq!(full("one"), 2);
    // Those whose time is over are forgotten.
    tokio::time::advance(PACE).await;
    assert_eq!(full("one"), 1);
}
