//! The refusals of clients that watch a channel, or read a title, a recording or the past of a channel.

use std::time::Duration;

use actors::{AskError, Target, VodRefusal, WatchRefusal};
use http::StatusCode;
use media::EndReason;
use server::reply::{Refusal, TunerError};

use crate::context::PlayerContext;

/// Returns the response to a client whose stream did not begin in this time.
pub(super) async fn too_late(context: &PlayerContext, target: Target, waited: Duration) -> Refusal {
    let status = context.switchboard.status(target).await.ok().flatten();
    let cause = status.and_then(|it| it.last_failure).map(|it| format!(": {it}")).unwrap_or_default();
    let detail = format!("no stream of the channel played within {} s{cause}", waited.as_secs_f64());
    Refusal::unavailable(detail).with_tuner_error(TunerError::NoVideoData)
}

/// Returns the response to a client whose tail ended before the first packet.
pub(super) fn no_packets(end: &EndReason) -> Refusal {
    let refusal = Refusal::unavailable(end.to_string());
    match end {
        EndReason::NoSlot(_) => refusal.with_tuner_error(TunerError::AllTunersInUse).retry_soon(),
        EndReason::NothingPlays(_) | EndReason::Silent => refusal.with_tuner_error(TunerError::NoVideoData),
        EndReason::Closed | EndReason::Stopped | EndReason::Kicked | EndReason::TooSlow => {
            refusal.with_tuner_error(TunerError::SystemBusy).retry_soon()
        }
    }
}

/// Returns the response to a client to whom the switchboard did not answer.
pub(super) fn no_answer(error: AskError) -> Refusal {
    match error {
        AskError::Timeout => busy("the gateway did not respond in time"),
        AskError::Gone => busy("the gateway is stopping"),
    }
}

/// Returns the response to a client that was refused.
pub(super) fn no_watch(reason: &WatchRefusal, is_anonymous: bool) -> Refusal {
    let detail = reason.to_string();
    match reason {
        WatchRefusal::Seats { limit } if is_anonymous => no_anonymous_seat(*limit),
        WatchRefusal::NotFound => unknown_channel(),
        WatchRefusal::NoStreams | WatchRefusal::Unplayable(_) => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::TuneFailed)
        }
        WatchRefusal::Full(pool) => {
            let detail =
                format!("{detail}; the longest stream has been playing for {} s", pool.since.as_secs());
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        // Not 403, which players report as a wrong password.
        WatchRefusal::Seats { .. } => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        WatchRefusal::Transcoders { .. } => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::AllTunersInUse).retry_soon()
        }
        WatchRefusal::NothingPlays(_) => {
            Refusal::unavailable(detail).with_tuner_error(TunerError::NoVideoData)
        }
        WatchRefusal::Stopping => busy("the channel is stopping"),
    }
}

/// Returns the response for a channel that does not exist or that the caller may not see.
pub(super) fn unknown_channel() -> Refusal {
    Refusal::not_found("channel not found").with_tuner_error(TunerError::UnknownChannel)
}

/// Returns the response to a caller without credentials whose channel would be played from its provider.
pub(super) fn needs_login() -> Refusal {
    Refusal::unauthorized("this channel is played directly from its provider, which requires a login")
        .with_tuner_error(TunerError::TuneFailed)
}

fn no_anonymous_seat(limit: u32) -> Refusal {
    Refusal::unavailable(format!("the limit of {limit} viewers without credentials at one time is reached"))
        .with_tuner_error(TunerError::AllTunersInUse)
        .retry_soon()
}

pub(super) fn busy(detail: &str) -> Refusal {
    Refusal::unavailable(detail).with_tuner_error(TunerError::SystemBusy).retry_soon()
}

/// Returns the response to a client that was refused a file.
pub(super) fn no_file(reason: &VodRefusal) -> Refusal {
    let detail = reason.to_string();
    match reason {
        VodRefusal::NoVersions => Refusal::unavailable(detail),
        VodRefusal::Upstream(_) | VodRefusal::Changing => {
            Refusal::status(StatusCode::BAD_GATEWAY).with_detail(detail)
        }
        VodRefusal::Full(pool) => {
            let seconds = pool.since.as_secs();
            Refusal::unavailable(format!("{detail}; the longest connection has been open for {seconds} s"))
                .retry_soon()
        }
        // Not 403, which players report as a wrong password.
        VodRefusal::Seats { .. }
        | VodRefusal::Ended
        | VodRefusal::Busy
        | VodRefusal::NoAnswer
        | VodRefusal::Stopping => Refusal::unavailable(detail).retry_soon(),
    }
}

#[cfg(test)]
mod tests {
    use actors::FullPool;

    use super::*;

    fn full() -> FullPool {
        FullPool {
            account: "one".to_owned(),
            server_group: None,
            since: Duration::from_secs(90),
            max_streams: 1,
            is_discovered: false,
            is_told: false,
            n_reserved: 0,
            is_unknown: false,
        }
    }

    #[track_caller]
    fn check(refusal: Refusal, status: u16, tuner_error: &str, retry_after: Option<&str>) {
        let response = refusal.into_response();
        let header = |name: &str| response.headers().get(name).map(|it| it.to_str().unwrap());
        assert_eq!(response.status().as_u16(), status);
        assert_eq!(header("x-hdhomerun-error"), Some(tuner_error));
        assert_eq!(header("retry-after"), retry_after);
        assert_eq!(header("content-type"), Some("application/json"));
    }

    #[test]
    fn a_refusal_has_a_tuner_error_and_retry_after_if_a_retry_may_help() {
        check(no_watch(&WatchRefusal::Full(full()), false), 503, "805 All Tuners In Use", Some("3"));
        check(no_watch(&WatchRefusal::Seats { limit: 1 }, false), 503, "805 All Tuners In Use", Some("3"));
        check(
            no_watch(&WatchRefusal::Transcoders { limit: 1 }, false),
            503,
            "805 All Tuners In Use",
            Some("3"),
        );
        check(no_watch(&WatchRefusal::Stopping, false), 503, "803 System Busy", Some("3"));
        check(no_watch(&WatchRefusal::NoStreams, false), 503, "806 Tune Failed", None);
        check(no_watch(&WatchRefusal::Unplayable("no".to_owned()), false), 503, "806 Tune Failed", None);
        check(no_watch(&WatchRefusal::NothingPlays("no".to_owned()), false), 503, "807 No Video Data", None);
        check(no_watch(&WatchRefusal::NotFound, false), 404, "801 Unknown Channel", None);
        check(no_packets(&EndReason::NoSlot("full".into())), 503, "805 All Tuners In Use", Some("3"));
        check(no_packets(&EndReason::NothingPlays("404".into())), 503, "807 No Video Data", None);
        check(no_packets(&EndReason::Stopped), 503, "803 System Busy", Some("3"));
    }

    #[test]
    fn the_refusal_of_a_full_account_has_its_name_and_duration() {
        let text = no_watch(&WatchRefusal::Full(full()), false).to_string();
        assert!(text.contains("\"one\"") && text.contains("90 s"), "{text}");
    }

    #[test]
    fn a_refused_file_tells_whether_another_try_may_help() {
        for (reason, status, retry_after) in [
            (VodRefusal::Full(full()), 503, Some("3")),
            (VodRefusal::Seats { limit: 1 }, 503, Some("3")),
            (VodRefusal::Stopping, 503, Some("3")),
            (VodRefusal::NoVersions, 503, None),
            (VodRefusal::Changing, 502, None),
        ] {
            let response = no_file(&reason).into_response();
            let retry = response.headers().get("retry-after").map(|it| it.to_str().unwrap());
            assert_eq!((response.status().as_u16(), retry), (status, retry_after), "{reason}");
        }
    }
}
