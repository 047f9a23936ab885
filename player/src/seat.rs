//! The seats of viewers, and their permissions, which may change while a seat is taken.

use std::net::IpAddr;

use actors::{Identity, SeatRequest, Target, Viewer, may_watch, now_ms};
use domain::clients::is_shared_agent;
use domain::user::{self, User};
use http::{HeaderMap, HeaderValue, StatusCode};
use route_frame::call::{Call, cookies};
use server::reply::{Refusal, TunerError};
use services::auth::{Denied, may_stream_from};
use sha2::{Digest, Sha256};
use tracing::info;
use uuid::Uuid;

use super::refusals::{no_file, unknown_channel};
use crate::context::{PlayerCall, PlayerContext};
use crate::tuner::TunerSeats;

/// Something that is kept until an answer is sent, such as a seat.
pub(crate) type Held = Box<dyn Send + Sync>;

/// Name of the cookie that recognises a player of HLS without a user. It gives access to nothing: a request with it can only
/// end the earlier channel of the same player.
const PLAYER_COOKIE: &str = "hw_player";
/// Number of characters of a value of the cookie: a UUID without hyphens.
const COOKIE_CHARS: usize = 32;
/// Sent by players of Apple with all requests of one playback.
const PLAYBACK_HEADER: &str = "x-playback-session-id";

/// Returns the caller as lists show it, and what tells it apart from others.
pub(super) fn viewer(call: &Call) -> Viewer {
    let (caller, user) = (&call.caller, call.user().ok());
    let cookie = user.is_none().then(|| sent_cookie(&call.headers)).flatten();
    let playback = call.headers.get(PLAYBACK_HEADER).filter(|it| user.is_none() && !it.is_empty());
    Viewer {
        user: user.map(|it| it.username.clone()),
        address: caller.address(),
        agent: caller.agent.clone(),
        identity: Identity {
            is_device: is_device(call),
            cookie,
            keeps_cookies: cookie.is_some(),
            playback: playback.map(|it| hash(it.as_bytes())),
        },
    }
}

/// Returns whether address and program of the caller stand for one device. Media servers show many viewers as one: they read
/// lineups, or have the name of a library. In doubt it is none.
fn is_device(call: &Call) -> bool {
    let caller = &call.caller;
    caller.origin.doubt().is_none()
        && !is_shared_agent(&caller.agent)
        && !call.player().states.get::<TunerSeats>().is_client(caller)
}

/// Returns the hash of the cookie that recognises a player, if the request has it.
pub(super) fn sent_cookie(headers: &HeaderMap) -> Option<u64> {
    let value = cookies(headers, PLAYER_COOKIE).find(|it| it.len() == COOKIE_CHARS)?;
    Some(hash(value.as_bytes()))
}

/// A cookie for a player that sent none.
pub(super) struct NewCookie {
    pub(super) hash: u64,
    pub(super) header: HeaderValue,
}

impl NewCookie {
    /// Returns `None` only if the text could not be a header.
    pub(super) fn new() -> Option<Self> {
        let value = Uuid::new_v4().simple().to_string();
        let text = format!("{PLAYER_COOKIE}={value}; Path=/; Max-Age=86400; HttpOnly; SameSite=Lax");
        let header = HeaderValue::from_str(&text).ok()?;
        Some(Self { hash: hash(value.as_bytes()), header })
    }
}

/// Returns the same number on every node.
fn hash(bytes: &[u8]) -> u64 {
    let hash = Sha256::digest(bytes);
    hash.iter().take(8).fold(0, |sum, it| sum << 8 | u64::from(*it))
}

/// Returns the seat that the caller needs, if the number of seats is limited. Everything that plays asks for it.
///
/// # Errors
/// The user may not watch now.
pub(super) fn seat_request(call: &Call) -> Result<Option<SeatRequest>, Refusal> {
    let Ok(user) = call.user() else { return Ok(anonymous_seat(call.player())) };
    check_hours(user, now_ms())?;
    Ok(Some(SeatRequest { user: user.id, limit: user.stream_limit }))
}

/// Refuses a user outside of the allowed hours, with the time at which they begin.
pub(super) fn check_hours(user: &User, now: i64) -> Result<(), Refusal> {
    let Some(hours) = user.hours().filter(|it| !it.allows(now)) else { return Ok(()) };
    let again = match hours.next_change(now) {
        Some(at) => format!("again from {} ({})", hours.local_text(at), hours.time_zone),
        None => "at no time".to_owned(),
    };
    let detail =
        format!("the allowed hours of the user \"{}\" are over; watching is allowed {again}", user.username);
    info!(user.id = %user.id, "client refused: outside of the allowed hours");
    Err(Refusal::status(StatusCode::FORBIDDEN).with_detail(detail).with_tuner_error(TunerError::TuneFailed))
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
    let Some(request) = seat_request(call)? else { return Ok(None) };
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

#[cfg(test)]
mod tests {
    use domain::allowed_hours::AllowedHours;
    use domain::ids::UserId;
    use domain::user::UserLevel;
    use http::header::COOKIE;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_user_outside_of_the_allowed_hours_learns_when_they_begin() {
        let table = json!({ "time_zone": "UTC", "mon": ["07:00-19:30"] });
        let hours = AllowedHours::from_object(table.as_object().unwrap()).ok();
        let never = AllowedHours::from_object(json!({ "time_zone": "UTC" }).as_object().unwrap()).ok();
        let child = User { allowed_hours: hours, ..User::new(UserId(1), "anna", UserLevel::Streamer, 0) };
        // 2030-06-03 is a Monday.
        let [morning, evening] = [1_906_700_400_000, 1_906_745_400_000];
        assert!(check_hours(&child, morning).is_ok());
        let refusal = check_hours(&child, evening).unwrap_err();
        assert!(refusal.to_string().contains("again from Mon 07:00 (UTC)"), "{refusal}");
        assert_eq!(refusal.into_response().status(), StatusCode::FORBIDDEN);
        let refusal = check_hours(&User { allowed_hours: never, ..child.clone() }, morning).unwrap_err();
        assert!(refusal.to_string().contains("at no time"), "{refusal}");
        assert!(check_hours(&User { level: UserLevel::Admin, ..child }, evening).is_ok());
    }

    #[test]
    fn a_player_is_recognised_by_the_cookie_that_it_was_given() {
        let given = NewCookie::new().unwrap();
        let pair = given.header.to_str().unwrap().split(';').next().unwrap().to_owned();
        let other = NewCookie::new().unwrap();
        assert_ne!(given.hash, other.hash);
        for (cookies, expected) in [
            (vec![pair.clone()], Some(given.hash)),
            (vec![format!("a=1; {pair}; b=2")], Some(given.hash)),
            (vec!["a=1".to_owned(), pair.clone()], Some(given.hash)),
            (vec!["hw_player=short".to_owned()], None),
            (vec![format!("x{pair}")], None),
            (vec![], None),
        ] {
            let mut headers = HeaderMap::new();
            for text in &cookies {
                headers.append(COOKIE, HeaderValue::from_str(text).unwrap());
            }
            assert_eq!(sent_cookie(&headers), expected, "{cookies:?}");
        }
    }
}
