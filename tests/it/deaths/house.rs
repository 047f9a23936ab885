//! A house under load: channels whose accounts are at their limits, players that check what they get, an admin who
//! listens and one who asks, and a list that is imported again and again.

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

use super::people::{Ears, Viewer};
use crate::support::api::{Api, Said};
use crate::support::client::Player;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::people::{Person, changed, deleted, person};
use crate::support::signal::Picture;
use crate::support::upstream::{Answer, Provider};
use crate::support::{eventually, until_async};

/// Those that are watched all the time. Their account has as many slots.
pub const WATCHED: [(&str, &str); 2] = [("News", "news"), ("Sport", "sport")];
/// Another channel of the same account: no slot is left for it.
pub const REFUSED: &str = "Films";
/// A channel of an account without a limit.
pub const FREE: (&str, &str) = ("Late", "late");

/// Where a provider has its list.
const LIST: &str = "/lists/all.m3u";
/// Streams of the list that is imported.
const ENTRIES: usize = 300;

pub struct House {
    pub provider: Provider,
    /// A server that has the list to import, and no streams.
    pub lists: Provider,
    pub gateway: TestGateway,
    pub admin: Api,
    pub listener: Ears,
    /// Path of the account whose list is imported.
    pub account: String,
    numbers: AtomicU64,
}

impl House {
    pub async fn new() -> House {
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
        let root = person(&gateway, "listening", |it| it.level = UserLevel::Admin).await;
        let listener = Ears::open(gateway.address, format!("/ws/?token={}", root.token(&gateway)));
        let (account, numbers) = (String::new(), AtomicU64::new(1));
        let house = House { provider, lists, gateway, admin, listener, account, numbers };
        house.lists_streams(ENTRIES);
        // Its first refresh begins with it.
        let body = json!({ "name": "Imported", "server_url": house.lists.url(LIST), "max_streams": 1 });
        let made = house.admin.post("/api/m3u/accounts/", body).await;
        assert_eq!(made.status, 201, "{made:?}");
        House { account: format!("/api/m3u/accounts/{}/", made.body["id"]), ..house }
    }

    pub fn target(&self, channel: &str) -> Target {
        Target::Channel(self.gateway.channel(channel).uuid)
    }

    /// The list has so many streams from now on.
    pub fn lists_streams(&self, n: usize) {
        let mut list = "#EXTM3U\n".to_owned();
        for number in 0..n {
            list += &format!("#EXTINF:-1,Stream {number}\nhttp://tv.example/{number}.ts\n");
        }
        self.list_is(Answer::text("audio/x-mpegurl", list));
    }

    pub fn list_is(&self, answer: Answer) {
        self.lists.path(LIST).answers(answer);
    }

    /// How many players each watched channel gets; all play when this returns.
    pub async fn fills(&self, per_channel: usize) -> Vec<Viewer> {
        let mut viewers = Vec::new();
        for (name, label) in WATCHED {
            for _ in 0..per_channel {
                viewers.push(self.watches(name, label).await);
            }
        }
        viewers
    }

    /// The same while something may be dead.
    pub async fn fills_again(&self, per_channel: usize) -> Vec<Viewer> {
        let mut viewers = Vec::new();
        for (name, label) in WATCHED {
            for _ in 0..per_channel {
                viewers.push(self.comes_to_watch(name, label).await);
            }
        }
        viewers
    }

    /// Somebody watches, and sees the picture.
    pub async fn watches(&self, channel: &str, label: &'static str) -> Viewer {
        let request = self.gateway.get(channel).without_recording();
        let player = Player::ask(self.gateway.address, request).await;
        player.sees(label).await;
        Viewer { player, label }
    }

    /// The same for somebody who asks again after a refusal that says when.
    pub async fn comes_to_watch(&self, channel: &str, label: &'static str) -> Viewer {
        loop {
            let request = self.gateway.get(channel).without_recording();
            let player = Player::ask(self.gateway.address, request).await;
            match player.status().await {
                200 => {
                    player.sees(label).await;
                    return Viewer { player, label };
                }
                503 | 0 => sleep(Duration::from_millis(50)).await,
                status => panic!("{channel} is answered with {status}"),
            }
        }
    }

    /// Asks for a channel, whatever comes.
    pub async fn asks_for(&self, channel: &str, label: &'static str) -> Viewer {
        let request = self.gateway.get(channel).without_recording();
        Viewer { player: Player::ask(self.gateway.address, request).await, label }
    }

    /// Somebody with a name watches, and sees the picture.
    pub async fn watches_as(&self, user: &Person, channel: &str, label: &'static str) -> Viewer {
        let request = user.asks(&self.gateway, channel, "tv").without_recording();
        let player = Player::ask(self.gateway.address, request).await;
        player.sees(label).await;
        Viewer { player, label }
    }

    /// The numbers of those who watch a channel.
    pub async fn clients(&self, channel: &str) -> Vec<u64> {
        let status = self.gateway.gateway.switchboard().status(self.target(channel)).await.ok().flatten();
        status.map(|it| it.clients.iter().map(|it| it.id).collect()).unwrap_or_default()
    }

    /// Everything works that an actor or a task of the house does: joins, changes of channel, status, statistics,
    /// events, settings that change, users who may no longer watch.
    pub async fn works(&self, after: &str) {
        let number = self.numbers.fetch_add(1, Ordering::SeqCst);
        // Slots and switchboard: one more viewer, and a new channel.
        let joined = self.comes_to_watch(WATCHED[0].0, WATCHED[0].1).await;
        let zapped = self.comes_to_watch(FREE.0, FREE.1).await;
        // Statistics and status.
        let shows = |it: &Value| it["stats"]["count"] == WATCHED.len() + 1;
        self.listener.hears("channel_stats", shows).await;
        let is_shown = async || self.admin.get("/proxy/ts/status").await.body["count"] == WATCHED.len() + 1;
        until_async("the status of all that live", is_shown).await;
        // Events: one that is told now is heard.
        let reason = format!("{after} {number}");
        let told = || {
            let attempt =
                CallerRef { user: None, ip: "10.0.0.1".parse().unwrap(), user_agent: String::new() };
            let body = EventBody::LoginFailed { attempt, reason: reason.clone() };
            self.gateway.gateway.events().happened(Event { at: 0, body });
            self.listener.heard("login_failed", |it| it["reason"] == reason.as_str())
        };
        eventually("an event", told).await;
        // The follower of the store: settings, users, plans.
        let stall = 1.0 + number as f64 / 100.0;
        self.sets_stall_timeout(stall).await;
        eventually("the setting to be in force", || self.has_stall_timeout(stall)).await;
        let user = person(&self.gateway, &format!("user-{number}"), |_| {}).await;
        let theirs = Player::ask(self.gateway.address, user.asks(&self.gateway, FREE.0, "tv")).await;
        theirs.sees(FREE.1).await;
        changed(&self.gateway, &user, |it| it.is_active = false).await;
        theirs.ended().await;
        deleted(&self.gateway, &user).await;
        drop(joined);
        zapped.player.leave().await;
        eventually("the free channel to be gone", || self.provider.open() == WATCHED.len()).await;
        self.balances().await;
    }

    /// Nobody else gets a slot of an account that has none left.
    pub async fn refuses_where_it_is_full(&self) {
        assert_eq!(self.gateway.watch(REFUSED).await.status().await, 503);
    }

    /// Every slot that is out is a socket that a provider sees, and the other way round.
    pub async fn balances(&self) {
        let balance = || self.gateway.gateway.system().leases().len() == self.provider.open();
        eventually("as many leases as sockets", balance).await;
    }

    /// No provider ever saw more than it allows.
    #[track_caller]
    pub fn is_within_limits(&self) {
        let peaks = ["anna", "bert"].map(|it| self.provider.peak_of(it));
        assert!(peaks[0] <= WATCHED.len() && peaks[1] <= 1, "{peaks:?} sockets at once");
        assert_eq!(self.provider.refusals(), 0);
    }

    pub async fn sets_stall_timeout(&self, seconds: f64) {
        let change = json!({ "value": { "stall_timeout": seconds } });
        let said = self.admin.patch("/api/core/settings/1/", change).await;
        assert_eq!(said.status, 200, "{said:?}");
    }

    pub fn has_stall_timeout(&self, seconds: f64) -> bool {
        self.gateway.gateway.settings().stall_timeout == Duration::from_secs_f64(seconds)
    }

    pub async fn refreshes(&self) -> Said {
        self.admin.post(&format!("/api/m3u/refresh/{}/", self.account_id()), json!({})).await
    }

    pub fn account_id(&self) -> &str {
        self.account.trim_end_matches('/').rsplit('/').next().unwrap()
    }

    pub fn n_streams(&self, account: AccountId) -> usize {
        self.gateway.models().store.collection::<Stream>().len_of(u64::from(account.0))
    }

    /// Those that are in the list.
    pub fn listed_streams(&self, account: AccountId) -> usize {
        self.gateway.models().refreshes.load().get(account.0).map_or(0, |it| it.n_good as usize)
    }

    pub async fn account_status(&self) -> Value {
        self.admin.get(&self.account).await.body["status"].clone()
    }

    /// Everything that goes on all the time, until what is returned is dropped.
    pub fn loads(self: &Arc<Self>) -> Load {
        let [imports, asks, counts] = [0; 3].map(|_| Arc::clone(self));
        Load([
            tokio::spawn(async move { imports.imports_all_the_time().await }),
            tokio::spawn(async move { asks.asks_all_the_time().await }),
            tokio::spawn(async move { counts.counts_all_the_time().await }),
        ])
    }

    /// Refreshes without a pause, each time another list.
    async fn imports_all_the_time(&self) {
        for round in 0.. {
            self.lists_streams(ENTRIES + 10 * (round % 7));
            let said = self.refreshes().await;
            // Refused while one runs, or while the importer is dead.
            assert!(matches!(said.status, 200..=299 | 409 | 503), "a refresh is answered with {said:?}");
            sleep(Duration::from_millis(200)).await;
        }
    }

    /// Asks for the status; whatever dies, the answer is one of these.
    async fn asks_all_the_time(&self) {
        loop {
            let status = self.admin.get("/proxy/ts/status").await.status;
            assert!(matches!(status, 200 | 503 | 504), "the status is answered with {status}");
            sleep(Duration::from_millis(30)).await;
        }
    }

    /// Looks whether every socket has its lease, and no account more than it has slots.
    async fn counts_all_the_time(&self) {
        loop {
            let ids = || self.gateway.gateway.system().leases().into_iter().map(|it| it.id);
            let mut leases: Vec<_> = ids().collect();
            let open = self.provider.open();
            leases.extend(ids());
            leases.sort_unstable();
            leases.dedup();
            assert!(open <= leases.len(), "{open} sockets with {} leases", leases.len());
            self.is_within_limits();
            sleep(Duration::from_millis(3)).await;
        }
    }
}

/// What goes on in the background.
pub struct Load([JoinHandle<()>; 3]);

impl Load {
    /// Nothing of it found anything wrong so far.
    pub async fn finds_nothing_wrong(&mut self) {
        for task in &mut self.0 {
            if task.is_finished() {
                task.await.unwrap();
            }
        }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.iter().for_each(JoinHandle::abort);
    }
}
