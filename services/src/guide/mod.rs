//! Reads programmes: from a channel to its guide, and from there to the programmes in a span of time. Lists, players,
//! guides and searches all read here.
//!
//! Programmes of a guide file are read from the disk, generated ones are computed. Both block, so they run on threads that
//! may.

mod cache;
mod entry;
mod generated;
mod merged;
mod one;
mod parts;

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use actors::now_ms;
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::generated::{GeneratedGuide, NameSource};
use domain::guide::index::{GuideIndex, SourceOrder};
use domain::guide::programme::{ProgrammeId, from_xml};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{ChannelId, GuideChannelId, GuideSourceId};
use domain::plan::ArchivedProgramme;
use domain::streams::StreamSnapshot;
use media::spawn_blocking;
use server::reply::Refusal;
use storage::guide::{GuideFile, GuideFiles, StoredProgramme};
use storage::{Models, Table};
use tracing::warn;

use self::cache::{GuideCache, LinkedState, placeholder_settings};
pub use self::cache::{GuideLinks, ShownBy};
pub use self::entry::{EntryId, GuideEntry, GuideOffset};
use self::generated::GeneratedProgrammes;
use self::merged::MergedDays;
use self::one::{OneGuide, ProgrammeSource};
use self::parts::ProgrammePart;
pub use self::parts::ProgrammeParts;

/// Length of a day, in seconds.
pub const DAY: i64 = 24 * 60 * 60;
/// Time after now in which the next programmes of a channel are searched, in seconds.
const NEXT_SPAN: i64 = 7 * DAY;

/// Runs a function that reads guides on a thread that may block.
pub async fn read_guide<R: Send + 'static>(
    run: impl FnOnce() -> Result<R, Refusal> + Send + 'static,
) -> Result<R, Refusal> {
    let done = spawn_blocking(run).await;
    done.map_err(|error| Refusal::fault(format_args!("read a guide: {error}")))?
}

/// The place of all guides. Clones share their state.
#[derive(Clone)]
pub struct Guides {
    models: Models,
    /// The programmes of guide sources.
    pub files: GuideFiles,
    cache: Arc<GuideCache>,
}

impl Guides {
    pub fn new(models: Models, files: GuideFiles) -> Self {
        Self { models, files, cache: Arc::default() }
    }

    /// Returns all guides as they are now.
    pub fn reader(&self) -> GuideReader {
        let sources = self.models.guide_sources.load();
        GuideReader {
            index: self.models.guide.load(),
            order: SourceOrder::new(sources.iter().map(|it| &**it)),
            sources,
            files: self.files.present(),
            streams: self.models.streams.load(),
            placeholders: self.cache.placeholders(&self.models),
            models: self.models.clone(),
            cache: Arc::clone(&self.cache),
            now: now_ms() / 1000,
        }
    }

    /// Returns a number that changes with the offsets that playlists state for guides.
    pub(crate) fn offsets_version(&self) -> u64 {
        self.cache.offsets_version(&self.models.streams.load())
    }

    /// Returns a text that changes when programmes, sources, guide channels or the offsets of streams can have changed, for
    /// entity tags.
    pub fn version(&self) -> String {
        let generations = self.models.guide_states.load();
        let generations: Vec<_> = generations.iter().map(|it| (it.source.0, it.generation)).collect();
        // A node of a cluster gets a file some time after the state that names it.
        let files = self.files.present();
        let files: Vec<_> = files.values().map(|it| (it.source().0, it.generation())).collect();
        let offsets = self.offsets_version();
        let placeholders = placeholder_settings(&self.models);
        let sources = self.models.guide_sources.load().version();
        format!("{sources:?} {generations:?} {files:?} {offsets} {placeholders:?}")
    }
}

/// All guides at one moment. A refresh that ends while an answer is written changes nothing of it.
pub struct GuideReader {
    pub index: Arc<GuideIndex>,
    pub sources: Arc<Table<GuideSource>>,
    pub order: SourceOrder,
    files: BTreeMap<GuideSourceId, Arc<GuideFile>>,
    /// The guide of channels without one.
    placeholders: Option<Arc<GeneratedGuide>>,
    /// They state offsets of guides.
    streams: Arc<StreamSnapshot>,
    models: Models,
    cache: Arc<GuideCache>,
    /// Seconds since 1970.
    pub now: i64,
}

impl GuideReader {
    /// Returns the guide of a channel: the linked one, or the one with its id in a guide. `None` if it has none. Everything that
    /// reads programmes of a channel does so here, so offsets are applied here and nowhere else.
    pub fn channel_guide(&self, channel: &Channel) -> Option<ChannelGuide> {
        let shown = self.index.shown_channels(channel, &self.order);
        let guides = shown.into_iter().filter_map(|it| self.one_guide(channel, it)).collect();
        ChannelGuide::new(guides).or_else(|| self.placeholder_guide(channel))
    }

    /// Returns the programmes of a guide channel for a channel. `None` if they cannot be read.
    fn one_guide(&self, channel: &Channel, guide_channel: &Arc<GuideChannel>) -> Option<OneGuide> {
        let source = self.sources.get(guide_channel.source.0)?;
        let (programmes, offset) = match source.kind {
            GuideSourceKind::Generated => {
                let guide = self.cache.generated(source)?;
                let generated = GeneratedProgrammes::new(guide, channel, &self.models, self.now);
                (ProgrammeSource::Generated(Box::new(generated)), GuideOffset::default())
            }
            _ => {
                let minutes = channel.offset_from(guide_channel.id, |it| self.streams.guide_offset(it));
                let offset = GuideOffset::new(source, minutes);
                (ProgrammeSource::File(self.file(source)?), offset)
            }
        };
        Some(OneGuide { guide_channel: Arc::clone(guide_channel), programmes, offset })
    }

    /// Returns the placeholders of a channel without a guide, if the settings want them.
    fn placeholder_guide(&self, channel: &Channel) -> Option<ChannelGuide> {
        let guide = self.placeholders.clone()?;
        let generated = GeneratedProgrammes::new(guide, channel, &self.models, self.now);
        let guide_channel = Arc::new(GuideChannel {
            id: GuideChannelId(0),
            source: GuideSourceId(0),
            key: channel.uuid.to_string(),
            names: vec![channel.name.clone()],
            icon: None,
        });
        let programmes = ProgrammeSource::Generated(Box::new(generated));
        let one = OneGuide { guide_channel, programmes, offset: GuideOffset::default() };
        Some(ChannelGuide { is_placeholder: true, ..ChannelGuide::new(vec![one])? })
    }

    /// Returns the guide of a guide channel in a file, without the offset of a channel. `None` if its source has no file or is
    /// inactive.
    pub fn file_guide(&self, id: GuideChannelId) -> Option<ChannelGuide> {
        let guide_channel = Arc::clone(self.index.get(id)?);
        let source = self.sources.get(guide_channel.source.0)?;
        let programmes = ProgrammeSource::File(self.file(source)?);
        let offset = GuideOffset::new(source, 0);
        ChannelGuide::new(vec![OneGuide { guide_channel, programmes, offset }])
    }

    /// Returns the file of an active source. `None` if it has none. Of a damaged one, the parts that can be read are shown until
    /// the guide is fetched again.
    pub fn file(&self, source: &GuideSource) -> Option<Arc<GuideFile>> {
        self.files.get(&source.id).filter(|_| source.is_active).cloned()
    }

    /// Returns the programme of a channel at a time, in seconds since 1970, with its name in the archive of the provider;
    /// `None` if the guide has none. Of several programmes the one that started last counts. Blocks.
    pub fn archived_programme(&self, channel: &Channel, at: i64) -> Option<ArchivedProgramme> {
        let guide = self.channel_guide(channel)?;
        let mut found: Option<ArchivedProgramme> = None;
        for part in guide.parts(at, at.saturating_add(1)) {
            part.for_each(|_, start, stop, inner| {
                let is_later = found.as_ref().is_none_or(|it| it.start < start);
                if !(start..stop).contains(&at) || !is_later {
                    return;
                }
                let id = from_xml(start, stop, inner).ok().and_then(|it| it.catchup_id);
                found = id.map(|catchup_id| ArchivedProgramme { start, catchup_id }).or(found.take());
            });
        }
        found
    }

    /// Returns one programme as its file has it, without any offset, and its guide channel. Blocks.
    pub fn in_file(&self, id: ProgrammeId) -> Option<(Arc<GuideChannel>, StoredProgramme)> {
        let guide_channel = Arc::clone(self.index.get(id.channel()?)?);
        let file = self.file(self.sources.get(guide_channel.source.0)?)?;
        let found = file.programme(id).unwrap_or_else(|error| {
            warn!("failed to read a programme of the guide: {error}");
            None
        });
        Some((guide_channel, found?))
    }

    /// Returns one programme and its guide channel, at the time at which channels show it that are this many minutes later.
    /// `None` also if no channel is. It is cut and completed as one of the channels shows it that `is_seen` names, and whole if
    /// none of these shows it. Blocks.
    pub fn stored(
        &self,
        id: ProgrammeId,
        minutes: i16,
        is_seen: &dyn Fn(&Channel) -> bool,
    ) -> Option<(Arc<GuideChannel>, GuideEntry)> {
        let shown = self.index.get(id.channel()?)?.id;
        let links = self.links();
        let shown_then = || links.shown_by(shown).filter(|it| it.minutes == minutes);
        if minutes != 0 && shown_then().next().is_none() {
            return None;
        }
        let (guide_channel, found) = self.in_file(id)?;
        let source = self.sources.get(guide_channel.source.0)?;
        let entry = GuideEntry::stored(id, found, GuideOffset::new(source, minutes));
        // A further guide of a channel is cut, and the first one is not.
        let mut channels: Vec<_> = shown_then().filter(|it| is_seen(it.channel)).collect();
        channels.sort_by_key(|it| it.is_further);
        let as_shown = channels.iter().find_map(|it| self.as_shown(it.channel, &entry));
        Some((guide_channel, as_shown.unwrap_or(entry)))
    }

    /// Does the same for the picture of the programme, which stays when no channel shows it at this time any more.
    pub fn pictured(
        &self,
        id: ProgrammeId,
        minutes: i16,
        is_seen: &dyn Fn(&Channel) -> bool,
    ) -> Option<(Arc<GuideChannel>, GuideEntry)> {
        self.stored(id, minutes, is_seen).or_else(|| self.stored(id, 0, is_seen))
    }

    /// Returns a programme as a channel shows it: cut and completed by its other guides. `None` if it does not show it.
    fn as_shown(&self, channel: &Channel, entry: &GuideEntry) -> Option<GuideEntry> {
        let guide = self.channel_guide(channel)?;
        // A single guide is shown as it is.
        match (&*guide.guides, entry.id) {
            ([one], EntryId::Stored(id, _)) if id.channel() == Some(one.guide_channel.id) => {
                Some(entry.clone())
            }
            _ => guide.programmes(entry.start, entry.stop).into_iter().find(|it| it.id == entry.id),
        }
    }

    /// Returns whether a channel shows a programme that one of its guide channels has. Blocks.
    pub fn shows(&self, shown: &ShownBy<'_>, entry: &GuideEntry) -> bool {
        !shown.is_further || self.as_shown(shown.channel, entry).is_some()
    }

    /// Returns whether one of the channels that `is_seen` names shows a programme of a guide channel. Blocks.
    pub fn is_shown(
        &self,
        of: GuideChannelId,
        entry: &GuideEntry,
        is_seen: &dyn Fn(&Channel) -> bool,
    ) -> bool {
        self.links().shown_by(of).any(|it| is_seen(it.channel) && self.shows(&it, entry))
    }

    /// Returns the programme of a generated guide that starts at this second. Blocks.
    pub fn generated(&self, channel: &Channel, start: i64) -> Option<(ChannelGuide, GuideEntry)> {
        let guide = self.channel_guide(channel)?;
        let id = EntryId::Generated(channel.id, start);
        // Its beginning can be missing, because another guide has that time.
        let found = guide.programmes(start, start.saturating_add(2 * DAY));
        let entry = found.into_iter().find(|it| it.id == id)?;
        Some((guide, entry))
    }

    /// Returns whether programmes can follow from names of streams, which no version in an entity tag covers.
    pub fn depends_on_streams(&self) -> bool {
        let is_of_streams = |it: &GuideSource| {
            it.is_active
                && it.kind == GuideSourceKind::Generated
                && self
                    .cache
                    .generated(it)
                    .is_some_and(|it| matches!(it.name_source(), NameSource::Stream { .. }))
        };
        self.sources.iter().any(|it| is_of_streams(it))
    }

    /// Returns the channels of each guide channel.
    pub fn links(&self) -> Arc<GuideLinks> {
        self.cache.links(LinkedState {
            channels: self.models.channels.load(),
            streams: Arc::clone(&self.streams),
            index: Arc::clone(&self.index),
            sources: Arc::clone(&self.sources),
            order: self.order.clone(),
        })
    }
}

/// The guide of one channel: that of one or several guide channels, each of which fills what those before it lack.
#[derive(Clone)]
pub struct ChannelGuide {
    /// The first one.
    pub guide_channel: Arc<GuideChannel>,
    /// Never empty.
    guides: Arc<[OneGuide]>,
    /// Whether its programmes say nothing: the channel has no guide.
    pub is_placeholder: bool,
}

/// The identity of the programmes of a guide and of their times: channels with the same key show the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuideKey {
    guides: Vec<(GuideChannelId, GuideOffset)>,
    /// The channel from whose name programmes follow.
    channel: Option<ChannelId>,
}

impl GuideKey {
    /// Returns a number that other keys hardly have.
    pub fn number(&self) -> u64 {
        hash_of(self)
    }
}

fn hash_of(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

impl ChannelGuide {
    fn new(guides: Vec<OneGuide>) -> Option<Self> {
        let guide_channel = Arc::clone(&guides.first()?.guide_channel);
        Some(Self { guide_channel, guides: guides.into(), is_placeholder: false })
    }

    /// Returns whether the programmes follow from the name of the channel, except those that fill gaps.
    pub fn is_generated(&self) -> bool {
        self.guides.first().is_some_and(OneGuide::is_generated)
    }

    /// Returns the key that guides with the same programmes have.
    pub fn key(&self) -> GuideKey {
        let channel = self.guides.iter().find_map(|it| match &it.programmes {
            ProgrammeSource::Generated(generated) => Some(generated.channel()),
            ProgrammeSource::File(_) => None,
        });
        GuideKey { guides: self.guides.iter().map(|it| (it.guide_channel.id, it.offset)).collect(), channel }
    }

    /// Returns a pair that is another one after a refresh of a file with its programmes: of one file, its source and its
    /// generation. `None` if programmes follow from the name of the channel.
    pub fn file(&self) -> Option<(u32, u64)> {
        let files: Option<Vec<_>> = self.guides.iter().map(OneGuide::file).collect();
        let files = files?;
        match files.as_slice() {
            [one] => Some(*one),
            several => Some((several.first()?.0, hash_of(&several))),
        }
    }

    /// Returns a number that other programmes have another of; `None` if they are generated or cannot be read. Blocks.
    pub fn content(&self) -> Option<u64> {
        let contents: Option<Vec<_>> = self.guides.iter().map(OneGuide::content).collect();
        contents.map(|it| hash_of(&it))
    }

    /// Returns the programmes that overlap `from..until`, in seconds since 1970, by their start. Blocks.
    pub fn programmes(&self, from: i64, until: i64) -> Vec<GuideEntry> {
        self.entries(from, until).collect()
    }

    /// Returns the same programmes part by part.
    pub fn parts(&self, from: i64, until: i64) -> ProgrammeParts {
        match &*self.guides {
            [one] => one.parts(from, until),
            _ => ProgrammeParts::Merged(MergedDays::new(Arc::clone(&self.guides), from, until)),
        }
    }

    fn entries(&self, from: i64, until: i64) -> impl Iterator<Item = GuideEntry> {
        self.parts(from, until).flat_map(ProgrammePart::into_entries)
    }

    /// Returns the next programmes from the running one on, at most `n`. Blocks.
    pub fn upcoming(&self, now: i64, n: usize, until: i64) -> Vec<GuideEntry> {
        self.entries(now, until).take(n).collect()
    }

    /// Returns the programme that runs now, and the first one that starts later. Of several that run, the one that
    /// started last. Blocks.
    pub fn now_and_next(&self, now: i64) -> (Option<GuideEntry>, Option<GuideEntry>) {
        let mut running = None;
        for entry in self.entries(now, now.saturating_add(NEXT_SPAN)) {
            if entry.start > now {
                return (running, Some(entry));
            }
            running = Some(entry);
        }
        (running, None)
    }
}
