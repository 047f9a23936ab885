//! The past of a channel that the gateway keeps itself: see [`TimeShift`](actors::TimeShift).
//!
//! A part that is over is served as a file, with ranges. A part whose end is to come is followed into the present. Both need
//! a seat, and no connection to a provider.

use std::io;

use actors::{PastPart, Target, VodTitle};
use bytes::Bytes;
use domain::catchup::ArchiveTimes;
use domain::channel::Channel;
use domain::time::iso_millis;
use domain::timeshift::TimeShiftMode;
use futures_util::Stream;
use futures_util::stream::unfold;
use http::Method;
use route_frame::call::Call;
use server::reply::Refusal;
use services::archives::timeshift_settings;
use tracing::warn;
use warp::reply::Response as Reply;

use super::past::OpenedPart;
use super::ranges::RangedFile;
use super::refusals::unknown_channel;
use super::seat::{take_seat, viewer};
use crate::context::{PlayerCall, PlayerContext};

/// Returns the part of the past of a channel that the gateway has kept; `None` if it has not kept its start.
pub(super) async fn find(
    context: &PlayerContext,
    channel: &Channel,
    times: ArchiveTimes,
) -> Option<PastPart> {
    if times.start >= times.now {
        return None;
    }
    let (start, end) = (times.start.saturating_mul(1000), times.start.saturating_add(times.duration));
    let found = context.time_shift.part(channel.uuid, start, end.saturating_mul(1000)).await;
    // The archive of the provider may have it.
    found.unwrap_or_else(|cause| {
        warn!(channel.uuid = %channel.uuid, "failed to read the past of a channel: {cause}");
        None
    })
}

/// Returns the answer for a time that is not kept, if the gateway keeps the past of the channel.
pub(super) fn not_kept(context: &PlayerContext, channel: &Channel) -> Option<Refusal> {
    if timeshift_settings(&context.models).mode_of(channel) == TimeShiftMode::Off {
        return None;
    }
    let reason = match context.time_shift.since(channel.uuid) {
        Some(since) => format!("the time-shift of the channel begins at {}", iso_millis(since)),
        None => "the time-shift of the channel has nothing yet".to_owned(),
    };
    Some(Refusal::not_found(reason))
}

/// A part that somebody plays.
pub(super) struct PlayedPart {
    pub(super) part: PastPart,
    /// The wanted start, in seconds since 1970.
    pub(super) start: i64,
    /// The name that the player gave its session.
    pub(super) session: Option<String>,
}

/// Returns the bytes of a part, which hold the seat of the caller.
async fn bytes(
    call: &Call,
    channel: &Channel,
    played: PlayedPart,
    range: Option<std::ops::Range<u64>>,
) -> Result<impl Stream<Item = io::Result<Bytes>> + Send + Sync + 'static, Refusal> {
    let PlayedPart { part, start, session } = played;
    let target = Target::Archive(channel.uuid);
    let seat = take_seat(call, target, unknown_channel).await?;
    let title = VodTitle { target, name: channel.name.clone() };
    let session = call.player().time_shift.enter(title, viewer(call), session, start, part.length());
    Ok(unfold((part.read(range), session, seat), async |(mut reader, session, seat)| {
        let block = tokio::select! {
            block = reader.next() => block.transpose()?,
            () = session.ended() => return None,
        };
        if let Ok(block) = &block {
            session.sent(block.len());
        }
        Some((block, (reader, session, seat)))
    }))
}

/// Opens a part for an answer that goes on after it.
pub(super) async fn open(call: &Call, channel: &Channel, played: PlayedPart) -> Result<OpenedPart, Refusal> {
    let begins_at = played.part.begins_at() / 1000;
    let body = bytes(call, channel, played, None).await?;
    Ok(OpenedPart { body: Box::pin(body), begins_at })
}

/// Answers with a part that is over: 200, 206 or 416.
pub(super) async fn file(call: &Call, channel: &Channel, played: PlayedPart) -> Result<Reply, Refusal> {
    let length = played.part.length().unwrap_or(0);
    let file = RangedFile { media_type: "video/mp2t", length, tag: None, grows: false };
    let part = match file.part(&call.headers) {
        Ok(part) => part,
        Err(unsatisfiable) => return Ok(*unsatisfiable),
    };
    let mut reply = Reply::default();
    if call.method != Method::HEAD {
        let read = part.clone().unwrap_or(0..length);
        let bytes = bytes(call, channel, played, Some(read)).await?;
        reply = warp::Reply::into_response(warp::reply::stream(bytes));
    }
    file.describe(&mut reply, part.as_ref());
    Ok(reply)
}
