//! What admins do stays done, whatever the provider says.

use super::house::{A, HOUR, House, MANY, START, edit, ids, list, plain, url};
use actors::ImportError;
use domain::account::{Rule, RuleField};
use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{StreamId, StreamProfileId};
use domain::stream::Stream;
use std::sync::Arc;
use storage::Error;

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

/// Admins go on working while a large list lands.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_admins_do_while_a_large_list_is_imported_is_not_lost() {
    let house = House::new().await;
    house.server.body(plain(0..MANY * 4));
    house.import(A, START).await.unwrap();
    let first = house.streams(A).await;
    house.server.body(list((0..MANY * 4).map(|it| (it, format!("Renamed {it}")))));
    // Somebody edits one stream after the other, and deletes some, from before the comparison until after the landing.
    let is_over = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let writer = {
        let (models, is_over, ids) =
            (house.models.clone(), is_over.clone(), first.iter().map(|it| it.id).collect::<Vec<_>>());
        tokio::spawn(async move {
            let (mut edited, mut deleted) = (Vec::new(), Vec::new());
            for (number, id) in ids.into_iter().enumerate() {
                if is_over.load(std::sync::atomic::Ordering::SeqCst) {
                    break;
                }
                let done: Result<(), Error> = models
                    .store
                    .write(move |write| {
                        if number % 5 == 0 {
                            assert!(write.remove::<Stream>(id.0)?);
                            return Ok(());
                        }
                        edit(write, id, |it| it.manual.name = Some("Ours".to_owned()))
                    })
                    .await;
                done.unwrap();
                if number % 5 == 0 { deleted.push(id) } else { edited.push(id) }
            }
            (edited, deleted)
        })
    };
    house.import(A, START + HOUR).await.unwrap();
    is_over.store(true, std::sync::atomic::Ordering::SeqCst);
    let (edited, deleted) = writer.await.unwrap();
    assert!(edited.len() > 20 && deleted.len() > 5, "nothing happened meanwhile: {} edits", edited.len());
    let streams = house.streams(A).await;
    let of = |id: &StreamId| streams.iter().find(|it| it.id == *id);
    for id in &edited {
        let stream = of(id).unwrap_or_else(|| panic!("stream {id} is lost"));
        assert_eq!(stream.name(), "Ours", "the edit of stream {id} is lost");
        assert!(stream.provider.name.starts_with("Renamed "), "the list of stream {id} is lost");
    }
    for id in &deleted {
        assert!(of(id).is_none(), "stream {id} is back");
    }
    assert!(streams.iter().all(|it| it.provider.name.starts_with("Renamed ")));
}
