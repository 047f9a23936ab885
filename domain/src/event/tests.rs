//! One of each event, as its receiver sees it.

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
        EventBody::EpgRefresh { source: source(), programs_updated: 10, duration_seconds: 2 },
        EventBody::M3uRefresh {
            source: source(),
            streams_created: 1,
            streams_updated: 2,
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
    ]
}

fn payload(body: EventBody) -> Value {
    serde_json::to_value(Event { at: 1_000, body }).unwrap()
}

#[test]
fn there_are_fifteen_events_with_the_names_of_the_interface() {
    assert_eq!(all().iter().map(EventBody::name).collect::<Vec<_>>(), EventBody::NAMES);
}

#[test]
fn every_payload_is_flat_and_says_what_happened_and_when() {
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
fn no_payload_says_a_key_twice() {
    for body in all() {
        let text = serde_json::to_string(&Event { at: 0, body: body.clone() }).unwrap();
        let keys = payload(body).as_object().unwrap().len();
        assert_eq!(text.matches("\":").count(), keys, "{text}");
    }
}

#[test]
fn no_payload_holds_credentials_of_a_provider() {
    for body in all() {
        assert!(!payload(body.clone()).to_string().contains("secret"), "{body:?}");
        assert!(!format!("{body:?}").contains("secret"), "{body:?}");
    }
}

#[test]
fn every_group_has_the_fields_that_the_interface_promises() {
    let channel = ["channel_id", "channel_name", "channel_number", "stream_url", "profile_used"].as_slice();
    let client = ["channel_id", "channel_name", "client_ip", "user_agent", "connection_id"].as_slice();
    let refresh = ["source_name", "source_id", "programs_updated", "duration_seconds"].as_slice();
    for body in all() {
        let (texts, name) = (payload(body.clone()), body.name());
        let promised = match name {
            "client_connect" | "client_disconnect" => client,
            "recording_start" => {
                &["channel_id", "channel_name", "recording_id", "program_title", "file_path"]
            }
            "recording_end" => {
                &["recording_id", "program_title", "duration_seconds", "file_path", "file_size_bytes"]
            }
            "epg_refresh" | "m3u_refresh" => refresh,
            "login_failed" | "epg_blocked" | "m3u_blocked" => &["client_ip", "user_agent", "reason"],
            _ => channel,
        };
        for key in promised {
            let is_count = key.ends_with("_seconds")
                || key.ends_with("_bytes")
                || ["source_id", "programs_updated"].contains(key);
            assert!(if is_count { texts[key].is_u64() } else { texts[key].is_string() }, "{name}: {key}");
        }
    }
}

#[test]
fn a_failover_says_from_where_to_where_and_why() {
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
fn what_is_unknown_is_an_empty_text() {
    let channel = ChannelRef { number: None, ..channel() };
    let payload = payload(EventBody::ChannelError { channel, error_message: "no".to_owned(), stream: None });
    for key in ["channel_number", "stream_name", "stream_url", "provider_name", "profile_used"] {
        assert_eq!(payload[key], "", "{key}");
    }
    assert_eq!(payload["stream_id"], Value::Null);
}
