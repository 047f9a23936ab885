//! Moves transport stream packets from one upstream to many viewers.
//!
//! A *pump* per live channel reads a *source*, passes its packets through the *splice* and writes *chunks* into
//! a *ring*. Every viewer reads the ring through its own *tail*. This crate knows no channels, users or
//! accounts, it spawns no tasks on its own, and no packet waits for a disk or a mailbox.
//!
//! Reading order: [`ts`] (packets), [`chunk`] and [`chunker`] (runs of packets), [`ring`] and [`join_point`] (reading),
//! [`source`], [`splice`] and [`pump`] (writing), [`rendition`] (other streams from a ring),
//! [`segment`] (segments for HLS), [`radio`] (audio without a container). [`sample`] measures a source that nobody watches.
//! The HTTP crate uses only the items that are re-exported here.

mod blocking;
pub mod certificate;
pub mod chunk;
pub mod chunker;
pub mod clip;
pub mod closer;
pub mod dial;
pub mod error;
pub mod groups;
pub mod hls;
pub mod join_point;
pub mod launcher;
pub mod meter;
pub mod node;
mod permit;
pub mod pump;
pub mod radio;
pub mod rendition;
pub mod ring;
pub mod rtp;
pub mod sample;
pub mod segment;
pub mod source;
pub mod splice;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod ts;
pub mod udp;

pub use crate::blocking::{Blocking, BlockingError, spawn_blocking};
pub use crate::clip::{Clip, ClipError, ClipPlayer};
pub use crate::dial::trust::CertificateTrust;
pub use crate::dial::{Dial, DialSettings, TcpDial};
pub use crate::launcher::{
    Confinement, Guard, Launcher, LauncherSettings, ProgramLimits, ProgramUser, Strictness, TellEnd,
    can_restrict_files, can_restrict_ports, can_restrict_signals, run_mode,
};
pub use crate::meter::{Connection, ConnectionMeter, InputCounts, TailMeter};
pub use crate::node::{RING_PATH, RingDirectory, RingProgress, RingReply, answer_ring, serve_rings};
pub use crate::permit::Permit;
pub use crate::ring::{EndReason, PIECES_MAX, Pieces, RingSettings, Tail};
pub use crate::segment::{
    Fragment, FragmentEnd, FragmentReader, LeftOutTrack, MediaPlaylist, PlaylistRequest, SegmentBody,
    SegmentContainer, SegmentDescription, SegmentName, SegmentNames, SegmentSettings, SegmentTrack,
    SegmentWindow, Still, StillCache, StillError, WindowError,
};
pub use crate::source::{check_udp_address, find_program};
#[cfg(any(test, feature = "testing"))]
pub use crate::testing::MemoryDial;
pub use crate::ts::clock::{PCR_HZ, pcr_step};
pub use crate::ts::packet::{PACKET, Packet, null_packet};
