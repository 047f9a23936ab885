//! The forecast of recordings: which of them will have a connection.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use actors::{Target, now_ms};
use domain::channel::Channel;
use domain::ids::{ChannelId, RecordingId};
use domain::plan::SlotPool;
use domain::recording::Recording;
use domain::recording::forecast::{FORECAST_MS, Forecast, ForecastDemand, Prospect};
use domain::recording::rules::{
    Airing, GuideScan, HORIZON_MS, ProgrammeTest, RuleList, RuleSelection, RuleSet, RuleSubject, TextMode,
    TextTest,
};
use domain::stream_profile::Delivery;
use parking_lot::Mutex;
use storage::Table;
use uuid::Uuid;

use crate::app::App;
use crate::recording_rules::{Permissions, new_rule, read_guides};

/// For how long a forecast is kept if no recording and no channel changes; accounts change rarely.
const AGE_MAX: Duration = Duration::from_secs(10);
/// Maximum number of lost recordings for which another showing is searched.
const ALTERNATIVES_MAX: usize = 200;

/// The last forecast, for lists that many clients request.
#[derive(Default)]
pub(crate) struct ForecastCache(Mutex<Option<Kept>>);

struct Kept {
    recordings: Arc<Table<Recording>>,
    channels: Arc<Table<Channel>>,
    at: i64,
    forecast: Arc<Forecast>,
}

/// Another showing of the episode of a lost recording, which would have a connection.
#[derive(Clone, Debug)]
pub(crate) struct Alternative {
    pub(crate) channel: ChannelId,
    pub(crate) airing: Airing,
}

/// The accounts that can play each channel.
struct Pools<'a> {
    app: &'a App,
    known: HashMap<Uuid, Arc<[SlotPool]>>,
}

impl Pools<'_> {
    fn of(&mut self, channel: Uuid) -> Arc<[SlotPool]> {
        let app = self.app;
        let found = || {
            let plan = app.plans.plan(&Target::Channel(channel));
            let candidates = plan.iter().flat_map(|it| &it.candidates);
            // Players are sent to the provider of the others, so there is nothing to record.
            let mut pools: Vec<SlotPool> = Vec::new();
            for it in candidates.filter(|it| it.profile != Delivery::Redirect) {
                if pools.iter().all(|pool| pool.profile != it.pool.profile) {
                    pools.push(it.pool.clone());
                }
            }
            pools.into()
        };
        Arc::clone(self.known.entry(channel).or_insert_with(found))
    }
}

/// Returns the forecast of the recordings of the next two weeks.
pub(crate) fn forecast(app: &App) -> Arc<Forecast> {
    let (recordings, channels, now) = (app.models.recordings.load(), app.models.channels.load(), now_ms());
    let mut kept = app.forecast_cache.0.lock();
    if let Some(it) = &*kept
        && Arc::ptr_eq(&it.recordings, &recordings)
        && Arc::ptr_eq(&it.channels, &channels)
        && (0..AGE_MAX.as_millis() as i64).contains(&(now - it.at))
    {
        return Arc::clone(&it.forecast);
    }
    let mut pools = Pools { app, known: HashMap::new() };
    let is_ahead = |it: &&Arc<Recording>| {
        !it.status.is_final() && it.ends_at() > now && it.begins_at() < now.saturating_add(FORECAST_MS)
    };
    let demands =
        recordings.iter().filter(is_ahead).map(|it| ForecastDemand::of(it, pools.of(it.channel_uuid), now));
    let forecast = Arc::new(Forecast::new(demands.collect()));
    *kept = Some(Kept { recordings, channels, at: now, forecast: Arc::clone(&forecast) });
    forecast
}

/// Searches another showing for recordings that are lost. Blocks.
pub(crate) fn alternatives(app: &App, forecast: &Forecast) -> HashMap<RecordingId, Alternative> {
    let (recordings, channels, now) = (app.models.recordings.load(), app.models.channels.load(), now_ms());
    let is_lost = |it: &&Arc<Recording>| {
        let is_known =
            it.followed.as_ref().is_some_and(|it| it.episode.is_known() && !it.guide_key.is_empty());
        is_known && matches!(forecast.get(it.id), Some(Prospect::Lost(_)))
    };
    let lost: Vec<_> = recordings.iter().filter(is_lost).take(ALTERNATIVES_MAX).collect();
    if lost.is_empty() {
        return HashMap::new();
    }
    let rules = lost.iter().map(|it| {
        let title = TextTest { mode: TextMode::Exact, text: it.title().to_owned() };
        let test = ProgrammeTest { title: Some(title), ..ProgrammeTest::default() };
        new_rule(RuleList::Series, RuleSelection::Programmes(test), it.owner)
    });
    let rules: Vec<_> = rules.collect();
    let set = RuleSet::new(&rules, []);
    let mut scan = GuideScan::new(&set, []);
    read_guides(app, &mut scan, now / 1000, now.saturating_add(HORIZON_MS) / 1000, None);
    let (airings, _) = scan.finish();
    let (permissions, settings) = (Permissions::of(app), crate::recording_rules::dvr_settings(app));
    let mut pools = Pools { app, known: HashMap::new() };
    let mut found = HashMap::<RecordingId, Alternative>::new();
    for (subject, airing) in airings {
        let RuleSubject::Rule(at) = subject else { continue };
        let (Some(recording), Some(rule)) = (lost.get(at as usize), rules.get(at as usize)) else { continue };
        let is_it = recording.followed.as_ref().is_some_and(|it| it.episode == airing.episode);
        let is_earlier = found.get(&recording.id).is_none_or(|it| airing.start < it.airing.start);
        if !is_it || !is_earlier || airing.start <= now {
            continue;
        }
        for id in airing.channels.iter() {
            let Some(channel) = channels.get(id.0) else { continue };
            let may_record = permissions.may_record(rule, channel, &settings);
            if may_record && forecast.has_room(*id, airing.start, airing.end, &pools.of(channel.uuid)) {
                found.insert(recording.id, Alternative { channel: *id, airing: Airing::clone(&airing) });
                break;
            }
        }
    }
    found
}
