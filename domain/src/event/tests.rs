//! One of each event, as its subscriber receives it.

use serde_json::{Value, json};

use super::*;

fn channel() -> ChannelRef {
    ChannelRef { uuid: Uuid::from_u128(7), name: "News".to_owned(), number: "4.1".parse().ok() }
}

fn stream(id: u32) -> StreamRef {
    StreamRef {
        id: StreamId(id),
        name: format!("News {id}"),
        url: SourceUrl::new(format!("http://user:secret@tv.example:8080/live/secret/{id}.ts?secret")),
        profile_used: Delivery::Proxy,
        account_name: "Provider".to_owned(),
    }
}

fn client() -> ClientRef {
    ClientRef { connection_id: u64::MAX, ip: [192, 0, 2, 1].into(), user_agent: "VLC".to_owned(), user: None }
}

fn caller() -> CallerRef {
    CallerRef { user: Some("guest".to_owned()), ip: [192, 0, 2, 1].into(), user_agent: "VLC".to_owned() }
}

fn all() -> Vec<EventBody> {
    let source = || RefreshRef { id: 3, name: "Provider".to_owned() };
    let recording =
        || RecordingRef { id: 5, program_title: "Film".to_owned(), file_path: "/data/film.ts".to_owned() };
    let (cause, reason) = (|| "stall".to_owned(), || "closed".to_owned());
    vec![
        EventBody::ChannelStart { channel: channel(), stream: stream(1) },
        EventBody::ChannelStop {
            channel: channel(),
            stream: Some(stream(1)),
            reason: reason(),
            runtime_seconds: 60,
            total_bytes: 9,
        },
        EventBody::ChannelReconnect { channel: channel(), stream: stream(1), cause: cause(), gap_ms: 40 },
        EventBody::ChannelError {
            channel: channel(),
            error_message: "nothing plays".to_owned(),
            stream: None,
        },
        EventBody::ChannelFailover {
            channel: channel(),
            from: stream(1),
            to: stream(2),
            cause: cause(),
            gap_ms: 40,
        },
        EventBody::StreamSwitch {
            channel: channel(),
            from: stream(1),
            to: stream(2),
            cause: cause(),
            gap_ms: 0,
        },
        EventBody::RecordingStart { channel: channel(), recording: recording() },
        EventBody::RecordingEnd {
            channel: channel(),
            recording: recording(),
            duration_seconds: 60,
            file_size_bytes: 9,
            interrupted: false,
        },
        EventBody::EpgRefresh {
            source: source(),
            channels: 3,
            programs_updated: 10,
            skipped_programs: 1,
            unmapped_channels: 2,
            is_unchanged: false,
            duration_seconds: 2,
        },
        EventBody::M3uRefresh {
            source: source(),
            total_processed: 9,
            streams_created: 1,
            streams_updated: 2,
            streams_stale: 4,
            streams_deleted: 3,
            duration_seconds: 2,
        },
        EventBody::ClientConnect { channel: channel(), client: client() },
        EventBody::ClientDisconnect {
            channel: channel(),
            client: client(),
            reason: reason(),
            duration_seconds: 60,
            bytes_sent: 9,
        },
        EventBody::LoginFailed { attempt: caller(), reason: reason() },
        EventBody::EpgBlocked { attempt: caller(), reason: reason() },
        EventBody::M3uBlocked { attempt: caller(), reason: reason() },
        EventBody::AccountExpiring {
            account: source(),
            profile_id: 3,
            profile_name: "second".to_owned(),
            expires_at: 1_893_456_000_000,
            days: 7,
        },
        EventBody::StoreStopped { reason: reason() },
        EventBody::StoreResumed,
        EventBody::VodStart { vod: vod() },
        EventBody::VodStop { vod: vod(), duration_seconds: 60, bytes_sent: 9 },
        EventBody::ComskipStatus {
            channel: channel(),
            recording: recording(),
            status: "completed",
            detail: "2 commercials".to_owned(),
        },
    ]
}

fn vod() -> VodRef {
    VodRef {
        session: 7,
        uuid: Uuid::from_u128(7),
        is_episode: false,
        name: "Film".to_owned(),
        ip: client().ip,
        user_agent: "VLC/3.0".to_owned(),
        user: None,
    }
}

fn payload(body: EventBody) -> Value {
    serde_json::to_value(Event { at: 1_000, body }).unwrap()
}

#[test]
fn the_fifteen_events_have_the_names_of_the_api() {
    let names: Vec<_> = all().iter().map(EventBody::name).collect();
    assert_eq!(names[..15], EventBody::NAMES);
    assert_eq!(
        names[15..],
        ["account_expiring", "store_stopped", "store_resumed", "vod_start", "vod_stop", "comskip_status"]
    );
}

#[test]
fn every_payload_is_flat_and_has_event_type_and_timestamp() {
    for body in all() {
        let name = body.name();
        let payload = payload(body);
        assert_eq!(payload["event_type"], name);
        assert_eq!(payload["timestamp"], "1970-01-01T00:00:01.000Z");
        let is_flat = |it: &Value| !it.is_object() && !it.is_array();
        assert!(payload.as_object().unwrap().values().all(is_flat), "{payload}");
    }
}

#[test]
fn no_payload_repeats_a_key() {
    for body in all() {
        let text = serde_json::to_string(&Event { at: 0, body: body.clone() }).unwrap();
        let keys = payload(body).as_object().unwrap().len();
        assert_eq!(text.matches("\":").count(), keys, "{text}");
    }
}

#[test]
fn no_payload_contains_credentials_of_a_provider() {
    for body in all() {
        assert!(!payload(body.clone()).to_string().contains("secret"), "{body:?}");
        assert!(!format!("{body:?}").contains("secret"), "{body:?}");
    }
}

/// The keys of an event besides `event_type` and `timestamp`, with their types: `#` is an integer, `?` may be `null`,
/// `!` is a boolean, all others are texts. The first line of each is what the API promises.
fn keys_of(name: &str) -> [&'static str; 2] {
    const CHANNEL: &str = "channel_id channel_name channel_number stream_url profile_used";
    const STREAM: &str = "stream_id# stream_name channel_url provider_name";
    const SWITCH: &str = "stream_id# stream_name channel_url provider_name new_url previous_stream_id# \
                          previous_stream_name previous_stream_url previous_provider_name reason gap_ms#";
    const CLIENT: &str = "channel_id channel_name client_ip user_agent connection_id";
    const RECORDING: &str = "channel_id channel_name recording_id program_title duration_seconds# file_path \
                             file_size_bytes#";
    const VOD: &str = "content_type content_name content_uuid client_ip user_agent client_id username";
    const REFRESH: &str = "source_name source_id# programs_updated# duration_seconds#";
    match name {
        "channel_start" => [CHANNEL, STREAM],
        "channel_stop" => [
            CHANNEL,
            "stream_id# stream_name channel_url provider_name reason duration_seconds# runtime# total_bytes#",
        ],
        "channel_reconnect" => [CHANNEL, "stream_id# stream_name channel_url provider_name reason gap_ms#"],
        "channel_error" => [
            "channel_id channel_name channel_number stream_url profile_used error_message",
            "stream_id? stream_name channel_url provider_name",
        ],
        "channel_failover" | "stream_switch" => [CHANNEL, SWITCH],
        "recording_start" => [RECORDING, "channel_number"],
        "recording_end" => [RECORDING, "channel_number bytes_written# interrupted!"],
        "epg_refresh" => [REFRESH, "programs# channels# skipped_programs# unmapped_channels# unchanged!"],
        "m3u_refresh" => [
            REFRESH,
            "account_name elapsed_time# total_processed# streams_created# streams_updated# streams_stale# \
             streams_deleted#",
        ],
        "client_connect" => [CLIENT, "channel_number client_id username"],
        "client_disconnect" => {
            [CLIENT, "channel_number client_id username reason duration_seconds# duration# bytes_sent#"]
        }
        "login_failed" | "epg_blocked" | "m3u_blocked" => ["client_ip user_agent", "user reason"],
        "account_expiring" => ["", "account_id# account_name profile_id# profile_name exp_date days#"],
        "vod_start" => ["", VOD],
        "vod_stop" => [VOD, "duration_seconds# bytes_sent#"],
        "comskip_status" => {
            ["", "channel_id channel_name channel_number recording_id program_title status detail"]
        }
        "store_stopped" => ["", "reason"],
        "store_resumed" => ["", ""],
        _ => panic!("no such event: {name}"),
    }
}

#[test]
fn every_event_has_the_keys_of_the_api_and_those_of_similar_services() {
    for body in all() {
        let name = body.name();
        let mut payload = payload(body);
        let members = payload.as_object_mut().unwrap();
        members.remove("event_type");
        members.remove("timestamp");
        for key in keys_of(name).iter().flat_map(|it| it.split_whitespace()) {
            let is = |key: &str, fits: fn(&Value) -> bool| (key.to_owned(), fits);
            let (key, fits) = match key.split_at(key.len() - 1) {
                (key, "#") => is(key, Value::is_u64),
                (key, "?") => is(key, Value::is_null),
                (key, "!") => is(key, Value::is_boolean),
                _ => is(key, Value::is_string),
            };
            let value = members.remove(&key).unwrap_or_else(|| panic!("{name} has no {key}"));
            assert!(fits(&value), "{name}: {key} is {value}");
        }
        assert!(members.is_empty(), "{name} has more keys: {members:?}");
    }
}

#[test]
fn a_failover_contains_old_stream_new_stream_and_cause() {
    let body = EventBody::ChannelFailover {
        channel: channel(),
        from: stream(1),
        to: stream(2),
        cause: "stall".to_owned(),
        gap_ms: 40,
    };
    assert_eq!(
        payload(body),
        json!({
            "event_type": "channel_failover",
            "timestamp": "1970-01-01T00:00:01.000Z",
            "channel_id": "00000000-0000-0000-0000-000000000007",
            "channel_name": "News",
            "channel_number": "4.1",
            "stream_id": 2,
            "stream_name": "News 2",
            "stream_url": "http://tv.example:8080/…",
            "channel_url": "http://tv.example:8080/…",
            "provider_name": "Provider",
            "profile_used": "proxy",
            "new_url": "http://tv.example:8080/…",
            "previous_stream_id": 1,
            "previous_stream_name": "News 1",
            "previous_stream_url": "http://tv.example:8080/…",
            "previous_provider_name": "Provider",
            "reason": "stall",
            "gap_ms": 40,
        })
    );
}

#[test]
fn unknown_values_are_empty_texts() {
    let channel = ChannelRef { number: None, ..channel() };
    let payload = payload(EventBody::ChannelError { channel, error_message: "no".to_owned(), stream: None });
    for key in ["channel_number", "stream_name", "stream_url", "provider_name", "profile_used"] {
        assert_eq!(payload[key], "", "{key}");
    }
    assert_eq!(payload["stream_id"], Value::Null);
}
