//! The emulated tuner: the requests of media servers in their order, the lineups, and the number of tuners.

use config::{ClassNetworks, Config};
use domain::channel::Channel;
use domain::lineup::guide_channel_id;
use domain::user::UserLevel;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::{Player, Request, Response, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::tools;
use crate::support::upstream::Provider;
use crate::support::users::create_user;

const CHANNELS: [&str; 3] = ["News", "Film", "Sports"];
const PLEX: &str = "Lavf/60.16.100";
const KODI: &str = "Kodi/20.1 (X11; Linux x86_64) App_Bitness/64 Version/20.1-Git";

/// Starts a gateway with the channels 1, 2.5 and 3.
async fn set_up(change: impl FnOnce(Setup) -> Setup) -> (Provider, TestGateway) {
    let provider = Provider::start();
    let paths = CHANNELS.map(|it| format!("/{it}.ts"));
    for path in &paths {
        provider.path(path).plays(Picture::new("picture"));
    }
    let entries: Vec<_> =
        CHANNELS.iter().zip(&paths).map(|(name, path)| (*name, *name, path.as_str())).collect();
    let gateway = change(Setup::new().list(&provider.playlist(&entries))).start().await;
    for (name, number) in CHANNELS.into_iter().zip(["1", "2.5", "3"]) {
        let channel = Channel { number: number.parse().ok(), ..gateway.channel(name).clone() };
        gateway.change(move |write| write.put(&channel)).await;
    }
    (provider, gateway)
}

async fn get(gateway: &TestGateway, path: &str) -> Response {
    fetch(gateway.address, Request::get(path)).await
}

async fn json_at(gateway: &TestGateway, path: &str) -> Value {
    let answer = get(gateway, path).await;
    assert_eq!((answer.status(), answer.header("content-type")), (200, Some("application/json")), "{path}");
    serde_json::from_str(&answer.text()).unwrap()
}

/// Returns the numbers in a lineup.
fn numbers(lineup: &Value) -> Vec<&str> {
    lineup.as_array().unwrap().iter().map(|it| it["GuideNumber"].as_str().unwrap()).collect()
}

/// Returns the path of an address at this gateway.
fn path_of(gateway: &TestGateway, url: &Value) -> String {
    let origin = format!("http://{}", gateway.address);
    url.as_str().unwrap().strip_prefix(&origin).unwrap_or_else(|| panic!("{url} is elsewhere")).to_owned()
}

async fn set_tuners(gateway: &TestGateway, count: u32) -> Api {
    let admin = create_user(gateway, "root", |it| it.is_superuser = true).await;
    let admin = Api::stranger(gateway).key(&admin.api_key);
    let changed = admin.patch("/api/tuner/", json!({ "tuner_count": count })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    admin
}

/// A program that plays a channel without a user.
async fn plays(gateway: &TestGateway, agent: &str, channel: &str) -> Player {
    Player::ask(gateway.address, gateway.get(channel).header("User-Agent", agent)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_media_server_discovers_the_tuner_reads_its_lineup_and_plays_with_a_transcode_option() {
    let (provider, gateway) = set_up(|it| it).await;
    let origin = format!("http://{}", gateway.address);
    for base in ["", "/tuner", "/hdhr"] {
        let device = json_at(&gateway, &format!("{base}/discover.json")).await;
        let expected = json!({
            "FriendlyName": "Headwater", "ModelNumber": "HDTC-2US", "FirmwareName": "tuner3_atsc",
            "FirmwareVersion": "20200101", "DeviceID": "12345678", "DeviceAuth": "headwater",
            "BaseURL": format!("{origin}{base}"), "LineupURL": format!("{origin}{base}/lineup.json"), "TunerCount": 10,
        });
        assert_eq!(device, expected);
        let status =
            json!({ "ScanInProgress": 0, "ScanPossible": 0, "Source": "Cable", "SourceList": ["Cable"] });
        assert_eq!(json_at(&gateway, &format!("{base}/lineup_status.json")).await, status);
        for method in ["GET", "POST"] {
            for query in ["?scan=start", "?scan=abort&x=%ff", ""] {
                let path = format!("{base}/lineup.post{query}");
                let answer = fetch(gateway.address, Request::get(path).method(method)).await;
                assert_eq!(answer.status(), 200, "{method} {query}");
            }
        }
        let lineup = json_at(&gateway, &path_of(&gateway, &device["LineupURL"])).await;
        assert_eq!(numbers(&lineup), ["1", "2.5", "3"]);
        let news = gateway.path("News");
        let guide_id = guide_channel_id(gateway.channel("News"));
        let expected = json!({
            "GuideNumber": "1", "GuideName": "News", "Guide_ID": guide_id, "URL": format!("{origin}{news}"),
        });
        assert_eq!(lineup[0], expected);
    }
    // Jellyfin asks whether it may share the stream, and adds a query to the address.
    let url = path_of(&gateway, &json_at(&gateway, "/tuner/lineup.json").await[0]["URL"]);
    let head = fetch(gateway.address, Request::head(&url)).await;
    assert_eq!((head.status(), head.header("content-type")), (200, Some("video/mp2t")));
    assert_eq!(provider.accepted(), 0);
    let player = Player::watch(gateway.address, &format!("{url}?transcode=heavy&unknown=1")).await;
    player.sees("picture").await;
    player.leave().await;
    gateway.until_idle().await;

    let by_number = Player::watch(gateway.address, "/auto/v2.5?duration=60").await;
    by_number.sees("picture").await;
    for path in ["/auto/v9", "/auto/1", "/auto/v2.50.1", "/auto/v"] {
        let answer = get(&gateway, path).await;
        assert_eq!((answer.status(), answer.header("x-hdhomerun-error")), (404, Some("801 Unknown Channel")));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_other_forms_of_the_lineup_and_the_description_of_the_device_are_valid() {
    let (_provider, gateway) = set_up(|it| it).await;
    let news = Channel { name: "Tom & <Jerry>".to_owned(), number: None, ..gateway.channel("News").clone() };
    let unnumbered = news.id.0;
    gateway.change(move |write| write.put(&news)).await;
    for base in ["", "/tuner", "/hdhr"] {
        let m3u = get(&gateway, &format!("{base}/lineup.m3u")).await.text();
        assert!(m3u.starts_with("#EXTM3U x-tvg-url=\"http://") && m3u.contains("tvg-chno=\"2.5\""), "{m3u}");
        assert_eq!(m3u.matches("/proxy/ts/stream/").count(), 3);
        for document in ["lineup.xml", "device.xml"] {
            let path = format!("{base}/{document}");
            let answer = get(&gateway, &path).await;
            assert_eq!((answer.status(), answer.header("content-type")), (200, Some("application/xml")));
            assert!(answer.text().starts_with("<?xml version="), "{path}");
            let check = "import sys, xml.etree.ElementTree as t; print(t.parse(sys.stdin).getroot().tag)";
            let parsed = tools::run_with_input("python3", &["-c", check], answer.text().as_bytes()).await;
            assert!(parsed.status.success(), "{path}: {}", String::from_utf8_lossy(&parsed.stderr));
        }
        let xml = get(&gateway, &format!("{base}/lineup.xml")).await.text();
        assert!(xml.contains("<GuideName>Tom &amp; &lt;Jerry&gt;</GuideName>"), "{xml}");
        let description = get(&gateway, &format!("{base}/device.xml")).await.text();
        let place = format!("<URLBase>http://{}{base}</URLBase>", gateway.address);
        for part in [&*place, "<modelNumber>HDTC-2US</modelNumber>", "<serialNumber>12345678</serialNumber>"]
        {
            assert!(description.contains(part), "{part}: {description}");
        }
    }
    // The playlist names the guide, and has its ids, also for the channel without a number.
    let m3u = get(&gateway, "/lineup.m3u").await.text();
    let guide = get(&gateway, "/output/epg").await.text();
    for id in ["2.5", "3", &*format!("id-{unnumbered}")] {
        assert!(m3u.contains(&format!(" tvg-id=\"{id}\" ")), "{id}: {m3u}");
        assert!(guide.contains(&format!("<channel id=\"{id}\">")), "{id}: {guide}");
    }
    // A channel without a number has the one of the player apps, and is last.
    let lineup = json_at(&gateway, "/lineup.json").await;
    let number = (100_000_000 + u64::from(unnumbered)).to_string();
    assert_eq!(numbers(&lineup), ["2.5", "3", &*number]);
    let player = Player::watch(gateway.address, &format!("/auto/v{number}")).await;
    player.sees("picture").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_channel_profile_and_each_additional_device_is_a_tuner_of_its_own() {
    let (_provider, gateway) = set_up(|it| it).await;
    let admin = set_tuners(&gateway, 4).await;
    let profile = json!({ "name": "Kids & Co", "add_new_channels": false });
    let profile = admin.post("/api/channels/profiles/", profile).await.body["id"].clone();
    let member = format!("/api/channels/profiles/{profile}/channels/{}/", gateway.channel("Film").id);
    assert_eq!(admin.send("PUT", &member, json!({ "enabled": true })).await.status, 200);
    let device = json!({
        "device_id": "bedroom", "friendly_name": "Bedroom", "tuner_count": 2, "channel_profile_id": profile,
    });
    assert_eq!(admin.post("/api/hdhr/devices/", device).await.status, 201);

    let origin = format!("http://{}", gateway.address);
    for (place, name, id, count) in [
        ("Kids%20%26%20Co", "Headwater - Kids & Co", "service-tuner-Kids & Co", 4),
        ("bedroom", "Bedroom", "bedroom", 2),
    ] {
        for base in ["/tuner", "/hdhr"] {
            let base = format!("{base}/{place}");
            let found = json_at(&gateway, &format!("{base}/discover.json")).await;
            assert_eq!(found["BaseURL"], format!("{origin}{base}"));
            let facts = (&found["FriendlyName"], &found["DeviceID"], &found["TunerCount"]);
            assert_eq!(facts, (&json!(name), &json!(id), &json!(count)));
            assert_eq!(numbers(&json_at(&gateway, &format!("{base}/lineup.json")).await), ["2.5"]);
            for document in ["lineup_status.json", "lineup.xml", "lineup.m3u", "device.xml", "lineup.post"] {
                assert_eq!(
                    get(&gateway, &format!("{base}/{document}")).await.status(),
                    200,
                    "{base} {document}"
                );
            }
        }
    }
    // Upper and lower case differ, and an unknown name is never an empty lineup.
    for unknown in ["kids%20%26%20co", "Bedroom", "nobody", "%00", "..%2f"] {
        for document in ["discover.json", "lineup.json", "device.xml", "lineup.post"] {
            let answer = get(&gateway, &format!("/tuner/{unknown}/{document}")).await;
            assert_eq!((answer.status(), answer.header("content-type")), (404, Some("application/json")));
        }
    }
    // The devices of a profile end with it.
    assert_eq!(admin.delete(&format!("/api/channels/profiles/{profile}/")).await.status, 204);
    assert_eq!(get(&gateway, "/tuner/bedroom/lineup.json").await.status(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn addresses_are_those_under_which_the_client_reaches_the_gateway() {
    let (_provider, gateway) =
        set_up(|it| it.config(|it| it.trusted_proxies = "127.0.0.1".parse().unwrap())).await;
    let behind_proxy = |path: &str| {
        let request =
            Request::get(path).header("X-Forwarded-For", "192.168.1.5").header("Host", "tv.example:8443");
        request.header("X-Forwarded-Proto", "https")
    };
    let answer = fetch(gateway.address, behind_proxy("/hdhr/discover.json")).await;
    let device: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(device["LineupURL"], "https://tv.example:8443/hdhr/lineup.json");
    let answer = fetch(gateway.address, behind_proxy("/lineup.json")).await;
    let lineup: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(lineup[0]["URL"], format!("https://tv.example:8443{}", gateway.path("News")));

    let admin = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let admin = Api::stranger(&gateway).key(&admin.api_key);
    let settings = admin.get("/api/core/settings/").await.body;
    let system =
        settings["results"].as_array().unwrap().iter().find(|it| it["key"] == "system_settings").unwrap();
    let path = format!("/api/core/settings/{}/", system["id"]);
    let set = admin.patch(&path, json!({ "value": { "public_url": "https://home.example/tv" } })).await;
    assert_eq!(set.status, 200, "{set:?}");
    let answer = fetch(gateway.address, behind_proxy("/tuner/discover.json")).await;
    let device: Value = serde_json::from_str(&answer.text()).unwrap();
    assert_eq!(device["BaseURL"], "https://home.example/tv/tuner");
}

/// Holds T-acc.11.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lineup_has_the_channels_that_its_caller_may_watch() {
    let networks = |config: &mut Config| {
        config.trusted_proxies = "127.0.0.1".parse().unwrap();
        let anonymous = Some("192.168.1.0/24".parse().unwrap());
        config.network_access.tuner = ClassNetworks { connect: "private".parse().unwrap(), anonymous };
    };
    let (_provider, gateway) = set_up(|it| it.config(networks)).await;
    for (name, change) in [
        ("Film", (|it: &mut Channel| it.is_adult = true) as fn(&mut Channel)),
        ("Sports", |it: &mut Channel| it.user_level = UserLevel::Standard),
    ] {
        let number = if name == "Film" { "2.5" } else { "3" };
        let mut channel = Channel { number: number.parse().ok(), ..gateway.channel(name).clone() };
        change(&mut channel);
        gateway.change(move |write| write.put(&channel)).await;
    }
    let ask = async |client: &str, key: Option<&str>| {
        let request = Request::get("/tuner/lineup.json").header("X-Forwarded-For", client);
        let request = key.into_iter().fold(request, |it, key| it.header("X-API-Key", key));
        let answer = fetch(gateway.address, request).await;
        let lineup: Value = serde_json::from_str(&answer.text()).unwrap();
        match answer.status() {
            200 => numbers(&lineup).join(" "),
            status => status.to_string(),
        }
    };
    assert_eq!(ask("192.168.1.5", None).await, "1 2.5 3", "no user exists yet");
    let anna = create_user(&gateway, "anna", |it| it.level = UserLevel::Standard).await;
    assert_eq!(ask("192.168.1.5", None).await, "1");
    assert_eq!(ask("192.168.2.5", None).await, "403");
    assert_eq!(ask("192.168.2.5", Some(&anna.api_key)).await, "1 2.5 3");
    assert_eq!(ask("203.0.113.9", Some(&anna.api_key)).await, "403");
    assert_eq!(ask("192.168.1.5", Some("wrong")).await, "401");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_a_tuner_play_as_many_streams_as_it_has_tuners() {
    let (_provider, gateway) = set_up(|it| it).await;
    let admin = set_tuners(&gateway, 1).await;
    // A player that never reads a lineup is not limited.
    let free = plays(&gateway, "mpv", "Sports").await;
    free.sees("picture").await;
    free.leave().await;
    assert_eq!(json_at(&gateway, "/lineup.json").await.as_array().unwrap().len(), 3);

    let first = plays(&gateway, PLEX, "News").await;
    first.sees("picture").await;
    // Another connection of the same program to the same channel needs no other tuner.
    let probe = plays(&gateway, PLEX, "News").await;
    probe.sees("picture").await;
    probe.leave().await;
    let refused = fetch(gateway.address, gateway.get("Film").header("User-Agent", PLEX)).await;
    assert_eq!((refused.status(), refused.header("retry-after")), (503, Some("3")));
    assert_eq!(refused.header("x-hdhomerun-error"), Some("805 All Tuners In Use"));
    // This client recognises only 403.
    let refused = fetch(gateway.address, gateway.get("Film").header("User-Agent", KODI)).await;
    assert_eq!((refused.status(), refused.header("x-hdhomerun-error")), (403, Some("805 All Tuners In Use")));
    // A user has a limit of its own, and more tuners take effect at once.
    let child = create_user(&gateway, "child", |_| {}).await;
    let user = Player::ask(gateway.address, gateway.get("Film").header("X-API-Key", &child.api_key)).await;
    user.sees("picture").await;
    assert_eq!(admin.patch("/api/tuner/", json!({ "tuner_count": 2 })).await.status, 200);
    let second = plays(&gateway, KODI, "Film").await;
    second.sees("picture").await;
}

/// The patterns of clients when they change the channel or check a stream, each with one tuner.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tuner_is_free_again_when_its_client_closes_the_stream() {
    let (provider, gateway) = set_up(|it| it).await;
    set_tuners(&gateway, 1).await;
    json_at(&gateway, "/discover.json").await;
    // Kodi opens, closes, and opens again at once.
    let check = plays(&gateway, KODI, "News").await;
    assert_eq!(check.status().await, 200);
    check.leave().await;
    let player = plays(&gateway, KODI, "News").await;
    player.sees("picture").await;
    assert_eq!(provider.path("/News.ts").n_requests(), 1);

    // Plex opens the next channel and then closes the last one.
    let next = plays(&gateway, PLEX, "Film").await;
    player.reset().await;
    next.sees("picture").await;
    next.leave().await;
    gateway.until_idle().await;
    let last = plays(&gateway, PLEX, "Sports").await;
    last.sees("picture").await;
}

/// Plex with an account that allows one connection: it opens the next channel before it closes the last one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_zap_of_a_media_server_works_on_an_account_with_one_connection() {
    let provider = Provider::start();
    for path in ["/a.ts", "/b.ts"] {
        provider.path(path).plays(Picture::new(path));
    }
    let list = provider.playlist(&[("a", "A", "/a.ts"), ("b", "B", "/b.ts")]);
    let gateway = Setup::new().limited_list(&list, 1).start().await;
    json_at(&gateway, "/lineup.json").await;
    let first = plays(&gateway, PLEX, "A").await;
    first.sees("/a.ts").await;
    let second = plays(&gateway, PLEX, "B").await;
    first.reset().await;
    second.sees("/b.ts").await;
    assert_eq!(provider.peak(), 1);
}
