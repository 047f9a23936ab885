//! `/proxy/ts/status`: what plays, who watches it and how it goes.

use actors::{ChannelOverview, ChannelStatus, ClientStatus, Target};
use domain::ids::{ProfileId, StreamId};
use storage::Models;
use uuid::Uuid;

use super::{live, no_answer};
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::view;
use crate::rest::frame::route::{ADMIN, Route};
use crate::rest::frame::value::Time;

view! {
    /// Everything that plays at one moment.
    LiveChannels {
        /// Channels, and streams that are looked at by themselves; by name.
        channels: Vec<LiveChannel>,
        /// How many there are.
        count: usize [example("1")],
    }
}

view! {
    /// A channel that is being watched.
    LiveChannel {
        /// The channel's uuid. A stream that is looked at by itself has one of its own.
        channel_id: Uuid,
        /// The channel's name.
        channel_name: String [example("News")],
        /// `idle`, `opening`, `playing`, `switching` to another stream while the old one plays, `resting` between two
        /// rounds of tries, `stopped`; `no_answer` when it did not say so in time, and then the rest is not known.
        state: &'static str [example("playing")],
        /// The stream that plays; null while none does.
        stream_id: Option<StreamId> [example("7")],
        /// Its name.
        stream_name: Option<String> [example("News HD")],
        /// Its address without what may be a credential.
        url: Option<String> [example("http://provider.example/…")],
        /// The account it plays from.
        account_name: Option<String> [example("provider")],
        /// The profile of that account.
        m3u_profile_id: Option<ProfileId> [example("1")],
        /// How it is handed on.
        stream_profile: Option<&'static str> [example("proxy")],
        /// When it was first asked for.
        started_at: Option<Time>,
        /// Seconds since then.
        uptime: Option<f64> [example("12.5")],
        /// Bytes taken from providers since then.
        bytes_in: Option<u64> [example("7500000")],
        /// Kilobits per second from providers, since the first stream played; null in the first second.
        avg_bitrate_kbps: Option<f64> [example("4800.5")],
        /// How often another stream took over after a loss.
        failovers: Option<u64> [example("0")],
        /// How often a stream was lost or did not begin.
        losses: Option<u64> [example("0")],
        /// Viewers who wait for a slot.
        waiting: Option<usize> [example("0")],
        /// How many watch.
        client_count: usize [example("1")],
        /// All of them.
        clients: Vec<LiveClient>,
    }
}

view! {
    /// Somebody who watches.
    LiveClient {
        /// What it is called by in order to end it.
        client_id: String [example("17")],
        /// Where it comes from.
        ip_address: String [example("192.0.2.7")],
        /// What the program calls itself; empty when it does not say.
        user_agent: String [example("VLC/3.0.20")],
        /// The user; `0` where nobody logged in.
        user_id: String [example("3")],
        /// The user's name; null where nobody logged in.
        username: Option<String> [example("anna")],
        /// When it came.
        connected_at: Time,
        /// What it is sent.
        output_format: &'static str [example("mpegts")],
        /// Bytes handed to its connection.
        bytes_sent: u64 [example("7500000")],
        /// How often it was so slow that it missed something.
        misses: u64 [example("0")],
        /// Bytes it missed.
        missed_bytes: u64 [example("0")],
    }
}

pub(super) fn routes() -> Vec<Route> {
    vec![
        Route::get("/proxy/ts/status", ADMIN, "Shows everything that plays.", list),
        Route::get("/proxy/ts/status/{uuid}", ADMIN, "Shows a channel that is being watched.", retrieve),
    ]
}

async fn list(call: Call) -> Result<LiveChannels, Refusal> {
    let all = call.app.switchboard.overview().await.map_err(no_answer)?;
    let channels: Vec<_> = all.iter().map(|it| view(&call.app.models, it)).collect();
    Ok(LiveChannels { count: channels.len(), channels })
}

async fn retrieve(call: Call) -> Result<LiveChannel, Refusal> {
    Ok(answered(live(&call).await?.1))
}

fn view(models: &Models, overview: &ChannelOverview) -> LiveChannel {
    match &overview.status {
        Some(status) => answered(status.clone()),
        None => unanswered(models, overview.target),
    }
}

fn answered(status: ChannelStatus) -> LiveChannel {
    let clients: Vec<_> = status.clients.into_iter().map(client).collect();
    let stream = status.stream;
    let since = status.since_first_play.map(|it| it.as_secs_f64()).filter(|it| *it >= 1.0);
    LiveChannel {
        channel_id: status.target.uuid(),
        channel_name: status.name,
        state: status.state,
        stream_id: status.playing,
        url: stream.as_ref().map(|it| it.url.to_string()),
        account_name: stream.as_ref().map(|it| it.account_name.clone()),
        stream_profile: stream.as_ref().map(|it| it.profile_used.name()),
        stream_name: stream.map(|it| it.name),
        m3u_profile_id: status.profile,
        started_at: Some(Time(status.started_at)),
        uptime: Some(tenths(status.uptime.as_secs_f64())),
        bytes_in: Some(status.bytes_in),
        avg_bitrate_kbps: since.map(|it| tenths(status.bytes_in as f64 * 8.0 / 1000.0 / it)),
        failovers: Some(status.n_failovers),
        losses: Some(status.n_losses),
        waiting: Some(status.n_waiting),
        client_count: clients.len(),
        clients,
    }
}

fn client(client: ClientStatus) -> LiveClient {
    LiveClient {
        client_id: client.id.to_string(),
        ip_address: client.address.to_string(),
        user_agent: client.agent,
        user_id: client.user_id.map_or_else(|| "0".to_owned(), |it| it.to_string()),
        username: client.user,
        connected_at: Time(client.joined_at),
        output_format: "mpegts",
        bytes_sent: client.bytes,
        misses: client.misses,
        missed_bytes: client.missed_bytes,
    }
}

/// What is known of a channel without asking it.
fn unanswered(models: &Models, target: Target) -> LiveChannel {
    let uuid = target.uuid();
    let channels = models.channels.load();
    let name = channels.one_by("uuid", uuid.as_bytes()).map(|it| it.name.clone());
    LiveChannel {
        channel_id: uuid,
        channel_name: name.unwrap_or_else(|| target.to_string()),
        state: "no_answer",
        stream_id: None,
        stream_name: None,
        url: None,
        account_name: None,
        m3u_profile_id: None,
        stream_profile: None,
        started_at: None,
        uptime: None,
        bytes_in: None,
        avg_bitrate_kbps: None,
        failovers: None,
        losses: None,
        waiting: None,
        client_count: 0,
        clients: Vec::new(),
    }
}

fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use domain::channel::Channel;
    use domain::event::StreamRef;
    use domain::ids::{ChannelId, UserId};
    use domain::source_url::SourceUrl;
    use domain::stream_profile::Delivery;
    use serde_json::{Value, json};

    use super::*;
    use crate::rest::frame::testing::{Rest, SECRET};

    fn status() -> ChannelStatus {
        ChannelStatus {
            target: Target::Channel(Uuid::from_u128(1)),
            uuid: Uuid::from_u128(1),
            name: "News".to_owned(),
            state: "playing",
            playing: Some(StreamId(7)),
            stream: Some(StreamRef {
                id: StreamId(7),
                name: "News HD".to_owned(),
                url: SourceUrl::new(format!("http://anna:{SECRET}@provider.example/live/{SECRET}/7.ts")),
                profile_used: Delivery::Proxy,
                account_name: "provider".to_owned(),
            }),
            profile: Some(ProfileId(2)),
            started_at: 0,
            uptime: Duration::from_millis(12_340),
            since_first_play: Some(Duration::from_secs(10)),
            n_losses: 3,
            n_failovers: 1,
            bytes_in: 1_250_000,
            ring_bytes: 0,
            clients: vec![ClientStatus {
                id: 17,
                address: "192.0.2.7".parse().unwrap(),
                agent: "VLC".to_owned(),
                user: Some("anna".to_owned()),
                user_id: Some(UserId(3)),
                joined_at: 1_000,
                watching: Duration::from_secs(1),
                bytes: 99,
                missed_bytes: 5,
                misses: 1,
            }],
            n_waiting: 0,
        }
    }

    #[test]
    fn a_live_channel_is_shown_with_its_clients_and_without_a_credential() {
        let shown = serde_json::to_value(answered(status())).unwrap();
        assert!(!shown.to_string().contains(SECRET), "{shown}");
        let expected = json!({
            "channel_id": Uuid::from_u128(1),
            "channel_name": "News",
            "state": "playing",
            "stream_id": 7,
            "stream_name": "News HD",
            "url": "http://provider.example/…",
            "account_name": "provider",
            "m3u_profile_id": 2,
            "stream_profile": "proxy",
            "started_at": "1970-01-01T00:00:00.000Z",
            "uptime": 12.3,
            "bytes_in": 1_250_000,
            "avg_bitrate_kbps": 1000.0,
            "failovers": 1,
            "losses": 3,
            "waiting": 0,
            "client_count": 1,
            "clients": [{
                "client_id": "17",
                "ip_address": "192.0.2.7",
                "user_agent": "VLC",
                "user_id": "3",
                "username": "anna",
                "connected_at": "1970-01-01T00:00:01.000Z",
                "output_format": "mpegts",
                "bytes_sent": 99,
                "misses": 1,
                "missed_bytes": 5,
            }],
        });
        assert_eq!(shown, expected);
    }

    #[test]
    fn what_is_not_known_is_null() {
        let quiet =
            ChannelStatus { stream: None, playing: None, profile: None, since_first_play: None, ..status() };
        let shown = serde_json::to_value(answered(quiet)).unwrap();
        for key in ["stream_id", "stream_name", "url", "m3u_profile_id", "stream_profile", "avg_bitrate_kbps"]
        {
            assert_eq!(shown[key], Value::Null, "{key}");
        }
    }

    #[tokio::test]
    async fn a_channel_that_does_not_answer_is_shown_by_its_name_and_as_such() {
        let rest = Rest::start().await;
        let uuid = Uuid::from_u128(1);
        rest.put([Channel::new(ChannelId(1), uuid, "News", 0)]).await;
        let shown = view(&rest.models, &ChannelOverview { target: Target::Channel(uuid), status: None });
        let shown = serde_json::to_value(shown).unwrap();
        assert_eq!((&shown["channel_id"], &shown["channel_name"]), (&json!(uuid), &json!("News")));
        assert_eq!((&shown["state"], &shown["uptime"]), (&json!("no_answer"), &Value::Null));
        assert_eq!((&shown["client_count"], &shown["clients"]), (&json!(0), &json!([])));
    }

    #[tokio::test]
    async fn where_nothing_plays_the_list_is_empty_and_a_channel_is_not_found() {
        let rest = Rest::start().await;
        for path in ["/proxy/ts/status", "/proxy/ts/status/"] {
            let answer = rest.admin("GET", path, Value::Null).await;
            assert_eq!((answer.status, answer.body), (200, json!({ "channels": [], "count": 0 })), "{path}");
        }
        let uuid = Uuid::from_u128(1);
        let answer = rest.admin("GET", &format!("/proxy/ts/status/{uuid}"), Value::Null).await;
        let detail = json!({ "detail": format!("Nobody watches channel {uuid}.") });
        assert_eq!((answer.status, answer.body), (404, detail));
        let answer = rest.admin("GET", "/proxy/ts/status/seven", Value::Null).await;
        assert_eq!((answer.status, answer.body), (404, json!({ "detail": "Not found." })));
        let answer = rest.admin("POST", "/proxy/ts/status", Value::Null).await;
        assert_eq!((answer.status, &answer.headers["allow"]), (405, &"GET, HEAD, OPTIONS".parse().unwrap()));
    }
}
