//! Channel profiles of the other service, which are lineups here.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use domain::ids::{ChannelId, LineupId};
use domain::lineup::{LINEUP_NAME_CHARS_MAX, Lineup};

use super::channels::PlannedChannels;
use super::household::Household;
use super::ids::IdPicker;
use super::plan::Existing;
use super::report::Report;
use super::row::plain;
use super::table::SourceTable;

/// The lineups that are written, and where those of the source are found.
#[derive(Debug, Clone, Default)]
pub(crate) struct PlannedLineups {
    /// New ones, and those of the store that get channels.
    pub(crate) changed: Vec<Lineup>,
    /// By the id of the source.
    pub(crate) ids: HashMap<u32, LineupId>,
}

/// Takes channel profiles over. One whose name the store has already gets the new channels that belong to it.
///
/// New channels are added to a lineup by default only if it has all channels: a lineup for children must not show a
/// channel that nobody has chosen for it.
pub(crate) fn lineups(
    household: &Household,
    existing: &Existing,
    channels: &PlannedChannels,
    report: &mut Report,
) -> PlannedLineups {
    let rows = household.rows(SourceTable::ChannelProfiles);
    let mut ids = IdPicker::new(existing.unused.lineup, rows.iter().filter_map(|it| it.id("id")));
    let mut members: BTreeMap<u32, BTreeSet<ChannelId>> = BTreeMap::new();
    for (profile, channel) in &household.memberships {
        let of_profile = members.entry(*profile).or_default();
        of_profile.extend(channels.ids.get(channel));
    }
    let all: BTreeSet<ChannelId> = channels.ids.values().copied().collect();
    let new: BTreeSet<ChannelId> = channels.new.iter().map(|it| it.id).collect();
    let no_members = BTreeSet::new();
    let kind = report.kind(SourceTable::ChannelProfiles.label());
    let mut planned = PlannedLineups::default();
    for row in rows {
        let name = plain(row.text("name").unwrap_or_default(), LINEUP_NAME_CHARS_MAX);
        let source = row.id("id").filter(|it| !planned.ids.contains_key(it) && !name.is_empty());
        let Some(source) = source else {
            kind.skip(format!("channel profile {name}"), "its name or id is missing, or its id occurs twice");
            continue;
        };
        let members = members.get(&source).unwrap_or(&no_members);
        let known = existing.lineups.iter().chain(&planned.changed).find(|it| it.name == name);
        let Some(known) = known else {
            let has_all = !all.is_empty() && members.len() == all.len();
            let mut lineup = Lineup::new(LineupId(ids.pick(source)), name, has_all);
            // In a store with data, the other channels stay out.
            let others = existing.channels.iter().map(|it| it.id).filter(|it| has_all && !all.contains(it));
            lineup.exceptions.extend(others);
            for member in members {
                lineup.set(*member, true);
            }
            kind.taken += 1;
            planned.ids.insert(source, lineup.id);
            planned.changed.push(lineup);
            continue;
        };
        let mut lineup = known.clone();
        let mut is_changed = false;
        for channel in &new {
            is_changed |= lineup.set(*channel, members.contains(channel));
        }
        kind.merged += 1;
        planned.ids.insert(source, lineup.id);
        if is_changed {
            planned.changed.retain(|it| it.id != lineup.id);
            planned.changed.push(lineup);
        }
    }
    planned
}
