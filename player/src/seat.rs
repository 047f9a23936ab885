//! The seat of a viewer who reads a file of the gateway: a recording, or the past of a channel.

use actors::{SeatRequest, Target, Viewer, may_watch};
use domain::user;
use route_frame::call::Call;
use server::reply::Refusal;
use services::auth::Denied;
use tracing::info;

use super::vod::no_file;
use super::watch::{anonymous_seat, is_active};
use crate::context::PlayerCall;

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

/// Takes the seat of the caller, if the number of seats is limited. `unknown` is the answer to one who lost the permission.
pub(super) async fn take_seat(
    call: &Call,
    target: Target,
    unknown: impl FnOnce() -> Refusal,
) -> Result<Option<Held>, Refusal> {
    let (context, user, viewer) = (call.player(), call.user().ok(), viewer(call));
    let request = match user {
        Some(user) => Some(SeatRequest { user: user.id, limit: user.stream_limit }),
        None => anonymous_seat(context),
    };
    let Some(request) = request else { return Ok(None) };
    let taken =
        context.vod.seat(request, &viewer, target, &call.caller.connection).await.map_err(|reason| {
            info!(vod.target = %target, client.address = %viewer.address, "client refused: {reason}");
            no_file(&reason)
        })?;
    // A viewer who lost the permission in the meantime had no seat yet that could be ended.
    if user.is_some_and(|it| !is_active(context, it.id)) {
        return Err(Denied::Inactive.into());
    }
    if !may_watch(&context.models, user.map_or(user::ANONYMOUS, |it| it.id), target) {
        return Err(unknown());
    }
    Ok(Some(Box::new(taken)))
}
