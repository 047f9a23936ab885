//! Refreshes of one guide: unchanged content, history, ids, and refreshes that end in the middle.

use std::sync::Arc;

use actors::{GuideError, GuideOptions, GuidePhase, GuideRefreshStatus};
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::source::GuideSource;
use domain::guide::state::{GuideState, GuideStatus};
use domain::ids::ChannelId;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::fixture::{DAY, GuideFixture, SOURCE, START, guide, xmltv_time};
use crate::import::fixture::After;

fn answer(head: &str, body: &str) -> String {
    format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_guide_is_recognised_by_its_headers_or_by_its_content() {
    let fixture = GuideFixture::new().await;
    let text = guide(2, 3, START / 1000);
    let date = "Sat, 16 Mar 2030 00:00:00 GMT";
    let head = format!("200 OK\r\nETag: \"one\"\r\nLast-Modified: {date}");
    fixture.server.raw(answer(&head, &text), After::Close);
    fixture.refresh(START).await.unwrap();
    let good = fixture.state();
    assert_eq!((good.etag.as_deref(), good.last_modified.as_deref()), (Some("\"one\""), Some(date)));

    fixture.server.raw("HTTP/1.1 304 Not Modified\r\nConnection: close\r\n\r\n", After::Close);
    let unchanged = fixture.refresh(START + DAY).await.unwrap();
    assert!(unchanged.is_unchanged && unchanged.n_programmes == 6, "{unchanged:?}");
    assert_eq!((unchanged.n_channels, unchanged.n_unused), (2, 2), "no channel uses them");
    let head = fixture.server.heads.lock().last().unwrap().to_lowercase();
    assert!(
        head.contains("if-none-match: \"one\"") && head.contains("if-modified-since: sat, 16 mar"),
        "{head}"
    );
    let state = fixture.state();
    assert_eq!((state.generation, state.good_at), (good.generation, Some(START + DAY)));
    assert_eq!(state.etag, good.etag);

    // A server without these headers sends the same bytes again.
    fixture.server.body(&text);
    assert!(fixture.refresh(START + DAY).await.unwrap().is_unchanged);
    assert_eq!((fixture.state().generation, fixture.state().etag), (good.generation, None));

    // A forced refresh reads it again.
    let forced = fixture.force(START).await.unwrap();
    assert!(!forced.is_unchanged);
    let head = fixture.server.heads.lock().last().unwrap().to_lowercase();
    assert!(!head.contains("if-none-match"), "{head}");
    assert!(fixture.state().generation > good.generation);

    // A refused guide is not taken for an unchanged one later.
    fixture.server.raw(answer("200 OK\r\nETag: \"bad\"", "<tv></tv>"), After::Close);
    fixture.refresh(START).await.unwrap_err();
    assert_eq!(fixture.state().etag, None);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_programmes_are_kept_for_the_days_of_the_source() {
    let fixture = GuideFixture::new().await;
    fixture.change(|it| it.history_days = 2).await;
    let now = START / 1000;
    fixture.server.body(guide(1, 24, now));
    fixture.refresh(START).await.unwrap();
    fixture.server.body(guide(1, 24, now + 86_400));
    fixture.refresh(START + DAY).await.unwrap();
    assert_eq!(fixture.programmes().await.len(), 48, "the day before is kept");
    fixture.server.body(guide(1, 24, now + 3 * 86_400));
    let summary = fixture.refresh(START + 3 * DAY).await.unwrap();
    let programmes = fixture.programmes().await;
    assert_eq!(programmes.len(), 48, "two days before, and not three: {programmes:?}");
    assert_eq!(summary.n_programmes, 48);
    assert!(programmes[0].contains(&(now + 86_400).to_string()), "{programmes:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_only_programmes_name_is_a_guide_channel() {
    let fixture = GuideFixture::new().await;
    let [start, stop, far] = [0, 3_600, 500 * 86_400].map(|it| xmltv_time(START / 1000 + it));
    let programme = |key: &str, start: &str| {
        format!("<programme start=\"{start}\" stop=\"{stop}\" channel=\"{key}\"><title>T</title></programme>")
    };
    // The channel is described after its first programme.
    let text = [
        "<tv>",
        &programme("early", &start),
        &programme("bare", &start),
        "<channel id=\"early\"><display-name> Early </display-name><icon src=\"http://h/e.png\"/></channel>",
        &programme("far", &far),
        "</tv>",
    ]
    .concat();
    fixture.server.body(text);
    let summary = fixture.refresh(START).await.unwrap();
    assert_eq!((summary.n_channels, summary.n_programmes, summary.n_unused), (2, 2, 2));
    let channels = fixture.channels().await;
    let shown: Vec<_> = channels.iter().map(|it| (&*it.key, it.names.clone(), it.icon.as_deref())).collect();
    let expected = [
        ("bare", vec!["bare".to_owned()], None),
        ("early", vec!["Early".to_owned()], Some("http://h/e.png")),
    ];
    assert_eq!(shown, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn guide_channels_keep_their_ids_and_a_linked_one_survives_its_absence() {
    let fixture = GuideFixture::new().await;
    fixture.server.body(guide(4, 10, START / 1000));
    fixture.refresh(START).await.unwrap();
    let before = fixture.channels().await;
    let [linked, other] = [before[3].id, before[2].id];
    let mut channel = Channel::new(ChannelId(7), Uuid::from_u128(7), "linked", START);
    channel.guide_channel = Some(linked);
    fixture.models.store.write(move |write| write.put(&channel)).await.unwrap();
    let renamed = guide(2, 10, START / 1000).replace("Channel 1", "Another name");
    fixture.server.body(renamed);
    fixture.refresh(START).await.unwrap();
    let now = fixture.channels().await;
    let ids = |channels: &[GuideChannel]| channels.iter().map(|it| it.id).collect::<Vec<_>>();
    assert_eq!(ids(&now), [before[0].id, before[1].id, linked]);
    assert_eq!(now[1].names, ["Another name"]);
    fixture.server.body(guide(4, 10, START / 1000));
    fixture.refresh(START).await.unwrap();
    let after = fixture.channels().await;
    assert_eq!(after[3].id, linked);
    assert_ne!(after[2].id, other, "nothing referred to it");
}

/// Holds T-epg.5.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_is_linked_during_a_refresh_keeps_its_guide_channel() {
    let fixture = GuideFixture::new().await;
    fixture.server.body(guide(4, 10, START / 1000));
    fixture.refresh(START).await.unwrap();
    let linked = fixture.channels().await[3].id;
    fixture.server.body(guide(2, 10, START / 1000));
    let store = fixture.models.store.clone();
    // The report runs on the thread of the refresh, after the guide was read and before it is committed.
    let link = move |status: GuideRefreshStatus| {
        if status.phase == GuidePhase::Writing {
            let mut channel = Channel::new(ChannelId(7), Uuid::from_u128(7), "linked", START);
            channel.guide_channel = Some(linked);
            store.write_blocking(move |write| write.put(&channel)).unwrap();
        }
    };
    let options = GuideOptions { at: Some(START), ..GuideOptions::default() };
    fixture.refresh_with(options, link).await.unwrap();
    assert!(fixture.channels().await.iter().any(|it| it.id == linked));
}

/// Holds T-epg.2, T-epg.6.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_that_is_stopped_at_any_step_leaves_the_former_guide_as_it_was() {
    let fixture = GuideFixture::new().await;
    fixture.server.body(guide(20, 30, START / 1000));
    fixture.refresh(START).await.unwrap();
    let (old, good) = (fixture.programmes().await, fixture.state());
    fixture.server.body(guide(21, 31, START / 1000).replace("Show", "Film"));
    let mut n_stopped = 0;
    loop {
        let stop = CancellationToken::new();
        let (stopping, seen) = (stop.clone(), Arc::new(Mutex::new(Vec::new())));
        let percents = seen.clone();
        let report = move |status: GuideRefreshStatus| {
            let mut percents = percents.lock();
            percents.push(status.percent);
            if percents.len() > n_stopped {
                stopping.cancel();
            }
        };
        let options = GuideOptions { at: Some(START), stop, ..GuideOptions::default() };
        let done = fixture.refresh_with(options, report).await;
        let percents = seen.lock().clone();
        assert!(percents.is_sorted() && percents.last() == Some(&100), "{percents:?}");
        match done {
            Err(GuideError::Stopped) => {
                assert_eq!(fixture.state(), good, "after {n_stopped} steps");
                assert_eq!(fixture.programmes().await, old, "after {n_stopped} steps");
                n_stopped += 1;
            }
            Ok(_) => break,
            Err(error) => panic!("{error:?}"),
        }
    }
    assert!(n_stopped > 4, "{n_stopped} steps");
    let new = fixture.programmes().await;
    assert_eq!(new.len(), 21 * 31);
    assert!(new.iter().all(|it| it.contains("Film")));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_source_that_is_deleted_or_leads_elsewhere_during_its_refresh_gets_no_guide() {
    for is_deleted in [true, false] {
        let fixture = GuideFixture::new().await;
        fixture.server.body(guide(2, 3, START / 1000));
        let store = fixture.models.store.clone();
        let interfere = move |status: GuideRefreshStatus| {
            if status.phase == GuidePhase::Writing {
                let changed = store.write_blocking(move |write| match is_deleted {
                    true => write.remove::<GuideSource>(SOURCE.0).map(drop),
                    false => {
                        let mut source = write.get::<GuideSource>(SOURCE.0)?.unwrap();
                        source.url = None;
                        write.put(&source)
                    }
                });
                let _: Result<(), storage::Error> = changed;
            }
        };
        let options = GuideOptions { at: Some(START), ..GuideOptions::default() };
        let done = fixture.refresh_with(options, interfere).await;
        assert!(matches!(done, Err(GuideError::SourceChanged)), "{done:?}");
        assert!(fixture.channels().await.is_empty());
        assert!(fixture.parts.files.file(SOURCE).is_none());
        assert!(fixture.models.guide_states.load().get(SOURCE.0).is_none());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_stalls_is_given_up_and_the_login_is_sent_in_a_header() {
    let mut fixture = GuideFixture::new().await;
    let limits = actors::FetchLimits {
        read_timeout: std::time::Duration::from_millis(300),
        ..actors::FetchLimits::default()
    };
    fixture.parts.fetch = fixture.parts.fetch.clone().within(limits);
    fixture
        .change(|it| {
            it.username = Some("anna".to_owned());
            it.password = Some(domain::secret::Secret::new("s3cret"));
        })
        .await;
    fixture.server.raw("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n<tv>", After::Hold);
    fixture.refresh(START).await.unwrap_err();
    assert_eq!(fixture.state().status, GuideStatus::Error);
    let head = fixture.server.heads.lock().last().unwrap().to_lowercase();
    assert!(head.contains("authorization: basic yw5uytpzm2nyzxq="), "{head}");
    let state: GuideState = fixture.state();
    assert!(!state.message.contains("s3cret"), "{}", state.message);
}
