//! `/proxy/ts/stop`, `stop_client`, `next_stream`, `change_stream`: control over what plays.
//!
//! Each is answered after it happened, and says what happened.

use actors::{ChannelStatus, StopOutcome, SwitchOutcome, SwitchTo, Target};
use domain::ids::StreamId;
use domain::stream::Stream;
use http::StatusCode;
use serde_json::json;
use uuid::Uuid;

use super::{live, no_answer, not_live};
use crate::http::reply::Refusal;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::{body, view};
use crate::rest::frame::route::{ADMIN, Route};

view! {
    /// A channel that was stopped.
    StoppedChannel {
        /// For people.
        message: String [example("Channel News was stopped.")],
        /// Always `stopped`.
        outcome: &'static str [example("stopped")],
        /// The channel's uuid.
        channel_id: Uuid,
        /// The channel's name.
        channel_name: String [example("News")],
        /// Its state before.
        previous_state: &'static str [example("playing")],
        /// How many watched. They get their last packets, and within two seconds their end.
        client_count: usize [example("1")],
    }
}

view! {
    /// A client that was ended.
    StoppedClient {
        /// For people.
        message: String [example("Client 17 was ended.")],
        /// Always `stopped`.
        outcome: &'static str [example("stopped")],
        /// The channel's uuid.
        channel_id: Uuid,
        /// The client.
        client_id: String [example("17")],
    }
}

view! {
    /// A channel that plays another stream.
    SwitchedChannel {
        /// For people.
        message: String [example("Channel News plays stream 8.")],
        /// `switched`, or `reopened` where the stream is the one that played before.
        outcome: &'static str [example("switched")],
        /// The channel's uuid.
        channel_id: Uuid,
        /// The channel's name.
        channel_name: String [example("News")],
        /// The stream that played before.
        previous_stream_id: Option<StreamId> [example("7")],
        /// The stream that plays.
        stream_id: StreamId [example("8")],
        /// The same under another name.
        new_stream_id: StreamId [example("8")],
        /// Its name.
        stream_name: Option<String> [example("News HD")],
        /// Its address without what may be a credential.
        url: Option<String> [example("http://provider.example/…")],
        /// Milliseconds in which nothing played; 0 where the old stream played until the new one did.
        gap_ms: u64 [example("0")],
    }
}

body! {
    /// Whom to end.
    StopClient {
        /// As the status calls it.
        client_id: String [required(), chars_max(255), example("17")],
    }
}

body! {
    /// Which stream to play. One of the two; the id counts where both are there.
    ChangeStream {
        /// A stream of the channel.
        stream_id: Option<StreamId> [example("1")],
        /// The address of a stream of the channel, whole.
        url: Option<String> [example("http://provider.example/live/7.ts")],
    }
}

const STOP: &str = "/proxy/ts/stop/{uuid}";

pub(super) fn routes() -> Vec<Route> {
    const BUSY: &str = "Another switch of this channel is under way.";
    const FAILED: &str = "The new stream does not play; the answer says what does.";
    vec![
        Route::post(STOP, ADMIN, "Ends a channel and all who watch it.", stop),
        Route::delete(STOP, ADMIN, "Ends a channel and all who watch it.", stop),
        Route::post("/proxy/ts/stop_client/{uuid}", ADMIN, "Ends one client of a channel.", stop_client),
        Route::post(
            "/proxy/ts/next_stream/{uuid}",
            ADMIN,
            "Plays the next stream of a channel.",
            next_stream,
        )
        .refuses(StatusCode::CONFLICT, BUSY)
        .refuses(StatusCode::CONFLICT, "The channel has no stream that could be played.")
        .refuses(StatusCode::BAD_GATEWAY, FAILED),
        Route::post("/proxy/ts/change_stream/{uuid}", ADMIN, "Plays a stream of a channel.", change_stream)
            .refuses(StatusCode::BAD_REQUEST, "The channel has no such stream, or none that could be played.")
            .refuses(StatusCode::CONFLICT, BUSY)
            .refuses(StatusCode::BAD_GATEWAY, FAILED),
    ]
}

async fn stop(call: Call) -> Result<StoppedChannel, Refusal> {
    let (target, before) = live(&call).await?;
    let switchboard = &call.app.switchboard;
    match switchboard.stop(target).await.map_err(no_answer)? {
        StopOutcome::Stopping => {}
        StopOutcome::NotLive => return Err(not_live(target.uuid())),
    }
    // It answers in turn: once it does, or is gone, it has stopped.
    switchboard.status(target).await.map_err(no_answer)?;
    Ok(StoppedChannel {
        message: format!("Channel {} was stopped.", before.name),
        outcome: "stopped",
        channel_id: target.uuid(),
        channel_name: before.name,
        previous_state: before.state,
        client_count: before.clients.len(),
    })
}

async fn stop_client(call: Call, body: StopClient) -> Result<StoppedClient, Refusal> {
    let (target, _) = live(&call).await?;
    let client_id = body.client_id.unwrap_or_default();
    let is_gone = match client_id.parse() {
        Ok(id) => call.app.switchboard.kick(target, id).await.map_err(no_answer)?,
        Err(_) => false,
    };
    if !is_gone {
        return Err(Refusal::not_found(format!("The channel has no client {client_id}.")));
    }
    let message = format!("Client {client_id} was ended.");
    Ok(StoppedClient { message, outcome: "stopped", channel_id: target.uuid(), client_id })
}

async fn next_stream(call: Call) -> Result<SwitchedChannel, Refusal> {
    let (target, before) = live(&call).await?;
    let none = || {
        let detail = "The channel has no stream that could be played.";
        Refusal::status(StatusCode::CONFLICT).with_detail(detail)
    };
    switch(&call, target, &before, SwitchTo::Next, none).await
}

async fn change_stream(call: Call, body: ChangeStream) -> Result<SwitchedChannel, Refusal> {
    let wanted = (body.stream_id.flatten(), body.url.flatten());
    if let (None, None) = wanted {
        return Err(Refusal::bad_request("Either stream_id or url has to be given."));
    }
    let (target, before) = live(&call).await?;
    let (stream, field) = match wanted {
        (Some(id), _) => (Some(id), "stream_id"),
        (None, url) => (stream_at(&call, target, &url.unwrap_or_default())?, "url"),
    };
    let none = || Refusal::field(field, "This is no stream of this channel that could be played.");
    switch(&call, target, &before, SwitchTo::Stream(stream.ok_or_else(none)?), none).await
}

/// The stream of what is watched that has this address. Of any other address nobody knows with whose slot it is
/// opened.
fn stream_at(call: &Call, target: Target, url: &str) -> Result<Option<StreamId>, Refusal> {
    let models = &call.app.models;
    let of_target = match target {
        Target::Stream(id) => vec![id],
        Target::Channel(uuid) => {
            let channels = models.channels.load();
            channels.one_by("uuid", uuid.as_bytes()).map(|it| it.streams.clone()).unwrap_or_default()
        }
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
) -> Result<SwitchedChannel, Refusal> {
    let switchboard = &call.app.switchboard;
    let uuid = target.uuid();
    let (stream, previous, gap_ms) = match switchboard.switch(target, to).await.map_err(no_answer)? {
        SwitchOutcome::Switched { stream, previous, gap_ms } => (stream, previous, gap_ms),
        SwitchOutcome::Failed { playing, reason } => return Err(failed(before, uuid, playing, &reason)),
        SwitchOutcome::Busy => {
            let detail = "Another switch of this channel is under way.";
            return Err(Refusal::status(StatusCode::CONFLICT).with_detail(detail));
        }
        SwitchOutcome::NotLive => return Err(not_live(uuid)),
        SwitchOutcome::NoSuchStream => return Err(none()),
    };
    // For its name: it is new to whoever asked. It may have failed again since.
    let after = switchboard.status(target).await.map_err(no_answer)?;
    let shown = after.and_then(|it| it.stream).filter(|it| it.id == stream);
    Ok(SwitchedChannel {
        message: format!("Channel {} plays stream {stream}.", before.name),
        outcome: if previous == Some(stream) { "reopened" } else { "switched" },
        channel_id: uuid,
        channel_name: before.name.clone(),
        previous_stream_id: previous,
        stream_id: stream,
        new_stream_id: stream,
        url: shown.as_ref().map(|it| it.url.to_string()),
        stream_name: shown.map(|it| it.name),
        gap_ms,
    })
}

/// 502: the provider of the new stream is to blame, and what plays instead is said.
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
    async fn nothing_is_done_to_a_channel_that_nobody_watches() {
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
            let detail = json!({ "detail": format!("Nobody watches channel {uuid}.") });
            assert_eq!((answer.status, answer.body), (404, detail), "{method} {action}");
        }
    }

    #[tokio::test]
    async fn what_is_missing_or_wrong_is_said_before_anything_is_looked_for() {
        let rest = Rest::start().await;
        let check = async |action: &str, body: Value, expected: Value| {
            let path = format!("/proxy/ts/{action}/{}", Uuid::from_u128(1));
            let answer = rest.admin("POST", &path, body).await;
            assert_eq!((answer.status, answer.body), (400, expected), "{action}");
        };
        check("stop_client", json!({}), json!({ "client_id": ["This field is required."] })).await;
        check("change_stream", json!({}), json!({ "detail": "Either stream_id or url has to be given." }))
            .await;
        let wrong = json!({ "stream_id": ["A valid integer is required."] });
        check("change_stream", json!({ "stream_id": "x" }), wrong).await;
    }
}
