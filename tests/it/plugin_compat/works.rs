//! Ten plugins in the manner of existing ones. What they did is read over REST.

use serde_json::{Value, json};

use super::Story;
use crate::plugins::{PLUGINS, listed};

const CHANNELS: &str = "/api/channels/channels/";
const GROUPS: &str = "/api/channels/groups/";
const LOGOS: &str = "/api/channels/logos/";
const STREAMS: &str = "/api/channels/streams/";

/// Adds four channels in two groups, and four streams, of which two have the same address.
async fn furnish(story: &Story) {
    for name in ["News", "Films"] {
        story.ask("POST", GROUPS, json!({ "name": name })).await;
    }
    for (name, number, group, tvg_id) in [
        ("UK: Alpha", 1, "News", "alpha"),
        ("Beta HD", 2, "News", "beta"),
        ("Gamma Sport", 3, "Films", ""),
        ("Delta", 4, "Films", ""),
    ] {
        let new =
            json!({ "name": name, "channel_number": number, "channel_group_id": group, "tvg_id": tvg_id });
        story.ask("POST", CHANNELS, new).await;
    }
    for n in 0..4 {
        let new =
            json!({ "name": format!("Stream {n}"), "url": format!("http://streams.example/{}.ts", n % 3) });
        story.ask("POST", STREAMS, new).await;
    }
    for (channel, streams) in [(1, json!([1, 2])), (2, json!([4]))] {
        story.ask("PATCH", &format!("{CHANNELS}{channel}/"), json!({ "streams": streams })).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_change_channels_streams_groups_and_logos() {
    let story = Story::new().await;
    furnish(&story).await;

    story.install("renumber", include_str!("renumber.py")).await;
    assert_eq!(story.run("renumber", "main").await["message"], "4 channels");
    let numbers = story.column(&format!("{CHANNELS}?ordering=id"), "channel_number").await;
    let numbers: Vec<f64> = numbers.iter().filter_map(Value::as_f64).collect();
    assert_eq!(numbers, [103.0, 102.0, 101.0, 100.0]);

    story.install("one_by_one", include_str!("one_by_one.py")).await;
    let done = story.run("one_by_one", "main").await;
    assert_eq!(
        done["names"],
        json!(["Gamma Sport", "Delta", "Beta HD", "UK: Alpha"]),
        "exchanged, and none renamed"
    );

    story.install("dedupe", include_str!("dedupe.py")).await;
    let done = story.run("dedupe", "main").await;
    assert_eq!((&done["removed"], &done["empty"]), (&json!(1), &json!(2)), "{done}");
    assert_eq!(story.column(&format!("{STREAMS}?ordering=id"), "id").await, [1, 2, 3].map(Value::from));
    let streams = story.column(&format!("{CHANNELS}?ordering=id"), "streams").await;
    assert_eq!(streams, [json!([1, 2]), json!([1]), json!([]), json!([])]);

    story.install("regroup", include_str!("regroup.py")).await;
    assert_eq!(story.run("regroup", "main").await["moved"], 2);
    let groups = story.column(&format!("{CHANNELS}?ordering=id"), "channel_group_name").await;
    assert_eq!(groups, ["United Kingdom", "News", "Sport", "Films"].map(Value::from));

    story.ask("POST", LOGOS, json!({ "name": "Old", "url": "http://logos.example/old.png" })).await;
    story.install("logos", include_str!("logos.py")).await;
    let done = story.run("logos", "main").await;
    assert_eq!((&done["unused"], &done["refused"]), (&json!(["Old"]), &json!("ValidationError")), "{done}");
    // In the order of their names, "Beta HD" and "UK: Alpha".
    let urls = story.column(&format!("{LOGOS}?ordering=name"), "url").await;
    assert_eq!(urls, ["beta", "alpha"].map(|it| json!(format!("http://logos.example/{it}.png"))));
    let first = story.admin.get(&format!("{CHANNELS}1/")).await.body;
    assert!(first["logo_id"].is_u64(), "{first}");

    story.install("export_m3u", include_str!("export_m3u.py")).await;
    let text = story.run("export_m3u", "main").await["text"].as_str().unwrap().to_owned();
    let file = std::fs::read_to_string(story.files("export_m3u").join("files/list.m3u")).unwrap();
    assert_eq!(text, file);
    let expected = "tvg-chno=\"103\" tvg-logo=\"http://logos.example/alpha.png\" group-title=\"United Kingdom\",UK: \
                    Alpha\nhttp://streams.example/0.ts\n";
    assert!(text.contains(expected) && text.lines().count() == 5, "{text}");
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_make_guides_and_link_them() {
    let story = Story::new().await;
    furnish(&story).await;

    story.install("make_guide", include_str!("make_guide.py")).await;
    let done = story.run("make_guide", "main").await;
    assert_eq!(
        (&done["created"], &done["written"], &done["late"]),
        (&json!(true), &json!(24), &json!(8)),
        "{done}"
    );
    let source = story.admin.get("/api/epg/sources/").await.body;
    let source = source.as_array().unwrap_or_else(|| source["results"].as_array().unwrap())[0].clone();
    assert_eq!(
        (&source["name"], &source["source_type"]),
        (&json!("Made guide"), &json!("written")),
        "{source}"
    );
    let found = story.admin.get("/api/epg/programs/search/?channel_id=1").await.body;
    assert_eq!(
        (&found["count"], &found["results"][0]["title"]),
        (&json!(6), &json!("UK: Alpha 0")),
        "{found}"
    );
    assert!(found["results"][0]["channels"].to_string().contains("UK: Alpha"), "{found}");
    // Nothing is left to do, because all channels have a guide.
    assert_eq!(story.run("make_guide", "main").await["written"], 0);

    for id in 1..=4 {
        story.ask("PATCH", &format!("{CHANNELS}{id}/"), json!({ "epg_data_id": null, "tvg_id": "" })).await;
    }
    story.ask("PATCH", &format!("{CHANNELS}2/"), json!({ "name": "beta" })).await;
    story.install("assign_epg", include_str!("assign_epg.py")).await;
    let done = story.run("assign_epg", "main").await;
    assert_eq!(done["assigned"].as_array().unwrap().len(), 4, "{done}");
    let linked = story.column(&format!("{CHANNELS}?ordering=id"), "tvg_id").await;
    assert_eq!(linked, [1, 2, 3, 4].map(|it| json!(format!("made-{it}"))));
    story.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn plugins_keep_keys_and_tell_people() {
    let story = Story::new().await;
    furnish(&story).await;

    story.install("redis_keys", include_str!("redis_keys.py")).await;
    story.run("redis_keys", "main").await;
    story.ask("POST", &format!("{PLUGINS}redis_keys/restart/"), json!({})).await;
    let done = story.run("redis_keys", "main").await;
    assert_eq!(
        (&done["runs"], &done["log"]),
        (&json!(2), &json!([1, 2])),
        "keys outlive the process: {done}"
    );
    assert_eq!((&done["last"]["run"], &done["cache"]), (&json!("2"), &json!(42)), "{done}");
    assert_eq!(
        (&done["keys"], &done["foreign"]),
        (&json!(["demo:last", "demo:log", "demo:runs"]), &json!("NotSupported"))
    );

    story.install("notices", include_str!("notices.py")).await;
    let done = story.run("notices", "main").await;
    assert_eq!((&done["stopped"], &done["word"]), (&json!("error"), &json!({ "word": "bye" })), "{done}");
    let notices = story.admin.get("/api/core/notifications/").await.body.to_string();
    assert!(notices.contains("notices-plugin") && notices.contains("4 channels"), "{notices}");
    let notices = listed(&story.admin, "notices").await;
    assert_eq!(notices["settings"], json!({ "word": "bye" }));

    story.install("periodic", include_str!("periodic.py")).await;
    assert_eq!(story.run("periodic", "now").await["made"], "Touched");
    let groups = story.column(&format!("{GROUPS}?ordering=id"), "name").await;
    assert!(groups.contains(&json!("Touched")), "{groups:?}");
    story.stop().await;
}

/// A schedule in another time zone ran at the wrong hour, and one of 45 minutes after 45 and 15 minutes.
#[tokio::test(flavor = "multi_thread")]
async fn periodic_tasks_run_at_their_times_and_what_differs_is_converted_or_refused() {
    let story = Story::with(&["TZ=UTC"]).await;
    story.install("periodic", include_str!("periodic.py")).await;
    let edges = story.run("periodic", "edges").await;
    let refused = ["one_off", "expires", "start_time"].map(|it| format!("NotSupported: PeriodicTask.{it}"));
    assert_eq!((&edges["refused"], &edges["left"]), (&json!(refused), &json!(0)), "{edges}");
    let intervals = ["*/30 * * * *", "* * * * *", "0 */6 * * *", "0 0 * * *", "*/30 * * * *", "0 0 */3 * *"];
    assert_eq!(edges["intervals"], json!(intervals), "{edges}");
    assert_eq!((&edges["east"], &edges["days"]), (&json!("5 20,22 * * *"), &json!("5 1 * * 1")), "{edges}");
    assert_eq!(edges["same"], "5 1 * * 1");

    let main = story.run("periodic", "main").await;
    assert_eq!((&main["created"], &main["cron"]), (&json!(false), &json!("30 4 * * *")), "{main}");
    story.run("periodic", "soon").await;
    let has_run = async || {
        let groups = story.column(&format!("{GROUPS}?ordering=id"), "name").await;
        groups.contains(&json!("By schedule"))
    };
    let ran = tokio::time::timeout(std::time::Duration::from_secs(240), async {
        while !has_run().await {
            tokio::time::sleep(std::time::Duration::from_millis(250)).await;
        }
    });
    assert!(ran.await.is_ok(), "{}", story.program.output());
    assert_eq!(story.run("periodic", "end").await["left"], 0);
    story.stop().await;
}
