//! What do rules of recordings cost: 10,000 rules on 2,000,000 programmes, again after a change of 1 % of the guide, and the
//! forecast of 10,000 recordings?
//!
//! 9,900 rules name a title, four of five with the id of a channel in the guide, and 100 are regular expressions. The
//! programmes are in memory in the form in which guide files contain them; reading the files is measured by the bench
//! `guide`. The forecast has 400 channels, each on three of 40 accounts. The rules are applied to the whole guide once; the
//! changes of the guide and the forecast are repeated, and their times are medians, with the longest one.
//!
//! `cargo bench --bench recording_rules -- [--rules 10000] [--programmes 2000000] [--recordings 10000] [--rounds 5]`

#![expect(clippy::print_stdout, reason = "a bench prints its results")]
#![expect(clippy::disallowed_methods, reason = "this bench does not pause time")]

mod support;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use domain::guide::matching::Quality;
use domain::ids::{AccountId, ChannelId, ProfileId, RecordingId, RecordingRuleId};
use domain::limits::LimitScope;
use domain::plan::SlotPool;
use domain::recording::forecast::{Forecast, ForecastDemand, Prospect};
use domain::recording::rules::{
    GuideScan, KnownMatches, MatchCache, MatchKey, PATTERN_RULES_MAX, PlanInput, PlannedChange,
    ProgrammeTest, RecordingRule, RuleList, RuleSelection, RuleSet, RuleSubject, TextMode, TextTest, plan,
};
use jiff::tz::TimeZone;
use serde_json::{Value, json};
use uuid::Uuid;

use self::support::percentile;

/// 2026-01-01T00:00:00Z, in seconds.
const BEGIN: i64 = 1_767_225_600;
const N_CHANNELS: u32 = 2_000;
const N_TITLES: u32 = 50_000;
const PROGRAMME_SECONDS: i64 = 1_200;

const WHOLE_GOAL_MS: f64 = 500.0;
const CHANGE_GOAL_MS: f64 = 20.0;
const FORECAST_GOAL_MS: f64 = 50.0;

fn main() {
    let n_rules = option("--rules", 10_000) as u32;
    let n_programmes = option("--programmes", 2_000_000) as u32;
    let n_recordings = option("--recordings", 10_000) as u32;
    let n_rounds = option("--rounds", 5).max(1);
    let rules: Vec<_> = (1..=n_rules).map(|n| Arc::new(rule(n))).collect();
    let per_channel = n_programmes / N_CHANNELS;
    let programmes: Vec<Vec<Stored>> = (0..N_CHANNELS).map(|it| channel(it, per_channel)).collect();

    let (compile_ms, set) = timed(|| RuleSet::new(rules.iter().map(|it| &**it), []));
    drop(set);
    let tests = || RuleSet::tests(rules.iter().map(|it| &**it), [], |_| None);
    let mut cache = MatchCache::default();
    let mut contents = vec![0_u64; N_CHANNELS as usize];
    let (find_ms, found) = timed(|| scan(&mut cache, tests(), &programmes, &contents));
    let n_found = found.len();
    let (plan_ms, n_planned) = timed(|| plan_of(&rules, found).len());
    println!("{n_found} programmes found, {n_planned} recordings planned");
    println!("compile the rules: {compile_ms:.1} ms");
    print_time("find the programmes of all channels", find_ms, WHOLE_GOAL_MS);
    println!("plan: {plan_ms:.1} ms");

    let (mut find_changed, mut plan_changed) = (Vec::new(), Vec::new());
    for round in 1..=n_rounds {
        contents[..N_CHANNELS as usize / 100].fill(round);
        let (time_ms, found) = timed(|| scan(&mut cache, tests(), &programmes, &contents));
        assert_eq!(found.len(), n_found, "the texts are the same");
        find_changed.push(time_ms);
        plan_changed.push(timed(|| plan_of(&rules, found).len()).0);
    }
    let find_changed = Row::from_times(find_changed);
    let plan_changed = Row::from_times(plan_changed);
    print_time(
        "find the programmes after a change of 1 % of the channels",
        find_changed.median_ms,
        CHANGE_GOAL_MS,
    );
    println!("longest: {:.1} ms; plan: {:.1} ms", find_changed.max_ms, plan_changed.median_ms);

    let (mut forecasts, mut n_lost) = (Vec::new(), 0);
    for _ in 0..n_rounds {
        let demands: Vec<_> = (1..=n_recordings).map(demand).collect();
        let (time_ms, forecast) = timed(|| Forecast::new(demands));
        forecasts.push(time_ms);
        n_lost = forecast.prospects().filter(|it| matches!(it.1, Prospect::Lost(_))).count();
    }
    let forecasts = Row::from_times(forecasts);
    println!("{n_lost} of {n_recordings} recordings have no connection");
    print_time("forecast", forecasts.median_ms, FORECAST_GOAL_MS);
    println!("longest: {:.1} ms", forecasts.max_ms);
    support::record(
        "recording_rules",
        json!({
            "rules": n_rules, "pattern_rules": PATTERN_RULES_MAX, "programmes": per_channel * N_CHANNELS,
            "programmes_found": n_found, "recordings_planned": n_planned, "rounds": n_rounds,
            "compile_ms": compile_ms, "find_ms": find_ms, "find_goal_ms": WHOLE_GOAL_MS, "plan_ms": plan_ms,
            "find_after_change": find_changed.json(), "find_after_change_goal_ms": CHANGE_GOAL_MS,
            "plan_after_change": plan_changed.json(),
            "recordings": n_recordings, "without_connection": n_lost,
            "forecast": forecasts.json(), "forecast_goal_ms": FORECAST_GOAL_MS,
        }),
    );
}

/// The times of the same step in several rounds.
struct Row {
    median_ms: f64,
    max_ms: f64,
}

impl Row {
    fn from_times(mut times: Vec<f64>) -> Self {
        Self { median_ms: percentile(&mut times, 0.5), max_ms: percentile(&mut times, 1.0) }
    }

    fn json(&self) -> Value {
        json!({ "median_ms": self.median_ms, "max_ms": self.max_ms })
    }
}

/// A programme as a guide file contains it. Times are seconds since 1970.
struct Stored {
    start: i64,
    stop: i64,
    inner: String,
}

fn rule(n: u32) -> RecordingRule {
    let (mode, text, tvg_id) = match n {
        n if n <= PATTERN_RULES_MAX as u32 => (TextMode::Regex, format!("^show number 4{n} of "), None),
        n if n % 5 == 0 => (TextMode::Exact, title(n * 3), None),
        n => (TextMode::Exact, title(n * 3), Some(key(n % N_CHANNELS))),
    };
    let title = Some(TextTest { mode, text });
    RecordingRule {
        id: RecordingRuleId(n),
        list: RuleList::Series,
        name: String::new(),
        enabled: true,
        selection: RuleSelection::Programmes(ProgrammeTest { tvg_id, title, ..ProgrammeTest::default() }),
        channel: None,
        keep: 0,
        quota_bytes: 0,
        padding_before: None,
        padding_after: None,
        priority: 50,
        owner: None,
        created_at: BEGIN * 1000,
        updated_at: BEGIN * 1000,
    }
}

fn title(n: u32) -> String {
    format!("Show Number {} of the Evening", n % N_TITLES)
}

fn key(channel: u32) -> String {
    format!("channel{channel}.example")
}

fn channel(channel: u32, n: u32) -> Vec<Stored> {
    let programme = |at: u32| {
        // Spread, but the same at each run.
        let number = (channel * 7_919 + at).wrapping_mul(2_654_435_761) >> 7;
        let start = BEGIN + i64::from(at) * PROGRAMME_SECONDS;
        let inner = format!(
            "<title lang=\"en\">{}</title><desc lang=\"en\">What happens in part {at}.</desc>\
             <episode-num system=\"xmltv_ns\">{}.{}.</episode-num>",
            title(number),
            number % 9,
            number % 24
        );
        Stored { start, stop: start + PROGRAMME_SECONDS, inner }
    };
    (0..n).map(programme).collect()
}

type Found = Vec<(RuleSubject, Arc<domain::recording::rules::Airing>)>;

/// Finds the programmes, and reads only channels whose content is another one than at the last time.
fn scan(
    cache: &mut MatchCache,
    tests: Vec<(RuleSubject, ProgrammeTest)>,
    programmes: &[Vec<Stored>],
    contents: &[u64],
) -> Found {
    let set = cache.set_of(tests);
    let mut scan = GuideScan::new(&set, []);
    cache.exchange_titles(&mut scan);
    let (from, until) = (i64::MIN, i64::MAX);
    let file = (1, contents.iter().sum());
    let mut read = HashMap::new();
    for ((n, programmes), content) in (0..).zip(programmes).zip(contents) {
        let channels: Arc<[ChannelId]> = Arc::new([ChannelId(n + 1)]);
        let key = MatchKey { key: key(n), guide_ids: Vec::new(), channels: Arc::clone(&channels) };
        if let Some(known) = cache.take(n.into(), &key, file, (from, until), || Some(*content)) {
            scan.reuse(&key.key, &known.matches, from, until);
            read.insert(n.into(), known);
            continue;
        }
        let Some(mut channel) = scan.channel(&key.key, &[], channels) else { continue };
        for it in programmes {
            channel.programme(it.start, it.stop, &it.inner, || it.start.to_string());
        }
        if let Some(matches) = channel.finish(from, until) {
            let time = (from, until);
            read.insert(n.into(), KnownMatches { key, file, content: *content, time, matches });
        }
    }
    assert!(!scan.is_too_much(), "all programmes that rules select are found");
    cache.exchange_titles(&mut scan);
    cache.replace(read);
    scan.finish().0
}

fn plan_of(rules: &[Arc<RecordingRule>], airings: Found) -> Vec<PlannedChange> {
    plan(PlanInput {
        rules,
        recordings: &[],
        memories: &HashMap::new(),
        airings,
        covered: &HashSet::new(),
        channel: &|id| Some((id.to_string(), Uuid::from_u128(id.0.into()))),
        may_record: &|_, _| true,
        quality: &|_| Quality::default(),
        is_in_library: &|_, _| false,
        padding: (60, 300),
        zone: &TimeZone::UTC,
        now: BEGIN * 1000,
        n_new_max: 20_000,
    })
}

fn demand(n: u32) -> ForecastDemand {
    let channel = n.wrapping_mul(2_654_435_761) % 400;
    let pool = |n: u32| SlotPool {
        account: AccountId(n),
        account_name: format!("account {n}"),
        profile: ProfileId(n),
        max_streams: 2,
        release_delay: Duration::ZERO,
        crash_cooling: None,
        changed_at: 0,
        scope: LimitScope::default(),
        shared: None,
    };
    let start = BEGIN + i64::from(n.wrapping_mul(40_503) % (14 * 24 * 12)) * 300;
    let end = start + i64::from(1 + n % 6) * 1_200;
    ForecastDemand {
        id: RecordingId(n),
        channel: ChannelId(channel),
        start: start * 1000,
        end: end * 1000,
        begins_at: (start - 60) * 1000,
        ends_at: (end + 300) * 1000,
        padding_before: 60_000,
        priority: (n % 5 * 10) as u8,
        watched: None,
        is_over: false,
        pools: (0..3).map(|it| pool(1 + (channel + it * 13) % 40)).collect(),
    }
}

/// Runs a step. Returns its time in milliseconds as well.
fn timed<R>(run: impl FnOnce() -> R) -> (f64, R) {
    let begin = Instant::now();
    let done = run();
    (begin.elapsed().as_secs_f64() * 1e3, done)
}

fn print_time(what: &str, time_ms: f64, goal_ms: f64) {
    println!("{what}: {time_ms:.1} ms (goal {goal_ms} ms)");
}

fn option(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|it| it != name);
    arguments.nth(1).and_then(|it| it.parse().ok()).unwrap_or(default)
}
