//! Matching channels with guide channels, on the records of the store.

use std::collections::HashSet;
use std::sync::Arc;

use domain::channel::Channel;
use domain::core_settings::{self, EPG_SETTINGS, SYSTEM_SETTINGS};
use domain::group::Group;
use domain::guide::channel::GuideChannel;
use domain::guide::index::SourceOrder;
use domain::guide::matching::{Decision, GuideEntry, MatchResult, MatchSettings, Matcher, Reason, Subject};
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
fn subject<'a>(channel: &'a Channel, groups: &'a Table<Group>) -> Subject<'a> {
    let group = channel.group.and_then(|it| groups.get(it.0));
    Subject {
        name: &channel.name,
        tvg_id: channel.tvg_id.as_deref(),
        station: channel.guide_station.as_deref(),
        group: group.map(|it| it.name.as_str()),
    }
}

/// Returns the groups of channels and the guide channels that they show, for those that are not among `except`: they say of
/// which country the other channels of their groups are.
fn group_links(models: &Models, except: &HashSet<ChannelId>) -> Vec<(String, GuideChannelId)> {
    let (guide, sources, groups) = (models.guide.load(), models.guide_sources.load(), models.groups.load());
    let order = SourceOrder::new(sources.iter().map(|it| &**it));
    let channels = models.channels.load();
    let others = channels.iter().filter(|it| !except.contains(&it.id));
    let link = |it: &Arc<Channel>| {
        let group = groups.get(it.group?.0)?;
        Some((group.name.clone(), guide.shown_channel(it, &order)?.id))
    };
    others.filter_map(link).collect()
}

/// Finds the guide channels of channels, in order: each for itself, then by the countries of their groups. `find` decides
/// for one channel; after it returns `None`, the results end.
pub fn find_together<'a>(
    models: &Models,
    matcher: &Matcher,
    channels: impl IntoIterator<Item = &'a Arc<Channel>>,
    mut find: impl FnMut(&Channel, &Subject<'_>) -> Option<MatchResult>,
) -> Vec<MatchResult> {
    let groups = models.groups.load();
    let channels: Vec<&Arc<Channel>> = channels.into_iter().collect();
    let subjects: Vec<Subject<'_>> = channels.iter().map(|it| subject(it, &groups)).collect();
    let found = channels.iter().zip(&subjects).map_while(|(channel, subject)| find(channel, subject));
    let mut results: Vec<MatchResult> = found.collect();
    if results.len() == subjects.len() && results.iter().any(MatchResult::depends_on_group) {
        let links = group_links(models, &channels.iter().map(|it| it.id).collect());
        let linked = links.iter().map(|it| (it.0.as_str(), it.1));
        matcher.compare_groups(&subjects, linked, &mut results);
    }
    results
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
    let (guide, sources) = (models.guide.load(), models.guide_sources.load());
    let order = SourceOrder::new(sources.iter().map(|it| &**it));
    let mut matches = GuideMatches::default();
    let channels = models.channels.load();
    let results =
        find_together(models, &matcher, channels.iter(), |_, subject| Some(matcher.find(subject, false)));
    for (channel, found) in channels.iter().zip(results) {
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
    let (guide, sources) = (models.guide.load(), models.guide_sources.load());
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
    let results = find_together(models, &matcher, without.iter().copied(), |_, subject| {
        (!stop.is_cancelled()).then(|| matcher.find(subject, false))
    });
    let links = without.iter().zip(results).filter_map(|(it, found)| match found.decision {
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
