//! Stream identity: which streams keep their ids, which are removed, and which records a refresh does not touch.

use std::collections::{BTreeMap, BTreeSet};

use actors::ImportOptions;
use domain::stream::Stream;
use storage::{ChangeMessage, ChangedIds};

use super::fixture::{A, B, DAY, Dice, HOUR, ImportFixture, MANY, START, ids, list, plain, url};

// Holds T-id.1.
#[tokio::test]
async fn a_stream_keeps_its_id_over_ten_refreshes_with_shuffles_renames_and_gaps() {
    let fixture = ImportFixture::new().await;
    let mut dice = Dice(7);
    let mut known = BTreeMap::new();
    for round in 0..10 {
        let mut entries = Vec::new();
        for number in 0..300 {
            if dice.roll(10) > 0 {
                let colour = ["red", "green", "blue"][dice.roll(3)];
                entries.push((number, format!("Name {number} {colour}")));
            }
        }
        dice.shuffle(&mut entries);
        fixture.server.body(list(entries.iter().cloned()));
        fixture.import(A, START + round * HOUR).await.unwrap();
        let streams = fixture.streams(A).await;
        let now = ids(&streams);
        for (url, id) in &known {
            assert_eq!(now.get(url), Some(id), "round {round}: {url}");
        }
        let unique: BTreeSet<_> = now.values().collect();
        assert_eq!(
            (unique.len(), now.len()),
            (streams.len(), streams.len()),
            "round {round}: one id, one thing"
        );
        for (number, name) in &entries {
            let stream = streams.iter().find(|it| it.provider.url.expose() == url(*number)).unwrap();
            assert_eq!((stream.name(), stream.is_stale()), (name.as_str(), false), "round {round}");
        }
        assert_eq!(streams.iter().filter(|it| !it.is_stale()).count(), entries.len());
        known = now;
    }
}

#[tokio::test]
async fn a_changed_password_or_host_keeps_stream_ids() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(1..50));
    fixture.import(A, START).await.unwrap();
    let before: Vec<_> = fixture.streams(A).await.iter().map(|it| it.id).collect();
    fixture
        .server
        .body(plain(1..50).replace("hunter2", "correct-horse").replace("tv.example", "tv2.example"));
    let imported = fixture.import(A, START + HOUR).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 49, 0));
    let after = fixture.streams(A).await;
    assert_eq!(after.iter().map(|it| it.id).collect::<Vec<_>>(), before);
    assert!(
        after
            .iter()
            .all(|it| it.url().expose().starts_with("http://tv2.example:8080/live/anna/correct-horse/"))
    );
}

#[tokio::test]
async fn a_missing_stream_is_stale_then_removed_but_never_while_a_channel_uses_it() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..10));
    fixture.import(A, START).await.unwrap();
    let first = ids(&fixture.streams(A).await);
    let (used, unused) = (first[&url(8)], first[&url(9)]);
    fixture.channel(1, &[used]).await;
    fixture.server.body(plain(0..8));
    let stale_at = |streams: &[Stream]| -> Vec<_> {
        streams.iter().filter_map(|it| Some((it.id, it.last_seen?))).collect()
    };

    let imported = fixture.import(A, START + DAY).await.unwrap();
    assert_eq!((imported.n_stale, imported.n_removed), (2, 0));
    assert_eq!(
        stale_at(&fixture.streams(A).await),
        [(used, START), (unused, START)],
        "last seen in the last good list"
    );
    let imported = fixture.import(A, START + 6 * DAY).await.unwrap();
    assert_eq!((imported.n_stale, imported.n_removed), (0, 0), "less than seven days have passed");
    let imported = fixture.import(A, START + 7 * DAY).await.unwrap();
    assert_eq!((imported.n_stale, imported.n_removed), (0, 1));
    assert_eq!(stale_at(&fixture.streams(A).await), [(used, START)]);
    fixture.import(A, START + 70 * DAY).await.unwrap();
    assert_eq!(stale_at(&fixture.streams(A).await), [(used, START)]);

    // The stale stream is restored; the removed one is imported as a new stream.
    fixture.server.body(plain(0..10));
    let imported = fixture.import(A, START + 71 * DAY).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed), (1, 1));
    let streams = fixture.streams(A).await;
    assert!(stale_at(&streams).is_empty());
    assert_eq!(ids(&streams)[&url(8)], used);
    assert!(!first.values().any(|it| *it == ids(&streams)[&url(9)]), "an id is never reused");
}

// Holds T-sync.2.
#[tokio::test]
async fn an_unchanged_list_writes_only_the_result_of_the_refresh() {
    for n_entries in [100, MANY] {
        let fixture = ImportFixture::new().await;
        // Duplicate URLs and an entry without group or guide id are included.
        let text = plain((0..n_entries).chain([3, 3])) + "#EXTINF:-1,Plain\nhttp://tv.example/plain\n";
        fixture.server.body(&text);
        let imported = fixture.import(A, START).await.unwrap();
        assert_eq!(imported.n_new as usize, n_entries + 3);
        let stored = fixture.streams(A).await;
        let fingerprint = fixture.models.store.collection::<Stream>().fingerprint_of(2);
        let mut changes = fixture.models.store.changes();
        let imported = fixture.import(A, START + HOUR).await.unwrap();
        assert_eq!((imported.n_new, imported.n_changed, imported.n_stale), (0, 0, 0));
        let Some(ChangeMessage::Changed(change)) = changes.try_next() else {
            panic!("the refresh is recorded")
        };
        let touched: Vec<_> = change.collections.iter().map(|it| (it.collection, it.ids.clone())).collect();
        assert_eq!(touched, [("refreshes", ChangedIds::Few(vec![2]))]);
        assert_eq!(changes.try_next(), None);
        assert_eq!(fixture.models.store.collection::<Stream>().fingerprint_of(2), fingerprint);
        assert_eq!(fixture.streams(A).await, stored);
    }
}

// Holds T-sync.3.
#[tokio::test]
async fn a_refresh_does_not_change_streams_of_other_accounts() {
    let fixture = ImportFixture::new().await;
    let mut dice = Dice(11);
    // Both accounts list the same URLs, so only the account distinguishes their streams.
    fixture.server.body(plain(0..MANY));
    fixture.import(B, START).await.unwrap();
    let theirs = fixture.streams(B).await;
    let their_refresh = fixture.refresh(B);
    for round in 0..12 {
        let n_entries = [50, MANY + 100][dice.roll(2)];
        let first = dice.roll(1000);
        let mut entries: Vec<_> =
            (first..first + n_entries).map(|it| (it, format!("{it} {}", dice.roll(4)))).collect();
        dice.shuffle(&mut entries);
        fixture.server.body(if dice.roll(6) == 0 { "<html>".to_owned() } else { list(entries) });
        let options =
            ImportOptions { confirm: true, at: Some(START + round * 4 * DAY), ..ImportOptions::default() };
        let _ = fixture.import_with(A, options, |_| {}).await;
        assert_eq!(fixture.streams(B).await, theirs, "round {round}");
        assert_eq!(fixture.refresh(B), their_refresh);
    }
    let mine = fixture.streams(A).await;
    assert!(!mine.is_empty() && mine.iter().all(|it| theirs.iter().all(|other| it.id != other.id)));
}

#[tokio::test]
async fn two_entries_with_the_same_url_stay_two_streams() {
    let fixture = ImportFixture::new().await;
    let twice = |first: &str, second: &str| {
        format!(
            "#EXTM3U\n#EXTINF:-1,{first}\nhttp://tv.example/1\n#EXTINF:-1,{second}\nhttp://tv.example/1\n"
        )
    };
    fixture.server.body(twice("One", "Two"));
    fixture.import(A, START).await.unwrap();
    let before = fixture.streams(A).await;
    fixture.server.body(twice("One", "Zwei"));
    assert_eq!(fixture.import(A, START + HOUR).await.unwrap().n_changed, 1);
    let after = fixture.streams(A).await;
    assert_eq!(after[0], before[0]);
    assert_eq!((after[1].id, after[1].name()), (before[1].id, "Zwei"));
}

/// Returns a list whose addresses have another token each time.
fn with_tokens(n_entries: usize, token: &str) -> String {
    let entry = |it: usize| {
        format!(
            "#EXTINF:-1 tvg-id=\"id{it}\" group-title=\"G\",Channel {it}\nhttp://cdn.example/{token}/{it}/index.m3u8\n"
        )
    };
    "#EXTM3U\n".to_owned() + &(0..n_entries).map(entry).collect::<String>()
}

// Holds T-sync.10 for few and for many streams.
#[tokio::test]
async fn streams_keep_ids_channels_and_edits_when_every_address_changes() {
    for n_entries in [20, MANY] {
        let fixture = ImportFixture::new().await;
        fixture.server.body(with_tokens(n_entries, "AAAA1111"));
        fixture.import(A, START).await.unwrap();
        let before = fixture.streams(A).await;
        fixture.channel(1, &[before[3].id]).await;
        fixture.edit(before[3].id, |it| it.program = Some(7)).await;
        fixture.edit(before[4].id, |it| it.manual.name = Some("mine".to_owned())).await;
        fixture.server.body(with_tokens(n_entries, "BBBB2222"));
        let imported = fixture.import(A, START + HOUR).await.unwrap();
        assert_eq!((imported.n_new, imported.n_stale, imported.n_moved as usize), (0, 0, n_entries));
        let after = fixture.streams(A).await;
        let ids = |of: &[Stream]| of.iter().map(|it| it.id).collect::<Vec<_>>();
        assert_eq!(ids(&after), ids(&before));
        assert!(after.iter().all(|it| !it.is_stale() && it.url().expose().contains("/BBBB2222/")));
        assert_eq!((after[3].program, after[4].name()), (Some(7), "mine"), "{n_entries} entries");
        let message = fixture.refresh(A).message;
        assert!(
            message.contains(&format!("{n_entries} of the changed streams have another address")),
            "{message}"
        );
    }
}
