//! The guide channels of a search, by how channels show their programmes.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::ops::Range;

use domain::guide::programme::ProgrammeId;
use domain::ids::GuideChannelId;
use services::guide::{GuideLinks, GuideOffset, GuideReader};

use crate::seen::SeenThings;

/// Guide channels, `None` for all, by how channels show their programmes: the minutes by which they do later, and whether they
/// show only those that their other guide channels leave room for.
pub(super) type ShownRows = BTreeMap<(i16, bool), Option<BTreeSet<GuideChannelId>>>;

/// Returns all guide channels, or those of a key, by the minutes by which channels show their programmes later. Those that no
/// channel shows are shown as the guide says; those of hidden channels alone are left out.
pub(super) fn with_unused(
    guides: &GuideReader,
    links: &GuideLinks,
    of_key: Option<BTreeSet<GuideChannelId>>,
    seen: &SeenThings,
) -> ShownRows {
    let is_of_key = |it: &GuideChannelId| of_key.as_ref().is_none_or(|ids| ids.contains(it));
    let mut moved: BTreeMap<i16, BTreeSet<GuideChannelId>> = BTreeMap::new();
    let mut left_out = BTreeSet::new();
    for id in links.guide_channels().filter(is_of_key) {
        // Whole guides are searched, so that those that only fill gaps are in them as they are.
        let shown_by = || links.shown_by(id).filter(|it| seen.sees(it.channel));
        let mut is_unmoved = shown_by().next().is_some() && shown_by().all(|it| it.is_further);
        for shown in shown_by().filter(|it| !it.is_further) {
            match shown.minutes {
                0 => is_unmoved = true,
                minutes => drop(moved.entry(minutes).or_default().insert(id)),
            }
        }
        if !is_unmoved {
            left_out.insert(id);
        }
    }
    let unmoved = match of_key {
        None if left_out.is_empty() => None,
        None => Some(guides.index.iter().map(|it| it.id).filter(|it| !left_out.contains(it)).collect()),
        Some(ids) => Some(ids.difference(&left_out).copied().collect()),
    };
    let moved = moved.into_iter().map(|(minutes, ids)| ((minutes, false), Some(ids)));
    moved.chain([((0, false), unmoved)]).collect()
}

/// Returns the rows without the guide channels of which further channels show only a part, where others show all at the same
/// time.
pub(super) fn each_once(rows: ShownRows) -> ShownRows {
    let whole: BTreeMap<i16, BTreeSet<GuideChannelId>> = rows
        .iter()
        .filter(|it| !it.0.1)
        .map(|((minutes, _), ids)| (*minutes, ids.clone().unwrap_or_default()))
        .collect();
    let is_part = |minutes: i16, id: &GuideChannelId| whole.get(&minutes).is_none_or(|it| !it.contains(id));
    let once = |((minutes, is_further), ids): ((i16, bool), Option<BTreeSet<GuideChannelId>>)| {
        let ids = ids.map(|it| it.into_iter().filter(|id| !is_further || is_part(minutes, id)).collect());
        ((minutes, is_further), ids)
    };
    rows.into_iter().map(once).collect()
}

/// Returns the times of a guide whose programmes are shown within these times.
pub(super) fn earlier(times: Range<i64>, offset: GuideOffset) -> Range<i64> {
    let seconds = offset.seconds();
    // What is not bounded stays so.
    let moved = |it: i64| if it == i64::MIN || it == i64::MAX { it } else { it.saturating_sub(seconds) };
    moved(times.start)..moved(times.end)
}

/// Merges lists that are sorted by start and guide channel, by the time at which the programmes are shown. Returns each
/// programme with the minutes of the channels that show it.
pub(super) fn merged(lists: Vec<(GuideOffset, Vec<ProgrammeId>)>, n_max: usize) -> Vec<(ProgrammeId, i16)> {
    let mut lists: Vec<_> = lists.into_iter().map(|(offset, ids)| (offset, ids.into_iter())).collect();
    let rank = |id: ProgrammeId, offset: GuideOffset| Reverse((id.start() + offset.seconds(), id.0));
    let mut next = BinaryHeap::new();
    for (at, (offset, list)) in lists.iter_mut().enumerate() {
        next.extend(list.next().map(|id| (rank(id, *offset), at)));
    }
    let mut all = Vec::new();
    while let Some((Reverse((_, id)), at)) = next.pop().filter(|_| all.len() < n_max) {
        let Some((offset, list)) = lists.get_mut(at) else { continue };
        all.push((ProgrammeId(id), offset.channel));
        next.extend(list.next().map(|following| (rank(following, *offset), at)));
    }
    all
}
