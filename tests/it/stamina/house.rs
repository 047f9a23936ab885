//! The whole house: providers with their accounts, a gateway with a data folder, users, and a lineup made through the
//! interface.

use std::sync::Arc;
use std::time::Duration;

use domain::settings::AtLimit;
use domain::stream::Stream;
use domain::user::UserLevel;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use super::ledger::Ledger;
use crate::support::api::{Api, Said};
use crate::support::client::Request;
use crate::support::gateway::{Setup, TestGateway};
use crate::support::people::{Person, person};
use crate::support::random::Random;
use crate::support::signal::{Clip, Picture};
use crate::support::until_async;
use crate::support::upstream::{Answer, Cut, Mood, Provider};

/// A login at the provider: what it allows, and how long it counts what was closed.
pub struct Login {
    pub name: &'static str,
    pub max_streams: usize,
    pub counts_for: Duration,
}

/// Every kind of limit there is. `pair2` is the second profile of the account `pair`.
pub const LOGINS: [Login; 7] = [
    Login { name: "solo", max_streams: 1, counts_for: Duration::ZERO },
    Login { name: "pair", max_streams: 2, counts_for: Duration::from_millis(50) },
    Login { name: "pair2", max_streams: 1, counts_for: Duration::from_millis(50) },
    Login { name: "many", max_streams: 4, counts_for: Duration::ZERO },
    Login { name: "open", max_streams: 0, counts_for: Duration::ZERO },
    Login { name: "rough", max_streams: 2, counts_for: Duration::ZERO },
    Login { name: "prog", max_streams: 3, counts_for: Duration::ZERO },
];

/// Accounts with a list of their own, and seconds for which a closed connection is kept back.
const ACCOUNTS: [(&str, f64); 6] =
    [("solo", 0.0), ("pair", 0.3), ("many", 0.0), ("open", 0.0), ("rough", 0.0), ("prog", 0.0)];

/// Streams of each account.
pub const STREAMS: u64 = 6;

/// What a program is that reads a stream. The first argument is a word by which what is left of it can be found.
const PROGRAMS: [&str; 4] = [
    // Gets its input and nothing else.
    "exec curl -sN -A \"$1\" \"$2\"",
    // Has a child, and does not end when it is asked to.
    "trap \"\" TERM; curl -sN -A \"$1\" \"$2\" & wait",
    // Talks all the time.
    "(while sleep 0.05; do echo noise; done) >&2 & curl -sN -A \"$1\" \"$2\"",
    // Ends by itself after a while, with a child left that holds its output open.
    "sh -c \"sleep 1000; :\" \"$1\" & curl -sN -A \"$1\" -m 3 \"$2\"",
];

/// A channel that viewers choose.
#[derive(Debug, Clone)]
pub struct Spot {
    pub id: u64,
    pub uuid: Uuid,
    pub name: String,
    pub streams: Vec<u64>,
    /// What its provider sends has gaps of its own, which are passed on.
    pub is_rough: bool,
}

pub struct House {
    /// Streams that the gateway reads itself.
    pub live: Provider,
    /// Streams that programs read: how their sockets close is not up to the gateway.
    pub programs: Provider,
    /// Playlists.
    pub lists: Provider,
    pub gateway: TestGateway,
    pub folder: TempDir,
    pub root: Person,
    pub admin: Api,
    pub people: Vec<Person>,
    /// Channels that stay.
    pub lineup: Vec<Spot>,
    /// Channels that come and go.
    pub extras: Mutex<Vec<Spot>>,
    /// Ids of accounts, by login.
    pub accounts: Vec<(&'static str, u64)>,
    pub ledger: Arc<Ledger>,
    /// In the command lines of all programs.
    pub word: String,
    /// What a real ffmpeg reads, where there is to be one.
    pub clip: Option<Arc<Clip>>,
}

/// Where a login's stream is.
pub fn path(login: &str, stream: u64) -> String {
    format!("/live/{login}/{stream}.ts")
}

/// No two streams have the same PIDs, rate, group of pictures or clock.
fn picture(login: &str, stream: u64, random: &mut Random) -> Answer {
    let at = LOGINS.iter().position(|it| it.name == login).expect("one of ours") as u64;
    let number = (at * STREAMS + stream) as u16;
    let picture = Picture::new(&format!("{login}-{stream}"))
        .bits_per_second(200_000 + random.below(1_000_000))
        .frames_per_gop(1 + random.below(12))
        .starts_at(random.below(1 << 33));
    let picture = match stream % 3 {
        0 => picture,
        1 => picture.pids(0x20 + number * 16, 0x21 + number * 16, 0x22 + number * 16),
        // The same numbers for other things.
        _ => picture.pids(0x101, 0x1000, 0x100),
    };
    let answer = Answer::play(picture).with_burst(Duration::from_millis(random.below(2_000)));
    if random.once_in(2) { answer.chunked() } else { answer }
}

fn list_path(login: &str) -> String {
    format!("/list/{login}.m3u")
}

impl House {
    /// A house in which everything works. With a clip, some streams go through a real ffmpeg.
    pub async fn build(random: &mut Random, clip: Option<Arc<Clip>>) -> House {
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
            person(&gateway, "root", |it| (it.level, it.is_superuser) = (UserLevel::Admin, true)).await;
        let mut people = Vec::new();
        // The last two are lowered, shut out and let in again while they watch.
        for (name, stream_limit) in [("anna", 1), ("bert", 2), ("cora", 0), ("dora", 0), ("emil", 3)] {
            people.push(person(&gateway, name, |it| it.stream_limit = stream_limit).await);
        }
        let mut house = House {
            live: Provider::start(),
            programs: Provider::start(),
            lists: Provider::start(),
            admin: Api::stranger_at(gateway.api).key(&root.api_key),
            ledger: Ledger::follow(&gateway.gateway.events()),
            word: format!("headwater-stamina-{}", Uuid::new_v4()),
            gateway,
            folder,
            root,
            people,
            lineup: Vec::new(),
            extras: Mutex::default(),
            accounts: Vec::new(),
            clip,
        };
        house.heal(random);
        for (name, delay) in ACCOUNTS {
            house.make_account(name, delay).await;
        }
        house.hand_to_programs().await;
        house.make_lineup().await;
        house
    }

    /// What a login belongs to.
    pub fn provider(&self, login: &str) -> &Provider {
        if login == "prog" { &self.programs } else { &self.live }
    }

    /// Every stream and every list is as it should be.
    pub fn heal(&self, random: &mut Random) {
        for login in &LOGINS {
            let provider = self.provider(login.name);
            provider.plug_in();
            provider.limit(login.name, login.max_streams, 403, login.counts_for);
            for stream in 0..STREAMS {
                let path = path(login.name, stream);
                let answer = self.programme(login.name, stream, random);
                provider.path(&path).cut(Cut::Reset).is_now(Mood::Healthy).answers(answer);
            }
        }
        for (login, _) in ACCOUNTS {
            let text = self.list(login, 0..STREAMS, &[]);
            self.offers(login, Answer::text("audio/x-mpegurl", text));
        }
    }

    /// What a stream sends when all is well with it.
    pub fn programme(&self, login: &str, stream: u64, random: &mut Random) -> Answer {
        match &self.clip {
            Some(clip) if login == "prog" && stream >= PROGRAMS.len() as u64 => {
                Answer::play(Arc::clone(clip))
            }
            _ => picture(login, stream, random),
        }
    }

    /// The list of an account: some of its streams, and others that nobody watches.
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

    /// What the provider answers from now on to who asks for a list.
    pub fn offers(&self, login: &str, answer: Answer) {
        self.lists.path(&list_path(login)).answers(answer);
    }

    async fn make_account(&mut self, login: &'static str, release_delay: f64) {
        let of_login = |name: &str| LOGINS.iter().find(|it| it.name == name).expect("one of ours");
        let body = json!({
            "name": login, "server_url": self.lists.url(&list_path(login)), "refresh_interval": 0,
            "max_streams": of_login(login).max_streams, "release_delay": release_delay, "stale_stream_days": 0,
        });
        let id = self.made("/api/m3u/accounts/", body).await["id"].as_u64().unwrap();
        if login == "pair" {
            let second = json!({
                "name": "second", "max_streams": of_login("pair2").max_streams,
                "search_pattern": "/live/pair/", "replace_pattern": "/live/pair2/",
            });
            self.made(&format!("/api/m3u/accounts/{id}/profiles/"), second).await;
        }
        self.accounts.push((login, id));
        self.is_imported(id).await;
    }

    /// Waits until the list of an account is there.
    pub async fn is_imported(&self, account: u64) {
        let path = format!("/api/m3u/accounts/{account}/");
        until_async("the list of an account", async || {
            self.admin.get(&path).await.body["status"] == "success"
        })
        .await;
    }

    async fn made(&self, path: &str, body: Value) -> Value {
        let said = self.admin.post(path, body).await;
        assert_eq!(said.status, 201, "{path}: {said:?}");
        said.body
    }

    pub fn account(&self, login: &str) -> u64 {
        self.accounts.iter().find(|it| it.0 == login).expect("one of ours").1
    }

    /// The streams of an account that channels use, in the order of their numbers.
    fn streams(&self, login: &str) -> Vec<u64> {
        let mut found = Vec::new();
        let streams = self.gateway.models().store.collection::<Stream>();
        streams
            .for_each_of(self.account(login), |it: Stream| found.push((it.provider.name, it.id.0)))
            .unwrap();
        found.sort();
        found.into_iter().map(|it| u64::from(it.1)).collect()
    }

    async fn hand_to_programs(&self) {
        for (number, stream) in self.streams("prog").into_iter().enumerate() {
            let profile = match PROGRAMS.get(number) {
                Some(script) => {
                    let parameters = format!("-c '{script}' sh {} {{streamUrl}}", self.word);
                    let body = json!({
                        "name": format!("program {number}"), "command": "/bin/sh", "parameters": parameters,
                    });
                    self.made("/api/core/streamprofiles/", body).await["id"].clone()
                }
                None if self.clip.is_some() => self.built_in_copy().await,
                None => continue,
            };
            let path = format!("/api/channels/streams/{stream}/");
            let said = self.admin.patch(&path, json!({ "stream_profile_id": profile })).await;
            assert_eq!(said.status, 200, "{said:?}");
        }
    }

    async fn built_in_copy(&self) -> Value {
        let all = self.admin.get("/api/core/streamprofiles/").await.body;
        let all = all.as_array().or_else(|| all["results"].as_array()).cloned().unwrap_or_default();
        let is_copy = |it: &&Value| it["command"] == "ffmpeg" && it.to_string().contains("copy");
        all.iter().find(is_copy).expect("there is a built-in copy by ffmpeg")["id"].clone()
    }

    async fn make_lineup(&mut self) {
        let [solo, pair, many, open, rough, prog] =
            ["solo", "pair", "many", "open", "rough", "prog"].map(|it| self.streams(it));
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
        ];
        if self.clip.is_some() {
            plans.push(("ffmpeg", vec![prog[4], prog[5], open[5]]));
        }
        // What no channel uses goes when its list does not have it any more.
        let all: Vec<_> = plans.iter().flat_map(|it| it.1.clone()).collect();
        let anchor = self.channel("anchor", &all).await;
        let hidden = json!({ "enabled": false });
        self.call("PATCH", &format!("/api/channels/channels/{}/", anchor.id), hidden).await;
        for (name, streams) in plans {
            let spot = self.channel(name, &streams).await;
            self.lineup.push(spot);
        }
    }

    /// Makes a channel.
    pub async fn channel(&self, name: &str, streams: &[u64]) -> Spot {
        let made = self.made("/api/channels/channels/", json!({ "name": name, "streams": streams })).await;
        Spot {
            id: made["id"].as_u64().unwrap(),
            uuid: made["uuid"].as_str().unwrap().parse().unwrap(),
            name: name.to_owned(),
            streams: streams.to_vec(),
            is_rough: name == "gaps of its own",
        }
    }

    /// One of the channels there are.
    pub fn any(&self, random: &mut Random) -> Spot {
        let extras = self.extras.lock();
        let n = self.lineup.len() + extras.len();
        let at = random.below(n as u64) as usize;
        self.lineup.get(at).unwrap_or_else(|| &extras[at - self.lineup.len()]).clone()
    }

    /// Calls the interface. Whatever is asked for, in whatever state, it is never a failure of ours; only who asks for
    /// something to be done by a part that was just ended may hear that it gave no answer.
    pub async fn call(&self, method: &'static str, path: &str, body: Value) -> Said {
        let said = match &body {
            Value::Null => self.admin.ask(Request::get(path).method(method)).await,
            body => self.admin.send(method, path, body.clone()).await,
        };
        let is_carried_out = path.starts_with("/proxy/ts/") || path.starts_with("/api/m3u/");
        let may_be = |status: u16| status < 500 || is_carried_out && matches!(status, 502..=504);
        assert!(may_be(said.status), "{method} {path} {body}: {} {}", said.status, said.answer.text());
        self.ledger.called(said.status);
        said
    }

    /// What an admin did is undone: limits, orders and users are as they were, and what was made is gone.
    pub async fn tidy(&self) {
        let extras = std::mem::take(&mut *self.extras.lock());
        for spot in extras {
            self.call("DELETE", &format!("/api/channels/channels/{}/", spot.id), Value::Null).await;
        }
        for spot in &self.lineup {
            let body = json!({ "streams": spot.streams, "enabled": true });
            let said = self.call("PATCH", &format!("/api/channels/channels/{}/", spot.id), body).await;
            assert_eq!(said.status, 200, "{said:?}");
        }
        for (login, id) in &self.accounts {
            let max_streams = LOGINS.iter().find(|it| it.name == *login).map(|it| it.max_streams);
            let body = json!({ "max_streams": max_streams, "is_active": true });
            let said = self.call("PATCH", &format!("/api/m3u/accounts/{id}/"), body).await;
            assert_eq!(said.status, 200, "{said:?}");
        }
        for person in &self.people {
            let body = json!({ "is_active": true, "user_level": 0 });
            let said = self.call("PATCH", &format!("/api/accounts/users/{}/", person.id), body).await;
            assert_eq!(said.status, 200, "{said:?}");
        }
        let said = self.call("PUT", "/api/core/settings/1/", json!({ "value": {} })).await;
        assert_eq!(said.status, 200, "{said:?}");
    }
}
