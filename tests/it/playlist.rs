//! `headwater play`: channels from playlists.

use crate::support::binary::Binary;
use crate::support::client::{Player, Request, fetch};
use crate::support::signal::Picture;
use crate::support::tools;
use crate::support::upstream::{MockResponse, Provider};

/// Two providers that both list "News"; one of them also lists films.
fn providers() -> (Provider, Provider) {
    let (anna, bert) = (Provider::start(), Provider::start());
    anna.path("/live/anna/news.ts").plays(Picture::new("anna's news"));
    anna.path("/live/anna/film.ts").plays(Picture::new("film"));
    bert.path("/live/bert/news.ts").plays(Picture::new("bert's news"));
    let list = anna.playlist(&[("news", "News", "/live/anna/news.ts"), ("", "Film", "/live/anna/film.ts")]);
    anna.path("/get.php?type=m3u").answers(MockResponse::text("audio/x-mpegurl", list));
    (anna, bert)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn entries_of_several_lists_with_one_id_become_one_channel_that_fails_over_between_them() {
    let (anna, bert) = providers();
    let second =
        tools::saved(bert.playlist(&[("news", "The news of Bert", "/live/bert/news.ts")]).as_bytes());
    let program = Binary::start(&["play", &anna.url("/get.php?type=m3u"), &second.path().to_string_lossy()]);
    let address = program.address().await;
    let list = fetch(address, Request::get("/playlist.m3u")).await;
    assert_eq!((list.status(), list.header("content-type")), (200, Some("audio/x-mpegurl")));
    let text = list.text();
    assert_eq!(text.matches("#EXTINF").count(), 2, "{text}");
    assert!(
        text.starts_with("#EXTM3U") && text.contains("tvg-id=\"1\"") && text.contains(",News\n"),
        "{text}"
    );
    let paths = program.streams().await;
    let player = Player::watch(address, &paths[0]).await;
    player.sees("anna's news").await;
    anna.unplug().await;
    player.sees("bert's news").await;
    player.received(|r| r.ts.assert_clean());
    anna.plug_in();
    Player::watch(address, &paths[1]).await.sees("film").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn urls_stay_the_same_between_runs_and_with_other_entries() {
    let (anna, _bert) = providers();
    let entries =
        [("a", "A", "/live/anna/a.ts"), ("", "B", "/live/anna/b.ts"), ("c", "C", "/live/anna/c.ts")];
    let whole = tools::saved(anna.playlist(&entries).as_bytes());
    let turned = tools::saved(anna.playlist(&[entries[2], ("c", "C", "/x.ts"), entries[1]]).as_bytes());
    let first = Binary::start(&["play", &whole.path().to_string_lossy()]).streams().await;
    let again = Binary::start(&["play", &whole.path().to_string_lossy()]).streams().await;
    let other = Binary::start(&["play", &turned.path().to_string_lossy()]).streams().await;
    assert_eq!(first, again);
    assert_eq!(other, [first[2].clone(), first[1].clone()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_lines_of_a_list_are_reported_by_number_and_the_rest_plays() {
    let provider = Provider::start();
    provider.path("/live/anna/good.ts").plays(Picture::new("good"));
    let mut list =
        b"\xEF\xBB\xBF#EXTM3U\r\n#EXTINF:-1 tvg-id=\"x\" broken=\"never closed,No End\r\n".to_vec();
    list.extend_from_slice(b"#EXTINF:-1,\xC3\xA4 lost one without an address\r\n");
    list.extend_from_slice(&[0, 1, 2, 0xFF, 0xFE, b'\n']);
    list.extend_from_slice(b"#EXTVLCOPT\r\n#KODIPROP:\r\n#EXTGRP:\r\n");
    list.extend_from_slice(
        format!(
            "#EXTINF:-1 tvg-logo=\"a=b,c\" , Good, really \r\n{}\r\n",
            provider.url("/live/anna/good.ts")
        )
        .as_bytes(),
    );
    list.extend_from_slice(&vec![b'x'; 300_000]);
    let list = tools::saved(&list);
    let page = tools::saved(b"<html><body>Not found</body></html>");
    let lists = [list.path(), page.path(), std::path::Path::new("/no/such/list.m3u")];
    let mut arguments = vec!["play"];
    let names: Vec<String> = lists.iter().map(|path| path.to_string_lossy().into_owned()).collect();
    arguments.extend(names.iter().map(String::as_str));
    let program = Binary::start(&arguments);
    let address = program.address().await;
    let text = fetch(address, Request::get("/playlist.m3u")).await.text();
    assert!(text.contains(",Good; really\n"), "{text}");
    let good = text.lines().skip_while(|line| !line.ends_with(",Good; really")).nth(1).unwrap();
    let path = &good[good.find("/proxy/").unwrap()..];
    Player::watch(address, path).await.sees("good").await;
    let reply = program.output();
    assert!(reply.contains("line 2: ") && reply.contains("line 4: "), "{reply}");
    assert!(reply.contains("/no/such/list.m3u"), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_program_prints_no_credentials() {
    // Holds T-acc.2 for the program as a whole, at its most detailed log level.
    let provider = Provider::start();
    provider.path("/live/anna/s3cret/1.ts?token=s3cret").plays(Picture::new("news"));
    provider.path("/live/anna/s3cret/2.ts").answers(MockResponse::redirect("/live/anna/s3cret/gone.ts"));
    let list = format!(
        "#EXTM3U\n#EXTINF:-1,One\n{}\n#EXTINF:-1,Two\n{}\n#EXTINF:-1,Three\nhttp://anna:s3cret@127.0.0.1:1/s3cret\n#EXTINF:-1,Lost\nhttp://anna:s3cret@[/s3cret\n",
        provider.url("/live/anna/s3cret/1.ts?token=s3cret"),
        provider.url("/live/anna/s3cret/2.ts"),
    );
    provider.path("/get.php?password=s3cret").answers(MockResponse::text("audio/x-mpegurl", list));
    provider.path("/gone.php?password=s3cret").answers(MockResponse::status(404));
    let mut program = Binary::start(&[
        "play",
        &provider.url("/get.php?password=s3cret"),
        &provider.url("/gone.php?password=s3cret"),
        "http://anna:s3cret@127.0.0.1:1/list.m3u",
        "--log-level",
        "trace",
        "--set",
        "engine.start_timeout=2",
        "--set",
        "engine.give_up_after=2",
    ]);
    let address = program.address().await;
    for path in program.streams().await {
        let player = Player::watch(address, &path).await;
        let head = player.head().await;
        if head.status == 503 {
            let answer = player.answer().await.text();
            assert!(!answer.contains("s3cret"), "{answer}");
        }
    }
    let counters = fetch(address, Request::get("/metrics")).await.text();
    assert!(!counters.contains("s3cret"), "{counters}");
    program.signal("TERM");
    assert_eq!(program.ended().await.code(), Some(0));
    let reply = program.output();
    let told: Vec<&str> = reply.lines().filter(|line| line.contains("s3cret")).collect();
    assert!(told.is_empty(), "{}", told.join("\n"));
}
