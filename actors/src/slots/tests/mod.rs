//! Tests of slots with paused time: no socket is involved, a holder has only a lease.

mod actor;
mod devices;
mod forecast;
mod model;
mod table;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use domain::ids::{AccountId, ProfileId, ServerGroupId, StreamId};
use domain::limits::LimitScope;
use domain::plan::{SharedPool, SlotPool};
use domain::playout::Attempt;
use media::Permit;
use proptest::prelude::*;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::table::Taken;
use super::*;
use crate::ask::Address;
use crate::plans::Target;
use crate::testing::inbox;
use crate::viewer::{Identity, Viewer};

const LEASE_WAIT_SECONDS: u64 = domain::settings::LEASE_WAIT.as_secs();

pub(crate) fn pool(profile: u32, max_streams: u32) -> SlotPool {
    SlotPool {
        account: AccountId(profile),
        account_name: format!("account {profile}"),
        profile: ProfileId(profile),
        max_streams,
        release_delay: Duration::ZERO,
        crash_cooling: None,
        changed_at: 0,
        scope: LimitScope::Unknown,
        shared: None,
    }
}

/// The pool of an account profile in a server group of the first two accounts.
pub(crate) fn grouped(profile: u32, max_streams: u32, group_max: u32) -> SlotPool {
    let shared = SharedPool {
        group: ServerGroupId(1),
        name: "group".to_owned(),
        max_streams: group_max,
        accounts: [AccountId(1), AccountId(2)].into(),
    };
    SlotPool { shared: Some(shared), ..pool(profile, max_streams) }
}

/// Account profile 2 without a configured limit; account 1 is that of manually created streams.
fn unlimited() -> SlotPool {
    pool(2, 0)
}

/// A slots actor and holders that send requests to it.
struct SlotsFixture {
    table: Arc<SlotTable>,
    slots: Arc<dyn LeaseTable>,
}

impl SlotsFixture {
    async fn new() -> Self {
        let address = Address::new();
        let table = SlotTable::new(address.clone());
        let arguments = Arguments { table: table.clone() };
        let (actor, _) = ractor::Actor::spawn(None, Actor, arguments).await.unwrap();
        address.set(actor);
        Self { slots: table.clone(), table }
    }

    async fn holder(&self, id: u64) -> Holder {
        let (actor, messages) = inbox::<SlotMessage>().await;
        Holder { id, port: actor.get_derived(), actor, messages, slots: self.slots.clone() }
    }

    fn out(&self) -> usize {
        self.table.counts().0
    }
}

struct Holder {
    id: u64,
    port: HolderPort,
    actor: ractor::ActorRef<SlotMessage>,
    messages: mpsc::UnboundedReceiver<SlotMessage>,
    slots: Arc<dyn LeaseTable>,
}

impl Holder {
    fn ask(&self, attempt: u64, order: &[SlotPool], asking: Asking) {
        let stream = StreamId(self.id as u32);
        let candidate = |(index, pool): (usize, &SlotPool)| SlotCandidate {
            index,
            stream,
            pool: pool.clone(),
            device: None,
        };
        self.ask_for(attempt, order.iter().enumerate().map(candidate).collect(), asking);
    }

    fn ask_for(&self, attempt: u64, order: Vec<SlotCandidate>, asking: Asking) {
        self.slots.request(Request {
            holder: self.id,
            target: target(self.id),
            port: self.port.clone(),
            attempt: Attempt(attempt),
            order,
            asking,
            claim: None,
            purpose: LeasePurpose::Live,
        });
    }

    async fn message(&mut self) -> SlotMessage {
        self.messages.recv().await.unwrap()
    }

    async fn granted(&mut self) -> (usize, Lease) {
        match self.message().await {
            SlotMessage::Granted { index, lease, .. } => (index, lease),
            other => panic!("expected a grant, got {other:?}"),
        }
    }

    async fn full(&mut self) -> FullPool {
        match self.message().await {
            SlotMessage::Full { full, .. } => full,
            other => panic!("expected full, got {other:?}"),
        }
    }

    async fn asked_to_yield(&mut self) -> u64 {
        match self.message().await {
            SlotMessage::Yield { asked_by, .. } => asked_by,
            other => panic!("expected a request to yield, got {other:?}"),
        }
    }
}

fn target(holder: u64) -> Target {
    Target::Stream(StreamId(holder as u32))
}

fn join() -> Asking {
    Asking::Join(None)
}

/// Requests a slot for a holder; the connection then delivers packets.
async fn playing(holder: &mut Holder, pool: &SlotPool) -> Lease {
    holder.ask(1, std::slice::from_ref(pool), join());
    let (_, mut lease) = holder.granted().await;
    lease.delivers();
    lease
}

/// Requests a slot for a holder, which the provider then refuses. Returns whether a limit may be the cause.
async fn refused(holder: &mut Holder, pool: &SlotPool) -> bool {
    holder.ask(1, std::slice::from_ref(pool), join());
    let (_, lease) = holder.granted().await;
    holder.slots.refused(lease.id(), pool, StreamId(holder.id as u32))
}
