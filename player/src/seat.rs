//! The seats of viewers, and their permissions, which may change while a seat is taken.

use std::net::IpAddr;

use actors::{SeatRequest, Target, Viewer, may_watch};
use domain::user::{self, User};
use route_frame::call::Call;
use server::reply::Refusal;
use services::auth::{Denied, may_stream_from};
use tracing::info;

use super::refusals::{no_file, unknown_channel};
use crate::context::{PlayerCall, PlayerContext};

/// Something that is kept until an answer is sent, such as a seat.
pub(crate) type Held = Box<dyn Send + Sync>;

/// Returns the caller as lists show it.
pub(super) fn viewer(call: &Call) -> Viewer {
    let (caller, user) = (&call.caller, call.user().ok());
    Viewer {
        user: user.map(|it| it.username.clone()),
        address: caller.address(),
        agent: caller.agent.clone(),
    }
}

/// Returns the seat that the caller needs, if the number of seats is limited.
pub(super) fn seat_request(call: &Call) -> Option<SeatRequest> {
    match call.user() {
        Ok(user) => Some(SeatRequest { user: user.id, limit: user.stream_limit }),
        Err(_) => anonymous_seat(call.player()),
    }
}

/// Returns the seat of a viewer without credentials, if their number is limited, or if they do not see every channel: a
/// session that has to end is ended through its seat. All of them count as one user.
fn anonymous_seat(context: &PlayerContext) -> Option<SeatRequest> {
    let limit = context.config.limits.anonymous_viewers_max;
    (limit > 0 || context.has_users()).then_some(SeatRequest { user: user::ANONYMOUS, limit })
}

/// Takes the seat of a caller who reads a file of the gateway, if the number of seats is limited. `unknown` is the answer to
/// one who lost the permission.
pub(super) async fn take_seat(
    call: &Call,
    target: Target,
    unknown: impl FnOnce() -> Refusal,
) -> Result<Option<Held>, Refusal> {
    let (context, user, viewer) = (call.player(), call.user().ok(), viewer(call));
    let Some(request) = seat_request(call) else { return Ok(None) };
    let taken =
        context.vod.seat(request, &viewer, target, &call.caller.connection).await.map_err(|reason| {
            info!(vod.target = %target, client.address = %viewer.address, "client refused: {reason}");
            no_file(&reason)
        })?;
    // A viewer who lost the permission in the meantime had no seat yet that could be ended.
    if user.is_some_and(|it| !context.is_active(it.id)) {
        return Err(Denied::Inactive.into());
    }
    if !may_watch(&context.models, user.map_or(user::ANONYMOUS, |it| it.id), target) {
        return Err(unknown());
    }
    Ok(Some(Box::new(taken)))
}

/// Refuses a viewer who lost the permission while the channel was joined: there was no session yet that could be ended.
pub(super) fn check_permitted(
    context: &PlayerContext,
    user: Option<&User>,
    target: Target,
    address: IpAddr,
) -> Result<(), Refusal> {
    let viewer = user.map_or(user::ANONYMOUS, |it| it.id);
    if may_watch(&context.models, viewer, target) && may_stream_from(&context.models, viewer, address) {
        return Ok(());
    }
    Err(match user {
        Some(user) if !context.is_active(user.id) => Denied::Inactive.into(),
        _ => unknown_channel(),
    })
}
