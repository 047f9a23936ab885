//! `/api/core/streamprofiles/{id}/test/`: a stream profile is run for some seconds, and what came out is said.

use std::time::Duration;

use actors::{Trial, TrialOutcome, TrialRefusal, TrialRequest, TrialSource};
use domain::ids::{ProfileId, StreamId};
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;

use crate::http::reply::Refusal;
use crate::rest::api::channels::values::StreamUrl;
use crate::rest::frame::call::Call;
use crate::rest::frame::record::{body, view};
use crate::rest::frame::route::{ADMIN, Route};
use crate::rest::frame::value::{Named, choice};

/// For how long is read where nothing is said.
const SECONDS: u32 = 5;
/// For how long may be read: long enough for any buffer to be used up.
const SECONDS_MAX: u32 = 20;

body! {
    /// On what a stream profile is tried: an address or a stream.
    StreamProfileTest {
        /// An address by itself, of no account. Not a file of the gateway.
        url: Option<StreamUrl> [example("http://provider.example/live/7.ts")],
        /// A stream: with its address and its headers, and on a slot of its account.
        stream: Option<StreamId> [example("7")],
        /// For how many seconds is read, once something has come; 5 where nothing is said.
        seconds: u32 [at_least(1), at_most(SECONDS_MAX as i64), example("5")],
    }
}

view! {
    /// What came of a test of a stream profile. What is not known is null.
    StreamProfileTestResult {
        /// Whether it played until the time was up; null where viewers are sent to the provider, and nothing was opened.
        success: Option<bool>,
        /// `played` until the time was up; `ended` by itself after it had begun; `failed` to begin; `unplayable` as an
        /// address of its kind; `yielded` because a viewer needed the account's connection; `redirects` viewers to the
        /// provider.
        outcome: Named<Outcome> [example("played")],
        /// The same in words, without credentials.
        message: String [example("It plays.")],
        /// What went wrong, as one word; null where nothing did.
        cause: Option<&'static str> [example("status")],
        /// How the stream is handed on: by a command also where the profile says `proxy` and the address is of a kind
        /// that needs a program.
        delivery: &'static str [example("proxy")],
        /// Host and port where the packets come from in the end, or the name of the program.
        place: Option<String> [example("provider.example:80")],
        /// The account whose slot was used.
        account_name: Option<String> [example("provider")],
        /// The profile of that account.
        m3u_profile_id: Option<ProfileId> [example("2")],
        /// Seconds until the first packet with programme in it.
        seconds_to_first_packet: Option<f64> [example("0.42")],
        /// For how long was read after that.
        seconds_read: Option<f64> [example("5.0")],
        /// Bytes that were read.
        bytes: u64 [example("3000000")],
        /// Kilobits per second of programme, by its own clock; where it has none, of the time it was read for.
        bitrate_kbps: Option<f64> [example("4800.5")],
        /// Seconds of programme that came, by its own clock.
        programme_seconds: Option<f64> [example("5.1")],
        /// Seconds of programme per second that was read; less than 1 is too slow.
        speed: Option<f64> [example("1.02")],
        /// How pictures are coded.
        video_codec: Option<&'static str> [example("H.264")],
        /// Width and height of the picture.
        resolution: Option<String> [example("1920x1080")],
        /// How each sound track is coded.
        audio_codecs: Vec<&'static str> [example("[\"AAC\"]")],
        /// Programmes that the stream announces; viewers get the first that is there.
        programme_count: Option<usize> [example("1")],
        /// The last lines that the program wrote to its standard error, the oldest first, without addresses and
        /// credentials.
        program_lines: Vec<String>,
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Played,
    Ended,
    Failed,
    Unplayable,
    Yielded,
    Redirects,
}
choice!(Outcome {
    Played = "played",
    Ended = "ended",
    Failed = "failed",
    Unplayable = "unplayable",
    Yielded = "yielded",
    Redirects = "redirects",
});

pub(super) fn routes() -> Vec<Route> {
    let path = "/api/core/streamprofiles/{id}/test/";
    vec![Route::post(path, ADMIN, "Runs a stream profile for some seconds, and says what came out.", run)]
}

async fn run(call: Call, body: StreamProfileTest) -> Result<StreamProfileTestResult, Refusal> {
    let models = &call.app.models;
    let profile = models.stream_profiles.load().get(call.id()?).cloned();
    let profile = profile.ok_or_else(Refusal::unknown::<StreamProfile>)?;
    let source = source(&call, &body)?;
    let reading = Duration::from_secs(body.seconds.unwrap_or(SECONDS).into());
    match call.app.trials.run(TrialRequest { profile, source, reading }).await {
        Ok(trial) => Ok(view(trial)),
        Err(refusal) => Err(refused(&refusal)),
    }
}

fn source(call: &Call, body: &StreamProfileTest) -> Result<TrialSource, Refusal> {
    match (body.url.clone().flatten(), body.stream.flatten()) {
        (Some(_), Some(_)) => Err(Refusal::field("url", "Give url or stream, not both.")),
        (None, None) => Err(Refusal::field("url", "Either url or stream has to be given.")),
        (Some(StreamUrl(url)), None) => Ok(TrialSource::Url(url)),
        (None, Some(id)) => {
            let models = &call.app.models;
            let no_stream = || Refusal::no_such("stream", id);
            let stream: Stream = models.store.collection().get(id.0)?.ok_or_else(no_stream)?;
            let account = models.accounts.load().get(stream.account.0).cloned().ok_or_else(no_stream)?;
            if !account.is_active {
                return Err(Refusal::field("stream", "Its account is not active."));
            }
            Ok(TrialSource::Stream { stream: stream.into(), account })
        }
    }
}

fn refused(refusal: &TrialRefusal) -> Refusal {
    let text = refusal.to_string();
    match refusal {
        TrialRefusal::Full(pool) => {
            Refusal::unavailable(format!("{text}; the longest has played for {} s", pool.since.as_secs()))
        }
        TrialRefusal::Busy | TrialRefusal::NoAnswer | TrialRefusal::Stopping => Refusal::unavailable(text),
    }
    .retry_soon()
}

fn view(trial: Trial) -> StreamProfileTestResult {
    let Trial { delivery, outcome, account, opened, sample, said } = trial;
    let (account_name, m3u_profile_id) = account.unzip();
    let read = opened.as_ref().map(|_| sample.took.as_secs_f64());
    let programme = sample.programme.map(|it| it.as_secs_f64()).filter(|it| *it > 0.0);
    let of_bits = |seconds: f64| sample.bytes as f64 * 8.0 / 1000.0 / seconds;
    StreamProfileTestResult {
        success: (outcome != TrialOutcome::Redirects).then_some(outcome == TrialOutcome::Played),
        message: sentence(&outcome.to_string()),
        cause: match &outcome {
            TrialOutcome::Lost(cause) => Some(cause.label()),
            _ => None,
        },
        outcome: Named(match &outcome {
            TrialOutcome::Played => Outcome::Played,
            TrialOutcome::Lost(_) if opened.is_some() => Outcome::Ended,
            TrialOutcome::Lost(_) => Outcome::Failed,
            TrialOutcome::Unplayable(_) => Outcome::Unplayable,
            TrialOutcome::Yielded => Outcome::Yielded,
            TrialOutcome::Redirects => Outcome::Redirects,
        }),
        delivery: delivery.name(),
        account_name,
        m3u_profile_id,
        seconds_to_first_packet: opened.as_ref().map(|it| hundredths(it.opened_in.as_secs_f64())),
        place: opened.map(|it| it.place),
        seconds_read: read.map(hundredths),
        bytes: sample.bytes,
        bitrate_kbps: programme.or(read).filter(|it| *it > 0.0).map(|it| hundredths(of_bits(it))),
        programme_seconds: programme.map(hundredths),
        speed: programme.zip(read.filter(|it| *it > 0.0)).map(|(made, took)| hundredths(made / took)),
        video_codec: sample.video,
        resolution: sample.picture.map(|it| it.to_string()),
        audio_codecs: sample.audio,
        programme_count: Some(sample.n_programmes).filter(|it| *it > 0),
        program_lines: said,
    }
}

/// A text as a sentence of its own.
fn sentence(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|it| it.to_ascii_uppercase());
    first.into_iter().chain(chars).chain(['.']).collect()
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use domain::account::{Account, AccountProfile, PlaylistLocation};
    use domain::ids::AccountId;
    use domain::source_url::SourceUrl;
    use domain::stream::{RequestHeaders, StreamProperties};
    use serde_json::{Value, json};

    use super::*;
    use crate::rest::frame::testing::{Rest, SECRET};

    const PROXY: &str = "/api/core/streamprofiles/1/test/";

    /// A stream with a secret in its address, of an account that is active or not.
    async fn with_stream(is_active: bool) -> Rest {
        let rest = Rest::start().await;
        let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
        let account = Account::new(AccountId(2), "provider", PlaylistLocation::None, profile, 0);
        rest.put([Account { is_active, ..account }]).await;
        let facts = StreamProperties {
            name: "one".to_owned(),
            url: SourceUrl::new(format!("http://anna:{SECRET}@provider.example/live/{SECRET}/1.ts")),
            headers: RequestHeaders::default(),
            tvg_id: None,
            group: None,
            logo: None,
            number: None,
        };
        rest.put([Stream::new(StreamId(7), AccountId(2), facts, 0)]).await;
        rest
    }

    #[tokio::test]
    async fn a_test_that_cannot_be_run_is_refused_with_its_field() {
        let rest = with_stream(false).await;
        let url = "http://provider.example/1.ts";
        for (body, field, part) in [
            (json!({}), "url", "Either"),
            (json!({ "url": null, "stream": null }), "url", "Either"),
            (json!({ "url": url, "stream": 7 }), "url", "not both"),
            (json!({ "url": "" }), "url", "blank"),
            (json!({ "url": "file:///etc/passwd" }), "url", "The scheme of the URL"),
            (json!({ "url": "/etc/passwd" }), "url", "valid URL"),
            (json!({ "url": "http://provider.example/a b" }), "url", "valid URL"),
            (json!({ "url": url, "seconds": 0 }), "seconds", "greater"),
            (json!({ "url": url, "seconds": 21 }), "seconds", "less"),
            (json!({ "url": url, "seconds": 1.5 }), "seconds", "integer"),
            (json!({ "stream": 8 }), "stream", "does not exist"),
            (json!({ "stream": 7 }), "stream", "not active"),
        ] {
            let refused = rest.admin("POST", PROXY, body.clone()).await;
            let told = refused.body[field][0].as_str().unwrap_or_default();
            assert_eq!(refused.status, 400, "{body}: {}", refused.text);
            assert!(told.contains(part), "{body}: {}", refused.text);
        }
        let missing = rest.admin("POST", "/api/core/streamprofiles/99/test/", json!({ "url": url })).await;
        assert_eq!(missing.status, 404);
        assert_eq!(rest.standard("POST", PROXY, json!({ "url": url })).await.status, 403);
    }

    #[tokio::test]
    async fn a_test_that_fails_is_answered_with_what_went_wrong_and_without_a_credential() {
        let rest = with_stream(true).await;
        let failed = rest.admin("POST", PROXY, json!({ "stream": 7 })).await;
        assert!(!failed.text.contains(SECRET), "{}", failed.text);
        let of = |body: &Value, keys: &[&str]| keys.iter().map(|it| body[it].clone()).collect::<Value>();
        assert_eq!(
            of(
                &failed.body,
                &["success", "outcome", "cause", "message", "delivery", "account_name", "bytes"]
            ),
            json!([false, "failed", "dns", "The host name has no address.", "proxy", "provider", 0]),
            "{}",
            failed.text
        );
        for field in ["place", "seconds_read", "bitrate_kbps", "speed", "resolution", "programme_count"] {
            assert_eq!(failed.body[field], Value::Null, "{field}");
        }
        assert_eq!(rest.system.counts().leases, 0);
    }

    #[tokio::test]
    async fn where_viewers_are_sent_to_the_provider_nothing_is_opened_and_that_is_said() {
        let rest = with_stream(true).await;
        let answer = rest.admin("POST", "/api/core/streamprofiles/2/test/", json!({ "stream": 7 })).await;
        assert_eq!(
            (answer.status, &answer.body["success"], &answer.body["outcome"]),
            (200, &Value::Null, &json!("redirects")),
            "{}",
            answer.text
        );
        assert_eq!(answer.body["message"], "Viewers are sent to the provider.");
    }

    #[tokio::test]
    async fn an_address_that_nobody_can_read_is_answered_with_the_reason() {
        let rest = Rest::start().await;
        // As of a machine without ffmpeg.
        let answer = rest.admin("POST", PROXY, json!({ "url": "http://provider.example/1.m3u8" })).await;
        let expected = (200, &json!(false), &json!("unplayable"));
        assert_eq!((answer.status, &answer.body["success"], &answer.body["outcome"]), expected);
        assert!(answer.body["message"].as_str().unwrap().contains("need ffmpeg"), "{}", answer.text);
    }
}
