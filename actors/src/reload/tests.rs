//! Tests of live channels whose records change.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use domain::plan::Plan;
use domain::stream_profile::Delivery;
use domain::user::UserLevel;
use media::ring::EndReason;
use serde_json::json;

use super::*;
use crate::channel::{WatchRefusal, WatchReply};
use crate::plans::{Plans, StorePlans, Target};
use crate::system::SystemActor;
use crate::testing::{Scenario, models, settings, write};

async fn scenario(models: &Models) -> Scenario {
    let plans = StorePlans::new(models.clone(), Delivery::Proxy);
    Scenario::with_store(settings(), Arc::new(plans), models.clone()).await
}

fn news(models: &Models) -> Target {
    Target::Channel(models.channels.load().get(1).expect("the first channel").uuid)
}

/// Holds T-slot.6 for channels.
#[tokio::test(start_paused = true)]
async fn a_deleted_channel_disconnects_its_viewers_and_releases_its_slot() {
    for is_disabled in [false, true] {
        let models = models(&[&[("News", "a")]]);
        let (scenario, news) = (scenario(&models).await, news(&models));
        let mut viewer = scenario.watch(news).await;
        viewer.sees("a").await;
        write(&models, move |write| {
            let mut channel = write.get::<Channel>(1)?.expect("it is there");
            channel.enabled = false;
            if is_disabled { write.put(&channel) } else { write.remove::<Channel>(1).map(drop) }
        });
        assert_eq!(viewer.ends().await, EndReason::Stopped);
        drop(viewer);
        scenario.is_quiet().await;
        assert!(matches!(scenario.ask(news).await, WatchReply::Refused(WatchRefusal::NotFound)));
        scenario.is_quiet().await;
    }
}

/// Holds T-slot.6 for accounts and their profiles.
#[tokio::test(start_paused = true)]
async fn playback_continues_after_its_account_or_profile_is_deleted() {
    for is_account in [true, false] {
        let models = models(&[&[("News", "a")]]);
        let (scenario, news) = (scenario(&models).await, news(&models));
        let mut viewer = scenario.watch(news).await;
        write(&models, move |write| {
            if is_account {
                write.remove_owner::<Stream>(2);
                return write.remove::<Account>(2).map(drop);
            }
            let mut account = write.get::<Account>(2)?.expect("it is there");
            account.profiles.clear();
            write.put(&account)
        });
        // Longer than it takes to apply the commit.
        tokio::time::sleep(ROUND_DELAY * 10).await;
        viewer.sees("a").await;
        assert_eq!(scenario.system.counts().leases, 1);
        drop(viewer);
        scenario.is_quiet().await;
        assert!(
            matches!(scenario.ask(news).await, WatchReply::Refused(WatchRefusal::NoStreams)),
            "{is_account}"
        );
        scenario.is_quiet().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_is_added_to_a_channel_while_it_plays_takes_over_when_the_first_is_lost() {
    let models = models(&[&[("News", "a"), ("Film", "b")]]);
    let (scenario, news) = (scenario(&models).await, news(&models));
    let mut viewer = scenario.watch(news).await;
    viewer.sees("a").await;
    write(&models, |write| {
        let mut channel = write.get::<Channel>(1)?.expect("it is there");
        channel.streams = vec![domain::ids::StreamId(1), domain::ids::StreamId(2)];
        write.put(&channel)
    });
    tokio::time::sleep(ROUND_DELAY * 2).await;
    scenario.provider.set("/a", media::testing::Behaviour::Status(404));
    scenario.provider.break_now("/a", media::testing::Break::End);
    viewer.sees("b").await;
}

/// Plans that count the requests.
struct Counted(StorePlans, AtomicUsize);

impl Plans for Counted {
    fn plan(&self, target: &Target) -> Option<Arc<Plan>> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.plan(target)
    }
}

#[tokio::test(start_paused = true)]
async fn a_burst_of_commits_is_applied_in_few_rounds() {
    let models = models(&[&[("News", "a")]]);
    let plans = Arc::new(Counted(StorePlans::new(models.clone(), Delivery::Proxy), AtomicUsize::new(0)));
    let scenario = Scenario::with_store(settings(), plans.clone(), models.clone()).await;
    let _viewer = scenario.watch(news(&models)).await;
    tokio::time::sleep(ROUND_DELAY * 10).await;
    let before = plans.1.load(Ordering::Relaxed);
    let asked = || plans.1.load(Ordering::Relaxed) - before;
    let rename = |name: String| {
        write(&models, move |write| {
            let mut channel = write.get::<Channel>(1)?.expect("it is there");
            channel.name = name;
            write.put(&channel)
        });
    };
    rename("first".to_owned());
    tokio::time::sleep(ROUND_DELAY / 10).await;
    assert_eq!(asked(), 1);
    for n in 0..50 {
        rename(n.to_string());
    }
    tokio::time::sleep(ROUND_DELAY * 10).await;
    assert_eq!(asked(), 2);
    // Records that plans do not depend on are ignored.
    write(&models, |write| write.put(&User::new(UserId(1), "anna", UserLevel::Admin, 0)));
    tokio::time::sleep(ROUND_DELAY * 10).await;
    assert_eq!(asked(), 2);
}

#[tokio::test(start_paused = true)]
async fn core_settings_apply_until_they_are_removed_and_invalid_ones_are_ignored() {
    let models = models(&[&[("News", "a")]]);
    let scenario = scenario(&models).await;
    let live = scenario.system.live_settings();
    let base = live.load();
    for (value, expected) in [
        (json!({"start_timeout": 3}), 3),
        (json!({"start_timeout": 4, "ring_seconds": 1}), 15),
        (json!({"start_timeout": 5, "no_such_setting": 1}), 5),
        (json!({}), base.start_timeout.as_secs()),
    ] {
        let text = value.to_string();
        write(&models, move |write| {
            write.put(&CoreSetting { id: 1, key: PROXY_SETTINGS.to_owned(), name: String::new(), value })
        });
        tokio::time::sleep(ROUND_DELAY * 2).await;
        assert_eq!(live.load().start_timeout.as_secs(), expected, "{text}");
    }
    assert_eq!(effective_settings(&models, &base), *base);
}

/// Observed defect: a commit during a failure of the switchboard reached live channels only with the next commit; and
/// after a failure of the follower, no commit reached them at all.
#[tokio::test(start_paused = true)]
async fn a_commit_is_applied_despite_a_failure_at_that_moment() {
    for follower in [true, false] {
        let models = models(&[&[("News", "a")]]);
        let (scenario, news) = (scenario(&models).await, news(&models));
        let mut viewer = scenario.watch(news).await;
        viewer.sees("a").await;
        tokio::time::sleep(ROUND_DELAY * 10).await;
        if follower {
            scenario.system.kill_follower();
        }
        // An actor that dies repeatedly stays dead for a while.
        while !follower && scenario.system.life(SystemActor::Switchboard).is_some() {
            scenario.system.kill(SystemActor::Switchboard);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        write(&models, |write| write.remove::<Channel>(1).map(drop));
        let ended = tokio::time::timeout(ROUND_DELAY * 100, viewer.ends()).await;
        assert_eq!(ended, Ok(EndReason::Stopped), "follower: {follower}");
        drop(viewer);
        scenario.is_quiet().await;
    }
}
