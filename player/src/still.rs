//! `/proxy/ts/still/{uuid}`: the newest picture of a channel that plays, for pages that show what is on.
//!
//! The picture is one that the channel has in memory. The request opens nothing, and its user does not count as a viewer of the channel:
//! no seat, no event, no statistics.

use actors::{NoStill, Target, now_ms};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, HeaderValue};
use http::{Response, StatusCode};
use media::Still;
use resource_derive::Query;
use route_frame::access::STREAMER;
use route_frame::call::Call;
use route_frame::route::{Answer, AnswerShape, Route, client_has, entity_tag};
use server::WarpBody;
use server::reply::Refusal;
use uuid::Uuid;
use warp::reply::Response as Reply;

use super::other_nodes;
use super::refusals::unknown_channel;
use super::seat::{check_hours, check_permitted};
use crate::context::PlayerCall;

/// Media type of a picture: an MP4 of one second, without sound.
const MP4: &str = "video/mp4";

/// How a client wants to be told.
#[derive(Debug, Query)]
struct StillQuery {
    /// `true` for 204 in place of 404 if the channel has no picture: browsers report each 404 as an error of the page.
    #[field(example = "true")]
    quiet: Option<bool>,
}

/// 200 with a picture, 304 if the client has it, or 204 without one.
struct StillAnswer(Reply);

impl StillAnswer {
    fn new(call: &Call, still: Still) -> Self {
        let tag = entity_tag(&still.content);
        let mut answer = match client_has(&call.headers, &tag) {
            true => Self::empty(StatusCode::NOT_MODIFIED),
            false => Self::private(Response::new(WarpBody::from(still.content))),
        };
        let headers = answer.0.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(MP4));
        headers.insert(ETAG, tag);
        answer
    }

    fn empty(status: StatusCode) -> Self {
        let mut reply = Reply::default();
        *reply.status_mut() = status;
        Self::private(reply)
    }

    /// The rights of a user can change at any time.
    fn private(mut reply: Reply) -> Self {
        reply.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("private, no-store"));
        Self(reply)
    }
}

impl Answer for StillAnswer {
    const STATUS: StatusCode = StatusCode::OK;
    const SHAPE: AnswerShape = AnswerShape::Content(MP4);

    fn into_reply(self) -> Reply {
        self.0
    }
}

pub(super) fn routes() -> Vec<Route> {
    let summary = "Returns the newest picture of a channel that plays, as an MP4 with one frame.";
    vec![
        Route::get("/proxy/ts/still/{uuid}", STREAMER, summary, retrieve)
            .refuses(StatusCode::NO_CONTENT, "The channel has no picture, and `quiet` was asked for.")
            .refuses(StatusCode::NOT_MODIFIED, "The client has the newest picture.")
            .refuses(StatusCode::FORBIDDEN, "This time of the day is not allowed for this user.")
            .refuses(
                StatusCode::NOT_FOUND,
                "The channel does not exist for the caller, does not play, or has no picture that an MP4 can carry. The \
                    answer has the reason.",
            ),
    ]
}

async fn retrieve(call: Call, query: StillQuery) -> Result<StillAnswer, Refusal> {
    let uuid = call.uuid()?;
    check_may_see(&call, uuid)?;
    let missing = match call.player().switchboard.still(uuid).await {
        Ok(Some(still)) => return Ok(StillAnswer::new(&call, still)),
        Ok(None) if call.player().nodes.node().is_some() => match other_nodes::pass(&call).await {
            Ok(reply) => return Ok(StillAnswer(reply)),
            // The node that passed it on asks the next one.
            Err(refusal) if call.caller.passed_by.is_some() => return Err(refusal),
            Err(_) => not_playing(uuid),
        },
        Ok(None) => not_playing(uuid),
        Err(NoStill::Picture(reason)) => {
            Refusal::not_found(format!("Channel {uuid} has no picture to show: {reason}."))
        }
        Err(NoStill::Thread(reason)) => return Err(Refusal::unavailable(reason.to_string()).retry_soon()),
    };
    if query.quiet == Some(true) { Ok(StillAnswer::empty(StatusCode::NO_CONTENT)) } else { Err(missing) }
}

/// Refuses callers who may not watch the channel now. An admin may see previews, too.
fn check_may_see(call: &Call, uuid: Uuid) -> Result<(), Refusal> {
    let (context, user) = (call.player(), call.user()?);
    let channels = context.models.channels.load();
    match channels.one_by("uuid", uuid.as_bytes()) {
        Some(channel) if call.can_see(channel) => {}
        None if call.is_admin() => {}
        _ => return Err(unknown_channel()),
    }
    check_hours(user, now_ms())?;
    check_permitted(context, Some(&**user), Target::Channel(uuid), call.caller.address())
}

fn not_playing(uuid: Uuid) -> Refusal {
    Refusal::not_found(format!("Channel {uuid} is not playing."))
}
