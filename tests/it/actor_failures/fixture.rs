//! A gateway under load: channels whose accounts are at their limits, players that check what they receive, an admin on
//! the WebSocket, an admin who polls the REST API, and a playlist that is imported repeatedly.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use actors::Target;
use domain::event::{CallerRef, Event, EventBody};
use domain::ids::AccountId;
use domain::stream::Stream;
use domain::user::UserLevel;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::observers::{TestViewer, WebSocketLog};
use crate::support::api::{Api, ApiReply};
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::signal::Picture;
use crate::support::upstream::{MockResponse, Provider};
use crate::support::users::{TestUser, change_user, create_user, delete_user};
use crate::support::{eventually, until_async};

/// Channels that are watched during the whole test. Their account has one slot for each.
pub const WATCHED: [(&str, &str); 2] = [("News", "news"), ("Sport", "sport")];
/// Another channel of the same account, for which no slot is left.
pub const REFUSED: &str = "Films";
/// A channel of an account without a limit.
pub const FREE: (&str, &str) = ("Late", "late");

/// Path of the provider's playlist.
const LIST: &str = "/lists/all.m3u";
/// Number of entries in the imported playlist.
const ENTRIES: usize = 300;

pub struct FailureFixture {
    pub provider: Provider,
    /// A server for the imported playlist; it serves no streams.
    pub lists: Provider,
    pub gateway: TestGateway,
    pub admin: Api,
    pub listener: WebSocketLog,
    /// API path of the account whose playlist is imported.
    pub account: String,
    numbers: AtomicU64,
}

impl FailureFixture {
    pub async fn new() -> FailureFixture {
        let (provider, lists) = (Provider::start(), Provider::start());
        let plays = |path: &str, label: &str| {
            let picture = Picture::new(label).bits_per_second(600_000).frames_per_gop(5);
            provider.path(path).plays(picture.starts_at(path.len() as u64 * 1_000_000));
        };
        let path = |account: &str, label: &str| format!("/live/{account}/{label}.ts");
        let mut anna = Vec::new();
        let mut bert = Vec::new();
        for (name, label) in WATCHED.into_iter().chain([(REFUSED, "films")]) {
            plays(&path("anna", label), label);
            anna.push((label, name, path("anna", label)));
        }
        for (name, label) in WATCHED {
            plays(&path("bert", label), &format!("{label} 2"));
            bert.push((label, name, path("bert", label)));
        }
        plays(&path("cleo", FREE.1), FREE.1);
        let cleo = [(FREE.1, FREE.0, path("cleo", FREE.1))];
        let list = |entries: &[(&str, &str, String)]| {
            let entries: Vec<_> =
                entries.iter().map(|(id, name, path)| (*id, *name, path.as_str())).collect();
            provider.playlist(&entries)
        };
        provider.limit("anna", WATCHED.len(), 403, Duration::ZERO);
        provider.limit("bert", 1, 403, Duration::ZERO);
        let setup = Setup::new()
            .limited_list(&list(&anna), WATCHED.len() as u32)
            .limited_list(&list(&bert), 1)
            .list(&list(&cleo));
        let gateway = setup.start().await;
        let admin = Api::first_admin(&gateway).await;
        let root = create_user(&gateway, "listening", |it| it.level = UserLevel::Admin).await;
        let listener = WebSocketLog::open(gateway.address, format!("/ws/?token={}", root.token(&gateway)));
        let (account, numbers) = (String::new(), AtomicU64::new(1));
        let fixture = FailureFixture { provider, lists, gateway, admin, listener, account, numbers };
        fixture.serve_streams(ENTRIES);
        // Creating the account starts its first refresh.
        let body = json!({ "name": "Imported", "server_url": fixture.lists.url(LIST), "max_streams": 1 });
        let made = fixture.admin.post("/api/m3u/accounts/", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        FailureFixture { account: format!("/api/m3u/accounts/{}/", made.body["id"]), ..fixture }
    }

    pub fn target(&self, channel: &str) -> Target {
        Target::Channel(self.gateway.channel(channel).uuid)
    }

    /// Sets the number of streams in the playlist.
    pub fn serve_streams(&self, n: usize) {
        let mut list = "#EXTM3U\n".to_owned();
        for number in 0..n {
            list += &format!("#EXTINF:-1,Stream {number}\nhttp://tv.example/{number}.ts\n");
        }
        self.serve_list(MockResponse::text("audio/x-mpegurl", list));
    }

    pub fn serve_list(&self, answer: MockResponse) {
        self.lists.path(LIST).answers(answer);
    }

    /// Adds this many players to each watched channel and waits until all of them play.
    pub async fn add_viewers(&self, per_channel: usize) -> Vec<TestViewer> {
        let mut viewers = Vec::new();
        for (name, label) in WATCHED {
            for _ in 0..per_channel {
                viewers.push(self.watch(name, label).await);
            }
        }
        viewers
    }

    /// Does the same while an actor may be down, so requests are retried.
    pub async fn add_viewers_with_retry(&self, per_channel: usize) -> Vec<TestViewer> {
        let mut viewers = Vec::new();
        for (name, label) in WATCHED {
            for _ in 0..per_channel {
                viewers.push(self.watch_with_retry(name, label).await);
            }
        }
        viewers
    }

    /// Starts a player and waits for its picture.
    pub async fn watch(&self, channel: &str, label: &'static str) -> TestViewer {
        let request = self.gateway.get(channel).without_recording();
        let player = Player::ask(self.gateway.address, request).await;
        player.sees(label).await;
        TestViewer { player, label }
    }

    /// Does the same, and retries after a refusal with `Retry-After`.
    pub async fn watch_with_retry(&self, channel: &str, label: &'static str) -> TestViewer {
        loop {
            let request = self.gateway.get(channel).without_recording();
            let player = Player::ask(self.gateway.address, request).await;
            match player.status().await {
                200 => {
                    player.sees(label).await;
                    return TestViewer { player, label };
                }
                503 | 0 => sleep(Duration::from_millis(50)).await,
                status => panic!("the request for {channel} returned {status}"),
            }
        }
    }

    /// Requests a channel without waiting for the response.
    pub async fn request_channel(&self, channel: &str, label: &'static str) -> TestViewer {
        let request = self.gateway.get(channel).without_recording();
        TestViewer { player: Player::ask(self.gateway.address, request).await, label }
    }

    /// Starts a player that is logged in, and waits for its picture.
    pub async fn watch_as(&self, user: &TestUser, channel: &str, label: &'static str) -> TestViewer {
        let request = user.asks(&self.gateway, channel, "tv").without_recording();
        let player = Player::ask(self.gateway.address, request).await;
        player.sees(label).await;
        TestViewer { player, label }
    }

    /// Returns the ids of the clients that watch a channel.
    pub async fn clients(&self, channel: &str) -> Vec<u64> {
        let status = self.gateway.gateway.switchboard().status(self.target(channel)).await.ok().flatten();
        status.map(|it| it.clients.iter().map(|it| it.id).collect()).unwrap_or_default()
    }

    /// Checks every function that an actor or a task provides: joins, channel changes, status, statistics, events,
    /// settings, and revoked permissions.
    pub async fn check_everything_works(&self, after: &str) {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        // Slots and switchboard: one more viewer, and one more live channel.
        let joined = self.watch_with_retry(WATCHED[0].0, WATCHED[0].1).await;
        let zapped = self.watch_with_retry(FREE.0, FREE.1).await;
        // Statistics and status.
        let shows = |it: &Value| it["stats"]["count"] == WATCHED.len() + 1;
        self.listener.next("channel_stats", shows).await;
        let is_shown = async || self.admin.get("/proxy/ts/status").await.body["count"] == WATCHED.len() + 1;
        until_async("the status of all live channels", is_shown).await;
        // Events: a new event reaches the WebSocket.
        let reason = format!("{after} {number}");
        let told = || {
            let attempt =
                CallerRef { user: None, ip: "10.0.0.1".parse().unwrap(), user_agent: String::new() };
            let body = EventBody::LoginFailed { attempt, reason: reason.clone() };
            self.gateway.gateway.events().emit(Event { at: 0, body });
            self.listener.received("login_failed", |it| it["reason"] == reason.as_str())
        };
        eventually("an event", told).await;
        // The store follower: settings, users and plans.
        let stall = 1.0 + number as f64 / 100.0;
        self.set_stall_timeout(stall).await;
        eventually("the setting to take effect", || self.has_stall_timeout(stall)).await;
        let user = create_user(&self.gateway, &format!("user-{number}"), |_| {}).await;
        let theirs = Player::ask(self.gateway.address, user.asks(&self.gateway, FREE.0, "tv")).await;
        theirs.sees(FREE.1).await;
        change_user(&self.gateway, &user, |it| it.is_active = false).await;
        theirs.ended().await;
        delete_user(&self.gateway, &user).await;
        drop(joined);
        zapped.player.leave().await;
        eventually("the extra channel to stop", || self.provider.open() == WATCHED.len()).await;
        self.leases_match_sockets().await;
    }

    /// Checks that a full account refuses another channel.
    pub async fn check_full_account_refuses(&self) {
        assert_eq!(self.gateway.watch(REFUSED).await.status().await, 503);
    }

    /// Waits until the number of leases equals the number of sockets at the provider.
    pub async fn leases_match_sockets(&self) {
        let balance = || self.gateway.gateway.system().leases().len() == self.provider.open();
        eventually("equal numbers of leases and sockets", balance).await;
    }

    /// Checks that no provider ever saw more connections than it allows.
    #[track_caller]
    pub fn check_limits(&self) {
        let peaks = ["anna", "bert"].map(|it| self.provider.peak_of(it));
        assert!(peaks[0] <= WATCHED.len() && peaks[1] <= 1, "{peaks:?} sockets at once");
        assert_eq!(self.provider.refusals(), 0);
    }

    pub async fn set_stall_timeout(&self, seconds: f64) {
        let change = json!({ "value": { "stall_timeout": seconds } });
        let reply = self.admin.patch("/api/core/settings/1/", change).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    pub fn has_stall_timeout(&self, seconds: f64) -> bool {
        self.gateway.gateway.settings().stall_timeout == Duration::from_secs_f64(seconds)
    }

    pub async fn refresh(&self) -> ApiReply {
        self.admin.post(&format!("/api/m3u/refresh/{}/", self.account_id()), json!({})).await
    }

    pub fn account_id(&self) -> &str {
        self.account.trim_end_matches('/').rsplit('/').next().unwrap()
    }

    pub fn n_streams(&self, account: AccountId) -> usize {
        self.gateway.models().store.collection::<Stream>().len_of(u64::from(account.0))
    }

    /// Returns the number of streams in the last good playlist.
    pub fn listed_streams(&self, account: AccountId) -> usize {
        self.gateway.models().refreshes.load().get(account.0).map_or(0, |it| it.n_good as usize)
    }

    pub async fn account_status(&self) -> Value {
        self.admin.get(&self.account).await.body["status"].clone()
    }

    /// Starts the background load, which runs until the returned value is dropped.
    pub fn start_load(self: &Arc<Self>) -> BackgroundLoad {
        let [imports, asks, counts] = [0; 3].map(|_| Arc::clone(self));
        BackgroundLoad([
            tokio::spawn(async move { imports.import_repeatedly().await }),
            tokio::spawn(async move { asks.poll_status_repeatedly().await }),
            tokio::spawn(async move { counts.check_limits_repeatedly().await }),
        ])
    }

    /// Refreshes in a loop, each time with another playlist.
    async fn import_repeatedly(&self) {
        for round in 0.. {
            self.serve_streams(ENTRIES + 10 * (round % 7));
            let reply = self.refresh().await;
            // A refresh is refused while one runs, or while the importer is down.
            assert!(matches!(reply.status, 200..=299 | 409 | 503), "a refresh returned {reply:?}");
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Polls the status; only these codes are allowed, whichever actor is down.
    async fn poll_status_repeatedly(&self) {
        loop {
            let status = self.admin.get("/proxy/ts/status").await.status;
            assert!(matches!(status, 200 | 503 | 504), "the status request returned {status}");
            sleep(Duration::from_millis(30)).await;
        }
    }

    /// Checks in a loop that every socket has a lease and that no account exceeds its limit.
    async fn check_limits_repeatedly(&self) {
        loop {
            let ids = || self.gateway.gateway.system().leases().into_iter().map(|it| it.id);
            let mut leases: Vec<_> = ids().collect();
            let open = self.provider.open();
            leases.extend(ids());
            leases.sort_unstable();
            leases.dedup();
            assert!(open <= leases.len(), "{open} sockets with {} leases", leases.len());
            self.check_limits();
            sleep(Duration::from_millis(3)).await;
        }
    }
}

/// The tasks of the background load.
pub struct BackgroundLoad([JoinHandle<()>; 3]);

impl BackgroundLoad {
    /// Panics if one of the tasks has failed.
    pub async fn check(&mut self) {
        for task in &mut self.0 {
            if task.is_finished() {
                task.await.unwrap();
            }
        }
    }
}

impl Drop for BackgroundLoad {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
