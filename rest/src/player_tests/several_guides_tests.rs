//! Channels with several guides, and placeholders of channels without one, on every surface.

use domain::channel::Channel;
use domain::guide::programme::Programme;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{ChannelId, GuideChannelId};
use domain::time::iso_millis;
use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::guide_testing::{HOUR, guide_source, now, programme, put_guide};
use crate::testing::{ADMIN, Rest, STREAMER};

fn channel(id: u32, tvg_id: &str) -> Channel {
    Channel {
        number: id.to_string().parse().ok(),
        tvg_id: Some(tvg_id.to_owned()),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0)
    }
}

/// Stores two guides with the same id. The first one has no description of its show, and nothing in between.
async fn with_two_guides(now: i64) -> Rest {
    let rest = Rest::start().await;
    rest.put([channel(1, "news"), channel(2, "other"), channel(3, "nothing")]).await;
    let bare = Programme { descriptions: Vec::new(), ..programme(now, 1, 2, "Show") };
    let first = vec![bare, programme(now, 4, 5, "Late")];
    let first_source = GuideSource { priority: 5, ..guide_source(1, GuideSourceKind::Xmltv) };
    put_guide(&rest, first_source, vec![(1, "news", first)]).await;
    let second =
        vec![programme(now, 1, 2, "SHOW"), programme(now, 2, 5, "Film"), programme(now, 30, 31, "Far")];
    let more = vec![programme(now, 9, 10, "Extra")];
    put_guide(&rest, guide_source(2, GuideSourceKind::Xmltv), vec![(20, "news", second), (21, "more", more)])
        .await;
    rest
}

async fn get(rest: &Rest, path: &str) -> Value {
    let answer = rest.ask(ADMIN, "GET", path, Value::Null).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.body
}

/// Returns start and end in hours from `now`, and the title.
fn row(now: i64, it: &Value) -> (i64, i64, String) {
    let hours = |it: &Value| (it.as_str().unwrap().parse::<Timestamp>().unwrap().as_second() - now) / HOUR;
    (hours(&it["start_time"]), hours(&it["end_time"]), it["title"].as_str().unwrap().to_owned())
}

async fn grid(rest: &Rest, now: i64, channel: u32) -> Vec<Value> {
    let (from, until) = (iso_millis(now * 1000), iso_millis((now + 40 * HOUR) * 1000));
    let path = format!("/api/epg/grid/?channels={channel}&start={from}&end={until}");
    get(rest, &path).await["data"].as_array().unwrap().clone()
}

async fn xmltv(rest: &Rest) -> String {
    rest.send("GET", &format!("/xmltv.php?{}", rest.query_login(STREAMER)), &[], "").await.text
}

#[tokio::test]
async fn a_second_guide_fills_the_hours_and_the_fields_that_the_first_one_lacks() {
    let now = now();
    let rest = with_two_guides(now).await;
    let rows = grid(&rest, now, 1).await;
    let shown: Vec<_> = rows.iter().map(|it| row(now, it)).collect();
    let expected = [(1, 2, "Show"), (2, 4, "Film"), (4, 5, "Late"), (30, 31, "Far")];
    assert_eq!(shown, expected.map(|it| (it.0, it.1, it.2.to_owned())));
    assert_eq!(rows[0]["description"], "About SHOW.", "the first guide has none");

    let text = xmltv(&rest).await;
    assert_eq!(text.matches("<programme ").count(), 4, "{text}");
    assert!(text.contains("About SHOW.") && !text.contains(">SHOW<"), "{text}");
    let path = format!("/player_api.php?{}&action=get_short_epg&stream_id=1", rest.query_login(STREAMER));
    let app = rest.send("GET", &path, &[], "").await.body;
    assert_eq!(app["epg_listings"].as_array().unwrap().len(), 4);
    assert_eq!(app["epg_listings"][1]["stop_timestamp"], (now + 4 * HOUR).to_string());

    // What is cut or completed is so in its details and its recordings, too.
    let of = async |at: usize| get(&rest, &format!("/api/epg/programs/{}/", rows[at]["id"])).await;
    assert_eq!(of(0).await["description"], "About SHOW.");
    assert_eq!(row(now, &of(1).await), (2, 4, "Film".to_owned()));
    let body = json!({ "channel": 1, "program_id": rows[1]["id"] });
    let made = rest.admin("POST", "/api/channels/recordings/", body).await.body;
    assert_eq!(made["end_time"], rows[1]["end_time"]);

    // A viewer finds what the channel shows, and not what its first guide hides.
    let found = async |title: &str| {
        let path = format!("/api/epg/programs/search/?title={title}");
        let found = rest.ask(STREAMER, "GET", &path, Value::Null).await.body;
        let channels =
            found["results"].as_array().unwrap().iter().map(|it| it["channels"].as_array().unwrap().len());
        (found["count"].as_u64().unwrap(), channels.collect::<Vec<_>>())
    };
    assert_eq!(found("Film").await, (1, vec![1]));
    assert_eq!(found("Show").await, (1, vec![1]));
    let rule = rest.admin("POST", "/api/channels/series-rules/", json!({ "title": "Far" })).await;
    assert_eq!(rule.status, 200, "{}", rule.text);
    let list = get(&rest, "/api/channels/recordings/").await;
    let titles: Vec<_> = list["results"].as_array().unwrap().iter().map(row_title).collect();
    assert_eq!(titles, ["Film", "Far"]);
}

fn row_title(recording: &Value) -> &str {
    recording["custom_properties"]["program"]["title"].as_str().unwrap_or_default()
}

#[tokio::test]
async fn an_admin_chooses_further_guides_in_order() {
    let now = now();
    let rest = with_two_guides(now).await;
    let path = "/api/channels/channels/1/";
    let changed = rest.admin("PATCH", path, json!({ "epg_data_id": 1, "further_epg_data_ids": [21] })).await;
    assert_eq!(
        (changed.status, &changed.body["further_epg_data_ids"]),
        (200, &json!([21])),
        "{}",
        changed.text
    );
    let titles = async || -> Vec<String> {
        grid(&rest, now, 1).await.iter().map(|it| it["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles().await, ["Show", "Late", "Extra"], "a link leaves out other guides with the id");
    for (ids, message) in
        [(json!([99]), "Invalid pk"), (json!([20, 20]), "more than once"), (json!([1, 20, 21, 22, 23]), "4")]
    {
        let refused = rest.admin("PATCH", path, json!({ "further_epg_data_ids": ids })).await;
        assert!(refused.status == 400 && refused.text.contains(message), "{}", refused.text);
    }
    // The guide of a deleted source is gone.
    assert_eq!(rest.admin("DELETE", "/api/epg/sources/2/", Value::Null).await.status, 204);
    assert_eq!(get(&rest, path).await["further_epg_data_ids"], json!([]));
    assert_eq!(titles().await, ["Show", "Late"]);
    assert_eq!(get(&rest, path).await["epg_data_id"], json!(GuideChannelId(1).0));
}

/// Stores a guide that hides the first hour of a programme of a written one, on channel 1. Channel 2 shows the written one only.
async fn with_written_guide(now: i64) -> Rest {
    let rest = Rest::start().await;
    let linked = Channel { guide_channel: Some(GuideChannelId(20)), ..channel(2, "written") };
    rest.put([channel(1, "news"), linked]).await;
    let first = vec![programme(now, 1, 2, "First"), programme(now, 6, 7, "Twin")];
    let first_source = GuideSource { priority: 5, ..guide_source(1, GuideSourceKind::Xmltv) };
    put_guide(&rest, first_source, vec![(1, "news", first)]).await;
    let bare = Programme { descriptions: Vec::new(), ..programme(now, 6, 7, "Twin") };
    let second = vec![programme(now, 1, 3, "Cut"), bare];
    put_guide(&rest, guide_source(7, GuideSourceKind::Written), vec![(20, "news", second)]).await;
    rest
}

async fn written(rest: &Rest, now: i64, channel: u32, title: &str) -> Value {
    let rows = grid(rest, now, channel).await;
    rows.into_iter().find(|it| it["title"] == title).expect("the channel shows it")
}

#[tokio::test]
async fn an_edit_of_a_written_programme_keeps_what_another_guide_hides_and_adds_nothing() {
    let now = now();
    let rest = with_written_guide(now).await;
    assert_eq!(row(now, &written(&rest, now, 1, "Cut").await), (2, 3, "Cut".to_owned()));
    let [cut, twin] = [written(&rest, now, 2, "Cut").await, written(&rest, now, 2, "Twin").await];
    // Channel 2 goes, so that only the channel with two guides shows them.
    assert_eq!(rest.admin("DELETE", "/api/channels/channels/2/", Value::Null).await.status, 204);
    for (it, hours) in [(&cut, (1, 3)), (&twin, (6, 7))] {
        let path = format!("/api/epg/programs/{}/", it["id"]);
        let changed = rest.admin("PATCH", &path, json!({ "title": "Renamed" })).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        assert_eq!(row(now, &changed.body), (hours.0, hours.1, "Renamed".to_owned()));
    }
    let again =
        rest.admin("PATCH", &format!("/api/epg/programs/{}/", twin["id"]), json!({ "is_new": true })).await;
    assert_eq!((again.status, &again.body["description"]), (200, &Value::Null), "{}", again.text);
}

#[tokio::test]
async fn a_programme_has_the_times_of_the_channel_that_is_recorded() {
    let now = now();
    let rest = with_written_guide(now).await;
    let id = written(&rest, now, 2, "Cut").await["id"].clone();
    for (channel, hours) in [(1, (2, 3)), (2, (1, 3))] {
        let body = json!({ "channel": channel, "program_id": id });
        let made = rest.admin("POST", "/api/channels/recordings/", body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        let shown =
            json!({ "title": "", "start_time": made.body["start_time"], "end_time": made.body["end_time"] });
        assert_eq!(row(now, &shown), (hours.0, hours.1, String::new()), "channel {channel}");
    }
    // The channel that shows it whole counts.
    let detail = get(&rest, &format!("/api/epg/programs/{id}/")).await;
    assert_eq!(row(now, &detail), (1, 3, "Cut".to_owned()));
}

#[tokio::test]
async fn a_viewer_reads_no_programme_that_every_visible_channel_hides() {
    let now = now();
    let rest = Rest::start().await;
    rest.put([channel(1, "news")]).await;
    let first_source = GuideSource { priority: 5, ..guide_source(1, GuideSourceKind::Xmltv) };
    put_guide(&rest, first_source.clone(), vec![(1, "news", vec![programme(now, 1, 4, "First")])]).await;
    let second = vec![programme(now, 2, 3, "Hidden"), programme(now, 4, 5, "Shown")];
    put_guide(&rest, guide_source(2, GuideSourceKind::Xmltv), vec![(20, "news", second)]).await;
    let found = get(&rest, "/api/epg/programs/?epg_source=2").await;
    let of_viewer = async |at: usize| {
        let path = format!("/api/epg/programs/{}/", found["results"][at]["id"]);
        rest.ask(STREAMER, "GET", &path, Value::Null).await.status
    };
    assert_eq!((of_viewer(0).await, of_viewer(1).await), (404, 200));
    // Without a readable first guide, the channel shows all of the further one.
    let unread = GuideSource { priority: 5, ..guide_source(3, GuideSourceKind::Xmltv) };
    rest.put([unread.clone()]).await;
    rest.put([domain::guide::channel::GuideChannel {
        id: GuideChannelId(30),
        source: unread.id,
        key: "other".to_owned(),
        names: Vec::new(),
        icon: None,
    }])
    .await;
    let further = vec![GuideChannelId(20)];
    let linked =
        Channel { guide_channel: Some(GuideChannelId(30)), further_guides: further, ..channel(1, "news") };
    rest.put([linked]).await;
    assert_eq!((of_viewer(0).await, of_viewer(1).await), (200, 200));
    let search = rest.ask(STREAMER, "GET", "/api/epg/programs/search/?title=Hidden", Value::Null).await.body;
    assert_eq!(
        (&search["count"], search["results"][0]["channels"].as_array().map(Vec::len)),
        (&json!(1), Some(1))
    );
}

#[tokio::test]
async fn the_same_showing_on_the_other_side_of_midnight_completes() {
    let midnight = (now() / (24 * HOUR) + 2) * 24 * HOUR;
    let rest = Rest::start().await;
    rest.put([channel(1, "news")]).await;
    let show = |start: i64, stop: i64| Programme {
        start: midnight + start,
        stop: midnight + stop,
        ..programme(0, 0, 1, "Show")
    };
    let bare = Programme { descriptions: Vec::new(), ..show(-120, 1_800) };
    let first_source = GuideSource { priority: 5, ..guide_source(1, GuideSourceKind::Xmltv) };
    put_guide(&rest, first_source, vec![(1, "news", vec![bare])]).await;
    put_guide(&rest, guide_source(2, GuideSourceKind::Xmltv), vec![(20, "news", vec![show(60, 600)])]).await;
    let at = |seconds: i64| iso_millis((midnight + seconds) * 1000);
    for (from, until) in [(-7_200, -60), (-7_200, 7_200), (-90, -30), (900, 1_200)] {
        let path = format!("/api/epg/grid/?channels=1&start={}&end={}", at(from), at(until));
        let rows = get(&rest, &path).await["data"].clone();
        assert_eq!(rows.as_array().map(Vec::len), Some(1), "{from}: {rows}");
        assert_eq!(rows[0]["description"], "About Show.", "{from}");
    }
}

#[tokio::test]
async fn placeholders_fill_channels_without_a_guide_if_the_settings_want_them() {
    let now = now();
    let rest = with_two_guides(now).await;
    assert_eq!(grid(&rest, now, 3).await, [Value::Null; 0], "off by default");
    let before = xmltv(&rest).await;
    assert!(!before.contains("channel=\"3\""), "{before}");
    let rows = get(&rest, "/api/core/settings/").await;
    let setting =
        rows["results"].as_array().unwrap().iter().find(|it| it["key"] == "epg_settings").unwrap().clone();
    let value = json!({ "epg_placeholders": true, "epg_placeholder_title": "{channel_name} live", "epg_placeholder_minutes": 240 });
    let path = format!("/api/core/settings/{}/", setting["id"]);
    let set = rest.admin("PATCH", &path, json!({ "value": value })).await;
    assert_eq!(set.status, 200, "{}", set.text);
    let blocks = grid(&rest, now, 3).await;
    assert!(blocks.len() >= 10 && blocks.iter().all(|it| it["title"] == "Channel 3 live"), "{blocks:?}");
    let after = xmltv(&rest).await;
    assert!(after.contains("channel=\"3\"") && after.contains(">Channel 3 live<"), "{after}");
    let current = rest
        .admin("POST", "/api/epg/current-programs/", json!({ "channel_uuids": [Uuid::from_u128(3)] }))
        .await;
    assert_eq!(current.body[0]["title"], "Channel 3 live");
    let id = current.body[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(get(&rest, &format!("/api/epg/programs/{id}/")).await["title"], "Channel 3 live");
    assert_eq!(grid(&rest, now, 1).await.len(), 4, "a channel with a guide keeps it");
    let rule = rest.admin("POST", "/api/channels/series-rules/", json!({ "title": "Channel 3 live" })).await;
    assert_eq!(rule.status, 200, "{}", rule.text);
    assert_eq!(get(&rest, "/api/channels/recordings/").await["count"], 0, "nothing is recorded");
}
