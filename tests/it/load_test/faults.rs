//! Injected faults: sources fail in every way that the provider can simulate, programs are killed, and actors fail.

use std::time::Duration;

use actors::{SystemActor, Target};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::{Instant, sleep};

use super::fixture::{LOGINS, LoadTestFixture, STREAMS, path};
use crate::support::random::Random;
use crate::support::signal::Picture;
use crate::support::upstream::{Behavior, Cut, MockResponse};

/// Number of fault injectors. Each has its own streams, so that none removes the fault of another.
pub const FAULT_INJECTORS: u64 = 3;

/// Injects faults into its streams, preferably into one that is watched, and removes them again. The first injector may
/// also disconnect a whole provider.
pub async fn fault_injector(fixture: &LoadTestFixture, number: u64, mut random: Random, until: Instant) {
    while Instant::now() < until {
        let login = random.pick(&LOGINS).name;
        let provider = fixture.provider(login);
        let own: Vec<_> = (0..STREAMS).filter(|it| it % FAULT_INJECTORS == number).collect();
        let watched = own.iter().find(|it| provider.open_on(&path(login, **it)) > 0);
        let stream = watched.copied().unwrap_or_else(|| *random.pick(&own));
        let name = path(login, stream);
        let here = provider.path(&name);
        let picture = Picture::new(&format!("{login}-{stream}"));
        match random.below(20) {
            0 => drop(here.cut(Cut::Reset)),
            1 => drop(here.cut(Cut::End)),
            2 => drop(here.cut(Cut::Stall)),
            3 => drop(here.behaves(Behavior::Stalled)),
            4 => drop(here.behaves(Behavior::Garbage)),
            5 => drop(here.behaves(Behavior::OnlyNulls)),
            6 => drop(here.behaves(Behavior::Unannounced)),
            7 => drop(here.behaves(Behavior::Trickle(0.005))),
            8 => drop(here.behaves(Behavior::Trickle(0.3))),
            9 if login == "rough" => drop(here.behaves(Behavior::Torn)),
            9 | 10 => drop(here.answers(MockResponse::status(404)).cut(Cut::Reset)),
            11 => drop(
                here.answers(MockResponse::status(*random.pick(&[401, 403, 429, 500, 503]))).cut(Cut::End),
            ),
            12 => drop(here.answers(MockResponse::html()).cut(Cut::End)),
            13 => drop(here.answers(MockResponse::mute()).cut(Cut::Reset)),
            14 => drop(here.answers(MockResponse::silent_body()).cut(Cut::Reset)),
            15 => drop(here.answers(MockResponse::empty()).cut(Cut::Stall)),
            16 => drop(here.answers(MockResponse::redirect(name.clone())).cut(Cut::Reset)),
            17 => drop(
                here.answers(MockResponse::play(picture).until(1_000 + random.below(90_000), Cut::End))
                    .cut(Cut::End),
            ),
            18 => drop(here.answers(playlist_as_video()).cut(Cut::Reset)),
            _ if number > 0 => drop(here.cut(Cut::End)),
            _ => {
                provider.unplug().await;
                random.pause(400).await;
                provider.plug_in();
            }
        }
        random.pause(900).await;
        // After a fault the connection is reset. If it continued, packets lost by the provider would be passed on as
        // they are, and the stream checker would report them.
        let good = fixture.programme(login, stream, &mut random);
        provider.path(&name).cut(Cut::Reset).behaves(Behavior::Healthy).answers(good);
    }
}

/// Sends signals to programs that read streams.
pub async fn program_killer(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    while Instant::now() < until {
        sleep(random.millis(300, 2_000)).await;
        let programs = super::process::with_marker(&fixture.marker);
        if programs.is_empty() {
            continue;
        }
        let signal = *random.pick(&[Signal::KILL, Signal::KILL, Signal::TERM, Signal::STOP]);
        if let Some(pid) = Pid::from_raw(*random.pick(&programs)) {
            // The program may have ended by itself.
            let _ = kill_process(pid, signal);
        }
    }
}

/// Makes actors fail, as defects in them would.
pub async fn actor_killer(fixture: &LoadTestFixture, mut random: Random, until: Instant) {
    // A failure of the parent ends all live channels, so it is rare.
    let often = [
        SystemActor::Slots,
        SystemActor::Bandwidth,
        SystemActor::Switchboard,
        SystemActor::Importer,
        SystemActor::Guides,
        SystemActor::Events,
    ];
    while Instant::now() < until {
        sleep(random.millis(200, 2_000)).await;
        let system = fixture.gateway.gateway.system();
        match random.below(16) {
            0 => system.kill(SystemActor::Channels),
            1..=5 => system.kill_channel(Target::Channel(fixture.any(&mut random).uuid)),
            _ => system.kill(*random.pick(&often)),
        }
        fixture.audit.note(|it| it.kills += 1);
        // Do not wait for the restart.
        if random.once_in(4) {
            sleep(Duration::from_millis(5)).await;
            system.kill(*random.pick(&often));
        }
    }
}

/// Returns a playlist with the content type of a transport stream.
fn playlist_as_video() -> MockResponse {
    MockResponse::text("video/mp2t", "#EXTM3U\n".repeat(300))
}
