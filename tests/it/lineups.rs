//! Channel profiles: what a limited user sees and watches on every surface.

use domain::channel::Channel;
use domain::user::UserLevel;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::{Player, Request, fetch};
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::Provider;
use crate::support::users::{TestUser, create_user};

const PROFILES: &str = "/api/channels/profiles/";
const CHANNELS: [&str; 3] = ["News", "Film", "Sports"];

/// Starts a gateway with three channels, an admin, and a profile with the channel News alone, which takes no new ones.
async fn set_up() -> (Provider, TestGateway, Api, Value) {
    let provider = Provider::start();
    let paths = CHANNELS.map(|it| format!("/{it}.ts"));
    for path in &paths {
        provider.path(path).plays(Picture::new("picture"));
    }
    let entries: Vec<_> =
        CHANNELS.iter().zip(&paths).map(|(name, path)| (*name, *name, path.as_str())).collect();
    let gateway = Setup::new().list(&provider.playlist(&entries)).start().await;
    let root = create_user(&gateway, "root", |it| it.is_superuser = true).await;
    let admin = Api::stranger(&gateway).key(&root.api_key);
    let made = admin.post(PROFILES, json!({ "name": "Kids", "add_new_channels": false })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let id = made.body["id"].clone();
    set(&admin, &id, &gateway, "News", true).await;
    (provider, gateway, admin, id)
}

async fn set(admin: &Api, profile: &Value, gateway: &TestGateway, channel: &str, enabled: bool) {
    let path = format!("{PROFILES}{profile}/channels/{}/", gateway.channel(channel).id);
    let answer = admin.send("PUT", &path, json!({ "enabled": enabled })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

async fn limit(admin: &Api, user: &TestUser, profiles: &[&Value]) {
    let path = format!("/api/accounts/users/{}/", user.id);
    assert_eq!(admin.patch(&path, json!({ "channel_profiles": profiles })).await.status, 200);
}

/// Returns the names of the channels that the user finds and may watch, by surface.
async fn seen(gateway: &TestGateway, user: &TestUser) -> [Vec<String>; 8] {
    let api = Api::stranger(gateway).key(&user.api_key);
    let names = |list: &Value| -> Vec<String> {
        list.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    let summary = names(&api.get("/api/channels/channels/summary/").await.body);
    let uuids: Vec<_> = CHANNELS.iter().map(|it| gateway.channel(it).uuid).collect();
    let by_uuids = names(&api.post("/api/channels/channels/by-uuids/", json!({ "uuids": uuids })).await.body);
    let reply = api.get("/playlist.m3u").await;
    let playlist =
        reply.answer.text().lines().filter_map(|it| it.rsplit_once(',')).map(|it| it.1.to_owned()).collect();
    let mut query = url::form_urlencoded::Serializer::new(String::new());
    query.append_pair("username", &user.name).append_pair("password", &user.password);
    let query = query.append_pair("action", "get_live_streams").finish();
    let panel = names(&api.get(&format!("/player_api.php?{query}")).await.body);
    let of_tuner = api.get("/tuner/lineup.json").await.body;
    let of_tuner = of_tuner.as_array().unwrap().iter();
    let tuner = of_tuner.map(|it| it["GuideName"].as_str().unwrap().to_owned()).collect();
    let guide = api.get("/output/epg").await.answer.text();
    let of_guide = guide.split("<channel ").skip(1).filter_map(|it| it.split_once("<display-name>"));
    let guide = of_guide.filter_map(|it| Some(it.1.split_once('<')?.0.to_owned())).collect();
    let (mut by_uuid, mut by_id) = (Vec::new(), Vec::new());
    for name in CHANNELS {
        let head = Request::head(gateway.path(name)).header("X-API-Key", &user.api_key);
        if fetch(gateway.address, head).await.status() == 200 {
            by_uuid.push(name.to_owned());
        }
        let head = Request::head(user.live(&format!("{}.ts", gateway.channel(name).id)));
        if fetch(gateway.address, head).await.status() == 200 {
            by_id.push(name.to_owned());
        }
    }
    [summary, by_uuids, playlist, panel, tuner, guide, by_uuid, by_id]
}

/// Holds T-acc.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_limited_user_sees_the_same_channels_everywhere_and_may_watch_no_others() {
    let (_provider, gateway, admin, kids) = set_up().await;
    let child = create_user(&gateway, "child", |_| {}).await;
    let all: Vec<String> = CHANNELS.map(str::to_owned).into();
    assert_eq!(seen(&gateway, &child).await, [(); 8].map(|()| all.clone()), "without a profile");
    limit(&admin, &child, &[&kids]).await;
    assert_eq!(seen(&gateway, &child).await, [(); 8].map(|()| vec!["News".to_owned()]));

    // A channel that is created later does not join this profile.
    let made = admin.post("/api/channels/channels/", json!({ "name": "Late" })).await;
    assert_eq!(made.status, 201);
    assert_eq!(seen(&gateway, &child).await[0], ["News"]);
    let other = admin.post(PROFILES, json!({ "name": "All" })).await.body["id"].clone();
    limit(&admin, &child, &[&kids, &other]).await;
    assert_eq!(seen(&gateway, &child).await[0], ["News", "Film", "Sports", "Late"]);
}

/// Holds T-acc.3.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hidden_channel_is_hidden_everywhere_whatever_hides_it() {
    let (_provider, gateway, _admin, _kids) = set_up().await;
    let child = create_user(&gateway, "child", |it| it.hide_adult = true).await;
    let hides: [fn(&mut Channel); 3] =
        [|it| it.is_adult = true, |it| it.user_level = UserLevel::Standard, |it| it.enabled = false];
    for hide in hides {
        let shown = gateway.channel("Film").clone();
        let mut hidden = shown.clone();
        hide(&mut hidden);
        gateway.change(move |write| write.put(&hidden)).await;
        assert_eq!(
            seen(&gateway, &child).await,
            [(); 8].map(|()| vec!["News".to_owned(), "Sports".to_owned()])
        );
        gateway.change(move |write| write.put(&shown)).await;
    }
    assert_eq!(seen(&gateway, &child).await, [(); 8].map(|()| CHANNELS.map(str::to_owned).to_vec()));
}

/// Holds T-acc.8.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_channel_that_leaves_the_profile_of_its_viewer_ends_for_that_viewer_only() {
    let (_provider, gateway, admin, kids) = set_up().await;
    let child = create_user(&gateway, "child", |_| {}).await;
    let parent = create_user(&gateway, "parent", |it| it.level = UserLevel::Standard).await;
    limit(&admin, &child, &[&kids]).await;
    let goes = Player::ask(gateway.address, child.asks(&gateway, "News", "tv")).await;
    let stays = Player::ask(gateway.address, parent.asks(&gateway, "News", "tv")).await;
    for player in [&goes, &stays] {
        player.sees("picture").await;
    }
    set(&admin, &kids, &gateway, "Film", true).await;
    goes.more_bytes(20_000).await;
    set(&admin, &kids, &gateway, "News", false).await;
    goes.ended().await;
    stays.more_bytes(20_000).await;
    assert_eq!(fetch(gateway.address, child.asks(&gateway, "News", "tv")).await.status(), 404);
    assert_eq!(seen(&gateway, &child).await, [(); 8].map(|()| vec!["Film".to_owned()]));
}

/// Holds T-acc.8 for networks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_ends_when_its_user_may_no_longer_watch_from_that_network() {
    let (_provider, gateway, admin, _) = set_up().await;
    let child = create_user(&gateway, "child", |_| {}).await;
    let other = create_user(&gateway, "other", |_| {}).await;
    let goes = Player::ask(gateway.address, child.asks(&gateway, "News", "tv")).await;
    let stays = Player::ask(gateway.address, other.asks(&gateway, "News", "tv")).await;
    for player in [&goes, &stays] {
        player.sees("picture").await;
    }
    let allow = async |networks: Value| {
        let path = format!("/api/accounts/users/{}/", child.id);
        let body = json!({ "custom_properties": { "allowed_networks": networks } });
        assert_eq!(admin.patch(&path, body).await.status, 200);
    };
    allow(json!({ "STREAMS": ["127.0.0.0/8"], "UI": ["10.0.0.0/8"] })).await;
    goes.more_bytes(20_000).await;
    allow(json!({ "STREAMS": ["10.0.0.0/8"] })).await;
    goes.ended().await;
    stays.more_bytes(20_000).await;
    assert_eq!(fetch(gateway.address, child.asks(&gateway, "News", "tv")).await.status(), 403);
}
