//! Serves a target as an endless stream in one response: a transport stream, or fragmented MP4.
//!
//! ```text
//! HEAD ─► headers at once, opens no stream
//! GET ─► unknown: 404 ─► switchboard ─┬─ Redirect ─► 302
//!                                     ├─ Refused ──► 404 or 503
//!                                     └─ Tail ─┬─ first real chunk ─► 200, body
//!                                              └─ none in time ─────► 503
//! ```
//!
//! Fragments need a complete segment instead of a chunk.

use std::any::Any;
use std::sync::Arc;

use actors::{Target, WatchReply, WatchRequest};
use domain::output_format::StreamFormat;
use domain::plan::Redirection;
use http::Method;
use media::Tail;
use route_frame::call::Call;
use route_frame::route::{Answer as _, StreamOrRedirect};
use server::caller::Caller;
use server::reply::{Refusal, TunerError};
use server::stream::{Guard, StreamTail};
use tokio::time::timeout;
use tracing::info;

use super::answers::{TransportStream, fragmented, redirect, streaming};
use super::fragments;
use super::output_profile::{StreamQuery, rendition};
use super::refusals::{needs_login, no_answer, no_packets, no_watch, too_late, unknown_channel};
use super::seat::{check_permitted, seat_request, viewer};
use super::tuner::{TunerSeat, TunerSeats, TunersTaken, tuner_count};
use crate::context::{PlayerCall, PlayerContext};

/// Serves a target in one response. All permissions have been checked except the stream limit of the user.
pub(super) async fn serve(
    call: Call,
    target: Target,
    query: StreamQuery,
    format: StreamFormat,
) -> Result<StreamOrRedirect<TransportStream>, Refusal> {
    if !call.player().plans.exists(&target) {
        return Err(unknown_channel());
    }
    let rendition = rendition(call.player(), call.user().ok().map(|it| &**it), &call.caller, target, &query)?;
    if call.method == Method::HEAD {
        let nothing = futures_util::stream::empty::<Result<Vec<u8>, std::io::Error>>();
        let head = warp::reply::stream(nothing);
        return Ok(if format == StreamFormat::Fmp4 { fragmented(head) } else { streaming(head) });
    }
    let user = call.user().ok().cloned();
    let context = Arc::clone(call.player());
    let tuner = match user {
        // Users have limits of their own.
        Some(_) => None,
        None => take_tuner(&context, &call.caller, target).await?,
    };
    let client_address = call.caller.address();
    let (viewer, seat) = (viewer(&call), seat_request(&call)?);
    let is_anonymous = user.is_none();
    let has_program = rendition.as_ref().is_some_and(|it| it.command.is_some());
    let request =
        WatchRequest { target, viewer, connection: call.caller.connection, seat, rendition, format };
    let sound = if request.rendition.is_none() { fragments::sound_of(target) } else { None };
    match context.switchboard.watch(request.clone()).await {
        Ok(WatchReply::Segments { client, viewing }) => {
            check_permitted(&context, user.as_deref(), target, client_address)?;
            let opened = fragments::first(&context, request, viewing, has_program, sound).await;
            let (reader, first, viewing) = opened.inspect_err(|refusal| {
                info!(channel.target = %target, client.id = client, client.address = %client_address, "client received no packets: {refusal}");
            })?;
            let tuner = tuner.map(|it| Box::new(it) as Box<dyn Any + Send + Sync>);
            Ok(fragmented(fragments::body(reader, first, viewing, tuner)))
        }
        Ok(WatchReply::Tail { client, tail }) => {
            check_permitted(&context, user.as_deref(), target, client_address)?;
            let tail = first_packets(&context, target, tail, has_program).await.inspect_err(|refusal| {
                info!(channel.target = %target, client.id = client, client.address = %client_address, "client received no packets: {refusal}");
            })?;
            let mut reply = warp::reply::Response::default();
            let tuner = tuner.map(|it| Box::new(it) as Box<dyn Any + Send>);
            reply.extensions_mut().insert(StreamTail::new(tail, tuner));
            Ok(streaming(reply))
        }
        Ok(WatchReply::Redirect(to)) if is_for_users(&context, is_anonymous, &to) => Err(needs_login()),
        Ok(WatchReply::Redirect(to)) => redirect(&to.url),
        Ok(WatchReply::Refused(reason)) => {
            info!(channel.target = %target, client.address = %client_address, "client refused: {reason}");
            Err(no_watch(&reason, is_anonymous))
        }
        Err(error) => Err(no_answer(error)),
    }
}

/// Returns whether a redirection needs a login that the viewer has not: the address may contain the credentials of the account.
pub(super) fn is_for_users(context: &PlayerContext, is_anonymous: bool, to: &Redirection) -> bool {
    is_anonymous && context.has_users() && !to.without_login
}

/// Takes a tuner of the emulated device that the caller uses, if it uses one.
async fn take_tuner(
    context: &PlayerContext,
    caller: &Caller,
    target: Target,
) -> Result<Option<TunerSeat>, Refusal> {
    let taken =
        context.states.get::<TunerSeats>().take(caller, target, |it| tuner_count(&context.models, it)).await;
    taken.map_err(|TunersTaken { count }| {
        info!(channel.target = %target, client.address = %caller.address(), count, "client refused: all tuners are in use");
        let detail = format!("all {count} tuners of the emulated device are in use");
        Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
    })
}

/// Waits for the first real packets, because the status can no longer change after the response has begun. A program
/// that converts the stream starts after it.
async fn first_packets(
    context: &PlayerContext,
    target: Target,
    mut tail: Tail,
    has_program: bool,
) -> Result<Tail, Refusal> {
    let start_timeout = context.start_timeout(has_program);
    match timeout(start_timeout, tail.ready()).await {
        Ok(Ok(())) => Ok(tail),
        Ok(Err(end)) => Err(no_packets(&end)),
        Err(_) => Err(too_late(context, target, start_timeout).await),
    }
}

/// Opens the channel as it is, for an answer that began with its past.
pub(super) async fn live_tail(call: Call, target: Target) -> Result<(Tail, Guard), Refusal> {
    let unavailable = || Refusal::unavailable("the channel plays at its provider");
    let StreamOrRedirect::Stream(content) =
        serve(call, target, StreamQuery::default(), StreamFormat::Ts).await?
    else {
        return Err(unavailable());
    };
    let reply = content.into_reply();
    let tail = reply.extensions().get::<StreamTail>().and_then(StreamTail::take);
    tail.ok_or_else(unavailable)
}
