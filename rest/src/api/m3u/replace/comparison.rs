//! Compares the streams of two accounts.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use domain::channel::Channel;
use domain::group::Group;
use domain::ids::{AccountId, ChannelId, StreamId};
use domain::recording::RecordingStatus;
use domain::stream::{Stream, StreamProperties};
use domain::stream_identity::{PairStream, Pairing, StreamPair, pair_streams};
use server::reply::Refusal;
use storage::{Models, Table};

use crate::choice::choice;

/// Maximum number of streams of the other account that are compared, which bounds the memory.
const STREAMS_MAX: usize = 200_000;

choice!(
    /// Why a stream has no pair.
    enum UnpairedReason {
        NoMatch = "no_match",
        Ambiguous = "ambiguous",
        Excepted = "excepted",
    }
);

/// The accounts and how far their streams may differ.
pub(super) struct CompareOptions {
    pub(super) from: AccountId,
    pub(super) to: AccountId,
    /// The least points of a pair, in tenths of a percent.
    pub(super) points_min: u16,
    /// Streams that stay as they are.
    pub(super) except: HashSet<StreamId>,
}

/// A stream in a list of the answer. Its address may contain a password, so that only the host is kept.
pub(super) struct ListedStream {
    pub(super) name: String,
    pub(super) host: Option<String>,
    pub(super) is_adult: bool,
}

/// The pairs, and the channels that they change.
pub(super) struct Comparison {
    /// The account whose streams play then.
    pub(super) to: AccountId,
    /// Those with the lowest score first.
    pub(super) pairs: Vec<StreamPair>,
    /// By id.
    pub(super) unpaired: Vec<(StreamId, UnpairedReason)>,
    /// The streams of the pairs, and those without one.
    pub(super) listed: HashMap<StreamId, ListedStream>,
    /// The number of channels of each stream.
    pub(super) uses: HashMap<StreamId, usize>,
    pub(super) channels: Vec<ChannelId>,
    pub(super) duplicates: Duplicates,
}

/// The channels that refreshes of the other account created for streams that other channels take over.
#[derive(Default)]
pub(super) struct Duplicates {
    /// Nobody uses them for anything else, so that they are removed.
    pub(super) removed: Vec<ChannelId>,
    /// Number of those that an admin changed, or that recordings, rules or personal playlists name.
    pub(super) n_kept: usize,
}

/// Pairs the streams that channels use.
pub(super) fn find(models: &Models, wanted: CompareOptions) -> Result<Comparison, Refusal> {
    let channels = models.channels.load();
    let mut uses: HashMap<StreamId, usize> = HashMap::new();
    for stream in channels.iter().flat_map(|it| &it.streams) {
        *uses.entry(*stream).or_default() += 1;
    }
    let (mut olds, mut listed, groups) = (Vec::new(), HashMap::new(), models.groups.load());
    models.store.collection::<Stream>().for_each_of(u64::from(wanted.from.0), |stream: Stream| {
        if uses.contains_key(&stream.id) {
            listed.insert(stream.id, ListedStream::new(&stream, &groups));
            olds.push(in_force(&stream));
        }
    })?;
    let (news, of_news) = news(models, wanted.to)?;
    let live: Vec<PairStream> = olds.iter().filter(|it| it.properties.content.is_live()).cloned().collect();
    let Pairing { mut pairs, contested } = pair_streams(&live, &news, wanted.points_min);
    pairs.retain(|it| !wanted.except.contains(&it.from));
    let paired: HashSet<StreamId> = pairs.iter().map(|it| it.from).collect();
    let reason = |id: &StreamId| match contested.binary_search(id) {
        _ if wanted.except.contains(id) => UnpairedReason::Excepted,
        Ok(_) => UnpairedReason::Ambiguous,
        Err(_) => UnpairedReason::NoMatch,
    };
    let unpaired = olds.iter().map(|it| it.id).filter(|it| !paired.contains(it));
    let mut unpaired: Vec<_> = unpaired.map(|it| (it, reason(&it))).collect();
    unpaired.sort_unstable_by_key(|it| it.0);
    let taken: HashSet<StreamId> = pairs.iter().map(|it| it.to).collect();
    listed.extend(of_news.into_iter().filter(|it| taken.contains(&it.0)));
    let is_changed = |it: &&Arc<Channel>| it.streams.iter().any(|it| paired.contains(it));
    let changed: Vec<ChannelId> = channels.iter().filter(is_changed).map(|it| it.id).collect();
    let duplicates = duplicates(models, &channels, wanted.to, (&paired, &taken));
    // The most doubtful ones come first, because an admin looks at them.
    pairs.sort_by_key(|it| (it.points, it.from));
    Ok(Comparison { to: wanted.to, pairs, unpaired, listed, uses, channels: changed, duplicates })
}

/// Streams with their ids.
type ListedStreams = Vec<(StreamId, ListedStream)>;

/// Returns the live streams of the other account.
fn news(models: &Models, account: AccountId) -> Result<(Vec<PairStream>, ListedStreams), Refusal> {
    let (mut news, mut listed, mut n) = (Vec::new(), Vec::new(), 0);
    let groups = models.groups.load();
    models.store.collection::<Stream>().for_each_of(u64::from(account.0), |stream: Stream| {
        if stream.content().is_live() && !stream.is_stale() {
            n += 1;
            if n <= STREAMS_MAX {
                listed.push((stream.id, ListedStream::new(&stream, &groups)));
                news.push(in_force(&stream));
            }
        }
    })?;
    if n == 0 {
        return Err(Refusal::field("account", "The account has no live streams. Refresh it first."));
    }
    if n > STREAMS_MAX {
        let message = format!(
            "The account has {n} live streams; at most {STREAMS_MAX} are compared. Disable groups that are not needed."
        );
        return Err(Refusal::field("account", message));
    }
    Ok((news, listed))
}

impl ListedStream {
    fn new(stream: &Stream, groups: &Table<Group>) -> Self {
        let group = stream.group().and_then(|it| groups.one_by("name", it));
        Self {
            name: stream.name().to_owned(),
            host: stream.url().host().map(str::to_owned),
            is_adult: stream.is_adult() || group.is_some_and(|it| it.is_adult),
        }
    }
}

/// Returns what is compared of a stream, as rules and admins changed it.
fn in_force(stream: &Stream) -> PairStream {
    let mut properties = StreamProperties::new(stream.name(), stream.url().clone());
    properties.tvg_id = stream.tvg_id().map(str::to_owned);
    properties.group = stream.group().map(str::to_owned);
    properties.content = stream.content();
    properties.details.clone_from(&stream.provider.details);
    PairStream { id: stream.id, properties }
}

/// Returns the automatic channels of the other account that would show the same streams as the channels that take them over.
fn duplicates(
    models: &Models,
    channels: &Table<Channel>,
    account: AccountId,
    (paired, taken): (&HashSet<StreamId>, &HashSet<StreamId>),
) -> Duplicates {
    let of_account: Vec<&Arc<Channel>> = channels
        .by("auto_account", account.0.to_be_bytes())
        .filter(|it| it.followed().is_some_and(|auto| taken.contains(&auto.stream)))
        .filter(|it| !it.streams.iter().any(|it| paired.contains(it)))
        .collect();
    if of_account.is_empty() {
        return Duplicates::default();
    }
    let named = named_channels(models);
    let is_removed = |it: &&&Arc<Channel>| !it.is_customized() && !named.contains(&it.id);
    let removed: Vec<ChannelId> = of_account.iter().filter(is_removed).map(|it| it.id).collect();
    Duplicates { n_kept: of_account.len() - removed.len(), removed }
}

/// Returns the channels that recordings to come, rules and personal playlists name.
fn named_channels(models: &Models) -> HashSet<ChannelId> {
    let recordings = models.recordings.load();
    let is_to_come =
        |it: RecordingStatus| matches!(it, RecordingStatus::Scheduled | RecordingStatus::Recording);
    let mut named: HashSet<ChannelId> =
        recordings.iter().filter(|it| is_to_come(it.status)).map(|it| it.channel).collect();
    named.extend(models.recording_rules.load().iter().filter_map(|it| it.channel));
    named.extend(models.personal_playlists.load().iter().flat_map(|it| it.channels.iter().copied()));
    named
}
