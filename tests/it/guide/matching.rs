//! Channels of a playlist find their guide channels in an uploaded guide: names as providers and guides write them.

use std::collections::HashMap;
use std::fmt::Write as _;

use serde_json::{Value, json};

use super::sources::{GuideStory, SOURCES};
use crate::support::api::PASSWORD;
use crate::support::until_async;
use crate::support::upstream::MockResponse;
use crate::support::websocket::WebSocketClient;

const CHANNELS: &str = "/api/channels/channels/";

/// Keys and names of the guide.
const GUIDE: &[(&str, &str)] = &[
    ("BBCOne.uk", "BBC One"),
    ("BBCOneLondon.uk", "BBC One London"),
    ("BBCOneScotland.uk", "BBC One Scotland"),
    ("BBCTwo.uk", "BBC Two"),
    ("BBCNews.uk", "BBC News"),
    ("ITV1.uk", "ITV1"),
    ("ITV1plus1.uk", "ITV1 +1"),
    ("ITV2.uk", "ITV2"),
    ("Dave.uk", "Dave"),
    ("DaveHD.uk", "Dave HD"),
    ("udrama.uk", "U&Drama"),
    ("DasErste.de", "Das Erste"),
    ("RTL.de", "RTL"),
    ("RTL.hr", "RTL"),
    ("SkySport1.de", "Sky Sport 1"),
    ("SkySport10.de", "Sky Sport 10"),
    ("Rai1.it", "Rai 1"),
    ("Rai2.it", "Rai Due"),
    ("CanalPlus.fr", "CANAL+"),
    ("CanalPlusSport.fr", "Canal+ Sport"),
    ("FoxNews.us", "FOX News Channel"),
    ("wabc.us", "ABC"),
    ("kabc.us", "ABC"),
    ("TNT.us", "TNT"),
    ("perviy.ru", "Первый канал"),
    ("nhk.jp", "NHK総合"),
    ("aljazeera.qa", "الجزيرة"),
];

/// Guide id and name of a channel in the playlist, the decision, and the key of its guide channel.
const EXPECTED: &[(&str, &str, &str, &str)] = &[
    // By name, in spite of countries, qualities and signs.
    ("", "UK: BBC 1 FHD", "link", "BBCOne.uk"),
    ("", "|UK| BBC NEWS HD", "link", "BBCNews.uk"),
    ("", "UK | ITV 1", "link", "ITV1.uk"),
    ("", "UK: ITV1+1 HD", "link", "ITV1plus1.uk"),
    ("", "|DE| Das Erste 4K", "link", "DasErste.de"),
    ("", "DE: RTL HEVC", "link", "RTL.de"),
    ("", "DE: SKY SPORT 10 FHD", "link", "SkySport10.de"),
    ("", "IT: Rai Uno HD", "link", "Rai1.it"),
    ("", "IT: RAI 2", "link", "Rai2.it"),
    ("", "FR - Canal+ UHD", "link", "CanalPlus.fr"),
    ("", "US: Fox News", "link", "FoxNews.us"),
    ("", "RU: ПЕРВЫЙ КАНАЛ HD", "link", "perviy.ru"),
    ("", "JP: NHK総合 ᴴᴰ", "link", "nhk.jp"),
    ("", "AR: الجزيرة HD", "link", "aljazeera.qa"),
    // The nearest quality.
    ("", "UK: Dave FHD", "link", "DaveHD.uk"),
    ("", "UK: Dave", "link", "Dave.uk"),
    // By guide id, whatever the name is.
    ("bbctwo.UK", "Channel two of the corporation", "link", "BBCTwo.uk"),
    ("BBC.Two.uk", "BBC 2 something", "link", "BBCTwo.uk"),
    // Other regions, numbers, time shifts, countries and scripts are other channels.
    ("", "UK: BBC One Wales", "below_threshold", ""),
    ("", "UK: ITV2 +1", "below_threshold", ""),
    ("", "DE: Sky Sport 11", "below_threshold", ""),
    ("", "DE: Fox News", "below_threshold", ""),
    ("", "FR: Canal+ Sport 2", "below_threshold", ""),
    ("", "RU: ТНТ 4K", "below_threshold", ""),
    ("", "UK: Drama", "below_threshold", ""),
    ("", "SE: Kanal 5", "no_candidate", ""),
    // Several stations, or several countries, of one name.
    ("", "US: ABC HD", "tie", ""),
    ("", "RTL", "tie", ""),
];

fn xmltv() -> String {
    let mut text = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<tv>\n".to_owned();
    for (key, name) in GUIDE {
        let name = name.replace('&', "&amp;");
        writeln!(text, "<channel id=\"{key}\"><display-name>{name}</display-name></channel>").unwrap();
    }
    for (key, _) in GUIDE {
        text += &format!(
            "<programme start=\"20300101000000 +0000\" stop=\"20300101010000 +0000\" channel=\"{key}\">\
             <title>Show</title></programme>\n"
        );
    }
    text + "</tv>\n"
}

impl GuideStory {
    /// Uploads the guide, and waits until its channels are known.
    async fn upload_guide(&self) {
        let path = format!("{SOURCES}upload/");
        let (status, made) = self.upload(&path, "application/xml", "", xmltv().as_bytes()).await;
        assert_eq!(status, 201, "{made}");
        let seen = self.ended(&format!("{SOURCES}{}/", made["id"])).await;
        assert_eq!(
            (&seen["status"], &seen["epg_data_count"]),
            (&json!("success"), &json!(GUIDE.len())),
            "{seen}"
        );
    }

    /// Imports a playlist and makes a channel of each entry: guide id and name. Returns the ids of the channels by name.
    async fn import<'a>(
        &self,
        login: &str,
        entries: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> HashMap<String, Value> {
        let entry = |(n, (tvg_id, name)): (usize, (&str, &str))| {
            let id = if tvg_id.is_empty() { String::new() } else { format!(" tvg-id=\"{tvg_id}\"") };
            format!("#EXTINF:-1{id},{name}\n{}\n", self.provider.url(&format!("/live/{login}/{n}.ts")))
        };
        let list = format!("#EXTM3U\n{}", entries.enumerate().map(entry).collect::<String>());
        let path = format!("/{login}.m3u");
        self.provider.path(&path).answers(MockResponse::text("audio/x-mpegurl", list));
        let body = json!({ "name": login, "server_url": self.provider.url(&path) });
        let made = self.admin.post("/api/m3u/accounts/", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let account = format!("/api/m3u/accounts/{}/", made.body["id"]);
        until_async("the playlist", async || self.admin.get(&account).await.body["status"] == "success")
            .await;
        let models = self.gateway.models();
        models.streams.at(models.store.version()).await.unwrap();
        let filter = json!({ "filter": { "m3u_account": made.body["id"] } });
        let made = self.admin.post(&format!("{CHANNELS}from-stream/bulk/"), filter).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let ids = made.body["channel_ids"].as_array().unwrap().clone();
        self.all()
            .await
            .into_iter()
            .filter(|it| ids.contains(&it.1["id"]))
            .map(|it| (it.0, it.1["id"].clone()))
            .collect()
    }

    /// Returns all channels by name.
    async fn all(&self) -> HashMap<String, Value> {
        let listed = self.admin.get(&format!("{CHANNELS}?page_size=100")).await.body["results"].clone();
        let by_name = |it: &Value| (it["name"].as_str().unwrap().to_owned(), it.clone());
        listed.as_array().unwrap().iter().map(by_name).collect()
    }

    /// Returns the names of all channels with the keys of the guide channels that are linked with them.
    async fn links(&self) -> HashMap<String, String> {
        let guide = self.gateway.models().guide.load();
        let key = |it: &Value| {
            let id = u32::try_from(it["epg_data_id"].as_u64()?).unwrap();
            Some(guide.get(domain::ids::GuideChannelId(id)).unwrap().key.clone())
        };
        self.all().await.into_iter().filter_map(|(name, it)| Some((name, key(&it)?))).collect()
    }

    async fn matched(&self, path: &str, body: Value) -> Value {
        let done = self.admin.post(&format!("{CHANNELS}{path}"), body).await;
        assert_eq!(done.status, 202, "{done:?}");
        done.body
    }

    async fn socket(&self) -> WebSocketClient {
        let token = self.admin.token("root", PASSWORD).await.text("access").to_owned();
        let login = format!("Bearer {token}");
        WebSocketClient::open(self.gateway.address, "/ws/", &[("authorization", &login)]).await.unwrap()
    }
}

/// Returns the links that are expected.
fn expected_links() -> HashMap<String, String> {
    let linked = EXPECTED.iter().filter(|it| it.2 == "link");
    linked.map(|(_, name, _, key)| ((*name).to_owned(), (*key).to_owned())).collect()
}

fn keys(candidates: &Value) -> Vec<&str> {
    candidates.as_array().unwrap().iter().map(|it| it["tvg_id"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_of_a_playlist_find_their_guide_channels_and_no_others() {
    let story = GuideStory::new().await;
    story.upload_guide().await;
    let made = story.import("anna", EXPECTED.iter().map(|it| (it.0, it.1))).await;
    assert_eq!(made.len(), EXPECTED.len());
    let mut socket = story.socket().await;

    let preview = story.matched("match-epg/", json!({ "preview": true })).await;
    let results: HashMap<&str, &Value> = preview["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["channel_name"].as_str().unwrap(), it))
        .collect();
    let mut wrong = Vec::new();
    for (_, name, decision, key) in EXPECTED {
        let result = results[name];
        let found = if result["epg_data_id"].is_null() { "" } else { keys(&result["candidates"])[0] };
        if result["decision"] != *decision || found != *key {
            wrong.push(format!("{name}: expected {decision} {key}, not {result}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!((preview["preview"].clone(), preview["undo"].clone()), (json!(true), json!(null)));
    assert!(story.links().await.is_empty(), "a preview changes nothing");

    // Ties come first, and say which guide channels fit and why.
    for first in &preview["results"].as_array().unwrap()[..2] {
        assert_eq!(first["decision"], "tie");
    }
    let tie = results["US: ABC HD"];
    let mut rivals = keys(&tie["candidates"]);
    rivals.sort_unstable();
    assert_eq!(rivals, ["kabc.us", "wabc.us"]);
    assert_eq!(tie["candidates"][0]["reasons"], json!(["same name", "same country us"]));
    assert_eq!(tie["candidates"][0]["score"], tie["candidates"][1]["score"]);
    let candidates = results["UK: ITV2 +1"]["candidates"].as_array().unwrap();
    let shifted = candidates.iter().find(|it| it["tvg_id"] == "ITV2.uk").unwrap();
    assert!(shifted["reasons"].to_string().contains("time shifts +1 and +0 differ"), "{shifted}");

    // The frames of the first preview come before those of the next runs.
    socket.kind("epg_match").await;
    let n_links = expected_links().len();
    for (body, links) in [(json!({ "preview": true }), HashMap::new()), (json!({}), expected_links())] {
        let done = story.matched("match-epg/", body).await;
        let begun = socket.kind("epg_matching_progress").await;
        assert_eq!(
            (&begun["stage"], &begun["total"]),
            (&json!("matching"), &json!(EXPECTED.len())),
            "{begun}"
        );
        assert_eq!((&begun["matched"], &begun["progress_percent"]), (&json!(0), &json!(0)));
        let ended = socket.kind("epg_matching_progress").await;
        assert_eq!(
            (&ended["stage"], &ended["progress_percent"]),
            (&json!("completed"), &json!(100)),
            "{ended}"
        );
        let finished = socket.kind("epg_match").await;
        assert_eq!((&finished["success"], &finished["matches_count"]), (&json!(true), &json!(n_links)));
        assert_eq!(finished["message"], done["message"]);
        assert_eq!((&done["matches_count"], &done["ties_count"]), (&json!(n_links), &json!(2)));
        assert_eq!(story.links().await, links);
        if let Some(undo) = done["undo"]["url"].as_str() {
            assert_eq!(story.admin.post(undo, json!({})).await.status, 200);
            assert!(story.links().await.is_empty(), "undone");
        }
    }

    // One channel.
    let path = format!("{}/match-epg/", made["IT: Rai Uno HD"]);
    let one = story.matched(&path, json!({})).await;
    assert_eq!((&one["matched"], keys(&one["result"]["candidates"])[0]), (&json!(true), "Rai1.it"), "{one}");
    let frame = socket.kind("single_channel_epg_match").await;
    assert_eq!((&frame["matched"], &frame["channel_id"]), (&json!(true), &made["IT: Rai Uno HD"]));
    assert_eq!(frame["channel"]["epg_data_id"], one["result"]["epg_data_id"]);
    let tie = story.matched(&format!("{}/match-epg/", made["US: ABC HD"]), json!({})).await;
    assert_eq!(
        (&tie["matched"], &tie["result"]["decision"], &tie["undo"]),
        (&json!(false), &json!("tie"), &json!(null))
    );
    assert_eq!(tie["message"], "Several guide channels fit channel US: ABC HD equally well");
    assert_eq!(story.links().await.len(), 1);
    assert_eq!(
        story.standard_user().await.post(&format!("{CHANNELS}match-epg/"), json!({})).await.status,
        403
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_an_admin_links_is_known_for_channels_of_the_next_account() {
    let story = GuideStory::new().await;
    story.upload_guide().await;
    let first = story.import("anna", [("", "UK: Drama"), ("", "US: ABC HD")].into_iter()).await;
    let sources = story.gateway.models().guide_sources.load();
    let guide = story.gateway.models().guide.load();
    let id = |key: &str| {
        let mut all = sources.iter().flat_map(|it| guide.source_channels(it.id));
        all.find(|it| it.key == key).unwrap().id
    };
    let link = |name: &str, key: &str| json!({ "channel_id": first[name], "epg_data_id": id(key) });
    let one = story
        .admin
        .post(
            &format!("{CHANNELS}{}/set-epg/", first["UK: Drama"]),
            json!({ "epg_data_id": id("udrama.uk") }),
        )
        .await;
    assert_eq!(one.status, 200, "{one:?}");
    let links = json!({ "associations": [link("US: ABC HD", "kabc.us")] });
    let settled = story.admin.post(&format!("{CHANNELS}batch-set-epg/"), links).await;
    assert_eq!((settled.status, &settled.body["channels_updated"]), (200, &json!(1)), "{settled:?}");

    let names = ["UK | DRAMA FHD", "(US) ABC", "UK: Drama +1", "DE: Drama"];
    let second = story.import("bert", names.map(|it| ("", it)).into_iter()).await;
    let done = story.matched("match-epg/", json!({})).await;
    assert_eq!(
        (&done["total_count"], &done["matches_count"], &done["skipped_count"]),
        (&json!(4), &json!(2), &json!(2))
    );
    let links = story.links().await;
    assert_eq!((links["UK | DRAMA FHD"].as_str(), links["(US) ABC"].as_str()), ("udrama.uk", "kabc.us"));
    assert_eq!(links.len(), 4, "another time shift and another country are other channels");
    let why = story.matched(&format!("{}/match-epg/", second["(US) ABC"]), json!({ "preview": true })).await;
    assert_eq!(why["result"]["candidates"][0]["reasons"], json!(["an admin linked this name before"]));
}
