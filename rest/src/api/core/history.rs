//! `/api/core/history/`: rates, viewers, slots, failovers and the health of streams over days and weeks.

use actors::now_ms;
use domain::history::series::{POINTS_MAX, POINTS_MIN, Series};
use domain::history::settings::DAYS_MAX;
use domain::history::{HistorySample, HistorySubject, SubjectKind};
use domain::ids::{AccountId, ChannelId, StreamId, UserId};
use domain::stream::Stream;
use resource_derive::{Query, View};
use route_frame::access::ADMIN;
use route_frame::blocking::run_blocking;
use route_frame::call::Call;
use route_frame::route::Route;
use route_frame::value::Time;
use serde::Serialize;
use server::reply::Refusal;

use crate::choice::{Choice, Named, choice};
use crate::context::{RestCall, RestContext};

/// Selects a part of the history.
#[derive(Debug, Query)]
pub(crate) struct HistoryQuery {
    /// Subject of the history; the gateway by default.
    #[field(example = "channel")]
    scope: Option<Named<SubjectKind>>,
    /// Id of the account, channel, stream or user.
    #[field(at_least = 1, example = "7")]
    id: Option<u32>,
    /// Begin; a day before the end by default.
    #[field(example = "2031-05-03T07:00:00Z")]
    from: Option<Time>,
    /// End; now by default.
    #[field(example = "2031-05-04T07:00:00Z")]
    until: Option<Time>,
    /// Maximum number of steps in the answer; 300 by default.
    #[field(at_least = POINTS_MIN as i64, at_most = POINTS_MAX as i64, example = "300")]
    points: Option<usize>,
}

choice!(SubjectKind {
    Gateway = "gateway",
    Account = "account",
    Channel = "channel",
    User = "user",
    Stream = "stream"
});

/// The history of a subject in steps of equal length. In a cluster, it is that of the node that answers.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "History")]
pub(crate) struct HistoryView {
    /// Subject of the history.
    #[field(example = "channel")]
    scope: Named<SubjectKind>,
    /// Id of the account, channel, stream or user; `null` for the gateway.
    #[field(example = "7")]
    id: Option<u32>,
    /// Name of the account, channel, stream or user; `null` for the gateway.
    #[field(example = "News")]
    name: Option<String>,
    /// Name of the node that answers; `null` without a cluster.
    #[field(example = "attic")]
    node: Option<String>,
    /// Whether such a history is kept (`history_settings`); never without a data folder. Otherwise nothing is known.
    #[field(example = "true")]
    is_kept: bool,
    /// Begin of the first step.
    start: Time,
    /// Length of a step in seconds.
    #[field(example = "300")]
    step_seconds: i64,
    /// Number of steps; each series has as many values.
    #[field(example = "288")]
    points: usize,
    /// The series of the scope.
    series: HistorySeriesView,
}

/// Values of each step; `null` where nothing is known. A series that the scope does not have is `null`.
#[derive(Clone, Debug, Serialize, View)]
#[resource(name = "HistorySeries")]
pub(crate) struct HistorySeriesView {
    /// Mean rate from providers, in kilobits per second.
    bitrate_in_kbps: Option<Vec<Option<u64>>>,
    /// Mean rate to viewers, in kilobits per second.
    bitrate_out_kbps: Option<Vec<Option<u64>>>,
    /// Highest rate from providers over ten seconds, in kilobits per second.
    peak_in_kbps: Option<Vec<Option<u64>>>,
    /// Highest rate to viewers over ten seconds, in kilobits per second.
    peak_out_kbps: Option<Vec<Option<u64>>>,
    /// Mean number of viewers.
    viewers: Option<Vec<Option<f64>>>,
    /// Highest number of viewers.
    viewers_max: Option<Vec<Option<u64>>>,
    /// Mean number of slots in use. In a cluster, those of all nodes.
    slots: Option<Vec<Option<f64>>>,
    /// Highest number of slots in use.
    slots_max: Option<Vec<Option<u64>>>,
    /// Limit of the slots; 0 without a limit.
    slots_limit: Option<Vec<Option<u64>>>,
    /// Seconds in which the channel or the stream played.
    playing_seconds: Option<Vec<Option<u64>>>,
    /// Seconds in which viewers of the channel waited for a stream. Of a stream: in which they waited after it had failed.
    failing_seconds: Option<Vec<Option<u64>>>,
    /// Number of failovers to another stream; of a stream, those away from it.
    failovers: Option<Vec<Option<u64>>>,
    /// Number of streams that failed to open and of sources that were lost; of a stream, how often it failed or was lost.
    losses: Option<Vec<Option<u64>>>,
    /// Size of the recordings in bytes.
    recording_bytes: Option<Vec<Option<u64>>>,
}

/// Default number of steps.
const POINTS: usize = 300;
const DAY_SECONDS: i64 = 86_400;

pub(super) fn routes() -> Vec<Route> {
    let summary = "Returns rates, viewers, slots and failovers over time.";
    vec![Route::get("/api/core/history/", ADMIN, summary, retrieve)]
}

async fn retrieve(call: Call, query: HistoryQuery) -> Result<HistoryView, Refusal> {
    let rest = call.rest();
    let kind = query.scope.map_or(SubjectKind::Gateway, |it| it.0);
    let (subject, name) = subject(rest, kind, query.id).await?;
    let now = now_ms().div_euclid(1_000);
    let (from, until) = span(&query, now)?;
    let points = query.points.unwrap_or(POINTS);
    let series = rest.operation.history.series(subject, from, until, points).await;
    Ok(HistoryView {
        scope: Named(kind),
        id: query.id,
        name,
        node: rest.nodes.node().map(|it| it.others.own_name()),
        is_kept: rest.operation.history.keeps(subject),
        start: Time(series.steps.start.saturating_mul(1_000)),
        step_seconds: series.steps.step_seconds,
        points: series.samples.len(),
        series: HistorySeriesView::new(kind, &series),
    })
}

/// Returns what a request is about, with its name.
async fn subject(
    rest: &RestContext,
    kind: SubjectKind,
    id: Option<u32>,
) -> Result<(HistorySubject, Option<String>), Refusal> {
    let id = match (kind, id) {
        (SubjectKind::Gateway, None) => return Ok((HistorySubject::Gateway, None)),
        (SubjectKind::Gateway, Some(_)) => {
            return Err(Refusal::field("id", "The gateway has no id. Choose a scope."));
        }
        (_, None) => {
            return Err(Refusal::field("id", format!("The scope {} needs an id.", kind.name())));
        }
        (_, Some(id)) => id,
    };
    let models = &rest.models;
    let (subject, name) = match kind {
        SubjectKind::Account => {
            (HistorySubject::Account(AccountId(id)), models.accounts.load().get(id).map(|it| it.name.clone()))
        }
        SubjectKind::Channel => {
            (HistorySubject::Channel(ChannelId(id)), models.channels.load().get(id).map(|it| it.name.clone()))
        }
        SubjectKind::User => {
            (HistorySubject::User(UserId(id)), models.users.load().get(id).map(|it| it.username.clone()))
        }
        SubjectKind::Stream => {
            let store = models.store.clone();
            let read = move || store.collection::<Stream>().get(id);
            let stream = run_blocking("read a stream", read).await??;
            (HistorySubject::Stream(StreamId(id)), stream.map(|it| it.name().to_owned()))
        }
        SubjectKind::Gateway => (HistorySubject::Gateway, None),
    };
    match name {
        Some(_) => Ok((subject, name)),
        None => Err(Refusal::field("id", format!("There is no {} with the id {id}.", kind.name()))),
    }
}

/// Returns begin and end, in seconds since 1970.
fn span(query: &HistoryQuery, now: i64) -> Result<(i64, i64), Refusal> {
    let seconds = |it: Time| it.0.div_euclid(1_000);
    let until = query.until.map_or(now, seconds);
    let from = query.from.map_or(until.saturating_sub(DAY_SECONDS), seconds);
    if until <= from {
        return Err(Refusal::field("until", "The end must be after the begin."));
    }
    if until.saturating_sub(from) > i64::from(DAYS_MAX + 1) * DAY_SECONDS {
        return Err(Refusal::field("from", format!("The history covers at most {DAYS_MAX} days.")));
    }
    Ok((from, until))
}

/// Values of a series.
type Column<T> = Option<Vec<Option<T>>>;

impl HistorySeriesView {
    fn new(kind: SubjectKind, series: &Series) -> Self {
        let has = |kinds: &[SubjectKind]| kinds.contains(&kind);
        let whole = |is_there: bool, value: fn(&HistorySample) -> u64| -> Column<u64> {
            is_there.then(|| series.samples.iter().map(|it| it.as_ref().map(value)).collect())
        };
        let mean = |is_there: bool, sum: fn(&HistorySample) -> u64| -> Column<f64> {
            let value = |it: &HistorySample| hundredths(sum(it), it.seconds);
            is_there.then(|| series.samples.iter().map(|it| it.as_ref().map(value)).collect())
        };
        let (is_user, is_stream) = (has(&[SubjectKind::User]), has(&[SubjectKind::Stream]));
        let plays = is_stream || has(&[SubjectKind::Channel]);
        let has_slots = has(&[SubjectKind::Gateway, SubjectKind::Account]);
        let fails_over = plays || has(&[SubjectKind::Gateway]);
        Self {
            bitrate_in_kbps: whole(!is_user, |it| kbps(it.bytes_in, it.seconds)),
            bitrate_out_kbps: whole(!is_stream, |it| kbps(it.bytes_out, it.seconds)),
            peak_in_kbps: whole(!is_user, |it| it.peak_in_kbps.into()),
            peak_out_kbps: whole(!is_stream, |it| it.peak_out_kbps.into()),
            viewers: mean(!is_stream, |it| it.viewer_seconds),
            viewers_max: whole(!is_stream, |it| it.viewers_max.into()),
            slots: mean(has_slots, |it| it.slot_seconds),
            slots_max: whole(has_slots, |it| it.slots_max.into()),
            slots_limit: whole(has_slots, |it| it.slots_limit.into()),
            playing_seconds: whole(plays, |it| it.playing_seconds.into()),
            failing_seconds: whole(plays, |it| it.failing_seconds.into()),
            failovers: whole(fails_over, |it| it.failovers.into()),
            losses: whole(fails_over, |it| it.losses.into()),
            recording_bytes: whole(has(&[SubjectKind::Gateway]), |it| it.recording_bytes),
        }
    }
}

/// Returns a mean rate in kilobits per second.
fn kbps(bytes: u64, seconds: u32) -> u64 {
    bytes.saturating_mul(8) / 1_000 / u64::from(seconds.max(1))
}

/// Returns a mean with two decimals.
fn hundredths(sum: u64, seconds: u32) -> f64 {
    let rounded = sum.saturating_mul(100) / u64::from(seconds.max(1));
    f64::from(u32::try_from(rounded).unwrap_or(u32::MAX)) / 100.0
}

#[cfg(test)]
mod tests {
    use domain::account::CUSTOM_ACCOUNT;
    use domain::core_settings::HISTORY_SETTINGS;
    use domain::history::block::{Block, Resolution};
    use domain::setting::CoreSetting;
    use domain::source_url::SourceUrl;
    use domain::stream::StreamProperties;
    use domain::user::{User, UserLevel};
    use serde_json::{Value, json};

    use super::*;
    use crate::testing::Rest;

    const PATH: &str = "/api/core/history/";

    #[tokio::test]
    async fn the_history_of_the_gateway_has_columns_of_equal_length() {
        let rest = Rest::start().await;
        let query = format!("{PATH}?from=2031-05-04T00:00:00Z&until=2031-05-05T00:00:00Z&points=100");
        let answer = rest.admin("GET", &query, Value::Null).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let (body, series) = (&answer.body, &answer.body["series"]);
        assert_eq!(
            (&body["scope"], &body["is_kept"]),
            (&json!("gateway"), &json!(false)),
            "nothing measures"
        );
        assert_eq!((&body["step_seconds"], &body["points"]), (&json!(900), &json!(96)));
        for name in ["bitrate_in_kbps", "viewers", "slots_limit", "failovers", "recording_bytes"] {
            assert_eq!(series[name], json!(vec![Value::Null; 96]), "{name}");
        }
        assert_eq!(series["playing_seconds"], Value::Null);
    }

    #[tokio::test]
    async fn a_user_has_a_history_only_by_setting_and_other_users_see_none() {
        let rest = Rest::start().await;
        let path = format!("{PATH}?scope=user&id=1");
        let answer = rest.admin("GET", &path, Value::Null).await;
        assert_eq!((answer.status, &answer.body["is_kept"]), (200, &json!(false)));
        assert_eq!(answer.body["series"]["bitrate_in_kbps"], Value::Null);
        for answer in
            [rest.standard("GET", &path, Value::Null).await, rest.streamer("GET", PATH, Value::Null).await]
        {
            assert_eq!(answer.status, 403);
        }
    }

    async fn keep_users(rest: &Rest, is_kept: bool) {
        let (id, key, value) = (13, HISTORY_SETTINGS.to_owned(), json!({ "users": is_kept }));
        rest.put([CoreSetting { id, key, name: String::new(), value }]).await;
    }

    /// Returns the sum of what a user got, in kilobits per second; `None` if nothing is known.
    async fn rate_of_user(rest: &Rest) -> Option<u64> {
        let answer = rest.admin("GET", &format!("{PATH}?scope=user&id=70"), Value::Null).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let values = answer.body["series"]["bitrate_out_kbps"].as_array().unwrap();
        values.iter().filter_map(Value::as_u64).reduce(|sum, it| sum + it)
    }

    #[tokio::test]
    async fn what_is_kept_of_a_user_goes_with_the_user_and_with_the_setting() {
        let rest = Rest::start().await;
        let anna = User::new(UserId(70), "anna", UserLevel::Streamer, 0);
        rest.put([anna.clone()]).await;
        let measured = |subjects: &[HistorySubject]| {
            let mut block = Block::new(Resolution::FINE.start(now_ms() / 1_000), Resolution::FINE);
            let sample = HistorySample { seconds: 100, bytes_out: 100_000, ..HistorySample::default() };
            subjects.iter().for_each(|it| block.add(*it, &sample, 10));
            rest.context.operation.history.measured(block)
        };
        let both = [HistorySubject::Gateway, HistorySubject::User(UserId(70))];
        measured(&both).await;
        assert_eq!(rate_of_user(&rest).await, None, "the setting is off");
        assert_eq!(rest.admin("GET", PATH, Value::Null).await.body["is_kept"], json!(true));

        keep_users(&rest, true).await;
        measured(&both).await;
        assert_eq!(rate_of_user(&rest).await, Some(8));

        let removed = rest.admin("DELETE", "/api/accounts/users/70/", Value::Null).await;
        assert_eq!(removed.status, 204, "{removed:?}");
        measured(&[HistorySubject::Gateway]).await;
        rest.put([anna]).await;
        assert_eq!(rate_of_user(&rest).await, Some(0), "another user with this id has watched nothing");

        measured(&both).await;
        keep_users(&rest, false).await;
        measured(&[HistorySubject::Gateway]).await;
        let folder = rest.data_dir().join("history");
        assert!(folder.join("gateway-5m.ring").exists() && !folder.join("users-5m.ring").exists());
    }

    #[tokio::test]
    async fn a_stream_has_its_rate_its_time_playing_and_its_failures() {
        let rest = Rest::start().await;
        let properties = StreamProperties::new("News A", SourceUrl::new("http://tv.example/a.ts".to_owned()));
        rest.put([Stream::new(StreamId(9), CUSTOM_ACCOUNT, properties, 0)]).await;
        let mut block = Block::new(Resolution::FINE.start(now_ms() / 1_000), Resolution::FINE);
        let seconds = 100;
        block.add(HistorySubject::Gateway, &HistorySample { seconds, ..HistorySample::default() }, 1);
        let sample = HistorySample {
            seconds,
            bytes_in: 100_000,
            playing_seconds: 80,
            failing_seconds: 20,
            failovers: 1,
            losses: 2,
            ..HistorySample::default()
        };
        block.add(HistorySubject::Stream(StreamId(9)), &sample, 10);
        rest.context.operation.history.measured(block).await;
        assert!(rest.data_dir().join("history/streams-5m.ring").exists());
        let answer = rest.admin("GET", &format!("{PATH}?scope=stream&id=9"), Value::Null).await;
        assert_eq!((answer.status, &answer.body["name"]), (200, &json!("News A")), "{answer:?}");
        let series = &answer.body["series"];
        let sum = |name: &str| series[name].as_array().unwrap().iter().filter_map(Value::as_u64).sum::<u64>();
        let names = ["bitrate_in_kbps", "playing_seconds", "failing_seconds", "failovers", "losses"];
        assert_eq!(names.map(sum), [8, 80, 20, 1, 2]);
        assert_eq!((&series["viewers"], &series["bitrate_out_kbps"]), (&Value::Null, &Value::Null));
        let other = rest.standard("GET", &format!("{PATH}?scope=stream&id=9"), Value::Null).await;
        assert_eq!(other.status, 403);
    }

    #[tokio::test]
    async fn a_wrong_request_is_refused_with_the_name_of_its_parameter() {
        let rest = Rest::start().await;
        for (query, field) in [
            ("scope=planet", "scope"),
            ("scope=channel", "id"),
            ("scope=channel&id=77", "id"),
            ("scope=stream", "id"),
            ("scope=stream&id=77", "id"),
            ("id=1", "id"),
            ("points=2001", "points"),
            ("points=1", "points"),
            ("from=yesterday", "from"),
            ("from=2031-05-04T00:00:00Z&until=2031-05-04T00:00:00Z", "until"),
            ("from=2031-01-01T00:00:00Z&until=2031-05-04T00:00:00Z", "from"),
        ] {
            let answer = rest.admin("GET", &format!("{PATH}?{query}"), Value::Null).await;
            assert_eq!((answer.status, answer.body[field].is_array()), (400, true), "{query}: {answer:?}");
        }
    }
}
