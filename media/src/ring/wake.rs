//! Wakes the tails that wait for a new chunk.
//!
//! Each woken tail sends its chunk before the next one gets its turn. If all tails of a large channel were woken at once,
//! everything else that the same threads do would wait until the last of them has sent: a viewer who joins would wait
//! that long at each step. Therefore they are woken in slices, and other tasks run in between.

use std::task::Waker;

use tokio::runtime::Handle;
use tokio::task::yield_now;

/// Maximum number of tails that are woken at the same time, for each thread of the runtime.
const SLICE: usize = 16;

/// Wakes all of these tails: the first slice at once, and each of the others when the runtime has worked off the tasks
/// before it. Without a runtime it wakes all at once.
pub(super) fn wake(wakers: &mut Vec<Waker>) {
    if wakers.len() > SLICE
        && let Ok(runtime) = Handle::try_current()
    {
        let slice = SLICE * runtime.metrics().num_workers();
        if wakers.len() > slice {
            let later = wakers.split_off(slice);
            runtime.spawn(wake_later(later, slice));
        }
    }
    wakers.drain(..).for_each(Waker::wake);
}

async fn wake_later(wakers: Vec<Waker>, slice: usize) {
    let mut wakers = wakers.into_iter();
    while wakers.len() > 0 {
        yield_now().await;
        wakers.by_ref().take(slice).for_each(Waker::wake);
    }
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Poll;

    use parking_lot::Mutex;

    use super::*;

    const N_TAILS: usize = 3 * SLICE;

    #[tokio::test]
    async fn another_task_runs_before_all_tails_are_woken_and_then_the_others_are() {
        let (wakers, n_woken) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let tails: Vec<_> = (0..N_TAILS)
            .map(|_| {
                let (wakers, n_woken) = (Arc::clone(&wakers), Arc::clone(&n_woken));
                tokio::spawn(async move {
                    let mut is_waiting = false;
                    poll_fn(|cx| match std::mem::replace(&mut is_waiting, true) {
                        true => Poll::Ready(()),
                        false => {
                            wakers.lock().push(cx.waker().clone());
                            Poll::Pending
                        }
                    })
                    .await;
                    n_woken.fetch_add(1, Ordering::Relaxed);
                })
            })
            .collect();
        while wakers.lock().len() < N_TAILS {
            yield_now().await;
        }
        wake(&mut wakers.lock());
        let other = tokio::spawn({
            let n_woken = Arc::clone(&n_woken);
            async move { n_woken.load(Ordering::Relaxed) }
        });
        assert_eq!(other.await.unwrap(), SLICE);
        for tail in tails {
            tail.await.unwrap();
        }
        assert_eq!(n_woken.load(Ordering::Relaxed), N_TAILS);
    }
}
