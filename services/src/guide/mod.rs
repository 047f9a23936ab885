//! Reads programmes: from a channel to its guide, and from there to the programmes in a span of time. Lists, players,
//! guides and searches all read here.
//!
//! Programmes of a guide file are read from the disk, generated ones are computed. Both block, so they run on threads that
//! may.

mod cache;
mod entry;
mod generated;
mod parts;

use std::collections::BTreeMap;
use std::sync::Arc;

use actors::now_ms;
use domain::channel::Channel;
use domain::guide::channel::GuideChannel;
use domain::guide::generated::NameSource;
use domain::guide::index::{GuideIndex, SourceOrder};
use domain::guide::programme::{ProgrammeId, from_xml};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::ids::{GuideChannelId, GuideSourceId};
use domain::plan::ArchivedProgramme;
use server::reply::Refusal;
use storage::guide::{GuideFile, GuideFiles};
use storage::{Models, Table};
use tracing::warn;

use self::cache::GuideCache;
pub use self::cache::GuideLinks;
pub use self::entry::{EntryId, GuideEntry};
use self::generated::GeneratedProgrammes;
pub use self::parts::ProgrammeParts;
use self::parts::{GeneratedDays, ProgrammePart};

/// Length of a day, in seconds.
pub const DAY: i64 = 24 * 60 * 60;
/// Time after now in which the next programmes of a channel are searched, in seconds.
const NEXT_SPAN: i64 = 7 * DAY;

/// Runs a function that reads guides on a thread that may block.
pub async fn read_guide<R: Send + 'static>(
    run: impl FnOnce() -> Result<R, Refusal> + Send + 'static,
) -> Result<R, Refusal> {
    let done = tokio::task::spawn_blocking(run).await;
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
            models: self.models.clone(),
            cache: Arc::clone(&self.cache),
            now: now_ms() / 1000,
        }
    }

    /// Returns a text that changes when programmes, sources or guide channels can have changed, for entity tags.
    pub fn version(&self) -> String {
        let generations = self.models.guide_states.load();
        let generations: Vec<_> = generations.iter().map(|it| (it.source.0, it.generation)).collect();
        // A node of a cluster gets a file some time after the state that names it.
        let files = self.files.present();
        let files: Vec<_> = files.values().map(|it| (it.source().0, it.generation())).collect();
        format!("{:?} {generations:?} {files:?}", self.models.guide_sources.load().version())
    }
}

/// All guides at one moment. A refresh that ends while an answer is written changes nothing of it.
pub struct GuideReader {
    pub index: Arc<GuideIndex>,
    pub sources: Arc<Table<GuideSource>>,
    pub order: SourceOrder,
    files: BTreeMap<GuideSourceId, Arc<GuideFile>>,
    models: Models,
    cache: Arc<GuideCache>,
    /// Seconds since 1970.
    pub now: i64,
}

impl GuideReader {
    /// Returns the guide of a channel: the linked one, or the one with its id in a guide. `None` if it has none.
    pub fn channel_guide(&self, channel: &Channel) -> Option<ChannelGuide> {
        let guide_channel = Arc::clone(self.index.shown_channel(channel, &self.order)?);
        let source = self.sources.get(guide_channel.source.0)?;
        let programmes = match source.kind {
            GuideSourceKind::Generated => {
                let guide = self.cache.generated(source)?;
                let generated = GeneratedProgrammes::new(guide, channel, &self.models, self.now);
                ProgrammeSource::Generated(Box::new(generated))
            }
            _ => ProgrammeSource::File(self.file(source)?),
        };
        Some(ChannelGuide { guide_channel, programmes })
    }

    /// Returns the guide of a guide channel in a file. `None` if its source has no file or is inactive.
    pub fn file_guide(&self, id: GuideChannelId) -> Option<ChannelGuide> {
        let guide_channel = Arc::clone(self.index.get(id)?);
        let programmes = ProgrammeSource::File(self.file(self.sources.get(guide_channel.source.0)?)?);
        Some(ChannelGuide { guide_channel, programmes })
    }

    /// Returns the file of an active source. `None` if it has none or it is damaged.
    pub fn file(&self, source: &GuideSource) -> Option<Arc<GuideFile>> {
        let file = self.files.get(&source.id).filter(|it| source.is_active && !it.is_damaged());
        file.cloned()
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

    /// Returns one programme and its guide channel. Blocks.
    pub fn stored(&self, id: ProgrammeId) -> Option<(Arc<GuideChannel>, GuideEntry)> {
        let guide = self.file_guide(id.channel()?)?;
        let ProgrammeSource::File(file) = &guide.programmes else { return None };
        let found = file.programme(id).unwrap_or_else(|error| {
            warn!("failed to read a programme of the guide: {error}");
            None
        });
        Some((guide.guide_channel, GuideEntry::stored(id, found?)))
    }

    /// Returns the programme of a generated guide that starts at this second. Blocks.
    pub fn generated(&self, channel: &Channel, start: i64) -> Option<(ChannelGuide, GuideEntry)> {
        let guide = self.channel_guide(channel)?;
        let id = EntryId::Generated(channel.id, start);
        let found = guide.programmes(start, start.saturating_add(1));
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
        self.cache.links(&self.models.channels.load(), &self.index, &self.order)
    }
}

/// The guide of one channel.
#[derive(Clone)]
pub struct ChannelGuide {
    pub guide_channel: Arc<GuideChannel>,
    programmes: ProgrammeSource,
}

/// The origin of programmes.
#[derive(Clone)]
enum ProgrammeSource {
    File(Arc<GuideFile>),
    Generated(Box<GeneratedProgrammes>),
}

impl ChannelGuide {
    /// Returns whether the programmes follow from the name of the channel.
    pub fn is_generated(&self) -> bool {
        matches!(self.programmes, ProgrammeSource::Generated(_))
    }

    /// Returns source and generation of the file with the programmes. `None` if they follow from the name of the channel.
    pub fn file(&self) -> Option<(u32, u64)> {
        match &self.programmes {
            ProgrammeSource::File(file) => Some((file.source().0, file.generation())),
            ProgrammeSource::Generated(_) => None,
        }
    }

    /// Returns a number that other programmes have another of; `None` if they are generated or cannot be read. Blocks.
    pub fn content(&self) -> Option<u64> {
        match &self.programmes {
            ProgrammeSource::File(file) if !file.is_damaged() => file.content(self.guide_channel.id).ok(),
            _ => None,
        }
    }

    /// Returns the programmes that overlap `from..until`, in seconds since 1970, by their start. Blocks.
    pub fn programmes(&self, from: i64, until: i64) -> Vec<GuideEntry> {
        self.entries(from, until).collect()
    }

    /// Returns the same programmes part by part.
    pub fn parts(&self, from: i64, until: i64) -> ProgrammeParts {
        match &self.programmes {
            ProgrammeSource::File(file) => {
                let id = self.guide_channel.id;
                ProgrammeParts::File(id, Arc::clone(file).into_cells(id, from, until))
            }
            ProgrammeSource::Generated(programmes) => {
                let programmes = programmes.clone();
                let (from, until) = programmes.listed(from, until);
                ProgrammeParts::Generated(GeneratedDays { programmes, from, next: from, until })
            }
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
