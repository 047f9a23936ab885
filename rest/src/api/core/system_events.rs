//! `/api/core/system-events/`: recent events.

use domain::event::Event;
use resource_derive::{Query, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use serde_json::{Map, Value};
use server::reply::Refusal;
use uuid::Uuid;

use crate::context::RestCall;

/// Selects events.
#[derive(Debug, Query)]
pub(crate) struct SystemEventsQuery {
    /// Maximum number of events in the answer; values above 1000 are reduced to 1000.
    #[field(at_least = 1, example = "100")]
    limit: Option<usize>,
    /// Number of newest events to skip.
    #[field(at_least = 0, example = "0")]
    offset: Option<usize>,
    /// Selects events of one type.
    #[field(example = "channel_failover")]
    event_type: Option<String>,
}

/// Recent events since the start: the newest 200.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SystemEventsView {
    /// The newest event first.
    events: Vec<SystemEventView>,
    /// Number of events in this answer.
    #[field(example = "1")]
    count: usize,
    /// Number of matching events.
    #[field(example = "1")]
    total: usize,
    /// The requested offset.
    #[field(example = "0")]
    offset: usize,
    /// The applied limit.
    #[field(example = "100")]
    limit: usize,
}

/// An event.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SystemEventView {
    /// Number of the event since the start.
    #[field(example = "12")]
    id: u64,
    /// Event type.
    #[field(example = "channel_failover")]
    event_type: &'static str,
    /// Event type for people.
    #[field(example = "Channel Failover")]
    event_type_display: String,
    /// Time of the event.
    timestamp: Time,
    /// UUID of the channel.
    channel_id: Option<Uuid>,
    /// Name of the channel.
    #[field(example = "News")]
    channel_name: Option<String>,
    /// Further details, as sent to subscribers.
    details: Map<String, Value>,
}

/// Default number of events in an answer.
const LIMIT: usize = 100;
/// Maximum number of events in an answer.
const LIMIT_MAX: usize = 1_000;

pub(super) fn routes() -> Vec<Route> {
    vec![Route::get("/api/core/system-events/", ADMIN, "Lists recent events.", list)]
}

async fn list(call: Call, query: SystemEventsQuery) -> Result<SystemEventsView, Refusal> {
    let (limit, offset) = (query.limit.unwrap_or(LIMIT).min(LIMIT_MAX), query.offset.unwrap_or(0));
    let mut all = call.rest().events.history();
    if let Some(name) = query.event_type {
        all.retain(|it| it.1.body.name() == name);
    }
    let events = all.iter().skip(offset).take(limit).map(|(id, event)| view(*id, event));
    let events = events.collect::<Result<Vec<_>, _>>()?;
    Ok(SystemEventsView { count: events.len(), events, total: all.len(), offset, limit })
}

fn view(id: u64, event: &Event) -> Result<SystemEventView, Refusal> {
    let payload = serde_json::to_value(event);
    let payload = payload.map_err(|error| Refusal::fault(format_args!("write an event as JSON: {error}")))?;
    let mut details = match payload {
        Value::Object(members) => members,
        _ => Map::new(),
    };
    for said_already in ["event_type", "timestamp", "channel_id", "channel_name"] {
        details.remove(said_already);
    }
    let channel = event.body.channel();
    Ok(SystemEventView {
        id,
        event_type: event.body.name(),
        event_type_display: for_people(event.body.name()),
        timestamp: Time(event.at),
        channel_id: channel.map(|it| it.uuid),
        channel_name: channel.map(|it| it.name.clone()),
        details,
    })
}

/// Returns an event type for people: `m3u_refresh` becomes "M3U Refresh".
fn for_people(name: &str) -> String {
    let word = |word: &str| match word {
        "m3u" | "epg" => word.to_uppercase(),
        _ => {
            let mut letters = word.chars();
            letters.next().map(|it| it.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    };
    name.split('_').map(word).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use domain::event::{CallerRef, ChannelRef, EventBody, RefreshRef};
    use serde_json::json;

    use super::*;
    use crate::testing::Rest;

    const PATH: &str = "/api/core/system-events/";

    /// Three events; the second one is about a channel.
    async fn eventful() -> Rest {
        let rest = Rest::start().await;
        let attempt = CallerRef { user: None, ip: "192.0.2.7".parse().unwrap(), user_agent: "x".to_owned() };
        let channel = ChannelRef { uuid: Uuid::from_u128(7), name: "News".to_owned(), number: None };
        let error_message = "no stream answered in time".to_owned();
        let source = RefreshRef { id: 1, name: "list".to_owned() };
        let events = rest.system.events();
        let mut line = events.subscribe();
        for (at, body) in [
            EventBody::LoginFailed { attempt, reason: "wrong".to_owned() },
            EventBody::ChannelError { channel, error_message, stream: None },
            EventBody::EpgRefresh {
                source,
                channels: 2,
                programs_updated: 5,
                skipped_programs: 0,
                unmapped_channels: 0,
                is_unchanged: false,
                duration_seconds: 1,
            },
        ]
        .into_iter()
        .enumerate()
        {
            events.emit(Event { at: at as i64, body });
            line.recv().await.unwrap();
        }
        rest
    }

    #[tokio::test]
    async fn the_newest_events_come_first_with_their_channel_and_their_details() {
        let rest = eventful().await;
        let answer = rest.admin("GET", PATH, Value::Null).await.body;
        let ids: Vec<_> = answer["events"].as_array().unwrap().iter().map(|it| it["id"].as_u64()).collect();
        assert_eq!(ids, [Some(3), Some(2), Some(1)]);
        assert_eq!(answer["events"][0]["event_type_display"], "EPG Refresh");
        let error = &answer["events"][1];
        assert_eq!(error["details"]["error_message"], "no stream answered in time");
        assert_eq!(error["details"]["event_type"], Value::Null);
        let about = [&error["event_type"], &error["channel_id"], &error["channel_name"], &error["timestamp"]];
        let channel = Uuid::from_u128(7);
        let expected =
            [json!("channel_error"), json!(channel), json!("News"), json!("1970-01-01T00:00:00.001Z")];
        assert_eq!(about, expected.each_ref());
        assert_eq!(answer["events"][2]["channel_id"], Value::Null);
    }

    #[tokio::test]
    async fn a_window_of_the_events_reports_their_total() {
        let rest = eventful().await;
        for (query, ids, count, total, offset, limit) in [
            ("", vec![3, 2, 1], 3, 3, 0, 100),
            ("limit=2", vec![3, 2], 2, 3, 0, 2),
            ("limit=1&offset=1", vec![2], 1, 3, 1, 1),
            ("offset=9", vec![], 0, 3, 9, 100),
            ("limit=5000", vec![3, 2, 1], 3, 3, 0, 1000),
            ("event_type=login_failed", vec![1], 1, 1, 0, 100),
            ("event_type=unheard_of", vec![], 0, 0, 0, 100),
        ] {
            let answer = rest.admin("GET", &format!("{PATH}?{query}"), Value::Null).await.body;
            let shown: Vec<_> =
                answer["events"].as_array().unwrap().iter().map(|it| it["id"].clone()).collect();
            assert_eq!(shown, ids, "{query}");
            let numbers = [&answer["count"], &answer["total"], &answer["offset"], &answer["limit"]];
            assert_eq!(numbers, [&json!(count), &json!(total), &json!(offset), &json!(limit)], "{query}");
        }
    }

    #[tokio::test]
    async fn an_invalid_number_is_refused_by_name() {
        let rest = eventful().await;
        for (query, name) in [("limit=x", "limit"), ("limit=0", "limit"), ("offset=-1", "offset")] {
            let answer = rest.admin("GET", &format!("{PATH}?{query}"), Value::Null).await;
            assert_eq!(answer.status, 400, "{query}");
            assert!(answer.body[name][0].is_string(), "{}", answer.text);
        }
    }
}
