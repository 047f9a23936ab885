//! Playlists, guides and tuners from outside: the logins that fetch them, the addresses in them, and requests of any kind.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use domain::account::CUSTOM_ACCOUNT;
use domain::channel::Channel;
use domain::entry_details::{EntryDetails, OptionForm, PlayerOption};
use domain::group::Group;
use domain::ids::{ChannelId, GroupId, LineupId, LogoId, StreamId, StreamProfileId};
use domain::lineup::Lineup;
use domain::logo::Logo;
use domain::source_url::SourceUrl;
use domain::stream::{Stream, StreamProperties};
use domain::stream_profile::{Delivery, StreamProfile};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::testing::{ADMIN, INACTIVE, Rest, SECRET, STREAMER};

const LOCAL: [u8; 4] = [192, 168, 1, 5];
const NOBODY: &[(&str, &str)] = &[];

/// Stores News, which has a logo, and Late, which is adult, in the channel profile Kids.
async fn with_channels() -> Rest {
    let rest = Rest::start().await;
    let logo = Logo {
        id: LogoId(3),
        name: "News".to_owned(),
        url: "http://logos.example/1.png".to_owned(),
        file: None,
        named_by: None,
        guide_source: None,
        updated_at: 0,
    };
    let channel = |id: u32, name: &str, number: &str| Channel {
        number: number.parse().ok(),
        ..Channel::new(ChannelId(id), Uuid::from_u128(id.into()), name, 0)
    };
    let news = Channel {
        logo: Some(logo.url.clone()),
        logo_id: Some(logo.id),
        guide_station: Some("20453".to_owned()),
        ..channel(1, "News", "4.1")
    };
    rest.put([logo]).await;
    rest.put([news, Channel { is_adult: true, ..channel(2, "Late", "5") }]).await;
    rest.put([Lineup::new(LineupId(1), "Kids", true)]).await;
    rest
}

fn basic(name: &str, password: &str) -> String {
    format!("Basic {}", BASE64.encode(format!("{name}:{password}")))
}

#[tokio::test]
async fn a_login_gives_the_playlist_and_the_guide_from_anywhere() {
    let rest = with_channels().await;
    let bearer = rest.bearer(STREAMER);
    let right = basic("streamer", &format!("{SECRET} {STREAMER}"));
    let query = rest.query_login(STREAMER);
    for path in [
        "/playlist.m3u",
        "/output/m3u",
        "/output/m3u/Kids",
        "/output/epg",
        "/output/epg.xml",
        "/output/epg/Kids",
    ] {
        let answer = async |query: &str, headers: &[(&str, &str)]| {
            rest.send("GET", &format!("{path}?{query}"), headers, "").await
        };
        let expected = answer("", &[("authorization", &bearer)]).await;
        assert_eq!(expected.status, 200, "{path}: {}", expected.text);
        assert_eq!(expected.text.contains("/live/streamer/"), path.contains("m3u"), "{path}");
        for (query, headers) in [
            ("", &[("authorization", right.as_str())][..]),
            (&query, NOBODY),
            // What is in the address is meant for the gateway, and the header may be meant for a proxy.
            (&query, &[("authorization", "Basic YTpi")]),
        ] {
            let found = answer(query, headers).await;
            assert_eq!((found.status, &found.text), (200, &expected.text), "{path}?{query} {headers:?}");
        }
        for (query, header) in [
            ("", ""),
            ("", "Basic YTpi"),
            ("", "Basic"),
            ("", "Basic %%%"),
            ("", &basic("streamer", "wrong")),
            ("", &basic("inactive", &format!("{SECRET} {INACTIVE}"))),
            ("username=streamer&password=wrong", ""),
            ("username=streamer", ""),
            ("password=x", ""),
            (&format!("{query}&username=administrator"), ""),
        ] {
            let refused = answer(query, &[("authorization", header)]).await;
            assert_eq!(refused.status, 401, "{path}?{query} {header}");
            let challenge = refused.headers["www-authenticate"].to_str().unwrap();
            assert!(challenge.starts_with("Basic realm="), "{challenge}");
        }
        // Credentials that are sent are meant, also where none are needed.
        assert_eq!(rest.send_from(LOCAL, "GET", path, NOBODY).await.status, 200, "{path}");
        let wrong = basic("streamer", "wrong");
        let refused = rest.send_from(LOCAL, "GET", path, &[("authorization", &wrong)]).await;
        assert_eq!(refused.status, 401, "{path}");
        let key = rest.user(ADMIN).api_key.as_ref().unwrap().key.expose().to_owned();
        let with_key = answer("", &[("authorization", "Basic YTpi"), ("x-api-key", &key)]).await;
        assert_eq!(with_key.status, 200, "a key comes before: {path}");
    }
    // Nowhere else, so that no page of the interface asks for a login in a window of the browser.
    for path in ["/api/playlist.m3u", "/api/accounts/users/me/"] {
        let refused = rest.send("GET", path, &[("authorization", &right)], "").await;
        assert_eq!(
            (refused.status, &refused.headers["www-authenticate"]),
            (401, &"Bearer realm=\"api\"".parse().unwrap())
        );
    }
}

#[tokio::test]
async fn the_station_of_a_channel_is_in_its_entry_and_can_be_its_id() {
    let rest = with_channels().await;
    let get = async |path: &str| rest.admin("GET", path, Value::Null).await.text;
    let entries = |text: &str| -> Vec<String> {
        text.lines().filter(|it| it.starts_with("#EXTINF")).map(str::to_owned).collect()
    };
    let plain = entries(&get("/output/m3u").await);
    assert!(plain[0].contains(" tvg-id=\"4.1\" "), "{}", plain[0]);
    assert!(plain[0].contains(" tvc-guide-stationid=\"20453\" "), "{}", plain[0]);
    assert!(!plain[1].contains("stationid"), "{}", plain[1]);
    let by_station = get("/output/m3u?tvg_id_source=gracenote").await;
    let ids: Vec<bool> = entries(&by_station)
        .iter()
        .zip(["20453", "5"])
        .map(|(entry, id)| entry.contains(&format!(" tvg-id=\"{id}\" ")))
        .collect();
    assert_eq!(ids, [true, true], "{by_station}");
    let guide = get("/output/epg?tvg_id_source=gracenote").await;
    assert!(guide.contains("<channel id=\"20453\">") && guide.contains("<channel id=\"5\">"), "{guide}");
}

/// Stores a radio station with headers and keys in a group that comes first.
async fn with_station(rest: &Rest, profile: Option<StreamProfileId>) {
    let mut properties = StreamProperties::new("Jazz", SourceUrl::new("http://radio.example/secret/jazz"));
    for (name, value) in [("User-Agent", "Box/1.0"), ("Origin", "http://o"), ("Cookie", "hunter2")] {
        assert!(properties.headers.set(name, value));
    }
    let option = |name: &str, value: &str| PlayerOption {
        form: OptionForm::Kodi,
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let options = vec![option("mimetype", "audio/mpeg"), option("license_key", "hunter3")];
    properties.details = Some(Box::new(EntryDetails { options, ..EntryDetails::radio() }));
    let stream =
        Stream { stream_profile: profile, ..Stream::new(StreamId(1), CUSTOM_ACCOUNT, properties, 0) };
    rest.put([stream]).await;
    rest.put([Group { position: Some(1), ..Group::new(GroupId(7), "Radio") }]).await;
    let channel = Channel::new(ChannelId(3), Uuid::from_u128(3), "Jazz", 0);
    let (number, group) = ("9".parse().ok(), Some(GroupId(7)));
    rest.put([Channel { number, group, streams: vec![StreamId(1)], ..channel }]).await;
    rest.models.streams.at(rest.models.store.version()).await.unwrap();
}

#[tokio::test]
async fn marks_of_providers_and_the_order_of_groups_reach_playlists_and_apps() {
    let rest = with_channels().await;
    with_station(&rest, None).await;
    let playlist = rest.admin("GET", "/output/m3u", Value::Null).await.text;
    let entries: Vec<_> = playlist.lines().filter(|it| it.starts_with("#EXTINF")).collect();
    let names: Vec<_> = entries.iter().filter_map(|it| it.rsplit(',').next()).collect();
    assert_eq!(names, ["Jazz", "News", "Late"], "{playlist}");
    let radio: Vec<_> = entries.iter().map(|it| it.contains(" radio=\"true\"")).collect();
    assert_eq!(radio, [true, false, false], "{playlist}");
    assert!(!playlist.contains("EXTVLCOPT") && !playlist.contains("hunter"), "{playlist}");
    let query = rest.query_login(ADMIN);
    let path = format!("/player_api.php?{query}&action=get_live_streams");
    let listed = rest.send("GET", &path, NOBODY, "").await.body;
    let types: Vec<_> = listed.as_array().unwrap().iter().map(|it| it["stream_type"].clone()).collect();
    assert_eq!(types, [json!("radio_streams"), json!("live"), json!("live")]);
    let guide = rest.admin("GET", "/output/epg", Value::Null).await.text;
    assert!(guide.find("<channel id=\"9\">") < guide.find("<channel id=\"4.1\">"), "{guide}");
}

#[tokio::test]
async fn a_player_that_asks_the_provider_gets_what_it_needs_and_no_secret() {
    let rest = with_channels().await;
    with_station(&rest, Some(StreamProfile::from_delivery(Delivery::Redirect).id)).await;
    let redirected = rest.ask(STREAMER, "GET", "/output/m3u?direct=true", Value::Null).await.text;
    for line in [
        "#EXTVLCOPT:http-user-agent=Box/1.0",
        "#EXTVLCOPT:http-origin=http://o",
        "#KODIPROP:mimetype=audio/mpeg",
    ] {
        assert!(redirected.lines().any(|it| it == line), "{line}: {redirected}");
    }
    assert!(!redirected.contains("hunter") && !redirected.contains("radio.example"), "{redirected}");
    let direct = rest.admin("GET", "/output/m3u?direct=true", Value::Null).await.text;
    for part in [
        "http://radio.example/secret/jazz",
        "#EXTHTTP:{\"Cookie\":\"hunter2\"}",
        "#KODIPROP:license_key=hunter3",
    ] {
        assert!(direct.lines().any(|it| it == part), "{part}: {direct}");
    }
}

/// Returns the absolute addresses in a text.
fn addresses(text: &str) -> Vec<&str> {
    let starts = text.match_indices("http").filter(|(at, _)| {
        let rest = text[*at..].trim_start_matches("http").trim_start_matches('s');
        rest.starts_with("://")
    });
    let is_end = |it: char| matches!(it, '"' | '<' | '\n' | '\'');
    starts.map(|(at, _)| text[at..].split(is_end).next().unwrap_or_default()).collect()
}

#[tokio::test]
async fn every_address_in_answers_to_players_begins_with_the_public_url() {
    const PUBLIC: &str = "https://tv.example:8443/tv";
    let rest = with_channels().await;
    let set = json!({ "value": { "public_url": PUBLIC } });
    assert_eq!(rest.admin("PATCH", "/api/core/settings/3/", set).await.status, 200);
    let login = rest.query_login(ADMIN);
    let mut paths = vec![
        format!("/get.php?{login}&type=m3u_plus"),
        format!("/get.php?{login}&type=m3u"),
        "/output/m3u?output_profile=0".to_owned(),
        "/output/m3u/Kids".to_owned(),
        "/playlist.m3u".to_owned(),
        "/api/playlist.m3u".to_owned(),
        format!("/xmltv.php?{login}"),
        "/output/epg".to_owned(),
        "/api/epg.xml".to_owned(),
        format!("/player_api.php?{login}&action=get_live_streams"),
        format!("/panel_api.php?{login}"),
        "/api/accounts/users/me/addresses/".to_owned(),
        "/api/channels/channels/?page=1&page_size=1".to_owned(),
    ];
    for base in ["", "/tuner", "/hdhr", "/tuner/Kids", "/hdhr/Kids", "/tuner/output_profile/0"] {
        let documents = ["discover.json", "lineup.json", "lineup.xml", "lineup.m3u", "device.xml"];
        paths.extend(documents.map(|it| format!("{base}/{it}")));
    }
    let bearer = rest.bearer(ADMIN);
    // The headers of the request make no difference.
    let headers = [("authorization", bearer.as_str()), ("host", "inner:9191")];
    for path in paths {
        let answer = rest.send("GET", &path, &headers, "").await;
        assert_eq!(answer.status, 200, "{path}: {}", answer.text);
        let found = addresses(&answer.text);
        assert!(!found.is_empty(), "{path}: {}", answer.text);
        for address in found {
            let rest = address.strip_prefix(PUBLIC);
            let is_public = rest.is_some_and(|it| it.is_empty() || it.starts_with('/'));
            // The list of channels shows admins where a logo is from.
            let is_origin =
                path.starts_with("/api/channels/") && address.starts_with("http://logos.example/");
            assert!(is_public || is_origin, "{path}: {address}");
        }
    }
}

/// Pieces of queries and forms: names, values and separators of players, and bytes that none of them means.
const PIECES: [&str; 45] = [
    "username=",
    "password=",
    "action=",
    "category_id=",
    "stream_id=",
    "limit=",
    "vod_id=",
    "series_id=",
    "type=",
    "output=",
    "days=",
    "prev_days=",
    "profile=",
    "playlist=",
    "output_profile=",
    "output_format=",
    "sound=",
    "tvg_id_source=",
    "cachedlogos=",
    "direct=",
    "scan=",
    "transcode=",
    "container=",
    "_HLS_msn=",
    "get_live_streams",
    "get_short_epg",
    "get_simple_data_table",
    "get_series_info",
    "m3u_plus",
    "Kids",
    "1",
    "2",
    "-1",
    "1.5",
    "true",
    "99999999999999999999",
    "%00",
    "%ff%fe",
    "%F0%9F%98%80",
    "%0d%0aX:%20y",
    "%",
    "&",
    "=",
    "+",
    ";",
];

/// Some pieces.
fn text() -> impl Strategy<Value = String> {
    vec(select(&PIECES), 0..12).prop_map(|it| it.concat())
}

/// Some pieces with other bytes in between.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    (text(), vec((any::<Index>(), any::<u8>()), 0..4)).prop_map(|(text, others)| {
        let mut bytes = text.into_bytes();
        for (at, byte) in others {
            bytes.insert(at.index(bytes.len() + 1), byte);
        }
        bytes
    })
}

/// Returns the next value of a strategy.
fn next<S: Strategy>(runner: &mut TestRunner, values: &S) -> S::Value {
    values.new_tree(runner).expect("these strategies reject nothing").current()
}

/// Holds T-rest.1 for players. [`Rest`] checks that no handler fails, and that each answer is documented.
#[tokio::test]
async fn no_query_form_or_path_makes_a_player_surface_fail_or_answer_a_page() {
    let rest = with_channels().await;
    // The same values in every run.
    let mut runner = TestRunner::deterministic();
    let (texts, bodies) = (text(), bytes());
    let login = rest.query_login(STREAMER);
    let bearer = rest.bearer(STREAMER);
    let form = "application/x-www-form-urlencoded";
    for path in [
        "/player_api.php",
        "/panel_api.php",
        "/get.php",
        "/xmltv.php",
        "/playlist.m3u",
        "/output/m3u",
        "/output/m3u/Kids",
        "/output/epg",
        "/output/epg.xml.gz",
        "/api/playlist.m3u",
        "/api/epg.xml",
        "/discover.json",
        "/lineup.json",
        "/tuner/lineup.xml",
        "/hdhr/lineup.m3u",
        "/tuner/Kids/device.xml",
        "/lineup.post",
        "/hdhr/lineup.post",
        "/tuner/Kids/lineup_status.json",
        "/tuner/output_profile/1/lineup.json",
        "/auto/v4.1",
        "/proxy/ts/stream/1",
        "/proxy/hls/00000000-0000-0000-0000-000000000001/index.m3u8",
        &format!("/live/streamer/{SECRET}%20{STREAMER}/1.ts"),
        &format!("/live/streamer/{SECRET}%20{STREAMER}/1.m3u8"),
        &format!("/streamer/{SECRET}%20{STREAMER}/1"),
    ] {
        for round in 0..18 {
            let query = next(&mut runner, &texts);
            let known = if round % 2 == 0 { login.as_str() } else { "" };
            // A stream that is opened would end with 503, because no provider of this test sends one.
            let is_stream = ["/auto", "/proxy", "/live", "/streamer"].iter().any(|it| path.starts_with(it));
            let method = match round % 3 {
                _ if is_stream => "HEAD",
                0 => "GET",
                1 => "HEAD",
                _ => "POST",
            };
            let body = if method == "POST" { next(&mut runner, &bodies) } else { Vec::new() };
            let headers = [("authorization", bearer.as_str()), ("content-type", form)];
            let n_headers = next(&mut runner, &(0..=headers.len()));
            let address = format!("{path}?{known}&{query}");
            let answer = rest.send(method, &address, &headers[..n_headers], body).await;
            let content_type = answer.headers.get("content-type").map(|it| it.to_str().unwrap());
            assert!(
                content_type.is_none_or(|it| !it.contains("html")),
                "{method} {address}: {content_type:?}"
            );
            let is_panel = path.ends_with("_api.php") && method != "HEAD";
            assert!(!is_panel || !answer.body.is_null(), "no JSON: {method} {address}: {}", answer.text);
        }
    }
    for _ in 0..200 {
        let [a, b, c] = [(); 3].map(|()| {
            let piece = next(&mut runner, &select(&PIECES));
            // A percent sign alone and a separator of the query are part of a path as they are.
            if piece == "%" { "%25" } else { piece }
        });
        for path in [
            format!("/live/{a}/{b}/{c}"),
            format!("/{a}/{b}/{c}"),
            format!("/tuner/{a}/{b}"),
            format!("/hdhr/{a}/lineup.json"),
            format!("/tuner/{a}/output_profile/{b}/discover.json"),
            format!("/output/m3u/{a}"),
            format!("/output/epg/{a}"),
            format!("/auto/{a}"),
            format!("/proxy/ts/stream/{a}"),
            format!("/proxy/hls/session/{a}/{b}"),
            format!("/movie/{a}/{b}/{c}"),
        ] {
            let answer = rest.send("HEAD", &path, &[("authorization", &bearer)], "").await;
            let content_type = answer.headers.get("content-type").map(|it| it.to_str().unwrap());
            assert!(content_type.is_none_or(|it| !it.contains("html")), "{path}: {content_type:?}");
        }
    }
}
