//! A provider that behaves like a Stalker portal, as the public sources of one describe it.
//!
//! It knows boxes by their MAC addresses. A handshake gives a token and ends the former one; every other question without the
//! present token is answered with `Authorization failed.` and status 200. Channels have no address: `create_link` makes a
//! link that opens once. All links of a box are one account of the provider, which allows it one connection.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};

use super::portal_offers::{OfferedProgramme, OfferedTitle, day, file_bytes, guide, titles};
use super::signal::Picture;
use super::upstream::{Cut, MockResponse, Provider, RecordedRequest};

/// Where the portal is installed.
pub const ENTRY_POINT: &str = "/stalker_portal/server/load.php";
/// Channels of a page.
pub const PAGE: usize = 14;

/// A channel as the portal has it.
#[derive(Debug, Clone)]
pub struct OfferedChannel {
    pub id: u32,
    pub name: String,
    /// The id of its genre.
    pub genre: u32,
    /// Only those who ask for its genre are told.
    pub is_censored: bool,
    /// Its command contains its address, and no link is made.
    pub is_direct: bool,
    /// Hours of its archive; 0 for none.
    pub archive_hours: u32,
}

impl OfferedChannel {
    pub fn new(id: u32, name: impl Into<String>) -> OfferedChannel {
        OfferedChannel {
            id,
            name: name.into(),
            genre: 2,
            is_censored: false,
            is_direct: false,
            archive_hours: 0,
        }
    }
}

/// A box that the portal knows.
#[derive(Debug, Default)]
struct KnownBox {
    token: Option<String>,
    n_handshakes: usize,
    n_events: usize,
    /// The login that the portal asks for.
    login: Option<(String, String)>,
    is_logged_in: bool,
    /// Why the portal refuses it.
    blocked: Option<String>,
}

#[derive(Debug, Default)]
struct State {
    boxes: BTreeMap<String, KnownBox>,
    channels: Vec<OfferedChannel>,
    /// `get_all_channels` is answered.
    lists_all: bool,
    programmes: Vec<OfferedProgramme>,
    /// The titles of the module of films, and those of the module of series.
    titles: Vec<OfferedTitle>,
    series: Vec<OfferedTitle>,
    /// The links that were made, by path.
    links: BTreeMap<String, Link>,
    n_made: usize,
    /// Refuses all questions of boxes with a token, with this status; 200 says it in the text.
    refuses: Option<u16>,
    /// Answers pages after the first one with this.
    later_pages: Option<Value>,
}

/// A link that was made.
#[derive(Debug)]
enum Link {
    /// To a channel. It opens once.
    Channel { id: u32, is_new: bool },
    /// To a file with these bytes.
    File(Vec<u8>),
}

pub struct Portal {
    pub provider: Arc<Provider>,
    state: Arc<Mutex<State>>,
}

impl Portal {
    pub fn start() -> Portal {
        let (provider, state) = (Arc::new(Provider::start()), Arc::new(Mutex::new(State::default())));
        state.lock().lists_all = true;
        let (answering, base) = (state.clone(), provider.url(""));
        provider.computes(move |request| answering.lock().answer(request, &base));
        Portal { provider, state }
    }

    /// Returns the address as people paste it.
    pub fn url(&self) -> String {
        self.provider.url("/stalker_portal/c/")
    }

    /// Knows a box, which may have one connection.
    pub fn knows(&self, mac: &str) {
        self.state.lock().boxes.insert(mac.to_owned(), KnownBox::default());
        self.provider.limit(&account_of(mac), 1, 403, Duration::ZERO);
    }

    /// Asks a box for this login.
    pub fn asks_for_login(&self, mac: &str, user: &str, password: &str) {
        self.with_box(mac, |it| it.login = Some((user.to_owned(), password.to_owned())));
    }

    /// Refuses a box with this message.
    pub fn blocks(&self, mac: &str, message: &str) {
        self.with_box(mac, |it| it.blocked = Some(message.to_owned()));
    }

    /// Another box with the same MAC address shakes hands, so that the token of the gateway ends.
    pub fn other_box_shakes_hands(&self, mac: &str) {
        self.with_box(mac, |it| it.token = Some("of another box".to_owned()));
    }

    /// Refuses all questions after handshakes with this status; 200 says it in the text, and `None` ends it.
    pub fn refuses(&self, status: Option<u16>) {
        self.state.lock().refuses = status;
    }

    pub fn offers(&self, channels: Vec<OfferedChannel>) {
        self.state.lock().channels = channels;
    }

    /// Has these programmes in its guide and, once they are over, in its archive.
    pub fn broadcasts(&self, programmes: Vec<OfferedProgramme>) {
        self.state.lock().programmes = programmes;
    }

    /// Has these titles in its module of films, and in that of series.
    pub fn has_titles(&self, titles: Vec<OfferedTitle>, series: Vec<OfferedTitle>) {
        let mut state = self.state.lock();
        (state.titles, state.series) = (titles, series);
    }

    /// Lets the links to files expire.
    pub fn expires_files(&self) {
        self.state.lock().links.retain(|_, it| !matches!(it, Link::File(_)));
    }

    /// Lists its channels by page only.
    pub fn lists_pages_only(&self) {
        self.state.lock().lists_all = false;
    }

    /// Answers pages after the first one with this instead of channels; `None` ends it.
    pub fn answers_later_pages_with(&self, js: Option<Value>) {
        self.state.lock().later_pages = js;
    }

    pub fn n_handshakes(&self, mac: &str) -> usize {
        self.state.lock().boxes[mac].n_handshakes
    }

    /// Returns how often the portal was told that a box is on.
    pub fn n_events(&self, mac: &str) -> usize {
        self.state.lock().boxes[mac].n_events
    }

    /// Returns the number of links that were made.
    pub fn n_links(&self) -> usize {
        self.state.lock().n_made
    }

    /// Returns the highest number of connections that a box had at once.
    pub fn peak_of(&self, mac: &str) -> usize {
        self.provider.peak_of(&account_of(mac))
    }

    /// Ends all streams; their links have expired.
    pub fn ends_streams(&self) {
        let paths: Vec<String> = self.state.lock().links.keys().cloned().collect();
        for path in paths {
            self.provider.path(&path).cut(Cut::End);
        }
    }

    /// Returns the questions that were asked, as `type/action`, in order.
    pub fn questions(&self) -> Vec<String> {
        let asked = self.provider.requests();
        let of_portal = asked.iter().filter(|it| it.path.starts_with(ENTRY_POINT));
        of_portal.map(|it| format!("{}/{}", value(it, "type"), value(it, "action"))).collect()
    }

    fn with_box(&self, mac: &str, change: impl FnOnce(&mut KnownBox)) {
        change(self.state.lock().boxes.get_mut(mac).expect("a known box"));
    }
}

/// Returns the account of the provider that the links of a box belong to.
fn account_of(mac: &str) -> String {
    mac.replace(':', "")
}

impl State {
    fn answer(&mut self, request: &RecordedRequest, base: &str) -> Option<MockResponse> {
        let path = request.path.split('?').next().unwrap_or_default();
        if path.starts_with("/play/") {
            return Some(self.play(request));
        }
        (path == ENTRY_POINT).then(|| self.portal(request, base))
    }

    /// Plays the channel of a link that was not opened before, any channel at its own address, and files.
    fn play(&mut self, request: &RecordedRequest) -> MockResponse {
        let path = request.path.as_str();
        let id = match self.links.get_mut(path) {
            Some(Link::File(bytes)) => return send_file(bytes, request),
            Some(Link::Channel { id, is_new }) => std::mem::take(is_new).then_some(*id),
            None => path.rsplit('/').next().and_then(|it| it.parse().ok()),
        };
        let channel = id.and_then(|id| self.channels.iter().find(|it| it.id == id));
        match channel {
            Some(channel) => {
                MockResponse::play(Picture::new(&channel.name).bits_per_second(300_000).frames_per_gop(3))
            }
            None => MockResponse::status(404),
        }
    }

    fn portal(&mut self, request: &RecordedRequest, base: &str) -> MockResponse {
        let mac = cookie(request, "mac").unwrap_or_default();
        let asked = (value(request, "type"), value(request, "action"));
        if asked == ("stb".to_owned(), "handshake".to_owned()) {
            return self.shake_hands(&mac);
        }
        let sent = request.header("Authorization").and_then(|it| it.strip_prefix("Bearer "));
        let is_known = sent.is_some() && self.boxes.get(&mac).is_some_and(|it| it.token.as_deref() == sent);
        if !is_known {
            return MockResponse::text("text/html", "Authorization failed.");
        }
        if asked.0 != "stb"
            && let Some(status) = self.refuses
        {
            return match status {
                200 => MockResponse::text("text/html", "Authorization failed."),
                status => MockResponse::status(status),
            };
        }
        match (asked.0.as_str(), asked.1.as_str()) {
            ("stb", "get_profile") => self.profile(&mac),
            ("stb", "do_auth") => self.login(&mac, request),
            ("account_info", "get_main_info") => {
                says(&json!({ "mac": mac, "phone": "January 1, 2030, 12:00 am" }))
            }
            ("itv", "get_genres") => says(&json!([
                { "id": "*", "title": "All", "alias": "all", "censored": 0 },
                { "id": "2", "title": "News", "alias": "news", "censored": "0" },
                { "id": "9", "title": "Night", "alias": "night", "censored": "1" },
            ])),
            ("itv", "get_all_channels") if !self.lists_all => says(&json!(false)),
            ("itv", "get_all_channels") => {
                let listed = self.listed(base, &mac, |it| !it.is_censored);
                says(&json!({ "total_items": listed.len(), "max_page_items": PAGE, "data": listed }))
            }
            ("itv", "get_ordered_list") => self.page(request, base, &mac),
            ("itv", "create_link") => self.make_link(&mac, request, base),
            ("itv", "get_epg_info") => {
                says(&guide(&self.programmes, value(request, "period").parse().unwrap_or(3)))
            }
            ("epg", "get_simple_data_table") => {
                let (channel, date) = (value(request, "ch_id"), value(request, "date"));
                let page = value(request, "p").parse().unwrap_or(1);
                says(&day(&self.programmes, &channel, &date, page))
            }
            ("tv_archive" | "vod", "create_link") => self.make_file_link(&mac, &asked.0, request, base),
            ("vod", "get_categories") => says(&json!([
                { "id": "*", "title": "All", "alias": "*" },
                { "id": "3", "title": "Crime", "alias": "crime", "censored": 0 },
                { "id": "4", "title": "Late", "alias": "late", "censored": 1 },
            ])),
            ("series", "get_categories") if self.series.is_empty() => says(&json!(false)),
            ("series", "get_categories") => says(&json!([{ "id": "8", "title": "Shows", "alias": "shows" }])),
            ("vod", "get_ordered_list") => says(&titles(&self.titles, false, |it| value(request, it))),
            ("series", "get_ordered_list") => says(&titles(&self.series, true, |it| value(request, it))),
            ("watchdog", "get_events") => {
                self.boxes.entry(mac).or_default().n_events += 1;
                says(&json!({ "data": { "msgs": 0, "additional_services_on": "1" } }))
            }
            _ => says(&json!(false)),
        }
    }

    fn shake_hands(&mut self, mac: &str) -> MockResponse {
        let n = self.boxes.values().map(|it| it.n_handshakes).sum::<usize>();
        let Some(known) = self.boxes.get_mut(mac) else { return says(&json!(false)) };
        let token = format!("{:032X}", (n as u128 + 1) * 0x9E37_79B9_7F4A_7C15);
        (known.token, known.is_logged_in) = (Some(token.clone()), false);
        known.n_handshakes += 1;
        says(&json!({ "token": token, "random": "0", "not_valid": 0 }))
    }

    fn profile(&mut self, mac: &str) -> MockResponse {
        let known = &self.boxes[mac];
        if let Some(message) = &known.blocked {
            return says(&json!({ "status": 1, "msg": message, "block_msg": "" }));
        }
        let status = if known.login.is_some() && !known.is_logged_in { 2 } else { 0 };
        says(&json!({
            "id": "1", "mac": mac, "status": status, "blocked": "0", "watchdog_timeout": "120", "timeslot": 90,
        }))
    }

    fn login(&mut self, mac: &str, request: &RecordedRequest) -> MockResponse {
        let sent = (value(request, "login"), value(request, "password"));
        let known = self.boxes.entry(mac.to_owned()).or_default();
        known.is_logged_in = known.login.as_ref() == Some(&sent);
        says(&json!(known.is_logged_in))
    }

    fn page(&self, request: &RecordedRequest, base: &str, mac: &str) -> MockResponse {
        let genre = value(request, "genre");
        let is_wanted = |it: &OfferedChannel| match genre.as_str() {
            "*" => !it.is_censored,
            genre => it.genre.to_string() == genre,
        };
        let listed = self.listed(base, mac, is_wanted);
        let page = value(request, "p").parse::<usize>().unwrap_or(1).max(1);
        if let Some(js) = self.later_pages.as_ref().filter(|_| page > 1) {
            return says(js);
        }
        let data: Vec<_> = listed.iter().skip((page - 1) * PAGE).take(PAGE).collect();
        says(&json!({
            "total_items": listed.len().to_string(), "max_page_items": PAGE, "selected_item": 0,
            "cur_page": page, "data": data,
        }))
    }

    fn listed(&self, base: &str, mac: &str, is_wanted: impl Fn(&OfferedChannel) -> bool) -> Vec<Value> {
        let listed = self.channels.iter().filter(|it| is_wanted(it)).map(|it| {
            let cmd = match it.is_direct {
                true => format!("ffmpeg {base}/play/{}/{}", account_of(mac), it.id),
                false => format!("ffrt http://localhost/ch/{}_", it.id),
            };
            json!({
                "id": it.id.to_string(), "name": it.name, "number": it.id.to_string(), "cmd": cmd,
                "censored": u8::from(it.is_censored), "tv_genre_id": it.genre.to_string(), "logo": "",
                "xmltv_id": format!("{}.example", it.id), "use_http_tmp_link": u8::from(!it.is_direct).to_string(),
                "use_load_balancing": "0", "status": 1, "open": 1,
                "enable_tv_archive": u8::from(it.archive_hours > 0), "tv_archive_duration": it.archive_hours,
            })
        });
        listed.collect()
    }

    fn make_link(&mut self, mac: &str, request: &RecordedRequest, base: &str) -> MockResponse {
        let cmd = value(request, "cmd");
        let id = cmd.rsplit("/ch/").next().and_then(|it| it.trim_end_matches('_').parse::<u32>().ok());
        let Some(id) = id.filter(|id| self.channels.iter().any(|it| it.id == *id)) else {
            return says(&json!({ "id": null, "cmd": "", "error": "nothing_to_play" }));
        };
        self.n_made += 1;
        let path = format!("/play/{}/{id}?token={}", account_of(mac), self.n_made);
        self.links.insert(path.clone(), Link::Channel { id, is_new: true });
        says(&json!({
            "id": id.to_string(), "cmd": format!("ffmpeg {base}{path}"), "streamer_id": 0, "link_id": 1, "load": 0,
            "error": "",
        }))
    }
}

impl State {
    /// Makes the link of a programme in the archive, or of a file of a title.
    fn make_file_link(
        &mut self,
        mac: &str,
        module: &str,
        request: &RecordedRequest,
        base: &str,
    ) -> MockResponse {
        let (cmd, series) = (value(request, "cmd"), value(request, "series"));
        let of_media = cmd.rsplit("/media/").next().and_then(|it| it.strip_suffix(".mpg"));
        let id = of_media.and_then(|it| it.parse::<u32>().ok());
        let is_known = match module {
            "tv_archive" => self.programmes.iter().any(|it| Some(it.id) == id),
            _ => {
                cmd.starts_with("season-")
                    || of_media.is_some_and(|it| it.starts_with("file_"))
                    || self.titles.iter().any(|it| Some(it.id) == id)
            }
        };
        if !is_known {
            return says(&json!({ "id": null, "cmd": "", "error": "nothing_to_play" }));
        }
        self.n_made += 1;
        let name = format!("{module} {cmd} {series}");
        let path = format!("/play/{}/file?token={}", account_of(mac), self.n_made);
        self.links.insert(path.clone(), Link::File(file_bytes(name.trim())));
        says(
            &json!({ "id": "1", "cmd": format!("ffmpeg {base}{path}"), "storage_id": "1", "load": 0, "error": "" }),
        )
    }
}

/// Sends a file, or the requested part of it.
fn send_file(bytes: &[u8], request: &RecordedRequest) -> MockResponse {
    const TYPE: &str = "application/octet-stream";
    let range = request.header("Range").and_then(|it| it.strip_prefix("bytes="));
    let Some((first, last)) = range.and_then(|it| it.split_once('-')) else {
        return MockResponse::text(TYPE, bytes);
    };
    let first = first.parse().unwrap_or(0);
    MockResponse::part(TYPE, bytes, first, last.parse().unwrap_or(usize::MAX))
}

/// Returns an answer in the envelope of portals.
fn says(js: &Value) -> MockResponse {
    let body = json!({ "js": js, "text": "generated in: 0.01s" }).to_string();
    MockResponse::text("application/json", body)
}

/// Returns a parameter of a question, decoded.
fn value(request: &RecordedRequest, name: &str) -> String {
    let query = request.path.split_once('?').map_or("", |it| it.1);
    let pair = query.split('&').filter_map(|it| it.split_once('=')).find(|it| it.0 == name);
    pair.map_or_else(String::new, |it| {
        percent_encoding::percent_decode_str(it.1).decode_utf8_lossy().into_owned()
    })
}

fn cookie(request: &RecordedRequest, name: &str) -> Option<String> {
    let cookies = request.header("Cookie")?;
    let pairs = cookies.split(';').filter_map(|it| it.trim().split_once('='));
    pairs.into_iter().find(|it| it.0 == name).map(|it| it.1.to_owned())
}
