//! A guide that a channel shows three hours later, on every surface.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::channel::Channel;
use domain::guide::programme::Programme;
use domain::guide::source::GuideSourceKind;
use domain::guide::xmltv::time::push_time;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::time::iso_millis;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use services::guide::read_guide;
use uuid::Uuid;

use crate::guide_testing::{HOUR, guide_source, now, programme, put_guide};
use crate::testing::{ADMIN, Rest};

const CHANNEL: &str = "/api/channels/channels/2/";
const SOURCE: &str = "/api/epg/sources/1/";
/// The list of the provider says that the channel 2 is three hours late.
const LATE: i64 = 3 * HOUR;

fn channel(id: u32, streams: &[u32]) -> Channel {
    Channel {
        number: id.to_string().parse().ok(),
        tvg_id: Some("movies".to_owned()),
        streams: streams.iter().map(|it| StreamId(*it)).collect(),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0)
    }
}

/// Two channels with one guide, which the second one shows three hours later.
async fn with_late_channel(programmes: Vec<Programme>) -> Rest {
    let rest = Rest::start().await;
    let mut facts = StreamProperties::new("Late", SourceUrl::new("http://tv.example/2.ts"));
    facts.guide_offset = 180;
    rest.put([Stream::new(StreamId(1), AccountId(2), facts, 0)]).await;
    rest.put([channel(1, &[]), channel(2, &[1])]).await;
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "movies", programmes)]).await;
    let models = &rest.context.models;
    models.streams.at(models.store.version()).await.unwrap();
    rest
}

async fn get(rest: &Rest, path: &str) -> Value {
    let answer = rest.ask(ADMIN, "GET", path, Value::Null).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    answer.body
}

fn seconds(time: &Value) -> i64 {
    time.as_str().unwrap().parse::<Timestamp>().unwrap().as_second()
}

fn time(at: i64) -> String {
    iso_millis(at * 1000)
}

/// Returns the begins of a programme in the guides for players.
async fn xmltv(rest: &Rest, title: &str) -> Vec<(String, String)> {
    let path = format!("/xmltv.php?{}", rest.query_login(ADMIN));
    let text = rest.send("GET", &path, &[], "").await.text;
    let part = |text: &str, begin: &str| {
        text.split_once(begin).and_then(|it| it.1.split_once('"')).map(|it| it.0.to_owned()).unwrap()
    };
    let wanted = text.split("<programme ").skip(1).filter(|it| it.contains(&format!(">{title}<")));
    wanted.map(|it| (part(it, "channel=\""), part(it, "start=\""))).collect()
}

fn written(at: i64) -> String {
    let mut text = String::new();
    push_time(&mut text, at);
    text
}

/// Returns the begins of a programme in the lists of an app.
async fn in_app(rest: &Rest, channel: u32, action: &str, title: &str) -> Vec<i64> {
    let path =
        format!("/player_api.php?{}&action={action}&limit=50&stream_id={channel}", rest.query_login(ADMIN));
    let listings = rest.send("GET", &path, &[], "").await.body["epg_listings"].clone();
    let wanted =
        listings.as_array().unwrap().clone().into_iter().filter(|it| it["title"] == BASE64.encode(title));
    wanted.map(|it| it["start_timestamp"].as_str().unwrap().parse().unwrap()).collect()
}

/// Returns the begin of a programme and its id, for each channel of the grid that shows it.
async fn in_grid(rest: &Rest, around: i64, title: &str) -> Vec<(u64, i64, Value)> {
    let (from, until) = (time(around - 2 * HOUR), time(around + 6 * HOUR));
    let grid = get(rest, &format!("/api/epg/grid/?start={from}&end={until}")).await;
    let wanted = grid["data"].as_array().unwrap().clone().into_iter().filter(|it| it["title"] == title);
    let rows = wanted.flat_map(|it| {
        let ids = it["channel_ids"].as_array().unwrap().clone();
        ids.into_iter().map(move |id| (id.as_u64().unwrap(), seconds(&it["start_time"]), it["id"].clone()))
    });
    rows.collect()
}

/// Returns the next change of the clock in a zone with daylight saving, in seconds since 1970.
fn change_of_clock(now: i64) -> i64 {
    let zone = TimeZone::get("Europe/Amsterdam").unwrap();
    let now = Timestamp::from_second(now).unwrap();
    zone.following(now).next().unwrap().timestamp().as_second()
}

#[tokio::test]
async fn a_programme_is_three_hours_later_on_every_surface_over_a_change_of_the_clock() {
    let (now, change) = (now(), change_of_clock(now()));
    let at_change =
        Programme { start: change - HOUR / 2, stop: change + HOUR, ..programme(0, 0, 1, "Over the change") };
    let rest = with_late_channel(vec![programme(now, 1, 2, "Film"), at_change]).await;
    for (title, start) in [("Film", now + HOUR), ("Over the change", change - HOUR / 2)] {
        let both = [("1".to_owned(), written(start)), ("2".to_owned(), written(start + LATE))];
        assert_eq!(xmltv(&rest, title).await, both);
        let grid = in_grid(&rest, start, title).await;
        let shown: Vec<_> = grid.iter().map(|it| (it.0, it.1)).collect();
        assert_eq!(shown, [(1, start), (2, start + LATE)], "{title}");

        // By the id in the grid, everything else is at the same time.
        let id = grid[1].2.as_str().expect("the id of a moved programme is a text").to_owned();
        let detail = get(&rest, &format!("/api/epg/programs/{id}/")).await;
        assert_eq!((seconds(&detail["start_time"]), &detail["title"]), (start + LATE, &json!(title)));
        let body = json!({ "channel": 2, "program_id": id });
        let made = rest.admin("POST", "/api/channels/recordings/", body).await;
        assert_eq!((made.status, seconds(&made.body["start_time"])), (201, start + LATE), "{}", made.text);

        let found =
            get(&rest, &format!("/api/epg/programs/search/?title=%22{title}%22").replace(' ', "%20")).await;
        let results = found["results"].as_array().unwrap();
        let rows: Vec<_> = results
            .iter()
            .map(|it| {
                (it["channels"][0]["id"].clone(), it["channels"][1].clone(), seconds(&it["start_time"]))
            })
            .collect();
        assert_eq!(rows, [(json!(1), json!(null), start), (json!(2), json!(null), start + LATE)]);
        let late = format!("/api/epg/programs/search/?airing_at={}", time(start + LATE + 60));
        let late = get(&rest, &late).await;
        assert_eq!((&late["count"], &late["results"][0]["id"]), (&json!(1), &json!(id)));
    }
    for action in ["get_short_epg", "get_simple_data_table"] {
        assert_eq!(in_app(&rest, 1, action, "Film").await, [now + HOUR], "{action}");
        assert_eq!(in_app(&rest, 2, action, "Film").await, [now + HOUR + LATE], "{action}");
    }
    for id in ["1_60", "1_180"] {
        let unknown = rest.ask(ADMIN, "GET", &format!("/api/epg/programs/{id}/"), Value::Null).await;
        assert_eq!(unknown.status, 404, "{id}");
    }
}

#[tokio::test]
async fn the_running_programme_the_rules_and_the_archive_of_a_late_channel_are_three_hours_later() {
    let now = now();
    // Without a description, the two showings are two programmes.
    let night = Programme { descriptions: Vec::new(), ..programme(now, 3, 9, "Night") };
    let named = Programme { catchup_id: Some("film-7".to_owned()), ..programme(now, -4, -2, "Film") };
    let rest = with_late_channel(vec![named, programme(now, -2, 3, "Show"), night]).await;
    let uuids: Vec<_> = [1_u128, 2].map(|it| Uuid::from_u128(it).to_string()).into();
    let body = json!({ "channel_uuids": uuids });
    let current = rest.admin("POST", "/api/epg/current-programs/", body).await.body;
    let running: Vec<_> =
        current.as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect();
    assert_eq!(running, ["Show", "Film"]);
    assert_eq!(seconds(&current[1]["start_time"]), now - HOUR);

    let rule = rest.admin("POST", "/api/channels/series-rules/", json!({ "title": "Night" })).await;
    assert_eq!(rule.status, 200, "{}", rule.text);
    let list = get(&rest, "/api/channels/recordings/").await;
    let mut recorded: Vec<_> = list["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["channel"].as_u64().unwrap(), seconds(&it["start_time"])))
        .collect();
    recorded.sort_unstable();
    assert_eq!(recorded, [(1, now + 3 * HOUR), (2, now + 3 * HOUR + LATE)]);

    // The past of the late channel at this time is the film, whose broadcast began then.
    let guides = rest.context.guide.guides.reader();
    let found = read_guide(move || Ok(guides.archived_programme(&channel(2, &[1]), now - HOUR / 2)));
    let found = found.await.unwrap().unwrap();
    assert_eq!((found.start, &*found.catchup_id), (now - HOUR, "film-7"));
}

#[tokio::test]
async fn the_offset_of_a_channel_replaces_that_of_its_stream_and_that_of_the_source_is_added() {
    let now = now();
    let rest = with_late_channel(vec![programme(now, 1, 2, "Film")]).await;
    let start = async |n_minutes: i64| {
        let found = xmltv(&rest, "Film").await;
        assert_eq!(found[1].1, written(now + HOUR + n_minutes * 60));
        get(&rest, CHANNEL).await["effective_epg_offset_minutes"].clone()
    };
    let patch = async |path: &str, body: Value| {
        let changed = rest.admin("PATCH", path, body).await;
        assert_eq!(changed.status, 200, "{}", changed.text);
        changed.body
    };
    assert_eq!(start(180).await, 180);
    patch(CHANNEL, json!({ "epg_offset_minutes": -90 })).await;
    assert_eq!(start(-90).await, -90);
    patch(SOURCE, json!({ "offset_minutes": 30 })).await;
    assert_eq!(start(-60).await, -60);
    assert_eq!(xmltv(&rest, "Film").await[0].1, written(now + HOUR + HOUR / 2), "the plain channel, too");
    patch(CHANNEL, json!({ "epg_offset_minutes": 0 })).await;
    assert_eq!(start(30).await, 30);
    patch(CHANNEL, json!({ "epg_offset_minutes": null })).await;
    assert_eq!(start(210).await, 210);

    // A link by hand is to a guide of which the playlist says nothing, unless an admin says otherwise.
    let linked = patch(CHANNEL, json!({ "epg_data_id": 1 })).await;
    assert_eq!((&linked["epg_follows_stream"], start(30).await), (&json!(false), json!(30)));
    patch(CHANNEL, json!({ "epg_follows_stream": true })).await;
    assert_eq!(start(210).await, 210);
    patch(CHANNEL, json!({ "epg_data_id": null })).await;
    assert_eq!(start(210).await, 210);
    // What matching finds follows from the playlist.
    let matched = rest.admin("POST", "/api/channels/channels/2/match-epg/", json!({})).await;
    assert_eq!((&matched.body["matched"], start(210).await), (&json!(true), json!(210)), "{}", matched.text);

    for (path, body) in [
        (CHANNEL, json!({ "epg_offset_minutes": 1441 })),
        (CHANNEL, json!({ "epg_offset_minutes": -1441 })),
        (CHANNEL, json!({ "epg_offset_minutes": 1.5 })),
        (SOURCE, json!({ "offset_minutes": 100_000 })),
        (SOURCE, json!({ "default_time_zone": "Europe/Nowhere" })),
    ] {
        let refused = rest.admin("PATCH", path, body.clone()).await;
        let fields: Vec<_> = refused.body.as_object().unwrap().keys().cloned().collect();
        assert_eq!(
            (refused.status, &fields[..]),
            (400, &body.as_object().unwrap().keys().cloned().collect::<Vec<_>>()[..])
        );
    }
    // A written guide says when something is, also to a late channel.
    put_guide(
        &rest,
        guide_source(8, GuideSourceKind::Written),
        vec![(8, "own", vec![programme(now, 1, 2, "Own")])],
    )
    .await;
    patch(CHANNEL, json!({ "epg_data_id": 8, "epg_offset_minutes": 180 })).await;
    assert_eq!(get(&rest, CHANNEL).await["effective_epg_offset_minutes"], 0);
    assert_eq!(xmltv(&rest, "Own").await, [("2".to_owned(), written(now + HOUR))]);
    let own = in_grid(&rest, now + HOUR, "Own").await;
    assert_eq!((own.len(), own[0].1, own[0].2.is_u64()), (1, now + HOUR, true), "{own:?}");
    let renamed = patch(&format!("/api/epg/programs/{}/", own[0].2), json!({ "title": "Renamed" })).await;
    assert_eq!(seconds(&renamed["start_time"]), now + HOUR);
    let found = get(&rest, "/api/epg/programs/search/?title=Renamed&channel_id=2").await;
    assert_eq!((&found["count"], seconds(&found["results"][0]["start_time"])), (&json!(1), now + HOUR));

    rest.put([guide_source(9, GuideSourceKind::Written)]).await;
    for body in [json!({ "offset_minutes": 5 }), json!({ "default_time_zone": "Europe/Paris" })] {
        assert_eq!(rest.admin("PATCH", "/api/epg/sources/9/", body).await.status, 400);
    }
}
