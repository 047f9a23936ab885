//! What goes wrong: sources fail in every way the provider knows, programs are killed, and actors end.

use std::time::Duration;

use actors::{SystemActor, Target};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::house::{House, LOGINS, STREAMS, path};
use crate::support::random::Random;
use crate::support::signal::Picture;
use crate::support::upstream::{Answer, Cut, Mood};

/// How many give trouble, each to streams of its own: who takes one trouble away takes all of that stream away.
pub const SABOTEURS: u64 = 3;

/// Gives trouble to one of its streams after the other, preferably to one that is watched, and takes it away again. The
/// first may pull the plug of a whole provider.
pub async fn saboteur(house: &House, number: u64, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let login = random.pick(&LOGINS).name;
        let provider = house.provider(login);
        let own: Vec<_> = (0..STREAMS).filter(|it| it % SABOTEURS == number).collect();
        let watched = own.iter().find(|it| provider.open_on(&path(login, **it)) > 0);
        let stream = watched.copied().unwrap_or_else(|| *random.pick(&own));
        let name = path(login, stream);
        let here = provider.path(&name);
        let picture = Picture::new(&format!("{login}-{stream}"));
        match random.below(20) {
            0 => drop(here.cut(Cut::Reset)),
            1 => drop(here.cut(Cut::End)),
            2 => drop(here.cut(Cut::Stall)),
            3 => drop(here.is_now(Mood::Stalled)),
            4 => drop(here.is_now(Mood::Garbage)),
            5 => drop(here.is_now(Mood::OnlyNulls)),
            6 => drop(here.is_now(Mood::Unannounced)),
            7 => drop(here.is_now(Mood::Trickle(0.005))),
            8 => drop(here.is_now(Mood::Trickle(0.3))),
            9 if login == "rough" => drop(here.is_now(Mood::Torn)),
            9 | 10 => drop(here.answers(Answer::status(404)).cut(Cut::Reset)),
            11 => drop(here.answers(Answer::status(*random.pick(&[401, 403, 429, 500, 503]))).cut(Cut::End)),
            12 => drop(here.answers(Answer::html()).cut(Cut::End)),
            13 => drop(here.answers(Answer::mute()).cut(Cut::Reset)),
            14 => drop(here.answers(Answer::silent_body()).cut(Cut::Reset)),
            15 => drop(here.answers(Answer::empty()).cut(Cut::Stall)),
            16 => drop(here.answers(Answer::redirect(name.clone())).cut(Cut::Reset)),
            17 => drop(
                here.answers(Answer::play(picture).until(1_000 + random.below(90_000), Cut::End))
                    .cut(Cut::End),
            ),
            18 => drop(here.answers(Answer::text("video/mp2t", "#EXTM3U\n".repeat(300))).cut(Cut::Reset)),
            _ if number > 0 => drop(here.cut(Cut::End)),
            _ => {
                provider.unplug().await;
                random.pause(400).await;
                provider.plug_in();
            }
        }
        random.pause(900).await;
        // All troubles pass, but a connection that has lost packets does not go on as if nothing had been: a
        // provider's own gaps are passed on as they are, and would be complaints.
        let good = house.programme(login, stream, &mut random);
        provider.path(&name).cut(Cut::Reset).is_now(Mood::Healthy).answers(good);
    }
}

/// Kills and stops programs that read streams.
pub async fn program_killer(house: &House, mut random: Random, until: Instant) {
    while Instant::now() < until {
        sleep(random.millis(300, 2_000)).await;
        let programs = super::process::with_word(&house.word);
        if programs.is_empty() {
            continue;
        }
        let signal = *random.pick(&[Signal::KILL, Signal::KILL, Signal::TERM, Signal::STOP]);
        if let Some(pid) = Pid::from_raw(*random.pick(&programs)) {
            // It may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Ends actors, as defects in them would.
pub async fn reaper(house: &House, mut random: Random, until: Instant) {
    // The parent of all live channels takes them all along, so it is rare.
    let often = [
        SystemActor::Slots,
        SystemActor::Bandwidth,
        SystemActor::Switchboard,
        SystemActor::Importer,
        SystemActor::Events,
    ];
    while Instant::now() < until {
        sleep(random.millis(200, 2_000)).await;
        let system = house.gateway.gateway.system();
        match random.below(16) {
            0 => system.kill(SystemActor::Channels),
            1..=5 => system.kill_channel(Target::Channel(house.any(&mut random).uuid)),
            _ => system.kill(*random.pick(&often)),
        }
        house.ledger.note(|it| it.kills += 1);
        // Nobody waits for it to come back.
        if random.once_in(4) {
            sleep(Duration::from_millis(5)).await;
            system.kill(*random.pick(&often));
        }
    }
}
