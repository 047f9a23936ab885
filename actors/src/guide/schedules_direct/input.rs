//! The guide of a source: stations of its lineups, changed days of their schedules, and programmes of these days.
//!
//! Days that have not changed are taken from the former guide. Stations are read in groups, so that memory is bounded
//! whatever the size of the lineups.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use domain::guide::channel::GuideChannel;
use domain::guide::programme::ProgrammeImage;
use domain::guide::schedules_direct::{
    ARTWORK_MAX, Airing, DAYS, DayMark, GuideMarks, PROGRAMS_MAX, ProgramInfo, REFRESH_PAUSE_MS,
    STATIONS_MAX, ServiceFault, ServiceStatus, Station, StationArtwork, best_images, date_of, lineups,
    poster_root, programme, stations,
};
use domain::ids::GuideChannelId;
use domain::panel::{Element, ElementParser};
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use storage::guide::GuideFile;

use super::client::base_url;
use super::{SchedulesDirect, ServiceError, encoded};
use crate::guide::error::GuideError;
use crate::guide::input::{ContentMark, GuideContent, GuideContext, GuideInput, GuideSink};
use crate::guide::landing::check_source;
use crate::guide::progress::GuidePhase;

/// Seconds in a day.
const DAY: i64 = 86_400;
/// Stations of one request for checksums.
const CHECKSUM_STATIONS: usize = 500;
/// Stations whose programmes are in memory at once.
const GROUP_STATIONS: usize = 50;
/// Programmes that are remembered from one group to the next.
const PROGRAMS_KEPT_MAX: usize = 20_000;
/// Maximum length of one record of the service, in bytes. The usual ones have some kilobytes.
const ELEMENT_BYTES_MAX: usize = 1024 * 1024;

/// Reads the guide of a source from the service.
pub(in crate::guide) struct SchedulesDirectInput {
    context: GuideContext,
    client: SchedulesDirect,
    /// Number of the present day since 1970-01-01, in UTC.
    today: i64,
    programs: HashMap<String, Arc<ProgramInfo>>,
    images: HashMap<String, Arc<[ProgrammeImage]>>,
}

/// The days that the former guide contains, and where.
struct Former {
    file: Option<Arc<GuideFile>>,
    /// The versions of its days; `None` if all days have to be fetched.
    marks: Option<GuideMarks>,
    channels: HashMap<String, GuideChannelId>,
}

/// The checksum of each day of each station, by station and number of the day.
type Checksums = BTreeMap<String, BTreeMap<i64, DayMark>>;

impl SchedulesDirectInput {
    pub(in crate::guide) fn new(context: GuideContext) -> Self {
        let client = context.services.schedules_direct.clone();
        client.connect(&context.fetch);
        let today = context.now.div_euclid(1000 * DAY);
        Self { context, client, today, programs: HashMap::new(), images: HashMap::new() }
    }

    fn json(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, GuideError> {
        let work = self.client.json(&self.context.source, method, path, body);
        Ok(self.context.wait(work)??)
    }

    /// Requests a list, and calls `take` for each of its elements that can be read. Returns the number of the others.
    fn list<T: serde::de::DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
        mut take: impl FnMut(T) -> Result<(), GuideError>,
    ) -> Result<u64, GuideError> {
        let work = self.client.bytes(&self.context.source, Method::POST, path, Some(body));
        let answer = self.context.wait(work)??;
        let (mut n_skipped, mut failed) = (0, Ok(()));
        let mut parser = ElementParser::new(ELEMENT_BYTES_MAX);
        parser.push(&answer, &mut |element| {
            let record = match element {
                Element::Value { json, .. } => serde_json::from_slice(json).ok(),
                Element::TooLong => None,
            };
            match record {
                Some(record) if failed.is_ok() => failed = take(record),
                Some(_) => {}
                None => n_skipped += 1,
            }
        });
        failed.map(|()| n_skipped)
    }

    /// Returns the stations of all lineups, each once.
    fn stations(&self) -> Result<Vec<Station>, GuideError> {
        let answer = self.json(Method::GET, "/lineups", None)?;
        let wanted: Vec<_> = lineups(&answer).into_iter().filter(|it| !it.is_deleted).collect();
        if wanted.is_empty() {
            return Err(ServiceError::Fault(ServiceFault::NoLineups).into());
        }
        let style = self.context.source.custom_properties.get("logo_style").and_then(Value::as_str);
        let (mut all, mut seen) = (Vec::new(), HashSet::new());
        for lineup in wanted {
            let answer = self.json(Method::GET, &format!("/lineups/{}", encoded(&lineup.id)), None)?;
            all.extend(stations(&answer, style).into_iter().filter(|it| seen.insert(it.id.clone())));
            if all.len() > STATIONS_MAX {
                return Err(GuideError::TooMany { what: "channels", max: STATIONS_MAX as u64 });
            }
        }
        Ok(all)
    }

    /// Returns the checksums of the days from today on.
    fn checksums(&self, stations: &[Station]) -> Result<Checksums, GuideError> {
        let dates: Vec<_> = self.days().map(|it| date_of(it * DAY)).collect();
        let mut all = Checksums::new();
        for group in stations.chunks(CHECKSUM_STATIONS) {
            let wanted = group.iter().map(|it| json!({ "stationID": it.id, "date": dates }));
            let answer = self.json(Method::POST, "/schedules/md5", Some(&wanted.collect::<Value>()))?;
            for station in group {
                let days = self.days().zip(&dates).filter_map(|(day, date)| {
                    let checksum = answer[&station.id][date]["md5"].as_str()?;
                    Some((day, DayMark::from_checksum(checksum)))
                });
                all.insert(station.id.clone(), days.collect());
            }
        }
        Ok(all)
    }

    fn days(&self) -> impl Iterator<Item = i64> + use<> {
        self.today..self.today + i64::from(DAYS)
    }

    /// Returns the former guide, as far as its days are known.
    fn former(&self) -> Result<Former, GuideError> {
        let context = &self.context;
        let source = context.source.id;
        let marks = context.models.store.collection::<GuideMarks>().get(source.0)?;
        let is_of_guide = |it: &GuideMarks| Some(digest(it)) == context.state.digest;
        let marks = marks.filter(|it| context.has_guide && !context.force && is_of_guide(it));
        let mut channels = HashMap::new();
        let known = context.models.store.collection::<GuideChannel>();
        known.for_each_of(u64::from(source.0), |it| {
            channels.insert(it.key, it.id);
        })?;
        Ok(Former { file: context.files.file(source), marks, channels })
    }

    /// Returns the versions of all days that the service has.
    fn marks_of(&self, checksums: &Checksums) -> GuideMarks {
        let mut marks = GuideMarks::new(self.context.source.id, self.today);
        for (station, days) in checksums {
            days.iter().for_each(|(day, mark)| marks.set(station, *day, mark));
        }
        marks
    }

    /// Stores the versions of the days. They count only while their digest is that of the accepted guide, so they may be
    /// written before it.
    fn keep(&self, mut marks: GuideMarks) -> Result<ContentMark, GuideError> {
        marks.fetched_at = self.context.now;
        let (content, source) = (mark(Some(digest(&marks))), self.context.source.clone());
        self.context.models.store.write_blocking(move |write| {
            check_source(write, &source)?;
            Ok::<_, GuideError>(write.put(&marks)?)
        })?;
        Ok(content)
    }

    /// Passes the guide of some stations to the sink, and notes the versions of their days.
    fn read_group(
        &mut self,
        group: &[Station],
        checksums: &Checksums,
        former: &Former,
        marks: &mut GuideMarks,
        sink: &mut dyn GuideSink,
    ) -> Result<(), GuideError> {
        // Days that have to be fetched.
        let mut missing = BTreeSet::new();
        let mut wanted = Vec::new();
        for station in group {
            let mut changed = Vec::new();
            let known = checksums.get(&station.id);
            for day in self.days() {
                match known.and_then(|it| it.get(&day)) {
                    Some(mark) if !former.has(&station.id, day, mark) => {
                        missing.insert((station.id.clone(), day));
                        changed.push(date_of(day * DAY));
                    }
                    mark => {
                        former.copy_day(&station.id, day, &[], sink)?;
                        mark.into_iter().for_each(|it| marks.set(&station.id, day, it));
                    }
                }
            }
            if !changed.is_empty() {
                wanted.push(json!({ "stationID": station.id, "date": changed }));
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let mut airings = Vec::new();
        let skipped = self.list("/schedules", &Value::from(wanted), |schedule: Value| {
            let schedule = Schedule::read(schedule);
            airings.extend(schedule.filter(|it| missing.remove(&(it.station.clone(), it.day))));
            Ok(())
        })?;
        sink.skipped(skipped);
        for (station, day) in &missing {
            former.copy_day(station, *day, &[], sink)?;
        }
        self.fetch_programs(&airings, sink)?;
        for schedule in airings {
            let mut placed = Vec::new();
            for airing in &schedule.airings {
                let info = self.programs.get(&airing.program);
                let images = self.images.get(poster_root(&airing.program)).map_or(&[][..], |it| it);
                match info.and_then(|it| programme(airing, it, images)) {
                    Some(programme) => {
                        sink.programme(&schedule.station, &programme)?;
                        placed.push((programme.start, programme.stop));
                    }
                    None => sink.skipped(1),
                }
            }
            sink.skipped(schedule.n_skipped);
            // A day with a programme that the service has not prepared yet is fetched again.
            let is_complete = schedule.airings.iter().all(|it| self.programs.contains_key(&it.program));
            let mark = checksums.get(&schedule.station).and_then(|it| it.get(&schedule.day));
            match mark {
                Some(mark) if is_complete => marks.set(&schedule.station, schedule.day, mark),
                _ => former.copy_day(&schedule.station, schedule.day, &placed, sink)?,
            }
        }
        Ok(())
    }

    /// Fetches the programmes of schedules that are not in memory, and their images.
    fn fetch_programs(&mut self, schedules: &[Schedule], sink: &mut dyn GuideSink) -> Result<(), GuideError> {
        if self.programs.len() > PROGRAMS_KEPT_MAX {
            self.programs.clear();
            self.images.clear();
        }
        let airings = schedules.iter().flat_map(|it| &it.airings);
        let ids = airings.map(|it| it.program.as_str()).filter(|it| !self.programs.contains_key(*it));
        let ids: Vec<_> = ids.collect::<BTreeSet<_>>().into_iter().collect();
        for batch in ids.chunks(PROGRAMS_MAX) {
            let mut found = Vec::new();
            let skipped = self.list("/programs", &json!(batch), |info: ProgramInfo| {
                found.push(info);
                Ok(())
            })?;
            sink.skipped(skipped);
            let good = found.into_iter().filter(|it| it.code == 0 && !it.id.is_empty());
            self.programs.extend(good.map(|it| (it.id.clone(), Arc::new(it))));
        }
        let wants_artwork = self.context.source.custom_properties.get("fetch_posters") != Some(&json!(false));
        let with_artwork =
            ids.iter().filter(|it| self.programs.get(**it).is_some_and(|it| it.has_image_artwork));
        let roots: BTreeSet<_> = with_artwork.map(|it| poster_root(it)).collect();
        let roots: Vec<_> =
            roots.into_iter().filter(|it| wants_artwork && !self.images.contains_key(*it)).collect();
        let base_url = base_url(&self.context.source);
        for batch in roots.chunks(ARTWORK_MAX) {
            let mut found = Vec::new();
            let skipped = self.list("/metadata/programs", &json!(batch), |artwork: StationArtwork| {
                let images = best_images(&artwork.images(), &base_url);
                found.push((artwork.program, images.into()));
                Ok(())
            })?;
            sink.skipped(skipped);
            self.images.extend(found);
        }
        Ok(())
    }
}

impl GuideInput for SchedulesDirectInput {
    fn run(&mut self, sink: &mut dyn GuideSink) -> Result<GuideContent, GuideError> {
        let former = self.former()?;
        let since = |it: &GuideMarks| self.context.now - it.fetched_at;
        if former.marks.as_ref().is_some_and(|it| (0..REFRESH_PAUSE_MS).contains(&since(it))) {
            return Ok(GuideContent::Unchanged(mark(self.context.state.digest)));
        }
        sink.progress(GuidePhase::Fetching, 0)?;
        let status = ServiceStatus::from_answer(&self.json(Method::GET, "/status", None)?);
        if !status.is_online {
            return Err(ServiceError::Fault(ServiceFault::Offline).into());
        }
        let all = self.stations()?;
        sink.progress(GuidePhase::Fetching, 50)?;
        let checksums = self.checksums(&all)?;
        let offered = self.marks_of(&checksums);
        if former.marks.as_ref().is_some_and(|it| digest(it) == digest(&offered)) {
            return Ok(GuideContent::Unchanged(self.keep(offered)?));
        }
        let mut marks = GuideMarks::new(self.context.source.id, self.today);
        for station in &all {
            sink.channel(&station.id, &station.names, station.logo.as_deref())?;
        }
        let n_groups = all.len().div_ceil(GROUP_STATIONS).max(1);
        for (n, group) in all.chunks(GROUP_STATIONS).enumerate() {
            let percent = u8::try_from(n * 100 / n_groups).unwrap_or(100);
            sink.progress(GuidePhase::Parsing, percent)?;
            self.read_group(group, &checksums, &former, &mut marks, sink)?;
        }
        Ok(GuideContent::Whole(self.keep(marks)?))
    }
}

impl Former {
    /// Returns whether the former guide has this version of a day.
    fn has(&self, station: &str, day: i64, mark: &DayMark) -> bool {
        self.file.is_some() && self.marks.as_ref().and_then(|it| it.get(station, day)).as_ref() == Some(mark)
    }

    /// Passes the programmes of a day of the former guide to the sink, except those that overlap one of these times.
    fn copy_day(
        &self,
        station: &str,
        day: i64,
        except: &[(i64, i64)],
        sink: &mut dyn GuideSink,
    ) -> Result<(), GuideError> {
        let (Some(file), Some(channel)) = (&self.file, self.channels.get(station)) else { return Ok(()) };
        let (from, until) = (day * DAY, (day + 1) * DAY);
        for stored in file.programmes(*channel, from, until)? {
            let is_replaced = except.iter().any(|(start, stop)| *start < stored.stop && stored.start < *stop);
            if (from..until).contains(&stored.start) && !is_replaced {
                sink.stored(station, &stored)?;
            }
        }
        Ok(())
    }
}

/// A day of a station.
struct Schedule {
    station: String,
    day: i64,
    airings: Vec<Airing>,
    n_skipped: u64,
}

impl Schedule {
    /// Reads the schedule of a day. `None` for a refusal, such as one that is not prepared yet.
    fn read(schedule: Value) -> Option<Self> {
        let station = schedule["stationID"].as_str()?.to_owned();
        let date = schedule["metadata"]["startDate"].as_str()?;
        let day: jiff::civil::Date = date.parse().ok()?;
        let day = day.at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_second() / DAY;
        let Value::Array(programs) = schedule.get("programs")?.clone() else { return None };
        let n_all = programs.len();
        let airings: Vec<_> = programs.into_iter().filter_map(|it| serde_json::from_value(it).ok()).collect();
        let n_skipped = (n_all - airings.len()) as u64;
        Some(Self { station, day, airings, n_skipped })
    }
}

/// Returns the hash of marks, by which they belong to one accepted guide.
fn digest(marks: &GuideMarks) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(marks.first_day.to_le_bytes());
    for (station, days) in &marks.stations {
        hash.update([station.as_bytes(), b"\n", days.as_bytes(), b"\n"].concat());
    }
    hash.finalize().into()
}

fn mark(digest: Option<[u8; 32]>) -> ContentMark {
    ContentMark { digest, ..ContentMark::default() }
}

impl From<ServiceError> for GuideError {
    fn from(error: ServiceError) -> Self {
        match error {
            ServiceError::Fetch(error) => Self::Fetch(error),
            error => Self::Service(error.to_string()),
        }
    }
}
