//! Texts as they are made have the codes of the table in `domain`.

use std::time::Duration;

use actors::{FullPool, VodRefusal, WatchRefusal};
use domain::texts::TextCode;
use media::EndReason;
use media::error::{Cause, UpstreamError};
use serde_json::json;
use storage::{Fault, StopReason};

use super::refusals::refused_writes;

#[track_caller]
fn check(text: &str, code: &str) -> TextCode {
    let found = TextCode::find(text);
    assert_eq!(found.as_ref().map(|it| it.code), Some(code), "{text}");
    found.unwrap()
}

#[test]
fn the_reason_for_which_the_store_stopped_is_a_text_in_a_text() {
    for (fault, reason, advice) in [
        (Fault::Full, "disk_full", "free_space"),
        (Fault::Denied, "disk_denied", "give_rights"),
        (Fault::ReadOnly, "disk_read_only", "mount_writable"),
        (Fault::Device, "disk_error", "check_disk"),
        (Fault::Hanging, "disk_hangs", "check_disk_or_network"),
        (Fault::Other, "write_failed", "see_log"),
    ] {
        let why = StopReason { fault, cause: String::new() };
        let found = check(&refused_writes(&why), "store_stopped");
        let codes = (&found.values["reason"]["code"], &found.values["advice"]["code"]);
        assert_eq!(codes, (&json!(reason), &json!(advice)));
    }
}

#[test]
fn causes_of_a_failed_stream_have_codes() {
    let text = || "why".to_owned();
    for (cause, code) in [
        (Cause::Address(text()), "address_invalid"),
        (Cause::Forbidden(text()), "address_refused"),
        (Cause::Dns, "host_unknown"),
        (Cause::Connect(text()), "connection_failed"),
        (Cause::ConnectTimeout, "connection_timed_out"),
        (Cause::Tls(text()), "tls_failed"),
        (Cause::Proxy(text()), "proxy_failed"),
        (Cause::ProxyLogin, "proxy_login"),
        (Cause::Status(403), "provider_refuses"),
        (Cause::Status(404), "provider_status"),
        (Cause::Tuner { status: 503, code: 805 }, "tuners_in_use"),
        (Cause::Region(403), "provider_refuses_region"),
        (Cause::TooManyRedirects, "redirects_max"),
        (Cause::RedirectLoop, "redirect_loop"),
        (Cause::NotTs("text/html".to_owned()), "web_page"),
        (Cause::NotTs(text()), "not_a_stream"),
        (Cause::NotAFile(text()), "not_a_film"),
        (Cause::Empty, "response_empty"),
        (Cause::FirstPacketTimeout, "no_video_in_time"),
        (Cause::Stall, "stalled"),
        (Cause::Scrambled, "scrambled"),
        (Cause::PictureLost, "picture_lost"),
        (Cause::SoundLost, "sound_lost"),
        (Cause::PictureStill, "picture_still"),
        (Cause::Ended, "stream_ended"),
        (Cause::Reset(text()), "connection_broke"),
        (Cause::ClockBehind, "too_slow"),
        (Cause::Unsupported(text()), "kind_unsupported"),
        (Cause::NeedsProgram(text()), "ffmpeg_missing"),
        (Cause::Program(text()), "program_not_started"),
        (Cause::Exited(text()), "program_ended"),
    ] {
        let text = UpstreamError::new(cause).to_string();
        check(&text, code);
        let found = check(&WatchRefusal::NothingPlays(text).to_string(), "nothing_plays");
        assert_eq!(found.values["cause"]["code"], code);
    }
}

#[test]
fn full_accounts_and_limits_have_codes() {
    let full = FullPool {
        account: "one".to_owned(),
        server_group: None,
        since: Duration::from_secs(90),
        max_streams: 1,
        is_discovered: false,
        is_told: false,
        n_reserved: 0,
        is_unknown: false,
    };
    let group = FullPool { server_group: Some("both".to_owned()), max_streams: 2, ..full.clone() };
    for (pool, code) in [
        (full.clone(), "account_full"),
        (group, "server_group_full"),
        (FullPool { is_discovered: true, ..full.clone() }, "provider_full"),
        (FullPool { is_told: true, ..full.clone() }, "device_full"),
        (FullPool { n_reserved: 1, ..full.clone() }, "full_one_reserved"),
        (FullPool { n_reserved: 2, ..full.clone() }, "full_reserved"),
    ] {
        let text = pool.to_string();
        check(&text, code);
        let since = check(&format!("{text}; the longest stream has been playing for 90 s"), "full_since");
        assert_eq!(
            (&since.values["refusal"]["code"], &since.values["seconds"]),
            (&json!(code), &json!("90"))
        );
        if !code.contains("reserved") {
            check(&EndReason::NoSlot(text.into()).to_string(), "no_slot_free");
        }
    }
    for (refusal, code) in [
        (WatchRefusal::NotFound, "no_such_channel"),
        (WatchRefusal::NoStreams, "no_streams"),
        (WatchRefusal::Seats { limit: 2 }, "user_full"),
        (WatchRefusal::Transcoders { limit: 2 }, "conversions_full"),
        (WatchRefusal::Stopping, "channel_stopping"),
    ] {
        check(&refusal.to_string(), code);
    }
    for (refusal, code) in [
        (VodRefusal::NoVersions, "title_not_offered"),
        (VodRefusal::Seats { limit: 2 }, "user_full_films"),
        (VodRefusal::NoAnswer, "no_answer"),
        (VodRefusal::Stopping, "gateway_stopping"),
    ] {
        check(&refusal.to_string(), code);
    }
}
