//! A table for tests that grants every request, and can revoke all leases, as the node of a cluster does that has lost
//! contact with the others.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::time::Duration;

use domain::ids::{ProfileId, StreamId};
use domain::plan::SlotPool;
use domain::playout::Attempt;
use parking_lot::Mutex;
use tokio::sync::Notify;

use super::{
    FullPool, HolderPort, Lease, LeaseInfo, LeasePurpose, LeaseTable, OtherSlot, Request, ReservedSlots,
    SlotMessage, SlotsSnapshot,
};

/// Time within which holders have to close their sources.
const WITHIN: Duration = Duration::from_millis(500);

pub(crate) struct RevocableTable {
    me: Weak<Self>,
    inner: Mutex<Inner>,
    returned: Notify,
}

#[derive(Default)]
struct Inner {
    last_id: u64,
    is_cut: bool,
    leases: BTreeMap<u64, Entry>,
}

struct Entry {
    holder: u64,
    port: HolderPort,
    is_closing: bool,
}

impl RevocableTable {
    pub(crate) fn new() -> Arc<Self> {
        let (inner, returned) = Default::default();
        Arc::new_cyclic(|me| Self { me: me.clone(), inner, returned })
    }

    /// Revokes all leases, and grants no more.
    pub(crate) fn cut(&self) {
        let mut inner = self.inner.lock();
        inner.is_cut = true;
        for (lease, it) in &inner.leases {
            let _ = it.port.send_message(SlotMessage::Revoked { lease: *lease, within: WITHIN });
        }
    }

    /// Grants again.
    pub(crate) fn join(&self) {
        self.inner.lock().is_cut = false;
    }

    /// Waits until all leases are returned: for little longer than the closer takes if a provider does not close its side.
    pub(crate) async fn all_closed(&self) {
        let closed = async {
            while self.counts().0 > 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(WITHIN + Duration::from_millis(100), closed)
            .await
            .expect("all sources are closed in time");
    }
}

impl LeaseTable for RevocableTable {
    fn request(&self, request: Request) {
        let mut inner = self.inner.lock();
        let attempt = request.attempt;
        let message = match (request.order.first(), self.me.upgrade()) {
            (Some(first), Some(me)) if !inner.is_cut => {
                inner.last_id += 1;
                let id = inner.last_id;
                let entry = Entry { holder: request.holder, port: request.port.clone(), is_closing: false };
                inner.leases.insert(id, entry);
                SlotMessage::Granted { attempt, index: first.index, lease: Lease::new(id, me, false) }
            }
            _ => SlotMessage::Full {
                attempt,
                full: FullPool {
                    account: String::new(),
                    server_group: None,
                    since: Duration::ZERO,
                    max_streams: 1,
                    is_discovered: false,
                    is_told: false,
                    n_reserved: 0,
                    is_unknown: false,
                },
            },
        };
        drop(inner);
        let _ = request.port.send_message(message);
    }

    fn closing(&self, lease: u64) {
        if let Some(it) = self.inner.lock().leases.get_mut(&lease) {
            it.is_closing = true;
        }
    }

    fn give_back(&self, lease: u64) {
        self.inner.lock().leases.remove(&lease);
        self.returned.notify_waiters();
    }

    fn counts(&self) -> (usize, usize) {
        let inner = self.inner.lock();
        (inner.leases.len(), inner.leases.values().filter(|it| it.is_closing).count())
    }

    fn holds(&self, holder: u64) -> bool {
        self.inner.lock().leases.values().any(|it| it.holder == holder)
    }

    fn hand_over(&self) -> Vec<OtherSlot> {
        Vec::new()
    }

    fn all_back(&self, holder: u64) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            loop {
                let mut next = std::pin::pin!(self.returned.notified());
                next.as_mut().enable();
                if !self.holds(holder) {
                    return;
                }
                next.await;
            }
        })
    }

    // Nobody waits here, and nothing is observed.

    fn cancel(&self, _: u64, _: Attempt) {}

    fn kept(&self, _: u64, _: u64) {}

    fn lingering(&self, _: u64) {}

    fn make_room(&self, _: u64, _: SlotPool) {}

    fn delivers(&self, _: u64) {}

    fn refused(&self, _: u64, _: &SlotPool, _: StreamId) -> bool {
        false
    }

    fn full_now(&self, _: u64, _: &SlotPool) -> u32 {
        0
    }

    fn reserve(&self, _: ReservedSlots) {}

    fn set_purpose(&self, _: u64, _: LeasePurpose) {}

    fn has_room_beside_recordings(&self, _: u64, _: &SlotPool) -> bool {
        true
    }

    fn discovered_limit(&self, _: ProfileId, _: i64) -> Option<u32> {
        None
    }

    fn snapshot(&self) -> SlotsSnapshot {
        SlotsSnapshot::default()
    }

    fn leases(&self) -> Vec<LeaseInfo> {
        Vec::new()
    }
}
