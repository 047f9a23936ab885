//! What players learn about the archives of channels.

use domain::account::{Account, AccountProfile, PlaylistLocation};
use domain::catchup::Archive;
use domain::channel::Channel;
use domain::guide::source::GuideSourceKind;
use domain::ids::{AccountId, ChannelId, ProfileId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::user::{CATCHUP_ENABLED, User};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::guide_testing::{four_days, guide_source, now, put_guide};
use crate::testing::{ADMIN, Answer, Rest, STREAMER};

fn account(id: u32, is_active: bool) -> Account {
    let (profile, name) = (AccountProfile::default_of(ProfileId(id), "A", 0), format!("Account {id}"));
    Account { is_active, ..Account::new(AccountId(id), name, PlaylistLocation::None, profile, 0) }
}

/// A stream of a panel; `days` is the depth of its archive.
fn stream(id: u32, account: u32, days: Option<i64>) -> Stream {
    let url = SourceUrl::new(format!("http://tv.example/live/u/p/{id}.ts"));
    let mut facts = StreamProperties::new(format!("Stream {id}"), url);
    facts.archive = Archive::from_panel(days.is_some(), days).map(Box::new);
    Stream::new(StreamId(id), AccountId(account), facts, 0)
}

fn channel(id: u32, streams: &[u32]) -> Channel {
    Channel {
        number: id.to_string().parse().ok(),
        tvg_id: Some(format!("guide-{id}")),
        streams: streams.iter().map(|it| StreamId(*it)).collect(),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0)
    }
}

/// Stores the channel 1, whose streams have archives of two and of three days at different accounts, and the channel 2
/// without an archive.
async fn with_archives() -> Rest {
    let rest = Rest::start().await;
    rest.put([account(2, true), account(3, true)]).await;
    rest.put([stream(1, 2, Some(2)), stream(2, 3, Some(3)), stream(3, 2, None)]).await;
    rest.put([channel(1, &[3, 1, 2]), channel(2, &[3])]).await;
    let now = now();
    let channels = vec![(1, "guide-1", four_days(now, "One")), (2, "guide-2", four_days(now, "Two"))];
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), channels).await;
    follow(&rest).await;
    rest
}

/// Waits until the index of streams has the last write.
async fn follow(rest: &Rest) {
    let models = &rest.context.models;
    models.streams.at(models.store.version()).await.unwrap();
}

async fn get(rest: &Rest, user: u32, path: &str, more: &str) -> Answer {
    let answer = rest.send("GET", &format!("{path}?{}&{more}", rest.query_login(user)), &[], "").await;
    assert_eq!(answer.status, 200, "{path} {more}: {}", answer.text);
    answer
}

/// Returns the depth that each channel has in the list for apps.
async fn depths(rest: &Rest, user: u32) -> Vec<(u64, u64)> {
    let answer = get(rest, user, "/player_api.php", "action=get_live_streams").await;
    let number = |it: &Value, name: &str| it[name].as_u64().unwrap();
    let streams = answer.body.as_array().unwrap();
    streams.iter().map(|it| (number(it, "tv_archive"), number(it, "tv_archive_duration"))).collect()
}

#[tokio::test]
async fn lists_for_players_mark_the_channels_with_an_archive_and_its_depth() {
    let rest = with_archives().await;
    assert_eq!(depths(&rest, STREAMER).await, [(1, 3), (0, 0)], "the deepest archive counts");
    let playlist = get(&rest, STREAMER, "/get.php", "").await;
    let lines: Vec<_> = playlist.text.lines().collect();
    let source = format!("{}?utc={{utc}}&lutc={{lutc}}&duration={{duration}}", lines[2]);
    let marks = format!(" catchup=\"default\" catchup-source=\"{source}\" catchup-days=\"3\",Channel 1");
    assert!(lines[1].ends_with(&marks), "{}", playlist.text);
    assert!(lines[2].ends_with("/1") && lines[2].contains("/live/streamer/"), "{}", playlist.text);
    assert!(!lines[3].contains("catchup"), "{}", playlist.text);
    let direct = get(&rest, ADMIN, "/get.php", "direct=true").await;
    assert!(!direct.text.contains("catchup"), "{}", direct.text);
    // An account that is not played has no archive.
    rest.put([account(3, false)]).await;
    assert_eq!(depths(&rest, STREAMER).await, [(1, 2), (0, 0)]);
    let now_shorter = get(&rest, STREAMER, "/get.php", "").await;
    assert!(now_shorter.text.contains("catchup-days=\"2\""), "{}", now_shorter.text);
    assert_ne!(now_shorter.headers["etag"], playlist.headers["etag"]);
    // A refresh finds that the archive is gone.
    rest.put([stream(1, 2, None)]).await;
    follow(&rest).await;
    assert_eq!(depths(&rest, STREAMER).await, [(0, 0), (0, 0)]);
    let without = get(&rest, STREAMER, "/get.php", "").await;
    assert!(!without.text.contains("catchup"), "{}", without.text);
    assert_ne!(without.headers["etag"], now_shorter.headers["etag"]);
}

#[tokio::test]
async fn the_playlist_of_a_tuner_marks_the_channels_with_an_archive() {
    let rest = with_archives().await;
    let playlist = rest.send_from([192, 168, 1, 9], "GET", "/lineup.m3u", &[]).await;
    assert_eq!(playlist.status, 200, "{}", playlist.text);
    let lines: Vec<_> = playlist.text.lines().collect();
    let source = format!("{}?utc={{utc}}&lutc={{lutc}}&duration={{duration}}", lines[2]);
    let marks = format!(" catchup=\"default\" catchup-source=\"{source}\" catchup-days=\"3\",Channel 1");
    assert!(lines[1].ends_with(&marks), "{}", playlist.text);
    assert!(lines[2].contains("/proxy/ts/stream/"), "{}", playlist.text);
    assert!(!lines[3].contains("catchup"), "{}", playlist.text);
}

/// Returns end of the title and mark of each programme in the table of a channel.
async fn table(rest: &Rest, user: u32, channel: u32, action: &str) -> Vec<(u64, bool)> {
    let query = format!("action={action}&stream_id={channel}");
    let answer = get(rest, user, "/player_api.php", &query).await;
    let rows = answer.body["epg_listings"].as_array().unwrap();
    let is_past = |it: &Value| it["stop_timestamp"].as_str().unwrap().parse::<i64>().unwrap() < now();
    rows.iter().map(|it| (it["has_archive"].as_u64().unwrap(), is_past(it))).collect()
}

#[tokio::test]
async fn a_guide_goes_back_as_far_as_the_archive() {
    let rest = with_archives().await;
    let next = [(0, false); 3];
    assert_eq!(table(&rest, STREAMER, 1, "get_simple_data_table").await, [&[(1, true)][..], &next].concat());
    assert_eq!(table(&rest, STREAMER, 1, "get_short_epg").await, next);
    assert_eq!(table(&rest, STREAMER, 2, "get_simple_data_table").await, next);
    let guide = get(&rest, STREAMER, "/xmltv.php", "").await;
    assert!(guide.text.contains("One yesterday") && !guide.text.contains("Two yesterday"), "{}", guide.text);
    let plain = get(&rest, STREAMER, "/xmltv.php", "prev_days=0").await;
    assert!(!plain.text.contains("yesterday"), "what the address asks for counts");
    // An archive of one day does not reach back to the start of the programme.
    rest.put([stream(1, 2, Some(1)), stream(2, 3, None)]).await;
    follow(&rest).await;
    assert_eq!(table(&rest, STREAMER, 1, "get_simple_data_table").await, next);
    let shorter = get(&rest, STREAMER, "/xmltv.php", "").await;
    assert_ne!(shorter.headers["etag"], guide.headers["etag"]);
}

#[tokio::test]
async fn an_admin_finds_what_has_an_archive() {
    let rest = with_archives().await;
    let names = async |path: &str| {
        let answer = rest.ask(ADMIN, "GET", path, Value::Null).await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let rows = answer.body.get("results").unwrap_or(&answer.body).as_array().unwrap().clone();
        let row = |it: &Value| (it["name"].clone(), it["is_catchup"].clone(), it["catchup_days"].clone());
        rows.iter().map(row).collect::<Vec<_>>()
    };
    let row = |name: &str, days: u32| (json!(name), json!(days > 0), json!(days));
    let channels = [row("Channel 1", 3), row("Channel 2", 0)];
    assert_eq!(names("/api/channels/channels/").await, channels);
    assert_eq!(names("/api/channels/channels/?only_catchup=true").await, channels[..1]);
    let streams = [row("Stream 1", 2), row("Stream 2", 3), row("Stream 3", 0)];
    assert_eq!(names("/api/channels/streams/?page=1").await, streams);
    assert_eq!(names("/api/channels/streams/?page=1&is_catchup=true").await, streams[..2]);
    assert_eq!(names("/api/channels/streams/?page=1&is_catchup=false").await, streams[2..]);
    assert_eq!(names("/api/channels/streams/?page=1&ids=2,3&is_catchup=true").await, streams[1..2]);
}

#[tokio::test]
async fn a_user_without_catch_up_learns_nothing_of_archives() {
    let rest = with_archives().await;
    let mut anna = User::clone(&rest.user(STREAMER));
    anna.custom_properties.insert(CATCHUP_ENABLED.to_owned(), json!(false));
    rest.put([anna]).await;
    assert_eq!(depths(&rest, STREAMER).await, [(0, 0), (0, 0)]);
    assert_eq!(depths(&rest, ADMIN).await, [(1, 3), (0, 0)]);
    assert_eq!(table(&rest, STREAMER, 1, "get_simple_data_table").await, [(0, false); 3]);
    for path in ["/get.php", "/xmltv.php"] {
        let answer = get(&rest, STREAMER, path, "").await;
        assert!(!answer.text.contains("catchup") && !answer.text.contains("yesterday"), "{}", answer.text);
    }
}
