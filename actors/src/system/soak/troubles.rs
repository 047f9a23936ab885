//! What the channel goes through that is watched all day, and what must come of each: calm hours, hours in which an
//! admin switches, hours in which one stream after the other fails.

use std::time::Duration;

use media::testing::{Behaviour, Break};
use tokio::time::sleep;

use super::SECOND;
use super::house::{DAY_CHANNEL, House, NIGHT_CHANNEL, too_slow, well};
use crate::channel::{ChannelStatus, SwitchOutcome, SwitchTo};
use crate::testing::channel;

/// What may be over in a moment: the same stream is asked again.
const LOSSES: [Break; 3] = [Break::End, Break::Reset, Break::Garbage];

/// Every way to break.
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

/// What was caused, and so what must have been told.
#[derive(Default)]
pub(super) struct Troubles {
    pub(super) n_failovers: u64,
    pub(super) n_reconnects: u64,
    pub(super) n_switches: u64,
    /// Streams broken so far; each in another way.
    nth: usize,
    /// What does not play as it should at present, and until which minute.
    refusing: Vec<(String, u32)>,
}

impl Troubles {
    pub(super) fn n_seams(&self) -> u64 {
        self.n_failovers + self.n_reconnects + self.n_switches
    }

    /// What happens at this minute of the scenario; it is over before the next.
    pub(super) async fn of_minute(&mut self, house: &House, minute: u32) {
        for (name, _) in self.refusing.extract_if(.., |it| it.1 <= minute) {
            house.scenario.provider.set(&format!("/{name}"), well(&name));
        }
        let (hour, past) = (minute / 60, minute % 60);
        if past == 50 || past == 20 {
            self.the_night_channel_loses(house, past == 20 && hour % 4 == 1, minute).await;
        }
        match (hour % 3, past) {
            (_, 0) => {}
            (0, 30) => self.loses_one(house).await,
            (0, 55) if hour.is_multiple_of(6) => self.loses_three_in_a_row(house).await,
            (1, past) if past.is_multiple_of(2) => self.is_switched(house).await,
            (2, past) if past.is_multiple_of(5) => self.fails(house, minute).await,
            _ => {}
        }
    }

    /// Hours after the last: the same stream is opened again.
    async fn loses_one(&mut self, house: &House) {
        let before = status(house).await;
        let after = self.breaks(house, &before, &LOSSES).await;
        self.n_reconnects += 1;
        assert_eq!(after.playing, before.playing, "a loss after hours is mended on the same stream");
    }

    /// Two are mended, the third leads to another stream.
    async fn loses_three_in_a_row(&mut self, house: &House) {
        for n in 0..3 {
            let before = status(house).await;
            let after = self.breaks(house, &before, &LOSSES).await;
            assert_eq!(after.playing == before.playing, n < 2, "loss {n} in a row");
            sleep(2 * SECOND).await;
        }
        self.n_reconnects += 2;
        self.n_failovers += 1;
    }

    async fn is_switched(&mut self, house: &House) {
        let switchboard = house.system().switchboard();
        let outcome = switchboard.switch(channel(DAY_CHANNEL), SwitchTo::Next).await.expect("an answer");
        assert!(matches!(outcome, SwitchOutcome::Switched { .. }), "{outcome:?}");
        self.n_switches += 1;
    }

    /// The stream that plays breaks, and refuses for two minutes whoever asks.
    async fn fails(&mut self, house: &House, minute: u32) {
        let before = status(house).await;
        let name = before.stream.clone().expect("something plays").name;
        let how = REFUSALS[self.nth % REFUSALS.len()].clone();
        house.scenario.provider.set(&format!("/{name}"), how);
        let after = self.breaks(house, &before, &BREAKS).await;
        assert_ne!(after.playing, before.playing);
        self.n_failovers += 1;
        self.refusing.push((name, minute + 2));
    }

    /// Whatever comes of it there is mended in time; the one who watches is asked, not this.
    async fn the_night_channel_loses(&mut self, house: &House, comes_back_slow: bool, minute: u32) {
        let Some(stream) = house.scenario.status(channel(NIGHT_CHANNEL)).await.and_then(|it| it.stream)
        else {
            return;
        };
        let path = format!("/{}", stream.name);
        if comes_back_slow {
            house.scenario.provider.set(&path, too_slow(&stream.name));
            self.refusing.push((stream.name, minute + 20));
            house.scenario.provider.break_now(&path, Break::End);
        } else {
            house.scenario.provider.break_now(&path, self.next_of(&BREAKS));
        }
    }

    fn next_of(&mut self, ways: &[Break]) -> Break {
        self.nth += 1;
        ways[self.nth % ways.len()]
    }

    /// Breaks what plays, and waits until something does again.
    async fn breaks(&mut self, house: &House, before: &ChannelStatus, ways: &[Break]) -> ChannelStatus {
        let name = &before.stream.as_ref().expect("something plays").name;
        let how = self.next_of(ways);
        house.scenario.provider.break_now(&format!("/{name}"), how);
        for _ in 0..100 {
            sleep(Duration::from_millis(250)).await;
            let now = status(house).await;
            if now.n_losses > before.n_losses && now.state == "playing" {
                return now;
            }
        }
        panic!("{how:?} of {name} is not mended: {:?}", status(house).await);
    }
}

async fn status(house: &House) -> ChannelStatus {
    house.scenario.status(channel(DAY_CHANNEL)).await.expect("somebody watches")
}
