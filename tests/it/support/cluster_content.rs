//! What the first node of a cluster has: channels of a provider, and users.

use serde_json::{Value, json};

use super::api::Api;
use super::binary::Binary;
use super::client::Request;
use super::cluster::Machine;
use super::signal::Picture;
use super::upstream::Provider;

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
    let folder = machine.folder.path().display().to_string();
    let mut program = Binary::start(&["serve", "--data-dir", &folder]);
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

async fn create(admin: &Api, path: &str, body: Value) -> Value {
    let made = admin.post(path, body).await;
    assert_eq!(made.status, 201, "{made:?}");
    made.body
}
