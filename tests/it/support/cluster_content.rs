//! What the first node of a cluster has: channels of a provider, and users.

use cluster::testing::NatsServers;
use serde_json::{Value, json};

use super::api::Api;
use super::binary::Binary;
use super::client::{Player, Request};
use super::cluster::{Machine, Node, two_nodes};
use super::signal::Picture;
use super::until_async;
use super::upstream::{MockResponse, Provider};

/// A channel that shows its name.
#[derive(Clone)]
pub struct ClusterChannel {
    pub id: u64,
    pub uuid: String,
}

impl ClusterChannel {
    /// Returns the path for viewers without a login.
    pub fn path(&self) -> String {
        format!("/proxy/ts/stream/{}", self.uuid)
    }

    /// Returns the request of a device of a user.
    pub fn asked_by(&self, user: &str, device: &str) -> Request {
        Request::get(format!("/live/{user}/tv/{}.ts", self.id)).header("User-Agent", device)
    }
}

/// Makes a channel of one stream for each name, and users with these limits, in the store of a machine that is not in a cluster
/// yet.
pub async fn fill<const N: usize>(
    machine: &Machine,
    provider: &Provider,
    names: [&str; N],
    users: &[(&str, u32)],
) -> [ClusterChannel; N] {
    let mut program = machine.run_alone();
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    let mut channels = Vec::new();
    for name in names {
        let path = format!("/live/anna/{name}.ts");
        provider.path(&path).plays(Picture::new(name).bits_per_second(300_000).frames_per_gop(3));
        let stream = json!({ "name": name, "url": provider.url(&path) });
        let stream = create(&admin, "/api/channels/streams/", stream).await;
        let channel = json!({ "stream_id": stream["id"] });
        let channel = create(&admin, "/api/channels/channels/from-stream/", channel).await;
        let uuid = channel["uuid"].as_str().expect("a uuid").to_owned();
        channels.push(ClusterChannel { id: channel["id"].as_u64().expect("an id"), uuid });
    }
    for (name, limit) in users {
        let user = json!({
            "username": name, "password": "a password of a user", "user_level": 0, "stream_limit": limit,
            "custom_properties": { "xc_password": "tv" },
        });
        create(&admin, "/api/accounts/users/", user).await;
    }
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
    channels.try_into().ok().expect("one for each name")
}

/// An account of a provider.
pub struct FilledAccount<'a> {
    pub name: &'a str,
    /// The user in the addresses of its streams, which are `/live/USER/CHANNEL.ts`.
    pub user: &'a str,
    pub channels: &'a [&'a str],
    pub limit: usize,
}

/// Makes an account with a limit, and a channel of one stream of it for each name, in the store of a machine that is not in a
/// cluster yet. Returns the paths of the channels, for viewers without a login.
pub async fn fill_account(
    machine: &Machine,
    provider: &Provider,
    names: &[&str],
    limit: usize,
) -> Vec<String> {
    let account = FilledAccount { name: "Provider", user: "anna", channels: names, limit };
    fill_accounts(machine, provider, &[account]).await
}

/// Makes several such accounts. Returns the paths of all channels in their order.
pub async fn fill_accounts(
    machine: &Machine,
    provider: &Provider,
    accounts: &[FilledAccount<'_>],
) -> Vec<String> {
    let mut program = machine.run_alone();
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    for FilledAccount { name, user, channels, limit } in accounts {
        let list_path = format!("/lists/{user}.m3u");
        let mut list = String::from("#EXTM3U\n");
        for channel in *channels {
            let path = format!("/live/{user}/{channel}.ts");
            provider.path(&path).plays(Picture::new(channel).bits_per_second(300_000).frames_per_gop(3));
            list.push_str(&format!("#EXTINF:-1,{channel}\n{}\n", provider.url(&path)));
        }
        provider.path(&list_path).answers(MockResponse::text("audio/x-mpegurl", list));
        let account = json!({ "name": name, "server_url": provider.url(&list_path), "max_streams": limit });
        let made = create(&admin, "/api/m3u/accounts/", account).await;
        let account = format!("/api/m3u/accounts/{}/", made["id"]);
        until_async("the import", async || admin.get(&account).await.body["status"] == "success").await;
    }
    let streams = admin.get("/api/channels/streams/?ordering=id").await.body["results"].clone();
    let mut paths = Vec::new();
    for stream in streams.as_array().expect("a list") {
        let channel = json!({ "stream_id": stream["id"] });
        let channel = create(&admin, "/api/channels/channels/from-stream/", channel).await;
        paths.push(format!("/proxy/ts/stream/{}", channel["uuid"].as_str().expect("a uuid")));
    }
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
    paths
}

async fn create(admin: &Api, path: &str, body: Value) -> Value {
    let made = admin.post(path, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.body
}

/// The channel of [`TwoNodes::start`] at the provider.
pub const NEWS: &str = "/live/anna/news.ts";

/// Two nodes, and a viewer of a channel at the first one, which is its origin.
pub struct TwoNodes {
    pub provider: Provider,
    pub uuid: String,
    /// Path of the channel for players.
    pub path: String,
    pub nodes: [Node; 2],
    pub here: Player,
}

impl TwoNodes {
    /// Starts a machine as `attic`, and `cellar`.
    pub async fn start(attic: Machine, nats: &NatsServers) -> TwoNodes {
        let provider = Provider::start();
        provider.path(NEWS).plays(Picture::new("news"));
        let uuid = fill_news(&attic, &provider).await;
        let path = format!("/proxy/ts/stream/{uuid}");
        let nodes = two_nodes(attic, Machine::new("cellar", nats)).await;
        let here = Player::watch(nodes[0].address, &path).await;
        here.sees("news").await;
        nodes[0].until_origin_is(&uuid, "attic").await;
        TwoNodes { provider, uuid, path, nodes, here }
    }
}

/// Makes a channel of a stream without a limit. Returns its uuid.
async fn fill_news(machine: &Machine, provider: &Provider) -> String {
    let folder = machine.folder.path().display().to_string();
    let mut program = Binary::start(&["serve", "--data-dir", &folder]);
    let admin = Api::stranger_at(program.address().await).become_first_admin().await;
    let stream = json!({ "name": "News", "url": provider.url(NEWS) });
    let stream = admin.post("/api/channels/streams/", stream).await;
    assert_eq!(stream.status, 201, "{stream:?}");
    let channel = json!({ "stream_id": stream.body["id"] });
    let channel = admin.post("/api/channels/channels/from-stream/", channel).await;
    assert_eq!(channel.status, 201, "{channel:?}");
    program.signal("TERM");
    assert!(program.ended().await.success(), "{}", program.output());
    channel.text("uuid").to_owned()
}
