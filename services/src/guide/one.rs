//! The programmes of one guide channel, or those that follow from a name.

use std::sync::Arc;

use domain::guide::channel::GuideChannel;
use storage::guide::GuideFile;

use super::entry::{GuideEntry, GuideOffset};
use super::generated::GeneratedProgrammes;
use super::parts::{GeneratedDays, ProgrammePart, ProgrammeParts};

/// One of the guides of a channel.
#[derive(Clone)]
pub(super) struct OneGuide {
    pub(super) guide_channel: Arc<GuideChannel>,
    pub(super) programmes: ProgrammeSource,
    /// None for generated and written programmes.
    pub(super) offset: GuideOffset,
}

/// The origin of programmes.
#[derive(Clone)]
pub(super) enum ProgrammeSource {
    File(Arc<GuideFile>),
    Generated(Box<GeneratedProgrammes>),
}

impl OneGuide {
    pub(super) fn is_generated(&self) -> bool {
        matches!(self.programmes, ProgrammeSource::Generated(_))
    }

    /// Returns source and generation of the file with the programmes. `None` if they follow from a name.
    pub(super) fn file(&self) -> Option<(u32, u64)> {
        match &self.programmes {
            ProgrammeSource::File(file) => Some((file.source().0, file.generation())),
            ProgrammeSource::Generated(_) => None,
        }
    }

    /// Returns a number that other programmes have another of; `None` if they are generated or cannot be read. Blocks.
    pub(super) fn content(&self) -> Option<u64> {
        match &self.programmes {
            ProgrammeSource::File(file) if !file.is_damaged() => file.content(self.guide_channel.id).ok(),
            _ => None,
        }
    }

    /// Returns the time that has programmes, in seconds since 1970. `None` if none has.
    pub(super) fn span(&self) -> Option<(i64, i64)> {
        match &self.programmes {
            ProgrammeSource::File(file) => {
                let seconds = self.offset.seconds();
                let (from, until) = file.span(self.guide_channel.id)?;
                Some((from.saturating_add(seconds), until.saturating_add(seconds)))
            }
            ProgrammeSource::Generated(programmes) => Some(programmes.listed(i64::MIN, i64::MAX)),
        }
    }

    /// Returns the programmes that overlap `from..until`, in seconds since 1970, by their start. Blocks.
    pub(super) fn programmes(&self, from: i64, until: i64) -> Vec<GuideEntry> {
        self.parts(from, until).flat_map(ProgrammePart::into_entries).collect()
    }

    /// Returns the same programmes part by part.
    pub(super) fn parts(&self, from: i64, until: i64) -> ProgrammeParts {
        match &self.programmes {
            ProgrammeSource::File(file) => {
                let (id, seconds) = (self.guide_channel.id, self.offset.seconds());
                let (from, until) = (from.saturating_sub(seconds), until.saturating_sub(seconds));
                ProgrammeParts::File(id, self.offset, Arc::clone(file).into_cells(id, from, until))
            }
            ProgrammeSource::Generated(programmes) => {
                let programmes = programmes.clone();
                let (from, until) = programmes.listed(from, until);
                ProgrammeParts::Generated(GeneratedDays { programmes, from, next: from, until })
            }
        }
    }
}
