//! Durations and limits of a playout.

use std::time::Duration;

use crate::settings::{self, Settings};

/// Durations and limits of a playout. Most are fixed; [`From`] takes those that an operator can configure.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayoutSettings {
    /// Time for which a viewer waits for a start. The last untried candidate gets what is left of it.
    pub start_timeout: Duration,
    /// Time for which a channel looks for a source before it gives up.
    pub give_up_after: Duration,
    /// Deadline for an answer of the slots actor, which normally answers within [`settings::LEASE_WAIT`].
    pub ask_timeout: Duration,
    /// Deadline from `Open` to `Opened`. The opener has its own deadlines; this one is for an opener that hangs.
    pub open_timeout: Duration,
    /// Deadline from `Opened` to `Playing`, while the pump collects packets and looks for a random-access point.
    pub follow_timeout: Duration,
    /// The same before anything has played.
    pub first_follow_timeout: Duration,
    /// Deadline from `Opened` to `Ready`, for a source that is read beside the one that plays.
    pub prepare_timeout: Duration,
    /// Shortest and longest backoff after a round in which every candidate failed.
    pub backoff_min: Duration,
    pub backoff_max: Duration,
    /// The same for a channel with one stream.
    pub single_backoff_min: Duration,
    pub single_backoff_max: Duration,
    /// Largest random deviation of a backoff, as a share of it. It spreads the channels of a dead provider.
    pub backoff_jitter: f64,
    /// Time for which a failed candidate is tried last.
    pub candidate_memory: Duration,
    /// Number of immediate retries that a candidate starts with, and maximum that it can save up.
    pub bucket_tokens: u32,
    /// Playing time that earns a candidate one immediate retry.
    pub token_play: Duration,
    /// Time from `Opened` after which the end of a response does not count as a failure. A shorter response cannot be played well, and
    /// asking again for each of them at once would flood the provider.
    pub healthy_play: Duration,
    /// Shortest time between two openings of a stream after it fell silent.
    pub silence_reopen_interval: Duration,
    /// Time for which no other source is opened beside a silent one, after one was opened there in vain.
    pub beside_in_vain_memory: Duration,
    /// Time for which a stream is known to lack a part, and shortest time between two changes from one stream for one part.
    pub lack_memory: Duration,
    /// Time for which a candidate is remembered whose responses ended close together.
    pub early_end_memory: Duration,
    /// Playing time after which the incident is over.
    pub stable_play: Duration,
    /// Pauses before requesting again from a provider that still counts a closed connection, and so the number of
    /// tries.
    pub release_pauses: [Duration; 3],
    /// Playing time on another stream after which a return to an earlier one is tried. `None` disables returning.
    pub return_to_preferred_after: Option<Duration>,
    /// Deadline for the answer to a manual switch.
    pub switch_timeout: Duration,
}

impl Default for PlayoutSettings {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}

/// Margin between the deadlines of opener and pump and those of the playout. Theirs come first, because they know the
/// cause.
pub(super) const MARGIN: Duration = Duration::from_secs(2);

impl PlayoutSettings {
    /// Returns the settings for a channel some of whose streams are read by programs, which take longer to start.
    pub fn with_programs(self) -> Self {
        let open_timeout = self.open_timeout.max(settings::PROGRAM_START_TIMEOUT + MARGIN);
        Self { open_timeout, ..self }
    }
}

impl From<&Settings> for PlayoutSettings {
    fn from(settings: &Settings) -> Self {
        let opener = settings.connect_timeout.max(settings.first_packet_timeout);
        let pump = settings.random_access_wait + Duration::from_secs(1);
        // Where another source has played, one without sound plays only with its picture.
        let later_pump = pump.max(settings::PICTURE_WAIT_MAX + Duration::from_secs(1));
        Self {
            start_timeout: settings.start_timeout,
            give_up_after: settings.give_up_after,
            ask_timeout: settings::LEASE_WAIT + MARGIN,
            open_timeout: opener + MARGIN,
            follow_timeout: later_pump + MARGIN,
            first_follow_timeout: pump + MARGIN,
            prepare_timeout: settings::PREPARE_TIMEOUT + MARGIN,
            backoff_min: Duration::from_secs(1),
            backoff_max: Duration::from_secs(15),
            single_backoff_min: Duration::from_millis(250),
            single_backoff_max: Duration::from_secs(10),
            backoff_jitter: 0.2,
            candidate_memory: settings::CANDIDATE_MEMORY,
            bucket_tokens: 2,
            token_play: Duration::from_secs(600),
            silence_reopen_interval: Duration::from_secs(15),
            beside_in_vain_memory: Duration::from_secs(600),
            lack_memory: Duration::from_secs(600),
            healthy_play: Duration::from_secs(2),
            early_end_memory: Duration::from_secs(600),
            stable_play: Duration::from_secs(30),
            release_pauses: [500, 1000, 2000].map(Duration::from_millis),
            return_to_preferred_after: settings.return_to_preferred_after,
            switch_timeout: settings::MANUAL_SWITCH_TIMEOUT,
        }
    }
}
