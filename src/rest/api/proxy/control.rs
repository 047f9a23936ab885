//! `/proxy/ts/stop`, `stop_client`, `next_stream`, `change_stream`: control of live channels.
//!
//! Each answer is sent after the action, and reports its result.

use actors::{ChannelStatus, StopOutcome, SwitchOutcome, SwitchTo, Target};
use domain::ids::StreamId;
use domain::stream::Stream;
use http::{Method, StatusCode};
use resource_derive::{Body, View};
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::{live, no_answer, not_live};
use crate::http::reply::Refusal;
use crate::rest::frame::access::ADMIN;
use crate::rest::frame::call::Call;
use crate::rest::frame::route::Route;

/// A stopped channel.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StoppedChannelView {
    /// Message for people.
    #[field(example = "Channel News was stopped.")]
    message: String,
    /// Always `stopped`.
    #[field(example = "stopped")]
    outcome: &'static str,
    /// UUID of the channel.
    channel_id: Uuid,
    /// Name of the channel.
    #[field(example = "News")]
    channel_name: String,
    /// State before the stop.
    #[field(example = "playing")]
    previous_state: &'static str,
    /// Number of clients. They get their last packets, and are disconnected within two seconds.
    #[field(example = "1")]
    client_count: usize,
}

/// A disconnected client.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StoppedClientView {
    /// Message for people.
    #[field(example = "Client 17 was ended.")]
    message: String,
    /// Always `stopped`.
    #[field(example = "stopped")]
    outcome: &'static str,
    /// UUID of the channel.
    channel_id: Uuid,
    /// Id of the client.
    #[field(example = "17")]
    client_id: String,
}

/// A channel that plays another stream.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct SwitchedChannelView {
    /// Message for people.
    #[field(example = "Channel News plays stream 8.")]
    message: String,
    /// `switched`, or `reopened` if the stream is the same as before.
    #[field(example = "switched")]
    outcome: &'static str,
    /// UUID of the channel.
    channel_id: Uuid,
    /// Name of the channel.
    #[field(example = "News")]
    channel_name: String,
    /// Id of the stream that played before.
    #[field(example = "7")]
    previous_stream_id: Option<StreamId>,
    /// Id of the stream that plays.
    #[field(example = "8")]
    stream_id: StreamId,
    /// Same as `stream_id`.
    #[field(example = "8")]
    new_stream_id: StreamId,
    /// Name of the stream.
    #[field(example = "News HD")]
    stream_name: Option<String>,
    /// URL of the stream, without parts that may be credentials.
    #[field(example = "http://provider.example/…")]
    url: Option<String>,
    /// Milliseconds without a stream; 0 if the old stream played until the new one started.
    #[field(example = "0")]
    gap_ms: u64,
}

/// Selects a client.
#[derive(Clone, Debug, Body)]
pub(crate) struct StopClient {
    /// Id of the client, from the status.
    #[field(chars_max = 255, example = "17")]
    client_id: String,
}

/// Selects a stream by id or URL. The id takes precedence.
#[derive(Clone, Debug, Body)]
pub(crate) struct ChangeStream {
    /// Id of a stream of the channel.
    #[field(example = "1")]
    stream_id: Option<Option<StreamId>>,
    /// Complete URL of a stream of the channel.
    #[field(example = "http://provider.example/live/7.ts")]
    url: Option<Option<String>>,
}

const STOP: &str = "/proxy/ts/stop/{uuid}";

pub(super) fn routes() -> Vec<Route> {
    const BUSY: &str = "Another switch of this channel is in progress.";
    const FAILED: &str = "The new stream does not play. The answer reports what plays instead.";
    let mut routes = Route::each(
        [Method::POST, Method::DELETE],
        STOP,
        ADMIN,
        "Stops a channel and disconnects its clients.",
        stop,
    );
    routes.extend([
        Route::post(
            "/proxy/ts/stop_client/{uuid}",
            ADMIN,
            "Disconnects one client of a channel.",
            stop_client,
        ),
        Route::post(
            "/proxy/ts/next_stream/{uuid}",
            ADMIN,
            "Switches a channel to its next stream.",
            next_stream,
        )
        .refuses(StatusCode::CONFLICT, BUSY)
        .refuses(StatusCode::CONFLICT, "The channel has no other stream that can be played.")
        .refuses(StatusCode::BAD_GATEWAY, FAILED),
        Route::post(
            "/proxy/ts/change_stream/{uuid}",
            ADMIN,
            "Switches a channel to another of its streams.",
            change_stream,
        )
        .refuses(StatusCode::BAD_REQUEST, "The stream does not belong to the channel, or cannot be played.")
        .refuses(StatusCode::CONFLICT, BUSY)
        .refuses(StatusCode::BAD_GATEWAY, FAILED),
    ]);
    routes
}

async fn stop(call: Call) -> Result<StoppedChannelView, Refusal> {
    let (target, before) = live(&call).await?;
    let switchboard = &call.app.switchboard;
    match switchboard.stop(target).await.map_err(no_answer)? {
        StopOutcome::Stopping => {}
        StopOutcome::NotLive => return Err(not_live(target.uuid())),
    }
    // The channel handles messages in order: once it answers, or has ended, it has stopped.
    switchboard.status(target).await.map_err(no_answer)?;
    Ok(StoppedChannelView {
        message: format!("Channel {} was stopped.", before.name),
        outcome: "stopped",
        channel_id: target.uuid(),
        channel_name: before.name,
        previous_state: before.state,
        client_count: before.clients.len(),
    })
}

async fn stop_client(call: Call, body: StopClient) -> Result<StoppedClientView, Refusal> {
    let (target, _) = live(&call).await?;
    let client_id = body.client_id;
    let is_gone = match client_id.parse() {
        Ok(id) => call.app.switchboard.kick(target, id).await.map_err(no_answer)?,
        Err(_) => false,
    };
    if !is_gone {
        return Err(Refusal::not_found(format!("The channel has no client {client_id}.")));
    }
    let message = format!("Client {client_id} was disconnected.");
    Ok(StoppedClientView { message, outcome: "stopped", channel_id: target.uuid(), client_id })
}

async fn next_stream(call: Call) -> Result<SwitchedChannelView, Refusal> {
    let (target, before) = live(&call).await?;
    let none = || {
        let detail = "The channel has no other stream that can be played.";
        Refusal::status(StatusCode::CONFLICT).with_detail(detail)
    };
    switch(&call, target, &before, SwitchTo::Next, none).await
}

async fn change_stream(call: Call, body: ChangeStream) -> Result<SwitchedChannelView, Refusal> {
    let wanted = (body.stream_id.flatten(), body.url.flatten());
    if let (None, None) = wanted {
        return Err(Refusal::bad_request("Either stream_id or url is required."));
    }
    let (target, before) = live(&call).await?;
    let (stream, field) = match wanted {
        (Some(id), _) => (Some(id), "stream_id"),
        (None, url) => (stream_at(&call, target, &url.unwrap_or_default())?, "url"),
    };
    let none = || Refusal::field(field, "This stream does not belong to the channel, or cannot be played.");
    switch(&call, target, &before, SwitchTo::Stream(stream.ok_or_else(none)?), none).await
}

/// Returns the stream of the channel with this URL. Other URLs are refused, because no account's slot belongs to them.
fn stream_at(call: &Call, target: Target, url: &str) -> Result<Option<StreamId>, Refusal> {
    let models = &call.app.models;
    let of_target = match target {
        Target::Stream(id) => vec![id],
        Target::Channel(uuid) => {
            let channels = models.channels.load();
            channels.one_by("uuid", uuid.as_bytes()).map(|it| it.streams.clone()).unwrap_or_default()
        }
        Target::Movie(_) | Target::Episode(_) | Target::Archive(_) | Target::Recording(_) => Vec::new(),
    };
    let streams = models.store.collection::<Stream>();
    for id in of_target {
        if streams.get(id.0)?.is_some_and(|it| it.url().expose() == url) {
            return Ok(Some(id));
        }
    }
    Ok(None)
}

async fn switch(
    call: &Call,
    target: Target,
    before: &ChannelStatus,
    to: SwitchTo,
    none: impl FnOnce() -> Refusal,
) -> Result<SwitchedChannelView, Refusal> {
    let switchboard = &call.app.switchboard;
    let uuid = target.uuid();
    let (stream, previous, gap_ms) = match switchboard.switch(target, to).await.map_err(no_answer)? {
        SwitchOutcome::Switched { stream, previous, gap_ms } => (stream, previous, gap_ms),
        SwitchOutcome::Failed { playing, reason } => return Err(failed(before, uuid, playing, &reason)),
        SwitchOutcome::Busy => {
            let detail = "Another switch of this channel is in progress.";
            return Err(Refusal::status(StatusCode::CONFLICT).with_detail(detail));
        }
        SwitchOutcome::NotLive => return Err(not_live(uuid)),
        SwitchOutcome::AtNode(node) => {
            let detail = format!("Node {node} has the source of this channel; switch it there.");
            return Err(Refusal::status(StatusCode::CONFLICT).with_detail(detail));
        }
        SwitchOutcome::NoSuchStream => return Err(none()),
    };
    // Gets the name of the new stream, which may have failed again since.
    let after = switchboard.status(target).await.map_err(no_answer)?;
    let stream_now = after.and_then(|it| it.stream).filter(|it| it.id == stream);
    Ok(SwitchedChannelView {
        message: format!("Channel {} plays stream {stream}.", before.name),
        outcome: if previous == Some(stream) { "reopened" } else { "switched" },
        channel_id: uuid,
        channel_name: before.name.clone(),
        previous_stream_id: previous,
        stream_id: stream,
        new_stream_id: stream,
        url: stream_now.as_ref().map(|it| it.url.to_string()),
        stream_name: stream_now.map(|it| it.name),
        gap_ms,
    })
}

/// 502: the new stream failed at its provider. The body reports what plays instead.
fn failed(before: &ChannelStatus, uuid: Uuid, playing: Option<StreamId>, reason: &str) -> Refusal {
    let instead = match playing {
        Some(stream) => format!("Stream {stream} plays."),
        None => "Nothing plays.".to_owned(),
    };
    Refusal::status(StatusCode::BAD_GATEWAY).with_body(json!({
        "detail": format!("The stream does not play: {reason}. {instead}"),
        "outcome": "failed",
        "reason": reason,
        "channel_id": uuid,
        "channel_name": before.name,
        "previous_stream_id": before.playing,
        "stream_id": playing,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::rest::frame::testing::Rest;

    #[tokio::test]
    async fn controls_of_an_idle_channel_are_not_found() {
        let rest = Rest::start().await;
        let uuid = Uuid::from_u128(1);
        for (method, action, body) in [
            ("POST", "stop", Value::Null),
            ("DELETE", "stop", Value::Null),
            ("POST", "stop_client", json!({ "client_id": "1" })),
            ("POST", "next_stream", Value::Null),
            ("POST", "change_stream", json!({ "stream_id": 1 })),
            ("POST", "change_stream", json!({ "url": "http://provider.example/1", "stream_id": null })),
        ] {
            let answer = rest.admin(method, &format!("/proxy/ts/{action}/{uuid}"), body).await;
            let detail = json!({ "detail": format!("Channel {uuid} is not playing.") });
            assert_eq!((answer.status, answer.body), (404, detail), "{method} {action}");
        }
    }

    #[tokio::test]
    async fn invalid_input_is_refused_before_the_channel_is_looked_up() {
        let rest = Rest::start().await;
        let check = async |action: &str, body: Value, expected: Value| {
            let path = format!("/proxy/ts/{action}/{}", Uuid::from_u128(1));
            let answer = rest.admin("POST", &path, body).await;
            assert_eq!((answer.status, answer.body), (400, expected), "{action}");
        };
        check("stop_client", json!({}), json!({ "client_id": ["This field is required."] })).await;
        check("change_stream", json!({}), json!({ "detail": "Either stream_id or url is required." })).await;
        let wrong = json!({ "stream_id": ["A valid integer is required."] });
        check("change_stream", json!({ "stream_id": "x" }), wrong).await;
    }
}
