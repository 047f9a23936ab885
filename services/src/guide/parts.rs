//! The programmes of a channel, some consecutive ones each time, so that a long guide is never in memory as a whole.

use std::sync::Arc;

use domain::guide::programme::ProgrammeId;
use domain::ids::GuideChannelId;
use storage::guide::{GuideCell, GuideCells, GuideFile};
use tracing::warn;

use super::DAY;
use super::entry::{EntryId, GuideEntry};
use super::generated::GeneratedProgrammes;

/// The programmes that overlap a span of time, by their start. Reading the next part blocks.
pub enum ProgrammeParts {
    /// One cell of the file each time.
    File(GuideChannelId, GuideCells<Arc<GuideFile>>),
    /// One day each time.
    Generated(GeneratedDays),
}

/// The days of a generated guide. Times are seconds since 1970.
pub struct GeneratedDays {
    pub(super) programmes: Box<GeneratedProgrammes>,
    pub(super) from: i64,
    /// Start of the next part.
    pub(super) next: i64,
    pub(super) until: i64,
}

/// Some consecutive programmes.
pub enum ProgrammePart {
    File(GuideChannelId, GuideCell),
    Generated(Vec<GuideEntry>),
}

impl Iterator for ProgrammeParts {
    type Item = ProgrammePart;

    fn next(&mut self) -> Option<ProgrammePart> {
        match self {
            Self::File(id, cells) => match cells.next()? {
                Ok(cell) => Some(ProgrammePart::File(*id, cell)),
                Err(error) => {
                    warn!("failed to read the guide of a channel: {error}");
                    None
                }
            },
            Self::Generated(days) => days.next().map(ProgrammePart::Generated),
        }
    }
}

impl Iterator for GeneratedDays {
    type Item = Vec<GuideEntry>;

    fn next(&mut self) -> Option<Vec<GuideEntry>> {
        if self.next >= self.until {
            return None;
        }
        let begin = self.next;
        self.next = (begin.div_euclid(DAY) * DAY + DAY).min(self.until);
        let mut found = self.programmes.programmes(begin, self.next);
        // Those that began before are in the part before, except in the first one.
        if begin > self.from {
            found.retain(|it| it.start >= begin);
        }
        Some(found)
    }
}

impl ProgrammePart {
    /// Calls a function with id, start, stop and stored form of each programme.
    pub fn for_each(&self, mut visit: impl FnMut(Option<EntryId>, i64, i64, &str)) {
        match self {
            Self::File(channel, cell) => cell.iter().for_each(|it| {
                let id = ProgrammeId::new(*channel, it.start).map(EntryId::Stored);
                visit(id, it.start, it.stop, it.inner);
            }),
            Self::Generated(all) => {
                all.iter().for_each(|it| visit(Some(it.id), it.start, it.stop, &it.inner));
            }
        }
    }

    pub(crate) fn into_entries(self) -> Vec<GuideEntry> {
        match self {
            Self::File(id, cell) => cell.iter().filter_map(|it| GuideEntry::from_file(id, it)).collect(),
            Self::Generated(all) => all,
        }
    }
}
