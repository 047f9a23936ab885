//! Tests of recordings that need the same connection.

use std::collections::BTreeMap;
use std::time::Duration;

use domain::core_settings::DVR_SETTINGS;
use domain::recording::{Recording, RecordingInput, RecordingStatus};
use domain::setting::CoreSetting;
use serde_json::json;
use tokio::time::sleep;

use super::tests::{HOUR, Studio};
use crate::clock::now_ms;
use crate::testing::{channel, limited};

/// Two channels of one account that allows one connection.
async fn one_connection() -> Studio {
    Studio::with_channels([&[limited(1, "a", 1, 1)], &[limited(2, "b", 1, 1)]]).await
}

fn priority(priority: u8) -> impl FnOnce(&mut Recording) {
    move |it| it.priority = priority
}

fn is_running(recording: &Recording) -> bool {
    recording.status == RecordingStatus::Recording && recording.gaps.last().is_none_or(|it| it.end.is_some())
}

fn has_no_connection(recording: &Recording) -> bool {
    recording.gaps.last().is_some_and(|it| it.end.is_none())
}

#[tokio::test]
async fn a_recording_takes_the_connection_of_one_with_a_lower_priority_and_gives_it_back_at_its_end() {
    let studio = one_connection().await;
    let now = now_ms();
    studio.record_channel(1, 1, now..now + HOUR, priority(40)).await;
    studio.until(1, is_running).await;
    studio.until_longer(1, 200_000).await;
    studio.record_channel(2, 2, now..now + HOUR, priority(60)).await;
    studio.until(2, is_running).await;
    studio.until(1, has_no_connection).await;
    studio.until_longer(2, 200_000).await;
    studio.apply(2, RecordingInput::Stop).await;
    let continued = studio.until(1, is_running).await;
    assert_eq!(continued.gaps.len(), 1, "{continued:?}");
    studio.until_longer(1, 200_000).await;
    assert_eq!(studio.scenario.provider.peak(), 1, "the account allows one connection");
}

#[tokio::test]
async fn the_first_of_equal_recordings_keeps_the_connection() {
    let studio = one_connection().await;
    let now = now_ms();
    studio.record_channel(1, 1, now..now + HOUR, priority(50)).await;
    studio.until(1, is_running).await;
    studio.record_channel(2, 2, now..now + HOUR, priority(50)).await;
    let refused = studio.until(2, |it| it.reason.is_some()).await;
    assert_eq!(refused.status, RecordingStatus::Scheduled);
    assert!(is_running(&studio.get(1).unwrap()));
}

#[tokio::test]
async fn padding_gives_way_to_a_programme_of_any_priority() {
    let studio = one_connection().await;
    let now = now_ms();
    // Its programme is over, and its padding is recorded.
    let padded = |it: &mut Recording| (it.padding_after, it.priority) = (3_600, 90);
    studio.record_channel(1, 1, now - HOUR..now - 1_000, padded).await;
    studio.until(1, is_running).await;
    studio.record_channel(2, 2, now..now + HOUR, priority(10)).await;
    studio.until(2, is_running).await;
    studio.until(1, has_no_connection).await;
}

#[tokio::test]
async fn viewers_keep_their_connection_unless_a_setting_gives_it_to_recordings() {
    let studio = one_connection().await;
    let mut viewer = studio.scenario.watch(channel(1)).await;
    viewer.sees("a").await;
    let now = now_ms();
    studio.record_channel(2, 1, now..now + HOUR, priority(90)).await;
    studio.until(1, |it| it.reason.is_some()).await;
    viewer.sees("a").await;
    let value = json!({ "disconnect_viewers": true });
    let set = studio.models.store.write(move |write| {
        let id = 1_000;
        write.put(&CoreSetting { id, key: DVR_SETTINGS.to_owned(), name: "DVR".to_owned(), value })
    });
    set.await.unwrap();
    studio.until(1, is_running).await;
    viewer.ends().await;
    // A viewer takes it from no recording.
    sleep(Duration::from_millis(10)).await;
    studio.scenario.ask(channel(1)).await;
    assert!(is_running(&studio.get(1).unwrap()));
}

#[tokio::test]
async fn a_recording_leaves_the_account_to_one_that_has_no_other() {
    // Channel 1 plays from both accounts, channel 2 from the first one only.
    let of_both = [limited(1, "a", 1, 1), limited(2, "b", 2, 1)];
    let studio = Studio::with_channels([&of_both, &[limited(3, "c", 1, 1)]]).await;
    let now = now_ms();
    // Both are known before the first one begins.
    let later = now + 2 * 3_600_000;
    studio.record_channel(1, 1, later..later + HOUR, priority(50)).await;
    studio.record_channel(2, 2, now + 15_000..now + HOUR, priority(50)).await;
    studio.change(1, move |it| it.start = now + 11_000).await;
    studio.until(1, is_running).await;
    studio.until(2, is_running).await;
    let accounts = studio.scenario.system.leases().into_iter().map(|it| (it.target, it.account_id.0));
    let accounts: BTreeMap<_, _> = accounts.collect();
    assert_eq!(accounts, BTreeMap::from([(channel(1), 2), (channel(2), 1)]));
    let recordings = [studio.get(1).unwrap(), studio.get(2).unwrap()];
    assert!(recordings.iter().all(|it| it.gaps.is_empty()), "{recordings:?}");
}
