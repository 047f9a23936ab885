//! Damaged streams are fetched again and keep their ids, so that channels keep their streams.

use domain::account::{RefreshRecord, StreamIdentity};
use domain::channel::Channel;
use domain::ids::StreamId;
use domain::stream::Stream;
use domain::stream_ids::StreamIdPage;
use storage::Record;

use super::fixture::{A, B, HOUR, ImportFixture, MANY, START, blocking, ids, list, plain};

/// Damages all blocks of streams, and opens the store again.
async fn damage(fixture: ImportFixture) -> ImportFixture {
    let folder = fixture.close().await;
    let at = folder.path().join("store");
    let n_blocks = blocking(move || storage::testing::damage_blocks(&at, Stream::COLLECTION).unwrap()).await;
    let fixture = ImportFixture::open(folder).await;
    assert_eq!(fixture.models.store.set_aside().len(), n_blocks);
    assert!(n_blocks > 0 && fixture.streams(A).await.is_empty());
    fixture
}

fn channel_streams(fixture: &ImportFixture) -> Vec<StreamId> {
    fixture.models.channels.load().get(1).map(|it: &std::sync::Arc<Channel>| it.streams.clone()).unwrap()
}

// Holds T-store.5.
#[tokio::test]
async fn damaged_streams_come_back_with_their_ids_and_channels_keep_them() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..400));
    fixture.import(A, START).await.unwrap();
    fixture.import(B, START).await.unwrap();
    let mut shuffled: Vec<_> = (0..400).collect();
    shuffled.reverse();
    // A removed stream, and one that was added by a later and small write.
    fixture.server.body(plain(shuffled.iter().copied().chain([1_000])));
    fixture.import(A, START + HOUR).await.unwrap();
    let before = [ids(&fixture.streams(A).await), ids(&fixture.streams(B).await)];
    let used: Vec<_> = before[0].values().copied().take(3).collect();
    fixture.channel(1, &used).await;

    let fixture = damage(fixture).await;
    fixture.server.body(plain(shuffled.into_iter().chain([1_000])));
    for account in [A, B] {
        fixture.import(account, START + 2 * HOUR).await.unwrap();
    }
    assert_eq!(ids(&fixture.streams(A).await), before[0]);
    let mut of_b = ids(&fixture.streams(B).await);
    of_b.retain(|url, _| before[1].contains_key(url));
    assert_eq!(of_b, before[1]);
    assert_eq!(channel_streams(&fixture), used);
    assert!(fixture.models.store.set_aside().is_empty());
}

#[tokio::test]
async fn damaged_streams_keep_their_ids_when_so_much_is_new_that_all_are_written() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..400));
    fixture.import(A, START).await.unwrap();
    let before = ids(&fixture.streams(A).await);
    let fixture = damage(fixture).await;
    fixture.server.body(plain((0..400).chain(1_000..1_000 + MANY)));
    fixture.import(A, START + HOUR).await.unwrap();
    let after = ids(&fixture.streams(A).await);
    assert_eq!(after.len(), 400 + MANY);
    before.iter().for_each(|(url, id)| assert_eq!(after.get(url), Some(id), "{url}"));
}

#[tokio::test]
async fn ids_are_recorded_anew_when_the_identity_of_an_account_changes_and_in_a_store_of_an_earlier_version()
{
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..400));
    fixture.import(A, START).await.unwrap();
    fixture
        .write(|write| {
            for number in 0..3 {
                write.remove::<StreamIdPage>(number)?;
            }
            let refresh = write.get::<RefreshRecord>(A.0)?.expect("it was refreshed");
            write.put(&RefreshRecord { ids_recorded_by: None, ..refresh })
        })
        .await;
    // Nothing changes, and the ids are recorded.
    fixture.import(A, START + HOUR).await.unwrap();
    let before = fixture.streams(A).await;
    let fixture = damage(fixture).await;
    fixture.server.body(plain(0..400));
    fixture.import(A, START + 2 * HOUR).await.unwrap();
    assert_eq!(ids(&fixture.streams(A).await), ids(&before));
    fixture.account(A, |it| it.identity = StreamIdentity::StreamId).await;
    fixture.import(A, START + 3 * HOUR).await.unwrap();

    let fixture = damage(fixture).await;
    // Another login: only the new identity finds the streams.
    fixture.server.body(plain(0..400).replace("hunter2", "correct-horse"));
    fixture.import(A, START + 4 * HOUR).await.unwrap();
    let after = fixture.streams(A).await;
    assert_eq!(
        after.iter().map(|it| it.id).collect::<Vec<_>>(),
        before.iter().map(|it| it.id).collect::<Vec<_>>()
    );
}

#[tokio::test]
async fn the_id_of_a_removed_stream_is_not_given_back() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..400));
    fixture.import(A, START).await.unwrap();
    let first = ids(&fixture.streams(A).await);
    let gone = first.values().next_back().copied().unwrap();
    fixture.account(A, |it| it.stale_stream_days = 0).await;
    let (url, _) = first.iter().find(|it| *it.1 == gone).unwrap();
    let rest =
        list((0..400).filter(|it| super::fixture::url(*it) != *url).map(|it| (it, format!("Channel {it}"))));
    fixture.server.body(&rest);
    for hour in 1..3 {
        fixture.import(A, START + hour * HOUR).await.unwrap();
    }
    assert_eq!(fixture.streams(A).await.len(), 399);
    let fixture = damage(fixture).await;
    fixture.server.body(plain(0..400));
    fixture.import(A, START + 3 * HOUR).await.unwrap();
    let after = ids(&fixture.streams(A).await);
    assert_eq!(after.len(), 400);
    for (other, id) in &first {
        assert_eq!(after.get(other) == Some(id), *id != gone, "{other}");
    }
}
