//! The faults of the all-day channel, with their expected effects: hours without faults, hours with manual switches,
//! hours in which one stream after another fails.

use std::time::Duration;

use media::testing::{Behaviour, Break};
use tokio::time::sleep;

use super::SECOND;
use super::environment::{DAY_CHANNEL, Environment, NIGHT_CHANNEL, healthy, too_slow};
use crate::channel::{ChannelStatus, SwitchOutcome, SwitchTo};
use crate::testing::channel;

/// Faults that may be temporary: the same stream is opened again.
const LOSSES: [Break; 3] = [Break::End, Break::Reset, Break::Garbage];

/// All faults.
const BREAKS: [Break; 6] =
    [Break::End, Break::Reset, Break::Silence, Break::Garbage, Break::Nulls, Break::UnknownPids];

const REFUSALS: [Behaviour; 8] = [
    Behaviour::Status(404),
    Behaviour::Html,
    Behaviour::Reset,
    Behaviour::NoAnswer,
    Behaviour::Garbage,
    Behaviour::Status(403),
    Behaviour::Close,
    Behaviour::Empty,
];

/// The faults so far, and therefore the expected events.
#[derive(Default)]
pub(super) struct Faults {
    pub(super) n_failovers: u64,
    pub(super) n_reconnects: u64,
    pub(super) n_switches: u64,
    /// Number of faults so far; each is of another kind.
    nth: usize,
    /// The streams that are faulty at present, and until which minute.
    refusing: Vec<(String, u32)>,
}

impl Faults {
    pub(super) fn n_seams(&self) -> u64 {
        self.n_failovers + self.n_reconnects + self.n_switches
    }

    /// Runs the fault of this minute; it ends before the next.
    pub(super) async fn run_minute(&mut self, environment: &Environment, minute: u32) {
        for (name, _) in self.refusing.extract_if(.., |it| it.1 <= minute) {
            environment.scenario.provider.set(&format!("/{name}"), healthy(&name));
        }
        let (hour, past) = (minute / 60, minute % 60);
        if past == 50 || past == 20 {
            self.interrupt_night_channel(environment, past == 20 && hour % 4 == 1, minute).await;
        }
        match (hour % 3, past) {
            (_, 0) => {}
            (0, 30) => self.interrupt_once(environment).await,
            (0, 55) if hour.is_multiple_of(6) => self.interrupt_three_times(environment).await,
            (1, past) if past.is_multiple_of(2) => self.switch(environment).await,
            (2, past) if past.is_multiple_of(5) => self.fail(environment, minute).await,
            _ => {}
        }
    }

    /// Interrupts the stream hours after the previous loss: the same stream is opened again.
    async fn interrupt_once(&mut self, environment: &Environment) {
        let before = status(environment).await;
        let after = self.interrupt(environment, &before, &LOSSES).await;
        self.n_reconnects += 1;
        assert_eq!(after.playing, before.playing, "a loss after hours recovers on the same stream");
    }

    /// Interrupts the stream three times in a row: two losses lead to a reconnect, the third to another stream.
    async fn interrupt_three_times(&mut self, environment: &Environment) {
        for n in 0..3 {
            let before = status(environment).await;
            let after = self.interrupt(environment, &before, &LOSSES).await;
            assert_eq!(after.playing == before.playing, n < 2, "loss {n} in a row");
            sleep(2 * SECOND).await;
        }
        self.n_reconnects += 2;
        self.n_failovers += 1;
    }

    /// Switches to the next stream, as an admin does.
    async fn switch(&mut self, environment: &Environment) {
        let switchboard = environment.system().switchboard();
        let outcome = switchboard.switch(channel(DAY_CHANNEL), SwitchTo::Next).await.expect("an answer");
        assert!(matches!(outcome, SwitchOutcome::Switched { .. }), "{outcome:?}");
        self.n_switches += 1;
    }

    /// Makes the stream that plays fail; it refuses connections for two minutes.
    async fn fail(&mut self, environment: &Environment, minute: u32) {
        let before = status(environment).await;
        let name = before.stream.clone().expect("something plays").name;
        let how = REFUSALS[self.nth % REFUSALS.len()].clone();
        environment.scenario.provider.set(&format!("/{name}"), how);
        let after = self.interrupt(environment, &before, &BREAKS).await;
        assert_ne!(after.playing, before.playing);
        self.n_failovers += 1;
        self.refusing.push((name, minute + 2));
    }

    /// Interrupts the night channel. It recovers in time; its viewer is checked, not the effect.
    async fn interrupt_night_channel(
        &mut self,
        environment: &Environment,
        returns_too_slow: bool,
        minute: u32,
    ) {
        let Some(stream) = environment.scenario.status(channel(NIGHT_CHANNEL)).await.and_then(|it| it.stream)
        else {
            return;
        };
        let path = format!("/{}", stream.name);
        if returns_too_slow {
            environment.scenario.provider.set(&path, too_slow(&stream.name));
            self.refusing.push((stream.name, minute + 20));
            environment.scenario.provider.break_now(&path, Break::End);
        } else {
            environment.scenario.provider.break_now(&path, self.next_of(&BREAKS));
        }
    }

    fn next_of(&mut self, ways: &[Break]) -> Break {
        self.nth += 1;
        ways[self.nth % ways.len()]
    }

    /// Interrupts the stream that plays, and waits until a stream plays again.
    async fn interrupt(
        &mut self,
        environment: &Environment,
        before: &ChannelStatus,
        ways: &[Break],
    ) -> ChannelStatus {
        let name = &before.stream.as_ref().expect("something plays").name;
        let how = self.next_of(ways);
        environment.scenario.provider.break_now(&format!("/{name}"), how);
        for _ in 0..100 {
            sleep(Duration::from_millis(250)).await;
            let now = status(environment).await;
            if now.n_losses > before.n_losses && now.state == "playing" {
                return now;
            }
        }
        panic!("{how:?} of {name} does not recover: {:?}", status(environment).await);
    }
}

async fn status(environment: &Environment) -> ChannelStatus {
    environment.scenario.status(channel(DAY_CHANNEL)).await.expect("somebody watches")
}
