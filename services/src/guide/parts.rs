//! The programmes of a channel, some consecutive ones each time, so that a long guide is never in memory as a whole.

use std::sync::Arc;

use domain::ids::GuideChannelId;
use storage::guide::{GuideCell, GuideCells, GuideFile};
use tracing::warn;

use super::DAY;
use super::entry::{EntryId, GuideEntry, GuideOffset};
use super::generated::GeneratedProgrammes;
use super::merged::MergedDays;

/// The programmes that overlap a span of time, by their start. Reading the next part blocks.
pub enum ProgrammeParts {
    /// One cell of the file each time.
    File(GuideChannelId, GuideOffset, GuideCells<Arc<GuideFile>>),
    /// One day each time.
    Generated(GeneratedDays),
    /// One day each time.
    Merged(MergedDays),
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
    File(GuideChannelId, GuideOffset, GuideCell),
    Entries(Vec<GuideEntry>),
}

impl Iterator for ProgrammeParts {
    type Item = ProgrammePart;

    fn next(&mut self) -> Option<ProgrammePart> {
        match self {
            Self::File(id, offset, cells) => match cells.next()? {
                Ok(cell) => Some(ProgrammePart::File(*id, *offset, cell)),
                Err(error) => {
                    warn!("failed to read the guide of a channel: {error}");
                    None
                }
            },
            Self::Generated(days) => days.next().map(ProgrammePart::Entries),
            Self::Merged(days) => days.next().map(ProgrammePart::Entries),
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
            Self::File(channel, offset, cell) => cell.iter().for_each(|it| {
                let (id, seconds) = (offset.id(*channel, it.start), offset.seconds());
                visit(id, it.start.saturating_add(seconds), it.stop.saturating_add(seconds), it.inner);
            }),
            Self::Entries(all) => {
                all.iter().for_each(|it| visit(Some(it.id), it.start, it.stop, &it.inner));
            }
        }
    }

    pub(crate) fn into_entries(self) -> Vec<GuideEntry> {
        match self {
            Self::File(id, offset, cell) => {
                cell.iter().filter_map(|it| GuideEntry::from_file(id, it, offset)).collect()
            }
            Self::Entries(all) => all,
        }
    }
}
