//! The durations that a playout needs.

use std::time::Duration;

use crate::settings::{self, Settings};

/// Durations and limits of a playout. Most are fixed; [`From`] takes those that an operator may set.
#[derive(Debug, Clone, PartialEq)]
pub struct PlayoutSettings {
    /// How long a channel looks for a source before it gives up.
    pub give_up_after: Duration,
    /// Slots answers within [`settings::LEASE_WAIT`]. If it does not by then, it never will.
    pub ask_timeout: Duration,
    /// The opener has its own deadlines; this one is for an opener that hangs. From `Open` to `Opened`.
    pub open_timeout: Duration,
    /// From `Opened` to `Playing`: a source may be collected and searched for a random-access point.
    pub follow_timeout: Duration,
    /// First and longest rest after a round without luck.
    pub rest_min: Duration,
    pub rest_max: Duration,
    /// The same for a channel with one stream.
    pub single_rest_min: Duration,
    pub single_rest_max: Duration,
    /// By which part a rest is longer or shorter at random, so that channels of a dead provider spread out.
    pub rest_jitter: f64,
    /// How long a failed candidate is tried last.
    pub candidate_memory: Duration,
    /// Immediate retries that a candidate starts with, and may save up.
    pub bucket_tokens: u32,
    /// Play that earns a candidate one of them.
    pub token_play: Duration,
    /// A source that played for this long played well: the incident is over.
    pub stable_play: Duration,
    /// Pauses before a provider that still counts a closed connection is asked again. No more tries than these.
    pub release_pauses: [Duration; 3],
    /// After this much play on another stream, try to return to an earlier one. `None` is never.
    pub return_to_preferred_after: Option<Duration>,
    /// Longest time until a manual switch is answered.
    pub switch_timeout: Duration,
}

impl Default for PlayoutSettings {
    fn default() -> Self {
        Self::from(&Settings::default())
    }
}

/// Our deadlines stand behind those of opener and pump, which know the better reason.
const MARGIN: Duration = Duration::from_secs(2);

impl PlayoutSettings {
    /// The same for a channel some of whose streams are read by programs, which need longer to begin.
    pub fn with_programs(self) -> Self {
        let open_timeout = self.open_timeout.max(settings::PROGRAM_START_TIMEOUT + MARGIN);
        Self { open_timeout, ..self }
    }
}

impl From<&Settings> for PlayoutSettings {
    fn from(settings: &Settings) -> Self {
        let opener = settings.connect_timeout.max(settings.first_packet_timeout);
        let pump = settings.random_access_wait + Duration::from_secs(1);
        Self {
            give_up_after: settings.give_up_after,
            ask_timeout: settings::LEASE_WAIT + MARGIN,
            open_timeout: opener + MARGIN,
            follow_timeout: pump + MARGIN,
            rest_min: Duration::from_secs(1),
            rest_max: Duration::from_secs(15),
            single_rest_min: Duration::from_millis(250),
            single_rest_max: Duration::from_secs(10),
            rest_jitter: 0.2,
            candidate_memory: settings::CANDIDATE_MEMORY,
            bucket_tokens: 2,
            token_play: Duration::from_secs(600),
            stable_play: Duration::from_secs(30),
            release_pauses: [500, 1000, 2000].map(Duration::from_millis),
            return_to_preferred_after: settings.return_to_preferred_after,
            switch_timeout: settings::MANUAL_SWITCH_TIMEOUT,
        }
    }
}
