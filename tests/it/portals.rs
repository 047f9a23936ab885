//! Accounts at portals: from the MAC address of a box to a picture, and what happens when the portal takes the session back.

use std::time::Duration;

use domain::user::UserLevel;
use serde_json::{Value, json};

use crate::support::api::Api;
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::portal::{OfferedChannel, Portal};
use crate::support::users::create_user;
use crate::support::{eventually, until_async};

const ACCOUNTS: &str = "/api/m3u/accounts/";
const STREAMS: &str = "/api/channels/streams/?ordering=id&page_size=200";
pub(crate) const MAC: &str = "00:1A:79:12:34:56";
const OTHER_MAC: &str = "00:1A:79:AB:CD:EF";

/// A portal that knows a box, and a gateway.
pub(crate) struct PortalFixture {
    pub(crate) portal: Portal,
    pub(crate) gateway: TestGateway,
    pub(crate) admin: Api,
}

impl PortalFixture {
    pub(crate) async fn new(channels: Vec<OfferedChannel>) -> PortalFixture {
        let portal = Portal::start();
        portal.knows(MAC);
        portal.offers(channels);
        let gateway = Setup::new().config(|it| it.limits.vod_request_interval = Duration::ZERO).start().await;
        let admin = Api::first_admin(&gateway).await;
        PortalFixture { portal, gateway, admin }
    }

    /// Creates an account and waits for the end of its first refresh; returns its path.
    pub(crate) async fn account(&self, more: Value) -> String {
        let mut body = json!({
            "name": "Portal", "account_type": "STALKER", "server_url": self.portal.url(), "mac_address": MAC,
        });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = self.admin.post(ACCOUNTS, body).await;
        assert_eq!(made.status, 201, "{made:?}");
        let path = format!("{ACCOUNTS}{}/", made.body["id"]);
        self.ended(&path).await;
        path
    }

    /// Waits until no refresh of the account runs; returns the account.
    async fn ended(&self, account: &str) -> Value {
        let mut seen = Value::Null;
        until_async("the end of the refresh", async || {
            seen = self.admin.get(account).await.body;
            !["idle", "fetching", "parsing"].contains(&seen["status"].as_str().unwrap())
        })
        .await;
        seen
    }

    async fn refreshed(&self, account: &str) -> Value {
        let begun = self.admin.post(&account.replace("accounts", "refresh"), json!({})).await;
        assert_eq!(begun.status, 202, "{begun:?}");
        self.ended(account).await
    }

    pub(crate) async fn streams(&self) -> Vec<Value> {
        let listed = self.admin.get(STREAMS).await;
        listed.body["results"].as_array().unwrap_or_else(|| panic!("{listed:?}")).clone()
    }

    pub(crate) async fn channel_from(&self, stream: &Value) -> String {
        let made = self
            .admin
            .post("/api/channels/channels/from-stream/", json!({ "stream_id": stream["id"] }))
            .await;
        assert_eq!(made.status, 201, "{made:?}");
        format!("/proxy/ts/stream/{}", made.text("uuid"))
    }

    async fn watch(&self, path: &str) -> Player {
        Player::watch(self.gateway.address, path).await
    }
}

pub(crate) fn channels(names: &[(u32, &str)]) -> Vec<OfferedChannel> {
    names.iter().map(|(id, name)| OfferedChannel::new(*id, *name)).collect()
}

fn names(streams: &[Value]) -> Vec<&str> {
    streams.iter().map(|it| it["name"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_of_a_portal_are_imported_zapped_and_opened_with_a_new_link_each_time() {
    let fixture = PortalFixture::new(channels(&[(7, "One"), (8, "Two")])).await;
    let portal = &fixture.portal;
    let account = fixture.account(json!({})).await;
    let seen = fixture.admin.get(&account).await.body;
    assert_eq!((&seen["status"], &seen["account_type"]), (&json!("success"), &json!("STALKER")), "{seen}");
    assert_eq!(seen["mac_address"], "00:1A:79:**:**:**");
    assert_eq!(seen["exp_date"], "2030-01-01T00:00:00.000Z");
    assert_eq!(seen["profiles"][0]["login_state"], "active");
    assert!(!seen.to_string().contains("12:34:56"), "{seen}");
    // The import has shaken hands once, and made no link.
    assert_eq!((portal.n_handshakes(MAC), portal.n_links()), (1, 0), "{:?}", portal.questions());

    let streams = fixture.streams().await;
    assert_eq!(names(&streams), ["One", "Two"]);
    assert_eq!(streams[0]["channel_group_name"], "News");
    assert_eq!((&streams[0]["tvg_id"], &streams[0]["stream_chno"]), (&json!("7.example"), &json!(7)));
    let url = streams[0]["url"].as_str().unwrap();
    assert!(url.starts_with("stalker://") && !url.contains("cmd"), "{url}");

    let (one, two) = (fixture.channel_from(&streams[0]).await, fixture.channel_from(&streams[1]).await);
    let player = fixture.watch(&one).await;
    player.sees("One").await;
    eventually("the portal to be told that the box is on", || portal.n_events(MAC) > 0).await;
    // One MAC address is one connection.
    assert_eq!(fixture.watch(&two).await.status().await, 503);
    drop(player);
    let player = fixture.watch(&two).await;
    player.sees("Two").await;
    assert_eq!((portal.n_links(), portal.peak_of(MAC)), (2, 1));
    // The stream ends, and its link has expired.
    portal.ends_streams();
    eventually("another link", || portal.n_links() == 3).await;
    player.sees("Two").await;
    // A box of the household takes the session.
    drop(player);
    fixture.gateway.until_idle().await;
    portal.other_box_shakes_hands(MAC);
    let player = fixture.watch(&one).await;
    player.sees("One").await;
    assert_eq!((portal.n_handshakes(MAC), portal.n_links(), portal.peak_of(MAC)), (2, 4, 1));
    drop(player);
    fixture.gateway.until_idle().await;
    // A refresh finds the same streams, with the session that is there.
    let again = fixture.refreshed(&account).await;
    assert!(again["last_message"].as_str().unwrap().starts_with("2 entries: 0 new, 0 changed"), "{again}");
    assert_eq!((portal.n_handshakes(MAC), portal.n_links()), (2, 4));
    // All commands are others, and the names as well: the ids are the same.
    let renamed = [OfferedChannel::new(7, "One HD"), OfferedChannel::new(8, "Two")];
    portal.offers(renamed.map(|it| OfferedChannel { is_direct: true, ..it }).to_vec());
    let again = fixture.refreshed(&account).await;
    assert!(again["last_message"].as_str().unwrap().starts_with("2 entries: 0 new, 2 changed"), "{again}");
    let after = fixture.streams().await;
    assert_eq!(names(&after), ["One HD", "Two"]);
    assert_eq!([&after[0]["id"], &after[1]["id"]], [&streams[0]["id"], &streams[1]["id"]]);
}

/// Holds T-portal.2.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refresh_at_a_portal_that_answers_rubbish_loses_nothing() {
    let offered = (1..=30).map(|it| OfferedChannel::new(it, format!("Channel {it}"))).collect();
    let fixture = PortalFixture::new(offered).await;
    let portal = &fixture.portal;
    portal.lists_pages_only();
    let account = fixture.account(json!({})).await;
    let before = fixture.streams().await;
    assert_eq!(before.len(), 30);
    for rubbish in [json!(false), json!("try again"), json!({ "data": false })] {
        portal.answers_later_pages_with(Some(rubbish.clone()));
        let seen = fixture.refreshed(&account).await;
        assert_eq!(seen["status"], "error", "{rubbish}: {seen}");
        assert_eq!(fixture.streams().await, before, "{rubbish}");
    }
    portal.answers_later_pages_with(None);
    portal.refuses(Some(500));
    let seen = fixture.refreshed(&account).await;
    assert_eq!(seen["status"], "error", "{seen}");
    assert_eq!(fixture.streams().await, before);
    portal.refuses(None);
    let seen = fixture.refreshed(&account).await;
    assert!(seen["last_message"].as_str().unwrap().starts_with("30 entries: 0 new, 0 changed"), "{seen}");
    assert_eq!(portal.n_handshakes(MAC), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_and_censored_genres_of_a_portal_are_read_and_several_devices_play_at_once() {
    let mut offered: Vec<_> = (1..=30).map(|it| OfferedChannel::new(it, format!("Channel {it}"))).collect();
    offered.push(OfferedChannel { genre: 9, is_censored: true, ..OfferedChannel::new(40, "Late") });
    offered.push(OfferedChannel { is_direct: true, ..OfferedChannel::new(41, "Direct") });
    let fixture = PortalFixture::new(offered).await;
    let portal = &fixture.portal;
    portal.lists_pages_only();
    portal.knows(OTHER_MAC);
    let account = fixture.account(json!({})).await;
    let pages = portal.questions().iter().filter(|it| *it == "itv/get_ordered_list").count();
    assert_eq!(pages, 4, "three of all channels, and one of the censored genre");
    let streams = fixture.streams().await;
    assert_eq!(streams.len(), 32);
    let late = streams.iter().find(|it| it["name"] == "Late").unwrap();
    assert_eq!((&late["is_adult"], &late["channel_group_name"]), (&json!(true), &json!("Night")));
    let direct = streams.iter().find(|it| it["name"] == "Direct").unwrap();

    let profiles = format!("{account}profiles/");
    let refused = fixture.admin.post(&profiles, json!({ "name": "Second" })).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    let twice = fixture.admin.post(&profiles, json!({ "name": "Second", "mac_address": MAC })).await;
    assert_eq!(twice.status, 400, "{twice:?}");
    let made = fixture.admin.post(&profiles, json!({ "name": "Second", "mac_address": OTHER_MAC })).await;
    assert_eq!(made.status, 201, "{made:?}");
    let (first, direct) = (fixture.channel_from(&streams[0]).await, fixture.channel_from(direct).await);
    let direct = fixture.watch(&direct).await;
    direct.sees("Direct").await;
    assert_eq!(portal.n_links(), 0, "its address is in the list");
    fixture.watch(&first).await.sees("Channel 1").await;
    assert_eq!((portal.peak_of(MAC), portal.n_handshakes(OTHER_MAC)), (1, 1));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_portal_that_refuses_a_box_is_not_asked_in_a_loop() {
    let fixture = PortalFixture::new(channels(&[(7, "One")])).await;
    let portal = &fixture.portal;
    portal.refuses(Some(200));
    let account = fixture.account(json!({})).await;
    let failed = fixture.admin.get(&account).await.body;
    assert_eq!(failed["last_message"], "The portal refuses the device (authorization failed).", "{failed}");
    assert_eq!(portal.n_handshakes(MAC), 2, "one, and one more");
    let again = fixture.refreshed(&account).await;
    let message = again["last_message"].as_str().unwrap();
    assert!(message.starts_with("The portal refused the device; it is asked again in"), "{message}");
    assert_eq!(portal.n_handshakes(MAC), 2);
    // Another device begins anew.
    portal.refuses(None);
    portal.knows(OTHER_MAC);
    portal.blocks(OTHER_MAC, "Box 00:1a:79:ab:cd:ef is blocked");
    let changed = fixture.admin.patch(&account, json!({ "mac_address": OTHER_MAC })).await;
    assert_eq!(changed.status, 200, "{changed:?}");
    until_async("the refusal of the other device", async || {
        let seen = fixture.ended(&account).await;
        seen["last_message"] == "The portal refuses the device: Box … is blocked."
    })
    .await;
    let seen = fixture.admin.get(&account).await.body;
    assert_eq!(seen["profiles"][0]["login_state"], "refused", "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_values_of_a_device_are_checked_never_returned_and_asked_for_a_login_only_by_the_portal() {
    let fixture = PortalFixture::new(channels(&[(7, "One")])).await;
    fixture.portal.asks_for_login(MAC, "anna", "hunter2-kept");
    let wrong = json!({
        "name": "Portal", "account_type": "STALKER", "server_url": fixture.portal.url(), "mac_address": "00:1A"
    });
    let refused = fixture.admin.post(ACCOUNTS, wrong).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert_eq!(refused.body["mac_address"], json!(["Enter a MAC address, such as 00:1A:79:12:34:56."]));
    let of_list = json!({ "name": "List", "server_url": "http://tv.example/list.m3u", "mac_address": MAC });
    assert_eq!(fixture.admin.post(ACCOUNTS, of_list).await.status, 400);

    let account = fixture.account(json!({ "serial_number": "SERIAL-0001" })).await;
    let seen = fixture.admin.get(&account).await.body;
    assert_eq!(seen["last_message"], "The portal asks for a user name and a password.", "{seen}");
    let login = json!({ "username": "anna", "password": "hunter2-kept" });
    assert_eq!(fixture.admin.patch(&account, login).await.status, 200);
    until_async("the login", async || fixture.ended(&account).await["status"] == "success").await;
    // What was sent back as it is shown changes nothing.
    let shown = fixture.admin.get(&account).await.body;
    let kept = json!({ "mac_address": shown["mac_address"], "username": shown["username"], "password": "" });
    assert_eq!(fixture.admin.patch(&account, kept).await.status, 200);
    let asked = fixture.portal.provider.requests();
    assert!(asked.iter().any(|it| it.path.contains("sn=SERIAL-0001")));
    let seen = fixture.refreshed(&account).await;
    assert_eq!(seen["status"], "success", "{seen}");
    let user = create_user(&fixture.gateway, "standard", |it| it.level = UserLevel::Standard).await;
    let standard = fixture.admin.without_credentials().key(&user.api_key);
    for api in [&fixture.admin, &standard] {
        let text = api.get(&account).await.body.to_string();
        for secret in ["12:34:56", "SERIAL-0001", "hunter2-kept"] {
            assert!(!text.contains(secret), "{secret}: {text}");
        }
    }
}
