//! `/api/core/streamprofiles/{id}/test/`: runs a stream profile for some seconds and reports the output.

use std::time::Duration;

use actors::{Trial, TrialOutcome, TrialRefusal, TrialRequest, TrialSource};
use domain::ids::{ProfileId, StreamId};
use domain::stream::Stream;
use domain::stream_profile::StreamProfile;
use resource_derive::{Body, View};
use route_frame::access::ADMIN;
use route_frame::call::Call;
use route_frame::route::Route;
use serde::Serialize;
use server::reply::Refusal;

use crate::api::channels::values::StreamUrl;
use crate::api::text::sentence;
use crate::choice::{Named, choice};
use crate::context::RestCall;

/// Default duration, in seconds.
const SECONDS: u32 = 5;
/// Maximum duration in seconds: long enough to exhaust any buffer.
const SECONDS_MAX: u32 = 20;

/// Selects the source of the test: a URL or a stream.
#[derive(Clone, Debug, Body)]
pub(crate) struct StreamProfileTest {
    /// A URL without an account. Files of the gateway are not allowed.
    #[field(example = "http://provider.example/live/7.ts")]
    url: Option<Option<StreamUrl>>,
    /// Id of a stream. The test uses its URL and headers, and a slot of its account.
    #[field(example = "7")]
    stream: Option<Option<StreamId>>,
    /// Seconds to read after the first data; 5 by default.
    #[field(at_least = 1, at_most = SECONDS_MAX as i64, example = "5")]
    seconds: Option<u32>,
}

/// Result of a test of a stream profile. Unknown values are `null`.
#[derive(Clone, Debug, Serialize, View)]
pub(crate) struct StreamProfileTestResultView {
    /// Whether the stream played for the whole time; `null` if viewers are redirected to the provider, because then
    /// nothing is opened.
    success: Option<bool>,
    /// `played` for the whole time; `ended` early; `failed` to start; `unplayable` because the type of URL is not
    /// supported; `yielded` because a viewer needed the account's connection; `redirects` viewers to the provider.
    #[field(example = "played")]
    outcome: Named<Outcome>,
    /// The outcome for people, without credentials.
    #[field(example = "It plays.")]
    message: String,
    /// Reason of a failure in one word; otherwise `null`.
    #[field(example = "status")]
    cause: Option<&'static str>,
    /// How the stream was delivered. Can be `command` for a `proxy` profile, if the type of URL requires a program.
    #[field(example = "proxy")]
    delivery: &'static str,
    /// Host and port that sent the data after all redirects, or the name of the program.
    #[field(example = "provider.example:80")]
    place: Option<String>,
    /// Name of the account whose slot the test used.
    #[field(example = "provider")]
    account_name: Option<String>,
    /// Id of the account profile.
    #[field(example = "2")]
    m3u_profile_id: Option<ProfileId>,
    /// Seconds until the first packet with content.
    #[field(example = "0.42")]
    seconds_to_first_packet: Option<f64>,
    /// Seconds of reading after the first packet.
    #[field(example = "5.0")]
    seconds_read: Option<f64>,
    /// Number of bytes read.
    #[field(example = "3000000")]
    bytes: u64,
    /// Bitrate in kilobits per second, by the clock of the programme; without such a clock, by elapsed time.
    #[field(example = "4800.5")]
    bitrate_kbps: Option<f64>,
    /// Duration of the received programme by its own clock, in seconds.
    #[field(example = "5.1")]
    programme_seconds: Option<f64>,
    /// Seconds of programme per second of reading; less than 1 is too slow.
    #[field(example = "1.02")]
    speed: Option<f64>,
    /// Video codec.
    #[field(example = "H.264")]
    video_codec: Option<&'static str>,
    /// Width and height of the picture.
    #[field(example = "1920x1080")]
    resolution: Option<String>,
    /// Codec of each audio track.
    #[field(example = "[\"AAC\"]")]
    audio_codecs: Vec<&'static str>,
    /// Number of programmes in the stream; viewers get the first one that has content.
    #[field(example = "1")]
    programme_count: Option<usize>,
    /// The last lines that the program wrote to standard error, oldest first, without addresses and credentials.
    program_lines: Vec<String>,
}

choice!(
    enum Outcome {
        Played = "played",
        Ended = "ended",
        Failed = "failed",
        Unplayable = "unplayable",
        Yielded = "yielded",
        Redirects = "redirects",
    }
);

pub(super) fn routes() -> Vec<Route> {
    let path = "/api/core/streamprofiles/{id}/test/";
    vec![Route::post(path, ADMIN, "Runs a stream profile for some seconds and returns the result.", run)]
}

async fn run(call: Call, body: StreamProfileTest) -> Result<StreamProfileTestResultView, Refusal> {
    let models = &call.rest().models;
    let profile = models.stream_profiles.load().get(call.id()?).cloned();
    let profile = profile.ok_or_else(Refusal::unknown::<StreamProfile>)?;
    let source = source(&call, &body)?;
    let reading = Duration::from_secs(body.seconds.unwrap_or(SECONDS).into());
    match call.rest().imports.trials.run(TrialRequest { profile, source, reading }).await {
        Ok(trial) => Ok(view(trial)),
        Err(refusal) => Err(refused(&refusal)),
    }
}

fn source(call: &Call, body: &StreamProfileTest) -> Result<TrialSource, Refusal> {
    match (body.url.clone().flatten(), body.stream.flatten()) {
        (Some(_), Some(_)) => Err(Refusal::field("url", "Give url or stream, not both.")),
        (None, None) => Err(Refusal::field("url", "Either url or stream is required.")),
        (Some(StreamUrl(url)), None) => Ok(TrialSource::Url(url)),
        (None, Some(id)) => {
            let models = &call.rest().models;
            let no_stream = || Refusal::no_such("stream", id);
            let stream: Stream = models.store.collection().get(id.0)?.ok_or_else(no_stream)?;
            let account = models.accounts.load().get(stream.account.0).cloned().ok_or_else(no_stream)?;
            if !account.is_active {
                return Err(Refusal::field("stream", "The account of the stream is not active."));
            }
            let refresh = models.refreshes.load().get(stream.account.0).cloned();
            let members = models.server_group_of(&account);
            Ok(TrialSource::Stream { stream: stream.into(), account, refresh, members })
        }
    }
}

fn refused(refusal: &TrialRefusal) -> Refusal {
    let text = refusal.to_string();
    match refusal {
        TrialRefusal::Full(pool) => Refusal::unavailable(format!(
            "{text}; its longest connection has been in use for {} s",
            pool.since.as_secs()
        )),
        TrialRefusal::Busy | TrialRefusal::NoAnswer | TrialRefusal::Stopping => Refusal::unavailable(text),
    }
    .retry_soon()
}

fn view(trial: Trial) -> StreamProfileTestResultView {
    let Trial { delivery, outcome, account, opened, sample, said } = trial;
    let (account_name, m3u_profile_id) = account.unzip();
    let read = opened.as_ref().map(|_| sample.took.as_secs_f64());
    let programme = sample.programme.map(|it| it.as_secs_f64()).filter(|it| *it > 0.0);
    let kilobits_per_second = |seconds: f64| sample.bytes as f64 * 8.0 / 1000.0 / seconds;
    StreamProfileTestResultView {
        success: (outcome != TrialOutcome::Redirects).then_some(outcome == TrialOutcome::Played),
        message: sentence(&outcome),
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
        bitrate_kbps: programme.or(read).filter(|it| *it > 0.0).map(|it| hundredths(kilobits_per_second(it))),
        programme_seconds: programme.map(hundredths),
        speed: programme.zip(read.filter(|it| *it > 0.0)).map(|(made, took)| hundredths(made / took)),
        video_codec: sample.video,
        resolution: sample.picture.map(|it| it.to_string()),
        audio_codecs: sample.audio,
        programme_count: Some(sample.n_programmes).filter(|it| *it > 0),
        program_lines: said,
    }
}

fn hundredths(number: f64) -> f64 {
    (number * 100.0).round() / 100.0
}

#[cfg(test)]
mod tests {
    use domain::account::{Account, AccountProfile, PlaylistLocation};
    use domain::ids::AccountId;
    use domain::source_url::SourceUrl;
    use domain::stream::StreamProperties;
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::{Rest, SECRET};

    const PROXY: &str = "/api/core/streamprofiles/1/test/";

    /// A stream with a secret in its URL, of an active or inactive account.
    async fn with_stream(is_active: bool) -> Rest {
        let rest = Rest::start().await;
        let profile = AccountProfile::default_of(ProfileId(2), "default", 1);
        let account = Account::new(AccountId(2), "provider", PlaylistLocation::None, profile, 0);
        rest.put([Account { is_active, ..account }]).await;
        let facts = StreamProperties::new(
            "one",
            SourceUrl::new(format!("http://anna:{SECRET}@provider.example/live/{SECRET}/1.ts")),
        );
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
    async fn a_failed_test_returns_the_reason_without_a_credential() {
        let rest = with_stream(true).await;
        let failed = rest.admin("POST", PROXY, json!({ "stream": 7 })).await;
        assert!(!failed.text.contains(SECRET), "{}", failed.text);
        let members = |body: &Value, keys: &[&str]| keys.iter().map(|it| body[it].clone()).collect::<Value>();
        assert_eq!(
            members(
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
    async fn a_redirecting_profile_opens_nothing_and_reports_that() {
        let rest = with_stream(true).await;
        let answer = rest.admin("POST", "/api/core/streamprofiles/2/test/", json!({ "stream": 7 })).await;
        assert_eq!(
            (answer.status, &answer.body["success"], &answer.body["outcome"]),
            (200, &Value::Null, &json!("redirects")),
            "{}",
            answer.text
        );
        assert_eq!(answer.body["message"], "Viewers are redirected to the provider.");
    }

    #[tokio::test]
    async fn an_unsupported_address_is_answered_with_the_reason() {
        let rest = Rest::start().await;
        // Simulates a machine without ffmpeg.
        let answer = rest.admin("POST", PROXY, json!({ "url": "http://provider.example/1.mpd" })).await;
        let expected = (200, &json!(false), &json!("unplayable"));
        assert_eq!((answer.status, &answer.body["success"], &answer.body["outcome"]), expected);
        assert!(answer.body["message"].as_str().unwrap().contains("need ffmpeg"), "{}", answer.text);
    }
}
