//! The programmes of a channel, some consecutive ones each time, so that a long guide is never in memory as a whole.

use std::sync::Arc;

use domain::ids::GuideChannelId;
use storage::Error;
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
            Self::File(id, offset, cells) => {
                let cell = cells.find_map(readable)?;
                Some(ProgrammePart::File(*id, *offset, cell))
            }
            Self::Generated(days) => days.next().map(ProgrammePart::Entries),
            Self::Merged(days) => days.next().map(ProgrammePart::Entries),
        }
    }
}

/// Returns a cell that can be read: a damaged one does not hide those after it.
fn readable(cell: storage::Result<GuideCell>) -> Option<GuideCell> {
    match cell {
        Ok(cell) => Some(cell),
        // The file has logged it, once.
        Err(Error::DamagedGuide { .. }) => None,
        Err(error) => {
            warn!("failed to read the guide of a channel: {error}");
            None
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

#[cfg(test)]
mod tests {
    use std::fs;

    use domain::ids::GuideSourceId;
    use storage::guide::GuideFiles;

    use super::*;

    // One wrong byte of a guide file hid all programmes of its source.
    #[test]
    fn a_damaged_part_of_a_guide_does_not_hide_the_rest_of_the_day() {
        const N: i64 = 1_000;
        const START: i64 = 1_900_000_000;
        let folder = tempfile::tempdir().unwrap();
        let files = GuideFiles::open(folder.path()).unwrap();
        let (source, channel) = (GuideSourceId(3), GuideChannelId(1));
        let mut writer = files.begin(source).unwrap();
        for n in 0..N {
            let start = START + n * 60;
            let noise: String = (0..20).map(|it| format!("{:08x}", (n * 7 + it) * 2_654_435_761)).collect();
            writer.add(channel, start, start + 60, &format!("<title>{n} {noise}</title>")).unwrap();
        }
        files.install(writer.finish().unwrap());
        let path = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        let mut bytes = fs::read(&path).unwrap();
        bytes[20] ^= 1;
        fs::write(&path, &bytes).unwrap();

        let file = files.file(source).unwrap();
        let cells = Arc::clone(&file).into_cells(channel, i64::MIN, i64::MAX);
        let parts = ProgrammeParts::File(channel, GuideOffset::default(), cells);
        let found: Vec<_> = parts.flat_map(ProgrammePart::into_entries).collect();
        assert!(file.is_damaged());
        assert!((N / 2..N).contains(&i64::try_from(found.len()).unwrap()), "{} of {N}", found.len());
        let last = START + (N - 1) * 60;
        assert!(found[0].start > START && found.last().unwrap().start == last, "{}", found[0].start);
    }
}
