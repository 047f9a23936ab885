//! One event on its way to one integration, or one run of an action of a plugin.
//!
//! ```text
//! waiting ─► attempt ─┬─ delivered ──────────────────────► removed
//!    ▲                ├─ may succeed later ─┬─ in time ──► waiting
//!    │                │                     └─ too late ─► dead letter
//!    │                ├─ crashed ───────────┬─ once ─────► waiting
//!    │                │                     └─ again ────► dead letter
//!    │                ├─ interrupted ─────────────────────► waiting
//!    └── replayed ◄── └─ cannot succeed ────────────────► dead letter
//! ```

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::{DeliveryId, IntegrationId};
use crate::plugin::RunCause;
use crate::secret::Secret;

/// Pauses before the first attempts after a failure, in seconds. Later ones wait [`LATER_PAUSE_S`].
const PAUSES_S: [i64; 6] = [5, 30, 120, 600, 1_800, 3_600];
/// Pause before each further attempt, in seconds.
const LATER_PAUSE_S: i64 = 7_200;
/// Pauses differ by at most this part, so that deliveries that failed together do not return together.
const SPREAD: f64 = 0.2;
/// Maximum size of the stored reason of a failure, in bytes.
pub const REASON_BYTES_MAX: usize = 512;

/// Runs that end with the process of their plugin are repeated this many times.
const CRASHES_REPEATED: u32 = 1;

/// Where a delivery goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Recipient {
    Integration(IntegrationId),
    /// The plugin with this id, one of whose actions runs.
    Plugin(u32),
}

impl Recipient {
    /// Returns the id of the integration, if it is one.
    pub fn integration(self) -> Option<IntegrationId> {
        match self {
            Self::Integration(id) => Some(id),
            Self::Plugin(_) => None,
        }
    }
}

/// The run of an action of a plugin for an event or at a time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ActionRun {
    /// Id of the action.
    pub action: String,
    /// The schedule whose time it was; `None` for an event.
    #[serde(default)]
    pub schedule: Option<String>,
}

impl ActionRun {
    /// Returns why the action runs.
    pub fn cause(&self) -> RunCause {
        if self.schedule.is_some() { RunCause::Schedule } else { RunCause::Event }
    }
}

/// An event that waits for an integration or a plugin, or that could not be delivered to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    pub id: DeliveryId,
    /// A member `integration` or `plugin`.
    #[serde(flatten)]
    pub to: Recipient,
    /// The same in every attempt, so that a target can leave out what it has already.
    pub event_id: Uuid,
    /// Name of the event; `schedule` for a time of a schedule.
    pub event: String,
    /// When the event happened, in milliseconds since 1970.
    pub created_at: i64,
    /// The payload as JSON; the parameters of a schedule.
    pub payload: String,
    /// A sentence about the event.
    pub summary: String,
    /// The channel of the event. Deliveries of a channel stay in order.
    #[serde(default)]
    pub channel: Option<Uuid>,
    /// Attempts so far.
    #[serde(default)]
    pub n_attempts: u32,
    /// When the next attempt is due, in milliseconds since 1970.
    pub due_at: i64,
    /// Why the last attempt failed.
    #[serde(default)]
    pub reason: Option<String>,
    /// Set in a dead letter: when it became one, in milliseconds since 1970.
    #[serde(default)]
    pub dead_at: Option<i64>,
    /// The action that runs; always set if it goes to a plugin.
    #[serde(default)]
    pub run: Option<ActionRun>,
    /// How often the process of the plugin ended during the run.
    #[serde(default)]
    pub n_crashes: u32,
    /// The id of its run, if another node of the cluster has passed it on: there its id was another one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passed_run: Option<Uuid>,
    /// Members of the payload that are addresses of streams, whole. Only for targets that are trusted with them; the payload
    /// has them without logins.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub addresses: BTreeMap<String, Secret>,
}

/// The end of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// The target has it, or there was nothing to send.
    Delivered,
    /// Another attempt may succeed. The target may name the pause, in seconds.
    Later { reason: String, pause_s: Option<u64> },
    /// No attempt will succeed.
    Never { reason: String },
    /// The target is gone and wants nothing any more.
    Gone { reason: String },
    /// The process of the plugin ended during the run.
    Crashed { reason: String },
    /// The plugin or the gateway was stopped during the run, which begins again with it.
    Interrupted { reason: String },
}

/// A delivery after an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterAttempt {
    /// It is delivered and can be removed.
    Removed,
    /// It waits for another attempt.
    Waits,
    /// It is a dead letter.
    Dead,
}

impl Delivery {
    /// Returns the id by which a plugin knows the run. It is the same in every attempt, and differs between the actions
    /// that run for one event.
    pub fn run_id(&self) -> Uuid {
        self.passed_run.unwrap_or_else(|| Uuid::from_u128(self.event_id.as_u128() ^ u128::from(self.id.0)))
    }

    /// Returns the order that it keeps with others when several are attempted at a time: that of its channel, of its
    /// schedule, or of the events without a channel.
    pub fn order(&self) -> Option<Uuid> {
        let Some(schedule) = self.run.as_ref().and_then(|it| it.schedule.as_ref()) else {
            return self.channel;
        };
        let mut hasher = DefaultHasher::new();
        schedule.hash(&mut hasher);
        Some(Uuid::from_u64_pair(0, hasher.finish()))
    }

    /// Takes the end of an attempt. `max_age_s` is how long attempts are made after the event, in seconds; `random` is
    /// between 0 and 1.
    pub fn after_attempt(&mut self, outcome: Outcome, now: i64, max_age_s: u32, random: f64) -> AfterAttempt {
        self.n_attempts = self.n_attempts.saturating_add(1);
        let (reason, pause_s) = match outcome {
            Outcome::Delivered => return AfterAttempt::Removed,
            Outcome::Never { reason } | Outcome::Gone { reason } => {
                self.die(&reason, now);
                return AfterAttempt::Dead;
            }
            Outcome::Crashed { reason } => {
                self.n_crashes = self.n_crashes.saturating_add(1);
                if self.n_crashes > CRASHES_REPEATED {
                    self.die(&reason, now);
                    return AfterAttempt::Dead;
                }
                (self.due_at, self.reason) = (now, Some(cut(&reason)));
                return AfterAttempt::Waits;
            }
            Outcome::Interrupted { reason } => {
                (self.due_at, self.reason) = (now, Some(cut(&reason)));
                return AfterAttempt::Waits;
            }
            Outcome::Later { reason, pause_s } => (reason, pause_s),
        };
        let pause_ms = match pause_s {
            Some(pause_s) => i64::try_from(pause_s).unwrap_or(i64::MAX).saturating_mul(1000),
            None => pause_ms(self.n_attempts, random),
        };
        let due_at = now.saturating_add(pause_ms);
        if due_at > self.created_at.saturating_add(i64::from(max_age_s) * 1000) {
            self.die(&reason, now);
            return AfterAttempt::Dead;
        }
        self.due_at = due_at;
        self.reason = Some(cut(&reason));
        AfterAttempt::Waits
    }

    /// Makes it a dead letter.
    pub fn die(&mut self, reason: &str, now: i64) {
        self.reason = Some(cut(reason));
        self.dead_at = Some(now);
    }

    /// Makes a dead letter wait again, as if its event had happened now.
    pub fn replay(&mut self, now: i64) {
        (self.dead_at, self.reason, self.n_attempts, self.n_crashes) = (None, None, 0, 0);
        (self.created_at, self.due_at) = (now, now);
    }
}

/// Returns the pause after this many attempts.
fn pause_ms(n_attempts: u32, random: f64) -> i64 {
    let n = usize::try_from(n_attempts.saturating_sub(1)).unwrap_or(usize::MAX);
    let pause_s = PAUSES_S.get(n).copied().unwrap_or(LATER_PAUSE_S);
    let factor = 1.0 + SPREAD * (2.0 * random.clamp(0.0, 1.0) - 1.0);
    #[expect(clippy::cast_possible_truncation, reason = "at most some hours in milliseconds")]
    let pause_ms = (pause_s as f64 * 1000.0 * factor) as i64;
    pause_ms
}

fn cut(reason: &str) -> String {
    reason[..reason.floor_char_boundary(REASON_BYTES_MAX)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY_S: u32 = 86_400;

    fn delivery() -> Delivery {
        Delivery {
            id: DeliveryId(1),
            to: Recipient::Integration(IntegrationId(1)),
            event_id: Uuid::nil(),
            event: "channel_start".into(),
            created_at: 0,
            payload: "{}".into(),
            summary: String::new(),
            channel: None,
            n_attempts: 0,
            due_at: 0,
            reason: None,
            dead_at: None,
            run: None,
            n_crashes: 0,
            passed_run: None,
            addresses: BTreeMap::new(),
        }
    }

    fn later(pause_s: Option<u64>) -> Outcome {
        Outcome::Later { reason: "the target is busy".into(), pause_s }
    }

    #[test]
    fn pauses_grow_until_the_delivery_is_too_old() {
        let (mut delivery, mut pauses) = (delivery(), Vec::new());
        while delivery.after_attempt(later(None), delivery.due_at, DAY_S, 0.5) == AfterAttempt::Waits {
            pauses.push(delivery.due_at);
        }
        let pauses: Vec<i64> =
            std::iter::once(pauses[0]).chain(pauses.windows(2).map(|it| it[1] - it[0])).collect();
        assert_eq!(pauses[..7], [5, 30, 120, 600, 1_800, 3_600, 7_200].map(|it| it * 1000));
        assert!(pauses.len() == 17 && delivery.dead_at.is_some(), "{pauses:?}");
        // Deliveries that failed together spread, by a fifth at most.
        assert_eq!((pause_ms(1, 0.0), pause_ms(1, 1.0), pause_ms(9, 0.0)), (4_000, 6_000, 5_760_000));
        delivery.replay(1_000_000);
        assert_eq!((delivery.due_at, delivery.n_attempts, delivery.dead_at), (1_000_000, 0, None));
    }

    #[test]
    fn the_target_names_the_pause_or_ends_the_attempts() {
        let mut waiting = delivery();
        assert_eq!(waiting.after_attempt(later(Some(60)), 500, DAY_S, 0.0), AfterAttempt::Waits);
        assert_eq!((waiting.due_at, waiting.n_attempts), (60_500, 1));
        assert_eq!(waiting.after_attempt(later(Some(u64::MAX)), 500, DAY_S, 0.0), AfterAttempt::Dead);
        for outcome in [
            Outcome::Never { reason: "é".repeat(1_000) },
            Outcome::Gone { reason: "the target is gone".into() },
        ] {
            let mut dead = delivery();
            assert_eq!(dead.after_attempt(outcome, 500, DAY_S, 0.0), AfterAttempt::Dead);
            assert!(dead.dead_at == Some(500) && dead.reason.is_some_and(|it| it.len() <= REASON_BYTES_MAX));
        }
        assert_eq!(delivery().after_attempt(Outcome::Delivered, 0, 0, 0.0), AfterAttempt::Removed);
    }

    #[test]
    fn a_crash_repeats_a_run_once_and_a_stop_as_often_as_needed() {
        let mut run = delivery();
        let crashed = || Outcome::Crashed { reason: "the plugin crashed".into() };
        let stopped = || Outcome::Interrupted { reason: "the plugin was stopped".into() };
        let id = run.run_id();
        for outcome in [stopped(), stopped(), crashed(), stopped()] {
            assert_eq!(run.after_attempt(outcome, 7, DAY_S, 0.0), AfterAttempt::Waits);
            assert_eq!((run.due_at, run.dead_at, run.run_id()), (7, None, id));
        }
        assert_eq!(run.after_attempt(crashed(), 8, DAY_S, 0.0), AfterAttempt::Dead);
        run.replay(9);
        assert_eq!(run.after_attempt(crashed(), 9, DAY_S, 0.0), AfterAttempt::Waits);
        assert_eq!(run.run_id(), id);
        let other = Delivery { id: DeliveryId(2), ..delivery() };
        assert_ne!(other.run_id(), id, "another action for the same event");
        let passed = Delivery { id: DeliveryId(9), passed_run: Some(id), ..delivery() };
        assert_eq!(passed.run_id(), id, "the same run on another node");
    }

    #[test]
    fn deliveries_of_earlier_versions_are_read() {
        let old = r#"{"id":3,"integration":7,"event_id":"00000000-0000-0000-0000-000000000001","event":"vod_stop",
            "created_at":5,"payload":"{}","summary":"","due_at":5}"#;
        let read: Delivery = serde_json::from_str(old).unwrap();
        assert_eq!((read.to, read.run.clone()), (Recipient::Integration(IntegrationId(7)), None));
        let run = ActionRun { action: "sync".into(), schedule: Some("nightly".into()) };
        let new = Delivery { to: Recipient::Plugin(4), run: Some(run), ..read };
        let text = serde_json::to_string(&new).unwrap();
        assert!(text.contains(r#""plugin":4"#), "{text}");
        assert_eq!(serde_json::from_str::<Delivery>(&text).unwrap(), new);
    }
}
