//! Imports that change nothing: invalid playlists, shrunken playlists, and accounts that changed during the import.

use actors::{ImportError, ImportOptions, RefreshPhase};
use domain::account::{Account, PlaylistLocation, RefreshOutcome};
use domain::ids::AccountId;
use domain::source_url::SourceUrl;
use storage::{Error, Write};

use super::fixture::{A, After, DAY, HOUR, ImportFixture, MANY, START, gzip, plain};

// Holds T-sync.1.
#[tokio::test]
async fn an_invalid_playlist_changes_nothing_and_is_reported_without_credentials() {
    let head = |status: &str, length: usize| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n")
    };
    let whole = |status: &str, body: &str| (head(status, body.len()) + body).into_bytes();
    let ok = |body: &str| whole("200 OK", body);
    let good = plain(0..100);
    // Slightly less than half: exactly half is accepted.
    let half = &good[..good.len() * 45 / 100];
    let mut cut_gzip = gzip(good.as_bytes());
    cut_gzip.truncate(cut_gzip.len() - 9);
    let packed = |body: Vec<u8>| [head("200 OK", body.len()).into_bytes(), body].concat();
    let hls = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n#EXTINF:4,\none.ts\n";
    let cases: Vec<(&str, Vec<u8>, After, &str)> = vec![
        ("nothing", ok(""), After::Close, "The playlist has no entries."),
        ("an empty list", ok("#EXTM3U\n"), After::Close, "The playlist has no entries."),
        (
            "a page",
            ok("<!DOCTYPE html><html><body>expired</body></html>"),
            After::Close,
            "This is not a playlist.",
        ),
        ("null", ok("null"), After::Close, "The playlist has no entries."),
        ("{}", ok("{}"), After::Close, "This is not a playlist."),
        ("[]", ok("[]"), After::Close, "This is not a playlist."),
        ("false", ok("false"), After::Close, "The playlist has no entries."),
        ("500", whole("500 Oops", &good), After::Close, "\"127.0.0.1\" answered 500 Internal Server Error."),
        ("401", whole("401 No", &good), After::Close, "\"127.0.0.1\" answered 401 Unauthorized."),
        ("no answer", Vec::new(), After::Close, "Failed to fetch from \"127.0.0.1\": "),
        (
            "half a list",
            ok(half),
            After::Close,
            "The playlist has 45 entries, and the last good one had 100;",
        ),
        (
            "a truncated body",
            (head("200 OK", good.len()) + half).into_bytes(),
            After::Close,
            "Failed to fetch from",
        ),
        (
            "a truncated chunk",
            format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{half}\r\n", half.len())
                .into(),
            After::Close,
            "Failed to fetch from",
        ),
        ("cut gzip", packed(cut_gzip), After::Close, "Failed to read the playlist: "),
        ("a stream of its own", ok(hls), After::Close, "This is the playlist of one HLS stream"),
        (
            "another encoding",
            whole("200 OK\r\nContent-Encoding: br", &good),
            After::Close,
            "\"127.0.0.1\" answered with an unsupported content encoding",
        ),
        (
            "local files",
            ok("#EXTM3U\n#EXTINF:-1,x\nfile:///etc/passwd\n"),
            After::Close,
            "The playlist has no entries.",
        ),
        // Must be last: these cases shorten the read timeout.
        ("silence", Vec::new(), After::Hold, "Failed to fetch from \"127.0.0.1\": "),
        (
            "silence within",
            (head("200 OK", good.len()) + half).into_bytes(),
            After::Hold,
            "Failed to fetch from",
        ),
    ];
    let mut fixture = ImportFixture::new().await;
    fixture.server.body(&good);
    fixture.import(A, START).await.unwrap();
    fixture.channel(1, &[fixture.streams(A).await[0].id]).await;
    let stored = fixture.streams(A).await;
    let groups = fixture.groups();
    let before = fixture.refresh(A);
    assert_eq!(
        (stored.len(), groups.len(), before.outcome, before.n_good),
        (100, 7, RefreshOutcome::Success, 100)
    );
    let patient = fixture.fetch.clone();
    for (day, (what, answer, after, reply)) in (1..).zip(cases) {
        if matches!(after, After::Hold) {
            fixture.shorten_read_timeout();
        }
        fixture.server.raw(answer, after);
        let refused = fixture.import(A, START + day * 30 * DAY).await;
        assert!(refused.is_err(), "{what}: {refused:?}");
        assert_eq!(fixture.streams(A).await, stored, "{what}");
        assert_eq!(fixture.groups(), groups, "{what}");
        let refresh = fixture.refresh(A);
        let waits = what == "half a list";
        assert_eq!(
            refresh.outcome,
            if waits { RefreshOutcome::AwaitingConfirmation } else { RefreshOutcome::Error },
            "{what}"
        );
        assert!(refresh.message.starts_with(reply), "{what}: {}", refresh.message);
        for secret in ["hunter2", "anna", "get.php"] {
            assert!(!refresh.message.contains(secret), "{what}: {}", refresh.message);
        }
        assert_eq!(
            (refresh.good_at, refresh.n_good),
            (before.good_at, before.n_good),
            "{what}: the last good result is kept"
        );
        assert_eq!(refresh.tried_at, START + day * 30 * DAY, "{what}");
    }
    fixture.fetch = patient;
    // A good playlist much later finds everything unchanged.
    fixture.server.body(&good);
    let imported = fixture.import(A, START + 1000 * DAY).await.unwrap();
    assert_eq!((imported.n_new, imported.n_changed, imported.n_stale, imported.n_removed), (0, 0, 0, 0));
    assert_eq!(fixture.refresh(A).outcome, RefreshOutcome::Success);
}

#[tokio::test]
async fn a_list_that_shrank_by_more_than_half_is_imported_after_confirmation() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..100));
    fixture.import(A, START).await.unwrap();
    fixture.server.body(plain(0..50));
    let imported = fixture.import(A, START + HOUR).await.unwrap();
    assert_eq!(imported.n_stale, 50, "half is accepted");
    fixture.server.body(plain(0..24));
    for _ in 0..2 {
        let refused = fixture.import(A, START + 2 * HOUR).await;
        assert!(matches!(refused, Err(ImportError::Shrunken { before: 50, now: 24 })), "{refused:?}");
    }
    let options = ImportOptions { confirm: true, at: Some(START + 3 * HOUR), ..ImportOptions::default() };
    assert_eq!(fixture.import_with(A, options.clone(), |_| {}).await.unwrap().n_stale, 26);
    assert_eq!((fixture.refresh(A).outcome, fixture.refresh(A).n_good), (RefreshOutcome::Success, 24));
    // Confirmation does not apply to an empty playlist.
    fixture.server.body("");
    assert!(matches!(fixture.import_with(A, options, |_| {}).await, Err(ImportError::Empty)));
}

// Holds T-sync.6.
#[tokio::test]
async fn a_list_without_half_of_the_known_streams_is_imported_after_confirmation() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..100));
    fixture.import(A, START).await.unwrap();
    let before = fixture.streams(A).await;
    // As large as before, but of somebody else: a new password in all addresses, for example.
    fixture.server.body(plain(51..200));
    let refused = fixture.import(A, START + HOUR).await;
    assert!(matches!(refused, Err(ImportError::Unfamiliar { n_known: 100, n_seen: 49 })), "{refused:?}");
    assert_eq!(fixture.streams(A).await, before);
    let refresh = fixture.refresh(A);
    assert_eq!(refresh.outcome, RefreshOutcome::AwaitingConfirmation);
    assert!(refresh.message.starts_with("Only 49 of the 100 known streams are in"), "{}", refresh.message);
    let options = ImportOptions { confirm: true, at: Some(START + 2 * HOUR), ..ImportOptions::default() };
    assert_eq!(fixture.import_with(A, options, |_| {}).await.unwrap().n_stale, 51);
    // Confirmed once, it is not asked for again.
    assert_eq!(fixture.import(A, START + 3 * HOUR).await.unwrap().n_stale, 0);
}

// Holds T-sync.7.
#[tokio::test]
async fn a_loss_that_creeps_over_a_week_needs_confirmation() {
    // With 0 days, lost streams are removed by the next refresh, and only the sizes of the lists are left.
    for stale_stream_days in [7, 0] {
        let fixture = ImportFixture::new().await;
        fixture.account(A, |it| it.stale_stream_days = stale_stream_days).await;
        fixture.server.body(plain(0..100));
        fixture.import(A, START).await.unwrap();
        for (day, n_left) in (1..).zip([85, 70, 60, 50]) {
            fixture.server.body(plain(0..n_left));
            fixture.import(A, START + day * DAY).await.unwrap();
        }
        fixture.server.body(plain(0..45));
        let refused = fixture.import(A, START + 5 * DAY).await;
        assert!(
            matches!(refused, Err(ImportError::Dwindled { n_known: 100, n_seen: 45 })),
            "{stale_stream_days} days: {refused:?}"
        );
        let message = fixture.refresh(A).message;
        assert!(
            message.starts_with("Only 45 streams are left") && message.contains("of the 100 that"),
            "{message}"
        );
        // The same loss over two weeks is accepted.
        assert!(fixture.import(A, START + 8 * DAY).await.is_ok());
    }
}

// Holds T-sync.8.
#[tokio::test]
async fn streams_that_became_stale_under_a_wrong_clock_are_kept() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..100));
    fixture.import(A, HOUR).await.unwrap();
    fixture.server.body(plain(0..60));
    assert_eq!(fixture.import(A, 2 * HOUR).await.unwrap().n_stale, 40);
    // The clock is set: by its old times, the 40 streams have been stale for 60 years.
    for hours in 0..3 {
        let imported = fixture.import(A, START + hours * HOUR).await.unwrap();
        assert_eq!((imported.n_removed, fixture.streams(A).await.len()), (0, 100));
    }
    assert_eq!(fixture.import(A, START + 8 * DAY).await.unwrap().n_removed, 40);
}

#[tokio::test]
async fn an_account_that_is_deleted_or_deactivated_during_an_import_gets_no_streams() {
    type Change = fn(&mut Write<'_>) -> Result<(), Error>;
    let switched_off: Change = |write| {
        let account = write.get::<Account>(A.0)?.expect("the account exists");
        write.put(&Account { is_active: false, ..account })
    };
    let deleted: Change = |write| write.remove::<Account>(A.0).map(drop);
    let moved: Change = |write| {
        let account = write.get::<Account>(A.0)?.expect("the account exists");
        write.put(&Account {
            list: PlaylistLocation::Url(SourceUrl::new("http://elsewhere.example/")),
            ..account
        })
    };
    for change in [switched_off, deleted, moved] {
        for n_entries in [10, MANY] {
            let fixture = ImportFixture::new().await;
            fixture.server.body(plain(0..n_entries));
            let store = fixture.models.store.clone();
            let options = ImportOptions { at: Some(START), ..ImportOptions::default() };
            let refused = fixture
                .import_with(A, options, move |progress| {
                    if progress.phase == RefreshPhase::Writing {
                        store.write_blocking(change).unwrap();
                    }
                })
                .await;
            assert!(matches!(refused, Err(ImportError::AccountChanged)), "{refused:?}");
            assert!(fixture.streams(A).await.is_empty());
            assert!(fixture.groups().is_empty());
        }
    }
    let fixture = ImportFixture::new().await;
    assert!(matches!(fixture.import(AccountId(99), START).await, Err(ImportError::NoSuchAccount)));
    assert!(matches!(fixture.import(AccountId(1), START).await, Err(ImportError::NoList)));
    fixture.account(A, |it| it.is_active = false).await;
    assert!(matches!(fixture.import(A, START).await, Err(ImportError::Inactive)));
}

#[tokio::test]
async fn an_import_that_is_stopped_writes_nothing() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..MANY));
    for phase in
        [RefreshPhase::Fetching, RefreshPhase::Parsing, RefreshPhase::Comparing, RefreshPhase::Writing]
    {
        let options = ImportOptions::default();
        let stop = options.stop.clone();
        let stopped = fixture
            .import_with(A, options, move |progress| {
                if progress.phase == phase {
                    stop.cancel();
                }
            })
            .await;
        assert!(matches!(stopped, Err(ImportError::Stopped)), "{phase:?}: {stopped:?}");
        assert!(fixture.streams(A).await.is_empty(), "{phase:?}");
        assert!(fixture.models.refreshes.load().is_empty(), "{phase:?}: a stop is not recorded as a failure");
    }
    // A stop does not wait for a silent server.
    fixture.server.raw("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n#EXTM3U", After::Hold);
    let options = ImportOptions::default();
    let stop = options.stop.clone();
    let stopped = fixture
        .import_with(A, options, move |it| {
            if it.bytes > 0 {
                stop.cancel()
            }
        })
        .await;
    assert!(matches!(stopped, Err(ImportError::Stopped)), "{stopped:?}");
}
