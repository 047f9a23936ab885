//! Programmes in the guides for players, and in the answers to player apps.

use std::collections::BTreeSet;
use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::account::CUSTOM_ACCOUNT;
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::programme::{EpisodeNumber, Programme, ProgrammeIcon, ProgrammeImage, ProgrammeUrl};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{ChannelId, GuideChannelId, GuideSourceId, StreamId, UserId};
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::user::{User, UserLevel};
use flate2::read::GzDecoder;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::guide_testing::{HOUR, four_days, guide_source, now, programme, put_guide};
use crate::testing::{ADMIN, Rest, STREAMER};

fn channel(id: u32, number: &str, tvg_id: &str) -> Channel {
    let (number, tvg_id) = (number.parse().ok(), Some(tvg_id.to_owned()));
    Channel {
        number,
        tvg_id,
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), format!("Channel {id}"), 0)
    }
}

/// Stores channels with a guide. Streamers do not see the second one.
async fn with_guide(now: i64) -> Rest {
    let rest = Rest::start().await;
    rest.put([
        channel(1, "4.1", "one"),
        Channel { user_level: UserLevel::Admin, ..channel(2, "5", "two") },
        channel(3, "6", "none"),
        channel(4, "7", "ONE"),
    ])
    .await;
    let channels = vec![(1, "one", four_days(now, "One & only")), (2, "two", four_days(now, "Two"))];
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), channels).await;
    rest
}

async fn guide(rest: &Rest, user: u32, query: &str) -> String {
    let path = format!("/xmltv.php?{}&{query}", rest.query_login(user));
    let answer = rest.send("GET", &path, &[], "").await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    answer.text
}

/// Returns the channel and the title of each programme in a guide.
fn programmes(guide: &str) -> Vec<(String, String)> {
    let of_attribute = |text: &str, begin: &str, end: &str| {
        text.split_once(begin).and_then(|it| it.1.split_once(end)).map(|it| it.0.to_owned()).unwrap()
    };
    let elements = guide.split("<programme ").skip(1);
    elements
        .map(|it| (of_attribute(it, "channel=\"", "\""), of_attribute(it, "<title>", "</title>")))
        .collect()
}

fn programmes_on(channel: &str, days: &[&str]) -> Vec<(String, String)> {
    days.iter().map(|it| (channel.to_owned(), format!("One &amp; only {it}"))).collect()
}

/// Holds T-epg.3.
#[tokio::test]
async fn a_guide_has_the_programmes_of_visible_channels_under_the_ids_of_the_playlist() {
    let now = now();
    let rest = with_guide(now).await;
    let text = guide(&rest, STREAMER, "").await;
    let all = ["today", "tomorrow", "later"];
    assert_eq!(programmes(&text), [programmes_on("4.1", &all), programmes_on("7", &all)].concat());
    let last_channel = text.rfind("</channel>").unwrap();
    assert!(last_channel < text.find("<programme").unwrap(), "channels come first");
    assert!(text.ends_with("</tv>\n") && text.contains("<channel id=\"6\">"), "{text}");
    let stop =
        jiff::Timestamp::from_second(now + 12 * HOUR).unwrap().strftime("%Y%m%d%H%M%S +0000").to_string();
    assert!(text.contains(&format!("stop=\"{stop}\" channel=\"4.1\">")), "{text}");
    for (query, expected) in [
        ("days=1", vec!["today", "tomorrow"]),
        ("days=1&prev_days=2", vec!["yesterday", "today", "tomorrow"]),
        ("days=0", vec!["today", "tomorrow", "later"]),
        ("days=x&prev_days=-1", vec!["today", "tomorrow", "later"]),
        ("days=99999999999&prev_days=4000000000", vec!["yesterday", "today", "tomorrow", "later"]),
    ] {
        let text = guide(&rest, STREAMER, query).await;
        assert_eq!(
            programmes(&text),
            [programmes_on("4.1", &expected), programmes_on("7", &expected)].concat(),
            "{query}"
        );
    }
    let text = guide(&rest, STREAMER, "days=1&tvg_id_source=tvg_id").await;
    let expected =
        [programmes_on("one", &["today", "tomorrow"]), programmes_on("ONE", &["today", "tomorrow"])].concat();
    assert_eq!(programmes(&text), expected);
    assert!(guide(&rest, ADMIN, "").await.contains("<title>Two today</title>"));
}

#[tokio::test]
async fn media_servers_get_the_marks_that_they_read() {
    let now = now();
    let rest = with_guide(now).await;
    let number = EpisodeNumber { system: Some("onscreen".to_owned()), value: "S02E03".to_owned() };
    let live = Programme {
        episode_numbers: vec![number],
        is_live: true,
        is_new: true,
        ..programme(now, -1, 1, "One")
    };
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "one", vec![live])]).await;
    let read = async |agent: &str, query: &str| {
        let path = format!("/xmltv.php?{}&{query}", rest.query_login(STREAMER));
        let answer = rest.send("GET", &path, &[("user-agent", agent)], "").await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let tag = answer.headers.get("etag").cloned();
        let marks =
            ["<category lang=\"en\">Series</category>", "<episode-num system=\"xmltv_ns\">1.2.<", "<live/>"];
        (marks.map(|it| answer.text.contains(it)), tag)
    };
    let plain = read("Kodi/20.1", "").await;
    let marked = read("Jellyfin-Server/10.9.0", "").await;
    assert_eq!((plain.0, marked.0), ([false; 3], [true; 3]));
    assert_ne!(plain.1, marked.1);
    assert_eq!(read("Kodi/20.1", "media_server=true").await.0, [true; 3]);
    assert_eq!(read("PlexMediaServer/1.40.1", "media_server=false").await.0, [false; 3]);
}

#[tokio::test]
async fn a_guide_has_no_credentials_in_addresses_of_images_except_for_admins_who_ask_for_them() {
    const KEPT: &str = "http://images.example/kept.png";
    let now = now();
    let rest = with_guide(now).await;
    let icon = |src: &str| ProgrammeIcon { src: src.to_owned(), ..ProgrammeIcon::default() };
    let image = ProgrammeImage {
        url: "http://anna:secret@images.example/image.png".to_owned(),
        ..ProgrammeImage::default()
    };
    let page = ProgrammeUrl { url: "http://anna:secret@pages.example/?id=1".to_owned(), system: None };
    let rich = Programme {
        icons: vec![
            icon("http://anna:secret@images.example/one.png?token=secret"),
            icon("http://images.example/two.png?token=secret&size=2"),
            icon(KEPT),
        ],
        images: vec![image],
        urls: vec![page],
        ..programme(now, -1, 1, "One")
    };
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "one", vec![rich])]).await;
    for user in [STREAMER, ADMIN] {
        let text = guide(&rest, user, "").await;
        assert!(!text.contains("secret"), "{text}");
        assert!(text.contains("<icon src=\"http://images.example/two.png\"/>"), "{text}");
        assert!(text.contains(&format!("<icon src=\"{KEPT}\"/>")), "{text}");
        assert!(text.contains("<image>http://images.example/image.png</image>"), "{text}");
        assert!(text.contains("<url>http://pages.example/?id=1</url>"), "{text}");
        // The copy of the gateway, for which no credentials are needed.
        let (_, rest_of) = text.split_once("<icon src=\"http://192.0.2.1:9191").unwrap();
        let path = rest_of.split_once('"').unwrap().0;
        assert!(path.starts_with("/api/epg/programs/") && path.ends_with("/poster/"), "{path}");
        let copy = rest.send("GET", path, &[], "").await;
        assert_eq!((copy.status, &copy.headers["content-type"]), (200, &"image/png".parse().unwrap()));
    }
    let text = guide(&rest, STREAMER, "cachedlogos=false").await;
    assert!(
        !text.contains("secret") && text.contains("<icon src=\"http://images.example/one.png\"/>"),
        "{text}"
    );
    let text = guide(&rest, ADMIN, "cachedlogos=false").await;
    assert!(text.contains("anna:secret@images.example/one.png?token=secret\""), "{text}");
}

#[tokio::test]
async fn the_days_of_a_user_count_where_the_address_has_none() {
    let rest = with_guide(now()).await;
    let mut user: User = (*rest.user(STREAMER)).clone();
    assert_eq!(user.id, UserId(STREAMER));
    user.custom_properties = json!({ "epg_days": 1, "epg_prev_days": 2 }).as_object().unwrap().clone();
    rest.put([user]).await;
    let days = async |query: &str| programmes(&guide(&rest, STREAMER, query).await).len() / 2;
    assert_eq!((days("").await, days("days=0").await, days("days=0&prev_days=0").await), (3, 4, 3));
}

#[tokio::test]
async fn every_address_of_a_guide_has_programmes_also_compressed_and_exported() {
    let rest = with_guide(now()).await;
    let bearer = rest.bearer(STREAMER);
    let headers = [("authorization", bearer.as_str())];
    for path in ["/output/epg", "/output/epg.xml", "/api/epg.xml"] {
        let answer = rest.send("GET", path, &headers, "").await;
        assert_eq!(programmes(&answer.text).len(), 6, "{path}: {}", answer.text);
    }
    for path in ["/output/epg.xml.gz", "/api/epg.xml.gz"] {
        let (_, bytes) = rest.send_bytes("GET", path, &headers).await;
        let mut text = String::new();
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(programmes(&text).len(), 6, "{path}");
    }
    let body = json!({ "ids": [4], "format": "xmltv" });
    let exported = rest.standard("POST", "/api/channels/channels/export/", body).await;
    assert_eq!(programmes(&exported.text), programmes_on("7", &["today", "tomorrow", "later"]));
}

#[tokio::test]
async fn a_guide_that_the_client_has_is_sent_again_after_a_refresh_or_an_edit_only() {
    let now = now();
    let rest = with_guide(now).await;
    let path = format!("/xmltv.php?{}", rest.query_login(STREAMER));
    let mut tag = String::new();
    let mut is_current = async || {
        let answer = rest.send("GET", &path, &[("if-none-match", &tag)], "").await;
        tag = answer.headers["etag"].to_str().unwrap().to_owned();
        answer.status == 304
    };
    assert!(!is_current().await);
    // A new hour may begin between the requests.
    assert!(is_current().await || is_current().await);
    let source = guide_source(1, GuideSourceKind::Xmltv);
    put_guide(&rest, source.clone(), vec![(1, "one", four_days(now, "New"))]).await;
    assert!(!is_current().await, "after a refresh");
    rest.put([GuideSource { is_active: false, ..source }]).await;
    assert!(!is_current().await, "after an edit");
    assert!(is_current().await || is_current().await);
    let playlist = format!("/get.php?{}", rest.query_login(STREAMER));
    let first = rest.send("GET", &playlist, &[], "").await.headers["etag"].clone();
    put_guide(&rest, guide_source(2, GuideSourceKind::Xmltv), vec![(9, "nine", four_days(now, "Nine"))])
        .await;
    assert_eq!(
        rest.send("GET", &playlist, &[], "").await.headers["etag"],
        first,
        "playlists have no programmes"
    );
}

#[tokio::test]
async fn a_renamed_stream_changes_the_generated_programmes_and_no_id_of_its_channel() {
    let rest = Rest::start().await;
    let properties =
        json!({ "title_pattern": "(?<event>.+)", "title_template": "{event}", "name_source": "stream" });
    let custom_properties = properties.as_object().unwrap().clone();
    rest.put([GuideSource { custom_properties, ..guide_source(1, GuideSourceKind::Generated) }]).await;
    let (id, source, key) = (GuideChannelId(1), GuideSourceId(1), "dummy_events".to_owned());
    rest.put([GuideChannel { id, source, key, names: Vec::new(), icon: None }]).await;
    let properties = |name: &str| StreamProperties::new(name, SourceUrl::new("http://tv.example/1.ts"));
    let stream = Stream::new(StreamId(1), CUSTOM_ACCOUNT, properties("Cup Final"), 0);
    rest.put([stream.clone()]).await;
    let shown = |channel| Channel { streams: vec![stream.id], guide_channel: Some(id), ..channel };
    rest.put([shown(channel(1, "4.1", "event.example")), shown(channel(2, "", "other.example"))]).await;

    let mut tag = String::new();
    // Returns the ids of the channels, which are those of the playlist, and the titles.
    let mut read = async |query: &str| {
        let path = format!("/get.php?{}&{query}", rest.query_login(STREAMER));
        let playlist = rest.send("GET", &path, &[], "").await.text;
        let path = format!("/xmltv.php?{}&{query}", rest.query_login(STREAMER));
        let answer = rest.send("GET", &path, &[("if-none-match", &tag)], "").await;
        assert_eq!(answer.status, 200);
        tag = answer.headers.get("etag").map(|it| it.to_str().unwrap().to_owned()).unwrap_or_default();
        let values = |text: &str, begin: &str| -> Vec<String> {
            text.split(begin).skip(1).map(|it| it.split('"').next().unwrap().to_owned()).collect()
        };
        let ids = values(&answer.text, "<channel id=\"");
        assert_eq!(ids, values(&playlist, "tvg-id=\""));
        let programmes = programmes(&answer.text);
        assert!(programmes.iter().all(|it| ids.contains(&it.0)), "{programmes:?}");
        let titles: BTreeSet<_> = programmes.into_iter().map(|it| it.1).collect();
        (ids, titles.into_iter().collect::<Vec<_>>())
    };
    let expected = |ids: [&str; 2], title: &str| (ids.map(str::to_owned).to_vec(), vec![title.to_owned()]);
    for (query, ids) in [("", ["4.1", "id-2"]), ("tvg_id_source=tvg_id", ["event.example", "other.example"])]
    {
        rest.put([stream.clone()]).await;
        assert_eq!(read(query).await, expected(ids, "Cup Final"));
        let mut renamed = stream.clone();
        renamed.provider.name = "Super Cup".to_owned();
        rest.put([renamed]).await;
        assert_eq!(read(query).await, expected(ids, "Super Cup"));
    }
}

#[tokio::test]
async fn the_output_of_a_long_guide_is_complete_and_in_order() {
    let now = now();
    let rest = Rest::start().await;
    rest.put([channel(1, "1", "one")]).await;
    let all = (0..3000).map(|n| programme(now, n, n + 1, &format!("Programme {n:04}"))).collect();
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), vec![(1, "one", all)]).await;
    let found = programmes(&guide(&rest, ADMIN, "").await);
    let expected: Vec<_> = (0..3000).map(|n| ("1".to_owned(), format!("Programme {n:04}"))).collect();
    assert_eq!(found, expected);
}

/// Holds T-mem.4.
#[tokio::test]
async fn playlists_and_guides_of_thousands_of_channels_leave_in_small_pieces() {
    const N: u32 = 5_000;
    const PIECE_BYTES_MAX: usize = 64 << 10;
    let now = now();
    let rest = Rest::start().await;
    for first in (1..=N).step_by(2_500) {
        let channels = first..first + 2_500;
        rest.put(channels.map(|id| channel(id, &id.to_string(), &format!("id{}", id % 1_000)))).await;
    }
    let keys: Vec<String> = (0..1_000).map(|it| format!("id{it}")).collect();
    let programmes = || (0..10).map(|n| programme(now, n, n + 1, "A programme with a title")).collect();
    let of_channels = keys.iter().zip(1..).map(|(key, id)| (id, key.as_str(), programmes())).collect();
    put_guide(&rest, guide_source(1, GuideSourceKind::Xmltv), of_channels).await;
    let (login, bearer) = (rest.query_login(ADMIN), rest.bearer(ADMIN));
    for path in [
        "/output/m3u".to_owned(),
        format!("/get.php?{login}&type=m3u_plus"),
        "/output/epg".to_owned(),
        format!("/xmltv.php?{login}"),
    ] {
        for coding in ["identity", "gzip"] {
            let headers = [("authorization", bearer.as_str()), ("accept-encoding", coding)];
            let (status, pieces) = rest.send_pieces(&path, &headers).await;
            let (n_bytes, longest) = (pieces.iter().sum::<usize>(), pieces.iter().max());
            assert_eq!(status, 200, "{path}");
            assert!(coding == "gzip" || n_bytes > 5 * PIECE_BYTES_MAX, "{path}, {coding}: {n_bytes}");
            assert!(longest.is_some_and(|it| *it <= PIECE_BYTES_MAX), "{path}, {coding}: {longest:?}");
        }
    }
}

/// Asks for the guide of a channel, and returns the programmes.
async fn listings(rest: &Rest, user: u32, query: &str) -> Vec<Value> {
    let path = format!("/player_api.php?{}&action={query}", rest.query_login(user));
    let answer = rest.send("GET", &path, &[], "").await;
    assert_eq!(answer.status, 200, "{query}: {}", answer.text);
    answer.body["epg_listings"].as_array().unwrap().clone()
}

fn decoded(text: &Value) -> String {
    String::from_utf8(BASE64.decode(text.as_str().unwrap()).unwrap()).unwrap()
}

#[tokio::test]
async fn apps_get_the_next_programmes_of_a_channel_from_the_running_one_on() {
    let now = now();
    let rest = with_guide(now).await;
    let found = listings(&rest, STREAMER, "get_short_epg&stream_id=1").await;
    let titles: Vec<_> = found.iter().map(|it| decoded(&it["title"])).collect();
    assert_eq!(titles, ["One & only today", "One & only tomorrow", "One & only later"]);
    let time = |hours: i64| {
        let time = jiff::Timestamp::from_second(now + hours * HOUR).unwrap();
        time.strftime("%Y-%m-%d %H:%M:%S").to_string()
    };
    let first = &found[0];
    let expected = json!({
        "id": first["id"], "epg_id": "1", "title": first["title"], "lang": "", "start": time(-12), "end": time(12),
        "description": BASE64.encode("About One & only today."), "channel_id": "4.1",
        "start_timestamp": (now - 12 * HOUR).to_string(), "stop_timestamp": (now + 12 * HOUR).to_string(),
        "stream_id": "1", "has_archive": 0,
    });
    assert_eq!(*first, expected);
    assert!(first["id"].as_str().unwrap().parse::<u64>().is_ok());
    let table = listings(&rest, STREAMER, "get_simple_data_table&stream_id=1").await;
    let flags: Vec<_> = table.iter().map(|it| it["now_playing"].clone()).collect();
    assert_eq!(flags, [1, 0, 0]);
    for (query, n_found) in [
        ("get_short_epg&stream_id=1&limit=2", 2),
        ("get_short_epg&stream_id=1&limit=x", 3),
        ("get_short_epg&stream_id=1&limit=0", 3),
        ("get_short_epg&stream_id=1&limit=99999999999999999999", 3),
        ("get_short_epg&stream_id=2", 0),
        ("get_short_epg&stream_id=3", 0),
        ("get_short_epg&stream_id=99", 0),
        ("get_short_epg", 0),
        ("get_simple_data_table&stream_id=2", 0),
    ] {
        assert_eq!(listings(&rest, STREAMER, query).await.len(), n_found, "{query}");
    }
    assert_eq!(listings(&rest, ADMIN, "get_short_epg&stream_id=2").await.len(), 3);
}

#[tokio::test]
async fn apps_find_the_channel_of_their_list_in_the_guide() {
    let rest = with_guide(now()).await;
    let path = format!("/player_api.php?{}&action=get_live_streams", rest.query_login(STREAMER));
    let streams = rest.send("GET", &path, &[], "").await.body;
    let text = guide(&rest, STREAMER, "").await;
    for stream in streams.as_array().unwrap() {
        let id = stream["epg_channel_id"].as_str().unwrap();
        assert!(text.contains(&format!("<channel id=\"{id}\">")), "{id}");
    }
}
