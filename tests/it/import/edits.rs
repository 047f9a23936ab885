//! Edits by admins survive imports.

use std::sync::Arc;

use actors::{ImportError, ImportOptions, RefreshPhase, RefreshStatus};
use domain::account::{Rule, RuleField};
use domain::channel::Channel;
use domain::ids::{ChannelId, StreamProfileId};
use domain::stream::Stream;
use parking_lot::Mutex;
use uuid::Uuid;

use super::fixture::{A, DAY, HOUR, ImportFixture, MANY, START, edit, ids, list, plain, url};

// Holds T-sync.4.
#[tokio::test]
async fn edits_by_admins_survive_refreshes_and_clearing_them_shows_the_current_values_of_the_provider() {
    for n_entries in [20, MANY] {
        let fixture = ImportFixture::new().await;
        fixture.server.body(plain(0..n_entries));
        fixture.import(A, START).await.unwrap();
        let id = ids(&fixture.streams(A).await)[&url(5)];
        fixture
            .edit(id, |it| {
                it.manual.name = Some("Ours".to_owned());
                it.manual.group = Some(String::new());
                it.stream_profile = Some(StreamProfileId(1));
            })
            .await;
        for (round, colour) in (1..).zip(["red", "green", "blue"]) {
            fixture.server.body(list((0..n_entries).rev().map(|it| (it, format!("Theirs {it} {colour}")))));
            let imported = fixture.import(A, START + round * HOUR).await.unwrap();
            assert_eq!(imported.n_changed as usize, n_entries);
            let stream = fixture.streams(A).await.into_iter().find(|it| it.id == id).unwrap();
            assert_eq!((stream.name(), stream.group()), ("Ours", None));
            assert_eq!(stream.stream_profile, Some(StreamProfileId(1)));
            assert_eq!(stream.provider.name, format!("Theirs 5 {colour}"));
        }
        fixture.edit(id, |it| it.manual = Default::default()).await;
        let stream = fixture.streams(A).await.into_iter().find(|it| it.id == id).unwrap();
        assert_eq!((stream.name(), stream.group()), ("Theirs 5 blue", Some("Group 5")));
    }
}

#[tokio::test]
async fn changed_rules_of_an_account_apply_with_the_next_refresh() {
    let fixture = ImportFixture::new().await;
    let rule = |find: &str, replace: &str| {
        vec![Rule { field: RuleField::Name, find: find.to_owned(), replace: replace.to_owned() }]
    };
    fixture.account(A, |it| it.rules = rule("^Channel ", "")).await;
    fixture.server.body(plain(1..5));
    fixture.import(A, START).await.unwrap();
    let names = async || fixture.streams(A).await.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names().await, ["1", "2", "3", "4"]);
    fixture.account(A, |it| it.rules = Vec::new()).await;
    assert_eq!(fixture.import(A, START + HOUR).await.unwrap().n_changed, 4);
    assert_eq!(names().await, ["Channel 1", "Channel 2", "Channel 3", "Channel 4"]);
    fixture.account(A, |it| it.rules = rule("(", "")).await;
    assert!(matches!(fixture.import(A, START + 2 * HOUR).await, Err(ImportError::Rules(_))));
    assert!(fixture.refresh(A).message.starts_with("The account has an invalid rule: rule 1: "));
}

/// Admins keep editing while a large playlist is imported: before the write and during it.
#[tokio::test]
async fn edits_during_the_import_of_a_large_list_are_not_lost() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..MANY * 4));
    fixture.import(A, START).await.unwrap();
    let first: Vec<_> = fixture.streams(A).await.iter().map(|it| it.id).collect();
    fixture.server.body(list((0..MANY * 4).map(|it| (it, format!("Renamed {it}")))));
    let (store, ids) = (fixture.models.store.clone(), first.clone());
    let n_reports = Arc::new(Mutex::new(0));
    let reports = n_reports.clone();
    let options = ImportOptions { at: Some(START + HOUR), ..ImportOptions::default() };
    let meanwhile = move |progress: RefreshStatus| {
        if progress.phase == RefreshPhase::Writing {
            let mut n_reports = reports.lock();
            let (edited, deleted) = (ids[*n_reports * 2], ids[*n_reports * 2 + 1]);
            *n_reports += 1;
            let write = store.write_blocking(move |write| {
                assert!(write.remove::<Stream>(deleted.0)?);
                edit(write, edited, |it| it.manual.name = Some("Ours".to_owned()))
            });
            write.unwrap();
        }
    };
    fixture.import_with(A, options, meanwhile).await.unwrap();
    let n_reports = *n_reports.lock();
    assert!(n_reports > 10, "only {n_reports} progress reports");
    let streams = fixture.streams(A).await;
    // The stream deleted first was gone before the final comparison and is listed, so it was imported as a new one.
    assert_eq!(streams.len(), MANY * 4 - n_reports + 1);
    for (at, id) in first.iter().enumerate() {
        let stream = streams.iter().find(|it| it.id == *id);
        match (at % 2, at < n_reports * 2) {
            (1, true) => assert!(stream.is_none(), "stream {id} is back"),
            (0, true) => assert_eq!(stream.unwrap().name(), "Ours", "the edit of stream {id} is lost"),
            _ => assert_eq!(stream.unwrap().name(), format!("Renamed {at}")),
        }
    }
    assert!(streams.iter().all(|it| it.provider.name.starts_with("Renamed ")), "the list is imported");
}

#[tokio::test]
async fn a_stream_that_a_channel_starts_to_use_during_an_import_is_not_removed() {
    for n_entries in [20, MANY] {
        let fixture = ImportFixture::new().await;
        fixture.account(A, |it| it.stale_stream_days = 1).await;
        fixture.server.body(plain(0..n_entries));
        fixture.import(A, START).await.unwrap();
        let first = ids(&fixture.streams(A).await);
        let (wanted, unwanted) = (first[&url(0)], first[&url(1)]);
        fixture.server.body(plain(2..n_entries));
        fixture.import(A, START + HOUR).await.unwrap();
        // Both are due for removal. The number of renamed entries decides between an ordinary and a staged write.
        fixture.server.body(list((2..n_entries).map(|it| (it, format!("Renamed {it}")))));
        let store = fixture.models.store.clone();
        let options = ImportOptions { at: Some(START + 3 * DAY), ..ImportOptions::default() };
        let meanwhile = move |progress: RefreshStatus| {
            if progress.phase == RefreshPhase::Writing {
                let mut channel = Channel::new(ChannelId(1), Uuid::from_u128(1), "one", START);
                channel.streams = vec![wanted];
                store.write_blocking(move |write| write.put(&channel)).unwrap();
            }
        };
        fixture.import_with(A, options, meanwhile).await.unwrap();
        let streams = fixture.streams(A).await;
        assert!(streams.iter().any(|it| it.id == wanted && it.last_seen == Some(START)));
        assert!(streams.iter().all(|it| it.id != unwanted));
        assert_eq!(streams.len(), n_entries - 1);
    }
}
