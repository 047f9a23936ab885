//! Matching channels with guide channels, on the records of the store.

use std::sync::Arc;

use domain::channel::Channel;
use domain::core_settings::{self, EPG_SETTINGS, SYSTEM_SETTINGS};
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::index::SourceOrder;
use domain::guide::matching::{Decision, GuideEntry, MatchSettings, Matcher, Subject};
use domain::guide::source::GuideSourceKind;
use domain::ids::{ChannelId, GuideChannelId, GuideSourceId};
use storage::{Models, Table};
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;

/// Channels that one commit links.
const CHANNELS_AT_ONCE: usize = 500;

/// Returns the settings of matching that are in force.
pub(crate) fn match_settings(models: &Models) -> MatchSettings {
    let settings = models.settings.load();
    let value = |key| settings.one_by("key", key).map(|it| &it.value);
    let preferred = core_settings::preferred_region(value(SYSTEM_SETTINGS));
    MatchSettings::from_setting(value(EPG_SETTINGS)).in_force(preferred)
}

/// Prepares the channels of the active guide sources, or of one active source, for matching. Generated guides are left
/// out: they have no channels of their own. Takes about a second for 50,000 channels.
pub fn matcher(models: &Models, only: Option<GuideSourceId>) -> Matcher {
    let (guide, sources) = (models.guide.load(), models.guide_sources.load());
    let aliases = models.guide_aliases.load();
    let active = sources.iter().filter(|it| it.is_active && only.is_none_or(|only| only == it.id));
    let entries = active.filter(|it| it.kind != GuideSourceKind::Generated).flat_map(|source| {
        guide.source_channels(source.id).iter().map(|it| GuideEntry {
            id: it.id,
            source: source.id,
            priority: source.priority,
            has_station_keys: source.kind == GuideSourceKind::SchedulesDirect,
            key: &it.key,
            names: &it.names,
        })
    });
    Matcher::new(entries, aliases.iter().map(|it| &**it), match_settings(models))
}

/// Returns what matching knows about a channel.
pub fn subject<'a>(channel: &'a Channel, groups: &'a Table<Group>) -> Subject<'a> {
    let group = channel.group.and_then(|it| groups.get(it.0));
    Subject {
        name: &channel.name,
        tvg_id: channel.tvg_id.as_deref(),
        station: channel.guide_station.as_deref(),
        group: group.map(|it| it.name.as_str()),
    }
}

/// Links the channels that have no guide channel, if the settings want that after refreshes. Returns how many were linked.
/// Blocks; ends early with the links that are written when it is told to stop.
///
/// # Errors
/// The store fails.
pub fn match_after_refresh(models: &Models, stop: &CancellationToken) -> Result<usize, storage::Error> {
    if !match_settings(models).after_refresh {
        return Ok(0);
    }
    let (guide, sources, groups) = (models.guide.load(), models.guide_sources.load(), models.groups.load());
    let order = SourceOrder::new(sources.iter().map(|it| &**it));
    let channels = models.channels.load();
    let without: Vec<&Arc<Channel>> = channels
        .iter()
        .filter(|it| it.guide_channel.is_none() && guide.shown_channel(it, &order).is_none())
        .collect();
    if without.is_empty() {
        return Ok(0);
    }
    let matcher = matcher(models, None);
    let unless_stopped = without.into_iter().take_while(|_| !stop.is_cancelled());
    let links = unless_stopped.filter_map(|it| match matcher.find(&subject(it, &groups), false).decision {
        Decision::Link(to) => Some((it.id, to)),
        _ => None,
    });
    let links: Vec<(ChannelId, GuideChannelId)> = links.collect();
    let mut n_linked = 0;
    for some in links.chunks(CHANNELS_AT_ONCE).take_while(|_| !stop.is_cancelled()) {
        let some = some.to_vec();
        n_linked += models.store.write_blocking(move |write| {
            let mut n = 0;
            for (id, to) in some {
                let before = write.get::<Channel>(id.0)?.filter(|it| it.guide_channel.is_none());
                let Some(channel) = before.filter(|_| write.owner_of::<GuideChannel>(to.0).is_some()) else {
                    continue;
                };
                write.put(&Channel { guide_channel: Some(to), updated_at: now_ms(), ..channel })?;
                n += 1;
            }
            Ok::<_, storage::Error>(n)
        })?;
    }
    Ok(n_linked)
}
