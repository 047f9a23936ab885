//! Playlists and guides as players fetch them, and the stream addresses in them.

use std::collections::BTreeSet;
use std::io::Read;
use std::sync::Arc;

use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{ChannelId, GroupId, LineupId, LogoId};
use domain::lineup::Lineup;
use domain::logo::Logo;
use flate2::read::GzDecoder;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::{Player, Request, Response, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::{Clip, Picture};
use crate::support::tools;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::users::{TestUser, create_user};

/// Starts a gateway with the channels News (4.1, in a group), Film (7), and Late (9, adult), and a user.
async fn set_up() -> (Provider, TestGateway, TestUser) {
    let provider = Provider::start();
    let names = ["News", "Film", "Late"];
    let paths = names.map(|it| format!("/live/{it}.ts"));
    for (name, path) in names.iter().zip(&paths) {
        provider.path(path).plays(Picture::new(name));
    }
    let entries: Vec<_> =
        names.iter().zip(&paths).map(|(name, path)| (*name, *name, path.as_str())).collect();
    let gateway = Setup::new().list(&provider.playlist(&entries)).start().await;
    let group = Group::new(GroupId(7), "World \"News\"");
    let news = Channel {
        number: "4.1".parse().ok(),
        name: "News, \"World\"".to_owned(),
        group: Some(group.id),
        ..gateway.channel("News").clone()
    };
    let film = Channel { number: "7".parse().ok(), ..gateway.channel("Film").clone() };
    let late = Channel { number: "9".parse().ok(), is_adult: true, ..gateway.channel("Late").clone() };
    gateway
        .change(move |write| {
            write.put(&group)?;
            [news, film, late].iter().try_for_each(|it| write.put(it))
        })
        .await;
    let anna = create_user(&gateway, "anna", |it| it.hide_adult = true).await;
    (provider, gateway, anna)
}

async fn get(gateway: &TestGateway, path: &str) -> Response {
    fetch(gateway.address, Request::get(path)).await
}

/// Returns name and password as the parameters of a query.
fn login(user: &TestUser) -> String {
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("username", &user.name).append_pair("password", &user.password).finish()
}

/// Returns the stream addresses of a playlist.
fn addresses(playlist: &Response) -> Vec<String> {
    assert_eq!(playlist.status(), 200, "{}", playlist.text());
    let text = playlist.text();
    assert!(text.starts_with("#EXTM3U"), "{text}");
    text.lines().filter(|it| !it.starts_with('#')).map(str::to_owned).collect()
}

/// Returns the path of an address of this gateway.
fn path<'a>(gateway: &TestGateway, address: &'a str) -> &'a str {
    let origin = format!("http://{}", gateway.address);
    address.strip_prefix(&origin).unwrap_or_else(|| panic!("{address} is not at {origin}"))
}

/// Returns the value of an attribute in a line.
fn attribute<'a>(line: &'a str, name: &str) -> &'a str {
    let (_, after) = line.split_once(&format!(" {name}=\"")).unwrap_or_else(|| panic!("no {name} in {line}"));
    after.split('"').next().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_address_in_a_playlist_plays_without_a_header_whatever_way_it_was_fetched() {
    let (_provider, gateway, anna) = set_up().await;
    let key = |path: &str| Request::get(path).header("X-API-Key", &anna.api_key);
    let requests = [
        Request::get("/output/m3u"),
        Request::get("/playlist.m3u"),
        Request::get(format!("/get.php?{}&type=m3u_plus&output=ts", login(&anna))),
        Request::get(format!("/get.php?{}&type=m3u&output=mpegts", login(&anna))),
        Request::get("/get.php").method("POST").body("application/x-www-form-urlencoded", login(&anna)),
        key("/output/m3u"),
        key("/playlist.m3u"),
        key("/api/playlist.m3u"),
        Request::get("/api/playlist.m3u").header("Authorization", &format!("ApiKey {}", anna.api_key)),
    ];
    for request in requests {
        let shown = format!("{request:?}");
        let playlist = fetch(gateway.address, request).await;
        assert_eq!(playlist.header("content-type"), Some("audio/x-mpegurl"), "{shown}");
        let addresses = addresses(&playlist);
        assert_eq!(addresses.len(), 2, "adult channels are hidden: {shown} {}", playlist.text());
        for (address, name) in addresses.iter().zip(["News", "Film"]) {
            let path = path(&gateway, address);
            assert!(!path.contains('?') && !path.ends_with(".ts"), "{path}");
            assert_eq!(
                fetch(gateway.address, Request::head(path)).await.header("content-type"),
                Some("video/mp2t")
            );
            Player::watch(gateway.address, path).await.sees(name).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ffprobe_opens_every_form_of_address() {
    let inputs = ["-f", "lavfi", "-i", "testsrc=size=320x180:rate=25"];
    let codecs = ["-t", "20", "-g", "25", "-pix_fmt", "yuv420p", "-c:v", "libx264", "-preset", "ultrafast"];
    let clip = Clip::make("playlist-h264", &inputs, &codecs).await;
    let provider = Provider::start();
    provider.path("/news.ts").answers(MockResponse::play(Arc::clone(&clip)));
    let gateway = TestGateway::with_list(&provider.playlist(&[("news", "News", "/news.ts")])).await;
    let anna = create_user(&gateway, "anna", |_| {}).await;
    let channel = gateway.channel("News");
    let (id, uuid) = (channel.id, channel.uuid);
    let lineup: Value = serde_json::from_str(&get(&gateway, "/lineup.json").await.text()).unwrap();
    let forms = [
        format!("/proxy/ts/stream/{uuid}"),
        format!("/proxy/ts/stream/{uuid}.ts?transcode=heavy"),
        anna.live(&id.to_string()),
        anna.live(&format!("{id}.ts")),
        anna.path(&id.to_string()),
        anna.path(&format!("{id}.ts")),
        format!("/auto/v{}", lineup[0]["GuideNumber"].as_str().unwrap()),
    ];
    let mut all: Vec<_> = forms.map(|it| format!("http://{}{it}", gateway.address)).into();
    for path in ["/output/m3u".to_owned(), format!("/get.php?{}", login(&anna))] {
        all.push(addresses(&get(&gateway, &path).await).remove(0));
    }
    for address in all {
        let arguments = ["-v", "error", "-show_entries", "stream=codec_name", "-of", "csv=p=0", &address];
        let codecs = tools::text_of("ffprobe", &arguments).await;
        assert!(codecs.contains("h264"), "{address}: {codecs}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_entry_has_the_attributes_that_players_read_and_none_breaks_another() {
    let (_provider, gateway, anna) = set_up().await;
    let text = get(&gateway, &format!("/get.php?{}", login(&anna))).await.text();
    let lines: Vec<&str> = text.lines().collect();
    let news = lines[1];
    let read = ["tvg-id", "tvg-name", "tvg-logo", "tvg-chno", "group-title"].map(|it| attribute(news, it));
    assert_eq!(read, ["4.1", "News, 'World'", "", "4.1", "World 'News'"], "{news}");
    // Readers that take the text after the last comma get the whole name.
    assert_eq!(news.rsplit_once(',').unwrap().1, "News; \"World\"");
    assert_eq!(attribute(lines[3], "tvg-chno"), "7");
    assert!(!text.contains("catchup"), "{text}");

    let plain = get(&gateway, &format!("/get.php?{}&type=m3u", login(&anna))).await.text();
    assert!(plain.starts_with("#EXTM3U\n#EXTINF:-1,News; \"World\"\nhttp://"), "{plain}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_guide_that_a_playlist_names_needs_no_header_and_has_the_same_ids() {
    let (_provider, gateway, anna) = set_up().await;
    for request in [
        Request::get("/output/m3u?tvg_id_source=tvg_id"),
        Request::get("/output/m3u"),
        Request::get(format!("/get.php?{}&days=3", login(&anna))),
        Request::get("/output/m3u").header("X-API-Key", &anna.api_key),
    ] {
        let playlist = fetch(gateway.address, request).await.text();
        let mut lines = playlist.lines();
        let head = lines.next().unwrap();
        let guide_url = attribute(head, "x-tvg-url");
        assert_eq!(attribute(head, "url-tvg"), guide_url);
        let guide = get(&gateway, path(&gateway, guide_url)).await;
        assert_eq!((guide.status(), guide.header("content-type")), (200, Some("application/xml")));
        let entries = lines.filter(|it| it.starts_with("#EXTINF"));
        let of_playlist: BTreeSet<_> = entries.map(|it| attribute(it, "tvg-id").to_owned()).collect();
        let guide = guide.text();
        let channels = guide.lines().filter(|it| it.contains("<channel "));
        let of_guide: BTreeSet<_> = channels.map(|it| attribute(it, "id").to_owned()).collect();
        assert_eq!(of_playlist, of_guide, "{head}");
        assert_eq!(of_guide.len(), 2);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_player_gets_304_until_something_changes_and_head_has_the_same_headers() {
    let (_provider, gateway, anna) = set_up().await;
    for (path, name) in [("/get.php", "Changed"), ("/xmltv.php", "Changed again")] {
        let path = format!("{path}?{}", login(&anna));
        let first = get(&gateway, &path).await;
        let tag = first.header("etag").unwrap().to_owned();
        assert!(first.header("content-disposition").unwrap().starts_with("attachment; filename="));
        let head = fetch(gateway.address, Request::head(path.as_str())).await;
        assert_eq!((head.status(), head.bytes.len(), head.header("etag")), (200, 0, Some(tag.as_str())));
        assert_eq!(head.header("content-type"), first.header("content-type"));
        let again = || fetch(gateway.address, Request::get(path.as_str()).header("If-None-Match", &tag));
        let known = again().await;
        assert_eq!((known.status(), known.bytes.len()), (304, 0));
        let changed = Channel { name: name.to_owned(), ..gateway.channel("Film").clone() };
        gateway.change(move |write| write.put(&changed)).await;
        let new = again().await;
        assert_eq!(new.status(), 200);
        assert!(new.text().contains(name), "{}", new.text());
        // Another address of the gateway is in the answer, so it is another answer.
        let other = Request::get(path.as_str()).header("Host", "tv.example").header("If-None-Match", &tag);
        assert_eq!(fetch(gateway.address, other).await.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_guide_is_compressed_for_clients_that_accept_it_and_under_a_name_that_says_so() {
    let (_provider, gateway, _anna) = set_up().await;
    let plain = get(&gateway, "/output/epg").await;
    let accepting = Request::get("/output/epg.xml").header("Accept-Encoding", "gzip, deflate");
    let encoded = fetch(gateway.address, accepting).await;
    assert_eq!(encoded.header("content-encoding"), Some("gzip"));
    let file = get(&gateway, "/output/epg.xml.gz").await;
    assert_eq!(
        (file.header("content-encoding"), file.header("content-type")),
        (None, Some("application/gzip"))
    );
    for bytes in [&encoded.bytes, &file.bytes] {
        let mut text = String::new();
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
        assert_eq!(text, plain.text());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn twenty_thousand_channels_arrive_whole() {
    const N: u32 = 20_000;
    let (_provider, gateway, anna) = set_up().await;
    gateway
        .change(|write| {
            (10..10 + N).try_for_each(|id| {
                let uuid = uuid::Uuid::from_u128(id.into());
                let number = format!("{}", 100 + id).parse().ok();
                let name = format!("Channel with a long name {id}");
                write.put(&Channel { number, ..Channel::new(ChannelId(id), uuid, name, 0) })
            })
        })
        .await;
    for encoding in ["identity", "gzip"] {
        let request = Request::get(format!("/get.php?{}", login(&anna))).header("Accept-Encoding", encoding);
        let answer = fetch(gateway.address, request).await;
        let mut text = answer.text();
        if encoding == "gzip" {
            text.clear();
            GzDecoder::new(&answer.bytes[..]).read_to_string(&mut text).unwrap();
        }
        assert_eq!(text.matches("#EXTINF").count(), N as usize + 2);
        assert!(text.ends_with(&format!("/{}\n", 9 + N)), "{}", &text[text.len() - 200..]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_profile_limits_a_playlist_and_never_shows_more_than_the_user_may_see() {
    let (_provider, gateway, anna) = set_up().await;
    let mut kids = Lineup::new(LineupId(1), "Kids & Co", false);
    kids.set(gateway.channel("Film").id, true);
    kids.set(gateway.channel("Late").id, true);
    let mut others = Lineup::new(LineupId(2), "Others", true);
    others.set(gateway.channel("Film").id, false);
    gateway.change(move |write| write.put(&kids).and_then(|()| write.put(&others))).await;
    for path in [
        "/output/m3u/Kids%20%26%20Co".to_owned(),
        "/output/m3u?profile=Kids+%26+Co".to_owned(),
        format!("/get.php?{}&profile=Kids+%26+Co", login(&anna)),
    ] {
        let playlist = get(&gateway, &path).await;
        assert_eq!(addresses(&playlist).len(), 1, "{path}");
        let text = playlist.text();
        let guide_url = attribute(text.lines().next().unwrap(), "url-tvg");
        let guide = get(&gateway, self::path(&gateway, guide_url)).await.text();
        assert_eq!(guide.matches("<channel ").count(), 1, "{guide_url}: {guide}");
    }
    assert_eq!(get(&gateway, "/output/epg/Kids%20%26%20Co").await.text().matches("<channel ").count(), 1);
    assert_eq!(get(&gateway, "/output/m3u/Nobody").await.status(), 404);
    // For a user who is limited to one profile, no other exists.
    let child = create_user(&gateway, "child", |it| it.lineups = vec![LineupId(1)]).await;
    let of_child = |name: &str| format!("/get.php?{}&profile={name}", login(&child));
    assert_eq!(get(&gateway, &of_child("Others")).await.status(), 404);
    assert_eq!(addresses(&get(&gateway, &format!("/get.php?{}", login(&child))).await).len(), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn wrong_credentials_are_refused_and_unknown_options_are_ignored() {
    let (_provider, gateway, anna) = set_up().await;
    for path in ["/get.php", "/xmltv.php"] {
        for query in ["", "?username=anna", "?username=anna&password=wrong", "?username=nobody&password=x"] {
            let refused = get(&gateway, &format!("{path}{query}")).await;
            assert_eq!(refused.status(), 401, "{path}{query}");
            assert!(refused.header("content-type").unwrap().starts_with("application/json"));
        }
        let odd = "type=x&output=rtmp&days=many&prev_days=-1&cachedlogos=perhaps&tvg_id_source=x&direct=true&new=1&&=";
        let answer = get(&gateway, &format!("{path}?{}&{odd}", login(&anna))).await;
        assert_eq!(answer.status(), 200, "{}", answer.text());
        assert!(!answer.text().contains("/live/News.ts"), "only admins get addresses of providers");
    }
    for path in ["/api/playlist.m3u", "/api/epg.xml"] {
        assert_eq!(get(&gateway, path).await.status(), 401, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_admin_can_have_the_addresses_of_the_provider() {
    let (provider, gateway, _anna) = set_up().await;
    let root = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let direct = addresses(&get(&gateway, &format!("/get.php?{}&direct=true", login(&root))).await);
    assert_eq!(direct, ["News", "Film", "Late"].map(|it| provider.url(&format!("/live/{it}.ts"))));
    // Without a login nobody knows who asks.
    let open = addresses(&get(&gateway, "/output/m3u?direct=true").await);
    assert!(open.iter().all(|it| it.contains("/proxy/ts/stream/")), "{open:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_address_in_a_playlist_stays_the_same_until_the_secret_of_the_user_is_revoked() {
    let (_provider, gateway, anna) = set_up().await;
    let request = || Request::get("/output/m3u").header("X-API-Key", &anna.api_key);
    let before = addresses(&fetch(gateway.address, request()).await);
    let renamed = Channel { name: "Renamed".to_owned(), number: None, ..gateway.channel("Film").clone() };
    gateway.change(move |write| write.put(&renamed)).await;
    let after = addresses(&fetch(gateway.address, request()).await);
    assert_eq!(before.iter().collect::<BTreeSet<_>>(), after.iter().collect::<BTreeSet<_>>());
    assert!(!before[0].contains(&anna.api_key));
    crate::support::users::change_user(&gateway, &anna, |it| it.revoke_player_secret()).await;
    let old = fetch(gateway.address, Request::head(path(&gateway, &before[0]))).await;
    assert_eq!(old.status(), 401);
    let new = addresses(&fetch(gateway.address, request()).await);
    assert_eq!(fetch(gateway.address, Request::head(path(&gateway, &new[0]))).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_logo_of_a_playlist_is_that_of_the_provider_at_its_first_request() {
    const PNG: &[u8] = b"\x89PNG\r\n\x1a\n the logo of the provider";
    let (provider, gateway, _anna) = set_up().await;
    provider.path("/logo.png?size=1").answers(MockResponse::text("image/png", PNG));
    let logo = Logo {
        id: LogoId(1),
        name: "News".to_owned(),
        url: provider.url("/logo.png?size=1"),
        file: None,
        named_by: None,
        guide_source: None,
        updated_at: 0,
    };
    let news =
        Channel { logo_id: Some(logo.id), logo: Some(logo.url.clone()), ..gateway.channel("News").clone() };
    gateway.change(move |write| write.put(&logo).and_then(|()| write.put(&news))).await;
    let text = get(&gateway, "/output/m3u").await.text();
    let entry = text.lines().find(|it| it.ends_with(",News")).unwrap();
    let logo = path(&gateway, attribute(entry, "tvg-logo"));
    let first = get(&gateway, logo).await;
    assert_eq!((first.status(), first.header("content-type")), (200, Some("image/png")));
    assert_eq!(first.bytes, PNG, "Kodi keeps what it gets first");
    let tag = get(&gateway, logo).await.header("etag").unwrap().to_owned();
    let known = fetch(gateway.address, Request::get(logo).header("If-None-Match", &tag)).await;
    assert_eq!(known.status(), 304);
    // Users other than admins get no credentials that the address of a logo may contain.
    let original = get(&gateway, "/output/m3u?cachedlogos=false").await.text();
    assert!(original.contains(&format!("tvg-logo=\"{}\"", provider.url("/logo.png"))), "{original}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_are_exported_by_ids_or_by_a_filter() {
    let (_provider, gateway, anna) = set_up().await;
    crate::support::users::change_user(&gateway, &anna, |it| it.level = domain::user::UserLevel::Standard)
        .await;
    let api = Api::stranger(&gateway).key(&anna.api_key);
    let export = "/api/channels/channels/export/";
    let ids = ["Film", "News"].map(|it| gateway.channel(it).id);
    let by_ids = api.post(export, json!({ "ids": ids })).await;
    let addresses = addresses(&by_ids.answer);
    assert_eq!(addresses.len(), 2);
    Player::watch(gateway.address, path(&gateway, &addresses[0])).await.sees("Film").await;
    let guide = api.post(export, json!({ "filter": { "name": "fil" }, "format": "xmltv" })).await;
    let text = guide.answer.text();
    assert!(text.contains("<channel id=\"7\">") && text.matches("<channel ").count() == 1, "{text}");
    let except = api.post(export, json!({ "filter": {}, "except": [ids[0]] })).await;
    assert_eq!(self::addresses(&except.answer).len(), 1, "adult channels are hidden");
    for (body, field) in [
        (json!({}), "ids"),
        (json!({ "ids": [gateway.channel("Late").id] }), "ids"),
        (json!({ "ids": [ids[0], ids[0]] }), "ids"),
        (json!({ "ids": ids, "filter": {} }), "filter"),
        (json!({ "ids": ids, "format": "csv" }), "format"),
    ] {
        let refused = api.post(export, body).await;
        assert_eq!(refused.status, 400, "{refused:?}");
        assert!(refused.body[field].is_array(), "{refused:?}");
    }
}
