//! What a recording gets from the archive of its channel.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{Gap, Recording, RecordingInput, RecordingStatus};

/// A part that is shorter than this is not asked for, in milliseconds.
pub const MISSED_MS_MIN: i64 = 2_000;

/// How far the file of a recording is that comes from the archive alone, because nothing was recorded in its time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FetchedFile {
    /// The time up to which the file has everything that the archive has, in milliseconds since 1970.
    pub reached: i64,
    /// Size of the file at that time, in bytes.
    pub bytes: u64,
}

/// The work to get what a finished file lacks.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MissedWork {
    /// The file that is about to take the place of the present one.
    pub replacement: Option<FilledFile>,
}

/// A file with what the archive had. Times are milliseconds since 1970.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilledFile {
    /// Size in bytes.
    pub bytes: u64,
    /// The time of the first packet.
    pub started_at: i64,
    /// The time of the last packet.
    pub ended_at: i64,
    /// The times that it lacks.
    pub gaps: Vec<Gap>,
}

impl Recording {
    /// Returns how far the file from the archive is, if the whole recording comes from there: its time is over, and no file
    /// was begun in time.
    pub fn fetched(&self, now: i64) -> Option<FetchedFile> {
        match self.status {
            RecordingStatus::Recording => self.after.fetched,
            RecordingStatus::Scheduled if self.ends_at() <= now => {
                Some(FetchedFile { reached: self.begins_at(), bytes: 0 })
            }
            _ => None,
        }
    }

    /// Returns the times that a finished file lacks, in order. The end of a recording that was ended on purpose is not
    /// missing, and what comes from the archive was already asked for.
    pub fn missed_parts(&self) -> Vec<Range<i64>> {
        let Some((started_at, ended_at)) =
            self.file.as_ref().and_then(|it| Some((it.started_at, it.ended_at?)))
        else {
            return Vec::new();
        };
        // One of several parts is not filled: its node may lack what the others have.
        if self.after.fetched.is_some() || !self.earlier_parts.is_empty() {
            return Vec::new();
        }
        let inner = self.gaps.iter().filter_map(|it| Some(it.start..it.end?));
        let inner = inner.filter(|it| it.start >= started_at && it.end <= ended_at);
        let head = self.begins_at()..started_at;
        let tail = (self.status == RecordingStatus::Interrupted).then_some(ended_at..self.ends_at());
        let all = [head].into_iter().chain(inner).chain(tail);
        all.filter(|it| it.end.saturating_sub(it.start) >= MISSED_MS_MIN).collect()
    }

    /// Returns the gaps that are left when the file has these times, too.
    pub fn gaps_without(&self, filled: &[Range<i64>]) -> Vec<Gap> {
        let mut left = self.gaps.clone();
        for filled in filled {
            let rest = |gap: Gap| {
                let end = gap.end.unwrap_or(i64::MAX);
                let before = Gap { end: Some(end.min(filled.start)), ..gap.clone() };
                let after = Gap { start: gap.start.max(filled.end), ..gap };
                [before, after]
            };
            let is_long = |it: &Gap| it.end.is_none_or(|end| end.saturating_sub(it.start) >= MISSED_MS_MIN);
            left = left.into_iter().flat_map(rest).filter(is_long).collect();
        }
        left
    }

    /// Notes that a file with more has taken the place of the present one.
    pub fn filled(&mut self, by: FilledFile, at: i64) {
        self.after.missed = None;
        let Some(file) = &mut self.file else { return };
        (file.bytes, file.started_at, file.ended_at) = (by.bytes, by.started_at, Some(by.ended_at));
        self.gaps = by.gaps;
        self.updated_at = at;
        if self.outcome(by.ended_at).0 == RecordingInput::EndedWhole {
            // Only an interrupted recording accepts it.
            let _ = self.apply(RecordingInput::Filled, None, at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::tests::with_file;

    const SECOND: i64 = 1_000;

    #[test]
    fn only_a_recording_whose_time_passed_without_a_file_comes_from_the_archive() {
        let mut it = with_file();
        let (begin, end) = (it.begins_at(), it.ends_at());
        it.status = RecordingStatus::Scheduled;
        assert_eq!(it.fetched(end - 1), None, "it can still begin");
        assert_eq!(it.fetched(end), Some(FetchedFile { reached: begin, bytes: 0 }));
        it.status = RecordingStatus::Recording;
        assert_eq!(it.fetched(end), None, "it began in time");
        let half = FetchedFile { reached: begin + 1_000, bytes: 188 };
        it.after.fetched = Some(half);
        assert_eq!(it.fetched(end), Some(half));
        it.status = RecordingStatus::Stopped;
        assert_eq!(it.fetched(end), None);
    }

    /// An interrupted recording that lacks its first minute, 10 seconds in the middle, and its last minute.
    fn with_gaps() -> Recording {
        let mut it = with_file();
        let (begin, end) = (it.begins_at(), it.ends_at());
        it.status = RecordingStatus::Interrupted;
        let file = it.file.as_mut().unwrap();
        (file.started_at, file.ended_at) = (begin + 60 * SECOND, Some(end - 60 * SECOND));
        let gap = |start, end, reason: &str| Gap {
            start,
            end: Some(end),
            reason: reason.to_owned(),
            is_lost: false,
        };
        let middle = begin + 200 * SECOND;
        it.gaps = vec![
            gap(begin, begin + 60 * SECOND, "late"),
            gap(middle, middle + 10 * SECOND, "lost"),
            gap(end - 60 * SECOND, end, "stopped"),
        ];
        it
    }

    #[test]
    fn a_file_lacks_its_begin_its_gaps_and_the_end_that_nobody_cut_off() {
        let mut it = with_gaps();
        let (begin, end) = (it.begins_at(), it.ends_at());
        let head = begin..begin + 60 * SECOND;
        let middle = begin + 200 * SECOND..begin + 210 * SECOND;
        assert_eq!(it.missed_parts(), [head.clone(), middle.clone(), end - 60 * SECOND..end]);
        it.status = RecordingStatus::Stopped;
        assert_eq!(it.missed_parts(), [head, middle]);
        it.file.as_mut().unwrap().ended_at = None;
        assert_eq!(it.missed_parts(), [], "it grows");
    }

    #[test]
    fn a_filled_gap_ends_and_a_whole_recording_is_completed() {
        let it = with_gaps();
        let (begin, end) = (it.begins_at(), it.ends_at());
        let filled = [begin + SECOND..begin + 70 * SECOND, begin + 203 * SECOND..begin + 205 * SECOND];
        let left: Vec<_> = it.gaps_without(&filled).into_iter().map(|it| (it.start, it.end)).collect();
        let middle = begin + 200 * SECOND;
        assert_eq!(
            left,
            [
                (middle, Some(middle + 3 * SECOND)),
                (middle + 5 * SECOND, Some(middle + 10 * SECOND)),
                (end - 60 * SECOND, Some(end)),
            ]
        );
        let replaced = |ended_at: i64, gaps: Vec<Gap>| {
            let mut it = with_gaps();
            it.after.missed = Some(MissedWork::default());
            it.filled(FilledFile { bytes: 9, started_at: begin, ended_at, gaps }, end);
            assert_eq!((it.after.missed.as_ref(), it.file.as_ref().unwrap().bytes), (None, 9));
            it
        };
        assert_eq!(replaced(end, Vec::new()).status, RecordingStatus::Completed);
        assert_eq!(replaced(end, Vec::new()).reason, None);
        assert_eq!(replaced(end - 60 * SECOND, it.gaps).status, RecordingStatus::Interrupted);
    }
}
