//! Tests of stations that send audio without a container, and of compressed streams.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use super::*;
use crate::testing::{AnswerToTitles, StationSound, TestStation};
use crate::ts::packet::{PACKET, Packet, packets};
use crate::ts::pes::is_pes_start;

/// Returns whether each request that a provider saw asked for titles.
fn asked(provider: &MemoryProvider) -> Vec<bool> {
    provider.requests().iter().map(|it| it.header("icy-metadata") == Some("1")).collect()
}

/// Reads until the station has sent a title; `None` if it sends none for some seconds.
async fn title(source: &mut Source) -> Option<String> {
    let reading = async {
        loop {
            source.read().await.unwrap();
            if let Some(title) = source.take_title() {
                return title.to_string();
            }
        }
    };
    timeout(Duration::from_secs(10), reading).await.ok()
}

#[tokio::test(start_paused = true)]
async fn a_station_plays_whatever_its_head_says() {
    let heads = [
        "HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n",
        "HTTP/1.1 200 OK\r\nContent-Type: audio/aac\r\nConnection: close\r\n",
        "HTTP/1.0 200 OK\r\nContent-Type: audio/aacp\r\nicy-br: 64\r\n",
        "HTTP/1.0 200 OK\r\nContent-Type: application/octet-stream\r\n",
        "HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n",
        "HTTP/1.0 200 OK\r\n",
        "ICY 200 OK\r\nicy-name:Radio\r\ncontent-type:audio/mpeg\r\n",
    ];
    for head in heads {
        for sound in StationSound::ALL {
            let setup = Setup::new();
            let station = TestStation { head: head.to_owned(), ..TestStation::new(sound) };
            setup.a.set("/s", Behaviour::Station(station));
            let mut source =
                setup.open("http://a/s").await.unwrap_or_else(|it| panic!("{head} {sound:?}: {it}"));
            assert_eq!((source.supply(), setup.permits.n_delivered()), (Supply::Radio, 1));
            let (bytes, error) = read_bytes(&mut source, 40_000).await;
            assert_eq!(error, None, "{head} {sound:?}");
            assert!(bytes.len().is_multiple_of(PACKET));
            let first = packets(&bytes).map(Packet::new).find(|it| is_pes_start(*it)).unwrap();
            assert_eq!(first.payload()[14..18], sound.frame()[..4]);
            assert_eq!(setup.a.peak(), 1);
            drop(source);
            setup.is_clean().await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_tag_before_the_first_frame_is_skipped() {
    // Longer than other bytes may be before a stream.
    let mut before = b"ID3\x03\0\0\0\x09\0\0".to_vec();
    before.resize(10 + (9 << 14), 0x20);
    let setup = Setup::new();
    let station = TestStation { before, ..TestStation::new(StationSound::Mp3) };
    setup.a.set("/s", Behaviour::Station(station));
    let mut source = setup.open("http://a/s").await.unwrap();
    assert_eq!(read_bytes(&mut source, 20_000).await.1, None);
}

#[tokio::test(start_paused = true)]
async fn titles_are_asked_for_only_after_an_answer_that_was_radio() {
    let setup = Setup::new();
    setup.a.set("/tv", Behaviour::play("x"));
    setup.a.set("/s", Behaviour::Station(TestStation::new(StationSound::Mp3)));
    drop(setup.open("http://a/tv").await.unwrap());
    setup.is_clean().await;
    assert_eq!(asked(&setup.a), [false]);

    let mut source = setup.open("http://a/s").await.unwrap();
    assert_eq!(asked(&setup.a)[1..], [false, true]);
    assert_eq!(title(&mut source).await.as_deref(), Some("Artist - Song"));
    let known = source.info().known.clone();
    assert_eq!(known.sends_titles, Some(true));
    drop(source);
    setup.is_clean().await;

    // The next opening asks at once.
    let request = OpenRequest { url: "http://a/s".into(), known, ..OpenRequest::default() };
    let mut source = setup.open_request(request).await.unwrap();
    assert_eq!(asked(&setup.a)[3..], [true]);
    assert_eq!(title(&mut source).await.as_deref(), Some("Artist - Song"));
    let (bytes, _) = read_bytes(&mut source, 200_000).await;
    let n_starts = packets(&bytes).filter(|it| is_pes_start(Packet::new(it))).count();
    assert!(n_starts > 300, "no frame is lost at a title: {n_starts}");
    drop(source);
    setup.is_clean().await;
    assert_eq!(setup.a.peak(), 1, "one socket at a time");
}

#[tokio::test(start_paused = true)]
async fn a_station_that_does_not_answer_a_request_for_titles_plays_without() {
    let icy = TestStation::new(StationSound::Aac);
    for answer in [AnswerToTitles::Status(403), AnswerToTitles::Status(500), AnswerToTitles::None] {
        let setup = Setup::new();
        setup.a.set("/s", Behaviour::Station(TestStation { answer_to_titles: answer, ..icy.clone() }));
        let mut source = setup.open("http://a/s").await.unwrap();
        assert_eq!(asked(&setup.a), [false, true, false], "{answer:?}");
        assert_eq!(title(&mut source).await, None);
        let known = source.info().known.clone();
        assert_eq!((known.sends_titles, setup.a.peak()), (Some(false), 1), "{answer:?}");
        drop(source);
        setup.is_clean().await;
        let request = OpenRequest { url: "http://a/s".into(), known, ..OpenRequest::default() };
        drop(setup.open_request(request).await.unwrap());
        assert_eq!(asked(&setup.a)[3..], [false], "{answer:?}");
        setup.is_clean().await;
    }
    // A provider that counts a closed connection for some time.
    let setup = Setup::new();
    let station = Behaviour::Station(icy.clone());
    let full = Behaviour::Status(458);
    setup.a.script("/s", [station.clone(), full.clone(), full.clone(), full, station]);
    let source = setup.open("http://a/s").await.unwrap();
    assert_eq!(asked(&setup.a), [false, true, false, false, false]);
    assert_eq!((source.info().known.sends_titles, setup.a.peak()), (Some(false), 1));
    drop(source);
    setup.is_clean().await;
    // A station that had titles and refuses them now.
    let setup = Setup::new();
    let refuses = TestStation { answer_to_titles: AnswerToTitles::Status(406), ..icy.clone() };
    setup.a.set("/s", Behaviour::Station(refuses));
    let known = KnownSource { sends_titles: Some(true), ..KnownSource::default() };
    let request = OpenRequest { url: "http://a/s".into(), known, ..OpenRequest::default() };
    let source = setup.open_request(request).await.unwrap();
    assert_eq!((asked(&setup.a), source.info().known.sends_titles), (vec![true, false], Some(false)));
    drop(source);
    setup.is_clean().await;
    // One that ignores the request: nothing is cut out.
    let setup = Setup::new();
    setup.a.set(
        "/s",
        Behaviour::Station(TestStation { answer_to_titles: AnswerToTitles::Ignored, ..icy.clone() }),
    );
    let mut source = setup.open("http://a/s").await.unwrap();
    assert_eq!((asked(&setup.a), title(&mut source).await), (vec![false, true], None));
    assert_eq!(source.info().known.sends_titles, Some(false));
    // One that does not speak ICY is asked once.
    let head = "HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n".to_owned();
    let setup = Setup::new();
    setup.a.set("/s", Behaviour::Station(TestStation { head, ..icy }));
    let source = setup.open("http://a/s").await.unwrap();
    assert_eq!((asked(&setup.a), source.info().known.sends_titles), (vec![false], None));
}

#[tokio::test(start_paused = true)]
async fn a_station_that_ends_or_sends_something_else_is_lost() {
    let frames = StationSound::Mp3.frame().repeat(200);
    let head = b"HTTP/1.0 200 OK\r\nContent-Type: audio/mpeg\r\n\r\n".to_vec();
    let setup = Setup::new();
    setup.a.set("/end", Behaviour::Raw([head.clone(), frames.clone()].concat().into()));
    setup.a.set("/junk", Behaviour::Raw([head.clone(), frames, vec![0; 90_000]].concat().into()));
    setup.a.set("/one", Behaviour::Raw([head, StationSound::Mp3.frame(), vec![0; 90_000]].concat().into()));
    for (path, cause) in [("/end", Cause::Ended), ("/junk", Cause::SyncLost)] {
        let mut source = setup.open(&format!("http://a{path}")).await.unwrap();
        let (bytes, error) = read_bytes(&mut source, usize::MAX).await;
        let n_starts = packets(&bytes).filter(|it| is_pes_start(Packet::new(it))).count();
        assert_eq!((n_starts, error.unwrap().cause().clone()), (200, cause));
        drop(source);
        setup.is_clean().await;
    }
    assert_eq!(setup.failure("http://a/one").await.0, Cause::NotTs("audio/mpeg".into()));
}

fn packed(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_compressed_transport_stream_plays() {
    let stream = TsSource::new("packed").bytes(Duration::ZERO, Duration::from_secs(4));
    for head in [
        "HTTP/1.0 200 OK\r\nContent-Type: video/mp2t\r\nContent-Encoding: gzip\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\n",
        "ICY 200 OK\r\n\r\n",
    ] {
        let setup = Setup::new();
        setup.a.set("/s", Behaviour::Raw([head.as_bytes(), &packed(&stream)].concat().into()));
        let mut source = setup.open("http://a/s").await.unwrap();
        let (bytes, error) = read_bytes(&mut source, usize::MAX).await;
        assert!(bytes == stream, "{head}");
        assert_eq!(error.unwrap().cause(), &Cause::Ended);
        assert!(source.is_complete());
        drop(source);
        setup.is_clean().await;
    }
    let setup = Setup::new();
    let head = b"HTTP/1.0 200 OK\r\n\r\n".to_vec();
    let radio = StationSound::Mp3.frame().repeat(90);
    setup.a.set("/radio", Behaviour::Raw([head.clone(), packed(&radio)].concat().into()));
    let mut source = setup.open("http://a/radio").await.unwrap();
    assert_eq!(read_bytes(&mut source, usize::MAX).await.1.unwrap().cause(), &Cause::Ended);
    drop(source);
    setup.is_clean().await;
    // What is not a stream is refused as if it was not compressed, without unpacking all of it.
    setup.a.set("/zeros", Behaviour::Raw([head.clone(), packed(&vec![0; 64 << 20])].concat().into()));
    setup
        .a
        .set("/page", Behaviour::Raw([head.clone(), packed(&b"<html>no</html>".repeat(99))].concat().into()));
    setup.a.set(
        "/twice",
        Behaviour::Raw([head, packed(&packed(&b"something else".repeat(99)))].concat().into()),
    );
    for (path, what) in [("/zeros", "unknown bytes"), ("/page", "text/html"), ("/twice", "compressed data")] {
        assert_eq!(setup.failure(&format!("http://a{path}")).await.0, Cause::NotTs(what.into()), "{path}");
    }
}
