//! Tests of the queue of refreshes, with paused time and replaced refreshes.

use std::time::Duration;

use domain::account::RefreshSchedule;
use domain::event::EventBody;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::GuideStatus;
use domain::guide::xmltv::{XmltvPlace, XmltvSkip};
use domain::ids::AccountId;
use domain::source_url::SourceUrl;
use parking_lot::Mutex;
use storage::{Models, Store};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::*;
use crate::system::SystemActor;
use crate::testing::{Scenario, follow_log, settings};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
/// Start of paused time, in milliseconds since 1970.
const START: i64 = 1_900_000_000_000;

/// A system whose refreshes of guides the test controls.
struct Turns {
    scenario: Scenario,
    guides: GuideRefreshes,
    models: Models,
    /// Sources whose refresh started, in order, with the time and whether it was forced.
    begun: Arc<Mutex<Vec<(u32, Duration, bool)>>>,
    /// Each permit lets one refresh end.
    ends: Arc<Semaphore>,
    /// Sources whose guide is damaged on the disk.
    damaged: Arc<Mutex<Vec<GuideSourceId>>>,
}

/// The behaviour of the refresh of a source with this name.
async fn behave(name: &str, ends: &Semaphore, options: &GuideOptions) -> Result<GuideSummary, GuideError> {
    match name {
        "panics" => panic!("on purpose"),
        "is empty" => Err(GuideError::Empty),
        "breaks off" => Err(GuideError::Unread(std::io::ErrorKind::UnexpectedEof.into())),
        _ => {
            tokio::select! {
                permit = ends.acquire() => permit.expect("open").forget(),
                () = options.stop.cancelled() => return Err(GuideError::Stopped),
            }
            Ok(GuideSummary {
                n_channels: 3,
                n_programmes: 9,
                n_skipped: 1,
                n_unused: 2,
                ..GuideSummary::default()
            })
        }
    }
}

impl Turns {
    async fn new(names: &[&str], change: impl Fn(&mut GuideSource) + Send + 'static) -> Self {
        let sources: Vec<_> = (1..).zip(names).map(|(id, name)| source(id, name)).collect();
        let models = tokio::task::spawn_blocking(move || {
            let store = Store::temporary(storage::records::schema()).unwrap();
            for mut it in sources {
                change(&mut it);
                store.write_blocking(move |write| write.put(&it)).unwrap();
            }
            Models::new(store).unwrap()
        });
        Self::with(models.await.unwrap()).await
    }

    async fn with(models: Models) -> Self {
        let scenario = Scenario::new(settings(), []).await;
        let (began, begun) = (Instant::now(), Arc::new(Mutex::new(Vec::new())));
        let ends = Arc::new(Semaphore::new(0));
        let (seen, may_end, known) = (begun.clone(), ends.clone(), models.clone());
        let work: Arc<GuideWork> = Arc::new(move |source, options: GuideOptions, _| {
            let name = known.guide_sources.load().get(source.0).map(|it| it.name.clone()).unwrap_or_default();
            let (seen, may_end) = (seen.clone(), may_end.clone());
            Box::pin(async move {
                seen.lock().push((source.0, began.elapsed(), options.force));
                behave(&name, &may_end, &options).await
            })
        });
        let now = Arc::new(move || START + i64::try_from(began.elapsed().as_millis()).unwrap());
        let damaged = Arc::<Mutex<Vec<GuideSourceId>>>::default();
        let of_disk = Arc::clone(&damaged);
        let of_disk = Arc::new(move || of_disk.lock().clone());
        let imports = GuideImports { models: models.clone(), work, damaged: of_disk, now };
        scenario.system.set_guide_imports(imports);
        let guides = scenario.system.guide_refreshes();
        Self { scenario, guides, models, begun, ends, damaged }
    }

    async fn refresh(&self, source: u32) -> GuideRefreshStart {
        self.guides.refresh(GuideSourceId(source), false).await.unwrap()
    }

    fn begun(&self) -> Vec<u32> {
        self.begun.lock().iter().map(|it| it.0).collect()
    }

    /// Returns the starts of refreshes in whole minutes.
    fn minutes(&self) -> Vec<u64> {
        self.begun.lock().iter().map(|it| it.1.as_secs() / 60).collect()
    }

    fn status(&self, source: u32) -> (GuidePhase, Option<GuideStatus>) {
        let status = self.guides.progress_of(GuideSourceId(source)).unwrap();
        (status.phase, status.outcome)
    }
}

fn source(id: u32, name: &str) -> GuideSource {
    let mut source = GuideSource::new(GuideSourceId(id), name, GuideSourceKind::Xmltv, START);
    source.url = Some(SourceUrl::new("http://guide.example/guide.xml"));
    source
}

#[test]
fn the_message_of_a_refresh_says_what_was_damaged_and_where() {
    let whole = GuideSummary { n_channels: 2, n_programmes: 9, ..GuideSummary::default() };
    assert_eq!(whole.sentence(), "2 channels with 9 programmes.");
    let place = XmltvPlace { line: 3, column: 2 };
    let damaged = GuideSummary {
        n_skipped: 1,
        first_skip: Some((place, XmltvSkip::NoStart)),
        n_repaired: 3,
        n_stops_wrong: 4,
        ..whole
    };
    assert_eq!(
        damaged.sentence(),
        "2 channels with 9 programmes. 1 damaged elements were left out, the first one at line 3, column 2: no valid start \
         time. 3 damaged elements were repaired. 4 programmes do not end after their start, and end with the next one."
    );
}

#[tokio::test(start_paused = true)]
async fn one_guide_is_refreshed_at_a_time_and_the_others_wait_in_order() {
    let turns = Turns::new(&["a", "b", "c"], |_| {}).await;
    for id in [2, 1, 3] {
        let GuideRefreshStart::Started { job } = turns.refresh(id).await else { panic!("{id}") };
        assert_eq!(turns.refresh(id).await, GuideRefreshStart::AlreadyRunning { job });
    }
    for expected in [&[2][..], &[2, 1], &[2, 1, 3]] {
        sleep(SECOND).await;
        assert_eq!(turns.begun(), expected);
        turns.ends.add_permits(1);
    }
    sleep(SECOND).await;
    for id in 1..=3 {
        assert_eq!(turns.status(id), (GuidePhase::Done, Some(GuideStatus::Success)));
    }
    let events = turns.scenario.system.events().recent();
    let refreshed: Vec<_> = events
        .iter()
        .filter_map(|it| match &it.body {
            EventBody::EpgRefresh { source, channels, programs_updated, .. } => {
                Some((source.id, *channels, *programs_updated))
            }
            _ => None,
        })
        .collect();
    assert_eq!(refreshed, [(2, 3, 9), (1, 3, 9), (3, 3, 9)]);
}

#[tokio::test(start_paused = true)]
async fn only_an_active_source_with_something_to_fetch_is_refreshed() {
    let turns = Turns::new(&["off", "dummy", "nowhere"], |it| match it.name.as_str() {
        "off" => it.is_active = false,
        "dummy" => it.kind = GuideSourceKind::Generated,
        _ => it.url = None,
    })
    .await;
    assert_eq!(turns.refresh(1).await, GuideRefreshStart::Inactive);
    assert_eq!(turns.refresh(2).await, GuideRefreshStart::NotRefreshed);
    assert_eq!(turns.refresh(3).await, GuideRefreshStart::NoLocation);
    assert_eq!(turns.refresh(4).await, GuideRefreshStart::NoSuchSource);
    sleep(MINUTE).await;
    assert!(turns.begun().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_damaged_guide_is_fetched_again_at_once_if_its_source_can_be_read() {
    let turns = Turns::new(&["a", "off", "is empty", "breaks off"], |it| {
        it.is_active = it.name != "off";
        // Never by the schedule.
        it.schedule = RefreshSchedule { interval_hours: 0, ..it.schedule.clone() };
    })
    .await;
    turns.ends.add_permits(10);
    sleep(MINUTE).await;
    assert!(turns.begun().is_empty());
    *turns.damaged.lock() = (1..=4).map(GuideSourceId).collect();
    sleep(MINUTE / 2).await;
    assert_eq!(turns.begun(), [1, 3, 4]);
    // Only a failure that may be temporary is tried again.
    sleep(3 * MINUTE).await;
    assert_eq!(turns.begun(), [1, 3, 4, 4]);
    // A good file is damaged once more.
    turns.damaged.lock().clear();
    sleep(MINUTE / 2).await;
    turns.damaged.lock().push(GuideSourceId(1));
    sleep(MINUTE / 2).await;
    assert_eq!(turns.begun(), [1, 3, 4, 4, 1]);
}

#[tokio::test(start_paused = true)]
async fn a_temporary_failure_is_retried_three_times_with_growing_delays() {
    let turns = Turns::new(&["breaks off", "is empty", "panics"], |_| {}).await;
    for id in 1..=3 {
        turns.refresh(id).await;
    }
    sleep(SECOND).await;
    for id in 1..=3 {
        assert_eq!(turns.status(id), (GuidePhase::Done, Some(GuideStatus::Error)));
    }
    sleep(120 * MINUTE).await;
    let begun = turns.begun();
    assert_eq!(begun.iter().filter(|it| **it == 1).count(), 4, "{begun:?}");
    assert_eq!(begun.iter().filter(|it| **it != 1).count(), 2, "an empty guide is not temporary: {begun:?}");
    assert_eq!(turns.minutes()[2..], [0, 1, 6, 26]);
}

#[tokio::test(start_paused = true)]
async fn guides_are_refreshed_by_their_schedule() {
    let turns = Turns::new(&["hours", "cron", "never"], |it| {
        it.schedule = match it.name.as_str() {
            "hours" => RefreshSchedule { interval_hours: 1, cron: String::new() },
            // Half past each hour.
            "cron" => RefreshSchedule { interval_hours: 0, cron: "30 * * * *".to_owned() },
            _ => RefreshSchedule::default(),
        }
    })
    .await;
    turns.ends.add_permits(100);
    sleep(150 * MINUTE).await;
    let begun = turns.begun();
    let n = |id| begun.iter().filter(|it| **it == id).count();
    assert_eq!((n(1), n(3)), (3, 0), "{begun:?}");
    assert!((2..=3).contains(&n(2)), "{begun:?}");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_takes_over_begins_within_30_s_with_what_is_due_one_at_a_time() {
    let models = tokio::task::spawn_blocking(|| {
        let store = Store::temporary(storage::records::schema()).unwrap();
        for id in 1..5 {
            let mut missed = source(id, &format!("missed {id}"));
            missed.schedule = RefreshSchedule { interval_hours: 0, cron: "30 * * * *".to_owned() };
            missed.updated_at = START - 3 * 24 * 3_600_000;
            store.write_blocking(move |write| write.put(&missed)).unwrap();
        }
        follow_log(&store);
        Models::new(store).unwrap()
    });
    let turns = Turns::with(models.await.unwrap()).await;
    sleep(150 * MINUTE + 7 * SECOND).await;
    assert!(turns.begun().is_empty(), "another node refreshes");
    let store = turns.models.store.clone();
    tokio::task::spawn_blocking(move || store.become_writer()).await.unwrap().unwrap();
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [1]);
    turns.ends.add_permits(100);
    sleep(29 * SECOND).await;
    assert_eq!(turns.begun(), [1, 2, 3, 4]);
}

#[tokio::test(start_paused = true)]
async fn two_guides_of_one_panel_are_fetched_with_a_pause() {
    let turns = Turns::new(&["a", "b", "other"], |it| {
        it.kind = GuideSourceKind::Panel;
        it.account = Some(AccountId(if it.name == "other" { 3 } else { 2 }));
    })
    .await;
    turns.ends.add_permits(3);
    for id in [1, 2, 3] {
        turns.refresh(id).await;
    }
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [1, 3], "the other panel does not wait");
    sleep(20 * SECOND).await;
    assert_eq!(turns.begun(), [1, 3, 2]);
    assert!(turns.begun.lock()[2].1 >= 10 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_source_that_changes_is_refreshed_again_and_one_that_is_deleted_is_not() {
    let turns = Turns::new(&["a", "b"], |_| {}).await;
    let changed = async |id, has_new| turns.guides.changed(GuideSourceId(id), has_new).await.unwrap();
    turns.refresh(1).await;
    sleep(SECOND).await;
    changed(1, true).await;
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [1, 1], "the first one was stopped");
    turns.models.store.write(|write| write.remove::<GuideSource>(1)).await.unwrap();
    changed(1, false).await;
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [1, 1]);
    changed(2, true).await;
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [1, 1, 2]);
}

#[tokio::test(start_paused = true)]
async fn a_forced_refresh_is_passed_on() {
    let turns = Turns::new(&["a"], |_| {}).await;
    turns.guides.refresh(GuideSourceId(1), true).await.unwrap();
    sleep(SECOND).await;
    assert!(turns.begun.lock()[0].2);
}

#[tokio::test(start_paused = true)]
async fn a_guide_that_is_replaced_during_its_refresh_is_refreshed_again_even_if_it_is_smaller() {
    let turns = Turns::new(&["a"], |_| {}).await;
    turns.refresh(1).await;
    sleep(SECOND).await;
    turns.guides.replaced(GuideSourceId(1)).await.unwrap();
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [1, 1]);
    let forced: Vec<_> = turns.begun.lock().iter().map(|it| it.2).collect();
    assert_eq!(forced, [false, true]);
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_ends_with_its_actor_is_reported_as_interrupted_and_the_next_one_succeeds() {
    let turns = Turns::new(&["a"], |_| {}).await;
    turns.refresh(1).await;
    sleep(SECOND).await;
    turns.scenario.system.kill(SystemActor::Guides);
    sleep(2 * SECOND).await;
    let status = turns.guides.progress_of(GuideSourceId(1)).unwrap();
    assert_eq!((status.outcome, status.percent), (Some(GuideStatus::Error), 100));
    assert_eq!(status.message, "The refresh was interrupted.");
    turns.ends.add_permits(1);
    assert!(matches!(turns.refresh(1).await, GuideRefreshStart::Started { .. }));
    sleep(SECOND).await;
    assert_eq!(turns.status(1), (GuidePhase::Done, Some(GuideStatus::Success)));
}
