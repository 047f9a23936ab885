//! The time limits of a pump.

use std::time::Duration;

/// The time limits of a pump.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PumpSettings {
    /// A source is considered lost after this long without a payload packet; a source that sends in bursts of some
    /// seconds, when its next burst is two seconds late.
    pub stall_timeout: Duration,
    /// A source that plays is reported as silent after this long without a payload packet, or later if it usually pauses
    /// for longer.
    pub silence_suspected_after: Duration,
    /// The picture of a source that otherwise goes on is missing after this much of its programme without an access unit,
    /// or three times the longest distance of them; zero: its picture is not watched.
    pub picture_timeout: Duration,
    /// The same for all of its sound.
    pub sound_timeout: Duration,
    /// A source is considered lost after this long without packet boundaries.
    pub sync_lost_timeout: Duration,
    /// Interval between chunks of filler in a gap.
    pub filler_interval: Duration,
    /// Time without a chunk after which a gap is filled that begins while the ring mirrors that of another process: until
    /// then another process may continue it, and filler of this one would take the numbers of its chunks.
    pub mirror_filler_delay: Duration,
    /// A gap is filled for at most this long.
    pub give_up_after: Duration,
    /// Longest wait for a random-access point of a new source.
    pub random_access_wait: Duration,
    /// The opening burst of a new source that is a recording, or has no clock, is collected for at most this long.
    pub burst_max: Duration,
    /// A source that replaces another may repeat this much of the programme to begin at a random-access point.
    pub start_lead: Duration,
    /// The programme clock is compared with the wall clock over this time.
    pub buffering_timeout: Duration,
    /// Maximum lead of the programme of a program over the wall clock. It is not zero, because live sources start with
    /// a burst of past data that lets players start at once; the ring has to hold it.
    pub program_lead_max: Duration,
    /// Maximum lead of another source. One that gets further ahead is not live, and is read at the rate of its
    /// programme. Of a recording, no more is read ahead than half a ring.
    pub lead_max: Duration,
}

impl Default for PumpSettings {
    fn default() -> Self {
        Self {
            stall_timeout: Duration::from_secs(5),
            silence_suspected_after: Duration::from_millis(1_500),
            picture_timeout: Duration::ZERO,
            sound_timeout: Duration::ZERO,
            sync_lost_timeout: Duration::from_secs(1),
            filler_interval: Duration::from_millis(500),
            mirror_filler_delay: Duration::from_secs(3),
            give_up_after: Duration::from_secs(60),
            random_access_wait: Duration::from_secs(1),
            burst_max: Duration::from_millis(300),
            start_lead: Duration::from_secs(2),
            buffering_timeout: Duration::from_secs(15),
            program_lead_max: Duration::from_secs(5),
            lead_max: Duration::from_secs(25),
        }
    }
}
