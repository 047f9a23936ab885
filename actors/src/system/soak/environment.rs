//! The environment: channels, accounts with limits, sources with clocks of their own, and settings.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshSchedule};
use domain::ids::{AccountId, ProfileId};
use domain::settings::{AtLimit, Settings};
use media::testing::{Behaviour, Play, TsSource};
use media::ts::clock::{STAMP_HZ, STAMP_MODULUS};
use parking_lot::Mutex;
use tokio::time::{Instant, sleep};

use super::number;
use crate::importer::{ImportError, ImportSummary, Imports};
use crate::system::System;
use crate::testing::{Scenario, Stream, channel, limited, models, settings, stream, write};

/// The channel that is watched all day.
pub(super) const DAY_CHANNEL: u32 = 1;
/// The channel that is watched for longer than eight hours at night.
pub(super) const NIGHT_CHANNEL: u32 = 2;
/// Channels for fast changes; two of them share the only slot of an account.
pub(super) const ZAPPED: RangeInclusive<u32> = 3..=5;
/// All channels.
pub(super) const CHANNELS: RangeInclusive<u32> = 1..=5;

/// Start of paused time, in milliseconds since 1970.
const START: i64 = 1_900_000_000_000;
/// Schedules: one account every hour, one at half past every hour, and one twice a day.
const REFRESHED: [(u32, u32, &str); 3] = [(50, 1, ""), (51, 0, "30 * * * *"), (52, 12, "")];

/// The system and its environment.
pub(super) struct Environment {
    pub(super) scenario: Scenario,
    began: Instant,
    refreshes: Arc<Mutex<Vec<AccountId>>>,
}

/// Returns the stream with this name. Each has its own PIDs and clock, and most clocks wrap within the day.
fn source(name: &str) -> TsSource {
    let frame_rate = number("SOAK_FRAME_RATE", 1);
    // By default the streams are as thin as the engine allows: four seconds of silence are a stall.
    let frame_seconds = if frame_rate == 1 { 2 } else { 1 };
    let nth = u16::from(name.as_bytes()[0] - b'a');
    let wraps_after_hours = 3 + 4 * u64::from(nth);
    TsSource {
        bitrate: 2_000 * u64::from(frame_rate),
        frame_rate,
        frame_seconds,
        gop: u64::from(frame_rate),
        video: Some((0x100 + 0x10 * nth, if nth == 2 { 0x24 } else { 0x1B })),
        audio: Some((0x101 + 0x10 * nth, 0x0F)),
        // A minute of it has passed when the scenario begins.
        start: STAMP_MODULUS - STAMP_HZ * (60 + 3600 * wraps_after_hours % (26 * 3600)),
        clock_error_ppm: [0, 30, -30, 50, -50, 0, 10, -10, 0][usize::from(nth)],
        ..TsSource::new(name)
    }
}

/// The sources send a picture every few seconds, which is not silence.
fn base_settings() -> Settings {
    Settings { silence_suspected_after: Duration::from_secs(60), ..settings() }
}

fn playing(name: &str) -> Play {
    let nth = usize::from(name.as_bytes()[0] - b'a');
    let late_max = Duration::from_millis([0, 250, 400, 0, 300, 0, 100, 0, 0][nth]);
    Play { is_punctual: true, late_max, ..Play::new(source(name)) }
}

/// A healthy source; some are slightly late now and then, like real networks.
pub(super) fn healthy(name: &str) -> Behaviour {
    Behaviour::Play(playing(name))
}

/// A source that is slower than real time.
pub(super) fn too_slow(name: &str) -> Behaviour {
    Behaviour::Play(Play { speed: 0.7, ..playing(name) })
}

/// The streams of the night channel in the order of this hour; one of them is added and removed.
fn night_streams(hour: u32) -> Vec<Stream> {
    let (first, second, third) = (limited(4, "d", 1, 2), limited(5, "e", 5, 1), stream(7, "g"));
    match hour % 3 {
        0 => vec![first, second],
        1 => vec![second, first],
        _ => vec![third, first, second],
    }
}

impl Environment {
    pub(super) async fn build() -> Arc<Self> {
        let slow_release = Stream { release_delay: Duration::from_secs(2), ..limited(9, "i", 9, 1) };
        let scenario = Scenario::new(
            base_settings(),
            [
                &[limited(1, "a", 1, 2), limited(2, "b", 2, 1), stream(3, "c")],
                &night_streams(0),
                &[limited(6, "f", 6, 1), stream(7, "g")],
                &[limited(8, "h", 6, 1)],
                &[slow_release],
            ],
        )
        .await;
        for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
            scenario.provider.set(&format!("/{name}"), healthy(name));
        }
        let refreshes = Arc::new(Mutex::new(Vec::new()));
        scenario.system.set_imports(imports(refreshes.clone()));
        // Everything has started, and the first refreshes are over.
        sleep(Duration::from_secs(600)).await;
        Arc::new(Self { scenario, began: Instant::now(), refreshes })
    }

    pub(super) fn system(&self) -> &System {
        &self.scenario.system
    }

    /// Returns the time since the start.
    pub(super) fn time(&self) -> Duration {
        self.began.elapsed()
    }

    /// Changes settings or records, every hour in another way.
    pub(super) async fn run_minute(&self, minute: u32) {
        if !minute.is_multiple_of(60) {
            return;
        }
        let hour = minute as usize / 60;
        let seconds = |choices: [u64; 4]| Duration::from_secs(choices[hour % 4]);
        let settings = Settings {
            channel_shutdown_delay: seconds([5, 0, 30, 2]),
            new_client_behind_seconds: seconds([2, 0, 5, 1]),
            stall_timeout: seconds([5, 4, 6, 5]),
            at_limit: if hour % 8 == 7 { AtLimit::Refuse } else { AtLimit::ReplaceOwn },
            ..base_settings()
        };
        self.system().configure(settings).expect("settings that do not contradict each other");
        self.scenario.replan(NIGHT_CHANNEL, &night_streams(minute / 60)).await;
    }

    /// Checks that every lease is a socket that the provider sees.
    pub(super) async fn check_leases(&self) {
        for _ in 0..60 {
            let counts = self.system().counts();
            let seen = self.scenario.provider.n_open();
            if counts.leases == seen && counts.sockets_open == seen && counts.leases_closing == 0 {
                return;
            }
            sleep(Duration::from_millis(100)).await;
        }
        panic!("{:?}, and the provider sees {}", self.system().counts(), self.scenario.provider.n_open());
    }

    /// Checks that no account has more leases than slots, and that accounts without a limit have at most one per
    /// channel.
    pub(super) fn check_limits(&self) {
        let leases = self.system().leases();
        for lease in &leases {
            let n = leases.iter().filter(|it| it.profile == lease.profile).count();
            // Two channels have the unlimited stream.
            assert!(n <= if [1, 7].contains(&lease.profile.0) { 2 } else { 1 }, "{leases:?}");
        }
    }

    pub(super) fn n_accounts(&self) -> usize {
        9
    }

    /// Returns the number of runs in the timelines.
    pub(super) fn n_runs(&self) -> usize {
        CHANNELS.map(|it| self.system().switchboard().timeline(channel(it).uuid()).len()).sum()
    }

    /// Checks that every playlist was refreshed according to its schedule. Hours count from the end of a refresh, which
    /// takes a minute and a half.
    pub(super) fn check_schedules(&self, hours: u32) {
        let refreshes = self.refreshes.lock();
        for (id, interval_hours, _) in REFRESHED {
            let n = refreshes.iter().filter(|it| it.0 == id).count() as u32;
            let most = hours / interval_hours.max(1) + 1;
            let least = match interval_hours {
                0 => hours,
                _ => hours * 3600 / (interval_hours * 3600 + 120),
            };
            assert!((least..=most).contains(&n), "account {id}: {n} refreshes in {hours} hours");
        }
    }
}

/// Imports that take a minute and a half; some fail and one panics.
fn imports(refreshes: Arc<Mutex<Vec<AccountId>>>) -> Imports {
    let models = models(&[]);
    for (id, interval_hours, cron) in REFRESHED {
        let profile = AccountProfile::default_of(ProfileId(id), "default", 1);
        let list = PlaylistLocation::File("list.m3u".to_owned());
        let schedule = RefreshSchedule { interval_hours, cron: cron.to_owned() };
        let account = Account {
            schedule,
            ..Account::new(AccountId(id), format!("refreshed {id}"), list, profile, START)
        };
        write(&models, move |write| write.put(&account));
    }
    let began = Instant::now();
    let now = Arc::new(move || START + i64::try_from(began.elapsed().as_millis()).expect("not that long"));
    let work: Arc<crate::importer::Work> = Arc::new(move |account, _, _| {
        let nth = {
            let mut refreshes = refreshes.lock();
            refreshes.push(account);
            refreshes.len()
        };
        Box::pin(async move {
            sleep(Duration::from_secs(90)).await;
            assert_ne!(nth, 2, "on purpose");
            if nth.is_multiple_of(7) { Err(ImportError::Empty) } else { Ok(ImportSummary::default()) }
        })
    });
    Imports { models, work, check: Imports::no_checks(), now }
}
