//! Sources of playlists: compression, files, headers, groups, and progress reports.

use std::sync::Arc;

use actors::{ImportError, ImportOptions, RefreshPhase, RefreshStart};
use domain::account::{Account, PlaylistLocation, RefreshOutcome};
use domain::group::Group;
use domain::ids::GroupId;
use domain::source_url::SourceUrl;
use domain::stream::RequestHeaders;
use parking_lot::Mutex;

use super::fixture::{A, B, HOUR, ImportFixture, ListServer, MANY, START, gzip, plain};
use crate::support::eventually;
use crate::support::gateway::Setup;
use crate::support::signal::Picture;
use crate::support::upstream::Provider;

#[tokio::test]
async fn groups_of_a_list_are_created_once_and_a_renamed_group_is_not_created_again() {
    let fixture = ImportFixture::new().await;
    let mut renamed = Group::new(GroupId(40), "Group 1");
    renamed.rename("News");
    fixture.write(move |write| write.put(&renamed)).await;
    fixture.server.body(plain(0..MANY));
    fixture.import(A, START).await.unwrap();
    fixture.import(B, START).await.unwrap();
    let mut groups = fixture.groups();
    groups.sort_unstable();
    assert_eq!(groups, ["Group 0", "Group 2", "Group 3", "Group 4", "Group 5", "Group 6", "News"]);
    // The stream keeps the group name that the provider uses.
    assert_eq!(fixture.streams(A).await[1].group(), Some("Group 1"));
    // A group name that is too long is truncated.
    let long = "é".repeat(300);
    fixture
        .server
        .body(plain(0..MANY) + &format!("#EXTINF:-1 group-title=\"{long}\",x\nhttp://tv.example/x\n"));
    fixture.import(A, START + HOUR).await.unwrap();
    assert!(fixture.groups().contains(&"é".repeat(255)));
}

#[tokio::test]
async fn a_list_may_be_compressed_or_a_local_file_and_only_a_local_file_may_list_file_urls() {
    let fixture = ImportFixture::new().await;
    let text = plain(0..10) + "#EXTINF:-1,Film\nfile:///films/one.ts\n";
    fixture.server.body(gzip(text.as_bytes()));
    let imported = fixture.import(A, START).await.unwrap();
    assert_eq!((imported.n_entries, imported.n_problems), (10, 1));
    assert_eq!(imported.problems[0].line, 22, "{:?}", imported.problems);
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [("list.m3u", text.clone().into_bytes()), ("list.m3u.gz", gzip(text.as_bytes()))] {
        let path = folder.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        fixture.account(B, |it| it.list = PlaylistLocation::File(path.to_str().unwrap().to_owned())).await;
        assert_eq!(fixture.import(B, START).await.unwrap().n_entries, 11);
    }
    let nowhere = [folder.path().to_owned(), folder.path().join("missing"), "/dev/zero".into()];
    for path in nowhere {
        fixture.account(B, |it| it.list = PlaylistLocation::File(path.to_str().unwrap().to_owned())).await;
        assert!(matches!(fixture.import(B, START).await, Err(ImportError::File(_))), "{}", path.display());
    }
}

#[tokio::test]
async fn an_account_sends_its_own_headers() {
    let fixture = ImportFixture::new().await;
    let headers = RequestHeaders {
        user_agent: Some("Box/1".to_owned()),
        referrer: Some("http://r.example/".to_owned()),
        extra: vec![("X-Token".to_owned(), "k1".to_owned())],
    };
    fixture.account(A, |it| it.headers = headers).await;
    fixture.server.body(plain(0..3));
    fixture.import(A, START).await.unwrap();
    let head = fixture.server.heads.lock().concat().to_ascii_lowercase();
    for line in ["user-agent: box/1", "referer: http://r.example/", "x-token: k1"] {
        assert!(head.contains(&format!("\r\n{line}\r\n")), "{head}");
    }
}

#[tokio::test]
async fn an_import_reports_its_progress() {
    let fixture = ImportFixture::new().await;
    fixture.server.body(plain(0..MANY));
    let seen = Arc::new(Mutex::new(Vec::new()));
    let reports = seen.clone();
    fixture.import_with(A, ImportOptions::default(), move |it| reports.lock().push(it)).await.unwrap();
    let seen = seen.lock();
    let mut phases: Vec<_> = seen.iter().map(|it| it.phase).collect();
    phases.dedup();
    assert_eq!(
        phases,
        [
            RefreshPhase::Fetching,
            RefreshPhase::Parsing,
            RefreshPhase::Comparing,
            RefreshPhase::Writing,
            RefreshPhase::Done
        ]
    );
    assert!(seen.windows(2).all(|it| it[0].bytes <= it[1].bytes && it[0].entries <= it[1].entries));
    let last = seen.last().unwrap();
    assert_eq!(
        (last.entries as usize, last.n_new as usize, last.outcome),
        (MANY, MANY, Some(RefreshOutcome::Success))
    );
    assert!(last.message.starts_with("2600 entries: 2600 new, "), "{}", last.message);
}

/// The path of the watched stream.
const NEWS: &str = "/live/anna/news.ts";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_import_does_not_disturb_a_viewer_of_the_account() {
    let provider = Provider::start();
    provider.path(NEWS).plays(Picture::new("news"));
    let list = provider.playlist(&[("news", "News", NEWS)]);
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    let player = gateway.watch("News").await;
    player.sees("news").await;
    let server = ListServer::start().await;
    server.body(list + &plain(0..20_000));
    let account = Account::clone(gateway.models().accounts.load().get(A.0).unwrap());
    let account = Account { list: PlaylistLocation::Url(SourceUrl::new(server.url.clone())), ..account };
    gateway.change(move |write| write.put(&account)).await;

    let importer = gateway.gateway.importer();
    let started = importer.refresh(A, false).await.unwrap();
    assert!(matches!(started, RefreshStart::Started { .. }), "{started:?}");
    let is_done = || importer.progress_of(A).is_some_and(|it| it.phase == RefreshPhase::Done);
    eventually("the end of the import", is_done).await;
    let done = importer.progress_of(A).unwrap();
    assert_eq!(
        (done.outcome, done.n_new, done.n_changed, done.n_gone),
        (Some(RefreshOutcome::Success), 20_000, 0, 0)
    );
    player.more_bytes(500_000).await;
    assert!(player.is_watching());
    assert_eq!(provider.path(NEWS).n_requests(), 1, "the source was opened only once");
    eventually("the event", || gateway.n_events("m3u_refresh") == 1).await;
    assert_eq!(gateway.event_names(), ["client_connect", "channel_start", "m3u_refresh"]);
}
