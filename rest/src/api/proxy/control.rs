//! `/proxy/ts/stop`, `stop_client`, `next_stream`, `change_stream`: control of live channels.
//!
//! Each answer is sent after the action, and reports its result.

use std::collections::BTreeMap;

use actors::{AskError, Target, is_played_address};
use domain::address_owner::{NoOwner, owner_of_address};
use domain::ids::{AccountId, StreamId};
use domain::source_url::SourceUrl;
use domain::stream::Stream;
use http::{Method, StatusCode};
use node::playing_control::{Controlled, Order, Outcome, Switched, control, live};
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use serde_json::json;
use server::reply::Refusal;
use uuid::Uuid;

use super::live::{no_answer, not_live};
use crate::api::channels::streams::blocking;
use crate::context::RestCall;

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
    previous_state: String,
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
    /// Id of a stream. One that is not of the channel plays with a connection of its own account until another stream plays.
    #[field(example = "1")]
    stream_id: Option<Option<StreamId>>,
    /// Complete URL of a stream, of the channel or of exactly one account. Another URL plays until another stream does, if it
    /// contains the login of exactly one account, or else has its host, or if `m3u_account` is named. Connection limits,
    /// headers, proxy and network rules are those of the account.
    #[field(example = "http://provider.example/live/7.ts")]
    url: Option<Option<String>>,
    /// Id of the account whose stream has the URL, or with which another URL is played.
    #[field(example = "2")]
    m3u_account: Option<Option<AccountId>>,
}

const STOP: &str = "/proxy/ts/stop/{uuid}";
const NO_SUCH_STREAM: &str = "This stream does not exist, or cannot be played.";
const NO_SUCH_URL: &str =
    "No account has a stream with this address, or its login or host. Name the account as m3u_account.";
const SEVERAL_ACCOUNTS: &str = "Several accounts have a stream with this address, or its login or host. Name one of them as m3u_account.";
const NO_SUCH_ACCOUNT: &str = "This account does not exist, or is not active.";
const NOT_PLAYED_HERE: &str =
    "An address that is not that of a stream is played only by the node that has the source of the channel.";
const NEEDS_PROGRAM: &str = "Only addresses that the gateway reads itself can be played by their address.";
const NOT_FOR_PLUGINS: &str = "Plugins can switch a channel only to one of its own streams.";

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
            "Switches a channel to another stream.",
            change_stream,
        )
        .refuses(
            StatusCode::BAD_REQUEST,
            "The stream does not exist or cannot be played, or its account is unclear.",
        )
        .refuses(StatusCode::CONFLICT, BUSY)
        .refuses(StatusCode::BAD_GATEWAY, FAILED),
    ]);
    routes
}

async fn stop(call: Call) -> Result<StoppedChannelView, Refusal> {
    let uuid = call.uuid()?;
    let Outcome { done, nodes } = order(&call, Order::Stop(uuid)).await?;
    let Controlled::Stopped { name, state, clients } = done else { return Err(refusal(uuid, &done)) };
    Ok(StoppedChannelView {
        message: format!("Channel {name} was stopped{}.", on(&nodes)),
        outcome: "stopped",
        channel_id: uuid,
        channel_name: name,
        previous_state: state,
        client_count: clients,
    })
}

async fn stop_client(call: Call, body: StopClient) -> Result<StoppedClientView, Refusal> {
    let (uuid, client_id) = (call.uuid()?, body.client_id);
    // No client has the id 0, so the answer says whether the channel plays.
    let client = client_id.parse().unwrap_or(0);
    let Outcome { done, nodes } = order(&call, Order::Kick { channel: uuid, client }).await?;
    match done {
        Controlled::Kicked => {}
        Controlled::NoSuchClient => {
            return Err(Refusal::not_found(format!("The channel has no client {client_id}.")));
        }
        other => return Err(refusal(uuid, &other)),
    }
    let message = format!("Client {client_id} was disconnected{}.", on(&nodes));
    Ok(StoppedClientView { message, outcome: "stopped", channel_id: uuid, client_id })
}

/// Carries out an order of the caller on the nodes that it concerns.
pub(super) async fn order(call: &Call, order: Order) -> Result<Outcome, Refusal> {
    control(&call.rest().nodes, &call.headers, order).await.map_err(no_answer)
}

/// Returns the end of a sentence about what was done, which names the nodes of a cluster.
pub(super) fn on(nodes: &[String]) -> String {
    if nodes.is_empty() { String::new() } else { format!(" on {}", nodes.join(" and ")) }
}

async fn next_stream(call: Call) -> Result<SwitchedChannelView, Refusal> {
    let none = || {
        let detail = "The channel has no other stream that can be played.";
        Refusal::status(StatusCode::CONFLICT).with_detail(detail)
    };
    switch(&call, None, none).await
}

async fn change_stream(call: Call, body: ChangeStream) -> Result<SwitchedChannelView, Refusal> {
    let (to, field) = match (body.stream_id.flatten(), body.url.flatten()) {
        (None, None) => return Err(Refusal::bad_request("Either stream_id or url is required.")),
        (Some(id), _) => (Ok(id), "stream_id"),
        (None, Some(url)) => (stream_at(&call, url, body.m3u_account.flatten()).await?, "url"),
    };
    // No stream has the id 0, so the answer says whether the channel plays.
    let (to, wrong) = match to {
        Ok(id) if is_played_address(id) => (id, NOT_PLAYED_HERE),
        Ok(id) => (id, NO_SUCH_STREAM),
        Err(wrong) => (StreamId(0), wrong),
    };
    if call.is_plugin() && !own_streams(&call).await?.contains(&to) {
        return Err(Refusal::no_permission().with_detail(NOT_FOR_PLUGINS));
    }
    switch(&call, Some(to), || Refusal::field(field, wrong)).await
}

/// Returns the streams of the channel or the preview of the path.
async fn own_streams(call: &Call) -> Result<Vec<StreamId>, Refusal> {
    let uuid = call.uuid()?;
    let channels = call.rest().models.channels.load();
    if let Some(channel) = channels.one_by("uuid", uuid.as_bytes()) {
        return Ok(channel.streams.clone());
    }
    drop(channels);
    Ok(match live(&call.rest().live.switchboard, uuid).await.map_err(no_answer)? {
        Some((Target::Stream(id), _)) => vec![id],
        _ => Vec::new(),
    })
}

/// Returns the stream with this URL: one of the channel or the preview, else one of this account, or of the only account that
/// has one, else an id for the address itself, if it is clear whose slot, headers, proxy and network rules count.
async fn stream_at(
    call: &Call,
    url: String,
    account: Option<AccountId>,
) -> Result<Result<StreamId, &'static str>, Refusal> {
    let own = own_streams(call).await?;
    let store = call.rest().models.store.clone();
    for id in own {
        if store.collection::<Stream>().get(id.0)?.is_some_and(|it| it.url().expose() == url) {
            return Ok(Ok(id));
        }
    }
    let address = url.clone();
    let found = blocking(move || {
        let mut found = BTreeMap::new();
        store.collection::<Stream>().for_each(|it| {
            if it.url().expose() == url && account.is_none_or(|account| account == it.account) {
                found.entry(it.account).or_insert(it.id);
            }
        })?;
        Ok(found)
    });
    let found = found.await?;
    let mut ids = found.into_values();
    let (id, other) = match (ids.next(), ids.next()) {
        (Some(id), other) => (id, other),
        (None, _) => match address_of(call, SourceUrl::new(address), account) {
            Ok(id) => (id, None),
            Err(wrong) => return Ok(Err(wrong)),
        },
    };
    let plan = call.rest().live.plans.plan(&Target::Stream(id));
    let needs_program = plan.is_some_and(|it| it.candidates.iter().any(|it| it.command.is_some()));
    Ok(match (other, needs_program) {
        (Some(_), _) => Err(SEVERAL_ACCOUNTS),
        (None, true) => Err(NEEDS_PROGRAM),
        (None, false) => Ok(id),
    })
}

/// Returns an id for an address that is not that of a stream.
fn address_of(call: &Call, url: SourceUrl, named: Option<AccountId>) -> Result<StreamId, &'static str> {
    // Plugins switch to streams of the channel only.
    if call.is_plugin() {
        return Err(NO_SUCH_URL);
    }
    let owner = {
        let accounts = call.rest().models.accounts.load();
        owner_of_address(&url, accounts.iter().map(|it| &**it), named)
    };
    let owner = owner.map_err(|reason| match reason {
        NoOwner::NotPlayable => NEEDS_PROGRAM,
        NoOwner::Unknown if named.is_some() => NO_SUCH_ACCOUNT,
        NoOwner::Unknown => NO_SUCH_URL,
        NoOwner::Several => SEVERAL_ACCOUNTS,
    })?;
    call.rest().live.plans.add_address(owner, url).ok_or(NO_SUCH_URL)
}

async fn switch(
    call: &Call,
    to: Option<StreamId>,
    none: impl FnOnce() -> Refusal,
) -> Result<SwitchedChannelView, Refusal> {
    let uuid = call.uuid()?;
    let Outcome { done, nodes } = order(call, Order::Switch { channel: uuid, to }).await?;
    let done = match done {
        Controlled::Switched(it) => it,
        Controlled::NoSuchStream => return Err(none()),
        other => return Err(refusal(uuid, &other)),
    };
    let Switched { name, stream, previous, gap_ms, stream_name, url } = done;
    Ok(SwitchedChannelView {
        message: format!("Channel {name} plays stream {stream}{}.", on(&nodes)),
        outcome: if previous == Some(stream) { "reopened" } else { "switched" },
        channel_id: uuid,
        channel_name: name,
        previous_stream_id: previous,
        stream_id: stream,
        new_stream_id: stream,
        url,
        stream_name,
        gap_ms,
    })
}

/// Returns the answer about an order that was not carried out.
fn refusal(uuid: Uuid, outcome: &Controlled) -> Refusal {
    match outcome {
        Controlled::SwitchFailed { name, before, playing, reason } => {
            failed(uuid, name, *before, *playing, reason)
        }
        Controlled::SwitchBusy => {
            let detail = "Another switch of this channel is in progress.";
            Refusal::status(StatusCode::CONFLICT).with_detail(detail)
        }
        // The origin has changed in the meantime, or cannot be reached.
        Controlled::AtNode(node) => {
            let detail =
                format!("Node {node} has the source of this channel, and cannot switch it now. Try again.");
            Refusal::status(StatusCode::CONFLICT).with_detail(detail)
        }
        Controlled::NodeUnanswered(node) => node_unanswered(node),
        Controlled::Unanswered => no_answer(AskError::Timeout),
        _ => not_live(uuid),
    }
}

/// 504: a node that may play the channel, or serve the client, does not answer.
pub(super) fn node_unanswered(node: &str) -> Refusal {
    let detail = format!("Node {node} does not answer. The result there is unknown.");
    Refusal::status(StatusCode::GATEWAY_TIMEOUT).with_detail(detail)
}

/// 502: the new stream failed at its provider. The body reports what plays instead.
fn failed(
    uuid: Uuid,
    name: &str,
    before: Option<StreamId>,
    playing: Option<StreamId>,
    reason: &str,
) -> Refusal {
    let instead = match playing {
        Some(stream) => format!("Stream {stream} plays."),
        None => "Nothing plays.".to_owned(),
    };
    Refusal::status(StatusCode::BAD_GATEWAY).with_body(json!({
        "detail": format!("The stream does not play: {reason}. {instead}"),
        "outcome": "failed",
        "reason": reason,
        "channel_id": uuid,
        "channel_name": name,
        "previous_stream_id": before,
        "stream_id": playing,
    }))
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;
    use http::header::AUTHORIZATION;
    use node::playing_control::perform_for;
    use serde_json::Value;

    use super::*;
    use crate::testing::{ADMIN, INACTIVE, Rest, STANDARD};

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
            let text = format!("Channel {uuid} is not playing.");
            let mut refusal = json!({ "detail": text, "error": text });
            if action.starts_with("stop") {
                refusal["success"] = json!(false);
            }
            assert_eq!((answer.status, answer.body), (404, refusal), "{method} {action}");
        }
    }

    #[tokio::test]
    async fn an_order_from_another_node_needs_an_admin() {
        let rest = Rest::start().await;
        let check = async |user: Option<u32>, expected: Result<Controlled, u16>| {
            let mut headers = HeaderMap::new();
            if let Some(user) = user {
                headers.insert(AUTHORIZATION, rest.bearer(user).parse().unwrap());
            }
            let done = perform_for(&rest.context.nodes, &headers, Order::Stop(Uuid::from_u128(1))).await;
            assert_eq!(done.map_err(|it| it.reason().0.as_u16()), expected, "{user:?}");
        };
        check(None, Err(401)).await;
        check(Some(INACTIVE), Err(401)).await;
        check(Some(STANDARD), Err(403)).await;
        check(Some(ADMIN), Ok(Controlled::NotHere)).await;
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
        check(
            "change_stream",
            json!({}),
            json!({
                "detail": "Either stream_id or url is required.",
                "error": "Either stream_id or url is required.",
            }),
        )
        .await;
        let wrong = json!({ "stream_id": ["A valid integer is required."] });
        check("change_stream", json!({ "stream_id": "x" }), wrong).await;
    }
}
