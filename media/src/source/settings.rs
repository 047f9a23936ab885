//! Settings of sources.

use std::time::Duration;

use crate::hls::VariantLimits;
use crate::udp::Interface;

/// The time limits for opening an upstream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceSettings {
    /// Time limit for a connection, including name resolution and TLS; starts again for each redirect.
    pub connect_timeout: Duration,
    /// Time limit from the first connection attempt to the first payload packet, including redirects.
    pub first_packet_timeout: Duration,
    /// The same limit for a program and for a playlist of segments. A program has to start, connect and analyse its input;
    /// a playlist needs several requests.
    pub program_start_timeout: Duration,
    /// Maximum number of redirects that are followed.
    pub redirects_max: usize,
    /// How datagrams are received.
    pub udp: UdpSettings,
    /// The variants of an HLS stream that are chosen.
    pub variant_limits: VariantLimits,
}

/// Settings of sources that receive datagrams.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UdpSettings {
    /// The interface for groups whose address names none; `None` leaves the choice to the system.
    pub interface: Option<Interface>,
    /// Size of the receive buffer that is asked for. The system may limit it.
    pub receive_buffer_bytes: usize,
}

impl Default for UdpSettings {
    fn default() -> Self {
        Self { interface: None, receive_buffer_bytes: 4 << 20 }
    }
}

impl Default for SourceSettings {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(3),
            first_packet_timeout: Duration::from_secs(4),
            program_start_timeout: Duration::from_secs(10),
            redirects_max: 5,
            udp: UdpSettings::default(),
            variant_limits: VariantLimits::default(),
        }
    }
}

impl SourceSettings {
    /// Extends the limits so that the first payload packet may take this long. Longer limits stay as they are.
    ///
    /// A connection gets the same extension as the first packet, so that a provider out of reach is still reported as
    /// such.
    pub fn extend_to(&mut self, time: Duration) {
        let extension = time.saturating_sub(self.first_packet_timeout);
        self.connect_timeout += extension;
        self.first_packet_timeout += extension;
        self.program_start_timeout = self.program_start_timeout.max(time);
    }
}
