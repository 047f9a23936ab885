//! The parts of a recording that several nodes have made, and files that outlive their records.
//!
//! ```text
//!  node A: file ──► A is lost ──► earlier part, whose end nobody knows ──► A is back, and reports it
//!  node B:                        file
//! ```

use serde::{Deserialize, Serialize};

use super::{
    AfterRecording, FetchedFile, Gap, MISSED_MS_MIN, RecordedFile, Recording, RecordingInput, RecordingStatus,
};
use crate::ids::RecordingId;

/// Maximum number of earlier parts of a recording. The recording ends early when another node would have to continue it.
pub const PARTS_MAX: usize = 50;

/// Files of a deleted recording that their node has to remove, because another node has deleted the record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftFiles {
    pub id: u32,
    /// Name of the node that has them.
    pub node: String,
    pub recording: RecordingId,
    /// Paths below the folder of recordings.
    pub paths: Vec<String>,
}

impl Recording {
    /// Returns all parts in order. The last one is the file.
    pub fn parts(&self) -> impl Iterator<Item = &RecordedFile> {
        self.earlier_parts.iter().chain(&self.file)
    }

    /// Returns the recording with one of its parts as its only file. Parts are numbered from 1. An earlier part whose end nobody
    /// knows ends where the next one begins.
    pub fn part(&self, number: usize) -> Option<Self> {
        let file = self.parts().nth(number.checked_sub(1)?)?.clone();
        let next = self.parts().nth(number).map(|it| it.started_at.max(file.started_at));
        let file = Some(RecordedFile { ended_at: file.ended_at.or(next), ..file });
        Some(Self { file, earlier_parts: Vec::new(), ..self.clone() })
    }

    /// Returns the paths of all files of the recording in the folders that a function selects. What was made beside the file
    /// is where the file is.
    pub fn paths_where(&self, is_meant: impl Fn(&RecordedFile) -> bool) -> Vec<String> {
        let has_file = self.file.as_ref().is_none_or(&is_meant);
        let of_file = if has_file { self.paths() } else { Vec::new() };
        let earlier = self.earlier_parts.iter().filter(|it| is_meant(it)).map(|it| it.path.clone());
        earlier.chain(of_file).collect()
    }

    /// Returns the files in the folders that a function selects, for each node. To be stored with other ids when the record
    /// is deleted.
    pub fn left_files(&self, is_meant: impl Fn(&RecordedFile) -> bool) -> Vec<LeftFiles> {
        let mut left: Vec<LeftFiles> = Vec::new();
        for node in self.parts().filter(|it| is_meant(it)).filter_map(|it| it.node.as_ref()) {
            if left.iter().all(|it| it.node != *node) {
                let paths = self.paths_where(|it| it.node.as_ref() == Some(node));
                left.push(LeftFiles { id: 0, node: node.clone(), recording: self.id, paths });
            }
        }
        left
    }

    /// Returns whether another node may continue the recording.
    pub fn has_room_for_part(&self) -> bool {
        self.earlier_parts.len() < PARTS_MAX
    }

    /// Makes a new file the last part. A file that another node has becomes an earlier part; one that comes from an archive
    /// alone is begun anew instead, and is returned.
    pub fn begin_file(&mut self, new: RecordedFile) -> Option<RecordedFile> {
        let before = self.file.replace(new);
        let new_node = self.file.as_ref().and_then(|it| it.node.as_ref());
        let before = before.filter(|it| it.node.is_some() && it.node.as_ref() != new_node)?;
        let begin = self.begins_at();
        if let Some(fetched) = &mut self.after.fetched {
            *fetched = FetchedFile { reached: begin, bytes: 0 };
            self.gaps.clear();
            return Some(before);
        }
        self.earlier_parts.push(before);
        // Why it could not continue at once.
        self.reason = None;
        None
    }

    /// Notes the end of a part that its node had to leave, with its size in bytes. The gap after it, whose begin was
    /// estimated, gets the right one. Returns whether the recording has such a part whose end was unknown.
    pub fn part_ended(&mut self, node: &str, path: &str, bytes: u64, ended_at: i64, now: i64) -> bool {
        let is_it =
            |it: &RecordedFile| it.node.as_deref() == Some(node) && it.path == path && it.ended_at.is_none();
        let end = |it: &mut RecordedFile| {
            let ended_at = ended_at.max(it.started_at);
            (it.bytes, it.ended_at) = (bytes, Some(ended_at));
            ended_at
        };
        if let Some(n) = self.earlier_parts.iter().position(is_it) {
            let ended_at = end(&mut self.earlier_parts[n]);
            let next = self.earlier_parts.get(n + 1).or(self.file.as_ref()).map(|it| it.started_at);
            if let Some(next) = next {
                self.correct_gap(ended_at, next);
            }
            return true;
        }
        if !self.status.is_final() {
            return false;
        }
        let Some(file) = self.file.as_mut().filter(|it| is_it(it)) else { return false };
        let ended_at = end(file);
        if let Some(gap) = self.gaps.last_mut().filter(|it| it.end.is_some_and(|end| end > ended_at)) {
            gap.start = gap.start.min(ended_at);
        }
        self.updated_at = now;
        if self.status == RecordingStatus::Interrupted
            && self.outcome(ended_at).0 == RecordingInput::EndedWhole
        {
            // Only an interrupted recording accepts it.
            let _ = self.apply(RecordingInput::Filled, None, now);
        }
        true
    }

    /// Gives the gap before a part the end of the part before it as its start.
    fn correct_gap(&mut self, ended_at: i64, next_started_at: i64) {
        let found = self.gaps.iter().position(|it| it.end == Some(next_started_at));
        let (reason, is_lost) = match found.map(|n| self.gaps.remove(n)) {
            Some(gap) => (gap.reason, gap.is_lost),
            None => ("another node has continued the recording".to_owned(), false),
        };
        // Gaps that the lost node did not see the end of.
        self.gaps.retain(|it| it.start < ended_at || it.start >= next_started_at);
        if next_started_at.saturating_sub(ended_at) >= MISSED_MS_MIN {
            let n = self.gaps.partition_point(|it| it.start < ended_at);
            self.gaps.insert(n, Gap { start: ended_at, end: Some(next_started_at), reason, is_lost });
        }
    }
}

impl AfterRecording {
    /// Leaves out work that needs the whole recording in one file.
    pub fn without_programs(&mut self) {
        (self.comskip, self.remux, self.cut, self.missed) = (None, None, None, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::with_file;
    use crate::recording::{CutFile, CutWork};

    const SECOND: i64 = 1_000;

    fn part(node: Option<&str>, path: &str, started_at: i64) -> RecordedFile {
        let node = node.map(str::to_owned);
        RecordedFile { path: path.to_owned(), bytes: 0, started_at, ended_at: None, node }
    }

    /// A recording that `attic` began, and that `cellar` continues after 100 s with a gap from 80 s on.
    fn continued() -> Recording {
        let mut it = with_file();
        let begin = it.begins_at();
        it.file = Some(part(Some("attic"), "a.ts", begin));
        it.open_gap(begin + 80 * SECOND, "attic is lost");
        assert_eq!(it.begin_file(part(Some("cellar"), "b.ts", begin + 100 * SECOND)), None);
        it.close_gap(begin + 100 * SECOND);
        it
    }

    #[test]
    fn the_file_of_another_node_becomes_an_earlier_part() {
        let it = continued();
        let begin = it.begins_at();
        let end = |number: usize| it.part(number).map(|it| (it.parts().count(), it.file.unwrap().ended_at));
        assert_eq!((end(0), end(3)), (None, None));
        assert_eq!((end(1), end(2)), (Some((1, Some(begin + 100 * SECOND))), Some((1, None))));
        let paths: Vec<_> = it.parts().map(|it| it.path.as_str()).collect();
        assert_eq!(paths, ["a.ts", "b.ts"]);
        // A file of the same node was lost, and that of an archive begins anew.
        let mut it = with_file();
        it.file = Some(part(Some("attic"), "a.ts", 0));
        assert_eq!(it.begin_file(part(Some("attic"), "b.ts", 0)), None);
        assert_eq!(it.parts().count(), 1);
        it.after.fetched = Some(FetchedFile::default());
        let before = it.begin_file(part(Some("cellar"), "c.ts", 0));
        assert_eq!((before.unwrap().path, it.parts().count()), ("b.ts".into(), 1));
        assert_eq!(it.after.fetched, Some(FetchedFile { reached: it.begins_at(), bytes: 0 }));
        let mut it = with_file();
        assert_eq!(it.begin_file(part(None, "b.ts", 0)), None);
        assert_eq!(it.parts().count(), 1);
    }

    #[test]
    fn the_number_of_parts_is_bounded() {
        let mut it = continued();
        let mut n_files = 2;
        while it.has_room_for_part() {
            let node = if n_files % 2 == 0 { "attic" } else { "cellar" };
            it.begin_file(part(Some(node), "c.ts", 0));
            n_files += 1;
        }
        assert_eq!((n_files, it.parts().count()), (PARTS_MAX + 1, PARTS_MAX + 1));
    }

    #[test]
    fn the_gap_between_parts_has_its_true_length_once_the_first_node_is_back() {
        let check = |ended_at: i64, expected: &[(i64, i64)]| {
            let mut it = continued();
            let begin = it.begins_at();
            assert!(!it.part_ended("attic", "b.ts", 1, 0, 0), "it is not its part");
            assert!(it.part_ended("attic", "a.ts", 376, begin + ended_at * SECOND, 0));
            assert!(!it.part_ended("attic", "a.ts", 376, begin, 0), "once");
            let gaps =
                it.gaps.iter().map(|it| ((it.start - begin) / SECOND, (it.end.unwrap() - begin) / SECOND));
            assert_eq!(gaps.collect::<Vec<_>>(), expected, "{ended_at}");
            assert_eq!((it.earlier_parts[0].bytes, it.file.unwrap().ended_at), (376, None));
        };
        check(60, &[(60, 100)]);
        check(90, &[(90, 100)]);
        check(99, &[]);
        // The old node went on for a moment.
        check(101, &[]);
    }

    #[test]
    fn a_recording_that_nobody_continued_is_complete_if_its_node_had_recorded_to_the_end() {
        for (left, expected) in [(1, RecordingStatus::Completed), (300, RecordingStatus::Interrupted)] {
            let mut it = with_file();
            let (begin, end) = (it.begins_at(), it.ends_at());
            it.file = Some(part(Some("attic"), "a.ts", begin));
            assert!(!it.part_ended("attic", "a.ts", 1, end, end), "it may go on");
            it.apply(RecordingInput::EndedIncomplete, Some("attic is lost".to_owned()), end).unwrap();
            assert!(it.part_ended("attic", "a.ts", 1, end - left * SECOND, end));
            assert_eq!(it.status, expected, "{left}");
        }
    }

    #[test]
    fn files_of_other_nodes_are_left_to_them() {
        let mut it = continued();
        let copy = CutFile { path: "b - cut.ts".to_owned(), bytes: 1 };
        it.after.cut = Some(CutWork { file: Some(copy), ..CutWork::default() });
        let is_own = |it: &RecordedFile| it.node.as_deref() == Some("cellar");
        assert_eq!(it.paths_where(is_own), ["b.ts", "b - cut.ts"]);
        let left = it.left_files(|it| !is_own(it));
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].node.as_str(), left[0].paths.as_slice()), ("attic", &["a.ts".to_owned()][..]));
        it.begin_file(part(Some("attic"), "c.ts", 0));
        assert_eq!(it.left_files(|_| true).len(), 2);
    }
}
