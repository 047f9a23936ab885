//! A provider that speaks the interface of panels, and can lie in each of its answers.

use serde_json::{Value, json};

use super::signal::Picture;
use super::upstream::{MockResponse, Provider};

/// A panel with one login.
pub struct Panel {
    pub provider: Provider,
    user: String,
    password: String,
}

/// The questions of an import, in order.
pub const QUESTIONS: [&str; 3] = ["", "get_live_categories", "get_live_streams"];

impl Panel {
    pub fn start(user: &str, password: &str) -> Panel {
        let panel =
            Panel { provider: Provider::start(), user: user.to_owned(), password: password.to_owned() };
        panel.is_valid();
        panel
    }

    /// Returns the base address.
    pub fn url(&self) -> String {
        self.provider.url("")
    }

    /// Changes the password: the former one gets what panels answer to a wrong one.
    pub fn change_password(&mut self, password: &str) {
        let refusal =
            MockResponse::text("application/json", json!({ "user_info": { "auth": 0 } }).to_string());
        QUESTIONS.iter().for_each(|it| self.answers(it, refusal.clone()));
        self.password = password.to_owned();
        self.is_valid();
    }

    /// Answers a question, by its action, in this way from now on.
    pub fn answers(&self, action: &str, answer: MockResponse) {
        self.provider.path(&self.question(action)).answers(answer);
    }

    /// Answers a question with JSON.
    pub fn says(&self, action: &str, answer: &Value) {
        self.answers(action, MockResponse::text("application/json", answer.to_string()));
    }

    /// Returns the number of times that a question was asked.
    pub fn n_questions(&self, action: &str) -> usize {
        self.provider.path(&self.question(action)).n_requests()
    }

    fn question(&self, action: &str) -> String {
        let action = if action.is_empty() { String::new() } else { format!("&action={action}") };
        format!("/player_api.php?username={}&password={}{action}", self.user, self.password)
    }

    /// Returns the path of a live stream.
    pub fn stream(&self, id: u32) -> String {
        format!("/live/{}/{}/{id}.ts", self.user, self.password)
    }

    /// Says that the login is valid, with the types that panels use.
    pub fn is_valid(&self) {
        self.account(json!({}));
    }

    /// Says the same, with other values of `user_info`.
    pub fn account(&self, change: Value) {
        self.tells(change, json!({}));
    }

    /// Says the same, with other values of `user_info` and of `server_info`.
    pub fn tells(&self, change: Value, change_of_server: Value) {
        let mut user = json!({
            "username": self.user, "password": self.password, "message": "", "auth": 1, "status": "Active",
            "exp_date": null, "is_trial": "0", "active_cons": "0", "created_at": "1600000000",
            "max_connections": null, "allowed_output_formats": ["m3u8", "ts", "rtmp"],
        });
        for (name, value) in change.as_object().expect("an object") {
            user[name] = value.clone();
        }
        let mut server = json!({
            "url": "panel.example", "port": "80", "https_port": "443", "server_protocol": "http",
            "timezone": "Europe/Paris", "timestamp_now": 1_795_216_747, "time_now": "2026-11-20 23:19:07",
        });
        for (name, value) in change_of_server.as_object().expect("an object") {
            server[name] = value.clone();
        }
        self.says("", &json!({ "user_info": user, "server_info": server }));
    }

    /// Offers these streams, in one category, and plays them.
    pub fn offers(&self, streams: &[(u32, &str)]) {
        self.says(
            "get_live_categories",
            &json!([{ "category_id": "3", "category_name": "News", "parent_id": 0 }]),
        );
        let list: Vec<Value> = streams.iter().map(|(id, name)| listed(*id, name)).collect();
        self.says("get_live_streams", &list.into());
        for (id, name) in streams {
            let picture = Picture::new(name).bits_per_second(300_000).frames_per_gop(3);
            self.provider.path(&self.stream(*id)).plays(picture);
        }
    }
}

/// Returns a stream as panels list it.
pub fn listed(id: u32, name: &str) -> Value {
    json!({
        "num": id, "name": name, "stream_type": "live", "stream_id": id, "stream_icon": "",
        "epg_channel_id": format!("{id}.example"), "added": "1600000000", "is_adult": "0", "category_id": "3",
        "category_ids": [3], "custom_sid": "", "tv_archive": 0, "direct_source": "", "tv_archive_duration": 0,
    })
}
