//! Matching channels with guide channels, on the records of the store.

use std::sync::Arc;

use domain::channel::Channel;
use domain::core_settings::{self, EPG_SETTINGS, SYSTEM_SETTINGS};
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::index::SourceOrder;
use domain::guide::matching::{Decision, GuideEntry, MatchSettings, Matcher, Reason, Subject};
use domain::guide::source::GuideSourceKind;
use domain::ids::{ChannelId, GuideChannelId, GuideSourceId};
use storage::{Models, Table};
use tokio_util::sync::CancellationToken;

use crate::clock::now_ms;
use crate::guide::GuidePreview;

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

/// How many channels a guide that is not a source yet would serve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GuideMatches {
    /// Channels with the id of one of its channels.
    pub n_same_id: usize,
    /// Channels that matching would link with it, those with the same id included.
    pub n_matches: usize,
    /// Those of them that have no guide now.
    pub n_new: usize,
}

/// Counts the channels that a guide would serve. Blocks.
pub fn guide_matches(models: &Models, preview: &GuidePreview) -> GuideMatches {
    let entries = preview.channels.iter().zip(1..).map(|((key, names), id)| GuideEntry {
        id: GuideChannelId(id),
        source: GuideSourceId(0),
        priority: 0,
        has_station_keys: false,
        key,
        names,
    });
    let matcher = Matcher::new(entries, std::iter::empty(), match_settings(models));
    let (guide, sources, groups) = (models.guide.load(), models.guide_sources.load(), models.groups.load());
    let order = SourceOrder::new(sources.iter().map(|it| &**it));
    let mut matches = GuideMatches::default();
    for channel in models.channels.load().iter() {
        let found = matcher.find(&subject(channel, &groups), false);
        if !matches!(found.decision, Decision::Link(_)) {
            continue;
        }
        let is_same_id = found.candidates.iter().any(|it| it.reasons.contains(&Reason::SameId));
        matches.n_same_id += usize::from(is_same_id);
        matches.n_matches += 1;
        matches.n_new += usize::from(guide.shown_channel(channel, &order).is_none());
    }
    matches
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
                // Found by what the playlist says, so that its offset belongs to it.
                let linked = Channel { guide_channel: Some(to), keeps_stream_offset: true, ..channel };
                write.put(&Channel { updated_at: now_ms(), ..linked })?;
                n += 1;
            }
            Ok::<_, storage::Error>(n)
        })?;
    }
    Ok(n_linked)
}
