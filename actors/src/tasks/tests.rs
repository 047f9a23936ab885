//! Tests of background tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{Instant, timeout};

use super::*;
use crate::testing::inbox;

const LONG: Duration = Duration::from_secs(3600);

#[tokio::test(start_paused = true)]
async fn a_task_that_panics_or_is_killed_is_restarted_and_a_finished_one_is_not() {
    let lives = Arc::new(AtomicUsize::new(0));
    let counted = lives.clone();
    let task = respawn("test", move || {
        let life = counted.fetch_add(1, Ordering::SeqCst);
        async move {
            match life {
                0 => panic!("a defect"),
                1 => std::future::pending().await,
                _ => {}
            }
        }
    });
    sleep(2 * RESPAWN_DELAY).await;
    assert_eq!(lives.load(Ordering::SeqCst), 2);
    task.kill();
    sleep(LONG).await;
    assert_eq!(lives.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_always_fails_is_restarted_once_a_second() {
    let lives = Arc::new(AtomicUsize::new(0));
    let counted = lives.clone();
    let began = Instant::now();
    let task = respawn("test", move || {
        counted.fetch_add(1, Ordering::SeqCst);
        async { panic!("a defect") }
    });
    sleep(100 * RESPAWN_DELAY).await;
    drop(task);
    let lived = lives.load(Ordering::SeqCst);
    assert!((95..=101).contains(&lived), "{lived} lives in {:?}", began.elapsed());
    sleep(LONG).await;
    assert_eq!(lives.load(Ordering::SeqCst), lived, "it is dropped");
}

#[tokio::test(start_paused = true)]
async fn an_actor_ends_with_a_linked_task() {
    for panics in [false, true] {
        let (actor, mut inbox) = inbox::<()>().await;
        let _task = linked(&actor, async move { assert!(!panics, "a defect") });
        let ended = timeout(LONG, inbox.recv()).await.expect("the actor ends");
        assert_eq!(ended, None, "{panics}");
    }
}
