//! A server that speaks the interface of Schedules Direct and counts what it is asked.
//!
//! It has its own thread and runtime, like a separate machine.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The login of the account.
pub const PASSWORD: &str = "hunter2-kept";
/// SHA-1 of the password.
const PASSWORD_HASH: &str = "85a1a53d409df563c419548f242cd2825984a042";
pub const USERNAME: &str = "anna-at-sd";

/// Changes that the service allows in a day.
const CHANGES: u64 = 6;

/// The server. It stops when this is dropped.
pub struct SchedulesDirectServer {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
    _running: DropGuard,
}

/// The contents of the service.
#[derive(Default)]
struct State {
    lineups: Vec<String>,
    n_changes: u64,
    /// Schedules by station and date: checksum, and programmes.
    days: BTreeMap<(String, String), (String, Value)>,
    programs: BTreeMap<String, Value>,
    tokens: Vec<String>,
    /// Code of the answer to the next requests below a path, and for how many.
    faults: BTreeMap<String, (i64, usize)>,
    is_offline: bool,
    /// Method and path of each request, and its body.
    requests: Vec<(String, Value)>,
}

impl SchedulesDirectServer {
    pub fn start() -> Self {
        let state = Arc::new(Mutex::new(State::default()));
        let stop = CancellationToken::new();
        let (sender, address) = std::sync::mpsc::channel();
        let (shared, stopped) = (state.clone(), stop.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("the test server works");
            runtime.block_on(stopped.run_until_cancelled(async {
                let listener =
                    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("the test server works");
                sender
                    .send(listener.local_addr().expect("the test server works"))
                    .expect("the test server works");
                while let Ok((socket, _)) = listener.accept().await {
                    tokio::spawn(serve(socket, shared.clone()));
                }
            }));
        });
        let address = address.recv().expect("the test server works");
        Self { address, state, _running: stop.drop_guard() }
    }

    /// Returns the base address.
    pub fn url(&self) -> String {
        format!("http://{}/20141201", self.address)
    }

    /// Adds a lineup to the account.
    pub fn has_lineup(&self, id: &str) {
        self.state.lock().lineups.push(id.to_owned());
    }

    /// Sets the programmes of a day: id of the programme, start as `HH:MM`, and length in seconds. The checksum follows from
    /// `version`.
    pub fn day(&self, station: &str, date: &str, version: u32, programs: &[(&str, &str, u32)]) {
        let airings = programs.iter().map(|(id, time, duration)| {
            json!({
                "programID": id, "airDateTime": format!("{date}T{time}:00Z"), "duration": duration,
                "md5": "x", "new": true, "audioProperties": ["stereo"],
            })
        });
        let checksum = format!("{version:08}{station}{date}");
        let day = (checksum, airings.collect());
        self.state.lock().days.insert((station.to_owned(), date.to_owned()), day);
    }

    /// Stops offering a day, as while it is prepared.
    pub fn has_no_day(&self, station: &str, date: &str) {
        self.state.lock().days.remove(&(station.to_owned(), date.to_owned()));
    }

    /// Sets a programme.
    pub fn program(&self, id: &str, title: &str) {
        let program = json!({
            "programID": id, "md5": "x", "titles": [{ "title120": title }], "genres": ["News"],
            "hasImageArtwork": true, "entityType": "Episode",
            "metadata": [{ "Gracenote": { "season": 2, "episode": 5 } }],
        });
        self.state.lock().programs.insert(id.to_owned(), program);
    }

    /// Answers the next `n` requests whose path begins so with a code.
    pub fn refuses(&self, path: &str, code: i64, n: usize) {
        self.state.lock().faults.insert(path.to_owned(), (code, n));
    }

    pub fn is_offline(&self, is_offline: bool) {
        self.state.lock().is_offline = is_offline;
    }

    /// Ends all tokens.
    pub fn forget_tokens(&self) {
        self.state.lock().tokens.clear();
    }

    /// Returns the method and path of each request since the last call.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().requests).into_iter().map(|it| it.0).collect()
    }

    /// Returns the bodies of requests with this method and path since the last call of [`Self::take_requests`].
    pub fn bodies(&self, request: &str) -> Vec<Value> {
        let state = self.state.lock();
        state.requests.iter().filter(|it| it.0 == request).map(|it| it.1.clone()).collect()
    }
}

/// Answers the requests of a connection.
async fn serve(mut socket: TcpStream, state: Arc<Mutex<State>>) {
    let mut received = Vec::new();
    loop {
        let head_end = loop {
            if let Some(at) = received.windows(4).position(|it| it == b"\r\n\r\n") {
                break at + 4;
            }
            if socket.read_buf(&mut received).await.unwrap_or(0) == 0 {
                return;
            }
        };
        let head = String::from_utf8_lossy(&received[..head_end]).into_owned();
        let header = |name: &str| {
            let lines = head.lines().filter_map(|it| it.split_once(':'));
            lines.into_iter().find(|it| it.0.eq_ignore_ascii_case(name)).map(|it| it.1.trim().to_owned())
        };
        let n_bytes: usize = header("content-length").and_then(|it| it.parse().ok()).unwrap_or(0);
        while received.len() < head_end + n_bytes {
            if socket.read_buf(&mut received).await.unwrap_or(0) == 0 {
                return;
            }
        }
        let body: Value = serde_json::from_slice(&received[head_end..head_end + n_bytes]).unwrap_or_default();
        received.drain(..head_end + n_bytes);
        let (status, answer) = state.lock().answer(&head, header("token"), header("user-agent"), body);
        let answer = answer.to_string();
        let length = answer.len();
        let reply = format!(
            "HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{answer}"
        );
        if socket.write_all(reply.as_bytes()).await.is_err() {
            return;
        }
    }
}

fn fault(code: i64) -> (u16, Value) {
    let status = if code == 4006 { 403 } else { 400 };
    (status, json!({ "response": "FAULT", "code": code, "message": "No." }))
}

impl State {
    fn answer(
        &mut self,
        head: &str,
        token: Option<String>,
        agent: Option<String>,
        body: Value,
    ) -> (u16, Value) {
        let mut words = head.split(' ');
        let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
        let path = target.strip_prefix("/20141201").unwrap_or(target).to_owned();
        self.requests.push((format!("{method} {path}"), body.clone()));
        assert!(agent.is_some_and(|it| it.starts_with("Headwater/")), "without a name");
        if let Some((_, (code, left))) = self.faults.iter_mut().find(|it| path.starts_with(it.0.as_str()))
            && *left > 0
        {
            *left -= 1;
            return fault(*code);
        }
        if path == "/token" {
            return self.log_in(&body);
        }
        if !token.is_some_and(|it| self.tokens.contains(&it)) {
            return fault(4006);
        }
        match (method, path.as_str()) {
            ("GET", "/status") => {
                let status = if self.is_offline { "Offline" } else { "Online" };
                let account =
                    json!({ "expires": "2099-01-01T00:00:00Z", "messages": ["Hello"], "maxLineups": 4 });
                (200, json!({ "account": account, "systemStatus": [{ "status": status }], "code": 0 }))
            }
            ("GET", "/available/countries") => {
                let country =
                    json!({ "fullName": "United States", "shortName": "USA", "postalCodeExample": "12345" });
                (200, json!({ "North America": [country] }))
            }
            ("GET", "/headends?country=USA&postalcode=60030") => {
                let lineup = json!({ "lineup": "USA-IL1-X", "name": "Cable One" });
                (
                    200,
                    json!([{ "headend": "IL1", "transport": "Cable", "location": "Chicago", "lineups": [lineup] }]),
                )
            }
            ("GET", path) if path.starts_with("/headends") => fault(2108),
            ("GET", "/lineups") if self.lineups.is_empty() => fault(4102),
            ("GET", "/lineups") => {
                let lineup = |it: &String| json!({ "lineup": it, "name": it, "transport": "Cable", "location": "Chicago" });
                (200, json!({ "lineups": self.lineups.iter().map(lineup).collect::<Value>() }))
            }
            ("GET", path) if path.starts_with("/lineups/") => (200, self.stations()),
            ("PUT" | "DELETE", path) => self.change(method, path.trim_start_matches("/lineups/")),
            ("POST", "/schedules/md5") => (200, self.checksums(&body)),
            ("POST", "/schedules") => (200, self.schedules(&body)),
            ("POST", "/programs") => {
                let wanted = body.as_array().expect("the test server works").iter();
                let program = |it: &Value| {
                    let missing = json!({ "programID": it, "code": 6001 });
                    self.programs.get(it.as_str().expect("the test server works")).cloned().unwrap_or(missing)
                };
                (200, wanted.map(program).collect())
            }
            ("POST", "/metadata/programs") => {
                let wanted = body.as_array().expect("the test server works").iter();
                let image = |it: &Value| {
                    let uri =
                        format!("https://images.example/{}.jpg", it.as_str().expect("the test server works"));
                    json!({ "programID": it, "data": [{ "uri": uri, "width": "480", "height": "720", "aspect": "2x3" }] })
                };
                (200, wanted.map(image).collect())
            }
            other => panic!("unexpected request: {other:?}"),
        }
    }

    fn log_in(&mut self, body: &Value) -> (u16, Value) {
        if body["username"] != USERNAME || body["password"] != PASSWORD_HASH {
            return fault(4003);
        }
        let token = format!("secret-token-{}", self.requests.len());
        self.tokens.push(token.clone());
        (
            200,
            json!({ "code": 0, "token": token, "datetime": "2026-01-01T00:00:00Z", "tokenExpires": 1_767_312_000 }),
        )
    }

    fn change(&mut self, method: &str, lineup: &str) -> (u16, Value) {
        let lineup = lineup.replace("%2D", "-");
        let has_lineup = self.lineups.contains(&lineup);
        if method == "DELETE" {
            self.lineups.retain(|it| *it != lineup);
            return if has_lineup { (200, json!({ "code": 0 })) } else { fault(2103) };
        }
        if self.n_changes == CHANGES {
            return fault(4100);
        }
        if has_lineup {
            return fault(2100);
        }
        self.n_changes += 1;
        self.lineups.push(lineup);
        (200, json!({ "code": 0, "changesRemaining": CHANGES - self.n_changes }))
    }

    /// Returns the stations that have a schedule.
    fn stations(&self) -> Value {
        let mut ids: Vec<_> = self.days.keys().map(|it| it.0.as_str()).collect();
        ids.dedup();
        let station = |id: &&str| json!({ "stationID": id, "name": format!("Station {id}"), "callsign": format!("W{id}") });
        json!({ "map": [], "stations": ids.iter().map(station).collect::<Value>() })
    }

    /// Returns each wanted day that exists.
    fn wanted<'a>(
        &'a self,
        body: &'a Value,
    ) -> impl Iterator<Item = (&'a str, &'a str, &'a (String, Value))> {
        let pairs = body.as_array().expect("the test server works").iter().flat_map(|it| {
            let station = it["stationID"].as_str().expect("the test server works");
            it["date"]
                .as_array()
                .expect("the test server works")
                .iter()
                .map(move |date| (station, date.as_str().expect("the test server works")))
        });
        pairs.filter_map(|(station, date)| {
            Some((station, date, self.days.get(&(station.to_owned(), date.to_owned()))?))
        })
    }

    fn checksums(&self, body: &Value) -> Value {
        let mut all = json!({});
        for (station, date, (checksum, _)) in self.wanted(body) {
            all[station][date] = json!({ "code": 0, "md5": checksum });
        }
        all
    }

    fn schedules(&self, body: &Value) -> Value {
        let day = |(station, date, (checksum, programs)): (&str, &str, &(String, Value))| json!({ "stationID": station, "programs": programs, "metadata": { "startDate": date, "md5": checksum } });
        self.wanted(body).map(day).collect()
    }
}
