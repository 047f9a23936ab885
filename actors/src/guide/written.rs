//! Programmes that clients write: the small guide of a source is written again with each change.

use std::collections::{BTreeMap, HashMap};

use domain::guide::channel::GuideChannel;
use domain::guide::programme::{self, Programme, ProgrammeId};
use domain::guide::source::{GuideSource, GuideSourceKind};
use domain::guide::state::{GuideState, GuideStatus};
use domain::ids::{GuideChannelId, GuideSourceId};
use media::spawn_blocking;
use storage::guide::{GuideFiles, StoredProgramme};
use storage::{BulkWrite, Models};
use tokio::sync::Mutex;

use super::collector::{CHANNEL_ID_MAX, CollectedChannels, DAY_SECONDS};
use super::error::GuideError;
use super::landing::{self, Landing};

/// Maximum number of programmes of a source that clients write. Each change writes all of them again.
const WRITTEN_PROGRAMMES_MAX: usize = 20_000;

/// Maximum number of guide channels of a source that clients write.
const WRITTEN_CHANNELS_MAX: usize = 2_000;

/// A change of a programme.
#[derive(Clone, Debug)]
pub enum WrittenEdit {
    /// Adds a programme to the guide channel with this key, which is created if the source has none. It replaces a programme
    /// of this channel with the same start, and the one with the id `replaces`.
    Put { key: String, programme: Box<Programme>, replaces: Option<ProgrammeId> },
    /// Removes a programme. One that does not exist is an error.
    Remove(ProgrammeId),
    /// Removes a programme, if it exists.
    Discard(ProgrammeId),
    /// Gives the guide channel with this key its name and its image, and creates it if the source has none.
    Channel { key: String, name: Option<String>, icon: Option<String> },
}

/// Reason why programmes were not written.
#[derive(Debug, thiserror::Error)]
pub enum WrittenError {
    #[error("the guide source does not exist")]
    NoSuchSource,
    /// Programmes of other sources come from their provider.
    #[error("the programmes of this guide source come from its provider and cannot be changed")]
    NotWritten,
    #[error("the programme does not exist")]
    NoSuchProgramme,
    /// The time is outside of the years 2000 to 2135, or the programme does not end after its start.
    #[error("the times of the programme are invalid")]
    Times,
    #[error("a guide source has at most {max} {what}")]
    TooMany { what: &'static str, max: usize },
    #[error("{0}")]
    Guide(#[from] GuideError),
}

impl From<storage::Error> for WrittenError {
    fn from(error: storage::Error) -> Self {
        Self::Guide(error.into())
    }
}

/// Writes the guides of sources of the kind [`GuideSourceKind::Written`].
pub(crate) struct WrittenGuides {
    models: Models,
    files: GuideFiles,
    /// Held while a guide is read, changed and written.
    turn: Mutex<()>,
}

impl WrittenGuides {
    pub(crate) fn new(models: Models, files: GuideFiles) -> Self {
        Self { models, files, turn: Mutex::default() }
    }

    pub(super) async fn edit(
        &self,
        source: GuideSourceId,
        edits: Vec<WrittenEdit>,
        now: i64,
    ) -> Result<Vec<ProgrammeId>, WrittenError> {
        let _turn = self.turn.lock().await;
        let (models, files) = (self.models.clone(), self.files.clone());
        let edited = spawn_blocking(move || edit(&models, &files, source, edits, now)).await;
        edited.unwrap_or(Err(WrittenError::Guide(GuideError::Panicked)))
    }
}

/// A guide in memory. Programmes are ordered by channel and start.
struct Guide {
    source: GuideSourceId,
    channels: HashMap<String, GuideChannel>,
    programmes: BTreeMap<(GuideChannelId, i64), (i64, Box<str>)>,
    bulk: BulkWrite<GuideChannel>,
}

fn edit(
    models: &Models,
    files: &GuideFiles,
    source: GuideSourceId,
    edits: Vec<WrittenEdit>,
    now: i64,
) -> Result<Vec<ProgrammeId>, WrittenError> {
    let known = models.guide_sources.load().get(source.0).cloned().ok_or(WrittenError::NoSuchSource)?;
    if known.kind != GuideSourceKind::Written {
        return Err(WrittenError::NotWritten);
    }
    let mut guide = Guide::load(models, files, &known, now)?;
    let mut ids = Vec::new();
    for edit in edits {
        match edit {
            WrittenEdit::Put { key, programme, replaces } => ids.push(guide.put(&key, &programme, replaces)?),
            WrittenEdit::Remove(id) => guide.remove(id)?,
            WrittenEdit::Discard(id) => drop(guide.discard(id)),
            WrittenEdit::Channel { key, name, icon } => guide.name(&key, name, icon)?,
        }
    }
    let mut writer = files.begin(source)?;
    for ((channel, start), (stop, inner)) in &guide.programmes {
        writer.add(*channel, *start, *stop, inner)?;
    }
    let finished = writer.finish()?;
    let state = models.guide_states.load().get(source.0).map(|it| GuideState::clone(it));
    let state = GuideState {
        status: GuideStatus::Success,
        message: format!("{} programmes.", finished.n_programmes()),
        tried_at: Some(now),
        good_at: Some(now),
        ..state.unwrap_or_else(|| GuideState::new(source))
    };
    let mut present: Vec<_> = guide.channels.into_values().collect();
    present.sort_unstable_by_key(|it| it.id);
    let channels = CollectedChannels { present, gone: Vec::new(), has_changes: true };
    let landing = Landing { source: known, channels, bulk: Some(guide.bulk), finished, state, event: None };
    landing::land(models, files, landing)?;
    Ok(ids)
}

impl Guide {
    /// Loads the present guide, without programmes that are too old.
    fn load(
        models: &Models,
        files: &GuideFiles,
        source: &GuideSource,
        now: i64,
    ) -> Result<Self, WrittenError> {
        // To begin without the programmes of another node would lose them.
        let named = models.guide_states.load().get(source.id.0).map_or(0, |it| it.generation);
        let present = files.file(source.id).map_or(0, |it| it.generation());
        let is_shared = models.store.log_status().borrow().is_some();
        if is_shared && present < named && !files.damaged().contains(&source.id) {
            return Err(GuideError::NotHere.into());
        }
        let owner = u64::from(source.id.0);
        let bulk = models.store.bulk_write(owner)?;
        let mut channels = HashMap::new();
        models
            .store
            .collection::<GuideChannel>()
            .for_each_of(owner, |it| drop(channels.insert(it.key.clone(), it)))?;
        let since = now.div_euclid(1000) - i64::from(source.history_days) * DAY_SECONDS;
        let mut programmes = BTreeMap::new();
        if let Some(file) = files.file(source.id) {
            for channel in channels.values() {
                let kept = match file.programmes(channel.id, since, i64::MAX) {
                    // Reported in the health. The source must not stay unusable for that.
                    Err(storage::Error::DamagedGuide { .. }) => continue,
                    kept => kept?,
                };
                for StoredProgramme { start, stop, inner } in kept {
                    programmes.insert((channel.id, start), (stop, inner));
                }
            }
        }
        Ok(Self { source: source.id, channels, programmes, bulk })
    }

    fn put(
        &mut self,
        key: &str,
        programme: &Programme,
        replaces: Option<ProgrammeId>,
    ) -> Result<ProgrammeId, WrittenError> {
        if let Some(id) = replaces {
            self.remove(id)?;
        }
        let channel = self.channel(key)?;
        let id = ProgrammeId::new(channel, programme.start).filter(|_| programme.stop > programme.start);
        let id = id.ok_or(WrittenError::Times)?;
        let mut inner = String::new();
        programme::to_xml(programme, &mut inner);
        self.programmes.insert((channel, programme.start), (programme.stop, inner.into()));
        if self.programmes.len() > WRITTEN_PROGRAMMES_MAX {
            return Err(WrittenError::TooMany { what: "programmes", max: WRITTEN_PROGRAMMES_MAX });
        }
        Ok(id)
    }

    fn remove(&mut self, id: ProgrammeId) -> Result<(), WrittenError> {
        self.discard(id).map(drop).ok_or(WrittenError::NoSuchProgramme)
    }

    fn discard(&mut self, id: ProgrammeId) -> Option<(i64, Box<str>)> {
        self.programmes.remove(&(id.channel()?, id.start()))
    }

    fn name(&mut self, key: &str, name: Option<String>, icon: Option<String>) -> Result<(), WrittenError> {
        self.channel(key)?;
        if let Some(channel) = self.channels.get_mut(key) {
            channel.names = vec![name.unwrap_or_else(|| key.to_owned())];
            channel.icon = icon;
        }
        Ok(())
    }

    /// Returns the channel with this key, which is new if there is none.
    fn channel(&mut self, key: &str) -> Result<GuideChannelId, WrittenError> {
        if let Some(known) = self.channels.get(key) {
            return Ok(known.id);
        }
        let too_many = || WrittenError::TooMany { what: "channels", max: WRITTEN_CHANNELS_MAX };
        if self.channels.len() >= WRITTEN_CHANNELS_MAX {
            return Err(too_many());
        }
        let id = Some(self.bulk.next_id()?).filter(|it| *it <= CHANNEL_ID_MAX).ok_or_else(too_many)?;
        let (id, names) = (GuideChannelId(id), vec![key.to_owned()]);
        let channel = GuideChannel { id, source: self.source, key: key.to_owned(), names, icon: None };
        self.channels.insert(key.to_owned(), channel);
        Ok(id)
    }
}
