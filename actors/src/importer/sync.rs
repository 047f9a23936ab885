//! Creates, changes and removes the channels of the groups that an admin chose, after a playlist was imported.
//!
//! The plan is made from the tables in memory, and written in bounded commits. Each commit reads the channels that it
//! changes again, and skips what does not fit any more; another round then plans the rest.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use domain::account::{Account, RefreshRecord};
use domain::account_group::AccountGroup;
use domain::auto_sync::{
    OrphanCleanup, SyncInput, SyncOrder, SyncPlan, SyncSettings, SyncSettingsError, SyncStream,
    auto_channel_uuid, plan_sync,
};
use domain::channel::{AutoChannel, Channel, ChannelNumber};
use domain::group::Group;
use domain::guide::matching::{Decision, Matcher, Subject};
use domain::guide::source::GuideSourceKind;
use domain::ids::{AccountId, ChannelId, GroupId, GuideChannelId, GuideSourceId, StreamId};
use domain::lineup::Lineup;
use domain::playlist::delta::StalePolicy;
use domain::stream::{Stream, StreamProperties};
use storage::{Models, Write, link_logo};
use tracing::warn;
use uuid::Uuid;

use super::adult::any_adult;
use super::error::ImportError;
use super::job::{ImportSummary, Job, SyncSummary};
use super::reading::ReadList;
use super::selection::Selection;
use crate::clock::now_ms;
use crate::matching::matcher;

/// Maximum number of channels that one commit creates, and of those that it changes and removes. Others wait for a commit.
pub(super) const CHANNELS_AT_ONCE: usize = 500;
/// Maximum number of plans. More than one is needed only if somebody changes numbers meanwhile.
const ROUNDS_MAX: usize = 5;

/// The reason why the numbers of a group were not packed.
#[derive(Debug, thiserror::Error)]
pub enum RepackError {
    #[error("the account does not exist")]
    NoSuchAccount,
    #[error("the account has no automatic channels in this group")]
    NoSuchGroup,
    #[error("{0}")]
    Settings(#[from] SyncSettingsError),
    #[error("{0}")]
    Store(#[from] storage::Error),
}

/// Synchronises the channels of an account after an import, and adds the result to its refresh record.
pub(super) fn sync(
    job: &Job,
    list: &ReadList,
    selection: &Selection,
    at: StalePolicy,
    imported: &mut ImportSummary,
) -> Result<(), ImportError> {
    let account = job.account.id;
    let has_channels =
        job.models.channels.load().by("auto_account", account.0.to_be_bytes()).next().is_some();
    let groups = match synced_groups(&job.models, account) {
        Ok(groups) => groups,
        Err(error) => {
            // Those of an old record. Without them, nobody knows which channels should stay.
            warn!(account.id = %account, "channels not synchronised, because the settings of a group are invalid: {error}");
            return Ok(());
        }
    };
    if groups.is_empty() && !has_channels {
        return Ok(());
    }
    let positions = match groups.iter().any(|it| it.1.order == SyncOrder::Provider) {
        true => positions(job, list)?,
        false => HashMap::new(),
    };
    for round in 0..ROUNDS_MAX {
        job.check_stop()?;
        let (streams, adult) = streams(
            &job.models,
            account,
            &groups,
            |stream| {
                let is_wanted =
                    stream.content().is_live() && selection.would_keep(&stream.provider, &stream.rule);
                is_wanted && stream.last_seen.is_none_or(|then| !at.is_over(then))
            },
            |stream| positions.get(&key(&stream.provider)).copied(),
        )?;
        let cleanup = OrphanCleanup::from_account(&job.account);
        let input = SyncInput { account, cleanup, groups: &groups, streams, packed: None };
        let channels = job.models.channels.load();
        let plan = plan_sync(input, channels.iter().map(|it| &**it));
        let of_groups = groups.iter().filter_map(|it| Some((it.0, it.1.channel_profiles.clone()?)));
        let new = NewChannels { lineups: of_groups.collect(), adult };
        if round == 0 {
            (imported.sync.n_without_number, imported.sync.n_beyond_max) =
                (plan.n_without_number, plan.n_beyond_max);
        }
        let is_written = plan.is_empty()
            || carry_out(&job.models, (account, &new), plan, &mut imported.sync, || job.check_stop())?;
        if is_written {
            break;
        }
    }
    if imported.sync == SyncSummary::default() {
        return Ok(());
    }
    let message = imported.sentence();
    job.models.store.write_blocking(move |write| {
        if let Some(mut refresh) = write.get::<RefreshRecord>(account.0)? {
            refresh.message = message;
            write.put(&refresh)?;
        }
        Ok(())
    })
}

/// Returns whether channels follow the streams of the account.
pub(super) fn is_needed(job: &Job) -> bool {
    let account = job.account.id;
    let channels = job.models.channels.load();
    let has_channels = channels.by("auto_account", account.0.to_be_bytes()).next().is_some();
    has_channels || synced_groups(&job.models, account).map_or(true, |it| !it.is_empty())
}

/// Assigns the numbers of the automatic channels of one group anew, without gaps. Numbers that an admin set stay. Returns
/// the number of changed channels. Blocks.
///
/// # Errors
/// The account has no automatic channels in this group, or the store fails.
pub fn repack_group(models: &Models, account: AccountId, group: GroupId) -> Result<u64, RepackError> {
    let link = links(models, account).into_iter().find(|it| it.group == group);
    let link = link.filter(|it| it.auto_channel_sync && it.enabled).ok_or(RepackError::NoSuchGroup)?;
    let settings = SyncSettings { cleaner: Arc::new(models.name_cleaner()), ..SyncSettings::read(&link)? };
    let groups = [(group, settings)];
    let mut summary = SyncSummary::default();
    for _ in 0..ROUNDS_MAX {
        let channels = models.channels.load();
        let is_of_group = |it: &&Arc<Channel>| {
            it.auto.as_ref().is_some_and(|auto| (auto.account, auto.group) == (account, group))
        };
        // The order of the latest playlist is not stored: the numbers show it as it was when they were given.
        let mut of_group: Vec<(Option<ChannelNumber>, StreamId)> = channels
            .iter()
            .filter(is_of_group)
            .filter_map(|it| Some((it.number, it.auto.as_ref()?.stream)))
            .collect();
        of_group.sort_unstable();
        let positions: HashMap<StreamId, u32> = of_group.iter().map(|it| it.1).zip(0..).collect();
        let (streams, _) = streams(
            models,
            account,
            &groups,
            |it| positions.contains_key(&it.id),
            |it| positions.get(&it.id).copied(),
        )?;
        // Nothing is removed or created: only streams with a channel take part.
        let cleanup = OrphanCleanup::Never;
        let input = SyncInput { account, cleanup, groups: &groups, streams, packed: Some(group) };
        let plan = plan_sync(input, channels.iter().map(|it| &**it));
        let plan = SyncPlan { creations: Vec::new(), ..plan };
        let new = NewChannels::default();
        let is_written = plan.is_empty()
            || carry_out(models, (account, &new), plan, &mut summary, || Ok::<_, RepackError>(()))?;
        if is_written {
            break;
        }
    }
    Ok(summary.n_updated)
}

/// Returns the links of an account, by id.
fn links(models: &Models, account: AccountId) -> Vec<Arc<AccountGroup>> {
    models.account_groups.load().by("account", account.0.to_be_bytes()).cloned().collect()
}

/// Returns the groups with automatic channels and their settings.
fn synced_groups(
    models: &Models,
    account: AccountId,
) -> Result<Vec<(GroupId, SyncSettings)>, SyncSettingsError> {
    let (of_channels, profiles) = (models.groups.load(), models.stream_profiles.load());
    let (logos, cleaner) = (models.logos.load(), Arc::new(models.name_cleaner()));
    let mut groups = Vec::new();
    for link in links(models, account).into_iter().filter(|it| it.auto_channel_sync && it.enabled) {
        let mut settings = SyncSettings { cleaner: Arc::clone(&cleaner), ..SyncSettings::read(&link)? };
        // What was deleted meanwhile no longer counts.
        settings.group_override.take_if(|it| of_channels.get(it.0).is_none());
        settings.stream_profile.take_if(|it| profiles.get(it.0).is_none());
        settings.custom_logo_url = settings.custom_logo.and_then(|it| Some(logos.get(it.0)?.url.clone()));
        groups.push((link.group, settings));
    }
    Ok(groups)
}

/// Returns the place of each channel in the playlist.
fn positions(job: &Job, list: &ReadList) -> Result<HashMap<u64, u32>, ImportError> {
    let (mut positions, mut next) = (HashMap::new(), 0);
    list.entries.for_each(|properties| {
        job.check_stop()?;
        if properties.content.is_live() {
            positions.entry(key(&properties)).or_insert(next);
            next += 1;
        }
        Ok::<_, ImportError>(())
    })?;
    Ok(positions)
}

/// Returns a number by which a stream is found in the playlist that was just imported. Entries that are the same in all
/// of these properties have one place.
fn key(properties: &StreamProperties) -> u64 {
    let mut hasher = DefaultHasher::new();
    (properties.url.expose(), &properties.name, &properties.tvg_id, &properties.group).hash(&mut hasher);
    hasher.finish()
}

/// Returns the selected streams of these groups, by id, and those that are marked as adult content. A stale stream is
/// missing.
fn streams(
    models: &Models,
    account: AccountId,
    groups: &[(GroupId, SyncSettings)],
    is_selected: impl Fn(&Stream) -> bool,
    position: impl Fn(&Stream) -> Option<u32>,
) -> Result<(Vec<SyncStream>, HashSet<StreamId>), storage::Error> {
    let table = models.groups.load();
    let names: HashMap<&str, GroupId> = groups
        .iter()
        .filter_map(|it| table.get(it.0.0))
        .flat_map(|group| group.names().map(|name| (name, group.id)))
        .collect();
    let guides = GroupGuides::new(models, groups);
    let (mut streams, mut adult) = (Vec::new(), HashSet::new());
    models.store.collection::<Stream>().for_each_of(u64::from(account.0), |stream: Stream| {
        let group = stream.group().and_then(|it| names.get(it));
        if let Some(group) = group.filter(|_| is_selected(&stream)) {
            if stream.is_adult() {
                adult.insert(stream.id);
            }
            streams.push(SyncStream {
                id: stream.id,
                group: *group,
                name: stream.name().to_owned(),
                tvg_id: stream.tvg_id().map(str::to_owned),
                logo: stream.logo().map(str::to_owned),
                guide_channel: guides.find(*group, &stream),
                station: stream.station().map(str::to_owned),
                number: stream.provider.number.filter(|it| !it.is_zero()),
                updated_at: stream.updated_at,
                position: position(&stream),
                is_missing: stream.is_stale(),
            });
        }
    })?;
    streams.sort_unstable_by_key(|it| it.id);
    Ok((streams, adult))
}

/// The guide sources that the settings of groups choose.
struct GroupGuides(HashMap<GroupId, Arc<ChosenGuide>>);

/// The channels of a guide source.
enum ChosenGuide {
    /// The guide is generated, and is that of every channel.
    Generated(GuideChannelId),
    Matched(Box<Matcher>),
}

impl GroupGuides {
    fn new(models: &Models, groups: &[(GroupId, SyncSettings)]) -> Self {
        let (sources, guide) = (models.guide_sources.load(), models.guide.load());
        let mut chosen: HashMap<GuideSourceId, Option<Arc<ChosenGuide>>> = HashMap::new();
        let of_groups = groups.iter().filter_map(|(group, settings)| {
            let id = settings.custom_guide?;
            let guide = chosen.entry(id).or_insert_with(|| {
                let guide = match sources.get(id.0)?.kind {
                    GuideSourceKind::Generated => {
                        ChosenGuide::Generated(guide.source_channels(id).first()?.id)
                    }
                    _ => ChosenGuide::Matched(Box::new(matcher(models, Some(id)))),
                };
                Some(Arc::new(guide))
            });
            Some((*group, Arc::clone(guide.as_ref()?)))
        });
        Self(of_groups.collect())
    }

    /// Returns the guide channel of a stream of this group.
    fn find(&self, group: GroupId, stream: &Stream) -> Option<GuideChannelId> {
        match &**self.0.get(&group)? {
            ChosenGuide::Generated(channel) => Some(*channel),
            ChosenGuide::Matched(matcher) => {
                let subject = Subject {
                    name: stream.name(),
                    tvg_id: stream.tvg_id(),
                    station: None,
                    group: stream.group(),
                };
                match matcher.find(&subject, false).decision {
                    Decision::Link(channel) => Some(channel),
                    _ => None,
                }
            }
        }
    }
}

/// The ids of the lineups in which the new channels of a group are; 0 is all. Elsewhere each lineup decides.
type ChosenLineups = HashMap<GroupId, Vec<u32>>;

/// Values of new channels that are not in their plan.
#[derive(Default)]
struct NewChannels {
    lineups: ChosenLineups,
    /// Streams that are marked as adult content.
    adult: HashSet<StreamId>,
}

/// Writes a plan. Returns whether all of it was written; the rest needs another plan.
fn carry_out<E: From<storage::Error> + Send + 'static>(
    models: &Models,
    (account, new): (AccountId, &NewChannels),
    plan: SyncPlan,
    summary: &mut SyncSummary,
    check_stop: impl Fn() -> Result<(), E>,
) -> Result<bool, E> {
    let SyncPlan { mut removals, mut updates, creations, .. } = plan;
    let groups = models.groups.load();
    let is_adult = |id: GroupId| groups.get(id.0).is_some_and(|it| it.is_adult);
    let with_mark = |it: AutoChannel| {
        let is_of_adult = is_adult(it.group) || it.synced.group.is_some_and(is_adult);
        (is_of_adult || new.adult.contains(&it.stream), it)
    };
    let mut creations: Vec<(bool, AutoChannel)> = creations.into_iter().map(with_mark).collect();
    let mut is_complete = true;
    while !(removals.is_empty() && updates.is_empty() && creations.is_empty()) {
        check_stop()?;
        // In one commit, so that a group whose streams were all replaced is never without channels.
        let (removed, updated, created) = (some(&mut removals), some(&mut updates), some(&mut creations));
        let (n_updates, n_creations) = (updated.len() as u64, created.len() as u64);
        let lineups = new.lineups.clone();
        let (n_removed, n_updated, n_created) = models.store.write_blocking(move |write| {
            let n_removed = remove(write, account, &removed)?;
            let n_updated = update(write, account, updated)?;
            let n_created = create(write, created, &lineups)?;
            Ok::<_, E>((n_removed, n_updated, n_created))
        })?;
        summary.n_removed += n_removed;
        summary.n_updated += n_updated;
        summary.n_created += n_created;
        is_complete &= (n_updated, n_created) == (n_updates, n_creations);
    }
    Ok(is_complete)
}

/// Takes the first of these, as many as one commit changes.
fn some<T>(all: &mut Vec<T>) -> Vec<T> {
    let rest = all.split_off(all.len().min(CHANNELS_AT_ONCE));
    std::mem::replace(all, rest)
}

/// Removes channels, unless an admin changed them meanwhile and the account keeps such channels.
fn remove(write: &mut Write<'_>, account: AccountId, ids: &[ChannelId]) -> Result<u64, storage::Error> {
    let cleanup =
        write.get::<Account>(account.0)?.map_or(OrphanCleanup::Never, |it| OrphanCleanup::from_account(&it));
    let mut n = 0;
    for id in ids {
        if own(write, account, *id)?.is_some_and(|it| cleanup.removes(&it)) {
            write.remove::<Channel>(id.0)?;
            n += 1;
        }
    }
    Ok(n)
}

/// Updates channels. Returns how many of them got all their values.
pub(super) fn update(
    write: &mut Write<'_>,
    account: AccountId,
    updates: Vec<(ChannelId, AutoChannel)>,
) -> Result<u64, storage::Error> {
    let at = now_ms();
    let mut changed = Vec::new();
    for (id, auto) in updates {
        if let Some(before) = own(write, account, id)? {
            let mut channel = before.clone();
            channel.follow(with_group(write, auto)?);
            if channel.group != before.group {
                channel.follow_adult_mark(any_adult(write, &channel.streams, channel.group)?);
            }
            channel.updated_at = at;
            link_logo(write, &mut channel)?;
            changed.push((before, channel));
        }
    }
    // The channels may exchange their numbers, so all of them are freed before one is given.
    for (before, channel) in &changed {
        if before.number.is_some() && before.number != channel.number {
            write.put(&Channel { number: None, ..before.clone() })?;
        }
    }
    let mut n = 0;
    for (_, mut channel) in changed {
        let is_free = match channel.number {
            Some(number) => {
                write.by::<Channel>("number", number.to_string())?.iter().all(|it| it.id == channel.id)
            }
            None => true,
        };
        if !is_free {
            // Without a number of its own, the next plan gives it another one.
            channel.number = None;
            channel.auto.iter_mut().for_each(|it| it.synced.number = None);
        }
        write.put(&channel)?;
        n += u64::from(is_free);
    }
    Ok(n)
}

/// Creates channels, each with the adult mark of its stream or its group. Returns how many; a number may be taken by now.
fn create(
    write: &mut Write<'_>,
    creations: Vec<(bool, AutoChannel)>,
    chosen: &ChosenLineups,
) -> Result<u64, storage::Error> {
    let at = now_ms();
    let mut lineups: Vec<Lineup> = if chosen.is_empty() { Vec::new() } else { write.all()? };
    let mut n = 0;
    for (is_adult, auto) in creations {
        if let Some(number) = auto.synced.number
            && !write.by::<Channel>("number", number.to_string())?.is_empty()
        {
            continue;
        }
        let mut uuid = auto_channel_uuid(&auto);
        if !write.by::<Channel>("uuid", uuid.as_bytes())?.is_empty() {
            // A channel that an admin keeps has it.
            uuid = Uuid::new_v4();
        }
        let id = ChannelId(write.next_id::<Channel>()?);
        if let Some(ids) = chosen.get(&auto.group) {
            for lineup in &mut lineups {
                lineup.set(id, ids.contains(&0) || ids.contains(&lineup.id.0));
            }
        }
        let auto = with_group(write, auto)?;
        let mut channel = Channel::automatic(id, uuid, auto, at);
        channel.follow_adult_mark(is_adult);
        link_logo(write, &mut channel)?;
        write.put(&channel)?;
        n += 1;
    }
    lineups.iter().try_for_each(|it| write.put(it))?;
    Ok(n)
}

/// Returns the channel if a refresh of this account created it and still keeps it.
fn own(write: &Write<'_>, account: AccountId, id: ChannelId) -> Result<Option<Channel>, storage::Error> {
    let channel = write.get::<Channel>(id.0)?;
    Ok(channel.filter(|it| it.auto.as_ref().is_some_and(|auto| auto.account == account && !auto.is_detached)))
}

/// Replaces a group that was deleted meanwhile by none.
fn with_group(write: &Write<'_>, mut auto: AutoChannel) -> Result<AutoChannel, storage::Error> {
    if let Some(group) = auto.synced.group
        && write.get::<Group>(group.0)?.is_none()
    {
        auto.synced.group = None;
    }
    Ok(auto)
}
