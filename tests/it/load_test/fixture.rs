//! Providers with accounts, a gateway with a data folder, users, and a lineup created through the API.

use std::sync::Arc;
use std::time::Duration;

use domain::settings::AtLimit;
use domain::stream::Stream;
use domain::user::UserLevel;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::byte_audit::ByteAudit;
use crate::support::api::{Api, ApiReply};
use crate::support::client::Request;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::random::Random;
use crate::support::signal::{Clip, Picture};
use crate::support::until_async;
use crate::support::upstream::{Behavior, Cut, MockResponse, Provider};
use crate::support::users::{TestUser, create_user};

/// A login at the provider: its limit, and how long the provider counts a closed connection.
pub struct Login {
    pub name: &'static str,
    pub max_streams: usize,
    /// The limit is also configured in the account.
    pub is_configured: bool,
    pub counts_for: Duration,
}

/// One login for each kind of limit. `pair2` is the second profile of the account `pair`.
pub const LOGINS: [Login; 8] = [
    Login { name: "solo", max_streams: 1, is_configured: true, counts_for: Duration::ZERO },
    Login { name: "pair", max_streams: 2, is_configured: true, counts_for: Duration::from_millis(50) },
    Login { name: "pair2", max_streams: 1, is_configured: true, counts_for: Duration::from_millis(50) },
    Login { name: "many", max_streams: 4, is_configured: true, counts_for: Duration::ZERO },
    Login { name: "open", max_streams: 0, is_configured: true, counts_for: Duration::ZERO },
    Login { name: "rough", max_streams: 2, is_configured: true, counts_for: Duration::ZERO },
    Login { name: "prog", max_streams: 3, is_configured: true, counts_for: Duration::ZERO },
    Login { name: "secret", max_streams: 2, is_configured: false, counts_for: Duration::ZERO },
];

impl Login {
    /// Returns the limit of the account; 0 is none.
    pub fn configured_max(&self) -> usize {
        if self.is_configured { self.max_streams } else { 0 }
    }
}

/// Accounts with their own playlist, and the release delay in seconds.
const ACCOUNTS: [(&str, f64); 7] = [
    ("solo", 0.0),
    ("pair", 0.3),
    ("many", 0.0),
    ("open", 0.0),
    ("rough", 0.0),
    ("prog", 0.0),
    ("secret", 0.0),
];

/// Number of streams of each account.
pub const STREAMS: u64 = 6;

/// Shell scripts that read a stream. Their first argument is a marker by which leftover processes are found.
const PROGRAMS: [&str; 4] = [
    // Reads its input and nothing else.
    "exec curl -sN -A \"$1\" \"$2\"",
    // Has a child process and ignores SIGTERM.
    "trap \"\" TERM; curl -sN -A \"$1\" \"$2\" & wait",
    // Writes to stderr continuously.
    "(while sleep 0.05; do echo noise; done) >&2 & curl -sN -A \"$1\" \"$2\"",
    // Exits after a while and leaves a child that holds its output open.
    "sh -c \"sleep 1000; :\" \"$1\" & curl -sN -A \"$1\" -m 3 \"$2\"",
];

/// A channel that viewers can choose.
#[derive(Debug, Clone)]
pub struct TestChannel {
    pub id: u64,
    pub uuid: Uuid,
    pub name: String,
    pub streams: Vec<u64>,
    /// The provider's stream has gaps, which are passed on.
    pub is_rough: bool,
}

pub struct LoadTestFixture {
    /// Streams that the gateway reads itself.
    pub live: Provider,
    /// Streams that programs read. The gateway does not control when their sockets close.
    pub programs: Provider,
    /// Playlists.
    pub lists: Provider,
    pub gateway: TestGateway,
    pub folder: TempDir,
    pub root: TestUser,
    pub admin: Api,
    pub users: Vec<TestUser>,
    /// Channels that exist during the whole test.
    pub lineup: Vec<TestChannel>,
    /// Channels that are created and deleted during the test.
    pub extras: Mutex<Vec<TestChannel>>,
    /// Account ids by login.
    pub accounts: Vec<(&'static str, u64)>,
    pub audit: Arc<ByteAudit>,
    /// Marker in the command lines of all programs.
    pub marker: String,
    /// The clip that ffmpeg reads, in runs with ffmpeg.
    pub clip: Option<Arc<Clip>>,
}

/// Returns the path of a stream.
pub fn path(login: &str, stream: u64) -> String {
    format!("/live/{login}/{stream}.ts")
}

/// Returns a programme; no two streams have the same PIDs, bit rate, GOP length or clock.
fn picture(login: &str, stream: u64, random: &mut Random) -> MockResponse {
    let at = LOGINS.iter().position(|it| it.name == login).expect("a known login") as u64;
    let number = (at * STREAMS + stream) as u16;
    let picture = Picture::new(&format!("{login}-{stream}"))
        .bits_per_second(200_000 + random.below(1_000_000))
        .frames_per_gop(1 + random.below(12))
        .starts_at(random.below(1 << 33));
    let picture = match stream % 3 {
        0 => picture,
        1 => picture.pids(0x20 + number * 16, 0x21 + number * 16, 0x22 + number * 16),
        // The same PIDs for other elementary streams.
        _ => picture.pids(0x101, 0x1000, 0x100),
    };
    let answer = MockResponse::play(picture).with_burst(Duration::from_millis(random.below(2_000)));
    if random.once_in(2) { answer.chunked() } else { answer }
}

fn list_path(login: &str) -> String {
    format!("/list/{login}.m3u")
}

impl LoadTestFixture {
    /// Creates providers, gateway and lineup. With a clip, some streams go through a real ffmpeg.
    pub async fn build(random: &mut Random, clip: Option<Arc<Clip>>) -> LoadTestFixture {
        let folder = tempfile::tempdir().unwrap();
        let setup = Setup::new().folder(folder.path()).engine(|it| {
            it.stall_timeout = Duration::from_millis(700);
            it.first_packet_timeout = Duration::from_millis(900);
            it.channel_shutdown_delay = Duration::from_millis(100);
            it.start_timeout = Duration::from_secs(8);
            it.give_up_after = Duration::from_secs(6);
            it.at_limit = AtLimit::ReplaceOwn;
        });
        let gateway = setup.config(|it| it.auth.failure_delay_max = Duration::from_millis(50)).start().await;
        let root =
            create_user(&gateway, "root", |it| (it.level, it.is_superuser) = (UserLevel::Admin, true)).await;
        let mut users = Vec::new();
        // The last two are demoted, deactivated and reactivated while they watch.
        for (name, stream_limit) in [("anna", 1), ("bert", 2), ("cora", 0), ("dora", 0), ("emil", 3)] {
            users.push(create_user(&gateway, name, |it| it.stream_limit = stream_limit).await);
        }
        let mut fixture = LoadTestFixture {
            live: Provider::start(),
            programs: Provider::start(),
            lists: Provider::start(),
            admin: Api::stranger_at(gateway.api).key(&root.api_key),
            audit: ByteAudit::follow(&gateway.gateway.events()),
            marker: format!("headwater-load-test-{}", Uuid::new_v4()),
            gateway,
            folder,
            root,
            users,
            lineup: Vec::new(),
            extras: Mutex::default(),
            accounts: Vec::new(),
            clip,
        };
        fixture.restore_sources(random);
        for (name, delay) in ACCOUNTS {
            fixture.create_account(name, delay).await;
        }
        fixture.assign_programs().await;
        fixture.create_lineup().await;
        fixture
    }

    /// Returns the provider of a login.
    pub fn provider(&self, login: &str) -> &Provider {
        if login == "prog" { &self.programs } else { &self.live }
    }

    /// Makes every stream and every playlist healthy.
    pub fn restore_sources(&self, random: &mut Random) {
        for login in &LOGINS {
            let provider = self.provider(login.name);
            provider.plug_in();
            provider.limit(login.name, login.max_streams, 403, login.counts_for);
            for stream in 0..STREAMS {
                let path = path(login.name, stream);
                let answer = self.programme(login.name, stream, random);
                provider.path(&path).cut(Cut::Reset).behaves(Behavior::Healthy).answers(answer);
            }
        }
        for (login, _) in ACCOUNTS {
            let text = self.list(login, 0..STREAMS, &[]);
            self.offers(login, MockResponse::text("audio/x-mpegurl", text));
        }
    }

    /// Returns the response of a healthy stream.
    pub fn programme(&self, login: &str, stream: u64, random: &mut Random) -> MockResponse {
        match &self.clip {
            Some(clip) if login == "prog" && stream >= PROGRAMS.len() as u64 => {
                MockResponse::play(Arc::clone(clip))
            }
            _ => picture(login, stream, random),
        }
    }

    /// Returns the playlist of an account: some of its streams, and others that nobody watches.
    pub fn list(&self, login: &str, streams: impl IntoIterator<Item = u64>, others: &[u64]) -> String {
        let provider = self.provider(login);
        let mut text = String::from("#EXTM3U\n");
        for stream in streams {
            let url = provider.url(&path(login, stream));
            text += &format!("#EXTINF:-1 group-title=\"Used\",{login} {stream}\n{url}\n");
        }
        for other in others {
            let url = provider.url(&path(login, 1_000 + other));
            text += &format!("#EXTINF:-1 group-title=\"Group {}\",{login} {other}\n{url}\n", other % 9);
        }
        text
    }

    /// Sets the response to requests for the playlist.
    pub fn offers(&self, login: &str, answer: MockResponse) {
        self.lists.path(&list_path(login)).answers(answer);
    }

    async fn create_account(&mut self, login: &'static str, release_delay: f64) {
        let of_login = |name: &str| LOGINS.iter().find(|it| it.name == name).expect("a known login");
        let body = json!({
            "name": login, "server_url": self.lists.url(&list_path(login)), "refresh_interval": 0,
            "max_streams": of_login(login).configured_max(), "release_delay": release_delay, "stale_stream_days": 0,
        });
        let id = self.create("/api/m3u/accounts/", body).await["id"].as_u64().unwrap();
        if login == "pair" {
            let second = json!({
                "name": "second", "max_streams": of_login("pair2").max_streams,
                "search_pattern": "/live/pair/", "replace_pattern": "/live/pair2/",
            });
            self.create(&format!("/api/m3u/accounts/{id}/profiles/"), second).await;
        }
        self.accounts.push((login, id));
        self.is_imported(id).await;
    }

    /// Waits until the playlist of an account is imported.
    pub async fn is_imported(&self, account: u64) {
        let path = format!("/api/m3u/accounts/{account}/");
        until_async("the import of a playlist", async || {
            self.admin.get(&path).await.body["status"] == "success"
        })
        .await;
    }

    async fn create(&self, path: &str, body: Value) -> Value {
        let reply = self.admin.post(path, body).await;
        assert_eq!(reply.status, 201, "{path}: {reply:?}");
        reply.body
    }

    pub fn account(&self, login: &str) -> u64 {
        self.accounts.iter().find(|it| it.0 == login).expect("a known login").1
    }

    /// Returns the streams of an account that channels use, ordered by number.
    fn streams(&self, login: &str) -> Vec<u64> {
        let mut found = Vec::new();
        let streams = self.gateway.models().store.collection::<Stream>();
        streams
            .for_each_of(self.account(login), |it: Stream| found.push((it.provider.name, it.id.0)))
            .unwrap();
        found.sort();
        found.into_iter().map(|it| u64::from(it.1)).collect()
    }

    async fn assign_programs(&self) {
        for (number, stream) in self.streams("prog").into_iter().enumerate() {
            let profile = match PROGRAMS.get(number) {
                Some(script) => {
                    let parameters = format!("-c '{script}' sh {} {{streamUrl}}", self.marker);
                    let body = json!({
                        "name": format!("program {number}"), "command": "/bin/sh", "parameters": parameters,
                    });
                    self.create("/api/core/streamprofiles/", body).await["id"].clone()
                }
                None if self.clip.is_some() => self.built_in_copy().await,
                None => continue,
            };
            let path = format!("/api/channels/streams/{stream}/");
            let reply = self.admin.patch(&path, json!({ "stream_profile_id": profile })).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
    }

    async fn built_in_copy(&self) -> Value {
        let all = self.admin.get("/api/core/streamprofiles/").await.body;
        let all = all.as_array().or_else(|| all["results"].as_array()).cloned().unwrap_or_default();
        let is_copy = |it: &&Value| it["command"] == "ffmpeg" && it.to_string().contains("copy");
        all.iter().find(is_copy).expect("a built-in profile copies with ffmpeg")["id"].clone()
    }

    async fn create_lineup(&mut self) {
        let [solo, pair, many, open, rough, prog, secret] =
            ["solo", "pair", "many", "open", "rough", "prog", "secret"].map(|it| self.streams(it));
        let mut plans = vec![
            ("one login alone", vec![solo[0]]),
            ("one login twice", vec![solo[1], solo[2]]),
            ("two profiles", vec![pair[0], pair[1]]),
            ("all kinds", vec![solo[3], pair[2], many[0], open[0]]),
            ("several", vec![many[1], many[2], open[1]]),
            ("no limit", vec![open[2], open[3]]),
            ("gaps of its own", vec![rough[0], rough[1], rough[2]]),
            ("programs", vec![prog[0], prog[1], open[4]]),
            ("programs alone", vec![prog[2], prog[3]]),
            ("an undeclared limit", vec![secret[0], secret[1]]),
            ("the same undeclared limit", vec![secret[2]]),
        ];
        if self.clip.is_some() {
            plans.push(("ffmpeg", vec![prog[4], prog[5], open[5]]));
        }
        // A stream that no channel uses is removed when the playlist no longer lists it.
        let all: Vec<_> = plans.iter().flat_map(|it| it.1.clone()).collect();
        let anchor = self.channel("anchor", &all).await;
        let hidden = json!({ "enabled": false });
        self.call("PATCH", &format!("/api/channels/channels/{}/", anchor.id), hidden).await;
        for (name, streams) in plans {
            let channel = self.channel(name, &streams).await;
            self.lineup.push(channel);
        }
    }

    /// Creates a channel.
    pub async fn channel(&self, name: &str, streams: &[u64]) -> TestChannel {
        let made = self.create("/api/channels/channels/", json!({ "name": name, "streams": streams })).await;
        TestChannel {
            id: made["id"].as_u64().unwrap(),
            uuid: made["uuid"].as_str().unwrap().parse().unwrap(),
            name: name.to_owned(),
            streams: streams.to_vec(),
            is_rough: name == "gaps of its own",
        }
    }

    /// Returns a random channel.
    pub fn any(&self, random: &mut Random) -> TestChannel {
        let extras = self.extras.lock();
        let n = self.lineup.len() + extras.len();
        let at = random.below(n as u64) as usize;
        self.lineup.get(at).unwrap_or_else(|| &extras[at - self.lineup.len()]).clone()
    }

    /// Calls the API. A request never fails with a server error, except that a request to a part that just failed may
    /// time out.
    pub async fn call(&self, method: &'static str, path: &str, body: Value) -> ApiReply {
        let reply = match &body {
            Value::Null => self.admin.ask(Request::get(path).method(method)).await,
            body => self.admin.send(method, path, body.clone()).await,
        };
        let is_carried_out = path.starts_with("/proxy/ts/") || path.starts_with("/api/m3u/");
        let may_be = |status: u16| status < 500 || is_carried_out && matches!(status, 502..=504);
        assert!(may_be(reply.status), "{method} {path} {body}: {} {}", reply.status, reply.answer.text());
        self.audit.called(reply.status);
        reply
    }

    /// Restores limits, orders and users, and deletes records that the test created.
    pub async fn undo_changes(&self) {
        let extras = std::mem::take(&mut *self.extras.lock());
        for channel in extras {
            self.call("DELETE", &format!("/api/channels/channels/{}/", channel.id), Value::Null).await;
        }
        for channel in &self.lineup {
            let body = json!({ "streams": channel.streams, "enabled": true });
            let reply = self.call("PATCH", &format!("/api/channels/channels/{}/", channel.id), body).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
        for (login, id) in &self.accounts {
            let max_streams = LOGINS.iter().find(|it| it.name == *login).map(Login::configured_max);
            let body = json!({ "max_streams": max_streams, "is_active": true });
            let reply = self.call("PATCH", &format!("/api/m3u/accounts/{id}/"), body).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
        for person in &self.users {
            let body = json!({ "is_active": true, "user_level": 0 });
            let reply = self.call("PATCH", &format!("/api/accounts/users/{}/", person.id), body).await;
            assert_eq!(reply.status, 200, "{reply:?}");
        }
        let reply = self.call("PUT", "/api/core/settings/1/", json!({ "value": {} })).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }
}
