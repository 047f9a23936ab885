//! Guide data from the transport streams that are played.

use domain::guide::channel::GuideChannel;
use domain::guide::programme::from_xml;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::import::fixture::blocking;
use crate::support::api::Api;
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::until_async;
use crate::support::upstream::Provider;

/// Returns a section with one event of service 1 of stream 2 in network 3, in ISO 8859-9.
fn events(start: i64, title: &[u8]) -> Vec<u8> {
    let decimals = |it: i64| u8::try_from(it / 10 * 16 + it % 10).unwrap();
    let day = u16::try_from(start.div_euclid(86_400) + 40_587).unwrap().to_be_bytes();
    let time = start.rem_euclid(86_400);
    let time = [time / 3_600, time / 60 % 60, time % 60].map(decimals);
    let text_bytes = u8::try_from(title.len() + 1).unwrap();
    let descriptor = [&[0x4D, 5 + text_bytes], &b"eng"[..], &[text_bytes, 0x05], title, &[0]].concat();
    let length = u16::try_from(descriptor.len()).unwrap().to_be_bytes();
    let head = [0x4E, 0, 1, 0xC1, 0, 0, 0, 2, 0, 3, 0, 0x4E];
    [&head[..], &[0, 9], &day, &time, &[0x01, 0x00, 0x00], &length, &descriptor].concat()
}

/// Returns a section with the name of that service.
fn names(name: &[u8]) -> Vec<u8> {
    let name_bytes = u8::try_from(name.len()).unwrap();
    let descriptor = [&[0x48, 3 + name_bytes, 1, 0, name_bytes], name].concat();
    let length = u8::try_from(descriptor.len()).unwrap();
    let head = [0x42, 0, 2, 0xC1, 0, 0, 0, 3, 0xFF, 0, 1, 0xFC, 0x80, length];
    [&head[..], &descriptor].concat()
}

/// Returns a gateway with a channel whose stream carries guide data, and the path of the channel.
async fn gateway(provider: &Provider, tvg_id: &str) -> (TestGateway, Api, String) {
    let now = Timestamp::now().as_second();
    let picture = Picture::new("one").guide(names(b"One HD"), events(now - 600, b"News \xFC"));
    provider.path("/one").plays(picture);
    let gateway = Setup::new().start().await;
    let admin = Api::first_admin(&gateway).await;
    let stream = json!({ "name": "One", "url": provider.url("/one"), "tvg_id": tvg_id });
    let stream = admin.post("/api/channels/streams/", stream).await;
    assert_eq!(stream.status, 201, "{stream:?}");
    let id = json!({ "stream_id": stream.body["id"] });
    let channel = admin.post("/api/channels/channels/from-stream/", id).await;
    assert_eq!(channel.status, 201, "{channel:?}");
    let path = format!("/proxy/ts/stream/{}", channel.text("uuid"));
    (gateway, admin, path)
}

/// A guide channel and the titles of its programmes.
#[derive(Debug, PartialEq)]
struct GuideShown {
    key: String,
    names: Vec<String>,
    titles: Vec<String>,
}

/// Returns the guide of all sources.
async fn shown(gateway: &TestGateway) -> Vec<GuideShown> {
    let (store, files) = (gateway.models().store.clone(), gateway.gateway.guide_files().clone());
    blocking(move || {
        let show = |it: GuideChannel| {
            let file = files.file(it.source).expect("a guide");
            let stored = file.programmes(it.id, i64::MIN, i64::MAX).unwrap();
            let titles =
                stored.iter().map(|it| from_xml(it.start, it.stop, &it.inner).unwrap().title().to_owned());
            GuideShown { key: it.key, names: it.names, titles: titles.collect() }
        };
        store.collection::<GuideChannel>().all().unwrap().into_iter().map(show).collect()
    })
    .await
}

async fn made(admin: &Api, more: Value) -> String {
    let mut source = json!({ "name": "Air", "source_type": "stream" });
    source.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = admin.post("/api/epg/sources/", source).await;
    assert_eq!(made.status, 201, "{made:?}");
    format!("/api/epg/sources/{}/", made.body["id"])
}

#[tokio::test]
async fn a_channel_that_plays_fills_the_guide_under_its_guide_id_without_another_connection() {
    let provider = Provider::start();
    let (gateway, admin, path) = gateway(&provider, "one.example").await;
    let source = made(&admin, json!({})).await;
    let player = Player::watch(gateway.address, &path).await;
    player.sees("one").await;
    until_async("the guide of the stream", async || admin.get(&source).await.body["program_count"] == 1)
        .await;
    let expected =
        GuideShown {
            key: "one.example".into(), names: vec!["One HD".into()], titles: vec!["News ü".into()]
        };
    // The files follow the records a moment later.
    let expected = [expected];
    until_async("the programme in the output", async || shown(&gateway).await == expected).await;
    assert_eq!(provider.path("/one").n_requests(), 1);
}

#[tokio::test]
async fn without_an_active_source_nothing_is_collected() {
    let provider = Provider::start();
    let (gateway, admin, path) = gateway(&provider, "").await;
    let source = made(&admin, json!({ "is_active": false })).await;
    let player = Player::watch(gateway.address, &path).await;
    player.sees("one").await;
    assert_eq!(admin.get(&source).await.body["program_count"], 0);
    // The stream repeats its tables, so nothing is lost before the source becomes active.
    admin.patch(&source, json!({ "is_active": true })).await;
    until_async("the guide of the stream", async || admin.get(&source).await.body["program_count"] == 1)
        .await;
    assert_eq!(shown(&gateway).await[0].key, "dvb-3-2-1");
}
