//! Tests of client actors.

use std::sync::Arc;
use std::time::Duration;

use media::meter::Connection;

use super::*;
use crate::registry::ClientStalled;

async fn client() -> (ActorRef<Message>, tokio::task::JoinHandle<()>, Arc<Connection>) {
    let connection = Arc::new(Connection::new(1, "10.0.0.1:4711".parse().unwrap()));
    let (actor, task) = ractor::Actor::spawn(None, Actor, State::new(connection.clone())).await.unwrap();
    (actor, task, connection)
}

#[tokio::test]
async fn a_client_whose_tail_is_dropped_ends_and_leaves_the_connection_to_the_server() {
    let (actor, task, connection) = client().await;
    drop(Departure::new(actor, None));
    task.await.unwrap();
    assert!(!connection.cancel.is_cancelled());
}

#[tokio::test]
async fn a_stalled_client_is_disconnected() {
    let (actor, task, connection) = client().await;
    actor.cast(Message::Stalled(ClientStalled { blocked: Duration::from_secs(31) })).unwrap();
    task.await.unwrap();
    assert!(connection.cancel.is_cancelled());
}

#[tokio::test]
async fn a_kicked_client_loses_its_connection() {
    let (actor, task, connection) = client().await;
    actor.cast(Message::Kick("a test")).unwrap();
    task.await.unwrap();
    assert!(connection.cancel.is_cancelled());
}

#[tokio::test]
async fn a_client_actor_that_dies_closes_its_connection() {
    let (actor, task, connection) = client().await;
    actor.kill();
    task.await.unwrap();
    assert!(connection.cancel.is_cancelled());
}

/// The channel may be dying at the moment of the join.
#[tokio::test]
async fn a_client_of_a_dead_channel_loses_its_connection() {
    let (channel, task, _) = client().await;
    channel.kill();
    task.await.unwrap();
    let connection = Arc::new(Connection::new(2, "10.0.0.1:4712".parse().unwrap()));
    let state = State::new(connection.clone());
    let begun = ractor::ActorRuntime::spawn_linked_instant(None, Actor, state, channel.get_cell());
    begun.unwrap().1.await.unwrap().unwrap_err();
    assert!(connection.cancel.is_cancelled());
}
