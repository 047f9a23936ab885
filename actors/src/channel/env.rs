//! The environment that all live channels share.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use domain::settings::{PROGRAM_START_TIMEOUT, Settings};
use media::hls::VariantLimits;
use media::ring::Budget;
use media::source::{UdpSettings, Upstream};
use tokio::runtime::Handle;

use super::shared::SharedChannels;
use crate::events::Events;
use crate::guide::StreamGuides;
use crate::health::HealthTable;
use crate::live_settings::LiveSettings;
use crate::plans::Plans;
use crate::predecessor::Predecessor;
use crate::registry::Registry;
use crate::slots::LeaseTable;
use crate::timeline::Timelines;
use crate::transcoders::Transcoders;

/// The values and handles that every live channel uses.
pub(crate) struct LiveEnv {
    /// Can change while channels play; a channel reads a setting when it needs it.
    pub(crate) settings: LiveSettings,
    pub(crate) plans: Arc<dyn Plans>,
    /// The runtime of pumps and openers.
    pub(crate) packets: Handle,
    pub(crate) upstream: Upstream,
    pub(crate) budget: Budget,
    pub(crate) slots: Arc<dyn LeaseTable>,
    pub(crate) events: Events,
    pub(crate) registry: Arc<Registry>,
    pub(crate) next_client: AtomicU64,
    pub(crate) timelines: Arc<Timelines>,
    pub(crate) transcoders: Transcoders,
    pub(crate) health: HealthTable,
    pub(crate) stream_guides: StreamGuides,
    /// The process before this one.
    pub(crate) predecessor: Predecessor,
    /// Set once another process has the store: plans cannot be read.
    pub(crate) is_draining: AtomicBool,
    /// Set once, before the first live channel, if this node is in a cluster.
    pub(crate) shared_channels: OnceLock<Arc<SharedChannels>>,
}

impl LiveEnv {
    /// Returns the current settings.
    pub(crate) fn settings(&self) -> Arc<Settings> {
        self.settings.load()
    }

    /// Keeps the plans as they are from now on.
    pub(crate) fn begin_draining(&self) {
        self.is_draining.store(true, Ordering::Relaxed);
    }

    /// Returns whether plans stay as they are.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    /// Returns the upstream configuration with the current time-outs.
    pub(crate) fn upstream(&self) -> Upstream {
        let settings = self.settings();
        let mut upstream = self.upstream.clone();
        upstream.settings.connect_timeout = settings.connect_timeout;
        upstream.settings.first_packet_timeout = settings.first_packet_timeout;
        upstream.settings.program_start_timeout = PROGRAM_START_TIMEOUT.max(settings.first_packet_timeout);
        upstream.settings.udp = UdpSettings {
            interface: settings.multicast_interface.as_deref().and_then(|it| it.parse().ok()),
            receive_buffer_bytes: settings.udp_receive_buffer_bytes,
        };
        upstream.settings.variant_limits = VariantLimits {
            height_max: settings.hls_height_max,
            bits_per_second_max: settings.hls_bits_per_second_max,
        };
        upstream
    }

    /// Returns a client number that was never used before.
    pub(super) fn next_client_id(&self) -> u64 {
        self.next_client.fetch_add(1, Ordering::Relaxed)
    }
}
