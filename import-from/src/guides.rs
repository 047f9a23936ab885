//! Guide sources of the other service, and the guide channels that its channels are linked with. Programmes are fetched
//! again.

use std::collections::{BTreeSet, HashMap};

use domain::account::RefreshSchedule;
use domain::guide::channel::GuideChannel;
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{GuideChannelId, GuideSourceId};
use domain::secret::Secret;
use domain::source_url::SourceUrl;

use super::household::Household;
use super::ids::IdPicker;
use super::plan::{Existing, Foundation, Rules};
use super::report::Report;
use super::row::{JSON_BYTES_MAX, SourceRow, plain};
use super::table::SourceTable;

/// Maximum length of the name of a guide source, in characters.
const NAME_CHARS_MAX: usize = 255;
/// Maximum length of the key of a guide channel, in characters.
const KEY_CHARS_MAX: usize = 255;
/// The longest interval between refreshes, in hours.
const INTERVAL_HOURS_MAX: i64 = 24 * 365;

impl Foundation {
    /// Takes guide sources over by their names, and the guide channels that channels are linked with.
    pub(crate) fn add_guides(
        &mut self,
        household: &Household,
        existing: &Existing,
        rules: &Rules<'_>,
        report: &mut Report,
    ) {
        let rows = household.rows(SourceTable::EpgSources);
        let mut ids = IdPicker::new(existing.unused.guide_source, rows.iter().filter_map(|it| it.id("id")));
        let kind = report.kind(SourceTable::EpgSources.label());
        for row in rows {
            let name = plain(row.text("name").unwrap_or_default(), NAME_CHARS_MAX);
            let id = row.id("id").filter(|it| !self.guide_source_ids.contains_key(it) && !name.is_empty());
            let Some(source) = id else {
                kind.skip(
                    format!("guide source {name}"),
                    "its name or id is missing, or its id occurs twice",
                );
                continue;
            };
            let known = existing.guide_sources.iter().chain(&self.guide_sources).find(|it| it.name == name);
            if let Some(known) = known {
                kind.merged += 1;
                self.guide_source_ids.insert(source, known.id);
                continue;
            }
            let new = guide_source(GuideSourceId(ids.pick(source)), name, row, rules);
            if new.url.is_none() && new.kind == GuideSourceKind::Xmltv {
                kind.change(format!("guide source {}", new.name), "it is a file; upload it again");
            }
            kind.taken += 1;
            self.guide_source_ids.insert(source, new.id);
            self.guide_sources.push(new);
        }
        self.add_guide_channels(household, existing, report);
    }

    fn add_guide_channels(&mut self, household: &Household, existing: &Existing, report: &mut Report) {
        let rows = [SourceTable::Channels, SourceTable::ChannelOverrides].map(|it| household.rows(it));
        let used: BTreeSet<u32> = rows.into_iter().flatten().filter_map(|it| it.id("epg_data_id")).collect();
        let mut by_key: HashMap<(GuideSourceId, String), GuideChannelId> =
            existing.guide_channels.iter().map(|it| ((it.source, it.key.clone()), it.id)).collect();
        let mut ids = IdPicker::new(existing.unused.guide_channel, []);
        let kind = report.kind(SourceTable::EpgData.label());
        for id in used {
            let Some(guide) = household.guide_channels.get(&id) else { continue };
            let source = guide.source.and_then(|it| self.guide_source_ids.get(&it).copied());
            let key = plain(&guide.tvg_id, KEY_CHARS_MAX);
            let Some(source) = source.filter(|_| !key.is_empty()) else {
                kind.skip(format!("guide channel {key}"), "its guide source was skipped or does not exist");
                continue;
            };
            if let Some(known) = by_key.get(&(source, key.clone())) {
                kind.merged += 1;
                self.guide_channel_ids.insert(id, *known);
                continue;
            }
            let channel =
                GuideChannel { id: GuideChannelId(ids.fresh()), source, key, names: Vec::new(), icon: None };
            kind.taken += 1;
            by_key.insert((source, channel.key.clone()), channel.id);
            self.guide_channel_ids.insert(id, channel.id);
            self.guide_channels.push(channel);
        }
    }
}

fn guide_source(id: GuideSourceId, name: String, row: &SourceRow, rules: &Rules<'_>) -> GuideSource {
    let kind = match row.text("source_type") {
        Some("schedules_direct") => GuideSourceKind::SchedulesDirect,
        Some("dummy") => GuideSourceKind::Generated,
        _ => GuideSourceKind::Xmltv,
    };
    let is_web = |it: &&str| it.starts_with("http://") || it.starts_with("https://");
    let interval = row.integer("refresh_interval").map(|it| it.clamp(0, INTERVAL_HOURS_MAX));
    let text = |column| row.text(column).filter(|it| !it.is_empty());
    let mut custom_properties = row.object("custom_properties");
    if serde_json::to_string(&custom_properties).map_or(usize::MAX, |it| it.len()) > JSON_BYTES_MAX {
        custom_properties.clear();
    }
    let mut source = GuideSource {
        url: text("url").filter(is_web).map(SourceUrl::new),
        username: text("username").map(|it| plain(it, NAME_CHARS_MAX)),
        password: text("password").map(Secret::new),
        is_active: row.flag("is_active") != Some(false),
        schedule: RefreshSchedule {
            interval_hours: interval.and_then(|it| u32::try_from(it).ok()).unwrap_or_default(),
            ..RefreshSchedule::default()
        },
        priority: row.integer("priority").and_then(|it| i32::try_from(it).ok()).unwrap_or_default(),
        custom_properties,
        created_at: row.time_ms("created_at").unwrap_or(rules.now),
        ..GuideSource::new(id, name, kind, rules.now)
    };
    // Of an interval of 0, nobody knows whether it was chosen: an admin is asked.
    if interval.is_none() {
        source.schedule_by_default(false);
    }
    source
}
