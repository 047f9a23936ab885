//! What admins do stays done, whatever the provider says.

use std::sync::Arc;

use actors::{ImportError, ImportOptions, RefreshPhase, RefreshStatus};
use domain::account::{Rule, RuleField};
use domain::channel::Channel;
use domain::ids::{ChannelId, StreamProfileId};
use domain::stream::Stream;
use parking_lot::Mutex;
use uuid::Uuid;

use super::house::{A, DAY, HOUR, House, MANY, START, edit, ids, list, plain, url};

// Holds T-sync.4.
#[tokio::test]
async fn what_admins_changed_outlives_refreshes_and_clearing_it_shows_what_the_provider_says_now() {
    for n_entries in [20, MANY] {
        let house = House::new().await;
        house.server.body(plain(0..n_entries));
        house.import(A, START).await.unwrap();
        let id = ids(&house.streams(A).await)[&url(5)];
        house
            .edit(id, |it| {
                it.manual.name = Some("Ours".to_owned());
                it.manual.group = Some(String::new());
                it.stream_profile = Some(StreamProfileId(1));
            })
            .await;
        for round in 1..=3 {
            house.server.body(list((0..n_entries).rev().map(|it| (it, format!("Theirs {it}.{round}")))));
            let imported = house.import(A, START + round * HOUR).await.unwrap();
            assert_eq!(imported.n_changed as usize, n_entries);
            let stream = house.streams(A).await.into_iter().find(|it| it.id == id).unwrap();
            assert_eq!((stream.name(), stream.group()), ("Ours", None));
            assert_eq!(stream.stream_profile, Some(StreamProfileId(1)));
            assert_eq!(stream.provider.name, format!("Theirs 5.{round}"));
        }
        house.edit(id, |it| it.manual = Default::default()).await;
        let stream = house.streams(A).await.into_iter().find(|it| it.id == id).unwrap();
        assert_eq!((stream.name(), stream.group()), ("Theirs 5.3", Some("Group 5")));
    }
}

#[tokio::test]
async fn rules_of_an_account_apply_to_what_is_listed_and_change_with_the_next_refresh() {
    let house = House::new().await;
    let rule = |find: &str, replace: &str| {
        vec![Rule { field: RuleField::Name, find: find.to_owned(), replace: replace.to_owned() }]
    };
    house.account(A, |it| it.rules = rule("^Channel ", "")).await;
    house.server.body(plain(1..5));
    house.import(A, START).await.unwrap();
    let names = async || house.streams(A).await.iter().map(|it| it.name().to_owned()).collect::<Vec<_>>();
    assert_eq!(names().await, ["1", "2", "3", "4"]);
    house.account(A, |it| it.rules = Vec::new()).await;
    assert_eq!(house.import(A, START + HOUR).await.unwrap().n_changed, 4);
    assert_eq!(names().await, ["Channel 1", "Channel 2", "Channel 3", "Channel 4"]);
    house.account(A, |it| it.rules = rule("(", "")).await;
    assert!(matches!(house.import(A, START + 2 * HOUR).await, Err(ImportError::Rules(_))));
    assert!(house.refresh(A).message.starts_with("The account has a rule that cannot be used: rule 1: "));
}

/// Admins go on working while a large list lands: before it is written, and in the midst of it.
#[tokio::test]
async fn what_admins_do_while_a_large_list_is_imported_is_not_lost() {
    let house = House::new().await;
    house.server.body(plain(0..MANY * 4));
    house.import(A, START).await.unwrap();
    let first: Vec<_> = house.streams(A).await.iter().map(|it| it.id).collect();
    house.server.body(list((0..MANY * 4).map(|it| (it, format!("Renamed {it}")))));
    let (store, ids) = (house.models.store.clone(), first.clone());
    let n_told = Arc::new(Mutex::new(0));
    let told = n_told.clone();
    let options = ImportOptions { at: Some(START + HOUR), ..ImportOptions::default() };
    let meanwhile = move |progress: RefreshStatus| {
        if progress.phase == RefreshPhase::Writing {
            let mut n_told = told.lock();
            let (edited, deleted) = (ids[*n_told * 2], ids[*n_told * 2 + 1]);
            *n_told += 1;
            let write = store.write_blocking(move |write| {
                assert!(write.remove::<Stream>(deleted.0)?);
                edit(write, edited, |it| it.manual.name = Some("Ours".to_owned()))
            });
            write.unwrap();
        }
    };
    house.import_with(A, options, meanwhile).await.unwrap();
    let n_told = *n_told.lock();
    assert!(n_told > 10, "it was told {n_told} times");
    let streams = house.streams(A).await;
    // What was deleted first was gone before the list was compared once more, and is listed: it is a new stream.
    assert_eq!(streams.len(), MANY * 4 - n_told + 1);
    for (at, id) in first.iter().enumerate() {
        let stream = streams.iter().find(|it| it.id == *id);
        match (at % 2, at < n_told * 2) {
            (1, true) => assert!(stream.is_none(), "stream {id} is back"),
            (0, true) => assert_eq!(stream.unwrap().name(), "Ours", "the edit of stream {id} is lost"),
            _ => assert_eq!(stream.unwrap().name(), format!("Renamed {at}")),
        }
    }
    assert!(streams.iter().all(|it| it.provider.name.starts_with("Renamed ")), "and the list is taken");
}

#[tokio::test]
async fn a_stream_that_a_channel_begins_to_play_meanwhile_is_not_removed() {
    for n_entries in [20, MANY] {
        let house = House::new().await;
        house.account(A, |it| it.stale_stream_days = 1).await;
        house.server.body(plain(0..n_entries));
        house.import(A, START).await.unwrap();
        let first = ids(&house.streams(A).await);
        let (wanted, unwanted) = (first[&url(0)], first[&url(1)]);
        house.server.body(plain(2..n_entries));
        house.import(A, START + HOUR).await.unwrap();
        // Both are due to be removed, and so many names change that it takes the one or the other way to write.
        house.server.body(list((2..n_entries).map(|it| (it, format!("Renamed {it}")))));
        let store = house.models.store.clone();
        let options = ImportOptions { at: Some(START + 3 * DAY), ..ImportOptions::default() };
        let meanwhile = move |progress: RefreshStatus| {
            if progress.phase == RefreshPhase::Writing {
                let mut channel = Channel::new(ChannelId(1), Uuid::from_u128(1), "one", START);
                channel.streams = vec![wanted];
                store.write_blocking(move |write| write.put(&channel)).unwrap();
            }
        };
        house.import_with(A, options, meanwhile).await.unwrap();
        let streams = house.streams(A).await;
        assert!(streams.iter().any(|it| it.id == wanted && it.last_seen == Some(START)));
        assert!(streams.iter().all(|it| it.id != unwanted));
        assert_eq!(streams.len(), n_entries - 1);
    }
}
