//! Tests of the queue of refreshes, with paused time and replaced imports.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use domain::account::{Account, AccountProfile, PlaylistLocation, RefreshOutcome, RefreshSchedule};
use domain::event::{EventBody, RefreshRef};
use domain::ids::ProfileId;
use parking_lot::Mutex;
use storage::Store;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::*;
use crate::system::SystemActor;
use crate::testing::{Scenario, follow_log, settings};

const SECOND: Duration = Duration::from_secs(1);
const HOUR: Duration = Duration::from_secs(3600);
/// Start of paused time, in milliseconds since 1970.
const START: i64 = 1_900_000_000_000;

/// A system with an importer whose imports the test controls.
struct Turns {
    scenario: Scenario,
    importer: Importer,
    models: Models,
    /// Accounts whose import started, in order, with the time.
    begun: Arc<Mutex<Vec<(u32, Duration)>>>,
    n_at_once: Arc<AtomicUsize>,
    /// Each permit lets one import end.
    ends: Arc<Semaphore>,
}

/// The behaviour of the import of an account with this name.
async fn behave(name: &str, ends: &Semaphore, options: &ImportOptions) -> Result<ImportSummary, ImportError> {
    match name {
        "panics" => panic!("on purpose"),
        "fails" => Err(ImportError::Empty),
        _ => {
            tokio::select! {
                permit = ends.acquire() => permit.expect("open").forget(),
                () = options.stop.cancelled() => return Err(ImportError::Stopped),
            }
            Ok(ImportSummary {
                n_entries: 9,
                n_new: 3,
                n_changed: 2,
                n_stale: 5,
                n_removed: 1,
                ..ImportSummary::default()
            })
        }
    }
}

impl Turns {
    async fn new(names: &[&str], change: impl Fn(&mut Account) + Send + 'static) -> Self {
        let accounts: Vec<_> = (2..).zip(names).map(|(id, name)| account(id, name)).collect();
        let models = tokio::task::spawn_blocking(move || {
            let store = Store::temporary(storage::records::schema()).unwrap();
            for mut it in accounts {
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
        let n_at_once = Arc::new(AtomicUsize::new(0));
        let ends = Arc::new(Semaphore::new(0));
        let (seen, running, may_end, accounts) =
            (begun.clone(), Arc::new(AtomicUsize::new(0)), ends.clone(), models.clone());
        let most = n_at_once.clone();
        let work: Arc<Work> = Arc::new(move |account, options: ImportOptions, report| {
            let name = accounts.accounts.load().get(account.0).map(|it| it.name.clone()).unwrap_or_default();
            let (seen, running, may_end, most) =
                (seen.clone(), running.clone(), may_end.clone(), most.clone());
            Box::pin(async move {
                seen.lock().push((account.0, began.elapsed()));
                most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                report(RefreshStatus {
                    phase: RefreshPhase::Parsing,
                    ..RefreshStatus::new(account, options.job, 0)
                });
                let done = behave(&name, &may_end, &options).await;
                running.fetch_sub(1, Ordering::SeqCst);
                done
            })
        });
        let now = Arc::new(move || START + i64::try_from(began.elapsed().as_millis()).unwrap());
        scenario.system.set_imports(Imports {
            models: models.clone(),
            work,
            check: Imports::no_checks(),
            now,
        });
        let importer = scenario.system.importer();
        Self { scenario, importer, models, begun, n_at_once, ends }
    }

    async fn refresh(&self, account: u32) -> RefreshStart {
        self.importer.refresh(AccountId(account), false).await.unwrap()
    }

    fn begun(&self) -> Vec<u32> {
        self.begun.lock().iter().map(|it| it.0).collect()
    }

    fn phases(&self) -> BTreeMap<u32, (RefreshPhase, Option<RefreshOutcome>)> {
        self.importer.progress().iter().map(|it| (it.account.0, (it.phase, it.outcome))).collect()
    }
}

fn account(id: u32, name: &str) -> Account {
    let profile = AccountProfile::default_of(ProfileId(id), "default", 1);
    Account::new(AccountId(id), name, PlaylistLocation::File("list.m3u".to_owned()), profile, START)
}

#[tokio::test(start_paused = true)]
async fn two_refreshes_run_at_once_and_the_others_wait_for_their_turn() {
    let turns = Turns::new(&["a", "b", "c", "d"], |_| {}).await;
    for account in 2..6 {
        assert!(matches!(turns.refresh(account).await, RefreshStart::Started { .. }));
    }
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [2, 3]);
    let phases: Vec<_> = turns.phases().values().map(|it| it.0).collect();
    assert_eq!(
        phases,
        [RefreshPhase::Parsing, RefreshPhase::Parsing, RefreshPhase::Waiting, RefreshPhase::Waiting]
    );
    for n_begun in [3, 4, 4, 4] {
        turns.ends.add_permits(1);
        sleep(SECOND).await;
        assert_eq!(turns.begun().len(), n_begun);
    }
    assert_eq!(turns.begun(), [2, 3, 4, 5]);
    assert_eq!(turns.n_at_once.load(Ordering::SeqCst), 2);
    assert!(
        turns.phases().values().all(|it| *it == (RefreshPhase::Done, Some(RefreshOutcome::Success))),
        "and stay readable"
    );
}

#[tokio::test(start_paused = true)]
async fn repeated_requests_refresh_an_account_once() {
    let turns = Turns::new(&["a", "b", "c"], |_| {}).await;
    for account in [2, 3, 4] {
        let RefreshStart::Started { job } = turns.refresh(account).await else { panic!("{account}") };
        // The same for running refreshes (the first two) and a waiting one (the third).
        assert_eq!(turns.refresh(account).await, RefreshStart::AlreadyRunning { job });
    }
    turns.ends.add_permits(3);
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [2, 3, 4]);
    assert!(
        matches!(turns.refresh(2).await, RefreshStart::Started { .. }),
        "when it is over it may begin again"
    );
}

#[tokio::test(start_paused = true)]
async fn an_account_that_changes_while_it_is_refreshed_is_refreshed_again_but_not_at_every_change() {
    let turns = Turns::new(&["a", "b", "c"], |_| {}).await;
    let changed = async |account, has_new_list| {
        turns.importer.changed(AccountId(account), has_new_list).await.unwrap();
    };
    changed(2, false).await;
    sleep(SECOND).await;
    assert!(turns.begun().is_empty(), "nothing ran, and the list is the same");
    changed(2, true).await;
    turns.refresh(3).await;
    turns.refresh(4).await;
    // This refresh waits for its turn, and reads the account then.
    changed(4, true).await;
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [2, 3]);
    for has_new_list in [true, false, true] {
        changed(2, has_new_list).await;
        sleep(SECOND / 10).await;
    }
    assert_eq!(turns.begun(), [2, 3, 4], "it was broken off, and waits for its turn");
    turns.ends.add_permits(1);
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [2, 3, 4, 2]);
    for has_new_list in [true, false, true] {
        changed(2, has_new_list).await;
        sleep(SECOND / 10).await;
    }
    assert_eq!(turns.begun().len(), 4, "not at once again");
    sleep(10 * SECOND).await;
    turns.ends.add_permits(10);
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [2, 3, 4, 2, 2]);
    let good = (RefreshPhase::Done, Some(RefreshOutcome::Success));
    assert_eq!(turns.phases(), BTreeMap::from([(2, good), (3, good), (4, good)]));
}

#[tokio::test(start_paused = true)]
async fn an_account_that_is_deleted_while_it_is_refreshed_is_not_refreshed_again() {
    let turns = Turns::new(&["a"], |_| {}).await;
    turns.refresh(2).await;
    sleep(SECOND).await;
    turns.models.store.write(|write| write.remove::<Account>(2)).await.unwrap();
    turns.importer.changed(AccountId(2), true).await.unwrap();
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [2]);
}

#[tokio::test(start_paused = true)]
async fn impossible_refreshes_are_refused_at_once() {
    let turns = Turns::new(&["a", "by hand", "off"], |it| match it.name.as_str() {
        "by hand" => it.list = PlaylistLocation::None,
        "off" => it.is_active = false,
        _ => {}
    })
    .await;
    assert_eq!(turns.refresh(99).await, RefreshStart::NoSuchAccount);
    assert_eq!(turns.refresh(3).await, RefreshStart::NoList);
    assert_eq!(turns.refresh(4).await, RefreshStart::Inactive);
    assert!(turns.importer.progress().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_panics_is_an_error_of_that_refresh_alone() {
    let turns = Turns::new(&["panics", "a", "fails"], |_| {}).await;
    for account in [2, 3, 4] {
        turns.refresh(account).await;
    }
    turns.ends.add_permits(1);
    sleep(SECOND).await;
    let error = (RefreshPhase::Done, Some(RefreshOutcome::Error));
    assert_eq!(
        turns.phases(),
        BTreeMap::from([(2, error), (3, (RefreshPhase::Done, Some(RefreshOutcome::Success))), (4, error)])
    );
    let message = turns.importer.progress_of(AccountId(2)).unwrap().message;
    assert!(message.contains("an internal error"), "{message}");
    assert!(matches!(turns.refresh(2).await, RefreshStart::Started { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_refresh_emits_what_it_did_or_why_it_failed() {
    let turns = Turns::new(&["a", "fails"], |_| {}).await;
    turns.refresh(2).await;
    turns.refresh(3).await;
    sleep(7 * SECOND).await;
    turns.ends.add_permits(1);
    sleep(SECOND).await;
    let mut events: Vec<_> =
        turns.scenario.system.events().recent().iter().map(|it| it.body.clone()).collect();
    let failed = events.iter().position(|it| matches!(it, EventBody::M3uError { .. }));
    let EventBody::M3uError { source, status, reason } = events.remove(failed.unwrap()) else { panic!() };
    assert_eq!((source.id, source.name.as_str(), status), (3, "fails", "error"));
    assert!(!reason.is_empty());
    let expected = EventBody::M3uRefresh {
        source: RefreshRef { id: 2, name: "a".to_owned() },
        total_processed: 9,
        streams_created: 3,
        streams_updated: 2,
        streams_stale: 5,
        streams_deleted: 1,
        duration_seconds: 7,
    };
    assert_eq!(events, [expected]);
}

#[tokio::test(start_paused = true)]
async fn a_stopping_system_ends_refreshes_within_a_second() {
    let turns = Turns::new(&["a", "b", "c"], |_| {}).await;
    for account in [2, 3, 4] {
        turns.refresh(account).await;
    }
    sleep(SECOND).await;
    let began = Instant::now();
    assert!(turns.scenario.system.stop().await);
    assert!(began.elapsed() < SECOND, "{:?}", began.elapsed());
    assert_eq!(turns.begun(), [2, 3]);
    assert_eq!(turns.phases()[&2], (RefreshPhase::Done, None), "it was nobody's fault");
    assert_eq!(turns.importer.refresh(AccountId(2), false).await, Err(AskError::Gone));
}

#[tokio::test(start_paused = true)]
async fn a_restarted_importer_reports_interrupted_refreshes() {
    let turns = Turns::new(&["a"], |_| {}).await;
    turns.refresh(2).await;
    sleep(SECOND).await;
    turns.scenario.system.kill(SystemActor::Importer);
    sleep(SECOND).await;
    assert_eq!(turns.phases()[&2], (RefreshPhase::Done, Some(RefreshOutcome::Error)));
    assert!(matches!(turns.refresh(2).await, RefreshStart::Started { .. }));
    turns.ends.add_permits(1);
    sleep(SECOND).await;
    assert_eq!(turns.phases()[&2], (RefreshPhase::Done, Some(RefreshOutcome::Success)));
}

#[tokio::test(start_paused = true)]
async fn scheduled_accounts_are_refreshed_repeatedly_and_others_never() {
    let turns = Turns::new(&["every hour", "never", "off", "fails"], |it| {
        let interval_hours = u32::from(it.name != "never");
        it.schedule = RefreshSchedule { interval_hours, cron: String::new() };
        it.is_active = it.name != "off";
    })
    .await;
    turns.ends.add_permits(100);
    sleep(5 * HOUR + 60 * SECOND).await;
    let times = |account: u32| -> Vec<u64> {
        let begun = turns.begun.lock();
        begun.iter().filter(|it| it.0 == account).map(|it| it.1.as_secs() / 3600).collect()
    };
    assert_eq!(times(2), [0, 1, 2, 3, 4, 5]);
    assert_eq!(times(5), [0, 1, 2, 3, 4, 5], "one that fails is not tried more often");
    assert_eq!((times(3), times(4)), (vec![], vec![]));
}

#[tokio::test(start_paused = true)]
async fn overdue_refreshes_run_once_after_the_start_and_spread_out() {
    let names: Vec<_> = (0..20).map(|it| format!("account {it}")).collect();
    let names: Vec<_> = names.iter().map(String::as_str).collect();
    let turns = Turns::new(&names, |it| {
        it.schedule = RefreshSchedule { interval_hours: 24, cron: "30 * * * *".to_owned() };
        // Created three days before the start.
        it.updated_at = START - 3 * 24 * 3_600_000;
    })
    .await;
    turns.ends.add_permits(100);
    sleep(200 * SECOND).await;
    let begun = turns.begun.lock().clone();
    assert_eq!(begun.len(), 20, "each once");
    let looks: std::collections::BTreeSet<_> = begun.iter().map(|it| it.1.as_secs()).collect();
    assert!(looks.len() > 5, "{looks:?}");
    sleep(HOUR).await;
    assert_eq!(turns.begun().len(), 40, "and then by the schedule");
}

#[tokio::test(start_paused = true)]
async fn a_node_that_takes_over_begins_within_30_s_with_what_is_due_two_at_a_time() {
    let missed = |id, updated_at| {
        let mut account = account(id, &format!("missed {id}"));
        account.schedule = RefreshSchedule { interval_hours: 0, cron: "30 * * * *".to_owned() };
        account.updated_at = updated_at;
        account
    };
    let models = tokio::task::spawn_blocking(move || {
        let store = Store::temporary(storage::records::schema()).unwrap();
        // Due before this node started, and while it only followed.
        for it in (2..8).map(|id| missed(id, START - 3 * 24 * 3_600_000)).chain([missed(8, START)]) {
            store.write_blocking(move |write| write.put(&it)).unwrap();
        }
        follow_log(&store);
        Models::new(store).unwrap()
    });
    let turns = Turns::with(models.await.unwrap()).await;
    sleep(3 * HOUR + 7 * SECOND).await;
    assert!(turns.begun().is_empty(), "another node refreshes");
    let store = turns.models.store.clone();
    tokio::task::spawn_blocking(move || store.become_writer()).await.unwrap().unwrap();
    sleep(SECOND).await;
    assert_eq!(turns.begun().len(), 2);
    turns.ends.add_permits(100);
    sleep(29 * SECOND).await;
    let mut begun = turns.begun();
    begun.sort_unstable();
    assert_eq!(begun, (2..9).collect::<Vec<_>>(), "each once");
    assert_eq!(turns.n_at_once.load(Ordering::SeqCst), 2);

    // One that writes no longer leaves them to another node, and begins again when it writes again.
    let store = turns.models.store.clone();
    tokio::task::spawn_blocking(move || store.stop_writing()).await.unwrap().unwrap();
    sleep(2 * HOUR).await;
    assert_eq!(turns.begun().len(), 7);
    let store = turns.models.store.clone();
    tokio::task::spawn_blocking(move || store.become_writer()).await.unwrap().unwrap();
    sleep(SECOND).await;
    assert_eq!(turns.begun().len(), 14);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_account_is_not_refreshed() {
    let turns = Turns::new(&["a"], |it| it.schedule.interval_hours = 1).await;
    turns.ends.add_permits(100);
    sleep(SECOND).await;
    assert_eq!(turns.begun(), [2]);
    turns.models.store.write(|write| write.remove::<Account>(2)).await.unwrap();
    sleep(5 * HOUR).await;
    assert_eq!(turns.begun(), [2]);
}
