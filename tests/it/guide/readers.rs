//! Programmes as clients get them from a running gateway: over REST, in the outputs for players, and after a refresh.

use std::fmt::Write as _;
use std::fs;
use std::io::Read as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::xmltv::{Item, XmltvLimits, XmltvReader};
use domain::ids::GuideChannelId;
use domain::user::UserLevel;
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use url::form_urlencoded::Serializer;

use super::fixture::xmltv_time;
use super::sources::GuideStory;
use crate::import::fixture::blocking;
use crate::support::api::Api;
use crate::support::client::{Request, Response, fetch};
use crate::support::until_async;
use crate::support::upstream::MockResponse;
use crate::support::users::{TestUser, create_user};

const HOUR: i64 = 3_600;
const GUIDE: &str = "/three-days.xml";

/// A gateway with a guide of three days, its channels, and a user of level 0.
pub struct ReaderStory {
    pub story: GuideStory,
    pub anna: TestUser,
    pub api: Api,
    source: String,
    /// Half an hour after the start of the running programmes, in seconds since 1970.
    now: i64,
}

impl ReaderStory {
    /// Stores four channels: `One` has the id of its guide channel in other letters, `Linked` is linked to one, `Hidden` is
    /// for admins only, and `Open` has programmes without an end.
    pub async fn new() -> Self {
        let (story, now) = (GuideStory::lasting().await, actors::now_ms() / 1000);
        for (number, name, tvg_id, level) in [
            (1, "One", Some("ONE.example"), UserLevel::Streamer),
            (2, "Linked & <more>", None, UserLevel::Streamer),
            (3, "Hidden", Some("hidden.example"), UserLevel::Admin),
            (4, "Open", Some("open.example"), UserLevel::Streamer),
        ] {
            let body = json!({
                "name": name, "channel_number": number, "tvg_id": tvg_id, "user_level": level.number(),
            });
            let made = story.admin.post("/api/channels/channels/", body).await;
            assert_eq!(made.status, 201, "{made:?}");
        }
        story.provider.path(GUIDE).answers(MockResponse::text("text/xml", three_days(now, "")));
        let url = story.provider.url(GUIDE);
        let source = story.create(json!({ "name": "Guide", "source_type": "xmltv", "url": url })).await;
        assert_eq!(story.ended(&source).await["status"], "success");
        let linked = guide_channel(&story, "linked.example").await;
        story
            .gateway
            .change(move |write| {
                let channel = write.all::<Channel>()?.into_iter().find(|it| it.name.starts_with("Linked"));
                write.put(&Channel { guide_channel: Some(linked), ..channel.expect("it exists") })
            })
            .await;
        let anna = create_user(&story.gateway, "anna", |_| {}).await;
        let api = Api::stranger(&story.gateway).key(&anna.api_key);
        Self { story, anna, api, source, now }
    }

    fn login(&self) -> String {
        let mut query = Serializer::new(String::new());
        query.append_pair("username", &self.anna.name).append_pair("password", &self.anna.password).finish()
    }

    pub async fn fetch(&self, request: Request) -> Response {
        fetch(self.story.gateway.address, request).await
    }

    /// Returns every address of the guide in XMLTV, as anna requests it.
    pub fn outputs(&self) -> [Request; 4] {
        let key = |path: &str| Request::get(path).header("X-API-Key", &self.anna.api_key);
        [
            Request::get(format!("/xmltv.php?{}", self.login())),
            Request::get("/output/epg"),
            key("/output/epg.xml"),
            key("/api/epg.xml"),
        ]
    }

    fn channel(&self, name: &str) -> (u32, String) {
        let channels = self.story.gateway.models().channels.load();
        let channel = channels.iter().find(|it| it.name.starts_with(name)).expect("it exists");
        (channel.id.0, channel.uuid.to_string())
    }

    /// Gives each channel that anna sees a number with a dot.
    pub async fn number_with_a_dot(&self) {
        for (at, name) in (1..).zip(["One", "Linked", "Open"]) {
            let path = format!("/api/channels/channels/{}/", self.channel(name).0);
            let changed =
                self.story.admin.patch(&path, json!({ "channel_number": f64::from(at) + 0.1 })).await;
            assert_eq!(changed.status, 200, "{changed:?}");
        }
    }

    /// Returns the answer of the panel about the programmes of a channel.
    async fn listings(&self, action: &str, channel: &str) -> Vec<Value> {
        let path =
            format!("/player_api.php?{}&action={action}&stream_id={}", self.login(), self.channel(channel).0);
        let answer = self.fetch(Request::get(path)).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        let body: Value = serde_json::from_slice(&answer.bytes).unwrap();
        body["epg_listings"].as_array().unwrap().clone()
    }
}

/// Returns a guide whose hours begin half an hour before or after `now`. `mark` follows each title.
fn three_days(now: i64, mark: &str) -> String {
    let mut text = "<tv>".to_owned();
    for id in ["one", "linked", "hidden", "open"] {
        write!(text, "<channel id=\"{id}.example\"><display-name>{id}</display-name></channel>").unwrap();
    }
    let begin = now - HOUR / 2;
    let mut put = |channel: &str, start: String, stop: Option<i64>, title: &str| {
        let stop = stop.map_or_else(String::new, |it| format!(" stop=\"{}\"", xmltv_time(begin + it * HOUR)));
        write!(
            text,
            "<programme start=\"{start}\"{stop} channel=\"{channel}.example\"><title>{title}{mark}</title>\
             <desc>About {title} &amp; more</desc></programme>"
        )
        .unwrap();
    };
    for hour in -12..60 {
        // The time of a place two hours before UTC.
        let start = xmltv_time(begin + (hour + 2) * HOUR).replace("+0000", "+0200");
        put("one", start, Some(hour + 1), &format!("One {hour}"));
    }
    let time = |hour: i64| xmltv_time(begin + hour * HOUR);
    put("linked", time(-2), Some(2), "Long");
    put("linked", time(0), Some(1), "Short");
    put("linked", time(2), Some(4), "Film");
    put("hidden", time(-1), Some(20), "Secret");
    // Without a zone, which is UTC.
    put("open", time(0).replace(" +0000", ""), None, "Open A");
    put("open", time(3), None, "Open B");
    text + "</tv>"
}

/// Returns the id of the guide channel with this key.
async fn guide_channel(story: &GuideStory, key: &'static str) -> GuideChannelId {
    let store = story.gateway.models().store.clone();
    let found = blocking(move || {
        let mut found = None;
        let channels = store.collection::<GuideChannel>();
        channels
            .for_each(|it: GuideChannel| {
                if it.key == key {
                    found = Some(it.id)
                }
            })
            .unwrap();
        found
    });
    found.await.expect("the guide names it")
}

/// Returns channel, start and title of each programme in a guide, and the ids of its channels.
fn parsed(guide: &str) -> (Vec<String>, Vec<(String, i64, String)>) {
    let (mut ids, mut programmes) = (Vec::new(), Vec::new());
    for item in XmltvReader::new(guide.as_bytes(), XmltvLimits::default()) {
        match item.unwrap() {
            Item::Channel { key, .. } => ids.push(key),
            Item::Programme { channel, programme } => {
                programmes.push((channel, programme.start, programme.title().to_owned()));
            }
        }
    }
    (ids, programmes)
}

fn decoded(text: &Value) -> String {
    String::from_utf8(BASE64.decode(text.as_str().unwrap()).unwrap()).unwrap()
}

fn titles(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programmes_of_a_fetched_guide_reach_every_reader() {
    let all = ReaderStory::new().await;
    let begin = all.now - HOUR / 2;
    let [one, linked, hidden, open] = ["One", "Linked", "Hidden", "Open"].map(|it| all.channel(it));

    let until = domain::time::iso_millis((all.now + HOUR) * 1000);
    let from = domain::time::iso_millis(all.now * 1000);
    let grid = all.api.get(&format!("/api/epg/grid/?start={from}&end={until}")).await.body;
    assert_eq!(titles(&grid["data"]), ["One 0", "One 1", "Short", "Open A"], "{grid}");
    let first = &grid["data"][0];
    assert_eq!(first["channel_ids"], json!([one.0]));
    assert_eq!(first["start_time"], domain::time::iso_millis(begin * 1000), "the zone counts");
    assert_eq!(
        grid["data"][3]["end_time"],
        domain::time::iso_millis((begin + 3 * HOUR) * 1000),
        "a programme without an end lasts until the next one"
    );

    let uuids = [&one.1, &linked.1, &hidden.1, &open.1];
    let running = all.api.post("/api/epg/current-programs/", json!({ "channel_uuids": uuids })).await.body;
    assert_eq!(titles(&running), ["One 0", "Short", "Open A"]);
    let next: Vec<_> = running.as_array().unwrap().iter().map(|it| it["next"]["title"].clone()).collect();
    assert_eq!(next, ["One 1", "Film", "Open B"]);

    for (query, expected) in [
        ("title=%22one%2059%22%20OR%20fil&channel=one", vec!["One 59"]),
        ("title=%22one%2059%22%20OR%20(fil%20AND%20nothing)%20OR%20sho", vec!["Short", "One 59"]),
        ("title=film&channel=linked", vec!["Film"]),
        ("title=ilm", vec![]),
        ("description=about%20AND%20(secret%20OR%20film)", vec!["Film"]),
        ("search=short%20more", vec!["Short"]),
    ] {
        let found = all.api.get(&format!("/api/epg/programs/search/?{query}")).await;
        assert_eq!(found.status, 200, "{found:?}");
        assert_eq!(titles(&found.body["results"]), expected, "{query}");
    }

    let listed = all.listings("get_short_epg", "Linked").await;
    let names: Vec<_> = listed.iter().map(|it| decoded(&it["title"])).collect();
    assert_eq!(names, ["Short", "Film"], "a programme ends when the next one begins");
    let film = &listed[1];
    assert_eq!(decoded(&film["description"]), "About Film & more");
    let start = jiff::Timestamp::from_second(begin + 2 * HOUR).unwrap();
    assert_eq!(film["start"], start.strftime("%Y-%m-%d %H:%M:%S").to_string());
    assert_eq!(film["start_timestamp"], (begin + 2 * HOUR).to_string());
    assert_eq!(film["channel_id"], "2");
    let table = all.listings("get_simple_data_table", "One").await;
    assert_eq!((table.len(), &table[0]["now_playing"]), (60, &json!(1)));
    assert_eq!(all.listings("get_simple_data_table", "Hidden").await, Vec::<Value>::new());
}

/// Holds T-epg.4.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_of_players_has_the_ids_of_the_lineup_and_is_sent_again_only_if_it_changed() {
    let all = ReaderStory::new().await;
    let lineup: Value = serde_json::from_slice(&all.fetch(Request::get("/lineup.json")).await.bytes).unwrap();
    let numbers: Vec<_> = lineup.as_array().unwrap().iter().map(|it| it["GuideNumber"].clone()).collect();
    assert_eq!(numbers, ["1", "2", "4"]);
    let playlist = all.fetch(Request::get("/lineup.m3u")).await.text();
    let guide_url = playlist.split("x-tvg-url=\"").nth(1).unwrap().split('"').next().unwrap();
    let origin = format!("http://{}", all.story.gateway.address);
    let of_tuner = Request::get(guide_url.strip_prefix(&origin).unwrap());

    for request in all.outputs().into_iter().chain([of_tuner]) {
        let shown = format!("{request:?}");
        let plain = all.fetch(request.clone()).await;
        let (ids, programmes) = parsed(&plain.text());
        assert_eq!(ids, ["1", "2", "4"], "{shown}");
        let of_one = programmes.iter().filter(|it| it.0 == "1" && it.2.starts_with("One "));
        // The one that ended in this hour may be among them.
        assert!([60, 61].contains(&of_one.count()), "{shown}");
        let start = programmes.iter().find(|it| it.2 == "Film").map(|it| (it.0.as_str(), it.1));
        assert_eq!(start, Some(("2", all.now - HOUR / 2 + 2 * HOUR)), "{shown}");

        let packed = all.fetch(request.clone().header("Accept-Encoding", "gzip")).await;
        assert_eq!(packed.header("content-encoding"), Some("gzip"), "{shown}");
        let mut text = String::new();
        GzDecoder::new(&packed.bytes[..]).read_to_string(&mut text).unwrap();
        assert!(parsed(&text).1.iter().any(|it| it.2 == "Film"), "{shown}");
    }

    let [request, ..] = all.outputs();
    let mut tag = String::new();
    let mut is_current = async || {
        let answer = all.fetch(request.clone().header("If-None-Match", &tag)).await;
        tag = answer.header("etag").unwrap().to_owned();
        answer.status() == 304
    };
    assert!(!is_current().await);
    // A new hour may begin between the requests.
    assert!(is_current().await || is_current().await);
    let before = all.api.get("/api/epg/grid/").await.body;
    all.story.provider.path(GUIDE).answers(MockResponse::text("text/xml", three_days(all.now, " again")));
    let id = all.story.admin.get(&all.source).await.body["id"].clone();
    assert_eq!(all.story.admin.post("/api/epg/import/", json!({ "id": id })).await.status, 202);
    // The tag can change before the guide is there.
    let mut after = Value::Null;
    until_async("the new guide", async || {
        after = all.api.get("/api/epg/grid/").await.body;
        titles(&after["data"]).iter().all(|it| it.ends_with(" again"))
    })
    .await;
    assert!(!is_current().await);
    let ids = |grid: &Value| -> Vec<Value> {
        grid["data"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect()
    };
    assert_eq!(ids(&before), ids(&after), "ids are stable over refreshes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn programmes_of_channels_that_a_user_may_not_watch_are_nowhere() {
    let all = ReaderStory::new().await;
    let found = all.story.admin.get("/api/epg/programs/search/?title=secret").await.body;
    let secret = &found["results"][0];
    assert_eq!(secret["channels"][0]["name"], "Hidden", "{found}");
    let (id, uuid) = all.channel("Hidden");
    let key = |path: String| Request::get(path).header("X-API-Key", &all.anna.api_key);
    let guide_channel = guide_channel(&all.story, "hidden.example").await;
    let current = |body: Value| {
        key("/api/epg/current-programs/".to_owned()).method("POST").body("application/json", body.to_string())
    };
    let requests = [
        key("/api/epg/grid/".to_owned()),
        key(format!("/api/epg/grid/?channels={id}")),
        key("/api/epg/programs/search/?page_size=500".to_owned()),
        key("/api/epg/programs/search/?title=secret".to_owned()),
        key(format!("/api/epg/programs/search/?channel_id={id}")),
        key(format!("/api/epg/programs/{}/", secret["id"])),
        current(json!({ "channel_uuids": [uuid] })),
        current(json!({ "epg_data_ids": [guide_channel.0] })),
        key(format!("/player_api.php?{}&action=get_short_epg&stream_id={id}", all.login())),
        key(format!("/player_api.php?{}&action=get_simple_data_table&stream_id={id}", all.login())),
        Request::get("/lineup.json"),
        Request::get("/lineup.m3u"),
    ];
    for request in requests.into_iter().chain(all.outputs()) {
        let shown = format!("{request:?}");
        let answer = all.fetch(request).await;
        let text = answer.text();
        assert!(!text.contains("Secret") && !text.contains("Hidden"), "{shown}: {text}");
        assert!(!text.contains(&BASE64.encode("Secret")), "{shown}: {text}");
        assert!([200, 404].contains(&answer.status()), "{shown}: {text}");
    }
}

/// Overwrites all guide files of a folder from this byte on, and returns their number.
fn damage(guides: &Path, from: usize) -> usize {
    let files = fs::read_dir(guides).unwrap().map(|it| it.unwrap().path());
    let files: Vec<_> = files.filter(|it| it.extension().is_some_and(|it| it == "guide")).collect();
    for file in &files {
        let mut bytes = fs::read(file).unwrap();
        bytes[from..].fill(0x5c);
        fs::OpenOptions::new().write(true).open(file).unwrap().write_all_at(&bytes, 0).unwrap();
    }
    files.len()
}

// A guide whose file was damaged stayed without programmes until somebody refreshed it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_guide_is_fetched_again_by_itself() {
    let all = ReaderStory::new().await;
    let grid = async || all.api.get("/api/epg/grid/").await.body["data"].as_array().unwrap().len();
    let before = grid().await;
    assert!(before > 0);
    let guides = all.story.folder.path().join("guides");
    assert_eq!(blocking(move || damage(&guides, 0)).await, 1);
    // Reading it finds the damage.
    let n_fetched = || all.story.provider.path(GUIDE).n_requests();
    until_async("the guide", async || grid().await == before && n_fetched() == 2).await;
    let health = async || all.story.admin.get("/api/core/health/").await.body.to_string();
    until_async("its health", async || !health().await.contains("guide_damaged")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_damaged_guide_file_leaves_answers_without_programmes_and_is_reported() {
    let all = ReaderStory::new().await;
    let written = all.story.create(json!({ "name": "Own", "source_type": "written" })).await;
    let written = all.story.admin.get(&written).await.body["id"].clone();
    let time = |hours: i64| domain::time::iso_millis((all.now + hours * HOUR) * 1000);
    let own = |start: i64, title: &str| {
        json!({
            "start_time": time(start), "end_time": time(start + 1), "title": title, "tvg_id": "own.example",
            "epg_source": written,
        })
    };
    let programs = "/api/epg/programs/";
    assert_eq!(all.story.admin.post(programs, own(0, "Before")).await.status, 201);
    let found = all.api.get("/api/epg/grid/").await.body["data"][0]["id"].clone();

    // Every byte of both files, as a failing disk returns them. Nothing can be fetched meanwhile.
    let GuideStory { provider, folder, .. } = &all.story;
    provider.path(GUIDE).answers(MockResponse::status(404));
    let guides = folder.path().join("guides");
    assert_eq!(blocking(move || damage(&guides, 0)).await, 2);

    let empty = json!({ "data": [] });
    assert_eq!(all.api.get("/api/epg/grid/").await.body, empty);
    let search = all.api.get("/api/epg/programs/search/?title=one").await;
    assert_eq!((search.status, &search.body["results"]), (200, &json!([])), "{search:?}");
    assert_eq!(all.api.get(&format!("{programs}{found}/")).await.status, 404);
    assert_eq!(all.fetch(Request::get(format!("{programs}{found}/poster/"))).await.status(), 404);
    let uuids = [all.channel("One").1, all.channel("Linked").1];
    let running = all.api.post("/api/epg/current-programs/", json!({ "channel_uuids": uuids })).await;
    assert_eq!((running.status, running.body), (200, json!([])));
    for action in ["get_short_epg", "get_simple_data_table"] {
        assert_eq!(all.listings(action, "One").await, Vec::<Value>::new(), "{action}");
    }
    for request in all.outputs() {
        let answer = all.fetch(request).await;
        assert_eq!(
            (answer.status(), parsed(&answer.text())),
            (200, (vec!["1".into(), "2".into(), "4".into()], vec![]))
        );
    }
    let health = all.story.admin.get("/api/core/health/").await.body;
    assert!(health.to_string().contains("guide_damaged"), "{health}");

    // A written guide is good again with the next programme, and a fetched one with its next refresh.
    let made = all.story.admin.post(programs, own(2, "After")).await;
    assert_eq!(made.status, 201, "{made:?}");
    provider.path(GUIDE).answers(MockResponse::text("text/xml", three_days(all.now, "")));
    let id = all.story.admin.get(&all.source).await.body["id"].clone();
    until_async("the guide", async || {
        // A try of the gateway that began before may still run.
        all.story.admin.post("/api/epg/import/", json!({ "id": id })).await;
        all.api.get("/api/epg/grid/").await.body.to_string().contains("\"Film\"")
    })
    .await;
    let found = all.story.admin.get("/api/epg/programs/search/?tvg_id=own.example").await.body;
    assert_eq!(titles(&found["results"]), ["After"]);
    let health = all.story.admin.get("/api/core/health/").await.body;
    assert!(!health.to_string().contains("guide_damaged"), "{health}");
}
