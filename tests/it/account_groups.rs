//! Playlist accounts with filters, groups, automatic channels and a server group, with a provider behind them.

use std::time::Duration;

use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{GuideChannelId, GuideSourceId};
use serde_json::{Value, json};
use storage::Write;

use crate::support::api::Api;
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::{eventually, until_async};

const ACCOUNTS: &str = "/api/m3u/accounts/";
const CHANNELS: &str = "/api/channels/channels/";
const SLOTS: &str = "/api/m3u/slots/";

/// A gateway with an admin, and a provider.
pub(crate) struct GroupFixture {
    provider: Provider,
    gateway: TestGateway,
    pub(crate) admin: Api,
}

/// An entry of a list: number of the stream, group and name.
pub(crate) type Entry<'a> = (usize, &'a str, &'a str);

fn stream_path(login: &str, number: usize) -> String {
    format!("/live/{login}/pass/{number}.ts")
}

fn list_path(login: &str) -> String {
    format!("/get.php?username={login}&password=pass")
}

impl GroupFixture {
    pub(crate) async fn new() -> Self {
        let provider = Provider::start();
        let gateway = Setup::new().start().await;
        let admin = Api::first_admin(&gateway).await;
        Self { provider, gateway, admin }
    }

    /// Sets the list of a login. Each stream shows login and number.
    pub(crate) fn serve(&self, login: &str, entries: &[Entry<'_>]) {
        let mut list = "#EXTM3U\n".to_owned();
        for (number, group, name) in entries {
            let path = stream_path(login, *number);
            let picture =
                Picture::new(&format!("{login} {number}")).bits_per_second(300_000).frames_per_gop(3);
            self.provider.path(&path).plays(picture);
            list += &format!("#EXTINF:-1 group-title=\"{group}\",{name}\n{}\n", self.provider.url(&path));
        }
        self.serve_text(login, list);
    }

    fn serve_text(&self, login: &str, list: String) {
        self.provider.path(&list_path(login)).answers(MockResponse::text("audio/x-mpegurl", list));
    }

    /// Sets the list of a login, with further attributes for each entry: number of the stream, attributes and name.
    fn serve_with(&self, login: &str, entries: &[(usize, &str, &str)]) {
        let entry = |(number, attributes, name): &(usize, &str, &str)| {
            let url = self.provider.url(&stream_path(login, *number));
            format!("#EXTINF:-1 {attributes},{name}\n{url}\n")
        };
        self.serve_text(login, format!("#EXTM3U\n{}", entries.iter().map(entry).collect::<String>()));
    }

    /// Creates an account and waits for the end of its first refresh; returns its path.
    pub(crate) async fn account(&self, login: &str, more: Value) -> String {
        let mut body = json!({ "name": login, "server_url": self.provider.url(&list_path(login)) });
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let made = self.admin.post(ACCOUNTS, body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let account = format!("{ACCOUNTS}{}/", made.body["id"]);
        until_async("the first refresh", async || self.get(&account).await["status"] == "success").await;
        account
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        self.admin.get(path).await.body
    }

    pub(crate) async fn change(&self, path: &str, body: Value) {
        let changed = self.admin.patch(path, body).await;
        assert_eq!(changed.status, 200, "{}", changed.body);
    }

    /// Refreshes an account, waits for the end, and returns the outcome and the message.
    pub(crate) async fn refresh(&self, account: &str) -> (String, String) {
        self.refresh_with(account, json!({})).await
    }

    async fn refresh_with(&self, account: &str, options: Value) -> (String, String) {
        let path = account.replace("accounts", "refresh");
        let begun = self.admin.post(&path, options).await.body;
        let mut seen = Value::Null;
        until_async("the end of the refresh", async || {
            seen = self.get(&path).await;
            seen["task_id"] == begun["task_id"] && seen["phase"] == "done"
        })
        .await;
        let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
        (text(&seen["outcome"]), text(&seen["message"]))
    }

    /// Waits until the streams in memory contain the last refresh, and returns their names.
    async fn stream_names(&self) -> Vec<String> {
        let models = self.gateway.models();
        models.streams.at(models.store.version()).await.unwrap();
        let listed = self.get("/api/channels/streams/?ordering=name&page_size=100").await;
        names(&listed["results"])
    }

    /// Changes the settings of a group, found by its name.
    pub(crate) async fn group(&self, account: &str, name: &str, settings: Value) {
        let groups = self.get(account).await["channel_groups"].clone();
        let of_name = |it: &&Value| it["channel_group_name"] == name;
        let group =
            groups.as_array().unwrap().iter().find(of_name).unwrap_or_else(|| panic!("{name} in {groups}"));
        let mut setting = json!({ "channel_group": group["channel_group"] });
        setting.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
        self.change(&format!("{account}group-settings/"), json!({ "group_settings": [setting] })).await;
    }

    /// Returns the channels as `number name`.
    pub(crate) async fn channels(&self) -> Vec<String> {
        let channels = self.get(&format!("{CHANNELS}?ordering=channel_number&page_size=100")).await;
        let show = |it: &Value| format!("{} {}", it["channel_number"], it["name"].as_str().unwrap());
        channels["results"].as_array().unwrap().iter().map(show).collect()
    }

    /// Creates a channel of one stream, found by its name; returns its id and path.
    async fn channel(&self, name: &str) -> (Value, String) {
        self.stream_names().await;
        let found = self.get(&format!("/api/channels/streams/?name={name}")).await["results"].clone();
        let stream = found.as_array().unwrap().iter().find(|it| it["name"] == name).unwrap()["id"].clone();
        let made = self.admin.post(CHANNELS, json!({ "name": name, "streams": [stream] })).await;
        assert_eq!(made.status, 201, "{}", made.body);
        (made.body["id"].clone(), format!("/proxy/ts/stream/{}", made.text("uuid")))
    }

    pub(crate) async fn watch(&self, path: &str) -> Player {
        Player::watch(self.gateway.address, path).await
    }

    /// Returns the slots of an account's default profile.
    async fn slots(&self, account: &str) -> Value {
        let id: u64 = account.trim_end_matches('/').rsplit('/').next().unwrap().parse().unwrap();
        let seen = self.get(SLOTS).await;
        seen["profiles"].as_array().unwrap().iter().find(|it| it["account"] == id).unwrap().clone()
    }
}

fn names(results: &Value) -> Vec<String> {
    results.as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slots_are_shown_while_they_are_used_awaited_and_cool_down() {
    let fixture = GroupFixture::new().await;
    fixture.serve("anna", &[(1, "News", "One"), (2, "News", "Two")]);
    let account = fixture.account("anna", json!({ "max_streams": 1, "release_delay": 600 })).await;
    let free = fixture.slots(&account).await;
    assert_eq!((&free["free"], &free["slots"], &free["waiting"]), (&json!(1), &json!([]), &json!([])));
    let [(one, first), (two, second)] = [fixture.channel("One").await, fixture.channel("Two").await];
    let player = fixture.watch(&first).await;
    player.sees("anna 1").await;

    let used = fixture.slots(&account).await;
    assert_eq!((&used["free"], &used["current_viewers"]), (&json!(0), &json!(1)), "{used}");
    let slot = &used["slots"][0];
    assert_eq!(
        (&slot["state"], &slot["purpose"], &slot["channel"]),
        (&json!("in_use"), &json!("live"), &one)
    );
    assert_eq!((&slot["channel_name"], &slot["stream_name"]), (&json!("One"), &json!("One")));
    assert_eq!(slot["host"], "127.0.0.1");
    assert!(slot["since"].is_string() && slot["uuid"] == first.rsplit('/').next().unwrap(), "{slot}");

    let late = fixture.watch(&second).await;
    let mut seen = Value::Null;
    until_async("the request that waits", async || {
        seen = fixture.slots(&account).await;
        seen["waiting"] != json!([])
    })
    .await;
    assert_eq!(
        (&seen["waiting"][0]["channel"], &seen["waiting"][0]["position"]),
        (&two, &json!(1)),
        "{seen}"
    );
    assert_eq!(late.status().await, 503);
    assert_eq!(fixture.slots(&account).await["waiting"], json!([]));

    drop((player, late));
    fixture.gateway.until_idle().await;
    let cooling = fixture.slots(&account).await;
    assert_eq!((&cooling["free"], &cooling["current_viewers"]), (&json!(0), &json!(0)), "{cooling}");
    let slot = &cooling["slots"][0];
    assert_eq!((&slot["state"], &slot["channel"]), (&json!("cooling"), &Value::Null));
    assert!((500.0..=600.0).contains(&slot["seconds_left"].as_f64().unwrap()), "{slot}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slot_is_shown_as_closing_until_the_provider_has_closed_the_connection() {
    let fixture = GroupFixture::new().await;
    fixture.serve("anna", &[(1, "News", "One")]);
    let account = fixture.account("anna", json!({ "max_streams": 1 })).await;
    let (one, path) = fixture.channel("One").await;
    // The provider keeps its side open, so the gateway waits for it as long as it waits for anybody.
    fixture.provider.close_delay(Duration::from_secs(600));
    let mut seen = Value::Null;
    until_async("a slot that is closing", async || {
        let player = fixture.watch(&path).await;
        player.sees("anna 1").await;
        player.leave().await;
        // A slow test may miss the moment; then the channel is watched again.
        loop {
            seen = fixture.slots(&account).await;
            match seen["slots"][0]["state"].as_str() {
                Some("in_use") => {}
                state => return state == Some("closing"),
            }
        }
    })
    .await;
    assert_eq!((&seen["free"], &seen["slots"][0]["channel"]), (&json!(0), &one), "{seen}");
    until_async("the slot is free", async || {
        seen = fixture.slots(&account).await;
        (&seen["free"], &seen["slots"]) == (&json!(1), &json!([]))
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_of_a_server_group_never_open_more_connections_than_its_limit() {
    // Holds T-slot.9.
    let fixture = GroupFixture::new().await;
    fixture.serve("anna", &[(1, "News", "One")]);
    fixture.serve("bert", &[(2, "News", "Two")]);
    let group =
        fixture.admin.post("/api/m3u/server-groups/", json!({ "name": "Both", "max_streams": 1 })).await;
    let of_group = json!({ "max_streams": 5, "server_group": group.body["id"] });
    let account = fixture.account("anna", of_group.clone()).await;
    fixture.account("bert", of_group).await;
    let [(_, first), (_, second)] = [fixture.channel("One").await, fixture.channel("Two").await];
    eventually("the requests for the lists to end", || fixture.provider.open() == 0).await;
    let player = fixture.watch(&first).await;
    player.sees("anna 1").await;
    let refused = fixture.watch(&second).await;
    assert_eq!(refused.status().await, 503);
    let text = refused.answer().await.text();
    assert!(text.contains("server group") && text.contains("Both"), "{text}");
    let seen = fixture.get(SLOTS).await;
    let of_group = &seen["server_groups"][0];
    assert_eq!(
        (&of_group["free"], &of_group["slots"][0]["channel_name"]),
        (&json!(0), &json!("One")),
        "{of_group}"
    );
    assert_eq!(fixture.slots(&account).await["free"], 4);
    assert_eq!(fixture.provider.open_on(&stream_path("bert", 2)), 0);

    // The slot is given back to both pools, and the other account takes it.
    drop(player);
    fixture.gateway.until_idle().await;
    let other = fixture.watch(&second).await;
    other.sees("bert 2").await;
    // A change of the limit applies to the next viewer, and nobody is disconnected.
    fixture
        .change(&format!("/api/m3u/server-groups/{}/", group.body["id"]), json!({ "max_streams": 2 }))
        .await;
    let both = fixture.watch(&first).await;
    both.sees("anna 1").await;
    assert!(other.is_watching());
    drop((both, other));
    fixture.gateway.until_idle().await;
    assert_eq!(fixture.get(SLOTS).await["server_groups"][0]["free"], 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lingering_channel_yields_to_another_account_of_its_server_group() {
    let linger = Duration::from_secs(60);
    let provider = Provider::start();
    let gateway = Setup::new().engine(|it| it.channel_shutdown_delay = linger).start().await;
    let admin = Api::first_admin(&gateway).await;
    let fixture = GroupFixture { provider, gateway, admin };
    fixture.serve("anna", &[(1, "News", "One")]);
    fixture.serve("bert", &[(2, "News", "Two")]);
    let group =
        fixture.admin.post("/api/m3u/server-groups/", json!({ "name": "Both", "max_streams": 1 })).await;
    let of_group = json!({ "server_group": group.body["id"] });
    fixture.account("anna", of_group.clone()).await;
    fixture.account("bert", of_group).await;
    let [(_, first), (_, second)] = [fixture.channel("One").await, fixture.channel("Two").await];
    let player = fixture.watch(&first).await;
    player.sees("anna 1").await;
    drop(player);
    let other = fixture.watch(&second).await;
    other.sees("bert 2").await;
    assert_eq!(fixture.gateway.gateway.counts().leases, 1);
    eventually("the first connection to close", || fixture.provider.open_on(&stream_path("anna", 1)) == 0)
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn filters_and_disabled_groups_decide_what_the_next_refresh_imports() {
    let fixture = GroupFixture::new().await;
    let entries = [(1, "News", "One"), (2, "News", "One SD"), (3, "Films", "Film"), (4, "Films", "Film SD")];
    fixture.serve("anna", &entries);
    let account = fixture.account("anna", json!({})).await;
    let groups = fixture.get(&account).await["channel_groups"].clone();
    let counts: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["channel_group_name"].as_str().unwrap(), it["enabled"] == true, &it["is_stale"]))
        .collect();
    assert_eq!(counts, [("Films", true, &json!(false)), ("News", true, &json!(false))]);

    // A stream with a channel stays, and is stale.
    let (_, path) = fixture.channel("Film").await;
    let sd = json!({ "filter_type": "name", "regex_pattern": "sd$", "exclude": true,
        "custom_properties": { "case_sensitive": false } });
    let filters = format!("{account}filters/");
    assert_eq!(fixture.admin.post(&filters, sd).await.status, 201);
    fixture.group(&account, "Films", json!({ "enabled": false })).await;
    assert_eq!(fixture.stream_names().await, ["Film", "Film SD", "One", "One SD"], "nothing changes yet");
    let (outcome, message) = fixture.refresh(&account).await;
    assert_eq!(outcome, "success", "{message}");
    assert!(message.contains("3 left out by filters and disabled groups"), "{message}");
    assert_eq!(fixture.stream_names().await, ["Film", "One"]);
    fixture.watch(&path).await.sees("anna 3").await;

    // The filters leave out more than half of the list. The refresh does not wait for a confirmation by an admin.
    assert_eq!(fixture.refresh(&account).await.0, "success");
    let first = &fixture.get(&filters).await["results"][0]["id"];
    assert_eq!(fixture.admin.delete(&format!("{filters}{first}/")).await.status, 204);
    fixture.group(&account, "Films", json!({ "enabled": true })).await;
    fixture.refresh(&account).await;
    assert_eq!(fixture.stream_names().await, ["Film", "Film SD", "One", "One SD"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_groups_are_imported_as_the_account_says_and_vanished_ones_are_stale() {
    let fixture = GroupFixture::new().await;
    fixture.serve("anna", &[(1, "News", "One"), (2, "Films", "Film")]);
    let account = fixture.account("anna", json!({ "auto_enable_new_groups_live": false })).await;
    assert_eq!(fixture.stream_names().await, Vec::<String>::new());
    fixture.group(&account, "News", json!({ "enabled": true })).await;
    fixture.refresh(&account).await;
    assert_eq!(fixture.stream_names().await, ["One"]);
    // A cleanup keeps the disabled group, so that it does not come back enabled.
    fixture.admin.post("/api/channels/groups/cleanup/", json!({})).await;

    fixture.serve("anna", &[(1, "News", "One"), (3, "Sport", "Match")]);
    fixture.refresh(&account).await;
    let groups = fixture.get(&account).await["channel_groups"].clone();
    let states: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["channel_group_name"].as_str().unwrap(), it["enabled"] == true, it["is_stale"] == true))
        .collect();
    assert_eq!(states, [("Films", false, true), ("News", true, false), ("Sport", false, false)]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn channels_of_a_group_are_created_renamed_and_removed_by_refreshes_and_play() {
    let fixture = GroupFixture::new().await;
    fixture.serve(
        "anna",
        &[(1, "News", "UK: One"), (2, "News", "UK: Two"), (3, "News", "UK: Three"), (4, "Films", "Film")],
    );
    let account = fixture.account("anna", json!({ "stale_stream_days": 0 })).await;
    assert_eq!(fixture.channels().await, Vec::<String>::new());
    let mine = fixture.admin.post(CHANNELS, json!({ "name": "Mine", "channel_number": 101 })).await;
    assert_eq!(mine.status, 201, "{}", mine.body);
    let settings = json!({ "auto_channel_sync": true, "auto_sync_channel_start": 100,
        "custom_properties": { "name_regex_pattern": "^UK: ", "name_replace_pattern": "" } });
    fixture.group(&account, "News", settings).await;
    let (_, message) = fixture.refresh(&account).await;
    assert!(message.contains("Channels: 3 created, 0 updated, 0 removed."), "{message}");
    assert_eq!(fixture.channels().await, ["100 One", "101 Mine", "102 Two", "103 Three"]);
    let counted = fixture.get(&format!("{account}auto-created-channels-count/")).await;
    assert_eq!(counted["count"], 3);
    let list = fixture.get(&format!("{CHANNELS}?ordering=channel_number")).await;
    let [one, two] = [0, 2].map(|at| list["results"][at].clone());
    let path = format!("/proxy/ts/stream/{}", one["uuid"].as_str().unwrap());
    let player = fixture.watch(&path).await;
    player.sees("anna 1").await;

    // A name of the provider changes; one that an admin set stays, and what plays goes on.
    let edited = json!({ "name": "My two" });
    assert_eq!(fixture.admin.patch(&format!("{CHANNELS}{}/", two["id"]), edited).await.status, 200);
    fixture.serve(
        "anna",
        &[
            (1, "News", "UK: First"),
            (2, "News", "UK: Second"),
            (3, "News", "UK: Three"),
            (4, "Films", "Film"),
        ],
    );
    let (_, message) = fixture.refresh(&account).await;
    assert!(message.contains("Channels: 0 created, 2 updated, 0 removed."), "{message}");
    assert_eq!(fixture.channels().await, ["100 First", "101 Mine", "102 My two", "103 Three"]);
    player.more_bytes(100_000).await;

    // A broken or much shorter list removes nothing.
    fixture.serve("anna", &[(4, "Films", "Film")]);
    assert_eq!(fixture.refresh(&account).await.0, "pending_confirmation");
    fixture.provider.path(&list_path("anna")).answers(MockResponse::html());
    assert_eq!(fixture.refresh(&account).await.0, "error");
    assert_eq!(fixture.channels().await.len(), 4);

    // Streams that are gone take their channels with them, except for those that an admin changed.
    fixture.serve("anna", &[(1, "News", "UK: First"), (4, "Films", "Film")]);
    let (_, message) = fixture.refresh(&account).await;
    assert!(message.contains("Channels: 0 created, 0 updated, 1 removed."), "{message}");
    assert_eq!(fixture.channels().await, ["100 First", "101 Mine", "102 My two"]);
    let cleanup = json!({ "custom_properties": { "orphan_channel_cleanup": "always" } });
    fixture.change(&account, cleanup).await;
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, ["100 First", "101 Mine"]);

    // A group that is no longer synchronised has no automatic channels; what plays continues until its viewer leaves.
    fixture.group(&account, "News", json!({ "auto_channel_sync": false })).await;
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, ["101 Mine"]);
}

/// Media servers forget all channels of a tuner whose lineup is empty.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lineup_is_never_empty_while_a_refresh_replaces_all_channels() {
    const N: usize = 300;
    let fixture = GroupFixture::new().await;
    let serve = |round: usize| {
        let entry = |n: usize| {
            let url = fixture.provider.url(&format!("/live/anna/{round}/{n}.ts"));
            format!("#EXTINF:-1 group-title=\"News\",Round {round} of {n}\n{url}\n")
        };
        fixture.serve_text("anna", format!("#EXTM3U\n{}", (0..N).map(entry).collect::<String>()));
    };
    serve(0);
    let account = fixture.account("anna", json!({ "stale_stream_days": 0 })).await;
    fixture.group(&account, "News", json!({ "auto_channel_sync": true })).await;
    fixture.refresh(&account).await;
    for round in 1..=3 {
        serve(round);
        // A list without a known stream is imported after a confirmation only.
        let refresh = fixture.refresh_with(&account, json!({ "confirm": true }));
        tokio::pin!(refresh);
        let ended = loop {
            tokio::select! {
                ended = &mut refresh => break ended,
                lineup = fixture.get("/lineup.json") => {
                    assert!(lineup.as_array().is_some_and(|it| !it.is_empty()), "round {round}: {lineup}");
                }
            }
        };
        assert_eq!(ended.0, "success", "{}", ended.1);
        let lineup = fixture.get("/lineup.json").await;
        let lineup = lineup.as_array().unwrap();
        let is_new = |it: &Value| it["GuideName"].as_str().unwrap().starts_with(&format!("Round {round} "));
        assert!(lineup.len() == N && lineup.iter().all(is_new), "round {round}: {}", lineup.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_vanished_stream_keeps_its_channel_for_the_days_of_the_account() {
    let fixture = GroupFixture::new().await;
    let entries = [(1, "News", "One"), (2, "News", "Two"), (3, "News", "Three")];
    fixture.serve("anna", &entries);
    let account = fixture.account("anna", json!({})).await;
    fixture.group(&account, "News", json!({ "auto_channel_sync": true })).await;
    fixture.refresh(&account).await;
    let before = fixture.channels().await;
    assert_eq!(before, ["1 One", "2 Two", "3 Three"]);
    fixture.serve("anna", &entries[..2]);
    assert_eq!(fixture.refresh(&account).await.0, "success");
    assert_eq!(fixture.channels().await, before, "the stream may return");
    fixture.serve("anna", &entries);
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, before);

    // Gaps are closed on request.
    fixture.change(&account, json!({ "stale_stream_days": 0 })).await;
    fixture.serve("anna", &entries[1..]);
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, ["2 Two", "3 Three"]);
    let group = fixture.get(&account).await["channel_groups"][0]["channel_group"].clone();
    let packed =
        fixture.admin.post(&format!("{account}repack-group/?channel_group_id={group}"), json!({})).await;
    assert_eq!((packed.status, &packed.body["channels_updated"]), (200, &json!(2)), "{}", packed.body);
    assert_eq!(fixture.channels().await, ["1 Two", "2 Three"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automatic_channels_are_in_the_channel_profiles_of_their_group() {
    const PROFILES: &str = "/api/channels/profiles/";
    let fixture = GroupFixture::new().await;
    fixture.serve("anna", &[(1, "News", "One"), (2, "Films", "Film")]);
    let account = fixture.account("anna", json!({})).await;
    let mut profiles = Vec::new();
    for (name, takes_new) in [("Adults", true), ("Kids", false)] {
        let made = fixture.admin.post(PROFILES, json!({ "name": name, "add_new_channels": takes_new })).await;
        assert_eq!(made.status, 201, "{}", made.body);
        profiles.push(made.body["id"].clone());
    }
    // One group names the profile of its channels, and the other one leaves it to the profiles.
    let kids = json!({ "channel_profile_ids": [profiles[1]] });
    fixture.group(&account, "News", json!({ "auto_channel_sync": true, "custom_properties": kids })).await;
    fixture.group(&account, "Films", json!({ "auto_channel_sync": true })).await;
    fixture.refresh(&account).await;
    let channels = fixture.get(&format!("{CHANNELS}?ordering=name")).await["results"].clone();
    let of_name = |name: &str| {
        let found = channels.as_array().unwrap().iter().find(|it| it["name"] == name);
        found.unwrap()["id"].clone()
    };
    let in_profile = async |id: &Value| fixture.get(&format!("{PROFILES}{id}/")).await["channels"].clone();
    assert_eq!(in_profile(&profiles[0]).await, json!([of_name("Film")]));
    assert_eq!(in_profile(&profiles[1]).await, json!([of_name("One")]));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automatic_channels_are_in_the_order_of_the_latest_list() {
    let fixture = GroupFixture::new().await;
    fixture.serve("anna", &[(1, "News", "One"), (2, "News", "Two")]);
    let account = fixture.account("anna", json!({})).await;
    fixture.group(&account, "News", json!({ "auto_channel_sync": true })).await;
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, ["1 One", "2 Two"]);

    // Without packed numbers, the channels that exist keep theirs.
    fixture
        .serve("anna", &[(4, "News", "Four"), (3, "News", "Three"), (1, "News", "One"), (2, "News", "Two")]);
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, ["1 One", "2 Two", "3 Four", "4 Three"]);

    // With them, the list decides, whatever was seen first.
    fixture.group(&account, "News", json!({ "custom_properties": { "compact_numbering": true } })).await;
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, ["1 Four", "2 Three", "3 One", "4 Two"]);
    fixture
        .serve("anna", &[(2, "News", "Two"), (1, "News", "One"), (3, "News", "Three"), (4, "News", "Four")]);
    fixture.refresh(&account).await;
    assert_eq!(fixture.channels().await, ["1 Two", "2 One", "3 Three", "4 Four"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn automatic_channels_have_logo_records_at_once_and_a_group_can_choose_one_logo_for_all() {
    const LOGOS: &str = "/api/channels/logos/";
    let fixture = GroupFixture::new().await;
    let logo = |name: &str| format!("group-title=\"News\" tvg-logo=\"http://logos.example/{name}.png\"");
    fixture.serve_with("anna", &[(1, &logo("one"), "One"), (2, &logo("two"), "Two")]);
    let account = fixture.account("anna", json!({})).await;
    fixture.group(&account, "News", json!({ "auto_channel_sync": true })).await;
    fixture.refresh(&account).await;
    let shown = async || {
        let channels = fixture.get(&format!("{CHANNELS}?ordering=name")).await["results"].clone();
        let mut logos = Vec::new();
        for channel in channels.as_array().unwrap() {
            let logo = fixture.get(&format!("{LOGOS}{}/", channel["logo_id"])).await;
            assert_eq!(logo["url"], channel["logo_url"], "the channel and its record have one address");
            logos.push(logo["url"].as_str().unwrap_or_default().to_owned());
        }
        logos
    };
    assert_eq!(shown().await, ["http://logos.example/one.png", "http://logos.example/two.png"]);

    // A refresh that changes an address leads to another record, without a restart.
    fixture.serve_with("anna", &[(1, &logo("new"), "One"), (2, &logo("two"), "Two")]);
    fixture.refresh(&account).await;
    assert_eq!(shown().await, ["http://logos.example/new.png", "http://logos.example/two.png"]);

    let ours = json!({ "name": "Ours", "url": "http://logos.example/ours.png" });
    let ours = fixture.admin.post(LOGOS, ours).await.body["id"].clone();
    let custom = json!({ "custom_logo_id": ours });
    fixture.group(&account, "News", json!({ "custom_properties": custom })).await;
    assert_eq!(fixture.get(&account).await["channel_groups"][0]["custom_properties"], custom);
    fixture.refresh(&account).await;
    assert_eq!(shown().await, ["http://logos.example/ours.png"; 2]);
    fixture.group(&account, "News", json!({ "custom_properties": {} })).await;
    fixture.refresh(&account).await;
    assert_eq!(shown().await, ["http://logos.example/new.png", "http://logos.example/two.png"]);

    let group = fixture.get(&account).await["channel_groups"][0]["channel_group"].clone();
    let unknown = json!({ "channel_group": group, "custom_properties": { "custom_logo_id": 999 } });
    let settings = json!({ "group_settings": [unknown] });
    let refused = fixture.admin.patch(&format!("{account}group-settings/"), settings).await;
    let message = refused.body["group_settings"][0].as_str().unwrap_or_default();
    assert!(refused.status == 400 && message.contains("logo 999 does not exist"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_chooses_the_guide_source_of_its_channels() {
    let fixture = GroupFixture::new().await;
    let source = |id: u32, kind| GuideSource::new(GuideSourceId(id), format!("Guide {id}"), kind, 0);
    let channel = |id: u32, source: u32, key: &str, name: &str| GuideChannel {
        id: GuideChannelId(id),
        source: GuideSourceId(source),
        key: key.to_owned(),
        names: vec![name.to_owned()],
        icon: None,
    };
    let sources = [
        source(1, GuideSourceKind::Xmltv),
        source(2, GuideSourceKind::Xmltv),
        source(3, GuideSourceKind::Generated),
    ];
    let channels = [
        channel(11, 1, "one.uk", "One"),
        channel(21, 2, "first", "One"),
        channel(22, 2, "second", "Two"),
        channel(31, 3, "events", "Events"),
    ];
    let write = move |write: &mut Write<'_>| {
        sources.iter().try_for_each(|it| write.put(it))?;
        channels.iter().try_for_each(|it| write.put(it))
    };
    fixture.gateway.change(write).await;
    let of = |tvg_id: &str| format!("group-title=\"News\" tvg-id=\"{tvg_id}\"");
    fixture.serve_with("anna", &[(1, &of("one.uk"), "One HD"), (2, &of("x"), "Two")]);
    let account = fixture.account("anna", json!({})).await;
    let shown = async |properties: Value| {
        fixture
            .group(&account, "News", json!({ "auto_channel_sync": true, "custom_properties": properties }))
            .await;
        fixture.refresh(&account).await;
        let channels = fixture.get(&format!("{CHANNELS}?ordering=name")).await["results"].clone();
        let ids = channels.as_array().unwrap().iter().map(|it| it["effective_epg_data_id"].clone());
        ids.collect::<Vec<Value>>()
    };
    assert_eq!(shown(json!({})).await, [json!(11), json!(null)], "the guide id decides");
    assert_eq!(shown(json!({ "custom_epg_id": 2 })).await, [json!(21), json!(22)]);
    assert_eq!(
        shown(json!({ "custom_epg_id": 3 })).await,
        [json!(31), json!(31)],
        "a generated guide is that of all"
    );
    assert_eq!(shown(json!({ "force_dummy_epg": true })).await, [json!(null), json!(null)]);
    assert_eq!(shown(json!({})).await, [json!(11), json!(null)]);

    let group = fixture.get(&account).await["channel_groups"][0]["channel_group"].clone();
    let unknown = json!({ "channel_group": group, "custom_properties": { "custom_epg_id": 999 } });
    let settings = json!({ "group_settings": [unknown] });
    let refused = fixture.admin.patch(&format!("{account}group-settings/"), settings).await;
    let message = refused.body["group_settings"][0].as_str().unwrap_or_default();
    assert!(refused.status == 400 && message.contains("guide source 999 does not exist"), "{}", refused.body);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn new_groups_of_films_and_series_are_imported_as_the_account_says() {
    let fixture = GroupFixture::new().await;
    let of = |group: &str, content: &str| format!("group-title=\"{group}\" tvg-type=\"{content}\"");
    fixture.serve_with(
        "anna",
        &[
            (1, &of("News", "live"), "One"),
            (2, &of("Cinema", "movie"), "Film"),
            // The first entry of a group decides.
            (3, &of("Cinema", "live"), "Trailer"),
            (4, &of("Shows", "series"), "Show S01E01"),
        ],
    );
    let account = fixture.account("anna", json!({ "auto_enable_new_groups_vod": false })).await;
    assert_eq!(fixture.stream_names().await, ["One", "Show S01E01"]);
    let groups = fixture.get(&account).await["channel_groups"].clone();
    let states: Vec<_> = groups
        .as_array()
        .unwrap()
        .iter()
        .map(|it| (it["channel_group_name"].as_str().unwrap(), it["enabled"] == true))
        .collect();
    assert_eq!(states, [("Cinema", false), ("News", true), ("Shows", true)]);

    fixture.change(&account, json!({ "auto_enable_new_groups_series": false })).await;
    fixture.serve_with(
        "anna",
        &[
            (1, &of("News", "live"), "One"),
            (4, &of("Shows", "series"), "Show S01E01"),
            (5, &of("Other shows", "series"), "Other S01E01"),
        ],
    );
    assert_eq!(fixture.refresh(&account).await.0, "success");
    assert_eq!(fixture.stream_names().await, ["One", "Show S01E01"]);
}
