//! Serving the viewers that a process has at a restart, beside its successor and without a store.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use domain::output_format::StreamFormat;
use domain::settings::Settings;
use media::node::{FoundRing, NodeMeter, RingDirectory};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};
use tracing::{info, warn};

use super::{ACTOR_DEADLINE, System, SystemActor, SystemState};
use crate::channels::ChannelTable;
use crate::predecessor::ring_name;
use crate::registry::Registry;
use crate::slots::{LeaseTable, OtherSlot};

/// Maximum wait until viewers without a connection of their own are gone.
const SETTLE_DEADLINE: Duration = Duration::from_secs(5);
const SETTLE_PAUSE: Duration = Duration::from_millis(20);

/// A system that serves its last viewers. [`System::stop`] ends it.
pub struct Draining {
    state: SystemState,
    /// The slots that the successor counts.
    handed: Mutex<Vec<OtherSlot>>,
    rings: Arc<Rings>,
}

impl System {
    /// Ends everything that needs the store, refuses further viewers, and keeps the live channels for those that read over a
    /// connection of their own. The store can be closed once this returns and the last request was answered.
    pub async fn drain(&self) -> Draining {
        let state = &self.state;
        state.env.begin_draining();
        if let Some(shared) = state.env.shared_channels.get() {
            shared.retire();
        }
        state.stop.cancel();
        self.follower.lock().take();
        self.guide_collector.lock().take();
        state.recorder.ended().await;
        state.time_shift.ended().await;
        state.udp_outputs.ended().await;
        self.switchboard().refuse();
        // The slot of a channel that nobody watches any more is for the successor.
        let settings = Settings { channel_shutdown_delay: Duration::ZERO, ..(*state.env.settings()).clone() };
        if let Err(error) = state.env.settings.set(settings) {
            warn!("channels linger as before: {error}");
        }
        tokio::join!(state.trials.ended(), state.vod.ended(), state.plugins.ended());
        self.leave_unwatched().await;
        let keeper = self.health_keeper.lock().take();
        if let Some((task, models)) = keeper {
            drop(task);
            self.health().write(&models).await;
        }
        for who in [SystemActor::Importer, SystemActor::Guides] {
            if let Some(actor) = state.addresses.get(who) {
                // One that does not end in time ends with the process.
                let _ = actor.drain_and_wait(Some(ACTOR_DEADLINE)).await;
            }
        }
        // Later events are for nobody: integrations are with the successor.
        let courier = self.courier.lock().take();
        if let Some(courier) = courier {
            courier.stop().await;
        }
        state.integrations.ended().await;
        let (channels, registry) = (state.channel_table.clone(), state.env.registry.clone());
        let rings = Arc::new(Rings { channels, registry, meter: Arc::default() });
        // Without channels nobody serves beside the successor.
        let has_channels = !state.channel_table.all().is_empty();
        let handed = if has_channels { state.env.slots.hand_over() } else { Vec::new() };
        Draining { state: state.clone(), handed: Mutex::new(handed), rings }
    }

    /// Waits until the players of HLS, whose sessions have ended, are gone, and ends the channels without viewers.
    async fn leave_unwatched(&self) {
        let (switchboard, deadline) = (self.switchboard(), Instant::now() + SETTLE_DEADLINE);
        while let Ok(all) = switchboard.overview().await {
            let mut is_settled = true;
            let shared = self.shared_channels();
            let is_read = |target| shared.as_ref().is_some_and(|it| it.is_read(target));
            for status in all.iter().filter_map(|it| it.status.as_ref()) {
                if status.clients.is_empty() && is_read(status.target) {
                    // By other nodes.
                    continue;
                }
                let reads_on = |it: StreamFormat| matches!(it, StreamFormat::Ts | StreamFormat::Fmp4);
                is_settled &=
                    !status.clients.is_empty() && status.clients.iter().all(|it| reads_on(it.format));
                if status.clients.is_empty() {
                    let _ = switchboard.stop(status.target).await;
                }
            }
            if is_settled || Instant::now() > deadline {
                return;
            }
            sleep(SETTLE_PAUSE).await;
        }
    }
}

impl Draining {
    /// Returns the number of channels that play.
    pub fn n_channels(&self) -> usize {
        self.state.channel_table.all().len()
    }

    /// Returns the slots that the successor has to count.
    pub fn slots(&self) -> Vec<OtherSlot> {
        let cooling = self.state.slot_table.cooling_for_other();
        self.handed.lock().iter().cloned().chain(cooling).collect()
    }

    /// Returns the rings of the channels, for the successor.
    pub fn rings(&self) -> Arc<dyn RingDirectory> {
        self.rings.clone()
    }

    /// Waits until the next holder of slots has ended. Returns its number. Cancel-safe.
    pub async fn next_return(&self) -> u64 {
        let (channels, slots) = (self.state.channel_table.clone(), self.state.slot_table.clone());
        loop {
            let (mut ended, mut returned) =
                (std::pin::pin!(channels.next_end()), std::pin::pin!(slots.next_return()));
            ended.as_mut().enable();
            returned.as_mut().enable();
            let live: HashSet<u64> = channels.all().into_iter().map(|(_, it)| it.serial).collect();
            let has_ended = |it: &&OtherSlot| !live.contains(&it.holder()) && !slots.holds(it.holder());
            let first_ended = self.handed.lock().iter().find(has_ended).map(OtherSlot::holder);
            if let Some(holder) = first_ended {
                self.handed.lock().retain(|it| it.holder() != holder);
                return holder;
            }
            tokio::select! {
                () = ended => {}
                () = returned => {}
            }
        }
    }

    /// Waits until all connections with leases of the cluster are closed because their time is over. Cancel-safe.
    pub async fn shared_closed(&self) {
        self.state.slot_table.shared_closed().await;
    }

    /// Waits until the last viewer has left.
    pub async fn emptied(&self) {
        self.state.channel_table.emptied().await;
        info!("the last viewer of the process before the restart has left");
    }
}

/// The rings of the live channels.
struct Rings {
    channels: Arc<ChannelTable>,
    registry: Arc<Registry>,
    meter: Arc<NodeMeter>,
}

impl RingDirectory for Rings {
    fn find(&self, target: &str) -> Option<FoundRing> {
        let all = self.channels.all();
        let (_, live) = all.into_iter().find(|it| ring_name(it.0) == target)?;
        let ring = self.registry.ring_of(live.serial)?;
        Some(FoundRing { ring, epoch: live.serial, continues: None, guard: None })
    }

    fn meter(&self) -> Arc<NodeMeter> {
        self.meter.clone()
    }
}
