//! One of each event, as its subscriber receives it.

use serde_json::{Value, json};

use super::sample::{channel, stream};
use super::*;

fn payload(body: EventBody) -> Value {
    serde_json::to_value(Event { at: 1_000, body }).unwrap()
}

#[test]
fn the_events_of_integrations_have_the_names_of_the_api() {
    let names: Vec<_> = EventBody::samples().iter().map(EventBody::name).collect();
    let (of_integrations, rest) = names.split_at(EventBody::NAMES.len());
    assert_eq!(of_integrations, EventBody::NAMES);
    let others = [
        "account_expiring",
        "user_expiring",
        "store_stopped",
        "store_resumed",
        "comskip_status",
        "restore_pending",
        "stream_lacking",
        "account_replaced",
    ];
    assert_eq!(rest, others);
}

#[test]
fn every_payload_is_flat_and_has_event_type_and_timestamp() {
    for body in EventBody::samples() {
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
    for body in EventBody::samples() {
        let text = serde_json::to_string(&Event { at: 0, body: body.clone() }).unwrap();
        let keys = payload(body).as_object().unwrap().len();
        assert_eq!(text.matches("\":").count(), keys, "{text}");
    }
}

#[test]
fn no_payload_contains_credentials_of_a_provider() {
    for body in EventBody::samples() {
        assert!(!payload(body.clone()).to_string().contains("secret"), "{body:?}");
        assert!(!format!("{body:?}").contains("secret"), "{body:?}");
    }
}

/// Every address that a payload has without its login has a whole one for targets that are trusted, and nothing else has.
#[test]
fn each_address_of_a_payload_has_its_whole_form() {
    let mut n_addresses = 0;
    for body in EventBody::samples() {
        let (addresses, payload) = (body.addresses(), payload(body));
        let is_cut = |it: &&String| payload[it.as_str()].as_str().is_some_and(|it| it.ends_with("/…"));
        let mut cut: Vec<&String> = payload.as_object().unwrap().keys().filter(is_cut).collect();
        cut.sort_unstable();
        assert_eq!(addresses.keys().collect::<Vec<_>>(), cut, "{payload}");
        assert!(addresses.values().all(|it| it.expose().contains("user:secret@")));
        assert!(!format!("{addresses:?}").contains("secret@"));
        n_addresses += cut.len();
    }
    assert!(n_addresses > 10);
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
        "stream_lacking" => [CHANNEL, "stream_id# stream_name channel_url provider_name reason"],
        "channel_error" => [
            "channel_id channel_name channel_number stream_url profile_used error_message",
            "stream_id? stream_name channel_url provider_name",
        ],
        "channel_failover" | "stream_switch" => [CHANNEL, SWITCH],
        "recording_start" => [RECORDING, "channel_number file_path_changes!"],
        "recording_ready" => [RECORDING, "channel_number file_path_changes! failed_work"],
        "recording_failed" => [RECORDING, "channel_number file_path_changes! reason"],
        "recording_end" => {
            [RECORDING, "channel_number file_path_changes! bytes_written# interrupted! reason"]
        }
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
        "epg_error" | "m3u_error" => ["", "source_name source_id# status reason"],
        "user_expiring" => ["", "user_id# username exp_date days#"],
        "vod_start" => ["", VOD],
        "vod_stop" => [VOD, "duration_seconds# bytes_sent#"],
        "comskip_status" => {
            ["", "channel_id channel_name channel_number recording_id program_title status detail"]
        }
        "store_stopped" => ["", "reason"],
        "store_resumed" => ["", ""],
        "restore_pending" => ["", "backup restarts_now!"],
        "account_replaced" => [
            "",
            "account_id# account_name other_account_id# other_account_name streams# channels# streams_left#",
        ],
        "node_state" => ["", "node state"],
        "account_full" => ["", "account_name wanted max_streams# reason"],
        "stream_unhealthy" => {
            ["", "stream_id# stream_name stream_url channel_url provider_name profile_used score# reason"]
        }
        "disk_low" => ["", "folder available_bytes#"],
        "backup_done" => ["", "backup size_bytes# scheduled!"],
        "backup_failed" => ["", "reason scheduled!"],
        "channel_created" | "channel_changed" | "channel_removed" => {
            ["", "count# ids channel_id channel_name channel_number"]
        }
        "user_login" => ["", "user client_ip user_agent"],
        "plugin_run" => ["", "plugin action cause status duration_seconds#"],
        "viewing_ended" => ["", "user_id# username reason streams#"],
        _ => panic!("no such event: {name}"),
    }
}

#[test]
fn every_event_has_the_keys_of_the_api_and_those_of_similar_services() {
    for body in EventBody::samples() {
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
fn one_change_of_many_channels_is_one_event_with_their_ids() {
    let named = |id: u32| (ChannelId(id), ChannelRef { name: format!("Channel {id}"), ..channel() });
    let of =
        |ids: std::ops::Range<u32>| EventBody::ChannelRemoved { channels: ChannelsRef::new(ids.map(named)) };
    let several = of(1..4);
    assert_eq!(several.summary(), "3 channels were removed.");
    let several = payload(several);
    assert_eq!(
        (&several["count"], &several["ids"], &several["channel_name"]),
        (&json!(3), &json!("1,2,3"), &json!(""))
    );
    let one = payload(of(5..6));
    assert_eq!((&one["ids"], &one["channel_name"]), (&json!("5"), &json!("Channel 5")));
    let many = payload(of(0..5_000));
    assert_eq!(
        (&many["count"], many["ids"].as_str().unwrap().split(',').count()),
        (&json!(5_000), CHANNEL_IDS_MAX)
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

#[test]
fn every_event_has_a_sentence() {
    let sentences: Vec<String> = EventBody::samples().iter().map(EventBody::summary).collect();
    for sentence in &sentences {
        assert!(sentence.starts_with(char::is_uppercase) && sentence.ends_with('.'), "{sentence}");
        assert!(!sentence.contains("secret"), "{sentence}");
    }
    assert_eq!(sentences[0], "News plays \"News 1\" of Provider.");
    assert_eq!(sentences[7], "The recording of \"Film\" on News is complete.");
    assert_eq!(sentences[12], "The login of guest from 192.0.2.1 failed: closed.");
}
