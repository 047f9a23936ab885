//! Fragmented MP4 over one response: `.mp4` and `?output_format=fmp4`, for browsers and for casting.
//!
//! The body is the initialisation segment and all fragments from the newest complete segment on. It ends when the codecs of
//! the channel change, because that needs another initialisation segment: players ask again.

use std::any::Any;
use std::io;
use std::sync::Arc;

use actors::{SegmentViewing, Target, WatchReply, WatchRequest, lacks_sound};
use bytes::Bytes;
use domain::output_profile::Rendition;
use futures_util::Stream;
use futures_util::stream::unfold;
use media::{EndReason, FragmentEnd, FragmentReader};
use server::reply::Refusal;
use tokio::time::timeout;
use tracing::info;

use super::output_profile::sound_for_browsers;
use super::refusals::{busy, no_answer, no_packets, no_watch, too_late};
use crate::context::PlayerContext;

/// Returns what converts the sound of a target for players that cannot play it; `None` without ffmpeg.
pub(super) fn sound_of(target: Target) -> Option<Arc<Rendition>> {
    sound_for_browsers(target).ok()
}

/// Waits for the first bytes of the fragments, because the status can no longer change after the response has begun.
///
/// If the player cannot play the sound of the channel, it gets the fragments with `sound` instead.
pub(super) async fn first(
    context: &PlayerContext,
    request: WatchRequest,
    viewing: Box<SegmentViewing>,
    has_program: bool,
    sound: Option<Arc<Rendition>>,
) -> Result<(FragmentReader, Bytes, Box<SegmentViewing>), Refusal> {
    let (target, agent) = (request.target, request.viewer.agent.clone());
    let (reader, bytes) = begin(context, target, &viewing, has_program).await?;
    let Some(sound) =
        sound.filter(|_| lacks_sound(viewing.window().container(), &viewing.window().description(), &agent))
    else {
        return Ok((reader, bytes, viewing));
    };
    let is_anonymous = request.viewer.user.is_none();
    info!(channel.target = %target, client.agent = agent, "the sound is converted, because the player does not play it");
    // Joined before the other one leaves, so that the channel and the seat stay.
    let request = WatchRequest { rendition: Some(sound), ..request };
    let viewing = match context.switchboard.watch(request).await {
        Ok(WatchReply::Segments { viewing, .. }) => viewing,
        Ok(WatchReply::Refused(reason)) => return Err(no_watch(&reason, is_anonymous)),
        Ok(WatchReply::Tail { .. } | WatchReply::Redirect(_)) => {
            return Err(busy("the channel has changed meanwhile"));
        }
        Err(error) => return Err(no_answer(error)),
    };
    let (reader, bytes) = begin(context, target, &viewing, true).await?;
    Ok((reader, bytes, viewing))
}

async fn begin(
    context: &PlayerContext,
    target: Target,
    viewing: &SegmentViewing,
    has_program: bool,
) -> Result<(FragmentReader, Bytes), Refusal> {
    let mut reader = viewing.window().fragments();
    let wait = context.start_timeout(has_program);
    match timeout(wait, reader.next()).await {
        Ok(Ok(first)) => Ok((reader, first.bytes)),
        Ok(Err(FragmentEnd::Window(end))) => Err(no_packets(&end)),
        Ok(Err(_)) => Err(no_packets(&EndReason::Silent)),
        Err(_) => Err(too_late(context, target, wait).await),
    }
}

/// Returns the body of a response: the first bytes and all that follow. `guard` is dropped after it.
pub(super) fn body(
    reader: FragmentReader,
    first: Bytes,
    viewing: Box<SegmentViewing>,
    guard: Option<Box<dyn Any + Send + Sync>>,
) -> impl warp::Reply {
    warp::reply::stream(bytes(reader, first, viewing, guard))
}

fn bytes(
    reader: FragmentReader,
    first: Bytes,
    viewing: Box<SegmentViewing>,
    guard: Option<Box<dyn Any + Send + Sync>>,
) -> impl Stream<Item = io::Result<Bytes>> + Send + Sync {
    let begin = Some((reader, Some(first), viewing, guard));
    unfold(begin, async |state| {
        let (mut reader, first, viewing, guard) = state?;
        let next = match first {
            Some(bytes) => Ok(bytes),
            None => reader.next().await.map(|it| it.bytes),
        };
        match next {
            Ok(bytes) => {
                viewing.sent(bytes.len());
                Some((Ok(bytes), Some((reader, None, viewing, guard))))
            }
            Err(FragmentEnd::Window(end)) if !end.is_abrupt() => None,
            Err(FragmentEnd::Changed) => None,
            Err(_) => Some((Err(io::Error::other("the client did not keep up")), None)),
        }
    })
}
