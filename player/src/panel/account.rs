//! The account of a user and the address of the server, as a panel describes them.

use actors::now_ms;
use domain::output_format::{AllowedFormats, OutputFormat};
use jiff::Timestamp;
use route_frame::call::Call;
use serde::Serialize;
use serde_json::{Value, json};
use server::reply::Refusal;
use url::Url;

use crate::context::PlayerCall;

/// The end of the account of a user without an end, in seconds since 1970. Apps read it as a number of 32 bits, and not as
/// `null`.
const NEVER: i32 = i32::MAX;
/// The number of simultaneous streams of a user without a limit. Apps offer no second stream at 0.
const UNLIMITED_STREAMS: u32 = 1000;

#[derive(Debug, Serialize)]
pub(super) struct AccountView {
    user_info: UserInfo,
    server_info: ServerInfo,
}

/// Numbers are texts, except `auth`.
#[derive(Debug, Serialize)]
struct UserInfo {
    username: String,
    /// As the app sent it: apps build the addresses of streams from it.
    password: String,
    message: &'static str,
    auth: u8,
    status: &'static str,
    exp_date: String,
    is_trial: &'static str,
    /// Number of streams that the user watches.
    active_cons: String,
    /// When the user was created, in seconds since 1970.
    created_at: String,
    max_connections: String,
    /// Apps choose the first one, or let people choose.
    allowed_output_formats: Vec<&'static str>,
}

/// Apps build the addresses of streams from `server_protocol`, `url` and `port`.
#[derive(Debug, Serialize)]
struct ServerInfo {
    /// Host without a port.
    url: String,
    port: String,
    /// Empty without TLS.
    https_port: String,
    server_protocol: String,
    /// Never served.
    rtmp_port: &'static str,
    /// The zone of all times in answers.
    timezone: &'static str,
    /// Seconds since 1970.
    timestamp_now: i64,
    /// In that zone.
    time_now: String,
    process: bool,
}

impl AccountView {
    pub(super) fn new(call: &Call) -> Result<Self, Refusal> {
        let user = call.user()?;
        let (_, password) = call.query_login().ok_or_else(Refusal::no_credentials)?;
        let n_watched = call.player().switchboard.seats().iter().filter(|it| it.user == user.id).count();
        let max_connections = if user.stream_limit == 0 { UNLIMITED_STREAMS } else { user.stream_limit };
        let user_info = UserInfo {
            username: user.username.clone(),
            password: password.to_owned(),
            message: "",
            auth: 1,
            status: "Active",
            exp_date: user.expires_at.map_or(i64::from(NEVER), |it| it / 1000).to_string(),
            is_trial: "0",
            active_cons: n_watched.to_string(),
            created_at: (user.joined_at / 1000).to_string(),
            max_connections: max_connections.to_string(),
            allowed_output_formats: AllowedFormats::from_user(user).iter().map(OutputFormat::name).collect(),
        };
        let server_info =
            ServerInfo::from_origin(&call.player_origin(), now_ms()).ok_or_else(Refusal::bug)?;
        Ok(Self { user_info, server_info })
    }

    pub(super) fn to_json(&self) -> Value {
        json!({ "user_info": self.user_info, "server_info": self.server_info })
    }
}

impl ServerInfo {
    /// Describes an address; `None` if it is none.
    fn from_origin(origin: &str, now_ms: i64) -> Option<Self> {
        let url = Url::parse(origin).ok()?;
        let port = url.port_or_known_default()?.to_string();
        let now = Timestamp::from_second(now_ms / 1000).ok()?;
        Some(Self {
            url: url.host_str()?.to_owned(),
            https_port: if url.scheme() == "https" { port.clone() } else { String::new() },
            port,
            server_protocol: url.scheme().to_owned(),
            rtmp_port: "0",
            timezone: "UTC",
            timestamp_now: now.as_second(),
            time_now: now.strftime("%Y-%m-%d %H:%M:%S").to_string(),
            process: true,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_server_is_described_by_the_parts_of_its_address() {
        for (origin, expected) in [
            ("http://nas:9191", ["http", "nas", "9191", ""]),
            ("http://tv.example", ["http", "tv.example", "80", ""]),
            ("https://tv.example/tv", ["https", "tv.example", "443", "443"]),
            ("https://tv.example:8443", ["https", "tv.example", "8443", "8443"]),
            ("http://[fd00::5]:9191", ["http", "[fd00::5]", "9191", ""]),
        ] {
            let it = ServerInfo::from_origin(origin, 1_767_225_599_999).unwrap();
            assert_eq!([&*it.server_protocol, &it.url, &it.port, &it.https_port], expected, "{origin}");
            assert_eq!((it.timestamp_now, &*it.time_now), (1_767_225_599, "2025-12-31 23:59:59"));
        }
    }
}
